"""Fixed-point methods: an algorithm is its map T, and what speeds it up is written here, once for all of them.

    x+ = x + relaxation (T x - x),      x = (w, u): parameters and flows, with T x what is certified.

A fixed-point method says what T is (`AbstractFixedPoint.image`), and which of these it takes (`Acceleration`):

- **over-relaxation**, 1 < relaxation < 2 where T is firmly nonexpansive (and up to its constant where it is averaged);
- **restarts**, Halpern's iteration towards an anchor that moves up (`_halpern`);
- a **balance** s between the steps of w and of u, which adapts: with tau_i = s / deg_i and sigma = 1/(2 s) the best s
  is the ratio of how far w and u have to go, so it moves towards how far they went.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...checks import ChecksFields, checked, count, inside, positive
from ...network import LocalView, Memories, Scales
from ...running import AbstractIteration, Point, Start
from ...terms import Array, strengths
from ._halpern import EVERY, Flows, Halpern, Iterate, distances

FIRST_ADAPTATION = 10
DAMPING = 0.7  # s <- q^.7 s^.3
CHANGE = 1.3  # the least factor that is worth a change


@dataclass(frozen=True)
class Acceleration(ChecksFields):
    """The accelerations that a fixed-point method adds to x+ = T x, x = (w, u); by default nothing.

    Parameters
    ----------
    relaxation : float
        x+ = x + relaxation (T x - x), in (0, 2); 1 by default. It converges below 2 where T is firmly nonexpansive,
        below 1/alpha where T is alpha-averaged (Krasnoselskii and Mann): 3/2 for Condat-Vu with 1/tau = L + deg/s.
    restarts : bool, optional
        Whether points are pulled towards an anchor that moves up at restarts (Halpern 1967; Lu and Yang 2024), where
        the balance then adapts. None: where a loss has kinks and the balance is free.
    balance : float, optional
        s, in units of 1 / curvature. None: free. It starts at mean degree over mean curvature and adapts, without
        restarts at rounds 10, 20, ..., towards the ratio of the ways that w and u went (as the primal weight of PDLP,
        Applegate et al. 2021); this takes sums over all nodes.
    pace : int
        How often the balance adapts later: every 1/pace of the rounds so far; 2 by default.

    Examples
    --------
    >>> gr.PrimalDual(relaxation=1.5).acceleration
    Acceleration(relaxation=1.5, restarts=None, balance=None, pace=2)
    """

    relaxation: float = checked(inside("(0, 2)"), 1.0)
    restarts: bool | None = False
    balance: float | None = checked(positive | None, 1.0)
    pace: int = checked(count, 2)


@dataclass(frozen=True)
class State:
    """The state of a fixed-point method between two rounds."""

    view: LocalView
    round: int
    x: Iterate
    hat: Iterate  # T x of the round before: neither relaxed nor pulled, this is certified
    memory: Memories  # of the node proxes, or whatever else T remembers; empty before the first round
    s: float  # balance
    anchor: Iterate  # where the balance was adapted last, or the iteration restarted
    due: Halpern | int | None  # between two restarts, or the round in which the balance adapts; None: neither
    earlier: int = 0  # rounds of the runs before, at other strengths
    price: float = 0.0  # of the code of rounds, when the run began


class AbstractFixedPoint(AbstractIteration):
    """A method that repeats a map T of x = (w, u), parameters (n, d) and flows: x+ = T x, accelerated.

    The fixed points of T are the optima of both problems, and T is firmly nonexpansive or averaged in a norm of about
    sum_i deg_i ||w_i||^2 / s + s sum_e 2 ||u_e||^2, s the balance of the state. A method writes `missing` and `image`;
    what is added is its `acceleration`. `ready`, `rebalanced` and `travelled` are for maps of which a half is known
    before the round, and for variables that depend on s. What is certified is T x.

    Examples
    --------
    >>> issubclass(gr.ADMM, gr.AbstractFixedPoint), issubclass(gr.FedADMM, gr.AbstractFixedPoint)
    (True, False)
    """

    @cached_property
    def acceleration(self) -> Acceleration:
        """The acceleration that is added to x+ = T x."""
        return Acceleration()

    @abstractmethod
    def image(self, state: State) -> tuple[Array, Flows, Memories]:
        """T x = (w, u) at ``state.x``, and what is remembered of it; may begin from what ``state.hat`` knows."""

    def ready(self, state: State) -> State:
        """The state at a new x, with that part of T x in ``hat`` which is computed in the same round."""
        return state

    def rebalanced(self, state: State, s: float) -> State:
        """The state with another balance; x moves where its meaning depends on s."""
        return replace(state, s=s)

    def travelled(self, state: State) -> Iterate:
        """The point whose way since the last adaptation tells the balance."""
        return state.x

    def centres(self) -> bool:
        return self.acceleration.balance is None

    def init(self, view: LocalView, start: Start | None) -> State:
        x = Iterate(*view.begin(start))
        free, restarts = self.acceleration.balance is None, self.acceleration.restarts
        scales = view.scales() if free else None
        if restarts is None:
            restarts = scales is not None and scales.kinks
        due = Halpern() if restarts else FIRST_ADAPTATION if free else None
        return State(view, 0, x, x, (), self.acceleration.balance or _first_balance(scales), x, due)

    def resume(self, view: LocalView, state: State, start: Start | None) -> State:
        """The first state with the balance of the last run and, where the losses are the same, what their proxes
        remember."""
        new = self.init(view, start)
        memory = state.memory if strengths(view.form.samples) == strengths(state.view.form.samples) else new.memory
        return replace(new, s=state.s, memory=memory, earlier=state.earlier + state.round)

    def step(self, state: State) -> State:
        w, u, memory = self.image(state)
        hat = Iterate(w, u)
        x = state.x.toward(hat, self.acceleration.relaxation)
        # as `replace` would make it, which takes a tenth of a small problem's round
        new = State(
            state.view, state.round + 1, x, hat, memory, state.s, state.anchor, state.due, state.earlier, state.price
        )
        if isinstance(state.due, Halpern):
            return self.ready(self._pulled(state, new, x, state.due.step()))
        return self.adapted(self.ready(new))

    def point(self, state: State) -> Point:
        w, u, m = state.hat.w, state.hat.u, len(state.view.form.edges)
        return w, u[:m], state.view.prices(w, state.memory, u[m:])

    def adapted(self, state: State) -> State:
        """The state with another balance where that is due: s moves towards s sqrt(||dw||^2_{1/tau} /
        ||du||^2_{1/sigma}), d the way since the last adaptation."""
        if not isinstance(state.due, int) or state.round < state.due:
            return state
        here = self.travelled(state)
        ((dw, du),) = distances(state.view, (here, state.anchor))
        s = _balanced(state.s, dw, du)
        due = state.round + max(FIRST_ADAPTATION, state.round // self.acceleration.pace)
        return replace(state if s == state.s else self.rebalanced(state, s), anchor=here, due=due)

    def _pulled(self, state: State, new: State, relaxed: Iterate, halpern: Halpern) -> State:
        """The state at the relaxed point pulled towards the anchor, or restarted at T x; see `_halpern`."""
        looked = halpern
        if halpern.steps == 1 or halpern.steps % EVERY == 0:  # ||x - T x|| is due
            (dw, du), way = distances(state.view, (state.x, new.hat), (state.anchor, new.hat))
            looked = halpern.with_residual(float(np.sqrt(dw / state.s + du * state.s)), new.round)
            if looked is None:
                s = _balanced(state.s, *way) if self.acceleration.balance is None else state.s
                return replace(new, x=new.hat, anchor=new.hat, s=s, due=Halpern())
        return replace(new, x=halpern.towards_anchor(relaxed, state.anchor), due=looked)


def _balanced(s: float, dw: float, du: float) -> float:
    if not (dw > 0 and du > 0):
        return s
    new = float(np.sqrt(dw / du) ** DAMPING * s ** (1.0 - DAMPING))
    if not 0.0 < new < np.inf:
        raise FloatingPointError(f"flows or parameters run to infinity, and the balance of their steps to {new:g}")
    return new if max(new / s, s / new) > CHANGE else s


def _first_balance(scales: Scales | None) -> float:
    if scales is None or not (scales.degree and scales.curvature):
        return 1.0
    return scales.degree / scales.curvature
