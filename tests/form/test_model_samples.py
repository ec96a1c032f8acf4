"""Samples in a model: scales, weights, offsets, several targets, several families."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from factories import thinned
from model_cases import CHAIN, NODES, equal, regression, ridge_fit, samples, solve

import graphreg as gr

# ---- scales, weights, offsets ----------------------------------------------------------------------------------------
RAGGED = {"a": 2, "b": 6, "c": 3, "d": 4}


def ragged(rng):
    return {label: (rng.normal(size=(m, 2)), rng.normal(size=m)) for label, m in RAGGED.items()}


@pytest.mark.parametrize(
    ("scale", "factor"),
    [
        ("mean", {label: 1 / m for label, m in RAGGED.items()}),
        ("sum", dict.fromkeys(RAGGED, 1.0)),
        (0.3, dict.fromkeys(RAGGED, 0.3)),
        ({"d": 4.0, "a": 1.0, "c": 0.5, "b": 2.0}, {"a": 1.0, "b": 2.0, "c": 0.5, "d": 4.0}),
    ],
    ids=["mean", "sum", "number", "mapping"],
)
def test_scales(rng, scale, factor):
    data = ragged(rng)
    loss = gr.SquaredLoss(gr.NodeData.from_dict(data), scale=scale)
    solution = solve(loss + 0.5 * gr.NodePenalty(gr.SquaredL2()))
    fits = np.array([ridge_fit(X, y, factor[label], 0.5) for label, (X, y) in data.items()])
    np.testing.assert_allclose(solution.coef, fits, atol=1e-4)
    value = sum(
        factor[label] * ((X @ w - y) ** 2).sum() / 2 + 0.25 * (w**2).sum()
        for w, (label, (X, y)) in zip(fits, data.items(), strict=True)
    )
    assert solution.objective == pytest.approx(value, rel=1e-7)


def by_rows(data, repeat=None, **more):
    """The samples of a dict, stacked; each repeated."""
    X, y = (np.concatenate(part) for part in zip(*data.values(), strict=True))
    node = np.repeat(list(data), [len(y) for _, y in data.values()])
    repeat = np.ones(len(y), dtype=int) if repeat is None else repeat
    return gr.NodeData.from_arrays(X.repeat(repeat, axis=0), y.repeat(repeat), node.repeat(repeat), **more)


@pytest.mark.parametrize(
    ("loss", "scale"),
    thinned(
        [gr.SquaredLoss, gr.HuberLoss, gr.LogisticLoss],
        ["mean", "sum", 0.3, {"a": 0.5, "b": 0.1, "c": 0.3, "d": 0.2}],
        every=2,
    ),
    ids=str,
)
def test_sample_weights_are_repeated_rows(rng, loss, scale):
    data = ragged(rng)
    if loss is gr.LogisticLoss:
        data = {label: (X, y > 0) for label, (X, y) in data.items()}
    times = rng.integers(1, 4, size=sum(RAGGED.values()))
    penalty = 0.2 * gr.TotalVariation(CHAIN, gr.L2()) + 0.1 * gr.NodePenalty(gr.SquaredL2())
    weighted, repeated = loss(by_rows(data, weights=times), scale=scale), loss(by_rows(data, times), scale=scale)
    equal(weighted + penalty, repeated + penalty, atol=1e-3)
    assert solve(loss(by_rows(data), scale=scale) + penalty).objective != pytest.approx(
        solve(weighted + penalty).objective
    )


def test_offsets_are_taken_from_the_target(rng):
    data, penalty = ragged(rng), 0.2 * gr.TotalVariation(CHAIN, gr.L2())
    offset = rng.normal(size=sum(RAGGED.values()))
    with_offset = by_rows(data, offset=offset)
    shifted = gr.NodeData.from_arrays(
        with_offset.X, with_offset.y - offset, np.repeat(list(RAGGED), list(RAGGED.values()))
    )
    for loss in (gr.SquaredLoss, gr.HuberLoss):
        equal(loss(with_offset) + penalty, loss(shifted) + penalty)


@pytest.mark.parametrize("method", [gr.Exact(), gr.Exact(form="dual"), gr.PrimalDual()], ids=repr)
def test_the_offset_of_a_logistic_loss_is_a_feature_with_coefficient_1(rng, method):
    """min over w of log(1 + exp(-y (w + o))), against the same function on a fine grid."""
    o, y = np.array([0.3, -1.2, 0.8, 0.1]), np.array([1, 0, 0, 1])
    data = gr.NodeData.from_arrays(np.ones((4, 1)), y, ["a"] * 4, offset=o)
    solution = gr.Problem(gr.LogisticLoss(data, scale="sum")).solve(method)
    grid = np.linspace(-2, 2, 40_001)
    values = np.logaddexp(0, -(2 * y - 1) * (grid[:, None] + o)).sum(axis=1)
    assert solution.objective == pytest.approx(values.min(), rel=1e-6)
    assert solution.coef[0, 0] == pytest.approx(grid[values.argmin()], abs=2e-3)


# ---- means and mixed families ----------------------------------------------------------------------------------------
def test_means_of_several_targets(rng):
    frame = pd.DataFrame(rng.normal(size=(12, 2)), columns=["east", "north"]).assign(site=np.repeat(NODES, 3))
    data = gr.NodeData.from_frame(frame, node="site", target=["east", "north"])
    solution = solve(gr.MeanLoss(data))
    np.testing.assert_allclose(solution.table(), frame.groupby("site")[["east", "north"]].mean(), atol=1e-5)
    assert list(solution.table().columns) == ["east", "north"]
    weighted = gr.NodeData.from_frame(
        frame.assign(w=np.arange(1, 13)), node="site", target=["east", "north"], weights="w"
    )
    first = np.average(frame[["east", "north"]][:3], axis=0, weights=[1, 2, 3])
    np.testing.assert_allclose(solve(gr.MeanLoss(weighted)).coef[0], first, atol=1e-5)
    apart = solve(gr.MeanLoss(data) + 0.3 * gr.TotalVariation(CHAIN, gr.L1()))
    for target in ("east", "north"):  # the l1 norm treats the targets one by one
        single = gr.MeanLoss(gr.NodeData.from_frame(frame, node="site", target=target))
        alone = solve(single + 0.3 * gr.TotalVariation(CHAIN, gr.L1()))
        np.testing.assert_allclose(apart.table()[target], alone.table()[target], atol=1e-3)


@pytest.mark.parametrize("method", [gr.Exact(), gr.Exact(form="dual"), gr.PrimalDual()], ids=repr)
def test_different_families_on_disjoint_nodes(rng, method):
    """Without ties each family is solved by itself; tied, the optimum lies between that and the consensus."""
    data = samples(rng)
    squared = gr.SquaredLoss(gr.NodeData.from_dict({"a": data["a"]}))
    huber = gr.HuberLoss(gr.NodeData.from_dict({"c": data["c"]}), delta=0.5)
    logistic = gr.LogisticLoss(gr.NodeData.from_dict({i: (data[i][0], data[i][1] > 1) for i in ("d", "b")}))
    ridge = 0.1 * gr.NodePenalty(gr.SquaredL2())
    losses = sum([squared, huber, logistic])
    apart = gr.Problem(losses + ridge).solve(method, gap=1e-8)
    assert apart.labels == ("a", "c", "d", "b")
    alone = [gr.Problem(loss + ridge).solve(gap=1e-9) for loss in (squared, huber, logistic)]
    assert apart.objective == pytest.approx(sum(s.objective for s in alone), rel=1e-6)
    np.testing.assert_allclose(apart.coef, np.concatenate([s.coef for s in alone]), atol=2e-3)
    tied = gr.Problem(losses + 0.2 * gr.TotalVariation(CHAIN, gr.L2()) + ridge).solve(method)
    pooled = gr.Problem(losses + gr.Consensus(CHAIN) + ridge).solve(method)
    assert [s.status for s in (apart, tied, pooled)] == ["certified"] * 3
    assert apart.objective < tied.objective < pooled.objective


def test_the_printed_problem_counts_what_there_is(rng):
    text = str(gr.Problem(gr.SquaredLoss(regression(rng)) + 0.1 * gr.TotalVariation(CHAIN, gr.L2())))
    assert "20 samples at 4 nodes" in text
    assert "3 edges" in text
    assert repr(gr.Problem(gr.SquaredLoss(regression(rng)))) == "<Problem: 4 nodes x 3 coordinates, 1 terms>"
