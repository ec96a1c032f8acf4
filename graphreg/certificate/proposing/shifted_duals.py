"""Nodes, shifted by what flows take from them: argmin h_i(w) + <g_i, w>, where every h_i is strictly convex.

h_i is the sum of a node's losses and of its smooth ground edges (see `NodeGradients`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...form import EdgeBlock, Form
from ...network import kernels
from ...oracles import NodeGradients, minimisers
from ...terms import ALIKE, Array, Packed, inverses, triangles
from ...terms.losses import AbstractQuadraticLoss, AbstractSmoothLoss
from ...terms.penalties import AbstractSmoothPenalty, row_norm, squares
from ..kernel.squares import Curvature

WORST = 1e10  # condition number from which on a Hessian, with a diagonal of 1, counts as singular
EVEN = 1e6  # up to this one a linear solve needs no correction
LARGE = 1 << 20  # numbers of Hessians from which on one triangle of each is kept
FEW = 8  # matrices that are inverted before all others
STEPS = 12  # of Newton's method: from an iterate near the minimisers three or four will do
FLAT = 1e-6  # of the largest gradient: what is left of one at a minimiser
SETTLED = 1e-12  # of a value: the gain from which on a step is the last: what it leaves is about the square of that


@dataclass(frozen=True)
class ShiftedDuals:
    """All nodes of a form, by Newton's method; where every h_i is quadratic the inverses of their Hessians, and what
    these prove of them."""

    gradients: NodeGradients
    inverse: Array | Packed | None
    proved: list[Curvature] = field(default_factory=list[Curvature], init=False)  # the last alone

    def minimisers(self, g: Array, w: Array) -> Array | None:
        """argmin h_i + <g_i, .> for every node, (n, d), from w; None where some were not reached."""
        at, reached = minimisers(_Tilted(self.gradients.form, g), w, _newton, SETTLED, STEPS)
        tilted = self.gradients.full(at) + g
        size = row_norm(g) + row_norm(self.gradients.full(w))
        return at if reached.all() and (row_norm(tilted) <= FLAT * size.max(initial=0.0)).all() else None

    def corrected(self, w: Array, slope: Array) -> Array:
        """w less a Newton step, given the gradients there, (n, d)."""
        return w - _newton(self.gradients.hessians(w), slope, np.full(len(w), True))

    def value(self, w: Array) -> float:
        """sum_i h_i(w_i)."""
        return float(self.gradients.value(w).sum())

    def divergence(self, w: Array, at: Array, g: Array) -> float:
        """sum_i h_i(w_i) - h_i(at_i) + <g_i, w_i - at_i>, where ``at`` are the minimisers for g."""
        value = self.gradients.value
        return float((value(w) - value(at) + np.einsum("ij,ij->i", g, w - at)).sum())


@dataclass(frozen=True)
class QuadraticNodes(ShiftedDuals):
    """h_i(w) = h_i(center_i) + 1/2 (w - center_i)'H_i (w - center_i); of diagonal Hessians the diagonals."""

    inverse: Array | Packed
    H: Array | Packed  # (n, d, d) or (n, d)
    condition: float  # the largest of all

    @cached_property
    def vertex(self) -> tuple[Array, float]:
        """The centres (n, d), and what they are worth in total."""
        if isinstance(self.H, Packed):  # of one block of samples
            block = self.gradients.form.samples[0]
            slope = -float(block.strength) * block.moments
        else:
            slope = self.gradients.full(np.zeros(self.gradients.form.shape))
        center = -_times(self.inverse, slope)
        if self.condition > EVEN:  # for what rounding left
            center = center - _times(self.inverse, self.gradients.full(center))
        return center, float(self.gradients.value(center).sum())

    def minimisers(self, g: Array, w: Array) -> Array:
        return self.vertex[0] - _times(self.inverse, g)

    def corrected(self, w: Array, slope: Array) -> Array:
        return w - _times(self.inverse, slope)

    def value(self, w: Array) -> float:
        center, least = self.vertex
        return least + self.divergence(w, center, w)

    def divergence(self, w: Array, at: Array, g: Array) -> float:
        return 0.5 * float(np.vdot(w - at, _times(self.H, w - at)))


class _Tilted(NodeGradients):
    def __init__(self, form: Form, g: Array) -> None:
        super().__init__(form)
        self.g = g

    def value(self, w: Array) -> Array:
        return super().value(w) + np.einsum("ij,ij->i", self.g, w)

    def full(self, w: Array) -> Array:
        return super().full(w) + self.g


def shifted_duals(form: Form) -> ShiftedDuals | None:
    """The nodes of a form; None where some may not be strictly convex, or losses stand beside theirs. Kept as long as
    the strengths of losses and ground edges are."""
    if form.beside:
        return None
    gradients = NodeGradients(form)
    key = tuple(float(block.strength) for block in (*form.samples, *gradients.ground))
    return form.once("shifted duals", key, lambda: _shifted_duals(gradients))


def _shifted_duals(gradients: NodeGradients) -> ShiftedDuals | None:
    form = gradients.form
    known = np.zeros(form.n, dtype=bool)
    for place in [*[block.node for block in form.samples], *[edge.tail for edge in gradients.ground]]:
        known[place] = True
    if not known.all() or not all(isinstance(block.loss, AbstractSmoothLoss) for block in form.samples):
        return None
    one = form.samples[0] if len(form.samples) == 1 and not gradients.ground else None
    if one is not None and one.X is not None and (gradients.counts * one.width < form.d).any():  # too few samples
        return None
    H = _packed(gradients) or gradients.hessians(np.zeros(form.shape))
    found = _inverse(H)
    if found is None:
        return None
    inverse, condition = found
    quadratic = all(isinstance(block.loss, AbstractQuadraticLoss) for block in form.samples)
    if not quadratic or any(follows(e) and squares(e.penalty, form.width(e)) is None for e in form.edges):
        return ShiftedDuals(gradients, None)
    j = np.arange(form.d)
    if isinstance(H, np.ndarray) and isinstance(inverse, np.ndarray) and not H[:, ~np.eye(form.d, dtype=bool)].any():
        H, inverse = H[:, j, j], inverse[:, j, j]
    return QuadraticNodes(gradients, inverse, H, condition)


def _packed(gradients: NodeGradients) -> Packed | None:
    """The Hessians of all nodes as their proxes keep them, too, where these are many numbers."""
    form = gradients.form
    if gradients.ground or len(form.samples) != 1 or form.n * form.d**2 < LARGE:
        return None
    (block,) = form.samples
    stacks = block.stacks or ()
    if not isinstance(block.loss, AbstractQuadraticLoss) or [len(each.nodes) for each in stacks] != [form.n]:
        return None
    return block.grams[0].scaled(float(block.strength))


def _diagonal(A: Array | Packed) -> Array:
    if isinstance(A, Packed):
        return A.diagonal
    return A if A.ndim == 2 else np.einsum("ijj->ij", A)


def _inverse(H: Array | Packed) -> tuple[Array | Packed, float] | None:
    """The inverses of a stack of positive semidefinite matrices, where need be by way of those with a diagonal of 1,
    and the largest condition number; None where one counts as singular. A trace is not less than an eigenvalue."""
    diagonal = _diagonal(H)
    if not (np.isfinite(diagonal).all() and (diagonal > 0.0).all()):
        return None
    try:
        inverse = _packed_inverses(H) if isinstance(H, Packed) else inverses(H)
    except np.linalg.LinAlgError:
        return None
    if inverse is None:
        return None
    bends = _diagonal(inverse)
    if diagonal.max() > ALIKE * diagonal.min():
        spread = diagonal.shape[1] * (diagonal * bends).sum(axis=1)
    else:
        spread = diagonal.sum(axis=1) * bends.sum(axis=1)
    worst = float(spread.max())
    return (inverse, worst) if (bends > 0.0).all() and worst <= WORST else None


def _packed_inverses(H: Packed) -> Packed | None:
    """None where a matrix is singular in floats."""
    compiled = kernels()
    spreads = _spreads if compiled is None else compiled.packed_spreads
    few = Packed(H.rows[:FEW].reshape(-1), H.d)  # of samples fewer than features all are, which these tell at once
    if len(H) > FEW and not np.isfinite(spreads(few, np.zeros(FEW))[1]).all():
        return None
    found, spread = spreads(H, np.zeros(len(H)))
    return found if np.isfinite(spread).all() else None


def _spreads(H: Packed, shift: Array) -> tuple[Packed, Array]:
    """As `Kernels.packed_spreads`."""
    out, spread, j = Packed(np.empty(H.flat.shape), H.d), np.full(len(H), np.inf), np.arange(H.d)
    for some in H.at_a_time():
        each = H.dense(some)
        each[:, j, j] += shift[some, None]
        try:
            inverse = np.linalg.inv(each)
        except np.linalg.LinAlgError:
            out.rows[some] = 0.0
            continue
        bends = inverse[:, j, j]
        product = each[:, j, j].sum(axis=1) * bends.sum(axis=1)
        spread[some] = np.where((bends > 0.0).all(axis=1), product, np.inf)
        out.rows[some] = triangles(inverse)
    return out, spread


def follows(edge: EdgeBlock) -> bool:
    """True of an edge whose flow is the gradient of its penalty at a node's parameters."""
    return edge.map.noun == "node" and isinstance(edge.penalty, AbstractSmoothPenalty)


def _newton(H: Array, g: Array, some: Array) -> Array:
    """H^-1 g, for what positive definite Hessians there are; where one is singular in floats g scaled by its
    diagonal."""
    diagonal = np.maximum(np.einsum("ijj->ij", H), 1e-300)
    scale = 1.0 / np.sqrt(diagonal)
    scaled = H * scale[:, :, None] * scale[:, None, :]
    scaled[:, np.arange(H.shape[1]), np.arange(H.shape[1])] += 1e-14
    with np.errstate(all="ignore"):
        try:
            step = scale * np.linalg.solve(scaled, (scale * g)[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            step = g / diagonal
    return np.where(np.isfinite(step), step, 0.0)


def _times(A: Array | Packed, v: Array) -> Array:
    if isinstance(A, Packed):
        compiled = kernels()
        return A.times(v) if compiled is None else compiled.packed_products(A, v)
    return A * v if A.ndim == 2 else np.matmul(A, v[:, :, None])[:, :, 0]
