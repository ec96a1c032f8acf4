"""From a certificate to the file of a proof."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ... import verify
from ...base.clock import stages
from ...base.display import Html, Shown, facts, sentences, title
from ...base.escaping import visible
from ...base.files import own_place, put
from ...errors import ProofError
from ...form import DualPoint, EdgeBlock, Form
from ...terms import Array
from ...terms.penalties import AbstractConstraint
from ...verify import UNIT, Model, NotProvedError, rational, shown
from ..record import Certificate
from .attempts import Lower, exact_optimum, lower_bound
from .claims import CertifyTied, Claim, Found, claims_of, kinds, statements
from .statement import exact, exactly, statement, text, texts, write_out

CHECK = "python -m graphreg.verify FILE, or the file verify.py alone"
ROUNDS = 5  # in which a primal point is tried, and moved into its constraints
DISAGREE = 1e-6  # relative; where exact arithmetic differs more from P(w), the statement is not of this problem


@dataclass(frozen=True)
class Proved(Shown):
    """The statement of a proof: ``lower <= inf P <= upper``, of the model with this ``hash``; written to ``path``.

    ``claims`` are the kinds of all that the file claims, in order; ``statements`` says in a sentence for each kind that
    was asked for which edges or rows it is proved of, or that none was found.
    """

    path: Path
    hash: str
    lower: Fraction
    upper: Fraction
    claims: tuple[str, ...]
    statements: tuple[str, ...] = ()

    @property
    def within(self) -> bool:
        """False: the infimum is that over all w. Proofs that others write may be within a box only."""
        return False

    def __str__(self) -> str:
        first = f"{self._bounds()}, proved in {visible(self.path, None)} of {self.hash}"
        return "\n  ".join([first, *self.statements])

    def __repr__(self) -> str:
        return f"<Proved: {self._bounds()}, {visible(self.path)}>"

    def _bounds(self) -> str:
        """Rounded outwards, as the nearest numbers could say more than is proved."""
        return f"{shown(self.lower, -1)} <= infimum <= {shown(self.upper, 1)}"

    def _html(self) -> Iterable[Html]:
        yield title(f"Proved in exact numbers: {self._bounds()}")
        yield facts({"of the problem": self.hash, "in the file": self.path, "checked by": CHECK})
        yield sentences("at every optimum:", self.statements)


def prove(
    certificate: Certificate,
    path: str | Path,
    claims: str | Sequence[Claim] = (),
    certify_tied: CertifyTied | None = None,
    *,
    python_flint: bool = True,
    force: bool = False,
) -> Proved:
    """Write the proof of a certificate; see `Solution.prove`. ``certify_tied`` certifies the problem in which the ends
    of an edge are tied; without it no edge is proved to be split. With ``force`` any file is replaced."""
    place = own_place(path, "proof", ProofError, b"" if force else verify.FORMAT.encode())
    verify.begin(python_flint)
    claims = (claims,) if isinstance(claims, str) else claims
    with stages("proof", first="the problem in exact numbers") as at:
        form, point = write_out(certificate.form, certificate.w, certificate.dual_point)
        data = statement(form)
        at("exact points")
        found = _found(
            certificate, form, Model(data), point, not {"fused", "held"}.isdisjoint(kinds(claims)), certify_tied
        )
        # bounds with a margin of 2^-90, so that any sound checker gets there however it rounds
        pad = (abs(found.upper) + abs(found.lower) >> 90) + (1 << UNIT - 150)
        ends = (found.lower - pad) >> 40, -(-(found.upper + pad) >> 40)
        low, high = (rational(end, 1 << UNIT - 40) for end in ends)
        at("claims")
        more = claims_of(found, claims)
        samples = len(form.samples)
        document = {
            "format": verify.FORMAT,
            "model": data,
            "w": texts(found.w),
            "dual": {"flows": texts(found.point[samples:]), "prices": texts(found.point[:samples])},
            "within": None,
            "claims": [{"says": "bounds", "lower": text(low), "upper": text(high)}, *more],
        }
        put(place, lines(document).encode("ascii"), "proof", ProofError)
        proved_low, proved_high = (Fraction(int(x.numerator), int(x.denominator)) for x in (low, high))
        said = ("bounds", *(claim["says"] for claim in more))
        return Proved(Path(path), found.model.hash(), proved_low, proved_high, said, statements(found, claims, more))


def _found(
    certificate: Certificate,
    form: Form,
    model: Model,
    point: DualPoint,
    optimal: bool,
    certify_tied: CertifyTied | None,
) -> Found:
    """The exact points: an optimum where that is wanted and found, else those near the certificate's."""
    why = "none was looked for"
    W, upper = _upper(form, model, certificate.w)
    _agree(certificate, float(Fraction(upper, 1 << UNIT)))
    verify.STATE.work = verify.WORK
    if optimal:
        try:
            best, dual = exact_optimum(form, model, certificate.w, point)
        except ProofError as error:
            why = str(error)
        else:
            lowest, highest = model.dual(dual), model.primal(best)
            return Found(form, model, best, dual, lowest, highest, certificate.w, certify_tied)
        verify.STATE.work = verify.WORK
    enough = math.floor(Fraction(certificate.dual) * 2**UNIT) if certificate.valid else -np.inf
    lower: Lower = lower_bound(form, model, certificate.w, point, enough)
    return Found(form, model, W, lower.point, lower.bound, upper, certificate.w, certify_tied, why)


def model_hash(form: Form) -> str:
    """The hash by which proofs name the problem."""
    verify.begin(True)
    form, _ = write_out(form, np.zeros(form.shape), form.nothing())
    return Model(statement(form)).hash()


# ---- a primal point at which every constraint holds exactly ----------------------------------------------------------
def _upper(form: Form, model: Model, w: Array) -> tuple[list[list[Any]], int]:
    """Rationals near w and an upper bound of P there (in units of the checker); `ProofError` where none is found.

    Nodes whose constraint does not hold are moved into it; where edges between nodes or rows do not hold, all of w is
    pulled towards 0.
    """
    W: list[list[Any]] = exactly(w.tolist())
    why = ""
    for round_ in range(ROUNDS):
        try:
            return W, model.primal(W)
        except NotProvedError as error:
            why, verify.STATE.where = str(error), ""
        for edge in form.edges:
            if isinstance(edge.penalty, AbstractConstraint):
                _settle(form, edge, W) if edge.map.noun == "node" else _pull(W, 50 - 5 * round_)
    raise ProofError(f"no exact primal point was found: {why}")


def _settle(form: Form, edge: EdgeBlock, W: list[list[Any]]) -> None:
    """Every node of a constraint on nodes into its set."""
    columns = edge.columns(form.d).tolist()
    centers = None if edge.center is None else exactly(edge.center.tolist())
    for e, i in enumerate(edge.tail.tolist()):
        center = [rational(0)] * len(columns) if centers is None else centers[e]
        z = edge.penalty.settle([W[i][j] - c for j, c in zip(columns, center, strict=True)], exact)  # pyright: ignore
        for j, c, p in zip(columns, center, z, strict=True):
            W[i][j] = c + p


def _pull(W: list[list[Any]], bits: int) -> None:
    shrink = 1 - rational(1, 1 << bits)
    for row in W:
        row[:] = [shrink * x for x in row]


def _agree(certificate: Certificate, stated: float) -> None:
    form, zero = certificate.form, np.zeros(certificate.form.shape)
    computed = form.primal(certificate.w)
    at_zero = float(sum(np.abs(block.values(zero)).sum() for block in form.samples))
    if not abs(stated - computed) <= DISAGREE * max(abs(stated), abs(computed), at_zero):
        raise ProofError(
            f"P(w) is {computed:.10g} as the terms compute it and {stated:.10g} as they are stated in a proof; a "
            "`statement` or `parts` does not say what `value` computes"
        )


def lines(document: Any) -> str:
    """JSON with one inner list per line, so that a place in it can be found."""
    return json.dumps(document, separators=(",", ":")).replace("],[", "],\n[").replace("},{", "},\n{") + "\n"
