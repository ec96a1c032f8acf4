"""Predicted costs of methods: the time of a round of the primal-dual method, of a run of the interior-point
method, and of a conic solver; and the memory that they take.

The constants are seconds of one thread on one machine, fitted to random problems by ``python -m benchmarks.choice``.
Only their ratios play a part, so that the same problem is solved in the same way everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from ..base.compiled import compiles
from ..form import Form
from ..network import code_of, compiled_from
from ..oracles import factor_bytes, filled_work, work
from ..terms.losses import AbstractQuadraticLoss, AbstractSmoothLoss

BAND = 1e10  # multiplications of a banded factorisation, a bound: beyond it the fill is not counted
MULTIPLICATION = 2.6e-10  # seconds, of those of a factor, with the solves that follow
SMALL = 0.3  # of the rest: what is not counted
COUNTED = 5e-6  # seconds in which a node or an edge is
STEPS = 7.5  # of the interior-point method to a gap of 1e-6
KINKS = 3.0  # more where losses have kinks
SET_UP = 8e-3  # seconds of what is done before them
MANY = 150  # rounds: where that method takes no longer, it comes first
PER_NUMBER = 100.0  # bytes of rounds and their certificates, for each parameter and difference
PER_GRAM, PER_SQUARE = 16.0, 8.0  # bytes for each entry of a node's d x d matrices, and of one that all share
PER_ROW = 2000.0  # bytes of what CVXPY and a solver make of each parameter, difference and sample
MORE = 1.25  # steps for each further digit
MOST = 1e12  # rounds


@dataclass(frozen=True)
class Costs:
    """The predicted costs of a form, where a relative gap is asked for, and so many rounds were taken before."""

    form: Form
    gap: float = 1e-6
    earlier: int = 0

    @cached_property
    def multiplications(self) -> float:
        """The multiplications of a sparse factorisation of all parameters; a bound where that is small beside the rest
        of a step, about a fifth of one where rounds come first without them and counting takes long, and inf where it
        is too large to count them. Trees fill in nothing."""
        form, edges = self.form, sum(edge.count for edge in self.form.between)
        if edges == form.n - form.n_components and not form.unlike_edges:
            return 4.0 * form.d**3 * form.n
        if work(form) > BAND or self.cheap:
            return float("inf") if work(form) > BAND else work(form)
        least = SET_UP + STEPS * self._around_factors
        waits = COUNTED * (form.n + edges) > SMALL * least and self.rounds_in(least) >= MANY
        return work(form) / 5.0 if waits else filled_work(form)

    @property
    def cheap(self) -> bool:
        """True where even a bound of the multiplications is no matter beside the rest of a step."""
        return MULTIPLICATION * work(self.form) <= SMALL * self._around_factors

    @cached_property
    def differences(self) -> float:
        """Differences across edges; of other rows half the entries of K."""
        rows = (edge for edge in self.form.edges if edge.map.edges is None)
        other = sum(0.5 * edge.flat(self.form.d).nnz - edge.count * self.form.width(edge) for edge in rows)
        return self.form.differences + other

    @property
    def samples(self) -> int:
        """The numbers that the losses look at."""
        return sum(block.offset.size for block in self.form.samples)

    def rounds_in(self, seconds: float) -> int:
        """The number of rounds of `PrimalDual` that take so long: some before they are compiled, and more from then
        on. Of no end of time `MOST`."""
        plain = min(seconds / self.round(compiled=False), MOST)
        first = compiled_from(self.form.differences, code_of(self.form).price, self.earlier)
        if plain < first or not compiles():
            return int(plain)
        return int(first + (plain - first) * self.round(compiled=False) / self.round(compiled=True))

    def round(self, compiled: bool) -> float:
        """Seconds of a round of `PrimalDual`, with its share of looks at it."""
        n, d = self.form.shape
        out = 9e-5 + (2.9e-9 if compiled else 3.0e-8) * (n * d + self.differences)
        for block in self.form.samples:
            numbers = block.offset.size * d if block.map.noun == "sample" else block.A.nnz
            if not isinstance(block.loss, AbstractQuadraticLoss):
                out += 8e-4 + (4.5e-8 if isinstance(block.loss, AbstractSmoothLoss) else 1.5e-7) * numbers
        return out

    @property
    def interior(self) -> float:
        """Seconds of a run of `InteriorPoint`."""
        digits = math.log10(1e-6 / self.gap) if 0.0 < self.gap < 1e-6 else 0.0
        kinks = KINKS * any(not isinstance(block.loss, AbstractSmoothLoss) for block in self.form.samples)
        return SET_UP + (STEPS + kinks + MORE * digits) * self.step

    @property
    def step(self) -> float:
        """Seconds of a step of it."""
        return self._around_factors + MULTIPLICATION * self.multiplications

    @property
    def _around_factors(self) -> float:
        """Seconds of a step, with a look at it, but for its factorisation."""
        out = 1e-3 + 1e-6 * self.differences
        for block in self.form.samples:
            numbers = block.offset.size * self.form.d
            out += 8e-10 * numbers * self.form.d
            if not isinstance(block.loss, AbstractQuadraticLoss):
                boxes = block.loss.bends(block.y.ravel()[:1]) is not None
                out += 2.9e-7 * block.offset.size if boxes else 2.9e-8 * numbers
        return out

    @property
    def arrays(self) -> float:
        """Bytes of rounds, beside the problem itself."""
        n, d = self.form.shape
        return PER_NUMBER * (n * d + self.form.differences) + (PER_GRAM * n + PER_SQUARE) * d**2

    @property
    def factors(self) -> float:
        """Bytes of the factors of a sparse matrix of all parameters; at least so many where they are not counted."""
        many = math.isinf(self.multiplications)
        return factor_bytes(self.form, "least" if many else "most" if self.cheap else "counted")

    @property
    def written(self) -> float:
        """Bytes of a form as CVXPY and a conic solver have it, without the solver's factors."""
        return PER_ROW * (self.form.n * self.form.d + self.differences + self.samples)

    @property
    def exact(self) -> float:
        """Seconds of `Exact`."""
        return 2e-2 + 2e-5 * self.differences + 1.3e-5 * self.samples + 2.5e-9 * self.multiplications
