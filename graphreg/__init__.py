"""graphreg: declarative convex modelling for graph-regularised estimation.

One description, two routes, one certificate: a model is a sum of losses on the nodes of a graph and penalties on its
edges; it is compiled to CVXPY for an exact optimum, or lowered to a decentralised method, and either answer is
certified by the same duality gap.
"""

from __future__ import annotations

from . import interrupting as interrupting  # isort: split

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import catalogue, errors, shortcuts
from .auditing import Audit, audit
from .catalogue import *  # noqa: F403 - the losses, penalties and methods, which are not listed
from .certificate import Certificate
from .compare import Comparison, compare
from .engines import MPI, Actors, Faults, Parts
from .inputs import Graph, NodeData
from .loading import load
from .methods import AbstractFixedPoint, AbstractIteration, Acceleration, DecreasingStep
from .network import Availability
from .problem import Compiled, Problem
from .running import Checkpoint, Observer, Solution
from .terms import Consensus, Hierarchy, Model, NodePenalty, Parameter, TotalVariation
from .terms.losses import (
    AbstractCounts,
    AbstractPeakedLoss,
    AbstractPiecewiseLinearLoss,
    AbstractQuadraticLoss,
    AbstractTwoClasses,
    PriceDomain,
)
from .terms.losses import AbstractSmoothLoss as Loss
from .terms.penalties import AbstractConstraint, AbstractNorm, AbstractOneSided, AbstractSmoothPenalty, FlowDomain
from .terms.penalties import AbstractPenalty as Penalty
from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import inference as inference
    from . import neural as neural
    from . import plots as plots
    from . import sklearn as sklearn
    from . import testing as testing
    from . import theory as theory
    from . import tuning as tuning
    from .model_file import ModelFile, read_model
    from .theory import strength_max
    from .tuning import cross_validate, path

__all__ = [
    "MPI",
    "AbstractConstraint",
    "AbstractCounts",
    "AbstractFixedPoint",
    "AbstractIteration",
    "AbstractNorm",
    "AbstractOneSided",
    "AbstractPeakedLoss",
    "AbstractPiecewiseLinearLoss",
    "AbstractQuadraticLoss",
    "AbstractSmoothPenalty",
    "AbstractTwoClasses",
    "Acceleration",
    "Actors",
    "Audit",
    "Availability",
    "Certificate",
    "Checkpoint",
    "Comparison",
    "Compiled",
    "Consensus",
    "DecreasingStep",
    "Faults",
    "FlowDomain",
    "Graph",
    "Hierarchy",
    "Loss",
    "Model",
    "ModelFile",
    "NodeData",
    "NodePenalty",
    "Observer",
    "Parameter",
    "Parts",
    "Penalty",
    "PriceDomain",
    "Problem",
    "Solution",
    "TotalVariation",
    "audit",
    "compare",
    "cross_validate",
    "errors",
    "load",
    "path",
    "read_model",
    "strength_max",
]
__all__ += catalogue.__all__

for _name, _place in {  # methods whose work is done further out than their class
    "Audit.plot": "plots:plot_audit",
    "Comparison.figure": "plots:comparison_figure",
    "Comparison.plot": "plots:plot_comparison",
    "ConfidenceRegion.plot": "plots:plot_region",
    "CrossValidation.plot": "plots:plot_cross_validation",
    "Loss.from_cvxpy": "reading_cvxpy.loss:from_cvxpy",
    "Model.formula": "form.notation.text:formula",
    "Path.plot": "plots:plot_path",
    "Path.report": "reporting:report_path",
    "Penalty.from_cvxpy": "reading_cvxpy.penalty:from_cvxpy",
    "Recovery.plot": "plots:plot_recovery",
    "Solution.report": "reporting:report_solution",
    "Solution.score": "tuning:node_scores",
}.items():
    shortcuts.register(_name, f"{__name__}.{_place}")

# imported when first used: `gr.testing.check_penalty(...)`
_SUBMODULES = ("datasets", "inference", "neural", "plots", "sklearn", "testing", "theory", "tuning")
_LATER = {
    "ModelFile": "model_file",
    "cross_validate": "tuning",
    "path": "tuning",
    "read_model": "model_file",
    "strength_max": "theory",
}  # public names that are imported when first used

if not TYPE_CHECKING:  # else every name would be one that this knows, and a misspelt one no error

    def __getattr__(name: str) -> Any:
        if name in _SUBMODULES:
            return import_module(f".{name}", __name__)
        if name in _LATER:
            return getattr(import_module(f".{_LATER[name]}", __name__), name)
        gone = "; the papers re-computed are the folder papers/ of the repository" if name == "papers" else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{gone}")


def __dir__() -> list[str]:
    return sorted((*__all__, *_SUBMODULES, "__version__"))
