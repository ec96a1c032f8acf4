"""The methods, one file each."""

from ._base import AbstractIteration as AbstractIteration
from ._base import AbstractMethod
from ._decreasing import DecreasingStep as DecreasingStep
from .admm import ADMM
from .availability import Availability as Availability
from .checkpoint import Checkpoint as Checkpoint
from .exact import Exact
from .exact_diffusion import ExactDiffusion
from .fed_admm import FedADMM
from .gradient_tracking import GradientTracking
from .local_sgd import LocalSGD
from .primal_dual import PrimalDual

METHODS: tuple[AbstractMethod, ...] = (  # what problem.methods() and compare go through
    *(Exact(), PrimalDual(), ADMM(), FedADMM()),
    *(LocalSGD(), GradientTracking(), ExactDiffusion()),
)
