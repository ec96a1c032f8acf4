"""``python -m benchmarks.threads``: what threads save on very large problems, and that no bit depends on them.

Each number of threads solves the workload in a process of its own, turn by turn. Told are seconds by the clock and of
CPU of the solve alone, medians, beside the load of the machine, which is to be quiet: two threads on a core that others
use save nothing. ``--nodes`` makes the workload smaller; 10^6 nodes take some 8 GB.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from statistics import median

from .report import table
from .worker import ROOT, THREADS

HEADER = ("threads", "seconds", "of one", "CPU seconds", "GB", "rounds", "relative gap", "load", "bits")
GAP, DEGREE = 1e-4, 5


def main() -> int:
    """Exit code 1 where bits differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=float, default=4e5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--own", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.own is not None:
        print(json.dumps(_run(int(args.nodes), args.own)))
        return 0
    runs = [(count, _elsewhere(args.nodes, count)) for _ in range(args.repeats) for count in args.threads]
    known = {count: [found for each, found in runs if each == count] for count in args.threads}
    first, body = median(found["seconds"] for found in known[args.threads[0]]), list[tuple[str, ...]]()
    for count, found in known.items():
        seconds, cpu, size, load = (median(each[name] for each in found) for name in ("seconds", "cpu", "gb", "load"))
        said = [f"{x:.3g}" for x in (seconds, seconds / first, cpu, size)] + [str(found[0]["rounds"])]
        said += [f"{found[0]['gap']:.2g}", f"{load:.2g}", " ".join(sorted({each["bits"] for each in found}))]
        body.append((str(count), *said))
    print(table(body, HEADER))
    return int(len({found["bits"] for _, found in runs}) > 1)


def _elsewhere(nodes: float, count: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.threads", "--nodes", repr(nodes), "--own", str(count)]
    how = {**os.environ, **THREADS, "GRAPHREG_COMPILE": "early"}
    return json.loads(subprocess.run(command, env=how, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def _run(n: int, count: int) -> dict:
    from .generators import big
    from .solvers.own import as_problem

    as_problem(big("warm", 1000, 5000)).solve(gap=GAP, threads=count)  # what is compiled and imported is not counted
    problem = as_problem(big("threads", n, DEGREE * n))
    wall, cpu = time.perf_counter(), time.process_time()
    found = problem.solve(gap=GAP, progress=False, threads=count)
    seconds, spent = time.perf_counter() - wall, time.process_time() - cpu
    numbers = [found.coef, *found.certificate.dual_point.flows]
    return {
        "seconds": seconds,
        "cpu": spent,
        "rounds": found.rounds,
        "gap": found.certificate.relative_gap,
        "gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "load": os.getloadavg()[0],
        "bits": hashlib.sha256(b"".join(each.tobytes() for each in numbers)).hexdigest()[:12],
    }


if __name__ == "__main__":
    sys.exit(main())
