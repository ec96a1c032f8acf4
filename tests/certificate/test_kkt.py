"""The optimality conditions in numbers: they add up to the gap, and name the node or edge where most is missing."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from factories import thinned
from hostile import EVERY, unprintable

import graphreg as gr
from graphreg.certificate.kkt import LENGTH, PART
from graphreg.datasets import random_problem

PARTS = "part of the gap"
NODES = list("abcd")


def problem_of(penalty, node_penalty=None, values=(0.0, 1.0, 5.0, 5.5), labels=NODES):
    data = gr.NodeData.from_dict({label: (None, [value]) for label, value in zip(labels, values, strict=True)})
    model = gr.MeanLoss(data) + 0.3 * gr.TotalVariation(nx.path_graph(list(labels)), penalty)
    return gr.Problem(model if node_penalty is None else model + gr.NodePenalty(node_penalty))


def row(kkt, condition, term=None):
    table = kkt.table[kkt.table["condition"].str.startswith(condition)]
    table = table if term is None else table[table["term"] == term]
    assert len(table) == 1
    return table.iloc[0]


@pytest.mark.parametrize(
    ("flows", "prices", "said"),
    [(True, True, "flows and prices balance"), (True, False, "flows balance"), (False, True, "prices balance")],
)
def test_what_balances_is_what_there_is(flows, prices, said):
    """Without data there are no prices, without penalties no flows."""
    model = [0.3 * gr.L2()(gr.w.across(nx.path_graph(NODES)))] * flows
    model.append(problem_of(gr.L2()).model.terms[0][1] if prices else gr.SquaredL2()(gr.w.at(NODES) - 1.0))
    conditions = gr.Problem(sum(model)).solve().certificate.kkt().table["condition"].tolist()
    assert f"conservation: {said}" in conditions
    assert any(each.startswith("stationarity: ") for each in conditions) == prices


# ---- the law ---------------------------------------------------------------------------------------------------------
def adds_up(certificate):
    kkt = certificate.kkt()
    rounding = 1e-13 * max(abs(certificate.primal), abs(certificate.dual))
    assert abs(kkt.lost) <= 0.5 * kkt.charge + rounding
    assert kkt.lost == kkt.gap - kkt.charge - kkt.total
    assert kkt.gap == certificate.gap


@pytest.mark.parametrize("seed", thinned(range(40), every=8))
def test_the_parts_add_up_to_the_gap_of_random_problems(seed):
    problem = random_problem(seed).problem
    for method, asked in ((gr.Exact(), 1e-9), (gr.Exact(), 1e-1), (gr.SubgradientDescent(), 1e-2)):
        if not method.missing(problem.form):
            rounds = None if isinstance(method, gr.Exact) else 30
            adds_up(problem.solve(method, gap=asked, rounds=rounds, on_failure="return").certificate)


def test_what_double_precision_loses_of_the_parts_is_said():
    """Where huge numbers cancel, certificates know more digits than the plain sums."""
    kkt = problem_of(gr.L2()).solve().certificate.kkt()
    assert "double precision loses" not in str(kkt)
    lossy = replace(kkt, gap=kkt.gap + 1.0)
    assert abs(lossy.lost) > lossy.charge
    assert "; 1 of it double precision loses" in str(lossy)


def test_at_a_point_that_is_far_from_the_optimum():
    judged = problem_of(gr.L1()).certify(np.zeros((4, 1)), gap=1e-6)
    adds_up(judged)
    assert judged.kkt().total > 1.0


def test_the_parts_of_a_problem_solved_by_hand():
    """Of min (w_a - 0)^2/2 + (w_b - 2)^2/2 + 0.3 |w_a - w_b| at w = 0, with flow -0.3 and prices 0.3 and -0.3: of a
    1/2 0.3^2, of b 2 + (0.045 - 0.6) = 1/2 (2 - 0.3)^2, nothing of the edge."""
    problem = problem_of(gr.L1(), values=(0.0, 2.0), labels="ab")
    point = problem.certify(np.zeros((2, 1)), flows=[np.array([[-0.3]])], prices=[np.array([[0.3], [-0.3]])], gap=1e9)
    kkt = point.kkt()
    prices, flows = row(kkt, "prices"), row(kkt, "flows are slopes")
    assert prices["residual"] == pytest.approx(0.5 * 0.3**2 + 0.5 * 1.7**2)
    assert (prices["worst_at"], prices["worst"]) == ("b", pytest.approx(0.5 * 1.7**2))
    assert flows["residual"] == pytest.approx(0.0, abs=1e-9)
    stationary = row(kkt, "stationarity")
    assert stationary["residual"] == pytest.approx(1.7)
    assert stationary["worst_at"] == "b"
    assert stationary["scaled"] == pytest.approx(1.7 / 2.3)
    assert row(kkt, "conservation")["residual"] == pytest.approx(0.0, abs=1e-12)


# ---- conditions ------------------------------------------------------------------------------------------------------
def test_an_edge_is_named_by_its_ends():
    problem = problem_of(gr.L1())
    solution = problem.solve(gap=1e-10)
    w = solution.coef.copy()
    w[2:] += 0.5  # further apart than is worth it
    kkt = problem.certify(w, gap=1e9).kkt()
    assert row(kkt, "prices")["worst_at"] in NODES
    apart = problem.certify(np.array([[0.0], [0.0], [0.0], [9.0]]), flows=[np.zeros((3, 1))], gap=1e9)
    edge, flow = row(apart.kkt(), "flows are slopes"), float(apart.dual_point.flows[0][2, 0])
    assert edge["worst_at"] == ("c", "d")
    assert edge["worst"] == pytest.approx(0.3 * 9.0 + flow * 9.0)


def test_constraints_hold_and_their_flows_are_normal():
    kkt = problem_of(gr.L2(), gr.Box(0.5, 2.0)).solve(gap=1e-9).kkt()
    holds = row(kkt, "the constraint holds")
    assert (holds["residual"], holds["worst_at"]) == (0.0, None)
    assert row(kkt, "flows are normal")["term"] == "NodePenalty(Box)"
    assert row(kkt, "flows are within")["residual"] == 0.0


def test_no_stationarity_where_losses_have_kinks():
    data = gr.NodeData.from_dict({label: (np.ones((1, 1)), [1.0]) for label in "ab"})
    model = gr.QuantileLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(list("ab")), gr.L2())
    conditions = gr.Problem(model).solve().kkt().table["condition"]
    assert not conditions.str.startswith("stationarity").any()
    assert conditions.str.startswith("conservation").any()


def test_without_flows_of_its_own_a_method_has_those_of_the_certificate():
    solution = problem_of(gr.L2()).solve(gr.LocalOnly(), rounds=50)
    adds_up(solution.certificate)
    assert "a method that holds none" in solution.kkt().assumed[0]


def test_without_a_certificate_it_says_why():
    data = gr.NodeData.from_dict({0: (np.ones((2, 1)), [1, 1]), 1: (np.ones((2, 1)), [0, 0])})
    solution = gr.Problem(gr.PoissonLoss(data)).solve(gr.PrimalDual(), rounds=1, gap=1e-12, on_failure="return")
    certificate = solution.certificate
    if certificate.valid:
        from dataclasses import replace

        certificate = replace(certificate, scope="none", note="no lower bound was proved")
    kkt = certificate.kkt()
    assert kkt.reason == certificate.note
    assert not len(kkt.table)
    assert kkt.total == 0.0
    assert certificate.note in str(kkt)
    assert certificate.note in repr(kkt)
    assert certificate.note in kkt._repr_html_()


def test_the_scale_is_that_of_the_relative_gap():
    certificate = problem_of(gr.L2()).solve(gr.SubgradientDescent(), rounds=5).certificate
    table = certificate.kkt().table
    parts = table[table["measure"] == PART]
    assert parts["scaled"].sum() == pytest.approx(certificate.relative_gap, rel=1e-6)
    assert set(table["measure"]) == {PART, LENGTH}
    assert PART == PARTS


def test_names_are_shown_and_not_obeyed():
    labels = list(EVERY.values())
    solution = problem_of(gr.L2(), values=range(len(labels)), labels=labels).solve(gr.SubgradientDescent(), rounds=5)
    kkt = solution.kkt()
    for text in (str(kkt), repr(kkt), kkt._repr_html_()):
        assert not unprintable(text)
        assert "<script" not in text


def test_without_edges_a_balance_is_compared_with_the_pulls_of_the_samples():
    """What is left was the only vector there, and said to be all of it."""
    rng = np.random.default_rng(1)
    graph = nx.empty_graph(3)
    samples = {i: (rng.normal(size=(5, 2)), rng.normal(size=5)) for i in graph}
    problem = gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples)) + 0.1 * gr.TotalVariation(graph, gr.L2()))
    lengths = problem.solve().kkt().table.query("measure == @LENGTH")
    assert len(lengths) == 2
    assert (lengths["scaled"] < 1e-12).all()
