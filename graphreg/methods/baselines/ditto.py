"""Ditto: a model of each client, pulled to the one of federated averaging."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.messages import unmatched
from ...certificate import Certifier
from ...checks import checked, count, counts, per, positive
from ...form import Form
from ...network import AVAILABILITY, LocalView, per_node
from ...oracles import without_bound
from ...running import AbstractIteration, Point, Start
from ...terms import TO_GROUND, Array, EdgeBlock, Selection, Strength
from ...terms.penalties import SquaredL2
from ._averaging import AbstractAveraging, Averaging
from ._averaging import State as AveragingState
from ._servers import OneServer

SETTLED, LONGEST = 1e-9, 5000  # a move of the server's model, over its size; rounds after which nobody waits for it


@dataclass(frozen=True)
class State(AveragingState):
    v: Array  # the personal models, in the rows of the clients
    pull: Array  # lam_i, 0 at the servers, (n,)
    moved: float  # by how much the last round moved the server's model


@dataclass(frozen=True)
class Ditto(OneServer, AbstractAveraging):
    """Ditto (Li, Hu, Beirami and Smith, ICML 2021, Algorithm 1): the model w of `FedAvg`, and personal models.

        v_i = argmin over v of  f_i(v) + lam_i/2 ||v - w||^2,      w the fit of one model to all

    In a round, beside the local steps by which `FedAvg` goes on, every client that is there takes ``personal_steps``

        v_i <- v_i - (grad f_i(v_i) + lam_i (v_i - w)) / (L_i + lam_i)

    with the w that it was sent, L_i the smoothness of f_i. Unlike that of `PFedMe`, w knows nothing of the v_i: it is
    that of `FedAvg`, bit for bit, with its bias where ``local_steps`` are several. ``coef`` are the v_i.

    What is certified, as ``solution.own``, is the problem of the v_i *at the w of the last round*, which is convex, and
    not that this w is the best: of it `FedAvg` with the same options says how far it is. The certificate waits until w
    moves by less than 1e-9 of its size, or 5000 rounds; where batches or clients are drawn it does not wait. The v_i
    converge as w does: linearly to those of its limit, where each f_i is strongly convex or, as lam_i > 0, without it
    (Theorem 1 of the paper has the rate of w for its solver, with decreasing steps).

    Parameters
    ----------
    lam : float or mapping
        lam_i, positive, one for all or one per node label. Required: None (default) is refused by `solve`.
    personal_steps : int
        s in the paper; 1 by default.
    local_steps, step_size, batch, availability
        Of w, as for `FedAvg`; clients that are away move neither model.

    A round sends what `FedAvg` sends: personal models stay where they are. ``solution.gathered["model"]`` is w, (d,).

    Examples
    --------
    >>> run = problem.solve(gr.Ditto(lam=0.5), gap=1e-6)  # personal models near one for all: another problem
    >>> run.own.holds(1e-6), run.coef.shape == (problem.form.n, problem.form.d)
    (True, True)
    """

    aim = "each node's own fit, pulled to the model that its server ended with"
    needs = "a pull lam; smooth losses with a bound of their curvature, smooth node penalties; it drops the edges "
    needs += "between nodes"

    lam: float | Mapping[Hashable, float] | None = checked(per("node", positive), None)
    personal_steps: int = checked(count, 1)
    local_steps: int | Mapping[Hashable, int] = checked(counts, 1)
    step_size: float | None = checked(positive, None)
    batch: int | Mapping[Hashable, int] | None = checked(counts | None, None)
    availability: Any = checked(AVAILABILITY, None)

    def missing(self, form: Form) -> tuple[str, ...]:
        out = unmatched("lam", self.lam, form.space.index)
        if self.lam is None:
            out.append("the pull of the server on the clients is to be chosen: give Ditto(lam=...)")
        return tuple(dict.fromkeys((*out, *super().missing(form), *without_bound(form))))

    @property
    def iteration(self) -> AbstractIteration:
        return _Personal(self)


class _Personal(Averaging):
    def init(self, view: LocalView, start: Start | None) -> State:
        before = super().init(view, start)
        return State(**vars(before), v=before.w, pull=per_node(view.form, self.options.lam, 0.0), moved=np.inf)

    def step(self, state: State) -> State:
        new, view, batch, s = super().step(state), state.view, self.options.batch, self.options.personal_steps
        before, after = state.presence, new.presence
        present = True if before is None or after is None else after.online > before.online
        pull, v = state.pull[:, None], state.v
        L = view.gradients.smoothness if batch is None else view.gradients.sample_smoothness
        rate = np.where(present & (state.pull > 0), 1.0 / np.maximum(L + state.pull, 1e-300), 0.0)[:, None]
        for k in range(s):
            v = v - rate * (view.gradient(v, batch, state.round * s + k) + pull * (v - state.w))
        return replace(new, v=v, moved=float(np.abs(new.w - state.w).max()))

    def early(self, state: State) -> bool:
        moving = state.moved > SETTLED * np.abs(state.w).max() and state.round < LONGEST
        return moving and not self.options.drawn

    def judge(self, state: State, certifier: Certifier) -> Certifier:
        """The certifier of the personal models at this model of the server."""
        form = _pulled(state)
        known, w = (each.edges[-1].center for each in (certifier.form, form))
        same = known is not None and w is not None and np.array_equal(known, w)
        return certifier if same else Certifier(form)

    def point(self, state: State) -> Point:
        return np.where((state.view.ids >= state.view.n_observed)[:, None], 0.0, state.v), None, None

    def gathered(self, state: State) -> dict[str, Any]:
        return {"model": state.w[state.topology.server[0]]}


def _pulled(state: State) -> Form:
    """The form of the personal models: edges to the ground with the server's model as their centre."""
    form = state.view.form
    clients = np.arange(form.space.n_observed)
    phi, c, w = SquaredL2(), state.pull[clients], state.w[clients]
    pull = EdgeBlock(phi, Strength(), Selection(clients, n=form.n), c, w, TO_GROUND, "Pull to the server's model")
    return replace(form, edges=(*form.to_ground, pull))
