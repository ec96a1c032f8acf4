"""Every plot at 2, 30 and 3000 nodes, and with long names: no warning, nothing clipped, readable ticks, legends."""

from __future__ import annotations

from functools import cache

import networkx as nx
import numpy as np
import pytest
from factories import thinned
from picture_checks import check_picture, handles_of

import graphreg as gr
from graphreg import plots

SIZES = (2, 30, 3000)
LONG = "a name that somebody thought of who had a lot of time and no plot to put it on"


@cache
def case(n):
    """A problem of n nodes in three groups, its parts and its answers."""
    rng = np.random.default_rng(1)
    graph = {2: gr.Graph.chain(["the first of two nodes, of all", "b"]), 3000: gr.Graph.grid(50, 60)}.get(n)
    if graph is None:
        graph = gr.Graph.from_edges(nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 6)).edges())
    samples = {}
    for k, label in enumerate(graph.labels):
        X = rng.normal(size=(12, 2))
        slope = 1.0 if k < 0.4 * n else -1.0 if k < 0.7 * n else 0.3
        samples[label] = X, X @ [slope, 0.5] + 0.3 * rng.normal(size=12)
    loss, lam = gr.SquaredLoss(gr.NodeData.from_dict(samples)), gr.Parameter(0.3, name="lam")
    problem = gr.Problem(loss + lam * gr.TotalVariation(graph, gr.L2()) + 1e-3 * gr.NodePenalty(gr.SquaredL2()))
    run = problem.solve(gr.PrimalDual(polish=False), gap=1e-4)
    return {"graph": graph, "loss": loss, "lam": lam, "problem": problem, "run": run, "n": n}


def made_once(make):
    """What is made of a case, kept with it."""

    def kept(c):
        if make not in c:
            c[make] = make(c)
        return c[make]

    return kept


@made_once
def path_of(c):
    return gr.path(c["problem"], np.geomspace(0.01, 3.0, 6), c["lam"], progress=False)


@made_once
def scores_of(c):
    return gr.cross_validate(c["problem"], {c["lam"]: [0.01, 0.1, 1.0]}, folds=3, progress=False)


def recovery_of(c):
    groups = {label: k // -(-c["n"] // 3) for k, label in enumerate(c["graph"].labels)}
    return gr.theory.recovery(gr.Problem(c["loss"] + 0.3 * gr.TotalVariation(c["graph"], gr.L2())), groups)


def points_of(c):
    rng = np.random.default_rng(0)
    return {label: tuple(rng.uniform(size=2)) for label in c["graph"].labels}


def stays(problem, start=None, seed=None):
    yield from [np.zeros((2, 2))] * 5


@made_once
def compared(c):
    methods = {"one": gr.PrimalDual(), "another": gr.ADMM(), "exact": gr.Exact(), "pooled": gr.Pooled()}
    return gr.compare(c["problem"], methods, gap=1e-4, progress=False)


def region_of(c):
    return next(iter(gr.inference.local_regions(gr.Problem(c["loss"])).values()))


DRAWN = {  # name: what is drawn of a case, and the sizes for which that makes sense
    "plot_graph": (lambda c: plots.plot_graph(c["run"]), SIZES),
    "plot_trace": (lambda c: plots.plot_trace([c["run"], c["problem"].solve(gr.ADMM(), gap=1e-2)]), SIZES),
    "plot_bounds": (lambda c: plots.plot_bounds(c["run"]), SIZES),
    "plot_bounds by bytes": (lambda c: plots.plot_bounds(c["run"], "bytes"), SIZES),
    "plot_flows": (lambda c: plots.plot_flows(c["run"]), SIZES),
    "plot_ledger": (lambda c: plots.plot_ledger(c["run"]), SIZES),
    "plot_ledger of bytes": (lambda c: plots.plot_ledger(c["run"].ledger, "bytes"), SIZES),
    "plot_map at points": (lambda c: plots.plot_map(c["run"], points_of(c), unit="m"), SIZES),
    "plot_map of a grid": (lambda c: plots.plot_map(c["run"]), (3000,)),
    "plot_selection": (lambda c: plots.plot_selection(gr.inference.select_edges(c["loss"], c["graph"])), SIZES),
    "plot_tests": (lambda c: plots.plot_tests(gr.inference.edge_tests(c["loss"], c["graph"])), SIZES),
    "plot_path": (lambda c: plots.plot_path(path_of(c)), (2, 30)),
    "plot_cross_validation": (lambda c: plots.plot_cross_validation(scores_of(c)), (2, 30)),
    "plot_recovery": (lambda c: plots.plot_recovery(recovery_of(c)), (2, 30)),
    "plot_comparison": (lambda c: plots.plot_comparison(compared(c)), (2, 30)),
    "comparison_figure": (lambda c: plots.comparison_figure(compared(c)), (30,)),
    "plot_audit": (lambda c: plots.plot_audit(gr.audit(c["problem"], stays, rounds=5)), (2,)),
    "plot_region": (lambda c: plots.plot_region(region_of(c), "x0", "x1"), (2,)),
    "plot_penalty": (lambda c: plots.plot_penalty([gr.L1(), gr.L2(), gr.Ball(), gr.Zero()], "conjugate"), (2,)),
    "penalty_figure": (lambda c: plots.penalty_figure({"a": gr.HuberNorm(0.5), "b": gr.SquaredL2()}), (2,)),
}


@pytest.mark.parametrize(
    ("name", "n"),
    [
        pytest.param(name, n, marks=pytest.mark.whole if n == SIZES[1] and len(sizes) > 2 else ())
        for name, (_, sizes) in DRAWN.items()
        for n in sizes
    ],
    ids=str,
)
def test_it_is_drawn_as_it_should_be(pyplot, name, n):
    check_picture(DRAWN[name][0](case(n)))


def test_no_plot_is_left_out():
    every = {name for name in dir(plots) if name.startswith("plot_") or name.endswith("_figure")}
    assert every == {name.split()[0] for name in DRAWN}


# ---- long names ------------------------------------------------------------------------------------------------------
@cache
def long_case(features=40):
    rng = np.random.default_rng(2)
    nodes = [f"{k} {LONG}" for k in range(5)]
    frame = {f"{j} {LONG}": rng.normal(size=300) for j in range(features)}
    X = np.stack(list(frame.values()), axis=1)
    data = gr.NodeData.from_arrays(X, X[:, 0] + rng.normal(size=300), np.repeat(nodes, 60), features=list(frame))
    lam, graph = gr.Parameter(0.5, name=LONG), gr.Graph.chain(nodes)
    problem = gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(graph, gr.L2()))
    return {"graph": graph, "loss": gr.SquaredLoss(data), "lam": lam, "problem": problem, "run": problem.solve()} | {
        "n": 5,
        "features": list(frame),
    }


LONG_DRAWN = {
    "graph": lambda c: plots.plot_graph(c["run"]),
    "flows": lambda c: plots.plot_flows(c["run"]),
    "map": lambda c: plots.plot_map(c["run"], points_of(c), feature=c["features"][3], unit=LONG),
    "path of a coefficient": lambda c: plots.plot_path(path_of(c)),
    "path of a node": lambda c: plots.plot_path(path_of(c), node=c["graph"].labels[0]),
    "cross-validation": lambda c: plots.plot_cross_validation(scores_of(c)),
    "trace": lambda c: plots.plot_trace({LONG: c["problem"].solve(gr.PrimalDual()), f"{LONG}!": c["run"]}),
    "region": lambda c: plots.plot_region(region_of(c), *c["features"][:2]),
    "selection": lambda c: plots.plot_selection(gr.inference.select_edges(c["loss"], c["graph"])),
    "tests": lambda c: plots.plot_tests(gr.inference.edge_tests(c["loss"], c["graph"])),
    "recovery": lambda c: plots.plot_recovery(recovery_of(c)),
    "penalties": lambda c: plots.plot_penalty({LONG: gr.L1(), f"{LONG}!": gr.L2()}),
}


@pytest.mark.parametrize("name", thinned(LONG_DRAWN, every=2))
@pytest.mark.filterwarnings("ignore:the node .* has .* samples")
def test_long_names_stay_inside(pyplot, name):
    check_picture(LONG_DRAWN[name](long_case()))


def test_ten_clusters_and_latent_nodes_are_told_apart(pyplot):
    """As many clusters as a legend names, of one node each."""
    samples = {k: ([[1.0]] * 4, [float(k)] * 4) for k in range(10)}
    groups = {"low": range(5), "high": range(5, 10)}
    model = gr.SquaredLoss(gr.NodeData.from_dict(samples)) + gr.Hierarchy(groups, weights=(0.1, 0.1))
    axes = plots.plot_graph(gr.Problem(model).solve())
    check_picture(axes)
    assert len(handles_of(axes.figure)) == 12


# ---- what a check finds ----------------------------------------------------------------------------------------------
def test_a_clipped_title_is_found(pyplot):
    figure, axes = pyplot.subplots()
    axes.set_title(LONG * 3)
    with pytest.raises(AssertionError, match="the figure is"):
        check_picture(figure)


def test_the_ticks_of_matplotlib_are_refused(pyplot):
    figure, axes = pyplot.subplots()
    axes.set(xscale="log", xlim=(4, 40))
    axes.plot([5.0, 30.0], [1.0, 2.0])
    with pytest.raises(AssertionError):
        check_picture(figure)


@pytest.mark.parametrize("style", ["b-", "r--"])
def test_lines_that_differ_in_colour_alone_are_found(pyplot, style):
    figure, axes = pyplot.subplots()
    axes.plot([1, 2], [1, 2], "r-", label="one")
    axes.plot([1, 2], [2, 1], style, label="two")
    axes.legend()
    if style == "r--":
        check_picture(figure)
        assert len(handles_of(figure)) == 2
    else:
        with pytest.raises(AssertionError, match="look the same in grey"):
            check_picture(figure)
