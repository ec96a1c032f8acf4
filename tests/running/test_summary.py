"""An answer on a page, its flows as a table, and as a graph of networkx."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from solution_cases import CHAIN, means, read

import graphreg as gr
from graphreg.base.escaping import printed


@pytest.fixture
def solution(frame):
    model = gr.SquaredLoss(read(frame)) + 0.1 * gr.TotalVariation(CHAIN, gr.L2())
    return gr.Problem(model + 1e-2 * gr.NodePenalty(gr.SquaredL2())).solve(gr.PrimalDual(), seed=3)


def weighted_path():
    graph = nx.Graph([(0, 1, {"weight": 2.0}), (1, 2, {"weight": 0.5}), (2, 3)])
    graph.add_node(4)  # alone
    return graph


# ---- flows -----------------------------------------------------------------------------------------------------------
def test_a_flow_beside_its_capacity():
    """Means 0, 9, 9.1, 9.1, at weights 2, 1/2, 1: the first edge is used up, and nothing flows along the last."""
    model = gr.MeanLoss(means(0.0, 9.0, 9.1, 9.1, 7.0)) + gr.TotalVariation(weighted_path(), gr.L1())
    solution = gr.Problem(model).solve(gap=1e-10)
    table = solution.flows.table().set_index(["tail", "head"])
    assert table.columns.tolist() == ["term", "flow", "capacity", "used", "saturated"]
    np.testing.assert_allclose(table["capacity"], [2.0, 0.5, 1.0], rtol=1e-12)
    assert table["saturated"].tolist() == [True, True, False]
    np.testing.assert_allclose(table["flow"], [solution.flows[key][0] for key in table.index], rtol=0.0)
    assert table["flow"].iloc[0] == pytest.approx(-2.0)  # from head to tail, up from a mean of 0 to one of 9
    np.testing.assert_allclose(table["used"], table["flow"].abs() / table["capacity"], rtol=1e-12)
    np.testing.assert_array_equal(solution.certificate.per_edge()["flow"], table["flow"])


def test_flows_of_several_numbers_are_told_by_their_length(solution):
    table, edges = solution.flows.table(), solution.certificate.per_edge()
    assert "flow" not in table
    assert "flow" not in edges
    length = [np.linalg.norm(u, axis=1) for u in solution.certificate.dual_point.flows]
    np.testing.assert_array_equal(table["length"], np.concatenate(length))
    np.testing.assert_array_equal(edges["length"], table["length"])


def test_where_nothing_flows_nothing_is_used():
    model = gr.MeanLoss(means(1.0, 1.0)) + 0.3 * gr.TotalVariation(nx.path_graph(2), gr.L2())
    (row,) = gr.Problem(model).solve(gr.PrimalDual()).flows.table().to_dict("records")
    assert (row["flow"], row["used"], row["saturated"]) == (0.0, 0.0, False)
    assert row["capacity"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("penalty", "capacity"),
    [(gr.L1(), np.sqrt(2.0)), (gr.L2(), 1.0), (gr.LInf(), 1 / np.sqrt(2.0)), (gr.SquaredL2(), np.inf)],
)
def test_the_capacity_is_that_in_the_direction_of_the_flow(penalty, capacity):
    data = gr.NodeData.from_dict({0: (None, [[5.0, 5.0]]), 1: (None, [[0.0, 0.0]])})
    found = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(nx.path_graph(2), penalty)).solve(gap=1e-10)
    (row,) = found.flows.table().to_dict("records")
    assert row["capacity"] == pytest.approx(capacity, rel=1e-4)
    assert row["saturated"] == np.isfinite(capacity)


ARROWS = nx.DiGraph([(i, i + 1) for i in range(5)])
ONE_SIDED = {  # on differences along arrows, with the capacities forwards and backwards
    "order": (gr.NonNegative(), 0.0, np.inf),
    "rises cost": (gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.pos(z))), 1.0, 0.0),
    "both cost": (gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.maximum(2 * z, -z))), 2.0, 1.0),
}


@pytest.mark.parametrize("size", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize("name", ONE_SIDED)
def test_of_one_sided_penalties_both_capacities_are_said(name, size):
    """And of a row whose flow is at neither end the two nodes are equal, as everywhere."""
    penalty, forwards, backwards = ONE_SIDED[name]
    strength = 1.0 if isinstance(penalty, gr.AbstractConstraint) else 0.9 * size
    fit = gr.MeanLoss(means(*(size * np.array([0.0, 5.0, 5.2, 1.0, 7.0, 3.5]))))
    term = penalty(gr.w.across(ARROWS))
    solution = gr.Problem(fit + (term if strength == 1.0 else strength * term)).solve(gr.Exact(), gap=1e-8)
    table = solution.flows.table()
    assert table.columns.tolist() == ["term", "row", "flow", "capacity", "back", "used", "saturated"]
    back = table["flow"] < 0
    np.testing.assert_allclose(table["capacity"].where(~back, table["back"]), strength * forwards, rtol=1e-6)
    np.testing.assert_allclose(table["back"].where(~back, table["capacity"]), strength * backwards, rtol=1e-6)
    differ = np.abs(np.diff(solution.coef[:, 0])) > 1e-3 * size
    assert differ.any()
    assert not differ.all()
    assert table["saturated"][differ].all()
    assert not table["saturated"][~differ].any()


def test_a_capacity_of_nothing_is_not_drawn():
    order = gr.NonNegative()(gr.w.across(ARROWS))
    edges = 0.4 * gr.TotalVariation(nx.path_graph(6), gr.L1())
    solution = gr.Problem(gr.MeanLoss(means(0.0, 5.0, 2.0, 1.0, 7.0, 3.5)) + order + edges).solve()
    drawn = gr.plots.plot_flows(solution)
    assert drawn.get_title().endswith("without capacities: NonNegative(w_j - w_i)")
    assert sum(len(bars) for bars in drawn.containers) == 5


def test_flows_to_the_ground_and_of_no_edges(solution):
    table = solution.flows.table()
    assert table["head"].tolist() == [None, None, None, "b", "c"] or table["head"].tolist() == [
        "b",
        "c",
        None,
        None,
        None,
    ]
    assert np.isinf(table["capacity"][table["head"].isna()]).all()  # of a ridge
    assert "dual point" in str(table)
    assert "None" in printed(table)
    none = gr.Problem(gr.MeanLoss(means(1.0, 2.0))).solve().flows.table()
    assert none.empty
    assert "saturated" in none


# ---- on a page -------------------------------------------------------------------------------------------------------
def test_the_summary_says_what_is_known(solution):
    said = solution.summary()
    assert said.facts["problem"].startswith("3 nodes, 3 coordinates each; ")
    assert said.facts["model"] == "SquaredLoss + 0.1 TotalVariation(L2) + 0.01 NodePenalty(SquaredL2)"
    assert said.facts["method"] == "PrimalDual, seed 3"
    assert said.facts["status"] == f"certified. {solution.message}"
    assert f"{solution.rounds} rounds" in said.facts["work"]
    assert said.facts["objective"] == f"{solution.objective:.10g}"
    assert said.facts["certificate"].endswith(f"<= optimum <= {solution.certificate.primal:.10g}")
    assert said.facts["clusters"] == str(solution.clusters())
    assert said.facts["distance"].startswith(f"at most {solution.certificate.distance:.3g} from")
    assert said.coefficients.index.tolist() == ["intercept", "rain", "temp"]
    np.testing.assert_allclose(said.coefficients["mean"], solution.coef.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(said.coefficients["max"], solution.coef.max(axis=0))
    text = str(said)
    assert max(map(len, text.splitlines())) <= 118
    assert "no standard errors" in text
    assert all(name in text for name in said.facts)


def test_zeros_and_free_nodes_are_counted():
    model = gr.MeanLoss(means(0.0, 3.0)) + gr.TotalVariation(nx.empty_graph(4), gr.L1()) + gr.NodePenalty(gr.L1())
    said = gr.Problem(model).solve(gr.PrimalDual()).summary()
    assert said.coefficients["zeros"].tolist() == [3]
    assert "free nodes" not in said.facts  # tied to the ground
    found = gr.Problem(gr.MeanLoss(means(0.0, 3.0)) + gr.TotalVariation(nx.empty_graph(4), gr.L1())).solve()
    assert found.summary().facts["free nodes"].startswith("2 without a loss")
    assert f"free nodes (no loss in their component; set to 0): {found.free}" in str(found)


def test_nodes_that_penalties_alone_decide_are_named():
    model = gr.MeanLoss(means(0.0, 3.0)) + gr.TotalVariation(nx.empty_graph(4), gr.L1()) + gr.NodePenalty(gr.L1())
    found = gr.Problem(model).solve(gr.PrimalDual())
    assert found.summary().facts["unreached nodes"].startswith("2 that no data reach")
    assert "nodes that no data reach (penalties alone decide there): [2, 3]" in str(found)
    assert [node["unreached"] for _, node in found.to_networkx().nodes(data=True)] == [False, False, True, True]
    joined = gr.MeanLoss(means(0.0, 3.0)) + gr.TotalVariation(nx.path_graph(4), gr.L1()) + gr.NodePenalty(gr.L1())
    assert "no data reach" not in str(gr.Problem(joined).solve())


def test_small_numbers_are_shown_with_their_digits():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(40), rng.uniform(1.3e9, 1.7e9, 40)])
    data = gr.NodeData.from_arrays(X, 2.345e-6 * X[:, 1], np.repeat([0, 1], 20), features=["one", "unix"])
    model = gr.SquaredLoss(data) + 1e-9 * gr.TotalVariation(gr.Graph.chain(2), gr.L2())
    assert repr(gr.Problem(model).solve(on_failure="return").table()).count("2.345e-06") == 2


def test_what_is_not_certified_is_not_said_to_be():
    X = np.arange(6.0).reshape(-1, 1) - 2.5
    data = gr.NodeData.from_arrays(X, (X[:, 0] > 0).astype(int), [0] * 6)
    lost = gr.Problem(gr.LogisticLoss(data)).solve(on_failure="return").summary()
    assert lost.facts["status"].startswith("unattained. ")
    model = gr.MeanLoss(means(1.0, 2.0)) + gr.TotalVariation(nx.path_graph(2), gr.L1())
    nothing = gr.Problem(model + gr.NodePenalty(gr.Ball(0.1)) + gr.NodePenalty(gr.Box(0.5, 1.0)))
    said = nothing.solve(on_failure="return").summary()
    assert "certificate" not in said.facts
    assert said.facts["status"].startswith("infeasible")
    assert not any("bounds" in each for each in said.assumed)
    assert "proved for" not in str(said)


def test_names_are_shown_and_not_obeyed(frame):
    renamed = frame.rename(columns={"rain": "\x1b[2J"})
    hostile = gr.NodeData.from_frame(renamed, node="site", target="level", features=["\x1b[2J"])
    said = gr.Problem(gr.SquaredLoss(hostile) + 0.1 * gr.TotalVariation(CHAIN, gr.L2())).solve().summary()
    assert "\x1b" not in str(said)
    assert "\\x1b[2J" in str(said)


# ---- as a graph ------------------------------------------------------------------------------------------------------
def test_the_answer_on_its_graph(solution):
    graph = solution.to_networkx()
    assert set(graph.edges) == set(CHAIN.edges)
    for label, w in zip(solution.labels, solution.coef, strict=True):
        node = graph.nodes[label]
        assert node["coef"] == dict(zip(["intercept", "rain", "temp"], w.tolist(), strict=True))
        assert node["cluster"] == solution.clusters().labels[label]
        assert list(node["to_ground"].values()) == solution.flows[label, None].tolist()
        assert not node["latent"]
        assert not node["free"]
    for a, b, edge in graph.edges(data=True):
        assert {edge["tail"], edge["head"]} == {a, b}
        assert list(edge["flow"].values()) == solution.flows[edge["tail"], edge["head"]].tolist()
        assert edge["weight"] == pytest.approx(0.1)
        ((term, state),) = edge["states"]
        assert term == "TotalVariation(L2)"
        assert state in ("near", "split", "fused", "undecided")


def test_terms_on_one_edge_add_up_and_latent_nodes_are_marked():
    twice = 0.1 * gr.TotalVariation(weighted_path(), gr.L1()) + 0.2 * gr.TotalVariation(weighted_path(), gr.L2())
    tree = gr.Hierarchy(dict.fromkeys(range(5), "all"), weights=(1.0, 1.0))
    graph = gr.Problem(gr.MeanLoss(means(0.0, 1.0, 2.0, 3.0, 4.0)) + twice + tree).solve().to_networkx()
    assert graph.edges[0, 1]["weight"] == pytest.approx(2.0 * 0.3)
    assert [term for term, _ in graph.edges[0, 1]["states"]] == ["TotalVariation(L1)", "TotalVariation(L2)"]
    latent = [label for label, node in graph.nodes(data=True) if node["latent"]]
    assert len(latent) == len(graph) - 5
    assert all(graph.nodes[label]["cluster"] is None for label in latent)
    assert graph.degree[4] == 1  # to its cluster alone
