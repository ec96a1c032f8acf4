"""Bounds of problems with general rows: by what the library proposes, or a small proposer for any B; judged exactly."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from graphreg.certificate.kernel.arithmetic import LEAST, RefusedError, two_sum
from graphreg.certificate.kernel.balance import Answers, Combination, Witness, balanced
from graphreg.certificate.kernel.system import Prices, System
from graphreg.certificate.kernel.value import lower_bound
from graphreg.certificate.proposing.plan import Planner
from graphreg.certificate.proposing.slack import Slack
from graphreg.certificate.proposing.systems import EXACT, Solved, solved
from graphreg.datasets.plain import Array

from .attained import attained
from .exact import below, excess
from .reals import ZERO, approximately, ends, flint, rational
from .rows import Drawn, asked, planted_rows, random_rows

PULLS = (0.0, 4e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3, 1e-2)  # of the way to the middle of all domains
DEEP = 0.4  # in units of scales: deep enough
SWEEPS, ROUNDS = 3, 40
NARROW = 1e-6  # relative: of what counts as certified
LIGHT = 1e-60  # entries of R that are left out


@dataclass
class Row:
    """A problem, who proposed its best bound, and how wide it is, relative to the best point that is known."""

    seed: int
    what: str
    penalty: str
    losses: list[str]
    nodes: int
    d: int
    attained: bool | None = None
    proposer: str = ""
    width: float = np.inf
    certified: bool = False
    why: str = ""
    tries: int = 0
    false: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


def examine(seed: int) -> Row:
    """Two in three at random, the others with an optimum that is known."""
    began = time.process_time()
    drawn = planted_rows(seed) if seed % 3 == 2 else random_rows(seed)
    row = Row(seed, drawn.what, drawn.block.kind, drawn.families, drawn.n, drawn.d)
    try:
        _examine(row, drawn)
    except Exception:  # noqa: BLE001  (whatever it is, it belongs into the table)
        row.error = traceback.format_exc(limit=-4)
    row.seconds = time.process_time() - began
    return row


def _examine(row: Row, drawn: Drawn) -> None:
    known = {"zero": drawn.at(np.zeros((drawn.n, drawn.d)))}
    row.attained = True if drawn.optimum is not None else attained(drawn.samples, _dense(drawn))
    if drawn.optimum is not None:
        known["the optimum"] = drawn.at(drawn.optimum)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": judged here
        found = asked(drawn)
    if found is not None and np.isfinite(found[0]).all():
        known["Clarabel's point"] = drawn.at(found[0])
    system, points = System(drawn.form), []
    if drawn.flows is not None:
        points.append(_planted(system, drawn))
    if found is not None and np.isfinite(found[1]).all():
        points.append(found[1])
    best, least = -np.inf, min(approximately(at.upper) for at in known.values())
    for v in points:
        for name, lower in bounds(system, v, row):
            row.tries += 1
            lies = [f"{k}, by {excess(lower, at):.3g}" for k, at in known.items() if not below(lower, at)]
            row.false += [f"{name}: {lower!r} exceeds P at {lie}" for lie in lies]
            if lower > best:
                best, row.proposer = lower, name
    unit = max(abs(least), abs(best)) or 1.0
    row.width = (least - best) / unit if np.isfinite([least, best]).all() else np.inf
    row.certified = row.width <= NARROW
    row.why = "no point" if not points else row.why


def _dense(drawn: Drawn) -> list[list[Any]]:
    size, out = drawn.n * drawn.d, []
    for row in drawn.K:
        entries = dict(row)
        out.append([entries.get(i, ZERO) for i in range(size)])
    return out


def _planted(system: System, drawn: Drawn) -> Array:
    v, at = np.zeros(system.size), 0
    for block, family in zip(drawn.form.samples, drawn.families, strict=True):
        mine = [(drawn.prices or {})[part.node] for part in drawn.parts if part.family == family]
        v[at : at + len(block.node)] = np.concatenate(mine)
        at += len(block.node)
    v[at:] = np.ravel(drawn.flows)
    return v


# ---- proposals -------------------------------------------------------------------------------------------------------
def bounds(system: System, v: Array, row: Row) -> Iterator[tuple[str, float]]:
    """The bounds next to a point: as it is, by the library's planner and by least squares; from further and further
    inside, until there is one."""
    v, middle, done = inside(system, v), np.zeros_like(v), False
    for t in PULLS:
        if t == PULLS[1]:
            middle = middle_of(system)
        x = v + t * (middle - v)
        for name, propose in PROPOSERS.items():
            try:
                with np.errstate(all="ignore"):
                    R, dropped = propose(system, x)
                    lower, why = proved(system, x, Answers(system, R), dropped)
            except (RefusedError, np.linalg.LinAlgError) as error:
                row.why = f"{name}: {error}"
                continue
            except Exception as error:  # noqa: BLE001
                row.raised.append(f"{name}: {''.join(traceback.format_exception(error, limit=-3))}")
                continue
            row.why = f"{name}: {why}" if why else row.why
            if np.isfinite(lower):
                done = True
                yield name, lower
        if done:
            return


def inside(system: System, v: Array) -> Array:
    """The point with prices and flows in their domains."""
    v = v.copy()
    for one in system.prices:
        low, high = _ends(one)
        v[one.columns] = np.clip(v[one.columns], low, high)
    for one in system.flows:
        size = np.nan_to_num(one.penalty.domain.gauge(one.taken(v) / one.scale[:, None]), posinf=1.0)
        v[one.columns] = (one.taken(v) / np.maximum(size, 1.0).reshape(one.shape[0], -1)).ravel()
    return v


def middle_of(system: System) -> Array:
    """A balanced point as deep inside all domains as there is one, by a linear programme; else one that is inside."""
    low, high = np.full(system.size, -np.inf), np.full(system.size, np.inf)
    for one in system.prices:
        low[one.columns], high[one.columns] = _ends(one)
    for one in system.flows:
        size = np.asarray(one.penalty.domain.gauge(np.ones(one.shape)), dtype=float).reshape(-1, 1)
        with np.errstate(divide="ignore"):
            high[one.columns] = np.broadcast_to(one.scale[:, None] / size, one.shape).ravel()
        low[one.columns] = -high[one.columns]
    scale = np.concatenate([np.repeat(one.scale, one.shape[1]) for one in system.summands])
    sides = [(sign, np.flatnonzero(np.isfinite(end)), end) for sign, end in ((1.0, high), (-1.0, low))]
    rows = [
        sp.csr_array((sign * np.ones(len(k)), (np.arange(len(k)), k)), (len(k), system.size)) for sign, k, _ in sides
    ]
    B = system.kind.B @ sp.diags_array(scale)
    size = np.maximum(abs(B).max(axis=1).toarray().ravel(), LIGHT)
    found = linprog(
        np.append(np.zeros(system.size), -1.0),
        A_ub=sp.hstack([sp.vstack(rows), np.ones((sum(len(k) for _, k, _ in sides), 1))], format="csr"),
        b_ub=np.concatenate([sign * end[k] / scale[k] for sign, k, end in sides]),
        A_eq=sp.hstack([sp.diags_array(1.0 / size) @ B, np.zeros((len(size), 1))], format="csr"),
        b_eq=np.zeros(system.shape[0]),
        bounds=[(None, None)] * system.size + [(0.0, DEEP)],
    )
    if found.status == 0 and found.x[-1] > 0.0:
        return found.x[:-1] * scale
    both = np.isfinite(low) & np.isfinite(high)
    return np.where(both, (np.where(both, low, 0.0) + np.where(both, high, 0.0)) / 2, np.clip(scale, low, high))


def _ends(one: Prices) -> tuple[Array, Array]:
    low, high = (np.broadcast_to(x, one.block.offset.shape) for x in one.block.loss.domain(one.block.y))
    return one.block.scale * low, one.block.scale * high


def _nothing(system: System, v: Array) -> tuple[sp.csr_array, dict[int, Combination]]:
    """For points that balance exactly."""
    return sp.csr_array((len(v), system.shape[0])), {}


def _planned(system: System, v: Array) -> tuple[sp.csr_array, dict[int, Combination]]:
    plan = Planner(system).near(v, Slack.of(system, v), np.zeros(len(v), dtype=bool), False)
    return plan.answers.R, plan.dropped


def _least_squares(system: System, v: Array) -> tuple[sp.csr_array, dict[int, Combination]]:
    """W B'(B W B')^-1 for the variables with slack, in each component of B; what depends on others is dropped."""
    N, V = system.shape
    weight = Slack.of(system, v).weight
    count, label = connected_components(abs(system.kind.B) @ abs(system.kind.B).T, directed=False)
    R, dropped = sp.lil_array((V, N)), dict[int, Combination]()
    for c in range(count):
        eqs = np.flatnonzero(label == c)
        A = system.kind.B[eqs]
        some = np.flatnonzero((weight > 0.0) & (np.bincount(A.indices, minlength=V) > 0))
        found = exactly(A[:, some].toarray(), solved(A[:, some].toarray(), weight[some], eqs // system.form.d))
        X = np.where(np.abs(found.X) < LIGHT, 0.0, found.X)
        for j, i in np.argwhere(X):
            R[some[j], eqs[found.kept[i]]] = X[j, i]
        for g, y in found.combinations.items():
            dropped[int(eqs[g])] = {int(eqs[k]): Fraction(x) for k, x in y.items()}
    return sp.csr_array(R), dropped


PROPOSERS = {"as it is": _nothing, "library": _planned, "least squares": _least_squares}


def exactly(A: Array, found: Solved) -> Solved:
    """With combinations, in rational numbers, of all rows that were left out of a large system."""
    left = np.setdiff1d(np.flatnonzero(A.any(axis=1)), found.kept)
    if flint is None or len(A) <= EXACT or not len(left) or not len(found.kept):
        return found
    size = np.abs(A[found.kept]).max(axis=1, keepdims=True)
    columns = np.asarray(qr(A[found.kept] / size, mode="r", pivoting=True)[1])[: len(found.kept)]
    try:
        y = _matrix(A[np.ix_(found.kept, columns)].T).solve(_matrix(A[np.ix_(left, columns)].T))
    except ZeroDivisionError:
        return found
    more = dict[int, Combination]()
    for k, g in enumerate(left.tolist()):
        each = {int(i): -Fraction(*ends(y[j, k])) for j, i in enumerate(found.kept.tolist()) if y[j, k] != 0}
        more[g] = {g: Fraction(1), **each}
    return replace(found, combinations=found.combinations | more)


def _matrix(M: Array) -> Any:
    return flint.fmpq_mat([[rational(x) for x in row] for row in M.tolist()])


def proved(system: System, v: Array, answers: Answers, dropped: dict[int, Combination]) -> tuple[float, str]:
    """The bound next to a point that is corrected by some answers; and what stands in its way."""
    kept = ~np.isin(np.arange(system.shape[0]), list(dropped))
    high, low = v, np.zeros_like(v)
    for _ in range(SWEEPS):
        left = system.residual(high, low)
        high, low = two_sum(high, low - answers.R @ np.where(kept, (left.high + left.low).ravel(), 0.0))
    left = np.where(kept, system.residual(high, low).size().ravel(), 0.0)
    z = left
    for _ in range(ROUNDS):
        more = left + answers.passed(z)
        if (more <= z).all():
            break
        z = np.where(kept & (more > 0.0), more * (1 + 1e-6) + LEAST, 0.0)
    found = lower_bound(system, balanced(system, Witness(high, low, answers, z, dropped)))
    return float(found.lower.sum()), found.why


def counted(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The rate of bounds, by what was drawn and whether the optimum is attained; widths; who proposed."""
    lines, drawn = [], [row for row in rows if "what" in row]
    groups = {
        "planted": [row for row in drawn if row["what"].startswith("planted")],
        "at random": [row for row in drawn if not row["what"].startswith("planted")],
    }
    for name, mine in groups.items():
        for state, said in ((True, "attained"), (False, "not attained"), (None, "not decided")):
            some = [row for row in mine if row["attained"] is state]
            sure = [row for row in some if row["certified"]]
            widths = sorted(row["width"] for row in sure)
            middle = f", median width {widths[len(widths) // 2]:.1e}, largest {widths[-1]:.1e}" if widths else ""
            if some:
                lines.append(
                    f"{name}, {said}: {len(sure)} of {len(some)} certified = {len(sure) / len(some):.1%}{middle}"
                )
    proposers = Counter(row["proposer"] or "nobody" for row in drawn)
    lines.append("proposed by " + ", ".join(f"{name}: {number}" for name, number in proposers.most_common()))
    lines += [
        f"  seed {row['seed']}, {row['what']}, {row['penalty']}, {' and '.join(row['losses'])}: "
        f"width {row['width']:.1e}; {row['why']}"
        for row in drawn
        if row["attained"] is not False and not row["certified"]
    ]
    return lines
