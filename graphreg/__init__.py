"""graphreg: declarative convex modelling for graph-regularised estimation.

One description, two routes, one certificate: a model is a sum of losses on the nodes of a graph and penalties on its
edges; it is compiled to CVXPY for an exact optimum, or lowered to a decentralised method, and either answer is
certified by the same duality gap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import errors
from .certificate import Certificate
from .compare import Comparison, compare
from .data import NodeData
from .engines import Actors, Faults
from .graph import Graph
from .methods import (
    ADMM,
    IFCA,
    AbstractFixedPoint,
    AbstractIteration,
    Acceleration,
    AsyncAL2SGD,
    AsyncL2GD,
    Availability,
    Checkpoint,
    ClusteredFedAvg,
    DecreasingStep,
    Exact,
    ExactDiffusion,
    FedADMM,
    FedAvg,
    GradientTracking,
    InteriorPoint,
    LocalOnly,
    LocalSGD,
    PFedMe,
    Pooled,
    PrimalDual,
    SubgradientDescent,
)
from .problem import Compiled, Problem
from .solution import Solution
from .terms.calculus import Model, Parameter
from .terms.hierarchy import Hierarchy
from .terms.losses.hinge import HingeLoss, SquaredHingeLoss
from .terms.losses.huber import HuberLoss
from .terms.losses.logistic import LogisticLoss
from .terms.losses.multinomial import MultinomialLoss
from .terms.losses.poisson import PoissonLoss
from .terms.losses.quantile import QuantileLoss
from .terms.losses.squared import MeanLoss, SquaredLoss
from .terms.penalties._base import AbstractConstraint, AbstractNorm, AbstractOneSided
from .terms.penalties._base import AbstractPenalty as Penalty
from .terms.penalties.ball import Ball
from .terms.penalties.box import Box
from .terms.penalties.huber_norm import HuberNorm
from .terms.penalties.l1 import L1
from .terms.penalties.l2 import L2
from .terms.penalties.linf import LInf
from .terms.penalties.non_negative import NonNegative
from .terms.penalties.quadratic import Quadratic
from .terms.penalties.squared_l2 import SquaredL2
from .terms.penalties.zero import Zero
from .terms.sums import Consensus, NodePenalty, TotalVariation

if TYPE_CHECKING:
    from .model_file import ModelFile, read_model
    from .theory import strength_max
    from .tuning import cross_validate, path

__version__ = "0.1.0"
__all__ = [
    "ADMM",
    "IFCA",
    "L1",
    "L2",
    "AbstractConstraint",
    "AbstractFixedPoint",
    "AbstractIteration",
    "AbstractNorm",
    "AbstractOneSided",
    "Acceleration",
    "Actors",
    "AsyncAL2SGD",
    "AsyncL2GD",
    "Availability",
    "Ball",
    "Box",
    "Certificate",
    "Checkpoint",
    "ClusteredFedAvg",
    "Comparison",
    "Compiled",
    "Consensus",
    "DecreasingStep",
    "Exact",
    "ExactDiffusion",
    "Faults",
    "FedADMM",
    "FedAvg",
    "GradientTracking",
    "Graph",
    "Hierarchy",
    "HingeLoss",
    "HuberLoss",
    "HuberNorm",
    "InteriorPoint",
    "LInf",
    "LocalOnly",
    "LocalSGD",
    "LogisticLoss",
    "MeanLoss",
    "Model",
    "ModelFile",
    "MultinomialLoss",
    "NodeData",
    "NodePenalty",
    "NonNegative",
    "PFedMe",
    "Parameter",
    "Penalty",
    "PoissonLoss",
    "Pooled",
    "PrimalDual",
    "Problem",
    "Quadratic",
    "QuantileLoss",
    "Solution",
    "SquaredHingeLoss",
    "SquaredL2",
    "SquaredLoss",
    "SubgradientDescent",
    "TotalVariation",
    "Zero",
    "compare",
    "cross_validate",
    "errors",
    "path",
    "read_model",
    "strength_max",
]

_SUBMODULES = (
    "datasets",
    "explain",
    "inference",
    "testing",
    "theory",
    "tuning",
)  # imported when first used: `gr.testing.check_penalty(...)`
_LATER = {
    "ModelFile": "model_file",
    "cross_validate": "tuning",
    "path": "tuning",
    "read_model": "model_file",
    "strength_max": "theory",
}  # public names that are imported when first used


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name in _LATER:
        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
