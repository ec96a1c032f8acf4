"""The user's own loss, from a CVXPY function."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import numpy as np

from ..base.escaping import upright, visible
from ..base.lazy import cp
from ..errors import ConvexityError, TermError
from ..inputs import NodeData
from ..terms import ULP, Array, Notation, increasing_root, largest_around
from ..terms.losses import AbstractSmoothLoss
from .atoms import KinkedError, dense, smooth
from .functions import Line

TRUSTED = 8.0 * ULP  # of what the values of CVXPY's formulas are made of
EDGE = 1e-13  # of the width of dom l*: its ends are taken so far inside
FLAT_BY = 1e4  # predictor by which l' has reached its limit, where l* is finite at the ends


@final
@dataclass(frozen=True, eq=False)
class CvxpyLoss(AbstractSmoothLoss):
    """A smooth loss given as a CVXPY function (see `from_cvxpy`).

    Its derivatives are those of the function's tree; ``l*(b) = b x - l(x)`` where l'(x) = b, which Newton's method
    finds, with what rounding may have left of it added.
    """

    function: Callable[[Any, Any], Any] = field(kw_only=True)
    name: str = field(kw_only=True, default="l")

    def value(self, x: Array, y: Array) -> Array:
        return self._line(x, y).value

    def gradient(self, x: Array, y: Array) -> Array:
        return self._line(x, y).slope

    def curvature(self, x: Array, y: Array) -> Array:
        return np.maximum(self._line(x, y).bend, 0.0)

    def conjugate(self, b: Array, y: Array) -> Array:
        return self._conjugate(b, y, 1.0)

    def _conjugate(self, b: Array, y: Array, rounding: float) -> Array:
        """b x - l(x) where l'(x) = b, and so many times more than what rounding may have left of it. At the ends of the
        domain it is taken a little inside, where l' has reached its limit in floats."""
        low, high = self.domain(y)
        width = EDGE * np.where(np.isfinite(high - low), high - low, 1.0)
        inside = (b >= low) & (b <= high)
        at = np.clip(
            np.where(inside, b, 0.5 * (np.maximum(low, -1.0) + np.minimum(high, 1.0))), low + width, high - width
        )
        last: list[tuple[Array, Line]] = []  # where the function was asked for last: the slope is asked for there, too

        def off_balance(x: Array) -> Array:
            last[:] = [(x, self._line(x, y))]
            return last[0][1].slope - at

        def bend(x: Array) -> Array:
            line = last[0][1] if last[0][0] is x else self._line(x, y)
            return np.maximum(line.bend, 0.0)

        x = increasing_root(off_balance, bend, np.zeros(y.shape))
        line = self._line(x, y)
        off = rounding * TRUSTED * (np.abs(at * x) + line.size) + np.where(inside, np.abs(b - at), 0.0) * np.abs(x)
        flat = (at == b) | (np.abs(x) <= FLAT_BY)
        return np.where(inside & flat, at * x - line.value + off, np.inf)

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
        n, latex = self.name, upright(self.name)
        return Notation(f"{n}(%z; %y)", f"%c {n}*(%u / %c; %y)", "", f"{latex}(%z; %y)", rf"%c \, {latex}^*", "")

    def _line(self, x: Array, y: Array) -> Line:
        shape = x.shape
        with np.errstate(all="ignore"):
            line = along_line(self.function, x.ravel(), np.broadcast_to(y, shape).ravel())
        return Line(*(np.broadcast_to(each, (x.size,)).reshape(shape) for each in line))


def from_cvxpy(
    function: Callable[[Any, Any], Any], data: NodeData, name: str | None = None, scale: Any = "mean"
) -> CvxpyLoss:
    """A smooth loss from a CVXPY function of the predictors and the targets.

    Parameters
    ----------
    function : callable
        ``function(x, y)``: l(x; y) of each sample, convex in x, as a CVXPY expression of the shape of x, (M,); y are
        the targets, (M,), numbers. Built of smooth atoms that act on each entry: exp, log, logistic, square, power,
        huber, entr, squares of pos and neg, and sums and multiples of these.
    data : NodeData
        The samples, with numbers for targets.
    name : str, optional
        How it is printed; by default the name of the function.
    scale : {"mean", "sum"}, float or mapping
        The factor of a node's sum, as of every loss.

    Raises
    ------
    ConvexityError
        Where CVXPY's rules do not show that the function is convex.
    TermError
        Where it is no expression of one value per sample, or holds an atom that is not smooth; the message names it.

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
    said = visible(name or str(getattr(function, "__name__", "l"))).replace("%", "percent")
    said = "l" if said == "<lambda>" else said
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
    if not expression.is_convex():
        raise ConvexityError(f"CVXPY's rules do not show that the loss {said} is convex: {expression}")
    try:
        along_line(function, np.zeros(2), y)
    except KinkedError as atom:
        raise TermError(
            f"the loss {said} holds the atom {atom}, which is not smooth, or does not act on each entry by itself; "
            "write it with others, or as a class that derives from gr.Loss"
        ) from None
    return CvxpyLoss(data, scale=scale, function=function, name=said)


# ---- derivatives ----------------------------------------------------------------------------------------------------
def along_line(function: Callable[[Any, Any], Any], x: Array, y: Array) -> Line:
    """A function of predictors x (M,) and targets y that acts on each sample by itself, with its derivatives in x.

    Raises
    ------
    KinkedError
        Where it holds an atom that is not known to be smooth, or that mixes samples.
    """
    tree = _tree if isinstance(function, Hashable) else _tree.__wrapped__
    variable, expression = tree(function, y.shape, np.asarray(y, dtype=float).tobytes())
    return _line(expression, variable, x)


@lru_cache(maxsize=4)  # building a tree takes as long as its derivatives at some hundred samples
def _tree(function: Callable[[Any, Any], Any], shape: tuple[int, ...], targets: bytes) -> tuple[Any, Any]:
    """The variable and the expression of a function at some targets, which are floats."""
    variable = cp.Variable(shape)
    return variable, function(variable, np.frombuffer(targets).reshape(shape))


def _line(expression: Any, variable: Any, x: Array, squared: bool = False) -> Line:
    """``squared``, whether the square of it is what is asked for, so that it may have a kink at 0."""
    from cvxpy.atoms.affine.affine_atom import AffAtom

    if expression is variable:
        return Line(x, np.ones(x.shape), np.zeros(x.shape), np.abs(x))
    if expression.is_constant():
        value = dense(expression.value)
        return Line(value, np.zeros(value.shape), np.zeros(value.shape), np.abs(value))
    name = type(expression).__name__.removesuffix("Approx")
    below = (name == "Power" and float(expression.p.value) == 2.0) or (squared and name == "NegExpression")
    args = [_line(arg, variable, x, below) for arg in expression.args]
    if squared and name in ("maximum", "minimum") and len(args) == 2 and any(_is_zero(a) for a in expression.args):
        u = args[int(_is_zero(expression.args[0]))]
        keep = u.value > 0.0 if name == "maximum" else u.value < 0.0
        return Line(*(np.where(keep, each, 0.0) for each in u))
    if isinstance(expression, AffAtom):
        if name not in ("AddExpression", "NegExpression", "multiply", "MulExpression", "DivExpression", "Promote"):
            raise KinkedError(name)
        return _affine_line(expression, args)
    f = smooth(expression)
    u, slope, bend, _ = args[0]
    value, df = f.value(u), f.slope(u)
    return Line(value, df * slope, f.bend(u) * slope * slope + df * bend, np.abs(value))


def _is_zero(atom: Any) -> bool:
    return atom.is_constant() and not dense(atom.value).any()


def _affine_line(atom: Any, args: list[Line]) -> Line:
    fixed = [each.is_constant() for each in atom.args]

    def at(part: int) -> Array:
        """The atom of a derivative: what is fixed stays a factor, and is no summand."""
        given = [arg[0] if still else arg[part] for arg, still in zip(args, fixed, strict=True)]
        zero = [arg[0] if still else np.zeros(np.shape(arg[0])) for arg, still in zip(args, fixed, strict=True)]
        return dense(atom.numeric(given)) - (dense(atom.numeric(zero)) if part else 0.0)

    def alone(i: int) -> Array:
        given = [arg[0] if fixed[j] or i == j else np.zeros(np.shape(arg[0])) for j, arg in enumerate(args)]
        return np.abs(dense(atom.numeric(given)))

    size = np.add.reduce([np.broadcast_to(alone(i), np.shape(at(0))) for i in range(len(args))])
    return Line(at(0), at(1), at(2), size)
