"""A form around one parameter vector v of all nodes: w = v + w', where w' has the size that matters.

    l_r(x_r'w_i + o_r; y_r)  =  l_r(x_r'w'_i + o'_r; y'_r),      phi_e(w_i - center_e)  =  phi_e(w'_i - (center_e - v))

Between two nodes v cancels, and the dual points are the same. Targets around 1e9 that differ by 1 leave numbers of
size 1 here, whose predictors have no digits to lose.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..certificate.pooled import slices
from ..form import EdgeBlock, Form, SampleBlock
from ..terms.records import Array

SPLIT = 2.0**27 + 1.0  # by which a float falls into two halves of 26 bits (Dekker 1971)


def centred(form: Form, v: Array) -> Form:
    """The form whose parameters are those of ``form`` less v, at every node, latent ones included."""
    samples = tuple(_samples(block, v) for block in form.samples)
    return replace(form, samples=samples, edges=tuple(_edges(edge, v) for edge in form.edges))


def _samples(block: SampleBlock, v: Array) -> SampleBlock:
    y, offset = np.empty_like(block.y, dtype=float), np.empty_like(block.offset, dtype=float)
    for rows in slices(len(y)):
        by, rest = _predictors(None if block.X is None else block.X[rows], block.offset[rows], v)
        y[rows], offset[rows] = block.loss.moved(block.y[rows], by, rest)
    return replace(block, y=y, offset=offset)


def _edges(edge: EdgeBlock, v: Array) -> EdgeBlock:
    if not edge.ground:
        return edge
    part = v if edge.features is None else v[edge.features]
    if not part.any():
        return edge
    center = np.zeros((len(edge.tail), len(part))) if edge.center is None else edge.center
    return replace(edge, center=center - part)


def _predictors(X: Array | None, offset: Array, v: Array) -> tuple[Array, Array]:
    """x_r'v + o_r as a float and what rounding left of it: the products and sums of Ogita, Rump and Oishi (2005)."""
    if X is None:
        return _sum(np.broadcast_to(v, offset.shape), offset)
    W = v.reshape(X.shape[1], -1)
    total, rest = offset, np.zeros(offset.shape)
    for x, w in zip(X.T, W, strict=True):
        product, lost = _product(x if offset.ndim == 1 else x[:, None], w[0] if offset.ndim == 1 else w)
        total, more = _sum(total, product)
        rest += lost + more
    return _sum(total, rest)


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b = s + e without error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """a b = p + e without error, but where it overflows or underflows (Dekker)."""
    p = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    e = a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)
    return p, np.where(np.isfinite(e), e, 0.0)


def _halves(a: Array) -> tuple[Array, Array]:
    with np.errstate(over="ignore", invalid="ignore"):
        c = SPLIT * a
        high = c - (c - a)
    return high, a - high
