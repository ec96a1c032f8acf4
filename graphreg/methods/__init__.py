"""The methods, one file each; whatever lies here is declared, and imported when it is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..base.declaring import declared, listed_class, needs_no_options
from ..network import Availability as Availability
from ..network import LocalView
from ..oracles import NodeGradients, without_gradient, without_prox
from ..running import METHOD as METHOD
from ..running import AbstractIteration, AbstractMethod
from ..running import Checkpoint as Checkpoint
from ..running import Costs as Costs
from ..running import Point as Point
from ..running import Start as Start
from .tolerance import ToleratesLostMessages as ToleratesLostMessages

if TYPE_CHECKING:
    from .automatic.auto import Auto as Auto
    from .consensus._decreasing import DecreasingStep as DecreasingStep
    from .consensus.exact_diffusion import ExactDiffusion as ExactDiffusion
    from .consensus.gradient_tracking import GradientTracking as GradientTracking
    from .consensus.local_sgd import LocalSGD as LocalSGD
    from .exact import Exact as Exact
    from .fed_admm.fed_admm import FedADMM as FedADMM
    from .interior_point._interior import Interior as Interior
    from .interior_point.interior_point import InteriorPoint as InteriorPoint
    from .known_clusters.async_l2gd import AsyncL2GD as AsyncL2GD
    from .splitting.fixed_point import AbstractFixedPoint as AbstractFixedPoint
    from .splitting.fixed_point import Acceleration as Acceleration
    from .splitting.primal_dual import PrimalDual as PrimalDual

    METHODS: tuple[AbstractMethod, ...]

__all__ = [
    "METHODS",
    "AbstractIteration",
    "AbstractMethod",
    "LocalView",
    "NodeGradients",
    "listed",
    "without_gradient",
    "without_prox",
]

_PLACES = {  # of what else is imported when it is first asked for
    "AbstractBaseline": "baselines._baseline",
    "AbstractFixedPoint": "splitting.fixed_point",
    "Acceleration": "splitting.fixed_point",
    "DecreasingStep": "consensus._decreasing",
    "Interior": "interior_point._interior",
}


def listed(*, users: bool = True) -> tuple[AbstractMethod, ...]:
    """Every method with its default options, which `Problem.methods` and `compare` go through: what takes all data in
    one place first, then the decentralised ones, and last the baselines; by name among these, the user's at the end."""
    ours = declared(AbstractMethod, users=False)
    known: list[Any] = list(declared(AbstractMethod, users=users).values())
    made: list[AbstractMethod] = [each() for each in known if needs_no_options(each)]
    return tuple(sorted(made, key=lambda method: (method.name not in ours, _kind(method))))


def _kind(method: AbstractMethod) -> int:
    if method.aim:
        return 3
    return 1 + (not method.central) if isinstance(method, AbstractIteration) else 0


if not TYPE_CHECKING:  # else every name would be one that this knows, and a misspelt one no error

    def __getattr__(name: str) -> Any:
        """`METHODS`, every method of the library with its default options, or a class by its name."""
        if name == "METHODS":
            found = listed(users=False)
        elif name in _PLACES:
            found = getattr(import_module(f".{_PLACES[name]}", __name__), name)
        elif name.startswith("_"):
            found = None
        else:
            found = listed_class(name, __name__) or declared(AbstractMethod, users=False).get(name)
        if found is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found
