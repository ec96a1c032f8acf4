"""Threads: parts of a pass are dealt out to them, and no bit depends on how many there are."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from round_cases import PROBLEMS, WAYS, forced_rounds, graph, regression, tied

import graphreg as gr
from graphreg.base.clock import OutOfTimeError, alarm, check_deadline, within
from graphreg.base.gate import dealt, threads
from graphreg.fast import nodes, order, packed, passes, rounds
from graphreg.oracles import nodeprox
from graphreg.terms import maps, padding

COUNTS = (1, 2, 3, 4)
CASES = {
    "few samples": lambda: gr.Problem(regression(4, 2) + tied(gr.L2())),
    **{name: PROBLEMS[name] for name in ("regression, l2", "mixed", "logistic")},
}


@pytest.fixture(params=WAYS)
def small_parts(request, monkeypatch):
    """Every pass falls into parts, on graphs of any size."""
    for place, name, size in (
        *(
            (order, "MANY", 8),
            (passes, "EDGES", 4),
            (rounds, "AT_A_TIME", 40),
            (nodes, "NODES", 8),
            (packed, "NODES", 8),
        ),
        *((maps, "STREAM", 16), (padding, "PRODUCTS", 16), (padding, "CELLS", 64), (nodeprox, "SMALL", 1)),
    ):
        monkeypatch.setattr(place, name, size)
    with forced_rounds(monkeypatch, request.param):
        yield


def bits(solution):
    point = solution.certificate.dual_point
    return [each.tobytes() for each in (solution.coef, *point.flows, *point.prices)], solution.message


@pytest.mark.parametrize("name", CASES)
def test_no_bit_of_an_answer_depends_on_the_number_of_threads(small_parts, monkeypatch, name):
    problem = CASES[name]()
    found = [problem.solve(gr.PrimalDual(), gap=1e-5, rounds=6, threads=count) for count in COUNTS]
    assert all(bits(each) == bits(found[0]) for each in found)
    monkeypatch.setattr(order, "MANY", 10**9)
    whole = problem.solve(gr.PrimalDual(), gap=1e-5, rounds=6)
    np.testing.assert_allclose(found[0].coef, whole.coef, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ground", [False, True])
def test_parts_of_a_stage_share_no_node_and_all_parts_have_every_edge_once(seed, ground):
    edges, rng = graph(40, 300, seed), np.random.default_rng(seed)
    mixed = rng.permutation(300)
    tail, head = edges.tail[mixed], np.full(300, -1) if ground else edges.head[mixed]
    found = order._in_parts(order.edge_order(tail, head, 40, slices=False), 40, ground)
    assert sorted(found.places) == list(range(300))
    np.testing.assert_array_equal([found.tail, found.head], [tail[found.places], head[found.places]])
    taken = []
    for stage in found.stages:
        ends = [set(found.tail[part]) | set([] if ground else found.head[part]) for part in stage]
        assert sum(map(len, ends)) == len(set().union(*ends))
        taken += [e for part in stage for e in range(part.start, part.stop)]
    assert taken == list(range(300))
    assert len(found.stages[0]) == order.PARTS  # and several at once
    rows = rng.standard_normal((300, 3))
    np.testing.assert_array_equal(found.back(found.of(rows), 3), rows)


def test_as_many_parts_as_threads_run_at_once_and_their_results_come_in_order():
    together = threading.Barrier(3, timeout=20.0)

    def part(k):
        if k < 3:
            together.wait()
        return k, dealt(abs, [-1, -2])  # within a part there is one thread

    with threads(3):
        assert dealt(part, range(7)) == [(k, [1, 2]) for k in range(7)]
    assert not [each for each in threading.enumerate() if each.name.startswith("graphreg part")]  # so one may fork


def test_parts_know_what_numpy_and_the_clock_were_told():
    def part(_):
        with pytest.raises(OutOfTimeError):  # of the thread that began
            check_deadline()
        return np.geterr()["over"], threading.current_thread().name

    with threads(2), within(0.0), np.errstate(over="ignore"):
        found = dealt(part, range(40))
    assert {over for over, _ in found} == {"ignore"}


def test_an_error_of_a_part_is_raised_when_nobody_works_any_more():
    working = []

    def part(k):
        working.append(k)
        try:
            time.sleep(0.02)
            if k == 1:
                raise ZeroDivisionError("a part")
        finally:
            working.remove(k)

    with threads(2):
        with pytest.raises(ZeroDivisionError, match="a part"):
            dealt(part, range(20))
        assert not working
        with pytest.raises(OutOfTimeError), within(0.05), alarm():
            dealt(lambda k: time.sleep(0.01), range(1000))


def test_the_environment_says_how_many_where_nobody_else_does(monkeypatch):
    def count(given=None):
        with threads(given):
            return len(set(dealt(lambda k: time.sleep(0.01) or threading.get_ident(), range(8))))

    assert count() == 1
    monkeypatch.setenv("GRAPHREG_THREADS", "2")
    assert (count(), count(1)) == (2, 1)
    with threads(1):
        assert count() == 1  # of a solve within a solve
    for wrong in ("0", "-3", "many", ""):
        monkeypatch.setenv("GRAPHREG_THREADS", wrong)
        assert count() == 1


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True])
def test_a_wrong_number_is_refused(wrong):
    with pytest.raises((ValueError, TypeError), match="threads"):
        PROBLEMS["means, l1"]().solve(threads=wrong)


def test_a_checkpoint_goes_on_with_another_number(small_parts, tmp_path):
    problem = PROBLEMS["regression, l2"]()
    whole = problem.solve(gr.PrimalDual(), gap=1e-9, rounds=30, threads=1, seed=0)
    for rounds_, count in ((10, 2), (30, 3)):
        path = gr.Checkpoint(tmp_path / "run", rounds=1)
        found = problem.solve(gr.PrimalDual(), gap=1e-9, rounds=rounds_, threads=count, checkpoint=path, seed=0)
    np.testing.assert_allclose(found.coef, whole.coef, rtol=1e-8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_process_may_fork_between_two_solves():
    problem = PROBLEMS["regression, l2"]()
    problem.solve(threads=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if problem.solve(threads=2).status == "certified" else 1)
    assert os.waitpid(child, 0)[1] == 0
