"""Penalties, graphs and hierarchies for random losses, added to a model and, edge by edge, to plain numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.declaring import declared
from ..terms import Hierarchy, NodePenalty, TotalVariation
from ..terms.penalties import AbstractConstraint, AbstractOneSided, AbstractPenalty
from .families import is_stiff, penalty_of
from .plain import CONSTRAINTS, Array, PlainEdge, PlainProblem
from .random_losses import Losses

if TYPE_CHECKING:
    import networkx as nx

# ---- penalties with strengths that matter for the data ---------------------------------------------------------------
PENALTIES = ("L1", "L2", "LInf", "SquaredL2", "Quadratic", "HuberNorm", "Ball", "Zero", "NonNegative", "Box")


def is_constraint(kind: str) -> bool:
    """True of a penalty that takes no strength."""
    return issubclass(declared(AbstractPenalty)[kind], AbstractConstraint)


STRENGTHS = tuple(kind for kind in PENALTIES if not is_constraint(kind))


@dataclass(frozen=True)
class Drawn:
    """A penalty, its strength, and its parameter as a plain number or array."""

    kind: str
    penalty: AbstractPenalty
    strength: float
    parameter: Any = None

    @property
    def is_constraint(self) -> bool:
        return isinstance(self.penalty, AbstractConstraint)

    def scaled(self, term: Any) -> Any:
        return term if self.is_constraint else self.strength * term


class PenaltyDraw:
    """Draws penalties for the given losses.

    Parameters
    ----------
    rng : numpy.random.Generator
    losses : Losses
    factor : float
        Multiplies every strength.
    far : float
        The size of centres, in units of the coefficients behind the data.
    """

    def __init__(self, rng: np.random.Generator, losses: Losses, factor: float, far: float) -> None:
        self.rng, self.losses, self.factor, self.far = rng, losses, factor, far
        self.typical = float(np.median(losses.size))
        self.inner = np.zeros(len(losses.size))  # satisfies all constraints drawn so far, at every node

    def other(self, penalty: str) -> str:
        """A penalty with a strength, for what stands beside ``penalty``."""
        choice = [kind for kind in STRENGTHS if kind != penalty]
        return choice[int(self.rng.integers(len(choice)))]

    def center(self, kind: str, columns: Array | None) -> Array | None:
        """A center for a node penalty, the same at all nodes; none where the penalty is one-sided about 0."""
        k = len(self.inner) if columns is None else len(columns)
        size = self.losses.size if columns is None else self.losses.size[columns]
        return None if kind == "NonNegative" else self.far * size * self.rng.standard_normal(k)

    def __call__(
        self,
        kind: str,
        k: int,
        center: Array | None = None,
        columns: Array | None = None,
        strength: float | None = None,
    ) -> Drawn:
        """A penalty of the kind on k coordinates."""
        if center is not None and is_constraint(kind):
            self.inner[np.arange(len(self.inner)) if columns is None else columns] = center
        level = self.factor * 10.0 ** self.rng.uniform(-2, 2)
        force = level * max(self.losses.gradient, 1e-300)
        stiffness = level * self.losses.curvature if strength is None else strength
        if kind == "Quadratic":
            root = self._root(k)
            Q = root.T @ root
            return Drawn(kind, penalty_of(kind, (Q + Q.T) / 2), stiffness, root)
        if kind == "HuberNorm":
            delta = float(self.typical * 10.0 ** self.rng.uniform(-1.5, 1))
            return Drawn(kind, penalty_of(kind, delta), force / delta, delta)
        if kind in CONSTRAINTS:
            return self._constraint(kind, k)
        penalty = penalty_of(kind)
        return Drawn(kind, penalty, stiffness if is_stiff(penalty) else force)

    def _constraint(self, kind: str, k: int) -> Drawn:
        if kind == "Ball":
            radius = float(self.typical * 10.0 ** self.rng.uniform(-1.5, 1))
            return Drawn(kind, penalty_of(kind, radius), 1.0, radius)
        if kind == "Box":
            low, high = (self.typical * 10.0 ** self.rng.uniform(-1.5, 0.5, size=k) for _ in range(2))
            open_, side = self.rng.random(k) < 0.2, self.rng.random(k) < 0.5
            low, high = np.where(open_ & side, -np.inf, -low), np.where(open_ & ~side, np.inf, high)
            return Drawn(kind, penalty_of(kind, low, high), 1.0, (low, high))
        return Drawn(kind, penalty_of(kind), 1.0)

    def _root(self, k: int) -> Array:
        """R (rank, k) where Q = R'R has the largest eigenvalue 1, others over two decades, in half of the cases 0."""
        values = 10.0 ** self.rng.uniform(-2, 0, size=k)
        values[0] = 1.0
        if k > 1 and self.rng.random() < 0.5:
            values = values[: int(self.rng.integers(1, k))]
        V = np.linalg.qr(self.rng.standard_normal((k, k)))[0][:, : len(values)]
        return np.sqrt(values)[:, None] * V.T


# ---- terms and plain edges -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Spread:
    """The spread of the numbers that a `Builder` draws.

    Attributes
    ----------
    factor : float
        Multiplies every strength.
    decades : float
        Weights of edges and nodes are log-uniform over so many decades on each side of 1.
    ridge : float
        How likely there is one.
    center, far : float
        How likely a node penalty has a centre, and its size in units of the coefficients behind the data.
    """

    factor: float = 1.0
    decades: float = 1.5
    ridge: float = 0.25
    center: float = 0.4
    far: float = 1.0


class Builder:
    """Adds terms to a model and, edge by edge, to the plain problem."""

    def __init__(
        self, rng: np.random.Generator, labels: list[Hashable], losses: Losses, traits: list[str], spread: Spread
    ) -> None:
        self.rng, self.labels, self.losses, self.traits, self.spread = rng, labels, losses, traits, spread
        self.names = losses.names
        self.d = len(losses.size)
        self.draw = PenaltyDraw(rng, losses, spread.factor, spread.far)
        self.model: Any = 0
        self.edges: list[PlainEdge] = []
        self.latent: list[Hashable] = []
        count = min(len(labels), int(rng.integers(1, 6)))
        member = np.concatenate([np.arange(count), rng.integers(count, size=len(labels) - count)])
        self.groups: dict[Hashable, str] = {x: f"cluster {c}" for x, c in zip(labels, member, strict=True)}

    def build(self, penalty: str, structure: str) -> None:
        on_nodes = issubclass(declared(AbstractPenalty)[penalty], AbstractOneSided) or structure == "node penalty"
        other = self.draw.other(penalty)
        if structure == "hierarchy":
            self._hierarchy(other if is_constraint(penalty) else penalty)
        if structure != "hierarchy" or (is_constraint(penalty) and not on_nodes):
            columns = self._columns(structure == "feature subset")
            self._total_variation(self._graph(), other if on_nodes else penalty, columns)
        if structure == "two graphs":
            self._total_variation(self._graph(), self.draw.other(penalty), None)
        if on_nodes:
            self._node_penalty(penalty, structure == "feature subset")
        if self.rng.random() < self.spread.ridge:
            self._ridge()

    # ---- terms -------------------------------------------------------------------------------------------------------
    def plain(self) -> PlainProblem:
        """The terms that were added, as plain numbers."""
        nodes, losses = (*self.labels, *self.latent), self.losses
        return PlainProblem(nodes, self.d, losses.plain, tuple(self.edges), self.draw.inner, losses.size)

    def _total_variation(self, graph: nx.Graph, kind: str, columns: Array | None) -> None:
        drawn = self.draw(kind, self.d if columns is None else len(columns))
        if not is_constraint(kind) and self.rng.random() < 0.6:
            self.traits.append("edge weights")
            for _, _, attributes in graph.edges(data=True):
                attributes["weight"] = self._weight()
        self.model = self.model + drawn.scaled(TotalVariation(graph, drawn.penalty, self._features(columns)))
        self._add(graph.edges(data="weight", default=1.0), drawn, columns)

    def _node_penalty(self, kind: str, subset: bool) -> None:
        columns = self._columns(True) if subset or self.rng.random() < 0.3 else None
        features = self._features(columns)
        if columns is None and self.losses.intercept:
            columns = np.arange(self.losses.classes, self.d)
        k = self.d if columns is None else len(columns)
        center = self.draw.center(kind, columns) if self.rng.random() < self.spread.center else None
        drawn = self.draw(kind, k, center, columns)
        weights = None
        if not is_constraint(kind) and self.rng.random() < 0.4:
            weights = {label: self._weight() for label in self.labels}
        self.model = self.model + drawn.scaled(NodePenalty(drawn.penalty, weights, center, features))
        self.traits += ["node weights"] * (weights is not None) + ["center"] * (center is not None)
        weights = weights or dict.fromkeys(self.labels, 1.0)
        self._add(((label, None, weight) for label, weight in weights.items()), drawn, columns, center)

    def _hierarchy(self, kind: str) -> None:
        drawn = self.draw(kind, self.d)
        names = sorted(set(self.groups.values()))
        deep = len(names) > 2 and self.rng.random() < 0.4
        leaf = {label: self._weight() for label in self.labels}
        level = 10.0 ** self.rng.uniform(-1, 1, size=2)
        members = {name: [label for label in self.labels if self.groups[label] == name] for name in names}
        if deep:
            sides = {"west": names[:2], "east": names[2:]}
            clusters: Any = {side: {name: members[name] for name in inner} for side, inner in sides.items()}
            above = {name: ("west" if name in names[:2] else "east", name) for name in names}
            parents: dict[Any, Any] = {path: path[0] for path in above.values()} | dict.fromkeys(sides, "root")
        else:
            clusters, above, parents = self.groups, {name: name for name in names}, dict.fromkeys(names, "root")
        weights = (leaf, *(float(x) for x in level[: 1 + deep]))
        self.traits.append("three levels" if deep else "two levels")
        self.model = self.model + drawn.scaled(Hierarchy(clusters, weights, drawn.penalty))
        self._add(((label, above[self.groups[label]], weight) for label, weight in leaf.items()), drawn)
        for child, parent in parents.items():
            self._add([(child, parent, float(level[1 if deep and parent == "root" else 0]))], drawn)
        self.latent = [*parents, "root"]

    def _ridge(self) -> None:
        strength = float(self.losses.curvature * 10.0 ** self.rng.uniform(-4, -1))
        drawn = self.draw("SquaredL2", self.d, strength=strength)
        self.traits.append("ridge")
        self.model = self.model + drawn.scaled(NodePenalty(drawn.penalty, features=list(self.names)))
        self._add(((label, None, 1.0) for label in self.labels), drawn)

    def _add(
        self, ends: Iterable[tuple[Any, Any, float]], drawn: Drawn, columns: Array | None = None, center: Any = None
    ) -> None:
        """Plain edges, each with its tail, its head (None: the ground) and its weight."""
        columns = np.arange(self.d) if columns is None else columns
        center = np.zeros(len(columns)) if center is None else center
        strength, free = drawn.strength, drawn.is_constraint
        self.edges += [
            PlainEdge(tail, head, drawn.kind, 1.0 if free else strength * weight, columns, center, drawn.parameter)
            for tail, head, weight in ends
        ]

    def _weight(self) -> float:
        return float(10.0 ** self.rng.uniform(-self.spread.decades, self.spread.decades))

    # ---- what the terms stand on -------------------------------------------------------------------------------------
    def _columns(self, subset: bool) -> Array | None:
        """The coordinates of some features, with all their classes."""
        if not subset:
            return None
        count, classes = len(self.names), self.losses.classes
        k = int(self.rng.integers(1, max(2, count)))
        chosen = np.sort(self.rng.choice(count, size=k, replace=False))
        return (chosen[:, None] * classes + np.arange(classes)).ravel()

    def _features(self, columns: Array | None) -> list[str] | None:
        """The names of the features whose coordinates these are."""
        classes = self.losses.classes
        return None if columns is None else [self.names[j // classes] for j in columns[::classes]]

    def _graph(self) -> nx.Graph:
        """A random graph with a random number of parts, each connected, and perhaps isolated nodes."""
        import networkx as nx

        rng, n = self.rng, len(self.labels)
        order = rng.permutation(n)
        alone = int(rng.integers(1, 1 + n // 4)) if n >= 4 and rng.random() < 0.25 else 0
        parts = int(rng.integers(2, 4)) if n - alone >= 6 and rng.random() < 0.25 else 1
        self.traits += ["isolated nodes"] * (alone > 0) + ["disconnected"] * (parts > 1)
        graph = nx.Graph()
        graph.add_nodes_from(self.labels)
        for part in np.array_split(order[alone:], parts):
            for i, j in connected(rng, part):
                graph.add_edge(self.labels[i], self.labels[j])
        return graph


def connected(rng: np.random.Generator, nodes: Array) -> list[tuple[int, int]]:
    """The edges of a path, a star or a random tree on the nodes, with further random edges."""
    kind, count = rng.integers(4), len(nodes)
    edges: list[tuple[int, int]] = []
    for k in range(1, count):
        up = k - 1 if kind == 0 else 0 if kind == 1 else int(rng.integers(k))
        edges.append((int(nodes[up]), int(nodes[k])))
    if kind == 3 and count > 3:
        for _ in range(int(rng.integers(1, 1 + 2 * count))):
            i, j = rng.choice(count, size=2, replace=False)
            edges.append((int(nodes[i]), int(nodes[j])))
    return edges
