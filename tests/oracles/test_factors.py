"""Factors by QDLDL and by SuperLU: the same solutions, and the same refusals."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import graphreg as gr
from graphreg.oracles import newton
from graphreg.oracles.newton import Factors, NewtonSystem, is_low

RNG = np.random.default_rng(0)


def pattern(low, H):
    H = sp.csc_array(sp.triu(H) if low else H)
    H.sort_indices()
    return Factors(H.indices, H.indptr, low), H.data


def matrix(seed=0, n=30):
    L = nx.laplacian_matrix(nx.gnm_random_graph(n, 2 * n, seed=seed)).astype(float)
    return sp.csc_array(sp.kron(L, np.eye(2) + 0.3) + 0.1 * sp.eye_array(2 * n))


class Watched:
    """Factors that tell in which thread they were made, and dropped."""

    def __init__(self, told):
        self.told, self.maker = told, threading.get_ident()

    def solve(self, right):
        return right

    def __del__(self):
        self.told.append(self.maker == threading.get_ident())


def test_factors_are_dropped_where_they_were_made(monkeypatch):
    """Scipy frees what SuperLU allocates in the thread of its making alone."""
    dropped, H = [], matrix()
    for module in (newton, scipy.sparse.linalg):
        monkeypatch.setattr(module, "splu", lambda *_, **__: Watched(dropped))
    for quick in (True, False):
        find = Factors(H.indices, H.indptr, low=False, quick=quick)
        for _ in range(3):  # each is kept until the next is there
            solve = find(H.data)
            assert np.array_equal(solve(H.data), H.data)
        del solve
        until = time.monotonic() + 5.0
        while len(dropped) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        assert dropped == 3 * [True]
        dropped.clear()
    assert NewtonSystem(problem(nx.complete_graph(40), 3).form).quick


@pytest.mark.parametrize("low", [True, False])
def test_solutions_one_matrix_after_another(low):
    H, b = matrix(), RNG.standard_normal(60)
    found, data = pattern(low, H)
    for scale in (1.0, 3.0, 1e-9, 1e9):
        x = found(scale * data)(b)
        assert np.abs(scale * (H @ x) - b).max() < 1e-11


@pytest.mark.parametrize("low", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_singular_matrices_are_refused_and_others_follow(low, first):
    H, b = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([3.0, 0.0])
    found, data = pattern(low, sp.csc_array(H))
    if not first:
        found(data)
    for singular in (np.zeros_like(data), np.ones_like(data)):
        with pytest.raises(ArithmeticError, match="singular"):
            found(singular)
    assert np.allclose(found(data)(b), [2.0, -1.0])


def problem(graph, d, loss=gr.SquaredLoss):
    rng = np.random.default_rng(1)
    n = graph.number_of_nodes()
    X, y = rng.standard_normal((3 * n, d)), rng.standard_normal(3 * n)
    data = gr.NodeData.from_arrays(X, y if loss is gr.SquaredLoss else (y > 0).astype(int), np.arange(3 * n) % n)
    ridge = 1e-2 * gr.NodePenalty(gr.SquaredL2())
    return gr.Problem(loss(data) + 0.3 * gr.TotalVariation(graph, gr.L2()) + ridge)


GRAPHS = {"chain": nx.path_graph(60), "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 7))}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss])
def test_the_interior_point_is_the_same_with_either(monkeypatch, graph, loss):
    model = problem(GRAPHS[graph], 3, loss)
    assert NewtonSystem(model.form).low
    one = model.solve(gr.InteriorPoint(), gap=1e-9)
    monkeypatch.setattr(newton, "is_low", lambda *_: False)
    assert not NewtonSystem(model.form).low
    other = model.solve(gr.InteriorPoint(), gap=1e-9)
    assert one.status == other.status == "certified"
    assert one.rounds == other.rounds
    assert np.allclose(one.coef, other.coef, rtol=0.0, atol=1e-7)


def test_low_are_chains_and_small_maps_not_dense_graphs():
    assert is_low(12.0, 120.0 * 12.0)
    assert not is_low(12.0, 121.0 * 12.0)
    assert not is_low(1e9, newton.QUICK * 1.01)
    assert NewtonSystem(problem(nx.path_graph(200), 9).form).low
    assert not NewtonSystem(problem(nx.complete_graph(40), 9).form).low


def test_low_bands_need_no_order(monkeypatch):
    monkeypatch.setattr(newton, "sparse_order", None)
    assert NewtonSystem(problem(nx.path_graph(200), 9).form).low
    with pytest.raises(TypeError):
        NewtonSystem(problem(nx.complete_graph(40), 9).form)


def test_an_interpreter_ends_well_with_factors_that_are_kept():
    text = f"""
import numpy as np, scipy.sparse as sp
from {Factors.__module__} import Factors
H = sp.eye_array(300, format="csc")
kept = [Factors(H.indices, H.indptr, low=False, quick=quick)(H.data) for quick in (True, False)]
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
