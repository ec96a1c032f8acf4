"""What the two methods have in common whose flows remove the bias of a constant step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..lowering.mixing import Mixing
from ..lowering.site import Site
from ..terms.records import Array
from . import _consensus as consensus
from . import _sampling as sampling
from ._base import Point
from ._decreasing import DecreasingStep, Steps, steps_of
from ._sampling import Samples, Seen


class Tracking(Samples, Protocol):
    """A method of that kind: its options on samples and steps."""

    @property
    def step_size(self) -> float | DecreasingStep | None: ...


@dataclass(frozen=True)
class Tracked:
    """The state of such a method, in its own variables."""

    site: Site
    round: int
    theta: Array
    u: tuple[Array, ...]  # flows; of the edges between nodes only
    mixing: Mixing
    steps: Steps
    seen: Seen

    @property
    def eta(self) -> float:
        """The step of this round, in units of 1 / curvature of the summands."""
        return self.steps.at(self.round)

    def point(self, batch: int | None) -> Point:
        """What is certified. With batches the flows are as noisy as the gradients: the certifier finds better ones."""
        flows = None if batch is not None else consensus.certifiable(self.site, self.theta, self.u)
        return self.theta, flows, None

    def gathered(self, method: Tracking) -> dict[str, Any]:
        """Nothing with full gradients: there is no noise to speak of, and Hessians are large."""
        if method.batch is None:
            return {}
        return sampling.gathered(method, self.site, self.theta, self.seen, self.steps, self.round)


def stepped(method: Tracking) -> bool:
    """Whether steps are given, so that none need follow from the curvature."""
    step = method.step_size
    return step is not None if not isinstance(step, DecreasingStep) else None not in (step.D, step.gamma)


def start(
    method: Tracking, site: Site, theta: Array, u: tuple[Array, ...], mixing: Mixing, slowed: float, source: str
) -> Tracked:
    """Before the first step. Nodes step along their own gradients, not K times these: the eta_t of a `DecreasingStep`,
    by which the mean moves along the sum of all gradients, are K times as long here."""
    if isinstance(method.step_size, DecreasingStep):
        steps = steps_of(site, theta, method.step_size, method.batch, 1, method.name, slowed)
        steps = replace(steps, D=site.n_nodes * steps.D)
    else:
        L = consensus.smoothness(site, method.batch)
        bound = slowed * 2.0 / L if L > 0.0 else 0.0
        steps = Steps(consensus.step_of(method.step_size, bound, method.name, source), 0.0, 0.0, 1)
    return Tracked(site, 0, theta, u, mixing, steps, sampling.start(method, site, theta))
