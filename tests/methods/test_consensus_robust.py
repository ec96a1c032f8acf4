"""Robust gossip: what malicious neighbours send stays within the range of the honest, and moves plain gossip far."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from consensus_cases import network
from core_cases import view_of

import graphreg as gr
from graphreg.distributed.malicious import _Lying
from graphreg.errors import GraphregError, MethodError, MethodWarning
from graphreg.methods.consensus._robust import robust_mean

pytestmark = pytest.mark.filterwarnings("ignore:the convergence of LocalSGD:graphreg.errors.MethodWarning")
N, LIARS, GRAPH = 10, [2, 7], nx.circulant_graph(10, [1, 2, 3])
HONEST = [i for i in range(N) if i not in LIARS]


@pytest.fixture(scope="module")
def problem():
    """The model of all nodes, the same data at each up to noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30 * N, 2))
    data = gr.NodeData.from_arrays(X, X @ [1.0, -1.0] + 0.5 * rng.standard_normal(30 * N), np.repeat(range(N), 30))
    return gr.Problem(gr.SquaredLoss(data) + gr.Consensus(GRAPH) + 0.01 * gr.NodePenalty(gr.SquaredL2()))


def by_hand(own, heard, there, robust):
    out = own.copy()
    for i in range(N):
        near = [j for j in GRAPH[i] if there[i] and there[j]]
        for c in range(own.shape[1]):
            values = sorted(np.inf if np.isnan(heard[j, c]) else heard[j, c] for j in near)
            if robust == "median":
                out[i, c] = np.median([own[i, c], *values]) if len(values) > 1 else own[i, c]
            else:
                out[i, c] = np.mean([own[i, c], *values[robust : max(len(values) - robust, robust)]])
    return out


@pytest.mark.parametrize("robust", [1, 2, "median"])
@pytest.mark.parametrize("away", [0.0, 0.5])
def test_the_mean_is_that_of_the_paper(problem, robust, away):
    rng = np.random.default_rng(3)
    own, there = rng.standard_normal((N, 2)), rng.uniform(size=N) >= away
    found = robust_mean(view_of(problem.form), own, own, there if away else None, robust)
    np.testing.assert_allclose(found, by_hand(own, own, there, robust), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("robust", [2, "median"])
@pytest.mark.parametrize("lie", [np.nan, np.inf, -np.inf, 1e300, 0.0])
def test_lies_stay_within_the_range_of_the_honest(problem, robust, lie):
    """Two liars: at most two of the six neighbours of any node."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        own = rng.standard_normal((N, 2))
        heard = own.copy()
        heard[LIARS] = lie
        found = robust_mean(view_of(problem.form), own, heard, None, robust)
        for i in HONEST:
            near = own[[i, *(j for j in GRAPH[i] if j in HONEST)]]
            assert (near.min(axis=0) <= found[i]).all()
            assert (found[i] <= near.max(axis=0)).all()
    one = np.ones((N, 2))
    one[LIARS] = lie
    agreed = robust_mean(view_of(problem.form), np.ones((N, 2)), one, None, robust)
    np.testing.assert_array_equal(agreed[HONEST], 1.0)  # who agrees stays


@pytest.mark.parametrize("robust", [1, "median"])
def test_a_liar_who_is_alone_with_a_node_moves_it_nowhere(problem, robust):
    liar, own, there = LIARS[0], np.random.default_rng(0).standard_normal((N, 2)), np.zeros(N, dtype=bool)
    node = next(j for j in GRAPH[liar] if j in HONEST)
    there[[liar, node]] = True
    heard = own.copy()
    heard[liar] = 1e6
    np.testing.assert_array_equal(robust_mean(view_of(problem.form), own, heard, there, robust)[node], own[node])


@pytest.fixture(scope="module")
def exact(problem):
    return problem.solve(gap=1e-9)


@pytest.fixture(scope="module")
def honest(problem, exact):
    """How far plain gossip gets where nobody lies."""
    return far(problem, exact, gr.LocalSGD(batch=None))[0]


def far(problem, exact, method, engine=None, rounds=300):
    """How far the honest nodes are from the optimum of all, over the size of that; and the run."""
    best = exact.coef[0]
    look = gr.Observer({"far": lambda at: np.abs(at.w[HONEST] - best).max()}, rounds=rounds)
    run = problem.solve(method, gap=0, rounds=rounds, seed=0, observe=look, engine=engine)
    return run.observed["far"][-1] / np.abs(best).max(), run


ATTACKS = {
    "sign flip": gr.Malicious(LIARS, "sign flip", 4.0),
    "constant": gr.Malicious(LIARS, "constant", 100.0),
    "noise": gr.Malicious(LIARS, "noise", 20.0),
    "own": gr.Malicious(LIARS, lambda values, rng: values + 50.0 * rng.integers(2, size=values.shape)),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_plain_gossip_breaks_and_robust_gossip_does_not(problem, exact, honest, attack):
    assert honest < 0.02
    plain, broken = far(problem, exact, gr.LocalSGD(batch=None), ATTACKS[attack])
    assert plain > 0.4
    for robust in (2, "median"):
        near, run = far(problem, exact, gr.LocalSGD(batch=None, robust=robust), ATTACKS[attack])
        assert near < 0.2 < 0.5 * plain
        for each in (run, broken):  # certificates are true, whoever lies
            assert each.certificate.dual <= exact.objective <= each.objective * (1 + 1e-9)
            assert each.status == "budget"


def test_without_an_engine_nobody_lies_and_the_ledger_is_that_of_plain_gossip(problem):
    plain = problem.solve(gr.LocalSGD(), gap=0, rounds=10, seed=0)
    none = problem.solve(gr.LocalSGD(), gap=0, rounds=10, seed=0, engine=gr.Malicious([], "constant"))
    np.testing.assert_array_equal(plain.coef, none.coef)
    robust, lying = (
        problem.solve(gr.LocalSGD(robust=1), gap=0, rounds=10, seed=0, engine=engine)
        for engine in (None, gr.Malicious(LIARS, "noise", 5.0))
    )
    assert plain.ledger.sent() == none.ledger.sent() == robust.ledger.sent() == lying.ledger.sent()
    again = problem.solve(gr.LocalSGD(robust=1), gap=0, rounds=10, seed=0, engine=gr.Malicious(LIARS, "noise", 5.0))
    np.testing.assert_array_equal(lying.coef, again.coef)
    assert (lying.coef != robust.coef).any()


@pytest.mark.parametrize("method", [gr.FedAvg(), gr.PrimalDual(), gr.SCAFFOLD(), gr.FedADMM()], ids=lambda m: m.name)
def test_other_methods_are_attacked_too(problem, exact, method):
    honest, attacked = (far(problem, exact, method, engine, 60)[0] for engine in (None, ATTACKS["constant"]))
    assert honest < 0.1
    assert attacked > 0.4


@pytest.mark.parametrize("attack", ["sign flip", "noise", "constant"])
def test_ifca_takes_a_lie_about_the_number_of_a_model(problem, exact, attack):
    method = gr.IFCA(k=2, starts=2)
    honest, attacked = (far(problem, exact, method, each, 20)[0] for each in (None, gr.Malicious(LIARS, attack, 2.0)))
    assert attacked > honest + 0.01


@pytest.mark.parametrize(("sent", "nearest"), [(99.0, 1.0), (0.6, 1.0), (-3.4, 0.0), (-np.inf, 0.0), (np.nan, 0.0)])
def test_what_is_no_number_of_a_model_counts_as_the_nearest_one(problem, sent, nearest):
    def said(number):
        lying = gr.Malicious(LIARS, lambda values, rng: np.column_stack([values[:, :-1], np.full(len(values), number)]))
        return problem.solve(gr.IFCA(k=2, starts=1), rounds=5, gap=0, seed=0, engine=lying).coef

    np.testing.assert_array_equal(said(sent), said(nearest))


def test_nobody_is_told_that_more_rounds_help_against_liars(problem):
    lying, nobody = ATTACKS["constant"], gr.Malicious([])
    for method in (gr.PrimalDual(), gr.LocalSGD(batch=None)):
        said = problem.solve(method, rounds=30, seed=0, engine=lying, on_failure="return").message
        assert "malicious nodes lie (2), and more rounds need not lead closer; robust= of gr.LocalSGD" in said
        assert "score= of gr.compare, shows what honest nodes reached" in said
        assert "allow more" not in said
        assert "allow more" in problem.solve(method, rounds=2, gap=1e-12, seed=0, engine=nobody).message


@pytest.mark.parametrize("penalty", [gr.SquaredL2(), gr.L1()])
def test_who_sends_nothing_tells_no_lie(penalty):
    """Nobody does in LocalOnly; node 3 has no neighbours."""
    rng, extra = np.random.default_rng(0), 0.1 * gr.NodePenalty(penalty)
    graph, rows = nx.path_graph(3), {k: (rng.normal(size=(9, 2)), rng.integers(0, 2, 9)) for k in range(4)}
    graph.add_node(3)
    model = gr.LogisticLoss(gr.NodeData.from_dict(rows)) + 0.1 * gr.TotalVariation(graph, gr.L2())
    varied = gr.Problem(model + extra)
    for method, liars in ((gr.LocalOnly(), [0, 3]), (gr.PrimalDual(), [3])):
        kept = {"gap": 1e-8, "seed": 0}
        honest, run = (
            varied.solve(method, engine=each, **kept) for each in (None, gr.Malicious(liars, "constant", 20))
        )
        np.testing.assert_array_equal(run.coef, honest.coef)
        assert (run.status, run.rounds, run.message) == (honest.status, honest.rounds, honest.message)
    beside = varied.solve(gr.PrimalDual(balance=1.0), engine=gr.Malicious([0, 3], "constant", 20), rounds=200, gap=0)
    alone = gr.Problem(gr.LogisticLoss(gr.NodeData.from_dict({3: rows[3]})) + extra).solve()
    np.testing.assert_allclose(beside.coef[3], alone.coef[0], atol=1e-3)


def test_as_many_lies_are_told_as_messages_are_sent(problem):
    told = []

    def lie(values, rng):
        told.append(len(values))
        return -values

    away = gr.FedAvg(availability=0.5)
    sent = problem.solve(away, rounds=20, gap=0, seed=0, engine=gr.Malicious(LIARS, lie)).ledger.by_node("method")
    assert sum(told) == sent.loc[LIARS, "sent"].sum() < 20 * len(LIARS)
    assert min(told) > 0


def of_six_days(penalty):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(3, 2)), rng.normal(size=3)) for i in range(6)})
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * penalty)


VERSIONS = of_six_days(gr.TotalVariation(nx.cycle_graph(6), gr.L2()))  # of edges: FedADMM swaps them
FLOWS = of_six_days(gr.L1()(gr.w.along(range(6), 2)))  # of rows of three nodes: an owner keeps and tells them


def lying(view):
    engine = _Lying(view, np.array([1, 4]), lambda values: np.full(values.shape, 9.0))
    engine.lies = True
    return engine


def test_lies_about_edges_are_those_of_who_sends_them():
    view, rng = view_of(VERSIONS.form), np.random.default_rng(0)
    along = rng.uniform(size=len(view.arcs.source)) < 0.6
    sent = {(i, j) for i, j, yes in zip(view.arcs.source, view.arcs.target, along, strict=True) if yes}
    pairs, own = view.rows[0].map.pairs, rng.standard_normal((12, 2))
    lied = [j in {1, 4} and (j, i) in sent for ends in (pairs, pairs[::-1]) for i, j in zip(*ends, strict=True)]
    (came,) = lying(view).swap_ends((own,), view.toward, along)
    np.testing.assert_array_equal(came, np.where(np.array(lied)[:, None], 9.0, np.roll(own, 6, axis=0)))
    assert 0 < sum(lied) < 4


def test_lies_about_rows_are_those_of_their_owners():
    view = view_of(FLOWS.form)
    own = np.random.default_rng(0).standard_normal((4, 2))
    lied = np.isin(view.rows[0].map.owner, [1, 4])
    np.testing.assert_array_equal(lying(view).send_back((own,))[0], np.where(lied[:, None], 9.0, own))
    assert 0 < sum(lied) < 4


@pytest.mark.parametrize(
    ("problem", "method"), [(VERSIONS, gr.FedADMM(availability=0.5)), (FLOWS, gr.PrimalDual(balance=1.0))]
)
def test_who_sends_the_truth_does_no_harm(problem, method):
    told = []
    truth = gr.Malicious([1, 4], lambda values, rng: told.append(values) or values)
    honest, run = (problem.solve(method, rounds=9, gap=0, seed=0, engine=each) for each in (None, truth))
    np.testing.assert_array_equal(run.coef, honest.coef)
    assert told


def test_a_robust_mean_is_advised_for_a_consensus_alone(problem):
    labels = sorted({0, *LIARS})
    data = gr.NodeData.from_dict({k: (np.eye(2), np.full(2, float(k))) for k in labels})
    varied = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(gr.Graph.chain(labels), gr.L2()))
    for model, advised in ((problem, True), (varied, False)):
        said = model.solve(gr.PrimalDual(balance=1.0), rounds=3, gap=0, engine=ATTACKS["constant"]).message
        assert ("robust= of gr.LocalSGD" in said) == advised
        assert "malicious nodes lie (2)" in said


@pytest.mark.parametrize(
    "method",
    [gr.FedAvg(), gr.FedAvg(local_steps=5), gr.FedProx(mu=0.1), gr.SCAFFOLD(), gr.Ditto(lam=0.1), gr.PFedMe(lam=1.0)],
    ids=lambda m: m.label,
)
def test_baselines_name_liars_as_the_reason_too(problem, method):
    """Where their options lead off the optimum, and where their own problem is certified, it is one reason more."""
    lying = problem.solve(method, rounds=40, seed=0, engine=ATTACKS["constant"], on_failure="return")
    honest = problem.solve(method, rounds=40, seed=0, engine=gr.Malicious([]), on_failure="return")
    assert lying.message.count("malicious nodes lie (2)") == 1
    assert "malicious" not in honest.message


def test_it_says_that_no_optimum_is_found(problem):
    with pytest.warns(MethodWarning, match="robust means lead to no optimum"):
        run = problem.solve(gr.LocalSGD(batch=None, robust=1), rounds=300)
    assert run.status == "budget"
    assert "Convergence is not guaranteed: robust means lead to no optimum" in run.message
    assert 1e-5 < run.certificate.relative_gap < 0.5


@pytest.mark.parametrize("robust", [1, "median"])
def test_it_keeps_the_laws_of_methods(robust):
    method = gr.LocalSGD(robust=robust, availability=0.7)
    report = gr.testing.check_method(method, problems=[network(n=6, m=8)], accuracy=None)
    assert report.ok, report


def test_actors_go_the_same_way(problem):
    for method in (gr.LocalSGD(robust=2, availability=0.8), gr.LocalSGD(robust="median")):
        arrays, actors = (
            problem.solve(method, gap=0, rounds=8, seed=1, engine=engine) for engine in (None, gr.Actors())
        )
        np.testing.assert_allclose(actors.coef, arrays.coef, atol=1e-12)
        assert actors.ledger.sent() == arrays.ledger.sent()


@pytest.mark.parametrize(
    ("solve", "said"),
    [
        (lambda p: p.solve(gr.LocalSGD(robust=3)), r"robust=3 takes at least 7 neighbours of every node, and 0 has 6"),
        (lambda p: p.solve(gr.LocalSGD(robust=0)), r"LocalSGD\(robust=...\)"),
        (lambda p: p.solve(gr.LocalSGD(robust="mean")), r"LocalSGD\(robust=...\)"),
        (lambda p: p.solve(gr.LocalSGD(), engine=gr.Malicious(["x"])), "the nodes of Malicious name 'x'"),
        (lambda p: gr.Malicious("phone 3"), r"give a list, \['phone 3'\]"),
        (lambda p: gr.Malicious(b"ab"), r"give a list, \[b'ab'\]"),
        (lambda p: gr.Malicious({"a"}), "a list of labels, .*sort it"),
        (lambda p: gr.Malicious([1], "flip"), r"Malicious\(attack=...\)"),
    ],
)
def test_what_is_refused(problem, solve, said):
    with pytest.raises(MethodError, match=said):
        solve(problem)


@pytest.mark.parametrize(
    "ask",
    [
        lambda problem: gr.Malicious([0], faults=gr.Faults(drop=0.2)),
        lambda problem: gr.Actors(malicious=[0]),
        lambda problem: gr.Faults(drop=0.2, malicious=[0]),
        lambda problem: problem.solve(gr.LocalSGD(), engine=[gr.Actors(faults=gr.Faults()), gr.Malicious([0])]),
        lambda problem: gr.compare(problem, [gr.LocalSGD()], engine=(gr.Malicious([0]), gr.Actors())),
    ],
)
def test_liars_on_a_lossy_network_are_refused_at_once_with_the_ways_out(ask):
    data = gr.NodeData.from_arrays(np.ones((6, 1)), np.arange(6.0), [0, 0, 1, 1, 2, 2])
    problem = gr.Problem(gr.SquaredLoss(data) + gr.Consensus(nx.path_graph(3)))
    said = r"liars cannot be put on a lossy network: take gr\.Malicious\(nodes\), .* gr\.FedAvg\(availability=0\.8\)"
    with pytest.raises(GraphregError, match=said):
        ask(problem)
    away = problem.solve(gr.FedAvg(availability=0.8), engine=gr.Malicious([0]), rounds=5, gap=0, seed=0)  # the way out
    assert away.ledger.by_node()["away"].sum() > 0


def test_a_robust_mean_goes_on_from_what_the_liar_truly_has(problem):
    """What the liar tells itself is in no message."""
    method = gr.LocalSGD(step_size=0.02, batch=None, robust=1)
    given = {"rounds": 1, "gap": 0, "observe": "w"}
    v = -0.02 * N * problem.oracles().gradient(np.zeros((N, 2)))
    found = problem.solve(method, engine=gr.Malicious([0], "constant", size=50.0), **given).observed["w"][-1]
    heard = np.vstack([np.full(2, 50.0), v[1:]])
    np.testing.assert_allclose(found, by_hand(v, heard, np.ones(N, dtype=bool), 1), rtol=1e-10)


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (lambda v: v, "takes 1 positional argument but 2 were given"),
        (lambda v, rng: v[0, :1], r"it returned \(1,\)"),
        (lambda v, rng: None, "it returned"),
        (lambda v, rng: "lies", "could not convert"),
    ],
)
def test_an_attack_of_another_form_is_refused(problem, attack, said):
    with pytest.raises(MethodError, match=rf"attack= of Malicious takes the numbers .*returns as many: .*{said}"):
        problem.solve(gr.LocalSGD(batch=None), rounds=3, gap=0, engine=gr.Malicious([0, 1], attack))
