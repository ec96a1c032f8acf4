"""A problem as it would be written down: the primal, its dual, and the optimality conditions."""

from __future__ import annotations

from collections.abc import Iterable

from ...terms import Model
from ..building import build
from ..form import Form
from . import conditions, legend
from .filling import Filled
from .symbols import Symbols
from .writing import WITH, Math, Row, Section, Written, count, grouped, join, prose, same

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
    terms = [words.sum + grouped(words.value(words.argument).math) for words in symbols.samples]
    terms += [words.sum + grouped(words.value().math) for words in symbols.penalties]
    size = f"{form.n} x {form.d}", rf"{form.n} \times {form.d}"
    heading = Math(f"minimise over w in R^({size[0]})", rf"\text{{minimise over }} w \in \mathbb{{R}}^{{{size[1]}}}")
    definitions = [words.value(words.argument).definition for words in symbols.samples]
    definitions += [words.value().definition for words in symbols.edges]
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
    rows = [Row(symbols.conservation, prose("at every node i: conservation"))]
    for words in symbols.edges:
        if words.domain.math:
            what = ": the capacity of its flow" if words.norm else ""
            rows.append(Row(words.domain.math, prose(words.each + what)))
    ranged = [words for words in symbols.samples if words.domain.math]
    rows += [Row(words.domain.math, prose(words.each + ": the range of its price")) for words in ranged]
    definitions = _with(
        [each.definition for words in (*symbols.samples, *symbols.edges) for each in (words.conjugate, words.domain)]
    )
    objective = Section(heading, (*_sum(_dual_terms(symbols), "-"), *definitions))
    sections = objective, Section(SUBJECT, tuple(rows))
    return Written(sections, _letters(symbols), _reading(symbols))


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
    stationarity = Row(symbols.conservation, prose("at every node i"))
    sections = [Section(prose("stationarity: flows and prices are conserved"), (stationarity,))]
    rows = tuple(row for words in symbols.samples for row in conditions.prices(words))
    sections.append(Section(prose("prices are the slopes of the losses"), rows))
    rows = tuple(row for words in symbols.penalties for row in conditions.penalties(words))
    if rows:
        sections.append(Section(prose("flows are the slopes of the penalties"), rows))
    if symbols.constraints:
        rows = tuple(row for words in symbols.constraints for row in conditions.constraints(words))
        sections.append(Section(prose("constraints hold, and their flows are normal to them"), rows))
    sections.append(
        Section(prose("and for all w, u, a the duality gap is the sum of what is missing"), conditions.identity())
    )
    return Written(tuple(sections), _letters(symbols))


# ---- the parts of the dual ---------------------------------------------------------------------------------------
def _sum(terms: list[Math], sign: str) -> list[Row]:
    """Terms below each other. ``sign`` goes before each; terms that bring their own keep it."""
    rows: list[Row] = []
    for term in terms:
        own = term.text[:2] in ("+ ", "- ")
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
            terms.append(
                same("+ ") + words.every + (product if words.several else words.price + Math(" o_r", r" \, o_r"))
            )
    for words in symbols.edges:
        terms += _minus(words.every, words.conjugate)
        if words.block.center is not None:
            product = Math(f"<{words.flow.text}, c_i>", rf"\langle {words.flow.latex}, c_i \rangle")
            terms.append(words.every + product)
    return terms or [same("0")]


def _minus(every: Math, conjugate: Filled) -> list[Math]:
    """A conjugate under its sum sign, in brackets where it is itself a sum."""
    math = conjugate.math
    return [every + grouped(math)] if math else []


def _variables(symbols: Symbols) -> Math:
    """'the flows u on 12 edges and the prices a on 120 samples'."""
    parts: list[Math] = []
    for words in symbols.edges:
        m = len(words.block.tail)
        where = f" from {count(m, 'node')} to the ground" if words.block.ground else f" on {count(m, 'edge')}"
        parts.append(words.flows() + prose(where))
    flows = prose("flows ") + join(parts, ", ", r",\ ") + prose(" and ") if parts else prose("")
    prices = [
        Math("a" + words.mark, f"a^{{({words.mark})}}" if words.mark else "a")
        + prose(f" on {count(len(words.block.node), 'sample')}")
        for words in symbols.samples
    ]
    return flows + prose("prices ") + join(prices, ", ", r",\ ")


def _flow_rows(symbols: Symbols) -> list[Row]:
    if all(words.block.ground for words in symbols.edges):
        return []
    key = Math("out_i, in_i", r"\mathrm{out}_i, \mathrm{in}_i")
    return [Row(key, prose("the sums of the flows on the edges that leave node i, and on those that enter it"))]


def _letters(symbols: Symbols) -> tuple[Row, ...]:
    """What the letters of a dual mean; of the coordinates only the sets that formulas speak of."""
    rows = [*_flow_rows(symbols), *legend.matrices(symbols), *legend.scales(symbols), *legend.weights(symbols)]
    return (*rows, *legend.coordinates(symbols)[1:], *legend.parameters(symbols))


def _reading(symbols: Symbols) -> tuple[str, ...]:
    form = symbols.form
    between = any(not words.block.ground for words in symbols.edges)
    parts = ["A price says how much the loss of a sample pulls on the parameters of its node, as a multiple of x_r."]
    if any(words.matrix for words in symbols.samples):
        parts = [
            "A price, one number per class, says how much the loss of a sample pulls on the parameters of its node: "
            "each number on the column of its class, as a multiple of x_r."
        ]
    if all(words.block.X is None for words in symbols.samples):
        parts = ["A price says how the loss of a sample pulls on the parameters of its node."]
    if between:
        parts.append("An edge carries a flow, one number per coordinate, from its tail i to its head j.")
    if any(words.norm and not words.block.ground for words in symbols.edges):
        parts.append("At the optimum, the two sides of an edge are equal where its flow stays below its capacity.")
    if any(words.block.ground for words in symbols.edges):
        parts.append("The ground takes what a node penalty or a bound on a node absorbs.")
    if symbols.features:
        sets = ", ".join(letter.text for letter in symbols.features.values())
        parts.append(f"A flow on {sets} counts as 0 in the other coordinates.")
    parts.append("Conservation: what the samples of a node pull is carried away by its edges, nothing is lost.")
    if form.latent:
        parts.append(f"At the {count(len(form.latent), 'latent node')} there are no prices: the flows alone balance.")
    parts.append("Every such (u, a) bounds the minimum from below.")
    return (" ".join(parts),)
