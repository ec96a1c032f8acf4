"""FedProx, SCAFFOLD and Ditto: their papers' algorithms written out client by client, and what they end at."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from baseline_cases import N, chain, data_of
from core_cases import view_of

import graphreg as gr
from graphreg.network import Streams

D = 3
SEED = 0  # of `view_of`


class Clients:
    """Nodes with squared losses of scale a_i / m_i and a ridge on half of the coordinates, by hand."""

    def __init__(self, chance=1.0):
        data = data_of()
        self.rows = [(data.X[data.node == i], np.asarray(data.y)[data.node == i]) for i in range(N)]
        self.a = 20 * np.array([0.05, 0.1, 0.02] * 4)  # of 20 samples, each of the scale below
        self.scale = self.a / 20
        self.p = self.a / self.a.sum()
        self.chance, self.coins = chance, Streams(SEED, "availability", range(N))
        self.L = np.array(
            [s * np.linalg.eigvalsh(X.T @ X)[-1] + 0.3 for s, (X, _) in zip(self.scale, self.rows, strict=True)]
        )

    def problem(self):
        loss = gr.SquaredLoss(data_of(), scale=dict(enumerate(self.scale.tolist())))
        ridge = 0.3 * gr.NodePenalty(gr.SquaredL2(), features=["x0", "x2"])
        return gr.Problem(loss + gr.TotalVariation(nx.cycle_graph(N), gr.L2()) + ridge)

    def grad(self, i, w):
        """Of f_i."""
        X, y = self.rows[i]
        return self.scale[i] * X.T @ (X @ w - y) + 0.3 * w * [1, 0, 1]

    def there(self, t):
        return [i for i in range(N) if self.chance == 1.0 or self.coins.uniform(t + 1, 1)[i, 0] < self.chance]

    def mean(self, values, present, otherwise):
        """Of those that are there, by p_i (and 1/chance, which cancels)."""
        weight = sum(self.p[i] for i in present)
        return sum(self.p[i] * values[i] for i in present) / weight if present else otherwise


def fed_prox(clients, mu, K, rounds):
    x, eta = np.zeros(D), 1 / (max(clients.L / clients.a) + mu)
    for t in range(rounds):
        present, own = clients.there(t), {}
        for i in present:
            own[i] = x
            for _ in range(K):
                own[i] = own[i] - eta * (clients.grad(i, own[i]) / clients.a[i] + mu * (own[i] - x))
        x = clients.mean(own, present, x)
    return x


def scaffold(clients, K, option, eta_g, rounds):
    """Algorithm 1, with S the clients that are there, and p_i where the paper has 1/N."""
    x, c, eta = np.zeros(D), np.zeros(D), 1 / (K * max(clients.L / clients.a))
    c_i = [np.zeros(D) for _ in range(N)]
    for t in range(rounds):
        present, y, change = clients.there(t), {}, {}
        for i in present:
            y[i] = x
            for _ in range(K):
                y[i] = y[i] - eta * (clients.grad(i, y[i]) / clients.a[i] - c_i[i] + c)
            first = clients.grad(i, x) / clients.a[i]
            new = first if option == "I" else c_i[i] - c + (x - y[i]) / (K * eta)
            change[i], c_i[i] = new - c_i[i], new
        x = x + eta_g * (clients.mean(y, present, x) - x)
        c = c + sum((clients.p[i] * change[i] for i in present), np.zeros(D))
    np.testing.assert_allclose(c, sum(p * each for p, each in zip(clients.p, c_i, strict=True)), atol=1e-12)
    return x, c


def ditto(clients, lam, s, K, rounds):
    eta = 1 / (max(clients.L / clients.a) if K > 1 else sum(clients.p * clients.L / clients.a))
    x, v = np.zeros(D), [np.zeros(D) for _ in range(N)]
    for t in range(rounds):
        present, own = clients.there(t), {}
        for i in present:
            own[i] = x
            for _ in range(K):
                own[i] = own[i] - eta * clients.grad(i, own[i]) / clients.a[i]
            for _ in range(s):
                v[i] = v[i] - (clients.grad(i, v[i]) + lam[i] * (v[i] - x)) / (clients.L[i] + lam[i])
        x = clients.mean(own, present, x)
    return x, np.array(v)


def after(method, clients, rounds):
    form = method.target(clients.problem().form)
    view, iteration = view_of(form), method.iteration
    state = iteration.init(view, None)
    for _ in range(rounds):
        state = iteration.step(state)
    return state, iteration.point(state)[0]


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


# ---- round by round --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("chance", [1.0, 0.5])
@pytest.mark.parametrize(("mu", "K"), [(0.7, 4), (5.0, 3), (0.0, 3)])
def test_fed_prox_is_algorithm_2_of_li_et_al(mu, K, chance):
    clients = Clients(chance)
    state, w = after(gr.FedProx(mu, local_steps=K, availability=chance), clients, 12)
    same(w, np.tile(fed_prox(clients, mu, K, 12), (N + 1, 1)))
    assert state.step_size[0] == pytest.approx(1 / (max(clients.L / clients.a) + mu), rel=1e-12)


@pytest.mark.parametrize("chance", [1.0, 0.5])
@pytest.mark.parametrize(("K", "option", "eta_g"), [(1, "II", 1.0), (5, "II", 1.0), (5, "I", 0.8), (3, "II", 0.6)])
def test_scaffold_is_algorithm_1_of_karimireddy_et_al(K, option, eta_g, chance):
    clients = Clients(chance)
    method = gr.SCAFFOLD(local_steps=K, option=option, global_step=eta_g, availability=chance)
    state, w = after(method, clients, 12)
    x, c = scaffold(clients, K, option, eta_g, 12)
    same(w, np.tile(x, (N + 1, 1)))
    np.testing.assert_allclose(state.control, np.tile(c, (N + 1, 1)), atol=1e-11)


@pytest.mark.parametrize("chance", [1.0, 0.5])
@pytest.mark.parametrize(("s", "K"), [(1, 1), (4, 3)])
def test_ditto_is_algorithm_1_of_li_et_al(s, K, chance):
    clients, lam = Clients(chance), np.linspace(0.5, 2.0, N)
    method = gr.Ditto(dict(enumerate(lam)), personal_steps=s, local_steps=K, availability=chance)
    state, v = after(method, clients, 12)
    x, expected = ditto(clients, lam, s, K, 12)
    same(v[:N], expected)
    same(state.w, np.tile(x, (N + 1, 1)))


# ---- what they end at ------------------------------------------------------------------------------------------------
def test_without_a_pull_it_is_federated_averaging():
    options = {"gap": 0, "rounds": 20, "seed": 2}
    more = {"local_steps": 3, "batch": 4, "availability": 0.6}
    one, two, three = (
        chain().solve(method, **options)
        for method in (gr.FedAvg(**more), gr.FedProx(0.0, **more), gr.Ditto(1.0, **more))
    )
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(three.gathered["model"], one.coef[0])
    assert one.ledger.sent() == two.ledger.sent() == three.ledger.sent()


def test_with_many_local_steps_the_limit_is_the_model_of_pfedme():
    """Which a larger pull leads nearer to the pooled fit, by O(1/mu)."""
    problem = chain()
    pooled = problem.solve(gr.Pooled(), gap=1e-12).coef[0]
    envelope = {
        mu: gr.Problem(gr.SquaredLoss(data_of()) + gr.Hierarchy({"one": list(range(N))}, (mu, 1.0))).solve(gap=1e-11)
        for mu in (20.0, 400.0, 800.0)
    }
    far = {mu: float(np.linalg.norm(found.latent["one"] - pooled)) for mu, found in envelope.items()}
    found = problem.solve(gr.FedProx(20.0, local_steps=25), gap=0, rounds=300)
    assert np.linalg.norm(found.coef[0] - envelope[20.0].latent["one"]) < 1e-3 * far[20.0]
    assert found.status == "budget"
    assert far[400.0] / far[800.0] == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("more", [{}, {"local_steps": 20}, {"option": "I"}, {"availability": 0.5}], ids=str)
@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss])
def test_scaffold_ends_at_the_pooled_fit_where_federated_averaging_does_not(loss, more):
    problem = chain(loss)
    found = problem.solve(gr.SCAFFOLD(**more), gap=1e-8, rounds=3000, seed=0)
    assert found.own.holds(1e-8)
    biased = problem.solve(gr.FedAvg(local_steps=5), gap=0, rounds=100)
    assert biased.own.relative_gap > 1e-4


def test_scaffold_sends_twice_as_much():
    found = chain().solve(gr.SCAFFOLD(), gap=0, rounds=25)
    assert found.ledger.messages["method"] == N * 2 * 25
    assert found.ledger.bytes["method"] == 8 * N * 25 * 2 * 6
    assert found.ledger.messages["adaptation"] == N * 2
    half = chain().solve(gr.SCAFFOLD(availability=0.5), gap=0, rounds=50, seed=0)
    up = half.ledger.messages["method"] - N * 50
    assert half.ledger.by_node()["away"].sum() == 50 * N - up > 0


def test_ditto_certifies_the_personal_models_at_the_model_of_its_server():
    problem, lam = chain(), 0.5
    found = problem.solve(gr.Ditto(lam), gap=1e-8)
    w = problem.solve(gr.Pooled(), gap=1e-12).coef[0]
    pull = gr.NodePenalty(gr.SquaredL2(), center=w)
    exact = gr.Problem(gr.SquaredLoss(data_of()) + lam * pull).solve(gap=1e-10)
    np.testing.assert_allclose(found.gathered["model"], w, atol=1e-6)
    np.testing.assert_allclose(found.coef, exact.coef, atol=1e-4)
    assert found.own.primal == pytest.approx(exact.objective, rel=1e-6)
    assert found.own.holds(1e-8)
    early = problem.solve(gr.Ditto(lam, personal_steps=20, step_size=0.05), gap=1e-3)  # long before w is there
    np.testing.assert_allclose(early.gathered["model"], w, atol=1e-5)
    drawn = problem.solve(gr.Ditto(lam, batch=2), gap=1e-8, rounds=100, seed=0)
    assert drawn.status == "budget"
    assert "batch may lead off that optimum" in drawn.message
