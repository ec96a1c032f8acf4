"""Audits and what they must not say of algorithms that are right or slow, and what they say of slips that have no
old name."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from audit_cases import metropolis, network, primal_dual

import graphreg as gr
from benchmarks.audits.instances import instance
from benchmarks.audits.unusual import sweeps
from graphreg.auditing.algorithms import algorithm_of
from graphreg.auditing.course import run
from graphreg.auditing.evidence import Evidence
from graphreg.auditing.limits import Optimum, limit_of
from graphreg.auditing.locality import delays
from graphreg.auditing.naming import Examined, _of_start
from graphreg.auditing.referee import CLAIMS


def far_away(empty=6):
    """A cycle with an intercept, targets around 1e6, and a node without data, which a round moves by a step at most."""
    rng, graph = np.random.default_rng(0), nx.cycle_graph(8)
    graph.add_edges_from([(0, 3), (1, 5)])
    samples = {}
    for i in set(range(8)) - {empty}:
        X = np.column_stack([np.ones(4 + i), rng.normal(size=4 + i)])
        samples[i] = X, X @ ([1.0, -1.0] if i < 4 else [-1.0, 2.0]) + 0.2 * rng.normal(size=len(X)) + 1e6
    return gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples)) + 0.3 * gr.TotalVariation(graph, gr.L2()))


def test_a_right_algorithm_on_a_long_way_is_undecided_and_nothing_is_named():
    report = gr.audit(far_away(), primal_dual, rounds=2000)
    assert (report.verdict, report.name) == ("undecided", "")
    assert "goes on the same way as fast as before" in " ".join(str(report).split())


def decentralised(problem, start=None, drop=False):
    """D-ADMM (Shi et al. 2014): rows are averaged, and duals correct that."""
    o = problem.oracles()
    A = np.zeros((o.n, o.n))
    A[o.tail, o.head] = A[o.head, o.tail] = 1.0
    degree = A.sum(axis=1)[:, None]
    B = A.copy()
    if drop:
        B[3, np.flatnonzero(A[3])[0]] = 0.0  # one neighbour is forgotten at one node
    w, u = np.zeros((o.n, o.d)) if start is None else np.array(start, dtype=float), np.zeros((o.n, o.d))
    while True:
        w = o.prox((degree * w + A @ w - u) / (2.0 * degree), 1.0 / (2.0 * degree[:, 0]))
        u = u + B.sum(axis=1, keepdims=True) * w - B @ w
        yield w


def test_uneven_impulses_are_no_name_where_duals_correct_them():
    report = gr.audit(instance("consensus", 0), lambda problem, start=None: decentralised(problem, start, drop=True))
    assert report.verdict == "wrong"
    assert "asymmetric mixing" not in report.name
    assert any("such weights would lead to another limit" in each.sentence for each in report.findings)


@pytest.mark.parametrize("problem", [instance("consensus", 0), network("consensus")], ids=["drift", "dictionary"])
def test_what_depends_on_the_order_of_nodes_has_no_name_of_what_is_done_alike_everywhere(problem):
    report = gr.audit(problem, lambda problem, start=None: decentralised(problem, start, drop=True))
    said = (
        "something is done at one node or edge alone, as where a sum leaves out a neighbour, or neighbours are taken "
    )
    assert report.name.startswith(f"{said}one after another, so that their order matters: ")
    told = {each.evidence: each.outcome for each in report.findings}
    assert {told["drift"], told["dictionary"]} == {"remark"}


def local_means(problem):
    """Two local steps and a step of gossip, without end."""
    o, C = problem.oracles(), metropolis(problem)
    w, step = np.zeros((o.n, o.d)), 0.5 / o.smoothness.max()
    while True:
        for _ in range(2):
            w = w - step * o.gradient(w)
        w = C @ w
        yield w


def test_a_drift_of_nodes_that_disagree_has_the_names_of_all_that_leads_there():
    report = gr.audit(instance("consensus", 0), local_means)
    assert report.name.startswith("drift: right on equal data, and nodes disagree by ")
    assert report.name.endswith(": a constant step, local steps or corrections that do not cancel")


@pytest.mark.parametrize("graph", [nx.cycle_graph(8), nx.star_graph(7)])
def test_steps_that_decrease_slowly_are_not_said_never_to_settle(graph):
    """Of a method of the library, whose steps are nearly the same in the first 2 L / mu rounds, which was beyond the
    600 that were looked at."""
    rng = np.random.default_rng(0)
    samples = {i: (X := rng.normal(size=(8, 2)), X @ [1.0, -1.0] + 0.3 * rng.normal(size=8) + i % 3) for i in graph}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    report = gr.audit(gr.Problem(loss + 0.3 * gr.TotalVariation(graph, gr.L2())), gr.SubgradientDescent())
    assert report.ok, report
    assert "step too long" not in str(report)


def stepped(problem, tau, sigma):
    """Condat and Vu's method."""
    o = problem.oracles()
    w, u = np.zeros((o.n, o.d)), np.zeros((len(o.tail), o.d))
    tau = tau(o)
    while True:
        new = w - tau * (o.gradient(w) + o.K.T @ u)
        u = o.dual_prox(u + sigma * (o.K @ (2.0 * new - w)), sigma)
        w = new
        yield w


@pytest.mark.parametrize(
    "tau",
    [
        pytest.param(lambda o: 0.5, id="fixed", marks=pytest.mark.whole),
        pytest.param(lambda o: 1.0 / (o.smoothness.mean() / 4.0 + 3.5), id="mean for max"),
    ],
)
def test_steps_that_do_not_follow_the_data_are_found(tau):
    report = gr.audit(instance("edges", 0), lambda problem: stepped(problem, tau, 0.2))
    assert (report.verdict, report.ok) == ("right limit, fixed steps", False)
    assert report.name.startswith("steps do not follow the data")
    claimed = gr.audit(instance("edges", 0), lambda problem: stepped(problem, tau, 0.2), claims=("limit",), rounds=1000)
    assert claimed.ok


def test_losses_weighted_by_degree_and_a_half_are_named():
    def halved(problem):
        o = problem.oracles()
        degree = np.bincount(np.concatenate([o.tail, o.head]), minlength=o.n)[:, None]
        w, u = np.zeros((o.n, o.d)), np.zeros((len(o.tail), o.d))
        while True:
            new = o.prox(w - o.K.T @ u / degree, 0.5)
            u = o.dual_prox(u + 0.5 * (o.K @ (2.0 * new - w)), 0.5)
            w = new
            yield w

    report = gr.audit(instance("edges", 0), halved)
    assert report.name.startswith("nodes weighted by their degree, x 1/2 (as a prox step of 1/2 for 1 / degree does)")


def test_what_does_not_read_the_problem_passes_nothing():
    mine = network("l2", seed=2)
    report = gr.audit(mine, lambda problem: primal_dual(mine))
    assert (report.verdict, report.kind) == ("right", "function")
    assert {each.evidence for each in report.findings if each.outcome == "holds"} <= {"limit", "repetition"}
    assert "does not read from `problem`" in report.untried[-1].sentence


def test_a_return_for_a_yield_is_said():
    report = gr.audit(network("l2"), lambda problem: np.zeros((9, 2)))
    assert report.verdict == "no limit"
    assert report.findings[0].sentence.endswith("returned an array of the shape (9, 2): use yield")


def test_no_number_in_the_first_round_is_said_with_its_node():
    def empty_mean(problem):
        while True:
            w = np.zeros((9, 2))
            w[4] = np.nan
            yield w

    report = gr.audit(network("l2"), empty_mean)
    assert report.verdict == "no limit"
    assert report.findings[0].sentence == "it gave no points: in round 1 the node 4 has parameters that are NaN"


def test_links_that_are_used_one_way_are_no_stale_messages():
    """Every second link of a cycle passes one way."""

    def gossip(problem):
        o = problem.oracles()
        W = np.eye(o.n)
        for e, (i, j) in enumerate(zip(o.tail.tolist(), o.head.tolist(), strict=True)):
            W[j, i] = 1.0
            W[i, j] = float(e != 0)
        W /= W.sum(axis=1, keepdims=True)
        w = np.zeros((o.n, o.d))
        while True:
            w = W @ w - 0.01 * o.gradient(w)
            yield w

    problem, evidence = network("consensus"), Evidence(None, ("prompt", "local"))
    evidence.locality(algorithm_of(gossip), problem, 0, 0, noisy=False, wrong=False)
    assert [(each.evidence, each.outcome) for each in evidence.found] == [
        ("locality", "holds"),
        ("promptness", "remark"),
    ]
    assert (
        "is held back, or the link is used one way and it makes a detour: no telling which"
        in evidence.found[1].sentence
    )


def test_several_exchanges_within_a_round_are_not_called_a_read_of_a_stranger():
    """A token that makes several hops between two points."""

    def token(problem):
        o, rng = problem.oracles(), np.random.default_rng(12)
        near = [[*o.head[o.tail == i], *o.tail[o.head == i]] for i in range(o.n)]
        w, x, i = np.zeros((o.n, o.d)), np.zeros(o.d), 0
        while True:
            for _ in range(o.n):
                i = int(rng.choice(near[i]))
                rows = np.tile(x, (o.n, 1))
                x = w[i] = x - 0.05 * o.gradient(rows)[i]
            yield w.copy()

    problem, evidence = network("consensus"), Evidence(None, ("prompt", "local"))
    assert 0.2 < delays(algorithm_of(token), problem, 0).share_early < 0.9
    evidence.locality(algorithm_of(token), problem, 0, 0, noisy=False, wrong=False)
    assert not [each for each in evidence.found if each.outcome == "name"]
    assert any("several exchanges in a round" in each.sentence for each in evidence.found)


def test_sweeps_are_local_as_far_as_can_be_told():
    """Nodes that take their turns within a round hear of each other by neighbours alone."""
    problem = instance("smooth", 0)
    report = gr.audit(problem, sweeps)
    assert report.ok, report
    assert any("one after the other, or reads of non-neighbours" in each.sentence for each in report.findings)
    assert gr.audit(problem, sweeps, claims=["local"]).verdict == "right limit, not local"


def reads_a_stranger(problem):
    """The point is all but right, and node 0 hears of node 6, which is no neighbour."""
    for w in decentralised(problem):
        w[0] += 1e-7 * np.tanh(w[6])
        yield w


def unseeded(problem):
    shift = np.random.default_rng().normal()
    for k, (w, _) in enumerate(primal_dual(problem)):
        yield w + shift * 0.5**k


SLIPS = {
    "limit": ("l2", lambda problem: primal_dual(problem, factor=0.5)),
    "prompt": ("l2", lambda problem: primal_dual(problem, late=True)),
    "local": ("consensus", reads_a_stranger),
    "repeatable": ("l2", unseeded),
}


@pytest.mark.parametrize("claim", SLIPS)
def test_nothing_that_is_not_claimed_can_fail(claim):
    kind, slip = SLIPS[claim]
    others = [each for each in CLAIMS if each not in (claim, "steps")]
    claimed, left_out = (gr.audit(network(kind), slip, claims=some, rounds=1500) for some in ([claim], others))
    assert not claimed.ok, claimed
    assert left_out.ok, left_out
    assert "fails" not in {each.outcome for each in left_out.findings}
    assert left_out.verdict in ("right", "right in the limit", "limit not claimed")
    assert claim != "limit" or (left_out.verdict, claimed.verdict) == ("limit not claimed", "wrong")


def test_a_run_that_raises_where_it_has_arrived_passes_no_limit():
    def raises(problem):
        yield from primal_dual(problem, limit=99)
        raise RuntimeError("no more")

    report = gr.audit(network("l2"), raises, claims=["repeatable"])
    assert (report.verdict, report.ok) == ("no limit", False)
    assert [each.outcome for each in report.findings if each.evidence == "limit"] == ["remark"]


CALLS = [0]


def remembers(problem, factor=1.0):
    """Nothing is drawn: how the run begins depends on how many there were before."""
    CALLS[0] += 1
    far = 1.0 / CALLS[0]
    for k, (w, _) in enumerate(primal_dual(problem, factor=factor)):
        yield w + far * (0.5**k if factor == 1.0 else 0.01)


def test_a_right_limit_of_runs_that_differ_is_not_repeatable_and_says_so():
    """It was called right as far as it was checked, above a claim that had failed."""
    report = gr.audit(network("l2"), remembers, claims=["limit", "repeatable"], rounds=1500)
    assert (report.verdict, report.ok) == ("right limit, not repeatable", False)
    head = str(report).partition("\n")[0]
    assert head.startswith("remembers (function): right limit, not repeatable. hidden state: ")
    assert report.name.startswith("hidden state: something outside of the arguments")
    left_out = gr.audit(network("l2"), remembers, claims=["limit"], rounds=1500)
    assert left_out.verdict == "right"
    assert "locality (as runs with the same seed differ, nothing can be told from their differences)" in " ".join(
        str(left_out).split()
    ), "the reason is said in full"


def test_a_hidden_state_is_no_bias():
    """Where nothing is random there is no stochastic gradient to be biased."""
    report = gr.audit(network("l2"), lambda problem: remembers(problem, factor=0.5), rounds=1500)
    assert report.verdict == "wrong"
    assert not any("biased" in each.sentence for each in report.findings), report
    assert any(each.sentence.startswith("hidden state") and each.outcome != "remark" for each in report.findings)


def test_the_text_has_the_words_of_the_outcomes():
    report = gr.audit(network("l2"), lambda problem: primal_dual(problem, factor=0.5), claims=["limit"], rounds=1500)
    lines = str(report).splitlines()
    for each in report.findings:
        assert any(line.startswith(f"  {each.outcome} ") and each.evidence in line for line in lines), report


def tracking_with_old_models(problem):
    """Gradient tracking to which neighbours send two messages a round: their y of this round, and their w of the one
    before."""
    o, C = problem.oracles(), metropolis(problem)
    own, step = np.diag(np.diag(C)), 0.05 / o.smoothness.max()
    w = before = np.zeros((o.n, o.d))
    y = g = o.gradient(w)
    while True:
        w, before = own @ w + (C - own) @ before - step * y, w
        y, g = C @ y + o.gradient(w) - g, o.gradient(w)
        yield w


def test_one_of_two_messages_that_is_old_is_not_said_to_be_prompt():
    problem, evidence = network("consensus"), Evidence(None, ("prompt", "local"))
    evidence.locality(algorithm_of(tracking_with_old_models), problem, 0, 0, noisy=False, wrong=False)
    (said,) = [each for each in evidence.found if each.evidence == "promptness"]
    assert (said.outcome, said.sentence) == ("holds", "something of every neighbour arrives in time")


@pytest.mark.parametrize("drift", ["remark", "name"])
def test_nothing_of_one_node_is_named_where_equal_data_fail_and_the_order_does_not_matter(drift):
    """There a factor at one node changes nothing."""
    problem, algorithm, evidence = network("consensus"), algorithm_of(local_means), Evidence(None, CLAIMS)
    evidence.add("balance", "name", "the losses of the node 'a' x 0.9896 (balances to 1.0e-06, t = 0.9896)")
    evidence.add("drift", drift, "wrong on equal data, too: 1.0e-02 from the optimum")
    evidence.order(algorithm, problem, run(algorithm, problem, 400), 0, True)
    assert evidence.found[-1].sentence == "another order of the nodes changes nothing"
    assert evidence.found[0].outcome == drift


def test_a_last_point_that_is_moved_into_the_constraints_is_said_to_be():
    problem = network("consensus")
    w = np.arange(18.0).reshape(9, 2)
    report = gr.audit(problem, [w] * 60)
    said = f"last point, moved by at most {report.certificate.moved:.2g} to where every constraint holds: "
    assert report.certificate.moved > 1.0
    assert said in " ".join(str(report).split())
    assert "last point: " in str(gr.audit(network("l2"), [w] * 60))


def with_messages(grid, shorter=1.0):
    """Gradient steps whose messages are rounded to a grid."""

    def step(w, node, messages):
        if w is None:
            w = np.zeros(node.d)
        elif messages:
            own = grid * np.round(w / grid)
            pull = sum(node.weight[j] * (own - v) for j, v in messages.items())
            w = w - (node.gradient(w) + pull) / (node.smoothness + 2.0 * sum(node.weight.values())) / shorter
        return w, grid * np.round(w / grid)

    return step


@pytest.mark.parametrize(("grid", "shorter"), [(1e-3, 1.0), (0.05, 1.0), (0.05, 20.0), (0.2, 1.0)])
def test_messages_of_few_digits_are_no_long_step_and_not_late(grid, shorter):
    rng, graph = np.random.default_rng(0), nx.cycle_graph(8)
    graph.add_edges_from([(0, 3), (1, 5)])
    samples = {}
    for i in range(8):
        X = rng.normal(size=(4 + i, 2))
        samples[i] = X, X @ [1.0, -1.0] * (1 if i < 4 else -1) + 0.2 * rng.normal(size=4 + i)
    model = gr.SquaredLoss(gr.NodeData.from_dict(samples)) + 0.3 * gr.TotalVariation(graph, gr.SquaredL2())
    report = gr.audit(gr.Problem(model), with_messages(grid, shorter), rounds=2000)
    assert report.name.startswith("few digits, or a fixed size: ")
    assert "stale message" not in str(report)
    told = {each.evidence: each.outcome for each in report.findings}
    assert (told["digits"], told["locality"]) == ("name", "not tried")


@pytest.mark.parametrize(("penalty", "said"), [("l2", "or numbers have few digits: begun at "), ("l1", "few digits: ")])
def test_parameters_of_few_digits_end_where_they_begin(penalty, said):
    def half(problem, start=None):
        o = problem.oracles()
        w, u = np.zeros((o.n, o.d)) if start is None else start, np.zeros((len(o.tail), o.d))
        step = 0.99 / np.linalg.norm(o.K.toarray(), 2)
        while True:
            new = o.prox(w - step * (o.K.T @ u), step).astype(np.float16).astype(float)
            w, u = new, o.dual_prox(u + step * (o.K @ (2.0 * new - w)), step)
            yield w

    algorithm, optimum = algorithm_of(half), Optimum.of(network(penalty))
    course = run(algorithm, optimum.problem, 300)
    seen = Examined(algorithm, 0, optimum, course, limit_of(course, optimum))
    (found,) = _of_start(seen, noisy=False)
    assert (seen.limit.kind, found.outcome) == ("wrong", "name")
    assert said in found.sentence


# ---- names that are no wider, and no narrower, than what was seen ----------------------------------------------------
def five_nodes(penalty):
    rng, graph, samples = np.random.default_rng(0), nx.path_graph(5), {}
    graph.add_edge(0, 2)
    for i in graph:
        X = rng.normal(size=(5 + i, 2))
        samples[i] = X, X @ [1.0, i] + 0.3 * rng.normal(size=5 + i)
    return gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples)) + penalty(graph))


def mixed(step, W_of):
    def algorithm(problem, start=None):
        o = problem.oracles()
        w, W = np.zeros((o.n, o.d)) if start is None else start, W_of(o)
        while True:
            w = W @ w - step / o.smoothness.max() * (o.gradient(w) + o.K.T @ o.edge_gradient(o.K @ w))
            yield w

    return algorithm


@pytest.mark.parametrize(("penalty", "said"), [(gr.L2, True), (gr.SquaredL2, False)])
def test_a_constant_step_of_a_subgradient_method_is_named_where_there_are_kinks(penalty, said):
    problem = five_nodes(lambda graph: gr.TotalVariation(graph, penalty()))
    report = gr.audit(problem, mixed(0.02 if said else 2.1, lambda o: np.eye(o.n)), rounds=2000)
    assert report.name.startswith("step or relaxation too long")
    assert ("a constant step of a subgradient method" in report.name) == said


def test_without_a_name_nothing_is_consistent_with_it():
    problem = five_nodes(lambda graph: 0.3 * gr.TotalVariation(graph, gr.SquaredL2()))
    report = gr.audit(problem, mixed(0.1, lambda o: np.diag([1.0, 1.0, 1.2, 1.0, 1.0])))
    assert (report.name, report.verdict) == ("", "never settles")
    (order,) = (each for each in report.findings if each.evidence == "order")
    assert order.outcome == "remark"
    assert "changes the run" in order.sentence


@pytest.mark.parametrize("row", [1.0, 0.95])
def test_rows_of_a_mixing_that_add_up_to_1_are_no_alternative(row):
    def W_of(o):
        W = np.eye(o.n) - (o.K.T @ o.K).toarray() / 5
        W[0] *= row
        return W

    def descent(problem, start=None):
        o = problem.oracles()
        w, W = np.zeros((o.n, o.d)) if start is None else start, W_of(o)
        while True:
            w = W @ w - 0.3 / o.smoothness.max() * o.gradient(w)
            yield w

    report = gr.audit(five_nodes(gr.Consensus), descent)
    assert report.verdict == "wrong"
    assert ("mixing whose rows do not add up to 1" in report.name) == (row != 1.0)
    assert report.name.startswith("constant step: ") == (row == 1.0)


# ---- an infimum of 0, beside which every gap is 1 --------------------------------------------------------------------
def test_a_run_towards_an_infimum_that_is_not_attained_is_not_wrong():
    X = np.c_[np.ones(6), np.arange(-2.5, 3)]
    data = gr.NodeData.from_dict({i: (X, np.where(X[:, 1] > 0, 1, -1)) for i in range(3)})
    problem = gr.Problem(gr.LogisticLoss(data) + 0.3 * gr.TotalVariation(nx.path_graph(3), gr.L2()))
    report = gr.audit(problem, primal_dual, rounds=2000)
    assert (report.verdict, report.name) == ("undecided", "")


def test_data_without_noise_and_a_node_without_data():
    rng, samples = np.random.default_rng(0), {}
    for i in range(3):
        X = rng.normal(size=(6, 2))
        samples[i] = X, X @ [1.0, 2.0]
    data = gr.NodeData.from_dict(samples)
    problem = gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(nx.path_graph(4), gr.L2()))
    for algorithm in (gr.PrimalDual(), primal_dual):
        assert gr.audit(problem, algorithm).verdict == "right"


def test_counts_of_zero_have_a_scale():
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({i: (np.c_[np.ones(4), rng.normal(size=4)], np.zeros(4)) for i in range(4)})
    problem = gr.Problem(gr.PoissonLoss(data) + 0.3 * gr.TotalVariation(nx.path_graph(4), gr.L2()))
    assert gr.audit(problem, primal_dual, rounds=1000).verdict == "undecided"


@pytest.mark.parametrize("shorter", [1.0, 0.1])
def test_a_wrong_sign_is_no_long_step(shorter):
    """On the first edge alone it settles, too: rightly where its ends agree anyway, and else wrongly."""
    rng, graph = np.random.default_rng(3), nx.cycle_graph(8)
    graph.add_edges_from([(0, 3), (2, 6)])
    graph.add_node(8)
    nx.set_edge_attributes(graph, {edge: 0.4 + 0.2 * k for k, edge in enumerate(graph.edges)}, "weight")
    samples = {}
    for i in set(range(8)) - {4}:
        X = rng.normal(size=(4 + 2 * i, 2))
        samples[i] = X, X @ ([1.0, -1.0] if i < 4 else [-1.0, 2.0])
    data = gr.NodeData.from_dict(samples)
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.SquaredL2()))

    def uphill(problem, start=None):
        o = problem.oracles()
        step = shorter / (o.smoothness.max() + 4.0 * o.weight.max())
        w = np.zeros((o.n, o.d))
        while True:
            w = w - step * (o.gradient(w) - o.K.T @ (o.weight[:, None] * (o.K @ w)))
            yield w

    report = gr.audit(problem, uphill, rounds=1000)
    assert report.verdict == "never settles"
    assert [each.outcome for each in report.findings if each.evidence == "steps"] == ["remark"]
    assert "too long" not in str(report)


def test_noise_that_dies_out_is_right_in_the_limit():
    def noisy(problem, start=None, seed=0):
        o, rng, k = problem.oracles(), np.random.default_rng(seed), 0
        w = np.zeros((o.n, o.d))
        step = 1.0 / (o.smoothness.max() + 4.0 * o.weight.max())
        while True:
            k += 1
            w = w - step * (o.gradient(w) + o.K.T @ (o.weight[:, None] * (o.K @ w)))
            yield w + rng.normal(size=w.shape) / k

    rng, samples = np.random.default_rng(0), {}
    for i in range(6):
        X = rng.normal(size=(6, 2))
        samples[i] = X, X @ [1.0, -1.0] + 0.2 * rng.normal(size=6)
    model = gr.SquaredLoss(gr.NodeData.from_dict(samples)) + 0.3 * gr.TotalVariation(nx.cycle_graph(6), gr.SquaredL2())
    assert gr.audit(gr.Problem(model), noisy).verdict == "right in the limit"
