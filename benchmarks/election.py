"""``python -m benchmarks.election DIR``: counties of the election of 2020 with the data of every state in a file of its
own, on one machine and on an MPI job with a group of states per rank; and what crosses state lines where every state is
a part of its own. DIR holds us_election_2020_counties.csv.gz and us_county_adjacency.csv.gz."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import graphreg as gr
from graphreg import mpi
from graphreg.distributed.parts.joint import solve_jointly
from graphreg.distributed.parts.wire import Switchboard, ThreadWire
from graphreg.running import Budget

from .clusters import ROOT, THREADS

PREDICTORS = {"education": "EDU685213", "income": "INC110213", "density": "POP060210"}
GAP = 1e-8
MODEL = f"""
[data]
file = "{{site}}/samples.csv"
node = "fips"
target = "share"
features = {list(PREDICTORS)}
intercept = true
[graph]
edges = "{{site}}/edges.csv"
[loss]
family = "SquaredLoss"
[total_variation]
penalty = "L2"
strength = 0.05
[node_penalty]
penalty = "SquaredL2"
strength = 0.01
[solve]
method = "PrimalDual"
gap = {GAP}
"""


def write(source: Path, folder: Path) -> list[str]:
    """The files of all states, which are returned: the Democrats' share of both parties' votes, and three predictors in
    units that every state can tell (hundredths, ten thousands, logarithms)."""
    counties: Any = pd.read_csv(source / "us_election_2020_counties.csv.gz", dtype={"fips": str})
    pairs: Any = pd.read_csv(source / "us_county_adjacency.csv.gz", dtype=str)
    frame = pd.DataFrame({"fips": counties["fips"], "state": counties["state"]})
    frame["share"] = counties["votes_dem"] / (counties["votes_dem"] + counties["votes_gop"])
    frame["education"] = counties[PREDICTORS["education"]] / 100
    frame["income"] = counties[PREDICTORS["income"]] / 1e5
    frame["density"] = np.log1p(counties[PREDICTORS["density"]]) / 10
    state = dict(zip(frame["fips"], frame["state"], strict=True))
    known = pairs[pairs["fips_a"].isin(state) & pairs["fips_b"].isin(state)]
    ends = [known[end].map(state) for end in ("fips_a", "fips_b")]
    states = sorted(set(frame["state"]))
    for each in states:
        (folder / each).mkdir()
        frame[frame["state"] == each].drop(columns="state").to_csv(folder / each / "samples.csv", index=False)
        known[(ends[0] == each) | (ends[1] == each)].to_csv(folder / each / "edges.csv", index=False)
    (folder / "model.toml").write_text(MODEL)
    return states


def by_states(folder: Path, states: list[str]) -> list[Any]:
    """The answer of every state, each a thread that reads its own files alone."""
    board, out = Switchboard(len(states)), [None] * len(states)

    errors: list[Exception] = []

    def run(k: int) -> None:
        try:
            read(k)
        except Exception as error:  # noqa: BLE001
            errors.append(error)
            board.break_off()

    def read(k: int) -> None:
        file = gr.read_model(folder / "model.toml", sites=[states[k]])
        own = {label for table in file.samples for label in table.labels}
        budget = Budget(GAP, seed=0, progress=False)
        out[k] = solve_jointly(file.problem.form.frozen(), own, gr.PrimalDual(), budget, ThreadWire(board, k))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(states))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return out


def main() -> None:
    source = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        states = write(source, folder)
        whole = gr.read_model(folder / "model.toml").solve()
        bounds = whole.certificate
        print(f"one machine: {whole.status}, [{bounds.dual:.12g}, {bounds.primal:.12g}], {whole.rounds} rounds, "
              f"{len(whole.labels):,} counties of {len(states)} states")  # fmt: skip
        for ranks in (1, 2):
            command = [str(Path(sys.executable).parent / "mpiexec"), "-n", str(ranks), "--oversubscribe"]
            command += [
                sys.executable,
                "-m",
                "graphreg.mpi",
                str(folder / "model.toml"),
                "--out",
                str(folder / f"out{ranks}"),
            ]
            environment = {**os.environ, **ROOT, **THREADS}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            saved = mpi.SavedParts.open(folder / f"out{ranks}")
            found = np.array([saved[label] for label in whole.labels])
            far = np.abs(found - whole.coef).max() / np.abs(whole.coef).max()
            print(f"{ranks} ranks: {done.stdout.splitlines()[0]}")
            print(f"  farthest from one machine: {far:.1e} of the largest")
        parts = by_states(folder, states)
        sent = parts[0].sent
        print(f"{len(states)} parts: {parts[0]}")
        lines = [(int(sent.bytes[a, b]), int(a), int(b)) for a, b in np.argwhere(sent.bytes > 0)]
        print(f"crossed {len(lines)} state lines, one way each: {sent.bytes.sum():,} bytes in all; the most:")
        for size, a, b in sorted(lines, reverse=True)[:6]:
            print(f"  {states[a]} to {states[b]}: {int(sent.messages[a, b]):,} messages, {size:,} bytes")
        held = sum((folder / each / "samples.csv").stat().st_size for each in states)
        print(f"the samples, which stayed where they were, have {held:,} bytes")
        print(json.dumps({"dual": parts[0].dual, "primal": parts[0].primal}))


if __name__ == "__main__":
    main()
