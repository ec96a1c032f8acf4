"""The user's own penalty from its value and its prox: the conjugate is derived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .base.escaping import visible
from .errors import ConvexityError, TermError
from .terms import ULP, Array, bisected
from .terms.penalties import AbstractPenalty, OwnDomain, row_norm, tried

CALLS = "they are called as value(z) and prox(v, step), with z and v of the shape (m, k) and step of the shape (m,)"

OUTWARD = 1e-8  # flows are taken this much longer, so that what is proved there holds for them
ROUNDS, GROWTH = 40, 4.0  # of the proximal point method, and of its step
SETTLED, NEAR = 1e-11, 1e-3  # of a flow: what the method may leave, and may where its next step has too much noise
RADII = 10.0 ** np.arange(-9, 12)  # of balls around 0, of which some lie inside dom phi*
NOISE = 4.0 * ULP  # of p = prox(v, t), relative to the length of v, which may be much more than that of p
ROUNDED = 1e-7  # of phi*, up to which noise may have a part in it
FAR = 1e6  # a flow of this length, or what it is brought back to, tells where dom phi* ends
FLAT = 1e5  # times its noise, beyond which p is more than that
HALVINGS = 40  # of the way to where phi* is found
TANGENTS = 30  # that cut a ray at the end of dom phi*

Value = Callable[[Array], Array]
Prox = Callable[[Array, Any], Array]


@final
@dataclass(frozen=True, eq=False, repr=False)
class ProxPenalty(OwnDomain, AbstractPenalty):
    """An even penalty given by value and prox (see `from_prox`).

    With p = prox(v, t), w = (v - p) / t is a subgradient at p, where ``phi*(w) = <w, p> - phi(p)``. For a flow u the
    proximal point method finds such a w near (1 + e) u, e = 1e-8, and u lies between w and a point y of a ball around
    0, so that ``phi*(u) <= phi*(w) / (1 + e) + phi*(y) e / (1 + e)``: that is what `conjugate` returns, and +inf where
    no such w is found.

    What a prox rounds is paid for: it grows with the steps that bring coordinates to their ends which are small beside
    others. Steps end where that costs more than a y farther away, of which phi* is found in the same way.
    """

    of_rows: Callable[[Array], Array]
    of_points: Callable[[Array, Any], Array]
    written: Callable[[Any], Any] | None
    name: str
    balls: dict[int, Array] = field(default_factory=dict[int, Array])  # by size of row, see `_ball`

    def value(self, z: Array) -> Array:
        with np.errstate(all="ignore"):  # of a formula of the user's, whose numbers are judged
            return np.asarray(self.of_rows(z), dtype=float)

    def prox(self, v: Array, step: Any) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(self.of_points(v, np.broadcast_to(step, len(v))), dtype=float)

    def conjugate(self, u: Array) -> Array:
        return self._above(u, again=True)

    def _above(self, u: Array, again: bool) -> Array:
        w, value = self._nearby((1.0 + OUTWARD) * u)
        y = ((1.0 + OUTWARD) * u - w) / OUTWARD
        ball = np.searchsorted(RADII, row_norm(y))  # the smallest that holds y; beyond the last none
        most = np.append(self._balls(u.shape[1]), np.inf)[ball]
        dear = np.isfinite(value) & (OUTWARD * most > ROUNDED * value) & (row_norm(y) <= FAR * row_norm(u))
        if again and dear.any():
            most[dear] = np.minimum(most[dear], self._above(y[dear], again=False))
        return (value + OUTWARD * most) / (1.0 + OUTWARD)

    def gauge(self, u: Array) -> Array:
        """The gauge by the tangents where rays are projected onto dom phi*."""
        size = np.maximum(row_norm(u), 1e-300)
        d, live = FAR * u / size[:, None], np.flatnonzero(row_norm(u) > 0.0)
        for _ in range(TANGENTS):
            w, _ = self._nearby(d[live])
            off = d[live] - w
            out = row_norm(off) > 1e-9 * row_norm(d[live])
            live, w, off = live[out], w[out], off[out]
            if not len(live):
                break
            d[live] *= ((off * w).sum(axis=1) / (off * d[live]).sum(axis=1))[:, None]
        length = row_norm(d)
        ends = (row_norm(u) > 0.0) & (length < 0.999 * FAR)
        if (some := ends & (length > RADII[0])).any():  # within, phi* may be known nowhere
            length[some] *= self._known(0.0 * d[some], d[some], 1.0 - 2.0 * OUTWARD, 1.0 + 2.0 * OUTWARD)
        with np.errstate(divide="ignore"):  # of a row of which nothing but 0 lies in dom phi*
            return np.where(ends, size / np.where(ends, length, 1.0), 0.0)

    def clip(self, u: Array) -> Array:
        """The projection onto dom phi*, a little inside."""
        out = ~np.isfinite(self.conjugate(u))
        if out.any():
            u = u.copy()
            near = self._nearby(u[out])[0]
            u[out] = self._known(0.0 * near, near, 1.0 - 4.0 * OUTWARD, 0.0)[:, None] * near
        return u

    def step_to_boundary(self, start: Array, end: Array) -> Array:
        t = super().step_to_boundary(start, end)
        return t * self._known(start, t[:, None] * (end - start), 1.0, 1.0)

    def _known(self, start: Array, way: Array, first: float, last: float) -> Array:
        """The largest t up to which phi* is found at start + t way: ``first`` where it is there, and not at ``last``;
        slopes that only approach their bound come less near to it."""

        def inside(t: Array) -> Array:
            return np.isfinite(self.conjugate(start + t[:, None] * way))

        near, far = np.full(len(way), first), np.full(len(way), last)
        known, beyond = inside(near), inside(far) & (first < last)
        if known.all() and not beyond.any():
            return near
        low, high = np.where(known, near, 0.0), np.where(beyond, 1.0 + NEAR, near)
        return bisected(inside, low, high, HALVINGS)[0]

    def cvxpy(self, Z: Any) -> Any:
        if self.written is None:
            raise TermError(self.unwritten())
        return self.written(Z)

    def unwritten(self) -> str:
        if self.written is not None:
            return ""
        return (
            f"the penalty {self.name} has no form in CVXPY, which the exact route needs: pass cvxpy= to from_prox, "
            "or solve by another method, as in problem.solve(gr.PrimalDual())"
        )

    def check(self, k: int) -> None:
        self._balls(k)

    def accuracy(self) -> float:
        return 1e-6

    def called(self) -> str:
        return self.name

    def blamed(self) -> str:
        return (
            "value and prox do not belong together, and the conjugate is derived from them: mend the one that is wrong"
        )

    def is_users(self) -> bool:
        return True  # the functions are

    def __repr__(self) -> str:
        return f"ProxPenalty({self.name})"

    def _nearby(self, u: Array) -> tuple[Array, Array]:
        """Subgradients near each row, or nearest in dom phi*, and phi* there, rounded upwards: the proximal point
        method on phi - <u, .> from 0, with steps that grow."""
        p, w, size = np.zeros(u.shape), np.zeros(u.shape), row_norm(u)
        live, s = np.flatnonzero(size > 0.0), 1.0 / np.where(size > 0.0, size, 1.0)
        noise, kinks = np.zeros(len(u)), np.zeros(len(u))  # of p, on the way through s u, and of phi at p by that
        for _ in range(ROUNDS):
            moved = self.prox(p[live] + s[live, None] * u[live], s[live])
            left = (moved - p[live]) / s[live, None]
            p[live], w[live] = moved, u[live] - left
            noise[live] = NOISE * s[live] * size[live] * moved.any(axis=1)
            kinks[live] = self.value(noise[live, None] * np.cos(np.arange(u.shape[1])))
            least = size[live] + np.abs((w[live] * moved).sum(axis=1)) / GROWTH
            lost = GROWTH * (noise[live] * size[live] + kinks[live]) > ROUNDED * least
            live = live[~(row_norm(left) <= np.where(lost, NEAR, SETTLED) * size[live])]
            if not len(live):
                break
            s[live] *= GROWTH
        value = self._most(p, w, noise, kinks, size)
        flat = np.flatnonzero(~np.isfinite(value) & (row_norm(p) > FLAT * noise))
        if len(flat):
            w[flat], value[flat] = self._closed(u[flat], p[flat], size[flat])
        return w, value

    def _closed(self, u: Array, p: Array, size: Array) -> tuple[Array, Array]:
        """The same where phi bends so little that steps which lead to p have too much noise: short ones from there
        have no more than p itself."""
        w, s = u, np.zeros(len(u))
        for share in (1.0 / (FLAT * NOISE), 1.0 / (FLAT * NOISE), 1.0, 1.0):  # the first short one takes the noise away
            s = share * row_norm(p) / size
            moved = self.prox(p + s[:, None] * u, s)
            w, p = u - (moved - p) / s[:, None], moved
        noise = 2.0 * NOISE * np.maximum(row_norm(p), s * size)  # of p + s u
        kinks = self.value(noise[:, None] * np.cos(np.arange(u.shape[1])))
        return w, self._most(p, w, noise, kinks, size)

    def _most(self, p: Array, w: Array, noise: Array, kinks: Array, size: Array) -> Array:
        """phi* at a subgradient w at p, rounded upwards; +inf where noise leaves nothing of it."""
        nearer = np.maximum(1.0 - noise / np.maximum(row_norm(p), 1e-300), 0.0)  # to 0: noise may leave dom phi
        value = (w * p).sum(axis=1) - self.value(nearer[:, None] * p)
        found = np.isfinite(value) & (noise * size <= ROUNDED * (np.abs(value) + size))
        most = np.maximum(value, 0.0) + noise * size + np.where(np.isfinite(kinks), kinks, 0.0)
        return np.where(found, most, np.inf)

    def _balls(self, k: int) -> Array:
        """The largest value of phi* over each of the balls around 0 with `RADII`, bounded by that at the corners of a
        cross around it; +inf where the ball is not inside dom phi*."""
        if k not in self.balls:
            try_size(self.of_rows, self.of_points, self.name, k)
            axes = np.vstack([np.eye(k), -np.eye(k)])
            most: list[float] = []
            for r in RADII:
                corners = 2.0 * r * k * axes
                w, value = self._nearby(corners)
                most.append(float(value.max()) if (row_norm(corners - w) <= NEAR * r).all() else np.inf)
            if not np.isfinite(most[0]):
                raise TermError(
                    f"no conjugate can be derived for the penalty {self.name} on {k} coordinates: it does not grow in "
                    "every direction, so that 0 lies on the boundary of the domain of its conjugate, or its prox is "
                    "not that of its value; write a class with value, prox, conjugate and cvxpy"
                )
            self.balls[k] = np.array(most)
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
        ``prox(v, step)``: for each row the p that minimises ``step * phi(p) + 1/2 ||p - v||^2``, (m, k); ``step`` is
        one number per row, (m,).
    cvxpy : callable, optional
        A convex CVXPY expression with one value per row of the (m, k) expression that it is given; the exact route
        asks for it.
    name : str, optional
        How it is printed; by default the name of the function ``value``.

    Raises
    ------
    TermError
        Where what ``value`` or ``prox`` return on a few rows has another shape, or is not that of a penalty: negative,
        not 0 at 0, not even. Functions for rows of one size only are tried when they are used on it. And where phi does
        not grow in every direction, once it is used on so many coordinates.
    ConvexityError
        Where a midpoint of two of these rows shows that phi is not convex.

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
    said = "phi" if said in ("<lambda>", "value") else said
    try_some_size(value, prox, said)
    return ProxPenalty(value, prox, cvxpy, said)


# ---- trials of both functions before they are used -------------------------------------------------------------------
SHAPE = "a shape"  # what is wrong


class _ShapeError(ValueError):
    """What is returned has another shape than the rows ask for: the functions may be for rows of another size."""


def try_some_size(value: Value, prox: Prox, name: str) -> None:
    """Try the functions on rows of the first size that they take. What they raise on rows of every size alike, and a
    wrong shape on all of them, is refused; else they may be for rows of another size, on which `try_size` tries them
    before their use."""
    raised: dict[str, str] = {}
    for k in tried.SIZES:
        try:
            try_size(value, prox, name, k)
            if k > 1 or SHAPE not in raised:  # of one coordinate nearly all has the right shape
                return
        except tried.SizeError as error:
            said, wrong = _told(error.__cause__), isinstance(error.__cause__, _ShapeError)
            whole = said if wrong else f"the penalty {name} cannot be used: {said}; {CALLS}"
            raised.setdefault(SHAPE if wrong else said, whole)
    if len(raised) == 1:
        raise TermError(raised.popitem()[1])


def try_size(value: Value, prox: Prox, name: str, k: int) -> None:
    """Refuse functions that do not return, on rows of k coordinates, what those of a penalty do."""
    try:
        _try(value, prox, name, k)
    except TermError:
        raise
    except Exception as error:  # a wrong shape, or whatever the user's functions raise on rows of a wrong size
        raise tried.SizeError(f"the penalty {name} cannot act on {k} coordinates: {_told(error)}; {CALLS}") from error


def _told(error: BaseException | None) -> str:
    return str(error) if isinstance(error, _ShapeError) else f"value or prox raises {type(error).__name__}: {error}"


def _try(value: Value, prox: Prox, name: str, k: int) -> None:
    z = tried.moderate(k)
    z.flags.writeable = False
    with np.errstate(all="ignore"):  # answers are judged by their numbers
        phi = _shaped(value(z), f"value of the penalty {name}", "(m,)", (len(z),), z)
        _try_prox(prox, name, z)
        if np.isnan(phi).any():
            raise TermError(f"value of the penalty {name} is nan at z = {z[int(np.isnan(phi).argmax())]}")
        tried.refuse_values(name, z, phi)
        tried.refuse_uneven(name, value, k)
        if shown := tried.unconvex(value, z, phi):
            raise ConvexityError(f"the penalty {name} is not convex: {shown}")


def _try_prox(prox: Prox, name: str, v: Array) -> None:
    steps, what = np.geomspace(0.1, 2.0, len(v)), f"prox of the penalty {name}"
    try:
        p = prox(v, steps)
    except Exception:
        _explain(prox, what, v, steps)
        raise
    if np.shape(p) != v.shape:
        _explain(prox, what, v, steps)
    p = _shaped(p, what, "(m, k)", v.shape, v)
    if not np.isfinite(p).all():
        i = int(np.flatnonzero(~np.isfinite(p).all(axis=1))[0])
        raise TermError(f"{what} is {p[i]} at v = {v[i]} and step = {steps[i]:.3g}; it must be finite")


def _explain(prox: Prox, what: str, v: Array, steps: Array) -> None:
    """Refuse a prox that has failed, where it is known why: it takes a number for step, or step first."""
    if _has_shape(lambda: prox(v, 0.5), v.shape):
        raise TermError(
            f"{what} takes a number as step, and must take one per row: step of the shape (m,) beside v of the shape "
            "(m, k); let it begin with step = np.reshape(step, (-1, 1))"
        )
    if _has_shape(lambda: prox(steps, v), v.shape):
        raise TermError(f"{what} takes its arguments in the other order; it must be prox(v, step)")


def _has_shape(call: Callable[[], Any], shape: tuple[int, ...]) -> bool:
    try:
        return np.shape(call()) == shape
    except Exception:  # noqa: BLE001 - then this is not what the function takes
        return False


def _shaped(given: Any, what: str, letters: str, shape: tuple[int, ...], rows: Array) -> Array:
    """The value of a function, as floats of the shape that is asked for."""
    if np.shape(given) != shape:
        raise _ShapeError(
            f"{what} must have the shape {letters}; on rows of the shape {rows.shape} it returned the shape "
            f"{np.shape(given)} and not {shape}"
        )
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise TermError(f"{what} must be real numbers, it returned {given!r}") from None
