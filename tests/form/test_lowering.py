"""Compilation to CVXPY, primal and dual: form, read-back, signs, parameters, solvers, and own penalties."""

from __future__ import annotations

import warnings

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from factories import noise, thinned
from own_terms import Elastic

import graphreg as gr
from graphreg.certificate import Certifier, common
from graphreg.compiling import conic
from graphreg.datasets import random_problem
from graphreg.form.form import DualPoint
from graphreg.oracles.nodeprox import node_proxes

SEEDS = (  # every loss twice, every penalty, every structure
    *(540, 431, 162, 383, 214, 355, 476, 97, 408, 129),
    *(310, 171, 502, 233, 364, 145, 516, 427, 388, 299),
)
FORMS = ("primal", "dual")
TIGHT = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
N = 8


def graph(n=N):
    return nx.circulant_graph(n, [1, 3])


def network_lasso(strength=0.1, n=N):
    return gr.Problem(gr.SquaredLoss(noise(n, 5, seed=4)) + strength * gr.TotalVariation(graph(n), gr.L2()))


# ---- both forms ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("seed", "form"), thinned(SEEDS, FORMS, every=2))
def test_compiled_solved_by_hand_and_read(seed, form):
    """Each problem in one of the forms; in both with ``make test ARGS=--whole``."""
    problem = random_problem(seed).problem
    exact = problem.solve(gap=1e-8, on_failure="return")
    compiled = problem.compile(form)
    assert compiled.cvxpy.is_dcp()
    assert compiled.cvxpy.is_dcp(dpp=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": how accurate it is, the certificate says
        compiled.cvxpy.solve(solver=cp.CLARABEL, **TIGHT)
    found = compiled.read()
    yardstick = max(abs(exact.objective), common(problem.form).floor)
    assert compiled.cvxpy.value == pytest.approx(exact.objective, abs=1e-5 * yardstick)
    assert found.certificate.relative_gap <= 1e-4
    assert found.status == ("certified" if found.certificate.holds(1e-6) else "no_certificate")
    assert found.certificate.dual <= exact.objective + 1e-12 * yardstick
    assert found.objective >= exact.certificate.dual - 1e-12 * yardstick
    assert compiled.cvxpy.status in found.message


@pytest.mark.parametrize("seed", SEEDS[::2])
def test_the_forms_agree(seed):
    problem = random_problem(seed).problem
    primal, dual = (problem.solve(gr.Exact(form=form), gap=1e-6, on_failure="return") for form in FORMS)
    yardstick = max(abs(primal.objective), common(problem.form).floor)
    assert primal.certificate.relative_gap <= 1e-5
    assert dual.certificate.relative_gap <= 1e-5
    assert dual.objective == pytest.approx(primal.objective, abs=2e-5 * yardstick)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_to_read_before_it_is_solved(form):
    with pytest.raises(gr.errors.FailedError, match="solve"):
        network_lasso().compile(form).read()


def test_an_unknown_form():
    with pytest.raises(gr.errors.ModelError, match="'primal' or 'dual'"):
        network_lasso().compile("both")
    with pytest.raises(gr.errors.MethodError, match="'primal' or 'dual'"):
        gr.Exact(form="both")


@pytest.mark.parametrize("form", FORMS)
def test_a_loose_answer_is_read_as_loose(form):
    compiled = network_lasso().compile(form)
    compiled.cvxpy.solve(solver=cp.CLARABEL, tol_gap_abs=1e-2, tol_gap_rel=1e-2, tol_feas=1e-2)
    assert compiled.cvxpy.status == "optimal"
    found = compiled.read()
    assert found.status == "no_certificate"
    assert found.certificate.relative_gap > 1e-6


# ---- signs -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", FORMS)
def test_flows_have_the_sign_of_the_design(form):
    """u_e is a subgradient of c_e phi at w_tail - w_head, and -(K'u)_i the gradient of f_i at w_i."""
    problem = network_lasso(0.05)
    compiled = problem.compile(form)
    compiled.cvxpy.solve(solver=cp.CLARABEL, **TIGHT)
    w, point = compiled.conic.read_back()  # as they come, before any repair
    edge = problem.form.edges[0]
    z, u = w[edge.tail] - w[edge.head], point.flows[0]
    norm = np.linalg.norm(z, axis=1)
    split = norm > 1e-2
    assert split.any()
    np.testing.assert_allclose(u[split], 0.05 * z[split] / norm[split, None], atol=1e-5)
    gradient = np.zeros_like(w)
    data = noise(N, 5, seed=4)
    X, y, node = data.X, np.asarray(data.y), data.node
    np.add.at(gradient, node, X * (np.einsum("ij,ij->i", X, w[node]) - y)[:, None] / 5)
    pull = np.zeros_like(w)
    np.add.at(pull, edge.tail, u)
    np.subtract.at(pull, edge.head, u)
    np.testing.assert_allclose(-pull, gradient, atol=1e-5)
    np.testing.assert_allclose(point.prices[0], (np.einsum("ij,ij->i", X, w[node]) - y) / 5, atol=1e-5)


@pytest.mark.parametrize("method", [gr.Exact(), gr.Exact(form="dual"), gr.PrimalDual()], ids=["primal", "dual", "pd"])
def test_flows_by_edge(method):
    solution = network_lasso(0.05).solve(method, gap=1e-8)
    w, flows = solution.coef, solution.flows
    z = w[0] - w[3]
    assert np.linalg.norm(z) > 0.1
    np.testing.assert_allclose(flows[0, 3], 0.05 * z / np.linalg.norm(z), atol=1e-4)
    np.testing.assert_array_equal(flows[3, 0], -flows[0, 3])
    assert len(flows) == graph().number_of_edges()
    with pytest.raises(KeyError, match="not an edge"):
        flows[0, 2]


@pytest.mark.parametrize("form", FORMS)
def test_flows_to_the_ground_and_centers(form):
    rng = np.random.default_rng(0)
    center = {i: rng.standard_normal(2) for i in range(N)}
    ridge = gr.NodePenalty(
        gr.SquaredL2(), center=center, features=["x0", "x2"], weights={i: 0.1 + 0.1 * i for i in range(N)}
    )
    frame = noise(N, 5, seed=4)
    model = gr.HuberLoss(frame) + ridge + 0.1 * gr.TotalVariation(graph(), gr.L1(), features=[frame.features[1]])
    solution = gr.Problem(model).solve(gr.Exact(form=form), gap=1e-7)
    for i in range(N):
        expected = (0.1 + 0.1 * i) * (solution.coef[i, [0, 2]] - center[i])
        np.testing.assert_allclose(solution.flows[i, None][[0, 2]], expected, atol=1e-3)
        assert solution.flows[i, None][1] == 0


# ---- size ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [8, 200])
def test_stacked(n):
    """One variable for the parameters and one per edge block, whatever the number of nodes."""
    ground = gr.NodePenalty(gr.L1())
    problem = gr.Problem(
        network_lasso(n=n).model + 0.1 * ground + gr.Hierarchy({i: i % 2 for i in range(n)}, (1.0, 1.0))
    )
    primal, dual = problem.compile(), problem.compile("dual")
    assert len(primal.cvxpy.variables()) == 1 + len(problem.form.edges) == 5
    assert primal.w.shape == (n + 3, 3)
    assert [z.shape for z in primal.z] == [(len(edge.tail), 3) for edge in problem.form.edges]
    assert len(primal.cvxpy.constraints) <= 2 * len(problem.form.edges)
    assert len(dual.cvxpy.variables()) == len(problem.form.edges) + 1
    assert dual.w is None


def test_squared_losses_take_d_rows_per_node():
    """However many samples: 200 at each of two nodes are two blocks of 3 rows, where the library solves; users get them
    as they are."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 3)), rng.standard_normal(400)
    many = gr.NodeData.from_arrays(X, y, np.repeat([0, 1], 200))
    problem = gr.Problem(gr.SquaredLoss(many) + 0.1 * gr.TotalVariation(nx.path_graph(2), gr.SquaredL2()))
    solved = conic.primal(problem.form).cvxpy.get_problem_data(cp.CLARABEL)[0]
    assert max(solved["A"].shape) < 50
    assert problem.compile().cvxpy.get_problem_data(cp.CLARABEL)[0]["A"].shape[0] > 400


# ---- parameters ------------------------------------------------------------------------------------------------------
def test_a_strength_changes_without_recompiling():
    lam = gr.Parameter(0.05, name="lam")
    problem = network_lasso(lam)
    compiled = problem.compile()
    (parameter,) = compiled.cvxpy.parameters()
    assert parameter.name() == "lam"
    objectives = []
    for value in (0.05, 0.5, 0.05):
        lam.value = value
        compiled.conic.refresh()
        compiled.cvxpy.solve(solver=cp.CLARABEL, **TIGHT)
        objectives.append(compiled.read().objective)
        assert objectives[-1] == pytest.approx(network_lasso(value).solve().objective, rel=1e-6)
    assert objectives[0] == pytest.approx(objectives[2], rel=1e-7)
    assert objectives[1] > objectives[0] * 1.01


def test_a_solve_keeps_what_was_compiled(monkeypatch):
    lam = gr.Parameter(0.05)
    problem = network_lasso(lam)
    built, true = [], conic.primal
    monkeypatch.setattr(conic, "primal", lambda *arguments: (built.append(1), true(*arguments))[1])
    problem.solve(gr.Exact())
    once = len(built)
    assert once >= 1
    lam.value = 0.3
    again = problem.solve(gr.Exact()).objective
    assert len(built) == once
    assert again == pytest.approx(network_lasso(0.3).solve().objective, rel=1e-6)


def test_one_cvxpy_parameter_for_each_of_the_model():
    lam, mu = gr.Parameter(0.1, name="lam"), gr.Parameter(0.2, name="mu")
    model = (
        gr.SquaredLoss(noise(N, 5, seed=4))
        + lam * gr.TotalVariation(graph(), gr.L1())
        + 2 * lam * gr.NodePenalty(gr.L2())
    )
    compiled = gr.Problem(model + mu * gr.NodePenalty(gr.SquaredL2())).compile()
    assert sorted(p.name() for p in compiled.cvxpy.parameters()) == ["lam", "mu"]
    assert all(p.size == 1 for p in compiled.cvxpy.parameters())
    with pytest.raises(gr.errors.TermError, match="product of the parameters 'mu' and 'lam'"):
        mu * model


# ---- own penalties ---------------------------------------------------------------------------------------------------
def own():
    return gr.Problem(gr.LogisticLoss(noise(N, 5, seed=4, binary=True)) + 0.05 * gr.TotalVariation(graph(), Elastic()))


def written_out():
    frame = noise(N, 5, seed=4, binary=True)
    both = gr.TotalVariation(graph(), gr.L1()), gr.TotalVariation(graph(), gr.SquaredL2())
    return gr.Problem(gr.LogisticLoss(frame) + 0.05 * both[0] + 0.05 * both[1])


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=["exact", "pd"])
def test_an_own_penalty(method):
    found, expected = own().solve(method, gap=1e-6), written_out().solve(gap=1e-7)
    assert found.status == "certified"
    assert found.objective == pytest.approx(expected.objective, rel=2e-6)


def test_an_own_penalty_in_the_dual_form_is_refused():
    for refused in (lambda: own().compile("dual"), lambda: own().solve(gr.Exact(form="dual"))):
        with pytest.raises(gr.errors.TermError, match=r"Elastic has no method cvxpy_conjugate.*primal form"):
            refused()


# ---- solvers ---------------------------------------------------------------------------------------------------------
def test_a_solver_that_is_not_installed():
    with pytest.raises(gr.errors.SolverError, match=r"'mosaic' is not installed; there are .*clarabel.*scs"):
        network_lasso().solve(gr.Exact(solver="mosaic"))


@pytest.mark.parametrize("form", FORMS)
def test_scs(form):
    found = network_lasso().solve(gr.Exact(solver="scs", form=form), gap=1e-5)
    assert found.status == "certified"
    assert found.method == "Exact(scs)"
    assert "scs said" in found.message
    assert found.objective == pytest.approx(network_lasso().solve().objective, rel=2e-5)


def test_a_solver_that_cannot_take_the_problem():
    """OSQP has no exponential cones."""
    if "OSQP" not in cp.installed_solvers():
        pytest.skip("OSQP is not installed")
    problem = own()
    problem.solve()  # what an earlier solve left must not be taken for an answer
    with pytest.raises(gr.errors.SolverError, match="osqp cannot take this problem"):
        problem.solve(gr.Exact(solver="osqp"))


def test_a_wrong_answer_of_a_solver_is_not_believed(monkeypatch):
    """The certificate decides: an answer that is not the optimum is not called one."""
    problem = network_lasso()
    compiled = problem.compile()
    compiled.cvxpy.solve(solver=cp.CLARABEL)
    compiled.w.value = compiled.w.value * 1.01
    assert compiled.cvxpy.status == "optimal"
    found = compiled.read()
    assert found.status == "no_certificate"
    optimum = problem.solve(gap=1e-9).objective
    assert found.certificate.dual <= optimum < found.objective


def test_duals_of_the_wrong_sign_cannot_lie():
    problem = network_lasso()
    exact = problem.solve(gap=1e-9)
    point = exact.certificate.dual_point
    wrong = DualPoint(tuple(-u for u in point.flows), point.prices)
    certificate = Certifier(problem.form).certify(exact.certificate.w, wrong.flows, wrong.prices, 1e-6)
    assert certificate.dual <= exact.objective
    assert certificate.relative_gap > 1e-3


@pytest.mark.parametrize("units", [(1.0, 1.0), (1.0, 2.0**-20)])
@pytest.mark.parametrize("loss", [gr.LogisticLoss, gr.PoissonLoss])
def test_a_prox_of_collinear_columns_whose_step_outweighs_rounding(loss, units):
    """1/tau is below the rounding of the Hessian, which is singular."""
    x, y = np.array([1.0, 1.0, 2.0, 3.0]), np.array([0, 1, 1, 0])
    data = gr.NodeData.from_arrays(np.outer(x, units), y, ["a"] * 4)
    form = gr.Problem(loss(data) + gr.NodePenalty(gr.SquaredL2())).form
    (prox,) = node_proxes(form)
    w, _ = prox(np.zeros((1, 2)), np.array([1e20]), np.zeros((1, 2)), None)
    slope = form.samples[0].adjoint(form.samples[0].prices(w), form.shape)
    assert np.abs(slope / units).max() <= 1e-3
