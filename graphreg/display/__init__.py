"""What notebooks show of an object: small pieces of HTML, in which everything that is given is escaped."""

from .brief import Brief as Brief
from .notebook import Line as Line
from .notebook import in_notebook as in_notebook
from .pieces import Html as Html
from .pieces import block as block
from .pieces import details as details
from .pieces import facts as facts
from .pieces import html as html
from .pieces import more as more
from .pieces import sentence as sentence
from .pieces import sentences as sentences
from .pieces import table as table
from .pieces import title as title
from .shown import Shown as Shown
from .shown import ShownFormula as ShownFormula
from .shown import inside as inside
