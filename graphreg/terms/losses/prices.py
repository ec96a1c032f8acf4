"""The domain of a conjugate, dom l*: where the prices of a loss may lie.

A loss says of it the ends, by ``domain``, and the nearest point, by ``clip``; `PriceDomain` derives the rest. One whose
prices are coupled says more, by its property ``prices``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..records import Array, Descent

if TYPE_CHECKING:
    from .loss import AbstractLoss


SHARP = 1e-12  # of the largest slope: beside a smaller one 0 is what underflow or cancellation leaves


class PriceDomain:
    """dom l* of a loss. Prices b (at scale 1) are shaped like its coded targets y, one for each sample.

    Examples
    --------
    >>> votes = gr.NodeData.from_dict({"a": ([[1.0]] * 2, [0, 1])})
    >>> prices = gr.LogisticLoss(votes).prices
    >>> isinstance(prices, gr.PriceDomain)
    True
    """

    def __init__(self, loss: AbstractLoss) -> None:
        self.loss: Any = loss

    def interior(self, y: Array) -> Array:
        """True where the price 0 lies inside the domain (and not on its boundary), shape (M,)."""
        low, high = self.loss.domain(y)
        inside = (low < 0) & (high > 0)
        return inside if inside.ndim == 1 else np.logical_and.reduce(inside, axis=1)

    def step_to_boundary(self, start: Array, end: Array, y: Array) -> Array:
        """For each sample the largest t in [0, 1] with start + t (end - start) in the domain (start lies in it)."""
        low, high = self.loss.domain(y)
        with np.errstate(divide="ignore", invalid="ignore"):
            to_low, to_high = (low - start) / (end - start), (high - start) / (end - start)
            t = np.where(end < low, to_low, np.where(end > high, to_high, 1.0))
        t = np.clip(np.nan_to_num(t, nan=0.0), 0.0, 1.0)
        return t if t.ndim == 1 else t.min(axis=1, initial=1.0)

    def span(self, b: Array) -> Array:
        """The nearest point of the smallest affine set that contains the domain; b itself where that is everything."""
        return b

    def dependent(self, y: Array) -> Array | None:
        """For each sample the coordinate of its price that is minus the sum of the others, (M,); None where all
        coordinates are free."""
        return None

    def descent(self, y: Array) -> Descent:
        """The directions of the predictor along which l does not grow: where the domain ends at 0, one of the signs."""
        low, high = self.loss.domain(y)
        flat = (low == 0) | (high == 0)
        rows = np.arange(y.size).reshape(y.shape)
        sign = np.where(high == 0, 1.0, -1.0)[flat]
        eye = sp.csr_array((sign, (np.arange(flat.sum()), rows[flat])), shape=(int(flat.sum()), y.size))
        ever = np.full(len(sign), True)
        if len(sign) and self.loss.is_users():
            ever = ~self.reached(np.where(flat, np.where(high == 0, 1.0, -1.0), 0.0), y)[flat]
        return Descent(eye, np.nonzero(flat)[0], ever, np.flatnonzero(~flat.ravel()))

    def reached(self, direction: Array, y: Array) -> Array:
        """True where l comes down to a minimum on the way: its gradient is 0 from some point on, before which it was
        none that falls away by little and little."""
        before, most, out = np.full(y.shape, np.inf), np.zeros(y.shape), np.zeros(y.shape, dtype=bool)
        for k in range(-10, 60):
            with np.errstate(all="ignore"):
                slope = np.abs(self.loss.gradient(2.0**k * direction, y))
            out |= (slope == 0.0) & (before > SHARP * most)
            most = np.fmax(most, slope)
            before = np.where(slope > 0.0, slope, before)
        return out

    def remains(self, y: Array, fallen: Array) -> tuple[Array, Array]:
        """The rest of the samples where some rows of `descent` fell for ever (``fallen``, a mask over these rows):
        a mask over the samples, and the coded targets of those that are left. The others have come down to their
        limit -l*(0)."""
        gone = np.zeros(len(y), dtype=bool)
        gone[self.descent(y).sample[fallen]] = True
        return ~gone, y[~gone]
