"""pycut-pursuit: cut pursuit (Landrieu and Obozinski, SIAM J. Imaging Sciences 10, 2017)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..objective import Array, Objective
from ._base import AbstractSolver, Answer

MOST_CUTS = 200
SCALAR = {  # the only values that it takes for scalars
    "K": 2,
    "split_iter_num": 1,
    "split_damp_ratio": 1.0,
    "split_values_init_num": 1,
    "split_values_iter_num": 1,
}


@dataclass(frozen=True)
class CutPursuit(AbstractSolver):
    """The prox of the graph total variation; the setting is the tolerance on the change of its iterates.

    For vectors (d > 1) its cuts go along a few directions that a heuristic proposes.
    """

    name: str = "pycut-pursuit"
    ladder: tuple[float, ...] = (1e-3, 1e-5, 1e-7)

    def applies(self, objective: Objective) -> bool:
        return objective.loss == "mean"

    def run(self, objective: Objective, setting: float) -> Answer:
        from pycut_pursuit.cp_prox_tv import cp_prox_tv

        began = time.process_time()
        d = objective.shape[1]
        first, heads, weight = _forward_star(objective)
        Y = np.asfortranarray(objective.y.T)
        built = time.process_time()
        component, values = cp_prox_tv(
            Y,
            first,
            heads,
            edge_weights=weight,
            d1p=1 if objective.penalty == "l1" else 2,
            cp_dif_tol=setting,
            cp_it_max=MOST_CUTS,
            pfdr_dif_tol=1e-3 * setting,
            verbose=0,
            max_num_threads=1,
            **(SCALAR if d == 1 else {}),
        )[:2]
        w = values.reshape(d, -1)[:, component].T
        return Answer(w, built - began, time.process_time() - built)


def _forward_star(objective: Objective) -> tuple[Array, Array, Array]:
    """The first edge of each node, the heads, and the weights, edges sorted by tail."""
    order = np.argsort(objective.edges[:, 0], kind="stable")
    first = np.searchsorted(objective.edges[order, 0], np.arange(objective.shape[0] + 1))
    weight = objective.strength / objective.scale * objective.weight[order]
    return first.astype(np.uint32), objective.edges[order, 1].astype(np.uint32), weight
