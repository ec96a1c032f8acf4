"""Losses called on rows, and several losses at a node, against hand-written CVXPY; laws, wild data, refusals."""

from __future__ import annotations

import pickle
import re
import warnings

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from factories import thinned

import graphreg as gr
from graphreg.errors import DataError, GraphregError, MethodError, ModelError, TermError

w, T = gr.w, 24
RNG = np.random.default_rng(0)
DAYS = list(range(T))
Y = np.abs(np.arange(T) - 9.0) / 4 + 0.2 * RNG.standard_normal(T)
BLUR = sp.csr_array(sum(np.eye(T, k=k) for k in range(-2, 3)) / 5)
SEEN, COUNTS = BLUR @ Y, RNG.poisson(3.0, T)
WEEKS = sp.csr_array(np.kron(np.eye(T // 4), np.ones((1, 4))))
I, J = RNG.integers(0, 8, 60), RNG.integers(0, 6, 60)
STUDENTS, TEACHERS = [f"s{i}" for i in range(8)], [f"t{j}" for j in range(6)]
BOTH = w.at([f"s{i}" for i in I]) + w.at([f"t{j}" for j in J])
MARKS = RNG.standard_normal(8)[I] + RNG.standard_normal(6)[J] + 0.1 * RNG.standard_normal(60)
CLASSES, K, L = RNG.integers(0, 3, 40), RNG.integers(0, 8, 40), RNG.integers(0, 8, 40)
POINTS = RNG.standard_normal((40, 3))
X, NODE = RNG.standard_normal((60, 2)), np.repeat(["a", "b", "c"], 20)
TARGETS = X @ [1.0, -1.0] + 0.1 * RNG.standard_normal(60)
EXACT = {"solver": "CLARABEL", "tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
smooth, rough = 0.2 * gr.SquaredL2()(w.along(DAYS)), 0.2 * gr.L1()(w.along(DAYS))


def bends(x):
    return 0.1 * cp.sum_squares(cp.diff(x))


def jumps(x):
    return 0.2 * cp.norm1(cp.diff(x))


def pinball(r, tau):
    return cp.sum(cp.maximum(tau * r, (tau - 1.0) * r))


def crossed(loss, value):
    a, b = cp.Variable(8), cp.Variable(6)
    ridge = 0.5 * gr.SquaredL2()(w.at(STUDENTS)) + gr.SquaredL2()(w.at(TEACHERS))
    return loss + ridge, value(a[I] + b[J]) + cp.sum_squares(a) / 4 + cp.sum_squares(b) / 2


def blurred(loss, value, penalty=rough, twin=jumps):
    x = cp.Variable(T)
    return loss + penalty, value(BLUR @ x) + twin(x)


def of_classes():
    Z = cp.Variable((8, 3))
    x = Z[K] + Z[L]
    loss = cp.sum(cp.log_sum_exp(x, axis=1)) - cp.sum(cp.multiply(np.eye(3)[CLASSES], x))
    ridge = 0.5 * gr.SquaredL2()(w.at(range(8)))
    return gr.MultinomialLoss(w.at(K.tolist()) + w.at(L.tolist()), CLASSES) + ridge, loss + cp.sum_squares(Z) / 4


def of_points():
    Z = cp.Variable((8, 3))
    value = cp.sum_squares(Z[K] + Z[L] - POINTS) / 2 + 0.5 * cp.sum(cp.abs(Z))
    return gr.MeanLoss(w.at(K.tolist()) + w.at(L.tolist()), POINTS) + 0.5 * gr.L1()(w.at(range(8))), value


def disaggregation():
    x, rate = cp.Variable(T), np.log(2.0)
    counts = COUNTS[: T // 4] + 1
    eta = WEEKS @ x / 4 + rate
    value = cp.sum(cp.exp(eta) - cp.multiply(counts, eta)) + bends(x)
    return gr.PoissonLoss(WEEKS @ w / 4 + rate, counts) + smooth, value


def two_losses(first=gr.SquaredLoss, second=gr.HuberLoss):
    V, at = cp.Variable((3, 2)), np.repeat([0, 1, 2], 20)
    day = gr.NodeData.from_arrays(X, TARGETS, NODE)
    night = gr.NodeData.from_arrays(X[:50], TARGETS[:50] + 1.0, NODE[:50])
    x = cp.sum(cp.multiply(X, V[at]), axis=1)
    model = first(day, scale="sum") + second(night, scale="sum")
    model += 0.5 * gr.TotalVariation(nx.path_graph(["a", "b", "c"]), gr.L2())
    value = cp.sum_squares(x - TARGETS) / 2 + cp.sum(cp.huber(x[:50] - TARGETS[:50] - 1.0)) / 2
    return model, value + 0.5 * (cp.norm(V[0] - V[1]) + cp.norm(V[1] - V[2]))


def three_losses():
    model, value = two_losses()
    V = value.variables()[0]
    more = gr.QuantileLoss(gr.NodeData.from_arrays(X[::3], TARGETS[::3], NODE[::3]), tau=0.3, scale="sum")
    x = cp.sum(cp.multiply(X, V[np.repeat([0, 1, 2], 20)]), axis=1)
    return model + more, value + pinball(TARGETS[::3] - x[::3], 0.3)


MODELS = {
    "deblurring": lambda: blurred(gr.SquaredLoss(BLUR @ w, SEEN), lambda x: cp.sum_squares(x - SEEN) / 2),
    "Huber": lambda: blurred(gr.HuberLoss(BLUR @ w, SEEN, 0.1), lambda x: cp.sum(cp.huber(x - SEEN, 0.1)) / 2),
    "quantile": lambda: blurred(gr.QuantileLoss(BLUR @ w, SEEN, tau=0.7), lambda x: pinball(SEEN - x, 0.7)),
    "Poisson": lambda: blurred(
        gr.PoissonLoss(BLUR @ w, COUNTS), lambda x: cp.sum(cp.exp(x) - cp.multiply(COUNTS, x)), smooth, bends
    ),
    "logistic": lambda: crossed(
        gr.LogisticLoss(BOTH, MARKS > 0), lambda x: cp.sum(cp.logistic(cp.multiply(1 - 2.0 * (MARKS > 0), x)))
    ),
    "hinge": lambda: crossed(
        gr.HingeLoss(BOTH, MARKS > 0), lambda x: cp.sum(cp.pos(1 - cp.multiply(2.0 * (MARKS > 0) - 1, x)))
    ),
    "squared hinge": lambda: crossed(
        gr.SquaredHingeLoss(BOTH, MARKS > 0),
        lambda x: cp.sum_squares(cp.pos(1 - cp.multiply(2.0 * (MARKS > 0) - 1, x))) / 2,
    ),
    "crossed effects": lambda: crossed(gr.SquaredLoss(BOTH, MARKS), lambda x: cp.sum_squares(x - MARKS) / 2),
    "classes": of_classes,
    "points": of_points,
    "disaggregation": disaggregation,
    "two losses": two_losses,
    "three losses": three_losses,
}
METHODS = (gr.Exact(), gr.Exact(form="dual"), gr.PrimalDual(), gr.ADMM(), None)


@pytest.mark.parametrize(("name", "method"), thinned(MODELS, METHODS, every=3), ids=str)
def test_they_are_what_hand_written_cvxpy_says(name, method):
    model, objective = MODELS[name]()
    with warnings.catch_warnings(action="ignore"):
        best = cp.Problem(cp.Minimize(objective)).solve(**EXACT)
    solution = gr.Problem(model).solve(method, gap=1e-7, progress=False, seconds=60)
    assert solution.status == "certified"
    assert solution.objective == pytest.approx(best, rel=2e-7, abs=1e-8)
    assert solution.certificate.dual <= best + 1e-8 * max(1.0, abs(best))


# ---- laws ------------------------------------------------------------------------------------------------------------
def both(one, other, gap=1e-9):
    found = [gr.Problem(model).solve(gr.Exact(), gap=gap, progress=False) for model in (one, other)]
    assert [solution.status for solution in found] == ["certified", "certified"]
    return found


def test_rows_at_nodes_are_data_with_the_scale_sum():
    data = gr.NodeData.from_arrays(np.ones((T, 1)), Y, DAYS)
    for kind in (gr.SquaredLoss, gr.HuberLoss, gr.QuantileLoss):
        one, other = both(kind(w.at(DAYS), Y) + rough, kind(data, scale="sum") + rough, 1e-7)
        assert one.objective == pytest.approx(other.objective, rel=1e-6)
        v = RNG.standard_normal((T, 1))
        assert one.form.primal(v) == pytest.approx(other.form.primal(v), rel=1e-14)


def test_offsets_weights_and_scales_are_those_of_the_predictors():
    c, b = RNG.uniform(0.5, 2.0, T), RNG.standard_normal(T)
    v = RNG.standard_normal((T, 1))
    rows = BLUR @ w.at(DAYS) - b
    by_hand = float(c @ (BLUR @ v[:, 0] - b - SEEN) ** 2) / 2
    for loss in (
        gr.SquaredLoss(rows.weighted(c), SEEN),
        gr.SquaredLoss(rows, SEEN, weights=c),
        gr.SquaredLoss(BLUR @ w.at(DAYS), SEEN + b, weights=c),
        0.5 * gr.SquaredLoss(rows, SEEN, weights=2.0 * c),
        gr.SquaredLoss(rows, SEEN, weights=4.0 * c, scale=0.25),
    ):
        assert gr.Problem(loss).form.primal(v) == pytest.approx(by_hand, rel=1e-13)


def test_targets_by_key_and_rows_of_several_numbers():
    arrows = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c")])
    y = {("a", "b"): 1.0, ("b", "c"): 2.0, ("a", "c"): 4.0}
    solution = gr.Problem(gr.SquaredLoss(w.across(arrows), y) + gr.SquaredL2()(w.at("a"))).solve(progress=False)
    assert solution.objective == pytest.approx(1.0 / 6.0)
    Z = RNG.standard_normal((T, 2))
    many = gr.Problem(gr.SquaredLoss(BLUR @ w.at(DAYS), Z), features=["p", "q"]).form
    v = RNG.standard_normal((T, 2))
    assert many.primal(v) == pytest.approx(((BLUR @ v - Z) ** 2).sum() / 2, rel=1e-13)
    assert gr.Problem(gr.SquaredLoss(w.at("a") - w.at("b"), 0.5)).form.samples[0].y.tolist() == [0.5]


def test_weights_of_0_and_empty_rows_leave():
    keep = np.arange(T) % 2 == 0
    one, other = both(
        gr.SquaredLoss(BLUR @ w, SEEN, weights=keep.astype(float)) + rough,
        gr.SquaredLoss(BLUR[keep] @ w, SEEN[keep]) + rough,
    )
    assert one.form.samples[0].keys == tuple(np.flatnonzero(keep).tolist())
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    empty = sp.vstack([sp.csr_array((1, T)), BLUR])
    assert gr.Problem(gr.SquaredLoss(empty @ w, np.r_[0.0, SEEN]) + rough).form.samples[0].count == T
    with pytest.raises(
        TermError, match=re.escape("the row 0 of SquaredLoss((A w)_r) does not depend on w and is the c")
    ):
        gr.Problem(gr.SquaredLoss(empty @ w, np.r_[1.0, SEEN]) + rough)


@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.ADMM()], ids=["PrimalDual", "ADMM"])
def test_a_sample_without_features_of_a_second_loss(method):
    X, node = np.array([[1.0], [0.0], [2.0], [1.0]]), ["a", "a", "b", "b"]
    first = gr.SquaredLoss(gr.NodeData.from_arrays(X, [1.0, 2.0, 3.0, 4.0], node))
    second = gr.SquaredHingeLoss(gr.NodeData.from_arrays(X, [1, 0, 1, 0], node))
    problem = gr.Problem(first + second + 0.1 * gr.TotalVariation(nx.Graph([("a", "b")]), gr.SquaredL2()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert problem.solve(method).status == "certified"


def test_the_order_of_two_losses_does_not_matter():
    one, _ = two_losses()
    terms = one.terms
    other = gr.Problem(type(one)((terms[1], terms[0], *terms[2:]))).solve(gr.Exact(), gap=1e-9, progress=False)
    assert other.objective == pytest.approx(gr.Problem(one).solve(gr.Exact(), gap=1e-9).objective, rel=1e-8)
    first, second = other.form.samples
    assert (first.name, second.name) == ("HuberLoss", "SquaredLoss(x_r'w_i)")
    assert len(other.form.beside) == 1


def test_models_without_a_loss():
    path = nx.path_graph(5)
    ends = gr.Zero()(w.at([0, 4]) - np.array([0.0, 1.0]))
    solution = gr.Problem(gr.SquaredL2()(w.across(path)) + ends).solve(progress=False, gap=1e-9)
    np.testing.assert_allclose(solution.coef[:, 0], np.arange(5) / 4, atol=1e-4)
    assert gr.Problem(gr.L1()(w.across(path)), features=["p", "q"]).form.d == 2
    with pytest.raises(DataError, match="the model has no loss"):
        gr.Problem(gr.TotalVariation(path, gr.L1()))
    with pytest.raises(DataError, match=r"the data name the features, \['y'\]: leave features= out"):
        gr.Problem(gr.MeanLoss(gr.NodeData.from_arrays(None, Y, DAYS)), features=["y"])
    with pytest.raises(DataError, match="distinct names"):
        gr.Problem(gr.L1()(w.across(path)), features=["y", "y"])


# ---- wild data -------------------------------------------------------------------------------------------------------
WILD = {
    "targets + 1e6": lambda: gr.SquaredLoss(BOTH, MARKS + 1e6) + gr.SquaredL2()(w.at(STUDENTS + TEACHERS)),
    "targets * 1e-9": lambda: gr.SquaredLoss(BLUR @ w, 1e-9 * SEEN) + 1e-9 * rough,
    "12 decades": lambda: gr.SquaredLoss(BLUR @ w, SEEN, weights=10.0 ** np.linspace(-6, 6, T)) + rough,
    "twice": lambda: gr.HuberLoss(sp.vstack([BLUR, BLUR]) @ w, np.r_[SEEN, SEEN]) + rough,
    "a node twice": lambda: gr.SquaredLoss(w.at(["a", "a"]) + w.at(["a", "b"]), [1.0, 2.0]) + gr.L1()(w.at(["a", "b"])),
    "n = 1": lambda: gr.SquaredLoss(w.at("a"), 3.0) + gr.L1()(w.at("a")),
    "n = 2": lambda: gr.HuberLoss(w.at("a") - w.at("b"), 3.0) + gr.L1()(w.at("a")),
    "lone nodes": lambda: gr.SquaredLoss(w.at(DAYS), Y) + gr.L1()(w.across(nx.empty_graph(T + 2))),
    "no penalty": lambda: gr.SquaredLoss(BLUR @ w.at(DAYS), SEEN),
    "separable": lambda: gr.LogisticLoss(BLUR @ w, np.ones(T)) + rough,
}


@pytest.mark.parametrize("name", WILD)
def test_wild_data(name):
    lower, upper = -np.inf, np.inf
    for method in (gr.Exact(), gr.PrimalDual(), gr.ADMM()):
        solution = gr.Problem(WILD[name]()).solve(method, progress=False, on_failure="return", seconds=20)
        assert solution.certificate.valid
        assert solution.status == ("unattained" if name == "separable" else "certified")
        lower, upper = max(lower, solution.certificate.dual), min(upper, solution.certificate.primal)
    assert lower <= upper


def test_classes_that_see_the_same_numbers_have_no_certificate_and_say_so():
    model = gr.MultinomialLoss(w.at(K.tolist()) @ RNG.standard_normal((3, 3)), CLASSES)
    problem = gr.Problem(model + 0.5 * gr.SquaredL2()(w.at(range(8))), features=["p", "q", "r"])
    solution = problem.solve(gr.Exact(), progress=False, on_failure="return")
    assert solution.status == "no_certificate"
    assert "see the same numbers, whose differences would be rounded" in solution.message


# ---- what refuses ----------------------------------------------------------------------------------------------------
def arrows_needed():
    gr.Problem(gr.SquaredLoss(w.across(nx.path_graph(3)), [1.0, 2.0]))


REFUSED = {
    "no node whose samples a mean would be of": lambda: gr.SquaredLoss(BLUR @ w, SEEN, scale="mean"),
    "HuberLoss(rows, y, delta)": lambda: gr.HuberLoss(BLUR @ w, SEEN, 1.0, 2.0),
    "SquaredLoss(rows, y)": lambda: gr.SquaredLoss(BLUR @ w),
    "give a DiGraph": arrows_needed,
    f"has {T} rows of 1 number, and y is of 3 with 1": lambda: gr.Problem(gr.SquaredLoss(BLUR @ w, SEEN[:3]) + rough),
    "delta=...) must be a positive": lambda: gr.HuberLoss(BLUR @ w, SEEN, -1.0),
    "takes targets coded {0, 1}": lambda: gr.LogisticLoss(BLUR @ w, SEEN),
    "takes numeric targets, got 'x' in row 0": lambda: gr.SquaredLoss(BLUR @ w, ["x"] * T),
    "takes numeric targets, got '<0.1' in row 2": lambda: gr.SquaredLoss(
        BLUR @ w, ["1", "2.5", "<0.1"] + ["3"] * (T - 3)
    ),
    "the target 'y' is 1.78e+200 in the row 0: its square overflows": lambda: gr.Problem(
        gr.SquaredLoss(BLUR @ w, np.r_[1.78e200, SEEN[1:]]) + rough
    ),
    "the largest coefficient is 4e+199 in the row 0": lambda: gr.Problem(
        gr.SquaredLoss(2e200 * (BLUR @ w), SEEN) + rough
    ),
    "must be finite and not negative, got -1 at 0": lambda: gr.Problem(
        gr.SquaredLoss(BLUR @ w, SEEN, weights=np.r_[-1.0, np.ones(T - 1)]) + rough
    ),
    "y of SquaredLoss(w_j - w_i)": lambda: gr.Problem(gr.SquaredLoss(w.across(nx.DiGraph([(0, 1)])), {(0, 2): 1.0})),
    "rows of one length": lambda: gr.Problem(gr.SquaredLoss(w.at(DAYS).grouped([0, *[1] * (T - 1)]), [1.0, 2.0])),
    "no term of the model names its nodes": lambda: gr.Problem(gr.SquaredLoss(BLUR @ w, SEEN)),
}


@pytest.mark.parametrize("said", REFUSED)
def test_refusals(said):
    with pytest.raises(GraphregError, match=re.escape(said)):
        REFUSED[said]()


VERBS = {
    "{}, and the method takes one loss at each node and no others": (
        MethodError,
        lambda p, s, f: p.solve(gr.FedADMM(), progress=False),
    ),
    "{}, and cross-validation holds out samples of one loss at each node. Without it: for each fold solve the model": (
        ModelError,
        lambda p, s, f: gr.cross_validate(p, [0.1, 0.2], folds=3, progress=False),
    ),
}
KINDS = {
    "SquaredLoss((A w)_r)": (
        "SquaredLoss((A w)_r) is a loss of rows, and not of the samples of nodes",
        lambda: (
            gr.SquaredLoss(BLUR @ w, SEEN) + gr.Parameter(0.2, "lam") * gr.TotalVariation(nx.path_graph(T), gr.L1())
        ),
    ),
    "HuberLoss(x_r'w_i)": (
        "HuberLoss is a second loss at 'a', 'b', 'c'",
        lambda: two_losses()[0] + gr.Parameter(0.2, "lam") * gr.NodePenalty(gr.SquaredL2()),
    ),
}


def test_nodes_with_two_losses_are_named_and_not_those_with_one():
    day = gr.NodeData.from_arrays(np.ones((6, 1)), np.arange(6.0), list("abcdef"))
    night = gr.NodeData.from_arrays(np.ones((6, 1)), np.arange(6.0), list("bcdefg"))
    model = gr.SquaredLoss(day) + gr.HuberLoss(night) + gr.Parameter(0.2, "lam") * gr.NodePenalty(gr.SquaredL2())
    with pytest.raises(ModelError, match="HuberLoss is a second loss at 'b', 'c', 'd' and 2 more, and"):
        gr.cross_validate(gr.Problem(model), [0.1, 0.2], folds=3, progress=False)


@pytest.mark.parametrize("name", KINDS)
def test_verbs_work_or_name_the_loss(name, tmp_path):
    begins, model = KINDS[name]
    problem = gr.Problem(model())
    solution = problem.solve(gr.Exact(), progress=False, gap=1e-8)
    for said, (error, verb) in VERBS.items():
        with pytest.raises(error, match=re.escape(said.format(begins))):
            verb(problem, solution, tmp_path / "proof.json")
    if problem.form.between:
        assert f"rows of {name} make none" in str(solution.clusters(prove=True))
    else:
        with pytest.raises(TermError, match=re.escape(f"rows of {name} make no clusters")):
            solution.clusters()
    solution.save(tmp_path / "answer.npz")
    assert gr.load(tmp_path / "answer.npz", problem).objective == solution.objective
    assert problem.solve(gr.PrimalDual(), start=solution, progress=False).status == "certified"
    assert problem.certify(solution).relative_gap <= 1e-7
    proof = solution.prove(tmp_path / "proof.json")
    assert solution.certificate.dual <= proof.upper <= solution.certificate.primal
    assert proof.lower <= proof.upper
    solution.report(tmp_path / "answer.html")
    table = gr.path(problem, [0.1, 0.5], progress=False).table()
    assert (table["status"] == "certified").all()
    steps = problem.solve(gr.PrimalDual(tau=0.01, sigma=0.01), rounds=5, progress=False, on_failure="return")
    assert "nothing guarantees" not in steps.message
    assert pickle.loads(pickle.dumps(problem)).form.d == problem.form.d
    run = {"gap": 0, "progress": False, "seed": 3, "rounds": 40}
    problem.solve(gr.ADMM(), checkpoint=tmp_path / "run.npz", **{**run, "rounds": 20})
    resumed = problem.solve(gr.ADMM(), checkpoint=tmp_path / "run.npz", **run)
    np.testing.assert_array_equal(resumed.coef, problem.solve(gr.ADMM(), **run).coef)


def test_given_steps_are_proven_by_the_matrix_of_all_rows():
    problem = gr.Problem(gr.SquaredLoss(BLUR @ w, SEEN) + gr.L1()(w.along(DAYS, 2)))
    A = np.vstack([BLUR.toarray(), np.diff(np.eye(T), 2, axis=0)])
    for sigma in (0.05, 0.5):
        product = 0.1 * sigma * np.linalg.norm(A, 2) ** 2
        assert gr.PrimalDual(tau=0.1, sigma=sigma).step_sizes.product(problem.form, 1.0) == pytest.approx(product)


# ---- how they are written --------------------------------------------------------------------------------------------
def test_they_are_written_with_their_rows():
    problem = gr.Problem(gr.SquaredLoss(BOTH - 0.5, MARKS) + gr.L1()(w.at(STUDENTS)))
    assert "sum_r ((K w)_r + o_r - y_r)^2 / 2" in str(problem)
    assert "60 samples of 1 number" in str(problem)
    assert "(K'a)_i + u_i = 0" in str(problem.dual())
    problem = gr.Problem(gr.SquaredLoss(BOTH, MARKS, weights=1.0 + I) + gr.L1()(w.at(STUDENTS)))
    assert "(K w)_r = w_i + w_j" in str(problem.dual())
    assert "sum_r v_r ((K w)_r - y_r)^2 / 2" in str(problem)
    assert r"(K^\top a)_i" in problem.dual().latex()
    text = " ".join(str(gr.Problem(two_losses()[0]).dual()).split())
    assert "sum_(r in R1 at i) a1_r x_r + sum_(r in R2 at i) a2_r x_r + out_i(u) - in_i(u) = 0" in text
    assert "at every sample r (SquaredLoss(w_i + w_j))" in str(problem.kkt())
