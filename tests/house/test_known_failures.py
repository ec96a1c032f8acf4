"""Problems around those that once broke certificates, swept over scales, shifts and collinearity, judged exactly."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.soundness import judged
from benchmarks.soundness.failures import FAILURES

SOLVED = ("certified", "unattained")
REFUSED = ("refused", "no_certificate", "budget", "failed")  # honestly: no bound is claimed that does not hold
FITTED = ("almost collinear",)  # the optimum is 0: what is left is beyond what floats resolve, and so is its unit


@cache
def examined(name, value):
    return judged.examine(FAILURES[name].make(value), seconds=5.0)


@pytest.mark.parametrize("name", FAILURES)
def test_no_scale_breaks_a_certificate(name, whole):
    """At both ends of each sweep; at all of them with ``make test ARGS=--whole``."""
    sweep = FAILURES[name].sweep
    for value in sweep if whole else sweep[:: max(1, len(sweep) - 1)]:
        row = examined(name, value)
        assert not row.error
        for answer in row.answers:
            assert not answer.wrong, (name, value, answer.method, answer.wrong)
            judged_wrong = [said for said in answer.misjudged if name not in FITTED or not said.startswith("unit")]
            assert not judged_wrong, (name, value, answer.method, judged_wrong)
            assert answer.status in SOLVED + REFUSED


@pytest.mark.parametrize("name", FAILURES)
def test_what_is_harmless_is_solved(name):
    row = examined(name, FAILURES[name].sweep[0])
    assert {answer.status for answer in row.answers} <= set(SOLVED)
