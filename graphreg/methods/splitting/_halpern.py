"""Restarted Halpern iteration: points are pulled towards an anchor, which moves up where the pull has paid.

For a method that repeats a map T, firmly nonexpansive in some norm, with relaxation in (0, 2):

    x+ = (j + 1)/(j + 2) (x + relaxation (T x - x)) + 1/(j + 2) anchor,      j = 0, 1, ... since the last restart,

(Halpern 1967), and a restart at T x, the new anchor, where ||x - T x|| has fallen far enough, has begun to grow again,
or has not done either for long. On problems that are all edges and no curvature, where plain iterations spiral, that
converges linearly (Lu and Yang, Restarted Halpern PDHG for linear programming, 2024; the restarts are those of PDLP,
Applegate et al. 2021). Where losses are smooth it takes half as many rounds again as the plain iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...network import AbstractFlatPoint, AbstractImage, AbstractRounds, LocalView
from ...terms import Array

EVERY = 5  # rounds between two looks at ||x - T x||
SUFFICIENT, NECESSARY = 0.2, 0.8  # of its value after the last restart: restart at once; restart where it grows
LONG = 0.36  # of all rounds, after which a restart is due anyway
LEAST = 20  # rounds before that

Flows = tuple[Array, ...]  # one array per edge block


@dataclass(frozen=True)
class Iterate:
    """Parameters (n, d) and flows: a point of the space on which T acts."""

    w: Array
    u: Flows

    @staticmethod
    def of(held: AbstractImage) -> Iterate:
        """The iterate that compiled rounds hold: in the order of the form when somebody looks at it."""
        out = object.__new__(Iterate)
        vars(out)["held"] = held
        return out

    @property
    def known(self) -> AbstractImage | None:
        """The image that compiled rounds hold of it; None where they have not seen it."""
        return vars(self).get("held")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Array | Flows:
            if name not in ("w", "u") or "held" not in vars(self):
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            return vars(self).setdefault(name, getattr(vars(self)["held"], name))

    def forget(self) -> None:
        """Drop flows that compiled rounds can find again: the next of them take their room."""
        if self.known is not None and not isinstance(self.known, AbstractFlatPoint):
            for each in (self, self.known):
                vars(each).pop("u", None)

    def toward(self, end: Iterate, t: float) -> Iterate:
        """self + t (end - self)."""
        return Iterate(_toward(self.w, end.w, t), tuple([_toward(a, b, t) for a, b in zip(self.u, end.u, strict=True)]))


def _toward(a: Array, b: Array, t: float) -> Array:
    out = b - a  # in place from here on: flows are the largest arrays of a round
    out *= t
    out += a
    return out


@dataclass(frozen=True)
class Halpern:
    """The state of an iteration between two restarts."""

    steps: int = 0  # j
    first: float = np.inf  # ||x - T x|| right after the restart
    last: float = np.inf  # and when it was looked at last

    def towards_anchor(self, x: Iterate, anchor: Iterate) -> Iterate:
        """The point after its step, which this counts already, pulled towards the anchor."""
        t = self.steps / (self.steps + 1.0)
        u = tuple(t * each + (1.0 - t) * last for each, last in zip(x.u, anchor.u, strict=True))
        return Iterate(t * x.w + (1.0 - t) * anchor.w, u)

    def step(self) -> Halpern:
        return replace(self, steps=self.steps + 1)

    def with_residual(self, residual: float, rounds: int) -> Halpern | None:
        """The state that follows from ||x - T x|| after so many rounds; None where the iteration is to be restarted."""
        if not np.isfinite(self.first):
            return replace(self, first=residual, last=residual)
        fallen = residual <= SUFFICIENT * self.first
        turned = residual <= NECESSARY * self.first and residual > self.last
        long = self.steps > LEAST and self.steps >= LONG * rounds
        return None if fallen or turned or long else replace(self, last=residual)


def _held(x: Iterate, rounds: AbstractRounds) -> AbstractFlatPoint:
    """The point as these rounds hold it."""
    known = x.known
    return known if isinstance(known, AbstractFlatPoint) and known.rounds is rounds else rounds.iterate_of(x.w, x.u)


def distances(view: LocalView, *pairs: tuple[Iterate, Iterate]) -> Array:
    """For each pair: sum_i deg_i ||dw_i||^2 and sum_e (2, to the ground 1) ||du_e||^2, one reduction, (k, 2).

    With steps tau = s / deg and sigma = 1/(2 s) the squared length of (dw, du) is the first over s plus s times the
    second.
    """
    held = [(a.known, b) for a, b in pairs]
    compiled = [(x, b) for x, b in held if isinstance(x, AbstractFlatPoint)]
    if view.whole_graph is None and len(compiled) == len(pairs):  # of all nodes
        return view.engine.reduce(np.array([[x.rounds.way(x, _held(b, x.rounds)) for x, b in compiled]]))
    each = np.zeros((view.form.n, len(pairs), 2))  # recorded at the node, or at the tail of the edge
    for k, (a, b) in enumerate(pairs):
        each[:, k, 0] = view.degree * ((a.w - b.w) ** 2).sum(axis=1)
        for block, one, other in zip(view.rows, a.u, b.u, strict=True):
            size = block.lengths * ((one - other) ** 2).reshape(len(one), -1).sum(axis=1)
            each[:, k, 1] += np.bincount(block.map.owner, size, minlength=view.form.n)
    return view.engine.reduce(each)
