"""A problem as it would be written down: the primal, its dual, and the optimality conditions."""

from __future__ import annotations

from collections.abc import Iterable

from ...base.messages import count
from ...terms import Model
from ...terms.losses import AbstractSmoothLoss
from ...terms.penalties import is_equality
from ..building import build
from ..form import Form
from . import legend
from .blocks import EdgeWords, Filled, SampleWords, Symbols
from .writing import IMPLIES, INDENT, NOTHING, WITH, Math, Row, Section, Written, beside, grouped, join, prose, same


def price_conditions(words: SampleWords) -> list[Row]:
    smooth = isinstance(words.block.loss, AbstractSmoothLoss)
    mark = words.mark
    l = Math("l" + mark, f"l_{{{mark}}}" if mark else "l")
    value = words.value(same("t"))
    price, scale, x = words.price, words.scale, words.argument
    if smooth:
        slope = price + same(" = ") + scale + Math(" ", r" \, ") + l + same("'(") + x + same(")")
    else:
        slope = price + Math(" in ", r" \in ") + scale + Math(" d", r" \, \partial ") + l + same("(") + x + same(")")
    definition = l + same("(t) = ") + join([value.math, value.definition], ", ", r",\ ")
    where = prose(f"{words.each}{' at node i' if words.predictor else ''} ({words.block.name})")
    rows = [] if smooth else [Row(INDENT + price + prose(" is a subgradient: any slope between those of both sides"))]
    return [Row(slope, where), *rows, Row(WITH + definition)]


def flow_conditions(words: EdgeWords) -> list[Row]:
    flow, weight, z = words.flow, words.weight, words.argument
    weight = NOTHING if weight.text == "1" else weight
    name = prose(f"{words.each} ({words.block.name})")
    if gradient := words.gradient:
        return [Row(flow + same(" = ") + beside(weight, gradient), name)]
    slope = Math("d phi(", r"\partial \phi(") + z + same(")")
    subgradient = flow + Math(" in ", r" \in ") + beside(weight, slope)
    if not words.norm:
        phi = words.value(same("z"))
        definition = Math("phi(z) = ", r"\phi(z) = ") + phi.math
        return [Row(subgradient, name), *_with([definition, phi.definition])]
    value = words.value()
    inner = Math(f"<{flow.text}, {z.text}> = ", rf"\langle {flow.latex}, {z.latex} \rangle = ")
    inner += beside(weight, value.math)
    left, right = words.ends()
    right = right or same("0")
    equal, apart = join((left, right), " = "), join((left, right), " != ", r" \ne ")
    fused = ": the edge is fused" if words.noun == "edge" else ""
    return [
        Row(words.domain.math, name),
        Row(inner),
        *_with([value.definition]),
        Row(INDENT + prose("the flow is below capacity") + IMPLIES + equal + prose(fused)),
        Row(INDENT + apart + IMPLIES + prose("the flow is at capacity")),
    ]


def constraint_conditions(words: EdgeWords) -> list[Row]:
    name = f"{words.each} ({words.block.name})"
    flow = words.flow
    if is_equality(words.block.penalty, words.width):
        return [Row(words.condition, prose(name)), Row(flow + prose(" is free: what is equal takes any flow"))]
    normal = prose(" is normal to this set, outwards: 0 where the constraint is slack")
    return [Row(words.condition, prose(name)), Row(flow + normal)]


def gap_identity(symbols: Symbols) -> tuple[Row, ...]:
    kinds = dict.fromkeys([("sample", "r")] * bool(symbols.samples) + [(e.noun, e.index) for e in symbols.edges])
    sums = [Math(f"sum_{k} FY({of} {k})", rf"\sum_{{\text{{{of}s }} {k}}} \mathrm{{FY}}_{k}") for of, k in kinds]
    nodes = Math("sum_i <w_i, balance of node i>", r"\sum_i \langle w_i, \text{balance of } i \rangle")
    head, plus = same(f"P(w) - Q({_parts(symbols, 'u', 'a', ', ')}) = "), Math("  + ", r"\quad {} + ")
    first = [join([*sums, nodes], " + ")] if len(sums) <= 2 else [join(sums, " + "), plus + nodes]  # as wide as a slide
    second = Math(
        "FY(x, s) = f(x) + f*(s) - <x, s> >= 0,  and = 0 exactly where s is a slope (subgradient) of f at x",
        r"\mathrm{FY}(x, s) = f(x) + f^*(s) - \langle x, s \rangle \ge 0, \quad "
        r"= 0 \text{ exactly where } s \in \partial f(x)",
    )
    return Row(head + first[0]), *map(Row, first[1:]), Row(second)


def _parts(symbols: Symbols, flows: str, prices: str, between: str = " and ") -> str:
    """The words for flows and prices, for those that there are."""
    return between.join([flows] * bool(symbols.edges) + [prices] * bool(symbols.samples))


# ---- all blocks ------------------------------------------------------------------------------------------------------
__all__ = ["Written", "dual", "formula", "kkt", "primal"]

SUBJECT = Math("subject to", r"\text{subject to}")


def primal(form: Form) -> Written:
    """The problem as the sum it is, with its sizes and scalings.

    Parameters
    ----------
    form : Form
        The canonical form of a problem.

    Returns
    -------
    Written
        One line per loss and per penalty, the constraints, and a legend.

    Examples
    --------
    >>> str(gr.plots.primal(problem.form)).startswith("minimise over")
    True
    """
    symbols = Symbols(form)
    terms = [words.sum + grouped(words.value().math) for words in (*symbols.samples, *symbols.penalties)]
    size = f"{form.n} x {form.d}", rf"{form.n} \times {form.d}"
    heading = Math(f"minimise over w in R^({size[0]})", rf"\text{{minimise over }} w \in \mathbb{{R}}^{{{size[1]}}}")
    definitions = [words.value().definition for words in (*symbols.samples, *symbols.edges)]
    sections = [Section(heading, (*_sum(terms, "+"), *_with(definitions)))]
    if symbols.constraints:
        rows = [Row(words.condition, prose(words.each)) for words in symbols.constraints]
        sections.append(Section(SUBJECT, tuple(rows)))
    return Written(tuple(sections), tuple(legend.sizes(symbols)))


def formula(model: Model) -> Written:
    """The primal problem of a model."""
    return primal(build(model))


def dual(form: Form) -> Written:
    """The dual: flows on the edges and prices on the samples, within capacities, conserved at every node.

    Parameters
    ----------
    form : Form
        The canonical form of a problem.

    Returns
    -------
    Written

    Examples
    --------
    >>> str(gr.plots.dual(problem.form)).startswith("maximise over")
    True
    """
    symbols = Symbols(form)
    heading = prose("maximise over ") + _variables(symbols)
    rows = symbols.conservation("at every node i: conservation")
    for words in symbols.edges:
        if words.domain.math:
            what = ": the capacity of its flow" if words.norm else ""
            rows.append(Row(words.domain.math, prose(words.each + what)))
    ranged = [words for words in symbols.samples if words.domain.math]
    rows += [Row(words.domain.math, prose(words.each + ": the range of its price")) for words in ranged]
    filled = (each for words in (*symbols.samples, *symbols.edges) for each in (words.conjugate, words.domain))
    definitions = _with(each.definition for each in filled)
    objective = Section(heading, (*_sum(_dual_terms(symbols), "-"), *definitions))
    return Written((objective, Section(SUBJECT, tuple(rows))), _letters(symbols), _reading(symbols))


def kkt(form: Form) -> Written:
    """The optimality conditions: w and (u, a) are both optimal exactly where all of them hold.

    Parameters
    ----------
    form : Form
        The canonical form of a problem.

    Returns
    -------
    Written
    """
    symbols = Symbols(form)
    balance = tuple(symbols.conservation("at every node i"))
    sections = [Section(prose(f"conservation: {_parts(symbols, 'flows', 'prices')} balance"), balance)]
    if rows := tuple(row for words in symbols.samples for row in price_conditions(words)):
        sections.append(Section(prose("prices are the slopes of the losses"), rows))
    flows = [row for words in symbols.penalties for row in flow_conditions(words)]
    rows = tuple(reversed(dict.fromkeys(reversed(flows))))  # what is true of several is said once, after them
    if rows:
        sections.append(Section(prose("flows are the slopes of the penalties"), rows))
    if symbols.constraints:
        rows = tuple(row for words in symbols.constraints for row in constraint_conditions(words))
        sections.append(Section(prose("constraints hold, and their flows are normal to them"), rows))
    heading = prose(f"and for all w, {_parts(symbols, 'u', 'a', ', ')} the duality gap is the sum of what is missing")
    sections.append(Section(heading, gap_identity(symbols)))
    return Written(tuple(sections), _letters(symbols))


# ---- the parts of the dual ---------------------------------------------------------------------------------------
def _sum(terms: list[Math], sign: str) -> list[Row]:
    """Terms below each other. ``sign`` goes before each; terms that bring their own keep it."""
    rows: list[Row] = []
    for term in terms:
        own = term.text[:2] in ("+ ", "- ", "  ")
        lead = Math("  ", "") if sign == "+" and not rows else Math(f"{sign} ", f"{{}} {sign} ")
        rows.append(Row(term if own else lead + term))
    return rows


def _with(definitions: Iterable[Math]) -> list[Row]:
    """The functions that the formulas name."""
    return [Row(WITH + definition) for definition in dict.fromkeys(definitions) if definition]


def _dual_terms(symbols: Symbols) -> list[Math]:
    terms: list[Math] = []
    for words in symbols.samples:
        terms += _minus(words.every, words.conjugate)
        if words.shifted:
            product = Math(f"<{words.price.text}, o_r>", rf"\langle {words.price.latex}, o_r \rangle")
            shift = product if words.block.offset.ndim == 2 else words.price + Math(" o_r", r" \, o_r")
            terms.append(same("+ ") + words.every + shift)
    for words in symbols.edges:
        terms += _minus(words.every, words.conjugate)
        if words.block.center is not None:
            c = words.center
            product = Math(f"<{words.flow.text}, {c}>", rf"\langle {words.flow.latex}, {c} \rangle")
            terms.append(words.every + product)
    return terms or [same("  0")]


def _minus(every: Math, conjugate: Filled) -> list[Math]:
    """A conjugate under its sum sign, in brackets where it is itself a sum."""
    math = conjugate.math
    return [every + grouped(math)] if math else []


def _variables(symbols: Symbols) -> Math:
    """'the flows u on 12 edges and the prices a on 120 samples'."""
    parts: list[Math] = []
    for words in symbols.edges:
        rows = count(words.block.count, words.noun)
        where = f" from {rows} to the ground" if words.noun == "node" else f" on {rows}"
        parts.append(words.flows() + prose(where))
    flows = prose("flows ") + join(parts, ", ", r",\ ") if parts else NOTHING
    prices = [words.prices() + prose(f" on {count(words.block.count, 'sample')}") for words in symbols.samples]
    both = [flows, prose("prices ") + join(prices, ", ", r",\ ") if prices else NOTHING]
    return join(both, " and ", r"\text{ and }")


def _flow_rows(symbols: Symbols) -> list[Row]:
    rows = [
        Row(same(f"(K w)_{words.index} = ") + words.row, prose(f"the rows of {words.block.name}"))
        for words in (*symbols.edges, *symbols.samples)
        if words.row
    ]
    if all(words.noun != "edge" for words in symbols.edges):
        return [*dict.fromkeys(rows)]  # once for groups of several sizes
    key = Math("out_i, in_i", r"\mathrm{out}_i, \mathrm{in}_i")
    sums = "the sums of the flows on the edges that leave node i, and on those that enter it"
    return [*dict.fromkeys(rows), Row(key, prose(sums))]


def _letters(symbols: Symbols) -> tuple[Row, ...]:
    """The meaning of the letters of a dual; of the coordinates only the sets that formulas speak of."""
    rows = [*_flow_rows(symbols), *legend.coding(symbols), *legend.scales(symbols), *legend.weights(symbols)]
    return (*rows, *legend.coordinates(symbols)[1:], *legend.parameters(symbols))


def _reading(symbols: Symbols) -> tuple[str, ...]:
    form = symbols.form
    between, rows = (any(words.noun == noun for words in symbols.edges) for noun in ("edge", "row"))
    parts = ["A price says how much the loss of a sample pulls on the parameters of its node, as a multiple of x_r."]
    parts *= bool(symbols.samples)
    if any(words.matrix for words in symbols.samples):
        parts = [
            "A price, one number per class, says how much the loss of a sample pulls on the parameters of its node: "
            "each number on the column of its class, as a multiple of x_r."
        ]
    if parts and all(words.predictor in ("w_i", "") for words in symbols.samples):
        parts = ["A price says how the loss of a sample pulls on the parameters of its node."]
    if not all(words.predictor for words in symbols.samples):
        own = parts if any(words.predictor for words in symbols.samples) else []
        parts = [*own, "The price of a row pulls on the nodes that it speaks of: K'a is what it does there."]
    if between:
        parts.append("An edge carries a flow, one number per coordinate, from its tail i to its head j.")
    if any(words.norm and words.noun == "edge" for words in symbols.edges):
        parts.append("At the optimum, the two sides of an edge are equal where its flow stays below its capacity.")
    if rows:
        parts.append("A row carries a flow as long as itself, K'u of which pulls on the nodes that it speaks of.")
    if any(words.norm and words.noun == "row" for words in symbols.edges):
        parts.append("At the optimum, a row is 0, or its center, where its flow stays below its capacity.")
    if any(words.noun == "node" for words in symbols.edges):
        parts.append("The ground takes what a node penalty or a bound on a node absorbs.")
    if symbols.features:
        sets = ", ".join(letter.text for letter in symbols.features.values())
        parts.append(f"A flow on {sets} counts as 0 in the other coordinates.")
    by = "rows" if rows and not between else "edges and rows" if rows else "edges"
    pull = "what the samples of a node pull" if symbols.samples else "what flows into a node"
    carried = f"{pull} is carried away by its {by}, nothing is lost"
    parts.append(f"Conservation: {carried if symbols.edges else 'the pulls of the samples of a node cancel'}.")
    if form.latent:
        parts.append(f"At the {count(len(form.latent), 'latent node')} there are no prices: the flows alone balance.")
    point = "(u, a)" if symbols.samples and symbols.edges else _parts(symbols, "u", "a")
    parts.append(f"Every such {point} bounds the minimum from below.")
    return (" ".join(parts),)
