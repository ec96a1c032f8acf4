"""The methods, one file each."""

from ._base import AbstractMethod
from .checkpoint import Checkpoint as Checkpoint
from .exact import Exact
from .primal_dual import PrimalDual

METHODS: tuple[AbstractMethod, ...] = (Exact(), PrimalDual())  # what problem.methods() and compare go through
