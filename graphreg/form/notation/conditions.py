"""The optimality conditions of one block: its prices or flows are slopes of its loss or penalty."""

from __future__ import annotations

from ...terms.losses import AbstractSmoothLoss
from .blocks import EdgeWords, SampleWords
from .writing import IMPLIES, INDENT, NOTHING, WITH, Math, Row, join, prose, same


def prices(words: SampleWords) -> list[Row]:
    smooth = isinstance(words.block.loss, AbstractSmoothLoss)
    mark = words.mark
    l = Math("l" + mark, f"l_{{{mark}}}" if mark else "l")
    value = words.value(same("t"))
    price, scale, x = words.price, words.scale, words.argument
    if smooth:
        slope = Math(
            f"{price.text} = {scale.text} {l.text}'({x.text})",
            rf"{price.latex} = {scale.latex} \, {l.latex}'({x.latex})",
        )
    else:
        slope = Math(
            f"{price.text} in {scale.text} d{l.text}({x.text})",
            rf"{price.latex} \in {scale.latex} \, \partial {l.latex}({x.latex})",
        )
    definition = Math(f"{l.text}(t) = {value.math.text}", f"{l.latex}(t) = {value.math.latex}")
    if value.definition:
        definition += Math(", ", r",\ ") + value.definition
    where = prose(f"{words.each} at node i ({words.title})")
    rows = [] if smooth else [Row(INDENT + price + prose(" is a subgradient: any slope between those of both sides"))]
    return [Row(slope, where), *rows, Row(WITH + definition)]


def penalties(words: EdgeWords) -> list[Row]:
    flow, weight, z = words.flow, words.weight, words.argument
    times = NOTHING if weight.text == "1" else weight + Math(" ", r" \, ")
    gradient = words.gradient
    if gradient:
        return [Row(flow + same(" = ") + times + gradient, prose(f"{words.each} ({words.block.name})"))]
    subgradient = Math(
        f"{flow.text} in {times.text}d phi({z.text})", rf"{flow.latex} \in {times.latex}\partial \phi({z.latex})"
    )
    if not words.norm:
        phi = words.value(same("z"))
        definition = Math(f"phi(z) = {phi.math.text}", rf"\phi(z) = {phi.math.latex}")
        rows = [Row(subgradient, prose(f"{words.each} ({words.block.name})")), Row(WITH + definition)]
        return rows + ([Row(WITH + phi.definition)] if phi.definition else [])
    value = words.value()
    between = Math(" * ", r" \cdot ") if value.math.text[0].isdigit() else Math(" ", r" \, ")
    product = join([weight if times else NOTHING, value.math], between.text, between.latex)
    inner = Math(f"<{flow.text}, {z.text}> = ", rf"\langle {flow.latex}, {z.latex} \rangle = ") + product
    definitions = [Row(WITH + value.definition)] if value.definition else []
    left, right = words.ends()
    right = right or same("0")
    equal, apart = join((left, right), " = "), join((left, right), " != ", r" \ne ")
    fused = ": the edge is fused" if not words.block.ground else ""
    return [
        Row(words.domain.math + prose(" and ") + inner, prose(f"{words.each} ({words.block.name})")),
        *definitions,
        Row(INDENT + prose("the flow is below capacity") + IMPLIES + equal + prose(fused)),
        Row(INDENT + apart + IMPLIES + prose("the flow is at capacity")),
    ]


def constraints(words: EdgeWords) -> list[Row]:
    name = f"{words.each} ({words.block.name})"
    flow = words.flow
    if words.equality:
        return [Row(words.condition, prose(name)), Row(flow + prose(" is free: it is the price of being equal"))]
    normal = prose(" is normal to this set, outwards: 0 where the constraint is slack")
    return [Row(words.condition, prose(name)), Row(flow + normal)]


def identity() -> tuple[Row, ...]:
    first = Math(
        "P(w) - Q(u, a) = sum_r FY(sample r) + sum_e FY(edge e) + sum_i <w_i, balance of node i>",
        r"P(w) - Q(u, a) = \sum_r \mathrm{FY}_r + \sum_e \mathrm{FY}_e + "
        r"\sum_i \langle w_i, \text{balance of node } i \rangle",
    )
    second = Math(
        "FY(x, s) = f(x) + f*(s) - <x, s> >= 0,  and = 0 exactly where s is a slope (subgradient) of f at x",
        r"\mathrm{FY}(x, s) = f(x) + f^*(s) - \langle x, s \rangle \ge 0, \quad "
        r"= 0 \text{ exactly where } s \in \partial f(x)",
    )
    return Row(first), Row(second)
