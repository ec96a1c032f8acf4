"""Every claim by itself: the verdict is the expected one, and with a perturbed input it is another."""

from __future__ import annotations

import pytest
from factories import thinned

from graphreg.papers import Runner, Verdict, declarations, titles

DECLARED = declarations()
FORMULAS = [id for id, each in DECLARED.items() if each.function is not None and not each.experiment]
EXPERIMENTS = [id for id, each in DECLARED.items() if each.function is not None and each.experiment]


def computed_and_perturbed(declared):
    claim = Runner().run(declared)
    if claim.verdict == Verdict.UNCHECKED and not claim.unexplained:
        pytest.skip(claim.reason)
    assert not claim.unexplained
    assert claim.verdict == declared.expected
    if claim.verdict == Verdict.CORRECTED:
        held = [check.what for check in claim.evidence.printed if check.holds]
        assert not held, f"{declared.id}: the print holds here, so that nothing would notice if it did not: {held}"
    equalities = [check for check in claim.evidence.checks if check.relation == "="]
    if equalities and claim.verdict != Verdict.FAILS:
        changed = Runner(perturbation=True).run(declared)
        assert changed.verdict != claim.verdict, f"{declared.id} does not notice a perturbed input"
        assert changed.evidence is not None, changed.reason


@pytest.mark.parametrize("id", thinned(FORMULAS, every=3))
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
        assert each.correction == "" or each.correction.endswith("."), id


def test_seeds_follow_from_ids():
    seeds = {each.seed for each in DECLARED.values()}
    assert len(seeds) == len(DECLARED)
    assert DECLARED["clusters.prop2.2"].seed == 2531260374
