"""The papers that the library stands on, re-computed: every claim with what is stated, what is found, and a verdict."""

from .declaring import Declaration as Declaration
from .declaring import chosen as chosen
from .declaring import claim as claim
from .declaring import declarations as declarations
from .declaring import titles as titles
from .declaring import uncheckable as uncheckable
from .outlook import Outlook as Outlook
from .outlook import duration as duration
from .pages import drawn as drawn
from .pages import line as line
from .pages import summary as summary
from .pages import to_html as to_html
from .pages import to_markdown as to_markdown
from .records import Check as Check
from .records import Evidence as Evidence
from .records import Verdict as Verdict
from .records import at_least as at_least
from .records import at_most as at_most
from .records import compare as compare
from .records import equal as equal
from .running import OUT as OUT
from .running import Claim as Claim
from .running import Runner as Runner
from .running import known as known
from .running import run as run
from .trial import Trial as Trial
