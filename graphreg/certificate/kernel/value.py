"""The dual value over a box of prices and flows, from below, component by component."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...form import DualPoint
from ...terms import Array
from .arithmetic import (
    DUST,
    EPS,
    MORE,
    RANGE,
    UNDERFLOW,
    Pair,
    down,
    multiples,
    need,
    sums,
    total,
    two_product,
    two_sum,
)
from .balance import Balanced
from .system import System, Triple


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of the optimum of each component, -inf where there is none, and what stands in its way; ``outside``
    says of each variable whether its function leaves its domain, and ``inner`` whether all prices lie in the relative
    interiors of theirs."""

    lower: Array
    outside: Array
    why: str
    inner: bool


def lower_bound(system: System, box: Balanced, plain: bool = False) -> LowerBound:
    """``- sum f*(v) - <v, t>`` over all of a box, rounded downwards: by weak duality not more than the infimum.

    Where ``plain``, roundings and low parts are paid for instead of avoided.
    """
    lost, outside, why = box.lost.copy(), np.zeros(system.size, dtype=bool), [box.why] if box.why else []
    found, inner = list[tuple[Array, Pair]](), True
    for one in system.summands:
        s, component, bad = one.scale, system.form.component[one.node], np.zeros(one.shape[0], dtype=bool)
        need(((s >= 1.0 / RANGE) & (s <= RANGE)).all(), f"a scale of {one.name} is out of range")
        for some in one.some():
            high, low, off = (one.taken(x)[some] for x in (box.high, box.low, box.spread))
            off = (off + np.abs(low)) * (1.0 + 2 * EPS) if plain else off
            b, spread = _scaled(high, low, off, s[some, None], plain)
            inner = inner and one.inner(b, spread, some)
            value = one.bound(b, spread, some)
            bad[some] = ~(value < np.inf)
            pair = multiples(s[some], np.where(bad[some], 0.0, value))
            if one.targets is not None:
                take = _plainly if plain else _exactly
                t_high, t_low, t_off = (t[some] for t in one.targets)
                pair = take(pair, (high, low, off), (t_high, t_low, t_off))
            found.append((component[some], pair))
        if bad.any():
            first = int(np.argmax(bad))
            why.append(f"{one.name} leaves its domain at node {system.form.labels[int(one.node[first])]!r}")
            lost[component[bad]] = True
            outside[one.columns] = np.repeat(bad, one.shape[1])
    lower = np.where(lost, -np.inf, down(sums(found, len(lost), plain)))
    return LowerBound(lower, outside, "; ".join(why[:3]), inner)


@dataclass(frozen=True)
class Enclosed:
    """A lower bound, and the dual point next to which it was found.

    Attributes
    ----------
    lower : (components,) array
        A lower bound of the optimum of each component; -inf where none was found. One number alone is a bound of all
        together.
    dual_point : DualPoint
    spread : tuple of arrays
        An exactly balanced point has its flows within ``dual_point.flows +- spread``.
    why : str
        What failed, where a bound is missing.
    inner : bool
        Whether the prices of the exactly balanced point lie in the relative interior of their domains.
    box : Balanced
        All variables of that point; None where that is not known.
    """

    lower: Array
    dual_point: DualPoint
    spread: tuple[Array, ...]
    why: str = ""
    inner: bool = False
    box: Balanced | None = None

    @property
    def value(self) -> float:
        """The sum of the bounds, rounded downwards."""
        if not np.isfinite(self.lower).all():
            return -np.inf
        exact = math.fsum(self.lower)
        return exact if exact == 0.0 and not self.lower.any() else float(np.nextafter(exact, -np.inf))


def _scaled(high: Array, low: Array, off: Array, s: Array, plain: bool) -> tuple[Array, Array]:
    """v / s, and how far that may be off. Where it is a float, a domain's end is met exactly."""
    v, left = (high, 0.0) if plain else two_sum(high, low)
    b = v / s
    off = off + np.abs(left)
    around = off / s * (1.0 + 4 * EPS) + DUST * (off > 0.0)
    if plain:
        return b, around * (1.0 + EPS) + np.where(b == 0.0, DUST * (v != 0.0), EPS * np.abs(b) + DUST)
    back, rest = two_product(b, np.broadcast_to(s, b.shape))
    exact = (back == v) & (rest == 0.0) & ((np.abs(v) >= UNDERFLOW) | (v == 0.0))
    return b, (around + np.where(exact, 0.0, EPS * np.abs(b) + DUST)) * (1.0 + EPS)


def _plainly(value: Pair, given: Triple, targets: Triple) -> Pair:
    """value - <v, t>, row by row, v and t within what they may be off."""
    (v, _, off), (t_high, t_low, t_off) = given, targets
    size = (np.abs(v) * np.abs(t_high)).sum(axis=1)
    lost = off * np.abs(t_high) + (np.abs(v) + off) * (np.abs(t_low) + t_off) + DUST * ((v != 0.0) | (off != 0.0))
    found = value.high - (v * t_high).sum(axis=1)
    rounded = (v.shape[1] + 2) * EPS * size + EPS * np.abs(found)
    return Pair(found, value.low, (value.error + rounded + lost.sum(axis=1)) * MORE)


def _exactly(value: Pair, given: Triple, targets: Triple) -> Pair:
    """The same, with products split, and added up without rounding."""
    (high, low, off), (t_high, t_low, t_off) = given, targets
    p, e = two_product(high, t_high)
    crossed = high * t_low, low * t_high
    size = np.abs(crossed[0]) + np.abs(crossed[1])
    lost = 2 * EPS * size + np.abs(low * t_low) + off * (np.abs(t_high) + np.abs(t_low))
    lost = lost + (np.abs(high) + np.abs(low) + off) * t_off
    lost = lost * MORE + 4 * DUST * ((high != 0.0) | (low != 0.0) | (off != 0.0))
    parts = [-x for each in (p, e, crossed[0] + crossed[1]) for x in each.T]
    return total([value.high, *parts], [value.error, lost.sum(axis=1)])
