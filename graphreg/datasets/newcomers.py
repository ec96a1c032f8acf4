"""Losses and penalties by name, also beside those that a seed chooses from: whatever is declared, in the library or by
the user."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..declaring import declared, needs_no_options
from ..errors import DataError, TermError
from ..inputs import NodeData
from ..messages import near
from ..terms.losses import AbstractLoss, AbstractSmoothLoss
from ..terms.penalties import AbstractPenalty, AbstractSmoothPenalty, has_kink

TARGETS = {"squared": (-1.5, 0.0, 2.5), "poisson": (0.0, 3.0, 1.0), "logistic": (0.0, 1.0, 1.0)}


def chosen(base: type[Any], given: str | type[Any] | None, drawn: str, known: tuple[str, ...]) -> str:
    """The name of what was asked for, or of what was drawn where nothing was."""
    name = drawn if given is None else str(getattr(given, "__name__", given))
    others = declared(base)
    if name not in known and (name not in others or not (isinstance(given, str) or others[name] is given)):
        what = "loss" if base is AbstractLoss else "penalty"
        own = f"your own is a class at the top level of a module that derives from {base.__name__}"
        raise TermError(f"there is no {what} {name!r} to draw; {near(name, [*known, *others])} ({own})")
    return name


def penalty_of(kind: str, *options: Any) -> AbstractPenalty:
    """The penalty, by default with its default options."""
    family: Any = declared(AbstractPenalty)[kind]
    if not options and not needs_no_options(family):
        raise TermError(f"random problems take default options, and {kind} has options without a default")
    return family(*options)


def is_stiff(penalty: AbstractPenalty) -> bool:
    """Whether its strength compares with curvatures, as that of a square, and not with gradients."""
    return isinstance(penalty, AbstractSmoothPenalty) or not has_kink(penalty, 1)


def loss_of(family: str, data: NodeData, **options: Any) -> AbstractLoss:
    """The loss on data."""
    made: Any = declared(AbstractLoss)[family]
    return made(data, **options)


def like(family: str) -> str:
    """The drawn family whose targets a loss takes: numbers, counts, or two classes."""
    return _tried(declared(AbstractLoss)[family])[0]


def sample_of(family: str) -> AbstractLoss:
    """The loss on a few samples, for what does not depend on data."""
    return _tried(declared(AbstractLoss)[family])[1]


def is_kinked(family: str) -> bool:
    return not isinstance(sample_of(family), AbstractSmoothLoss)


@cache
def _tried(family: type[AbstractLoss]) -> tuple[str, AbstractLoss]:
    refused = ""
    for known, y in TARGETS.items():
        data = NodeData.from_arrays(np.eye(3), np.array(y), [0, 0, 0])
        try:
            loss = family(data)
        except DataError as error:
            refused = str(error)
            continue
        if len(loss.coordinates()) == len(data.features):
            return known, loss
        refused = "it has several predictors per sample"
    raise TermError(
        f"random problems draw numbers, counts and two classes, and {family.__name__} takes none: {refused}"
    )
