"""How far points are from the optimum of a problem: by a certified optimum, and by how far that may itself be off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..certificate import Certificate, common, feasible, relative
from ..errors import GraphregError
from ..form import placed
from ..methods import Exact
from ..problem import Problem
from ..terms import Array
from .course import unit_of

GAP = 1e-11  # asked of the optimum that distances are measured from
ENOUGH = 1e-6  # and what it must have for distances to mean anything
ROUGH = 1e-4  # a distance of gaps, sqrt of 1e-8, to which inexact proxes come
ANY = 1e300  # a gap that every bound has
NOTHING = 1e-9  # units below which the optimum is 0, and says nothing of sizes
DIGITS = 1e-13  # of w*, that rounding leaves


@dataclass(frozen=True)
class Optimum:
    """The optimum w* of a problem with its certificate.

    Distances are ||w - w*|| / min(||w*||, sqrt(n d)), parameters in the units of `unit_of`, where the objective is
    strongly convex, so that w* is unique and known to within `radius`; elsewhere sqrt of the relative gap of the
    feasible point next to w, plus how far that is away.
    """

    problem: Problem
    w: Array
    certificate: Certificate

    @staticmethod
    def of(problem: Problem, seconds: float | None = None) -> Optimum:
        """By the exact route."""
        solution = problem.solve(Exact(), gap=GAP, seconds=seconds, progress=False, on_failure="return")
        if solution.status == "interrupted":
            raise KeyboardInterrupt
        return Optimum(problem, solution.coef, solution.certificate)

    @cached_property
    def unit(self) -> Array:
        """Of each parameter, (d,)."""
        return unit_of(self.problem.form)

    @cached_property
    def size(self) -> float:
        """What lengths are compared with: the optimum's own, and no more than a unit in every parameter."""
        length, whole = self.length(self.w), float(np.sqrt(self.w.size))
        return min(length, whole) if length > NOTHING * whole else whole

    def length(self, w: Array) -> float:
        """The norm of parameters in units."""
        return float(np.linalg.norm(w / self.unit))

    @cached_property
    def unique(self) -> bool:
        return self.certificate.strong_convexity > 0.0 and self.radius < 1e-2

    @property
    def known(self) -> bool:
        """Whether a distance rests on a certificate."""
        return self.certificate.valid and self.certificate.relative_gap <= ENOUGH

    def disagreement(self, w: Array) -> float:
        """How far nodes are apart."""
        return self.length(w - w.mean(axis=0)) / self.size

    @cached_property
    def radius(self) -> float:
        """How far w* may be from the optimum, in the unit of the distances."""
        return self.certificate.distance / float(self.unit.min()) / self.size

    @property
    def floor(self) -> float:
        """The distance below which points cannot be told from the optimum."""
        gap = self.certificate.relative_gap
        if self.unique:
            return self.radius + DIGITS * self.length(self.w) / self.size
        return max(ROUGH, float(np.sqrt(gap))) if np.isfinite(gap) else ROUGH

    def distance(self, w: Array) -> float:
        """The distance of a point (n_observed, d)."""
        if self.unique:
            return self.length(w - self.w) / self.size
        form = self.certificate.form
        whole = placed(form, np.vstack([w, np.zeros((form.n - len(w), form.d))]))
        near = feasible(form, whole)
        with np.errstate(all="ignore"):
            value = form.primal(near)
        floor = common(form).floor
        above = relative(max(value - self.certificate.dual, 0.0), value, self.certificate.dual, floor)
        moved = self.length(near - whole) / self.size
        return float(np.sqrt(above)) + moved if np.isfinite(above) else float("inf")

    def judged(self, w: Array) -> Certificate | None:
        """The certificate of a point, against the lower bound that is known; None where there is none."""
        point = self.certificate.dual_point
        try:
            return self.problem.certify(w, point.flows, point.prices, gap=ANY)
        except GraphregError:
            return None

    @property
    def rests_on(self) -> str:
        """What a distance is measured by, in words."""
        if not self.known:
            return "distances rest on no certificate: the optimum was not certified, so they are indications"
        by = f"optimum certified to a relative gap of {self.certificate.relative_gap:.1e}"
        if self.unique:
            size = "||w*||" if self.size < np.sqrt(self.w.size) else "the root of how many there are"
            return (
                f"distances are ||w - w*|| / {size}, parameters in units in which the losses feel them, w* known to "
                f"within {self.radius:.1e} ({by})"
            )
        return f"distances are sqrt of the relative gap to the {by}, plus the way to where all constraints hold"
