"""Inverses and products of small symmetric matrices, one for each node, of which the lower triangles are kept."""

from __future__ import annotations

import math

import numpy as np

from ..terms import Array, Packed
from .compiler import Kernel, Step, specialised, width_of

LEAST = 1e-12  # of its diagonal: a pivot below it counts as 0
TINY = 1e-300  # instead of what has no root
LANES = 8  # matrices side by side

Work = tuple[Array, Array, Array]  # room for so many matrices, their factors, and four numbers of each


def packed_spreads(H: Packed, shift: Array, strict: bool = False) -> tuple[Packed, Array]:
    """The inverses of H_i + shift_i I, and the products of the traces of such a matrix and of its inverse, which are
    not less than a condition number, (n,); inf where a matrix is singular in floats, and its inverse any numbers."""
    out, spread = Packed(np.empty(H.flat.shape), H.d), np.full(len(shift), np.inf)
    kernel = specialised(packed_inverse, width_of(H.d), strict=strict)
    work = np.empty(H.rows.shape[1] * LANES), np.empty(H.d**2 * LANES), np.empty(4 * LANES)
    kernel(H.flat, shift, out.flat, spread, work, H.d)
    return out, spread


def packed_products(A: Packed, v: Array) -> Array:
    """A_i v_i for v (n, d)."""
    out = np.empty(v.shape)
    kernel = specialised(packed_times, width_of(A.d))
    kernel(A.flat, np.ascontiguousarray(v).reshape(-1), out.reshape(-1), A.d)
    return out


# ---- kernels: all arrays are flat; entry (a, b), b <= a, of a matrix stands at a (a + 1) / 2 + b ---------------------
@Step
def factored(A: Array, root: Array, trace: Array, least: Array, part: Array, end: int) -> None:
    """Cholesky's factors L of ``LANES`` matrices, of whose diagonals the reciprocals are kept, with the traces of the
    matrices and what tells how near they are to singular ones."""
    for a in range(end):
        row = a * (a + 1) // 2
        for b in range(a + 1):
            for m in range(LANES):
                part[m] = A[(row + b) * LANES + m]
            for q in range(b):
                for m in range(LANES):
                    part[m] -= root[(a * end + q) * LANES + m] * root[(b * end + q) * LANES + m]
            if b < a:
                for m in range(LANES):
                    root[(a * end + b) * LANES + m] = part[m] * root[(b * end + b) * LANES + m]
        for m in range(LANES):
            whole = A[(row + a) * LANES + m]
            trace[m] += whole
            least[m] = min(least[m], part[m] - LEAST * whole)
            root[(a * end + a) * LANES + m] = 1.0 / math.sqrt(max(part[m], TINY))


@Step
def inverted(root: Array, part: Array, end: int) -> None:
    """The inverses of the factors, above their diagonals."""
    for c in range(end):
        for a in range(c + 1, end):
            for m in range(LANES):
                part[m] = root[(a * end + c) * LANES + m] * root[(c * end + c) * LANES + m]
            for q in range(c + 1, a):
                for m in range(LANES):
                    part[m] += root[(a * end + q) * LANES + m] * root[(c * end + q) * LANES + m]
            for m in range(LANES):
                root[(c * end + a) * LANES + m] = -part[m] * root[(a * end + a) * LANES + m]


@Step
def squared(root: Array, A: Array, bends: Array, part: Array, end: int) -> None:
    """The inverses of the matrices, from those of their factors, and their traces."""
    for a in range(end):
        row = a * (a + 1) // 2
        for b in range(a + 1):
            for m in range(LANES):
                part[m] = root[(b * end + a) * LANES + m] * root[(a * end + a) * LANES + m]
            for q in range(a + 1, end):
                for m in range(LANES):
                    part[m] += root[(a * end + q) * LANES + m] * root[(b * end + q) * LANES + m]
            for m in range(LANES):
                A[(row + b) * LANES + m] = part[m]
        for m in range(LANES):
            bends[m] += part[m]


def packed_inverse(width: int) -> Kernel:
    """By Cholesky's factor and its inverse, of `LANES` matrices side by side, so that each step is one of vectors."""

    def kernel(H: Array, shift: Array, out: Array, spread: Array, work: Work, d: int) -> None:
        """The inverses are written to ``out``, the products of traces to ``spread``."""
        A, root, lane = work
        end = width if width else d
        size = end * (end + 1) // 2
        part, trace = lane[:LANES], lane[LANES : 2 * LANES]
        bends, least = lane[2 * LANES : 3 * LANES], lane[3 * LANES :]
        for first in range(0, shift.size, LANES):
            for m in range(LANES):
                i = min(first + m, shift.size - 1)
                for k in range(size):
                    A[k * LANES + m] = H[i * size + k]
                trace[m], bends[m], least[m] = 0.0, 0.0, 1.0
                for a in range(end):
                    A[a * (a + 3) // 2 * LANES + m] += shift[i]
            factored(A, root, trace, least, part, end)
            inverted(root, part, end)
            squared(root, A, bends, part, end)
            for m in range(min(LANES, shift.size - first)):
                for k in range(size):
                    out[(first + m) * size + k] = A[k * LANES + m]
                spread[first + m] = trace[m] * bends[m] if least[m] > 0.0 else math.inf

    return kernel


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
