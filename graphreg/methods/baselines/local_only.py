"""Every node by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...form import Form, without_edges
from ...network import LocalView, Memories
from ...oracles import without_prox
from ...running import AbstractIteration, Point, Start
from ...terms import Array
from ..splitting.primal_dual import PrimalDual
from ._baseline import AbstractBaseline, AbstractTargetIteration

LONG = 1e6  # the step of the proximal-point iteration, over the inverse of a node's mean curvature


@dataclass(frozen=True)
class State:
    view: LocalView
    round: int
    w: Array
    memory: Memories


@dataclass(frozen=True)
class LocalOnly(AbstractBaseline):
    """Every node's own fit: ``minimise f_i(w_i) + its node penalties`` at each node i; edges between nodes are dropped.

    Without node penalties a round is one step of the proximal-point iteration at every node, so long that a few reach
    the minimiser, and nothing is sent at all. With node penalties it is a round of `PrimalDual`, which sends nothing
    either but for the sums by which its balance adapts.

    Examples
    --------
    >>> run = problem.solve(gr.LocalOnly(), gap=1e-6)
    >>> run.table().round(2)
          rain  temp
    node
    a     0.98 -0.03
    b     1.05 -0.06
    c    -1.04  0.15
    d    -1.06  0.05
    """

    aim = "each node's own fit, without the edges between nodes"
    needs = "losses that are smooth or piecewise linear; it drops the edges between nodes"
    sends = "nothing of its models; with node penalties, the sums over all nodes by which its steps adapt"

    def missing(self, form: Form) -> tuple[str, ...]:
        return without_prox(form)

    def target(self, form: Form) -> Form:
        return without_edges(form)

    @property
    def iteration(self) -> AbstractIteration:
        return _Alone(self)


class _Alone(AbstractTargetIteration[LocalOnly]):
    def polishes(self) -> bool:
        return True

    def init(self, view: LocalView, start: Start | None) -> Any:
        if view.form.edges:
            return PrimalDual().init(view, start)
        return State(view, 0, np.zeros(view.form.shape) if start is None else start[0], view.memory())

    def step(self, state: Any) -> Any:
        if not isinstance(state, State):
            return PrimalDual().step(state)
        curvature = state.view.curvature
        tau = LONG / np.where(curvature > 0, curvature, 1.0)
        w, memory = state.view.prox(state.w, tau, state.w, state.memory)
        return replace(state, round=state.round + 1, w=w, memory=memory)

    def point(self, state: Any) -> Point:
        if not isinstance(state, State):
            return PrimalDual().point(state)
        return state.w, (), state.view.prices(state.w, state.memory)
