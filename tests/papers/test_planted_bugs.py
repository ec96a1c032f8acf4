"""Bugs of a line that are planted in the library turn the verdict of a claim that vouches for that line."""

from __future__ import annotations

import inspect
import sys
import textwrap
from dataclasses import replace
from importlib import import_module

import pytest

from graphreg.inference import estimators
from graphreg.methods.known_clusters.async_al2sgd import AsyncAL2SGD
from papers import Runner, Verdict, declarations

# where the function is looked up, its name, a piece of its source, and what is written for it
BUGS = {
    "gtv.def1-maxflow": (
        import_module("graphreg.theory.well_connected"),
        "examine",
        "found.t > 1.0 and (math.isinf(found.t) or routing.route(found.sink, finite, strictly=True)[0])",
        "found.t > 0.9",
    ),
    "clusters.thm4.3": (AsyncAL2SGD, "_momentum", "_set(self.a1, np", "_set(self.a1, 0.2 * np"),
    "clusters.prop5.4": (estimators, "shrunken", "(q - 2.0)", "(q + 2.0)"),
}
SMALL = {"clusters.thm4.3": {"gammas": (1.0, 10.0), "eps": 1e-2}, "clusters.prop5.4": {"count": 100}}


def plant(monkeypatch, owner, name, right, wrong):
    function = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(right) == 1
    names = dict(vars(sys.modules[function.__module__]))
    exec(f"from __future__ import annotations\n{source.replace(right, wrong)}", names)
    monkeypatch.setattr(owner, name, names[name])


@pytest.mark.parametrize("id", BUGS)
def test_a_planted_bug_turns_the_verdict(id, monkeypatch):
    declared = declarations()[id]
    small = replace(declared, quick=SMALL.get(id, declared.quick))
    assert Runner().run(small).verdict == declared.expected
    plant(monkeypatch, *BUGS[id])
    claim = Runner().run(small)
    assert claim.verdict == Verdict.FAILS
    assert claim.unexplained
