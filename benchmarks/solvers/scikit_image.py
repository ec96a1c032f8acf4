"""scikit-image's total variation denoising, where its objective is ours: on a chain.

On images it is not: `denoise_tv_chambolle` minimises the isotropic total variation, which couples both differences of
a pixel and is no sum over edges, and `denoise_tv_bregman(isotropic=False)` treats the border in its own way (converged,
it stays 1e-2 above our optimum).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..objective import Objective
from ._base import AbstractSolver, Answer


@dataclass(frozen=True)
class ScikitImage(AbstractSolver):
    """Chambolle's method; the setting is its number of iterations."""

    name: str = "scikit-image"
    ladder: tuple[float, ...] = (200, 2_000, 20_000)

    def applies(self, objective: Objective) -> bool:
        plain = objective.loss == "mean" and objective.shape[1] == 1 and objective.penalty == "l1"
        return plain and objective.grid is not None and len(objective.grid) == 1

    def run(self, objective: Objective, setting: float) -> Answer:
        from skimage.restoration import denoise_tv_chambolle

        began = time.process_time()
        weight = objective.strength / objective.scale
        w = denoise_tv_chambolle(objective.y[:, 0], weight=weight, eps=0.0, max_num_iter=int(setting))
        return Answer(w[:, None], 0.0, time.process_time() - began)
