"""The classes of what users are given back, found by what public functions and methods say that they return."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from functools import cache, cached_property

import graphreg as gr
from graphreg.methods import AbstractMethod
from graphreg.terms import AbstractTerm
from graphreg.terms.penalties import AbstractPenalty

ROOMS = ("datasets", "plots", "inference", "testing", "theory", "tuning")
ASKED = (AbstractMethod, AbstractTerm, AbstractPenalty)  # what users write; what these return the library asks for
INNER = {  # the library's own records, which can be reached from results; they are not gone into
    *("Account", "Arcs", "ConicProblem", "EdgeBlock", "Form", "Held", "Outcome", "Presence", "Role", "SampleBlock"),
    "Space",
    *("Batch", "CoefficientTree", "Sent", "CoordinateGroup", "Network", "PlainProblem", "Routes", "Varying"),
    *("Block", "Factor", "Pair", "Programme", "Proposal", "Reached"),  # of a problem of CVXPY
    *("AbstractEdges", "AbstractMap", "Made"),  # rows, and what they are made of
    *("Descent", "FlowDomain", "PriceDomain", "RecessionCone"),  # what a term says of its domain
    *("Edge", "Math", "Outlines", "Row", "Section"),  # parts of formulas, claims and maps
    *("DataKeys", "Folders", "Place", "SampleTable", "Standardised"),  # what a model file says
}
WRITTEN = {  # what users make themselves: options and parameters, of no size
    *("Acceleration", "Actors", "Availability", "Checkpoint", "Columns", "DecreasingStep", "Faults", "MPI"),
    *("Malicious", "Observer", "Parameter", "Parts", "Rows", "Strength", "Scorer"),
}


@cache
def classes():
    """Every class of the package, by name."""
    for module in pkgutil.walk_packages(gr.__path__, "graphreg."):
        if "__main__" not in module.name:
            importlib.import_module(module.name)
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("graphreg."):
            own = {k: v for k, v in vars(module).items() if inspect.isclass(v) and v.__module__ == name}
            for each, value in own.items():
                found.setdefault(each, []).append(value)
    return found


def named_in(annotation, near):
    """The classes that an annotation names; of two of one name the one that the module of ``near`` knows."""
    for word in re.findall(r"(?<![\w.])[A-Za-z_]\w*", str(annotation)):
        known = getattr(sys.modules[near.__module__], word, None)
        yield from [known] if inspect.isclass(known) else classes().get(word, [])[:1]


def annotations_of(thing):
    """The types that a function returns, or that the public methods, properties and fields of a class have."""
    if inspect.isfunction(thing):
        yield thing.__annotations__.get("return", "")
        return
    for name, value in vars(thing).items():
        function = value.fget if isinstance(value, property) else value
        function = value.func if isinstance(value, cached_property) else getattr(function, "__func__", function)
        if not name.startswith("_") and inspect.isfunction(function):
            yield function.__annotations__.get("return", "")
    yield from (kind for name, kind in inspect.get_annotations(thing).items() if not name.startswith("_"))


@cache
def given_back():
    """Every class that a user meets as a result, by name."""
    todo = [getattr(gr, name) for name in gr.__all__]
    for room in (importlib.import_module(f"graphreg.{name}") for name in ROOMS):
        todo += [getattr(room, name) for name in getattr(room, "__all__", dir(room)) if not name.startswith("_")]
    found, seen = {}, set()
    while todo:
        thing = todo.pop()
        if not (inspect.isclass(thing) or inspect.isfunction(thing)) or thing in seen:
            continue
        seen.add(thing)
        if not thing.__module__.startswith("graphreg"):
            continue
        if inspect.isclass(thing):
            if thing.__name__ in {*INNER, *WRITTEN} or issubclass(thing, (*ASKED, Exception)):
                continue
            if not thing.__name__.startswith("_"):
                found[thing.__name__] = thing
        todo += [each for annotation in annotations_of(thing) for each in named_in(annotation, thing)]
    return found
