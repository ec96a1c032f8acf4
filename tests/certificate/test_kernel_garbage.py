"""Whatever is proposed, no bound is false: garbage for the kernel, problems with rows of any kind, and who it asks."""

from __future__ import annotations

import ast
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from factories import thinned
from kernel_cases import (
    LINE,
    answers,
    balance_holds,
    exactly,
    number,
    numbers,
    regression,
    root,
    rows_of,
    with_rows,
    witness,
)

import graphreg as gr
from benchmarks.soundness.exact import below
from benchmarks.soundness.exact import exact as exact_objective
from benchmarks.soundness.stored import as_stored
from graphreg.certificate import Enclosure
from graphreg.certificate.kernel import arithmetic
from graphreg.certificate.kernel.arithmetic import LEAST, RefusedError
from graphreg.certificate.kernel.balance import Answers, balanced
from graphreg.certificate.kernel.squares import Curvature, absorbed
from graphreg.certificate.kernel.system import System
from graphreg.certificate.kernel.value import lower_bound
from graphreg.certificate.proposing.shifted_duals import QuadraticNodes, shifted_duals
from graphreg.certificate.proposing.slack import Slack
from graphreg.datasets import random_problem
from graphreg.form import DualPoint
from graphreg.terms import alike

KERNEL = Path(arithmetic.__file__).parent


# ---- proposals of every kind -----------------------------------------------------------------------------------------
def known(drawn):
    """The form, and P at parameters of it in exact arithmetic."""
    form = drawn.problem.form.frozen()
    problem = exact_objective(as_stored(drawn.plain, form))
    order = [form.labels.index(label) for label in drawn.plain.nodes]
    return form, lambda w: problem.at(np.asarray(w)[order])


def moved(point, by, rng):
    """A point off by so much of its size."""

    def each(x):
        return x + by * rng.standard_normal(x.shape) * (np.abs(x) + rng.choice([0.0, np.abs(x).max(initial=0.0)]))

    return DualPoint(tuple(map(each, point.flows)), tuple(map(each, point.prices)))


def spoiled(rng, R):
    """Answers that are off, in every way."""
    data = R.data * (1.0 + 10.0 ** rng.uniform(-16, 0) * rng.standard_normal(R.nnz))
    data = np.where(rng.random(R.nnz) < rng.choice([0.0, 0.02, 0.5]), rng.choice([-1.0, 2.0, 0.5]), 1.0) * data
    out = sp.csr_array((np.clip(data, -1e60, 1e60), R.indices.copy(), R.indptr.copy()), shape=R.shape)
    if rng.random() < 0.2:
        out = sp.csr_array(out + sp.random_array(R.shape, density=0.02, rng=rng))
    out.data[np.abs(out.data) < 1e-60] = 0.0
    return out


@pytest.mark.parametrize("seed", thinned(range(100), every=7))
def test_garbage_proves_nothing_that_is_false(seed):
    """Random problems; points near the optimum and far from it, and everything else about them made up."""
    drawn, rng = random_problem(seed), np.random.default_rng(seed)
    form, P = known(drawn)
    found = drawn.problem.solve(gr.PrimalDual(), rounds=150, gap=1e-9, on_failure="return").certificate
    at, point = P(found.w), found.dual_point
    if at.lower is None:
        pytest.skip("no point was found")
    enclosure, finite = Enclosure(form), 0
    if enclosure.refused:
        return
    system = enclosure.system
    with np.errstate(all="ignore"):
        for by in (0.0, *(10.0 ** rng.uniform(-16, -1, 3))):
            off = moved(point, by, rng)
            lower = enclosure(off, least=rng.choice([np.inf, -1e300])).value
            assert below(lower, at)
            finite += np.isfinite(lower)
            v = system.flat(off)
            try:
                plan = enclosure.planner.near(v, Slack.of(system, v), np.zeros(len(v), dtype=bool), False)
            except (RefusedError, np.linalg.LinAlgError):
                continue
            for _ in range(3):
                try:
                    assert below(_spoiled_bound(rng, system, plan, v), at)
                except RefusedError:
                    continue
        nodes = shifted_duals(form)
        if isinstance(nodes, QuadraticNodes):
            for far in (0.0, 1e-9, 1e-2, 10.0):
                w = found.w * (1.0 + far * rng.standard_normal(form.shape))
                for prices in (form.gradient_prices(w), point.prices):
                    v = system.flat(DualPoint(moved(point, far, rng).flows, prices))
                    assert below(float(absorbed(system, Curvature(system, nodes.inverse), v, w)[0].lower.sum()), at)


def _spoiled_bound(rng, system, plan, v):
    """A bound from answers, sizes and dropped equations of which some are made up."""
    found = plan.answers if rng.random() < 0.4 else Answers(system, spoiled(rng, plan.answers.R))
    low = 2.0**-54 * v * rng.uniform(-1, 1, len(v)) * rng.choice([0.0, 1.0])
    plain = not low.any() and rng.random() < 0.5
    left = system.residual(v, low, plain).size().ravel()
    dropped = dict(plan.dropped)
    if rng.random() < 0.3:
        i = int(rng.integers(system.shape[0]))
        others = rng.choice(system.shape[0], 2)
        dropped[i] = {i: Fraction(1)} | {int(j): Fraction(int(rng.integers(-2, 3))) for j in others if j != i}
    kept = ~np.isin(np.arange(len(left)), list(dropped))
    z = np.where(kept, left, 0.0)
    for _ in range(8):
        z = np.where(kept & (left + found.passed(z) > 0.0), (left + found.passed(z)) * (1 + 1e-9) + LEAST, 0.0)
    z = z * rng.choice([1.0, 1.0, 0.5, 1e-3, 2.0])
    box = balanced(system, witness(system, found, v, np.where(z < LEAST, 0.0, z), low, dropped, plain))
    return float(lower_bound(system, box, plain or rng.random() < 0.3).lower.sum())


def test_no_inverses_make_the_curvature_larger_than_it_is():
    """Once the Hessians themselves were believed."""
    proved = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        form = gr.Problem(gr.SquaredLoss(regression(2, seed=seed)) + 0.1 * gr.TotalVariation(LINE, gr.L1())).form
        system, (block,) = System(form), form.samples
        H = np.stack([(block.X * (block.scale * (block.node == i))[:, None]).T @ block.X for i in range(form.n)])
        lie = H * rng.choice([1.0, 1.1, 0.9, 1e-3, 1e9]) + rng.choice([0.0, 0.0, 0.1, 1e3]) * np.eye(2)
        inverse = np.linalg.inv(lie) * (1.0 + rng.choice([0.0, 1e-3, 1.0]) * rng.standard_normal(H.shape))
        found = Curvature(system, inverse)
        least = np.linalg.eigvalsh(H * found.scale[:, :, None] * found.scale[:, None, :])[:, 0]
        assert (found.least <= least * (1 + 1e-9)).all()
        proved += (found.least > 0.0).sum()
    assert proved > 20


def test_curvatures_are_of_the_system_that_they_are_asked_about():
    """Of another one's, or at other strengths, they would absorb more than there is."""
    tv = 0.1 * gr.TotalVariation(LINE, gr.L1())
    strength = gr.Parameter(1.0)
    form = gr.Problem(strength * gr.SquaredLoss(regression(2)) + tv).form
    system, (block,) = System(form), form.samples
    found = Curvature(system, shifted_duals(form).inverse)
    w = np.zeros(form.shape)
    v = system.flat(DualPoint(form.nothing().flows, form.gradient_prices(w)))
    bound = absorbed(system, found, v, w)[0].lower.sum()
    assert bound <= form.primal(near(form, w, np.random.default_rng(0)))
    again = System(replace(form, samples=(alike(block, y=block.y + 1.0),)), system)
    absorbed(again, found, v, w)  # of other targets it is the same
    for other in (
        replace(block, map=replace(block.map, X=0.1 * block.X)),
        alike(block, base_scale=0.1 * block.base_scale),
        replace(block, map=replace(block.map, node=np.roll(block.node, 1))),
        alike(block),
    ):
        with pytest.raises(RefusedError, match="other squares"):
            absorbed(System(replace(form, samples=(other,))), found, v, w)
    with pytest.raises(RefusedError, match="other squares"):
        absorbed(System(replace(form, samples=(alike(block, base_scale=0.1 * block.base_scale),)), system), found, v, w)
    huber = gr.Problem(gr.HuberLoss(regression(2)) + tv).form.samples[0]
    two, one = (replace(form, samples=(block, other)) for other in (block, huber))
    first = System(two)
    with pytest.raises(RefusedError, match="other squares"):  # of fewer
        absorbed(System(one, first), Curvature(first, 0.5 * shifted_duals(form).inverse), np.zeros(first.size), w)
    strength.value = 0.1
    with pytest.raises(RefusedError, match="other squares"):
        absorbed(system, found, v, w)


# ---- rows of any kind ------------------------------------------------------------------------------------------------
def lattice(n, d, order):
    """Differences of an order along a chain, for every coordinate."""
    D = np.eye(n)
    for _ in range(order):
        D = np.diff(D, axis=0)
    return sp.kron(sp.csr_array(D), sp.eye_array(d), format="csr")


def hyperedges(rng, n, d, many):
    """Rows over two to four nodes, with any entries."""
    rows = np.zeros((many, n * d))
    for row in rows:
        some = rng.choice(n, int(rng.integers(2, 5)), replace=False)
        row[(some[:, None] * d + np.arange(d)).ravel()] = rng.standard_normal(len(some) * d)
    return sp.csr_array(rows)


ROWS = {
    "second differences": lambda rng, n, d: lattice(n, d, 2),
    "third differences": lambda rng, n, d: lattice(n, d, 3),
    "hyperedges": lambda rng, n, d: hyperedges(rng, n, d, 6),
    "maps": lambda rng, n, d: sp.csr_array(rng.standard_normal((4, n * d)) * 10.0 ** rng.uniform(-3, 3, n * d)),
}
NORMS = {"l1": gr.L1(), "squares": gr.SquaredL2(), "l2": gr.L2()}


def value(penalty, z):
    """Not more than phi of a row, in rationals."""
    if isinstance(penalty, gr.L1):
        return sum(map(abs, z))
    square = sum(x * x for x in z)
    return square / 2 if isinstance(penalty, gr.SquaredL2) else root(square)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("norm", NORMS)
def test_rows_of_any_kind_have_bounds_that_are_true(kind, norm):
    """By a pseudoinverse as R and z from a few rounds: against P at many points, in rationals."""
    n, d, finite = 5, 2, 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        loss = gr.SquaredLoss(regression(d, n, samples=12, seed=seed), scale="sum")
        form = gr.Problem(loss + 30.0 * gr.TotalVariation(nx.path_graph(n), gr.L1())).form
        K, penalty = ROWS[kind](rng, n, d), NORMS[norm]
        k = d if "differences" in kind else 2
        scale, target = rng.uniform(0.5, 2.0, K.shape[0] // k), rng.standard_normal((K.shape[0] // k, k))
        system = System(with_rows(form, rows_of(K, penalty, form, k=k, scale=scale, target=target)))
        one, (block,), (edge,) = system.summands[-1], form.samples, form.edges
        w = rng.standard_normal(form.shape)
        v = np.zeros(system.size)
        v[: len(block.node)] = form.gradient_prices(w)[0]
        z = (K @ w.ravel()).reshape(-1, k) - target
        v[one.columns] = (0.5 * scale[:, None] * np.clip(z, -0.5, 0.5)).ravel()
        B = system.kind.B.toarray()
        R = np.linalg.pinv(B * (np.arange(system.size) < len(block.node) + 8)[None, :])
        R[np.abs(R) < 1e-11 * np.abs(R).max()] = 0.0
        high, low = v, np.zeros_like(v)
        for _ in range(3):
            left = system.residual(high, low)
            high, low = arithmetic.two_sum(high, low - R @ (left.high + left.low).ravel())
        found = answers(system, R)
        left, sizes = system.residual(high, low).size().ravel(), np.zeros(n * d)
        for _ in range(30):
            sizes = (left + found.passed(sizes)) * (1 + 1e-9) + LEAST
        for by in (1.0, 0.9, 1.5):
            witness_of = witness(system, found, high, sizes * by, low)
            box = balanced(system, witness_of)
            if not box.lost.any():
                assert balance_holds(system, witness_of, box)
            bound = lower_bound(system, box)
            finite += np.isfinite(bound.lower[0])
            if np.isfinite(bound.lower[0]):
                for at in (w, np.zeros(form.shape), *rng.standard_normal((2, *form.shape)), near(form, w, rng)):
                    assert exactly(bound.lower[0]) <= objective(block, edge, one, K, target, scale, at)
    assert finite >= 2


def near(form, w, rng):
    """The best parameters of each node alone, as rounded."""
    block = form.samples[0]
    return np.stack(
        [np.linalg.lstsq(block.X[block.node == i], block.y[block.node == i], rcond=None)[0] for i in range(form.n)]
    )


def objective(block, edge, one, K, target, scale, w):
    w, total = [numbers(row) for row in w], exactly(0)
    for r, i in enumerate(block.node.tolist()):
        z = sum(a * b for a, b in zip(numbers(block.X[r]), w[i], strict=True)) - number(block.y[r])
        total += number(block.scale[r]) * z * z / 2
    for e, (i, j) in enumerate(zip(edge.tail.tolist(), edge.head.tolist(), strict=True)):
        total += number(edge.weight[e]) * sum(abs(a - b) for a, b in zip(w[i], w[j], strict=True))
    flat, k = [x for row in w for x in row], one.shape[1]
    rows = K.toarray()
    for e in range(one.shape[0]):
        z = [
            sum(number(a) * b for a, b in zip(rows[e * k + c], flat, strict=True) if a) - number(target[e, c])
            for c in range(k)
        ]
        total += number(scale[e]) * value(one.penalty, z)
    return total


def test_a_bound_of_one_problem_is_one_of_another_with_its_low_parts():
    """Where a box was carried over, the low parts of its prices were forgotten, and a flow at its capacity passed."""
    form = gr.Problem(gr.SquaredLoss(regression()) + 0.1 * gr.TotalVariation(LINE, gr.L1())).form
    enclosure, other = Enclosure(form), Enclosure(form)
    point = form.nothing()
    found = enclosure(DualPoint(point.flows, form.gradient_prices(np.zeros(form.shape))))
    box = found.box
    (one,) = other.system.flows
    at = one.columns.start
    edge = replace(
        box,
        high=np.where(np.arange(len(box.high)) == at, one.scale[0], box.high),
        low=np.where(np.arange(len(box.high)) == at, 2.0**-60, box.low),
        spread=0.0 * box.spread,
    )
    assert other.beside(replace(found, box=edge)).value == -np.inf
    assert other.beside(replace(found, box=None)) is None


# ---- who is asked ----------------------------------------------------------------------------------------------------
ALLOWED = ("base", "form", "terms", "inputs")


@pytest.mark.parametrize("path", sorted(KERNEL.glob("*.py")), ids=lambda path: path.name)
def test_the_kernel_asks_nobody_who_proposes(path):
    """Nor anything that is compiled."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
            assert set(names) <= {"numpy", "scipy", "math"}
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level == 0:
                assert module.split(".")[0] in (
                    "__future__",
                    "abc",
                    "collections",
                    "dataclasses",
                    "fractions",
                    "functools",
                    "typing",
                )
            elif node.level == 1:
                assert f"{module}.py" in {other.name for other in KERNEL.glob("*.py")}
            else:
                assert node.level == 3
                assert module.split(".")[0] in ALLOWED
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("__import__", "eval", "exec")


def test_systems_are_made_by_the_kernel_alone():
    assert System.__module__ == "graphreg.certificate.kernel.system"
