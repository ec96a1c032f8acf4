"""Witnesses of balance: what they prove is so, in rational numbers, and none that misses a premise proves anything."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from kernel_cases import (
    ALMOST,
    FORMS,
    answers,
    balance_holds,
    blank,
    exactly,
    form_of,
    general,
    matrix,
    number,
    numbers,
    regression,
    wide,
    witness,
)

import graphreg as gr
from graphreg.certificate.kernel.arithmetic import EPS, LEAST, MOST, RANGE, Pair, RefusedError
from graphreg.certificate.kernel.balance import Answers, Witness, balanced, follows
from graphreg.certificate.kernel.system import System


def sizes(system, found, left, more=1.0 + 1e-9, rounds=60):
    """z with |Bv| + E z <= z, where a few rounds find it."""
    z = left
    for _ in range(rounds):
        z = (left + found.passed(z)) * more + np.where(left > 0.0, LEAST, 0.0)
    return z


def left_of(system, v, low=None, plain=False):
    return system.residual(v, np.zeros_like(v) if low is None else low, plain).size().ravel()


# ---- (A) -------------------------------------------------------------------------------------------------------------
def drawn(seed, off):
    """A random system, and nearly a right inverse."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(1, 5))
    V = N + int(rng.integers(0, 4))
    K = rng.standard_normal((V, N)) * 10.0 ** rng.uniform(-3, 3, N) * (rng.random((V, N)) < 0.8)
    K *= np.where(rng.random((V, N)) < 0.2, 10.0 ** -rng.uniform(50.0, 320.0, (V, N)), 1.0)  # down to what underflows
    K[np.arange(N), np.arange(N)] += 1.0
    system = general(K)
    R = np.linalg.pinv(K.T) * (1.0 + off * rng.standard_normal((V, N)))
    v = wide(rng, V, 4)
    v -= R @ (K.T @ v) * (1.0 - rng.choice([0.0, 1e-14, 1e-6]))
    return rng, system, R, v


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-3, 0.1])
def test_what_a_witness_proves_is_so(off, plain):
    proved = 0
    for seed in range(8):
        rng, system, R, v = drawn(seed, off)
        low = np.zeros_like(v) if plain else 2.0**-54 * v * rng.uniform(-1, 1, len(v))
        found = answers(system, R)
        z = sizes(system, found, left_of(system, v, low, plain))
        if not np.isfinite(z).all() or z.max() > 1e6 * np.abs(v).max():
            continue
        for t in (1.0, 1.0 - 1e-12, 0.999, 0.7, 0.3):
            w = witness(system, found, v, np.where(z * t >= LEAST, z * t, 0.0), low, plain=plain)
            box = balanced(system, w)
            if not box.lost.any():
                proved += 1
                assert balance_holds(system, w, box)
        assert box.lost.any()
        assert balanced(system, witness(system, found, v, z, low, plain=plain)).lost.any() == (not (z >= LEAST).all())
    assert proved >= 6


def test_the_least_sizes_that_pass_are_not_too_small():
    """By bisection, where corrections grow from equation to equation."""
    for seed in range(6):
        rng, system, R, v = drawn(seed, 0.05)
        found = answers(system, R)
        direction = sizes(system, found, left_of(system, v)) * rng.uniform(1.0, 3.0, system.shape[0])
        if not np.isfinite(direction).all():
            continue
        low, high = 0.0, 8.0
        for _ in range(40):
            t = (low + high) / 2
            low, high = (
                (low, t) if not balanced(system, witness(system, found, v, t * direction)).lost.any() else (t, high)
            )
        w = witness(system, found, v, high * direction)
        box = balanced(system, w)
        if not box.lost.any():
            assert balance_holds(system, w, box)


def test_garbage_proves_nothing_that_is_false():
    proved = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        N, V = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        K = np.round(rng.standard_normal((V, N)) * 2) * 2.0 ** rng.integers(-3, 4, N)
        system = general(K)
        R = np.round(rng.standard_normal((V, N)) * 4) / 4.0 * (rng.random((V, N)) < 0.6)
        if rng.random() < 0.6:
            R = np.linalg.pinv(K.T) * rng.choice([1.0, 0.5, 1.5, 0.9])
        v = rng.choice([0.0, 1.0, 1e-9], V) * rng.standard_normal(V)
        z = np.abs(rng.standard_normal(N)) * rng.choice([0.0, 1e-12, 1.0, 1e3, 1e6], N)
        if rng.random() < 0.5:
            z = np.abs(K.T @ v) * rng.choice([1.0, 2.0, 4.0]) + rng.choice([0.0, 1e-12, 1.0])
        try:
            w = witness(system, R, v, np.where(z < LEAST, 0.0, z))
            box = balanced(system, w)
        except RefusedError:
            continue
        if not box.lost.any():
            B = np.array(K.T)
            if np.linalg.matrix_rank(B @ R) == N:
                proved += 1
                assert balance_holds(system, w, box)
    assert proved > 5


def test_corrections_that_are_too_small_by_little_are_not_taken():
    system = general([[1.0]])
    for x in (1.0, -3.7, 1e-60):
        v = np.array([x])
        for t, taken in ((1.0 - 2.0**-53, False), (1.0, False), (1.0 - 1e-6, False), (1.0 + 1e-6, True)):
            box = balanced(system, witness(system, [[1.0]], v, np.array([abs(x) * t])))
            assert box.lost.any() != taken
            if taken:
                assert number(box.spread[0]) >= abs(number(x))
    zero = balanced(system, witness(system, [[1.0]], np.zeros(1), np.zeros(1)))
    assert not zero.lost.any()
    assert not zero.spread.any()
    assert zero.why == ""


def test_what_is_left_is_counted_with_its_low_parts_and_errors():
    """Sums that vanish but for their low parts; and in plain ones but for what rounding may have done."""
    system = general([[1.0], [-1.0]])
    v, low = np.ones(2), np.array([2.0**-60, 0.0])
    R = [[1.0], [0.0]]
    assert not balanced(system, witness(system, R, v, np.zeros(1))).lost.any()
    assert balanced(system, witness(system, R, v, np.zeros(1), low)).lost.any()
    assert balanced(system, witness(system, R, v, np.array([2.0**-61]), low)).lost.any()
    assert not balanced(system, witness(system, R, v, np.array([2.0**-59]), low)).lost.any()
    assert balanced(system, witness(system, R, v, np.zeros(1), plain=True)).lost.any()
    taken = Pair(np.zeros((1, 1)), np.zeros((1, 1)), np.full((1, 1), 1e-9))
    system.outside = taken
    assert balanced(system, witness(system, R, v, np.full(1, 0.9e-9))).lost.any()
    assert not balanced(system, witness(system, R, v, np.full(1, 1.1e-9))).lost.any()
    system.outside = replace(taken, error=np.full((1, 1), np.nan))
    assert balanced(system, witness(system, R, v, np.full(1, 1e100))).lost.any()


# ---- how an imbalance is taken up ------------------------------------------------------------------------------------
def exact_rest(system, R):
    """|I - BR| in rationals."""
    B, R = matrix(system), [numbers(row) for row in np.asarray(R)]
    N = len(B)
    return [
        [abs((i == j) - sum((b * r[j] for b, r in zip(B[i], R, strict=True)), exactly(0))) for j in range(N)]
        for i in range(N)
    ]


@pytest.mark.parametrize("name", FORMS)
def test_answers_bound_what_they_miss(name):
    system = System(form_of(name))
    rng = np.random.default_rng(0)
    N, V = system.shape
    R = np.linalg.pinv(system.kind.B.toarray()) * (1.0 + rng.choice([0.0, 1e-12, 1e-3]) * rng.standard_normal((V, N)))
    R = np.where((np.abs(R) > 1e-12) & (rng.random((V, N)) < 0.7), R, 0.0)
    found, exact = answers(system, R), exact_rest(system, R)
    E, size = found.E.toarray(), abs(system.kind.B).toarray() @ np.abs(R)
    for i in range(N):
        for j in range(N):
            assert number(E[i, j]) >= exact[i][j]
    assert (np.array([[float(x) for x in row] for row in exact]) * (1 + 1e-12) + 1e-12 * size >= E).all()
    np.testing.assert_array_equal(found.moves, (R != 0.0).any(axis=1))
    np.testing.assert_array_equal(found.reach.toarray(), np.abs(R))


@pytest.mark.parametrize("V", [2, 8, 40])
def test_answers_that_lose_everything_they_can(V):
    """BR is 1 as rounded; what it misses of that is what each sum lost."""
    system = general(np.ones((V, 1)))
    R = np.concatenate([[1.0], np.full(V - 1, ALMOST)])[:, None]
    exact = exact_rest(system, R)[0][0]
    assert exact > (V - 1) * number(ALMOST) * exactly(9, 10)
    assert number(answers(system, R).E[0, 0]) >= exact
    beside = general(np.array([[1.0, 3.0]]))
    R = np.array([[0.1, 0.0]])
    E = answers(beside, R).E.toarray()
    for i, row in enumerate(exact_rest(beside, R)):
        for j, x in enumerate(row):
            assert number(E[i, j]) >= x


@pytest.mark.parametrize("x", [1e-270, 5e-324])
def test_answers_know_what_underflows(x):
    """The only product in its equation is 0 in floats."""
    system = general([[1.0, x], [0.0, 1.0]])
    R = np.array([[1e-60, 0.0], [0.0, 1.0]])
    E = answers(system, R).E.toarray()
    exact = exact_rest(system, R)
    assert 0 < exact[1][0] <= number(E[1, 0])


@pytest.mark.parametrize("N", [2, 8, 40])
def test_what_is_passed_on_is_not_less(N):
    """Sums that lose everything they can."""
    found = answers(general(np.eye(N)), np.eye(N))
    found.E = sp.csr_array(np.ones((N, N)))
    found.reach = sp.csr_array(np.ones((N, N)))
    found.width = N
    z = np.concatenate([[1.0], np.full(N - 1, ALMOST)])
    for value in (found.passed(z), found.moved(z)):
        assert number(value[0]) >= sum(numbers(z))
        assert value[0] <= 1.0 + 1e-13
    assert answers(general(np.eye(N)), np.eye(N)).width == 1
    assert answers(general(np.ones((N, N))), np.eye(N)).width == N
    R = np.eye(N)
    R[0] = 0.5
    assert answers(general(np.eye(N)), R).width == N
    assert answers(general(np.ones((1, N))), np.full((1, N), 0.1)).width == N
    for each in (found.passed, found.moved):
        assert not each(np.zeros(N)).any()
        assert np.isnan(each(np.full(N, np.nan))).all()


def test_entries_that_are_there_twice_are_added():
    system = general([[2.0]])
    twice = sp.csr_array((np.array([0.25, 0.25]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    found = Answers(system, twice)
    assert found.E[0, 0] < 1e-14
    assert found.reach[0, 0] == 0.5


# ---- (B) -------------------------------------------------------------------------------------------------------------
def dummies(extra=None):
    """An intercept, and two groups that add up to it; by rows, and a row more."""
    rng = np.random.default_rng(1)
    group = np.array([0, 1, 0, 1, 1])
    K = np.column_stack([np.ones(5), group == 0, group == 1]).astype(float) * rng.uniform(1, 2, 5)[:, None]
    return K if extra is None else np.vstack([K, extra])


FOLLOWS = {0: Fraction(-1, 3), 1: Fraction(1, 3), 2: Fraction(1, 3)}


def dropping(K, combination=None, v=None, low=None, at=0, *, moving=None, outside=None, also=None, more=None):
    """True where the equation is found to follow: balanced in rationals, then."""
    K = np.asarray(K, dtype=float)
    rng = np.random.default_rng(2)
    system = general(K)
    system.outside = outside
    v = rng.standard_normal(len(K)) if v is None else np.asarray(v, dtype=float)
    kept = [i for i in range(K.shape[1]) if i != at and i not in (also or {})]
    R = np.zeros((len(K), K.shape[1]))
    some = np.arange(min(len(K), 5)) if moving is None else moving
    R[np.ix_(some, kept)] = np.linalg.pinv(K[some][:, kept].T)
    R[np.abs(R) < 1e-12] = 0.0
    if more is not None:
        R[-len(more) :, kept] = more
    dropped = {at: FOLLOWS if combination is None else combination} | (also or {})
    found = answers(system, R)
    z = sizes(system, found, np.where(np.isin(np.arange(K.shape[1]), kept), left_of(system, v, low), 0.0))
    z[list(dropped)] = 0.0
    w = witness(system, found, v, z, low, dropped)
    box = balanced(system, w)
    if not box.lost.any():
        assert balance_holds(system, w, box)
    return not box.lost.any()


def test_equations_that_follow_from_others_may_be_dropped():
    assert dropping(dummies())
    assert dropping(dummies(), {0: 1, 1: -1, 2: -1})
    assert dropping(dummies(), {1: Fraction(7), 0: Fraction(-7), 2: Fraction(7)}, at=1)
    scaled = dummies() * np.array([1.0, 2.0**-20, 2.0**20])
    assert dropping(scaled, {0: Fraction(1), 1: -Fraction(2**20), 2: -Fraction(1, 2**20)})
    assert not dropping(scaled)


def test_combinations_that_miss_the_equation_itself_say_nothing_of_it():
    K = np.column_stack([dummies(), np.arange(1.0, 6.0)])  # the last follows from none
    for wrong in (FOLLOWS, FOLLOWS | {3: Fraction(0)}, {}):
        assert not dropping(K, wrong, at=3)
    assert not dropping(dummies(), {})
    assert not dropping(dummies(), {1: Fraction(0)}, at=1)


def test_combinations_of_what_is_dropped_itself_say_nothing():
    K = np.column_stack([dummies(), dummies()[:, 1]])
    also = {3: {3: Fraction(1), 1: Fraction(-1)}}
    assert dropping(K, also=also)
    around = {1: {3: Fraction(1), 1: Fraction(-1)}, 3: {3: Fraction(1), 1: Fraction(-1)}}
    assert not dropping(K, around[1], at=1, also={3: around[3]})
    assert not dropping(K, {1: Fraction(1)}, at=1)
    assert not dropping(np.array([[0.0], [1.0]]), {0: Fraction(1)}, v=[1.0, 1.0])


@pytest.mark.parametrize("j", [-1, 3, -3])
def test_combinations_of_equations_that_are_none_say_nothing(j):
    """-1 once might have named an equation twice."""
    K = dummies()
    assert not dropping(K, {0: Fraction(1), 1: Fraction(-1), 2: Fraction(-1), j: Fraction(0)})
    assert not dropping(K, {0: Fraction(1), 1: Fraction(-1), j: Fraction(-1)})


ROW = [1.0, 0.5, 0.0]  # obeys no such law


@pytest.mark.parametrize(
    ("v", "low", "moves", "follows"),
    [
        (0.0, 0.0, False, True),
        (1e-200, 0.0, False, False),
        (0.0, 1e-200, False, False),
        (0.0, 0.0, True, False),
    ],
)
def test_equations_follow_at_variables_that_are_0_and_stay_so(v, low, moves, follows):
    first = np.random.default_rng(3).standard_normal(5)
    moving = np.arange(6) if moves else None
    found = dropping(dummies(ROW), v=[*first, v], low=np.array([0.0] * 5 + [low]), moving=moving)
    assert found == follows


TIED = [ROW, [0.5, 1.0, 0.0]]  # of both together the law holds where they are the same


@pytest.mark.parametrize(
    ("v", "low", "R", "follows"),
    [
        ((0.3, 0.3), (0.0, 0.0), (0.0, 0.0), True),
        ((0.3, 0.3), (2.0**-60, 2.0**-60), (0.0, 0.0), True),
        ((0.3, 0.3), (2.0**-60, 0.0), (0.0, 0.0), False),
        ((0.3, np.nextafter(0.3, 1.0)), (0.0, 0.0), (0.0, 0.0), False),
        ((1.0, 1.0 - 2.0**-53), (0.0, 2.0**-53), (0.0, 0.0), True),
        ((0.3, 0.3), (0.0, 0.0), (2.0**-20, 2.0**-20), True),
        ((0.3, 0.3), (0.0, 0.0), (2.0**-20, 0.0), False),
        ((0.3, 0.3), (0.0, 0.0), (2.0**-20, 2.0**-20 + 2.0**-70), False),
        ((0.0, 0.0), (0.0, 0.0), (0.0, 2.0**-20), False),
    ],
)
def test_equations_follow_where_what_is_off_the_law_cancels_exactly(v, low, R, follows):
    first = np.random.default_rng(3).standard_normal(5)
    found = dropping(dummies(TIED), v=[*first, *v], low=np.array([0.0] * 5 + [*low]), more=np.array(R)[:, None])
    assert found == follows


def test_what_is_off_the_law_is_weighed_by_how_far():
    K, more = dummies([ROW, [0.5, 0.75, 0.0]]), np.array([[2.0**-21], [2.0**-20]])  # off by .5 and -.25
    first = [*np.random.default_rng(3).standard_normal(5)]
    assert dropping(K, v=[*first, 0.3, 0.6], more=more)
    assert not dropping(K, v=[*first, 0.3, 0.6], more=more[::-1])
    assert not dropping(K, v=[*first, 0.6, 0.3], more=more)


@pytest.mark.parametrize("power", [0, -30, -52, -230, -1074])
def test_almost_dummies_do_not_pass_for_dummies(power):
    K = dummies()
    K[2] = [1.0, 1.0, 2.0**power]
    assert not dropping(K)
    if power > -200:
        still = np.array([1.0, 1.0, 0.0, 1.0, 1.0])
        assert dropping(K, v=still, moving=np.array([0, 1, 3, 4]))


def test_integers_are_scaled_alike():
    """Entries and combinations of very different denominators."""
    K = np.array([[3.0, 0.75, 2.0**-60], [1.0, 0.25, 0.0]])
    follows = {0: Fraction(1), 1: Fraction(-4), 2: Fraction(0)}
    assert dropping(K[:, :2], {0: Fraction(1), 1: Fraction(-4)})
    assert not dropping(K, follows)
    big = {0: Fraction(1, 3 * 7**20), 1: Fraction(-4, 3 * 7**20)}
    assert dropping(K[:, :2], big)
    assert not dropping(K[:, :2], big | {1: Fraction(-4, 3 * 7**20) + Fraction(1, 7**40)})


def test_another_combination_of_as_many_equations_is_looked_at_anew():
    """What one comes to is remembered, beside its own copy."""
    system, kept, y = general(dummies()), np.array([False, True, True]), dict(FOLLOWS)
    v, nothing = np.random.default_rng(2).standard_normal(5), sp.csr_array((5, 3))
    for first, second, holds in [(0, 1, True), (2, 1, False), (0, 1, True), (2, 2, False), (0, 1, True)]:
        y[1], y[2] = Fraction(first + 1, 3), Fraction(second, 3)
        for each in (y, dict(y)):
            assert follows(system, 0, each, kept, (v, np.zeros(5)), nothing) == holds


@pytest.mark.parametrize("part", ["high", "low", "error"])
def test_equations_from_which_something_is_taken_outside_do_not_follow(part):
    for i, allowed in ((0, False), (1, False), (3, True)):
        K = np.column_stack([dummies(), np.arange(5.0) ** 2])
        taken = {name: np.zeros((1, 4)) for name in ("high", "low", "error")}
        taken[part][0, i] = 1e-12
        assert dropping(K, outside=Pair(**taken)) == allowed
    assert dropping(dummies(), outside=Pair(*np.zeros((3, 1, 3))))


# ---- components ------------------------------------------------------------------------------------------------------
def two():
    loss = gr.SquaredLoss(regression())
    return gr.Problem(loss + 0.1 * gr.TotalVariation(nx.Graph([(0, 1), (2, 3)]), gr.L1())).form


def test_a_component_that_is_open_is_lost_alone():
    form = two()
    system = System(form)
    R = np.linalg.pinv(system.kind.B.toarray())
    R[np.abs(R) < 1e-10] = 0.0
    found, v = answers(system, R), np.random.default_rng(4).standard_normal(system.size)
    z = sizes(system, found, left_of(system, v))
    w = witness(system, found, v, z)
    assert not balanced(system, w).lost.any()
    for i in (0, 5, 8, 11):
        short = np.where(np.arange(len(z)) == i, 0.5 * z, z)
        box = balanced(system, replace(w, z=short))
        assert box.lost.tolist() == [i < 6, i >= 6]
        node, column = divmod(i, 3)
        assert f"column 'x{column}' at node {node}" in box.why
        assert balance_holds(system, replace(w, z=short), box)
    short = z.copy()
    short[7] = 0.0
    dropped = {7: {7: Fraction(1), 8: Fraction(1)}}
    assert balanced(system, replace(w, z=short, dropped=dropped)).lost.tolist() == [False, True]


def test_answers_from_one_component_to_another_are_counted():
    """What corrects an equation of one, and disturbs the other, is paid for there."""
    system = System(two())
    R = np.linalg.pinv(system.kind.B.toarray())
    R[np.abs(R) < 1e-10] = 0.0
    of = np.r_[system.prices[0].node, np.repeat(system.flows[0].node, 3)] >= 2
    R[np.flatnonzero(of)[0], 0] = 0.7
    found, v = answers(system, R), np.random.default_rng(5).standard_normal(system.size)
    z = sizes(system, found, left_of(system, v))
    w = witness(system, found, v, z)
    box = balanced(system, w)
    assert not box.lost.any()
    assert balance_holds(system, w, box)
    alone = replace(w, z=sizes(system, answers(system, np.where(R == 0.7, 0.0, R)), left_of(system, v)))
    assert balanced(system, alone).lost.any()


# ---- premises --------------------------------------------------------------------------------------------------------
def good():
    K = dummies()
    system = general(K)
    R = np.zeros((5, 3))
    R[:, 1:] = np.linalg.pinv(K[:, 1:].T)
    R[np.abs(R) < 1e-12] = 0.0
    v, found = np.random.default_rng(6).standard_normal(5), answers(system, R)
    z = np.r_[0.0, sizes(system, found, left_of(system, v))[1:]]
    return system, witness(system, found, v, z, dropped={0: FOLLOWS})


def changed(x, at, value):
    out = np.array(x)
    out[at] = value
    return out


WRONG = {
    "NaN in the prices": lambda w: replace(w, high=changed(w.high, 2, np.nan)),
    "an infinite price": lambda w: replace(w, high=changed(w.high, 2, -np.inf)),
    "a price out of range": lambda w: replace(w, high=changed(w.high, 0, MOST)),
    "NaN in the low parts": lambda w: replace(w, low=changed(w.low, 4, np.nan)),
    "a low part out of range": lambda w: replace(w, low=changed(w.low, 4, -MOST)),
    "NaN in the sizes": lambda w: replace(w, z=changed(w.z, 1, np.nan)),
    "infinite sizes": lambda w: replace(w, z=np.r_[0.0, np.inf, np.inf]),
    "a size below 0": lambda w: replace(w, z=changed(w.z, 1, -1.0)),
    "a tiny size": lambda w: replace(w, z=changed(w.z, 1, 0.5 * LEAST)),
    "a size out of range": lambda w: replace(w, z=changed(w.z, 1, MOST)),
    "a size where nothing is kept": lambda w: replace(w, z=changed(w.z, 0, 1.0)),
    "low parts beside plain sums": lambda w: replace(w, low=changed(w.low, 1, 1e-30), plain=True),
    "too few prices": lambda w: replace(w, high=w.high[:-1], low=w.low[:-1]),
    "too few low parts": lambda w: replace(w, low=w.low[:1]),
    "prices in a column": lambda w: replace(w, high=w.high[:, None], low=w.low[:, None]),
    "prices in a column beside low parts in none": lambda w: replace(w, high=w.high[:, None]),
    "low parts in a column": lambda w: replace(w, low=w.low[:, None]),
    "sizes in a column": lambda w: replace(w, z=w.z[:, None]),
    "too many sizes": lambda w: replace(w, z=np.r_[w.z, 0.0]),
    "a dropped equation that is none": lambda w: replace(w, dropped=w.dropped | {3: FOLLOWS}),
    "the dropped equation -1": lambda w: replace(w, dropped={-1: FOLLOWS}),
    "a dropped equation below 0": lambda w: replace(w, dropped={-3: FOLLOWS}),
    "answers to another system": lambda w: replace(w, answers=answers(general(2.0 * dummies()), w.answers.R)),
    "answers to a copy of it": lambda w: replace(w, answers=answers(general(dummies()), w.answers.R)),
}


def test_premises_that_hold():
    system, w = good()
    assert not balanced(system, w).lost.any()
    assert not balanced(system, replace(w, plain=True, z=w.z * 1.1)).lost.any()


@pytest.mark.parametrize("name", WRONG)
def test_premises_are_looked_at(name):
    system, w = good()
    with pytest.raises(RefusedError):
        balanced(system, WRONG[name](w))


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((5, 2)),
        np.zeros((3, 5)),
        np.full((5, 3), np.nan),
        np.full((5, 3), np.inf),
        np.full((5, 3), 1.1 * RANGE),
        np.full((5, 3), 0.9 / RANGE),
    ],
)
def test_answers_out_of_shape_or_range_are_refused(wrong):
    with pytest.raises(RefusedError):
        answers(general(dummies()), wrong)


def test_answers_by_columns_are_refused():
    square = general(np.eye(3))
    with pytest.raises(RefusedError, match="shape"):
        Answers(square, sp.csc_array(np.eye(3)))


@pytest.mark.parametrize("index", [-1, 3])
def test_answers_to_nothing_are_refused(index):
    R = sp.csr_array(np.eye(3))
    R.indices = np.array([0, 1, index], dtype=R.indices.dtype)
    with pytest.raises(RefusedError, match="nowhere"):
        Answers(general(np.eye(3)), R)


def test_products_that_overflow_are_refused():
    """In one entry of several: designs are to be in range, and then none does."""
    with pytest.raises(RefusedError, match="too large"):
        general(np.diag([1e300, 1.0]))
    found = answers(general(RANGE * np.eye(2)), RANGE * np.eye(2))
    assert np.isfinite(found.E.data).all()


def test_sums_are_exact_unless_it_is_said():
    system, w = good()
    assert not Witness(w.high, w.low, w.answers, w.z).plain
    assert Witness(w.high, w.low, w.answers, w.z).dropped == {}
    assert balanced(system, w).why == ""


def test_boxes_are_those_of_the_witness():
    system, w = good()
    box = balanced(system, w)
    assert box.high is w.high
    assert box.low is w.low
    R, z = [numbers(row) for row in w.answers.R.toarray()], numbers(w.z)
    for row, spread in zip(R, box.spread, strict=True):
        exact = sum(abs(r) * x for r, x in zip(row, z, strict=True))
        assert exact <= number(spread) <= exact * (1 + 100 * exactly(EPS)) + exactly(1e-290)


def test_no_equations_are_balanced():
    system = System(blank(2))
    box = balanced(system, witness(system, sp.csr_array((0, 2)), np.zeros(0), np.zeros(2)))
    assert not box.lost.any()
