"""The limits of runs, on courses that are made up: each kind of limit, and none other."""

from __future__ import annotations

import numpy as np
import pytest
from audit_cases import network

from graphreg.auditing.course import Course
from graphreg.auditing.limits import Optimum, limit_of

OPTIMUM = Optimum.of(network("l2"))
AWAY = np.random.default_rng(0).normal(size=OPTIMUM.w.shape)


def course(points, rounds=3000):
    out = Course(OPTIMUM.w.shape)
    for k in range(1, rounds + 1):
        out.add(points(k))
    return out


@pytest.mark.parametrize(
    ("points", "kind"),
    [
        (lambda k: OPTIMUM.w + 0.9**k * AWAY, "right"),
        (lambda k: OPTIMUM.w + k**-1.0 * AWAY, "right in the limit"),
        (lambda k: OPTIMUM.w + k**-0.5 * AWAY, "right in the limit"),
        (lambda k: OPTIMUM.w + (1e-2 + k**-1.0) * AWAY, "wrong"),
        (lambda k: OPTIMUM.w + 0.1 * AWAY + 0.9**k, "wrong"),
        (lambda k: OPTIMUM.w + 0.1 * (-1) ** k * AWAY, "never settles"),
        (lambda k: OPTIMUM.w + k**-0.2 * AWAY, "undecided"),
        (lambda k: OPTIMUM.w + (0.5 - 1e-5 * k) * AWAY, "undecided"),
    ],
    ids=["linear", "1/k", "k^-0.5", "1/k elsewhere", "elsewhere", "to and fro", "k^-0.2", "slow"],
)
def test_limits_by_kind(points, kind):
    assert limit_of(course(points), OPTIMUM).kind == kind


def test_few_rounds_decide_nothing():
    assert limit_of(course(lambda k: OPTIMUM.w + k**-1.0 * AWAY, 50), OPTIMUM).kind == "undecided"


@pytest.mark.parametrize(("bias", "kind"), [(0.0, "undecided"), (0.2, "wrong")])
def test_noise_is_told_from_bias(bias, kind):
    runs = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        runs.append(course(lambda k, rng=rng: OPTIMUM.w + bias * AWAY + 0.1 * rng.normal(size=AWAY.shape), 1500))
    assert limit_of(runs[0], OPTIMUM, tuple(runs[1:])).kind == kind


def test_what_is_kept_of_a_long_run_is_bounded():
    long = course(lambda k: OPTIMUM.w + 1.0 / k, 5000)
    assert len(long.points) <= 1025
    assert long.rounds[-1] <= long.total == 5000
    assert np.array_equal(long.last, OPTIMUM.w + 1.0 / 5000)
