"""The methods, one file each; whatever lies here is imported, and so declared."""

from typing import Any

from ..declaring import declared, import_files, needs_no_options
from ..lowering.gradients import NodeGradients, without_gradient
from ..lowering.site import Site
from ._base import AbstractIteration, AbstractMethod
from ._baseline import AbstractBaseline

__all__ = [
    "METHODS",
    "AbstractIteration",
    "AbstractMethod",
    "NodeGradients",
    "Site",
    "listed",
    "without_gradient",
]

import_files(__name__, __path__)


def listed(*, users: bool = True) -> tuple[AbstractMethod, ...]:
    """Every method with its default options, which `Problem.methods` and `compare` go through: what takes all data in
    one place first, then the decentralised ones, and last the baselines; by name among these, the user's at the end."""
    ours = declared(AbstractMethod, users=False)
    known: list[Any] = list(declared(AbstractMethod, users=users).values())
    made: list[AbstractMethod] = [each() for each in known if needs_no_options(each)]
    return tuple(sorted(made, key=lambda method: (method.name not in ours, _kind(method))))


def _kind(method: AbstractMethod) -> int:
    if isinstance(method, AbstractBaseline):
        return 3
    return 1 + (not method.central) if isinstance(method, AbstractIteration) else 0


METHODS = listed(users=False)
globals().update(declared(AbstractMethod, users=False))  # so that a method can be imported from here, too
