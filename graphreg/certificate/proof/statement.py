"""The problem of a form as a proof states it: by its factors, as exact numbers, with the names of nodes and columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...errors import ProofError
from ...form import DualPoint, EdgeBlock, Form, SampleBlock, parts_of
from ...terms import Array, Statement
from ...terms.losses import factors_of
from ...terms.penalties import AbstractPenalty, AbstractSmoothPenalty
from ...verify import STATE, NotProvedError, begin, rational, spell
from ..rationals import Echelon

OTHERWISE = "gr.certify(problem.compile().cvxpy).prove(path) proves bounds of the same optimum, from its form in CVXPY"


# ---- exact numbers: how they are written, and linear systems of them -------------------------------------------------
def exact(x: float) -> Any:
    """The rational that a float is."""
    return rational(*float(x).as_integer_ratio())


def exactly(values: Any) -> Any:
    """Nested lists of floats as rationals."""
    return [exactly(value) for value in values] if isinstance(values, list) else exact(values)


def nearest(x: Any) -> float:
    """A float near a rational, of any size."""
    p, q = int(x.numerator), int(x.denominator)
    try:
        return p / q
    except OverflowError:
        return float("inf") if p > 0 else float("-inf")


def text(x: Any) -> str:
    """A rational in the spelling of proofs: hexadecimal digits, a power of two, an odd denominator."""
    p, q = int(x.numerator), int(x.denominator)
    if p == 0:
        return "0"
    up, down = (p & -p).bit_length() - 1, (q & -q).bit_length() - 1
    digits = f"{'-' * (p < 0)}{abs(p) >> up:x}"
    return digits + (f"p{up - down}" if up != down else "") + (f"/{q >> down:x}" if q >> down > 1 else "")


def texts(values: Any) -> Any:
    return [texts(value) for value in values] if isinstance(values, list) else text(values)


def solve(A: list[list[Any]], b: list[Any]) -> list[Any]:
    """The solution of a square system of rationals; ZeroDivisionError where the matrix is singular."""
    n = len(b)
    if STATE.flint:
        from flint import fmpq_mat

        z = fmpq_mat(n, n, [x for row in A for x in row]).solve(fmpq_mat(n, 1, b))
        return [z[k, 0] for k in range(n)]
    system = Echelon(n)
    if not all(system.add(row, right) for row, right in zip(A, b, strict=True)):
        raise ZeroDivisionError("the matrix is singular")
    return system.solution([rational(0)] * n)


# ---- the problem -----------------------------------------------------------------------------------------------------
def statement(form: Form) -> dict[str, Any]:
    """The ``model`` of a proof, of a form that is written out, see `write_out`."""
    return {
        "labels": distinct(form.labels),
        "columns": distinct(form.space.names),
        "samples": [_samples(block, form.d) for block in form.samples],
        "edges": [state_rows(edge, form.d) for edge in form.edges],
    }


def distinct(labels: Iterable[Hashable]) -> list[str]:
    """Labels as text: themselves where they are text, else as they are printed; with their types where that is not
    enough to tell them apart."""
    labels = list(labels)
    for write in (lambda x: x if isinstance(x, str) else repr(x), repr, lambda x: f"{type(x).__name__} {x!r}"):
        names = [write(label) for label in labels]
        if len(set(names)) == len(names):
            return names
    twice = next(name for k, name in enumerate(names) if name in names[:k])
    raise ProofError(f"two nodes are both printed as {twice}; a proof needs labels that differ in print")


def spelled(values: Any) -> Any:
    """Floats in the spelling of proofs; integers and None as they are."""
    if isinstance(values, (list, tuple)):
        return [spelled(value) for value in values]
    return spell(values) if isinstance(values, float) else values


def numbers(values: Array) -> Any:
    return spelled(np.asarray(values, dtype=float).tolist())


def _samples(block: SampleBlock, d: int) -> dict[str, Any]:
    stated, M = block.loss.statement(), block.count
    assert isinstance(stated, Statement)  # as the form is written out
    rule, weights = factors_of(block.loss)
    of_rows = block.map.noun == "row"
    if of_rows or not np.array_equal(block.loss.scales(), block.base_scale):  # of other scales than its loss gives
        rule, weights = "sum", block.base_scale
    if of_rows:
        where = {"k": block.width, "rows": _cells(block.A, block.width, d)}
    else:
        where = {"node": block.node.tolist(), "x": None if block.X is None else numbers(block.X)}
    return {
        "loss": stated.name,
        "parameter": spelled(stated.parameter),
        "strength": spell(float(block.strength)),
        "rule": rule if isinstance(rule, str) else numbers(rule),
        **where,
        "weight": numbers(weights),
        "y": spelled(block.loss.stated_targets(block.y)),
        "offset": numbers(block.offset.reshape(M, -1)),
    }


def flow_root(form: Form, edge: EdgeBlock) -> Array | None:
    """R where a proof states the flow u by t, u = c R't, because not every u is a flow; else None."""
    stated = edge.penalty.statement(form.width(edge))
    return None if stated is None else stated.root


def state_rows(edge: EdgeBlock, d: int) -> dict[str, Any]:
    """A block of edges of the ``model``, or of rows of another kind, of d coordinates."""
    k = edge.map.width(d)
    penalty: AbstractPenalty = edge.penalty
    stated = penalty.statement(k)
    assert stated is not None  # as the form is written out
    if edge.map.edges is None:
        where = {"k": k, "rows": _cells(edge.flat(d), k, d)}
    else:
        where = {"tail": edge.tail.tolist(), "head": edge.head.tolist(), "features": edge.columns(d).tolist()}
    return {
        "penalty": stated.name,
        "parameter": spelled(stated.parameter),
        "strength": spell(float(edge.strength)),
        **where,
        "weight": numbers(edge.base_weight),
        "center": None if edge.center is None else numbers(edge.center),
    }


def _cells(A: sp.csr_array, k: int, d: int) -> list[list[list[list[Any]]]]:
    """The cells of each number of each row: node, column, coefficient."""
    K: Any = A.copy()
    K.eliminate_zeros()  # of the designs of second losses
    node, column = np.divmod(K.indices, d)
    cells = [list(each) for each in zip(node.tolist(), column.tolist(), numbers(K.data), strict=True)]
    each = [cells[i:j] for i, j in pairwise(K.indptr.tolist())]
    return [each[r : r + k] for r in range(0, len(each), k)]


def checked_values(stated: Statement, known: dict[str, Any], x: Array, targets: Any = None) -> Array:
    """The values at x that the checker gives the stated loss or penalty, ``known`` to it; +inf outside its domain."""
    if stated.name not in known:
        raise ProofError(f"no proof knows {stated.name!r}, but {', '.join(known)}")
    begin()
    function = known[stated.name](spelled(stated.parameter), 1 if x.ndim == 1 else x.shape[1])
    given = [()] * len(x) if targets is None else [(function.target(y),) for y in spelled(targets)]
    found = np.full(len(x), np.inf)
    for row, (point, target) in enumerate(zip(exactly(x.tolist()), given, strict=True)):
        with suppress(NotProvedError):
            found[row] = nearest(function.value(point, *target))
    return found


# ---- penalties that are sums of others, written out: a block of edges for each part, the flow split among them -------
def write_out(form: Form, w: Array, point: DualPoint) -> tuple[Form, DualPoint]:
    """The form and the point with every composition of penalties as its parts; refuses what no proof can state."""
    for block in form.samples:
        if block.loss.statement() is None:
            raise ProofError(
                f"the loss {block.loss.called()} cannot be stated in a proof: it has no `statement()`; {OTHERWISE}"
            )
    edges: list[EdgeBlock] = []
    flows: list[Array] = []
    for edge, u in zip(form.edges, point.flows, strict=True):
        parts = _parts(edge, form.width(edge))
        edges += parts
        flows += _split(parts, edge.difference(w), u) if len(parts) > 1 else [u]
    return replace(form, edges=tuple(edges)), DualPoint(tuple(flows), point.prices)


def _parts(edge: EdgeBlock, k: int) -> list[EdgeBlock]:
    """The block, or one block per part where its penalty is a composition."""
    parts = parts_of(edge, lambda block: block.penalty.statement(k) is not None)
    if parts is None:
        raise ProofError(
            f"{edge.name}: the penalty {edge.penalty.called()} cannot be stated in a proof; where it is a sum of "
            f"the library's penalties, give it a method `parts` that says so; {OTHERWISE}"
        )
    return parts


def _split(parts: list[EdgeBlock], z: Array, u: Array) -> list[Array]:
    """u as a sum of flows of the parts: gradients where there are any, the rest clipped into the other domains; what is
    left then goes to the first smooth part, or the first."""
    smooth = [isinstance(part.penalty, AbstractSmoothPenalty) for part in parts]
    flows = [np.zeros_like(u) for _ in parts]
    rest = np.array(u)
    for k, part in sorted(enumerate(parts), key=lambda pair: not smooth[pair[0]]):
        penalty = part.penalty
        if isinstance(penalty, AbstractSmoothPenalty):
            flows[k] = part.weight[:, None] * penalty.gradient(z)
        else:
            flows[k] = part.clip(rest)
        rest = rest - flows[k]
    first = smooth.index(True) if any(smooth) else 0
    flows[first] = flows[first] + rest
    return flows
