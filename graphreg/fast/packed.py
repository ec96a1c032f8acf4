"""Inverses and products of small symmetric matrices, one for each node, of which the lower triangles are kept."""

from __future__ import annotations

import math

import numpy as np

from ..base.gate import dealt
from ..terms import Array, Packed, at_a_time
from .compiler import Kernel, Step, compiled, specialised, width_of

LEAST = 1e-12  # of its diagonal: a pivot below it counts as 0
TINY = 1e-300  # instead of what has no root
LANES = 8  # matrices side by side
NODES = 1 << 14  # of a part, of which threads take several at a time; a multiple of `LANES`

Work = tuple[Array, Array, Array]  # room for so many matrices, two columns, and four numbers of each


def packed_spreads(H: Packed, shift: Array, strict: bool = False) -> tuple[Packed, Array]:
    """The inverses of H_i + shift_i I, and the products of the traces of such a matrix and of its inverse, which are
    not less than a condition number, (n,); inf where a matrix is singular in floats, and its inverse any numbers."""
    out, spread = Packed(np.empty(H.flat.shape), H.d), np.full(len(shift), np.inf)
    kernel, size = compiled(packed_inverse, strict), H.rows.shape[1]

    def part(some: slice) -> None:
        work = np.empty(size * LANES), np.empty(2 * H.d * LANES), np.empty(4 * LANES)
        numbers = slice(some.start * size, some.stop * size)
        kernel(H.flat[numbers], shift[some], out.flat[numbers], spread[some], work, H.d)

    dealt(part, at_a_time(NODES, len(shift)))
    return out, spread


def packed_products(A: Packed, v: Array) -> Array:
    """A_i v_i for v (n, d)."""
    out = np.empty(v.shape)
    kernel = specialised(packed_times, width_of(A.d))
    size, flat, found = A.rows.shape[1], np.ascontiguousarray(v).reshape(-1), out.reshape(-1)

    def part(some: slice) -> None:
        mine = slice(some.start * A.d, some.stop * A.d)
        kernel(A.flat[some.start * size : some.stop * size], flat[mine], found[mine], A.d)

    dealt(part, at_a_time(NODES, len(v)))
    return out


# ---- kernels: all arrays are flat; entry (a, b), b <= a, of a matrix stands at a (a + 1) / 2 + b ---------------------
@Step
def pivoted(A: Array, column: Array, inverse: Array, part: Array, k: int, d: int) -> None:
    """The matrices after the pivot on k, whose reciprocals are ``inverse``: those of the same equations solved for
    coordinate k; after all pivots minus the inverses."""
    for a in range(d):
        at = a * (a + 1) // 2 + k if a > k else k * (k + 1) // 2 + a
        for m in range(LANES):
            column[a * LANES + m] = A[at * LANES + m]
    for a in range(d):
        row = a * (a + 1) // 2
        for m in range(LANES):
            part[m] = column[a * LANES + m] * inverse[m]
            column[(d + a) * LANES + m] = -inverse[m] if a == k else part[m]
        for b in range(a + 1):
            for m in range(LANES):
                A[(row + b) * LANES + m] -= part[m] * column[b * LANES + m]
    for a in range(d):
        at = a * (a + 1) // 2 + k if a > k else k * (k + 1) // 2 + a
        for m in range(LANES):
            A[at * LANES + m] = column[(d + a) * LANES + m]


def packed_inverse(H: Array, shift: Array, out: Array, spread: Array, work: Work, d: int) -> None:
    """The inverses are written to ``out``, the products of traces to ``spread``: by pivots on the diagonal one after
    the other, of `LANES` matrices side by side, so that each step is one of vectors."""
    A, column, lane = work
    size = d * (d + 1) // 2
    part, trace = lane[:LANES], lane[LANES : 2 * LANES]
    bends, least = lane[2 * LANES : 3 * LANES], lane[3 * LANES :]
    for first in range(0, shift.size, LANES):
        for m in range(LANES):
            i = min(first + m, shift.size - 1)
            for k in range(size):
                A[k * LANES + m] = H[i * size + k]
            trace[m], least[m] = 0.0, 1.0
            for k in range(d):
                A[k * (k + 3) // 2 * LANES + m] += shift[i]
                trace[m] += A[k * (k + 3) // 2 * LANES + m]
        for k in range(d):
            at = k * (k + 3) // 2
            for m in range(LANES):
                i, pivot = min(first + m, shift.size - 1), A[at * LANES + m]
                least[m] = min(least[m], pivot - LEAST * (H[i * size + at] + shift[i]))
                bends[m] = 1.0 / max(pivot, TINY)
            pivoted(A, column, bends, part, k, d)
        for m in range(LANES):
            bends[m] = 0.0
            for k in range(d):
                bends[m] -= A[k * (k + 3) // 2 * LANES + m]
        for m in range(min(LANES, shift.size - first)):
            for k in range(size):
                out[(first + m) * size + k] = -A[k * LANES + m]
            spread[first + m] = trace[m] * bends[m] if least[m] > 0.0 else math.inf


def packed_times(width: int) -> Kernel:
    """The products are written to ``out``."""

    def kernel(A: Array, v: Array, out: Array, d: int) -> None:
        end = width if width else d
        size = end * (end + 1) // 2
        for i in range(v.size // end):
            of, at = i * size, i * end
            for a in range(end):
                row, x = of + a * (a + 1) // 2, v[at + a]
                total = A[row + a] * x
                for b in range(a):
                    total += A[row + b] * v[at + b]
                for b in range(a):
                    out[at + b] += A[row + b] * x
                out[at + a] = total

    return kernel
