"""A system of very many columns, few of them shared: cells of private columns first, then the shared ones.

So it is where features that a penalty ties across the graph (shared columns) stand beside features that each node has
for itself (private ones). Triangle and inverse are arrows: linear work in the number of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...inputs import components_of, groups_of
from ...terms import Array
from .sums import EPS, MORE
from .systems import ENOUGH, RANK, deviation

OFTEN = 4  # times the median number of entries: columns with more are shared
SHARED = 400  # the most of them


@dataclass(frozen=True)
class Cell:
    """One cell: its rows and private columns, V of these, N of the shared ones there, and Z = Y V with its error."""

    rows: Array
    columns: Array
    V: Array
    N: Array
    Z: Array
    DZ: Array


@dataclass(frozen=True)
class Arrow:
    """The system (Y'SY) z = T with V as an arrow; see `Systems`."""

    S: Array
    cells: list[Cell]
    shared: Array
    V: Array
    Z: Array
    DZ: Array
    E: float

    @staticmethod
    def of(Y: sp.csr_array, S: Array) -> Arrow | None:
        """None where the columns do not fall into cells, or no bound is found."""
        count = np.diff(sp.csc_array(Y).indptr)
        often = count > OFTEN * np.median(count)
        if often.sum() > SHARED:
            return None
        shared, private = np.flatnonzero(often), np.flatnonzero(~often)
        Ys = Y[:, shared].toarray()
        raw = _cells(sp.csr_array(Y[:, private]), S, Ys)
        if raw is None:
            return None
        found = _joined(raw, Ys, S, shared, private)
        return found if found is not None and found.E < ENOUGH else None

    def solve(self, T: Array, tau: Array) -> tuple[Array, Array]:
        """As `Systems.solve`, for a stack of one."""
        T, tau = T[0], tau[0]
        q = len(self.shared)
        hs = self.V.T @ T[self.shared]
        es = np.abs(self.V).T @ (tau[self.shared] + (q + 1) * EPS * np.abs(T[self.shared]))
        own: list[tuple[Array, Array]] = []
        for cell in self.cells:
            t = T[cell.columns]
            e = tau[cell.columns] + (len(t) + 1) * EPS * np.abs(t)
            hs, es = hs + cell.N.T @ t, es + np.abs(cell.N).T @ e + EPS * np.abs(hs)
            own.append((cell.V.T @ t, np.abs(cell.V).T @ e))
        es = es + (len(self.cells) + 2) * EPS * (np.abs(hs) + es)
        top = max([float((np.abs(h) + e).max(initial=0.0)) for h, e in [*own, (hs, es)]])
        dz = self.E / (1.0 - self.E) * top * MORE
        move = self.Z @ hs
        error = (q + 2) * EPS * (np.abs(self.Z) @ np.abs(hs)) + self.DZ @ (np.abs(hs) + es + dz)
        error = error + np.abs(self.Z) @ (es + dz)
        for cell, (h, e) in zip(self.cells, own, strict=True):
            aZ = np.abs(cell.Z)
            move[cell.rows] += cell.Z @ h
            error[cell.rows] += (len(h) + 2) * EPS * (aZ @ np.abs(h)) + cell.DZ @ (np.abs(h) + e + dz) + aZ @ (e + dz)
        error = error + 4 * EPS * np.abs(move)
        return (-self.S * move)[None], (self.S * error * MORE)[None]


def _cells(Y: sp.csr_array, S: Array, Ys: Array) -> list[Any] | None:
    """Rows, columns, Y, V and the shared part of the triangle for each cell; what it leaves of S^1/2 Ys in place."""
    M, p = Y.shape  # pyright: ignore[reportGeneralTypeIssues]  (scipy has no types)
    links = Y.tocoo()
    count, label = components_of(links.row, M + links.col, M + p)
    root, out = np.sqrt(S), []
    left = root[:, None] * Ys
    for rows, columns in zip(groups_of(label[:M], count), groups_of(label[M:], count), strict=True):
        if not len(columns):
            continue
        cell = Y[rows][:, columns].toarray()
        if len(rows) < len(columns):
            return None
        W = root[rows][:, None] * cell
        size = np.sqrt((W * W).sum(axis=0))
        if not size.min() > 0.0:
            return None
        Q, R = np.linalg.qr(W / size)
        diagonal = np.abs(np.diag(R))
        if not diagonal.min() > 10 * RANK * diagonal.max():
            return None
        side = Q.T @ left[rows]
        left[rows] -= Q @ side
        out.append((rows, columns, cell, np.linalg.inv(R) / size[:, None], side))
    return [out, left]


def _joined(raw: list[Any], Ys: Array, S: Array, shared: Array, private: Array) -> Arrow | None:
    found, left = raw
    q = len(shared)
    V = np.zeros((0, 0))
    if q:
        size = np.sqrt((left * left).sum(axis=0))
        if not size.min() > 0.0:
            return None
        R = np.linalg.qr(left / size, mode="r")
        if len(R) < q or not np.abs(np.diag(R)).min() > 10 * RANK:
            return None
        V = np.linalg.inv(R) / size[:, None]
    Zs, DZs = Ys @ V, (q + 1) * EPS * (np.abs(Ys) @ np.abs(V))
    cells: list[Cell] = []
    for rows, columns, Y, Vc, side in found:
        N = -Vc @ (side @ V)
        k = len(columns) + q + 2
        Zs[rows] += Y @ N
        DZs[rows] += k * EPS * (np.abs(Y) @ np.abs(N)) + EPS * np.abs(Zs[rows])
        cells.append(Cell(rows, private[columns], Vc, N, Y @ Vc, k * EPS * (np.abs(Y) @ np.abs(Vc))))
    return Arrow(S, cells, shared, V, Zs, DZs, _off(cells, Zs, DZs, S))


def _off(cells: list[Cell], Zs: Array, DZs: Array, S: Array) -> float:
    """A bound of the largest row sum of |I - Z'SZ|."""
    worst, cross = 0.0, np.zeros(Zs.shape[1])
    for cell in cells:
        s, zs, dzs = S[cell.rows][:, None], Zs[cell.rows], DZs[cell.rows]
        own = deviation(cell.Z, cell.DZ, s)
        a = np.abs(cell.Z).T
        other = np.abs(cell.Z.T @ (s * zs)) + (len(cell.rows) + 3) * EPS * (a @ (s * np.abs(zs)))
        other = other + cell.DZ.T @ (s * np.abs(zs)) + a @ (s * dzs) + cell.DZ.T @ (s * dzs)
        worst = max(worst, float((own.sum(axis=1) + other.sum(axis=1)).max()))
        cross = cross + other.sum(axis=0)
    if len(cross):
        worst = max(worst, float((deviation(Zs, DZs, S[:, None]).sum(axis=1) + cross).max()))
    return worst * MORE if np.isfinite(worst) else np.inf
