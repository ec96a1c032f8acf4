"""Consequences of the scores: the choices, in words and pictures; grids; what is refused."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from validation_cases import constructed, frame_of, plain, read, river

import graphreg as gr
from graphreg.errors import MethodError, ModelError, TermError
from graphreg.tuning import fold_runs
from graphreg.tuning.fold_runs import FoldRun
from graphreg.tuning.folds import folds_of


# ---- the choice ------------------------------------------------------------------------------------------------------
def test_the_one_se_rule():
    found = constructed([[5, 3, 3.4, 6], [3, 1, 1.5, 2], [4, 2, 2.3, 7]])
    np.testing.assert_allclose(found.mean, [4, 2, 2.4, 5])
    np.testing.assert_allclose(found.standard_error[1], 1 / np.sqrt(3))
    assert (found.best, found.one_se, found.chosen) == ({"lam": 2.0}, {"lam": 3.0}, {"lam": 3.0})
    assert found.table()["choice"].tolist() == ["", "best", "1se", ""]
    close = constructed([[5, 3, 3.6, 6], [3, 1, 1.6, 2], [4, 2, 2.6, 7]])  # 0.6 above, one error is 0.577
    assert close.one_se == close.best == {"lam": 2.0}
    noisy = constructed([[5, 3, 6, 6], [3, 1, 1, 2], [4, 2, 2, 7]])  # 1 above, with an error of its own of 1.5
    assert noisy.one_se == {"lam": 2.0}


def test_the_paired_rule_takes_the_strongest_unless_the_best_beats_it_by_more_than_the_noise():
    heavy = constructed([[1, 9, 9, 11], [4, 9, 9, 3], [5, 9, 9, 4], [6, 9, 9, 5]], rule="paired")  # one fold decides
    worse, noise = heavy.behind(3)
    assert (worse, noise) == pytest.approx((1.75, np.std([10, -1, -1, -1]) / np.sqrt(3)))
    assert (heavy.best, heavy.chosen) == ({"lam": 1.0}, {"lam": 4.0})
    assert heavy.table()["choice"].tolist() == ["best, 1se", "", "", "paired"]
    assert "chosen by 'paired': lam = 4" in str(heavy)
    assert "unless the best beats it by more than one standard error" in " ".join(heavy.assumed)
    steady = constructed([[1, 90, 90, 1.3], [10, 90, 90, 10.2], [50, 90, 90, 50.3]], rule="paired")  # in every fold
    assert (steady.chosen, steady.one_se) == ({"lam": 1.0}, {"lam": 4.0})
    for chosen, spread in ((1.0, 1.70), (4.0, 1.77)):  # the best is ahead by 1.02 standard errors, and by 0.98
        ahead = [[3 + k, 9, 9, 4 + k + spread * sign] for k, sign in enumerate((1, -1, 1, -1))]
        close = constructed(ahead, rule="paired")
        assert close.behind(3) == pytest.approx((1.0, spread / np.sqrt(3)))
        assert (close.best, close.chosen) == ({"lam": 1.0}, {"lam": chosen})
    same = constructed([[1, 90, 90, 1 + 1e-12], [10, 90, 90, 10 + 1e-12]], rule="paired")  # one model, but for rounding
    assert same.chosen == {"lam": 4.0}
    loss = constructed([[11, 9, 9, 1], [3, 9, 9, 4], [4, 9, 9, 5], [5, 9, 9, 6]], on_loss=True, rule="paired")
    assert (loss.best, loss.chosen) == ({"lam": 4.0}, {"lam": 1.0})
    sizes = constructed([[1, 4], [5, 4]], sizes=[3, 1], strengths=(1.0, 2.0), rule="paired")
    assert sizes.behind(1) == pytest.approx((2.0, np.sqrt(2 * (0.75**2 * 1 + 0.25**2 * 9))))
    other = constructed([[2], [3], [5], [8]], strengths=(1.0,))  # of another grid, on the same folds
    assert heavy.behind(0, other)[0] == pytest.approx(np.mean([2, 3, 5, 8]) - 4)


@pytest.mark.parametrize(("by", "scoring"), [("sample", "mse"), ("node", "mse"), ("sample", "own"), ("pairs", "mse")])
def test_the_paired_rule_measures_the_noise_by_what_was_dealt_to_the_folds(by, scoring):
    problem, _, _ = plain()
    score = {"scoring": lambda y, p, w: np.average((y - p) ** 2, weights=w), "greater_is_better": False}
    how = score if scoring == "own" else {"scoring": "mse"}
    folds = gr.cross_validate(problem, [0.05, 5.0], 4, refit=False).folds
    given = {"folds": [(fold.train, fold.test) for fold in folds.each]} if by == "pairs" else {"folds": 4, "by": by}
    found = gr.cross_validate(problem, [0.05, 5.0], **given, **how, rule="paired", refit=False)
    best, end = found.index("min"), 1 - found.index("min")
    data, frame = problem.form.samples[0].loss.data, frame_of()
    losses, fold = np.zeros((2, len(frame))), np.zeros(len(frame), dtype=int)
    for k, run in found.runs.items():
        test = found.folds.each[k].test
        losses[:, test], fold[test] = (data.y[test] - run.links[:, :, 0]) ** 2, k
    unit = {"sample": np.arange(len(frame)), "node": data.node}.get(by if scoring == "mse" else "fold", fold)
    differences, v = losses[end] - losses[best], frame["v"].to_numpy()
    worse = np.average(differences, weights=v)
    sums = np.bincount(unit, v * (differences - worse))
    noise = np.sqrt(np.sum(sums**2) * len(sums) / (len(sums) - 1)) / v.sum()
    assert found.behind(end) == pytest.approx((worse, noise))
    word = "fold" if len(sums) == 4 else by
    assert any(each.endswith(f"one standard error of their difference by {word}") for each in found.assumed)


def test_folds_that_agree_do_not_hide_the_noise_of_their_rows():
    """In every fold the best is ahead by the same, on one row, and behind on the others by nearly as much in all."""
    problem, _, _ = plain()
    found = gr.cross_validate(problem, [0.05, 5.0], 6, scoring="mse", rule="paired", refit=False)
    data, runs = problem.form.samples[0].loss.data, dict(found.runs)
    for number, run in runs.items():
        y, v = (each[found.folds.each[number].test] for each in (data.y, data.weights))
        worse = np.where(np.arange(len(y)) == 0, 20.0, -2.0)
        worse += (1.0 - np.average(worse, weights=v)) * v.sum() / v[0] * (np.arange(len(y)) == 0)  # 1 in the mean
        links = np.stack([y + 5.0, y + np.sqrt(25.0 + worse)])[:, :, None]
        runs[number] = replace(run, links=links)
    steady = replace(found, runs=runs)
    np.testing.assert_allclose(np.diff(steady.scores, axis=1), 1.0)
    assert steady.behind(1)[1] > 1.0
    assert (steady.best, steady.chosen) == ({"lam": 0.05}, {"lam": 5.0})


def test_folds_count_by_the_weight_that_they_hold():
    found = constructed([[1, 2], [4, 2]], sizes=[3, 1], strengths=(1.0, 2.0))
    np.testing.assert_allclose(found.mean, [(3 * 1 + 4) / 4, 2])
    spread = 0.75 * (1 - 1.75) ** 2 + 0.25 * (4 - 1.75) ** 2
    np.testing.assert_allclose(found.standard_error, [np.sqrt(spread / 1), 0], atol=1e-12)


def test_a_larger_parameter_of_a_loss_is_the_weaker_regularisation():
    found = constructed([[3, 2.5, 2, 6], [1, 1.5, 2, 7]], on_loss=True)
    assert found.best == {"lam": 1.0}
    assert found.one_se == {"lam": 1.0}
    found = constructed([[6, 2, 2.5, 3], [7, 2, 1.5, 1.2]], on_loss=True)
    assert found.best == {"lam": 2.0} or found.mean[1] == found.mean[2]
    lam = gr.Parameter(1.0, name="lam")
    both = gr.Problem(lam * (gr.SquaredLoss(read(frame_of())) + gr.TotalVariation(river(), gr.L2())))
    with pytest.raises(TermError, match="the Parameter 'lam' scales a loss and a penalty"):
        gr.cross_validate(both, [0.1, 1.0], rule="1se")


def test_where_more_is_better_the_largest_score_is_chosen():
    problem = plain()[0]
    found = gr.cross_validate(
        problem, [0.05, 5.0], scoring=lambda y, p, w: -np.average((y - p) ** 2, weights=w), greater_is_better=True
    )
    mse = gr.cross_validate(problem, [0.05, 5.0], scoring="mse")
    np.testing.assert_allclose(found.scores, -mse.scores)
    assert found.best == mse.best
    assert found.one_se == mse.one_se
    assert found.index("paired") == mse.index("paired")
    worse = found.behind(1 - found.index("min"))[0]  # the noise is that of folds, and of rows
    assert worse == pytest.approx(mse.behind(1 - mse.index("min"))[0])
    assert worse > 0.0


def test_points_that_were_not_certified_are_never_chosen():
    _problem, _, found = plain()
    best, runs = found.index("min"), dict(found.runs)
    statuses = list(runs[2].statuses)
    statuses[best] = "no_certificate"
    runs[2] = replace(runs[2], statuses=tuple(statuses))
    marked = replace(found, runs=runs)
    assert marked.index("min") != best
    assert np.isnan(marked.behind(best)[0])  # no rule takes it
    heavy = constructed([[1, 9, 11, 11], [4, 9, 3, 3], [5, 9, 4, 4], [6, 9, 5, 5]], rule="paired")
    runs = {k: replace(run, statuses=(*run.statuses[:3], "no_certificate")) for k, run in heavy.runs.items()}
    assert (heavy.chosen, replace(heavy, runs=runs).chosen) == ({"lam": 4.0}, {"lam": 3.0})
    row = marked.table().iloc[best]
    assert row["status"] == "no_certificate in 1 of 5 folds"
    assert row["choice"] == "excluded"
    assert np.isnan(row["score"])
    assert np.isnan(marked.scores.iloc[2, best])


def test_a_model_that_no_fold_can_fit_is_not_chosen_from():
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 2), np.array([0, 0, 1, 1] * 2)
    lam = gr.Parameter(1.0, name="lam")
    loss = gr.LogisticLoss(gr.NodeData.from_arrays(X, y, ["x"] * 4 + ["z"] * 4))
    found = gr.cross_validate(
        gr.Problem(loss + lam * gr.TotalVariation(nx.path_graph(["x", "z"]), gr.L2())), [0.1, 1.0], 2
    )
    assert found.solution is None
    assert not found.usable.any()
    assert "chosen: nothing" in str(found)
    assert "unattained in 2 of 2 folds" in str(found)
    with pytest.raises(
        ModelError, match=r"no point of the grid has a score: .*4 unattained.*fall for ever at 'x', 'z' .*small ridge"
    ):
        _ = found.chosen


def test_the_nodes_are_named_whose_classes_a_fold_takes_away():
    y, lam = np.array([0, 1, 1, 0] * 2 + [0, 0, 0, 1]), gr.Parameter(1.0, name="lam")
    loss = gr.LogisticLoss(gr.NodeData.from_arrays(np.ones((12, 1)), y, ["x"] * 4 + ["y"] * 4 + ["z"] * 4))
    graph = nx.Graph([("x", "y")])
    graph.add_node("z")
    model = loss + lam * gr.TotalVariation(graph, gr.L2())
    each = [(np.delete(np.arange(12), test), np.array(test)) for test in ([0, 4, 8], [1, 5, 11])]
    found = gr.cross_validate(gr.Problem(model), [0.1, 1.0], each)
    with pytest.raises(ModelError, match="without the rows of the fold 1 the losses fall for ever at 'z' "):
        _ = found.chosen


def test_the_refit_is_the_certified_solution_at_the_choice():
    problem, lam, found = plain()
    assert found.solution.status == "certified"
    assert lam.value == 0.3
    lam.value = found.chosen["lam"]
    theirs = problem.solve()
    lam.value = 0.3
    np.testing.assert_allclose(found.solution.coef, theirs.coef, atol=2e-2)
    assert found.solution.objective == pytest.approx(theirs.objective, rel=1e-5)
    try:
        found.assign()
        assert lam.value == found.chosen["lam"]
    finally:
        lam.value = 0.3


# ---- grids -----------------------------------------------------------------------------------------------------------
def test_two_parameters_of_a_hierarchy():
    frame, gamma, lam = frame_of(), gr.Parameter(1.0, name="gamma"), gr.Parameter(2.0, name="lam")
    clusters = {f"n{i}": "AB"[i // 3] for i in range(6)}
    problem = gr.Problem(gr.SquaredLoss(read(frame)) + gr.Hierarchy(clusters, weights=(gamma, lam)))
    found = gr.cross_validate(problem, {"gamma": [0.1, 3.0], lam: [0.01, 1.0]}, folds=3, rule="1se")
    assert found.points.tolist() == [(0.1, 0.01), (0.1, 1.0), (3.0, 0.01), (3.0, 1.0)]
    for k, (g, l) in enumerate(found.points):
        gamma.value, lam.value = 1.0, l
        one = gr.cross_validate(problem, {gamma: [g]}, folds=3, refit=False)
        np.testing.assert_allclose(one.scores.iloc[:, 0], found.scores.iloc[:, k], rtol=1e-3)
    within = found.mean <= found.mean.min() + found.standard_error[found.mean.argmin()]
    product = np.where(within, np.prod(found.grid.points, axis=1), 0)
    assert found.index("1se") == product.argmax()
    listed = gr.cross_validate(problem, [{"lam": 1.0, gamma: 0.1}, {gamma: 3.0, "lam": 0.01}], folds=3, refit=False)
    assert listed.grid.names == ["lam", "gamma"]
    np.testing.assert_allclose(listed.mean, found.mean[[1, 2]], rtol=1e-3)


def test_without_a_grid_the_strengths_begin_where_all_nodes_agree():
    problem, lam, _ = plain()
    found = gr.cross_validate(problem, 4, folds=2, refit=False)
    top = float(gr.strength_max(problem, lam))
    np.testing.assert_allclose([p[0] for p in found.grid.points], top * np.geomspace(1, 1e-3, 4))
    squared = gr.Problem(gr.SquaredLoss(read(frame_of())) + lam * gr.TotalVariation(river(), gr.SquaredL2()))
    with pytest.raises(ModelError, match="Give the strengths to try"):
        gr.cross_validate(squared)


def test_parameters_have_their_values_again_whatever_happens(monkeypatch):
    problem, lam, _ = plain()

    def fail(form, w, rows):
        raise RuntimeError("on the way")

    monkeypatch.setattr(fold_runs, "_links", fail)
    with pytest.raises(RuntimeError, match="on the way"):
        gr.cross_validate(problem, [0.1])
    assert lam.value == 0.3


# ---- what is refused -------------------------------------------------------------------------------------------------
M = 42


def test_fold_labels_of_a_column_of_any_library():
    import pyarrow

    problem, label = plain()[0], ["u", "v", "w"] * (M // 3)
    expected = folds_of(problem.form, label, "sample", 0)
    for column in (pd.Series(label), np.array(label), pyarrow.chunked_array([label])):
        found = folds_of(problem.form, column, "sample", 0)
        assert [fold.name for fold in found.each] == ["u", "v", "w"]
        assert all((a.test == b.test).all() for a, b in zip(found.each, expected.each, strict=True))


BAD = {
    "empty grid": ({"grid": []}, "the grid is empty"),
    "empty mapping": ({"grid": {}}, "the grid is empty"),
    "no values": ({"grid": {"lam": []}}, "no values for 'lam'"),
    "negative": ({"grid": [-1.0]}, "a grid value of 'lam' must be positive"),
    "zero": ({"grid": {"lam": [0]}}, "a grid value of 'lam' must be positive"),
    "nan": ({"grid": [np.nan]}, "a grid value of 'lam' must be positive and finite"),
    "text": ({"grid": "0.1"}, "grid must be numbers"),
    "a text among them": ({"grid": ["0.1"]}, "a grid value of 'lam' must be a positive number"),
    "twice": ({"grid": [0.1, 0.1]}, "the point lam = 0.1 twice"),
    "unknown name": ({"grid": {"mu": [1.0]}}, "'mu' is no Parameter of the model; the model has 'lam'"),
    "other Parameter": ({"grid": {gr.Parameter(1.0): [1.0]}}, "scales no term of the model"),
    "some points": ({"grid": [{"lam": 1.0}, {}]}, "each point of the grid must be a mapping"),
    "no strengths": ({"grid": 0}, "at least one strength"),
    "too many folds": ({"folds": 43}, "folds must be between 2 and the number of samples, 42, got 43"),
    "too many nodes": ({"folds": 7, "by": "node"}, "the number of nodes with data, 6, got 7"),
    "one fold": ({"folds": 1}, "folds must be between 2"),
    "one label": ({"folds": ["u"] * M}, "all samples have the fold label 'u'"),
    "wrong length": ({"folds": [1, 2, 3]}, "there are 3 fold labels and 42 samples"),
    "missing label": ({"folds": [None, *range(M - 1)]}, "the fold label in row 0 is missing"),
    "list as label": ({"folds": [[1, 2, 3]] * M}, r"the fold label \[1, 2, 3\] in row 0 is not hashable"),
    "column name": ({"folds": "year"}, r"for a column of your frame write folds=frame\['year'\]"),
    "overlap": ({"folds": [([0, 1], [1]), ([0], [1])]}, "row 1 is both a train and a test row of fold 0"),
    "no test rows": ({"folds": [([0], []), ([0], [1])]}, "the test rows of fold 0 must be"),
    "out of range": ({"folds": [([0], [99]), ([0], [1])]}, "the test rows of fold 0 name row 99"),
    "row twice": ({"folds": [([0, 0], [1]), ([0], [1])]}, "the train rows of fold 0 name a row twice"),
    "one pair": ({"folds": [([0], [1])]}, "at least two folds"),
    "by": ({"by": "year"}, "by must be 'sample' or 'node'"),
    "by and folds": ({"by": "node", "folds": list(range(M))}, "by='node' is for a number of folds"),
    "scoring": ({"scoring": "r2"}, "scoring must be one of 'loss', 'mse'"),
    "scoring of counts": ({"scoring": "deviance"}, "'deviance' takes PoissonLoss, and SquaredLoss is none"),
    "scoring of classes": ({"scoring": "auc"}, "'auc' takes losses of two classes, and SquaredLoss is none"),
    "direction": ({"scoring": lambda y, p, w: 0.0}, "say greater_is_better=True or False"),
    "needless direction": ({"greater_is_better": True}, "is for a scoring function of your own"),
    "nan score": (
        {"scoring": lambda y, p, w: np.nan, "greater_is_better": False},
        "the scoring <lambda> is nan in fold 0",
    ),
    "score of text": ({"scoring": lambda y, p, w: "1", "greater_is_better": False}, "must give a number, got '1'"),
    "rule": ({"rule": "best"}, "rule must be one of 'min', '1se', 'paired'"),
    "gap": ({"gap": 0.0}, "gap must be a positive number"),
    "seed": ({"seed": -1}, "seed must be a whole number"),
    "jobs": ({"jobs": 0}, "jobs must be a whole number"),
    "method": ({"method": gr.ADMM}, "method must be a method"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(case):
    options, message = BAD[case]
    with pytest.raises(ModelError, match=message):
        gr.cross_validate(plain()[0], **{"grid": [0.1], "folds": 2, **options})


def test_a_problem_without_parameters_or_with_several_says_what_to_write():
    data, lam = read(frame_of()), gr.Parameter(0.1, name="lam")
    with pytest.raises(ModelError, match=r"write lam = gr\.Parameter\(0\.1, name='lam'\)"):
        gr.cross_validate(gr.Problem(gr.SquaredLoss(data)), [0.1])
    with pytest.raises(ModelError, match="takes a Problem"):
        gr.cross_validate(gr.SquaredLoss(data), [0.1])
    same = gr.Parameter(1.0, name="lam")
    two = gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(river(), gr.L2()) + same * gr.NodePenalty(gr.L1()))
    with pytest.raises(ModelError, match=r"for the only Parameter of a model, and this one has 2 \(lam, lam\)"):
        gr.cross_validate(two, [0.1])
    with pytest.raises(ModelError, match="2 Parameters of the model are called 'lam'"):
        gr.cross_validate(two, {"lam": [0.1]})
    with pytest.raises(ModelError, match="two Parameters of the grid are called 'lam'"):
        gr.cross_validate(two, {lam: [0.1], same: [0.1]})
    with pytest.raises(ModelError, match="names the Parameter 'lam' twice"):
        gr.cross_validate(gr.Problem(gr.SquaredLoss(data) + lam * gr.NodePenalty(gr.L1())), {lam: [0.1], "lam": [0.2]})


def test_a_single_class_has_no_auc():
    frame, lam = frame_of(), gr.Parameter(0.1, name="lam")
    problem = gr.Problem(gr.LogisticLoss(read(frame, "hit")) + lam * gr.TotalVariation(river(), gr.L2()))
    with pytest.raises(ModelError, match="needs held-out samples of both classes in every fold"):
        gr.cross_validate(problem, [0.1], folds=frame["hit"], scoring="auc")


def test_a_method_that_does_not_fit_a_fold_is_refused_with_its_name():
    frame, lam = frame_of(), gr.Parameter(0.1, name="lam")
    clusters = {f"n{i}": "AB"[i // 3] for i in range(6)}
    problem = gr.Problem(gr.SquaredLoss(read(frame)) + gr.Hierarchy(clusters, weights=(lam, 0.1)))
    assert not gr.AsyncAL2SGD().missing(problem.form)
    with pytest.raises(
        MethodError, match=r"fold 0: AsyncAL2SGD does not apply: the loss at 'n\d' is not strongly convex"
    ):
        gr.cross_validate(problem, [0.1], folds=3, by="node", method=gr.AsyncAL2SGD())


# ---- pictures and words ----------------------------------------------------------------------------------------------
def test_the_picture_shows_scores_errors_and_choices():
    pytest.importorskip("matplotlib").use("Agg")
    found = plain()[2]
    axes = found.plot()
    line = axes.containers[0][0]
    order = np.argsort(found.points)
    np.testing.assert_allclose(line.get_xdata(), found.points[order])
    np.testing.assert_allclose(line.get_ydata(), found.mean[order])
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[:2] == [f"best: {found.best['lam']:.3g}", f"1se: {found.one_se['lam']:.3g}"]
    assert labels[2:] == ["one standard error from the best", "mean of the folds, +- one standard error"]
    statuses = replace(found.runs[0], statuses=("no_certificate", *found.runs[0].statuses[1:]))
    axes = replace(found, runs={**found.runs, 0: statuses}).plot()
    assert "not certified" in [text.get_text() for text in axes.get_legend().get_texts()]
    gamma, lam = gr.Parameter(1.0, name="gamma"), gr.Parameter(1.0, name="lam")
    clusters = {f"n{i}": "AB"[i // 3] for i in range(6)}
    two = gr.Problem(gr.SquaredLoss(read(frame_of())) + gr.Hierarchy(clusters, weights=(gamma, lam)))
    both = gr.cross_validate(two, {gamma: [1.0, 0.1, 0.3], lam: [0.2, 2.0]}, folds=2, refit=False)
    axes = both.plot()
    shown = axes.images[0].get_array()
    assert shown.shape == (3, 2)
    for (g, l), mean in zip(both.points, both.mean, strict=True):
        assert shown[[0.1, 0.3, 1.0].index(g), [0.2, 2.0].index(l)] == pytest.approx(mean)
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("gamma", "lam")


def test_the_words():
    found = plain()[2]
    text = str(found)
    assert text.splitlines()[0].startswith("cross-validation: 5 folds, 4 points, scoring loss (the smaller the better)")
    assert f"chosen by 'min': lam = {found.best['lam']:g} (score {found.mean.min():.6g}" in text
    assert "assumed: 5 folds by sample" in text
    assert "certified to a relative gap of 1e-06" in text
    assert len(repr(found)) < 200
    assert "5 of 5 folds x 4 points" in repr(found)
    assert isinstance(found.runs[0], FoldRun)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([5, 1, 2, 3], ""),
        ([1, 2, 3, 4], ", at the lower end of the grid: the best may lie beyond"),
        ([4, 3, 2, 1], ", at the upper end of the grid: the best may lie beyond"),
        ([4, 2, 2, 2], ", the first of 3 points with this score"),
    ],
)
def test_a_best_point_at_an_end_and_one_of_several_are_said(scores, said):
    found = replace(constructed([scores, scores]), rule="min")
    assert f"){said}; no refit" in found._choice()


@pytest.mark.parametrize(("unit", "warned"), [(1.0, False), (1e-4, True)])
def test_features_in_very_different_units_are_named_among_the_assumptions(unit, warned):
    frame = frame_of().assign(a=lambda each: each["a"] / unit)
    lam = gr.Parameter(1.0, name="lam")
    problem = gr.Problem(gr.SquaredLoss(read(frame)) + lam * gr.TotalVariation(river(), gr.L2()))
    found = gr.cross_validate(problem, [1.0, 2.0], folds=2, refit=False)
    assert any("whatever units: standardise the features" in each for each in found.assumed) == warned
