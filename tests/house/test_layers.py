"""The rooms of the library: a room imports from rooms below it, through their faces; what stands in it has an order."""

from __future__ import annotations

import ast
import json
import math
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache

import pytest
from rooms import (
    DOCUMENT,
    FACE,
    PACKAGE,
    ROOMS,
    ROOT,
    Import,
    all_imports,
    arrows,
    circle,
    drawn,
    every_import,
    floors,
    imports_of,
    layer_of,
    path_of,
    reduced,
    trees,
    where,
)

from graphreg.base import shortcuts
from graphreg.errors import InternalError

CVXPY_PLACES = ("terms", "compiling", "reading_cvxpy", "testing", "conic")
HEAVY = ("cvxpy", "pandas", "matplotlib", "networkx", "sklearn", "numba", "joblib", "igraph")
LIGHT = {  # what is imported, one after the other, and what that leaves out
    "graphreg": (*HEAVY, "click", "graphreg.model_file"),
    "graphreg.cli": ("pandas", "cvxpy"),
    "graphreg.plots": ("matplotlib",),
}
FOLDERS = sorted({path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE})


def allowed(source: str, found: Import) -> bool:
    target = found.layer
    if target is None or source in (target, FACE):
        return True
    if not {source, target} <= set(ROOMS):  # a module without a room: its own test fails
        return True
    return ROOMS.index(target) < ROOMS.index(source)


def through_a_face(source: str, found: Import) -> bool:
    """True where an import between rooms names the face of a folder, or waits until a function is called."""
    if found.layer in (None, source, FACE) or found.in_function:
        return True
    path = path_of(found.module)
    if path is None or path.parent in (PACKAGE, PACKAGE / "base") or path.name == "__init__.py":
        return True
    face, _, name = found.module.rpartition(".")  # a module that its face exports as such
    return found.module == found.name and f"{face}.{name}" in exported()[path.parent]


@cache
def exported():
    """What the face of each folder imports, by its full name."""
    faces = {path.parent: set() for path in PACKAGE.rglob("*.py")}
    for path, found in all_imports():
        if path.name == "__init__.py":
            faces[path.parent].add(found.name)
    return faces


def test_every_module_has_a_room():
    stray = sorted({layer_of(path) for path in PACKAGE.rglob("*.py")} - set(ROOMS))
    assert not stray, f"not in ROOMS: {stray}; give each its place in the order"


def test_other_packages_that_are_imported_are_dependencies_or_extras():
    """Those that only tests, benchmarks and pages ask for are none of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    tools = ("bench", "dev", "docs", "release", "test")
    asked = [*project["dependencies"], *(line for name in extras.keys() - set(tools) for line in extras[name])]
    named = {re.match(r"[\w-]+", line)[0] for line in asked}
    there = {"scikit-learn": "sklearn", "python-flint": "flint"}
    known = {there.get(name, name) for name in named} | set(sys.stdlib_module_names) | {"graphreg"}
    wrong = [where(path, found) for path, found in every_import() if found.name.partition(".")[0] not in known]
    assert not wrong, "pyproject.toml does not bring:\n  " + "\n  ".join(wrong)


def test_rooms_import_from_below():
    wrong = [where(path, found) for path, found in all_imports() if not allowed(layer_of(path), found)]
    assert not wrong, "imports from a room above:\n  " + "\n  ".join(wrong)


def test_every_shortcut_has_its_function_and_nothing_else_is_registered():
    asked = [
        node.args[0].value
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "shortcut"
        and isinstance(node.args[0], ast.Constant)
    ]
    assert sorted(asked) == sorted(shortcuts._places)
    assert all(callable(shortcuts.shortcut(name)) for name in asked)


def test_a_shortcut_calls_what_was_registered_last(monkeypatch):
    monkeypatch.setattr(shortcuts, "_places", {})
    with pytest.raises(InternalError, match=r"the shortcut Solution\.sing"):
        shortcuts.shortcut("Solution.sing")
    shortcuts.register("Solution.sing", "math:sin")
    shortcuts.register("Solution.sing", "math:cos")
    assert shortcuts.shortcut("Solution.sing") is math.cos
    shortcuts.register("Solution.sing", len)
    assert shortcuts.shortcut("Solution.sing") is len


def test_rooms_are_seen_through_their_faces():
    wrong = [where(path, found) for path, found in all_imports() if not through_a_face(layer_of(path), found)]
    assert not wrong, "imports of a file in another room; let its folder export the name:\n  " + "\n  ".join(wrong)


def test_private_files_are_seen_by_their_own_room_alone():
    wrong = [
        where(path, found)
        for path, found in all_imports()
        if found.layer not in (None, FACE, layer_of(path))
        and any(part.startswith("_") for part in found.module.split("."))
    ]
    assert not wrong, "imports of private files:\n  " + "\n  ".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_what_stands_in_a_folder_has_an_order(folder):
    found = circle(folder)
    assert found is None, f"a circle of imports: {' -> '.join(found or ())}"


def test_the_picture_is_true():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == drawn(text), "run: python tests/rooms.py --write"


def test_the_walk_names_files_that_exist():
    text = DOCUMENT.read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:[\w]+/)+(?:[\w]+\.py)?)`", text))
    gone = sorted(name for name in names if not (PACKAGE / name).exists() and not (ROOT / name).exists())
    assert len(names) > 20
    assert not gone, f"docs/rooms.md names what is not there: {gone}"


def test_cvxpy_is_imported_in_its_places_only():
    users = [(p, found) for p, found in all_imports() if found.name.startswith(("cvxpy", "graphreg.base.lazy.cp"))]
    wrong = [where(path, found) for path, found in users if layer_of(path) not in CVXPY_PLACES]
    assert not wrong, f"CVXPY belongs to {', '.join(CVXPY_PLACES)}:\n  " + "\n  ".join(wrong)
    early = [where(p, found) for p, found in users if found.name.startswith("cvxpy") and not found.in_function]
    assert not early, "import cp from graphreg.base.lazy, or CVXPY inside a function:\n  " + "\n  ".join(early)


def test_searches_in_graphs_are_called_in_one_place():
    """Most versions of scipy take indices of 32 bits alone, which ``graphreg.base.csgraph`` sees to."""
    theirs = [(p, each) for p, each in all_imports() if "scipy.sparse.csgraph" in f"{each.name}."]
    assert [p.name for p, _ in theirs] == ["csgraph.py"], "import it from graphreg.base.csgraph"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from ..errors import TermError", ["graphreg.errors.TermError"]),
        ("from .. import graph", ["graphreg.graph"]),
        ("from .losses.base import AbstractLoss", ["graphreg.terms.losses.base.AbstractLoss"]),
        ("def f():\n    import cvxpy as cp", ["cvxpy"]),
        (
            "if TYPE_CHECKING:\n    from ..data import NodeData\nelse:\n    import os.path",
            ["graphreg.data.NodeData", "os.path"],
        ),
    ],
)
def test_the_finder_finds(source, names):
    assert [found.name for found in imports_of(source, "graphreg.terms")] == names


@pytest.mark.parametrize(
    ("room", "source", "verdict"),
    [
        ("form", "from .terms import Array", True),
        ("form", "from .certificate import certify", False),
        ("form", "def f():\n    from .certificate import certify", False),
        ("form", "from . import Problem", False),
        ("cli", "import graphreg as gr", True),
        ("comparing", "from .plots import plot_comparison", False),
        ("comparing", "def plot(self):\n    from .plots import plot_comparison", False),
    ],
)
def test_the_rule_decides(room, source, verdict):
    assert [allowed(room, found) for found in imports_of(source, "graphreg")] == [verdict]


@pytest.mark.parametrize(
    ("room", "source", "verdict"),
    [
        ("form", "from .terms import Array", True),
        ("form", "from .terms.losses import AbstractLoss", True),
        ("form", "from .terms.records import Array", False),
        ("form", "from .terms import records", False),
        ("form", "from .errors import FormError", True),
        ("form", "def f():\n    from .terms.records import Array", True),
        ("terms", "from .terms.records import Array", True),
    ],
)
def test_faces_are_asked_for(room, source, verdict):
    assert [through_a_face(room, found) for found in imports_of(source, "graphreg")] == [verdict]


def test_circles_are_found(tmp_path, monkeypatch):
    folder = tmp_path / "graphreg" / "room"
    folder.mkdir(parents=True)
    for name, text in {"__init__": "", "a": "from .b import x", "b": "def f():\n    from . import a"}.items():
        (folder / f"{name}.py").write_text(text)
    found = [(path, each) for path in folder.glob("*.py") for each in imports_of(path.read_text(), "graphreg.room")]
    for name, value in (("ROOT", tmp_path), ("PACKAGE", tmp_path / "graphreg"), ("all_imports", lambda: found)):
        monkeypatch.setattr(f"rooms.{name}", value)
    path_of.cache_clear()
    assert set(circle(folder) or ()) == {"a", "b"}
    path_of.cache_clear()


def test_floors_and_arrows():
    graph = {"a": set(), "b": {"a"}, "c": {"a", "b"}}
    assert floors(graph) == [["a"], ["b"], ["c"]]
    assert reduced(graph) == {"a": set(), "b": {"a"}, "c": {"b"}}
    assert all(ROOMS.index(there) < ROOMS.index(here) for here, below in arrows().items() for there in below)


@pytest.fixture(scope="module")
def loaded():
    """The modules that are loaded after each of the imports in LIGHT, in their order, in a process that has imported
    nothing yet."""
    code = "import importlib, json, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
    code += "    print(json.dumps({each: module.__name__ for each, module in sys.modules.items() if module}))"
    run = subprocess.run([sys.executable, "-c", code, *LIGHT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return dict(zip(LIGHT, map(json.loads, run.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("module", LIGHT)
def test_importing_stays_light(module, loaded):
    heavy = set(LIGHT[module]) & loaded[module].keys()
    assert not heavy, f"import {module} imports {sorted(heavy)}; import them where they are first used"


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
