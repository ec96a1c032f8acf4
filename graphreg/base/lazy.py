"""CVXPY as ``cp`` and ``scipy.stats``, imported when something of them is first used, so that imports are fast."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["LazyModule", "cp", "stats"]


class LazyModule(ModuleType):
    """A module that is imported when something of it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import cvxpy as cp
    from scipy import stats
else:
    cp, stats = LazyModule("cvxpy"), LazyModule("scipy.stats")
