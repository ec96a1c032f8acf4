"""The rooms of the library: their order, what its files import, and the picture of it in docs/rooms.md.

``python tests/rooms.py`` prints the picture, ``--write`` puts it into the document.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from operator import itemgetter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "graphreg"
DOCUMENT = ROOT / "docs" / "rooms.md"
MARKS = ("<!-- what follows is written by tests/rooms.py -->", "<!-- as far as here -->")
FACE = "__init__"  # the public names of the package as a whole

BASE = ("checks", "errors", "version")  # files of the top that belong to the base
ROOMS = (  # from the ground up; files of the top, and folders
    "base",
    "verify",  # the checker of proofs, which imports nothing of the others
    *("inputs", "terms", "form", "oracles", "network", "certificate", "compiling", "running", "methods", "judging"),
    *("problem", "fast", "saving", "distributed", "theory", "inference", "testing", "auditing", "comparing"),
    *("datasets", "tuning", "neural", "plots", "mathml", "reporting", "reading_prox", "reading_cvxpy"),
    "conic",  # any problem of CVXPY: it takes the arithmetic of certificates
    "catalogue",
    FACE,  # what follows is written as a user would write it, on the public names
    *("fitting", "model_file", "mpi", "sklearn", "cli", "__main__"),
)


@dataclass(frozen=True)
class Import:
    """One imported module or name, by its full name: for ``from a import b`` that is ``a.b``."""

    name: str
    line: int
    in_function: bool
    for_types: bool = False  # read by type checkers alone

    @property
    def layer(self) -> str | None:
        """The room of graphreg that is imported; None for other packages."""
        head, _, rest = self.name.partition(".")
        if head != "graphreg":
            return None
        first = rest.partition(".")[0]
        if not first:
            return FACE
        return "base" if first in BASE else first if path_of(f"graphreg.{first}") else FACE

    @cached_property
    def module(self) -> str:
        """The module that is imported, or that the name is taken from."""
        parts = self.name.split(".")
        while parts[1:] and not path_of(".".join(parts)):
            parts.pop()
        return ".".join(parts)


class ImportFinder(ast.NodeVisitor):
    """Every import, also inside functions and for type checkers."""

    def __init__(self, package: str) -> None:
        self.package = package.split(".")
        self.depth = 0
        self.for_types = False
        self.found: list[Import] = []

    def generic_visit(self, node: ast.AST) -> None:
        """Visit what stands in a statement; no expression imports anything."""
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                self.visit(child)

    def visit_Import(self, node: ast.Import) -> None:
        self.add(node, [alias.name for alias in node.names])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        start = self.package[: len(self.package) - node.level + 1] if node.level else []
        parts = [*start, *([node.module] if node.module else [])]
        self.add(node, [".".join([*parts, alias.name]) for alias in node.names])

    def add(self, node: ast.stmt, names: list[str]) -> None:
        self.found += [Import(name, node.lineno, self.depth > 0, self.for_types) for name in names]

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            self.for_types = True
            for child in node.body:
                self.visit(child)
            self.for_types = False
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


def imports_of(source: str | ast.Module, package: str) -> list[Import]:
    finder = ImportFinder(package)
    finder.visit(ast.parse(source) if isinstance(source, str) else source)
    return finder.found


@cache
def path_of(module: str) -> Path | None:
    """The file of a module of graphreg; None where there is none."""
    base = ROOT / Path(*module.split("."))
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.exists()), None)


def layer_of(path: Path) -> str:
    """The room that a file belongs to."""
    top = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "base" if top in BASE else top


@cache
def trees() -> dict[Path, ast.Module]:
    """The syntax trees of the files of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def every_import() -> tuple[tuple[Path, Import], ...]:
    """The imports of the package, those for type checkers included."""
    return tuple(
        (path, found)
        for path, tree in trees().items()
        for found in imports_of(tree, ".".join(path.relative_to(ROOT).parent.parts))
    )


@cache
def all_imports() -> tuple[tuple[Path, Import], ...]:
    """The imports that are carried out when the code runs."""
    return tuple((path, found) for path, found in every_import() if not found.for_types)


def where(path: Path, found: Import) -> str:
    return f"{path.relative_to(ROOT)}:{found.line} imports {found.name}"


# ---- the order of what stands in a folder ----------------------------------------------------------------------------
def inside(folder: Path) -> dict[str, set[str]]:
    """The imports between the files and folders of a folder, later imports included; its face is left out."""
    out: dict[str, set[str]] = {
        path.stem: set()
        for path in folder.iterdir()
        if path.name != "__init__.py" and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    here = ".".join(folder.relative_to(ROOT).parts)
    # By files, since asking each import for its folder takes seconds.
    for path, each in groupby(all_imports(), key=itemgetter(0)):
        if folder not in path.parents or path == folder / "__init__.py":
            continue
        child = path.relative_to(folder).parts[0].removesuffix(".py")
        for found in (found for _, found in each if found.module.startswith(f"{here}.")):
            other = found.module.removeprefix(f"{here}.").partition(".")[0]
            if other != child and other in out:
                out[child].add(other)
    return out


def circle(folder: Path) -> list[str] | None:
    """Files of a folder that import each other in a circle; None where they have an order."""
    try:
        TopologicalSorter(inside(folder)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def floors(graph: dict[str, set[str]]) -> list[list[str]]:
    """The floors of a house: what imports nothing, then what imports only that, and so on upwards."""
    sorter, out = TopologicalSorter(graph), []
    sorter.prepare()
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        out.append(ready)
        sorter.done(*ready)
    return out


# ---- the picture -----------------------------------------------------------------------------------------------------
def arrows() -> dict[str, set[str]]:
    """The rooms that each room imports from, when it is loaded."""
    out: dict[str, set[str]] = {room: set() for room in ROOMS if path_of(f"graphreg.{room}")}
    for path, found in all_imports():
        here, there = layer_of(path), found.layer
        if there is not None and there != here and not found.in_function and here in out:
            out[here].add(there)
    return out


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that do not follow from others."""
    below: dict[str, set[str]] = {}
    for room in TopologicalSorter(graph).static_order():
        below[room] = {each for other in graph.get(room, ()) for each in (other, *below[other])}
    return {room: others - {each for other in others for each in below[other]} for room, others in graph.items()}


def said(module: str) -> str:
    """The first sentence of a module's docstring."""
    path = path_of(module)
    assert path is not None, module
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def picture() -> str:
    """The rooms as a diagram, floor by floor, and as a table."""
    graph = reduced(arrows())
    shown = {room: "graphreg" if room == FACE else room for room in graph}
    lines = ["```mermaid", "flowchart BT"]
    for room in graph:
        lines += [f"  {shown[other]} --> {shown[room]}" for other in sorted(graph[room], key=ROOMS.index)]
    lines += ["```", "", "| room | what it holds | its files and folders, from the ground up |", "|---|---|---|"]
    for room in reversed(list(graph)):
        folder = PACKAGE / room
        parts = floors(inside(folder)) if folder.is_dir() else []
        names = [f"{name}/" if (folder / name).is_dir() else name for each in parts for name in each]
        module = "graphreg" if room == FACE else f"graphreg.{room}"
        lines.append(f"| `{shown[room]}` | {said(module)} | {', '.join(names)} |")
    return "\n".join(lines)


def drawn(text: str) -> str:
    """The document with the picture as it is now."""
    head, rest = text.split(MARKS[0])
    return f"{head}{MARKS[0]}\n\n{picture()}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        DOCUMENT.write_text(drawn(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(picture())
