"""The scale of differences in each coordinate, beside which one is negligible or not."""

from __future__ import annotations

import numpy as np

from ...form import Form
from ...terms import Array

ROUNDING = 1e-9  # of the coefficients themselves: closer is equal but for rounding


def scales(form: Form, w: Array) -> Array:
    """The scale of differences in each coordinate, (d,): how far nodes differ in this answer, or how far a step along
    the gradients of their own losses would take them from their mean, whichever is larger.

    Neither depends on the units of the other columns, nor on a shift that all nodes share.
    """
    mean = np.broadcast_to(w.mean(axis=0), w.shape)
    gradient, curvature = np.zeros(form.shape), np.zeros(form.shape)
    with np.errstate(all="ignore"):
        for block in form.samples:
            x = block.predict(mean)
            gradient += block.adjoint(block.prices(mean), form.shape)
            bend = block.scale * block.loss.typical_curvature(x, block.y)
            each = np.repeat(bend, block.width)
            curvature += (block.A.power(2).T @ each).reshape(form.shape)
        step = _size(gradient) / _size(curvature)
    step = np.where(np.isfinite(step), step, 0.0)
    return np.maximum(np.maximum(_size(w - mean), step), ROUNDING * _size(w))


def _size(a: Array) -> Array:
    """Root mean square of each column."""
    return np.sqrt(np.mean(a * a, axis=0)) if len(a) else np.zeros(a.shape[1])
