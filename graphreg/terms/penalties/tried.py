"""Trials of a user's functions before they are used: whether a penalty returns what they do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import TermError
from ..records import Array

SIZES = (3, 2, 1, *range(4, 33))  # the sizes of rows on which a function is tried when the penalty is made
MODERATE = 10.0  # entries of the rows on which convexity is tried
ROUNDING = 1e-9  # relative; within it a function is 0 at 0, even, homogeneous
ABOUT = "where it is smallest at a, write phi(z + a) without the constant, and give center=a to NodePenalty or rows - a"
DRAWS, DECADES = 200, 8  # rows on which a function is tried to be even, from 10^-8 to 10^8

Value = Callable[[Array], Array]


class SizeError(TermError):
    """A function that cannot act on so many coordinates; its cause is what the function raised."""


def _floats(value: Value, *rows: Array) -> list[Array]:
    return [np.asarray(value(z), dtype=float) for z in rows]


def refuse_uneven(name: str, value: Value, k: int) -> None:
    """Refuse a function that is not even on k coordinates: an undirected edge may be listed either way round."""
    rng, near = np.random.default_rng(0), moderate(k)
    spread = rng.standard_normal((DRAWS, k)) * 10.0 ** rng.uniform(-DECADES, DECADES, (DRAWS, 1))
    axes = np.kron(10.0 ** np.arange(-DECADES, DECADES + 1.0)[:, None], np.eye(k))
    with np.errstate(all="ignore"):
        try:
            z = np.concatenate([near, spread, axes])
            phi, other = _floats(value, z, -z)
        except (ArithmeticError, ValueError):  # far away phi may be too large for its author's arithmetic
            z = near
            phi, other = _floats(value, z, -z)
    if phi.shape != (len(z),):
        raise TermError(
            f"{name}.value of an argument of the shape {z.shape} has the shape {phi.shape}, not {(len(z),)}"
        )
    known = np.isfinite(phi) & (np.abs(z).max(axis=1) <= 1.0)
    unit = float(np.abs(phi[known]).max(initial=0.0))  # what cancels within phi is rounded relative to this
    off = ~np.isclose(phi, other, rtol=ROUNDING, atol=ROUNDING * unit, equal_nan=True)
    if off.any():
        i = int(off.argmax())
        raise TermError(
            f"the penalty {name} is not even, phi(-z) != phi(z): {phi[i]:.6g} at z = {z[i]} and {other[i]:.6g} at -z; "
            "an undirected edge has no direction, so the optimum would depend on how edges are listed: derive it from "
            "gr.AbstractOneSided, and use it in NodePenalty, or along arrows, penalty(gr.w.across(digraph))"
        )


# ---- values ----------------------------------------------------------------------------------------------------------
def points(k: int) -> Array:
    """Rows on which a function is tried: random ones from tiny to huge, 0, axes, ties of both signs, one long axis."""
    rng = np.random.default_rng(0)
    random = rng.standard_normal((12, k)) * np.r_[np.logspace(-2, 2, 8), 1e-5, 1e4, 1e6, 1e9][:, None]
    signs = np.where(rng.random((6, k)) < 0.5, -1.0, 1.0) * np.r_[1.0, 0.3, 0.05, 1e-3, 3.0, 1e3][:, None]
    return np.vstack([random, np.zeros((1, k)), np.eye(k), -0.7 * np.eye(k), np.ones((1, k)), signs])


def moderate(k: int) -> Array:
    """The `points` that are not large: of larger entries a function may well be infinite."""
    z = points(k)
    return z[np.abs(z).max(axis=1) <= MODERATE]


@np.errstate(invalid="ignore")
def unconvex(value: Callable[[Array], Array], z: Array, phi: Array) -> str:
    """The rows at which a function with the values phi at the rows z is not convex, in words; "" where that is not
    seen.

    By the midpoints of all pairs of rows, 0 and multiples of an axis among them."""
    first, second = np.triu_indices(len(z), 1)
    middle, ends = np.asarray(value((z[first] + z[second]) / 2.0), dtype=float), (phi[first] + phi[second]) / 2.0
    above = np.isfinite(ends) & ~(middle <= ends + ROUNDING * (1.0 + ends))
    if not above.any():
        return ""
    i = int(np.where(above, middle - ends, -np.inf).argmax())
    return (
        f"halfway between a = {z[first[i]]} and b = {z[second[i]]} its value is "
        f"{middle[i]:.6g}, more than {ends[i]:.6g}, the mean of its values at a and b"
    )


def refuse_values(name: str, z: Array, phi: Array) -> None:
    """Raises where the values phi at the rows z are none of a penalty."""
    at_zero = phi[~z.any(axis=1)][0]
    if at_zero < np.inf and (phi < at_zero - ROUNDING * (1.0 + abs(at_zero) + np.abs(z).max(axis=1))).any():
        i = int(phi.argmin())
        raise TermError(
            f"the penalty {name} must not be negative, and 0 at z = 0: it is {at_zero:.6g} there and smaller, "
            f"{phi[i]:.6g}, at z = {z[i]}; {ABOUT}"
        )
    if not abs(at_zero) <= ROUNDING:
        how = "subtract the constant" if at_zero < np.inf else ABOUT
        raise TermError(f"the penalty {name} must be 0 at z = 0; of {z.shape[1]} numbers it is {at_zero:.6g}; {how}")
