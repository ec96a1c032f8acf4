"""Section VI-A: high-dimensional linear regression, Table I and Figure 2."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from scipy.stats import t

import graphreg as gr

from .. import Check, Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, grid, rows
from ..figures import curve, mark
from ._networks import Array, LinearModels, algorithm_1, block_model, in_order

LAM, P_IN, P_OUT, NOISE = 1e-2, 0.5, 1e-2, 1e-3
STATED = {"Algorithm 1": 1.42e-5, "IFCA": 2.82, "FedAvg": 2.86}


def _drawn(rng: np.random.Generator, sizes: tuple[int, ...], d: int, m: int) -> LinearModels:
    """Parameters of {0, 0.5}^d for each cluster."""
    centres = 0.5 * rng.integers(0, 2, (len(sizes), d))
    truth = np.repeat(centres, sizes, axis=0).astype(float)
    return LinearModels.drawn(rng, block_model(rng, sizes, P_IN, P_OUT), truth, m, NOISE)


def _fitted(problem: gr.Problem, method: Any, rounds: int) -> Array:
    """The parameters that a baseline has after so many rounds, or earlier where its own gap is closed."""
    run = problem.solve(method, rounds=rounds, gap=1e-9, seed=0, on_failure="return")
    return in_order(problem, run.coef)


# ---- Table I ---------------------------------------------------------------------------------------------------------
READINGS = {"l1": ("l1", None), "l2": ("l2", None), "l1, sums": ("l1", 2.0)}  # the penalty, and the scale of the losses


def _table_1(rng: np.random.Generator, *, size: int, d: int, m: int, rounds: int) -> dict[str, Any]:
    net = _drawn(rng, (size, size), d, m)
    out = dict[str, Any]()
    for name, (penalty, scale) in READINGS.items():
        w = algorithm_1(net.problem(penalty, LAM, scale), rounds)
        out[name] = {"MSE (39)": net.mse(w), "labels": net.label_error(w)}
    problem = net.problem("l2", LAM)
    methods = {"FedAvg": gr.FedAvg(), "IFCA from 0": gr.IFCA(2, starts=1, start="zero"), "IFCA": gr.IFCA(2)}
    for name, method in methods.items():
        w = _fitted(problem, method, rounds)
        out[name] = {"MSE (39)": net.mse(w), "labels": net.label_error(w)}
    out["quarter"] = float(((net.truth[0] - net.truth[-1]) ** 2).sum() / 4.0)
    return out


def one_more_draw(what: str, draws: Sequence[float], stated: float) -> Check:
    """A check whether the stated number can be one more of the draws: its logarithm lies in their 99% prediction
    interval, mean +- t_(n-1) s (1 + 1/n)^(1/2) with s their standard deviation. So the tolerance is what the draws
    leave open."""
    logs = np.log(draws)
    error, most = logs.std(ddof=1) * np.sqrt(1.0 + 1.0 / len(logs)), t.ppf(0.995, len(logs) - 1)
    return equal(
        f"log MSE, {what} (a factor of {np.exp(most * error):.2g} each way)",
        logs.mean(),
        np.log(stated),
        float(most),
        error=error,
    )


@claim(
    "gtv.table1",
    "Table I",
    stated=STATED,
    perturbation=100.0,
    experiment=True,
    quick={"size": 100, "d": 100, "m": 10, "rounds": 1000, "count": 3},
    minutes=5.0,
    full={"size": 100, "d": 100, "m": 10, "rounds": 1000, "count": 20},
)
def table_1(at: Trial, size: int, d: int, m: int, rounds: int, count: int) -> Evidence:
    """Two clusters of 100 nodes, d = 100, m = 10, p_in = 0.5, p_out = 0.01, noise 1e-3, lambda = 0.01, 1000 rounds: the
    MSE (39) of Algorithm 1, IFCA and FedAvg.

    Correction (substance): 1.42e-5 is met with the l1 norm and sums of squared errors in place of the means (38), which
    give an MSE a hundred times as large: with sums it lies in the 99% prediction interval of one more draw. FedAvg is
    the pooled fit, ||w_1 - w_2||^2 / 4 off. IFCA's 2.82 is its failure from equal starts, where in most draws it fits
    one model to nearly all; from random starts it is better than Algorithm 1. How wide the intervals are is beside
    them: with the 3 draws of the scale quick a factor of 14 each way for the first, so that the scale full decides.
    """
    [runs] = at.replicate(_table_1, [{"size": size, "d": d, "m": m, "rounds": rounds}], count)
    errors = {name: [run[name]["MSE (39)"] for run in runs] for name in runs[0] if name != "quarter"}
    over = [found / run["quarter"] for found, run in zip(errors["FedAvg"], runs, strict=True)]
    failures = sum(found > 0.5 * run["quarter"] for found, run in zip(errors["IFCA from 0"], runs, strict=True))
    excess = (d + 1.0) / (2.0 * size * m)  # of the pooled fit's own error beside it, to first order
    first, ifca, fed_avg = STATED["Algorithm 1"], STATED["IFCA"], STATED["FedAvg"]
    return Evidence.of(
        one_more_draw("Algorithm 1, l1", errors["l1"], first),
        one_more_draw("Algorithm 1, l2", errors["l2"], first),
        one_more_draw("IFCA, random starts", errors["IFCA"], ifca),
        corrected=[
            one_more_draw("Algorithm 1, l1, sums of squared errors", errors["l1, sums"], at.given(first)),
            one_more_draw("FedAvg", errors["FedAvg"], at.given(fed_avg)),
            one_more_draw("FedAvg, beside IFCA as stated", errors["FedAvg"], at.given(ifca)),
            at_least("draws in which IFCA from 0 is nearer to FedAvg than to the truth", failures, 1.0),
            at_least("FedAvg over ||w_1 - w_2||^2 / 4, every draw", over, 1.0),
            at_most("the same: 1 and twice the first-order error of the fit", over, 1.0 + 2.0 * excess),
            at_most("IFCA, random starts, every draw, and Algorithm 1 as stated", errors["IFCA"], first),
        ],
        table=[
            {
                "method": name,
                "MSE (39), median": float(np.median(values)),
                "least": min(values),
                "largest": max(values),
                "labels, median": float(np.median([run[name]["labels"] for run in runs])),
            }
            for name, values in errors.items()
        ],
    )


# ---- Figure 2 --------------------------------------------------------------------------------------------------------
METHODS = ("Algorithm 1", "Algorithm 1, sums", "IFCA", "C_FedAvg", "FedAvg")


def _several(rng: np.random.Generator, *, k: int, size: int, d: int, m: int, rounds: int) -> dict[str, Any]:
    net = _drawn(rng, (size,) * k, d, m)
    problem = net.problem("l1", LAM)
    clusters: dict[Hashable, int] = {i: i // size for i in range(k * size)}
    methods = {"IFCA": gr.IFCA(k), "C_FedAvg": gr.ClusteredFedAvg(clusters), "FedAvg": gr.FedAvg()}
    found = {name: net.mse(_fitted(problem, method, rounds)) for name, method in methods.items()}
    sums = net.mse(algorithm_1(net.problem("l1", LAM, 2.0), rounds))
    return {"Algorithm 1": net.mse(algorithm_1(problem, rounds)), "Algorithm 1, sums": sums, **found}


def _draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots()
    for name, values in data["curves"].items():
        curve(axes, data["k"], values, name)
    mark(axes, [2, 2, 2], list(STATED.values()), "stated in Table I (k = 2, d = 100)")
    axes.set_xticks(data["k"])
    axes.set(xlabel="number of clusters, k", ylabel="MSE (39)", yscale="log")
    figure.legend(ncols=3, loc="outside lower center")


@claim(
    "gtv.fig2",
    "Figure 2",
    stated="curves without printed numbers, MSE from 1e-6 to 1",
    experiment=True,
    quick={"k": (2, 4), "size": 30, "d": 30, "m": 5, "rounds": 1000, "count": 2},
    minutes=100.0,
    full={"k": tuple(range(2, 11)), "size": 100, "d": 100, "m": 10, "rounds": 2000, "count": 5},
    figure=_draw,
)
def several_clusters(at: Trial, k: Any, size: int, d: int, m: int, rounds: int, count: int) -> Evidence:
    """The model of Table I with k = 2 to 10 clusters, 2000 rounds: the MSE (39) of Algorithm 1 lies far below that of
    FedAvg for every k, and above that of FedAvg with known clusters, the benchmark. (Ours: IFCA, another curve of the
    figure, is from random starts better than Algorithm 1 by a factor of 100 and more.)"""
    runs = at.replicate(_several, grid(k=k, size=size, d=d, m=m, rounds=rounds), count)
    curves = {name: column(runs, name) for name in METHODS}
    means = {name: values.mean(axis=1) for name, values in curves.items()}
    return Evidence.of(
        at_most("Algorithm 1 over FedAvg, by k", means["Algorithm 1"] / means["FedAvg"], 0.1),
        at_most("with sums of squared errors", means["Algorithm 1, sums"] / means["FedAvg"], 0.001),
        at_least("Algorithm 1 over FedAvg with known clusters", means["Algorithm 1"] / means["C_FedAvg"], 1.0),
        at_least("Algorithm 1 over IFCA from random starts", means["Algorithm 1"] / means["IFCA"], 100.0),
        table=rows({"k": k, **means}),
        data={"k": list(k), "curves": curves},
    )
