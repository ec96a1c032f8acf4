"""Portfolios, networks, control."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from .cases import COLUMNS, Cases, Data, least, most


def money(d: Data) -> Cases:
    """Portfolios."""
    r, F, S, mu, n = d.r, d.F, d.S, d.mu, COLUMNS
    x, f = cp.Variable(n), cp.Variable(4)
    risk, invested = cp.quad_form(x, cp.psd_wrap(S)), [cp.sum(x) == 1, x >= 0]
    yield most("portfolio", mu @ x - risk, invested)
    own = cp.sum_squares(cp.multiply(np.sqrt(r.random(n)), x))
    yield most("factor portfolio", mu @ x - cp.sum_squares(f) - own, [cp.sum(x) == 1, f == F.T @ x, cp.norm1(x) <= 2])
    yield least("portfolio, singular covariance", cp.quad_form(x, cp.psd_wrap(F @ F.T)) - mu @ x, invested)
    yield most("portfolio, limited risk", mu @ x, [*invested, cp.norm(F.T @ x) <= 0.8])
    yield least("least variance for a return", risk, [*invested, mu @ x >= float(np.median(mu))])
    yield most("long and short", mu @ x - 0.5 * risk, [cp.sum(x) == 1, cp.norm1(x) <= 1.6])
    yield most("costs of trading", mu @ x - risk - 0.1 * cp.norm1(x - 1 / n), invested)
    yield most("costs of trading, power 1.5", mu @ x - risk - 0.1 * cp.sum(cp.power(cp.abs(x - 1 / n), 1.5)), invested)
    yield most("uncertain returns", mu @ x - 0.3 * cp.norm(F.T @ x) - 0.2 * cp.norm(x), invested)
    gains = r.standard_normal((30, n)) * 0.1 + mu * 0.05
    level, short = cp.Variable(), cp.Variable(30, nonneg=True)
    tail = [*invested, short >= -gains @ x - level]
    yield least("conditional value at risk", level + cp.sum(short) / (0.1 * 30), tail)
    yield most("growth", cp.sum(cp.log(1 + gains @ x)) / 30, invested)
    yield least("Sharpe's ratio", cp.norm(F.T @ x) + 0.1 * cp.norm(x), [mu @ x == 1, x >= 0])
    sold = cp.Variable(20)
    yield least(
        "execution", cp.sum_squares(sold) + 0.2 * cp.sum_squares(cp.cumsum(sold) - 10), [sold >= 0, cp.sum(sold) == 10]
    )
    E = cp.Variable((4, 4), symmetric=True)
    weights, middle = np.array([0.1, 0.2, -0.05, 0.1]), np.array([0.2, 0.1, 0.3, 0.1])
    signs = [E >> 0, cp.diag(E) == middle, E[0, 1] >= 0, E[0, 2] >= 0, E[1, 2] <= 0, E[1, 3] <= 0, E[2, 3] >= 0]
    yield most("worst covariance", cp.sum(cp.multiply(np.outer(weights, weights), E)), signs)
    yield most("utility of square roots", cp.sum(cp.sqrt(x)), [mu @ x <= 3])
    yield least("inverse of shares", cp.sum(cp.inv_pos(x)), [cp.sum(x) <= 4, x <= 1])
    ads = cp.Variable((3, 5), nonneg=True)
    clicks = cp.minimum(r.random(3), cp.sum(cp.multiply(r.random((3, 5)), ads), axis=1))
    yield most("advertising", cp.sum(clicks), [cp.sum(ads, axis=0) <= np.arange(1, 6) / 4])


def transports(d: Data) -> Cases:  # noqa: PLR0915  (a list)
    """Linear programmes, most of them on networks."""
    r, A, b, mu, n = d.r, d.A, d.b, d.mu, COLUMNS
    cost, supply, demand = r.integers(1, 20, (6, 8)), np.array([5, 7, 6, 8, 4, 10]), np.array([4, 6, 3, 7, 5, 5, 6, 4])
    X = cp.Variable((6, 8), nonneg=True)
    paid = cp.sum(cp.multiply(cost.astype(float), X))
    yield least("transport, integers", paid, [cp.sum(X, axis=1) == supply, cp.sum(X, axis=0) == demand])
    p, q = np.array([1, 3, 4, 2, 4, 2]) / 16, np.array([2, 1, 3, 2, 2, 4, 1, 1]) / 16
    yield least(
        "transport, unbalanced", paid + 10 * (cp.norm1(cp.sum(X, axis=1) - p) + cp.norm1(cp.sum(X, axis=0) - q))
    )
    yield least("transport, one-sided", paid, [cp.sum(X, axis=1) <= 1.5 * p, cp.sum(X, axis=0) >= q])
    both = [cp.sum(X, axis=1) == p, cp.sum(X, axis=0) == q]
    yield least("transport, entropic", paid / 10 - cp.sum(cp.entr(X)), both)
    marginals = cp.sum(cp.kl_div(cp.sum(X, axis=1), p)) + cp.sum(cp.kl_div(cp.sum(X, axis=0), q))
    yield least("transport, marginals by KL", paid / 20 - 0.1 * cp.sum(cp.entr(X)) + marginals)
    m = len(d.edges)
    w, ends = cp.Variable(m, nonneg=True), np.r_[4.0, np.zeros(6), -4.0]
    length, room = r.integers(1, 9, m).astype(float), r.integers(2, 6, m).astype(float)
    yield least("flow of least cost", length @ w, [d.incidence @ w == ends, w <= 4])
    v = cp.Variable()
    yield most("flow of greatest value", v, [d.incidence @ w == v * ends / 4, w <= room])
    yield least("shortest path", length @ w, [d.incidence @ w == ends / 4])
    yield least("traffic", length @ w + cp.sum(cp.square(w)) / 2, [d.incidence @ w == ends])
    W = cp.Variable((m, 2), nonneg=True)
    two = np.c_[ends / 4, np.roll(ends, 3) / 8]
    yield least("two commodities", cp.sum(length @ W), [d.incidence @ W == two, cp.sum(W, axis=1) <= 2])
    delay = cp.sum(cp.inv_pos(room - w))
    yield least("queues", delay, [d.incidence @ w == ends / 4])
    Q = cp.Variable((6, 6), nonneg=True)
    each = [cp.sum(Q, axis=0) == 1, cp.sum(Q, axis=1) == 1]
    yield least("assignment", cp.sum(cp.multiply(cost[:, :6].astype(float), Q)), each)
    yield least("nearest doubly stochastic", cp.sum_squares(Q - r.random((6, 6))), each)
    x, y = cp.Variable(n), cp.Variable(2)
    yield least("linear, random", mu @ x, [A @ x <= np.abs(b) + 1, x >= -3, x <= 3])
    corner = [np.array([[2.0, 1.0], [1.0, 2.0]]) @ y <= 3, y >= 0]
    yield least("linear, of a tutorial", np.array([-4.0, -5.0]) @ y, corner, known=-9.0)
    t = cp.Variable(3, nonneg=True)
    three = [t[0] + t[1] <= 1, t[1] + t[2] <= 1, t[0] + t[2] <= 1, cp.sum(t) <= 1.5]
    yield most("linear, degenerate vertex", cp.sum(t), three, known=1.5)
    k = cp.Variable(6, nonneg=True)
    bent = [2 * sum(10.0 ** (i - j) * k[j] for j in range(i)) + k[i] <= 100.0**i for i in range(6)]
    yield most("Klee and Minty", sum(10.0 ** (5 - j) * k[j] for j in range(6)), bent, known=1e10)
    pay = r.integers(-5, 6, (5, 6)).astype(float)
    mixed = cp.Variable(5, nonneg=True)
    yield most("matrix game", v, [pay.T @ mixed >= v, cp.sum(mixed) == 1])
    food = cp.Variable(6, nonneg=True)
    yield least("diet", (r.random(6) + 0.5) @ food, [r.random((4, 6)) @ food >= np.array([2.0, 3.0, 1.0, 2.0])])
    made, stock, wanted = cp.Variable(12, nonneg=True), cp.Variable(12, nonneg=True), r.integers(1, 9, 12)
    stages = [stock[0] == made[0] - wanted[0], stock[1:] == stock[:-1] + made[1:] - wanted[1:], made <= 10]
    yield least("production", (r.random(12) + 1) @ made + 0.1 * cp.sum(stock), stages)
    share, scale = cp.Variable(4, nonneg=True), cp.Variable(nonneg=True)
    ratio = [np.array([1.0, 2.0, 1.0, 3.0]) @ share + 2 * scale == 1, r.random((3, 4)) @ share <= 3 * scale]
    yield most("ratio of two lines", np.array([3.0, 1.0, 2.0, 4.0]) @ share + scale, ratio)
    yield least("uncertain rows, boxes", mu @ x, [A[:8] @ x + 0.1 * cp.norm1(x) <= 1, x >= -1])
    yield least("feasibility alone", 0, [A @ x <= np.abs(b) + 0.1])


def control(d: Data) -> Cases:
    """Systems in discrete time, and estimates of their states."""
    r, T = d.r, 15
    step, push = np.eye(3) + 0.1 * r.standard_normal((3, 3)), r.standard_normal((3, 1))
    x, u = cp.Variable((3, T + 1)), cp.Variable((1, T))
    moves = [x[:, 0] == np.ones(3), x[:, 1:] == step @ x[:, :-1] + push @ u]
    effort = cp.sum_squares(x) + 0.1 * cp.sum_squares(u)
    yield least("control", effort, [*moves, cp.abs(u) <= 1.5])
    yield least("control, slew rate", effort, [*moves, cp.abs(cp.diff(u, axis=1)) <= 0.5])
    yield least("control, peaks", cp.max(cp.abs(x)) + 0.1 * cp.norm1(u), moves)
    yield least("fuel", cp.norm1(u), [*moves, cp.norm_inf(x[:, -1]) <= 0.3])
    yield least("control, soft limits", effort + 10 * cp.sum(cp.pos(cp.abs(x) - 0.8)), [*moves, cp.abs(u) <= 2])
    place, speed, thrust = cp.Variable((2, 9)), cp.Variable((2, 9)), cp.Variable((2, 8))
    flight = [place[:, 0] == np.array([4.0, 8.0]), speed[:, 0] == 0, place[:, -1] == 0, speed[:, -1] == 0]
    flight += [place[:, 1:] == place[:, :-1] + 0.5 * speed[:, :-1], cp.norm(thrust, axis=0) <= 4]
    flight += [speed[:, 1:] == speed[:, :-1] + 0.5 * (thrust - np.array([[0.0], [1.0]]))]
    yield least("landing", cp.sum(cp.norm(thrust, axis=0)), flight)
    seen = r.standard_normal((2, T))
    state, noise, error = cp.Variable((3, T + 1)), cp.Variable((1, T)), cp.Variable((2, T))
    dynamics = [state[:, 1:] == step @ state[:, :-1] + push @ noise, seen == state[:2, :-1] + error]
    yield least("Kalman smoother", cp.sum_squares(noise) + cp.sum_squares(error), dynamics)
    robust = cp.sum([cp.huber(cp.norm(error[:, t]), 0.5) for t in range(T)])
    yield least("Kalman smoother, robust", cp.sum_squares(noise) + robust, dynamics)
    load, price, buy, held = r.random(24) + 0.5, r.random(24) + 0.2, cp.Variable(24, nonneg=True), cp.Variable(25)
    battery = [held[1:] == held[:-1] + buy - load, held >= 0, held <= 3, held[0] == 1, buy <= 2]
    yield least("battery", price @ buy + 0.01 * cp.sum_squares(buy), battery)


FIELDS = (money, transports, control)
