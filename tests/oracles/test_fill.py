"""The entries of a factor, counted beside dense eliminations; and factors too large for memory, which are not begun."""

from __future__ import annotations

import resource

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import graphreg as gr
from graphreg.base import gate
from graphreg.compiling import conic
from graphreg.oracles import newton
from graphreg.oracles.newton import NewtonSystem, filled_work

GRAPHS = {
    "tree": nx.balanced_tree(2, 5),
    "chain": nx.path_graph(40),
    "star": nx.star_graph(30),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(7, 8)),
    "random": nx.gnm_random_graph(50, 120, seed=1),
    "parts": nx.disjoint_union(nx.cycle_graph(12), nx.gnm_random_graph(20, 25, seed=2)),
    "complete": nx.complete_graph(12),
    "no edges": nx.empty_graph(5),
}


def problem(graph, d=2, penalty=None):
    rng = np.random.default_rng(0)
    n = graph.number_of_nodes()
    data = gr.NodeData.from_arrays(rng.standard_normal((2 * n, d)), rng.standard_normal(2 * n), np.arange(2 * n) % n)
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, penalty or gr.L2()))


def matrix(graph):
    n = graph.number_of_nodes()
    return sp.csc_array(
        nx.to_scipy_sparse_array(graph, nodelist=range(n), weight=None) * -1.0 + 2.0 * n * sp.eye_array(n)
    )


def eliminated(A, order):
    """The number of entries in each column of the factor, by eliminating node after node from a set of pairs."""
    joined = (A.toarray() != 0)[np.ix_(order, order)]
    out = np.zeros(len(order))
    for k in range(len(order)):
        below = np.flatnonzero(joined[k, k + 1 :]) + k + 1
        out[k] = 1 + len(below)
        joined[np.ix_(below, below)] = True
    return out


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("ordered", [True, False])
def test_the_entries_of_each_column(name, ordered):
    A = matrix(GRAPHS[name])
    order = newton.sparse_order(A) if ordered else np.random.default_rng(3).permutation(A.shape[0])
    assert np.array_equal(newton.column_counts(A, order), eliminated(A, order))


@pytest.mark.parametrize("name", GRAPHS)
def test_the_order_is_that_of_a_whole_factorisation(name):
    A = matrix(GRAPHS[name])
    whole = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    assert np.array_equal(newton.sparse_order(A), np.argsort(whole.perm_c))


@pytest.mark.parametrize("name", GRAPHS)
def test_no_fill_leaves_the_band(name):
    A = matrix(GRAPHS[name])
    assert newton.column_counts(A, newton.sparse_order(A)).sum() <= newton.band(A).sum() + A.shape[0] or name == "star"
    assert newton.least_fill(A) <= newton.column_counts(A, newton.sparse_order(A)).sum()


def test_trees_have_no_least_fill():
    assert newton.least_fill(matrix(GRAPHS["tree"])) == newton.least_fill(matrix(GRAPHS["star"])) == 0.0


def test_the_work_counts_the_columns():
    A = matrix(GRAPHS["grid"])
    counts = eliminated(A, newton.sparse_order(A))
    assert filled_work(problem(GRAPHS["grid"], 3).form) == 27.0 * (counts**2).sum()


def test_products_are_those_of_the_pattern():
    for penalty in (gr.L1(), gr.L2(), gr.SquaredL2(), gr.HuberNorm(0.3)):
        form = problem(GRAPHS["random"], 3, penalty).form
        system = NewtonSystem(form)
        found = sum(len(rows.entries()[0]) for rows in (*system.samples, *system.edges))
        assert found <= newton._products(form) <= 4.0 * found, penalty


# ---- memory ----------------------------------------------------------------------------------------------------------
def untouched(*_):
    raise AssertionError("nothing large may be computed")


LIMITS = {"the pattern": ("complete", 1e3), "a bound": ("random", 5e4), "the count": ("grid", 8e4)}


@pytest.mark.parametrize("name", LIMITS)
def test_what_does_not_fit_is_not_begun(monkeypatch, name):
    """With limits at which the matrix, a bound of the factor and the factor itself are too large."""
    graph, limit = LIMITS[name]
    model = problem(GRAPHS[graph], 12, gr.L1())
    monkeypatch.setattr(newton, "PER_PRODUCT", newton.PER_PRODUCT if name == "the pattern" else 0.0)
    monkeypatch.setattr(newton.Factors, "__call__", untouched)
    monkeypatch.setattr(NewtonSystem, "_pattern", untouched)
    if name != "the count":
        monkeypatch.setattr(newton, "column_counts", untouched)
    found = model.solve(gr.InteriorPoint(), memory=limit, on_failure="return")
    assert found.status == "failed"
    assert "would take" in found.message
    assert f"{limit / 1e9:.3g} GB may be used" in found.message
    assert "such as PrimalDual()" in found.message
    with pytest.raises(gr.errors.FailedError, match="PrimalDual"):
        model.solve(gr.InteriorPoint(), memory=limit)


def test_exact_refuses_before_it_compiles(monkeypatch):
    monkeypatch.setattr(conic, "primal", untouched)
    found = problem(GRAPHS["random"], 12, gr.L1()).solve(gr.Exact(), memory=5e4, on_failure="return")
    assert found.status == "failed"
    assert "would take" in found.message
    assert "such as PrimalDual()" in found.message


def test_what_fits_is_solved():
    model = problem(GRAPHS["grid"], 2)
    assert model.solve(gr.InteriorPoint(), memory=1e6).status == "certified"


def on_a_chain(strength):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((80, 2)), rng.standard_normal(80), np.arange(80) % 40)
    return gr.SquaredLoss(data) + strength * gr.TotalVariation(GRAPHS["chain"], gr.L2())


def test_a_path_goes_by_rounds_where_factors_do_not_fit():
    strength = gr.Parameter(0.1, name="lam")
    model = gr.Problem(on_a_chain(strength))
    with gate.allowing(3e4):
        found = gr.path(model, [0.1, 0.2])
    assert {each.method for each in found} == {"Auto(PrimalDual)"}
    assert all(each.status == "certified" for each in found)


def test_the_memory_of_the_machine():
    assert 2**26 < gate.usable_memory() < 2**60


def test_the_memory_of_a_group_counts_where_it_is_less(monkeypatch, tmp_path):
    group = tmp_path / "memory.max"
    monkeypatch.setattr(gate, "CGROUP", group)
    whole = gate.usable_memory()
    group.write_text("max\n")
    assert gate.usable_memory() == whole
    group.write_text("1000\n")
    assert gate.usable_memory() == 800.0
    monkeypatch.setattr(gate, "CGROUP", tmp_path / "none")
    monkeypatch.delattr(gate.os, "sysconf")
    assert gate.usable_memory() == np.inf


def test_the_limit_of_the_process_counts_where_it_is_less(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1000, -1) if which == resource.RLIMIT_AS else (-1, -1))
    assert gate.usable_memory() == 800.0


def test_sizes_that_no_memory_holds_are_refused_by_name():
    lam = gr.Parameter(0.1, name="lam")
    with pytest.raises(gr.errors.ModelError, match=r"strengths: the answers at 1,000,000,000,000 .* GB may be used"):
        gr.path(gr.Problem(on_a_chain(lam)), 10**12)
    with pytest.raises(gr.errors.GraphError, match=r"a grid of 10,000,000 x 10,000,000 nodes would take"):
        gr.Graph.grid(10**7, 10**7)


@pytest.mark.parametrize("entangled", [True, False])
def test_an_order_that_takes_long_is_found_by_another_process(entangled, monkeypatch):
    asked, n = [], 9000
    monkeypatch.setattr(newton, "aside", lambda work, A: asked.append(work) or np.arange(A.shape[0]))
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, n, (2, 3 * n)) if entangled else (np.arange(n - 1), np.arange(1, n))
    A = sp.coo_array((np.ones(len(i)), (i, j)), shape=(n, n))
    newton.sparse_order(sp.csc_array(A + A.T + 100.0 * sp.eye_array(n)))
    assert asked == [newton._minimum_degree] * entangled
