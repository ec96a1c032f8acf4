"""The value, gradient and Hessian of a smooth CVXPY function at many rows: its tree, differentiated forwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array
from ._linear import affine_map, dense


class KinkedError(Exception):
    """An atom that is not known to be smooth."""


@dataclass(frozen=True)
class Jet:
    """s numbers at each of m rows, with their derivatives in the k coordinates: (m, s), (m, s, k) and (m, s, k, k).
    ``size`` (m, s) is that of the numbers whose sum the slopes are: rounding leaves a share of it."""

    value: Array
    slope: Array
    bend: Array
    size: Array

    def mapped(self, M: Array) -> Jet:
        """M (r, s) times the numbers."""
        return Jet(
            self.value @ M.T,
            np.einsum("rs,msk->mrk", M, self.slope),
            np.einsum("rs,mskl->mrkl", M, self.bend),
            self.size @ np.abs(M).T,
        )

    def through(self, f: Array, df: Array, ddf: Array) -> Jet:
        """f of each number, from f, f' and f'' there."""
        square = self.slope[:, :, :, None] * self.slope[:, :, None, :]
        return Jet(
            f,
            df[:, :, None] * self.slope,
            ddf[:, :, None, None] * square + df[:, :, None, None] * self.bend,
            np.abs(df) * self.size,
        )


Jets = Callable[[Array], Jet]


def jets(expression: Any, z: Any) -> Jets:
    """The numbers of an expression of the variable z, with their derivatives.

    Raises
    ------
    KinkedError
        Where it holds an atom that is not known to be smooth.
    """
    from cvxpy.atoms.affine.affine_atom import AffAtom

    k = z.size
    if expression is z:
        return lambda rows: Jet(
            rows, np.broadcast_to(np.eye(k), (len(rows), k, k)), np.zeros((len(rows), k, k, k)), np.ones(rows.shape)
        )
    if expression.is_constant():
        flat = dense(expression.value).ravel(order="F")
        return lambda rows: _constant(np.broadcast_to(flat, (len(rows), len(flat))), k)
    args = [jets(arg, z) for arg in expression.args]
    if isinstance(expression, AffAtom):
        base, matrices = affine_map(expression)
        pairs = [(arg, M) for arg, M in zip(args, matrices, strict=True) if M is not None]
        return lambda rows: _added(base, [arg(rows).mapped(M) for arg, M in pairs])
    name = type(expression).__name__.removesuffix("Approx")
    if name == "Power":
        p = float(expression.p.value)
        return lambda rows: _power(args[0](rows), p)
    if name in _ELEMENTWISE:
        f, df, ddf = _ELEMENTWISE[name]
        return lambda rows: (x := args[0](rows)).through(f(x.value), df(x.value), ddf(x.value))
    if name == "log_sum_exp" and expression.size == 1:
        return lambda rows: _log_sum_exp(args[0](rows))
    if name == "quad_over_lin" and expression.size == 1:
        return lambda rows: _quad_over_lin(args[0](rows), args[1](rows))
    raise KinkedError(name)


def _logistic(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


_ELEMENTWISE: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array], Callable[[Array], Array]]] = {
    "exp": (np.exp, np.exp, np.exp),
    "log": (np.log, lambda x: 1.0 / x, lambda x: -1.0 / (x * x)),
    "log1p": (np.log1p, lambda x: 1.0 / (1.0 + x), lambda x: -1.0 / (1.0 + x) ** 2),
    "entr": (lambda x: -x * np.log(x), lambda x: -np.log(x) - 1.0, lambda x: -1.0 / x),
    "logistic": (_logistic, _sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x)),
}


def _power(x: Jet, p: float) -> Jet:
    v = x.value
    if p == 2.0:
        return x.through(v * v, 2.0 * v, np.full_like(v, 2.0))
    v = np.where(v > 0.0, v, np.nan)  # where it is smooth
    return x.through(v**p, p * v ** (p - 1.0), p * (p - 1.0) * v ** (p - 2.0))


def _log_sum_exp(x: Jet) -> Jet:
    top = x.value.max(axis=1, keepdims=True)
    weight = np.exp(x.value - top)
    total = weight.sum(axis=1, keepdims=True)
    share = weight / total
    slope = np.einsum("ms,msk->mk", share, x.slope)
    bend = np.einsum("ms,msk,msl->mkl", share, x.slope, x.slope) + np.einsum("ms,mskl->mkl", share, x.bend)
    bend = bend - slope[:, :, None] * slope[:, None, :]
    size = (share * x.size).sum(axis=1, keepdims=True)
    return Jet(top + np.log(total), slope[:, None], bend[:, None], size)


def _quad_over_lin(x: Jet, y: Jet) -> Jet:
    over = np.where(y.value > 0.0, y.value, np.nan)
    ratio = x.value / over
    square = (ratio * ratio).sum(axis=1)
    slope = 2.0 * np.einsum("ms,msk->mk", ratio, x.slope) - square[:, None] * y.slope[:, 0]
    apart = x.slope - ratio[:, :, None] * y.slope
    bend = (2.0 / over)[:, :, None] * np.einsum("msk,msl->mkl", apart, apart)
    bend = bend + 2.0 * np.einsum("ms,mskl->mkl", ratio, x.bend) - square[:, None, None] * y.bend[:, 0]
    size = 2.0 * (np.abs(ratio) * x.size).sum(axis=1) + square * y.size[:, 0]
    return Jet((square * over[:, 0])[:, None], slope[:, None], bend[:, None], size[:, None])


def _constant(value: Array, k: int) -> Jet:
    m, s = value.shape
    return Jet(value, np.zeros((m, s, k)), np.zeros((m, s, k, k)), np.zeros((m, s)))


def _added(base: Array, parts: list[Jet]) -> Jet:
    value, slope, bend, size = (
        np.add.reduce([getattr(part, name) for part in parts]) for name in ("value", "slope", "bend", "size")
    )
    return Jet(base + value, slope, bend, size)
