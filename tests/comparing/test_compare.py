"""Comparisons: every method measured by one bound, and nothing that one of them does ends the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from factories import chain

import graphreg as gr
from graphreg.comparing import comparison as room
from graphreg.compiling import conic, solvers
from graphreg.errors import DataError, MethodError, ModelError
from graphreg.plots import comparison_figure, plot_comparison

COLUMNS = [
    *("status", "objective", "above", "relative_gap", "rounds"),
    *("messages", "bytes", "solving_messages", "solving_bytes", "seconds"),
]


@pytest.fixture(scope="module")
def problem():
    return chain(loss=gr.LogisticLoss)


@dataclass(frozen=True)
class Breaks(gr.PrimalDual):
    """At round ``at`` with ``error``."""

    at: int = 5
    error: object = None

    def step(self, state):
        if state.round == self.at:
            raise self.error
        return super().step(state)


@dataclass(frozen=True)
class Diverges(gr.PrimalDual):
    def point(self, state):
        w, flows, prices = super().point(state)
        return w * np.nan, flows, prices


@dataclass(frozen=True)
class Wanders(gr.PrimalDual):
    """Random, and far from any optimum."""

    def point(self, state):
        return state.view.streams("start").uniform(state.round, state.view.form.d), None, None


@dataclass(frozen=True)
class NeedsMore(gr.PrimalDual):
    def missing(self, form):
        return ("it needs a tree", "it needs a consensus")


@pytest.fixture
def stopped(monkeypatch):
    """A conic solver that has no time."""
    true = conic.ConicProblem.solve

    def solve(self, solver, options, apart):
        return true(self, solver, {**options, "max_iter": 2}, apart)

    monkeypatch.setattr(conic.ConicProblem, "solve", solve)
    monkeypatch.setattr(solvers, "ATTEMPTS", {"CLARABEL": ((True, {}),)})
    monkeypatch.setattr("graphreg.methods.exact.REFINEMENT", 1)


# ---- the table -------------------------------------------------------------------------------------------------------
def test_every_method_that_applies_is_compared(problem):
    comparison = gr.compare(problem, rounds=3000)
    table = comparison.table()
    assert table.columns.drop("own_gap").tolist() == COLUMNS
    assert (table["own_gap"].dropna() <= 1e-6).all()  # of baselines: of what they minimise
    assert table["own_gap"].dropna().index.tolist() == ["FedAvg", "LocalOnly", "Pooled", "SCAFFOLD"]
    applying = problem.methods().query("applies").index
    assert "SubgradientDescent" in applying  # which would use up its second, and is run where it is named
    assert [name.partition("(")[0] for name in table.index] == list(applying.drop(["Auto", "SubgradientDescent"]))
    assert "seldom certified and uses up its seconds: SubgradientDescent" in str(comparison)
    assert "SubgradientDescent" not in str(gr.compare(problem, [gr.ADMM()]))
    own = ["Exact(clarabel)", "PrimalDual", "ADMM"]
    assert table.loc[own, "status"].tolist() == ["certified"] * 3
    assert (table.loc[own, "relative_gap"] <= 1e-6).all()
    assert (table["above"] >= 0).all()
    assert (table.loc[own, "above"] <= 1e-6 * table.loc[own, "objective"]).all()
    assert table.loc["Exact(clarabel)", ["rounds", "messages", "bytes", "solving_bytes"]].tolist() == [0, 0, 0, 0]
    for name in own[1:]:
        run = comparison.solutions[name]
        ledger, row = run.ledger, table.loc[name]
        assert row["rounds"] == run.rounds > 0
        assert row["messages"] == sum(ledger.messages.values()) > row["solving_messages"]
        assert row["bytes"] == sum(ledger.bytes.values())
        assert row["solving_messages"] == ledger.messages["method"] + ledger.messages["adaptation"]
        assert row["solving_bytes"] == ledger.bytes["method"] + ledger.bytes["adaptation"]


def test_all_are_measured_by_the_exact_optimum(problem):
    comparison = gr.compare(problem, [gr.PrimalDual()], gap=1e-2)
    exact = problem.solve(gap=1e-9)
    assert list(comparison.entries) == ["PrimalDual"]  # what they are measured by is no row of its own
    assert comparison.reference.startswith("the exact optimum, by Exact(clarabel) (certified to lie between ")
    assert exact.certificate.dual - 1e-6 <= comparison.dual <= exact.objective
    run, row = comparison.solutions["PrimalDual"], comparison.table().loc["PrimalDual"]
    assert row["above"] == run.objective - comparison.dual
    assert row["above"] < run.certificate.gap  # its own certificate knows less
    assert str(comparison).splitlines()[-1] == f"reference: {comparison.reference}"


def test_else_by_the_best_bound(problem, stopped):
    comparison = gr.compare(problem, [gr.ADMM(), gr.Exact(), gr.PrimalDual()], gap=1e-7)
    best = max(s.certificate.dual for s in comparison.solutions.values() if s.certificate.valid)
    assert comparison.dual == best
    assert comparison.reference.startswith(f"the best certified lower bound {best:.10g}, ")
    assert "(Exact(clarabel) did not get to the optimum: no_certificate)" in comparison.reference
    assert list(comparison.entries) == ["ADMM", "Exact(clarabel)", "PrimalDual"]  # in the order asked for
    assert "Exact(clarabel): no_certificate. " in str(comparison)


def test_a_conic_solver_is_told_the_time(monkeypatch):
    problem, asked = chain(), []

    def solve(self, solver, options, apart):
        asked.append((solver, options))
        return solvers.SolverOutcome("user_limit")

    monkeypatch.setattr(conic.ConicProblem, "solve", solve)
    run = problem.solve(gr.Exact(), seconds=30.0, on_failure="return")
    assert [solver for solver, _ in asked] == ["clarabel"] * len(asked)
    limits = [options["time_limit"] for _, options in asked]
    assert limits == sorted(limits, reverse=True)
    assert 0 < limits[-1] <= limits[0] <= 30.0
    assert not run.certificate.holds(1e-6)
    assert solvers.time_limit("scs", 3.0) == {"time_limit_secs": 3.0}
    assert solvers.time_limit("clarabel", None) == {}


def test_a_conic_solver_without_time_ends_with_the_budget(problem):
    run = problem.solve(gr.Exact(), seconds=1e-6)
    assert run.status == "budget"
    assert run.message.startswith("The budget was used up at a ")
    assert run.certificate.primal >= problem.solve().certificate.dual


def test_the_solvers_know_their_limits():
    """An option of that name ends them: with hardly any time Clarabel and SCS do not get there."""
    rng = np.random.default_rng(0)
    n = 60
    X, y = rng.standard_normal((6 * n, 6)), rng.integers(0, 2, 6 * n)
    data = gr.NodeData.from_arrays(X, y, np.repeat(range(n), 6))
    large = gr.Problem(gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(nx.random_regular_graph(4, n, seed=0), gr.L2()))
    for solver in ("clarabel", "scs"):
        said = conic.primal(large.form).solve(solver, solvers.time_limit(solver, 1e-4))
        assert said != "optimal"


# ---- names and bad input ---------------------------------------------------------------------------------------------
def test_configurations_of_one_method_are_named_by_their_options(problem):
    methods = [gr.PrimalDual(), gr.PrimalDual(balance=1.0, relaxation=1.0), gr.PrimalDual(), gr.Exact(form="dual")]
    found = gr.compare(problem, [*methods, gr.PrimalDual(inexact=abs)], gap=1e-1, seconds=1)
    assert list(found.entries) == [
        *("PrimalDual", "PrimalDual(balance=1.0, relaxation=1.0)", "PrimalDual (2)"),
        *("Exact(clarabel, dual)", "PrimalDual(inexact=abs)"),
    ]


def test_names_can_be_given(problem):
    found = gr.compare(problem, {"mine": gr.ADMM(), "conic": gr.Exact()}, gap=1e-3)
    assert found.table().index.tolist() == ["mine", "conic"]
    assert "by conic" in found.reference


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ([], "at least one"),
        ({}, "at least one"),
        (gr.PrimalDual(), "must be a list"),
        ("PrimalDual", "must be a list"),
        ([gr.PrimalDual], "write PrimalDual()"),
        (["PrimalDual"], "such as gr.PrimalDual"),
        ({"a": 3}, "such as gr.PrimalDual"),
        ({3: gr.PrimalDual()}, "names of methods are text, got 3"),
        ([NeedsMore()], "none of the methods applies to the problem: NeedsMore: it needs a tree, it needs a consensus"),
    ],
)
def test_wrong_methods_are_refused(problem, methods, said):
    with pytest.raises(MethodError, match=said):
        gr.compare(problem, methods)


@pytest.mark.parametrize(
    ("budget", "said"), [({"gap": -1}, "gap"), ({"seconds": 0}, "seconds"), ({"seed": -1}, "seed")]
)
def test_wrong_budgets_are_refused(problem, budget, said):
    with pytest.raises(ModelError, match=said):
        gr.compare(problem, [gr.PrimalDual()], **budget)


def test_what_is_no_problem_is_refused(problem):
    with pytest.raises(ModelError, match=r"write gr.Problem"):
        gr.compare(problem.model)


# ---- methods that give nothing ---------------------------------------------------------------------------------------
def test_a_method_that_breaks_down_has_a_row(problem):
    methods = {"bad": Breaks(error=ZeroDivisionError("by zero")), "nan": Diverges(), "good": gr.PrimalDual()}
    found = gr.compare(problem, {**methods, "picky": NeedsMore(), "unknown": gr.Exact("nosolver")}, gap=1e-5)
    table = found.table()
    assert table["status"].to_dict() == {
        "bad": "failed",
        "nan": "failed",
        "good": "certified",
        "picky": "refused",
        "unknown": "refused",
    }
    assert table.loc["bad", ["objective", "above", "relative_gap"]].isna().all()
    assert table.loc["bad", "rounds"] == Breaks.at  # and what was sent until then is counted
    text = str(found)
    assert "bad: failed. No finite answer was found (ZeroDivisionError: by zero)" in text
    assert "picky: refused. it needs a tree; it needs a consensus" in text
    assert "unknown: refused. the solver 'nosolver' is not installed" in text
    assert list(found.solutions) == ["bad", "nan", "good"]
    assert np.isfinite(found.dual)


def test_one_that_certifies_nothing_is_measured_all_the_same(problem):
    found = gr.compare(problem, [Wanders()], gap=1e-3, seconds=0.3)
    row = found.table().loc["Wanders"]
    assert row["status"] == "budget"
    assert row["above"] == found.solutions["Wanders"].objective - found.dual > 0


@pytest.mark.parametrize("where", ["a round", "elsewhere"])
def test_ctrl_c_ends_all(problem, monkeypatch, where):
    """A method ends with what it has, before its first round with a point of which nothing is known."""
    if where == "elsewhere":

        def interrupt(self, view, start):
            raise KeyboardInterrupt

        monkeypatch.setattr(Breaks, "init", interrupt)
    methods = {"first": gr.PrimalDual(), "second": Breaks(error=KeyboardInterrupt()), "third": gr.ADMM()}
    found = gr.compare(problem, methods, gap=1e-4)
    assert [each.status for each in found.entries.values()] == ["certified", "interrupted"]
    assert found.not_run == ("third",)
    assert "interrupted before these began: third" in str(found)
    assert found.solutions["second"].rounds == 0 or where == "a round"
    assert np.isfinite(found.dual)


def test_ctrl_c_before_any_method_leaves_a_comparison_that_can_be_read(problem, monkeypatch):
    monkeypatch.setattr(room, "of_method", lambda *given: room.NoRun("interrupted", "Ctrl-C"))
    found = gr.compare(problem, {"first": gr.PrimalDual(), "second": gr.ADMM()}, rounds=3)
    assert found.table().shape == (0, len(room.COLUMNS))
    assert "interrupted before these began: first, second" in str(found)
    assert found._repr_html_()


def test_one_seed_for_all(problem):
    one, two = (gr.compare(problem, [Wanders()], gap=1e-9, seconds=0.1, seed=7) for _ in range(2))
    assert one.seed == two.seed == 7
    assert one.solutions["Wanders"].seed == 7
    drawn = gr.compare(problem, [gr.PrimalDual(), gr.ADMM()], gap=1e-2)
    assert {solution.seed for solution in drawn.solutions.values()} == {drawn.seed}


def test_progress_names_the_methods(problem, capsys):
    gr.compare(problem, [gr.PrimalDual(), gr.ADMM()], gap=1e-2, progress=True)
    said = capsys.readouterr().err
    assert all(name in said for name in ("reference", "PrimalDual", "ADMM", "/3"))
    gr.compare(problem, [gr.PrimalDual()], gap=1e-2)
    assert not capsys.readouterr().err


# ---- figures ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def comparison(problem):
    slow = gr.PrimalDual(balance=1.0, relaxation=1.0)
    return gr.compare(problem, {"exact": gr.Exact(), "slow": slow, "fast": gr.ADMM(), "bad": NeedsMore()})


@pytest.mark.parametrize("x", ["rounds", "messages", "bytes", "seconds"])
def test_the_gap_is_drawn_against_its_cost(pyplot, comparison, x):
    axes = comparison.plot(x)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["exact (certified)", "slow (certified)", "fast (certified)"]
    run = comparison.solutions["slow"]
    line = next(line for line in axes.lines if len(line.get_xdata()) == len(run.trace))
    cost, gap = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    expected = {"rounds": "round"}.get(x, x)
    assert cost.tolist() == [getattr(record, expected) for record in run.trace.records]
    primal = np.minimum.accumulate([record.primal for record in run.trace.records])
    np.testing.assert_allclose(gap, (primal - comparison.dual) / primal, rtol=1e-9)
    assert (np.diff(gap) <= 0).all()
    own = run.certificate.relative_gap
    assert any(
        line.get_ydata()[0] == own and line.get_xdata()[0] == cost[-1]
        for line in axes.lines
        if len(line.get_xdata()) == 1
    )
    if x == "bytes":
        assert cost[-1] == run.ledger.bytes["method"] + run.ledger.bytes["adaptation"]


def test_four_panels_in_one_figure(pyplot, comparison):
    figure = comparison.figure()
    said = ["communication rounds", "messages, without certificates", "bytes sent, without certificates", "seconds"]
    assert [axes.get_xlabel() for axes in figure.axes] == said
    assert comparison.reference.split("(")[0].strip() in " ".join(figure.get_suptitle().split())
    assert len(figure.legends) == 1
    assert comparison_figure(comparison, pyplot.figure()).axes


def test_a_baseline_is_judged_in_both_problems(pyplot, comparison):
    """Its trace is of its own problem, and is not drawn against the bound of this one."""
    fast = comparison.solutions["fast"]
    own = replace(fast.certificate, primal=fast.certificate.dual * 0.5, dual=fast.certificate.dual * 0.4)
    baseline = replace(fast, own=own, status="no_certificate")
    assert "own_gap" not in comparison.table()
    both = replace(comparison, entries={**comparison.entries, "baseline": baseline})
    table = both.table()
    assert table.loc["baseline", "own_gap"] == own.relative_gap
    assert table["own_gap"].notna().sum() == 1
    axes = both.plot("rounds")
    assert "Hollow" in " ".join(axes.get_title().split())
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    assert [line.get_xdata().tolist() for line in hollow] == [[fast.rounds]]
    assert hollow[0].get_ydata()[0] == (fast.objective - both.dual) / fast.objective
    drawn = [len(line.get_xdata()) for line in axes.lines]
    assert drawn.count(len(fast.trace)) == [len(line.get_xdata()) for line in comparison.plot().lines].count(
        len(fast.trace)
    )


def test_what_cannot_be_drawn_is_refused(pyplot, comparison):
    with pytest.raises(ModelError, match="x must be one of 'rounds', 'messages', 'bytes', 'seconds', got 'time'"):
        comparison.plot("time")
    with pytest.raises(ModelError, match="nothing to draw"):
        plot_comparison(gr.Comparison({}, "none", float("nan")))


def test_labels_of_long_options_are_short():
    """Arrays among the options have no truth value, and would fill a table."""
    for method, label in (
        (gr.IFCA(k=3, start=np.ones((3, 4))), "IFCA(k=3, start=<ndarray>)"),
        (gr.ExactDiffusion(mixing=np.eye(9)), "ExactDiffusion(mixing=<MixingMatrix>)"),
        (gr.FedADMM(step_size=dict.fromkeys(range(40), 0.1)), "FedADMM(step_size=<dict>)"),
        (gr.PrimalDual(balance=1.0), "PrimalDual(balance=1.0)"),
    ):
        assert method.label == label


# ---- on an engine ----------------------------------------------------------------------------------------------------
def test_an_engine_carries_out_each_method_that_it_can(problem):
    """With the messages that it really sends: lost ones are sent again. The others are named, and run as ever."""
    engine = gr.Actors(faults=gr.Faults(drop=0.2, resend=True))
    kept = {"seed": 2, "rounds": 10, "gap": 0.0}
    found = gr.compare(problem, [gr.Exact(), gr.PrimalDual(), gr.ADMM()], engine=engine, **kept)
    table, plain = found.table(), gr.compare(problem, [gr.PrimalDual(), gr.ADMM()], **kept)
    for method in (gr.PrimalDual(), gr.ADMM()):
        alone = problem.solve(method, engine=engine, on_failure="return", **kept)
        assert table.loc[method.label, "messages"] == alone.ledger.total_messages
        assert table.loc[method.label, "solving_messages"] > plain.table().loc[method.label, "solving_messages"]
    assert found.in_one_place == ("Exact(clarabel)",)
    assert "not carried out by the engine, and ran in one place: Exact(clarabel)" in str(found)
    assert plain.in_one_place == ()


@pytest.mark.parametrize("kind", ["pandas", "polars", "data"])
def test_rows_of_nodes_that_lie_are_not_scored(kind):
    """What a liar ends with means nothing; nor does the number of its rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"node": np.repeat(list("abcdef"), 8), "x": rng.standard_normal(48)})
    frame["y"] = frame["x"] + 0.1 * rng.standard_normal(48)
    read = partial(gr.NodeData.from_frame, node="node", target="y", features=["x"])
    data = read(frame[::2])
    problem = gr.Problem(gr.SquaredLoss(data) + 0.05 * gr.TotalVariation(nx.cycle_graph(list("abcdef")), gr.L2()))
    rows, asked = frame[1::2], {"rounds": 20, "gap": 0.0, "seed": 0}
    lying = gr.Malicious(["b", "e"], "constant", size=50.0)
    given = read(rows) if kind == "data" else rows
    given = pytest.importorskip("polars").DataFrame(rows.to_dict("list")) if kind == "polars" else given
    found = gr.compare(problem, [gr.ADMM()], score=given, engine=lying, **asked)

    def by_hand(at):
        honest = rows[~rows["node"].isin(["b", "e"])]
        return float(((at.predict(honest) - honest["y"]) ** 2).mean())

    hand = gr.compare(problem, [gr.ADMM()], score=by_hand, engine=lying, **asked)
    assert found.scores()["mse"].tolist() == pytest.approx(hand.scores()["by_hand"].tolist(), rel=1e-9)
    assert found.liars == ("b", "e")
    assert "scored without the rows at nodes that lie: b, e" in str(found)
    assert hand.liars == ()
    with pytest.raises(DataError):
        gr.compare(problem, [gr.ADMM()], score=rows[rows["node"] == "b"], engine=lying, **asked)


def test_a_score_of_two_losses_says_what_to_take(problem):
    data = gr.NodeData.from_arrays(np.ones((6, 1)), np.arange(6.0), list("abcdef"))
    two = gr.Problem(gr.SquaredLoss(data) + gr.HuberLoss(data) + 0.1 * gr.NodePenalty(gr.SquaredL2()))
    with pytest.raises(DataError, match="a problem with one loss that has features"):
        gr.compare(two, [gr.ADMM()], score=pd.DataFrame({"x0": [1.0]}))


def test_what_is_no_engine_is_refused(problem):
    with pytest.raises(ModelError, match=r"engine must be gr\.Actors"):
        gr.compare(problem, engine="actors")
