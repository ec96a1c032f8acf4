"""How penalties that were recognised are written: their numbers, as text and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from ..records import Array
from ._curves import Curve
from ._sides import Sides

FEW = 8  # numbers or functions that are written out; of more the first ones

HUBER = "huber_d(t) = t^2 / 2 up to |t| = d, then d |t| - d^2 / 2"
SOFT = "S(x, t) = sign(x) max(|x| - t, 0)"

TYPESET = (
    (r"\bmax over x >= 0 of", r"\\max_{x \\ge 0}"),
    (r"\bmax over x of", r"\\max_x"),
    (r"\bhuber_([\w.+-]+)", r"h_{\1}"),
    (r"\bsum_\(j in ([\d,]+)\)", r"\\sum_{j \\in \\{\1\\}}"),
    (r"\bsum_j", r"\\sum_j"),
    (r"\bmax\(", r"\\max("),
    (r"\b(diag|sign)\(", r"\\mathrm{\1}("),
    (r"\|\|", r"\\|"),
    (r"_inf\b", r"_\\infty"),
    (r"<=", r"\\le"),
    (r" where ", r" \\text{ where } "),
    (r" (up to) ", r" \\text{ \1 } "),
    (r", then ", r", \\text{ then } "),
    (r"\.\.\.", r"\\ldots"),
)


def typeset(text: str) -> str:
    """The LaTeX of a formula that is made here."""
    for pattern, latex in TYPESET:
        text = re.sub(pattern, latex, text)
    return text


def times(factor: float) -> str:
    """'0.5 ', and nothing for 1."""
    return "" if factor == 1.0 else f"{factor:g} "


def signed(factor: float) -> str:
    """'-0.5 ', '-', and nothing for 1."""
    return "-" + times(-factor) if factor < 0.0 else times(factor)


def terms(curve: Curve, x: str) -> list[str]:
    """The function that has this derivative, 0 at 0, as summands of a formula; without their constants."""
    line, kinks, bend = curve.parts()
    each = [f"{signed(line)}{x}"] if line else []
    for knot, jump, size in kinks:
        past = x if knot == 0.0 else f"{x} {'-' if knot > 0.0 else '+'} {abs(knot):g}"
        each.append(signed(jump) + (f"|{x}|" if size else f"max({past}, 0)"))
    return each + ([f"{signed(0.5 * bend)}{x}^2"] if bend else [])


def plus(formula: str, constant: float) -> str:
    """With a constant added."""
    return formula if abs(constant) < 1e-15 else f"{formula} {'+' if constant > 0.0 else '-'} {abs(constant):g}"


def vector(values: Array) -> str:
    """'(1, 2, 3)'."""
    shown = ", ".join(f"{value:g}" for value in values[:FEW])
    return f"({shown}, ...)" if len(values) > FEW else f"({shown})"


def weighted_l1(weights: Array) -> str:
    """``sum_j w_j |z_j|``."""
    if (weights == weights[0]).all():
        return f"{times(weights[0])}||%z||_1"
    return f"||diag{vector(weights)} %z||_1"


def weighted(weights: Array) -> str:
    """The weights times that of the edge: one number where they are equal."""
    return f"{times(weights[0])}%c" if (weights == weights[0]).all() else f"%c {vector(weights)}"


def with_hubers(formula: str) -> str:
    """The formula, with what a Huber function in it is."""
    return f"{formula} where {HUBER}" if "huber_" in formula else formula


def grouped(formula: str) -> str:
    """In brackets where it is a sum."""
    return f"({formula})" if " + " in formula else formula


def conjugated(slope: str, least: str, formula: str) -> str:
    """``c h*(s / c)``, as the largest value that it is."""
    if not formula:
        return f"max over {least} of {slope} x"
    inner = f"({formula})" if " + " in formula or formula[0].isdigit() else formula
    return f"max over {least} of ({slope} x - %c {inner})"


def summed(each: Sequence[Callable[[str], str]], x: str) -> str:
    """The sum over coordinates j of functions that write themselves; equal ones under one sum sign."""
    columns: dict[str, list[int]] = {}
    for j, function in enumerate(each):
        columns.setdefault(function("x"), []).append(j)
    parts: list[str] = []
    for formula, on in columns.items():
        if not formula:
            continue
        at = each[on[0]](x if len(on) > 1 else x.replace("_j", f"_{on[0]}"))
        at = grouped(at) if len(on) > 1 else at
        parts.append(at if len(on) == 1 < len(each) else f"sum_{'j' if len(on) == len(each) else _among(on)} {at}")
    return " + ".join([*parts[:FEW], *([f"... ({len(parts) - FEW} more)"] if len(parts) > FEW else [])])


def _among(columns: list[int]) -> str:
    return f"(j in {','.join(str(j) for j in columns)})"


def outwards(sides: Sides, j: int, signed: str, size: str) -> str:
    """``h_j`` at x >= 0, written as the sum of its kinks and bends: in ``size``, or its square in ``signed``."""
    parts: list[str] = []
    for start, length, low, jump, bend in zip(
        *(each[j] for each in (sides.start, sides.length, sides.low, sides.jump, sides.bend)), strict=True
    ):
        past = size if start == 0.0 else f"max({size} - {start:g}, 0)"
        if jump > 1e-15 * low:
            parts.append(f"{times(jump)}{past}")
        base = signed if start == 0.0 else past
        if bend > 0.0 and np.isinf(length):
            parts.append(f"{times(bend / 2.0)}{base}^2")
        elif bend > 0.0:
            parts.append(f"{times(bend)}huber_{length:g}({base})")
    return " + ".join(parts)


def on_both_sides(right: Sides, left: Sides, j: int) -> Callable[[str], str]:
    """``h_j`` as a formula of its argument."""
    one, other = (outwards(side, j, "x", "|x|") for side in (right, left))

    def formula(x: str) -> str:
        if one == other:
            return outwards(right, j, x, f"|{x}|")
        up, down = f"max({x}, 0)", f"max(-{x}, 0)"
        parts = outwards(right, j, up, up), outwards(left, j, down, down)
        return " + ".join(part for part in parts if part)

    return formula
