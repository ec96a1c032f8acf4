"""Isolated actors: the same iterates and messages as on whole arrays, from what neighbours sent and nothing else."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import types
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
import pytest
from actor_cases import (
    FIXED,
    ITERATIONS,
    KINDS,
    Breaking,
    by_actors,
    deviation,
    nothing_is_left,
    on_arrays,
    problem,
    row,
    watch,
    whole,
)
from factories import named, thinned

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.distributed.actors.actor import split
from graphreg.errors import ActorError, ArgumentError, CheckpointError, FailedError, MethodError, ModelError
from graphreg.network.arcs import arcs_of

SEEDS = (  # small problems: every loss, every penalty, every structure
    *(540, 431, 162, 355, 476, 97, 250, 171, 233, 364, 427, 299, 7, 18),
    *(21, 35, 49, 63, 105, 119, 147, 161, 196, 210, 231, 252, 280, 308),
)
BASELINES = (
    *(
        gr.FedAvg(),
        gr.FedAvg(local_steps=3, availability=0.6),
        gr.LocalOnly(),
        gr.Pooled(),
        gr.PFedMe(),
        gr.PFedMe(1.0, availability=0.6),
    ),
    *(gr.FedProx(1.0, availability=0.6), gr.SCAFFOLD(availability=0.6), gr.SCAFFOLD(option="I")),
    gr.ClusteredFedAvg(clusters={"a": [0, 1, 2], "b": [3, 4, 5]}),
)
ROUNDS = 25
SAME = 1e-12


def name(method):
    return method.name


# ---- the same run ----------------------------------------------------------------------------------------------------
def compare(method, form, **options):
    arrays, actors = on_arrays(method, form, ROUNDS), by_actors(method, form, ROUNDS, **options)
    assert deviation(arrays, actors) <= SAME
    assert arrays.ledger == actors.ledger
    assert arrays.ledger.bytes == actors.ledger.bytes
    assert arrays.ledger.by_edge().equals(actors.ledger.by_edge())
    assert arrays.ledger.by_node().equals(actors.ledger.by_node())
    assert arrays.gathered.keys() == actors.gathered.keys()
    for key, value in arrays.gathered.items():
        np.testing.assert_allclose(actors.gathered[key], value, rtol=1e-9, atol=1e-12)
    return arrays, actors


@pytest.mark.parametrize(("kind", "method"), thinned(KINDS, [*ITERATIONS, *FIXED], every=5), ids=named)
def test_actors_go_the_way_of_the_arrays(kind, method):
    """Every fifth pair; all of them with ``make test ARGS=--whole``."""
    form = problem(kind).form.frozen()
    if method.missing(form):
        pytest.skip("the method does not apply")
    compare(method, form)


@pytest.mark.parametrize("method", ITERATIONS, ids=name)
def test_on_random_problems(method, whole):
    """Every method on some of the problems, all methods on all; each on each with ``make test ARGS=--whole``."""
    compared, first = 0, ITERATIONS.index(method) % 4
    for seed in SEEDS if whole else SEEDS[first::4]:
        form = random_problem(seed).problem.form.frozen()
        if form.n <= 20 and not method.missing(form):
            compare(method, form)
            compared += 1
    assert compared or method.missing(problem("squared").form)


@pytest.mark.parametrize("kind", ["quantile", "tree", "parts"])
def test_prices_are_those_of_the_arrays(kind):
    arrays, actors = compare(gr.PrimalDual(), problem(kind).form.frozen())
    one, two = arrays.points[-1][2], actors.points[-1][2]
    assert (one is None) == (two is None) == (kind != "quantile")
    for a, b in zip(one or (), two or (), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_a_solution_and_its_start():
    model = problem("total variation")
    begun = model.solve(gr.PrimalDual(polish=False), gap=0, rounds=30)
    alone = model.solve(gr.PrimalDual(balance=0.5), start=begun, gap=1e-8)
    actors = model.solve(gr.PrimalDual(balance=0.5), start=begun, gap=1e-8, engine=gr.Actors())
    assert actors.status == "certified"
    assert actors.rounds == alone.rounds
    np.testing.assert_allclose(actors.coef, alone.coef, atol=1e-12)


def test_an_infimum_that_is_not_attained():
    X = np.arange(12.0).reshape(-1, 1) - 5.5
    data = gr.NodeData.from_arrays(X, (X[:, 0] > 0).astype(int), np.repeat(range(3), 4))
    model = gr.Problem(gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2()))
    found = model.solve(gr.PrimalDual(), gap=1e-4, on_failure="return", engine=gr.Actors())
    assert found.status == model.solve(gr.PrimalDual(), gap=1e-4, on_failure="return").status == "unattained"


def test_a_node_that_lacks_classes():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c", "a", "a", "a", "b", "c", "b"])
    data = gr.NodeData.from_arrays(rng.standard_normal((9, 2)), y, np.repeat([0, 1, 2], 3))
    model = gr.MultinomialLoss(data, scale={0: 1.0, 1: 2.0, 2: 0.5}) + gr.TotalVariation(nx.path_graph(3), gr.L2())
    compare(gr.PrimalDual(), gr.Problem(model).form.frozen())


# ---- isolation -------------------------------------------------------------------------------------------------------
CHANNELS = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, threading.Thread)


def reachable(root):
    """Every object that can be reached, but for code and the channels to others (functions)."""
    seen, left = {id(root): root}, [root]
    while left:
        for each in gc.get_referents(left.pop()):
            if id(each) not in seen and not isinstance(each, CHANNELS):
                seen[id(each)] = each
                left.append(each)
    return list(seen.values())


def numbers_of(arrays):
    values = [np.ravel(a) for a in arrays if a.dtype.kind == "f" and a.size]
    return set(np.concatenate(values).tolist()) if values else set()


@pytest.mark.parametrize("kind", ["total variation", "quantile", "tree", "logistic"])
def test_no_actor_ever_holds_the_data_of_another(kind, monkeypatch):
    """Numbers of X and y are distinct draws: none of another's is in any array that an actor can reach."""
    seen, form = watch(monkeypatch), problem(kind).form.frozen()
    by_actors(gr.PrimalDual(), form, 12)
    assert len(seen.actors) == form.n
    block = form.samples[0]
    X, y = block.X, block.y if kind != "logistic" else block.X[:, 0]
    for actor in seen.actors:
        arrays = [each for each in reachable(actor) if isinstance(each, np.ndarray)]
        held, mine = numbers_of(arrays), block.node == actor.part.node
        own, others = ({*X[rows].ravel().tolist(), *y[rows].tolist()} for rows in (mine, ~mine))
        assert own <= held
        assert not others & held
        assert not any(np.shares_memory(a, b) for a in arrays for b in (X, block.y, block.offset, block.A.data))


def test_actors_share_no_arrays(monkeypatch):
    seen, small = watch(monkeypatch), problem("logistic", n=6)
    bound = gr.TotalVariation(nx.path_graph(6), gr.Quadratic(np.diag([1.0, 2.0, 3.0])))
    by_actors(gr.PrimalDual(), gr.Problem(small.model + bound).form.frozen(), 12)
    owner = {}
    for actor in seen.actors:
        for each in reachable(actor):
            if isinstance(each, np.ndarray) and each.size:
                assert owner.setdefault(each.__array_interface__["data"][0], actor) is actor


def test_what_is_pickled_for_a_node_holds_its_data_alone():
    form = problem("total variation").form.frozen()
    block = form.samples[0]
    first = [block.X[block.node == i][0].tobytes() for i in range(form.n)]
    for part in split(form, arcs_of(form)):
        told = pickle.dumps(part)
        assert [i for i in range(form.n) if first[i] in told] == [part.node]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_go_along_edges_only(kind, monkeypatch):
    """Every message has a sender, a neighbour that receives it, and a sequence number of its own; and is recorded."""
    seen, form = watch(monkeypatch), problem(kind).form.frozen()
    run = by_actors(gr.PrimalDual(), form, ROUNDS)
    pairs = {(int(i), int(j)) for e in form.edges if not e.ground for i, j in zip(e.tail, e.head, strict=True)}
    edges = pairs | {(j, i) for i, j in pairs}
    assert {(m.sender, m.receiver) for m in seen.messages} == edges
    names = [(m.kind, m.sender, m.receiver, m.tag, m.attempt) for m in seen.messages]
    assert len(set(names)) == len(names)
    assert len({m.payload.__array_interface__["data"][0] for m in seen.messages}) == len(names)  # none is shared
    beyond = 2 * (run.ledger.arcs.components - 1) * run.ledger.accounts["adaptation"].beyond > 0
    assert beyond == (run.ledger.arcs.components > 1)
    sums = run.ledger.accounts["adaptation"].beyond + run.ledger.accounts["method"].beyond
    assert len(seen.messages) == run.ledger.total_messages - sums
    assert 8 * sum(m.payload.size for m in seen.messages if m.kind == "values") == run.ledger.bytes["method"]


# ---- methods that cheat ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Peeking(gr.PrimalDual):
    """Reads the rows of neighbours before anything was sent."""

    def step(self, state):
        before = sum(edge.difference(state.x.w).sum() for edge in state.view.form.edges)
        new = super().step(state)
        return replace(new, x=replace(new.x, w=new.x.w + 0.0 * before))


@dataclass(frozen=True)
class Overhearing(gr.PrimalDual):
    """Reads the rows of neighbours that have not sent."""

    def step(self, state):
        new, arcs = super().step(state), state.view.arcs
        w = state.view.engine.exchange(new.x.w, state.view.ids[arcs.source] % 2 == 0)
        odd = 0.0 * sum(edge.difference(w).sum() for edge in state.view.form.edges)
        return replace(new, x=replace(new.x, w=new.x.w + odd))


@dataclass(frozen=True)
class Summing(gr.PrimalDual):
    """Takes a mean over the nodes of its site."""

    def step(self, state):
        new = super().step(state)
        x = replace(new.x, w=new.x.w + 0.01 * (np.nanmean(new.hat.w, axis=0) - new.hat.w))
        return replace(new, x=x)


@pytest.mark.parametrize(
    ("method", "start"),
    [(Peeking(balance=0.5), 0.0), (Overhearing(balance=0.5), 0.0), (Overhearing(balance=0.5), None)],
    ids=str,
)
def test_rows_that_nobody_sent_are_not_numbers(method, start):
    model = problem("total variation", n=6)
    start = None if start is None else np.full(model.form.shape, start)
    assert np.isfinite(model.solve(method, gap=0, rounds=10, start=start).coef).all()
    with pytest.raises(FailedError):
        model.solve(method, gap=0, rounds=10, start=start, engine=gr.Actors())


def test_a_sum_without_messages_is_another():
    form = problem("total variation", n=6).form.frozen()
    assert deviation(on_arrays(Summing(balance=0.5), form, 5), by_actors(Summing(balance=0.5), form, 5)) > 1e-6


# ---- when something breaks -------------------------------------------------------------------------------------------
RAISED = "the actor of the node 'c' failed: ZeroDivisionError: no reason"
REFUSED = r"not with me \(raised by the actor of the node 'c'\)"
SILENT = "actor of the node '[bd]' waits for the node 'c' in vain .exchange 1 of round 4."


@pytest.mark.parametrize(
    ("processes", "how", "error", "words"),
    [
        (False, "raise", ActorError, RAISED),
        (2, "raise", ActorError, RAISED),
        (False, "refuse", MethodError, REFUSED),
        (True, "refuse", MethodError, REFUSED),
        (False, "silent", ActorError, SILENT),
        (2, "silent", ActorError, SILENT),
    ],
)
def test_an_error_names_the_node(processes, how, error, words):
    engine = gr.Actors(processes=processes, timeout=1.0 if how == "silent" else 20.0)
    with pytest.raises(error, match=words):
        row().solve(Breaking(balance=1.0, how=how), gap=0, rounds=10, engine=engine)
    nothing_is_left()


@pytest.mark.parametrize("processes", [False, 2])
def test_an_interrupted_run_ends_with_its_best_point(processes):
    timers: list[threading.Timer] = []

    def press(record):
        """Ctrl-C, somewhere in the rounds to come."""
        if record.round > 10 and not timers:
            timers.append(threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)))
            timers[0].start()

    found = problem("total variation", n=6).solve(
        gr.PrimalDual(balance=1.0), gap=0, seconds=60, callback=press, engine=gr.Actors(processes=processes)
    )
    assert found.status == "interrupted"
    assert found.rounds > 10
    assert found.certificate.valid
    nothing_is_left()


@pytest.mark.parametrize(
    ("method", "form", "processes"),
    [(gr.PrimalDual(), problem("parts", n=6).form, True), (gr.ADMM(), random_problem(162).problem.form, 2)],
    ids=["primal-dual", "admm"],
)
def test_processes_go_the_way_of_the_arrays(method, form, processes):
    compare(method, form.frozen(), processes=processes)
    nothing_is_left()


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"processes": 0}, r"Actors\(processes=...\) must be True, False or a number >= 1, got 0"),
        ({"processes": "two"}, r"Actors\(processes=...\)"),
        ({"faults": 0.2}, r"Actors\(faults=...\) must be gr.Faults\(...\) or None, got 0.2"),
        ({"timeout": 0.0}, r"Actors\(timeout=...\) must be a positive number of seconds"),
        ({"timeout": float("inf")}, r"Actors\(timeout=...\)"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(MethodError, match=words):
        gr.Actors(**options)


def test_what_actors_cannot_do_is_refused(tmp_path):
    with pytest.raises(MethodError, match="Exact has no actors"):
        row().solve(gr.Exact(), engine=gr.Actors())
    with pytest.raises(CheckpointError, match="is not kept, since an engine has states"):
        row().solve(gr.PrimalDual(), checkpoint=tmp_path / "run", engine=gr.Actors())
    for engine in ("actors", gr.Actors, gr.Faults(drop=0.1)):
        with pytest.raises(ModelError, match=r"engine must be gr\.Actors\(faults=gr\.Faults\(\.\.\.\)\), "):
            row().solve(gr.PrimalDual(), engine=engine)
    with pytest.raises(ArgumentError, match="solve has no argument 'faults'; here it is engine="):
        row().solve(gr.PrimalDual(), faults=gr.Faults(drop=0.1))


@pytest.mark.parametrize("method", ITERATIONS, ids=name)
def test_the_state_has_what_an_actor_needs(method):
    """A restart sets the round of a state: every method's state has one."""
    forms = [f for kind in KINDS if not method.missing(f := problem(kind).form)]
    if forms:
        assert method.init(whole(forms[0]), None).round == 0


@pytest.mark.parametrize("method", BASELINES, ids=lambda m: m.label)
def test_baselines_have_actors_on_the_nodes_of_their_own_problem(method):
    model = problem("squared", n=6)
    if method.missing(model.form):
        pytest.skip("the baseline does not apply")
    options = {"gap": 0, "rounds": 20, "seed": 1, "on_failure": "return"}
    arrays, actors = (model.solve(method, engine=engine, **options) for engine in (None, gr.Actors()))
    np.testing.assert_allclose(actors.coef, arrays.coef, atol=1e-12 * np.abs(arrays.coef).max())
    assert actors.ledger.messages["method"] == arrays.ledger.messages["method"]


def test_a_method_that_chooses_its_problem_is_refused():
    for method in (gr.IFCA(k=2), gr.Ditto(1.0)):
        with pytest.raises(MethodError, match=f"{method.name} has no actors or parts"):
            problem("squared").solve(method, engine=gr.Actors())
