"""Edges that are split at every optimum, proved by a dual point of the problem in which their ends are tied.

With z_e = 0 as a constraint the flow of e is free of its capacity. If the value of a conserved dual point of that
problem exceeds P(w), so does its optimum, and no optimum of the problem itself has z_e = 0. One small conic programme
per edge finds such a point, or one per pair of clusters that were proved, whose edges all have the same difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..base.clock import left, stages
from ..certificate import Certificate, Certifier, upper_gap
from ..compiling import conic, solvers
from ..errors import GraphregError
from ..form import EdgeBlock, Form
from ..terms import Array, Strength
from ..terms.penalties import Zero, row_norm

MOST = 50  # programmes for one answer
TRIED = 1e-9  # the relative gap to which the repair of the dual point aims


def split(certificate: Certificate, open_: list[Array], member: Array) -> Iterator[tuple[int, list[int]]]:
    """The edges in ``open_`` (a mask per edge block) that are proved to be split at every optimum, block and rows
    as they are found; ``member`` numbers the nodes that are proved to be equal."""
    form = certificate.form
    groups: dict[tuple[int, int, int], list[int]] = {}
    for k, (edge, mask) in enumerate(zip(form.edges, open_, strict=True)):
        for e in np.flatnonzero(mask).tolist():
            ends = sorted((int(member[edge.tail[e]]), int(member[edge.head[e]])))
            if ends[0] != ends[1]:
                groups.setdefault((k, ends[0], ends[1]), []).append(e)
    size = [row_norm(edge.difference(certificate.w)) for edge in form.edges]
    order = sorted(groups, key=lambda key: -float(size[key[0]][groups[key]].max()))
    with stages("proofs") as at:
        for number, key in enumerate(order[:MOST], 1):
            k, rows = key[0], groups[key]
            at(f"pair {number} of {len(order[:MOST])}")
            if upper_gap(certificate) < np.inf and tied_bound(form, form.edges[k], rows[0], 0.0) > certificate.primal:
                yield k, rows


def tied_bound(form: Form, edge: EdgeBlock, e: int, at: float) -> float:
    """A lower bound of the problem in which a row has this value; -inf where none was found."""
    tied = tied_certificate(form, edge, e, at)
    return -np.inf if tied is None or tied.contradiction else tied.dual  # a point of that problem need not be known


def tied_certificate(form: Form, edge: EdgeBlock, e: int, at: float = 0.0) -> Certificate | None:
    """The certificate of the problem in which the ends of an edge are tied, or a row is ``at`` a value, by a last
    block; None where none was found."""
    part = edge.part(np.array([e]))
    center = (
        part.center if at == 0.0 else at + (np.zeros((1, form.width(edge))) if part.center is None else part.center)
    )
    tie = replace(part, penalty=Zero(), strength=Strength(), base_weight=np.ones(1), center=center, name="tied")
    tied = replace(form, edges=(*form.edges, tie))
    try:
        compiled = conic.Compiler(tied)("primal", False)
        compiled.solve("clarabel", solvers.time_limit("clarabel", left()))
    except GraphregError:
        return None
    point = compiled.read_back()
    if point is None:
        return None
    w, dual = point
    return Certifier(tied).certify(w, dual.flows, dual.prices, TRIED)
