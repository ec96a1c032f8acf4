"""Standardised features: the data hold standard deviations, tables have the units of the columns."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import DataError

FEATURES = ["income", "share"]


@pytest.fixture
def dollars():
    rng = np.random.default_rng(3)
    income, share = rng.normal(45_000, 12_000, 60), rng.uniform(size=60)
    y = 5e4 + np.repeat([0.8, -0.4], 30) * (income - 45_000) + 900 * share + 3e3 * rng.normal(size=60)
    return pd.DataFrame({"node": np.repeat(list("abcdef"), 10), "income": income, "share": share, "y": y})


def read(frame, intercept=True, **how):
    return gr.NodeData.from_frame(frame, node="node", target="y", features=FEATURES, intercept=intercept, **how)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_data_hold_standard_deviations(dollars, intercept):
    data = read(dollars, intercept, standardise=True)
    x = dollars[FEATURES]
    wanted = (x - x.mean() * intercept) / x.std()
    assert data.X[:, intercept:] == pytest.approx(wanted.to_numpy(), rel=1e-12, abs=1e-12)
    assert read(dollars, standardise=["income"]).X[:, 2].tolist() == x["share"].tolist()
    assert read(dollars).standardised is None


@pytest.mark.parametrize("intercept", [True, False])
def test_tables_are_in_the_units_of_the_columns(dollars, intercept):
    """A ridge of nothing: the fit of each node by itself has the coefficients of least squares in any units."""
    problem = gr.Problem(gr.SquaredLoss(read(dollars, intercept, standardise=True)))
    solution, X = problem.solve(gr.Exact(), gap=1e-9), dollars[FEATURES].to_numpy()
    X = np.column_stack([np.ones(60), X]) if intercept else X
    for k, label in enumerate("abcdef"):
        rows = slice(10 * k, 10 * k + 10)
        wanted = np.linalg.lstsq(X[rows], dollars["y"][rows], rcond=None)[0]
        assert solution.table().loc[label].to_numpy() == pytest.approx(wanted, rel=1e-4)
    by_hand = (solution.table().loc[dollars["node"]].to_numpy() * X).sum(axis=1)
    assert solution.predict(dollars).to_numpy() == pytest.approx(by_hand, rel=1e-9)
    assert solution.summary().coefficients["mean"].to_numpy() == pytest.approx(solution.table().mean().to_numpy())


def test_a_table_is_certified_in_its_own_units(dollars):
    model = gr.SquaredLoss(read(dollars, standardise=True)) + 2e3 * gr.TotalVariation(nx.path_graph("abcdef"), gr.L2())
    problem = gr.Problem(model)
    solution = problem.solve()
    assert solution.status == "certified"
    again = problem.certify(solution.table(), solution.certificate.dual_point.flows)
    assert again.primal == pytest.approx(solution.objective, rel=1e-9)
    assert np.array_equal(problem.certify(solution.coef).w, solution.certificate.w)


def test_classes_have_an_intercept_each():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"node": ["a"] * 90, "income": rng.normal(45_000, 12_000, 90), "share": rng.uniform(size=90)})
    frame["y"] = np.array(["x", "y", "z"])[rng.integers(0, 3, 90)]
    data = read(frame, standardise=True)
    problem = gr.Problem(gr.MultinomialLoss(data) + 1e-3 * gr.NodePenalty(gr.SquaredL2()))
    solution = problem.solve()
    table = solution.table().loc["a"]
    link = np.column_stack(
        [table["intercept", k] + sum(frame[f] * table[f, k] for f in FEATURES) for k in ("x", "y", "z")]
    )
    assert solution.predict(frame, "link").to_numpy() == pytest.approx(link, rel=1e-9, abs=1e-9)
    w = problem.form.space.from_units(problem.form.space.in_units(solution.coef))
    assert w == pytest.approx(solution.coef, rel=1e-9, abs=1e-9)


def test_new_rows_and_other_data_are_standardised_alike(dollars):
    data = read(dollars, standardise=True)
    part = read(dollars[:20], standardise=data.standardised)
    assert np.array_equal(part.X, data.X[:20])
    assert np.array_equal(data.read(dollars[5:9])[1], data.X[5:9])
    pair = (dollars[FEATURES][:10].to_numpy(), dollars["y"][:10].to_numpy())
    problem = gr.Problem(gr.SquaredLoss(data) + gr.NodePenalty(gr.SquaredL2()))
    assert np.array_equal(problem.update({"a": pair}).form.samples[0].loss.data.at("a").X, data.at("a").X)


def test_what_cannot_be_standardised_is_named(dollars):
    with pytest.raises(DataError, match="'share' is constant"):
        read(dollars.assign(share=0.1), standardise=True)
    with pytest.raises(DataError, match="'y' is not among the features that are numbers"):
        read(dollars, standardise=["y"])
    one, two = read(dollars[:30], standardise=True), read(dollars[30:], standardise=True)
    with pytest.raises(DataError, match=r"standardised by other numbers.*standardise=first.standardised"):
        gr.Problem(gr.SquaredLoss(one) + gr.HuberLoss(two))
    two = read(dollars[30:], standardise=one.standardised)
    assert gr.Problem(gr.SquaredLoss(one) + gr.HuberLoss(two)).form.space.units == one.standardised


def test_units_that_differ_are_said_in_one_sentence(dollars):
    def solved(**how):
        model = gr.SquaredLoss(read(dollars, **how)) + 2e3 * gr.TotalVariation(nx.path_graph("abcdef"), gr.L2())
        return gr.Problem(model).solve()

    raw, standard = solved(), solved(standardise=True)
    said = "penalties weigh all coefficients alike, in whatever units: standardise the features"
    assert said in str(raw)
    assert said in raw.summary().facts["units"]
    assert said not in str(standard)
    assert "units" not in standard.summary().facts


def test_pictures_are_in_the_units_of_the_columns(dollars):
    plots = pytest.importorskip("graphreg.plots")
    pytest.importorskip("matplotlib").use("Agg")
    lam = gr.Parameter(2e3, name="lam")
    graph = nx.path_graph("abcdef")
    problem = gr.Problem(gr.SquaredLoss(read(dollars, standardise=True)) + lam * gr.TotalVariation(graph, gr.L2()))
    solution = problem.solve()
    largest = solution.table()["income"].abs().max()
    axes = plots.plot_map(solution, {label: (k, 0) for k, label in enumerate("abcdef")}, feature="income")
    bar = axes.figure.axes[-1]
    assert np.abs(bar.get_ylim()).max() == pytest.approx(largest, rel=0.3)  # with a margin
    lines = plots.plot_path(gr.path(problem, [1e3, 2e3]), feature="income").get_lines()
    last = [line.get_ydata()[-1] for line in lines if len(line.get_ydata()) == 2]
    assert max(map(abs, last)) == pytest.approx(largest, rel=1e-3)
