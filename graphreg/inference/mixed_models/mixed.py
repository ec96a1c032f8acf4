"""What a hierarchical estimation gave: variances, coefficients with their errors, the convex problem they solve."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ... import checks
from ...certificate import Certificate, Certifier
from ...errors import ModelError
from ...form import build
from ...tables import Printed, Stated, Table, by_label
from ...terms import Array, Model
from .components import Components
from .recursion import CoefficientTree

GAP = 1e-8  # the relative gap to which the coefficients are to be certified


@dataclass(frozen=True, repr=False)
class HierarchicalEstimate(Stated):
    """The best linear unbiased predictions of a tree of coefficients, and the variances behind them.

    Attributes
    ----------
    components : Components
    w : (n, d)
        The coefficients of all vertices: the nodes, the clusters from the lowest level upwards, the root.
    covariance : (n, d, d)
        Of their errors w_hat - w, given the components (at the root that of the estimate).
    labels : tuple
        Of the vertices; the root is called 'root', or 'all nodes' where there are no clusters.
    features : tuple of str
    tree : Tree
    n_nodes : int
        How many of the vertices are nodes.
    model : Model
        (5.2) with the weights sigma^2 / tau_l^2: ``gr.Problem(estimate.model)`` has these coefficients for solution,
        by whatever method.
    assumed : tuple of str
    """

    components: Components
    w: Array
    covariance: Array
    labels: tuple[Hashable, ...]
    features: tuple[str, ...]
    tree: CoefficientTree
    n_nodes: int
    model: Model

    @property
    def coef(self) -> Array:
        """The coefficients of the nodes, (n_nodes, d)."""
        return self.w[: self.n_nodes]

    @property
    def std_errors(self) -> Array:
        """The standard errors of ``w``, (n, d)."""
        return np.sqrt(np.einsum("njj->nj", self.covariance))

    @cached_property
    def latent(self) -> dict[Hashable, Array]:
        """The coefficients (d,) of clusters and root, by label."""
        return dict(zip(self.labels[self.n_nodes :], self.w[self.n_nodes :], strict=True))

    @cached_property
    def certificate(self) -> Certificate:
        """That the coefficients minimise ``model``."""
        return Certifier(build(self.model).frozen()).certify(self.w, None, None, GAP)

    # ---- tables ------------------------------------------------------------------------------------------------------
    def table(self) -> Table:
        """The coefficients of the nodes, one row per label."""
        frame = by_label(self.coef, self.labels[: self.n_nodes], self.features)
        return self._titled(frame, "coefficients of the nodes")

    def intervals(self, confidence: float = 0.95) -> Table:
        """Coefficients, standard errors and normal intervals of all vertices, clusters and root included, in rows
        (level, label, feature): level 0 are the nodes."""
        low, high = self._ends(confidence)
        n, d = self.w.shape
        level = np.zeros(n, dtype=int)
        for k, (_, parent) in enumerate(self.tree.levels, 1):
            level[parent] = k
        frame = pd.DataFrame(
            {
                "level": np.repeat(level, d),
                "label": [label for label in self.labels for _ in range(d)],
                "feature": list(self.features) * n,
                "estimate": self.w.ravel(),
                "std_error": self.std_errors.ravel(),
                "low": low.ravel(),
                "high": high.ravel(),
            }
        )
        return self._titled(frame, f"coefficients of all vertices with {confidence:.0%} intervals")

    def fixed(self, confidence: float = 0.95) -> Table:
        """The coefficients of the root by generalised least squares: estimate, std_error, low, high by feature."""
        low, high = self._ends(confidence)
        columns = {"estimate": self.w[-1], "std_error": self.std_errors[-1], "low": low[-1], "high": high[-1]}
        frame = pd.DataFrame(columns, index=pd.Index(self.features, name="feature"))
        return self._titled(frame, f"fixed effects (coefficients of the root) with {confidence:.0%} intervals")

    def effects(self, level: int = 1) -> Table:
        """The predicted random effects of a level, counted from 1: the coefficients of its children less those of
        their parents."""
        if isinstance(level, bool) or level not in range(1, len(self.tree.levels) + 1):
            raise ModelError(
                f"level must be one of 1 to {len(self.tree.levels)}, from the nodes upwards, got {level!r}"
            )
        child, parent = self.tree.levels[level - 1]
        names = [self.features[j] for j in self.tree.random]
        frame = by_label((self.w[child] - self.w[parent])[:, self.tree.random], [self.labels[i] for i in child], names)
        return self._titled(frame, f"random effects of level {level}")

    def variances(self) -> Table:
        """The variance components: variance, standard deviation, standard error of the variance."""
        c = self.components
        values = np.array([c.noise, *c.levels])
        rows = ["noise", *(f"level {k + 1}" for k in range(len(c.levels)))]
        columns = {"variance": values, "std_dev": np.sqrt(values), "std_error": np.array(c.std_errors)}
        return self._titled(pd.DataFrame(columns, index=pd.Index(rows, name="component")), "variance components")

    def _titled(self, frame: pd.DataFrame, title: str) -> Table:
        return Table.of(frame, title, self.assumed)

    def _ends(self, confidence: float) -> tuple[Array, Array]:
        from scipy.special import ndtri

        checks.fraction(confidence, "confidence")
        half = float(ndtri((1.0 + confidence) / 2.0)) * self.std_errors
        return self.w - half, self.w + half

    # ---- printed -----------------------------------------------------------------------------------------------------
    def _lines(self) -> list[str | Printed]:
        c = self.components
        how = {"reml": "REML", "ml": "maximum likelihood", "given": "given variances"}[c.method]
        kind = "log-likelihood" if c.method == "ml" else "restricted log-likelihood"
        inner = len(self.labels) - self.n_nodes - 1
        above = f" in {inner} clusters" if inner else ""
        return [
            f"Hierarchical model by {how}: {self.n_nodes} nodes{above}, {kind} {c.log_likelihood:.6f}"
            + ("" if c.converged else " (NOT converged)"),
            Printed.of(self.variances()),
            "fixed effects (coefficients of the root):",
            Printed.of(self.fixed()),
            f"of the coefficients as minimisers of (5.2): {self.certificate}",
        ]

    def __repr__(self) -> str:
        values = ", ".join(f"{v:.4g}" for v in (self.components.noise, *self.components.levels))
        return f"<HierarchicalEstimate: {self.n_nodes} nodes, variances {values} ({self.components.method})>"
