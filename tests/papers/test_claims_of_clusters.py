"""The rows on the paper on known clusters: each of its claims has a row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from papers import Runner, declarations
from papers.clusters._instances import Coins, Instance
from papers.clusters._schools import Schools
from papers.clusters._simulation import GRID, Draw

IDS = (
    "prop2.2 eq2.2 tree alpha-regimes hglm likelihood prop3.1 oracle-unbiased prop3.2-rounds prop3.3 prop3.4 cor3.6 "
    "single-coin majority-coin oracle-4.1 lemma4.2 alg2-linear thm5.1 cor5.2 prop5.3 prop5.4 A12 table2-3 "
    "thm3.5 thm4.3 cor4.4 finite-sum cor3.6-rounds communication single-cluster fig1 table1 table1-algorithm study"
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


def test_a_single_cluster_with_a_fold_held_out_by_refitting():
    """lambda^sc by cross-validation against fits of each fold by one linear system."""
    draw = Draw.drawn(np.random.default_rng(0), 4, clusters=1)
    n, m, _ = draw.of.X.shape
    order = np.random.default_rng(1).permuted(np.tile(np.arange(m), (n, 1)), axis=1)
    fold, off = (order + np.arange(n)[:, None]) % 5, np.zeros(2)
    for place, lam in enumerate((GRID[0], GRID[-1])):
        penalty = lam * (np.eye(n) - np.full((n, n), 1.0 / n))
        for k in range(5):
            kept = (fold != k) * 1.0
            part = type(draw.of)(draw.of.X * kept[:, :, None], draw.of.y * kept, *[None] * 3)
            predicted = np.einsum("imj,ij->im", draw.of.X, part.minimiser(penalty))
            off[place] += (((predicted - draw.of.y) * (fold == k)) ** 2).sum()
    scores = draw.scores(np.random.default_rng(1))
    assert scores[[0, -1]] == pytest.approx(off, rel=1e-8)
    assert draw.validated(np.random.default_rng(1)) == GRID[scores.argmin()]


def test_schools_are_judged_pupil_by_pupil(tmp_path):
    rng, n = np.random.default_rng(0), 60
    frame = pd.DataFrame(
        {"school": np.repeat(range(6), 10), "minrty": ["Yes", "No"] * 30, "sx": ["Male", "Female"] * 30}
    )
    frame["ses"], frame["mAch"] = rng.standard_normal(n), rng.standard_normal(n)
    frame["meanses"], frame["sector"] = frame["school"] / 6.0, np.where(frame["school"] % 2, "Public", "Catholic")
    frame.to_csv(tmp_path / "schools.csv", index=False)
    schools = Schools.split(tmp_path / "schools.csv", 0)
    assert schools.test.groupby("school").size().tolist() == [2] * 6
    assert not set(schools.test.index) & set(schools.train.index)
    assert schools.clusters[5] == "Public, high"
    w = pd.DataFrame(rng.standard_normal((6, 4)), index=range(6))
    entropy, right = schools.judged(w)
    for school, own in schools.test.groupby("school"):
        x = np.column_stack([np.ones(2), own["ses"], own["minrty"] == "Yes", own["sx"] == "Female"])
        chance = 1.0 / (1.0 + np.exp(-(x @ w.loc[school].to_numpy()).astype(float)))
        of_truth = np.where(own["mAch"] > frame["mAch"].median(), chance, 1.0 - chance)
        assert entropy[school] == pytest.approx(-np.log(of_truth).mean())
        assert right[school] == pytest.approx((of_truth > 0.5).mean())
