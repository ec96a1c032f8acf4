"""Makers of what several tests need: samples, chains, weighted graphs, interruptions, thinned sweeps."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest

import graphreg as gr

CLASSES = (gr.LogisticLoss, gr.HingeLoss, gr.SquaredHingeLoss)  # whose targets are 0 and 1


# ---- problems --------------------------------------------------------------------------------------------------------
def noise(n=8, m=4, d=3, *, seed=0, scale=1.0, shift=0.0, binary=False, labels=None):
    """m samples at each of n nodes, features and targets standard normal; ``shift`` moves the first number alone."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n * m, d)), scale * rng.standard_normal(n * m)
    X[0, 0] += shift
    node = [(range(n) if labels is None else labels)[k // m] for k in range(n * m)]
    return gr.NodeData.from_arrays(X, (y > 0).astype(int) if binary else y, node)


def chain(
    n=8,
    loss=gr.SquaredLoss,
    penalty=None,
    strength=0.2,
    features=None,
    *,
    d=3,
    seed=0,
    shift=0.0,
    labels=None,
    weight=1.0,
    **more,
):
    """A path of n nodes with 4 samples of d features each; the first edge has the weight."""
    data = noise(n, d=d, seed=seed, shift=shift, binary=loss in CLASSES, labels=labels)
    graph = nx.path_graph(n if labels is None else labels)
    for edge in list(graph.edges)[:1]:
        graph.edges[edge]["weight"] = weight
    edges = gr.TotalVariation(graph, penalty or gr.L2(), features=features)
    return gr.Problem(loss(data, **more) + strength * edges)


def weighted(graph, seed=0, low=0.2, high=3.0):
    """The graph, with a random weight on every edge."""
    rng = np.random.default_rng(seed)
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = float(rng.uniform(low, high))
    return graph


# ---- runs ------------------------------------------------------------------------------------------------------------
def interrupt(*arguments, **options):
    """A callback, or what stands in for a function, that Ctrl-C breaks off."""
    raise KeyboardInterrupt


def named(value):
    """The name of a case: a method, a term or a model by its name."""
    return getattr(value, "label", None) or getattr(value, "__name__", None)


# ---- sweeps ----------------------------------------------------------------------------------------------------------
def thinned(*axes: Iterable[Any], every: int) -> list[Any]:
    """The table of all cells, for ``parametrize``; without ``--whole`` every so-manieth diagonal of it, so that each
    row and each column of a large table is met. With one axis: every so-manieth."""
    table = []
    for cell in product(*(list(enumerate(axis)) for axis in axes)):
        places, values = zip(*cell, strict=True)
        table.append(pytest.param(*values, marks=() if sum(places) % every == 0 else pytest.mark.whole))
    return table
