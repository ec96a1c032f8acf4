"""Runs of sites that nobody has as a whole: their answers and bounds beside those of one machine."""

from __future__ import annotations

import contextlib
import json
import warnings

import numpy as np
import pytest
from test_local_parts import Country, together

import graphreg as gr
from graphreg.distributed.parts import config
from graphreg.distributed.parts.joint import solve_jointly
from graphreg.distributed.parts.keeping import SavedParts
from graphreg.distributed.parts.wire import BrokenOffError
from graphreg.errors import CheckpointError, DataError, MethodWarning
from graphreg.running import Budget


def owners(count, n=24, seed=0):
    return [*range(count), *np.random.default_rng(seed).integers(0, count, n - count).tolist()]


def jointly(country, owner, method, build=None, **budget):
    def work(k, wire):
        own = {i for i, it in enumerate(owner) if it == k}
        problem = (build or with_penalty)(country, own, k)
        labels = {country.labels[i] for i in own}
        return solve_jointly(problem.form.frozen(), labels, method, Budget(seed=1, progress=False, **budget), wire)

    return together(owner, work)


def with_penalty(country, own=None, order=None):
    return gr.Problem(country.problem(own, order).model + 1.0 * gr.NodePenalty(gr.SquaredL2()))


def coef_of(country, found):
    rows = {label: row for each in found for label, row in zip(each.labels, each.coef, strict=True)}
    return np.array([rows[label] for label in country.labels])


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_answer_and_its_bounds_are_those_of_one_machine(count, wild, whole):
    for seed in range(3 if whole else 1):
        country = Country.random(seed)
        if wild:
            country.X, country.y = country.X * [1e-6, 1e3, 1.0], 1e6 + 1e3 * country.y
        exact = with_penalty(country).solve(gr.PrimalDual(), gap=1e-12, on_failure="return").certificate
        found = jointly(country, owners(count), gr.PrimalDual(), gap=1e-8)
        for each in found:
            assert each.status == "certified", str(each)
            assert each.relative_gap <= 1e-8
            assert each.dual <= exact.primal
            assert each.primal >= exact.dual
            assert (each.dual, each.primal, each.rounds) == (found[0].dual, found[0].primal, found[0].rounds)
        form = with_penalty(country).form
        value = form.primal(coef_of(country, found)[[country.labels.index(label) for label in form.labels]])
        assert value == pytest.approx(found[0].primal, rel=1e-7)


def test_bounds_that_rest_on_own_terms_say_so(tmp_path):
    class Own(gr.SquaredL2):
        pass

    def ours(country, own=None, order=None):
        return gr.Problem(country.problem(own, order).model + 1.0 * gr.NodePenalty(Own()))

    for build, scope in ((ours, "own terms"), (with_penalty, "global")):
        for each in jointly(Country.random(0), owners(2), gr.PrimalDual(), build, gap=1e-6):
            assert (each.status, each.scope) == ("certified", scope)
            assert (f"\n  {each.note}" in str(each)) == ("Own" in each.note) == (scope == "own terms")
            each.save(tmp_path / scope)
        assert SavedParts.open(tmp_path / scope).summary["scope"] == scope


def test_the_bits_do_not_depend_on_the_sites():
    country = Country.random(3)
    alone = jointly(country, owners(1), gr.PrimalDual(), gap=1e-9)
    for count in (2, 3):
        found = jointly(country, owners(count), gr.PrimalDual(), gap=1e-9)
        np.testing.assert_array_equal(coef_of(country, found), coef_of(country, alone))


def test_flows_that_two_sites_do_not_share_prove_nothing(monkeypatch):
    """A bound rests on both ends of an edge knowing the same flow."""
    country = Country.random(4)
    point = gr.PrimalDual.point

    def apart(self, state):
        w, flows, prices = point(self, state)
        return w, tuple(u * (1.0 + 1e-3 * (state.view.ids[0] % 7)) for u in flows), prices

    monkeypatch.setattr(gr.PrimalDual, "point", apart)
    found = jointly(country, owners(3), gr.PrimalDual(), gap=1e-1, rounds=50)
    assert all(each.status == "no_certificate" and each.dual == -np.inf for each in found)


def test_what_crossed_is_counted():
    country = Country.random(5)
    found = jointly(country, owners(3), gr.PrimalDual(balance=1.0), gap=0, rounds=10)
    messages = found[0].sent.messages
    assert (np.diag(messages) == 0).all()
    assert (messages == messages.T).all()  # every part hears from whom it tells
    assert (messages[~np.eye(3, dtype=bool)] >= 10).all()


def test_files(tmp_path):
    country = Country.random(6, names=True)
    found = jointly(country, owners(3), gr.PrimalDual(), gap=1e-6)
    for each in found:
        each.save(tmp_path)
    saved = SavedParts.open(tmp_path)
    assert saved.summary["status"] == "certified"
    assert saved.summary["n"] == 24
    for label, row in zip(country.labels, coef_of(country, found), strict=True):
        np.testing.assert_array_equal(saved[label], row)
    (tmp_path / "part-00001.npz").unlink()
    with pytest.raises(DataError, match=r"part-00001\.npz"):
        SavedParts.open(tmp_path)


def test_time_that_is_up():
    found = jointly(Country.random(8), owners(2), gr.PrimalDual(), gap=1e-15, seconds=0.2, rounds=10**6)
    assert {each.status for each in found} <= {"budget", "certified"}
    assert len({each.rounds for each in found}) == 1


# ---- checkpoints -----------------------------------------------------------------------------------------------------
class KilledError(Exception):
    pass


@pytest.mark.parametrize("count", [1, 3])
def test_a_run_that_was_killed_goes_on_with_the_same_bits(count, tmp_path, monkeypatch):
    country, rng = Country.random(9), np.random.default_rng(count)
    given = {"gap": 1e-9, "checkpoint": gr.Checkpoint(tmp_path / "run", rounds=7, seconds=None)}
    alone = jointly(country, owners(count), gr.PrimalDual(), gap=1e-9)
    step = gr.PrimalDual.step
    for _ in range(4):  # one part dies at a random moment
        left = {"rounds": int(rng.integers(5, 40))}

        def dies(self, state, left=left):
            if state.view.whole_graph.own[0] and state.view.form.n:
                left["rounds"] -= 1
                if left["rounds"] < 0:
                    raise KilledError
            return step(self, state)

        monkeypatch.setattr(gr.PrimalDual, "step", dies)
        with contextlib.suppress(KilledError, BrokenOffError):
            jointly(country, owners(count), gr.PrimalDual(), **given)
        monkeypatch.setattr(gr.PrimalDual, "step", step)
    steps = []
    monkeypatch.setattr(gr.PrimalDual, "step", lambda self, state: steps.append(1) or step(self, state))
    begun = json.loads((tmp_path / "run" / "manifest.json").read_text())["round"]
    found = jointly(country, owners(count), gr.PrimalDual(), **given)
    assert begun >= 7
    assert len(steps) == count * (found[0].rounds - begun)  # what was kept was not done again
    for mine, theirs in zip(found, alone, strict=True):
        np.testing.assert_array_equal(mine.coef, theirs.coef)
        assert (mine.rounds, mine.dual, mine.primal) == (theirs.rounds, theirs.dual, theirs.primal)
        np.testing.assert_array_equal(mine.sent.messages, theirs.sent.messages)
    again = jointly(country, owners(count), gr.PrimalDual(), **given)  # it is over
    np.testing.assert_array_equal(again[0].coef, alone[0].coef)


def test_a_checkpoint_of_another_run(tmp_path):
    country = Country.random(10)
    given = {"checkpoint": gr.Checkpoint(tmp_path / "run", rounds=5, seconds=None)}
    jointly(country, owners(2), gr.PrimalDual(), rounds=20, gap=0, **given)
    with pytest.raises(CheckpointError, match="2 parts, and this one has 3"):
        jointly(country, owners(3), gr.PrimalDual(), **given)
    with pytest.raises(CheckpointError, match="another method"):
        jointly(country, owners(2), gr.ADMM(), **given)
    with pytest.raises(CheckpointError, match="another problem"):
        jointly(country, owners(2, seed=5), gr.PrimalDual(), **given)
    path = next((tmp_path / "run").glob("part-00001*"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointError, match="damaged, or of another run"):
        jointly(country, owners(2), gr.PrimalDual(), **given)


def test_a_warning_where_dealing_out_hardly_pays(monkeypatch):
    """On graphs that are large, of whose nodes a part works mostly with those of others; said once."""
    monkeypatch.setattr(config, "LARGE", 20)
    crowded = Country.random(11)
    crowded.edges = [(i, j) for i in range(24) for j in range(i)]
    with pytest.warns(MethodWarning, match=r"nodes of others for each of its own") as told:
        jointly(crowded, owners(3), gr.PrimalDual(), rounds=5)
    assert len(told) == 1
    line = Country.random(12)
    line.edges = [(i, i + 1) for i in range(23)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jointly(line, [0] * 12 + [1] * 12, gr.PrimalDual(), rounds=5)
        monkeypatch.setattr(config, "LARGE", 25)
        jointly(crowded, owners(3), gr.PrimalDual(), rounds=5)
