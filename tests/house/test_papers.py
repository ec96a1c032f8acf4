"""The papers re-computed are written as a user would write them: over the public names of graphreg alone."""

from __future__ import annotations

import ast
from importlib import import_module
from types import ModuleType

import pytest
from places import ROOT
from rooms import imports_of

import graphreg as gr

PAPERS = ROOT / "papers"
FILES = sorted(PAPERS.rglob("*.py"))
PUBLIC = {"graphreg", *(f"graphreg.{name}" for name in (*gr._SUBMODULES, "errors"))}
EXCEPTIONS = {  # and why
    # Copies of a network are run side by side, and each knows of itself alone: a view for that has no public name.
    "consensus/_instances.py": {
        *(f"graphreg.network.{name}" for name in ("InProcess", "Ledger", "LocalView", "WholeGraph", "arcs_of")),
        "graphreg.form.Form",
    },
}


def is_public(name):
    """True where a full name is a public module, or a name that one of them shows."""
    module, _, last = name.rpartition(".")
    return name in PUBLIC or (module in PUBLIC and not last.startswith("_") and last in shown(import_module(module)))


def shown(thing):
    return getattr(thing, "__all__", None) or dir(thing)


def imported(source):
    return {each.name for each in imports_of(source, "papers") if each.name.partition(".")[0] == "graphreg"}


def hidden(source):
    """Chains of attributes of ``gr`` that lead to what is not shown."""
    chains = {ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    for chain in sorted(each for each in chains if each.startswith("gr.") and each.replace(".", "").isidentifier()):
        thing = gr
        for name in chain.split(".")[1:]:
            if name.startswith("__"):  # what every module has
                break
            known = set(dir(thing)) & set(shown(thing)) if isinstance(thing, ModuleType) else set(dir(thing))
            if name.startswith("_") or not (name in known or (thing is gr and name in dir(gr))):
                yield chain
                break
            if not isinstance(found := getattr(thing, name), (ModuleType, type)):
                break
            thing = found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PAPERS).as_posix())
def test_papers_use_public_names_alone(file):
    source, leave = file.read_text(encoding="utf-8"), EXCEPTIONS.get(file.relative_to(PAPERS).as_posix(), set())
    wrong = [name for name in sorted(imported(source)) if not is_public(name) and name not in leave]
    assert not [*wrong, *hidden(source)], f"{file.relative_to(ROOT)} uses what is not public: give it a public name"


def test_exceptions_are_in_use():
    for file, names in EXCEPTIONS.items():
        assert names == {name for name in imported((PAPERS / file).read_text(encoding="utf-8")) if not is_public(name)}


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("graphreg", True),
        ("graphreg.errors.ModelError", True),
        ("graphreg.theory.recovery", True),
        ("graphreg.base.files.replacing", False),
        ("graphreg.theory._nothing", False),
        ("graphreg.theory.nothing", False),
    ],
)
def test_the_rule_decides(name, public):
    assert is_public(name) == public
    assert list(hidden("gr.theory.recovery(gr.theory._x, gr.files.y)")) == ["gr.files", "gr.files.y", "gr.theory._x"]


def test_the_package_does_not_know_of_them():
    found = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "graphreg").rglob("*.py")
        for each in imports_of(path.read_text(encoding="utf-8"), ".".join(path.relative_to(ROOT).parent.parts))
        if each.name.partition(".")[0] == "papers"
    ]
    assert not found
