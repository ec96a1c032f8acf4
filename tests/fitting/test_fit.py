"""`gr.fit`: what it chooses and says is what public verbs give, and it predicts as well as the better of both ends."""

from __future__ import annotations

import html
import pickle
import re
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from validation_cases import constructed

import graphreg as gr
from graphreg.errors import DataError, GraphError, ModelError, TermError
from graphreg.fitting import recipe

NODES = [f"n{k}" for k in range(8)]
PATH = nx.path_graph(NODES)
HALVES = [(a, b) for a, b in PATH.edges() if (a, b) != (NODES[3], NODES[4])]


def incomes(n=12, seed=0, change=1.2):
    """Two halves of a path whose slopes in dollars differ."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"node": np.repeat(NODES, n)})
    frame["income"] = rng.normal(45_000, 12_000, len(frame))
    frame["soil"] = rng.choice(["clay", "loam", "sand"], len(frame))
    slope = np.where(frame["node"].isin(NODES[4:]), 0.8 - change, 0.8)
    frame["y"] = 5e4 + slope * (frame["income"] - 45_000) + 3e3 * rng.normal(size=len(frame))
    return frame


@pytest.fixture(scope="module")
def fitted():
    return gr.fit(incomes(), PATH, target="y", node="node", folds=3)


@pytest.fixture
def few_strengths(monkeypatch):
    monkeypatch.setattr(recipe, "STRENGTHS", 4)


def test_the_graph_beats_both_ends_in_raw_units(fitted):
    scores = fitted.scores["mse"]
    assert scores["this fit"] < 0.9 * scores["every node alone"] < 0.5 * scores["one model for all"]
    assert fitted.solution.status == "certified"
    assert fitted.problem.form.samples[0].loss.data.standardised is not None


def test_the_scores_are_those_of_cross_validation_and_the_ends_what_they_are_called(fitted):
    data, frame = fitted.problem.form.samples[0].loss.data, incomes()
    each = np.zeros(len(frame))
    for fold in fitted.validation.folds.each:
        train = np.setdiff1d(np.arange(len(frame)), fold.test)
        pooled = np.linalg.lstsq(data.X[train], data.y[train], rcond=None)[0]
        each[fold.test] = (data.X[fold.test] @ pooled - data.y[fold.test]) ** 2
    assert fitted.scores["mse"]["one model for all"] == pytest.approx(each.mean(), rel=1e-3)
    for fold in fitted.validation.folds.each:
        for label in NODES:
            here = (frame["node"] == label).to_numpy()
            train = np.setdiff1d(np.flatnonzero(here), fold.test)
            test = np.intersect1d(np.flatnonzero(here), fold.test)
            alone = np.linalg.solve(
                data.X[train].T @ data.X[train] + np.diag([0.0, *[1e-3] * (data.n_features - 1)]),
                data.X[train].T @ data.y[train],
            )
            each[test] = (data.X[test] @ alone - data.y[test]) ** 2
    assert fitted.scores["mse"]["every node alone"] == pytest.approx(each.mean(), rel=1e-2)


def test_the_code_does_the_same(fitted):
    names = {"frame": fitted.rows.frame, "graph": fitted.graph}
    exec(fitted.code(), names)
    assert names["found"].best == fitted.validation.best
    assert names["solution"].objective == fitted.solution.objective


def test_clusters_are_proved_on_demand(fitted):
    proved = replace(fitted, prove=True)
    assert "near: proved to be at most" in " ".join(str(fitted).split())
    assert "every edge is decided by a proof" in " ".join(str(proved).split())
    assert "solution.clusters(prove=True)" in proved.code()


def test_what_is_printed(fitted):
    said = str(fitted)
    for part in ("96 rows; a graph of 8 nodes and 7 edges", "SquaredLoss, since 'y' holds numbers", "mse, the smaller"):
        assert part in said
    assert f"{fitted.strength:.4g}, the best of 21 by 3 folds" in said
    assert "says nothing of the units" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 120
    assert "held-out" in fitted._repr_html_()


def test_tables_and_predictions_are_in_the_units_of_the_table(fitted):
    frame, table = incomes(), fitted.table()
    at = table.loc[frame["node"]].reset_index()
    by_hand = at["intercept"] + at["income"] * frame["income"]
    by_hand += at["soil[loam]"] * (frame["soil"] == "loam") + at["soil[sand]"] * (frame["soil"] == "sand")
    assert fitted.predict(frame.drop(columns="y")).to_numpy() == pytest.approx(by_hand.to_numpy(), rel=1e-9)
    assert table.loc["n0", "income"] == pytest.approx(0.8, abs=0.2)
    some = frame[frame["soil"] == "clay"].iloc[::-1]  # of other places than 0, 1, ...
    pd.testing.assert_series_equal(fitted.predict(some), fitted.predict(frame).loc[some.index])


def test_pictures_and_pages(fitted, tmp_path):
    figure = fitted.plot()
    assert figure.axes[0].get_title() == "3-fold cross-validation"
    fitted.report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text()
    assert len(page) > 10_000
    for name, score, error in fitted.scores.itertuples():
        assert f"{name:18} {score:.4g} +- {error:.2g}" in page
    assert f"{fitted.strength:.4g}, the best of 21 by 3 folds" in page
    assert "it says nothing of the units" in page
    own = gr.inference.local_regions(fitted).table()
    for label, name in own.index:
        row = own.loc[(label, name)]
        assert f"{label}, {name}: {row['estimate']:.4g} [{row['low']:.4g}, {row['high']:.4g}]" in page
    assert "intervals, each by itself; not of the fit" in page
    assert own.assumed[1] in page
    fitted.solution.report(tmp_path / "answer.html")
    assert "held-out" not in (tmp_path / "answer.html").read_text()


@pytest.mark.parametrize(
    ("target", "loss", "score"),
    [
        (lambda f: f["y"], "SquaredLoss", "mse"),
        (lambda f: f["y"] > f["y"].mean(), "LogisticLoss", "log_loss"),
        (lambda f: np.where(f["y"] > f["y"].mean(), "rich", "poor"), "LogisticLoss", "log_loss"),
        (
            lambda f: np.where(f["y"] > 60_000, "high", np.where(f["y"] > 45_000, "mid", "low")),
            "MultinomialLoss",
            "log_loss",
        ),
        (lambda f: (f["y"] / 1e4).round().astype(int).clip(0), "PoissonLoss", "deviance"),
        (lambda f: f["y"].round().astype(int), "SquaredLoss", "mse"),
    ],
)
def test_the_loss_follows_from_the_target(target, loss, score):
    frame = incomes()
    frame["y"] = target(frame)
    found = gr.fit(frame, PATH, target="y", node="node", folds=2, strengths=[0.5, 5.0], features=["income"])
    assert (found.loss, found.validation.scorer.name) == (loss, score)
    assert found.solution.status == "certified"
    if frame["y"].dtype.kind not in "biuf" and loss == "LogisticLoss":
        assert set(found.predict(frame, "class")) <= {"rich", "poor"}
        right = (found.predict(frame, "class").to_numpy() == frame["y"].to_numpy()).mean()
        assert right > 0.8
        assert "1 for 'rich' and 0 for 'poor'" in str(found)


def test_a_loss_and_a_penalty_of_ones_own():
    found = gr.fit(
        incomes(), PATH, target="y", node="node", loss="HuberLoss", penalty=gr.L1(), strengths=[1e-3], folds=2
    )
    assert (found.loss.partition("(")[0], found.validation.scorer.name) == ("HuberLoss", "loss")
    assert "gr.TotalVariation(graph, gr.L1())" in found.code()
    with pytest.raises(TermError, match="did you mean 'HuberLoss'"):
        gr.fit(incomes(), PATH, target="y", node="node", loss="HubberLoss")


def test_a_loss_is_named_with_its_options():
    """In units of prices, where Huber's loss with a delta of 1 would be that of absolute values."""
    how = {"target": "y", "node": "node", "strengths": [1e3], "folds": 2, "features": ["income"]}
    found = gr.fit(incomes(), PATH, loss="HuberLoss(delta=25_000.0)", **how)
    loss = found.problem.form.samples[0].loss
    assert (type(loss), loss.delta, found.loss) == (gr.HuberLoss, 25_000.0, "HuberLoss(delta=25000.0)")
    names = {"frame": found.rows.frame, "graph": found.graph}
    exec(found.code(), names)
    assert names["solution"].objective == found.solution.objective
    for wrong, said in {
        "HuberLoss(dleta=2.0)": "has no argument 'dleta'; did you mean 'delta'",
        "HuberLoss(2.0)": "loss: in 'HuberLoss(2.0)' an option has no name",
        "HuberLoss(delta=-1.0)": "must be a positive finite number, got -1.0",
        "HuberLoss(": "is not of the form NAME or NAME(option=value, ...)",
    }.items():
        with pytest.raises(ModelError, match=re.escape(said)):
            gr.fit(incomes(), PATH, loss=wrong, **how)


def test_hubers_loss_turns_where_the_spread_within_nodes_says():
    """At 1.345 standard deviations of the normal part of the target, whatever its unit, the gaps between nodes and a
    tenth of rows that are far off; nodes of a single row say nothing."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"node": np.repeat(NODES[:4], 200)})
    frame["y"] = 1e7 * (frame["node"] == "n1") + 2e4 * rng.normal(size=800)
    frame.loc[::10, "y"] += 1e9
    alone = pd.DataFrame({"node": NODES[4:], "y": 1e8 * np.arange(4)})
    how = {"target": "y", "node": "node", "strengths": [1e-2], "folds": 2}
    found = gr.fit(pd.concat([frame, alone], ignore_index=True), PATH, loss="HuberLoss", **how)
    delta = found.problem.form.samples[0].loss.delta
    assert delta == pytest.approx(1.345 * 2e4, rel=0.2)
    assert f"HuberLoss(delta={delta!r}), as asked for; delta is 1.345 robust standard deviations of 'y'" in str(found)
    assert "QuantileLoss(tau=0.5), as asked for" in str(gr.fit(frame, PATH, loss="QuantileLoss", **how))
    with pytest.raises(DataError, match="give it, as in HuberLoss"):
        gr.fit(frame[::200], PATH, loss="HuberLoss", **how)
    with pytest.raises(ModelError, match=r"strengths must be .*, got the text '0\.1,1'"):
        gr.fit(frame, PATH, **{**how, "strengths": "0.1,1"})


def test_parts_that_no_edge_joins_may_have_one_model(few_strengths):
    """Every node has the same law, and half of them no edges: one model for all predicts best, and is taken."""
    frame = incomes(n=6, change=0.0)
    found = gr.fit(frame, nx.path_graph(NODES[:4]), target="y", node="node", folds=3)
    assert found.takes_all
    assert found.strength == float("inf")
    assert found.scores["mse"]["this fit"] == found.scores["mse"]["one model for all"]
    assert found.solution.clusters().count == 1
    assert "edges counted here are those of a star" in str(found)
    names = {"frame": found.rows.frame, "graph": found.graph}
    exec(found.code(), names)
    assert names["solution"].objective == found.solution.objective
    assert "4 nodes of the table not in the graph, fitted by the one model for all: 'n4', 'n5', 'n6', 'n7'" in str(
        found
    )
    lone = nx.empty_graph(NODES)
    lone.add_edges_from(nx.path_graph(NODES[:4]).edges)
    again = gr.fit(frame, lone, target="y", node="node", folds=3)
    assert again.takes_all
    assert "4 of 8 nodes have no edges, and are fitted by the one model for all: 'n4', 'n5'" in again.code()
    assert "alone" not in " ".join(again.remarks)
    table = again.solution.table().to_numpy()
    np.testing.assert_allclose(table, table[[0] * 8], rtol=1e-4)


def test_a_picture_marks_no_strength_where_one_model_for_all_is_taken(few_strengths):
    pytest.importorskip("matplotlib")
    found = gr.fit(incomes(n=6, change=0.0), nx.path_graph(NODES[:4]), target="y", node="node", folds=3)
    assert found.takes_all
    lines = {line.get_label(): line for line in found.plot().axes[0].lines}
    assert not [label for label in lines if label.startswith("paired")]
    assert lines["taken: one model for all"].get_ydata()[0] == found.scores["mse"]["this fit"]


def test_nodes_without_rows_follow_their_neighbours_or_are_refused():
    frame = incomes()
    graph = nx.path_graph([*NODES, "beyond"])
    graph.add_node("island")
    found = gr.fit(frame, graph, target="y", node="node", folds=2, strengths=[1e4])
    new = frame[:2].assign(node="beyond")
    assert not found.takes_all
    assert found.predict(new).tolist() == pytest.approx(found.predict(frame[:2].assign(node="n7")).tolist())
    with pytest.raises(DataError, match=r"'node' is joined to no node with rows in rows 0, 1: 'island'\n"):
        found.predict(frame[:2].assign(node="island"))
    said = " ".join(str(found).split())
    assert "1 of 10 nodes have no rows, and follow their neighbours: 'beyond'" in said
    assert "1 of 10 nodes have no rows, and no path of edges to one that has: 'island'" in said
    assert found.table().index[found.table().isna().all(axis=1)].tolist() == ["island"]
    assert found.table().drop(index="island").notna().all(axis=None)
    with pytest.raises(DataError, match=r"is no node in rows 0, 1: 'mars'\n.*give the graph the node"):
        found.predict(frame[:2].assign(node="mars"))
    assert found.predict(frame[:2].assign(node="mars"), unseen="pooled").notna().all()
    joined = gr.fit(frame, PATH, target="y", node="node", folds=2, strengths=[1e4])
    with pytest.raises(DataError, match="leave strengths= out"):
        joined.predict(frame[:2].assign(node="mars"), unseen="pooled")


@pytest.mark.parametrize("parts", [False, True])
def test_rows_at_nodes_without_a_model_have_that_of_all_where_it_is_asked_for(parts, few_strengths):
    """Rows of known nodes are predicted as before, and keep their places."""
    frame = incomes()
    graph = nx.path_graph(NODES)
    if parts:
        graph.add_node("island")
    found = gr.fit(frame, graph, target="y", node="node", features=["income"], folds=2)
    assert not found.takes_all
    new = pd.concat([frame.iloc[[0, -1]], frame.iloc[[0, -1]]]).assign(
        node=["mars", *NODES[:2], "island" if parts else "venus"]
    )
    predicted = found.predict(new, unseen="pooled")
    assert predicted.index.tolist() == new.index.tolist()
    assert predicted.iloc[1:3].tolist() == found.predict(new.iloc[1:3]).tolist()
    data = frame.assign(node="all")
    whole = gr.NodeData.from_frame(data, node="node", target="y", features=["income"], intercept=True, standardise=True)
    ridge = len(found.graph.labels) * 1e-3 * gr.NodePenalty(gr.SquaredL2())
    one = gr.Problem(gr.SquaredLoss(whole, scale="sum") + ridge).solve()
    by_hand = one.predict(new.assign(node="all")).to_numpy()
    assert predicted.iloc[[0, 3]].tolist() == pytest.approx(by_hand[[0, 3]].tolist(), rel=1e-4)


def test_a_report_says_why_there_are_no_intervals(tmp_path):
    frame = incomes()
    robust = gr.fit(frame, nx.path_graph(NODES), target="y", node="node", loss="QuantileLoss", folds=2, strengths=[0.1])
    robust.report(tmp_path / "fit.html")
    assert "<th>intervals</th><td>none: " in (tmp_path / "fit.html").read_text()
    with pytest.raises(gr.errors.GraphregError) as caught:
        gr.inference.local_regions(robust)
    assert "smooth" in str(caught.value)
    assert f"none: {html.escape(str(caught.value))}" in (tmp_path / "fit.html").read_text()


def test_ends_are_said_only_where_they_are_known(fitted):
    """Strengths of one's own reach neither end, so that no score and no sentence may say that they do."""
    strengths = [float(fitted.strength), 1.01 * fitted.strength]
    for given in (strengths[:1], strengths):
        found = gr.fit(incomes(), PATH, target="y", node="node", folds=3, strengths=given)
        assert list(found.scores.index) == ["this fit"]
        said = " ".join(str(found).split())
        assert "one model for all not known: the strengths are your own; strengths=20, say, has both ends" in said
        assert "one model for all that the graph joins" not in said
        assert "at the lower end: every node alone" not in said
        assert ("of those that were given" in said) == (len(given) > 1)


def test_the_strongest_within_one_standard_error_on_demand(fitted):
    strongest = fitted.validation.one_se["strength"]
    given = [fitted.strength, strongest, 1e3 * strongest]
    found = gr.fit(incomes(), PATH, target="y", node="node", folds=3, rule="1se", strengths=given)
    assert found.strength == strongest > fitted.strength
    assert found.scores["mse"]["this fit"] == pytest.approx(
        fitted.validation.mean[fitted.validation.index("1se")], rel=1e-3
    )
    assert "the strongest within one standard error of the best of 3" in " ".join(str(found).split())
    names = {"frame": found.rows.frame, "graph": found.graph}
    exec(found.code(), names)
    assert names["solution"].objective == found.solution.objective
    frame = incomes(n=6, change=0.0)
    apart = gr.fit(frame, nx.path_graph(NODES[:4]), target="y", node="node", folds=3, rule="1se", strengths=[1e4])
    assert apart.takes_all


def test_one_model_for_all_is_taken_where_no_strength_beats_it_by_more_than_the_noise():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"node": np.repeat(NODES[:4], 12), "x": rng.normal(size=48)})
    frame["y"] = frame["x"] + rng.standard_t(1.5, size=48)  # one law for all, with errors of heavy tails
    found = gr.fit(frame, nx.path_graph(NODES[:4]), target="y", node="node")
    k = found.validation.index("min")
    scores, best = found.scores["mse"], found.validation.mean[k]
    assert found.strength == max(found.validation.points)
    assert best < scores["this fit"] == scores["one model for all"]
    worse, noise = found.validation.behind(found.validation.index("paired"))
    assert worse == pytest.approx(scores["one model for all"] - best)
    printed = " ".join(str(found).split())
    assert "the strongest of 21 by 5 folds, rule 'paired'; the best of them" in printed
    assert f"beats it by {worse:.2g} +- {noise:.2g}, no more than the noise; at the upper end" in printed
    apart = gr.fit(frame, nx.Graph([NODES[:2], NODES[2:4]]), target="y", node="node")
    assert apart.takes_all
    assert "one model for all is taken before 21 strengths of this graph; the best of them" in " ".join(
        str(apart).split()
    )
    least = gr.fit(frame, nx.path_graph(NODES[:4]), target="y", node="node", rule="min")
    assert least.validation.index("min") == k
    assert least.strength == found.validation.points[k]
    assert "the best of 21 by 5 folds, rule 'min'" in str(least)


@pytest.mark.parametrize(("taken", "spread"), [(False, 1.70), (True, 1.77)])
def test_one_model_for_all_beside_a_graph_in_parts_is_given_up_for_more_than_one_standard_error(fitted, taken, spread):
    best = [3.0, 4.0, 5.0, 6.0]  # ahead by 1.02 standard errors of the paired folds, and by 0.98
    all_nodes = [[each + 1 + spread * sign] for each, sign in zip(best, (1, -1, 1, -1), strict=True)]
    parts = constructed([[each, 20.0] for each in best], strengths=(1.0, 2.0), rule="paired")
    found = replace(fitted, validation=parts, pooled=constructed(all_nodes, strengths=(1.0,)))
    assert found.takes_all == taken
    assert not replace(found, validation=replace(parts, rule="min")).takes_all


@pytest.mark.parametrize("by", ["sample", "node"])
def test_one_model_for_all_is_compared_on_the_rows_that_both_predict(by):
    """A node that the graph lacks is predicted by one model for all alone, when its rows are held out."""
    frame = pd.concat([incomes(n=6), incomes(n=6)[:1].assign(node="lonely", y=9e5)], ignore_index=True)
    found = gr.fit(frame, PATH, target="y", node="node", folds=4, by=by, features=["income"], strengths=[1e3, 1e5])
    k, y = found.validation.index("min"), frame["y"].to_numpy()
    differences, nodes = np.full(len(frame), np.nan), frame["node"]
    for number, run in found.validation.runs.items():
        fold, one = found.validation.folds.each[number], found.pooled.runs[number].links[0, :, 0]
        own = (y[fold.test] - run.links[k, :, 0]) ** 2
        differences[fold.test[fold.scored]] = ((y[fold.test] - one) ** 2 - own)[fold.scored]
    kept = ~np.isnan(differences)
    assert nodes[~kept].tolist() == ["lonely"]
    worse, unit = differences[kept].mean(), nodes[kept] if by == "node" else np.flatnonzero(kept)
    sums = pd.Series(differences[kept] - worse).groupby(np.asarray(unit)).sum()
    noise = np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / kept.sum()
    assert found.validation.behind(0, found.pooled) == pytest.approx((worse, noise))


@pytest.mark.parametrize("name", ["clusters", "coef", "certificate"])
def test_names_of_the_answer_are_found(fitted, name):
    with pytest.raises(AttributeError, match=f"did you mean 'solution.{name}'"):
        getattr(fitted, name)


def test_labels_of_other_types_are_matched_on_demand():
    frame = incomes().assign(node=np.repeat(range(8), 12))
    edges = [(str(k), str(k + 1)) for k in range(7)]
    with pytest.raises(GraphError, match=r"type \(int and str\): 0 of the table beside '0' .*; ids=\"text\" compares"):
        gr.fit(frame, edges, target="y", node="node")
    found = gr.fit(frame, edges, target="y", node="node", ids="text", strengths=[1e4], folds=2)
    assert found.graph.labels == tuple("01234567")
    assert len(found.predict(frame)) == 96
    rows = frame.assign(node=frame["node"].astype(str))
    texts = gr.fit(rows, edges, target="y", node="node", strengths=[1e4], folds=2)
    with pytest.raises(DataError, match=r"there is '0' of type str, .*; write table\['node'\].astype\(str\)"):
        texts.predict(frame, unseen="pooled")


def test_two_numbers_are_two_classes_unless_a_loss_says_otherwise():
    frame = incomes().assign(y=lambda f: np.where(f["y"] > f["y"].mean(), 2.0, 1.0))
    how = {"target": "y", "node": "node", "folds": 2, "strengths": [1.0], "features": ["income"]}
    found = gr.fit(frame, PATH, **how)
    assert found.loss == "LogisticLoss"
    assert "'y' is coded 1 for 2.0 and 0 for 1.0" in found.remarks
    assert set(found.predict(frame, "class")) == {1.0, 2.0}
    assert gr.fit(frame, PATH, loss="SquaredLoss", **how).rows.frame["y"].max() == 2.0


@pytest.mark.parametrize("named", [False, True])
def test_folds_of_ones_own_stand_in_the_code(named):
    frame = incomes().assign(part=lambda f: np.arange(len(f)) % 3)
    frame.loc[[2, 3, 30], "income"] = np.nan  # so that rows are left out, and folds are of the others
    how = {"strengths": [1e3, 1e4], "features": ["income"], "missing": "drop"}
    found = gr.fit(frame, PATH, target="y", node="node", folds="part" if named else frame["part"], **how)
    names = {"frame": found.rows.frame, "graph": found.graph, "fit": found} | (
        {} if named else {"folds": frame["part"]}
    )
    exec(found.code(), names)
    assert names["found"].mean.tolist() == found.validation.mean.tolist()


def test_where_no_strengths_are_known_it_is_said_what_to_do():
    with pytest.raises(TermError, match=r"say which strengths to try: strengths="):
        gr.fit(incomes(), PATH, target="y", node="node", penalty=gr.SquaredL2())
    with pytest.raises(GraphError, match="the graph has no edges"):
        gr.fit(incomes(), nx.empty_graph(NODES), target="y", node="node")


def test_nodes_that_agree_at_any_strength_are_fitted_too(few_strengths):
    frame = pd.DataFrame({"node": np.repeat(NODES, 4), "y": np.tile([0.0, 1.0, 0.0, 1.0], 8)})
    found = gr.fit(frame, PATH, target="y", node="node", folds=2)
    assert found.solution.status == "certified"
    assert np.ptp(found.solution.coef) == pytest.approx(0.0, abs=1e-6)


RNG = np.random.default_rng(5)
TARGETS = {
    "numbers": RNG.normal(size=96),
    "counts": RNG.poisson(2, 96),
    "some below 0": RNG.poisson(2, 96) - 1,
    "classes": RNG.choice(["a", "b", "c"], 96),
    "one rare": np.append(RNG.poisson(1, 95), 9),
    "one or two": RNG.choice([1, 2], 96),
}


@pytest.mark.parametrize(
    ("loss", "kind", "said"),
    [
        ("PoissonLoss", "numbers", r"in row \d+ and in \d+ more; use SquaredLoss, .*; leave loss= out: SquaredLoss is"),
        (
            "GammaLoss",
            "counts",
            r"use PoissonLoss, or drop such rows; leave loss= out: PoissonLoss is the loss of such",
        ),
        (
            "GammaLoss",
            "some below 0",
            r"; use SquaredLoss, or drop such rows; leave loss= out: SquaredLoss is the loss",
        ),
        ("LogisticLoss", "counts", r"too many to be classes of LogisticLoss; name .* two classes; .* PoissonLoss is"),
        (
            "HingeLoss",
            "classes",
            r"too many to be classes of HingeLoss; .*: MultinomialLoss is .* since 'y' has 3 classes",
        ),
        ("SquaredHingeLoss", "numbers", r"too many to be classes of SquaredHingeLoss; .*: SquaredLoss is the loss"),
        (
            "HuberLoss",
            "classes",
            r"numbers, or use MultinomialLoss of classes; leave loss= out: MultinomialLoss is the",
        ),
        (
            "MultinomialLoss",
            "one rare",
            r"losses fall for ever at .*; leave loss= out: PoissonLoss is the loss of such a",
        ),
    ],
)
def test_a_wrong_loss_is_blamed_and_the_right_one_named(loss, kind, said):
    frame = incomes().assign(y=TARGETS[kind])
    with pytest.raises(ModelError, match=said):
        gr.fit(frame, PATH, target="y", node="node", loss=loss, strengths=[1.0], folds=2, progress=False)


@pytest.mark.parametrize("loss", ["LogisticLoss", "HingeLoss", "SquaredHingeLoss"])
def test_two_values_are_two_classes_of_a_loss_that_is_asked_for(loss):
    frame = incomes().assign(y=TARGETS["one or two"])
    found = gr.fit(frame, PATH, target="y", node="node", loss=loss, strengths=[1.0], folds=2, progress=False)
    assert found.loss == loss
    assert set(found.predict(frame, "class")) <= {1, 2}


def test_errors_that_are_not_of_the_target_blame_no_loss():
    with pytest.raises(ModelError) as error:
        gr.fit(incomes(), PATH, target="y", node="node", loss="HuberLoss", strengths=[1.0], folds=1000)
    assert "loss" not in str(error.value)


@pytest.mark.parametrize(
    ("loss", "change", "how", "said"),
    [
        ("HuberLoss", {"y": 1e200 * RNG.normal(size=96)}, {}, "its square overflows; rescale the column"),
        ("PoissonLoss", {"y": RNG.poisson(9, 96) / 7, "v": 0.0}, {"weights": "v"}, "'v' is not positive in rows 0"),
        ("PoissonLoss", {"y": RNG.poisson(9, 96) / 7, "v": np.inf}, {"weights": "v"}, "'v' is infinite in rows 0"),
        ("PoissonLoss", {"y": RNG.poisson(9, 96) / 7}, {"folds": 1000}, "folds must be between 2 and"),
        (
            "MultinomialLoss",
            {"y": np.arange(96) % 5 * (np.arange(96) > 47)},
            {"graph": HALVES},
            "intercept is infinite",
        ),
    ],
)
def test_a_loss_is_blamed_only_where_the_usual_one_takes_the_data(loss, change, how, said):
    frame = incomes().assign(**change)
    with pytest.raises(ModelError) as error:
        gr.fit(frame, **{"graph": PATH, "folds": 2, **how}, target="y", node="node", loss=loss, strengths=[1.0])
    assert said in str(error.value)
    assert "loss=" not in str(error.value)


@pytest.mark.parametrize("y", ["own", "all"])
def test_a_saved_answer_is_of_the_problem_that_the_printed_lines_build(y, tmp_path):
    frame = incomes()
    if y == "all":  # in two parts, with nothing to tell them apart
        frame = frame.assign(y=frame["income"] / 1e4 + np.random.default_rng(0).normal(size=len(frame)))
    graph = PATH if y == "own" else [edge for k, edge in enumerate(nx.Graph(PATH).edges) if k != 3]
    found = gr.fit(frame, graph, target="y", node="node", folds=2, progress=False)
    assert found.takes_all is (y == "all")
    found.solution.save(tmp_path / "answer.npz")
    names = {"frame": found.rows.frame, "graph": found.graph}
    exec(found.code().split("strengths =")[0], names)
    again = gr.load(tmp_path / "answer.npz", names["problem"])
    assert again.status == "certified"
    np.testing.assert_allclose(again.predict(frame), found.predict(frame))
    kept = pickle.loads(pickle.dumps(found))
    assert kept.predict(frame).equals(found.predict(frame))
    assert str(kept) == str(found)


def test_pictures_take_a_fit_and_say_how_a_file_is_written(fitted):
    places = {node: (k, 0) for k, node in enumerate(NODES)}
    for drawn, same in (
        (gr.plots.plot_map(fitted, places), gr.plots.plot_map(fitted.solution, places)),
        (gr.plots.plot_graph(fitted), gr.plots.plot_graph(fitted.solution)),
        (gr.plots.plot_flows(fitted), gr.plots.plot_flows(fitted.solution)),
    ):
        assert drawn.get_title() == same.get_title() != ""
    with pytest.raises(ModelError, match=r"got 'fit.png'; fit.plot\(\).savefig writes a file"):
        fitted.plot("fit.png")
    with pytest.raises(AttributeError, match=r"did you mean 'gr\.plots\.plot_map'"):
        gr.plot_map  # noqa: B018


def test_rates_weighted_by_exposures_are_the_fit_with_the_offset_of_their_logarithms():
    rng = np.random.default_rng(0)
    node, days = np.repeat(NODES, 10), rng.integers(1, 30, 80).astype(float)
    cases = rng.poisson(days * np.where(np.arange(80) < 40, 0.3, 1.5)).astype(float)
    frame = pd.DataFrame({"node": node, "rate": cases / days, "cases": cases, "days": days, "log": np.log(days)})
    how = {"weights": "days", "loss": "PoissonLoss", "features": []}
    found = gr.fit(frame, PATH, target="rate", node="node", folds=2, strengths=[1.0], **how)
    data = gr.NodeData.from_frame(frame, node="node", target="cases", features=[], intercept=True, offset="log")
    model = gr.PoissonLoss(data, scale="sum") + 1.0 * gr.TotalVariation(PATH, gr.L2())
    by_offset = gr.Problem(model).solve().table().loc[NODES, "intercept"]
    assert found.table().loc[NODES, "intercept"].to_numpy() == pytest.approx(by_offset.to_numpy(), abs=1e-3)


def test_what_is_wrong_with_a_table_its_labels_and_its_edges_is_said_at_once(tmp_path):
    frame = pd.DataFrame({"node": [*"abcdef"] * 4, "x": np.arange(24.0), "y": np.arange(24.0) ** 0.5}).astype(object)
    frame.loc[3, "y"], frame.loc[5, "x"], frame.loc[9, "x"] = "€12", "many", None
    edges = pd.DataFrame([("A", "b"), ("b", "c"), ("c", "b"), ("c", None), ("d", "d ")], columns=["i", "j"])
    frame.to_csv(tmp_path / "table.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    said = [
        "'x' holds numbers, but line 7 'many': write numbers, or empty cells",
        "'y' holds numbers, but line 5 '€12'",
        "'x' is missing in line 11; use",
        "edges.csv has a missing end, or a weight that is no number, in line 5",
        "edges.csv joins nodes with themselves in line 6",
        "edges.csv has edges that stand several times, again in line 4; use",
    ]
    with pytest.raises(DataError) as caught:
        gr.fit(tmp_path / "table.csv", tmp_path / "edges.csv", target="y", node="node")
    assert all(each in str(caught.value) for each in said), caught.value
    with pytest.raises(DataError) as caught:
        gr.fit(frame, edges[:3], target="y", node="node")
    where = [
        each.replace("line 7", "row 5").replace("line 5", "row 3").replace("line 11", "row 9") for each in said[:3]
    ]
    where += ["the edge 'b' - 'c' appears twice", "labels differ only by upper and lower case"]
    assert all(each in str(caught.value) for each in where), caught.value


def test_all_that_is_wrong_with_edges_is_said_once(tmp_path):
    (tmp_path / "edges.csv").write_text("a,b,weight\nn0,n1,1\nn1,n2,-1\nn2,n3,\nn3,n3,1\nn0,n1,2\nn4,n5,inf\n")
    with pytest.raises(DataError) as caught:
        gr.fit(incomes(), tmp_path / "edges.csv", target="y", node="node")
    assert [line.strip() for line in str(caught.value).splitlines()] == [
        "edges.csv has a missing end, or a weight that is no number, in line 4",
        "edges.csv joins nodes with themselves in line 5; leave these edges out",
        "edges.csv has weights that are not positive and finite in lines 3, 7",
        'edges.csv has edges that stand several times, again in line 6; use repeated="sum"',
    ]


def test_a_file_of_edges_may_hold_an_adjacency(tmp_path):
    matrix = pd.DataFrame(2.0 * nx.to_numpy_array(nx.path_graph(8)), NODES, NODES)
    matrix.to_csv(tmp_path / "matrix.csv")
    found = gr.fit(incomes(), tmp_path / "matrix.csv", target="y", node="node", folds=2, strengths=[1.0])
    assert set(found.graph.to_networkx().edges) == set(PATH.edges)
    assert found.graph.weight.tolist() == [2.0] * 7
    assert "matrix.csv is read as an adjacency" in str(found)
    matrix.iloc[0, 1] = np.nan
    matrix.to_csv(tmp_path / "matrix.csv")
    with pytest.raises(GraphError, match="has the weight nan"):
        gr.fit(incomes(), tmp_path / "matrix.csv", target="y", node="node")


def test_a_target_of_numbers_that_are_kept_as_text_or_objects_is_one_of_numbers():
    frame = incomes()
    as_numbers = gr.fit(frame, PATH, target="y", node="node", folds=2, strengths=[1.0])
    found = gr.fit(frame.astype({"y": object}), PATH, target="y", node="node", folds=2, strengths=[1.0])
    assert found.loss == as_numbers.loss == "SquaredLoss"
    frame.loc[2, "y"] = np.inf
    with pytest.raises(DataError, match=r"'y' is infinite in row 2"):
        gr.fit(frame, PATH, target="y", node="node")


def test_scores_of_other_rows_and_of_neighbours_are_said():
    """A node without edges is not scored where nodes are held out, by any of the models."""
    rng, labels = np.random.default_rng(0), "abcdefgh"
    frame = pd.DataFrame({"n": np.repeat(list(labels), 20), "x": rng.normal(size=160)})
    frame["y"] = np.repeat(np.arange(8.0), 20) + frame.x + 0.5 * rng.normal(size=160)
    edges = list(pairwise(labels))
    fit = gr.fit(frame, edges[:-1], target="y", node="n", by="node", folds=4)
    said = " ".join(str(fit).split())
    assert "20 rows at nodes without neighbours to go by cannot be predicted, and are not scored" in said
    held_out = [each.predictions[each.predictions.scored.astype(bool)] for each in (fit.validation, fit.pooled)]
    assert [len(rows) for rows in held_out] == [140, 140]
    error = ((held_out[1].y - held_out[1].prediction) ** 2).mean()
    assert fit.scores.loc["one model for all", "mse"] == pytest.approx(error)
    assert "every node alone: a node that is held out has no rows" in said
    said = str(gr.fit(frame, edges, target="y", node="n", folds=4))
    assert "not scored" not in said
    assert "its neighbours predict it" not in said


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.LInf()], ids=repr)
@pytest.mark.parametrize("loss", ["QuantileLoss(tau=0.9)", "HingeLoss"])
def test_losses_with_kinks_have_strengths_from_one_model_to_every_node_alone(loss, penalty):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": np.repeat(list("abcd"), 20), "x": rng.normal(size=80)})
    frame["y"] = np.where(frame.n < "c", 1.0, -1.0) * frame.x + 0.3 * rng.normal(size=80)
    frame["y"] = (frame.y > 0).astype(int) if loss == "HingeLoss" else frame.y
    edges = pd.DataFrame({"a": list("abc"), "b": list("bcd"), "weight": [1.0, 1e-2, 3.0]})
    found = gr.fit(
        frame, edges, target="y", node="n", loss=loss, penalty=penalty, strengths=3, folds=3, edge_weight="weight"
    )
    assert list(found.scores.index) == ["this fit", "one model for all", "every node alone"]
    strengths = [point[0] for point in found.validation.grid.points]
    apart = []
    for k in (strengths.index(min(strengths)), strengths.index(max(strengths))):
        with found.validation.grid.at(k):
            apart.append(np.ptp(found.problem.solve(gap=1e-9, on_failure="return").coef, axis=0).max())
    assert apart[0] > 0.5
    assert apart[1] < 1e-4


def test_one_large_strength_is_not_taken_for_how_many_there_are():
    with pytest.raises(ModelError, match=r"for the one strength 200000 give \[200000.0\], or 200000.0 on the command"):
        gr.fit(incomes(), PATH, target="y", node="node", strengths=200_000)


def test_penalties_under_which_nodes_never_agree_are_fitted_at_strengths_that_are_given():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": np.repeat(list("abc"), 20), "x": rng.normal(size=60)})
    frame["y"] = frame.x + rng.normal(size=60)
    given = {"target": "y", "node": "n", "loss": "QuantileLoss", "penalty": gr.SquaredL2(), "folds": 3}
    with pytest.raises(TermError, match=r"say which strengths to try: strengths=\[0.01"):
        gr.fit(frame, [("a", "b")], **given)
    found = gr.fit(frame, [("a", "b")], strengths=[0.1, 1.0], **given)
    assert found.solution.status == "certified"  # 'c' has no edges


def test_a_file_of_edges_without_a_header_is_refused(tmp_path):
    """Its first edge would be lost."""
    (tmp_path / "edges.csv").write_text("a,b\nb,c\nc,d\n")
    frame = pd.DataFrame({"n": list("abcd") * 5, "y": np.arange(20.0)})
    with pytest.raises(DataError, match=r"first line of edges.csv, 'a', 'b', names a node of the lines below"):
        gr.fit(frame, tmp_path / "edges.csv", target="y", node="n", folds=2)


@pytest.mark.parametrize(
    ("text", "said"), [("n;y\na;1\n", "has ';' between its cells"), ("n\ty\na\t1\n", r"has '.+' between its cells")]
)
def test_tables_with_other_separators_say_how_to_save_them(text, said, tmp_path):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(DataError, match=f"{said}: save it with commas, as UTF-8"):
        gr.fit(tmp_path / "table.csv", nx.path_graph(["a", "b"]), target="y", node="n")
    (tmp_path / "latin.csv").write_bytes("n,y\né,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="save it with commas, as UTF-8"):
        gr.fit(tmp_path / "latin.csv", nx.path_graph(["a", "b"]), target="y", node="n")
