"""What a part of the tree of a CVXPY function is, as it is read: ``constant + sum of h(variable) + 1/2 z'Qz``, where a
variable is a coordinate of z or a norm of some coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..records import Array
from ._curves import LINE, NOTHING, Curve, lines_of
from ._functions import Function


class UnknownError(Exception):
    """A part of the tree that is not recognised."""


@dataclass(frozen=True, eq=False)
class NormOf:
    """The p-norm of the ``largest`` entries of Az, A (r, k)."""

    p: float
    A: Array
    largest: float = np.inf

    @property
    def is_l1(self) -> bool:
        """Whether it is the l1 norm of all entries."""
        return self.p == 1.0 and np.isinf(self.largest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NormOf) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[float, float, int, bytes]:
        return self.p, self.largest, len(self.A), self.A.tobytes()


Variable = int | NormOf


@dataclass(frozen=True)
class Entry:
    """A constant, functions of variables that are 0 where these are 0, and a quadratic form ``z'Qz / 2``."""

    constant: float = 0.0
    curves: dict[Variable, Curve | Function] = field(default_factory=dict["Variable", "Curve | Function"])
    Q: Any = 0.0

    def __add__(self, other: Entry) -> Entry:
        curves = dict(self.curves)
        for variable, curve in other.curves.items():
            curves[variable] = curves[variable] + curve if variable in curves else curve
        return Entry(self.constant + other.constant, curves, self.Q + other.Q)

    def times(self, factor: float) -> Entry:
        if factor == 0.0:
            return Entry()
        curves = {variable: curve.times(factor) for variable, curve in self.curves.items()}
        return Entry(factor * self.constant, curves, factor * self.Q)

    @property
    def used(self) -> dict[Variable, Curve | Function]:
        """The variables on which it depends."""
        return {
            v: c
            for v, c in self.curves.items()
            if isinstance(c, Function) or len(c.knots) or c.bend.any() or c.slope.any()
        }

    def row(self, k: int) -> Array:
        """a (k,) where it is a'z."""
        a = np.zeros(k)
        for variable, curve in self.used.items():
            if isinstance(variable, NormOf) or isinstance(curve, Function) or not curve.is_line:
                raise UnknownError
            a[variable] = curve.slope[0]
        if self.constant != 0.0 or np.any(self.Q):
            raise UnknownError
        return a

    def line(self) -> tuple[Variable | None, float, float]:
        """(variable, a, b) where it is ``a * variable + b``."""
        used = self.used
        if len(used) > 1 or np.any(self.Q):
            raise UnknownError
        for variable, curve in used.items():
            if isinstance(curve, Function) or not curve.is_line:
                raise UnknownError
            return variable, float(curve.slope[0]), self.constant
        return None, 0.0, self.constant

    def lines(self) -> tuple[Variable | None, list[tuple[float, float]]]:
        """The variable, and the lines whose maximum it is."""
        used = self.used
        if len(used) > 1 or np.any(self.Q):
            raise UnknownError
        for variable, curve in used.items():
            found = None if isinstance(curve, Function) else lines_of(curve, self.constant)
            if found is None:
                raise UnknownError
            return variable, found
        return None, [(0.0, self.constant)]

    def alone(self, k: int) -> tuple[Variable, Curve | Function]:
        """The variable and the function of it that it is, beside its constant."""
        used, Q = self.used, self.Q * np.ones((k, k))
        if Q.any():
            on = np.flatnonzero(np.diag(Q))
            A, q = np.eye(k)[on], float(Q[on[0], on[0]]) if len(on) else 0.0
            if not np.array_equal(Q, q * A.T @ A):
                raise UnknownError
            return Entry(curves=used).joined(int(on[0]) if len(on) == 1 else NormOf(2.0, A), Curve.of([], [0.0], [q]))
        if len(used) == 1:
            return next(iter(used.items()))
        weights = {j: weight_of(curve) for j, curve in used.items() if not isinstance(j, NormOf)}
        if not used or len(weights) < len(used) or len(set(weights.values())) > 1:
            raise UnknownError
        return NormOf(1.0, np.array([weight * np.eye(k)[j] for j, weight in weights.items()])), LINE

    def joined(self, variable: Variable, curve: Curve) -> tuple[Variable, Curve | Function]:
        """With a function of the variable added, if it depends on no other."""
        if any(other != variable for other in self.curves):
            raise UnknownError
        return variable, self.curves.get(variable, NOTHING) + curve


def weight_of(curve: Curve | Function) -> float:
    """w where the function is ``w |z_j|``."""
    if isinstance(curve, Function):
        raise UnknownError
    if curve.is_line and not curve.slope.any():
        return 0.0
    if curve.bend.any() or not np.array_equal(curve.knots, [0.0]) or curve.slope[0] != -curve.slope[1]:
        raise UnknownError
    return float(curve.slope[1])
