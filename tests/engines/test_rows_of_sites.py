"""Rows of more than two ends in runs of sites that nobody has as a whole: the bits of one process, bounds, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import networkx as nx
import numpy as np
import pytest
from factories import thinned
from mpi_jobs import LAUNCHER, MODEL, launched, on_sites, said, three_states
from test_bounds_of_parts import by_parts
from test_joint import coef_of, owners
from test_local_parts import together

import graphreg as gr
from graphreg.distributed.parts.engine import PartEngine
from graphreg.distributed.parts.joint import solve_jointly
from graphreg.distributed.parts.keeping import SavedParts
from graphreg.distributed.parts.local import local_part
from graphreg.errors import DataError, MethodError
from graphreg.network import LocalView
from graphreg.running import Budget

w, N = gr.w, 24


def within(graph, own, hops, ordered=False):
    """The edges that touch a node at most so many hops from the own ones, in the order of the graph; its nodes where
    it is ``ordered``, else the own ones before."""
    near = set(own)
    for _ in range(hops):
        near |= {j for i in near for j in nx.all_neighbors(graph, i)}
    part = graph.edge_subgraph([edge for edge in graph.edges if near & set(edge)])
    out = type(graph)()
    out.add_nodes_from(sorted({*own, *part}) if ordered else own)
    out.add_edges_from(edge for edge in graph.edges if part.has_edge(*edge))
    return out


@dataclass
class Land:
    """Targets at the nodes of a graph, and a penalty of its rows, which knows so many hops around the own nodes."""

    graph: Any
    penalty: Any
    hops: int
    d: int = 1
    ordered: bool = False  # whether sites must have the nodes in one order

    def __post_init__(self):
        self.labels = sorted(self.graph)
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(len(self.labels), 3, 2))
        self.y = rng.normal(size=(len(self.labels), 3)).cumsum(axis=0)

    def problem(self, own=None, order=None):
        """Of some nodes, by their places, with labels in any order; of all of them by default."""
        places = range(len(self.labels)) if own is None else sorted(own)
        if order is not None and not self.ordered:
            places = np.random.default_rng(order).permutation([*places]).tolist()
        mine = [self.labels[i] for i in places]
        if self.d == 1:
            loss = gr.MeanLoss(gr.NodeData.from_arrays(None, self.y[places].ravel(), np.repeat(mine, 3).tolist()))
        else:
            loss = gr.SquaredLoss(gr.NodeData.from_dict({self.labels[i]: (self.X[i], self.y[i]) for i in places}))
        return gr.Problem(loss + self.penalty(within(self.graph, mine, self.hops, self.ordered), set(mine)))


GEOMETRIC = nx.convert_node_labels_to_integers(nx.random_geometric_graph(N, 0.32, seed=2))
PIXELS = nx.DiGraph()
PIXELS.add_edges_from((5 * i + j, 5 * (i + a) + j + b) for i in range(5) for j in range(5)
                      for a, b in ((1, 0), (0, 1)) if i + a < 5 and j + b < 5)  # fmt: skip
K = np.where(np.random.default_rng(5).random((15, N)) < 0.2, np.random.default_rng(6).normal(size=(15, N)), 0.0)
MIXED = np.array([[1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
LANDS = {
    "graph trend": Land(GEOMETRIC, lambda graph, _: 0.3 * gr.L1()(w.across(graph, 2)), 1),
    "graph trend of order 2": Land(GEOMETRIC, lambda graph, _: 0.1 * gr.L1()(w.across(graph, 3)), 2, ordered=True),
    "isotropic": Land(PIXELS, lambda graph, _: 0.5 * gr.L2()(w.across(graph).grouped(lambda arrow: arrow[0])), 1),
    "trend": Land(nx.path_graph(N), lambda *_: 2.0 * gr.L1()(w.along(range(N), 2)), 1),
    "arrows": Land(PIXELS, lambda graph, _: 0.2 * gr.L1()(w.across(graph) - 0.3), 0),
    "any rows": Land(nx.path_graph(N), lambda *_: gr.L1()(K[K.any(axis=1)] @ w.at(range(N))), 0),
    "beside edges": Land(
        GEOMETRIC,
        lambda graph, own: 0.3 * gr.L1()(w.across(graph, 2)) + 0.1 * gr.SquaredL2()(w.at(sorted(own)))
        + 0.2 * gr.TotalVariation(graph, gr.L1()), 1),
    "maps": Land(
        GEOMETRIC,
        lambda graph, own: 0.3 * gr.L2()((w.at([1, 2]) + w.at([3, 4]) - w.at([7, 8])) @ MIXED)
        + 0.2 * gr.L1()(w.at(None, ["x0"]).across(graph, 2)), 1, d=2),
}  # fmt: skip
METHODS = gr.PrimalDual(balance=0.7, relaxation=1.5), gr.ADMM(rho=1.0), gr.PrimalDual(polish=False)


def iterated(land, owner, method, rounds=15, order=0):
    """The parameters after some rounds on sites, whose labels come in different orders."""

    def work(k, wire):
        own = {i for i, it in enumerate(owner) if it == k}
        problem = land.problem(own, order=order + k)
        part, of = local_part(problem.form.frozen(), {land.labels[i] for i in own}, wire)
        state = method.init(LocalView(part.form, PartEngine(part, of, wire), 1, part.whole), None)
        for _ in range(rounds):
            state = method.step(state)
        point = method.point(state)[0]
        return {part.form.labels[i]: point[i] for i in np.flatnonzero(part.whole.own)}

    found = {}
    for each in together(owner, work):
        found |= each
    return np.array([found[label] for label in land.labels])


def jointly(land, owner, method=gr.PrimalDual(), **budget):  # noqa: B008 - it is frozen
    def work(k, wire):
        own = {i for i, it in enumerate(owner) if it == k}
        given = Budget(seed=1, progress=False, **{"gap": 1e-6, **budget})
        form = land.problem(own, order=k).form.frozen()
        return solve_jointly(form, {land.labels[i] for i in own}, method, given, wire)

    return together(owner, work)


# ---- the bits, and the bounds ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "method"), thinned(LANDS, METHODS, every=2), ids=str)
def test_the_bits_do_not_depend_on_the_sites(name, method):
    land = LANDS[name]
    n = len(land.labels)
    alone = iterated(land, [0] * n, method)
    for count in (2, 3):
        np.testing.assert_array_equal(iterated(land, owners(count, n), method, order=count), alone)
    from actor_cases import on_arrays

    problem = land.problem()
    whole = on_arrays(method, problem.form.frozen(), 15).points[-1][0]
    places = [problem.form.labels.index(label) for label in land.labels]
    np.testing.assert_allclose(alone, whole[places], atol=1e-12)


@pytest.mark.parametrize("name", LANDS)
def test_answers_are_certified_by_sites(name):
    land = LANDS[name]
    n, problem = len(land.labels), land.problem()
    exact = problem.solve(gap=1e-9, progress=False, on_failure="return").certificate
    one, *more = (jointly(land, owners(count, n)) for count in (1, 2, 3))
    for found in more:
        for each in found:
            assert each.status == "certified", (str(each), each.why)
            assert each.dual <= exact.primal
            assert each.primal >= exact.dual
            assert each.rounds == one[0].rounds
        np.testing.assert_array_equal(coef_of(land, found), coef_of(land, one))
    places = [land.labels.index(label) for label in problem.form.labels]
    assert problem.form.primal(coef_of(land, more[0])[places]) == pytest.approx(more[0][0].primal, rel=1e-9)


def test_a_row_that_three_sites_share():
    """Its owner's site has its flow, and it alone; where another would add its own the bound would be another one."""
    land = Land(nx.path_graph(6), lambda *_: gr.L1()(np.array([[1.0, 0.0, -2.0, 0.0, 1.0, 0.0]]) @ w.at(range(6))), 0)
    exact = land.problem().solve(gap=1e-9, progress=False).certificate
    for owner in ([0, 0, 1, 1, 2, 2], [2, 2, 1, 1, 0, 0], [0, 1, 2, 0, 1, 2]):
        found = jointly(land, owner, gap=1e-8)
        assert {each.status for each in found} == {"certified"}
        assert found[0].dual <= exact.primal
        assert found[0].primal >= exact.dual


def test_lone_nodes_and_sites_without_rows():
    graph = nx.Graph(GEOMETRIC.edges)
    graph.add_nodes_from([100, 101, 102])
    land = Land(graph, LANDS["graph trend"].penalty, 1)
    n = len(land.labels)
    alone = iterated(land, [0] * n, METHODS[0])
    for owner in ([0] * (n - 3) + [1] * 3, [k % 2 for k in range(n - 3)] + [2] * 3):
        np.testing.assert_array_equal(iterated(land, owner, METHODS[0]), alone)
        found = jointly(land, owner)
        assert {each.status for each in found} == {"certified"}
        np.testing.assert_allclose(coef_of(land, found)[-3:, 0], land.y[-3:].mean(axis=1), rtol=1e-12)


def test_flows_of_rows_stay_where_flows_on_edges_give_way():
    """A part without data, which flows on edges to others balance; those of rows are what all parts know alike."""
    rng, path = np.random.default_rng(0), nx.path_graph(9)
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, rng.normal(size=6).cumsum(), [0, 1, 2, 6, 7, 8]))
    problem = gr.Problem(fit + 0.3 * gr.TotalVariation(path, gr.L1()) + 0.2 * gr.L1()(w.along(range(9), 2)))
    exact = problem.solve(gap=1e-9, progress=False).certificate
    for owner in ([0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 0, 0, 1, 1, 2, 2, 2, 2]):
        found = by_parts(problem, owner, gap=1e-5)
        assert found[0].status == "certified", [each.why for each in found]
        assert found[0].dual <= exact.primal
        assert found[0].primal >= exact.dual


ON_RANKS = """
from graphreg import mpi
from graphreg.distributed.parts.wire import Switchboard, ThreadWire
from graphreg.distributed.parts.joint import solve_jointly
from graphreg.running import Budget
from test_rows_of_sites import LANDS
size, told = MPI.COMM_WORLD.size, {}
for k, name in enumerate(("graph trend", "graph trend of order 2", "isotropic", "any rows", "beside edges", "maps")):
    land = LANDS[name]
    places = range(rank, len(land.labels), size)
    labels = [land.labels[i] for i in places]
    found = mpi.solve(land.problem(places, order=rank), labels, gap=1e-6, progress=False)
    assert found.status == "certified", (name, str(found), found.why)
    assert [*found.labels] == labels
    told[name] = MPI.COMM_WORLD.gather((labels, found.rounds, found.coef), root=k % size)
for name, every in told.items():
    if every:  # one rank solves it alone, and compares what all have found
        land = LANDS[name]
        budget, wire = Budget(1e-6, progress=False), ThreadWire(Switchboard(1), 0)
        one = solve_jointly(land.problem().form.frozen(), set(land.labels), gr.PrimalDual(), budget, wire)
        assert one.status == "certified", (name, str(one), one.why)
        for labels, rounds, coef in every:
            assert rounds == one.rounds, name
            assert np.array_equal(coef, one.coef[[one.labels.index(label) for label in labels]]), name
print(f"rank {rank} agrees")
"""


@pytest.mark.skipif(find_spec("mpi4py") is None or LAUNCHER is None, reason="there is no MPI")
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.whole), 3])
def test_ranks_have_the_bits_of_one_process(ranks, tmp_path, monkeypatch):
    """Of three ranks, some of whose rows two share, and others all."""
    monkeypatch.setenv("PYTHONPATH", __file__.rpartition("/")[0])
    done = launched(ON_RANKS, ranks, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n"))[1:] == [f"rank {k} agrees" for k in range(ranks)]


@pytest.mark.skipif(find_spec("mpi4py") is None or LAUNCHER is None, reason="there is no MPI")
def test_rows_of_a_model_file_at_its_sites(tmp_path):
    """Of order 2 sites need the edges of their neighbours, and say where they have them not."""
    folder = three_states(tmp_path)
    edges = '[total_variation]\npenalty = "L2"'
    rows = '[rows]\nacross = "graph"\norder = 2\npenalty = "L1"'
    (folder / "model.toml").write_text(MODEL.replace(edges, rows))
    files = [folder / f"state {s}" / "edges.csv" for s in range(3)]
    each = [dict.fromkeys(file.read_text().splitlines()[1:]) for file in files]
    few = on_sites(folder, 2)
    assert few.returncode == 1
    assert "all edges that these are made of" in said(few)[0]
    for s, file in enumerate(files):
        near = {node for edge in each[s] for node in edge.split(",")}
        more = sorted(edge for edge in {**each[0], **each[1], **each[2]} if near & set(edge.split(",")))
        file.write_text("a,b\n" + "\n".join(more) + "\n")
    done = on_sites(folder, 3, "--out", "results")
    assert done.returncode == 0, done.stderr
    saved, one = SavedParts.open(folder / "results"), gr.read_model(folder / "model.toml").solve(progress=False)
    assert saved.summary["dual"] <= one.objective
    np.testing.assert_allclose([saved[label] for label in one.labels], one.coef, atol=1e-3)


# ---- what crosses, and what is refused -------------------------------------------------------------------------------
def test_what_crosses_between_sites():
    """A round of a row across two sites: the owner is sent the parameters of its other ends, and sends its flow."""
    method = gr.PrimalDual(balance=1.0)
    halves, thirds = [0] * 12 + [1] * 12, [0] * 11 + [1] + [2] * 12
    # of the middle ends 11 and 12 each has the row around it, which the site of the other is told
    for owner, each in ((halves, [[0, 2], [2, 0]]), (thirds, [[0, 2, 0], [2, 0, 2], [0, 2, 0]])):
        few, more = (jointly(LANDS["trend"], owner, method, gap=0, rounds=t)[0].sent for t in (4, 7))
        np.testing.assert_array_equal(more.messages - few.messages, 3 * np.array(each))
        np.testing.assert_array_equal(more.bytes - few.bytes, 8 * 3 * np.array(each))


def test_rows_that_a_site_cuts_short_are_refused():
    """A graph that ends at the site's own edges makes other rows at its neighbours."""
    land = Land(GEOMETRIC, LANDS["graph trend"].penalty, 0)
    with pytest.raises(DataError, match=r"do not have the same edges between them .* all edges that these are made of"):
        jointly(land, [0] * 12 + [1] * 12)


def test_sites_of_different_rows_are_refused():
    for strength, phi in ((0.2, gr.L1()), (0.3, gr.L2()), (0.3, gr.HuberNorm(0.1))):

        def penalty(graph, own, strength=strength, phi=phi):
            return strength * phi(w.across(graph, 2)) if 0 in own else 0.3 * gr.L1()(w.across(graph, 2))

        with pytest.raises(DataError, match="one weight and one penalty"):
            jointly(Land(GEOMETRIC, penalty, 1), [0] * 12 + [1] * 12)
    signs = Land(GEOMETRIC, LANDS["graph trend of order 2"].penalty, 2)  # of which it depends on the order of nodes
    with pytest.raises(DataError, match="nodes and edges in one order"):
        jointly(signs, [0] * 12 + [1] * 12)


def test_what_has_no_certificate_by_sites_is_said():
    convex = Land(nx.path_graph(N), lambda *_: gr.NonNegative()(w.along(range(N), 2)), 1)
    with pytest.raises(MethodError, match=r"NonNegative\(\(D\^2 w\)_t\) on edges between parts is a constraint"):
        jointly(convex, [0] * 12 + [1] * 12)
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, [1.0, 3.0, 2.0], [0, 1, 3]))
    problem = gr.Problem(fit + 0.2 * gr.L1()(w.along(range(4), 2)))  # node 2 has no data, and nothing else balances it
    assert by_parts(problem, [0, 0, 0, 0])[0].status == "certified"
    found = by_parts(problem, [0, 0, 1, 0])
    assert {(each.status, each.scope) for each in found} == {("no_certificate", "none")}
    assert "are not balanced (column 'y' at node 2)" in found[1].why
    losses = Land(nx.path_graph(N), lambda *_: gr.HuberLoss(w.along(range(N)), np.zeros(N - 1)), 1)
    with pytest.raises(MethodError, match=r"HuberLoss.* is a loss of rows.*engine=gr.MPI\(\)"):
        jointly(losses, [0] * 12 + [1] * 12)
