"""The kinds of losses, beside `AbstractLoss` itself: those of a difference, smooth ones, quadratic ones, and those of
two straight lines, whose prices are a box, and whose prox is a clip."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ...errors import TermError
from ..bounds import ULP, ends, half_square, shown
from ..records import Array, Bends, Notation
from ..roots import increasing_root, slopes_far_out
from .loss import INSIDE, AbstractLoss, dots

FLAT = 1e-9  # the least conductance that is derived


@dataclass(frozen=True)
class AbstractDifferenceLoss(AbstractLoss):
    """A loss of x - y alone: what is large in both is taken from the targets, which are its anchors."""

    def moved(self, y: Array, by: Array, rest: Any = 0.0) -> tuple[Array, Array]:
        return (y - by) - rest, np.zeros_like(by)

    def anchor(self, y: Array) -> Array:
        return y


@dataclass(frozen=True)
class AbstractSmoothLoss(AbstractLoss):
    """A differentiable loss: ``0 <= l'' <= smoothness``, which may be infinite.

    A loss of one predictor per sample writes five methods: ``value``, ``gradient``, ``curvature``, ``conjugate`` and
    ``cvxpy``. The rest is derived, and may be overridden where a closed form is better: proxes and conductances by
    Newton's method, the domain of prices from the gradient far out, the bounds of certificates by convexity. A loss of
    a vector of predictors whose coordinates are coupled also writes ``prox``, ``conductance``, ``domain``, ``clip``.

    Examples
    --------
    >>> [issubclass(each, gr.Loss) for each in (gr.SquaredLoss, gr.LogisticLoss, gr.QuantileLoss)]
    [True, True, False]
    """

    @abstractmethod
    def curvature(self, x: Array, y: Array) -> Array:
        """l''(x; y) (where it jumps: any value between), shaped like x, or the Hessians (M, k, k)."""

    def smoothness(self) -> float:
        """The smallest L with l''(x; y) <= L everywhere; inf where there is none, or none is known."""
        return np.inf

    def curvature_within(self, low: Array, high: Array, y: Array) -> tuple[Array, Array] | None:
        """Bounds of l'' from below and above while the predictor stays in [low, high] (infinite where it may go
        anywhere), both (M,); None where no more is known than that l'' lies between `least_curvature` and `smoothness`,
        and these differ, or where the predictor is a vector. Theory that holds around a point rests on it."""
        m, L = self.least_curvature(), self.smoothness()
        return (np.full(low.shape, m), np.full(high.shape, L)) if m == L else None

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        self._alone("prox", v, y)
        step = np.asarray(step, dtype=float)
        step = step[..., None] if 0 < step.ndim < v.ndim else step
        return increasing_root(
            lambda p: p + step * self.gradient(p, y) - v, lambda p: 1.0 + step * self.curvature(p, y), v
        )

    def domain(self, y: Array) -> tuple[Array, Array]:
        if self.curvature(np.zeros(y.shape), y).ndim > y.ndim:
            return super().domain(y)
        return slopes_far_out(lambda x: self.gradient(x, y), y.shape)

    def conductance(self, b: Array, y: Array) -> Array:
        self._alone("conductance", b, y)
        x = increasing_root(lambda x: self.gradient(x, y) - b, lambda x: self.curvature(x, y), self.anchor(y))
        with np.errstate(all="ignore"):
            bend = self.curvature(x, y)  # one over that of l* at b
        return np.clip(np.nan_to_num(bend, nan=0.0), FLAT, 1.0 / FLAT)

    def typical_curvature(self, x: Array, y: Array) -> Array:
        L = self.smoothness()
        if np.isfinite(L):
            return np.full(len(y), L)
        with np.errstate(over="ignore"):
            here = np.nan_to_num(self.curvature(x, y), posinf=1.0 / FLAT)
        best = self.conductance(self.clip(np.zeros(y.shape), y), y)  # at the best of all predictors
        return np.maximum(*(each.reshape(len(y), -1).max(axis=1, initial=FLAT) for each in (here, best)))

    def smoothed(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        return self.value(x, y), self.gradient(x, y), self.curvature(x, y)

    def _alone(self, method: str, x: Array, y: Array) -> None:
        """Refuses a loss whose predictors are coupled."""
        if self.curvature(x, y).ndim > x.ndim:
            name = type(self).__name__
            raise TermError(f"{name} couples the coordinates of its predictor, and then must have a method {method}")


@dataclass(frozen=True)
class AbstractPeakedLoss(AbstractSmoothLoss):
    """A smooth loss of one predictor whose l'' rises up to some point (or for ever) and falls from there on, so that
    over an interval it is least at one of the ends.

    Examples
    --------
    >>> issubclass(gr.LogisticLoss, gr.AbstractPeakedLoss), issubclass(gr.PoissonLoss, gr.AbstractPeakedLoss)
    (True, True)
    """

    def curvature_within(self, low: Array, high: Array, y: Array) -> tuple[Array, Array]:
        near = np.isfinite(low) & np.isfinite(high)
        ends = [self.curvature(np.where(near, x, 0.0), y) for x in (low, high)]
        least = np.where(near, np.minimum(*ends), self.least_curvature())
        return least, np.full(least.shape, self.smoothness())


@dataclass(frozen=True)
class AbstractQuadraticLoss(AbstractDifferenceLoss, AbstractSmoothLoss):
    """1/2 ||x - y||^2: curvature 1 everywhere, so that the prox of a node's sum is one linear solve.

    Examples
    --------
    >>> [issubclass(each, gr.AbstractQuadraticLoss) for each in (gr.SquaredLoss, gr.MeanLoss, gr.HuberLoss)]
    [True, True, False]
    """

    @property
    @abstractmethod
    def notation(self) -> Notation: ...

    def value(self, x: Array, y: Array) -> Array:
        return dots(x - y, x - y) / 2

    def gradient(self, x: Array, y: Array) -> Array:
        return x - y

    def curvature(self, x: Array, y: Array) -> Array:
        return np.ones_like(x)

    def conjugate(self, b: Array, y: Array) -> Array:
        return dots(b, b / 2 + y)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        step = np.asarray(step, dtype=float)
        step = step[:, None] if step.ndim == 1 and v.ndim == 2 else step
        return (v + step * y) / (1.0 + step)

    domain = AbstractLoss.domain  # slopes have no limits

    def bends(self, y: Array) -> Bends:
        return Bends(np.ones(y.shape), np.zeros(y.shape), ())

    def conductance(self, b: Array, y: Array) -> Array:
        return np.ones_like(b)

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        return half_square(np.abs(r) + spread)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        return half_square(np.abs(b) + spread)

    def smoothness(self) -> float:
        return 1.0

    def least_curvature(self) -> float:
        return 1.0

    def cvxpy(self, x: Any, y: Array) -> Any:
        squares = cp.square(x - y)
        return (squares if y.ndim == 1 else cp.sum(squares, axis=1)) / 2

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        each = cp.square(b) / 2 + cp.multiply(b, y)
        return each if y.ndim == 1 else cp.sum(each, axis=1)


# ---- two straight lines ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class AbstractPiecewiseLinearLoss(AbstractLoss):
    """``l(x; y) = max over b in [low, high] of b (x - y)``: two straight lines that meet at the target.

    Its conjugate is ``l*(b; y) = b y`` on [low, high], the `domain`, and +inf elsewhere.

    Examples
    --------
    >>> issubclass(gr.QuantileLoss, gr.AbstractPiecewiseLinearLoss)
    True
    >>> issubclass(gr.HuberLoss, gr.AbstractPiecewiseLinearLoss)
    False
    """

    @abstractmethod
    def domain(self, y: Array) -> tuple[Array, Array]: ...

    def value(self, x: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return np.maximum(low * (x - y), high * (x - y))

    def gradient(self, x: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return np.where(x > y, high, np.where(x < y, low, np.clip(0.0, low, high)))

    def conjugate(self, b: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return np.where((b >= low) & (b <= high), b * y, np.inf)

    def clip(self, b: Array, y: Array) -> Array:
        low, high = self.domain(y)  # around 0; most prices are at the ends, where that of 0 is exact
        return np.clip(b, INSIDE * low, INSIDE * high)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        low, high = self.domain(y)
        return v - np.clip(v - y, step * low, step * high)

    def conductance(self, b: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return np.maximum(2.0 * np.minimum(b - low, high - b) / (high - low), 1e-3)

    def anchor(self, y: Array) -> Array:
        return y

    def bends(self, y: Array) -> Bends:
        low, high = self.domain(y)
        zero = np.zeros(y.shape)
        return Bends(zero, low, ((zero, zero, high - low),))

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        low, high = self.domain(y)
        top = np.maximum(low * (r - spread), high * (r + spread))
        rises = ((low < 0.0) & (r < spread)) | ((high > 0.0) & (r > -spread))
        return shown(np.maximum(top, 0.0) * (1.0 + 4 * ULP), rises)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        low, high = self.domain(y)
        least, most = ends(b, spread)
        return np.where((least >= low) & (most <= high), 0.0, np.inf)

    def _width(self, y: Array) -> float:
        """The distance from its kink within which the loss is smoothed: a scale of the targets."""
        return float(np.abs(y).mean()) or 1.0

    def typical_curvature(self, x: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return (high - low) / self._width(y - x)

    def smoothed(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        low, high = self.domain(y)
        h = self._width(y)
        rise, slope, bend = smooth_rise((x - y) / h)
        value = low * (x - y) + (high - low) * h * rise
        return value, low + (high - low) * slope, (high - low) * bend / h

    def cvxpy(self, x: Any, y: Array) -> Any:
        low, high = self.domain(y)
        return cp.maximum(cp.multiply(low, x - y), cp.multiply(high, x - y))

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        low, high = self.domain(y)
        return [b >= low, b <= high, cp.multiply(b, y)]


def smooth_rise(t: Array) -> tuple[Array, Array, Array]:
    """(t + sqrt(1 + t^2)) / 2 for max(0, t), with its slope in (0, 1) and its curvature.

    Far out the slope is 1 / (4 t^2) away from 0 or 1. (That of log(1 + exp(t)) is exp(-t): prices that small lie on
    the boundary of their domain but for their name.)
    """
    root = np.sqrt(1.0 + t * t)
    far = 0.5 / (root * (root + np.abs(t)))  # 1/2 (1 - |t| / root), free of cancellation
    rise = np.where(t > 0.0, 0.5 * (t + root), 0.5 / (root + np.abs(t)))
    return rise, np.where(t > 0.0, 1.0 - far, far), 0.5 / root**3
