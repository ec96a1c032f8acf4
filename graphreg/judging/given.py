"""Points as users give them: arrays, data frames, solutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..errors import ModelError
from ..form import Form, placed
from ..inputs import is_frame
from ..messages import missing_entries, unknown_labels, unmatched
from ..running import Solution
from ..terms import Array
from .carried import Carried, carried, spread

Arrays = tuple[Array, ...]


class Given(NamedTuple):
    """Parameters of all nodes; of a Solution its flows as well, and its prices where it has as many samples. ``note``
    says what of it was taken, where that is not all."""

    w: Array
    flows: Arrays | None = None
    prices: Arrays | None = None
    note: str = ""


def given_start(given: Any, what: str, form: Form) -> Given:
    """Where a run begins. Of a Solution what it knows, by label: nodes that it does not know are put at the weighted
    means of their neighbours. Of an array latent nodes that are not given are left at 0."""
    if not isinstance(given, Solution):
        return Given(_filled(_entries(given, what, form), form))
    known = carried(given, form, what)
    return Given(spread(form, known.w, known.rows), known.flows, note=str(known))


def given_point(given: Any, what: str, form: Form) -> Given:
    """What was given as the argument ``what``. Latent nodes that are not are put at the weighted means of their
    neighbours."""
    if not isinstance(given, Solution):
        entries = _entries(given, what, form)
        w = _filled(entries, form)
        return Given(placed(form, w) if len(entries) < form.n else w)
    known = carried(given, form, what)
    _check_all_known(known, what)
    w = known.w if known.rows.all() else placed(form, known.w)
    ordered = given.form.labels == form.labels  # as are the samples then, whose prices have no labels
    prices = _like(given.certificate.dual_point.prices, form.nothing().prices) if ordered else None
    return Given(w, known.flows if known.whole else None, prices)


def _entries(given: Any, what: str, form: Form) -> Array:
    """The entries of an array or a data frame, of the user's nodes or of all."""
    if isinstance(given, Mapping):
        given = _of_nodes(given, what, form)
    given = _by_label(given, what, form) if is_frame(given) else given
    given = checks.numbers(given, what, "a Solution or an array of numbers")
    observed = len(form.space.index)
    if given.shape not in (form.shape, (observed, form.d)):
        raise ModelError(f"{what} must have the shape {(observed, form.d)}, got {given.shape}")
    if not np.isfinite(given).all():
        raise ModelError(f"{what} has NaN or infinite entries")
    return given


def _of_nodes(given: Mapping[Any, Any], what: str, form: Form) -> list[Any]:
    """The vectors of the nodes in their order."""
    for said in unmatched(what, given, list(form.space.index)):
        raise ModelError(said)
    vectors = {label: checks.numbers(given[label], f"{what}[{label!r}]", "a vector of numbers") for label in given}
    for label, vector in vectors.items():
        if vector.shape != (form.d,):
            raise ModelError(f"{what}[{label!r}] must have the shape {(form.d,)}, got {vector.shape}")
    return [vectors[label] for label in form.space.index]


def _filled(given: Array, form: Form) -> Array:
    """The entries with zeros for the nodes that are not given."""
    w = np.zeros(form.shape)
    w[: len(given)] = given
    return w


def _check_all_known(known: Carried, what: str) -> None:
    """Refuse an answer that lacks a node of the user's, or a coordinate."""
    form = known.form
    for names, mask, of in ((form.labels, known.rows, "node"), (form.space.names, known.columns, "parameter")):
        here = names[: form.space.n_observed] if of == "node" else names
        given = [name for name, is_known in zip(here, mask, strict=False) if is_known]
        for said in missing_entries(what, given, here, of):
            raise ModelError(said)


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
    pairs = any(isinstance(column, tuple) for column in frame.columns)  # as in ``solution.table()``
    rows, columns = form.space.index, dict.fromkeys(form.space.coordinates if pairs else form.space.names)
    for given, known, of in ((frame.index, rows, "node"), (frame.columns, columns, "parameter")):
        for said in (*unknown_labels(what, given, known, of), *missing_entries(what, given, known, of)):
            raise ModelError(said)
    return frame.loc[list(rows), list(columns)]
