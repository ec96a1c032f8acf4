"""The canonical form: samples and edges, tied together by the parameters at the nodes. Values and residuals.

P(w)    =   sum_r s_r l_r((Xw)_r + o_r)  +  sum_e c_e phi_e((Kw)_e - center_e)
Q(u, a) = - sum_r s_r l_r*(a_r / s_r) + <a, o>  -  sum_e c_e phi_e*(u_e / c_e) - <u, center>
subject to (K'u)_i + X_i'a_i = 0 at every node
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ..base.display import Suggesting
from ..base.escaping import visible
from ..base.messages import few
from ..inputs import Labels, as_labels, components_of
from ..terms import Array, EdgeBlock, SampleBlock, Space, Strength, adjoint_of, alike, shared, strengths
from ..terms.losses import AbstractSmoothLoss

T = TypeVar("T")
LONGEST_REPR = 300  # characters
SMALL = 1 << 20  # numbers in the Gram matrices of all nodes, in the data, and in the flows


@dataclass(frozen=True, repr=False)
class DualPoint(Suggesting):
    """Flows per edge block and prices per sample block."""

    flows: tuple[Array, ...]
    prices: tuple[Array, ...]

    @property
    def parts(self) -> tuple[Array, ...]:
        """Prices, then flows, in the order of `Form.blocks`."""
        return (*self.prices, *self.flows)

    def is_finite(self) -> bool:
        return all(np.isfinite(each).all() for each in self.parts)

    def __repr__(self) -> str:
        flows, prices = (", ".join(str(part.shape) for part in each) for each in (self.flows, self.prices))
        return f"<DualPoint: flows of the shapes {flows or 'none'}; prices {prices or 'none'}>"


class Findings(dict[str, Any]):
    """What others found about a form. Copies and pickles begin anew: factors can be neither copied nor sent."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Findings, ()


@dataclass(frozen=True, repr=False)
class Form:
    """A problem in canonical form over n nodes (first ``n_observed`` of the user's, then the latent ones)."""

    space: Space
    latent: tuple[Hashable, ...]
    samples: tuple[SampleBlock, ...]
    edges: tuple[EdgeBlock, ...]

    def __repr__(self) -> str:
        latent = f", {len(self.latent)} of them latent" if self.latent else ""
        names = ", ".join(name for _, name in self.terms())
        return visible(f"<Form: {self.n} nodes x {self.d} coordinates{latent}; {names}>", LONGEST_REPR)

    @cached_property
    def n(self) -> int:
        return self.space.n_observed + len(self.latent)

    @cached_property
    def d(self) -> int:
        return len(self.space.coordinates)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    @property
    def blocks(self) -> tuple[SampleBlock | EdgeBlock, ...]:
        """Those of samples, then those of edges."""
        return (*self.samples, *self.edges)

    def terms(self) -> list[tuple[Strength, str]]:
        """The strength and the name of each block, in the order of `blocks`."""
        return [(block.strength, block.name) for block in self.blocks]

    @cached_property
    def to_ground(self) -> tuple[EdgeBlock, ...]:
        """The blocks of edges from nodes to the ground."""
        return tuple([edge for edge in self.edges if edge.map.noun == "node"])

    @cached_property
    def between(self) -> tuple[EdgeBlock, ...]:
        """The blocks of edges between two nodes."""
        return tuple([edge for edge in self.edges if edge.map.noun == "edge"])

    @cached_property
    def at_nodes(self) -> tuple[SampleBlock, ...]:
        """The blocks of samples at nodes, no node in two of them."""
        return tuple([block for block in self.samples if block.map.noun == "sample"])

    @cached_property
    def beside(self) -> tuple[SampleBlock, ...]:
        """The blocks of losses of other rows, which stand beside the losses of nodes."""
        return tuple([block for block in self.samples if block.map.noun == "row"])

    @property
    def beside_in_words(self) -> str:
        """The first of the losses of other rows, and what it is, as a sentence begins."""
        block, taken = self.beside[0], np.zeros(self.n, dtype=bool)
        for own in self.at_nodes:
            taken[own.node] = True
        both = np.flatnonzero(taken & block.map.touched)
        if len(both) and not len(block.map.links[0]):  # each row is of one node
            return f"{block.loss.called()} is a second loss at {few([repr(self.labels[i]) for i in both], 3)}"
        return f"{block.name} is a loss of rows, and not of the samples of nodes"

    @cached_property
    def limited(self) -> bool:
        """True where the parameters 0 are outside some penalty's domain, so that there may be no point at all."""
        zero = np.zeros(self.shape)
        return not all(np.isfinite(edge.values(zero)).all() for edge in self.edges)

    @cached_property
    def unlike_edges(self) -> tuple[SampleBlock | EdgeBlock, ...]:
        """The blocks whose rows are neither edges nor samples at nodes: of these few rooms know."""
        return (*[edge for edge in self.edges if edge.map.edges is None], *self.beside)

    @property
    def clustered(self) -> bool:
        """True where clusters may be told: along edges between nodes, or where nothing joins nodes."""
        return bool(self.between) or not self.unlike_edges

    def mapped(self, change: Callable[..., Array], *points: DualPoint) -> DualPoint:
        """``change(block, x, ...)`` of every block, and of what the points have there."""
        parts = [change(*each) for each in zip(self.blocks, *[point.parts for point in points], strict=True)]
        return DualPoint(tuple(parts[len(self.samples) :]), tuple(parts[: len(self.samples)]))

    def width(self, edge: EdgeBlock) -> int:
        """The number k of coordinates that the edges of a block act on."""
        return edge.map.width(self.d)

    @shared
    def differences(self) -> int:
        """The number of differences on all edges."""
        return sum([edge.count * self.width(edge) for edge in self.edges])

    @shared
    def smooth(self) -> bool:
        """True where all losses are smooth."""
        return all(isinstance(block.loss, AbstractSmoothLoss) for block in self.samples)

    def losses_beside(self, *kinds: type) -> list[str]:
        """The names of the losses that are of none of these kinds, each once."""
        return list(dict.fromkeys(b.loss.called() for b in self.samples if not isinstance(b.loss, kinds)))

    @shared
    def labels(self) -> Labels:
        return as_labels((*self.space.index, *self.latent) if self.latent else self.space.index)

    @shared
    def observed(self) -> Labels:
        """The labels of the user's nodes, in order."""
        return self.labels[: self.space.n_observed]

    @shared
    def component(self) -> Array:
        """The connected component (of all edges between nodes) of each node, (n,)."""
        pairs = [block.map.links for block in (*self.edges, *self.beside)]
        if not any(len(tails) for tails, _ in pairs):
            return np.arange(self.n)
        if any(edge.map.in_line for edge in self.edges):
            return np.zeros(self.n, dtype=np.int32)
        tails, heads = map(np.concatenate, zip(*pairs, strict=True))
        return components_of(tails, heads, self.n)[1]

    @shared
    def n_components(self) -> int:
        return int(self.component.max(initial=-1)) + 1

    @shared
    def free(self) -> Array:
        """Nodes whose component has no loss and no edge to the ground: any common value is optimal, 0 is given."""
        tied = np.zeros(self.n_components, dtype=bool)
        for block in (*self.edges, *self.beside):
            if not block.map.level:
                tied[self.component[block.map.degree > 0.0]] = True
        return self.silent & ~tied[self.component]

    @shared
    def silent(self) -> Array:
        """Nodes whose component has no loss: no data speak of them."""
        reached = np.zeros(self.n_components, dtype=bool)
        for block in self.samples:
            reached[self.component[block.node if block.map.noun == "sample" else block.map.degree > 0.0]] = True
        return ~reached[self.component]

    def ends(self, edge: EdgeBlock) -> tuple[list[Hashable], list[Hashable]]:
        """The labels of the tails and of the heads of some edges; None for the ground."""
        labels = (*self.labels, None)  # the ground is -1
        return [labels[i] for i in edge.tail.tolist()], [labels[i] for i in edge.head.tolist()]

    def keys(self, edge: EdgeBlock) -> Sequence[Hashable]:
        """What names the rows of a block: nodes, the ends of edges, else what its term says of them."""
        if edge.map.edges is None:
            return edge.keys
        return self.ends(edge)[0] if edge.map.noun == "node" else list(zip(*self.ends(edge), strict=True))

    def row_text(self, edge: EdgeBlock, row: int) -> str:
        """One row of a block, as messages name it."""
        if edge.map.edges is None:
            return f"the row {edge.keys[row]!r}"
        return " - ".join(repr(self.labels[end[row]]) for end in edge.ends)

    def frozen(self) -> Form:
        """The form at the strengths of this moment: later values of Parameters do not reach it."""
        if not any(block.strength.parameter for block in self.blocks):
            return self
        return self.once("frozen", strengths(self.blocks), self._frozen) if self.is_small else self._frozen()

    def _frozen(self) -> Form:
        samples, edges = tuple(b.fixed() for b in self.samples), tuple(e.fixed() for e in self.edges)
        return alike(self, samples=samples, edges=edges)

    @shared
    def memory(self) -> dict[str, Any]:
        """Findings of others about the form, shared with its copies at other strengths; see `once`."""
        return Findings()

    @property
    def is_small(self) -> bool:
        """True where what one run finds takes so little room that it is kept for the next one."""
        return self.d * max([self.n * self.d, *(block.count for block in self.blocks)]) <= SMALL

    def once(self, name: str, key: Any, find: Callable[[], T]) -> T:
        """The value of ``find``, remembered by its name until it is asked for at another key (of strengths)."""
        if name not in self.memory or self.memory[name][0] != key:
            self.memory[name] = key, find()
        return self.memory[name][1]

    def nothing(self) -> DualPoint:
        """No flow anywhere, all prices 0."""
        flows = [np.zeros((edge.count, self.width(edge))) for edge in self.edges]
        return DualPoint(tuple(flows), tuple([np.zeros_like(block.offset) for block in self.samples]))

    def primal(self, w: Array) -> float:
        """P(w)."""
        return float(sum([b.values(w).sum() for b in self.samples]) + sum([b.values(w).sum() for b in self.edges]))

    def dual(self, point: DualPoint) -> float:
        """Q(u, a); -inf outside the domains. A lower bound of P only where the point is conserved."""
        return float(sum([part.sum() for part in self.dual_parts(point)]))

    def dual_parts(self, point: DualPoint) -> list[Array]:
        """The summands of Q, one array per sample block and then per edge block."""
        return [block.duals(x) for block, x in zip(self.blocks, point.parts, strict=True)]

    def conservation(self, point: DualPoint) -> Array:
        """K'u + X'a, (n, d): zero where flow and prices are conserved."""
        return adjoint_of(self.blocks, point.parts, self.shape)

    def residuals(self, w: Array, point: DualPoint) -> tuple[list[Array], list[Array]]:
        """The Fenchel-Young residuals of every sample and of every edge, per block."""
        found = [block.residuals(w, x) for block, x in zip(self.blocks, point.parts, strict=True)]
        return found[: len(self.samples)], found[len(self.samples) :]

    def gradient_prices(self, w: Array) -> tuple[Array, ...]:
        """Prices at w: the (sub)gradients of the losses."""
        return tuple([block.prices(w) for block in self.samples])

    def degree(self) -> Array:
        """Edges at each node, those to the ground included, and what rows count for, (n,); see `AbstractMap.degree`."""
        return sum([block.map.degree for block in (*self.edges, *self.beside)], np.zeros(self.n))

    def curvature_of(self, blocks: Sequence[SampleBlock]) -> Array:
        """The mean curvature that each node has of some losses, at this moment's strengths, (n,)."""
        each = [b.traces(b.loss.typical_curvature(b.offset, b.y) * b.scale) / self.d for b in blocks]
        return sum(each, np.zeros(self.n))

    @cached_property
    def step_length(self) -> float:
        """The length of a gradient step from w = 0, root mean square: a scale of the coefficients; 1 where it is 0."""
        gradient = self.conservation(DualPoint(self.nothing().flows, self.gradient_prices(np.zeros(self.shape))))
        curvature = self.curvature_of(self.samples)
        return float(np.sqrt(np.mean(gradient**2)) / max(np.sqrt(np.mean(curvature**2)), 1e-300)) or 1.0


def held_together(columns: Sequence[Array], d: int) -> list[tuple[tuple[int, ...], Array]]:
    """Coordinates of 0 ... d - 1 that the same of some sets hold: the numbers of these sets, and the coordinates."""
    found: dict[tuple[int, ...], list[int]] = {}
    for j in range(d):
        found.setdefault(tuple(k for k, each in enumerate(columns) if j in each), []).append(j)
    return [(holding, np.array(places)) for holding, places in found.items() if holding]


def without_edges(form: Form, latent: tuple[Hashable, ...] = ()) -> Form:
    """The form without edges between nodes, and with these latent nodes instead of its own."""
    n = form.space.n_observed + len(latent)
    samples = tuple(block.over(n) for block in form.samples)
    return Form(form.space, latent, samples, tuple(edge.over(n) for edge in form.to_ground))
