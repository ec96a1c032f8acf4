"""How mistakes are called. Those that no limit can tell apart have one name."""

from __future__ import annotations

SAME = 1e-3  # by how much a factor may miss a round number
DEGREE = "nodes weighted by their degree"
ROUND = (2.0, 3.0, 4.0, 5.0, 8.0, 10.0)


def number(t: float) -> str:
    """A factor as it is said: 2, 1/2, or so many digits."""
    for q in ROUND:
        for value, text in ((q, f"{q:g}"), (1.0 / q, f"1/{q:g}")):
            if abs(abs(t) - value) <= SAME * value:
                return text if t > 0 else f"-{text}"
    return f"{t:.4g}"


def is_one(t: float) -> bool:
    """Whether a factor is 1."""
    return abs(t - 1.0) <= SAME


def by_factor(kind: str, name: str, t: float) -> str:
    """The mistake that a family with the factor t is."""
    if kind == "model":
        return name
    one = abs(abs(t) - 1.0) <= SAME
    if kind in ("strength", "losses"):
        return _of_strength(kind, name, t, one)
    if kind in ("edge", "end"):
        if abs(t) <= SAME:
            return f"missing edge: {name} left out"
        opposite = f"sign on one edge: {name} with the opposite sign"
        return opposite if one and t < 0 else f"{name} x {number(t)}"
    if kind == "node":
        return f"{name} left out" if abs(t) <= SAME else f"{name} x {number(t)}"
    times = "" if one and t > 0 else f", x {number(t)}"
    step = f" (as a prox step of {number(t)} for 1 / degree does)" if name == DEGREE else ""
    return f"penalty {name}{times}" if kind == "penalty" else f"{name}{times}{step}"


def _of_strength(kind: str, name: str, t: float, one: bool) -> str:
    if one and t < 0:
        return f"sign: {name} with the opposite sign"
    if abs(t) <= SAME:
        return f"{name} left out"
    losses = 1.0 / t if kind == "strength" else t
    other = f"the losses x {number(losses)}" if kind == "strength" else f"the penalties x {number(1.0 / t)}"
    prox = f", or the step of the losses' prox x {number(losses)}" if t > 0 else ""
    return f"factor {number(t)} in the strength: {name} x {number(t)} ({other}{prox})"


def roundness(t: float) -> int:
    """0 for the factors of the commonest mistakes, 1 for other round ones, 2 for the rest."""
    if min(abs(t), abs(t + 1.0)) <= SAME:
        return 0
    return 1 if any(abs(abs(t) - v) <= SAME * v for q in ROUND for v in (q, 1.0 / q)) else 2
