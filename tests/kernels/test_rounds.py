"""Compiled rounds take the steps that arrays take: with numba, and as the plain Python that is compiled."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from core_cases import view_of
from round_cases import PROBLEMS, WAYS, compiling, forced_rounds, means, regression, tied

import graphreg as gr
from graphreg.base import compiled
from graphreg.distributed import Actors
from graphreg.fast import nodes, order, rounds
from graphreg.methods.splitting import primal_dual
from graphreg.methods.splitting._halpern import Iterate
from graphreg.network import fast
from graphreg.saving.packing import JsonTree

ROUNDS = 30


@pytest.fixture(params=WAYS)
def forced(request, monkeypatch):
    """Rounds of kernels on graphs of any size; compiled, or as they are written."""
    with forced_rounds(monkeypatch, request.param) as way:
        yield way


def walk(problem, method, compiles, start=None, count=ROUNDS):
    """The states of some rounds."""
    view = view_of(problem.form)
    if not compiles:
        vars(view)["rounds"] = None  # as where numba is not there
    states = [method.init(view, start)]
    for _ in range(count):
        states.append(method.step(states[-1]))
    assert compiles == (states[-1].x.known is not None)
    return states


def numbers(state):
    return [state.x.w, *state.x.u, state.hat.w, *state.hat.u]


def close(one, two, digits=1e-12):
    """To so many digits of the largest of the numbers, which are added up."""
    largest = max(np.abs(each).max(initial=0.0) for each in numbers(two))
    for a, b in zip(numbers(one), numbers(two), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=digits * largest)


# ---- the same iterates -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", PROBLEMS)
def test_iterates_are_those_of_arrays(name, forced):
    method = gr.PrimalDual()
    pairs = zip(*(walk(PROBLEMS[name](), method, compiles) for compiles in (True, False)), strict=True)
    for one, two in list(pairs)[1:]:
        assert one.s == pytest.approx(two.s, rel=1e-10)
        close(one, two)
    assert one.view.engine.ledger == two.view.engine.ledger


@pytest.mark.parametrize("method", [gr.PrimalDual(balance=1.0, relaxation=1.0), gr.PrimalDual(relaxation=0.7)])
def test_iterates_with_other_options(method, forced):
    for name in ("mixed", "a grid"):
        close(*(walk(PROBLEMS[name](), method, compiles)[-1] for compiles in (True, False)))


def test_nearly_singular_nodes_keep_their_digits(forced, monkeypatch):
    """Steps so long that the inverses of H + I/tau would lose them; without the other way they do."""
    problem, method = gr.Problem(regression(4, 2) + tied(gr.L2())), gr.PrimalDual(balance=1e8, relaxation=1.0)
    arrays = walk(problem, method, False, count=5)[-1]
    close(walk(problem, method, True, count=5)[-1], arrays)
    monkeypatch.setattr(nodes, "EVEN", np.inf)
    with pytest.raises(AssertionError):
        close(walk(problem, method, True, count=5)[-1], arrays)


def test_the_image_is_not_relaxed(forced):
    """Its flows are inside their capacities to the last bit, where over-relaxed ones are not."""
    for name in ("a grid", "regression, l1"):
        state = walk(PROBLEMS[name](), gr.PrimalDual(), True, count=20)[-1]
        (edge,), (u,), (relaxed,) = state.view.form.edges, state.hat.u, state.x.u
        assert (np.abs(u) <= edge.weight[:, None]).all()
        assert (np.abs(u) == edge.weight[:, None]).any()
        assert (np.abs(relaxed) > edge.weight[:, None]).any()


def test_a_start_with_flows(forced):
    problem = PROBLEMS["a grid in disorder"]()
    rng = np.random.default_rng(0)
    start = rng.standard_normal(problem.form.shape), tuple(rng.standard_normal(u.shape) for u in nothing(problem))
    close(*(walk(problem, gr.PrimalDual(), compiles, start, 5)[-1] for compiles in (True, False)))


def nothing(problem):
    return problem.form.nothing().flows


def test_flows_of_another_shape_are_refused(forced):
    problem = PROBLEMS["a grid"]()
    view = view_of(problem.form)
    with pytest.raises(ValueError, match="must have the shapes"):
        view.rounds.iterate_of(np.zeros(problem.form.shape), (nothing(problem)[0][1:],))


@pytest.mark.parametrize("name", PROBLEMS)
def test_several_rounds_at_once_are_single_ones(name, forced):
    method = gr.PrimalDual()
    states = walk(PROBLEMS[name](), method, True, count=ROUNDS)
    for begin in (0, 21):
        kept = [each.copy() for each in numbers(states[begin])]
        state, k = states[begin], begin
        while k < ROUNDS:
            state, done = method.steps(state, ROUNDS - k)
            k += done
            assert state.round == k
            assert state.s == pytest.approx(states[k].s, rel=1e-10)
            close(state, states[k])
        assert state.view.engine.ledger.messages["method"] > 0
        for a, b in zip(numbers(states[begin]), kept, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_balance_adapts_when_it_would(forced):
    """So that no step spans its rounds, and a look at the clock comes soon enough."""
    method = gr.PrimalDual()
    state = method.init(view_of(PROBLEMS["a grid"]().form), None)
    seen = []
    while state.round < 100:
        state, _ = method.steps(state, 1000)
        seen.append(state.round)
    assert seen == [10, 20, 30, 45, 67, 100]
    state = replace(state, view=view_of(PROBLEMS["a grid"]().form))
    with mock.patch.object(rounds, "AT_ONCE", 7 * state.x.known.flat_u[0].size):
        assert method.steps(state, 1000)[1] == 7


class Counted(gr.PrimalDual):
    """A method of the user's that has its own step."""

    def step(self, state):
        return replace(super().step(state), s=1.0)


def test_a_step_of_ones_own_is_taken(forced):
    method = Counted()
    state, done = method.steps(method.init(view_of(PROBLEMS["a grid"]().form), None), 1000)
    assert (done, state.s) == (1, 1.0)


@pytest.mark.parametrize("samples", [None, 3])
def test_iterates_where_neighbours_are_near(samples, forced, monkeypatch):
    """From some round on nodes stand in another order, of which nobody sees anything."""
    monkeypatch.setattr(order, "FAR", 20)
    monkeypatch.setattr("graphreg.methods.splitting.primal_dual.SOME", 15)
    number = np.random.default_rng(3).permutation(600)
    whole = gr.Graph.grid(20, 30)
    mixed = gr.Graph(tuple(range(600)), number[whole.tail], number[whole.head], 0.5 + np.arange(whole.n_edges) % 3)
    loss = means(1, 600) if samples is None else regression(1, samples, n=600)
    problem = gr.Problem(loss + 0.3 * gr.TotalVariation(mixed, gr.L1()))
    pairs = zip(*(walk(problem, gr.PrimalDual(), compiles) for compiles in (True, False)), strict=True)
    for one, two in list(pairs)[1:]:
        assert one.s == pytest.approx(two.s, rel=1e-10)
        close(one, two)
    assert one.x.known.rounds.place is not None
    state, _ = gr.PrimalDual().steps(one, 5)
    for _ in range(state.round - one.round):
        two = gr.PrimalDual().step(two)
    close(state, two)


# ---- states ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["regression, l2", "mixed", "a grid", "logistic"])
def test_states_stay_what_they_are(name, forced):
    """Arrays are used again only when nobody holds them."""
    method = gr.PrimalDual()
    states = walk(PROBLEMS[name](), method, True, count=8)
    kept = [[each.copy() for each in numbers(state)] for state in states]
    state = states[-1]
    for _ in range(8):
        state = method.step(state)
    again = method.step(states[4])
    for state, before in zip([*states, again], [*kept, kept[5]], strict=True):
        for a, b in zip(numbers(state), before, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["regression, l2", "mixed", "a grid in disorder", "logistic"])
def test_what_was_kept_goes_on_bit_for_bit(name, forced):
    method, problem = gr.PrimalDual(), PROBLEMS[name]()
    states = walk(problem, method, True, count=30)
    view = view_of(problem.form)
    state = JsonTree.of(states[13], "state").value(view)
    assert state.x.known is None
    for _ in range(17):
        state = method.step(state)
    for a, b in zip(numbers(state), numbers(states[-1]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_seen_late_is_seen_once(forced):
    state = walk(PROBLEMS["a grid"](), gr.PrimalDual(), True, count=3)[-1]
    assert state.hat.u is state.hat.u
    moved = replace(state.x, w=state.x.w + 1.0)
    assert moved.known is None
    np.testing.assert_array_equal(moved.w, state.x.w + 1.0)
    with pytest.raises(AttributeError, match="no attribute 'v'"):
        _ = state.x.v
    with pytest.raises(AttributeError):
        _ = object.__new__(Iterate).w


# ---- where they are used ---------------------------------------------------------------------------------------------
def test_they_begin_when_it_pays(forced, monkeypatch):
    """Later on smaller graphs, by the number of the round: a run that is gone on with changes over where it would."""
    problem = PROBLEMS["regression, l2"]()
    entries = nothing(problem)[0].size
    monkeypatch.setattr(fast, "WORTH", (fast.EXPECTED + 20) * entries)
    late = walk(problem, gr.PrimalDual(), True, count=40)
    assert [state.x.known is not None for state in late] == [False] * 21 + [True] * 20
    close(late[-1], walk(problem, gr.PrimalDual(), False, count=40)[-1])
    compiling(monkeypatch, False)
    assert walk(problem, gr.PrimalDual(), False, count=3)[-1].x.known is None


@pytest.fixture
def bought_anew():
    """Forgets what was bought, now and in the end."""

    def forget():
        fast._code.cache_clear()
        compiled._folder.cache_clear()

    yield forget
    forget()


def test_they_begin_when_doing_without_has_cost_as_much(forced, monkeypatch, bought_anew, tmp_path):
    """Of one run that is gone on with where its code is at hand, in the same round."""
    problem, method = PROBLEMS["regression, l2"](), gr.PrimalDual()
    form = problem.form
    monkeypatch.setattr(compiled, "EARLY", False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled.Code, "loaded", False)
    monkeypatch.setattr(fast, "SPEED", form.differences)  # a second each round
    monkeypatch.setattr(fast, "COMPILING", fast.FEW + 20.0)
    monkeypatch.setattr(primal_dual, "SPEED", form.differences)
    monkeypatch.setattr(compiled, "compiles", lambda: True)
    bought_anew()
    assert not fast.pays(form, 1000)
    assert fast.kernels() is None
    late = walk(problem, method, True, count=40)
    assert [state.x.known is not None for state in late] == [False] * 21 + [True] * 20
    assert fast.pays(form, 0)
    assert fast.kernels() is not None
    assert walk(problem, method, True, count=1)
    state = JsonTree.of(late[13], "state").value(view_of(form))
    for _ in range(27):
        state = method.step(state)
    for a, b in zip(numbers(state), numbers(late[-1]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_was_done_without_them_counts(monkeypatch, bought_anew, tmp_path):
    problem = PROBLEMS["regression, l2"]()
    monkeypatch.setattr(compiled, "EARLY", False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(fast, "WORTH", 0)
    bought_anew()
    code, rounds = fast.code_of(problem.form), 100
    problem.solve(gr.PrimalDual(), gap=0, rounds=rounds)
    assert code.price == pytest.approx(fast.COMPILING - rounds * problem.form.differences / fast.SPEED)
    assert fast.code_of(PROBLEMS["regression, l1"]().form).price == fast.COMPILING  # of others not


def test_small_runs_do_not_load_numba(monkeypatch):
    asked = []
    for name in ("compiles", "offered"):
        monkeypatch.setattr(fast, name, lambda: asked.append(True))
    PROBLEMS["regression, l2"]().solve(gr.PrimalDual(), gap=0, rounds=200)
    assert not asked


def test_answers_agree(forced, monkeypatch):
    for name in ("regression, l2", "a grid", "mixed"):
        fast = PROBLEMS[name]().solve(gr.PrimalDual(), gap=1e-9)
        with monkeypatch.context() as patch:
            compiling(patch, False)
            plain = PROBLEMS[name]().solve(gr.PrimalDual(), gap=1e-9)
        assert fast.status == plain.status == "certified"
        assert fast.rounds == plain.rounds
        np.testing.assert_allclose(fast.coef, plain.coef, atol=1e-6)


def test_actors_never_see_them(forced):
    problem = gr.Problem(means(2, 6) + 0.3 * gr.TotalVariation(nx.path_graph(6), gr.L2()))
    one, two = (problem.solve(gr.PrimalDual(), gap=0, rounds=20, engine=engine) for engine in (None, Actors()))
    np.testing.assert_allclose(one.coef, two.coef, atol=1e-12)
    assert one.ledger == two.ledger


def test_flows_that_were_looked_at_make_room_for_the_next(forced):
    state = walk(PROBLEMS["regression, l1"](), gr.PrimalDual(), True, count=5)[-1]
    seen = [u.copy() for u in state.hat.u]
    image = state.hat.known
    gr.PrimalDual().step(state)
    assert "u" not in vars(image)
    assert "u" not in vars(state.hat)
    np.testing.assert_array_equal(state.hat.u[0], seen[0])


def test_buffers_give_back_what_nobody_holds():
    known = rounds.Buffers()
    held, numbers = known.take(5), known.take(7)
    numbers[:] = 1.0
    del numbers
    known.trim()
    assert known.take(5) is not held
    assert {size: len(each) for size, each in known._known.items()} == {5: 2, 7: 0}
