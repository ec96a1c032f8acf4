"""What an engine does beside the verbs of all engines where rounds on a part of a graph are compiled."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..terms import Array


class AbstractPartEngine(ABC):
    """The engine of one of several parts, which all do the same in the same order; see `graphreg.network.view`."""

    @abstractmethod
    def fill(self, values: Array) -> None:
        """``exchange`` of parameters along every arc, into the rows of neighbours of values (n, d) themselves: what no
        edge couples stays there as it is."""

    @abstractmethod
    def everywhere(self, here: bool) -> bool:
        """Whether something holds on every part."""
