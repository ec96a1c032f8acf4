"""The pooled optimum: what is left of a problem where all differences that vary are 0, solved to rounding.

    minimise over theta  F(S theta),    w = S theta ties what the edges tie

F the smooth rest of the objective: losses, smooth ground edges, smooth edges between nodes.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ...certificate import Certificate, Certifier
from ...clock import carry_out
from ...errors import FailedError, UnattainedError
from ...form import DualPoint, Form
from ...methods import Exact
from ...oracles import NodeGradients, descended
from ...running import Solution, contradicted, solved
from ...terms import Array, block_diagonal
from ...terms.penalties import Zero
from ..network import Network
from ..varied import Varying

GAP = 1e-8  # relative, that a pooled optimum must be certified to


class SmoothObjective:
    """F: the objective of a form without norms and constraints, with its gradient and Hessian."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.nodes = NodeGradients(form)
        self.links = tuple((edge, edge.flat(form.d)) for edge in form.edges if not edge.ground)

    def dual_point_at(self, w: Array) -> DualPoint:
        """Gradients as flows and prices."""
        return DualPoint(tuple(edge.gradients(w) for edge in self.form.edges), self.form.gradient_prices(w))

    def gradient(self, w: Array) -> Array:
        """grad F(w), (n, d)."""
        return self.form.conservation(self.dual_point_at(w))

    def hessian(self, w: Array) -> sp.csr_array:
        """The Hessian of F at w, (n d, n d)."""
        H = sp.csr_array(block_diagonal(self.nodes.hessians(w)))
        for edge, B in self.links:
            H = H + B.T @ (block_diagonal(edge.curvatures(w)) @ B)
        return sp.csr_array(H)


def pooled(vary: Varying, tied: Network, smooth: SmoothObjective) -> Solution:
    """The pooled optimum with its certificate; ``tied`` are the edges whose ends are equal there.

    Raises
    ------
    UnattainedError
        Where the pooled losses fall for ever (separable classes).
    FailedError
        Where no optimum is certified to 1e-8.
    """
    form = vary.under(Zero())
    w = newton(smooth, tied.ties, np.zeros(form.shape))
    certificate, attained = _certified(vary, smooth, tied, form, w)
    if attained is False:
        _refuse(form, w)
    if not (certificate.holds(GAP) and attained):
        solution = solved(form, Exact(), 1e-9)
        if solution.status == "unattained":
            _refuse(form, solution.certificate.w)
        w = newton(smooth, tied.ties, solution.certificate.w)
        certificate, _ = _certified(vary, smooth, tied, form, w)
        if not certificate.holds(GAP):
            raise FailedError(f"the pooled problem was not solved to {GAP:g}: {solution.message}", solution)
    return as_solution(form, certificate)


def _refuse(form: Form, w: Array) -> NoReturn:
    far = form.labels[int(np.abs(np.nan_to_num(w)).max(axis=1).argmax())]
    raise UnattainedError(
        f"there is no best consensus: on the component of the node {far!r} the losses fall for ever along some "
        "direction (separable classes, counts that are all 0; a node without edges is a component); add a ridge, for "
        "instance 1e-3 * NodePenalty(SquaredL2(), features=...), on each coordinate that may run away, or drop the node"
    )


def as_solution(form: Form, certificate: Certificate) -> Solution:
    if certificate.contradiction:
        raise FailedError(contradicted(certificate))
    message = f"All nodes that the edges tie agree; relative gap {certificate.relative_gap:.2g}."
    return Solution(form, certificate, "certified", message, "Newton's method on the pooled problem")


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
    rest, own = iter(point.flows), dict(zip((*vary.places, *vary.held), flows, strict=True))
    return DualPoint(tuple(own[k] if k in own else next(rest) for k in range(len(vary.form.edges))), point.prices)


def newton(smooth: SmoothObjective, S: sp.csr_array, w: Array) -> Array:
    """w = S theta with S'grad F = 0, by Newton's method with backtracking; where F has no minimum, wherever it ends."""
    form = smooth.form

    def spread(theta: Array) -> Array:
        return (S @ theta).reshape(form.shape)

    def step(theta: Array) -> tuple[Array, float]:
        w = spread(theta)
        g = S.T @ smooth.gradient(w).ravel()
        move = _solve(S.T @ (smooth.hessian(w) @ S), g)
        return move, float(g @ move)

    with np.errstate(over="ignore", invalid="ignore"):
        theta = (S.T @ w.ravel()) / S.sum(axis=0)
        theta, near, _ = descended(lambda theta: form.primal(spread(theta)), step, theta, settled=1e-12, shortest=1e-10)
        gain = np.inf
        while near and (found := step(theta))[1] < 0.25 * gain:  # quadratic convergence: full steps, while they help
            theta, gain = theta - found[0], found[1]
    return spread(theta)


def _solve(H: sp.csr_array, g: Array) -> Array:
    """H^-1 g, with the diagonal lifted by rounding where H may be singular."""
    diagonal = H.diagonal()
    lift = 1e-13 * float(diagonal.max(initial=0.0)) + 1e-300
    A = sp.csc_array(H + lift * sp.eye_array(len(g)))
    return carry_out(lambda: splu(A).solve(g))
