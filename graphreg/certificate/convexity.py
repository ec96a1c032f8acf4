"""Strong convexity of the whole objective, from the losses and penalties that are strongly convex."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..form import Form
from ..terms.records import Array

DENSE = 600  # up to this many parameters the eigenvalue is computed densely


def strong_convexity(form: Form) -> float:
    """A mu with P - mu/2 ||w||^2 convex: the least eigenvalue of the least Hessian.

    That is X'MX + K'CK with M and C the least curvatures of the samples and of the edges. For large problems a lower
    bound from the nodes alone (their samples and ground edges) where that is positive.
    """
    local = _local(form)
    if form.n * form.d > DENSE and local > 0:
        return local
    from scipy.sparse.linalg import ArpackError, eigsh

    H = _least_hessian(form)
    if H.shape[0] <= DENSE:  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
        low = float(np.linalg.eigvalsh(H.toarray())[0])
    else:
        try:
            low = float(eigsh(H, k=1, sigma=-1e-3 * H.diagonal().mean(), which="LM", return_eigenvectors=False)[0])
        except (ArpackError, RuntimeError):
            return local
    top = float(abs(H).sum(axis=1).max()) if H.nnz else 0.0
    return low if low > 1e-12 * top else 0.0


def _least_hessian(form: Form) -> sp.csr_array:
    size = form.n * form.d
    H = sp.csr_array((size, size))
    for block in form.samples:
        m = np.repeat(
            block.scale * block.loss.least_curvature(), 1 if block.offset.ndim == 1 else block.offset.shape[1]
        )
        if m.any():
            H = H + block.A.T @ sp.diags_array(m) @ block.A
    for edge in form.edges:
        mu = edge.penalty.strong_convexity()
        if mu > 0:
            columns = np.arange(form.d) if edge.features is None else edge.features
            chosen = np.zeros(form.d)
            chosen[columns] = 1.0
            L = edge.K.T @ sp.diags_array(mu * edge.weight) @ edge.K
            H = H + sp.kron(L, sp.diags_array(chosen), format="csr")
    return sp.csr_array(H)


def _local(form: Form) -> float:
    """The least eigenvalue over the nodes, each with its samples and ground edges only; latent nodes have none."""
    diagonal = np.zeros(form.shape)
    for edge in form.edges:
        if edge.ground:
            columns = slice(None) if edge.features is None else edge.features
            diagonal[:, columns] += (edge.transposed @ (edge.penalty.strong_convexity() * edge.weight))[:, None]
    least: Array = diagonal.min(axis=1)
    for block in form.samples:
        m = block.loss.least_curvature()
        if m == 0:
            continue
        if block.stacks is None:
            np.add.at(diagonal, block.node, (m * block.scale)[:, None] * np.ones(form.d))
            least[block.node] = diagonal[block.node].min(axis=1)
            continue
        for batch in block.stacks:
            M = m * batch.pad(block.scale) * batch.mask
            H = np.matmul(batch.X.transpose(0, 2, 1) * M[:, None, :], batch.X)
            H[:, np.arange(form.d), np.arange(form.d)] += diagonal[batch.nodes]
            least[batch.nodes] = np.linalg.eigvalsh(H)[:, 0]
    top = float(diagonal.max(initial=0.0))
    low = float(least.min())
    return low if low > 1e-12 * max(top, low) else 0.0
