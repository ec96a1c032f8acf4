"""Standardised features: what they are centred by and divided by, and coefficients in the units of the columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from .labels import Array

INTERCEPT = "intercept"
CONSTANT = 1e-12  # times its size: a standard deviation below that is rounding


@dataclass(frozen=True)
class Standardised:
    """Features in standard deviations: a column x stands in the data as ``(x - center) / scale``.

    Attributes
    ----------
    center : mapping of str to float
        The mean of each standardised feature; 0 where the data have no intercept, which would take it up.
    scale : mapping of str to float
        Its standard deviation (with n - 1).
    """

    center: Mapping[str, float]
    scale: Mapping[str, float]

    @staticmethod
    def of(X: Array, names: Sequence[str], chosen: Sequence[str], centred: bool) -> Standardised:
        """Those of the chosen columns of X (M, d); one that is constant is refused."""
        center, scale = dict[str, float](), dict[str, float]()
        for name in chosen:
            x = X[:, names.index(name)]
            with np.errstate(all="ignore"):  # infinite entries are refused afterwards, with their rows
                mean, deviation = float(x.mean()), float(x.std(ddof=1)) if len(x) > 1 else 0.0
            if deviation <= CONSTANT * (abs(mean) + deviation):
                raise DataError(f"the feature {name!r} is constant and cannot be standardised; leave it out")
            center[name], scale[name] = mean if centred else 0.0, deviation
        return Standardised(center, scale)

    def applied(self, X: Array, names: Sequence[str]) -> Array:
        """The columns of X as they stand in the data, (M, d)."""
        return (X - [self.center.get(name, 0.0) for name in names]) / [self.scale.get(name, 1.0) for name in names]

    def in_units(self, w: Array, coordinates: Sequence[Hashable]) -> Array:
        """Coefficients (n, d) in the units of the columns: ``w_j / scale_j``, and the intercept less ``sum_j center_j
        w_j / scale_j``, of each class its own."""
        scale, shift = self._maps(coordinates)
        v = w / scale
        return v - v @ shift

    def from_units(self, v: Array, coordinates: Sequence[Hashable]) -> Array:
        """The inverse of `in_units`."""
        scale, shift = self._maps(coordinates)
        return (v + v @ shift) * scale

    def _maps(self, coordinates: Sequence[Hashable]) -> tuple[Array, Array]:
        pairs: list[tuple[Any, Any]] = [each if isinstance(each, tuple) else (each, None) for each in coordinates]
        shift = np.zeros((len(pairs), len(pairs)))
        for j, (name, kind) in enumerate(pairs):
            if self.center.get(name, 0.0):
                shift[j, pairs.index((INTERCEPT, kind))] = self.center[name]
        return np.array([self.scale.get(name, 1.0) for name, _ in pairs]), shift
