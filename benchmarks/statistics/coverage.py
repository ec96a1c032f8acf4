"""How often 95% regions of decentralised runs hold the truth, where the theory applies and where it fails.

All replications of a cell run at once, as copies of the network side by side: the library's own steps on a site whose
graph has one component per copy.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy.optimize import root

import graphreg as gr
from graphreg.building import build
from graphreg.engines import InProcess
from graphreg.inference.decentralised import region_of
from graphreg.lowering.arcs import arcs_of
from graphreg.lowering.site import Site, WholeGraph
from graphreg.methods.ledger import Ledger
from graphreg.terms.calculus import Model

D = 3  # coefficients
AT_ONCE = 400_000  # samples that are in memory at once
HERMITE = np.polynomial.hermite_e.hermegauss(60)


class Copies(InProcess):
    """Sums over the nodes are those of one copy, in the mean over the copies: steps that follow from the data are the
    same for all of them."""

    def __init__(self, ledger: Ledger, copies: int) -> None:
        super().__init__(ledger)
        self.copies = copies

    def reduce(self, values: Any, purpose: str = "adaptation") -> Any:
        return super().reduce(values, purpose) / self.copies


@dataclass(frozen=True)
class Network:
    """K nodes with coefficients of their own about theta and covariates of their own scales, normal and independent;
    targets are linear with noise of variance 1, or logistic. ``spread`` and ``scales`` are standard deviations of the
    coefficients and of the logarithms of the scales; all of them are fixed, only samples are drawn anew."""

    nodes: int = 10
    samples: int = 1000
    family: str = "linear"
    spread: float = 0.5
    scales: float = 0.0
    neighbours: int = 4
    seed: int = 0

    def fixed(self) -> tuple[Any, Any]:
        """Coefficients and scales of the covariates of all nodes, (K, d) each."""
        rng = np.random.default_rng(self.seed)
        coef = np.linspace(-0.5, 1.0, D) + self.spread * rng.standard_normal((self.nodes, D))
        scale = np.exp(self.scales * rng.standard_normal((self.nodes, D)))
        return coef, scale / np.sqrt(np.mean(scale**2, axis=0))

    def truth(self) -> Any:
        """The minimiser of the expected loss. E x s(x'b) = Sigma b E s'(x'b) for normal x (Stein), s the mean of the
        target given the predictor."""
        coef, scale = self.fixed()

        def pull(b: Any) -> Any:
            sd = np.sqrt(np.sum((scale * b) ** 2, axis=-1))
            return scale**2 * b * self._slope(sd)[:, None]

        goal = pull(coef).sum(axis=0)
        found = root(lambda b: pull(np.tile(b, (self.nodes, 1))).sum(axis=0) - goal, coef.mean(axis=0), tol=1e-13)
        assert np.abs(found.fun).max() < 1e-9 * self.nodes
        return found.x

    def _slope(self, sd: Any) -> Any:
        """E s'(sd Z), Z standard normal."""
        if self.family == "linear":
            return np.ones_like(sd)
        x, weight = HERMITE
        p = 1.0 / (1.0 + np.exp(-sd[:, None] * x))
        return (p * (1.0 - p)) @ weight / weight.sum()

    def draw(self, copies: int, rng: Any) -> Any:
        """The form of so many copies, and their site."""
        coef, scale = (np.tile(each, (copies, 1)) for each in self.fixed())
        n = copies * self.nodes
        X = scale[:, None, :] * rng.standard_normal((n, self.samples, D))
        y = np.einsum("kmd,kd->km", X, coef)
        if self.family == "linear":
            y += rng.standard_normal(y.shape)
        else:
            y = (rng.random(y.shape) < 1.0 / (1.0 + np.exp(-y))).astype(float)
        data = gr.NodeData.from_arrays(X.reshape(-1, D), y.ravel(), np.repeat(np.arange(n), self.samples))
        loss = gr.SquaredLoss(data) if self.family == "linear" else gr.LogisticLoss(data)
        one = nx.circulant_graph(self.nodes, range(1, self.neighbours // 2 + 1))
        model: Model = loss + gr.TotalVariation(nx.disjoint_union_all([one] * copies), gr.Zero())
        return build(model)


def runs(network: Network, method: Any, rounds: int, replications: int, start: float, seed: int = 1) -> Any:
    """What each replication has gathered, one after the other."""
    at_once = max(AT_ONCE // (network.nodes * network.samples), 1)
    rng = np.random.default_rng([seed, network.seed])
    for first in range(0, replications, at_once):
        copies = min(at_once, replications - first)
        form = network.draw(copies, rng)
        whole = WholeGraph(network.nodes, network.nodes, np.arange(form.n), np.full(form.n, True))
        engine = Copies(Ledger(arcs_of(form), form.labels), copies)
        state = method.init(Site(form, engine, seed + first, whole), (np.full(form.shape, start), None))
        for _ in range(rounds):
            state = method.step(state)
        got = method.gathered(state)
        for k in range(copies):
            rows = slice(k * network.nodes, (k + 1) * network.nodes)
            yield {name: each[rows] if isinstance(each, np.ndarray) else each for name, each in got.items()}


def cover(
    network: Network, method: Any, rounds: int | None = None, replications: int = 500, start: float = 1.0
) -> dict[str, Any]:
    """By estimator how often the 95% region held the truth, and the mean estimated biases in standard errors."""
    truth, names = network.truth(), pd.Index([f"x{j}" for j in range(D)])
    held: dict[str, list[bool]] = {"one-step": [], "average": []}
    shifts: list[dict[str, float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gr.errors.MethodWarning)
        for got in runs(network, method, rounds or network.samples, replications, start):
            for estimator, inside in held.items():
                region = region_of(names, got, estimator, method.name)
                inside.append(region.contains(truth))
            shifts.append(dict(region.shifts))  # pyright: ignore[reportPossiblyUnbound]  (there are two estimators)
    means = {name: float(np.mean([each[name] for each in shifts])) for name in shifts[0]}
    return {**{name: float(np.mean(inside)) for name, inside in held.items()}, **means}
