"""The messages of the exact route while it takes long."""

from __future__ import annotations

import io
import os
import signal
import sys

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import graphreg as gr

ROUGH = "is derived, and likely too rough for a smaller gap"


class Standing(io.StringIO):
    """Standard error, with Ctrl-C as soon as it says so: the rest of the run would take all of its time."""

    def write(self, text):
        first, written = ROUGH not in self.getvalue(), super().write(text)
        if first and ROUGH in text:
            os.kill(os.getpid(), signal.SIGINT)
        return written


@pytest.mark.parametrize(("gap", "said"), [(1e-6, False), (1e-14, True)])
def test_a_derived_conjugate_that_is_too_rough_is_named_while_the_run_goes_on(gap, said, monkeypatch):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((24, 2)), rng.standard_normal(24), np.repeat(range(4), 6))
    penalty = gr.Penalty.from_cvxpy(
        lambda z: cp.norm(z, 3) + cp.sum(cp.logistic(z) + cp.logistic(-z) - 2 * np.log(2.0))
    )
    problem = gr.Problem(gr.SquaredLoss(data) + 0.2 * gr.TotalVariation(nx.path_graph(4), penalty))
    monkeypatch.setattr(sys, "stderr", error := Standing())
    found = problem.solve(gap=gap, seconds=6.0, progress=True, on_failure="return")
    assert found.status == ("interrupted" if said else "certified")
    assert (ROUGH in error.getvalue()) == said
