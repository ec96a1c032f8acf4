"""Fed-ADMM: who sends what to whom, and nodes that know no more than that."""

from __future__ import annotations

import threading
import warnings

import networkx as nx
import numpy as np
import pytest
from federated_factories import AWAY, CLASSES, ESTIMATED, SEED, D, M, N, P, data_of, graph_of, iterate_seeded, squared

import graphreg as gr
from graphreg.network.streams import Streams
from graphreg.network.view import LocalView, WholeGraph


def test_only_nodes_that_are_there_send_and_receive():
    T, problem = 50, squared()
    run = problem.solve(gr.FedADMM(availability=P), gap=0, rounds=T, seed=SEED)
    coins = Streams(SEED, "availability", range(N))
    present = np.array([coins.uniform(t, 1)[:, 0] < np.array(list(P.values())) for t in range(1, T + 1)])
    table = run.ledger.by_edge()
    sent = table[table["purpose"] == "method"].set_index(["sender", "receiver"])
    for i, j in graph_of().edges:
        both = int((present[:, i] & present[:, j]).sum())
        assert sent.loc[(i, j), "messages"] == sent.loc[(j, i), "messages"] == both
        assert sent.loc[(i, j), "bytes"] == both * D * 8
    assert run.ledger.by_node()["away"].tolist() == (~present).sum(axis=0).tolist()
    np.testing.assert_allclose(run.gathered["online"], present.mean(axis=0))


def test_the_messages_of_all():
    T, problem = 20, squared()
    for options, adapted in (({"rho": 1.0}, 0), ({}, 1), ({"rho": 1.0, "batch": 3}, 1)):
        run = problem.solve(gr.FedADMM(**options), gap=0, rounds=T)
        assert run.ledger.messages["method"] == T * 2 * graph_of().number_of_edges()
        assert run.ledger.bytes["method"] == T * 2 * graph_of().number_of_edges() * D * 8
        assert run.ledger.messages["adaptation"] == adapted * 2 * (N - 1)


def test_latent_nodes_are_always_there():
    problem = CLASSES["Huber, clusters"]()
    run = problem.solve(gr.FedADMM(availability=0.5), gap=0, rounds=40)
    away = run.ledger.by_node()["away"]
    assert (away.iloc[:N] > 5).all()
    assert (away.iloc[N:] == 0).all()
    asked = []

    def sampler(t, labels, uniform, common):
        asked.append((t, labels, len(uniform)))
        return uniform < 0.5

    problem.solve(gr.FedADMM(availability=sampler), gap=0, rounds=3)
    assert asked == [(t, tuple(range(N)), N) for t in (1, 2, 3)]


def test_what_a_sampler_is_given():
    """Numbers that follow from seed and round alone, each node's own and common ones, new ones in every round."""

    def drawn(seed):
        seen = []

        def sampler(t, labels, uniform, common):
            seen.append((uniform.copy(), common.random(3)))
            uniform[:] = 0.0  # its own to change
            return np.full(len(labels), True)

        squared().solve(gr.FedADMM(availability=sampler), gap=0, rounds=20, seed=seed)
        return np.array([np.concatenate(each) for each in seen])

    one = drawn(1)
    np.testing.assert_array_equal(one, drawn(1))
    assert len(np.unique(np.concatenate([one, drawn(2)]))) == 2 * one.size
    np.testing.assert_array_equal(
        one[:, :N], [Streams(1, "availability", range(N)).uniform(t, 1)[:, 0] for t in range(1, 21)]
    )


# ---- a part of the graph per node ------------------------------------------------------------------------------------
class Mailboxes:
    """The mailboxes of threads, one per node, that send to each other; everything else of a neighbour is NaN."""

    def __init__(self, n):
        self.barrier, self.rows, self.sums = threading.Barrier(n, timeout=20), {}, {}


class OwnPart:
    def __init__(self, boxes, i, ids):
        self.boxes, self.i, self.ids, self.ledger = boxes, i, ids, None

    def exchange(self, values, along=None, *, parameters=True, purpose="method"):
        arcs, boxes = self.view.arcs, self.boxes
        for k, (s, t) in enumerate(zip(arcs.source, arcs.target, strict=True)):
            if self.ids[s] == self.i and (along is None or along[k]):
                boxes.rows[self.i, self.ids[t]] = values[s].copy()
        boxes.barrier.wait()
        out = np.full_like(values, np.nan)
        out[self.view.own] = values[self.view.own]
        for k, (s, t) in enumerate(zip(arcs.source, arcs.target, strict=True)):
            if self.ids[t] == self.i:
                sent = boxes.rows.pop((self.ids[s], self.i), None)
                assert (sent is not None) == (along is None or bool(along[k]))  # both ends know
                out[s] = np.nan if sent is None else sent
        boxes.barrier.wait()
        return out

    def swap_ends(self, values, toward, along):
        arcs, boxes = self.view.arcs, self.boxes
        for k, (s, t) in enumerate(zip(arcs.source, arcs.target, strict=True)):
            if self.ids[s] == self.i and along[k]:
                boxes.rows[self.i, self.ids[t]] = [v[a == k].copy() for v, a in zip(values, toward, strict=True)]
        boxes.barrier.wait()
        out = tuple(np.full_like(v, np.nan) for v in values)
        for k, (s, t) in enumerate(zip(arcs.source, arcs.target, strict=True)):
            if self.ids[t] == self.i:
                sent = boxes.rows.pop((self.ids[s], self.i), None)
                assert (sent is not None) == bool(along[k])
                for v, a, rows in zip(out, toward, sent or (), strict=False):
                    v[a == (k + arcs.pairs) % (2 * arcs.pairs)] = rows
        boxes.barrier.wait()
        return out

    def reduce(self, values, purpose="adaptation"):
        self.boxes.sums[self.i] = values[self.view.own].sum(axis=0)
        self.boxes.barrier.wait()
        total = sum(self.boxes.sums[k] for k in sorted(self.boxes.sums))
        self.boxes.barrier.wait()
        return total

    def away(self, nodes):
        pass


def part_of(model_of, i, boxes):
    """The view of node i: its own samples, its edges, and its neighbours as bare nodes."""
    graph, data = graph_of(), data_of()
    ids = sorted([i, *graph[i]])
    mine = nx.Graph()
    mine.add_nodes_from(ids)
    mine.add_edges_from((a, b, w) for a, b, w in graph.edges(data=True) if i in (a, b))
    own = gr.NodeData.from_arrays(data.X[data.node == i], np.asarray(data.y)[data.node == i], [i] * M)
    form = gr.Problem(model_of(own, mine, [i])).form
    order = np.array(form.labels)
    engine = OwnPart(boxes, i, order.tolist())
    engine.view = LocalView(form, engine, SEED, WholeGraph(N, N, order, order == i))
    return engine.view


def fused(data, graph, observed):
    penalty = gr.NodePenalty(gr.L1(), weights={k: float(k in observed) or 1e-12 for k in graph})
    return gr.SquaredLoss(data) + 0.2 * gr.TotalVariation(graph, gr.L2()) + 0.05 * penalty


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rho": None},
        {"batch": 2},
        {"availability": P},
        {"availability": P, "while_away": "ipw", "batch": 2},
        {"availability": ESTIMATED, "while_away": "ipw"},
        {"availability": AWAY["correlated"], "step_size": lambda t: np.arange(1, N + 1) / (20.0 * t)},
        {"step_size": {i: 0.05 + 0.01 * i for i in range(N)}},
    ],
)
def test_isolated_nodes_make_the_same_rounds(options):
    """Each node knows its own samples, and of others what they send; the iterates are those of the whole graph."""
    T, boxes, method = 25, Mailboxes(N), gr.FedADMM(**{"rho": 0.7, "kappa": None} | options)
    whole = iterate_seeded(method, gr.Problem(fused(data_of(), graph_of(), range(N))).form, T)
    found, failed = {}, []

    def node(i):
        try:
            state = method.init(part_of(fused, i, boxes), None)
            for _ in range(T):
                state = method.step(state)
            found[i] = method.point(state)[0][state.view.own][0]
        except BaseException as error:  # noqa: BLE001 - reported below
            failed.append(error)
            boxes.barrier.abort()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=node, args=(i,)) for i in range(N)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed, failed
    np.testing.assert_allclose([found[i] for i in range(N)], method.point(whole)[0], atol=1e-9)
