"""Penalties from CVXPY that are not recognised: Newton's method for smooth functions, and cone programmes."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from factories import thinned

import graphreg as gr
from graphreg.reading_cvxpy import examine
from graphreg.reading_cvxpy.cone_penalty import AbstractConePenalty, ConePenalty
from graphreg.terms.penalties import AbstractPenalty
from graphreg.testing import check_penalty
from graphreg.testing.penalties import LAWS
from graphreg.testing.probe import Probe
from graphreg.testing.report import try_laws

P = 1.5
RIGHT = {
    "larger": lambda z: cp.maximum(cp.norm(z), cp.sum_squares(z)),
    "largest": lambda z: cp.sum(cp.maximum(cp.abs(z), cp.square(z))),
    "barrier": lambda z: -cp.sum(cp.log(1 - z**2)),
    "exponential": lambda z: cp.exp(cp.norm(z)) - 1,
    "root": lambda z: cp.norm(cp.hstack([z, 1])) - 1,
    "power": lambda z: cp.sum(cp.power(cp.abs(z), P)),
    "log-sum-exp": lambda z: cp.log_sum_exp(cp.hstack([z, -z])) - np.log(2.0 * z.size),
    "variation": lambda z: cp.norm1(cp.diff(z)) + cp.sum(cp.huber(z)),
    "over": lambda z: cp.quad_over_lin(z, 9 - cp.norm_inf(z)),
    "two largest": lambda z: cp.sum_largest(cp.abs(z), 2),
    "strong": lambda z: 1000 * (cp.norm_inf(z) + 0.5 * cp.norm(z)),
    "weak": lambda z: 1e-4 * (cp.norm_inf(z) + 0.5 * cp.norm(z)),
    "weak power": lambda z: 1e-4 * cp.power(cp.norm(z), P),
}


@pytest.fixture
def derive(monkeypatch):
    """Penalties on k coordinates that no closed form is known for."""
    monkeypatch.setattr(examine, "closed_form", lambda *_: None)

    def derived(function, k=3) -> AbstractConePenalty:
        found = AbstractPenalty.from_cvxpy(function).acting_on(k)
        assert isinstance(found, AbstractConePenalty)
        return found

    return derived


PASS = ("weak", "two largest", "log-sum-exp", "variation", "barrier")  # the others beside them only nearly


@pytest.mark.parametrize("name", ["strong", *(pytest.param(each, marks=pytest.mark.whole) for each in PASS)])
def test_what_is_right_passes_the_check(name, derive):
    derive(RIGHT[name])
    report = check_penalty(AbstractPenalty.from_cvxpy(RIGHT[name]), k=2)
    assert report.ok, str(report)


class DoubledStep(ConePenalty):
    def prox(self, v, step):
        return super().prox(v, 2.0 * np.asarray(step))


class OffConjugate(ConePenalty):
    def largest(self, u):
        return (1.0 - 1e-5) * super().largest(u)


class MissingHalf(ConePenalty):
    def value(self, z):
        return 0.5 * super().value(z)


def failing(laws, phi):
    """Those of the laws that a penalty on one coordinate breaks."""
    tried = {name: law for name, law in LAWS.items() if name in laws}
    return {failure.law for failure in try_laws(tried, phi, Probe(phi, 1, 0, phi.accuracy()))}


@pytest.mark.parametrize(
    ("kind", "laws"),
    [
        (DoubledStep, {"prox fenchel young", "cvxpy argmin"}),
        (OffConjugate, {"fenchel young everywhere"}),
        (MissingHalf, {"prox fenchel young", "cvxpy value"}),
    ],
)
def test_what_is_broken_fails_the_check(kind, laws, derive):
    phi = derive(RIGHT["power"], 1)
    fields = {name: getattr(phi, name) for name in phi.__dataclass_fields__}
    assert failing(laws, kind(**fields)) == laws


def wild(k=3):
    """Rows from tiny to huge, with ties and zeros."""
    rng = np.random.default_rng(0)
    v = rng.normal(size=(60, k)) * np.logspace(-4, 4, 60)[:, None]
    v[::5, 0], v[1::5, 1] = 0.0, v[1::5, 0]
    return v


def test_the_prox_of_a_maximum_is_that_of_its_pieces(derive):
    phi, v, step = derive(RIGHT["larger"]), wild(), np.logspace(2, -2, 60)
    t = np.linalg.norm(v, axis=1)
    # the slope is 1 below length 1 and twice the length above
    r = np.where(t <= 1.0 + step, np.maximum(t - step, 0.0), np.maximum(t / (1.0 + 2.0 * step), 1.0))

    def objective(p):
        return step * np.maximum(np.linalg.norm(p, axis=1), (p**2).sum(axis=1)) + 0.5 * ((p - v) ** 2).sum(axis=1)

    best = objective(v * (r / t)[:, None])
    assert (objective(phi.prox(v, step)) <= best + 1e-6 * (best + t**2)).all()
    top = np.where(t <= 1.0, 0.0, np.where(t <= 2.0, t - 1.0, t**2 / 4.0))
    assert (phi.conjugate(v) >= top * (1.0 - 1e-14)).all()


@pytest.mark.parametrize("name", ["variation", "larger", "over", "log-sum-exp"])
def test_no_point_is_above_the_conjugate(name, derive):
    """Kinks may leave nothing to gain along a row and its axes, though there is along their sum."""
    phi, rng = derive(RIGHT[name]), np.random.default_rng(2)
    u = phi.domain.clip(np.vstack([np.eye(3), -1.5 * np.eye(3), rng.normal(size=(10, 3))]))
    top = phi.conjugate(u)
    directions = np.vstack([np.ones((1, 3)), np.tri(3), np.eye(3), rng.normal(size=(10, 3))])
    z = np.vstack([t * directions for t in (-2.0, -0.6, -0.2, 0.05, 0.2, 0.6, 2.0)] + [phi.prox(1e3 * u, 1e3)])
    below = u @ z.T - phi.value(z)
    assert (below <= top[:, None] * (1.0 + 1e-14)).all()
    assert np.isfinite(top).any()


@pytest.mark.parametrize(
    ("factor", "name"), thinned([2.0**-20, 2.0**20], ["larger", "power", "root", "strong", "two largest"], every=2)
)
def test_a_factor_is_a_change_of_units(name, factor, derive):
    phi, scaled = derive(RIGHT[name]), derive(lambda z: factor * RIGHT[name](z))
    v = wild()[10:50:2]
    size = np.linalg.norm(v, axis=1, keepdims=True)
    apart = np.abs(scaled.prox(v, 0.7 / factor) - phi.prox(v, 0.7)) / size
    assert apart.max() <= 1e-6
    np.testing.assert_allclose(factor * scaled.domain.gauge(factor * v), factor * phi.domain.gauge(v), rtol=1e-7)
    u = v / np.maximum(1.0, 2.0 * phi.domain.gauge(v))[:, None]
    np.testing.assert_allclose(scaled.conjugate(factor * u), factor * phi.conjugate(u), rtol=1e-6)
    apart = np.abs(scaled.subgradient(v) / factor - phi.subgradient(v)).max(axis=1)
    assert (apart <= 1e-3 * np.abs(phi.subgradient(v)).max(axis=1)).all()


def test_a_strong_norm_has_a_conjugate_that_is_not_finite_everywhere(derive):
    phi = derive(lambda z: 1e9 * (cp.norm_inf(z) + cp.norm(z)))
    assert np.isinf(phi.conjugate(np.full((1, 3), 1e10))).all()
    assert (phi.conjugate(np.full((1, 3), 1e7)) == 0.0).all()


@pytest.mark.parametrize(
    "function",
    [RIGHT["root"], RIGHT["strong"], lambda z: cp.sum(cp.maximum(0.3 * z, -0.7 * z)) + cp.square(cp.pos(z[0]))],
)
def test_a_bounded_domain_of_the_conjugate_is_found(function, derive):
    phi = derive(function)
    assert np.isinf(phi.conjugate(np.full((1, 3), -2e3))).all()


@pytest.mark.parametrize("name", ["over", "exponential", "barrier"])
def test_a_conjugate_that_is_finite_everywhere_is_found(name, derive):
    phi = derive(RIGHT[name])
    far = np.vstack([np.eye(3), -np.eye(3)]) * 1e3
    assert (phi.domain.gauge(far) == 0.0).all()
    assert np.isfinite(phi.conjugate(far)).all()


def test_rows_do_not_see_one_another(derive):
    phi, v = derive(RIGHT["log-sum-exp"]), wild()
    alone = np.vstack([phi.prox(v[i : i + 1], 0.5) for i in range(0, 60, 6)])
    np.testing.assert_allclose(phi.prox(v, 0.5)[::6], alone, rtol=1e-9, atol=1e-9)
    assert phi.prox(np.empty((0, 3)), 1.0).shape == (0, 3)
    assert phi.conjugate(np.empty((0, 3))).shape == (0,)


def test_a_huge_step_leaves_nothing(derive):
    phi, v = derive(RIGHT["over"], 1), np.array([[-2.30916251], [0.5]])
    assert np.abs(phi.prox(v, 1e9)).max() <= 1e-6


def test_both_routes_agree_on_a_kinked_function(derive):
    penalty = AbstractPenalty.from_cvxpy(RIGHT["larger"])
    rng = np.random.default_rng(3)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(5, 3)), rng.normal(size=5)) for i in range(5)})
    graph = nx.path_graph(4)
    graph.add_node(4)
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, penalty))
    exact, run = problem.solve(), problem.solve(gr.PrimalDual(), seconds=20)
    assert exact.status == run.status == "certified"
    assert max(exact.certificate.dual, run.certificate.dual) <= min(exact.objective, run.objective)
