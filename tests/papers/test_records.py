"""Comparisons and the verdicts that follow from them: nothing passes that was not computed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graphreg.errors import ModelError
from papers import Evidence, Verdict, at_least, at_most, compare, equal

RIGHT, WRONG = equal("right", 1.0, 1.0), equal("wrong", 1.0, 2.0)


@pytest.mark.parametrize(
    ("check", "deviation", "holds"),
    [
        (equal("x", 1.1, 1.0, 0.2, "absolute"), 0.1, True),
        (equal("x", 1.3, 1.0, 0.2, "absolute"), 0.3, False),
        (equal("x", [10.0, 1.0], [10.0, 2.0], 0.1, "relative"), 0.1, True),
        (equal("x", [10.0, 0.9], [10.0, 2.0], 0.1, "relative"), 0.11, False),
        (equal("x", [1.0, 5.0], [0.0, 0.0], 3.0, "standard errors", [0.5, 2.0]), 2.5, True),
        (equal("x", 2.0, 1.0, 1.5, "ratio"), 2.0, False),
        (equal("x", 1.0, 1.4, 1.5, "ratio"), 1.4, True),
        (equal("x", -1.0, 1.4, 1.5, "ratio"), np.inf, False),
        (at_most("x", 1.0, 2.0), -1.0, True),
        (at_most("x", 2.1, 2.0), 0.1, False),
        (at_most("x", 2.1, 2.0, 1.1, "ratio"), 1.05, True),
        (at_least("x", 2.0, 1.0), -1.0, True),
        (at_least("x", 0.9, 1.0), 0.1, False),
        (equal("x", 3, 3, 0.0, "absolute"), 0.0, True),
    ],
)
def test_deviations_in_each_unit(check, deviation, holds):
    assert check.deviation == pytest.approx(deviation)
    assert check.holds == holds


def test_of_many_entries_the_worst_is_kept():
    stated = np.arange(1.0, 101.0)
    check = equal("x", stated + (np.arange(100) == 17), stated)
    assert (check.computed, check.stated, check.entries) == ((19.0,), (18.0,), 100)
    assert check.deviation == pytest.approx(0.01)
    stated[30] = np.nan
    assert not equal("x", stated, stated).finite
    assert "the worst of 100" in str(check)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tolerance": np.inf}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": "1"}, "tolerance"),
        ({"unit": "ratio", "tolerance": 0.5}, "at least 1"),
        ({"unit": "percent"}, "unit"),
        ({"relation": "<"}, "relation"),
        ({"stated": 0.0, "unit": "relative"}, "absolute"),
        ({"unit": "standard errors", "error": 0.0}, "units of 0"),
    ],
)
def test_tolerances_that_say_nothing_are_refused(given, said):
    usual = {"what": "x", "computed": 1.0, "relation": "=", "stated": 1.0, "tolerance": 1.0, "unit": "absolute"}
    with pytest.raises(ModelError, match=said):
        compare(**(usual | given))


@pytest.mark.parametrize(
    ("evidence", "part", "verdict"),
    [
        (Evidence.of(RIGHT), "Up to y.", Verdict.PART),  # the rest is not computed
        (Evidence.of(WRONG, corrected=[RIGHT]), "Up to y.", Verdict.PART),
        (Evidence.of(RIGHT, corrected=[equal("y", 1.0, 1.0)]), "Up to y.", Verdict.HOLDS),
        (Evidence.of(WRONG), "Up to y.", Verdict.FAILS),
        (Evidence.of(WRONG, corrected=[equal("y", 1.0, 2.0)]), "Up to y.", Verdict.FAILS),
        (Evidence.of(), "Up to y.", Verdict.UNCHECKED),
    ],
)
def test_a_part(evidence, part, verdict):
    found, reason = evidence.verdict(part=part)
    assert found == verdict
    assert bool(reason) == (verdict != Verdict.HOLDS)


@pytest.mark.parametrize(
    ("evidence", "correction", "verdict"),
    [
        (Evidence.of(RIGHT), "", Verdict.HOLDS),
        (Evidence.of(RIGHT, equal("y", 1.0, 2.0)), "", Verdict.FAILS),
        (Evidence.of(WRONG, corrected=[RIGHT]), "Twice as much.", Verdict.CORRECTED),
        (Evidence.of(RIGHT, corrected=[WRONG]), "Twice as much.", Verdict.HOLDS),  # nothing is to be corrected
        (Evidence.of(WRONG, corrected=[RIGHT]), "", Verdict.FAILS),  # nobody says what the correction is
        (Evidence.of(WRONG, corrected=[RIGHT, equal("y", 1.0, 2.0)]), "Twice as much.", Verdict.FAILS),
        (Evidence.of(WRONG), "Twice as much.", Verdict.FAILS),  # and nobody shows that it holds
        (Evidence.of(), "", Verdict.UNCHECKED),
        (Evidence.of(corrected=[RIGHT]), "Twice as much.", Verdict.UNCHECKED),
        (Evidence.of(RIGHT, equal("x", np.nan, 1.0)), "", Verdict.UNCHECKED),
        (Evidence.of(RIGHT, equal("x", 1.0, np.nan, unit="absolute")), "", Verdict.UNCHECKED),
        (Evidence.of(at_most("x", -np.inf, 1.0)), "", Verdict.UNCHECKED),
        (Evidence.of(RIGHT, at_most("x", [], [])), "", Verdict.UNCHECKED),
        (Evidence.of(WRONG, corrected=[at_most("x", np.nan, 1.0)]), "Twice as much.", Verdict.UNCHECKED),
    ],
)
def test_the_verdict_follows_from_the_numbers(evidence, correction, verdict):
    found, reason = evidence.verdict(correction)
    assert found == verdict
    assert bool(reason) == (verdict != Verdict.HOLDS)


def test_evidence_in_json_and_back():
    table = [{"n": np.int64(3), "error": np.float64(0.1), "missing": np.nan}]
    evidence = Evidence.of(
        RIGHT, corrected=[WRONG], counterexample={"X": np.eye(2)}, table=table, data={"x": (1, 2), "y": None}
    )
    content = json.loads(json.dumps(evidence.to_json(), allow_nan=False))
    assert Evidence.from_json(content) == evidence
    assert evidence.counterexample == {"X": [[1.0, 0.0], [0.0, 1.0]]}
    assert evidence.table == [{"n": 3, "error": 0.1, "missing": None}]


@pytest.mark.parametrize("change", [{"printed": None}, {"printed": [{}]}, {"data": []}, {"table": {}}])
def test_what_is_no_evidence_is_refused(change):
    content = Evidence.of(RIGHT).to_json()
    assert Evidence.from_json(content)
    with pytest.raises((LookupError, TypeError, ValueError)):
        Evidence.from_json(content | change)


def test_a_row_has_one_number_for_each_name():
    with pytest.raises(ModelError, match="two comparisons are called 'right'"):
        Evidence.of(RIGHT, corrected=[RIGHT])
