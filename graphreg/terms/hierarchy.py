"""Known clusters as a tree: nodes - clusters - ... - root, the inner nodes latent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import TermError
from .calculus import AbstractTerm, Strength, positive
from .penalties._base import AbstractConstraint, AbstractPenalty
from .penalties.squared_l2 import SquaredL2
from .penalties.zero import Zero
from .records import Array, Lowered, LoweredEdges, Space
from .sums import check_between_nodes

ROOT = "root"


@dataclass(frozen=True)
class Hierarchy(AbstractTerm):
    """A penalty on the edges of a tree whose leaves are nodes and whose inner nodes are latent.

    With two levels and SquaredL2 (1/2 ||.||^2) this is (2.3) of Personalized FL with multiple known clusters:
    ``sum_i gamma_i/2 ||w_i - w_cluster(i)||^2 + sum_j lam_j/2 ||w_j - w_root||^2``, minimised over all of them.

    Parameters
    ----------
    clusters : mapping
        A cluster label per node, or a list of nodes per cluster, or such lists nested in dicts of any depth (all
        leaves at the same depth).
    weights : sequence
        One weight per level from the leaves upwards, each a positive number, a `Parameter`, or a mapping from
        labels (of the nodes at that level: leaves first, then clusters) to positive numbers.
    penalty : Penalty
        An even penalty; SquaredL2 by default.
    """

    clusters: Mapping[Hashable, Any]
    weights: Sequence[Any]
    penalty: AbstractPenalty = field(default_factory=SquaredL2)

    def __post_init__(self) -> None:
        check_between_nodes(self.penalty, "Hierarchy")
        if isinstance(self.penalty, AbstractConstraint):
            raise TermError("Hierarchy takes a penalty with a strength, not a constraint; use Consensus")
        levels = self._levels()
        weights = self.weights if isinstance(self.weights, Sequence) else (self.weights,)
        if len(weights) != len(levels):
            raise TermError(
                f"the hierarchy has {len(levels)} levels of edges and {len(weights)} weights; give one per level, "
                "from the leaves upwards"
            )
        object.__setattr__(self, "weights", tuple(weights))

    @staticmethod
    def from_alpha(clusters: Mapping[Hashable, Any], *, alpha: Any, gamma: Any) -> Hierarchy | AlphaHierarchy:
        """(2.1) of the paper, lowered to the same tree.

        ``sum_i (1 - alpha_j) gamma_i/2 ||w_i - thetabar_j||^2 + alpha_j gamma_i/2 ||w_i - thetabar||^2`` with the
        gamma-weighted averages of the clusters and of all. It is (2.3) with the latent nodes minimised out and
        ``lam_j = alpha_j Gamma_j / (1 - alpha_j)``, Gamma_j the sum of gamma_i in the cluster (Proposition 2.2).

        Parameters
        ----------
        clusters : mapping
            A cluster per node, or a list of nodes per cluster (two levels).
        alpha : float or mapping
            In [0, 1], one for all or one per cluster. 0 separates a cluster from the others, 1 ties its centre to
            the root.
        gamma : float or mapping
            Positive, one for all or one per node.
        """
        return AlphaHierarchy(clusters, alpha, gamma)

    def nodes(self) -> tuple[Hashable, ...]:
        return tuple(self._levels()[0])

    def lower(self, space: Space, strength: Strength) -> Lowered:
        levels = self._levels()
        latent = tuple(dict.fromkeys(parent for level in levels for parent in level.values()))
        place = {path: space.n_observed + k for k, path in enumerate(latent)}
        edges: list[LoweredEdges] = []
        for depth, (level, weight) in enumerate(zip(levels, self.weights, strict=True)):
            tail = [space.index[child] if depth == 0 else place[child] for child in level]
            head = [place[parent] for parent in level.values()]
            scale, each = _level_weights(weight, [child if depth == 0 else child[-1] for child in level], depth)
            name = f"Hierarchy({type(self.penalty).__name__}), level {depth + 1}"
            edges.append(
                LoweredEdges(
                    self.penalty, strength * scale, np.array(tail), np.array(head), each, None, None, name
                )
            )
        self.penalty.check(len(space.coordinates))
        return Lowered(edges=tuple(edges), latent=tuple(latent_label(path) for path in latent))

    def _levels(self) -> list[dict[Any, tuple[Hashable, ...]]]:
        return tree_levels(self.clusters)


@dataclass(frozen=True)
class AlphaHierarchy(AbstractTerm):
    """(2.1) of the known-clusters paper; see `Hierarchy.from_alpha`."""

    clusters: Mapping[Hashable, Any]
    alpha: Any
    gamma: Any

    def __post_init__(self) -> None:
        levels = tree_levels(self.clusters)
        if len(levels) != 2:
            raise TermError("Hierarchy.from_alpha takes two levels: a cluster per node, or a list of nodes per cluster")
        for label, value in self._alphas(levels[1]).items():
            if not 0.0 <= value <= 1.0:
                raise TermError(f"alpha of the cluster {label[-1]!r} must lie in [0, 1], got {value}")

    def nodes(self) -> tuple[Hashable, ...]:
        return tuple(tree_levels(self.clusters)[0])

    def _alphas(self, clusters: Mapping[Any, Any]) -> dict[Any, float]:
        if not isinstance(self.alpha, Mapping):
            return {path: float(self.alpha) for path in clusters}
        missing = [path[-1] for path in clusters if path[-1] not in self.alpha]
        if missing:
            raise TermError(f"alpha has no entry for the cluster {missing[0]!r}")
        return {path: float(self.alpha[path[-1]]) for path in clusters}

    def lower(self, space: Space, strength: Strength) -> Lowered:
        leaves, clusters = tree_levels(self.clusters)
        scale, gamma = _level_weights(self.gamma, list(leaves), 0)
        place = {path: space.n_observed + k for k, path in enumerate(clusters)}
        tail = np.array([space.index[leaf] for leaf in leaves])
        head = np.array([place[path] for path in leaves.values()])
        squared = SquaredL2()
        edges = [LoweredEdges(squared, strength * scale, tail, head, gamma, None, None, "Hierarchy, level 1")]
        alpha = np.array(list(self._alphas(clusters).values()))
        total = np.bincount(head - space.n_observed, gamma, len(clusters))
        places, root = np.array(list(place.values())), space.n_observed + len(clusters)
        inner, tied = (alpha > 0) & (alpha < 1), alpha == 1
        if inner.any():
            lam = alpha[inner] * total[inner] / (1.0 - alpha[inner])
            up = np.full(int(inner.sum()), root)
            edges.append(
                LoweredEdges(squared, strength * scale, places[inner], up, lam, None, None, "Hierarchy, level 2")
            )
        if tied.any():  # lam_j is infinite: the centre is the root
            up = np.full(int(tied.sum()), root)
            edges.append(
                LoweredEdges(
                    Zero(), Strength(), places[tied], up, np.ones(len(up)), None, None, "Hierarchy, level 2 (alpha = 1)"
                )
            )
        latent = [latent_label(path) for path in clusters]
        if len(edges) > 1:
            latent.append(ROOT)
        return Lowered(edges=tuple(edges), latent=tuple(latent))


def tree_levels(clusters: Any) -> list[dict[Any, tuple[Hashable, ...]]]:
    """Per level from the leaves upwards, the parent of each child; inner nodes are the paths that lead to them."""
    if not isinstance(clusters, Mapping) or not clusters:
        raise TermError("clusters must be a non-empty mapping: node -> cluster, or cluster -> list of nodes")
    if not any(_is_group(value) for value in clusters.values()):
        grouped: dict[Hashable, list[Hashable]] = {}
        for node, cluster in clusters.items():
            grouped.setdefault(cluster, []).append(node)
        clusters = grouped
    leaves: dict[Hashable, tuple[Hashable, ...]] = {}
    _walk(clusters, (), leaves)
    depths = {len(path) for path in leaves.values()}
    if len(depths) > 1:
        shallow = next(leaf for leaf, path in leaves.items() if len(path) == min(depths))
        raise TermError(f"all leaves must lie at the same depth; {shallow!r} lies higher than others")
    levels: list[dict[Any, tuple[Hashable, ...]]] = [dict(leaves)]
    for _ in range(depths.pop()):
        levels.append({path: path[:-1] for path in dict.fromkeys(levels[-1].values())})
    return levels


def latent_label(path: tuple[Hashable, ...]) -> Hashable:
    """The root is 'root', a top cluster its own label, a deeper one the path of labels that leads to it."""
    return ROOT if not path else path[0] if len(path) == 1 else path


def _is_group(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple, set, frozenset, np.ndarray))


def _walk(tree: Mapping[Hashable, Any], path: tuple[Hashable, ...], leaves: dict[Hashable, Any]) -> None:
    for label, value in tree.items():
        here = (*path, label)
        if isinstance(value, Mapping):
            _walk(value, here, leaves)
            continue
        if not _is_group(value):
            raise TermError(f"the cluster {label!r} must be a list of nodes or a dict of clusters, got {value!r}")
        if len(value) == 0:
            raise TermError(f"the cluster {label!r} has no nodes; leave it out")
        for leaf in value:
            leaf = leaf.item() if isinstance(leaf, np.generic) else leaf
            if leaf in leaves:
                raise TermError(f"the node {leaf!r} stands in two clusters, {leaves[leaf][-1]!r} and {label!r}")
            leaves[leaf] = here


def _level_weights(weight: Any, labels: list[Hashable], depth: int) -> tuple[Strength, Array]:
    """A level's weight as a strength for all its edges and a number for each."""
    if not isinstance(weight, Mapping):
        return Strength.of(weight, f"the weight of level {depth + 1} of the hierarchy"), np.ones(len(labels))
    unknown = [label for label in weight if label not in labels]
    if unknown:
        raise TermError(f"the weights of level {depth + 1} of the hierarchy name {unknown[0]!r}, which is not there")
    missing = [label for label in labels if label not in weight]
    if missing:
        raise TermError(f"the weights of level {depth + 1} of the hierarchy have no entry for {missing[0]!r}")
    return Strength(), np.array([positive(weight[label], f"the weight of {label!r}") for label in labels])
