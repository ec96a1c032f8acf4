"""What is cheap to know of a point: by how much it misses Fenchel-Young, of which nothing is proved."""

from __future__ import annotations

import numpy as np

from ..form import EdgeBlock, Form
from ..terms import Array
from ..terms.losses import AbstractSmoothLoss
from ..terms.penalties import row_norm

Prices = tuple[Array, ...]


def held_by_samples(form: Form, w: Array, prices: Prices | None) -> tuple[Prices, float, float, Array]:
    """Prices within their domains, of smooth losses the gradients at w, whose residuals are 0; the losses' values, the
    sum of the residuals ``l(x) + l*(a) - <a, x>``, and X'a (n, d)."""
    taken, value, held, rho = list[Array](), 0.0, 0.0, np.zeros(form.shape)
    for k, block in enumerate(form.samples):
        x, s = block.predict(w), block.scale
        each = float(s @ block.loss.value(x, block.y))
        value += each
        if prices is None or isinstance(block.loss, AbstractSmoothLoss):
            a = block.scaled(block.loss.gradient(x, block.y))
        else:
            s = block.column(s)  # prices at the ends of their domains, from where rounding may have moved them
            a = s * block.loss.clip(prices[k] / s, block.y)
            held += each + float(block.conjugates(a).sum()) - float(np.vdot(a, x))
        rho += block.adjoint(a, form.shape)
        taken.append(a)
    return tuple(taken), value, held, rho


def held_by_edges(edge: EdgeBlock, w: Array, u: Array) -> tuple[float, float]:
    """The same two sums of edges with flows u inside their domains."""
    z = edge.difference(w)
    value = float(edge.weight @ edge.penalty.value(z))
    return value, value + float(edge.conjugates(u).sum()) - float(np.vdot(u, z))


def left_within_ball(w: Array, rho: Array) -> float:
    """What an imbalance rho costs at most where ||w_i|| grow to twice their largest:
    ``sum_i (<rho_i, w_i> + R ||rho_i||)``."""
    radius = 2.0 * float(row_norm(w).max(initial=0.0))
    return radius * float(row_norm(rho).sum()) + float(np.vdot(rho, w))
