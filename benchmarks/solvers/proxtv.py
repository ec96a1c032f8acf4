"""prox_tv: total variation of signals and images (Barbero and Sra, Modular proximal optimization, JMLR 2018)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..objective import Objective
from ._base import AbstractSolver, Answer


@dataclass(frozen=True)
class ProxTV(AbstractSolver):
    """1/2 ||w - y||^2 + strength TV(w) on a chain or, anisotropic, on a two-dimensional grid.

    A chain is solved directly, by the hybrid taut string method, whatever the setting; a grid by Kolmogorov's
    splitting (the most accurate of the package's six methods here), to which the setting is the number of iterations.
    """

    name: str = "prox_tv"
    ladder: tuple[float, ...] = (5, 30, 200, 1000)

    def applies(self, objective: Objective) -> bool:
        plain = objective.loss == "mean" and objective.shape[1] == 1 and objective.penalty == "l1"
        return plain and objective.grid is not None and len(objective.grid) <= 2

    def run(self, objective: Objective, setting: float) -> Answer:
        import prox_tv

        began = time.process_time()
        assert objective.grid is not None
        y, strength = objective.y.reshape(objective.grid), objective.strength / objective.scale
        built = time.process_time()
        if y.ndim == 1:
            w = prox_tv.tv1_1d(y, strength)
        else:
            w = prox_tv.tv1_2d(y, strength, n_threads=1, max_iters=int(setting), method="kolmogorov")
        done = time.process_time()
        return Answer(w.reshape(objective.shape), built - began, done - built)
