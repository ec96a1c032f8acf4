"""The shared parts of the tests of solutions: a frame of three nodes, and how it is read."""

from __future__ import annotations

import networkx as nx

import graphreg as gr

NODES = ["a", "b", "c"]
CHAIN = nx.path_graph(NODES)
METHODS = [gr.Exact(), gr.PrimalDual(), gr.ADMM()]


def read(frame, target="level", **more):
    return gr.NodeData.from_frame(frame, node="site", target=target, features=["rain", "temp"], intercept=True, **more)


def means(*values):
    """One target at each of the nodes 0, 1, ..."""
    return gr.NodeData.from_dict({i: (None, [value]) for i, value in enumerate(values)})


RIDGE = 1e-2 * gr.NodePenalty(gr.SquaredL2())
