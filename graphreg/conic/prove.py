"""From what was proved of a conic programme to the file of a proof, which `graphreg.verify` checks in exact numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import verify
from ..base.display import Suggesting
from ..base.files import own_place, put
from ..certificate.proof import lines, text
from ..errors import ProofError
from ..verify import CONIC, EQUATIONS, FIELDS, Conic, NotProvedError, rational, spell
from . import programme
from .programme import Programme
from .steps import pivots
from .verify import Reached


@dataclass(frozen=True)
class ProvedProblem(Suggesting):
    """What a file proves of a problem as it is stored, with this ``hash``; a bound that is not proved is None."""

    path: Path
    hash: str
    lower: Fraction | None
    upper: Fraction | None
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"{'; '.join(self.claims)}; proved in {self.path} of {self.hash}"


def statement(p: Programme, offset: float, maximised: bool) -> dict[str, Any]:
    """The problem as a file states it."""
    cones: list[list[Any]] = []
    for block in p.blocks:
        rows, size = block.place.stop - block.place.start, int(block.size)
        single = {"zero": rows, "nonneg": rows, "soc": size, "psd": size}.get(block.kind, 3)
        parameter = spell(block.size) if block.kind == "pow" else None
        cones += [[block.kind, single, parameter]] * (1 if block.kind == "psd" else rows // single)
    sense = "maximise" if maximised else "minimise"
    entries = {"P": _entries(p.P), "q": _doubles(p.q), "A": _entries(p.A), "b": _doubles(p.b)}
    return {"sense": sense, "offset": spell(float(offset)), **entries, "cones": cones}


def _doubles(x: Any) -> list[str]:
    return [spell(v) for v in np.asarray(x, dtype=float).tolist()]


def _entries(M: Any) -> list[list[Any]]:
    M = sp.csr_array(M, copy=True)
    M.sum_duplicates()
    M.eliminate_zeros()
    rows = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    return [list(each) for each in zip(rows.tolist(), M.indices.tolist(), _doubles(M.data), strict=True)]


def judge_of(p: Programme, offset: float, sign: float) -> tuple[Conic, dict[str, Any]]:
    """The checker of claims about a problem, which knows its hash, and what a file states of the problem."""
    verify.begin()
    problem = statement(p, offset, sign < 0.0)
    return Conic({"format": CONIC, "problem": problem, "claims": []}), problem


def prove(
    p: Programme, offset: float, sign: float, evidence: Mapping[str, Reached], path: str | Path, force: bool
) -> ProvedProblem:
    """Write a proof of what a certificate says; see `ConicCertificate.prove`."""
    place = own_place(path, "proof", ProofError, b"" if force else CONIC.encode())
    judge, problem = judge_of(p, offset, sign)
    written = _Writer(p, judge, evidence)
    claims = written.claims()
    if not claims:
        raise ProofError("nothing is proved of this problem, so that there is nothing to write")
    put(place, lines({"format": CONIC, "problem": problem, "claims": claims}).encode("ascii"), "proof", ProofError)
    ends = (None if x is None else Fraction(int(x.numerator), int(x.denominator)) for x in (judge.low, judge.high))
    low, high = ends
    return ProvedProblem(Path(path), judge.hash, low, high, tuple(written.said))


class _Writer:
    """Claims of what was proved, each of them judged by the checker as it is made."""

    def __init__(self, p: Programme, judge: Conic, evidence: Mapping[str, Reached]) -> None:
        self.p, self.judge, self.evidence, self.said = p, judge, evidence, list[str]()
        n, m = len(p.q), len(p.b)
        slacks = np.r_[np.arange(n), n + p.in_cones]
        self.systems = {  # with the places of its rows and columns in the file, and how many columns there are
            "primal": (programme.primal(p), np.arange(m), slacks, n + m),
            "dual": (programme.dual(p), np.arange(n), np.r_[np.arange(m), m + p.curved], n + m),
            "contradiction": (programme.contradiction(p), np.arange(n), np.arange(m), m),
            "descent": (programme.descent(p), np.r_[np.arange(m), m + p.curved], slacks, n + m),
        }

    def claims(self) -> list[dict[str, Any]]:
        found, least = self.evidence, self.judge.sense == "minimise"
        if found.keys() & {"contradiction", "dependent"}:
            return [self.claim("infeasible", contradiction="point")]
        if "primal" in found and found.keys() & {"descent", "dependent dual"}:
            return [self.claim("unbounded", primal="point", descent="direction")]
        sides = {"dual": "lower" if least else "upper", "primal": "upper" if least else "lower"}
        return [self.claim(says, **{what: "point"}) for what, says in sides.items() if what in found]

    def claim(self, says: str, **names: str) -> dict[str, Any]:
        """The first of the ways to solve the systems at whose points the checker finds nothing wrong."""
        why = ""
        for ways in product(*(self.points(what) for what in names)):
            claim = {"says": says, **dict(zip(names.values(), ways, strict=True))}
            try:
                if says in ("lower", "upper"):
                    claim["bound"] = text(_rounded(self.judge.bound(says, claim["point"]), says == "lower"))
                self.said.append(
                    getattr(self.judge, says)(*(claim[name] for name in FIELDS[f"{says} of a problem"].split()[1:]))
                )
            except (NotProvedError, ZeroDivisionError) as error:
                why = str(error)
            else:
                return claim
        raise ProofError(f"no exact point proves what is {says}: {why}")

    def points(self, what: str) -> Iterator[dict[str, Any]]:
        """Numbers near which a system is solved, and how."""
        if what not in self.evidence:
            yield from self.dependent(what)
            return
        (system, rows, columns, width), given = self.systems[what], self.evidence[what].proposal
        if len(given.core) > EQUATIONS:
            raise ProofError(f"{len(given.core)} equations hang together, and the checker solves {EQUATIONS} at a time")
        y, core = np.zeros(width), sp.diags_array(given.scale) @ system.M[given.core]
        y[columns] = given.high
        last = np.column_stack([rows[given.rows], columns[given.columns]])[::-1].tolist()
        for room in (given.weight, given.weight * np.abs(given.high)):
            order = pivots((core @ sp.diags_array(room)).toarray()) if len(given.core) else given.core
            chosen = columns[order[: len(given.core)]].tolist()
            yield {"y": _doubles(y), "rows": rows[given.core].tolist(), "columns": chosen, "last": last}

    def dependent(self, what: str) -> Iterator[dict[str, Any]]:
        """Of equations that contradict each other the multipliers: 1 of a row, what follows of others."""
        given = self.evidence["dependent" if what == "contradiction" else "dependent dual"].proposal
        system, rows, _, width = self.systems[what]
        for row, witness in zip(given.left.tolist(), given.witness, strict=True):
            others = sorted(witness)
            order = pivots(system.M[:, others].T.toarray()) if others else np.zeros(0, dtype=int)
            for one in (1.0, -1.0):
                y = np.zeros(width)
                y[row] = one
                yield {"y": _doubles(y), "rows": rows[order[: len(others)]].tolist(), "columns": others, "last": []}


def _rounded(x: Any, down: bool) -> Any:
    """A number of about 120 digits below or above."""
    p, q = int(x.numerator), int(x.denominator)
    up = max(0, 120 - abs(p).bit_length() + q.bit_length())
    return rational((p << up) // q if down else -((-p << up) // q), 1 << up)
