"""Sparse factorisations of positive definite matrices of one pattern, by whichever code is the faster on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..clock import carry_out
from ..terms import Array

# The mean height of a column, weighted by its entries, up to which QDLDL is at least 1.5 times as fast as SuperLU,
# which works on several columns at once: 30 times on chains, 4 at 30, 2 at 90, the same at 180, a third at 900.
LOW = 120.0
QUICK = 5e8  # multiplications, less than a second: neither Ctrl-C nor the clock is heard meanwhile

Solve = Callable[[Array], Array]


def is_low(entries: float, squares: float) -> bool:
    """Whether a factor is one for QDLDL: so many entries, and so large a sum of the squared heights of its columns."""
    return squares <= LOW * entries and squares <= QUICK


class Factors:
    """Factorisations of matrices with one pattern, given as a CSC matrix in an order in which they fill in little; its
    upper half alone where ``low``.

    Only those of SuperLU that are not ``quick`` are made in a thread of their own: scipy never frees what was allocated
    in another thread than the one that drops it.
    """

    def __init__(self, indices: Array, indptr: Array, low: bool, quick: bool = True) -> None:
        self.indices, self.indptr, self.low, self.quick = indices, indptr, low, quick
        self._solver: Any = None  # of QDLDL, with its symbolic factorisation

    def __call__(self, data: Array) -> Solve:
        """How to solve with the matrix of these entries, until the next call.

        Raises
        ------
        ArithmeticError
            Where the matrix is singular.
        """
        size = len(self.indptr) - 1
        try:
            if self.low:
                return self._lower(sp.csc_matrix((data, self.indices, self.indptr), shape=(size, size)))
            H = sp.csc_array((data, self.indices, self.indptr), shape=(size, size))
            # positive definite: no pivots are needed, and the order is there
            more: dict[str, Any] = {"diag_pivot_thresh": 0.0, "relax": 1, "panel_size": 8, "permc_spec": "NATURAL"}
            more["options"] = {"SymmetricMode": True, "Equil": False}
            found = splu(H, **more) if self.quick else carry_out(lambda: splu(H, **more))
            return found.solve
        except RuntimeError as error:
            raise ArithmeticError(f"a Newton system is singular ({error})") from error

    def _lower(self, upper: sp.csc_matrix) -> Solve:
        if self._solver is None:
            from qdldl import Solver

            self._solver = Solver(upper, upper=True)
        else:
            self._solver.update(upper, upper=True)
            pivots = self._solver.factors()[1]  # an update says nothing of a pivot of 0, at which it breaks off
            if not (np.isfinite(pivots) & (pivots != 0.0)).all():
                raise ArithmeticError("a Newton system is singular")
        return self._solver.solve
