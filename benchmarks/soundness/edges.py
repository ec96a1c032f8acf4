"""What is said of edges, against optima that are known exactly.

Fused: the ends are equal at every optimum; split: at none; near: at most so far apart. The optima are planted ones, and
rational ones on forests, found by Newton's steps on a guessed face and proved by the flows that balance there.
"""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import graphreg as gr
from benchmarks.wild import WildProblem
from graphreg.certificate.edges.fusion import separate
from graphreg.errors import GraphregError, InternalError, ProofError
from graphreg.form import Form
from graphreg.terms.penalties import AbstractSmoothPenalty
from graphreg.verify import Proof, check, number

from .exact import ExactEdge, ExactProblem, exact, penalty
from .families import Draft, Rows, Term, written
from .kkt import balanced_on_forest, optimal
from .planted import with_proof
from .reals import ONE, ZERO, Rational, approximately, dot, ends, rational, rationals
from .refined import refined
from .stored import as_stored

GAPS = (1e-9, 1e-6, 1e-3)
NEAR = (0.0, 1e-9, 1e-6, 1e-4, 1e-2)  # of the size of columns: what is tied at an optimum
NODES = 12
MODERATE = 1 << 120
SECONDS = 10.0
METHODS = ("auto", "exact", "primal-dual")
MAKE = {"auto": gr.Auto, "exact": gr.Exact, "primal-dual": gr.PrimalDual}


@dataclass
class Row:
    """A problem, the claims about its edges that were judged, by kind, and which of them were false."""

    seed: int
    family: str
    method: str = ""
    known: bool = False  # whether an optimum is known exactly
    claims: dict[str, int] = field(default_factory=dict)
    false: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


def examine(seed: int) -> Row:
    """A problem whose optimum is known, and what is said of its edges, judged."""
    began, row = time.process_time(), Row(seed, "forest" if seed % 2 else "planted", METHODS[seed // 2 % len(METHODS)])
    try:
        _examine(row)
    except Exception:  # noqa: BLE001  (whatever it is, it belongs into the table)
        row.error = traceback.format_exc(limit=-4)
    row.seconds = time.process_time() - began
    return row


def _examine(row: Row) -> None:
    drawn = forest(row.seed) if row.family == "forest" else with_proof(row.seed, NODES).drawn
    try:
        form = drawn.problem.form
    except GraphregError:
        return
    problem = exact(as_stored(drawn.plain, form))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            gap = GAPS[row.seed // 6 % len(GAPS)]
            solution = drawn.problem.solve(
                MAKE[row.method](), gap=gap, seconds=SECONDS, progress=False, on_failure="return"
            )
            table = solution.clusters(prove=True).edges
            held = solution.held().table if solution.certificate.valid else None
            proof = _proof(solution) if row.seed % 3 == 0 else None
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, GraphregError) or isinstance(error, InternalError):
                row.raised.append("".join(traceback.format_exception(error, limit=-4)))
            return
    w: Any = drawn.optimum if drawn.optimum is not None else optimum(problem, _point(solution, drawn))
    row.known = w is not None
    if w is None:
        return
    w, names = rationals(w), [str(name) for name in form.space.coordinates]
    counts: Counter[str] = Counter()
    for claim in table.to_dict("records"):
        if claim["state"] == "undecided" and not np.isfinite(claim["bound"]):
            continue
        counts[claim["state"]] += 1
        ends = [drawn.plain.nodes.index(claim[end]) for end in ("tail", "head")]
        z = [a - b for a, b in zip(w[ends[0]], w[ends[1]], strict=True)]
        row.false += [f"{claim['tail']!r} - {claim['head']!r} is said to be {what}" for what in lies(claim, z, names)]
    if held is not None:
        counts.update(f"{state} of rows" for state in held["state"])
        row.false += false_of_rows(held, form, problem, w, [drawn.plain.nodes.index(x) for x in form.labels])
    if proof is not None:
        counts.update(f"{claim['says']} by proof" for claim in proof[1] if claim["says"] != "bounds")
        row.false += false_of_proof(*proof, problem, w, [drawn.plain.nodes.index(x) for x in form.labels])
    row.claims = dict(counts)


def _proof(solution: Any) -> tuple[Proof, list[dict[str, Any]]] | None:
    """A proof with all claims that are found, as the checker reads it; None where there is none."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        try:
            solution.prove(path, ["near", "fused", "split"])
        except ProofError:
            return None
        text = path.read_bytes()
    return check(text), json.loads(text)["claims"]


def false_of_proof(
    proof: Proof, claims: list[dict[str, Any]], problem: ExactProblem, w: Any, order: list[int]
) -> list[str]:
    """What of a proof is contradicted at an optimum; ``order`` is where its nodes are in w."""
    out, at = [], problem.at(w)
    if _ours(proof.low) > at.upper or _ours(proof.high) < at.lower:
        out.append(f"proof: {proof.low} to {proof.high} are bounds, and the optimum is {approximately(at.upper)!r}")
    for claim in claims:
        if claim["says"] not in ("near", "fused", "split"):
            continue
        e, i, _, names = proof.edge(claim["block"], claim["edge"])
        tail, head = (w[order[j]] for j in (e.tail[i], e.head[i]))
        z = [tail[j] - head[j] for j in e.columns]
        one = ExactEdge(0, 0, e.kind, ONE, list(e.columns), [ZERO] * len(z), None)
        size = penalty(one, z)
        far = claim["says"] == "near" and size is not None and size[0] > _ours(number(claim["distance"]))
        if far or (claim["says"] == "fused" and any(z)) or (claim["says"] == "split" and not any(z)):
            out.append(f"proof: {names} are {claim}, and at an optimum they are {[approximately(v) for v in z]} apart")
    return out


def false_of_rows(table: Any, form: Form, problem: ExactProblem, w: Any, order: list[int]) -> list[str]:
    """What of `Solution.held` is contradicted at an optimum, of edges between nodes; on a forest by the flows there,
    too, which lie inside the capacities by the margin at least."""
    found, begin, out = balanced_on_forest(problem, w), 0, list[str]()
    flows = (
        {} if found is None else dict(zip((frozenset((e.tail, e.head)) for e in problem.edges), found[1], strict=True))
    )
    for edge in separate(form).form.edges:
        if isinstance(edge.penalty, AbstractSmoothPenalty):
            continue
        claims = table.iloc[begin : begin + edge.count].to_dict("records")
        begin += edge.count
        columns = range(form.d) if edge.features is None else edge.features.tolist()
        for e, claim in enumerate(claims if (edge.head >= 0).all() else []):
            pair = frozenset((tail := order[edge.tail[e]], head := order[edge.head[e]]))
            z = [w[tail][j] - w[head][j] for j in columns]
            margin = rational(float(claim["margin"])) if np.isfinite(claim["margin"]) else ZERO
            left = claim["state"] == "held" and len(columns) == 1 and pair in flows
            room = rational(float(edge.weight[e])) - abs(flows[pair][columns[0]]) if left else margin
            wrong = any(z) if claim["state"] == "held" else claim["state"] == "not held" and dot(z, z) < margin * margin
            far = np.isfinite(claim["bound"]) and dot(z, z) > rational(float(claim["bound"])) ** 2
            if wrong or far or room < margin:
                out.append(f"{claim} is said of a row, which is {[approximately(v) for v in z]} at an optimum")
    return out


def _ours(x: Any) -> Any:
    """A number of the checker's arithmetic."""
    return Rational(*ends(x))


def lies(claim: dict[str, Any], z: list[Any], names: list[str]) -> list[str]:
    """What is contradicted by the exact difference z of an edge at an optimum."""
    out, square, state = [], dot(z, z), claim["state"]
    if (state == "fused" and square != 0) or (state == "split" and square == 0):
        out.append(f"{state}, and the difference is {[approximately(v) for v in z]}")
    if np.isfinite(claim["bound"]) and square > rational(float(claim["bound"])) ** 2:
        out.append(f"within {claim['bound']!r}, and is not")
    apart = [name for name in str(claim["split_in"]).split(", ") if name]
    out += [f"split in {name}, and is not" for name in apart if z[names.index(name)] == 0]
    return out


def _point(solution: Any, drawn: WildProblem) -> Any:
    at = dict(zip(solution.labels, solution.coef, strict=True))
    return np.array([at[label] for label in drawn.plain.nodes])


def optimum(problem: ExactProblem, w: Any) -> Any | None:
    """A rational point near w that is proved to be optimal, on a forest; None where none is found."""
    if not np.isfinite(w).all():
        return None
    for rounded in refined(problem, w, NEAR):
        near = [[_simple(v) for v in row] for row in rounded]
        found = balanced_on_forest(problem, near)
        if found is not None and optimal(problem, near, *found):
            return near
    return None


def _simple(x: Any) -> Any:
    """The rational number of a moderate denominator that is meant."""
    return Rational(*Fraction(*ends(x)).limit_denominator(MODERATE).as_integer_ratio())


def forest(seed: int) -> WildProblem:
    """A tree, or two, of squared losses or Huber's and the l1 norm: small whole numbers, so that ties are common."""
    rng = np.random.default_rng([seed, 19])
    n, p = int(rng.integers(3, NODES + 1)), int(rng.integers(1, 3))
    family = str(rng.choice(["squared", "squared", "huber"]))
    values = rng.integers(-2, 3, size=(3, p))
    rows = {}
    for i in range(n):
        m = p + int(rng.integers(3))
        X = np.concatenate([np.eye(p), rng.integers(-2, 3, size=(m - p, p))])
        noise = rng.integers(-1, 2, size=m) / 4.0 if rng.random() < 0.5 else rng.standard_normal(m) / 4.0
        rows[i] = Rows(X, X @ values[int(rng.integers(3))] + noise, 2.0 ** rng.integers(-2, 3, size=m))
    pairs = [(int(rng.integers(k)), k, float(2.0 ** rng.integers(-2, 3))) for k in range(1, n)]
    if n > 5 and rng.random() < 0.2:
        del pairs[n // 2]
    term = Term("L1", float(rng.choice([2.0 ** rng.integers(-4, 2), 10.0 ** rng.uniform(-2, 0.5)])), pairs)
    return written(seed, Draft(family, rows, [term], ["forest"], 1e-9, 0.5))


def counted(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The claims by kind, and on how many problems they were judged."""
    claims: Counter[str] = Counter()
    for row in rows:
        claims.update(row.get("claims", {}))
    known = sum(row.get("known", False) for row in rows)
    each = ", ".join(f"{number} {kind}" for kind, number in claims.most_common())
    return [f"{claims.total()} claims on {known} of {len(rows)} problems (of the others no optimum is known): {each}"]
