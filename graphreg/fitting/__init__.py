"""From a messy table and a graph to an answer: `fit`."""

from .fit import Fit as Fit
from .reading import Asked as Asked
from .recipe import check_rows as check_rows
from .recipe import doubts as doubts
from .recipe import fit as fit
from .recipe import refuse_look_alikes as refuse_look_alikes
