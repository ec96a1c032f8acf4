"""Planted optima: parameters, prices and flows of few bits first, then the samples that ask for them.

Every number is exact in floats, so that the optimum is known exactly, and may be met with a gap of 0. Most flows are
saturated, and so are many prices. Traits are drawn: columns of 2^-40 to 2^40, weights of 2^-20 to 2^20, targets shifted
by 1e9, nodes with fewer samples than columns, nodes without samples, several losses.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from typing import Any

import networkx as nx
import numpy as np

from benchmarks.wild import WildProblem
from graphreg.datasets.plain import Array

from .exact import exact
from .families import Draft, Rows, Term, ends, written
from .kkt import optimal

Triple = tuple[Fraction, Fraction, Fraction]
ZERO, ONE = Fraction(0), Fraction(1)

TRAITS = ("column scales", "wild weights", "shifted", "few samples", "nodes without samples", "several losses")
KINDS = ("L1", "L1", "L2", "LInf", "SquaredL2", "HuberNorm", "Zero")
LOSSES = ("squared", "huber", "quantile", "hinge", "squared hinge", "logistic", "poisson")
GAPS = (0.0, 1e-10, 1e-6, 1e-6)
SHIFT = 1e9
DELTA = 4.0
ATTEMPTS = 40


class InexactError(Exception):
    """A number of the draw is no float."""


@dataclass(frozen=True)
class Planted:
    """A problem, its optimum, and prices (by part) and flows (by edge) that prove it, in the order of its plain
    numbers."""

    drawn: WildProblem
    prices: list[Array]
    flows: list[Array]


def planted(seed: int) -> WildProblem:
    """A problem whose optimum is known; with one column up to 70 nodes."""
    return with_proof(seed).drawn


def with_proof(seed: int, most: int = 70) -> Planted:
    """The first draw of a seed whose numbers are all exact; of at most so many nodes."""
    for attempt in count():
        try:
            return Draw(seed, attempt, most).made()
        except InexactError:
            if attempt > ATTEMPTS:
                raise
    raise AssertionError


def floats(values: Any) -> Array:
    """Rationals as floats, where they are some."""
    try:
        out = np.array([float(v) for v in values])
    except OverflowError as error:
        raise InexactError from error
    if any(Fraction(x) != v for x, v in zip(out.tolist(), values, strict=True)):
        raise InexactError
    return out


def _power(x: Fraction) -> Fraction:
    """The least power of two that is not below x > 0."""
    k = x.numerator.bit_length() - x.denominator.bit_length()
    power = Fraction(2) ** (k - 1)
    while power < x:
        power *= 2
    return power


@dataclass(frozen=True)
class _Sample:
    node: int
    family: str
    x: list[Fraction]
    y: Fraction
    weight: Fraction
    offset: Fraction
    price: Fraction


@dataclass
class Draw:
    """One draw; traits are the fewer, the more attempts have failed."""

    seed: int
    attempt: int
    most: int
    rows: list[_Sample] = field(default_factory=list)
    left: list[list[Fraction]] = field(default_factory=list)  # of the balance at each node
    delta: float = 1.0

    def __post_init__(self) -> None:
        self.rng = rng = np.random.default_rng([self.seed, 14, self.attempt])
        self.traits = [t for t in TRAITS if rng.random() < 0.4 / (1 + self.attempt / 8)]
        self.kind = str(rng.choice(KINDS))
        self.p = int(rng.integers(1, 5 if "few samples" in self.traits else 4))
        self.n = int(rng.integers(2, self.most + 1 if self.p == 1 else min(10, self.most + 1)))
        decades = 40 if "column scales" in self.traits else 0
        self.scale = [Fraction(2) ** int(k) for k in rng.integers(-decades, decades + 1, size=self.p)]
        self.c = float(2.0 ** rng.integers(-6, 3))
        fitting = [loss for loss in LOSSES if loss != "poisson" or "shifted" not in self.traits]
        families = rng.choice(fitting, size=3 if "several losses" in self.traits else 1, replace=False)
        self.family = [str(family) for family in rng.choice(families, size=self.n)]

    def made(self) -> Planted:
        pairs = self._pairs()
        empty = self._empty(pairs)
        w = self.parameters(pairs, empty)
        flows = self._flows(pairs, w, empty)
        self.left = [[ZERO] * self.p for _ in range(self.n)]
        for (i, j, _), u in zip(pairs, flows, strict=True):
            self.add(i, u)
            self.add(j, u, -1)
        terms = [Term(self.kind, 1.0 if self.kind == "Zero" else self.c, pairs, self.parameter)]
        few = "few samples" in self.traits
        ground = "SquaredL2" if few else str(self.rng.choice(["", "", "L1", "SquaredL2"]))
        open_ = {
            i for i in range(self.n) if ground == "SquaredL2" and (i in empty or (few and self.rng.random() < 0.6))
        }
        nodes = _Ground(ground)
        for i in range(self.n):
            if ground and i not in open_:
                nodes.pull(self, i, w[i], self._pull(i in empty))
            if i not in empty:
                self.samples(i, w[i], i not in open_)
            if i in open_:
                nodes.close(self, i, w[i])
        if ground:
            terms.append(nodes.term())
        return self._written(w, terms, [*flows, *nodes.flows])

    def add(self, i: int, u: list[Fraction], factor: Fraction | int = 1) -> None:
        self.left[i] = [a + factor * b for a, b in zip(self.left[i], u, strict=True)]

    def written(self) -> tuple[dict[Hashable, Rows], dict[Hashable, Array]]:
        """The samples and prices of each node, as floats."""
        rows: dict[Hashable, Rows] = {}
        prices: dict[Hashable, Array] = {}
        for i in range(self.n):
            mine = [row for row in self.rows if row.node == i]
            X = floats([v for row in mine for v in row.x]).reshape(-1, self.p)
            y, weight, offset = (floats([getattr(row, name) for row in mine]) for name in ("y", "weight", "offset"))
            rows[i] = Rows(X, y, weight, self.family[i], offset)
            prices[i] = floats([row.price for row in mine])
        if not self.rows:
            raise InexactError
        return rows, prices

    def _written(self, w: list[list[Fraction]], terms: list[Term], flows: list[list[Fraction]]) -> Planted:
        rows, prices = self.written()
        gap = float(self.rng.choice(GAPS))
        traits = ["planted optimum", f"gap {gap:g}", *self.traits]
        draft = Draft(self.rows[0].family, rows, terms, traits, gap, DELTA)
        drawn = replace(written(self.seed, draft), optimum=floats([v for row in w for v in row]).reshape(-1, self.p))
        found = Planted(drawn, [prices[p.node] for p in drawn.plain.samples], [floats(u) for u in flows])
        if not optimal(exact(drawn.plain), drawn.optimum, found.prices, found.flows):
            raise AssertionError(f"seed {self.seed}: what was planted is no optimum")
        return found

    @property
    def parameter(self) -> float | None:
        return self.delta if self.kind == "HuberNorm" else None

    # ---- what is planted ---------------------------------------------------------------------------------------------
    def _pairs(self) -> list[tuple[int, int, float]]:
        wide = 20 if "wild weights" in self.traits else 0
        plain = self.kind == "Zero"
        return [
            (i, j, 1.0 if plain else float(2.0 ** self.rng.integers(-wide, wide + 1)))
            for i, j, _ in ends(self.rng, self.n, weights=False)
        ]

    def _empty(self, pairs: list[tuple[int, int, float]]) -> set[int]:
        """Nodes without samples, of which no two are neighbours."""
        out: set[int] = set()
        if "nodes without samples" not in self.traits:
            return out
        for i in self.rng.permutation(self.n)[: self.n // 3].tolist():
            near = {a + b - i for a, b, _ in pairs if i in (a, b)}
            if not near & out:
                out.add(i)
        return out

    def parameters(self, pairs: list[tuple[int, int, float]], empty: set[int]) -> list[list[Fraction]]:
        """Quarters in units of the columns, a few values in all; the same around an empty node, and in a consensus."""
        rng, tied = self.rng, nx.utils.UnionFind(range(self.n))
        for i, j, _ in pairs:
            if self.kind == "Zero" or {i, j} & empty:
                tied.union(i, j)
        one = self.kind in ("L2", "HuberNorm")  # lengths are to be rational: values differ in one coordinate alone
        base = rng.integers(-8, 9, size=self.p)
        values = [base + np.eye(self.p, dtype=int)[0] * int(rng.integers(-8, 9)) for _ in range(4)]
        values = values if one else [rng.integers(-8, 9, size=self.p) for _ in range(4)]
        shift = SHIFT * float(rng.choice([-1.0, 1.0])) if "shifted" in self.traits else 0.0
        chosen = {root: values[int(rng.integers(len(values)))] for root in {tied[i] for i in range(self.n)}}
        if shift:
            self.scale[0] = Fraction(1)
        out = []
        for i in range(self.n):
            row = [Fraction(int(v), 4) / s for v, s in zip(chosen[tied[i]], self.scale, strict=True)]
            out.append([row[0] + Fraction(shift), *row[1:]])
        size = max(abs(a[0] - b[0]) for a in out for b in out)
        self.delta = float(_power(size if size else ONE) * Fraction(2) ** int(rng.integers(-3, 2)))
        return out

    def _flows(
        self, pairs: list[tuple[int, int, float]], w: list[list[Fraction]], empty: set[int]
    ) -> list[list[Fraction]]:
        """Subgradients at the differences; at empty nodes two of them pass something on, and the others are 0."""
        out = []
        for i, j, weight in pairs:
            z = [a - b for a, b in zip(w[i], w[j], strict=True)]
            still = bool({i, j} & empty)
            u = [ZERO] * self.p if still else self.subgradient(z)
            out.append([Fraction(self.c) * Fraction(weight) * v for v in u])
        for i in empty if self.kind not in ("SquaredL2", "HuberNorm") else ():
            at = [k for k, (a, b, _) in enumerate(pairs) if i in (a, b)][:2]
            if len(at) == 2:
                least = min(Fraction(self.c) * Fraction(pairs[k][2]) for k in at)
                q, c = least * Fraction(int(self.rng.integers(-4, 5)), 4), int(self.rng.integers(self.p))
                for k, sign in zip(at, (1, -1), strict=True):
                    out[k][c] += q * sign * (1 if pairs[k][0] == i else -1)
        return out

    def subgradient(self, z: list[Fraction], kind: str = "") -> list[Fraction]:
        """One at z; where that is not unique, of quarters, often at an end."""
        kind, rng = kind or self.kind, self.rng
        one = [ZERO] * len(z)
        j = max(range(len(z)), key=lambda k: abs(z[k]))
        if kind == "SquaredL2" or (kind == "HuberNorm" and sum(v * v for v in z) <= Fraction(self.delta) ** 2):
            return list(z)
        if kind == "HuberNorm":
            one[j] = Fraction(self.delta) * (1 if z[j] > 0 else -1)
            return one
        if any(z) and kind in ("L2", "LInf"):
            one[j] = Fraction(1 if z[j] > 0 else -1)
            return one
        free = [Fraction(int(v), 4) for v in rng.integers(-4, 5, size=len(z))]
        if kind == "L1":
            return [f if v == 0 else Fraction(1 if v > 0 else -1) for f, v in zip(free, z, strict=True)]
        if kind == "Zero" or sum(map(abs, free)) <= 1:
            return free
        one[int(rng.integers(len(z)))] = Fraction(int(rng.choice([-4, -3, 2, 4])), 4)
        return one

    # ---- what asks for it --------------------------------------------------------------------------------------------
    def _pull(self, nothing: bool) -> list[Fraction]:
        """How far a node is from its centre."""
        if nothing:
            return [ZERO] * self.p
        return [Fraction(int(v), 4) / s for v, s in zip(self.rng.integers(-2, 3, size=self.p), self.scale, strict=True)]

    def samples(self, i: int, w: list[Fraction], closes: bool) -> None:
        """Samples of any prices, and for each column one that makes up for what is left there; the latter only where
        ``closes``, else fewer than columns."""
        rng, p = self.rng, self.p
        wide = "column scales" not in self.traits
        for _ in range(int(rng.integers(3)) if closes else int(rng.integers(1, max(p, 2)))):
            x = [Fraction(int(v)) * s for v, s in zip(rng.integers(-2, 3, size=p), self.scale, strict=True)]
            j = int(rng.integers(p))
            x = x if wide else [v if k == j else ZERO for k, v in enumerate(x)]
            size = Fraction(self.c) if wide else _power(abs(self.left[i][j]) / self.scale[j] or ONE)
            self._sample(i, w, x, size * Fraction(int(rng.integers(-4, 5)), 2))
        for j in range(p) if closes else ():
            x = [s if k == j else ZERO for k, s in enumerate(self.scale)]
            self._sample(i, w, x, -self.left[i][j] / self.scale[j])

    def _sample(self, i: int, w: list[Fraction], x: list[Fraction], price: Fraction) -> None:
        """A sample of one of the losses, with that price at w; without a price two that balance, of logistic ones."""
        family = self.family[i]
        at = sum((a * b for a, b in zip(x, w, strict=True)), ZERO)
        one = self._size(ONE)
        for a in [price] if price or family != "logistic" else [one, -one]:
            y, weight, predictor = getattr(self, f"_{family.replace(' ', '_')}")(a, at)
            self.rows.append(_Sample(i, family, x, y, weight, predictor - at, a))
            self.add(i, x, a)

    def _size(self, x: Fraction, most: int = 3) -> Fraction:
        """A power of two that is not far below x."""
        wide = 20 if "wild weights" in self.traits else most
        return (_power(abs(x)) if x else ONE) * Fraction(2) ** int(self.rng.integers(-2, wide + 1))

    def _extra(self) -> Fraction:
        return Fraction(int(self.rng.integers(4)), 4)

    # of each loss, from a price and x'w: target, weight and predictor
    def _squared(self, a: Fraction, at: Fraction) -> Triple:
        s = self._size(a)
        return at - a / s, s, at

    def _huber(self, a: Fraction, at: Fraction) -> Triple:
        s = self._size(a)
        far = self._extra() if abs(a) == 4 * s else ZERO
        return at - a / s - (far if a > 0 else -far), s, at

    def _quantile(self, a: Fraction, at: Fraction) -> Triple:
        s = _power(2 * abs(a) or ONE) * int(self.rng.integers(1, 3))
        far = self._extra() if 2 * abs(a) == s else ZERO
        return at - (far if a > 0 else -far), s, at

    def _hinge(self, a: Fraction, at: Fraction) -> Triple:
        del at
        s, y = _power(abs(a) or ONE) * int(self.rng.integers(1, 3)), Fraction(-1 if a > 0 else 1)
        far = -self._extra() if abs(a) == s else self._extra() if a == 0 else ZERO
        return y, s, y * (1 + far)

    def _squared_hinge(self, a: Fraction, at: Fraction) -> Triple:
        del at
        s, y = self._size(a), Fraction(-1 if a > 0 else 1)
        return y, s, y * (1 - abs(a) / s if a else 1 + self._extra())

    def _logistic(self, a: Fraction, at: Fraction) -> Triple:
        del at
        return Fraction(-1 if a > 0 else 1), 2 * abs(a), ZERO

    def _poisson(self, a: Fraction, at: Fraction) -> Triple:
        del at
        k = int(self.rng.integers(1, 3)) if a < 0 else -1 if a > 0 else 0
        return Fraction(1 + k), -a / k if k else self._size(ONE), ZERO


@dataclass
class _Ground:
    """A penalty at all nodes, with centres."""

    kind: str
    nodes: list[tuple[int, None, float]] = field(default_factory=list)
    centers: dict[Hashable, Array] = field(default_factory=dict)
    flows: list[list[Fraction]] = field(default_factory=list)

    def pull(self, draw: Draw, i: int, w: list[Fraction], z: list[Fraction]) -> None:
        """Away from a centre, so that something is left at a node."""
        c = self._weight(draw)
        u = [c * v for v in (z if self.kind == "SquaredL2" else [Fraction((v > 0) - (v < 0)) for v in z])]
        draw.add(i, u)
        self._put(i, c, w, z, u)

    def close(self, draw: Draw, i: int, w: list[Fraction]) -> None:
        """Squares take up what is left at a node."""
        c, u = self._weight(draw), [-v for v in draw.left[i]]
        self._put(i, c, w, [v / c for v in u], u)

    def _weight(self, draw: Draw) -> Fraction:
        wide = 20 if "wild weights" in draw.traits else 2
        return Fraction(2) ** int(draw.rng.integers(-wide, wide + 1))

    def _put(self, i: int, c: Fraction, w: list[Fraction], z: list[Fraction], u: list[Fraction]) -> None:
        self.nodes.append((i, None, float(c)))
        self.centers[i] = floats([a - b for a, b in zip(w, z, strict=True)])
        self.flows.append(u)

    def term(self) -> Term:
        return Term(self.kind, 1.0, self.nodes, centers=self.centers)
