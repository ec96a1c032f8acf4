"""A round of the primal-dual method in compiled passes over nodes and edges."""

from __future__ import annotations

from dataclasses import replace

from ...kernels import Held, Rounds
from ._halpern import Iterate
from .fixed_point import State


def fused(rounds: Rounds, state: State, relaxation: float) -> State:
    """The state after the round that `PrimalDual.image` describes, relaxed; with the same messages."""
    view, x = state.view, state.x.known
    if not isinstance(x, Held) or x.rounds is not rounds:
        x = rounds.entered(state.x.w, state.x.u)
    memory = state.memory or view.memory()
    new, image, kept = rounds.round(x, state.hat.w, state.s, relaxation, memory)
    view.engine.exchange(image.ahead.reshape(view.form.shape))
    memory = kept[: len(memory)]
    return replace(state, round=state.round + 1, x=Iterate.of(new), hat=Iterate.of(image), memory=memory)
