"""Fed-ADMM: options that are refused or warned of."""

from __future__ import annotations

import numpy as np
import pytest
from core_cases import iterate
from federated_factories import L_of, N, data_of, form_degree, graph_of, squared

import graphreg as gr
from graphreg.errors import MethodError, MethodWarning


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"rho": value}, r"FedADMM\(rho=...\)") for value in (0.0, -1.0, np.inf, np.nan, "1", True)),
        *(({"kappa": value}, r"FedADMM\(kappa=...\)") for value in (0.0, np.nan)),
        *(({"batch": value}, r"FedADMM\(batch=...\)") for value in (0, -3, 2.5, True, "all")),
        ({"average": "mean"}, r"FedADMM\(average=...\) must be one of 'last', 'printed', 'suffix'"),
        ({"while_away": "ignore"}, r"FedADMM\(while_away=...\) must be 'freeze' or 'ipw'"),
        *(({"step_size": value}, r"FedADMM\(step_size=...\) must") for value in (0.0, -0.1, np.inf, "0.1")),
        ({"step_size": {"a": 0.1, "b": 0.0}}, r"FedADMM\(step_size=...\) of the node 'b'"),
        ({"step_size": 0.1, "kappa": 1.0}, "a step_size or a kappa"),
        *(({"availability": value}, r"must be a probability in \(0, 1\]") for value in (0.0, 1.1, -0.2, np.nan)),
        ({"availability": {"a": 0.5, "b": 0.0}}, r"FedADMM\(availability=...\) of the node 'b'"),
        ({"availability": {"a": 0.5, "b": "often"}}, r"FedADMM\(availability=...\) of the node 'b'"),
        ({"availability": "estimated"}, r"gr.Availability\(probability, sampler, known=False\)"),
        ({"availability": gr.Availability}, "must be a probability"),
    ],
)
def test_wrong_options(options, said):
    with pytest.raises(MethodError, match=said):
        gr.FedADMM(**options)


def test_wrong_availabilities():
    with pytest.raises(MethodError, match="needs a probability, a sampler, or both"):
        gr.Availability()
    with pytest.raises(MethodError, match=r"Availability\(sampler=...\) must be a function"):
        gr.Availability(0.5, sampler=0.5)
    with pytest.raises(MethodError, match="a function of t, labels, uniform and common"):
        gr.FedADMM(availability=lambda t: np.full(N, True))
    with pytest.raises(MethodError, match=r"Availability\(known=...\) must be True or False"):
        gr.Availability(0.5, known="yes")


@pytest.mark.parametrize("name", ["availability", "step_size"])
def test_mappings_that_do_not_fit_the_nodes(name):
    values = dict.fromkeys(range(N), 0.01)
    problem = squared()
    with pytest.raises(MethodError, match=rf"{name} has no entry for the node 2 \(and 1 more\)"):
        problem.solve(gr.FedADMM(**{name: {k: v for k, v in values.items() if k not in (2, 4)}}))
    with pytest.raises(MethodError, match=rf"{name} names 'x', which is not a node"):
        problem.solve(gr.FedADMM(**{name: {**values, "x": 0.5}}))


@pytest.mark.parametrize(
    "answer",
    [np.full(N - 1, True), np.ones(N), True, [0] * N, None, np.full((N, 1), True)],
)
def test_samplers_that_answer_something_else(answer):
    method = gr.FedADMM(availability=lambda t, labels, uniform, common: answer)
    with pytest.raises(MethodError, match="must return 6 bools, one per label, in round 1"):
        squared().solve(method)


@pytest.mark.parametrize("answer", [0.0, -1.0, np.nan, np.ones(N - 1), np.full((N, 1), 0.1), "small", None, True])
def test_schedules_that_answer_something_else(answer):
    with pytest.raises(MethodError, match="must return a positive number, or 6 of them, one per node; for round 1"):
        squared().solve(gr.FedADMM(step_size=lambda t: answer))


def test_a_schedule_by_node():
    form = squared().form
    steps = np.linspace(0.02, 0.05, N)
    by_label = iterate(gr.FedADMM(rho=0.5, step_size=dict(enumerate(steps))), form, [20])[0]
    by_round = iterate(gr.FedADMM(rho=0.5, step_size=lambda t: steps), form, [20])[0]
    np.testing.assert_array_equal(by_label.theta, by_round.theta)


def test_steps_beyond_their_bound_are_warned_of():
    problem, rho = squared(), 0.5
    bound = 1 / (L_of(data_of()) + rho * form_degree(problem.form))
    assert problem.solve(gr.FedADMM(rho=rho, step_size=float(bound.min())), gap=1e-8).status == "certified"
    worst = int(np.argmin(bound))
    said = rf"node {worst} is beyond its bound 1 / \(L_i \+ rho deg_i\) = {bound[worst]:.3g}"
    with pytest.warns(MethodWarning, match=said):
        run = problem.solve(gr.FedADMM(rho=rho, step_size=4 * float(bound.max())), rounds=300, on_failure="return")
    assert run.status != "certified"  # it is a bound of something
    with pytest.warns(MethodWarning, match="keeps the variance"):
        problem.solve(gr.FedADMM(rho=rho, step_size=0.01, batch=2), rounds=5)
    with pytest.warns(MethodWarning, match="beyond its bound"), pytest.warns(MethodWarning, match="variance"):
        problem.solve(
            gr.FedADMM(rho=rho, step_size=dict(enumerate(bound)), availability=0.5, while_away="ipw"), rounds=5
        )


def test_losses_without_gradients_are_refused():
    problem = gr.Problem(gr.QuantileLoss(data_of(), tau=0.3) + 0.1 * gr.TotalVariation(graph_of(), gr.L2()))
    with pytest.raises(MethodError, match="FedADMM does not apply: QuantileLoss is not smooth"):
        problem.solve(gr.FedADMM())
    assert not problem.methods().loc["FedADMM", "applies"]
    assert squared().methods().loc["FedADMM", "applies"]
