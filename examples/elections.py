"""The US presidential election of 2020 by county: classification by state, and the map of the vote itself.

    python examples/elections.py FOLDER

FOLDER holds us_election_2020_counties.csv.gz, us_state_adjacency.csv and us_county_adjacency.csv.gz.

(a) Thirty states with more than fifty counties: whether a county voted Democratic, by logistic regression on 51
    standardised predictors, one regression per state; neighbouring states are pulled together (network lasso).
(b) All counties: the Democratic share of the two-party vote, smoothed along county borders (total variation).

Both are certified to a relative gap of 1e-6 by the exact route and by the decentralised one. Takes one to two minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata

import graphreg as gr

COUNTIES, STATE_EDGES, COUNTY_EDGES = (
    "us_election_2020_counties.csv.gz",
    "us_state_adjacency.csv",
    "us_county_adjacency.csv.gz",
)
N_OTHER = 9  # the columns before the predictors
FOLDS = 5


# ---- data ------------------------------------------------------------------------------------------------------------
def folder() -> Path:
    """The folder that the user gave, with the three files in it."""
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/elections.py FOLDER    (the folder with the three data files, see the top)")
    path = Path(sys.argv[1])
    if not path.is_dir():
        sys.exit(f"{path} is not a folder; give the one that holds {COUNTIES}, {STATE_EDGES} and {COUNTY_EDGES}")
    missing = [name for name in (COUNTIES, STATE_EDGES, COUNTY_EDGES) if not (path / name).is_file()]
    if missing:
        sys.exit(f"{path} has no {', '.join(missing)}")
    return path


def graph_of(edges: pd.DataFrame, nodes: list[str]) -> gr.Graph:
    """The adjacency among ``nodes`` alone."""
    a, b = edges.columns[:2]
    inside = edges[edges[a].isin(nodes) & edges[b].isin(nodes)]
    return gr.Graph.from_edges(zip(inside[a], inside[b], strict=True), nodes=nodes)


# ---- reports ---------------------------------------------------------------------------------------------------------
def both_routes(problem: gr.Problem, seconds: float) -> tuple[gr.Solution, gr.Solution]:
    """The exact and the decentralised answer; what they certify is printed, also where it falls short."""
    exact = problem.solve(gr.Exact(), on_failure="return")
    run = problem.solve(gr.PrimalDual(), seconds=seconds, on_failure="return")
    print(pd.DataFrame({s.method: row(s) for s in (exact, run)}).T.to_string())
    for solution in (exact, run):
        if solution.status != "certified":
            print(solution)
    print(f"largest difference of the coefficients {np.abs(exact.coef - run.coef).max():.1e}")
    return exact, run


def row(s: gr.Solution) -> dict[str, object]:
    return {
        "status": s.status,
        "lower bound": f"{s.certificate.dual:.8f}",
        "objective": f"{s.objective:.8f}",
        "relative gap": f"{s.certificate.relative_gap:.1e}",
        "rounds": s.rounds,
        "seconds": f"{s.seconds:.2f}",
    }


def scores(truth: np.ndarray, link: np.ndarray) -> dict[str, float]:
    """Plain accuracy, balanced accuracy (the mean of the accuracies of the two classes) and AUC."""
    hit, ones = truth == (link > 0), truth == 1
    rank = rankdata(link)
    above = rank[ones].sum() - ones.sum() * (ones.sum() + 1) / 2
    return {
        "accuracy": hit.mean(),
        "balanced accuracy": (hit[ones].mean() + hit[~ones].mean()) / 2,
        "AUC": above / (ones.sum() * (~ones).sum()),
    }


# ---- (a) -------------------------------------------------------------------------------------------------------------
def states(counties: pd.DataFrame, edges: pd.DataFrame) -> None:
    big = counties[counties["state_gt50"] == 1].copy()
    predictors = list(big.columns[N_OTHER:])
    big[predictors] = (big[predictors] - big[predictors].mean()) / big[predictors].std()
    graph = graph_of(edges, sorted(big["state"].unique()))
    print(f"(a) {len(big)} counties, {len(predictors)} predictors. {graph}\n")

    def model(frame: pd.DataFrame, strength: float | gr.Parameter) -> gr.Model:
        data = gr.NodeData.from_frame(frame, node="state", target="democrat", features=predictors, intercept=True)
        return (
            gr.LogisticLoss(data) + strength * gr.TotalVariation(graph, gr.L2()) + 1e-3 * gr.NodePenalty(gr.SquaredL2())
        )

    truth = big["democrat"].to_numpy()
    for strength in (0.01, 0.1):
        print(f"strength {strength}")
        exact, _ = both_routes(gr.Problem(model(big, strength)), seconds=120)
        print(exact.clusters())
        fit = scores(truth, exact.predict(big, kind="link").to_numpy())
        print("on the counties that it was fitted to: " + ", ".join(f"{k} {v:.3f}" for k, v in fit.items()) + "\n")

    fold = np.random.default_rng(0).permutation(len(big)) % FOLDS
    strengths = [1e-3, 0.01, 0.03, 0.1, 0.3, 3.0]
    links = pd.DataFrame(index=big.index, columns=strengths, dtype=float)
    for k in range(FOLDS):
        strength = gr.Parameter(strengths[0], name="lam")
        problem = gr.Problem(model(big[fold != k], strength))
        for value in strengths:
            strength.value = value
            run = problem.solve(gr.PrimalDual(), gap=1e-2)
            links.loc[fold == k, value] = run.predict(big[fold == k], kind="link")
    table = pd.DataFrame({value: scores(truth, links[value].to_numpy()) for value in strengths})
    table["always Republican"] = pd.Series(scores(truth, np.zeros_like(truth)))
    print(
        f"on counties that were left out ({FOLDS} folds over counties), by strength (fitted to a relative gap of 1e-2):"
    )
    print(table.round(3).to_string())


# ---- (b) -------------------------------------------------------------------------------------------------------------
def county_map(counties: pd.DataFrame, edges: pd.DataFrame) -> None:
    counties = counties.assign(share=counties["votes_dem"] / (counties["votes_dem"] + counties["votes_gop"]))
    graph = graph_of(edges, counties["fips"].tolist())
    lonely = graph.n_nodes - len(set(graph.tail.tolist()) | set(graph.head.tolist()))
    print(f"\n(b) {graph}; {lonely} counties without a neighbour keep their own share\n")
    data = gr.NodeData.from_frame(counties, node="fips", target="share")
    for strength in (0.02, 0.1):
        print(f"strength {strength}")
        problem = gr.Problem(gr.MeanLoss(data) + strength * gr.TotalVariation(graph, gr.L1()))
        exact, _ = both_routes(problem, seconds=120)
        clusters = exact.clusters()
        print(clusters)
        place = counties.set_index("fips")
        for members in clusters.members()[:4]:
            there = place.loc[members, "state"].value_counts()
            where = ", ".join(f"{state} {count}" for state, count in there.head(4).items())
            print(f"    {len(members):4d} counties at a share of {exact.table().loc[members[0], 'share']:.3f}: {where}")
        print()


def main() -> None:
    path = folder()
    counties = pd.read_csv(path / COUNTIES, dtype={"fips": str})
    states(counties, pd.read_csv(path / STATE_EDGES))
    county_map(counties, pd.read_csv(path / COUNTY_EDGES, dtype=str))


if __name__ == "__main__":
    main()
