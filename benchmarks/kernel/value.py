"""The dual value over a box of prices and flows, from below, component by component."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphreg.certificate.enclosure.sums import two_product, two_sum
from graphreg.terms import Array

from .arithmetic import SMALL, TINY, U, run_sums, upwards
from .balance import Balanced
from .system import Summand, System


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of the optimum of each component, -inf where there is none, and what stands in its way; ``outside``
    says of each variable whether its function leaves its domain."""

    lower: Array
    outside: Array
    why: str


def lower_bound(system: System, box: Balanced) -> LowerBound:
    """``- sum f*(v) - <v, t>`` over all of a box, rounded downwards: by weak duality not more than the infimum."""
    lost, outside = box.lost.copy(), np.zeros(system.size, dtype=bool)
    parts, where, why = _Parts(system.form.n_components), [], [box.why] if box.why else []
    for each in system.summands:
        high, low, off = (each.taken(x) for x in (box.high, box.low, box.spread))
        value = _conjugate(each, high, low, off)
        bad = ~(value < np.inf)
        if bad.any():
            first = int(np.argmax(bad))
            why.append(f"{each.name} leaves its domain at node {system.form.labels[int(each.node[first])]!r}")
            lost[each.component[bad]] = True
            outside[each.columns] = np.repeat(bad, each.shape[1])
            value = np.where(bad, 0.0, value)
        parts.add(-value, each.component)
        _targets(parts, each, high, low, off)
    where = parts.down()
    return LowerBound(np.where(lost, -np.inf, where), outside, "; ".join(why[:3]))


def _conjugate(each: Summand, high: Array, low: Array, off: Array) -> Array:
    """Not less than s f*(v / s) over the box. Where v / s is a float, a domain's end is met exactly."""
    s = each.scale[:, None]
    v, left = two_sum(high, low)
    b = v / s
    back, rest = two_product(b, np.broadcast_to(s, b.shape))
    exact = (back == v) & (rest == 0.0) & ((np.abs(v) >= SMALL) | (v == 0.0))
    around = upwards((off + np.abs(left)) / s, 3) + np.where(exact, 0.0, np.abs(b) * U + TINY)
    around = upwards(around, 1)
    value = each.bound(b, around)
    found = each.scale * value
    live = ((v != 0.0) | (around != 0.0)).any(axis=1)
    with np.errstate(invalid="ignore"):
        return np.where(value < np.inf, found + np.where(live, 2 * U * np.abs(found) + TINY, 0.0), np.inf)


def _targets(parts: _Parts, each: Summand, high: Array, low: Array, off: Array) -> None:
    """-<v, t>, v = high + low within ``off``, t = t_high + t_low within ``t_off``."""
    t_high, t_low, t_off = each.t
    if not (t_high.any() or t_low.any() or t_off.any()):
        return
    p, e = two_product(high, t_high)
    c, d = high * t_low, low * t_high
    for x in (p, e, c, d):
        parts.add(-x.sum(axis=1) if x.shape[1] == 1 else -x, each.component)
    size = upwards(np.abs(c) + np.abs(d), 3) * U + upwards(np.abs(low * t_low), 1)
    box = upwards(off * (np.abs(t_high) + np.abs(t_low)), 3)
    slack = upwards((np.abs(high) + np.abs(low) + off) * t_off, 4)
    live = ((high != 0.0) | (low != 0.0) | (off > 0.0)) & ((t_high != 0.0) | (t_low != 0.0) | (t_off > 0.0))
    parts.spend(upwards((size + box + slack + 4 * TINY * live).sum(axis=1), each.shape[1] + 4), each.component)


class _Parts:
    """Numbers to be added up by component, and what they may be too high by."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: list[tuple[Array, Array]] = []
        self.spent = np.zeros(size)
        self.count = 0

    def add(self, values: Array, component: Array) -> None:
        if values.ndim == 2:
            component, values = np.repeat(component, values.shape[1]), values.ravel()
        self.values.append((component, values))

    def spend(self, amounts: Array, component: Array) -> None:
        self.spent += np.bincount(component, amounts, self.size)
        self.count += len(amounts)

    def down(self) -> Array:
        """The sums, less what they may be too high by, rounded downwards."""
        out = np.zeros(self.size)
        component = np.concatenate([np.zeros(0, dtype=int), *(c for c, _ in self.values)])
        if not len(component):
            return out
        values = np.concatenate([v for _, v in self.values])
        if self.size > 1:
            order = np.argsort(component, kind="stable")
            component, values = component[order], values[order]
        starts = np.flatnonzero(np.diff(component, prepend=-1))
        counts = np.diff(starts, append=len(component))
        at = component[starts]
        found, error = run_sums([values], starts, counts)
        down = upwards(error + upwards(self.spent[at], self.count), 3)
        bound = found - down
        out[at] = np.where(down == 0.0, bound, np.nextafter(bound, -np.inf))
        return np.where(np.isfinite(out), out, -np.inf)
