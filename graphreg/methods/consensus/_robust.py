"""Means of neighbours that a few of them cannot move far: trimmed means and medians, coordinate by coordinate."""

from __future__ import annotations

import numpy as np

from ...checks import one_of, whole
from ...form import Form
from ...network import LocalView, arcs_of
from ...terms import Array

ROBUST = one_of("median") | whole(1, "how many of the largest and of the smallest values are dropped")


def too_few(form: Form, robust: int | str) -> tuple[str, ...]:
    """The first node of which no robust mean leaves anything, as a sentence."""
    least = 2 if isinstance(robust, str) else 2 * robust + 1
    degree = np.bincount(arcs_of(form).target, minlength=form.n)
    i = int(np.argmin(degree))
    said = f"robust={robust!r} takes at least {least} neighbours of every node, and {form.labels[i]!r} has {degree[i]}"
    return () if degree[i] >= least else (said,)


def robust_mean(view: LocalView, own: Array, received: Array, there: Array | None, robust: int | str) -> Array:
    """At every node the trimmed mean, or the median, of what it has and has heard of its neighbours, (n, d): see
    `LocalSGD`. Of pairs that are not both ``there`` (n,) nothing is received; what is no number counts as infinite."""
    arcs, (n, d) = view.arcs, own.shape
    source, target = arcs.source, arcs.target
    if there is not None:
        both = there[source] & there[target]
        source, target = source[both], target[both]
    order = np.argsort(target, kind="stable")
    source, target, count = source[order], target[order], np.bincount(target, minlength=n)
    place = np.arange(len(target)) - np.repeat(np.cumsum(count) - count, count)
    values = np.full((n, int(count.max(initial=0)) + 1, d), np.inf)
    values[target, place] = np.where(np.isnan(received), np.inf, received)[source]
    few = count < 2  # neighbours that are heard: the median of two values is their mean, which a liar moves anywhere
    if isinstance(robust, str):  # the middle one of all, or the mean of the two
        values[np.arange(n), count] = own
        count = count + 1
        b = (count - 1) // 2
    else:
        b = np.full(n, robust)
    rank = np.arange(values.shape[1])
    kept = (rank >= b[:, None]) & (rank < (count - b)[:, None])
    total = np.where(kept[:, :, None], np.sort(values, axis=1), 0.0).sum(axis=1)
    if isinstance(robust, str):
        return np.where(few[:, None], own, total / kept.sum(axis=1)[:, None])
    return (own + total) / (1 + kept.sum(axis=1))[:, None]
