"""The methods, one file each."""

from ._base import AbstractIteration as AbstractIteration
from ._base import AbstractMethod
from ._decreasing import DecreasingStep as DecreasingStep
from .admm import ADMM
from .async_al2sgd import AsyncAL2SGD
from .async_l2gd import AsyncL2GD
from .availability import Availability as Availability
from .checkpoint import Checkpoint as Checkpoint
from .clustered_fed_avg import ClusteredFedAvg
from .exact import Exact
from .exact_diffusion import ExactDiffusion
from .fed_admm import FedADMM
from .fed_avg import FedAvg
from .fixed_point import AbstractFixedPoint as AbstractFixedPoint
from .fixed_point import Acceleration as Acceleration
from .gradient_tracking import GradientTracking
from .ifca import IFCA
from .interior_point import InteriorPoint
from .local_only import LocalOnly
from .local_sgd import LocalSGD
from .pfedme import PFedMe
from .pooled import Pooled
from .primal_dual import PrimalDual
from .subgradient import SubgradientDescent

METHODS: tuple[AbstractMethod, ...] = (  # what problem.methods() and compare go through
    *(Exact(), InteriorPoint(), PrimalDual(), ADMM(), FedADMM(), SubgradientDescent()),
    *(AsyncL2GD(), AsyncAL2SGD()),
    *(LocalSGD(), GradientTracking(), ExactDiffusion()),
    *(LocalOnly(), Pooled(), FedAvg(), ClusteredFedAvg(), IFCA(), PFedMe()),
)
