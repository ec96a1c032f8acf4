"""The number of clients: the conditions on K of Theorems 3, 5 and 6, where the clients' Hessians differ.

Clients that step along gradients b_k = grad F_k(theta*) of their own disagree: theta_k - mean = -eta u_k to first
order, u = (I - L)^-1 L b, L = C - 11'/K. Where their Hessians differ this moves the mean by eta beta, beta = H^-1 sum_k
w_k H_k u_k, and the one-step estimator keeps as much, as H^-1 is applied to gradients at the theta_k, not at the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from scipy.special import digamma, expit

import graphreg as gr

from .. import Evidence, Trial, at_most, claim, equal
from ..computing import rows, slope
from ._instances import Array, matrix, view_of

SHARE, M, RIDGE = 0.75, 4, 0.2  # of positive responses; samples of a client; curvature that all have
D, GAMMA = 12.0, 1000.0  # D > 2 / mu; the first steps are short beside 1 - rho


@dataclass(frozen=True)
class Ring:
    """Clients on a ring, in one coordinate: F_k is the mean logistic loss at x_k with 3 of 4 responses positive, and
    RIDGE/2 theta^2. The gradients of the F_k differ by a bounded amount, as Assumption 6 asks. ``times``: how many
    clients there are of each kind, all of them linked to those of the same kind and of the two next to it.
    """

    kinds: int
    times: int = 1

    @property
    def x(self) -> Array:
        return np.repeat(np.exp(0.8 * np.cos(2.0 * np.pi * np.arange(self.kinds) / self.kinds)), self.times)

    @property
    def mixing(self) -> Array:
        """As in Figure 2 between kinds, and even within each: the eigenvalues of the ring, and 0."""
        even = np.full((self.times, self.times), 1.0 / self.times)
        return np.kron(matrix(nx.cycle_graph(self.kinds)), even)

    def problem(self) -> gr.Problem:
        n = len(self.x)
        y = np.tile([1.0] * round(SHARE * M) + [0.0] * round((1.0 - SHARE) * M), n)
        data = gr.NodeData.from_arrays(np.repeat(self.x, M)[:, None], y, np.repeat(np.arange(n), M))
        graph = nx.from_numpy_array((self.mixing > 0.0).astype(int) - np.eye(n, dtype=int))
        for *_, attributes in graph.edges(data=True):
            attributes.clear()
        ridge = RIDGE / n * gr.NodePenalty(gr.SquaredL2())
        return gr.Problem(gr.LogisticLoss(data, scale=1.0 / (n * M)) + ridge + gr.Consensus(graph))

    def derivatives(self, theta: float) -> tuple[Array, Array]:
        """grad F_k and H_k."""
        p = expit(self.x * theta)
        return self.x * (p - SHARE) + RIDGE * theta, self.x**2 * p * (1.0 - p) + RIDGE

    def truth(self) -> float:
        """theta*, by Newton's method."""
        theta = 0.0
        for _ in range(50):
            slope, curvature = self.derivatives(theta)
            theta -= slope.mean() / curvature.mean()
        return theta

    def beta(self) -> float:
        """The error of the estimators, over the mean of the steps."""
        b, H = self.derivatives(self.truth())
        n = len(b)
        L = self.mixing - 1.0 / n
        u = np.linalg.solve(np.eye(n) - L, L @ b)
        return float(H @ u / H.sum())

    def spread(self) -> float:
        """S^1/2 / H: sqrt(T K) times the standard error."""
        theta = self.truth()
        _, H = self.derivatives(theta)
        S = (self.x**2 * SHARE * (1.0 - SHARE)).mean()  # of x (p - y)
        return float(np.sqrt(S) / H.mean())


def biases(of: Ring, alpha: float, ends: tuple[int, ...]) -> dict[str, Array]:
    """Of both estimators after T steps of gr.LocalSGD along full gradients, started at theta*, over the mean step."""
    steps, truth = gr.DecreasingStep(D, GAMMA, alpha), of.truth()
    method = gr.LocalSGD(steps, batch=M, replacement=False, shuffle=False, mixing=of.mixing)
    view = view_of(of.problem().form, 1, 0)
    state = method.init(view, (np.full((len(of.x), 1), truth), None))
    out: dict[str, list[float]] = {"average": [], "one-step": []}
    for t in range(ends[-1]):
        state = method.step(state)
        if t + 1 in ends:
            got, step = method.gathered(state), float(mean_step(np.array(t + 1.0), alpha))
            average = got["mean"].mean() - truth
            out["average"].append(average / step)
            out["one-step"].append((average - got["gradient_mean"].sum() / got["hessian"].sum()) / step)
    return {name: np.array(each) for name, each in out.items()}


def mean_step(T: Array, alpha: float) -> Array:
    """(1/T) sum_{t < T} D (t + 1 + gamma)^-alpha."""
    if alpha == 1.0:
        return D * (digamma(T + GAMMA + 1.0) - digamma(GAMMA + 1.0)) / T
    first, last = GAMMA + 0.5, GAMMA + T + 0.5  # midpoints: off by less than 1e-6 of it, as gamma is large
    return D * (last ** (1.0 - alpha) - first ** (1.0 - alpha)) / (1.0 - alpha) / T


@claim(
    "consensus.thm3-condition",
    "Theorem 3",
    stated="K = o(T^(2 alpha - 1))",
    perturbation=0.5,
    experiment=True,
    quick={"ends": (1000, 3000, 10_000)},
    full={"ends": (1000, 3000, 10_000, 30_000, 100_000)},
)
def average_condition(at: Trial, ends: tuple[int, ...]) -> Evidence:
    """The average is efficient for K = o(T^(2 alpha - 1)): where Hessians differ it is off by beta times the mean step,
    of the order T^-alpha, which is of the order of its standard error at K = T^(2 alpha - 1)."""
    of, T = Ring(8), np.array([1e5, 1e10])
    beta, order = at.given(of.beta()), gr.theory.largest_network(10_000, alpha=0.6, estimator="average").order
    found = np.array([biases(of, alpha, ends)["average"] for alpha in (0.6, 0.8)])
    errors = {
        power: np.sqrt(T * T**power) * of.beta() * mean_step(T, 0.6) / of.spread() for power in (order, order - 0.1)
    }
    at_order, below = (each[1] / each[0] for each in errors.values())
    alphas, T = np.repeat((0.6, 0.8), len(ends)), np.tile(ends, 2)
    return Evidence.of(
        equal("bias over the mean step at the largest T, alpha = .6, .8", found[:, -1], beta, 1.25, "ratio"),
        equal("bias in standard errors at K = T^(2 alpha - 1), T = 1e10 over T = 1e5, alpha = .6", at_order, 1.0, 0.25),
        at_most("the same at K = T^(2 alpha - 1.1)", below, 0.75),
        table=rows({"alpha": alphas, "T": T, "bias over the mean step": found.ravel(), "beta": beta}),
    )


@claim(
    "consensus.thm5-condition",
    "Theorem 5",
    stated="K = o(T)",
    perturbation=0.5,
    experiment=True,
    quick={"ends": (300, 1000, 3000)},
    full={"ends": (300, 1000, 3000, 10_000, 30_000)},
)
def one_step_condition(at: Trial, ends: tuple[int, ...]) -> Evidence:
    """The one-step estimator with alpha = 1 is efficient as long as K = o(T).

    Correction (substance): K = o(T/log^2 T): where Hessians differ it is off by beta times the mean step, D log(T)/T,
    so that at K = T/log(T) the bias in standard errors grows like log(T)^(1/2); with equal Hessians beta = 0.
    """
    of, T = Ring(8), np.array([1e4, 1e8, 1e16, 1e32])
    found, beta = biases(of, 1.0, ends)["one-step"], at.given(of.beta())
    twice = biases(Ring(8, 2), 1.0, ends[:1])["one-step"]
    errors = {
        power: np.sqrt(T * T / np.log(T) ** power) * of.beta() * mean_step(T, 1.0) / of.spread() for power in (1.0, 3.0)
    }
    first, third = (np.abs(each) for each in errors.values())
    return Evidence.of(
        at_most("bias in standard errors at K = T/log T, T = 1e32 over T = 1e8", errors[1.0][-1] / errors[1.0][1], 1.0),
        corrected=[
            equal("bias over the mean step", found, beta, 1.1, "ratio"),
            equal("the same with two clients of each kind", twice, found[:1], 1e-6),
            at_most("bias at K = T/log^3 T, T = 1e32 over T = 1e8", errors[3.0][-1] / errors[3.0][1], 0.8),
        ],
        table=rows({"T": T, "bias in standard errors at K = T/log T": first, "at K = T/log^3 T": third}),
    )


@claim(
    "consensus.thm6-sparse",
    "Theorem 6",
    stated="K = o(T^(1/(6q + 1)))",
    perturbation=0.6,
    experiment=True,
    quick={"rings": (8, 16), "T": 1000, "sizes": (32, 64, 128, 256)},
    full={"rings": (8, 16, 32), "T": 30_000, "sizes": (32, 64, 128, 256, 512)},
)
def sparse(at: Trial, rings: tuple[int, ...], T: int, sizes: tuple[int, ...]) -> Evidence:
    """Where the spectral gap closes as K^-q the one-step estimator (tau = alpha = 1) is efficient for K = o(T^(1/(6q +
    1))). On rings, q = 2, beta grows as K^2, so that its bias vanishes for K = o(T^(1/5)), up to logarithms: the
    condition is sufficient, and more than this bias asks for.

    Part: Of the efficiency the order of the bias alone is computed; the normality of the estimator is not.
    """
    found = np.array([biases(Ring(K), 1.0, (T,))["one-step"][0] for K in rings])
    beta = np.array([Ring(K).beta() for K in sizes])
    p = slope(sizes, np.abs(beta))
    q = float(gr.theory.sparseness_exponent(nx.cycle_graph, sizes))
    return Evidence.of(
        equal(
            "bias over the mean step, rings", found, at.given(np.array([Ring(K).beta() for K in rings])), 1.25, "ratio"
        ),
        equal("exponent of K in beta, and q", p, q, 0.05, "absolute"),
        equal("order of K by the library, q = 2", gr.theory.largest_network(10_000, exponent=2.0).order, 1.0 / 13.0),
        equal("order of K at which the bias vanishes", 1.0 / (2.0 * p + 1.0), 0.2, 0.01, "absolute"),
        table=rows({"K": sizes, "beta": beta}),
    )
