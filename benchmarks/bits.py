"""Iterates and ledgers on parts against whole arrays, by their digests; a study of ``python -m benchmarks.clusters``.

Every method that runs on parts goes through random problems to which it applies: on whole arrays, on parts of this
process, and on the ranks of one MPI job per number of ranks.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.distributed import InProcess
from graphreg.form import Form
from graphreg.methods import METHODS, AbstractIteration
from graphreg.network import Ledger, LocalView, arcs_of
from graphreg.running import Budget

ROUNDS = 15
SEEDS = 5000  # among which there are problems for every method
PARTS = (1, 2, 3, 5)
RANKS = (1, 2, 4)

Seeds = dict[str, list[int]]  # by method
Digests = dict[str, dict[str, str]]  # by method and seed


DRAWN = (  # nodes that are away, and samples that are drawn
    gr.FedADMM(batch=2, availability=0.6),
    gr.SubgradientDescent(batch=2, average="suffix"),
    gr.AsyncL2GD(batch=1),
)


def methods() -> list[AbstractIteration]:
    """Those that run on parts, as they are, and with options that draw numbers."""
    known = [method for method in METHODS if isinstance(method, AbstractIteration) and not method.central]
    return [method for method in known if type(method).judge is AbstractIteration.judge] + list(DRAWN)


def applicable(many: int) -> Seeds:
    """For each method the seeds of so many problems."""
    found: Seeds = {method.label: [] for method in methods()}
    for seed in range(SEEDS):
        wanted = [method for method in methods() if len(found[method.label]) < many]
        if not wanted:
            break
        form = random_problem(seed).problem.form.frozen()
        for method in wanted:
            if not method.missing(form):
                found[method.label].append(seed)
    return found


def digest(method: AbstractIteration, view: LocalView) -> str:
    """Of the points of all rounds, of what is gathered at the end, and of all messages."""
    found = blake2b(digest_size=16)
    with np.errstate(over="ignore", invalid="ignore"):
        state = method.init(view, None)
        for k in range(ROUNDS + 1):
            state = method.step(state) if k else state
            w, flows, prices = method.point(state)
            for each in (w, *(flows or ()), *(prices or ())):
                found.update(np.ascontiguousarray(each).tobytes())
    for name, value in sorted(method.gathered(state).items()):
        found.update(name.encode() + (np.asarray(value).tobytes() if isinstance(value, np.ndarray) else b""))
    sent = view.engine.ledger
    found.update(sent.by_edge().to_csv().encode() + sent.by_node().to_csv().encode())
    return found.hexdigest()


def whole(form: Form) -> LocalView:
    return LocalView(form, InProcess(Ledger(arcs_of(form), form.labels)), 1)


def hosted(method: AbstractIteration, form: Form, engine: Any) -> str:
    """The digest of a run on an engine."""
    view = whole(form)
    assert view.engine.ledger.arcs is not None
    with engine.hosting(method, form, view.engine.ledger.arcs, 1) as coordinator:
        return digest(coordinator, view)


def collected(seeds: Seeds, find: Callable[[AbstractIteration, Form], str]) -> Digests:
    out: Digests = {}
    for method in methods():
        forms = ((seed, random_problem(seed).problem.form.frozen()) for seed in seeds[method.label])
        out[method.label] = {str(seed): find(method, form) for seed, form in forms}
    return out


def on_ranks(file: Path) -> None:
    """The work of each rank of a job with the seeds of a file; the first one puts the digests in their place."""
    engine, seeds = gr.MPI(), json.loads(file.read_text())

    def find(method: AbstractIteration, form: Form) -> str:
        return engine.everywhere(form, method, Budget(), lambda: hosted(method, form, engine))

    found = collected(seeds, find)
    from graphreg.distributed import world

    if world().rank == 0:
        file.write_text(json.dumps(found))


def table(many: int, job: Callable[[int, Path], None]) -> bool:
    """Prints method x (problems, identical, differing); whether none differs. ``job`` runs `on_ranks` on so many."""
    seeds = applicable(many)
    alone = collected(seeds, lambda method, form: digest(method, whole(form)))
    others = {f"{k} parts": collected(seeds, lambda m, form, k=k: hosted(m, form, gr.Parts(k))) for k in PARTS}
    with tempfile.TemporaryDirectory() as folder:
        for ranks in RANKS:
            file = Path(folder) / f"{ranks}.json"
            file.write_text(json.dumps(seeds))
            job(ranks, file)
            others[f"{ranks} ranks"] = json.loads(file.read_text())
    print(f"{ROUNDS} rounds each on {', '.join(others)}, against whole arrays\n")
    print("| method | problems | runs identical | differing |\n|---|---|---|---|")
    wrong = list[str]()
    for name, expected in alone.items():
        runs = [(where, seed, found[name][seed]) for where, found in others.items() for seed in expected]
        bad = [f"{name}, seed {seed}, {where}" for where, seed, each in runs if each != expected[seed]]
        print(f"| {name} | {len(expected)} | {len(runs) - len(bad)} | {len(bad)} |")
        wrong += bad
    print("\n".join(["", *wrong]) if wrong else "")
    return not wrong
