"""``make mutants``: change one place of what must be right at a time, and list what its tests do not see: of the
checker of proofs, of the kernel that makes all bounds, of the verifier of conic certificates, and of the terms' own
bounds over boxes.

Exit code 1 where one of them is not argued in ``benchmarks/mutants.md``, or where that argues a change of no line. Of
each file as many are tried as are gone through, the same for everybody; ``--most`` draws more.

A change: another comparison, sign, operation or name; a constant one more or one less; a condition turned round; a
comparison, a part of an `and` or `or`, or a call left out. In the kernel and the conic verifier also: a float 16 times
as large or as small, the branches of a `where` exchanged, a magnitude left out. What is said where something is refused
is not changed: all that follows the condition of a `need`, and what is raised.

The tests are collected once. Each change is tried in a process of its own, forked from that: its functions and methods
get the code of the changed file, until a test fails.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

CHECKER = Path("graphreg/verify.py")
KERNEL = Path("graphreg/certificate/kernel")
CONIC = Path("graphreg/conic/verify.py")
TERMS = Path("graphreg/terms")
BOUNDS = {  # files with bounds of a loss or a penalty over boxes, and which tests are of these
    TERMS / "bounds.py": "alone or coordinate or Squared or Hinge or lines",
    TERMS / "losses/loss.py": "alone",
    TERMS / "losses/base.py": "Squared or Mean or Quantile or Hinge",
    **{TERMS / f"losses/{kind}.py": kind for kind in ("hinge", "huber", "logistic", "multinomial", "poisson")},
    **{TERMS / f"losses/{kind}.py": kind for kind in ("gamma", "expectile")},
    TERMS / "losses/epsilon_insensitive.py": "Epsilon",
    TERMS / "penalties/penalty.py": "alone",
    TERMS / "penalties/base.py": "L1 or L2 or LInf or Box or Zero",
    TERMS / "penalties/_rows.py": "L1 or L2 or LInf or HuberNorm or Ball or Quadratic",
    TERMS / "penalties/huber_norm.py": "HuberNorm",
    TERMS / "penalties/squared_l2.py": "SquaredL2",
    **{TERMS / f"penalties/{kind}.py": kind for kind in ("ball", "box", "l1", "l2", "quadratic")},
}
IN_TERMS = re.compile(
    r"_bound$|^(ends|shown|largest_around|half_square|longest|_largest)$"
)  # definitions that are changed there
CERTIFICATE = {
    CHECKER: ("checker_formulas", "checker", "verify", "conic_checker"),
    KERNEL / "arithmetic.py": ("kernel_arithmetic", "kernel_system", "kernel_upper"),
    KERNEL / "system.py": ("kernel_system", "kernel_upper", "kernel_squares"),
    **{KERNEL / f"{name}.py": (f"kernel_{name}",) for name in ("balance", "joint", "value", "squares", "upper")},
}
TESTS = {path: [f"tests/certificate/test_{name}.py" for name in names] for path, names in CERTIFICATE.items()} | {
    CONIC: [f"tests/conic/test_{name}.py" for name in ("conic_verifier", "reach", "bounds")],
    **{path: ["tests/terms/test_bounds_exactly.py", "-k", which] for path, which in BOUNDS.items()},
}
ARGUED = Path("benchmarks/mutants.md")
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
IN_THE_KERNEL: dict[type[ast.AST], type[ast.AST]] = {ast.BitOr: ast.BitAnd}
NAMES = {"max": "min", "min": "max", "all": "any", "any": "all"}
ATTRIBUTES = NAMES | {"maximum": "minimum", "minimum": "maximum"}
TIMES = 16.0  # of a float: more than its slack, which is there for terms of second order
DRAWN = 40  # changes of each file, which are the same for everybody: those that are gone through
SECONDS = 120  # of a processor, that a change may take; one that takes longer is seen


@dataclass(frozen=True)
class Change:
    """``new`` in place of the ``old`` node, which stands in the definition ``where`` and the statement ``line``."""

    where: str
    line: ast.stmt
    old: Any
    new: Any

    def __str__(self) -> str:
        """The statement, in one line, with the change marked in it."""
        mark = ast.Name(f"«{_written(self.old)} → {_written(self.new)}»")
        return f"{self.where}: {_written(_replaced(self.line, self.old, mark))}"

    def made(self, tree: ast.Module) -> ast.Module:
        return ast.fix_missing_locations(_replaced(tree, self.old, self.new))


def changes(tree: ast.Module, kernel: bool = False) -> Iterator[Change]:
    """All changes of a module."""
    for where, line, node in _nodes(tree, "the module", None):
        found = _others_of_the_kernel(node) if kernel else None
        yield from (Change(where, line, old, new) for old, new in (_others(node) if found is None else found))


def _nodes(node: ast.AST, where: str, line: Any) -> Iterator[tuple[str, Any, ast.AST]]:
    """All nodes that are changed, with the definition and the statement around each."""
    if isinstance(node, (ast.Raise, ast.arg)):
        return
    if isinstance(node, ast.stmt):
        line = node
    yield where, line, node
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        where = node.name if where == "the module" else f"{where}.{node.name}"
    needs = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "need"
    for inner in [node.args[0]] if needs else ast.iter_child_nodes(node):
        yield from _nodes(inner, where, line)


def _others(node: Any) -> Iterator[tuple[Any, Any]]:
    """Nodes to replace, and what takes their place."""
    match node:
        case ast.BinOp() | ast.AugAssign() if type(node.op) in OPERATIONS:
            yield node, _with(node, op=OPERATIONS[type(node.op)]())
        case ast.BoolOp():
            yield node, _with(node, op=OPERATIONS[type(node.op)]())
            for k in range(len(node.values)):
                rest = node.values[:k] + node.values[k + 1 :]
                yield node, rest[0] if len(rest) == 1 else _with(node, values=rest)
        case ast.Compare():
            for k, op in enumerate(node.ops):
                if type(op) in OPERATIONS:
                    yield node, _with(node, ops=[*node.ops[:k], OPERATIONS[type(op)](), *node.ops[k + 1 :]])
                yield node, _without(node, k)
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield node, node.operand
        case ast.If() | ast.IfExp() | ast.While():
            yield node.test, ast.UnaryOp(ast.Not(), node.test)
        case ast.comprehension():
            yield from ((test, ast.UnaryOp(ast.Not(), test)) for test in node.ifs)
        case _:
            yield from _other_words(node)


def _other_words(node: Any) -> Iterator[tuple[Any, Any]]:
    """The same of names, calls and constants."""
    match node:
        case ast.Name() if node.id in NAMES:
            yield node, ast.Name(NAMES[node.id], node.ctx)
        case ast.Expr(value=ast.Call()):
            yield node, ast.Pass()
        case ast.Constant(value=bool()):
            yield node, ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            value: Any = node.value
            yield from ((node, ast.Constant(value + step)) for step in (1, -1))


def _others_of_the_kernel(node: Any) -> list[tuple[Any, Any]] | None:  # noqa: PLR0911  (one for each kind)
    """What only the kernel's arrays have, None where a node is changed as elsewhere."""
    match node:
        case ast.BinOp() | ast.AugAssign() if type(node.op) in IN_THE_KERNEL and not _is_a_type(node):
            return [(node, _with(node, op=IN_THE_KERNEL[type(node.op)]()))]
        case ast.UnaryOp(op=ast.Invert()):
            return [(node, node.operand)]
        case ast.Attribute() if node.attr in ATTRIBUTES:
            return [(node, _with(node, attr=ATTRIBUTES[node.attr]))]
        case ast.Call(func=ast.Attribute(attr="where"), args=[condition, one, other]):
            return [(node, _with(node, args=[condition, other, one]))]
        case ast.Call(func=ast.Attribute(attr="abs") | ast.Name("abs"), args=[inner]):
            return [(node, inner)]
        case ast.Constant(value=float()):
            value: Any = node.value
            return [(node, ast.Constant(x)) for x in ([value * TIMES, value / TIMES] if value else [1.0, -1.0])]
    return None


def _is_a_type(node: Any) -> bool:
    return not any(isinstance(each, (ast.Call, ast.Compare, ast.Subscript, ast.Attribute)) for each in ast.walk(node))


def _with(node: Any, **other: Any) -> Any:
    return type(node)(**{name: getattr(node, name) for name in node._fields} | other)


def _without(node: ast.Compare, k: int) -> ast.expr:
    """A chain of comparisons of which one is not made."""
    ends = [node.left, *node.comparators]
    parts: list[ast.expr] = []
    for first, last in ((0, k), (k + 1, len(node.ops))):
        if first < last:
            parts.append(ast.Compare(ends[first], node.ops[first:last], ends[first + 1 : last + 1]))
    return ast.BoolOp(ast.And(), parts) if len(parts) > 1 else parts[0] if parts else ast.Constant(True)


def _replaced(tree: Any, old: ast.AST, new: ast.AST) -> Any:
    """A copy of a tree with another node at the place of one."""
    return copy.deepcopy(tree, {id(old): copy.deepcopy(new)})


def _written(node: ast.AST) -> str:
    """The code of an expression, or the first line of a statement; without the docstring of a definition."""
    return ast.unparse(node).splitlines()[0]


def take(tree: ast.Module, module: Any) -> None:
    """Give the functions, methods and plain constants of a module those of a changed tree."""
    names: dict[str, Any] = {"__name__": module.__name__, "__package__": module.__package__}
    exec(compile(tree, module.__file__, "exec"), names)
    before = dict(vars(module))
    _take(module, module.__name__, names)
    for name, value in vars(module).items():  # constants that others have imported
        if isinstance(value, (int, float)) and value is not before[name]:
            for other in [each for key, each in sys.modules.items() if key.startswith(module.__package__ + ".")]:
                if vars(other).get(name) is before[name]:
                    setattr(other, name, value)


def _function(thing: Any) -> Any:
    """What a property, a cached one or a static method calls."""
    for name in ("fget", "func", "__func__"):
        thing = getattr(thing, name, None) or thing
    return thing


def _take(old: Any, module: str, names: Any) -> None:
    for name, found in dict(names).items():
        before = vars(old).get(name)
        new, before = _function(found), _function(before)
        if isinstance(new, FunctionType) and isinstance(before, FunctionType) and new.__module__ == module:
            before.__code__, before.__defaults__ = new.__code__, new.__defaults__
        elif isinstance(new, type) and new.__module__ == module:
            _take(before, module, vars(new))
        elif isinstance(new, (bool, int, float, str, tuple)) and not name.startswith("__"):
            setattr(old, name, new)


def prefix(path: Path) -> str:
    """What stands before the changes of a file on the page that argues them."""
    if path in BOUNDS:
        return f"{path.relative_to(TERMS)} "
    return "" if path == CHECKER else "conic " if path == CONIC else f"{path.name} "


def is_tried(path: Path, change: Change) -> bool:
    """True of all changes, of those in files of terms where they are in bounds."""
    return path not in BOUNDS or IN_TERMS.search(change.where.rpartition(".")[2]) is not None


class Tries:
    """A plug-in of pytest: in place of the run of the tests, one run for each change."""

    def __init__(self, path: Path, most: int | None, argued: Path) -> None:
        self.module: Any = importlib.import_module(".".join(path.with_suffix("").parts))
        self.tree = ast.parse(path.read_text())
        self.name = prefix(path)
        self.all = [each for each in changes(self.tree, kernel=path != CHECKER) if is_tried(path, each)]
        self.tried = self.all if most is None else random.Random(most).sample(self.all, min(most, len(self.all)))
        others = [name for name in map(prefix, TESTS) if name]
        self.argued = {
            each
            for each in listed(argued)
            if (each.startswith(self.name) if self.name else not each.startswith(tuple(others)))
        }
        self.code = 2

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        start, unseen = time.monotonic(), list[str]()
        if not session.items or not self.passes(session, self.tree):
            print("There are no tests, or they fail without any change.")
            return True
        for change in self.tried:
            if self.passes(session, change.made(self.tree)):
                unseen.append(f"{self.name}{change}")
                print("argued: " if unseen[-1] in self.argued else "NEW: ", unseen[-1], flush=True)
        seen = len(self.tried) - len(unseen)
        print(f"{seen} of {len(self.tried)} changes are seen, in {time.monotonic() - start:.0f} s")
        named, tried = ({f"{self.name}{each}" for each in some} for some in (self.all, self.tried))
        new, gone = set(unseen) - self.argued, self.argued - named
        now = sorted((self.argued & tried) - set(unseen))
        print(*(f"is seen now: {what}" for what in now), *(f"NO LINE: {what}" for what in sorted(gone)), sep="\n")
        self.code = int(bool(new or gone))
        return True

    def passes(self, session: pytest.Session, tree: ast.Module) -> bool:
        """True where all tests pass."""
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            code = 1
            try:
                take(tree, self.module)
                code = int(_fails(session))
            finally:
                os._exit(code)
        return os.waitpid(child, 0)[1] == 0


def _fails(session: pytest.Session) -> bool:
    for item, following in zip(session.items, [*session.items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return True
    return False


def listed(path: Path) -> set[str]:
    """The changes that a page argues: of each an entry of a list, between backquotes."""
    return set(re.findall("^- `(.*)`$", path.read_text(), re.MULTILINE))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="those that are changed; all, if left out")
    parser.add_argument("--most", type=int, default=DRAWN, help=f"so many of each, drawn at random ({DRAWN}); 0: all")
    asked = parser.parse_args()
    code = 0
    for path in asked.files or TESTS:
        tries = Tries(path, asked.most or None, ARGUED)
        print(f"{path}: {len(tries.tried)} changes", flush=True)
        pytest.main(
            [*TESTS[path], "-q", "-s", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-n", "0"], [tries]
        )
        code = max(code, tries.code)
    return code


if __name__ == "__main__":
    sys.exit(main())
