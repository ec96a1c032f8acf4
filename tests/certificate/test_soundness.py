"""The always-laws of certificates, on a few of the random problems that `make soundness` goes through."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from factories import thinned

from benchmarks.soundness.examine import Answer, _judge_bounds, examine
from benchmarks.soundness.objective import objective, repaired, violation
from benchmarks.soundness.reference import solve
from graphreg.datasets import random_problem
from graphreg.datasets.random_problems import LOSSES, PENALTIES

# every loss, penalty, structure and trait, among the quick ones
SEEDS = (310, 291, 432, 173, 504, 425, 156, 367, 548, 389, 431, 383, 97, 81, 540, 162, 214, 355, 476, 408)
SLOW = (76, 66, 129)
HARD = (2, 21)
SAME = 1e-10


@pytest.mark.parametrize(
    ("seed", "hard"),
    [
        *((seed, False) for seed in SEEDS),
        *((seed, True) for seed in HARD),
        *(pytest.param(seed, False, marks=pytest.mark.whole) for seed in SLOW),
    ],
)
def test_no_certificate_lies(seed, hard):
    row = examine(seed, hard)
    assert not row.error, row.error
    for answer in row.answers:
        assert not answer.violations, answer
        assert answer.named, answer


@pytest.mark.parametrize("seed", thinned(range(0, 1000, 17), every=3))
def test_the_model_is_the_sum_that_is_written_beside_it(seed):
    drawn = random_problem(seed)
    rng = np.random.default_rng(seed)
    form = drawn.problem.form
    w = drawn.plain.inner + drawn.plain.size * rng.standard_normal((len(drawn.plain.nodes), drawn.plain.d))
    w = repaired(drawn.plain, w)
    place = [form.labels.index(label) for label in drawn.plain.nodes]  # latent nodes may come in another order
    present = np.zeros(form.shape)
    present[place] = w
    finite = sum(b.values(present).sum() for b in form.samples)
    finite += sum(v[np.isfinite(v)].sum() for v in (b.values(present) for b in form.edges))
    assert finite == pytest.approx(objective(drawn.plain, w), rel=SAME)
    assert violation(drawn.plain, w) <= SAME


@pytest.mark.parametrize("seed", [540, 431, 162, 383, 214, 355, 476, 97, 408, 129])
def test_residuals_add_up_to_the_gap(seed):
    drawn = random_problem(seed)
    certificate = drawn.problem.solve(gap=1e-7, on_failure="return").certificate
    total = sum(float(part.sum()) for parts in certificate.residuals for part in parts)
    size = max(abs(certificate.primal), abs(certificate.dual))
    assert abs(total - (certificate.gap - certificate.charge)) <= SAME * size + certificate.charge


def test_a_seed_decides_everything():
    one, other = random_problem(7), random_problem(7)
    w = np.ones((len(one.plain.nodes), one.plain.d))
    assert one.description == other.description
    assert objective(one.plain, w) == objective(other.plain, w)


def test_every_pair_comes_often_enough(whole):
    """In 100 problems; in 1000, and in every structure, with ``make test ARGS=--whole``."""
    count = 1000 if whole else 100
    drawn = [random_problem(seed) for seed in range(count)]
    pairs = Counter((p.loss, p.penalty) for p in drawn)
    assert set(pairs) == set(product(LOSSES, PENALTIES))
    assert set(pairs.values()) == {count // 100}
    assert not whole or set(Counter((p.loss, p.penalty, p.structure) for p in drawn).values()) == {count // 500}
    families = {part.family for p in drawn if p.loss == "mixed" for part in p.plain.samples}
    assert families == set(LOSSES) - {"mean", "multinomial", "mixed"}


def test_a_lie_of_1e_7_is_caught():
    drawn = random_problem(10)
    reference = solve(drawn.plain)
    found = drawn.problem.solve(gap=1e-7).certificate
    honest = Answer("exact", "certified", primal=found.primal, dual=found.dual, scope="global")
    lying = Answer("exact", "certified", primal=found.primal, dual=found.primal * (1 + 1e-7), scope="global")
    for answer in (honest, lying):
        _judge_bounds(answer, found.primal, min(reference.upper, found.primal), reference)
    assert not honest.violations
    assert lying.violations
