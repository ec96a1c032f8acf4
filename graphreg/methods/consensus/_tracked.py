"""The common part of the two methods whose flows remove the bias of a constant step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...form import Form
from ...network import LocalView, Mixing, mixing_of
from ...running import Point, Start
from ...terms import Array
from . import _consensus as consensus
from ._decreasing import DecreasingStep, Steps, steps_of
from ._sampling import AbstractConsensusMethod, SampleHistory


@dataclass(frozen=True)
class Tracked:
    """The state of such a method, in its own variables."""

    view: LocalView
    round: int
    theta: Array
    u: tuple[Array, ...]  # flows; of the edges between nodes only
    mixing: Mixing
    steps: Steps
    seen: SampleHistory

    @property
    def eta(self) -> float:
        """The step of this round, in units of 1 / curvature of the summands."""
        return self.steps.at(self.round)


class AbstractTracking(AbstractConsensusMethod):
    """A method of that kind."""

    source: ClassVar[str]  # of the bound of its steps

    def share_of_bound(self, view: LocalView, mixing: Mixing) -> float:
        """The share that is left of the bound 2 / max L_i on a mixing."""
        return 1.0

    def nearer(self, form: Form) -> str:
        drawn = self.batch is not None and not isinstance(self.step_size, DecreasingStep)
        return "take batch=None, or step_size=DecreasingStep()" if drawn else ""

    def init(self, view: LocalView, start: Start | None) -> Tracked:
        """Nodes step along their own gradients, not K times these: the eta_t of a `DecreasingStep`, by which the mean
        moves along the sum of all gradients, are K times as long here."""
        theta, u = consensus.start_of(view, start)
        mixing = mixing_of(view, self.mixing, self.lazy)
        slowed = self.share_of_bound(view, mixing)
        if isinstance(self.step_size, DecreasingStep):
            steps = steps_of(view, theta, self.step_size, self.batch, self.name, slowed)
            steps = replace(steps, D=view.n_nodes * steps.D)
        else:
            L = consensus.smoothness(view, self.batch)
            bound = slowed * 2.0 / L if L > 0.0 else 0.0
            steps = Steps(consensus.step_of(self.step_size, bound, self.name, self.source), 0.0, 0.0)
        return Tracked(view, 0, theta, u, mixing, steps, self.nothing_seen(view, theta))

    def point(self, state: Tracked) -> Point:
        """With batches the flows are as noisy as the gradients: the certifier finds better ones."""
        flows = None if self.batch is not None else consensus.certifiable(state.view, state.theta, state.u)
        return state.theta, flows, None

    def gathered(self, state: Tracked) -> dict[str, Any]:
        """Nothing with full gradients: there is no noise to speak of, and Hessians are large."""
        return {} if self.batch is None else super().gathered(state)
