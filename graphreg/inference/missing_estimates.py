"""The reasons for which a node's own estimate does not exist, each in a sentence that names the node."""

from __future__ import annotations

import numpy as np

from ..certificate import at_infinity
from ..errors import DataError
from ..form import Form, SampleBlock
from ..oracles import NodeGradients
from ..terms import Array, feature_of
from ..terms.losses import AbstractSmoothLoss

SINGULAR = 1e-11  # smallest over largest eigenvalue of a design's matrix whose diagonal is 1
RIDGE = "add a ridge, for instance 1e-3 * NodePenalty(SquaredL2()), give the node more samples, or drop features"


def condition(H: Array) -> Array:
    """Smallest over largest eigenvalue of each Hessian, in units in which its diagonal is 1."""
    diagonal = np.sqrt(np.maximum(np.einsum("ijj->ij", H), 1e-300))
    values = np.linalg.eigvalsh(H / diagonal[:, :, None] / diagonal[:, None, :])
    return values[:, 0] / np.maximum(values[:, -1], 1e-300)


def check_rank(form: Form, gradients: NodeGradients, fitted: Array) -> Array:
    """sum_r s_r x_r x_r' plus the ground edges of each node with data: whether it determines all coefficients,
    whatever the targets are."""
    gram_matrices = np.zeros((form.n, form.d, form.d))
    for block in form.samples:
        H, k = block.sums(block.scale), block.width
        gram_matrices += H if H.shape[1] == form.d else np.kron(H, _free_classes(block, k))
    gram_matrices += gradients.hessians(np.zeros(form.shape)) - of_losses(form, np.zeros(form.shape))
    matrices = gram_matrices[fitted]
    empty = np.flatnonzero((np.einsum("ijj->ij", matrices) <= 0).any(axis=1))
    if empty.size:
        i = fitted[empty[0]]
        column = int(np.argmin(np.diag(matrices[empty[0]])))
        raise DataError(
            f"the feature {form.space.coordinates[column]!r} is 0 in all {gradients.counts[i]} samples of the node "
            f"{form.labels[i]!r}{more(empty)}, so that its coefficient is not determined there; {RIDGE}"
        )
    bad = np.flatnonzero(condition(matrices) < SINGULAR)
    if not bad.size:
        return matrices
    i, m, d = fitted[bad[0]], int(gradients.counts[fitted[bad[0]]]), form.d
    where = f"the node {form.labels[i]!r}{more(bad)}"
    if m < d:
        raise DataError(f"{where} has {m} samples for {d} coefficients: its local estimate is not determined; {RIDGE}")
    raise DataError(f"at {where} {dependent(form, matrices[bad[0]])}; {RIDGE}")


def _free_classes(block: SampleBlock, k: int) -> Array:
    """Of a loss whose predictor has k entries: the curvature of its first sample at 0, which shows what of a common
    shift of all entries it sees."""
    assert isinstance(block.loss, AbstractSmoothLoss)
    C = block.loss.curvature(np.zeros((1, k)), block.y[:1])[0]
    return np.diag(C) if C.ndim == 1 else C


def of_losses(form: Form, w: Array) -> Array:
    """The Hessians at w of the losses alone."""
    return NodeGradients(Form(form.space, form.latent, form.samples, ())).hessians(w)


def dependent(form: Form, H: Array) -> str:
    """The collinear features, those of the null direction, in words."""
    diagonal = np.sqrt(np.diag(H))
    direction = np.abs(np.linalg.eigh(H / diagonal[:, None] / diagonal[None, :])[1][:, 0])
    named = [form.space.coordinates[j] for j in np.flatnonzero(direction > 1e-3 * direction.max())]
    names = ", ".join(dict.fromkeys(repr(feature_of(name)) for name in named))
    if any(isinstance(name, tuple) for name in named):
        return f"the coefficients of {names} are determined up to a common shift of all classes only"
    return f"the features {names} are collinear"


def check_attained(form: Form, nodes: Array) -> None:
    """Names a node whose data are separable."""
    infinity = at_infinity(form)
    if infinity is None or infinity.attained:
        return
    running = np.flatnonzero(np.abs(infinity.direction).max(axis=1) > 0.5)
    running = running[np.isin(running, nodes)] if np.isin(running, nodes).any() else running
    raise DataError(
        f"the local fit of the node {form.labels[running[0]]!r}{more(running)} runs to infinity: its classes are "
        f"separable by the features (or its counts are all 0); {RIDGE}"
    )


def more(nodes: Array) -> str:
    """The words that follow the name of the first of some nodes."""
    return f" (and {len(nodes) - 1} more)" if len(nodes) > 1 else ""
