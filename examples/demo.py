"""A first look: patients in twenty cohorts, one model per cohort, tied together along a graph, and certified.

Data: the 442 diabetes patients that scikit-learn ships (Efron, Hastie, Johnstone and Tibshirani, Least angle
regression, 2004). Nodes are cohorts (ten age bands x two sexes), edges join adjacent bands of the same sex and the two
sexes of the same band. Every cohort has its own regression of disease progression, and along each edge two
regressions are pulled towards each other, hard enough that some become exactly equal.

    python examples/demo.py          under a minute; writes out/demo.png under the current directory
"""

from __future__ import annotations

import itertools
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import graphreg as gr

MEASURED = {"bmi": "bmi", "bp": "blood pressure", "s3": "hdl", "s5": "log triglycerides", "s6": "glucose"}
BANDS, STRENGTH, RIDGE = 10, 0.3, 0.01
SEXES = (1, 2)  # as the data code them; which is which is not documented


def cohorts() -> tuple[pd.DataFrame, nx.Graph, list[str]]:
    """The patients with standardised columns and their cohort, the graph of cohorts, and the names of the bands."""
    raw = load_diabetes(scaled=False, as_frame=True).frame.rename(columns=MEASURED)
    columns = [*MEASURED.values(), "target"]
    patients = (raw[columns] - raw[columns].mean()) / raw[columns].std()
    band, ends = pd.qcut(raw["age"], BANDS, labels=False, retbins=True)
    first = [int(ends[0]), *(int(np.floor(end)) + 1 for end in ends[1:-1])]
    names = [f"{a}-{int(np.floor(b))}" for a, b in zip(first, ends[1:], strict=True)]
    patients["cohort"] = [(int(sex), names[b]) for sex, b in zip(raw["sex"], band, strict=True)]
    graph = nx.Graph()
    for sex in SEXES:
        graph.add_edges_from(((sex, a), (sex, b)) for a, b in itertools.pairwise(names))
    graph.add_edges_from(((1, name), (2, name)) for name in names)
    return patients, graph, names


def heading(text: str) -> None:
    print(f"\n== {text} ==\n")


def held_out(patients: pd.DataFrame, graph: nx.Graph, strengths: list[float], folds: int = 5) -> pd.DataFrame:
    """Mean squared error on patients that were left out, at several strengths."""
    fold = np.random.default_rng(0).permutation(len(patients)) % folds
    errors = pd.DataFrame(0.0, index=pd.Index(strengths, name="strength"), columns=["held-out error"])
    for k in range(folds):
        strength = gr.Parameter(strengths[0], name="lam")  # what is built is built once per fold
        problem = gr.Problem(model(patients[fold != k], graph, strength))
        left = patients[fold == k]
        for value in strengths:
            strength.value = value
            miss = left["target"] - problem.solve().predict(left)
            errors.loc[value] += float((miss**2).sum()) / len(patients)
    return errors


def model(patients: pd.DataFrame, graph: nx.Graph, strength: float | gr.Parameter) -> gr.Model:
    """Least squares per cohort + strength x total variation along the graph + a small ridge."""
    data = gr.NodeData.from_frame(
        patients, node="cohort", target="target", features=list(MEASURED.values()), intercept=True
    )
    return gr.SquaredLoss(data) + strength * gr.TotalVariation(graph, gr.L2()) + RIDGE * gr.NodePenalty(gr.SquaredL2())


# ---- the figure ------------------------------------------------------------------------------------------------------
def draw(runs: list[gr.Solution], names: list[str], path: Path) -> None:
    """The graph and the coefficients of the last run, and the certified gaps of all."""
    figure = plt.figure(figsize=(12, 7.2), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(1, 1.25))
    draw_graph(top.subplots(), runs[-1], names)
    profile, trace = bottom.subplots(1, 2, width_ratios=(1.9, 1))
    draw_coefficients(profile, runs[-1], names)
    draw_trace(trace, runs)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def draw_graph(ax: plt.Axes, run: gr.Solution, names: list[str]) -> None:
    """Cohorts coloured by cluster; edges that are proved to be fused solid and coloured, the others dashed."""
    clusters = run.clusters(prove=True)
    position = {(sex, name): (j, -0.5 * i) for i, sex in enumerate(SEXES) for j, name in enumerate(names)}
    colour = mpl.colormaps["tab10" if clusters.count <= 10 else "tab20"]
    for edge in clusters.edges.itertuples():
        ends = np.array([position[edge.tail], position[edge.head]]).T
        style = {"color": colour(clusters.labels[edge.tail]), "lw": 6, "alpha": 0.55}
        ax.plot(
            *ends,
            zorder=1,
            **(style if edge.state == "fused" else {"color": "0.6", "lw": 1.2, "ls": (0, (4, 3))}),
        )
    for label, number in clusters.labels.items():
        ax.scatter(*position[label], s=620, color=colour(number), edgecolor="white", lw=2, zorder=2)
    for j, name in enumerate(names):
        ax.text(j, 0.24, name, ha="center", va="bottom", fontsize=10)
    for i, sex in enumerate(SEXES):
        ax.text(-0.5, -0.5 * i, f"sex {sex}", ha="right", va="center", fontsize=10)
    ax.text(-0.5, 0.24, "age", ha="right", va="bottom", fontsize=10)
    ax.set(xlim=(-1.1, len(names) - 0.5), ylim=(-0.8, 0.45))
    ax.axis("off")
    ax.set_title(
        f"{clusters.count} clusters: thick edges are proved to be fused (the same regression), the others are dashed",
        loc="left",
        fontsize=11,
    )


def draw_coefficients(ax: plt.Axes, run: gr.Solution, names: list[str]) -> None:
    """Coefficients by age, one colour per feature, one style per sex; plateaus are clusters."""
    table, colour = run.table(), mpl.colormaps["Dark2"]
    for k, feature in enumerate(table.columns):
        for sex, style in zip(SEXES, ("-", (0, (1.2, 1.2))), strict=True):
            values = [table[feature][(sex, name)] for name in names]
            ax.step(range(len(names)), values, where="mid", color=colour(k), ls=style, lw=2, marker="o", ms=4)
        ax.text(len(names) - 0.4, values[-1], feature, color=colour(k), va="center", fontsize=10)
    ax.axhline(0, color="0.8", lw=1, zorder=0)
    ax.set_xticks(range(len(names)), names)
    ax.set(xlabel="age", xlim=(-0.6, len(names) + 1.2))
    ax.set_title("Coefficients (in standard deviations): sex 1 solid, sex 2 dotted", loc="left", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)


def draw_trace(ax: plt.Axes, runs: list[gr.Solution]) -> None:
    """The relative gap by round: cheap estimates, which certify nothing, and the certificates of the runs."""
    estimates = [record for record in runs[-1].trace.records if not record.certified]
    certified = sorted({(r.round, r.relative_gap) for run in runs for r in run.trace.certified()})
    ax.semilogy(
        [r.round for r in estimates],
        [r.relative_gap for r in estimates],
        "o-",
        ms=3,
        color="0.7",
        label="cheap estimate, proves nothing",
    )
    ax.semilogy(*zip(*certified, strict=True), "D", ms=7, color="tab:green", label="certified gap", clip_on=False)
    ax.set(xlabel="round (messages between neighbours)", xlim=(0, None))
    ax.set_title("relative gap of PrimalDual (nine runs)", loc="left", fontsize=11)
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)


# ---- the tour --------------------------------------------------------------------------------------------------------
def main() -> None:
    pd.set_option("display.width", 160, "display.max_columns", 20, "display.precision", 3)
    patients, graph, names = cohorts()
    sizes = patients["cohort"].value_counts()
    print(
        f"{len(patients)} patients in {len(sizes)} cohorts of {sizes.min()} to {sizes.max()}; "
        f"{graph.number_of_edges()} edges between neighbouring cohorts."
    )

    problem = gr.Problem(model(patients, graph, STRENGTH))
    heading("The model, as the sum it is")
    print(problem)
    heading("Its dual: any flows and prices that are conserved and within capacity give a lower bound")
    print(problem.dual())

    heading("Route 1: the exact optimum (compiled to CVXPY, certified by graphreg itself)")
    exact = problem.solve(gr.Exact())
    print(exact)
    print("The optimum is proved to lie between the two bounds; the solver's word is not taken for it.")

    heading("Route 2: a decentralised method (neighbours exchange messages), same certificate")
    run = problem.solve(gr.PrimalDual())
    print(run)
    print(run.ledger)
    print("(the ledger: what the method itself sends, what its step sizes cost, what proving the gap costs)")
    print(
        f"largest difference of the two answers: {np.abs(run.coef - exact.coef).max():.1e} "
        f"(proved: at most {exact.certificate.distance + run.certificate.distance:.1e})"
    )

    heading("All methods that apply")
    print(gr.compare(problem, seconds=1))
    print("(above: the objective minus the best lower bound that any of them proved)")

    heading("Clusters: cohorts whose regressions are equal at the optimum, proved from the certificate")
    clusters = exact.clusters(prove=True)
    print(clusters)
    for members in clusters.members():
        first = exact.table().loc[[members[0]]].iloc[0]
        print(
            f"  {', '.join(f'{sex}:{age}' for sex, age in members)}\n      "
            + "  ".join(f"{name} {value:+.3f}" for name, value in first.items())
        )
    print("(sex:age; below each cluster its shared coefficients, all variables in standard deviations)")

    heading("Does tying help on patients that were left out? (5 folds)")
    errors = held_out(patients, graph, [0.001, 0.03, 0.1, STRENGTH, 1.0, 10.0])
    print(errors.T.to_string())
    best = errors["held-out error"].idxmin()
    print(f"Left: nearly a regression of its own per cohort; right: nearly one for all. Best here: {best}.")

    path = Path("out") / "demo.png"
    draw([problem.solve(gr.PrimalDual(), gap=10.0**-k) for k in range(1, 10)], names, path)
    print(f"\nFigure: {path.resolve()}")


if __name__ == "__main__":
    main()
