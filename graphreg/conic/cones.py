"""Cones in floats, for proposals: nearest points, directions inwards, faces, and ellipsoids that lie inside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from ..terms import Array
from .programme import Block, Sparse

WIDTH = 2.83  # just more than two square roots of two: a ball of 1 / WIDTH about the axis fits into a second-order cone
CENTRES = {  # where the barrier of the exponential cone and its gradient meet, and inside of all power cones
    "exp": (-1.051383, 0.556409, 1.258967),
    "pow": (1.0, 1.0, 0.0),
}


def matrix(v: Array, k: int) -> Array:
    """The symmetric matrix of a block of kind "psd"."""
    j, i = np.tril_indices(k)
    S = np.zeros((k, k))
    S[i, j] = S[j, i] = v * np.where(i == j, 1.0, np.sqrt(0.5))
    return S


def vector(S: Array) -> Array:
    """The inverse of `matrix`."""
    j, i = np.tril_indices(len(S))
    return S[i, j] * np.where(i == j, 1.0, np.sqrt(2.0))


def projected(y: Array, blocks: Sequence[Block]) -> Array:
    """The nearest point whose lines, second-order cones and matrices are inside."""
    y = y.copy()
    for block in blocks:
        v = y[block.place]
        if block.kind == "nonneg":
            v[:] = np.maximum(v, 0.0)
        elif block.kind == "soc":
            V = v.reshape(-1, int(block.size))
            length = np.linalg.norm(V[:, 1:], axis=1)
            out = V[:, 0] < length
            top = np.maximum(V[out, 0] + length[out], 0.0) / 2.0
            V[out] = np.column_stack([top, (top / length[out])[:, None] * V[out, 1:]])
        elif block.kind == "psd":
            values, Q = np.linalg.eigh(matrix(v, int(block.size)))
            v[:] = vector((Q * np.maximum(values, 0.0)) @ Q.T)
    return y


def inward(blocks: Sequence[Block], size: int) -> Array:
    """A direction into the interior of every cone and of its dual."""
    e = np.zeros(size)
    for block in blocks:
        v = e[block.place]
        if block.kind == "nonneg":
            v[:] = 1.0
        elif block.kind == "soc":
            v[:: int(block.size)] = 1.0
        elif block.kind == "psd":
            v[:] = vector(np.eye(int(block.size)))
        elif block.kind in CENTRES:
            v.reshape(-1, 3)[:] = CENTRES[block.kind]
    return e


def held(y: Array, blocks: Sequence[Block], below: float, dual: bool) -> Array:
    """True where small parts are to be exactly zero from here on: on a coordinate face of the cones."""
    out = np.zeros(len(y), bool)
    for block in blocks:
        v, o = y[block.place], out[block.place]
        if block.kind == "nonneg":
            o[:] = v < below
        elif block.kind == "soc":
            o[:] = np.repeat(v[:: int(block.size)] < below, int(block.size))
        elif block.kind == "psd":
            j, i = np.tril_indices(int(block.size))
            small = v[i == j] < below
            o[:] = small[i] | small[j]
        elif block.kind == "exp":
            small = np.abs(v.reshape(-1, 3)) < below
            o[:] = (small & small[:, [0 if dual else 1]]).ravel()
    return out


def scaling(y: Array, blocks: Sequence[Block], dual: bool, unit: Array) -> Sparse | None:
    """T such that y + T v stays inside where each block of v is at most 1 long; None where y is not inside.

    Lines are scaled by themselves, second-order cones by P(p) / WIDTH with p p = y, matrices by V -> F V F' / 2 with
    F F' = y: automorphisms of the cones, by which long and thin cones cost no more than round ones. The cones of three
    entries: half the inverse root of the barrier's Hessian (Dikin's ellipsoid); where y of an exponential cone is 0,
    lines. Entries in no cone are scaled by themselves too, of all sizes the larger ones, as measured by ``unit``.
    """
    starts, J, V = [np.zeros(1, int)], [np.zeros(0, int)], [np.zeros(0)]
    for block in blocks:
        v, start = y[block.place], block.place.start
        if block.kind == "free":
            u = unit[block.place]
            T: Array | None = np.maximum(np.abs(v), u * max(1e-3 * float(np.abs(v / u).max(initial=0.0)), 1e-6))
        elif block.kind == "nonneg":
            T = v if (v >= 0.0).all() else None
        elif block.kind == "soc":
            T = _second_order(v.reshape(-1, int(block.size)))
        elif block.kind == "psd":
            T = _semidefinite(v, int(block.size)) if v.any() else np.zeros(len(v))
        else:
            T = _three(v.reshape(-1, 3), block, dual)
        if T is None or not np.isfinite(T).all():
            return None
        if T.ndim == 1:
            T = T[:, None, None]
        elif T.ndim == 2:
            T = T[None]
        count, k, _ = T.shape
        at = np.arange(count * k).reshape(count, k)
        starts.append(starts[-1][-1] + k * np.arange(1, count * k + 1))
        J.append((start + np.broadcast_to(at[:, None, :], T.shape)).ravel())
        V.append(T.ravel())
    return sp.csr_array((np.concatenate(V), np.concatenate(J), np.concatenate(starts)), shape=(len(y), len(y)))


def _second_order(V: Array) -> Array | None:
    live = V.any(axis=1)
    length = np.linalg.norm(V[:, 1:].astype(np.longdouble), axis=1).astype(float)
    small, large = V[:, 0] - length, V[:, 0] + length
    if not (small[live] > 0.0).all():
        return None
    top = (np.sqrt(large) + np.sqrt(small)) / 2.0
    p = np.column_stack([top, V[:, 1:] / np.where(live, 2.0 * top, 1.0)[:, None]])
    T, k = 2.0 * p[:, :, None] * p[:, None, :], np.arange(V.shape[1])
    T[:, k, k] += np.sqrt(small * large)[:, None] * np.where(k, 1.0, -1.0)
    return T / WIDTH


def _semidefinite(v: Array, k: int) -> Array | None:
    S = matrix(v, k)
    live = np.diag(S) != 0.0
    values, Q = np.linalg.eigh(S[np.ix_(live, live)])
    if S[~live].any() or not (values > 0.0).all():
        return None
    F = np.zeros((k, k))
    F[np.ix_(live, live)] = Q * np.sqrt(values)
    j, i = np.tril_indices(k)
    share = np.where(i == j, 1.0, np.sqrt(2.0))
    return (F[i][:, i] * F[j][:, j] + F[i][:, j] * F[j][:, i]) * share * share[:, None] / 4.0


def _three(V: Array, block: Block, dual: bool) -> Array | None:
    """Half the inverse root of the Hessian of -log g - log y - log z; the dual of the exponential cone is the cone
    itself at (-y, -x, e z), that of a power cone at (x / a, y / (1 - a), z)."""
    turn, a = np.eye(3), block.size
    if dual:
        exp = np.array([[0, -1, 0], [-1, 0, 0], [0, 0, np.e]])
        turn = exp if block.kind == "exp" else np.diag([1 / a, 1 / (1 - a), 1])
    V = V @ turn.T
    x, y, z = V.T
    # lines, or a point
    face = np.asarray((x <= 0.0) & (y == 0.0) & (z >= 0.0) if block.kind == "exp" else ~V.any(axis=1))
    x, y, z = np.where(face[:, None], CENTRES[block.kind], V).T
    one, none = np.ones(len(x)), np.zeros(len(x))
    with np.errstate(all="ignore"):  # the Hessian is slope slope' / g^2 + bend line line' + diag(more)
        if block.kind == "exp":
            g, p, q = y * np.log(z / y) - x, y, z
            slope, bend, line = [-one, np.log(z / y) - 1, y / z], y / g, [none, 1 / y, -1 / z]
            more = [none, 1 / y**2, 1 / z**2]
        else:
            lift, p, q = (x**a * y ** (1 - a)) ** 2, x, y
            g, line = lift - z**2, [2 * a / x, 2 * (1 - a) / y, none]
            slope, bend = [lift * line[0], lift * line[1], -2 * z], -lift / g
            more = [(2 * a * lift / g + 1 - a) / x**2, (2 * (1 - a) * lift / g + a) / y**2, 2 / g]
        good = (p > 0) & (q > 0) & (g > 0)
        S, L, D = (np.stack(each, 1)[:, :, None] for each in (slope / g, line, more))
        H = S * S.transpose(0, 2, 1) + bend[:, None, None] * (L * L.transpose(0, 2, 1)) + np.eye(3) * D
        if not good.all():
            return None
        try:
            T = 0.5 * np.linalg.inv(np.linalg.cholesky(H)).transpose(0, 2, 1)
        except np.linalg.LinAlgError:
            return None
    T[face] = np.eye(3) * np.abs(V[face])[:, None]
    return np.linalg.inv(turn) @ T
