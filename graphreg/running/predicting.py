"""Predicted costs of methods: the time of a round of the primal-dual method, of a run of the interior-point
method, and of a conic solver; and the memory that they take.

The constants are seconds of one thread on one machine, fitted to random problems by ``python -m benchmarks.choice``.
Only their ratios play a part, so that the same problem is solved in the same way everywhere.
"""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass
from functools import cached_property

from ..base.compiled import compiles
from ..form import EdgeBlock, Form
from ..network import code_of, compiled_from
from ..oracles import factor_bytes, filled_work, work
from ..terms import SampleBlock
from ..terms.losses import AbstractQuadraticLoss, AbstractSmoothLoss
from ..terms.penalties import AbstractSmoothPenalty

BAND = 1e10  # multiplications of a factorisation that are too many
MULTIPLICATION = 2.8e-10  # seconds, of those of a factor, with the solves that follow
SMALL = 0.3  # of the rest: what is not counted
COUNTED = 1.5e-6  # seconds in which a node or an edge is
FILLING = 1.5e-12  # and each three of the nodes that may fill in
STEPS, NEWTON = 8.0, 5.0  # of the interior-point method to a gap of 1e-6; where nothing has cones, Newton's alone
KINKS = 2.5  # more where losses have kinks
CLASSES = 1.6  # times as long a prox of classes takes, for each of its numbers
SET_UP = 4e-3  # seconds of what is done before them
MANY = 110  # rounds: where that method takes no longer, it comes first
PER_NUMBER = 100.0  # bytes of rounds and their certificates, for each parameter and difference
PER_GRAM, PER_SQUARE = 16.0, 8.0  # bytes for each entry of a node's d x d matrices, and of one that all share
PER_ROW = 2000.0  # bytes of what CVXPY and a solver make of each parameter, difference and sample
MORE = 1.25  # steps for each further digit
MOST = 10**12  # rounds


@dataclass(frozen=True)
class Costs:
    """The predicted costs of a form, where a relative gap is asked for, and so many rounds were taken before."""

    form: Form
    gap: float = 1e-6
    earlier: int = 0

    @cached_property
    def multiplications(self) -> float:
        """The multiplications of a sparse factorisation of all parameters; a bound where that is small beside the rest
        of a step, about a fifth of one where rounds come first without them and counting takes long, and inf where
        they are too many, or counting those of a large bound takes long. Trees fill in nothing."""
        form, edges = self.form, sum(edge.count for edge in self.form.between)
        if edges == form.n - form.n_components and not form.unlike_edges:
            return 4.0 * form.d**3 * form.n
        least, rounds, bound = SET_UP + self.steps * self._around_factors, self.run(MANY), work(form)
        filling = min(form.n, 2 * max(edges - form.n, 0))  # nodes of one or two neighbours go before, and leave those
        slow = COUNTED * (form.n + edges) + FILLING * filling**3 > SMALL * min(least, rounds)
        if self.cheap:
            found = bound
        elif bound <= BAND:
            found = bound / 5.0 if slow and least >= rounds else filled_work(form)
        else:
            found = float("inf") if slow else filled_work(form)
        return found if found <= BAND else float("inf")

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
        """The number of rounds of `PrimalDual` that take no longer, up to `MOST`."""
        return bisect(range(1, MOST), seconds, key=self.run)

    def run(self, rounds: int) -> float:
        """Seconds of so many rounds of `PrimalDual`, some before they are compiled, of the looks at them, which become
        rarer, and of what is done once."""
        plain, (each, first), numbers = min(rounds, self._plain), self._proxes, self._numbers
        looks, before = looks_at(rounds), looks_at(plain)
        out = 1.5e-3 + 8e-7 * numbers + rounds * each + looks * (1.8e-3 + first)
        compiled = 6e-10 * (rounds - plain) + 1e-8 * (looks - before)
        return out + numbers * (1e-8 * plain + 5e-8 * before + compiled)

    @cached_property
    def _plain(self) -> float:
        """The number of rounds before they are compiled."""
        form = self.form
        return compiled_from(form.differences, code_of(form).price, self.earlier) if compiles() else math.inf

    @cached_property
    def _numbers(self) -> float:
        """Parameters and differences."""
        return self.form.n * self.form.d + self.differences

    @cached_property
    def _designs(self) -> list[tuple[SampleBlock, int, int]]:
        """The samples that are not of w_i itself, the number of stacks of nodes with about as many of them, which are
        gone through one after the other, and the entries of their designs."""
        out = list[tuple[SampleBlock, int, int]]()
        for block in self.form.samples:
            if block.map.noun == "row":
                out.append((block, 1, block.A.nnz))
            elif block.X is not None:
                out.append((block, len(block.layout.lanes), block.offset.size * self.form.d))
        return out

    @cached_property
    def stacks(self) -> int:
        """The number of stacks of nodes beyond one of each loss, of losses whose proxes take steps."""
        return sum(n - 1 for block, n, _ in self._designs if not isinstance(block.loss, AbstractQuadraticLoss))

    @cached_property
    def _proxes(self) -> tuple[float, float]:
        """Seconds of what a round has numpy do, and of the proxes of losses, which take steps unless they are
        squares; and of the steps that these take more at first, far from the point of the round before, by looks:
        these become rarer alike."""
        each, first = 1e-4 + 3e-5 * self.stacks, 1.7e-3 * self.stacks
        for block, _, entries in self._designs:
            if isinstance(block.loss, AbstractQuadraticLoss):
                each += 2e-9 * self.form.n * self.form.d**2
            elif isinstance(block.loss, AbstractSmoothLoss):
                size = block.offset.size * (CLASSES if block.width > 1 else 1.0)
                each, first = each + 1e-7 * size, first + 1e-6 * size
            else:
                size = block.offset.size
                each, first = each + 4.5e-8 * size + 3e-9 * entries, first + 5e-6 * size + 1.2e-6 * entries
        return each, first

    @property
    def interior(self) -> float:
        """Seconds of a run of `InteriorPoint`."""
        digits = math.log10(1e-6 / self.gap) if 0.0 < self.gap < 1e-6 else 0.0
        return SET_UP + (self.steps + MORE * digits) * self.step

    @property
    def steps(self) -> float:
        """The number of its steps to a gap of 1e-6."""
        form = self.form
        kinks = any(not isinstance(block.loss, AbstractSmoothLoss) for block in form.samples)
        return STEPS + KINKS * kinks if kinks or any(map(_has_cones, form.edges)) else NEWTON

    @property
    def step(self) -> float:
        """Seconds of a step of it."""
        return self._around_factors + MULTIPLICATION * self.multiplications

    @property
    def conjugate(self) -> float:
        """Seconds of a round of conjugate gradients for a sum of squares."""
        n, d = self.form.shape
        return 3e-5 + 4e-9 * self.differences + n * (1.5e-8 + 2e-9 * d + 5e-10 * d**2)

    @property
    def _around_factors(self) -> float:
        """Seconds of a step, with a look at it, but for its factorisation."""
        form = self.form
        easy = sum(edge.count * form.width(edge) for edge in form.between if not _has_cones(edge))
        cones = self.differences - 0.75 * easy  # those without cones take a quarter
        out = 1.4e-3 + 8.6e-7 * cones + 2.7e-6 * form.n
        for block, _, entries in self._designs:
            squares, boxes = isinstance(block.loss, AbstractQuadraticLoss), block.loss.bends(block.y.ravel()[:1])
            out += 2e-7 * entries + (0.0 if squares or boxes is None else 1.1e-6 * block.offset.size)
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


def _has_cones(edge: EdgeBlock) -> bool:
    """True where the interior-point method has cones for a penalty."""
    return not isinstance(edge.penalty, AbstractSmoothPenalty) or edge.penalty.envelope() is not None


def looks_at(rounds: float) -> float:
    """The number of looks at so many rounds: the next is after a tenth of them at least, or half way to the gap."""
    return 3.5 * math.log1p(rounds / 15.0)
