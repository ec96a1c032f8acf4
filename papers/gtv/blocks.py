"""Sections VI-A and IX-B: stochastic block models with two parameters at each node."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, grid, rows
from ..figures import curves
from ._networks import PENALTIES, LinearModels, algorithm_1, block_model
from ._pictures import panels, series

TRUTH = ((2.0, 2.0), (-2.0, 2.0))
COVARIANCES = (((2.54, 0.41), (0.41, 0.51)), ((2.21, -0.81), (-0.81, 0.97)))
LAM, P_IN = 1e-2, 0.5


def _truth(sizes: Any) -> Any:
    return np.repeat(TRUTH, sizes, axis=0)


def _run(
    rng: np.random.Generator, *, penalty: str, p_out: float, rho: float, sigma: float, size: int, rounds: int
) -> dict[str, float]:
    net = LinearModels.drawn(rng, block_model(rng, (size, size), P_IN, p_out), _truth(size), 5, sigma, rho)
    return {"mse": net.mse(algorithm_1(net.problem(penalty, LAM), rounds))}


def _draw(end: float) -> Any:
    return lambda figure, data: panels(figure, data, "edge probability p_out (1)", end)


@claim(
    "gtv.fig9",
    "Figure 9",
    stated="curves without printed numbers, p_out from 0 to 0.6, MSE from 1e-16 to 1, rho = 0.2, 0.4, 0.6; 3000 rounds",
    experiment=True,
    quick={"size": 50, "rounds": 3000, "count": 2, "p_out": (0.0, 0.01, 0.6), "rho": (0.2, 0.6)},
    full={
        "size": 100,
        "rounds": 3000,
        "count": 5,
        "p_out": (0.0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.6),
        "rho": (0.2, 0.4, 0.6),
    },
    figure=_draw(1e-16),
)
def noiseless(at: Trial, size: int, rounds: int, count: int, p_out: Any, rho: Any) -> Evidence:
    """Stochastic block model, d = 2, no noise, lambda = 0.01: the MSE (39) vanishes without edges between the clusters,
    grows with p_out, and is smaller for the norms than for the squared norm as long as p_out is small."""
    cells = grid(penalty=PENALTIES, rho=rho, p_out=p_out, sigma=0.0, size=size, rounds=rounds)
    table, mean, data = series(cells, at.replicate(_run, cells, count), "rho", "p_out")
    norms = ("l1", "l2")
    return Evidence.of(
        at_most("l1 and l2, p_out = 0: MSE", [mean[p, r, 0.0] for p in norms for r in rho], 1e-8),
        at_most(
            "l1 and l2, p_out = 0.01: MSE over that of the squared norm",
            [mean[p, rho[-1], 0.01] / mean["squared", rho[-1], 0.01] for p in norms],
            0.1,
        ),
        at_least("all, p_out = 0.6: MSE", [mean[p, r, 0.6] for p in PENALTIES for r in rho], 0.1),
        table=table,
        data=data,
    )


@claim(
    "gtv.fig10",
    "Figure 10",
    stated="curves without printed numbers, p_out from 0 to 0.6, MSE from 1e-4 to 1, sigma = 0.01, 0.1, 1; 2000 rounds",
    experiment=True,
    quick={"size": 50, "rounds": 2000, "count": 2, "p_out": (0.01, 0.6), "sigma": (0.01, 1.0)},
    full={"size": 100, "rounds": 2000, "count": 5, "p_out": (0.01, 0.1, 0.2, 0.3, 0.4, 0.6), "sigma": (0.01, 0.1, 1.0)},
    figure=_draw(1e-4),
)
def noisy(at: Trial, size: int, rounds: int, count: int, p_out: Any, sigma: Any) -> Evidence:
    """Stochastic block model, d = 2, rho = 0.6, labels with noise: the MSE (39) grows with the noise and with p_out.
    (Ours leave the printed axis at both ends: about 1e-5 at sigma = p_out = 0.01, 2 to 5 at p_out = 0.6.)"""
    cells = grid(penalty=PENALTIES, sigma=sigma, p_out=p_out, rho=0.6, size=size, rounds=rounds)
    table, mean, data = series(cells, at.replicate(_run, cells, count), "sigma", "p_out")
    return Evidence.of(
        at_most("p_out = 0.01, l1 and l2: MSE at sigma = 0.01 over that at 1", _ratios(mean, "sigma"), 0.5),
        at_most("sigma = 0.01: MSE at p_out = 0.01 over that at 0.6", _ratios(mean, "p_out"), 0.1),
        table=table,
        data=data,
    )


def _ratios(mean: Any, of: str) -> list[float]:
    if of == "sigma":
        return [mean[p, 0.01, 0.01] / mean[p, 1.0, 0.01] for p in ("l1", "l2")]
    return [mean[p, 0.01, 0.01] / mean[p, 0.01, 0.6] for p in PENALTIES]


# ---- clusters with different covariances -----------------------------------------------------------------------------
def _shifted(
    rng: np.random.Generator, *, penalty: str, scale: float, lam: float, size: int, rounds: int
) -> dict[str, float]:
    roots = np.repeat([np.linalg.cholesky(each) for each in COVARIANCES], size, axis=0)
    graph = block_model(rng, (size, size), P_IN, 0.01)
    net = LinearModels.drawn(rng, graph, _truth(size), 5, rho=0.4, roots=roots)
    return {"mse": net.mse(algorithm_1(net.problem(penalty, lam, scale), rounds))}


@claim(
    "gtv.covshift",
    "section IX-B1, end",
    stated={"Algorithm 1": 4.53e-6, "MOCHA": 1.33e-1},
    perturbation=3.0,
    experiment=True,
    quick={"size": 100, "rounds": 3000, "count": 2},
    full={"size": 100, "rounds": 3000, "count": 10},
)
def covariance_shift(at: Trial, size: int, rounds: int, count: int) -> Evidence:
    """Clusters with different covariances of the features, p_in = 0.5, p_out = 0.01, rho = 0.4, no noise: the MSE (39)
    of Algorithm 1 is 4.53e-6, that of MOCHA 1.33e-1.

    Correction (substance): 4.53e-6 is met with sums of squared errors, not with their means (38), which give an MSE
    about twenty times as large. 1.33e-1 is met by neither at lambda = 0.01; means and the lambda = 0.05 of Figures 3
    and 4 come near it, which is a guess.
    """
    mean, total = 2.0 / 5.0, 2.0
    cells = [("l2", mean, LAM), ("l2", total, LAM), ("squared", mean, LAM), ("squared", total, LAM)]
    cells.append(("squared", mean, 0.05))
    of = [{"penalty": p, "scale": s, "lam": v, "size": size, "rounds": rounds} for p, s, v in cells]
    found = dict(zip(cells, column(at.replicate(_shifted, of, count), "mse").mean(axis=1).tolist(), strict=True))

    def compared(what: str, cell: Any, stated: float) -> Any:
        return equal(what, at.given(found[cell]), stated, 2.0, "ratio")

    return Evidence.of(
        compared("l2, means (38)", ("l2", mean, LAM), 4.53e-6),
        compared("squared norm, means (38)", ("squared", mean, LAM), 1.33e-1),
        corrected=[
            compared("l2, sums of squared errors", ("l2", total, LAM), 4.53e-6),
            compared("squared norm, means, lambda = 0.05", ("squared", mean, 0.05), 1.33e-1),
        ],
        table=[
            {"penalty": p, "loss": "mean" if s == mean else "sum", "lambda": v, "MSE": each}
            for (p, s, v), each in found.items()
        ],
    )


# ---- clusters of different sizes -------------------------------------------------------------------------------------
def _unbalanced(
    rng: np.random.Generator, *, penalty: str, second: int, alike: bool, first: int, rounds: int
) -> dict[str, float]:
    truth = _truth((first, second))
    if not alike:
        truth = truth + 1e-3 * rng.standard_normal(truth.shape) / np.linalg.norm(truth, axis=1)[:, None]
    net = LinearModels.drawn(rng, block_model(rng, (first, second), P_IN, 0.01), truth, 5, rho=0.4)
    return {"mse": net.mse(algorithm_1(net.problem(penalty, LAM), rounds))}


def _draw_sizes(figure: Any, data: dict[str, Any]) -> None:
    looks = {
        "xlabel": "nodes of the second cluster, N_2",
        "xticks": data["sizes"],
        "ylabel": "MSE (39)",
        "yscale": "log",
    }
    curves(figure.subplots(), data["sizes"], data["curves"], **looks)


@claim(
    "gtv.fig11",
    "Figure 11",
    stated="curves without printed numbers, N_2 = 50, 100, 150, 200, MSE from 1e-6 to 1e-1, rho = 0.4",
    experiment=True,
    quick={"first": 50, "sizes": (50, 150), "rounds": 3000, "count": 2},
    full={"first": 50, "sizes": (50, 100, 150, 200), "rounds": 3000, "count": 5},
    figure=_draw_sizes,
)
def unbalanced(at: Trial, first: int, sizes: Any, rounds: int, count: int) -> Evidence:
    """Unbalanced clusters of 50 and N_2 nodes, with the same parameters within a cluster or with deviations of 1e-3
    eps_i / ||wbar||: the MSE (39) of Algorithm 1 is below that of MOCHA, and the deviations hardly matter."""
    kinds = [("l2", True), ("l2", False), ("squared", True), ("squared", False)]
    names = ["Algorithm 1 (l2)", "non-iid Algorithm 1 (l2)", "MOCHA", "non-iid MOCHA"]
    same = {"first": first, "rounds": rounds}
    cells = [{"penalty": p, "second": s, "alike": alike, **same} for p, alike in kinds for s in sizes]
    runs = column(at.replicate(_unbalanced, cells, count), "mse").reshape(len(kinds), len(sizes), -1)
    drawn = dict(zip(names, runs, strict=True))
    means = {name: values.mean(axis=1) for name, values in drawn.items()}
    return Evidence.of(
        at_most("Algorithm 1 over MOCHA, by N_2", means[names[0]] / means[names[2]], 0.1),
        at_most("non-iid, the same", means[names[1]] / means[names[3]], 0.1),
        at_most("Algorithm 1, non-iid less iid: MSE", means[names[1]] - means[names[0]], 1e-3),
        at_least("Algorithm 1: MSE, the axis begins at 1e-6", means[names[0]], 1e-6),
        at_most("MOCHA: MSE, the axis ends at 1e-1", means[names[2]], 1e-1),
        table=rows({"N_2": sizes, **means}),
        data={"sizes": list(sizes), "curves": drawn},
    )
