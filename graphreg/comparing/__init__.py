"""Methods, and algorithms of the user's, on one problem and on equal terms: the same gap, budget and seed, and one
bound to measure all of them by."""

from .comparison import MEASURES as MEASURES
from .comparison import Comparison as Comparison
from .comparison import NoRun as NoRun
from .comparison import compare as compare
from .comparison import distinct as distinct
