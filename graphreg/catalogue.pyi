# ruff: noqa
"""The names of `graphreg.catalogue` for type checkers; written by ``make listings``."""

from typing import Any

from .methods.automatic.auto import Auto as Auto
from .methods.baselines.clustered_fed_avg import ClusteredFedAvg as ClusteredFedAvg
from .methods.baselines.ditto import Ditto as Ditto
from .methods.baselines.fed_avg import FedAvg as FedAvg
from .methods.baselines.fed_prox import FedProx as FedProx
from .methods.baselines.ifca import IFCA as IFCA
from .methods.baselines.local_only import LocalOnly as LocalOnly
from .methods.baselines.pfedme import PFedMe as PFedMe
from .methods.baselines.pooled import Pooled as Pooled
from .methods.baselines.scaffold import SCAFFOLD as SCAFFOLD
from .methods.baselines.subgradient import SubgradientDescent as SubgradientDescent
from .methods.consensus.exact_diffusion import ExactDiffusion as ExactDiffusion
from .methods.consensus.gradient_tracking import GradientTracking as GradientTracking
from .methods.consensus.local_sgd import LocalSGD as LocalSGD
from .methods.dynamic_programming.dynamic_programming import DynamicProgramming as DynamicProgramming
from .methods.exact import Exact as Exact
from .methods.fed_admm.fed_admm import FedADMM as FedADMM
from .methods.interior_point.interior_point import InteriorPoint as InteriorPoint
from .methods.known_clusters.async_al2sgd import AsyncAL2SGD as AsyncAL2SGD
from .methods.known_clusters.async_l2gd import AsyncL2GD as AsyncL2GD
from .methods.linear_system import LinearSystem as LinearSystem
from .methods.one_node import OneNode as OneNode
from .methods.splitting.admm import ADMM as ADMM
from .methods.splitting.primal_dual import PrimalDual as PrimalDual
from .terms.losses.epsilon_insensitive import SquaredEpsilonInsensitiveLoss as SquaredEpsilonInsensitiveLoss
from .terms.losses.expectile import ExpectileLoss as ExpectileLoss
from .terms.losses.gamma import GammaLoss as GammaLoss
from .terms.losses.hinge import HingeLoss as HingeLoss
from .terms.losses.hinge import SquaredHingeLoss as SquaredHingeLoss
from .terms.losses.huber import HuberLoss as HuberLoss
from .terms.losses.logistic import LogisticLoss as LogisticLoss
from .terms.losses.multinomial import MultinomialLoss as MultinomialLoss
from .terms.losses.poisson import PoissonLoss as PoissonLoss
from .terms.losses.quantile import QuantileLoss as QuantileLoss
from .terms.losses.squared import MeanLoss as MeanLoss
from .terms.losses.squared import SquaredLoss as SquaredLoss
from .terms.penalties.ball import Ball as Ball
from .terms.penalties.box import Box as Box
from .terms.penalties.huber_norm import HuberNorm as HuberNorm
from .terms.penalties.l1 import L1 as L1
from .terms.penalties.l2 import L2 as L2
from .terms.penalties.linf import LInf as LInf
from .terms.penalties.non_negative import NonNegative as NonNegative
from .terms.penalties.quadratic import Quadratic as Quadratic
from .terms.penalties.squared_l2 import SquaredL2 as SquaredL2
from .terms.penalties.zero import Zero as Zero

BASES: dict[str, type[Any]]

def named(kind: str, value: Any) -> Any: ...

__all__ = [
    "ADMM",
    "AsyncAL2SGD",
    "AsyncL2GD",
    "Auto",
    "Ball",
    "Box",
    "ClusteredFedAvg",
    "Ditto",
    "DynamicProgramming",
    "Exact",
    "ExactDiffusion",
    "ExpectileLoss",
    "FedADMM",
    "FedAvg",
    "FedProx",
    "GammaLoss",
    "GradientTracking",
    "HingeLoss",
    "HuberLoss",
    "HuberNorm",
    "IFCA",
    "InteriorPoint",
    "L1",
    "L2",
    "LInf",
    "LinearSystem",
    "LocalOnly",
    "LocalSGD",
    "LogisticLoss",
    "MeanLoss",
    "MultinomialLoss",
    "NonNegative",
    "OneNode",
    "PFedMe",
    "PoissonLoss",
    "Pooled",
    "PrimalDual",
    "Quadratic",
    "QuantileLoss",
    "SCAFFOLD",
    "SquaredEpsilonInsensitiveLoss",
    "SquaredHingeLoss",
    "SquaredL2",
    "SquaredLoss",
    "SubgradientDescent",
    "Zero",
]
