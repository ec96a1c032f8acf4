"""What is still done when the time is up: one last word, and a short one; counted, not timed."""

import threading
from contextlib import suppress

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import graphreg as gr
from graphreg.base import clock
from graphreg.base.declaring import declared, needs_no_options
from graphreg.certificate import Certifier
from graphreg.certificate.kernel.system import ROWS, WIDE, Prices
from graphreg.certificate.repairing.linear import factor_of
from graphreg.compiling import conic
from graphreg.errors import GraphregError
from graphreg.methods import exact
from graphreg.oracles import newton
from graphreg.running import AbstractMethod
from graphreg.running.checking import Checks
from graphreg.terms import padding

LATER = 1e6  # seconds


def problem(penalty=None, n: int = 6, d: int = 2, mean: float = 0.0) -> gr.Problem:
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.normal(size=(4 * n, d)), mean + rng.normal(size=4 * n), np.repeat(range(n), 4))
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(n), penalty or gr.SquaredL2()))


class Jump:
    """A clock that jumps, and the seconds that are granted after that."""

    def __init__(self, monkeypatch):
        self.over, self.granted = False, list[float]()
        now, from_now = clock._now, clock._from_now
        monkeypatch.setattr(clock, "_now", lambda: now() + LATER * self.over)

        def noted(seconds):
            if self.over and seconds is not None:
                self.granted.append(seconds)
            return from_now(seconds)

        monkeypatch.setattr(clock, "_from_now", noted)

    def jump(self, *_args, **_options):
        self.over = True


@pytest.fixture
def jump(monkeypatch):
    return Jump(monkeypatch)


METHODS = {name: each() for name, each in declared(AbstractMethod).items() if needs_no_options(each)}


@pytest.mark.parametrize("look", [2, 8, 20, 60])
@pytest.mark.parametrize("name", METHODS)
def test_the_last_words_of_a_method_are_short_together(monkeypatch, jump, name, look):
    looks, now = [], clock._now

    def counted():
        looks.append(None)
        if len(looks) > look:
            jump.jump()
        return now()

    monkeypatch.setattr(clock, "_now", counted)
    with suppress(GraphregError):
        problem().solve(METHODS[name], seconds=1e3, gap=1e-12, on_failure="return", progress=False)
    assert sum(jump.granted) < 2.0 * clock.LAST


@pytest.mark.parametrize("seconds", [None, 1e3])
def test_rounds_that_are_used_up_cut_no_certificate_short(monkeypatch, seconds):
    certify, left = Certifier.certify, []

    def noted(self, *given):
        left.append(clock.left())
        return certify(self, *given)

    monkeypatch.setattr(Certifier, "certify", noted)
    found = problem().solve(gr.FedAvg(), rounds=2, gap=0, seconds=seconds)
    assert found.status == "budget"
    assert len(left) > 1  # of what it minimises itself, and of its point in this problem
    assert all(rest is None if seconds is None else rest > 100 * clock.LAST for rest in left)


def test_a_run_whose_time_is_up_is_certified_once(monkeypatch, jump):
    certified, calls = Checks.certify_state, []

    def noted(self, state, k):
        calls.append(k)
        return certified(self, state, k)

    def late(self, state, count, steps=gr.PrimalDual.steps):
        found = steps(self, state, 1)
        jump.jump()
        return found

    monkeypatch.setattr(Checks, "certify_state", noted)
    monkeypatch.setattr(gr.PrimalDual, "steps", late)
    found = problem().solve(gr.PrimalDual(), seconds=1e3, gap=1e-6)
    assert (found.status, found.rounds, calls) == ("budget", 1, [1])
    assert found.certificate.valid


def test_a_last_word_within_another_gets_no_more():
    with clock.within(0.0), clock.afresh(0.1), clock.at_least(1e3):
        assert clock.left() <= 0.1
    with clock.within(0.0), clock.at_least(1e3):
        assert clock.left() > 0.1


def test_each_last_word_is_half_as_long_as_the_one_before(monkeypatch):
    with clock.within(0.0):
        for most in (100.0, 50.0, 25.0):
            with clock.within(None), clock.afresh(100.0):
                assert 0.9 * most < clock.left() <= most
        monkeypatch.setattr(clock, "SHORTEST", 20.0)  # none is shorter
        for _ in range(3):
            with clock.within(None), clock.afresh(100.0):
                assert 18.0 < clock.left() <= 20.0
        monkeypatch.undo()
        with clock.within(-1.0), clock.afresh(100.0):  # of another deadline
            assert clock.left() > 90.0


def test_work_that_was_broken_off_and_goes_on_takes_its_share(monkeypatch):
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, daemon=True)
    monkeypatch.setattr(clock, "stopped", [thread])
    with clock.within(0.0), clock.afresh(100.0):
        assert clock.left() > 50.0  # it has not begun
    thread.start()
    with clock.within(0.0), clock.afresh(100.0):
        assert clock.left() <= 50.0
    ended.set()


def test_a_point_whose_objective_is_not_bounded_in_time_is_said_to_be_uncertified(monkeypatch):
    def late(*_given):
        raise clock.OutOfTimeError

    given = problem()
    w = given.solve().coef + 0.1
    with monkeypatch.context() as patch:
        patch.setattr(Certifier, "propose_primal", late)
        found = given.certify(w, seconds=100.0)
    assert not found.valid
    assert (found.primal, found.gap) == (np.inf, np.inf)
    assert "the time was up before the objective was bounded" in found.note
    np.testing.assert_array_equal(found.w, w)
    assert given.certify(w, seconds=100.0).valid


def test_the_objective_at_a_point_is_bounded_once(monkeypatch):
    upper, seen = Certifier._upper, []

    def noted(self, w, value, plain):
        seen.append(plain)
        return upper(self, w, value, plain)

    given = problem()
    w = given.solve().coef + 0.1
    monkeypatch.setattr(Certifier, "_upper", noted)
    assert given.certify(w, gap=1.0).valid
    assert seen == [True]


# ---- what is long goes through the gate ------------------------------------------------------------------------------
def laplacian(n: int = 50) -> sp.csr_array:
    return sp.csr_array(nx.laplacian_matrix(nx.grid_2d_graph(n // 5, 5)).astype(float))


def test_factors_of_qdldl_go_through_the_gate(monkeypatch):
    heavy, weighed = newton.heavy, []

    def noted(multiplications, work, *given):
        weighed.append(multiplications)
        return heavy(multiplications, work, *given)

    monkeypatch.setattr(newton, "heavy", noted)
    L = laplacian()
    factor_of(L)
    assert weighed == [newton.FOR_ENTRY * sp.triu(L).nnz]


def test_a_factorisation_that_was_broken_off_is_not_taken_up_again(monkeypatch):
    A = sp.csc_array(sp.triu(laplacian() + sp.eye_array(50)))
    factors, b = newton.Factors(A.indices, A.indptr, low=True), np.arange(50.0)
    expected = factors(A.data)(b)

    def late(*_given):
        raise clock.OutOfTimeError

    with monkeypatch.context() as patch:
        patch.setattr(newton, "heavy", late)
        with pytest.raises(clock.OutOfTimeError):
            factors(2.0 * A.data)
    solver = factors._solver
    assert solver is None  # a thread may still write into the other
    np.testing.assert_allclose(factors(2.0 * A.data)(b), expected / 2.0, rtol=1e-12)


@pytest.mark.parametrize("work", [np.linalg.inv, np.linalg.eigh, np.linalg.eigvalsh])
def test_the_clock_is_heard_within_stacks_of_matrices(monkeypatch, work):
    X = np.random.default_rng(0).normal(size=(100, 5, 3))
    H, parts = X.transpose(0, 2, 1) @ X, []

    def counted(some):
        parts.append(len(some))
        return work(some)

    for at_once, count in ((padding.AT_ONCE, 1), (10.0 * padding.CALL, 12)):
        monkeypatch.setattr(padding, "AT_ONCE", at_once)
        parts.clear()
        found = padding.of_stack(counted, H, 10.0)
        assert (len(parts), sum(parts)) == (count, 100)
        for one, other in zip(found, work(H), strict=True):
            np.testing.assert_array_equal(one, other)
    parts.clear()
    with clock.within(0.0), pytest.raises(clock.OutOfTimeError):
        padding.of_stack(counted, H, 10.0)
    assert len(parts) == 1
    assert padding.of_stack(np.linalg.inv, H[:0], 1.0).shape == (0, 3, 3)


def test_exact_begins_only_what_can_be_written_in_time(monkeypatch):
    begun, compiled = [], conic.Compiler.__call__

    def noted(self, *given):
        begun.append(given)
        return compiled(self, *given)

    monkeypatch.setattr(conic.Compiler, "__call__", noted)
    monkeypatch.setattr(exact, "WRITTEN", 1.0)
    found = problem().solve(gr.Exact(), seconds=100.0)
    assert found.status == "budget"
    assert found.certificate.valid  # of 0
    assert not begun
    assert problem().solve(gr.Exact()).status == "certified"  # nobody is in a hurry
    assert begun


@pytest.mark.parametrize("penalty", [gr.SquaredL2, gr.L1, gr.L2, gr.LInf])
def test_what_scipy_writes_for_cvxpy_is_solved(monkeypatch, penalty):
    known = problem(penalty()).solve(gr.Exact())
    monkeypatch.setattr(conic, "MANY", 0)
    found = problem(penalty()).solve(gr.Exact())
    assert found.status == "certified"
    np.testing.assert_allclose(found.coef, known.coef, atol=1e-5)


def test_fewer_samples_of_many_features_are_taken_at_a_time():
    for d in (2, WIDE, 10 * WIDE):
        form = problem(n=2, d=d).form
        some = next(iter(Prices(form.samples[0], d).some()))
        assert some.stop * max(d // WIDE, 1) <= ROWS
        assert some.stop > ROWS // (2 * max(d // WIDE, 1))
