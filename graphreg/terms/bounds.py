"""The common part of bounds of terms: intervals rounded outwards, and what underflow may hide."""

from __future__ import annotations

from typing import Any

import numpy as np

from .records import Array

TINY = 1e-300  # more than a few products that underflow can miss
SHORT = 1e-140  # lengths below it are not summed as squares, which underflow

ULP = 2.0**-52


def ends(x: Array, spread: Array) -> tuple[Array, Array]:
    """Floats outside of ``x - spread`` and ``x + spread``, and x itself where the spread is 0."""
    wide = spread > 0.0
    low = np.where(wide, np.nextafter(x - spread, -np.inf), x)
    return low, np.where(wide, np.nextafter(x + spread, np.inf), x)


def shown(value: Array, live: Any) -> Array:
    """The value, and a little more where it is positive but may have underflowed: it then does not look like 0."""
    return value + TINY * live


def largest_around(function: Any, x: Array, spread: Array, rowwise: bool = False) -> Array:
    """A bound of a convex function of rows over the box ``x +- spread``, its values trusted to 16 ulp.

    The box lies in the convex hull of the points ``x +- k spread_j e_j``, k the number of coordinates. ``rowwise``: the
    function takes any number of rows, and is asked once for all points.
    """
    points = list(ends(x, spread)) if x.ndim == 1 else [x]
    if x.ndim == 2:
        far = np.where(spread > 0.0, np.nextafter(x.shape[1] * spread, np.inf), 0.0)
        for j in np.flatnonzero(spread.any(axis=0)):
            points += ends(x, np.where(np.arange(x.shape[1]) == j, far, 0.0))
    found = np.reshape(function(np.concatenate(points)), (-1, len(x))) if rowwise else [function(p) for p in points]
    values = [np.asarray(each, dtype=float) for each in found]
    top, size = np.maximum.reduce(values), np.maximum.reduce(np.abs(values))
    return np.where(np.isnan(top), np.inf, top + 16.0 * ULP * size)


def half_square(a: Array) -> Array:
    """Not less than 1/2 ||a||^2, (M,), for a >= 0."""
    k = 1 if a.ndim == 1 else a.shape[1]
    live = a != 0.0 if a.ndim == 1 else (a != 0.0).any(axis=1)
    return shown((a * a if a.ndim == 1 else np.einsum("ij,ij->i", a, a)) * (0.5 * (1.0 + (4 + k) * ULP)), live)
