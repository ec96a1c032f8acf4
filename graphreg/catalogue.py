"""Every loss, penalty and method of the library, under its name.

Nothing is listed here: a class is here because its file lies in its room. Type checkers, which run no code, read the
list in ``catalogue.pyi``, written by ``make listings``; a name that is not in it yet is known to them as `Any`.
"""

from __future__ import annotations

from .declaring import declared
from .methods import AbstractMethod
from .terms.losses import AbstractLoss
from .terms.penalties import AbstractPenalty

BASES: dict[str, type] = {"loss": AbstractLoss, "penalty": AbstractPenalty, "method": AbstractMethod}

_found: dict[str, type] = {}
for _base in BASES.values():
    _found |= declared(_base, users=False)
globals().update(_found)
__all__ = list(_found)  # pyright: ignore[reportUnsupportedDunderAll]
