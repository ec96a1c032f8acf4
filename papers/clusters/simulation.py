"""Section 6.1: Figure 1 and Table 1, with exact minimisers and by the simplified Algorithm 1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import graphreg as gr

from .. import Check, Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, optimum, rows, watched
from ..figures import curve, mark
from ._instances import Array
from ._simulation import CLUSTERS, ESTIMATORS, Draw, distances

RUNS = 5  # of the paper
SIZES = (1, 5, 10, 25, 50, 100, 200)
TABLE = {  # m: average, SD and maximum, by estimator in the order of ESTIMATORS
    10: {
        "average": (4.50, 6.11, 4.46, 3.46),
        "SD": (0.981, 0.968, 0.958, 0.689),
        "largest": (8.224, 9.025, 8.112, 8.676),
    },
    100: {
        "average": (0.494, 6.243, 0.494, 0.489),
        "SD": (0.093, 1.003, 0.093, 0.093),
        "largest": (0.768, 9.479, 0.763, 0.748),
    },
}


@claim("clusters.single-cluster", "section 6.1, third baseline")
def single_cluster(at: Trial) -> Evidence:
    """1/n sum_i (1/2 ||X_i theta_i - y_i||^2 + lambda/2 ||theta_i - thetabar||^2) is minimised by theta_i = (X_i'X_i +
    lambda I)^-1 (X_i'y_i + lambda thetabar), with thetabar = (I - lambda/n sum_i (X_i'X_i + lambda I)^-1)^-1 1/n sum_i
    (X_i'X_i + lambda I)^-1 X_i'y_i."""
    lam, found, stated = 0.7, [], []
    for m in (1, 10, 30):
        draw = Draw.drawn(at.rng(m), m, clusters=2)
        n = len(draw.truth)
        one = replace(draw.of, cluster=np.zeros(n, dtype=int), gamma=np.full(n, lam), lam=np.ones(1))
        found.append(optimum(one.problem(np.ones(1))).coef)
        stated.append(draw.single_cluster(at.given(lam)))
    return Evidence.of(equal("theta_i with 1, 10 and 30 samples of 20 parameters", found, stated, 1e-6))


# ---- Figure 1 and Table 1 --------------------------------------------------------------------------------------------
def _by_samples(figure: Any, data: dict[str, Any]) -> None:
    wide, near = figure.subplots(1, 2)
    for name in reversed(ESTIMATORS):  # the paper's own in black
        samples = data["found"][name]
        curve(wide, data["m"], samples, name)
        over = [np.array(each) / best for each, best in zip(samples, data["found"]["hierarchical"], strict=True)]
        if name == "single model":
            near.plot([], [])  # far above the others; its style stays its own
        else:
            curve(near, data["m"], over, name)
    for place in range(len(ESTIMATORS)):
        stated = [TABLE[m]["average"][place] for m in (10, 100)]
        mark(wide, (10, 100), stated, "stated (Table 1)" if not place else "_")
    wide.set(xlabel="samples per client m", ylabel="||theta_hat_i - theta_i||, average", xscale="log")
    near.set(xlabel="samples per client m", ylabel="the same, over that of the hierarchical", xscale="log")
    figure.legend(*wide.get_legend_handles_labels(), ncols=3, loc="outside lower center")


@claim(
    "clusters.fig1",
    "Figure 1",
    stated="consistently outperforms",
    experiment=True,
    quick={"runs": 3},
    full={"runs": 50},
    figure=_by_samples,
)
def by_samples(at: Trial, runs: int) -> Evidence:
    """For m in {1, 5, 10, 25, 50, 100, 200} samples per client the minimiser of (2.1) is nearer to the truth on average
    than local estimates, a single model and a single cluster."""
    draws = at.replicate(distances, [{"m": m} for m in SIZES], runs)
    found = {name: column(draws, f"{name}: average") for name in ESTIMATORS}
    worst = {name: (found["hierarchical"] / found[name]).mean(axis=1).max() for name in ESTIMATORS[:-1]}
    table = rows({"m": SIZES} | {name: each.mean(axis=1) for name, each in found.items()})
    checks = [at_most(f"largest share of the distance of: {name}", share, 1.0) for name, share in worst.items()]
    return Evidence.of(*checks, table=table, data={"m": SIZES, "found": found})


def _column(draws: list[dict[str, Any]], what: str) -> tuple[Array, Array]:
    """Means over the draws by estimator, and the standard errors of their difference from means over the paper's."""
    values = np.array([[draw[f"{name}: {what}"] for name in ESTIMATORS] for draw in draws])
    return values.mean(axis=0), values.std(axis=0, ddof=1) * np.sqrt(1.0 / len(draws) + 1.0 / RUNS)


@claim(
    "clusters.table1", "Table 1", stated=3.46, experiment=True, perturbation=0.3, quick={"runs": 8}, full={"runs": 100}
)
def both_sizes(at: Trial, runs: int) -> Evidence:
    """Average, standard deviation and maximum over the clients of ||theta_hat_i - theta_i||^2, means of 5 runs, at m =
    10 and 100. With m = 10: local 4.50, 0.981, 8.224, single model 6.11, 0.968, 9.025, single cluster 4.46, 0.958,
    8.112, (2.1) 3.46, 0.689, 8.676.

    Correction (misprint): The numbers are norms, not their squares. Of the minimiser of (2.1) the largest distance at m
    = 10 is about 5.77, less than that of each baseline (8.676 may be 5.676), and the average 3.39, 2% less than
    printed.
    """
    printed, corrected, table = list[Check](), list[Check](), list[dict[str, Any]]()
    for m, draws in zip(TABLE, at.replicate(distances, [{"m": m} for m in TABLE], runs), strict=True):
        stated, found = TABLE[m], {what: _column(draws, what) for what in (*TABLE[m], "squares")}
        squares, error = found["squares"]
        printed.append(equal(f"average squared distance, m = {m}", squares, stated["average"], 4.0, error=error))
        for what, values in stated.items():
            kept = 3 if m == 10 and what != "SD" else 4
            mean, error = (each[:kept] for each in found[what])
            corrected.append(equal(f"{what}, m = {m}", mean, at.given(np.array(values[:kept])), 4.0, error=error))
        for place, name in enumerate(ESTIMATORS):
            sides = {what: {what: found[what][0][place], f"{what}, stated": stated[what][place]} for what in stated}
            table.append({"m": m, "estimator": name} | {what: x for side in sides.values() for what, x in side.items()})
        if m == 10:
            (*others, ours), (*_, error) = found["largest"]
            printed.append(equal("largest distance of (2.1), m = 10", ours, stated["largest"][3], 4.0, error=error))
            corrected += [
                equal("the same with another first digit", ours, 5.676, 4.0, error=error),
                at_most("the same over the least of the baselines", ours / min(others), 1.0),
                equal("average of (2.1), m = 10", found["average"][0][3], at.given(stated["average"][3]), 0.04),
            ]
    return Evidence.of(*printed, corrected=corrected, table=table)


# ---- by the algorithm ------------------------------------------------------------------------------------------------
def _run(rng: np.random.Generator, *, eta: float, rounds: int, clusters: int) -> dict[str, Any]:
    """Average and largest distance from the truth along a run of the simplified Algorithm 1 at m = 10, and at the
    minimiser."""
    draw = Draw.drawn(rng, 10, clusters)
    n, problem = len(draw.truth), draw.of.problem()
    far = gr.Observer(
        {"far": lambda at: np.linalg.norm(at.w[:n] - draw.truth, axis=1)},
        rounds=list(range(0, rounds + 1, rounds // 50)),
    )
    method = gr.AsyncL2GD(coin="single", p_global=0.1, step_size=eta)
    seen = watched(problem, method, rounds, far, seed=int(rng.integers(2**31)))
    exact = np.linalg.norm(draw.estimates(rng)["hierarchical"] - draw.truth, axis=1)
    out = {"round": list(seen.rounds), "average": seen["far"].mean(axis=1), "largest": seen["far"].max(axis=1)}
    return {**out, "exact average": exact.mean(), "exact largest": exact.max()}


def _course(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots()
    for name in ("average", "largest"):
        curve(axes, data["round"], np.transpose(data[name]).tolist(), f"{name} of the clients")
        axes.axhline(np.mean(data[f"exact {name}"]), color="0.6", linewidth=0.8)
    mark(axes, (data["round"][-1],) * 2, (3.46, 8.676))
    axes.set(xlabel="rounds", ylabel="||theta_i - truth||; thin lines: of the minimiser")
    axes.legend()


@claim(
    "clusters.table1-algorithm",
    "section 6.1",
    stated=8.676,
    experiment=True,
    quick={"eta": 1e-3, "rounds": 5000, "runs": 2, "clusters": CLUSTERS},
    full={"eta": 1e-4, "rounds": 50_000, "runs": RUNS, "clusters": CLUSTERS},
    figure=_course,
)
def by_the_algorithm(at: Trial, eta: float, rounds: int, runs: int, clusters: int) -> Evidence:
    """With p = 0.1, eta = 1e-4 and 50000 iterations the simplified Algorithm 1 gives the row of (2.1) in Table 1 at m =
    10: average 3.46, maximum 8.676.

    Correction (constant): It ends near the minimiser: the average is within 3%, the maximum within 8% of the
    minimiser's. An earlier stop does not explain 8.676 either: in the round in which the average is 3.46 the maximum is
    below 7.
    """
    found = at.replicate(_run, [{"eta": eta, "rounds": rounds, "clusters": clusters}], runs)
    [average], [largest] = (column(found, name) for name in ("average", "largest"))
    passing = [int(np.abs(each - 3.46).argmin()) for each in average]
    then = [each[place] for each, place in zip(largest, passing, strict=True)]
    exact = {name: column(found, f"exact {name}")[0] for name in ("average", "largest")}
    seen = found[0][0]["round"]
    table = {"run": range(runs), "average at the end": average[:, -1], "largest at the end": largest[:, -1]}
    table |= {f"{name}, minimiser": values for name, values in exact.items()}
    table |= {"round of 3.46": [seen[place] for place in passing], "largest there": then}
    data = {"round": seen, "average": average, "largest": largest}
    return Evidence.of(
        at_least("largest distance at the end", largest[:, -1].mean(), 8.676, 0.5),
        corrected=[
            at_most("average at the end over that of the minimiser", average[:, -1] / exact["average"], 1.03),
            at_most("largest at the end over that of the minimiser", largest[:, -1] / exact["largest"], 1.08),
            at_most("largest distance in the round in which the average is 3.46", then, 7.0),
        ],
        table=rows(table),
        data=data | {f"exact {name}": values for name, values in exact.items()},
    )
