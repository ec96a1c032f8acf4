"""General rows: functions of any rows of w, drawn at random or planted, and how their bounds are proved.

Second and third differences along chains, rows of a graph's Laplacian, maps of both ends of an edge, hyperedges of two
to four nodes; up to three losses at a node, centres, nodes without samples. Points come from the duals of a naive CVXPY
model; `row_bounds` proposes how what is left would be taken up, and the kernel verifies.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import scipy.sparse as sp

import graphreg as gr
from graphreg.datasets.plain import Array, PlainEdge, PlainProblem, PlainSamples
from graphreg.form import Form
from graphreg.terms import EdgeBlock, Matrix, Strength
from graphreg.terms.records import IN_ROWS

from .exact import Bounds, ExactEdge, ExactProblem, exact, penalty
from .families import LOSSES
from .kkt import optimal, subgradient
from .planted import ATTEMPTS, Draw, InexactError, floats
from .reals import ZERO, rational, rationals
from .reference import loss_of, penalty_of

KINDS = ("second differences", "third differences", "Laplacian", "maps", "hyperedges")
PENALTIES = ("L1", "L2", "LInf", "SquaredL2", "HuberNorm")
RANDOM = ("squared", "huber", "quantile", "logistic")
NODES = 40
NOTHING = Fraction(0)
COORDINATES = 120


@dataclass(frozen=True)
class Block:
    """``weight_e phi((K w)_e - center_e)``, k rows of K for each e."""

    kind: str  # of phi
    K: sp.csr_array
    weight: Array
    center: Array  # (m, k)
    parameter: float | None = None

    @property
    def k(self) -> int:
        return self.center.shape[1]

    @property
    def phi(self) -> Any:
        return getattr(gr, self.kind)(*([] if self.parameter is None else [self.parameter]))


@dataclass(frozen=True)
class Drawn:
    """Samples by node and family, and a block of rows; the optimum, prices and flows where they were planted."""

    seed: int
    what: str
    n: int
    d: int
    parts: tuple[PlainSamples, ...]
    block: Block
    optimum: Array | None = None
    prices: dict[Hashable, Array] | None = None
    flows: Array | None = None

    @cached_property
    def families(self) -> list[str]:
        return list(dict.fromkeys(part.family for part in self.parts))

    @cached_property
    def plain(self) -> PlainProblem:
        """The samples alone."""
        return PlainProblem(tuple(range(self.n)), self.d, self.parts, (), np.zeros(self.d), np.ones(self.d))

    @cached_property
    def stacked(self) -> list[PlainSamples]:
        """All samples of each family, as if of one node."""
        out = []
        for family in self.families:
            mine = [part for part in self.parts if part.family == family]
            X, y, scale, offset = (
                np.concatenate([getattr(part, x) for part in mine]) for x in ("X", "y", "scale", "offset")
            )
            out.append(PlainSamples(None, family, X, y, scale, offset, mine[0].delta))
        return out

    @cached_property
    def form(self) -> Form:
        """The samples and rows as the library stores them: to the last bit as they were given."""
        blocks = []
        chain = gr.TotalVariation(nx.path_graph(self.n), gr.L1())
        for whole in self.stacked:
            node = [part.node for part in self.parts if part.family == whole.family for _ in part.y]
            offset = whole.offset if whole.offset.any() else None
            data = gr.NodeData.from_arrays(whole.X, whole.y, node, weights=whole.scale, offset=offset)
            more = {"delta": whole.delta} if whole.family == "huber" else {}
            form = gr.Problem(LOSSES[whole.family](data, scale="sum", **more) + chain).form
            (block,) = form.samples
            pairs = (block.X, whole.X), (block.y, whole.y), (block.scale, whole.scale), (block.offset, whole.offset)
            if form.labels != tuple(range(self.n)) or not all(np.array_equal(a, b) for a, b in pairs):
                raise AssertionError(f"seed {self.seed}: samples are stored otherwise")
            blocks.append(block)
        own = self.block
        center = own.center if own.center.any() else None
        edge = EdgeBlock(own.phi, Strength(), Matrix(own.K, own.k, self.n), own.weight, center, IN_ROWS, "rows")
        return Form(form.space, (), tuple(blocks), (edge,))

    @cached_property
    def functions(self) -> list[ExactEdge]:
        """Each function of rows, with its parameters as rational numbers."""
        b, k = self.block, self.block.k
        parameter = None if b.parameter is None else rational(b.parameter)
        each = zip(b.weight.tolist(), b.center, strict=True)
        return [ExactEdge(0, -1, b.kind, rational(c), list(range(k)), rationals(t), parameter) for c, t in each]

    @cached_property
    def K(self) -> list[list[tuple[int, Any]]]:  # noqa: N802  (a matrix)
        K = self.block.K
        ends = zip(K.indptr[:-1], K.indptr[1:], strict=True)
        return [list(zip(K.indices[a:b].tolist(), rationals(K.data[a:b]), strict=True)) for a, b in ends]

    @cached_property
    def samples(self) -> ExactProblem:
        return exact(self.plain)

    def rows(self, w: Any) -> list[list[Any]]:
        """The arguments of the functions of rows, exactly."""
        flat = [v for row in rationals(w) for v in row]
        z = [sum((v * flat[i] for i, v in row), ZERO) for row in self.K]
        k = self.block.k
        return [[z[e * k + c] - t for c, t in enumerate(one.center)] for e, one in enumerate(self.functions)]

    def at(self, w: Any) -> Bounds:
        """P at w, exactly."""
        own = self.samples.at(w)
        low, high = own.lower, own.upper
        for one, z in zip(self.functions, self.rows(w), strict=True):
            value = penalty(one, z)
            if value is None:
                return Bounds(None, None)
            low = low + one.weight * value[0]
            high = None if high is None or value[1] is None else high + one.weight * value[1]
        return Bounds(low, high)


# ---- a point ---------------------------------------------------------------------------------------------------------
def asked(drawn: Drawn) -> tuple[Array, Array] | None:
    """Clarabel's parameters (n, d), and its prices and flows in the order of the variables of a `System`."""
    w, block = cp.Variable(drawn.n * drawn.d), drawn.block
    value, equal = [], []
    for whole, own in zip(drawn.stacked, drawn.form.samples, strict=True):
        predictor = cp.Variable(len(whole.y))
        alone = replace(whole, X=np.eye(len(whole.y)), offset=np.zeros(len(whole.y)))
        wide = sp.csr_array(_wide(whole.X, own.node, drawn.n, drawn.d))
        value.append(loss_of(alone, predictor, np.ones(len(whole.y)), 1.0))
        equal.append(predictor == wide @ w + whole.offset)
    z = cp.Variable(block.K.shape[0])
    equal.append(z == block.K @ w - block.center.ravel())
    for e, c in enumerate(block.weight.tolist()):
        one = PlainEdge(0, None, block.kind, c, np.arange(block.k), np.zeros(block.k), block.parameter)
        value.append(c * penalty_of(one, z[e * block.k : (e + 1) * block.k], 1.0)[0])
    problem = cp.Problem(cp.Minimize(sum(value)), equal)
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.error.SolverError:
        return None
    if w.value is None or any(e.dual_value is None for e in equal):
        return None
    return w.value.reshape(drawn.n, drawn.d), -np.concatenate([np.ravel(e.dual_value) for e in equal])


def _wide(X: Array, node: Array, n: int, d: int) -> Array:
    out = np.zeros((len(X), n * d))
    for row, x, i in zip(out, X, node.tolist(), strict=True):
        row[i * d : (i + 1) * d] = x
    return out


# ---- what is drawn ---------------------------------------------------------------------------------------------------
def random_rows(seed: int) -> Drawn:
    """Samples of up to three losses at a node, and rows, all at random."""
    rng = np.random.default_rng([seed, 20])
    n, d = int(rng.integers(5, NODES + 1)), int(rng.integers(1, 4))
    families = rng.choice(RANDOM, size=int(rng.integers(1, 4)), replace=False).tolist()
    what, kind = str(rng.choice(KINDS)), str(rng.choice(PENALTIES))
    truth = np.cumsum(rng.standard_normal((n, d)) * (rng.random((n, 1)) < 0.3), axis=0)
    parts = []
    for family in families:
        for i in range(n):
            m = 0 if i and rng.random() < 0.25 else int(rng.integers(1, 2 * d + 2))
            if m:
                X = rng.standard_normal((m, d))
                y = X @ truth[i] + 0.3 * rng.standard_normal(m)
                y = np.where(y + rng.standard_normal(m) > 0, 1.0, -1.0) if family == "logistic" else y
                parts.append(PlainSamples(i, family, X, y, 10.0 ** rng.uniform(-1, 1, m), np.zeros(m)))
    K, k = matrix(rng, what, n, d, rng.standard_normal)
    m = K.shape[0] // k
    center = rng.standard_normal((m, k)) if rng.random() < 0.3 else np.zeros((m, k))
    parameter = float(10.0 ** rng.uniform(-1, 1)) if kind == "HuberNorm" else None
    weight = 10.0 ** rng.uniform(-1.5, 1) * 10.0 ** rng.uniform(-0.5, 0.5, m)
    return Drawn(seed, what, n, d, tuple(parts), Block(kind, K, weight, center, parameter))


def planted_rows(seed: int) -> Drawn:
    """Rows of small whole numbers, and samples that ask for an optimum that is known exactly."""
    for attempt in count():
        try:
            return _planted(seed, attempt)
        except InexactError:
            if attempt > ATTEMPTS:
                raise
    raise AssertionError


def _planted(seed: int, attempt: int) -> Drawn:
    draw = Draw(seed, attempt, NODES)
    rng = draw.rng
    draw.n = int(rng.integers(5, min(NODES, COORDINATES // draw.p) + 1))
    draw.family = [str(f) for f in rng.choice(draw.family, size=draw.n)]
    draw.kind = kind = str(rng.choice(PENALTIES))
    what = str(rng.choice(KINDS))
    K, k = matrix(rng, what, draw.n, draw.p, lambda shape: rng.integers(-2, 3, size=shape).astype(float))
    w = draw.parameters([], set())
    flat = [v for row in w for v in row]
    m, wide = K.shape[0] // k, 20 if "wild weights" in draw.traits else 2
    weight = 2.0 ** rng.integers(-wide, wide + 1, size=m)
    draw.left = [[NOTHING] * draw.p for _ in range(draw.n)]
    centers, flows = [], []
    for e in range(m):
        z = [NOTHING] * k
        if rng.random() < 0.5:
            z[int(rng.integers(k))] = Fraction(int(rng.integers(-8, 9)), 4)
        u = [Fraction(float(weight[e])) * v for v in draw.subgradient(z)]
        for c in range(k):
            row = range(K.indptr[e * k + c], K.indptr[e * k + c + 1])
            entries = [(int(K.indices[t]), Fraction(float(K.data[t]))) for t in row]
            centers.append(sum((v * flat[i] for i, v in entries), NOTHING) - z[c])
            for i, v in entries:
                draw.left[i // draw.p][i % draw.p] += v * u[c]
        flows += u
    for i in range(draw.n):
        draw.samples(i, w[i], True)
    rows, prices = draw.written()
    parts = tuple(PlainSamples(i, r.family, r.X, r.y, r.weights, r.offsets, 4.0) for i, r in rows.items() if len(r.y))
    block = Block(kind, K, weight, floats(centers).reshape(m, k), draw.parameter)
    found = Drawn(seed, f"planted {what}", draw.n, draw.p, parts, block, floats(flat).reshape(draw.n, draw.p))
    return replace(found, prices=prices, flows=floats(flows).reshape(m, k))


def matrix(
    rng: np.random.Generator, what: str, n: int, d: int, entries: Callable[[Any], Array]
) -> tuple[sp.csr_array, int]:
    """K and how many of its rows belong to one function."""
    eye = np.eye(d)
    if what in ("second differences", "third differences", "Laplacian"):
        D = np.eye(n)
        for _ in range({"second differences": 2, "third differences": 3}.get(what, 0)):
            D = np.diff(D, axis=0)
        if what == "Laplacian":
            graph = nx.gnm_random_graph(n, 2 * n, seed=int(rng.integers(1 << 30)))
            D = nx.laplacian_matrix(graph).toarray().astype(float)
            D = D[D.any(axis=1)]
        return sp.csr_array(np.kron(D, eye)), d
    k = int(rng.integers(1, d + 1)) if what == "maps" else d
    rows = np.zeros((n, k, n, d))
    for e in range(n):
        many = 2 if what == "maps" else int(rng.integers(2, 5))
        for i in rng.choice(n, size=min(many, n), replace=False).tolist():
            some = entries((k, d))
            rows[e, :, i] = some if what == "maps" else eye * (entries(1)[0] or 1.0)
    rows = rows.reshape(n, k, n * d)
    rows = rows[rows.any(axis=2).all(axis=1)]
    return sp.csr_array(rows.reshape(-1, n * d)), k


def proves(drawn: Drawn) -> bool:
    """True where the planted prices and flows prove the planted optimum, exactly."""
    flows = rationals(drawn.flows)
    pairs = zip(drawn.functions, drawn.rows(drawn.optimum), flows, strict=True)
    if not all(subgradient(one, z, [v / one.weight for v in u]) for one, z, u in pairs):
        return False
    pulled = [[ZERO] * drawn.d for _ in range(drawn.n)]
    for entries, u in zip(drawn.K, [v for each in flows for v in each], strict=True):
        for i, v in entries:
            pulled[i // drawn.d][i % drawn.d] = pulled[i // drawn.d][i % drawn.d] + v * u
    prices = [(drawn.prices or {})[part.node] for part in drawn.parts]
    return optimal(drawn.samples, drawn.optimum, prices, [], pulled)
