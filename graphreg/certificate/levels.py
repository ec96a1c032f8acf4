"""Levels that a model leaves open: one that the losses do not see and only differences of nodes hold.

A multinomial loss is the same when one number is added to the predictors of all classes. So a coordinate of a feature
that no edge to the ground holds, as an unpenalised intercept, is free up to a constant: per node, or per component of
the edges that act on it. Whatever route found an answer, the level that is reported is 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..form import Form
from ..inputs import components_of, means_of
from ..terms import Array
from ..terms.losses import AbstractLoss
from .kernel.upper import upper_bound
from .record import Certificate
from .repairing.feasible import feasible

SAME = 1e-12  # of the objective: what rounding may cost a point that is moved


def at_zero_levels(certificate: Certificate, gap: float) -> Certificate:
    """The certificate at the same answer with the levels that nothing decides at 0; the same where there are none, or
    where rounding would cost what was asked for."""
    form, w = certificate.form, certificate.w
    moved = without_levels(form, w)
    if moved is w or not certificate.valid:
        return certificate
    for each in (moved, feasible(form, moved)):
        primal = upper_bound(form, each)
        found = replace(certificate, w=each, primal=primal, rounding=max(primal - form.primal(each), 0.0))
        same = primal - certificate.primal <= SAME * (abs(certificate.primal) + certificate.gap)
        if same and primal >= certificate.dual and found.holds(gap) == certificate.holds(gap):
            return found
    return certificate


def without_levels(form: Form, w: Array) -> Array:
    """w less its open levels, in each component the mean over its nodes; w itself where nothing is open."""
    own = [block.map.noun == "sample" and block.X is not None for block in form.samples]
    unseen = [_unseen(b.loss, b.width) if plain else None for b, plain in zip(form.samples, own, strict=True)]
    level = next((each for each in unseen if each is not None), None)
    if level is None:
        return w
    held = np.zeros(form.n, dtype=bool)  # by losses that see the level
    for block, each in zip(form.samples, unseen, strict=True):
        held[block.map.touched] |= each is None or not np.array_equal(each, level)
    out, found = w, {}
    for columns in np.arange(form.d).reshape(-1, len(level)):  # of each feature
        acting = tuple(e for e, edge in enumerate(form.edges) if np.isin(edge.map.columns(form.d), columns).any())
        if acting not in found:
            found[acting] = _afloat(form, acting, held)
        member, afloat = found[acting]
        move = np.where(afloat[:, None], means_of(member, w[:, columns] @ level), 0.0)
        if move.any():
            out = w.copy() if out is w else out
            out[:, columns] -= move
    return out


def _unseen(loss: AbstractLoss, k: int) -> Array | None:
    """The projection (k, k) onto what a loss does not see of its predictors, as no price acts on it; None: nothing."""
    if k == 1:
        return None
    level = np.eye(k) - loss.prices.span(np.eye(k))
    return level if level.any() else None


def _afloat(form: Form, acting: tuple[int, ...], held: Array) -> tuple[Array, Array]:
    """The component of each node in some blocks of edges, and whether nothing holds it there: no edge to the ground,
    no rows of another kind, no loss."""
    blocks = [form.edges[e] for e in acting]
    none, between = np.zeros(0, dtype=int), [block for block in blocks if block.map.noun == "edge"]
    tail, head = (np.concatenate([none, *(getattr(e, end) for e in between)]) for end in ("tail", "head"))
    count, member = components_of(tail, head, form.n)
    fixed = np.zeros(count, dtype=bool)
    fixed[member[held]] = True
    for block in blocks:
        if block.map.noun != "edge":
            fixed[member[block.map.touched]] = True
    return member, ~fixed[member]
