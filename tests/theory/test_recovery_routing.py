"""Definition 1: demands that flows can meet, by all subsets, by other codes and by proofs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.inputs.graph import Graph
from graphreg.theory import well_connected
from graphreg.theory.routing import CutGraph, largest_multiple

try:
    import igraph
except ImportError:  # the package does without
    igraph = None


def subsets(n, i0):
    rest = [i for i in range(n) if i != i0]
    for size in range(1, n):
        yield from itertools.combinations(rest, size)


def by_all_subsets(graph, base, slope):
    """(base alone is strictly routable, largest t): the best i0, in exact arithmetic; t None: any."""
    best = (False, Fraction(-1))
    edges = [(i, j, Fraction(w)) for i, j, w in zip(graph.tail, graph.head, graph.weight.tolist(), strict=True)]
    base, slope = [Fraction(x) for x in base.tolist()], [Fraction(x) for x in slope.tolist()]
    for i0 in range(graph.n_nodes):
        strict, t = True, None
        for A in subsets(graph.n_nodes, i0):
            room = sum((w for i, j, w in edges if (i in A) != (j in A)), Fraction(0)) - sum(base[i] for i in A)
            strict &= room > 0
            asked = sum(slope[i] for i in A)
            if asked > 0 and (t is None or room / asked < t):
                t = room / asked
        if strict and (not best[0] or t is None or (best[1] is not None and t > best[1])):
            best = (True, t)
            if t is None:
                return best
    return best


UNIT = 2.0**-30  # real numbers are drawn as multiples of it, so that all sums below are exact


def all_subsets(graph, demand):
    """Definition 1 by all subsets at once, exact: the largest t of the best i0, and whether it exceeds 1."""
    n = graph.n_nodes
    inside = (np.arange(1, 1 << n)[:, None] >> np.arange(n)) & 1 == 1  # each A that is not empty, (2^n - 1, n)
    cut = (inside[:, graph.tail] != inside[:, graph.head]) @ np.round(graph.weight / UNIT).astype(np.int64)
    asked = inside @ np.round(demand / UNIT).astype(np.int64)
    best = (-1.0, False)
    for i0 in range(n):
        mine = ~inside[:, i0]
        if (cut[mine] == 0).any():  # not connected
            continue
        some = mine & (asked > 0)
        t = float((cut[some] / asked[some]).min()) if some.any() else math.inf
        best = max(best, (t, bool((cut[some] > asked[some]).all())))
    return best


def random_cluster(rng, whole):
    n = int(rng.integers(2, 11))
    g = nx.gnp_random_graph(n, rng.uniform(0.35, 1.0), seed=int(rng.integers(1 << 30)))
    for i, j in g.edges:
        g[i][j]["weight"] = float(rng.integers(1, 5)) if whole else UNIT * round(rng.uniform(0.1, 2.0) / UNIT)
    demand = rng.integers(0, 4, n).astype(float) if whole else rng.uniform(0, 1, n) * (rng.random(n) < 0.7)
    return Graph.of(g), UNIT * np.round(demand / UNIT)


def test_definition_1_is_that_of_all_subsets():
    """Of 300 clusters of 2 to 10 nodes, with whole and with real numbers, demands of 0, and ties."""
    rng, seen, sizes = np.random.default_rng(1), set(), set()
    for k in range(300):
        graph, demand = random_cluster(rng, whole=k % 2 == 0)
        t, exceeds = all_subsets(graph, demand)
        found = well_connected(graph, demand)
        connected = len(found.parts) == 1
        assert (t >= 0) == connected
        assert found.margin == pytest.approx(max(t, 0.0), rel=1e-12), k
        assert found.holds == exceeds, k
        if connected and math.isfinite(t):  # the set explains the number
            cut, asked = sides(graph, demand, found.tightest)
            assert found.source not in found.tightest
            assert (found.capacity, found.demand) == pytest.approx((cut, asked))
            assert cut / asked == pytest.approx(t, rel=1e-12)
        seen.add((k % 2 == 0, found.holds, t == 1.0))
        sizes.add(graph.n_nodes)
    assert {(True, True, False), (True, False, False), (True, False, True), (False, True, False)} <= seen
    assert sizes == set(range(2, 11))


def sides(graph, demand, A):
    """cut(A) and demand(A)."""
    inside = np.isin(np.arange(graph.n_nodes), [graph.index[x] for x in A])
    return graph.weight[inside[graph.tail] != inside[graph.head]].sum(), demand[inside].sum()


def test_the_proofs_prove():
    """The flow is a flow and routes what it says; the sets break (35), and none is left as i0."""
    rng, answers = np.random.default_rng(3), []
    for k in range(120):
        graph, demand = random_cluster(rng, whole=k % 3 == 0)
        found = well_connected(graph, demand)
        flow = np.array(list(found.flow.values()))
        assert list(found.flow) == graph.edges()
        assert (np.abs(flow) <= graph.weight).all()
        out = graph.difference().T @ flow
        others = np.array([x != found.source for x in graph.labels])
        assert (out[others] >= found.routed * demand[others] - 1e-15).all()
        if 0 < found.margin < math.inf:
            assert found.margin * (1 - 1.01e-9) <= found.routed <= found.margin
        if found.holds:
            assert found.routed >= 1.0 or math.isinf(found.margin)
            assert found.violating == ()
        else:
            for i0 in graph.labels:
                A = found.against(i0)
                cut, asked = sides(graph, demand, A)
                assert A
                assert i0 not in A
                assert cut <= asked * (1 + 1e-12)
        answers.append(found.holds)
    assert 20 < sum(answers) < 100


def test_a_base_and_a_slope(whole):
    """The largest t for which base + t slope can be routed, by all subsets, of 30 graphs; of 80 with ``--whole``."""
    rng, known, count = np.random.default_rng(4), 0, 80 if whole else 30
    for k in range(count):
        graph, base = random_cluster(rng, whole=k % 2 == 0)
        base, slope = 0.4 * base, rng.uniform(0, 1, graph.n_nodes) * (rng.random(graph.n_nodes) < 0.8)
        strict, t = by_all_subsets(graph, base, slope)
        found = largest_multiple(routing_of(graph), base, slope)
        if not strict:
            assert found.t == -math.inf
        else:
            assert found.t == (math.inf if t is None else pytest.approx(float(t), rel=1e-10))
            known += 1
    assert 0.25 * count < known < 0.95 * count


def routing_of(graph):
    return CutGraph(graph.n_nodes, graph.tail, graph.head, graph.weight)


@pytest.mark.parametrize("kind", ["ties", "fractions", "large"])
def test_flows_are_those_of_other_codes(kind):
    """Of networkx, whose whole numbers have any length, and of igraph: the same value, and the same smallest set."""
    rng, full = np.random.default_rng(5), 0
    for _ in range(40):
        graph, demand = random_cluster(rng, whole=kind == "ties")
        if kind == "large":  # some nodes ask for far more than others
            demand *= 10.0 ** rng.integers(-9, 1, graph.n_nodes)
        routing, n, sink = routing_of(graph), graph.n_nodes, int(rng.integers(graph.n_nodes))
        demand[sink] = 0.0
        capacity = [int(c) for c in np.floor(graph.weight * routing.units)]
        asked = [int(d) for d in np.ceil(demand * routing.units)]
        ends = [*zip(graph.tail.tolist(), graph.head.tolist(), strict=True)]
        net = nx.Graph()
        net.add_nodes_from(range(n + 1))
        net.add_weighted_edges_from(((i, j, c) for (i, j), c in zip(ends, capacity, strict=True)), weight="capacity")
        net.add_weighted_edges_from(((i, n, asked[i]) for i in range(n)), weight="capacity")
        value, (_, short) = nx.minimum_cut(net, sink, n)
        routed, found, flow = routing.route(sink, demand)
        assert routed == (value == sum(asked))
        assert set(np.flatnonzero(found).tolist()) == short - {n}
        sent = (flow * routing.units).tolist()
        assert all(f == int(f) and abs(f) <= c for f, c in zip(sent, capacity, strict=True))
        out = graph.difference().T @ flow * routing.units
        assert -out[sink] == value
        assert all(0 <= x <= asked[i] for i, x in enumerate(out.tolist()) if i != sink)
        full += routed
        if igraph is not None:
            edges = [*ends, *((i, n) for i in range(n))]
            theirs = igraph.Graph(n + 1, edges).maxflow(sink, n, capacity=[*map(float, capacity + asked)])
            assert theirs.value == value
            assert set(theirs.partition[1]) == short
    assert 2 < full < 38


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_units_do_not_matter(scale):
    graph, demand = random_cluster(np.random.default_rng(8), whole=False)
    there = Graph(graph.labels, graph.tail, graph.head, scale * graph.weight)
    assert well_connected(there, scale * demand).margin == pytest.approx(
        well_connected(graph, demand).margin, rel=1e-12
    )


def test_equality_does_not_hold():
    chain = gr.Graph.chain("abc")
    assert not well_connected(chain, 1.0).holds
    assert well_connected(chain, 1.0 - 1e-9).holds
    assert "equal" in str(well_connected(chain, 1.0))


def test_ways_to_give_demands():
    chain, want = gr.Graph.chain("abc"), [0.5, 0.0, 2.0]
    by_label = dict(zip("abc", want, strict=True))
    answers = {well_connected(chain, each).margin for each in (want, by_label, pd.Series(by_label), np.array(want))}
    assert answers == {2.0}
    assert well_connected(chain, [np.inf, 0, 0]).source == "a"
    assert not well_connected(chain, [np.inf, 0, np.inf]).holds


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        ([1.0, -1.0, 0.0], "'b' is -1"),
        ([1.0, np.nan, 0.0], "'b' is nan"),
        ({"a": 1.0, "b": 1.0}, "no entry for the node 'c'"),
        ({"a": 1.0, "b": 1.0, "c": 1.0, "x": 1.0}, "'x', which is not a node"),
        ([1.0, 2.0], "shape (2,) for 3 nodes"),
        ("much", "must be numbers"),
    ],
)
def test_bad_demands(demand, said):
    with pytest.raises(gr.errors.GraphError) as error:
        well_connected(gr.Graph.chain("abc"), demand)
    assert said in str(error.value)


def test_parts_and_single_nodes():
    apart = well_connected(gr.Graph.from_edges([("a", "b"), ("c", "d")]), 0.1)
    assert not apart.holds
    assert apart.parts == (("a", "b"), ("c", "d"))
    assert "2 parts" in str(apart)
    alone = well_connected(gr.Graph.chain(["a"]), 5.0)
    assert alone.holds
    assert alone.margin == math.inf
