"""The derivatives of smooth CVXPY functions at many rows: their trees, differentiated forwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..terms import Array
from .atoms import smooth
from .linear import affine_map, dense


@dataclass(frozen=True)
class Jet:
    """s numbers at each of m rows, with their derivatives in the k coordinates: (m, s), (m, s, k) and (m, s, k, k)."""

    value: Array
    slope: Array
    bend: Array

    def mapped(self, M: Array) -> Jet:
        """M (r, s) times the numbers."""
        return Jet(
            self.value @ M.T,
            np.einsum("rs,msk->mrk", M, self.slope),
            np.einsum("rs,mskl->mrkl", M, self.bend),
        )

    def through(self, f: Array, df: Array, ddf: Array) -> Jet:
        """f of each number, from f, f' and f'' there."""
        square = self.slope[:, :, :, None] * self.slope[:, :, None, :]
        return Jet(
            f,
            df[:, :, None] * self.slope,
            ddf[:, :, None, None] * square + df[:, :, None, None] * self.bend,
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
        return lambda rows: Jet(rows, np.broadcast_to(np.eye(k), (len(rows), k, k)), np.zeros((len(rows), k, k, k)))
    if expression.is_constant():
        flat = dense(expression.value).ravel(order="F")
        return lambda rows: _constant(np.broadcast_to(flat, (len(rows), len(flat))), k)
    args = [jets(arg, z) for arg in expression.args]
    if isinstance(expression, AffAtom):
        base, matrices = affine_map(expression)
        pairs = [(arg, M) for arg, M in zip(args, matrices, strict=True) if M is not None]
        return lambda rows: _added(base, [arg(rows).mapped(M) for arg, M in pairs])
    name = type(expression).__name__.removesuffix("Approx")
    if name in _OF_VECTORS and expression.size == 1:
        return lambda rows: _OF_VECTORS[name](*(arg(rows) for arg in args))
    f = smooth(expression)
    return lambda rows: (x := args[0](rows)).through(f.value(x.value), f.slope(x.value), f.bend(x.value))


def _log_sum_exp(x: Jet) -> Jet:
    top = x.value.max(axis=1, keepdims=True)
    weight = np.exp(x.value - top)
    total = weight.sum(axis=1, keepdims=True)
    share = weight / total
    slope = np.einsum("ms,msk->mk", share, x.slope)
    bend = np.einsum("ms,msk,msl->mkl", share, x.slope, x.slope) + np.einsum("ms,mskl->mkl", share, x.bend)
    bend = bend - slope[:, :, None] * slope[:, None, :]
    return Jet(top + np.log(total), slope[:, None], bend[:, None])


def _quad_over_lin(x: Jet, y: Jet) -> Jet:
    over = np.where(y.value > 0.0, y.value, np.nan)
    ratio = x.value / over
    square = (ratio * ratio).sum(axis=1)
    slope = 2.0 * np.einsum("ms,msk->mk", ratio, x.slope) - square[:, None] * y.slope[:, 0]
    apart = x.slope - ratio[:, :, None] * y.slope
    bend = (2.0 / over)[:, :, None] * np.einsum("msk,msl->mkl", apart, apart)
    bend = bend + 2.0 * np.einsum("ms,mskl->mkl", ratio, x.bend) - square[:, None, None] * y.bend[:, 0]
    return Jet((square * over[:, 0])[:, None], slope[:, None], bend[:, None])


_OF_VECTORS: dict[str, Callable[..., Jet]] = {"log_sum_exp": _log_sum_exp, "quad_over_lin": _quad_over_lin}


def _constant(value: Array, k: int) -> Jet:
    m, s = value.shape
    return Jet(value, np.zeros((m, s, k)), np.zeros((m, s, k, k)))


def _added(base: Array, parts: list[Jet]) -> Jet:
    value, slope, bend = (np.add.reduce([getattr(part, name) for part in parts]) for name in ("value", "slope", "bend"))
    return Jet(base + value, slope, bend)
