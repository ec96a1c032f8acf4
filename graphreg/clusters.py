"""Which edges are fused and which are split, decided from the dual with the gap as margin.

At every optimum w*, weak duality gives FY_e((Kw*)_e, u_e) <= gap for the certified flow u. For a norm of capacity
c_e that reads (c_e - ||u_e||_*) ||z*_e|| <= gap: with slack_e = c_e - ||u_e||_* an edge's difference is at most
gap / slack_e at *every* optimum. It is called fused where that bound is negligible beside the coefficients.
Where P is strongly convex, ||z_e - z*_e|| <= sqrt(2) ||w - w*|| <= 2 sqrt(gap / mu) settles the split edges too.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from .certificate import Certificate
from .form import EdgeBlock
from .terms.penalties._base import AbstractNorm, row_norm
from .terms.penalties.zero import Zero
from .terms.records import Array

if TYPE_CHECKING:
    import pandas as pd

NEGLIGIBLE = 1e-3  # of the size of the coefficients: differences provably below it count as fused


@dataclass(frozen=True)
class Clusters:
    """The clusters of an answer.

    Attributes
    ----------
    edges : DataFrame
        One row per edge between nodes (latent ones included) and per term: term, tail, head, state ("fused", "split" or
        "undecided"), slack (capacity minus the dual norm of the flow), difference (||w_tail - w_head|| on the term's
        coordinates), bound (what the difference is at most, at every optimum), certain.
    labels : dict
        A cluster number per node label: the components of the graph of fused edges.
    certain : bool
        Whether every edge is decided by a proof: fused by its slack, split by strong convexity.
    """

    edges: pd.DataFrame
    labels: dict[Hashable, int]
    certain: bool

    @property
    def count(self) -> int:
        """The number of clusters."""
        return len(set(self.labels.values()))

    def members(self) -> list[list[Hashable]]:
        """The node labels of each cluster, the largest first."""
        groups: dict[int, list[Hashable]] = {}
        for label, number in self.labels.items():
            groups.setdefault(number, []).append(label)
        return sorted(groups.values(), key=len, reverse=True)

    def __str__(self) -> str:
        count = self.edges["state"].value_counts() if len(self.edges) else {}
        states = ", ".join(f"{count.get(state, 0)} {state}" for state in ("fused", "split", "undecided"))
        sizes = ", ".join(str(len(group)) for group in self.members()[:8]) + (", ..." if self.count > 8 else "")
        word = "every edge is decided by a proof" if self.certain else "not every edge is decided by a proof"
        groups = f"{self.count} clusters of sizes {sizes}"
        if self.count == 1:
            groups = f"1 cluster of size {sizes}"
        elif self.count == len(self.labels):
            groups = f"{self.count} clusters, a node each"
        return f"{groups}; edges: {states} ({word})"


def clusters(certificate: Certificate) -> Clusters:
    """The clusters of a certified answer."""
    import pandas as pd

    form, n = certificate.form, certificate.form.space.n_observed
    labels = form.labels
    # where the optimum itself is near 0, a gradient step from 0 tells the scale of the coefficients
    size = max(float(np.sqrt(np.mean(certificate.w**2))), form.step_length)
    tables: list[pd.DataFrame] = []
    fused = np.zeros((0, 2), dtype=int)
    whole: dict[tuple[int, int], set[int]] = {}
    for edge, u in zip(form.edges, certificate.point.flows, strict=True):
        if edge.ground:
            continue
        columns = _decide(certificate, edge, u, size)
        tables.append(
            pd.DataFrame(
                {"term": edge.name, "tail": [labels[t] for t in edge.tail], "head": [labels[h] for h in edge.head]}
                | columns
            )
        )
        ends = np.stack([edge.tail, edge.head], axis=1)[columns["state"] == "fused"]
        if edge.features is None:
            fused = np.vstack([fused, ends])
        else:  # fused on some coordinates: a cluster only where the terms together cover all of them
            for i, j in ends:
                whole.setdefault((int(i), int(j)), set()).update(map(int, edge.features))
    more = [pair for pair, covered in whole.items() if len(covered) == form.d]
    fused = np.vstack([fused, np.array(more, dtype=int).reshape(-1, 2)])
    links = sp.coo_array((np.ones(len(fused)), (fused[:, 0], fused[:, 1])), shape=(form.n, form.n))
    number = connected_components(links, directed=False)[1][:n]
    first = {old: new for new, old in enumerate(dict.fromkeys(number.tolist()))}
    names = ["term", "tail", "head", "state", "slack", "difference", "bound", "certain"]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=names)
    by_label = {label: first[int(k)] for label, k in zip(labels, number, strict=False)}
    return Clusters(table, by_label, certificate.valid and bool(table["certain"].all()))


def _decide(certificate: Certificate, edge: EdgeBlock, u: Array, size: float) -> dict[str, Any]:
    difference = row_norm(edge.difference(certificate.w))
    m = len(difference)
    gap = certificate.gap if certificate.valid else np.inf
    radius = 2.0 * np.sqrt(gap / certificate.strong_convexity) if certificate.strong_convexity > 0 else np.inf
    if isinstance(edge.penalty, Zero):
        return _columns(np.full(m, "fused"), np.full(m, np.inf), difference, np.zeros(m), np.ones(m, dtype=bool))
    if not isinstance(edge.penalty, AbstractNorm):  # no kink at 0: nothing fuses but by chance
        apart = difference > 1e-9 * size  # below that it is rounding
        state = np.where(apart, "split", "undecided")
        return _columns(state, np.zeros(m), difference, difference + radius, difference > radius)
    slack = np.maximum(edge.weight - edge.penalty.dual_norm(u), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(slack > 0, gap / slack, np.inf)
        # a flow at capacity with a difference that the gap cannot explain: P moves by about c_e ||z_e||
        clear = edge.weight * difference > 10.0 * gap
    bound = np.minimum(bound, difference + radius)
    proven = difference > radius
    together = (bound <= NEGLIGIBLE * size) & ~proven
    state = np.where(
        together, "fused", np.where(proven | (clear & (difference > NEGLIGIBLE * size)), "split", "undecided")
    )
    return _columns(state, slack, difference, bound, together | proven)


def _columns(state: Array, slack: Array, difference: Array, bound: Array, certain: Array) -> dict[str, Any]:
    return {"state": state, "slack": slack, "difference": difference, "bound": bound, "certain": certain}
