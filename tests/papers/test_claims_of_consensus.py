"""The rows on the paper on decentralised inference: each of its claims has a row."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from papers import Runner, declarations
from papers.consensus._instances import PLAIN, Design, network, normalised, run, samples_of, steps
from papers.consensus.conditions import Ring, mean_step
from papers.consensus.sgd import SIGMA2, H, variances

IDS = (
    "lemma1 pr-efficiency mixing metropolis saving single-pass prop1 thm2-mse thm3-normality thm3-condition "
    "thm4-region thm5-onestep thm5-condition thm6-sparse table1 hessian-samples fig4 fig5 fig6 heterogeneous-hessians "
    "tracking exact-diffusion nonresponse star neighbours design lemma1-condition lemma1-efficiency eq13-14 "
    "pr-one"
)


def test_every_claim_has_a_row():
    assert {f"consensus.{name}" for name in IDS.split()} <= declarations().keys()


def test_the_corrections_are_needed():
    """The figures by which the print fails, where a paper's print does."""
    known, least = declarations(), {"star": 0.4, "neighbours": 0.1, "design": 10.0, "lemma1-condition": 10.0}
    for name, far in least.items():
        evidence = Runner().run(known[f"consensus.{name}"]).evidence
        assert max(check.deviation for check in evidence.printed) > far, name
        assert all(check.holds for check in evidence.corrected), name


def test_networks_of_the_experiments():
    assert nx.is_isomorphic(network(12, 4), nx.circulant_graph(12, [1, 2]))
    assert nx.density(network(6, 6)) == 1.0


def test_the_noise_of_the_design():
    """tr S_k in the mean over clients, against samples."""
    of, rng = Design(6, 20_000, gap=0.7), np.random.default_rng(0)
    X, y = samples_of(of.problem(rng))
    G = (X * (X @ of.truth - y)[:, None]).reshape(6, 20_000, 6)
    assert G.var(axis=1).sum(axis=1).mean() == pytest.approx(of.noise, rel=0.03)


def test_variances_of_two_steps_by_hand():
    v, average = variances(2, np.array([0.5]), np.array([0.8]))
    first, second = 0.5, 0.5 * 2.0**-0.8
    assert v == pytest.approx((1.0 - second * H) ** 2 * first**2 * SIGMA2 + second**2 * SIGMA2)
    assert average == pytest.approx(first**2 * SIGMA2 / 4.0)  # of (theta_0 + theta_1) / 2


@pytest.mark.filterwarnings("ignore::graphreg.errors.MethodWarning")  # local SGD, few samples
def test_a_run_of_copies_is_a_run_of_each():
    """The copies of a network know nothing of each other: each is the run of a problem of its own."""
    of, method = Design(5, 8), gr.LocalSGD(steps(0.8), **PLAIN, hessian_samples=4)
    problem = of.problem(np.random.default_rng(0), 3)
    got, seen = run(problem, 3, method, 8, 0.5, at=[8])
    X, y = (each.reshape(3, 40, *each.shape[1:]) for each in samples_of(problem))
    q = normalised(got, 8, of.truth)
    for k in range(3):
        data = gr.NodeData.from_arrays(X[k], y[k], np.repeat(np.arange(5), 8))
        alone = gr.Problem(gr.SquaredLoss(data, scale=1.0 / 40.0) + gr.Consensus(network(5, 4)))
        found = alone.solve(method, rounds=8, gap=0.0, start=np.full((5, 6), 0.5), on_failure="return")
        np.testing.assert_allclose(found.gathered["mean"], got["mean"][k], rtol=1e-10)
        region = gr.inference.confidence_region(found)
        off = region.estimate.to_numpy() - of.truth
        assert off @ np.linalg.solve(region.covariance.to_numpy(), off) == pytest.approx(q["one-step"][k], rel=1e-8)
        assert seen[8].shape == (3, 5, 6)


def test_the_optimum_and_the_steps_of_the_rings():
    of = Ring(6, 2)
    assert of.truth() == pytest.approx(of.problem().solve(gap=1e-12, on_failure="return").coef[0, 0], rel=1e-6)
    assert Ring(6).beta() == pytest.approx(of.beta(), rel=1e-10)
    for alpha in (0.6, 1.0):
        by_hand = (12.0 * (np.arange(500) + 1001.0) ** -alpha).mean()
        assert mean_step(np.array(500.0), alpha) == pytest.approx(by_hand, rel=1e-6)
