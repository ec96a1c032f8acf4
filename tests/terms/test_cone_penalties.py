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


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda z: cp.pos(cp.sum(z) - 1), id="beyond 1"),
        pytest.param(lambda z: cp.pos(cp.sum(z)), marks=pytest.mark.whole, id="beyond 0"),
        pytest.param(lambda z: cp.pos(z[0] - z[1] - 1), marks=pytest.mark.whole, id="differences"),
        pytest.param(lambda z: cp.square(cp.pos(cp.sum(z) - 1)), id="squares"),
    ],
)
def test_what_is_flat_along_a_direction_passes_the_check(function):
    """Rounding leads out of the line in which prices can lie, whatever they are near."""
    report = check_penalty(AbstractPenalty.from_cvxpy(function), k=2)
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


def failing(laws, phi, k=1, seed=0):
    """Those of the laws that a penalty on k coordinates breaks."""
    tried = {name: law for name, law in LAWS.items() if name in laws}
    return {failure.law for failure in try_laws(tried, phi, Probe(phi, k, seed, phi.accuracy()), lambda law: None)}


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


OF_FLOWS = {"shapes and rows", "prox fenchel young", "fenchel young everywhere", "ends of the domain", "subgradient"}
LARGEST = {  # of functions that are right, in the accuracy of the solver that evaluates them
    "positive part": lambda z: cp.norm2(cp.pos(z)),
    "larger of two": lambda z: cp.maximum(cp.norm2(z), 0.7 * cp.norm1(z)),
    "log-sum-exp": lambda z: cp.log_sum_exp(cp.hstack([z, -z, 0])) - np.log(2.0 * z.size + 1),  # -2e-16 at 0
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["positive part", "larger of two"])
def test_a_law_knows_how_accurately_a_term_is_evaluated(name, seed):
    phi = gr.Penalty.from_cvxpy(LARGEST[name]).acting_on(3)
    assert failing(OF_FLOWS, phi, 3, seed) == set()


def test_rounding_takes_no_value_below_0(derive):
    phi = derive(LARGEST["log-sum-exp"], 1)
    assert phi.value(np.zeros((1, 1)))[0] == 0.0
    assert failing({"non negative", "gauge at zero"}, phi) == set()


@pytest.mark.parametrize("name", ["positive part", "larger of two"])
@pytest.mark.parametrize("method", ["prox", "step", "gauge", "value", "conjugate"])
def test_what_is_off_by_a_thousandth_fails_the_laws(method, name):
    right = gr.Penalty.from_cvxpy(LARGEST[name]).acting_on(2)
    kind = type(right)
    wrong = {
        "prox": lambda phi, v, step: 1.001 * kind.prox(phi, v, step),
        "step": lambda phi, v, step: kind.prox(phi, v, 1.001 * np.asarray(step)),
        "gauge": lambda phi, u: kind.gauge(phi, u) / 1.001,
        "value": lambda phi, z: 0.999 * kind.value(phi, z),
        "conjugate": lambda phi, u: kind.conjugate(phi, u) - 1e-3 * np.minimum(np.abs(u).sum(axis=1), 1.0),
    }
    mistaken = type(kind.__name__, (kind,), {{"step": "prox"}.get(method, method): wrong[method]})
    phi = mistaken(**{name: getattr(right, name) for name in right.__dataclass_fields__})
    assert failing(OF_FLOWS, phi, 2)


def test_the_end_of_a_domain_has_a_bound():
    phi = gr.Penalty.from_cvxpy(lambda z: cp.sum(-cp.entr(1 + z) - z)).acting_on(2)  # 0 log 0 at -1
    assert failing({"value bound of penalties"}, phi, 2) == set()


def test_a_subgradient_is_that_of_a_near_point_where_a_penalty_is_steep():
    phi = gr.Penalty.from_cvxpy(lambda z: 1e3 * (cp.norm1(z) + cp.norm2(z))).acting_on(3)
    assert failing({"subgradient"}, phi, 3) == set()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (lambda Z: cp.Constant(np.zeros(Z.shape[0])), "cvxpy has the value of the function, missed in"),
        (lambda Z: cp.Constant(np.full(Z.shape[0], 7.0)), "cvxpy has the value of the function, missed in 48 of 48"),
        (lambda Z: np.zeros(Z.shape[0]), "what it writes for CVXPY is no expression of CVXPY, but array"),
        (lambda Z: 0.0, "what it writes for CVXPY is no expression of CVXPY, but 0.0"),
        (lambda Z: [], "cvxpy has the value of the function, missed in"),
    ],
)
def test_a_constant_form_for_cvxpy_is_found(written, said):
    class Forgets(gr.L1):
        def cvxpy(self, Z):
            return written(Z)

    report = check_penalty(Forgets(), k=1)
    found = {failure.law: failure.sentence for failure in report.failures}
    assert found.keys() == {"cvxpy value", "cvxpy argmin"}
    assert found["cvxpy value"].startswith(said)


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
