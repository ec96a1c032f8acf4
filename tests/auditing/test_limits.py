"""The limits of runs, on courses that are made up: each kind of limit, and none other."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from audit_cases import network

from graphreg.auditing.algorithms import algorithm_of
from graphreg.auditing.course import FAR, Course, run, unit_of
from graphreg.auditing.evidence import Evidence
from graphreg.auditing.limits import Optimum, limit_of
from graphreg.auditing.referee import CLAIMS

AWAY = np.random.default_rng(0).normal(size=(9, 2))


@pytest.fixture(scope="module")
def optimum():
    return Optimum.of(network("l2"))


def course(points, rounds=3000):
    out = Course(AWAY.shape)
    for k in range(1, rounds + 1):
        out.add(points(k))
    return out


@pytest.mark.parametrize(
    ("points", "kind"),
    [
        (lambda w, k: w + 0.9**k * AWAY, "right"),
        (lambda w, k: w + k**-1.0 * AWAY, "right in the limit"),
        (lambda w, k: w + k**-0.5 * AWAY, "right in the limit"),
        (lambda w, k: w + (1e-2 + k**-1.0) * AWAY, "wrong"),
        (lambda w, k: w + 0.1 * AWAY + 0.9**k, "wrong"),
        (lambda w, k: w + 0.1 * (-1) ** k * AWAY, "never settles"),
        (lambda w, k: w + k**-0.2 * AWAY, "undecided"),
        (lambda w, k: w + (0.5 - 1e-5 * k) * AWAY, "undecided"),
        (lambda w, k: w + 0.1 * (np.cos(np.log(k)) * AWAY + np.sin(np.log(k)) * AWAY[::-1]), "undecided"),
    ],
    ids=["linear", "1/k", "k^-0.5", "1/k elsewhere", "elsewhere", "to and fro", "k^-0.2", "slow", "around"],
)
def test_limits_by_kind(optimum, points, kind):
    assert limit_of(course(partial(points, optimum.w)), optimum).kind == kind


def test_few_rounds_decide_nothing(optimum):
    assert limit_of(course(lambda k: optimum.w + k**-1.0 * AWAY, 50), optimum).kind == "undecided"


@pytest.mark.parametrize(
    ("bias", "noise", "kind"),
    [
        (lambda k: 0.0, 0.1, "undecided"),
        (lambda k: 0.2, 0.1, "wrong"),
        (lambda k: 0.5 - 1e-5 * k, 1e-4, "undecided"),  # at the same pace without noise it is, too
        (lambda k: 1.0 + k**-0.2, 1e-3, "wrong"),
        (lambda k: k**-0.2, 1e-3, "undecided"),
    ],
    ids=["none", "bias", "the same pace", "k^-0.2 elsewhere", "k^-0.2"],
)
def test_noise_is_told_from_bias(optimum, bias, noise, kind):
    runs = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        runs.append(course(lambda k, rng=rng: optimum.w + bias(k) * AWAY + noise * rng.normal(size=AWAY.shape), 1500))
    assert limit_of(runs[0], optimum, tuple(runs[1:])).kind == kind


@pytest.mark.parametrize(("ended", "verdict"), [("time", "undecided"), ("ended", "no limit"), ("raised", "no limit")])
def test_no_round_in_time_is_undecided(optimum, ended, verdict):
    none = replace(course(None, 0), ended=ended)
    assert Evidence(None, CLAIMS).verdict(limit_of(none, optimum), ended) == verdict


def test_a_distance_that_noise_does_not_explain_is_not_said_to_be_noise(optimum):
    """Runs that all come from the same side, and are still on their way."""
    runs = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        noise = partial(rng.normal, size=AWAY.shape)
        runs.append(course(lambda k, noise=noise: optimum.w + 3.0 * k**-0.4 * AWAY + 1e-2 * noise(), 1500))
    found = limit_of(runs[0], optimum, tuple(runs[1:]))
    assert found.kind == "undecided"
    assert re.search(r"over 5 seeds, of which noise explains \d%: their mean is \d+\.\d standard errors", found.why)
    assert "by noise" not in found.why


def test_what_is_kept_of_a_long_run_is_bounded(optimum):
    long = course(lambda k: optimum.w + 1.0 / k, 5000)
    assert len(long.points) <= 1025
    assert long.rounds[-1] <= long.total == 5000
    assert np.array_equal(long.last, optimum.w + 1.0 / 5000)


@pytest.mark.parametrize(("turns", "early"), [(40, 0.19), (1100, 0.39)])
def test_a_run_diverges_beyond_a_multiple_of_its_first_points_that_are_kept(turns, early):
    """Of a long run every other point goes, so that the first twenty that are kept are later ones."""
    problem = network("squared")

    def ended(largest):
        sizes = [*(10.0 ** (k / 100) for k in range(turns)), largest]
        points = (size * (-1) ** k * unit_of(problem.form) * np.ones((9, 2)) for k, size in enumerate(sizes))
        return run(algorithm_of(lambda given: points), problem, turns + 1).ended

    assert ended(0.9 * 10.0**early * FAR) == ""
    assert ended(1.1 * 10.0**early * FAR) == "diverged"
