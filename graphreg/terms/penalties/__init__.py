"""The penalties, one file per concept; whatever lies here is imported, and so declared."""

from ...declaring import declared, import_files
from ._base import AbstractPenalty

import_files(__name__, __path__)
globals().update(declared(AbstractPenalty, users=False))  # so that a penalty can be imported from here, too
