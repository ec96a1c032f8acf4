"""Fed-ADMM: the printed algorithms with all their copies, optima, rates, nodes that are away, messages, refusals."""

from __future__ import annotations

import threading
import warnings
from dataclasses import fields, is_dataclass, replace

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from core_cases import iterate, site_of

import graphreg as gr
from graphreg.certificate import common
from graphreg.datasets import random_problem
from graphreg.engines import InProcess
from graphreg.errors import MethodError, MethodWarning
from graphreg.lowering.arcs import arcs_of
from graphreg.lowering.site import Site, WholeGraph
from graphreg.lowering.streams import Streams
from graphreg.methods._averages import Mean, SuffixMean
from graphreg.methods.ledger import Ledger

N, M, D = 6, 8, 3
P = dict(zip(range(N), (0.3, 0.9, 0.5, 1.0, 0.7, 0.4), strict=True))
SEED = 3


def graph_of(n=N):
    graph = nx.cycle_graph(n)
    graph.add_edge(0, n // 2, weight=2.5)
    return graph


def data_of(n=N, m=M, d=D, seed=0, kind="number"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m * n, d))
    theta = np.repeat(rng.standard_normal((2, d)), -(-n // 2), axis=0)[:n]
    x = (X * np.repeat(theta, m, axis=0)).sum(axis=1)
    y = {
        "number": x + rng.standard_normal(m * n),
        "class": (x + rng.logistic(size=m * n) > 0).astype(int),
        "count": rng.poisson(np.exp(np.minimum(0.5 * x, 3.0))),
        "three": rng.integers(0, 3, m * n),
    }[kind]
    return gr.NodeData.from_arrays(X, y, np.repeat(range(n), m))


def squared(strength=0.2, penalty=None, **more):
    return gr.Problem(gr.SquaredLoss(data_of(**more)) + strength * gr.TotalVariation(graph_of(), penalty or gr.L2()))


def run_of(method, form, marks, seed=SEED):
    """The points of a method after the given rounds."""
    site = Site(form, InProcess(Ledger(arcs_of(form), form.labels)), seed)
    state, out = method.init(site, None), []
    for k in range(1, max(marks) + 1):
        state = method.step(state)
        if k in marks:
            out.append(method.point(state)[0])
    return out


# ---- the printed algorithms, with two copies and two multipliers per edge --------------------------------------------
PROX = {  # of c phi, one row
    "L1": lambda x, c: np.sign(x) * np.maximum(np.abs(x) - c, 0.0),
    "L2": lambda x, c: max(0.0, 1.0 - c / max(np.linalg.norm(x), 1e-300)) * x,
    "SquaredL2": lambda x, c: x / (1.0 + c),
    "Zero": lambda x, c: 0.0 * x,
}


class ByHand:
    """(17) to (19) and (21) for 1/m sum 1/2 (x'theta - y)^2 at every node: loops, theta, beta and alpha.

    An edge is (tail, head or None, kind, c, columns). ``steps(i, t)`` is the step; ``mode`` says what happens to nodes
    that are away: "freeze", "ipw" (as printed, on a server), "waiting" (as printed, and edges wait for both their
    ends), or one of the wrong variants "unweighted" and "frozen but weighted".
    """

    def __init__(self, data, edges, rho, steps, batch=None, p=None, mode="freeze", seed=SEED):
        self.edges, self.rho, self.steps, self.batch, self.p, self.mode = edges, rho, steps, batch, p, mode
        X, y = data.X, np.asarray(data.y)
        self.parts = [(X[data.node == i], y[data.node == i]) for i in range(N)]
        self.theta = np.zeros((N, X.shape[1]))
        self.beta = {(e, i): np.zeros(len(edge[4])) for e, edge in enumerate(edges) for i in edge[:2] if i is not None}
        self.alpha = {key: np.zeros_like(value) for key, value in self.beta.items()}
        self.samples, self.coins = (Streams(seed, kind, range(N)) for kind in ("samples", "availability"))
        self.t, self.visited = 0, []

    def there(self):
        return np.full(N, True) if self.p is None else self.coins.uniform(self.t, 1)[:, 0] < self.p

    def gradient(self, i):
        X, y = self.parts[i]
        if self.batch is not None:
            k = (self.samples.uniform(self.t, self.batch)[i] * len(y)).astype(int)
            X, y = X[k], y[k]
        return X.T @ (X @ self.theta[i] - y) / len(y)

    def node(self, i, there):
        factor = 1.0 / self.p[i] if self.mode in ("ipw", "waiting", "frozen but weighted") else 1.0
        move = factor * self.gradient(i) if there else np.zeros_like(self.theta[i])
        for (e, j), beta in self.beta.items():
            if j == i:
                c = self.edges[e][4]
                move[c] += self.rho * (self.theta[i, c] - beta - self.alpha[e, i] / self.rho)
        still = not there and self.mode in ("freeze", "frozen but weighted")
        return self.theta[i] if still else self.theta[i] - self.steps(i, self.t) * move

    def round(self):
        self.t += 1
        self.visited.append(self.theta)
        there = self.there()
        self.theta = np.array([self.node(i, there[i]) for i in range(N)])
        for e, (i, j, kind, c, columns) in enumerate(self.edges):
            ends = [k for k in (i, j) if k is not None]
            if self.mode != "ipw" and not there[ends].all():
                continue
            at = {k: self.theta[k, columns] - self.alpha[e, k] / self.rho for k in ends}
            if j is None:
                new = {i: PROX[kind](at[i], c / self.rho)}
            else:
                d = PROX[kind](at[i] - at[j], 2.0 * c / self.rho)
                new = {i: (at[i] + at[j] + d) / 2, j: (at[i] + at[j] - d) / 2}
            for k in ends:
                self.alpha[e, k] = self.alpha[e, k] - self.rho * (self.theta[k, columns] - new[k])
                self.beta[e, k] = new[k]


def edges_of(form):
    """The edges of a form that have copies, row by row."""
    out = []
    for block in form.edges:
        columns = np.arange(form.d) if block.features is None else block.features
        for i, j, c in zip(block.tail, block.head, block.weight, strict=True):
            out.append((int(i), None if j < 0 else int(j), type(block.penalty).__name__, c, columns))
    return out


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("kind", ["L1", "L2", "SquaredL2", "Zero"])
def test_the_printed_algorithm(kind, batch):
    """Algorithm 1 with eta = kappa/t and the mean of theta(0), ..., theta(T - 1)."""
    kappa, rho, T = 0.15, 0.8, 40
    graph = nx.cycle_graph(N)
    term = gr.Consensus(graph) if kind == "Zero" else 0.3 * gr.TotalVariation(graph_of(), getattr(gr, kind)())
    problem = gr.Problem(gr.SquaredLoss(data_of()) + term)
    hand = ByHand(data_of(), edges_of(problem.form), rho, lambda i, t: kappa / t, batch)
    for _ in range(T):
        hand.round()
    method = gr.FedADMM(rho=rho, step_size=lambda t: kappa / t, batch=batch, average="printed")
    run = problem.solve(method, gap=0, rounds=T, seed=SEED)
    if kind != "Zero":  # a certificate's point satisfies the constraints
        np.testing.assert_allclose(run.coef, np.mean(hand.visited, axis=0), atol=1e-10)
    state = iterate_seeded(method, problem.form, T)
    np.testing.assert_allclose(method.point(state)[0], np.mean(hand.visited, axis=0), atol=1e-10)
    np.testing.assert_allclose(state.w, hand.theta, atol=1e-10)
    for e, (i, j, *_) in enumerate(hand.edges):
        np.testing.assert_allclose(state.copies.u[0][e], -hand.alpha[e, i], atol=1e-10)
        np.testing.assert_allclose(state.copies.u[0][e], hand.alpha[e, j], atol=1e-10)
        np.testing.assert_allclose(state.copies.beta[0][e], hand.beta[e, i], atol=1e-10)
        np.testing.assert_allclose(state.copies.beta[0][e + len(hand.edges)], hand.beta[e, j], atol=1e-10)


def iterate_seeded(method, form, rounds, seed=SEED):
    site = Site(form, InProcess(Ledger(arcs_of(form), form.labels)), seed)
    state = method.init(site, None)
    for _ in range(rounds):
        state = method.step(state)
    return state


def L_of(data, batch=None):
    parts = [data.X[data.node == i] for i in range(N)]
    full = np.array([np.linalg.eigvalsh(X.T @ X / len(X))[-1] for X in parts])
    if batch is None:
        return full
    return (1 - 1 / batch) * full + np.array([(X**2).sum(axis=1).max() for X in parts]) / batch


@pytest.mark.parametrize("batch", [None, 2])
def test_nodes_that_are_away_and_the_default_steps(batch):
    """Also with edges to the ground, two graphs, and coordinates that no edge couples."""
    data, rho, kappa = data_of(d=4), 0.7, 1.5
    model = gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(graph_of(), gr.L2(), features=["x0", "x2"])
    model = model + 0.1 * gr.NodePenalty(gr.L1(), features=["x1", "x2"])
    model = model + 0.2 * gr.TotalVariation(nx.path_graph(4), gr.L1(), features=["x2"])
    form = gr.Problem(model).form
    edges, p = edges_of(form), np.array(list(P.values()))
    degree = np.array([sum(i in edge[:2] for edge in edges) for i in range(N)])
    bound = L_of(data, batch) + rho * degree
    decreasing = batch is not None
    steps = (lambda i, t: kappa / (t + kappa * bound[i])) if decreasing else (lambda i, t: 1.0 / bound[i])
    hand = ByHand(data, edges, rho, steps, batch, p, "freeze")
    method = gr.FedADMM(rho=rho, kappa=kappa if decreasing else None, batch=batch, availability=P)
    for k in (1, 2, 17, 18, 19, 60):
        while hand.t < k:
            hand.round()
        state = iterate_seeded(method, form, k)
        np.testing.assert_allclose(state.w, hand.theta, atol=1e-10)
        flows = np.concatenate([u.ravel() for u in state.copies.u])
        np.testing.assert_allclose(flows, np.concatenate([-hand.alpha[e, edge[0]] for e, edge in enumerate(edges)]))


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.LInf(), gr.HuberNorm(0.2), gr.SquaredL2(), gr.Ball(0.1)])
def test_the_copies_minimise_18(penalty):
    """Against CVXPY, without the closed form."""
    rho, c = 0.6, 1.0 if isinstance(penalty, gr.AbstractConstraint) else 0.3
    term = gr.TotalVariation(nx.path_graph(2), penalty)
    form = gr.Problem(gr.SquaredLoss(data_of(2)) + (term if isinstance(penalty, gr.Ball) else c * term)).form
    method = gr.FedADMM(rho=rho)
    before, after = iterate(method, form, [4, 5])
    ends = [after.w[0] + before.copies.u[0][0] / rho, after.w[1] - before.copies.u[0][0] / rho]
    beta = cp.Variable((2, D))
    value = penalty.cvxpy(cp.reshape(beta[0] - beta[1], (1, D), order="C"))
    edge, constraints = (0.0, value) if isinstance(value, list) else (c * cp.sum(value), [])
    proximal = sum(cp.sum_squares(beta[k] - end) for k, end in enumerate(ends))
    options = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    cp.Problem(cp.Minimize(edge + rho / 2 * proximal), constraints).solve(solver=cp.CLARABEL, **options)
    np.testing.assert_allclose(after.copies.beta[0], beta.value, atol=1e-5)


def test_smooth_edges_to_the_ground_are_part_of_the_gradients():
    """As though each ridge were samples of its own; the flow of such an edge is its gradient."""
    data, r = data_of(), 0.7
    ridge = gr.Problem(
        gr.SquaredLoss(data, scale="sum")
        + 0.2 * gr.TotalVariation(graph_of(), gr.L2())
        + r * gr.NodePenalty(gr.SquaredL2())
    )
    X = np.concatenate([data.X, np.tile(np.sqrt(r) * np.eye(D), (N, 1))])
    y, node = np.concatenate([data.y, np.zeros(N * D)]), np.concatenate([data.node, np.repeat(range(N), D)])
    more = gr.NodeData.from_arrays(X, y, node)
    written = gr.Problem(gr.SquaredLoss(more, scale="sum") + 0.2 * gr.TotalVariation(graph_of(), gr.L2()))
    method = gr.FedADMM(rho=0.5)
    one, two = (iterate(method, problem.form, [30])[0] for problem in (ridge, written))
    np.testing.assert_allclose(one.w, two.w, atol=1e-10)
    w, flows, _ = method.point(one)
    assert len(one.copies.u) == 1
    np.testing.assert_allclose(flows[1], r * w)


# ---- the optimum -----------------------------------------------------------------------------------------------------
CLASSES = {
    "squared, L2": squared,
    "logistic, L1, sparse": lambda: gr.Problem(
        gr.LogisticLoss(data_of(kind="class"))
        + 0.05 * gr.TotalVariation(graph_of(), gr.L1())
        + 0.02 * gr.NodePenalty(gr.L1())
        + 0.02 * gr.NodePenalty(gr.SquaredL2())
    ),
    "Huber, clusters": lambda: gr.Problem(
        gr.HuberLoss(data_of(), delta=0.8)
        + gr.Hierarchy({"a": [0, 1, 2], "b": [3, 4, 5]}, weights=(0.5, 0.2))
        + 0.05 * gr.NodePenalty(gr.SquaredL2())
    ),
    "Poisson, L2, non-negative": lambda: gr.Problem(
        gr.PoissonLoss(data_of(kind="count"))
        + 0.1 * gr.TotalVariation(graph_of(), gr.L2())
        + gr.NodePenalty(gr.NonNegative(), features=["x0"])
    ),
    "multinomial, HuberNorm": lambda: gr.Problem(
        gr.MultinomialLoss(data_of(kind="three"))
        + 0.2 * gr.TotalVariation(graph_of(), gr.HuberNorm(0.5))
        + 0.05 * gr.NodePenalty(gr.SquaredL2())
    ),
}
AWAY = {
    "all there": None,
    "known": P,
    "one number": 0.6,
    "to be estimated": gr.Availability(P, known=False),
    "correlated": lambda t, labels, uniform, common: (common.random() < 0.5) | (uniform < 0.4),
}


@pytest.mark.parametrize("away", AWAY)
@pytest.mark.parametrize("case", CLASSES)
def test_the_optimum_is_certified(case, away):
    problem = CLASSES[case]()
    run = problem.solve(gr.FedADMM(availability=AWAY[away]), gap=1e-8, seed=1, rounds=20_000)
    assert run.status == "certified"
    exact = problem.solve(gap=1e-9)
    yardstick = max(abs(exact.objective), common(problem.form).floor)
    assert abs(run.objective - exact.objective) <= 2e-8 * yardstick
    assert run.ledger.messages["certificate"] > 0


def test_random_problems_are_certified():
    solved = 0
    for seed in (162, 214, 383, 408, 431, 504, 540):
        problem = random_problem(seed).problem
        run = problem.solve(gr.FedADMM(), gap=1e-5, rounds=3000)
        assert run.status == "certified", seed
        exact = problem.solve(gap=1e-8, on_failure="return")
        yardstick = max(abs(exact.objective), common(problem.form).floor)
        assert abs(run.objective - exact.objective) <= 2e-5 * yardstick
        solved += 1
    assert solved == 7


@pytest.mark.parametrize("options", [{}, {"batch": 2}, {"availability": P}, {"availability": P, "dropout": "ipw"}])
@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.HuberNorm(0.3), gr.SquaredL2()])
def test_flows_lie_in_their_domains_in_every_round(penalty, options):
    form, method = squared(penalty=penalty).form, gr.FedADMM(**options)
    moved = 0.0
    for state in iterate(method, form, range(1, 60)):
        flows = method.point(state)[1]
        inside = form.edges[0].conjugates((1.0 - 1e-12) * flows[0])
        assert np.isfinite(inside).all()
        moved = max(moved, float(np.abs(flows[0]).max()))
    assert moved > 0.05


def test_a_loss_without_a_bound_on_its_curvature():
    """Poisson: from a point far off, the steps shrink until the loss is below its bounds, and still get there."""
    problem = CLASSES["Poisson, L2, non-negative"]()
    method = gr.FedADMM()
    start = np.full((N, D), 1.5), None
    states = iterate(method, problem.form, range(40), start)
    objective = [problem.form.edges[0].values(s.w).sum() + s.site.gradients.value(s.w).sum() for s in states]
    assert np.isfinite(objective).all()
    assert states[-1].smoothness.max() > states[0].smoothness.max()
    assert objective[-1] < objective[0]
    assert problem.solve(method, gap=1e-7, start=start[0], rounds=20_000).status == "certified"
    with pytest.raises(MethodError, match="PoissonLoss has no bound"):
        problem.solve(gr.FedADMM(batch=3))
    assert not gr.FedADMM(batch=3, step_size=0.01).missing(problem.form)


# ---- rates -----------------------------------------------------------------------------------------------------------
MARKS = (100, 178, 316, 562, 1000, 1778, 3162)  # 1.5 decades


def mean_errors(problem, method, marks=MARKS, seeds=range(6)):
    """Mean squared distances to the optimum after the given rounds."""
    exact = problem.solve(gap=1e-12).coef
    each = [[((w - exact) ** 2).sum() / N for w in run_of(method, problem.form, marks, seed)] for seed in seeds]
    return np.mean(each, axis=0)


def slope(errors, marks=MARKS):
    return float(np.polyfit(np.log(marks), np.log(errors), 1)[0])


@pytest.mark.parametrize("average", ["last", "printed", "suffix"])
def test_batches_converge_like_one_over_the_rounds(average):
    errors = mean_errors(squared(m=20), gr.FedADMM(batch=5, average=average))
    assert slope(errors) < -0.75  # 1/T, or faster where the average still forgets its start
    assert errors[-1] < 2e-3


def test_full_gradients_converge_linearly():
    """The distance to the optimum falls by the same factor every so many rounds, with nodes away too."""
    problem = squared(m=20)
    for availability, marks in ((None, (40, 80, 120, 160)), (P, (200, 400, 600, 800))):
        errors = mean_errors(problem, gr.FedADMM(availability=availability), marks, range(3))
        falls = errors[1:] / errors[:-1]
        assert (falls[errors[1:] > 1e-18] < 0.1).all()
        assert errors[-1] < 1e-10


ESTIMATED = gr.Availability(P, known=False)


@pytest.mark.parametrize("availability", [P, ESTIMATED, AWAY["correlated"]], ids=["known", "estimated", "correlated"])
def test_inverse_probability_weights_reach_the_optimum(availability):
    method = gr.FedADMM(availability=availability, dropout="ipw", average="last")
    errors = mean_errors(squared(m=20), method)
    assert slope(errors) < -0.75
    assert errors[-1] < 2e-3


@pytest.mark.parametrize("mode", ["unweighted", "frozen but weighted"])
def test_weights_that_look_right_lead_elsewhere(mode):
    """The two wrong variants of (21) stop at a distance; the right ones pass it."""
    problem = squared(m=20)
    exact, edges = problem.solve(gap=1e-12).coef, edges_of(problem.form)
    bound = L_of(data_of(m=20)) / 0.3 + 0.5 * 4
    hand = ByHand(
        data_of(m=20), edges, 0.5, lambda i, t: 3 / (t + 3 * bound[i]), None, np.array(list(P.values())), mode
    )
    for _ in range(3000):
        hand.round()
    wrong = ((hand.theta - exact) ** 2).sum() / N
    right = mean_errors(problem, gr.FedADMM(availability=P, dropout="ipw", average="last"), (3000,), range(2))[0]
    assert wrong > 1e-2 > 10 * right


def test_weights_count_what_was_seen_where_they_are_to_be_estimated():
    method = gr.FedADMM(availability=ESTIMATED, dropout="ipw")
    known = gr.FedADMM(availability=P, dropout="ipw")
    form = squared().form
    T = 4000
    state = iterate(method, form, [T])[0]
    p = np.array(list(P.values()))
    assert (np.abs(state.online / T - p) <= 4 * np.sqrt(p * (1 - p) / T)).all()
    np.testing.assert_allclose(method._inverse(state, state.online, T), T / state.online)
    np.testing.assert_allclose(known._inverse(state, state.online, T), 1 / p)
    np.testing.assert_array_equal(method.gathered(state)["online"], state.online / T)
    assert not np.array_equal(iterate(known, form, [5])[0].w, iterate(method, form, [5])[0].w)
    freeze = [gr.FedADMM(availability=a) for a in (P, ESTIMATED)]
    one, two = (iterate(m, form, [50])[0].w for m in freeze)
    np.testing.assert_array_equal(one, two)  # nothing is weighted


# ---- averages --------------------------------------------------------------------------------------------------------
def test_averages_in_the_memory_of_two_iterates():
    points = np.random.default_rng(0).standard_normal((140, 2, 3))
    mean, suffix = Mean(points[0], 1), SuffixMean.of(points[0])
    for k in range(1, 141):
        if k > 1:
            mean, suffix = mean.step(points[k - 1]), suffix.step(points[k - 1])
        first = max(2 ** (k.bit_length() - 2), 1) if k > 1 else 1
        assert k - first + 1 >= k / 2
        assert k - first <= 0.75 * k
        np.testing.assert_allclose(mean.value(), points[:k].mean(axis=0), atol=1e-13)
        np.testing.assert_allclose(suffix.value(), points[first - 1 : k].mean(axis=0), atol=1e-13)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "last"),
        ({"availability": 0.5}, "last"),
        ({"batch": 2}, "suffix"),
        ({"availability": 0.5, "dropout": "ipw"}, "suffix"),
        ({"dropout": "ipw"}, "last"),
        ({"batch": 2, "average": "last"}, "last"),
        ({"average": "suffix"}, "suffix"),
    ],
)
def test_what_is_returned(options, kind):
    form, method = squared().form, gr.FedADMM(**options)
    states = iterate(method, form, range(1, 14))
    chosen = states[-1:] if kind == "last" else states[3:]  # rounds 4 to 13: since the last but one power of two
    np.testing.assert_allclose(method.point(states[-1])[0], np.mean([s.w for s in chosen], axis=0), atol=1e-13)
    last = states[-1].copies
    u = last.blocks[0].u[: len(form.edges[0].tail)] if method.weighted else last.u[0]
    np.testing.assert_array_equal(method.point(states[-1])[1][0], u)


# ---- messages --------------------------------------------------------------------------------------------------------
def test_only_nodes_that_are_there_send_and_receive():
    T, problem = 50, squared()
    run = problem.solve(gr.FedADMM(availability=P), gap=0, rounds=T, seed=SEED)
    coins = Streams(SEED, "availability", range(N))
    there = np.array([coins.uniform(t, 1)[:, 0] < np.array(list(P.values())) for t in range(1, T + 1)])
    table = run.ledger.by_edge()
    sent = table[table["purpose"] == "method"].set_index(["sender", "receiver"])
    for i, j in graph_of().edges:
        both = int((there[:, i] & there[:, j]).sum())
        assert sent.loc[(i, j), "messages"] == sent.loc[(j, i), "messages"] == both
        assert sent.loc[(i, j), "bytes"] == both * D * 8
    assert run.ledger.by_node()["away"].tolist() == (~there).sum(axis=0).tolist()
    np.testing.assert_allclose(run.gathered["online"], there.mean(axis=0))


def test_the_messages_of_all():
    T, problem = 20, squared()
    for options, adapted in (({"rho": 1.0}, 0), ({}, 1), ({"rho": 1.0, "batch": 3}, 1)):
        run = problem.solve(gr.FedADMM(**options), gap=0, rounds=T)
        assert run.ledger.messages["method"] == T * 2 * graph_of().number_of_edges()
        assert run.ledger.bytes["method"] == T * 2 * graph_of().number_of_edges() * D * 8
        assert run.ledger.messages["adaptation"] == adapted * 2 * (N - 1)


def test_latent_nodes_are_always_there():
    problem = CLASSES["Huber, clusters"]()
    run = problem.solve(gr.FedADMM(availability=0.5), gap=0, rounds=40)
    away = run.ledger.by_node()["away"]
    assert (away.iloc[:N] > 5).all()
    assert (away.iloc[N:] == 0).all()
    asked = []

    def sampler(t, labels, uniform, common):
        asked.append((t, labels, len(uniform)))
        return uniform < 0.5

    problem.solve(gr.FedADMM(availability=sampler), gap=0, rounds=3)
    assert asked == [(t, tuple(range(N)), N) for t in (1, 2, 3)]


def test_what_a_sampler_is_given():
    """Numbers that follow from seed and round alone, each node's own and common ones, new ones in every round."""

    def drawn(seed):
        seen = []

        def sampler(t, labels, uniform, common):
            seen.append((uniform.copy(), common.random(3)))
            uniform[:] = 0.0  # its own to change
            return np.full(len(labels), True)

        squared().solve(gr.FedADMM(availability=sampler), gap=0, rounds=20, seed=seed)
        return np.array([np.concatenate(each) for each in seen])

    one = drawn(1)
    np.testing.assert_array_equal(one, drawn(1))
    assert len(np.unique(np.concatenate([one, drawn(2)]))) == 2 * one.size
    np.testing.assert_array_equal(
        one[:, :N], [Streams(1, "availability", range(N)).uniform(t, 1)[:, 0] for t in range(1, 21)]
    )


# ---- a part of the graph per node ------------------------------------------------------------------------------------
class Mailboxes:
    """What threads, one per node, send each other; everything else of a neighbour is NaN."""

    def __init__(self, n):
        self.barrier, self.rows, self.sums = threading.Barrier(n, timeout=20), {}, {}


class OwnPart:
    def __init__(self, boxes, i, ids):
        self.boxes, self.i, self.ids, self.ledger = boxes, i, ids, None

    def exchange(self, values, along=None, *, parameters=True, purpose="method"):
        arcs, boxes = self.site.arcs, self.boxes
        for k, (s, t) in enumerate(zip(arcs.source, arcs.target, strict=True)):
            if self.ids[s] == self.i and (along is None or along[k]):
                boxes.rows[self.i, self.ids[t]] = values[s].copy()
        boxes.barrier.wait()
        out = np.full_like(values, np.nan)
        out[self.site.own] = values[self.site.own]
        for k, (s, t) in enumerate(zip(arcs.source, arcs.target, strict=True)):
            if self.ids[t] == self.i:
                sent = boxes.rows.pop((self.ids[s], self.i), None)
                assert (sent is not None) == (along is None or bool(along[k]))  # both ends know
                out[s] = np.nan if sent is None else sent
        boxes.barrier.wait()
        return out

    def swap_ends(self, values, toward, along):
        arcs, boxes = self.site.arcs, self.boxes
        for k, (s, t) in enumerate(zip(arcs.source, arcs.target, strict=True)):
            if self.ids[s] == self.i and along[k]:
                boxes.rows[self.i, self.ids[t]] = [v[a == k].copy() for v, a in zip(values, toward, strict=True)]
        boxes.barrier.wait()
        out = tuple(np.full_like(v, np.nan) for v in values)
        for k, (s, t) in enumerate(zip(arcs.source, arcs.target, strict=True)):
            if self.ids[t] == self.i:
                sent = boxes.rows.pop((self.ids[s], self.i), None)
                assert (sent is not None) == bool(along[k])
                for v, a, rows in zip(out, toward, sent or (), strict=False):
                    v[a == (k + arcs.pairs) % (2 * arcs.pairs)] = rows
        boxes.barrier.wait()
        return out

    def reduce(self, values, purpose="adaptation"):
        self.boxes.sums[self.i] = values[self.site.own].sum(axis=0)
        self.boxes.barrier.wait()
        total = sum(self.boxes.sums[k] for k in sorted(self.boxes.sums))
        self.boxes.barrier.wait()
        return total

    def away(self, nodes):
        pass


def part_of(model_of, i, boxes):
    """The site of node i: its own samples, its edges, and its neighbours as bare nodes."""
    graph, data = graph_of(), data_of()
    ids = sorted([i, *graph[i]])
    mine = nx.Graph()
    mine.add_nodes_from(ids)
    mine.add_edges_from((a, b, w) for a, b, w in graph.edges(data=True) if i in (a, b))
    own = gr.NodeData.from_arrays(data.X[data.node == i], np.asarray(data.y)[data.node == i], [i] * M)
    form = gr.Problem(model_of(own, mine, [i])).form
    order = np.array(form.labels)
    engine = OwnPart(boxes, i, order.tolist())
    engine.site = Site(form, engine, SEED, WholeGraph(N, N, order, order == i))
    return engine.site


def fused(data, graph, observed):
    penalty = gr.NodePenalty(gr.L1(), weights={k: float(k in observed) or 1e-12 for k in graph})
    return gr.SquaredLoss(data) + 0.2 * gr.TotalVariation(graph, gr.L2()) + 0.05 * penalty


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rho": None},
        {"batch": 2},
        {"availability": P},
        {"availability": P, "dropout": "ipw", "batch": 2},
        {"availability": ESTIMATED, "dropout": "ipw"},
        {"availability": AWAY["correlated"], "step_size": lambda t: np.arange(1, N + 1) / (20.0 * t)},
        {"step_size": {i: 0.05 + 0.01 * i for i in range(N)}},
    ],
)
def test_isolated_nodes_make_the_same_rounds(options):
    """Each node knows its own samples, and of others what they send; the iterates are those of the whole graph."""
    T, boxes, method = 25, Mailboxes(N), gr.FedADMM(**{"rho": 0.7, "kappa": None} | options)
    whole = iterate_seeded(method, gr.Problem(fused(data_of(), graph_of(), range(N))).form, T)
    found, failed = {}, []

    def node(i):
        try:
            state = method.init(part_of(fused, i, boxes), None)
            for _ in range(T):
                state = method.step(state)
            found[i] = method.point(state)[0][state.site.own][0]
        except BaseException as error:  # noqa: BLE001 - reported below
            failed.append(error)
            boxes.barrier.abort()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=node, args=(i,)) for i in range(N)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed, failed
    np.testing.assert_allclose([found[i] for i in range(N)], method.point(whole)[0], atol=1e-9)


# ---- a step ----------------------------------------------------------------------------------------------------------
def arrays(value):
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, tuple):
        return [a for each in value for a in arrays(each)]
    if is_dataclass(value) and not isinstance(value, Site):
        return [a for f in fields(value) for a in arrays(getattr(value, f.name))]
    return []


@pytest.mark.parametrize(
    "options", [{}, {"batch": 2, "availability": P}, {"availability": ESTIMATED, "dropout": "ipw"}]
)
@pytest.mark.parametrize("seed", [214, 299, 431, 476])
def test_a_step_is_repeatable_and_changes_nothing(seed, options):
    form = random_problem(seed).problem.form
    options = {key: 0.6 if value is P else value for key, value in options.items()}
    options = {k: gr.Availability(0.6, known=False) if v is ESTIMATED else v for k, v in options.items()}
    method = gr.FedADMM(**options)
    if method.missing(form):
        method = replace(method, batch=None)
    state = iterate(method, form, [9])[0]
    before = [a.copy() for a in arrays(state)]
    once = method.step(state)
    method.step(method.step(once))
    again = method.step(state)
    assert len(before) > 5
    assert all(np.array_equal(a, b) for a, b in zip(arrays(state), before, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(arrays(once), arrays(again), strict=True))
    assert once.round == again.round == 10


def test_one_step_touches_neighbours_only():
    form = gr.Problem(gr.SquaredLoss(data_of(8)) + 0.2 * gr.TotalVariation(nx.path_graph(8), gr.L2())).form
    method = gr.FedADMM(rho=1.0)
    state = iterate(method, form, [5])[0]
    w = state.w.copy()
    w[0] += 1.0
    other = replace(state, w=w)
    for reach in (0, 1, 2, 3):
        state, other = method.step(state), method.step(other)
        moved = np.flatnonzero((state.w != other.w).any(axis=1))
        assert set(moved) <= set(range(reach + 1))
        assert 0 in moved


def test_a_seed_is_a_run():
    problem, method = squared(), gr.FedADMM(batch=2, availability=P)
    one, two, three = (problem.solve(method, gap=0, rounds=30, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.coef, two.coef)
    assert one.ledger == two.ledger
    assert not np.array_equal(one.coef, three.coef)


def test_a_start_saves_rounds():
    problem = squared()
    cold = problem.solve(gr.FedADMM(), gap=1e-8)
    assert problem.solve(gr.FedADMM(), gap=1e-8, start=cold).rounds < cold.rounds / 2
    there, nowhere = (problem.solve(gr.FedADMM(), gap=0, rounds=3, start=s) for s in (cold.coef, None))
    assert there.objective < nowhere.objective


def test_scaling_the_objective_changes_nothing():
    """rho, kappa and the steps follow the units of the objective."""
    one, many = (
        gr.Problem(gr.SquaredLoss(data_of(), scale=s) + 0.2 * s * gr.TotalVariation(graph_of(), gr.L2()))
        for s in (1.0, 1000.0)
    )
    for method in (gr.FedADMM(), gr.FedADMM(batch=2), gr.FedADMM(availability=0.5, dropout="ipw")):
        a, b = (problem.solve(method, gap=0, rounds=25, seed=0).coef for problem in (one, many))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


# ---- refusals and warnings -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"rho": value}, "rho of FedADMM") for value in (0.0, -1.0, np.inf, np.nan, "1", True)),
        *(({"kappa": value}, "kappa of FedADMM") for value in (0.0, np.nan)),
        *(({"batch": value}, "batch of FedADMM") for value in (0, -3, 2.5, True, "all")),
        ({"average": "mean"}, "average of FedADMM must be one of 'last', 'printed', 'suffix'"),
        ({"dropout": "ignore"}, "dropout of FedADMM must be 'freeze' or 'ipw'"),
        *(({"step_size": value}, "step_size of FedADMM must") for value in (0.0, -0.1, np.inf, "0.1")),
        ({"step_size": {"a": 0.1, "b": 0.0}}, "step_size of the node 'b' of FedADMM"),
        ({"step_size": 0.1, "kappa": 1.0}, "a step_size or a kappa"),
        *(({"availability": value}, r"must be in \(0, 1\]") for value in (0.0, 1.1, -0.2, np.nan)),
        ({"availability": {"a": 0.5, "b": 0.0}}, "probability of the node 'b'"),
        ({"availability": {"a": 0.5, "b": "often"}}, "probability of the node 'b'"),
        ({"availability": "estimated"}, r"gr.Availability\(probability, sampler, known=False\)"),
        ({"availability": gr.Availability}, "availability is a probability"),
    ],
)
def test_wrong_options(options, said):
    with pytest.raises(MethodError, match=said):
        gr.FedADMM(**options)


def test_wrong_availabilities():
    with pytest.raises(MethodError, match="needs a probability, a sampler, or both"):
        gr.Availability()
    with pytest.raises(MethodError, match=r"Availability\(sampler=...\) must be a function"):
        gr.Availability(0.5, sampler=0.5)
    with pytest.raises(MethodError, match="must be a function of t, labels, uniform and common"):
        gr.FedADMM(availability=lambda t: np.full(N, True))
    with pytest.raises(MethodError, match="known of Availability must be True or False"):
        gr.Availability(0.5, known="yes")


@pytest.mark.parametrize("name", ["availability", "step_size"])
def test_mappings_that_do_not_fit_the_nodes(name):
    values = dict.fromkeys(range(N), 0.01)
    problem = squared()
    with pytest.raises(MethodError, match=rf"{name} has no entry for the node 2 \(and 1 more\)"):
        problem.solve(gr.FedADMM(**{name: {k: v for k, v in values.items() if k not in (2, 4)}}))
    with pytest.raises(MethodError, match=rf"{name} names 'x', which is not a node"):
        problem.solve(gr.FedADMM(**{name: {**values, "x": 0.5}}))


@pytest.mark.parametrize(
    "answer",
    [np.full(N - 1, True), np.ones(N), True, [0] * N, None, np.full((N, 1), True)],
)
def test_samplers_that_answer_something_else(answer):
    method = gr.FedADMM(availability=lambda t, labels, uniform, common: answer)
    with pytest.raises(MethodError, match="must return 6 bools, one per label, in round 1"):
        squared().solve(method)


@pytest.mark.parametrize("answer", [0.0, -1.0, np.nan, np.ones(N - 1), np.full((N, 1), 0.1), "small", None, True])
def test_schedules_that_answer_something_else(answer):
    with pytest.raises(MethodError, match="must return a positive number, or 6 of them, one per node; for round 1"):
        squared().solve(gr.FedADMM(step_size=lambda t: answer))


def test_a_schedule_by_node():
    form = squared().form
    steps = np.linspace(0.02, 0.05, N)
    by_label = iterate(gr.FedADMM(rho=0.5, step_size=dict(enumerate(steps))), form, [20])[0]
    by_round = iterate(gr.FedADMM(rho=0.5, step_size=lambda t: steps), form, [20])[0]
    np.testing.assert_array_equal(by_label.w, by_round.w)


def test_steps_beyond_their_bound_are_warned_of():
    problem, rho = squared(), 0.5
    bound = 1 / (L_of(data_of()) + rho * form_degree(problem.form))
    assert problem.solve(gr.FedADMM(rho=rho, step_size=float(bound.min())), gap=1e-8).status == "certified"
    worst = int(np.argmin(bound))
    said = rf"node {worst} is beyond its bound 1 / \(L_i \+ rho deg_i\) = {bound[worst]:.3g}"
    with pytest.warns(MethodWarning, match=said):
        run = problem.solve(gr.FedADMM(rho=rho, step_size=4 * float(bound.max())), rounds=300, on_failure="return")
    assert run.status != "certified"  # it is a bound of something
    with pytest.warns(MethodWarning, match="keeps the variance"):
        problem.solve(gr.FedADMM(rho=rho, step_size=0.01, batch=2), rounds=5)
    with pytest.warns(MethodWarning, match="beyond its bound"), pytest.warns(MethodWarning, match="variance"):
        problem.solve(gr.FedADMM(rho=rho, step_size=dict(enumerate(bound)), availability=0.5, dropout="ipw"), rounds=5)


def form_degree(form):
    return np.array([sum(i in edge[:2] for edge in edges_of(form)) for i in range(N)])


def test_losses_without_gradients_are_refused():
    problem = gr.Problem(gr.QuantileLoss(data_of(), tau=0.3) + 0.1 * gr.TotalVariation(graph_of(), gr.L2()))
    with pytest.raises(MethodError, match="FedADMM does not apply: QuantileLoss is not smooth"):
        problem.solve(gr.FedADMM())
    assert not problem.methods().loc["FedADMM", "applies"]
    assert squared().methods().loc["FedADMM", "applies"]


def test_nodes_without_samples_and_without_edges():
    graph = nx.path_graph(7)
    graph.add_node(7)  # no edge: its own fit; node 6 has no samples
    data = data_of(8)
    keep = data.node != 6
    some = gr.NodeData.from_arrays(data.X[keep], np.asarray(data.y)[keep], data.node[keep])
    problem = gr.Problem(gr.SquaredLoss(some) + 0.2 * gr.TotalVariation(graph, gr.L2()))
    for method in (gr.FedADMM(), gr.FedADMM(availability=0.7)):
        run = problem.solve(method, gap=1e-8, rounds=20_000, seed=0)
        assert run.status == "certified"
    alone = np.linalg.lstsq(data.X[data.node == 7], np.asarray(data.y)[data.node == 7], rcond=None)[0]
    np.testing.assert_allclose(run.coef[7], alone, atol=1e-3)


def test_a_site_of_which_nothing_moves_is_left_alone():
    """A node without samples and edges stays where it is, whatever its step."""
    graph = nx.path_graph(2)
    graph.add_node(2)
    problem = gr.Problem(gr.SquaredLoss(data_of(2)) + 0.2 * gr.TotalVariation(graph, gr.L2()))
    state = gr.FedADMM().init(site_of(problem.form), (np.ones(problem.form.shape), None))
    assert (gr.FedADMM().step(state).w[2] == 1.0).all()
