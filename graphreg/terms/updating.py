"""The same model on other data."""

from __future__ import annotations

from typing import Any

from ..errors import DataError
from ..inputs import change
from .calculus import Model
from .losses.base import AbstractLoss


def updated(model: Model, data: tuple[Any, ...]) -> tuple[Model, tuple[str, ...]]:
    """The model with its losses on other data, one for each in their order (None: as before), and what changed."""
    terms, changes = list(model.terms), list[str]()
    losses = [(k, term) for k, (_, term) in enumerate(terms) if isinstance(term, AbstractLoss)]
    if not 0 < len(data) <= len(losses):
        names = ", ".join(type(loss).__name__ for _, loss in losses)
        raise DataError(f"update takes data for the losses of the model ({names}), one for each, got {len(data)}")
    for (k, loss), given in zip(losses, data, strict=False):
        if given is not None:
            new = loss.on(given)
            terms[k] = terms[k][0], new
            changes.append(f"{type(loss).__name__}: {change(loss.data, new.data)}")
    return Model(tuple(terms)), tuple(changes)
