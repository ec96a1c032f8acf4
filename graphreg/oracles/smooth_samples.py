"""The samples of many nodes with a smooth loss, as stacks of arrays, and the Newton steps of their proxes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..form import SampleBlock
from ..terms import Array, Batch, adjoint, gram, predictors
from ..terms.losses import AbstractSmoothLoss

MOST_HALVINGS = 40
LEAST_BEND = 1e-12  # of the largest eigenvalue, where a Hessian has no inverse in floats

Nodes = Any  # numbers, a mask or a slice


@dataclass(frozen=True)
class SmoothSamples:
    """f_i(w) + 1/(2 tau_i) ||w - v_i||^2 at each of g nodes, f_i(w) = sum_r s_r l((Xw)_r + o_r)."""

    loss: AbstractSmoothLoss
    X: Array  # (g, m, p)
    XT: Array
    y: Array
    offset: Array
    s: Array  # 0 where a node has fewer samples
    v: Array  # (g, d)
    weight: Array  # 1 / tau_i, (g, 1)

    @staticmethod
    def of(block: SampleBlock, batch: Batch, loss: AbstractSmoothLoss) -> SmoothSamples:
        XT, s = np.ascontiguousarray(batch.X.transpose(0, 2, 1)), batch.pad(block.scale) * batch.mask
        none = np.zeros((len(s), 0)), np.zeros((len(s), 1))
        return SmoothSamples(loss, batch.X, XT, batch.pad(block.y), batch.pad(block.offset), s, *none)

    def near(self, v: Array, tau: Array) -> SmoothSamples:
        """With v_i and tau_i."""
        return replace(self, v=v, weight=(1.0 / tau)[:, None])

    def part(self, nodes: Nodes) -> SmoothSamples:
        """Some of the nodes."""
        arrays = (self.X, self.XT, self.y, self.offset, self.s, self.v, self.weight)
        return SmoothSamples(self.loss, *(each[nodes] for each in arrays))

    def predict(self, w: Array) -> Array:
        return predictors(self.X, w) + self.offset

    def slope(self, x: Array, w: Array) -> Array:
        """The gradient at w, whose predictors are x, (g, d)."""
        prices = self._scaled(self.loss.gradient(x, self.y))
        return adjoint(self.XT, prices) + self.weight * (w - self.v)

    def value(self, x: Array, w: Array) -> Array:
        """(g,)."""
        return (self.s * self.loss.value(x, self.y)).sum(axis=1) + 0.5 * (self.weight * (w - self.v) ** 2).sum(axis=1)

    def inverses(self, x: Array) -> Array:
        """The inverse Hessians, (g, d, d)."""
        return _inverse(gram(self.X, self._scaled(self.loss.curvature(x, self.y))), self.weight)

    def stepped(self, w: Array, x: Array, slope: Array, step: Array, slow: Array) -> tuple[Array, Array]:
        """The point after a step and its predictors; after a Newton step (``slow`` nodes) halved until the objective
        decreases."""
        new = w - step
        x_new = self.predict(new)
        if not slow.any():
            return new, x_new
        nodes = slice(None) if slow.all() else np.flatnonzero(slow)
        own = self.part(nodes)
        w, step, there, x_there = w[nodes], step[nodes], new[nodes], x_new[nodes]
        gain = 1e-4 * np.einsum("gd,gd->g", step, slope[nodes])
        before = own.value(x[nodes], w)
        t = np.ones(len(w))
        for _ in range(MOST_HALVINGS):
            bad = own.value(x_there, there) > before - t * gain + 1e-12 * np.abs(before)
            if not bad.any():
                break
            t[bad] *= 0.5
            there = w - t[:, None] * step
            x_there = own.predict(there)
        new[nodes], x_new[nodes] = there, x_there
        return new, x_new

    def _scaled(self, values: Array) -> Array:
        return self.s.reshape(*self.s.shape, *[1] * (values.ndim - 2)) * values


def _inverse(H: Array, weight: Array) -> Array:
    """The inverses of H + weight I, for positive semidefinite H (g, d, d) and weight (g, 1)."""
    d = H.shape[1]
    more = H.copy()
    more[:, np.arange(d), np.arange(d)] += weight
    try:
        return np.linalg.inv(more)
    except np.linalg.LinAlgError:  # a weight below the rounding of H, whose columns are collinear
        return _inverse_by_parts(H, weight)


def _inverse_by_parts(H: Array, weight: Array) -> Array:
    """About the same by eigenvalues, with columns of length 1, and positive definite always: an eigenvalue below
    `LEAST_BEND` counts as that, because one number cannot hold the inverses of both ends."""
    D = 1.0 / np.sqrt(np.einsum("gdd->gd", H) + weight)
    values, V = np.linalg.eigh(D[:, :, None] * H * D[:, None, :])
    values += weight * np.einsum("gd,gdk->gk", D**2, V**2)
    V = D[:, :, None] * V
    return np.matmul(V / np.maximum(values, LEAST_BEND * values[:, -1:])[:, None, :], V.transpose(0, 2, 1))
