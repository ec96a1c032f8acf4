"""Products with the design are the same by its sparse matrix and by its stacks, of which large ones take the latter."""

import numpy as np
import pytest
import scipy.sparse as sp

import graphreg as gr
from graphreg.datasets.random_problems import random_problem
from graphreg.terms import design, maps
from graphreg.terms.padding import batches, product

COUNTS = {"as many each": [4] * 6, "ragged": [1, 7, 3, 12, 2, 5], "one node": [9], "one each": [1] * 8}


def block_of(rng, counts, loss, order):
    node = np.repeat(np.arange(len(counts)), counts)
    if order == "mixed":
        node = rng.permutation(node)
    elif order == "some nodes":
        node = node * 2 + 1
    X = rng.standard_normal((len(node), 3))
    y = np.arange(len(node)) % 3 if loss is gr.MultinomialLoss else rng.standard_normal(len(node))
    data = gr.NodeData.from_arrays(X, y, node)
    graph = gr.Graph.chain(2 * len(counts) + 1)
    return gr.Problem(loss(data) + gr.TotalVariation(graph, gr.L2())).form.samples[0]


@pytest.mark.parametrize("order", ["in order", "mixed", "some nodes"])
@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.MultinomialLoss])
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_products_by_stacks_are_those_of_the_matrix(counts, loss, order, monkeypatch):
    rng = np.random.default_rng(4)
    block = block_of(rng, counts, loss, order)
    shape = block.n, 3 * block.width
    w, a = rng.standard_normal(shape), rng.standard_normal(block.offset.shape)
    dense = np.zeros((block.offset.size, w.size))
    for r, (i, x) in enumerate(zip(block.node, block.X, strict=True)):  # A, entry by entry
        for k in range(block.width):
            dense[r * block.width + k, i * w.shape[1] + np.arange(3) * block.width + k] = x
    np.testing.assert_array_equal(block.A.toarray(), dense)
    assert block.A.indices.dtype == block.A.indptr.dtype == np.int32
    found, infinite = [], np.where(np.arange(len(a)) == 0, np.inf, a.T).T
    for large in (1 << 20, 0):
        monkeypatch.setattr(design, "LARGE", large)
        block = block.over(block.n)
        found.append((block.apply(w), block.adjoint(a, shape)))
        np.testing.assert_allclose(found[-1][0].ravel(), dense @ w.ravel(), rtol=0, atol=1e-13)
        np.testing.assert_allclose(found[-1][1].ravel(), dense.T @ a.ravel(), rtol=0, atol=1e-13)
        assert all(product.flags.writeable for product in found[-1])
        found[-1] += (block.adjoint(infinite, shape),)  # stays at its node, and what it is
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=0, atol=1e-13)


def test_a_large_design_makes_no_matrix(monkeypatch):
    block = block_of(np.random.default_rng(0), COUNTS["as many each"], gr.SquaredLoss, "in order")
    monkeypatch.setattr(design, "LARGE", 0)
    monkeypatch.setattr(type(block.map), "K", property(lambda _: pytest.fail("a matrix was made")))
    block.adjoint(block.apply(np.ones((block.n, 3))), (block.n, 3))


@pytest.mark.parametrize("order", ["in order", "mixed"])
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_every_sample_stands_in_the_stacks_once(counts, order):
    rng = np.random.default_rng(1)
    node = np.repeat(3 * np.arange(len(counts)) + 2, counts)
    node = rng.permutation(node) if order == "mixed" else node
    X, values = rng.standard_normal((len(node), 2)), rng.standard_normal((len(node), 2))
    back, seen = np.full((len(node), 2), np.nan), np.zeros(len(node), dtype=int)
    for batch in batches(node, X):
        there = batch.mask == 1.0
        assert set(np.unique(batch.mask)) <= {0.0, 1.0}
        np.testing.assert_array_equal(
            np.broadcast_to(batch.nodes[:, None], there.shape)[there], node[batch.rows[there]]
        )
        np.testing.assert_array_equal(batch.X, X[batch.rows] * batch.mask[:, :, None])
        np.testing.assert_array_equal(batch.pad(values), values[batch.rows])
        seen += np.bincount(batch.rows[there], minlength=len(node))
        batch.put(batch.pad(values), back)
    assert (seen == 1).all()
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize("seed", range(40))
def test_large_blocks_are_read_in_streams_to_the_same_values(seed, monkeypatch):
    form = gr.Problem(random_problem(seed).model).form.frozen()
    rng = np.random.default_rng(seed)
    w = 0.1 * rng.standard_normal(form.shape)
    flows = [
        edge.clip(0.1 * rng.standard_normal(u.shape)) for edge, u in zip(form.edges, form.nothing().flows, strict=True)
    ]

    def all_values():
        out = [
            f
            for edge, u in zip(form.edges, flows, strict=True)
            for f in (edge.conjugates(u), edge.duals(u), edge.clip(2 * u))
        ]
        out += [part.values(w) for part in (*form.samples, *form.edges)]
        prices = [block.prices(w) for block in form.samples]
        return out + [
            f for block, a in zip(form.samples, prices, strict=True) for f in (block.conjugates(a), block.duals(a))
        ]

    with np.errstate(all="ignore"):
        whole = all_values()
        monkeypatch.setattr(maps, "STREAM", 5)
        for one, two in zip(whole, all_values(), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", [(7, 5), (0, 5), (7, 0)])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_sparse_products_have_the_bits_of_scipy(shape, columns):
    rng = np.random.default_rng(0)
    A = sp.random_array(shape, density=0.5, format="csr", rng=rng)
    x, y = rng.standard_normal((shape[1], *columns)), rng.standard_normal((*columns[::-1], shape[0])).T
    np.testing.assert_array_equal(product(A, x), A @ x)
    np.testing.assert_array_equal(product(A, y, transposed=True), A.T @ y)
