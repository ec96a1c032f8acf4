"""The linear system Bv = 0 of a problem's dual, and the functions whose prices and flows v are.

One variable of v per row of ``B' = [X; K]``: the price of a sample, the flow of an edge on one coordinate; one equation
(Bv)_i = 0 per number of w. By Fenchel-Young, for every v and w,

    P(w) >= - sum_g f_g*(v_g) - <v, t> + <Bv, w>,

where f_g( (B'w - t)_g ) are the summands of P and the columns of B are shared out among them, each once. Domains are to
have an interior: prices that add up to 0 over classes are stated by contrasts with one class, flows of a penalty h(Rz)
with fewer rows than coordinates as R'q by q.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from graphreg.certificate.enclosure.sums import two_product, two_sum
from graphreg.form import EdgeBlock, Form, SampleBlock
from graphreg.terms import Array

from .arithmetic import LARGEST, U, in_range, need, upwards

Bound = Callable[[Array, Array], Array]  # of f*: not less than it over the boxes b +- spread, (m,); inf outside


@dataclass(frozen=True)
class Summand:
    """m functions s f(z - t), each of k variables, those from ``first`` on row by row.

    ``bound`` is of f*, at the variables divided by s. ``t`` is high + low, known up to ``t_off``. ``component`` is that
    of each function, ``name`` for messages.
    """

    first: int
    shape: tuple[int, int]
    scale: Array
    bound: Bound
    t: tuple[Array, Array, Array]
    component: Array
    node: Array
    name: str

    @property
    def columns(self) -> slice:
        return slice(self.first, self.first + self.shape[0] * self.shape[1])

    def taken(self, v: Array) -> Array:
        """The variables of the functions, (m, k)."""
        return v[self.columns].reshape(self.shape)


class System:
    """B, (equations, variables), and the summands of a form."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.summands: list[Summand] = []
        self._rows: list[sp.csr_array] = []
        self._first = 0
        for block in form.samples:
            self._add(*_samples(block, form))
        for edge in form.edges:
            self._add(*_edges(edge, form))
        B = sp.vstack([sp.csr_array((0, form.n * form.d)), *self._rows], format="csr")
        B.eliminate_zeros()
        self.transposed = sp.csr_array(B)  # B', by variables
        need(in_range(self.transposed.data), "an entry of the designs is out of range")

    def _add(self, rows: sp.csr_array, summand: Callable[[int], Summand]) -> None:
        made = summand(self._first)
        need((made.scale > 0.0).all() and in_range(made.scale), f"a scale of {made.name} is out of range")
        need(all((np.abs(t) < LARGEST).all() for t in made.t), f"a target of {made.name} is too large")
        self.summands.append(made)
        self._rows.append(rows)
        self._first += rows.shape[0]

    @property
    def size(self) -> int:
        """The number of variables."""
        return self._first

    @cached_property
    def B(self) -> sp.csr_array:  # noqa: N802  (a matrix)
        """(equations, variables), by equations."""
        B = sp.csr_array(self.transposed.T)
        B.sum_duplicates()
        return B

    @cached_property
    def component(self) -> Array:
        """The component of each equation."""
        return np.repeat(self.form.component, self.form.d)


def _samples(block: SampleBlock, form: Form) -> tuple[sp.csr_array, Callable[[int], Summand]]:
    loss, y = block.loss, block.y
    M, k = len(block.node), block.width
    anchor = loss.anchor(y).reshape(M, k)
    t_high, t_low = two_sum(anchor, -block.offset.reshape(M, k))
    rows, own, kept = block.A, loss.prices.dependent(y), np.ones((M, k), dtype=bool)
    if own is not None:
        kept[np.arange(M), own] = False
        take, other = np.nonzero(kept.ravel())[0], np.repeat(np.arange(M) * k + own, k - 1)
        rows = sp.csr_array(rows[take] - rows[other])
        need(not anchor.any(), f"{loss.called()} has an anchor and dependent prices")
        t_high, t_low = (x.reshape(M, k - 1) for x in two_sum(t_high.ravel()[take], -t_high.ravel()[other]))
    inner = k if own is None else k - 1

    def bound(b: Array, spread: Array) -> Array:
        if own is None:
            return loss.conjugate_bound(*(x.reshape(block.offset.shape) for x in (b, spread)), y)
        full, off = np.zeros((M, k)), np.zeros((M, k))
        full[kept], off[kept] = b.ravel(), spread.ravel()
        total, size = -b.sum(axis=1), np.abs(b).sum(axis=1)
        full[np.arange(M), own] = total
        off[np.arange(M), own] = upwards(spread.sum(axis=1) + size * (k * U), k + 2)
        return loss.conjugate_bound(full, off, y)

    def made(first: int) -> Summand:
        zero = np.zeros(t_high.shape)
        return Summand(
            first,
            (M, inner),
            block.scale,
            bound,
            (t_high, t_low, zero),
            form.component[block.node],
            block.node,
            f"a price of {loss.called()}",
        )

    return rows, made


def _edges(edge: EdgeBlock, form: Form) -> tuple[sp.csr_array, Callable[[int], Summand]]:
    columns, m = edge.columns(form.d), len(edge.tail)
    root, penalty = edge.penalty.composed() or (None, edge.penalty)
    mix = np.eye(len(columns)) if root is None else root
    pick = sp.csr_array(
        (mix.ravel(), (np.repeat(np.arange(len(mix)), len(columns)), np.tile(columns, len(mix)))),
        shape=(len(mix), form.d),
    )
    zero = np.zeros((m, len(mix)))
    center = edge.center
    if center is None:
        t = zero, zero, zero
    elif root is None:
        t = np.asarray(center, dtype=float), zero, zero
    else:
        t = _rooted(center, root)

    def made(first: int) -> Summand:
        return Summand(
            first,
            zero.shape,
            edge.weight,
            penalty.conjugate_bound,
            t,
            form.component[edge.tail],
            edge.tail,
            f"a flow of {edge.name}",
        )

    return sp.csr_array(sp.kron(edge.K, pick, format="csr")), made


def _rooted(center: Array, root: Array) -> tuple[Array, Array, Array]:
    """R center row by row, as pairs with what they may be off."""
    high, low, off = (np.zeros((len(center), len(root))) for _ in range(3))
    for j in range(root.shape[1]):
        p, e = two_product(center[:, j : j + 1], root[:, j])
        high, left = two_sum(high, p)
        low, lost = two_sum(low, left + e)
        off = upwards(off + np.abs(lost) + U * np.abs(left + e), 3) + 1e-300
    return high, low, off
