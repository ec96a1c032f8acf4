"""The methods for every loss and penalty: certified gaps, with default options and with those of the papers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import graphreg as gr

from .fedadmm import problem_classes

if TYPE_CHECKING:
    import pandas as pd


def study_certified() -> pd.DataFrame:
    """The certified relative gap of PrimalDual and ADMM, adapting and as the papers have them; no polish."""
    import pandas as pd

    methods = (
        *(gr.PrimalDual(polish=False), gr.PrimalDual(balance=1.0, relaxation=1.0)),
        *(gr.ADMM(polish=False), gr.ADMM(rho=1.0, relaxation=1.0)),
    )
    rows: list[tuple[str, str, float, float, int, int]] = []
    for name, problem in problem_classes().items():
        for method in methods:
            run = problem.solve(method, gap=1e-8, rounds=100_000)
            sent = run.ledger.messages["method"]
            rows.append((name, method.label, 1e-8, run.certificate.relative_gap, run.rounds, sent))
    return pd.DataFrame(rows, columns=["problem", "method", "asked", "found", "rounds", "messages"])
