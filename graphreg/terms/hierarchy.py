"""Known clusters as a tree: nodes - clusters - ... - root, the inner nodes latent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..checks import inside, per
from ..errors import TermError
from ..inputs import IntegerLabels, is_missing, plain_label
from .blocks import EdgeBlock, Lowered
from .calculus import AbstractTerm, Strength, positive
from .maps import Differences
from .penalties.base import AbstractConstraint, AbstractPenalty
from .penalties.squared_l2 import SquaredL2
from .penalties.zero import Zero
from .records import Array, Role, Space
from .sums import between_nodes, by_label, check_between_nodes

ROOT = "root"
DEEPEST = 100  # levels
NESTED = (
    ". Where {0!r} is a node and the tuple says its region and its district, give nested dicts: {{region: {{district: "
    "[nodes]}}}}"
)


class _AbstractTree(AbstractTerm):
    """A term along the tree of known clusters, which is walked once."""

    clusters: Mapping[Hashable, Any]

    @cached_property
    def _levels(self) -> list[dict[Any, tuple[Hashable, ...]]]:
        return tree_levels(self.clusters)

    def labels(self) -> tuple[Hashable, ...]:
        return tuple(self._levels[0])


@dataclass(frozen=True, repr=False)
class Hierarchy(_AbstractTree):
    """A penalty on the edges of a tree whose leaves are nodes and whose inner nodes are latent.

    With two levels and SquaredL2 (1/2 ||.||^2) this is (2.3) of Personalized FL with multiple known clusters:
    ``sum_i gamma_i/2 ||w_i - w_cluster(i)||^2 + sum_j lam_j/2 ||w_j - w_root||^2``, minimised over all of them.

    Parameters
    ----------
    clusters : mapping
        A cluster label per node, or a list of nodes per cluster, or such lists nested in dicts of any depth (all
        leaves at the same depth). The latent node of a top cluster is called by the cluster's label; where some
        cluster has the label of a node, all of them are called "cluster LABEL".
    weights : sequence
        One weight per level from the leaves upwards, each a positive number, a `Parameter`, or a mapping from
        labels (of the nodes at that level: leaves first, then clusters) to positive numbers.
    penalty : Penalty
        An even penalty; SquaredL2 by default.

    Examples
    --------
    >>> clusters = {"north": ["a", "b"], "south": ["c", "d"]}
    >>> model = gr.SquaredLoss(data) + gr.Hierarchy(clusters, weights=(1.0, 0.1))
    >>> {name: w.round(2).tolist() for name, w in gr.Problem(model).solve().latent.items()}
    {'north': [0.91, -0.01], 'south': [-0.93, 0.04], 'root': [-0.01, 0.01]}
    """

    clusters: Mapping[Hashable, Any]
    weights: Sequence[Any]
    penalty: AbstractPenalty = field(default_factory=SquaredL2)

    def __post_init__(self) -> None:
        check_between_nodes(self.penalty, "Hierarchy")
        if isinstance(self.penalty, AbstractConstraint):
            raise TermError("Hierarchy takes a penalty with a strength, not a constraint; use Consensus")
        levels = self._levels
        several = isinstance(self.weights, (Sequence, np.ndarray)) and not isinstance(self.weights, str)
        weights = tuple(self.weights) if several else (self.weights,)
        if len(weights) != len(levels):
            raise TermError(
                f"the hierarchy has {len(levels)} levels of edges and {len(weights)} weights; give one per level, "
                "from the leaves upwards"
            )
        for depth, (level, weight) in enumerate(zip(levels, weights, strict=True)):
            _level_weights(weight, _level_labels(level, depth), depth)  # refuses bad ones
        object.__setattr__(self, "weights", weights)

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

        Returns
        -------
        AlphaHierarchy
            A term like any other.

        Raises
        ------
        TermError
            For an alpha outside [0, 1], and as for `Hierarchy`.

        Examples
        --------
        >>> clients = {"east": ["a", "b"], "west": ["c", "d"]}
        >>> tree = gr.Hierarchy.from_alpha(clients, alpha=0.3, gamma=1.0)
        """
        return AlphaHierarchy(clusters, alpha, gamma)

    def lower(self, space: Space, strength: Strength) -> Lowered:
        levels = self._levels
        latent = tuple(dict.fromkeys(parent for level in levels for parent in level.values()))
        place = {path: space.n_observed + k for k, path in enumerate(latent)}
        edges: list[EdgeBlock] = []
        phi = between_nodes(self.penalty, len(space.coordinates))
        for depth, (level, weight) in enumerate(zip(levels, self.weights, strict=True)):
            tail = [space.index[child] if depth == 0 else place[child] for child in level]
            head = [place[parent] for parent in level.values()]
            scale, each = _level_weights(weight, _level_labels(level, depth), depth)
            role = Role("hierarchy", depth + 1, len(levels))
            name = f"Hierarchy({self.penalty.called()}), level {role.level}"
            ends = Differences(np.array(tail), np.array(head))
            edges.append(EdgeBlock(phi, strength * scale, ends, each, None, role, name))
        return Lowered(edges=tuple(edges), latent=tuple(_latent_labels(latent, space)))


@dataclass(frozen=True, repr=False)
class AlphaHierarchy(_AbstractTree):
    """(2.1) of the known-clusters paper; see `Hierarchy.from_alpha`."""

    clusters: Mapping[Hashable, Any]
    alpha: Any
    gamma: Any

    def __post_init__(self) -> None:
        levels = self._levels
        if len(levels) != 2:
            raise TermError("Hierarchy.from_alpha takes two levels: a cluster per node, or a list of nodes per cluster")
        self._alphas(levels[1])
        _level_weights(self.gamma, list(levels[0]), 0, "gamma")

    def _alphas(self, clusters: Mapping[Any, Any]) -> dict[Any, float]:
        given = self.alpha if isinstance(self.alpha, Mapping) else {path[-1]: self.alpha for path in clusters}
        each = by_label(given, "alpha", _level_labels(clusters, 1), "cluster")
        per("cluster", inside("[0, 1]"))(given, "alpha", TermError)
        return {path: float(alpha) for path, (_, alpha) in zip(clusters, each, strict=True)}

    def lower(self, space: Space, strength: Strength) -> Lowered:
        leaves, clusters = self._levels
        scale, gamma = _level_weights(self.gamma, list(leaves), 0, "gamma")
        place = {path: space.n_observed + k for k, path in enumerate(clusters)}
        tail = np.array([space.index[leaf] for leaf in leaves])
        head = np.array([place[path] for path in leaves.values()])
        squared, low, high = SquaredL2(), Role("hierarchy", 1, 2), Role("hierarchy", 2, 2)
        up, name = Differences(tail, head), "Hierarchy, level 1"
        edges = [EdgeBlock(squared, strength * scale, up, gamma, None, low, name)]
        alpha = np.array(list(self._alphas(clusters).values()))
        total = np.bincount(head - space.n_observed, gamma, len(clusters))
        places, root = np.array(list(place.values())), space.n_observed + len(clusters)
        inner, tied = (alpha > 0) & (alpha < 1), alpha == 1
        if inner.any():
            lam = alpha[inner] * total[inner] / (1.0 - alpha[inner])
            up, name = _to_one(places[inner], root), "Hierarchy, level 2"
            edges.append(EdgeBlock(squared, strength * scale, up, lam, None, high, name))
        if tied.any():  # lam_j is infinite: the centre is the root
            up, name = _to_one(places[tied], root), "Hierarchy, level 2 (alpha = 1)"
            edges.append(EdgeBlock(Zero(), Strength(), up, np.ones(up.count), None, high, name))
        latent = _latent_labels(list(clusters), space)
        if len(edges) > 1:
            latent.append(ROOT)
        return Lowered(edges=tuple(edges), latent=tuple(latent))


def _to_one(tail: Array, head: int) -> Differences:
    """Edges that lead to one node."""
    return Differences(tail, np.full(len(tail), head))


def tree_levels(clusters: Any) -> list[dict[Any, tuple[Hashable, ...]]]:
    """Per level from the leaves upwards, the parent of each child; inner nodes are the paths that lead to them."""
    if not isinstance(clusters, Mapping) or not clusters:
        hint = "; of a Series use .to_dict()" if hasattr(clusters, "to_dict") else ""
        raise TermError(f"clusters must be a non-empty mapping: node -> cluster, or cluster -> list of nodes{hint}")
    if not any(_is_group(value) for value in clusters.values()):
        grouped: dict[Hashable, list[Hashable]] = {}
        for node, cluster in clusters.items():
            if is_missing(cluster):
                raise TermError(
                    f"the cluster of the node {node!r} is missing ({cluster!r}); name it, or leave the node out"
                )
            grouped.setdefault(plain_label(cluster), []).append(node)
        clusters = grouped
    leaves: dict[Hashable, tuple[Hashable, ...]] = {}
    _walk(clusters, (), leaves)
    depths = {len(path) for path in leaves.values()}
    if len(depths) > 1:
        shallow = next(leaf for leaf, path in leaves.items() if len(path) == min(depths))
        raise TermError(
            f"all leaves must lie at the same depth; {shallow!r} lies higher than others: wrap its cluster in another"
        )
    levels: list[dict[Any, tuple[Hashable, ...]]] = [dict(leaves)]
    for _ in range(depths.pop()):
        levels.append({path: path[:-1] for path in dict.fromkeys(levels[-1].values())})
    return levels


def latent_label(path: tuple[Hashable, ...]) -> Hashable:
    """The root is 'root', a top cluster its own label, a deeper one the path of labels that leads to it."""
    return ROOT if not path else path[0] if len(path) == 1 else path


def cluster_name(label: Hashable) -> str:
    """The label of a cluster's latent node where a node has the cluster's own label."""
    return f"cluster {label}"


def _latent_labels(paths: Sequence[tuple[Hashable, ...]], space: Space) -> list[Hashable]:
    labels = [latent_label(path) for path in paths]
    if not any(label in space.index for label in labels):
        return labels
    tops = [len(path) == 1 for path in paths]
    return [cluster_name(label) if top else label for label, top in zip(labels, tops, strict=True)]


def _is_group(value: Any) -> bool:
    pandas = hasattr(value, "to_numpy")  # an Index or a Series, as frame.groupby(...).groups has them
    return pandas or isinstance(value, (Mapping, list, tuple, IntegerLabels, set, frozenset, range, np.ndarray))


def _walk(tree: Mapping[Hashable, Any], path: tuple[Hashable, ...], leaves: dict[Hashable, Any]) -> None:
    for label, value in tree.items():
        here = (*path, label)
        if len(here) > DEEPEST:
            raise TermError(f"clusters are nested more than {DEEPEST} deep, at {label!r}; does a dict hold itself?")
        if here == (ROOT,):
            raise TermError(f"a cluster is called {ROOT!r}, which is the name of the root; rename it")
        if not _is_group(value):
            raise TermError(f"the cluster {label!r} must be a list of nodes or a dict of clusters, got {value!r}")
        if len(value) == 0:
            raise TermError(f"the cluster {label!r} has no nodes; leave it out")
        if isinstance(value, Mapping):
            _walk(value, here, leaves)
            continue
        for leaf in map(plain_label, value):
            if is_missing(leaf) or not isinstance(leaf, Hashable):
                raise TermError(f"the cluster {label!r} holds {leaf!r}, which is no node label")
            if leaf in leaves:
                first = leaves[leaf][-1]
                where = f"two clusters, {first!r} and {label!r}" if first != label else f"the cluster {label!r} twice"
                nested = NESTED.format(label) if isinstance(value, tuple) else ""
                raise TermError(f"the node {leaf!r} stands in {where}; leave one of them{nested}")
            leaves[leaf] = here


def _level_labels(level: Mapping[Any, Any], depth: int) -> list[Hashable]:
    """The labels by which a level's weights are given: nodes, then clusters."""
    return [child if depth == 0 else child[-1] for child in level]


def _level_weights(weight: Any, labels: list[Hashable], depth: int, name: str = "") -> tuple[Strength, Array]:
    """A level's weight as a strength for all its edges and a number for each."""
    what = name or f"the weight of level {depth + 1} of the hierarchy"
    if not isinstance(weight, Mapping):
        return Strength.of(weight, what), np.ones(len(labels))
    each = by_label(weight, what, labels, "cluster" if depth else "node")
    return Strength(), np.array([positive(value, f"{what} at {label!r}") for label, value in each])
