"""tau and sigma of the primal-dual method set apart: the iteration, the product that it depends on, too long steps."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from factories import chain, noise
from sameness import bits

import graphreg as gr
from graphreg.errors import ArgumentError, MethodError, MethodWarning


def mixed(features=None):
    """A cycle, an isolated node, and node penalties on some coordinates."""
    graph = nx.cycle_graph(7)
    graph.add_node("alone")
    data = noise(labels=[*range(7), "alone"], shift=1.0)
    edges = 0.3 * gr.TotalVariation(graph, gr.L2(), features=features)
    return gr.Problem(gr.SquaredLoss(data) + edges + 0.1 * gr.NodePenalty(gr.L1(), features=["x1"]))


def product(problem, **steps):
    method = gr.PrimalDual(**steps)
    return method.step_sizes.product(problem.form, method.balance or 1.0)


def norm_of(problem, tau, sigma):
    """|| sigma^(1/2) K tau^(1/2) ||^2 by a dense singular value decomposition, all coordinates at once."""
    form = problem.form
    K = np.vstack([edge.flat(form.d).toarray() for edge in form.edges])
    degree = form.degree()
    at = np.where(degree > 0, tau, 1.0)
    return np.linalg.norm(K * np.sqrt(sigma * np.repeat(at, form.d)), 2) ** 2


@pytest.mark.parametrize("features", [None, ["x0"]])
def test_the_product(features):
    problem = mixed(features)
    assert np.isclose(product(problem, tau=0.3, sigma=0.7), norm_of(problem, 0.3, 0.7), rtol=1e-12)
    tau = np.linspace(0.1, 2.0, 8)
    named = dict(zip(problem.form.labels, tau, strict=True))
    assert np.isclose(product(problem, tau=named, sigma=0.7), norm_of(problem, tau, 0.7), rtol=1e-12)


def test_the_product_of_a_large_graph():
    data = noise(n=300, m=2, d=1)
    problem = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.cycle_graph(300), gr.L2()))
    assert np.isclose(product(problem, tau=1.0, sigma=1.0), 4.0, rtol=1e-9), "the Laplacian of an even cycle"
    assert np.isclose(product(problem, sigma=0.5), 1.0, rtol=1e-9), "the steps of the paper, on a bipartite graph"
    assert np.isclose(product(problem, balance=3.0, sigma=0.5), 3.0, rtol=1e-9)


def test_the_iteration_by_hand():
    """L1 on a path of means: (32) and (33) are a line each."""
    points = np.array([[0.0, 3.0], [1.0, -1.0], [4.0, 0.5]])
    data = gr.NodeData.from_frame(
        pd.DataFrame({"a": points[:, 0], "b": points[:, 1], "node": list("pqr")}),
        node="node",
        target=["a", "b"],
    )
    problem = gr.Problem(gr.MeanLoss(data, scale="sum") + 0.4 * gr.TotalVariation(nx.path_graph(list("pqr")), gr.L1()))
    tau, sigma, K = 0.35, 0.55, np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    w, u = np.zeros((3, 2)), np.zeros((2, 2))
    for _ in range(9):
        new = (w - tau * K.T @ u + tau * points) / (1.0 + tau)
        u = np.clip(u + sigma * K @ (2.0 * new - w), -0.4, 0.4)
        w = new
    run = problem.solve(gr.PrimalDual(tau=tau, sigma=sigma, relaxation=1.0), rounds=9, gap=0, observe=("w", "flows"))
    assert np.allclose(run.observed["w"][-1], w, rtol=0, atol=1e-13)
    assert np.allclose(run.observed["flows"][0][-1], u, rtol=0, atol=1e-13)


def test_the_steps_of_a_balance():
    problem, path = chain(), nx.path_graph(8)
    apart = gr.PrimalDual(tau={i: 2.0 / path.degree[i] for i in path}, sigma=0.25)
    one, two = (problem.solve(m, rounds=40, gap=0) for m in (gr.PrimalDual(balance=2.0), apart))
    assert bits(one.coef) == bits(two.coef)


def test_actors_take_the_same_steps():
    problem, method = mixed(), gr.PrimalDual(tau=0.2, sigma=0.3)
    alone, together = (problem.solve(method, rounds=15, gap=0, engine=e) for e in (None, gr.Actors()))
    assert np.allclose(alone.coef, together.coef, rtol=0, atol=1e-13)


def test_the_product_of_steps_far_out_of_range():
    problem = mixed()
    far = product(problem, tau=1e-300, sigma=1e300)
    assert far == pytest.approx(product(problem, tau=1.0, sigma=1.0), rel=1e-12)
    assert product(problem, tau=1e300, sigma=1e300) == np.inf


@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_steps_within_the_bound_reach_the_optimum(relaxation):
    problem, most = mixed(), 1.0 if relaxation > 1.0 else 1.33
    sigma = most / product(problem, tau=0.3, sigma=1.0)
    run = problem.solve(gr.PrimalDual(tau=0.3, sigma=sigma, relaxation=relaxation), gap=1e-8)
    assert run.status == "certified"
    assert "guaranteed" not in run.message


@pytest.mark.parametrize(("relaxation", "factor"), [(1.0, 1.34), (1.8, 1.01), (1.0, 4.0), (1.8, 2.0)])
def test_longer_steps_are_taken_and_said_to_be_unproven(relaxation, factor):
    problem = mixed()
    exact, sigma = problem.solve(gap=1e-9), factor / product(problem, tau=0.3, sigma=1.0)
    method = gr.PrimalDual(tau=0.3, sigma=sigma, relaxation=relaxation)
    with pytest.warns(MethodWarning, match=rf"is not guaranteed: tau sigma \|\|K\|\|\^2 is {factor:.6g}"):
        run = problem.solve(method, gap=1e-7, rounds=1000)
    assert "Convergence is not guaranteed: tau sigma ||K||^2" in run.message
    assert run.certificate.dual <= exact.objective
    assert exact.certificate.dual <= run.certificate.primal
    if factor >= 2.0:
        assert run.status == "budget"
        assert run.certificate.relative_gap > 1e-3, "it leads nowhere"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"balance": 1.0, "tau": 1.0, "sigma": 1.0}, "a balance, or tau and sigma"),
        ({"tau": 1.0, "restarts": True}, "in the norm of the balance"),
    ],
)
def test_what_does_not_go_together(options, message):
    with pytest.raises(MethodError, match=message):
        gr.PrimalDual(**options)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gr.ADMM(sigma=1.0), "ADMM has no option 'sigma'; it has 'rho'.*; sigma is an option of PrimalDual$"),
        (lambda: gr.FedADMM(tau=1.0), "FedADMM has no option 'tau'.*; tau is an option of .*PrimalDual$"),
        (lambda: gr.LocalOnly(tau=1.0), "LocalOnly has no option 'tau'; it has none; tau is an option of"),
        (lambda: gr.PrimalDual(sigmas=1.0), "PrimalDual has no option 'sigmas'; did you mean 'sigma'\\?$"),
    ],
)
def test_other_methods_have_no_such_steps(make, said):
    with pytest.raises(ArgumentError, match=said):
        make()


def test_a_method_of_the_users_may_take_any_option():
    class Own(gr.PrimalDual):
        def __init__(self, **options):
            super().__init__(balance=options["whatever"])

    assert Own(whatever=2.0).balance == 2.0


def test_labels_of_tau():
    with pytest.raises(MethodError, match="tau names 99, which is not a node"):
        chain().solve(gr.PrimalDual(tau={99: 1.0}))


def test_lost_messages_take_the_steps_of_a_balance():
    with pytest.raises(MethodError, match="give balance= instead of tau and sigma"):
        chain().solve(gr.PrimalDual(sigma=0.3), engine=gr.Actors(faults=gr.Faults(drop=0.1)))
