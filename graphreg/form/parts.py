"""A form whose penalties are sums of others, written out: a block of edges for each part, the flow split among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ..terms import Array, Strength, strengths
from .form import EdgeBlock, Form

Fits = Callable[[EdgeBlock], bool]


def parts_of(edge: EdgeBlock, fits: Fits) -> list[EdgeBlock] | None:
    """The block where it fits, else a block for each part of its penalty, and of their parts; None where one is no sum
    and does not fit."""
    if fits(edge):
        return [edge]
    out: list[EdgeBlock] = []
    for by, part in edge.penalty.parts() or ():
        inner = parts_of(replace(edge, penalty=part, strength=Strength(float(edge.strength) * by)), fits)
        if inner is None:
            return None
        out += inner
    return out or None


def in_parts(form: Form, fits: Fits) -> Form:
    """The form with every block that does not fit as its parts, where these do: itself where all fit."""
    if all(map(fits, form.edges)):
        return form
    found = form.once("parts", strengths(form.edges), lambda: [parts_of(edge, fits) or [edge] for edge in form.edges])
    return replace(form, edges=tuple(part for each in found for part in each))


def joined(form: Form, fits: Fits, flows: Iterable[Array]) -> tuple[Array, ...]:
    """The flows of a form, from those of its parts (see `in_parts`)."""
    each = iter(flows)
    counts = [1 if fits(edge) else len(parts_of(edge, fits) or [edge]) for edge in form.edges]
    return tuple(sum((next(each) for _ in range(count - 1)), next(each)) for count in counts)
