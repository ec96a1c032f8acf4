"""Sentences of docstrings, the command line's help and pages on defaults, read from their text.

A sentence with a literal ("1.8 by default", "None (default)", "(default: "mse")") is compared with the signature; one
in words ("all of them by default") asks for a default of None, or for what `MEANT` has.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from places import ROOT

import graphreg as gr

SAID = re.compile(
    r"\bby default\b|\((?:the )?default\b|\bdefaults to\b|\bdefault is\b|\bdefault [-\d]|, the default\b", re.I
)
VALUE = r"(``[^`]+``|\"[^\"]*\"|None|True|False|-?[\d.][\d,]*(?:\.\d+)?(?:e-?\d+)?(?![\d/(*]| [-+/*]))"
LITERAL = [
    re.compile(r"(?<![\w.])" + each.replace("VALUE", VALUE))
    for each in (
        *(r"VALUE by default", r"VALUE \((?:the )?default\b", r"[Bb]y default VALUE(?=[,.;:]|$)"),
        *(r"\(default:? VALUE", r"(?:defaults to|default is) VALUE", r"VALUE, the default\b"),
    )
]
SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]*\n---|\Z)", re.M | re.S)
ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*)(?: :[^\n]*)?\n(?P<text>(?:(?:[ ]{4}[^\n]*)?\n)*)", re.M)
OPTIONAL = ("graphreg.neural", "graphreg.sklearn", "graphreg.mpi")  # which need what is not installed everywhere


@dataclass(frozen=True)
class Said:
    """A sentence of a docstring on one parameter."""

    of: str  # module and name
    parameter: str
    sentence: str
    default: Any  # as the code has it

    @property
    def literals(self) -> list[Any]:
        return [value(found[1]) for pattern in LITERAL for found in pattern.finditer(self.sentence)]


def value(text: str) -> Any:
    """The value that a literal stands for."""
    text = text.strip("`")
    try:
        return ast.literal_eval(re.sub(r"(?<=\d),(?=\d{3})", "", text))
    except (ValueError, SyntaxError):
        try:
            return eval(text, {**vars(gr), "gr": gr})
        except NameError:
            return text  # a formula of what is known when it runs


def sentences(text: str) -> list[str]:
    """Those that speak of a default, without line breaks."""
    every = re.split(r"(?<=[.;])\s+(?=[A-Z`\"])", " ".join(text.split()))
    return [each for each in every if SAID.search(each)]


def defaults(thing: Any) -> dict[str, Any]:
    return {name: each.default for name, each in inspect.signature(thing).parameters.items()}


def documented() -> Iterator[tuple[str, Any]]:
    """Classes, functions and public methods with a section on parameters that speaks of a default."""
    for path in sorted((ROOT / "graphreg").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not (re.search(r"^ *Parameters\n *---", text, re.M) and SAID.search(text)):
            continue
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        try:
            module = importlib.import_module(name)
        except ImportError:
            if not name.startswith(OPTIONAL):
                raise
            continue
        for own in vars(module).values():
            if getattr(own, "__module__", None) != name or not (inspect.isclass(own) or inspect.isfunction(own)):
                continue
            yield f"{name}.{own.__qualname__}", own
            for each in vars(own).values() if inspect.isclass(own) else ():
                function = getattr(each, "__func__", each)
                if inspect.isfunction(function):
                    yield f"{name}.{function.__qualname__}", function


def said() -> list[Said]:
    out: list[Said] = []
    for name, thing in documented():
        doc = inspect.cleandoc(thing.__doc__ or "") + "\n"
        for section in SECTION.finditer(doc):
            for entry in ENTRY.finditer(section[1]):
                known = defaults(thing)
                out += [
                    Said(name.removeprefix("graphreg."), each, sentence, known.get(each, "no such parameter"))
                    for sentence in sentences(entry["text"])
                    for each in entry["names"].split(", ")
                ]
    return out
