"""The commands on graphs: which edges to trust, and whether clusters are guaranteed to be recovered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import exits
from .outputs import Outputs, with_outputs
from .program import FILE, choice, main, with_model
from .strengths import seconds_option

if TYPE_CHECKING:
    from ..inputs import Graph
    from ..model_file import ModelFile


@main.command(short_help="Which edges join nodes that are alike, by tests.")
@with_model
@click.option("--all-pairs", is_flag=True, help="Test all pairs of nodes, in place of the edges of the graph.")
@click.option("--graph", "name", metavar="NAME", help="Which [[graph]] of the model file, where there are several.")
@choice("--covariance", "auto", "chow", "robust", "model", "HC0", "HC1", "HC2", "HC3", "HC4")
@choice("--correction", "bonferroni", "bh", "none", help="For testing many edges at once.")
@click.option("--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05)
@click.option("--feature", "features", metavar="NAME", multiple=True, help="Compare this alone; repeatable.")
@seconds_option
@with_outputs("the graph with the edges that were removed")
def edges(read: Any, to: Outputs, all_pairs: bool, name: str | None, features: tuple[str, ...], **asked: Any) -> int:
    """Test for every edge whether its two nodes have the same parameters, and keep the edges where nothing speaks
    against it.

    Each node is fitted alone, by its loss and its node penalties in the model file.
    """
    import graphreg as gr

    from ..plots import plot_selection
    from ..terms.losses import AbstractLoss

    graph = None if all_pairs else _graph(read, name)
    if asked["correction"] == "none":
        asked["correction"] = None
    alone = [each for each in read.problem.model.terms if isinstance(each[1], (AbstractLoss, gr.NodePenalty))]
    found = gr.inference.select_edges(gr.Model(tuple(alone)), graph, features=features or None, **asked)
    rows = found.tests.to_dict("records")
    undrawn = to.deliver(
        found,
        found.tests,
        {"edges": rows, "removed": len(found.removed), "verdict": found.tests.verdict},
        lambda figure: plot_selection(found, ax=figure.subplots()),
    )
    return exits.of_status("certified", undrawn)


def _graph(read: ModelFile, name: str | None) -> Graph:
    graphs = read.graphs_by_name
    if not graphs:
        raise click.UsageError("the model file has no [graph]; say --all-pairs to test all pairs of nodes")
    if name is None and len(graphs) == 1:
        return next(iter(graphs.values()))
    if name not in graphs:
        names = ", ".join(str(each) for each in graphs if each is not None)
        raise click.UsageError(f"--graph: name one of the graphs of the model file{': ' if names else ''}{names}")
    return graphs[name]


@main.command(short_help="Whether the clusters are guaranteed to be found.")
@with_model
@click.option(
    "--clusters",
    type=FILE,
    help="A table with the columns node and cluster, as `solve --out` writes; by default the clusters of the answer.",
)
@seconds_option
@with_outputs("the graph with the sets of nodes that are too loosely connected")
def recover(read: Any, to: Outputs, clusters: Path | None, **asked: Any) -> int:
    """Whether a partition into clusters is guaranteed to be recovered, at which strengths, and where it is not, which
    nodes are too loosely connected (generalised total variation, Theorem 2)."""
    import graphreg as gr

    partition = read.solve(progress=to.progress).clusters().labels if clusters is None else _partition(clusters)
    found = gr.theory.recovery(read.problem, partition, **asked)
    table = found.table.reset_index()
    document = {
        "guaranteed": found.guaranteed,
        "verdict": found.verdict,
        "strength": found.strength,
        "interval": found.interval,
        "clusters": table.to_dict("records"),
        "reasons": found.reasons,
    }
    undrawn = to.deliver(found, table, document, lambda figure: found.plot(ax=figure.subplots()))
    return exits.of_status("certified", undrawn)


def _partition(file: Path) -> dict[str, str]:
    """The cluster of each node, from a table."""
    from ..model_file import read_table

    frame = read_table(file, "--clusters", ["node", "cluster"])
    return dict(zip(frame["node"], frame["cluster"], strict=True))
