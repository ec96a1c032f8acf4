"""What inference is asked about: a loss, or whatever holds one at its nodes (a model, a Problem, a Fit, a Solution)."""

from __future__ import annotations

from typing import Any

from ..errors import GraphError, TermError
from ..form import Form, build
from ..inputs import Graph
from ..terms import Model, TotalVariation
from ..terms.penalties import SquaredL2


def form_given(given: Any, what: str, graph: Graph | None = None) -> Form:
    """The canonical form of what was given, which has a loss at its nodes; of a loss or model on its own with the
    nodes of a graph."""
    form = form_in(given)
    if form is None:
        model = Model.of(given)
        form = build(model if graph is None else model + TotalVariation(graph, SquaredL2()))
    if not form.at_nodes or form.beside:
        names = ", ".join(name for _, name in form.terms())
        raise TermError(
            f"{what}: estimates of each node alone need losses at the nodes and no others; there are {names}"
        )
    return form


def form_in(given: Any) -> Form | None:
    """The form of a Problem or Solution, of the problem of a Fit, or itself; None where there is none."""
    for each in (given, getattr(given, "form", None), getattr(getattr(given, "problem", None), "form", None)):
        if isinstance(each, Form):
            return each
    return None


def graph_given(form: Form) -> Graph | None:
    """The one graph whose edges join the nodes of a form; None where there is none."""
    found = list[tuple[str, Graph]]()
    for block in form.between:
        if max(int(end.max()) for end in block.ends) < form.space.n_observed:  # else of a hierarchy
            found.append((block.name, Graph(form.observed, block.tail, block.head, block.base_weight)))
    if len({(graph.tail.tobytes(), graph.head.tobytes()) for _, graph in found}) > 1:
        names = ", ".join(name for name, _ in found)
        raise GraphError(f"there are several graphs, of {names}; say which edges to test: graph=...")
    return found[0][1] if found else None


def loss_given(given: Any, what: str) -> Any:
    """The loss at the nodes of a Problem, Fit or Solution; anything else as it is."""
    if form_in(given) is None:
        return given
    form = form_given(given, what)
    losses = [block.loss for block in form.at_nodes]
    if len(losses) > 1:
        names = ", ".join(name for _, name in form.terms())
        raise TermError(f"{what}: one loss at the nodes is needed; there are {names}")
    return losses[0]
