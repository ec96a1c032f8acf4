"""Points near solves and planted optima, off by 1e-17 to 1: whatever is proposed, no bound may be false.

Problems are drawn from all families. Of each the prices and flows of a few points are moved many times, and given to
the certificate: to what encloses a balanced point, to the kernel with answers that are off as well, and to the whole
way from a point to its certificate.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import graphreg as gr
from benchmarks.wild import WildProblem, wild_problem
from graphreg.certificate import Certifier, Enclosure
from graphreg.certificate.kernel.arithmetic import LEAST, RefusedError
from graphreg.certificate.kernel.balance import Answers, Witness, balanced
from graphreg.certificate.kernel.value import lower_bound
from graphreg.certificate.proposing.plan import Plan
from graphreg.certificate.proposing.slack import Slack
from graphreg.datasets import random_problem
from graphreg.datasets.plain import Array
from graphreg.errors import GraphregError, InternalError
from graphreg.form import DualPoint, Form

from .combined import FAMILIES
from .exact import Bounds, above, below, exact, excess
from .judged import as_wild, known_points
from .planted import Planted, with_proof
from .reals import approximately
from .stored import as_stored

EACH = 40  # perturbations of a problem
SECONDS = 3.0  # for a solve
NODES = 20  # of planted problems
TURNS = ("planted", "planted", "planted", "singular", "combined", "tall", "wild", "standard")
UPHILL = 0.3  # of the points go where the dual value rises, out of balance
KINDS = ("enclosed", "kernel", "kernel", "certified")
Point = tuple[str, DualPoint, Array]


@dataclass
class Row:
    """A problem, and what the perturbed points gave: how many were finite, which were false, what was raised."""

    seed: int
    family: str
    tries: int = 0
    finite: int = 0
    refused: int = 0
    false: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    gap: float = np.inf  # relative: between the best lower bound and the best point that is known
    error: str = ""
    seconds: float = 0.0


def examine(seed: int, each: int = EACH) -> Row:
    """A problem, and ``each`` points near some of its own, judged."""
    began, row = time.process_time(), Row(seed, TURNS[seed % len(TURNS)])
    try:
        _examine(row, np.random.default_rng([seed, 18]), each)
    except Exception:  # noqa: BLE001  (whatever it is, it belongs into the table)
        row.error = traceback.format_exc(limit=-4)
    row.seconds = time.process_time() - began
    return row


def drawn_for(seed: int) -> tuple[WildProblem, Planted | None]:
    """The problem of a seed; of every eighth seed one family."""
    family, at = TURNS[seed % len(TURNS)], seed // len(TURNS)
    if family == "planted":
        found = with_proof(seed, NODES)
        return found.drawn, found
    if family == "standard":
        return as_wild(random_problem(at)), None
    return (wild_problem(at) if family == "wild" else FAMILIES[family](at)), None


def _examine(row: Row, rng: np.random.Generator, each: int) -> None:
    drawn, proof = drawn_for(row.seed)
    try:
        form = drawn.problem.form.frozen()
    except GraphregError:
        return
    points = list(_points(drawn, form, proof))
    plain = as_stored(drawn.plain, form)
    known = known_points(drawn, plain, exact(plain), {name: w for name, _, w in points})
    order = [form.labels.index(label) for label in plain.nodes]
    tried = _Tries(form, lambda w: exact(plain).at(np.asarray(w)[order]))
    best = -np.inf
    for k in range(each):
        name, point, w = points[k % len(points)]
        kind, by = KINDS[int(rng.integers(len(KINDS)))], 0.0 if k < len(points) else 10.0 ** rng.uniform(-17, 0)
        row.tries += 1
        what = f"{kind} {by:.2g} from {name} (point {k})"
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                off = tried.uphill(point, w, by) if rng.random() < UPHILL else moved(point, by, rng)
                lower, wrong = tried(kind, rng, off, points[k % len(points)], by)
        except RefusedError:
            row.refused += 1
            continue
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, GraphregError) or isinstance(error, InternalError):
                row.raised.append(f"{what}: {''.join(traceback.format_exception(error, limit=-3))}")
            row.refused += 1
            continue
        row.finite += bool(np.isfinite(lower))
        best = max(best, lower)
        lies = {name: excess(lower, at) for name, at in known.items() if not below(lower, at)}
        row.false += [f"{what}: {lower!r} exceeds P at {name} by {far:.3g}" for name, far in lies.items()]
        row.false += [f"{what}: {wrong}"] if wrong else []
    least = min((approximately(at.upper) for at in known.values()), default=np.inf)
    row.gap = (least - best) / max(abs(least), abs(best), 1e-300) if np.isfinite([least, best]).all() else np.inf


# ---- points ----------------------------------------------------------------------------------------------------------
def _points(drawn: WildProblem, form: Form, proof: Planted | None) -> Iterator[tuple[str, DualPoint, Array]]:
    """Prices and flows with parameters: of two solves, of none, and of the planted optimum."""
    if proof is not None:
        yield "the optimum", placed(form, proof), _in_order(form, drawn)
    for name, method, rounds in (("auto", gr.Auto(), None), ("some rounds", gr.PrimalDual(), 40)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = drawn.problem.solve(
                method, gap=1e-8, seconds=SECONDS, rounds=rounds, progress=False, on_failure="return"
            ).certificate
        if found.dual_point.is_finite() and np.isfinite(found.w).all():
            yield name, found.dual_point, found.w
    yield "nothing", form.nothing(), np.zeros(form.shape)


def _in_order(form: Form, drawn: WildProblem) -> Array:
    at = dict(zip(drawn.plain.nodes, np.asarray(drawn.optimum), strict=True))
    return np.array([at[label] for label in form.labels])


def placed(form: Form, proof: Planted) -> DualPoint:
    """The planted prices and flows, where the form has its samples and edges."""
    plain, labels = proof.drawn.plain, form.labels
    prices = [np.zeros(block.offset.shape) for block in form.samples]
    for part, a in zip(plain.samples, proof.prices, strict=True):
        i = labels.index(part.node)
        k = next(k for k, block in enumerate(form.samples) if (block.node == i).any())
        prices[k][form.samples[k].node == i] = a
    given = {(e.kind, e.tail, e.head): u for e, u in zip(plain.edges, proof.flows, strict=True)}
    flows = []
    for edge in form.edges:
        kind, rows = type(edge.penalty).__name__, []
        for tail, head in zip(edge.tail.tolist(), edge.head.tolist(), strict=True):
            ends = labels[tail], None if head < 0 else labels[head]
            u = given.get((kind, *ends))
            rows.append(-given[kind, ends[1], ends[0]] if u is None else u)
        flows.append(np.array(rows).reshape(len(edge.tail), -1))
    return DualPoint(tuple(flows), tuple(prices))


def moved(point: DualPoint, by: float, rng: np.random.Generator) -> DualPoint:
    """A point off by so much: of each number, of the largest one, at a few places, or by a factor for all."""
    how = int(rng.integers(4))

    def each(x: Array) -> Array:
        size = np.abs(x) if how == 0 else np.full(x.shape, np.abs(x).max(initial=0.0) or 1.0)
        step = by * rng.standard_normal(x.shape) * size
        if how == 2:
            step = np.where(rng.random(x.shape) < 0.1, step, 0.0)
        return x * (1.0 + by * float(rng.choice([-1.0, 1.0]))) if how == 3 else x + step

    return DualPoint(tuple(map(each, point.flows)), tuple(map(each, point.prices)))


# ---- what is asked ---------------------------------------------------------------------------------------------------
class _Tries:
    """The ways in which a point may become a bound."""

    def __init__(self, form: Form, at: Callable[[Array], Bounds]) -> None:
        self.form, self.at = form, at
        self.enclosure = Enclosure(form)
        self.certifier = Certifier(form)
        self.plans: dict[tuple[str, bool], Plan] = {}

    def __call__(
        self, kind: str, rng: np.random.Generator, point: DualPoint, near: Point, by: float
    ) -> tuple[float, str]:
        """A lower bound, and what is wrong beside it; the point is near another."""
        if self.enclosure.refused:
            raise RefusedError(self.enclosure.refused)
        if kind == "enclosed":
            least = float(rng.choice([np.inf, np.inf, -1e300]))
            return self.enclosure(point, least=least).value, ""
        if kind == "kernel":
            return self._kernel(rng, point, near), ""
        w = near[2] + by * rng.standard_normal(near[2].shape) * np.abs(near[2])
        gap = float(rng.choice([0.0, 1e-6]))
        found = Certifier(self.form, self.certifier).certify(w, point.flows, point.prices, gap)
        wrong = "" if above(found.primal, self.at(found.w)) else f"{found.primal!r} is below P at its point"
        return found.dual if found.valid else -np.inf, wrong

    def uphill(self, point: DualPoint, w: Array, by: float) -> DualPoint:
        """A point off by so much where the dual value rises: by weak duality its gradient is -B'w at an optimum."""
        if self.enclosure.refused:
            return point
        system = self.enclosure.system
        v = system.flat(point)
        return system.point(v - by * np.abs(v) * np.sign(system.kind.B.T @ w.ravel()))

    def _plan(self, near: Point, apart: bool) -> Plan:
        """A plan for the point before it was moved."""
        key = near[0], apart
        if key not in self.plans:
            v = self.enclosure.system.flat(near[1])
            slack = Slack.of(self.enclosure.system, v)
            self.plans[key] = self.enclosure.planner.near(v, slack, np.zeros(len(v), dtype=bool), apart)
        return self.plans[key]

    def _kernel(self, rng: np.random.Generator, point: DualPoint, near: Point) -> float:
        """With answers, sizes and low parts that are off as well."""
        system, plan = self.enclosure.system, self._plan(near, bool(rng.random() < 0.5))
        v = system.flat(point)
        R = plan.answers.R
        answers = plan.answers if rng.random() < 0.5 else Answers(system, spoiled(rng, R))
        low = 2.0**-54 * v * rng.uniform(-1, 1, len(v)) * float(rng.choice([0.0, 1.0]))
        high = v
        if rng.random() < 0.5:
            left = system.residual(high, low)
            high = high - R @ plan.gathered((left.high + left.low).ravel())
        plain = not low.any() and bool(rng.random() < 0.5)
        left = system.residual(high, low, plain).size().ravel()
        z = np.where(plan.kept, left, 0.0)
        for _ in range(8):
            more = left + answers.passed(z)
            z = np.where(plan.kept & (more > 0.0), more * (1 + 1e-9) + LEAST, 0.0)
        z = z * float(rng.choice([1.0, 1.0, 2.0, 1 - 2.0**-50, 0.5, 0.0]))  # the latter close nothing
        box = balanced(system, Witness(high, low, answers, np.where(z < LEAST, 0.0, z), plan.dropped, plain))
        return float(lower_bound(system, box, plain or bool(rng.random() < 0.3)).lower.sum())


def spoiled(rng: np.random.Generator, R: sp.csr_array) -> sp.csr_array:
    """Answers that are off: all of them a little, or some wrong, or some missing."""
    data = R.data * (1.0 + 10.0 ** rng.uniform(-17, 0) * rng.standard_normal(R.nnz))
    wrong = rng.random(R.nnz) < float(rng.choice([0.0, 0.02, 0.5]))
    data = np.where(wrong, float(rng.choice([0.0, -1.0, 2.0])) * data, data)
    data = np.where(np.abs(data) < 1e-60, 0.0, np.clip(data, -1e60, 1e60))
    out = sp.csr_array((data, R.indices.copy(), R.indptr.copy()), shape=R.shape)
    out.eliminate_zeros()
    return out


def counted(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The points by family, and how near the best bounds come to the best points that are known."""
    lines = []
    for family in dict.fromkeys(TURNS):
        mine = [row for row in rows if row.get("family") == family]
        sums = {name: sum(row[name] for row in mine) for name in ("tries", "finite", "refused")}
        near = sum(row["gap"] <= 1e-9 for row in mine)
        lines.append(
            f"{family:10s} {sums['tries']} points of {len(mine)} problems, {sums['finite']} with a bound, "
            f"{sums['refused']} refused; bounds within 1e-9 of a known point: {near} problems"
        )
    return [*lines, f"points in all: {sum(row.get('tries', 0) for row in rows)}"]
