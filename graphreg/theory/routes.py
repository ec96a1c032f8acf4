"""Flows of least load along the edges of a network, and directions that prove it.

    min over flows u with K'u = -r of max_e ||u_e||_* / A_e  =  max over w of -<r, w> / sum_e A_e phi((Kw)_e)

On trees in closed form. Else electrical flows are levelled, by conductances that fall where loads are large, and a
conic programme settles the rest, on a graph in which nodes far from busy edges are merged: a direction that is constant
on merged nodes is a direction, so its bound holds; and where the loads within merged nodes are no larger than it, it is
the value. Else the ends of the edges on which they are larger are given free, and so on: few edges bind as a rule.
Where a penalty has no form in CVXPY there is no such programme, and the bounds are those of the levelled flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..base.clock import alarm, cut_short, needed
from ..base.display import Brief
from ..compiling import Links, steepest
from ..form import EdgeBlock
from ..terms import Array
from ..terms.penalties import AbstractNorm, AbstractPenalty
from .network import Flows, Network, slope_at_zero
from .varied import homogeneous

POWER = 24.0  # of the norm of all loads that levelling lessens
LEVELS = 15  # steps of levelling
LEAST = 0.3  # of the largest load: smaller ones count as so much, or conductances would differ too much
IMBALANCE = 1e-11  # of the largest demand, which may be left of K'u = -r
BUSY = 0.9  # of the upper bound: the load from which the ends of an edge are given free
CLOSE = 1e-8  # relative distance of the bounds at which they are left, where no other is asked for
NEAR = 2.0**-20  # of the sizes that the conic programme sees
ROUNDS = 12  # of the conic programme; in the last no nodes are merged
FEW, TRIED = 20_000, 2  # edges up to which a linear programme is solved whole after so many rounds of merging


@dataclass(frozen=True, eq=False, repr=False)
class Routes(Brief):
    """Flows with K'u = -r, directions, and what they show of each component.

    Attributes
    ----------
    flows : tuple of (m, k) arrays
    direction : (n, d)
        sum_e A_e phi((Kw)_e) = 1 over every component with edges and demands.
    upper, lower : (components,)
        max_e ||u_e||_* / A_e, and -<r, w>.
    how : sequence of str
    ended : str
        What cut it short, "interrupted" or "out of time": the bounds of some components are then further apart.
    loose : str
        Why the bounds of components with cycles are those of levelled flows, as a sentence; empty where they are not.
    """

    flows: Flows
    direction: Array
    upper: Array
    lower: Array
    how: Sequence[str] = ()
    ended: str = ""
    loose: str = ""


def route(network: Network, r: Array, close: float = CLOSE) -> Routes:
    """The flows of least load per component, and the directions that prove it; until the bounds are within ``close`` of
    each other, relative to the upper one."""
    found = Best(network, r)
    with needed("the strength at which all nodes agree"):
        flows = network.along_forest(r)
        found.offer(flows, _cut(network, flows))
    cyclic = ~network.acyclic & (found.known.upper > 0)
    with cut_short() as ended:
        if cyclic.any():
            parts = _by_coordinate(network)
            with alarm():
                if parts is None:
                    _settle(network, r, found, cyclic, np.zeros(len(cyclic)), close)
                else:
                    _offer_coordinates(network, r, found, parts, close)
    return found.routes(cyclic, "".join(ended))


def _by_coordinate(network: Network) -> list[Network] | None:
    """One network per coordinate, where all norms are the l1 norm, and there are several coordinates; else None."""
    n, d = network.shape
    if d == 1 or not all(b.penalty.pieces(len(c)) == 1 for b, c in zip(network.blocks, network.columns, strict=True)):
        return None
    parts: list[tuple[list[EdgeBlock], list[Array]]] = [([], []) for _ in range(d)]
    for block, A, columns in zip(network.blocks, network.weights, network.columns, strict=True):
        for j in columns:
            parts[j][0].append(replace(block, map=block.map.changed(features=None)))
            parts[j][1].append(A)
    return [Network(tuple(blocks), tuple(weights), (n, 1)) for blocks, weights in parts]


def _offer_coordinates(network: Network, r: Array, found: Best, parts: list[Network], close: float) -> None:
    """Offers flows and directions that were found for each coordinate by itself; those that cannot be the most loaded
    are left as they are."""
    flows = network.nothing()
    for j, part in enumerate(parts):
        if not part.blocks:
            continue
        own = Best(part, r[:, [j]])
        own.offer(part.along_forest(own.r), np.zeros(part.shape))
        first = np.unique(part.component, return_index=True)[1]
        cyclic = ~part.acyclic & (own.known.upper > 0)
        _settle(part, own.r, own, cyclic, found.known.lower[network.component[first]], close)
        w = np.zeros(network.shape)
        most = np.zeros(network.n_components)
        lower = own.known.lower[part.component]
        np.maximum.at(most, network.component, lower)
        w[:, [j]] = np.where((lower == most[network.component])[:, None], own.known.direction, 0.0)
        found.offer(found.known.flows, w)
        given = iter(own.known.flows)
        for u, columns in zip(flows, network.columns, strict=True):
            if j in columns:
                u[:, columns == j] = next(given)
    found.offer(flows, np.zeros(network.shape))


def _settle(network: Network, r: Array, found: Best, cyclic: Array, floor: Array, close: float) -> None:
    """Offers flows and directions until the bounds of the components that are no trees are close, or the upper one lies
    below ``floor``."""
    for flows, w in _level(network, r):
        found.offer(network.conserved(flows, r), w)
    if not _unwritten(network):
        _refine(network, r, found, cyclic, floor, close)


def _unwritten(network: Network) -> str:
    """The penalties of which no conic programme can be made, by name; empty where one can."""
    return ", ".join(dict.fromkeys(b.penalty.called() for b in network.blocks if b.penalty.unwritten()))


class Best:
    """The best flows and directions that were offered, component by component."""

    def __init__(self, network: Network, r: Array) -> None:
        self.network, self.r = network, r
        nothing = np.full(network.n_components, np.inf), np.zeros(network.n_components)
        self.known = Routes(network.nothing(), np.zeros(network.shape), *nothing)  # before it is told how

    def offer(self, flows: Flows, w: Array) -> None:
        network = self.network
        left = np.abs(self.r + network.adjoint(flows)).max(axis=1, initial=0.0)
        size = np.abs(self.r).max(axis=1, initial=0.0)
        worst, most = np.zeros((2, network.n_components))
        np.maximum.at(worst, network.component, left)
        np.maximum.at(most, network.component, size)
        upper = np.where(worst <= IMBALANCE * most, network.largest(flows), np.inf)
        better = upper < self.known.upper
        upper = np.where(better, upper, self.known.upper)
        pairs = zip(network.where, flows, self.known.flows, strict=True)
        flows = tuple(np.where(better[where][:, None], new, old) for where, new, old in pairs)
        slope = -np.bincount(network.component, np.einsum("ij,ij->i", self.r, w), network.n_components)
        variation = network.variation(w)
        lower = np.divide(slope, variation, out=np.zeros_like(slope), where=variation > 0)
        better = lower > self.known.lower
        lower = np.where(better, lower, self.known.lower)
        size = np.where(variation > 0, variation, 1.0)[network.component][:, None]
        direction = np.where(better[network.component][:, None], w / size, self.known.direction)
        self.known = Routes(flows, direction, upper, lower)  # all at once, so that Ctrl-C finds what fits together

    def routes(self, cyclic: Array, ended: str) -> Routes:
        kinds = zip(self.network.n_edges, cyclic, self.network.acyclic, strict=True)
        unwritten = _unwritten(self.network) if cyclic.any() else ""
        cycles = ended or ("levelled flows" if unwritten else "conic")
        how = [
            "no edges" if m == 0 else cycles if hard else "closed form on a tree" if tree else "nothing flows"
            for m, hard, tree in kinds
        ]
        loose = (
            f"{unwritten} has no form in CVXPY (from_prox takes one as cvxpy=), so that no conic programme brings the "
            "bounds of components with cycles together"
        )
        loose = loose if unwritten else ""
        lower = np.minimum(self.known.lower, self.known.upper)
        return replace(self.known, lower=lower, how=how, ended=ended, loose=loose)


def _cut(network: Network, flows: Flows) -> Array:
    """For each component the direction that moves one side of its most loaded edge against the other (the sides with
    respect to the spanning forest)."""
    load, z = np.concatenate(network.loads(flows)), network.nothing()
    order = np.argsort(load, kind="stable")
    # the last one that a component has in this order is its most loaded edge
    last = dict(zip(np.concatenate(network.where)[order].tolist(), order.tolist(), strict=True))
    most_loaded = np.isin(np.arange(len(load)), list(last.values()))
    blocks = np.split(most_loaded, np.cumsum([len(u) for u in flows])[:-1])
    for block, rows, u, out in zip(network.blocks, blocks, flows, z, strict=True):
        if rows.any():
            out[rows] = norming(block.penalty, u[rows])
    return network.potentials_along_forest(z)


def norming(penalty: AbstractPenalty, u: Array) -> Array:
    """v with <u, v> = ||u||_* phi(v), for each row, to one part in a million at most.

    For p = prox(u, t) of phi, u - p is t times a subgradient at p: <u, p> = t phi(p) + ||p||^2 >= t phi(p), so that
    with t = (1 - 1e-6) ||u||_* p will do. For the usual norms one of u, sign(u) and the largest entry is exact.
    """
    rows, size = np.arange(len(u)), penalty.gauge_at_zero(u)
    largest = np.zeros_like(u)
    place = np.abs(u).argmax(axis=1)
    largest[rows, place] = np.sign(u[rows, place])
    unit = u / np.where(size > 0, size, 1.0)[:, None]
    tried = [u, np.sign(u), largest]
    tried += [penalty.prox(unit, np.full(len(u), 1.0 - share)) for share in (1e-2, 1e-4, 1e-6)]
    value = np.stack([_ratio(penalty, u, v) for v in tried])
    return np.stack(tried)[value.argmax(axis=0), rows]


def _ratio(penalty: AbstractPenalty, u: Array, v: Array) -> Array:
    value = slope_at_zero(penalty, v)
    return np.divide(np.einsum("ij,ij->i", u, v), value, out=np.zeros(len(u)), where=value > 0)


# ---- where there are cycles ------------------------------------------------------------------------------------------
def _level(network: Network, r: Array) -> list[tuple[Flows, Array]]:
    """Electrical flows with K'u = -r whose conductances are A_e^2 load_e^(2 - p), by damped steps (iteratively
    reweighted least squares: they lessen the p-norm of the loads), and the directions of their potentials."""
    z, flows = network.electrical(r)
    out = [(flows, -z)]
    if not (_unwritten(network) or all(isinstance(block.penalty, AbstractNorm) for block in network.blocks)):
        return out  # dual norms that are programmes themselves
    roots, step = network.weights, 1.5 / (POWER - 1.0)
    for _ in range(LEVELS):
        largest = np.maximum(network.largest(flows), 1e-300)
        new = list[Array]()
        for A, root, load, where in zip(network.weights, roots, network.loads(flows), network.where, strict=True):
            share = np.maximum(load / largest[where], LEAST)
            new.append(root ** (1.0 - step) * (A * share ** (1.0 - POWER / 2.0)) ** step)
        roots = tuple(new)
        z, flows = replace(network, weights=roots).electrical(r)
        out.append((flows, -z))
    return out


def _refine(network: Network, r: Array, found: Best, cyclic: Array, floor: Array, close: float) -> None:
    """Offers flows and directions of the components that are no trees until their bounds are close."""
    awake, flows = np.zeros(network.shape[0], dtype=bool), found.known.flows
    few = network.shape[1] == 1 and int(network.n_edges.sum()) <= FEW
    for k in range(ROUNDS):
        todo = _apart(found, cyclic, floor, close)
        if few and k == TRIED and todo.any():
            found.offer(*_merged(network, r, found.known.flows, todo[network.component]))
            todo = _apart(found, cyclic, floor, close)
        if not todo.any():
            return
        before = int(awake.sum())
        near = [awake[block.tail] | awake[block.head] for block in network.blocks]
        for block, rows in zip(network.blocks, near, strict=True):  # and their neighbours, by and by
            awake[block.tail[rows]] = awake[block.head[rows]] = True
        for block, load, where in zip(network.blocks, network.loads(flows), network.where, strict=True):
            busy = todo[where] & (load > BUSY * found.known.upper[where])
            awake[block.tail[busy]] = awake[block.head[busy]] = True
        if k == ROUNDS - 1 or int(awake.sum()) == before:
            awake |= todo[network.component]
        flows, w = _merged(network, r, flows, awake & todo[network.component])
        found.offer(flows, w)
        if awake[todo[network.component]].all():
            return


def _apart(found: Best, cyclic: Array, floor: Array, close: float) -> Array:
    """The components that are no trees whose bounds are not close, and whose upper one is above ``floor``."""
    return cyclic & (np.maximum(found.known.lower, floor) < (1.0 - close) * found.known.upper)


def _merged(network: Network, r: Array, flows: Flows, awake: Array) -> tuple[Flows, Array]:
    """Flows and directions from the conic programme on the graph whose other nodes are merged along their edges; what
    this changes for the flows within merged nodes is carried electrically."""
    open_ = [awake[b.tail] | awake[b.head] for b in network.blocks]
    shut = network.subset([~rows for rows in open_])
    load = np.maximum(network.largest(flows), 1e-300)
    cluster, S = shut.component, shut.merging
    links, units = list[Links](), list[Array]()
    total = np.zeros(len(load))
    for A, where, rows in zip(network.weights, network.where, open_, strict=True):
        total += np.bincount(where[rows], A[rows], len(load))
    for b, columns, A, where, e in zip(
        network.blocks, network.columns, network.weights, network.where, open_, strict=True
    ):
        units.append((load * total)[where[e]])
        K, share = sp.csr_array(b.K[e] @ S), A[e] / total[where[e]]
        links.append(Links(b.penalty, columns, K, share, where[e], near(b, len(columns))))
    unit = np.where(total > 0, load * total, np.inf)[network.component]
    demand = S.T @ (r / unit[:, None])
    used = np.unique(cluster[np.isfinite(unit)])
    links = [replace(each, K=sp.csr_array(each.K[:, used])) for each in links]
    w = np.zeros(demand.shape)
    w[used], found = steepest([each for each in links if len(each.weight)], demand[used])
    given, new = iter(found), [u.copy() for u in flows]
    for u, e, each in zip(new, open_, units, strict=True):
        if len(each):
            u[e] = each[:, None] * next(given)
    bare = [np.where(e[:, None], u, 0.0) for u, e in zip(new, open_, strict=True)]
    inner, _ = _level(shut, shut.balanced(r + network.adjoint(tuple(bare))))[-1]
    for u, e, more in zip(new, open_, inner, strict=True):
        u[~e] = more
    return network.conserved(tuple(new), r), S @ w


def near(block: EdgeBlock, k: int) -> float:
    """The distance from 0 at which a penalty is asked for its growth there: where it is homogeneous, any."""
    return 1.0 if homogeneous(block.penalty, k) else NEAR
