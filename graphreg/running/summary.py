"""Readings of an answer: predictions, a page, a graph of networkx."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd

from ..base.display import Html, facts, title
from ..base.messages import did_you_mean
from ..base.tables import WIDTH, LabelledTable, PrintedTable, ResultWithAssumptions, assumed_html
from ..certificate import OWN_TERMS
from ..checks import one_of
from ..errors import DataError, TermError
from ..form import Form, SampleBlock
from ..inputs import places_of
from ..terms import Array, predictors
from .statuses import in_other_units

if TYPE_CHECKING:
    from .solution import Solution

BOUNDS = (
    "the bounds hold for the data and the model as they are stored, whatever rounding did; they say how far the "
    "objective is from the optimum, and nothing of how the data came about"
)
NONE = "nothing bounds the optimum: coefficients, flows and clusters are those of the best point that was met"
SPREAD = "the columns describe how coefficients vary over the nodes; they are no standard errors (see gr.inference)"

_KIND = one_of("response", "link", "class")
KIND = replace(_KIND, hint=lambda kind: _KIND.hint(kind) or "; probabilities are the response of a classification loss")


@dataclass(frozen=True)
class Summary(ResultWithAssumptions):
    """The summary of an answer; ``print`` shows it.

    Attributes
    ----------
    facts : dict
        Text by name: problem, model, method, status, work, objective, certificate, clusters and so on.
    coefficients : DataFrame
        For each coordinate mean, std, min, median and max over the user's nodes, and how many are exactly 0.
    """

    facts: dict[str, str]
    coefficients: pd.DataFrame

    def _lines(self) -> Sequence[str | PrintedTable]:
        indent = max(map(len, self.facts)) + 2
        lines: list[str | PrintedTable] = []
        for name, text in self.facts.items():
            lines += textwrap.wrap(f"{name:{indent}}{text}", WIDTH, subsequent_indent=" " * indent)
        return [*lines, "", self._table(), ""]

    def __repr__(self) -> str:
        return str(self)

    def _table(self) -> PrintedTable:
        return PrintedTable(self.coefficients, float_format="{:.4g}".format)

    def _html(self) -> Iterable[Html]:
        method, _, _ = self.facts["method"].partition(",")
        status, _, _ = self.facts["status"].partition(".")
        yield title(f"{method}: {status}")
        yield facts(self.facts)
        yield self._table().to_html()
        yield assumed_html(self.assumed)


def summary(solution: Solution) -> Summary:
    """The summary of a solution."""
    form, certificate = solution.form, solution.certificate
    latent = f" and {len(form.latent)} latent ones" if form.latent else ""
    samples, rows = sum(b.count for b in form.samples), sum(edge.count for edge in form.edges if edge.map.edges is None)
    edges = sum(edge.count for edge in form.edges) - rows
    counts = [f"{edges:,} edges (those of node penalties included)"] if edges or not rows else []
    counts += [f"{rows:,} rows of other terms"] if rows else []
    sizes = f"{len(solution.labels):,} nodes{latent}, {form.d} coordinate{'s' * (form.d > 1)} each; "
    facts = {
        "problem": f"{sizes}{samples:,} samples, {', '.join(counts)}",
        "model": " + ".join(_terms(form)),
        "method": f"{solution.method}{f', seed {solution.seed}' if solution.rounds else ''}",
        "status": f"{solution.status}. {solution.message}",
        "work": f"{solution.ledger.work(solution.rounds)}{solution.seconds:.3g} s",
        "objective": f"{solution.objective:.10g}",
    }
    if certificate.valid:
        facts["certificate"] = f"{certificate.dual:.10g} <= optimum <= {certificate.primal:.10g}"
        facts["gap"] = f"{certificate.gap:.3g}, relative {certificate.relative_gap:.3g}"
    if certificate.distance < float("inf"):
        distance = f"at most {certificate.distance:.3g} from the optimal parameters, over all nodes"
        facts["distance"] = f"{distance}{form.space.unit}"
    infeasible = solution.status == "infeasible"
    if form.clustered and not infeasible:
        facts["clusters"] = str(solution.clusters())
    if solution.free:
        facts["free nodes"] = f"{len(solution.free):,} without a loss in their component, set to 0"
    if lone := len(solution.unreached) - len(solution.free):
        facts["unreached nodes"] = f"{lone:,} that no data reach, where penalties alone decide"
    if units := in_other_units(form):
        facts["units"] = units
    own = [certificate.note] if certificate.scope == OWN_TERMS else []
    bounds = (BOUNDS, *own) if certificate.valid else (NONE,) * (not infeasible)
    return Summary(facts, _coefficients(solution), assumed=(*bounds, SPREAD))


def _terms(form: Form) -> Iterable[str]:
    """The terms in a word each with their strengths, and how many there are of a kind."""
    names = [name if float(strength) == 1.0 else f"{strength.text()} {name}" for strength, name in form.terms()]
    return [name if times == 1 else f"{times} x {name}" for name, times in Counter(names).items()]


def _coefficients(solution: Solution) -> pd.DataFrame:
    coef = np.full((1, solution.form.d), np.nan) if solution.status == "infeasible" else solution.coef
    frame = pd.DataFrame(solution.form.space.in_units(coef))
    columns = {name: getattr(frame, name)() for name in ("mean", "std", "min", "median", "max")}
    zeros = (frame == 0.0).sum()
    names = pd.Index(solution.form.space.names, name="coordinate")
    return LabelledTable(pd.DataFrame(columns | {"zeros": zeros}).set_axis(names))


# ---- as a graph ------------------------------------------------------------------------------------------------------
def to_networkx(solution: Solution) -> nx.Graph:
    """The graph of a solution, see `Solution.to_networkx`."""
    form = solution.form
    for edge in form.unlike_edges:
        raise TermError(f"a graph of networkx has nodes and edges, and {edge.name} has rows of another kind")
    number = solution.clusters().labels
    names, free = form.space.names, set(solution.free)
    graph: nx.Graph = nx.Graph()
    for label, w, alone in zip(form.labels, solution.certificate.w, form.silent, strict=True):
        cluster, more = number.get(label), {"free": label in free, "unreached": bool(alone)}
        graph.add_node(label, coef=_by_name(names, w), cluster=cluster, latent=cluster is None, **more)
    for (tail, head), flow in solution.flows.items():
        if head is None:
            graph.nodes[tail]["to_ground"] = _by_name(names, flow)
        else:
            graph.add_edge(tail, head, tail=tail, head=head, flow=_by_name(names, flow), weight=0.0, states=[])
    for edge in form.edges:
        if not edge.ground:
            for tail, head, c in zip(edge.tail, edge.head, edge.weight, strict=True):
                graph.edges[form.labels[tail], form.labels[head]]["weight"] += float(c)
    found = solution.clusters().edges
    for term, tail, head, state in zip(*(found[name] for name in ("term", "tail", "head", "state")), strict=True):
        graph.edges[tail, head]["states"].append((term, state))
    return graph


def _by_name(names: Sequence[Hashable], values: Array) -> dict[Hashable, float]:
    return dict(zip(names, values.tolist(), strict=True))


# ---- predictions for new rows ----------------------------------------------------------------------------------------
def predicted(form: Form, coef: Array, frame: Any, kind: str) -> pd.Series | pd.DataFrame:
    """The predictions of coefficients (n, d) for the rows of a frame, see `Solution.predict`."""
    KIND(kind, "kind", DataError)
    blocks = [block for block in form.at_nodes if block.X is not None]
    if not form.at_nodes:
        raise DataError(
            "there are no data at nodes that would say what features a frame has; rows are those of table()"
        )
    if not blocks:
        raise DataError("a MeanLoss has no predictors; its predictions are the rows of table()")
    labels, X, offset = blocks[0].loss.data.read(frame)
    assert X is not None  # as in the block
    node = _nodes_of(form, labels)
    link = predictors(X[:, None, :], coef[node])[:, 0]  # (M,), or (M, classes)
    link += offset if link.ndim == 1 else offset[:, None]
    values = link if kind == "link" else _answers(form, blocks, kind, link, node)
    index = getattr(frame, "index", None)  # which frames of pandas have
    if values.ndim == 1:
        return pd.Series(values, index=index)
    classes = [name[1] for name in form.space.coordinates[: values.shape[1]]]
    return pd.DataFrame(values, index=index, columns=pd.Index(classes, name="class", tupleize_cols=False))


def _answers(form: Form, blocks: Sequence[SampleBlock], kind: str, link: Array, node: Array) -> Array:
    """The responses that the loss at each row's node makes of the link; where all nodes have the same family, also
    at nodes without data."""
    owner = np.full(form.n, -1)
    for k, block in enumerate(blocks):
        owner[block.node] = k
    if len({type(block.loss) for block in blocks}) == 1:
        owner[owner < 0] = 0
    if (owner[node] < 0).any():
        label = form.labels[int(node[owner[node] < 0][0])]
        families = ", ".join(dict.fromkeys(block.loss.called() for block in blocks))
        raise DataError(
            f"the node {label!r} has no data, which would tell whose of {families} is its loss; predict the 'link'"
        )
    answer = [block.loss.classify if kind == "class" else block.loss.response for block in blocks]
    present = np.unique(owner[node]) if len(node) else [0]
    places = [np.flatnonzero(owner[node] == k) for k in present]
    together = np.concatenate([answer[k](link[rows]) for k, rows in zip(present, places, strict=True)])
    return together[np.argsort(np.concatenate(places))]


def _nodes_of(form: Form, labels: Sequence[Hashable]) -> Array:
    node = places_of(labels, form.space.index)
    if (node < 0).any():
        row = int(np.argmin(node))
        others = len({labels[int(k)] for k in np.flatnonzero(node < 0)}) - 1
        more = f", and others are at {others:,} more that are none" if others else ""
        said = did_you_mean(labels[row], form.space.index)
        raise DataError(
            f"row {row} is at {labels[row]!r}, which is not a node{said or more}; leave such rows out, or give the "
            "graph the node with its edges: without data it follows its neighbours"
        )
    return node
