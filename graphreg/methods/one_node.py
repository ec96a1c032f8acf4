"""One node: smooth losses with penalties and bounds on its coordinates, by Newton steps where these have no kinks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..base.clock import alarm, check_deadline
from ..certificate import Certifier, centred
from ..form import EdgeBlock, Form
from ..running import AbstractDirectMethod, Outcome, Task
from ..terms import Array
from ..terms.losses import AbstractSmoothLoss
from ..terms.penalties import AbstractNorm, AbstractSmoothPenalty, AbstractSupercoercive, is_interval

STEPS = 50
HALVINGS = 20  # of a step
SETTLED = 1e-5  # of the gap asked for: what the last step may have gained of the objective
ROUNDING = 1e-15  # of the objective
FEW = 64  # coordinates that may leave their kinks in one step; or as many as have left them
CLOSE = 1e-2  # of what a Newton step is to solve: what conjugate gradients may leave of it
SHARE = 0.25  # products per unknown, beyond which a Gram matrix is cheaper than conjugate gradients
RIDGE, LIFT = 1e-14, 1e-8  # of a diagonal: the size of its rounding; what is added where steps are too long
TILT, TILTS = 1e-3, 3  # of the gap asked for: what flows may cost that push away from bounds; Newton steps to there


@dataclass(frozen=True)
class OneNode(AbstractDirectMethod):
    """The minimiser of a problem of one node, such as a lasso, a logistic regression or non-negative least squares.

    A forward-backward step, w - g / h with the gradient g and the curvatures h along the coordinates, then the prox,
    tells which coordinates stay at a kink or at a bound (Combettes and Wajs 2005). On all others a Newton step of what
    is smooth there is taken, by conjugate gradients, or a Cholesky factor where they would need longer: a semismooth
    Newton method (Qi and Sun 1993) with an active set. It is halved until the objective falls; where it does not, the
    forward-backward step is taken, shortened likewise. Few coordinates leave their kinks at once, so that far less than
    the whole design takes part.

    Prices are the gradients at the point; flows of penalties with kinks balance them, and so leave nothing to repair.

    Examples
    --------
    >>> one = gr.NodeData.from_arrays(np.eye(3), [3.0, 0.2, -2.0], ["a"] * 3)
    >>> lasso = gr.Problem(gr.SquaredLoss(one, scale="sum") + 1.0 * gr.NodePenalty(gr.L1()))
    >>> lasso.solve(gr.OneNode()).coef.round(3).tolist()
    [[2.0, 0.0, -1.0]]
    """

    needs = (
        "one node; smooth losses of one number; penalties that are smooth, L1, L2, bounds (Box, NonNegative), no two "
        "with kinks on one coordinate"
    )
    refusing = "there is one node alone", "it takes no longer than to write one"
    in_one_pass = True

    def missing(self, form: Form) -> tuple[str, ...]:
        if form.n != 1:
            return (f"there are {form.n} nodes, and the method takes one",)
        out = [f"{name} is not smooth" for name in form.losses_beside(AbstractSmoothLoss)]
        out += [f"{b.name} has no predictors of one number" for b in form.samples if b.X is None or b.width > 1]
        kinked = _kinked(form)
        for edge in kinked:
            if not is_interval(edge.penalty) and edge.penalty.pieces(form.width(edge)) not in (1, form.width(edge)):
                out.append(f"{edge.name} has the penalty {edge.penalty.called()}, which is no norm L1 or L2")
        if (sum((np.bincount(edge.columns(form.d), minlength=form.d) for edge in kinked), np.zeros(1)) > 1).any():
            out.append(f"{' and '.join(dict.fromkeys(e.name for e in kinked))} have kinks on the same coordinates")
        return tuple(dict.fromkeys(out))

    def run(self, task: Task) -> Outcome:
        began, form, certifier, asked = time.perf_counter(), task.form, task.plain_certifier, task.budget
        w = np.zeros(form.d) if asked.start is None else asked.start[0][0]
        with alarm(), np.errstate(over="ignore", invalid="ignore"):
            w = certified(certifier, w, asked.gap)
            if np.isfinite(w).all() and not certifier.best().holds(asked.gap):  # large targets have cost digits
                near = Certifier(centred(form, w), certifier)
                certifier.propose_primal((w + certified(near, np.zeros(form.d), asked.gap))[None])
                certifier.propose_from(near, w, asked.gap)
        return Outcome(certifier.best(), certifier, "limit", seconds=time.perf_counter() - began)


def certified(certifier: Certifier, w: Array, gap: float) -> Array:
    """The minimiser, from w, and its certificate among the best."""
    node = _Node(certifier.form, SETTLED * gap)
    w = node.minimiser(w)
    at = node.tilted(w, TILT * gap)
    certifier.propose_primal(w[None], gap)
    certifier.certify(at[None], *node.dual(at), gap)
    return w


def _kinked(form: Form) -> list[EdgeBlock]:
    return [edge for edge in form.edges if not isinstance(edge.penalty, AbstractSmoothPenalty)]


@dataclass(frozen=True)
class _Kinks:
    """A penalty with kinks, or bounds, on some coordinates of the node."""

    edge: EdgeBlock
    at: Array  # these coordinates
    center: Array
    size: int  # of a norm: coordinates that leave its kink together; 0: bounds

    @staticmethod
    def of(edge: EdgeBlock, d: int) -> _Kinks:
        at = edge.columns(d)
        center = np.zeros(len(at)) if edge.center is None else edge.center[0]
        return _Kinks(edge, at, center, 0 if is_interval(edge.penalty) else edge.penalty.pieces(len(at)) or 0)

    def prox(self, v: Array, bend: Array) -> tuple[Array, Array]:
        """The prox at v (d,) where the curvatures are ``bend``, and the coordinates that are at no kink."""
        y = v[self.at] - self.center
        if self.size == 0:
            p = self.edge.penalty.prox(y[None], 1.0)[0]
            return self.center + p, p == y
        rows = y.reshape(-1, self.size)
        p = self.edge.penalty.prox(rows, self.edge.weight / bend[self.at].reshape(rows.shape).max(axis=1))
        return self.center + p.ravel(), np.repeat((p != 0.0).any(axis=1), self.size)

    def slope(self, w: Array, z: Array) -> tuple[Array, Array | None]:
        """The gradient of the norm near z, away from its kink, as it is at w to first order; its Hessian, where it has
        one."""
        at, c, y = self.at, float(self.edge.weight[0]), z[self.at] - self.center
        if self.size <= 1:
            return c * self.size * np.sign(y), None
        here = w[at] - self.center
        y = here if here.any() else y
        length = float(np.linalg.norm(y)) or 1.0
        H = c / length * (np.eye(len(y)) - np.outer(y, y) / length**2)
        return c * y / length + H @ (here - y), H

    def inside(self, w: Array, z: Array) -> Array:
        """w within the bounds, and on the sides of the kinks where z is."""
        y = w[self.at] - self.center
        if self.size == 0:
            y = self.edge.penalty.prox(y[None], 1.0)[0]
        elif self.size == 1:
            y = np.where(y * (z[self.at] - self.center) > 0.0, y, 0.0)
        return self.center + y


class _Node:
    """The problem of one node, as Newton's method sees it."""

    def __init__(self, form: Form, settled: float) -> None:
        self.form, self.settled = form, settled
        designs: list[Any] = [block.X for block in form.samples]
        self.X: Array = designs[0] if len(designs) == 1 else np.vstack([np.zeros((0, form.d)), *designs])
        self.smooth = [edge for edge in form.edges if isinstance(edge.penalty, AbstractSmoothPenalty)]
        self.kinks = [_Kinks.of(edge, form.d) for edge in _kinked(form)]
        self.direct = False  # whether Newton steps take a factor
        self.lift = RIDGE  # of its diagonal: more where steps had to be shortened

    # ---- the objective -----------------------------------------------------------------------------------------------
    def of_losses(self, what: str, x: Array) -> Array:
        """s_r l_r, or its derivatives, at predictors x (M,) without offsets."""
        out, first = np.empty(len(x)), 0
        for block in self.form.samples:
            some = slice(first, first := first + block.count)
            out[some] = block.scale * getattr(block.loss, what)(x[some] + block.offset, block.y)
        return out

    def value(self, x: Array, w: Array) -> float:
        return float(self.of_losses("value", x).sum()) + sum(float(e.values(w[None]).sum()) for e in self.form.edges)

    def slope(self, x: Array, w: Array) -> Array:
        """The gradient of what is smooth, (d,)."""
        out = (self.X.T @ self.of_losses("gradient", x))[None]
        for edge in self.smooth:
            edge.add_adjoint(edge.gradients(w[None]), out)
        return out[0]

    def bends(self, w: Array, more: Iterable[tuple[Array, Array]] = ()) -> Array:
        """The Hessian of the smooth penalties, and ``more`` of some coordinates: (d, d), or a diagonal (d,)."""
        parts, d = list(more), len(w)
        for edge in self.smooth:
            h: Array = edge.penalty.curvature(edge.difference(w[None]))[0]  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
            parts.append((edge.columns(d), edge.weight[0] * h))
        out = np.zeros(d if all(h.ndim == 1 for _, h in parts) else (d, d))
        for at, h in parts:
            if out.ndim == 1:
                out[at] += h
            else:
                out[np.ix_(at, at)] += h if h.ndim == 2 else np.diag(h)
        return out

    # ---- its minimum -------------------------------------------------------------------------------------------------
    def minimiser(self, w: Array) -> Array:
        """From w."""
        w = self.inside(w, w)
        x = self.X @ w
        now = self.value(x, w)
        for _ in range(STEPS):
            check_deadline()
            found = self.stepped(w, x, now)
            if found is None:
                break
            gain = now - found[2]
            w, x, now = found
            if gain <= max(self.settled, ROUNDING) * abs(now):
                break
        return w

    def stepped(self, w: Array, x: Array, now: float) -> tuple[Array, Array, float] | None:
        """The point after a step from w, whose predictors are x, with its predictors and its value; None where none is
        found that is worth no more than ``now``."""
        g = self.slope(x, w)
        z, free = self.forward_backward(w, g)
        new = self.newton(w, x, g, z, free)
        ways = [lambda t: self.forward_backward(w, g, t)[0]]
        if new is not None:
            ways.insert(0, lambda t: self.inside(w + t * (new - w), z))
        for way in ways:
            for t in 2.0 ** -np.arange(HALVINGS):
                there = way(t)
                x = self.X @ there
                value = self.value(x, there)
                if value <= now + ROUNDING * abs(now):
                    short = t < 1.0 or len(ways) == 1
                    self.lift = max(100.0 * self.lift, LIFT) if short else max(0.1 * self.lift, RIDGE)
                    return there, x, value
        return None

    @cached_property
    def curvatures(self) -> Array:
        """Those along the coordinates, (d,), at 0; the largest of those that leave a kink together."""
        h = self.of_losses("typical_curvature", np.zeros(len(self.X)))
        out = np.maximum(h @ (self.X * self.X) + _diagonal(self.bends(np.zeros(self.form.d))), 1e-300)
        for kinks in self.kinks:
            if kinks.size > 1:
                out[kinks.at] = out[kinks.at].max()
        return out

    def forward_backward(self, w: Array, g: Array, t: float = 1.0) -> tuple[Array, Array]:
        """The step, and which coordinates are at no kink there; of those that leave one, those that go farthest."""
        bend, free = self.curvatures / t, np.full(len(w), True)
        z = w - g / bend
        for kinks in self.kinks:
            z[kinks.at], free[kinks.at] = kinks.prox(z, bend)
            if kinks.size == 1:
                left = w[kinks.at] != kinks.center
                gain = np.where(free[kinks.at] & ~left, bend[kinks.at] * (z[kinks.at] - kinks.center) ** 2, 0.0)
                most = max(FEW, 2 * int(left.sum()))
                if np.count_nonzero(gain) > most:
                    stay = kinks.at[(gain > 0.0) & (gain < np.partition(gain, -most)[-most])]
                    z[stay], free[stay] = w[stay], False
        return z, free

    def inside(self, w: Array, z: Array) -> Array:
        w = w.copy()
        for kinks in self.kinks:
            w[kinks.at] = kinks.inside(w, z)
        return w

    def newton(self, w: Array, x: Array, g: Array, z: Array, free: Array) -> Array | None:
        """The minimiser of the quadratic model where the coordinates at kinks are as in z; None where none is found."""
        h, some, move, rest = self.of_losses("curvature", x), np.flatnonzero(free), np.where(free, 0.0, z - w), g.copy()
        curved = list[tuple[Array, Array]]()
        for kinks in self.kinks:
            slope, H = kinks.slope(w, z)
            rest[kinks.at] += slope
            curved += [] if H is None else [(kinks.at, H)]
        B = self.bends(w, curved)
        if move.any():
            rest += self.X.T @ (h * (self.X @ move)) + _times(B, move)
        B = B[some] if B.ndim == 1 else B[np.ix_(some, some)]
        step = self.solved(self.X if free.all() else self.X[:, some], h, B, rest[some], self.curvatures[some])
        if step is None:
            return None
        move[some] = -step
        return w + move

    def solved(self, X: Array, h: Array, B: Array, b: Array, sizes: Array) -> Array | None:
        """About the solution of (X'hX + B) x = b, by conjugate gradients or a factor; None where there is none."""
        if not self.direct:
            scale = 1.0 / np.maximum(h @ (X * X) + _diagonal(B), 1e-300)
            x = _iterated(lambda p: X.T @ (h * (X @ p)) + _times(B, p), b, scale)
            if x is not None:
                return x
            self.direct = True
        H = (X * h[:, None]).T @ X + (B if B.ndim == 2 else np.diag(B)) + np.diag(self.lift * sizes)
        try:
            return cho_solve(cho_factor(H, check_finite=False), b, check_finite=False)
        except LinAlgError:
            return None

    # ---- its dual point ----------------------------------------------------------------------------------------------
    def tilted(self, w: Array, share: float) -> Array:
        """Near w, where flows do not push towards the side without a bound, at the cost of a share of the objective."""
        tilt, x = np.zeros(len(w)), self.X @ w
        _, free = self.forward_backward(w, self.slope(x, w))
        for kinks in self.kinks:
            if kinks.size == 0:
                tilt[kinks.at] = np.where(free[kinks.at], kinks.edge.penalty.domain.interior(len(kinks.at)), 0.0)
        if not tilt.any():
            return w
        tilt *= share * abs(self.value(x, w)) / max(float(np.abs(tilt) @ np.abs(w)), 1e-300)
        for _ in range(TILTS):
            new = self.newton(w, self.X @ w, self.slope(self.X @ w, w) + tilt, w, free)
            w = w if new is None else new
        return w

    def dual(self, w: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Flows and prices: gradients, but for one penalty on each coordinate that takes what the others leave, one
        with kinks, or else one without a capacity; made smaller together until all capacities hold."""
        owed, takes = np.full(len(w), True), set[int]()
        left = (self.X.T @ self.of_losses("gradient", self.X @ w))[None]
        for edge in (*_kinked(self.form), *self.smooth):
            at, smooth = edge.columns(len(w)), isinstance(edge.penalty, AbstractSmoothPenalty)
            if owed[at].all() and (not smooth or isinstance(edge.penalty, AbstractSupercoercive)):
                takes.add(id(edge))
                owed[at] = False
            else:
                edge.add_adjoint(edge.gradients(w[None]), left)
        every = self.form.edges
        flows = [-left[:, e.columns(len(w))] if id(e) in takes else e.gradients(w[None]) for e in every]
        each = zip(every, flows, strict=True)
        norms = [float(e.gauge(u).max()) for e, u in each if isinstance(e.penalty, AbstractNorm)]
        by = (1.0 - ROUNDING) / max(1.0, *norms) if norms else 1.0
        return tuple(by * u for u in flows), tuple(by * a for a in self.form.gradient_prices(w[None]))


def _diagonal(B: Array) -> Array:
    return B if B.ndim == 1 else np.diagonal(B)


def _times(B: Array, p: Array) -> Array:
    return B * p if B.ndim == 1 else B @ p


def _iterated(product: Callable[[Array], Array], b: Array, scale: Array) -> Array | None:
    """The solution by conjugate gradients with a scaling; None where a factor would take less time."""
    x, r, p = np.zeros(len(b)), b.copy(), scale * b
    size = first = float(r @ p)
    for _ in range(int(SHARE * len(b)) + 1):
        if size <= CLOSE**2 * first:
            return x
        Hp = product(p)
        if not (curved := float(p @ Hp)) > 0.0:
            return None
        x, r = x + size / curved * p, r - size / curved * Hp
        z = scale * r
        size, before = float(r @ z), size
        p = z + size / before * p
    return None
