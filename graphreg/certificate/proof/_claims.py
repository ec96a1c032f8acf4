"""What more than its bounds a proof can say of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ProofError
from ...form import Form
from ...verify import FLOWS, UNIT, Model, NotProvedError, rational
from ._numbers import exact, nearest, text

NORMS = ("L1", "L2", "LInf")


@dataclass(frozen=True)
class Found:
    """The exact points and bounds of a proof."""

    form: Form
    model: Model
    w: list[list[Any]]
    point: list[Any]
    lower: int
    upper: int
    within: Any


def claims_of(found: Found, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """The claims of the wanted kinds that hold."""
    makers = {"bounds": lambda _: [], "near": near, "fused": fused}
    unknown = [name for name in wanted if name not in makers]
    if unknown:
        raise ProofError(f"there is no claim {unknown[0]!r}; there are {', '.join(makers)}")
    return [claim for name in wanted for claim in makers[name](found)]


def near(found: Found) -> list[dict[str, Any]]:
    """For every edge of a norm with slack, how far apart its ends are at most, at every optimum."""
    gap = rational(found.upper - found.lower, 1 << UNIT)
    out: list[dict[str, Any]] = []
    for b, e, i, t in _held(found):
        slack = nearest(e.c[i]) - _dual_norm(e.kind, [nearest(x) for x in t])
        distance = exact(nearest(gap) / slack * (1.0 + 1e-9)) if slack > 0 and gap > 0 else rational(0)
        if distance > 0 and gap < e.c[i] * distance and _inside(e.kind, e.c[i] - gap / distance, t):
            out.append({"says": "near", "block": b, "edge": i, "distance": text(distance)})
    return out


def fused(found: Found) -> list[dict[str, Any]]:
    """The edges whose ends are equal at every optimum, where the gap is exactly 0."""
    if found.within is not None or found.model.primal(found.w, found.point) != 0:
        return []
    share = 1 - rational(1, 1 << 64)
    held = [(b, i) for b, e, i, t in _held(found) if _inside(e.kind, e.c[i] * share, t)]
    return [{"says": "fused", "block": b, "edge": i} for b, i in held]


def _held(found: Found) -> Any:
    """The edges of norms without centres: (block, the checker's block, edge, flow)."""
    first = found.model.m
    for b, e in enumerate(found.model.blocks[first:]):
        if e.kind in NORMS and e.center is None:
            for i in range(e.size):
                yield b, e, i, found.point[first + b][i]


def _inside(kind: str, c: Any, t: Any) -> bool:
    try:
        FLOWS[kind](None, c, t)
    except NotProvedError:
        return False
    return True


def _dual_norm(kind: str, t: list[float]) -> float:
    if kind == "L1":
        return max(map(abs, t))
    return sum(map(abs, t)) if kind == "LInf" else sum(x * x for x in t) ** 0.5
