"""Geometry, designs, matrices, entropies."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from .cases import COLUMNS, Cases, Data, least, most


def geometry(d: Data) -> Cases:  # noqa: PLR0915  (a list)
    """Balls, ellipsoids, projections, designs."""
    r, A, b, n = d.r, d.A, d.b, COLUMNS
    G, h = r.standard_normal((15, 3)), r.random(15) + 1
    lengths = np.linalg.norm(G, axis=1)
    c, radius = cp.Variable(3), cp.Variable()
    yield most("Chebyshev centre", radius, [G @ c + lengths * radius <= h, radius <= 5])
    yield most("analytic centre", cp.sum(cp.log(h - G @ c)), [cp.norm(c) <= 9])
    yield most("analytic centre, forty rows", cp.sum(cp.log(np.abs(b) + 1 - A @ cp.Variable(n))))
    B, near = cp.Variable((3, 3), PSD=True), [c <= 2, c >= -2]
    yield most("largest ellipsoid", cp.log_det(B), [cp.norm(B @ G[i]) + G[i] @ c <= h[i] for i in range(15)] + near)
    points = r.standard_normal((9, 2))
    Q, s, y = cp.Variable((2, 2), PSD=True), cp.Variable(2), cp.Variable(2)
    yield least("smallest ellipsoid", -cp.log_det(Q), [cp.norm(Q @ p + s) <= 1 for p in points])
    distances = cp.norm(points - cp.reshape(y, (1, 2), order="C"), axis=1)
    yield least("smallest ball", cp.max(distances))
    yield least("Weber's point", cp.sum(distances))
    places = cp.Variable((3, 2))
    norms = cp.sum(cp.norm(places[[0, 0, 0, 1, 1, 1, 2, 2, 2]] - points, axis=1))
    yield least("facilities", norms + cp.norm(places[0] - places[1]) + cp.norm(places[1] - places[2]))
    yield least("facilities, l1", cp.sum(cp.abs(points - cp.reshape(y, (1, 2), order="C"))) + cp.norm(y))
    x = cp.Variable(n)
    yield least("projection onto the simplex", cp.sum_squares(x - d.mu * 3), [cp.sum(x) == 1, x >= 0])
    yield least("projection onto an l1 ball", cp.sum_squares(x - d.mu * 3), [cp.norm1(x) <= 1])
    cone = [cp.norm(x[1:]) <= x[0], cp.sum(x) <= 1]
    yield least("projection onto a cone and a half-space", cp.sum_squares(x - 2 * d.mu), cone)
    other = cp.Variable(3)
    yield least("distance of two polyhedra", cp.norm(c - other), [G @ c <= h, G @ (other - 4) <= h])
    a, v = cp.Variable(2), cp.Variable()
    apart = [points @ a - v >= 1, (points + 5) @ a - v <= -1]
    yield least("greatest margin", cp.norm(a), apart)
    beams = r.standard_normal((3, 4))
    w = cp.Variable(4)
    quiet = [beams[0] @ w >= 1, cp.abs(beams[1] @ w) <= 0.1, cp.norm(beams[2:] @ w) <= 0.3]
    yield least("beamforming", cp.norm(w), quiet)
    cones = [cp.norm(r.standard_normal((4, 3)) @ c + 1) <= 5 + 0.1 * c[0], cp.norm(r.standard_normal((4, 3)) @ c) <= 7]
    yield least("three cones", np.array([1.0, -2.0, 0.5]) @ c, cones)
    rows = [G[i] @ c + 0.2 * cp.norm(c) <= h[i] for i in range(15)]
    yield most("uncertain rows, balls", cp.sum(c), rows)
    angle = np.linspace(0, np.pi, 40)
    taps, level = cp.Variable(6), cp.Variable()
    response = np.cos(np.outer(angle, np.arange(6))) @ taps
    bands = [response[:12] <= 1.1, response[:12] >= 0.9, cp.abs(response[20:]) <= level]
    yield least("filter", level, bands)
    fit = cp.Variable(5)
    grid = np.linspace(-1, 1, 25)
    yield least("polynomial, minimax", cp.norm_inf(np.vander(grid, 5) @ fit - np.exp(grid)))
    cells, wires = cp.Variable((5, 2)), [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 3)]
    pull = cp.sum([cp.sum_squares(cells[i] - cells[j]) for i, j in wires])
    yield least("placement", pull, [cells[0] == points[0], cells[4] == points[1], cells[2] >= points[2]])
    share, V = cp.Variable(8, nonneg=True), r.standard_normal((8, 3))
    moment = sum(share[i] * np.outer(V[i], V[i]) for i in range(8))
    yield most("D-optimal design", cp.log_det(moment), [cp.sum(share) == 1])
    yield most("E-optimal design", cp.lambda_min(moment), [cp.sum(share) == 1])
    yield least("A-optimal design", sum(cp.matrix_frac(e, moment) for e in np.eye(3)), [cp.sum(share) == 1])


def matrices(d: Data) -> Cases:  # noqa: PLR0915  (a list)
    """Semidefinite programmes."""
    r, C = d.r, d.C
    X, Y = cp.Variable((5, 5), PSD=True), cp.Variable((4, 4), PSD=True)
    yield least("least eigenvalue", cp.trace(C @ X), [cp.trace(X) == 1], known=float(np.linalg.eigvalsh(C)[0]))
    W = np.abs(np.round(2 * C))
    np.fill_diagonal(W, 0)
    yield most("maximum cut", cp.sum(cp.multiply(W, 1 - X)) / 4, [cp.diag(X) == 1])
    ring = np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0)
    cut = (25 + 5 * 5**0.5) / 8
    yield most("maximum cut of a pentagon", cp.sum(cp.multiply(ring, 1 - X)) / 4, [cp.diag(X) == 1], known=cut)
    unit = [cp.trace(X) == 1, cp.multiply(ring, X) == 0]
    yield most("Lovasz theta of a pentagon", cp.sum(X), unit, known=5**0.5)
    S = cp.Variable((4, 4), symmetric=True)
    yield least("largest eigenvalue", cp.lambda_max(S - C[:4, :4]) + cp.sum_squares(S) / 2)
    yield least("sum of two eigenvalues", cp.lambda_sum_largest(S + C[:4, :4], 2) + cp.sum_squares(S), [S[0, 0] == 0])
    M = r.standard_normal((5, 2)) @ r.standard_normal((2, 4))
    mask = (r.random((5, 4)) < 0.7).astype(float)
    Z = cp.Variable((5, 4))
    yield least("completion", cp.normNuc(Z), [cp.multiply(mask, Z) == mask * M])
    yield least("completion, soft", cp.sum_squares(cp.multiply(mask, Z - M)) / 2 + 0.5 * cp.normNuc(Z))
    yield least("robust principal components", cp.normNuc(Z) + 0.6 * cp.sum(cp.abs(M - Z)))
    c = cp.Variable(3)
    mats = r.standard_normal((4, 5, 4))
    yield least("spectral norm", cp.sigma_max(mats[0] + c[0] * mats[1] + c[1] * mats[2] + c[2] * mats[3]))
    sample = np.cov(r.standard_normal((4, 30)))
    likelihood = cp.log_det(Y) - cp.trace(sample @ Y)
    yield most("sparse inverse covariance", likelihood - 0.1 * cp.sum(cp.abs(Y)))
    yield most("inverse covariance, bounded", likelihood, [cp.lambda_max(Y) <= 2])
    yield least("nearest correlation", cp.sum_squares(Y - C[:4, :4]), [cp.diag(Y) == 1])
    yield least("nearest semidefinite", cp.norm(Y - C[:4, :4], "fro"))
    sparse = cp.trace(C[:4, :4] @ Y) - 0.5 * cp.sum(cp.abs(Y))
    yield most("sparse principal component", sparse, [cp.trace(Y) == 1])
    system = 0.4 * r.standard_normal((4, 4)) - 2 * np.eye(4)
    stable = [system.T @ Y + Y @ system << -np.eye(4), Y << 20 * np.eye(4)]
    yield least("Lyapunov", cp.trace(Y), stable)
    links = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    P = cp.Variable((4, 4), symmetric=True)
    chain = [P @ np.ones(4) == 1, P >= 0, *(P[i, j] == 0 for i in range(4) for j in range(i) if {i, j} == {1, 3})]
    yield least("fastest mixing", cp.sigma_max(P - 0.25), chain)
    beams = r.standard_normal((9, 4))
    lifted = [cp.abs(p @ Y @ p - (p @ np.ones(4)) ** 2) <= 0.1 for p in beams]
    yield least("phase retrieval", cp.trace(Y), lifted)
    A, b = r.standard_normal((6, 4)), r.standard_normal(6)
    H = np.block([[A.T @ A, -(A.T @ b)[:, None]], [-(A.T @ b)[None], np.array([[b @ b]])]])
    yield least("signs, relaxed", cp.trace(H @ X), [cp.diag(X) == 1])
    V = cp.Variable((3, 3), PSD=True)
    power = [V[0, 0] == 1, cp.diag(V) <= 1.1, cp.diag(V) >= 0.9]
    power += [10 * (V[1, 1] - V[0, 1]) <= -0.2, 10 * (V[2, 2] - V[0, 2]) + 5 * (V[2, 2] - V[1, 2]) <= -0.3]
    yield least("power flow", 10 * (V[0, 0] - V[0, 1]) + 10 * (V[0, 0] - V[0, 2]) + V[1, 1] / 10, power)
    places = r.standard_normal((4, 2))
    D = np.square(places[:, None] - places[None]).sum(axis=2)
    sides = [Y[i, i] + Y[j, j] - 2 * Y[i, j] - D[i, j] for i, j in links]
    yield least("distances", cp.norm1(cp.hstack(sides)) + 0.05 * cp.trace(Y))
    bars = cp.Variable(5, nonneg=True)
    stiff = sum(bars[k] * np.outer(v, v) for k, v in enumerate(r.standard_normal((5, 3))))
    force = np.ones((3, 1))
    truss = [cp.bmat([[stiff, force], [force.T, np.array([[20.0]])]]) >> 0]
    yield least("truss", cp.sum(bars), truss)
    q = cp.Variable((3, 3), PSD=True)
    level = cp.Variable()  # t^4 + 3 t^2 - 4 t - level is a sum of squares
    squares = [q[0, 0] == -level, q[0, 1] == -2, 2 * q[0, 2] + q[1, 1] == 3, q[1, 2] == 0, q[2, 2] == 1]
    yield most("sum of squares", level, squares)
    block = cp.bmat(
        [
            [np.eye(2), cp.reshape(c[:2], (2, 1), order="C")],
            [cp.reshape(c[:2], (1, 2), order="C"), cp.reshape(c[2], (1, 1), order="C")],
        ]
    )
    yield least("Schur complement", c[2] - c[0] - 3 * c[1], [block >> 0], known=-2.5)


def entropies(d: Data) -> Cases:
    """Logarithms and exponentials; geometric programmes in logarithms."""
    r, A, n = d.r, d.A, COLUMNS
    x, y, z = cp.Variable(n), cp.Variable(5), cp.Variable(3)
    even = np.full(n, 1 / n)
    yield most(
        "greatest entropy", cp.sum(cp.entr(x)), [cp.sum(x) == 1, A[:3] @ x == A[:3] @ even], known=float(np.log(n))
    )
    yield most("greatest entropy, moments", cp.sum(cp.entr(x)), [cp.sum(x) == 1, A[:4] @ x <= A[:4] @ even - 0.01])
    start = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    yield least("projection by KL", cp.sum(cp.kl_div(y, start)), [cp.sum(y) == 1, y[0] >= 0.3])
    yield least("relative entropy of two", cp.sum(cp.rel_entr(y, start + y[::-1])) + cp.sum(y), [y >= 0.01])
    u = cp.Variable(4)
    mean = float((0.5 * (3.5 / 3) ** 3) ** 0.25)
    yield most("geometric mean", cp.geo_mean(u), [cp.sum(u) <= 4, u[0] <= 0.5], known=mean)
    yield most("harmonic mean", cp.harmonic_mean(u), [cp.sum(u) <= 4, u[0] <= 0.5])
    noise = np.array([0.5, 0.8, 1.0, 1.2, 2.0])
    yield most("water filling", cp.sum(cp.log(noise + y)), [y >= 0, cp.sum(y) == 1])
    yield least("log of a sum", cp.log_sum_exp(r.standard_normal((5, 3)) @ z) + cp.sum_squares(z))
    p, q = cp.Variable(2), cp.Variable(2)
    channel = np.array([[0.75, 0.25], [0.25, 0.75]])
    told = cp.sum(cp.entr(q)) / np.log(2) + float((channel * np.log2(channel)).sum(axis=0)[0]) * cp.sum(p)
    yield most("capacity of a channel", told, [q == channel @ p, cp.sum(p) == 1, p >= 0], known=0.18872187554086717)
    rates, routes = cp.Variable(5), (r.random((4, 5)) < 0.5).astype(float) + np.eye(4, 5)
    yield most("rates of a network", cp.sum(cp.log(rates)), [routes @ rates <= 2, rates <= 1])
    powers = cp.Variable(4, nonneg=True)
    gains = r.standard_normal((4, 3, 3))
    total = np.eye(3) + sum(powers[k] * (gains[k] @ gains[k].T) for k in range(4))
    yield most("many antennas", cp.log_det(total), [cp.sum(powers) <= 2])
    walls = [cp.log_sum_exp(cp.hstack([z[0] + z[1], z[0] + z[2]])) <= np.log(50), z[1] + z[2] <= np.log(20)]
    shape = [z[0] - z[1] <= np.log(2), z[1] - z[0] <= np.log(2), z[2] - z[1] <= np.log(2), z[1] - z[2] <= np.log(2)]
    yield most("volume of a box", cp.sum(z), walls + shape)
    logs = cp.log_sum_exp(cp.hstack([-z[0] - z[1], z[2] + np.log(2), z[0] - z[2]]))
    yield least(
        "geometric programme", logs, [cp.log_sum_exp(cp.hstack([z[0], z[1]])) <= np.log(3), cp.norm_inf(z) <= 5]
    )
    gates = cp.Variable(5)
    stages = [cp.log_sum_exp(cp.hstack([gates[k + 1] - gates[k], -gates[k]])) for k in range(4)]
    yield least("sizes of gates", cp.max(cp.hstack(stages)), [cp.log_sum_exp(gates) <= np.log(12), gates >= -1])
    yield least("sum of exponentials", cp.sum(cp.exp(A[:6] @ x)) + cp.norm(x), [cp.sum(x) == 1])
    yield least("softplus and a cone", cp.sum(cp.logistic(A[:8] @ x)), [cp.norm(x) <= 2])
    yield most("logarithms of one more", cp.sum(cp.log1p(x)), [A[:5] @ x <= 1, x >= 0, x <= 2])
    yield least("exponentials over a cut", cp.max(cp.exp(y)) + cp.sum_squares(y - noise), [cp.sum(y) <= 1])
    yield least("least product", -cp.sum(cp.log(y)) + noise @ y)


FIELDS = (geometry, matrices, entropies)
