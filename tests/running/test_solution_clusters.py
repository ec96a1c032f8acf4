"""Clusters: edges that are fused or split, and proved to be."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from factories import named, thinned
from solution_cases import CHAIN, METHODS, NODES, means

import graphreg as gr


def two_clusters(rng, penalty, m=20, d=2):
    """Eight nodes in two rings joined by one edge, each with a truth of its own; and that problem's two sides."""
    ring = nx.cycle_graph(4)
    graph = nx.disjoint_union(ring, ring)
    graph.add_edge(3, 4)
    truth = np.repeat([[2.0, -1.0], [-2.0, 1.0]], 4, axis=0)
    data = {}
    for i, w in enumerate(truth):
        X = rng.normal(size=(m, d))
        data[i] = X, X @ w + 0.1 * rng.normal(size=m)
    return gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(data)) + 0.2 * gr.TotalVariation(graph, penalty))


@pytest.mark.parametrize("method", METHODS, ids=named)
@pytest.mark.parametrize("penalty", [gr.L2(), gr.L1(), gr.LInf()], ids=repr)
def test_two_true_clusters_are_found_and_proved(rng, penalty, method):
    solution = two_clusters(rng, penalty).solve(method, gap=1e-8)
    near, found = solution.clusters(), solution.clusters(prove=True)
    assert near.labels == found.labels
    assert not near.certain
    assert near.edges["state"].tolist().count("near") == 8
    assert found.certain
    assert found.count_range == (2, 2)
    assert found.members() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found.labels == {i: int(i > 3) for i in range(8)}
    assert found.count == 2
    edges = found.edges.set_index(["tail", "head"])
    assert edges.loc[(3, 4), "state"] == "split"
    assert (edges.drop(index=(3, 4))["state"] == "fused").all()
    assert edges.loc[(3, 4), "slack"] == pytest.approx(0.0, abs=1e-6)
    assert (edges.drop(index=(3, 4))["slack"] > 1e-3).all()
    assert str(found) == (
        "2 clusters of sizes 4, 4; edges: 8 fused, 1 split, 0 undecided (every edge is decided by a proof)"
    )


def test_a_coarse_answer_decides_less_and_nothing_wrongly(rng):
    problem = two_clusters(rng, gr.L2())
    coarse = problem.solve(gr.PrimalDual(), rounds=3, gap=0).clusters()
    assert not coarse.certain
    assert "every edge is decided by a proof" not in str(coarse)
    assert set(coarse.edges["state"]) <= {"near", "split", "undecided"}


def noisy(seed):
    """Six nodes with little data on a ring with chords, so that some edges fuse and some do not."""
    rng = np.random.default_rng(seed)
    graph = nx.circulant_graph(6, [1, 2])
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = rng.uniform(0.5, 2.0)
    truth = np.where(np.arange(6)[:, None] < 3, [1.0, -1.0], [1.5, 0.0])
    data = {i: ((X := rng.normal(size=(8, 2))), X @ truth[i] + 0.5 * rng.normal(size=8)) for i in range(6)}
    return gr.SquaredLoss(gr.NodeData.from_dict(data)), graph


@pytest.mark.parametrize(("penalty", "seed"), thinned([gr.L2(), gr.L1(), gr.LInf()], range(3), every=3))
def test_edges_are_decided_as_a_tight_solution_has_them(penalty, seed):
    """Each penalty on one of the problems; on all with ``make test ARGS=--whole``."""
    loss, graph = noisy(seed)
    states = set()
    for strength in (0.01, 0.05, 0.2):
        problem = gr.Problem(loss + strength * gr.TotalVariation(graph, penalty))
        tight = problem.solve(gap=1e-11)
        assert tight.certificate.distance < 1e-4
        size = np.sqrt((tight.coef**2).mean())
        accuracy = 2 * tight.certificate.distance
        for method, gap in ((gr.PrimalDual(), 1e-2), (gr.PrimalDual(), 1e-5), (gr.Exact(), 1e-6)):
            edges = problem.solve(method, gap=gap).clusters(prove=True).edges
            true = np.linalg.norm(tight.coef[edges["tail"].to_list()] - tight.coef[edges["head"].to_list()], axis=1)
            assert (true <= edges["bound"] + accuracy).all()
            assert (true[edges["state"] == "fused"] <= accuracy).all()
            assert (true[edges["state"] == "near"] <= 1e-3 * size + accuracy).all()
            assert (true[(edges["state"] == "split") & edges["certain"]] > 0).all()
            states |= set(edges["state"])
    assert "split" in states
    assert states & {"near", "fused"}


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_clusters_where_the_optimum_is_0(method):
    problem = gr.Problem(gr.MeanLoss(means(-1, 1, -2, 2)) + 5 * gr.TotalVariation(nx.path_graph(4), gr.L2()))
    solution = problem.solve(method)
    np.testing.assert_allclose(solution.coef, 0.0, atol=1e-3)
    found = solution.clusters(prove=True)
    assert found.count == 1
    assert set(found.edges["state"]) <= {"near", "fused"}
    assert set(found.labels.values()) == {0}


@pytest.mark.parametrize("penalty", [gr.SquaredL2(), gr.HuberNorm(1.0), gr.Quadratic([[2.0]]), gr.Ball(1.0)], ids=repr)
def test_what_has_no_kink_never_fuses(penalty):
    for values in ((0.0, 0.0, 5.0), (0.0, 1e-6, 5.0)):
        found = (
            gr.Problem(gr.MeanLoss(means(*values)) + gr.TotalVariation(nx.path_graph(3), penalty)).solve().clusters()
        )
        assert "fused" not in set(found.edges["state"])
        assert found.count == 3


def test_a_consensus_fuses_by_definition():
    problem = gr.Problem(gr.MeanLoss(means(0.0, 1.0, 5.0)) + gr.Consensus(nx.path_graph(3)))
    found = problem.solve().clusters()
    assert (found.count, found.certain) == (1, True)
    assert (found.edges["bound"] == 0).all()


def test_a_split_names_its_coordinates_where_the_penalty_acts_on_each():
    y = np.array([[1.0, -1.0], [1.0, -1.0], [1.0, 2.0]])
    frame = pd.DataFrame(y, columns=["rain", "wind"]).assign(node=NODES)
    loss = gr.MeanLoss(gr.NodeData.from_frame(frame, node="node", target=["rain", "wind"]))
    triangle = nx.complete_graph(3)

    def found(penalty, **more):
        model = loss + 0.1 * gr.TotalVariation(nx.relabel_nodes(triangle, dict(enumerate(NODES))), penalty, **more)
        return gr.Problem(model).solve(gap=1e-10).clusters()

    one = found(gr.L1())
    assert one.edges["split_in"].tolist() == ["", "wind", "wind"]
    assert "split in wind (2)" in str(one)
    together = found(gr.L2())
    assert together.edges["state"].tolist()[1:] == ["split", "split"]
    assert together.edges["split_in"].tolist() == ["", "", ""]
    assert "split in" not in str(together)
    assert set(found(gr.L2(), features=["wind"]).edges["split_in"]) == {"", "wind"}


def test_clusters_without_edges():
    found = gr.Problem(gr.MeanLoss(means(0.0, 1.0))).solve().clusters()
    assert found.count == 2
    assert list(found.edges.columns) == [
        "term",
        "tail",
        "head",
        "state",
        "slack",
        "difference",
        "bound",
        "certain",
        "split_in",
    ]
    assert str(found).startswith("2 clusters, a node each; edges: 0 fused, 0 split, 0 undecided")


def test_nodes_that_agree_on_some_features_only_are_apart(rng):
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, rng.normal(size=(3, 2)), NODES))
    first, second = (5.0 * gr.TotalVariation(CHAIN, gr.L2(), features=[name]) for name in ("y0", "y1"))
    one, both = gr.Problem(loss + first).solve().clusters(), gr.Problem(loss + first + second).solve().clusters()
    assert set(one.edges["state"]) == {"near"}
    assert one.count == 3
    assert both.count == 1


def test_fused_edges_join_along_paths(rng):
    """Nodes 0 and 2 have no edge, and are one cluster through node 1."""
    problem = gr.Problem(gr.MeanLoss(means(0.0, 0.1, 0.2, 9.0)) + 0.5 * gr.TotalVariation(nx.path_graph(4), gr.L2()))
    found = problem.solve(gap=1e-8).clusters(prove=True)
    assert found.members() == [[0, 1, 2], [3]]
    assert found.edges["state"].tolist() == ["fused", "fused", "split"]


def test_two_terms_of_one_penalty_and_strength_are_told_apart():
    data = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(6.0), range(6)))
    path, cycle = (gr.TotalVariation(graph(6), gr.L1()) for graph in (nx.path_graph, nx.cycle_graph))
    found = gr.Problem(data + path + cycle).solve(gr.Exact()).clusters()
    assert len(found.edges) == 5 + 6


# ---- what the table shows, what the count says, and which gap decides the rest ---------------------------------------
def petersen(seed, strength=0.2):
    rng, graph = np.random.default_rng(seed), nx.petersen_graph()
    data = gr.NodeData.from_dict({k: (rng.normal(size=(8, 2)), rng.normal(size=8)) for k in graph})
    return gr.Problem(gr.SquaredLoss(data) + strength * gr.TotalVariation(graph, gr.L2()))


@pytest.mark.parametrize("seed", [0, 3])
def test_nodes_that_are_the_same_in_the_table_are_one_cluster(seed):
    solution = petersen(seed).solve(gr.PrimalDual())
    found = solution.clusters()
    assert found.edges["state"].tolist().count("undecided") > 0
    assert found.count == len(np.unique(solution.coef, axis=0))
    low, high = found.count_range
    assert low <= found.count <= high
    said = f"clusters(prove=True) looks for proofs; gap={found.decided_at:.0e} should decide them"
    assert said in str(found)  # the first without another solve of one's own
    assert solution.clusters(prove=True).certain
    assert "undecided" not in petersen(seed).solve(gap=found.decided_at).clusters().edges["state"].tolist()


def halves(*terms, loss=gr.SquaredLoss, standardise=False):
    """Twelve nodes on a path, whose intercepts are those of two halves, and whose slopes those of a quarter."""
    rng, node = np.random.default_rng(0), np.repeat(range(12), 12)
    frame = pd.DataFrame({"node": node, "x": 3.0 * rng.normal(size=144)})
    frame["y"] = 2.0 * (node > 5) + frame["x"] * np.where(node > 2, 1.0, 3.0) + 0.5 * rng.normal(size=144)
    how = {"node": "node", "target": "y", "features": ["x"], "intercept": True, "standardise": standardise}
    return gr.Problem(sum(terms, start=gr.Model.of(loss(gr.NodeData.from_frame(frame, **how)))))


def along(strength, penalty, features=None):
    return strength * gr.TotalVariation(nx.path_graph(12), penalty, features)


@pytest.mark.parametrize("features", [None, ["x"]])
def test_what_one_term_proves_of_two_nodes_is_said_of_all_on_these_coordinates(features):
    smooth, strength = along(0.05, gr.SquaredL2(), features), gr.Parameter(0.2, "strength")
    problem = halves(along(strength, gr.L2()), smooth)
    found, best = problem.solve().clusters(), problem.solve(gap=1e-12).certificate.w
    of_kink, of_smooth = (part for _, part in found.edges.groupby("term", sort=False))
    assert set(of_kink["state"]) == {"near", "split"}
    assert [state == "near" for state in of_smooth["state"]] == [state == "near" for state in of_kink["state"]]
    far = np.linalg.norm(np.diff(best, axis=0)[:, slice(None) if features is None else [1]], axis=1)
    assert (far <= of_smooth["bound"]).all()
    assert found.counts == {"fused": 0, **of_kink["state"].value_counts().to_dict(), "undecided": 0}
    table = gr.path(problem, [0.2]).table()
    assert table.loc[0, list(found.counts)].to_dict() == found.counts  # one count for both


def test_terms_on_a_few_coordinates_say_nothing_of_the_others():
    flat = {"loss": lambda data: gr.QuantileLoss(data, tau=0.5)}  # without curvature nothing else decides
    found = halves(along(500.0, gr.L2(), ["x"]), along(0.01, gr.SquaredL2()), **flat).solve().clusters()
    of_few, of_all = (part["state"].tolist() for _, part in found.edges.groupby("term", sort=False))
    assert set(of_few) == {"near"}
    assert set(of_all) == {"undecided"}


def test_proofs_are_advised_where_no_gap_decides():
    problem = halves(along(0.5, gr.L2()), loss=lambda data: gr.QuantileLoss(data, tau=0.5))  # nothing has curvature
    solution = problem.solve()
    found = solution.clusters()
    assert (open_ := found.counts["undecided"]) > 0
    assert found.advice == "clusters(prove=True) looks for proofs"
    assert problem.solve(gap=1e-9).clusters().counts["undecided"] == open_
    assert solution.clusters(prove=True).counts["undecided"] < open_
    coarse = problem.solve(gr.PrimalDual(), rounds=200, gap=0).clusters(prove=True)
    assert coarse.counts["undecided"] > 0
    assert coarse.advice.startswith("no proof was found")


def test_distances_say_their_unit():
    for standardise, unit in ((True, " (per standard deviation of a feature)"), (False, "")):
        solution = halves(along(0.2, gr.L2()), standardise=standardise).solve()
        found, facts = solution.clusters(), solution.summary().facts
        assert found.counts["near"] > 0
        assert f" apart{unit} at every optimum" in str(found)
        assert facts["distance"].endswith(f"from the optimal parameters, over all nodes{unit}")
        assert facts["distance"] in solution.certificate._repr_html_()


@pytest.mark.parametrize("seed", [0, 3])
def test_proofs_ask_for_the_gap_that_they_need(seed, monkeypatch):
    solution = petersen(seed).solve(gr.PrimalDual())
    assert solution.clusters(prove=True).certain
    asked = petersen(seed).solve(gr.PrimalDual(), gap=0, rounds=solution.rounds)  # no answer that was asked for
    monkeypatch.setattr("graphreg.methods.automatic.auto.nearer", None)
    assert not asked.clusters(prove=True).certain
