"""Compiled rounds on parts of a graph: one set of bits for any number of parts, and the messages of arrays."""

from __future__ import annotations

import contextlib
import json
import threading

import numpy as np
import pytest
from actor_cases import on_arrays, whole
from factories import thinned
from round_cases import PROBLEMS, RIDGE, WAYS, WITH_NUMBA, compiling, forced_rounds, graph, regression, tied
from test_joint import coef_of, jointly, owners
from test_local_parts import Country, together
from test_parts import by_parts, same

import graphreg as gr
from graphreg import fast as kernels
from graphreg.datasets import random_problem
from graphreg.distributed.parts import part_of
from graphreg.distributed.parts.engine import PartEngine
from graphreg.distributed.parts.wire import BrokenOffError, ThreadWire
from graphreg.fast import Rounds, compiler, nodes, rounds
from graphreg.network import LocalView, arcs_of, fast

ROUNDS = 25
FEW = 12  # beyond the first round in which the balance adapts
COUNTS = (2, 3, 5, 14)  # the last one: every node alone


@pytest.fixture(params=WAYS)
def forced(request, monkeypatch):
    """Rounds of kernels on graphs of any size; compiled, or as they are written."""
    with forced_rounds(monkeypatch, request.param) as way:
        yield way


@pytest.fixture
def taken(monkeypatch):
    """The number of halves of compiled rounds on each part, by the numbers of their nodes."""
    found, nodes = {}, Rounds.nodes

    def noted(self, *args):
        found[self.form.n] = found.get(self.form.n, 0) + 1
        assert self.rest is not None
        return nodes(self, *args)

    monkeypatch.setattr(Rounds, "nodes", noted)
    return found


def features():
    """Edges on some of the coordinates, and others on all."""
    some = 0.2 * gr.TotalVariation(graph(seed=5), gr.L1(), features=["x0", "x2"])
    return gr.Problem(regression(3, 6) + some + 0.1 * gr.TotalVariation(graph(m=15, seed=6), gr.L2()))


def everywhere(kind):
    """Data at all nodes, of which one prox takes all where there is one part alone."""
    rng, node = np.random.default_rng(3), np.repeat(np.arange(14), 6)
    return kind(gr.NodeData.from_arrays(rng.standard_normal((84, 3)), np.sign(rng.standard_normal(84)), node))


CASES = {
    **{name: (make, gr.PrimalDual()) for name, make in PROBLEMS.items()},
    "features": (features, gr.PrimalDual()),
    "hinge": (lambda: gr.Problem(regression(3, 9, gr.HingeLoss) + tied(gr.L2()) + RIDGE), gr.PrimalDual(balance=1.0)),
    "logistic everywhere": (lambda: gr.Problem(everywhere(gr.LogisticLoss) + tied(gr.L2())), gr.PrimalDual()),
    "twenty coordinates": (lambda: gr.Problem(regression(20, 30) + tied(gr.L2(), gr.L1())), gr.PrimalDual()),
    "some nodes nearly singular": (
        lambda: gr.Problem(regression(4, 2) + tied(gr.L2())),
        gr.PrimalDual(balance=2e5, relaxation=1.0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_bits_do_not_depend_on_the_parts(name, forced, taken, monkeypatch, request):
    """On 3 parts, and with every node alone; on 2 and 5 too with ``make test ARGS=--whole``."""
    make, method = CASES[name]
    form = make().form.frozen()
    alone = by_parts(method, form, gr.Parts(1), FEW)
    assert taken == {form.n: FEW}
    for count in COUNTS if request.config.getoption("--whole") else COUNTS[1::2]:
        same(alone, by_parts(method, form, gr.Parts(count), FEW))
    compiling(monkeypatch, False)
    arrays = on_arrays(method, form, FEW)
    assert arrays.ledger == alone.ledger
    digits = 1e-9 if "singular" not in name else 1e-6  # inverses lose those of condition numbers up to `nodes.EVEN`
    size = np.abs(arrays.points[-1][0]).max()
    np.testing.assert_allclose(alone.points[-1][0], arrays.points[-1][0], rtol=0, atol=digits * size)


def test_some_nodes_are_nearly_singular_and_others_are_not(forced):
    """In the problem of that name."""
    form = CASES["some nodes nearly singular"][0]().form.frozen()
    view = whole(form)
    (loss, _) = view.rounds.losses
    assert isinstance(loss, nodes.PackedRound)
    inverse, others = loss._ways(nodes.Standing(view.rounds.stepped, 2e5, None, None))
    assert inverse is not None
    assert 0 < len(others.nodes) < len(loss.nodes)


@pytest.mark.parametrize("name", ["regression, l2", "logistic", "features", "mixed"])
def test_several_rounds_at_once_have_the_bits_of_single_ones(name, forced, taken):
    make, method = CASES[name]
    form = make().form.frozen()
    single = by_parts(method, form, gr.Parts(3), ROUNDS)
    for count in (1, 3):
        view = whole(form)
        with gr.Parts(count).hosting(method, form, view.engine.ledger.arcs, 1) as coordinator:
            state, asked = coordinator.init(view, None), []
            while state.round < ROUNDS:
                state, done = coordinator.steps(state, ROUNDS - state.round)
                asked.append(done)
            point = coordinator.point(state)
        assert asked == [10, 10, 5]  # up to where the balance adapts
        np.testing.assert_array_equal(point[0], single.points[-1][0])
        for mine, theirs in zip(point[1], single.points[-1][1], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert view.engine.ledger == single.ledger


def test_how_many_rounds_go_by_at_once_depends_on_the_whole_graph(forced, monkeypatch):
    form = PROBLEMS["regression, l2"]().form.frozen()
    monkeypatch.setattr(rounds, "AT_ONCE", 7 * form.differences)
    for count in (1, 5):
        view = whole(form)
        with gr.Parts(count).hosting(gr.PrimalDual(), form, view.engine.ledger.arcs, 1) as coordinator:
            assert coordinator.steps(coordinator.init(view, None), 1000)[1] == 7


def test_when_rounds_are_compiled_depends_on_the_whole_graph(forced, taken, monkeypatch):
    form = PROBLEMS["regression, l2"]().form.frozen()
    monkeypatch.setattr(fast, "WORTH", (fast.EXPECTED + 8) * form.differences)
    alone = by_parts(gr.PrimalDual(), form, gr.Parts(1), ROUNDS)
    assert taken.pop(form.n) == ROUNDS - 8
    same(alone, by_parts(gr.PrimalDual(), form, gr.Parts(4), ROUNDS))
    assert sum(taken.values()) == 4 * (ROUNDS - 8)


@pytest.mark.parametrize("name", ["regression, l2", "features"])
def test_what_crosses_is_what_crosses_for_arrays(name, forced, monkeypatch):
    """The same messages, of the same sizes, in the same order."""
    make, method = CASES[name]
    form, swap = make().form.frozen(), ThreadWire.swap

    def crossed():
        sent = {}

        def noted(self, out, into):
            sent.setdefault(self.me, []).append({k: values.size for k, values in out.items()})
            return swap(self, out, into)

        monkeypatch.setattr(ThreadWire, "swap", noted)
        by_parts(method, form, gr.Parts(3), ROUNDS)
        return sent

    fast = crossed()
    compiling(monkeypatch, False)
    assert fast == crossed()


def test_one_part_without_numba_is_enough(forced, taken, monkeypatch):
    """The ends of an edge between two parts must know the same flow."""
    form = PROBLEMS["regression, l2"]().form.frozen()
    compiling(monkeypatch, False)
    arrays = on_arrays(gr.PrimalDual(), form, ROUNDS)
    monkeypatch.setattr(fast, "offered", lambda: None if threading.current_thread().name == "part 1" else kernels)
    same(arrays, by_parts(gr.PrimalDual(), form, gr.Parts(3), ROUNDS))
    assert not taken


@pytest.mark.parametrize(
    ("name", "compiles"),
    thinned(["few samples", "wide", "logistic", "mixed", "twenty coordinates"], [True, False], every=2),
)
def test_sizes_at_which_large_problems_are_done_otherwise(name, compiles, forced, monkeypatch):
    """What decides is the whole's size where bits depend on it."""
    compiling(monkeypatch, compiles)
    for where, value in (("maps.STREAM", 50), ("design.LARGE", 300), ("maps.MANY", 20), ("padding.CELLS", 40)):
        monkeypatch.setattr(f"graphreg.terms.{where}", value)
    monkeypatch.setattr("graphreg.network.engine.CACHED", 8)
    make, method = CASES[name]
    form = make().form.frozen()
    alone = by_parts(method, form, gr.Parts(1), FEW)
    for count in (3, 14):
        same(alone, by_parts(method, form, gr.Parts(count), FEW))


def test_the_curvature_of_a_node_does_not_depend_on_the_others():
    """From which the balance follows."""
    form = CASES["twenty coordinates"][0]().form.frozen()
    for i, curvature in enumerate(whole(form).curvature):
        part = part_of(form, arcs_of(form), np.arange(form.n) == i)
        view = LocalView(part.form, whole(part.form).engine, 0, part.whole)
        assert view.curvature[part.whole.own] == curvature


def test_random_problems(forced, request):
    """Losses and penalties of all kinds; all that apply with ``make test ARGS=--whole``."""
    for seed in range(0, 120, 1 if request.config.getoption("--whole") else 26):
        form = random_problem(seed).problem.form.frozen()
        for method in (gr.PrimalDual(), gr.PrimalDual(balance=1.0)):
            if not method.missing(form):
                same(by_parts(method, form, gr.Parts(1), 15), by_parts(method, form, gr.Parts(3), 15))


def test_numbers_of_neighbours_come_from_them_alone(forced, monkeypatch):
    """Rows of neighbours are overwritten, whatever a part has there."""
    form = PROBLEMS["means, l2, d = 3"]().form.frozen()
    alone, fill = by_parts(gr.PrimalDual(), form, gr.Parts(1), ROUNDS), PartEngine.fill

    def spoilt(self, values):
        values[~self.part.whole.own] = np.nan
        fill(self, values)

    monkeypatch.setattr(PartEngine, "fill", spoilt)
    same(alone, by_parts(gr.PrimalDual(), form, gr.Parts(3), ROUNDS))


# ---- sites that nobody has as a whole --------------------------------------------------------------------------------
def test_sites_have_the_bits_of_one(forced, taken):
    country = Country.random(3)
    alone = jointly(country, owners(1), gr.PrimalDual(), gap=1e-9)
    assert taken == {24: alone[0].rounds}
    assert alone[0].status == "certified"
    for count in (2, 3):
        found = jointly(country, owners(count), gr.PrimalDual(), gap=1e-9)
        np.testing.assert_array_equal(coef_of(country, found), coef_of(country, alone))
        assert found[0].rounds == alone[0].rounds


class KilledError(Exception):
    pass


@pytest.mark.parametrize("count", [1, 3])
def test_a_run_that_was_killed_goes_on_with_the_same_bits(count, forced, tmp_path, monkeypatch):
    country, rng = Country.random(9), np.random.default_rng(count)
    given = {"gap": 1e-9, "checkpoint": gr.Checkpoint(tmp_path / "run", rounds=7, seconds=None)}
    alone = jointly(country, owners(count), gr.PrimalDual(), gap=1e-9)
    half = Rounds.nodes
    for _ in range(4):  # one part dies at a random moment
        left = {"rounds": int(rng.integers(5, 40))}

        def dies(self, *args, left=left):
            left["rounds"] -= self.rest.fill.__self__.wire.me == 0
            if left["rounds"] < 0:
                raise KilledError
            return half(self, *args)

        monkeypatch.setattr(Rounds, "nodes", dies)
        with contextlib.suppress(KilledError, BrokenOffError):
            jointly(country, owners(count), gr.PrimalDual(), **given)
        monkeypatch.setattr(Rounds, "nodes", half)
    halves = []
    monkeypatch.setattr(Rounds, "nodes", lambda self, *args: halves.append(1) or half(self, *args))
    begun = json.loads((tmp_path / "run" / "manifest.json").read_text())["round"]
    found = jointly(country, owners(count), gr.PrimalDual(), **given)
    assert begun >= 7
    assert begun % 7 == 0
    assert len(halves) == count * (found[0].rounds - begun)
    for mine, theirs in zip(found, alone, strict=True):
        np.testing.assert_array_equal(mine.coef, theirs.coef)
        assert (mine.rounds, mine.dual, mine.primal) == (theirs.rounds, theirs.dual, theirs.primal)
        np.testing.assert_array_equal(mine.sent.messages, theirs.sent.messages)


# ---- what strict kernels are -----------------------------------------------------------------------------------------
@WITH_NUMBA
def test_strict_kernels_are_others_than_fast_ones():
    """Also on disk, where numba knows them by their names."""
    loose, strict = (compiler.specialised(nodes.mean_round, 3, 0, strict=each) for each in (False, True))
    assert loose.targetoptions["fastmath"]
    assert "fastmath" not in strict.targetoptions
    assert loose.stats.cache_path is not None
    assert loose._cache._cache_file._index_name != strict._cache._cache_file._index_name


def test_parts_have_strict_kernels(forced):
    form = PROBLEMS["mixed"]().form.frozen()
    part = part_of(form, arcs_of(form), np.arange(form.n) < 5)
    engine = together([0], lambda k, wire: PartEngine(part, 1 - part.whole.own, wire))[0]
    for view, strict in ((LocalView(part.form, engine, 0, part.whole), True), (whole(form), False)):
        kinds = [each for each in (*view.rounds.blocks, *view.rounds.losses) if hasattr(each, "strict")]
        assert len(kinds) >= 4
        assert all(each.strict is strict for each in kinds)
