"""Hierarchical estimation: the minimiser of (5.2) with variances from the data, as a mixed model has it.

    y_r = x_r'w_i + e_r, e_r ~ N(0, sigma^2 / p_r),    w_i = w_cluster(i) + N(0, tau_1^2 I),
    w_j = w_root + N(0, tau_2^2 I),                                                          (5.1), any depth

Given the variances the best linear unbiased predictions of all w, and the generalised least squares estimate of w_root,
together minimise (5.2) of Personalized FL with multiple known clusters (Theorem 5.1 there; measured, for any design and
not only orthogonal ones, and equal to the estimator of Proposition 5.3, which the paper takes for another one):

    sum_r p_r/2 (y_r - x_r'w_i)^2 + sigma^2/(2 tau_1^2) sum_i ||w_i - w_cluster(i)||^2
                                  + sigma^2/(2 tau_2^2) sum_j ||w_j - w_root||^2
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .. import checks
from ..base.clock import in_time
from ..base.tables import PrintedTable, ResultWithAssumptions, Table, by_label
from ..certificate import Certificate, Certifier
from ..errors import MethodError, ModelError, TermError
from ..form import Form, build
from ..inputs import Graph, NodeData
from ..terms import Array, Consensus, Hierarchy, Model, Space, TotalVariation, tree_levels
from ..terms.losses import AbstractLoss, AbstractQuadraticLoss, MeanLoss, SquaredLoss
from ..terms.penalties import SquaredL2, Zero
from .components import Components, Likelihood, as_given, estimate
from .given import loss_given
from .recursion import CoefficientTree, Statistics, downward, upward

# ---- the estimate ----------------------------------------------------------------------------------------------------
GAP = 1e-8  # the relative gap to which the coefficients are to be certified


@dataclass(frozen=True, repr=False)
class HierarchicalEstimate(ResultWithAssumptions):
    """The best linear unbiased predictions of a tree of coefficients, and the variances behind them.

    Attributes
    ----------
    components : Components
    w : (n, d)
        The coefficients of all vertices: the nodes, the clusters from the lowest level upwards, the root; of
        standardised features per standard deviation, where tables have the units of the columns.
    covariance : (n, d, d)
        Of their errors w_hat - w, given the components (at the root that of the estimate).
    labels : tuple
        Of the vertices; the root is called 'root', or 'all nodes' where there are no clusters.
    space : Space
        The coefficients, with the units of the columns that tables have.
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
    space: Space = field(repr=False)
    tree: CoefficientTree
    n_nodes: int
    model: Model

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        return tuple(self.space.names)

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
        """The certificate that the coefficients minimise ``model``."""
        return Certifier(build(self.model).frozen()).certify(self.w, None, None, GAP)

    # ---- tables ------------------------------------------------------------------------------------------------------
    def table(self) -> Table:
        """The coefficients of the nodes, one row per label."""
        frame = by_label(self.space.in_units(self.coef), self.labels[: self.n_nodes], self.features)
        return self._titled(frame, "coefficients of the nodes")

    def intervals(self, confidence: float = 0.95) -> Table:
        """Coefficients, standard errors and normal intervals of all vertices, clusters and root included, in rows
        (level, label, feature): level 1 are the nodes, as in `variances` and `effects`, and the root is the highest."""
        columns = self._columns(confidence)
        n, d = self.w.shape
        level = np.ones(n, dtype=int)
        for k, (_, parent) in enumerate(self.tree.levels, 2):
            level[parent] = k
        frame = pd.DataFrame(
            {
                "level": np.repeat(level, d),
                "label": [label for label in self.labels for _ in range(d)],
                "feature": list(self.features) * n,
                **{name: values.ravel() for name, values in columns.items()},
            }
        )
        return self._titled(frame, f"coefficients of all vertices with {confidence:.0%} intervals")

    def fixed(self, confidence: float = 0.95) -> Table:
        """The coefficients of the root by generalised least squares: estimate, std_error, low, high by feature."""
        columns = {name: values[-1] for name, values in self._columns(confidence).items()}
        frame = pd.DataFrame(columns, index=pd.Index(self.features, name="feature"))
        return self._titled(frame, f"fixed effects (coefficients of the root) with {confidence:.0%} intervals")

    def effects(self, level: int = 1) -> Table:
        """The predicted random effects of a level, counted from 1, the nodes: its coefficients less those of their
        parents."""
        if isinstance(level, bool) or level not in range(1, len(self.tree.levels) + 1):
            raise ModelError(
                f"level must be one of 1 to {len(self.tree.levels)}, from the nodes upwards, got {level!r}"
            )
        child, parent = self.tree.levels[level - 1]
        # in the units of the columns the intercept varies where a centred feature does
        varying = np.flatnonzero(self.space.in_units(np.eye(len(self.features)))[self.tree.random].any(axis=0))
        effects = self.space.in_units(self.w[child] - self.w[parent])[:, varying]
        frame = by_label(effects, [self.labels[i] for i in child], [self.features[j] for j in varying])
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

    def _columns(self, confidence: float) -> dict[str, Array]:
        """Estimates, standard errors and intervals of all vertices, in the units of the columns."""
        from scipy.special import ndtri

        checks.fraction(confidence, "confidence")
        w, V = self.space.in_units(self.w), self.space.covariance_in_units(self.covariance)
        error = np.sqrt(np.einsum("njj->nj", V))
        half = float(ndtri((1.0 + confidence) / 2.0)) * error
        return {"estimate": w, "std_error": error, "low": w - half, "high": w + half}

    # ---- printed -----------------------------------------------------------------------------------------------------
    def _lines(self) -> list[str | PrintedTable]:
        c = self.components
        how = {"reml": "REML", "ml": "maximum likelihood", "given": "given variances"}[c.method]
        kind = "log-likelihood" if c.method == "ml" else "restricted log-likelihood"
        inner = len(self.labels) - self.n_nodes - 1
        above = f" in {inner} clusters" if inner else ""
        return [
            f"Hierarchical model by {how}: {self.n_nodes} nodes{above}, {kind} {c.log_likelihood:.6f}"
            + ("" if c.converged else " (NOT converged)"),
            PrintedTable(self.variances()),
            "fixed effects (coefficients of the root):",
            PrintedTable(self.fixed()),
            f"of the coefficients as minimisers of (5.2): {self.certificate}",
        ]

    def __repr__(self) -> str:
        values = ", ".join(f"{v:.4g}" for v in (self.components.noise, *self.components.levels))
        return f"<HierarchicalEstimate: {self.n_nodes} nodes, variances {values} ({self.components.method})>"


# ---- the estimation --------------------------------------------------------------------------------------------------
METHODS = ("reml", "ml")


@in_time
def hierarchical(
    loss: NodeData | AbstractQuadraticLoss,
    clusters: Mapping[Hashable, Any] | None = None,
    components: Sequence[float] | None = None,
    *,
    method: str = "reml",
    random: Sequence[str] | None = None,
    seconds: float | None = None,
) -> HierarchicalEstimate:
    """The mixed model (5.1) on a tree: variances of the random effects, coefficients of the root with standard errors,
    predictions of all others.

    Parameters
    ----------
    loss : NodeData, SquaredLoss or MeanLoss; or a Problem, fit of `fit` or Solution that has one of these
        The samples. Their weights are precisions p_r: the noise of a sample has variance sigma^2 / p_r; a ``scale`` of
        the loss that is a number or a mapping multiplies them, "mean" (which says nothing of noise) counts as "sum".
        Penalties of a problem are left out.
    clusters : mapping, optional
        As of `Hierarchy`: a cluster per node, or a list of nodes per cluster, or such lists nested in dicts. By default
        all nodes lie directly under the root. Nodes without data are predicted from their cluster.
    components : sequence of float, optional
        sigma^2, then tau_l^2 per level from the leaves upwards, where they are known. By default they are estimated.
    method : {"reml", "ml"}
        Restricted or full maximum likelihood.
    random : sequence of str, optional
        The features whose coefficients vary (each level has one variance for all of them, as in (5.1)); the others are
        shared by all nodes. By default all, ``random=["intercept"]`` is a random-intercept model.
    seconds : float, optional
        A budget of time. Before its end there is nothing to give: Ctrl-C raises KeyboardInterrupt.

    Raises
    ------
    MethodError
        For losses that are not squared.
    DataError
        For too few samples, collinear features, and variances that the data cannot tell apart.
    BudgetError
        Where the time is up.

    Examples
    --------
    >>> found = gr.inference.hierarchical(data)
    >>> found.table().index.tolist()
    ['a', 'b', 'c', 'd']
    """
    checks.one_of(*METHODS)(method, "method")
    read = Described.of(loss, clusters, random)
    return fitted(read, read.components(components, method))


# ---- what is read ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Described:
    """A model (5.1) on the samples: the loss whose scales are precisions, the tree, and what its likelihood knows."""

    loss: AbstractQuadraticLoss
    clusters: Any
    form: Form
    tree: CoefficientTree
    data: Statistics
    notes: tuple[str, ...]

    @staticmethod
    def of(loss: Any, clusters: Any, random: Sequence[str] | None = None) -> Described:
        loss = loss_given(loss, "mixed models")
        squared = _squared(loss)
        form = build(squared + _tree(clusters, squared, None))
        columns = form.space.select(random, "random")
        levels = tuple((edge.tail, edge.head) for edge in form.edges)
        tree = CoefficientTree(levels, np.arange(form.d) if columns is None else np.sort(columns))
        mean = isinstance(loss, AbstractQuadraticLoss) and loss.scale == "mean"
        notes = ("scale='mean' of the loss is no statement on noise and counts as 'sum'",) if mean else ()
        if form.space.units is not None:
            notes += ("variances of levels, and shrinkage, are of coefficients in standard deviations of the columns",)
        return Described(squared, clusters, form, tree, Statistics.of(form), notes)

    def components(self, values: Any, method: str = "reml") -> Components:
        """The variances that the user gave, or those of largest likelihood."""
        likelihood = Likelihood(self.data, self.tree, method == "reml")
        found = estimate(likelihood) if values is None else as_given(likelihood, _values(values, len(self.tree.levels)))
        units = likelihood.restricted * np.linalg.slogdet(self.form.space.in_units(np.eye(self.form.d)))[1]
        return replace(found, log_likelihood=found.log_likelihood + units)  # of the columns as they are


def fitted(read: Described, found: Components) -> HierarchicalEstimate:
    """The predictions at some variances."""
    w, spread = downward(upward(read.data, read.tree, found.ratios), read.tree)
    return HierarchicalEstimate(
        found,
        w + read.data.centre,
        found.noise * spread,
        tuple(read.form.labels),
        read.form.space,
        read.tree,
        read.form.space.n_observed,
        _model(read, found),
        assumed=(*_assumed(read, found), *read.notes),
    )


def _squared(loss: Any) -> AbstractQuadraticLoss:
    """The loss whose scales are the precisions of the samples."""
    if isinstance(loss, NodeData):
        return (SquaredLoss if loss.X is not None else MeanLoss)(loss, scale="sum")
    if isinstance(loss, AbstractQuadraticLoss):
        return replace(loss, scale="sum") if loss.scale == "mean" else loss
    if isinstance(loss, AbstractLoss):
        raise MethodError(
            f"mixed models take a SquaredLoss or a MeanLoss, got {type(loss).__name__}: their noise is Gaussian; "
            "of other losses solve Problem(loss + Hierarchy(clusters, weights)) with weights of your choice, or by "
            "cross-validation"
        )
    what = f"the class {loss.__name__}" if isinstance(loss, type) else type(loss).__name__
    raise MethodError(
        f"mixed models take NodeData, a SquaredLoss or a MeanLoss, got {what}; of a DataFrame make "
        "NodeData.from_frame(...), and leave penalties out: the tree is the penalty"
    )


def _tree(clusters: Any, squared: AbstractQuadraticLoss, weights: Sequence[float] | None) -> Any:
    """The penalty of the tree; without clusters all nodes are those of one, whose centre is the root."""
    if clusters is None:
        everything: dict[Hashable, Any] = {"all nodes": squared.data.labels}
        return Hierarchy.from_alpha(everything, alpha=0.0, gamma=1.0 if weights is None else weights[0])
    return Hierarchy(clusters, [1.0] * len(tree_levels(clusters)) if weights is None else weights)


def _values(components: Any, levels: int) -> Array:
    """sigma^2 and the variances of the levels, as the user gave them."""
    names = ["the noise", *(f"level {k + 1}" for k in range(levels))]
    several = isinstance(components, (Sequence, np.ndarray)) and not isinstance(components, str)
    if not several or len(components) != len(names):
        raise TermError(f"components must be {len(names)} variances, of {', '.join(names)}, got {components!r}")
    values = checks.numbers(components, "components", error=TermError)
    for k, (name, value) in enumerate(zip(names, values.tolist(), strict=True)):
        (checks.nonnegative if k else checks.positive)(value, f"the variance of {name}", TermError)
    return values


# ---- the same as a convex problem ------------------------------------------------------------------------------------
def _model(read: Described, found: Components) -> Model:
    """(5.2) as a model, on the same vertices in the same order: a Hierarchy where all coefficients vary at all levels,
    else the tree as a graph, with its inner vertices as nodes without data."""
    form, random = read.form, read.tree.random
    if len(random) == form.d and not found.boundary:
        return read.loss + _tree(read.clusters, read.loss, (1.0 / found.ratios).tolist())
    names = form.space.names
    varying = [names[j] for j in random]
    fixed = [name for name in names if name not in varying]
    pairs = [[(form.labels[i], form.labels[j]) for i, j in zip(*level, strict=True)] for level in read.tree.levels]
    model = Model.of(read.loss)
    for edges, ratio in zip(pairs, found.ratios.tolist(), strict=True):
        graph = Graph.from_edges(edges, nodes=form.labels)
        penalty, strength = (SquaredL2(), 1.0 / ratio) if ratio > 0 else (Zero(), 1.0)
        model += strength * TotalVariation(graph, penalty, features=varying)
    if fixed:
        whole = Graph.from_edges([edge for edges in pairs for edge in edges], nodes=form.labels)
        model += Consensus(whole, features=fixed)
    return model


# ---- what is assumed -------------------------------------------------------------------------------------------------
def _assumed(read: Described, found: Components) -> tuple[str, ...]:
    names, random = read.form.space.names, read.tree.random
    varying = ", ".join(names[j] for j in random)
    which = "all coefficients vary" if len(random) == len(names) else f"those of {varying} vary, the others are shared"
    out = [
        "independent Gaussian noise of variance sigma^2 / weight, and Gaussian coefficients around those of the parent "
        f"with one variance per level; {which} (5.1)"
    ]
    if found.method == "given":
        out.append("the variances are the ones given; standard errors and intervals are exact for them")
    else:
        kind = "restricted" if found.method == "reml" else "full"
        out.append(
            f"variances by {kind} maximum likelihood; standard errors and intervals take them for known, which makes "
            "them too short where nodes or clusters are few"
        )
    if found.boundary:
        levels = " and ".join(f"level {k}" for k in found.boundary)
        how = "as given" if found.method == "given" else "the data show no more spread than what lies below explains"
        out.append(f"the variance of {levels} is 0 ({how}): children have the coefficients of their parents there")
    if not found.converged:
        out.append("the likelihood was NOT maximised to its tolerance: the variances are the best found")
    return tuple(out)
