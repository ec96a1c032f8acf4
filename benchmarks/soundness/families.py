"""Families of problems that are drawn where bounds were false or may be: each by its seed, as model and plain numbers.

``singular``: quadratic forms of less than full rank, between nodes or on them, and nodes with fewer independent samples
than columns. ``absorbed``: chains and trees whose values are sums of one large number and many of half its last bit.
Penalties that are not even are in `uneven`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np

import graphreg as gr
from benchmarks.wild import WildProblem
from graphreg.datasets.plain import Array, PlainEdge, PlainProblem, PlainSamples

LOSSES = {
    "squared": gr.SquaredLoss,
    "logistic": gr.LogisticLoss,
    "huber": gr.HuberLoss,
    "quantile": gr.QuantileLoss,
    "hinge": gr.HingeLoss,
    "squared hinge": gr.SquaredHingeLoss,
    "poisson": gr.PoissonLoss,
}
DECADES = (0.0, 0.5, 3.0, 8.0, 12.0)  # of column scales, on each side of 1
HALF_A_BIT = 2.0**-53

Ends = Sequence[tuple[Hashable, Hashable | None, float]]  # tail, head (None: the ground), weight


@dataclass(frozen=True)
class Rows:
    """The samples of one node, of the family of the draft unless they have one."""

    X: Array
    y: Array
    weights: Array
    family: str = ""
    offset: Array | None = None

    @property
    def offsets(self) -> Array:
        return np.zeros(len(self.y)) if self.offset is None else self.offset


@dataclass(frozen=True)
class Term:
    """A penalty on edges: its kind, what the library and the plain numbers have as its parameter, strength and ends."""

    kind: str
    strength: float
    ends: Ends
    parameter: Any = None
    tree: Any = None  # the clusters of a hierarchy and the weights of its levels
    centers: Mapping[Hashable, Array] | None = None  # of ends on the ground

    def penalty(self) -> Any:
        R = self.parameter
        if self.kind == "AnalysisL1":
            return gr.Penalty.from_cvxpy(lambda z: cp.norm1(R @ z))
        value = R.T @ R if self.kind == "Quadratic" else R
        return getattr(gr, self.kind)(*([] if value is None else [value]))

    def model(self) -> Any:
        penalty = self.penalty()
        if self.tree is not None:
            return self.strength * gr.Hierarchy(*self.tree, penalty)
        if self.kind == "NonNegative":
            return gr.NodePenalty(penalty)
        if self.ends[0][1] is None:
            return self.strength * gr.NodePenalty(
                penalty, {tail: weight for tail, _, weight in self.ends}, self.centers
            )
        graph = nx.Graph()
        if self.kind == "Zero":
            graph.add_edges_from((tail, head) for tail, head, _ in self.ends)
            return gr.Consensus(graph)
        graph.add_weighted_edges_from(self.ends)
        return self.strength * gr.TotalVariation(graph, penalty)

    def plain(self, d: int) -> list[PlainEdge]:
        return [
            PlainEdge(tail, head, self.kind, self.strength * w, np.arange(d), self._center(tail, d), self.parameter)
            for tail, head, w in self.ends
        ]

    def _center(self, tail: Hashable, d: int) -> Array:
        return np.zeros(d) if self.centers is None else self.centers[tail]


@dataclass(frozen=True)
class Draft:
    """The draw of a family; `written` makes the problem of it."""

    family: str
    rows: dict[Hashable, Rows]
    terms: list[Term]
    traits: list[str] = field(default_factory=list)
    gap: float = 1e-6
    delta: float = 1.0
    latent: tuple[Hashable, ...] = ()
    structure: str = "one graph"

    def parts(self) -> dict[str, list[tuple[Hashable, Rows]]]:
        """The nodes with samples of each family."""
        out: dict[str, list[tuple[Hashable, Rows]]] = {}
        for label, rows in self.rows.items():
            if len(rows.y):
                out.setdefault(rows.family or self.family, []).append((label, rows))
        return out


def written(seed: int, draft: Draft) -> WildProblem:
    """The draft as a model and, independently of it, as plain numbers; samples are added up."""
    labels, d = list(draft.rows), next(iter(draft.rows.values())).X.shape[1]
    parts = draft.parts()
    losses = [_loss(family, each, draft.delta) for family, each in parts.items()]
    model: Any = sum([*losses, *(term.model() for term in draft.terms)])
    samples = tuple(
        PlainSamples(label, family, r.X, r.y, r.weights, r.offsets, draft.delta)
        for family, each in parts.items()
        for label, r in each
    )
    X = np.concatenate([r.X for each in parts.values() for _, r in each])
    edges = tuple(edge for term in draft.terms for edge in term.plain(d))
    plain = PlainProblem(
        (*labels, *draft.latent), d, samples, edges, np.zeros(d), 1.0 / np.where(X == 0, 1, np.abs(X)).max(axis=0)
    )
    kinds = draft.family, draft.terms[0].kind, draft.structure
    return WildProblem(seed, *kinds, tuple(draft.traits), model, plain, draft.gap, None, False)


def _loss(family: str, parts: Sequence[tuple[Hashable, Rows]], delta: float) -> Any:
    """Of the samples of one family, added up."""
    X, y, weights, offset = (
        np.concatenate([getattr(r, name) for _, r in parts]) for name in ("X", "y", "weights", "offsets")
    )
    owner = [label for label, r in parts for _ in r.y]
    data = gr.NodeData.from_arrays(X, y, owner, weights=weights, offset=offset if offset.any() else None)
    return LOSSES[family](data, scale="sum", **{"delta": delta} if family == "huber" else {})


def ends(rng: np.random.Generator, n: int, weights: bool = True) -> list[tuple[int, int, float]]:
    """A path, a star, a tree or a tree with further edges."""
    kind = int(rng.integers(4))
    pairs = {(k - 1 if kind == 0 else 0 if kind == 1 else int(rng.integers(k)), k) for k in range(1, n)}
    if kind == 3 and n > 2:
        for _ in range(int(rng.integers(1, 3))):
            i, j = sorted(rng.choice(n, size=2, replace=False).tolist())
            pairs.add((i, j))
    one = not weights or rng.random() < 0.5
    return [(i, j, 1.0 if one else float(2.0 ** rng.integers(-8, 9))) for i, j in sorted(pairs)]


# ---- singular --------------------------------------------------------------------------------------------------------
def singular(seed: int) -> WildProblem:
    """2 to 6 nodes, each with up to as many samples as columns, often copies of one another, and a quadratic form of
    less than full rank; columns of one scale, or over 6, 16 or 24 decades."""
    rng = np.random.default_rng([seed, 10])
    n, p = int(rng.integers(2, 7)), int(rng.integers(2, 5))
    decades = DECADES[int(rng.integers(len(DECADES)))]
    scale = 10.0 ** rng.uniform(-decades, decades, size=p)
    family = "squared" if rng.random() < 0.7 else "logistic"
    whole = bool(rng.random() < 0.5)  # small whole numbers, in which ties are exact
    rows = {i: few_samples(rng, family, p, scale, whole) for i in range(n)}
    kind = "Quadratic" if rng.random() < 0.85 else "AnalysisL1"
    term = Term(kind, strength(rng), ends(rng, n), flat_root(rng, p, scale, whole, kind))
    traits = ["few samples", f"singular {kind}", f"columns 1e+-{decades:g}"]
    terms = [term]
    if rng.random() < 0.25:
        nodes = [(i, None, 1.0) for i in range(n)]
        terms.append(Term("Quadratic", strength(rng), nodes, flat_root(rng, p, scale, whole)))
        traits.append("singular form on nodes")
    if rng.random() < 0.35:
        kind = str(rng.choice(["SquaredL2", "SquaredL2", "L1", "HuberNorm"]))
        parameter = float(2.0 ** rng.integers(-4, 3)) if kind == "HuberNorm" else None
        terms.append(Term(kind, strength(rng) * 2.0**-6, [(i, None, 1.0) for i in range(n)], parameter))
        traits.append(f"ridge {kind}")
    return written(seed, Draft(family, rows, terms, traits))


def few_samples(rng: np.random.Generator, family: str, p: int, scale: Array, whole: bool) -> Rows:
    """Up to p samples, in a tenth of the nodes p + 1, of which copies and multiples are taken."""
    distinct = p + 1 if rng.random() < 0.1 else int(rng.integers(1, p + 1))
    X = rng.integers(-5, 6, size=(distinct, p)).astype(float) if whole else rng.standard_normal((distinct, p))
    X[~X.any(axis=1)] = 1.0
    X = X * scale
    if distinct > 1 and rng.random() < 0.3:
        X[-1] = float(2.0 ** rng.integers(-3, 4)) * X[0]
    if rng.random() < 0.6 or family == "logistic":
        X = np.repeat(X, 2, axis=0)
    m = len(X)
    if family == "logistic":
        y = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    else:
        y = rng.integers(-6, 7, size=m) / 2.0 if whole else rng.standard_normal(m)
    weights = np.ones(m) if rng.random() < 0.5 else 2.0 ** rng.integers(-20, 21, size=m) / 4.0
    return Rows(X, y, weights)


def flat_root(rng: np.random.Generator, p: int, scale: Array, whole: bool, kind: str = "Quadratic") -> Array:
    """A root with fewer rows than columns, in a third of the cases in the units of the coefficients."""
    k = int(rng.integers(1, p))
    root = rng.integers(-4, 5, size=(k, p)) / 4.0 if whole else rng.standard_normal((k, p)) / 2.0
    root[~root.any(axis=1)] = 0.25
    root = root[:1] if np.linalg.matrix_rank(root) < k else root
    if kind == "AnalysisL1":  # where a column is in no row, the norm is read as one of the other columns
        root[0] = np.where(root.any(axis=0), root[0], 0.25)
    in_units = rng.random() < 0.3 and kind == "Quadratic"
    return root * scale / scale.max() if in_units else root


def strength(rng: np.random.Generator) -> float:
    return float(2.0 ** rng.integers(-7, 5)) if rng.random() < 0.5 else float(10.0 ** rng.uniform(-3, 2))


# ---- absorbed --------------------------------------------------------------------------------------------------------
def absorbed(seed: int) -> WildProblem:
    """A chain of 40 to 200 nodes whose optimum zigzags by steps of near half a last bit of the value.

    One node has nearly all of the value; what every other node and edge adds to it is a factor near 1 of half a unit in
    its last place, so that a sum in one pass rounds in the same direction every time.
    """
    rng = np.random.default_rng([seed, 11])
    n = int(rng.choice([64, 64, 63, 65, 128, 129, int(rng.integers(40, 201))]))
    c = float(2.0 ** rng.integers(-40, -10) * (1.0 + rng.integers(8) / 8.0))
    factor = float(rng.choice([1.02, 0.98, 1.001, 0.999, 1.5, 0.51, rng.uniform(0.5, 2.0)]))
    noise = float(rng.choice([0.0, 0.0, 2.0**-40, 2.0**-20, 2.0**-6, 0.3]))
    family = str(rng.choice(["squared", "squared", "squared", "huber"]))
    z = factor * HALF_A_BIT / c * (1.0 + noise * rng.uniform(-1, 1, size=n - 1))
    if noise == 0.0:
        z = np.round(z * 2.0**80) / 2.0**80
    large = int(rng.choice([0, 0, 0, 64, 128])) % n
    weight, y = _zigzag(rng, n, c, z, large, noise)
    rows = {i: Rows(np.ones((1, 1)), y[i : i + 1], weight[i : i + 1]) for i in range(n)}
    chain = [(i, i + 1, 1.0) for i in range(n - 1)]
    gap = 0.0 if rng.random() < 0.2 else 1e-6
    traits = ["absorbed summands", f"factor near {round(factor, 1):g}", "gap 0" if gap == 0.0 else "gap 1e-6"]
    delta = float(4.0 * np.abs(y).max())
    return written(seed, Draft(family, rows, [Term("L1", c, chain)], traits, gap, delta))


def _zigzag(rng: np.random.Generator, n: int, c: float, z: Array, large: int, noise: float) -> tuple[Array, Array]:
    """Weights and targets of a chain at whose optimum every flow is saturated, and neighbours differ by z."""
    sign = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    w = np.concatenate([[0.5 * z[0]], np.zeros(n - 1)])
    for i in range(n - 1):
        w[i + 1] = w[i] - sign[i] * z[i]
    pull = np.full(n, 2.0 * c)  # what its edges ask of a node
    pull[[0, -1]] = c
    size = np.concatenate([z, z[-1:]]) * (1.0 + noise * rng.uniform(-1, 1, size=n))
    residual = np.where(np.isin(np.arange(n), (0, n - 1)), 2.0, 1.0) * size
    residual[large] = (2.0 + 2e-7) / pull[large]
    return pull / residual, w + sign * residual
