"""In which units a solver sees a problem: around the best common model, with numbers of about 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.lazy import cp
from ..certificate import centred, common, lengths
from ..form import EdgeBlock, Form
from ..terms import Array


@dataclass(frozen=True)
class Units:
    """The objective in units of ``value``, and ``w = center + V diag(differences) + C T diag(lengths)``.

    V (n, d) has a row per node. T has one per connected component, which C gives to its nodes, and the columns
    ``shared``: those in which strong penalties leave the differences of nodes far smaller than what they have in
    common. Without lengths (None) these are 1 and nothing is shared; without a center it is 0.
    """

    value: float = 1.0
    lengths: Array | None = None
    differences: Array | None = None
    center: Array | None = None

    @property
    def shared(self) -> Array:
        """The columns of T."""
        if self.lengths is None or self.differences is None:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(self.differences < self.lengths)

    def inner(self, form: Form) -> Form:
        """The form in the parameters w - center."""
        return form if self.center is None else centred(form, self.center)

    def spread(self, form: Form) -> sp.csr_array:
        """The matrix (n d, components x shared) that takes vec(T) to its part of vec(w)."""
        n, d = form.shape
        j = self.shared
        assert self.lengths is not None
        rows = (np.arange(n)[:, None] * d + j).ravel()
        columns = (form.component[:, None] * len(j) + np.arange(len(j))).ravel()
        return sp.csr_array((np.tile(self.lengths[j], n), (rows, columns)), shape=(n * d, form.n_components * len(j)))

    def scaled(self, A: sp.csr_array) -> sp.csr_array:
        """A, which acts on vec(w), as it acts on vec(V)."""
        if self.differences is None:
            return A
        return sp.csr_array(
            (A.data * self.differences[A.indices % len(self.differences)], A.indices, A.indptr), A.shape
        )

    def outward(self, V: Array, shared: Array | None) -> tuple[Array, Array]:
        """w - center and w; ``shared`` is C T diag(lengths)."""
        moved = V if self.differences is None else V * self.differences
        moved = moved if shared is None else moved + shared
        return moved, moved if self.center is None else moved + self.center

    def of(self, edge: EdgeBlock) -> tuple[float, Array | None]:
        """The unit of an edge's differences, one for all of its coordinates (norms couple them), and those of its
        coordinates in this unit; None where they are 1."""
        if self.differences is None or edge.map.edges is None:
            return 1.0, None
        sizes = self.differences[edge.coordinates]
        size = float(sizes.max())
        return size, None if (sizes == size).all() else sizes / size


PLAIN = Units()


def units(form: Form) -> Units:
    """Units in which objective and parameters are about 1, around the best common model, whatever the units of the
    data: solvers stop on absolute tolerances."""
    best = common(form)
    return Units(best.size, *lengths(form), best.w)


class Parameters:
    """w as CVXPY sees it: the variable V and, where columns are shared, T."""

    def __init__(self, form: Form, units: Units) -> None:
        self.form, self.units = form, units
        self.V: Any = cp.Variable(form.shape, name="w")
        self.vec: Any = cp.vec(self.V, order="C")
        self.spread = units.spread(form) if len(units.shared) else None
        self.T: Any = None if self.spread is None else cp.Variable(self.spread.shape[1], name="shared")  # pyright: ignore[reportOptionalSubscript]

    def apply(self, A: sp.csr_array) -> Any:
        """A vec(w - center)."""
        out = self.units.scaled(A) @ self.vec
        return out if self.spread is None else out + sp.csr_array(A @ self.spread) @ self.T

    def differences(self, edge: EdgeBlock) -> tuple[float, Any]:
        """The unit of an edge block, and Kw in this unit, (m, k)."""
        (size, ratio), d = self.units.of(edge), self.form.d
        if edge.map.edges is None:
            return size, cp.reshape(self.apply(edge.flat(d)), (edge.count, edge.map.width(d)), order="C")
        part = edge.K @ (self.V if edge.features is None else self.V[:, edge.features])
        part = part if ratio is None else part @ sp.diags_array(ratio)
        if self.spread is None or not edge.ground:  # what nodes have in common cancels across an edge
            return size, part
        rows = sp.csr_array(self.spread[(edge.tail[:, None] * d + edge.columns(d)).ravel()]) / size
        return size, part + cp.reshape(rows @ self.T, part.shape, order="C")

    def read(self) -> tuple[Array, Array] | None:
        """w - center and w; None before there is an answer."""
        if self.V.value is None:
            return None
        shared = None if self.spread is None else (self.spread @ self.T.value).reshape(self.form.shape)
        return self.units.outward(np.asarray(self.V.value, dtype=float), shared)
