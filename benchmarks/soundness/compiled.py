"""Answers beside a second verifier: the problem compiled to CVXPY and certified by `graphreg.certify`, which shares no
arithmetic of bounds with the problem's own certificate. Two intervals that do not meet are two proofs of which one is
false.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

import graphreg as gr
from graphreg.datasets import random_problem

LARGEST = 1500  # rows or columns of the conic form
GAP = 1e-7


@dataclass
class Row:
    """The two intervals, and why there is one only."""

    seed: int
    loss: str = ""
    penalty: str = ""
    status: str = ""
    conic: str = ""
    ours: tuple[float, float] = (-np.inf, np.inf)
    theirs: tuple[float, float] = (-np.inf, np.inf)
    message: str = ""
    false: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


def examine(seed: int) -> Row:
    began, row = time.perf_counter(), Row(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _examine(seed, row)
        except Exception:  # noqa: BLE001  (whatever it is, it belongs into the table)
            row.raised.append(traceback.format_exc(limit=-3))
    row.seconds = time.perf_counter() - began
    return row


def _examine(seed: int, row: Row) -> None:
    drawn = random_problem(seed, hard=seed % 2 == 1)
    row.loss, row.penalty = drawn.loss, drawn.penalty
    solution = drawn.problem.solve(gap=GAP, progress=False, on_failure="return")
    own = solution.certificate
    row.status = solution.status
    if own.scope == "global":
        row.ours = own.dual, own.primal
    posed = drawn.problem.compile().cvxpy
    if max(posed.get_problem_data("CLARABEL")[0]["A"].shape) > LARGEST:
        row.conic = "too large"
        return
    proved = gr.certify(posed, solver="CLARABEL")
    row.conic, row.theirs, row.message = proved.status, (proved.lower, proved.upper), proved.message
    low, high = max(row.ours[0], row.theirs[0]), min(row.ours[1], row.theirs[1])
    if low > high and not row.conic.endswith("as stored"):  # what is stored is rounded, and our own is not
        row.false.append(f"{row.ours} and, compiled, {row.theirs}: apart by {low - high:.3g}")


def counted(rows: Sequence[dict[str, Any]]) -> list[str]:
    """How many have both intervals, and how wide these are beside each other."""
    both, ratios = [row for row in rows if row["conic"] == "certified" and isfinite(row["ours"][0])], list[float]()
    for row in both:
        ours, theirs = (high - low for low, high in (row["ours"], row["theirs"]))
        ratios += [theirs / ours] if ours > 0 else []
    statuses = Counter(row["conic"] for row in rows)
    apart = sum(bool(row["false"]) for row in rows)
    lines = [
        f"{len(rows)} problems, {len(both)} with two certificates, of which {apart} do not meet",
        "compiled: " + ", ".join(f"{n} {what or 'raised'}" for what, n in statuses.most_common()),
    ]
    if ratios:
        low, middle, most = np.quantile(ratios, [0.0, 0.5, 1.0])
        lines.append(f"width of the second over that of the first: median {middle:.2g}, from {low:.1g} to {most:.1g}")
    return lines
