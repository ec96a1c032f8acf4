"""The experiments' design, networks, and runs of the library's methods on copies of a network side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr
from graphreg.form import Form
from graphreg.network import InProcess, Ledger, LocalView, WholeGraph, arcs_of

Array = np.ndarray[Any, np.dtype[Any]]
PLAIN: dict[str, Any] = {
    "batch": 1,
    "replacement": False,
    "shuffle": False,
}  # a single pass through independent samples
D, GAMMA = {1.0: 2.5, 0.8: 2.0, 0.6: 1.0}, {1.0: 20.0, 0.8: 20.0, 0.6: 50.0}  # by alpha; the text gives none


def steps(alpha: float) -> gr.DecreasingStep:
    """eta_t = D (t + 1 + gamma)^-alpha with a first step of .09 to .18 in units of the curvature 1."""
    return gr.DecreasingStep(D[alpha], GAMMA[alpha], alpha)


def network(K: int, neighbours: int) -> nx.Graph[int]:
    """Nodes k and k' are connected where |k - k'| <= neighbours/2 or >= K - neighbours/2 (section 5)."""
    pairs = ((k, j) for k in range(K) for j in range(k) if k - j <= neighbours / 2 or k - j >= K - neighbours / 2)
    graph: nx.Graph[int] = nx.empty_graph(K)
    graph.add_edges_from(pairs)
    return graph


def matrix(graph: Any) -> Array:
    """C of a graph, as the methods for a consensus have it."""
    return gr.theory.mixing_matrix(graph).to_numpy()


# ---- the design ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Design:
    """Section 5: y = (1, X')phi_k + eps, X standard normal in d - 1 dimensions, eps ~ Gamma(1, 1) - 1, w_k = 1/K.

    Attributes
    ----------
    nodes, samples : int
        K, and n_k of every client.
    gap : float
        delta: phi_kj = delta (k - 1 - (K - 1)/2), so that theta* = 0.
    neighbours : int
    scales : float
        Standard deviation of the logarithms of the covariates' scales, which differ between clients and coordinates;
        0 in the paper.
    d : int
    """

    nodes: int
    samples: int
    gap: float = 0.2
    neighbours: int = 4
    scales: float = 0.0
    d: int = 6

    @property
    def phi(self) -> Array:
        """phi_k, (K, d)."""
        return np.tile(self.gap * (np.arange(self.nodes) - (self.nodes - 1) / 2.0)[:, None], self.d)

    @property
    def scale(self) -> Array:
        """Of the covariates (1, X), (K, d); of mean square 1 in every coordinate."""
        rng = np.random.default_rng(0)
        scale = np.exp(self.scales * rng.standard_normal((self.nodes, self.d)))
        return scale / np.sqrt((scale**2).mean(axis=0))

    @property
    def truth(self) -> Array:
        """theta*: 0 but for scales; H_k is diagonal, with the squares of the scales."""
        return (self.scale**2 * self.phi).mean(axis=0)

    def problem(self, rng: np.random.Generator, copies: int = 1) -> gr.Problem:
        """sum_k w_k F_k on copies of the network, each with samples of its own; tied within each."""
        K, m, d = self.nodes, self.samples, self.d
        X = rng.standard_normal((copies, K, m, d))
        X[..., 0] = 1.0
        X *= self.scale[:, None]
        y = np.einsum("ckmd,kd->ckm", X, self.phi) + rng.exponential(size=(copies, K, m)) - 1.0
        n = copies * K
        data = gr.NodeData.from_arrays(X.reshape(n * m, d), y.ravel(), np.repeat(np.arange(n), m))
        graph = nx.disjoint_union_all([network(K, self.neighbours)] * copies)
        return gr.Problem(gr.SquaredLoss(data, scale=1.0 / (K * m)) + gr.TotalVariation(graph, gr.Zero()))

    @property
    def noise(self) -> float:
        """The mean over the clients of tr S_k at theta* (scales 0): E|x'v - eps|^2 |x|^2 - |v|^2, v = theta* - phi_k,
        x = (1, X), is (|v|^2 - v_1^2)(d + 2) + v_1^2 d + d - |v|^2."""
        v = self.truth - self.phi
        first, rest = v[:, 0] ** 2, (v[:, 1:] ** 2).sum(axis=1)
        return float((first * self.d + rest * (self.d + 2) + self.d - first - rest).mean())


def samples_of(problem: gr.Problem) -> tuple[Array, Array]:
    """X (samples, d) and y (samples,) of a problem, node by node."""
    [block] = problem.form.samples
    assert block.X is not None
    return np.asarray(block.X), np.asarray(block.y)


# ---- runs ------------------------------------------------------------------------------------------------------------
class Copies(InProcess):
    """Sums over the nodes are those of one copy, in the mean over the copies."""

    def __init__(self, ledger: Ledger, copies: int) -> None:
        super().__init__(ledger)
        self.copies = copies

    def reduce(self, values: Any, purpose: str = "adaptation") -> Any:
        return super().reduce(values, purpose) / self.copies


def view_of(form: Form, copies: int, seed: int) -> LocalView:
    """The view of a form that is ``copies`` networks side by side, each of which knows of itself alone."""
    n = form.n // copies
    whole = WholeGraph(n, n, np.arange(form.n), np.full(form.n, True))
    return LocalView(form, Copies(Ledger(arcs_of(form), form.labels), copies), seed, whole)


def run(
    problem: gr.Problem, copies: int, method: Any, rounds: int, start: Any, seed: int = 0, at: Iterable[int] = ()
) -> tuple[dict[str, Array], dict[int, Array]]:
    """The sums of all copies after so many rounds, and theta (copies, K, d) after the rounds ``at``."""
    view, look, seen = view_of(problem.form, copies, seed), set(at), dict[int, Array]()
    shape = (copies, view.n_nodes, problem.form.d)
    theta = np.broadcast_to(np.asarray(start, dtype=float), shape).reshape(problem.form.shape).copy()
    state = method.init(view, (theta, None))
    for t in range(rounds):
        if t in look:
            seen[t] = state.theta.reshape(shape)
        state = method.step(state)
    if rounds in look:
        seen[rounds] = state.theta.reshape(shape)
    got = method.gathered(state)
    per_copy = {
        name: each.reshape(copies, -1, *each.shape[1:]) for name, each in got.items() if isinstance(each, np.ndarray)
    }
    return per_copy, seen


def consensus_error(theta: Array) -> Array:
    """(1/K) sum_k |theta_k - mean|^2 of each copy."""
    return ((theta - theta.mean(axis=1, keepdims=True)) ** 2).sum(axis=2).mean(axis=1)


def normalised(got: Mapping[str, Array], T: int, truth: Array) -> dict[str, Array]:
    """Of the one-step estimator (14) and the Polyak-Ruppert average ("average") in each copy: T K off' Sigma^-1 off, as
    in (13), Sigma = H^-1 S H^-1 with the estimates (12) of H and S. The library's gradients and Hessians are those of
    w_k f_k, so that S/K = sum_k of their covariances."""
    H, noise = got["hessian"].sum(axis=1), got["gradient_covariance"].sum(axis=1)
    average = got["mean"].mean(axis=1)
    step = np.linalg.solve(H, got["gradient_mean"].sum(axis=1)[..., None])[..., 0]
    out: dict[str, Array] = {}
    for name, estimate in (("one-step", average - step), ("average", average)):
        pulled = np.einsum("cij,cj->ci", H, estimate - truth)
        out[name] = T * np.einsum("ci,ci->c", pulled, np.linalg.solve(noise, pulled[..., None])[..., 0])
    return out
