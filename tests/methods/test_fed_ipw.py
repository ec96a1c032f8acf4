"""Fed-ADMM with inverse-probability weights: the printed Algorithm 2, neighbours that act for nodes that are away."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from actor_cases import by_actors, deviation, on_arrays, problem, whole
from factories import thinned
from federated_factories import PROX, SEED, ByHand, D, L_of, N, P, data_of, edges_of, graph_of, run_of, squared

import graphreg as gr
from graphreg.methods.fed_admm._versions import Versions
from graphreg.network.streams import Streams

RHO, KAPPA, CHANCES = 0.7, 1.5, np.array(list(P.values()))


def steps_of(data, edges, p, batch=None, rho=RHO, kappa=KAPPA):
    """kappa / (t + kappa (L_i / p_i + rho deg_i))."""
    degree = np.array([sum(i in edge[:2] for edge in edges) for i in range(N)])
    bound = L_of(data, batch) / p + rho * degree
    return lambda i, t: kappa / (t + kappa * bound[i])


def states_of(method, form, marks, seed=SEED, start=None):
    state, out = method.init(whole(form, seed), start), {}
    for k in range(1, max(marks) + 1):
        state = method.step(state)
        if k in marks:
            out[k] = state
    return out


# ---- by hand ---------------------------------------------------------------------------------------------------------
class ByNeighbours(ByHand):
    """Every node i with its own dictionaries of what it believes of its edges: ``own[i][e]`` has beta and alpha at both
    ends, and theta of the other end."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options, mode="ipw")
        self.own = [{} for _ in range(N)]
        for e, (i, j, _, _, columns) in enumerate(self.edges):
            zero = np.zeros(len(columns))
            for k in (i,) if j is None else (i, j):
                self.own[k][e] = {"beta": {i: zero, j: zero}, "alpha": {i: zero, j: zero}, "theta": zero}
        self.pairs = {edge[:2]: [] for edge in self.edges if edge[1] is not None}  # the rounds since they met

    def meet(self, present):
        before, theta = self.own, self.theta.copy()
        self.own = [dict(each) for each in before]
        for e, (i, j, *_, columns) in enumerate(self.edges):
            past = self.pairs.get((i, j))
            if not past or not (present[i] and present[j]):
                continue
            first, second = np.sum(past, axis=0)
            ahead, behind = (j, i) if second > first else (i, j)
            self.own[behind][e] = before[ahead][e]
            if max(first, second) == len(past) and min(first, second) == 0 and len(self.own[behind]) == 1:
                theta[behind, columns] = before[ahead][e]["theta"]
        self.theta = theta

    def move(self, k, theta, shares):
        """(21b)."""
        return self.steps(k, self.t) * (self.rho * len(shares) * theta - sum(shares))

    def share(self, i, e, k):
        mine = self.own[i][e]
        return self.rho * mine["beta"][k] + mine["alpha"][k]

    def round(self):
        self.t += 1
        present = self.present()
        self.meet(present)
        theta = self.theta.copy()
        for i in range(N):
            slope = self.gradient(i) / self.p[i] if present[i] else np.zeros_like(theta[i])
            for e in self.own[i]:
                columns = self.edges[e][4]
                slope[columns] += self.rho * self.theta[i, columns] - self.share(i, e, i)
            theta[i] = theta[i] - self.steps(i, self.t) * slope
        self.theta = theta
        for e, (i, j, *_) in enumerate(self.edges):
            for me, other in ((i, j), (j, i)):
                if me is not None:
                    self.edge(e, me, other, present)
        for (i, j), past in self.pairs.items():
            past.clear() if present[i] and present[j] else past.append((present[i], present[j]))

    def edge(self, e, me, other, present):
        i, j, kind, c, columns = self.edges[e]
        mine = self.own[me][e]
        theirs = mine["theta"]
        if other is not None and present[me] and present[other]:
            theirs = self.theta[other, columns]
        elif other is not None and len(self.own[other]) == 1:
            theirs = theirs - self.move(other, theirs, [self.share(me, e, other)])
        theta = {me: self.theta[me, columns], other: theirs}
        a = {k: theta[k] - mine["alpha"][k] / self.rho for k in theta}
        if j is None:
            new = {i: PROX[kind](a[i], c / self.rho), None: theirs}
        else:
            d = PROX[kind](a[i] - a[j], 2.0 * c / self.rho)
            new = {i: (a[i] + a[j] + d) / 2, j: (a[i] + a[j] - d) / 2}
        alpha = {k: mine["alpha"][k] - self.rho * (theta[k] - new[k]) for k in theta}
        self.own[me][e] = {"beta": new, "alpha": alpha, "theta": theirs}


def many(data):
    """Edges to the ground, two graphs, and coordinates that no edge couples."""
    model = gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(graph_of(), gr.L2(), features=["x0", "x2"])
    model = model + 0.1 * gr.NodePenalty(gr.L1(), features=["x1", "x2"])
    return model + 0.2 * gr.TotalVariation(nx.path_graph(4), gr.L1(), features=["x2"])


def path(data):
    """Its first and last node have one edge."""
    return gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(nx.path_graph(N), gr.L2(), features=["x0", "x2"])


@pytest.mark.parametrize("model", [many, path])
@pytest.mark.parametrize("batch", [None, 2])
def test_neighbours_by_hand(batch, model):
    """Also what nodes have of themselves while they are away."""
    data = data_of(d=4)
    form = gr.Problem(model(data)).form
    edges = edges_of(form)
    hand = ByNeighbours(data, edges, RHO, steps_of(data, edges, CHANCES, batch), batch, CHANCES)
    method = gr.FedADMM(rho=RHO, kappa=KAPPA, batch=batch, availability=P, while_away="ipw")
    for k, state in states_of(method, form, (1, 2, 3, 5, 17, 18, 19, 60)).items():
        while hand.t < k:
            hand.round()
        np.testing.assert_allclose(state.theta, hand.theta, atol=1e-10)
        at = 0
        for u in method.point(state)[1]:
            expected = [-hand.own[edge[0]][at + r]["alpha"][edge[0]] for r, edge in enumerate(edges[at : at + len(u)])]
            np.testing.assert_allclose(u, expected, atol=1e-10)
            at += len(u)


# ---- the printed Algorithm 2, on its server --------------------------------------------------------------------------
def server(data, form, p, batch=None, mode="ipw", seed=SEED, rho=RHO, kappa=KAPPA):
    edges = edges_of(form)
    return ByHand(data, edges, rho, steps_of(data, edges, p, batch, rho, kappa), batch, p, mode, seed)


@pytest.mark.parametrize("kind", ["L1", "L2", "SquaredL2"])
@pytest.mark.parametrize("batch", [None, 3])
def test_the_printed_algorithm_step_by_step_where_the_neighbours_know_all(kind, batch):
    """In a star whose middle is always there, (21b) needs nothing that it has not: the iterates are the server's."""
    p, T = np.array([1.0, 0.3, 0.5, 0.2, 0.9, 0.4]), 80
    model = gr.SquaredLoss(data_of()) + 0.3 * gr.TotalVariation(nx.star_graph(N - 1), getattr(gr, kind)())
    form = gr.Problem(model).form
    hand, stored = server(data_of(), form, p, batch), []
    method = gr.FedADMM(
        rho=RHO, kappa=KAPPA, batch=batch, availability=dict(enumerate(p)), while_away="ipw", average="last"
    )
    for state in states_of(method, form, range(1, T + 1)).values():
        hand.round()
        present = hand.present()
        np.testing.assert_allclose(state.theta[present], hand.theta[present], atol=1e-11)
        stored.append(np.abs(state.theta - hand.theta).max())
    assert max(stored) > 1e-3  # what nodes have of themselves while they are away is another matter
    run = gr.Problem(model).solve(method, gap=0, rounds=T, seed=SEED)
    np.testing.assert_allclose(run.coef[present], hand.theta[present], atol=1e-11)


def test_all_there_is_algorithm_1():
    """Nobody acts for anybody: the rounds of ``freeze``, with the same messages."""
    form, marks = squared().form, (1, 7, 30)
    options = {"rho": RHO, "kappa": KAPPA, "availability": 1.0, "average": "last"}
    one, two = (states_of(gr.FedADMM(while_away=d, **options), form, marks) for d in ("freeze", "ipw"))
    for k in marks:
        np.testing.assert_allclose(one[k].theta, two[k].theta, atol=1e-12)


@pytest.mark.parametrize(
    ("chances", "rho"),
    [pytest.param(CHANCES, RHO, id="often", marks=pytest.mark.whole), pytest.param(CHANCES / 3, 2.0, id="seldom")],
)
def test_the_law_of_the_printed_algorithm(chances, rho, whole):
    """The same optimum at the same rate: the mean squared error is O(1/T), within a factor of that on the server.

    Edges that wait until both their ends are there have a bias of the size of the step times the time between two
    meetings, which shows where nodes are seldom there; where they are often there, and over 3000 rounds, with
    ``make test ARGS=--whole``.
    """
    data, problem, seeds = data_of(m=20), squared(m=20), range(4)
    marks = (300, 1000, 3000) if whole else (300, 1000)
    exact = problem.solve(gap=1e-12).coef
    method = gr.FedADMM(rho=rho, kappa=3.0, availability=dict(enumerate(chances)), while_away="ipw", average="last")

    def by_hand(mode, seed, marks=marks):
        hand, out = server(data, problem.form, chances, None, mode, seed, rho, 3.0), []
        for t in range(1, marks[-1] + 1):
            hand.round()
            if t in marks:
                out.append(hand.theta)
        return out

    def mean(points_of):
        return np.mean([[((w - exact) ** 2).sum() / N for w in points_of(seed)] for seed in seeds], axis=0)

    ours = mean(lambda seed: run_of(method, problem.form, marks, seed))
    printed = mean(lambda seed: by_hand("ipw", seed))
    assert (ours < 2.0 * printed).all()
    assert (printed < 2.0 * ours).all()
    if rho > RHO:
        assert ours[0] < 0.5 * mean(lambda seed: by_hand("waiting", seed, marks[:1]))


# ---- messages --------------------------------------------------------------------------------------------------------
def test_messages():
    """Across an edge both ends of which are there theta, and before it, where they meet again, one end's version."""
    T, problem = 50, squared()
    run = problem.solve(gr.FedADMM(availability=P, while_away="ipw", rho=1.0, kappa=1.0), gap=0, rounds=T, seed=SEED)
    coins = Streams(SEED, "availability", range(N))
    present = np.array([coins.uniform(t, 1)[:, 0] < CHANCES for t in range(1, T + 1)])
    table = run.ledger.by_edge()
    sent = table[table["purpose"] == "method"].set_index(["sender", "receiver"])
    for i, j in graph_of().edges:
        both = present[:, i] & present[:, j]
        again = [t for t in range(1, T) if both[t] and not both[t - 1]]
        last = [max((s for s in range(t) if both[s]), default=-1) for t in again]
        more = [present[s + 1 : t, j].sum() > present[s + 1 : t, i].sum() for s, t in zip(last, again, strict=True)]
        for way, versions in (((i, j), len(more) - sum(more)), ((j, i), sum(more))):
            assert sent.loc[way, "messages"] == both.sum() + versions
            assert sent.loc[way, "bytes"] == 8 * D * (both.sum() + 3 * versions)
    assert run.ledger.messages["adaptation"] == 2 * graph_of().number_of_edges()  # L_i and deg_i, once
    assert run.ledger.by_node()["away"].tolist() == (~present).sum(axis=0).tolist()
    np.testing.assert_allclose(run.gathered["online"], present.mean(axis=0))


# ---- isolated actors -------------------------------------------------------------------------------------------------
def together(t, labels, uniform, common):
    return (uniform < 0.6) | (common.random() < 0.3)


SOMETIMES = {
    "known": gr.FedADMM(availability=0.6, while_away="ipw"),
    "to be estimated": gr.FedADMM(availability=gr.Availability(0.6, known=False), while_away="ipw", average="last"),
    "correlated": gr.FedADMM(availability=together, while_away="ipw", batch=2),
    "schedule": gr.FedADMM(availability=0.4, while_away="ipw", rho=1.0, step_size=lambda t: 0.1 / t),
}


SMOOTH = ("total variation", "logistic", "features", "squared", "consensus", "tree", "parts")


@pytest.mark.parametrize(("kind", "how"), thinned(SMOOTH, SOMETIMES, every=4))
def test_actors_know_enough(kind, how):
    """Every other pair; all of them with ``make test ARGS=--whole``."""
    form, method = problem(kind).form.frozen(), SOMETIMES[how]
    arrays, actors = on_arrays(method, form, 30), by_actors(method, form, 30)
    assert deviation(arrays, actors) <= 1e-12
    assert arrays.ledger == actors.ledger
    assert arrays.ledger.by_edge().equals(actors.ledger.by_edge())
    np.testing.assert_allclose(actors.gathered["online"], arrays.gathered["online"])


def test_actors_go_on_from_a_start():
    model, method = problem("features"), SOMETIMES["known"]
    begun = model.solve(method, gap=0, rounds=20)
    one, two = (
        model.solve(method, gap=0, rounds=20, seed=1, start=begun, **engine) for engine in ({}, {"engine": gr.Actors()})
    )
    np.testing.assert_allclose(one.coef, two.coef, atol=1e-12)
    assert one.ledger == two.ledger


# ---- a step ----------------------------------------------------------------------------------------------------------
def test_a_checkpoint_is_the_run(tmp_path):
    method = SOMETIMES["known"]
    whole_run = squared().solve(method, gap=0, rounds=23, seed=1)
    squared().solve(method, gap=0, rounds=11, seed=1, checkpoint=gr.Checkpoint(tmp_path / "run", rounds=5))
    again = squared().solve(method, gap=0, rounds=23, seed=1, checkpoint=gr.Checkpoint(tmp_path / "run", rounds=5))
    np.testing.assert_array_equal(again.coef, whole_run.coef)
    assert again.ledger == whole_run.ledger


def test_a_method_that_is_not_weighted_has_no_versions():
    for options in ({}, {"availability": 0.5}, {"while_away": "ipw"}):
        assert not isinstance(gr.FedADMM(**options).init(whole(squared().form), None).copies, Versions)
