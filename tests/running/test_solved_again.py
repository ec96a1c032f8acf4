"""What one run of a small problem finds is kept for the next, and no bit of an answer tells."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.certificate.kernel import squares, system
from graphreg.certificate.proposing import enclosure
from graphreg.form import form
from graphreg.network import view as views
from graphreg.running import driver

METHODS = (gr.PrimalDual(), gr.ADMM(), gr.FedADMM(batch=2), gr.InteriorPoint())


def problem(strength, *, shift=0.0):
    """A chain with an intercept, so that methods run around its common model, and a strength that may change."""
    rng = np.random.default_rng(0)
    X = {k: np.column_stack([np.ones(6), rng.normal(size=6)]) for k in range(8)}
    data = gr.NodeData.from_dict({k: (X[k], X[k] @ [3.0, k % 2] + shift + rng.normal(size=6)) for k in X})
    return gr.Problem(gr.SquaredLoss(data) + strength * gr.TotalVariation(nx.path_graph(8), gr.L2()))


def same(one, other):
    points = zip(one.certificate.dual_point.flows, other.certificate.dual_point.flows, strict=True)
    assert np.array_equal(one.coef, other.coef)
    assert all(np.array_equal(u, v) for u, v in points)
    assert [vars(each)["relative_gap"] for each in one.trace.records] == [
        vars(each)["relative_gap"] for each in other.trace.records
    ]
    assert one.ledger == other.ledger


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_an_answer_is_that_of_a_new_problem(method):
    strength = gr.Parameter(0.2, name="lam")
    kept = problem(strength)
    for value, seed in ((0.2, 1), (0.2, 2), (0.05, 2), (0.2, 1)):
        strength.value = value
        again = kept.solve(method, seed=seed, rounds=60, on_failure="return")
        same(again, problem(value).solve(method, seed=seed, rounds=60, on_failure="return"))


def test_the_form_and_what_is_proved_of_its_hessians_are_found_once_for_all_strengths(monkeypatch):
    found = []
    monkeypatch.setattr(enclosure, "Curvature", lambda *given: found.append(given) or squares.Curvature(*given))
    strength = gr.Parameter(0.2, name="lam")
    given = problem(strength)
    first = given.form.frozen()
    given.solve(gr.PrimalDual())
    assert given.form.frozen() is first
    strength.value = 0.05
    other = given.form.frozen()
    assert other is not first
    assert [float(edge.strength) for edge in (*first.edges, *other.edges)] == [0.2, 0.05]
    given.solve(gr.PrimalDual())
    given.solve(gr.PrimalDual())
    assert len(found) == 2  # once for each form around the common model


def test_proxes_the_centred_form_and_the_matrix_are_found_once(monkeypatch):
    found = []
    for module, name in ((views, "node_proxes"), (driver, "centred"), (system, "Columns")):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, name=name, real=real: found.append(name) or real(*given))
    given = problem(0.2)
    for _ in range(3):
        given.solve(gr.PrimalDual())
    assert sorted(found) == ["Columns", "centred", "node_proxes"]
    monkeypatch.setattr(form, "SMALL", 0)  # of a large one nothing is held between two runs
    given = problem(0.2)
    for _ in range(3):
        given.solve(gr.PrimalDual())
    assert sorted(found) == ["Columns"] * 4 + ["centred"] * 4 + ["node_proxes"] * 4
