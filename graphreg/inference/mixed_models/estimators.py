"""The estimators that section 6.1 of Personalized FL with multiple known clusters sets side by side.

local            (X_i'PX_i)^+ X_i'Py_i, each node from its own samples (of least norm where they are too few)
single model     (sum X_i'PX_i)^-1 sum X_i'Py_i, one for all nodes
single cluster   (5.2) with all nodes directly under the root
hierarchical     (5.2) on the clusters
James-Stein      the single cluster with its root shrunk, Proposition 5.4; of at least 3 coefficients
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...display import Html, Shown
from ...errors import DataError
from ...inputs import NodeData
from ...messages import look_alike
from ...tables import Table, by_label, whole_html
from ...terms import Array
from ...terms.losses import AbstractQuadraticLoss
from .hierarchical import Described, fitted
from .james_stein import shrunken
from .mixed import HierarchicalEstimate

FLAT = "single cluster and James-Stein take all nodes to lie directly under one root, with a variance of their own"


@dataclass(frozen=True, repr=False)
class EstimatorComparison(Shown):
    """Estimates of the same nodes by several estimators.

    Attributes
    ----------
    coef : dict of DataFrames
        By estimator: one row per node, one column per feature.
    fits : dict of HierarchicalEstimate
        The hierarchical ones among them, with their variances and certificates.
    errors : DataFrame or None
        ||w_i - truth_i|| by node and estimator, where the truth was given.
    assumed : tuple of str
    """

    coef: dict[str, pd.DataFrame]
    fits: dict[str, HierarchicalEstimate]
    errors: pd.DataFrame | None
    assumed: tuple[str, ...]

    def table(self) -> Table:
        """Per estimator the mean and the largest error over the nodes; without the truth the distances from the
        hierarchical estimates (from those of the single cluster, where there are no clusters)."""
        reference = list(self.fits)[-1]
        shown = _distances(self.coef, self.coef[reference].to_numpy()) if self.errors is None else self.errors
        what = f"distance from {reference}" if self.errors is None else "error"
        frame = pd.DataFrame({f"mean {what}": shown.mean(), f"largest {what}": shown.max()})
        frame.index.name = "estimator"
        return Table.of(frame, f"estimators of {len(shown)} nodes (Euclidean norms)", self.assumed)

    def __str__(self) -> str:
        return str(self.table())

    def _html(self) -> Iterable[Html]:
        yield whole_html(self.table())

    __repr__ = __str__


def compare_estimators(
    loss: NodeData | AbstractQuadraticLoss,
    clusters: Mapping[Any, Any] | None = None,
    components: Sequence[float] | None = None,
    truth: Any = None,
) -> EstimatorComparison:
    """Local fits, one model for all, one cluster, the hierarchy and the James-Stein variant side by side, of the nodes
    that have data.

    Parameters
    ----------
    loss, clusters, components
        As of `hierarchical`. Of given components (sigma^2, tau_1^2, ...) the single cluster has (sigma^2, sum tau_l^2),
        which is the variance of a node about the root; without them each is fitted by REML.
    truth : DataFrame or mapping, optional
        The true coefficients by node label.

    Raises
    ------
    DataError
        As of `hierarchical`, and for a truth that lacks a node or has another number of coefficients.
    """
    flat = Described.of(loss, None)
    fits: dict[str, HierarchicalEstimate] = {}
    if clusters is None:
        fits["single cluster"] = fitted(flat, flat.components(components))
    else:
        read = Described.of(loss, clusters)
        found = read.components(components)
        single = None if components is None else [found.noise, sum(found.levels)]
        fits["single cluster"] = fitted(flat, flat.components(single))
        fits["hierarchical"] = fitted(read, found)
    labels, names = flat.form.labels[:-1], flat.form.space.names
    A, centre = flat.data.A[:-1], flat.data.centre
    own = np.linalg.pinv(A, rcond=1e-12, hermitian=True) @ (flat.data.b[:-1] + A @ centre)[:, :, None]
    values = {"local": own[:, :, 0], "single model": np.tile(centre, (len(labels), 1))}
    for name, fit in fits.items():
        place = {label: i for i, label in enumerate(fit.labels[: fit.n_nodes])}
        values[name] = fit.coef[[place[label] for label in labels]]
    if len(names) >= 3:
        values["James-Stein"] = shrunken(flat, fits["single cluster"].components).coef
    coef = {name: by_label(value, labels, names) for name, value in values.items()}
    errors = None if truth is None else _errors(coef, truth)
    assumed = (*list(fits.values())[-1].assumed, FLAT)
    return EstimatorComparison(coef, fits, errors, assumed)


def _errors(coef: dict[str, pd.DataFrame], truth: Any) -> pd.DataFrame:
    """||w_i - truth_i|| by node and estimator."""
    first = next(iter(coef.values()))
    rows = dict(zip(truth.index, truth.to_numpy(), strict=True)) if hasattr(truth, "to_numpy") else truth
    if not isinstance(rows, Mapping):
        raise DataError(f"truth must be a DataFrame or a mapping of nodes to coefficients, got {type(truth).__name__}")
    for label in first.index:
        if label not in rows:
            raise DataError(f"truth has no row for the node {label!r}{look_alike(label, rows)}")
        if np.shape(rows[label]) != (first.shape[1],):
            raise DataError(
                f"truth has {np.size(rows[label])} coefficients at the node {label!r} and the model {first.shape[1]}"
            )
    w = np.array([np.asarray(rows[label], dtype=float) for label in first.index])
    return _distances(coef, w)


def _distances(coef: dict[str, pd.DataFrame], w: Array) -> pd.DataFrame:
    """||w_i - what an estimator says|| by node and estimator."""
    far = {name: np.linalg.norm(frame.to_numpy() - w, axis=1) for name, frame in coef.items()}
    return pd.DataFrame(far, index=next(iter(coef.values())).index)
