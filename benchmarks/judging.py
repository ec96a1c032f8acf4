"""Points from elsewhere, judged: is the gap that is proved that of the point itself?

    python -m benchmarks.judging [number of problems]

Problems of `graphreg.datasets.random_problem` of all kinds. Judged are points at distances of 1e-3 to 1e-12 (relative
to the size of the optimum) from the optimum, and iterates of algorithms that know nothing of certificates, w alone:
Condat-Vu, the subgradient method and L-BFGS, written here or scipy's. Exit code 1 where a gap is wider than
1e-6 |P| + 2 (P(w) - P*), or a bound is refused by exact arithmetic (``graphreg.verify``).
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from tqdm import tqdm

from graphreg.certificate import common
from graphreg.datasets import random_problem
from graphreg.errors import GraphregError, ProofError
from graphreg.form import Form
from graphreg.judging import Judgement
from graphreg.terms.losses import AbstractSmoothLoss
from graphreg.verify import NotProvedError, check

DISTANCES = (1e-3, 1e-6, 1e-9, 1e-12)
GAP = 1e-6


@dataclass(frozen=True)
class Row:
    """One point: its gap, what it may be at most, its suboptimality, and what came of the proof of its bounds."""

    seed: int
    point: str
    judged: Judgement
    most: float
    suboptimality: float
    proof: str
    seconds: float

    @property
    def good(self) -> bool:
        return self.judged.gap <= self.most and self.proof != "REFUSED"


# ---- algorithms without a dual, as anybody writes them
def gradient(form: Form, w: Any) -> Any:
    return sum(block.adjoint(block.prices(w), form.shape) for block in form.samples)


def condat_vu(form: Form) -> Iterator[Any]:
    curvature = sum(np.abs(block.sums(block.curvatures(np.zeros(form.shape)))).sum() for block in form.samples)
    sigma = curvature / (4.0 * max(form.degree().max(), 1.0))
    tau = 1.0 / (curvature / 2.0 + 2.0 * sigma * max(form.degree().max(), 1.0))
    w, flows = np.zeros(form.shape), form.nothing().flows
    while True:
        pull = gradient(form, w)
        for edge, u in zip(form.edges, flows, strict=True):
            edge.add_adjoint(u, pull)
        new = w - tau * pull
        ahead = 2.0 * new - w
        flows = tuple(
            e.penalty.dual_prox(u + sigma * e.difference(ahead), np.full(len(u), sigma), e.weight)
            for e, u in zip(form.edges, flows, strict=True)
        )
        w = new
        yield w


def subgradient(form: Form) -> Iterator[Any]:
    w, k, first = np.zeros(form.shape), 0, 0.0
    while True:
        g, k = gradient(form, w), k + 1
        for edge in form.edges:
            edge.add_adjoint(edge.weight[:, None] * edge.penalty.subgradient(edge.difference(w)), g)
        first = first or float(np.linalg.norm(g)) or 1.0
        w = w - form.step_length / (first * np.sqrt(k)) * g
        yield w


def l_bfgs(form: Form) -> Any:
    def both(x: Any) -> tuple[float, Any]:
        w = x.reshape(form.shape)
        g = gradient(form, w)
        for edge in form.edges:
            edge.add_adjoint(edge.weight[:, None] * edge.penalty.subgradient(edge.difference(w)), g)
        return form.primal(w), g.ravel()

    return minimize(both, np.zeros(form.n * form.d), jac=True, method="L-BFGS-B").x.reshape(form.shape)


def points(form: Form, optimum: Any, seed: int) -> Iterator[tuple[str, Any]]:
    rng, size = np.random.default_rng(seed), float(np.sqrt(np.mean(optimum**2))) or 1.0
    for distance in DISTANCES:
        yield f"optimum + {distance:g}", optimum + distance * size * rng.standard_normal(optimum.shape)
    smooth = all(isinstance(b.loss, AbstractSmoothLoss) and b.loss.smoothness() < np.inf for b in form.samples)
    free = all(np.isfinite(edge.penalty.value(np.ones((1, form.width(edge))))).all() for edge in form.edges)
    if smooth:
        yield "Condat-Vu", next(islice(condat_vu(form), 1000, None))
    if free:
        yield "subgradient", next(islice(subgradient(form), 1000, None))
        yield "L-BFGS", l_bfgs(form)


# ---- judged
def rows(seed: int, folder: Path) -> Iterator[Row]:
    problem = random_problem(seed).problem
    found = problem.solve(gap=1e-11, on_failure="return")
    best = found.certificate
    if found.status == "unattained" or not best.holds(1e-8):
        return  # no optimum is known to measure by
    form = problem.form
    with np.errstate(all="ignore"):  # some diverge
        some = list(points(form, best.w, seed))
    for name, w in some:
        if not np.isfinite(w).all():
            continue
        start = time.perf_counter()
        judged = problem.certify(w, gap=GAP)
        seconds = time.perf_counter() - start
        suboptimality = max(judged.primal - best.primal, 0.0)
        most = GAP * max(abs(judged.primal), common(form).floor) + 2.0 * (suboptimality + best.gap)
        yield Row(seed, name, judged, most, suboptimality, proof_of(judged, folder), seconds)


def proof_of(judged: Judgement, folder: Path) -> str:
    try:
        judged.prove(folder / "proof.json")
        check((folder / "proof.json").read_bytes())
    except NotProvedError:
        return "REFUSED"
    except (ProofError, GraphregError) as error:
        return f"none: {error}"
    return "proved"


def main(count: int) -> int:
    done: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, tqdm(total=count, desc="problems", disable=None) as bar:
        seed = judged = 0
        while judged < count:
            new = list(rows(seed, Path(folder)))
            done += new
            seed, judged = seed + 1, judged + bool(new)
            bar.update(bool(new))
    by_point: dict[str, list[Row]] = defaultdict(list)
    for row in done:
        by_point[row.point].append(row)
    print(f"{'point':16}{'judged':>8}{'within':>8}{'gap / suboptimality':>21}{'90%':>8}{'proved':>8}{'seconds':>9}")
    for name, some in by_point.items():
        ratios = [r.judged.gap / r.suboptimality for r in some if r.suboptimality > 1e-9 * abs(r.judged.primal)]
        middle, high = np.quantile(ratios, (0.5, 0.9)) if ratios else (np.nan, np.nan)
        good, proved = sum(r.good for r in some), sum(r.proof == "proved" for r in some)
        seconds = np.median([r.seconds for r in some])
        print(f"{name:16}{len(some):8}{good:8}{middle:21.4f}{high:8.3f}{proved:8}{seconds:9.3f}")
    steps: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for row in done:
        for k, step in enumerate(row.judged.steps):
            steps[step.name].append((step.seconds, k == len(row.judged.steps) - 1))
    print(f"\n{'step':20}{'taken':>8}{'the last':>10}{'median s':>10}{'sum s':>8}")
    for name, some in steps.items():
        seconds = [s for s, _ in some]
        print(f"{name:20}{len(some):8}{sum(last for _, last in some):10}{np.median(seconds):10.3f}{sum(seconds):8.1f}")
    bad = [row for row in done if not row.good]
    for row in bad:
        print(f"problem {row.seed}, {row.point}: gap {row.judged.gap:.3g}, at most {row.most:.3g}; {row.proof}")
    print(f"{len(done)} points of {judged} problems: {len(bad)} wide or refused")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
