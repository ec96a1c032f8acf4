"""The survey of the house: its figures, beside what they are to become.

``make house`` (``python tests/survey.py``) prints them; tests/house/test_survey.py holds the figures that do not depend
on the machine as limits. The house has two circles: the core (declare, compile, lower, certify, prove) and what stands
around it. `HOUSE` says which room of them a file belongs to, wherever its folder is.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from rooms import FACE, PACKAGE, ROOT, every_import, path_of, trees

Node = TypeVar("Node", bound=Hashable)

CORE = {  # from the ground up
    "base": "base checks errors version",
    "inputs": "inputs",
    "terms": "terms",
    "form": "form",
    "oracles": "oracles",
    "network": "network",
    "certificate": "certificate verify",
    "compiling": "compiling",
    "running": "running",
    "methods": "methods",
    "judging": "judging",
    "problem": "problem",
    "catalogue": "catalogue",
}
AROUND = {
    "fast": "fast methods/dynamic_programming",
    "saving": "saving",
    "distributed": "distributed mpi",
    "statistics": "theory inference tuning",
    "workbench": "methods/baselines testing auditing comparing datasets",
    "show": "plots mathml reporting",
    "reading_cvxpy": "reading_cvxpy reading_prox",
    "conic": "conic",
    FACE: FACE,  # the public names; what follows is written as a user would write it
    "shells": "cli __main__ fitting model_file mpi/command mpi/__main__ sklearn neural",
}
HOUSE = {place: room for room, places in {**CORE, **AROUND}.items() for place in places.split()}
FLOORS = tuple({**CORE, **AROUND})
INLINED = ("<module>", "<listcomp>", "<dictcomp>", "<setcomp>")  # no calls in newer versions of Python


def room_of(path: Path) -> str:
    """The room of the house that a file belongs to: of the places in `HOUSE` the longest that holds it."""
    name = path.relative_to(PACKAGE).with_suffix("").as_posix()
    return HOUSE[max((place for place in HOUSE if holds(place, name)), key=len)]


def holds(place: str, name: str) -> bool:
    """True where a file, by its name without suffix, is a place or lies in it; ``folder/_*`` is what is private
    there."""
    return name == place or name.startswith(place.removesuffix("*") if place.endswith("*") else f"{place}/")


# ---- lines and functions ---------------------------------------------------------------------------------------------
IMPORTS = (ast.Import, ast.ImportFrom)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def code_lines(path: Path) -> frozenset[int]:
    """The lines of a file that are code: no comments, docstrings, blank lines and imports."""
    lines = enumerate(map(str.strip, path.read_text(encoding="utf-8").splitlines()), 1)
    written = {k for k, line in lines if line and not line.startswith("#")}
    return frozenset(written.difference(*map(_span, _not_code(trees()[path]))))


def _not_code(tree: ast.Module) -> Iterable[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, IMPORTS):
            yield node
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0]


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


@cache
def functions() -> tuple[tuple[str, int, int], ...]:
    """Each function with its place, its lines of code and its parameters beside ``self``."""
    return tuple(
        (
            f"{path.relative_to(ROOT)}:{node.lineno} {node.name}",
            len(code_lines(path) & {*_span(node)}),
            parameters(node),
        )
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
    )


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(given) - (given[:1] in (["self"], ["cls"]))


# ---- arrows and circles ----------------------------------------------------------------------------------------------
@cache
def arrows() -> dict[tuple[str, str], list[str]]:
    """From which room to which, and the imports that it stands for: those inside functions and for types count."""
    out: dict[tuple[str, str], list[str]] = {}
    for path, found in every_import():
        if found.layer is not None:
            here, there = room_of(path), room_of(_file(found.module))
            line = f"{path.relative_to(ROOT)}:{found.line} imports {found.name}"
            out.setdefault((here, there), []).append(line)
    return {pair: lines for pair, lines in out.items() if pair[0] != pair[1]}


def upwards() -> dict[tuple[str, str], list[str]]:
    """The arrows to a room that stands above, or outside of the core."""
    return {pair: each for pair, each in arrows().items() if FLOORS.index(pair[0]) < FLOORS.index(pair[1])}


def largest_circle(*, deferred: bool, types: bool) -> int:
    """The number of files of the largest set of which each reaches each by imports; 0 where there is none."""
    graph: dict[Path, set[Path]] = {path: set() for path in trees()}
    for path, found in every_import():
        if found.layer is not None and (deferred or not found.in_function) and (types or not found.for_types):
            graph[path].add(_file(found.module))
    return max((len(each) for each in circles(graph)), default=0)


def circles(graph: Mapping[Node, Iterable[Node]]) -> list[set[Node]]:
    """The strongly connected components of more than one node, by Tarjan's algorithm."""
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    out: list[set[Node]] = []

    def visit(node: Node) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph[node]:
            if other not in number:
                visit(other)
            low[node] = min(low[node], low[other] if other in low else number[other])
        if low[node] == number[node]:
            found = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            low.update(dict.fromkeys(found, len(graph)))  # nobody gets back from here
            if len(found) > 1:
                out.append(found)

    for node in graph:
        if node not in number:
            visit(node)
    return out


def _file(module: str) -> Path:
    path = path_of(module)
    assert path is not None, module
    return path


# ---- what an import loads, and what a solve passes -------------------------------------------------------------------
LOADED = """
import json, sys
import graphreg
print(json.dumps(sorted(sys.modules)))
"""
SECONDS = """
import importlib, json, sys, time
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
began = time.process_time()
import graphreg
print(time.process_time() - began)
"""
SOLVED = """
import json, os, sys
import networkx as nx
import numpy as np
import graphreg as gr

PACKAGE, INLINED = json.loads(sys.argv[1])

def problem():
    rng = np.random.default_rng(0)
    X = {k: rng.normal(size=(5, 2)) for k in range(10)}
    data = gr.NodeData.from_dict({k: (X[k], X[k] @ [1.0, -1.0 if k < 5 else 1.0]) for k in X})
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(10), gr.L2()))

def passed(method):
    found, depth, most = set(), 0, 0
    def look(frame, event, value):
        nonlocal depth, most
        code = frame.f_code
        ours = code.co_filename.startswith(PACKAGE) and code.co_name not in INLINED
        if event in ("call", "return") and ours:
            depth += 1 if event == "call" else -1
            most = max(most, depth)
            found.add((code.co_filename, code.co_firstlineno))
    given = problem()
    sys.setprofile(look)
    given.solve(method)
    sys.setprofile(None)
    return len({name for name, _ in found}), len(found), most

methods = {"PrimalDual": gr.PrimalDual(), "Exact": gr.Exact()}
for method in methods.values():
    problem().solve(method)  # what is imported and prepared once
print(json.dumps({name: passed(method) for name, method in methods.items()}))
"""


def run(code: str, *arguments: object) -> str:
    """The output of a program that is run in a process of its own, on one thread."""
    alone = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    command = [sys.executable, "-c", code, *map(json.dumps, arguments)]
    environment = {**os.environ, **alone, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def loaded() -> tuple[str, ...]:
    """The modules that ``import graphreg`` loads, ours and others'."""
    return tuple(json.loads(run(LOADED)))


def ours() -> int:
    return sum(name.partition(".")[0] == "graphreg" for name in loaded())


def seconds() -> float:
    """Processor seconds of ``import graphreg`` where numpy and scipy are imported before; the least of five."""
    theirs = [name for name in loaded() if name.partition(".")[0] in ("numpy", "scipy") and "<" not in name]
    return min(float(run(SECONDS, theirs)) for _ in range(5))


@cache
def passed() -> dict[str, tuple[int, int, int]]:
    """The files, the functions and the depth of calls that a second solve of a chain of ten nodes passes."""
    return json.loads(run(SOLVED, (str(PACKAGE), INLINED)))


# ---- the table -------------------------------------------------------------------------------------------------------
Figure = Callable[[], float]
FIGURES: dict[str, tuple[Figure, float | None]] = {  # each with what it is to become
    "lines of code": (lambda: sum(len(code_lines(path)) for path in trees()), 42_000),
    "lines of code in the core": (lambda: sum(len(code_lines(p)) for p in trees() if room_of(p) in CORE), 20_000),
    "files": (lambda: len(trees()), 430),
    "rooms": (lambda: len({room_of(path) for path in trees()}), None),
    "arrows between rooms": (lambda: len(arrows()), None),
    "arrows upwards": (lambda: len(upwards()), 3),
    "largest circle of files at load": (lambda: largest_circle(deferred=False, types=False), 0),
    "with later imports": (lambda: largest_circle(deferred=True, types=False), None),
    "with types too": (lambda: largest_circle(deferred=True, types=True), 25),
    "functions over 40 lines": (lambda: sum(lines > 40 for _, lines, _ in functions()), None),
    "functions over 60 lines": (lambda: sum(lines > 60 for _, lines, _ in functions()), None),
    "functions with more than 6 parameters": (lambda: sum(count > 6 for _, _, count in functions()), None),
    "modules that an import loads": (ours, 150),
    "PrimalDual on a chain: files": (lambda: passed()["PrimalDual"][0], 45),
    "PrimalDual on a chain: functions": (lambda: passed()["PrimalDual"][1], 300),
    "PrimalDual on a chain: depth": (lambda: passed()["PrimalDual"][2], 20),
    "Exact on a chain: files": (lambda: passed()["Exact"][0], None),
    "Exact on a chain: functions": (lambda: passed()["Exact"][1], None),
    "Exact on a chain: depth": (lambda: passed()["Exact"][2], None),
}
OF_THE_MACHINE: dict[str, tuple[Figure, float | None]] = {
    "processor seconds of an import beyond numpy and scipy": (seconds, 0.25),
}


def table() -> str:
    rows = []
    for name, (figure, aim) in {**FIGURES, **OF_THE_MACHINE}.items():
        value = figure()
        shown = f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
        rows.append(f"{name:<55}{shown:>10}{'' if aim is None else f'{aim:>10,}'}".rstrip())
    head = f"{'':<55}{'now':>10}{'aim':>10}"
    ups = [f"  {here} -> {there}: {len(each)}, as {each[0]}" for (here, there), each in upwards().items()]
    return "\n".join([head, *rows, "", "arrows upwards, by imports:", *ups])


if __name__ == "__main__":
    print(table())
