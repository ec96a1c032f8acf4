"""The methods, one file each."""

from ._base import AbstractMethod
from .admm import ADMM
from .async_al2sgd import AsyncAL2SGD
from .async_l2gd import AsyncL2GD
from .checkpoint import Checkpoint as Checkpoint
from .exact import Exact
from .primal_dual import PrimalDual

METHODS: tuple[AbstractMethod, ...] = (
    Exact(),
    PrimalDual(),
    ADMM(),
    AsyncL2GD(),
    AsyncAL2SGD(),
)  # what problem.methods() and compare go through
