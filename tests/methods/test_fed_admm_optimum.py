"""Fed-ADMM: certified optima, rates, weights, starts and scales."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from core_cases import iterate, view_of
from factories import thinned
from federated_factories import (
    AWAY,
    CLASSES,
    ESTIMATED,
    ByHand,
    D,
    L_of,
    N,
    P,
    data_of,
    edges_of,
    graph_of,
    run_of,
    squared,
)

import graphreg as gr
from graphreg.certificate import common
from graphreg.datasets import random_problem
from graphreg.errors import MethodError


@pytest.mark.parametrize(("case", "away"), thinned(CLASSES, AWAY, every=4))
def test_the_optimum_is_certified(case, away):
    """Every other pair; all of them with ``make test ARGS=--whole``."""
    problem = CLASSES[case]()
    run = problem.solve(gr.FedADMM(availability=AWAY[away]), gap=1e-8, seed=1, rounds=20_000)
    assert run.status == "certified"
    exact = problem.solve(gap=1e-9)
    yardstick = max(abs(exact.objective), common(problem.form).floor)
    assert abs(run.objective - exact.objective) <= 2e-8 * yardstick
    assert run.ledger.messages["certificate"] > 0


def test_random_problems_are_certified():
    solved = 0
    for seed in (162, 214, 383, 408, 431, 504, 540):
        problem = random_problem(seed).problem
        run = problem.solve(gr.FedADMM(), gap=1e-5, rounds=3000)
        assert run.status == "certified", seed
        exact = problem.solve(gap=1e-8, on_failure="return")
        yardstick = max(abs(exact.objective), common(problem.form).floor)
        assert abs(run.objective - exact.objective) <= 2e-5 * yardstick
        solved += 1
    assert solved == 7


@pytest.mark.parametrize("options", [{}, {"batch": 2}, {"availability": P}, {"availability": P, "while_away": "ipw"}])
@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.HuberNorm(0.3), gr.SquaredL2()])
def test_flows_lie_in_their_domains_in_every_round(penalty, options):
    form, method = squared(penalty=penalty).form, gr.FedADMM(**options)
    moved = 0.0
    for state in iterate(method, form, range(1, 60)):
        flows = method.point(state)[1]
        inside = form.edges[0].conjugates((1.0 - 1e-12) * flows[0])
        assert np.isfinite(inside).all()
        moved = max(moved, float(np.abs(flows[0]).max()))
    assert moved > 0.05


def test_a_loss_without_a_bound_on_its_curvature():
    """Poisson: from a point far off, the steps shrink until the loss is below its bounds, and still get there."""
    problem = CLASSES["Poisson, L2, non-negative"]()
    method = gr.FedADMM()
    start = np.full((N, D), 1.5), None
    states = iterate(method, problem.form, range(40), start)
    objective = [problem.form.edges[0].values(s.theta).sum() + s.view.gradients.value(s.theta).sum() for s in states]
    assert np.isfinite(objective).all()
    assert states[-1].L.max() > states[0].L.max()
    assert objective[-1] < objective[0]
    assert problem.solve(method, gap=1e-7, start=start[0], rounds=20_000).status == "certified"
    with pytest.raises(MethodError, match="PoissonLoss has no bound"):
        problem.solve(gr.FedADMM(batch=3))
    assert not gr.FedADMM(batch=3, step_size=0.01).missing(problem.form)


def test_nodes_without_samples_and_without_edges():
    graph = nx.path_graph(7)
    graph.add_node(7)  # no edge: its own fit; node 6 has no samples
    data = data_of(8)
    keep = data.node != 6
    some = gr.NodeData.from_arrays(data.X[keep], np.asarray(data.y)[keep], data.node[keep])
    problem = gr.Problem(gr.SquaredLoss(some) + 0.2 * gr.TotalVariation(graph, gr.L2()))
    for method in (gr.FedADMM(), gr.FedADMM(availability=0.7)):
        run = problem.solve(method, gap=1e-8, rounds=20_000, seed=0)
        assert run.status == "certified"
    alone = np.linalg.lstsq(data.X[data.node == 7], np.asarray(data.y)[data.node == 7], rcond=None)[0]
    np.testing.assert_allclose(run.coef[7], alone, atol=1e-3)


def test_a_view_of_which_nothing_moves_is_left_alone():
    """A node without samples and edges stays where it is, whatever its step."""
    graph = nx.path_graph(2)
    graph.add_node(2)
    problem = gr.Problem(gr.SquaredLoss(data_of(2)) + 0.2 * gr.TotalVariation(graph, gr.L2()))
    state = gr.FedADMM().init(view_of(problem.form), (np.ones(problem.form.shape), None))
    assert (gr.FedADMM().step(state).theta[2] == 1.0).all()


def test_a_start_saves_rounds():
    problem = squared()
    cold = problem.solve(gr.FedADMM(), gap=1e-8)
    assert problem.solve(gr.FedADMM(), gap=1e-8, start=cold).rounds < cold.rounds / 2
    there, nowhere = (problem.solve(gr.FedADMM(), gap=0, rounds=3, start=s) for s in (cold.coef, None))
    assert there.objective < nowhere.objective


def test_scaling_the_objective_changes_nothing():
    """rho, kappa and the steps follow the units of the objective."""
    one, many = (
        gr.Problem(gr.SquaredLoss(data_of(), scale=s) + 0.2 * s * gr.TotalVariation(graph_of(), gr.L2()))
        for s in (1.0, 1000.0)
    )
    for method in (gr.FedADMM(), gr.FedADMM(batch=2), gr.FedADMM(availability=0.5, while_away="ipw")):
        a, b = (problem.solve(method, gap=0, rounds=25, seed=0).coef for problem in (one, many))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


# ---- rates -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def marks(whole):
    """Rounds of a decade; of one and a half with ``make test ARGS=--whole``."""
    return (100, 178, 316, 562, 1000, 1778, 3162) if whole else (100, 178, 316, 562, 1000)


def mean_errors(problem, method, marks, seeds=range(6)):
    """Mean squared distances to the optimum after the given rounds."""
    exact = problem.solve(gap=1e-12).coef
    each = [[((w - exact) ** 2).sum() / N for w in run_of(method, problem.form, marks, seed)] for seed in seeds]
    return np.mean(each, axis=0)


def slope(errors, marks):
    return float(np.polyfit(np.log(marks), np.log(errors), 1)[0])


@pytest.mark.parametrize("average", thinned(["last", "printed", "suffix"], every=2))
def test_batches_converge_like_one_over_the_rounds(average, marks, whole):
    errors = mean_errors(squared(m=20), gr.FedADMM(batch=5, average=average), marks, range(6 if whole else 3))
    assert slope(errors, marks) < -0.75  # 1/T, or faster where the average still forgets its start
    assert errors[-1] < 6 / marks[-1]


def test_full_gradients_converge_linearly():
    """The distance to the optimum falls by the same factor every so many rounds, with nodes away too."""
    problem = squared(m=20)
    for availability, marks in ((None, (40, 80, 120, 160)), (P, (200, 400, 600, 800))):
        errors = mean_errors(problem, gr.FedADMM(availability=availability), marks, range(3))
        falls = errors[1:] / errors[:-1]
        assert (falls[errors[1:] > 1e-18] < 0.1).all()
        assert errors[-1] < 1e-10


@pytest.mark.parametrize(
    "availability",
    [
        pytest.param(P, id="known"),
        pytest.param(ESTIMATED, id="estimated", marks=pytest.mark.whole),
        pytest.param(AWAY["correlated"], id="correlated", marks=pytest.mark.whole),
    ],
)
def test_inverse_probability_weights_reach_the_optimum(availability, marks):
    method = gr.FedADMM(availability=availability, while_away="ipw", average="last")
    errors = mean_errors(squared(m=20), method, marks)
    assert slope(errors, marks) < -0.75
    assert errors[-1] < 6 / marks[-1]


@pytest.mark.parametrize("mode", ["unweighted", "frozen but weighted"])
def test_weights_that_look_right_lead_elsewhere(mode):
    """The two wrong variants of (21) stop at a distance; the right ones pass it."""
    problem = squared(m=20)
    exact, edges = problem.solve(gap=1e-12).coef, edges_of(problem.form)
    bound = L_of(data_of(m=20)) / 0.3 + 0.5 * 4
    hand = ByHand(
        data_of(m=20), edges, 0.5, lambda i, t: 3 / (t + 3 * bound[i]), None, np.array(list(P.values())), mode
    )
    for _ in range(1000):
        hand.round()
    wrong = ((hand.theta - exact) ** 2).sum() / N
    right = mean_errors(problem, gr.FedADMM(availability=P, while_away="ipw", average="last"), (1000,), range(2))[0]
    assert wrong > 1e-2 > 10 * right


def test_weights_count_what_was_seen_where_they_are_to_be_estimated():
    method = gr.FedADMM(availability=ESTIMATED, while_away="ipw")
    known = gr.FedADMM(availability=P, while_away="ipw")
    form = squared().form
    T = 1000
    state = iterate(method, form, [T])[0]
    p = np.array(list(P.values()))
    assert (np.abs(state.presence.online / T - p) <= 4 * np.sqrt(p * (1 - p) / T)).all()
    np.testing.assert_allclose(method.away.inverse(state.presence, T), T / state.presence.online)
    np.testing.assert_allclose(known.away.inverse(state.presence, T), 1 / p)
    np.testing.assert_array_equal(method.gathered(state)["online"], state.presence.online / T)
    assert not np.array_equal(iterate(known, form, [5])[0].theta, iterate(method, form, [5])[0].theta)
    freeze = [gr.FedADMM(availability=a) for a in (P, ESTIMATED)]
    one, two = (iterate(m, form, [50])[0].theta for m in freeze)
    np.testing.assert_array_equal(one, two)  # nothing is weighted
