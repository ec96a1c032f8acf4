"""A local view: the part of a problem on which a method iterates, and the two verbs by which it reaches beyond it.

A step goes beyond its own nodes only through ``exchange`` (the values of neighbours across the edges) and ``reduce``
(sums over all nodes). In one process the view is the whole graph and ``exchange`` is the identity.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
import scipy.sparse as sp

from ..form import Form
from ..oracles import AbstractNodeProx, Memory, NewtonSystem, NodeGradients, node_proxes
from ..terms import Array, EdgeBlock, SampleBlock, adjoint_of, alike, shared, strengths
from ..terms.losses import AbstractSmoothLoss
from .arcs import Arcs, arcs_of, ends_of
from .engine import AbstractPartEngine, Engine, InProcess
from .fast import AbstractRounds, Kernels, Memories, Orders, Rest, kernels
from .streams import Streams
from .tree import ClusterTree, tree_of


@dataclass(frozen=True)
class WholeGraph:
    """The knowledge that a local view of a part of the graph has of the whole: sizes, and which nodes are its own.

    ``entries`` is how many numbers flows have; 0 where nobody asks. ``curvature`` is what losses of rows add to that of
    each node of the view, of the losses beside those of nodes; None where the whole graph has none."""

    n: int
    n_observed: int
    ids: Array
    own: Array
    entries: int = 0
    curvature: Array | None = None


def most(each: int | Mapping[Hashable, int]) -> int:
    """The largest of what is one number for all nodes, or one by label."""
    return max(each.values(), default=1) if isinstance(each, Mapping) else each


T = TypeVar("T")
Rows = Array | slice
EVERY = slice(None)
LONELY = 1e-6  # the degree by which a node without edges steps: a proximal-point iteration with a long step


class of_losses(shared[T]):  # noqa: N801  (a decorator)
    """Findings that hold as long as the strengths of the losses do."""

    def key(self, instance: LocalView) -> tuple[float, ...]:
        return strengths(instance.form.samples)


@dataclass(frozen=True)
class Scales:
    """Means over the whole graph: degree of the nodes with edges, mean curvature of those with a loss (0 where there
    are none), and whether some loss has kinks."""

    degree: float
    curvature: float
    kinks: bool


@dataclass(frozen=True)
class LocalView:
    """The nodes, their incident edges, and the prox of their losses.

    A local view of isolated actors is a part of the graph: ``form`` then holds the view's own nodes with their samples,
    all edges that touch these, and the neighbours at their other ends, of which nothing is known but what they send:
    rows of neighbours mean nothing before an exchange. ``ids`` are the numbers of the nodes in the whole graph.
    """

    form: Form
    engine: Engine
    seed: int = 0
    whole_graph: WholeGraph | None = None  # None: the view is the whole graph

    def at_strengths(self, form: Form, engine: Engine) -> LocalView:
        """The view of the same problem at other strengths."""
        return alike(self, form=form, engine=engine)

    @property
    def n_nodes(self) -> int:
        """The number of nodes of the whole graph."""
        return self.form.n if self.whole_graph is None else self.whole_graph.n

    @property
    def n_observed(self) -> int:
        """The number of nodes of the whole graph that are not latent."""
        return self.form.space.n_observed if self.whole_graph is None else self.whole_graph.n_observed

    @property
    def entries(self) -> int:
        """The number of entries of the flows of the whole graph."""
        return self.form.differences if self.whole_graph is None else self.whole_graph.entries

    @shared
    def ids(self) -> Array:
        """The number of each node of the view in the whole graph, (n,)."""
        return np.arange(self.form.n) if self.whole_graph is None else self.whole_graph.ids

    @shared
    def own(self) -> Array:
        """The nodes that are the view's own and not only neighbours of these, (n,) bool."""
        return np.full(self.form.n, True) if self.whole_graph is None else self.whole_graph.own

    @shared
    def arcs(self) -> Arcs:
        """Across each pair of neighbours one each way."""
        return arcs_of(self.form)

    @shared
    def toward(self) -> tuple[Array, ...]:
        """Per edge block the arcs from the tails to the heads, and below them those back, (2m,); none to the ground."""
        return ends_of(self.form, self.arcs)

    @shared
    def tree(self) -> ClusterTree:
        """Clients, clusters and root, where the form is a hierarchy of two levels (see `without_tree`)."""
        return tree_of(self.form, self.arcs)

    @shared
    def newton(self) -> NewtonSystem:
        """The pattern of the Hessian of the whole problem, and the order in which it is factorised."""
        return NewtonSystem(self.form)

    @cached_property
    def rows(self) -> tuple[EdgeBlock | SampleBlock, ...]:
        """The blocks that splitting methods reach by their rows: edges, and losses beside those of nodes. Their dual
        variables are flows and prices."""
        return (*self.form.edges, *self.form.beside)

    @cached_property
    def gradients(self) -> NodeGradients:
        """Gradients of the nodes' losses."""
        return NodeGradients(self.form)

    def gradient(self, w: Array, batch: int | Mapping[Hashable, int] | None, t: int) -> Array:
        """grad h_i(w_i), (n, d): of all samples, or an estimate from a batch drawn with replacement in step t."""
        if batch is None:
            return self.gradients.full(w)
        return self.gradients.at_samples(w, self.places(batch, t))

    def places(self, batch: int | Mapping[Hashable, int], t: int) -> Array:
        """The samples of each node drawn with replacement in step t, (n, b); -1 beyond the batch of a node, where it is
        given by label."""
        uniform = self.streams("samples").uniform(t, most(batch))
        if isinstance(batch, Mapping):
            uniform = np.where(np.arange(most(batch)) < self.each(batch)[:, None], uniform, np.nan)
        return self.gradients.places(uniform)

    def each(self, counts: int | Mapping[Hashable, int]) -> Array:
        """What is one number for all nodes, or one by label, at every node, (n,); 1 at latent nodes."""
        labels = self.form.labels
        return np.array([counts.get(x, 1) for x in labels] if isinstance(counts, Mapping) else [counts] * len(labels))

    @of_losses
    def losses(self) -> NodeGradients:
        """Gradients of the nodes' losses alone, without edges to the ground."""
        return NodeGradients(replace(self.form, samples=self.form.at_nodes, edges=()))

    @cached_property
    def _streams(self) -> dict[tuple[str, int | None], Streams]:
        return {}

    def streams(self, kind: str, shared: int | None = None) -> Streams:
        """Random numbers: one stream per node of the view, its own whatever the engine; see `Streams`. The ``kind`` is
        a name for what is drawn, "noise" say: another name, other numbers. With a number ``shared``, the one stream of
        that number, which is the same at every node."""
        key = kind, shared
        if key not in self._streams:
            self._streams[key] = Streams(self.seed, kind, self.ids if shared is None else [shared])
        return self._streams[key]

    def begin(self, start: tuple[Array, tuple[Array, ...] | None] | None) -> tuple[Array, tuple[Array, ...]]:
        """Parameters (n, d) and the dual variables of `rows` to begin with: flows that are given, else 0, and prices at
        the parameters."""
        w, flows = (np.zeros(self.form.shape), None) if start is None else start
        flows = self.form.nothing().flows if flows is None else flows
        if not (self.form.beside if self.whole_graph is None else self.whole_graph.curvature is not None):
            return w, flows
        near, first = w if start is None else self.engine.exchange(w), len(flows)
        beside = zip(self.kept[first:], self.weights[first:], strict=True)
        prices = (_among(cast(SampleBlock, block).prices(near), rows, len(c)) for (block, rows), c in beside)
        u = (*flows, *prices)
        return w, self.engine.send_back(u) if self.form.unlike_edges else u

    def scales(self) -> Scales:
        """Means over the whole graph: one reduction."""
        each = np.zeros((self.form.n, 5))
        each[:, 0], each[:, 1] = self.degree, self.degree > 0
        each[:, 2], each[:, 3] = self.curvature, self.curvature > 0
        for block in self.form.samples:
            each[block.map.owner, 4] = not isinstance(block.loss, AbstractSmoothLoss)
        degree, tied, curvature, curved, kinks = self.engine.reduce(each)
        return Scales(float(degree / max(tied, 1.0)), float(curvature / max(curved, 1.0)), bool(kinks > 0))

    @of_losses
    def proxes(self) -> tuple[AbstractNodeProx, ...]:
        return node_proxes(self.form)

    @shared
    def degree(self) -> Array:
        """Edges at each node, those to the ground included, (n,)."""
        return self.form.degree()

    @shared
    def ends(self) -> tuple[sp.csr_array, ...]:
        """Per edge block the matrix (n, 2m) that adds up at each node what belongs to the edges whose tail it is (the
        first m) and whose head it is (the last m); (n, m) where there are tails only, of edges to the ground."""
        nodes = (np.concatenate(edge.ends) for edge in self.form.edges)
        entries = ((np.ones(len(each)), (each, np.arange(len(each)))) for each in nodes)
        return tuple(sp.csr_array(each, shape=(self.form.n, len(each[0]))) for each in entries)

    @cached_property
    def weights(self) -> tuple[Array, ...]:
        """c_e per block of `rows`."""
        return tuple([block.scale_of(slice(None)) for block in self.rows])

    @cached_property
    def kept(self) -> tuple[tuple[EdgeBlock | SampleBlock, Rows], ...]:
        """Per block of `rows` those whose flows the view's own nodes keep: all, but of a part of rows that are no edges
        those whose weights it knows."""
        out = list[tuple[EdgeBlock | SampleBlock, Rows]]()
        for block, c in zip(self.rows, self.weights, strict=True):
            rows = None if self.whole_graph is None or block.map.edges is not None else np.flatnonzero(~np.isnan(c))
            out.append((block, EVERY) if rows is None else (block.part(rows), rows))
        return tuple(out)

    @of_losses
    def whole(self) -> bool:
        """True where one prox takes all nodes, in their order."""
        return len(self.proxes) == 1 and np.array_equal(self.proxes[0].nodes, np.arange(self.form.n))

    @of_losses
    def curvature(self) -> Array:
        """The mean curvature of each node's loss, and of what it shares of others, 0 where it has none, (n,)."""
        out = np.zeros(self.form.n)
        for prox in self.proxes:
            out[prox.nodes] = prox.curvature()
        form, whole = self.form, self.whole_graph
        beside = form.curvature_of(form.beside) if whole is None or whole.curvature is None else whole.curvature
        return np.where(self.own, out + beside, 0.0)

    def steps(self, s: float) -> Array:
        """tau_i = s / deg_i, (n,); long at a node without edges."""
        return self._at_balance(s)[1]

    def _at_balance(self, s: float) -> tuple[float, Array, list[Array]]:
        """Of the balance that was asked for last: s, tau, and 1/(length s) per block of what is `kept`."""
        known = vars(self).get("balance")
        if known is None or known[0] != s:
            sigma = [np.full(block.count, 1.0 / block.lengths / s) for block, _ in self.kept]
            known = vars(self)["balance"] = s, s / np.maximum(self.degree, LONELY), sigma
        return known

    def adjoint(self, flows: Iterable[Array]) -> Array:
        """K'u, (n, d); at a node all of whose edges the view has."""
        return adjoint_of(self.rows, flows, self.form.shape)

    def dual_prox(self, u: tuple[Array, ...], w: Array, s: float, given: float | None = None) -> tuple[Array, ...]:
        """The prox of sigma g* at u + sigma (K w - center), sigma = 1/(length s), of which that of an edge is 2, to the
        ground 1; or the sigma that is given."""
        out: list[Array] = []
        steps = self._at_balance(s)[2] if given is None else [np.full(block.count, given) for block, _ in self.kept]
        for (block, kept), each, c, sigma in zip(self.kept, u, self.weights, steps, strict=True):
            v = block.difference(w)  # in place from here on: these are the largest arrays of a round
            v *= block.column(sigma)
            v += each[kept]
            out.append(_among(block.dual_prox(v, sigma, c[kept]), kept, len(c)))
        return self.engine.send_back(tuple(out)) if self.form.unlike_edges else tuple(out)

    @shared
    def _orders(self) -> Orders:
        return cast(Kernels, kernels()).orders_of(self.form, self.whole_graph is None)

    @shared
    def _near_orders(self) -> Orders:
        return cast(Kernels, kernels()).near_orders(self.form, self._orders)

    @property
    def rounds(self) -> AbstractRounds | None:
        """Compiled rounds with steps s/deg and 1/(2 s); None where nothing is compiled, on one part at least, and where
        exchanges or proxes are not those of this library."""
        known = vars(self)  # no cached_property, whose lock all views share before Python 3.12: parts meet here
        if "rounds" not in known:
            known["rounds"] = self._rounds()
        return known["rounds"]

    def _rounds(self) -> AbstractRounds | None:
        engine = self.engine
        if type(self) is not LocalView:
            return None
        fast = None if self.form.unlike_edges else kernels()
        if self.whole_graph is None:
            return None if fast is None or type(engine) is not InProcess else self._rounds_by(fast, self._orders)
        if not isinstance(engine, AbstractPartEngine) or not engine.everywhere(fast is not None) or fast is None:
            return None
        return self._rounds_by(fast, self._orders, Rest(self.entries, engine.fill))

    @cached_property
    def near_rounds(self) -> AbstractRounds | None:
        """Compiled rounds for many rounds at once, which are faster where neighbours are near."""
        fast = kernels()
        if self.rounds is None or fast is None or self.whole_graph is not None:
            return self.rounds
        if any(prox.factors() is None for prox in self.proxes) or self._near_orders is self._orders:
            return self.rounds
        return self._rounds_by(fast, self._near_orders)

    def _rounds_by(self, fast: Kernels, orders: Orders, rest: Rest | None = None) -> AbstractRounds:
        return fast.rounds_of(self.form, self.proxes, 1.0 / self.steps(1.0), orders, rest)

    def memory(self) -> Memories:
        return (None,) * len(self.proxes)

    def prox(self, v: Array, tau: Array, warm: Array, memory: Memories) -> tuple[Array, Memories]:
        """argmin f_i(w) + 1/(2 tau_i) ||w - v_i||^2 at every node; v_i where a node has no data."""
        memory = memory or self.memory()
        if self.whole:
            w, new = self.proxes[0](v, tau, warm, memory[0])
            return w, (new,)
        w = v.copy()
        kept: list[Memory] = []
        for prox, each in zip(self.proxes, memory, strict=True):
            i = prox.nodes
            w[i], new = prox(v[i], tau[i], warm[i], each)
            kept.append(new)
        return w, tuple(kept)

    def prices(self, w: Array, memory: Memories, beside: Sequence[Array] = ()) -> tuple[Array, ...] | None:
        """The prices of all samples at the proxes' last points w: gradients of smooth losses, else what a prox kept;
        and those of losses ``beside``, where they are given.

        None where all are gradients at w: the certifier computes its own, where it needs them.
        """
        if self.form.smooth and not beside:
            return None
        rows = iter(beside)
        out = tuple(next(rows) if beside and b.map.noun == "row" else b.prices(w) for b in self.form.samples)
        if self.form.smooth:
            return out
        for prox, each in zip(self.proxes, memory or self.memory(), strict=True):
            prox.write_prices(each, out)
        return out


def _among(new: Array, rows: Rows, count: int) -> Array:
    """What some rows have, among so many; 0 at the others."""
    if rows is EVERY:
        return new
    out = np.zeros((count, *new.shape[1:]))
    out[rows] = new
    return out


Site = LocalView  # its former name, which methods of users import
