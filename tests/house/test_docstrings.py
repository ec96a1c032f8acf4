"""Docstrings of what users call: they say what is returned and raised, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.cli.example import write
from graphreg.methods import AbstractMethod
from graphreg.terms.losses.samples import AbstractSamples
from graphreg.terms.penalties.base import AbstractPenalty

ROOMS = ("plots", "testing")
# whose methods the library calls; see docs/adding-*.md
INTERFACES = (AbstractSamples, AbstractPenalty, gr.FlowDomain, gr.PriceDomain, AbstractMethod)
CALLED_BY_THE_LIBRARY = (
    "Actors.",
    "Parts.",
    "MPI.",
    "Malicious.",
    "Availability.",
    "Checkpoint.of",
    "Model.of",
    ".lower",
    ".labels",
)
CALLED_BY_THE_LIBRARY += (".on_graph", ".squared", ".takes_strength")
CALLED_BY_THE_LIBRARY += (
    "w.made",
    "w.each",
    "w.text",
    "w.unshifted",
    "w.labels",
    "Rows.made",
    "Rows.text",
    "Rows.labels",
)


def functions(name, thing):
    """The function, or the public methods of the class, by name."""
    if inspect.isfunction(thing):
        yield name, thing
    elif inspect.isclass(thing) and not issubclass(thing, INTERFACES):
        for each, value in vars(thing).items():
            function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            called = f"{name}.{each}"
            inner = any(part in called for part in CALLED_BY_THE_LIBRARY)
            if inspect.isfunction(function) and not (each.startswith("_") or inner):
                yield called, function


def public():
    """The functions of graphreg and its rooms, and the methods of the classes of graphreg."""
    found = {}
    for name in gr.__all__:
        found |= functions(name, getattr(gr, name))
    for each in type(gr.w).__mro__:
        found |= functions("w", each)
    for room in map(importlib.import_module, (f"graphreg.{room}" for room in ROOMS)):
        for name, each in inspect.getmembers(room, inspect.isfunction):
            found[f"{room.__name__.partition('.')[2]}.{name}"] = each
    return found


PUBLIC = public()


def sections(function):
    lines = (inspect.getdoc(function) or "").splitlines()
    return {line for line, below in pairwise(lines) if line and set(below) == {"-"}}


@pytest.fixture(scope="module")
def made():
    """A small problem on a path of four sites, its parts and its answer."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(24, 2)), columns=["rain", "temp"]).assign(site=np.repeat(list("abcd"), 6))
    frame["level"] = frame["rain"] * np.where(frame["site"] < "c", 1.0, -1.0) + 0.1 * rng.normal(size=24)
    data = gr.NodeData.from_frame(frame, node="site", target="level", features=["rain", "temp"])
    lam, graph = gr.Parameter(0.1, name="lam"), nx.path_graph(list("abcd"))
    problem = gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(graph, gr.L2()))
    made = {"frame": frame, "data": data, "graph": graph, "lam": lam, "problem": problem}
    made["fitted"] = gr.fit(frame, graph, target="level", node="site", strengths=[0.1, 1.0], folds=2)
    draws = pd.DataFrame(rng.normal(size=(400, 2)), columns=["rain", "temp"]).assign(site=np.repeat(list("abcd"), 100))
    draws["level"] = draws["rain"] * np.where(draws["site"] < "c", 1.0, -1.0) + 0.1 * rng.normal(size=400)
    made["many"] = gr.NodeData.from_frame(draws, node="site", target="level", features=["rain", "temp"])
    return {"gr": gr, "np": np, "nx": nx, "pd": pd, **made, "solution": problem.solve()}


@pytest.fixture
def names(made, tmp_path, monkeypatch, pyplot):
    """The names that an example may use."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    made["lam"].value = 0.1
    return {**made, "folder": tmp_path}


def run(name, thing, names):
    """What is wrong with an example."""
    said = []
    for test in doctest.DocTestFinder(recurse=False).find(thing, name, globs=names):
        doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    return "".join(said)


@pytest.mark.parametrize("name", [name for name, each in PUBLIC.items() if ">>>" in (each.__doc__ or "")])
def test_an_example_runs(name, names):
    said = run(name, PUBLIC[name], names)
    assert not said, said


def exported():
    """Every name of graphreg and of its public rooms."""
    found = {name: getattr(gr, name) for name in gr.__all__}
    for room in map(importlib.import_module, (f"graphreg.{room}" for room in gr._SUBMODULES)):
        for name in getattr(room, "__all__", ()):
            found[f"{room.__name__.partition('.')[2]}.{name}"] = getattr(room, name)
    return found


VERBS = {
    f"{room}.{name}": each
    for room in ("inference", "theory", "tuning", "datasets", "plots")
    for name, each in inspect.getmembers(importlib.import_module(f"graphreg.{room}"), inspect.isfunction)
}
# other rooms call these, or results do; of the last two the result is made by what takes seconds
INSIDE = ("form_of", "parameter_meant", "parameters_in", "square_roots", "strength_bounds", "varying", "local_fits")
INSIDE += ("is_probabilistic", "usual_method", "given_places", "kkt", "outlines_of", "positions_or_outlines")
INSIDE += ("confidence_region", "plot_audit")


VERBS = {name: each for name, each in VERBS.items() if name.partition(".")[2] not in INSIDE}


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_of_a_room_has_an_example_that_runs(name, names):
    assert ">>>" in (VERBS[name].__doc__ or ""), f"{name} has no example"
    said = run(name, inspect.unwrap(VERBS[name]), names)
    assert not said, said


@pytest.mark.parametrize("name", exported())
def test_what_is_exported_has_an_example_that_runs(name, names):
    thing = exported()[name]
    if name.startswith("neural."):
        pytest.importorskip("torch")
    assert ">>>" in (thing.__doc__ or ""), f"{name} has no example: two to five lines with a result that teaches"
    if name not in PUBLIC | VERBS:  # whose examples run above
        kind = thing if hasattr(thing, "__name__") else type(thing)
        said = run(name, kind, {**names, kind.__name__: kind})
        assert not said, said


@pytest.mark.parametrize("name", PUBLIC)
def test_it_is_said_what_is_returned_and_raised(name):
    """Returns, unless that is None or the axes; Raises, where it raises anything itself; an example, but for plots."""
    there, function = sections(PUBLIC[name]), PUBLIC[name]
    returns = inspect.signature(function).return_annotation
    assert "Returns" in there or returns in ("None", "Axes"), f"{name} does not say what it returns ({returns})"
    raising = "raise " in inspect.getsource(function)
    assert "Raises" in there or not raising, f"{name} does not say what it raises"
    assert "Examples" in there or name.startswith("plots."), f"{name} has no example"


def test_what_is_not_said_is_found():
    def silent(x: int) -> int:
        """Doubled.

        Returns
        ------
        Not underlined as a title is.
        """
        raise ValueError(x)

    assert sections(silent) == {"Returns"}
    assert "Raises" not in sections(silent)


# ---- what users look for, and where they find it ---------------------------------------------------------------------
SOUGHT = {
    "held-out score": (gr.cross_validate, gr.Solution.score),
    "regularisation path": (gr.path,),
    "standard errors": (gr.inference.local_regions, gr.inference.hierarchical),
    "missing values": (gr.fit, gr.NodeData.from_frame),
    "trend filter": (type(gr.w).along,),
    "network lasso": (gr.TotalVariation,),
    "confidence interval": (gr.inference.local_regions,),
    "random effects": (gr.inference.hierarchical,),
}


@pytest.mark.parametrize("words", SOUGHT)
def test_what_is_sought_is_found(words):
    for thing in SOUGHT[words]:
        assert words in " ".join((inspect.getdoc(thing) or "").lower().split()), thing
