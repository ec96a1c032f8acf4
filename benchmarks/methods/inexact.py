"""Inexact node updates of `PrimalDual`: which errors are forgiven, and what a round then costs."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr

LOSSES = {"squared": gr.SquaredLoss, "logistic": gr.LogisticLoss, "Huber": gr.HuberLoss}
ROUNDS = 4000


def study_schedules() -> pd.DataFrame:
    """Chains of 8 regressions with 4 samples and 3 features each, l2 along the chain, strength 0.2; no polish.

    Asked: a relative gap of 1e-8 where errors are summable over the rounds (and for a fixed number of gradient steps,
    of which nothing is promised); a floor that falls with the tolerance where they are not.
    """
    schedules: dict[str, Any] = {
        "exact": None,
        "1 gradient step": 1,
        "3 gradient steps": 3,
        "1/(t+1)^2": 1.0,
        "0.9^t": lambda t: 0.9**t,
        "1/(t+1)": lambda t: 1.0 / (t + 1),
        "1e-2": lambda t: 1e-2,
        "1e-4": lambda t: 1e-4,
    }
    rows: list[dict[str, Any]] = []
    for loss, family in LOSSES.items():
        for name, inexact in schedules.items():
            run = _chain(family).solve(gr.PrimalDual(inexact=inexact, polish=False), gap=1e-8, rounds=ROUNDS)
            asked = "not summable: slower, or a floor" if name in ("1/(t+1)", "1e-2", "1e-4") else "<= 1e-8"
            rows.append(
                {
                    "loss": loss,
                    "tolerance": name,
                    "asked": asked,
                    "found": f"{run.certificate.relative_gap:.1e}",
                    "rounds": run.rounds,
                }
            )
    return pd.DataFrame(rows)


def _chain(loss: Any, n: int = 8) -> gr.Problem:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4 * n, 3)), rng.standard_normal(4 * n)
    y = (y > 0).astype(int) if loss is gr.LogisticLoss else y
    data = gr.NodeData.from_arrays(X, y, np.repeat(range(n), 4))
    return gr.Problem(loss(data) + 0.2 * gr.TotalVariation(nx.path_graph(n), gr.L2()))
