"""What an edge block is, is said by its role; its name is for printing."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.lowering.arcs import arcs_of


def data_of(labels):
    return gr.NodeData.from_dict({label: (None, [float(k)]) for k, label in enumerate(labels)})


def tower(levels):
    """Nodes 0 to 3 in two clusters, under so many levels of edges."""
    tree = {"low": [0, 1], "high": [2, 3]}
    for k in range(levels - 2):
        tree = {f"above {k}": tree}
    return gr.Hierarchy(tree, [1.0] * levels)


@pytest.mark.parametrize("levels", [2, 3, 9, 10, 11, 20])
def test_the_ledger_knows_the_levels_of_a_hierarchy_of_any_height(levels):
    form = gr.Problem(gr.MeanLoss(data_of(range(4))) + tower(levels)).form
    arcs = arcs_of(form)
    for k, level in enumerate(arcs.level):
        leaf = arcs.source[k] < form.space.n_observed
        assert level == ("within clusters" if leaf else "between clusters"), form.labels[arcs.source[k]]
