"""The same problem in other units: do a shift of the targets and a rescaling of the columns change what is answered?

    python -m benchmarks.invariance [number of problems] [method]

Problems of `graphreg.datasets.random_problem` whose losses are functions of the difference of predictor and target,
with an intercept (or means) that no node penalty acts on: there a shift of all targets shifts the intercepts and
nothing else. A rescaled problem is another one, since penalties act on coefficients; its answer is judged by a
reference that shares nothing with the library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import graphreg as gr
from graphreg.certificate import common, relative
from graphreg.datasets import RandomProblem, random_problem
from graphreg.form.form import Form
from graphreg.terms.losses import AbstractLoss

from .soundness.objective import objective
from .soundness.reference import solve as reference_of

SHIFTS = (1e3, 1e5, 1e6, 1e7, 1e9)  # in units of the standard deviation of the targets
DECADES = 6.0  # columns are rescaled by 10 to a power between minus this and this
GAP = 1e-6
METHODS = {"Exact": gr.Exact, "PrimalDual": gr.PrimalDual, "ADMM": gr.ADMM}
ROUNDS = {"PrimalDual": 5000, "ADMM": 5000}


@dataclass(frozen=True)
class Row:
    """One version of one problem beside the original: statuses, rounds, and how far its answer, the shift undone, lies
    from that of the original in objective and (relative to the longest) in coefficients."""

    seed: int
    kind: str
    before: str
    after: str
    rounds: tuple[int, int]
    worse: float
    moved: float
    message: str

    @property
    def good(self) -> bool:
        return self.before == self.after and self.worse <= GAP


def free_coordinates(form: Form) -> np.ndarray[Any, np.dtype[Any]] | None:
    """The coordinates of the intercept (all of them for means); None where a shift of the targets is no shift of w."""
    if any(block.loss.moved(block.y, np.ones_like(block.offset))[1].any() for block in form.samples):
        return None
    means = all(block.X is None for block in form.samples)
    columns = [j for j, name in enumerate(form.space.names) if means or name == "intercept"]
    for edge in form.edges:
        acts_on = range(form.d) if edge.features is None else edge.features.tolist()
        if edge.ground and set(columns) & set(acts_on):
            return None
    return np.array(columns) if columns else None


def candidates(seeds: Iterator[int] | range) -> Iterator[RandomProblem]:
    for seed in seeds:
        drawn = random_problem(seed)
        if free_coordinates(drawn.problem.form) is not None:
            yield drawn


def changed(model: Any, shift: float, scales: np.ndarray[Any, np.dtype[Any]] | None) -> gr.Problem:
    """The model with its targets shifted and its columns multiplied."""
    terms: list[Any] = []
    for strength, term in model.terms:
        new = term
        if isinstance(term, AbstractLoss):
            data = replace(term.data, y=np.asarray(term.data.y, dtype=float) + shift)
            new = replace(term, data=data if scales is None or data.X is None else replace(data, X=data.X * scales))
        terms.append((strength, new))
    return gr.Problem(replace(model, terms=tuple(terms)))


def solved(problem: gr.Problem, method: str) -> gr.Solution:
    options = {"rounds": ROUNDS[method]} if method in ROUNDS else {}
    return problem.solve(METHODS[method](), gap=GAP, on_failure="return", progress=False, **options)


def shifted(drawn: RandomProblem, units: float, method: str, before: gr.Solution) -> Row:
    form = drawn.problem.form
    columns = free_coordinates(form)
    shift = units * max(float(np.std(np.concatenate([np.ravel(block.y) for block in form.samples]))), 1e-300)
    after = solved(changed(drawn.model, shift, None), method)
    w = after.certificate.w.copy()
    w[:, columns] -= shift
    w[form.free] = before.certificate.w[form.free]
    one, two = (form.primal(point) for point in (before.certificate.w, w))
    size = max(float(np.abs(before.certificate.w).max()), 1e-300)
    moved = float(np.abs(w - before.certificate.w).max()) / size
    worse = relative(abs(two - one), one, one, common(form).floor)
    kind = f"shift {units:.0e}"
    rounds = (before.rounds, after.rounds)
    return Row(drawn.seed, kind, before.status, after.status, rounds, worse, moved, after.message)


def rescaled(drawn: RandomProblem, method: str, before: gr.Solution) -> Row:
    """The worst of the answer's distance from the reference's, in objective."""
    plain = drawn.plain
    rng = np.random.default_rng(drawn.seed)
    scales = 10.0 ** rng.uniform(-DECADES, DECADES, plain.d)
    scales[0] = 1.0
    parts = tuple(replace(part, X=part.X * scales) for part in plain.samples if part.X is not None)
    there = replace(plain, samples=parts, size=plain.size / scales)
    problem = changed(drawn.model, 0.0, scales)
    after = solved(problem, method)
    at = dict(zip(after.labels, after.coef, strict=True)) | after.latent
    value = objective(there, np.array([at[label] for label in there.nodes]))
    reference = reference_of(there, common(problem.form).floor)
    worse = relative(value - reference.upper, value, reference.upper, common(problem.form).floor)
    rounds = (before.rounds, after.rounds)
    return Row(drawn.seed, "rescaled", before.status, after.status, rounds, worse, np.nan, after.message)


def study(count: int, method: str) -> list[Row]:
    """So many problems shifted, and so many rescaled: means have no columns, others take their places there."""
    rows: list[Row] = []
    left = {"shifted": count, "rescaled": count}
    for drawn in candidates(range(100_000)):
        if not any(left.values()):
            break
        columns = drawn.plain.samples[0].X is not None
        if not (left["shifted"] or columns):
            continue
        before = solved(drawn.problem, method)
        if left["shifted"]:
            left["shifted"] -= 1
            rows += [shifted(drawn, shift, method, before) for shift in SHIFTS]
        if left["rescaled"] and columns:
            left["rescaled"] -= 1
            rows.append(rescaled(drawn, method, before))
    return rows


def summary(rows: list[Row]) -> str:
    lines = [f"{'kind':<12}{'problems':>9}{'good':>6}{'same status':>13}{'worst objective':>17}{'rounds, x':>11}"]
    for kind in dict.fromkeys(row.kind for row in rows):
        here = [row for row in rows if row.kind == kind]
        ratio = np.median([(row.rounds[1] + 1) / (row.rounds[0] + 1) for row in here])
        worst = max(row.worse for row in here)
        same, good = sum(row.before == row.after for row in here), sum(row.good for row in here)
        lines.append(f"{kind:<12}{len(here):>9}{good:>6}{same:>13}{worst:>17.1e}{ratio:>11.2f}")
    for row in (row for row in rows if not row.good):
        what = f"{row.before} -> {row.after}, {row.worse:.1e} above, rounds {row.rounds}"
        lines += [f"  seed {row.seed}, {row.kind}: {what}; {row.message[:150]}"]
    return "\n".join(lines)


if __name__ == "__main__":
    asked = sys.argv[1:]
    print(summary(study(int(asked[0]) if asked else 50, asked[1] if len(asked) > 1 else "Exact")))
