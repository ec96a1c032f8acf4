"""Actors under faults: what tolerates loss still ends at the optimum; resending changes nothing but the ledger."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from actor_cases import KINDS, by_actors, deviation, gap, on_arrays, problem, watch
from factories import thinned
from places import ROOT

import graphreg as gr
from graphreg.distributed.actors.faults import FaultPlan, Faults
from graphreg.distributed.actors.mailbox import Message, Received
from graphreg.errors import MethodError, MethodWarning, ModelError
from graphreg.methods.splitting import _lossy

METHOD = gr.PrimalDual(balance=1.0)
TARGET = 1e-9


def run(model, faults, method=METHOD, rounds=1500, seed=3, **options):
    return model.solve(method, gap=TARGET, rounds=rounds, seed=seed, engine=gr.Actors(faults=faults, **options))


# ---- loss ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", thinned(KINDS, every=4))
def test_a_fifth_of_all_messages_may_be_lost(kind):
    """On every fourth kind of problem; on all with ``make test ARGS=--whole``."""
    model = problem(kind)
    found = run(model, Faults(drop=0.2))
    assert found.status == "certified"
    assert gap(found) <= TARGET
    np.testing.assert_allclose(found.objective, model.solve(gap=1e-8).objective, rtol=2e-8)


@pytest.mark.parametrize(
    ("kind", "crash"), thinned(["total variation", "logistic", "features", "consensus", "tree"], [0.0, 0.01], every=5)
)
def test_fed_admm_tolerates_it_too(kind, crash):
    """Some with crashes, some without; each problem both ways with ``make test ARGS=--whole``."""
    assert run(problem(kind), Faults(drop=0.2, crash=crash), gr.FedADMM(), rounds=3000).status == "certified"


@pytest.mark.parametrize("options", [{"batch": 2}, {"kappa": 1.0}, {"availability": 0.5}, {"step_size": lambda t: 0.1}])
def test_fed_admm_with_noise_is_refused_under_loss(options):
    with pytest.raises(MethodError, match="full gradients and constant steps"):
        run(problem("squared"), Faults(drop=0.2), gr.FedADMM(**options))


@pytest.mark.parametrize("faults", [Faults(drop=0.5), Faults(delay=2, reorder=0.2, duplicate=0.3), Faults(crash=0.02)])
def test_other_faults(faults):
    assert run(problem("features"), faults).status == "certified"


def test_the_balance_may_adapt_and_restarts_are_left_out():
    found = run(problem("quantile"), Faults(drop=0.2), gr.PrimalDual(), rounds=3000)
    assert found.status == "certified"
    with pytest.raises(MethodError, match="restarts=True"):
        run(problem("quantile"), Faults(drop=0.2), gr.PrimalDual(restarts=True))


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_is_lost_the_round_is_the_plain_one(kind):
    form = problem(kind).form.frozen()
    method = gr.PrimalDual(restarts=False)
    actors = by_actors(method, form, 25, faults=Faults(drop=1e-300))  # lossy in name
    assert deviation(on_arrays(method, form, 25), actors) <= 1e-12


@pytest.mark.parametrize("kind", thinned(["total variation", "consensus", "features"], every=2))
def test_what_does_not_tolerate_loss_ends_elsewhere_and_says_so(kind):
    with pytest.warns(MethodWarning, match="ADMM is not known to tolerate lost messages"):
        found = run(problem(kind, n=12), Faults(drop=0.2), gr.ADMM(rho=1.0), rounds=200)
    assert found.status == "budget"
    assert gap(found) > 1e-3


@pytest.mark.parametrize("kind", ["features", "parts"])
def test_an_end_that_heard_nothing_keeps_its_fixed_point_variable(kind, monkeypatch):
    """x = w -+ s u, and where the other end was heard x+ = x + relaxation (r - s u_hat sign - w_hat)."""
    seen, method = watch(monkeypatch), gr.PrimalDual(balance=0.7, relaxation=1.6)
    form = problem(kind, n=12).form.frozen()
    rounds, faults = 9, Faults(drop=0.5)
    by_actors(method, form, rounds, seed=5, faults=faults)
    fault_plan, kept, moved = FaultPlan(faults, 5, {}), 0, 0
    for actor in seen.actors:
        part, (old, new) = actor.part, (actor.states[rounds - 1], actor.states[rounds])
        me = actor.engine.me
        for k, edge in enumerate(part.form.edges):
            columns = slice(None) if edge.features is None else edge.features
            for row in range(0 if edge.ground else len(edge.tail)):
                other = edge.head[row] if edge.tail[row] == me else edge.tail[row]
                sign = 1.0 if edge.tail[row] == me else -1.0
                before, after = (state.x.w[me, columns] - sign * 0.7 * state.x.u[k][row] for state in (old, new))
                lost = fault_plan.delivery(int(part.whole.ids[other]), part.node, (rounds, 1)).lost
                if lost:
                    np.testing.assert_allclose(after, before, atol=1e-13)
                    np.testing.assert_array_equal(new.hat.u[k][row], old.hat.u[k][row])
                    kept += 1
                else:
                    w_hat = new.hat.w[me, columns]
                    z = 2 * w_hat - before - sign * 0.7 * new.hat.u[k][row]
                    np.testing.assert_allclose(after, before + 1.6 * (z - w_hat), atol=1e-13)
                    moved += 1
    assert kept > 5
    assert moved > 5


def test_copies_of_flows_that_are_not_sent_lead_elsewhere():
    """Each end goes on from its own copy of the flow, and what it sends does not hold that."""
    model = problem("consensus")
    right = _lossy.edges_with_lost_messages

    def own_copies(view, moves, u, s, rho, swap):
        own = [s * _lossy.end_of(view, edge)[1] * each for edge, each in zip(view.form.edges, u, strict=True)]

        def bare(mine):
            theirs = swap(tuple(each - copy for each, copy in zip(mine, own, strict=True)))
            return tuple(each - copy for each, copy in zip(theirs, own, strict=True))

        return right(view, moves, u, s, rho, bare)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphreg.methods.splitting._lossy.edges_with_lost_messages", own_copies)
        assert run(model, Faults(drop=1e-300)).status == "certified"
        wrong = run(model, Faults(drop=0.2), rounds=500)
    assert gap(wrong) > 1e-4
    assert run(model, Faults(drop=0.2), rounds=500).status == "certified"


# ---- the same again --------------------------------------------------------------------------------------------------
def test_faults_follow_from_the_seed():
    form, faults = problem("total variation", n=6).form.frozen(), Faults(drop=0.3, delay=1, crash=0.02)
    one, again, other = (by_actors(METHOD, form, 30, seed=seed, faults=faults) for seed in (1, 1, 2))
    assert deviation(one, again) == 0.0
    assert one.ledger == again.ledger
    assert deviation(one, other) > 1e-6


def test_faults_are_the_same_in_processes():
    form, faults = problem("total variation", n=6).form.frozen(), Faults(drop=0.3, crash=0.05)
    one, two = (by_actors(METHOD, form, 30, faults=faults, processes=k) for k in (False, 2))
    assert deviation(one, two) == 0.0
    assert one.ledger == two.ledger


# ---- what the ledger says of it --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "faults",
    [Faults(drop=0.3, crash=0.1, down=2), Faults(delay=2, reorder=0.2, crashes={4: (5, 9), 0: (12,)})],
    ids=["lost", "late"],
)
def test_what_is_lost_is_not_received(faults, monkeypatch):
    """As counted where messages are taken, or wait for their time when the run is over."""
    seen, form, read = watch(monkeypatch), problem("total variation").form.frozen(), []
    accept = Received.accept
    monkeypatch.setattr(Received, "accept", lambda self, each: read.append(each.receiver) or accept(self, each))
    nodes = by_actors(METHOD, form, 30, faults=faults).ledger.by_node()
    read += [each.receiver for actor in seen.actors for r in actor.endpoint.received.values() for _, each in r.late]
    assert nodes["received"].tolist() == np.bincount(read, minlength=form.n).tolist()
    assert nodes["sent"].sum() == nodes["received"].sum() + nodes["lost"].sum()
    assert nodes["lost"].sum() > 30


def test_a_share_of_messages_is_lost_and_said_to_be():
    model, method = problem("total variation"), gr.PrimalDual(balance=1.0)
    ledger = run(model, Faults(drop=0.2), method, rounds=200).ledger
    nodes = ledger.by_node("method")
    assert abs(nodes["lost"].sum() / nodes["sent"].sum() - 0.2) < 0.05
    assert f"of these {nodes['lost'].sum():,} messages were lost" in str(ledger)
    assert ledger.by_node("certificate")["lost"].sum() == 0 < ledger.by_node("certificate")["sent"].sum()
    for table in (ledger.by_node(), sum(ledger.by_node(p)[["sent", "lost"]] for p in ledger.messages)):
        assert table["sent"].sum() == ledger.total_messages
    with pytest.raises(ModelError, match="purpose must be one of 'method'"):
        ledger.by_node("methods")
    again = run(model, Faults(drop=0.2, resend=True), method, rounds=50).ledger.by_node("method")
    assert abs(again["lost"].sum() / again["sent"].sum() - 0.2) < 0.05


# ---- resending -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.ADMM(), METHOD], ids=lambda m: m.name)
def test_resending_changes_nothing_but_the_ledger(method):
    form, drop = problem("parts").form.frozen(), 0.2
    plain = by_actors(method, form, 30)
    faults = Faults(drop=drop, delay=2, duplicate=0.1, reorder=0.1, resend=True)
    again = by_actors(method, form, 30, faults=faults)
    assert deviation(plain, again) == 0.0
    sent = plain.ledger.messages["method"]
    copies, acknowledged = 1 / (1 - drop) ** 2, 1 / (1 - drop)  # expected, of each message; variances below
    spread = np.sqrt((1 - (1 - drop) ** 2) / (1 - drop) ** 4 + drop / (1 - drop) ** 2)
    found = again.ledger.messages["method"] / sent
    assert abs(found - copies - acknowledged) < 5 * 2 * spread / np.sqrt(sent)


def test_sums_arrive_whatever_is_lost():
    form = problem("parts").form.frozen()
    plain, lossy = (by_actors(gr.ADMM(), form, 0, faults=faults) for faults in (None, Faults(duplicate=0.9)))
    assert plain.ledger == lossy.ledger  # before the first round nothing is lost
    model = problem("parts")
    sums = [
        run(model, faults, gr.PrimalDual(restarts=False), rounds=50).ledger.messages["adaptation"]
        for faults in (None, Faults(drop=0.2))
    ]
    assert sums[1] > sums[0]


# ---- crashes ---------------------------------------------------------------------------------------------------------
def test_a_node_that_is_away_does_nothing_and_goes_on_from_its_state():
    form = problem("total variation").form.frozen()
    run = by_actors(METHOD, form, 20, faults=Faults(crashes={4: (5, 6), 0: (12,)}, down=3))
    w = np.array([point[0] for point in run.points])
    still = [[t for t in range(1, 21) if np.array_equal(w[t, i], w[t - 1, i])] for i in range(form.n)]
    assert still[4] == [5, 6, 7, 8]
    assert still[0] == [12, 13, 14]
    assert not any(still[i] for i in range(form.n) if i not in (0, 4))
    assert run.ledger.by_node()["away"].tolist() == [3, 0, 0, 0, 4, *[0] * (form.n - 5)]
    sent = run.ledger.by_node()["sent"].to_numpy() / np.bincount(run.ledger.arcs.source)
    assert sent.tolist() == [17, 20, 20, 20, 16, *[20] * (form.n - 5)]


@pytest.mark.filterwarnings("ignore::graphreg.errors.MethodWarning")
def test_a_crash_leaves_the_state_and_nothing_else(monkeypatch):
    seen, form = watch(monkeypatch), problem("total variation").form.frozen()
    by_actors(gr.ADMM(rho=1.0), form, 9, faults=Faults(delay=3, crashes={4: (9,)}))
    by_node = {actor.part.node: actor for actor in seen.actors}
    crashed, other = by_node[4], by_node[5]
    assert other.endpoint.received
    assert other.states
    assert not crashed.endpoint.received
    assert not crashed.states
    assert crashed.disk is not None


def listed_as(how):
    """The methods that the page lists where nodes can be away so."""
    page = (ROOT / "docs" / "actors.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| {how} \| (.*) \|$", page, re.M)[1]
    return re.findall(r"`([A-Z]\w+(?:\(.*?\))?)`", row)


def test_who_can_be_told_who_is_away_is_on_the_page():
    known = [getattr(gr, name) for name in dir(gr) if not name.startswith("Abstract")]
    able = {each.__name__ for each in known if isinstance(each, type) and "availability" in fields_of(each)}
    assert sorted(listed_as("by `availability=`")) == sorted(able)
    who, _ = gr.Availability.__doc__.split(" take it as")
    assert set(re.findall(r"`(\w+)`", who)) == able


def fields_of(kind):
    if not (issubclass(kind, gr.AbstractMethod) and is_dataclass(kind)):
        return set()
    return {field.name for field in fields(kind)}


@pytest.mark.filterwarnings("ignore::graphreg.errors.MethodWarning")
@pytest.mark.parametrize("name", [*listed_as("as actors that crash"), *listed_as("in no way")])
def test_for_whom_nodes_can_crash_is_on_the_page(name):
    kind, _, given = name.rstrip(")").partition("(")
    option, _, value = given.partition("=")
    needed = {"FedProx": {"mu": 0.1}, "PFedMe": {"lam": 1.0}}.get(kind, {})
    method = getattr(gr, kind)(**({option: float(value)} if given else needed))
    models = [problem(each) for each in ("squared", "consensus", "hierarchy")]
    if name == "LocalOnly":
        models = [gr.Problem(models[0].model + 0.1 * gr.NodePenalty(gr.SquaredL2()))]
    model = next(each for each in models if not method.lacks(each.form))

    def go():
        return model.solve(method, gap=0, rounds=30, seed=3, engine=gr.Actors(faults=Faults(crash=0.3)))

    if name in listed_as("in no way"):
        with pytest.raises(MethodError, match=r"sums over all nodes in a round|all data in one place"):
            go()
    else:
        assert go().ledger.by_node()["away"].sum() > 0


@pytest.mark.filterwarnings("ignore::graphreg.errors.MethodWarning")
@pytest.mark.parametrize("coin", ["separate", "single"])
def test_clients_that_were_away_know_which_means_are_sent_again(coin):
    """They flip the coins of the round that they missed, which are shared: else they wait for what nobody sends."""
    faults = Faults(crash=0.4, down=1)
    found = run(problem("hierarchy"), faults, gr.AsyncL2GD(coin=coin), rounds=60)
    assert found.rounds == 60
    assert found.ledger.by_node()["away"].sum() > 0


@pytest.mark.parametrize("faults", [Faults(crash=0.1), Faults(drop=0.2)])
def test_a_vote_that_not_all_hear_is_refused(faults):
    with pytest.raises(MethodError, match=r"AsyncL2GD does not run where nodes crash.*majority=True"):
        run(problem("hierarchy"), faults, gr.AsyncL2GD(majority=True))
    resent = run(problem("hierarchy"), Faults(drop=0.2, resend=True), gr.AsyncL2GD(majority=True), rounds=20)
    assert resent.rounds == 20


def test_sums_with_crashes_are_refused():
    with pytest.raises(MethodError, match=r"PrimalDual\(balance=\.\.\.\)"):
        run(problem("total variation"), Faults(crash=0.01), gr.PrimalDual(restarts=False))


def test_crashes_and_loss_together():
    faults = Faults(drop=0.2, crash=0.01, down=4, crashes={"c0": (20,), 1: [30, 40]})
    found = run(problem("tree"), faults)
    assert found.status == "certified"
    assert (found.ledger.by_node()["away"][["c0", 1]] >= [4, 8]).all()


# ---- sequence numbers ------------------------------------------------------------------------------------------------
def test_duplicates_and_old_messages_change_nothing():
    def message(tag, value):
        return Message("values", 0, 1, tag, 0, np.array([value]))

    received = Received()
    for tag, value in (((3, 1), 3.0), ((2, 1), 2.0), ((3, 1), 9.0), ((3, 2), 5.0)):
        received.accept(message(tag, value))
    assert received.newest[1].payload == 3.0
    assert received.newest[2].payload == 5.0
    received.late.append(((6, 1), message((4, 1), 4.0)))
    received.arrive((5, 1))
    assert received.newest[1].payload == 3.0
    received.arrive((6, 1))
    assert received.newest[1].payload == 4.0
    assert not received.late


def test_the_rates_are_those_asked_for():
    fault_plan = FaultPlan(Faults(drop=0.2, delay=2, duplicate=0.1, reorder=0.05), 7, {})
    fates = [fault_plan.delivery(i, i + 1, (t, 1)) for i in range(20) for t in range(1, 501)]
    lost, late, twice, overtaken = np.array(fates, dtype=float).T
    for found, rate in ((lost, 0.2), (late == 0, 1 / 3), (late == 2, 1 / 3), (twice, 0.1), (overtaken, 0.05)):
        assert abs(found.mean() - rate) < 5 * np.sqrt(rate * (1 - rate) / len(fates))
    crashing = FaultPlan(Faults(crash=0.01, down=1), 7, {})
    away = np.mean([crashing.away(i, t) for i in range(20) for t in range(1, 501)])
    assert abs(away - 0.01) < 5 * np.sqrt(0.01 / 10_000)
    assert not any(crashing.away(i, 0) for i in range(20))


@pytest.mark.parametrize(("crash", "down"), [(0.1, 2), (0.3, 4), (0.02, 10)])
def test_the_share_of_time_away_is_the_one_that_is_told(crash, down):
    faults = Faults(crash=crash, down=down)
    plan = FaultPlan(faults, 3, {})
    found = np.mean([plan.away(i, t) for i in range(20) for t in range(down, down + 1000)])
    independent = 20 * 1000 / (2 * down)  # rounds within ``down`` of each other are alike
    assert abs(found - faults.away) < 5 * np.sqrt(faults.away * (1 - faults.away) / independent)


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"drop": 1.0}, r"Faults\(drop=...\) must be a probability in \[0, 1\), got 1.0"),
        ({"drop": -0.1}, r"Faults\(drop=...\)"),
        ({"drop": True}, r"Faults\(drop=...\)"),
        ({"drop": float("nan")}, r"Faults\(drop=...\)"),
        ({"duplicate": 1.5}, r"Faults\(duplicate=...\) must be a probability in \[0, 1\], got 1.5"),
        ({"reorder": "often"}, r"Faults\(reorder=...\)"),
        ({"crash": 1}, r"Faults\(crash=...\)"),
        ({"delay": 0.5}, r"Faults\(delay=...\) must be a whole number of rounds, at least 0, got 0.5"),
        ({"down": 0}, r"Faults\(down=...\) must be a whole number of rounds, at least 1, got 0"),
        ({"crashes": [3]}, r"Faults\(crashes=...\) must be a mapping from labels of nodes to rounds"),
        ({"crashes": {3: (0,)}}, r"Faults\(crashes=...\) of the node 3 must be a tuple of rounds from 1 on"),
        ({"crashes": {3: 3}}, r"must be a tuple of rounds from 1 on, as in \(3, 8\), got 3"),
        ({"crashes": {3: 5}}, r"Faults\(crashes=...\) of the node 3"),
    ],
)
def test_bad_faults_are_refused(options, words):
    with pytest.raises(MethodError, match=words):
        gr.Faults(**options)


def test_a_crash_of_an_unknown_node_is_refused():
    with pytest.raises(MethodError, match="crashes of Faults name 'nobody', which is not a node"):
        run(problem("squared"), Faults(crashes={"nobody": (3,)}))


@pytest.mark.filterwarnings("ignore::graphreg.errors.MethodWarning")
def test_a_method_that_tolerates_no_loss_is_not_advised_more_rounds():
    lossy = run(problem("total variation"), Faults(drop=0.1), gr.SCAFFOLD(), rounds=3)
    assert "lost messages may lead off the optimum, however many rounds there are: take Faults(resend=" in lossy.message
    assert "allow more" not in lossy.message
    resent = run(problem("total variation"), Faults(drop=0.1, resend=True), gr.SCAFFOLD(), rounds=3)
    assert "allow more" in resent.message
