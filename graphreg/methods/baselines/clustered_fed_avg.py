"""Federated averaging within clusters that are known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.messages import few, unknown_labels
from ...checks import checked, counts, positive
from ...errors import MethodError, TermError
from ...form import Form
from ...network import AVAILABILITY
from ...terms import latent_label, tree_levels
from ._averaging import AbstractAveraging
from ._servers import server_form


@dataclass(frozen=True)
class ClusteredFedAvg(AbstractAveraging):
    """`FedAvg` within each of several known clusters: ``minimise sum_j sum_(i in cluster j) f_i(w_j)``.

    The oracle of clustered federated learning: one server and one model per cluster, everything else as in `FedAvg`
    (the weights p_i and the default step are those of the cluster).

    Parameters
    ----------
    clusters : mapping, optional
        A cluster per node, or a list of nodes per cluster, of all nodes. None (default): the first level of the
        model's Hierarchy.
    local_steps, step_size, batch, availability
        As for `FedAvg`.

    Examples
    --------
    >>> run = problem.solve(gr.ClusteredFedAvg({"north": ["a", "b"], "south": ["c", "d"]}), gap=1e-6)
    >>> run.table().round(2)
          rain  temp
    node
    a     1.04 -0.06
    b     1.04 -0.06
    c    -1.05  0.06
    d    -1.05  0.06
    """

    aim = "the fit of one model to each cluster"
    needs = (
        "a cluster for every node (given, or of a Hierarchy); smooth losses (a bound of their curvature or a given "
        "step), smooth node penalties; it drops the edges between nodes"
    )
    sends = (
        "nothing across the edges; the server of each cluster sends its model to the cluster's nodes, and those that "
        "are there send theirs back"
    )

    clusters: Mapping[Hashable, Any] | None = None
    local_steps: int | Mapping[Hashable, int] = checked(counts, 1)
    step_size: float | None = checked(positive, None)
    batch: int | Mapping[Hashable, int] | None = checked(counts | None, None)
    availability: Any = checked(AVAILABILITY, None)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            if self.clusters is not None:
                tree_levels(self.clusters)
        except TermError as error:
            raise MethodError(f"the clusters of ClusteredFedAvg: {error}") from error

    def missing(self, form: Form) -> tuple[str, ...]:
        return (*self._uncovered(form), *super().missing(form))

    def _uncovered(self, form: Form) -> tuple[str, ...]:
        """The faults of the clusters, as sentences."""
        found, labels = self._clusters(form), form.space.index
        if not found:
            return ("the model has no Hierarchy whose clusters could be taken: give ClusteredFedAvg(clusters={...})",)
        lacking = [x for x in labels if x not in found]
        beside = "; a node without samples has none in a model without its graph: leave it out"
        out = [said + beside for said in unknown_labels("clusters", found, labels)]
        if lacking:
            out.append(f"clusters do not cover the nodes {few(map(repr, lacking), 5)}: name theirs")
        return tuple(out)

    def _clusters(self, form: Form) -> dict[Hashable, Hashable]:
        """The cluster of each node that has one."""
        if self.clusters is not None:
            return {node: latent_label(path) for node, path in tree_levels(self.clusters)[0].items()}
        out: dict[Hashable, Hashable] = {}
        for edge in form.edges:
            if edge.role.of_leaves:
                out.update({form.labels[i]: form.labels[j] for i, j in zip(edge.tail, edge.head, strict=True)})
        return out

    def target(self, form: Form) -> Form:
        cluster = self._clusters(form)
        place = {label: j for j, label in enumerate(dict.fromkeys(cluster.values()))}
        member = np.array([place[cluster[node]] for node in form.space.index], dtype=np.intp)
        return server_form(form, member=member, clusters=list(place))
