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
from ...inputs import in_place, places_of
from ...shortcuts import shortcut
from ..blocks import Lowered, SampleBlock
from ..bounds import largest_around
from ..calculus import Strength
from ..records import Array, Bends, Descent, Notation, Space, Stated, names_of
from ._samples import AbstractSamples

INSIDE = 1.0 - 1e-14


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

    def bends(self, y: Array) -> Bends | None:
        """The derivative of h (see `anchor`) where it is piecewise linear, for targets (M,) of one predictor each, or
        of one of several predictors that are not coupled; None elsewhere."""
        return None

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
        node = data.node
        if not in_place(data.labels, space.index):
            node = places_of(data.labels, space.index)[node]
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
        return largest_around(lambda a: self.conjugate(a, y) - dots(a, self.anchor(y)), b, spread)

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
        return shortcut("Loss.from_cvxpy")(function, data, name, scale)

    # ---- predictions -----------------------------------------------------------------------------------------------
    def response(self, x: Array) -> Array:
        """What is expected of a target at the predictor x; the predictor itself, but for generalised linear models."""
        return x

    def classify(self, x: Array) -> Array:
        """The class at the predictor x, coded as the data were."""
        raise DataError(f"kind='class' needs a classification loss, and {type(self).__name__} is none")


def _every(a: Array) -> Array:
    return a if a.ndim == 1 else np.logical_and.reduce(a, axis=1)


def dots(a: Array, b: Array) -> Array:
    return a * b if a.ndim == 1 else np.einsum("ij,ij->i", a, b)
