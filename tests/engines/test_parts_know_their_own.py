"""No part has what is another's: data that are looked for in all that it can reach, and in the memory of its process;
and what crosses between parts, number by number."""

from __future__ import annotations

import gc
import os
import time
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
import pytest
from actor_cases import sentinels_in
from mpi_jobs import LAUNCHER, begun, can_meet, ended
from reachable import arrays_of, holding, most_rows
from test_local_parts import Country, together

import graphreg as gr
from graphreg.distributed.parts import bounds, local
from graphreg.distributed.parts import wire as wires
from graphreg.distributed.parts.engine import PartEngine
from graphreg.distributed.parts.joint import JointRun, solve_jointly
from graphreg.running import Budget

N, SITES, M, D = 60, 4, 4, 3
SITE = np.repeat(np.arange(SITES), N // SITES)


def ring(X=None, y=None):
    """Sixty nodes in a ring, four sites of neighbours; four samples of small whole numbers at each node."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N * M, D)) if X is None else X
    y = rng.standard_normal(N * M) if y is None else y
    return Country(list(range(N)), [(k, (k + 1) % N) for k in range(N)], X, y, np.repeat(np.arange(N), M))


def solved(country, wires=lambda wire: wire, method=None, **budget):
    given = {"gap": 0.0, "rounds": 12, "seed": 1, "progress": False} | budget

    def work(k, wire):
        own = set(np.flatnonzero(k == SITE).tolist())
        form = country.problem(own).form.frozen()
        return solve_jointly(form, own, method or gr.PrimalDual(), Budget(**given), wires(wire))

    return together(SITE.tolist(), work)


# ---- what a part can reach -------------------------------------------------------------------------------------------
PLACES = {
    "nowhere": lambda run, leak: None,
    "an attribute": lambda run, leak: setattr(run.engine, "leak", leak),
    "a closure": lambda run, leak: setattr(run.bounds, "leak", lambda: leak),
    "the array of a view": lambda run, leak: run.view.form.memory.update(leak=(0, leak[:0])),
    "bytes": lambda run, leak: run.trace.records.append({"leak": [leak.tobytes()]}),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_part_reaches_its_own_data_alone(place, monkeypatch):
    """And a leak is found wherever it is."""
    country, found, step = ring(), {}, gr.PrimalDual.step
    theirs = {k: np.concatenate([country.X[SITE[country.node] == k].ravel(), country.y[SITE[country.node] == k]])
              for k in range(SITES)}  # fmt: skip

    def audited(self, state):
        if state.round == 10:
            k = state.view.engine.wire.me
            run = next(each for each in gc.get_objects() if isinstance(each, JointRun) and each.view is state.view)
            if k == 2:
                PLACES[place](run, theirs[0].copy())
            arrays = arrays_of(run, state)
            found[k] = [j for j in range(SITES) if holding(arrays, theirs[j])], most_rows(arrays)
        return step(self, state)

    monkeypatch.setattr(gr.PrimalDual, "step", audited)
    solved(country)
    part, samples = N // SITES + 2, M * N // SITES
    assert {k: held for k, (held, _) in found.items()} == {
        k: [0, 2] if k == 2 and place != "nowhere" else [k] for k in range(SITES)
    }
    if place == "nowhere":
        assert samples >= part
        assert all(rows <= samples and longest <= samples * D for _, (rows, longest) in found.values())
    assert samples * D < N * M  # the whole problem's arrays are longer


SCRIPT = """
import os, time
import numpy as np
import graphreg as gr
from mpi4py import MPI
from graphreg import mpi
rank = MPI.COMM_WORLD.rank
rng = np.random.default_rng([7, rank])
X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
own = range(10 * rank, 10 * rank + 10)
edges = [(k % 30, (k + 1) % 30) for k in range(10 * rank - 1, 10 * rank + 10)]
data = gr.NodeData.from_arrays(X, y, np.repeat(np.arange(own.start, own.stop), 4))
model = gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(gr.Graph.from_edges(edges), gr.L2()))
step, leak = gr.PrimalDual.step, []

def watched(self, state):
    for k in (10, 20):
        if state.round == k:
            open(f"pid-{k}-{rank}", "w").write(str(os.getpid()))
            while not os.path.exists(f"go-{k}"):
                time.sleep(0.01)
            if k == 10:
                leak.append(MPI.COMM_WORLD.bcast(y, root=1))
    return step(self, state)

gr.PrimalDual.step = watched
mpi.solve(model, own, gap=0, rounds=25)
"""


@pytest.mark.skipif(find_spec("mpi4py") is None or LAUNCHER is None, reason="there is no MPI")
@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="memory is read by /proc")
def test_a_rank_has_the_data_of_its_own_site_in_its_memory_and_no_others(tmp_path):
    """Found by reading all memory of all processes in a round; and so are targets that were sent to the others."""
    if why := can_meet():
        pytest.skip(why)
    draws = [np.random.default_rng([7, rank]) for rank in range(3)]
    X, y = zip(*((rng.standard_normal((40, 2)), rng.standard_normal(40)) for rng in draws), strict=True)
    sentinels = [each[17].tobytes() for each in (*X, *y)]
    (tmp_path / "script.py").write_text(SCRIPT)
    job, held = begun(3, str(tmp_path / "script.py"), folder=tmp_path), {}
    for k in (10, 20):
        files = [tmp_path / f"pid-{k}-{rank}" for rank in range(3)]
        end = time.monotonic() + 40
        while not all(file.exists() and file.read_text() for file in files):
            assert time.monotonic() < end, ended(job, 1)
            time.sleep(0.02)
        held[k] = [sentinels_in(int(file.read_text()), sentinels) for file in files]
        (tmp_path / f"go-{k}").touch()
    done = ended(job)
    assert done.returncode == 0, done.stderr
    assert held[10] == [[0, 3], [1, 4], [2, 5]]
    assert held[20] == [[0, 3, 4], [1, 4], [2, 4, 5]]


# ---- what crosses ----------------------------------------------------------------------------------------------------
CODES = "numbers of nodes, digests"


@dataclass
class Recorder:
    """A wire that notes every number that its part sends."""

    wire: object
    kind: list = field(default_factory=list)  # of what is being sent
    sent: list = field(default_factory=list)  # (kind, to whom, numbers)

    def __post_init__(self):
        self.me, self.count = self.wire.me, self.wire.count

    def swap(self, out, into):
        kind = self.kind[-1] if self.kind else "rows"
        self.sent += [(kind, other, np.array(values)) for other, values in out.items() if len(values)]
        return self.wire.swap(out, into)

    def largest(self, values):
        self.sent.append(("maximum", None, np.array(values)))
        return self.wire.largest(values)

    def total(self, values):
        self.sent.append(("sum", None, np.array(values)))
        return self.wire.total(values)


def recorded(country, monkeypatch, **budget):
    """The messages of all parts in a run, in order; and the answers."""
    recorders = {}

    def wire(each):
        recorders[each.me] = Recorder(each)
        return recorders[each.me]

    everyone = wires.everyone

    def noted(given, out):
        recorder = recorders[given.me]
        recorder.kind.append(CODES)
        try:
            return everyone(given, out)
        finally:
            recorder.kind.pop()

    for module in (wires, local, bounds):
        monkeypatch.setattr(module, "everyone", noted)
    found = solved(country, wire, **budget)
    return [recorders[k].sent for k in range(SITES)], found


def whole_numbers(seed):
    rng = np.random.default_rng(seed)
    return rng.integers(-8, 9, (N * M, D)).astype(float), rng.integers(-8, 9, N * M).astype(float)


def alike(one, other, rtol=0.0):
    """True where the same numbers cross in the same order, to an accuracy; digests are compared where that is the
    bit."""
    for mine, theirs in zip(one, other, strict=True):
        if [(kind, to, len(x)) for kind, to, x in mine] != [(kind, to, len(x)) for kind, to, x in theirs]:
            return False
        for (kind, _, x), (_, _, y) in zip(mine, theirs, strict=True):
            near = kind == CODES or np.allclose(x, y, 0.0, rtol * max(1.0, np.abs(x).max(initial=0.0)))
            if not (near if rtol else np.array_equal(x.view(np.int64), y.view(np.int64))):
                return False
    return True


HADAMARD = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2  # orthogonal, and exact
SIGNS = np.diag([1.0, -1.0, -1.0, 1.0])


def mixed(X, y, matrix, site=1):
    """Other samples at the nodes of a site, with the same X'X, X'y and y'y at each, to the last bit."""
    rows = np.repeat(site == SITE, M)
    blocks = np.where(rows[::M, None, None], matrix, np.eye(M))
    mix = lambda values: np.einsum("nij,nj...->ni...", blocks, values.reshape(N, M, *values.shape[1:]))  # noqa: E731
    return mix(X).reshape(X.shape), mix(y).reshape(y.shape)


@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.ADMM()], ids=lambda method: method.name)
def test_nothing_crosses_but_what_follows_from_moments(method, monkeypatch):
    """A squared loss knows its samples by X'X, X'y and y'y. Other samples with the same ones change nothing of what
    crosses: no bit where only signs of samples change, and rounding alone where all are mixed. Samples with other
    moments change it."""
    X, y = whole_numbers(3)
    before, _ = recorded(ring(X, y), monkeypatch, method=method)
    for matrix, rtol in ((SIGNS, 0.0), (HADAMARD, 1e-11)):
        other = mixed(X, y, matrix)
        changed = np.repeat(SITE == 1, M)
        assert (other[1] != y)[changed].mean() > 0.3
        assert np.array_equal(other[1][~changed], y[~changed])
        after, _ = recorded(ring(*other), monkeypatch, method=method)
        assert alike(before, after, rtol)
    y[np.flatnonzero(SITE == 1)[0] * M] += 1.0
    after, _ = recorded(ring(X, y), monkeypatch, method=method)
    assert not alike(before, after, 1e-11)


def test_a_number_that_should_not_cross_is_seen(monkeypatch):
    """The test above sees a part that sends a target along with its rows, or adds one to a sum."""
    X, y = whole_numbers(3)
    other, exchange, swapped = mixed(X, y, SIGNS), PartEngine.exchange, PartEngine.swapped

    def telling(self, sent, sizes):
        target = self.part.form.samples[0].y[-2]  # whose sign changes
        return swapped(self, {k: values + 1e-9 * target for k, values in sent.items()}, sizes)

    def adding(self, values, *given, **options):
        self.wire.largest(self.part.form.samples[0].y[-2:-1])
        return exchange(self, values, *given, **options)

    for name, leak in (("swapped", telling), ("exchange", adding)):
        with monkeypatch.context() as patch:
            patch.setattr(PartEngine, name, leak)
            before, after = (recorded(ring(*data), patch)[0] for data in ((X, y), other))
            assert not alike(before, after, 1e-11), name


@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.ADMM()], ids=lambda method: method.name)
def test_what_is_counted_is_what_was_sent(method, monkeypatch):
    """Messages and bytes of rows, from each part to each other, as the wire saw them."""
    sent, found = recorded(ring(), monkeypatch, method=method)
    messages, numbers = np.zeros((2, SITES, SITES), dtype=int)
    for k, each in enumerate(sent):
        for kind, to, values in each:
            if kind == "rows":
                messages[k, to] += 1
                numbers[k, to] += values.size
    for each in found:
        np.testing.assert_array_equal(each.sent.messages, messages)
        np.testing.assert_array_equal(each.sent.bytes, 8 * numbers)
    beyond = sum(values.size for each in sent for kind, _, values in each if kind == CODES)
    assert beyond < numbers.sum()
