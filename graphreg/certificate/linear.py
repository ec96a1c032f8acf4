"""The linear system of the repair, (K'CK + X'MX) z = r, by conjugate gradients with a block-Jacobi preconditioner.

One block per node: the sum of the conductances of its edges plus X_i'M X_i, by Woodbury's identity where a node has
fewer samples than coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..batches import Batch
from ..form import DualPoint, Form
from ..terms.records import Array

MOST = 400  # iterations

# per sample block its batches, None where the predictor is w_i itself
Stacks = tuple[tuple[Batch, ...] | None, ...]


@dataclass(frozen=True)
class Conductances:
    """C on the edges (one (m, k) array per block) and M on the samples (shaped like predictors)."""

    edges: tuple[Array, ...]
    samples: tuple[Array, ...]


def currents(form: Form, conductances: Conductances, z: Array) -> DualPoint:
    """(C K z, M X z): the flows and prices that the potentials z drive."""
    flows = tuple(
        edge.penalty.conduct(C, edge.apply(z)) for edge, C in zip(form.edges, conductances.edges, strict=True)
    )
    prices = tuple(M * block.apply(z) for block, M in zip(form.samples, conductances.samples, strict=True))
    return DualPoint(flows, prices)


def solve(form: Form, stacks: Stacks, C: Conductances, r: Array, tolerance: float) -> tuple[Array, int]:
    """z with (K'CK + X'MX) z = r to a relative residual of ``tolerance``, and the iterations that it took.

    The system is consistent for every residual r of conservation.
    """
    precondition = _block_jacobi(form, stacks, C)
    z, r = np.zeros_like(r), r.copy()
    target = tolerance * np.linalg.norm(r)
    y = precondition(r)
    p, ry = y.copy(), float(np.vdot(r, y))
    best, best_norm = z.copy(), np.inf
    iteration = 0
    for iteration in range(MOST):
        norm = float(np.linalg.norm(r))
        if norm < best_norm:
            best, best_norm = z.copy(), norm
        if norm <= target or not ry > 0.0:
            break
        Ap = form.conservation(currents(form, C, p))
        curvature = float(np.vdot(p, Ap))
        if not curvature > 0.0:
            break
        alpha = ry / curvature
        z += alpha * p
        r -= alpha * Ap
        y = precondition(r)
        ry, previous = float(np.vdot(r, y)), ry
        p = y + (ry / previous) * p
    return best, iteration


def _block_jacobi(form: Form, stacks: Stacks, C: Conductances) -> Callable[[Array], Array]:
    diagonal = np.zeros(form.shape)
    for edge, conductance in zip(form.edges, C.edges, strict=True):
        columns = slice(None) if edge.features is None else edge.features
        diagonal[:, columns] += abs(edge.KT) @ conductance
    blocks: list[tuple[Batch, Array]] = []
    for block, stack, M in zip(form.samples, stacks, C.samples, strict=True):
        if stack is None:
            np.add.at(diagonal, block.node, M)
        else:
            blocks += [(batch, batch.pad(M) * batch.mask) for batch in stack]
    scale = float(diagonal.max(initial=0.0)) or 1.0
    bare = 1.0 / np.where(diagonal > 0.0, diagonal, scale)
    solves = [(batch.nodes, _node_inverse(batch.X, M, diagonal[batch.nodes])) for batch, M in blocks]

    def apply(r: Array) -> Array:
        y = bare * r
        for nodes, inverse in solves:
            y[nodes] = inverse(r[nodes])
        return y

    return apply


def _node_inverse(X: Array, M: Array, D: Array) -> Callable[[Array], Array]:
    """v -> (diag(D) + X'MX)^-1 v for a stack of nodes; D (g, d) is lifted a little where it would be singular."""
    _, size, d = X.shape
    trace = np.einsum("gmd,gmd,gm->g", X, X, M, optimize=True) / d + D.mean(axis=1)
    D = np.maximum(D, 1e-10 * np.where(trace > 0, trace, 1.0)[:, None])
    root = np.sqrt(M)[:, :, None] * X
    if size >= d:
        H = np.matmul(root.transpose(0, 2, 1), root)
        H[:, np.arange(d), np.arange(d)] += D
        inverse = np.linalg.inv(H)
        return lambda v: np.matmul(inverse, v[:, :, None])[:, :, 0]
    thin = root / D[:, None, :]
    S = np.matmul(root, thin.transpose(0, 2, 1))
    S[:, np.arange(size), np.arange(size)] += 1.0
    inner = np.linalg.inv(S)

    def woodbury(v: Array) -> Array:
        scaled = v / D
        middle = np.matmul(inner, np.matmul(root, scaled[:, :, None]))
        return scaled - np.matmul(thin.transpose(0, 2, 1), middle)[:, :, 0]

    return woodbury
