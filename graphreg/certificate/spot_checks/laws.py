"""The laws that bounds rest on, tried on rows: each trial says by how much an inequality is missed at every row.

With a value f and a conjugate f* of a term, ``P - Q`` is the sum of ``f(x) + f*(b) - <x, b>`` over all rows, whatever x
and b are; Q bounds the optimum from below where none of these can be negative at its own b. Spot checks try the laws at
the points of a certificate, `graphreg.testing` at points of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...terms import Array
from ...terms.losses import AbstractLoss, AbstractSmoothLoss, dots
from ...terms.penalties import AbstractConstraint, AbstractPenalty, AbstractSmoothPenalty

PROX = "the prox is that of the value: with p = prox(v, t) and b = (v - p) / t"
TOGETHER = "value, prox and conjugate belong together: with p = prox(v, t) and b = (v - p) / t"
GRADIENT = "the gradient is that of the value: with b = gradient(p)"


@dataclass(frozen=True)
class TermRows:
    """A penalty, or a loss at some targets: a convex function f of each row of its arguments, (m, k) or (m,), with its
    conjugate."""

    term: Any
    targets: tuple[Array, ...] = ()  # those of a loss, as one array

    # ---- what the term says ----------------------------------------------------------------------------------------
    def value(self, x: Array) -> Array:
        return self.term.value(x, *self.targets)

    def conjugate(self, b: Array) -> Array:
        return self.term.conjugate(b, *self.targets)

    def prox(self, v: Array, step: Any) -> Array:
        return self.term.prox(v, step, *self.targets)

    def gradient(self, x: Array) -> Array:
        return self.term.gradient(x, *self.targets)

    def clip(self, b: Array) -> Array:
        return self.term.clip(b, *self.targets) if self.targets else self.term.domain.clip(b)

    def span(self, b: Array) -> Array:
        return b if self.targets else self.term.domain.span(b)

    def value_bound(self, r: Array, spread: Array) -> Array:
        """A bound of f(r + anchor) around r."""
        return self.term.value_bound(r, spread, *self.targets)

    def conjugate_bound(self, b: Array, spread: Array) -> Array:
        """A bound of f*(b) - <b, anchor> around b."""
        return self.term.conjugate_bound(b, spread, *self.targets)

    @cached_property
    def anchor(self) -> Array | float:
        """t, where bounds are of f(r + t) as a function of r; 0 for penalties."""
        return self.term.anchor(*self.targets) if self.targets else 0.0

    @cached_property
    def smooth(self) -> bool:
        return isinstance(self.term, (AbstractSmoothLoss, AbstractSmoothPenalty))

    @property
    def project(self) -> Callable[[Array], Array] | None:
        return self.term.project if isinstance(self.term, AbstractConstraint) else None

    def convexity(self) -> float:
        """mu, where the term says that f - mu/2 ||.||^2 is convex."""
        if self.targets:
            return self.term.least_curvature() if self.smooth else 0.0
        return self.term.strong_convexity()

    def closed(self, b: Array) -> Array:
        """Slopes whose dependent coordinate is exactly minus the sum of the others, as bounds have it."""
        one = self.term.prices.dependent(*self.targets) if self.targets else None
        if one is None:
            return b
        at, b = np.arange(len(b)), b.copy()
        b[at, one] = 0.0
        b[at, one] = -b.sum(axis=1)
        return b

    # ---- how it is spoken of ---------------------------------------------------------------------------------------
    @property
    def letter(self) -> str:
        """The letter of slopes, in messages."""
        return "b" if self.targets else "u"

    @property
    def checker(self) -> str:
        return "check_loss" if self.targets else "check_penalty"

    def writes(self, method: str) -> bool:
        """True where the term has a method of its own in place of the derived one."""
        derived = AbstractLoss if self.targets else AbstractPenalty
        return getattr(type(self.term), method) is not getattr(derived, method)

    def take(self, rows: Any) -> TermRows:
        return TermRows(self.term, tuple(y[rows] for y in self.targets))


@dataclass(frozen=True)
class Trial:
    """An inequality, row by row: ``excess > 0`` misses it, ``size`` is that of its parts. ``side`` says which bound an
    excess that may be rounding is charged to."""

    law: str
    excess: Array
    size: Array
    said: dict[str, Array]  # what is shown of a row
    x: Array  # where the value was taken
    b: Array  # where the conjugate was
    side: str = ""  # "below" or "above"; empty: to none


def fenchel_young(rows: TermRows, x: Array, b: Array, conjugate: Array | None = None, name: str = "conjugate") -> Trial:
    """f(x) + f*(b) >= <x, b>; the conjugate, or a bound of it, may be known already."""
    value, product, letter = rows.value(x), dots(x, b), rows.letter
    conjugate = rows.conjugate(b) if conjugate is None else conjugate
    size = np.abs(value) + np.abs(conjugate) + sizes(x, b) + sizes(rows.anchor, b)
    said = {"x": x, letter: b, "value(x)": value, f"{name}({letter})": conjugate, f"<x, {letter}>": product}
    return Trial(f"value(x) + {name}({letter}) >= <x, {letter}>", product - value - conjugate, size, said, x, b)


def equality(rows: TermRows, p: Array, b: Array, law: str) -> Trial:
    """f(p) + f*(b) = <p, b>, at a b that a ``law`` says to be a subgradient."""
    value, conjugate, product = rows.value(p), rows.conjugate(b), dots(p, b)
    size = np.abs(value) + np.abs(conjugate) + sizes(p, b) + sizes(rows.anchor, b)
    said = {"p": p, "b": b, "value(p)": value, "conjugate(b)": conjugate, "<p, b>": product}
    law = f"{law}, value(p) + conjugate(b) = <p, b>"
    return Trial(law, np.abs(value + conjugate - product), size, said, p, b)


def supporting(rows: TermRows, p: Array, b: Array, z: Array, law: str) -> Trial:
    """f(z) >= f(p) + <b, z - p>, at a b that a ``law`` says to be a subgradient at p: what needs no conjugate."""
    value, other, product = rows.value(p), rows.value(z), dots(b, z - p)
    size = np.abs(value) + np.abs(other) + sizes(b, z - p)
    said = {"p": p, "b": b, "z": z, "value(p)": value, "value(z)": other, "<b, z - p>": product}
    return Trial(f"{law}, value(z) >= value(p) + <b, z - p>", value + product - other, size, said, p, b)


def midpoints(rows: TermRows, x: Array, z: Array, mu: float = 0.0, right: Array | None = None) -> Trial:
    """f((x + z) / 2) <= (f(x) + f(z)) / 2, less mu/8 ||x - z||^2, where both ends are finite; f(z) may be known."""
    middle, left = rows.value((x + z) / 2), rows.value(x)
    right = rows.value(z) if right is None else right
    bend = mu / 8.0 * lengths(x - z) ** 2 if mu > 0.0 else 0.0
    known = np.isfinite(left) & np.isfinite(right)
    excess = np.where(known, middle - (left + right) / 2 + bend, -np.inf)
    law = "value((x + z) / 2) <= (value(x) + value(z)) / 2"
    law += f" - mu/8 ||x - z||^2 with the mu = {mu:g} that it claims" if mu > 0.0 else ", as convex functions have it"
    said = {"x": x, "z": z, "value(x)": left, "value(z)": right, "value((x + z) / 2)": middle}
    return Trial(law, excess, np.where(known, np.abs(left) + np.abs(right) + bend, 0.0), said, x, z)


def evenness(rows: TermRows, x: Array) -> Trial:
    """f(-x) = f(x)."""
    value, other = rows.value(x), rows.value(-x)
    said = {"x": x, "value(x)": value, "value(-x)": other}
    law = "value(-x) = value(x) between nodes, whose edges have no direction"
    off = np.where(value == other, 0.0, np.abs(other - value))
    return Trial(law, off, np.abs(value) + np.abs(other), said, x, x)


def membership(rows: TermRows, z: Array, p: Array) -> Trial:
    """f(p) = 0 at projections p of z."""
    value = rows.value(p)
    said = {"z": z, "project(z)": p, "value(project(z))": value}
    excess = np.where(value <= 0.0, 0.0, np.inf)
    return Trial("project(z) lies in the set, where the value is 0", excess, np.zeros(len(value)), said, p, z)


def composed(rows: TermRows, x: Array, R: Array, h: AbstractPenalty) -> Trial:
    """f(x) >= h(Rx)."""
    value, inner = rows.value(x), h.value(x @ R.T)
    said = {"x": x, "value(x)": value, "h(Rx)": inner}
    law = "value(x) >= h(Rx) with the R and h of composed()"
    return Trial(law, inner - value, np.abs(value) + inner, said, x, x)


# ---- numbers ---------------------------------------------------------------------------------------------------------
def sizes(a: Array | float, b: Array) -> Array | float:
    """The size of the parts of an inner product; 0 where a is the number 0."""
    return 0.0 if isinstance(a, float) else dots(np.abs(a), np.abs(b))


def lengths(a: Array) -> Array:
    """The Euclidean norm of each row; the absolute value where rows are numbers."""
    return np.abs(a) if a.ndim == 1 else np.sqrt(dots(a, a))
