"""The methods, one file each."""

from ._base import AbstractMethod
from .admm import ADMM
from .checkpoint import Checkpoint as Checkpoint
from .clustered_fed_avg import ClusteredFedAvg
from .exact import Exact
from .fed_avg import FedAvg
from .ifca import IFCA
from .local_only import LocalOnly
from .pfedme import PFedMe
from .pooled import Pooled
from .primal_dual import PrimalDual
from .subgradient import SubgradientDescent

METHODS: tuple[AbstractMethod, ...] = (  # what problem.methods() and compare go through
    Exact(),
    PrimalDual(),
    ADMM(),
    SubgradientDescent(),
    LocalOnly(),
    Pooled(),
    FedAvg(),
    ClusteredFedAvg(),
    IFCA(),
    PFedMe(),
)
