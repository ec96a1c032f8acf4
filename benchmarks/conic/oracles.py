"""Problems whose optima are known exactly, and garbage in place of their answers: no bound may be false.

Half of the optima are planted: integers times powers of two, chosen so that the conditions of Karush, Kuhn and Tucker
hold without rounding. A quarter has curved atoms, see `kinks`. Of the others the conditions are solved in rational
numbers, on the constraints that hold with equality at a solver's answer, and are looked at.
"""

from __future__ import annotations

import importlib
import warnings
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

import cvxpy as cp
import numpy as np

from graphreg import verify

from .cases import Array
from .kinks import WITHIN, kink

KINDS = (
    "plain",
    "degenerate",
    "wild columns",
    "equal columns",
    "zero column",
    "more columns than rows",
    "tiny margins",
)
WAYS = ("near 1e-6", "near 1e-3", "near 1e-1", "random", "times 1e6", "times -1", "zero", "huge", "nan", "inf")


@dataclass(frozen=True)
class Known:
    """minimise |G x|^2 / 2 + q'x over A x <= b, C x = d, or a curved one, and its optimum, up to ``within``."""

    kind: str
    problem: cp.Problem
    optimum: Fraction
    within: Fraction = Fraction(0)


def exactly(x: Array) -> list[Any]:
    return [exactly(row) for row in x] if x.ndim > 1 else [Fraction(float(v)) for v in x]


def dot(a: Any, b: Any) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def problem(G: Array, q: Array, A: Array, b: Array, C: Array, d: Array) -> cp.Problem:
    x = cp.Variable(len(q))
    curve = cp.sum_squares(G @ x) / 2 if len(G) else 0.0
    return cp.Problem(cp.Minimize(curve + q @ x), [A @ x <= b, *([C @ x == d] if len(C) else [])])


def planted(seed: int) -> Known:
    """All data are integers times powers of two; x, and multipliers z, y are chosen first."""
    r, kind = np.random.default_rng([seed, 1]), KINDS[seed % len(KINDS)]
    n = int(r.integers(2, 9))
    m, k = int(r.integers(n, 3 * n)), int(r.integers(0, 2))
    rows = int(r.integers(0, n + 1)) if seed % 2 else 0  # of G; 0: linear
    if kind == "more columns than rows":
        m, rows = max(2, n // 2), min(rows, n // 2)
    G, A, C = (r.integers(-4, 5, (rows_, n)).astype(float) for rows_ in (rows, m, k))
    x, y = r.integers(-4, 5, n).astype(float), r.integers(-4, 5, k).astype(float)
    active = r.random(m) < (0.9 if kind == "degenerate" else 0.5)
    z = np.where(active & (r.random(m) < (0.4 if kind == "degenerate" else 1.0)), r.integers(1, 6, m), 0).astype(float)
    slack = np.where(active, 0.0, r.integers(1, 9, m))
    if kind == "tiny margins":
        slack *= 2.0**-30
    if kind == "equal columns":
        for M in (G, A, C):
            M[:, -1] = M[:, 0]
    if kind == "zero column":
        for M in (G, A, C):
            M[:, 0] = 0.0
    if kind == "wild columns":
        scale = 2.0 ** r.integers(-20, 21, n)
        G, A, C, x = G * scale, A * scale, C * scale, x / scale
    b, d = A @ x + slack, C @ x
    q = -G.T @ (G @ x) - A.T @ z - C.T @ y
    g, a, c, point = exactly(G), exactly(A), exactly(C), exactly(x)
    stationary = [
        dot([row[j] for row in g], [dot(row, point) for row in g])
        + Fraction(q[j])
        + dot([row[j] for row in a], exactly(z))
        + dot([row[j] for row in c], exactly(y))
        for j in range(n)
    ]
    assert not any(stationary)
    assert [dot(row, point) for row in c] == exactly(d)
    assert [dot(row, point) for row in a] == exactly(b - slack)
    assert exactly(b) == [u + v for u, v in zip(exactly(b - slack), exactly(slack), strict=True)]
    value = sum((dot(row, point) ** 2 for row in g), Fraction(0)) / 2 + dot(exactly(q), point)
    return Known(f"planted, {kind}", problem(G, q, A, b, C, d), value)


def found(seed: int) -> Known | None:
    """Data of any digits; the optimum by rational numbers, from the constraints that seem to be active."""
    r = np.random.default_rng([seed, 2])
    n = int(r.integers(2, 8))
    m, rows = int(r.integers(n, 3 * n)), n if seed % 2 else 0
    G, A, q = r.standard_normal((rows, n)), r.standard_normal((m, n)), r.standard_normal(n)
    if seed % 5 == 0:
        scale = 10.0 ** r.integers(-6, 7, n)
        G, A, q = G * scale, A * scale, q * scale
    A, b = np.vstack([A, np.eye(n), -np.eye(n)]), np.concatenate([r.random(m) + 0.1, np.full(2 * n, 1e3)])
    posed = problem(G, q, A, b, np.zeros((0, n)), np.zeros(0))
    posed.solve("CLARABEL")
    slack, z = b - A @ posed.variables()[0].value, posed.constraints[0].dual_value
    active = [int(i) for i in np.flatnonzero(slack < z)]
    if not rows and len(active) != n:
        return None
    g, a, c, bb = exactly(G), exactly(A), exactly(q), exactly(b)
    H = [[dot([row[i] for row in g], [row[j] for row in g]) if g else Fraction(0) for j in range(n)] for i in range(n)]
    top = [[*H[i], *(a[k][i] for k in active)] for i in range(n)]
    bottom = [[*a[k], *([Fraction(0)] * len(active))] for k in active]
    verify.begin(False)
    try:
        xz = verify.solved([*top, *bottom], [*(-v for v in c), *(bb[k] for k in active)])
    except (ZeroDivisionError, verify.NotProvedError):
        return None
    x, mine = xz[:n], xz[n:]
    if any(v < 0 for v in mine) or any(dot(row, x) > v for row, v in zip(a, bb, strict=True)):
        return None
    value = sum((dot(row, x) ** 2 for row in g), Fraction(0)) / 2 + dot(c, x)
    return Known("solved, QP" if rows else "solved, LP", posed, value)


def draw(count: int) -> list[Known]:
    known = [planted(seed) for seed in range(count // 2)]
    for kind, posed, optimum in map(kink, range(count // 4)):
        known.append(Known(kind, posed, optimum, WITHIN * abs(optimum)))
    seed = 0
    while len(known) < count:
        one, seed = found(seed), seed + 1
        known += [one] if one is not None else []
    return known


def garbage(x: Array, z: Array, way: str, r: np.random.Generator) -> tuple[Array, Array]:
    """Something in place of an answer."""
    kind, _, size = way.partition(" ")
    if kind == "near":
        x, z = (v + float(size) * (1 + np.abs(v)) * r.standard_normal(len(v)) for v in (x, z))
    elif kind == "random":
        x, z = r.standard_normal(len(x)), r.standard_normal(len(z))
    elif kind == "times":
        x, z = float(size) * x, float(size) * z
    else:
        worst = {"zero": 0.0, "huge": 1e300, "nan": np.nan, "inf": np.inf}[kind]
        x, z = (np.where(r.random(len(v)) < 0.5, worst, v) for v in (x, z))
    return x, z


def false_of(lower: float, upper: float, optimum: Fraction, within: Fraction) -> bool:
    below = isfinite(lower) and Fraction(lower) > optimum + within
    return below or lower == np.inf or upper == -np.inf or (isfinite(upper) and Fraction(upper) < optimum - within)


def report(count: int, answers: int) -> list[str]:
    """Certify what is known, then garbage; the counts are printed, what is false is returned."""
    if not count:
        return []
    certify = importlib.import_module("graphreg.conic.proving")
    canonical = importlib.import_module("graphreg.conic.canonical")
    false, said, widths = list[str](), Counter[str](), list[float]()
    known = draw(count)
    for k, each in enumerate(known):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proved = certify.certify(each.problem, solver="CLARABEL")
        said[f"{each.kind}: {proved.status}"] += 1
        widths += [proved.relative_gap] if proved.status == "certified" else []
        if false_of(proved.lower, proved.upper, each.optimum, each.within):
            false.append(f"optimum {k}, {each.kind}: {proved.lower!r}, {proved.upper!r}, {float(each.optimum)!r}")
    print(f"\n{count} optima that are known exactly: {len(widths)} certified, worst relative gap {max(widths):.1e}")
    print(*(f"  {number:4d}  {what}" for what, number in sorted(said.items())), sep="\n")
    sides = Counter[str]()
    for k in range(answers):
        each, way, r = known[k % count], WAYS[k % len(WAYS)], np.random.default_rng(k)
        stored = canonical.canonical(each.problem)
        answer = canonical.helped(stored.programme)
        x, z = garbage(answer.x, answer.z, way, r)
        with np.errstate(all="ignore"):
            found = certify.proved(stored.programme, canonical.Answer(x, z), 1e-6, helped=False)
        value = each.optimum * int(stored.sign) - Fraction(stored.offset)
        sides[f"{way}: {int(isfinite(found.lower))} lower, {int(isfinite(found.upper))} upper bound"] += 1
        if false_of(found.lower, found.upper, value, each.within):
            false.append(f"garbage {k}, {way}, {each.kind}: {found.lower!r}, {found.upper!r}, {float(value)!r}")
    print(f"{answers} answers that are garbage:", *(f"  {n:4d}  {what}" for what, n in sorted(sides.items())), sep="\n")
    return false
