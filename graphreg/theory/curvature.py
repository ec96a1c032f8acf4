"""Lower bounds of the curvature of the nodes' losses around a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import MethodError
from ..form import Form, SampleBlock, without_edges
from ..terms import Array
from ..terms.losses import AbstractQuadraticLoss, AbstractSmoothLoss
from ..terms.penalties import AbstractSmoothPenalty

GROWTH, TRIES, REFINEMENTS = 1.25, 80, 40
ROUNDING = 1e-12  # smallest over largest eigenvalue below which a Hessian is called singular


def tells_curvature(block: SampleBlock) -> bool:
    """True of a loss that bounds its curvature around a predictor by more than what holds everywhere."""
    x, y, loss = block.offset[:1], block.y[:1], block.loss
    return isinstance(loss, AbstractSmoothLoss) and x.ndim == 1 and loss.curvature_within(x, x, y) is not None


def is_constant(block: SampleBlock) -> bool:
    """True of a loss whose curvature is one number."""
    loss = block.loss
    return isinstance(loss, AbstractSmoothLoss) and loss.least_curvature() == loss.smoothness()


def curvature_near(block: SampleBlock, w: Array, reach: Callable[[SampleBlock], Array]) -> tuple[Array, Array]:
    """Bounds of l'' of each sample, (M,), from below and above, while its predictor is within ``reach`` of that at w;
    those that hold everywhere where the loss tells no better."""
    loss, size = block.loss, len(block.node)
    assert isinstance(loss, AbstractSmoothLoss)
    everywhere = np.full(size, loss.least_curvature()), np.full(size, loss.smoothness())
    if is_constant(block) or not tells_curvature(block):
        return everywhere
    x, far = block.predict(w), reach(block)
    return loss.curvature_within(x - far, x + far, block.y) or everywhere


def hessians(form: Form, curvature: list[Array], most: bool) -> Array:
    """sum_r s_r curvature_r x_r x_r' per node plus a bound of its ground edges, (n, d, d)."""
    out = np.zeros((form.n, form.d, form.d))
    for block, c in zip(form.samples, curvature, strict=True):
        weight = block.scale * c
        with np.errstate(invalid="ignore"):
            H = block.sums(weight)
        out += H if H.shape[1] == form.d else np.kron(H, np.eye(block.width))
    for edge in form.edges:
        assert isinstance(edge.penalty, AbstractSmoothPenalty)
        columns = edge.columns(form.d)
        each = edge.penalty.smoothness() if most else edge.penalty.strong_convexity()
        np.add.at(out, (edge.tail[:, None], columns, columns), (each * edge.weight)[:, None])
    return out


@dataclass(frozen=True)
class Curvature:
    """mu(r) = the least eigenvalue over all nodes of the Hessian of f_i in the ball of radius r around w_i.

    On that ball the predictor of a sample stays within r ||x_r|| of x_r'w_i, an interval in which the losses that are
    allowed bound their l''. ``local`` is False where all losses are quadratic and mu is one number.
    """

    form: Form
    w: Array
    local: bool

    @staticmethod
    def of(form: Form, w: Array) -> Curvature:
        local = [b for b in form.samples if not isinstance(b.loss, AbstractQuadraticLoss)]
        for block in local:
            if not tells_curvature(block):
                raise MethodError(
                    f"the curvature of {block.loss.called()} around a point is not bounded here; it is for "
                    "quadratic, logistic, Poisson, Huber and squared hinge losses, and your own with curvature_within"
                )
        return Curvature(without_edges(form), w, bool(local))

    def around(self, size: float) -> tuple[float, float]:
        """(mu, r) for which ||w_hat - w|| <= size / mu(r) <= r is proven, r as small as it was found; (0, nan) where no
        r is large enough.

        If w_hat left the ball of radius r, the point on the segment to it at distance r would have, by convexity, no
        larger objective than w, so that mu(r) r / 2 <= size: a contradiction where mu(r) r > 2 size. Then
        ||w_hat - w|| <= size / mu(r), within which ball the same is true again.
        """
        flat = self.least(0.0)
        if not self.local or flat == 0.0:
            return flat, np.inf if flat > 0.0 else np.nan
        r = 2.0 * size / flat * (1.0 + 1e-9) + 1e-300
        for _ in range(TRIES):
            if self.least(r) * r > 2.0 * size:
                break
            r *= GROWTH
        else:
            return 0.0, np.nan
        for _ in range(REFINEMENTS):
            r = size / self.least(r)
        return self.least(r), r

    def least(self, r: float) -> float:
        """mu(r); 0 where a node has no curvature."""
        return float(self._each(r).min())

    def _each(self, r: float) -> Array:
        near = [curvature_near(block, self.w, lambda block: r * block.norms)[0] for block in self.form.samples]
        values = np.linalg.eigvalsh(hessians(self.form, near, most=False))
        return np.where(values[:, 0] > ROUNDING * values[:, -1], values[:, 0], 0.0)

    def why(self) -> str:
        """The reason for which no curvature was found."""
        bad = np.flatnonzero(self._each(0.0) <= 0.0)
        if bad.size:
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return (
                f"the losses of the node {self.form.labels[bad[0]]!r}{more} are flat along some direction (it has no "
                "data, too few samples or collinear features); a ridge helps"
            )
        return "the curvature falls off too fast around the true parameters for the size of the noise and the strength"
