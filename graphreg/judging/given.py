"""Points as users give them: parameters, flows and prices, or answers to other problems.

Of an answer to another problem is taken what it says of this one: parameters by label of node and coordinate, flows by
term and edge.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..base.escaping import visible
from ..base.messages import did_you_mean, missing_entries
from ..errors import ModelError
from ..form import EdgeBlock, Form, parameters_of, with_latent_means
from ..inputs import index_of, places_of
from ..running import Solution
from ..terms import GROUND, Array

Arrays = tuple[Array, ...]
ROUNDING = 1e-9  # relative: a flow at its capacity may lie so far outside
NAMED = 3  # labels that a sentence lists
_Flows = tuple[Array, Array]


class Given(NamedTuple):
    """Parameters of all nodes; of a Solution its flows as well, and its prices where it has as many samples. ``note``
    says what of it was taken, where that is not all."""

    w: Array
    flows: Arrays | None = None
    prices: Arrays | None = None
    note: str = ""


def given_start(given: Any, what: str, form: Form) -> Given:
    """The start of a run. Of a Solution what it knows, by label: nodes that it does not know are put at the weighted
    means of their neighbours. Of an array latent nodes that are not given are left at 0."""
    if not isinstance(given, Solution):
        return Given(_filled(_entries(given, what, form), form))
    known = values_on_form(given, form, what)
    return Given(spread(form, known.w, known.rows), known.flows, note=str(known))


def given_point(given: Any, what: str, form: Form) -> Given:
    """The point that was given as the argument ``what``. Latent nodes that are not are put at the weighted means of
    their neighbours."""
    if not isinstance(given, Solution):
        entries = _entries(given, what, form)
        w = _filled(entries, form)
        return Given(with_latent_means(form, w) if len(entries) < form.n else w)
    known = values_on_form(given, form, what)
    _check_all_known(known, what)
    w = known.w if known.rows.all() else with_latent_means(form, known.w)
    ordered = given.form.labels == form.labels  # as are the samples then, whose prices have no labels
    prices, here = given.certificate.dual_point.prices, form.nothing().prices
    alike = ordered and [each.shape for each in prices] == [each.shape for each in here]
    return Given(w, known.flows if known.whole else None, prices if alike else None)


def _entries(given: Any, what: str, form: Form) -> Array:
    return parameters_of(given, what, form, "a Solution or an array of numbers")


def _filled(given: Array, form: Form) -> Array:
    """The entries with zeros for the nodes that are not given."""
    w = np.zeros(form.shape)
    w[: len(given)] = given
    return w


def _check_all_known(known: ValuesOnForm, what: str) -> None:
    """Refuse an answer that lacks a node of the user's, or a coordinate."""
    form = known.form
    for names, mask, of in ((form.labels, known.rows, "node"), (form.space.names, known.columns, "parameter")):
        here = names[: form.space.n_observed] if of == "node" else names
        given = [name for name, is_known in zip(here, mask, strict=False) if is_known]
        for said in missing_entries(what, given, here, of):
            raise ModelError(said)


def beyond_capacity(form: Form, flows: Arrays) -> str:
    """The flows that lie outside the domains of their edges, as a sentence; empty where none does."""
    count, worst, where = 0, 1.0 + ROUNDING, ""
    for edge, u in zip(form.edges, flows, strict=True):
        load = edge.penalty.domain.gauge(u / edge.weight[:, None])
        count += int((load > 1.0 + ROUNDING).sum())
        if len(load) and load.max() > worst:
            e = int(load.argmax())
            worst = float(load[e])
            where = f"{visible(form.row_text(edge, e))} of {edge.name}"
    if not count:
        return ""
    size = f"{worst:.10g} times its capacity" if np.isfinite(worst) else "a sign that no multiple of it may have"
    total = sum(map(len, flows))
    return (
        f"{count} of the {total} flows given lie beyond the capacities of their edges and were brought within; the "
        f"farthest, at {where}, has {size}"
    )


def given_flows(given: Any, form: Form) -> Arrays:
    """Flows as arrays, one for each term, or by edge, (tail, head): where no two edges have the same ends."""
    here = form.nothing().flows
    if hasattr(given, "columns"):
        raise ModelError("flows are arrays, one for each term: give solution.flows; its table has only their lengths")
    if not isinstance(given, Mapping):
        return given_arrays(given, "flows", here)
    ends = [pair for edge in form.edges if edge.map.edges is not None for pair in zip(*form.ends(edge), strict=True)]
    if len({frozenset(pair) for pair in ends}) < sum(map(len, here)):
        raise ModelError(
            "flows by edge (tail, head) are for problems whose terms are on edges alone, no two of them with the same "
            "ends; here flows are arrays, one for each term: of a solution solution.certificate.dual_point.flows"
        )
    if strange := set(given) - {*ends, *(pair[::-1] for pair in ends)}:
        raise ModelError(f"flows: {visible(repr(min(strange, key=repr)))} is not an edge (tail, head) of the problem")
    said = {pair: f"the flow of {visible(repr(pair))}" for pair in given}
    by_edge = {pair: np.atleast_1d(checks.numbers(u, said[pair], "numbers")) for pair, u in given.items()}
    for pair in (pair for pair, u in by_edge.items() if not np.isfinite(u).all()):
        raise ModelError(f"{said[pair]} has NaN or infinite entries")
    back = {pair[::-1]: -u for pair, u in by_edge.items()}
    for pair in (
        pair for pair, u in by_edge.items() if pair[0] != pair[1] and not np.array_equal(back.get(pair, u), u)
    ):
        raise ModelError(f"{said[pair]} is another than that of {visible(repr(pair[::-1]))} with its sign changed")
    by_edge = back | by_edge
    if missing := [pair for pair in ends if pair not in by_edge]:
        one = visible(repr(missing[0]))
        raise ModelError(
            f"flows lack {len(missing)} of the {len(ends)} edges, {one} is one: give 0 where nothing flows"
        )
    rows, found = iter(ends), [np.zeros(like.shape) for like in here]
    for edge, flows in zip(form.edges, found, strict=True):
        for e, pair in zip(range(len(flows)), rows, strict=False):
            u, shape = by_edge[pair], flows.shape[1:]
            if u.shape not in ((form.d,), shape):
                raise ModelError(f"the flow of {visible(repr(pair))} must have the shape {shape}, got {u.shape}")
            flows[e] = u[edge.coordinates] if u.shape == (form.d,) else u
    return given_arrays(found, "flows", here)


BY_ITSELF = "; one may come by itself, as np.array([...])"


def given_arrays(given: Any, what: str, here: Arrays) -> Arrays:
    """Arrays of floats in the shapes of those here; one may come by itself, and (m,) stands for (m, 1)."""
    if isinstance(given, Mapping):
        raise ModelError(f"{what} are arrays, one for each term; of a solution: solution.certificate.dual_point.{what}")
    alone = len(here) == 1 and isinstance(given, np.ndarray) and given.shape in _shapes(here[0])
    some = [given] if alone else checks.sequence(given, what, "a sequence of arrays")
    if len(some) != len(here):
        shapes = ", ".join(str(each.shape) for each in here[:NAMED]) + (", ..." if len(here) > NAMED else "")
        got = f"an array {given.shape}" if isinstance(given, np.ndarray) else len(some)
        said = f"{what} must have an array for each of {len(here)} terms, of {shapes}, got {got}"
        raise ModelError(said + BY_ITSELF * (len(here) == 1))
    found = tuple(checks.numbers(each, f"{what}[{k}]", "an array of numbers") for k, each in enumerate(some))
    found = tuple(
        each.reshape(like.shape) if each.shape in _shapes(like) else each
        for each, like in zip(found, here, strict=True)
    )
    for k, (each, like) in enumerate(zip(found, here, strict=True)):
        if each.shape != like.shape:
            raise ModelError(f"{what}[{k}] must have the shape {like.shape}, got {each.shape}")
        if not np.isfinite(each).all():
            row = int(np.argmin(np.isfinite(each).reshape(len(each), -1).all(axis=1)))
            raise ModelError(f"{what}[{k}] has NaN or infinite entries, first in row {row}")
    return found


def _shapes(like: Array) -> tuple[tuple[int, ...], ...]:
    return like.shape, like.shape[:1] if like.shape[1:] == (1,) else like.shape


# ---- what an answer to one problem says of another -------------------------------------------------------------------
@dataclass(frozen=True)
class ValuesOnForm:
    """Parameters and flows for a form, from an answer to another.

    Attributes
    ----------
    w : (n, d) array
        Where the answer says nothing: 0.
    flows : tuple of (m, k) arrays
        Within their capacities; 0 where the answer says nothing.
    rows : (n,) mask
        The nodes that the answer knows, latent ones included.
    columns : (d,) mask
        The coordinates that it knows.
    edges : tuple of (m,) masks
        The edges of each term of which it has the flow.
    """

    form: Form
    w: Array
    flows: tuple[Array, ...]
    rows: Array
    columns: Array
    edges: tuple[Array, ...]

    @property
    def whole(self) -> bool:
        return bool(self.rows.all() and self.columns.all() and all(each.all() for each in self.edges))

    def __str__(self) -> str:
        """The labels that matched, in words; empty where all did."""
        if self.whole:
            return ""
        known = np.concatenate([np.zeros(0, dtype=bool), *self.edges])
        parts = [
            _count(self.rows, "nodes", self.form.labels),
            _count(self.columns, "coordinates", self.form.space.names),
            f"{known.sum()} of {len(known)} flows",
        ]
        return f"The start was taken by label: {', '.join(parts)}."


def values_on_form(solution: Solution, form: Form, what: str) -> ValuesOnForm:
    """The values that a solution has for a form; refused where it is of none of its nodes, or of none of its
    coordinates."""
    old, certificate = solution.form, solution.certificate
    node, known = _places(old.labels, form.labels)
    column, same = _places(old.space.coordinates, form.space.coordinates)
    observed = known[: form.space.n_observed]
    for of, mask, there, here in (
        ("nodes", observed, old.observed, form.observed),
        ("coordinates", same, old.space.names, form.space.names),
    ):
        if not mask.any():
            hint = did_you_mean(there[0], here) if there else ""
            raise ModelError(
                f"{what} is the answer of a problem with the {of} {_some(there)}, of which this problem has none: its "
                f"{of} are {_some(here)}{hint}; leave {what} out, or give an array"
            )
    w = np.zeros(form.shape)
    w[np.ix_(known, same)] = certificate.w[np.ix_(node[known], column[same])]
    dual = certificate.dual_point.flows
    found = [_flows(edge, k, old, form, node, dual) for edge, k in _partners(old, form)]
    return ValuesOnForm(form, w, tuple(u for u, _ in found), known, same, tuple(mask for _, mask in found))


def spread(form: Form, w: Array, known: Array) -> Array:
    """w with the nodes that are not ``known`` at the weighted means of their neighbours that are, these first and then
    their own neighbours; at 0 where no path leads to any."""
    w, known = w.copy(), known.copy()
    links = [(edge.tail, edge.head, edge.weight) for edge in form.between]
    for edge in form.unlike_edges:
        one, other = edge.map.pairs
        links.append((one, other, np.full(len(one), np.mean(edge.scale_of(slice(None))))))
    while not known.all():
        total, weight = np.zeros(form.shape), np.zeros(form.n)
        for one, other, weight_of in links:
            for here, there in ((one, other), (other, one)):
                use = known[there] & ~known[here]
                c = weight_of[use]
                np.add.at(weight, here[use], c)
                np.add.at(total, here[use], c[:, None] * w[there[use]])
        reached = weight > 0.0
        if not reached.any():
            return w
        w[reached] = total[reached] / weight[reached][:, None]
        known |= reached
    return w


def _places(old: Sequence[Hashable], new: Sequence[Hashable]) -> tuple[Array, Array]:
    """The place of each of the new names among the old ones, and a mask of those that were there."""
    place = places_of(new, index_of(old))
    return place, place >= 0


def _partners(old: Form, new: Form) -> Iterator[tuple[EdgeBlock, int | None]]:
    """Each block of edges with the number of its counterpart: the next of the same name and role, and of the same
    coordinates where there is one."""
    left = list(enumerate(old.edges))
    for edge in new.edges:
        alike = [k for k, other in left if (other.name, other.role) == (edge.name, edge.role)]
        same = [k for k in alike if set(_coordinates(old, old.edges[k])) == set(_coordinates(new, edge))]
        place = next(iter(same or alike), None)
        left = [each for each in left if each[0] != place]
        yield edge, place


def _coordinates(form: Form, edge: EdgeBlock) -> list[Hashable]:
    return [form.space.coordinates[j] for j in edge.map.columns(form.d)]


def _flows(edge: EdgeBlock, k: int | None, old: Form, form: Form, node: Array, dual: Sequence[Array]) -> _Flows:
    """The flows of a block by the labels of its ends, clipped into its capacities, and which of them were known."""
    u, found = np.zeros((edge.count, form.width(edge))), np.zeros(edge.count, dtype=bool)
    if k is None:
        return u, found
    other = old.edges[k]
    if edge.map.edges is None:
        place, found = _places(old.keys(other), form.keys(edge))
        found &= old.space.coordinates == form.space.coordinates and dual[k].shape[1:] == u.shape[1:]
        u[found] = dual[k][place[found]]
        return edge.clip(u), found
    tail, head = node[edge.tail], np.full(len(u), GROUND) if edge.ground else node[edge.head]
    there = (tail >= 0) & (edge.ground | (head >= 0))
    key, turned = _keys(tail, head, old.n)
    own, own_turned = _keys(other.tail, other.head, old.n)
    order = np.argsort(own, kind="stable")
    place = order[np.minimum(np.searchsorted(own[order], key), len(own) - 1)]
    found = there & (own[place] == key)
    sign = np.where(turned == own_turned[place], 1.0, -1.0)
    column, same = _places(_coordinates(old, other), _coordinates(form, edge))
    u[np.ix_(found, same)] = (sign[:, None] * dual[k][place])[np.ix_(found, column[same])]
    return edge.clip(u), found


def _keys(tail: Array, head: Array, n: int) -> tuple[Array, Array]:
    """A number for each pair of ends whatever their order, and whether they are turned."""
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    return (low + 1) * (n + 1) + high + 1, tail > head


def _count(mask: Array, of: str, names: Sequence[object]) -> str:
    new = [name for name, known in zip(names, mask, strict=True) if not known]
    return f"{mask.sum()} of {len(mask)} {of}" + (f" (not {_some(new)})" if new else "")


def _some(names: Sequence[object]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > NAMED else ""
    return ", ".join(map(repr, names[:NAMED])) + more
