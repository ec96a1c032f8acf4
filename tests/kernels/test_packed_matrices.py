"""Small symmetric matrices of which one triangle is kept: products, inverses and Gram matrices, compiled and not."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import graphreg as gr
from graphreg import fast as kernels
from graphreg.certificate import centred
from graphreg.certificate.proposing import shifted_duals as nodes
from graphreg.fast import compiler
from graphreg.network import fast
from graphreg.terms import Packed, triangles

WITH_NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")


@pytest.fixture(params=["arrays", "python", pytest.param("numba", marks=WITH_NUMBA)])
def way(request, monkeypatch):
    """By arrays, by kernels as they are written, or compiled."""
    monkeypatch.setattr(fast, "offered", lambda: None if request.param == "arrays" else kernels)
    if request.param != "numba":
        monkeypatch.setattr(compiler, "compiles", lambda: False)
    compiler.compiled.cache_clear()
    compiler.specialised.cache_clear()
    yield request.param
    compiler.compiled.cache_clear()
    compiler.specialised.cache_clear()


def stack(n, d, seed=0, samples=None):
    """Gram matrices (n, d, d), and the same packed."""
    X = np.random.default_rng(seed).standard_normal((n, 2 * d if samples is None else samples, d))
    dense = np.einsum("nij,nik->njk", X, X)
    return dense, Packed(triangles(dense).ravel(), d)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_products(d, way):
    dense, kept = stack(7, d)
    v = np.random.default_rng(1).standard_normal((7, d))
    np.testing.assert_array_equal(kept.dense(), dense)
    np.testing.assert_array_equal(kept.diagonal, np.einsum("ijj->ij", dense))
    np.testing.assert_allclose(nodes._times(kept, v), np.einsum("njk,nk->nj", dense, v), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_inverses(d, way):
    dense, kept = stack(7, d)
    shift = np.random.default_rng(2).uniform(0.0, 1.0, 7)
    shifted = dense + shift[:, None, None] * np.eye(d)
    spreads = nodes._spreads if way == "arrays" else kernels.packed_spreads
    found, spread = spreads(kept, shift)
    np.testing.assert_allclose(found.dense(), np.linalg.inv(shifted), rtol=1e-9, atol=1e-12)
    traces = np.trace(shifted, axis1=1, axis2=2) * np.trace(np.linalg.inv(shifted), axis1=1, axis2=2)
    assert spread == pytest.approx(traces, rel=1e-8)
    assert (spread >= np.linalg.cond(shifted) * (1 - 1e-8)).all()
    np.testing.assert_array_equal(nodes._packed_inverses(kept).dense(), spreads(kept, np.zeros(7))[0].dense())


def test_there_is_none_of_a_singular_matrix(way):
    _, kept = stack(5, 2)
    kept.rows[3] = [1.0, 2.0, 4.0]
    assert nodes._packed_inverses(kept) is None
    kept.rows[3] = [1.0, 2.0, -4.0]
    assert nodes._packed_inverses(kept) is None
    kept.rows[:] += [10.0, 0.0, 10.0]
    assert nodes._packed_inverses(kept) is not None


def test_more_than_fit_at_a_time(monkeypatch):
    monkeypatch.setattr("graphreg.terms.padding.CELLS", 20)
    dense, kept = stack(11, 3)
    v = np.random.default_rng(1).standard_normal((11, 3))
    np.testing.assert_allclose(kept.times(v), np.einsum("njk,nk->nj", dense, v), rtol=1e-12, atol=1e-12)
    assert [some.start for some in kept.at_a_time()] == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("ragged", [False, True])
def test_gram_matrices_of_samples(ragged):
    rng = np.random.default_rng(3)
    node = np.array([0, 1, 1, 2, 0, 2, 2, 2, 1]) if ragged else np.repeat(np.arange(3), 4)
    X, weights = rng.standard_normal((len(node), 2)), rng.uniform(0.5, 2.0, len(node))
    data = gr.NodeData.from_arrays(X, np.ones(len(node)), node, weights)
    problem = gr.Problem(3.0 * gr.SquaredLoss(data) + gr.TotalVariation(gr.Graph.chain(3), gr.L2()))
    (block,) = problem.form.samples
    grams = np.zeros((3, 2, 2))
    for batch, kept in zip(block.stacks, block.grams, strict=True):
        grams[batch.nodes] = kept.scaled(3.0).dense()
    np.testing.assert_allclose(grams, block.sums(block.scale), rtol=1e-14)


def test_moments_are_those_of_the_targets_of_the_moment():
    """A problem around a common model shares its designs with the one that it comes from, but not its targets."""
    rng = np.random.default_rng(4)
    X, node = np.column_stack([np.ones(12), rng.standard_normal(12)]), np.repeat(np.arange(3), 4)
    data = gr.NodeData.from_arrays(X, 100.0 + rng.standard_normal(12), node)
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(gr.Graph.chain(3), gr.L2())).form
    for each in (form, centred(form, np.array([100.0, 2.0]))):
        (block,) = each.samples
        expected = [
            (block.X * (block.scale * (block.y - block.offset))[:, None])[node == i].sum(axis=0) for i in range(3)
        ]
        np.testing.assert_allclose(block.moments, expected, atol=1e-12)
