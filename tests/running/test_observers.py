"""Observers see the iterates of the method, bit for bit, at the rounds that were asked for, and change nothing."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from core_cases import view_of
from factories import chain
from sameness import bits, facts

import graphreg as gr
from graphreg.errors import CheckpointError, MethodError
from graphreg.saving import archive

PLAIN = gr.PrimalDual(balance=1.0, relaxation=1.0)


def seen(run):
    """All that was observed, as bytes."""
    parts = ((name, a if isinstance(a, tuple) else (a,)) for name, a in run.observed.items())
    return bits(run.observed.rounds), {name: [bits(a) for a in each] for name, each in parts}


def solve(what="w", rounds=40, method=PLAIN, problem=None, **options):
    return (problem or chain()).solve(method, rounds=rounds, gap=0, observe=what, **options)


# ---- what is seen ----------------------------------------------------------------------------------------------------
def test_the_iterates_are_those_of_the_method():
    problem = chain(strength=0.5)
    run = solve(gr.Observer(("w", "flows", "state.x.w", "state.x.u"), rounds=1), 12, gr.PrimalDual(2.0), problem)
    view = view_of(problem.form)
    state = gr.PrimalDual(2.0).init(view, None)
    for k in range(13):
        assert bits(run.observed["w"][k]) == bits(state.hat.w)
        assert bits(run.observed["state.x.w"][k]) == bits(state.x.w)
        assert bits(run.observed["flows"][0][k]) == bits(state.hat.u[0])
        assert bits(run.observed["state.x.u"][0][k]) == bits(state.x.u[0])
        state = gr.PrimalDual(2.0).step(state)
    assert run.observed.rounds.tolist() == list(range(13))


def test_flows_are_not_the_repaired_ones():
    problem = chain(strength=0.5)
    run = solve(("w", "flows", "prices"), 30, problem=problem)
    form, (u,), a = problem.form, run.observed["flows"], run.observed["prices"]
    a = a[0] if isinstance(a, tuple) else a
    imbalance = form.edges[0].transposed @ u[10] + form.samples[0].adjoint(a[10], form.shape)
    assert np.abs(imbalance).max() > 1e-3, "after ten rounds no flow of the method is conserved"
    repaired = run.certificate.dual_point
    left = form.edges[0].transposed @ repaired.flows[0] + form.samples[0].adjoint(repaired.prices[0], form.shape)
    assert np.abs(left).max() < 1e-12


def test_parameters_are_the_users_where_the_method_runs_around_a_center():
    frame = pd.DataFrame({"x": np.arange(20.0) % 7, "y": 1e4 + np.arange(20.0) % 3, "node": np.arange(20) % 4})
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=["x"], intercept=True)
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.cycle_graph(4), gr.L2()))
    run = solve("w", 25, gr.PrimalDual(polish=False), problem)
    assert np.abs(run.observed.center).max() > 0.01, "else this tests nothing"
    assert np.allclose(run.observed["w"][-1], run.coef, rtol=1e-14, atol=1e-10)
    assert np.allclose(run.observed["w"][0], run.observed.center)


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (gr.ADMM(), ("flows", "state.x.u", "state.hat.w")),
        (gr.FedADMM(), ("flows", "state.theta", "state.copies.beta")),
        (gr.SubgradientDescent(average="suffix"), ("w", "state.w")),
        (gr.PFedMe(lam=1.0), ("w", "state.theta", "state.model")),
        (gr.InteriorPoint(), ("w", "state.slope")),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_what_else_methods_hold(method, names):
    run = solve(names, 6, method, seed=0)
    assert list(run.observed) == list(names)
    assert run.observed.rounds.tolist() == list(range(7))


def test_what_consensus_methods_hold():
    problem = gr.Problem(gr.SquaredLoss(chain().model.terms[0][1].data) + gr.Consensus(nx.path_graph(8)))
    run = solve("state.theta", 20, gr.LocalSGD(), problem, seed=3)
    spread = np.ptp(run.observed["state.theta"], axis=1).max(axis=1)
    assert spread[0] == 0
    assert spread[-1] > 0, "the nodes' own models differ, whatever the certificate makes of them"
    assert np.ptp(run.coef, axis=0).max() == 0


def test_learning_curves():
    problem = chain()
    best = problem.solve(gap=1e-9)
    at = gr.Observer({"P": lambda at: problem.value(at.w), "distance": lambda at: np.linalg.norm(at.w - best.coef)})
    table = problem.solve(gr.PrimalDual(), gap=1e-9, observe=at).observed.table()
    assert (table["P"] >= best.certificate.dual - 1e-12).all()
    assert table["distance"].iloc[-1] < 1e-3 * table["distance"].iloc[0]
    assert table.columns.tolist() == ["P", "distance"]
    assert table.index.name == "round"


def test_frames_are_in_the_table_number_by_number(tmp_path):
    problem, names = chain(), ["one", "two", "three"]
    look = {
        "largest": lambda at: np.abs(at.w).max(),
        "mean": lambda at: pd.Series(at.coef.mean(axis=0), names),
        "score": lambda at: pd.DataFrame(at.coef[:2], ["a", "b"], names),
    }
    whole = problem.solve(gr.PrimalDual(), rounds=6, gap=0, observe=look, seed=0).observed
    table = whole.table()
    pairs = [f"score[{row}, {name}]" for row in "ab" for name in names]
    assert table.columns.tolist() == ["largest", *(f"mean[{name}]" for name in names), *pairs]
    np.testing.assert_array_equal(table["score[b, two]"], whole["score"][:, 1, 1])
    np.testing.assert_array_equal(table["mean[two]"], whole["mean"][:, 1])
    problem.solve(gr.PrimalDual(), rounds=3, gap=0, observe=look, seed=0, checkpoint=tmp_path / "run.h5")
    again = problem.solve(gr.PrimalDual(), rounds=6, gap=0, observe=look, seed=0, checkpoint=tmp_path / "run.h5")
    pd.testing.assert_frame_equal(again.observed.table(), table)
    with pytest.raises(MethodError, match="other labels, or another order, after round 1 than before"):
        problem.solve(gr.PrimalDual(), rounds=3, gap=0, observe={"k": lambda at: pd.Series([1.0], [at.round])})


# ---- after which rounds ----------------------------------------------------------------------------------------------
def test_the_grid():
    assert solve(rounds=30).observed.rounds.tolist() == [*range(21), 22, 24, 26, 28, 30]
    assert solve(gr.Observer(rounds=7)).observed.rounds.tolist() == [0, 7, 14, 21, 28, 35, 40]
    assert solve(gr.Observer(rounds=[11, 3, 3, 90])).observed.rounds.tolist() == [3, 11]
    assert not len(solve(gr.Observer(rounds=[90])).observed.rounds)


def test_whole_numbers_and_truths_of_the_first_round_cut_nothing_of_later_ones():
    look = {"max": lambda at: 0 if at.round == 0 else 0.25, "nan": lambda at: at.round == 0 or np.nan}
    seen = solve(look, 2).observed
    assert seen["max"].tolist() == [0.0, 0.25, 0.25]
    np.testing.assert_array_equal(seen["nan"], [1.0, np.nan, np.nan])


def test_an_observer_is_told_apart_by_all_its_rounds():
    assert str(gr.Observer(rounds=np.int64(3))) == str(gr.Observer(rounds=3))
    assert str(gr.Observer(rounds=range(200))) != str(gr.Observer(rounds=range(201)))


@pytest.mark.parametrize("most", [20, 19])
@pytest.mark.parametrize("grid", [1, 3, None])
def test_memory_is_bounded(grid, most):
    whole = solve(gr.Observer(rounds=grid), 400).observed
    each = 8 + whole["w"][0].nbytes
    part = solve(gr.Observer(rounds=grid, memory=most * each), 400).observed
    assert most // 2 <= len(part.rounds) - 1 <= most
    assert part.stride > 1
    assert "for want of memory" in repr(part)
    rows = [whole.rounds.tolist().index(k) for k in part.rounds]
    assert bits(whole["w"][rows]) == bits(part["w"])
    assert part.rounds[:-1].tolist() == whole.rounds[:: part.stride][: len(part.rounds) - 1].tolist()


def test_rounds_that_do_not_fit_are_refused():
    with pytest.raises(MethodError, match=r"room for 4 of the 5 that are asked for"):
        solve(gr.Observer(rounds=range(5), memory=900))
    with pytest.raises(MethodError, match="room for 0"):
        solve(gr.Observer(memory=10))


# ---- nothing else changes --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.ADMM(), gr.AsyncL2GD()], ids=lambda m: m.name)
def test_an_observer_changes_nothing(method):
    if isinstance(method, gr.AsyncL2GD):
        data = chain().model.terms[0][1].data
        problem = gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy({k: k // 4 for k in range(8)}, weights=(1.0, 1.0)))
    else:
        problem = chain(loss=gr.LogisticLoss)
    options = {"gap": 1e-9, "seed": 0, "rounds": 60}
    with_one = problem.solve(method, observe=gr.Observer(("w", "prices"), rounds=1), **options)
    without = problem.solve(method, **options)
    assert facts(with_one) == facts(without)
    assert without.observed is None


@pytest.mark.parametrize("where", ["state", "flows", "prices"])
def test_an_observer_cannot_change_the_method(where):
    def meddle(at):
        at.w[:] = 7.0  # a copy
        arrays = at.state["x.u"] if where == "state" else getattr(at, where)
        arrays[0][:] = 7.0

    with pytest.raises(ValueError, match="read-only"):
        solve({"k": meddle}, 5)
    run = solve({"k": lambda at: at.w.fill(7.0) or at.round}, 5)
    assert facts(run) == facts(solve(rounds=5))
    assert run.observed["k"].tolist() == [0, 1, 2, 3, 4, 5]


# ---- runs that are broken off ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("memory", [2**20, 2500])
def test_resume_equals_run(memory, tmp_path):
    observer = gr.Observer(("w", "flows"), rounds=2, memory=memory)
    for k in (7, 30, 31, 60):
        run = solve(observer, k, gr.PrimalDual(), checkpoint=gr.Checkpoint(tmp_path / "run", rounds=5))
    whole = solve(observer, 60, gr.PrimalDual())
    assert seen(run) == seen(whole)
    assert (memory == 2**20) == (whole.observed.stride == 1)


def test_a_run_that_is_observed_late_is_thinned_evenly(tmp_path):
    path, observer = gr.Checkpoint(tmp_path / "run", rounds=1), gr.Observer(rounds=1, memory=1700)
    solve(None, 9, checkpoint=path)
    for k in (40, 41, 90):
        seen = solve(observer, k, checkpoint=path).observed
    assert seen.stride > 2
    assert set(np.diff(seen.rounds[:-1])) == {seen.stride}


@pytest.mark.parametrize("where", ["observer", "check"])
def test_resume_after_an_interruption_within_a_round(where, tmp_path):
    """Before the observer has seen the round, and when it has and the checkpoint has not."""
    left = [23 if where == "observer" else 2]

    def interrupt(_):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return 0.0

    look = {"w": lambda at: at.w + (interrupt(at) if where == "observer" else 0.0)}
    options = {"checkpoint": gr.Checkpoint(tmp_path / "run", rounds=4)}
    callback = interrupt if where == "check" else None
    first = solve(gr.Observer(look, rounds=1), 60, callback=callback, **options)
    assert first.status == "interrupted"
    assert len(first.observed.rounds) > 10
    assert seen(solve(gr.Observer(look, rounds=1), 60, **options)) == seen(solve(gr.Observer(rounds=1), 60))


def test_a_checkpoint_of_other_observations(tmp_path):
    path = tmp_path / "run"
    solve("w", 10, checkpoint=path)
    with pytest.raises(
        CheckpointError, match="holds observations of 'w at the rounds a geometric grid', not 'w, flows"
    ):
        solve(("w", "flows"), 20, checkpoint=path)
    with pytest.raises(CheckpointError, match="holds at most"):
        solve(gr.Observer(memory=2**26), 20, checkpoint=path)
    assert solve(None, 20, checkpoint=path).observed is None
    assert solve("w", 30, checkpoint=path).observed.rounds.tolist() == [22, 24, 26, 28, 30], "from there on"


def test_a_checkpoint_with_senseless_observations(tmp_path):
    path = tmp_path / "run"
    solve("w", 10, checkpoint=path)
    header, arrays = archive.read(path)
    (name,) = (name for name, array in arrays.items() if array.ndim == 3)
    archive.write(path, header, {**arrays, name: arrays[name][:, :2]})
    with pytest.raises(CheckpointError, match="not of this run"):
        solve("w", 20, checkpoint=path)


def test_a_breakdown_keeps_what_was_seen():
    run = chain().solve(gr.SubgradientDescent(step_size=1e100), rounds=50, gap=0, observe="w", on_failure="return")
    assert run.status == "failed"
    assert len(run.observed.rounds) >= 10


def test_only_the_first_run_is_observed_where_the_infimum_lies_at_infinity():
    X = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    apart = gr.NodeData.from_arrays(X, np.array([1, 1, 0, 0]), ["a", "a", "b", "b"])
    rng = np.random.default_rng(0)
    mixed = gr.NodeData.from_arrays(rng.standard_normal((20, 1)), rng.integers(0, 2, 20), ["c"] * 10 + ["d"] * 10)
    edges = gr.TotalVariation(nx.Graph([("a", "b"), ("c", "d")]), gr.L1())
    problem = gr.Problem(gr.LogisticLoss(apart) + gr.LogisticLoss(mixed) + 0.1 * edges)
    rounds = []
    look = {"w": lambda at: rounds.append(at.round) or at.w}
    run = problem.solve(gr.PrimalDual(), gap=1e-9, rounds=5000, observe=look, on_failure="return")
    assert run.status == "unattained"
    assert run.observed["w"].shape[1:] == (4, 1)
    assert run.rounds > rounds[-1]
    assert rounds == sorted(set(rounds)), "no round is seen twice"


# ---- actors ----------------------------------------------------------------------------------------------------------
def test_actors():
    alone, together = solve(("w", "flows"), 12), solve(("w", "flows"), 12, engine=gr.Actors())
    assert alone.observed.rounds.tolist() == together.observed.rounds.tolist()
    assert np.allclose(alone.observed["w"], together.observed["w"], rtol=0, atol=1e-13)
    assert np.allclose(alone.observed["flows"][0], together.observed["flows"][0], rtol=0, atol=1e-13)
    with pytest.raises(MethodError, match="what actors hold beside their points stays with them"):
        solve("state.x.w", 12, engine=gr.Actors())


# ---- refusals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("what", "method", "message"),
    [
        ("w", gr.Exact(), "no rounds that could be observed"),
        ("flows", gr.SubgradientDescent(), "SubgradientDescent holds no flows"),
        ("state.thta", PLAIN, "no numbers 'thta'; it has .*state.x.w"),
        ({"text": lambda at: "much"}, PLAIN, "'text' of the observer must return numbers, got 'much'"),
        ({"rows": lambda at: [[1.0], [1.0, 2.0]]}, PLAIN, "'rows' of the observer must return numbers"),
        ({"pair": lambda at: (at.w, "much")}, PLAIN, "'pair' of the observer must return numbers, got 'much'"),
        ({"grows": lambda at: np.zeros(at.round)}, PLAIN, "'grows' has another shape after round 1"),
        ({"turns": lambda at: 1j if at.round == 3 else 0.0}, PLAIN, "'turns' .* complex there alone"),
    ],
)
def test_what_cannot_be_observed(what, method, message):
    with pytest.raises(MethodError, match=message):
        chain().solve(method, observe=what)


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), np.linalg.LinAlgError("mine"), ValueError("mine")])
def test_what_a_users_function_raises_is_the_users(error):
    def raising(at):
        if at.round == 3:
            raise error

        return at.round

    with pytest.raises(type(error), match="mine"):
        solve({"k": raising})


def test_names_that_were_not_observed():
    with pytest.raises(gr.errors.MissingError, match="did you mean 'flows'"):
        solve(("w", "flows")).observed["flow"]


def test_a_table_of_arrays_alone_says_what_to_observe():
    run = chain().solve(gr.PrimalDual(), rounds=2, gap=0, observe=("w", "flows"))
    with pytest.raises(MethodError, match=r"none of what was observed \(w, flows\) is one number per round"):
        run.observed.table()
