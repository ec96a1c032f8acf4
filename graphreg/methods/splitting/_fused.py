"""Rounds of the primal-dual method in compiled passes over nodes and edges."""

from __future__ import annotations

from dataclasses import replace

from ...network import AbstractHeld, AbstractRounds
from ._halpern import Iterate
from .fixed_point import State


def fused(rounds: AbstractRounds, state: State, relaxation: float, count: int = 1) -> State:
    """The state after as many rounds as `PrimalDual.image` describes, relaxed; with the same messages."""
    state.hat.forget()
    view, x = state.view, state.x.known
    if not isinstance(x, AbstractHeld) or x.rounds is not rounds:
        x = rounds.entered(state.x.w, state.x.u)
    warm = state.hat.w if rounds.begins else None
    new, image, memory = rounds.rounds(x, warm, state.s, relaxation, state.memory or view.memory(), count)
    if rounds.rest is None:
        for _ in range(count):
            view.engine.exchange(new.w)  # which records the messages, whatever they hold
    return replace(state, round=state.round + count, x=Iterate.of(new), hat=Iterate.of(image), memory=memory)
