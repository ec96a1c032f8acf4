"""Points as users give them: arrays, data frames, solutions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..errors import ModelError
from ..form import Form, placed
from ..inputs import is_frame
from ..messages import missing_entries, unknown_labels
from ..running import Solution
from ..terms import Array

Arrays = tuple[Array, ...]


class Given(NamedTuple):
    """Parameters of all nodes; of a Solution its flows and prices as well, where it has as many edges and samples."""

    w: Array
    flows: Arrays | None
    prices: Arrays | None


def given_point(given: Any, what: str, form: Form, *, latent: bool = True) -> Given:
    """What was given as the argument ``what``. Latent nodes that are not are put at the weighted means of their
    neighbours, or without ``latent`` left at 0."""
    flows = prices = None
    if isinstance(given, Solution):
        found, here = given.certificate.dual_point, form.nothing()
        flows, prices = _like(found.flows, here.flows), _like(found.prices, here.prices)
        given = given.certificate.w
    else:
        given = _by_label(given, what, form) if is_frame(given) else given
        given = checks.numbers(given, what, "a Solution or an array of numbers")
    observed = len(form.space.index)
    if given.shape not in (form.shape, (observed, form.d)):
        raise ModelError(f"{what} must have the shape {(observed, form.d)}, got {given.shape}")
    if not np.isfinite(given).all():
        raise ModelError(f"{what} has NaN or infinite entries")
    w = np.zeros(form.shape)
    w[: len(given)] = given
    return Given(placed(form, w) if latent and len(given) < form.n else w, flows, prices)


def given_arrays(given: Any, what: str, here: Arrays) -> Arrays:
    """Arrays of floats in the shapes of those here; one may come by itself."""
    alone = len(here) == 1 and isinstance(given, np.ndarray) and given.shape == here[0].shape
    some = [given] if alone else checks.sequence(given, what, "a sequence of arrays")
    if len(some) != len(here):
        raise ModelError(f"{what} must have an array for each of {len(here)} terms, got {len(some)}")
    found = tuple(checks.numbers(each, f"{what}[{k}]", "an array of numbers") for k, each in enumerate(some))
    for k, (each, like) in enumerate(zip(found, here, strict=True)):
        if each.shape != like.shape:
            raise ModelError(f"{what}[{k}] must have the shape {like.shape}, got {each.shape}")
        if not np.isfinite(each).all():
            raise ModelError(f"{what}[{k}] has NaN or infinite entries")
    return found


def _like(given: Arrays, here: Arrays) -> Arrays | None:
    """The arrays, where they are shaped like those here."""
    return given if [each.shape for each in given] == [each.shape for each in here] else None


def _by_label(frame: Any, what: str, form: Form) -> Any:
    """The entries of a data frame in the order of the nodes and their parameters."""
    rows, columns = list(form.space.index), list(form.space.names)
    for given, known, of in ((frame.index, rows, "node"), (frame.columns, columns, "parameter")):
        for said in (*unknown_labels(what, given, known, of), *missing_entries(what, given, known, of)):
            raise ModelError(said)
    return frame.loc[rows, columns]
