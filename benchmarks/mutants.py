"""``python -m benchmarks.mutants graphreg/verify.py tests/certificate/test_checker*.py``: change one place of a file at
a time, and list the changes that its tests do not see. Exit code 1 where there are any.

A change: another comparison, sign, operation or constant, `and` for `or`, a condition turned round, `max` for `min`, a
check left out. Each is tried in a process of its own, forked when everything else is imported, until a test fails.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

OPERATIONS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
}
NAMES = {"max": "min", "min": "max", "all": "any", "any": "all"}
SECONDS = 60  # that a change may take; one that takes longer is seen


def changes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The place, as a number in `ast.walk`, and the kind of every change."""
    skipped = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Slice) for inner in ast.walk(node)}
    for place, node in enumerate(ast.walk(tree)):
        if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in OPERATIONS:
            yield place, "operation"
        elif isinstance(node, ast.Compare):
            yield from ((place, f"comparison {k}") for k, op in enumerate(node.ops) if type(op) in OPERATIONS)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            yield place, "sign"
        elif isinstance(node, (ast.If, ast.IfExp)):
            yield place, "condition"
        elif isinstance(node, ast.Name) and node.id in NAMES:
            yield place, "name"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield place, "left out"
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and id(node) not in skipped:
            yield place, "constant"


def changed(source: str, place: int, kind: str) -> tuple[ast.Module, str]:
    """The tree with a change, and what it says now."""
    tree = ast.parse(source)
    node: Any = next(node for k, node in enumerate(ast.walk(tree)) if k == place)
    before = ast.unparse(node).splitlines()[0]
    if kind == "operation":
        node.op = OPERATIONS[type(node.op)]()
    elif kind.startswith("comparison"):
        k = int(kind.split()[1])
        node.ops[k] = OPERATIONS[type(node.ops[k])]()
    elif kind == "sign":
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif kind == "condition":
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif kind == "name":
        node.id = NAMES[node.id]
    elif kind == "left out":
        node.value = ast.Constant(None)
    else:
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    ast.fix_missing_locations(tree)
    return tree, f"line {node.lineno}: {before[:90]}  ->  {ast.unparse(node).splitlines()[0][:90]}"


def installed(tree: ast.Module, path: Path) -> None:
    """The module as it is changed, in place of the one that tests would import."""
    name = ".".join(path.with_suffix("").parts)
    package, _, last = name.rpartition(".")
    module = ModuleType(name)
    module.__file__, module.__package__ = str(path.absolute()), package
    sys.modules[name] = module
    exec(compile(tree, str(path), "exec"), module.__dict__)
    setattr(importlib.import_module(package), last, module)


def seen(tree: ast.Module, path: Path, tests: list[str]) -> bool:
    """Whether a test fails."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 1
        try:
            import pytest

            installed(tree, path)
            code = int(pytest.main([*tests, "-x", "-q", "-p", "no:cacheprovider"]))
        finally:
            os._exit(min(code, 1))
    return os.waitpid(child, 0)[1] != 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("file", type=Path, help="relative to the folder that modules are imported from")
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--most", type=int, help="so many changes, drawn at random; all, if left out")
    parser.add_argument("--preload", nargs="*", default=["pytest", "numpy", "networkx", "graphreg"])
    args = parser.parse_args()
    for name in args.preload:
        importlib.import_module(name)
    source = args.file.read_text()
    if not _unchanged(source, args.file, args.tests):
        print("The tests fail without any change.")
        return 2
    places = list(changes(ast.parse(source)))
    if args.most is not None and args.most < len(places):
        places = sorted(random.Random(0).sample(places, args.most))
    left, start = 0, time.monotonic()
    for place, kind in places:
        tree, what = changed(source, place, kind)
        if not seen(tree, args.file, args.tests):
            left += 1
            print(f"not seen: {what}", flush=True)
    print(f"{len(places) - left} of {len(places)} changes are seen, in {time.monotonic() - start:.0f} s")
    return int(left > 0)


def _unchanged(source: str, path: Path, tests: list[str]) -> bool:
    return not seen(ast.parse(source), path, tests)


if __name__ == "__main__":
    sys.exit(main())
