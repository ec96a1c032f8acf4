"""The estimators that section 6.1 of Personalized FL with multiple known clusters sets side by side.

local            (X_i'PX_i)^+ X_i'Py_i, each node from its own samples (of least norm where they are too few)
single model     (sum X_i'PX_i)^-1 sum X_i'Py_i, one for all nodes
single cluster   (5.2) with all nodes directly under the root
hierarchical     (5.2) on the clusters
James-Stein      the single cluster with its root shrunk, Proposition 5.4; of at least 3 coefficients
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..base.messages import look_alike
from ..base.tables import ShownByTable, Table, by_label
from ..errors import DataError, MethodError
from ..inputs import NodeData
from ..terms import Array, Space, times
from ..terms.losses import AbstractQuadraticLoss
from .components import Components
from .local import flat
from .mixed import Described, HierarchicalEstimate, fitted
from .recursion import upward


# ---- the single-cluster and the James-Stein estimator of section 5.1 -------------------------------------------------
# From the samples of all other nodes the root's coefficients have the generalised least squares estimate theta_-i, with
# covariance S_i, so that those of node i are N(theta_-i, tau^2 I + S_i) before its own samples are seen:
#
#     w_i = (A_i + P_i)^-1 (b_i + P_i theta_-i),      A_i = X_i'PX_i / sigma^2,  b_i = X_i'Py_i / sigma^2,
#     P_i = (tau^2 I + S_i)^-1
#
# is the marginal estimator of Proposition 5.3. (It is the minimiser of (5.2), to rounding, for every design; the paper
# says that in general it is another one.) The James-Stein variant of Proposition 5.4 has C_i theta_-i for theta_-i,
#
#     C_i = max(0, 1 - (q_i - 2) / (theta_-i' S_i^-1 theta_-i)),      q_i = tr Q_i / lambda_max(Q_i),
#     Q_i = T_i S_i T_i',    T_i = (A_i + P_i)^-1 P_i,
#
# the shrinkage of Bock (1975) for the error ||w_i - w_i*||^2: own samples and random effects are independent of
# theta_-i, so that it lowers the mean squared error wherever q_i > 2 and the variances are known. In the model of
# Proposition 5.4, y_i ~ N(theta_i, I), theta_i ~ N(theta, I), it is C_i = 1 - 2 (d - 2) / ((n - 1) ||mean_-i||^2), and
# the weights are (n + 1) / 2n of y_i and (n - 1) / 2n of the mean of the others (its proof, appendix A.12, prints the
# other way round).
@dataclass(frozen=True, repr=False)
class JamesSteinEstimate(ShownByTable):
    """The estimates of all nodes.

    Attributes
    ----------
    coef : (n, d)
        The James-Stein variant.
    marginal : (n, d)
        The estimator of Proposition 5.3, without shrinkage.
    shrinkage : (n,)
        C_i, between 0 and 1; 1 where q_i <= 2.
    components : Components
    labels : tuple
    space : Space
        The coefficients, with the units of the columns that the table has; ``coef`` is of standardised features per
        standard deviation.
    assumed : tuple of str
    """

    coef: Array
    marginal: Array
    shrinkage: Array
    components: Components
    labels: tuple[Hashable, ...]
    space: Space
    assumed: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        return tuple(self.space.names)

    def table(self) -> Table:
        """The coefficients of the nodes and their shrinkage factors C_i, one row per label."""
        frame = by_label(self.space.in_units(self.coef), self.labels, self.features)
        frame["shrinkage"] = self.shrinkage
        return Table.of(frame, "James-Stein estimates of the nodes", self.assumed)

    def __repr__(self) -> str:
        low, high = self.shrinkage.min(), self.shrinkage.max()
        return f"<JamesSteinEstimate: {len(self.labels)} nodes, shrinkage {low:.3g} to {high:.3g}>"


def james_stein(
    loss: NodeData | AbstractQuadraticLoss, components: Sequence[float] | None = None
) -> JamesSteinEstimate:
    """Estimates of nodes directly under a root whose common part is shrunk towards 0.

    Parameters
    ----------
    loss : NodeData, SquaredLoss or MeanLoss
        As of `hierarchical`.
    components : pair of floats, optional
        sigma^2 and tau^2. By default they are estimated by REML, which the guarantee does not cover.

    Raises
    ------
    MethodError
        For fewer than three coefficients, where no estimator dominates the unbiased one.
    DataError
        Where the samples of all other nodes do not determine the root's coefficients; it names the node.

    Examples
    --------
    >>> three = gr.NodeData.from_frame(frame, node="site", target="level", features=["rain", "temp"], intercept=True)
    >>> gr.inference.james_stein(three).table().index.tolist()
    ['a', 'b', 'c', 'd']
    """
    read = Described.of(loss, None)
    if read.form.d < 3:
        raise MethodError(
            f"there are {read.form.d} coefficients, and below 3 no shrinkage lowers the error whatever the truth is; "
            "use hierarchical"
        )
    return shrunken(read, read.components(components))


def shrunken(read: Described, found: Components) -> JamesSteinEstimate:
    """The estimates at some variances."""
    n, d = read.form.space.n_observed, read.form.d
    rho, eye = float(found.ratios[0]), np.eye(d)
    up = upward(read.data, read.tree, found.ratios)
    A, b = up.A[:n], up.b[:n]
    kept = up.stored[0]
    others = up.A[-1] - (A - rho * A @ kept.slope)  # what the root sees of all but node i; in units of 1 / sigma^2
    short = np.flatnonzero(flat(others)[1].any(axis=(1, 2)))
    if short.size:
        raise DataError(
            f"without the node {read.form.labels[short[0]]!r} the samples do not determine the coefficients of the "
            "root; give more nodes, or use fewer features"
        )
    S = np.linalg.inv(others)
    theta = times(S, up.b[-1] - (b - rho * times(A, kept.pull)))  # from the centred targets
    P = np.linalg.inv(rho * eye + S)
    H = np.linalg.inv(A + P)
    T, whole = H @ P, theta + read.data.centre
    marginal = times(H, b + times(P, theta)) + read.data.centre
    Q = T @ S @ T.transpose(0, 2, 1)
    q = np.einsum("njj->n", Q) / np.linalg.eigvalsh(Q)[:, -1]
    length = np.einsum("nj,njk,nk->n", whole, others, whole) / found.noise
    C = np.where(q > 2, np.maximum(0.0, 1.0 - (q - 2.0) / np.maximum(length, 1e-300)), 1.0)
    coef = marginal + (C - 1.0)[:, None] * times(T, whole)
    labels = tuple(read.form.labels[:n])
    return JamesSteinEstimate(coef, marginal, C, found, labels, read.form.space, (*_assumed(found, q), *read.notes))


def _assumed(found: Components, q: Array) -> tuple[str, ...]:
    out = [
        "Gaussian noise of variance sigma^2 / weight, and coefficients of all nodes around those of one root with one "
        "variance (the single-cluster model of Proposition 5.4); the root's are shrunk towards 0, which biases them"
    ]
    if found.method == "given":
        out.append("the mean squared error is below that of the unbiased predictions if the variances given are right")
    else:
        out.append(
            "variances by restricted maximum likelihood: that the error is below that of the unbiased predictions is "
            "proven for known variances only"
        )
    if (q <= 2).any():
        out.append(
            f"{int((q <= 2).sum())} of {len(q)} nodes are not shrunk: the errors that the others leave there have an "
            "effective dimension of at most 2"
        )
    return tuple(out)


# ---- the comparison --------------------------------------------------------------------------------------------------
FLAT = "single cluster and James-Stein take all nodes to lie directly under one root, with a variance of their own"


@dataclass(frozen=True, repr=False)
class EstimatorComparison(ShownByTable):
    """Estimates of the same nodes by several estimators.

    Attributes
    ----------
    coef : dict of DataFrames
        By estimator: one row per node, one column per feature, in the units of the columns.
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
        """The mean and the largest error over the nodes, per estimator; without the truth the distances from the
        hierarchical estimates (from those of the single cluster, where there are no clusters)."""
        reference = list(self.fits)[-1]
        shown = _distances(self.coef, self.coef[reference].to_numpy()) if self.errors is None else self.errors
        what = f"distance from {reference}" if self.errors is None else "error"
        frame = pd.DataFrame({f"mean {what}": shown.mean(), f"largest {what}": shown.max()})
        frame.index.name = "estimator"
        return Table.of(frame, f"estimators of {len(shown)} nodes (Euclidean norms)", self.assumed)

    __repr__ = ShownByTable.__str__


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

    Examples
    --------
    >>> gr.inference.compare_estimators(data).table().index.tolist()
    ['local', 'single model', 'single cluster']
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
    coef = {name: by_label(flat.form.space.in_units(value), labels, names) for name, value in values.items()}
    errors = None if truth is None else _errors(coef, truth)
    return EstimatorComparison(coef, fits, errors, (*list(fits.values())[-1].assumed, FLAT))


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
    return _distances(coef, np.array([np.asarray(rows[label], dtype=float) for label in first.index]))


def _distances(coef: dict[str, pd.DataFrame], w: Array) -> pd.DataFrame:
    """||w_i - what an estimator says|| by node and estimator."""
    far = {name: np.linalg.norm(frame.to_numpy() - w, axis=1) for name, frame in coef.items()}
    return pd.DataFrame(far, index=next(iter(coef.values())).index)
