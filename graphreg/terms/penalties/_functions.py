"""Functions of one number that are built of smooth atoms, as from_cvxpy reads them: f(g(x) + b), sums and maxima.

A part is 0 at 0, and tells its values, slopes and curvatures at any x; at a kink those to the right. Values near 0 are
differences f(b + d) - f(b) that do not cancel. A part need not be convex: their sum is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from ...lazy import cp
from ..derivatives import Line, entrywise, kind_of
from ..records import Array
from ._curves import NOTHING, Curve
from ._formulas import plus, signed, terms

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Atom:
    """A smooth function f of one number: the name of CVXPY's atom, with its parameter."""

    kind: str
    parameter: float = 0.0

    def value(self, x: Array) -> Array:
        """f itself."""
        if self.kind == "hypot":
            return np.hypot(x, self.parameter)
        if self.kind == "Power":
            return _power(x, self.parameter, self.parameter)
        return -xlogy(x, x) if self.kind == "entr" else entrywise(self.kind, self.parameter)[0](x)

    def rise(self, b: float, d: Array) -> Array:
        """f(b + d) - f(b)."""
        return _RISES[self.kind](b, d, self.parameter)

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """f' and f''."""
        with np.errstate(all="ignore"):
            return self._slopes(x)

    def _slopes(self, x: Array) -> tuple[Array, Array]:
        if self.kind == "hypot":
            length = np.hypot(x, self.parameter)
            return x / length, (self.parameter / length) ** 2 / length
        if self.kind == "Power":
            p = self.parameter
            return p * _power(x, p - 1.0, p), p * (p - 1.0) * _power(x, p - 2.0, p)
        _, df, ddf = entrywise(self.kind, self.parameter)
        return df(x), ddf(x)

    def written(self, x: Any) -> Any:
        """f in CVXPY."""
        if self.kind == "hypot":
            flat = cp.reshape(x, (1, x.size), order="C")
            length = cp.norm(cp.vstack([flat, np.full((1, x.size), self.parameter)]), 2, axis=0)
            return cp.reshape(length, x.shape, order="C")
        if self.kind == "Power":
            return cp.power(x, self.parameter)
        parameters: tuple[Any, ...] = (self.parameter,) if self.kind == "huber" else ()
        return getattr(cp, self.kind)(x, *parameters)

    def text(self, x: str) -> str:
        """f as a formula."""
        base = x if " " not in x else f"({x})"
        return _TEXTS[self.kind].format(x=x, base=base, p=f"{self.parameter:g}", q=f"{self.parameter**2:g}")


@dataclass(frozen=True, eq=False)
class Through:
    """``factor (f(g(x) + shift) - f(shift))``."""

    factor: float
    atom: Atom
    inner: Function
    shift: float

    @property
    def offset(self) -> float:
        """``factor f(shift)``, which is taken off."""
        return self.factor * float(self.atom.value(np.array(self.shift)))

    @property
    def smooth_until(self) -> float:
        """As in `Function`."""
        return 0.0 if self.atom.kind == "huber" else self.inner.smooth_until

    @property
    def level(self) -> float:
        """How large the constants are that are taken off, and what the rounding of a shift adds to them."""
        slope = float(np.nan_to_num(self.atom.slopes(np.array(self.shift))[0], posinf=0.0))
        return abs(self.offset) + abs(self.factor * slope) * (abs(self.shift) + self.inner.level)

    def key(self) -> Key:
        return ("through", self.factor, self.atom, self.inner.key(), self.shift)

    def times(self, factor: float) -> Through:
        return Through(factor * self.factor, self.atom, self.inner, self.shift)

    def at(self, factor: float) -> Through:
        return Through(self.factor, self.atom, self.inner.at(factor), self.shift)

    def jet(self, x: Array) -> Line:
        inner = self.inner.jet(x)
        df, ddf = self.atom.slopes(self.shift + inner.value)
        rise = self.factor * self.atom.rise(self.shift, inner.value)
        slope = self.factor * df * inner.slope
        bend = self.factor * (ddf * inner.slope * inner.slope + df * inner.bend)
        return Line(rise, slope, bend, np.abs(rise) + np.abs(self.factor * df) * inner.size)

    def written(self, x: Any) -> Any:
        return self.factor * self.atom.written(self.inner.written(x) + self.shift) - self.offset

    def text(self, x: str) -> tuple[str, float]:
        inner, constant = self.inner.text(x)
        shift = self.shift + constant
        return f"{signed(self.factor)}{self.atom.text(plus(inner, shift))}", -self.offset


@dataclass(frozen=True, eq=False)
class Largest:
    """``factor (max over i of (h_i(x) + shift_i) - max over i of shift_i)``."""

    factor: float
    parts: tuple[tuple[Function, float], ...]

    smooth_until = 0.0  # which is the largest may change anywhere

    @property
    def level(self) -> float:
        """How large the constants are that are taken off."""
        return abs(self.factor) * max(h.level + abs(shift) for h, shift in self.parts)

    def key(self) -> Key:
        return ("largest", self.factor, *((h.key(), shift) for h, shift in self.parts))

    def times(self, factor: float) -> Largest:
        return Largest(factor * self.factor, self.parts)

    def at(self, factor: float) -> Largest:
        return Largest(self.factor, tuple((h.at(factor), shift) for h, shift in self.parts))

    def jet(self, x: Array) -> Line:
        top = max(shift for _, shift in self.parts)
        jets = [h.jet(x) for h, _ in self.parts]
        values = np.array([jet.value + (shift - top) for jet, (_, shift) in zip(jets, self.parts, strict=True)])
        slopes = np.array([jet.slope for jet in jets])
        first = np.where(values == values.max(axis=0), slopes, -np.inf).argmax(axis=0)  # the steepest of the largest
        value, slope, bend, size = (
            self.factor * np.take_along_axis(each, first[None], axis=0)[0]
            for each in (values, slopes, np.array([jet.bend for jet in jets]), np.array([jet.size for jet in jets]))
        )
        return Line(value, slope, bend, size + np.abs(value))

    def written(self, x: Any) -> Any:
        top = max(shift for _, shift in self.parts)
        return self.factor * (cp.maximum(*(h.written(x) + shift for h, shift in self.parts)) - top)

    def text(self, x: str) -> tuple[str, float]:
        each = [(h.text(x), shift) for h, shift in self.parts]
        top = max(shift for _, shift in self.parts)
        inner = ", ".join(plus(text, shift + constant) for (text, constant), shift in each)
        return f"{signed(self.factor)}max({inner})", -self.factor * top


@dataclass(frozen=True, eq=False)
class Function:
    """A piecewise quadratic function, given by its derivative, and other parts beside it; 0 at 0."""

    curve: Curve
    parts: tuple[Through | Largest, ...] = ()

    is_line = False

    def __add__(self, other: Curve | Function) -> Function:
        other = function(other)
        return Function(self.curve + other.curve, (*self.parts, *other.parts))

    __radd__ = __add__

    @property
    def smooth_until(self) -> float:
        """An x > 0 up to which it has no knot beyond 0."""
        knots = self.curve.knots[self.curve.knots > 0.0]
        return min([float(knots.min(initial=np.inf)), *(part.smooth_until for part in self.parts)])

    @property
    def level(self) -> float:
        """How large the constants are that cancel."""
        return sum(part.level for part in self.parts)

    def power(self) -> tuple[float, float] | None:
        """c and e where it is ``c x^e`` at x >= 0, with e > 1."""
        if len(self.parts) != 1 or self.curve.slope.any() or self.curve.bend.any():
            return None
        part = self.parts[0]
        if not isinstance(part, Through) or part.atom.kind != "Power" or part.shift != 0.0 or part.inner.parts:
            return None
        line = part.inner.curve
        right = np.searchsorted(line.knots, 0.0, side="right") == len(line.knots)
        if not right or line.bend[-1] != 0.0 or not line.slope[-1] > 0.0 or not part.atom.parameter > 1.0:
            return None
        return part.factor * float(line.slope[-1]) ** part.atom.parameter, part.atom.parameter

    def key(self) -> Key:
        """Equal for functions that are built alike."""
        each = (self.curve.knots, self.curve.slope, self.curve.bend)
        return (*(array.tobytes() for array in each), *(part.key() for part in self.parts))

    def times(self, factor: float) -> Function:
        return Function(self.curve.times(factor), tuple(part.times(factor) for part in self.parts))

    def at(self, factor: float) -> Function:
        """``h(factor x)``."""
        return Function(self.curve.at(factor), tuple(part.at(factor) for part in self.parts))

    def jet(self, x: Array) -> Line:
        """Values, slopes, curvatures, and the sizes of what the values are sums of, at numbers x (n,)."""
        with np.errstate(all="ignore"):
            each = [self.curve.jet(x), *(part.jet(x) for part in self.parts)]
            return Line(*(np.add.reduce([getattr(jet, name) for jet in each]) for name in Line._fields))

    def written(self, x: Any) -> Any:
        """The function in CVXPY, of each entry."""
        return sum((part.written(x) for part in self.parts), self.curve.written(x))

    def text(self, x: str) -> tuple[str, float]:
        """The function as a formula, and the constant that is to be added to it."""
        each = [part.text(x) for part in self.parts]
        off = sum(jump * max(-knot, 0.0) for knot, jump, _ in self.curve.parts()[1])
        return _sum([text for text, _ in each] + terms(self.curve, x)), sum(constant for _, constant in each) - off


def function(h: Curve | Function) -> Function:
    """As a sum of parts."""
    return h if isinstance(h, Function) else Function(h)


def through(atom: Atom, inner: Curve | Function, shift: float) -> Function:
    """f(g(x) + shift) - f(shift)."""
    return Function(NOTHING, (Through(1.0, atom, function(inner), shift),))


def atom_of(part: Any) -> Atom:
    """What an atom of CVXPY does with each entry.

    Raises
    ------
    KinkedError
        Where it is not known to be smooth.
    """
    atom = Atom(*kind_of(part))
    entrywise(atom.kind, atom.parameter)  # raises
    return atom


# ---- differences without cancellation --------------------------------------------------------------------------------
def _power(x: Array, e: float, p: float) -> Array:
    """x^e, of a power p: nan where x < 0, unless p is even."""
    return (x if p > 0.0 and p % 2.0 == 0.0 else np.where(x >= 0.0, x, np.nan)) ** e


def _rise_of_power(b: float, d: Array, p: float) -> Array:
    whole = _power(b + d, p, p) - _power(np.array(b), p, p)
    if b == 0.0:
        return whole
    return np.where(np.abs(d) < 0.5 * abs(b), abs(b) ** p * np.expm1(p * np.log1p(d / b)), whole)


def _rise_of_logistic(b: float, d: Array, p: float) -> Array:
    near = np.log1p(0.5 * (1.0 + np.tanh(0.5 * b)) * np.expm1(np.clip(d, -1.0, 1.0)))
    return np.where(np.abs(d) < 1.0, near, np.logaddexp(0.0, b + d) - np.logaddexp(0.0, b))


def _rise_of_entropy(b: float, d: Array, p: float) -> Array:
    if b == 0.0:
        return -xlogy(d, d)
    return np.where(b + d == 0.0, xlogy(b, b), -xlogy(d, b + d) - b * np.log1p(d / b))


def _rise_of_huber(b: float, d: Array, M: float) -> Array:
    value = entrywise("huber", M)[0]
    inner = (np.abs(b + d) <= M) & (abs(b) <= M)
    return np.where(inner, d * (2.0 * b + d), value(b + d) - value(np.array(b)))


_RISES: dict[str, Callable[[float, Array, float], Array]] = {
    "exp": lambda b, d, _: np.exp(b) * np.expm1(d),
    "log": lambda b, d, _: np.log1p(d / b),
    "log1p": lambda b, d, _: np.log1p(d / (1.0 + b)),
    "entr": _rise_of_entropy,
    "logistic": _rise_of_logistic,
    "Power": _rise_of_power,
    "huber": _rise_of_huber,
    "hypot": lambda b, d, c: d * ((2.0 * b + d) / (np.hypot(b + d, c) + np.hypot(b, c))),
}
_TEXTS = {
    "exp": "exp({x})",
    "log": "log({x})",
    "log1p": "log(1 + {x})",
    "entr": "entr({x})",
    "logistic": "log(1 + exp({x}))",
    "Power": "{base}^{p}",
    "huber": "2 huber_{p}({x})",
    "hypot": "sqrt({base}^2 + {q})",
}


# ---- formulas --------------------------------------------------------------------------------------------------------
def _sum(parts: list[str]) -> str:
    """A sum, with minus signs where parts have them."""
    return " + ".join(part for part in parts if part).replace("+ -", "- ")
