"""A lower bound of the optimum, and where it was found."""

from __future__ import annotations

from dataclasses import dataclass

from ...form import DualPoint
from ...terms import Array
from .value import sum_down


@dataclass(frozen=True)
class Enclosed:
    """A lower bound, and the dual point next to which it was found.

    Attributes
    ----------
    lower : (components,) array
        A lower bound of the optimum of each component; -inf where none was found. One number alone is a bound of all
        together.
    point : DualPoint
    spread : tuple of arrays
        An exactly conserved point has its flows within ``point.flows +- spread``.
    why : str
        What failed, where a bound is missing.
    inner : bool
        Whether the prices of the exactly conserved point lie in the relative interior of their domains.
    off : tuple of arrays
        It has its prices within ``point.prices +- off``; empty where that is not known.
    """

    lower: Array
    dual_point: DualPoint
    spread: tuple[Array, ...]
    why: str = ""
    inner: bool = False
    off: tuple[Array, ...] = ()

    @property
    def value(self) -> float:
        """The sum of the bounds, rounded downwards."""
        return sum_down(self.lower)
