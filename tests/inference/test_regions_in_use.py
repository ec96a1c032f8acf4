"""Confidence regions: what they cover, of any covariance, and what they refuse."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from factories import thinned
from region_cases import STEP, D, K, M, drawn, problem, region
from scipy.stats import chi2, norm

import graphreg as gr
from benchmarks.statistics.coverage import Network, runs
from graphreg.errors import DataError, MethodError, MethodWarning, ModelError, TermError
from graphreg.inference import confidence_region, local_regions
from graphreg.inference.decentralised import region_of


# ---- coverage --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("replacement", thinned([True, False], every=2))
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
    "an equation": (lambda one: one.test("x0 - x1 = -1.5"), r"write \{'x0 - x1': -1.5\}"),
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
        (gr.Exact(), "Exact.* has no moments.*estimate"),
    ):
        run = case.solve(method) if isinstance(method, gr.Exact) else case.solve(method, gap=0, rounds=20)
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
    with pytest.raises(TermError, match=r"a model is a sum of terms .*, got model"):
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
    with pytest.raises(MethodError, match=r"PoissonLoss has no bound.*step_size=.*method=.*of counts"):
        gr.inference.estimate(counts)
    method = gr.ExactDiffusion(STEP, batch=1, replacement=False, hessian_samples=M)
    assert gr.inference.estimate(counts, method=method, seed=0).names == ["x0", "x1", "x2"]


def test_regions_of_many_nodes_print_as_a_line_and_suggest_a_label():
    samples = {f"site {k}": (np.eye(2).repeat(5, axis=0), np.arange(10.0)) for k in range(3)}
    regions = local_regions(gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples))))
    assert str(regions) == "<regions of 3 nodes: print(regions['site 0']), ...>"
    with pytest.raises(gr.errors.MissingError, match=r"^no region at 'sit 0'.*did you mean 'site 0'") as error:
        regions["sit 0"]
    assert isinstance(error.value, KeyError)


def test_nodes_whose_data_give_no_region_leave_those_of_the_others_alone():
    rng = np.random.default_rng(0)
    sizes = {"a": 6, "few": 2, "b": 7, "one": 1}
    samples = {label: (rng.normal(size=(m, 2)), rng.normal(size=m)) for label, m in sizes.items()}
    both = gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict({k: samples[k] for k in ("a", "b")})))
    problem = gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(samples)))
    for covariance, why in (("HC3", "leverage is 1"), ("HC0", "no residual degrees"), ("HC1", "no residual degrees")):
        regions = local_regions(problem, covariance)
        pd.testing.assert_frame_equal(
            pd.DataFrame(regions.table()), pd.DataFrame(local_regions(both, covariance).table())
        )
        assert list(regions.left_out) == ["few", "one"]
        assert "no intervals of 'few', 'one': " in str(regions)
        assert why in regions.table().verdict
        with pytest.raises(DataError, match=f"'few'.*{why}"):
            regions["few"]
        with pytest.raises(DataError, match="1 samples for 2"):
            regions["one"]
    assert list(local_regions(problem, "model").left_out) == ["one"]
    alone = gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict({k: samples[k] for k in ("few", "one")})))
    with pytest.raises(DataError, match=r"'one' leave x0, x1 open"):
        local_regions(alone)
