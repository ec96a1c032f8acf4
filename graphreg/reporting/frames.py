"""A frame of a report, at one position of its slider: a point on the graph, node by node and edge by edge."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..certificate import STATES
from ..form import DualPoint, Form
from ..inputs import components_of
from ..running import Solution
from ..terms import Array, EdgeBlock
from ..terms.penalties import row_norm

NEGLIGIBLE = 1e-3  # of the spread of each coordinate: ends of an edge that are closer count as one in an iterate
NUMBERS = ("distance", "flow", "used", "residual", "slope", "pull")  # of an edge, in the order of the page's data


@dataclass(frozen=True)
class Frame:
    """One position of the slider.

    Attributes
    ----------
    facts : dict
        What the page says of it; plain JSON.
    w : (n, d)
    cluster : (n,)
        -1 for latent nodes.
    node : (n,)
        The part of the gap that the samples of each node hold; nan where it is not known.
    ground : (n,)
        And the terms between a node and the ground.
    edge : dict
        By the names of `NUMBERS`, and "weight", an array (m,) over the edges between nodes, term by term.
    state : (m,)
        The number of each edge's state among `STATES`, and 4 more where the flow uses all of its capacity.
    """

    facts: dict[str, Any]
    w: Array
    cluster: Array
    node: Array
    ground: Array
    edge: dict[str, Array]
    state: Array
    trace: list[dict[str, Any]] = field(default_factory=list)


def between(form: Form) -> list[tuple[int, EdgeBlock]]:
    """The blocks of edges between nodes, with their places in the form."""
    return [(k, edge) for k, edge in enumerate(form.edges) if edge.map.noun == "edge"]


def ends_of(form: Form) -> Array:
    """The tails and heads of all these edges, (m, 2)."""
    parts = [np.stack([edge.tail, edge.head], axis=1) for _, edge in between(form)]
    return np.concatenate(parts) if parts else np.zeros((0, 2), dtype=int)


def of_answer(solution: Solution, facts: dict[str, Any]) -> Frame:
    """The answer with what its certificate says of every node and edge."""
    form, certificate = solution.form, solution.certificate
    number, observed = _clusters(solution)
    table = solution.flows.table()
    joining = np.concatenate([np.full(e.count, e.map.noun == "edge") for e in form.edges] or [np.zeros(0, bool)])
    full = table["saturated"].to_numpy(dtype=bool)[joining]
    cluster = np.full(form.n, -1)
    cluster[: form.space.n_observed] = observed
    samples, edges = certificate.residuals
    node = np.zeros(form.n)
    for block, residual in zip(form.samples, samples, strict=True):
        np.add.at(node, block.map.owner, residual)
    numbers = _numbers(form, certificate.w, certificate.dual_point.flows, edges, number <= STATES.index("near"))
    return Frame(facts, certificate.w, cluster, node, _ground(form, edges), numbers, number + 4 * full)


def _clusters(solution: Solution) -> tuple[Array, Sequence[int]]:
    """The number of each edge's state among `STATES`, and of each node's cluster; its own where all rows are no
    edges."""
    form = solution.form
    if not form.clustered:
        return np.zeros(0, dtype=int), range(form.space.n_observed)
    found = solution.clusters()
    number = np.array([STATES.index(state) for state in found.edges["state"]], dtype=int)
    return number, [found.labels[label] for label in form.space.index]


def of_iterate(form: Form, w: Array, flows: Sequence[Array] | None, full: float, facts: dict[str, Any]) -> Frame:
    """An iterate as its method holds it, of which nothing is certified. Nodes count as one cluster where edges join
    them whose ends differ negligibly."""
    u = form.nothing().flows if flows is None else tuple(flows)
    edges = form.residuals(w, DualPoint(u, form.gradient_prices(w)))[1]
    spread = np.maximum(w.std(axis=0), 1e-9 * np.abs(w).max(axis=0, initial=0.0))
    near = [(np.abs(e.difference(w)) <= NEGLIGIBLE * spread[e.coordinates]).all(axis=1) for _, e in between(form)]
    close = np.concatenate(near) if near else np.zeros(0, dtype=bool)
    numbers = _numbers(form, w, u, edges, close)
    joined = ends_of(form)[close]
    cluster = components_of(joined[:, 0], joined[:, 1], form.n)[1]
    cluster = np.where(np.arange(form.n) < form.space.n_observed, cluster, -1)
    state = np.where(close, STATES.index("near"), STATES.index("undecided")) + 4 * (numbers["used"] >= full)
    unknown = np.full(form.n, np.nan)
    return Frame(facts, w, cluster, unknown, unknown, numbers, state)


def _ground(form: Form, residuals: Sequence[Array]) -> Array:
    out = np.zeros(form.n)
    for edge, residual in zip(form.edges, residuals, strict=True):
        if edge.map.noun == "node":
            np.add.at(out, edge.tail, residual)
    return out


def _numbers(
    form: Form, w: Array, flows: Sequence[Array], residuals: Sequence[Array], together: Array
) -> dict[str, Array]:
    """The numbers of the edges between nodes; ``together`` are those whose ends are taken for equal."""
    parts: list[dict[str, Array]] = []
    begun = 0
    for k, edge in between(form):
        mask, begun = together[begun : begun + len(edge.tail)], begun + len(edge.tail)
        parts.append(_of_block(edge, edge.difference(w), flows[k], residuals[k], mask))
    return {name: np.concatenate([part[name] for part in parts] or [np.zeros(0)]) for name in (*NUMBERS, "weight")}


def _of_block(edge: EdgeBlock, z: Array, u: Array, residual: Array, together: Array) -> dict[str, Array]:
    """The slope c phi(q), or what stands for it, and the pull <u, q> along q: the direction of the difference, and of
    the flow where there is no difference."""
    c, distance, flow = edge.weight, row_norm(z), row_norm(u)
    along = np.where((together | (distance == 0.0))[:, None], u, z)
    length = row_norm(along)
    unit = np.where(length[:, None] > 0.0, along / np.maximum(length, 1e-300)[:, None], np.eye(1, z.shape[1]))
    with np.errstate(all="ignore"):
        used = np.where(flow > 0.0, edge.penalty.domain.gauge(u / c[:, None]), 0.0)
        matrix = edge.penalty.quadratic(z.shape[1])
        bend = edge.penalty.value(unit) if matrix is None else np.einsum("ej,jk,ek->e", unit, matrix, unit)
    return {
        "distance": distance,
        "flow": flow,
        "used": used,
        "residual": residual,
        "slope": c * bend,
        "pull": np.einsum("ej,ej->e", unit, u),
        "weight": c,
    }


# ---- as data of the page ---------------------------------------------------------------------------------------------
def packed(frame: Frame, colour: Array) -> dict[str, Any]:
    """The frame as JSON; ``colour`` are the names of clusters that stay the same from frame to frame."""
    return {
        **frame.facts,
        "w": floats(frame.w),
        "cluster": base64.b64encode(colour.astype("<i2").tobytes()).decode(),
        "node": floats(frame.node),
        "ground": floats(frame.ground),
        "edge": [floats(frame.edge[name]) for name in NUMBERS],
        "state": base64.b64encode(frame.state.astype("u1").tobytes()).decode(),
        "trace": frame.trace,
    }


def floats(values: Array) -> str:
    """Single precision, little end first, in base64."""
    with np.errstate(over="ignore"):
        return base64.b64encode(values.astype("<f4").tobytes()).decode()


def size_of(form: Form) -> int:
    """About how many characters a frame of the page takes."""
    return (4 * form.n * (form.d + 2) + 2 * form.n + 25 * len(ends_of(form))) * 4 // 3


# ---- names of clusters that last while a slider moves: a cluster keeps the name of the one that most of it comes from
NAMED = 8  # clusters with a colour, a shape and a letter; the page has that many


def lasting_names(clusters: Sequence[Array]) -> list[Array]:
    """The cluster of each node, (n,), frame by frame (-1: none), under lasting names: 0, 1, ... in the order of how
    large they are over all frames, clusters of one node last.

    From one frame to the next a name goes to the cluster with which it shares most nodes, the largest share first.
    """
    named: list[Array] = []
    unused = 0
    for k, now in enumerate(clusters):
        names, unused = _inherited(named[k - 1] if k else None, now, unused)
        named.append(names)
    if not named:
        return []
    size = np.zeros(unused)
    for names in named:
        counts = np.bincount(names[names >= 0], minlength=unused)
        size += np.where(counts > 1, counts, 0)
    rank = np.argsort(np.argsort(-size, kind="stable"))
    return [np.where(names >= 0, rank[names], -1) for names in named]


def _inherited(before: Array | None, now: Array, unused: int) -> tuple[Array, int]:
    """The names of the clusters of now, and the first that is still unused. In a small graph a new cluster takes a name
    that no cluster of now has, so that there is one for each."""
    user = now >= 0
    groups = np.unique(now[user])
    name_of: dict[int, int] = {}
    if before is not None:
        pairs, shared = np.unique(np.stack([before[user], now[user]]), axis=1, return_counts=True)
        taken: set[int] = set()
        for j in np.argsort(-shared, kind="stable").tolist():
            old, new = int(pairs[0, j]), int(pairs[1, j])
            if old not in taken and new not in name_of:
                name_of[new] = old
                taken.add(old)
    free = iter(sorted({*range(unused if len(now) <= NAMED else 0)} - {*name_of.values()}))
    for group in groups.tolist():
        if group not in name_of:
            name_of[group] = next(free, unused)
            unused = max(unused, name_of[group] + 1)
    return np.array([name_of.get(group, -1) for group in now.tolist()], dtype=int), unused
