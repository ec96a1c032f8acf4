"""An answer on a page, and as a graph of networkx."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import networkx as nx
import pandas as pd

from ..certificate import OWN_TERMS
from ..display import Html, facts, title
from ..form import Form
from ..tables import WIDTH, LabelledTable, Printed, Stated, assumed_html
from ..terms import Array

if TYPE_CHECKING:
    from .solution import Solution

BOUNDS = (
    "the bounds hold for the data and the model as they are stored, whatever rounding did; they say how far the "
    "objective is from the optimum, and nothing of how the data came about"
)
NONE = "nothing bounds the optimum: coefficients, flows and clusters are those of the best point that was met"
SPREAD = "the columns describe how coefficients vary over the nodes; they are no standard errors (see gr.inference)"


@dataclass(frozen=True)
class Summary(Stated):
    """What is known of an answer; ``print`` shows it.

    Attributes
    ----------
    facts : dict
        Text by name: problem, model, method, status, work, objective, certificate, clusters and so on.
    coefficients : DataFrame
        For each coordinate mean, std, min, median and max over the user's nodes, and how many are exactly 0.
    """

    facts: dict[str, str]
    coefficients: pd.DataFrame

    def _lines(self) -> Sequence[str | Printed]:
        indent = max(map(len, self.facts)) + 2
        lines: list[str | Printed] = []
        for name, text in self.facts.items():
            lines += textwrap.wrap(f"{name:{indent}}{text}", WIDTH, subsequent_indent=" " * indent)
        return [*lines, "", self._table(), ""]

    def __repr__(self) -> str:
        return str(self)

    def _table(self) -> Printed:
        return Printed.of(self.coefficients, float_format="{:.4g}".format)

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
    samples, edges = sum(len(b.node) for b in form.samples), sum(len(e.tail) for e in form.edges)
    sizes = f"{len(solution.labels):,} nodes{latent}, {form.d} coordinate{'s' * (form.d > 1)} each; "
    facts = {
        "problem": f"{sizes}{samples:,} samples, {edges:,} edges (those of node penalties included)",
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
        facts["distance"] = f"at most {certificate.distance:.3g} from the optimal parameters, over all nodes"
    facts["clusters"] = str(solution.clusters())
    if solution.free:
        facts["free nodes"] = f"{len(solution.free):,} without a loss in their component, set to 0"
    own = [certificate.note] if certificate.scope == OWN_TERMS else []
    bounds = (BOUNDS, *own) if certificate.valid else (NONE,)
    return Summary(facts, _coefficients(solution), assumed=(*bounds, SPREAD))


def _terms(form: Form) -> Iterable[str]:
    """The terms in a word each with their strengths, and how many there are of a kind."""
    parts = [(block.strength, block.loss.called()) for block in form.samples]
    parts += [(edge.strength, edge.name) for edge in form.edges]
    names = [name if float(strength) == 1.0 else f"{strength.text()} {name}" for strength, name in parts]
    return [name if times == 1 else f"{times} x {name}" for name, times in Counter(names).items()]


def _coefficients(solution: Solution) -> pd.DataFrame:
    frame = pd.DataFrame(solution.coef)
    columns = {name: getattr(frame, name)() for name in ("mean", "std", "min", "median", "max")}
    zeros = (frame == 0.0).sum()
    names = pd.Index(solution.form.space.names, name="coordinate")
    return LabelledTable(pd.DataFrame(columns | {"zeros": zeros}).set_axis(names))


# ---- as a graph ------------------------------------------------------------------------------------------------------
def to_networkx(solution: Solution) -> nx.Graph:
    """The graph of a solution, see `Solution.to_networkx`."""
    form, number = solution.form, solution.clusters().labels
    names, free = form.space.names, set(solution.free)
    graph: nx.Graph = nx.Graph()
    for label, w in zip(form.labels, solution.certificate.w, strict=True):
        cluster = number.get(label)
        graph.add_node(label, coef=_by_name(names, w), cluster=cluster, latent=cluster is None, free=label in free)
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
