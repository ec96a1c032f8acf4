"""Fed-ADMM with inverse-probability weights: the printed Algorithm 2, neighbours that act for nodes that are away."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from actor_cases import by_actors, deviation, on_arrays, problem, whole
from test_fed_admm import D, PROX, SEED, L_of, N, P, ByHand, data_of, edges_of, graph_of, run_of, squared

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.methods._versions import Versions

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

    def meet(self, there):
        before, theta = self.own, self.theta.copy()
        self.own = [dict(each) for each in before]
        for e, (i, j, *_, columns) in enumerate(self.edges):
            past = self.pairs.get((i, j))
            if not past or not (there[i] and there[j]):
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
        there = self.there()
        self.meet(there)
        theta = self.theta.copy()
        for i in range(N):
            slope = self.gradient(i) / self.p[i] if there[i] else np.zeros_like(theta[i])
            for e in self.own[i]:
                columns = self.edges[e][4]
                slope[columns] += self.rho * self.theta[i, columns] - self.share(i, e, i)
            theta[i] = theta[i] - self.steps(i, self.t) * slope
        self.theta = theta
        for e, (i, j, *_) in enumerate(self.edges):
            for me, other in ((i, j), (j, i)):
                if me is not None:
                    self.edge(e, me, other, there)
        for (i, j), past in self.pairs.items():
            past.clear() if there[i] and there[j] else past.append((there[i], there[j]))

    def edge(self, e, me, other, there):
        i, j, kind, c, columns = self.edges[e]
        mine = self.own[me][e]
        theirs = mine["theta"]
        if other is not None and there[me] and there[other]:
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


@pytest.mark.parametrize("batch", [None, 2])
def test_neighbours_by_hand(batch):
    """With edges to the ground, two graphs, and coordinates that no edge couples; also while they are away."""
    data = data_of(d=4)
    model = gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(graph_of(), gr.L2(), features=["x0", "x2"])
    model = model + 0.1 * gr.NodePenalty(gr.L1(), features=["x1", "x2"])
    model = model + 0.2 * gr.TotalVariation(nx.path_graph(4), gr.L1(), features=["x2"])
    form = gr.Problem(model).form
    edges = edges_of(form)
    hand = ByNeighbours(data, edges, RHO, steps_of(data, edges, CHANCES, batch), batch, CHANCES)
    method = gr.FedADMM(rho=RHO, kappa=KAPPA, batch=batch, availability=P, dropout="ipw")
    for k, state in states_of(method, form, (1, 2, 3, 5, 17, 18, 19, 60)).items():
        while hand.t < k:
            hand.round()
        np.testing.assert_allclose(state.w, hand.theta, atol=1e-10)
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
    hand, kept = server(data_of(), form, p, batch), []
    method = gr.FedADMM(rho=RHO, kappa=KAPPA, batch=batch, availability=dict(enumerate(p)), dropout="ipw", average="last")
    for t, state in states_of(method, form, range(1, T + 1)).items():
        hand.round()
        there = hand.there()
        np.testing.assert_allclose(state.w[there], hand.theta[there], atol=1e-11)
        kept.append(np.abs(state.w - hand.theta).max())
    assert max(kept) > 1e-3  # what nodes have of themselves while they are away is another matter
    run = gr.Problem(model).solve(method, gap=0, rounds=T, seed=SEED)
    np.testing.assert_allclose(run.coef[there], hand.theta[there], atol=1e-11)


def test_all_there_is_algorithm_1():
    """Nobody acts for anybody: the rounds of ``freeze``, with the same messages."""
    form, marks = squared().form, (1, 7, 30)
    options = {"rho": RHO, "kappa": KAPPA, "availability": 1.0, "average": "last"}
    one, two = (states_of(gr.FedADMM(dropout=d, **options), form, marks) for d in ("freeze", "ipw"))
    for k in marks:
        np.testing.assert_allclose(one[k].w, two[k].w, atol=1e-12)


CHANCES_SELDOM = CHANCES / 3


@pytest.mark.parametrize(("p", "factor"), [(CHANCES, 2.5), (CHANCES_SELDOM, 4.0)], ids=["often", "seldom"])
def test_the_law_of_the_printed_algorithm(p, factor):
    """The same optimum at the same rate: O(1/T) in the mean square, within a factor of the server's, for the same coins.

    Edges that wait until both their ends are there, and nodes that then make up for (21b), have a bias of the size of
    the step times the time between two meetings: it shows where nodes are seldom there.
    """
    data, seeds, marks = data_of(m=20), range(4), (300, 1000, 3000)
    model = squared(m=20)
    exact = model.solve(gap=1e-12).coef
    method = gr.FedADMM(rho=RHO, kappa=3.0, availability=dict(enumerate(p)), dropout="ipw", average="last")

    def errors(points):
        return np.array([((w - exact) ** 2).sum() / N for w in points])

    def hand(mode, seed):
        run, out = server(data, model.form, p, None, mode, seed, kappa=3.0), []
        for t in range(1, marks[-1] + 1):
            run.round()
            if t in marks:
                out.append(run.theta)
        return out

    ours = np.mean([errors(run_of(method, model.form, marks, seed)) for seed in seeds], axis=0)
    printed, waiting = (np.mean([errors(hand(mode, seed)) for seed in seeds], axis=0) for mode in ("ipw", "waiting"))
    print(ours, printed, waiting)
    assert (ours <= factor * printed).all()
    assert (ours < waiting).all()
    assert ours[2] < 0.2 * ours[0]  # T is ten times as large
