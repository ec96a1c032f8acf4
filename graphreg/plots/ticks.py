"""Ticks of logarithmic axes that can be read. The one file that imports matplotlib: `canvas.log_scale` does it late."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, Locator, LogLocator, MaxNLocator, NullFormatter

from ..terms import Array

PLAIN = (1e-3, 1e5)  # between these all labels of an axis are plain numbers
WIDTH = 4  # characters of a label for which there is room wherever matplotlib sees room for a tick
ALIKE = 1.01  # a ratio of values whose four digits hold less than four ticks
STEPS = ((1.0, 2.0, 5.0), (1.0,))  # ticks of a decade, from many to few


class Readable(Locator):
    """1, 10, 100 over many decades, 1, 2, 5, 10 over a few, and round numbers within one."""

    def __call__(self) -> Sequence[float]:
        axis: Axis = self.axis  # pyright: ignore[reportAssignmentType]
        low, high = sorted(map(float, axis.get_view_interval()))
        return self.tick_values(low, high)

    def nonsingular(self, v0: float, v1: float) -> tuple[float, float]:
        """The ends of an axis that sets its own: further apart where ticks would be labelled alike."""
        low, high = sorted((v0, v1))
        return (low / 3.0, high * 3.0) if 0.0 < low <= high < ALIKE * low else super().nonsingular(v0, v1)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        axis: Axis | None = self.axis  # pyright: ignore[reportAssignmentType]
        most = 8 if axis is None else int(np.clip(axis.get_tick_space(), 2, 9))
        if (
            axis is not None and getattr(axis, "axis_name", "") == "x" and 1.0 <= vmax < PLAIN[1] * 10.0
        ):  # 100,000 is wide
            most = max(2, int(most * min(1.0, WIDTH / len(f"{vmax:,.0f}"))))
        return readable(vmin, vmax, most).tolist()


def readable(low: float, high: float, most: int) -> Array:
    """Round numbers, at most so many, between two positive ones, at least two where that can be."""
    if not 0.0 < low < high:
        return np.array([])
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found = np.array([])
    for steps in STEPS:
        found = np.array([step * 10.0**k for k in range(first, last + 1) for step in steps])
        found = found[(found >= low * (1 - 1e-9)) & (found <= high * (1 + 1e-9))]
        if len(found) <= most:
            break
    if len(found) > most:
        power = np.rint(np.log10(found)).astype(int)
        found = found[power % -(-len(found) // most) == 0]
    if len(found) >= 2:
        return found
    linear = np.array(MaxNLocator(min(most, 4), steps=[1, 2, 5, 10]).tick_values(low, high))
    return linear[(linear >= low) & (linear <= high)]


def label(value: float, ticks: Array) -> str:
    """The label of one of the ticks: as a plain number where all of them may be, as a power of 10 where all of them
    are, and else as 2e-7."""
    if not value > 0.0:
        return ""
    ticks = ticks if len(ticks) else np.array([value])
    if PLAIN[0] <= ticks.min() * (1 + 1e-9) and ticks.max() <= PLAIN[1] * (1 + 1e-9):
        return f"{value:,.10g}"
    powers = np.log10(ticks)
    if np.abs(powers - np.rint(powers)).max() < 1e-9:
        return rf"$\mathdefault{{10^{{{round(math.log10(value))}}}}}$"
    digits, _, power = f"{value:.3e}".partition("e")
    return f"{float(digits):g}e{int(power)}"


class TickLabels(Formatter):
    """The labels of these ticks."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        axis: Any = self.axis
        return label(x, np.asarray(axis.get_majorticklocs(), dtype=float))


def scale(axis: Axis) -> None:
    """The ticks of an axis that is logarithmic already."""
    axis.set_major_locator(Readable())
    axis.set_major_formatter(TickLabels())
    axis.set_minor_locator(LogLocator(subs=tuple(range(2, 10)), numticks=12))
    axis.set_minor_formatter(NullFormatter())
