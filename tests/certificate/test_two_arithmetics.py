"""One theorem, two arithmetics: what the kernel accepts in floats holds in rationals, and a proof is no worse.

The statement of `graphreg.certificate.kernel.balance` is evaluated here anew, from the form alone: B is written down
from designs and edges, (A) and (B) are compared as they stand, and conjugates are taken at the ends of the box.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from exact_bounds import exact_primal
from factories import thinned

import graphreg as gr
from benchmarks.soundness import combined, families
from graphreg import verify
from graphreg.certificate.kernel.arithmetic import RefusedError, two_sum
from graphreg.certificate.kernel.balance import Answers, Witness, balanced
from graphreg.certificate.kernel.system import System
from graphreg.certificate.kernel.value import lower_bound
from graphreg.certificate.proof import prove
from graphreg.certificate.proposing.plan import Planner
from graphreg.certificate.proposing.slack import Slack
from graphreg.datasets import random_problem

SMALL = 120  # equations of a problem that is evaluated in Fractions
PAD = Fraction(1, 2**85)  # of the bounds: more than what claims are padded by
INF = float("inf")


# ---- the theorem in rationals ----------------------------------------------------------------------------------------
def exact(values):
    return [Fraction(float(x)) for x in np.ravel(values)]


def columns_of(form):
    """B by columns: of each price of each sample, then of each flow of each edge, {equation: entry}; prices that add up
    to 0 without those of the sample's own class."""
    out = []
    for block in form.samples:
        k, own = block.width, block.loss.prices.dependent(block.y)
        for r, i in enumerate(block.node.tolist()):
            x = [Fraction(1)] if block.X is None else exact(block.X[r])
            for c in range(k):
                column = {i * form.d + f * k + c: a for f, a in enumerate(x) if a}
                if own is not None and c == own[r]:
                    continue
                if own is not None:
                    column |= {i * form.d + f * k + int(own[r]): -a for f, a in enumerate(x) if a}
                out.append(column)
    for edge in form.edges:
        at = edge.columns(form.d).tolist()
        composed = edge.penalty.composed()
        mix = np.eye(len(at)) if composed is None else composed[0]
        for i, j in zip(edge.tail.tolist(), edge.head.tolist(), strict=True):
            for row in mix:
                column = {i * form.d + f: a for f, a in zip(at, exact(row), strict=True) if a}
                if j >= 0:
                    column |= {j * form.d + f: -a for f, a in zip(at, exact(row), strict=True) if a}
                out.append(column)
    return out


@dataclass
class Statement:
    """A witness, evaluated: the equations that it does not close, and how far prices and flows may move."""

    open: set[int]
    v: list[Fraction]
    spread: list[Fraction]


def stated(form, witness):
    B, R = columns_of(form), witness.answers.R.tocoo()
    N, z = form.n * form.d, exact(witness.z)
    v = [a + b for a, b in zip(exact(witness.high), exact(witness.low), strict=True)]
    rest, off = [Fraction(0)] * N, [{i: Fraction(1)} for i in range(N)]  # Bv, and I - BR by columns
    spread, moves = [Fraction(0)] * len(B), set()
    for j, column in enumerate(B):
        for i, a in column.items():
            rest[i] += a * v[j]
    for j, k, r in zip(R.row.tolist(), R.col.tolist(), exact(R.data), strict=True):
        spread[j] += abs(r) * z[k]
        moves.add(j)
        for i, a in B[j].items():
            off[k][i] = off[k].get(i, Fraction(0)) - a * r
    needed = [abs(x) for x in rest]
    for k, column in enumerate(off):
        for i, e in column.items():
            needed[i] += abs(e) * z[k]
    live = [j for j in range(len(B)) if v[j] or j in moves]
    dropped = witness.dropped
    bad = {i for i in range(N) if i not in dropped and needed[i] > z[i]}
    for i, y in dropped.items():
        zero = all(sum(x * B[j].get(e, 0) for e, x in y.items()) == 0 for j in live)
        if not (y.get(i) and zero and not any(e in dropped for e in y if e != i) and z[i] == 0):
            bad.add(i)
    return Statement(bad, v, spread)


def conjugate_of(loss):
    """s l*(x / s; y) for a price x, inf outside of its domain; None where it is no rational number."""
    name, parameter = loss.statement().name, loss.statement().parameter
    half = Fraction(1, 2)

    def inside(b, low, high):
        return (low is None or b >= low) and (high is None or b <= high)

    def at(x, y, s):
        b = x / s
        if name in ("squared", "mean"):
            return s * (half * b * b + b * y)
        if name == "huber":
            return s * (half * b * b + b * y) if abs(b) <= Fraction(parameter) else INF
        if name == "quantile":
            return s * b * y if inside(b, -Fraction(parameter), Fraction(1.0 - parameter)) else INF
        if name == "hinge":
            return s * b * y if -1 <= b * y <= 0 else INF
        return s * (half * b * b + b * y) if b * y <= 0 else INF

    return at if name in ("squared", "mean", "huber", "quantile", "hinge", "squared_hinge") else None


def of_samples(block, take):
    """The sum of the largest conjugates; None where they are no rational numbers."""
    at, total = conjugate_of(block.loss), Fraction(0)
    if at is None:
        return None
    targets = np.reshape(block.loss.stated_targets(block.y), (len(block.node), -1))
    offsets = block.offset.reshape(len(block.node), -1)
    for r, s in enumerate(exact(block.scale)):
        for y, o in zip(exact(targets[r]), exact(offsets[r]), strict=True):
            x, around = next(take)
            total += max(at(e, y, s) - e * o for e in (x - around, x + around))  # convex: at an end
    return total


def flow_value(stated, c, x):
    """The largest c phi*(u / c) over |u - x| <= around, for flows x and what is around them; inf outside the domain."""
    far = [abs(u) + around for u, around in x]
    square = sum(u * u for u in far)
    if stated.name in ("L1", "LInf"):
        return 0 if (max(far) if stated.name == "L1" else sum(far)) <= c else INF
    if stated.name == "L2":
        return 0 if square <= c * c else INF
    if stated.name in ("SquaredL2", "HuberNorm"):
        least = square if stated.name == "SquaredL2" else (c * Fraction(stated.parameter)) ** 2
        return square / (2 * c) if square <= least else INF
    if stated.name in ("NonNegative", "Box"):
        ends = stated.parameter or [(0.0, None)] * len(x)
        return sum(max(support(u - a, *end), support(u + a, *end)) for (u, a), end in zip(x, ends, strict=True))
    assert stated.name == "Zero", stated.name
    return 0


def support(u, low, high):
    """The largest u z over low <= z <= high."""
    end = high if u > 0 else low
    return Fraction(0) if u == 0 else INF if end is None or not np.isfinite(end) else u * Fraction(end)


def of_edges(edge, k, take):
    """The same of flows."""
    mix, penalty = edge.penalty.composed() or (None, edge.penalty)
    stated, total = penalty.statement(k if mix is None else len(mix)), Fraction(0)
    if stated.name in ("Quadratic", "Ball") or (mix is not None and edge.center is not None):
        return None
    for e, c in enumerate(exact(edge.weight)):
        x = [next(take) for _ in range(k if mix is None else len(mix))]
        total += flow_value(stated, c, x)
        if edge.center is not None:
            pairs = zip(exact(edge.center[e]), x, strict=True)
            total += sum(m * u + abs(m) * around for m, (u, around) in pairs)
    return total


def rational_bound(form, found):
    """The bound of all components over the box; None where a conjugate is no rational number."""
    take = iter(zip(found.v, found.spread, strict=True))
    parts = list[Fraction | None]()
    for block in form.samples:
        parts.append(of_samples(block, take))
        if parts[-1] is None:
            return None
    parts += [of_edges(edge, form.width(edge), take) for edge in form.edges]
    return None if None in parts else -sum(parts)


# ---- witnesses -------------------------------------------------------------------------------------------------------
def witness_of(system, planner, v, apart=False, plain=False, swept=True):
    """As certificates are made: one sweep of corrections, and sizes by the inequality itself."""
    slack = Slack.of(system, v)
    plan = planner.near(v, slack, np.zeros(len(v), dtype=bool), apart)
    left = system.residual(v, np.zeros_like(v))
    move = plan.answers.R @ plan.gathered((left.high + left.low).ravel())
    high, low = two_sum(v, -move if swept else np.zeros_like(move))
    low = np.zeros_like(low) if plain else low
    size = np.where(plan.kept, system.residual(high, low, plain).size().ravel(), 0.0)
    z = size
    for _ in range(len(z) + 3):
        z = np.where(plan.kept, size + 1.000001 * plan.answers.passed(z), 0.0)  # roundings grow from arc to arc
    return Witness(high, low, plan.answers, z * 1.001 + np.where(z > 0.0, 1e-280, 0.0), plan.dropped, plain)


def others(system, witness):
    """Witnesses that are wrong, or may be: with another z, R or v."""
    rng = np.random.default_rng(0)
    R = witness.answers.R
    if R.nnz:
        other = R.copy()
        other.data[rng.integers(R.nnz)] *= -1.0
        yield "another R", replace(witness, answers=Answers(system, other))
        yield "R without entries", replace(witness, answers=Answers(system, sp.csr_array(R.shape)))
    for factor in (0.0, 0.5, 0.99, 0.999999):
        yield f"z times {factor}", replace(witness, z=witness.z * factor)
    size = float(np.abs(witness.high).max(initial=0.0)) or 1.0
    for share in (1e-20, 1e-16, 1e-12, 1e-3):
        high = witness.high.copy()
        high[rng.integers(len(high))] += share * size
        yield f"v + {share}", replace(witness, high=high)


def small(kind, seed):
    """A problem of few equations, or None."""
    if kind == "random":
        model = random_problem(seed).model
    else:
        module = combined if kind == "combined" else families
        model = getattr(module, kind)(seed).model
    problem = gr.Problem(model)
    form = problem.form
    if form.n * form.d > SMALL or any(edge.penalty.statement(form.width(edge)) is None for edge in form.edges):
        return None
    return problem


CASES = [("random", s) for s in range(60)] + [(k, s) for k in ("singular", "absorbed", "combined") for s in range(12)]


@pytest.mark.parametrize("case", thinned(CASES, every=6))
def test_what_floats_accept_holds_in_rationals(case):
    kind, seed = case
    problem = small(kind, seed)
    if problem is None:
        pytest.skip("not small, or a penalty that cannot be stated")
    point = problem.solve(gap=1e-6, on_failure="return").certificate.dual_point
    form = problem.form
    system = System(form)
    planner, v, holds = Planner(system), system.flat(point), 0
    for apart, plain in ((False, False), (True, False), (False, True)):
        witness = witness_of(system, planner, v, apart, plain)
        for name, other in [("as it is", witness), *others(system, witness)]:
            try:
                box = balanced(system, other)
            except RefusedError:
                continue  # low parts beside plain sums, sizes out of range
            found = stated(form, other)
            broken = {int(form.component[i // form.d]) for i in found.open}
            assert broken <= set(np.flatnonzero(box.lost).tolist()), (name, apart, plain)
            if box.lost.any():
                continue
            holds += 1
            assert all(Fraction(a) >= b for a, b in zip(box.spread.tolist(), found.spread, strict=True))
            bound, value = rational_bound(form, found), lower_bound(system, box, plain).lower
            if bound is not None and np.isfinite(value).all():
                assert bound >= sum(exact(value))
    assert holds or kind != "random"


@pytest.mark.parametrize("seed", [0, 3, 8, 20, 33])
def test_what_is_wrong_is_refused_by_both(seed):
    """An imbalance is taken up by a witness; not with half of its z, with corrections in the other direction or with
    none, and not where another is added."""
    problem = small("random", seed)
    assert problem is not None
    system = System(problem.form)
    v = system.flat(problem.solve(gap=1e-6, on_failure="return").certificate.dual_point)
    v[0] += 1e-3 * np.abs(v).max()
    witness = witness_of(system, Planner(system), v, swept=False)
    R = witness.answers.R
    assert not balanced(system, witness).lost.any()
    assert not stated(problem.form, witness).open
    moved = v.copy()
    moved[0] += np.abs(v).max()
    for wrong in (
        replace(witness, z=0.5 * witness.z),
        replace(witness, answers=Answers(system, -R)),
        replace(witness, answers=Answers(system, sp.csr_array(R.shape))),
        replace(witness, high=moved),
    ):
        assert balanced(system, wrong).lost.any()
        assert stated(problem.form, wrong).open


@pytest.mark.parametrize("case", thinned(CASES, every=4))
def test_a_proof_is_no_worse_than_the_certificate(case, tmp_path):
    problem = small(*case)
    if problem is None:
        pytest.skip("not small, or a penalty that cannot be stated")
    certificate = problem.solve(gap=1e-6, on_failure="return").certificate
    assert certificate.valid
    proved = prove(certificate, tmp_path / "proof.json")
    size = abs(proved.lower) + abs(proved.upper) + 1
    assert Fraction(certificate.dual) <= proved.lower + PAD * size
    assert proved.lower <= proved.upper
    assert exact_primal(problem.form, certificate.w) <= proved.upper <= Fraction(certificate.primal) + PAD * size
    assert verify.check((tmp_path / "proof.json").read_bytes()).hash == proved.hash
