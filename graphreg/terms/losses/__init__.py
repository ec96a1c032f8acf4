"""The losses, one file per concept; whatever lies here is imported, and so declared."""

from ...declaring import import_files

import_files(__name__, __path__)
