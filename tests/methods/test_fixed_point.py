"""A fixed-point method of a user's own: the map alone is written, and accelerations come with one line."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest
from core_cases import iterate

import graphreg as gr
import graphreg.testing
from graphreg.errors import MethodError
from graphreg.methods.splitting._lossy import LossyEdges
from graphreg.oracles.gradients import without_steps
from graphreg.oracles.nodeprox import without_prox
from graphreg.terms.penalties.base import AbstractSmoothPenalty

NOTHING = gr.Acceleration()


def smooth(edge):
    return edge.ground and isinstance(edge.penalty, AbstractSmoothPenalty)


@dataclass(frozen=True)
class CondatVu(gr.AbstractFixedPoint):
    """The losses by their prox, smooth node penalties h by their gradient, all else on the edges:

        w+ = prox of tau f at w - tau (grad h(w) + K'u),     u+ = prox of sigma g* at u + sigma (K(2 w+ - w) - center)

    with 1/tau_i = L_i + deg_i / s and sigma = 1/(2 s), for relaxations up to 3/2 (Condat 2013, theorem 3.1).
    """

    acceleration: gr.Acceleration = NOTHING

    def missing(self, form):
        return without_prox(form)

    def image(self, state):
        view, x = state.view, state.x
        edges = [(k, edge) for k, edge in enumerate(view.form.edges) if smooth(edge)]
        flows, L = list(x.u), np.zeros(view.form.n)
        for k, edge in edges:
            flows[k] = edge.weight[:, None] * edge.penalty.gradient(edge.difference(x.w))
            np.add.at(L, edge.tail, edge.weight * edge.penalty.smoothness())
        tau = 1.0 / (L + 1.0 / view.steps(state.s))
        w, memory = view.prox(x.w - tau[:, None] * view.adjoint(flows), tau, state.hat.w, state.memory)
        u = list(view.dual_prox(x.u, view.engine.exchange(2.0 * w - x.w), state.s))
        for k, edge in edges:
            u[k] = edge.weight[:, None] * edge.penalty.gradient(edge.difference(w))
        return w, tuple(u), memory


ACCELERATED = CondatVu(gr.Acceleration(relaxation=1.4, restarts=True, balance=None))


def kinked(seed, strength=0.1):
    """Quantile losses with a small ridge on a chain, l1 on its edges."""
    rng = np.random.default_rng(seed)
    data = gr.NodeData.from_arrays(rng.standard_normal((48, 2)), rng.standard_normal(48), np.repeat(range(8), 6))
    model = gr.QuantileLoss(data, tau=0.4) + strength * gr.TotalVariation(nx.path_graph(8), gr.L1())
    return gr.Problem(model + 1e-3 * gr.NodePenalty(gr.SquaredL2()))


def test_one_line_makes_it_faster():
    total = np.zeros(2)
    for problem in map(kinked, range(2)):
        plain, fast = (problem.solve(method, gap=1e-5, rounds=4000) for method in (CondatVu(), ACCELERATED))
        assert plain.status == fast.status == "certified"
        assert fast.rounds <= plain.rounds
        assert fast.objective == pytest.approx(problem.solve(gr.PrimalDual()).objective, rel=2e-5)
        total += plain.rounds, fast.rounds
    assert total[1] < total[0] / 2  # 3353 and 883


def test_plain_it_is_the_map():
    """x+ = T x, and nothing is sent but what T sends."""
    run = kinked(0).solve(CondatVu(), gap=0, rounds=20)
    assert run.ledger.messages["adaptation"] == 0
    assert run.ledger.messages["method"] == 20 * 2 * 7


def test_it_keeps_the_laws_of_methods():
    report = graphreg.testing.check_method(ACCELERATED)
    assert report.ok, report


@pytest.mark.parametrize("method", [CondatVu(), ACCELERATED], ids=["plain", "accelerated"])
def test_actors_carry_it_out(method):
    arrays, actors = (kinked(1).solve(method, gap=0, rounds=30, engine=engine) for engine in (None, gr.Actors()))
    np.testing.assert_allclose(actors.coef, arrays.coef, atol=1e-10)


@dataclass(frozen=True)
class Gradients(LossyEdges):
    """Condat-Vu with the losses by their gradient: Davis-Yin splitting on copies, averaged for relaxation 1."""

    def missing(self, form):
        return without_steps(form)

    def nodes(self, state):
        view, x = state.view, state.x
        tau = 1.0 / (view.losses.smoothness + 1.0 / view.steps(state.s))
        return x.w - tau[:, None] * (view.losses.full(x.w) + view.adjoint(x.u)), ()

    def image(self, state):
        w, _ = self.nodes(state)
        return w, state.view.dual_prox(state.x.u, state.view.engine.exchange(2.0 * w - state.x.w), state.s), ()

    def for_lost_messages(self):
        return self


def test_messages_may_be_lost():
    """The edges' half that bears it is written once: a method of one's own says what its nodes do."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((48, 2)), rng.standard_normal(48), np.repeat(range(8), 6))
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(8), gr.L1()))
    assert problem.solve(Gradients(), gap=1e-8).status == "certified"
    engine = gr.Actors(faults=gr.Faults(drop=0.2))
    assert problem.solve(Gradients(), gap=1e-8, rounds=3000, seed=1, engine=engine).status == "certified"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"relaxation": 2.0}, r"Acceleration\(relaxation=...\) must be a number in \(0, 2\), got 2.0"),
        ({"balance": -1.0}, r"Acceleration\(balance=...\) must be a positive finite number or None, got -1.0"),
        ({"pace": 0}, r"Acceleration\(pace=...\) must be a whole number, at least 1, got 0"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(MethodError, match=words):
        gr.Acceleration(**options)


@pytest.mark.parametrize("relaxation", [0.5, 1.0, 1.4])
def test_a_round_goes_so_far_towards_the_image(relaxation):
    """x+ = x + relaxation (T x - x), for parameters and flows; T x is what is certified."""
    method = CondatVu(gr.Acceleration(relaxation=relaxation, balance=1.0, restarts=False))
    (state,) = iterate(method, kinked(0).form, [3])
    w, u, _ = method.image(state)
    new = method.step(state)
    np.testing.assert_array_equal(new.hat.w, w)
    np.testing.assert_allclose(new.x.w, state.x.w + relaxation * (w - state.x.w), rtol=1e-12, atol=1e-15)
    for got, old, end in zip(new.x.u, state.x.u, u, strict=True):
        np.testing.assert_allclose(got, old + relaxation * (end - old), rtol=1e-12, atol=1e-15)
    assert np.abs(w - state.x.w).max() > 1e-6
