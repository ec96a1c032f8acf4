"""Checkpoints: a run that is broken off and goes on has the bits of one that was not."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest
from checkpoint_cases import FAST, ITERATIVE, SEEDS, Tilted
from factories import chain, named, thinned
from sameness import ROUNDS, broken, contents, facts

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.errors import CheckpointError
from graphreg.methods import AbstractIteration


def separable():
    """Three logistic regressions whose classes part ways at one node: two runs, the second at infinity."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 2))
    y = (X @ [1.0, -1.0] + 0.8 * rng.standard_normal(60) > 0).astype(int)
    y[:20] = X[:20, 0] > 0
    data = gr.NodeData.from_arrays(X, y, np.repeat([0, 1, 2], 20))
    graph = nx.Graph([(1, 2)])
    graph.add_node(0)
    return gr.Problem(gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2()))


# ---- exact resume ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("seed", "method"), thinned(SEEDS, ITERATIVE, every=len(SEEDS)), ids=named)
def test_a_broken_run_has_the_bits_of_an_unbroken_one(seed, method, tmp_path):
    """Every method on some of the problems; on all with ``make test ARGS=--whole``, on more by `make resume`."""

    def problem():
        return random_problem(seed).problem

    if method.missing(problem().form):
        pytest.skip(f"{method.name} does not apply")
    budget = {"gap": 1e-5, "seed": 7, "on_failure": "return", "rounds": None if isinstance(method, FAST) else ROUNDS}
    whole = problem().solve(method, **budget)
    breaks = sorted(np.random.default_rng(seed).integers(1, max(whole.rounds, 2), 2))
    path = tmp_path / "run"
    again = broken(problem, method, path, [int(k) for k in breaks], **budget)
    assert facts(again) == facts(whole)
    unbroken = tmp_path / "unbroken"
    every = gr.Checkpoint(unbroken, rounds=7)
    stored = problem().solve(method, checkpoint=every, **budget)
    assert facts(stored) == facts(whole)  # writing changes nothing
    assert contents(path) == contents(unbroken)


CASES = {
    "squared": chain,
    "logistic": lambda: chain(loss=gr.LogisticLoss, penalty=gr.L1(), strength=0.05),
    "huber": lambda: chain(loss=gr.HuberLoss, penalty=gr.Ball(0.3), strength=1),
    "own": lambda: chain(penalty=Tilted(0.5)),
    "quadratic": lambda: chain(penalty=gr.Quadratic(np.diag([1.0, 2.0, 0.0]))),
}


@pytest.mark.parametrize(
    ("case", "options"), thinned(CASES, [{"balance": 1.0}, {"polish": False}, {"relaxation": 1.3}], every=3)
)
def test_every_break_of_a_short_run(case, options, tmp_path):
    """Every case with one of the options; with all of them with ``make test ARGS=--whole``."""
    problem, method = CASES[case], gr.PrimalDual(**options)
    whole = facts(problem().solve(method, gap=0, rounds=45))
    path = tmp_path / "run"
    assert facts(broken(problem, method, path, [1, 9, 10, 11, 20, 40, 44], gap=0, rounds=45)) == whole


@pytest.mark.parametrize(("seed", "method"), thinned([120, 112, 60, 141], ITERATIVE, every=4), ids=named)
def test_breaks_between_repairs(seed, method, tmp_path):
    """Repairs remember a scale and a Slater centre, which cost messages to find; the schedule learns from them.

    Every method on one of the problems; on all with ``make test ARGS=--whole``.
    """

    def problem():
        return random_problem(seed).problem

    if method.missing(problem().form):
        pytest.skip(f"{method.name} does not apply")
    budget = {"gap": 1e-7, "rounds": 1000 if isinstance(method, FAST) else ROUNDS, "seed": 3, "on_failure": "return"}
    whole = problem().solve(method, **budget)
    repaired = [record.round for record in whole.trace.certified()]
    if isinstance(method, gr.PrimalDual):
        assert len(repaired) > 1
    again = broken(problem, method, tmp_path / "run", repaired[:-1], **budget)
    assert facts(again) == facts(whole)


def test_breaks_between_polishes(tmp_path):
    """A guess is polished where it was made twice in a row, at rounds 10, 20, 30, 45, ..."""

    def problem():
        return chain(n=60, loss=gr.HuberLoss, strength=2.0)

    whole, plain = (problem().solve(gr.PrimalDual(polish=polish), gap=1e-9) for polish in (True, False))
    assert whole.ledger.bytes["adaptation"] > 5 * plain.ledger.bytes["adaptation"]
    breaks = [k for k in (10, 20, 30, 45, 67, 100, 150) if k < whole.rounds]
    assert len(breaks) > 2
    assert facts(broken(problem, gr.PrimalDual(), tmp_path / "run", breaks, gap=1e-9)) == facts(whole)


def test_a_derived_penalty(tmp_path):
    import cvxpy as cp

    def problem():
        return chain(n=3, penalty=gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 1) + cp.sum_squares(z)))

    whole = facts(problem().solve(gr.PrimalDual(), gap=0, rounds=25))
    assert facts(broken(problem, gr.PrimalDual(), tmp_path / "run", [12], gap=0, rounds=25)) == whole


def test_the_second_run_of_an_unattained_problem(tmp_path):
    budget = {"gap": 1e-6, "on_failure": "return"}
    method = gr.PrimalDual(polish=False)
    whole, seen = separable().solve(method, **budget), []
    assert whole.status == "unattained"
    separable().solve(method, callback=seen.append, **budget)
    second = next(k for k in range(1, len(seen)) if seen[k].round < seen[k - 1].round)
    for at in (1, second, len(seen) - 1):
        path, count = tmp_path / f"run-{at}", iter(range(10**6))

        def interrupt(record, at=at, count=count):
            if next(count) == at:
                raise KeyboardInterrupt

        stored = gr.Checkpoint(path, rounds=10_000)
        separable().solve(method, callback=interrupt, checkpoint=stored, **budget)
        resumed, fewer = [], separable().solve(method, checkpoint=stored, **budget)
        assert facts(fewer) == facts(whole), at
        again = separable().solve(method, checkpoint=stored, callback=resumed.append, **budget)
        assert facts(again) == facts(whole)
        assert not resumed  # both runs had ended
    tighter = separable().solve(method, checkpoint=stored, **{**budget, "gap": 1e-9})
    assert tighter.certificate.holds(1e-9)
    assert tighter.rounds > whole.rounds


# ---- start -----------------------------------------------------------------------------------------------------------
def test_a_start_is_left_out_or_the_same(tmp_path):
    path, problem = tmp_path / "run", chain()
    start = np.full((8, 3), 0.5)
    whole = problem.solve(gr.PrimalDual(), gap=0, rounds=40, start=start)
    for k, given in ((15, start), (25, None), (40, start.copy())):
        run = problem.solve(gr.PrimalDual(), gap=0, rounds=k, start=given, checkpoint=path)
    assert facts(run) == facts(whole)
    with pytest.raises(CheckpointError, match=r"another start.*leave start out"):
        problem.solve(gr.PrimalDual(), gap=0, rounds=60, start=start + 1.0, checkpoint=path)
    other = tmp_path / "from 0"
    problem.solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=other)
    with pytest.raises(CheckpointError, match="another start"):
        problem.solve(gr.PrimalDual(), gap=0, rounds=9, start=start, checkpoint=other)


# ---- a method with a random stream -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Drawn:
    view: object
    w: np.ndarray
    stream: np.random.Generator


@dataclass(frozen=True)
class RandomWalk(AbstractIteration):
    """Draws a step for every node; each round has a stream of its own."""

    length: float = 0.1

    def missing(self, form):
        return ()

    def init(self, view, start):
        return Drawn(view, np.zeros(view.form.shape), np.random.default_rng(7))

    def step(self, state):
        stream = np.random.Generator(type(state.stream.bit_generator)())
        stream.bit_generator.state = state.stream.bit_generator.state
        w = state.w + self.length * stream.standard_normal(state.w.shape)
        return Drawn(state.view, state.view.engine.exchange(w), stream)

    def point(self, state):
        return state.w, None, None


def test_a_random_method(tmp_path):
    whole = chain().solve(RandomWalk(), gap=0, rounds=40)
    again = broken(chain, RandomWalk(), tmp_path / "run", [7, 23], gap=0, rounds=40)
    assert facts(again) == facts(whole)
    other = chain().solve(RandomWalk(length=0.2), gap=0, rounds=40)
    assert facts(other) != facts(whole)  # facts tell runs apart
