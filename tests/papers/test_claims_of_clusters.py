"""What there is to be said of the paper on known clusters: each of its claims has a row."""

from __future__ import annotations

import numpy as np
import pytest

from graphreg.papers import Runner, declarations
from graphreg.papers.clusters._instances import Coins, Instance

IDS = (
    "prop2.2 eq2.2 tree alpha-regimes hglm likelihood prop3.1 oracle-unbiased prop3.2-rounds prop3.3 prop3.4 cor3.6 "
    "single-coin majority-coin oracle-4.1 lemma4.2 alg2-linear thm5.1 cor5.2 prop5.3 prop5.4 A12 table2-3 "
    "thm3.5 thm4.3 cor4.4 finite-sum"
)


def test_every_claim_has_a_row():
    assert {f"clusters.{name}" for name in IDS.split()} <= declarations().keys()


def test_2_1_by_loops():
    """The matrices of the two regularisers against (2.1) and (2.2) written with sums."""
    of = Instance.drawn(np.random.default_rng(0))
    theta = np.random.default_rng(1).standard_normal((9, 3))
    means = {j: sum(of.gamma[i] * theta[i] for i in range(9) if of.cluster[i] == j) / of.total[j] for j in range(3)}
    shares = [of.alpha[of.cluster[i]] * of.gamma[i] for i in range(9)]
    top = sum(share * theta[i] for i, share in enumerate(shares)) / sum(shares)
    value = 0.0
    for i, j in enumerate(of.cluster):
        value += (1.0 - of.alpha[j]) * of.gamma[i] / 2.0 * ((theta[i] - means[j]) ** 2).sum()
        value += of.alpha[j] * of.gamma[i] / 2.0 * ((theta[i] - top) ** 2).sum()
    assert 0.5 * np.einsum("ij,il,lj->", theta, of.penalty(of.alpha), theta) == pytest.approx(value, rel=1e-13)


def test_outcomes_of_the_coins_add_up():
    coins = Coins.balanced(0.3, np.array([0.2, 0.5]))
    outcomes = list(coins.outcomes())
    assert sum(chance for chance, _, _ in outcomes) == pytest.approx(1.0)
    assert sum(chance for chance, xi_0, xi in outcomes if not xi_0 and xi[1]) == pytest.approx(0.7 * 0.5)


def test_the_corrections_are_needed():
    """The figures by which the print fails, where a paper's print does."""
    known, least = declarations(), {"oracle-4.1": 0.01, "eq2.2": 0.1, "A12": 0.5, "hglm": 0.5, "likelihood": 0.5}
    for name, far in least.items():
        evidence = Runner().run(known[f"clusters.{name}"]).evidence
        assert max(check.deviation for check in evidence.printed) > far, name
        assert max(check.deviation for check in evidence.corrected) < 1e-6, name
