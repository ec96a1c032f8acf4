"""The interior-point method: optima, conserved points, refusals, budgets, scales, and what it can go on from."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from core_cases import INTERIOR, view_of
from factories import thinned
from sameness import ROUNDS, broken, facts

import graphreg as gr
from graphreg.certificate import common
from graphreg.certificate.repairing.repair import Repair
from graphreg.datasets import random_problem
from graphreg.form.form import DualPoint
from graphreg.methods.interior_point._interior import InteriorBlocks, sufficient_capacity
from graphreg.methods.interior_point.cones import Scaling
from graphreg.running.schedule import Schedule
from graphreg.terms.penalties.base import row_norm

METHOD = gr.InteriorPoint()
N, D = 9, 3


def rows(rng, loss, n=N, per=6, scale=1.0, **more):
    """A loss on n nodes, the last of which has no data."""
    node = np.repeat(np.arange(n - 1), per)
    X = scale * rng.standard_normal((len(node), D))
    truth = np.where((node < n // 2)[:, None], 1.0, -1.0) / scale
    x = np.einsum("ij,ij->i", X, truth) + rng.standard_normal(len(node))
    if loss is gr.MeanLoss:
        return gr.MeanLoss(gr.NodeData.from_arrays(None, X, node), **more)
    y = {
        gr.LogisticLoss: (x > 0).astype(int),
        gr.HingeLoss: (x > 0).astype(int),
        gr.SquaredHingeLoss: (x > 0).astype(int),
        gr.PoissonLoss: rng.poisson(np.exp(np.clip(x, -3, 3))),
        gr.MultinomialLoss: np.digitize(x, [-1.0, 1.0]),
    }.get(loss, x)
    return loss(gr.NodeData.from_arrays(X, y, node), **more)


def grid(rng=None, n=N):
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(n // 3, 3))
    for _, _, attributes in graph.edges(data=True):
        attributes["weight"] = 1.0 if rng is None else float(rng.uniform(0.2, 2.0))
    return graph


def shared(penalty=None, graph=None, **more):
    return gr.TotalVariation(grid() if graph is None else graph, penalty or gr.L2(), **more)


def ridge(strength=1e-3):
    return strength * gr.NodePenalty(gr.SquaredL2())


def certified(problem, gap=1e-8, **budget):
    """The answer of the method, which is held to that of a conic solver."""
    found = problem.solve(METHOD, gap=gap, **budget)
    assert found.status == "certified"
    assert found.certificate.relative_gap <= gap
    exact = problem.solve(gr.Exact(), gap=1e-6, on_failure="return")
    yardstick = max(abs(exact.objective), common(problem.form).floor)
    assert found.objective <= exact.certificate.primal + 2e-8 * yardstick
    assert found.objective >= exact.certificate.dual - 1e-12 * yardstick
    return found


# ---- optima ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", thinned(INTERIOR, every=4))
def test_the_optimum_of_a_random_problem(seed):
    problem = random_problem(seed).problem
    exact = problem.solve(gr.Exact(), gap=1e-6, on_failure="return")
    found = problem.solve(METHOD, gap=1e-8, on_failure="return")
    assert found.status in ("certified", "unattained")
    assert (found.status == "unattained") == (exact.status == "unattained")
    assert found.certificate.relative_gap <= 1e-8
    yardstick = max(abs(exact.objective), common(problem.form).floor)
    assert found.objective <= exact.certificate.primal + 2e-8 * yardstick
    assert found.objective >= exact.certificate.dual - 1e-12 * yardstick


LOSSES = (gr.SquaredLoss, gr.MeanLoss, gr.LogisticLoss, gr.PoissonLoss, gr.HuberLoss, gr.SquaredHingeLoss)
LOSSES += (gr.MultinomialLoss, gr.QuantileLoss, gr.HingeLoss, gr.SquaredEpsilonInsensitiveLoss, gr.ExpectileLoss)
PENALTIES = (gr.L1(), gr.L2(), gr.SquaredL2(), gr.HuberNorm(0.2), gr.Quadratic(np.diag([1.0, 2.0, 0.0])))


@pytest.mark.parametrize(("loss", "penalty", "strength"), thinned(LOSSES, PENALTIES, [0.03, 0.5, 30.0], every=3))
def test_every_loss_with_every_penalty(loss, penalty, strength):
    """Each pair at one strength; at all three with ``make test ARGS=--whole``."""
    if loss is gr.MultinomialLoss and isinstance(penalty, gr.Quadratic):
        penalty = gr.Quadratic(np.diag(np.arange(9.0)))
    rng = np.random.default_rng(5)
    certified(gr.Problem(rows(rng, loss) + strength * shared(penalty) + ridge()))


def parts():
    """Two components and isolated nodes, one of them without data."""
    graph = nx.Graph([(0, 1), (2, 3), (3, 4)])
    graph.add_nodes_from(range(N))
    return graph


MODELS = {
    "several total variations": lambda rng: (
        rows(rng, gr.SquaredLoss)
        + 0.1 * shared(gr.L1(), grid(rng))
        + 0.2 * shared(gr.L2(), nx.star_graph(N - 1))
        + 0.1 * shared(gr.L2(), nx.path_graph(N), features=["x1", "x2"])
    ),
    "hierarchy": lambda rng: (
        rows(rng, gr.SquaredLoss) + 0.3 * gr.Hierarchy({i: f"cluster {i % 3}" for i in range(N)}, (1.0, 2.0), gr.L2())
    ),
    "hierarchy of logistic regressions": lambda rng: (
        rows(rng, gr.LogisticLoss)
        + 0.1 * gr.Hierarchy({i: f"cluster {i % 3}" for i in range(N)}, (1.0, 0.3), gr.L2())
        + ridge()
    ),
    "centers": lambda rng: (
        rows(rng, gr.SquaredLoss)
        + 0.3 * shared()
        + 5.0 * gr.NodePenalty(gr.L2(), center={i: rng.standard_normal(D) for i in range(N)})
        + 3.0 * gr.NodePenalty(gr.L1(), center=np.ones(D))
    ),
    "sparse": lambda rng: rows(rng, gr.SquaredLoss) + 0.3 * shared() + 0.2 * gr.NodePenalty(gr.L1()),
    "isolated nodes": lambda rng: rows(rng, gr.SquaredLoss) + 0.3 * shared(graph=parts()),
    "no edges with kinks": lambda rng: rows(rng, gr.HuberLoss, delta=0.3) + ridge(0.1),
    "no edges at all": lambda rng: 1.0 * rows(rng, gr.SquaredLoss, n=4),
    "one node": lambda rng: (
        gr.SquaredLoss(gr.NodeData.from_arrays(rng.standard_normal((9, D)), rng.standard_normal(9), [0] * 9))
        + 0.5 * gr.NodePenalty(gr.L2())
    ),
    "small deltas": lambda rng: rows(rng, gr.HuberLoss, delta=0.03) + 3e-3 * shared(),
    "two losses": lambda rng: (
        rows(rng, gr.SquaredLoss, n=6)
        + 0.5 * gr.HuberLoss(gr.NodeData.from_arrays(rng.standard_normal((12, D)), rng.standard_normal(12), [6, 7] * 6))
        + 0.2 * shared()
    ),
}


@pytest.mark.parametrize("model", MODELS)
def test_the_optimum_of(model):
    certified(gr.Problem(MODELS[model](np.random.default_rng(2))))


@pytest.mark.parametrize(
    ("loss", "unit"), thinned([gr.SquaredLoss, gr.LogisticLoss, gr.HuberLoss], [1e-6, 1e-3, 1e3, 1e6], every=2)
)
def test_units_do_not_matter(loss, unit):
    """Of the objective; of the features, with strengths that follow."""
    for model in (
        unit * rows(np.random.default_rng(1), loss) + 0.1 * unit * shared(),
        rows(np.random.default_rng(1), loss, scale=unit) + 0.1 * unit * shared(),
    ):
        found = certified(gr.Problem(model))
        assert found.rounds <= 40


def test_gaps_that_only_exact_arithmetic_would_close():
    found = certified(gr.Problem(rows(np.random.default_rng(3), gr.SquaredLoss) + 0.2 * shared()), gap=1e-11)
    assert found.certificate.relative_gap <= 1e-11


# ---- what it hands to the certificate --------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_points_are_conserved_and_need_no_repair(loss, monkeypatch):
    def never(self, w, point, gap):
        raise AssertionError("a repair was asked for")

    monkeypatch.setattr(Repair, "__call__", never)
    problem = gr.Problem(rows(np.random.default_rng(4), loss) + 0.3 * shared() + ridge(0.01))
    found = problem.solve(METHOD, gap=1e-8)
    assert found.status == "certified"
    point = found.certificate.dual_point
    through = sum(float(row_norm(u).sum()) for u in point.flows)
    assert np.abs(problem.form.conservation(point)).max() <= 1e-13 * through


def test_iterates_are_conserved_and_inside_from_early_on():
    form = gr.Problem(rows(np.random.default_rng(4), gr.SquaredLoss) + 0.3 * shared()).form
    state = METHOD.init(view_of(form), None)
    for _ in range(8):
        state = METHOD.step(state)
        w, flows, prices = METHOD.point(state)
        point = DualPoint(flows, prices)
        size = sum(float(np.abs(u).sum()) for u in flows)
        assert np.abs(form.conservation(point)).max() <= 1e-12 * size
    assert np.isfinite(form.dual(point))
    assert form.dual(point) <= form.primal(w) * (1 + 1e-12)
    assert form.primal(w) - form.dual(point) <= 1e-6 * form.primal(w)


def test_fused_nodes_are_equal_to_the_bit():
    found = gr.Problem(rows(np.random.default_rng(6), gr.SquaredLoss) + 100.0 * shared()).solve(METHOD, gap=1e-8)
    assert len(np.unique(found.coef, axis=0)) == 1


# ---- capacities ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss, gr.HuberLoss, gr.MultinomialLoss, gr.QuantileLoss])
def test_what_is_enough_is_more_than_flows(loss):
    """At the optimum, where all gradients together are below half of it."""
    problem = gr.Problem(rows(np.random.default_rng(7), loss) + 0.3 * shared() + ridge(0.1))
    enough = sufficient_capacity(problem.form)
    found = problem.solve(gr.Exact(), gap=1e-6)
    prices = DualPoint(problem.form.nothing().flows, problem.form.gradient_prices(found.certificate.w))
    left = np.abs(problem.form.conservation(prices)).sum(axis=0)
    assert (left < 0.5 * enough).all()
    assert np.isfinite(enough).all()


def test_without_a_bound_nothing_is_cut():
    rng = np.random.default_rng(8)
    assert (sufficient_capacity(gr.Problem(rows(rng, gr.PoissonLoss) + shared()).form) == np.inf).all()
    centered = gr.NodePenalty(gr.L2(), center=np.ones(D))
    assert (sufficient_capacity(gr.Problem(rows(rng, gr.SquaredLoss) + shared() + centered).form) == np.inf).all()


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2()], ids=["L1", "L2"])
@pytest.mark.parametrize("strength", [1e3, 1e6, 1e9])
def test_strengths_far_beyond_what_fuses_all(penalty, strength):
    found = certified(
        gr.Problem(rows(np.random.default_rng(9), gr.LogisticLoss) + strength * shared(penalty) + ridge())
    )
    assert len(np.unique(found.coef, axis=0)) == 1


# ---- refusals --------------------------------------------------------------------------------------------------------
class Silent(gr.HingeLoss):
    """One that does not say where its kink is."""

    def bends(self, y):
        return None


def test_what_is_missing_is_listed():
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((9, 2)), np.arange(9) % 2, np.arange(9))
    with pytest.raises(gr.errors.MethodError, match="Silent has neither second derivatives"):
        gr.Problem(Silent(data) + shared()).solve(METHOD)
    with pytest.raises(gr.errors.MethodError, match=r"TotalVariation\(Ball\) has the penalty Ball"):
        gr.Problem(rows(rng, gr.SquaredLoss) + gr.TotalVariation(grid(), gr.Ball(0.3))).solve(METHOD)
    with pytest.raises(gr.errors.MethodError, match="Zero"):
        gr.Problem(rows(rng, gr.SquaredLoss) + gr.Consensus(grid())).solve(METHOD)
    with pytest.raises(gr.errors.MethodError, match=r"second derivatives.*; .* takes L1, L2 and smooth ones") as caught:
        gr.Problem(Silent(data) + gr.TotalVariation(grid(), gr.Ball(0.3))).solve(METHOD)
    assert len(caught.value.missing) == 2


def test_actors_are_refused():
    problem = gr.Problem(rows(np.random.default_rng(0), gr.SquaredLoss) + shared())
    with pytest.raises(gr.errors.GraphregError, match="InteriorPoint"):
        problem.solve(METHOD, engine=gr.Actors())


# ---- runs ------------------------------------------------------------------------------------------------------------
def chain(loss=gr.LogisticLoss, strength=0.1):
    return gr.Problem(rows(np.random.default_rng(11), loss) + strength * shared())


def test_rounds_are_counted_and_nothing_is_sent():
    found = chain().solve(METHOD, gap=0, rounds=5)
    assert found.rounds == found.ledger.rounds == 5
    certified = chain().solve(METHOD, gap=1e-6)
    for ledger in (found.ledger, certified.ledger):  # not for certificates either: all data are in one place
        assert not any(ledger.messages.values())
    fewer = chain().solve(METHOD, gap=1e-12, rounds=2, on_failure="return")
    assert (fewer.rounds, fewer.status) == (2, "budget")
    assert fewer.certificate.valid


def test_every_step_is_looked_at():
    """However slowly the first gaps fall: steps grow better at the end, and one too many is a large share of a run."""
    schedule = Schedule(1e-9, polishes=False, every=METHOD.every)
    for k, screen in enumerate([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], start=1):
        assert schedule.screen_now(k)
        schedule.note_screen(k, screen)


def test_seconds_end_a_run():
    found = chain().solve(METHOD, gap=0, seconds=1e-9)
    assert found.rounds <= 1
    assert found.status == "budget"


def test_a_gap_that_rounding_forbids_ends():
    found = chain().solve(METHOD, gap=1e-18, on_failure="return")
    assert found.rounds <= METHOD.most_rounds
    assert found.certificate.relative_gap <= 1e-10


@pytest.mark.parametrize("at", [0, 2])
def test_an_interruption_keeps_what_is_there(at, tmp_path):
    left = [at]

    def interrupt(record):
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt

    whole = chain().solve(METHOD, gap=1e-9)
    path = tmp_path / "run"
    first = chain().solve(METHOD, gap=1e-9, callback=interrupt, checkpoint=path)
    assert first.status == "interrupted"
    assert np.isfinite(first.coef).all()
    assert facts(chain().solve(METHOD, gap=1e-9, checkpoint=path)) == facts(whole)


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss, gr.HuberLoss])
def test_a_broken_run_has_the_bits_of_an_unbroken_one(loss, tmp_path):
    def problem():
        return chain(loss)

    whole = facts(problem().solve(METHOD, gap=0, rounds=12))
    assert facts(broken(problem, METHOD, tmp_path / "run", [1, 2, 5, 11], gap=0, rounds=12)) == whole
    assert METHOD.most_rounds < ROUNDS  # so that tests of checkpoints see whole runs


def test_a_start_is_taken():
    problem = chain()
    cold = problem.solve(METHOD, gap=1e-6)
    warm = problem.solve(METHOD, gap=1e-8, start=cold)
    assert warm.status == "certified"
    far = problem.solve(METHOD, gap=1e-8, start=50.0 * np.ones_like(cold.coef))
    assert far.status == "certified"
    assert far.objective == pytest.approx(warm.objective, rel=1e-7)
    ahead = problem.solve(METHOD, gap=0, rounds=1, start=cold)
    assert ahead.objective < problem.solve(METHOD, gap=0, rounds=1).objective


# ---- problems without a minimiser ------------------------------------------------------------------------------------
def test_losses_that_are_almost_kinks_are_told_honestly():
    """Newton's method goes from one flat piece to the next; whatever it reaches is certified as such."""
    rng = np.random.default_rng(2)
    found = gr.Problem(rows(rng, gr.HuberLoss, delta=1e-3) + 1e-4 * shared()).solve(METHOD, on_failure="return")
    assert found.certificate.valid
    assert (found.status == "certified") == (found.certificate.relative_gap <= 1e-6)


def test_separable_classes():
    """Told as PrimalDual tells them."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 2))
    y = (X @ [1.0, -1.0] + 0.8 * rng.standard_normal(60) > 0).astype(int)
    y[:20] = X[:20, 0] > 0
    graph = nx.Graph([(1, 2)])
    graph.add_node(0)
    data = gr.NodeData.from_arrays(X, y, np.repeat([0, 1, 2], 20))
    problem = gr.Problem(gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2()))
    found, other = (problem.solve(method, gap=1e-6, on_failure="return") for method in (METHOD, gr.PrimalDual()))
    assert found.status == other.status == "unattained"
    assert found.certificate.relative_gap <= 1e-6
    assert found.objective == pytest.approx(other.objective, rel=1e-5)


@pytest.mark.parametrize("strength", [0.01, 1.0])
def test_classes_that_are_all_separable(strength):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((24, 2))
    data = gr.NodeData.from_arrays(X, (X[:, 0] > 0).astype(int), np.arange(24) % 4)
    found = gr.Problem(gr.LogisticLoss(data) + strength * gr.TotalVariation(nx.path_graph(4), gr.L2())).solve(
        METHOD, on_failure="return"
    )
    assert found.status == "unattained"
    assert found.certificate.valid


def test_newton_steps_that_are_far_from_the_gap_are_not_looked_at():
    rng = np.random.default_rng(0)
    X, node = rng.standard_normal((120, 2)), np.repeat(np.arange(12), 10)
    data = gr.NodeData.from_arrays(X, np.sign(X.sum(axis=1) + rng.standard_normal(120)), node)
    ridge = 0.1 * gr.NodePenalty(gr.SquaredL2())
    problem = gr.Problem(gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(nx.cycle_graph(12), gr.L2()) + ridge)
    found = problem.solve(gr.InteriorPoint())
    looked = [record.round for record in found.trace.records]
    assert found.certificate.holds(1e-6)
    assert sorted(set(looked)) == list(range(1, found.rounds + 1))  # what it knows of itself is told of every step
    assert min(record.round for record in found.trace.records if record.certified) > 1
    loose = problem.solve(gr.InteriorPoint(), gap=1.0)
    assert loose.rounds < found.rounds


# ---- losses with kinks -----------------------------------------------------------------------------------------------
KINKED = (gr.HuberLoss, gr.QuantileLoss, gr.HingeLoss, gr.SquaredHingeLoss, gr.SquaredEpsilonInsensitiveLoss)


@pytest.mark.parametrize("loss", [*KINKED, gr.ExpectileLoss])
def test_pieces_add_up_to_the_derivative(loss):
    """Each is the b that maximises, in closed form."""
    rng = np.random.default_rng(0)
    y = rows(rng, loss).targets()
    bends, r = loss(rows(rng, loss).data).bends(y), rng.standard_normal(len(y))
    height, pieces = bends.pieces()
    for of, side, place, q, width in pieces:
        with np.errstate(divide="ignore"):
            b = np.clip(side * (r[of] - place) / q, 0.0, width)
        np.add.at(height, of, side * b)
    np.testing.assert_allclose(height, bends.at(r), atol=1e-12)


@pytest.mark.parametrize("loss", KINKED)
@pytest.mark.parametrize("strength", [1e-5, 1e-2, 1e2])
def test_kinks_take_few_steps_at_any_strength(loss, strength):
    found = certified(gr.Problem(rows(np.random.default_rng(12), loss) + strength * shared() + ridge()))
    assert found.rounds <= 22


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss, gr.QuantileLoss])
@pytest.mark.parametrize("strength", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("order", [1, 2])
def test_norms_that_are_smoothed_take_few_steps_at_any_strength(loss, strength, order):
    """By Hessians alone logistic losses took 35 and 52 steps at 0.1."""
    rng, n = np.random.default_rng(3), 300
    graph = gr.Graph.from_edges(nx.watts_strogatz_graph(n, 4, 0.1, seed=3).edges, nodes=range(n))
    over = strength * gr.HuberNorm(0.1)(gr.w.across(graph, order))
    problem = gr.Problem(rows(rng, loss, n=n) + over + ridge(1e-2))
    found = problem.solve(METHOD, progress=False)
    assert found.status == "certified"
    assert found.rounds <= 16


@pytest.mark.parametrize("soft", [0.0, 1e-9, 1.0, 1e9])
def test_cones_whose_rows_give_way(soft):
    rng, k, m = np.random.default_rng(4), 3, 5
    s, y = rng.standard_normal((2, 1 + k, m))
    for each in (s, y):
        each[0] = np.linalg.norm(each[1:], axis=0) * (1.0 + 10.0 ** rng.uniform(-6, 0, m))
    scaling, soft = Scaling.of(s, y), np.full(m, soft)
    (*_, D), inverse, x = scaling.reduced(soft), scaling.inverse(soft), rng.standard_normal((k, m))
    np.testing.assert_allclose(np.einsum("mij,mjk->mik", D, inverse), np.broadcast_to(np.eye(k), (m, k, k)), atol=1e-5)
    stiff = scaling.reduced()[2]
    stays = scaling.stays(x, soft)
    back = stays + soft * np.einsum("mij,jm->im", stiff, stays)
    np.testing.assert_allclose(back, x, rtol=1e-6, atol=1e-6 * np.abs(x).max())


def test_a_path_of_smoothed_norms_goes_on_from_neighbours():
    strength = gr.Parameter(1.0, name="strength")
    over = strength * shared(gr.HuberNorm(0.1))
    problem = gr.Problem(rows(np.random.default_rng(5), gr.SquaredLoss) + over + ridge())
    found = gr.path(problem, strengths=[10.0, 1.0, 0.1, 0.01], method=METHOD)
    assert all(each.status == "certified" for each in found)


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.HuberLoss, gr.QuantileLoss, gr.HingeLoss])
def test_columns_of_twelve_decades(loss):
    scale = np.array([1e-6, 1.0, 1e6])
    found = certified(gr.Problem(rows(np.random.default_rng(13), loss, scale=scale) + shared(gr.L1())))
    assert found.rounds <= 26


@pytest.mark.parametrize("tau", [0.01, 0.99])
def test_quantiles_far_out(tau):
    certified(gr.Problem(rows(np.random.default_rng(14), gr.QuantileLoss, tau=tau) + 0.1 * shared() + ridge()))


def test_several_losses_at_a_node():
    rng = np.random.default_rng(15)
    both = rows(rng, gr.QuantileLoss, tau=0.2) + rows(rng, gr.HuberLoss) + rows(rng, gr.HingeLoss)
    certified(gr.Problem(both + 0.1 * shared(gr.L1()) + gr.NodePenalty(gr.NonNegative())))


def test_points_are_looked_at_where_they_say_that_they_will_do():
    problem = gr.Problem(rows(np.random.default_rng(16), gr.QuantileLoss) + 0.1 * shared())
    found = problem.solve(METHOD)
    assert found.status == "certified"
    assert sum(record.certified for record in found.trace.records) <= 2


@pytest.mark.parametrize("seed", range(4))
def test_points_are_conserved_where_factors_are_not_accurate(seed):
    # columns and weights over two decades, few and many samples: without refinement 1e-11 is left open near the end
    rng, n = np.random.default_rng(seed), 60
    ends = [(int(rng.integers(i)), i) for i in range(1, n)] + [tuple(rng.integers(0, n, 2).tolist()) for _ in range(7)]
    graph = nx.Graph([(i, j, {"weight": 10 ** rng.uniform(-1, 1)}) for i, j in ends if i != j])
    node = np.repeat(np.arange(n), np.maximum(10 ** rng.normal(1.0, 0.5, n), 1.0).astype(int))
    X = rng.normal(size=(len(node), 5)) * np.logspace(0, -2, 5)
    y = X.sum(axis=1) + 0.5 * rng.standard_t(2, len(node))
    problem = gr.Problem(gr.QuantileLoss(gr.NodeData.from_arrays(X, y, node), tau=0.3) + 5.0 * shared(gr.L1(), graph))
    state, left = METHOD.init(view_of(problem.form), None), []
    while state.round < 30 and not state.gap < 1e-9:
        state = METHOD.step(state)
        _, flows, prices = METHOD.point(state)
        left.append(np.abs(problem.form.conservation(DualPoint(flows, prices))).max())
    assert state.gap < 1e-9
    assert max(left) <= 1e-10  # what the proximal term holds at first
    assert max(left[-5:]) <= 2e-14


def apart(size, alone, seed):
    """Hinges of nodes on a grid and of some without edges, whose two classes a line parts."""
    rng, grid = np.random.default_rng(seed), nx.convert_node_labels_to_integers(nx.grid_2d_graph(size, size))
    n = len(grid) + alone
    node = np.repeat(np.arange(n), 10)
    X, kinds = rng.standard_normal((len(node), 2)), rng.standard_normal((4, 2))
    y = np.where(np.einsum("rd,rd->r", X, kinds[node * 4 // n]) > 0.0, 1.0, -1.0)
    graph = gr.Graph.from_edges(list(grid.edges), nodes=range(n))
    return gr.Problem(gr.HingeLoss(gr.NodeData.from_arrays(X, y, node)) + 1e-4 * gr.TotalVariation(graph, gr.L2()))


@pytest.mark.parametrize("seed", range(2))
def test_classes_apart_at_weak_strengths(seed):
    """P falls faster than the complementarity, so that the gap relative to P rises for many steps."""
    found = apart(16, 0, seed).solve(METHOD, gap=1e-6)
    assert found.status == "certified"


def test_nodes_that_fit_without_a_loss_do_not_run_off():
    found = apart(8, 2, 0).solve(METHOD, gap=1e-6)
    assert found.status == "certified"
    assert np.abs(found.coef).max() < 1e4  # 3e7 without the proximal term


# ---- columns over many decades ---------------------------------------------------------------------------------------
def decades(loss, columns, edges=gr.L2, n=30, strength=0.1, **more):
    """Four kinds of nodes on a small world; without a ridge, what all have in common is large in small columns."""
    rng = np.random.default_rng(0)
    graph = nx.connected_watts_strogatz_graph(n, 4, 0.2, seed=1)
    node = np.repeat(np.arange(n), 10)
    X = rng.standard_normal((len(node), len(columns)))
    kinds = rng.standard_normal((4, len(columns)))
    x = np.einsum("rd,rd->r", X, kinds[node * 4 // n])
    noise = rng.standard_normal(len(node))
    y = {
        gr.LogisticLoss: np.where(x + noise > 0, 1, -1),
        gr.HingeLoss: np.where(x + noise > 0, 1, -1),
        gr.PoissonLoss: rng.poisson(np.exp(np.clip(x, -3, 3))),
    }.get(loss, x + 0.5 * noise)
    data = gr.NodeData.from_arrays(X * columns, y, node)
    return gr.Problem(loss(data, **more) + strength * gr.TotalVariation(graph, edges()))


@pytest.mark.parametrize("edges", [gr.L1, gr.L2])
@pytest.mark.parametrize(
    ("loss", "more"),
    [
        (gr.SquaredLoss, {}),
        (gr.HuberLoss, {}),
        (gr.LogisticLoss, {}),
        (gr.PoissonLoss, {}),
        (gr.QuantileLoss, {"tau": 0.3}),
    ],
)
@pytest.mark.parametrize("columns", [(1e-9, 1e12), (1e-9, 1e-2, 1e5, 1e12)])
def test_columns_of_21_decades(loss, more, edges, columns):
    found = decades(loss, columns, edges, **more).solve(METHOD, gap=1e-7, on_failure="return", progress=False)
    assert found.status == "certified"
    assert found.rounds < 60


def test_an_imbalance_is_worth_nothing_where_all_nodes_have_the_same_w():
    blocks = InteriorBlocks.of(view_of(decades(gr.SquaredLoss, (1e-9, 1.0)).form))
    w, slope = np.full(blocks.form.shape, 1e9), np.zeros(blocks.form.shape)
    slope[:2, 0] = 1.0, -1.0
    assert blocks._imbalance(blocks.system.vector(slope), w) == 0.0
    slope[2] = 1.0
    assert blocks._imbalance(blocks.system.vector(slope), w) == pytest.approx(2e9)
    w[:, 1] = np.arange(len(w))  # 14.5 on average, 14.5 from it at most
    assert blocks._imbalance(blocks.system.vector(slope), w) == pytest.approx(1e9 + 14.5 + 14.5)


@pytest.mark.parametrize("edges", [gr.L1, gr.L2])
def test_hinges_of_columns_of_21_decades(edges):
    """Nodes have fewer prices inside their ends than columns, and classes of some of them are apart, whose prices are 0
    but for what solvers leave of them, which is much in a column of 1e12."""
    problem = decades(gr.HingeLoss, (1e-9, 1e12), edges)
    assert problem.solve(gap=1e-6, on_failure="return", progress=False).status == "certified"
    assert problem.solve(gr.Exact(), gap=1e-6, on_failure="return", progress=False).status == "certified"


@pytest.mark.parametrize("seed", range(3))
def test_nodes_that_are_all_one_are_given_as_one(seed):
    """Where all differences tend to 0, none is small beside the others: they are so beside the parameters."""
    rng = np.random.default_rng(seed)
    X, y = np.column_stack([np.ones(600), rng.normal(size=600)]), rng.poisson(2.0, 600)
    loss = gr.PoissonLoss(gr.NodeData.from_arrays(X, y, np.repeat(np.arange(30), 20)), scale="sum")
    graph = gr.Graph.nearest_neighbours(rng.uniform(size=(30, 2)), k=4)
    most = gr.strength_max(gr.Problem(loss + gr.TotalVariation(graph, gr.L2()))).upper
    model = loss + 1.5 * most * gr.TotalVariation(graph, gr.L2()) + 1e-3 * gr.NodePenalty(gr.SquaredL2())
    found = gr.Problem(model).solve(gr.InteriorPoint())
    assert found.clusters().count == 1
    assert found.certificate.relative_gap < 1e-9
