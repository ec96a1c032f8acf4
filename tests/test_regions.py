"""Confidence regions: their formulas by hand, Wald tests as statsmodels has them, what they cover, what they refuse."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from core_cases import site_of
from scipy.stats import chi2, norm

import graphreg as gr
from benchmarks.statistics.coverage import Network, runs
from graphreg.errors import DataError, MethodError, MethodWarning, ModelError
from graphreg.inference import ConfidenceRegion, confidence_region, local_regions
from graphreg.inference.decentralised import Sums, region_of, reuse

K, M, D = 6, 40, 3
STEP = gr.DecreasingStep(D=0.2, gamma=5.0, alpha=0.8)
METHODS = {name: getattr(gr, name) for name in ("ExactDiffusion", "GradientTracking", "LocalSGD")}


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        yield


def drawn(m=M, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(0.3 * rng.standard_normal((K, 1, D))) * rng.standard_normal((K, m, D))
    y = np.einsum("kmd,kd->km", X, [1.0, -0.5, 0.0] + 0.3 * rng.standard_normal((K, D)))
    return X, y + rng.standard_normal((K, m))


def problem(m=M, seed=0, spoil=None, loss=gr.SquaredLoss, edges=True):
    X, y = drawn(m, seed)
    if spoil is not None:
        spoil(X, y)
    y = (y > 0).astype(int) if loss is gr.LogisticLoss else y
    model = loss(gr.NodeData.from_arrays(X.reshape(-1, D), y.ravel(), np.repeat(range(K), m)))
    return gr.Problem(model + gr.Consensus(nx.cycle_graph(K)) if edges else model)


def seen(name, T=30, batch=2, seed=3):
    """The gradients and parameters of a run, step by step, and its problem: gradients by the formula of squared losses
    from the samples of each step."""
    case, (X, y) = problem(), drawn()
    method = METHODS[name](STEP, batch=batch, hessian_samples=T)
    site = replace(site_of(case.form), seed=seed)
    state, thetas, G = method.init(site, None), [], []
    for t in range(T):
        theta = state.theta
        taken = (site.streams("samples").uniform(t, batch) * M).astype(int)
        each = np.arange(K)[:, None], taken
        rest = np.einsum("kbd,kd->kb", X[each], theta) - y[each]
        thetas.append(theta)
        G.append(np.einsum("kb,kbd->kd", rest, X[each]) / batch)
        state = method.step(state)
    return case, method, np.array([*thetas, state.theta]), np.array(G)


# ---- formulas --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", METHODS)
def test_a_region_by_hand(name, quiet):
    T, (X, _) = 30, drawn()
    case, method, thetas, G = seen(name)
    run = case.solve(method, gap=0, rounds=T, seed=3)
    stream = replace(site_of(case.form), seed=3).streams("samples")
    taken = np.concatenate([(stream.uniform(t, 2) * M).astype(int) for t in range(T)], axis=1)
    sampled = X[np.arange(K)[:, None], taken]
    H = np.einsum("kbi,kbj->ij", sampled, sampled) / (2 * T)  # f_k is the mean over the samples of node k
    average = thetas[:-1].mean(axis=(0, 1))
    noise = sum(np.cov(G[:, k].T, ddof=0) for k in range(K)) * (1 + 2 * T / M)  # with replacement
    V = np.linalg.inv(H) @ noise @ np.linalg.inv(H) / T
    step = np.linalg.solve(H, G.sum(axis=1).mean(axis=0))
    for estimator, theta in (("average", average), ("one-step", average - step)):
        region = confidence_region(run, estimator)
        np.testing.assert_allclose(region.estimate, theta, rtol=1e-9)
        np.testing.assert_allclose(region.covariance, V, rtol=1e-8)
        assert region.shifts["start"] == pytest.approx(np.sqrt(step @ np.linalg.solve(V, step)))


@pytest.mark.parametrize("name", METHODS)
def test_the_mean_moves_by_the_step_times_the_sum_of_the_gradients(name):
    """(14) needs node means alone: sum_k G_kt = (mean_t - mean_t+1) / eta_t, for the corrected methods too."""
    _, _, thetas, G = seen(name)
    eta = 0.2 * (np.arange(30) + 1 + 5.0) ** -0.8
    moved = -np.diff(thetas.mean(axis=1), axis=0) / eta[:, None]
    np.testing.assert_allclose(moved, G.sum(axis=1), rtol=1e-8, atol=1e-10)


def test_decreasing_steps_leave_the_flows_where_they_are():
    """At the optimum with its flows nothing moves, whatever the step."""
    case = problem()
    exact = case.solve(gap=1e-12, on_failure="return")
    start = (exact.coef, exact.certificate.point.flows)
    for method in (gr.ExactDiffusion(gr.DecreasingStep()), gr.GradientTracking(gr.DecreasingStep())):
        state = method.init(site_of(case.form), start)
        for _ in range(50):
            state = method.step(state)
        assert state.eta < 0.9 * method.init(site_of(case.form), None).eta
        np.testing.assert_allclose(state.theta, exact.coef, atol=1e-5)


@pytest.mark.parametrize("shuffle", [True, False])
def test_what_taking_samples_again_adds(shuffle):
    """r from how often each sample was taken: sum_j N_j^2 / (T b), which is exact without replacement."""
    case, counts = problem(m=7), np.full(K, 7)
    for T in (5, 7, 12, 14, 20):
        for replacement in (True, False):
            options = {"batch": 1, "replacement": replacement, "hessian_samples": T, "shuffle": shuffle}
            method, squares = gr.ExactDiffusion(1e-3, **options), []
            for seed in range(40 if replacement else 1):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MethodWarning)
                    state = method.init(replace(site_of(case.form), seed=seed), None)
                    for _ in range(T):
                        state = method.step(state)
                squares += [np.sum(np.bincount(row) ** 2) / T for row in state.seen.moments.last()]
            found = reuse(method.gathered(state)["passes"], replacement)
            if replacement:  # up to 1/m: E N^2 = p (1 - 1/m) + p^2
                expected, error = np.mean(squares), np.std(squares) / np.sqrt(len(squares))
                assert abs(found[0] - 1 / 7 - expected) < 4 * error
            else:
                np.testing.assert_allclose(found, squares)
            np.testing.assert_allclose(method.gathered(state)["passes"], T / counts)


@pytest.mark.parametrize("burn_in", [3, 9])
def test_what_taking_samples_again_adds_after_a_burn_in(burn_in):
    """In the mean over shuffled passes, of which the burn-in ends in one and the run in another; exact within one."""
    case, options = problem(m=7), {"batch": 1, "replacement": False, "hessian_samples": 20, "burn_in": burn_in}
    for T in (burn_in + 2, burn_in + 7, burn_in + 15):
        squares: list[float] = []
        for seed in range(40):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MethodWarning)
                method = gr.ExactDiffusion(1e-3, **options)
                state = method.init(replace(site_of(case.form), seed=seed), None)
                for _ in range(T):
                    state = method.step(state)
            squares += [np.sum(np.bincount(row) ** 2) / (T - burn_in) for row in state.seen.moments.last()]
        got = method.gathered(state)
        found = reuse(got["passes"], False, burn_in / 7)[0]
        np.testing.assert_allclose(Sums.of(got).noise, found * got["gradient_covariance"].sum(axis=0))
        assert abs(found - np.mean(squares)) <= 4 * np.std(squares) / np.sqrt(len(squares)) + 1e-12


def test_a_burn_in_is_a_later_start(quiet):
    """The region after B of T steps has the estimate and the covariance of the last T - B."""
    T, B = 30, 12
    case, method, thetas, G = seen("ExactDiffusion", T)
    late = replace(method, burn_in=B, hessian_samples=T - B)
    found = confidence_region(case.solve(late, gap=0, rounds=T, seed=3))
    H = late.gathered(_after(case, late, T))["hessian"].sum(axis=0)
    noise = sum(np.cov(G[B:, k].T, ddof=0) for k in range(K)) * (1 + 2 * (T - B) / M)
    step = np.linalg.solve(H, G[B:].sum(axis=1).mean(axis=0))
    np.testing.assert_allclose(found.estimate, thetas[B:-1].mean(axis=(0, 1)) - step, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(H) @ noise @ np.linalg.inv(H) / (T - B), rtol=1e-8)


def _after(case, method, rounds):
    state = method.init(replace(site_of(case.form), seed=3), None)
    for _ in range(rounds):
        state = method.step(state)
    return state


def test_an_average_of_regions_needs_one_sum():
    case = problem()
    run = case.solve(gr.ExactDiffusion(STEP, batch=1, hessian_samples=60), gap=0, rounds=60, seed=0)
    before = dict(run.ledger.messages)
    region = confidence_region(run)
    assert run.ledger.messages == before
    assert region.ledger.messages == {**before, "inference": 2 * (K - 1)}  # up and down a spanning tree
    assert region.ledger.bytes["inference"] == 8 * 2 * (K - 1) * (3 * D + D * (D + 1))
    assert Sums.numbers(D) == 3 * D + D * (D + 1)


def test_actors_give_the_same_region(quiet):
    case = problem()
    regions = [
        gr.inference.estimate(case, rounds=40, seed=5, engine=engine, estimator="average")
        for engine in (None, gr.Actors())
    ]
    np.testing.assert_allclose(regions[0].estimate, regions[1].estimate, rtol=1e-9)
    np.testing.assert_allclose(regions[0].covariance, regions[1].covariance, rtol=1e-9)


def test_estimate_is_a_single_pass():
    region = gr.inference.estimate(problem(m=600), seed=0)
    text = " ".join(str(region).split())
    assert "a single pass" in text
    assert "T = 480 steps of K = 6 nodes with 1 samples each, after a burn-in of 120" in text
    assert "this is no certificate" in text
    assert repr(region) == "<ConfidenceRegion of 3 coefficients: one-step estimator of ExactDiffusion>"
    again = gr.inference.estimate(problem(m=600), seed=0)
    pd.testing.assert_frame_equal(region.intervals(), again.intervals())
    optimum = problem(m=600).solve().coef[0]  # of the sample, which the one-step estimator nears faster than the truth
    assert (np.abs(region.estimate - optimum) < 1.5 * region.std_error).all()


# ---- coverage --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("replacement", [False, True])
def test_covariances_are_those_of_the_estimates_and_regions_cover(replacement):
    """Over 300 replications: V is the covariance of the one-step estimates, which a factor of 1.3 would not pass, and
    with replacement it is twice as large as in a single pass."""
    network = Network(nodes=5, samples=300, scales=0.3, spread=0.3)
    step = gr.DecreasingStep(D=0.4, gamma=20.0, alpha=0.8)
    method = gr.ExactDiffusion(step, batch=1, replacement=replacement, shuffle=False, hessian_samples=300)
    truth, names = network.truth(), pd.Index(["x0", "x1", "x2"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        found = [region_of(names, got, "one-step", method.name) for got in runs(network, method, 300, 300, 1.0)]
    off = np.array([region.estimate - truth for region in found])
    V = np.mean([region.covariance for region in found], axis=0)
    ratio = np.linalg.eigvals(np.linalg.solve(V, off.T @ off / len(off))).real
    assert (np.abs(ratio - 1.0) < 0.3).all()
    covered = np.mean([region.contains(truth) for region in found])
    assert abs(covered - 0.95) <= 4 * np.sqrt(0.95 * 0.05 / 300)


def test_local_sgd_drifts_where_hessians_differ_and_the_shift_says_so():
    network = Network(nodes=12, samples=300, scales=0.7, spread=1.0)
    step, truth = gr.DecreasingStep(D=2.5 / 12, gamma=20.0, alpha=0.8), network.truth()
    options = {"batch": 1, "replacement": False, "shuffle": False, "hessian_samples": 300}
    shifts, missed = {}, {}
    for method in (gr.LocalSGD(step, tau=10, **options), gr.ExactDiffusion(step, **options)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MethodWarning)
            found = [
                region_of(pd.Index(["x0", "x1", "x2"]), got, "one-step", method.name)
                for got in runs(network, method, 300, 40, 1.0)
            ]
        shifts[method.name] = np.mean([region.shifts["consensus"] for region in found])
        missed[method.name] = np.mean([not region.contains(truth) for region in found])
    assert shifts["LocalSGD"] > 10 * shifts["ExactDiffusion"]
    assert missed["LocalSGD"] > 0.5
    assert missed["ExactDiffusion"] < 0.25


# ---- any covariance --------------------------------------------------------------------------------------------------
def region(V=None, names=("x0", "x1", "x2")):
    V = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]]) if V is None else V
    return ConfidenceRegion(pd.Series([1.0, -2.0, 0.5], index=list(names)), V, "by hand", ("nothing",))


HYPOTHESES = {
    "one": ({"x1": 0}, [[0, 1, 0]], [0]),
    "difference": ({"x0 - x2": 0.25}, [[1, 0, -1]], [0.25]),
    "several": ({"x1": 0.1, "2*x0 + x2": 1, "-x0+0.5 x1": 0}, [[0, 1, 0], [2, 0, 1], [-1, 0.5, 0]], [0.1, 1, 0]),
}


@pytest.mark.parametrize("case", HYPOTHESES)
@pytest.mark.parametrize("covariance", ["HC0", "HC3"])
def test_tests_and_intervals_are_those_of_statsmodels(case, covariance):
    named, R, r = HYPOTHESES[case]
    X, y = drawn()
    found = local_regions(problem(), covariance)
    assert list(found) == list(range(K))
    for k in (0, 4):
        fit = sm.OLS(y[k], X[k]).fit(cov_type=covariance, use_t=False)
        expected = fit.wald_test((np.array(R, float), np.array(r, float)), use_f=False, scalar=True)
        for test in (found[k].test(named), found[k].test(R, r)):
            assert test.statistic == pytest.approx(float(expected.statistic), rel=1e-6)
            assert test.p_value == pytest.approx(float(expected.pvalue), rel=1e-5)
            assert test.df == len(r)
        for level in (0.5, 0.95):
            limits = found[k].intervals(level)[["low", "high"]]
            np.testing.assert_allclose(limits, fit.conf_int(alpha=1 - level), rtol=1e-6)


def test_a_region_holds_what_its_test_does_not_reject():
    one, rng = region(), np.random.default_rng(0)
    inside = []
    for theta in one.estimate.to_numpy() + 2 * rng.standard_normal((60, 3)):
        p = one.test(np.eye(3), theta).p_value
        for level in (0.5, 0.9):
            assert one.contains(theta, level) == (p >= 1 - level)
        inside.append(one.contains(dict(zip(("x2", "x1", "x0"), theta[::-1], strict=True))))
        assert inside[-1] == one.contains(pd.Series(theta, index=one.names))
    assert 5 < sum(inside) < 55


def test_the_ellipse_is_the_edge_of_what_is_not_rejected():
    one = region()
    points = one.ellipse("x2", "x0", 0.8)
    assert list(points.columns) == ["x2", "x0"]
    for a, b in points.to_numpy()[::25]:
        assert one.test({"x2": a, "x0": b}).p_value == pytest.approx(0.2)
    wide = points.max() - points.min()
    np.testing.assert_allclose(wide, 2 * np.sqrt(chi2.ppf(0.8, 2)) * np.sqrt([0.7, 2.0]), rtol=1e-3)


def test_intervals_by_hand_and_names_of_any_kind():
    named = region(names=("dose (mg)", "age - 40", ("w", "low")))
    table = named.intervals(0.9)
    np.testing.assert_allclose(table["high"] - table["low"], 2 * norm.ppf(0.95) * np.sqrt([2.0, 1.0, 0.7]))
    assert str(table).endswith("assumed: nothing")
    test = named.test({"dose (mg) - 2 * age - 40": 1, ("w", "low"): 0})
    assert test.hypotheses == ("dose (mg) - 2 age - 40 = 1", "w[low] = 0")
    assert "chi-square" in str(test)
    assert "assumed: nothing" in str(test)


def test_names_of_multinomial_losses_are_features_and_classes():
    X, y = drawn(80)
    data = gr.NodeData.from_arrays(X.reshape(-1, D), np.digitize(y.ravel(), [-1, 1]), np.repeat(range(K), 80))
    found = local_regions(gr.Problem(gr.MultinomialLoss(data) + 0.1 * gr.NodePenalty(gr.SquaredL2())), "HC0")
    assert found[2].test({("x1", 2): 0}).df == 1
    assert any("penalised" in line for line in found[2].assumed)
    assert (found[2].intervals()["std_error"] > 0).all()
    with pytest.raises(DataError, match=r"no variance along x0\[0\] \+ x0\[1\] \+ x0\[2\]"):  # by the ridge
        found[2].test({("x0", 0): 0, ("x0", 1): 0, ("x0", 2): 0})


def test_a_singular_covariance_has_intervals_and_no_joint_region():
    one = region(np.ones((3, 3)) + np.diag([1.0, 0, 0]))
    assert one.test({"x0": 0, "x1": 0}).df == 2
    for ask in (
        lambda: one.contains([0, 0, 0]),
        lambda: one.ellipse("x1", "x2"),
        lambda: one.test({"x1": 0, "x2": 1}),
    ):
        with pytest.raises(DataError, match=r"no variance along -?x1 [+-] x2"):
            ask()


def test_a_picture():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = region().plot("x0", "x2", 0.9)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("x0", "x2", "by hand")
    ellipse = axes.lines[0].get_xydata()
    np.testing.assert_allclose(ellipse, region().ellipse("x0", "x2", 0.9))
    axes.figure.clear()


# ---- refusals --------------------------------------------------------------------------------------------------------
WRONG = {
    "level 0": (lambda one: one.intervals(0.0), "between 0 and 1.*got 0.0"),
    "level 95": (lambda one: one.contains([1, 2, 3], 95), "between 0 and 1.*got 95"),
    "level of an ellipse": (lambda one: one.ellipse("x0", "x1", True), "between 0 and 1"),
    "a name": (lambda one: one.test({"x10": 0}), "no coefficient 'x10'.*did you mean 'x1'"),
    "a name in a sum": (lambda one: one.test({"x1 - age": 0}), "no coefficient 'age'"),
    "a name of another type": (lambda one: one.test({0: 0}), "no coefficient 0 "),
    "no sum": (lambda one: one.test({"x0 x1": 0}), "'x0 x1'"),
    "a product": (lambda one: one.test({"x0 * x1": 0}), r"x0 \* x1"),
    "nothing left": (lambda one: one.test({"x0 - x0": 0}), "nothing is left"),
    "a string": (lambda one: one.test("x0 - x1"), r"write \{'x0 - x1': 0\}"),
    "no row": (lambda one: one.test({}), "no row"),
    "values twice": (lambda one: one.test({"x0": 0}, 1), "leave out the second"),
    "columns": (lambda one: one.test(np.eye(2)), r"column for each of the 3.*\(2, 2\)"),
    "three axes": (lambda one: one.test(np.zeros((1, 1, 3))), r"\(1, 1, 3\)"),
    "values": (lambda one: one.test(np.eye(3), [0, 0]), "each of the 3 rows"),
    "rank": (lambda one: one.test({"x0": 0, "x1": 0, "x0 + x1": 0}), "3 rows of the hypothesis have rank 2"),
    "too many rows": (lambda one: one.test(np.ones((4, 3)) + np.eye(4, 3)), "4 rows .* rank 3"),
    "a row of 0": (lambda one: one.test([[1, 0, 0], [0, 0, 0]]), "row 1 .* is 0"),
    "nan": (lambda one: one.test(np.eye(3), [0, np.nan, 0]), "finite"),
    "letters": (lambda one: one.test({"x0": "a"}), "numbers"),
    "theta": (lambda one: one.contains([1, 2]), r"3 finite numbers.*\(2,\)"),
    "theta nan": (lambda one: one.contains([1, 2, np.nan]), "NaN"),
    "theta by name": (lambda one: one.contains({"x0": 1, "x1": 2}), "no value for the coefficient 'x2'"),
    "theta by a wrong name": (lambda one: one.contains({"x0": 1, "x1": 2, "y": 1}), "no coefficient 'y'"),
    "one axis": (lambda one: one.ellipse("x0", "x0"), "'x0' twice"),
    "no error": (lambda one: region(np.diag([1.0, 0.0, 1.0])), "variance 0 at the coefficient 'x1'"),
    "negative": (lambda one: region(np.eye(3) - 0.6), "not positive semidefinite"),
    "asymmetric": (lambda one: region(np.eye(3) + np.eye(3, k=1)), "not symmetric"),
    "shape": (lambda one: region(np.eye(2)), r"shape \(3, 3\), got \(2, 2\)"),
    "infinite": (lambda one: region(np.diag([1.0, np.inf, 1.0])), "finite"),
    "two of a name": (lambda one: region(names=("a", "a", "b")), "same name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_questions(case):
    ask, said = WRONG[case]
    with pytest.raises(DataError, match=said):
        ask(region())


def test_runs_without_moments():
    case = problem()
    for method, said in (
        (gr.LocalSGD(batch=None), "full gradients, which have no noise"),
        (gr.ExactDiffusion(), "ExactDiffusion has no moments.*give the method a batch"),
        (None, "Exact.* has no moments.*estimate"),
    ):
        run = case.solve(method, gap=0 if method else 1e-6, rounds=20)
        with pytest.raises(MethodError, match=said):
            confidence_region(run)
    with pytest.raises(MethodError, match="'one-step' or 'average', got 'mean'"):
        confidence_region(run, "mean")
    with pytest.raises(MethodError, match=r"Solution of problem.solve.*got Problem"):
        confidence_region(case)
    with pytest.raises(MethodError, match="1 steps, from which no covariance"):
        confidence_region(case.solve(gr.ExactDiffusion(batch=1), gap=0, rounds=1))
    with pytest.raises(MethodError, match="0 steps after 5 of burn-in, from which no covariance"):
        confidence_region(case.solve(gr.ExactDiffusion(batch=1, burn_in=9), gap=0, rounds=5))
    with pytest.raises(MethodError, match="no consensus"):
        gr.inference.estimate(
            gr.Problem(gr.SquaredLoss(case.model.terms[0][1].data) + gr.TotalVariation(nx.cycle_graph(K), gr.L2()))
        )
    with pytest.raises(ModelError, match=r"inference takes a gr\.Problem, got Model"):
        gr.inference.estimate(case.model)
    with pytest.raises(ModelError, match=r"local_regions takes a gr\.Problem, got str"):
        local_regions("model")


def test_directions_of_which_a_run_knows_nothing(quiet):
    def twice(X, y):
        X[:, :, 2] = 2 * X[:, :, 0]

    def exact(X, y):
        y[:] = X @ [0.0, 0.0, 0.0]

    with pytest.raises(DataError, match=r"Hessian is singular along x0 - 0.5 x2|-2 x0 \+ x2"):
        gr.inference.estimate(problem(spoil=twice), seed=0)
    with pytest.raises(DataError, match="no noise along"):
        gr.inference.estimate(problem(spoil=exact), seed=0)


WARNED = {
    "local sgd": (gr.LocalSGD(STEP, replacement=False), "one-step", "plain LocalSGD is biased where .* differ"),
    "a far start": (
        gr.ExactDiffusion(replace(STEP, D=0.02), batch=1),
        "average",
        r"average is still about .*one-step",
    ),
    "a constant step": (gr.ExactDiffusion(0.05, batch=1), "one-step", "the step is constant"),
    "alpha 1": (gr.ExactDiffusion(replace(STEP, alpha=1.0), batch=1), "average", "alpha = 1 the average is not"),
    "many nodes": (gr.ExactDiffusion(replace(STEP, alpha=0.55), batch=1), "average", r"K = 6 .*T\^\(2 alpha - 1\)"),
    "a Hessian of few": (gr.ExactDiffusion(STEP, batch=1, hessian_samples=2), "one-step", "rests on 12 samples.* 300"),
    "a Hessian of too few for its start": (
        gr.ExactDiffusion(gr.DecreasingStep(D=0.02, gamma=5.0), batch=1, hessian_samples=50),
        "one-step",
        "300 samples behind the Hessian may leave",
    ),
}


@pytest.mark.parametrize("case", WARNED)
def test_what_theory_does_not_cover_warns(case):
    method, estimator, said = WARNED[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        run = problem(m=60).solve(method, gap=0, rounds=60, seed=0)
    with pytest.warns(MethodWarning) as caught:
        confidence_region(run, estimator)
    assert any(re.search(said, str(each.message)) for each in caught)


def test_an_interrupted_run_has_the_region_of_its_rounds(quiet):
    def press(record):
        if record.round >= 30:
            raise KeyboardInterrupt

    run = problem().solve(gr.ExactDiffusion(STEP, batch=1), gap=0, rounds=4000, seed=0, callback=press)
    text = " ".join(str(confidence_region(run)).split())
    assert f"T = {run.rounds} steps" in text
    assert "(interrupted)" in text
    assert "drawn with replacement" in text


def test_losses_whose_curvature_has_no_bound_take_steps_that_are_given(quiet):
    X, y = drawn()
    data = gr.NodeData.from_arrays(X.reshape(-1, D), (y > 1).ravel().astype(int), np.repeat(range(K), M))
    counts = gr.Problem(gr.PoissonLoss(data) + gr.Consensus(nx.cycle_graph(K)))
    with pytest.raises(MethodError, match=r"PoissonLoss has no bound of its curvature.*step_size"):
        gr.inference.estimate(counts)
    method = gr.ExactDiffusion(STEP, batch=1, replacement=False, hessian_samples=M)
    assert gr.inference.estimate(counts, method=method, seed=0).names == ["x0", "x1", "x2"]


def test_regions_of_many_nodes_print_as_a_line_and_suggest_a_label():
    samples = {f"site {k}": (np.eye(2).repeat(5, axis=0), np.arange(10.0)) for k in range(3)}
    regions = local_regions(gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples))))
    assert str(regions) == "<regions of 3 nodes: print(regions['site 0']), ...>"
    with pytest.raises(KeyError, match=r"no region at 'sit 0'.*did you mean 'site 0'"):
        regions["sit 0"]
