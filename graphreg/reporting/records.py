"""The checks of runs as the page draws them: both bounds by round and by bytes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.escaping import visible
from ..certificate import Certificate
from ..comparing import Comparison
from ..errors import ModelError
from ..running import Solution
from ..terms import Array

MOST = 400  # checks of a run; of more, the first and last and evenly spaced ones


def trace(solution: Solution) -> list[dict[str, Any]]:
    """One entry per check: round, bytes, relative gap, objective, lower bound (null where there is none) and whether
    they are certified: at a screen the objective is that of the iterate, as computed."""
    records = solution.trace.records
    if len(records) > MOST:
        records = [records[round(k * (len(records) - 1) / (MOST - 1))] for k in range(MOST)]
    return [
        {
            "round": each.round,
            "bytes": each.bytes,
            "gap": number(each.relative_gap),
            "primal": number(each.primal),
            "dual": number(each.dual) if each.certified else None,
            "certified": each.certified,
        }
        for each in records
    ]


def check(after: int, sent: int, found: Certificate) -> dict[str, Any]:
    """An entry like those of `trace`, from a certificate."""
    bounds = {"gap": number(found.relative_gap), "primal": number(found.primal), "dual": number(found.dual)}
    return {"round": after, "bytes": sent, **bounds, "certified": True}


def between_checks(solution: Solution, rounds: Array) -> Array:
    """Bytes sent by these rounds, on straight lines between the checks of a run."""
    known = [(0, 0), *((each.round, each.bytes) for each in solution.trace.records)]
    return np.rint(np.interp(rounds, *np.array(sorted(known), dtype=float).T))


def runs(solution: Solution, comparison: Comparison | None) -> list[dict[str, Any]]:
    """The run of the answer, and those of a comparison on the same problem; what solves another problem is left out."""
    found = [_run(solution.method, solution)]
    if comparison is None:
        return found
    certificate = solution.certificate
    if certificate.valid and comparison.bound > certificate.primal:
        raise ModelError(
            f"the comparison is of another problem: it has the lower bound {comparison.bound:.10g}, and this answer "
            f"the objective {certificate.primal:.10g}; compare on the problem of the answer"
        )
    others = {name: each for name, each in comparison.solutions.items() if each.own is None and each is not solution}
    found[0]["name"] += ", this answer"
    return found + [_run(name, each) for name, each in others.items()]


def _run(name: str, solution: Solution) -> dict[str, Any]:
    certificate = solution.certificate
    own = solution.own is not None
    end = {"gap": number(certificate.relative_gap), "primal": number(certificate.primal)}
    return {
        "name": visible(name),
        "status": solution.status,
        "trace": [] if own else trace(solution),
        "end": {**end, "dual": number(certificate.dual)} if certificate.valid else None,
    }


def number(value: float) -> float | None:
    """A number for JSON, which has neither infinities nor nan."""
    return float(value) if math.isfinite(value) else None
