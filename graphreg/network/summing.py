"""Sums that come out the same, bit for bit, in whatever order and however dealt out their numbers are added.

Every number is cut into three pieces, each a multiple of a unit so large that sums of all of these pieces are exact in
floating point (pre-rounding: Demmel and Nguyen, Fast reproducible floating-point summation, 2013). What is beyond the
third piece is below 2^-60 of the largest number for up to 2^30 of them: the result is nearer than that of any loop.
"""

from __future__ import annotations

import math

import numpy as np

from ..terms import Array, at_a_time

PIECES = 3
CACHED = 1 << 15  # numbers looked at together
LARGEST, SMALLEST = 960, -1000  # exponents of the largest number beyond which all are scaled by a power of two


def pieces(values: Array, most: Array, count: int) -> Array:
    """The sums of the pieces of values (rows, ...), to be added to those of other rows, (3, ...).

    ``most`` (...) are the largest absolute values, and ``count`` is the number of the rows, of all that are added.
    """
    exponent = np.frexp(most)[1]  # |values| <= 2^exponent
    shift = _shift(exponent)
    room = math.ceil(math.log2(max(count, 1))) + 1
    top = exponent - shift
    large = np.ldexp(1.5, (top + room).reshape(1, -1, 1) + (room - 53) * np.arange(PIECES)[:, None, None])
    out, width = np.zeros((PIECES, most.size)), max(most.size, 1)
    scale = np.ldexp(1.0, -shift).reshape(-1, 1)
    with np.errstate(invalid="ignore"):  # infinite values have no pieces: their sum is NaN
        for some in at_a_time(CACHED // width, len(values)):
            rest = values[some].reshape(-1, width).T * scale
            for k in range(PIECES):  # the unit of large is 2^(top + room - 52): sums of its multiples are exact
                piece = rest + large[k]
                piece -= large[k]
                rest -= piece
                out[k] += piece.sum(axis=1)
    return out.reshape(PIECES, *most.shape)


def joined(sums: Array, most: Array) -> Array:
    """The sum (...) of all numbers, from the `pieces` of all of them."""
    total = sums[-1]
    for k in reversed(range(PIECES - 1)):
        total = total + sums[k]
    return total * np.ldexp(1.0, _shift(np.frexp(most)[1]))


def magnitude(values: Array) -> Array:
    """max |values| over the rows, (...); 0 where there are none."""
    return np.abs(values).max(axis=0, initial=0.0)


def summed(values: Array) -> Array:
    """The sum over the rows, (...)."""
    most = magnitude(values)
    if not np.isfinite(most).all():
        return values.sum(axis=0)
    return joined(pieces(values, most, len(values)), most)


def _shift(exponent: Array) -> Array:
    return np.where(exponent > LARGEST, 64, np.where(exponent < SMALLEST, -64, 0))
