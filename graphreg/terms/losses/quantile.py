"""Quantile regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...checks import checked, inside
from ..records import Array, Notation, Statement
from .base import AbstractDifferenceLoss, AbstractPiecewiseLinearLoss


@dataclass(frozen=True, repr=False)
class QuantileLoss(AbstractDifferenceLoss, AbstractPiecewiseLinearLoss):
    """Quantile regression: ``l(x; y) = rho_tau(y - x)`` with ``rho_tau(r) = max(tau r, (tau - 1) r)``.

    Its conjugate is ``l*(b; y) = b y`` for -tau <= b <= 1 - tau and +inf elsewhere; 1 - tau is the double 1.0 - tau,
    here and in proofs.

    Parameters
    ----------
    data : NodeData
        With features and one numeric target.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.
    tau : float
        The quantile, in (0, 1); the median by default.

    Examples
    --------
    >>> five = gr.NodeData.from_dict({"a": ([[1.0]] * 5, [1.0, 2.0, 3.0, 4.0, 10.0])})
    >>> round(gr.Problem(gr.QuantileLoss(five, tau=0.5)).solve().coef.item(), 3)  # the median
    3.0
    """

    tau: float = checked(inside("(0, 1)"), 0.5)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.full(y.shape, -float(self.tau)), np.full(y.shape, 1.0 - float(self.tau))

    def statement(self) -> Statement:
        return Statement("quantile", float(self.tau))

    @property
    def notation(self) -> Notation:
        low, high = f"{self.tau:g}", f"{1.0 - self.tau:g}"
        return Notation(
            f"rho(%y - %z) where rho(r) = max({low} r, -{high} r)",
            "%u %y",
            f"-{low} %c <= %u <= {high} %c",
            rf"\rho(%y - %z) \text{{ where }} \rho(r) = \max({low} \, r, -{high} \, r)",
            "%u %y",
            rf"-{low} \, %c \le %u \le {high} \, %c",
        )
