"""Optima of modified problems, for limits that are reached too slowly to be read off exactly: the nearest is a name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..clock import left
from ..compiling import conic
from ..declaring import declared, needs_no_options
from ..errors import GraphregError
from ..form import EdgeBlock, Form
from ..methods import Exact
from ..running import Budget, solve
from ..terms import Array, Strength
from ..terms.penalties import AbstractPenalty, is_equality
from .balance import node_factors, other_penalties
from .optimum import Optimum
from .words import by_factor

GAP = 1e-8
SAME = 1e-3  # of the distance, within which optima are not told apart
FACTORS = (2.0, 0.5, 4.0, 0.25)
EDGES = 60  # that are left out one by one, at most
CLOSE, APART = 0.05, 3.0  # how close an entry must be, relative to the optimum, and how much closer than the next


@dataclass(frozen=True)
class Entry:
    """A modified problem, and how far the limit is from its optimum, in units of its distance from the true one."""

    name: str
    ratio: float


def entries(form: Form, limit: Array, optimum: Optimum) -> list[Entry]:
    """The modified problems of a form (at fixed strengths), the nearest first."""
    away = optimum.length(limit - optimum.w)
    out: list[Entry] = []
    for name, modified in modifications(form):
        if (rest := left()) is not None and rest <= 0.0:
            break
        w = _optimum(modified)
        if w is not None and optimum.length(w[: len(limit)] - optimum.w) > 1e-6 * optimum.size:
            out.append(Entry(name, optimum.length(limit - w[: len(limit)]) / max(away, 1e-300)))
    return sorted(out, key=lambda each: each.ratio)


def nearest(found: list[Entry]) -> Entry | None:
    """The entry that names the limit, where one is much closer than any other."""
    if not found or found[0].ratio > CLOSE:
        return None
    return found[0] if len(found) == 1 or found[1].ratio > APART * max(found[0].ratio, SAME) else None


def _optimum(form: Form) -> Array | None:
    """Its certified optimum; None where there is none."""
    if Exact().missing(form):
        return None
    try:
        found = solve(form, Exact(), Budget(GAP, progress=False), conic.Compiler(form))
    except GraphregError:
        return None
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return found.certificate.w if found.status == "certified" else None


def modifications(form: Form) -> Iterator[tuple[str, Form]]:
    """Modified problems by the name of the mistake."""
    links = [k for k, edge in enumerate(form.edges) if not edge.ground]
    tied = [k for k in links if is_equality(form.edges[k].penalty, form.width(form.edges[k]))]
    yield "local fits: the edges do nothing", replace(form, edges=tuple(e for e in form.edges if e.ground))
    for name, a in node_factors(form).items():
        yield name, _weighted(form, a)
    for k in range(len(form.edges)):
        if k not in tied:
            yield from _of_strength(form, k)
    for k in links:
        if k not in tied:
            yield from _of_edges(form, k)


def _weighted(form: Form, a: Array) -> Form:
    """With the losses of all nodes, and their own penalties, times a factor per node."""
    samples = tuple(replace(b, base_scale=b.base_scale * a[b.node]) for b in form.samples)
    edges = tuple(replace(e, base_weight=e.base_weight * a[e.tail]) if e.ground else e for e in form.edges)
    return replace(form, samples=samples, edges=edges)


def _with(form: Form, k: int, edge: EdgeBlock | None) -> Form:
    edges = (*form.edges[:k], *(() if edge is None else (edge,)), *form.edges[k + 1 :])
    return replace(form, edges=edges)


def _of_strength(form: Form, k: int) -> Iterator[tuple[str, Form]]:
    edge = form.edges[k]
    for t in (*FACTORS, float(form.n), 1.0 / form.n):
        yield by_factor("strength", edge.name, t), _with(form, k, replace(edge, base_weight=t * edge.base_weight))
    if edge.ground:
        yield by_factor("strength", edge.name, 0.0), _with(form, k, None)


def _equalities(k: int) -> Iterator[AbstractPenalty]:
    """The penalties of the library that allow no difference in k coordinates."""
    kinds: list[Any] = list(declared(AbstractPenalty, users=False).values())
    for kind in kinds:
        if needs_no_options(kind) and is_equality(penalty := kind(), k):
            yield penalty


def _of_edges(form: Form, k: int) -> Iterator[tuple[str, Form]]:
    edge = form.edges[k]
    if np.ptp(edge.base_weight) > 0.0:
        for word, power in (("forgotten", 0.0), ("squared", 2.0)):
            yield f"the edge weights {word}", _with(form, k, replace(edge, base_weight=edge.base_weight**power))
    for name, penalty in other_penalties(edge):
        yield f"penalty {name} for {edge.penalty.called()}", _with(form, k, replace(edge, penalty=penalty))
    for equality in _equalities(form.width(edge)):
        tied = replace(edge, penalty=equality, strength=Strength(), base_weight=np.ones(len(edge.tail)))
        yield "flows leave their ball: a consensus", _with(form, k, tied)
    for e in range(len(edge.tail) if len(edge.tail) <= EDGES else 0):
        keep = np.arange(len(edge.tail)) != e
        ends = f"({form.labels[edge.tail[e]]!r}, {form.labels[edge.head[e]]!r})"
        yield f"missing edge: the edge {ends} left out", _with(form, k, edge.part(keep))
