"""The rows of an answer, and which of them hold at every optimum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.clock import alarm, cut_short, stages
from ...base.display import Html, Shown, details, sentence, title
from ...base.escaping import visible
from ...errors import ProofError, TermError
from ...form import EdgeBlock, Form
from ...form.notation import listed
from ...terms import Array
from ...terms.penalties import AbstractConstraint, AbstractSmoothPenalty, has_kink, is_equality, is_interval, row_norm
from ..convexity import node_convexity
from ..record import OWN_TERMS, Certificate
from .dual_region import rounding
from .fusion import Separated, rooms, separate
from .holding import held, interval
from .near import U, nearness, radius, spread_of, upper_gap

if TYPE_CHECKING:
    import pandas as pd

ROW_STATES = ("held", "not held", "undecided")
Tied = Callable[[Form, EdgeBlock, int, float], float]  # a bound of the problem in which a row has a value
MOST = 50  # rows that are tied


@dataclass(frozen=True, repr=False)
class HeldRows(Shown):
    """Which rows of the penalties hold at every optimum, as is proved.

    A row (K w)_e - b_e holds where it is 0, or lies at a bound of its constraint: edges between equal nodes,
    coefficients that are 0, trends without a knot, active constraints. Penalties that act on each number by itself
    (`L1`, bounds) are told number by number.

    Attributes
    ----------
    table : DataFrame
        One row per row of each penalty with a kink or bounds: term, row (its key: a node, an edge, the nodes along a
        path, a group, or a number), number (the coordinate, or the place in the row, where numbers are told by
        themselves; else None), state ("held" or "not held" at every optimum, or "undecided"), value ((K w)_e - b_e in
        this answer; of several numbers their Euclidean norm), at (what the value is at every optimum; nan where
        that is not proved), bound (what its size is at most at every optimum), margin (of what is held: by how much at
        least a flow of an optimum, in the units of the flows, lies inside those that hold the row; of what is not held:
        how far the value is from 0, and from the bounds, at every optimum; else nan).
    note : str
        What all proofs rest on beside arithmetic: empty, or the terms that the user wrote.
    advice : str
        What may decide rows that are undecided; empty where none is.
    """

    table: pd.DataFrame
    note: str = ""
    advice: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many rows are in each state."""
        found = Counter(self.table["state"].tolist())
        return {state: found[state] for state in ROW_STATES}

    def keys(self, state: str = "held", term: str | None = None) -> list[Hashable]:
        """The keys of the rows in a state, each once: of "not held" the knots of a trend.

        Parameters
        ----------
        state : {"held", "not held", "undecided"}
        term : str, optional
            The rows of one term, by its name in the table.

        Raises
        ------
        TermError
            For another state, or a term that is not in the table.
        """
        if state not in ROW_STATES:
            raise TermError(f"rows are 'held', 'not held' or 'undecided', got {state!r}")
        if term is not None and term not in (known := self.table["term"].unique().tolist()):
            raise TermError(f"{term!r} is no term with rows that may hold; there are {listed(known)}")
        rows = self.table[self.table["state"] == state]
        return list(dict.fromkeys((rows if term is None else rows[rows["term"] == term])["row"]))

    def __str__(self) -> str:
        lines = [f"rows at every optimum: {', '.join(f'{number} {state}' for state, number in self.counts.items())}"]
        for term in self.table["term"].unique().tolist():
            mine = self.table[self.table["term"] == term]
            lines.append(f"{term}: {mine['state'].tolist().count('held')} of {len(mine)} held")
            for state in ROW_STATES[1:]:
                lines[-1] += f"; {state}: {listed(names)}" if (names := _names(mine, state)) else ""
        return "\n".join([*lines, *filter(None, [self.advice, self.note])])

    def __repr__(self) -> str:
        return f"<HeldRows: {', '.join(f'{number} {state}' for state, number in self.counts.items())}>"

    def _html(self) -> Iterable[Html]:
        from ...base.tables import as_html

        head, *lines = str(self).splitlines()
        yield title(head)
        yield from map(sentence, lines)
        yield details("the rows", as_html(self.table))


def held_rows(certificate: Certificate, tied: Tied | None = None) -> HeldRows:
    """The rows of a certified answer; with ``tied`` those that are open are tried for a proof that they do not hold.

    Raises
    ------
    ProofError
        Where there is no certificate.
    """
    form = certificate.form
    if not certificate.valid:
        raise ProofError(
            f"what rows are at every optimum is proved from a certificate, and there is none: {certificate.note}"
        )
    parts = separate(form)
    edges = parts.form.edges
    other = [e for e in edges if e.map.edges is None or e.center is not None or is_interval(e.penalty)]
    plain = not form.beside and not other
    found = _fused(certificate, parts) if plain or not edges else held(certificate, parts)
    claims = list(_claims(certificate, parts, found))
    tries, ended = _tie(certificate, parts, claims, tied)
    advice = _advice(parts, claims, tries if tied is None else 0) + ended
    return HeldRows(_table(form, parts, claims), certificate.note if certificate.scope == OWN_TERMS else "", advice)


def _advice(parts: Separated, claims: list[_Claim], tries: int) -> str:
    """What may decide the rows that are undecided, where anything may."""
    if not claims:
        return "no penalty of the model has a kink or bounds, so that none of its rows is held"
    open_ = [claim for claim in claims if (claim.state == "undecided").any()]
    nowhere = [parts.form.edges[claim.place].name for claim in open_ if not claim.ends]
    said = ["a smaller gap= may decide more"] * any(claim.by_gap() for claim in open_)
    said += [f"prove=True tries those with another value here: {tries}"] * bool(tries)
    said += [f"of rows of {name} nothing is proved: its bounds are of several numbers" for name in nowhere]
    return f"undecided: {'; '.join(said or ['no proof was found'])}" if open_ else ""


def _fused(certificate: Certificate, parts: Separated) -> list[tuple[Array, Array]]:
    """What `held` gives, of edges alone: along spanning trees, which takes less time."""
    found = list[tuple[Array, Array]]()
    for edge, known in zip(parts.form.edges, rooms(certificate, parts), strict=True):
        room = np.full_like(known, np.inf) if is_equality(edge.penalty, parts.form.width(edge)) else known
        found.append((np.where(np.isnan(room), np.nan, 0.0), room))
    return found


@dataclass
class _Claim:
    """What is said of the rows of one block of a separated form."""

    place: int
    value: Array
    at: Array
    bound: Array
    margin: Array
    away: Array  # how far every optimum is from 0, or from the bounds
    ends: list[float]

    def elsewhere(self) -> Array:
        return np.flatnonzero((self.state == "undecided") & ~np.isin(self.value, self.ends))

    def by_gap(self) -> bool:
        """True where a smaller gap may decide rows: at an end the room of their flows does, elsewhere the curvature."""
        may = np.isin(self.value, self.ends) | np.isfinite(self.away)
        return bool(self.ends) and bool((may & (self.state == "undecided")).any())

    @property
    def state(self) -> Array:
        apart = np.where(self.away > 0.0, "not held", "undecided")
        return np.where(np.isnan(self.at), apart, "held").astype(object)


def _claims(certificate: Certificate, parts: Separated, found: list[tuple[Array, Array]]) -> Iterator[_Claim]:
    form, w, gap = parts.form, certificate.w, upper_gap(certificate)
    mu, whole = node_convexity(form), certificate.strong_convexity
    flows = parts.parts(certificate.dual_point.flows)
    spread = parts.parts(tuple(spread_of(certificate, k) for k in range(len(certificate.form.edges))))
    for place, (edge, (at, room)) in enumerate(zip(form.edges, found, strict=True)):
        if isinstance(edge.penalty, AbstractSmoothPenalty):
            continue
        z = edge.difference(w)
        reach = radius(edge, mu, whole, gap) + row_norm(rounding(edge, form, w))
        value = z[:, 0] if z.shape[1] == 1 else row_norm(z)
        bound, margin = np.abs(value) * (1.0 + 1e-12) + reach, room
        if has_kink(edge.penalty, z.shape[1]):
            near = nearness(edge, flows[place], spread[place], gap)
            optimal = np.isnan(at) & (near.value == 0.0)  # the flow of this answer, as its gap is 0
            at[optimal] = 0.0
            margin = np.where(optimal, edge.weight * (1.0 - near.load) * (1.0 - 4 * U), room)
            bound = np.minimum(bound, near.length)
        ends = _ends(edge, z.shape[1])
        away = np.min([np.abs(value - end) for end in ends], axis=0) if ends else np.zeros(len(value))
        bound = np.where(np.isnan(at), bound, np.abs(at))
        away = np.where(np.isnan(at), away * (1.0 - 1e-12) - reach, 0.0)
        yield _Claim(place, value, at, bound, margin, away, ends)


def _names(rows: Any, state: str) -> list[object]:
    """The keys of the rows in a state, each with its numbers where these are told by themselves."""
    rows = rows[rows["state"] == state]
    numbers: dict[Any, list[Any]] = {}
    for key, number in zip(rows["row"], rows["number"], strict=True):
        numbers.setdefault(key, []).append(number)
    return [key if each == [None] else f"{visible(key)} ({listed(each)})" for key, each in numbers.items()]


def _ends(edge: EdgeBlock, k: int) -> list[float]:
    """The values at which rows of k numbers hold: 0, or the bounds of an interval; none where that is not known."""
    if k == 1 and isinstance(edge.penalty, AbstractConstraint):
        return [end for end in interval(edge.penalty) if np.isfinite(end)]
    return [0.0] if k == 1 or has_kink(edge.penalty, k) else []


def _tie(certificate: Certificate, parts: Separated, claims: list[_Claim], tied: Tied | None) -> tuple[int, str]:
    """Rows that can have no value at which they would hold: the problem with that value is worse. How many there are to
    try: at most `MOST` of the open ones, none that has such a value in this answer; and what cut it short."""
    tries = [(c, e) for c in claims if c.ends for e in c.elsewhere().tolist()]
    tries = sorted(tries, key=lambda each: -abs(float(each[0].value[each[1]])))[:MOST]
    if tied is None or not tries:
        return len(tries), ""
    with cut_short() as ended, stages("proofs") as at, alarm():
        for number, (claim, e) in enumerate(tries, 1):
            at(f"row {number} of {len(tries)}")
            if all(tied(parts.form, parts.form.edges[claim.place], e, end) > certificate.primal for end in claim.ends):
                claim.away[e] = np.nextafter(0.0, 1.0)
    return len(tries), "".join(f"; {each}, so that not all proofs were looked for" for each in ended)


def _table(form: Form, parts: Separated, claims: list[_Claim]) -> pd.DataFrame:
    import pandas as pd

    from ...base.tables import LabelledTable

    tables = [pd.DataFrame(columns=["term", "row", "number", "state", "value", "at", "bound", "margin"])]
    for claim in claims:
        edge, own = form.edges[parts.owner[claim.place]], parts.columns[claim.place]
        keys, number = form.keys(edge), None
        if len(own) < form.width(edge):
            number = form.space.coordinates[edge.columns(form.d)[own[0]]] if edge.map.edges else int(own[0])
        margin = np.where(claim.away > 0.0, claim.away, np.where(np.isnan(claim.at), np.nan, claim.margin))
        row, numbers = (pd.Series(each, dtype=object) for each in (keys, [number] * len(keys)))
        values = {"state": claim.state, "value": claim.value, "at": claim.at, "bound": claim.bound, "margin": margin}
        tables.append(pd.DataFrame({"term": edge.name, "row": row, "number": numbers, **values}))
    filled = [each for each in tables if len(each)] or tables[:1]
    return LabelledTable(pd.concat(filled, ignore_index=True))
