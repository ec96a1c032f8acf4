"""The election of 2020 by county: predictors in two readings of the text, logistic regressions, and the map."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2, rankdata

import graphreg as gr

from ._instances import Array

COUNTIES, HISTORY, MAP = "us_election_2020_counties.csv.gz", "us_state_history.csv", "us_counties_albers.topojson.gz"
FIRST = 9  # columns before the predictors
POOLED, WITHIN = "standardised over all counties, with an intercept", "standardised within each state, no intercept"
READINGS = (POOLED, WITHIN)
METHODS = ("Local", "Global", "FedADMM, D_loc", "FedADMM, D_his")
RIDGE = 1e-2  # 51 predictors and about 60 training counties per state: no local fit exists without one
STRENGTH = 0.03


@dataclass(frozen=True)
class Election:
    """Counties of the states with more than 50 of them.

    Attributes
    ----------
    raw : (N, 51)
    y : (N,)
        1 where the Democrats won.
    node : (N,)
        The number of each county's state.
    states, fips, sides : list of str
        By state: its letters, the two digits that its counties begin with, and red, blue or swing.
    """

    raw: Array
    y: Array
    node: Array
    states: list[str]
    fips: list[str]
    sides: list[str]

    @staticmethod
    @lru_cache(2)
    def read(counties: Path, history: Path) -> Election:
        every: Any = pd.read_csv(counties, dtype={"fips": str})
        frame = every[every["state_gt50"] == 1]
        states = sorted(set(frame["state"]))
        side = pd.read_csv(history).set_index("state")["class"]
        fips = frame.groupby("state")["fips"].first().str[:2]
        node = np.searchsorted(np.array(states), frame["state"].to_numpy(dtype=str))
        raw = frame[frame.columns[FIRST:]].to_numpy(dtype=float)
        y = frame["democrat"].to_numpy(dtype=float)
        return Election(raw, y, node, states, [fips[s] for s in states], [str(side[s]) for s in states])

    def predictors(self, reading: str) -> Array:
        """(N, 52) with the intercept last, or (N, 51)."""
        if reading == POOLED:
            scaled = (self.raw - self.raw.mean(axis=0)) / self.raw.std(axis=0)
            return np.column_stack([scaled, np.ones(len(scaled))])
        out = np.empty_like(self.raw)
        for k in range(len(self.states)):
            own = self.raw[self.node == k]
            out[self.node == k] = (own - own.mean(axis=0)) / np.where(own.std(axis=0) > 0.0, own.std(axis=0), 1.0)
        return out

    @property
    def history(self) -> gr.Graph:
        """D_his: all pairs of states of one side."""
        n = len(self.states)
        return self.joined([(i, j) for j in range(n) for i in range(j) if self.sides[i] == self.sides[j]])

    def joined(self, edges: list[tuple[int, int]]) -> gr.Graph:
        return gr.Graph.from_edges(edges, nodes=range(len(self.states)))


def fitted(X: Array, y: Array, node: Array, ridge: float = RIDGE) -> tuple[Any, Any]:
    """Mean logistic losses, and the ridge."""
    loss = gr.LogisticLoss(gr.NodeData.from_arrays(X, y, node), scale="mean")
    return loss, ridge * gr.NodePenalty(gr.SquaredL2())


def tested(model: Any) -> tuple[Array, Array, Array]:
    """(13) to the letter for all pairs of nodes, Omega_u = (n_u H_u)^-1: tails, heads, and W_e^2."""
    fits = gr.inference.local_fits(gr.Problem(model).form)
    omega = np.linalg.inv(fits.counts[:, None, None] * fits.hessian)
    i, j = np.triu_indices(len(omega), 1)
    off = fits.coef[i] - fits.coef[j]
    return i, j, np.einsum("ei,eij,ej->e", off, np.linalg.inv(omega[i] + omega[j]), off)


def threshold(p: int, edges: int, level: float = 0.05) -> float:
    """chi^2_p(level / |E|) of (14)."""
    return float(chi2.isf(level / edges, p))


def scores(y: Array, link: Array) -> dict[str, float]:
    """Accuracy, the mean of the accuracies of both classes, and the area under the ROC curve."""
    hit, ones = (link > 0.0) == (y == 1.0), y == 1.0
    above = rankdata(link)[ones].sum() - ones.sum() * (ones.sum() + 1) / 2
    balanced = 0.5 * (hit[ones].mean() + hit[~ones].mean())
    return {
        "accuracy": float(hit.mean()),
        "balanced": float(balanced),
        "AUC": float(above / (ones.sum() * (~ones).sum())),
    }


def split(rng: np.random.Generator, files: Mapping[str, Path]) -> dict[str, dict[str, dict[str, float]]]:
    """The scores of the four methods on a third of the counties, fitted on the others; by reading and method."""
    of = Election.read(files[COUNTIES], files[HISTORY])
    train = np.zeros(len(of.y), dtype=bool)
    train[rng.permutation(len(of.y))[: 2 * len(of.y) // 3]] = True
    return {reading: _scored(of, of.predictors(reading), train) for reading in READINGS}


def _scored(of: Election, X: Array, train: Array) -> dict[str, dict[str, float]]:
    loss, ridge = fitted(X[train], of.y[train], of.node[train])
    i, j, statistic = tested(loss + ridge)
    kept = np.flatnonzero(statistic <= threshold(X.shape[1], len(statistic)))
    pooled, _ = fitted(X[train], of.y[train], np.zeros(int(train.sum()), dtype=int))
    graphs = {"FedADMM, D_loc": of.joined(list(zip(i[kept].tolist(), j[kept].tolist(), strict=True)))}
    coef = {
        "Local": gr.Problem(loss + ridge).solve(gr.Exact(), gap=1e-4).coef,
        "Global": np.tile(gr.Problem(pooled + ridge).solve(gr.Exact(), gap=1e-4).coef, (len(of.states), 1)),
    }
    for name, graph in {**graphs, "FedADMM, D_his": of.history}.items():
        problem = gr.Problem(loss + ridge + STRENGTH * gr.TotalVariation(graph, gr.L1()))
        coef[name] = problem.solve(gr.PrimalDual(), gap=1e-3).coef
    test = ~train
    return {name: scores(of.y[test], np.einsum("rj,rj->r", X[test], w[of.node[test]])) for name, w in coef.items()}


def outlines(path: Path) -> dict[str, list[Array]]:
    """The rings of each state, by its two digits: (k, 2) in units of the map, y downwards."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        topology = json.load(file)
    arcs = [np.array(arc, dtype=float) for arc in topology["arcs"]]
    if "transform" in topology:
        scale, shift = (np.array(topology["transform"][name]) for name in ("scale", "translate"))
        arcs = [arc.cumsum(axis=0) * scale + shift for arc in arcs]
    found: dict[str, list[Array]] = {}
    for shape in topology["objects"]["states"]["geometries"]:
        parts = shape["arcs"] if shape["type"] == "MultiPolygon" else [shape["arcs"]]
        found[shape["id"]] = [
            np.concatenate([arcs[a] if a >= 0 else arcs[~a][::-1] for a in ring]) for part in parts for ring in part
        ]
    return found
