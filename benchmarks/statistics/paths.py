"""Regularisation paths over the 3111 counties of the United States: what fifty strengths cost, beside one solve.

Needs us_election_2020_counties.csv.gz and us_county_adjacency.csv.gz in ../shared/data, beside the project's folder.
Every county is a node with one sample: the Democratic share of 2020, or whether it was above a half, by standardised
predictors; total variation along county borders, and a small ridge on all coefficients (counties without neighbours
have one sample, so that without it their logistic fit runs to infinity).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import graphreg as gr

DATA = Path(__file__).resolve().parents[2] / "../shared/data"
COUNTIES, BORDERS = "us_election_2020_counties.csv.gz", "us_county_adjacency.csv.gz"
PREDICTORS = ["EDU685213", "RHI825214"]  # share with a bachelor's degree, share of white non-Hispanic people
RIDGE = 1e-2
GAP, TIGHT = 1e-6, 1e-9
POINTS, ASKED = 50, 5.0


def study_of_linear_paths() -> pd.DataFrame:
    """Squared loss and L2 differences, d = 3: fifty strengths from strength_max down over three decades."""
    return _costs(*counties(gr.SquaredLoss, gr.L2()))


def study_of_logistic_paths() -> pd.DataFrame:
    """Logistic loss and L1 differences, d = 3: fifty strengths from strength_max down over three decades."""
    return _costs(*counties(gr.LogisticLoss, gr.L1()))


def counties(
    loss: Callable[..., Any], penalty: gr.Penalty, predictors: Sequence[str] = PREDICTORS
) -> tuple[gr.Problem, gr.Parameter]:
    """The problem, and the Parameter in it."""
    frame, graph = map_of_counties()
    names = list(predictors)
    frame[names] = (frame[names] - frame[names].mean()) / frame[names].std()
    target = "share" if loss is gr.SquaredLoss else "democrat"
    data = gr.NodeData.from_frame(frame, node="fips", target=target, features=names, intercept=True)
    strength = gr.Parameter(1.0, name="lam")
    ridge = RIDGE * gr.NodePenalty(gr.SquaredL2(), features=["intercept", *names])
    model = loss(data) + strength * gr.TotalVariation(graph, penalty) + ridge
    return gr.Problem(model), strength


def map_of_counties() -> tuple[pd.DataFrame, gr.Graph]:
    """A row per county with its Democratic share, and the graph of common borders."""
    missing = [name for name in (COUNTIES, BORDERS) if not (DATA / name).is_file()]
    if missing:
        raise SystemExit(f"needs {' and '.join(missing)} in ../shared/data, beside the project's folder")
    frame = pd.read_csv(DATA / COUNTIES, dtype={"fips": str})
    borders = pd.read_csv(DATA / BORDERS, dtype=str)
    frame["share"] = frame["votes_dem"] / (frame["votes_dem"] + frame["votes_gop"])
    known = borders["fips_a"].isin(frame["fips"]) & borders["fips_b"].isin(frame["fips"])
    pairs = zip(borders["fips_a"][known], borders["fips_b"][known], strict=True)
    return frame, gr.Graph.from_edges(pairs, nodes=frame["fips"].tolist())


def _costs(problem: gr.Problem, strength: gr.Parameter) -> pd.DataFrame:
    """CPU seconds of a path beside those of single solves from nothing: by its own method, by the decentralised one and
    by a conic solver."""
    path, whole = _timed(lambda: gr.path(problem, POINTS, progress=False, on_failure="return"))
    certified = sum(solution.certificate.holds(GAP) for solution in path)
    steps = sum(solution.rounds for solution in path)
    rows: list[tuple[Any, ...]] = [
        ("strengths certified", POINTS, certified, f"{whole:.3g} s, {steps} steps of {path.method}")
    ]
    tight, seconds = _timed(lambda: gr.path(problem, POINTS, gap=TIGHT, progress=False, on_failure="return"))
    certified = sum(solution.certificate.holds(TIGHT) for solution in tight)
    rows.append((f"strengths certified to {TIGHT:g}", POINTS, certified, f"{seconds:.3g} s"))
    few = path.strengths[:: (POINTS - 1) // 7]
    for method in (gr.Exact(), gr.PrimalDual(), gr.InteriorPoint()):
        cold: list[float] = []
        for value in few:
            strength.value = float(value)
            solve = partial(problem.solve, method, gap=GAP, seed=0, progress=False, on_failure="return")
            cold.append(_timed(solve)[1])
        median = float(np.median(cold))
        figures = f"{min(cold):.2g} to {max(cold):.2g} s at {len(few)} strengths, median {median:.2g}"
        rows.append((f"path over one cold solve by {method.name}", f"< {ASKED:g}", round(whole / median, 1), figures))
        rows.append(
            ("over fifty of them", "", round(whole / (POINTS * float(np.mean(cold))), 2), "fifty times the mean")
        )
    return pd.DataFrame(rows, columns=["what", "asked", "found", "figures"])


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    return run(), time.process_time() - began
