"""The linear system: squared losses and squared penalties alone, solved by one sparse factorisation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..certificate import Certifier, center, centred
from ..form import DualPoint, EdgeBlock, Form, Held, SampleBlock, fixes
from ..oracles import NewtonSystem, affordable, conjugate_gradients
from ..running import AbstractMethod, Outcome, Task, without_rounds
from ..terms import Array
from ..terms.losses import AbstractQuadraticLoss

RIDGE = 1e-15  # relative to each diagonal, of the size of its rounding
REFINEMENTS = 5
ENOUGH = 1e-13  # relative: the residual that is left to the flows
ROUNDED = 1e-16  # relative: residuals beyond it are rounding


@dataclass(frozen=True)
class LinearSystem(AbstractMethod):
    """The minimiser of a sum of squares: what makes the gradient vanish, with one sparse factorisation.

        (sum_r s_r x_r x_r'  +  K' C Q K) w  =  sum_r s_r x_r (y_r - o_r)  +  K' C Q center

    with a Gram matrix per node, and a Laplacian of the graph for each penalty ``1/2 z'Qz`` (`SquaredL2`, `Quadratic`).
    Rows of any kind are part of K. Nodes that `Zero` fixes are taken out, and the others solved for.
    It is solved around the best common model, and refined with the same factors while that makes the residual smaller.
    Flows and prices are the gradients there, balanced by one more solve, so that they are conserved and need no repair.

    References
    ----------
    Zhu, Ghahramani and Lafferty, Semi-supervised learning using Gaussian fields and harmonic functions, ICML 2003.
    """

    needs = (
        "squared losses or MeanLoss; penalties SquaredL2 or Quadratic alone, nodes may be fixed (Zero); factors of a "
    )
    needs += "sparse matrix in memory"
    sends = "nothing: all data are in one place"
    rows = True

    def missing(self, form: Form) -> tuple[str, ...]:
        out = [f"{name} is no squared loss" for name in form.losses_beside(AbstractQuadraticLoss)]
        out += [
            f"{edge.name} has the penalty {edge.penalty.called()}, which is no sum of squares"
            for edge in form.edges
            if edge.penalty.quadratic(form.width(edge)) is None and not fixes(form, edge)
        ]
        out += [f"{name} gives a node two values" for name in Held(form).torn]
        return tuple(dict.fromkeys(out))

    def refuses(self) -> dict[str, str]:
        engine, checkpoint = "a factorisation needs all data in one place", "a factorisation cannot be resumed"
        return without_rounds(self.name, engine, checkpoint)

    def run(self, task: Task) -> Outcome:
        began, form, certifier, gap = time.perf_counter(), task.form, task.certifier, task.budget.gap
        v = center(form)[0]
        there = centred(form, v) if v.any() else form
        w, point = solved(there)
        certifier.certify(np.where(form.free[:, None], 0.0, w + v), point.flows, point.prices, gap)
        if v.any() and not certifier.best().holds(gap):  # large targets have cost the bound its last digits
            near = Certifier(there, certifier)
            near.certify(w, point.flows, point.prices, gap)
            certifier.propose_from(near, v, gap)
        return Outcome(certifier.best(), certifier, "limit", seconds=time.perf_counter() - began)


def solved(form: Form) -> tuple[Array, DualPoint]:
    """The minimiser, and the gradients there, balanced."""
    held, solve = Held(form), Hessian(form).solve

    def at(w: Array) -> tuple[DualPoint, Array]:
        point = _gradients(form, w)
        return point, np.where(held.mask, 0.0, form.conservation(point))

    w = held.values
    point, left = at(w)
    enough = ENOUGH * np.linalg.norm(left)
    for _ in range(REFINEMENTS):
        new = w - solve(left)
        there, rest = at(new)
        if not np.linalg.norm(rest) < np.linalg.norm(left):
            break
        w, point, left = new, there, rest
        if np.linalg.norm(left) <= enough:
            break
    step = solve(left)
    point = form.mapped(lambda block, x: x - _moved(form, block, step), point)
    if not held.mask.any():
        return w, point
    return w, DualPoint(held.flows(form, point.flows, form.conservation(point)), point.prices)


class Hessian:
    """The Hessian of the problem, and solves with it: by conjugate gradients, preconditioned by its blocks of nodes,
    if that is predicted to be cheaper than factors and takes no longer than predicted; else by factors."""

    def __init__(self, form: Form) -> None:
        self.form, self.free = form, ~Held(form).mask
        self.bends = [_bends(form, block) for block in form.blocks]  # second derivatives of the rows
        self.gram = np.zeros((*form.shape, form.d))
        entries = self.gram.size
        for block, h in zip(form.blocks, self.bends, strict=True):
            if block.map.noun == "sample":
                self.gram += block.sums(h)
            else:
                entries += 2 * block.map.flat(form.d).nnz
        self.rounds, self.least = affordable(form, entries), 0.0

    def apply(self, x: Array) -> Array:
        """H x, (n, d)."""
        out = np.matmul(self.gram, x[:, :, None])[:, :, 0]
        for block in (*self.form.beside, *self.form.edges):
            block.add_adjoint(_moved(self.form, block, x), out)
        return np.where(self.free, out, 0.0)

    def solve(self, right: Array) -> Array:
        if not self.rounds:
            return self._factors(right)
        self.least = self.least or ROUNDED**2 * float(np.vdot(right, self._near(right)))
        found = conjugate_gradients(self.apply, self._near, right, self.least, self.rounds)
        if found is None:
            self.rounds, found = 0, self._factors(right)
        return found

    def _near(self, x: Array) -> Array:
        return np.where(self.free, np.matmul(self._inverses, x[:, :, None])[:, :, 0], 0.0)

    @cached_property
    def _inverses(self) -> Array:
        """Of the blocks of nodes, (n, d, d); of penalties their diagonals."""
        H, k = self.gram.copy(), np.arange(self.form.d)
        for block, h in zip(self.form.blocks, self.bends, strict=True):
            if block.map.noun != "sample":
                diagonal = h if h.ndim < 3 else np.einsum("mii->mi", h)
                H[:, k, k] += (block.map.flat(len(k)).power(2).T @ diagonal.ravel()).reshape(self.form.shape)
        diagonal = H[:, k, k]
        H[:, k, k] = np.where(diagonal > 0.0, diagonal * (1.0 + RIDGE), 1.0)  # 1 where nothing is said of a coordinate
        return np.linalg.inv(H)

    @cached_property
    def _factors(self) -> Callable[[Array], Array]:
        system = NewtonSystem(self.form, condensed=True)
        every = zip(self.bends, (*system.samples, *system.edges), strict=True)
        solve = system.factorised([h.reshape(-1, rows.k, rows.k) for h, rows in every])
        return lambda right: system.matrix(solve(system.vector(right)))


def _bends(form: Form, block: SampleBlock | EdgeBlock) -> Array:
    if isinstance(block, SampleBlock):
        return block.scaled(block.loss.curvature(block.offset, block.y))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
    if fixes(form, block):
        return np.zeros((block.count, form.width(block)))
    h = block.penalty.curvature(np.zeros((1, form.width(block))))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
    return block.weight.reshape(-1, *[1] * (h.ndim - 1)) * h


def _gradients(form: Form, w: Array) -> DualPoint:
    def gradients(block: SampleBlock | EdgeBlock, zero: Array) -> Array:
        if isinstance(block, SampleBlock):
            return block.prices(w)
        return zero if fixes(form, block) else block.gradients(w)

    return form.mapped(gradients, form.nothing())


def _moved(form: Form, block: SampleBlock | EdgeBlock, w: Array) -> Array:
    """What the gradients of a block change by, from 0 to w."""
    z = block.apply(w)
    if isinstance(block, SampleBlock):
        return block.column(block.scale) * z
    return np.zeros_like(z) if fixes(form, block) else block.weight[:, None] * block.penalty.gradient(z)  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
