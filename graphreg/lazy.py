"""CVXPY as ``cp``, imported when something of it is first used, so that importing graphreg is fast."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["LazyModule", "cp"]


class LazyModule(ModuleType):
    """A module that is imported when something of it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import cvxpy as cp
else:
    cp = LazyModule("cvxpy")
