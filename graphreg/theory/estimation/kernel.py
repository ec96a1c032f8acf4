"""The operator D = diag(A) K of a weighted graph: projection on its kernel, and the least flow that carries what is not
in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...inputs import components_of, difference_matrix, means_of
from ...terms import Array


@dataclass(frozen=True)
class Kernel:
    """Ker D is spanned by the indicators of the components; ``solve`` inverts D'D with one node of each tied to 0."""

    D: sp.csr_array
    component: Array
    solve: Any  # None where there are no edges
    free: Array  # the nodes that are not tied

    @staticmethod
    def of(tail: Array, head: Array, weight: Array, n: int) -> Kernel:
        from scipy.sparse.linalg import splu

        D = sp.csr_array(sp.diags_array(np.asarray(weight, dtype=float)) @ difference_matrix(tail, head, n))
        component = components_of(tail, head, n)[1]
        free = np.ones(n, dtype=bool)
        free[np.unique(component, return_index=True)[1]] = False
        where = np.flatnonzero(free)
        L = sp.csr_array(D.T @ D)[where][:, where]
        solve = splu(sp.csc_array(L), permc_spec="MMD_AT_PLUS_A").solve if len(where) else None
        return Kernel(D, component, solve, where)

    def project(self, g: Array) -> Array:
        """Pi g: the mean over each component, at each of its nodes, (n, d)."""
        return means_of(self.component, g)

    def lift(self, g: Array) -> Array:
        """(D^+)'g = D (D'D)^+ g, (m, d): of the flows U with D'U = g - Pi g the one of least length."""
        x = np.zeros_like(g)
        if self.solve is not None:
            x[self.free] = self.solve((g - self.project(g))[self.free])
        return self.D @ x
