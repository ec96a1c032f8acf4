"""The verifier by itself: forged proposals are refused, and no constant of it may be smaller."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from conic_cases import dot, planted

from graphreg.certificate import EPS, Pair, RefusedError
from graphreg.conic import canonical, programme, proving, verify
from graphreg.conic.programme import Block, Programme
from graphreg.conic.ranges import ranges
from graphreg.conic.verify import Factor, Reached

TINY = 1e-13


def log(x):
    with localcontext() as context:
        context.prec = 60
        return Decimal(float(x)).ln()


def test_logarithms_lie_within_their_bounds():
    r = np.random.default_rng(0)
    x = np.concatenate(
        [np.exp(r.uniform(-600, 600, 300)), r.uniform(0.5, 2, 300), 1 + r.normal(size=300) * 1e-9, [0.5, 1.0, 2.0]]
    )
    value, error = verify.log_bounds(x)
    off = [abs(Decimal(v) - log(each)) for v, each in zip(value.tolist(), x.tolist(), strict=True)]
    assert all(o <= Decimal(e) for o, e in zip(off, error.tolist(), strict=True))
    assert (error <= 10 * EPS * (np.abs(value) + 0.7)).all()


# ---- cones: a point outside by little more than its box is never inside, one with room is ----------------------------
def box(kind, v, off, size=0.0, dual=False):
    v = np.array(v, float)
    proposal = replace(EMPTY, high=v, low=np.zeros(len(v)))
    found = Reached(proposal, np.broadcast_to(np.array(off, float), v.shape).copy(), np.zeros(0))
    return verify.inside(Block(kind, slice(0, len(v)), size), found, dual)


NONE = np.zeros(0)
INDEX = NONE.astype(int)
EMPTY = verify.Proposal(NONE, NONE, INDEX, INDEX, NONE, INDEX, NONE, NONE, None, INDEX, ())
LOW = float(np.sqrt(0.5))
CASES = [  # kind, size, dual, a point on the boundary, and where to from there it is outside
    ("nonneg", 0, False, [0.0], [-1]),
    ("soc", 3, False, [5.0, 3.0, 4.0], [-1, 0, 0]),
    ("soc", 3, True, [5.0, 3.0, -4.0], [0, 0, -1]),
    ("psd", 2, False, [1.0, 2 / LOW, 4.0], [0, 0, -1]),
    ("psd", 2, True, [1.0, -2 / LOW, 4.0], [-1, 0, 0]),
    ("psd", 3, False, [1.0, 1 / LOW, 1.0, 0.0, 0.0, 1.0], [0, 1, 0, 0, 0, 0]),
    ("exp", 0, False, [1.0, 1.0, np.e], [0, 0, -1]),
    ("exp", 0, False, [2 * np.log(2), 2.0, 4.0], [1, 0, 0]),
    ("exp", 0, False, [-2 * np.log(2), 2.0, 1.0], [0, 1, 0]),
    ("exp", 0, False, [4 * np.log(8), 4.0, 32.0], [0, -1, 0]),
    ("exp", 0, True, [-1.0, -1.0, 1.0], [0, -1, 0]),
    ("exp", 0, True, [-2.0, -2 - 2 * np.log(2), 4.0], [0, 0, -1]),
    ("exp", 0, True, [-1.0, 1.0, np.exp(-2)], [-1, 0, 0]),
    ("exp", 0, True, [-1.0, -3.0, np.exp(2)], [1, 0, 0]),
    ("pow", 0.5, False, [4.0, 9.0, 6.0], [0, 0, 1]),
    ("pow", 0.25, False, [16.0, 1.0, -2.0], [-1, 0, 0]),
    ("pow", 0.5, True, [2.0, 4.5, 6.0], [0, -1, 0]),
]


@pytest.mark.parametrize(("kind", "size", "dual", "point", "out"), CASES)
def test_cones(kind, size, dual, point, out):
    v, out = np.array(point), np.array(out, float)
    inward = -out
    for room in (1e-12, 1e-6, 1e-2):
        inner = v + 40 * room * inward
        if kind == "exp" and inward[1]:
            inner = v + room * inward  # towards one side only the cone is left
        assert box(kind, inner, 0.0, size, dual), room
        assert not box(kind, v + room * out, 0.0, size, dual), room
        assert not box(kind, inner, 50 * room, size, dual), room
        assert not box(kind, v + 0.5 * room * inward, room, size, dual), room


def test_a_box_must_be_inside_on_all_sides():
    for kind, v, size in (("soc", [5.0, 3, 3.9], 3), ("psd", [1.0, 0.0, 1.0], 2), ("exp", [0.5, 1.0, np.e], 0)):
        assert box(kind, v, 1e-3, size)
        assert not box(kind, v, 1.1, size)
    assert not box("exp", [0.0, 1e-3, 1e-3], 2e-3)
    assert not box("pow", [1.0, 1.0, 0.0], 1.5, 0.5)
    for side in ([2.0, 0, 0], [0, 2.0, 0], [0, 0, 2.0]):  # one entry of a box at a time
        assert not box("soc", [5.0, 3.0, 3.9], side, 3)
        assert not box("psd", [1.0, 0.0, 1.0], side, 2)
        assert not box("exp", [0.5, 1.0, 2.0], side)
        assert not box("exp", [-1.0, 0.0, 1.0], side, 0, True)
        assert not box("pow", [1.0, 1.0, 0.9], side, 0.5)
    assert box("soc", [0.0, 0.0, 0.0], 0.0, 3)
    assert not box("soc", [0.0, 1e-170, 0.0], 0.0, 3)  # whose square is 0
    assert not box("psd", [0.0, 1e-170, 0.0], 0.0, 2)
    assert not box("zero", [0.0], 0.0)


# ---- eigenvalues -----------------------------------------------------------------------------------------------------
def forged(S, L, shift):
    return verify.floor(sp.csr_array(S), np.zeros(len(S)), Factor(sp.csr_array(L), shift))


def test_no_factor_proves_more_than_the_least_eigenvalue():
    r = np.random.default_rng(1)
    for k in (2, 5, 12):
        for _ in range(30):
            V = r.integers(-3, 4, (k, k - 1)).astype(float)
            S = V @ V.T  # singular, exactly
            L = np.tril(np.linalg.cholesky(S + 0.01 * np.eye(k)) + 1e-3 * r.normal(size=(k, k)))
            for shift in (-1.0, -1e-2, 0.0, 1e-14, 1e-3, 2.0):
                assert forged(S, L, shift) <= 0.0
                assert forged(S, L * np.sqrt(r.random(k)), shift) <= 0.0
    S = np.diag([1.0, 2.0])
    assert 0.5 - TINY < forged(S, np.diag(np.sqrt([0.5, 1.5])), 0.5) <= 0.5


def test_what_a_matrix_may_be_off_is_paid_in_floors():
    factor = Factor(sp.csr_array(np.diag(np.sqrt([0.5, 1.5]))), 0.5)
    found = verify.floor(sp.csr_array(np.diag([1.0, 2.0])), np.array([0.125, 0.25]), factor)
    assert 0.25 - 1e-6 < found <= 0.25


def test_the_error_of_rounding_is_paid_in_floors():
    """1e8 + 1 and its square: what rounds to a multiple of the identity is not one."""
    B = sp.csr_array(np.array([[1e8, 1.0], [1e8, 0.0]]))  # B B' is regular, its float is singular but for nothing
    S, off = verify.squared(B)
    assert S.toarray().tolist() == [[1e16, 1e16], [1e16, 1e16]]
    assert (off >= 1.0).all()
    L = sp.csr_array(np.array([[1e8, 0.0], [1e8, 0.0]]))
    assert verify.floor(S, off, Factor(L, 0.0)) <= -1.0
    L = sp.csr_array(np.array([[1.0, 0.0], [1.0 + EPS, EPS]]))  # L L' rounds to what it is not
    S = sp.csr_array((L @ L.T).toarray())
    assert verify.floor(S, np.zeros(2), Factor(L, 0.0)) < -EPS


def test_semidefinite_matrices_exactly():
    whole = np.array([[1.0, 2.0], [3.0, 5.0], [2.0, 7.0]])
    assert verify.semidefinite(sp.csr_array(whole @ whole.T))
    assert not verify.semidefinite(sp.csr_array(whole @ whole.T - np.diag([0, 0, 2.0**-40])))
    assert not verify.semidefinite(sp.csr_array(np.array([[0.0, 1.0], [1.0, 5.0]])))
    assert verify.curvature(sp.csr_array(np.diag([1.0, -2.0])), None) == -2.0


# ---- the lemma -------------------------------------------------------------------------------------------------------
def settled(seed):
    p, *_ = planted(seed)
    known = proving.proved(p, canonical.helped(p), 1e-6)
    for use, make in (("primal", programme.primal), ("dual", programme.dual)):
        if use in known.evidence:
            yield p, make(p), known.evidence[use].proposal


def bumped(x, i, by):
    x = x.copy()
    x[i] += by
    return x


def test_forged_proposals_are_refused():
    cores = pairs = 0
    for seed in range(20):
        for _, system, good in settled(seed):
            verify.reach(system, good)
            forgeries = [replace(good, left=np.append(good.left, 0))]
            for i in range(min(3, len(good.rows))):
                j = good.columns[i]
                forgeries += [
                    replace(good, high=bumped(good.high, j, 1e-3)),
                    replace(good, low=bumped(good.low, j, 1e-13 * (1 + abs(good.high[j])))),
                    replace(good, radius=bumped(good.radius, i, -good.radius[i])),
                    replace(good, columns=bumped(good.columns, i, good.columns[i - 1] - j if i else -j - 1)),
                    replace(good, weight=bumped(good.weight, j, 1.0)),
                    replace(good, rows=bumped(good.rows, i, 1)),
                ]
                pairs += 1
            if len(good.core):
                assert good.factor is not None
                factor = good.factor
                forgeries += [
                    replace(good, factor=None),
                    replace(good, factor=replace(factor, shift=factor.shift + 1e-3)),
                    replace(good, factor=replace(factor, L=1.01 * factor.L)),
                    replace(good, scale=0.75 * good.scale),
                    replace(good, scale=-good.scale),
                ]
                cores += 1
            for bad in forgeries:
                with pytest.raises(RefusedError):
                    verify.reach(system, bad)
    assert pairs > 30
    assert cores > 3


def test_what_is_missed_by_rows_that_are_left_is_told():
    for seed in range(12):
        for p, system, good in settled(seed):
            if not len(good.rows) or not system.dual:
                continue
            k = int(np.argmax(good.rows))  # of a pair nothing but its row rests on
            row, keep = good.rows[k], np.arange(len(good.rows)) != k
            high = bumped(good.high, good.columns[k], 0.0)
            loose = replace(
                good, high=high, rows=good.rows[keep], columns=good.columns[keep], radius=good.radius[keep],
                left=np.append(good.left, row), witness=(*good.witness, {}),
            )  # fmt: skip
            try:
                found = verify.reach(system, loose)
            except RefusedError:
                continue
            y = [Fraction(a) + Fraction(b) for a, b in zip(high, good.low, strict=True)]
            off = abs(dot(system.M[[row]].toarray()[0], y) - Fraction(system.c[row]))
            assert Fraction(found.missed[-1]) >= off
            nothing = np.full(len(p.q), np.inf)
            if found.missed[-1] > 0.0:
                assert verify.lower_value(p, found, 0.0, nothing, nothing) == -np.inf


def test_a_row_follows_from_others_exactly_or_not_at_all():
    M = sp.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [2.0, 5.0, 1.0], [1.0, 2.0, EPS]]))
    system = programme.System(M, np.array([1.0, 2.0, 4.0, 1.0]), (Block("free", slice(0, 3)),), False)
    live = np.ones(3, bool)
    two = {0: Fraction(2), 1: Fraction(1)}
    assert verify.excess(system, 2, two, live) == 0
    assert verify.excess(system, 2, {0: Fraction(2)}, live) is None
    assert verify.excess(system, 3, {0: Fraction(1)}, live) is None
    assert verify.excess(system, 3, {0: Fraction(1)}, np.array([True, True, False])) == 0
    off = programme.System(M, np.array([1.0, 2.0, 4.0 + 1e-15, 1.0]), system.blocks, False)
    assert verify.excess(off, 2, two, live) == Fraction(4.0 + 1e-15) - 4


# ---- values ----------------------------------------------------------------------------------------------------------
def test_values_are_rounded_outwards_over_the_whole_box():
    r = np.random.default_rng(3)
    for _ in range(60):
        n = int(r.integers(1, 6))
        B = r.normal(size=(n, n)) * (r.random((n, n)) < 0.7)
        P, x = sp.csr_array(B + B.T), r.normal(size=n) * 10.0 ** r.integers(-3, 4, n)
        low, radius = 1e-17 * r.normal(size=n), np.abs(r.normal(size=n)) * 10.0 ** r.integers(-18, -2)
        value, error = verify.quadratic(P, Pair(x, low, radius))
        a = r.normal(size=n)
        found = verify.linear(a, Pair(x, low, radius))
        for _ in range(8):
            side = r.choice([-1, 1], n)
            y = [Fraction(h) + Fraction(w) + Fraction(s * d) for h, w, s, d in zip(x, low, side, radius, strict=True)]
            true = dot([dot(row, y) for row in P.toarray()], y) / 2
            assert abs(true - Fraction(value)) <= Fraction(error)
            assert abs(dot(a, y) - Fraction(found.high[0]) - Fraction(found.low[0])) <= Fraction(found.error[0])
        assert Fraction(verify._below(found, 0.1, 0.0)) <= dot(a, y) + Fraction(0.1)


def test_a_quadratic_form_of_many_entries_is_rounded_outwards():
    """Each row's sum loses half a unit at every step, all in the same direction."""
    n = 40
    P = np.full((n, n), EPS / 2.0)
    P[0], P[:, 0] = 1.0, 1.0
    value, error = verify.quadratic(sp.csr_array(P), Pair(np.ones(n), np.zeros(n), np.zeros(n)))
    lost = Fraction((n - 1) ** 2) * Fraction(EPS) / 4
    assert Fraction(value) == Fraction(2 * n - 1, 2)
    assert lost <= Fraction(error)


def test_payments_are_paid():
    p, value, _, _ = planted(4)
    known = proving.proved(p, canonical.helped(p), 1e-6)
    found, n = known.evidence["dual"], len(p.q)
    far, nothing = np.full(n, 7.0), np.zeros(n)
    plain = verify.lower_value(p, found, 0.0, nothing, nothing)
    bent = verify.lower_value(p, found, -0.5, nothing, far)
    assert len(p.curved)
    assert bent <= plain - 0.25 * 49 * len(p.curved)
    row = replace(found, proposal=replace(found.proposal, left=np.array([0])), missed=np.array([0.125]))
    assert verify.lower_value(p, row, 0.0, far, nothing) <= plain - 0.125 * 7
    assert Fraction(plain) <= value
    with pytest.raises(RefusedError):
        verify.upper_value(p, replace(known.evidence["primal"], missed=np.array([1e-30])))


# ---- ranges ----------------------------------------------------------------------------------------------------------
def lines(A, b, blocks=None, q=None, P=None):
    A = sp.csr_array(np.array(A, float))
    n = A.shape[1]
    P = sp.csr_array((n, n)) if P is None else sp.csr_array(np.array(P, float))
    q = np.zeros(n) if q is None else np.array(q, float)
    return Programme(P, q, A, np.array(b, float), blocks or (Block("nonneg", slice(0, len(b))),))


def test_ranges_are_rounded_outwards():
    lower, higher = ranges(lines([[3.0], [-7.0]], [1.0, 1.0]), np.inf, True)
    assert Fraction(higher[0]) >= Fraction(1, 3)
    assert Fraction(lower[0]) <= Fraction(-1, 7)
    assert higher[0] - lower[0] < 1 / 3 + 1 / 7 + TINY
    r = np.random.default_rng(7)
    for _ in range(100):  # x1 <= b1/a1, x2 >= -b2/a2, and a3 x3 <= b3 - a4 x1 + a5 x2
        a, b = r.uniform(0.1, 1, 5), r.normal(size=3)
        p = lines([[a[0], 0, 0], [0, -a[1], 0], [-a[3], a[4], a[2]], [0, 1, 0], [-1, 0, 0]], [*b, 9.0, 9.0])
        lower, higher = ranges(p, np.inf, True)
        first = Fraction(b[0]) / Fraction(a[0])
        second = -Fraction(b[1]) / Fraction(a[1])
        third = (Fraction(b[2]) + Fraction(a[3]) * first - Fraction(a[4]) * second) / Fraction(a[2])
        assert Fraction(higher[0]) >= first
        assert Fraction(lower[1]) <= second
        assert third <= Fraction(higher[2]) <= third + Fraction(1e-12)


def test_ranges_of_cones_and_of_the_objective():
    soc = (Block("nonneg", slice(0, 1)), Block("soc", slice(1, 4), 3.0))
    p = lines([[1, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -2]], [5.0, 0, 0, 0], soc)  # |(y, 2 z)| <= t <= 5
    lower, higher = ranges(p, np.inf, True)
    assert higher[1] >= 5.0 >= higher[1] - TINY
    assert lower[2] <= -2.5 <= lower[2] + TINY
    psd = (Block("nonneg", slice(0, 2)), Block("psd", slice(2, 5), 2.0))
    p = lines([[1, 0, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]], [2.0, 3.0, 0, 0, 0], psd)
    lower, higher = ranges(p, np.inf, True)
    assert higher[1] >= np.sqrt(12.0)  # of the corners, off the diagonal: root of 2 * 2 * 3
    exp = (Block("exp", slice(0, 3)),)
    lower, higher = ranges(lines(-np.eye(3), [0.0, 0, 0], exp), np.inf, True)
    assert (lower <= [-np.inf, 0.0, 0.0]).all()
    assert np.abs(lower[1:]).max() < TINY
    # x^2 / 2 - x + y <= 3 with y >= 0, and x by itself in P: y <= 3.5
    p = lines([[0, -1]], [0.0], q=[-1, 1], P=[[1, 0], [0, 0]])
    lower, higher = ranges(p, 3.0, True)
    assert 3.5 <= higher[1] < 3.5 + TINY
    assert ranges(p, 3.0, False)[1][1] == np.inf


# ---- the premises of the lemma, each by two equations ----------------------------------------------------------------
def by_hand(M, c, **parts):
    system = programme.System(
        sp.csr_array(np.array(M, float)), np.array(c, float), (Block("free", slice(0, 2)),), False
    )
    given = {"high": np.zeros(2), "low": np.zeros(2), "weight": np.zeros(2)} | parts
    whole = {name: np.array(given.get(name, []), int) for name in ("rows", "columns", "core", "left")}
    return verify.reach(system, replace(EMPTY, **(given | whole)))


def test_rows_that_are_left_tell_their_residual():
    found = by_hand([[1, 0], [1, 0]], [1, 2], high=np.array([1.0, 0]), rows=[0], columns=[0], radius=np.array([1e-200]),
                    left=[1], witness=({0: Fraction(1)},))  # fmt: skip
    assert found.missed >= 1.0


def test_two_rows_cannot_share_a_column():
    with pytest.raises(RefusedError, match="share a column"):
        by_hand([[1, 0], [1, 0]], [0, 1], high=np.array([0.5, 0]), rows=[0, 1], columns=[0, 0], radius=np.ones(2))


def test_no_column_of_a_pair_stands_in_the_core():
    core = {"core": [0], "scale": np.ones(1), "weight": np.array([1.0, 0.0])}
    factor = Factor(sp.csr_array(np.eye(1)) * 0.5**0.5, 0.5)
    pair = {"rows": [1], "columns": [1], "radius": np.array([1.25])}
    assert by_hand([[1, 0], [0, 1]], [0, 1], **core, **pair, factor=factor).radius[1] == 1.25
    with pytest.raises(RefusedError, match="column in the core"):
        by_hand([[1, 5], [0, 1]], [0, 1], **core, **pair, factor=factor)
