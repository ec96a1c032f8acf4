"""The problem that the parameters of an estimator describe, from names and objects of the library."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import catalogue
from ..base.messages import near
from ..errors import GraphError, TermError
from ..inputs import Graph, NodeData, is_frame, is_networkx
from ..problem import Problem
from ..terms import Model, NodePenalty, Parameter, TotalVariation
from ..terms.losses import AbstractLoss
from ..terms.penalties import SquaredL2

SHOWN = 4  # edges, or rows of a table of weights, that an estimator is printed with
ALL = "all"  # the node of every row where nothing is said of nodes


def named(kind: str, value: Any) -> Any:
    """The loss or penalty of graphreg that a name such as "L2" stands for; anything else as it is."""
    if not isinstance(value, str):
        return value
    known = {name: getattr(catalogue, name) for name in catalogue.__all__}
    known = {name: each for name, each in known.items() if issubclass(each, catalogue.BASES[kind])}
    if value not in known:
        raise TermError(f"{kind}={value!r} is no {kind} of graphreg; {near(value, list(known))}")
    return known[value]


def graph_of(graph: Any) -> Graph:
    """The graph that an estimator is given: what `Graph.of` takes, a list of edges, or a DataFrame of weights."""
    if is_frame(graph):
        if list(graph.index) != list(graph.columns):
            raise GraphError(
                "the frame of a graph holds the weight of each pair, so that its index and columns must be alike; of a "
                "frame with a row per edge give .to_numpy().tolist()"
            )
        return Graph.from_sparse(graph.to_numpy(), labels=list(graph.index))
    known = isinstance(graph, (Graph, np.ndarray, str)) or is_networkx(graph) or sp.issparse(graph)
    return Graph.of(graph) if known or not isinstance(graph, Iterable) else Graph.from_edges(graph)


class _Printed(str):
    """Text that is printed as it is."""

    def __repr__(self) -> str:
        return str(self)


def brief(graph: Any) -> Any:
    """A graph as an estimator is printed with: of many edges the first two, of a table of weights its shape."""
    given: Any = graph
    if isinstance(graph, (list, tuple)) and len(given) > SHOWN:
        return _Printed(f"[{given[0]!r}, {given[1]!r}, ... {len(given):,} edges]")
    if (isinstance(graph, np.ndarray) or is_frame(graph)) and len(given) > SHOWN:
        return _Printed(f"<{type(given).__name__} of {' x '.join(map(str, given.shape))}>")
    return graph


def loss_of(loss: Any, data: NodeData) -> AbstractLoss:
    """A loss from its name, its class or a function of the data."""
    make = named("loss", loss)
    made = make(data) if callable(make) else make
    if not isinstance(made, AbstractLoss) or made.data is not data:
        raise TermError(
            f"loss must be the name or class of a loss, or a function that makes one of the data, got {loss!r}; for "
            "options write functools.partial(gr.HuberLoss, delta=0.5)"
        )
    return made


def problem_of(loss: AbstractLoss, graph: Any, penalty: Any, strength: float, ridge: float) -> Problem:
    """Loss + strength * TotalVariation(graph, penalty) + ridge * NodePenalty(SquaredL2()); the strength is a Parameter
    of that name."""
    model = Model.of(loss)
    if graph is not None and strength > 0:
        penalty = named("penalty", penalty)
        edges = TotalVariation(graph_of(graph), penalty() if isinstance(penalty, type) else penalty)
        model += Parameter(strength, "strength") * edges if edges.takes_strength() else edges
    return Problem(model + ridge * NodePenalty(SquaredL2()) if ridge > 0 else model)


def pooled(loss: AbstractLoss, ridge: float, n: int) -> Problem:
    """The same problem with one parameter vector for all n nodes: samples weigh what they weigh at their nodes, and
    each node has its ridge."""
    data = replace(loss.data, labels=(ALL,), node=np.zeros_like(loss.data.node), weights=loss.scales())
    common = replace(loss, data=data, scale="sum", **loss.coding())
    return problem_of(common, None, None, 0.0, n * ridge)
