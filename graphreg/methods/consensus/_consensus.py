"""The common parts of the methods for a consensus: what they need, bounds of their steps, flows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from ...base.messages import warn
from ...form import Form
from ...network import LocalView, Mixing, MixingMatrix, largest
from ...oracles import unbounded, without_gradient
from ...running import Start
from ...terms import Array
from ...terms.penalties import AbstractSmoothPenalty, is_equality

STEEP = (
    "has no bound of its curvature, so no step follows: give step_size=gr.DecreasingStep(D=..., gamma=...), or a "
    "number, to the method, and that to gr.inference.estimate as method=; of counts D = 2.5 / (mean count x least "
    "eigenvalue of the mean of xx') and a first step, D (1 + gamma)^-0.8, of 1 / (nodes x largest count x ||x||^2)"
)
Batch = int | Mapping[Hashable, int] | None  # samples of a step, of all nodes or by label; None: all samples


def missing(form: Form, mixing: MixingMatrix | str, lazy: bool, stepped: bool) -> tuple[str, ...]:
    """The properties that a problem lacks of a smooth consensus; ``stepped``: a step is given, so that none need
    follow from L."""
    out = [*without_gradient(form), *_not_tied(form)]
    out += [] if out else _apart(form)
    if not (out or stepped):
        out += [f"{name} {STEEP}" for name in unbounded(form)]
    if not out and isinstance(mixing, MixingMatrix):
        out += mixing.wrong(form, lazy)
    return tuple(out)


def _not_tied(form: Form) -> list[str]:
    """Edges between nodes that are no consensus on all coordinates."""
    out: list[str] = []
    for edge in form.edges:
        if edge.ground:
            continue
        if not is_equality(edge.penalty, form.width(edge)):
            out.append(f"{edge.name} is no consensus: between nodes the method takes gr.Consensus(graph) alone")
        elif form.width(edge) < form.d:
            out.append(f"{edge.name} ties some coordinates only, and the method takes a consensus on all of them")
    return out


def _apart(form: Form) -> list[str]:
    other = np.flatnonzero(form.component != form.component[0])
    if not len(other):
        return []
    ends = f"no path leads from {form.labels[0]!r} to {form.labels[other[0]]!r}"
    remedy = "tie all nodes by gr.Consensus of a connected graph, or pose a problem for each component"
    return [f"the communication graph is disconnected: {ends}; {remedy}"]


def smoothness(view: LocalView, batch: Batch) -> float:
    """max_i L_i, or with batches the smoothness of single samples."""
    return largest(view, view.gradients.smoothness if batch is None else view.gradients.sample_smoothness)


def step_of(given: float | None, bound: float, method: str, source: str) -> float:
    """The step that is given, with a warning beyond its bound; half of the bound where none is."""
    if given is None:
        return 0.5 * bound if 0.0 < bound < np.inf else 1.0  # a problem without curvature has nothing to step along
    warn_beyond(given, bound, method, source)
    return float(given)


def warn_beyond(step: float, bound: float, method: str, source: str) -> None:
    if step > bound > 0.0:
        warn(f"the step {step:.4g} of {method} is beyond its bound {bound:.4g} ({source}): it may diverge")


def start_of(view: LocalView, start: Start | None) -> tuple[Array, tuple[Array, ...]]:
    """Parameters and flows to begin with; flows to the ground play no part, and stay 0."""
    w, flows = view.begin(start)
    return w, tuple(np.zeros_like(u) if edge.ground else u for edge, u in zip(view.form.edges, flows, strict=True))


def next_flows(view: LocalView, mixing: Mixing, flows: tuple[Array, ...], w: Array, factor: float) -> tuple[Array, ...]:
    """u + factor c K w; 0 on edges to the ground, as before."""
    return tuple(u + factor * v for u, v in zip(flows, mixing.flows(view.form, w), strict=True))


def certifiable(view: LocalView, w: Array, flows: tuple[Array, ...]) -> tuple[Array, ...]:
    """The flows with those of the smooth edges to the ground, their gradients at w."""
    return tuple(  # smooth are those to the ground alone: between nodes all are equations
        edge.gradients(w) if isinstance(edge.penalty, AbstractSmoothPenalty) else u
        for edge, u in zip(view.form.edges, flows, strict=True)
    )
