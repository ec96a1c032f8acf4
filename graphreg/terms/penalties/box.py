"""Bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ...checks import numbers
from ...errors import TermError
from ..bounds import ULP, ends, shown
from ..records import Array, Notation, RecessionCone, Statement, stated
from ._rows import INSIDE
from .base import AbstractConstraint, AbstractEntrywise, AbstractOneSided
from .domain import FlowDomain

LEAST_CONDUCTANCE = 0.1  # of a coordinate without flow, whose conjugate has a kink there


class SupportedCone(FlowDomain):
    """The domain of a support function of bounds: a cone of flows that push against no bound that is not there.

    ``least`` is the conductance of a coordinate without flow, whose conjugate has a kink there.
    """

    def __init__(self, phi: AbstractBox, least: float = LEAST_CONDUCTANCE) -> None:
        super().__init__(phi)
        self.no_low, self.no_high, self.least = np.isinf(phi.low), np.isinf(phi.high), least

    def leaves(self, u: Array) -> Array:
        """The coordinates of flows that push against a bound that is not there."""
        return ((u > 0) & self.no_high) | ((u < 0) & self.no_low)

    def gauge(self, u: Array) -> Array:
        return np.where(self.leaves(u).any(axis=1), np.inf, 0.0)

    def clip(self, u: Array) -> Array:
        return np.where(self.leaves(u), 0.0, u)

    def step_to_boundary(self, start: Array, end: Array) -> Array:
        leaves = self.leaves(end)
        t = np.where(leaves, INSIDE * start / np.where(leaves, start - end, 1.0), 1.0)
        return t.min(axis=1, initial=1.0)

    def interior(self, k: int) -> Array:
        return np.array(np.broadcast_to(self.no_low.astype(float) - self.no_high.astype(float), (k,)))

    def recession(self, k: int) -> RecessionCone:
        low, high = (np.where(np.isinf(bound), bound, 0.0) for bound in (self.phi.low, self.phi.high))
        return RecessionCone(np.array(np.broadcast_to(low, (k,))), np.array(np.broadcast_to(high, (k,))))

    def conductance(self, u: Array) -> Array:
        free = self.no_low & self.no_high  # a coordinate without bounds carries no flow
        return np.where(free, 0.0, np.maximum(np.abs(u), self.least))

    def slacks(self, u: Array) -> Array:
        one_way = np.where(self.no_high, np.maximum(-u, 0.0), np.inf)
        return np.minimum(one_way, np.where(self.no_low, np.maximum(u, 0.0), np.inf))

    def share(self, u: Array) -> Array:
        bounded, free = ~self.no_low & ~self.no_high, self.no_low & self.no_high
        one_sided = np.clip(np.abs(u) / (np.abs(u).mean() + 1e-300), 0.0, 1.0)
        return np.where(bounded, 1.0, np.where(free | self.leaves(u), 0.0, one_sided))


class AbstractBox(AbstractEntrywise, AbstractOneSided, AbstractConstraint):
    """The points between two bounds, ``low <= z <= high`` in every coordinate; infinite where there is no bound."""

    low: Any
    high: Any

    domain = stated(SupportedCone)

    def value(self, z: Array) -> Array:
        return np.where(((z >= self.low) & (z <= self.high)).all(axis=1), 0.0, np.inf)

    def gauge_at_zero(self, u: Array) -> Array:
        pushes = ((u > 0) & (self.high != 0)) | ((u < 0) & (self.low != 0))  # against a bound that is not at 0
        inside = np.all((self.low <= 0) & (self.high >= 0))
        return np.where(pushes.any(axis=1) | ~inside, np.inf, 0.0)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        low, high = u - spread, u + spread
        bounds = [np.where(x > 0, _finite(self.high), _finite(self.low)) for x in (low, high)]
        each = np.maximum(bounds[0] * low, bounds[1] * high)
        live = (((bounds[0] != 0.0) & (low != 0.0)) | ((bounds[1] != 0.0) & (high != 0.0))).any(axis=1)
        value = shown(each.sum(axis=1) + (4 + u.shape[1]) * ULP * np.abs(each).sum(axis=1), live)
        return np.where((self.domain.leaves(low) | self.domain.leaves(high)).any(axis=1), np.inf, value)

    def value_bound(self, z: Array, spread: Array) -> Array:
        low, high = ends(z, spread)
        return np.where(((low >= self.low) & (high <= self.high)).all(axis=1), 0.0, np.inf)

    def settle(self, z: list[Any], exact: Callable[[float], Any]) -> list[Any]:
        low, high = (np.broadcast_to(bound, (len(z),)).tolist() for bound in (self.low, self.high))
        above = [p if a == -np.inf else max(p, exact(a)) for p, a in zip(z, low, strict=True)]
        return [p if b == np.inf else min(p, exact(b)) for p, b in zip(above, high, strict=True)]


@dataclass(frozen=True, eq=False)
class Box(AbstractBox):
    """The constraint ``low <= z <= high`` in every coordinate: phi is 0 there and +inf elsewhere. At nodes, along
    arrows and on other rows that have a sign.

    ``phi*(u) = sum_j max(low_j u_j, high_j u_j)`` (the support function); where a bound is infinite it is +inf for
    flows of that sign. A box without 0 is allowed; its phi* may be negative.

    Parameters
    ----------
    low, high : float or array_like (k,)
        In units of z, low <= high; -inf and inf where there is no bound.

    Examples
    --------
    >>> gr.Box(0.0, 1.0).prox(np.array([[3.0, -4.0]]), 1.0)
    array([[1., 0.]])
    """

    low: Any = -np.inf
    high: Any = np.inf

    def __post_init__(self) -> None:
        low, high = _bounds(self.low, "low"), _bounds(self.high, "high")
        if low.ndim and high.ndim and low.shape != high.shape:
            raise TermError(f"the bounds of Box differ in size: low has {low.size} and high has {high.size}")
        wrong = np.atleast_1d((low > high) | (low == np.inf) | (high == -np.inf))
        if wrong.any():
            j = int(wrong.argmax())
            lowest, highest = (float(np.broadcast_to(bound, wrong.shape)[j]) for bound in (low, high))
            raise TermError(f"the bounds of Box leave nothing at coordinate {j}: low {lowest:g}, high {highest:g}")
        vars(self).update(low=low, high=high)

    def project(self, z: Array) -> Array:
        return np.clip(z, self.low, self.high)

    def conjugate(self, u: Array) -> Array:
        value = np.where(u > 0, _finite(self.high) * u, _finite(self.low) * u).sum(axis=1)
        return np.where(self.domain.leaves(u).any(axis=1), np.inf, value)

    def cvxpy(self, Z: Any) -> Any:
        return [side for side in (_at_least(Z, self.low), _at_least(-Z, -self.high)) if side is not None]

    def check(self, k: int) -> None:
        for name, bound in (("low", self.low), ("high", self.high)):
            if bound.ndim and bound.size != k:
                raise TermError(f"the bound {name} of Box is for {bound.size} coordinates, and the term has {k}")

    def restricted(self, columns: Array) -> Box:
        low, high = (bound[columns] if bound.ndim else bound for bound in (self.low, self.high))
        return Box(low, high)

    def cvxpy_conjugate(self, U: Any) -> Any:
        bounded = np.isfinite(self.low) & np.isfinite(self.high)
        width = np.where(bounded, _finite(self.high) - _finite(self.low), 0.0)
        slope = np.where(np.isfinite(self.low), self.low, _finite(self.high))
        value = cp.sum(cp.multiply(_full(slope, U), U) + cp.multiply(_full(width, U), cp.pos(U)), axis=1)
        signs = [
            cp.multiply(_full(np.isinf(bound).astype(float), U), sign * U) >= 0
            for bound, sign in ((self.low, 1.0), (self.high, -1.0))
            if np.isinf(bound).any()
        ]
        return [*signs, value] if signs else value

    def statement(self, k: int) -> Statement:
        return Statement("Box", _sides(self.low, self.high, k))

    @property
    def notation(self) -> Notation:
        low, high = _Side(self.low, "low", ">="), _Side(self.high, "high", "<=")
        sides = [side for side in (low, high) if not np.isinf(side.bound).all()]
        if len(sides) == 2:
            value, support = f"{low.text} <= %z <= {high.text}", f"sum_j max({low.times}(%u)_j, {high.times}(%u)_j)"
            domain = "; ".join(side.cone() for side in sides if np.isinf(side.bound).any())
        else:
            value, support, domain = sides[0].alone() if sides else ("%z free", "", "%u = 0")
        latex = [_typeset(text) for text in (value, support, domain)]
        return Notation(f"[{value}]", support, domain, rf"\iota\{{{latex[0]}\}}", *latex[1:])


@dataclass(frozen=True)
class _Side:
    """The notation of one of the bounds: a number where it is one for all coordinates, else by its name."""

    bound: Array
    name: str
    relation: str

    @property
    def text(self) -> str:
        return f"{self.bound.item():g}" if self.bound.size == 1 else self.name

    @property
    def times(self) -> str:
        """The bound of coordinate j before what it is multiplied by; 1 is not written."""
        one = {1.0: "", -1.0: "-"}.get(self.bound.item()) if self.bound.size == 1 else f"{self.name}_j "
        return f"{self.text} " if one is None else one

    def cone(self) -> str:
        """The flows that do not push against a bound that is not there."""
        return f"(%u)_j {self.relation} 0 where {self.name}_j = {'-inf' if self.relation == '>=' else 'inf'}"

    def alone(self) -> tuple[str, str, str]:
        """Value, conjugate and domain of a box with this bound only."""
        support = f"sum_j {self.times}(%u)_j" if self.bound.any() else ""
        return f"%z {self.relation} {self.text}", support, f"%u {'<=' if self.relation == '>=' else '>='} 0"


LATEX = {"low": r"\ell", "high": "h", "inf": r"\infty", "<=": r"\le", ">=": r"\ge", "sum_j": r"\sum_j", "max": r"\max"}
LATEX |= {" where ": r" \text{ where } ", " free": r" \text{ free}", "; ": r",\ "}


def _typeset(text: str) -> str:
    """The notation of a box as LaTeX, from its text."""
    spaced = re.sub(r"(?<=\w)(?<!sum_j) (?=\(%u\))", r" \\, ", text)
    return re.sub("|".join(LATEX), lambda found: LATEX[found[0]], spaced)


def _sides(low: Array, high: Array, k: int) -> list[list[float | None]]:
    """The pairs of bounds of k coordinates, None where there is none."""
    pairs = zip(np.broadcast_to(low, (k,)).tolist(), np.broadcast_to(high, (k,)).tolist(), strict=True)
    return [[None if np.isinf(bound) else bound for bound in pair] for pair in pairs]


def _bounds(value: Any, name: str) -> Array:
    """A bound as an array of floats, of no or one dimension, without NaN."""
    bound = numbers(value, f"the bound {name} of Box", "a number or one per coordinate", TermError)
    if bound.ndim > 1 or bound.size == 0:
        raise TermError(f"the bound {name} of Box must be a number or one per coordinate, got shape {bound.shape}")
    if np.isnan(bound).any():
        raise TermError(f"the bound {name} of Box has a NaN at coordinate {int(np.isnan(bound).argmax())}")
    return bound


def _finite(bound: Array) -> Array:
    return np.where(np.isfinite(bound), bound, 0.0)


def _full(bound: Array, Z: Any) -> Array:
    return np.broadcast_to(bound, Z.shape)


def _at_least(Z: Any, low: Array) -> Any:
    """Z >= low for the coordinates with a bound; None where there is none."""
    bounded = np.isfinite(np.broadcast_to(low, Z.shape[1:]))
    if not bounded.any():
        return None
    columns = np.flatnonzero(bounded)
    return Z[:, columns] >= _full(np.broadcast_to(low, Z.shape[1:])[columns], Z[:, columns])
