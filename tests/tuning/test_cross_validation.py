"""Cross-validation against loops by hand, closed forms and scikit-learn; in processes, and resumed."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from validation_cases import FEATURES, frame_of, plain, read, ridge, river

import graphreg as gr
from graphreg.errors import CheckpointError, ModelError
from graphreg.saving import archive
from graphreg.tuning.fold_runs import FoldTask


# ---- against what is written by hand ---------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss])
def test_a_loop_by_hand(loss):
    frame, target = frame_of(), "y" if loss is gr.SquaredLoss else "hit"
    lam, label = gr.Parameter(1.0, name="lam"), np.arange(len(frame)) % 3
    problem = gr.Problem(loss(read(frame, target)) + lam * gr.TotalVariation(river(), gr.L2()) + ridge())
    found = gr.cross_validate(problem, [0.02, 0.5], folds=label, method=gr.Exact(), refit=False, gap=1e-9)
    scores, weight = np.zeros((3, 2)), np.zeros(3)
    for k in range(3):
        train, test = frame[label != k], frame[label == k]
        weight[k] = test["v"].sum()
        for j, value in enumerate((0.02, 0.5)):
            tv = value * gr.TotalVariation(river(), gr.L2())
            link = gr.Problem(loss(read(train, target)) + tv + ridge()).solve(gap=1e-9).predict(test, kind="link")
            sign = 2 * test[target] - 1
            each = (link - test["y"]) ** 2 / 2 if target == "y" else np.logaddexp(0, -sign * link)
            scores[k, j] = (test["v"] * each).sum() / weight[k]
    p = weight / weight.sum()
    mean = p @ scores
    np.testing.assert_allclose(found.scores, scores, rtol=1e-4)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-4)
    np.testing.assert_allclose(found.standard_error, np.sqrt(p @ (scores - mean) ** 2 / 2), rtol=1e-3)
    assert lam.value == 1.0


def test_one_node_is_scikit_learns_cross_val_score():
    linear, model_selection = (
        pytest.importorskip("sklearn.linear_model"),
        pytest.importorskip("sklearn.model_selection"),
    )
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0 + rng.standard_normal(40)
    splitter = model_selection.KFold(5, shuffle=True, random_state=0)
    data = gr.NodeData.from_arrays(X, y, ["only"] * 40, intercept=True)
    factor = gr.Parameter(1.0, name="factor")  # of the loss alone: it changes nothing
    found = gr.cross_validate(gr.Problem(factor * gr.SquaredLoss(data)), [1.0], splitter, scoring="mse", gap=1e-10)
    theirs = -model_selection.cross_val_score(
        linear.LinearRegression(), X, y, cv=splitter, scoring="neg_mean_squared_error"
    )
    np.testing.assert_allclose(found.scores[1.0], theirs, rtol=1e-6)

    alpha = gr.Parameter(1.0, name="alpha")  # Ridge: ||y - Xw||^2 + alpha ||w||^2, without the intercept
    model = gr.SquaredLoss(data, scale="sum") + alpha * gr.NodePenalty(gr.SquaredL2())
    found = gr.cross_validate(gr.Problem(model), [0.1, 30.0], splitter, scoring="mse", gap=1e-10)
    for value in (0.1, 30.0):
        theirs = -model_selection.cross_val_score(
            linear.Ridge(value), X, y, cv=splitter, scoring="neg_mean_squared_error"
        )
        np.testing.assert_allclose(found.scores[value], theirs, rtol=1e-5)
        own = found.standard_error[found.points.get_loc(value)]
        assert own == pytest.approx(theirs.std(ddof=1) / np.sqrt(5), rel=1e-5)


def test_a_node_that_is_left_out_is_predicted_from_its_neighbours():
    """Under SquaredL2 without a ridge its coefficients are the mean of its neighbours', fitted without it."""
    frame, lam = frame_of(), gr.Parameter(0.3, name="lam")
    model = gr.SquaredLoss(read(frame)) + lam * gr.TotalVariation(
        nx.cycle_graph([f"n{i}" for i in range(6)]), gr.SquaredL2()
    )
    found = gr.cross_validate(gr.Problem(model), [0.3], folds=6, by="node", scoring="mse", gap=1e-10)
    assert sorted(found.predictions.groupby("node")["fold"].nunique()) == [1] * 6
    for i in range(6):
        mine = frame["node"] == f"n{i}"
        before, after = f"n{(i - 1) % 6}", f"n{(i + 1) % 6}"
        others = nx.path_graph([f"n{(i + k) % 6}" for k in range(1, 6)])
        # minimised over w_i, the two springs of 0.3 in a row are one of 0.15
        others.add_edge(before, after, weight=0.5)
        rest = gr.SquaredLoss(read(frame[~mine])) + 0.3 * gr.TotalVariation(others, gr.SquaredL2())
        table = gr.Problem(rest).solve(gap=1e-10).table()
        w = (table.loc[before] + table.loc[after]) / 2
        theirs = w["intercept"] + frame.loc[mine, FEATURES] @ w[FEATURES]
        ours = found.predictions.set_index("row").loc[np.flatnonzero(mine), "prediction"]
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "target", "scorings"),
    [
        (gr.SquaredLoss, "y", ["mse", "mae"]),
        (gr.PoissonLoss, "count", ["mse", "mae", "deviance"]),
        (gr.LogisticLoss, "hit", ["accuracy", "log_loss", "auc", "loss"]),
        (gr.HingeLoss, "hit", ["accuracy", "auc"]),
        (gr.MultinomialLoss, "kind", ["accuracy", "log_loss"]),
    ],
)
def test_scores_are_those_of_scikit_learn(loss, target, scorings):
    metrics = pytest.importorskip("sklearn.metrics")
    frame, lam = frame_of(per_node=9), gr.Parameter(0.1, name="lam")
    problem = gr.Problem(loss(read(frame, target)) + lam * gr.TotalVariation(river(), gr.L2()) + ridge())
    theirs = {
        "mse": metrics.mean_squared_error,
        "mae": metrics.mean_absolute_error,
        "accuracy": metrics.accuracy_score,
        "log_loss": metrics.log_loss,
        "auc": metrics.roc_auc_score,
        "loss": metrics.log_loss,
        "deviance": metrics.mean_poisson_deviance,
    }
    first = gr.cross_validate(problem, [0.1], folds=3, scoring=scorings[0], gap=1e-4, refit=False)
    table = first.predictions
    names = [name for name in table if str(name).startswith("prediction")]
    for scoring in scorings:
        scorer = gr.tuning.scoring.scorer_of(problem.form, scoring, None)
        ours = replace(first, scorer=scorer).scores[0.1]
        for fold, part in table.groupby("fold"):
            p = part[names].to_numpy()
            p = p[:, 0] if p.shape[1] == 1 else p
            if scoring == "accuracy":
                classes = np.array(["high", "low", "mid"])
                p = (
                    classes[p.argmax(axis=1)]
                    if p.ndim == 2
                    else (p > (0.5 if loss is gr.LogisticLoss else 0)).astype(int)
                )
            expected = theirs[scoring](part["y"], p, sample_weight=part["weight"])
            assert ours[fold] == pytest.approx(expected, rel=1e-9)


def test_ties_count_one_half_under_the_curve():
    metrics = pytest.importorskip("sklearn.metrics")
    lam = gr.Parameter(0.1, name="lam")
    problem = gr.Problem(gr.LogisticLoss(read(frame_of(), "hit")) + lam * gr.TotalVariation(river(), gr.L2()) + ridge())
    found = gr.cross_validate(problem, [0.1], folds=2, scoring="auc", gap=1e-3, refit=False)
    rounded = replace(found, runs={k: replace(run, links=run.links.round()) for k, run in found.runs.items()})
    for fold, part in rounded.predictions.groupby("fold"):
        assert part["prediction"].nunique() < len(part) / 2
        expected = metrics.roc_auc_score(part["y"], part["prediction"], sample_weight=part["weight"])
        assert rounded.scores.loc[fold, 0.1] == pytest.approx(expected, rel=1e-12)


# ---- several losses, several targets ---------------------------------------------------------------------------------
def test_rows_of_several_losses_are_counted_in_the_order_of_the_terms():
    frame, lam = frame_of(), gr.Parameter(0.2, name="lam")
    numbers, classes = frame[frame["node"] < "n3"], frame[frame["node"] >= "n3"]
    model = gr.SquaredLoss(read(numbers)) + lam * gr.TotalVariation(river(), gr.L2())
    model = model + gr.LogisticLoss(read(classes, "hit")) + ridge()
    label = np.r_[np.arange(len(numbers)) % 2, np.full(len(classes), 2)]  # fold 2 holds out one loss as a whole
    found = gr.cross_validate(gr.Problem(model), [0.2], folds=label, method=gr.Exact())
    table = found.predictions
    assert table["node"].tolist() == [*numbers["node"], *classes["node"]]
    np.testing.assert_allclose(table["y"], [*numbers["y"], *classes["hit"]])
    last, rest = (
        table[table["fold"] == 2],
        gr.Problem(gr.SquaredLoss(read(numbers)) + 0.2 * gr.TotalVariation(river(), gr.L2()) + ridge()).solve(),
    )
    link = rest.predict(classes, kind="link")
    np.testing.assert_allclose(last["prediction"], 1 / (1 + np.exp(-link)), atol=1e-3)
    expected = np.average(np.logaddexp(0, -(2 * classes["hit"] - 1) * link), weights=classes["v"])
    assert found.scores.loc[2, 0.2] == pytest.approx(expected, rel=1e-3)
    with pytest.raises(
        ModelError, match="'accuracy' takes classification losses, and SquaredLoss is none; here one of 'loss'"
    ):
        gr.cross_validate(gr.Problem(model), [0.2], scoring="accuracy")


def test_means_of_several_targets():
    frame, lam = frame_of(), gr.Parameter(0.2, name="lam")
    data = gr.NodeData.from_frame(frame, node="node", target=["a", "b"])
    problem = gr.Problem(gr.MeanLoss(data) + lam * gr.TotalVariation(river(), gr.L2()))
    found = gr.cross_validate(problem, [0.2], folds=3)
    mse = replace(found, scorer=gr.tuning.scoring.scorer_of(problem.form, "mse", None))
    np.testing.assert_allclose(found.scores, mse.scores)  # 1/2 of a sum over two targets
    table = found.predictions
    assert list(table.columns[3:]) == ["y[a]", "y[b]", "prediction[a]", "prediction[b]", "weight", "scored"]


# ---- processes and files ---------------------------------------------------------------------------------------------
def test_processes_give_the_same_numbers():
    cp = pytest.importorskip("cvxpy")
    penalty = gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 2))  # a function that travels
    lam = gr.Parameter(1.0, name="lam")
    problem = gr.Problem(gr.SquaredLoss(read(frame_of(nodes=3))) + lam * gr.TotalVariation(river(3), penalty))
    one = gr.cross_validate(problem, [0.5, 0.1], folds=3, method=gr.Exact())
    two = gr.cross_validate(problem, [0.5, 0.1], folds=3, method=gr.Exact(), jobs=2)
    assert list(one.runs) == list(two.runs) == [0, 1, 2]
    for a, b in zip(one.runs.values(), two.runs.values(), strict=True):
        assert (a.links == b.links).all()
        assert a.statuses == b.statuses
        assert (a.gaps == b.gaps).all()
        assert (a.clusters == b.clusters).all()
    assert lam.value == 1.0


def broken_after(count, monkeypatch):
    """Ctrl-C once so many folds are finished; the list of the folds that ran."""
    ran, run = [], FoldTask.run

    def broken(self, fold, tick):
        if len(ran) == count:
            raise KeyboardInterrupt
        ran.append(fold.name)
        return run(self, fold, tick)

    monkeypatch.setattr(FoldTask, "run", broken)
    return ran


def test_ctrl_c_keeps_what_is_finished_and_the_same_call_goes_on(monkeypatch, tmp_path):
    problem, lam, whole = plain()
    file, grid = tmp_path / "cv.npz", [0.05, 1.0, 0.2, 5.0]
    with monkeypatch.context() as patch:
        broken_after(2, patch)
        part = gr.cross_validate(problem, grid, seed=3, checkpoint=file)
    assert not part.complete
    assert list(part.runs) == [0, 1]
    assert part.solution is None
    assert "INCOMPLETE, 2 of 5 folds" in str(part)
    assert "chosen: nothing, as only 2 of 5 folds are finished (interrupted)" in str(part)
    with pytest.raises(gr.errors.ModelError, match="nothing is chosen"):
        part.assign()
    pd.testing.assert_frame_equal(part.scores, whole.scores.iloc[:2])
    lam.value = 0.7  # whatever it is in the meantime
    try:
        with monkeypatch.context() as patch:
            ran = broken_after(9, patch)
            rest = gr.cross_validate(problem, grid, seed=3, checkpoint=file, scoring="mae")
    finally:
        lam.value = 0.3
    assert ran == [2, 3, 4]
    assert rest.complete
    pd.testing.assert_frame_equal(replace(rest, scorer=whole.scorer).scores, whole.scores, check_exact=True)
    with monkeypatch.context() as patch:
        broken_after(0, patch)
        with pytest.raises(KeyboardInterrupt):
            gr.cross_validate(problem, grid)  # nothing is finished


@pytest.mark.parametrize("kind", ["hierarchy", "graph", "rows alone"])
def test_clusters_of_edges_are_counted_beside_rows(kind):
    samples = {i: (np.eye(2), [float(i > 2), 1.0]) for i in range(6)}
    whole, rest = gr.NodeData.from_dict(samples), gr.NodeData.from_dict({**samples, 0: (np.eye(2)[1:], [1.0])})
    lam = gr.Parameter(0.1)
    edges = {
        "hierarchy": gr.Hierarchy({"A": [0, 1, 2], "B": [3, 4, 5]}, weights=(0.1, 0.1), penalty=gr.L2()),
        "graph": 0.1 * gr.TotalVariation(nx.path_graph(6), gr.L2()),
        "rows alone": ridge(),
    }
    penalty = edges[kind] + lam * gr.L1()(gr.w.along(range(6), 2))
    problem, train = (gr.Problem(gr.SquaredLoss(data) + penalty) for data in (whole, rest))
    scores = gr.cross_validate(problem, [0.01, 0.1], folds=[(np.arange(1, 12), [0])] * 2).table()
    if kind == "rows alone":
        assert "clusters" not in scores
        return
    found = [gr.path(train, [strength]).table()["clusters"].iloc[0] for strength in (0.01, 0.1)]
    assert scores["clusters"].tolist() == found


def test_a_file_of_a_model_whose_rows_make_no_clusters_is_read_again(tmp_path):
    data, lam = gr.NodeData.from_dict({i: (np.eye(2), [i, 1.0]) for i in range(3)}), gr.Parameter(0.1)
    problem = gr.Problem(gr.SquaredLoss(data) + lam * gr.SquaredL2()(gr.w.along(range(3), 2)) + ridge())
    first, again = (gr.cross_validate(problem, [0.1, 1.0], 2, checkpoint=tmp_path / "cv.npz") for _ in range(2))
    pd.testing.assert_frame_equal(again.scores, first.scores, check_exact=True)


def test_a_file_of_something_else_is_refused(tmp_path):
    problem, lam, _ = plain()
    file = tmp_path / "cv.npz"
    gr.cross_validate(problem, [0.1], folds=2, checkpoint=file)
    other = gr.Problem(gr.SquaredLoss(read(frame_of(seed=4))) + lam * gr.TotalVariation(river(), gr.L2()) + ridge())
    for changed, options, what in (
        (problem, {"grid": [0.2]}, "cross-validation; what differs: .*the grid"),
        (problem, {"folds": 3}, "cross-validation; what differs: .*the number of folds"),
        (problem, {"by": "node"}, "cross-validation; what differs: .*the folds"),
        (problem, {"gap": 1e-4}, "cross-validation; what differs: .*the gap"),
        (problem, {"method": gr.ADMM()}, "method; what differs: the class"),
        (other, {}, "cross-validation; what differs: .*features of the samples"),
    ):
        with pytest.raises(CheckpointError, match=f"of another {what}"):
            gr.cross_validate(changed, **{"grid": [0.1], "folds": 2, "checkpoint": file, **options})
    header, arrays = archive.read(file)
    for wrong in (
        [{"tree": {"tuple": [0]}, "generators": [], "arrays": 0}],
        [{**header["values"][0], "tree": 17}],
        None,
    ):
        archive.write(file, {**header, "values": wrong}, arrays)
        with pytest.raises(CheckpointError, match="cannot be read"):
            gr.cross_validate(problem, [0.1], folds=2, checkpoint=file)
    file.write_bytes(b"no zip")
    with pytest.raises(CheckpointError, match="damaged"):
        gr.cross_validate(problem, [0.1], folds=2, checkpoint=file)
    problem.solve(gr.PrimalDual(), gap=1e-2, checkpoint=tmp_path / "run.npz")
    with pytest.raises(CheckpointError, match="no file of a cross-validation but of a run"):
        gr.cross_validate(problem, [0.1], folds=2, checkpoint=tmp_path / "run.npz")
    with pytest.raises(CheckpointError, match="a folder that does not exist"):
        gr.cross_validate(problem, [0.1], checkpoint=tmp_path / "nowhere" / "cv.npz")
