"""Affine expressions of CVXPY as what they say in real numbers: coefficients, and how far off each of them may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.messages import of_cvxpy
from ..certificate import DUST, Pair, down, product, sums, upwards
from ..terms import Array
from .atoms import ATOMS, value

ONE = -1  # the column of what is constant
UNIT = Pair(np.ones(1), np.zeros(1), np.zeros(1))  # the point of no variables
SELECTIONS = (  # atoms that put entries of their arguments at other places
    "Promote index special_index reshape transpose Hstack Vstack Concatenate diag_mat diag_vec upper_tri broadcast_to "
    "psd_wrap nsd_wrap symmetric_wrap nonneg_wrap nonpos_wrap vec squeeze Stack conj real"
)


class NotFollowedError(Exception):
    """An expression that is not followed; the message names it."""


@dataclass(frozen=True, eq=False)
class Map:
    """Numbers of a shape, each of them (in the order of Fortran) a sum of coefficients times columns: at ``row`` stands
    a multiple of column ``column`` that is within ``error`` of ``value``."""

    shape: tuple[int, ...]
    row: Array
    column: Array
    value: Array
    error: Array

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return prod(self.shape)

    def times(self, value: Array, error: Array) -> Map:
        """The coefficients times numbers that are known up to an error."""
        p, e, off = product(self.value, value)
        rest = np.abs(self.value) * error + self.error * (np.abs(value) + error)
        dust = DUST * ((self.error != 0.0) | (error != 0.0))
        return replace(self, value=p, error=upwards(np.abs(e) + off + rest + dust, 6))

    def taken(self, source: Array, shape: tuple[int, ...]) -> Map:
        """The rows ``source``, -1 for one that is 0, as numbers of another shape."""
        order, size = np.argsort(self.row, kind="stable"), self.size
        start = np.searchsorted(self.row[order], np.arange(size + 1))
        count = np.where(source >= 0, np.diff(start, append=start[-1:])[source], 0)
        row = np.repeat(np.arange(len(source)), count)
        which = order[np.repeat(start[source] - (np.cumsum(count) - count), count) + np.arange(len(row))]
        return Map(shape, row, self.column[which], self.value[which], self.error[which])

    def joined(self, source: Array, to: Array, factor: Map, shape: tuple[int, ...]) -> Map:
        """At the rows ``to`` of another shape the rows ``source``, times the entries of a factor, one for each."""
        found = self.taken(source.ravel(), (source.size,))
        which = found.row // max(source.size // max(len(factor.row), 1), 1)
        found = found.times(factor.value[which], factor.error[which])
        return replace(found, shape=shape, row=to.ravel()[found.row])

    def at(self, point: Pair) -> tuple[Array, Array]:
        """The least and greatest values of the numbers over a box, whose last entry is 1."""
        p, e, off = product(self.value, point.high[self.column])
        lower, size = self.value * point.low[self.column], np.abs(self.value)
        off = off + self.error * (np.abs(point.high) + np.abs(point.low))[self.column] + np.abs(lower) * 2.0**-52
        dust = DUST * ((point.low != 0.0) | (point.error != 0.0))[self.column]
        off = upwards(off + (size + self.error) * point.error[self.column] + dust, 8)
        zero = np.zeros(len(p))
        found = sums([(self.row, Pair(p, e, off)), (self.row, Pair(lower, zero, zero))], self.size)
        bounds = down(found), 0.0 - down(Pair(-found.high, -found.low, found.error))
        return bounds[0].reshape(self.shape, order="F"), bounds[1].reshape(self.shape, order="F")


def units(shape: tuple[int, ...], column: Array) -> Map:
    """Numbers each of which is one column."""
    return Map(shape, np.arange(len(column)), column, np.ones(len(column)), np.zeros(len(column)))


def variables(columns: Mapping[int, Any]) -> Callable[[Any], Map | None]:
    """What `follow` is to know of variables, by number: the columns of their entries, or the first of them."""

    def leaf(e: Any) -> Map | None:
        if type(e).__name__ != "Variable" or e.id not in columns:
            return None
        at = np.asarray(columns[e.id])
        return units(e.shape, at if at.ndim else at + np.arange(e.size))

    return leaf


def constant(value: Any, error: Any = 0.0) -> Map:
    """Numbers, known up to an error."""
    if sp.issparse(value):
        M: Any = sp.coo_array(value)
        row = M.row + M.shape[0] * M.col.astype(int)
        return Map(M.shape, row, np.full(len(row), ONE), M.data.astype(float), np.zeros(len(row)))
    value = np.asarray(value, float)
    flat, off = (x.ravel(order="F") for x in np.broadcast_arrays(value, error))
    row = np.flatnonzero((flat != 0.0) | (off != 0.0))
    return Map(value.shape, row, np.full(len(row), ONE), flat[row], off[row])


def stacked(maps: list[Map]) -> Map:
    """The numbers of several, one after the other."""
    starts = list(accumulate((m.size for m in maps), initial=0))
    row = [m.row + start for m, start in zip(maps, starts, strict=False)]
    rest = [np.concatenate([getattr(m, name) for m in maps]) for name in ("column", "value", "error")]
    return Map((starts[-1],), np.concatenate(row), *rest)


def follow(e: Any, leaf: Callable[[Any], Map | None], point: Pair | None = None) -> Map:
    """What an expression says; ``leaf`` knows its variables, and maybe more. Atoms that are not affine are followed
    where their arguments are constant, or at a ``point``: a box, whose last entry is 1.

    Raises
    ------
    NotFollowedError
        Where nothing is known of it.
    """
    known, name = leaf(e), type(e).__name__
    if known is not None:
        return known
    if name in ("Constant", "Parameter", "CallbackParam"):
        return constant(e.value)
    if name in SELECTIONS.split():
        return _selected(e, [follow(arg, leaf, point) for arg in e.args])
    if (name not in RULES and name not in ATOMS) or e.is_complex():
        raise NotFollowedError(words(e))
    args = [follow(arg, leaf, point) for arg in e.args]
    if name in RULES:
        return replace(RULES[name](e, *args), shape=e.shape)
    if point is None and any((arg.column != ONE).any() for arg in args):
        raise NotFollowedError(words(e))
    at = [arg.at(UNIT if point is None else point) for arg in args]
    try:
        low, high = value(e, *at)
    except (ValueError, TypeError):  # a domain, or an option that is not known
        raise NotFollowedError(words(e)) from None
    return constant(*between(low, high))


def between(low: Array, high: Array) -> tuple[Array, Array]:
    """The middle of intervals, and not less than half their widths."""
    middle = np.where(low == high, low, low + (high - low) / 2.0)
    return middle, upwards(np.maximum(high - middle, middle - low), 2)


def words(e: Any) -> str:
    """An expression as it is named to users."""
    said = " ".join(str(getattr(e, "label", None) or of_cvxpy(e)).split())
    return f"`{said if len(said) <= 60 else type(e).__name__ + '(...)'}`"


def _numbers(shape: tuple[int, ...], start: int = 0) -> Array:
    return np.arange(start, start + prod(shape)).reshape(shape, order="F")


def _selected(e: Any, args: list[Map]) -> Map:
    """Entries of the arguments at other places: CVXPY itself says of numbered entries where they go, 0 is none."""
    starts = accumulate((a.size for a in args), initial=1)
    out = e.numeric([_numbers(a.shape, start).astype(float) for a, start in zip(args, starts, strict=False)])
    out = np.asarray(out.toarray() if sp.issparse(out) else out)
    return stacked(args).taken(out.ravel(order="F").astype(int) - 1, e.shape)


def _spread(m: Map, shape: tuple[int, ...]) -> Map:
    return m if m.shape == shape else m.taken(np.broadcast_to(_numbers(m.shape), shape).ravel(order="F"), shape)


def _add(e: Any, *args: Map) -> Map:
    parts = stacked([_spread(a, e.shape) for a in args])
    return replace(parts, row=parts.row % max(e.size, 1))


def _sum(e: Any, arg: Map) -> Map:
    axis = range(len(arg.shape)) if e.axis is None else np.atleast_1d(e.axis) % len(arg.shape)
    kept = tuple(1 if k in axis else size for k, size in enumerate(arg.shape))
    return replace(arg, row=np.broadcast_to(_numbers(kept), arg.shape).ravel(order="F")[arg.row])


def _trace(_: Any, arg: Map) -> Map:
    some = arg.taken(np.diag(_numbers(arg.shape)), (arg.shape[0],))
    return replace(some, row=np.zeros_like(some.row))


def _running(e: Any, arg: Map) -> Map:
    """Cumulative sums: number k takes all up to k."""
    if e.axis is None and len(arg.shape) > 1:
        raise NotFollowedError(words(e))
    size = arg.shape[e.axis or 0]
    cells = np.moveaxis(_numbers(arg.shape), e.axis or 0, 0).reshape(size, -1)
    i, j = np.tril_indices(size)
    found = arg.taken(cells[j].ravel(), cells[j].shape)
    return replace(found, row=cells[i].ravel()[found.row])


def _factors(e: Any, first: Map, second: Map) -> tuple[Map, Map]:
    """What is constant, and the other one."""
    if (first.column == ONE).all():
        return first, second
    if (second.column == ONE).all():
        return second, first
    raise NotFollowedError(words(e))


def _times(e: Any, first: Map, second: Map) -> Map:
    factor, other = _factors(e, _spread(first, e.shape), _spread(second, e.shape))
    return other.joined(factor.row, factor.row, factor, e.shape)


def _product(e: Any, first: Map, second: Map) -> Map:
    """A matrix product: each entry of the factor that is constant takes a row, or a column, of the other one."""
    if not first.shape or not second.shape:
        return _times(e, first, second)
    if max(len(first.shape), len(second.shape)) > 2:
        raise NotFollowedError(words(e))
    p, k = first.shape if len(first.shape) == 2 else (1, first.shape[0])
    q = second.shape[1] if len(second.shape) == 2 else 1
    factor, other = _factors(e, first, second)
    at, i, j = factor.row[:, None], np.arange(p), np.arange(q)
    if factor is first:
        return other.joined(at // p + k * j, at % p + p * j, factor, e.shape)
    return other.joined(i + p * (at % k), i + p * (at // k), factor, e.shape)


def _kron(e: Any, first: Map, second: Map) -> Map:
    """A product of entries, each of which stands at many places."""
    i, j = np.ones(first.shape, int), np.ones(second.shape, int)
    places = np.kron(_numbers(first.shape), j), np.kron(i, _numbers(second.shape))
    return _times(e, *(m.taken(at.ravel(order="F"), e.shape) for m, at in zip((first, second), places, strict=True)))


def _convolution(e: Any, first: Map, second: Map) -> Map:
    factor, other = _factors(e, first, second)
    j = np.arange(int(np.prod(other.shape)))
    return other.joined(j + 0 * factor.row[:, None], j + factor.row[:, None], factor, e.shape)


def _quotient(e: Any, first: Map, second: Map) -> Map:
    if (second.column != ONE).any():
        raise NotFollowedError(words(e))
    low, high = _spread(second, e.shape).at(UNIT)
    if not ((low > 0.0) | (high < 0.0)).all():
        raise NotFollowedError(words(e))
    c, first = constant(*between(low, high)), _spread(first, e.shape)
    return divided(first, c.value[first.row], c.error[first.row])


def divided(m: Map, c: Array, error: Array) -> Map:
    """The coefficients divided by numbers that are known up to an error."""
    v = m.value / c
    p, e, off = product(v, c)
    missed = np.abs((m.value - p) - e) + off + m.error + np.abs(v) * error  # the difference of neighbours is exact
    return replace(m, value=v, error=upwards(missed / (np.abs(c) - error), 6))


RULES: dict[str, Callable[..., Map]] = {
    "AddExpression": _add,
    "NegExpression": lambda _, arg: replace(arg, value=-arg.value),
    "Sum": _sum,
    "cumsum": _running,
    "Trace": _trace,
    "multiply": _times,
    "MulExpression": _product,
    "kron": _kron,
    **dict.fromkeys(("convolve", "conv"), _convolution),
    "DivExpression": _quotient,
}
