"""Least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import DataError
from ..records import Array, Notation, Statement
from .base import AbstractQuadraticLoss


@dataclass(frozen=True, repr=False)
class SquaredLoss(AbstractQuadraticLoss):
    """Least squares: ``l(x; y) = 1/2 (x - y)^2``, conjugate ``l*(b; y) = b^2/2 + b y``.

    The term is ``sum_i scale_i sum_r weight_r 1/2 (x_r'w_i + o_r - y_r)^2``. The GTV paper's local loss
    ``(1/m_i) ||X w - y||^2`` (Section VI) is ``scale = 2 / m_i``.

    Parameters
    ----------
    data : NodeData
        With features and one numeric target.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.

    Examples
    --------
    >>> five = gr.NodeData.from_dict({"a": ([[1.0]] * 5, [1.0, 2.0, 3.0, 4.0, 10.0])})
    >>> round(gr.Problem(gr.SquaredLoss(five)).solve().coef.item(), 3)  # the mean
    4.0
    """

    def statement(self) -> Statement:
        return Statement("squared")

    @property
    def notation(self) -> Notation:
        return Notation(
            "(%z - %y)^2 / 2", "%u^2 / (2 %c) + %u %y", "", r"\tfrac12 (%z - %y)^2", r"\frac{%u^2}{2 %c} + %u %y"
        )


@dataclass(frozen=True, repr=False)
class MeanLoss(AbstractQuadraticLoss):
    """Means: the parameter of a node is the (shrunken) mean of its rows, ``l(w; a) = 1/2 ||w - a||^2``.

    The term is ``sum_i scale_i sum_r weight_r 1/2 ||w_i - a_r||^2``; the coordinates of w are the targets.
    Its conjugate is ``l*(b; a) = ||b||^2/2 + <b, a>``.

    Parameters
    ----------
    data : NodeData
        With one or several numeric targets and no features.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.

    Examples
    --------
    >>> places = gr.NodeData.from_dict({"a": (None, [[1.0, 0.0], [3.0, 4.0]])})
    >>> gr.Problem(gr.MeanLoss(places)).solve().coef
    array([[2., 2.]])
    """

    plain = True

    def design(self) -> tuple[None, Array]:
        if self.data.X is not None:
            raise DataError("MeanLoss takes targets alone, and the data have features; leave features out")
        return None, np.zeros_like(self.targets())

    def coordinates(self) -> tuple[str, ...]:
        return self.data.targets

    def targets(self) -> Array:
        if not self.data.targets or self.data.y is None:
            raise DataError("MeanLoss needs targets, and the data have none")
        target = self.encode(self.data.y)
        return target[:, None] if target.ndim == 1 else target

    def statement(self) -> Statement:
        return Statement("mean")

    @property
    def notation(self) -> Notation:
        return Notation(
            "||%z - %y||^2 / 2",
            "||%u||^2 / (2 %c) + <%u, %y>",
            latex_value=r"\tfrac12 \lVert %z - %y \rVert^2",
            latex_conjugate=r"\frac{\lVert %u \rVert^2}{2 %c} + \langle %u, %y \rangle",
        )
