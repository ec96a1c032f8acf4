"""Smooth functions below kinked CVXPY functions, as near as their widths are small.

Each kinked atom (an absolute value, a norm, a maximum, a power between 1 and 2) is replaced by a smooth one that is
convex, as monotone as it is, and below it by at most its width: ``|x|`` by ``sqrt(x^2 + w^2) - w``. By the rules of
convex composition what comes out is convex and lies below the function, so that its conjugate lies above (Beck and
Teboulle, Smoothing and first order methods, SIAM J. Optim. 22, 2012).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..derivatives import Jet, Jets, jets
from ..records import Array

Smoothing = Callable[[list[Jet], Array], Jet]  # of the arguments, and of the widths (m, 1)


@dataclass(frozen=True)
class Smoothed:
    """``jets`` takes rows (z, widths), a width for each kink; ``arguments`` are those of its atom."""

    jets: Jets
    arguments: list[list[Jets]]

    def sizes(self, z: Array) -> Array:
        """How large the numbers are that meet at each kink, (m, kinks)."""
        rows = np.hstack([z, np.ones((len(z), len(self.arguments)))])
        found = [np.max([np.abs(arg(rows).value).max(axis=1) for arg in args], axis=0) for args in self.arguments]
        return np.array(found).reshape(len(self.arguments), len(z)).T


def smoothed(expression: Any, variable: Any) -> Smoothed:
    """The smooth functions below an expression of one variable.

    Raises
    ------
    KinkedError
        Where it holds an atom that is neither smooth nor one of those that are known here.
    """
    arguments: list[list[Jets]] = []

    def kinked(atom: Any, args: list[Jets]) -> Jets | None:
        smoothing = _smoothing(atom)
        if smoothing is None:
            return None
        at = variable.size + len(arguments)
        arguments.append(args)
        return lambda rows: smoothing([arg(rows) for arg in args], rows[:, at : at + 1])

    return Smoothed(jets(expression, variable, kinked), arguments)


def _smoothing(atom: Any) -> Smoothing | None:
    kind = type(atom).__name__.removesuffix("Approx")
    if kind == "Power":
        p = float(atom.p.value)
        return None if p <= 1.0 or p % 2.0 == 0.0 else lambda args, w: _power(args[0], p, w)
    if kind == "Pnorm" and not (atom.size == 1 and float(getattr(atom, "original_p", atom.p)) == 2.0):
        return None
    return _SMOOTHINGS.get(kind) if atom.size == 1 or kind in ("abs", "maximum") else None


def _abs(x: Jet, w: Array) -> Jet:
    r = np.sqrt(x.value**2 + w**2)
    return x.through(x.value**2 / (r + w), x.value / r, w**2 / r**3)


def _power(x: Jet, p: float, w: Array) -> Jet:
    """x^p of x >= 0; with p < 2 its second derivative has a pole at 0."""
    if p > 2.0:
        y = np.maximum(x.value, 0.0)
        return x.through(y**p, p * y ** (p - 1.0), p * (p - 1.0) * y ** (p - 2.0))
    y = x.value**2 + w**2
    # (a + b)^(p/2) <= a^(p/2) + b^(p/2)
    slope, bend = p * x.value * y ** (p / 2 - 1.0), p * y ** (p / 2 - 2.0) * ((p - 1.0) * x.value**2 + w**2)
    return x.through(y ** (p / 2) - w**p, slope, bend)


def _norm2(x: Jet, w: Array) -> Jet:
    square = (x.value**2).sum(axis=1, keepdims=True)
    r = np.sqrt(square + w**2)
    unit = x.value / r
    slope = np.einsum("ms,msk->mk", unit, x.slope)
    bend = np.einsum("msk,msl->mkl", x.slope, x.slope) - slope[:, :, None] * slope[:, None, :]
    bend = bend / r[:, :, None] + np.einsum("ms,mskl->mkl", unit, x.bend)
    return Jet(square / (r + w), slope[:, None], bend[:, None])


def _larger(a: Jet, b: Jet, w: Array) -> Jet:
    """max(a, b) = b + (t + |t|) / 2 with t = a - b."""
    t = _plus(a, b, -1.0)
    rise = _abs(t, w)
    return _plus(_plus(b, t, 0.5), rise, 0.5)


def _plus(a: Jet, b: Jet, factor: float) -> Jet:
    return Jet(a.value + factor * b.value, a.slope + factor * b.slope, a.bend + factor * b.bend)


def _maximum(args: list[Jet], w: Array) -> Jet:
    out = args[0]
    for each in args[1:]:
        out = _larger(out, each, w)
    return out


def _largest(x: Jet, w: Array) -> Jet:
    parts = (x.value, x.slope, x.bend)
    return _maximum([Jet(*(part[:, i : i + 1] for part in parts)) for i in range(x.value.shape[1])], w)


_SMOOTHINGS: dict[str, Smoothing] = {
    "abs": lambda args, w: _abs(args[0], w),
    "norm1": lambda args, w: _abs(args[0], w).mapped(np.ones((1, args[0].value.shape[1]))),
    "norm_inf": lambda args, w: _largest(_abs(args[0], w), w),
    "max": lambda args, w: _largest(args[0], w),
    "maximum": _maximum,
    "Pnorm": lambda args, w: _norm2(args[0], w),
}
