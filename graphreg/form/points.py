"""Parameters as users give them: arrays, data frames, mappings by label."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from .. import checks
from ..base.messages import missing_entries, unknown_labels
from ..errors import GraphregError, ModelError
from ..inputs import is_frame, is_series
from ..terms import Array
from .form import Form

ARRAY = "an array of numbers, a frame or a mapping by label"


def parameters_of(
    given: Any, what: str, form: Form, wanted: str = ARRAY, error: type[GraphregError] = ModelError
) -> Array:
    """One vector of d numbers for each of the user's nodes, or for all nodes, latent ones last.

    ``given``: an array in node order; a data frame in the units of `Solution.table`, of which rows and columns are
    taken by label; or a mapping from labels of nodes to vectors, which may themselves be by label. Where d = 1 a
    vector of numbers will do, and a Series or a mapping from labels to numbers.

    Raises
    ------
    error
        For a label that is unknown, missing or there twice, another shape, and entries that are no finite numbers;
        with the node.
    """
    if is_frame(given):
        rows = _nodes(what, given.index, form, error)
        given = form.space.from_units(given.to_numpy()[np.ix_(rows, _columns(what, given.columns, form, error))])
    elif isinstance(given, Mapping) or (form.d == 1 and is_series(given) and hasattr(given, "items")):
        names, vectors = map(list, zip(*given.items(), strict=True)) if len(given) else ([], [])
        if form.d == 1:
            vectors = [[each] if np.ndim(each) == 0 else each for each in vectors]
        given = [_vector(vectors[k], f"{what}[{names[k]!r}]", form, error) for k in _nodes(what, names, form, error)]
    values, observed = checks.numbers(given, what, wanted, error), (form.space.n_observed, form.d)
    if form.d == 1 and values.ndim == 1:
        values = values[:, None]
    if values.shape not in (form.shape, observed):
        raise error(f"{what} must have the shape {observed}, got {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if bad.size:
        raise error(f"{what} must be finite, got {values[bad[0]]} at the node {form.labels[bad[0]]!r}")
    return values


def _nodes(what: str, given: Iterable[Hashable], form: Form, error: type[GraphregError]) -> list[int]:
    """The places of the nodes: of all, where a latent one is among them."""
    names = list(given)
    known = form.labels if set(form.latent) & set(names) else form.space.index
    return _places(what, names, known, "node", error)


def _columns(what: str, given: Iterable[Hashable], form: Form, error: type[GraphregError]) -> list[int]:
    """The places of the coordinates, by the names that are printed or those that tables of coefficients have."""
    names = list(given)
    pairs = set(form.space.coordinates) & set(names)
    return _places(what, names, form.space.coordinates if pairs else form.space.names, "parameter", error)


def _places(
    what: str, names: list[Hashable], known: Iterable[Hashable], of: str, error: type[GraphregError]
) -> list[int]:
    place, all_known = {name: k for k, name in enumerate(names)}, dict.fromkeys(known)
    if len(place) < len(names):
        twice = next(name for k, name in enumerate(names) if place[name] != k)
        raise error(f"{what}: the {of} {twice!r} is there twice; leave one of them")
    for said in (*unknown_labels(what, names, all_known, of), *missing_entries(what, place, all_known, of)):
        raise error(said)
    return [place[name] for name in all_known]


def _vector(given: Any, what: str, form: Form, error: type[GraphregError]) -> Array:
    labelled = is_series(given) and hasattr(given, "items") and list(given.index) != list(range(len(given)))
    if isinstance(given, Mapping) or labelled:
        names, entries = zip(*given.items(), strict=True) if len(given) else ((), ())
        given = [entries[k] for k in _columns(what, names, form, error)]
    vector = checks.numbers(given, what, "a vector of numbers", error)
    if vector.shape != (form.d,):
        raise error(f"{what} must have the shape {(form.d,)}, got {vector.shape}")
    return vector
