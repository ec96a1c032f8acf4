"""The primal-dual method and the driver: optima, steps, budgets, ledgers, interruption, determinism."""

from __future__ import annotations

from inspect import signature

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from core_cases import iterate, view_of
from factories import chain, interrupt

import graphreg as gr
from graphreg.certificate import common
from graphreg.datasets import random_problem
from graphreg.methods import AbstractMethod, listed
from graphreg.running import Outcome

SEEDS = (  # every loss and every penalty twice, every structure
    *(540, 431, 162, 383, 214, 355, 476, 97, 408, 129),
    *(250, 171, 502, 233, 364, 145, 516, 427, 388, 299),
)


# ---- optima ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [*SEEDS[:10], *(pytest.param(seed, marks=pytest.mark.whole) for seed in SEEDS[10:])])
def test_the_optimum_of_a_random_problem(seed):
    drawn = random_problem(seed)
    exact = drawn.problem.solve(gap=1e-8, on_failure="return")
    run = drawn.problem.solve(gr.PrimalDual(), gap=1e-5)
    assert run.status == "certified"
    assert run.certificate.relative_gap <= 1e-5
    yardstick = max(abs(exact.objective), common(drawn.problem.form).floor)
    assert run.objective == pytest.approx(exact.objective, abs=2e-5 * yardstick)
    assert run.objective >= exact.certificate.dual
    assert run.rounds == run.ledger.rounds < 20_000


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss])
def test_the_steps_of_the_paper_reach_the_optimum(loss):
    problem = chain(n=6, loss=loss)
    found = problem.solve(gr.PrimalDual(balance=1.0, relaxation=1.0), gap=1e-8)
    assert found.status == "certified"

    data = problem.model.terms[0][1].data
    w = cp.Variable((6, 3))
    fit = 0.0
    for i in range(6):
        X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
        r = X @ w[i]
        fit += cp.sum(cp.logistic(cp.multiply(1 - 2 * y, r)) if loss is gr.LogisticLoss else cp.square(r - y) / 2) / 4
    hand = cp.Problem(cp.Minimize(fit + 0.2 * sum(cp.norm(w[i] - w[i + 1]) for i in range(5))))
    hand.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert found.objective == pytest.approx(hand.value, rel=1e-7)
    np.testing.assert_allclose(found.coef, w.value, atol=2e-3)


def test_one_step_of_the_paper_by_hand():
    """Equations (32) and (33): tau_i = 1/deg_i, sigma_e = 1/2, and the prox of a node's least squares."""
    problem = chain(n=4)
    form = problem.form
    rng = np.random.default_rng(3)
    start = rng.standard_normal((4, 3)), (0.1 * rng.standard_normal((3, 3)),)
    one, two = iterate(gr.PrimalDual(balance=1.0, relaxation=1.0), form, [1, 2], start)
    data, D = problem.model.terms[0][1].data, np.diff(np.eye(4), axis=0) * -1.0
    w, u = start[0], start[1][0]
    for state in (one, two):
        v = w - (D.T @ u) / np.array([1, 2, 2, 1])[:, None]
        new = np.empty_like(w)
        for i, degree in enumerate((1, 2, 2, 1)):
            X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
            new[i] = np.linalg.solve(X.T @ X / 4 + degree * np.eye(3), X.T @ y / 4 + degree * v[i])
        u = u + 0.5 * D @ (2 * new - w)
        u = u * np.minimum(1.0, 0.2 / np.linalg.norm(u, axis=1))[:, None]
        w = new
        np.testing.assert_allclose(state.x.w, w, atol=1e-12)
        np.testing.assert_allclose(state.x.u[0], u, atol=1e-12)


@pytest.mark.parametrize("options", [{"balance": 0.05}, {"balance": 20.0}, {"relaxation": 1.0}, {"relaxation": 1.99}])
def test_every_balance_and_relaxation_leads_there(options):
    problem = chain(loss=gr.HuberLoss)
    found = problem.solve(gr.PrimalDual(**options), gap=1e-6)
    assert found.status == "certified"
    assert found.objective == pytest.approx(problem.solve().objective, rel=2e-6)


# ---- a step ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.HuberLoss])
def test_other_data_at_a_far_node_do_not_matter_at_once(loss):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((32, 3)), rng.standard_normal(32)

    def states(y):
        data = gr.NodeData.from_arrays(X, y, np.repeat(range(8), 4))
        form = gr.Problem(loss(data) + 0.2 * gr.TotalVariation(nx.path_graph(8), gr.L2())).form
        return iterate(gr.PrimalDual(balance=1.0), form, [1, 2, 3])

    changed = y.copy()
    changed[-4:] += 1.0
    for k, (one, two) in enumerate(zip(states(y), states(changed), strict=True)):
        same = np.flatnonzero((one.x.w == two.x.w).all(axis=1))
        assert set(range(8 - 1 - k)) <= set(same)
        assert 7 not in same


# ---- the ledger ------------------------------------------------------------------------------------------------------
def test_the_messages_of_a_run():
    """Two per edge and round, of d numbers each; adaptations are sums up and down a tree."""
    problem = chain(n=8)
    run = problem.solve(gr.PrimalDual(), gap=0, rounds=25)
    assert run.ledger.rounds == 25
    assert run.ledger.messages["method"] == 25 * 2 * 7
    assert run.ledger.bytes["method"] == 25 * 2 * 7 * 3 * 8
    assert run.ledger.messages["adaptation"] == 3 * 2 * (8 - 1)  # for the first balance, at rounds 10 and 20
    asked = run.ledger.accounts["certificate"]
    assert min(asked.exchanges, asked.sums) > 0
    assert run.ledger.messages["certificate"] == asked.exchanges * 2 * 7 + asked.sums * 2 * (8 - 1)
    assert run.ledger.total_messages == sum(run.ledger.messages.values())
    fixed = problem.solve(gr.PrimalDual(balance=1.0), gap=0, rounds=25)
    assert fixed.ledger.messages["adaptation"] == 0


def test_messages_carry_what_the_edges_couple():
    assert chain(features=["x1"]).solve(gr.PrimalDual(), gap=0, rounds=10).ledger.bytes["method"] == 10 * 2 * 7 * 8
    graph, other = nx.path_graph(8), nx.Graph([(0, 1), (2, 5)])
    both = chain(features=["x0"]).model + 0.1 * gr.TotalVariation(other, gr.L1(), features=["x0", "x2"])
    both = gr.Problem(both + 0.1 * gr.NodePenalty(gr.L1()))  # edges to the ground send nothing
    ledger = both.solve(gr.PrimalDual(), gap=0, rounds=10).ledger
    assert ledger.messages["method"] == 10 * 2 * (graph.number_of_edges() + 1)
    assert ledger.bytes["method"] == 10 * 2 * (6 * 1 + 2 * 2) * 8


def test_the_ledger_counts_what_is_exchanged():
    """Against a count of the calls themselves."""
    problem = chain()
    view = view_of(problem.form)
    calls, true = [], view.engine.exchange
    view.engine.exchange = lambda values: (calls.append(values.shape), true(values))[1]
    method = gr.PrimalDual(balance=1.0)
    state = method.init(view, None)
    for _ in range(7):
        state = method.step(state)
    assert calls == [(8, 3)] * 7
    assert view.engine.ledger.messages["method"] == 7 * 2 * 7


# ---- budgets ---------------------------------------------------------------------------------------------------------
def test_means_over_what_is_fused_are_recorded():
    """Of a certificate two numbers are summed, P and Q; where fused entries are set to their means, those as well."""
    problem = chain(penalty=gr.L2())
    for polish in (True, False):
        sums = problem.solve(gr.PrimalDual(polish=polish), gap=1e-6, seed=0).ledger.accounts["certificate"]
        assert (sums.summed > 2 * sums.sums) == polish


@pytest.mark.parametrize("rounds", [1, 7, 10, 41])
def test_so_many_rounds_exactly(rounds):
    problem = chain()
    run = problem.solve(gr.PrimalDual(), gap=0, rounds=rounds)
    assert run.status == "budget"
    assert run.rounds == run.ledger.rounds == rounds
    state = iterate(gr.PrimalDual(), problem.form, [rounds])[0]
    np.testing.assert_array_equal(run.coef, gr.PrimalDual().point(state)[0])
    assert str(rounds) in run.message


def test_a_gap_of_zero_is_never_met():
    run = chain(penalty=gr.SquaredL2()).solve(gr.PrimalDual(), gap=0, rounds=2500)
    assert run.rounds == 2500
    assert run.certificate.relative_gap < 1e-9


def test_a_gap_that_is_met_ends_the_run():
    run = chain().solve(gr.PrimalDual(), gap=1e-3, rounds=50_000)
    assert run.status == "certified"
    assert run.rounds < 1000
    tighter = chain().solve(gr.PrimalDual(), gap=1e-7, rounds=50_000)
    assert run.rounds < tighter.rounds
    assert tighter.certificate.holds(1e-7)


def test_seconds():
    run = chain(n=60, loss=gr.LogisticLoss).solve(gr.PrimalDual(), gap=0, seconds=0.2)
    assert run.status == "budget"
    assert 0.1 <= run.seconds < 2.0  # some of the time is held back for the last certificate
    assert run.rounds > 1


def test_a_start_saves_rounds():
    problem = chain(loss=gr.HuberLoss)
    cold = problem.solve(gr.PrimalDual(), gap=1e-6)
    warm = problem.solve(gr.PrimalDual(), gap=1e-6, start=cold)
    assert warm.status == "certified"
    assert warm.rounds <= cold.rounds / 2
    array = problem.solve(gr.PrimalDual(), gap=0, rounds=3, start=cold.coef)
    nothing = problem.solve(gr.PrimalDual(), gap=0, rounds=3)
    assert array.objective < nothing.objective
    exact = problem.solve()
    assert problem.solve(gr.PrimalDual(), gap=1e-6, start=exact).rounds <= cold.rounds / 2


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (np.zeros((3, 3)), "shape"),
        (np.full((8, 3), np.nan), "finite, got .nan.* at the node 0"),
        (np.zeros(24), "shape"),
    ],
)
def test_a_wrong_start(start, said):
    with pytest.raises(gr.errors.ModelError, match=said):
        chain().solve(gr.PrimalDual(), start=start)


# ---- what is shown and recorded --------------------------------------------------------------------------------------
def test_the_callback_gets_every_record():
    seen = []
    run = chain().solve(gr.PrimalDual(), gap=1e-6, callback=seen.append)
    assert seen == run.trace.records
    assert [record.round for record in seen] == sorted(record.round for record in seen)
    assert seen[-1].certified
    assert seen[-1].relative_gap <= 1e-6
    for record in run.trace.certified():
        assert record.dual <= run.objective <= record.primal * (1 + 1e-12)
    assert len(run.trace.table()) == len(run.trace) == len(seen)


def interrupted(problem, callback, **budget):
    """The answer; an interruption that gets through fails the test, and does not end all of them."""
    try:
        return problem.solve(gr.PrimalDual(), callback=callback, **budget)
    except KeyboardInterrupt:
        raise AssertionError("KeyboardInterrupt was raised") from None


@pytest.mark.parametrize("at", [10, 30])
def test_an_interruption_returns_the_best_point_with_its_certificate(at):
    rest = [KeyboardInterrupt()]

    def interrupt(record):
        if record.round >= at and rest:
            raise rest.pop()

    problem = chain()
    run = interrupted(problem, interrupt, gap=1e-12)
    assert run.status == "interrupted"
    assert at <= run.rounds < at + 11
    assert run.certificate.valid
    exact = problem.solve()  # whose objective is an upper bound itself, and may be the looser one
    assert run.certificate.dual <= exact.objective
    assert exact.certificate.dual <= run.certificate.primal
    assert "was interrupted" in run.message


@pytest.mark.parametrize("budget", [{"gap": 1e-12}, {"gap": 0, "rounds": 5}])
def test_a_callback_that_interrupts_again_and_again(budget):
    run = interrupted(chain(), interrupt, **budget)
    assert run.status in ("interrupted", "budget")
    assert run.certificate.valid


@pytest.mark.parametrize(
    ("method", "engine"),
    [
        (None, None),
        (gr.ADMM(), None),
        (gr.InteriorPoint(), None),
        (gr.PrimalDual(), gr.Actors()),
        (gr.PrimalDual(), gr.Parts(2)),
    ],
)
def test_every_way_of_solving_is_stopped_by_its_callback(method, engine):
    seen = []

    def enough(record):
        seen.append(record)
        if len(seen) == 2:
            raise KeyboardInterrupt

    run = chain(loss=gr.LogisticLoss).solve(method, gap=1e-13, callback=enough, engine=engine)
    assert (run.status, len(seen)) == ("interrupted", 2)
    assert run.certificate.valid


def test_the_status_of_a_run_whose_point_is_good_enough_when_its_callback_ends_it():
    """As docs/observing.md has it: certified where it has the gap, and of a baseline whose own problem has it none."""
    assert chain().solve(gr.PrimalDual(), gap=1e6, callback=interrupt).status == "certified"
    assert chain().solve(gr.LocalOnly(), callback=interrupt).status == "no_certificate"


def test_methods_without_rounds_refuse_a_callback_and_auto_may_take_one_that_calls_nothing():
    calls, direct = [], {m.name for m in listed() if "callback" in m.refuses()}
    assert direct == {"Exact", "LinearSystem", "DynamicProgramming", "OneNode"}  # that docs/observing.md names
    found = chain(penalty=gr.SquaredL2()).solve(callback=calls.append)
    assert found.status == "certified"
    assert any(name in found.method for name in direct)
    assert not calls


def test_verbs_that_take_a_callback_say_what_happens_where_it_raises():
    verbs = [each for kind in (gr, gr.Problem, gr.neural) for each in vars(kind).values() if callable(each)]
    verbs = [each for each in verbs if not isinstance(each, type) and "callback" in signature(each).parameters]
    assert {each.__name__ for each in verbs} == {"solve", "train"}
    for each in verbs:
        said = each.__doc__.partition("callback : callable")[2].partition(" : ")[0]
        assert "raises" in said
        assert "passed on" in " ".join(said.split())


def test_an_exception_of_a_callback_is_not_swallowed():
    def broken(record):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        chain().solve(gr.PrimalDual(), callback=broken)


def test_progress_goes_to_stderr(capsys):
    run = chain(n=40, loss=gr.LogisticLoss)
    run.solve(gr.PrimalDual(), gap=0, seconds=1.3, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "PrimalDual" in err
    assert "gap" in err
    run.solve(gr.PrimalDual(), gap=0, rounds=30)
    run.solve(gr.PrimalDual(), gap=0, rounds=30, progress=False)
    assert capsys.readouterr() == ("", "")


# ---- refusals --------------------------------------------------------------------------------------------------------
def test_a_class_is_no_method():
    with pytest.raises(gr.errors.MethodError, match=r"write PrimalDual\(\)"):
        chain().solve(gr.PrimalDual)
    with pytest.raises(gr.errors.MethodError, match="'primal-dual'"):
        chain().solve("primal-dual")


@pytest.mark.parametrize(
    "options",
    [
        *({"relaxation": value} for value in (0.0, 2.0, -1.0, np.nan)),
        *({"balance": value} for value in (0.0, -1.0, np.inf, np.nan)),
    ],
)
def test_wrong_options(options):
    name = next(iter(options))
    with pytest.raises(gr.errors.MethodError, match=name):
        gr.PrimalDual(**options)


@pytest.mark.parametrize(
    "arguments",
    [{"gap": -1.0}, {"gap": np.nan}, {"gap": np.inf}, {"rounds": 0}, {"seconds": 0.0}, {"on_failure": "ignore"}],
)
def test_wrong_arguments(arguments):
    with pytest.raises(gr.errors.ModelError, match=next(iter(arguments))):
        chain().solve(gr.PrimalDual(), **arguments)


def test_a_method_that_does_not_apply_says_what_is_missing():
    class Never(AbstractMethod):
        def missing(self, form):
            return ("a tree", "strong convexity")

        def run(self, task):
            raise NotImplementedError

    with pytest.raises(gr.errors.MethodError, match="Never does not apply: a tree; strong convexity") as caught:
        chain().solve(Never())
    assert caught.value.missing == ("a tree", "strong convexity")
    assert chain().methods().loc["PrimalDual", "applies"]


def test_a_method_runs_itself_and_is_judged_by_its_certificate():
    class AtZero(AbstractMethod):
        """Solves by a guess."""

        def missing(self, form):
            return ()

        def run(self, task):
            certificate = task.certifier.certify(np.zeros(task.form.shape), None, None, task.budget.gap)
            return Outcome(certificate, task.certifier, "limit", note="It was a guess.")

    problem = chain()
    found, rough = (problem.solve(AtZero(), gap=gap) for gap in (1e-9, 1e9))
    assert (found.status, rough.status, found.method) == ("no_certificate", "certified", "AtZero")
    assert found.message.endswith("It was a guess.")
    assert found.certificate.dual <= problem.solve().objective <= found.objective


# ---- determinism -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [162, 171, 355, 156])
def test_the_same_run_twice(seed):
    runs = [random_problem(seed).problem.solve(gr.PrimalDual(), gap=1e-5) for _ in range(2)]
    runs.append(random_problem(seed).problem.solve(gr.PrimalDual(), gap=1e-5, seed=5))
    for run in runs[1:]:
        assert np.array_equal(runs[0].coef, run.coef)
        assert runs[0].certificate.dual == run.certificate.dual
        assert runs[0].rounds == run.rounds
        assert runs[0].ledger == run.ledger
        assert [(r.round, r.relative_gap) for r in runs[0].trace.records] == [
            (r.round, r.relative_gap) for r in run.trace.records
        ]


def test_one_problem_solved_twice():
    problem = chain(loss=gr.LogisticLoss)
    one, two = (problem.solve(gr.PrimalDual(), gap=1e-6) for _ in range(2))
    assert np.array_equal(one.coef, two.coef)
    assert one.certificate.dual == two.certificate.dual
