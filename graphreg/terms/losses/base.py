"""What every loss is: a convex function of the linear predictor of one sample, summed over the samples of a node.

    sum_i scale_i sum_{r at i} weight_r l( x_r' w_i + o_r ; y_r )

A new loss is one file in this folder, or one class of the user's: a frozen dataclass that derives from
`AbstractSmoothLoss` (`graphreg.Loss`; or `AbstractQuadraticLoss`, or `AbstractPiecewiseLinearLoss`) and writes l, its
derivatives, its conjugate and its CVXPY form, all per sample. In what follows ``x`` are predictors, ``y`` coded
targets, ``b = a_r / s_r`` prices at scale 1, all of one shape: (M,), or (M, k) where the predictor is a vector.
Curvatures and conductances have that shape too, or (M, k, k) where the coordinates of a vector are coupled. (Methods
are also given stacks, (g, m) or (g, m, k).)
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...declaring import in_library
from ...errors import DataError, TermError
from ...lazy import cp
from ..blocks import Lowered, SampleBlock
from ..bounds import half_square, largest_around
from ..calculus import Strength
from ..records import Array, Descent, Notation, Space, Stated, names_of
from ..roots import increasing_root, slopes_far_out
from ._samples import AbstractSamples

INSIDE = 1.0 - 1e-14
FLAT = 1e-9  # the least conductance that is derived


@dataclass(frozen=True)
class AbstractLoss(AbstractSamples):
    """A convex loss with a closed-form conjugate, on samples (whose parameters `AbstractSamples` has)."""

    # ---- one sample; rows independent ----------------------------------------------------------------------------
    @abstractmethod
    def value(self, x: Array, y: Array) -> Array:
        """l(x; y), shape (M,)."""

    @abstractmethod
    def gradient(self, x: Array, y: Array) -> Array:
        """A (sub)gradient of l in x, in dom l*, shaped like x."""

    @abstractmethod
    def conjugate(self, b: Array, y: Array) -> Array:
        """l*(b; y) = sup over x of <b, x> - l(x; y), shape (M,); +inf outside its domain, with zero tolerance."""

    @abstractmethod
    def prox(self, v: Array, step: Any, y: Array) -> Array:
        """argmin over p of ``step * l(p; y) + 1/2 ||p - v||^2``; ``step`` is a number or one per sample."""

    @abstractmethod
    def cvxpy(self, x: Any, y: Array) -> Any:
        """l as a CVXPY expression with one value per sample."""

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        """l* as a CVXPY expression with one value per sample, or as a list: the constraints of its domain, then the
        expression. Needed only for the dual form."""
        raise TermError(
            f"{self.called()} has no method cvxpy_conjugate, which the dual form needs; "
            "add one, or compile the primal form"
        )

    @abstractmethod
    def conductance(self, b: Array, y: Array) -> Array:
        """How readily a price (at scale 1) gives way in the repair: non-negative, shaped like b, or a positive
        semidefinite matrix (k, k) per sample that keeps prices in the span of dom l*."""

    @abstractmethod
    def typical_curvature(self, x: Array, y: Array) -> Array:
        """A typical second derivative around the predictors x, (M,): it sets scales and first steps, no bound."""

    @abstractmethod
    def smoothed(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        """Value, gradient and curvature of a smooth loss whose gradients lie inside dom l* as those of l do."""

    @property
    def notation(self) -> Notation:
        """How one sample's loss is printed; by default as a function with the name of the class."""
        name, latex = names_of(self)
        return Notation(
            *(f"{name}(%z; %y)", f"%c {name}*(%u / %c; %y)", ""),
            *(f"{latex}(%z; %y)", rf"%c \, {latex}^*(%u / %c; %y)", ""),
        )

    def domain(self, y: Array) -> tuple[Array, Array]:
        """The interval [low, high] that is the closure of dom l*; infinite where it is everywhere."""
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)

    def clip(self, b: Array, y: Array) -> Array:
        """The nearest point inside dom l*."""
        low, high = self.domain(y)
        width = np.where(np.isfinite(high - low), (1.0 - INSIDE) * (high - low), 0.0)
        return np.clip(b, low + width, high - width)

    def span(self, b: Array) -> Array:
        """The nearest point of the smallest affine set that contains dom l*; b itself where that is everything."""
        return b

    def interior(self, y: Array) -> Array:
        """Whether the price 0 lies inside dom l* (and not on its boundary), shape (M,)."""
        low, high = self.domain(y)
        return _every((low < 0) & (high > 0))

    def reach(self, start: Array, end: Array, y: Array) -> Array:
        """For each sample the largest t in [0, 1] with start + t (end - start) in dom l* (start lies in it)."""
        low, high = self.domain(y)
        with np.errstate(divide="ignore", invalid="ignore"):
            to_low, to_high = (low - start) / (end - start), (high - start) / (end - start)
            t = np.where(end < low, to_low, np.where(end > high, to_high, 1.0))
        t = np.clip(np.nan_to_num(t, nan=0.0), 0.0, 1.0)
        return t if t.ndim == 1 else t.min(axis=1, initial=1.0)

    def moved(self, y: Array, by: Array, rest: Any = 0.0) -> tuple[Array, Array]:
        """Targets y' and offsets o' with ``l(x + by + rest; y) = l(x + o'; y')`` for every x.

        A loss of the difference x - y alone moves its targets, so that what is large in both cancels once and for
        all (see `AbstractDifferenceLoss`). ``rest`` is what rounding left of ``by``.
        """
        return y, by + rest

    def largest_offset(self) -> float:
        """The largest predictor at which l is far from overflowing."""
        return np.inf

    def least_curvature(self) -> float:
        """The largest m with l''(x; y) >= m everywhere."""
        return 0.0

    def descent(self, y: Array) -> Descent:
        """The directions of the predictor along which l does not grow: where dom l* ends at 0, one of the signs."""
        low, high = self.domain(y)
        flat = (low == 0) | (high == 0)
        rows = np.arange(y.size).reshape(y.shape)
        sign = np.where(high == 0, 1.0, -1.0)[flat]
        eye = sp.csr_array((sign, (np.arange(flat.sum()), rows[flat])), shape=(int(flat.sum()), y.size))
        return Descent(eye, np.nonzero(flat)[0], np.full(len(sign), True), np.flatnonzero(~flat.ravel()))

    def lower(self, space: Space, strength: Strength) -> Lowered:
        data = self.data
        node = np.fromiter((space.index[label] for label in data.labels), dtype=np.intp)[data.node]
        X, offset = self.design()
        return Lowered(losses=(SampleBlock(self, strength, node, X, self.targets(), offset, self.scales()),))

    # ---- proofs ----------------------------------------------------------------------------------------------------
    def stated(self) -> Stated | None:
        """How a proof states the loss; None where it cannot."""
        return None

    def stated_targets(self, y: Array) -> list[Any]:
        """The coded targets as a proof states them: floats, lists of floats, or the number of a class."""
        return y.tolist()

    def prices_add_up_to_zero(self) -> bool:
        """Whether dom l* holds prices with the sum 0 only."""
        return False

    def remains(self, y: Array, fallen: Array) -> tuple[Array, Array]:
        """What is left of the samples where some rows of `descent` fell for ever (``fallen``, a mask over these rows):
        a mask over the samples, and the coded targets of those that are left."""
        gone = np.zeros(len(y), dtype=bool)
        gone[self.descent(y).sample[fallen]] = True
        return ~gone, y[~gone]

    # ---- bounds that hold whatever rounding does; what a certificate rests on ---------------------------------------
    def anchor(self, y: Array) -> Array:
        """The point t, shaped like y, with ``l(x; y) = h(x - t)``, so that ``l*(b; y) = h*(b) + <b, t>``.

        Certificates form x - t and <b, t> without rounding, and ask for bounds of h and h* alone. 0 by default, where h
        is l itself.
        """
        return np.zeros(y.shape)

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        """An upper bound of h over ``r +- spread``, (M,). By default from `value`, trusted to 16 units in the last
        place of its largest value near r: a convex function is largest at the ends."""
        return largest_around(lambda x: self.value(x + self.anchor(y), y), r, spread)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        """An upper bound of h* over ``b +- spread``, (M,); +inf where that is not all inside the domain. By default
        from `conjugate`, trusted as `value` is."""
        return largest_around(lambda a: self.conjugate(a, y) - _dots(a, self.anchor(y)), b, spread)

    def dependent(self, y: Array) -> Array | None:
        """For each sample the coordinate of its price that is minus the sum of the others, (M,); None where all
        coordinates are free."""
        return None

    def called(self) -> str:
        """What messages and tables call the loss: the name of its class."""
        return type(self).__name__

    def is_users(self) -> bool:
        """Whether the user wrote l, so that solves try its laws at their points (see `certificate.spot_checks`)."""
        return not in_library(type(self))

    @staticmethod
    def from_cvxpy(function: Any, data: Any, *, name: str | None = None, scale: Any = "mean") -> AbstractLoss:
        """A smooth loss from a CVXPY function of predictors and targets; see
        `graphreg.terms.losses.from_cvxpy.from_cvxpy`."""
        from .from_cvxpy import from_cvxpy

        return from_cvxpy(function, data, name, scale)

    # ---- predictions -----------------------------------------------------------------------------------------------
    def response(self, x: Array) -> Array:
        """What is expected of a target at the predictor x; the predictor itself, but for generalised linear models."""
        return x

    def classify(self, x: Array) -> Array:
        """The class at the predictor x, coded as the data were."""
        raise DataError(f"kind='class' needs a classification loss, and {type(self).__name__} is none")


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
    over an interval it is least at one of the ends."""

    def curvature_within(self, low: Array, high: Array, y: Array) -> tuple[Array, Array]:
        near = np.isfinite(low) & np.isfinite(high)
        ends = [self.curvature(np.where(near, x, 0.0), y) for x in (low, high)]
        least = np.where(near, np.minimum(*ends), self.least_curvature())
        return least, np.full(least.shape, self.smoothness())


@dataclass(frozen=True)
class AbstractQuadraticLoss(AbstractDifferenceLoss, AbstractSmoothLoss):
    """1/2 ||x - y||^2: curvature 1 everywhere, so that the prox of a node's sum is one linear solve."""

    @property
    @abstractmethod
    def notation(self) -> Notation: ...

    def value(self, x: Array, y: Array) -> Array:
        return _dots(x - y, x - y) / 2

    def gradient(self, x: Array, y: Array) -> Array:
        return x - y

    def curvature(self, x: Array, y: Array) -> Array:
        return np.ones_like(x)

    def conjugate(self, b: Array, y: Array) -> Array:
        return _dots(b, b / 2 + y)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        step = np.asarray(step, dtype=float)
        step = step[:, None] if step.ndim == 1 and v.ndim == 2 else step
        return (v + step * y) / (1.0 + step)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return AbstractLoss.domain(self, y)  # slopes have no limits

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


def _every(a: Array) -> Array:
    return a if a.ndim == 1 else np.logical_and.reduce(a, axis=1)


def _dots(a: Array, b: Array) -> Array:
    return a * b if a.ndim == 1 else np.einsum("ij,ij->i", a, b)
