"""The study of `graphreg.certify`: what is proved of problems of CVXPY, and how right solvers' own answers are."""

from __future__ import annotations

from . import decisions, shapes, statistics, wrong
from .cases import Case, Data


def cases(seed: int = 0) -> dict[str, Case]:
    """All problems by name."""
    fields = [field for part in (statistics, decisions, shapes, wrong) for field in part.FIELDS]
    found = [case for field in fields for case in field(Data(seed))]
    assert len({case.name for case in found}) == len(found)
    return {case.name: case for case in found}
