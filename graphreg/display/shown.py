"""What has a picture of itself in words for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from .pieces import Html, block


class Shown(ABC):
    """What notebooks show as HTML, and as what ``print`` gives where no HTML can be shown (a console, an export)."""

    __slots__ = ()

    @abstractmethod
    def _html(self) -> Iterable[Html]:
        """What is shown, from top to bottom."""

    def __html__(self) -> str:
        return "".join(self._html())

    def _repr_html_(self) -> str:
        return str(block(inside(self)))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What Jupyter asks for: the same in several media. The arguments are wishes, which it carries out itself."""
        del include, exclude
        return {"text/plain": str(self), "text/html": self._repr_html_()}


class ShownFormula(Shown):
    """What is a formula, too: as LaTeX for what prints pages, as MathML in the HTML."""

    __slots__ = ()

    @abstractmethod
    def latex(self) -> str:
        """For math mode with amsmath or MathJax."""

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**super()._repr_mimebundle_(include, exclude), "text/latex": self._repr_latex_()}


def inside(shown: Shown) -> Html:
    """All that is shown of an object, to stand within what is shown of another."""
    return Html(shown.__html__())
