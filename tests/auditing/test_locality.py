"""Delays of messages: they are the distances in the graph, and what differs from them is found."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from audit_cases import gossip, gradient_step, metropolis, network, primal_dual
from factories import thinned

import graphreg as gr
from benchmarks.audits.instances import instance
from graphreg.auditing.algorithms import algorithm_of
from graphreg.auditing.evidence import Evidence
from graphreg.auditing.locality import NEVER, Delays, _delay, confirmed, delays, hops, mass, off
from graphreg.form import DualPoint


@pytest.mark.parametrize("penalty", thinned(["l2", "l1", "squared"], every=3))
def test_delays_are_the_distances_in_the_graph(penalty):
    found = delays(algorithm_of(primal_dual), network(penalty), 0)
    assert found.seen
    assert not found.early()
    assert not found.at_once
    near = (found.hops > 0) & (found.rounds < NEVER)
    assert (found.rounds[near] >= found.hops[near]).all()


def test_a_step_run_node_by_node_is_local_by_construction():
    found = delays(algorithm_of(gradient_step), network("squared", isolated=True), 0)
    assert not found.early()
    alone = found.labels.index("alone")
    others = np.arange(len(found.labels)) != alone
    assert (found.rounds[alone, others] == NEVER).all()


def test_a_late_message_is_found():
    problem = network("l2")
    algorithm = algorithm_of(lambda problem: primal_dual(problem, late=True))
    found = confirmed(algorithm, problem, delays(algorithm, problem, 0), 0)
    assert found.late()
    (edge,) = problem.form.edges
    ends = {int(edge.tail[3]), int(edge.head[3])}
    assert all({j, i} == ends for j, i in found.late())


def test_signs_that_hide_messages_are_not_late():
    found = delays(algorithm_of(gr.SubgradientDescent()), instance("edges", 1), 0)
    assert found.seen
    assert not found.late()


def ring(n=4):
    rng = np.random.default_rng(0)
    samples = {i: (rng.normal(size=(4 + i, 2)), rng.normal(size=4 + i)) for i in range(n)}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    return gr.Problem(loss + 0.3 * gr.TotalVariation(nx.cycle_graph(n), gr.SquaredL2()))


def stepping(heard, waits=False):
    """Descent at nodes, of which i hears of j where ``heard(i, j)``; they may wait for the first message."""

    def step(state, node, messages):
        w = np.zeros(node.d) if state is None else state
        if messages or not waits:
            pull = sum((node.weight[j] * (w - v) for j, v in messages.items()), 0.0 * w)
            w = w - (node.gradient(w) + pull) / (node.smoothness + 4.0)
        return w, {j: w for j in node.neighbours if heard(j, node.label)}

    return step


def by_turns(problem):
    """Descent in which one edge in turn carries messages, and all else is what was heard last."""
    o = problem.oracles()
    w, k, m = np.zeros((o.n, o.d)), 0, len(o.tail)
    step, heard = 1.0 / (o.smoothness + 4.0), np.zeros((2, m, o.d))
    while True:
        e = k % m
        heard[:, e] = w[o.head[e]], w[o.tail[e]]
        g = o.gradient(w)
        np.add.at(g, o.tail, o.weight[:, None] * (w[o.tail] - heard[0]))
        np.add.at(g, o.head, o.weight[:, None] * (w[o.head] - heard[1]))
        w, k = w - step[:, None] * g, k + 1
        yield w


NOTHING = "nothing crosses [(0, 1), (1, 2)]"
AT_LEAST = "in the rounds that were looked at"


@pytest.mark.parametrize(
    ("algorithm", "wrong", "outcomes", "said"),
    [
        (stepping(lambda i, j: 1 not in (i, j)), True, ["fails", "name"], NOTHING),
        (stepping(lambda i, j: 1 not in (i, j), waits=True), True, ["fails", "name"], NOTHING),
        (stepping(lambda i, j: 1 not in (i, j)), False, ["remark"], f"held back, or {NOTHING} {AT_LEAST}"),
        (
            stepping(lambda i, j: i != 1),
            True,
            ["remark"],
            "what comes late or not at all (1 of 0, 1 of 2) is held back, ",
        ),
        (stepping(lambda i, j: True), False, ["holds"], "something of every neighbour arrives in time"),
        (by_turns, False, ["fails", "name"], "held back, or nothing crosses [("),
    ],
    ids=["alone", "alone, waiting", "alone, and right", "deaf", "all", "by turns"],
)
def test_what_nothing_crosses_is_not_prompt(algorithm, wrong, outcomes, said):
    """A node that hears of nobody, nor they of it, was said to hear of all in time; what crosses an edge every fourth
    round, never to cross it."""
    evidence = Evidence(None, ("prompt", "local"))
    evidence.locality(algorithm_of(algorithm), ring(), 0, 0, noisy=False, wrong=wrong)
    found = [each for each in evidence.found if each.evidence == "promptness"]
    assert [each.outcome for each in found] == outcomes
    assert found[0].sentence.startswith(said)
    assert found[0].sentence.endswith(AT_LEAST) == ("held back, or" in said)


def stranger(problem):
    C = metropolis(problem)
    C[0, 6], C[6, 0], C[0, 0], C[6, 6] = 0.1, 0.1, C[0, 0] - 0.1, C[6, 6] - 0.1
    return C


def test_a_read_of_a_non_neighbour_is_found_and_comes_first():
    found = delays(algorithm_of(lambda problem: gossip(problem, mixing=stranger)), network("consensus"), 0)
    assert set(found.early()[:2]) == {(0, 6), (6, 0)}


def test_a_server_is_told_from_a_stranger():
    def averaged(problem):
        return np.full((9, 9), 1.0 / 9.0)

    assert delays(algorithm_of(lambda problem: gossip(problem, mixing=averaged)), network("consensus"), 0).at_once


@pytest.mark.parametrize("graph", [nx.path_graph(8), nx.watts_strogatz_graph(9, 4, 0.3, seed=1)])
@pytest.mark.parametrize("method", [gr.GradientTracking(), gr.ExactDiffusion()])
def test_two_exchanges_in_a_round_are_no_server(method, graph):
    rng = np.random.default_rng(0)
    samples = {i: (rng.normal(size=(6, 2)), rng.normal(size=6)) for i in graph}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    problem = gr.Problem(loss + gr.Consensus(gr.Graph.of(graph)))
    assert not delays(algorithm_of(method), problem, 0).at_once
    assert "server" not in str(gr.audit(problem, method))


@pytest.mark.parametrize("graph", [nx.cycle_graph(8), nx.path_graph(8)])
def test_the_exchanges_of_a_round_are_counted_and_no_sums_are_blamed(graph):
    """Exact diffusion has one, after the step; gradient tracking two, and its sums only set its step."""
    rng = np.random.default_rng(0)
    samples = {i: (rng.normal(size=(6, 2)), rng.normal(size=6)) for i in graph}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    problem = gr.Problem(loss + gr.Consensus(gr.Graph.of(graph)))
    for method, exchanges in ((gr.ExactDiffusion(), 1), (gr.GradientTracking(), 2), (gr.ADMM(), 1)):
        found = delays(algorithm_of(method), problem, 0)
        assert (found.hops_a_round, found.early()) == (exchanges, [])
        said = " ".join(str(gr.audit(problem, method)).split())
        assert ("about 2 exchanges a round" in said) == (exchanges == 2)
        assert "sums over all nodes" not in said


def test_sums_by_which_far_nodes_may_hear_are_said_beside_what_was_seen():
    """Steps are balanced in round 10 by a sum over all nodes, which is before a message has gone round the ring."""
    rng = np.random.default_rng(0)
    samples = {i: (rng.normal(size=(6, 2)), rng.normal(size=6)) for i in range(30)}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    problem = gr.Problem(loss + 0.1 * gr.TotalVariation(nx.cycle_graph(30), gr.L2()))
    report = gr.audit(problem, gr.PrimalDual())
    (said,) = (each for each in report.findings if each.evidence == "locality")
    assert said.outcome == "remark"
    assert "know of each other too early, first" in said.sentence
    assert "records sums over all nodes" in said.sentence
    assert "by which they may" in said.sentence


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("method", "said"),
    [
        (gr.InteriorPoint(), "every node hears of every other at once: a server, or one place"),
        (gr.ADMM(), "no node hears of another before"),
        (gr.AsyncAL2SGD(), "about 2 exchanges a round"),
    ],
)
def test_nodes_that_are_coupled_by_servers_alone_have_no_neighbours(method, said):
    rng = np.random.default_rng(0)
    samples = {i: (rng.normal(size=(8, 2)), rng.normal(size=8)) for i in range(8)}
    tree = gr.Hierarchy({i: "west" if i < 4 else "east" for i in range(8)}, weights=(1.0, 0.5))
    evidence = Evidence(None, ("local",))
    problem = gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples)) + tree)
    evidence.locality(algorithm_of(method), problem, 0, 0, noisy=False, wrong=False)
    (found,) = (each for each in evidence.found if each.evidence == "locality")
    assert said in found.sentence
    assert found.outcome != "fails"


@pytest.mark.parametrize(("graph", "near"), [(gr.Graph.chain(7), False), (gr.Graph.of(nx.star_graph(6)), True)])
def test_a_server_is_told_however_near_the_nodes_are(graph, near):
    """On a star nodes are two hops apart at most: a server there is a remark, too, and no read of a non-neighbour."""

    def averaged(problem, start=None, seed=None):
        oracles = problem.oracles()
        w = np.zeros((oracles.n, oracles.d)) if start is None else start
        while True:
            w = np.tile((w - oracles.gradient(w) / oracles.smoothness.max()).mean(axis=0), (oracles.n, 1))
            yield w

    rng = np.random.default_rng(0)
    samples = {i: (rng.normal(size=(6, 2)), rng.normal(size=6)) for i in range(7)}
    report = gr.audit(gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples)) + gr.Consensus(graph)), averaged)
    assert report.verdict == "right"
    assert "at once: a server, or one place" in str(report)
    assert ("or two exchanges in a round" in str(report)) == near
    assert "non-neighbour" not in str(report)


def test_impulses_keep_their_mass_where_mixing_is_symmetric():
    problem = network("consensus")
    even = mass(algorithm_of(gossip), problem, 0)
    assert even is not None
    assert even.even

    def rows(problem):
        C = np.array(metropolis(problem) > 0, dtype=float)
        return C / C.sum(axis=1, keepdims=True)

    odd = mass(algorithm_of(lambda problem, start=None: gossip(problem, start, mixing=rows)), problem, 0)
    assert odd is not None
    assert not odd.even


def test_a_gradient_in_the_round_of_an_impulse_takes_nothing_of_its_mass():
    """Of nodes that average before they step, with symmetric weights: those beside the one node whose losses are not
    flat were said to keep 0.87."""

    def averages_first(problem, start=None):
        o, C = problem.oracles(), metropolis(problem)
        w = np.zeros((o.n, o.d)) if start is None else start
        while True:
            w = C @ w
            w = w - o.gradient(w) / (2.0 * o.smoothness.max())
            yield w

    problem = network("consensus")
    assert mass(algorithm_of(averages_first), problem, 0).even
    said = str(gr.audit(problem, averages_first, claims=["limit"], rounds=300))
    assert "an impulse of 1" not in said
    assert "an impulse keeps its mass" in said


def spoilt(i, j, by):
    """Metropolis weights but for one more at (i, j), taken from the diagonal unless that is it."""

    def mixing(problem):
        C = metropolis(problem)
        C[i, j] += by
        C[i, i] -= by * (i != j)
        return C

    return mixing


def tail():
    """A ring with a node behind it; the last node is a neighbour of node 2 alone."""
    rng, graph = np.random.default_rng(0), nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (2, 4)])
    samples = {i: (x := rng.normal(size=(5 + i, 2)), x @ [1.0, -1.0 + i / 4]) for i in range(5)}
    return gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples)) + gr.Consensus(graph))


@pytest.mark.parametrize("i", range(5))
def test_rows_of_other_sums_are_seen_at_every_node(i):
    """Beside the node whose losses are not flat, too: there mixing was said to be doubly stochastic."""
    found = mass(algorithm_of(lambda problem, start=None: gossip(problem, start, mixing=spoilt(i, i, -0.1))), tail(), 0)
    assert found is not None
    assert set(found.kept) == set(found.sums) == set(range(5))
    for sums in (found.kept, found.sums):
        assert off(sums) == {i: pytest.approx(0.9)}
    uneven = mass(algorithm_of(lambda problem, start=None: gossip(problem, start, mixing=spoilt(i, 2, 0.1))), tail(), 0)
    assert uneven is not None
    assert (uneven.constant, uneven.even) == ((False, False) if i == 2 else (True, False))


def test_of_a_star_the_middle_is_not_tried():
    samples = {i: ([[1.0]], [float(i)]) for i in range(5)}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    problem = gr.Problem(loss + gr.Consensus(nx.star_graph(4)))
    found = mass(algorithm_of(gossip), problem, 0)
    assert found is not None
    assert set(found.kept) == {1, 2, 3, 4}
    report = gr.audit(
        problem, lambda problem, start=None: gossip(problem, start, power=0.0), claims=["limit"], rounds=300
    )
    assert "mixing is doubly stochastic (1 node not tried)" in " ".join(str(report).split())
    last = nx.empty_graph(5)  # the node that is looked from first is near all others
    last.add_edges_from((4, i) for i in range(4))
    assert set(mass(algorithm_of(gossip), gr.Problem(loss + gr.Consensus(last)), 0).kept) == {0, 1, 2, 3}
    whole = gr.Problem(loss + gr.Consensus(nx.complete_graph(5)))
    assert mass(algorithm_of(gossip), whole, 0) is None


@pytest.mark.parametrize(
    ("mixing", "outcome", "said"),
    [
        (spoilt(2, 2, -0.1), "name", "a constant of 1 becomes 0.9 (at 2) in a round: there the rows have other sums"),
        (
            lambda problem: 0.99 * metropolis(problem),
            "remark",
            "0.99 (at 0), 0.99 (at 1), 0.99 (at 3) in a round: rows",
        ),
    ],
)
def test_what_becomes_of_constants_is_said_with_the_nodes(mixing, outcome, said):
    def shrinks(problem, start=None):
        return gossip(problem, start, mixing=mixing)

    report = gr.audit(tail(), shrinks, claims=["limit"], rounds=300)
    (found,) = (each for each in report.findings if each.evidence == "mixing")
    assert (report.verdict, found.outcome) == ("wrong", outcome)
    assert said in found.sentence
    assert report.name.startswith("mixing whose rows do not add up to 1") == (outcome == "name")


def test_what_is_left_of_impulses_is_said_with_the_nodes():
    def plain_means(problem, start=None):
        C = np.array(metropolis(problem) > 0, dtype=float)
        return gossip(problem, start, mixing=lambda problem: C / C.sum(axis=1, keepdims=True), power=0.0)

    said = " ".join(str(gr.audit(network("consensus"), plain_means, claims=["limit"], rounds=300)).split())
    assert "an impulse of 1 at one node adds up over all nodes to 1." in said
    assert " (at 0), " in said


def test_a_message_in_a_small_coordinate_is_seen_beside_a_large_one():
    base = [np.array([[1.0, 1e9], [1.0, 1e9]])] * 3
    moved = [base[0] + np.array([[1e-6, 0.0], [1e-6 * (k > 1), 0.0]]) for k in range(3)]
    assert _delay(base, moved, 0, 2).tolist() == [0, 2]


# ---- several components ----------------------------------------------------------------------------------------------
def components(edges, isolated=()):
    graph = nx.Graph(edges)
    graph.add_nodes_from(isolated)
    rng = np.random.default_rng(0)
    samples = {i: (rng.normal(size=(5, 2)), rng.normal(size=5)) for i in sorted(graph)}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    graph = gr.Graph.from_edges(sorted(graph.edges), nodes=sorted(graph))
    return gr.Problem(loss + 0.3 * gr.TotalVariation(graph, gr.SquaredL2()))


def damped(damping):
    """Descent whose steps at every node are multiplied by ``damping(w, k)`` in round k."""

    def descent(problem):
        o = problem.oracles()
        w, L = np.zeros((o.n, o.d)), (o.smoothness + 2.0 * np.abs(o.K.T) @ o.weight)[:, None]
        for k in range(10**6):
            w = w - damping(w, k) * (o.gradient(w) + o.K.T @ o.edge_gradient(o.K @ w)) / L
            yield w

    return algorithm_of(descent)


def by_size(w):
    return 0.5 + 0.5 / (1.0 + np.sum(w**2))


def reading(i, j):
    """Node i reads node j, from the second round on."""
    return damped(lambda w, k: np.where(np.arange(len(w)) == i, by_size(w[j]), 1.0)[:, None])


def sharing(i, j):
    """The same, node by node, by what the step keeps outside of its arguments."""
    kept = {}

    def step(state, node, messages):
        w = np.zeros(node.d) if state is None else state
        if messages or not node.neighbours:
            pull = sum((node.weight[k] * (w - v) for k, v in messages.items()), 0.0 * w)
            factor = by_size(kept[j]) if node.label == i and state is not None else 1.0
            w = w - factor * (node.gradient(w) + pull) / (node.smoothness + 2.0 * sum(node.weight.values()))
        kept[node.label] = w
        return w, w

    return algorithm_of(step)


TWO_PATHS = components([(0, 1), (1, 2), (3, 4), (4, 5)])
PATH_AND_ALONE = components([(0, 1), (1, 2)], isolated=[3])
EDGE_AND_ALONE = components([(0, 1)], isolated=[2])


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize(
    ("problem", "i", "j"),
    [(TWO_PATHS, 0, 3), (PATH_AND_ALONE, 0, 3), (PATH_AND_ALONE, 3, 0), (EDGE_AND_ALONE, 0, 2), (EDGE_AND_ALONE, 2, 0)],
)
@pytest.mark.parametrize(
    ("reader", "name"),
    [(reading, "read of a non-neighbour: node {} of {}"), (sharing, "nodes share what the step keeps outside of its ")],
)
def test_a_read_of_another_component_is_found(reader, name, problem, i, j, wrong):
    """However many rounds are waited for: nothing that leads to j is between them."""
    evidence = Evidence(None, ("local", "prompt"))
    evidence.locality(reader(i, j), problem, 0, 0, noisy=False, wrong=wrong)
    found = [each for each in evidence.found if each.evidence == "locality"]
    assert [each.outcome for each in found] == ["fails", "name"]
    assert f"too early, first {i} of {j}" in found[0].sentence
    assert found[1].sentence.startswith(name.format(i, j))


@pytest.mark.parametrize(
    ("algorithm", "sums", "outcome", "said"),
    [
        (damped(lambda w, k: 1.0), 0, "holds", "no node hears of another before its messages can come"),
        (damped(lambda w, k: by_size(w)), 0, "remark", "at once: a server, or one place"),
        (damped(lambda w, k: by_size(w) if k == 8 else 1.0), 0, "remark", "; a server or one place, or reads"),
        (damped(lambda w, k: by_size(w) if k == 8 else 1.0), 1, "remark", "it records sums over all nodes (1 in "),
    ],
    ids=["local", "server", "server, late", "sums"],
)
@pytest.mark.parametrize("problem", [TWO_PATHS, EDGE_AND_ALONE, components([(0, 1), (1, 2), (2, 3), (3, 4)], [5])])
def test_a_server_that_joins_components_is_a_remark_unless_claimed_to_be_local(problem, algorithm, sums, outcome, said):
    for claims, expected in ((None, outcome), (("local",), "fails" if outcome == "remark" and not sums else outcome)):
        evidence = Evidence(claims, ("local",))
        evidence.locality(algorithm, problem, 0, sums, noisy=False, wrong=False)
        (found,) = (each for each in evidence.found if each.evidence == "locality")
        assert found.outcome == expected
        assert expected == "fails" or said in found.sentence
        assert "two exchanges" not in found.sentence


def test_what_is_never_heard_is_not_early_however_far_nodes_are():
    """A chain longer than any count of rounds that is looked at."""
    problem = components([(i, i + 1) for i in range(130)])
    rounds = np.where(np.eye(131, dtype=bool), 0, NEVER)
    found = Delays(problem.form.labels, np.full(131, True), rounds, hops(problem.form))
    assert found.hops.max() == 130
    assert (found.early(), found.share_early) == ([], 0.0)


# ---- rows that are no edges ------------------------------------------------------------------------------------------
def descent(form, leak):
    """Gradient steps with the flows of all rows; where there is a leak every node hears of the mean of all."""
    w = np.zeros(form.shape)
    while True:
        flows = tuple(edge.gradients(w) for edge in form.edges)
        w = w - 0.05 * form.conservation(DualPoint(flows, form.gradient_prices(w))) + leak * w.mean(axis=0)
        yield w


@pytest.mark.parametrize("leak", [0.0, 1e-9])
def test_the_ends_of_a_row_are_neighbours(leak):
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(8.0) ** 2, range(8)))
    wide = gr.SquaredL2()(gr.w.at(0) - 2.0 * gr.w.at(4) + gr.w.at(7))
    problem = gr.Problem(fit + gr.SquaredL2()(gr.w.along(range(8))) + wide)
    found = delays(algorithm_of(lambda problem: descent(problem.form, leak)), problem, 0)
    assert found.hops[0, 7] == 1
    assert found.hops[0, 2] == 2
    assert bool(found.early()) == (leak > 0.0)


def test_an_audit_of_a_loss_of_rows():
    blur = sum(np.eye(4, k=k) / 3.0 for k in (-1, 0, 1))
    model = gr.SquaredLoss(blur @ gr.w.at(range(4)), np.arange(4.0)) + 0.1 * gr.SquaredL2()(gr.w.along(range(4)))
    report = gr.audit(gr.Problem(model), gr.PrimalDual(), rounds=100)
    assert report.ok
    assert {"limit", "repetition", "order", "steps"} <= {each.evidence for each in report.findings}
    assert {each.outcome for each in report.findings if each.evidence != "locality"} <= {"holds", "not tried"}


@pytest.mark.parametrize(("factor", "name"), [(1.0, ""), (2.0, "the losses of the node 3 x 2")])
def test_two_exchanges_a_round_are_no_read_where_a_limit_balances_exactly(factor, name):
    """Gradient tracking that adapts and then combines, at whose node 3 losses may count twice."""
    rng, path = np.random.default_rng(0), nx.path_graph(6)
    samples = {i: (X := rng.normal(size=(5 + i, 2)), X @ [i, -1.0] + rng.normal(size=5 + i)) for i in path}
    problem = gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples)) + gr.Consensus(path))

    def tracking(problem):
        o = problem.oracles()
        W, step, times = (
            metropolis(problem),
            0.1 / max(o.smoothness),
            np.where(np.arange(o.n) == 3, factor, 1.0)[:, None],
        )
        w = np.zeros((o.n, o.d))
        y = g = times * o.gradient(w)
        while True:
            w = W @ (w - step * y)
            new = times * o.gradient(w)
            y, g = W @ (y + new - g), new
            yield w

    report = gr.audit(problem, tracking)
    assert report.verdict == ("wrong" if name else "right")
    assert report.name.startswith(name)
    assert bool(report.name) == bool(name)
    (found,) = (each for each in report.findings if each.evidence == "locality")
    assert found.outcome == "remark"
    assert "no telling which" in found.sentence


def test_of_a_run_that_never_settles_it_is_said_what_no_limit_could_be_asked():
    def swings(problem):
        o = problem.oracles()
        for k in range(10**6):
            yield np.full((o.n, o.d), float((-1) ** k))

    report = gr.audit(tail(), swings, rounds=300)
    assert report.verdict == "never settles"
    assert "has no limit that balance, mixing, dictionary, drift and start" in " ".join(str(report).split())
