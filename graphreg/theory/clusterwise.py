"""The constants of Theorem 2 (GTV minimisation) of a user's losses: per cluster the optimum wbar of its summed losses
and their strong convexity alpha, per node the smoothness beta_i and the gradient delta_i = ||grad f_i(wbar)||_*.

f_i holds all scales, and the smooth ground edges of node i (a ridge). All norms are the penalty's phi and its dual, as
Assumptions 1 and 2 ask: with Hessians H,  alpha = min v'Hv / phi(v)^2 = 1 / max {s'H^-1 s : ||s||_* <= 1},
beta = max {v'Hv : phi(v) <= 1}.

Losses that are not strongly convex everywhere. At the optimum w~ of the problem with one parameter vector per cluster
||grad f_C(w~)||_* <= G = lambda |dC| (46). Let the Hessian of f_C be at least M within the ball phi(w - wbar) <= R, and
alpha that of M. If w~ lay outside, then along the ray to it <grad f_C, .> / phi, which increases, would be at least
alpha R; so where alpha R >= G the optimum lies inside, phi(w~ - wbar) <= G / alpha, and constants of the ball suffice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from ..form import Form, SampleBlock, without_edges
from ..oracles import NodeGradients, minimisers
from ..terms import Array
from ..terms.penalties import AbstractPenalty, AbstractSmoothPenalty, pieces_of
from .curvature import curvature_near, hessians, is_constant

STEPS = 100
SINGULAR = 1e-12  # least over largest eigenvalue
SIGNS = 10  # up to so many coordinates all corners of a cube are tried


@dataclass(frozen=True)
class CurvatureConstants:
    """The constants at given strengths, one per cluster. alpha (k,), 0 where none was found; beta (n,); radius (k,),
    of the balls within which they hold (inf for constants that hold everywhere, and where there are none)."""

    alpha: Array
    beta: Array
    radius: Array


@dataclass(frozen=True)
class Clusterwise:
    """The losses of a form by clusters: ``member`` (n,) numbers the cluster of each node, 0 to k - 1."""

    form: Form  # without edges between nodes
    member: Array
    k: int
    norm: AbstractPenalty

    @staticmethod
    def of(form: Form, member: Array, k: int, norm: AbstractPenalty) -> Clusterwise:
        return Clusterwise(without_edges(form), member, k, norm)

    @cached_property
    def pooled(self) -> Form:
        """The same losses with one node per cluster, which holds the samples of all its nodes."""
        form, member, n = self.form, self.member, self.k
        samples = tuple(block.moved(member, n) for block in form.samples)
        ground = tuple(edge.moved(member, n) for edge in form.edges)
        return Form(replace(form.space, index={label: label for label in range(n)}), (), samples, ground)

    @cached_property
    def quadratic(self) -> bool:
        """True where all Hessians are constant, so that the constants are eigenvalues of them."""
        ground = [e.penalty for e in self.form.edges]
        return all(is_constant(b) for b in self.form.samples) and all(
            isinstance(p, AbstractSmoothPenalty) and p.smoothness() == p.strong_convexity() for p in ground
        )

    @cached_property
    def optimum(self) -> tuple[Array, Array]:
        """wbar (k, d), and the dual norm of what is left of the gradient there, (k,): inf where none was found."""
        return _minimise(NodeGradients(self.pooled), self.norm)

    @cached_property
    def delta(self) -> Array:
        """||grad f_i(wbar)||_*, (n,); inf at nodes with losses where there is no wbar."""
        wbar, left = self.optimum
        gradient = NodeGradients(self.form).full(wbar[self.member])
        lost = np.isinf(left)[self.member] & (NodeGradients(self.form).counts > 0)
        return np.where(lost, np.inf, self.norm.gauge_at_zero(gradient))

    def constants(self, most: Array) -> CurvatureConstants:
        """The constants at bounds G (k,) of the dual norm of the clusters' gradients."""
        everywhere, ball = np.full(self.k, np.inf), np.zeros(self.k)
        if self.quadratic:
            return CurvatureConstants(self.alpha(everywhere), self.beta(everywhere), everywhere)
        alpha, found = self.alpha(ball), most <= 0
        for _ in range(STEPS):
            with np.errstate(divide="ignore", invalid="ignore"):
                ball = np.where(found, ball, np.where(alpha > 0, 1.01 * most / alpha, np.inf))
            alpha = self.alpha(ball)
            found |= ~np.isfinite(ball) | (alpha * np.where(np.isfinite(ball), ball, 0.0) >= most)
            if found.all():
                break
        alpha = np.where(found & (alpha > 0), alpha, 0.0)
        radius = np.where(alpha > 0, ball, np.inf)
        return CurvatureConstants(alpha, self.beta(radius), radius)

    def alpha(self, radius: Array) -> Array:
        """The strong convexity of each cluster's loss with respect to phi within the balls, (k,); a lower bound where
        the largest value over the dual ball is an upper one."""
        M = self.lower(radius)
        values = np.linalg.eigvalsh(M)
        good = values[:, 0] > SINGULAR * np.maximum(values[:, -1], 1e-300)
        out = np.zeros(self.k)
        if good.any():
            out[good] = 1.0 / largest_on_ball(self.norm, np.linalg.inv(M[good]), dual=True)
        return out

    def beta(self, radius: Array) -> Array:
        """The smoothness of each node's loss with respect to phi within the balls, (n,); or an upper bound."""
        H = self.upper(radius)
        endless = ~np.isfinite(H).all(axis=(1, 2))
        H[endless] = 0.0
        return np.where(endless, np.inf, largest_on_ball(self.norm, H, dual=False))

    def lower(self, radius: Array) -> Array:
        """Matrices below all Hessians of the clusters within the balls, (k, d, d)."""
        return hessians(self.pooled, [low for low, _ in self._curvatures(radius)], most=False)

    def upper(self, radius: Array) -> Array:
        """Matrices above all Hessians of the nodes within the balls, (n, d, d)."""
        return hessians(self.form, [high for _, high in self._curvatures(radius)], most=True)

    def _curvatures(self, radius: Array) -> list[tuple[Array, Array]]:
        """Bounds of l'' of the samples of each block while phi(w_i - wbar) <= radius, as then
        |x_r'(w - wbar)| <= ||x_r||_* phi(w - wbar)."""

        def reach(block: SampleBlock) -> Array:
            assert block.X is not None
            return self.norm.gauge_at_zero(block.X) * radius[self.member[block.node]]

        return [curvature_near(block, self.optimum[0][self.member], reach) for block in self.form.samples]


def _minimise(gradients: NodeGradients, norm: AbstractPenalty) -> tuple[Array, Array]:
    """The optimum of every node's losses by Newton's method with halved steps, least-norm where they are flat; and the
    dual norm of the gradient left, inf where it is not small beside that at 0."""
    zero = np.zeros(gradients.form.shape)
    first = norm.gauge_at_zero(gradients.full(zero))

    def solve(H: Array, g: Array, left: Array) -> Array:
        return np.einsum("ijk,ik->ij", np.linalg.pinv(H, rcond=SINGULAR, hermitian=True), g)

    w, _ = minimisers(gradients, zero, solve, 1e-28)
    left = norm.gauge_at_zero(gradients.full(w))
    return w, np.where(left <= 1e-8 * np.maximum(first, 1e-300), left, np.where(first == 0, 0.0, np.inf))


# ---- the largest value of a quadratic form on the ball of a norm -----------------------------------------------------
def exact_on_ball(norm: AbstractPenalty, d: int, dual: bool) -> bool:
    """True where `largest_on_ball` is exact."""
    shape = _ball(norm, d, dual)
    return shape is not None and (shape != "cube" or d <= SIGNS)


def _ball(norm: AbstractPenalty, d: int, dual: bool) -> str | None:
    """The kind of the ball, as is tried: round, a cross-polytope (of the l1 norm), a cube (of the maximum norm)."""
    p = norm.pieces(d)
    if p == d:
        return "round"
    if p == 1 or pieces_of(norm.gauge_at_zero, d) == 1:
        return "cube" if (p == 1) == dual else "cross"
    return None


def largest_on_ball(norm: AbstractPenalty, Q: Array, dual: bool) -> Array:
    """max v'Qv over phi(v) <= 1 (``dual``: over ||v||_* <= 1) for positive semidefinite Q (.., d, d), or a bound.

    Exact for l2 (the largest eigenvalue), on cross-polytopes (the largest diagonal entry), and on cubes of up to 10
    coordinates (all corners). Else, with |v_j| <= r_j on the ball (r_j the other norm of the unit vector e_j):
    min(sum_jk r_j |Q_jk| r_k, largest eigenvalue * sum_j r_j^2).
    """
    d = Q.shape[-1]
    shape = _ball(norm, d, dual)
    if shape == "round":
        return np.linalg.eigvalsh(Q)[:, -1]
    if shape == "cross":
        return np.einsum("ijj->ij", Q).max(axis=1)
    if shape == "cube" and d <= SIGNS:
        corners = np.array([(1.0, *rest) for rest in product((-1.0, 1.0), repeat=d - 1)])
        return np.max([np.einsum("j,ijk,k->i", s, Q, s) for s in corners], axis=0)
    r = norm.value(np.eye(d)) if dual else norm.gauge_at_zero(np.eye(d))
    sums = np.einsum("j,ijk,k->i", r, np.abs(Q), r)
    return np.minimum(sums, np.linalg.eigvalsh(Q)[:, -1] * float(r @ r))
