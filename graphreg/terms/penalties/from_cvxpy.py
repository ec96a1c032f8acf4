"""The user's own penalty, from a CVXPY function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from ...errors import TermError
from ...escaping import upright, visible
from ...lazy import cp
from ..records import Array, Notation, RecessionCone
from ._examine import FunctionTraits, apply, examine, values
from ._rows import LEAST_SLACK, column, row_norm
from .base import AbstractOneSided, AbstractPenalty

OUTWARD = 1e-8  # gauges are inflated by this, and clipped points are put this far inside
SIZES = (3, 2, 1, *range(4, 33))  # the sizes of rows on which a function is tried when the penalty is made

__all__ = ["from_cvxpy"]  # its classes are made by the function


@dataclass(frozen=True, eq=False)
class AbstractCvxpyPenalty(AbstractPenalty):
    """phi, given as a CVXPY function; its prox and conjugate are small cone programmes, solved by Clarabel.

    ``phi*`` is evaluated on the safe side: a dual bound of the solver, with a relative margin of 1e-9, and +inf unless
    the solver proved a bound. Its domain is ``gauge(u) <= 1``, where the gauge is ``max <u, z>`` over the z at which
    the recession function of phi is at most 1 (Rockafellar, Convex Analysis, theorem 13.3), inflated by 1e-8.
    """

    function: Callable[[Any], Any]
    rows: bool = False
    name: str | None = None
    shapes: dict[int, FunctionTraits] = field(
        repr=False, default_factory=dict[int, FunctionTraits]
    )  # by size of row, when found out

    @property
    @abstractmethod
    def needs_even(self) -> bool:
        """Whether a function that is not even is refused."""

    # ---- the four ------------------------------------------------------------------------------------------------
    def value(self, z: Array) -> Array:
        self._shape(z.shape[1])
        return values(self.function, self.rows, z)

    def prox(self, v: Array, step: Any) -> Array:
        shape = self._shape(v.shape[1])
        steps = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        p = np.array([shape.programme.prox(row, t) for row, t in zip(v, steps, strict=True)]).reshape(v.shape)
        if shape.homogeneous:  # what the solver leaves of a fused row
            p[row_norm(p) <= OUTWARD * row_norm(v)] = 0.0
        return p

    def conjugate(self, u: Array) -> Array:
        shape = self._shape(u.shape[1])
        inside = self.gauge(u) <= 1.0
        if shape.homogeneous:
            return np.where(inside, 0.0, np.inf)
        within = self.span(u)
        return np.array(
            [shape.programme.conjugate(row) if ok else np.inf for row, ok in zip(within, inside, strict=True)]
        )

    def cvxpy(self, Z: Any) -> Any:
        if self.rows:
            return self.function(Z)
        return cp.hstack([cp.sum(self.function(Z[i])) for i in range(Z.shape[0])])

    def is_users(self) -> bool:
        return True  # the function is

    # ---- derived ---------------------------------------------------------------------------------------------------
    def check(self, k: int) -> None:
        self._shape(k)

    def gauge(self, u: Array) -> Array:
        shape = self._shape(u.shape[1])
        if shape.everywhere:
            return np.zeros(len(u))
        within = self.span(u)
        support = np.array([shape.programme.support(row) for row in within])
        # where phi ignores coordinates this is exact; along other directions rounding alone is allowed for
        rounding = 0.0 if shape.programme.ignored is not None else 1e-12
        in_span = row_norm(u - within) <= rounding * row_norm(u)
        return np.where(in_span, support.reshape(len(u)) * (1.0 + OUTWARD), np.inf)

    def gauge_at_zero(self, u: Array) -> Array:
        shape = self._shape(u.shape[1])
        if shape.homogeneous:
            return self.gauge(u)
        support = np.array([shape.programme.support_at_zero(row) for row in u]).reshape(len(u))
        return support * (1.0 + OUTWARD)

    def clip(self, u: Array) -> Array:
        u = self.span(u)
        gauge = self.gauge(u)
        out = (gauge > 1.0 - OUTWARD) & np.isfinite(gauge)
        u = np.where(out[:, None], u * ((1.0 - OUTWARD) / np.where(out, gauge, 1.0))[:, None], u)
        return np.where(np.isfinite(gauge)[:, None] | (not self.needs_even), u, 0.0)

    def reach(self, start: Array, end: Array) -> Array:
        g0, g1 = self.gauge(start), self.gauge(end)
        limit = np.maximum(1.0 - OUTWARD, g0)  # gauges are known to the solver's accuracy only
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.nan_to_num((limit - g0) / (g1 - g0), nan=0.0, posinf=0.0, neginf=0.0)
        return np.where(g1 <= limit, 1.0, np.clip(t, 0.0, 1.0))

    def conductance(self, u: Array) -> Array:
        slack = np.maximum(1.0 - self.gauge(u), LEAST_SLACK)
        return np.broadcast_to(column(slack), u.shape)

    def conduct(self, conductance: Array, z: Array) -> Array:
        return conductance * self.span(z)  # keeps the flow where phi* can be finite

    def recession(self, k: int) -> RecessionCone | None:
        shape = self._shape(k)
        L = shape.programme.lineality
        if shape.even:  # then phi is constant both ways along what it does not grow along
            if L.shape[1] == 0:
                return RecessionCone(np.zeros(k), np.zeros(k))
            if shape.programme.ignored is not None:
                bound = np.where(shape.programme.ignored, np.inf, 0.0)
                return RecessionCone(-bound, bound)
            return RecessionCone(np.full(k, -np.inf), np.full(k, np.inf), np.eye(k) - L @ L.T, exact=False)
        axes = np.vstack([np.eye(k), -np.eye(k)])
        return RecessionCone(np.zeros(k), np.zeros(k)) if np.isfinite(self.gauge(axes)).all() else None

    @property
    def notation(self) -> Notation:
        name = _label(self.function, self.name)
        latex = name if len(name) == 1 and name.isalpha() else {"phi": r"\phi"}.get(name, upright(name))
        if any(shape.homogeneous for shape in self.shapes.values()):
            polar = f"{name}^o(%u) <= %c where {name}^o(u) = max over {name}(z) <= 1 of <u, z>"
            typeset = rf"{latex}^\circ(%u) \le %c \text{{ where }} {latex}^\circ(u) = \max_{{{latex}(z) \le 1}} "
            return Notation(f"{name}(%z)", "", polar, rf"{latex}(%z)", "", typeset + r"\langle u, z \rangle")
        star = f"{name}*(u) = max over z of <u, z> - {name}(z)"
        typeset = rf"{latex}^*(u) = \max_z \langle u, z \rangle - {latex}(z)"
        return Notation(
            f"{name}(%z)",
            f"%c {name}*(%u / %c) where {star}",
            latex_value=rf"{latex}(%z)",
            latex_conjugate=rf"%c \, {latex}^*(%u / %c) \text{{ where }} {typeset}",
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_label(self.function, self.name)}{', rows=True' if self.rows else ''})"

    # ---- what is found out once ------------------------------------------------------------------------------------
    def span(self, u: Array) -> Array:
        """Projection of each row onto the span of dom phi*: orthogonal to where phi is constant."""
        programme = self._shape(u.shape[1]).programme
        L = programme.lineality
        if programme.ignored is not None:
            return np.where(programme.ignored, 0.0, u)
        return u - (u @ L) @ L.T if L.shape[1] else u

    def _shape(self, k: int) -> FunctionTraits:
        if k not in self.shapes:
            self.shapes[k] = examine(self.function, self.rows, k, _label(self.function, self.name))
        shape = self.shapes[k]
        if self.needs_even and not shape.even:
            name = _label(self.function, self.name)
            raise TermError(
                f"the penalty {name} is not even on {k} coordinates, phi(-z) != phi(z): an edge between two nodes has "
                "no direction; for a node penalty, pass a function that shows this on rows of at most "
                f"{max(SIZES)} coordinates"
            )
        return shape


@final
@dataclass(frozen=True, eq=False, repr=False)
class CvxpyPenalty(AbstractCvxpyPenalty):
    """An even penalty from a CVXPY function (see `from_cvxpy`)."""

    @property
    def needs_even(self) -> bool:
        return True


@final
@dataclass(frozen=True, eq=False, repr=False)
class OneSidedCvxpyPenalty(AbstractCvxpyPenalty, AbstractOneSided):
    """A penalty from a CVXPY function that is not even: for ground edges only (see `from_cvxpy`)."""

    @property
    def needs_even(self) -> bool:
        return False

    # 0 may be on the boundary of dom phi*, where rays to 0 lead nowhere: everything is pulled to an inner point instead

    def interior(self, k: int) -> Array:
        # v - prox(v, 1) is a subgradient of phi, so in dom phi*; the mean over directions all around is well inside
        around = np.vstack([scale * sign * np.eye(k) for scale in (0.1, 1.0, 10.0) for sign in (1.0, -1.0)])
        return (around - self.prox(around, 1.0)).mean(axis=0)

    def clip(self, u: Array) -> Array:
        u = super().clip(u)
        out = ~(self.gauge(u) <= 1.0)
        if out.any():
            u, inner = u.copy(), self.interior(u.shape[1])
            u[out] = inner + (1.0 - 1e-6) * (u[out] - self.prox(u[out], 1.0) - inner)
        still = ~np.isfinite(self.conjugate(u))
        return np.where(still[:, None], self.interior(u.shape[1]), u)

    def reach(self, start: Array, end: Array) -> Array:
        inside = self.gauge(end) <= 1.0 - OUTWARD
        low, high = np.where(inside, 1.0, 0.0), np.ones(len(start))
        for _ in range(24):
            open_ = np.flatnonzero(~inside)
            middle = 0.5 * (low[open_] + high[open_])
            points = start[open_] + middle[:, None] * (end[open_] - start[open_])
            ok = np.isfinite(self.conjugate(points))
            low[open_[ok]], high[open_[~ok]] = middle[ok], middle[~ok]
        return low


def from_cvxpy(
    function: Callable[[Any], Any], rows: bool = False, name: str | None = None
) -> CvxpyPenalty | OneSidedCvxpyPenalty:
    """A penalty whose four methods are derived from a CVXPY function.

    Parameters
    ----------
    function : callable
        Takes one row z, a CVXPY expression of shape (k,), and returns a convex scalar expression phi(z) with
        phi >= 0 and phi(0) = 0. Where its atoms have a domain (logarithms, entropies, powers, inverses) it is +inf
        outside, with zero tolerance. An indicator is refused: a constraint is a class of its own (see
        `AbstractConstraint`).
    rows : bool
        Whether the function takes all rows at once instead, of shape (m, k), and returns one value per row, (m,).
    name : str, optional
        How it is printed; by default the name of the function.

    Raises
    ------
    ConvexityError
        Where CVXPY's rules do not show that the function is convex; the message names the smallest guilty part.
    TermError
        Where it is anything else than a scalar convex function phi >= 0 with phi(0) = 0, or where it holds an atom
        that CVXPY evaluates to a tolerance only (an indicator, a rounded exponent); the message names the atom.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from_cvxpy(lambda z: cp.norm(z, 3), name="norm3")
    CvxpyPenalty(norm3)
    """
    if not callable(function):
        raise TermError(f"from_cvxpy takes a function of a CVXPY expression, got {function!r}")
    problems: set[str] = set()
    for k in SIZES:
        try:
            apply(function, rows, k)
        except (ValueError, IndexError) as problem:
            if isinstance(problem, TermError):
                raise
            problems.add(str(problem))  # perhaps the function is for rows of another size
            continue
        shape = examine(function, rows, k, _label(function, name))
        return (CvxpyPenalty if shape.even else OneSidedCvxpyPenalty)(function, rows, name, {k: shape})
    if len(problems) == 1:  # the same for every size, so not about the size
        raise TermError(f"the penalty {_label(function, name)} cannot be written in CVXPY: {problems.pop()}")
    return CvxpyPenalty(function, rows, name)


def _label(function: Callable[[Any], Any], name: str | None) -> str:
    name = visible(name or str(getattr(function, "__name__", "phi")))
    return "phi" if name == "<lambda>" else name.replace("%", "percent")  # with % begin the tokens of a `Notation`
