"""The optimality conditions at an answer, in numbers: what is missing of each, and where.

    P(w) - Q(u, a)  =  sum_r FY(sample r) + sum_e FY(edge e) + sum_i <w_i, (K'u)_i + X_i'a_i>

with the Fenchel-Young residuals FY(x, s) = f(x) + f*(s) - <x, s> >= 0, 0 exactly where s is a slope of f at x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..base.display import Html, html, sentence, title
from ..base.display import table as html_table
from ..base.escaping import visible
from ..base.tables import LabelledTable, PrintedTable, ResultWithAssumptions, assumed_html
from ..form import Form
from ..terms import Array
from ..terms.penalties import AbstractConstraint, AbstractNorm, row_norm
from .common_model.best_common import common

if TYPE_CHECKING:
    from .record import Certificate

TITLE = "what is missing of the optimality conditions"
SHARE = 1e-3  # of the gap
PART, LENGTH = "part of the gap", "length"
COLUMNS = ("condition", "term", "measure", "residual", "scaled", "worst_at", "worst")
ASSUMED = (
    "flows and prices are those of the certificate's dual point, which prove its lower bound; a method that holds none "
    "has them, too: they were found for its parameters",
    "a part of the gap is the sum of the Fenchel-Young residuals of a term, in units of the objective; scaled is that "
    "over max(|P|, |Q|, 1e-3 P_common), as for the relative gap; worst is the largest share of one node or edge",
    "a length is the largest over the nodes or edges; scaled is that over the most that the sizes of what is added up "
    "at a node (each sample's pull, each flow) come to, or over the longest vector that is compared",
)


@dataclass(frozen=True, repr=False)
class KKT(ResultWithAssumptions):
    """The optimality conditions at an answer; ``print`` shows them, notebooks as a table.

    Attributes
    ----------
    table : DataFrame
        One row per condition and term: condition, term, measure ("part of the gap", or "length"), residual, scaled,
        worst_at (the label of a node, or the pair of those of an edge; None where it holds exactly) and worst (the
        residual there). No rows where ``reason`` says why there are none.
    gap : float
        The certified gap: the parts of the gap add up to it, but for the charge.
    charge : float
        What rounding cost the proof of the bounds, which the gap contains.
    reason : str
        Why there is nothing to tell, where no certificate holds; else empty.
    assumed : tuple of str
    """

    table: pd.DataFrame
    gap: float
    charge: float
    reason: str = ""

    @property
    def total(self) -> float:
        """The sum of the parts of the gap: P - Q as they were computed."""
        pairs = zip(self.table["measure"], self.table["residual"], strict=True)
        return sum(float(residual) for measure, residual in pairs if measure == PART)

    @property
    def lost(self) -> float:
        """The difference between the certified gap with its charge and the sum of the parts. They are sums in double
        precision, while bounds are proved with more digits: where huge numbers cancel these differ."""
        return self.gap - self.charge - self.total

    def __repr__(self) -> str:
        if self.reason:
            return f"<KKT: none; {self.reason}>"
        return f"<KKT: {len(self.table)} conditions, gap {self.gap:.3g}>"

    def _sum(self) -> str:
        counts = abs(self.lost) > max(self.charge, SHARE * self.gap)
        lost = f"; {self.lost:.2g} of it double precision loses" if counts else ""
        return (
            f"the parts add up to {self.total:.6g}; the certified gap is {self.gap:.6g}, of which {self.charge:.2g} is "
            f"the charge for rounding{lost}"
        )

    def _lines(self) -> Sequence[str | PrintedTable]:
        if self.reason:
            return [f"no optimality conditions in numbers: {self.reason}"]
        table = self.table.assign(worst_at=["-" if at is None else at for at in self.table["worst_at"]])
        return [TITLE, PrintedTable(table, index=False, float_format="{:.3g}".format), self._sum()]

    def _html(self) -> Iterator[Html]:
        if self.reason:
            yield from super()._html()
            return
        yield title(TITLE)
        for measure, columns in (
            (PART, ("parts of the gap", "of", "residual", "scaled", "most at", "there")),
            (LENGTH, ("lengths", "of", "largest", "scaled", "at", "")),
        ):
            rows = [[*row[:2], *row[3:]] for row in self.table.itertuples(index=False, name=None) if row[2] == measure]
            yield html_table(
                columns, [[*row[:2], _short(row[2]), _short(row[3]), *_at(row[4], row[5], measure)] for row in rows]
            )
        yield sentence(self._sum())
        yield assumed_html(self.assumed)


def _short(number: float) -> Html:
    return html(f"{number:.3g}")


def _at(name: Any, worst: float, measure: str) -> tuple[object, object]:
    """The place where a residual is largest, and its value there where that is not the residual itself."""
    if name is None:
        return "-", ""
    ends = [visible(each) for each in name] if isinstance(name, tuple) else [visible(name)]
    return ", ".join(ends), _short(worst) if measure == PART else ""


def kkt(certificate: Certificate) -> KKT:
    """The conditions of a certificate."""
    form = certificate.form
    if not certificate.valid:
        none = LabelledTable(columns=list(COLUMNS))
        return KKT(none, certificate.gap, certificate.charge, certificate.note, assumed=())
    rows = [*_parts(form, certificate), *_lengths(form, certificate)]
    names = pd.Series([row[-2] for row in rows], dtype=object)  # pairs stay pairs
    table = LabelledTable([(*row[:-2], None, row[-1]) for row in rows], columns=list(COLUMNS)).assign(worst_at=names)
    return KKT(table, certificate.gap, certificate.charge, assumed=ASSUMED)


Line = tuple[str, str, str, float, float, Any, float]


# ---- parts of the gap ------------------------------------------------------------------------------------------------
def _parts(form: Form, certificate: Certificate) -> Iterator[Line]:
    """The parts of the gap that samples, edges and the balance of the nodes hold."""
    yardstick = max(abs(certificate.primal), abs(certificate.dual), common(form).floor) or 1.0
    of_samples, of_edges = certificate.residuals

    def part(condition: str, term: str, each: Array, named: Callable[[int], Any]) -> Line:
        return condition, term, PART, float(each.sum()), float(each.sum()) / yardstick, *_worst(each, named)

    for block, each in zip(form.samples, of_samples, strict=True):
        row = block.map.noun == "row"
        held = each if row else np.bincount(block.node, each, form.n)
        yield part("prices are slopes of the loss", block.name, held, (block.keys if row else form.labels).__getitem__)
    for edge, each in zip(form.edges, of_edges, strict=True):
        if isinstance(edge.penalty, AbstractConstraint):
            condition = "flows are normal to the constraint"
        else:
            condition = "flows are slopes of the penalty"
        yield part(condition, edge.name, each, form.keys(edge).__getitem__)
    held = np.einsum("ij,ij->i", certificate.w, form.conservation(certificate.dual_point))
    yield part("nodes are balanced", "<w_i, balance>", held, form.labels.__getitem__)


# ---- lengths ---------------------------------------------------------------------------------------------------------
def _lengths(form: Form, certificate: Certificate) -> Iterator[Line]:
    """The distances of flows and prices from balance, of parameters from stationary, of both from where they must
    be."""
    w, point = certificate.w, certificate.dual_point

    def length(condition: str, term: str, each: Array, size: Array, named: Callable[[int], Any]) -> Line:
        largest, scale = float(each.max()), float(size.max())
        return condition, term, LENGTH, largest, largest / scale if scale else 0.0, *_worst(each, named)

    at = form.labels.__getitem__
    balance, size = _balance(form, point.prices, point.flows)
    named = " and ".join([*["flows"] * bool(form.edges), *["prices"] * bool(form.samples)])
    yield length(f"conservation: {named} balance", "every node", row_norm(balance), size, at)
    if form.smooth and form.samples:
        balance, size = _balance(form, form.gradient_prices(w), point.flows)
        named = named.replace("prices", "gradients")
        yield length(f"stationarity: {named} balance", "every node", row_norm(balance), size, at)
    for edge, u in zip(form.edges, point.flows, strict=True):
        named, z = form.keys(edge).__getitem__, edge.difference(w)
        if isinstance(edge.penalty, AbstractNorm):
            excess = np.maximum(edge.penalty.domain.gauge(u / edge.weight[:, None]) - 1.0, 0.0) * row_norm(u)
            yield length("flows are within their capacities", edge.name, excess, row_norm(u), named)
        if isinstance(edge.penalty, AbstractConstraint):
            off = row_norm(z - edge.penalty.prox(z, 1.0))
            yield length("the constraint holds", edge.name, off, row_norm(z), named)


def _balance(form: Form, prices: Sequence[Array], flows: Sequence[Array]) -> tuple[Array, Array]:
    """K'u + X'a, and at each node the lengths of what is added up."""
    balance, size = np.zeros(form.shape), np.zeros(form.n)
    for block, a in zip(form.samples, prices, strict=True):
        block.add_adjoint(a, balance)
        size += row_norm((abs(block.A).T @ np.abs(a).ravel()).reshape(form.shape))  # of each sample
    for edge, u in zip(form.edges, flows, strict=True):
        edge.add_adjoint(u, balance)
        if edge.map.edges is None:
            size += row_norm((abs(edge.flat(form.d)).T @ np.abs(u).ravel()).reshape(form.shape))
        else:
            size += abs(edge.K).T @ row_norm(u)
    return balance, size


def _worst(each: Array, named: Callable[[int], Any]) -> tuple[Any, float]:
    """The place where a residual is largest, and its value there; None where it is 0 everywhere."""
    worst = int(np.argmax(np.abs(each)))
    return named(worst) if each[worst] else None, float(each[worst])
