"""What bounds of terms have in common: intervals rounded outwards, and what underflow may hide."""

from __future__ import annotations

from typing import Any

import numpy as np

from .records import Array

TINY = 1e-300  # more than a few products that underflow can miss
SHORT = 1e-140  # lengths below it are not summed as squares, which underflow


def ends(x: Array, spread: Array) -> tuple[Array, Array]:
    """Floats outside of ``x - spread`` and ``x + spread``, and x itself where the spread is 0."""
    wide = spread > 0.0
    low = np.where(wide, np.nextafter(x - spread, -np.inf), x)
    return low, np.where(wide, np.nextafter(x + spread, np.inf), x)


def shown(value: Array, live: Any) -> Array:
    """The value, and a little more where it is positive but may have underflowed: it then does not look like 0."""
    return value + TINY * live
