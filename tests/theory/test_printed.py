"""Formulas as printed: on an instance of each the print fails, and what is right holds."""

from __future__ import annotations

import doctest
import inspect

import networkx as nx
import numpy as np
import pytest
from factories import chain, noise
from scipy.optimize import minimize

import graphreg as gr
from graphreg.errors import GraphError, GraphregError, MethodError

printed = gr.theory.printed
SHOWN = inspect.getmembers(printed, inspect.isfunction)
OWN = [name for name, each in SHOWN if each.__module__ == printed.__name__ and name[0] != "_"]


# ---- GTV minimisation ------------------------------------------------------------------------------------------------
def few(m):
    """m samples of 4 features at each of six nodes."""
    data = noise(n=6, m=m, d=4)
    return gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(nx.path_graph(6), gr.L2()))


def gaps_of(problem):
    """(34) along Algorithm 1, and the solution after its last round."""
    look = gr.Observer({"(34)": lambda at: printed.gap(problem, at.w, at.flows)}, rounds=20)
    run = problem.solve(gr.PrimalDual(balance=1.0, relaxation=1.0), rounds=400, gap=0, observe=look)
    return run.observed["(34)"], run


def test_34_is_infinite_with_fewer_samples_than_features():
    gaps, run = gaps_of(few(2))
    assert np.isinf(gaps[1:]).all(), "the sentence below (34) says that it falls below any tolerance"
    assert run.certificate.relative_gap < 1e-6, "with repaired flows it does"


def test_34_bounds_the_suboptimality_where_it_is_finite():
    problem = few(8)
    gaps, run = gaps_of(problem)
    best = problem.solve(gap=1e-9)
    assert np.isfinite(gaps[1:]).all()
    assert (gaps[1:] >= -1e-12).all()
    assert gaps[-1] < 1e-3 * gaps[1]
    assert gaps[-1] >= run.objective - best.objective - 1e-12


def test_34_at_a_dual_optimum_is_that_of_the_certificate():
    for problem in (few(8), gr.Problem(few(8).model + 0.2 * gr.NodePenalty(gr.L1()))):
        found = problem.solve(gap=1e-9)
        w, flows = found.certificate.w, found.certificate.dual_point.flows
        assert 0.0 <= printed.gap(problem, w, flows) + 1e-9 < 1e-6


def test_34_is_infinite_beyond_a_capacity():
    problem = few(8)
    found = problem.solve()
    (u,) = found.certificate.dual_point.flows
    assert printed.gap(problem, found.certificate.w, [100.0 * u]) == np.inf


@pytest.mark.parametrize(
    "penalty", [gr.SquaredL2(), gr.HuberNorm(0.5), gr.L1(), gr.L2()], ids=lambda p: type(p).__name__
)
def test_25_holds_for_norms_alone(penalty):
    problem = chain(penalty=penalty, strength=0.3, weight=2.0)
    found = problem.solve(gap=1e-10)
    w, flows = found.certificate.w, found.certificate.dual_point.flows
    (as_printed,), (edge,) = printed.edge_residuals(problem, w, flows), problem.form.edges
    right = edge.residuals(w, flows[0]) / edge.weight
    assert right.max() < 1e-6
    if isinstance(penalty, gr.AbstractNorm):
        assert as_printed.max() < 1e-6
    else:
        assert as_printed.max() > 1e-2


# ---- graph-fused M-estimation ----------------------------------------------------------------------------------------
def noisy_path(n=50, strength=1.0):
    """(4) on a path, whose parameters jump up and down at every fifth node; M_u = 1/2 (w - y_u)^2, so kappa = 1."""
    truth = np.where(np.arange(n) // 5 % 2, 20.0, -20.0)[:, None]
    X, y = np.ones((n, 1)), truth[:, 0] + np.random.default_rng(1).standard_normal(n)
    data = gr.NodeData.from_arrays(X, y, np.arange(n))
    model = gr.SquaredLoss(data, scale=1.0 / n) + strength * gr.TotalVariation(nx.path_graph(n), gr.L1())
    return gr.Problem(model), truth


def error_at(strength):
    problem, truth = noisy_path(strength=strength)
    return float(((problem.solve(gap=1e-9).coef - truth) ** 2).mean())


def test_theorem_31_fails_at_its_printed_strength():
    problem, truth = noisy_path()
    found = printed.error_bound(problem, truth)
    assert found.kappa == pytest.approx(1.0)
    assert error_at(found.strength) > 2.0 * found.bound
    right = gr.theory.error_bound(problem, truth).required
    assert right == pytest.approx(found.strength / np.sqrt(50))
    assert error_at(right) <= gr.theory.error_bound(noisy_path(strength=right)[0], truth).theorem
    assert "does not hold" in str(found)


def test_the_bound_of_the_compatibility_factor():
    path, edges = nx.path_graph(6), [(0, 1), (1, 2), (2, 3)]
    bound = printed.compatibility_bound(path, edges)
    assert bound == pytest.approx(0.5 / np.sqrt(2.0))
    assert bound <= gr.theory.compatibility_factor(path, edges, "l1", features=1).value
    factor = gr.theory.compatibility_factor(path, edges, "l1", features=6)
    assert factor.exact
    assert bound > factor.value
    assert factor.value == pytest.approx(factor.bounds.loc["best", "value"])
    assert bound == pytest.approx(factor.bounds.loc["as printed", "value"])
    assert printed.compatibility_bound(path, []) == 1.0


# ---- known clusters --------------------------------------------------------------------------------------------------
def tree(sizes=(2, 6)):
    clusters = {k: int(k >= sizes[0]) for k in range(sum(sizes))}
    return gr.Problem(gr.SquaredLoss(noise(n=sum(sizes), m=6)) + gr.Hierarchy(clusters, weights=(2.0, 1.0)))


def test_22_and_its_two_expressions():
    for sizes, same in (((2, 6), False), ((4, 4), True)):
        problem = tree(sizes)
        found = problem.solve(gap=1e-11)
        (first,) = printed.network_mean(problem, found.coef)
        root = list(found.latent.values())[-1]
        assert (np.abs(first - root).max() < 1e-5) == same
        gamma = np.where(np.arange(8) < sizes[0], 1.0 / (1.0 + 2.0 * sizes[0]), 1.0 / (1.0 + 2.0 * sizes[1]))
        second = gamma @ found.coef / gamma.sum()  # alpha_j = lam / (lam + Gamma_j), gamma_i the same throughout
        assert np.abs(second - root).max() < 1e-5


def test_the_gradients_of_a1_are_not_zero_at_the_optimum():
    problem = tree()
    w = problem.solve(gap=1e-12).certificate.w
    clients, lam, gamma, root = [range(2), range(2, 8)], 1.0, 2.0, w[-1]
    right = [gamma * (w[8 + j] - w[list(each)]).sum(axis=0) + lam * (w[8 + j] - root) for j, each in enumerate(clients)]
    assert np.abs(right).max() < 1e-5
    as_printed = printed.cluster_gradients(problem, w)
    by_hand = [(w[list(each)] - w[8 + j]).sum(axis=0) + lam * (w[8 + j] - root) for j, each in enumerate(clients)]
    assert np.allclose(as_printed, by_hand, rtol=0, atol=1e-12)
    assert np.abs(as_printed).max() > 1e-2


def test_the_printed_likelihood_has_another_minimiser():
    problem = tree()
    best = problem.solve(gap=1e-11)

    def value(theta):
        return printed.likelihood(problem, theta.reshape(best.coef.shape))

    found = minimize(value, best.coef.ravel(), method="L-BFGS-B", options={"maxiter": 4})
    assert found.fun < value(best.coef) - 1e-2
    assert problem.value(found.x.reshape(best.coef.shape)) > best.objective + 1e-3


def test_the_printed_likelihood_by_hand():
    problem, theta = tree((2, 2)), np.random.default_rng(3).standard_normal((4, 3))
    data = noise(n=4, m=6)
    residuals = data.y - np.einsum("rj,rj->r", data.X, theta[np.repeat(range(4), 6)])
    means, gamma, alpha = theta.reshape(2, 2, 3).mean(axis=1), 2.0, 1.0 / (1.0 + 4.0)
    value = (residuals**2).sum() / 6.0 + 0.5 * gamma * alpha * ((theta - theta.mean(axis=0)) ** 2).sum()
    value += 0.5 * gamma * (1.0 - alpha) * np.linalg.norm(theta - np.repeat(means, 2, axis=0), axis=1).sum()
    assert printed.likelihood(problem, theta) == pytest.approx(value, rel=1e-12)


def test_proposition_32_counts_rounds_within_clusters_that_no_coin_shows():
    p0, p, T = 0.3, 0.4, 400_000
    rng = np.random.default_rng(0)
    between, own = rng.random(T) < p0, rng.random(T) < p
    local = ~between & ~own
    needed = int((~between[1:] & own[1:] & local[:-1]).sum())  # an average is asked for after a local step alone
    switches = int((between[1:] & ~between[:-1]).sum())
    first, second = printed.communication_rounds(p0, p, T)
    error = 5.0 * np.sqrt(T) / 2.0
    assert abs(switches - first) < error
    assert abs(needed - (1.0 - p0) * second) < error
    assert abs(needed - second) > 4.0 * error


def test_the_weights_of_a12():
    n = 5

    def risk(own):
        """E |own y_1 + (1 - own) mean of the others - theta_1|^2 / d: own share of the noise, the rest of theta_1."""
        return own**2 + (1.0 - own) ** 2 * (1.0 + 2.0 / (n - 1))

    own, others = printed.james_stein_weights(n)
    assert own + others == pytest.approx(1.0)
    assert risk(others) == pytest.approx(min(risk(a) for a in np.linspace(0, 1, 1001)), rel=1e-5), "the other way round"
    assert risk(own) > 1.1 * risk(others)


# ---- decentralised inference -----------------------------------------------------------------------------------------
def test_table_1_is_wrong_for_the_star_alone():
    sizes = {"star": [lambda k: nx.star_graph(k - 1), [100, 200, 400]], "cycle": [nx.cycle_graph, [40, 80, 160]]}
    found = {name: gr.theory.sparseness_exponent(*each).value for name, each in sizes.items()}
    assert found["star"] == pytest.approx(1.0, abs=0.02)
    assert found["cycle"] == pytest.approx(printed.sparseness_exponent("cycle"), abs=0.02)
    assert printed.sparseness_exponent("star") - found["star"] > 0.9
    assert printed.sparseness_exponent("torus", 4) == 0.5


# ---- the list --------------------------------------------------------------------------------------------------------
def test_what_the_list_names_is_there():
    table = printed.differences()
    assert table[["paper", "place"]].duplicated().sum() == 0
    assert len(table) > 20
    assert ((table["as_printed"] == "") == (table["unnamed"] != "")).all(), "a name, or why there is none"
    names = {
        word.split("(")[0] for column in ("as_printed", "right") for word in table[column] if word.startswith("gr.")
    }
    for name in names:
        found = gr
        for part in name.split(".")[1:]:
            found = getattr(found, part)
        assert callable(found), name
    reached = set(table["as_printed"])
    for name in OWN:
        if name != "differences":
            assert any(f"printed.{name}(" in word for word in reached), f"{name} is not in the list"


@pytest.mark.parametrize("place", printed.differences()["as_printed"].tolist())
def test_methods_as_printed_can_be_made(place):
    if ("printed=" in place and place.startswith("gr.")) or "PrimalDual" in place:
        made = eval(place, {"gr": gr})
        assert "printed" in made.label or made.label == "PrimalDual(balance=1, relaxation=1)"


@pytest.mark.parametrize("name", OWN)
def test_an_example_runs(name):
    path, halves = nx.path_graph(4), {k: k // 2 for k in range(4)}
    loss, said = gr.SquaredLoss(noise(n=4, m=6, d=2)), []
    names = {
        "gr": gr,
        "np": np,
        "nx": nx,
        "problem": gr.Problem(loss + 0.1 * gr.TotalVariation(path, gr.L2())),
        "tree": gr.Problem(loss + gr.Hierarchy(halves, weights=(1.0, 1.0))),
    }
    examples = doctest.DocTestFinder(recurse=False).find(getattr(printed, name), name, globs=names)
    assert examples[0].examples, f"{name} has none"
    doctest.DocTestRunner(verbose=False).run(examples[0], out=said.append)
    assert not said, "".join(said)


# ---- refusals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: printed.gap(chain(loss=gr.LogisticLoss), np.zeros((8, 3)), [np.zeros((7, 3))]),
            MethodError,
            "LogisticLoss",
        ),
        (lambda: printed.gap(chain(), np.zeros((8, 2)), [np.zeros((7, 3))]), MethodError, "the parameters"),
        (lambda: printed.gap(chain(), np.zeros((8, 3)), [np.zeros((7, 2))]), MethodError, "of the shape .7, 3."),
        (lambda: printed.gap(chain(), np.zeros((8, 3)), []), MethodError, "flows are of 1 terms, got 0"),
        (lambda: printed.gap(3, np.zeros((8, 3)), []), GraphregError, "takes a gr.Problem"),
        (lambda: printed.edge_residuals(chain(), np.zeros((8, 3)), [np.full((7, 3), np.nan)]), MethodError, "finite"),
        (lambda: printed.network_mean(chain(), np.zeros((8, 3))), MethodError, "Hierarchy of two levels"),
        (lambda: printed.network_mean(tree(), np.zeros((9, 3))), MethodError, "of the shape .8, 3., got .9, 3."),
        (lambda: printed.communication_rounds(1.5, 0.5, 10), MethodError, "p_global"),
        (lambda: printed.communication_rounds(0.5, "x", 10), MethodError, "p_cluster"),
        (lambda: printed.communication_rounds(0.5, 0.5, -1), MethodError, "rounds"),
        (lambda: printed.james_stein_weights(1), MethodError, "at least 2"),
        (lambda: printed.cluster_gradients(tree(), np.zeros((8, 3))), MethodError, "of the shape .11, 3., got .8, 3."),
        (lambda: printed.likelihood(tree(), np.full((8, 3), np.inf)), MethodError, "finite"),
        (lambda: printed.likelihood(chain(), np.zeros((8, 3))), MethodError, "Hierarchy of two levels"),
        (lambda: printed.sparseness_exponent("ring"), MethodError, "family"),
        (lambda: printed.sparseness_exponent("torus"), MethodError, "a torus has a dimension"),
        (lambda: printed.sparseness_exponent("star", 2), MethodError, "a torus has a dimension"),
        (lambda: printed.compatibility_bound(nx.path_graph(3), [(0, 2)]), GraphError, "not in the graph"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
