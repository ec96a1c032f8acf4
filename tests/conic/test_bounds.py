"""Bounds against optimal values that are known exactly, from good answers and from garbage."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from conic_cases import dot, exact, planted

from graphreg.conic import canonical, proving
from graphreg.conic.canonical import Answer
from graphreg.conic.programme import Block, Programme


def holds(known, value):
    return (np.isinf(known.lower) or Fraction(known.lower) <= value) and (
        np.isinf(known.upper) or Fraction(known.upper) >= value
    )


@pytest.mark.parametrize("quadratic", [True, False])
def test_exact_optima_lie_between_the_bounds(quadratic):
    both = 0
    for seed in range(30):
        p, value, x, z = planted(seed, quadratic)
        known = proving.proved(p, canonical.helped(p), 1e-6)
        assert holds(known, value), (seed, known.lower, value, known.upper)
        assert known.status == "", (seed, known.status)
        both += known.gap() <= 1e-5
        assert holds(proving.proved(p, Answer(x, z), 1e-6, helped=False), value), seed
    assert both >= 29, both


def test_garbage_gives_no_false_bound():
    r, one, tries = np.random.default_rng(5), 0, 0
    for seed in range(10):
        p, value, x, z = planted(seed)
        for noise in (1e-12, 1e-4, 1.0):
            answer = Answer(*(v + noise * (1 + np.abs(v)) * r.normal(size=len(v)) for v in (x, z)))
            known = proving.proved(p, answer, 1e-6, helped=False)
            assert holds(known, value), (seed, noise, known.lower, float(value), known.upper)
            assert known.status == "", (seed, noise)
            one += bool(np.isfinite(known.lower) or np.isfinite(known.upper))
            tries += 1
    assert one > tries // 2, one


def programme(A, b, q, blocks, P=None):
    n = len(q)
    P = sp.csr_array((n, n)) if P is None else sp.csr_array(np.array(P, float))
    return Programme(P, np.array(q, float), sp.csr_array(np.array(A, float)), np.array(b, float), blocks)


def test_what_is_feasible_is_not_called_infeasible_where_entries_are_held():
    """x1 + x2 <= .3, x1 <= .1, x2 <= .2 at (.1, .2): as equalities they contradict each other, by rounding."""
    p = programme([[1, 1], [1, 0], [0, 1]], [0.3, 0.1, 0.2], [-1, -1], (Block("nonneg", slice(0, 3)),))
    for x in ([0.1, 0.2], [0.1 - 1e-12, 0.2 - 1e-12]):
        known = proving.proved(p, Answer(np.array(x), np.array([0.5, 0.5, 0.5])), 1e-6)
        assert known.status == ""
        assert known.gap() < 1e-6
        assert Fraction(known.lower) <= -min(Fraction(0.3), Fraction(0.1) + Fraction(0.2)) <= Fraction(known.upper)


def test_equalities_that_contradict_each_other_by_rounding():
    zero = (Block("zero", slice(0, 3)),)
    p = programme([[1, 1, 0], [0, 1, 1], [1, 2, 1]], [0.1, 0.2, 0.3], [0, 0, 0], zero, np.eye(3))
    known = proving.proved(p, canonical.helped(p), 1e-6)
    assert known.status == "infeasible as stored"
    assert known.excess == abs(float(Fraction(0.1) + Fraction(0.2) - Fraction(0.3)))
    p = programme([[1, 1, 0], [0, 1, 1], [1, 2, 1]], [0.25, 0.5, 0.75], [0, 0, 0], zero, np.eye(3))
    assert proving.proved(p, canonical.helped(p), 1e-6).gap() < 1e-12


def test_linear_terms_that_miss_cancelling_each_other_by_rounding():
    """Along (1, 1, -1) no row changes."""
    rows, q, lines = [[1, 0, 1], [0, 1, 1]], [-0.1, -0.2, -0.3], (Block("nonneg", slice(0, 2)),)
    nothing = Answer(np.zeros(3), np.array([0.1, 0.2]))
    p = programme(rows, [1, 1], q, lines)
    known = proving.proved(p, nothing, 1e-6, helped=False)
    assert (known.status, known.lower, known.upper) == ("unbounded as stored", -np.inf, -np.inf)
    assert known.excess == abs(float(Fraction(0.1) + Fraction(0.2) - Fraction(0.3)))
    exactly = programme(rows, [1, 1], [-0.25, -0.5, -0.75], lines)
    assert proving.proved(exactly, Answer(np.zeros(3), np.array([0.25, 0.5])), 1e-6, helped=False).status == ""
    # as long as no point is known to be feasible there may be none
    p = programme([*rows, [-1, -1, -2]], [1, 1, -3], q, (Block("nonneg", slice(0, 3)),))
    known = proving.proved(p, Answer(np.zeros(3), np.array([0.1, 0.2, 0.0])), 1e-6, helped=False)
    assert (known.status, known.upper) == ("", np.inf)


def test_infeasible_and_unbounded():
    lines = (Block("nonneg", slice(0, 2)),)
    known = proving.proved(p := programme([[1], [-1]], [-1, 0.5], [1], lines), canonical.helped(p), 1e-6)
    assert (known.status, known.lower) == ("infeasible", np.inf)
    known = proving.proved(p := programme([[-1, 0], [0, 1]], [0, 5], [1, 1], lines), canonical.helped(p), 1e-6)
    assert (known.status, known.upper) == ("unbounded", -np.inf)
    # the ray of another problem proves nothing
    p = programme([[1], [-1]], [2.0, 0.5], [1], lines)
    assert proving.proved(p, Answer(np.ones(1), np.ones(2), "infeasible"), 1e-6, helped=False).status == ""
    assert proving.proved(p, Answer(-np.ones(1), np.ones(2), "unbounded"), 1e-6, helped=False).status == ""


def test_a_matrix_that_rounding_made_indefinite_is_paid_for_by_the_ranges():
    P = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 - 1e-15, 0.0], [0.0, 0.0, 1.0]])
    A = np.vstack([np.eye(3), -np.eye(3)])
    p = programme(A, [1.0] * 3 + [0.0] * 3, [-1, -1, -1], (Block("nonneg", slice(0, 6)),), P)
    known = proving.proved(p, canonical.helped(p), 1e-6)
    assert known.curvature < 0.0
    assert known.gap() < 1e-6
    best = Fraction(-1)  # of sum x = 1 in the first two, and x3 = 1: (1 - 1e-15 x2^2) / 2 - 1 + 1/2 - 1
    assert Fraction(known.lower) <= best - Fraction(1e-15) / 2 <= Fraction(known.upper) + Fraction(1e-14)
    free = programme(np.zeros((0, 3)), [], [0, 0, 0], (), P)
    assert proving.proved(free, canonical.helped(free), 1e-6).lower == -np.inf


def test_the_exact_point_of_a_certificate_solves_the_equations_within_its_radius():
    from graphreg.conic import programme as systems

    for seed in range(15):
        p, _, _, _ = planted(seed)
        known = proving.proved(p, canonical.helped(p), 1e-6)
        for use, system in (("primal", systems.primal(p)), ("dual", systems.dual(p))):
            if use not in known.evidence:
                continue
            found = known.evidence[use]
            y = [Fraction(h) + Fraction(w) for h, w in zip(found.high, found.proposal.low, strict=True)]
            rows = system.M.toarray()
            for i in range(len(system.c)):
                missed = abs(dot(rows[i], y) - Fraction(system.c[i]))
                assert missed <= dot(np.abs(rows[i]), found.radius) + (0 if i not in found.proposal.left else 1), (
                    seed,
                    i,
                )
            assert len(exact(found.radius)) == len(y)


def test_rows_that_follow_from_others_by_no_simple_numbers():
    """Two rows of data about three variables: the third equation of the dual follows from the two others, exactly."""
    r = np.random.default_rng(2)
    A = r.standard_normal((2, 3))
    p = programme(np.vstack([A, -A]), [1.0, 1.0, 0.5, 0.5], [0.0, 0.0, 0.0], (Block("nonneg", slice(0, 4)),))
    known = proving.proved(p, Answer(np.zeros(3), np.array([0.3, 0.2, 0.3, 0.2])), 1e-6, helped=False)
    assert known.gap() < 1e3
    witness = known.evidence["dual"].proposal.witness
    assert any(max(x.denominator for x in each.values()) > 1e6 for each in witness)
