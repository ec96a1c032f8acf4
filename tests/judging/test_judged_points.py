"""Points of anybody's: the objective there, and a lower bound as near to it as the point is to the optimum."""

from __future__ import annotations

import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from own_terms import OwnL1
from scipy.optimize import lsq_linear

import graphreg as gr
from benchmarks.soundness.exact import above, below, exact
from benchmarks.soundness.objective import objective, repaired
from benchmarks.soundness.stored import as_stored
from benchmarks.wild import wild_problem
from graphreg.certificate import Enclosed, Enclosure, RoutingProblem, common, kinks
from graphreg.datasets import random_problem
from graphreg.errors import ModelError
from graphreg.form import DualPoint
from graphreg.form.latent import with_latent_means
from graphreg.judging import judgement
from graphreg.judging.given import given_point
from graphreg.judging.judgement import REPAIRED
from graphreg.running import solve
from graphreg.verify import check

GAP = 1e-6
DISTANCES = (1e-3, 1e-6, 1e-9, 1e-12)
QUICK, QUICK_WILD = (0, 6, 12, 18, 30), (0, 7, 14, 28)


def small(penalty=None, term=None):
    rng = np.random.default_rng(0)
    X, node = rng.standard_normal((60, 2)), np.repeat(list("abcdef"), 10)
    data = gr.NodeData.from_arrays(X, X @ [1.0, -1.0] + rng.standard_normal(60), node)
    graph = nx.path_graph(list("abcdef"))
    return gr.Problem(gr.SquaredLoss(data) + (term or 0.2 * gr.TotalVariation(graph, penalty or gr.L2())))


@pytest.fixture
def problem():
    return small()


# ---- bounds ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "seed", [*QUICK, *(pytest.param(s, marks=pytest.mark.whole) for s in range(200) if s not in QUICK)]
)
def test_the_gap_is_the_suboptimality_of_the_point(seed):
    """At 1e-3 to 1e-12 of the size of the optimum from it, whatever the losses and penalties."""
    drawn = random_problem(seed)
    found = drawn.problem.solve(gap=1e-11, on_failure="return")
    best = found.certificate
    if found.status == "unattained" or not best.holds(1e-8):
        pytest.skip("no optimum is known to measure by")
    form, rng = drawn.problem.form, np.random.default_rng(seed)
    P = exact(as_stored(drawn.plain, form))
    order = [form.labels.index(label) for label in drawn.plain.nodes]
    size = np.sqrt((found.coef**2).mean()) or 1.0
    for distance in DISTANCES:
        away = distance * size * rng.standard_normal(found.coef.shape)
        judged = drawn.problem.certify(found.coef + away, gap=GAP)
        assert below(judged.dual, P.at(best.w[order]))
        assert above(judged.primal, P.at(judged.w[order]))
        suboptimality = max(judged.primal - best.primal, 0.0) + best.gap
        assert judged.gap <= GAP * max(abs(judged.primal), common(form).floor) + 2 * suboptimality
        if judged.better is not None:
            assert judged.better.primal < judged.primal


@pytest.mark.parametrize(
    "seed", [*QUICK_WILD, *(pytest.param(s, marks=pytest.mark.whole) for s in range(140) if s not in QUICK_WILD)]
)
def test_no_bound_lies_on_wild_data(seed):
    drawn = wild_problem(seed)
    form, rng = drawn.problem.form, np.random.default_rng(seed)
    P = exact(as_stored(drawn.plain, form))
    order = [form.labels.index(label) for label in drawn.plain.nodes]
    observed = len(form.space.index)
    for w in (np.zeros((observed, form.d)), rng.standard_normal((observed, form.d))):
        judged = drawn.problem.certify(w, seconds=2)
        at = P.at(judged.w[order])
        assert above(judged.primal, at)
        assert below(judged.dual, at)


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_the_value_is_the_sum_that_is_written_beside_it(seed):
    drawn = random_problem(seed)
    form, rng = drawn.problem.form, np.random.default_rng(seed)
    order = [form.labels.index(label) for label in drawn.plain.nodes]
    w = repaired(drawn.plain, drawn.plain.inner + rng.standard_normal((len(drawn.plain.nodes), drawn.plain.d)))
    mine = np.zeros(form.shape)
    mine[order] = w
    value = drawn.problem.value(mine)
    if np.isfinite(value) and not form.latent:
        assert value == pytest.approx(objective(drawn.plain, w), rel=1e-12)


def test_the_rounds_begin_at_the_point_with_the_flows_found_for_it(problem, monkeypatch):
    budgets = []
    monkeypatch.setattr(judgement, "solve", lambda *given: budgets.append(given[2]) or solve(*given))
    w = problem.solve(gr.PrimalDual(), gap=1e-2).coef
    judged = problem.certify(w, gap=0)
    np.testing.assert_array_equal(budgets[0].start[0], w)
    before = [step for step in judged.steps if step.name.startswith(("gradients", "kinks"))]
    highest = max(before, key=lambda step: step.dual)
    assert highest is not before[0]
    again = problem.certify(w, flows=budgets[0].start[1], gap=1e9)
    assert again.dual > before[0].dual + 0.9 * (highest.dual - before[0].dual)


def test_a_contradiction_that_a_later_step_meets_leaves_no_bound(problem, monkeypatch):
    def contradicted(*given):
        found = solve(*given)
        certificate = replace(found.certificate, primal=np.inf, dual=-np.inf, scope="none", contradiction="it lies")
        return replace(found, certificate=replace(certificate, note="it lies"))

    monkeypatch.setattr(judgement, "solve", contradicted)
    judged = problem.certify(np.zeros((6, 2)))
    assert judged.contradiction == "it lies"
    assert not judged.valid
    assert [step.name for step in judged.steps][-1] == "primal-dual rounds"


# ---- in whatever they come -------------------------------------------------------------------------------------------
def test_points_of_all_kinds_are_taken(problem):
    found = problem.solve(gap=1e-10)
    compiled = problem.compile()
    compiled.cvxpy.solve(solver="CLARABEL")
    shuffled = found.table().iloc[::-1, ::-1]
    by_label = dict(zip("fedcba", found.coef[::-1], strict=True))
    for w in (found, found.coef, found.table(), shuffled, found.coef.tolist(), by_label, compiled.w.value):
        assert problem.value(w) == pytest.approx(found.objective, rel=1e-7)
        assert problem.certify(w).holds(1e-6)


def test_a_table_with_several_classes_is_taken_by_its_pairs():
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((24, 2)), rng.integers(0, 3, 24), np.repeat(list("abcd"), 6))
    chain = 0.1 * gr.TotalVariation(nx.path_graph(list("abcd")), gr.L1())
    problem = gr.Problem(gr.MultinomialLoss(data) + chain + 0.1 * gr.NodePenalty(gr.SquaredL2()))
    found = problem.solve()
    table = found.table()
    named = table.set_axis(problem.form.space.names, axis=1)
    for w in (table, table.iloc[::-1, ::-1], named.iloc[:, ::-1]):
        assert problem.value(w) == problem.value(found.coef)
    with pytest.raises(
        ModelError, match=r"\('y', 0\), which is not a parameter \(and 2 more\); the parameters are \('x0', 0\)"
    ):
        problem.certify(table.rename(columns={"x0": "y"}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x0": "X0"}, "w names 'X0', which is not a parameter; did you mean 'x0'\\?"),
        ({"x0": "X0", "x1": "X1"}, r"w names 'X0', which is not a parameter \(and 1 more\); did you mean 'x0'\?"),
        ({"x0": "rain"}, "w names 'rain', which is not a parameter; the parameters are 'x0', 'x1'"),
    ],
)
def test_a_column_of_an_unknown_parameter_is_told_with_those_there_are(problem, change, said):
    with pytest.raises(ModelError, match=said):
        problem.certify(problem.solve().table().rename(columns=change))


def test_tables_are_taken_by_label_whatever_their_labels_are(tmp_path):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(
        rng.standard_normal((60, 2)), rng.choice(list("uvw"), 60), np.repeat(list("abcdef"), 10)
    )
    tree = gr.Hierarchy({"left": list("abc"), "right": list("def")}, (0.1, 0.1))
    problem = gr.Problem(gr.MultinomialLoss(data) + tree)
    found = problem.solve()
    found.save(tmp_path / "answer.npz")
    saved, graph = gr.load(tmp_path / "answer.npz"), found.to_networkx()
    table = found.table().iloc[::-1, ::-1]
    for w in (
        table,
        saved.iloc[::-1, ::-1],  # with latent nodes
        {label: table.loc[label] for label in "fedcba"},
        dict(graph.nodes(data="coef")),
    ):
        assert problem.value(w) == pytest.approx(found.objective, rel=1e-9)
    assert problem.certify(saved).holds(1e-6)


def test_flows_that_are_given_need_no_other_step(problem):
    found = problem.solve(gr.Exact(), gap=1e-10)
    (flows,), (prices,) = found.certificate.dual_point.flows, found.certificate.dual_point.prices
    for given in ({"flows": flows}, {"flows": [flows], "prices": [prices]}, {"flows": 1.01 * flows}):
        assert [step.name for step in problem.certify(found.coef, gap=1e-1, **given).steps] == [REPAIRED]
    assert problem.certify(found.coef).steps[-1].name == "kinks within 0.01"
    assert problem.certify(found, gap=1e-9).steps[-1].name == REPAIRED


def test_a_point_far_away_is_told_of_a_better_one(problem):
    judged, optimum = problem.certify(np.zeros((6, 2))), problem.solve(gap=1e-9)
    np.testing.assert_array_equal(judged.w, 0.0)  # what is judged is the caller's own
    assert judged.primal == pytest.approx(problem.value(np.zeros((6, 2))))
    assert judged.better.primal == pytest.approx(optimum.objective, rel=1e-6)
    assert "a better point was met" in str(judged)
    assert judged.steps[-1].name == "primal-dual rounds"  # which found the optimum: more could not be proved
    assert problem.certify(optimum).better is None


def test_a_point_far_beyond_all_numbers_has_no_certificate(problem):
    w = np.full((6, 2), 1e200)
    assert problem.value(w) == np.inf
    judged = problem.certify(w)
    assert not judged.valid
    assert str(judged).startswith("no certificate: the objective is beyond all floats at parameters of 1e+200")


def test_a_point_that_breaks_a_constraint_is_moved_and_it_is_said():
    problem = small(term=gr.Consensus(nx.path_graph(list("abcdef"))))
    optimum = problem.solve(gap=1e-10).coef
    w = optimum + 1e-9 * np.random.default_rng(1).standard_normal(optimum.shape)
    assert problem.value(w) == np.inf
    judged = problem.certify(w)
    assert judged.holds(1e-6)
    assert 0.0 < judged.moved < 1e-8
    assert "to where every constraint holds" in str(judged)
    assert problem.certify(optimum).moved == 0.0


def test_latent_nodes_are_the_callers_own_where_they_are_given():
    tree = {"left": list("abc"), "right": list("def")}
    problem = small(term=gr.Hierarchy(tree, (0.1, 0.1)))
    full = problem.solve(gap=1e-10).certificate.w
    observed = len(problem.form.space.index)
    assert problem.value(full[:observed]) == pytest.approx(problem.value(full), rel=1e-9)  # put where they cost least
    moved = full.copy()
    moved[observed:] += 1.0
    assert problem.value(moved) > 1.01 * problem.value(full)
    assert problem.certify(moved).primal == pytest.approx(problem.value(moved), rel=1e-9)


# ---- an end ----------------------------------------------------------------------------------------------------------
def test_steps_are_measured_as_the_certificate_is():
    """Where the objective is small beside that of the best common model it is no yardstick."""
    rng = np.random.default_rng(0)
    X, truth = rng.standard_normal((60, 2)), rng.standard_normal((6, 2))
    data = gr.NodeData.from_arrays(X, (X * np.repeat(truth, 10, axis=0)).sum(axis=1), np.repeat(list("abcdef"), 10))
    problem = gr.Problem(gr.SquaredLoss(data) + 1e-9 * gr.TotalVariation(nx.path_graph(list("abcdef")), gr.L2()))
    judged = problem.certify(truth + 1e-6)
    assert [step.relative_gap for step in judged.steps] == pytest.approx([judged.relative_gap], rel=1e-3)
    assert judged.gap > 1e-4 * judged.primal


def test_what_was_proved_is_returned_when_the_time_is_up(problem, monkeypatch):
    judged = problem.certify(np.zeros((6, 2)), gap=0, seconds=1e-3)
    assert judged.valid
    assert "The time was up before the" in str(judged)
    assert judged.primal == pytest.approx(problem.value(np.zeros((6, 2))))
    late = small(gr.SquaredL2()).certify(np.zeros((6, 2)), gap=0, seconds=1e-9)
    assert [step.name for step in late.steps] == ["gradients"]
    monkeypatch.setattr(gr.PrimalDual, "step", interrupted)
    judged = problem.certify(np.zeros((6, 2)))
    assert judged.valid
    assert "Interrupted at the primal-dual rounds" in str(judged)


def interrupted(*given):
    raise KeyboardInterrupt


def test_the_first_bound_is_cut_short_as_well(problem, monkeypatch):
    """It may take minutes on a large problem."""
    monkeypatch.setattr(judgement.Certifier, "certify", lambda *given: [time.sleep(1e-3) for _ in range(5000)])
    began = time.perf_counter()
    judged = problem.certify(np.zeros((6, 2)), seconds=0.01)
    assert time.perf_counter() - began < 4.0  # all of it sleeps for 5
    assert not judged.valid
    assert judged.note.endswith("The time was up before the gradients.")
    assert judged.primal == pytest.approx(problem.value(np.zeros((6, 2))))


def test_what_no_step_could_prove_is_told_with_its_reason(problem, monkeypatch):
    monkeypatch.setattr(judgement, "NEAR", ())
    monkeypatch.setattr(judgement.Exact, "missing", lambda *_: ("all",))
    monkeypatch.setattr(judgement.PrimalDual, "missing", lambda *_: ("all",))
    none = np.full(1, -np.inf)
    monkeypatch.setattr(Enclosure, "__call__", lambda self, point, *_: Enclosed(none, point, point.flows, "columns"))
    assert problem.certify(np.zeros((6, 2))).note == "no lower bound was proved: columns"


BAD = {
    "mapping, label": (lambda p: p.value({**dict.fromkeys("abcde", np.zeros(2)), "g": np.zeros(2)}), "w names 'g'"),
    "mapping, lacks one": (lambda p: p.value(dict.fromkeys("abcde", np.zeros(2))), "no entry for the node 'f'"),
    "mapping, shape": (lambda p: p.value(dict.fromkeys("abcdef", np.zeros(3))), r"w\['a'\] must have the shape \(2,\)"),
    "shape": (lambda p: p.certify(np.zeros((5, 2))), r"w must have the shape \(6, 2\), got \(5, 2\)"),
    "nan": (lambda p: p.value(np.full((6, 2), np.nan)), "w must be finite, got .* at the node 'a'"),
    "none": (lambda p: p.value(None), "w must be a Solution or an array"),
    "label": (
        lambda p: p.value(pd.DataFrame(np.zeros((6, 2)), index=list("abcdeg"), columns=["x0", "x1"])),
        "'g'",
    ),
    "label, twice": (
        lambda p: p.value(pd.DataFrame(np.zeros((7, 2)), index=list("abcdefa"), columns=["x0", "x1"])),
        "the node 'a' is there twice",
    ),
    "vector, label": (lambda p: p.value({key: {"x0": 1.0, "x2": 0.0} for key in "abcdef"}), r"w\['a'\] names 'x2'"),
    "flows, shape": (lambda p: p.certify(np.zeros((6, 2)), flows=[np.zeros((4, 2))]), r"flows\[0\].*\(5, 2\)"),
    "flows, mapping": (lambda p: p.certify(np.zeros((6, 2)), flows={}), "flows lack 5 of the 5 edges"),
    "flows, number": (lambda p: p.certify(np.zeros((6, 2)), flows=[1, 2]), r"for each of 1 terms, of \(5, 2\), got 2"),
    "prices, nan": (lambda p: p.certify(np.zeros((6, 2)), prices=np.full(60, np.nan)), r"prices\[0\] has NaN"),
    "gap": (lambda p: p.certify(np.zeros((6, 2)), gap=-1.0), "gap must be"),
    "seconds": (lambda p: p.certify(np.zeros((6, 2)), seconds=-1.0), "seconds must be"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_points_are_refused(problem, name):
    call, words = BAD[name]
    with pytest.raises(ModelError, match=words):
        call(problem)


# ---- kinks -----------------------------------------------------------------------------------------------------------
PATH = nx.path_graph(list("abcdef"))


@pytest.mark.parametrize(
    "term",
    [
        0.5 * gr.TotalVariation(PATH, gr.L1()),
        0.5 * gr.TotalVariation(PATH, gr.L2()),
        0.1 * gr.TotalVariation(PATH, gr.SquaredL2()) + gr.NodePenalty(gr.Box(-0.5, 0.9)),
    ],
    ids=str,
)
def test_a_point_near_kinks_is_judged_without_a_solve(term, monkeypatch):
    """The gradients alone leave a gap of a tenth there: the flows of fused edges cannot be read off w."""
    problem = small(term=term)
    optimum = problem.solve(gap=1e-11).coef
    monkeypatch.delattr(judgement, "solve")
    w = optimum + 1e-9 * np.random.default_rng(1).standard_normal(optimum.shape)
    judged = problem.certify(w)
    assert judged.steps[0].relative_gap > 1e-3
    assert judged.holds(1e-6)
    assert judged.steps[-1].name.startswith("kinks within")


def test_kinks_of_penalties_are_free_by_their_pieces():
    w = np.zeros((6, 2))
    w[3:, 1] = 1.0
    for penalty, row in ((gr.L1(), [True, False]), (gr.L2(), [False, False]), (gr.SquaredL2(), [False, False])):
        (found,) = kinks(small(penalty).form.frozen(), w, 0.1).flows
        assert found[2].tolist() == row
        assert found[[0, 1, 3, 4]].all() == (penalty != gr.SquaredL2())


def test_kinks_of_losses_are_free_between_their_slopes():
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(30), 5)
    data = gr.NodeData.from_arrays(np.full((150, 1), 100.0), rng.standard_normal(150), node)
    problem = gr.Problem(gr.QuantileLoss(data, tau=0.3) + 0.05 * gr.TotalVariation(nx.path_graph(30), gr.L1()))
    form, w = problem.form.frozen(), problem.solve(gap=1e-10).certificate.w + 5e-7
    found = kinks(form, w, 1e-6)
    (low, high), (block,) = found.prices[0], form.samples
    at_kink = np.abs(block.predict(w) - block.y) <= 1e-4
    assert 0 < at_kink.sum() < 150
    np.testing.assert_array_equal(low < high, at_kink)
    np.testing.assert_allclose(low[at_kink], -0.3 * block.scale[at_kink], rtol=1e-9)
    np.testing.assert_allclose(high[at_kink], 0.7 * block.scale[at_kink], rtol=1e-9)


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.QuantileLoss])
def test_routing_solves_the_bounded_least_squares_problem(loss):
    """Against scipy's active set method, with capacities that bind."""
    data = small().model.terms[0][1].data
    problem = gr.Problem(loss(data) + 0.01 * gr.TotalVariation(nx.complete_graph(list("abcdef")), gr.L1()))
    form = problem.form.frozen()
    w = np.zeros(form.shape)
    found, routing = kinks(form, w, 1.0), RoutingProblem(form, w)
    assert found.flows[0].all()
    point = routing(found)
    ((low, high),), c = found.prices, np.repeat(form.edges[0].weight, 2)
    free = low < high
    assert free.any() == (loss is gr.QuantileLoss)

    def imbalance(x):
        a = point.prices[0].copy()
        a[free] = x[len(c) :]
        return form.conservation(DualPoint((x[: len(c)].reshape(-1, 2),), (a,))).ravel()

    D = np.stack([routing.newton_step(e.reshape(form.shape)).ravel() for e in np.eye(form.n * form.d)])
    root, none = np.linalg.cholesky((D + D.T) / 2).T, np.zeros(len(c) + free.sum())
    A = root @ np.stack([imbalance(e) - imbalance(none) for e in np.eye(len(none))]).T
    bounds = np.append(-c, low[free]), np.append(c, high[free])
    best = lsq_linear(A, -root @ imbalance(none), bounds, tol=1e-12, method="bvls")
    assert (np.abs(best.x[: len(c)]) > 0.999 * c).any()
    mine = np.append(point.flows[0].ravel(), point.prices[0][free])
    assert (bounds[0] <= mine).all()
    assert (mine <= bounds[1]).all()
    assert np.linalg.norm(root @ imbalance(mine)) == pytest.approx(np.sqrt(2 * best.cost), rel=1e-6, abs=1e-9)


# ---- proofs
def test_a_judged_point_is_proved_to_others(problem, tmp_path):
    judged = problem.certify(problem.solve(gap=1e-3).coef)
    proved = judged.prove(tmp_path / "judged.json")
    found = check((tmp_path / "judged.json").read_bytes())
    assert found.hash == proved.hash
    assert float(proved.upper) == pytest.approx(judged.primal, rel=1e-9)
    assert float(proved.lower) == pytest.approx(judged.dual, rel=1e-9)


# ---- flows that were given -------------------------------------------------------------------------------------------
def test_flows_beyond_their_capacity_are_named(problem):
    solution = problem.solve(gap=1e-9)
    (flows,) = solution.certificate.dual_point.flows
    assert not problem.certify(solution.coef, flows=[flows]).beyond
    assert "beyond" not in str(problem.certify(solution.coef, flows=[flows]))
    wild = np.zeros_like(flows)
    wild[1], wild[3] = [0.4, 0.0], [0.0, 1.0]  # of capacity 0.2
    found = problem.certify(solution.coef, flows=[wild])
    assert found.valid
    assert found.beyond == (
        "2 of the 5 flows given lie beyond the capacities of their edges and were brought within; the farthest, at "
        "'d' - 'e' of TotalVariation(L2), has 5 times its capacity"
    )
    assert found.beyond in str(found)
    assert "times its capacity" in found._repr_html_()


def test_flows_at_a_node_are_named():
    problem = small(term=0.2 * gr.NodePenalty(gr.L2()))
    found = problem.certify(np.zeros((6, 2)), flows=[np.eye(6)[:, :2]])
    assert "2 of the 6 flows given" in found.beyond
    assert "at 'a' of NodePenalty(L2)" in found.beyond


# ---- answers with latent nodes ---------------------------------------------------------------------------------------
def test_latent_nodes_of_an_answer_stay_and_those_that_it_lacks_lie_among_their_neighbours():
    data = gr.NodeData.from_arrays(None, np.array([[0.0], [1.0], [5.0], [9.0]]), list(range(4)))
    tree = gr.Hierarchy({0: "a", 1: "a", 2: "b", 3: "b"}, weights=(0.1, 0.1), penalty=gr.L1())
    problem = gr.Problem(gr.MeanLoss(data) + tree)
    form, found = problem.form, problem.solve(gr.PrimalDual(), gap=0.0, rounds=5)
    means = with_latent_means(form, found.certificate.w)
    np.testing.assert_array_equal(given_point(found, "w", form).w, found.certificate.w)
    assert np.abs(means - found.certificate.w).max() > 1e-3
    alone = given_point(gr.Problem(gr.MeanLoss(data)).solve(gap=1e-9), "w", form).w
    np.testing.assert_allclose(alone[:4, 0], [0.0, 1.0, 5.0, 9.0], atol=1e-6)
    np.testing.assert_array_equal(alone, with_latent_means(form, alone))
    assert alone[4:].all()


# ---- flows that were given -------------------------------------------------------------------------------------------
PAIRS = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("d", "e"), ("d", "f"), ("e", "f")]
STATIONS = np.array([1.0, 1.4, 0.6, 3.2, 2.6, 3.2])


def stations(loss=gr.MeanLoss, term=0.0):
    X = None if loss is gr.MeanLoss else np.ones((6, 1))
    data = gr.NodeData.from_arrays(X, STATIONS, list("abcdef"))
    return gr.Problem(loss(data) + 0.5 * gr.TotalVariation(gr.Graph.from_edges(PAIRS), gr.L2()) + term)


def value_of(u):
    """The dual function of the six stations, by hand."""
    K = np.array([[(k == i) - (k == j) for k in "abcdef"] for i, j in PAIRS], dtype=float)
    return STATIONS @ K.T @ u - 0.5 * np.sum((K.T @ u) ** 2)


def crossing(size, pair=("c", "d")):
    return {**dict.fromkeys(PAIRS, 0.0), ("c", "d"): 0.0} | {pair: size}


def test_flows_that_were_given_are_judged_as_they_are():
    problem, rng = stations(), np.random.default_rng(0)
    judged = problem.certify(STATIONS, flows=crossing(-0.5))
    assert judged.as_given == pytest.approx(1.05, abs=1e-9)
    assert judged.as_given <= 1.05
    assert "the flows given (to 1e-9 of their size) prove by themselves that 1.05" in str(judged)
    assert judged.dual > 1.19
    own = judged.primal - judged.as_given
    assert f"<= optimum (relative gap to it {own / judged.primal:.3g})" in str(judged)
    assert f"{REPAIRED}: lower bound {judged.steps[0].dual:.10g}," in str(judged)
    assert str(problem.certify(STATIONS)).count("relative") == 1  # of one point one gap is said
    for _ in range(5):
        u = rng.uniform(-0.5, 0.5, 7)
        assert problem.certify(STATIONS, flows=u).as_given == pytest.approx(value_of(u), abs=1e-9)
    assert problem.certify(STATIONS).as_given is None


def test_signs_are_hinted_at_beside_prices_too():
    data = gr.NodeData.from_arrays(None, [6.0, 3.0, 0.0], list("abc"))
    problem = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(gr.Graph.chain(list("abc")), gr.L1()))
    w, u, a = [[5.0], [3.0], [1.0]], np.array([1.0, 1.0]), np.array([[-1.0], [0.0], [1.0]])
    for flows, prices, said in (
        (-u, -a, "-7 <= optimum (relative gap to it 1.71); with all signs changed they would prove 5"),
        (-u, a, "they do not balance the prices; with all their signs changed they do, and prove 5"),
        (u, a, "5 <= optimum"),
    ):
        assert said in str(problem.certify(w, flows=flows, prices=prices))
    assert "signs" not in str(problem.certify(w, flows=u, prices=a))


@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_is_no_worse_than_the_flows_that_were_given(seed):
    """A repair takes the prices at w: with those that are best for the flows it may prove more."""
    rng = np.random.default_rng(seed)
    X, node = rng.standard_normal((40, 2)), np.repeat(np.arange(8), 5)
    data = gr.NodeData.from_arrays(X, X @ [1.0, -1.0] + (node > 3) + 0.3 * rng.standard_normal(40), node)
    fused = 0.3 * gr.TotalVariation(nx.cycle_graph(8), gr.L2())
    problem = gr.Problem(gr.SquaredLoss(data) + fused + 0.01 * gr.NodePenalty(gr.SquaredL2()))
    flows = problem.solve(gap=1e-10).certificate.dual_point.flows
    for size in (1.0, 0.999, 0.5):
        judged = problem.certify(np.zeros((8, 2)), flows=[size * u for u in flows], gap=10.0)
        assert np.isfinite(judged.as_given)
        assert len(judged.steps) == 1  # of a gap that is met at once
        assert judged.dual >= judged.as_given


def test_a_wrong_sign_and_flows_beyond_capacity_are_told():
    turned = stations().certify(STATIONS, flows=crossing(0.5))
    assert turned.as_given == pytest.approx(-1.55, abs=1e-9)
    assert "with all signs changed they would prove 1.05" in str(turned)
    beyond = stations().certify(STATIONS, flows=crossing(-0.6))
    assert beyond.as_given == -np.inf
    assert "1.2 times its capacity\n  the flows given prove nothing as they are" in str(beyond)


def test_nothing_is_said_of_signs_that_change_nothing():
    """Both bounds differ in their last bits where flows are all but 0."""
    for size in (0.0, 1e-13):
        given = {pair: (-size if u < 0 else size) for pair, u in crossing(1.0).items()}
        for flows in (given, {pair: -u for pair, u in given.items()}):
            judged = stations().certify(STATIONS, flows=flows)
            assert judged.turned is not None
            assert "signs" not in str(judged)


def test_rows_of_flows_are_as_the_edges_of_the_graph_and_run_from_the_node_that_comes_first():
    """Of a second graph, too, which has its nodes in another order."""
    first = gr.Graph.from_edges([("c", "b"), ("a", "c")])
    second = gr.Graph.from_edges([("a", "b"), ("b", "c"), ("d", "a")])
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, [4.0, 1.0, 3.0, 2.0], list("dbca")))
    problem = gr.Problem(loss + 0.5 * gr.TotalVariation(first, gr.L2()) + 0.5 * gr.TotalVariation(second, gr.L2()))
    order = list(problem.solve().labels)
    flows = [np.array([0.1, -0.2]), np.array([0.05, 0.3, -0.4])]
    out = dict.fromkeys(order, 0.0)
    for graph, u in zip((first, second), flows, strict=True):
        for pair, each in zip(graph.edges(), u, strict=True):
            tail, head = sorted(pair, key=order.index)
            out[tail], out[head] = out[tail] + each, out[head] - each
    y = {"d": 4.0, "b": 1.0, "c": 3.0, "a": 2.0}
    by_hand = sum(y[label] * each - 0.5 * each**2 for label, each in out.items())
    assert problem.certify(np.zeros((4, 1)), flows=flows).as_given == pytest.approx(by_hand, abs=1e-9)


def test_flows_with_prices_that_they_do_not_balance_prove_nothing():
    problem = stations(gr.QuantileLoss)
    best = problem.solve().certificate.dual_point
    right = problem.certify(STATIONS, flows=best.flows, prices=best.prices)
    assert right.as_given == pytest.approx(right.dual, abs=1e-6)
    wrong = problem.certify(STATIONS, flows=best.flows, prices=[best.prices[0] + 0.1])
    assert wrong.as_given == -np.inf
    assert "they do not balance the prices" in str(wrong)
    unknown = problem.certify(STATIONS, flows=best.flows)
    assert unknown.as_given is None
    said = "not known without prices=, an array for each loss, as QuantileLoss need not be strictly convex; repaired"
    assert said in str(unknown)
    assert "without prices=" not in str(problem.certify(STATIONS))


def test_of_an_edge_that_comes_both_ways_the_flows_are_one():
    problem, both = stations(), dict.fromkeys(PAIRS, 0.25) | {pair[::-1]: -0.25 for pair in PAIRS}
    assert problem.certify(STATIONS, flows=both).as_given == problem.certify(STATIONS, flows=np.full(7, 0.25)).as_given
    head, tail = PAIRS[0]
    with pytest.raises(ModelError, match=r"is another than that of .* with its sign changed"):
        problem.certify(STATIONS, flows=both | {(tail, head): 0.25})


def test_flows_come_in_as_they_go_out():
    problem, u = stations(), np.linspace(-0.4, 0.4, 7)
    there = problem.certify(STATIONS, flows=u[:, None]).as_given
    by_edge = dict(zip(PAIRS, u, strict=True))
    backwards = {(head, tail): [-flow] for (tail, head), flow in by_edge.items()}
    for given in (u, [u], by_edge, backwards):
        assert problem.certify(STATIONS, flows=given).as_given == there
    for penalised in (problem, stations(term=0.1 * gr.NodePenalty(gr.L1())), small()):
        solution = penalised.solve()
        judged = penalised.certify(solution.coef, flows=solution.flows)
        assert judged.as_given == pytest.approx(solution.certificate.dual, rel=1e-6)


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        (np.zeros(6), r"an array for each of 1 terms, of \(7, 1\), got an array \(6,\); one may come by itself, as np"),
        (pd.DataFrame({"tail": ["a"], "length": [1.0]}), "give solution.flows; its table has only their lengths"),
        ({("a", "b"): 1.0}, r"flows lack 6 of the 7 edges, \('a', 'c'\) is one"),
        (crossing(1.0, ("a", "z")), r"\('a', 'z'\) is not an edge"),
        (crossing([1.0, 2.0]), r"the flow of \('c', 'd'\) must have the shape \(1,\), got \(2,\)"),
        (crossing("x"), r"the flow of \('c', 'd'\) must be"),
        (crossing(np.nan), "NaN"),
    ],
)
def test_flows_of_other_shapes_are_refused(flows, said):
    with pytest.raises(ModelError, match=said):
        stations().certify(STATIONS, flows=flows)


def test_flows_by_edge_are_refused_where_two_edges_have_the_same_ends():
    twice = stations(term=0.1 * gr.TotalVariation(gr.Graph.from_edges(PAIRS), gr.L1()))
    with pytest.raises(ModelError, match="no two of them with the same ends"):
        twice.certify(STATIONS, flows=crossing(0.1))


def test_a_judged_point_takes_claims_as_an_answer_does(tmp_path):
    problem = stations()
    judged = problem.certify(problem.solve(gap=1e-10).coef, gap=1e-10)
    proved = judged.prove(tmp_path / "judged.json", claims=["split", "near"])
    assert {"bounds", "split"} <= set(proved.claims)
    assert check((tmp_path / "judged.json").read_bytes())  # raises where a claim does not hold


def test_flows_that_are_no_numbers_are_named_by_edge_or_row():
    data = gr.NodeData.from_dict({k: ([[1.0]], [float(k)]) for k in range(3)})
    problem = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(3), gr.L2()))
    with pytest.raises(ModelError, match=r"the flow of \(1, 2\) has NaN or infinite entries"):
        problem.certify(np.zeros((3, 1)), flows={(0, 1): [0.0], (1, 2): [np.nan]})
    with pytest.raises(ModelError, match=r"flows\[0\] has NaN or infinite entries, first in row 1"):
        problem.certify(np.zeros((3, 1)), flows=np.array([0.0, np.nan]))


def test_flows_are_judged_as_they_are_where_there_are_no_losses():
    """A maximum flow: no price exists, and the flows given were not judged without an empty list of them."""
    pipes = nx.Graph()
    pipes.add_weighted_edges_from([("s", "p", 3), ("s", "q", 2), ("p", "q", 1), ("p", "t", 2), ("q", "t", 3)])
    cut = gr.TotalVariation(pipes, gr.L1()) + gr.Zero()(gr.w.at(["s", "t"]) - np.array([[1.0], [0.0]]))
    flow = {("s", "p"): 3, ("s", "q"): 2, ("p", "q"): 1, ("p", "t"): 2, ("q", "t"): 3, ("s", None): -5, ("t", None): 5}
    problem = gr.Problem(cut)
    assert problem.certify(problem.solve().coef, flows=flow).as_given == pytest.approx(5.0)
    wrong = problem.certify(problem.solve().coef, flows=flow | {("t", None): 4})
    assert wrong.as_given == -np.inf
    assert "they do not add up to 0 at every node" in str(wrong)


def test_no_point_of_an_infeasible_problem_is_said_to_satisfy_its_constraints():
    data = gr.NodeData.from_dict({i: (np.ones((3, 1)), np.arange(3.0) + i) for i in range(3)})
    ends = gr.Zero()(gr.w.at([0]) - 1.0) + gr.Zero()(gr.w.at([2]) - 2.0)
    problem = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(3), gr.Zero()) + ends)
    said = str(problem.certify(np.ones((3, 1))))
    assert "no point with a finite objective was found" in said
    assert "every constraint holds" not in said


class Boundless(OwnL1):
    """A conjugate that has forgotten its domain."""

    def conjugate(self, u):
        return np.zeros(len(u))


def test_flows_as_given_are_judged_beside_penalties_of_ones_own_too():
    data = gr.NodeData.from_arrays(None, np.array([5.0, 1.0, 3.0]), list("abc"))

    def judged(penalty, k):
        problem = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(nx.path_graph(list("abc")), penalty))
        return problem.certify(np.array([5.0, 1.0, 3.0]), flows={("a", "b"): k, ("b", "c"): -k}).as_given

    for k in (1.0, -1.0):
        assert judged(OwnL1(), k) == pytest.approx(judged(gr.L1(), k), rel=1e-9)
    assert judged(OwnL1(), 3.0) == -np.inf
    assert judged(Boundless(), 3.0) is None


@pytest.mark.parametrize("penalty", [gr.SquaredL2(), gr.HuberNorm(delta=1e3)], ids=repr)
@pytest.mark.parametrize(("ga", "gb"), [(0.0, 0.0), (2.0, 1.0), (100.0, -50.0)])
def test_flows_at_nodes_are_taken_as_given(penalty, ga, gb):
    """Those of smooth penalties were replaced by the best ones: 8 was said to be proved by flows that prove 3."""
    data = gr.NodeData.from_arrays(None, [5.0, 1.0], ["a", "b"])
    tied = gr.MeanLoss(data) + gr.TotalVariation(gr.Graph.from_edges([("a", "b")]), gr.L2())
    problem = gr.Problem(tied + gr.NodePenalty(penalty))
    a, b = -(1.0 + ga), 1.0 - gb  # balance leaves no choice of the prices
    by_hand = -(a * a / 2 + 5 * a) - (b * b / 2 + b) - (ga * ga + gb * gb) / 2
    flows = {("a", "b"): 1.0, ("a", None): ga, ("b", None): gb}
    for prices in (None, np.array([[a], [b]])):
        judged = problem.certify(np.zeros((2, 1)), flows=flows, prices=prices)
        assert judged.as_given == pytest.approx(by_hand, rel=1e-9)
