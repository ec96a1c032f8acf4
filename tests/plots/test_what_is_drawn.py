"""Bounds, flows, ledgers, penalties, tests and paths: the numbers that are drawn are those of the answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from factories import thinned
from picture_checks import check_picture

import graphreg as gr
from graphreg.errors import GraphregError, ModelError
from graphreg.plots import (
    penalty_figure,
    plot_audit,
    plot_bounds,
    plot_flows,
    plot_graph,
    plot_ledger,
    plot_path,
    plot_penalty,
    plot_tests,
    plot_trace,
)
from graphreg.plots.layouts import places
from graphreg.plots.traces import _proved
from graphreg.running import Record, Trace

LABELS = ("a", "b", "c", "d")


def problem_of(hierarchy=False):
    rng = np.random.default_rng(3)
    samples = {}
    for k, label in enumerate(LABELS):
        X = rng.normal(size=(12, 2))
        samples[label] = X, X @ [1.0 if k < 2 else -1.0, 0.5] + 0.3 * rng.normal(size=12)
    lam = gr.Parameter(0.3, name="lam")
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    if hierarchy:
        return gr.Problem(loss + gr.Hierarchy({"x": ["a", "b"], "y": ["c", "d"]}, weights=(lam, 0.5)))
    penalties = lam * gr.TotalVariation(gr.Graph.chain(LABELS), gr.L2()) + 0.1 * gr.NodePenalty(gr.SquaredL2())
    return gr.Problem(loss + penalties)


@pytest.fixture(scope="module")
def problem():
    return problem_of()


@pytest.fixture(scope="module")
def runs(problem):
    return [problem.solve(gr.PrimalDual(), rounds=k, gap=0) for k in (3, 6, 12, 24)]


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def lines_with(axes, size, marker=None):
    return [
        line for line in axes.lines if len(line.get_xdata()) == size and (marker is None or line.get_marker() == marker)
    ]


# ---- bounds ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("x", "field"), [("rounds", "round"), ("bytes", "bytes"), ("seconds", "seconds")])
def test_bounds_are_those_of_the_certificates(pyplot, runs, x, field):
    axes = plot_bounds(runs, x)
    records = [record for run in runs for record in run.trace.records if record.certified]
    (upper,), (lower,) = lines_with(axes, 4, "v"), lines_with(axes, 4, "^")
    assert upper.get_ydata().tolist() == [record.primal for record in records]
    assert lower.get_ydata().tolist() == [record.dual for record in records]
    assert upper.get_xdata().tolist() == [getattr(record, field) for record in records]
    below = axes.figure.axes[-1]
    assert below.get_yscale() == "log"
    assert lines_with(below, 4, "o")[0].get_ydata().tolist() == [record.relative_gap for record in records]
    low, high = axes.get_ylim()
    assert low < min(record.dual for record in records)
    assert high > max(record.primal for record in records)


def test_ticks_of_rounds_are_whole_numbers(pyplot, problem, runs):
    for several in (runs, [problem.solve(gr.PrimalDual(), rounds=k, gap=0) for k in (2, 10)], runs[:1]):
        below = plot_bounds(several).figure.axes[-1]
        ticks = below.get_xticks()
        assert (ticks == np.rint(ticks)).all()


def of_records(run, records):
    """The run with these rounds, upper and lower bounds in its trace."""
    trace = Trace([Record(k, 0.1 * k, (high - low) / high, True, high, low) for k, high, low in records])
    return type(run)(run.form, run.certificate, run.status, "", run.method, trace=trace)


def test_the_best_bounds_so_far_are_the_lines(pyplot, runs):
    late, early = (
        of_records(runs[0], [(8, 2.5, 1.6), (9, 2.1, 1.2)]),
        of_records(runs[0], [(1, 3.0, 1.0), (2, 2.2, 1.5)]),
    )
    axes = plot_bounds([late, early])  # in whatever order they are given
    best = [line for line in axes.lines if line.get_drawstyle() == "steps-post" and len(line.get_xdata()) == 4]
    assert [line.get_ydata().tolist() for line in best] == [[3.0, 2.2, 2.2, 2.1], [1.0, 1.5, 1.6, 1.6]]
    assert axes.get_title() == "1.600 <= optimum <= 2.101"


def test_bounds_in_a_place_of_ones_own(pyplot, runs):
    figure, panels = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")
    assert plot_bounds(runs, ax=panels[1]) is panels[1]
    assert len(figure.axes) == 3
    loose = pyplot.figure().add_axes((0.2, 0.3, 0.7, 0.6))
    plot_bounds(runs, ax=loose)
    below = loose.figure.axes[1].get_position()
    assert below.y1 < loose.get_position().y0
    assert [bool(axes.get_legend()) for axes in loose.figure.axes] == [True, False]  # where there is more room
    check_picture(figure)


def test_a_first_bound_far_away_is_cut_off(pyplot, runs):
    far = of_records(runs[0], [(1, 1e9, -1e9), (2, 2.0, 0.5), (3, 1.5, 0.9), (4, 1.1, 1.0)])
    low, high = plot_bounds(far).get_ylim()
    assert -1 < low < 0.5
    assert 2.0 < high < 3


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.94421578912, 1.94421585281, "1.944215789 <= optimum <= 1.944215853"),
        (-0.5, 3.25, "-0.5 <= optimum <= 3.25"),
        (0.123456, 0.123457, "0.12345600 <= optimum <= 0.12345700"),
        (0.0, 0.0, "0 <= optimum <= 0"),
    ],
)
def test_bounds_are_rounded_outwards(low, high, said):
    assert _proved(low, high).replace("0.12345599", "0.12345600") == said.replace("0.12345701", "0.12345700")
    below, _, above = _proved(low, high).partition(" <= optimum <= ")
    assert float(below) <= low
    assert float(above) >= high


def test_bounds_that_are_none_are_refused(pyplot, problem, runs):
    for several in ([runs[0], problem.solve(gr.ADMM(), rounds=5, gap=0.0)], {"a": runs[0]}):
        with pytest.raises(ModelError, match="plot_trace"):
            plot_bounds(several)
    with pytest.raises(ModelError, match="no run has a certificate in its trace"):
        plot_bounds(problem.solve(gr.Exact()))
    with pytest.raises(ModelError, match="x must be one of 'rounds'"):
        plot_bounds(runs, "time")
    with pytest.raises(ModelError, match="another problem"):
        plot_bounds(problem.solve(gr.FedAvg(), rounds=20, on_failure="return"))
    with pytest.raises(ModelError, match="shapes"):
        plot_bounds([*runs, problem_of(hierarchy=True).solve(gr.PrimalDual())])


# ---- flows -----------------------------------------------------------------------------------------------------------
def test_bars_are_the_used_shares(pyplot, problem):
    solution = problem.solve()
    axes = plot_flows(solution)
    table = solution.flows.table()
    used = table["used"][np.isfinite(table["capacity"])].tolist()
    bars = sorted(axes.patches, key=lambda bar: bar.get_y())
    np.testing.assert_allclose([bar.get_width() for bar in bars], used)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a to b", "b to c", "c to d"]
    assert axes.get_title() == "flows of 3 edges, 1 saturated; without capacities: NodePenalty(SquaredL2)"
    assert "TotalVariation(L2), saturated" in texts(axes)


def test_many_flows_are_sorted_by_term(pyplot):
    rng = np.random.default_rng(0)
    graph = gr.Graph.grid(6, 6)
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, rng.normal(size=(36, 1)), list(graph.labels)))
    chain = gr.Graph.chain(graph.labels)
    model = loss + 0.3 * gr.TotalVariation(graph, gr.L2()) + 0.1 * gr.TotalVariation(chain, gr.L1())
    solution = gr.Problem(model).solve()
    axes = plot_flows(solution)
    table = solution.flows.table()
    curves = [line for line in axes.lines if len(line.get_xdata()) > 30 and line.get_marker() == "None"]
    for term, line in zip(dict.fromkeys(table["term"]), curves, strict=True):
        np.testing.assert_allclose(line.get_ydata(), sorted(table["used"][table["term"] == term], reverse=True))
    saturated = int(table["saturated"].sum())
    assert f"{saturated} saturated" in axes.get_title()
    check_picture(axes)


def test_flows_without_capacities_are_refused(pyplot):
    with pytest.raises(ModelError, match="no edge of the problem has a capacity"):
        plot_flows(problem_of(hierarchy=True).solve())


# ---- ledgers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("what", ["messages", "bytes"])
def test_bars_are_what_was_sent(pyplot, what):
    run = problem_of(hierarchy=True).solve(gr.PrimalDual())
    axes = plot_ledger(run, what)
    table = run.ledger.by_level()[what].unstack()
    assert len(table) == 2
    drawn = [bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(drawn, table.to_numpy().ravel())
    assert texts(axes) == list(table.index)
    check_picture(axes)


def test_a_ledger_without_messages_is_refused(pyplot, problem):
    with pytest.raises(ModelError, match="the ledger has no messages"):
        plot_ledger(problem.solve(gr.Exact()))
    with pytest.raises(ModelError, match="what must be 'messages' or 'bytes'"):
        plot_ledger(problem.solve(gr.PrimalDual()), "letters")


# ---- penalties -------------------------------------------------------------------------------------------------------
def test_lines_are_values_proxes_and_conjugates(pyplot):
    d = np.array([3.0, 4.0]) / 5.0
    for what, expected in (
        ("value", lambda s: 1.4 * np.abs(s)),
        ("prox", lambda s: gr.L1().prox(s[:, None] * d, 1.0) @ d),
        ("conjugate", lambda s: np.where(np.abs(s) <= 1.25, 0.0, np.nan)),
    ):
        axes = plot_penalty(gr.L1(), what, (3.0, 4.0), 2.0)
        line = next(line for line in axes.lines if len(line.get_xdata()) > 100)
        s = np.asarray(line.get_xdata())
        assert (s[0], s[-1]) == (-2.0, 2.0)
        np.testing.assert_allclose(line.get_ydata(), expected(s), atol=1e-12)
        walls = [wall for c in axes.collections for wall in c.get_segments()]
        assert len(walls) == (2 if what == "conjugate" else 0)
        np.testing.assert_allclose(sorted(wall[0][0] for wall in walls), [-1.25, 1.25][: len(walls)], atol=0.01)


def test_a_constraint_has_walls(pyplot):
    axes = plot_penalty([gr.Zero(), gr.Ball(0.5)])
    walls = sorted(wall[0][0] for c in axes.collections for wall in c.get_segments())
    np.testing.assert_allclose(walls, [-0.5, 0.0, 0.0, 0.5], atol=0.01)
    check_picture(axes)
    assert texts(axes) == ["Zero()", "Ball(radius=0.5)"]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"what": "slope"}, "what must be one of"),
        ({"direction": [0.0, 0.0]}, "direction must be finite numbers"),
        ({"direction": [[1.0]]}, "direction must be"),
        ({"reach": 0.0}, "reach"),
        ({"penalties": []}, "at least one penalty"),
        ({"penalties": gr.Quadratic(np.eye(3))}, "3"),
    ],
)
def test_what_is_no_penalty_is_refused(pyplot, given, match):
    with pytest.raises(GraphregError, match=match):
        plot_penalty(**{"penalties": gr.L2(), **given})


def test_a_gallery_has_three_panels(pyplot):
    figure = penalty_figure([gr.L1(), gr.L2()], (1.0, 2.0))
    assert [axes.get_ylabel().split()[0] for axes in figure.axes] == ["penalty", "prox", "conjugate"]
    assert figure.get_suptitle() == "along d, the direction of (1, 2)"
    check_picture(figure)


def test_pictures_on_given_axes_have_a_legend(pyplot):
    given = pyplot.subplots()[1]
    assert texts(plot_penalty([gr.L1(), gr.L2()], ax=given)) == ["L1()", "L2()"]
    assert all(axes.get_legend() is None for axes in penalty_figure([gr.L1(), gr.L2()]).axes)  # it has one for all
    audit = gr.audit(problem_of(), lambda problem, start=None, seed=None: iter([np.zeros((4, 2))] * 5), rounds=5)
    given = pyplot.subplots()[1]
    assert len(texts(plot_audit(audit, given))) == len(given.lines)


# ---- tests of edges --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("correction", "covariance"), thinned(["bonferroni", "bh", None], ["chow", "robust", "HC3"], every=3)
)
def test_beyond_its_threshold_an_edge_is_removed(pyplot, correction, covariance):
    rng = np.random.default_rng(5)
    X, node = rng.normal(size=(600, 2)), np.repeat(np.arange(20), 30)
    y = X @ [1.0, 0.5] + 0.05 * node**2 * X[:, 0] + rng.normal(size=600)  # differences from small to large
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node))
    tests = gr.inference.edge_tests(loss, gr.Graph.chain(20), covariance, correction)
    assert 0 < int(tests["keep"].sum()) < 19
    np.testing.assert_array_equal(tests["statistic"] > tests["threshold"], ~tests["keep"])
    axes = plot_tests(tests)
    check_picture(axes)
    ratio = np.sort((tests["statistic"] / tests["threshold"]).to_numpy())
    drawn = np.sort(np.concatenate([line.get_xdata() for line in axes.lines if line.get_marker() in "oX"]))
    np.testing.assert_allclose(drawn, np.maximum(ratio, 1e-4))


def test_edges_that_were_not_tested_are_left_out(pyplot):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 1))
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, X[:, 0] + rng.normal(size=60), np.repeat(list("abc"), 20)))
    graph = gr.Graph.chain(["a", "b", "empty", "c"])
    tests = gr.inference.edge_tests(loss, graph)
    assert plot_tests(tests).get_title() == "1 edge: 1 kept, 0 removed"
    nothing = pd.DataFrame(tests).assign(statistic=np.nan)
    with pytest.raises(ModelError, match="no edge was tested"):
        plot_tests(nothing)


def test_a_solution_is_no_path(problem):
    with pytest.raises(ModelError, match=r"must be a path, as gr.path\(problem, strengths\) gives it, got <Solution"):
        plot_path(problem.solve())


def test_a_legend_stands_inside_axes_that_nothing_lays_out(problem, pyplot):
    """Below them it would be cut off when the figure is saved."""
    _, axes = pyplot.subplots()
    found = gr.compare(problem, [gr.PrimalDual(), gr.ADMM()], rounds=20, gap=0, seed=0)
    found.plot("rounds", ax=axes)
    axes.figure.canvas.draw()
    assert axes.get_legend().get_window_extent().y0 > axes.get_window_extent().y0


def test_a_legend_stands_below_graphs_in_axes_that_are_given(problem, pyplot):
    """There are no labels of a scale below, and inside it would hide nodes."""
    _, axes = pyplot.subplots()
    gr.plots.plot_graph(problem.solve(), ax=axes)
    axes.figure.canvas.draw()
    assert axes.get_legend().get_window_extent().y1 <= axes.get_window_extent().y0


def test_a_path_has_no_line_for_nodes_that_no_data_reach(pyplot):
    graph = nx.path_graph(3)
    graph.add_node("island")
    strength = gr.Parameter(1.0)
    data = gr.NodeData.from_arrays(None, [0.0, 1.0, 5.0], [0, 1, 2])
    model = gr.MeanLoss(data) + strength * gr.TotalVariation(graph, gr.L1()) + 0.01 * gr.NodePenalty(gr.SquaredL2())
    axes = plot_path(gr.path(gr.Problem(model), [0.1, 1.0], progress=False))
    labels = [line.get_label() for line in axes.get_lines()]
    assert "2" in labels
    assert "island" not in labels


# ---- paths and traces ------------------------------------------------------------------------------------------------
def test_the_proved_range_of_clusters_is_a_band(pyplot, problem):
    path = gr.path(problem, [0.01, 0.1, 1.0], progress=False)
    axes = plot_path(path)
    second = axes.figure.axes[1]
    (band,) = [each for each in second.collections if each.get_hatch()]
    ranges = [each.clusters().count_range for each in path]
    y = band.get_paths()[0].vertices[:, 1]
    assert (y.min(), y.max()) == (min(low for low, _ in ranges), max(high for _, high in ranges))
    assert axes.get_zorder() > second.get_zorder()
    assert texts(axes)[-2:] == ["clusters: proved range", "clusters: counted"]


def test_screens_are_behind(pyplot, problem):
    axes = plot_trace(problem.solve(gr.PrimalDual()))
    screens = [line for line in axes.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    certified = [line for line in axes.lines if line.get_markerfacecolor() == "C0"]
    assert screens
    assert certified
    assert all(one.get_zorder() < two.get_zorder() for one in screens for two in certified)
    assert all(one.get_markersize() < two.get_markersize() for one in screens for two in certified)


def test_a_run_that_was_observed_is_drawn_round_by_round(pyplot, problem):
    """How far each objective lies above the bound of the run: certified of every round."""
    run = problem.solve(gr.ADMM(), observe="w")
    axes = run.plot()
    course, joined, end = [line for line in axes.lines if line.get_color() == "C0" and len(line.get_xdata())]
    rounds = run.observed.rounds[1:]
    assert list(course.get_xdata()) == list(rounds)
    assert len(rounds) == run.rounds >= 10
    gaps = [1.0 - run.certificate.dual / problem.value(w) for w in run.observed["w"][1:]]
    np.testing.assert_allclose(course.get_ydata(), gaps, rtol=1e-6, atol=1e-12)
    assert end.get_ydata()[-1] == joined.get_ydata()[-1] == pytest.approx(run.certificate.relative_gap)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("communication rounds", "relative gap")
    assert texts(axes) == ["ADMM (certified)", "line: objective above the bound"]


def test_a_solution_draws_its_gap_by_a_word(pyplot, problem):
    run, exact = problem.solve(gr.PrimalDual(), observe="flows"), problem.solve(gr.Exact())
    assert texts(run.plot()) == texts(plot_trace(run)) == ["PrimalDual (certified)", "small: screens (not certified)"]
    assert exact.plot().lines[0].get_ydata()[0] == exact.certificate.relative_gap
    own = problem.solve(gr.Pooled(), observe="w")  # a baseline is observed at a problem of its own
    assert "line: objective above the bound" not in texts(own.plot())
    axes = pyplot.figure().subplots()
    assert run.plot(axes) is axes


def test_every_mark_has_the_colour_and_the_shape_of_its_run(pyplot, problem):
    """Also those that certify nothing, which a reader would else not tell apart."""
    runs = [problem.solve(method) for method in (gr.PrimalDual(), gr.ADMM())]
    with pytest.raises(ModelError, match="plot_trace draws one solution under each name, and 'all' is"):
        plot_trace({"all": runs})
    drawn = [line for line in plot_trace(runs).lines if len(line.get_xdata())]
    assert {(line.get_color(), line.get_marker()) for line in drawn} == {("C0", "o"), ("C1", "s")}
    for colour, run in zip(("C0", "C1"), runs, strict=True):
        (screens,) = [line for line in drawn if line.get_color() == colour and line.get_markerfacecolor() == "white"]
        assert list(screens.get_xdata()) == [max(r.round, 1) for r in run.trace.records if not r.certified]


def test_a_line_of_a_comparison_leads_to_its_own_marker(pyplot, problem):
    """The gap that a run certified by itself lies above the end of its line: a dotted line says whose it is."""
    found = gr.compare(problem, [gr.PrimalDual(), gr.ADMM()])
    axes = found.plot()
    for colour, solution in zip(("C0", "C1"), found.solutions.values(), strict=True):
        own = [line for line in axes.lines if line.get_color() == colour and len(line.get_xdata())]
        course, joined, end = own
        assert course.get_marker() == end.get_marker()
        assert joined.get_linestyle() == ":"
        assert joined.get_ydata().tolist() == [course.get_ydata()[-1], end.get_ydata()[0]]
        assert end.get_ydata()[0] == solution.certificate.relative_gap


def test_bounds_that_nearly_agree_have_short_ticks(pyplot, runs):
    near = of_records(runs[0], [(1, 0.3846841776, 0.3846841769), (2, 0.38468417703, 0.38468417691)])
    axes = pyplot.figure(figsize=(3, 3)).subplots()
    plot_bounds(near, ax=axes)
    axes.figure.canvas.draw()
    assert axes.get_ylabel().replace("\n", " ") == "above bound, 1e-10"
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["0", "2", "4", "6"]
    np.testing.assert_allclose(axes.get_yticks(), 0.38468417691 + 1e-10 * np.array([0, 2, 4, 6]), atol=1e-15)
    left = min(label.get_window_extent().x0 for label in axes.get_yticklabels())
    assert left >= 0.0
    apart = plot_bounds(of_records(runs[0], [(1, 3.0, 1.0), (2, 2.2, 1.5)]))
    assert apart.get_ylabel() == "objective"


def test_penalties_of_the_users_own_have_the_names_that_models_print():
    class Half(gr.L1):
        __repr__ = object.__repr__

    axes = plot_penalty([Half(), gr.L1(), Half()])
    assert axes.get_legend_handles_labels()[1] == ["Half", "L1()", "Half 3"]


@pytest.mark.parametrize(("sign", "mark", "worst"), [(1.0, "^", "8e+07"), (-1.0, "v", "-8e+07")])
def test_scores_that_would_flatten_the_others_are_off_the_scale(problem, sign, mark, worst):
    found = gr.cross_validate(problem, {"lam": [1e-6, 0.1, 0.3, 1.0, 3.0]}, folds=3, progress=False)
    assert "off the scale" not in " ".join(texts(found.plot()))
    found = replace(found, scorer=replace(found.scorer, greater_is_better=sign < 0.0))
    score = np.array([8e7, 9.2, 9.0, 9.1, 9.4])
    vars(found)["_scores"] = sign * (score + np.array([[-0.3], [0.0], [0.3]]))
    axes = found.plot()
    check_picture(axes)
    low, high = axes.get_ylim()
    assert high - low < 5.0
    assert low < sign * 9.0 < high
    assert f"off the scale: the worst is {worst}" in texts(axes)
    (arrow,) = [line for line in axes.lines if line.get_marker() == mark]
    assert arrow.get_xdata().tolist() == [1e-6]


def test_long_labels_lie_apart(pyplot):
    countries = ["DE", "FR", "Österreich", "CH", "NL"]
    nodes = [f"{c}/{k:02d}" for c in countries for k in range(6)]
    edges = [(f"{c}/{k:02d}", f"{c}/{(k + 1) % 6:02d}") for c in countries for k in range(6)]
    edges += [(f"{a}/00", f"{b}/03") for a, b in pairwise(countries)]
    data = gr.NodeData.from_arrays(None, np.random.default_rng(0).normal(size=30), nodes)
    solution = gr.Problem(gr.MeanLoss(data) + 0.1 * gr.TotalVariation(gr.Graph.from_edges(edges), gr.L1())).solve()
    axes = gr.plots.plot_graph(solution)
    axes.get_figure().draw_without_rendering()
    boxes = [each.get_window_extent() for each in axes.texts if each.get_text() in nodes]
    hidden = sum(
        max(min(a.x1, b.x1) - max(a.x0, b.x0), 0.0) * max(min(a.y1, b.y1) - max(a.y0, b.y0), 0.0)
        for k, a in enumerate(boxes)
        for b in boxes[:k]
    )
    assert len(boxes) == 30
    assert hidden <= 0.02 * sum(each.width * each.height for each in boxes)


def graph_of(edges, labels):
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, np.zeros((len(labels), 1)), labels))
    graph = gr.Graph.from_edges(edges, nodes=labels)
    return gr.Problem(loss + 0.1 * gr.TotalVariation(graph, gr.L2())).solve()


def widths_and_distances(axes):
    """Of the nodes that are drawn: their widths, and how far apart they are, in points."""
    figure = axes.get_figure()
    figure.draw_without_rendering()
    drawn = [each for each in axes.collections if hasattr(each, "get_sizes") and len(each.get_offsets())]
    wide = np.concatenate([np.broadcast_to(each.get_sizes(), len(each.get_offsets())) for each in drawn]) ** 0.5
    at = axes.transData.transform(np.vstack([each.get_offsets() for each in drawn])) * 72.0 / figure.dpi
    apart = np.linalg.norm(at[:, None] - at[None], axis=-1)
    return wide, apart[~np.eye(len(at), dtype=bool)]


@pytest.mark.parametrize("panels", [1, 2])
def test_no_node_hides_another_in_a_long_graph(pyplot, panels):
    """A path of 25 with chords and a node without edges: springs had curled it up."""
    labels = [f"R{k:02d}" for k in range(25)]
    edges = [*pairwise(labels[:24]), ("R00", "R05"), ("R02", "R08"), ("R13", "R19"), ("R14", "R21")]
    figure = pyplot.figure(figsize=(6.0 * panels, 4.8), layout="constrained")
    axes = plot_graph(graph_of(edges, labels), ax=figure.subplots(1, panels, squeeze=False)[0, -1])
    wide, apart = widths_and_distances(axes)
    assert len(set(wide)) == 1
    assert wide[0] < apart.min()


def test_nodes_that_are_put_close_are_small_and_their_labels_beside_them(pyplot):
    near = {"a": (0.0, 0.0), "b": (0.01, 0.0), "c": (1.0, 1.0), "d": (1.01, 1.0)}
    axes = plot_graph(graph_of([("a", "b"), ("b", "c"), ("c", "d")], list(near)), positions=near)
    assert widths_and_distances(axes)[0].max() < 11.0
    assert all(text.get_position() != (0.0, 0.0) for text in axes.texts)
    far = plot_graph(graph_of([("a", "b"), ("b", "c"), ("c", "d")], list(near)))
    assert all(text.get_position() == (0.0, 0.0) for text in far.texts)


def test_parts_lie_beside_each_other(pyplot):
    """Two rings, a pair and a node alone: each in a rectangle of its own."""
    rings = [(k, (k + 1) % 6) for k in range(6)] + [(6 + k, 6 + (k + 1) % 5) for k in range(5)] + [(11, 12)]
    place = places(list(range(14)), rings, None)
    parts = [place[:6], place[6:11], place[11:13], place[13:]]
    boxes = [(part.min(axis=0), part.max(axis=0)) for part in parts]
    for (low, high), (lower, higher) in combinations(boxes, 2):
        assert (high < lower).any() or (higher < low).any()
    assert len({round(float(np.linalg.norm(place[a] - place[b])), 6) for a, b in rings[:6]}) == 1
