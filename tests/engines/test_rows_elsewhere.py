"""Rows of more than two ends among isolated nodes, parts and processes: their owners, what is sent, the bits."""

from __future__ import annotations

from collections import defaultdict
from importlib.util import find_spec

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from actor_cases import by_actors, on_arrays, whole
from factories import thinned
from mpi_jobs import LAUNCHER, launched
from test_parts import by_parts, same

import graphreg as gr
from graphreg.distributed.actors.actor import split
from graphreg.distributed.parts import part_of
from graphreg.distributed.parts.wire import ThreadWire
from graphreg.errors import MethodError
from graphreg.methods.splitting import _lossy
from graphreg.network import arcs_of

w, N = gr.w, 20
GRAPH = nx.convert_node_labels_to_integers(nx.random_geometric_graph(N, 0.35, seed=2))


def arrows(graph):
    return nx.DiGraph((min(edge), max(edge)) for edge in graph.edges)


def grid(rows, columns):
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns))


def means(n, seed=0):
    targets = np.random.default_rng(seed).normal(size=n).cumsum()
    return gr.MeanLoss(gr.NodeData.from_arrays(None, targets, range(n)))


def several(n=N, seed=3):
    """Two coordinates at each node, of which rows may see some."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * n, 2))
    return gr.SquaredLoss(gr.NodeData.from_arrays(X, rng.normal(size=4 * n), np.repeat(range(n), 4)))


def scattered(n=N, m=15, seed=5):
    rng = np.random.default_rng(seed)
    K = np.where(rng.random((m, n)) < 0.2, rng.normal(size=(m, n)), 0.0)
    return gr.Rows(K[np.abs(K).sum(axis=1) > 0.0])


MIXED = np.array([[1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
ISOTROPIC = gr.L2()(w.across(arrows(grid(5, 4))).grouped(lambda arrow: arrow[0]))
MODELS = {
    "trend": means(N) + 2.0 * gr.L1()(w.along(range(N), 2)),
    "trend of order 2": means(N) + gr.L1()(w.along(range(N), 3)),
    "graph trend": means(N) + 0.3 * gr.L1()(w.across(GRAPH, 2)),
    "graph trend of order 2": means(N) + 0.1 * gr.L1()(w.across(GRAPH, 3)),
    "isotropic": means(N) + 0.5 * ISOTROPIC,
    "two ends": means(N) + gr.L1()(w.across(arrows(GRAPH)) - 0.3),
    "one end": means(N) + gr.L1()(2.0 * w.at([1, 2, 5]) - 1.0) + 0.5 * ISOTROPIC + gr.L1()(w.across(GRAPH)),
    "any rows": means(N) + gr.L1()(scattered()) + 0.2 * gr.SquaredL2()(scattered(seed=6)),
    "maps": several() + 0.3 * gr.L2()((w.at([1, 2]) + w.at([3, 4]) - w.at([7, 8])) @ MIXED),
    "some coordinates": several() + gr.L1()(w.at(None, ["x0"]).across(GRAPH, 2)) + 0.1 * gr.NodePenalty(gr.L1()),
    "one-sided": means(N) + gr.NonNegative()(w.along(range(N), 2)) + 0.1 * gr.L1()(w.across(GRAPH, 2)),
}  # fmt: skip
BLUR = sp.csr_array(sp.diags_array([np.full(N - abs(k), 1 / 3) for k in range(-1, 2)], offsets=range(-1, 2)))
COUNTS = np.random.default_rng(7).poisson(3.0, size=N).astype(float)
TIED = 0.5 * gr.L1()(w.across(nx.path_graph(N)))
LOSSES = {
    "blurred": gr.SquaredLoss(BLUR @ w, np.arange(float(N))) + TIED,
    "kinks": gr.QuantileLoss(BLUR @ w, COUNTS, tau=0.3) + TIED,
    "beside means": means(N) + gr.HuberLoss(scattered(), np.ones(15), delta=0.5) + gr.L1()(w.across(GRAPH, 2)),
    "counts": gr.PoissonLoss(0.1 * (BLUR @ w) + 0.2, COUNTS) + TIED + 0.1 * gr.NodePenalty(gr.SquaredL2()),
    "two of a node": several() + gr.HuberLoss(
        gr.NodeData.from_arrays(np.ones((N, 2)), COUNTS, range(N))) + 0.5 * gr.L1()(w.along(range(N))),
    "pairs": gr.SquaredLoss(w.at(range(10)) - w.at(range(10, 20)), COUNTS[:10], scale=0.5)
    + 0.1 * gr.SquaredL2()(w) + TIED,
    "vectors": several() + gr.MeanLoss(w.at([1, 2, 3]) - 0.5 * w.at([4, 5, 9]), np.ones((3, 2)))
    + 0.1 * gr.TotalVariation(GRAPH, gr.L2()),
}  # fmt: skip
MODELS |= LOSSES
FIXED = gr.PrimalDual(balance=0.7, relaxation=1.5), gr.ADMM(rho=1.0)
over_models = pytest.mark.parametrize("name", MODELS)


def form_of(name):
    return gr.Problem(MODELS[name]).form.frozen()


# ---- the bits --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "method"),
    thinned(MODELS, [*FIXED, gr.PrimalDual(polish=False), gr.PrimalDual(restarts=True)], every=2),
    ids=str,
)
def test_parts_have_the_bits_of_the_arrays(name, method, whole):
    form = form_of(name)
    arrays = on_arrays(method, form, 15)
    for count in (1, 2, 3, 7) if whole else (2, 7):
        same(arrays, by_parts(method, form, gr.Parts(count)))


@pytest.mark.parametrize(("name", "method"), thinned(MODELS, FIXED, every=2), ids=str)
def test_isolated_actors_have_the_bits_of_the_arrays(name, method):
    form = form_of(name)
    same(on_arrays(method, form, 15), by_actors(method, form, 15))


@pytest.mark.parametrize("name", MODELS)
def test_isolated_actors_that_adapt(name):
    """Their sums go up a tree and not along an array. The balance adapts in rounds 10 and 20."""
    form, method = form_of(name), gr.PrimalDual(polish=False)
    arrays, actors = on_arrays(method, form, 22), by_actors(method, form, 22)
    for one, other in zip(arrays.points, actors.points, strict=True):
        np.testing.assert_allclose(other[0], one[0], rtol=1e-13, atol=1e-13)
    assert arrays.ledger == actors.ledger


def test_processes_and_certificates():
    problem = gr.Problem(MODELS["graph trend"] + 0.1 * gr.L2()(w.across(arrows(GRAPH)).grouped(lambda arrow: arrow[0])))
    alone = problem.solve(gr.PrimalDual(polish=False), gap=1e-6, progress=False)
    for engine in (gr.Parts(3), gr.Actors(processes=2)):
        found = problem.solve(gr.PrimalDual(polish=False), gap=1e-6, engine=engine, progress=False)
        assert found.status == alone.status == "certified"
        assert found.rounds == alone.rounds
        np.testing.assert_allclose(found.coef, alone.coef, rtol=1e-12, atol=1e-12)
        assert found.ledger == alone.ledger


ON_RANKS = """
from test_rows_elsewhere import MODELS
for name in ("graph trend", "isotropic", "one end", "maps", "blurred", "two of a node", "vectors"):
    model = gr.Problem(MODELS[name])
    for method in (gr.ADMM(rho=1.0), gr.PrimalDual(polish=False)):
        given = {"gap": 0, "rounds": 12, "on_failure": "return", "progress": False}
        here, there = model.solve(method, **given), model.solve(method, engine=gr.MPI(), **given)
        assert np.array_equal(here.coef, there.coef), (name, method)
        assert here.ledger == there.ledger, (name, method)
print(f"rank {rank} agrees")
"""


@pytest.mark.skipif(find_spec("mpi4py") is None or LAUNCHER is None, reason="there is no MPI")
def test_two_ranks_have_the_bits_of_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", __file__.rpartition("/")[0])
    done = launched(ON_RANKS, 2, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n"))[1:] == ["rank 0 agrees", "rank 1 agrees"]


# ---- what is sent ----------------------------------------------------------------------------------------------------
def messages(K, both=True, k=1):
    """Messages of a round, naively: of each row the middle end keeps the flow, or where ``both`` do two ends each."""
    hat, told = set(), set()
    rows = K.tocsr(copy=True)
    rows.eliminate_zeros()
    of_row = [set(line.tolist()) for line in np.split(rows.indices, rows.indptr[1:-1])]
    for e in range(rows.shape[0] // k):
        lines = of_row[e * k : e * k + k]
        most = max(sum(i in line for line in lines) for i in set().union(*lines))
        ends = sorted(set().union(*lines))
        central = [i for i in ends if sum(i in line for line in lines) == most]
        owner = central[(len(central) - 1) // 2]
        if both and len(ends) == 2:
            hat |= {(ends[0], ends[1]), (ends[1], ends[0])}
        else:
            hat |= {(i, owner) for i in ends if i != owner}
            told |= {(owner, i) for i in ends if i != owner}
    return len(hat) + len(told)


def sent(model):
    """Messages of a round of PrimalDual, by the ledger."""
    found = gr.Problem(model).solve(gr.PrimalDual(balance=1.0), rounds=2, gap=0, on_failure="return", progress=False)
    return found.ledger.messages["method"] // 2


@pytest.fixture(scope="module")
def geometric():
    graph = nx.convert_node_labels_to_integers(nx.random_geometric_graph(1000, 0.06, seed=2))
    assert graph.number_of_edges() == 5414
    D = sp.csr_array(nx.incidence_matrix(graph, oriented=True).T)
    return graph, sp.csr_array(D.T @ D), sp.csr_array(D @ D.T @ D)


def test_messages_of_chains_images_and_blurs():
    """Of 2 (r - 1) messages a row has r ends at most; rows of one owner share messages to the same node."""
    assert sent(means(1000) + gr.L1()(w.along(range(1000), 2))) == 3992
    assert sent(means(1000) + gr.L1()(w.along(range(1000), 3))) == 5982
    pixels = arrows(grid(64, 64))
    assert sent(means(4096) + gr.L2()(w.across(pixels).grouped(lambda arrow: arrow[0]))) == 16128
    blur = sp.diags_array([np.full(1000 - abs(k), 1 / 7) for k in range(-3, 4)], offsets=range(-3, 4))
    assert sent(means(1000) + gr.L1()(sp.csr_array(blur) @ w)) == messages(blur) == 11952


def test_messages_on_a_graph(geometric):
    """With owners in the middle of the ends, and in the centre, where messages go along the graph's edges alone: more,
    as fewer rows share one. Both ends of a row of two keep it, which costs as much, or less where others speak anyway.
    """
    graph, second, third = geometric
    assert sent(means(1000) + gr.L1()(w.across(graph))) == 10828
    for K, order, one_owner, both, centre in ((second, 2, 11142, 11141, 21653), (third, 3, 34602, 34606, 41652)):
        assert messages(K, both=False) == one_owner
        assert messages(K) == both == sent(means(1000) + gr.L1()(gr.Rows(K)))
        model = means(1000) + gr.L1()(w.across(graph, order))
        assert sent(model) == centre
        arcs = arcs_of(gr.Problem(model).form)
        if order == 2:
            spoken = {frozenset(pair) for pair in zip(arcs.source.tolist(), arcs.target.tolist(), strict=True)}
            assert spoken == set(map(frozenset, graph.edges))


def test_owners_are_where_rows_know_their_middle():
    for order, graph in ((2, GRAPH), (4, GRAPH), (3, GRAPH), (3, arrows(GRAPH))):
        form = gr.Problem(means(N) + gr.L1()(w.across(graph, order))).form
        (block,) = form.edges
        wide = np.flatnonzero(block.map.alone >= 0)
        assert len(wide) > N // 2
        tails = 1 if graph.is_directed() else 0
        named = [block.map.keys[r] if order % 2 == 0 else block.map.keys[r][tails] for r in wide]
        assert [form.labels[i] for i in block.map.alone[wide]] == named
        assert block.map.owner[wide].tolist() == block.map.alone[wide].tolist()
        np.testing.assert_array_equal(block.map.alone >= 0, np.diff(block.map.K.indptr) > 2)
    form = form_of("isotropic")
    for block in form.edges:
        owners = [form.labels[i] for i in block.map.owner]
        assert owners == list(block.map.keys) or block.map.k == 1  # of two ends the first
    outer = w.across(GRAPH, 2).across(GRAPH)  # whose rows have many ends, in no order
    (block,) = gr.Problem(means(N) + gr.L1()(outer)).form.edges
    assert (block.map.alone >= 0).sum() > N


def test_what_crosses_between_parts(monkeypatch):
    """A row within a part crosses nowhere; one across two sends w of its end there and its flow back; one across three
    is kept by the part of its owner."""
    swaps, swap = [], ThreadWire.swap

    def watched(self, out, into):
        swaps.append({(self.me, other): values.tolist() for other, values in out.items() if values.size})
        return swap(self, out, into)

    rows = {"within": [0, 1, 2], "two": [1, 2, 3], "three": [1, 3, 5], "one end": [4], "two ends": [2, 3]}
    sizes = {"within": [], "two": [(0, 1, 1), (1, 0, 1)], "one end": [], "two ends": [(0, 1, 1), (1, 0, 1)],
             "three": [(0, 1, 1), (1, 0, 1), (1, 2, 1), (2, 1, 1)]}  # fmt: skip
    for name, ends in rows.items():
        K = np.zeros((1, 6))
        K[0, ends] = 1.0, *[2.0] * (len(ends) - 1)
        model = gr.Problem(means(6) + gr.L1()(gr.Rows(K)))
        monkeypatch.setattr(ThreadWire, "swap", watched)
        sites = {i: i // 2 if name != "within" else i // 3 for i in range(6)}
        sites |= {2: 0} if name in ("two", "two ends") else {}
        found = by_parts(gr.PrimalDual(balance=1.0), model.form.frozen(), gr.Parts(sites=sites), rounds=1)
        crossed = sorted((*way, len(values)) for each in swaps for way, values in each.items())
        assert crossed == sizes[name], name
        assert found.ledger.messages["method"] == (2 if name == "two ends" else 2 * (len(ends) - 1))
        swaps.clear()


# ---- what nobody needs to know ---------------------------------------------------------------------------------------
@over_models
def test_a_node_knows_its_columns_and_the_rows_that_it_keeps(name):
    form = form_of(name)
    for part in split(form, arcs_of(form)):
        i, ids = part.node, part.whole.ids
        for (k, rows), known in zip(part.edges, part.form.edges, strict=True):
            edge = form.edges[k]
            if edge.map.edges is not None:
                continue
            size, d = edge.map.k, form.d
            for place, r in enumerate(rows.tolist()):
                full = edge.map.K[r * size : (r + 1) * size].toarray().reshape(size, form.n, d)
                mine = known.map.K[place * size : (place + 1) * size].toarray().reshape(size, len(ids), d)
                ends = np.flatnonzero(full.any(axis=(0, 2)))
                keeps = i in ends if len(ends) <= 2 else i == edge.map.owner[r]
                seen = full if keeps else np.where(np.arange(form.n)[None, :, None] == i, full, 0.0)
                np.testing.assert_array_equal(mine, seen[:, ids])
                assert np.isnan(known.base_weight[place]) != keeps
                assert known.center is None or np.isnan(known.center[place]).all() != keeps
            assert not known.map.keys
        near = set(ids.tolist()) - {i}
        speak = {owner for edge in form.unlike_edges for owner in _partners(edge, i)}
        graph = {j for edge in form.between for pair in zip(edge.tail.tolist(), edge.head.tolist(), strict=True)
                 if i in pair for j in pair}  # fmt: skip
        assert near == (speak | graph) - {i}


def _partners(edge, i):
    """Those with whom a node speaks because of rows: their owners, and the ends of those that it owns."""
    size = edge.map.k
    for r in range(edge.count):
        K = edge.map.K[r * size : (r + 1) * size].toarray().reshape(size, edge.n, -1)
        ends = np.flatnonzero(K.any(axis=(0, 2))).tolist()
        owner = int(edge.map.owner[r])
        if i in ends or i == owner:
            yield from ends if i == owner or len(ends) <= 2 else [owner]


@pytest.mark.parametrize("method", FIXED, ids=str)
def test_news_of_a_node_go_one_row_in_a_round(method):
    """With other targets at one node, after t rounds others differ whom t rows lead to, and none else."""
    form = form_of("graph trend")
    (block,) = form.unlike_edges
    touched = block.map.K.toarray() != 0.0
    near = (touched.T @ touched) | np.eye(N, dtype=bool)
    here = by_actors(method, form, 4)
    targets = np.random.default_rng(0).normal(size=N).cumsum()
    targets[0] += 50.0
    moved = gr.MeanLoss(gr.NodeData.from_arrays(None, targets, range(N))) + 0.3 * gr.L1()(w.across(GRAPH, 2))
    there = by_actors(method, gr.Problem(moved).form.frozen(), 4)
    known = np.arange(N) == 0
    for one, other in zip(here.points[1:], there.points[1:], strict=True):
        assert not (one[0] != other[0]).any(axis=1)[~known].any()
        known = known @ near
    assert known.sum() > np.count_nonzero(near[0])


def test_isolated_nodes_by_hand():
    """The method as isolated nodes carry it out, written down a second time: two hops a round."""
    problem, rounds, n = gr.Problem(MODELS["isotropic"]), 60, N
    form = problem.form.frozen()
    targets = np.random.default_rng(0).normal(size=N).cumsum()[list(form.labels)]
    rows = [(block, e) for block in form.edges for e in range(block.count)]
    piece, c, owner = {}, [], []
    for r, (block, e) in enumerate(rows):
        k = block.map.k
        for i in np.unique(block.map.K[e * k : (e + 1) * k].nonzero()[1]).tolist():
            piece[r, i] = block.map.K[e * k : (e + 1) * k, [i]].toarray()[:, 0]
        c.append(block.weight[e])
        owner.append(int(block.map.owner[e]))
    ends = [[i for s, i in piece if s == r] for r in range(len(rows))]
    tau = np.array([1.0 / sum(np.abs(x).sum() for (_, j), x in piece.items() if j == i) for i in range(n)])
    x, pull, told = np.zeros(n), np.zeros(n), set()
    u = [np.zeros(block.map.k) for block, _ in rows]
    for _ in range(rounds):
        new = (x - tau * pull + tau * targets) / (1.0 + tau)
        hat, x, back = 2.0 * new - x, new, defaultdict(float)
        for r, those in enumerate(ends):
            z = sum(piece[r, i] * hat[i] for i in those)
            length = np.abs([piece[r, i] for i in those]).sum(axis=0).max()
            v = u[r] + z / length
            u[r] = v / max(1.0, np.linalg.norm(v) / c[r])
            for i in those:
                back[i] += piece[r, i] @ u[r]
                told |= {(owner[r], i), (i, owner[r])} - {(i, i)}
        pull = np.array([back[i] for i in range(n)])
    found = by_actors(gr.PrimalDual(balance=1.0, relaxation=1.0), form, rounds)
    np.testing.assert_allclose(found.points[-1][0][:, 0], x, atol=1e-13)
    assert found.ledger.messages["method"] == rounds * len(told)


# ---- messages that are lost ------------------------------------------------------------------------------------------
PLAIN = [name for name in MODELS if name not in LOSSES and name not in ("maps",)]


@pytest.mark.parametrize("name", PLAIN)
def test_where_nothing_is_lost_the_round_is_the_plain_one(name):
    form, method = form_of(name), gr.PrimalDual(balance=0.7, relaxation=1.6)
    arrays, actors = on_arrays(method, form, 15), by_actors(method, form, 15, faults=gr.Faults(drop=1e-300))
    for one, other in zip(arrays.points, actors.points, strict=True):
        for x, y in zip((one[0], *one[1]), (other[0], *other[1]), strict=True):
            np.testing.assert_allclose(y, x, atol=1e-12)


SMALL = {
    "graph trend": means(9) + 0.3 * gr.L1()(w.across(grid(3, 3), 2)),
    "graph trend of order 2": means(9) + 0.1 * gr.L1()(w.across(grid(3, 3), 3)),
    "isotropic": means(9) + 0.5 * gr.L2()(w.across(arrows(grid(3, 3))).grouped(lambda arrow: arrow[0])),
    "beside edges": means(8) + gr.L1()(w.along(range(8), 2)) + 0.2 * gr.TotalVariation(nx.path_graph(8), gr.L1()),
    "vectors": several(6) + 0.3 * gr.L2()(w.along(range(6), 2)),
}
LOSSY = gr.Faults(drop=0.1), gr.Faults(drop=0.05, duplicate=0.1, crash=0.01), gr.Faults(crash=0.02, resend=True)


@pytest.mark.parametrize(("name", "faults"), thinned(SMALL, LOSSY, every=2), ids=str)
def test_rows_whose_messages_are_lost_lead_to_the_optimum(name, faults):
    problem, method = gr.Problem(SMALL[name]), gr.PrimalDual(balance=1.0)
    given = {"gap": 1e-6, "rounds": 2000, "seed": 0, "progress": False, "on_failure": "return"}
    alone, found = (problem.solve(method, engine=engine, **given) for engine in (None, gr.Actors(faults=faults)))
    assert found.status == "certified"
    assert found.rounds >= alone.rounds
    assert not np.array_equal(found.coef, alone.coef)


def test_rows_whose_messages_are_lost_between_processes():
    """They have the bits of threads."""
    given = {"gap": 0, "rounds": 10, "seed": 3, "progress": False, "on_failure": "return"}
    problem, faults = gr.Problem(SMALL["isotropic"]), gr.Faults(drop=0.2, delay=1, crash=0.02)
    engines = gr.Actors(faults=faults), gr.Actors(faults=faults, processes=2)
    here, there = (problem.solve(gr.PrimalDual(balance=1.0), engine=engine, **given) for engine in engines)
    np.testing.assert_array_equal(here.coef, there.coef)
    assert here.ledger == there.ledger


def test_an_end_that_was_not_told_keeps_its_fixed_point_variable(monkeypatch):
    """x = w -+ s u, for each number of a row that it sees: else copies of flows lead elsewhere."""
    rho, s, seen = 1.6, 0.7, []
    right = _lossy.rows_with_lost_messages

    def watched(view, moves, u, s, rho, messages):
        out = right(view, moves, u, s, rho, messages)
        (w, w_hat, new), me = moves, int(np.argmax(view.own))
        for k, K in _lossy._own_columns(view).items():
            after, u_hat, received = out[k]
            for r, l in np.argwhere(K.any(axis=1).reshape(u[k].shape)).tolist():
                line = K[r * u[k].shape[1] + l]
                sign, j = np.sign(line.sum()), int(np.flatnonzero(line)[0])
                x, then = w[me, j] - s * sign * u[k][r, l], new[me, j] - s * sign * after[r, l]
                z = 2.0 * w_hat[me, j] - x - s * sign * u_hat[r, l]
                np.testing.assert_allclose(then, x + rho * (z - w_hat[me, j]) if received[r, 0] else x, atol=1e-13)
                seen.append(bool(received[r, 0]))
        return out

    monkeypatch.setattr(_lossy, "rows_with_lost_messages", watched)
    for name in ("graph trend", "isotropic", "vectors"):
        form = gr.Problem(SMALL[name]).form.frozen()
        by_actors(gr.PrimalDual(balance=s, relaxation=rho), form, 9, faults=gr.Faults(drop=0.2), seed=5)
    assert min(seen.count(True), seen.count(False)) > 50


# ---- what refuses, and what goes on ----------------------------------------------------------------------------------
def test_refusals_name_the_term():
    problem = gr.Problem(MODELS["graph trend"])
    lossy = gr.Actors(faults=gr.Faults(drop=0.1))
    for model, method, said in (
        (
            MODELS["graph trend"],
            gr.ADMM(),
            r"L1\(\(D\^2 w\)_i\) has rows that are no edges, and ADMM tolerates no loss",
        ),
        (MODELS["maps"], gr.PrimalDual(), r"L2\(.*\) has rows that mix numbers of a node"),
        (LOSSES["kinks"], gr.PrimalDual(), r"QuantileLoss.* is a loss of rows: its messages have to arrive"),
    ):
        with pytest.raises(MethodError, match=said):
            gr.Problem(model).solve(method, engine=lossy, progress=False)
    with pytest.raises(MethodError, match=r"rows that are no edges, and the method takes edges and nodes alone"):
        problem.solve(gr.FedADMM(), engine=gr.Actors(), progress=False)


def test_a_run_goes_on_from_its_checkpoint_with_what_was_sent(tmp_path):
    problem = gr.Problem(MODELS["graph trend"])
    given = {"gap": 0, "on_failure": "return", "progress": False}
    at_once = problem.solve(gr.PrimalDual(), rounds=20, **given)
    problem.solve(gr.PrimalDual(), rounds=10, checkpoint=tmp_path / "run", **given)
    after = problem.solve(gr.PrimalDual(), rounds=20, checkpoint=tmp_path / "run", **given)
    np.testing.assert_array_equal(at_once.coef, after.coef)
    assert at_once.ledger == after.ledger
    assert at_once.ledger.accounts["method"].returns == 20
    assert at_once.ledger.by_level().loc[("rows", "method"), "messages"] == at_once.ledger.messages["method"]


def test_a_part_without_rows_takes_part(monkeypatch):
    """Also where rounds of edges would be compiled: whether they are is asked of all parts."""
    path = nx.path_graph(N)
    model = means(N) + 0.5 * gr.L1()(w.across(path)) + gr.L1()(w.along(range(5), 2))
    form = gr.Problem(model).form.frozen()
    sites = {i: i // 5 for i in range(N)}
    part = part_of(form, arcs_of(form), np.arange(N) >= 15)
    assert not part.form.unlike_edges
    method = gr.PrimalDual(polish=False)
    same(on_arrays(method, form, 15), by_parts(method, form, gr.Parts(sites=sites)))
    assert whole(form).rounds is None


def test_losses_of_rows_are_counted():
    """Their prices are kept by owners, as flows are."""
    # across edges, which all ends take, and back from owners; those of two rounds bring half of the first prices
    assert sent(LOSSES["blurred"]) == 2 * (N - 1) + 2 * (N - 2) + (N - 2)
    problem = gr.Problem(LOSSES["blurred"])
    given = {"gap": 0, "rounds": 10, "progress": False, "on_failure": "return"}
    ledgers = [problem.solve(gr.PrimalDual(), engine=e, **given).ledger for e in (None, gr.Actors(), gr.Parts(3))]
    assert ledgers[0].messages == ledgers[1].messages == ledgers[2].messages
    assert ledgers[0] == ledgers[1] == ledgers[2]


@pytest.mark.parametrize(
    "engine", [gr.Actors(), gr.Parts(sites={i: i // 5 for i in range(N)})], ids=["actors", "parts"]
)
def test_runs_with_losses_of_rows_begin_where_others_ended(engine):
    """Prices are those at what neighbours begin with, of whom some have no such row."""
    some = gr.HuberLoss(w.at(range(4)) + w.at(range(1, 5)), np.ones(4))
    problem = gr.Problem(means(N) + some + gr.L1()(w.along(range(4, 12), 2)) + TIED)
    given = {"gap": 0, "rounds": 6, "progress": False, "on_failure": "return"}
    start = problem.solve(gr.PrimalDual(balance=0.7), **given)
    here, there = (problem.solve(gr.PrimalDual(balance=0.7), start=start, engine=e, **given) for e in (None, engine))
    np.testing.assert_array_equal(here.coef, there.coef)
    assert here.ledger == there.ledger


def test_a_part_has_no_targets_of_rows_that_others_keep():
    form = gr.Problem(LOSSES["blurred"]).form.frozen()
    mine = np.arange(N) < 5
    (block,) = part_of(form, arcs_of(form), mine).form.beside
    kept = ~np.isnan(block.base_scale)
    assert kept.sum() == 5 < block.count
    assert not block.y[~kept].any()
    assert not block.offset[~kept].any()
    assert len(block.loss.data.y) == 5
    np.testing.assert_array_equal(block.y[kept], np.arange(5.0))


@pytest.mark.parametrize("name", ["graph trend", "isotropic"])
def test_rows_where_messages_are_sent_again_until_they_arrive(name):
    problem = gr.Problem(MODELS[name])
    given = {"gap": 0, "rounds": 12, "progress": False, "on_failure": "return", "seed": 1}
    there = problem.solve(gr.PrimalDual(balance=0.7), engine=gr.Actors(), **given)
    faults = gr.Faults(drop=0.2, delay=2, duplicate=0.1, reorder=0.1, resend=True)
    by = problem.solve(gr.PrimalDual(balance=0.7), engine=gr.Actors(faults=faults), **given)
    np.testing.assert_array_equal(there.coef, by.coef)
    assert by.ledger.messages["method"] > there.ledger.messages["method"]


@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.ADMM()], ids=str)
def test_methods_obey_their_laws_on_rows(method):
    """Among them: a step reaches whom rows lead to and no others, and the ledger is what was sent."""
    small, pixels = nx.path_graph(7), arrows(grid(3, 3))
    models = (
        means(7) + gr.L1()(w.across(small, 2)),
        means(9) + gr.L2()(w.across(pixels).grouped(lambda arrow: arrow[0])),
        means(7) + gr.L1()(w.along(range(7), 3)) + 0.1 * gr.L1()(w.across(arrows(small)) - 1.0),
    )
    report = gr.testing.check_method(method, list(map(gr.Problem, models)))
    assert report.ok, report
