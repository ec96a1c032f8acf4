"""The laws refuse every broken term of `mutants`, and by the laws that the bug offends."""

from __future__ import annotations

from collections import Counter

import pytest
from law_cases import SOLVER_TOLERANCE, concrete_subclasses
from mutants import PENALTIES as BROKEN_PENALTIES
from mutants_bounds import LOSSES as BOUNDS_OF_LOSSES
from mutants_bounds import PENALTIES as BOUNDS_OF_PENALTIES
from mutants_hinges import HINGES
from mutants_losses import LOSSES as FURTHER_LOSSES
from mutants_smooth import LOSSES as SMOOTH_LOSSES

from graphreg.terms.losses._base import AbstractLoss
from graphreg.terms.penalties._base import AbstractPenalty
from graphreg.testing import check_loss, check_penalty

LOSSES = [*SMOOTH_LOSSES, *FURTHER_LOSSES, *HINGES, *BOUNDS_OF_LOSSES]
PENALTIES = [*BROKEN_PENALTIES, *BOUNDS_OF_PENALTIES]


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


@pytest.mark.parametrize(("base", "least"), [(AbstractPenalty, 2), (AbstractLoss, 4)])
def test_every_term_has_mutants(base, least):
    mutants = Counter(type(mutant.original) for mutant in (*PENALTIES, *LOSSES))
    few = [cls.__name__ for cls in concrete_subclasses(base) if mutants[cls] < least]
    assert not few, f"fewer than {least} broken copies of {few}"
