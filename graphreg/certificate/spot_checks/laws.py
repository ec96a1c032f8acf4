"""The laws that bounds rest on, tried on rows: each trial says by how much an inequality is missed at every row.

With a value f and a conjugate f* of a term, ``P - Q`` is the sum of ``f(x) + f*(b) - <x, b>`` over all rows, whatever x
and b are. Q bounds the optimum from below where none of these can be negative at its own b; so each b meets several x:
the row's own, those of others, far ones along b, and the best for it that the prox leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...terms import Array
from .rows import AbstractRows

ULP = 2.0**-52
FAR = (1.0, 1e4)  # how far arguments are pushed along slopes, and steps of proxes, beside those of the rows' own size
APART = 1e-6  # of their size: nearer than that, points have no middle to speak of
WIDE = 1e-3  # of its size: half of the width of the boxes on which bounds are tried
CLAIMS = 1e-3  # by which equalities may be off that no bound rests on


@dataclass(frozen=True)
class Trial:
    """An inequality, row by row: ``excess > 0`` misses it, ``size`` is that of its parts. ``side`` says which bound an
    excess that may be rounding is charged to, in the rows that are ``near``."""

    law: str
    excess: Array
    size: Array
    said: dict[str, Array]  # what is shown of a row
    x: Array  # where the value was taken
    b: Array  # where the conjugate was
    side: str = ""  # "below" or "above"; empty: to none
    near: Any = False


def own_points(rows: AbstractRows) -> Iterator[Trial]:
    """The residuals of the rows themselves: if the bounds cross, one of these is negative."""
    yield from _fenchel_young(rows, rows.conjugate(rows.b), "conjugate", [rows.x])
    if rows.undirected:
        value, other = rows.value(rows.x), rows.value(-rows.x)
        said = {"x": rows.x, "value(x)": value, "value(-x)": other}
        law = "value(-x) = value(x) between nodes, whose edges have no direction"
        yield Trial(law, np.abs(other - value), np.abs(value) + np.abs(other), said, rows.x, rows.b)
    if rows.writes("value_bound"):
        r, spread = _from_anchor(rows)
        bound, value = rows.value_bound(r, spread), rows.value(rows.x)
        size = np.abs(value) + _sizes(rows.b, rows.anchor)
        said = {"x": rows.x, "value(x)": value, "value_bound(x, 0)": bound}
        yield Trial("value_bound(x, 0) >= value(x)", value - bound, size, said, rows.x, rows.b, "above", True)


def other_points(rows: AbstractRows) -> Iterator[Trial]:
    """What else is tried, on a few of the rows."""
    points = list(_arguments(rows))
    yield from _fenchel_young(rows, rows.conjugate(rows.b), "conjugate", points)
    if rows.writes("conjugate_bound"):
        bound = rows.conjugate_bound(rows.b, np.zeros(rows.b.shape)) + _dots(rows.b, rows.anchor)
        yield from _fenchel_young(rows, bound, "conjugate_bound", [rows.x, *points])
    yield from _slopes(rows)
    yield from _middles(rows, points)
    yield from _boxes(rows)
    root = rows.root()
    if root is not None:
        R, h = root
        for x in [rows.x, *points]:
            value, inner = rows.value(x), h.value(x @ R.T)
            said = {"x": x, "value(x)": value, "h(Rx)": inner}
            law = "value(x) >= h(Rx) with the R and h of composed()"
            yield Trial(law, inner - value, np.abs(value) + inner, said, x, rows.b, "below", _near(rows, x))


def _fenchel_young(rows: AbstractRows, conjugate: Array, name: str, points: list[Array]) -> Iterator[Trial]:
    b, letter = rows.b, rows.slopes
    for x in points:
        value, product = rows.value(x), _dots(x, b)
        size = np.abs(value) + np.abs(conjugate) + _sizes(x, b) + _sizes(rows.anchor, b)
        said = {"x": x, letter: b, "value(x)": value, f"{name}({letter})": conjugate, f"<x, {letter}>": product}
        law = f"value(x) + {name}({letter}) >= <x, {letter}>"
        yield Trial(law, product - value - conjugate, size, said, x, b, "below", _near(rows, x))


def _near(rows: AbstractRows, x: Array) -> Array:
    """Points among those of the rows are where the optimum may be: what is missed there is charged."""
    return _lengths(x - rows.x) <= 10.0 * rows.reach


def _arguments(rows: AbstractRows) -> Iterator[Array]:
    """Arguments for the slopes of the rows: those of other rows, far ones along the slopes, and where <x, b> - f(x) is
    larger, as the prox has it."""
    x, b, m = rows.x, rows.b, len(rows.x)
    yield rows.anchor
    for k in {1, m // 2, m // 3} - {0}:
        yield np.roll(x, k, axis=0)
    along = along_of(rows)
    reach, slope = rows.reach, float(np.abs(b).max(initial=0.0))
    for length in (reach, *FAR):
        yield x + length * along
    for step in (reach / slope if slope > 0.0 else 1.0, *FAR):
        yield from _tried(rows.prox, x + step * b, step)


def _slopes(rows: AbstractRows) -> Iterator[Trial]:
    """The same at other slopes: gradients at the rows' points, and what the prox leaves of them."""
    found = [] if rows.gradient is None else _tried(rows.gradient, rows.x)
    step = 1.0
    found += [(rows.x - p) / step for p in _tried(rows.prox, rows.x, step)]
    for b in found:
        other = rows.slopes_at(b)
        for trial in _fenchel_young(other, other.conjugate(b), "conjugate", [rows.x, rows.anchor]):
            yield replace(trial, side="")  # no bound was taken there


def _middles(rows: AbstractRows, points: list[Array]) -> Iterator[Trial]:
    """Convexity between the rows' points and others; strong convexity where the term claims it."""
    mu, f = rows.convexity(), rows.value(rows.x)
    for x in points:
        apart = _lengths(x - rows.x)
        middle, other = rows.value((x + rows.x) / 2), rows.value(x)
        bend = mu / 8.0 * apart**2
        known = np.isfinite(f) & np.isfinite(other) & np.isfinite(middle)
        known &= apart > APART * (_lengths(x) + _lengths(rows.x))
        excess = np.where(known, middle - (f + other) / 2 + bend, -np.inf)
        law = "value((x + z) / 2) <= (value(x) + value(z)) / 2"
        law += (
            f" - mu/8 ||x - z||^2 with the mu = {mu:g} that it claims" if mu > 0.0 else ", as convex functions have it"
        )
        said = {"x": x, "z": rows.x, "value(x)": other, "value(z)": f, "value((x + z) / 2)": middle}
        yield Trial(law, excess, np.abs(f) + np.abs(other) + bend, said, x, rows.b)


def _boxes(rows: AbstractRows) -> Iterator[Trial]:
    """Bounds over boxes are not less than what they bound, at points well inside."""
    if rows.writes("value_bound"):
        r, rounding = _from_anchor(rows)
        spread = rounding + WIDE * np.abs(r)
        bound = rows.value_bound(r, spread)
        for sign in (1.0, -1.0):
            x = rows.x + sign * (spread - rounding) / 2
            value = rows.value(x)
            said = {"x": x, "value(x)": value, "value_bound around it": bound}
            size = np.abs(value) + _sizes(rows.b, rows.anchor)
            law = "value_bound(z, spread) >= value(x) for x within z +- spread"
            yield Trial(law, value - bound, size, said, x, rows.b)
    if rows.writes("conjugate_bound"):
        b, t, letter = rows.b, rows.anchor, rows.slopes
        spread = WIDE * np.abs(b)
        bound = rows.conjugate_bound(b, spread)
        for sign in (1.0, -1.0):
            v = b * (1.0 + sign * WIDE / 2)  # where the domain is that of a subspace, in that
            value = rows.conjugate(v) - _dots(v, t)
            size = np.where(np.isfinite(value), np.abs(value), 0.0) + _sizes(v, t)
            said = {letter: v, f"conjugate({letter})": value, "conjugate_bound around it": bound}
            law = f"conjugate_bound(v, spread) >= conjugate({letter}) for {letter} within v +- spread"
            yield Trial(law, value - bound, size, said, rows.x, v)


# ---- claims that no bound rests on: a solve that they mislead ends without a certificate, and says so ----------------
def numbers(rows: AbstractRows) -> Iterator[Trial]:
    """Numbers where numbers must be."""
    letter = rows.slopes
    for name, point, found in (("value", "x", rows.value(rows.x)), ("conjugate", letter, rows.conjugate(rows.b))):
        excess = np.where(np.isnan(found), np.inf, 0.0)
        said = {point: rows.x if point == "x" else rows.b, f"{name}({point})": found}
        yield Trial(
            f"{name}({point}) is a number, or +inf outside its domain",
            excess,
            np.zeros(len(excess)),
            said,
            rows.x,
            rows.b,
        )


def claims(rows: AbstractRows) -> Iterator[Trial]:
    """Numbers, and proxes, gradients and projections that are those of the value."""
    yield from numbers(rows)
    if rows.project is not None:
        for p in _tried(rows.project, rows.x):
            value = rows.value(p)
            excess = np.where(value <= 0.0, 0.0, np.inf)
            said = {"z": rows.x, "project(z)": p, "value(project(z))": value}
            yield Trial(
                "project(z) lies in the set, where the value is 0", excess, np.zeros(len(value)), said, p, rows.b
            )
    step = 1.0
    for p in _tried(rows.prox, rows.x, step):
        law = "the prox is that of the value: with p = prox(v, t) and b = (v - p) / t"
        yield _equality(rows, p, (rows.x - p) / step, law)
    if rows.gradient is not None:
        for b in _tried(rows.gradient, rows.x):
            yield _equality(rows, rows.x, b, "the gradient is that of the value: with b = gradient(p)")


def _equality(rows: AbstractRows, p: Array, b: Array, law: str) -> Trial:
    """value(p) + conjugate(b) = <p, b>, where the conjugate is finite: rounding may leave its domain."""
    value, conjugate, product = rows.value(p), rows.slopes_at(b).conjugate(b), _dots(p, b)
    off = np.abs(value + conjugate - product)
    size = np.abs(value) + np.abs(conjugate) + _sizes(p, b) + _sizes(rows.anchor, b)
    fine = np.isfinite(conjugate) & np.isfinite(value)
    said = {"p": p, "b": b, "value(p)": value, "conjugate(b)": conjugate, "<p, b>": product}
    excess = np.where(fine, off - CLAIMS * size, 0.0)
    return Trial(f"{law}, value(p) + conjugate(b) = <p, b>", excess, np.where(fine, size, 0.0), said, p, b)


# ---- numbers ---------------------------------------------------------------------------------------------------------
def _tried(function: Callable[..., Array], *given: Any) -> list[Array]:
    """What a method gives at points that no solve has asked it for: nothing where it raises, or is not finite."""
    try:
        found = function(*given)
    except Exception:  # noqa: BLE001 - no law says that these points can be taken
        return []
    return [found] if np.shape(found) == np.shape(given[0]) and np.isfinite(found).all() else []


def _from_anchor(rows: AbstractRows) -> tuple[Array, Array]:
    """x - t, and how far that is off."""
    rounding = 4.0 * ULP * (np.abs(rows.x) + np.abs(rows.anchor))
    return rows.x - rows.anchor, np.where(rows.anchor == 0.0, 0.0, rounding)


def along_of(rows: AbstractRows) -> Array:
    """The directions of the slopes; where these are 0, one that nothing singles out."""
    any_way = np.cos(1.0 + np.arange(rows.b[0].size)).reshape(rows.b[0].shape)
    b = np.where(_column(rows, _lengths(rows.b)) > 0.0, rows.b, any_way)
    return b / _column(rows, _lengths(b))


def _column(rows: AbstractRows, numbers: Array) -> Array:
    """Numbers per row that broadcast against the points of the rows."""
    return numbers.reshape(-1, *[1] * (rows.b.ndim - 1))


def _dots(a: Array, b: Array) -> Array:
    return a * b if a.ndim == 1 else np.einsum("ij,ij->i", a, b)


def _sizes(a: Array, b: Array) -> Array:
    return _dots(np.abs(a), np.abs(b))


def _lengths(a: Array) -> Array:
    return np.abs(a) if a.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", a, a))
