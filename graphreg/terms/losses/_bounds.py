"""Upper bounds that hold whatever rounding does, of the functions that losses are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bounds import ends, shown
from ..records import Array

ULP = 2.0**-52


def largest_around(function: Any, x: Array, spread: Array) -> Array:
    """A bound of a convex function of rows over the box ``x +- spread``, its values trusted to 16 ulp.

    The box lies in the convex hull of the points ``x +- k spread_j e_j``, k the number of coordinates.
    """
    if x.ndim == 1:
        values = [function(end) for end in ends(x, spread)]
    else:
        k = x.shape[1]
        steps = k * spread[:, None, :] * np.eye(k)
        values = [function(x)] + [function(end) for j in range(k) for end in ends(x, steps[:, j])]
    top, size = values[0], np.abs(values[0])
    for end in values[1:]:
        top, size = np.maximum(top, end), np.maximum(size, np.abs(end))
    return np.where(np.isnan(top), np.inf, top + 16.0 * ULP * size)


def dots(a: Array, b: Array) -> Array:
    return a * b if a.ndim == 1 else np.einsum("ij,ij->i", a, b)


def squares(a: Array) -> Array:
    return dots(a, a)


def half_square(a: Array) -> Array:
    """Not less than 1/2 ||a||^2, (M,), for a >= 0."""
    k = 1 if a.ndim == 1 else a.shape[1]
    live = a != 0.0 if a.ndim == 1 else (a != 0.0).any(axis=1)
    return shown(squares(a) * (0.5 * (1.0 + (4 + k) * ULP)), live)
