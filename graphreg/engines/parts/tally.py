"""The ledger of a run on parts: that of isolated nodes, put together from what the nodes of each part send."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...network import Account, Arcs, arcs_of
from .part import Part


def joint_account(arcs: Arcs, parts: Sequence[Part], accounts: Sequence[Account], before: Account) -> Account:
    """Of one purpose: what the nodes of all parts sent, and what was sent before. Exchanges along every arc and sums
    are the same in all parts."""
    first = accounts[0]
    out = Account(before.exchanges + first.exchanges, before.sums + first.sums, before.summed + first.summed)
    if any(each.messages is not None for each in accounts):
        out.messages, out.numbers = np.zeros((2, len(arcs.source)), dtype=np.int64)
        key = arcs.source * np.int64(arcs.n) + arcs.target
        order = np.argsort(key)
        for part, account in zip(parts, accounts, strict=True):
            local, ids = arcs_of(part.form), part.whole.ids
            sends = np.flatnonzero(part.whole.own[local.source])
            known = ids[local.source[sends]] * np.int64(arcs.n) + ids[local.target[sends]]
            place = order[np.searchsorted(key, known, sorter=order)]
            if account.messages is not None and account.numbers is not None:
                out.messages[place], out.numbers[place] = account.messages[sends], account.numbers[sends]
    if any(each.away is not None for each in accounts):
        out.away = np.zeros(arcs.n, dtype=np.int64)
        for part, account in zip(parts, accounts, strict=True):
            if account.away is not None:
                out.away[part.nodes] = account.away[part.whole.own]
    return out
