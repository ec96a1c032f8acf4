"""Squares that absorb an imbalance: no bound lies above the exact value of the flows, and no curvature is too large."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from kernel_cases import (
    LINE,
    columns,
    dual_value,
    exactly,
    number,
    numbers,
    pulled,
    regression,
    rows_of,
    solved,
    with_rows,
)

import graphreg as gr
from graphreg.certificate.kernel import squares
from graphreg.certificate.kernel.arithmetic import MOST, Pair, RefusedError
from graphreg.certificate.kernel.squares import Curvature, _from_gradients, absorbed, least_eigenvalues
from graphreg.certificate.kernel.system import System
from graphreg.form import DualPoint
from graphreg.terms import Packed, alike, triangles


def ring(rng, n=4, d=2, samples=5, penalty=None, more=None, shift=0.0, scales=1.0):
    """Full-rank regressions on a ring with a chord."""
    X = rng.standard_normal((n * samples, d)) * scales
    y = X @ rng.standard_normal(d) + rng.standard_normal(n * samples) + shift
    graph = nx.cycle_graph(n)
    graph.add_edge(0, 2)
    offset = rng.standard_normal(n * samples)
    data = gr.NodeData.from_arrays(X, y, np.repeat(np.arange(n), samples), offset=offset)
    model = gr.SquaredLoss(data) + 0.7 * gr.TotalVariation(graph, penalty or gr.L2())
    return gr.Problem(model if more is None else model + more).form


def means(rng, n=5, d=3):
    data = gr.NodeData.from_arrays(None, rng.standard_normal((2 * n, d)), np.arange(2 * n) % n)
    return gr.Problem(gr.MeanLoss(data) + 0.4 * gr.TotalVariation(nx.path_graph(n), gr.L1())).form


CASES = {
    "plain": ring,
    "l1": lambda rng: ring(rng, penalty=gr.L1()),
    "a ridge": lambda rng: ring(rng, more=0.3 * gr.NodePenalty(gr.SquaredL2(), center=[0.5, -3.0])),
    "a ridge of some": lambda rng: ring(rng, more=3.0 * gr.NodePenalty(gr.SquaredL2(), features=["x1"])),
    "pulled by l1 too": lambda rng: ring(rng, more=0.3 * gr.NodePenalty(gr.L1())),
    "squared edges": lambda rng: ring(rng, penalty=gr.SquaredL2()),
    "far targets": lambda rng: ring(rng, shift=1e6),
    "units": lambda rng: ring(rng, scales=np.array([1e-6, 1e5])),
    "means": means,
}


# ---- what is true, exactly -------------------------------------------------------------------------------------------
def squares_of(form):
    """The Hessians and gradients at 0 of the squares, node by node, in rationals; and their values at 0."""
    n, d = form.shape
    H = [[[exactly(0)] * d for _ in range(d)] for _ in range(n)]
    g, constant = [[exactly(0)] * d for _ in range(n)], exactly(0)

    def add(i, s, x, t):
        nonlocal constant
        constant += s * t * t / 2
        for j, a in x.items():
            g[i][j] -= s * a * t
            for k, b in x.items():
                H[i][j][k] += s * a * b

    for block in form.samples:
        scale, offset = numbers(block.scale), block.offset.reshape(len(block.node), -1)
        y = block.y.reshape(len(block.node), -1)
        for r, i in enumerate(block.node.tolist()):
            rows = [{c: exactly(1)} for c in range(d)] if block.X is None else [dict(enumerate(numbers(block.X[r])))]
            for k, x in enumerate(rows):
                add(i, scale[r], x, number(y[r, k]) - number(offset[r, k]))
    for edge in form.edges:
        if edge.ground and isinstance(edge.penalty, gr.SquaredL2):
            for e, i in enumerate(edge.tail.tolist()):
                for k, j in enumerate(edge.columns(d)):
                    center = exactly(0) if edge.center is None else number(edge.center[e, k])
                    add(i, number(edge.weight[e]), {int(j): exactly(1)}, center)
    return H, g, constant


def is_kept(edge):
    return not (edge.ground and isinstance(edge.penalty, gr.SquaredL2))


def exact_minimum(form, system, v, outside=None):
    """The least of the squares and what the other flows take, less the conjugates of these; and where it is taken."""
    H, g, value = squares_of(form)
    found = columns(form)
    fixed = np.zeros(len(v), dtype=bool)
    for one in system.flows:
        fixed[one.columns] = is_kept(one.edge)
    taken = pulled(found, [number(x) if keep else exactly(0) for x, keep in zip(v, fixed, strict=True)])
    w = []
    for i in range(form.n):
        q = [a + taken.get(i * form.d + j, exactly(0)) for j, a in enumerate(g[i])]
        if outside is not None:
            q = [a + b for a, b in zip(q, outside[i], strict=True)]
        w.append(solved(H[i], [-a for a in q]))
        value += sum(a * b for a, b in zip(q, w[i], strict=True)) / 2
    parts = dual_value(form, [number(x) if keep else exactly(0) for x, keep in zip(v, fixed, strict=True)])
    return (None if None in parts else value + sum(parts)), w


def curvature_of(system):
    """With inverses of the exact Hessians, in floats."""
    H, _, _ = squares_of(system.form)
    return Curvature(system, np.linalg.inv(np.array([[[float(x) for x in row] for row in each] for each in H])))


def given(form, rng, size, far=0.0, prices=None):
    """Flows, and parameters near the exact minimisers of what these leave, with the gradients there."""
    system = System(form)
    flows = tuple(e.clip(size * rng.standard_normal((len(e.tail), form.width(e)))) * (1 - 1e-13) for e in form.edges)
    v = system.flat(DualPoint(flows, form.nothing().prices))
    _, w = exact_minimum(form, system, v)
    at = np.array([[float(x) for x in row] for row in w]) * (1.0 + far * rng.standard_normal(form.shape))
    taken = tuple(u if is_kept(e) else e.gradients(at) for e, u in zip(form.edges, flows, strict=True))
    found = form.gradient_prices(at if prices is None else prices * at)
    return system, system.flat(DualPoint(taken, found)), at


# ---- bounds ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rows", [1 << 14, 3])
@pytest.mark.parametrize("case", CASES)
def test_no_bound_lies_above_the_least_of_what_flows_leave(case, rows, monkeypatch):
    monkeypatch.setattr("graphreg.certificate.kernel.system.ROWS", rows)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        form = CASES[case](rng)
        for size in (1e-8, 1e3) if seed else (1.0,):
            for far, prices in (
                (0.0, None),
                (1e-12, None),
                (1e-6, 0.999),
                (1e-2, None),
                (10.0, None),
                (10.0, 1.0),
                (1.0, 0.1),
            ):
                system, v, at = given(form, rng, size, far, prices)
                curvature = curvature_of(system)
                assert (curvature.least > 0.0).all()
                found, box = absorbed(system, curvature, v, at)
                exact, w = exact_minimum(form, system, v)
                if np.isfinite(found.lower).all():
                    assert exactly(found.lower.sum()) <= exact
                    assert balanced_point_within(form, system, v, box, w)
                if far == 0.0:
                    value = form.primal(np.zeros(form.shape))
                    assert float(exact) - found.lower.sum() <= 1e-11 * max(abs(float(exact)), value)


def balanced_point_within(form, system, v, box, w):
    """The gradients at the exact minimisers lie in the box; the other flows stay as they are."""
    for one in system.summands:
        high, spread = box.high[one.columns], box.spread[one.columns]
        if not one.square:
            assert not spread.any()
            continue
        _, k = one.shape
        t = np.zeros((3, *one.shape)) if one.targets is None else one.targets
        for r, i in enumerate(one.node.tolist()):
            s = number(one.scale[r])
            for c in range(k):
                if hasattr(one, "block") and one.block.X is not None:
                    z = sum(x * y for x, y in zip(numbers(one.block.X[r]), w[i], strict=True))
                else:
                    z = w[i][c if hasattr(one, "block") else int(one.at[c])]
                gradient = s * (z - number(t[0][r, c]) - number(t[1][r, c]))
                assert abs(gradient - number(high[r * k + c])) <= number(spread[r * k + c])
    return True


def test_what_is_taken_outside_counts():
    rng = np.random.default_rng(3)
    form = ring(rng)
    taken = Pair(rng.standard_normal(form.shape), 2.0**-60 * rng.standard_normal(form.shape), np.full(form.shape, 1e-7))
    for far in (0.0, 1e-3):
        _, v, at = given(form, rng, 0.3, far)
        system = System(form, outside=taken)
        found, _ = absorbed(system, curvature_of(system), v, at)
        for signs in rng.choice([-1, 1], (4, *form.shape)).tolist():
            outside = [
                [number(h) + number(l) + s * number(e) for h, l, e, s in zip(*rows, strict=True)]
                for rows in zip(taken.high, taken.low, taken.error, signs, strict=True)
            ]
            exact, _ = exact_minimum(form, system, v, outside)
            assert exactly(found.lower.sum()) <= exact


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e-150, 1e-165, 1e60])
def test_what_squares_absorb_of_one_number(scale):
    """One square and one equation: q w + s/2 (w - t)^2, in closed form, at any size."""
    for s in (1.0, 1e-3, 7.0):
        data = gr.NodeData.from_arrays(np.ones((1, 1)), [0.7], [0], weights=[s])
        form = gr.Problem(gr.SquaredLoss(data, scale="sum") + 10.0 * gr.NodePenalty(gr.L1(), features=["x0"])).form
        (block,), (edge,) = form.samples, form.edges
        block = alike(block, y=np.array([0.7 * scale]))
        form = replace(
            form, samples=(block,), edges=(alike(edge, base_weight=max(10.0 * scale, 1e-60) * edge.base_weight),)
        )
        system = System(form)
        curvature = Curvature(system, np.array([[1 / s]]))
        for a, u, w in ((0.3, 0.2, 0.1), (0.0, 0.2, 0.5), (-0.7 * s, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 1.0, -2.0)):
            v, at = np.array([a, u]) * scale, np.array([[w * scale]])
            found, box = absorbed(system, curvature, v, at)
            exact, point = exact_minimum(form, system, v)
            assert exactly(found.lower[0]) <= exact
            if np.isfinite(found.lower[0]):
                gradient = number(s) * (point[0][0] - number(0.7 * scale))
                assert abs(gradient - number(v[0])) <= number(box.spread[0])


@pytest.mark.parametrize("size", [1.0, 1e-100, 1e-200, 1e-260, 1e-320])
@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_how_far_prices_are_from_gradients(size, scale):
    """Also where their products underflow."""
    form = ring(np.random.default_rng(11), more=0.3 * gr.NodePenalty(gr.SquaredL2(), center=[0.5, -3.0]))
    (block,), (tv, ground) = form.samples, form.edges
    none = np.zeros(len(block.node))
    block = alike(block, y=none, offset=none, base_scale=scale * block.base_scale)
    ground = alike(ground, center=None, base_weight=scale * ground.base_weight)
    system = System(replace(form, samples=(block,), edges=(tv, ground)))
    rng = np.random.default_rng(12)
    for off in (0.0, 1e-12, 1.0):
        w = size * rng.standard_normal(form.shape)
        for one in (system.prices[0], system.flows[1]):
            gradient = block.prices(w)[:, None] if one is system.prices[0] else ground.gradients(w)
            v = gradient * (1.0 + off)
            far = _from_gradients(one, one.square * one.scale, v, w)
            for r, i in enumerate(one.node.tolist()):
                x, at = ([numbers(block.X[r])], w[i]) if one is system.prices[0] else (np.eye(2).tolist(), w[i])
                for c, row in enumerate(x):
                    z = sum(number(a) * number(b) for a, b in zip(row, at, strict=True))
                    assert abs(number(v[r, c]) - number(one.scale[r]) * z) <= number(far[r, c])


def test_components_pay_for_themselves():
    loss = gr.SquaredLoss(regression(2, samples=40))
    form = gr.Problem(loss + 0.1 * gr.TotalVariation(nx.Graph([(0, 1), (2, 3)]), gr.L1())).form
    rng = np.random.default_rng(4)
    system, v, at = given(form, rng, 0.3)
    curvature = curvature_of(system)
    near = absorbed(system, curvature, v, at)[0].lower
    off = absorbed(system, curvature, v, np.where(form.component[:, None] == 0, at, at + 1.0))[0].lower
    assert off[0] == near[0]
    assert off[1] < near[1] - 0.1
    lost = v.copy()
    lost[-1] = 1.0
    found, box = absorbed(system, curvature, lost, at)
    assert found.lower.tolist() == [near[0], -np.inf]
    assert box.lost.tolist() == [False, True]
    assert "a flow" in found.why


# ---- what is refused -------------------------------------------------------------------------------------------------
def good():
    rng = np.random.default_rng(5)
    form = ring(rng)
    system, v, at = given(form, rng, 0.3)
    return system, curvature_of(system), v, at


def refuses(*arguments):
    with pytest.raises(RefusedError) as found, np.errstate(all="ignore"):
        absorbed(*arguments)
    return str(found.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, MOST])
def test_numbers_out_of_range_are_refused(bad):
    system, curvature, v, at = good()
    for k in (0, len(v) - 1):
        wrong = v.copy()
        wrong[k] = bad
        assert "too large" in refuses(system, curvature, wrong, at)
    wrong = at.copy()
    wrong[2, 1] = bad
    assert "too large" in refuses(system, curvature, v, wrong)


def test_flows_that_overflow_are_no_balance():
    """Twice infinity against infinity left NaN, of which nothing was said to be left: a bound of P(0), above the
    optimum."""
    data = gr.NodeData.from_arrays(None, np.array([[1.0], [2.0], [3.0], [5.0]]), np.arange(4))
    ties = gr.Graph((0, 1, 2, 3), np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3]), np.ones(4))
    form = gr.Problem(gr.MeanLoss(data) + gr.Consensus(ties) + gr.Consensus(ties)).form
    system, w = System(form), np.zeros((4, 1))
    flows = tuple(np.full((4, 1), u) for u in (1.7e308, -1.6e308))
    v = system.flat(DualPoint(flows, form.gradient_prices(w)))
    curvature = Curvature(system, np.ones((4, 1, 1)))
    assert "too large" in refuses(system, curvature, v, w)


def test_curvatures_of_others_are_refused():
    system, curvature, v, at = good()
    assert curvature.holds(system)
    same = System(system.form)
    assert not curvature.holds(same)  # which nobody has compared
    assert "other squares" in refuses(same, curvature, v, at)
    (block,) = system.form.samples
    for scale in (0.5, 1.0):
        other = System(replace(system.form, samples=(alike(block, base_scale=scale * block.base_scale),)), system)
        assert curvature.holds(other) == (scale == 1.0)
    huber = replace(block, loss=gr.Problem(gr.HuberLoss(regression(2))).form.samples[0].loss)
    assert not curvature.holds(System(replace(system.form, samples=(huber,)), system))


def test_nodes_without_curvature_are_refused():
    system, curvature, v, at = good()
    for bad in (0.0, np.nan, -1.0):
        curvature.least[2] = bad
        assert "convex" in refuses(system, curvature, v, at)


@pytest.mark.parametrize(
    "more",
    [
        gr.HuberLoss(regression(2)),
        0.1 * gr.NodePenalty(gr.HuberNorm(0.3)),
        0.1 * gr.NodePenalty(gr.Quadratic(np.diag([1.0, 3.0])), features=["x0", "x1"]),
        0.1 * gr.NodePenalty(gr.Quadratic(np.ones((2, 2))), features=["x0", "x1"]),
    ],
)
def test_what_is_no_square_is_refused(more):
    """Its second derivatives are in the Hessian that the inverses are of, and not in that of the squares."""
    model = more + 0.1 * gr.TotalVariation(LINE, gr.L1())
    form = gr.Problem(model if isinstance(more, gr.HuberLoss) else model + gr.SquaredLoss(regression(2))).form
    system = System(form)
    assert not any(
        one.square for one, block in zip(system.summands, form.blocks, strict=True) if block is form.blocks[-2]
    )
    if isinstance(more, gr.HuberLoss):
        (block,) = form.samples
        H = np.stack([block.X.T @ (block.X * (block.scale * (block.node == i))[:, None]) for i in range(form.n)])
        for inverse in (np.linalg.inv(H), np.ones(H.shape)):
            curvature = Curvature(system, inverse)
            assert not curvature.least.any()
            assert "convex" in refuses(system, curvature, np.zeros(system.size), np.zeros(form.shape))
        return
    exact, _, _ = squares_of(form)
    H = np.array([[[float(x) for x in row] for row in each] for each in exact])
    for extra in (0.0, 0.1, 100.0):
        curvature_holds(exact, Curvature(system, np.linalg.inv(H + extra * np.eye(2))))
    v = system.flat(DualPoint(form.nothing().flows, form.gradient_prices(np.zeros(form.shape))))
    found, _ = absorbed(system, curvature_of(system), v, np.zeros(form.shape))
    for w in (np.zeros(form.shape), *np.random.default_rng(6).standard_normal((9, *form.shape))):
        assert found.lower.sum() <= form.primal(w)


def test_squares_are_known():
    form = CASES["a ridge"](np.random.default_rng(7))
    assert [one.square for one in System(form).summands] == [1.0, 0.0, 1.0]
    edges = System(CASES["squared edges"](np.random.default_rng(8)))
    assert [one.square for one in edges.summands] == [1.0, 0.0]


def test_squares_of_several_numbers_are_refused():
    form = gr.Problem(gr.SquaredLoss(regression(2)) + 0.1 * gr.TotalVariation(LINE, gr.L1())).form
    for rows in (np.ones((1, 8)), np.tri(2, 8)):
        system = System(with_rows(form, rows_of(rows, gr.SquaredL2(), form)))
        system.summands[-1].square = 1.0
        with pytest.raises(RefusedError, match="several"):
            Curvature(system, np.ones((4, 2)))


@pytest.mark.parametrize("case", CASES)
def test_hessians_are_those_of_the_squares(case, monkeypatch):
    """Whatever the strength, some nodes at a time, as rounded."""
    form = CASES[case](np.random.default_rng(3))
    exact, _, _ = squares_of(form)
    H = np.array([[[float(x) for x in row] for row in each] for each in exact])
    for cells in (1 << 15, 2 * form.d**2):
        monkeypatch.setattr(squares, "CELLS", cells)
        curvature = curvature_of(System(form))
        np.testing.assert_allclose(curvature.scale**-2, np.einsum("ijj->ij", H), rtol=1e-13)
        curvature_holds(exact, curvature)
        S = curvature.scale[:, :, None] * curvature.scale[:, None, :] * H
        assert (curvature.least >= 0.4 * np.linalg.eigvalsh(S)[:, 0] / form.d**0.5).all()


# ---- curvatures ------------------------------------------------------------------------------------------------------
def definite(A):
    """True where a symmetric matrix of rationals is positive semidefinite."""
    A = [list(row) for row in A]
    for k in range(len(A)):
        if A[k][k] < 0:
            return False
        if A[k][k] == 0:
            if any(A[k]) or any(row[k] for row in A):
                return False
            continue
        for i in range(k + 1, len(A)):
            factor = A[i][k] / A[k][k]
            A[i] = [x - factor * y for x, y in zip(A[i], A[k], strict=True)]
        A[k] = [exactly(0)] * k + [A[k][k]] + [exactly(0)] * (len(A) - k - 1)
    return True


def proved(H, inverse, terms):
    return SimpleNamespace(**dict(zip(("scale", "least"), least_eigenvalues(H, inverse, terms), strict=True)))


def curvature_holds(H, found):
    for each, scale, least in zip(H, found.scale, found.least, strict=True):
        s = numbers(scale)
        shifted = [
            [x * s[i] * s[j] - (number(least) if i == j else 0) for j, x in enumerate(row)]
            for i, row in enumerate(each)
        ]
        assert definite(shifted)


@pytest.mark.parametrize("condition", [1.0, 1e4, 1e8, 1e11, 1e14, 1e17])
def test_curvatures_are_not_too_large(condition):
    rng = np.random.default_rng(9)
    for d in (1, 2, 3, 5):
        X = rng.standard_normal((4, 2 * d + 1, d))
        X[:, :, -1] = X[:, :, 0] + X[:, :, -1] / condition**0.5 if d > 1 else X[:, :, -1]
        X *= 10.0 ** rng.uniform(-3, 3, d)
        exact = [
            [
                [sum(a * b for a, b in zip(numbers(x[:, i]), numbers(x[:, j]), strict=True)) for j in range(d)]
                for i in range(d)
            ]
            for x in X
        ]
        H = np.einsum("nij,nik->njk", X, X)
        for inverse in (np.linalg.pinv(H), np.linalg.pinv(H) * 1.3, np.linalg.pinv(H) + 1e-3, 0.0 * H, 1e3 + 0.0 * H):
            with np.errstate(all="ignore"):
                found = proved(H, inverse, np.full(4, 2 * d + 1))
            curvature_holds(exact, found)
        if condition < 1e9 or d == 1:
            best = proved(H, np.linalg.inv(H), np.full(4, 2 * d + 1))
            assert (best.least > 0.0).all()
            S = H * best.scale[:, :, None] * best.scale[:, None, :]
            assert (best.least >= 0.4 * np.linalg.eigvalsh(S)[:, 0] / d**0.5).all()


def test_curvatures_near_what_underflows_are_not_too_large():
    rng, proofs = np.random.default_rng(10), 0
    for down in (70.0, 130.0, 141.0, 150.0, 160.0, 163.0):
        for d in (1, 2, 3):
            X = rng.standard_normal((6, d + 2, d))
            X[:, :, -1] *= 10.0 ** -(down + rng.uniform(-2.0, 2.0, (6, d + 2)))
            columns = [[numbers(x[:, i]) for i in range(d)] for x in X]
            exact = [[[sum(a * b for a, b in zip(p, q, strict=True)) for q in each] for p in each] for each in columns]
            H = np.einsum("nij,nik->njk", X, X)
            with np.errstate(all="ignore"):
                found = proved(
                    H, np.array([np.linalg.pinv(h) if d == 1 else _inverse(h) for h in H]), np.full(6, d + 2)
                )
            some = np.flatnonzero(found.least > 0.0)
            proofs += len(some)
            curvature_holds([exact[i] for i in some], SimpleNamespace(scale=found.scale[some], least=found.least[some]))
    assert proofs > 20


def test_nothing_is_proved_of_a_diagonal_near_what_underflows():
    """Its products may have lost more than their rounding."""
    H = np.array([[[1e-279]], [[1e-281]]])
    assert (proved(H, 1.0 / H, np.ones(2)).least > 0.0).tolist() == [True, False]


def _inverse(H):
    """The inverse of a matrix of very different rows; 0 where there is none in floats."""
    with np.errstate(all="ignore"):
        s = 1.0 / np.sqrt(np.diagonal(H))
        if not np.isfinite(s).all():
            return np.zeros_like(H)
        return np.linalg.inv(H * np.outer(s, s)) * np.outer(s, s)


@pytest.mark.parametrize("terms", [1, 100, 10000, 10**7])
@pytest.mark.parametrize("times", [0.5, 1.5, 2.5, 5.0, 20.0, 200.0])
def test_hessians_may_be_off_by_all_that_their_sums_lose(terms, times):
    """H has the least eigenvalue delta, and the true one may be less by 2 u for each term."""
    unit = 2.0**-53 * terms
    delta = times * unit + 2.0**-50
    H = np.array([[[1.0, 1.0 - delta], [1.0 - delta, 1.0]]])
    found = proved(H, np.linalg.inv(H), np.array([terms]))
    low = 1 - number(1.0 - delta) - 2 * number(unit)
    assert number(found.least[0]) <= max(low, exactly(0)) or found.least[0] == 0.0
    if times == 200.0 and terms > 1:
        assert found.least[0] > 0.0


def test_inverses_that_are_far_off_prove_nothing():
    H = np.array([np.eye(2)] * 5)
    R = np.array([np.eye(2) * x for x in (1.0, 1.36, 1.35, 0.6, np.nan)])
    with np.errstate(all="ignore"):
        found = proved(H, R, np.ones(5))
    assert found.least[0] > 0.3
    assert found.least[1] == 0.0  # 0.36 2^1/2 is more than a half
    assert found.least[2] > 0.2
    assert found.least[3] == 0.0
    assert found.least[4] == 0.0
    with np.errstate(all="ignore"):
        for bad in (0.0, -1.0, np.nan, np.inf):
            assert proved(bad * H, np.array([np.eye(2)] * 5), np.ones(5)).least.max() == 0.0


def test_squares_that_underflow_are_paid_for():
    """At one of two coordinates, whose prices are to be 0: the squares of what is left are 0 as floats."""
    form = gr.Problem(gr.MeanLoss(gr.NodeData.from_arrays(None, np.zeros((1, 2)), [0]))).form
    system = System(form)
    for tiny in (1e-170, 1e-200, 1e-290):
        w = np.array([[tiny, 0.0]])
        v = system.prices[0].scale[0] * w.ravel()
        _, near = absorbed(system, Curvature(system, np.ones((1, 2))), v, w)
        assert near.spread[0] >= v[0]


def test_gradients_that_underflow_are_paid_for():
    """Predictors are their targets as floats, and not as numbers; their tiny scales make nothing of that."""
    X, w = 1e-69 * np.array([[0.3], [0.7], [0.9]]), np.array([[77 * 5e-324 / 1e-69]])
    form = gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(X, np.ones(3), np.zeros(3, dtype=int)))).form
    (block,) = form.samples
    form = replace(form, samples=(alike(block, y=(X @ w).ravel(), base_scale=np.full(3, 1e-68)),))
    system, s, x, t = System(form), exactly(1e-68), numbers(X), numbers(X @ w)
    curvature = Curvature(system, 1.0 / (1e-68 * (X * X).sum(axis=0, keepdims=True)))
    _, near = absorbed(system, curvature, np.zeros(3), w)
    best = sum(a * b for a, b in zip(x, t, strict=True)) / sum(a * a for a in x)
    for a, b, off in zip(x, t, near.spread, strict=True):
        assert 0 < abs(s * (a * best - b)) <= number(off)


def test_inverses_are_taken_in_any_form():
    form = CASES["plain"](np.random.default_rng(10))
    system = System(form)
    inverse = curvature_of(system).inverse
    inverse = (inverse + inverse.transpose(0, 2, 1)) / 2
    whole, packed = (Curvature(system, each) for each in (inverse, Packed(triangles(inverse).ravel(), 2)))
    np.testing.assert_array_equal(whole.least, packed.least)
    system = System(CASES["means"](np.random.default_rng(10)))
    inverse = 1.0 / np.einsum("ijj->ij", np.linalg.inv(curvature_of(system).inverse))
    np.testing.assert_array_equal(
        Curvature(system, inverse).least, Curvature(system, inverse[:, :, None] * np.eye(3)).least
    )
    for wrong in (
        inverse[1:],
        inverse[:, :2],
        np.ones((len(inverse), 3, 2)),
        Packed(triangles(np.ones((5, 2, 2))).ravel(), 2),
    ):
        with pytest.raises(RefusedError, match="inverses"):
            Curvature(system, wrong)
