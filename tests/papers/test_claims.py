"""Every claim by itself: the verdict is the expected one, and with a perturbed input it is another."""

from __future__ import annotations

import pytest
from factories import thinned

from papers import Runner, Verdict, at_least, at_most, declarations, titles

DECLARED = declarations()
FORMULAS = [id for id, each in DECLARED.items() if each.function is not None and not each.experiment]
EXPERIMENTS = [id for id, each in DECLARED.items() if each.function is not None and each.experiment]


def turned(right, wrong):
    """True where a comparison is the opposite of another one, so that it cannot fail where that does."""
    if (right.computed, {right.relation, wrong.relation}) != (wrong.computed, {"<=", ">="}):
        return False
    return all((a <= b if right.relation == ">=" else a >= b) for a, b in zip(right.stated, wrong.stated, strict=True))


def computed_and_perturbed(declared):
    claim = Runner().run(declared)
    if claim.verdict == Verdict.UNCHECKED and not claim.unexplained:
        pytest.skip(claim.reason)
    assert not claim.unexplained
    assert claim.verdict == declared.expected
    if claim.evidence.corrected:
        held = [check.what for check in claim.evidence.printed if check.holds]
        assert not held, f"{declared.id}: the print holds here, so that nothing would notice if it did not: {held}"
        implied = [
            right.what for right in claim.evidence.corrected for wrong in claim.evidence.printed if turned(right, wrong)
        ]
        assert not implied, f"{declared.id}: these hold because the print does not: {implied}"
    equalities = [check for check in claim.evidence.checks if check.relation == "="]
    if equalities and claim.verdict != Verdict.FAILS:
        changed = Runner(perturbation=True).run(declared)
        assert changed.verdict != claim.verdict, f"{declared.id} does not notice a perturbed input"
        assert changed.evidence is not None, changed.reason


@pytest.mark.parametrize("id", thinned(FORMULAS, every=12))
def test_a_formula_is_as_expected_and_notices_a_perturbed_input(id):
    computed_and_perturbed(DECLARED[id])


@pytest.mark.whole
@pytest.mark.parametrize("id", EXPERIMENTS)
def test_an_experiment_is_as_expected_and_notices_a_perturbed_input(id):
    computed_and_perturbed(DECLARED[id])


def test_claims_are_declared_in_words():
    assert len(DECLARED) > 20
    for id, each in DECLARED.items():
        assert each.paper in titles()
        assert each.source.strip(), id
        assert len(each.statement) > 20, id
        assert each.stated not in ("", None), id
        assert all(said == "" or said.endswith(".") for said in (each.correction, each.part)), id


def test_seeds_follow_from_ids():
    seeds = {each.seed for each in DECLARED.values()}
    assert len(seeds) == len(DECLARED)
    assert DECLARED["clusters.prop2.2"].seed == 2531260374


def test_what_holds_because_the_print_fails_is_found():
    wrong = at_most("x", 2.0, 1.0)
    assert turned(at_least("the other way", 2.0, 1.0), wrong)
    assert not turned(at_least("far more", 2.0, 1.5), wrong)
    assert not turned(at_least("another number", 3.0, 1.0), wrong)
