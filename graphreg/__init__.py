"""graphreg: declarative convex modelling for graph-regularised estimation.

One description, two routes, one certificate: a model is a sum of losses on the nodes of a graph and penalties on its
edges; it is compiled to CVXPY for an exact optimum, or lowered to a decentralised method, and either answer is
certified by the same duality gap.

Nothing of it is imported before it is first asked for, so that ``import graphreg`` takes no time.
"""

from __future__ import annotations

from .base import interrupting as interrupting  # isort: split

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from . import errors as errors
from .base import compiled, shortcuts
from .base.declaring import listed_class
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
    from .auditing import Audit as Audit
    from .auditing import audit as audit
    from .catalogue import *  # noqa: F403 - the losses, penalties and methods, which are not listed
    from .certificate import Certificate as Certificate
    from .comparing import Comparison as Comparison
    from .comparing import compare as compare
    from .conic import ConicCertificate as ConicCertificate
    from .conic import certify as certify
    from .distributed import MPI as MPI
    from .distributed import Actors as Actors
    from .distributed import Faults as Faults
    from .distributed import Malicious as Malicious
    from .distributed import Parts as Parts
    from .fitting import Fit as Fit
    from .fitting import fit as fit
    from .inputs import Graph as Graph
    from .inputs import NodeData as NodeData
    from .judging import Judgement as Judgement
    from .methods import AbstractFixedPoint as AbstractFixedPoint
    from .methods import AbstractIteration as AbstractIteration
    from .methods import Acceleration as Acceleration
    from .methods import DecreasingStep as DecreasingStep
    from .model_file import ModelFile as ModelFile
    from .model_file import read_model as read_model
    from .network import Availability as Availability
    from .problem import Compiled as Compiled
    from .problem import Problem as Problem
    from .running import Checkpoint as Checkpoint
    from .running import Observer as Observer
    from .running import Solution as Solution
    from .saving import load as load
    from .terms import Consensus as Consensus
    from .terms import Hierarchy as Hierarchy
    from .terms import Model as Model
    from .terms import NodePenalty as NodePenalty
    from .terms import Parameter as Parameter
    from .terms import Rows as Rows
    from .terms import TotalVariation as TotalVariation
    from .terms import w as w
    from .terms.losses import AbstractCounts as AbstractCounts
    from .terms.losses import AbstractPeakedLoss as AbstractPeakedLoss
    from .terms.losses import AbstractPiecewiseLinearLoss as AbstractPiecewiseLinearLoss
    from .terms.losses import AbstractQuadraticLoss as AbstractQuadraticLoss
    from .terms.losses import AbstractSmoothLoss
    from .terms.losses import AbstractTwoClasses as AbstractTwoClasses
    from .terms.losses import PriceDomain as PriceDomain
    from .terms.penalties import AbstractConstraint as AbstractConstraint
    from .terms.penalties import AbstractNorm as AbstractNorm
    from .terms.penalties import AbstractOneSided as AbstractOneSided
    from .terms.penalties import AbstractPenalty
    from .terms.penalties import AbstractSmoothPenalty as AbstractSmoothPenalty
    from .terms.penalties import FlowDomain as FlowDomain
    from .theory import strength_max as strength_max
    from .tuning import cross_validate as cross_validate
    from .tuning import path as path

    Loss = AbstractSmoothLoss
    Penalty = AbstractPenalty

compiled.offer(f"{__name__}.fast")
for _name, _place in {  # methods whose work is done further out than their class
    "Audit.plot": "plots:plot_audit",
    "Audit.report": "reporting:report_audit",
    "Auto.graph": "methods.dynamic_programming.dynamic_programming:DynamicProgramming",
    "Auto.node": "methods.one_node:OneNode",
    "Checkpoint.opened": "saving.runs:opened",
    "Compiled.certify": "conic:certify",
    "Comparison.figure": "plots:comparison_figure",
    "Comparison.plot": "plots:plot_comparison",
    "ConfidenceRegion.plot": "plots:plot_region",
    "CrossValidation.plot": "plots:plot_cross_validation",
    "Loss.from_cvxpy": "reading_cvxpy.loss:from_cvxpy",
    "Model.formula": "form.notation.text:formula",
    "Observation.predict": "running.summary:predicted",
    "Observation.score": "tuning:node_scores",
    "Path.plot": "plots:plot_path",
    "Path.report": "reporting:report_path",
    "Penalty.from_cvxpy": "reading_cvxpy.penalty:from_cvxpy",
    "Penalty.on_rows": "terms.row_penalty:on_rows",
    "Loss.on_rows": "terms.row_loss:on_rows",
    "Penalty.from_prox": "reading_prox:from_prox",
    "Recovery.plot": "plots:plot_recovery",
    "Solution.nearer": "methods.automatic.auto:nearer",
    "Solution.plot": "plots:plot_trace",
    "Solution.report": "reporting:report_solution",
    "Solution.save": "saving.solutions:save",
    "Solution.score": "tuning:node_scores",
    "Written._html": "mathml:page_of",
}.items():
    shortcuts.register(_name, f"{__name__}.{_place}")

# Where the public names lie, beside the losses, penalties and methods.
_ROOMS = {
    "auditing": "Audit audit",
    "certificate": "Certificate",
    "comparing": "Comparison compare",
    "conic": "ConicCertificate certify",
    "distributed": "MPI Actors Faults Malicious Parts",
    "fitting": "Fit fit",
    "inputs": "Graph NodeData",
    "judging": "Judgement",
    "methods": "AbstractFixedPoint AbstractIteration Acceleration DecreasingStep",
    "model_file": "ModelFile read_model",
    "network": "Availability",
    "problem": "Compiled Problem",
    "running": "Checkpoint Observer Solution",
    "saving": "load",
    "terms": "Consensus Hierarchy Model NodePenalty Parameter Rows TotalVariation w",
    "terms.losses": "AbstractCounts AbstractPeakedLoss AbstractPiecewiseLinearLoss AbstractQuadraticLoss "
    "AbstractTwoClasses Loss PriceDomain",
    "terms.penalties": "AbstractConstraint AbstractNorm AbstractOneSided AbstractSmoothPenalty FlowDomain Penalty",
    "theory": "strength_max",
    "tuning": "cross_validate path",
}
_PLACES = {name: room for room, names in _ROOMS.items() for name in names.split()}
_RENAMED = {"Loss": "AbstractSmoothLoss", "Penalty": "AbstractPenalty"}
_SUBMODULES = ("datasets", "inference", "neural", "plots", "sklearn", "testing", "theory", "tuning")


def _public() -> list[str]:
    return ["errors", *_PLACES, *import_module(".catalogue", __name__).__all__]


if not TYPE_CHECKING:  # else every name would be one that this knows, and a misspelt one no error

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return _public()
        if name in _PLACES:
            found = getattr(import_module(f".{_PLACES[name]}", __name__), _RENAMED.get(name, name))
        elif name.startswith("_"):
            found = None
        elif find_spec(f"{__name__}.{name}") is not None:
            found = import_module(f".{name}", __name__)
        else:
            found = listed_class(name) or getattr(import_module(".catalogue", __name__), name, None)
        if found is None:
            gone = "; the papers re-computed are the folder papers/ of the repository" if name == "papers" else ""
            gone = f"; did you mean 'gr.plots.{name}'?" if name.startswith("plot_") else gone
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{gone}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted((*_public(), *_SUBMODULES, "__version__"))
