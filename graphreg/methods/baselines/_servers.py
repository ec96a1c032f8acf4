"""Clients around a server: the forms that baselines minimise in place of the user's, and how they speak with servers.

A star ties every node to a latent server, one for all or one per cluster; the edges between nodes and the latent nodes
of the user's form are left out, ground edges stay.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...form import EdgeBlock, Form, all_distinct, without_edges
from ...network import LocalView, Presence, TakesAvailability
from ...oracles import NodeGradients
from ...terms import IN_GRAPH, TO_SERVER, Array, Differences, Strength
from ...terms.penalties import AbstractPenalty, AbstractSmoothPenalty, Zero

SERVER = "server"  # the label of the node, and the name of the edges to it


# ---- other forms -----------------------------------------------------------------------------------------------------
def server_form(
    form: Form,
    penalty: AbstractPenalty = Zero(),  # noqa: B008 - it has no state
    weight: Array | None = None,
    member: Array | None = None,
    clusters: Sequence[Hashable] = (),
) -> Form:
    """The form whose edges tie each of the user's nodes to a latent server.

    ``weight`` (n_observed,) is c_e, 1 by default; ``member`` (n_observed,) the number of each node's cluster among
    ``clusters``, which have a server each; by default there is one server for all.
    """
    n = form.space.n_observed
    labels = [(SERVER, cluster) for cluster in clusters] if member is not None else [SERVER]
    latent = tuple(all_distinct(labels, set(form.space.index)))
    place = np.zeros(n, dtype=np.intp) if member is None else member
    name, c = f"{SERVER} ({penalty.called()})", np.ones(n) if weight is None else weight
    bare = without_edges(form, latent)
    edges = EdgeBlock(penalty, Strength(), Differences(np.arange(n), n + place, n=bare.n), c, None, TO_SERVER, name)
    return replace(bare, edges=(*bare.edges, edges))


class OneServer:
    """A baseline whose nodes have one server, and nothing is penalised between them and it."""

    def target(self, form: Form) -> Form:
        return server_form(form)


def consensus_within(form: Form, member: Array) -> Form:
    """A star with its clusters tied to a first member instead of to the server, which stays without edges: the
    consensus within clusters, on the same nodes."""
    nodes = np.arange(form.space.n_observed)
    _, first, place = np.unique(member[nodes], return_index=True, return_inverse=True)
    others = nodes[first[place] != nodes]
    ground = tuple(edge for edge in form.edges if edge.ground)
    if not len(others):
        return replace(form, edges=ground)
    ends, name = Differences(first[place][others], others, n=form.n), "Consensus within the clusters found"
    block = EdgeBlock(Zero(), Strength(), ends, np.ones(ends.count), None, IN_GRAPH, name)
    return replace(form, edges=(*ground, block))


# ---- points of one form as points of another -------------------------------------------------------------------------
def with_servers(target: Form, observed: Array) -> Array:
    """A point of the target from parameters of the user's nodes: servers stand at the means of theirs."""
    w = np.zeros(target.shape)
    w[: len(observed)] = observed
    for edge in target.edges:
        if edge.role == TO_SERVER:
            count = np.bincount(edge.head, minlength=target.n)[:, None]
            total = np.zeros(target.shape)
            np.add.at(total, edge.head, w[edge.tail])
            w = np.where(count > 0, total / np.maximum(count, 1), w)
    return w


def balanced_flows(form: Form, gradients: NodeGradients, w: Array) -> tuple[Array, ...]:
    """The flows by which w balances at every node but those in the middle of Zero stars: of smooth ground edges their
    gradients, of a Zero edge what is left at its outer end, ``u = -grad h_i`` where that is the tail.

    Where each middle carries the optimum of its star the balance holds there too: -sum_i u_i = sum_i grad h_i = 0.
    """
    g = gradients.full(w)

    def flows(edge: EdgeBlock) -> Array:
        if isinstance(edge.penalty, AbstractSmoothPenalty):
            return edge.gradients(w)
        return -g[edge.tail] if edge.role == TO_SERVER else g[edge.head]

    return tuple(map(flows, form.edges))


# ---- who is there ----------------------------------------------------------------------------------------------------
def clients_there(
    method: TakesAvailability, view: LocalView, t: int, presence: Presence | None
) -> tuple[Array, Array, Presence | None]:
    """The nodes that are there in round t, (n,) bool; their weights 1/p_i in a mean, (n, 1), 0 for the others; and what
    is known after the round."""
    if method.away is None or presence is None:
        return np.full(view.form.n, True), np.ones((view.form.n, 1)), None
    present, _, presence = method.away.attend(view, t, presence)
    return present, np.where(present, method.away.inverse(presence, t), 0.0)[:, None], presence


# ---- on a local view -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ServerTopology:
    """The servers to which the nodes of a local view are tied, and the arcs between them.

    Attributes
    ----------
    client, server : (c,) arrays
        Nodes of the view.
    weight : (n,) array
        c_e of the edge of each client, 0 at the servers.
    down, up : masks over the arcs of the view
        From the servers, and to them.
    """

    client: Array
    server: Array
    weight: Array
    down: Array
    up: Array

    @staticmethod
    def of(view: LocalView) -> ServerTopology:
        edges = next(edge for edge in view.form.edges if edge.role == TO_SERVER)
        weight, latent = np.zeros(view.form.n), view.ids >= view.n_observed
        weight[edges.tail] = edges.weight
        return ServerTopology(edges.tail, edges.head, weight, latent[view.arcs.source], latent[view.arcs.target])

    def sums(self, values: Array, chosen: Array | None = None) -> Array:
        """The sums of the clients' rows (n, k) at their servers, (n, k); of the clients of a mask (n,) alone."""
        c = np.full(len(self.client), True) if chosen is None else chosen[self.client]
        out = np.zeros(values.shape)
        np.add.at(out, self.server[c], values[self.client[c]])
        return out

    def largest(self, values: Array) -> Array:
        """The largest entry (n,) of the clients, at their servers; 0 elsewhere."""
        out = np.zeros(values.shape)
        np.maximum.at(out, self.server, values[self.client])
        return out

    def means(self, values: Array, weight: Array, otherwise: Array, chosen: Array | None = None) -> Array:
        """The means of the clients' rows (n, k) by weights (n, 1), at their servers; ``otherwise`` without weight."""
        total, mass = self.sums(weight * values, chosen), self.sums(weight, chosen)
        return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), otherwise)

    def broadcast(self, view: LocalView, values: Array, *, parameters: bool = True, purpose: str = "method") -> Array:
        """The rows of the servers, sent to their clients."""
        received = view.engine.exchange(values, self.down, parameters=parameters, purpose=purpose).copy()
        received[self.client] = received[self.server]
        return received
