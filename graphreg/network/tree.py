"""A hierarchy of two levels with a squared penalty: clients - clusters - root, the latter two latent.

With c_e = gamma_i on the edge of client i and lam_j on that of cluster j the penalty is (2.3) of Personalized FL with
multiple known clusters; with the latent nodes minimised out it is (2.1),

    sum_j sum_i in j  (1 - alpha_j) gamma_i/2 ||theta_i - thetabar_j||^2 + alpha_j gamma_i/2 ||theta_i - thetabar||^2,
    alpha_j = lam_j / (lam_j + Gamma_j),     Gamma_j = sum over the cluster of gamma_i,
    thetabar_j = sum gamma_i theta_i / Gamma_j,     thetabar = sum_j alpha_j Gamma_j thetabar_j / sum_j alpha_j Gamma_j.

(The first expression for thetabar in (2.2) is a misprint: the two agree only where all Gamma_j are equal.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ..form import EdgeBlock, Form, halves_squares
from ..terms import Array
from ..terms.penalties import is_equality
from .arcs import Arcs


@dataclass(frozen=True)
class ClusterTree:
    """The tree as the nodes of a view see it: a node knows its own edges, so of a part of the graph Gamma, alpha and
    means hold at the clusters that are the view's own.

    Attributes
    ----------
    cluster : (n,) array
        The cluster of each client, -1 at other nodes.
    root : (n,) array
        The root above each cluster, -1 at other nodes and where alpha_j = 0 leaves a cluster to itself.
    gamma : (n,) array
        gamma_i at the clients, at the clusters the largest of theirs; 0 at the root.
    lam : (n,) array
        lam_j at the clusters, inf where alpha_j = 1 ties one to the root; 0 elsewhere.
    rise, climb, descend, fall : (2p,) bool arrays
        The arcs from clients to clusters, from clusters to the root, and back.
    """

    cluster: Array
    root: Array
    gamma: Array
    lam: Array
    rise: Array
    climb: Array
    descend: Array
    fall: Array

    @cached_property
    def clients(self) -> Array:
        return np.flatnonzero(self.cluster >= 0)

    @cached_property
    def clusters(self) -> Array:
        """The latent nodes that have clients or a root, in order."""
        return np.union1d(self.cluster[self.clients], np.flatnonzero(self.root >= 0))

    @cached_property
    def clusters_with_root(self) -> Array:
        """The clusters that have a root."""
        return np.flatnonzero(self.root >= 0)

    @cached_property
    def roots(self) -> Array:
        return np.unique(self.root[self.clusters_with_root])

    @cached_property
    def total(self) -> Array:
        """Gamma_j at the clusters, (n,)."""
        return np.bincount(self.cluster[self.clients], self.gamma[self.clients], len(self.cluster))

    @cached_property
    def alpha(self) -> Array:
        """alpha_j at the clusters, (n,)."""
        tied = np.isinf(self.lam)
        lam = np.where(tied, 0.0, self.lam)
        share = np.divide(lam, lam + self.total, out=np.zeros_like(lam), where=lam > 0)
        return np.where(tied, 1.0, share)

    @cached_property
    def _mean(self) -> sp.csr_array:
        i, n = self.clients, len(self.cluster)
        j = self.cluster[i]
        return sp.csr_array((self.gamma[i] / self.total[j], (j, i)), shape=(n, n))

    def cluster_means(self, values: Array) -> Array:
        """thetabar_j of the clients' values (n, d) at the rows of the clusters."""
        return self._mean @ values

    def root_means(self, values: Array, share: Array) -> Array:
        """The means of the clusters' values (n, d) at the rows of their roots, by the weights ``share`` (n,)."""
        out, total = np.zeros_like(values), np.zeros(len(values))
        j = self.clusters_with_root
        np.add.at(out, self.root[j], share[j, None] * values[j])
        np.add.at(total, self.root[j], share[j])
        return out / np.where(total > 0, total, 1.0)[:, None]

    def largest(self, values: Array, *, of_clients: bool) -> Array:
        """Values (n, k) with the rows of the clusters (of the roots) the largest of their clients' (clusters')."""
        child, parent = (self.clients, self.cluster) if of_clients else (self.clusters_with_root, self.root)
        out = values.copy()
        out[parent[child]] = -np.inf
        np.maximum.at(out, parent[child], values[child])
        return out

    def from_root(self, values: Array) -> Array:
        """Values (n, ...) with the rows of the clusters those of their roots."""
        out = values.copy()
        out[self.clusters_with_root] = values[self.root[self.clusters_with_root]]
        return out

    def from_cluster(self, values: Array) -> Array:
        """Values (n, ...) with the rows of the clients those of their clusters."""
        out = values.copy()
        out[self.clients] = values[self.cluster[self.clients]]
        return out


def tree_of(form: Form, arcs: Arcs) -> ClusterTree:
    """The tree of a form, or of a part of one, that `without_tree` finds nothing missing in."""
    cluster, root = np.full((2, form.n), -1)
    gamma, lam = np.zeros((2, form.n))
    for edge in _between(form):
        if edge.role.of_leaves:
            cluster[edge.tail], gamma[edge.tail] = edge.head, edge.weight
        else:
            tied = is_equality(edge.penalty, form.width(edge))
            root[edge.tail], lam[edge.tail] = edge.head, np.inf if tied else edge.weight
    clients = np.flatnonzero(cluster >= 0)
    np.maximum.at(gamma, cluster[clients], gamma[clients])
    s, t = arcs.source, arcs.target
    return ClusterTree(cluster, root, gamma, lam, cluster[s] == t, root[s] == t, root[t] == s, cluster[t] == s)


def without_tree(form: Form) -> tuple[str, ...]:
    """The properties that a form lacks of a hierarchy of two levels with squared penalties, as sentences."""
    between = _between(form)
    if not between:
        return ("there is no Hierarchy: the method is for known clusters, clients - clusters - root",)
    if out := [sentence for edge in between for sentence in _unfit(form, edge)]:
        return tuple(out)
    if any(edge.role.levels > 2 for edge in between):
        return ("the Hierarchy has more than two levels, and the method is for clients - clusters - root",)
    count = np.bincount(np.concatenate([e.tail for e in between]), minlength=form.n)[: form.space.n_observed]
    out += [f"the node {form.labels[i]!r} is in no cluster" for i in np.flatnonzero(count == 0)[:3]]
    out += [f"the node {form.labels[i]!r} is in several hierarchies" for i in np.flatnonzero(count > 1)[:3]]
    return tuple(out)


def _unfit(form: Form, edge: EdgeBlock) -> list[str]:
    if edge.role.kind != "hierarchy":
        return [f"{edge.name} links nodes to one another, and the method is for a Hierarchy alone"]
    tied = is_equality(edge.penalty, form.width(edge)) and not edge.role.of_leaves  # alpha = 1
    if halves_squares(form, edge) or tied:
        return []
    return [f"{edge.name} has the penalty {edge.penalty.called()}, and the method is for SquaredL2"]


def _between(form: Form) -> list[EdgeBlock]:
    return [edge for edge in form.edges if not edge.ground and len(edge.tail)]
