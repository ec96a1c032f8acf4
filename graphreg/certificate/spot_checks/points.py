"""The rows of a block at the points of a certificate, at weight 1, and the points at which the laws are tried on them.

Each slope b meets several x: the row's own, those of others, far ones along b, and the best for it that the prox leads
to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import TermError
from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array
from ...terms.penalties import AbstractPenalty
from .laws import (
    GRADIENT,
    PROX,
    TOGETHER,
    TermRows,
    Trial,
    composed,
    dots,
    equality,
    evenness,
    fenchel_young,
    lengths,
    membership,
    midpoints,
    sizes,
    supporting,
)

ULP = 2.0**-52
CLOSE = 0.9, 0.99, 0.999, 1.001, 1.01, 1.1  # times points, which miss nothing themselves where a prox is wrong
FAR = (1.0, 1e4)  # how far arguments are pushed along slopes, and steps of proxes, beside those of the rows' own size
APART = 1e-6  # of their size: nearer than that, points have no middle to speak of
WIDE = 1e-3  # of its size: half of the width of the boxes on which bounds are tried
FURTHER = 4.0  # how much further out proxes are tried than points lie apart
CLAIMS = 1e-3  # by which equalities may be off that no bound rests on


@dataclass(frozen=True)
class BlockRows:
    """Some rows of a block. ``x`` are differences or predictors at the primal point, ``b`` the flows or prices of the
    dual point over their weights; either is shaped (m, k) or (m,)."""

    form: Form
    block: EdgeBlock | SampleBlock
    of: TermRows
    place: Array  # (m,), within the block
    x: Array
    b: Array
    weight: Array
    extent: float  # how far the points of the block are from one another, or from where they are anchored

    def at(self, row: int) -> str:
        """The place of a row in words: its edge or its node."""
        r, block, noun = self.place[row], self.block, self.block.map.noun
        if not isinstance(block, SampleBlock):
            return f"{'on' if noun == 'edge' else 'at'} the {noun} {self.form.keys(block)[r]!r}"
        target = np.array2string(np.asarray(block.y[r]), precision=6, threshold=6)
        place = f"at the node {self.form.labels[block.node[r]]!r}" if noun == "sample" else f"at the row {int(r)}"
        return f"{place} (a sample with the coded target {target})"

    def take(self, rows: Array) -> BlockRows:
        own = {name: getattr(self, name)[rows] for name in ("place", "x", "b", "weight")}
        return replace(self, of=self.of.take(rows), **own)

    def along(self) -> Array:
        """The directions of the slopes; where these are 0, one that nothing singles out."""
        any_way = np.cos(1.0 + np.arange(self.b[0].size)).reshape(self.b[0].shape)
        b = np.where(self._column(lengths(self.b)) > 0.0, self.b, any_way)
        return b / self._column(lengths(b))

    def _column(self, numbers: Array) -> Array:
        """Numbers per row that broadcast against the points of the rows."""
        return numbers.reshape(-1, *[1] * (self.b.ndim - 1))

    def near(self, x: Array) -> Array:
        """A mask of points among those of the rows, where the optimum may be: what is missed there is charged."""
        return lengths(x - self.x) <= 10.0 * self.extent

    def from_anchor(self) -> tuple[Array, Array]:
        """x - t, and how far that is off."""
        t = self.of.anchor
        rounding = 4.0 * ULP * (np.abs(self.x) + np.abs(t))
        return self.x - t, np.where(t == 0.0, 0.0, rounding)


def rows_of(form: Form, block: EdgeBlock | SampleBlock, w: Array, slopes: Array) -> BlockRows:
    """The rows of a block with finite points and a positive weight, at parameters and flows or prices."""
    if isinstance(block, SampleBlock):
        weight, x, of = block.scale, block.predict(w), TermRows(block.loss, (block.y,))
    else:
        weight, x, of = block.weight, block.difference(w), TermRows(block.penalty)
    with np.errstate(divide="ignore", invalid="ignore"):
        b = slopes / weight.reshape(-1, *[1] * (slopes.ndim - 1))
    reach = 1.0
    if len(x):
        reach = float(min(np.ptp(x, axis=0).max(initial=0.0), np.abs(x - of.anchor).max(initial=0.0)) or 1.0)
    rows = BlockRows(form, block, of, np.arange(len(weight)), x, b, weight, reach)
    fine = weight > 0.0
    for each in (x, b):
        fine &= np.isfinite(each.reshape(len(each), math.prod(each.shape[1:]))).all(axis=1)
    rows = rows if fine.all() else rows.take(np.flatnonzero(fine))
    return replace(rows, b=rows.of.closed(rows.b))


def own_points(rows: BlockRows) -> Iterator[Trial]:
    """The residuals of the rows themselves: if the bounds cross, one of these is negative."""
    of, x, b = rows.of, rows.x, rows.b
    yield replace(fenchel_young(of, x, b), side="below")
    if isinstance(rows.block, EdgeBlock) and rows.block.map.noun == "edge":  # -x is as good an argument as x
        yield replace(evenness(of, x), b=b)
    if of.writes("value_bound"):
        r, spread = rows.from_anchor()
        bound, value = of.value_bound(r, spread), of.value(x)
        said = {"x": x, "value(x)": value, "value_bound(x, 0)": bound}
        size = np.abs(value) + sizes(of.anchor, b)
        yield Trial("value_bound(x, 0) >= value(x)", value - bound, size, said, x, b, "above")


def other_points(rows: BlockRows) -> Iterator[Trial]:
    """Further trials, on a few of the rows."""
    of, x, b = rows.of, rows.x, rows.b
    points, conjugate = list(_arguments(rows)), of.conjugate(b)
    for each in (*points, *(of.anchor + share * (x - of.anchor) for share in CLOSE)):
        yield replace(fenchel_young(of, each, b, conjugate), side="below")
    if of.writes("conjugate_bound"):
        bound = of.conjugate_bound(b, np.zeros(b.shape)) + dots(b, np.broadcast_to(of.anchor, b.shape))
        for each in (x, *points):
            yield replace(fenchel_young(of, each, b, bound, "conjugate_bound"), side="below")
    yield from _slopes(rows)
    mu, value = of.convexity(), of.value(x)
    for each in points:
        apart = lengths(each - x) > APART * (lengths(each) + lengths(x))
        trial = midpoints(of, each, x, mu, value)
        known = apart & np.isfinite(trial.said["value((x + z) / 2)"])
        yield replace(trial, excess=np.where(known, trial.excess, -np.inf), b=b)
    yield from _boxes(rows)
    composition = None if of.targets else of.term.composed()  # R and h, where f(x) = h(Rx)
    if composition is not None:
        R, h = composition
        for each in (x, *points):
            yield replace(composed(of, each, R, h), b=b, side="below")


def _arguments(rows: BlockRows) -> Iterator[Array]:
    """Arguments for the slopes of the rows: those of other rows, far ones along the slopes, and where <x, b> - f(x) is
    larger, as the prox has it."""
    x, b, m = rows.x, rows.b, len(rows.x)
    yield np.broadcast_to(rows.of.anchor, x.shape)
    for k in {1, m // 2, m // 3} - {0}:
        yield np.roll(x, k, axis=0)
    along = rows.along()
    reach, slope = rows.extent, float(np.abs(b).max(initial=0.0))
    for length in (reach, *FAR):
        yield x + length * along
    for step in (reach / slope if slope > 0.0 else 1.0, *FAR):
        yield from _tried(rows.of.prox, x + step * b, step)


def _slopes(rows: BlockRows) -> Iterator[Trial]:
    """The laws at other slopes, where no bound was taken: gradients at the rows' points, and what the prox leaves of
    them."""
    of, x, step = rows.of, rows.x, 1.0
    found = [*(_tried(of.gradient, x) if of.smooth else ()), *((x - p) / step for p in _tried(of.prox, x, step))]
    for b in map(of.closed, found):
        conjugate = of.conjugate(b)
        for each in (x, np.broadcast_to(of.anchor, x.shape)):
            yield fenchel_young(of, each, b, conjugate)


def _boxes(rows: BlockRows) -> Iterator[Trial]:
    """Bounds over boxes are not less than what they bound, at points well inside."""
    of, letter = rows.of, rows.of.letter
    if of.writes("value_bound"):
        r, rounding = rows.from_anchor()
        spread = rounding + WIDE * np.abs(r)
        bound = of.value_bound(r, spread)
        for sign in (1.0, -1.0):
            x = rows.x + sign * (spread - rounding) / 2
            value = of.value(x)
            said = {"x": x, "value(x)": value, "value_bound around it": bound}
            law = "value_bound(z, spread) >= value(x) for x within z +- spread"
            yield Trial(law, value - bound, np.abs(value) + sizes(of.anchor, rows.b), said, x, rows.b)
    if of.writes("conjugate_bound"):
        b, t = rows.b, np.broadcast_to(of.anchor, rows.b.shape)
        bound = of.conjugate_bound(b, WIDE * np.abs(b))
        for sign in (1.0, -1.0):
            v = b * (1.0 + sign * WIDE / 2)  # where the domain is that of a subspace, in that
            value = of.conjugate(v) - dots(v, t)
            size = np.where(np.isfinite(value), np.abs(value), 0.0) + sizes(v, t)
            said = {letter: v, f"conjugate({letter})": value, "conjugate_bound around it": bound}
            law = f"conjugate_bound(v, spread) >= conjugate({letter}) for {letter} within v +- spread"
            yield Trial(law, value - bound, size, said, rows.x, v)


# ---- claims that no bound rests on: a solve that they mislead ends without a certificate, and says so ----------------
def numbers(rows: BlockRows) -> Iterator[Trial]:
    """Numbers where numbers must be."""
    of, letter = rows.of, rows.of.letter
    for name, at, point in (("value", "x", rows.x), ("conjugate", letter, rows.b)):
        found = of.value(point) if name == "value" else of.conjugate(point)
        excess = np.where(np.isnan(found), np.inf, 0.0)
        law = f"{name}({at}) is a number, or +inf outside its domain"
        said = {at: point, f"{name}({at})": found}
        yield Trial(law, excess, np.zeros(len(excess)), said, rows.x, rows.b)


def shaped(rows: BlockRows) -> None:
    """Refuse a value, a conjugate or a prox, with one step per row, of another shape than rows ask for."""
    of, x, count = rows.of, rows.x, len(rows.place)
    for name, given in (("value", (x,)), ("conjugate", (rows.b,)), ("prox", (x, np.ones(count)))):
        shape = x.shape if name == "prox" else (count,)
        steps = f" and one step per row, {count} of them," if name == "prox" else ""
        asked = f"{of.term.called()}.{name} of an argument of the shape {x.shape}{steps}"
        remedy = f"must have the shape {shape}; graphreg.testing.{of.checker} tries every method"
        try:
            found = np.shape(getattr(of, name)(*given))
        except np.linalg.LinAlgError:  # a ValueError that says nothing of shapes
            raise
        except ValueError as error:  # of numpy, where shapes do not fit
            raise TermError(f"{asked} raises {type(error).__name__} ({str(error).strip()}), but {remedy}") from error
        except Exception:  # noqa: BLE001 - a method that cannot be used is named by the solve that uses it
            continue
        if found != shape:
            raise TermError(f"{asked} has the shape {found}, but {remedy}")


def claims(rows: BlockRows) -> Iterator[Trial]:
    """Numbers, and proxes, gradients and projections that are those of the value; what asks the conjugate, too, comes
    behind what asks the value alone."""
    of, x, together = rows.of, rows.x, list[Trial]()
    yield from numbers(rows)
    if of.project is not None:
        for p in _tried(of.project, x):
            yield replace(membership(of, x, p), b=rows.b)
    for b in _tried(of.gradient, x) if of.smooth else ():
        yield _loosely(equality(of, x, of.closed(b), GRADIENT))
    for v, step in _before_proxes(rows):
        for p in _tried(of.prox, v, step):
            b, asked = of.closed((v - p) / _wide(step, v)), {"v": v, "t": step}
            off = 4.0 * ULP * (lengths(v) + lengths(p)) / step  # of b, by rounding
            for z in (v, np.broadcast_to(of.anchor, v.shape)):
                trial = _loosely(supporting(of, p, b, z, PROX))
                yield replace(trial, said=asked | trial.said, excess=trial.excess - off * lengths(z - p))
            trial = _loosely(equality(of, p, b, TOGETHER))
            together.append(replace(trial, said=asked | trial.said, excess=trial.excess - off * lengths(p)))
    yield from together
    if not of.targets and of.writes("gauge_at_zero"):
        for u in _tried(_pulled, rows.b, of.term) + _tried(_pulled, rows.along(), of.term):
            conjugate, size = of.conjugate(u), rows.extent * lengths(u)
            law = "conjugate(u) = 0 where gauge_at_zero(u) < 1, as proofs of clusters have it"
            yield Trial(law, conjugate - CLAIMS * size, size, {"u": u, "conjugate(u)": conjugate}, x, u)


def _pulled(u: Array, penalty: AbstractPenalty) -> Array:
    """Flows along u, just inside those that gauge_at_zero says 0 takes up."""
    return u * ((1.0 - CLAIMS) / np.maximum(penalty.gauge_at_zero(u), CLAIMS))[:, None]


def _before_proxes(rows: BlockRows) -> Iterator[tuple[Array, Array]]:
    """Where proxes are tried, and at which steps: x + t b, which the prox leads back to x at an optimum, and points far
    out, where kinks are behind them. Either has both signs and two steps, of which one at least is not 1; and every
    other row a longer one, since a prox takes one per row."""
    x, size = rows.x, max(1.0, rows.extent)
    far, each = FURTHER * size * rows.along(), 1.0 + 0.5 * (np.arange(len(x)) % 2)
    yield x, each
    for sign, step in ((1.0, FURTHER * size), (-1.0, size / FURTHER)):
        yield sign * (x + _wide(step * each, x) * rows.b), step * each
        yield -sign * far, step / FURTHER * each


def _wide(step: Array, v: Array) -> Array:
    """One step per row, beside the rows."""
    return step.reshape(-1, *[1] * (v.ndim - 1))


def _loosely(trial: Trial) -> Trial:
    """The trial of a law that no bound rests on, where its numbers are finite: rounding may leave a domain."""
    known = np.isfinite(trial.size)
    excess = np.where(known, trial.excess - CLAIMS * trial.size, 0.0)
    return replace(trial, excess=excess, size=np.where(known, trial.size, 0.0))


def _tried(function: Callable[..., Array], *given: Any) -> list[Array]:
    """The values of a method at points that no solve has asked it for: none where it raises, or is not finite."""
    try:
        found = function(*given)
    except Exception:  # noqa: BLE001 - no law says that these points can be taken
        return []
    return [found] if np.shape(found) == np.shape(given[0]) and np.isfinite(found).all() else []
