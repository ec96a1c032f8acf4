"""A block of samples or of edges with its letters, as text and as LaTeX."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...base.escaping import upright
from ...terms import Notation, Parameter, Strength, defined, notation_of
from ...terms.penalties import AbstractConstraint, AbstractNorm
from ..form import EdgeBlock, Form, SampleBlock
from .writing import NOTHING, NUMERAL, SLIDE, Math, Row, join, name, number, prose, same


@dataclass(frozen=True)
class Filled:
    """The notation of a block, its tokens replaced: the formula, and the definition of what stands in it."""

    math: Math
    definition: Math


def fill(text: str, latex: str, z: Math, u: Math, c: Math, y: Math) -> Filled:
    """Replace the tokens of a `Notation`: argument, flow or price, weight and target."""
    written = [_fill(part, z.text, u.text, c.text, y.text, " * ") for part in defined(text)]
    typeset = [_fill(part, z.latex, u.latex, c.latex, y.latex, r" \cdot ") for part in defined(latex) if part]
    typeset += [upright(part) for part in written[len(typeset) :] if part]  # what is there as text only
    definition = NOTHING if len(written) == 1 else Math(written[1], typeset[1])
    return Filled(Math(written[0], typeset[0] if typeset else ""), definition)


def _fill(template: str, z: str, u: str, c: str, y: str, times: str) -> str:
    template = re.sub(r"(?<=[\w.}])(?=%c)|(?<=%c)(?=[\w%]|\\[a-zA-Z])", " ", template)  # 4%c is no number of two digits
    if c == "1":
        template = re.sub(r"\((\d[\d.]*) %c\)", r"\1", template).replace(" / %c", "")
        template = re.sub(rf"({NUMERAL})( \\,)? %c", r"\1", template)
        template = re.sub(r"%c( \*| \\cdot| \\,)? (?=[^\s<>=/+-])(?!\\[gl]e)", "", template)
    if c[:1].isdigit():
        template = re.sub(rf"({NUMERAL})( \\,)? %c", lambda found: found[1] + times + "%c", template)
        template = re.sub(rf"%c( \\,)? (?={NUMERAL})", lambda _: "%c" + times, template)
    if c.startswith("\\text"):
        template = template.replace("2 %c", r"2 \, %c")
    if " " in c:
        template = template.replace("/ %c", "/ (%c)")
    template = re.sub(r"%z", lambda found: f"({z})" if _in_product(found, z) else z, template)
    filled = {"%u": u, "%c": c, "%y": y}
    return re.sub("%[ucy]", lambda found: filled[found[0]], template)  # in one go: a name may contain a token


def _in_product(found: re.Match[str], z: str) -> bool:
    """True where a sum that is put here must stand in brackets: as a factor, and after a minus."""
    if " - " not in z and " + " not in z:
        return False
    before, after = found.string[: found.start()], found.string[found.end() :]
    factor = re.search(r"([-\w)}]|\\,)\s?$", before) and not re.search(r"(\\[a-zA-Z]+|\bin|[<>=]) $", before)
    return bool(factor) or bool(re.match(r"['^_]|\s?[\w(]", after) and not re.match(r" in\b", after))


# ---- blocks ----------------------------------------------------------------------------------------------------------
ONE = same("1")
PREDICTORS = {
    "w_i": same("w_i"),
    "x_r'w_i": Math("x_r'w_i", r"x_r^\top w_i"),
    "W_i'x_r": Math("W_i'x_r", r"W_i^\top x_r"),
}


class AbstractWords(ABC):
    """A block in symbols."""

    @property
    @abstractmethod
    def notation(self) -> Notation:
        """The notation of its function."""

    @abstractmethod
    def filled(self, text: str, latex: str, argument: Math | None = None) -> Filled:
        """A part of the notation with the letters of the block, at its own argument or another."""

    def value(self, argument: Math | None = None) -> Filled:
        """The function at its own argument or another."""
        return self.filled(self.notation.value, self.notation.latex_value, argument)

    @property
    def conjugate(self) -> Filled:
        return self.filled(self.notation.conjugate, self.notation.latex_conjugate)

    @property
    def domain(self) -> Filled:
        return self.filled(self.notation.domain, self.notation.latex_domain)


@dataclass(frozen=True)
class SampleWords(AbstractWords):
    """A block of samples in symbols."""

    block: SampleBlock
    mark: str  # its number, empty where it is the only one
    strength: Math
    index = "r"

    @property
    def notation(self) -> Notation:
        return notation_of(self.block.loss)

    @cached_property
    def predictor(self) -> str:
        """The predictor of a sample at a node, as text; empty where it is a row of another kind."""
        return self.block.map.text if self.block.map.text in PREDICTORS else ""

    def prices(self, index: str = "") -> Math:
        """The letter of the prices, with an index."""
        return lettered("a", self.mark, index)

    @property
    def price(self) -> Math:
        return self.prices("_r")

    @property
    def scale(self) -> Math:
        return lettered("s", self.mark, "_r")

    @property
    def matrix(self) -> bool:
        """True where the parameters of a node are a matrix, with a column per class."""
        return self.predictor == "W_i'x_r"

    @property
    def adjoint_term(self) -> Math:
        """The term of a price in the balance of its node, X_i'a_i, or of all in (K'a)_i."""
        if not self.predictor:
            return gathered(self.prices())
        if self.predictor == "w_i":
            return self.price
        if self.matrix:
            return Math(f"x_r {self.price.text}'", rf"x_r {self.price.latex}^\top")
        return self.price + Math(" x_r", r" \, x_r")

    @property
    def argument(self) -> Math:
        plain = PREDICTORS.get(self.predictor) or same("(K w)_r")
        return plain + same(" + o_r") if self.shifted else plain

    @property
    def row(self) -> Math | None:
        """A row (K w)_r, as its term says it where that can be typeset."""
        known = None if self.predictor else written_row(self.block.map.text, "r")
        return known and known[1]

    @property
    def shifted(self) -> bool:
        """True where a sample has an offset."""
        return bool(self.block.offset.any())

    @property
    def weighted(self) -> bool:
        """True where samples have weights of their own."""
        return bool(np.any(self.block.loss.data.weights != 1.0))

    @property
    def node_scale(self) -> Math:
        """The factor of a node's sum that depends on the node, empty where none does."""
        scale = self.block.loss.scale
        if scale == "mean":
            return Math("1/V_i", r"\frac{1}{V_i}") if self.weighted else Math("1/m_i", r"\frac{1}{m_i}")
        return same("b_i") if isinstance(scale, Mapping) else NOTHING

    @property
    def factor(self) -> Math:
        """The factor of the whole block: its strength, and its scale where that is one number."""
        scale = self.block.loss.scale
        plain = NOTHING if isinstance(scale, (str, Mapping)) or scale == 1 else number(float(scale))
        return join([plain, self.strength], " * ", r" \cdot ")

    @property
    def scale_value(self) -> Math:
        """The value of the scale s_r."""
        mean = self.block.loss.scale == "mean"
        parts = [self.factor, same("v_r") if self.weighted else NOTHING, NOTHING if mean else self.node_scale]
        above = join(parts, " ", r" \, ") or ONE
        if not mean:
            return above
        below = "V_i" if self.weighted else "m_i"
        return Math(f"{above.text} / {below}", rf"\frac{{{above.latex}}}{{{below}}}")

    @property
    def every(self) -> Math:
        """The sum sign over the samples of the block."""
        return Math("sum_r ", r"\sum_r ") if not self.mark else _over(f"r in R{self.mark}", rf"r \in R_{{{self.mark}}}")

    @property
    def each(self) -> str:
        """'at every sample r'."""
        return "at every sample r" + (f" in R{self.mark}" if self.mark else "")

    @property
    def at_node(self) -> Math:
        """The sum sign over the samples at a node; none where there is no such node."""
        if not self.predictor:
            return NOTHING
        if not self.mark:
            return _over("r at i", r"r \text{ at } i")
        return _over(f"r in R{self.mark} at i", rf"r \in R_{{{self.mark}}} \text{{ at }} i")

    @property
    def sum(self) -> Math:
        """The sum signs of the primal, with the scales as they were given."""
        weight = Math("v_r ", r"v_r \, ") if self.weighted else NOTHING
        factor = self.factor + Math(" ", r" \, ") if self.factor else NOTHING
        if not self.node_scale:
            return factor + self.every + weight
        nodes = Math("sum_i ", r"\sum_i ") + self.node_scale + Math(" ", " ")
        return factor + nodes + self.at_node + weight

    def filled(self, text: str, latex: str, argument: Math | None = None) -> Filled:
        return fill(text, latex, argument or self.argument, self.price, self.scale, same("y_r"))


def lettered(letter: str, mark: str, index: str) -> Math:
    """A letter with the number of its block, where it has one, and an index."""
    latex = f"{letter}^{{({mark})}}{index}" if mark else letter + index
    return Math(letter + mark + index, f"{{{latex}}}" if mark and index else latex)


def gathered(letter: Math) -> Math:
    """What flows or prices of rows do at node i."""
    return Math("(K'", r"(K^\top ") + letter + same(")_i")


def _over(text: str, latex: str) -> Math:
    return Math(f"sum_({text}) ", rf"\sum_{{{latex}}} ")


@dataclass(frozen=True)
class EdgeWords(AbstractWords):
    """A block of edges in symbols."""

    block: EdgeBlock
    mark: str  # its number, empty where it is the only one
    several: bool  # whether there are more of its edges, or of its rows: of groups of several sizes
    strength: Math
    features: Math  # the name of its set of coordinates, empty where it has them all
    nodes: str  # where its ground edges start, in words
    width: int  # of the coordinates that it has

    @property
    def notation(self) -> Notation:
        return notation_of(self.block.penalty)

    @property
    def constraint(self) -> bool:
        return isinstance(self.block.penalty, AbstractConstraint)

    @property
    def norm(self) -> bool:
        return isinstance(self.block.penalty, AbstractNorm)

    @property
    def noun(self) -> str:
        """What a row is: "edge", "node", or "row" where it is neither."""
        return self.block.map.noun

    @cached_property
    def _written(self) -> tuple[str, Math] | None:
        return written_row(self.block.map.text)

    @property
    def row(self) -> Math | None:
        """A row, as its term says it where that can be typeset; None where rows are edges or nodes."""
        return self._written and self._written[1]

    @property
    def set(self) -> str:
        """The name of its set of edges or rows, empty where there is only one."""
        return f"{self.index.upper()}{self.mark}" if self.several else ""

    @property
    def index(self) -> str:
        return "i" if self.noun == "node" else self._written[0] if self._written else "e"

    @property
    def flow(self) -> Math:
        return self.flows("_" + self.index)

    def flows(self, index: str = "") -> Math:
        """The letter of the flows, with an index."""
        return lettered("u", self.mark, index)

    @property
    def divergence(self) -> Math:
        """The flow that leaves node i, less that which enters it."""
        if self.noun == "node":
            return self.flow
        u = self.flows()
        if self.noun == "row":
            return gathered(u)
        return Math("out_i(", r"\mathrm{out}_i(") + u + Math(") - in_i(", r") - \mathrm{in}_i(") + u + same(")")

    def ends(self) -> tuple[Math, Math]:
        """The two things that are compared: nodes, or a node with its centre (or 0)."""
        if self.noun == "edge":
            return self._node("i"), self._node("j")
        row = self._node("i") if self.noun == "node" else self.row or same("(K w)_e")
        return row, NOTHING if self.block.center is None else same(self.center)

    @property
    def center(self) -> str:
        """The letter of what is subtracted, b_r of rows as their terms say it."""
        return ("b_" if self.noun == "row" else "c_") + self.index

    def _node(self, k: str) -> Math:
        F = self.features
        return Math(f"w_{k}[{F.text}]", f"w_{{{k},{F.latex}}}") if F else same(f"w_{k}")

    @property
    def argument(self) -> Math:
        return join(self.ends(), " - ")

    @property
    def base_weight(self) -> Math:
        return same("A_" + self.index) if np.any(self.block.base_weight != 1.0) else NOTHING

    @property
    def weight(self) -> Math:
        """c_e: strength times edge weight."""
        return join([self.strength, self.base_weight], " ", r" \, ") or ONE

    @property
    def every(self) -> Math:
        """The sum sign over the edges of the block."""
        latex = "e=(i,j)" if self.noun == "edge" else self.index
        if not self.set:
            return Math(f"sum_{self.index} ", rf"\sum_{latex} ".replace("e=(i,j)", "{e=(i,j)}"))
        return _over(f"{self.index} in {self.set}", rf"{latex} \in {self.set[0]}_{{{self.mark}}}")

    @property
    def sum(self) -> Math:
        parts = [self.strength, Math(self.every.text.rstrip(), self.every.latex.rstrip()), self.base_weight]
        return join(parts, " ", r" \, ") + Math(" ", r" \, ")

    @property
    def each(self) -> str:
        """'at every node i', 'on every edge e = (i, j) of E1'."""
        if self.noun == "node":
            return f"at {self.nodes}"
        row = "edge e = (i, j)" if self.noun == "edge" else f"row {self.index}"
        return f"on every {row}" + (f" of {self.set}" if self.set else "")

    @property
    def gradient(self) -> Math:
        """The gradient of phi at its argument, empty where it is not written."""
        z = self.argument
        bracket = Math(f"({z.text})", f"({z.latex})") if " - " in z.text else z
        text, latex = self.notation.gradient, self.notation.latex_gradient
        written = text.replace("(%z)", bracket.text).replace("%z", z.text)
        typeset = latex.replace("(%z)", bracket.latex).replace("%z", z.latex)
        return Math(written, typeset or (upright(written) if written else ""))

    @property
    def condition(self) -> Math:
        """The constraint, of a block that is one."""
        math = self.value().math
        text, latex = _inside(math.text, "[", "]"), self.notation.latex_value
        inner = Math(text, _inside(math.latex, r"\iota\{", r"\}") if latex else upright(text))
        left, right = self.ends()
        if right and inner.text == f"{left.text} - {right.text} = 0":
            return join((left, right), " = ")
        return inner

    def filled(self, text: str, latex: str, argument: Math | None = None) -> Filled:
        return fill(text, latex, argument or self.argument, self.flow, self.weight, NOTHING)


# ---- rows as their terms say them ------------------------------------------------------------------------------------
ROW = re.compile(r"(w_[A-Za-z0-9]+|D\^\d+|[wDAB()+ -]|\d+(\.\d+)?|(?<=\))_(\(in g\)|[eitr]\b))+")


def written_row(text: str, r: str = "e") -> tuple[str, Math] | None:
    """The index of a row, (D^2 w)_t, and its formula; None where its text has more than letters of rows and labels.
    Rows that have a number alone have the index ``r``."""
    indices = set(re.findall(r"(?<=\))_\(?(?:in )?([eitrg])\b", text.replace(")_r", f")_{r}")))
    indices = {"g"} if "g" in indices else indices
    if not ROW.fullmatch(text) or len(indices) > 1:
        return None
    at = "i" if set(re.findall(r"w_(\w+)", text)) == {"i"} else "e"
    text = text.replace(")_r", f")_{r}")
    latex = re.sub(r"D\^(\d+)", r"D^{\1}", text.replace("_(in g)", r"_{\text{in } g}"))
    latex = re.sub(r"w_([A-Za-z0-9]{2,})", r"w_{\\text{\1}}", latex)
    return next(iter(indices), at), Math(text, re.sub(r"(?<![-+]) (?=[wB])", lambda _: r" \, ", latex))


def _inside(written: str, opening: str, closing: str) -> str:
    whole = written.startswith(opening) and written.endswith(closing)
    return written[len(opening) : len(written) - len(closing)] if whole else f"{written} = 0"


# ---- all blocks of a problem -----------------------------------------------------------------------------------------
class Symbols:
    """The blocks of a form with their symbols. Blocks are numbered where there is more than one of a kind."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.parameters = _parameter_names(form)
        chosen = [None if b.map.edges is None else b.features for b in form.edges]
        sets = list(dict.fromkeys(tuple(columns.tolist()) for columns in chosen if columns is not None))
        self.features: dict[tuple[int, ...], Math] = {
            columns: same("F") if len(sets) == 1 else Math(f"F{k}", f"F_{{{k}}}") for k, columns in enumerate(sets, 1)
        }
        self.samples = [
            SampleWords(block, "" if len(form.samples) == 1 else str(k), self.strength(block.strength))
            for k, block in enumerate(form.samples, 1)
        ]
        called = [block.name if block.map.noun == "row" else block.map.noun for block in form.edges]
        self.edges = [
            EdgeWords(
                block,
                "" if len(form.edges) == 1 else str(k),
                block.map.noun != "node" and called.count(called[k - 1]) > 1,
                self.strength(block.strength),
                NOTHING if columns is None else self.features[tuple(columns.tolist())],
                _nodes_of(block, form),
                form.width(block),
            )
            for k, (block, columns) in enumerate(zip(form.edges, chosen, strict=True), 1)
        ]

    @property
    def penalties(self) -> list[EdgeWords]:
        return [words for words in self.edges if not words.constraint]

    @property
    def constraints(self) -> list[EdgeWords]:
        return [words for words in self.edges if words.constraint]

    def conservation(self, where: str) -> list[Row]:
        """(K'u)_i + X_i'a_i = 0, written out, in lines that are no longer than they must be."""
        prices = [words.at_node + words.adjoint_term for words in self.samples]
        parts = [*prices, *(words.divergence for words in self.edges)]
        lines = parts[:1]
        for part in parts[1:]:
            if len(f"{lines[-1].text} + {part.text} = 0") <= SLIDE:
                lines[-1] += same(" + ") + part
            else:
                lines.append(Math("  + ", r"\quad {} + ") + part)
        return [*map(Row, lines[:-1]), Row(lines[-1] + same(" = 0"), prose(where))]

    def strength(self, strength: Strength) -> Math:
        """A strength as it was given: a number, a parameter's name, or both; empty for 1."""
        factor = NOTHING if strength.factor == 1.0 else number(strength.factor)
        parameter = NOTHING if strength.parameter is None else self.parameters[id(strength.parameter)][1]
        return join([factor, parameter], " ", r" \, ")


def _nodes_of(block: EdgeBlock, form: Form) -> str:
    if block.count < form.space.n_observed:
        return f"each of {block.count} nodes i" if block.count > 1 else "one node i"
    return "every observed node i" if form.latent else "every node i"


def _parameter_names(form: Form) -> Mapping[int, tuple[Parameter, Math]]:
    """The parameters of a form by id; those that share a name are numbered."""
    found = {id(b.strength.parameter): b.strength.parameter for b in form.blocks}
    parameters = [parameter for parameter in found.values() if parameter is not None]
    names: dict[int, tuple[Parameter, Math]] = {}
    for parameter in parameters:
        alike = [other for other in parameters if other.name == parameter.name]
        suffix = "" if len(alike) == 1 else f"_{alike.index(parameter) + 1}"
        names[id(parameter)] = parameter, name(parameter.name + suffix)
    return names
