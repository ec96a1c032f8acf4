"""The algorithms of benchmarks.audits: the right ones get there, the planted bugs do not or go another way, and audits
tell them apart (all of them on all problems with ``--whole``, or by ``python -m benchmarks.audits``)."""

from __future__ import annotations

import functools
from importlib import import_module

import numpy as np
import pytest
from factories import thinned

import graphreg as gr
from benchmarks.audits.__main__ import Row, of_bug, of_right, summary
from benchmarks.audits.algorithms import RIGHT
from benchmarks.audits.bugs import BUGS, flows_leave_their_ball, reads_a_stranger, stale_message
from benchmarks.audits.consensus import extra
from benchmarks.audits.instances import KINDS, instance
from benchmarks.audits.slips import SLIPS
from benchmarks.audits.splitting import condat_vu
from benchmarks.audits.unusual import UNUSUAL, frames, one_array, random_edges
from graphreg.auditing.algorithms import algorithm_of
from graphreg.auditing.course import run
from graphreg.auditing.locality import hops

problem = functools.cache(instance)
HARMLESS = ("stale message", "reads a stranger", "step too long and yet")  # for the limit
SLOW = {"dgd": 3e-2, "stochastic": 1e-1}  # how near they come in 1500 rounds
ROUNDS = 1500


@functools.cache
def optimum(kind, seed):
    return problem(kind, seed).solve(gap=1e-10).coef


def distance(algorithm, kind, seed):
    points = algorithm(problem(kind, seed), seed=0)
    with np.errstate(all="ignore"):
        w = next(w for k, w in enumerate(points, 1) if k == ROUNDS)
    w = w[0] if isinstance(w, tuple) else w
    return np.linalg.norm(w - optimum(kind, seed)) / np.linalg.norm(optimum(kind, seed))


def on_one_problem(names, each):
    """The first problem by default, all of them with --whole."""
    whole = pytest.mark.whole
    return [
        pytest.param(one, seed, id=f"{name}-{seed}", marks=whole if seed else ())
        for name, one in zip(names, each, strict=True)
        for seed in range(3)
    ]


@pytest.mark.parametrize(("algorithm", "seed"), on_one_problem([each.__name__ for each in RIGHT], RIGHT))
def test_right_algorithms_reach_the_optimum(algorithm, seed):
    assert distance(algorithm, RIGHT[algorithm], seed) < SLOW.get(algorithm.__name__, 2e-5)


@pytest.mark.parametrize(("bug", "seed"), on_one_problem([bug.name for bug in BUGS], BUGS))
def test_planted_bugs_do_what_they_do(bug, seed):
    far = distance(bug.run, bug.kind, seed)
    assert far < 2e-5 if bug.name in HARMLESS else not far < 1e-2


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
def test_every_slip_is_found_and_not_misnamed(slip, seed):
    row = of_bug(slip, seed)
    assert row.passed
    assert "WRONG NAME" not in row.found


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("algorithm", UNUSUAL, ids=lambda each: each.__name__)
def test_no_false_alarm_on_unusual_forms(algorithm, seed):
    assert of_right(algorithm, UNUSUAL[algorithm], seed, "right").passed


@pytest.mark.whole
@pytest.mark.parametrize(("bug", "seed"), on_one_problem([bug.name for bug in BUGS], BUGS))
def test_every_bug_is_found_and_named(bug, seed):
    row = of_bug(bug, seed)
    assert row.passed
    assert row.found.startswith("named: ")


@pytest.mark.whole
@pytest.mark.parametrize(("algorithm", "seed"), on_one_problem([each.__name__ for each in RIGHT], RIGHT))
def test_no_false_alarm(algorithm, seed):
    assert of_right(algorithm, RIGHT[algorithm], seed, "right").passed


@pytest.mark.parametrize(
    "name", thinned(["reads a stranger", "local steps", "node left out", "sum for mean in a consensus"], every=4)
)
def test_a_bug_in_the_table(name):
    bug = next(each for each in BUGS if each.name == name)
    row = of_bug(bug, 2)
    assert (row.passed, row.found.partition(":")[0]) == (True, "named")


@pytest.mark.parametrize(
    "name", thinned(["weights squared", "shared memory", "tracking forgets", "columns only", "node twice"], every=4)
)
def test_a_slip_in_the_table(name):
    slip = next(each for each in SLIPS if each.name == name)
    row = of_bug(slip, 2)
    assert (row.passed, row.found.partition(":")[0]) == (True, "named")


@pytest.mark.parametrize("algorithm", [one_array, random_edges], ids=lambda each: each.__name__)
def test_unusual_forms_raise_no_alarm(algorithm):
    report = gr.audit(problem("edges", 2), algorithm, rounds=400)
    assert report.ok, report


def test_frames_are_read_by_their_labels():
    w, _ = next(condat_vu(problem("edges", 0)))
    assert np.array_equal(run(algorithm_of(frames), problem("edges", 0), 1).last, w)


def test_rounding_is_no_message(monkeypatch):
    def leaks(problem, start=None, seed=None):
        i, j = np.argwhere(hops(problem.form) == 4)[0]
        for w in extra(problem, start, seed):
            w[i] = (w[i] + w[j]) - w[j]  # what is left of the other node is rounding
            yield w

    assert gr.audit(problem("consensus", 2), leaks).verdict == "right"
    monkeypatch.setattr(import_module("graphreg.auditing.locality"), "ROUNDING", 0.0)
    assert gr.audit(problem("consensus", 2), leaks).verdict != "right"


@pytest.mark.parametrize(
    ("product", "claims", "verdict", "outcomes"),
    [
        (0.99, None, "right", {"holds"}),
        (1.6, None, "right limit, long steps", {"fails", "name"}),
        (1.6, ("limit", "repeatable"), "right", {"remark"}),
    ],
)
def test_long_steps_show_where_the_graph_is_densest(product, claims, verdict, outcomes):
    """Steps that come from the losses are as long as those of the one node that is not flat. Where they are not
    claimed, they cannot fail, and where the limit is right it is not said never to settle."""

    def primal_dual(problem, start=None, seed=None):
        o = problem.oracles()
        w, u, tau = np.zeros((o.n, o.d)), np.zeros((len(o.tail), o.d)), 2.0 / o.smoothness.mean()
        sigma = product / (tau * np.linalg.norm(o.K.toarray(), 2) ** 2)
        while True:
            new = o.prox(w - tau * (o.K.T @ u), tau)
            u = o.dual_prox(u + sigma * (o.K @ (2.0 * new - w)), sigma)
            w = new
            yield w

    report = gr.audit(problem("edges", 1), primal_dual, rounds=600, claims=claims)
    assert (report.verdict, report.ok) == (verdict, verdict == "right")
    assert {each.outcome for each in report.findings if each.evidence == "steps"} - {"holds"} == outcomes - {"holds"}
    assert bool(report.name) == ("name" in outcomes)


def test_the_instances_are_irregular():
    for kind in KINDS:
        for seed in range(3):
            form = problem(kind, seed).form
            assert len(set(np.bincount(form.samples[0].node))) > 2
            assert len(set(form.degree())) > 2
    split = [
        np.linalg.norm(problem("edges", k).form.edges[0].apply(optimum("edges", k)), axis=1) > 1e-6 for k in (0, 1)
    ]
    assert [np.mean(each) for each in split] == [0.5, 0.5]
    assert problem("edges", 0).form.edges[0].weight.std() > 0.1


def test_a_name_has_to_name_the_nodes():
    bug = next(each for each in BUGS if each.run is stale_message)
    assert bug.named("stale message: 4 of 6", problem("edges", 0))
    assert not bug.named("stale message: 4 of 5", problem("edges", 0))
    assert not bug.named("missing edge: 4 of 6", problem("edges", 0))
    far = next(each for each in BUGS if each.run is reads_a_stranger)
    assert not far.named("read of a non-neighbour: node 0 of 1", problem("consensus", 0))
    ball = next(each for each in BUGS if each.run is flows_leave_their_ball)
    assert not ball.named("", problem("edges", 0))


def test_the_counts():
    found = Row("bugs", "a", "edges 0", "wrong", True, "named: it", 1.0)
    missed = Row("bugs", "a", "edges 1", "right", False, "unnamed: ", 2.0)
    alarm = Row("right", "b", "edges 0", "wrong", False, "it", 3.0)
    text = summary([found, missed, alarm])
    assert "planted bugs: 1 of 2 found, 1 named; 0 of 1 named on every problem" in text
    assert "algorithms that are right: 1 false alarms in 1 audits" in text
    assert "most 3.0, 6 in all" in text
