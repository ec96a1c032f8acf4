"""Baselines: methods that solve another problem than the user's, which is built from it.

What is reported stays the user's: its form, and the certificate of the baseline's parameters in it. The certificate of
what the baseline itself minimises stands beside it, as ``solution.own``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from ...base.clock import OutOfTimeError, afresh, at_least
from ...certificate import Certificate, Certifier, violated
from ...form import Form, with_latent_means
from ...running import AbstractIteration, AbstractMethod, Outcome, Start, Task
from ._servers import with_servers


class AbstractBaseline(AbstractMethod):
    """Another problem, and an iteration for it. ``aim`` says in a few words what is minimised."""

    def run(self, task: Task) -> Outcome:
        """The outcome of the other problem, as one of the user's."""
        target = self.target(task.form)
        own = task.instead(target, self.iteration, start_of(target, task.budget.start))
        with afresh() if own.ended == "interrupted" else at_least():  # then for the last word alone
            certificate = in_problem(task.form, own.certificate, task.budget.gap)
        return replace(own, certificate=certificate, by=self.name, own=own, aim=self.aim, bias=self.bias)

    @abstractmethod
    def target(self, form: Form) -> Form:
        """The form that is minimised in place of the user's: on the user's nodes, then latent ones of its own."""

    @property
    @abstractmethod
    def iteration(self) -> AbstractIteration:
        """The iteration that minimises the target."""


B = TypeVar("B", bound=AbstractBaseline)


@dataclass(frozen=True)
class AbstractTargetIteration(AbstractIteration, Generic[B]):
    """An iteration for the target of a baseline, under the name of the baseline, which knows what is missing."""

    options: B  # the baseline

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def bias(self) -> str:
        return self.options.bias

    @property
    def drawn(self) -> bool:
        return self.options.drawn

    def missing(self, form: Form) -> tuple[str, ...]:
        return ()


def start_of(target: Form, start: Start | None) -> Start | None:
    """The start of the target's iteration, from that of the user's form: flows are those of other edges."""
    return None if start is None else (with_servers(target, start[0][: target.space.n_observed]), None)


def in_problem(form: Form, own: Certificate, gap: float) -> Certificate:
    """The certificate, in the user's form, of exactly the parameters that a baseline found.

    Latent nodes of the user's form are put where they are best or nearly so. Where the parameters violate a constraint
    P is +inf at them, and there is a lower bound alone: a point moved to where they hold would not be the baseline's.
    """
    w = np.zeros(form.shape)
    w[: form.space.n_observed] = own.w[: form.space.n_observed]
    w = with_latent_means(form, w)
    with np.errstate(over="ignore", invalid="ignore"):
        certifier = Certifier(form)
        try:
            bounds = certifier.certify(w, None, None, gap)
        except OutOfTimeError:
            bounds = certifier.best()
        return bounds if np.isfinite(form.primal(w)) else violated(bounds, w)
