"""The shared parts of the tests of bad input: a small frame, terms on it, and `refused`.

Every mistake has an error of its own: its type, the guilty part by name, and what to do.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr

NODES = ["a", "b", "c"]
CHAIN = nx.path_graph(NODES)
CLUSTERS = {"p": ["a", "b"], "q": ["c"]}


def make_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, 3)), columns=["rain", "temp", "level"])
    return frame.assign(site=np.repeat(NODES, 4), flood=(frame["level"] > 0).astype(int))


FRAME = make_frame()


def read(frame=FRAME, target="level", features=("rain", "temp"), **more):
    return gr.NodeData.from_frame(frame, node="site", target=target, features=features, **more)


DATA = read(intercept=True)
LOSS = gr.SquaredLoss(DATA)
FUSION = gr.TotalVariation(CHAIN, gr.L2())
RIDGE = gr.NodePenalty(gr.SquaredL2())
NUMBERED = gr.NodeData.from_dict({i: (np.eye(2), [0.0, 1.0]) for i in range(3)})
QUOTED = gr.NodeData.from_dict({str(i): (np.eye(2), [0.0, 1.0]) for i in range(3)})


def targets(*y):
    """Data on the node 'a' with these targets."""
    return gr.NodeData.from_arrays(np.ones((len(y), 1)), y, ["a"] * len(y))


def with_weight(weight):
    graph = nx.path_graph(NODES)
    graph.edges["a", "b"]["weight"] = weight
    return graph


def spoilt(column, value):
    frame = FRAME.astype({column: object})
    frame.loc[5, column] = value
    return frame


def problem(*terms):
    return gr.Problem(LOSS + sum(terms))


def penalised(penalty=None, **more):
    """A problem with a node penalty, which by default acts on the coordinates rain and temp."""
    return problem(gr.NodePenalty(penalty or gr.L2(), **more))


def refused(build, error, *parts):
    """``build`` raises exactly ``error``, and the message has all the parts."""
    with pytest.raises(error) as caught:
        build()
    assert type(caught.value) is error
    for part in parts:
        assert part in str(caught.value)
    return caught.value


def refusals(cases):
    return pytest.mark.parametrize(("build", "error", "parts"), [(b, e, p) for b, e, *p in cases.values()], ids=cases)
