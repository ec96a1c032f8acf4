"""A lower bound from flows and from parameters near the minimisers that they lead to, where every h_i is quadratic:
valid whatever rounding did, at the price of a round or two.

For any prices a, and any w, Fenchel's inequality and the Hessian H_i of h_i give, with r_i = grad h_i(w_i) + g_i,

    min h_i + <g_i, .>  >=  sum_r <a_r, o_r> - s_r l_r*(a_r / s_r)  +  <X_i'a + g_i, w_i>  -  r_i'H_i^-1 r_i / 2,

summed with the edges' terms the dual value at (u, a), less how far it is from being conserved times w, less a square.
Near the minimisers both are rounding. The flows stay as they are: what is conserved exactly with them are the gradients
at the exact minimisers, which are as near as that square says.
"""

from __future__ import annotations

import numpy as np

from ...form import DualPoint, EdgeBlock, Form
from ...terms import Array
from ...terms.penalties import AbstractPenalty, AbstractSmoothPenalty
from ..enclosure.boxes import Box, box_value
from ..enclosure.enclosed import Enclosed
from ..enclosure.plain import Balance
from ..enclosure.rows import SampleRows
from ..enclosure.structure import Structure
from ..enclosure.sums import DUST, EPS, MORE, Runs
from ..enclosure.upper import plain_residuals, sizes
from .nodes import QuadraticNodes, follows


def proved(
    form: Form,
    structure: Structure,
    nodes: QuadraticNodes,
    point: DualPoint,
    w: Array,
    outside: tuple[Array, Array] | None = None,
) -> Enclosed | None:
    """The bound from the flows and prices of a point, which are nearly the gradients at w; None where flows are stated
    by roots, or the curvature of a ground edge depends on the direction. What given flows on edges that are none of the
    form take from its nodes is ``outside`` (n, d), with a bound of its error."""
    ground = [edge for edge in form.edges if follows(edge)]
    known = bool((nodes.convexity > 0.0).all()) and all(map(_isotropic, ground))
    if structure.roots or not known or not np.isfinite(w).all():
        return None
    flows = tuple(edge.gradients(w) if follows(edge) else u for edge, u in zip(form.edges, point.flows, strict=True))
    cost, reach, off = _distances(form, structure, nodes, flows, point.prices, w, outside)
    spread = [np.zeros(u.shape) for u in flows]  # of each summand q of H_i, (q'v)^2 <= v'H_i v
    for k, edge in enumerate(form.edges):
        if follows(edge):
            root = np.sqrt(edge.weight * _bend(edge.penalty))
            spread[k] = (_rounding(edge, w) + (root * reach[edge.tail])[:, None]) * MORE
    for block, far in zip(form.samples, off, strict=True):
        for some in block.some():
            far[some] += block.column(np.sqrt(block.scale_of(some)) * reach[block.node[some]])
            far[some] *= MORE
    nothing = form.nothing()
    found = box_value(form, structure, Box(flows, nothing.flows, point.prices, nothing.prices))
    lost = Runs(form.component, form.n_components).sums(cost * MORE, plain=True)
    lost = (lost.high + np.abs(lost.low) + lost.error) * MORE
    lower = found.lower - lost
    lower = np.where(np.isfinite(lower), lower - EPS * (np.abs(lower) + lost), -np.inf)
    return Enclosed(lower, DualPoint(flows, point.prices), tuple(spread), found.why, found.inner, off)


def _distances(
    form: Form,
    structure: Structure,
    nodes: QuadraticNodes,
    flows: tuple[Array, ...],
    prices: tuple[Array, ...],
    w: Array,
    outside: tuple[Array, Array] | None,
) -> tuple[Array, Array, tuple[Array, ...]]:
    """What it costs each node that (u, a) is not conserved, nor w the minimiser, (n,); (v'H_i v)^1/2 at most for the
    way v from w to that, (n,); and how far prices are from the gradients at w."""
    balance, slope, away = Balance(form), np.zeros(form.shape), list[Array]()
    if outside is not None:
        balance.add(*outside)
    for block, design, a in zip(form.samples, structure.designs, prices, strict=True):
        rows, off, size = SampleRows(block, design, *form.shape), np.empty(a.shape), sizes(block, w, design)
        for some in block.some():
            s = block.column(block.scale_of(some))
            r, around = plain_residuals(block, w, size, some)
            off[some] = (s * (around + EPS * np.abs(r)) + np.abs(a[some] - s * r)) * MORE
        balance.add(*rows.plain_pull(a))
        slope += rows.most(off)
        away.append(off)
    for edge, u in zip(form.edges, flows, strict=True):
        balance.add_edges(edge, u)
        if follows(edge):
            slope[:, edge.coordinates] += abs(edge.transposed) @ _rounding(edge, w)
    left = (np.abs(balance.value) + balance.error) * MORE
    square = (((left + slope) * nodes.scale) ** 2).sum(axis=1) / nodes.convexity * MORE  # v'H_i v
    return (left * np.abs(w)).sum(axis=1) + 0.5 * square, np.sqrt(square) * MORE, tuple(away)


def _rounding(edge: EdgeBlock, w: Array) -> Array:
    """How far the gradients c L z at w, as they were computed, are from exact ones, (m, k)."""
    z = edge.difference(w)
    return (4.0 * EPS * edge.weight[:, None] * _bend(edge.penalty)) * np.abs(z) + DUST * (z != 0.0)


def _bend(penalty: AbstractPenalty) -> float:
    return penalty.smoothness() if isinstance(penalty, AbstractSmoothPenalty) else np.inf


def _isotropic(edge: EdgeBlock) -> bool:
    """Whether phi is L/2 ||z||^2, as ground edges mostly are."""
    return edge.penalty.strong_convexity() == _bend(edge.penalty)
