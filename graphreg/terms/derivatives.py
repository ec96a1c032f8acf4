"""The derivatives of smooth CVXPY functions at many rows, or of many samples: their trees, differentiated forwards."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..lazy import cp
from .linear import affine_map, dense
from .records import Array


class KinkedError(Exception):
    """An atom that is not known to be smooth."""


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


Smooth = tuple[Callable[[Array], Array], Callable[[Array], Array], Callable[[Array], Array]]  # f, f' and f''
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
    f, df, ddf = entrywise(*kind_of(expression))
    return lambda rows: (x := args[0](rows)).through(f(x.value), df(x.value), ddf(x.value))


def _logistic(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


_ELEMENTWISE: dict[str, Smooth] = {
    "exp": (np.exp, np.exp, np.exp),
    "log": (np.log, lambda x: 1.0 / x, lambda x: -1.0 / (x * x)),
    "log1p": (np.log1p, lambda x: 1.0 / (1.0 + x), lambda x: -1.0 / (1.0 + x) ** 2),
    "entr": (lambda x: -x * np.log(x), lambda x: -np.log(x) - 1.0, lambda x: -1.0 / x),
    "logistic": (_logistic, _sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x)),
}


def _power(p: float) -> Smooth:
    if p == 2.0:
        return np.square, lambda x: 2.0 * x, lambda x: np.full_like(x, 2.0)

    whole = p > 0.0 and p % 2.0 == 0.0

    def power(x: Array, e: float) -> Array:
        return (x if whole else np.where(x > 0.0, x, np.nan)) ** e  # where it is smooth

    return lambda x: power(x, p), lambda x: p * power(x, p - 1.0), lambda x: p * (p - 1.0) * power(x, p - 2.0)


def _huber(M: float) -> Smooth:
    """Whose second derivative jumps at -M and M."""
    return (
        lambda x: np.where(np.abs(x) <= M, x * x, M * (2.0 * np.abs(x) - M)),
        lambda x: 2.0 * np.clip(x, -M, M),
        lambda x: np.where(np.abs(x) <= M, 2.0, 0.0),
    )


def entrywise(kind: str, parameter: float = 0.0) -> Smooth:
    """The smooth function that CVXPY's atom of this name is at each entry, with its derivatives.

    Raises
    ------
    KinkedError
        Where it is not known to be smooth, or to act on each entry.
    """
    if kind == "Power":
        return _power(parameter)
    if kind == "huber":
        return _huber(parameter)
    if kind not in _ELEMENTWISE:
        raise KinkedError(kind)
    return _ELEMENTWISE[kind]


def kind_of(atom: Any) -> tuple[str, float]:
    """The name and the parameter of an atom that acts on each entry."""
    kind = type(atom).__name__.removesuffix("Approx")
    return kind, float(atom.p.value) if kind == "Power" else float(atom.M.value) if kind == "huber" else 0.0


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


# ---- functions of one number -----------------------------------------------------------------------------------------
class Line(NamedTuple):
    """A number of each sample, with its first and second derivative, and the size of the numbers whose sum it is."""

    value: Array
    slope: Array
    bend: Array
    size: Array


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
    below = (name == "Power" and kind_of(expression)[1] == 2.0) or (squared and name == "NegExpression")
    args = [_line(arg, variable, x, below) for arg in expression.args]
    if squared and name in ("maximum", "minimum") and len(args) == 2 and any(_is_zero(a) for a in expression.args):
        u = args[int(_is_zero(expression.args[0]))]
        keep = u.value > 0.0 if name == "maximum" else u.value < 0.0
        return Line(*(np.where(keep, each, 0.0) for each in u))
    if isinstance(expression, AffAtom):
        if name not in ("AddExpression", "NegExpression", "multiply", "MulExpression", "DivExpression", "Promote"):
            raise KinkedError(name)
        return _affine_line(expression, args)
    f, df, ddf = entrywise(*kind_of(expression))
    u, slope, bend, _ = args[0]
    value = f(u)
    return Line(value, df(u) * slope, ddf(u) * slope * slope + df(u) * bend, np.abs(value))


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
