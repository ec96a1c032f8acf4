"""A form as the conic programme that CVXPY takes, and what a conic solver can say of it."""

from . import conic as conic
from . import solvers as solvers
from .conic import Compiler as Compiler
from .emptiness import overflow as overflow
from .emptiness import rows_apart as rows_apart
from .emptiness import torn as torn
from .rules import not_convex as not_convex
from .steepness import Links as Links
from .steepness import conic_bound as conic_bound
from .steepness import steepest as steepest
