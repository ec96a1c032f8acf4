"""The interface of losses: a convex function of the linear predictor of one sample, summed over the samples of a node.

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

from ...base.shortcuts import shortcut
from ...errors import DataError
from ...inputs import in_place, places_of
from ..blocks import Lowered, SampleBlock
from ..bounds import largest_around
from ..calculus import Strength
from ..design import Design
from ..records import Array, Bends, Named, Notation, Space, Statement, names_of, stated
from .prices import PriceDomain
from .samples import AbstractSamples

INSIDE = 1.0 - 1e-14


@dataclass(frozen=True)
class AbstractLoss(AbstractSamples, Named):
    """A convex loss with a closed-form conjugate, on samples (whose parameters `AbstractSamples` has).

    Attributes
    ----------
    prices : PriceDomain
        dom l*, where prices may lie, as far as ``domain`` and ``clip`` do not say it.
    notation : Notation
        The notation of one sample's loss; a function with the name of the class, unless a class says otherwise. It
        may say the text alone, as a string with ``%z`` for the predictor and ``%y`` for the target.
    """

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
        raise self._without_conjugate()

    @abstractmethod
    def conductance(self, b: Array, y: Array) -> Array:
        """The readiness of a price (at scale 1) to give way in the repair: non-negative, shaped like b, or a positive
        semidefinite matrix (k, k) per sample that keeps prices in the span of dom l*."""

    @abstractmethod
    def typical_curvature(self, x: Array, y: Array) -> Array:
        """A typical second derivative around the predictors x, (M,): it sets scales and first steps, no bound."""

    @abstractmethod
    def smoothed(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        """Value, gradient and curvature of a smooth loss whose gradients lie inside dom l* as those of l do."""

    def _notation(self) -> Notation:
        name, latex = names_of(self)
        return Notation(
            *(f"{name}(%z; %y)", f"%c {name}*(%u / %c; %y)", ""),
            *(f"{latex}(%z; %y)", rf"%c \, {latex}^*(%u / %c; %y)", ""),
        )

    notation = stated(_notation)

    def domain(self, y: Array) -> tuple[Array, Array]:
        """The interval [low, high] that is the closure of dom l*; infinite where it is everywhere."""
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)

    def clip(self, b: Array, y: Array) -> Array:
        """The nearest point inside dom l*."""
        low, high = self.domain(y)
        width = np.where(np.isfinite(high - low), (1.0 - INSIDE) * (high - low), 0.0)
        return np.clip(b, low + width, high - width)

    prices = stated(PriceDomain)

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

    def accuracy(self) -> float:
        """The relative accuracy of ``value``, ``prox`` and ``conjugate``, to which the check holds them."""
        return 1e-8

    def lower(self, space: Space, strength: Strength) -> Lowered:
        data = self.data
        node = data.node
        if not in_place(data.labels, space.index):
            node = places_of(data.labels, space.index)[node]
        X, offset = self.design()
        design = Design(node, X, None if offset.ndim == 1 else offset.shape[1])
        return Lowered(losses=(SampleBlock(self, strength, design, self.targets(), offset, self.scales()),))

    # ---- proofs ----------------------------------------------------------------------------------------------------
    def statement(self) -> Statement | None:
        """The statement of the loss in a proof; None where there is none."""
        return None

    def stated_targets(self, y: Array) -> list[Any]:
        """The coded targets as a proof states them: floats, lists of floats, or the number of a class."""
        return y.tolist()

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

    @staticmethod
    def from_cvxpy(function: Any, data: Any, *, name: str | None = None, scale: Any = "mean") -> AbstractLoss:
        """A smooth loss, sum_i scale_i * sum_r l(x_r'w_i; y_r), whose l is a CVXPY function.

        Its gradient, curvature and conjugate are derived from the function; the exact route takes the function itself.

        Parameters
        ----------
        function : callable
            ``function(x, y)``: x is a CVXPY expression (M,), the predictors of M samples, y an array (M,) of floats,
            their targets; l of each sample out, an expression (M,). It is convex in x, acts on each entry by itself,
            and holds smooth atoms: exp, log, logistic, square, power, huber, entr, squares of pos and neg, sums and
            multiples. It is to be finite at every predictor, in which log and entr are not by themselves: rounds, and
            the laws, meet all of them. What y alone needs is written in numpy.
        data : NodeData
            The samples, with numbers for targets.
        name : str, optional
            How it is printed; by default the name of the function.
        scale : {"mean", "sum"}, float or mapping
            The factor of a node's sum, as of every loss.

        Raises
        ------
        ConvexityError
            Where CVXPY's rules do not show that the function is convex in x.
        TermError
            Where it does not return one value per sample, holds a Variable or Parameter of its own, or an atom that is
            not smooth (abs, maximum, norms); the message names the atom.

        Examples
        --------
        >>> import cvxpy as cp
        >>> def log_cosh(x, y):
        ...     return cp.logistic(2 * (x - y)) - (x - y) - np.log(2.0)
        >>> loss = gr.Loss.from_cvxpy(log_cosh, data)
        >>> gr.Problem(loss + 0.1 * gr.TotalVariation(graph, gr.L2())).solve().status
        'certified'
        """
        return shortcut("Loss.from_cvxpy")(function, data, name, scale)

    # ---- predictions -----------------------------------------------------------------------------------------------
    def response(self, x: Array) -> Array:
        """The expectation of a target at the predictor x; the predictor itself, but for generalised linear models."""
        return x

    def classify(self, x: Array) -> Array:
        """The class at the predictor x, coded as the data were."""
        raise DataError(f"kind='class' needs a classification loss, and {type(self).__name__} is none")


def dots(a: Array, b: Array) -> Array:
    """The inner product of corresponding rows; the product where rows are numbers."""
    return a * b if a.ndim == 1 else np.einsum("ij,ij->i", a, b)
