"""The coverage of 95% regions of decentralised runs, where the theory applies and where it fails.

All replications of a cell run at once, as copies of the network side by side: the library's own steps on a local view
whose graph has one component per copy.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy.optimize import root

import graphreg as gr
from graphreg.distributed import InProcess
from graphreg.form.building import build
from graphreg.inference.decentralised import region_of
from graphreg.network.arcs import arcs_of
from graphreg.network.ledger import Ledger
from graphreg.network.view import LocalView, WholeGraph
from graphreg.terms.calculus import Model

D = 3  # coefficients
AT_ONCE = 1_500_000  # samples that are in memory at once
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


def runs(network: Network, method: Any, rounds: int, replications: int, start: Any, seed: int = 1) -> Any:
    """The findings of each replication, one after the other."""
    at_once = max(AT_ONCE // (network.nodes * network.samples), 1)
    rng = np.random.default_rng([seed, network.seed])
    for first in range(0, replications, at_once):
        copies = min(at_once, replications - first)
        form = network.draw(copies, rng)
        whole = WholeGraph(network.nodes, network.nodes, np.arange(form.n), np.full(form.n, True))
        engine = Copies(Ledger(arcs_of(form), form.labels), copies)
        state = method.init(
            LocalView(form, engine, seed + first, whole), (np.broadcast_to(start, form.shape).copy(), None)
        )
        for _ in range(rounds):
            state = method.step(state)
        got = method.gathered(state)
        for k in range(copies):
            rows = slice(k * network.nodes, (k + 1) * network.nodes)
            yield {name: each[rows] if isinstance(each, np.ndarray) else each for name, each in got.items()}


@dataclass(frozen=True)
class Cell:
    """A network, a method and where it starts; what is ``asked`` of the estimators by name. Cells of one network
    see the same samples, so that what they find is off together."""

    what: str
    network: Network
    method: Any
    asked: dict[str, Any]
    start: Any = 1.0
    replications: int = 500


def cover(cell: Cell) -> list[dict[str, Any]]:
    """By estimator how often the 95% region held the truth, with the mean estimated biases in standard errors."""
    truth, names = cell.network.truth(), pd.Index([f"x{j}" for j in range(D)])
    start = truth if isinstance(cell.start, str) else cell.start
    held: dict[str, list[bool]] = {estimator: [] for estimator in cell.asked}
    shifts: list[dict[str, float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gr.errors.MethodWarning)
        for got in runs(cell.network, cell.method, cell.network.samples, cell.replications, start):
            region = region_of(names, got, "one-step", cell.method.name)
            shifts.append(dict(region.shifts))
            for estimator, inside in held.items():
                inside.append(_estimate(estimator, region, got, cell.method.name).contains(truth))
    biases = {name: float(np.mean([each[name] for each in shifts])) for name in shifts[0]}
    rows: list[dict[str, Any]] = []
    for estimator, inside in held.items():
        row = {"K": cell.network.nodes, "T": cell.network.samples, "setting": cell.what, "estimator": estimator}
        se = np.sqrt(0.05 * 0.95 / len(inside))
        rows.append({**row, "asked": cell.asked[estimator], "found": float(np.mean(inside)), "s.e.": se, **biases})
    return rows


def _estimate(estimator: str, region: Any, got: Any, method: str) -> Any:
    """The region of an estimator: those of the library, and two that show what a part of them is worth."""
    if estimator == "average":
        return region_of(region.estimate.index, got, "average", method)
    if estimator == "one-step, as if in a single pass":
        return region_of(
            region.estimate.index, {**got, "replacement": 0, "passes": np.ones(len(got["passes"]))}, "one-step", method
        )
    if estimator == "one-step + consensus shift":
        H = got["hessian"].sum(axis=0)
        pulled = np.einsum("kij,kj->i", got["hessian"], got["mean"])
        shift = np.linalg.solve(H, pulled) - got["mean"].mean(axis=0)
        return replace(region, estimate=region.estimate + shift)
    return region


def _method(kind: Any, step: Any = None, **options: Any) -> Any:
    """A single pass by default; samples are drawn independently, so that their order does not matter."""
    plain = {"batch": 1, "replacement": False, "shuffle": False, "hessian_samples": 100}
    return kind(step or gr.DecreasingStep(), **{**plain, **options})


def _steps(K: int, D: float, gamma: float, alpha: float) -> Any:
    """In the units of the mean over the nodes, as the experiments of the paper have them."""
    return gr.DecreasingStep(D / K, gamma, alpha)


BOTH = {"one-step": 0.95, "average": 0.95}
ONE = {"one-step": 0.95}
TEN, TWICE = Network(), Network(samples=2000)
LOGISTIC = Network(family="logistic")
UNEVEN = Network(nodes=50, scales=0.5, neighbours=10)


def _applies() -> list[Cell]:
    diffusion, tracking = gr.ExactDiffusion, gr.GradientTracking
    eight, uneven = _method(diffusion, _steps(10, 2, 20, 0.8)), _steps(50, 2, 20, 0.8)
    fitted = _method(diffusion, _steps(10, 8, 20, 0.8), burn_in=200)
    return [
        Cell("linear, ExactDiffusion, alpha 0.8", TEN, eight, ONE),
        Cell("linear, ExactDiffusion, alpha 1", TEN, _method(diffusion, _steps(10, 2.5, 20, 1.0)), ONE),
        Cell("linear, GradientTracking, alpha 0.8", TEN, _method(tracking, _steps(10, 2, 20, 0.8)), ONE),
        _as_run("linear", TEN),
        _as_run("logistic", LOGISTIC),
        _as_run("logistic", replace(LOGISTIC, samples=2000)),
        Cell("logistic, ExactDiffusion, alpha 0.8, burn-in", LOGISTIC, fitted, ONE, replications=1000),
        Cell("linear, scales, ExactDiffusion, alpha 0.8", UNEVEN, _method(diffusion, uneven), ONE),
        Cell("linear, scales, GradientTracking, alpha 0.8", UNEVEN, _method(tracking, uneven), ONE),
        Cell("linear, alpha 0.8, from the optimum", TWICE, eight, BOTH, "optimum"),
    ]


def _as_run(family: str, network: Network) -> Cell:
    """With the options that estimate() takes by default."""
    method = _method(gr.ExactDiffusion, hessian_samples=300, burn_in=network.samples // 5)
    return Cell(f"{family}, as estimate() runs it", network, method, BOTH, start=0.0, replications=1000)


def _fails() -> list[Cell]:
    diffusion, local = gr.ExactDiffusion, gr.LocalSGD
    eight, six, far = _steps(10, 2, 20, 0.8), _steps(10, 1, 50, 0.6), _steps(50, 2, 20, 0.8)
    low = "below 0.95 (note: 0.00)"
    drift = {"one-step": low, "average": low, "one-step + consensus shift": 0.95}
    kept, fitted = _method(diffusion, hessian_samples=300), _method(diffusion, _steps(10, 8, 20, 0.8))
    again = {"one-step": 0.95, "one-step, as if in a single pass": 0.73}
    return [
        Cell("from far, alpha 0.8", TEN, _method(diffusion, eight), {"average": 0.91}),
        Cell("from far, alpha 0.6", TEN, _method(diffusion, six), {"one-step": 0.95, "average": 0.84}),
        Cell("logistic, as estimate() but no burn-in", LOGISTIC, kept, ONE, start=0.0, replications=1000),
        Cell("logistic, as estimate() but no burn-in", replace(LOGISTIC, samples=4000), kept, ONE, start=0.0),
        Cell("logistic, ExactDiffusion, alpha 0.8", LOGISTIC, fitted, ONE, replications=1000),
        Cell("Hessian of 2 samples per node", TEN, _method(diffusion, eight, hessian_samples=2), {"one-step": 0.78}),
        Cell("as many draws with replacement", TEN, _method(diffusion, eight, replacement=True), again),
        Cell("scales, LocalSGD, tau 1", UNEVEN, _method(local, far), drift),
        Cell("scales, LocalSGD, tau 5", UNEVEN, _method(local, far, tau=5), {**drift, "one-step": 0.0}),
    ]


def study_where_the_theory_applies() -> pd.DataFrame:
    """Coverage of 95% regions in a single pass, of the one-step estimator and, after a burn-in or from a start at the
    optimum, of the average. Nodes have coefficients of their own; in the cells with scales their Hessians differ too.
    Asked: 0.95 up to three standard errors (0.03, or 0.021 of 1000 replications)."""
    return pd.DataFrame([row for cell in _applies() for row in cover(cell)])


def study_where_it_fails() -> pd.DataFrame:
    """Coverage where an assumption is broken, beside what the note on the paper found in settings of that kind (its
    data are others, and so are its numbers: what is to be seen is which fail): an average from far away; logistic
    losses without a burn-in, whose bias of second order falls faster than the standard error; local SGD where Hessians
    differ; a Hessian of two samples per node; samples drawn with replacement, with and without their own error (without
    it half of the variance is missing, which leaves 0.73 of the probability)."""
    return pd.DataFrame([row for cell in _fails() for row in cover(cell)])
