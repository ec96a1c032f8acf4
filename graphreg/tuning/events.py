"""What comes together and what splits along a path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..certificate import Clusters
from ..tables import Table
from ..terms import Array

TOGETHER = {"near": "together", "fused": "together"}
COLUMNS = ("strength_from", "strength_to", "term", "tail", "head", "event", "certain")
ASSUMED = (
    "of the strengths that were solved: between two of them an edge may fuse and split again unseen",
    "certain: fused at one end and split at the other, both proved; an undecided edge keeps the last decided state",
)


def events(strengths: Array, found: Sequence[Clusters]) -> Table:
    """What happens to edges as the strength grows: see `Path.events`.

    An event is a change between two decided states. An edge that is undecided at some strengths keeps its last decided
    state until it is decided again, and the event then spans the strengths between.
    """
    edges = found[0].edges
    state = np.full(len(edges), "undecided", dtype=object)  # the last decided one, where and how surely it was seen
    seen, sure = np.full(len(edges), np.nan), np.zeros(len(edges), dtype=bool)
    parts: list[pd.DataFrame] = []
    for strength, clusters in zip(strengths, found, strict=True):
        now = clusters.edges["state"].replace(TOGETHER).to_numpy(dtype=object)
        certain = clusters.edges["certain"].to_numpy(dtype=bool)
        decided = now != "undecided"
        rows = np.flatnonzero(decided & (state != "undecided") & (now != state))
        part = edges.iloc[rows][["term", "tail", "head"]]
        both = sure[rows] & certain[rows]
        parts.append(part.assign(strength_from=seen[rows], strength_to=strength, event=now[rows], certain=both))
        state, seen, sure = (
            np.where(decided, new, old) for new, old in ((now, state), (strength, seen), (certain, sure))
        )
    table = pd.concat(parts, ignore_index=True).reindex(columns=list(COLUMNS))
    return Table.of(table, "what comes together and what splits as the strength grows", ASSUMED)
