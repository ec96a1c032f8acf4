"""pycut-pursuit: cut pursuit (Landrieu and Obozinski, SIAM J. Imaging Sciences 10, 2017)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..objective import Array, Objective
from ._base import AbstractSolver, Answer

MOST_CUTS = 200


@dataclass(frozen=True)
class CutPursuit(AbstractSolver):
    """Its function for squared losses, `cp_d1_ql1b`, where the absolute differences of scalars are penalised, and of
    means of vectors with l1 one call per coordinate; else `cp_prox_tv`, whose cuts go along a few directions that a
    heuristic proposes. (For scalars that function aborts: it frees memory twice.)

    The setting is the tolerance on the change of its iterates. One thread.
    """

    name: str = "pycut-pursuit"
    ladder: tuple[float, ...] = (1e-3, 1e-5, 1e-7)

    def applies(self, objective: Objective) -> bool:
        return objective.loss == "mean" or (objective.loss == "squared" and objective.shape[1] == 1)

    def run(self, objective: Objective, setting: float) -> Answer:
        began = time.process_time()
        graph = _forward_star(objective)
        scalars = objective.shape[1] == 1 or objective.penalty == "l1"
        built = time.process_time()
        w = _scalars(objective, graph, setting) if scalars else _vectors(objective, graph, setting)
        return Answer(w, built - began, time.process_time() - built)


def _options(graph: tuple[Array, Array, Array], setting: float) -> dict[str, Any]:
    return {
        "first_edge": graph[0],
        "adj_vertices": graph[1],
        "edge_weights": graph[2],
        "cp_dif_tol": setting,
        "cp_it_max": MOST_CUTS,
        "pfdr_dif_tol": 1e-3 * setting,
        "verbose": 0,
        "max_num_threads": 1,
    }


def _scalars(objective: Objective, graph: tuple[Array, Array, Array], setting: float) -> Array:
    """1/2 sum_i a_i w_i^2 - b_i w_i, coordinate by coordinate."""
    from pycut_pursuit.cp_d1_ql1b import cp_d1_ql1b

    X, y = objective.X, objective.y
    a = np.ones(1) if X is None else (X[:, :, 0] ** 2).sum(axis=1)
    b = y if X is None else (X[:, :, 0] * y).sum(axis=1)[:, None]
    w = np.empty(objective.shape)
    for k in range(w.shape[1]):
        component, values = cp_d1_ql1b(np.ascontiguousarray(b[:, k]), a, **_options(graph, setting))[:2]
        w[:, k] = np.ravel(values)[component]
    return w


def _vectors(objective: Objective, graph: tuple[Array, Array, Array], setting: float) -> Array:
    from pycut_pursuit.cp_prox_tv import cp_prox_tv

    d = objective.shape[1]
    component, values = cp_prox_tv(np.asfortranarray(objective.y.T), d1p=2, **_options(graph, setting))[:2]
    return values.reshape(d, -1)[:, component].T


def _forward_star(objective: Objective) -> tuple[Array, Array, Array]:
    """The first edge of each node, the heads, and the weights, edges sorted by tail."""
    order = np.argsort(objective.edges[:, 0], kind="stable")
    first = np.searchsorted(objective.edges[order, 0], np.arange(objective.shape[0] + 1))
    weight = objective.strength / objective.scale * objective.weight[order]
    return first.astype(np.uint32), objective.edges[order, 1].astype(np.uint32), weight
