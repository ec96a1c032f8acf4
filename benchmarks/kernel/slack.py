"""How far prices and flows may move inside their domains, as rough as it may be: nothing that is proved rests on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphreg.form import Form
from graphreg.terms import Array
from graphreg.terms.penalties import AbstractPenalty

from .system import System


@dataclass(frozen=True)
class Slack:
    """Of each variable how far it may move either way, and its weight in least squares; 0 where it is to stay."""

    room: Array
    weight: Array


def slack_of(system: System, v: Array) -> Slack:
    """At a point near the domains."""
    form, room, weight = system.form, np.zeros(system.size), np.zeros(system.size)
    samples = len(form.samples)
    for number, each in enumerate(system.summands):
        s = each.scale[:, None]
        b = each.taken(v) / s
        if number < samples:
            depth = _depth(form, number, b)
        else:
            depth = np.broadcast_to(_penalty(form, number - samples).domain.room(b), b.shape)
        depth = np.maximum(np.nan_to_num(depth, nan=0.0, posinf=np.inf), 0.0)
        room[each.columns] = (s * depth).ravel()
        weight[each.columns] = (s * np.minimum(depth, 1.0) ** 2).ravel()
    return Slack(room, weight)


def _depth(form: Form, number: int, b: Array) -> Array:
    """How far prices at scale 1 are from the ends of their domain."""
    block = form.samples[number]
    low, high = (np.broadcast_to(x, block.y.shape).reshape(len(b), -1) for x in block.loss.domain(block.y))
    own = block.loss.prices.dependent(block.y)
    if own is None:
        return np.minimum(b - low, high - b)
    kept = np.arange(low.shape[1]) != own[:, None]
    some = low[kept].reshape(b.shape), high[kept].reshape(b.shape)
    at = np.arange(len(b)), own
    left = np.minimum(-b.sum(axis=1) - low[at], high[at] + b.sum(axis=1))
    return np.minimum(np.minimum(b - some[0], some[1] - b), left[:, None])


def _penalty(form: Form, number: int) -> AbstractPenalty:
    found = form.edges[number].penalty.composed()
    return form.edges[number].penalty if found is None else found[1]
