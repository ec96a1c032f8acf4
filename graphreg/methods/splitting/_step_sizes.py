"""Step sizes of the primal-dual method that are set apart, and the product on which its convergence depends."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from ...form import EdgeBlock, Form
from ...network import LocalView, per_node
from ...terms import Array

DENSE = 200  # nodes up to which all eigenvalues are computed
ROUNDING = 1e-9  # of a product: on bipartite graphs the steps of the paper have exactly 1


@dataclass(frozen=True)
class StepSizes:
    """tau_i at the nodes and sigma_e on the edges; None where they follow from the balance."""

    tau: float | Mapping[Hashable, float] | None
    sigma: float | None

    def at_nodes(self, view: LocalView, s: float) -> Array:
        """tau_i, (n,): s/deg_i where none is given, and at nodes without edges, which need no short step."""
        return _at_nodes(view.form, view.degree, view.steps(s), self.tau)

    def product(self, form: Form, s: float) -> float:
        """``|| diag(sigma)^(1/2) K diag(tau)^(1/2) ||^2``, the largest over the coordinates."""
        degree = form.degree()
        root = np.sqrt(_at_nodes(form, degree, s / np.maximum(degree, 1.0), self.tau))
        kinds = {tuple(j in edge.columns(form.d) for edge in form.edges) for j in range(form.d)}
        coupled = ([edge for edge, has in zip(form.edges, kind, strict=True) if has] for kind in kinds)
        return max((self._largest(edges, root, s) for edges in coupled if edges), default=0.0)

    def _largest(self, edges: list[EdgeBlock], root: Array, s: float) -> float:
        steps = [(1.0 if edge.ground else 0.5) / s if self.sigma is None else self.sigma for edge in edges]
        most, long = max(steps), float(root.max())  # by which steps are divided first: their product may overflow
        L = sum(sigma / most * (edge.transposed @ edge.K) for edge, sigma in zip(edges, steps, strict=True))
        M = sp.csr_array(sp.diags_array(root / long) @ L @ sp.diags_array(root / long))
        if len(root) <= DENSE:
            largest = np.linalg.eigvalsh(M.toarray())[-1]
        else:
            begin = np.random.default_rng(0).standard_normal(len(root))
            largest = eigsh(M, k=1, which="LA", v0=begin, return_eigenvectors=False)[0]
        return float(largest) * long * long * most


def _at_nodes(form: Form, degree: Array, default: Array, tau: float | Mapping[Hashable, float] | None) -> Array:
    if tau is None:
        return default
    given = per_node(form, tau, np.nan if isinstance(tau, Mapping) else tau)
    return np.where((degree > 0) & np.isfinite(given), given, default)  # a mapping says nothing of latent nodes
