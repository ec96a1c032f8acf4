"""The methods, one file each."""

from ._base import AbstractIteration as AbstractIteration
from ._base import AbstractMethod
from .admm import ADMM
from .checkpoint import Checkpoint as Checkpoint
from .exact import Exact
from .primal_dual import PrimalDual

METHODS: tuple[AbstractMethod, ...] = (Exact(), PrimalDual(), ADMM())  # what problem.methods() and compare go through
