"""Algorithms of one's own beside the methods of the library: what they reached is certified, and nothing is made up."""

from __future__ import annotations

from importlib import import_module

import networkx as nx
import numpy as np
import pytest
from factories import chain

import graphreg as gr
from graphreg.errors import MethodError, ModelError

SENT = ["messages", "bytes", "solving_messages", "solving_bytes"]


@pytest.fixture(scope="module")
def problem():
    return chain()


def primal_dual(problem, start=None, seed=None):
    """The primal-dual method, by hand."""
    o = problem.oracles()
    step = 0.99 / np.linalg.norm(o.K.toarray(), 2)
    w, u = np.zeros((o.n, o.d)), np.zeros((len(o.tail), o.d))
    while True:
        new = o.prox(w - step * (o.K.T @ u), step)
        u = o.dual_prox(u + step * (o.K @ (2.0 * new - w)), step)
        w = new
        yield w


def local_descent(state, node, messages):
    """Each node by itself, and it tells its neighbours for nothing."""
    w = np.zeros(node.d) if state is None else state
    w = w - node.gradient(w) / node.smoothness
    return w, w


def fails_in_round(k, error):
    def algorithm(problem, start=None, seed=None):
        for _ in range(k - 1):
            yield np.ones(problem.form.shape)
        raise error

    return algorithm


def test_an_algorithm_ends_where_it_is_near_enough(problem):
    found = gr.compare(problem, {"mine": primal_dual, "PrimalDual": gr.PrimalDual()}, gap=1e-5)
    assert list(found.entries) == ["mine", "PrimalDual"]
    table, mine = found.table(), found.solutions["mine"]
    assert table["status"].tolist() == ["certified", "certified"]
    assert mine.certificate.holds(1e-5)
    exact = problem.solve(gap=1e-10)
    assert exact.certificate.dual <= mine.objective + 1e-12
    assert mine.certificate.dual <= exact.objective + 1e-12
    assert table.loc["mine", "above"] == mine.objective - found.dual
    assert mine.trace.records[-2].primal - found.dual > 1e-5 * mine.objective  # it had to go on until then


def test_equal_rounds(problem):
    found = gr.compare(problem, {"mine": primal_dual, "PD": gr.PrimalDual(), "exact": gr.Exact()}, gap=0, rounds=30)
    assert found.table()["rounds"].tolist() == [30, 30, 0]
    assert found.reference.startswith("the exact optimum, by exact")
    point = next(w for k, w in enumerate(primal_dual(problem), 1) if k == 30)
    np.testing.assert_array_equal(found.solutions["mine"].coef, point)


def test_messages_that_nobody_counts_are_no_number(problem):
    found = gr.compare(problem, {"mine": primal_dual, "each": local_descent, "PD": gr.PrimalDual()}, gap=0, rounds=7)
    table = found.table()
    assert table.loc["mine", SENT].isna().all()
    arcs = 2 * len(problem.form.edges[0].tail)
    assert table.loc["each", "messages"] == 7 * arcs
    assert table.loc["each", "bytes"] == 7 * arcs * 8 * problem.form.d
    assert table.loc["PD", "messages"] > table.loc["PD", "solving_messages"] > 0
    text = str(found)
    assert "nobody counts the messages of mine" in text
    assert "<NA>" not in text


def test_points_that_are_there_already(problem):
    w = problem.solve(gap=1e-9).coef
    found = gr.compare(problem, {"none": [np.zeros_like(w)], "optimum": iter([w])}, gap=1e-6)
    assert found.table()["status"].tolist() == ["budget", "certified"]
    assert "It ended: after 1 rounds" in found.entries["none"].message
    assert found.solutions["none"].certificate.primal == problem.certify(np.zeros_like(w)).primal


def test_what_breaks_down_has_a_row(problem):
    n, d = problem.form.shape
    methods = {
        "at once": fails_in_round(1, ValueError("oh")),
        "later": fails_in_round(3, ValueError("oh")),
        "nan": [np.ones((n, d)), np.full((n, d), np.nan)],
        "shape": [np.ones((n, d)), np.ones((d, n + 1))],
        "nothing": lambda problem: None,
        "PD": gr.PrimalDual(),
    }
    found = gr.compare(problem, methods, gap=1e-4)
    table = found.table()
    assert table["status"].tolist() == ["failed"] * 5 + ["certified"]
    assert table["rounds"].tolist()[:5] == [0, 2, 1, 1, 0]
    assert table.loc[["at once", "nothing"], ["objective", "above", "relative_gap"]].isna().all(axis=None)
    at_ones = problem.certify(np.ones((n, d))).primal
    assert table.loc[["later", "nan", "shape"], "objective"].tolist() == [at_ones] * 3
    text = str(found)
    assert "at once: failed. In round 1 it raised ValueError: oh." in text
    assert "later: failed. In round 3 it raised ValueError: oh. Before that, after 2 rounds" in text
    assert f"it yielded parameters of shape ({d}, {n + 1})" in text


def test_constraints_hold_where_it_is_judged():
    data = gr.NodeData.from_dict({k: (None, [float(k)]) for k in range(4)})
    problem = gr.Problem(gr.MeanLoss(data) + gr.Consensus(nx.path_graph(4)))
    apart = np.array([[0.0], [1.0], [2.0], [3.0]])
    found = gr.compare(problem, {"apart": [apart]}, gap=1e-6)
    assert found.table().loc["apart", "status"] == "certified"  # the mean, which is the optimum
    assert "moved by at most 1.5 to where every constraint holds" in found.entries["apart"].message
    assert np.ptp(found.solutions["apart"].coef) == 0.0


def test_ctrl_c_in_an_algorithm_ends_all(problem):
    methods = {"first": gr.PrimalDual(), "second": fails_in_round(3, KeyboardInterrupt()), "third": primal_dual}
    found = gr.compare(problem, methods, gap=1e-4)
    assert [each.status for each in found.entries.values()] == ["certified", "interrupted"]
    assert found.not_run == ("third",)
    assert found.solutions["second"].rounds == 2
    assert found.solutions["second"].certificate.valid


def test_the_figure_has_them(pyplot, problem):
    found = gr.compare(problem, {"mine": primal_dual, "PD": gr.PrimalDual()}, gap=1e-4)
    for x, unknown in (("rounds", 0), ("messages", 1)):  # nobody knows what "mine" sent to get there
        axes = found.plot(x)
        labels = ["mine (certified)", "PD (certified)"][unknown:]
        assert [text.get_text() for text in axes.get_legend().get_texts()] == labels
        assert not [line for line in axes.lines if list(line.get_xdata()) == [0, 1]]  # from one side to the other


def test_without_an_optimum_it_is_judged_by_itself(problem, monkeypatch):
    monkeypatch.setattr(import_module("graphreg.comparing.comparison"), "_optimum", lambda exact, gap: None)
    found = gr.compare(problem, {"mine": primal_dual}, gap=1e-4, rounds=400)
    assert found.solutions["mine"].certificate.holds(1e-4)
    assert found.solutions["mine"].rounds == 400  # nothing says that it is there


@pytest.mark.parametrize("given", [lambda: None, lambda a, b: None, 3, {"a": 1}])
def test_what_is_no_algorithm_is_refused(problem, given):
    with pytest.raises(MethodError):
        gr.compare(problem, {"it": given})


def test_rounds_are_a_count(problem):
    with pytest.raises(ModelError, match="rounds"):
        gr.compare(problem, [primal_dual], rounds=0.5)
