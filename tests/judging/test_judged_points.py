"""Points of anybody's: the objective there, and a lower bound as near to it as the point is to the optimum."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.linalg import block_diag
from scipy.optimize import lsq_linear

import graphreg as gr
from benchmarks.soundness.exact import above, below, exact
from benchmarks.soundness.objective import objective, repaired
from benchmarks.soundness.stored import as_stored
from graphreg.certificate import Routing, common, kinks
from graphreg.datasets import random_problem
from graphreg.datasets.wild_problems import wild_problem
from graphreg.errors import ModelError
from graphreg.judging import judgement
from graphreg.running import solve
from graphreg.verify import check

GAP = 1e-6
DISTANCES = (1e-3, 1e-6, 1e-9, 1e-12)


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
    "seed", [*range(0, 36, 6), *(pytest.param(s, marks=pytest.mark.whole) for s in range(200) if s % 6 or s >= 36)]
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
    "seed", [*range(0, 35, 7), *(pytest.param(s, marks=pytest.mark.whole) for s in range(35, 140))]
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
    w = problem.solve(gap=1e-2).coef
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


def test_flows_that_are_given_need_no_other_step(problem):
    found = problem.solve(gap=1e-10)
    (flows,), (prices,) = found.certificate.dual_point.flows, found.certificate.dual_point.prices
    for given in ({"flows": flows}, {"flows": [flows], "prices": [prices]}, {"flows": 1.01 * flows}):
        assert [step.name for step in problem.certify(found.coef, gap=1e-1, **given).steps] == ["given flows"]
    assert problem.certify(found.coef).steps[-1].name == "kinks within 0.01"
    assert problem.certify(found, gap=1e-9).steps[-1].name == "given flows"


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
    assert str(judged).startswith("no certificate: no feasible point was found")


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
def test_what_was_proved_is_returned_when_the_time_is_up(problem, monkeypatch):
    judged = problem.certify(np.zeros((6, 2)), gap=0, seconds=1e-3)
    assert judged.valid
    assert "The time was up before the" in str(judged)
    assert judged.primal == pytest.approx(problem.value(np.zeros((6, 2))))
    monkeypatch.setattr(judgement, "solve", interrupted)
    judged = problem.certify(np.zeros((6, 2)))
    assert judged.valid
    assert "Interrupted at the primal-dual rounds" in str(judged)


def interrupted(*given):
    raise KeyboardInterrupt


BAD = {
    "mapping, label": (lambda p: p.value({**dict.fromkeys("abcde", np.zeros(2)), "g": np.zeros(2)}), "w names 'g'"),
    "mapping, lacks one": (lambda p: p.value(dict.fromkeys("abcde", np.zeros(2))), "no entry for the node 'f'"),
    "mapping, shape": (lambda p: p.value(dict.fromkeys("abcdef", np.zeros(3))), r"w\['a'\] must have the shape \(2,\)"),
    "shape": (lambda p: p.certify(np.zeros((5, 2))), r"w must have the shape \(6, 2\), got \(5, 2\)"),
    "nan": (lambda p: p.value(np.full((6, 2), np.nan)), "w has NaN"),
    "none": (lambda p: p.value(None), "w must be a Solution or an array"),
    "label": (
        lambda p: p.value(pd.DataFrame(np.zeros((6, 2)), index=list("abcdeg"), columns=["x0", "x1"])),
        "'g'",
    ),
    "flows, shape": (lambda p: p.certify(np.zeros((6, 2)), flows=[np.zeros((4, 2))]), r"flows\[0\].*\(5, 2\)"),
    "flows, number": (lambda p: p.certify(np.zeros((6, 2)), flows=[1, 2]), "for each of 1 terms, got 2"),
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
@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2()])
def test_a_point_near_kinks_is_judged_without_a_solve(penalty, monkeypatch):
    """The gradients alone leave a gap of a tenth there: the flows of fused edges cannot be read off w."""
    problem = small(penalty, term=0.5 * gr.TotalVariation(nx.path_graph(list("abcdef")), penalty))
    optimum = problem.solve(gap=1e-11).coef
    monkeypatch.delattr(judgement, "solve")
    w = optimum + 1e-9 * np.random.default_rng(1).standard_normal(optimum.shape)
    judged = problem.certify(w)
    assert judged.steps[0].relative_gap > 1e-3
    assert judged.holds(1e-6)
    assert judged.steps[-1].name.startswith("kinks within")


def test_kinks_of_losses_are_free_between_their_slopes():
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(30), 5)
    data = gr.NodeData.from_arrays(np.ones((150, 1)), rng.standard_normal(150), node)
    problem = gr.Problem(gr.QuantileLoss(data, tau=0.3) + 0.05 * gr.TotalVariation(nx.path_graph(30), gr.L1()))
    form, w = problem.form.frozen(), problem.solve(gap=1e-10).certificate.w
    found = kinks(form, w, 1e-6)
    (low, high), (block,) = found.prices[0], form.samples
    at_kink = np.abs(block.predict(w) - block.y) <= 1e-6
    assert 0 < at_kink.sum() < 150
    np.testing.assert_array_equal(low < high, at_kink)
    np.testing.assert_allclose(low[at_kink], -0.3 * block.scale[at_kink], rtol=1e-9)
    np.testing.assert_allclose(high[at_kink], 0.7 * block.scale[at_kink], rtol=1e-9)


def test_routing_solves_the_bounded_least_squares_problem():
    """Against scipy's active set method, with capacities that bind."""
    problem = small(term=0.01 * gr.TotalVariation(nx.complete_graph(list("abcdef")), gr.L1()))
    form = problem.form.frozen()
    w = np.zeros(form.shape)
    found = kinks(form, w, 1.0)
    assert found.flows[0].all()
    point = Routing(form, tuple(block.stacks for block in form.samples), w)(found, rounds=5000)
    (edge,), (block,) = form.edges, form.samples
    roots = [np.linalg.cholesky(np.linalg.inv(H)).T for H in block.sums(block.curvatures(w))]
    A = block_diag(*roots) @ edge.flat(2).T.toarray()
    b = -block_diag(*roots) @ block.adjoint(point.prices[0], form.shape).ravel()
    c = np.repeat(edge.weight, 2)
    best = lsq_linear(A, b, (-c, c), tol=1e-12, method="bvls")
    assert (np.abs(best.x) > 0.999 * c).any()
    assert (np.abs(point.flows[0].ravel()) <= c).all()
    assert np.linalg.norm(A @ point.flows[0].ravel() - b) == pytest.approx(np.sqrt(2 * best.cost), rel=1e-6)


# ---- proofs and starts
def test_a_judged_point_is_proved_to_others(problem, tmp_path):
    judged = problem.certify(problem.solve(gap=1e-3).coef)
    proved = judged.prove(tmp_path / "judged.json")
    found = check((tmp_path / "judged.json").read_bytes())
    assert found.hash == proved.hash
    assert float(proved.upper) == pytest.approx(judged.primal, rel=1e-9)
    assert float(proved.lower) == pytest.approx(judged.dual, rel=1e-9)


@pytest.mark.parametrize(
    "method", [gr.PrimalDual(), gr.ADMM(), gr.InteriorPoint(), gr.SubgradientDescent(), gr.Exact()]
)
def test_no_answer_is_worse_than_its_start(problem, method):
    optimum = problem.solve(gap=1e-12).coef
    rounds = {} if isinstance(method, gr.Exact) else {"rounds": 3}
    found = problem.solve(method, start=optimum, **rounds)
    assert problem.value(found) <= problem.value(optimum)


def test_a_start_without_its_latent_nodes_is_not_lost():
    problem = small(term=gr.Hierarchy({"left": list("abc"), "right": list("def")}, (0.1, 0.1)))
    optimum = problem.solve(gap=1e-12).coef
    found = problem.solve(gr.PrimalDual(), start=optimum, rounds=1)
    assert problem.value(found) <= problem.value(optimum)
