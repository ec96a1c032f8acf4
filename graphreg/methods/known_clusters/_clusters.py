"""The common part of the methods for known clusters: constants and averages that travel over the tree, and coins.

Equations are those of Personalized Federated Learning with Multiple Known Clusters. Arrays have one row per node of
the view; what belongs to a cluster stands at it and at its clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import betaincinv

from ...network import LocalView
from ...terms import Array

SAME = 1e-12  # weights that differ by less than this share of themselves are equal


@dataclass(frozen=True)
class ClusterConstants:
    """The constants of a node's cluster and component, (n,) arrays: each component of the forest is a problem of its
    own.

    Attributes
    ----------
    alpha : alpha_j
    share : alpha_j Gamma_j at the clusters (their weights in thetabar)
    even : whether gamma_i is the same throughout the cluster
    level : whether alpha_j gamma_i is the same throughout the component, and all its clusters are even
    C1, C2 : the largest alpha_j gamma_i and (1 - alpha_j) gamma_i of the component (Corollary 3.6)
    L, mu, gamma : the largest smoothness, least convexity, largest gamma_i of the component's clients
    voters : the number of clusters of the component
    """

    alpha: Array
    share: Array
    even: Array
    level: Array
    C1: Array
    C2: Array
    L: Array
    mu: Array
    gamma: Array
    voters: Array


def learn(view: LocalView, smoothness: Array) -> ClusterConstants:
    """Maxima go up the tree and down again, once: one message each way across every edge."""
    tree, send = view.tree, partial(_received, view, purpose="adaptation")
    own = np.stack([smoothness, -view.gradients.convexity, tree.gamma, -tree.gamma], axis=1)
    own = send(own, tree.rise)
    L, mu, most, least = tree.largest(own, of_clients=True).T  # the last two negated
    alpha, uneven = tree.alpha, most + least > SAME * most
    up = np.stack([alpha * most, (1.0 - alpha) * most, L, mu, most, alpha * least, uneven, alpha * tree.total], axis=1)
    up = send(up, tree.climb)
    share = up[:, -1].copy()
    down = tree.largest(up, of_clients=False)
    down[:, -1] = 1.0  # voters
    down[tree.roots, -1] = np.bincount(tree.root[tree.clusters_with_root], minlength=len(share))[tree.roots]
    down = tree.from_root(send(down, tree.descend))
    down = np.concatenate([down, alpha[:, None], uneven[:, None]], axis=1)
    down = tree.from_cluster(send(down, tree.fall))
    C1, C2, L, mu, gamma, least, some, voters, alpha, uneven = down.T.copy()
    level = (some == 0) & (C1 + least <= SAME * C1)
    L = np.where(L > 0, L, C1 + C2)  # a component without losses stays where it is, whatever its coins
    return ClusterConstants(alpha, share, uneven == 0, level, C1, C2, L, -mu, gamma, voters)


def _received(view: LocalView, values: Array, along: Array, purpose: str = "method") -> Array:
    """The values (n, k), with the rows of those that sent theirs along the arcs of a mask."""
    received = view.engine.exchange(values, along=along, parameters=False, purpose=purpose)
    out, senders = values.copy(), view.arcs.source[along]
    out[senders] = received[senders]
    return out


def cluster_of(view: LocalView) -> Array:
    """The cluster of each client, and every other node itself."""
    cluster = view.tree.cluster
    return np.where(cluster >= 0, cluster, np.arange(len(cluster)))


# ---- coins -----------------------------------------------------------------------------------------------------------
# xi_0 and xi_j are shared randomness: streams keyed by the seed, and by the number of the cluster's node, from which
# all who need a coin draw it for themselves, without messages.
NETWORK, REFRESH = 0, 1  # the numbers of the two coins of the network


def network_coin(view: LocalView, p: Array, k: int, number: int = NETWORK) -> Array:
    """True where the network's coin shows 1 in round k, (n,) bool."""
    return view.streams("network coin", number).uniform(k, 1)[0, 0] < p


def cluster_coin(view: LocalView, p: Array, k: int) -> Array:
    """True where the coin of each node's cluster shows 1 in round k, (n,) bool."""
    return view.streams("cluster coin").uniform(k, 1)[cluster_of(view), 0] < p


def majority_coin(view: LocalView, p0: Array, voters: Array, k: int) -> Array:
    """The decentralised coin of section 3.3: every cluster flips one of its own, and the majority decides.

    Of v votes more than half must be 1, so each is 1 with the q for which that has the probability p0: the
    regularised incomplete beta function I_q(m, v - m + 1) = p0, m = floor(v/2) + 1. Votes go up to the root, and the
    outcome down to all clients, one number each.
    """
    tree, send = view.tree, partial(_received, view)
    m = np.floor(voters / 2) + 1
    q = betaincinv(m, voters - m + 1, p0)
    votes = (view.streams("network coin").uniform(k, 1)[:, 0] < q).astype(float)[:, None]
    votes = send(votes, tree.climb)
    count = np.bincount(tree.root[tree.clusters_with_root], votes[tree.clusters_with_root, 0], len(q))
    votes[tree.roots, 0] = (count >= m)[tree.roots]
    votes = tree.from_root(send(votes, tree.descend))
    return tree.from_cluster(send(votes, tree.fall))[:, 0] > 0.5


# ---- averages --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Averages:
    """thetabar_j and thetabar as each node knows them, (n, d); old where they were not asked for."""

    center: Array
    top: Array

    def renewed(
        self, view: LocalView, share: Array, values: Array, up: Array, within: Array, between: Array
    ) -> Averages:
        """Those of the clients' values now, by masks (n,) over nodes: where clusters gather their clients' values
        (``up``); where they send back the mean of the cluster (``within``), or that and the network's (``between``).

        Messages hold d numbers, from a cluster to its clients after a round between clusters 2 d.
        """
        tree, send, source = view.tree, view.engine.exchange, view.arcs.source
        center, top = self.center.copy(), self.top.copy()
        received = send(values, along=tree.rise & up[source])
        j = tree.clusters[up[tree.clusters]]
        center[j] = tree.cluster_means(received)[j]
        received = send(center, along=tree.climb & between[source])
        r = tree.roots[between[tree.roots]]
        top[r] = tree.root_means(received, share)[r]
        received = send(top, along=tree.descend & between[source])
        j = tree.clusters_with_root[between[tree.clusters_with_root]]
        top[j] = received[tree.root[j]]
        received = send(np.concatenate([center, top], axis=1), along=tree.fall & between[source], parameters=False)
        i = tree.clients[between[tree.clients]]
        center[i], top[i] = np.split(received[tree.cluster[i]], 2, axis=1)
        received = send(center, along=tree.fall & within[source])
        i = tree.clients[within[tree.clients]]
        center[i] = received[tree.cluster[i]]
        return Averages(center, top)


def with_latents(view: LocalView, w: Array, averages: Averages) -> Array:
    """The clients' w; at clusters and the root the averages as last known there."""
    out = w.copy()
    out[view.tree.clusters] = averages.center[view.tree.clusters]
    out[view.tree.roots] = averages.top[view.tree.roots]
    return out
