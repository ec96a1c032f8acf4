"""``python -m benchmarks.kernel FAMILY [--seeds 0:100]``: bounds of the kernel beside today's, at the same points.

Each problem is solved by the default method; next to the dual point of its certificate both make a lower bound. One
that lies above P at the point of the certificate, in exact arithmetic, is false: exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.soundness import families
from benchmarks.soundness.combined import combined, planted
from benchmarks.soundness.exact import below, exact
from benchmarks.wild import wild_problem
from graphreg.certificate import Certifier
from graphreg.errors import GraphregError

from .proposals import Proposals

FAMILIES: dict[str, Callable[[int], Any]] = {
    "singular": families.singular,
    "absorbed": families.absorbed,
    "combined": combined,
    "planted": planted,
    "wild": wild_problem,
}
WORSE = 1e-10  # of P: a bound that is lower by more is listed


def main() -> int:
    """Compare, print what differs, and say whether every bound of the kernel is true."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel", description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--seeds", default="0:100", metavar="FIRST:BEYOND")
    args = parser.parse_args()
    first, beyond = map(int, args.seeds.split(":"))
    counts = {"both": 0, "only today's": 0, "only the kernel's": 0, "worse": 0, "false": 0}
    seconds = np.zeros(2)
    for seed in range(first, beyond):
        try:
            kind, said = _compared(FAMILIES[args.family](seed), seconds)
        except GraphregError:  # refused
            continue
        for each in kind:
            counts[each] += 1
        if said:
            print(f"seed {seed}: {', '.join(kind)}: {said}", flush=True)
    print(args.family, counts, f"seconds: today {seconds[0]:.1f}, kernel {seconds[1]:.1f}")
    return int(counts["false"] > 0)


def _compared(drawn: Any, seconds: np.ndarray) -> tuple[list[str], str]:
    """Which of the two found a bound for one problem, and what is to be said of it."""
    problem = drawn.problem
    solution = problem.solve(gap=1e-7, seconds=5, progress=False, on_failure="return")
    found = solution.certificate
    certifier = Certifier(problem.form.frozen())
    began = time.process_time()
    today = certifier.enclosure(found.dual_point, certifier._middle).value
    between = time.process_time()
    new = Proposals(certifier.form)(found.dual_point, certifier._middle)
    seconds += between - began, time.process_time() - between
    value = float(new.lower.sum()) if new.whole else -np.inf
    judge, at = exact(drawn.plain), dict(zip(solution.labels, solution.coef, strict=True)) | solution.latent
    w = np.array([at[label] for label in judge.nodes], dtype=float)
    if np.isfinite(value) and np.isfinite(w).all() and not below(value, judge.at(w)):
        return ["false"], f"{value!r} is above P"
    if not np.isfinite(value):
        return (["only today's"], new.why) if np.isfinite(today) else ([], "")
    if not np.isfinite(today):
        return ["only the kernel's"], ""
    loss = (today - value) / max(abs(found.primal), 1e-300)
    return (["both", "worse"], f"lower by {loss:.1e} of P") if loss > WORSE else (["both"], "")


if __name__ == "__main__":
    sys.exit(main())
