"""Theorem 2 of GTV minimisation, computed: the strengths at which given clusters are recovered, and how well.

    d_i = sum of A_ii' over i' outside C  +  beta_i |dC| / alpha  +  delta_i / lambda,    |dC| the boundary weight of C

If every cluster is well-connected with these demands, the optimum is constant on every cluster and lies within
2 |dC| lambda / alpha of the cluster's own optimum (36). The proof needs 2 beta_i |dC|/alpha in d_i with (36), and the
demand as printed with the sharper bound |dC| lambda / alpha, which holds: (46) and strong convexity give
alpha phi(w~ - wbar)^2 <= <grad f_C(w~), w~ - wbar> <= lambda |dC| phi(w~ - wbar).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..base.clock import in_time
from ..base.shortcuts import shortcut
from ..base.tables import PrintedTable, ResultWithAssumptions, Table, by_label
from ..errors import MethodError
from ..form import EdgeBlock, Form
from ..inputs import Graph
from ..oracles import STEPPING, NodeGradients, without_gradient
from ..terms import Array
from ..terms.losses import AbstractSmoothLoss
from .arguments import form_of, read_clusters
from .clusterwise import Clusterwise, exact_on_ball
from .connected import WellConnected, examine
from .curvature import tells_curvature
from .routing import CutGraph, largest_multiple
from .varied import is_norm

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Recovery(ResultWithAssumptions):
    """The guarantee of Theorem 2 that given clusters are recovered, or what is missing to it.

    Attributes
    ----------
    table : DataFrame
        One row per cluster: nodes, boundary (|dC|), alpha, beta and delta (the largest of its nodes), demand (the
        largest d_i at ``strength``), margin (t*, see `WellConnected`), holds, source (i0), strength_from and
        strength_to (where it is well-connected; nan where nowhere), bound (36) and sharp, |dC| lambda / alpha.
        The two bounds are nan unless every cluster is well-connected.
    strength : float
        lambda, at the moment of the call.
    interval : (float, float) or None
        The open interval of the strengths for which all clusters are guaranteed; None where there are none. For losses
        that are not quadratic one such interval, found in steps: strengths beside it may be guaranteed too.
    tests : dict
        The `WellConnected` of each cluster, with the flow or the sets that break (35).
    reasons : dict
        For each cluster that is not well-connected at ``strength``, why, in words.
    centers : DataFrame
        wbar, the optimum of each cluster's summed losses, from which the bounds count.
    clusters : dict
        The cluster of every node.
    graph : Graph
        The edges of the TotalVariation with their weights A_e.
    assumed : tuple of str
    """

    table: pd.DataFrame
    strength: float
    interval: tuple[float, float] | None
    tests: dict[Hashable, WellConnected]
    reasons: dict[Hashable, str]
    centers: pd.DataFrame
    clusters: dict[Hashable, Hashable]
    graph: Graph

    @property
    def guaranteed(self) -> bool:
        """True where all clusters are well-connected at ``strength``, so that every optimum is constant on each."""
        return all(test.holds for test in self.tests.values())

    @property
    def violating(self) -> dict[Hashable, tuple[Hashable, ...]]:
        """For each cluster that is not well-connected at ``strength``, the set of nodes that breaks (35)."""
        return {cluster: test.violating for cluster, test in self.tests.items() if not test.holds}

    @property
    def bound(self) -> pd.Series:
        """2 |dC| lambda / alpha of each cluster (36), in the norm of the penalty; nan unless ``guaranteed``."""
        return self.table.loc[:, "bound"]

    @property
    def sharp(self) -> pd.Series:
        """|dC| lambda / alpha of each cluster, which the optimum keeps to as well; nan unless ``guaranteed``."""
        return self.table.loc[:, "sharp"]

    @property
    def verdict(self) -> str:
        """The consequence for the answer, in plain words."""
        if self.guaranteed:
            largest = float(self.sharp.max())
            away = f"at most {largest:.3g} away from" if math.isfinite(largest) else "at no proved distance from"
            return (
                f"The clusters are recovered: every optimum is constant on each, {away} the optimum of the cluster "
                "alone (the column sharp). Two clusters may agree."
            )
        loose, total = len(self.violating), len(self.tests)
        which = "the cluster" if total == 1 else f"{loose} of the {total} clusters"
        return (
            f"Whether {which} would be recovered is open: the condition suffices, and without it an optimum may be "
            "constant there all the same. Solve, and look at solution.clusters()."
        )

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """The graph with the sets that break (35); see `graphreg.plots.plot_recovery`."""
        return shortcut("Recovery.plot")(self, ax=ax, **options)

    def __repr__(self) -> str:
        word = "guaranteed" if self.guaranteed else "not guaranteed"
        return f"<Recovery: {len(self.tests)} clusters, strength {self.strength:.6g}, {word}>"

    def _lines(self) -> list[str | PrintedTable]:
        total, loose = len(self.tests), len(self.violating)
        word = f"not guaranteed ({loose} of {total} are not well-connected)" if loose else "guaranteed"
        many = f"{total} cluster{'s' if total > 1 else ''}"
        lines: list[str | PrintedTable] = [f"recovery of {many} at the strength {self.strength:.4g}: {word}"]
        if self.interval is None:
            lines.append("no strength was found at which all of them are guaranteed")
        else:
            lines.append("guaranteed for strengths between {:.4g} and {:.4g}".format(*self.interval))
        lines.append(self.verdict)
        lines.append(PrintedTable(self.table, float_format="{:.4g}".format))
        lines += [f"cluster {cluster!r}: {why}" for cluster, why in list(self.reasons.items())[:10]]
        return lines


@in_time
def recovery(problem: Any, clusters: Any, *, seconds: float | None = None) -> Recovery:
    """The guarantee that, and the strengths at which, generalised total variation recovers given clusters (GTV
    minimisation, Theorem 2), with all constants computed from the problem.

    beta_i and alpha come from the Hessians of the losses with all their scales (and a smooth node penalty, which counts
    as part of the losses), delta_i from the gradients at the optimum of the cluster's summed losses, all in the norm of
    the penalty and its dual. For quadratic losses they hold everywhere, and the interval of strengths has no upper end:
    only delta_i / lambda depends on lambda. Logistic, Poisson, Huber and squared hinge losses are strongly convex near
    their optimum only: alpha (and the beta of Poisson losses) are bounds within a ball that provably holds the optimum,
    grow worse with lambda, and give an interval that may end; its ends are found in steps of a tenth, inwards.

    A node without data has beta = delta = 0. A cluster of one node is always constant; so is, with enough weight
    inside, one without any data, or one with data at a single node. A cluster whose losses together are not strongly
    convex is not guaranteed otherwise, unless no edge leaves it.

    Parameters
    ----------
    problem : Problem
        Smooth losses, one TotalVariation with a norm (L1, L2, LInf, or your own) of all coordinates; smooth node
        penalties. Its strength lambda is the number that multiplies the TotalVariation, at the moment of the call.
    clusters : mapping, Series, sequence or Clusters
        A cluster per node label, a list of nodes per cluster, one cluster per node in node order, or
        ``solution.clusters()``. Every node must have one.
    seconds : float, optional
        A budget of time. Before its end there is nothing to give: Ctrl-C raises KeyboardInterrupt.

    Returns
    -------
    Recovery

    Raises
    ------
    MethodError
        The problem is not of this kind; with each requirement that is not met.
    GraphError
        For clusters that leave out nodes or name others (they are named).
    BudgetError
        Where the time is up.

    Examples
    --------
    >>> gr.theory.recovery(problem, {"a": 0, "b": 0, "c": 1, "d": 1}).guaranteed
    False
    """
    form = form_of(problem, "recovery")
    block = _total_variation(form)
    names, member = read_clusters(clusters, form.labels, "the clusters")
    graph = Graph(tuple(form.labels), block.tail, block.head, block.base_weight)
    losses = Clusterwise.of(form, member, len(names), block.penalty)
    parts = [ClusterPart.of(graph, member, c) for c in range(len(names))]
    lam = float(block.strength)
    now = demands(losses, parts, np.full(len(names), lam))
    demand = now.base + now.slope / lam
    intervals = _everywhere(parts, now) if losses.quadratic else _stepwise(losses, parts)
    tests = {name: examine(part.graph, demand[part.nodes]) for name, part in zip(names, parts, strict=True)}
    ends = np.array([end or (np.nan, np.nan) for end in intervals])
    low, high = ends[:, 0].max(), ends[:, 1].min()
    interval = (float(low), float(high)) if low < high else None
    reasons = {name: _why(test, losses, c) for c, (name, test) in enumerate(tests.items()) if not test.holds}
    table = _table(tests, parts, now, demand, losses.delta, ends)
    owner = {label: names[c] for label, c in zip(form.labels, member, strict=True)}
    centers = by_label(losses.optimum[0], names, form.space.names, "cluster")
    return Recovery(table, lam, interval, tests, reasons, centers, owner, graph, assumed=_assumed(losses, block))


def _total_variation(form: Form) -> EdgeBlock:
    """The edges between nodes; all that the theorem does not speak of is refused."""
    between = form.between
    rows = dict.fromkeys(edge.name for edge in form.unlike_edges)
    missing = [f"it is about differences across edges, and {name} has other rows" for name in rows]
    missing += [s.removesuffix(STEPPING) for s in without_gradient(form)]
    missing += [
        f"the curvature of {b.loss.called()} has no bound"
        for b in form.samples
        if isinstance(b.loss, AbstractSmoothLoss) and not np.isfinite(b.loss.smoothness()) and not tells_curvature(b)
    ]
    if form.latent:
        missing.append("the model has latent nodes (a Hierarchy), of which the theorem does not speak")
    if len(between) != 1:
        missing.append(f"it needs exactly one TotalVariation, and the model has {len(between)} terms between nodes")
    for edge in between:
        if not is_norm(edge.penalty, form.width(edge)):
            missing.append(f"{edge.name} is no norm; the theorem is about L2, L1 and other norms")
        if edge.features is not None and len(edge.features) < form.d:
            missing.append(f"{edge.name} acts on some features only, and the theorem is about all of them")
    if missing:
        raise MethodError(f"Theorem 2 does not apply: {'; '.join(missing)}", tuple(missing))
    return between[0]


def _why(test: WellConnected, losses: Clusterwise, c: int) -> str:
    if len(test.parts) == 1 and not math.isfinite(test.demand):
        return (
            "its summed losses are not strongly convex where the optimum may lie (alpha = 0), so that nothing bounds "
            "how far it moves; give its nodes more samples, drop features, add a ridge, or lower the strength"
            if np.isfinite(losses.optimum[1][c])
            else "no optimum of its summed losses was found; add a ridge, as 1e-3 * gr.SquaredL2()(gr.w)"
        )
    return test.sentence()


def _table(
    tests: dict[Hashable, WellConnected],
    parts: list[ClusterPart],
    now: Demands,
    demand: Array,
    delta: Array,
    ends: Array,
) -> Any:
    sure = all(test.holds for test in tests.values())
    rows = [
        {
            "nodes": len(part.nodes),
            "boundary": part.boundary,
            "alpha": now.alpha[c],
            "beta": now.beta[part.nodes].max(),
            "delta": delta[part.nodes].max(),
            "demand": demand[part.nodes].max(),
            "margin": test.margin,
            "holds": test.holds,
            "source": test.source,
            "strength_from": ends[c, 0],
            "strength_to": ends[c, 1],
            "bound": 2.0 * now.distance[c] if sure else np.nan,
            "sharp": now.distance[c] if sure else np.nan,
        }
        for c, (part, test) in enumerate(zip(parts, tests.values(), strict=True))
    ]
    index = pd.Index(list(tests), dtype=object, name="cluster", tupleize_cols=False)
    return Table.of(pd.DataFrame(rows, index=index), "Theorem 2, cluster by cluster", ())


def _assumed(losses: Clusterwise, block: EdgeBlock) -> tuple[str, ...]:
    d = losses.form.d
    exact = exact_on_ball(losses.norm, d, True) and exact_on_ball(losses.norm, d, False)
    if losses.quadratic:
        values = "the values of the Hessians, which are constant" if exact else "bounds of them on the safe side"
    else:
        values = "bounds of them within a ball around each cluster's optimum that provably holds the optimum"
    name, factor = type(losses.norm).__name__, block.strength.text()
    return (
        "these data and this partition: nothing is random, and nothing is said of other clusters",
        f"Theorem 2 of GTV minimisation with the penalty {name}; alpha, beta, delta in its norm and dual: {values}",
        "(35) with the demand as printed, which suffices with the sharp bound |dC| lambda / alpha",
        f"the strength is the number that multiplies the TotalVariation ({factor}); the bounds count from `centers`",
    )


# ---- demands and strengths -------------------------------------------------------------------------------------------
# With r what the gradient at wbar is left with by rounding, everything counts from the wbar that was found:
# phi(w~ - wbar) <= (lambda |dC| + r) / alpha, so that d_i = base_i + slope_i / lambda with
# base_i = out_i + beta_i |dC| / alpha and slope_i = delta_i + beta_i r / alpha.
STEP = 1.1  # from one strength to the next, where constants depend on it
CELLS = 300  # a factor of 3e12


@dataclass(frozen=True)
class ClusterPart:
    """One cluster: its own edges, the positions of its nodes, what leaves each (n_c,), and |dC|."""

    graph: Graph
    nodes: Array
    out: Array
    boundary: float

    @staticmethod
    def of(graph: Graph, member: Array, c: int) -> ClusterPart:
        """The cluster number c of a graph."""
        nodes = np.flatnonzero(member == c)
        place = np.full(graph.n_nodes, -1)
        place[nodes] = np.arange(len(nodes))
        i, j = place[graph.tail], place[graph.head]
        inside, leaves = (i >= 0) & (j >= 0), (i >= 0) != (j >= 0)
        own = Graph(tuple(graph.labels[k] for k in nodes), i[inside], j[inside], graph.weight[inside])
        out = np.bincount(np.maximum(i, j)[leaves], graph.weight[leaves], len(nodes))
        return ClusterPart(own, nodes, out, math.fsum(graph.weight[leaves]))

    @property
    def routing(self) -> CutGraph:
        return CutGraph(self.graph.n_nodes, self.graph.tail, self.graph.head, self.graph.weight)


@dataclass(frozen=True)
class Demands:
    """``base`` and ``slope`` (n,) of the demands, with alpha (k,), beta (n,) and (|dC| lambda + r) / alpha, (k,)."""

    base: Array
    slope: Array
    alpha: Array
    beta: Array
    distance: Array


def demands(losses: Clusterwise, parts: list[ClusterPart], lam: Array) -> Demands:
    """The demands with constants that hold at the strengths lam (k,), one per cluster, and at all below."""
    boundary = np.array([part.boundary for part in parts])
    out = np.zeros(losses.form.n)
    for part in parts:
        out[part.nodes] = part.out
    left = losses.optimum[1]
    most = lam * boundary + left
    constants = losses.constants(np.where(boundary > 0, most, 0.0))
    alpha, beta, member = constants.alpha, constants.beta, losses.member
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch, rest = boundary / alpha, np.where(boundary + alpha > 0, left / alpha, 0.0)
        distance = np.where(alpha > 0, most / alpha, np.inf)
    return Demands(
        out + _times(beta, np.where(boundary > 0, stretch, 0.0)[member]),
        losses.delta + _times(beta, np.where(np.isfinite(rest), rest, 0.0)[member]),  # where it is inf so is base
        alpha,
        beta,
        distance,
    )


def _times(beta: Array, values: Array) -> Array:
    """beta * values, 0 where either is 0 and the other infinite: a node without data does not care."""
    both = (beta > 0) & (values > 0)
    return np.where(both, np.where(both, beta, 0.0) * np.where(both, values, 1.0), 0.0)


def _everywhere(parts: list[ClusterPart], at: Demands) -> list[tuple[float, float] | None]:
    """The strengths where the constants do not depend on lambda: from 1/t on, t the largest for which base + t slope is
    routed."""
    return [(1.0 / t, math.inf) if t > 0 else None for t in (_multiple(part, at) for part in parts)]


def _multiple(part: ClusterPart, at: Demands) -> float:
    """1/lambda at its largest; 0 or less where there is none."""
    base, slope = at.base[part.nodes], at.slope[part.nodes]
    base = np.where(np.isfinite(slope), base, np.inf)
    return largest_multiple(part.routing, base, np.where(np.isfinite(slope), slope, 0.0)).t


def _stepwise(losses: Clusterwise, parts: list[ClusterPart]) -> list[tuple[float, float] | None]:
    """The strengths where the constants grow worse with lambda: with c(lambda) the least strength that constants c
    allow is nondecreasing, so that lambda <- least(c(lambda)) climbs from 0 to the least strength that is guaranteed
    by its own constants. From there, cells [a, b]: constants at b with delta / a guarantee every strength between."""
    k = len(parts)
    low, done = np.zeros(k), np.zeros(k, dtype=bool)
    for _ in range(60):
        at = demands(losses, parts, low)
        t = np.array([_multiple(part, at) if low[c] < math.inf else 0.0 for c, part in enumerate(parts)])
        new = np.where(t > 0, 1.0 / np.where(t > 0, t, 1.0), math.inf)
        done = ~(new > 1.001 * low)
        low = np.maximum(low, new)
        if (done | np.isinf(low)).all():
            break
    low = np.where(done, low, math.inf)
    free = np.array([part.boundary == 0 or len(part.nodes) == 1 for part in parts]) & np.isfinite(low)
    return _cells(losses, parts, low, free)


def _cells(losses: Clusterwise, parts: list[ClusterPart], low: Array, free: Array) -> list[tuple[float, float] | None]:
    """The first run of cells that are guaranteed; ``free`` clusters have constants that do not depend on lambda."""
    out: list[tuple[float, float] | None] = [
        (a, math.inf) if f else None for a, f in zip(low.tolist(), free, strict=True)
    ]
    live, sink = np.isfinite(low) & ~free, np.zeros(len(parts), dtype=int)
    zero = losses.norm.gauge_at_zero(NodeGradients(losses.form).full(np.zeros(losses.form.shape)))
    scale = float(zero.max()) / max(*(part.boundary for part in parts), 1e-300)  # of a strength that moves anything
    first = np.maximum(low, 1e-6 * scale)  # lower ones hardly matter
    for step in range(CELLS):
        if not live.any():
            break
        a, b = first * STEP**step, first * STEP ** (step + 1)
        at = demands(losses, parts, np.where(live, b, 0.0))
        for c in np.flatnonzero(live):
            part, had = parts[c], out[c]
            demand = at.base[part.nodes] + at.slope[part.nodes] / a[c]
            good, sink[c] = _routable(part.routing, demand, int(sink[c]))
            if good:
                out[c] = (float(a[c]) if had is None else had[0], float(b[c]))
            elif had is not None:
                live[c] = False
    return out


def _routable(routing: CutGraph, demand: Array, hint: int) -> tuple[bool, int]:
    """The answer to whether the demands are strictly routable to some node; that of the last time is tried first."""
    if np.isfinite(demand).all() and routing.route(hint, demand, strictly=True)[0]:
        return True, hint
    found = largest_multiple(routing, demand, np.zeros(routing.n))
    return found.t > 0, found.sink
