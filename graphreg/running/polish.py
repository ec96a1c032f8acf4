"""Polish: guess which differences vanish at the optimum, solve what is left exactly, route the flows, and let the
certificate judge.

A step in the middle of a decentralised method that is not decentralised: it sums gradients and Hessians over all
nodes, and the ledger records it as such.

Differences whose flow lies strictly inside its capacity are taken to be fused. With these tied together, w = S theta
with few unknowns theta, the objective is smooth where no other difference vanishes, and Newton's method solves it. Its
prices and the flows of the other edges follow; the flows of the fused edges carry what is left, like an electrical
network with the capacities as conductances. If they lie inside their capacities the guess was right, and the gap is
that of the Newton solve (the cluster graph of the GTV paper's proof).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..certificate import Repair, edge_system, factored
from ..form import DualPoint, EdgeBlock, Form, SampleBlock
from ..inputs import components_of
from ..network import kernels
from ..oracles import minimiser
from ..terms import Array, block_diagonal
from ..terms.losses import AbstractQuadraticLoss
from ..terms.penalties import AbstractPenalty, AbstractSmoothPenalty, row_norm

MOST = 1000  # unknowns, and at most one for FEWER entries of w
FEWER = 10
DENSE, FULL = 100_000, 0.1  # entries, or a share of them other than 0, up to which and from which on products are dense
STEPS = 30
FACTOR, ROUND = 2.3e-6, 5.5e-5  # seconds per node of a factor, and of any round
NUMBER, PLAIN = 1.6e-9, 1.2e-8  # seconds per number of a round, compiled and not
LEAST = 1e-5
CG_STEPS = 60  # where routing is hard the guess is seldom right
STRICT = 1.0 - 1e-9  # a flow below this share of its capacity is strictly inside


# ---- what flows say is fused -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Groups:
    """The number, among ``count`` values, of the one that each node belongs to, or each entry of w where they are
    not tied as a ``whole``; to 0 where it is -1."""

    number: Array
    count: int
    whole: bool

    def numbers(self, d: int) -> int:
        """The number of free numbers that w is made of."""
        return self.count * (d if self.whole else 1)

    def merged(self, w: Array) -> Array:
        """w with each entry set to the mean of its group: the differences there vanish, which iterates only tend to."""
        values = w if self.whole else w.reshape(-1, 1)
        fast = kernels() if self.number.dtype == np.int32 else None
        if fast is not None:
            return fast.group_means(self.number, self.count, values).reshape(w.shape)
        number = np.where(self.number < 0, self.count, self.number)
        sizes = np.maximum(np.bincount(number, minlength=self.count + 1), 1.0)
        out = np.empty(values.shape)
        for j in range(values.shape[1]):
            means = np.bincount(number, values[:, j], self.count + 1) / sizes
            means[self.count] = 0.0  # with the ground
            out[:, j] = means[number]
        return out.reshape(w.shape)


def groups_of_flows(form: Form, flows: tuple[Array, ...], most: int | None = None, fast: bool = False) -> Groups | None:
    """The groups of what is fused; None where more than ``most`` numbers are left. By compiled code where that is
    ``fast``, and knows all penalties."""
    n, d = form.shape
    whole = all(e.features is None and e.penalty.pieces(d) in (None, d) for e in form.edges)
    each, per = (d, 1) if whole else (1, d)  # nodes are tied as a whole, or their coordinates one by one
    compiled = kernels() if fast else None
    passes = [None] if compiled is None else [compiled.edge_passes(edge, d) for edge in form.edges]
    if compiled is not None and all(found is not None for found in passes):
        parent = np.arange(n * per + 1, dtype=np.int32)
        for found, u in zip(passes, flows, strict=True):
            if found is not None:
                found.unite(STRICT, u, parent, whole)
        number, count = compiled.group_numbers(parent)
        return None if most is not None and count * each > most else Groups(number, count, whole)
    return _joined(form, flows, whole, n * d if most is None else most, each, per)


def _joined(form: Form, flows: tuple[Array, ...], whole: bool, most: int, each: int, per: int) -> Groups | None:
    size = form.n * per
    tails, heads = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)]
    for edge, u in zip(form.edges, flows, strict=True):
        mask = inside(edge, u)
        if per == 1:
            e, j = np.flatnonzero(mask[:, 0]), 0
        else:
            e, j = np.nonzero(mask)
            j = j if edge.features is None else edge.features[j]
        tails.append(edge.tail[e] * per + j)
        heads.append(np.full(len(e), size) if edge.ground else edge.head[e] * per + j)
    t, h = np.concatenate(tails), np.concatenate(heads)
    if (size - len(t)) * each > most:  # every tie joins two at most
        return None
    count, member = components_of(t, h, size + 1)
    if (count - 1) * each > most:
        return None
    tied = np.arange(count) != member[size]  # not tied to 0 by the ground
    return Groups(np.where(tied, np.cumsum(tied) - 1, -1)[member[:size]], count - 1, whole)


def inside(edge: EdgeBlock, u: Array) -> Array:
    """A mask of the entries (m, k) that vanish at each edge: those of pieces whose flow is strictly inside."""
    p = edge.penalty.pieces(u.shape[1])
    if p is None:
        return np.zeros(u.shape, dtype=bool)
    lengths = row_norm(u.reshape(-1, p)).reshape(len(u), -1)
    return np.repeat(lengths < STRICT * edge.weight[:, None], p, axis=1)


def _vanishing(edge: EdgeBlock, w: Array) -> Array:
    """A mask of the entries (m, k) that vanish at w, by pieces, where any flow within the capacity is a subgradient."""
    z = edge.apply(w)
    p = edge.penalty.pieces(z.shape[1])
    if p is None:
        return np.zeros(z.shape, dtype=bool)
    return np.repeat((z.reshape(-1, p) == 0.0).all(axis=1).reshape(len(z), -1), p, axis=1)


# ---- the problem that is left ----------------------------------------------------------------------------------------
def applies(form: Form) -> bool:
    """True where losses are smooth, and penalties too or sums of norms."""
    return (
        form.smooth
        and not form.unlike_edges
        and all(
            e.center is None and (isinstance(e.penalty, AbstractSmoothPenalty) or e.penalty.pieces(form.width(e)))
            for e in form.edges
        )
    )


@dataclass(frozen=True)
class Guess:
    """S (n d, q) ties entries of w together; ``fused`` masks the entries (m, k) of each edge block that vanish."""

    S: sp.csr_array
    fused: tuple[Array, ...]
    cluster: Array | None  # of each node (-1: 0), where nodes are tied as a whole
    kept: dict[int, Any] = field(default_factory=dict[int, Any])  # of the factors that flows were routed by


def most_unknowns(form: Form) -> int:
    """The number of unknowns that is few enough."""
    return min(MOST, form.n * form.d // FEWER)


def guess(form: Form, found: Groups) -> Guess:
    """The groups that flows make, and the edges that are fused where their ends are in one, also where flows are at
    their capacities: these may give way, too."""
    (n, d), number = form.shape, found.number.astype(np.int64)
    if found.whole:
        number = np.where(number[:, None] >= 0, number[:, None] * d + np.arange(d), -1).ravel()
    kept = np.flatnonzero(number >= 0)
    S = sp.csr_array((np.ones(len(kept)), (kept, number[kept])), shape=(n * d, found.numbers(d)))
    fused = tuple(_vanishing(edge, (number + 1.0).reshape(n, d)) for edge in form.edges)
    return Guess(S, fused, found.number if found.whole else None)


class _Smooth:
    """The objective on theta, where the differences that are not fused do not vanish."""

    def __init__(self, form: Form, found: Guess) -> None:
        self.form, self.S, self.unknowns = form, found.S, cast(tuple[int, int], found.S.shape)[1]
        self.A = [_light(sp.csr_array(block.A @ found.S)) for block in form.samples]
        self.B: list[tuple[EdgeBlock, Array, sp.csr_array]] = []  # with weights
        for edge, fused in zip(form.edges, found.fused, strict=True):
            rows, c = np.flatnonzero(~fused.all(axis=1)), edge.weight
            if found.cluster is not None:  # one edge stands for all between the same two clusters
                heads = np.full(len(rows), -1) if edge.ground else found.cluster[edge.head[rows]]
                ends = np.sort(np.stack([found.cluster[edge.tail[rows]], heads]), axis=0)
                _, first, place = np.unique(ends, axis=1, return_index=True, return_inverse=True)
                total = np.bincount(place.ravel(), c[rows])
                rows = rows[first]
            else:
                total = c[rows]
            self.B.append((edge, total, sp.csr_array(edge.part(rows).flat(form.d) @ found.S)))

    def w(self, theta: Array) -> Array:
        return (self.S @ theta).reshape(self.form.shape)

    def slope(self, theta: Array) -> Array:
        w = self.w(theta)
        g = np.zeros(len(theta))
        for block, A in zip(self.form.samples, self.A, strict=True):
            g += A.T @ block.prices(w).ravel()
        for edge, c, B in self.B:
            g += B.T @ _gradient(edge.penalty, c, (B @ theta).reshape(len(c), self.form.width(edge))).ravel()
        return g

    @cached_property
    def _quadratic(self) -> Array:
        """The Hessian of the quadratic losses, which is the same everywhere."""
        H, w = np.zeros((self.unknowns, self.unknowns)), np.zeros(self.form.shape)
        for block, A in zip(self.form.samples, self.A, strict=True):
            if isinstance(block.loss, AbstractQuadraticLoss):
                H += _curved(block, A, w)
        return H

    def hessian(self, theta: Array) -> Array:
        H, w = self._quadratic.copy(), self.w(theta)
        for block, A in zip(self.form.samples, self.A, strict=True):
            if not isinstance(block.loss, AbstractQuadraticLoss):
                H += _curved(block, A, w)
        for edge, c, B in self.B:
            width = self.form.width(edge)
            if len(c) and edge.penalty.pieces(width) != 1:
                H += (B.T @ (_curvature(edge.penalty, c, (B @ theta).reshape(len(c), width)) @ B)).toarray()
        return H


def _curved(block: SampleBlock, A: Array | sp.csr_array, w: Array) -> Array:
    """A' h A with the curvatures h of a block at w."""
    h = block.curvatures(w)
    if h.ndim == 3:  # a matrix per sample
        return _dense(A.T @ (block_diagonal(h) @ A))
    if isinstance(A, np.ndarray):
        return A.T @ (h.ravel()[:, None] * A)
    return (A.T @ sp.diags_array(h.ravel()) @ A).toarray()


def _dense(A: Any) -> Array:
    return A if isinstance(A, np.ndarray) else A.toarray()


def _light(A: Any) -> Array | sp.csr_array:
    entries = A.shape[0] * A.shape[1]
    return A.toarray() if entries <= DENSE or A.nnz >= FULL * entries else A


def _gradient(penalty: AbstractPenalty, c: Array, z: Array) -> Array:
    """The gradient of c phi at rows whose pieces do not vanish."""
    if isinstance(penalty, AbstractSmoothPenalty):
        return c[:, None] * penalty.gradient(z)
    p = cast(int, penalty.pieces(z.shape[1]))
    if p == 1:
        return c[:, None] * np.sign(z)
    y = z.reshape(-1, p)
    flat = np.repeat(c, z.shape[1] // p)[:, None] * y / np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1e-300)
    return flat.reshape(z.shape)


def _curvature(penalty: AbstractPenalty, c: Array, z: Array) -> sp.bsr_array:
    """The Hessian of the same."""
    if isinstance(penalty, AbstractSmoothPenalty):
        h = penalty.curvature(z)
        blocks = h if h.ndim == 3 else h[:, :, None] * np.eye(z.shape[1])
    else:
        p = cast(int, penalty.pieces(z.shape[1]))
        y = z.reshape(-1, p)
        size = np.maximum(np.linalg.norm(y, axis=1), 1e-300)
        unit = y / size[:, None]
        blocks = np.eye(p) - unit[:, :, None] * unit[:, None, :]
        c = np.repeat(c, z.shape[1] // p) / size
    return block_diagonal(c[:, None, None] * blocks)


def contracted(form: Form, w: Array, found: Guess) -> tuple[Array | None, int]:
    """The minimiser of the contracted problem, None where Newton's method broke off; and how often it summed over all
    nodes."""
    theta, sums = _newton(form, _Smooth(form, found), found, w)
    return None if theta is None else (found.S @ theta).reshape(form.shape), sums


def _newton(form: Form, smooth: _Smooth, found: Guess, w: Array) -> tuple[Array | None, int]:
    count = np.asarray(found.S.sum(axis=0)).ravel()
    theta = (found.S.T @ w.ravel()) / np.maximum(count, 1.0)
    if not len(theta):
        return theta, 0

    def step(theta: Array) -> tuple[Array, float]:
        g, H = smooth.slope(theta), smooth.hessian(theta)
        H[np.diag_indices_from(H)] += 1e-13 * np.trace(H) / max(len(H), 1) + 1e-300
        try:
            move = cho_solve(cho_factor(H), g)
        except LinAlgError:
            return g, np.nan
        return move, float(g @ move)

    theta, reached, sums = minimiser(
        lambda theta: form.primal(smooth.w(theta)), step, theta, settled=1e-14, shortest=1e-3, steps=STEPS
    )
    return theta if reached else None, sums


def worth_routing(form: Form, k: int) -> bool:
    """True where a factor takes no longer than k rounds. Only ratios play a part."""
    (n, d), each = form.shape, PLAIN if kernels() is None else NUMBER
    return not factored(form) or FACTOR * n <= k * (ROUND + each * (n * d + form.differences))


def routed(repair: Repair, found: Guess, w: Array, flows: tuple[Array, ...]) -> DualPoint:
    """Gradients where differences do not vanish; what these and the flows given elsewhere leave flows through the fused
    edges, as through resistors: those with more room carry more of it."""
    form = repair.form
    taken: list[Array] = []
    conductances: list[Array] = []
    for edge, fused, u in zip(form.edges, found.fused, flows, strict=True):
        taken.append(edge.clip(np.where(fused, u, _gradient(edge.penalty, edge.weight, edge.apply(w)))))
        c = edge.weight[:, None]
        readiness = c * np.maximum(edge.penalty.domain.share(taken[-1] / c), LEAST)
        where = fused if readiness.shape[1] > 1 or found.cluster is None else fused[:, :1]
        conductances.append(np.where(where, readiness, 0.0))
    point = DualPoint(tuple(taken), form.gradient_prices(w))
    z, iterations = edge_system(form, tuple(conductances), found.kept).solve(form.conservation(point), 1e-13, CG_STEPS)
    repair.exchanges += iterations + 1
    moved = [u - C * edge.apply(z) for edge, u, C in zip(form.edges, taken, conductances, strict=True)]
    return DualPoint(tuple(moved), point.prices)
