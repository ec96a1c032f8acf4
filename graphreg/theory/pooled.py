"""The pooled optimum: what is left of a problem where all differences that vary are 0, solved to rounding.

    minimise over theta  F(S theta),    w = S theta ties what the edges tie

F the smooth rest of the objective: losses, smooth ground edges, smooth edges between nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..base.gate import carry_out, refuse
from ..certificate import Certificate, Certifier
from ..errors import FailedError, UnattainedError
from ..form import DualPoint, EdgeBlock, Form, SampleBlock
from ..methods import Exact
from ..oracles import NodeGradients, minimiser
from ..running import Solution, contradicted, solved
from ..terms import Array, block_diagonal
from ..terms.losses import AbstractSmoothLoss
from ..terms.penalties import AbstractSmoothPenalty, Zero
from .network import Network
from .varied import Varying

GAP = 1e-8  # relative, that a pooled optimum must be certified to
PER_NODE, AROUND = 2.5, 4.5  # numbers for each pair of coordinates: Hessians with their indices, sum and factor


class SmoothObjective:
    """F: the objective of a form without norms and constraints, with its gradient and Hessian."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.nodes = NodeGradients(replace(form, samples=form.at_nodes))
        others = (*(edge for edge in form.edges if edge.map.noun != "node"), *form.beside)
        self.links = tuple((block, block.map.flat(form.d)) for block in others)

    def dual_point_at(self, w: Array) -> DualPoint:
        """Gradients as flows and prices."""
        return DualPoint(tuple(edge.gradients(w) for edge in self.form.edges), self.form.gradient_prices(w))

    def gradient(self, w: Array) -> Array:
        """grad F(w), (n, d)."""
        return self.form.conservation(self.dual_point_at(w))

    def hessian(self, w: Array) -> sp.csr_array:
        """The Hessian of F at w, (n d, n d)."""
        H = sp.csr_array(block_diagonal(self.nodes.hessians(w)))
        for block, B in self.links:
            k = block.map.width(self.form.d)
            H = H + B.T @ (block_diagonal(block.curvatures(w).reshape(-1, k, k)) @ B)
        return sp.csr_array(H)


def pooled(vary: Varying, tied: Network, smooth: SmoothObjective) -> Solution:
    """The pooled optimum with its certificate; ``tied`` are the edges whose ends are equal there.

    Raises
    ------
    UnattainedError
        Where the pooled losses fall for ever (separable classes).
    FailedError
        Where no optimum is certified to 1e-8.
    MemoryError
        Where the Hessians do not fit.
    """
    form = at_zero(vary)
    refuse((PER_NODE * form.n + AROUND) * float(form.d) ** 2, "Newton's method on the pooled problem", "about ")
    w = newton(smooth, tied.ties, np.zeros(form.shape))
    certificate, attained = _certified(vary, smooth, tied, form, w)
    if attained is False:
        refuse_unattained(form, w)
    if not (certificate.holds(GAP) and attained):
        solution = solved(form, Exact(), 1e-9)
        if solution.status == "unattained":
            refuse_unattained(form, solution.certificate.w)
        w = newton(smooth, tied.ties, solution.certificate.w)
        certificate, _ = _certified(vary, smooth, tied, form, w)
        certificate = certificate if certificate.holds(GAP) else solution.certificate
        if not certificate.holds(GAP):
            raise FailedError(f"the pooled problem was not solved to {GAP:g}: {solution.message}", solution)
    return as_solution(form, certificate)


def at_zero(vary: Varying) -> Form:
    """The form in which all that varies is 0."""
    return vary.under(Zero())


def refuse_unattained(form: Form, w: Array) -> NoReturn:
    far = form.labels[int(np.abs(np.nan_to_num(w)).max(axis=1).argmax())]
    raise UnattainedError(
        f"there is no best consensus: on the component of the node {far!r} the losses fall for ever along some "
        "direction (separable classes, counts that are all 0; a node without edges is a component); add a ridge, for "
        "instance 1e-3 * NodePenalty(SquaredL2(), features=...), on each coordinate that may run away, or drop the node"
    )


def as_solution(form: Form, certificate: Certificate) -> Solution:
    if certificate.contradiction:
        raise FailedError(contradicted(certificate))
    message = f"What varies holds all together; relative gap {certificate.relative_gap:.2g}."
    status = "certified" if certificate.holds(GAP) else "no_certificate"
    return Solution(form, certificate, status, message, "Newton's method on the pooled problem")


def _certified(
    vary: Varying, smooth: SmoothObjective, tied: Network, form: Form, w: Array
) -> tuple[Certificate, bool | None]:
    """The certificate of a point of the pooled problem, and whether its infimum is attained, where that is known."""
    certifier = Certifier(form)
    if np.isfinite(w).all():
        point = smooth.dual_point_at(w)
        flows = tied.along_forest(tied.balanced(smooth.form.conservation(point)))
        certifier.propose(w, whole(vary, point, flows))
    return certifier.best(), certifier.attained()


def whole(vary: Varying, point: DualPoint, flows: tuple[Array, ...]) -> DualPoint:
    """A dual point of the form from that of the rest and the flows of what varies and of what is held."""
    rest, own = iter(point.flows), dict(zip((*vary.places, *vary.agreeing_blocks), flows, strict=True))
    return DualPoint(tuple(own[k] if k in own else next(rest) for k in range(len(vary.form.edges))), point.prices)


def newton(smooth: SmoothObjective, S: sp.csr_array, w: Array) -> Array:
    """w = S theta with S'grad F = 0, by Newton's method with backtracking; where F has no minimum, wherever it ends."""
    form = smooth.form

    def spread(theta: Array) -> Array:
        return (S @ theta).reshape(form.shape)

    def step(theta: Array) -> tuple[Array, float]:
        w = spread(theta)
        g = S.T @ smooth.gradient(w).ravel()
        H = S.T @ (smooth.hessian(w) @ S)
        lift = 1e-13 * float(H.diagonal().max(initial=0.0)) + 1e-300  # by rounding, where H may be singular
        A = sp.csc_array(H + lift * sp.eye_array(len(g)))
        move = carry_out(lambda: splu(A).solve(g))
        return move, float(g @ move)

    with np.errstate(over="ignore", invalid="ignore"):
        theta = (S.T @ w.ravel()) / S.sum(axis=0)
        theta, near, _ = minimiser(lambda theta: form.primal(spread(theta)), step, theta, settled=1e-12, shortest=1e-10)
        gain = np.inf
        while near and (found := step(theta))[1] < 0.25 * gain:  # quadratic convergence: full steps, while they help
            theta, gain = theta - found[0], found[1]
    return spread(theta)


# ---- a step off a point, and what the objective loses by it, computed without the difference of two large numbers ----
#     P(c + t w) - P(c)  =  B(t) + t <r, w> + t strength sum_e A_e phi((Kw)_e),    r = grad F(c),
#
# for a consensus c, where B(t) = F(c + t w) - F(c) - t <r, w>, the integral over s in [0, t] of
# (t - s) w'F''(c + s w) w ds, is a sum of terms that are never negative.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
PLACES, WEIGHTS = (NODES + 1.0) / 2.0, WEIGHTS / 2.0  # on [0, 1]
EPS = 1e-15  # of each product in <r, w>
TRIED = 2.0 ** np.arange(-12, 5)  # of the step that is best where F is quadratic


def bregman(smooth: SmoothObjective, c: Array, step: Array) -> float:
    """F(c + step) - F(c) - <grad F(c), step>: exact for quadratic terms, by 32 Gauss points for others."""
    total = sum(_bregman_of_samples(block, c, step) for block in smooth.form.samples)
    return total + sum(_bregman_of_edges(edge, c, step) for edge in smooth.form.edges)


def _bregman_of_samples(block: SampleBlock, c: Array, step: Array) -> float:
    assert isinstance(block.loss, AbstractSmoothLoss)
    x, v, total = block.predict(c), block.apply(step), 0.0
    for s, weight in zip(PLACES, WEIGHTS, strict=True):
        h = block.loss.curvature(x + s * v, block.y)
        bend = np.einsum("rk,rkl,rl->r", v, h, v) if h.ndim == 3 else (h * v * v).reshape(len(x), -1).sum(axis=1)
        total += weight * (1.0 - s) * float(block.scale @ bend)
    return total


def _bregman_of_edges(edge: EdgeBlock, c: Array, step: Array) -> float:
    assert isinstance(edge.penalty, AbstractSmoothPenalty)
    z, v = edge.difference(c), edge.apply(step)
    if edge.penalty.quadratic(z.shape[1]) is not None:
        return float(edge.weight @ edge.penalty.value(v))
    g, total = edge.penalty.gradient(z), 0.0
    for s, weight in zip(PLACES, WEIGHTS, strict=True):
        rise = np.einsum("ij,ij->i", edge.penalty.gradient(z + s * v) - g, v)
        total += weight * float(edge.weight @ np.maximum(rise, 0.0))
    return total


def rounding(smooth: SmoothObjective, c: Array, w: Array) -> float:
    """The error of <grad F(c), w>, as it was computed."""
    point, total = smooth.dual_point_at(c), 0.0
    for block, a in zip(smooth.form.samples, point.prices, strict=True):
        total += float(np.abs(a).ravel() @ np.abs(block.apply(w)).ravel())
    for edge, u in zip(smooth.form.edges, point.flows, strict=True):
        total += float(np.abs(u).ravel() @ np.abs(edge.apply(w)).ravel())
    return EPS * total


def best_step(
    smooth: SmoothObjective, c: Array, w: Array, slope: float, more: Callable[[float], float] = lambda t: 0.0
) -> tuple[float, float]:
    """The t with the largest slope t - B(t) - more(t) among those that are tried, and that value; ``more`` is 0 at 0,
    and so is its slope."""
    near = 1e-3 * (1.0 + float(np.abs(c).max(initial=0.0))) / float(np.abs(w).max())
    bend = 2.0 * (bregman(smooth, c, near * w) + more(near)) / near**2
    first = slope / bend if bend > 0 else near
    found = [(slope * t - bregman(smooth, c, t * w) - more(float(t)), float(t)) for t in first * TRIED]
    gain, t = max(found)
    return t, gain
