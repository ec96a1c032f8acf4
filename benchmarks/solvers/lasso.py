"""scikit-learn and skglm on a short chain: there, and only there, the fused lasso is a lasso.

With w_i = b + sum_{k <= i} v_k, the differences of w are v: minimise 1/2 ||y - b - L v||^2 + strength ||v||_1, L the
lower triangle of ones. It is dense, so that no long chain can be given so. On no other workload is the problem one of
theirs: their penalties are separable in the coefficients, or in groups of them that do not overlap.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..objective import Objective
from ._base import AbstractSolver, Answer

LONGEST = 2_000


@dataclass(frozen=True)
class Lasso(AbstractSolver):
    """Coordinate descent; the setting is its tolerance."""

    name: str
    package: str
    ladder: tuple[float, ...] = (1e-3, 1e-5, 1e-7)

    def applies(self, objective: Objective) -> bool:
        plain = objective.loss == "mean" and objective.shape[1] == 1 and objective.penalty == "l1"
        return plain and objective.grid is not None and len(objective.grid) == 1

    def run(self, objective: Objective, setting: float) -> Answer:
        began = time.process_time()
        n = len(objective.y)
        if n > LONGEST:
            raise RuntimeError(f"not tried: the lower triangle of {n} nodes is a dense matrix")
        L = np.asfortranarray(np.tri(n)[:, 1:])
        alpha = objective.strength / objective.scale / n
        model = self._model(alpha, setting)
        built = time.process_time()
        model.fit(L, objective.y[:, 0])
        w = model.intercept_ + L @ model.coef_
        return Answer(w.reshape(-1, 1), built - began, time.process_time() - built, int(model.n_iter_))

    def _model(self, alpha: float, tolerance: float) -> Any:
        if self.package == "skglm":
            from skglm import Lasso as Model

            return Model(alpha=alpha, tol=tolerance, max_iter=1000)
        from sklearn.linear_model import Lasso as Model

        return Model(alpha=alpha, tol=tolerance, max_iter=100_000)


LASSOS = (Lasso("scikit-learn", "sklearn"), Lasso("skglm", "skglm"))
