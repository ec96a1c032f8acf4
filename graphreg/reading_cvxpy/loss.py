"""The user's own loss, from a CVXPY function."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, final

import numpy as np

from ..base.escaping import upright, visible
from ..base.lazy import cp
from ..compiling import not_convex
from ..errors import ConvexityError, TermError
from ..inputs import NodeData
from ..terms import ULP, AbstractRows, Array, Descent, Notation, increasing_root, largest_around, stated
from ..terms.losses import AbstractSmoothLoss, PriceDomain
from .atoms import KinkedError, dense, kind_of, smooth
from .lines import Line, Lines, along, lines
from .source import plain

TRUSTED = 8.0 * ULP  # of what the values of CVXPY's formulas are made of
EDGE = 1e-13  # of the width of dom l*: what is nearer to its ends is bounded by these and by what is so far inside
REACHED = 8.0  # predictor from which on l' is looked for where it has reached its limit
FLAT_BY = 1e4  # predictor by which l' has reached its limit, where l* is finite at the ends


class _Falling(PriceDomain):
    """dom l*, and whether l reaches its infimum where that lies on one side."""

    def descent(self, y: Array) -> Descent:
        found = super().descent(y)
        reached = self.reached(found.falls.T @ np.ones(len(found.sample)), y)
        return replace(found, for_ever=~reached[found.sample])


@final
@dataclass(frozen=True, eq=False)
class CvxpyLoss(AbstractSmoothLoss):
    """A smooth loss given as a CVXPY function (see `from_cvxpy`).

    Its derivatives are those of the function's tree; ``l*(b) = b x - l(x)`` where l'(x) = b, which Newton's method
    finds, with what rounding may have left of it added.
    """

    function: Callable[[Any, Any], Any] = field(kw_only=True, repr=False)
    name: str = field(kw_only=True, default="l")
    prices = stated(_Falling)

    def value(self, x: Array, y: Array) -> Array:
        return self._line(x, y).value

    def gradient(self, x: Array, y: Array) -> Array:
        return self._line(x, y).slope

    def curvature(self, x: Array, y: Array) -> Array:
        return np.maximum(self._line(x, y).bend, 0.0)

    def conjugate(self, b: Array, y: Array) -> Array:
        return self._conjugate(b, y, 1.0)

    def clip(self, b: Array, y: Array) -> Array:
        low, high = (self._last(y, sign, end) for sign, end in zip((1.0, -1.0), self.domain(y), strict=True))
        return np.clip(super().clip(b, y), low, high)

    def _last(self, y: Array, sign: float, end: Array) -> Array:
        """The end of the domain, or a little inside it where l* is infinite there."""
        open_end = np.isfinite(end) & np.isinf(self._at_end(np.full(y.shape, sign > 0.0), y, 1.0))
        return end + sign * np.where(open_end, 2.0 * EDGE * np.maximum(1.0, np.abs(end)), 0.0)

    def _conjugate(self, b: Array, y: Array, rounding: float) -> Array:
        """b x - l(x) where l'(x) = b, and so many times more than what rounding may have left of it."""
        low, high = self.domain(y)
        width = EDGE * np.where(np.isfinite(high - low), high - low, 1.0)
        inside = (b >= low) & (b <= high)
        at = np.clip(
            np.where(inside, b, 0.5 * (np.maximum(low, -1.0) + np.minimum(high, 1.0))), low + width, high - width
        )
        x = increasing_root(lambda x: self.gradient(x, y) - at, lambda x: self.curvature(x, y), np.zeros(y.shape))
        line = self._line(x, y)
        found = at * x - line.value + rounding * TRUSTED * (np.abs(at * x) + line.size)
        near = inside & (at != b)
        if near.any():  # l* is convex: between there and the end it is at most the larger of both
            end = self._at_end(b < at, y, rounding)
            there = ((b == low) | (b == high)) & np.isfinite(end)
            found = np.where(near, np.where(there, end, np.maximum(found, end)), found)
        return np.where(inside, found, np.inf)

    def _at_end(self, lower: Array, y: Array, rounding: float) -> Array:
        """The same at the lower or the upper end of the domain: the negative infimum of what is left of the loss,
        where its derivative vanishes in floats; +inf where it has not by `FLAT_BY`."""
        end, out, far = np.where(lower, *self.domain(y)), np.full(y.shape, np.inf), REACHED
        while far <= FLAT_BY:
            x = np.where(lower, -far, far)
            line = self._line(x, y)
            with np.errstate(invalid="ignore"):  # of functions that are infinite there
                found = end * x - line.value + rounding * TRUSTED * (np.abs(end * x) + line.size)
            out, far = np.where((line.slope == end) & np.isinf(out), found, out), 2.0 * far
        return out

    def cvxpy(self, x: Any, y: Array) -> Any:
        return self.function(x, y)

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        size = largest_around(lambda x: self._line(x, y).size, r, spread)
        return largest_around(lambda x: self.value(x, y), r, spread) + TRUSTED * size

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        return largest_around(lambda a: self._conjugate(a, y, 4.0), b, spread)

    def response(self, x: Array) -> Array:
        """The target for which the predictor is best, where that is x itself or l'(x; 0), as for l(x) - x y."""
        natural = self.gradient(x, np.zeros(x.shape))
        return np.where(np.abs(self.gradient(x, natural)) <= np.abs(self.gradient(x, x)), natural, x)

    def called(self) -> str:
        return self.name

    def is_users(self) -> bool:
        return True  # the function is

    @property
    def notation(self) -> Notation:
        n, latex, formula = self.name, upright(self.name), ""
        with suppress(Exception):  # whatever a function of numbers y raises where y is a symbol
            formula = plain(self.function(cp.Variable(name="x"), cp.Parameter(name="y")))
        value = f"{n}(%z; %y)" + f" where {n}(x; y) = {formula}" * bool(formula)
        typeset = f"{latex}(%z; %y)" + rf" \text{{ where }} {latex}(x; y) = {upright(formula)}" * bool(formula)
        return Notation(value, f"%c {n}*(%u / %c; %y)", "", typeset, rf"%c \, {latex}^*(%u / %c; %y)", "")

    def _line(self, x: Array, y: Array) -> Line:
        """The loss along the line of all predictors, each sample by itself; outside its domain +inf, and rising."""
        line = self._formula(x, y)
        out = ~(line.value > -np.inf) | np.isnan(line.slope)
        if not out.any():
            return line
        outwards = np.where(x < self.inside(y), -np.inf, np.inf)
        return Line(*(np.where(out, by, each) for by, each in zip((np.inf, outwards, 0.0, np.inf), line, strict=True)))

    def _formula(self, x: Array, y: Array) -> Line:
        row, targets = x.reshape(1, -1), np.asarray(np.broadcast_to(y, x.shape), dtype=float).ravel()
        tree = _tree if isinstance(self.function, Hashable) else _tree.__wrapped__
        with np.errstate(all="ignore"):
            line = tree(self.function, targets.tobytes())(along(row, np.ones(row.shape)))
        return Line(*(np.broadcast_to(each, row.shape).reshape(x.shape) for each in line))

    def inside(self, y: Array) -> Array:
        """A predictor at which the loss is finite, for each target.

        Raises
        ------
        TermError
            Where none is found.
        """
        found = np.full(y.shape, np.nan)
        for start in (np.zeros(y.shape), y):
            for x in (start, *(start + sign * 2.0**k for k in range(-20, 60) for sign in (1.0, -1.0))):
                if not np.isnan(found).any():
                    return found
                line = self._formula(x, y)
                found = np.where(np.isnan(found) & np.isfinite(line.value) & np.isfinite(line.slope), x, found)
        y = y[np.isnan(found)]
        if len(y):
            raise TermError(f"no predictor was found at which the loss {self.name} is finite for the target {y[0]:.6g}")
        return found


def from_cvxpy(
    function: Callable[[Any, Any], Any], data: NodeData, name: str | None = None, scale: Any = "mean"
) -> CvxpyLoss:
    """A smooth loss from a CVXPY function of the predictors and the targets; see `graphreg.Loss.from_cvxpy`.

    Examples
    --------
    >>> import cvxpy as cp
    >>> data = NodeData.from_dict({0: (np.ones((3, 1)), [1.0, 2.0, 4.0])})
    >>> loss = from_cvxpy(lambda x, y: cp.exp(x) - cp.multiply(y, x), data, name="poisson")
    >>> loss.gradient(np.zeros(3), np.array([1.0, 2.0, 4.0]))
    array([ 0., -1., -3.])
    """
    if not callable(function):
        raise TermError(f"from_cvxpy takes a function of predictors and targets, got {function!r}")
    if isinstance(data, AbstractRows):
        raise TermError(
            "Loss.from_cvxpy takes NodeData, and no rows; f(rows - y) is the penalty "
            "gr.Penalty.from_cvxpy(lambda z: cp.sum(f(z)))(rows - y), else write a class Own(gr.Loss): Own(rows, y)"
        )
    said = visible(name or str(getattr(function, "__name__", "l"))).replace("%", "percent")
    said = "l" if said == "<lambda>" else said
    expression = _of_two(function, said)
    if not expression.is_convex():
        raise ConvexityError(
            f"CVXPY's rules do not show that the loss {said} is convex: {not_convex(expression)}; write it with convex "
            "atoms (https://www.cvxpy.org/tutorial/dcp), or as a class that derives from gr.Loss"
        )
    try:
        refuse_kinks(expression)
    except KinkedError as atom:
        raise TermError(
            f"the loss {said} holds the atom {atom}, which is not smooth, or does not act on each entry by itself; "
            "write it with others, or as a class that derives from gr.Loss; with a kink at the target, from "
            "gr.AbstractPiecewiseLinearLoss (2 * gr.QuantileLoss(data, tau=0.5) is cp.abs(x - y))"
        ) from None
    loss = CvxpyLoss(data, scale=scale, function=function, name=said)
    if data.y is not None:
        loss.inside(data.y)
    return loss


def _of_two(function: Callable[[Any, Any], Any], said: str) -> Any:
    """The expression of two samples."""
    x, y = cp.Variable(2, name="x"), np.array([0.5, 1.0])
    try:
        expression = function(x, y)
    except Exception as problem:  # whatever CVXPY, or the function, raises
        raise TermError(f"the loss {said} cannot be written in CVXPY: {problem}") from problem
    if not isinstance(expression, cp.Expression) or expression.shape != (2,):
        shape = getattr(expression, "shape", None)
        raise TermError(
            f"the loss {said} must return a CVXPY expression with one value per sample; it returned "
            + (f"the shape {shape} for 2 samples" if shape is not None else repr(expression))
        )
    if any(variable is not x for variable in expression.variables()) or expression.parameters():
        raise TermError(f"the loss {said} may hold no CVXPY Variable or Parameter of its own; use numbers")
    return expression


# ---- derivatives ----------------------------------------------------------------------------------------------------
@lru_cache(maxsize=4)  # building a tree takes as long as its derivatives at some hundred samples
def _tree(function: Callable[[Any, Any], Any], targets: bytes) -> Lines:
    """The function at some targets, which are floats, along lines of predictors."""
    y = np.frombuffer(targets)
    variable = cp.Variable(len(y))
    return lines(function(variable, y), variable, each=True)


def refuse_kinks(expression: Any, squared: bool = False) -> None:
    """Refuse a function that is not known to be smooth, or that mixes samples. ``squared``, whether the square of it is
    what is asked for, so that it may have a kink at 0.

    Raises
    ------
    KinkedError
        Which names the atom.
    """
    from cvxpy.atoms.affine.affine_atom import AffAtom

    if not expression.args or expression.is_constant():
        return
    name, below = kind_of(expression), False
    if isinstance(expression, AffAtom):
        if name not in ("AddExpression", "NegExpression", "multiply", "DivExpression", "Promote"):
            raise KinkedError(name)
        below = squared and name == "NegExpression"
    elif not (squared and name in ("maximum", "minimum") and any(map(_is_zero, expression.args))):
        smooth(expression)
        below = name == "Power" and float(expression.p.value) == 2.0
    for arg in expression.args:
        refuse_kinks(arg, below)


def _is_zero(atom: Any) -> bool:
    return atom.is_constant() and not dense(atom.value).any()
