"""The laws refuse every broken term of `mutants`, and by the laws that the bug offends."""

from __future__ import annotations

from collections import Counter

import pytest
from law_cases import LOSSES as LOSS_CASES
from law_cases import NUMBERS, SOLVER_TOLERANCE, samples
from law_cases import PENALTIES as PENALTY_CASES
from mutants import PENALTIES as BROKEN_PENALTIES
from mutants_any import broken_loss, broken_penalty
from mutants_bounds import LOSSES as BOUNDS_OF_LOSSES
from mutants_bounds import PENALTIES as BOUNDS_OF_PENALTIES
from mutants_hinges import HINGES
from mutants_losses import LOSSES as FURTHER_LOSSES
from mutants_regression import LOSSES as REGRESSION_LOSSES
from mutants_smooth import LOSSES as SMOOTH_LOSSES
from own_terms import LogCosh, OwnL1, OwnSquare

from graphreg.testing import check_loss, check_penalty, losses, penalties

LOSSES = [*SMOOTH_LOSSES, *FURTHER_LOSSES, *HINGES, *REGRESSION_LOSSES, *BOUNDS_OF_LOSSES]
PENALTIES = [*BROKEN_PENALTIES, *BOUNDS_OF_PENALTIES]


@pytest.fixture(autouse=True)
def few_laws(request, monkeypatch, whole):
    """Only the laws that should refuse the mutant are tried; with ``--whole`` all of them."""
    if not whole:
        mutant = request.getfixturevalue("mutant")
        for module in (losses, penalties):
            monkeypatch.setattr(module, "LAWS", {name: law for name, law in module.LAWS.items() if name in mutant.laws})


def refused(mutant, report):
    """The report fails at least at the laws of the mutant, none of them because the mutant itself is misspelt."""
    assert mutant.laws <= set(report.laws), f"there is no law {mutant.laws - set(report.laws)}"
    failed = {failure.law for failure in report.failures}
    assert mutant.laws <= failed, f"{mutant.laws - failed} should refuse {mutant.name}, which fails {failed}"
    for failure in report.failures:
        assert not failure.sentence.startswith(("AttributeError", "NameError", "TypeError")), failure.sentence


@pytest.mark.parametrize("mutant", PENALTIES, ids=lambda mutant: mutant.name)
def test_penalty_is_refused(mutant):
    k = (1, 2, 3) if mutant.tolerance < SOLVER_TOLERANCE else 2
    refused(mutant, check_penalty(mutant.broken, k=k, tolerance=mutant.tolerance))


@pytest.mark.parametrize("mutant", LOSSES, ids=lambda mutant: mutant.name)
def test_loss_is_refused(mutant):
    refused(mutant, check_loss(mutant.broken))


# ---- terms without broken copies of their own ------------------------------------------------------------------------
def without(mutants, terms, least):
    """One case of each class that has fewer broken copies than that."""
    count = Counter(type(mutant.original) for mutant in mutants)
    return [term for term in {type(term): term for term in terms}.values() if count[type(term)] < least]


NEW_LOSSES = [LogCosh(samples(NUMBERS)), *without(LOSSES, LOSS_CASES, 4)]
NEW_PENALTIES = [OwnL1(), OwnSquare(), *without(PENALTIES, PENALTY_CASES, 2)]


@pytest.mark.parametrize("mutant", [m for loss in NEW_LOSSES for m in broken_loss(loss)], ids=lambda m: m.name)
def test_a_slip_in_any_loss_is_refused(mutant):
    refused(mutant, check_loss(mutant.broken))


@pytest.mark.parametrize("mutant", [m for each in NEW_PENALTIES for m in broken_penalty(each)], ids=lambda m: m.name)
def test_a_slip_in_any_penalty_is_refused(mutant):
    refused(mutant, check_penalty(mutant.broken))
