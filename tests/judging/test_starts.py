"""Starts from answers to other problems: what is taken by label, and what it saves."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import ModelError
from graphreg.judging.given import spread, values_on_form
from graphreg.running.schedule import MAYBE, WARM, Schedule

LABELS = list(range(12))


def samples(labels, noise=0.0):
    out = {}
    for i in labels:
        rng = np.random.default_rng(i)
        X = rng.standard_normal((8, 2))
        y = X @ ([1.0, -1.0] if i < 6 else [-1.0, 1.0]) + 0.3 * rng.standard_normal(8)
        out[i] = (X, y + noise * rng.standard_normal(8))
    return out


def problem(labels=LABELS, *, noise=0.0, strength=0.2, edges=None, features=("a", "b"), extra=(), penalty=None):
    data = samples([i for i in labels if i not in extra], noise)
    columns = [("a", "b").index(name) for name in features]
    read = gr.NodeData.from_dict({i: (X[:, columns], y) for i, (X, y) in data.items()}, features=list(features))
    chain = [(i, i + 1, 1.0 + i % 3) for i in LABELS[:-1]] + [(0, 5, 2.0), (6, 11, 5.0)]
    graph = nx.Graph()
    graph.add_nodes_from(labels)
    graph.add_weighted_edges_from(e for e in (edges or chain) if {*e[:2]} <= {*labels})
    variation = gr.TotalVariation(graph, penalty or gr.L2())
    return gr.Problem(gr.SquaredLoss(read) + strength * variation + 1e-3 * gr.NodePenalty(gr.SquaredL2()))


@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.ADMM(), gr.FedADMM(), gr.InteriorPoint()], ids=lambda m: m.name)
def test_nothing_is_left_to_do_from_the_answer_itself(method):
    found = problem().solve(method, gap=1e-8)
    again = problem().solve(method, start=found)
    assert again.rounds == 0
    assert again.status == "certified"
    assert again.certificate.holds(1e-6)
    assert [record.round for record in again.trace.records] == [0, 0]  # looked at, and certified
    assert problem().solve(method, start=found, gap=0.0, rounds=3).rounds == 3


@pytest.mark.parametrize("penalty", [gr.L2(), gr.L1(), gr.SquaredL2()], ids=lambda p: type(p).__name__)
def test_parameters_and_flows_go_by_label(penalty):
    """Nodes, edges and features in another order, edges turned round: the same problem, and as good a start."""
    found = problem(penalty=penalty).solve(gap=1e-9)
    edges = [(b, a, w) for a, b, w in reversed([(i, i + 1, 1.0 + i % 3) for i in LABELS[:-1]])]
    turned = problem(LABELS[::-1], edges=[*edges, (5, 0, 2.0), (11, 6, 5.0)], features=("b", "a"), penalty=penalty)
    known = values_on_form(found, turned.form, "start")
    assert known.whole
    np.testing.assert_array_equal(known.w, found.certificate.w[::-1, ::-1])
    imbalance = turned.form.conservation(replace(turned.form.nothing(), flows=known.flows))
    own = found.form.conservation(replace(found.form.nothing(), flows=found.certificate.dual_point.flows))
    np.testing.assert_allclose(imbalance, own[::-1, ::-1], atol=1e-12)
    again = turned.solve(gr.PrimalDual(), start=found)
    assert again.rounds == 0
    assert "by label" not in again.message  # nothing is missing


def test_flows_go_to_the_term_of_their_name():
    left, right = nx.path_graph(6), nx.star_graph(5)
    data = gr.NodeData.from_dict({i: (None, [float(i % 3)]) for i in range(6)})
    one, two = 0.1 * gr.TotalVariation(left, gr.L1()), 0.1 * gr.NodePenalty(gr.L1())
    found = gr.Problem(gr.MeanLoss(data) + one + two).solve()
    known = values_on_form(found, gr.Problem(gr.MeanLoss(data) + two + one).form, "start")
    for given, there in zip(known.flows, found.certificate.dual_point.flows[::-1], strict=True):
        np.testing.assert_allclose(given, there, rtol=1e-12)
    known = values_on_form(found, gr.Problem(gr.MeanLoss(data) + 0.1 * gr.TotalVariation(right, gr.L1())).form, "start")
    assert [mask.tolist() for mask in known.edges] == [[True, False, False, False, False]]  # both have the edge 0 - 1


def test_of_terms_of_one_name_that_of_the_same_coordinates_is_meant():
    data, chain = gr.NodeData.from_dict(samples(LABELS), features=["a", "b"]), nx.path_graph(LABELS)
    one, two = (gr.Consensus(chain, features=[name]) for name in "ab")
    found = gr.Problem(gr.SquaredLoss(data) + one + two).solve()
    known = values_on_form(found, gr.Problem(gr.SquaredLoss(data) + two + one).form, "start")
    assert known.whole
    for given, there in zip(known.flows, found.certificate.dual_point.flows[::-1], strict=True):
        np.testing.assert_array_equal(given, there)
    assert known.flows[0].any()


def test_of_terms_that_are_alike_the_first_goes_to_the_first():
    data, chain = gr.NodeData.from_dict(samples(LABELS), features=["a", "b"]), nx.path_graph(LABELS)
    alike = 0.1 * gr.TotalVariation(chain, gr.L1()) + 0.2 * gr.TotalVariation(chain, gr.L1())
    found = gr.Problem(gr.SquaredLoss(data) + alike).solve()
    for given, there in zip(
        values_on_form(found, found.form, "start").flows, found.certificate.dual_point.flows, strict=True
    ):
        np.testing.assert_allclose(given, there, rtol=1e-12)


def test_flows_of_fewer_edges_are_no_flows_of_the_problem():
    found = problem(edges=[(0, 1, 1.0)]).solve()
    assert problem().certify(found, gap=1e9).steps[0].name == "gradients"


def test_latent_nodes_go_by_label():
    data = gr.NodeData.from_dict({i: (None, [float(i)]) for i in range(4)})
    clusters = {0: "north", 1: "north", 2: "south", 3: "south"}
    found = gr.Problem(gr.MeanLoss(data) + gr.Hierarchy(clusters, weights=(1.0, 1.0))).solve()
    turned = {i: clusters[i] for i in (3, 2, 1, 0)}
    again = gr.Problem(gr.MeanLoss(data) + gr.Hierarchy(turned, weights=(1.0, 1.0)))
    known = values_on_form(found, again.form, "start")
    assert known.whole
    assert again.solve(gr.PrimalDual(), start=found).rounds == 0


def test_a_node_more_begins_at_the_mean_of_its_neighbours():
    found = problem(LABELS[:-1]).solve()
    more = problem()
    known = values_on_form(found, more.form, "start")
    assert known.rows.tolist() == [True] * 11 + [False]
    w = spread(more.form, known.w, known.rows)
    c = {10: 1.0 + 10 % 3, 6: 5.0}
    np.testing.assert_allclose(w[11], sum(c[j] * w[j] for j in c) / sum(c.values()))
    warm, cold = more.solve(gr.PrimalDual(), start=found), more.solve(gr.PrimalDual())
    assert "11 of 12 nodes (not 11), 2 of 2 coordinates, 22 of 25 flows" in warm.message
    assert warm.rounds < cold.rounds


def test_a_chain_of_new_nodes_and_one_alone():
    form = problem([*LABELS, 20, 21, 22], edges=[(5, 20, 1.0), (20, 21, 3.0)], extra=(20, 21)).form
    known = np.arange(form.n) < 12
    w = spread(form, np.arange(form.n * form.d, dtype=float).reshape(form.shape) * known[:, None], known)
    np.testing.assert_array_equal(w[12], w[5])
    np.testing.assert_array_equal(w[13], w[5])
    np.testing.assert_array_equal(w[14], 0.0)


def test_flows_are_clipped_into_smaller_capacities():
    found = problem(strength=0.5).solve()
    weaker = problem(strength=0.05)
    known = values_on_form(found, weaker.form, "start")
    for edge, u in zip(weaker.form.edges, known.flows, strict=True):
        assert np.isfinite(edge.conjugates(u)).all()
    assert not np.isfinite(weaker.form.edges[0].conjugates(found.certificate.dual_point.flows[0])).all()
    assert weaker.solve(gr.PrimalDual(), start=found).status == "certified"


@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.ADMM()], ids=lambda m: m.name)
def test_new_data_are_certified_long_before_a_cold_run(method):
    found, changed = problem().solve(method), problem(noise=3e-3)
    warm, cold = (changed.solve(method, start=start) for start in (found, None))
    assert warm.rounds == WARM
    assert cold.rounds > 2 * WARM


def test_the_first_repair_of_a_cold_run_is_where_it_was():
    for schedule, k in ((Schedule(1e-6, polishes=False), 40), (Schedule(1e-6, polishes=False, earliest=WARM), 10)):
        assert not schedule.worth_a_repair(k - 1, MAYBE * 1e-6)
        assert schedule.worth_a_repair(k, MAYBE * 1e-6)


def test_a_run_that_ended_at_its_start_is_resumed_there(tmp_path):
    found, path = problem().solve(), tmp_path / "run.npz"
    one = problem().solve(gr.PrimalDual(), start=found, checkpoint=path)
    two = problem().solve(gr.PrimalDual(), checkpoint=path)
    assert (one.rounds, two.rounds) == (0, 0)
    assert (two.certificate.primal, two.certificate.dual) == (one.certificate.primal, one.certificate.dual)


def test_what_has_nothing_in_common_is_refused():
    found = problem().solve()
    text = gr.NodeData.from_dict({str(i): (X, y) for i, (X, y) in samples(LABELS).items()}, features=["a", "b"])
    with pytest.raises(ModelError, match=r"nodes 0, 1, 2, \.\.\. \(12 in all\).*its nodes are '0'.*of type int"):
        gr.Problem(gr.SquaredLoss(text)).solve(gr.PrimalDual(), start=found)
    other = gr.NodeData.from_dict(samples(LABELS), features=["c", "d"])
    with pytest.raises(ModelError, match=r"coordinates 'a', 'b', of which this problem has none.*'c', 'd'"):
        gr.Problem(gr.SquaredLoss(other)).solve(gr.PrimalDual(), start=found)


def test_a_solution_is_judged_by_label_and_must_be_whole():
    found, turned = problem().solve(gap=1e-9), problem(LABELS[::-1], features=("b", "a"))
    assert turned.value(found) == pytest.approx(found.objective, rel=1e-12)
    judged = turned.certify(found)
    assert judged.holds(1e-6)
    assert len(judged.steps) == 1  # its own flows are enough
    with pytest.raises(ModelError, match="w has no entry for the node 11"):
        problem().certify(problem(LABELS[:-1]).solve())


@pytest.mark.parametrize(
    "method", [gr.PrimalDual(), gr.ADMM(), gr.InteriorPoint(), gr.SubgradientDescent(), gr.Exact()]
)
def test_no_answer_is_worse_than_its_start(method):
    optimum = problem().solve(gap=1e-12).coef
    rounds = {} if isinstance(method, gr.Exact) else {"rounds": 3}
    found = problem().solve(method, start=optimum, **rounds)
    assert problem().value(found) <= problem().value(optimum)


def test_a_start_without_its_latent_nodes_is_not_lost():
    data = gr.NodeData.from_dict(samples(LABELS), features=["a", "b"])
    problem = gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy({i: i < 6 for i in LABELS}, (0.1, 0.1)))
    optimum = problem.solve(gap=1e-12).coef
    found = problem.solve(gr.PrimalDual(), start=optimum, rounds=1)
    assert problem.value(found) <= problem.value(optimum)
