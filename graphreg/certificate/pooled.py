"""One parameter vector for all nodes: its objective, and its best value by a few Newton steps.

    P_common(v) = sum_r s_r l_r(x_r'v + o_r)  +  sum over edges to the ground of c_e phi_e(v - center_e)

The steps are taken in coordinates in which the pooled design has orthonormal columns, so that neither the units of the
columns nor their collinearity matter. Constraints are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..batches import gram
from ..form import EdgeBlock, Form, SampleBlock
from ..terms.losses._base import AbstractSmoothLoss
from ..terms.penalties._base import AbstractConstraint, AbstractSmoothPenalty
from ..terms.records import Array

STEPS = 16  # at most; what is not attained falls for ever
WIDE = 3  # the first so many of them are those of quadratics that touch the losses from above
LEAST = 1e-6  # of the mean residual: smaller ones count as this where a quadratic is to touch a kink
HALVINGS = 40  # of a step
SETTLED = 1e-12  # of the objective: what a step may still gain
ENOUGH = 1e-2  # of the objective at 0 of losses that fall for ever where classes are separable: no need to go on
SHIFT = 1e-15  # added to the eigenvalues of the first Gram matrix, beyond which rounding hides them
RANK = 1e-12  # of the second: smaller ones are directions that the data do not have
ROWS = 8192  # samples that are taken at a time
WIDTH = 256  # numbers that are compared at a time


class Pool:
    """P_common of one form at the strengths of this moment."""

    def __init__(self, form: Form, fixed: Array | None = None) -> None:
        """``fixed`` marks coordinates that stay 0."""
        self.form = form
        ground = [edge for edge in form.edges if edge.ground and not isinstance(edge.penalty, AbstractConstraint)]
        self.smooth = [edge for edge in ground if isinstance(edge.penalty, AbstractSmoothPenalty)]
        self.kinked = [edge for edge in ground if not isinstance(edge.penalty, AbstractSmoothPenalty)]
        self.sums = 0  # how often gradients and Hessians were added up over all nodes
        self.grams: dict[int, Array] = {}  # of blocks, which the form keeps
        self.enough = ENOUGH * self._unfitted()
        self.largest = largest(form)
        self.T = coordinates(form, self.largest, np.zeros(form.d, dtype=bool) if fixed is None else fixed)

    def parameters(self, theta: Array) -> Array:
        """v (d,) from the coordinates of the steps."""
        return (self.T @ theta.reshape(self.T.shape[1], self.form.d // len(self.T))).ravel()

    def pull(self, gradient: Array) -> Array:
        """A gradient in v as one in the coordinates of the steps."""
        return (self.T.T @ gradient.reshape(len(self.T), -1)).ravel()

    def value(self, v: Array, edges: list[EdgeBlock]) -> float:
        """P_common(v), with the penalties of these edges."""
        losses = sum(float(scale @ block.loss.value(x, y)) for block, scale, y, x in moved(self.form, v))
        return losses + sum(float(edge.weight @ edge.penalty.value(_rows(edge, v))) for edge in edges)

    def _unfitted(self) -> float:
        """The sum of s_r |l_r(0)| of the losses that are no functions of a difference."""
        total = 0.0
        for block in self.form.samples:
            if not of_difference(block):
                total += float(block.scale @ np.abs(block.loss.value(np.zeros_like(block.offset), block.y)))
        return total

    def start(self) -> Array:
        """Least squares on the samples whose loss is a function of the difference, so that a shift of the targets
        shifts all that follows; 0 where there are none."""
        slope, H = np.zeros(self.form.d), np.zeros(())
        for block in self.form.samples:
            if of_difference(block):
                scale, (y, _) = block.scale, block.loss.moved(block.y, block.offset)
                slope -= adjoint(block, _times(scale, y))
                H = H + self._hessian(block, np.ones_like(y), scale)
        return -self.parameters(_solve(H, self.pull(slope))) if H.ndim else slope

    def model(self, v: Array, edges: list[EdgeBlock], wide: bool) -> tuple[Array, Array]:
        """Gradient and Hessian of the smoothed P_common, in the coordinates of the steps; a ``wide`` one bends at
        least as much as the quadratic that touches a loss of the difference from above."""
        T, d = self.T, len(v)
        self.sums += 1
        classes = d // len(T)
        slope, H = np.zeros(d), np.zeros((T.shape[1] * classes, T.shape[1] * classes))
        for block, scale, y, x in moved(self.form, v):
            a, h = _derivatives(block, x, y)
            if wide and of_difference(block):
                size = np.abs(y)
                h = np.maximum(h, np.abs(a) / np.maximum(size, LEAST * (float(size.mean()) or 1.0)))
            slope += adjoint(block, _times(scale, a))
            H += self._hessian(block, h, scale)
        bend = np.zeros((d, d))
        for edge in edges:
            place = np.arange(d) if edge.features is None else edge.features
            g, h = _penalty(edge, v)
            slope[place] += g
            bend[np.ix_(place, place)] += h
        if edges:
            J = np.kron(T, np.eye(classes))
            H += J.T @ bend @ J
        return self.pull(slope), H

    def _hessian(self, block: SampleBlock, h: Array, scale: Array) -> Array:
        """The sum of s_r Z'h_r Z; where h is one number, from the sum of s_r Z'Z, which is found once."""
        if block.X is None or h.ndim > 1 or not len(h) or h.min() != h.max():
            return _hessian(block, _times(scale, h), self.T)
        key = id(block)
        if key not in self.grams:
            self.grams[key] = _weighted(block.X, scale, self.T)
        return float(h[0]) * self.grams[key]

    def descend(self, v: Array, edges: list[EdgeBlock]) -> Array:
        """A few damped Newton steps from v."""
        best = self.value(v, edges)
        for k in range(STEPS):
            if abs(best) <= self.enough:
                return v
            for wide in (True, False) if k < WIDE else (False, True):
                slope, H = self.model(v, edges, wide)
                step = _solve(H, slope)
                if float(slope @ step) <= SETTLED * abs(best):
                    return v
                after, value = self._along(v, -self.parameters(step), best, edges)
                if value < best:
                    break
            else:
                return v
            v, best = after, value
        return v

    def _along(self, v: Array, move: Array, best: float, edges: list[EdgeBlock]) -> tuple[Array, float]:
        """The first point of v + move, v + move / 2, ... below ``best``, and its value; v itself where none is."""
        t = 1.0
        for _ in range(HALVINGS):
            value = self.value(v + t * move, edges)
            if value < best:
                return v + t * move, value
            t *= 0.5
        return v, best

    def fit(self) -> tuple[Array, list[EdgeBlock]]:
        """The best v that was found, and the edges whose penalties count (those that are finite there)."""
        v = self.descend(self.start(), self.smooth)
        edges = [*self.smooth, *(e for e in self.kinked if np.isfinite(e.penalty.value(_rows(e, v))).all())]
        if len(edges) > len(self.smooth):
            v = self.descend(v, edges)
        return v, edges


def moved(form: Form, v: Array) -> Iterator[tuple[SampleBlock, Array, Array, Array]]:
    """Per block its scales, and targets and predictors at v, moved to where their numbers are small."""
    for block in form.samples:
        y, x = block.loss.moved(block.y, predictors(block, v))
        yield block, block.scale, y, x


def of_difference(block: SampleBlock) -> bool:
    """Whether the loss is a function of the difference of predictor and target."""
    return not block.loss.moved(block.y, np.ones_like(block.offset))[1].any()


def _derivatives(block: SampleBlock, x: Array, y: Array) -> tuple[Array, Array]:
    """First and second derivatives, of a smoothed loss where it has kinks."""
    loss = block.loss
    if isinstance(loss, AbstractSmoothLoss):
        return loss.gradient(x, y), loss.curvature(x, y)
    return loss.smoothed(x, y)[1:]


def predictors(block: SampleBlock, v: Array) -> Array:
    """x_r'v + o_r for one v at all nodes, shaped like the offsets."""
    if block.X is None:
        return v + block.offset
    W = v.reshape(block.X.shape[1], -1)
    return (block.X @ W).reshape(block.offset.shape) + block.offset


def adjoint(block: SampleBlock, a: Array) -> Array:
    """The sum of X_i'a_i over all nodes, (d,)."""
    return a.sum(axis=0) if block.X is None else (block.X.T @ a).ravel()


def magnitude(block: SampleBlock, v: Array) -> Array:
    """|o_r| + |y_r| + sum_j |x_rj v_j|: what a predictor at v and its target are sums of."""
    size = np.abs(block.offset) + np.abs(block.y)
    if block.X is None:
        return size + np.abs(v)
    W = np.abs(v).reshape(block.X.shape[1], -1)
    for rows in slices(len(size)):
        size[rows] += (np.abs(block.X[rows]) @ W).reshape(size[rows].shape)
    return size


def slices(length: int) -> Iterator[slice]:
    """Some rows at a time."""
    return (slice(start, start + ROWS) for start in range(0, length, ROWS))


def largest(form: Form) -> Array:
    """The largest |x_rj| of each column; 1 where all are 0, and no columns where predictors are parameters."""
    designs = [block.X for block in form.samples if block.X is not None]
    if not designs:
        return np.zeros(0)
    size = np.max([_column_top(X) for X in designs], axis=0)
    return np.where(size > 0.0, size, 1.0)


def _column_top(X: Array) -> Array:
    """max over r of |x_rj|; some rows side by side, since numpy is slow on narrow arrays."""
    beside = max(1, WIDTH // X.shape[1])
    whole = len(X) // beside * beside
    top = np.abs(X[whole:]).max(axis=0, initial=0.0)
    wide = np.ascontiguousarray(X[:whole]).reshape(-1, beside * X.shape[1])
    for rows in slices(len(wide)):
        part = np.maximum(wide[rows].max(axis=0), -wide[rows].min(axis=0))
        top = np.maximum(top, part.reshape(beside, -1).max(axis=0))
    return top


def coordinates(form: Form, largest: Array, fixed: Array) -> Array:
    """T (p, r) with Z'SZ about I for the pooled design Z = X T and the samples' scales S: twice a Gram matrix of
    equilibrated columns and its eigenvectors, the first time with a small shift (as in shifted CholeskyQR)."""
    blocks = [(block.X, block.base_scale) for block in form.samples if block.X is not None]
    if not blocks:
        return np.eye(form.d)[:, ~fixed]
    E = np.where(fixed.reshape(len(largest), -1).any(axis=1), 0.0, 1.0 / largest)
    T = np.diag(E)
    if sum(len(X) for X, _ in blocks) < len(E):  # fewer samples than columns: the span of the samples
        T = E[:, None] * np.linalg.qr((np.vstack([X for X, _ in blocks]) * E).T)[0]
    most = max(float(s.max()) for _, s in blocks)
    for shift, rank in ((SHIFT, 0.0), (0.0, RANK)):
        G = np.sum([_weighted(X, s / most, T) for X, s in blocks], axis=0)
        sizes = np.ones(len(G)) if rank else np.sqrt(np.diagonal(G))  # the second time columns are eigenvectors
        here = np.flatnonzero(sizes > 0.0)
        if not len(here):
            return np.zeros((len(E), 0))
        T = T[:, here] / sizes[here]
        values, U = np.linalg.eigh(G[np.ix_(here, here)] / np.outer(sizes[here], sizes[here]))
        kept = values > rank * values.max(initial=0.0) if rank else np.full(len(values), True)
        T = T @ (U[:, kept] / np.sqrt(np.maximum(values[kept], 0.0) + shift * len(values)))
    return T


def _weighted(X: Array, s: Array, T: Array) -> Array:
    """(X T)' diag(s) X T, some rows at a time."""
    out = np.zeros((T.shape[1], T.shape[1]))
    for rows in slices(len(X)):
        Z = X[rows] @ T
        out += (Z * s[rows, None]).T @ Z
    return out


def _hessian(block: SampleBlock, h: Array, T: Array) -> Array:
    """The sum of Z'hZ, where h has numbers, or matrices between the predictors of a sample."""
    if block.X is None:
        return T.T @ (np.diag(h.sum(axis=0)) if h.ndim == 2 else h.sum(axis=0)) @ T
    if h.ndim == 1:
        return _weighted(block.X, h, T)
    M = h if h.ndim == 3 else h[:, :, None] * np.eye(h.shape[1])
    out = 0.0
    for rows in slices(len(M)):
        out = out + gram((block.X[rows] @ T)[None], M[None, rows])[0]
    return np.asarray(out)


def _penalty(edge: EdgeBlock, v: Array) -> tuple[Array, Array]:
    """Gradient (k,) and curvature (k, k) of an edge block's sum; that of kinks as if each were the quadratic that
    touches it from above, around the mean of the centers."""
    penalty, c = edge.penalty, edge.weight
    if isinstance(penalty, AbstractSmoothPenalty):
        z = _rows(edge, v)
        h = c.reshape(-1, *[1] * (penalty.curvature(z).ndim - 1)) * penalty.curvature(z)
        h = h.sum(axis=0)
        return c @ penalty.gradient(z), np.diag(h) if h.ndim == 1 else h
    z = _part(edge, v) - (0.0 if edge.center is None else c @ edge.center / c.sum())
    g = c.sum() * penalty.subgradient(z[None])[0]
    size = np.maximum(np.abs(z), 1e-300)
    return g, np.diag(np.maximum(g * np.sign(z), 0.0) / size)


def _part(edge: EdgeBlock, v: Array) -> Array:
    return v if edge.features is None else v[edge.features]


def _rows(edge: EdgeBlock, v: Array) -> Array:
    """v - center_e for each edge, (m, k)."""
    part = np.broadcast_to(_part(edge, v), (len(edge.tail), len(_part(edge, v))))
    return part if edge.center is None else part - edge.center


def _times(scale: Array, values: Array) -> Array:
    return scale.reshape(-1, *[1] * (values.ndim - 1)) * values


def _solve(H: Array, slope: Array) -> Array:
    """The shortest solution of Hx = slope, on equilibrated coordinates, without what rounding hides."""
    size = np.sqrt(np.maximum(np.diagonal(H), 0.0))
    scale = np.where(size > 0.0, 1.0 / np.maximum(size, 1e-300), 0.0)
    H = H * np.outer(scale, scale)
    if not (np.isfinite(H).all() and np.isfinite(slope).all()):
        return np.zeros_like(slope)
    values, U = np.linalg.eigh(H)
    kept = values > RANK * values.max(initial=0.0)
    return scale * (U[:, kept] @ ((U[:, kept].T @ (scale * slope)) / values[kept]))
