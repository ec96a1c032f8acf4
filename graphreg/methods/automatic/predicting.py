"""What methods are predicted to cost: the time of a round of the primal-dual method, of a run of the interior-point
method, and of a conic solver.

The constants are seconds of one thread on one machine, fitted to random problems by ``python -m benchmarks.choice``.
Only their ratios play a part, so that the same problem is solved in the same way everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...form import Form
from ...oracles import filled_work, work
from ...terms.losses import AbstractQuadraticLoss, AbstractSmoothLoss

BAND = 1e10  # multiplications of a banded factorisation, a bound: beyond it the fill is not counted
STEPS = 9.0  # of the interior-point method, what is set up before them included


@dataclass(frozen=True)
class Costs:
    """The predicted costs of a form."""

    form: Form

    @cached_property
    def multiplications(self) -> float:
        """Of a sparse factorisation of all parameters; inf where a bound of them is too large to count them."""
        return filled_work(self.form) if work(self.form) <= BAND else float("inf")

    @cached_property
    def differences(self) -> int:
        """The numbers on all edges."""
        return sum(len(edge.tail) * self.form.width(edge) for edge in self.form.edges)

    @property
    def round(self) -> float:
        """Seconds of a round of `PrimalDual`."""
        n, d = self.form.shape
        out = 1.5e-4 + 1.5e-8 * self.differences
        for block in self.form.samples:
            if isinstance(block.loss, AbstractQuadraticLoss):
                out += 4e-10 * n * d**2
            elif isinstance(block.loss, AbstractSmoothLoss):
                out += 2.3e-4 + 1.2e-8 * block.offset.size * d
            else:
                out += 2.3e-4 + 8e-9 * block.offset.size * d + 1.8e-10 * block.offset.size**2 / n
        return out

    @property
    def interior(self) -> float:
        """Seconds of a run of `InteriorPoint`."""
        samples = sum(block.offset.size for block in self.form.samples)
        step = 2.6e-3 + 1.4e-6 * self.differences + 2.8e-8 * samples * self.form.d**2
        return STEPS * (step + 1.3e-10 * self.multiplications)

    @property
    def exact(self) -> float:
        """Seconds of `Exact`."""
        samples = sum(block.offset.size for block in self.form.samples)
        compiled = 1.3e-2 + 3e-5 * self.differences + (9e-7 * self.form.d + 1.8e-5) * samples
        return compiled + 1e-8 * self.multiplications
