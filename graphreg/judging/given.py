"""Points as users give them: parameters, flows and prices, or solutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..errors import ModelError
from ..escaping import visible
from ..form import Form, parameters_of, placed
from ..messages import missing_entries
from ..running import Solution
from ..terms import Array
from .carried import Carried, carried, spread

Arrays = tuple[Array, ...]
ROUNDING = 1e-9  # relative: a flow at its capacity may lie so far outside


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
    return parameters_of(given, what, form, "a Solution or an array of numbers")


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


def beyond_capacity(form: Form, flows: Arrays) -> str:
    """Which flows lie outside the domains of their edges, as a sentence; empty where none does."""
    count, worst, where = 0, 1.0 + ROUNDING, ""
    for edge, u in zip(form.edges, flows, strict=True):
        load = edge.penalty.domain.gauge(u / edge.weight[:, None])
        count += int((load > 1.0 + ROUNDING).sum())
        if len(load) and load.max() > worst:
            e = int(load.argmax())
            worst = float(load[e])
            ends = (edge.tail[e],) if edge.ground else (edge.tail[e], edge.head[e])
            where = f"{visible(' - '.join(repr(form.labels[i]) for i in ends))} of {edge.name}"
    if not count:
        return ""
    size = f"{worst:.3g} times its capacity" if np.isfinite(worst) else "a sign that no multiple of it may have"
    total = sum(map(len, flows))
    return (
        f"{count} of the {total} flows given lie beyond the capacities of their edges and were brought within; the "
        f"farthest, at {where}, has {size}"
    )


def given_arrays(given: Any, what: str, here: Arrays) -> Arrays:
    """Arrays of floats in the shapes of those here; one may come by itself."""
    alone = len(here) == 1 and isinstance(given, np.ndarray) and given.shape == here[0].shape
    if isinstance(given, Mapping):  # of edges, over all terms
        raise ModelError(f"{what} are arrays, one for each term; of a solution: solution.certificate.dual_point.{what}")
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
