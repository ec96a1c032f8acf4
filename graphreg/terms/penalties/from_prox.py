"""The user's own penalty from its value and its prox: the conjugate is derived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from ...errors import TermError
from ...escaping import upright, visible
from ..records import Array, Notation
from ._rows import row_norm
from .penalty import AbstractPenalty

OUTWARD = 1e-8  # flows are taken this much longer, so that what is proved there holds for them
ROUNDS, GROWTH = 40, 4.0  # of the proximal point method, and of its step
SETTLED = 1e-13  # of a flow: what the method may leave
RADII = 10.0 ** np.arange(3, -10, -1)  # of a ball around 0 inside dom phi*, the largest of which is taken

__all__ = ["from_prox"]  # its class is made by the function


@final
@dataclass(frozen=True, eq=False, repr=False)
class ProxPenalty(AbstractPenalty):
    """An even penalty given by value and prox (see `from_prox`).

    With p = prox(v, t), w = (v - p) / t is a subgradient at p, where ``phi*(w) = <w, p> - phi(p)``. For a flow u the
    proximal point method finds such a w near (1 + e) u, e = 1e-8, and u lies between w and a point y of a ball around
    0, so that ``phi*(u) <= phi*(w) / (1 + e) + phi*(y) e / (1 + e)``: that is what `conjugate` returns, and +inf where
    no such w is found.
    """

    of_rows: Callable[[Array], Array]
    of_points: Callable[[Array, Any], Array]
    written: Callable[[Any], Any] | None
    name: str
    balls: dict[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])  # by size of row

    def value(self, z: Array) -> Array:
        return np.asarray(self.of_rows(z), dtype=float)

    def prox(self, v: Array, step: Any) -> Array:
        return np.asarray(self.of_points(v, step), dtype=float)

    def conjugate(self, u: Array) -> Array:
        radius, most = self._ball(u.shape[1])
        w, value = self._nearby((1.0 + OUTWARD) * u)
        y = ((1.0 + OUTWARD) * u - w) / OUTWARD
        return np.where(row_norm(y) <= radius, (value + OUTWARD * most) / (1.0 + OUTWARD), np.inf)

    def cvxpy(self, Z: Any) -> Any:
        if self.written is None:
            raise TermError(
                f"the penalty {self.name} has no form in CVXPY, which the exact route needs: pass cvxpy= to from_prox, "
                "or solve by another method, as in problem.solve(gr.PrimalDual())"
            )
        return self.written(Z)

    def check(self, k: int) -> None:
        self._ball(k)

    def accuracy(self) -> float:
        return 1e-7

    def is_users(self) -> bool:
        return True  # the functions are

    @property
    def notation(self) -> Notation:
        latex = upright(self.name)
        return Notation(f"{self.name}(%z)", f"%c {self.name}*(%u / %c)", "", rf"{latex}(%z)", rf"%c \, {latex}^*", "")

    def __repr__(self) -> str:
        return f"ProxPenalty({self.name})"

    def _nearby(self, u: Array) -> tuple[Array, Array]:
        """Subgradients near each row, or nearest in dom phi*, and phi* there: the proximal point method on phi - <u, .>
        from 0, with steps that grow."""
        p, w, value = np.zeros(u.shape), np.full(u.shape, np.nan), np.full(len(u), np.inf)
        live, s = np.arange(len(u)), 1.0 / np.maximum(row_norm(u), 1e-300)
        s = np.where(row_norm(u) > 0.0, s, 1.0)
        for _ in range(ROUNDS):
            moved = self.prox(p[live] + s[live, None] * u[live], s[live])
            left = (moved - p[live]) / s[live, None]
            p[live], w[live] = moved, u[live] - left
            s[live] *= GROWTH
            live = live[~(row_norm(left) <= SETTLED * row_norm(u[live]))]
            if not len(live):
                break
        value = (w * p).sum(axis=1) - self.value(p)
        return w, np.maximum(np.where(np.isnan(value), np.inf, value), 0.0)

    def _ball(self, k: int) -> tuple[float, float]:
        """A radius r, and the largest value of phi* over the ball of that radius around 0, bounded by that at the
        corners of a cross around it."""
        if k not in self.balls:
            axes = np.vstack([np.eye(k), -np.eye(k)])
            for r in RADII:
                corners = 2.0 * r * k * axes
                w, value = self._nearby(corners)
                if (row_norm(corners - w) <= 1e-3 * r).all() and np.isfinite(value).all():
                    self.balls[k] = float(r), float(value.max())
                    break
            else:
                raise TermError(
                    f"no conjugate can be derived for the penalty {self.name} on {k} coordinates: it does not grow in "
                    "every direction, so that 0 lies on the boundary of the domain of its conjugate, or its prox is not "
                    "that of its value; write a class with value, prox, conjugate and cvxpy"
                )
        return self.balls[k]


def from_prox(
    value: Callable[[Array], Array],
    prox: Callable[[Array, Any], Array],
    cvxpy: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> ProxPenalty:
    """A penalty from its value and its prox; its conjugate is derived.

    ``phi*(u) = sup over z of <u, z> - phi(z)`` is bounded from above by what the prox says of subgradients near u
    (see `ProxPenalty`); flows within 1e-8 of the boundary of its domain count as outside. That rests on ``prox`` being
    that of ``value``: `graphreg.testing.check_penalty` and every solve try it, as for any term of the user's.

    Parameters
    ----------
    value : callable
        phi of each row of an (m, k) array, (m,): even, convex, >= 0, 0 at 0, and growing in every direction.
    prox : callable
        ``prox(v, step)``: for each row the p that minimises ``step * phi(p) + 1/2 ||p - v||^2``, (m, k); ``step`` is a
        number or one per row, (m,).
    cvxpy : callable, optional
        A convex CVXPY expression with one value per row of the (m, k) expression that it is given; the exact route
        asks for it.
    name : str, optional
        How it is printed; by default the name of the function ``value``.

    Raises
    ------
    TermError
        Where phi does not grow in every direction, once it is used on so many coordinates.

    Examples
    --------
    >>> def value(z):
    ...     return np.abs(z).max(axis=1)
    >>> from_prox(value, gr.LInf().prox, name="largest")
    ProxPenalty(largest)
    """
    for what, function in (("value", value), ("prox", prox), ("cvxpy", cvxpy)):
        if not callable(function) and not (what == "cvxpy" and function is None):
            raise TermError(f"{what} of from_prox must be a function, got {function!r}")
    said = visible(name or str(getattr(value, "__name__", "phi"))).replace("%", "percent")
    return ProxPenalty(value, prox, cvxpy, "phi" if said in ("<lambda>", "value") else said)
