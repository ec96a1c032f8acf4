"""Conic programmes of small whole numbers whose optimal values are known exactly, and exact sums of their data."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from graphreg.conic.programme import Block, Programme

TRIPLES = ((5, 3, 4), (13, 5, 12), (7, 2, 3, 6), (9, 1, 4, 8))


def exact(x):
    """Whole numbers, fractions or floats as fractions."""
    return [Fraction(v) for v in np.asarray(x).tolist()]


def dot(a, b):
    return sum((x * y for x, y in zip(exact(a), exact(b), strict=True)), Fraction(0))


def into(blocks, size):
    """A direction into the interior of cones."""
    e = np.zeros(size, int)
    for block in blocks:
        v = e[block.place]
        if block.kind == "nonneg":
            v[:] = 1
        elif block.kind == "soc":
            v[0] = 1
        elif block.kind == "psd":
            v[[0, 2]] = 1
    return e


def planted(seed, quadratic=True):
    """A programme, its exact optimal value, and an optimal x and z: s and z are complementary by construction, and b
    and q are what makes them optimal."""
    r = np.random.default_rng(seed)
    n, zero, lines = int(r.integers(2, 7)), int(r.integers(0, 3)), int(r.integers(2, 9))
    s, z = [0] * zero, r.integers(-3, 4, zero).tolist()
    for _ in range(lines):
        tight = r.random() < 0.5
        s.append(0 if tight else int(r.integers(1, 5)))
        z.append(int(r.integers(1, 5)) if tight else 0)
    blocks, at = [Block("zero", slice(0, zero))] if zero else [], zero + lines
    blocks.append(Block("nonneg", slice(zero, at)))
    for _ in range(int(r.integers(0, 3))):
        t, *u = TRIPLES[int(r.integers(len(TRIPLES)))]
        k = len(u) + 1
        both = [t, *u], [t, *(-v for v in u)]  # on opposite rays of the boundary
        inner, outer = [t + 1, *u], [0] * k
        first, second = (both, (inner, outer), (outer, inner))[int(r.integers(3))]
        s += first
        z += [2 * v for v in second]
        blocks.append(Block("soc", slice(at, at + k), float(k)))
        at += k
    if r.random() < 0.5:  # matrices e e' and f f' with e'f = 0, without entries off the diagonal, which have roots
        s += [1, 0, 0]
        z += [0, 0, 3]
        blocks.append(Block("psd", slice(at, at + 3), 2.0))
        at += 3
    A = r.integers(-3, 4, (at, n)) * (r.random((at, n)) < 0.6)
    d = np.concatenate([[1], r.integers(-1, 2, n - 1)])  # a direction from x into the interior
    A[:, 0] -= A @ d + into(blocks, at)  # A d is that with a minus: s grows by it
    B = r.integers(-2, 3, (int(r.integers(1, n + 1)), n)) if quadratic else np.zeros((1, n), int)
    P, x = B.T @ B, r.integers(-3, 4, n)
    b, q = A @ x + s, -(P @ x) - A.T @ z
    value = dot(P @ x, x) / 2 + dot(q, x)
    data = sp.csr_array(P.astype(float)), q.astype(float), sp.csr_array(A.astype(float)), b.astype(float)
    for M in (data[0], data[2]):
        M.eliminate_zeros()
    return Programme(*data, tuple(blocks)), value, x.astype(float), np.array(z, float)
