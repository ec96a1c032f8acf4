"""``python -m benchmarks.certificates``: a certificate alone, its seconds and its memory against the number of nodes.

A chain with 10 coordinates and 15 samples at each node. Flows are drawn inside their capacities; parameters and prices
are those that they lead to, as at the end of any solve. The first certificate of a problem plans how imbalances are
taken up; another, at other flows, has the plan. CPU seconds; memory is what a process held at most while it certified,
above what it held before: the data, the form and the point. Where squares are strictly convex they absorb what is left
of a look (``absorbed``), and no plan is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import graphreg as gr
from graphreg.certificate import Certifier, CheapBound
from graphreg.form import Form

from .memory import held, peak, peak_from_now
from .report import table
from .worker import Limits, limited

NODES = (300, 3_000, 30_000, 200_000)
D, SAMPLES, GAP = 10, 15, 1e-6
LOSSES = {"squared": gr.SquaredLoss, "logistic": gr.LogisticLoss}
HEADER = ("loss", "nodes", "route", "first s", "again s", "MB above the data", "charge")


def form_of(loss: str, n: int) -> Form:
    """The chain, with levels of 50 nodes."""
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(n), SAMPLES)
    X = rng.standard_normal((len(node), D))
    z = np.einsum("rj,rj->r", X, rng.standard_normal((n // 50 + 1, D))[node // 50])
    noise = rng.logistic(size=len(z))
    y = np.where(z + noise > 0.0, 1, -1) if loss == "logistic" else z + 0.3 * noise
    total = LOSSES[loss](gr.NodeData.from_arrays(X, y, node), scale="sum")
    ridge = gr.NodePenalty(gr.SquaredL2()) if loss == "logistic" else None
    model = total + 1.5 * gr.TotalVariation(gr.Graph.chain(n), gr.L2())
    return gr.Problem(model if ridge is None else model + 0.1 * ridge).form.frozen()


def points(form: Form) -> list[CheapBound]:
    """Two points, the better one behind: another certificate is made of what is better alone."""
    certifier, found = Certifier(form), list[CheapBound]()
    for size in (0.1, 0.05):
        flows = tuple(
            edge.clip(size * edge.weight[:, None] * np.random.default_rng(1).standard_normal(zero.shape))
            for edge, zero in zip(form.edges, form.nothing().flows, strict=True)
        )
        cheap = certifier.cheap_bound([np.zeros(form.shape)], flows)
        assert cheap is not None  # all nodes are strictly convex
        found.append(cheap)
    return sorted(found, key=lambda cheap: cheap.primal - cheap.gap)


def measured(loss: str, n: int, *, absorbed: bool) -> dict[str, float]:
    """Seconds of the first and of another certificate, what they held, and the rounding charged to the bound."""
    form = form_of(loss, n)
    given = [(cheap.at, *cheap.dual.point(cheap)) for cheap in points(form)]
    certifier, before, seconds = Certifier(form), held(), list[float]()
    peak_from_now()
    for w, point, at in given:
        began = time.process_time()
        certifier.propose_primal(w, GAP)
        certifier.propose_dual(point, at if absorbed else None, gap=GAP)
        seconds.append(time.process_time() - began)
    found = certifier.best()
    assert found.valid
    return {"first": seconds[0], "again": seconds[1], "MB": peak() - before, "charge": found.charge / abs(found.dual)}


def rows(losses: Sequence[str], nodes: Sequence[int], limits: Limits) -> list[tuple[str, ...]]:
    """One for each loss, number of nodes and route, measured in a process of its own."""
    cases = [(loss, n, route) for loss in losses for n in nodes for route in ("absorbed", "planned")]
    return [_row(*case, limits) for case in cases if case[0] == "squared" or case[2] == "planned"]


def _row(loss: str, n: int, route: str, limits: Limits) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        given = ("--case", loss, str(n), route, str(out))
        code, said = limited([sys.executable, "-m", "benchmarks.certificates", *given], limits, Path(folder) / "said")
        if code != 0:
            return loss, f"{n:,}", route, "", "", "", said.strip().splitlines()[-1]
        found = json.loads(out.read_text())
    return loss, f"{n:,}", route, *(f"{found[key]:.3g}" for key in ("first", "again", "MB", "charge"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificates", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=tuple(LOSSES))
    parser.add_argument("--case", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case is None:
        print(table(rows(asked.losses, asked.nodes, Limits(memory=8.0)), HEADER))
        return
    loss, n, route, out = asked.case
    measured(loss, 50, absorbed=route == "absorbed")  # once, so that imports are not timed
    Path(out).write_text(json.dumps(measured(loss, int(n), absorbed=route == "absorbed")))


if __name__ == "__main__":
    main()
