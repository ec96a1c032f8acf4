"""The whole graph in one process: values of neighbours are at hand, and the ledger says what would have been sent."""

from __future__ import annotations

import numpy as np

from ..form import Form
from ..methods.ledger import Ledger
from ..terms.records import Array


class InProcess:
    """Runs a method on the whole graph and counts the messages of its decentralised execution.

    An exchange is one message each way across every pair of neighbours, of the coordinates that their edges couple.
    A reduction is a sum up and down a spanning tree: two messages per node but one.
    """

    def __init__(self, form: Form, ledger: Ledger) -> None:
        self.ledger = ledger
        self.n = form.n
        self.messages, self.floats = _traffic(form)
        self.purpose = "method"

    def exchange(self, values: Array) -> Array:
        self.ledger.add(self.purpose, self.messages, 8 * self.floats)
        return values

    def reduce(self, values: Array) -> Array:
        total = values.sum(axis=0)
        purpose = "adaptation" if self.purpose == "method" else self.purpose
        self.ledger.add(purpose, 2 * (self.n - 1), 16 * (self.n - 1) * int(np.size(total)))
        return total


def _traffic(form: Form) -> tuple[int, int]:
    """Messages and numbers of one exchange: both directions of each pair of neighbours, the union of its features."""
    pairs: list[Array] = []
    coupled: list[Array] = []
    for edge in form.edges:
        if not edge.ground:
            pairs.append(edge.tail * np.int64(form.n) + edge.head)
            chosen = np.zeros(form.d, dtype=bool)
            chosen[slice(None) if edge.features is None else edge.features] = True
            coupled.append(np.broadcast_to(chosen, (len(edge.tail), form.d)))
    if not pairs:
        return 0, 0
    key, place = np.unique(np.concatenate(pairs), return_inverse=True)
    if len(pairs) == 1:
        return 2 * len(key), 2 * len(key) * int(coupled[0][0].sum())
    union = np.zeros((len(key), form.d), dtype=bool)
    np.logical_or.at(union, place, np.concatenate(coupled))
    return 2 * len(key), 2 * int(union.sum())
