"""``python -m benchmarks.proofs``: prove and check answers to random problems, and large ones; claims that hold and
claims that do not; files that are no proofs. Exit code 1 where a proof is refused, or something false is not."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from tqdm import tqdm

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.errors import GraphregError
from graphreg.verify import NotProvedError, check

from .claims import KINDS, case, outcome
from .forged_claims import accepted, forged
from .forgeries import HOSTILE, tampered
from .soundness.reals import ends
from .soundness.written_rows import Judge, reference, written

SECONDS = 2.0  # within which a hostile file is to be refused


@dataclass(frozen=True)
class Row:
    """One answer: what came of its proof, seconds of the processor, the proved gap over that of the certificate."""

    outcome: str
    prove: float = 0.0
    check: float = 0.0
    megabytes: float = 0.0
    ratio: float = float("nan")
    note: str = ""


def row(model: Any, path: Path, python_flint: bool, gap: float = 1e-7) -> Row:
    """Solve, prove, check."""
    from graphreg.certificate.proof import prove

    problem = model if isinstance(model, gr.Problem) else gr.Problem(model)
    solution = problem.solve(gap=gap, on_failure="return", progress=False)
    certificate = solution.certificate
    if not certificate.valid:
        return Row("no certificate")
    start = time.process_time()
    try:
        proved = prove(certificate, path, ("near",), python_flint=python_flint)
    except GraphregError as error:
        return Row("no proof", time.process_time() - start, note=str(error))
    middle = time.process_time()
    try:
        check(path.read_bytes(), python_flint)
    except NotProvedError as error:
        return Row("REFUSED", middle - start, note=str(error))
    seconds = middle - start, time.process_time() - middle
    size = float(proved.upper - proved.lower)
    ratio = size / certificate.gap if certificate.gap > 0 else float("nan")
    return Row("proved within a box" if proved.within else "proved", *seconds, os.path.getsize(path) / 1e6, ratio)


def of_rows(seed: int, path: Path, python_flint: bool) -> Row:
    """The same of a model written with ``gr.w``; judged by P in exact arithmetic at points that the drawing knows."""
    drawn = written(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": a point is all that is asked for
        w = reference(drawn)
    found, judge = row(drawn.problem, path, python_flint), Judge(drawn)
    if found.outcome != "proved":
        return found
    proof = check(path.read_bytes(), python_flint)
    known = [judge.at(drawn.inner), *([] if w is None else [judge.inside(w)])]
    if any(Fraction(*ends(proof.low)) > Fraction(*ends(at.upper)) for at in known if at.upper is not None):
        return replace(found, outcome="REFUSED", note="the lower bound lies above P at another point")
    return found


def large(n: int, d: int, samples: int) -> dict[str, Any]:
    """Models on a random geometric graph."""
    rng = np.random.default_rng(0)
    graph = nx.random_geometric_graph(n, 1.35 / np.sqrt(n), seed=1)
    X, node = rng.standard_normal((n * samples, d)), np.repeat(np.arange(n), samples)
    y = X.sum(axis=1) + rng.standard_normal(n * samples)
    squared = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node))
    logistic = gr.LogisticLoss(gr.NodeData.from_arrays(X, (y > 0).astype(int), node))
    lasso = 0.1 * gr.TotalVariation(graph, gr.L2())
    return {"squared": squared + lasso, "logistic": logistic + lasso + 1e-3 * gr.NodePenalty(gr.SquaredL2())}


def main() -> int:
    """Run the sweep and the large problems; print both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proofs", description=__doc__)
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 500), metavar=("FIRST", "BEYOND"))
    parser.add_argument("--rows", type=int, default=100, help="models with rows of any kind")
    parser.add_argument("--no-flint", action="store_true", help="the standard library alone")
    parser.add_argument("--nodes", type=int, default=3000, help="of the large problems; 0 leaves them out")
    parser.add_argument("--claims", type=int, default=50, help="true and false ones of each kind")
    parser.add_argument("--tampered", type=int, default=100, help="proofs with another digit")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        seeds = tqdm(range(*args.seeds), unit=" proofs", disable=None)
        rows = {seed: row(random_problem(seed).model, path, not args.no_flint) for seed in seeds}
        _report(rows)
        good = all(r.outcome != "REFUSED" for r in rows.values())
        if args.rows:
            seeds = tqdm(range(args.rows), unit=" proofs with rows", disable=None)
            rows = {seed: of_rows(seed, path, not args.no_flint) for seed in seeds}
            print("\nmodels with rows of any kind:")
            _report(rows)
            good &= all(r.outcome != "REFUSED" for r in rows.values())
        if args.nodes:
            good &= _large(args.nodes, path, not args.no_flint)
        if args.claims:
            good &= _claims(args.claims, path)
        good &= _forgeries(args.tampered, path, not args.no_flint)
        good &= _families(not args.no_flint)
    return int(not good)


def _large(n: int, path: Path, python_flint: bool) -> bool:
    good = True
    for name, model in large(n, 8, 5).items():
        r = row(model, path, python_flint, 1e-6)
        seconds = f"prove {r.prove:.1f} s, check {r.check:.1f} s"
        print(f"{n} nodes x 8, {name}: {r.outcome}, {seconds}, {r.megabytes:.1f} MB {r.note}")
        good &= r.outcome != "REFUSED"
    return good


def _claims(count: int, path: Path) -> bool:
    """The table of claims; whether all is as it should be."""
    print(
        f"\n{'claim':12}{'true: proved':>14}{'false: refused':>16}{'named':>10}{'forged: refused':>17}{'median s':>10}"
    )
    good = True
    for kind in KINDS:
        found = [outcome(case(kind, seed), path) for seed in tqdm(range(count), unit=f" {kind}", disable=None)]
        names = ("proved", "refused", "named", "forgery_refused")
        counts = [sum(getattr(each, name) for each in found) for name in names]
        proved, refused, named, forged = (f"{k} of {count}" for k in counts)
        seconds = float(np.median([each.seconds for each in found]))
        print(f"{kind:12}{proved:>14}{refused:>16}{named:>10}{forged:>17}{seconds:10.3f}")
        good &= counts == [count] * len(names)
    return good


def _forgeries(count: int, path: Path, python_flint: bool) -> bool:
    """Proofs with another digit, and hostile files; whether all are refused, the latter within seconds."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((9, 2)), rng.integers(0, 2, 9), np.repeat([0, 1, 2], 3))
    model = gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2()) + gr.NodePenalty(gr.SquaredL2())
    gr.Problem(model).solve().prove(path)
    proof = json.loads(path.read_text())
    refused = [_refused(json.dumps(tampered(proof, seed)), python_flint)[0] for seed in range(count)]
    print(f"\n{sum(refused)} of {count} tampered proofs are refused")
    hostile = {name: _refused(write(proof), python_flint) for name, write in HOSTILE.items()}
    slowest = max(hostile, key=lambda name: hostile[name][1])
    found = sum(each[0] for each in hostile.values())
    print(
        f"{found} of {len(hostile)} hostile files are refused; the slowest, {slowest}, in {hostile[slowest][1]:.2f} s"
    )
    return all(refused) and all(each and seconds < SECONDS for each, seconds in hostile.values())


def _families(python_flint: bool) -> bool:
    """The table of forged files by family; whether none is accepted."""
    files, found = Counter[str](), Counter[str]()
    for family, file, name in forged():
        files[family] += 1
        found[family] += accepted(file, name, python_flint)
    print(f"\n{'forged files':42}{'files':>7}{'accepted':>10}")
    for family, count in [*files.items(), ("all", files.total())]:
        print(f"{family:42}{count:7d}{found.total() if family == 'all' else found[family]:10d}")
    return not found.total()


def _refused(text: str, python_flint: bool) -> tuple[bool, float]:
    start = time.process_time()
    try:
        check(text.encode(), python_flint)
    except NotProvedError:
        return True, time.process_time() - start
    return False, time.process_time() - start


def _report(rows: dict[int, Row]) -> None:
    for what, count in Counter(r.outcome for r in rows.values()).most_common():
        print(f"{count:6d}  {what}")
    done = [r for r in rows.values() if r.outcome.startswith("proved")]
    for name in ("prove", "check", "ratio") if done else ():
        values = np.array([getattr(r, name) for r in done])
        low, middle, high = np.nanquantile(values, [0.0, 0.5, 1.0])
        print(f"  {name:>6}: median {middle:.4g}, from {low:.4g} to {high:.4g}, sum {np.nansum(values):.4g}")
    for seed, r in rows.items():
        if r.note:
            print(f"  seed {seed}: {r.outcome}: {r.note}")


if __name__ == "__main__":
    sys.exit(main())
