"""What a map says of its rows is what its matrix says; rows that are no edges have nothing that only edges have."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from graphreg.errors import TermError
from graphreg.terms import Design, Differences, EdgeBlock, Matrix, Selection, Strength
from graphreg.terms.penalties import L1
from graphreg.terms.records import IN_GRAPH

N, D = 7, 3
TAIL, HEAD = np.array([0, 2, 4, 1, 0]), np.array([1, 3, 5, 6, 1])
SOME = np.array([2, 0])


def sparse(rows, columns, density=0.2, seed=0):
    K = sp.random_array((rows, columns), density=density, rng=np.random.default_rng(seed), format="csr")
    K.data = np.random.default_rng(seed).standard_normal(len(K.data))
    return sp.csr_array(K)


def second_differences():
    return sp.csr_array(np.diff(np.eye(N), 2, axis=0))


MAPS = {
    "edges": Differences(TAIL, HEAD, None, N),
    "edges on some coordinates": Differences(TAIL, HEAD, SOME, N),
    "nodes": Selection(np.array([3, 1, 6]), None, N),
    "a node twice": Selection(np.array([3, 1, 3]), None, N),
    "nodes on some coordinates": Selection(np.array([3, 1, 6]), SOME, N),
    "any matrix": Matrix(sparse(8, N * D), 2, N),
    "second differences": Matrix(sp.csr_array(sp.kron(second_differences(), sp.eye_array(D))), D, N),
    "samples": Design(np.array([0, 0, 5, 2]), np.random.default_rng(1).standard_normal((4, D)), None, N),
    "samples of classes": Design(np.array([0, 3, 3]), np.random.default_rng(2).standard_normal((3, 1)), D, N),
}


@pytest.fixture(params=MAPS)
def the_map(request):
    return MAPS[request.param]


def dense(the_map):
    return the_map.flat(D).toarray()


def per_row(values, the_map):
    return values.reshape(the_map.count, -1)


def test_products_are_those_of_the_matrix(the_map):
    rng = np.random.default_rng(3)
    w, K = rng.standard_normal((N, D)), dense(the_map)
    z = the_map.apply(w)
    u = rng.standard_normal(z.shape)
    assert z.size == the_map.count * the_map.width(D) == len(K)
    np.testing.assert_allclose(z.ravel(), K @ w.ravel(), atol=1e-14)
    np.testing.assert_array_equal(the_map.across(the_map.chosen(w), slice(1, 3)), z[1:3])
    out = np.ones((N, D))
    the_map.add_adjoint(u, out)
    np.testing.assert_allclose(out.ravel() - 1.0, K.T @ u.ravel(), atol=1e-14)


def test_lengths_and_degrees_are_sums_of_entries(the_map):
    size = np.abs(dense(the_map))
    lengths = per_row(size.sum(axis=1), the_map).max(axis=1)
    np.testing.assert_allclose(np.broadcast_to(the_map.lengths, lengths.shape), lengths)
    np.testing.assert_allclose(the_map.degree, size.sum(axis=0).reshape(N, D).max(axis=1))


def test_the_nodes_that_rows_touch(the_map):
    seen = (dense(the_map) != 0).reshape(the_map.count, -1, N, D).any(axis=(1, 3))
    np.testing.assert_array_equal(the_map.degree > 0, seen.any(axis=0))
    assert seen[np.arange(the_map.count), the_map.owner].all()
    tail, head = the_map.pairs
    met = {
        frozenset(pair)
        for row in seen
        for i in np.flatnonzero(row)
        for pair in [(i, j) for j in np.flatnonzero(row[:i])]
    }
    assert {frozenset(pair) for pair in zip(tail.tolist(), head.tolist(), strict=True)} == met
    used = (dense(the_map).reshape(-1, D) != 0).any(axis=0)
    assert set(np.flatnonzero(used)) <= set(the_map.columns(D).tolist())
    assert not the_map.level or not np.abs(dense(the_map).reshape(-1, N, D).sum(axis=1)).any()


def test_parts_and_other_places(the_map):
    K = dense(the_map).reshape(the_map.count, -1, N, D)
    rows = np.array([2, 0])
    np.testing.assert_array_equal(dense(the_map.part(rows)), K[rows].reshape(-1, N * D))
    np.testing.assert_array_equal(dense(the_map.part(np.arange(the_map.count) == 1)), K[1].reshape(-1, N * D))
    place = np.array([8, 3, 0, 4, 7, 1, 5])
    wide = np.zeros((*K.shape[:2], 9, D))
    wide[:, :, place] = K
    np.testing.assert_array_equal(dense(the_map.moved(place, 9)), wide.reshape(-1, 9 * D))
    assert the_map.over(9).apply(np.ones((9, D))).shape == the_map.apply(np.ones((N, D))).shape


def test_steps_of_pock_and_chambolle_are_those_of_edges():
    """sigma_e = 1/(s lengths), tau_i = s/degree: the product with K is at most 1, on any rows."""
    for the_map in MAPS.values():
        K = dense(the_map)
        sigma = np.repeat(1.0 / np.broadcast_to(the_map.lengths, the_map.count), len(K) // the_map.count)
        tau = np.repeat(1.0 / np.maximum(the_map.degree, 1e-6), D)
        assert np.linalg.norm(np.sqrt(sigma)[:, None] * K * np.sqrt(tau), 2) <= 1.0 + 1e-12


ONLY_EDGES = (
    "tail",
    "head",
    "ends",
    "nodes",
    "features",
    "coordinates",
    "columns",
    "ground",
    "in_line",
    "K",
    "transposed",
)


@pytest.mark.parametrize("name", ONLY_EDGES)
def test_rows_that_are_no_edges_lack_what_only_edges_have(name):
    def block(of):
        return EdgeBlock(L1(), Strength(), of, np.ones(of.count), None, IN_GRAPH, "L1((K w)_e)")

    getattr(block(MAPS["edges"]), name)
    with pytest.raises(TermError, match=rf"L1\(\(K w\)_e\) has rows that are no edges.*\({name}|tail\)"):
        getattr(block(MAPS["any matrix"]), name)


def test_edges_in_line():
    path = np.array(list(pairwise(range(N))))
    assert Differences(path[:, 0], path[:, 1], None, N).in_line
    assert not Differences(path[:-1, 0], path[:-1, 1], None, N).in_line
    assert not any(MAPS[name].in_line for name in ("edges", "nodes", "any matrix"))


def test_a_row_without_ends_is_spoken_for_by_the_first_node():
    K = sp.csr_array(([1.0, -1.0, 1.0], ([1, 1, 3], [1, 2, 2])), shape=(5, 3))
    assert Matrix(K, 1, 3).owner.tolist() == [0, 1, 0, 2, 0]
