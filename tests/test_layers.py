"""The layers of the library: a module imports only from the layers above it in `LAYERS`, or from its own."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from places import PACKAGE, ROOT

FACE = "__init__"  # the public names of the package as a whole

LAYERS = (
    "errors",
    "declaring",  # of classes, by which they are known
    "messages",  # what is said alike
    "checks",  # of arguments
    "sharing",  # of what copies have in common
    "clock",  # of the work of this moment, and how it is broken off
    "breakdown",  # of a computation: whose fault an exception is
    "tables",  # DataFrames that print what they rest on
    "reading",  # of graphs as users give them, for graph
    "graph",
    "columns",  # of tables as users give them, for data
    "data",
    "verify",  # the checker of proofs, which imports nothing of the others
    "batches",  # of nodes, for whatever solves one small system per node
    "terms",
    "form",
    "magnitudes",  # of data, for building
    "building",  # of a form, from a model
    "certificate",
    "clusters",  # read off a certificate
    "lowering",
    "methods",
    "engines",
    "splitting",  # proofs by further problems, for solution
    "solution",
    "statuses",  # of a solution, with their sentences
    "iterating",  # a run of a method, around the best common model
    "solving",  # of one form, for problem
    "theory",
    "inference",
    "testing",
    "problem",
    "compare",
    "datasets",  # problems that are drawn at random
    "tuning",
    "explain",
    "catalogue",  # of what is declared
    FACE,  # what follows is written as a user would write it, on the public names
    "papers",
    "model_file",
    "cli",
    "__main__",
)


@dataclass(frozen=True)
class Leave:
    """Why a layer may import from one below it, and whether only inside a function."""

    reason: str
    when_called: bool = True


EXCEPTIONS = {
    ("problem", "explain"): Leave("Problem.latex and Problem.report are shortcuts to functions of explain"),
    ("inference", "explain"): Leave("ConfidenceRegion.plot is a shortcut to a function of explain"),
    ("compare", "explain"): Leave("Comparison.plot and Comparison.figure are shortcuts to functions of explain"),
    ("tuning", "explain"): Leave("Path.plot and CrossValidation.plot are shortcuts to functions of explain"),
    ("theory", "explain"): Leave("Recovery.plot is a shortcut to a function of explain"),
    ("methods", FACE): Leave("a checkpoint records the version of graphreg that wrote it"),
}

CVXPY_PLACES = ("terms", "lowering", "testing")
HEAVY = ("cvxpy", "pandas", "matplotlib", "networkx", "sklearn", "numba", "joblib", "igraph", "narwhals")


@dataclass(frozen=True)
class Import:
    """One imported module, by its full name; for ``from a import b`` that is ``a.b``."""

    name: str
    line: int
    in_function: bool

    @property
    def layer(self) -> str | None:
        """The layer of graphreg that is imported; None for other packages."""
        head, _, rest = self.name.partition(".")
        if head != "graphreg":
            return None
        first = rest.partition(".")[0]
        is_module = (PACKAGE / first / "__init__.py").exists() or (PACKAGE / f"{first}.py").exists()
        return first if is_module or first in LAYERS else FACE


class ImportFinder(ast.NodeVisitor):
    """Every import that is carried out when the code runs, also inside functions."""

    def __init__(self, package: str) -> None:
        self.package = package.split(".")
        self.depth = 0
        self.found: list[Import] = []

    def visit_Import(self, node: ast.Import) -> None:
        self.found += [Import(alias.name, node.lineno, self.depth > 0) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        start = self.package[: len(self.package) - node.level + 1] if node.level else []
        parts = [*start, *([node.module] if node.module else [])]
        self.found += [Import(".".join([*parts, alias.name]), node.lineno, self.depth > 0) for alias in node.names]

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for child in node.orelse:
                self.visit(child)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)


def imports_of(source: str, package: str) -> list[Import]:
    finder = ImportFinder(package)
    finder.visit(ast.parse(source))
    return finder.found


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def all_imports() -> list[tuple[Path, Import]]:
    return [
        (path, found)
        for path in sorted(PACKAGE.rglob("*.py"))
        for found in imports_of(
            path.read_text(encoding="utf-8"), ".".join(path.relative_to(PACKAGE.parent).parent.parts)
        )
    ]


def allowed(source: str, found: Import) -> bool:
    target = found.layer
    if target is None or source in (target, FACE):
        return True
    if not {source, target} <= set(LAYERS):  # a module without a layer: its own test fails
        return True
    if LAYERS.index(target) < LAYERS.index(source):
        return True
    leave = EXCEPTIONS.get((source, target))
    return leave is not None and (found.in_function or not leave.when_called)


def where(path: Path, found: Import) -> str:
    return f"{path.relative_to(PACKAGE.parent)}:{found.line} imports {found.name}"


def test_every_module_has_a_layer():
    stray = sorted({layer_of(path) for path in PACKAGE.rglob("*.py")} - set(LAYERS))
    assert not stray, f"not in LAYERS: {stray}; give each its place in the order"


def test_imports_point_upwards():
    wrong = [where(path, found) for path, found in all_imports() if not allowed(layer_of(path), found)]
    assert not wrong, "imports from a layer below:\n  " + "\n  ".join(wrong)


def test_exceptions_are_in_use():
    used = {(layer_of(path), found.layer) for path, found in all_imports()}
    idle = [f"{source} -> {target}" for source, target in EXCEPTIONS if (source, target) not in used]
    assert not idle, f"exceptions that no import needs: {idle}; take them out"


def test_cvxpy_is_imported_in_its_places_only():
    users = [(path, found) for path, found in all_imports() if found.name.partition(".")[0] == "cvxpy"]
    wrong = [where(path, found) for path, found in users if layer_of(path) not in CVXPY_PLACES]
    assert not wrong, f"CVXPY belongs to {', '.join(CVXPY_PLACES)}:\n  " + "\n  ".join(wrong)
    early = [where(path, found) for path, found in users if layer_of(path) == "terms" and not found.in_function]
    assert not early, "a term imports CVXPY inside the method that writes it down:\n  " + "\n  ".join(early)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from ..errors import TermError", ["graphreg.errors.TermError"]),
        ("from .. import graph", ["graphreg.graph"]),
        ("from .losses._base import AbstractLoss", ["graphreg.terms.losses._base.AbstractLoss"]),
        ("def f():\n    import cvxpy as cp", ["cvxpy"]),
        ("if TYPE_CHECKING:\n    from ..data import NodeData\nelse:\n    import os.path", ["os.path"]),
    ],
)
def test_the_finder_finds(source, names):
    assert [found.name for found in imports_of(source, "graphreg.terms")] == names


@pytest.mark.parametrize(
    ("layer", "source", "verdict"),
    [
        ("form", "from .terms.records import Array", True),
        ("form", "from .certificate import certify", False),
        ("form", "def f():\n    from .certificate import certify", False),
        ("form", "from . import Problem", False),
        ("cli", "import graphreg as gr", True),
        ("problem", "from .explain import report", False),
        ("problem", "def report(self):\n    from .explain import report", True),
    ],
)
def test_the_rule_decides(layer, source, verdict):
    assert [allowed(layer, found) for found in imports_of(source, "graphreg")] == [verdict]


def test_importing_graphreg_stays_light():
    code = f"import sys, graphreg; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert not run.stdout.split(), (
        f"import graphreg imports {run.stdout.split()}; import them where they are first used"
    )


def test_files_name_no_place_of_one_machine():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout, to know which files belong to the project")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    place = re.compile(r"(?<![\w.~-])/(?:work|root|home)" + "/")
    found = []
    for name in filter(None, names):
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):  # a picture; a file deleted but not yet committed
            continue
        found += [f"{name}:{k}: {line.strip()}" for k, line in enumerate(text.splitlines(), 1) if place.search(line)]
    assert not found, "absolute paths:\n  " + "\n  ".join(found)
