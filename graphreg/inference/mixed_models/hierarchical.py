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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import checks
from ...clock import in_time
from ...errors import MethodError, TermError
from ...form import Form, build
from ...inputs import Graph, NodeData
from ...terms import Array, Consensus, Hierarchy, Model, TotalVariation, tree_levels
from ...terms.losses import AbstractLoss, AbstractQuadraticLoss, MeanLoss, SquaredLoss
from ...terms.penalties import SquaredL2, Zero
from .components import Components, Likelihood, estimate, given
from .mixed import HierarchicalEstimate
from .recursion import CoefficientTree, Statistics, downward, upward

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
    """The mixed model (5.1) on a tree: variances, coefficients of the root, predictions of all others.

    Parameters
    ----------
    loss : NodeData, SquaredLoss or MeanLoss
        The samples. Their weights are precisions p_r: the noise of a sample has variance sigma^2 / p_r; a ``scale`` of
        the loss that is a number or a mapping multiplies them, "mean" (which says nothing of noise) counts as "sum".
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
        squared = _squared(loss)
        form = build(squared + _tree(clusters, squared, None))
        columns = form.space.select(random, "random")
        levels = tuple((edge.tail, edge.head) for edge in form.edges)
        tree = CoefficientTree(levels, np.arange(form.d) if columns is None else np.sort(columns))
        mean = isinstance(loss, AbstractQuadraticLoss) and loss.scale == "mean"
        notes = ("scale='mean' of the loss is no statement on noise and counts as 'sum'",) if mean else ()
        return Described(squared, clusters, form, tree, Statistics.of(form), notes)

    def components(self, values: Any, method: str = "reml") -> Components:
        """The variances that the user gave, or those of largest likelihood."""
        likelihood = Likelihood(self.data, self.tree, method == "reml")
        return estimate(likelihood) if values is None else given(likelihood, _values(values, len(self.tree.levels)))


def fitted(read: Described, found: Components) -> HierarchicalEstimate:
    """The predictions at some variances."""
    w, spread = downward(upward(read.data, read.tree, found.ratios), read.tree)
    return HierarchicalEstimate(
        found,
        w + read.data.centre,
        found.noise * spread,
        tuple(read.form.labels),
        tuple(read.form.space.names),
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
    levels = len(tree_levels(clusters))
    return Hierarchy(clusters, [1.0] * levels if weights is None else weights)


def _values(components: Any, levels: int) -> Array:
    """sigma^2 and the variances of the levels, as the user gave them."""
    names = ["the noise", *(f"level {k + 1}" for k in range(levels))]
    several = isinstance(components, (Sequence, np.ndarray)) and not isinstance(components, str)
    if not several or len(components) != len(names):
        raise TermError(f"components must be {len(names)} variances, of {', '.join(names)}, got {components!r}")
    values = checks.numbers(components, "components", error=TermError)
    kinds = [checks.positive, *[checks.nonnegative] * levels]
    for name, value, kind in zip(names, values.tolist(), kinds, strict=True):
        kind(value, f"the variance of {name}", TermError)
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
        if ratio > 0:
            model += (1.0 / ratio) * TotalVariation(graph, SquaredL2(), features=varying)
        else:
            model += TotalVariation(graph, Zero(), features=varying)
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
        f"with one variance per level; {which} (5.1)",
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
