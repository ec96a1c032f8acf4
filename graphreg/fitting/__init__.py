"""From a messy table and a graph to an answer: `fit`."""

from .fit import Fit as Fit
from .recipe import fit as fit
