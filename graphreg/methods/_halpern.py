"""Restarted Halpern iteration: points are pulled towards an anchor, which moves up where the pull has paid.

For a method that repeats a map T, firmly nonexpansive in some norm, with relaxation in (0, 2):

    x+ = (j + 1)/(j + 2) (x + relaxation (T x - x)) + 1/(j + 2) anchor,      j = 0, 1, ... since the last restart,

(Halpern 1967), and a restart at T x, the new anchor, where ||x - T x|| has fallen far enough, has begun to grow again,
or has not done either for long. On problems that are all edges and no curvature, where plain iterations spiral, that
converges linearly (Lu and Yang, Restarted Halpern PDHG for linear programming, 2024; the restarts are those of PDLP,
Applegate et al. 2021). Where losses are smooth it takes half as many rounds again as the plain iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..lowering.site import Site
from ..terms.records import Array

EVERY = 5  # rounds between two looks at ||x - T x||
SUFFICIENT, NECESSARY = 0.2, 0.8  # of its value after the last restart: restart at once; restart where it grows
LONG = 0.36  # of all rounds, after which a restart is due anyway
LEAST = 20  # rounds before that

Flows = Sequence[Array]


@dataclass(frozen=True)
class Halpern:
    """Where an iteration stands between two restarts."""

    steps: int = 0  # j
    first: float = np.inf  # ||x - T x|| right after the restart
    last: float = np.inf  # and when it was looked at last

    def pull(self, points: Flows, anchors: Flows) -> tuple[Array, ...]:
        """The points after their step, pulled towards the anchors."""
        t = (self.steps + 1.0) / (self.steps + 2.0)
        return tuple(t * x + (1.0 - t) * x0 for x, x0 in zip(points, anchors, strict=True))

    def step(self) -> Halpern:
        return replace(self, steps=self.steps + 1)

    @property
    def looks(self) -> bool:
        """Whether ||x - T x|| is due."""
        return self.steps == 1 or self.steps % EVERY == 0

    def looked(self, residual: float, rounds: int) -> Halpern | None:
        """What follows from ||x - T x|| after so many rounds; None where the iteration is to be restarted."""
        if not np.isfinite(self.first):
            return replace(self, first=residual, last=residual)
        fallen = residual <= SUFFICIENT * self.first
        turned = residual <= NECESSARY * self.first and residual > self.last
        long = self.steps > LEAST and self.steps >= LONG * rounds
        return None if fallen or turned or long else replace(self, last=residual)


def distances(site: Site, *moves: tuple[Array, Flows]) -> Array:
    """For each move (dw, du): sum_i deg_i ||dw_i||^2 and sum_e (2, to the ground 1) ||du_e||^2, one reduction, (k, 2).

    With steps tau = s / deg and sigma = 1/(2 s) the squared length of the move is the first over s plus s times the
    second.
    """
    each = np.zeros((site.form.n, len(moves), 2))  # booked at the node, or at the tail of the edge
    for k, (dw, du) in enumerate(moves):
        each[:, k, 0] = site.degree * (dw**2).sum(axis=1)
        for edge, d in zip(site.form.edges, du, strict=True):
            size = (1.0 if edge.ground else 2.0) * (d**2).sum(axis=1)
            each[:, k, 1] += np.bincount(edge.tail, size, minlength=site.form.n)
    return site.engine.reduce(each)


def difference(a: Flows, b: Flows) -> list[Array]:
    return [x - y for x, y in zip(a, b, strict=True)]
