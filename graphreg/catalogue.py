"""Every loss, penalty and method of the library, under its name.

Nothing is listed here: a class is here because its file lies in its room. All files are imported when something of this
is first asked for. Type checkers, which run no code, read the list in ``catalogue.pyi``, written by ``make listings``;
a name that is not in it yet is known to them as `Any`.
"""

from __future__ import annotations

from typing import Any

from .base.declaring import declared
from .base.messages import near
from .errors import TermError
from .methods import AbstractMethod
from .terms.losses import AbstractLoss
from .terms.penalties import AbstractPenalty

BASES: dict[str, type] = {"loss": AbstractLoss, "penalty": AbstractPenalty, "method": AbstractMethod}


def classes() -> dict[str, type]:
    """Every class by its name."""
    return {name: each for base in BASES.values() for name, each in declared(base, users=False).items()}


def named(kind: str, value: Any) -> Any:
    """The loss or penalty of graphreg that a name such as "L2" stands for; anything else as it is."""
    if not isinstance(value, str):
        return value
    known = declared(BASES[kind], users=False)
    if value not in known:
        raise TermError(f"{kind}={value!r} is no {kind} of graphreg; {near(value, list(known))}")
    return known[value]


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(classes())
    if not name.startswith("_") and name in (known := classes()):
        return known[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
