"""``python -m benchmarks.checkers``: three checkers of proofs, on true, changed, forged and hostile files.

graphreg/verify.py, examples/verify.js (where node is), and graphreg-checker, whose rules are proved (``make checker``
builds it). They are to judge alike; and the first and the last are to say the same. Exit code 1 where they do not.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import graphreg as gr
from graphreg.certificate.proof.statement import text as written
from graphreg.datasets import random_problem
from graphreg.datasets.random_problems import LOSSES, PENALTIES
from graphreg.errors import GraphregError
from graphreg.verify import FORMAT, NotProvedError, check, number, spell

from .claims import KINDS, case
from .forged_claims import forged
from .forgeries import HOSTILE
from .honest import chain
from .soundness import written_rows

ROOT = Path(__file__).parents[1]
DATA = ROOT / "../shared/data"
PROVED_CHECKER = ROOT / "build/checker/graphreg-checker"
OTHER_LOSSES = ("ExpectileLoss", "SquaredEpsilonInsensitiveLoss", "GammaLoss")
REAL = ("30 states", "3,111 counties")
BUDGETED = ("verify.py", "graphreg-checker")
SMALL = 100_000  # bytes of the files that are changed
NODE = shutil.which("node")
SERVER = """
const { check } = require(process.argv[1]), fs = require("fs");
const judged = (path) => { try { const p = check(fs.readFileSync(path, "latin1")); return [p.within ? 8 : 0, p.hash]; }
  catch (error) { return [1, error.message]; } };
const answer = (path) => console.log(JSON.stringify(judged(path)));
require("readline").createInterface({ input: process.stdin }).on("line", answer);
"""
# A small process that starts the programs: what a large one starts is said to need as much memory as that does.
USED = """
import json, os, sys
program, paths, found = json.loads(sys.argv[1]), json.loads(sys.stdin.read()), []
for path in paths:
    pid = os.fork()
    if not pid:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(program[0], [*program, path])
    used = os.wait4(pid, 0)[2]
    found.append([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024])
print(json.dumps(found))
"""


# ---- true files ------------------------------------------------------------------------------------------------------
def true_files(count: int, path: Path) -> Iterator[tuple[str, str]]:
    """Proofs of answers: every loss with every penalty, rows of any kind, every claim, the states, the counties."""
    sources = (_families(), _rows(), _claims(), _held())
    shares = (count * 3 // 5, count // 6, count // 6, count)
    yield from _real(path)
    left = count - 2
    for source, share in zip(sources, shares, strict=True):
        made = ((name, _proof(solve, claims, path)) for name, solve, claims in source)
        for name, file in islice(((name, file) for name, file in made if file is not None), min(left, share)):
            left -= 1
            yield name, file


def _proof(solve: Callable[[], gr.Solution], claims: Any, path: Path) -> str | None:
    try:
        solve().prove(path, claims)
    except GraphregError:
        return None
    return path.read_text()


def _solved(model: Any, gap: float = 1e-7) -> gr.Solution:
    problem = model if isinstance(model, gr.Problem) else gr.Problem(model)
    return problem.solve(gap=gap, on_failure="return", progress=False)


Source = Iterator[tuple[str, Callable[[], gr.Solution], Any]]


def _families() -> Source:
    for seed in range(1000):
        for loss, penalty in product((*LOSSES, *OTHER_LOSSES), PENALTIES):
            at = [seed, (*LOSSES, *OTHER_LOSSES).index(loss), PENALTIES.index(penalty)]
            chosen = int(np.random.default_rng(at).integers(1 << 30))
            claims = ("near", "fused") if loss in ("squared", "mean") and penalty == "L1" else ("near",)
            yield (
                f"{loss}, {penalty}",
                lambda c=chosen, x=loss, y=penalty: _solved(random_problem(c, loss=x, penalty=y).model),
                claims,
            )


def _rows() -> Source:
    for seed in range(1000):
        yield "rows of any kind", lambda s=seed: _solved(written_rows.written(s).problem), ("near",)


def _claims() -> Source:
    for seed, kind in product(range(1000), KINDS):
        solution, claim = case(kind, seed).true
        yield f"claim {kind}", lambda s=solution: s, [claim]


def _held() -> Source:
    """Second differences along a path, some of them 0 at the optimum."""
    for seed in range(10_000):
        rng = np.random.default_rng([9, seed])
        n = int(rng.integers(4, 12))
        data = gr.NodeData.from_arrays(None, rng.normal(size=n).round(2), range(n))
        model = gr.MeanLoss(data) + float(rng.uniform(0.1, 1.0)) * gr.L1()(gr.w.along(range(n), 2))
        yield "claim held", lambda m=model: _solved(m, 1e-9), ["held", "near"]


def _real(path: Path) -> Iterator[tuple[str, str]]:
    """Of the election of 2020: the 30 states of more than 50 counties, 8 predictors; three numbers of all counties."""
    if not DATA.is_dir():
        print("the states and counties are left out: their data are not in ../shared/data")
        return
    import pandas as pd

    frame: Any = pd.read_csv(DATA / "us_election_2020_counties.csv.gz", dtype={"fips": str})
    predictors = list(frame.columns[-51:])
    ties: Any = pd.read_csv(DATA / "us_state_adjacency.csv")
    large = frame[frame["state_gt50"] == 1]
    X = ((large[predictors] - large[predictors].mean()) / large[predictors].std()).to_numpy()[:, :8]
    data = gr.NodeData.from_arrays(X, large["democrat"].to_numpy(), large["state"].to_numpy())
    known = set(large["state"])
    graph = gr.Graph.from_edges([e[:2] for e in ties.to_numpy().tolist() if set(e[:2]) <= known], nodes=sorted(known))
    model = gr.LogisticLoss(data) + 0.02 * gr.TotalVariation(graph, gr.L2()) + 0.01 * gr.NodePenalty(gr.SquaredL2())
    _solved(model).prove(path, ["near"])
    yield REAL[0], path.read_text()
    pairs: Any = pd.read_csv(DATA / "us_county_adjacency.csv.gz", dtype=str)
    here = set(frame["fips"])
    ends = [e for e in pairs.to_numpy().tolist() if set(e) <= here]
    share = frame["votes_dem"] / (frame["votes_dem"] + frame["votes_gop"])
    y = np.c_[share, ((frame[predictors] - frame[predictors].mean()) / frame[predictors].std()).to_numpy()[:, :2]]
    graph = gr.Graph.from_edges(ends, nodes=sorted(here))
    model = gr.MeanLoss(gr.NodeData.from_arrays(None, y, frame["fips"].to_numpy()))
    _solved(model + 0.05 * gr.TotalVariation(graph, gr.L2()), 1e-6).prove(path, ["near"])
    yield REAL[1], path.read_text()


# ---- changed files ---------------------------------------------------------------------------------------------------
NUMBER = re.compile(r"-?(0|[1-9a-f][0-9a-f]*)(p-?[1-9][0-9]*)?(/[1-9a-f][0-9a-f]*)?")
PARTS = ("flow", "price", "w", "claim", "number of the model", "structure")


def places(data: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values of a document."""
    if way:
        yield way
    if isinstance(data, (dict, list)):
        for key, each in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(each, (*way, key))


def at(data: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        data = data[key]
    return data


def changed(file: str, part: str, rng: np.random.Generator) -> str | None:
    """The file with one thing changed; None where it has none of these."""
    document = json.loads(file)
    roots: dict[str, tuple[Any, ...]] = {
        "flow": ("dual", "flows"),
        "price": ("dual", "prices"),
        "w": ("w",),
        "claim": ("claims",),
        "number of the model": ("model",),
        "structure": (),
    }
    way = roots[part]
    numeric = part not in ("structure", "claim")
    for _ in range(40):  # down a random way, as long as there is a choice
        data, here = at(document, way), way
        while isinstance(data, (dict, list)) and data and (numeric or len(here) == len(way) or rng.random() < 0.7):
            key = list(data)[rng.integers(len(data))] if isinstance(data, dict) else int(rng.integers(len(data)))
            data, here = data[key], (*here, key)
        if here == way or (numeric and not _is_number(data)):
            continue
        place, key = at(document, here[:-1]), here[-1]
        if part == "structure" or not (_is_number(data) or type(data) is int):
            _restructured(place, key, rng)
        else:
            place[key] = _other(data, rng)
        return json.dumps(document)
    return None


def _is_number(data: Any) -> bool:
    return isinstance(data, str) and NUMBER.fullmatch(data) is not None


def _other(value: Any, rng: np.random.Generator) -> Any:
    if type(value) is int:
        return [value - 1, value + 1, 0, 10**9 - 1][rng.integers(4)]
    found = number(value)
    x = Fraction(int(found.numerator), int(found.denominator))
    spread = [x * (1 + Fraction(sign, 1 << bits)) for sign in (-1, 1) for bits in (190, 100, 52, 20, 3)]
    near = [-x, 2 * x, Fraction(0), Fraction(int(rng.integers(-64, 64)), 16), x + Fraction(1, 1 << 150), *spread]
    chosen = near[rng.integers(len(near))]
    return spell(float(chosen)) if rng.random() < 0.5 else written(chosen)


WRONG: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "1",
    "-0",
    "01",
    "1p0",
    "x",
    [],
    {},
    [[]],
    "rows",
    "é",
    "0/1",
    "1/0",
)


def _restructured(place: Any, key: Any, rng: np.random.Generator) -> None:
    """A value is left out, doubled, of another type, or changes places with another."""
    kind = rng.integers(4)
    if kind == 0:
        del place[key]
    elif kind == 1 and isinstance(place, list):
        place.insert(key, place[key])
    elif kind == 1:
        place[f"{key}'"] = place[key]
    elif kind == 2:
        place[key] = WRONG[rng.integers(len(WRONG))]
    else:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        other = keys[int(rng.integers(len(keys)))]
        place[key], place[other] = place[other], place[key]


# ---- the checkers ----------------------------------------------------------------------------------------------------
def python(text: bytes) -> tuple[int, str]:
    """What verify.py ends with, and says."""
    if f'"{FORMAT}"'.encode() not in text:
        return 2, ""
    try:
        found = check(text, with_flint=False)
    except NotProvedError as error:
        return 1, f"NOT PROVED: {error}"
    return (0 if found.within is None else 8), str(found)


def proved(path: Path) -> tuple[int, str]:
    """What graphreg-checker does."""
    done = subprocess.run([PROVED_CHECKER, path], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.split("\nThis holds of")[0].rstrip("\n")


class Server:
    """verify.js, file by file."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        run = [str(NODE), "-e", SERVER, str(ROOT / "examples/verify.js")]
        self.process = subprocess.Popen(run, stdin=pipe, stdout=pipe, text=True)

    def __call__(self, path: Path) -> tuple[int, str]:
        given, taken = self.process.stdin, self.process.stdout
        assert given is not None
        assert taken is not None
        print(path, file=given, flush=True)
        status, said = json.loads(taken.readline())
        return status, said

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


# Where the words are not the same, though both refuse: what is named first, and what Python raises of itself.
BALANCE = re.compile(r"NOT PROVED: (.*?)flows and prices do not balance at ")
BUDGET = "the numbers grow too large"
OF_PYTHON = re.compile(r"NOT PROVED: .*?\b[A-Z]\w+Error: ")


def difference(first: tuple[int, str], last: tuple[int, str]) -> str:
    """What is different in two judgements: "" for nothing, "status", "words", or words that are argued."""
    if first == last:
        return ""
    if first[0] != last[0]:
        return "status"
    places = [BALANCE.match(each[1]) for each in (first, last)]
    if places[0] and places[1] and places[0][1] == places[1][1]:
        return "another place of what is left of the balance"
    if first[1].endswith(BUDGET) and last[1].endswith(BUDGET):
        return "the place where the numbers grow too large"
    return "an exception of Python" if first[0] == 1 and OF_PYTHON.match(first[1]) else "words"


@dataclass
class Tally:
    """How many files the checkers judged alike, by group."""

    files: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    worse: Counter[str] = field(default_factory=Counter)
    script: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)

    def add(self, group: str, name: str, first: Any, last: Any, other: Any) -> None:
        self.files[group] += 1
        self.accepted[group] += first[0] in (0, 8)
        what = difference(first, last)
        if what in ("status", "words"):
            self.worse[group] += 1
            self.shown.append(f"{group}, {name}:\n  verify.py {first}\n  proved    {last}")
        elif what:
            self.words[what] += 1
        if other is not None and (2 if first[0] == 2 else other[0]) != first[0]:
            self.script[group] += 1
            self.shown.append(f"{group}, {name}:\n  verify.py {first}\n  verify.js {other}")

    def report(self) -> bool:
        print(f"\n{'files':44}{'':>7}{'accepted':>10}{'proved differs':>16}{'verify.js differs':>19}")
        for group in self.files:
            counts = (self.files, self.accepted, self.worse, self.script)
            print(f"{group:44}{counts[0][group]:7d}{counts[1][group]:10d}{counts[2][group]:16d}{counts[3][group]:19d}")
        totals = [counts.total() for counts in (self.files, self.accepted, self.worse, self.script)]
        print(f"{'all':44}{totals[0]:7d}{totals[1]:10d}{totals[2]:16d}{totals[3]:19d}")
        print("\nrefused by both in other words:", dict(self.words) or 0)
        for line in self.shown[:40]:
            print(line[:900])
        return not self.worse and not self.script


def costs(program: list[str], paths: list[Path]) -> tuple[float, float]:
    """Seconds of the processor for all the files, and the largest memory in MB; each has a process of its own."""
    run = [sys.executable, "-I", "-S", "-c", USED, json.dumps(program)]
    done = subprocess.run(run, input=json.dumps([*map(str, paths)]), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return sum(seconds for seconds, _ in found), max(memory for _, memory in found)


def programs() -> dict[str, list[str]]:
    found = {
        "verify.py": [sys.executable, "-I", "-S", str(ROOT / "graphreg/verify.py"), "--no-flint"],
        "verify.js": [str(NODE), str(ROOT / "examples/verify.js")],
        "graphreg-checker": [str(PROVED_CHECKER)],
    }
    return {name: program for name, program in found.items() if program[0] != "None"}


def _costs(path: Path, files: dict[str, list[str]]) -> None:
    print(f"\n{'seconds of the processor, MB':32}{'files':>7}{'MB of them':>12}", end="")
    print("".join(f"{name:>26}" for name in programs()))
    for group, texts in files.items():
        paths = _written(path, texts)
        print(f"{group:32}{len(texts):7d}{sum(map(len, texts)) / 1e6:12.2f}", end="")
        found = (costs(program, paths) for program in programs().values())
        print("".join(f"{seconds:15.3f} s {memory:5.0f} MB" for seconds, memory in found))


class Judges:
    """All three, and what they found."""

    def __init__(self, folder: Path) -> None:
        self.path, self.tally = folder / "proof.json", Tally()
        self.server = Server() if NODE else None

    def __call__(self, group: str, name: str, text: str) -> None:
        self.path.write_text(text)
        first, last = python(text.encode()), proved(self.path)
        other = self.server(self.path) if self.server and group != "hostile" else None  # it has no budget
        self.tally.add(group, name, first, last, other)


def main() -> int:
    """Make the files, let them be judged, print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkers", description=__doc__)
    parser.add_argument("--true", type=int, default=600, help="proofs of answers")
    parser.add_argument("--changed", type=int, default=5000, help="of these with one thing changed")
    parser.add_argument("--keep", type=Path, help="a file that the true ones are written to, or read from")
    args = parser.parse_args()
    if not PROVED_CHECKER.exists():
        print("graphreg-checker is not built: see make checker")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path, judge = Path(folder) / "proof.json", Judges(Path(folder))
        true = _true(args, path)
        for name, text in true:
            judge("true", name, text)
        small = [text for _, text in true if len(text) < SMALL]
        rng = np.random.default_rng(0)
        for k in tqdm(range(args.changed), unit=" changed", disable=None):
            part = PARTS[k % len(PARTS)]
            text = changed(small[int(rng.integers(len(small)))], part, rng)
            if text is not None:
                judge(f"changed: {part}", str(k), text)
        for family, text, _ in forged():
            judge(f"forged: {family}", "", text)
        for name, write in HOSTILE.items():
            judge("hostile", name, write(chain("L1")))
        if judge.server:
            judge.server.close()
        good = judge.tally.report()
        real = {name: [text] for name, text in true if name in REAL}
        hostile = [write(chain("L1")) for write in HOSTILE.values()]
        _costs(path, {"true": [text for _, text in true]} | real)
        print("hostile files:", {name: costs(programs()[name], _written(path, hostile)) for name in BUDGETED})
    return int(not good)


def _written(path: Path, texts: list[str]) -> list[Path]:
    paths = [path.with_name(f"{k}.json") for k in range(len(texts))]
    for each, text in zip(paths, texts, strict=True):
        each.write_text(text)
    return paths


def _true(args: argparse.Namespace, path: Path) -> list[tuple[str, str]]:
    if args.keep and args.keep.exists():
        return [(name, text) for name, text in json.loads(args.keep.read_text())]
    true = list(tqdm(true_files(args.true, path), total=args.true, unit=" proofs", disable=None))
    if args.keep:
        args.keep.write_text(json.dumps(true))
    return true


if __name__ == "__main__":
    sys.exit(main())
