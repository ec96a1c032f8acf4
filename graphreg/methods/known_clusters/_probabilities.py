"""Probabilities of the methods for known clusters: what is asked for, what theory chooses, and what a problem lacks.

Equations are those of Personalized Federated Learning with Multiple Known Clusters. Arrays have one row per node of
the view; what belongs to a cluster stands at it and at its clients.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.messages import unmatched, warn
from ...checks import checked, inside, per, positive
from ...errors import MethodError
from ...form import Form
from ...network import LocalView, without_tree
from ...oracles import NodeGradients, unbounded, without_gradient
from ...running import AbstractIteration
from ...terms import Array, cluster_name
from ._clusters import SAME, ClusterConstants, cluster_of, learn

PerCluster = float | Mapping[Hashable, float] | None


# ---- what is configured ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Coins:
    """The probabilities p0 and p_j and the fractions tau_j that were asked for; None where theory is to choose."""

    p_global: float | None
    p_cluster: PerCluster
    tau: PerCluster

    def unfit(self, form: Form) -> tuple[str, ...]:
        """Clusters that a mapping names and the problem lacks, or the other way round, as sentences."""
        heads = [e.head[e.tail < form.space.n_observed] for e in form.edges if not e.ground]
        known = {form.labels[j]: None for each in heads for j in each}
        given = ("p_cluster", self.p_cluster), ("tau", self.tau)
        return sum((tuple(unmatched(name, _named(each, known), known, "cluster")) for name, each in given), ())

    @property
    def apart(self) -> bool:
        """True where no cluster averages on its own."""
        p = self.p_cluster
        return p is not None and not any(p.values() if isinstance(p, Mapping) else [p])


@dataclass(frozen=True)
class AbstractKnownClusters(AbstractIteration):
    """A method for known clusters: steps along a part of the gradient, which coins choose. All begin with the same
    options."""

    step_size: float | None = checked(positive, None)
    p_global: float | None = checked(inside("[0, 1)"), None)
    p_cluster: PerCluster = checked(per("cluster", inside("[0, 1)")), None)
    tau: PerCluster = checked(per("cluster", inside("[0, 1]")), None)

    @property
    def coins(self) -> Coins:
        return Coins(self.p_global, self.p_cluster, self.tau)

    def missing(self, form: Form) -> tuple[str, ...]:
        """A tree, gradients with a bounded slope, the clusters that options name."""
        tree, rough = without_tree(form), without_gradient(form)
        steep = [] if rough else unbounded(form)
        bound = [f"{name} has no bound of its curvature, on which the step depends" for name in steep]
        return (*tree, *rough, *bound, *(() if tree else self.coins.unfit(form)))

    def probabilities_of(self, view: LocalView, batch: int | None) -> Probabilities:
        """Before the first round: the constants of the tree, and the probabilities that follow from them."""
        return probabilities_of(view, learn(view, view.gradients.expected_smoothness(batch)), self.coins)

    def step_within(self, view: LocalView, bound: Array, what: str) -> Array:
        """eta (n,): the bound, or the step that was given, with a warning beyond it."""
        if self.step_size is None:
            return bound
        least, step = float(bound[view.own].min()), self.step_size
        if step > least * (1 + SAME):
            said = f"the step_size of {self.name}, {step:.3g}, is beyond the bound {what}, which is {least:.3g}"
            warn(f"{said}: it may diverge")
        return np.full(len(bound), step)


# ---- what theory chooses ---------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Probabilities:
    """p0, p_j and tau_j at the nodes, a bound of the expected smoothness, (n,) arrays; and what they follow from."""

    constants: ClusterConstants
    p0: Array
    p: Array
    tau: Array
    bound: Array


def probabilities_of(view: LocalView, constants: ClusterConstants, coins: Coins) -> Probabilities:
    """The probabilities; by default p0 and p_j of Corollary 3.6, which minimise the bound (3.5), and tau_j of
    Proposition 3.3.

    Where no cluster is to average on its own (p_j = 0), p0 = 2 C / (2 C + L) with C = max(C1, C2) minimises it.
    The bound of the expected smoothness is (3.5), for any tau_j:

        max{ 2 C1 / p0,  C2 max_j kappa_j,  L / (1 - p0) max_j 1 / (1 - p_j) },
        kappa_j = 2 tau_j^2 / p0 + (1 - tau_j)^2 / ((1 - p0) p_j),

    which is 2 / (p0 + 2 (1 - p0) p_j) at Proposition 3.3's tau_j (its proof, appendix A.3).
    """
    C1, C2, L = constants.C1, constants.C2, constants.L
    most = np.maximum(C1, C2)
    if coins.apart:
        p0, p = 2 * most / (2 * most + L), np.zeros(len(L))
    else:
        p0 = 2 * C1 / (C1 + most + L)
        p = np.maximum(C2 - C1, 0.0) / (np.maximum(C2 - C1, 0.0) + L)
    if coins.p_global is not None:
        p0 = np.full(len(L), float(coins.p_global))
    p = _of_clusters(view, coins.p_cluster, None, p)
    tau = _of_clusters(view, coins.tau, None, _tau(p0, p))
    _check(view, constants, p0, p, tau)
    kappa, busiest = np.zeros(len(L)), np.zeros(len(L))
    given = [option for option in (coins.p_cluster, coins.tau) if isinstance(option, Mapping)]
    for label in given[0] if given else [None]:  # all clusters of the configuration: every node knows it
        p_j = _of_clusters(view, coins.p_cluster, label, p)
        tau_j = _of_clusters(view, coins.tau, label, _tau(p0, p_j))
        kappa = np.maximum(kappa, over(2 * tau_j**2, p0) + over((1 - tau_j) ** 2, (1 - p0) * p_j))
        busiest = np.maximum(busiest, p_j)
    bound = np.max([over(2 * C1, p0), C2 * kappa, L / ((1 - p0) * (1 - busiest))], axis=0)  # (3.5)
    return Probabilities(constants, p0, p, tau, bound)


def over(a: Array, b: Array) -> Array:
    """a / b, and 0 where b = 0: of coins that never show."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b))), where=b > 0)


def _tau(p0: Array, p: Array) -> Array:
    """Proposition 3.3."""
    return over(p0, p0 + 2 * (1 - p0) * p)


def _of_clusters(view: LocalView, option: PerCluster, label: Hashable, otherwise: Array) -> Array:
    """An option at every node: of the cluster of that label, or of each node's own where the label is None."""
    if option is None:
        return otherwise
    if not isinstance(option, Mapping):
        return np.full(view.form.n, float(option))
    if label is not None:
        return np.full(view.form.n, float(option[label]))
    names = [view.form.labels[j] for j in cluster_of(view)]
    given = _named(option, names)
    return np.array([float(given.get(name, 0.0)) for name in names])


def _named(option: Any, names: Collection[Hashable]) -> Any:
    """A mapping by clusters with the labels of their latent nodes, which may be others than the clusters' own."""
    if not isinstance(option, Mapping):
        return option
    return {cluster_name(key) if cluster_name(key) in names else key: each for key, each in option.items()}


def _check(view: LocalView, constants: ClusterConstants, p0: Array, p: Array, tau: Array) -> None:
    """Coins that never show cannot carry a part of the gradient: the oracle would be biased."""
    for j in view.tree.clusters[view.own[view.tree.clusters]]:
        name = f"the cluster {view.form.labels[j]!r}"
        if p0[j] == 0 and constants.alpha[j] > 0:
            raise MethodError(f"p_global is 0, and {name} is tied to the root (alpha > 0): give a p_global > 0")
        if p0[j] == 0 and (p[j] == 0 or tau[j] > 0):
            raise MethodError(
                f"p_global is 0 for {name}, so that p_cluster must be > 0 and tau 0 there; got {p[j]:.3g} and "
                f"{tau[j]:.3g}"
            )
        if p[j] == 0 and tau[j] != 1:
            raise MethodError(
                f"p_cluster is 0 for {name}, which then averages with the network alone: tau must be 1 there, got "
                f"{tau[j]:.3g}; leave tau out, or give a p_cluster > 0"
            )


def without_convexity(form: Form) -> tuple[str, ...]:
    """Clients whose f_i is not strongly convex (Assumption 2.1), as a sentence."""
    gradients = NodeGradients(form)
    mu, L = gradients.convexity[: form.space.n_observed], gradients.smoothness[: form.space.n_observed]
    flat = np.flatnonzero(mu <= SAME * L)
    if not len(flat):
        return ()
    more = f" (and so at {len(flat) - 1} more)" if len(flat) > 1 else ""
    remedy = "add a small ridge on every coordinate, for instance 1e-3 * NodePenalty(SquaredL2(), features=[...])"
    return (f"the loss at {form.labels[flat[0]]!r} is not strongly convex{more}; {remedy}",)
