"""The linear system: squared losses and squared penalties alone, solved by one sparse factorisation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..certificate import Certifier, center, centred, factor
from ..form import DualPoint, EdgeBlock, Form, Held, SampleBlock, fixes
from ..oracles import check_size
from ..running import STEPS, AbstractMethod, Costs, Outcome, Task, without_rounds
from ..terms import Array
from ..terms.losses import AbstractQuadraticLoss

RIDGE = 1e-15  # relative to each diagonal, of the size of its rounding
REFINEMENTS = 5


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

    def cost(self, costs: Costs) -> tuple[float, float]:
        return costs.interior / STEPS, costs.arrays + costs.factors

    def run(self, task: Task) -> Outcome:
        began, form, certifier, gap = time.perf_counter(), task.form, task.certifier, task.budget.gap
        check_size(form, condensed=True)
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
    held = Held(form)
    free = None if not held.mask.any() else np.flatnonzero(~held.mask)
    H = matrix(form)
    within = _factorised(H if free is None else sp.csc_array(H[free][:, free]))

    def solve(left: Array) -> Array:
        if free is None:
            return within(left.ravel()).reshape(form.shape)
        out = np.zeros(left.size)
        out[free] = within(left.ravel()[free])
        return out.reshape(form.shape)

    def at(w: Array) -> tuple[DualPoint, Array]:
        point = _gradients(form, w)
        return point, np.where(held.mask, 0.0, form.conservation(point))

    w = held.values
    point, left = at(w)
    for _ in range(REFINEMENTS):
        new = w - solve(left)
        there, rest = at(new)
        if not np.linalg.norm(rest) < np.linalg.norm(left):
            break
        w, point, left = new, there, rest
    point = form.mapped(lambda _, x, by: x + by, point, _gradients(form, -solve(left), move=True))
    if free is None:
        return w, point
    return w, DualPoint(held.flows(form, point.flows, form.conservation(point)), point.prices)


def matrix(form: Form) -> sp.csc_array:
    """The Hessian of the problem, (n d, n d)."""
    n, d = form.shape
    gram = np.zeros((n, d, d))
    for block in form.at_nodes:
        gram += block.sums(block.scale)
    H = sp.csr_array(sp.bsr_array((gram, np.arange(n), np.arange(n + 1)), shape=(n * d, n * d)))
    for block in form.beside:
        H = H + block.A.T @ sp.diags_array(np.repeat(block.scale, block.width)) @ block.A
    for edge in form.edges:
        if fixes(form, edge):
            continue
        if edge.map.edges is None:
            C = sp.kron(sp.diags_array(edge.weight), edge.penalty.quadratic(form.width(edge)), format="csr")
            H = H + edge.flat(d).T @ C @ edge.flat(d)
            continue
        columns = edge.columns(d)
        Q = np.zeros((d, d))
        Q[np.ix_(columns, columns)] = edge.penalty.quadratic(len(columns))
        L = edge.transposed @ sp.diags_array(edge.weight) @ edge.K
        H = H + sp.kron(L, sp.csr_array(Q), format="csr")
    whole = sp.csc_array(H)
    whole.eliminate_zeros()
    return whole


def _factorised(H: sp.csc_array) -> Callable[[Array], Array]:
    """A function that solves with a symmetric matrix; `ArithmeticError` where it is singular."""
    diagonal = H.diagonal()
    lift = np.where(diagonal > 0.0, RIDGE * diagonal, 1.0)  # 1 where nothing is said of a coordinate
    H = sp.csc_array(H + sp.diags_array(lift))
    try:
        return factor(H).solve
    except RuntimeError as error:
        raise ArithmeticError(f"the linear system is singular ({error})") from error


def _gradients(form: Form, w: Array, *, move: bool = False) -> DualPoint:
    """The gradients of all samples and edges at w; with ``move`` what they change by, from 0 to w."""

    def gradients(block: SampleBlock | EdgeBlock, zero: Array) -> Array:
        if isinstance(block, SampleBlock):
            return block.column(block.scale) * block.apply(w) if move else block.prices(w)
        if fixes(form, block):
            return zero
        return block.weight[:, None] * block.penalty.gradient(block.apply(w) if move else block.difference(w))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)

    return form.mapped(gradients, form.nothing())
