"""Arguments of Faults that there are not, and where its warnings point."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import ArgumentError, MethodWarning


def test_an_argument_that_faults_do_not_have():
    with pytest.raises(ArgumentError, match="Faults has no argument 'loss'; it has 'drop', 'delay', 'duplicate'"):
        gr.Faults(loss=0.1)
    with pytest.raises(ArgumentError, match="Faults has no argument 'dropp'; did you mean 'drop'"):
        gr.Faults(dropp=0.1)


def test_a_warning_points_at_the_line_of_the_user():
    data = gr.NodeData.from_arrays(np.eye(4), np.arange(4.0), [0, 1, 2, 3])
    problem = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(4), gr.L2()))
    engine = gr.Actors(processes=False, faults=gr.Faults(drop=0.1))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        problem.solve(gr.ADMM(), rounds=2, engine=engine)
    lossy = [each for each in said if "lost messages" in str(each.message)]
    assert [(each.filename, each.category) for each in lossy] == [(__file__, MethodWarning)]
