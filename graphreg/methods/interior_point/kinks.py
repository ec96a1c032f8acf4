"""The cones of a block with kinks or bounds, and what they pull with at an iterate.

s lies in the cones and y in their duals, one cone a column. What the flows or prices of the block are follows from y,
and how far its rows are from where s says from w (and y, where conjugates are curved).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ...form import EdgeBlock, SampleBlock
from ...oracles import SystemRows
from ...terms import Array
from ...terms.penalties import AbstractPenalty, slopes
from .cones import TINY, Scaling, lengths

INSIDE = 1e-3  # of their length: rows nearer to the boundary at first have lost what scalings need
MARGIN = 1e-12  # relative; nearer to it than rounding knows, nothing is
CLEARLY = 0.03  # of the share of a capacity that is left, below which a length relative to the longest is taken for 0
FREE = 1e-30  # the least curvature of a row between bounds
LEAST = 1e-120  # a length of which the square is seen


class AbstractPulls(ABC):
    """What the cones of a block pull with at an iterate: its flows change by D K dw - g, where g is what is asked for.

    Where the flows of the block are unknowns of the system, D is its inverse.
    """

    D: Array  # (m, k, k)
    open = False  # whether w may be outside

    def __init__(self, cones: AbstractCones, scaling: Scaling, off: Array | float) -> None:
        self.cones: Any = cones
        self.rows, self.scaling, self.off = cones.rows, scaling, off

    @abstractmethod
    def asked(self, r: Array, balancing: float) -> tuple[Array, Any]:
        """g, (k, m), and what `moves` needs of r."""

    def level(self, g: Array, balancing: float) -> Array:
        """D^-1 g, where D is the inverse: what K dw is with flows that stay."""
        return times(self.D, g)

    @abstractmethod
    def moves(self, z: Array, of_r: Any, balancing: float) -> Array:
        """ds where K dw = z, (k, m)."""


class AbstractCones(ABC):
    """The cones of one block."""

    pulls: ClassVar[type[AbstractPulls]]

    def __init__(self, block: SampleBlock | EdgeBlock, rows: SystemRows) -> None:
        self.block: Any = block
        self.rows = rows

    @abstractmethod
    def start(self, w: Array, far: Array, worth: float, flows: Array | None) -> tuple[Array, Array]:
        """s and y at w: typical rows are ``far`` (k, m) from 0, and what they are worth is known; given flows, near
        these."""

    def off(self, w: Array, s: Array, y: Array) -> Array | float:
        """s less what w says that it is; 0 where s is made from w."""
        return 0.0

    def worth(self, off: Array | float, y: Array) -> float:
        """What that is worth at most."""
        return float(np.abs(off * y[-len(off) :]).sum()) if isinstance(off, np.ndarray) else 0.0

    @abstractmethod
    def flows(self, y: Array) -> Array:
        """The flows of the block, or its prices, (m, k)."""

    def along(
        self, scaling: Scaling, s: Array, y: Array, w: Array, before: Array, du: Array | None
    ) -> tuple[Array, Array]:
        """s and y of scaled ones, at w; ``du`` is by how much the flows fell, where they are unknowns."""
        return scaling.apply(s), scaling.undo(y)

    def resized(self, y: Array) -> Array:
        """The y of another strength, as large a share of the capacities here as there."""
        return y


# ---- norms -----------------------------------------------------------------------------------------------------------
class NormPulls(AbstractPulls):
    """The cones t >= ||p||. With q = W^-1 r the first row of dy, which is 0, gives dt = (q_0 - a b'dp) / a, and dy is
    q_1 - b q_0 - D dp, where dp = dz + soft dy."""

    def __init__(self, cones: NormCones, scaling: Scaling, off: Array | float) -> None:
        super().__init__(cones, scaling, off)
        self.b, self.a, self.D = scaling.reduced(cones.soft)
        if cones.rows.places is not None:
            self.D = scaling.inverse(cones.soft)

    def asked(self, r: Array, balancing: float) -> tuple[Array, Any]:
        q = self.scaling.undo(r)
        g = still = q[1:] - self.b * q[0]  # dy where p stays
        if self.cones.is_soft:
            g = self.scaling.stays(still, self.cones.soft)
            g = g if self.rows.places is not None else g + balancing * times(self.D, np.asarray(self.off))
        return g, (q[0], still)

    def level(self, g: Array, balancing: float) -> Array:
        return super().level(g, balancing) + balancing * self.off

    def moves(self, z: Array, of_r: Any, balancing: float) -> Array:
        first, still = of_r
        p = z - balancing * self.off
        if self.cones.is_soft:
            p = self.scaling.stays(p + self.cones.soft * still, self.cones.soft)
        return self.scaling.undo(np.vstack([first / self.a - np.einsum("ij,ij->j", self.b, p), p]))


class NormCones(AbstractCones):
    """s = (t, p) with t >= ||p||, c t in the objective, and y = (c, -u): Euclidean norms of the pieces z of the rows,
    p = z; or r times such a norm, smoothed (see `envelope` of penalties), p = z - u / weight."""

    pulls = NormPulls

    def __init__(self, block: EdgeBlock, rows: SystemRows, most: Array) -> None:
        super().__init__(block, rows)
        each = np.broadcast_to(block.weight[:, None], (block.count, rows.m // max(block.count, 1)))
        radius = block.penalty.envelope()
        self.is_soft = radius is not None
        self.soft = 1.0 / each.ravel() if self.is_soft else np.zeros(rows.m)
        self.c = np.minimum((radius or 1.0) * each, most.reshape(-1, rows.k).sum(axis=1)).ravel()

    def start(self, w: Array, far: Array, worth: float, flows: Array | None) -> tuple[Array, Array]:
        z = self.rows.columns(self.block.difference(w))
        u = np.zeros_like(z) if flows is None else self.rows.columns(flows)
        u = -0.5 * u * np.minimum(1.0, self.c / np.maximum(lengths(u), TINY))
        p = z + self.soft * u
        far = np.maximum(np.sqrt(np.mean(far**2, axis=0)), INSIDE * lengths(p))
        return np.vstack([_some(np.sqrt(far**2 + lengths(p) ** 2)), p]), np.vstack([self.c, u])

    def off(self, w: Array, s: Array, y: Array) -> Array | float:
        if self.rows.places is None and not self.is_soft:
            return 0.0
        return s[1:] - self.rows.columns(self.block.difference(w)) - self.soft * y[1:]

    def flows(self, y: Array) -> Array:
        return np.ascontiguousarray(-y[1:].T).reshape(self.block.count, -1)

    def along(
        self, scaling: Scaling, s: Array, y: Array, w: Array, before: Array, du: Array | None
    ) -> tuple[Array, Array]:
        top, p = (moved := scaling.apply(s))[0], moved[1:]
        if du is None:
            u, p = scaling.undo(y)[1:], p if self.is_soft else self.rows.columns(self.block.difference(w))
        else:  # the scaled ones have lost the digits of the balance
            u = before[1:] - du
        u *= np.minimum(1.0, (1.0 - MARGIN) * self.c / np.maximum(lengths(u), TINY))
        return np.vstack([np.maximum(top, (1.0 + MARGIN) * lengths(p) + TINY), p]), np.vstack([self.c, u])

    def resized(self, y: Array) -> Array:
        return y * (self.c / y[0])

    def kept(self, s: Array, y: Array, unit: float) -> Array:
        """Flows that are 0 where the ends of an edge are together, and as large as they may be elsewhere; differences
        are large beside the largest, and beside a ``unit``, where all may tend to 0."""
        slack, size = 1.0 - lengths(y[1:]) / self.c, s[0] / max(float(s[0].max(initial=0.0)), unit, TINY)
        inside = np.where(slack * CLEARLY > size, 0.0, self.c)  # of a cone only one of the two tends to 0
        return self.flows(-np.broadcast_to(inside / np.sqrt(len(y) - 1.0), y.shape))


# ---- bounds ----------------------------------------------------------------------------------------------------------
class SidePulls(AbstractPulls):
    """One number a cone, whose s need not be what w says as yet."""

    open = True

    def __init__(self, cones: SideCones, scaling: Scaling, off: Array | float) -> None:
        super().__init__(cones, scaling, off)
        self.bend = scaling.eta**-2
        D = cones.sums(self.bend)
        self.D = (D if cones.rows.places is None else 1.0 / np.maximum(D, FREE))[:, None, None]

    def asked(self, r: Array, balancing: float) -> tuple[Array, Any]:
        pull = self.scaling.undo(r) + balancing * self.off * self.bend
        return self.cones.sums(self.cones.side * pull[0])[None], None

    def moves(self, z: Array, of_r: Any, balancing: float) -> Array:
        return self.scaling.undo(self.cones.side * z[:, self.cones.of] - balancing * self.off)


class SideCones(AbstractCones):
    """s = side (z - bound) >= 0 for the numbers of the rows that have a bound, twice for those that have two."""

    pulls = SidePulls

    def __init__(self, block: EdgeBlock, rows: SystemRows) -> None:
        super().__init__(block, rows)
        shape, penalty = (block.count, rows.m // max(block.count, 1)), block.penalty
        low, high = (np.broadcast_to(each, shape).ravel() for each in (penalty.low, penalty.high))  # pyright: ignore[reportAttributeAccessIssue]  (a box)
        one, two = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
        self.of, self.bound = np.append(one, two), np.append(low[one], high[two])
        self.side = np.repeat([1.0, -1.0], [len(one), len(two)])

    def sums(self, each: Array) -> Array:
        """Over the bounds of each number."""
        return np.bincount(self.of, each, self.rows.m)

    def _inside(self, w: Array) -> Array:
        return self.side * (self.block.difference(w).ravel()[self.of] - self.bound)[None]

    def start(self, w: Array, far: Array, worth: float, flows: Array | None) -> tuple[Array, Array]:
        z = self._inside(w)  # begun as far inside as w is outside
        s = _some(np.maximum(z, np.maximum(far[:, self.of], -float(z.min(initial=0.0)))))
        return s, worth / s

    def off(self, w: Array, s: Array, y: Array) -> Array:
        return s - self._inside(w)

    def flows(self, y: Array) -> Array:
        return -self.sums(self.side * y[0]).reshape(self.block.count, -1)


# ---- largest numbers -------------------------------------------------------------------------------------------------
class HeightPulls(AbstractPulls):
    """With the curvatures b and a of t - z_j and t + z_j, S = a + b, e = a - b and q = W^-1 r, that the sum of all dy
    is 0 gives dt = (sum q - e'dz) / sum S, and D = diag(S) - e e' / sum S; D and its inverse are written without
    differences."""

    def __init__(self, cones: AbstractCones, scaling: Scaling, off: Array | float) -> None:
        super().__init__(cones, scaling, off)
        rows = cones.rows
        b, a = self._rows(scaling.eta**-2)
        S, self.e, both, k = a + b, a - b, 4.0 * a * b, np.arange(rows.k)
        self.total = S.sum(axis=1)
        if rows.places is None:
            self.D = np.einsum("mi,mj->mij", -self.e / self.total[:, None], self.e)
            others = np.stack([np.delete(S, j, axis=1).sum(axis=1) for j in k], axis=1)
            self.D[:, k, k] = (S * others + both) / self.total[:, None]
        else:
            v = self.e / S
            self.D = np.einsum("mi,mj->mij", v / (both / S).sum(axis=1)[:, None], v)
            self.D[:, k, k] += 1.0 / S

    def _rows(self, each: Array) -> Array:
        return each.reshape(2, -1, self.rows.k)

    def asked(self, r: Array, balancing: float) -> tuple[Array, Any]:
        minus, plus = self._rows(self.scaling.undo(r))
        height = (plus + minus).sum(axis=1) / self.total
        return (plus - minus - self.e * height[:, None]).T, height

    def moves(self, z: Array, of_r: Any, balancing: float) -> Array:
        height = of_r - np.einsum("mi,im->m", self.e, z) / self.total
        return self.scaling.undo(np.stack([height[:, None] - z.T, height[:, None] + z.T]).reshape(1, -1))


class HeightCones(AbstractCones):
    """s = t - z_j >= 0 and t + z_j >= 0 for the largest t of the k numbers of a row, and c t in the objective: the sum
    of its y is c."""

    pulls = HeightPulls

    def start(self, w: Array, far: Array, worth: float, flows: Array | None) -> tuple[Array, Array]:
        z = self.block.difference(w)
        height, k = np.abs(z).max(axis=1, initial=0.0)[:, None], self.rows.k
        s = np.stack([height - z, height + z]).reshape(1, -1)
        return s + np.tile(far.mean(axis=0).repeat(k), 2), np.tile(np.repeat(self.block.weight / (2.0 * k), k), 2)[None]

    def flows(self, y: Array) -> Array:
        minus, plus = y.reshape(2, self.block.count, -1)
        return minus - plus

    def resized(self, y: Array) -> Array:
        each = y.reshape(2, self.block.count, -1)
        return (each * (self.block.weight / each.sum(axis=(0, 2)))[:, None]).reshape(1, -1)


# ---- losses of pieces ------------------------------------------------------------------------------------------------
class BoxPulls(AbstractPulls):
    """With th = q + z_b / b + z_c / c, the box of each piece answers to its row: db = (side dr - asked) / th."""

    def __init__(self, cones: BoxCones, scaling: Scaling, off: Array | float) -> None:
        super().__init__(cones, scaling, off)
        self.eta = scaling.eta
        bends = self.eta**2
        self.th = cones.q + cones.both(bends, bends)
        D = cones.sums(1.0 / self.th)
        self.D = (D if cones.rows.places is None else 1.0 / D)[:, None, None]

    def asked(self, r: Array, balancing: float) -> tuple[Array, Any]:
        each = self.eta * r[0]
        asked = self.cones.both(-each, each) + balancing * self.off
        return self.cones.sums(self.cones.side * asked / self.th)[None], (r, asked)

    def moves(self, z: Array, of_r: Any, balancing: float) -> Array:
        r, asked = of_r
        by = (self.cones.side * z[0, self.cones.of] - asked) / self.th
        return r - (self.eta * self.cones.ends(by, -by))[None]


class BoxCones(AbstractCones):
    """A loss whose derivative is piecewise linear (see `Bends`), as its dual says it: the price of a row is the sum of
    side b over the pieces of its loss, each of which is max over 0 <= b <= width of side b (r - place) - q b^2 / 2.

    y are the b and, where the width is finite, the width - b; s, z_b and z_c, are the multipliers of these bounds:
    side (r - place) - q b = z_c - z_b.
    """

    pulls = BoxPulls

    def __init__(self, block: SampleBlock, rows: SystemRows) -> None:
        super().__init__(block, rows)
        y = block.y.ravel()
        bends, scale = block.loss.bends(y), np.repeat(block.scale, len(y) // max(block.count, 1))
        assert bends is not None
        self.base, pieces = bends.pieces()
        self.of, self.side = (np.concatenate([each[k] for each in pieces]) for k in (0, 1))
        self.place, self.q, width = (np.concatenate([each[k] for each in pieces]) for k in (2, 3, 4))
        weight, self.many = scale[self.of], len(self.of)
        self.base, self.q, width = scale * self.base, self.q / weight, weight * width
        finite = np.isfinite(width)
        self.capped = slice(None) if finite.all() else np.flatnonzero(finite)
        self.width = width[self.capped]
        self.place = self.place + block.loss.anchor(block.y).ravel()[self.of]
        if len(self.of) == rows.m and (self.of[1:] > self.of[:-1]).all():  # one piece for each
            self.of = slice(None)

    def sums(self, each: Array) -> Array:
        """Over the pieces of each row."""
        return each if isinstance(self.of, slice) else np.bincount(self.of, each, self.rows.m)

    def both(self, low: Array, high: Array) -> Array:
        """For each piece what is ``low`` at its lower end and what is ``high`` at its upper one, if it has one."""
        out = low[: self.many].copy()
        out[self.capped] += high[self.many :]
        return out

    def ends(self, low: Array, high: Array) -> Array:
        """Of every end, given both of every piece."""
        return np.append(low, high[self.capped])

    def _beyond(self, w: Array) -> Array:
        """side (r - place) of each piece."""
        return self.side * (self.block.difference(w).ravel()[self.of] - self.place)

    def start(self, w: Array, far: Array, worth: float, flows: Array | None) -> tuple[Array, Array]:
        r, capped = self._beyond(w), np.zeros(self.many, dtype=bool)
        capped[self.capped] = True
        b = np.empty(len(r))
        b[capped] = self.width / 2.0
        b[~capped] = _positive(r[~capped] / self.q[~capped])
        p = r - self.q * b
        high = np.where(capped, _positive(p), 0.0)
        low = np.where(capped, high - p, -p)
        return self.ends(low, high)[None], np.append(b, self.width / 2.0)[None]

    def off(self, w: Array, s: Array, y: Array) -> Array:
        return self.both(-s[0], s[0]) - self._beyond(w) + self.q * y[0, : self.many]

    def worth(self, off: Array | float, y: Array) -> float:
        return float(np.abs(off * y[0, : self.many]).sum())

    def flows(self, y: Array) -> Array:
        return (self.base + self.sums(self.side * y[0, : self.many])).reshape(self.block.offset.shape)

    def resized(self, y: Array) -> Array:
        low, high = y[0, : self.many].copy(), y[0, self.many :]
        share = self.width / (low[self.capped] + high)
        low[self.capped] *= share
        return np.append(low, high * share)[None]


class CostCones(BoxCones):
    """A penalty that costs each coordinate f by unit where it falls and r where it rises: max over -f <= u <= r of
    u z, one piece with b = u + f."""

    def __init__(self, block: EdgeBlock, rows: SystemRows) -> None:
        AbstractCones.__init__(self, block, rows)
        costs = slopes(block.penalty, rows.m // max(block.count, 1))
        assert costs is not None
        fall, rise = ((block.weight[:, None] * cost).ravel() for cost in costs)
        self.base, self.width, self.many = -fall, fall + rise, rows.m
        self.side, self.place, self.q = np.ones(rows.m), np.zeros(rows.m), np.zeros(rows.m)
        self.of = self.capped = slice(None)

    def flows(self, y: Array) -> Array:
        return (self.base + y[0, : self.many]).reshape(self.block.count, -1)


def has_costs(penalty: AbstractPenalty, k: int) -> bool:
    """True of a sum of finite costs by unit over k coordinates, alike on both sides or not."""
    costs = slopes(penalty, k)
    return costs is not None and bool(np.isfinite(costs).all())


def _some(size: Array) -> Array:
    """Lengths to begin at: 1 where the entries of a row are so small that nothing is left of them."""
    return np.where(size > LEAST, size, 1.0)


def _positive(x: Array) -> Array:
    """The positive roots t of t (t - x) = a typical x^2."""
    size = float(np.sqrt(np.mean(x**2))) if len(x) else 0.0
    size = size or 1.0
    far = 0.5 * (np.sqrt(x * x + 4.0 * size * size) + np.abs(x))
    return np.where(x > 0.0, far, size * size / far)


def times(D: Array, u: Array) -> Array:
    return np.einsum("mij,jm->im", D, u)
