"""The verifier of conic certificates, judged by rational numbers: what it says holds, and it says so.

Cases lie at the edge of what holds, so that a slack that is left out, a sign or a side is seen.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
import scipy.sparse as sp

from graphreg import verify as checker
from graphreg.certificate import Pair, RefusedError
from graphreg.conic import verify
from graphreg.conic.programme import Block, Programme, System, contradiction, descent, dual, primal
from graphreg.conic.verify import Factor, Proposal, Reached

EPS = 2.0**-52
MARGIN = 1 + Fraction(1, 1000)


@pytest.fixture(autouse=True)
def _arithmetic():
    checker.begin(True)


def number(x):
    return Fraction(float(x))


def exact(x):
    return checker.rational(*number(x).as_integer_ratio())


def is_inside(kind, v, dual=False, size=None, a=0.5):
    """Of numbers, doubles or rationals."""
    v = [checker.rational(int(t.numerator), int(t.denominator)) for t in map(Fraction, v)]
    return checker.is_inside(kind, size or len(v), exact(a), v, dual)


def proposal(
    high, low=0.0, *, rows=(), columns=(), radius=(), core=(), scale=(), weight=None, factor=None, left=(), witness=()
):
    high = np.asarray(high, float)
    ints = [np.asarray(list(x), int) for x in (rows, columns, core, left)]
    floats = [np.asarray(list(x), float) for x in (radius, scale)]
    weight = np.zeros(len(high)) if weight is None else np.asarray(weight, float)
    low = np.zeros(len(high)) + low
    return Proposal(
        high,
        low,
        ints[0],
        ints[1],
        floats[0],
        ints[2],
        floats[1],
        weight,
        factor,
        ints[3],
        tuple(witness) or ({},) * len(ints[3]),
    )


def factor_of(L, shift):
    return Factor(sp.csr_array(np.asarray(L, float)), shift)


def reached(high, low=0.0, radius=0.0, missed=(), left=()):
    given = proposal(high, low, left=left)
    return Reached(given, np.zeros(len(given.high)) + radius, np.asarray(list(missed), float))


def system(M, c, kinds="free", dual=False):
    M = sp.csr_array(np.asarray(M, float))
    blocks = (Block(kinds, slice(0, M.shape[1])),) if isinstance(kinds, str) else kinds
    return System(M, np.asarray(c, float), blocks, dual)


def refused(act, *arguments):
    try:
        act(*arguments)
    except RefusedError:
        return True
    return False


# ---- equations -------------------------------------------------------------------------------------------------------
def test_residuals_are_known_to_the_square_of_rounding():
    rng = np.random.default_rng(0)
    for _ in range(30):
        M = rng.standard_normal((4, 6)) * 10.0 ** rng.integers(-8, 9, (4, 6)) * (rng.random((4, 6)) < 0.7)
        c, high = rng.standard_normal(4), rng.standard_normal(6) * 10.0 ** rng.integers(-5, 6, 6)
        low = high * EPS * rng.standard_normal(6)
        found = verify.residual(sp.csr_array(M), c, high, low)
        for i in range(4):
            value = sum((number(M[i, j]) * (number(high[j]) + number(low[j])) for j in range(6)), -number(c[i]))
            size = sum(abs(number(M[i, j]) * number(high[j])) for j in range(6)) + 1
            assert abs(number(found.high[i]) + number(found.low[i]) - value) <= number(found.error[i])
            assert number(found.error[i]) <= size * Fraction(EPS) ** 2 * 4096


def test_low_parts_of_a_residual_are_paid_for():
    """Alone, of any sign, and where their products underflow."""
    for a, low in ((0.1, 0.3), (0.1, -0.3), (-0.1, 0.3), (1e-200, 1e-200), (1e-200, -1e-200)):
        found = verify.residual(sp.csr_array([[a]]), np.zeros(1), np.zeros(1), np.array([low]))
        off = abs(number(a) * number(low) - number(found.high[0]) - number(found.low[0]))
        assert 0 < off <= number(found.error[0])


def test_the_solution_is_within_the_radius():
    """Square systems, of which the only solution is known: by pairs, by a core, and by both."""
    rng = np.random.default_rng(1)
    for trial in range(60):
        n, k = 5, trial % 6  # of which k pairs
        M = np.tril(rng.integers(-3, 4, (n, n))) + np.diag(rng.integers(4, 9, n))
        M[k:, :k] = 0  # the core does not see the columns of pairs, which come last in their rows
        M = M.astype(float)
        upper = rng.integers(-3, 4, (k, n - k)).astype(float)
        M[:k, k:] = upper
        y = rng.standard_normal(n)
        exactly = [number(v) for v in y + 10.0 ** rng.integers(-9, -2) * rng.standard_normal(n)]
        c = np.array([float(sum(number(a) * v for a, v in zip(row, exactly, strict=True))) for row in M])
        solution = [checker.solved([[exact(a) for a in row] for row in M], [exact(v) for v in c])][0]
        core = M[k:, k:]
        D = 2.0 ** rng.integers(-2, 3, n - k)
        W = 2.0 ** rng.integers(-2, 3, n - k)
        B = core * D[:, None] * W
        S = B @ B.T
        shift = 0.9 * np.linalg.eigvalsh(S)[0] if k < n else 0.0
        factor = factor_of(np.linalg.cholesky(S - shift * np.eye(n - k)), shift) if k < n else None
        r = np.abs(M @ y - c) + 1e-13
        rho = np.zeros(n)
        if k < n:
            rho[k:] = W * (D * r[k:]).max() * np.sqrt((n - k) / (1 - 1e-6) / shift)
        for i in range(k):
            others = np.delete(np.arange(n), i)
            rho[i] = (r[i] + np.abs(M[i, others]) @ rho[others]) / abs(M[i, i]) * 1.01
        given = {
            "rows": range(k),
            "columns": range(k),
            "radius": rho[:k],
            "core": range(k, n),
            "scale": D,
            "factor": factor,
        }
        found = verify.reach(system(M, c), proposal(y, weight=[*np.zeros(k), *W], **given))
        for j in range(n):
            off = abs(Fraction(int(solution[j].p), int(solution[j].q)) - number(y[j]))
            assert off <= number(found.radius[j])
            assert found.radius[j] <= 1.05 * rho[j] + 1e-12
        if k:
            given["radius"] = rho[:k] * np.where(np.arange(k) == k - 1, 0.9, 1.0)
            assert refused(verify.reach, system(M, c), proposal(y, weight=[*np.zeros(k), *W], **given))


def test_a_radius_is_not_less_than_the_correction():
    """One equation, and one in two numbers, of which the least correction is known: nothing may be lost."""
    for a, y in ((3.0, 1.0), (-0.25, 7.0), (1024.0, 1e-3)):
        c = a * y * (1 + 2.0**-20)
        off = abs(number(c) / number(a) - number(y))
        D, W = 2.0**-3, 2.0**4
        square = (a * D * W) ** 2
        factor = factor_of([[2.0**-10 * abs(a * D * W)]], square * (1 - 2.0**-20))
        found = verify.reach(system([[a]], [c]), proposal([y], core=[0], scale=[D], weight=[W], factor=factor))
        assert off <= number(found.radius[0]) <= off * MARGIN
        for room, holds in ((1 + 1e-6, True), (1 - 1e-9, False)):
            given = proposal([y], rows=[0], columns=[0], radius=[float(off) * room])
            assert refused(verify.reach, system([[a]], [c]), given) is not holds
        factor = factor_of([[2.0**-20 * abs(a * D * W)]], square * (1 - 2.0**-40))
        core = proposal([y], core=[0], scale=[D], weight=[W], factor=factor)
        slack = verify.reach(system([[a]], [a * y]), core, np.array([3.0]))  # y itself solves it, up to the slack
        assert 3 <= abs(number(a)) * number(slack.radius[0]) <= 3 * MARGIN


def test_a_correction_by_other_columns_is_paid_in_full():
    posed = system([[1.0, 1.0], [0.0, 1.0]], [0.0, 0.0])
    for room, holds in ((1 + 1e-6, True), (1 - 5e-8, False)):
        given = proposal([0.0, 0.0], rows=[0, 1], columns=[0, 1], radius=[1e-3 * room, 1e-3])
        assert refused(verify.reach, posed, given) is not holds


def test_what_needs_no_correction_is_not_moved():
    """In a core nothing moves where the equations hold exactly, nor what has no weight; else all that has some does."""
    factor = factor_of([[1.0]], 1.0)
    for slack, radius in ((0.0, [False, False, False]), (1e-250, [True, True, False])):
        given = proposal([1.0, 1.0, 1.0], core=[0], scale=[1.0], weight=[1.0, 1.0, 0.0], factor=factor)
        found = verify.reach(system([[1.0, 1.0, 1.0]], [3.0]), given, np.array([slack]))
        assert (found.radius > 0.0).tolist() == radius
        assert not ((found.radius > 0.0) & (found.radius < verify.LEAST)).any()


def test_rows_that_are_left_are_missed_by_no_more():
    M, c = [[1.0, 1.0], [2.0, 2.0], [1.0, 0.0]], [1.0, 2.0, 0.25]
    whole = {"rows": [0], "columns": [1], "radius": [1e-3]}
    found = verify.reach(system(M, c), proposal([0.25, 0.7499], left=[1, 2], **whole))
    assert found.missed[0] >= 2e-4 + 2e-3
    assert found.missed[1] == 0.0
    exactly = verify.reach(system(M, c), proposal([0.25, 0.7499], left=[1, 2], witness=({0: Fraction(2)}, {}), **whole))
    assert exactly.missed[0] == 0.0
    nearly = verify.reach(
        system(M, [1.0, 2.0 + 2 * EPS, 0.25]),
        proposal([0.25, 0.7499], left=[1, 2], witness=({0: Fraction(2)}, {}), **whole),
    )
    assert nearly.missed[0] > 0.0
    no = verify.reach(
        system(M, c), proposal([0.25, 0.7499], left=[1, 2], witness=({0: Fraction(1)}, {0: Fraction(1)}), **whole)
    )
    assert (no.missed > 0.0).tolist() == [True, False]


def test_rows_that_are_left_do_not_follow_from_each_other():
    M, c = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 1.0, 1.0]
    pair = {"rows": [0], "columns": [0], "radius": [1e-6]}
    both = ({2: Fraction(1)}, {1: Fraction(1)})
    found = verify.reach(system(M, c), proposal([1.0, 0.0], weight=[0.0, 0.0], left=[1, 2], witness=both, **pair))
    assert (found.missed >= 1.0).all()


def good():
    """A core of one row, a pair, and a row that is left."""
    M = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0], [2.0, 2.0, 1.0]])
    factor = factor_of([[1.0]], 1.0)
    given = {"rows": [0], "columns": [0], "radius": [1e-6], "core": [1], "scale": [1.0], "weight": [0.0, 1.0, 1.0]}
    return system(M, [3.0, 2.0, 5.0]), {"high": [1.0, 1.0, 1.0], **given, "factor": factor, "left": [2]}


WRONG = {
    "a row twice": {"left": [2, 0]},
    "a row is missing": {"left": []},
    "a column twice": {"rows": [0, 2], "columns": [0, 0], "radius": [1e-6, 1e-6], "left": []},
    "a negative radius": {"radius": [-1e-6]},
    "no radius": {"radius": [np.nan]},
    "an infinite point": {"high": [np.inf, 1.0, 1.0]},
    "a point that is too large": {"high": [1e150, 1.0, 1.0]},
    "no low part": {"low": np.nan},
    "a pair with a weight": {"weight": [1.0, 1.0, 1.0]},
    "a pair's column in the core": {"columns": [1], "weight": [1.0, 0.0, 1.0]},
    "a scale of 3": {"scale": [3.0]},
    "a weight of 3": {"weight": [0.0, 3.0, 1.0]},
    "a scale of 0": {"scale": [0.0]},
    "a scale of -1": {"scale": [-1.0]},
    "no factor": {"factor": None},
    "no weights": {"weight": [0.0, 0.0, 0.0]},
    "tiny weights": {"weight": [0.0, 2.0**-400, 2.0**-400]},
    "a factor of no shift": {"factor": factor_of([[2.0**0.5]], 0.0)},
    "a factor that is not known": {"factor": factor_of([[np.nan]], 1.0)},
    "a factor that is infinite": {"factor": factor_of([[np.inf]], 1.0)},
    "a shift that is not known": {"factor": factor_of([[1.0]], np.nan)},
    "a factor of another size": {"factor": factor_of(np.eye(2), 1.0)},
}


def test_what_is_wrong_with_a_pair_is_said():
    posed = system([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    for columns, radius, message in (
        ([0, -1], [1.0, 1.0], "a column that is none"),
        ([0, 2], [1.0, 1.0], "a column that is none"),
        ([1, 1], [1.0, 1.0], "two rows share a column"),
        ([0, 1], [1.0, 1e-210], "a pair of no room"),
        ([1, 0], [1.0, 1.0], "a correction leaves its room"),  # of rows without entries there
    ):
        with pytest.raises(RefusedError, match=message):
            verify.reach(posed, proposal([0.0, 0.0], rows=[0, 1], columns=columns, radius=radius))
    with pytest.raises(RefusedError, match="two rows share a column"):  # a column without a row
        verify.reach(system([[1.0, 0.0]], [0.0]), proposal([0.0, 0.0], rows=[0], columns=[0, 1], radius=[1.0, 1.0]))
    with pytest.raises(RefusedError, match="a correction leaves its room"):  # of a row without entries
        verify.reach(system([[0.0]], [0.0]), proposal([0.0], rows=[0], columns=[0], radius=[1.0]))
    given = replace(proposal([0.0, 0.0], rows=[0], columns=[0], radius=[1.0], left=[1]), witness=())
    with pytest.raises(ValueError, match="shorter"):  # a row that is left, and no witness of it
        verify.reach(posed, given)


@pytest.mark.parametrize("wrong", WRONG)
def test_proposals_that_prove_nothing(wrong):
    posed, given = good()
    assert verify.reach(posed, proposal(**given)).radius.max() <= 1e-6
    changed = given | WRONG[wrong]
    assert refused(verify.reach, posed, proposal(changed.pop("high"), changed.pop("low", 0.0), **changed))


def test_the_own_entry_of_a_pair_is_as_small_as_it_is():
    """1e-120 x = 1e-130 holds at 1e-10, far from 0: entries are raised where they cost room, not where they give it."""
    posed = system([[1e-120]], [1e-130])
    for radius, holds in ((1e-29, False), (9e-11, False), (2e-10, True)):
        assert refused(verify.reach, posed, proposal([0.0], rows=[0], columns=[0], radius=[radius])) is not holds


def test_scales_are_powers_of_two_where_a_factor_fits_them():
    """Else the scaled rows would be rounded, and nothing pays for that."""
    posed, given = good()
    for name, scale, square, holds in (
        ("scale", 4.0, 32.0, True),
        ("scale", 3.0, 18.0, False),
        ("weight", 4.0, 17.0, True),
        ("weight", 3.0, 10.0, False),
    ):
        changed = given | {
            name: [scale] if name == "scale" else [0.0, scale, 1.0],
            "factor": factor_of([[(square - 1.0) ** 0.5]], 1.0),
        }
        assert refused(verify.reach, posed, proposal(changed.pop("high"), **changed)) is not holds


def test_scales_are_not_near_the_end_of_the_range():
    posed, given = good()
    for power, holds in ((400, True), (500, False)):
        M = sp.csr_array(sp.diags_array([1.0, 2.0**-power, 1.0]) @ posed.M)
        small = System(M, posed.c * [1.0, 2.0**-power, 1.0], posed.blocks, False)
        assert refused(verify.reach, small, proposal(**(given | {"scale": [2.0**power]}))) is not holds


def test_entries_of_a_core_are_in_range():
    for power, holds in ((-200, True), (-300, False), (200, True), (300, False)):
        size = 2.0**power
        factor = factor_of([[size / 2.0]], 0.75 * size**2)
        given = proposal([1.0], core=[0], scale=[1.0], weight=[1.0], factor=factor)
        assert refused(verify.reach, system([[size]], [size]), given) is not holds


def test_rows_that_differ_by_some_slack_are_paid_for():
    posed, given = good()
    for slack, holds in (
        ([1.9e-6, 0.0, 0.0], True),  # the pair has 2 (1e-6)
        ([2.1e-6, 0.0, 0.0], False),
        ([0.0, 3e-6, 0.0], False),  # what the core may move is taken from the pair
        ([-1e-9, 0.0, 0.0], False),
        ([0.0, 0.0, np.nan], False),
        ([0.0, 0.0, np.inf], False),
    ):
        assert refused(verify.reach, posed, proposal(**given), np.array(slack)) is not holds, slack
    found = verify.reach(posed, proposal(**given), np.array([0.0, 1e-7, 1e-3]))
    assert 1e-7 / np.sqrt(2) <= found.radius[1] <= 1.01e-7
    assert found.missed[0] >= 1e-3 + 2e-6
    follows = given | {"witness": ({0: Fraction(1), 1: Fraction(1)},)}
    for slack in np.vstack([np.zeros(3), 1e-9 * np.eye(3)]):
        assert verify.reach(posed, proposal(**follows), slack).missed.any() == slack.any()


def test_what_is_held_stays_and_lies_in_no_cone_of_zeros():
    posed, given = good()
    assert refused(verify.reach, System(posed.M, posed.c, (Block("zero", slice(0, 3)),), False), proposal(**given))
    for kind, holds in (("nonneg", True), ("free", True)):
        other = System(posed.M, posed.c, (Block(kind, slice(0, 3)),), False)
        assert refused(verify.reach, other, proposal(**given)) is not holds
    found = verify.reach(posed, proposal(**given))
    assert found.live().all()
    assert reached([0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1e-20, 0.0], [0.0, 0.0, 0.0, 1e-20]).live().tolist() == [
        False,
        True,
        True,
        True,
    ]


# ---- eigenvalues -----------------------------------------------------------------------------------------------------
def semidefinite(S):
    return checker.semidefinite([dict(enumerate(row)) for row in S])


def test_a_floor_is_below_all_eigenvalues():
    rng = np.random.default_rng(2)
    for trial in range(120):
        n = int(rng.integers(1, 8))
        G = rng.standard_normal((n, n)) * (rng.random((n, n)) < (0.4 if trial % 2 else 1.0))
        S = G @ G.T + np.diag(rng.random(n))
        least = np.linalg.eigvalsh(S)[0]
        shift = float(least * (0.5, 0.9, 1 - 1e-9, 1.0, 1.1)[trial % 5])
        values, Q = np.linalg.eigh(S - shift * np.eye(n))
        L = Q * np.sqrt(np.maximum(values, 0.0))
        off = np.full(n, (0.0, 1e-12, 1e-3)[trial % 3])
        f = verify.floor(sp.csr_array(S), off, factor_of(L, shift))
        assert abs(f - verify.floor(S, off, Factor(L, shift))) <= 1e-12 * np.abs(S).sum()
        assert f <= least - off[0] + 1e-13 * np.abs(S).sum()
        rows = [[exact(S[i, j]) - (exact(f) + exact(off[0]) if i == j else 0) for j in range(n)] for i in range(n)]
        assert semidefinite(rows)
        if trial % 5 == 0 and n > 1:
            assert f >= least * 0.5 - off[0] - 1e-9


def test_a_factor_may_have_fewer_columns():
    S = np.diag([2.0, 1.0])
    for L in (np.array([[1.0], [0.0]]), sp.csr_array([[1.0], [0.0]])):
        assert 1.0 - 1e-6 < verify.floor(sp.csr_array(S), np.zeros(2), Factor(L, 1.0)) <= 1.0


def test_roundings_of_a_floor_go_by_magnitudes():
    """Each entry is a sum of products, of which S and the shift are taken: so many units of their sizes."""
    rng = np.random.default_rng(12)
    for n, k in ((1, 1), (3, 3), (4, 2), (2, 5)):
        S, L = rng.standard_normal((n, n)), rng.standard_normal((n, k))
        S = np.tril(S) + np.tril(S, -1).T
        for shift in (0.5, -0.5):
            found = verify.roundings(sp.csr_array(S), Factor(L, shift))
            exactly = verify.roundings(sp.csr_array(S), Factor(sp.csr_array(L), shift))
            size = np.abs(S).sum(axis=1) + np.abs(L) @ np.abs(L).sum(axis=0) + abs(shift)
            assert (found >= (k + 3) * EPS * size).all()
            assert (found <= (k + 9) * EPS * size).all()
            assert np.allclose(found, exactly, rtol=1e-12)


def test_what_a_floor_may_lose():
    """Numbers of which the rounding is known: 1 + 2^-53 is 1 to a double."""
    one, tiny = factor_of([[2.0**-15]], 1.0 - 2.0**-30), 2.0**-53
    for value in (1.0, 1.0 - tiny):
        f = verify.floor(sp.csr_array([[value]]), np.zeros(1), one)
        assert number(f) <= number(value)
        assert f > 1.0 - 2.0**-29
    assert verify.floor(sp.csr_array([[1.0]]), np.zeros(1), factor_of([[0.0]], 0.5)) <= 1.0
    assert refused(verify.floor, sp.csr_array(np.eye(2)), np.zeros(2), Factor(np.ones((1, 1)), 0.5))
    assert verify.floor(sp.csr_array([[0.0]]), np.zeros(1), factor_of([[1e-200]], 5e-324)) <= 0.0  # products underflow
    for wrong in (np.diag([1.0, np.nan]), np.diag([np.inf, 1.0])):
        assert verify.floor(sp.csr_array(np.eye(2)), np.zeros(2), factor_of(wrong, 0.0)) == -np.inf


def test_curvatures():
    assert verify.curvature(sp.csr_array(np.diag([1.0, 2.0])), None) == 0.0
    assert verify.curvature(sp.csr_array(np.diag([1.0, -2.0])), None) == -2.0
    assert verify.curvature(sp.csr_array((2, 2)), None) == 0.0
    S = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert verify.curvature(sp.csr_array(S), factor_of(np.linalg.cholesky(S - 0.5 * np.eye(2)), 0.5)) == 0.0
    S = np.array([[1.0, 2.0], [2.0, 1.0]])
    found = verify.curvature(sp.csr_array(S), factor_of(np.linalg.cholesky(S + 1.001 * np.eye(2)), -1.001))
    assert -1.0011 < found <= -1.0
    assert refused(verify.curvature, sp.csr_array([[1.0, 0.5], [0.4, 1.0]]), factor_of(np.eye(2), 0.0))
    assert refused(verify.curvature, sp.csr_array(S), None)
    ones = sp.csr_array(np.ones((2, 2)))  # singular, which no factor shows
    assert verify.curvature(ones, factor_of(np.linalg.cholesky(ones.toarray() + np.eye(2)), -1.0)) == 0.0


def test_curvatures_of_larger_matrices():
    """Rational numbers are for few rows, for the sake of singular matrices."""
    for n, found in ((verify.EXACTLY, 0.0), (verify.EXACTLY + 1, -1e-6)):
        ones = np.ones((n, n))
        factor = factor_of(np.linalg.cholesky(ones + 1e-6 * np.eye(n)), -1e-6)
        assert verify.curvature(sp.csr_array(ones), factor) == pytest.approx(found, rel=1e-3)
        factor = factor_of(np.linalg.cholesky(ones + 0.5 * np.eye(n)), 0.5)
        assert verify.curvature(sp.csr_array(ones + np.eye(n)), factor) == 0.0
    S = np.array([[0.5, 1.0], [1.0, 0.5]])
    found = verify.curvature(sp.csr_array(S), factor_of(np.linalg.cholesky(S + 0.501 * np.eye(2)), -0.501))
    assert -0.502 < found <= -0.5


def test_semidefinite_matrices_with_many_zeros():
    rng, seen = np.random.default_rng(11), {True: 0, False: 0}
    for trial in range(120):
        V = rng.integers(-2, 3, (5, 4)) * (rng.random((5, 4)) < 0.4)
        S = (V @ V.T).astype(float)
        i, j = rng.integers(0, 5, 2)
        S[i, j] -= trial % 2
        S[j, i] = S[i, j]
        said = verify.semidefinite(sp.csr_array(S))
        assert said == semidefinite([[exact(x) for x in row] for row in S])
        seen[said] += 1
    assert min(seen.values()) > 30


def test_products_of_a_core():
    rng = np.random.default_rng(3)
    for _ in range(20):
        B = rng.standard_normal((4, 9)) * (rng.random((4, 9)) < 0.7)
        S, off = verify.squared(sp.csr_array(B))
        for i in range(4):
            wrong = sum(
                abs(sum((number(B[i, k]) * number(B[j, k]) for k in range(9)), Fraction(0)) - number(S.toarray()[i, j]))
                for j in range(4)
            )
            assert wrong <= number(off[i]) <= 1e-13


# ---- cones -----------------------------------------------------------------------------------------------------------
def corners(v, off):
    """The corners of a box; of many coordinates some."""
    signs = list(product((-1, 1), repeat=len(v)))[:: max(1, 2 ** len(v) // 8)]
    return [[number(a) + s * number(b) for a, b, s in zip(v, off, each, strict=True)] for each in signs]


def test_lines():
    block = Block("nonneg", slice(0, 1))
    for high, low, radius, holds in (
        (1.0, 0.0, 1.0 - 1e-6, True),
        (1.0, 0.0, 1.0 + 1e-12, False),
        (1.0, -1e-16, 1.0, False),
        (0.0, 0.0, 0.0, True),
        (0.0, -1e-30, 0.0, False),
        (-1.0, 0.0, 0.0, False),
        (1e-17, 0.0, 1e-18, True),
        (np.nan, 0.0, 0.0, False),
    ):
        assert verify.inside(block, reached([high], low, radius), False) is holds


def test_all_lines_are_inside():
    block = Block("nonneg", slice(0, 2))
    for v, radius, holds in (((1.0, 1.0), 0.5, True), ((1.0, -1.0), 0.5, False), ((1.0, 0.25), 0.5, False)):
        assert verify.inside(block, reached(v, radius=radius), False) is holds
        assert verify.inside(block, reached(v[::-1], radius=radius), False) is holds


def test_the_longest_row():
    assert verify.longest(sp.csr_array([[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]])) == 3
    assert verify.longest(sp.csr_array((0, 3))) == 0


def test_a_box_about_a_sum_that_is_rounded():
    """high + low rounds to what its radius nearly cancels."""
    high, low, radius = [1.0, 1.5 * 2.0**-54], [-(2.0**-54), 0.0], [1 - 2.0**-53, 0.0]
    assert not verify.inside(Block("soc", slice(0, 2), 2.0), reached(high, low, radius), False)
    p = 2.0**-60  # p log(z / p) = -1.5 2^-54, and x is at most -2^-54
    high, low = [-1.0, p, p * exp(-96)], [2.0**-54, 0.0, 0.0]
    assert not verify.inside(Block("exp", slice(0, 3)), reached(high, low, [1 - 2.0**-53, 0.0, 0.0]), False)
    assert verify.inside(Block("exp", slice(0, 3)), reached(high, 0.0, [1 - 2.0**-49, 0.0, 0.0]), False)


def test_second_order_cones():
    """At the edge: the nearest doubles to the length of a vector, and boxes that reach up to there, or beyond."""
    rng, seen = np.random.default_rng(4), {True: 0, False: 0}
    for _ in range(600):
        k = int(rng.integers(2, 9))
        u = rng.standard_normal(k - 1) * 10.0 ** rng.integers(-3, 4)
        off = np.abs(rng.standard_normal(k)) * float(rng.choice([0.0, 1e-16, 1e-9])) * np.linalg.norm(u)
        reach = np.linalg.norm(np.abs(u) + off[1:]) + off[0]
        t = reach * (1 + EPS * float(rng.integers(-8, 2 * k + 60)))
        said = verify.in_second_order(np.r_[t, u][None], off[None])
        worst = [number(t) - number(off[0]), *(abs(number(x)) + number(o) for x, o in zip(u, off[1:], strict=True))]
        true = is_inside("soc", worst)
        assert true or not said
        seen[said] += 1
        assert verify.in_second_order(np.r_[reach * (1 + 1e-12), u][None], off[None])
    assert min(seen.values()) > 100
    two = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert not verify.in_second_order(two, np.zeros((2, 2)))
    assert not verify.in_second_order(two[::-1], np.zeros((2, 2)))
    assert verify.in_second_order(np.array([[2.0, 1.0], [0.0, 0.0]]), np.zeros((2, 2)))
    assert not verify.in_second_order(np.array([[0.0, 0.0]]), np.array([[0.0, 1e-9]]))
    assert not verify.in_second_order(np.array([[-5.0, 3.0, 4.0]]), np.zeros((1, 3)))
    assert not verify.in_second_order(np.array([[1e-155, 1.1e-155]]), np.zeros((1, 2)))
    for radius, low, holds in ((0.4, 0.0, True), (0.6, 0.0, False), (0.0, 1e-3, True), (0.5, 1e-3, False)):
        block = Block("soc", slice(0, 2), 2.0)
        assert verify.inside(block, reached([2.0, 1.0], [0.0, low], radius), False) is holds
    block = Block("soc", slice(0, 4), 2.0)
    assert not verify.inside(block, reached([2.0, 1.0, 1.0, 2.0]), True)
    assert verify.inside(block, reached([0.0] * 4), True)
    assert not verify.inside(block, reached([0.0] * 4, 0.0, [0, 0, 0, 1e-9]), True)
    assert not verify.inside(block, reached([0.0, 5e-324, 0.0, 0.0]), True)  # so small that its share of EPS is 0


def is_matrix(v, k, root):
    """The same without what the checker takes off for all roots of two."""
    S, entries = [[Fraction(0)] * k for _ in range(k)], iter(v)
    for j in range(k):
        for i in range(j + 1):
            S[i][j] = S[j][i] = next(entries) / (1 if i == j else number(root))
    return semidefinite([[checker.rational(x.numerator, x.denominator) for x in row] for row in S])


def test_matrices():
    rng, seen = np.random.default_rng(5), {True: 0, False: 0}
    for trial in range(300):
        k = int(rng.integers(1, 5))
        j, i = np.tril_indices(k)
        values = rng.random(k) + 0.1
        values[0] = float(rng.choice([-1e-15, -1e-16, 0.0, 1e-16, 1e-15, 1e-14, 1e-13, 1e-3]))
        Q, _ = np.linalg.qr(rng.standard_normal((k, k)))
        S = (Q * values) @ Q.T
        if trial % 2:
            scale = 10.0 ** rng.integers(-6, 7, k)
            S = S * scale * scale[:, None]
        v = S[i, j] * np.where(i == j, 1.0, 2**0.5)
        off = np.abs(v) * float(rng.choice([0.0, EPS / 2, 1e-12])) * rng.random(len(v))
        if not v.any():  # which `inside` knows
            continue
        said = verify.in_semidefinite(v, off, k)
        if said:
            assert all(
                is_matrix(corner, k, root) for corner in corners(v, off) for root in (2**0.5, np.nextafter(2**0.5, 2))
            )
        seen[said] += 1
        if values[0] == 1e-3:
            assert said
    assert min(seen.values()) > 50
    assert verify.in_semidefinite(np.array([0.0, 0.0, 1.0]), np.zeros(3), 2)
    assert not verify.in_semidefinite(np.array([0.0, 1e-9, 1.0]), np.zeros(3), 2)
    assert not verify.in_semidefinite(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1e-9, 0.0]), 2)
    assert not verify.in_semidefinite(np.array([0.0, 0.0, 1.0]), np.array([1e-9, 0.0, 0.0]), 2)
    assert not verify.in_semidefinite(np.array([1.0, 2.0, 1.0]), np.zeros(3), 2)
    for radius, holds in (
        (0.002, True),
        (0.32, False),
    ):
        block = Block("psd", slice(0, 3), 2.0)
        assert verify.inside(block, reached([1.0, 0.5 * 2**0.5, 1.0], 0.0, radius), False) is holds
    assert not verify.in_semidefinite(np.array([1e-150, 1.0e-141, 1e-150]), np.zeros(3), 2)
    three = 1e-140 * np.array([1.01, -0.95 * 2**0.5, 1.01, -0.95 * 2**0.5, -0.95 * 2**0.5, 1.01])
    four = np.append(three, [0.0, 0.0, 0.0, 1.0])
    assert not verify.in_semidefinite(four, np.zeros(10), 4)  # what is dropped is paid for


def test_logarithms():
    rng = np.random.default_rng(6)
    r = np.concatenate(
        [
            10.0 ** rng.uniform(-250, 250, 60),
            1 + rng.standard_normal(60) * 10.0 ** rng.integers(-12, -1, 60),
            [1.0, 0.5**0.5, 2**0.5],
        ]
    )
    value, missing = verify.log_bounds(r)
    for x, v, e in zip(r, value, missing, strict=True):
        assert checker.log(exact(x)) >= exact(v) - exact(e)
        assert -checker.log(1 / exact(x)) <= exact(v) + exact(e)
        assert e <= 32 * EPS * (abs(v) + 1)
    value, missing = verify.log_bounds(np.array([1.0]))
    assert value[0] == 0.0
    assert missing[0] < 1e-290


def edge(dual, p, z):
    """x at which (x, p, z) is on the boundary of the exponential cone; of the dual cone (-p, y, z)."""
    return p * log(z / p) if not dual else -p * (1 + log(z / p))


@pytest.mark.parametrize("dual", [False, True])
def test_exponential_cones(dual):
    rng, seen = np.random.default_rng(7), {True: 0, False: 0}
    for _ in range(600):
        p, z = np.exp(rng.uniform(-3, 3, 2))
        size = float(rng.choice([0.0, 1e-15, 1e-10, 1e-2]))
        off = size * rng.random(3) * np.array([1.0, p, z]) * 0.5
        ends = [edge(dual, p + s * off[0 if dual else 1], z - off[2]) for s in (-1, 1)]
        at = min(ends) - off[0] if not dual else max(ends) + off[1]
        room = EPS * float(rng.integers(-40, 200)) * (abs(at) + p + 1)
        v = np.array([at - room, p, z]) if not dual else np.array([-p, at + room, z])
        box = tuple(np.array([x]) for x in v), tuple(np.array([x]) for x in off)
        said = bool(verify.in_exponential(*box, 0.0, dual)[0])
        if said:
            assert all(is_inside("exp", corner, dual) for corner in corners(v, off))
        seen[said] += 1
        far = 1e-9 * (abs(at) + p + 1)
        v = np.array([at - far, p, z]) if not dual else np.array([-p, at + far, z])
        assert verify.in_exponential(tuple(v[:, None]), tuple(off[:, None]), 0.0, dual)[0]
    assert min(seen.values()) > 100
    out = {False: [(-1, 1, 0), (-1, -1, 1), (-1, 1, -1), (1, 1, 1), (0, 1, 1), (1, 0, 1), (0.5, 0, 1), (-1, 0, -1)]}
    out[False] += [
        (-1, -1, -2),
        (-1, -0.5, -1),
        (-1, 0, -0.5),
        (5e-324, 5e-324, 1e-323),
    ]  # of which a product is rounded to what it is not
    out[True] = [
        (1, 3, -2),
        (0.5, 3, -1),
        (0, 1, -0.5),
        (1, 1, 1),
        (-1, 0, -1),
        (-1, -2, 1),
        (-1, 0, 0),
        (0, -1, 1),
        (0, -0.5, 1),
        (0, 1, -1),
    ]
    face = {False: [(-1, 0, 1), (0, 0, 1), (-1, 0, 0)], True: [(0, 1, 1), (0, 0, 1), (0, 1, 0)]}
    for some, holds in ((out, False), (face, True)):
        for v in some[dual]:
            assert verify.inside(Block("exp", slice(0, 3)), reached(v), dual) is holds
            assert is_inside("exp", v, dual) or not holds
    away = [0.0, 1e-20, 0.0] if not dual else [1e-20, 0.0, 0.0]  # a face has no thickness
    assert not verify.inside(Block("exp", slice(0, 3)), reached(face[dual][0], radius=np.array(away)), dual)
    both = [-2.0, 1.0, 1.0, 5.0, 1.0, 1.0]
    assert not verify.inside(Block("exp", slice(0, 6)), reached(both), dual)
    assert verify.inside(Block("exp", slice(0, 6)), reached(both[:3] * 2), dual)
    assert verify.inside(Block("exp", slice(0, 3)), reached([0.0] * 3), dual)


@pytest.mark.parametrize("dual", [False, True])
def test_power_cones(dual):
    rng, seen = np.random.default_rng(8), {True: 0, False: 0}
    for _ in range(500):
        a = float(rng.choice([0.5, 0.25, 0.1, 0.9]))
        x, y = np.exp(rng.uniform(-3, 3, 2))
        off = float(rng.choice([0.0, 1e-15, 1e-10])) * rng.random(3) * np.array([x, y, 1.0])
        s, t = (x - off[0], y - off[1]) if not dual else ((x - off[0]) / a, (y - off[1]) / (1 - a))
        z = exp(a * log(s) + (1 - a) * log(t)) - off[2]
        v = np.array([x, y, z * (1 + EPS * float(rng.integers(-200, 40))) * float(rng.choice([-1, 1]))])
        said = bool(verify.in_power(tuple(v[:, None]), tuple(off[:, None]), a, dual)[0])
        if said:
            assert all(is_inside("pow", corner, dual, a=a) for corner in corners(v, off))
        seen[said] += 1
        v[2] = z * (1 - 1e-9)
        assert verify.in_power(tuple(v[:, None]), tuple(off[:, None]), a, dual)[0]
    assert min(seen.values()) > 100
    for a in (2.0, -1.0, -0.5, *([] if dual else [0.0, 1.0])):
        assert not verify.in_power((np.ones(1), np.ones(1), np.zeros(1)), (np.zeros(1),) * 3, a, dual)[0]
    block = Block("pow", slice(0, 3), 0.5)
    for v, holds in (
        ((1.0, 1.0, 0.9), True),
        ((1.0, 1.0, 0.0), True),
        ((0.0, 1.0, 0.0), False),
        ((1.0, -1.0, 0.0), False),
        ((-1.0, 1.0, 0.0), False),
    ):
        assert verify.inside(block, reached(v), dual) is holds


def test_exponential_cones_of_all_sizes():
    rng, seen = np.random.default_rng(14), {True: 0, False: 0}
    with localcontext(prec=60):
        for _ in range(300):
            p = 10.0 ** rng.uniform(-30, 30)
            z = p * exp(rng.uniform(-500, 500))
            x = p * log(z / p)
            x -= abs(x) * EPS * float(rng.choice([-20, 5, 40]) * rng.random())
            said = bool(verify.in_exponential(tuple(np.array([[x], [p], [z]])), (np.zeros(1),) * 3, 0.0, False)[0])
            assert not said or Decimal(p) * (Decimal(z) / Decimal(p)).ln() >= Decimal(x)
            seen[said] += 1
    assert min(seen.values()) > 40


def test_power_cones_of_all_sizes():
    rng, seen = np.random.default_rng(13), {True: 0, False: 0}
    for trial in range(900):
        k = (2, 4)[trial % 2]  # x y^(k - 1) >= z^k
        small = trial % 3 == 0  # near 1, where what counts is how the corners of the box are rounded
        x, y = 1.0 + 1e-3 * (1.0 + rng.random(2)) if small else 10.0 ** rng.uniform(-140, 140, 2)
        off = 1e-3 * small * rng.random(3)
        room = float(rng.choice([-4, 2] if small else [-20000, 100, 300]) * rng.random())
        z = exp(log(x - off[0]) / k + log(y - off[1]) * (1 - 1 / k)) * (1 + EPS * room) - off[2]
        said = bool(verify.in_power(tuple(np.array([[x], [y], [z]])), tuple(off[:, None]), 1 / k, False)[0])
        s, t, u = (number(v) + sign * number(o) for v, o, sign in zip((x, y, z), off, (-1, -1, 1), strict=True))
        assert not said or s * t ** (k - 1) >= u**k
        seen[said] += 1
    assert min(seen.values()) > 50


# ---- values ----------------------------------------------------------------------------------------------------------
def objective(P, q, x):
    line = sum((number(a) * b for a, b in zip(q, x, strict=True)), Fraction(0))
    return line + sum((number(P[i][j]) * x[i] * x[j] for i in range(len(x)) for j in range(len(x))), Fraction(0)) / 2


def programme(P, q, A, b, kind="nonneg"):
    P, A = (sp.csr_array(np.asarray(M, float)) for M in (P, A))
    return Programme(P, np.asarray(q, float), A, np.asarray(b, float), (Block(kind, slice(0, len(b))),))


def drawn(rng, n):
    """A matrix, a vector, and a point in two parts with a radius, of any sizes."""
    G = rng.standard_normal((n, n))
    x = rng.standard_normal(n) * 10.0 ** rng.integers(-4, 5, n)
    radius = np.abs(x) * float(rng.choice([0.0, 1e-16, 1e-8, 1e-2]))
    return G @ G.T, rng.standard_normal(n), x, x * EPS * 0.4 * rng.standard_normal(n), radius


def test_values_are_on_the_safe_side():
    """At the corners of the box, where linear and quadratic functions are largest."""
    rng = np.random.default_rng(9)
    for trial in range(150):
        n = int(rng.integers(1, 5))
        P, q, x, low, radius = drawn(rng, n)
        P = [np.zeros((n, n)), P, np.diag(np.diag(P))][trial % 3]
        if trial % 4 == 0:
            q = q * 0.0
        points = [[a + b for a, b in zip(corner, map(number, low), strict=True)] for corner in corners(x, radius)]
        p = programme(P, q, np.zeros((1, n)), [0.0])
        found = verify.upper_value(p, reached(np.r_[x, 0.0], np.r_[low, 0.0], np.r_[radius, 0.0]))
        most = max(objective(P, q, each) for each in points)
        size = objective(np.abs(P), np.abs(q), [abs(number(a)) + number(b) for a, b in zip(x, radius, strict=True)])
        assert most <= number(found)
        spread = size * 4 * max(radius / np.abs(x)) if radius.any() else 0
        assert number(found) <= most + Fraction(1e-12) * size + Fraction(spread) + Fraction(1, 10**290)


def test_lower_values_are_on_the_safe_side():
    rng = np.random.default_rng(10)
    for trial in range(200):
        n, m = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        P, _, u, low, radius = drawn(rng, n)
        P = [np.zeros((n, n)), P][trial % 2]
        p = programme(P, np.zeros(n), np.zeros((m, n)), rng.standard_normal(m))
        z, zradius = rng.random(m), float(rng.choice([0.0, 1e-9])) * rng.random(m)
        k = len(p.curved)
        y, ylow, yradius = np.r_[z, u[:k]], np.r_[z * 0, low[:k]], np.r_[zradius, radius[:k]]
        none = np.full(n, np.inf)
        value = verify.lower_value(p, reached(y, ylow, yradius), 0.0, none, none)
        points = [[a + b for a, b in zip(corner, map(number, ylow), strict=True)] for corner in corners(y, yradius)]
        least = min(
            -sum(number(b) * t for b, t in zip(p.b, each[:m], strict=True))
            - objective(P, np.zeros(n), [*each[m:], *[0] * (n - k)])
            for each in points
        )
        size = abs(least) + objective(np.abs(P), np.zeros(n), [abs(number(t)) for t in u]) + 10
        assert number(value) <= least
        assert number(value) >= least - size * Fraction(1e-12 + 4 * max([0.0, *(radius / np.abs(u)), *zradius]))


def test_what_is_paid_for():
    """Residuals by the size of x, curvature by the distance of x."""
    p = programme([[1.0, 0.0], [0.0, 0.0]], [0.0, 0.0], np.zeros((1, 2)), [0.0])
    at = reached([0.0, 0.0], missed=[0.5], left=[1])
    for most, value in (([9.0, 4.0], -2.0), ([9.0, np.inf], -np.inf), ([np.inf, 0.0], 0.0)):
        found = verify.lower_value(p, at, 0.0, np.array(most), np.full(2, np.inf))
        assert found <= value
        assert found >= value * (1 + 1e-6) - 1e-290
    exactly = reached([0.0, 0.0], missed=[0.0], left=[1])
    assert verify.lower_value(p, exactly, 0.0, np.full(2, np.inf), np.full(2, np.inf)) >= -1e-290
    far = verify.lower_value(p, exactly, -0.5, np.full(2, np.inf), np.array([3.0, np.inf]))
    assert -4.6 < far <= -4.5 / 2  # curvature |x - u|^2 / 2 is what may be lost
    assert verify.lower_value(p, exactly, -0.5, np.full(2, np.inf), np.array([np.inf, 3.0])) == -np.inf
    assert refused(verify.upper_value, p, reached([0.0, 0.0, 0.0], missed=[1e-30], left=[0]))
    assert verify.upper_value(p, reached([0.0, 0.0, 0.0], missed=[0.0], left=[0])) <= 1e-290


def test_sums_of_bounds():
    assert verify._below(Pair(np.zeros(1), np.zeros(1), np.zeros(1)), 0.0, 0.0) <= 0.0
    for high, second in ((1.0, 2.0**-53), (1.0, -(2.0**-54)), (2.0**-53, 1.0), (-1.0, 1.0 - 2.0**-53), (0.1, -1.0)):
        pair = Pair(np.array([high]), np.array([0.0]), np.array([0.0]))
        assert number(verify._below(pair, second, 0.0)) <= number(high) + number(second)
        assert verify._below(pair, second, 0.5) <= high + second - 0.5
        assert verify._below(pair, second, 0.0) >= high + second - 1e-15


def test_a_product_with_a_radius_does_not_vanish():
    found = verify.linear(np.array([1e-200]), Pair(np.zeros(1), np.zeros(1), np.array([1e-200])))
    assert found.error[0] > 0.0


def test_a_quadratic_form_that_rounding_takes_for_0():
    """(P v)_1 = a b - c, of which c is the nearest double; and products that underflow."""
    a, b = 0.1, 3.1
    P = np.array([[0.0, a, a * b], [a, 0.0, 0.0], [a * b, 0.0, 0.0]])
    v, radius = [0.0, b, -1.0], [0.5, 0.0, 0.0]
    value, error = verify.quadratic(sp.csr_array(P), Pair(np.array(v), np.zeros(3), np.array(radius)))
    for corner in corners(v, radius):
        assert 0 < abs(objective(P, np.zeros(3), corner) - number(value)) <= number(error)
    value, error = verify.quadratic(sp.csr_array([[1e-200]]), Pair(np.full(1, 1e-100), np.zeros(1), np.zeros(1)))
    assert (value, error > 0.0) == (0.0, True)


def test_contradictions_and_descents():
    p = programme([[0.0]], [-1.0], [[1.0], [-1.0]], [1.0, -2.0])
    for y, missed, holds in (
        ([1.0, 1.0], 0.0, True),
        ([1.0, 1.0], 1e-20, False),
        ([2.0, 1.0], 0.0, False),
        ([3.0, 1.0], 0.0, False),
    ):
        assert verify.contradicts(p, reached(y, missed=[missed], left=[0])) is holds
    assert not verify.contradicts(p, reached([1.0, 1.0], radius=0.5))
    assert verify.contradicts(p, reached([1.0, 1.0], radius=0.1))
    for d, missed, holds in (
        ([1.0, 0.0, 0.0], 0.0, True),
        ([1.0, 0.0, 0.0], 1e-20, False),
        ([0.0, 1.0, 1.0], 0.0, False),
        ([-1.0, 0.0, 0.0], 0.0, False),
    ):
        assert verify.descends(p, reached(d, missed=[missed], left=[0])) is holds
    assert not verify.descends(p, reached([1.0, 0.0, 0.0], radius=1.5))


def test_rows_that_follow_from_others():
    posed = system([[1.0, 2.0, 0.0], [0.1, 0.2, 0.0], [3.0, 0.0, 1.0], [4.0, 2.0, 1.0]], [1.0, 0.1, 2.0, 3.5])
    every, some = np.ones(3, bool), np.array([True, True, False])
    assert verify.excess(posed, 3, {0: Fraction(1), 2: Fraction(1)}, every) == Fraction(1, 2)
    assert verify.excess(posed, 1, {0: number(0.1)}, every) == 0
    assert verify.excess(posed, 1, {0: Fraction(1, 10)}, every) is None
    assert verify.excess(posed, 3, {0: Fraction(1)}, every) is None
    assert verify.excess(posed, 2, {0: Fraction(3)}, np.array([True, False, False])) == -1
    assert verify.excess(posed, 2, {0: Fraction(3)}, some) is None
    assert verify.excess(posed, 0, {0: Fraction(1)}, every) is None


def test_the_four_systems():
    """Of a small programme, by hand: what is solved is what the lemma's uses speak of."""
    A, P, q, b = [[1.0, 1.0], [1.0, -1.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 0.0]], [3.0, 4.0], [1.0, 2.0, 5.0]
    p = Programme(
        sp.csr_array(P),
        np.array(q),
        sp.csr_array(A),
        np.array(b),
        (Block("zero", slice(0, 1)), Block("nonneg", slice(1, 3))),
    )
    assert primal(p).M.toarray().tolist() == [[1, 1, 0, 0], [1, -1, 1, 0], [0, 1, 0, 1]]
    assert [(x.kind, x.place) for x in primal(p).blocks] == [("free", slice(0, 2)), ("nonneg", slice(2, 4))]
    assert dual(p).M.toarray().tolist() == [[1, 1, 0, 2], [1, -1, 1, 0]]
    assert dual(p).c.tolist() == [-3, -4]
    assert [(x.kind, x.place) for x in dual(p).blocks] == [
        ("free", slice(0, 1)),
        ("nonneg", slice(1, 3)),
        ("free", slice(3, 4)),
    ]
    assert contradiction(p).M.toarray().tolist() == [[1, 1, 0], [1, -1, 1]]
    assert not contradiction(p).c.any()
    assert descent(p).M.toarray().tolist() == [[1, 1, 0, 0], [1, -1, 1, 0], [0, 1, 0, 1], [2, 0, 0, 0]]
    assert [primal(p).dual, dual(p).dual, contradiction(p).dual, descent(p).dual] == [False, True, True, False]
