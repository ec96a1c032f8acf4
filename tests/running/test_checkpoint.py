"""Checkpoints: a run that is broken off and goes on has the bits of one that was not; everything else is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from core_cases import iterate
from factories import chain, named, thinned
from places import PACKAGE, TESTS
from sameness import ROUNDS, assert_identical, bits, broken, carried, contents, facts

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.errors import CheckpointError
from graphreg.methods import METHODS
from graphreg.methods.base import AbstractIteration
from graphreg.methods.baselines._baseline import AbstractBaseline
from graphreg.running.checkpoints import archive, checkpoint
from graphreg.running.checkpoints.fingerprint import entry
from graphreg.running.checkpoints.packing import Packed, laid_out, layout

ITERATIVE = [method for method in METHODS if not isinstance(method, gr.Exact)]
FAST = (gr.PrimalDual, gr.ADMM)  # the others get so many rounds at most
SEEDS = (540, 431, 162, 383, 214, 355, 476, 97, 408, 129, 516, 299, 504)  # every loss, all penalties, latent nodes


@dataclass(frozen=True)
class Tilted(gr.Penalty):
    """A penalty of a user's: slope ||z||_1."""

    slope: float = 1.0

    def value(self, z):
        return self.slope * np.abs(z).sum(axis=1)

    def prox(self, v, step):
        t = self.slope * np.asarray(step, dtype=float).reshape(-1, 1)
        return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)

    def conjugate(self, u):
        return np.where(np.abs(u).max(axis=1) <= self.slope, 0.0, np.inf)

    def cvxpy(self, Z):
        raise NotImplementedError


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
@pytest.mark.parametrize(("seed", "method"), thinned(SEEDS, ITERATIVE, every=3), ids=named)
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


@pytest.mark.parametrize("options", [{"balance": 1.0}, {"polish": False}, {"relaxation": 1.3}])
@pytest.mark.parametrize("case", CASES)
def test_every_break_of_a_short_run(case, options, tmp_path):
    problem, method = CASES[case], gr.PrimalDual(**options)
    whole = facts(problem().solve(method, gap=0, rounds=45))
    path = tmp_path / "run"
    assert facts(broken(problem, method, path, [1, 9, 10, 11, 20, 40, 44], gap=0, rounds=45)) == whole


@pytest.mark.parametrize(("seed", "method"), thinned([61, 96, 121, 144], ITERATIVE, every=2), ids=named)
def test_breaks_between_repairs(seed, method, tmp_path):
    """Repairs remember a scale and a Slater centre, which cost messages to find; the schedule learns from them.

    Every method on two of the problems; on all with ``make test ARGS=--whole``.
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
    for at in (1, second - 1, second, second + 2, len(seen) - 1):
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


# ---- interruption ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("at", [0, 3, 5])
def test_an_interruption_leaves_a_checkpoint(at, tmp_path):
    """In the middle of a check, when half of it is recorded."""
    whole, left = chain(loss=gr.LogisticLoss).solve(gr.PrimalDual(polish=False), gap=1e-9), [at]

    def interrupt(record):
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt

    path = tmp_path / "run"
    problem = chain(loss=gr.LogisticLoss)
    first = problem.solve(gr.PrimalDual(polish=False), gap=1e-9, callback=interrupt, checkpoint=path)
    assert first.status == "interrupted"
    assert 0 < archive.read(path)[0]["values"][0]["tree"]["record"][1]["round"] <= first.rounds
    assert facts(problem.solve(gr.PrimalDual(polish=False), gap=1e-9, checkpoint=path)) == facts(whole)


@pytest.mark.parametrize("call", [1, 2, 25, 26])
def test_an_interruption_within_a_round(call, tmp_path, monkeypatch):
    """After the messages of the round are recorded."""
    from graphreg.engines import InProcess

    problem, path, true, count = chain(), tmp_path / "run", InProcess.exchange, iter(range(10**6))
    whole = problem.solve(gr.PrimalDual(), gap=0, rounds=40)

    def exchange(self, values):
        values = true(self, values)
        if next(count) == call - 1:
            raise KeyboardInterrupt
        return values

    monkeypatch.setattr(InProcess, "exchange", exchange)
    assert problem.solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=path).status == "interrupted"
    assert facts(problem.solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=path)) == facts(whole)


CHILD = """
import os, signal, sys
from factories import chain
import graphreg as gr
from graphreg.methods import _archive

path, what, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
owner, name = {"round": (gr.PrimalDual, "step"), "file": (_archive.np.lib.format, "write_array"),
               "place": (_archive.os, "replace")}[what]
true, calls = getattr(owner, name), iter(range(10**9))

def killing(*arguments, **options):
    if next(calls) == count:
        if what == "file":  # with half of an array on the disk
            arguments[0].write(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    return true(*arguments, **options)

setattr(owner, name, killing)
chain(n=20, loss=gr.LogisticLoss).solve(gr.PrimalDual(), gap=0, rounds=300, checkpoint=gr.Checkpoint(path, rounds=3))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("what", ["round", "file", "place"])
def test_a_killed_process_goes_on(what, tmp_path):
    """Killed in a round, in the middle of writing a file, and before it is put into its place."""

    def problem():
        return chain(n=20, loss=gr.LogisticLoss)

    path = tmp_path / "run"
    rounds = np.random.default_rng(["round", "file", "place"].index(what)).integers(20, 250)
    count = int(rounds if what == "round" else 10 * rounds // 3 if what == "file" else rounds // 3)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), what, str(count)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(TESTS)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    header = archive.read(path)[0]
    left = header["values"][0]["tree"]["record"][1]["round"]
    assert 3 <= left < 300
    if what == "round":
        assert rounds - 3 <= left <= rounds  # at most an interval is lost
    again = problem().solve(gr.PrimalDual(), gap=0, rounds=300, checkpoint=path)
    assert facts(again) == facts(problem().solve(gr.PrimalDual(), gap=0, rounds=300))
    assert [p.name for p in tmp_path.iterdir()] == ["run"]  # nothing else is left lying about


# ---- budgets ---------------------------------------------------------------------------------------------------------
def test_a_finished_run_goes_on_to_a_smaller_gap(tmp_path):
    path, problem, method = tmp_path / "run", chain(loss=gr.HuberLoss), gr.PrimalDual(polish=False)
    first = problem.solve(method, gap=1e-3, checkpoint=path)
    seen = []
    same = problem.solve(method, gap=1e-3, checkpoint=path, callback=seen.append)
    assert facts(same) == facts(first)
    assert not seen
    assert same.seconds >= first.trace.records[-1].seconds
    tighter = problem.solve(method, gap=1e-8, checkpoint=path)
    assert tighter.status == "certified"
    assert tighter.certificate.holds(1e-8)
    assert tighter.rounds > first.rounds
    assert [repr(r) for r in tighter.trace.records[: len(first.trace)]] == [repr(r) for r in first.trace.records]
    looser = problem.solve(method, gap=1e-2, checkpoint=path)
    assert looser.rounds == tighter.rounds
    state = iterate(method, problem.form, [tighter.rounds + 7])[0]
    exact = problem.solve(method, gap=0, rounds=tighter.rounds + 7, checkpoint=path)
    assert bits(exact.coef) == bits(method.point(state)[0])


def test_rounds_count_from_the_start(tmp_path):
    path, problem = tmp_path / "run", chain()
    problem.solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=path)
    assert problem.solve(gr.PrimalDual(), gap=0, rounds=50, checkpoint=path).ledger.rounds == 50
    with pytest.raises(CheckpointError, match="round 50, beyond the rounds=40"):
        problem.solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=path)


def test_seconds_count_from_the_start(tmp_path):
    path, problem = tmp_path / "run", chain(n=40, loss=gr.LogisticLoss)
    first = problem.solve(gr.PrimalDual(), gap=0, seconds=0.2, checkpoint=path)
    same = problem.solve(gr.PrimalDual(), gap=0, seconds=0.2, checkpoint=path)
    assert first.status == same.status == "budget"
    assert same.rounds == first.rounds
    more = problem.solve(gr.PrimalDual(), gap=0, seconds=0.4, checkpoint=path)
    assert more.rounds > first.rounds
    assert more.seconds > 0.4
    moments = [record.seconds for record in more.trace.records]
    assert moments == sorted(moments)


def written_rounds(monkeypatch):
    found, true = [], archive.write

    def write(path, header, arrays):
        found.append(header["values"][-1]["tree"]["record"][1]["round"])
        true(path, header, arrays)

    monkeypatch.setattr(archive, "write", write)
    return found


def test_the_interval_in_rounds(tmp_path, monkeypatch):
    found, path = written_rounds(monkeypatch), tmp_path / "run"
    chain().solve(gr.PrimalDual(), gap=0, rounds=35, checkpoint=gr.Checkpoint(path, seconds=None, rounds=10))
    assert found == [0, 10, 20, 30, 35]
    chain().solve(gr.PrimalDual(), gap=0, rounds=47, checkpoint=gr.Checkpoint(path, seconds=None, rounds=10))
    assert found == [0, 10, 20, 30, 35, 45, 47]
    chain().solve(gr.PrimalDual(), gap=0, rounds=47, checkpoint=path)
    assert len(found) == 7  # there was nothing new


def test_the_interval_in_seconds(tmp_path, monkeypatch):
    """By a clock that goes on by a quarter of a second with each look."""
    looks = iter(range(10**6))
    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(perf_counter=lambda: next(looks) / 4))
    found = written_rounds(monkeypatch)
    chain().solve(gr.PrimalDual(), gap=0, rounds=20, checkpoint=gr.Checkpoint(tmp_path / "run", seconds=2.0))
    assert found == [0, 8, 16, 20]


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


# ---- refusals --------------------------------------------------------------------------------------------------------
@pytest.fixture
def stored(tmp_path):
    """The checkpoint of a short run of `chain()`."""
    path = tmp_path / "run"
    chain().solve(gr.PrimalDual(), gap=0, rounds=20, checkpoint=path)
    return path


LABELS = [str(k) for k in range(8)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strength": 0.3}, r"strength of TotalVariation\(L2\) 1 \(0.3 here, 0.2 in the checkpoint\)"),
        ({"seed": 1}, "features of the samples of SquaredLoss 1"),
        ({"shift": 1e-15}, "features of the samples of SquaredLoss 1"),
        ({"loss": gr.HuberLoss}, "the losses"),
        ({"scale": "sum"}, "scales of the samples"),
        ({"penalty": gr.L1()}, "terms on edges"),
        ({"weight": 2.0}, "edge weights"),
        ({"n": 9}, r"number of nodes \(9 here, 8 in the checkpoint\)"),
        ({"labels": LABELS}, "labels of the nodes"),
    ],
)
def test_another_problem(options, said, stored):
    before = stored.read_bytes()
    with pytest.raises(CheckpointError, match=f"of another problem.*{said}.*remove this one to begin anew") as caught:
        chain(**options).solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)
    assert caught.value.differences
    assert stored.read_bytes() == before


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        (
            {"penalty": gr.Ball(1.0), "strength": 1},
            {"penalty": gr.Ball(2.0), "strength": 1},
            r"radius of Ball.*2\.0 here",
        ),
        ({"penalty": gr.HuberNorm(1.0)}, {"penalty": gr.HuberNorm(0.5)}, "delta of HuberNorm"),
        ({"penalty": gr.Quadratic(np.eye(3))}, {"penalty": gr.Quadratic(2 * np.eye(3))}, "Q of Quadratic"),
        ({"penalty": Tilted(1.0)}, {"penalty": Tilted(2.0)}, "slope of Tilted"),
        ({"loss": gr.HuberLoss, "delta": 1.0}, {"loss": gr.HuberLoss, "delta": 2.0}, "delta of HuberLoss"),
    ],
)
def test_other_parameters(one, two, said, tmp_path):
    path = tmp_path / "run"
    chain(**one).solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path)
    with pytest.raises(CheckpointError, match=said):
        chain(**two).solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path)
    assert chain(**one).solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path).rounds == 9


def test_functions_are_told_apart(tmp_path):
    import cvxpy as cp

    def problem(factor):
        return chain(n=2, penalty=gr.Penalty.from_cvxpy(lambda z: factor * cp.norm(z, 1)))

    path = tmp_path / "run"
    problem(1.0).solve(gr.PrimalDual(), gap=0, rounds=3, checkpoint=path)
    assert problem(1.0).solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path).rounds == 5
    with pytest.raises(CheckpointError, match="function of"):
        problem(2.0).solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path)


def test_a_parameter_of_another_value(tmp_path):
    path, strength = tmp_path / "run", gr.Parameter(0.2, name="lam")
    problem = chain(strength=strength)
    problem.solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path)
    strength.value = 0.25
    with pytest.raises(CheckpointError, match=r"strength of .* \(0.25 here, 0.2 in the checkpoint\)"):
        problem.solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path)
    strength.value = 0.2
    assert problem.solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path).rounds == 9


def test_another_method(stored):
    with pytest.raises(CheckpointError, match=r"of another method.*relaxation \(1.5 here, 1.8 in the checkpoint\)"):
        chain().solve(gr.PrimalDual(relaxation=1.5), gap=0, rounds=30, checkpoint=stored)
    for other in ITERATIVE:
        if not (isinstance(other, gr.PrimalDual) or other.missing(chain().form)):
            with pytest.raises(CheckpointError, match=r"of another method.*the class"):
                chain().solve(other, gap=0, rounds=30, checkpoint=stored)


def test_exact_takes_none(tmp_path):
    with pytest.raises(CheckpointError, match="a conic solver cannot be resumed"):
        chain().solve(checkpoint=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def rewritten(path, **changes):
    header, arrays = archive.read(path)
    archive.write(path, {**header, **changes}, arrays)


def test_another_format(stored):
    rewritten(stored, version=99)
    with pytest.raises(CheckpointError, match=r"format version 99.*reads and writes 3"):
        chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)
    rewritten(stored, version=3, format="something else")
    with pytest.raises(CheckpointError, match="no checkpoint of graphreg"):
        chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)


def test_other_versions_are_said(stored):
    whole = chain().solve(gr.PrimalDual(), gap=0, rounds=30)
    assert "bits" not in chain().solve(gr.PrimalDual(), gap=0, rounds=25, checkpoint=stored).message
    rewritten(stored, versions={**archive.read(stored)[0]["versions"], "numpy": "1.99"})
    again = chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)
    assert "numpy 1.99, here" in again.message
    assert "last bits may differ" in again.message
    assert bits(again.coef) == bits(whole.coef)


def test_a_file_that_is_no_checkpoint(tmp_path):
    path = tmp_path / "run"
    for content in (b"", b"text", os.urandom(2000)):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="damaged checkpoint, or none"):
            chain().solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path)
        assert path.read_bytes() == content
    with path.open("wb") as file:
        np.savez(file, mine=np.arange(3))
    with pytest.raises(CheckpointError, match="no checkpoint of graphreg"):
        chain().solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path)


def test_every_truncation_is_noticed(stored, tmp_path):
    content, cut = stored.read_bytes(), tmp_path / "cut"
    for size in [*range(0, len(content), len(content) // 60), len(content) - 1]:
        cut.write_bytes(content[:size])
        with pytest.raises(CheckpointError):
            chain().solve(gr.PrimalDual(), gap=0, rounds=20, checkpoint=cut)


def test_every_damaged_byte_is_noticed_or_harmless(stored, tmp_path):
    """Where a byte is turned the file is refused, or is read as it was: dates and the like."""
    content, cut, harmless = bytearray(stored.read_bytes()), tmp_path / "cut", 0
    true = contents(stored)
    places = np.random.default_rng(0).integers(0, len(content), 400)
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << int(place % 8)
        cut.write_bytes(changed)
        try:
            assert contents(cut) == true
            harmless += 1
        except CheckpointError:
            pass
    assert harmless < len(places) // 4


def test_a_header_that_makes_no_sense(stored):
    header = archive.read(stored)[0]
    tree = header["values"][0]["tree"]
    trees = [
        ({"record": ["os:system", {}]}, "does not have"),
        ({"record": [tree["record"][0], {"round": 1}]}, "does not have"),
        ({"array": 10**6}, "cannot be read"),
        ({"magic": 1}, "cannot be read"),
        ({"tuple": 3}, "cannot be read"),
        (17, "cannot be read"),
    ]
    for wrong, said in trees:
        rewritten(stored, values=[{**header["values"][0], "tree": wrong}])
        with pytest.raises(CheckpointError, match=said):
            chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)
    for values in (None, [{}], [{**header["values"][0], "arrays": 10**6}]):
        rewritten(stored, values=values)
        with pytest.raises(CheckpointError, match="cannot be read"):
            chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": 3}, "a path"),
        ({"path": b"run"}, "a path"),
        ({"path": ""}, "empty"),
        ({"path": "run", "seconds": 0}, "seconds"),
        ({"path": "run", "seconds": np.inf}, "seconds"),
        ({"path": "run", "seconds": True}, "seconds"),
        ({"path": "run", "rounds": 0}, "rounds"),
        ({"path": "run", "rounds": 2.5}, "rounds"),
        ({"path": "run", "seconds": None}, "never written"),
    ],
)
def test_wrong_arguments(arguments, said):
    with pytest.raises(CheckpointError, match=said):
        gr.Checkpoint(**arguments)


def test_wrong_places(tmp_path):
    with pytest.raises(CheckpointError, match="a path"):
        chain().solve(gr.PrimalDual(), checkpoint=3)
    with pytest.raises(CheckpointError, match="is a folder"):
        chain().solve(gr.PrimalDual(), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="does not exist; create it"):
        chain().solve(gr.PrimalDual(), checkpoint=tmp_path / "no" / "run")


# ---- what a file is of -----------------------------------------------------------------------------------------------
def test_a_file_of_another_kind(tmp_path):
    lam = gr.Parameter(0.2, name="lam")
    problem, path = chain(strength=lam), tmp_path / "path"
    gr.path(problem, [0.1, 0.2], method=gr.PrimalDual(), gap=1e-2, checkpoint=path)
    with pytest.raises(CheckpointError, match="no checkpoint of a run but of a path"):
        problem.solve(gr.PrimalDual(), checkpoint=path)
    rewritten(path, version=2, format="graphreg path", versions={})
    with pytest.raises(CheckpointError, match=r"format version 2.*reads and writes 3; go on with graphreg as it was"):
        gr.path(problem, [0.1, 0.2], method=gr.PrimalDual(), gap=1e-2, checkpoint=path)


def test_a_seed_of_numpy_is_a_seed(tmp_path):
    budget = {"gap": 0, "rounds": 5, "checkpoint": tmp_path / "run"}
    assert chain().solve(gr.PrimalDual(), seed=np.int64(3), **budget).seed == 3
    assert chain().solve(gr.PrimalDual(), **{**budget, "rounds": 7}).seed == 3


def test_the_same_is_the_same_whatever_its_type_and_layout():
    base = np.arange(6.0).reshape(2, 3)
    assert entry(base) == entry(np.asfortranarray(base)) == entry(np.repeat(base, 2, axis=1)[:, ::2])
    assert entry(1) == entry(1.0) == entry(np.float64(1)) == entry(np.int32(1)) == "1.0"
    assert entry({"a": 1, "b": 2}) == entry({"b": 2, "a": 1})
    assert entry({"u", "v", "w"}) == entry({"w", "v", "u"})
    # as on every machine, with every version of numpy
    assert entry(np.arange(3.0)) == "#1d4d280ada4eeba6bf8c406316f292fc"
    assert entry(("a", 1, None, {"x": (2.5, True)})) == "#e60ef7539abf63f6076d17953b05b98f"


def test_what_is_another_is_told_apart():
    def of(k, shift=0.0):
        return lambda z, at=shift: k * z + at

    values = [(1, 2), (2, 1), ((1,), 2), (1, "2"), (1, None), (True, 2), "at 0x1", "at 0x2", ("at 0x1",), ("at 0x2",)]
    values += [
        np.arange(2),
        np.arange(2.0),
        np.arange(2.0)[None],
        of(1.0),
        of(2.0),
        of(1.0, 1.0),
        Tilted(1.0),
        Tilted(2.0),
    ]
    assert len({entry(value) for value in values}) == len(values)
    assert entry(of(1.0)) == entry(of(1.0))


# ---- atomicity -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("part", ["write_array", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(part, stored, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    before = stored.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format if part == "write_array" else os, part, full)
        with pytest.raises(CheckpointError, match="could not be written: No space left"):
            chain().solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=stored)
    assert stored.read_bytes() == before
    assert [p.name for p in stored.parent.iterdir()] == [stored.name]
    again = chain().solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=stored)
    assert facts(again) == facts(chain().solve(gr.PrimalDual(), gap=0, rounds=40))


def test_an_interruption_of_the_writing_leaves_a_whole_file(stored, monkeypatch):
    true, rest = os.replace, [KeyboardInterrupt()]

    def replace_once(*arguments):
        if rest:
            raise rest.pop()
        true(*arguments)

    monkeypatch.setattr(os, "replace", replace_once)
    run = chain().solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=gr.Checkpoint(stored, rounds=5))
    assert run.status == "interrupted"
    again = chain().solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=stored)
    assert facts(again) == facts(chain().solve(gr.PrimalDual(), gap=0, rounds=40))


def test_a_link_stays_a_link(stored, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(stored)
    assert chain().solve(gr.PrimalDual(), gap=0, rounds=25, checkpoint=link).rounds == 25
    assert link.is_symlink()
    assert chain().solve(gr.PrimalDual(), gap=0, rounds=25, checkpoint=stored).rounds == 25


# ---- what a state consists of ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("seed", "method"), thinned(SEEDS, ITERATIVE, every=3), ids=named)
def test_the_state_of_every_method_can_be_kept(seed, method, tmp_path):
    """Of every method on some of the problems; on all of them with ``make test ARGS=--whole``."""
    form = random_problem(seed).problem.form
    if method.missing(form):
        pytest.skip(f"{method.name} does not apply")
    if isinstance(method, AbstractBaseline):
        form, method = method.target(form), method.iteration
    for state in iterate(method, form, [0, 1, 12]):
        assert_identical(carried(state, tmp_path), state)


@dataclass(frozen=True)
class Everything:
    numbers: tuple
    arrays: list
    names: dict
    streams: tuple
    nothing: None = None


def test_everything_comes_back_as_it_was(tmp_path):
    base = np.arange(24.0).reshape(4, 6)
    once = np.random.default_rng(5)
    once.spawn(2)
    arrays = [
        np.array([0.0, -0.0, np.nan, np.inf, 5e-324]),
        np.asfortranarray(base),
        base[::2, ::-1],
        base.T,
        np.broadcast_to(np.array([1.0, 2.0]), (3, 2)),
        np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(3, dtype=np.int32),
        np.array([True, False]),
        np.array(2.5),
        np.zeros((0, 3)),
        np.arange(2.0).astype(">f8"),
    ]
    numbers = (1, True, 2**80, 0.1, -0.0, float("inf"), float("nan"), np.float64(0.1), np.float32(0.1), np.int32(7))
    value = Everything(
        (*numbers, (), ((None,), "text")),
        arrays,
        {"a": [1, (2,)], "b": {}},
        (once, np.random.Generator(np.random.MT19937(3)), np.random.SeedSequence(4)),
    )
    once.integers(2**20, size=3, dtype=np.uint32)
    back = carried(value, tmp_path)
    assert_identical(back, replace(value, streams=back.streams))
    for one, two in zip(value.streams[:2], back.streams[:2], strict=True):
        assert_identical(one, two)
        assert bits(one.standard_normal(9)) == bits(two.standard_normal(9))
    assert value.streams[0].spawn(1)[0].integers(10**9) == back.streams[0].spawn(1)[0].integers(10**9)
    assert bits(value.streams[2].generate_state(4)) == bits(back.streams[2].generate_state(4))


def test_one_object_is_one_object_again(tmp_path):
    array, stream = np.arange(3.0), np.random.default_rng(0)
    one, two, first, second, other = carried((array, array, stream, stream, array.copy()), tmp_path)
    assert one is two
    assert first is second
    assert one is not other


def test_a_layout_is_kept():
    array = np.arange(60.0).reshape(3, 4, 5)[::-1, :, ::2]
    again = laid_out(np.ascontiguousarray(array), layout(array))
    assert again.strides == array.strides
    assert np.array_equal(again, array)
    assert layout(np.zeros((3, 4))) is None


class Hidden:
    pass


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Hidden(), r"memory\[1\] is a .*Hidden.*cannot hold"),
        (np.array([None, 1]), r"memory\[1\] is a numpy:ndarray"),
        (np.ma.array([1.0]), "MaskedArray"),
        ({1: 2}, "dict"),
        (lambda: 0, "function"),
        (frozenset(), "frozenset"),
    ],
)
def test_what_cannot_be_kept_is_named(value, said):
    with pytest.raises(CheckpointError, match=said):
        Packed.of((0, value), "memory")


def test_a_state_that_cannot_be_kept_is_refused_before_the_first_round(tmp_path):
    @dataclass(frozen=True)
    class Local:
        view: object
        w: np.ndarray

    class Method(AbstractIteration):
        def missing(self, form):
            return ()

        def init(self, view, start):
            return Local(view, np.zeros(view.form.shape))

        def step(self, state):
            raise AssertionError("no round is to be run")

        def point(self, state):
            return state.w, None, None

    with pytest.raises(CheckpointError, match=r"Local.*importable"):
        chain().solve(Method(), rounds=3, checkpoint=tmp_path / "run")
    assert not list(tmp_path.iterdir())


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
