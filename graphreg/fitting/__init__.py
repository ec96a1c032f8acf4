"""From a messy table and a graph to an answer: `fit`."""

from .fit import READ as READ
from .fit import Fit as Fit
from .matching import doubts as doubts
from .matching import refuse_look_alikes as refuse_look_alikes
from .reading import MISSING as MISSING
from .reading import UNFITTED as UNFITTED
from .reading import Asked as Asked
from .reading import UsedRows as UsedRows
from .reading import checked_rows as checked_rows
from .recipe import fit as fit
from .recipe import parts_of as parts_of
from .recipe import readied as readied
