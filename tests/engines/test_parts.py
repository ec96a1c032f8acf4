"""Methods on parts of a graph: the bits of whole arrays, for any number of parts, from what parts send and no more."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from actor_cases import FIXED, ITERATIONS, KINDS, Breaking, Run, on_arrays, problem, row, whole
from factories import named, thinned
from test_local_parts import together

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.distributed.parts import part_of
from graphreg.distributed.parts.config import owners
from graphreg.distributed.parts.engine import PartEngine
from graphreg.distributed.parts.wire import ThreadWire
from graphreg.errors import CheckpointError, FailedError, MethodError
from graphreg.network import arcs_of
from graphreg.terms import design

ROUNDS = 15
COUNTS = (1, 2, 3, 5)
SITES = dict(zip("abcdefg", [0, 0, 1, 1, 1, 2, 2], strict=True))  # the node "c" is the first of its part


def by_parts(method, form, engine, rounds=ROUNDS, seed=1):
    view = whole(form, seed)
    with engine.hosting(method, form, view.engine.ledger.arcs, seed) as coordinator:
        state = coordinator.init(view, None)
        points = [coordinator.point(state)]
        for _ in range(rounds):
            state = coordinator.step(state)
            points.append(coordinator.point(state))
        return Run(points, coordinator.gathered(state), view.engine.ledger)


def listed(arrays):
    return [arrays] if isinstance(arrays, np.ndarray) else list(arrays or ())


def same(one, other):
    """The same bits, and the same messages."""
    for mine, theirs in zip(one.points, other.points, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert (a is None) == (b is None)
            for x, y in zip(listed(a), listed(b), strict=True):
                np.testing.assert_array_equal(x, y)
    assert one.gathered.keys() == other.gathered.keys()
    for key, value in one.gathered.items():
        np.testing.assert_array_equal(other.gathered[key], value)
    assert one.ledger == other.ledger
    assert one.ledger.by_node().equals(other.ledger.by_node())


def compare(method, form, counts=COUNTS):
    arrays = on_arrays(method, form, ROUNDS)
    for count in counts:
        same(arrays, by_parts(method, form, gr.Parts(count)))


@pytest.mark.parametrize(("kind", "method"), thinned(KINDS, [*ITERATIONS, *FIXED], every=7), ids=named)
def test_parts_have_the_bits_of_the_arrays(kind, method):
    form = problem(kind, n=12).form.frozen()
    if method.missing(form) or type(method).judge is not gr.AbstractIteration.judge:
        pytest.skip("the method does not apply")
    compare(method, form)


HIERARCHICAL = gr.AsyncL2GD, gr.AsyncAL2SGD  # random problems have no hierarchies


@pytest.mark.parametrize("method", [each for each in ITERATIONS if not isinstance(each, HIERARCHICAL)], ids=named)
def test_on_random_problems(method, whole):
    """Sizes, numbers of samples, losses and penalties of all kinds; twenty of them with ``make test ARGS=--whole``."""
    compared = 0
    for seed in range(120) if whole else (70, *range(ITERATIONS.index(method), 70, 19)):  # a consensus, and others
        form = random_problem(seed).problem.form.frozen()
        if not method.missing(form) and type(method).judge is gr.AbstractIteration.judge:
            compare(method, form, COUNTS if whole else (3,))
            compared += 1
        if compared == 20:
            break
    assert compared or type(method).judge is not gr.AbstractIteration.judge


def test_products_in_stacks(monkeypatch):
    """A part is multiplied as the whole is, however small it is itself."""
    monkeypatch.setattr(design, "LARGE", 100)
    compare(gr.PrimalDual(), problem("logistic", n=12, m=9).form.frozen())


def test_answers_and_sites():
    model = problem("total variation", n=12)
    alone = model.solve(gr.PrimalDual(polish=False), gap=1e-8)
    sites = {i: "north" if i % 3 else "south" for i in range(12)}
    for engine in (gr.Parts(4), gr.Parts(sites=sites)):
        found = model.solve(gr.PrimalDual(polish=False), gap=1e-8, engine=engine)
        assert found.status == "certified"
        assert found.rounds == alone.rounds
        np.testing.assert_array_equal(found.coef, alone.coef)
        assert found.ledger == alone.ledger


def test_latent_nodes_go_where_their_neighbours_are():
    model = problem("hierarchy", n=12)
    sites = {i: i // 4 for i in range(12)}
    found = model.solve(gr.PrimalDual(polish=False), engine=gr.Parts(sites=sites))
    assert found.status == "certified"


def test_a_part_is_sent_what_its_neighbours_send_and_no_more(monkeypatch):
    """Rows of nodes next to the part alone, and of these the coordinates that an edge couples."""
    form = problem("features", n=12).form.frozen()  # x1 is coupled nowhere
    sent = []
    swap = ThreadWire.swap

    def watched(self, out, into):
        sent.append({(self.me, other): values.size for other, values in out.items()})
        return swap(self, out, into)

    exchange = PartEngine.exchange
    seen = []

    def noted(self, values, along=None, **options):
        out = exchange(self, values, along, **options)
        own = self.part.whole.own
        if options.get("parameters", True):
            seen.append(np.isnan(out[~own, 1]).all() and not np.isnan(out[~own][:, [0, 2]]).any())
        return out

    monkeypatch.setattr(ThreadWire, "swap", watched)
    monkeypatch.setattr(PartEngine, "exchange", noted)
    by_parts(gr.PrimalDual(balance=1.0), form, gr.Parts(3), rounds=4)
    assert seen
    assert all(seen)
    arcs = arcs_of(form)
    owner = owners(form, arcs, 3, None)
    border = {(a, b): len(np.unique(arcs.source[(owner[arcs.source] == a) & (owner[arcs.target] == b)]))
              for a in range(3) for b in range(3) if a != b}  # fmt: skip
    for each in sent:
        for (a, b), size in each.items():
            assert size in (0, 2 * border[a, b]) or size <= 15  # the pieces of a sum


def test_who_sends_nothing_is_not_heard_of():
    """Along some arcs alone, only the rows of nodes at their beginnings cross."""
    form = problem("total variation", n=12).form.frozen()
    arcs, owner = arcs_of(form), np.arange(12) // 6

    def work(k, wire):
        part = part_of(form, arcs, owner == k)
        engine = PartEngine(part, owner[part.whole.ids], wire)
        local = arcs_of(part.form)
        sends = part.whole.ids[local.source] % 2 == 0
        out = engine.exchange(np.tile(part.whole.ids[:, None] * 1.0, (1, 3)), sends)
        return part, out

    for part, out in together(owner.tolist(), work):
        far = ~part.whole.own
        assert far.any()
        even = part.whole.ids % 2 == 0
        assert np.isnan(out[far & ~even]).all()
        np.testing.assert_array_equal(out[far & even][:, 0], part.whole.ids[far & even])


def test_a_part_holds_its_own_data_alone():
    form = problem("total variation", n=12).form.frozen()
    mine = np.arange(12) < 4
    part = part_of(form, arcs_of(form), mine)
    loss = part.form.samples[0].loss
    assert set(loss.data.labels) == {0, 1, 2, 3}
    assert len(loss.data.X) == 20
    assert all(mine[part.whole.ids[edge.tail]].any() for edge in part.form.edges)
    for edge in part.form.edges:
        ends = np.stack([part.whole.own[edge.tail], part.whole.own[edge.head]])
        assert ends.any(axis=0).all()


@pytest.mark.parametrize("how", ["raise", "refuse"])
def test_an_error_in_a_part_ends_the_run(how):
    error, said = (FailedError, "no reason") if how == "raise" else (MethodError, "not with me")
    with pytest.raises(error, match=said):
        row().solve(Breaking(balance=1.0, how=how), gap=0, rounds=10, engine=gr.Parts(sites=SITES))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("part ")]


def test_bad_arguments():
    model = problem("total variation")
    for given in (0, -1, 1.5, "two", None):
        with pytest.raises(MethodError, match="count"):
            gr.Parts(given)
    with pytest.raises(MethodError, match="sites"):
        gr.Parts(sites=[1, 2])
    with pytest.raises(MethodError, match=r"sites.*5"):
        model.solve(gr.PrimalDual(), engine=gr.Parts(sites=dict.fromkeys(range(5), 0)))
    with pytest.raises(MethodError, match="has no actors or parts"):
        model.solve(gr.IFCA(k=2), engine=gr.Parts(2))
    with pytest.raises(MethodError):
        model.solve(gr.Exact(), engine=gr.Parts(2))
    with pytest.raises(CheckpointError):
        model.solve(gr.PrimalDual(), engine=gr.Parts(2), checkpoint="run")


def test_more_parts_than_nodes():
    model = problem("total variation")
    found = model.solve(gr.PrimalDual(polish=False), engine=gr.Parts(50))
    np.testing.assert_array_equal(found.coef, model.solve(gr.PrimalDual(polish=False)).coef)


@pytest.mark.parametrize(("kind", "method"), thinned(KINDS, [*ITERATIONS, *FIXED], every=5), ids=named)
def test_a_part_may_have_no_nodes(kind, method, monkeypatch):
    """As where an MPI job has more processes than there are nodes."""
    form = problem(kind, n=6).form.frozen()
    if method.missing(form) or type(method).judge is not gr.AbstractIteration.judge:
        pytest.skip("the method does not apply")
    owner = np.resize([0, 2, 2, 0, 3, 3], form.n)
    monkeypatch.setattr("graphreg.distributed.parts.config.owners", lambda *_: owner)
    same(on_arrays(method, form, ROUNDS), by_parts(method, form, gr.Parts(4)))
