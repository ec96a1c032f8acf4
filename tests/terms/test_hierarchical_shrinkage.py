"""Means, regressions and James-Stein: how mixed models shrink, side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hierarchical_cases import NAMES, TREES, drawn, means, nested

import graphreg as gr
from graphreg.inference import compare_estimators, hierarchical, james_stein


def test_the_weights_of_a_12():
    """Own (n + 1) / 2n, the others (n - 1) / 2n, whose mean has the variance 2 / (n - 1)."""
    n, d = 6, 5
    y, _, data = means(n, d, centre=0.5)
    found, fit = james_stein(data, (1.0, 1.0)), hierarchical(data, components=(1.0, 1.0))
    others = (y.sum(axis=0) - y) / (n - 1)
    np.testing.assert_allclose(found.marginal, (n + 1) / (2 * n) * y + (n - 1) / (2 * n) * others, rtol=1e-12)
    np.testing.assert_allclose(fit.coef, found.marginal, rtol=1e-12)
    C = np.maximum(0, 1 - (d - 2) * 2 / (n - 1) / (others**2).sum(axis=1))
    np.testing.assert_allclose(found.shrinkage, C, rtol=1e-12)
    assert 0 < C.min() < C.max() < 1
    expected = (n + 1) / (2 * n) * y + (n - 1) / (2 * n) * C[:, None] * others
    np.testing.assert_allclose(found.coef, expected, rtol=1e-12)


@pytest.mark.parametrize("centre", [0.0, 0.7])
def test_the_james_stein_variant_has_the_smaller_error(centre):
    """Of 300 draws with n = 3, d = 5, by more than four standard errors of the difference."""
    gains = []
    for seed in range(300):
        _, truth, data = means(3, 5, seed, centre)
        found = james_stein(data, (1.0, 1.0))
        gains.append((((found.marginal - truth) ** 2).sum(axis=1) - ((found.coef - truth) ** 2).sum(axis=1)).mean())
    assert np.mean(gains) > 4 * np.std(gains) / np.sqrt(len(gains))


def test_shrinkage_of_regressions_by_the_formula():
    frame, node, X, y, p, _ = drawn(*TREES["nodes under a root"])
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=list(NAMES), weights="p")
    found, i = james_stein(data, (0.7, 0.05)), 1
    dense = [X[node == j].T @ (p[node == j, None] * X[node == j]) / 0.7 for j in range(5)]
    moment = [X[node == j].T @ (p * y)[node == j] / 0.7 for j in range(5)]
    through = [np.linalg.inv(np.eye(3) + 0.05 * A) for A in dense]
    others = sum(A @ T for j, (A, T) in enumerate(zip(dense, through, strict=True)) if j != i)
    theta = np.linalg.solve(
        others, sum(T.T @ b for j, (b, T) in enumerate(zip(moment, through, strict=True)) if j != i)
    )
    S = np.linalg.inv(others)
    P = np.linalg.inv(0.05 * np.eye(3) + S)
    T = np.linalg.solve(dense[i] + P, P)
    Q = T @ S @ T.T
    q = np.trace(Q) / np.linalg.eigvalsh(Q)[-1]
    C = 1 - max(q - 2, 0) / (theta @ others @ theta)
    assert found.shrinkage[i] == pytest.approx(C, rel=1e-8)
    np.testing.assert_allclose(found.coef[i], np.linalg.solve(dense[i] + P, moment[i] + C * P @ theta), rtol=1e-8)


def test_estimators_side_by_side():
    counts, parents, values = TREES["clusters"]
    frame, node, X, y, p, truth = drawn(counts, parents, values)
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=list(NAMES), weights="p")
    labels = [f"n{i}" for i in range(6)]
    clusters = {label: nodes[::-1] for label, nodes in reversed(nested(parents, counts).items())}  # another order
    found = compare_estimators(data, clusters, values, pd.DataFrame(truth, index=labels))
    assert list(found.coef) == ["local", "single model", "single cluster", "hierarchical", "James-Stein"]
    root = np.sqrt(p)
    for i, label in enumerate(labels):
        own = node == i
        least = np.linalg.pinv(root[own, None] * X[own]) @ (root * y)[own]  # of least norm where m < d
        np.testing.assert_allclose(found.coef["local"].loc[label], least, rtol=1e-7)
    pooled = np.linalg.lstsq(root[:, None] * X, root * y)[0]
    np.testing.assert_allclose(found.coef["single model"], np.tile(pooled, (6, 1)), rtol=1e-9)
    fit = hierarchical(data, nested(parents, counts), values)
    np.testing.assert_allclose(found.coef["hierarchical"], fit.coef, rtol=1e-9)
    flat = hierarchical(data, components=(1.5, 2.4))
    np.testing.assert_allclose(found.coef["single cluster"], flat.coef, rtol=1e-9)
    np.testing.assert_allclose(found.errors["hierarchical"], np.linalg.norm(fit.coef - truth, axis=1), rtol=1e-9)
    table = found.table()
    assert table.loc["local", "mean error"] == pytest.approx(found.errors["local"].mean())
    assert "under one root" in str(found)
    plain = compare_estimators(data)
    assert plain.errors is None
    assert plain.table().loc["single cluster", "mean distance from single cluster"] == 0.0
