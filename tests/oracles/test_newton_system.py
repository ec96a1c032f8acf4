"""Newton systems: sums of B'DB beside dense ones that are written out from the graph and the features."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from core_cases import INTERIOR
from factories import thinned
from scipy.sparse.csgraph import reverse_cuthill_mckee

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.oracles.newton import NewtonSystem, work
from graphreg.terms.penalties.base import AbstractSmoothPenalty

RNG = np.random.default_rng(0)
N, D = 7, 3
NODES = list(range(N))


def graph(seed=0):
    out = nx.gnm_random_graph(N, 10, seed=seed)
    for _, _, attributes in out.edges(data=True):
        attributes["weight"] = float(RNG.uniform(0.1, 2.0))
    return out


def squared(loss=gr.SquaredLoss, classes=None, **more):
    X, node = RNG.standard_normal((20, D)), RNG.integers(0, N - 1, 20)  # the last node has no data
    y = RNG.standard_normal(20) if classes is None else np.arange(20) % classes
    return loss(gr.NodeData.from_arrays(X, y, node), **more)


def means():
    return gr.MeanLoss(gr.NodeData.from_arrays(None, RNG.standard_normal((12, 2)), np.arange(12) % (N - 1)))


Q = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
CENTERS = {i: RNG.standard_normal(D) for i in NODES}
MODELS = {
    "total variation": lambda: squared() + gr.TotalVariation(graph(), gr.L2()),
    "L1": lambda: squared() + gr.TotalVariation(graph(), gr.L1()),
    "two graphs": lambda: squared() + gr.TotalVariation(graph(1), gr.L2()) + 2 * gr.TotalVariation(graph(2), gr.L1()),
    "Quadratic": lambda: squared() + gr.TotalVariation(graph(), gr.Quadratic(Q)),
    "HuberNorm": lambda: squared(gr.HuberLoss) + gr.TotalVariation(graph(), gr.HuberNorm(0.3)),
    "SquaredL2": lambda: squared(gr.LogisticLoss, 2) + gr.TotalVariation(graph(), gr.SquaredL2()),
    "centers": lambda: squared() + gr.NodePenalty(gr.L2(), center=CENTERS) + gr.TotalVariation(graph(), gr.L1()),
    "ground": lambda: squared() + gr.NodePenalty(gr.SquaredL2()) + gr.TotalVariation(graph(), gr.HuberNorm(1.0)),
    "hierarchy": lambda: squared() + gr.Hierarchy({i: f"cluster {i % 2}" for i in NODES}, (1.0, 2.0), gr.L2()),
    "classes": lambda: squared(gr.MultinomialLoss, 3) + gr.TotalVariation(graph(), gr.L2()),
    "means": lambda: means() + gr.TotalVariation(graph(), gr.L2()),
    "poisson": lambda: squared(gr.PoissonLoss, 4) + gr.TotalVariation(graph(), gr.L2()),
    "features": lambda: squared() + gr.TotalVariation(graph(), gr.L2(), features=["x1", "x2"]),
}


def spd(rng, m, k):
    R = rng.standard_normal((m, k, k))
    return R @ R.transpose(0, 2, 1)


def written_out(form, samples, edges):
    """The sum by loops over samples and edges, for one matrix (over all their coordinates) each; (n d, n d)."""
    n, d = form.shape
    out = np.zeros((n * d, n * d))
    for block, matrices in zip(form.samples, samples, strict=True):
        X = block.A.toarray().reshape(len(block.node), -1, n * d)
        for B, one in zip(X, matrices, strict=True):
            out += B.T @ one @ B
    for edge, matrices in zip(form.edges, edges, strict=True):
        columns = np.arange(d) if edge.features is None else edge.features
        for tail, head, one in zip(edge.tail, edge.head, matrices, strict=True):
            B = np.zeros((len(columns), n, d))
            B[np.arange(len(columns)), tail, columns] = 1.0
            if head >= 0:
                B[np.arange(len(columns)), head, columns] = -1.0
            B = B.reshape(len(columns), -1)
            out += B.T @ one @ B
    return out


def drawn(form, system, rng):
    """Blocks of the system at random, and the same as one matrix per sample or edge."""
    blocks, full = [], []
    widths = [1 if block.offset.ndim == 1 else block.offset.shape[1] for block in form.samples]
    widths += [form.width(edge) for edge in form.edges]
    for rows, width in zip((*system.samples, *system.edges), widths, strict=True):
        each = spd(rng, rows.m, rows.k)
        blocks.append(each)
        if rows.k == width:
            full.append(each)
        else:  # one number per coordinate
            assert rows.k == 1
            full.append(each.reshape(-1, width)[:, :, None] * np.eye(width))
    return blocks, full[: len(form.samples)], full[len(form.samples) :]


def check(form, rng):
    system = NewtonSystem(form)
    blocks, samples, edges = drawn(form, system, rng)
    H = written_out(form, samples, edges)
    size = H.shape[0]
    x = rng.standard_normal(form.shape)
    right = system.vector((H @ x.ravel()).reshape(form.shape))
    solved = system.matrix(system.factorised(blocks)(right))
    left = H @ solved.ravel() - H @ x.ravel()  # where H is singular, solutions are many
    assert np.abs(left).max() <= 1e-9 * np.abs(H).max() * max(np.abs(x).max(), np.abs(solved).max())
    if np.linalg.matrix_rank(H) == size:
        assert np.abs(solved - x).max() <= 1e-14 * np.linalg.cond(H) * size * np.abs(x).max()
    for rows, kind in zip((*system.samples, *system.edges), (*form.samples, *form.edges), strict=True):
        u = rng.standard_normal((rows.k, rows.m))
        z = rng.standard_normal(size)
        assert np.vdot(rows.apply(z), u) == pytest.approx(np.vdot(z, rows.adjoint(u)), rel=1e-9, abs=1e-9)
        w = system.matrix(z)
        assert np.allclose(rows.apply(z).T.ravel(), kind.apply(w).ravel())


@pytest.mark.parametrize("model", MODELS)
def test_the_sum_is_the_dense_one(model):
    check(gr.Problem(MODELS[model]()).form, np.random.default_rng(1))


@pytest.mark.parametrize("seed", thinned(INTERIOR, every=3))
def test_of_random_problems(seed):
    check(random_problem(seed).problem.form, np.random.default_rng(seed))


def test_diagonal_blocks_are_split():
    form = gr.Problem(squared() + gr.TotalVariation(graph(), gr.L1()) + gr.TotalVariation(graph(), gr.SquaredL2())).form
    assert {rows.k for rows in NewtonSystem(form).edges} == {1}
    form = gr.Problem(squared() + gr.TotalVariation(graph(), gr.L2()) + gr.TotalVariation(graph(), gr.HuberNorm())).form
    assert {rows.k for rows in NewtonSystem(form).edges} == {D}
    assert all(isinstance(edge.penalty, AbstractSmoothPenalty | gr.L2) for edge in form.edges)


def test_vector_and_matrix_undo_each_other():
    system = NewtonSystem(gr.Problem(MODELS["hierarchy"]()).form)
    w = RNG.standard_normal(system.shape)
    assert (system.matrix(system.vector(w)) == w).all()
    assert sorted(system.order) == list(range(w.size))
    x = RNG.standard_normal(w.size)
    assert (system.vector(system.matrix(x)) == x).all()


def test_a_singular_or_infinite_matrix_is_refused():
    form = gr.Problem(MODELS["total variation"]()).form
    system = NewtonSystem(form)
    blocks, _, _ = drawn(form, system, np.random.default_rng(2))
    for bad in (np.nan, np.inf):
        broken = [each.copy() for each in blocks]
        broken[-1][0, 0, 0] = bad
        with pytest.raises(ArithmeticError, match="not finite"):
            system.factorised(broken)
    pair = gr.Problem(
        gr.MeanLoss(gr.NodeData.from_arrays(None, [1.0, 2.0], [0, 1])) + gr.TotalVariation(nx.path_graph(2), gr.L2())
    ).form
    system = NewtonSystem(pair)
    singular = [np.full((2, 1, 1), -2.0), np.full((1, 1, 1), 1.0)]  # [[-1, -1], [-1, -1]], where no ridge is given
    with pytest.raises(ArithmeticError, match="singular"):
        system.factorised(singular)


def test_an_unknown_that_nothing_ties_down_stays():
    isolated = nx.Graph([(0, 1)])
    isolated.add_node(2)
    data = gr.NodeData.from_arrays(np.eye(2), [1.0, 2.0], [0, 1])
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(isolated, gr.L2())).form
    system = NewtonSystem(form)
    x = system.factorised([np.ones((2, 1, 1)), np.eye(2)[None]])(system.vector(np.array([[1.0, 2], [3, 4], [0, 0]])))
    assert (system.matrix(x)[2] == 0.0).all()
    assert np.isfinite(x).all()


def test_a_huge_edge_hides_no_weak_loss():
    """Not that of a node elsewhere; and of two fused nodes, whose diagonals hold both, not more than rounding must."""
    pair = nx.Graph([(0, 1)])
    pair.add_node(2)
    data = gr.NodeData.from_arrays(None, [1.0, 2.0, 3.0], [0, 1, 2])
    system = NewtonSystem(gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(pair, gr.L2())).form)
    x = system.factorised([np.ones((3, 1, 1)), np.full((1, 1, 1), 1e13)])(np.ones(3))
    w = system.matrix(x)[:, 0]
    assert w[2] == pytest.approx(1.0, rel=1e-14)
    assert w[:2] == pytest.approx([1.0, 1.0], rel=0.1)


def test_work_bounds_what_factors_cost():
    """The entries of the factors in the order of Cuthill and McKee lie within the band that is counted."""
    rng = np.random.default_rng(0)
    for shape in (nx.path_graph(30), nx.grid_2d_graph(6, 5), nx.complete_graph(12), nx.star_graph(9)):
        network = nx.convert_node_labels_to_integers(shape)
        node = np.repeat(list(network), 3)
        data = gr.NodeData.from_arrays(rng.standard_normal((len(node), 2)), rng.standard_normal(len(node)), node)
        bound = work(gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(network, gr.L2())).form)
        A = nx.laplacian_matrix(network).toarray() + np.eye(len(network))
        order = reverse_cuthill_mckee(sp.csr_matrix(A), symmetric_mode=True)
        L = np.linalg.cholesky(A[np.ix_(order, order)])
        assert 0.0 < float((((np.abs(L) > 1e-14).sum(axis=1) - 1.0) ** 2).sum()) <= bound / 2**3


def test_work_of_a_chain_and_of_all_pairs():
    data = gr.NodeData.from_arrays(np.ones((12, 1)), np.ones(12), range(12))
    chain, pairs = (
        work(gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(network, gr.L2())).form)
        for network in (nx.path_graph(12), nx.complete_graph(12))
    )
    assert chain == 11.0
    assert pairs == sum(k**2 for k in range(12))


def exactly(A, right):
    """The solution of A x = right, in rational numbers."""
    rows = [[*map(Fraction, row), Fraction(b)] for row, b in zip(A, right, strict=True)]
    for k in range(len(rows)):
        pivot = max(range(k, len(rows)), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(len(rows)):
            if i != k and rows[i][k]:
                by = rows[i][k] / rows[k][k]
                rows[i] = [a - by * b for a, b in zip(rows[i], rows[k], strict=True)]
    return np.array([float(row[-1] / row[k]) for k, row in enumerate(rows)])


def rational(form, D):
    """A = sum of B'DB as rational numbers."""
    A = [[Fraction(0)] * form.shape[0] * form.shape[1] for _ in range(form.shape[0] * form.shape[1])]
    dense = [block.A.toarray() for block in form.samples] + [edge.flat(form.d).toarray() for edge in form.edges]
    for B, each in zip(dense, D, strict=True):
        k = each.shape[1]
        for e, one in enumerate(each):
            for a, b in np.ndindex(k, k):
                for i in np.flatnonzero(B[e * k + a]):
                    for j in np.flatnonzero(B[e * k + b]):
                        A[i][j] += Fraction(B[e * k + a, i]) * Fraction(one[a, b]) * Fraction(B[e * k + b, j])
    return A


def beside_heavy_edges(flat):
    """Two components, in the first of which edges bend 1e21 times as much as losses do."""
    rng = np.random.default_rng(3)
    two = nx.disjoint_union(nx.cycle_graph(5), nx.path_graph(3))
    node = np.repeat(np.arange(8), 3)
    X = rng.standard_normal((24, 2)) * np.where(node < 5, 1e-9, 1.0)[:, None] ** [1, 0] * [1.0, 1e6]
    form = gr.Problem(
        gr.SquaredLoss(gr.NodeData.from_arrays(X, node * 0.1, node)) + gr.TotalVariation(two, gr.L2())
    ).form
    system = NewtonSystem(form)
    weight = np.where(np.arange(24) % 3 == 0, 1e7, 1.0) if flat else rng.uniform(0.5, 2.0, 24)
    D = [weight[:, None, None], 1e6 * spd(rng, len(form.edges[0].tail), 2)]
    return form, system, D, rng.standard_normal((8, 2)) * [1e-9, 1e6]


@pytest.mark.parametrize("flat", [False, True])  # whether a node has one sample that weighs more than all others
def test_moves_of_all_nodes_together_keep_their_digits_beside_edges_that_do_not_feel_them(flat):
    form, system, D, right = beside_heavy_edges(flat)
    x = system.matrix(system.factorised(D)(system.vector(right)))
    exact = exactly(rational(form, D), right.ravel()).reshape(8, 2)
    for some in (slice(5), slice(5, 8)):
        assert (np.abs(x - exact)[some].max(axis=0) <= 1e-5 * np.abs(exact[some]).max(axis=0)).all()


def test_factors_of_which_nothing_is_left_are_refused_there_too(monkeypatch):
    _, system, D, _ = beside_heavy_edges(flat=False)
    monkeypatch.setattr(system, "_factors", lambda data: lambda right: np.nan * right)
    with pytest.raises(ArithmeticError, match="singular"):
        system.factorised(D)
