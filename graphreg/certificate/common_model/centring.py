"""A form around one parameter vector v of all nodes: w = v + w', where w' has the size that matters.

    l_r(x_r'w_i + o_r; y_r)  =  l_r(x_r'w'_i + o'_r; y'_r),      phi_e(w_i - center_e)  =  phi_e(w'_i - (center_e - v))

Between two nodes v cancels, and the dual points are the same. Targets around 1e9 that differ by 1 leave numbers of
size 1 here, whose predictors have no digits to lose.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array, alike
from ..kernel.arithmetic import two_product, two_sum
from .coordinates import column_top, slices
from .pooled import predictors

ALIKE = 100.0  # times what is left: summands that are no larger lose two digits at most


def centred(form: Form, v: Array) -> Form:
    """The form whose parameters are those of ``form`` less v, at every node, latent ones included."""
    samples = tuple(_samples(block, v) for block in form.samples)
    moved = replace(form, samples=samples, edges=tuple(_edges(edge, v) for edge in form.edges))
    vars(moved)["component"] = form.component
    if "center" in form.memory:
        key, (w, sums) = form.memory["center"]
        moved.memory["center"] = key, (w - v, sums)
    if "common" in form.memory:
        key, best = form.memory["common"]
        moved.memory["common"] = key, replace(best, w=best.w - v)
    return moved


def _samples(block: SampleBlock, v: Array) -> SampleBlock:
    if block.map.noun == "row":
        y, offset = block.loss.moved(block.y, block.predict(np.broadcast_to(v, (block.n, len(v)))))
        return alike(block, y=y, offset=offset)
    y, offset = block.loss.moved(block.y, predictors(block, v))
    if _cancels(block, v, float(np.abs(y).mean() + np.abs(offset).mean())):
        y, offset = np.empty_like(block.y, dtype=float), np.empty_like(block.offset, dtype=float)
        for rows in slices(offset if block.X is None else block.X):
            by, rest = _predictors(None if block.X is None else block.X[rows], block.offset[rows], v)
            y[rows], offset[rows] = block.loss.moved(block.y[rows], by, rest)
    return alike(block, y=y, offset=offset)


def _cancels(block: SampleBlock, v: Array, left: float) -> bool:
    """True where predictors at v are sums of numbers far larger than what is left, so that a plain product would lose
    digits. The working form need only be near the problem, in which its answer is judged."""
    top = np.abs(v).max(initial=0.0)
    if block.X is not None:
        top = np.abs(v).reshape(block.X.shape[1], -1).max(axis=1) @ column_top(block.X)
    return not top + np.abs(block.offset).max(initial=0.0) <= ALIKE * left


def _edges(edge: EdgeBlock, v: Array) -> EdgeBlock:
    if edge.map.level:
        return edge
    part = edge.apply(np.broadcast_to(v, (edge.n, len(v))))
    if not part.any():
        return edge
    return alike(edge, center=(np.zeros(part.shape) if edge.center is None else edge.center) - part)


def _predictors(X: Array | None, offset: Array, v: Array) -> tuple[Array, Array]:
    """x_r'v + o_r as a float and what rounding left of it: the products and sums of Ogita, Rump and Oishi (2005)."""
    if X is None:
        return two_sum(np.broadcast_to(v, offset.shape), offset)
    W = v.reshape(X.shape[1], -1)
    total, rest = offset, np.zeros(offset.shape)
    for x, w in zip(X.T, W, strict=True):
        product, lost = two_product(x if offset.ndim == 1 else x[:, None], w[0] if offset.ndim == 1 else w)
        total, more = two_sum(total, product)
        rest += lost + more
    return two_sum(total, rest)
