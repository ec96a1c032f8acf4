"""What a confidence region of a decentralised run rests on, and where the theory does not cover it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ...errors import MethodWarning

SHIFT = 0.5  # standard errors: such a bias costs a 95% region of 3 coefficients less than .02 of its coverage
ENOUGH = 100  # samples per coefficient, of all nodes together, for the Hessian: K a(T) >= 100 d


def warn(got: Mapping[str, Any], nodes: int, d: int, estimator: str, method: str, shifts: Mapping[str, float]) -> None:
    said: list[str] = []
    alpha = got["alpha"]
    if method == "LocalSGD":
        said.append(
            "plain LocalSGD is biased where the nodes' Hessians differ, and its regions may miss (they covered .49 at "
            f"best, .00 at worst, of 95%): here by about {shifts['consensus']:.2g} standard errors; take "
            "gr.ExactDiffusion or gr.GradientTracking"
        )
    elif shifts["consensus"] > SHIFT:
        said.append(
            f"the nodes have not agreed: the estimate is off by about {shifts['consensus']:.2g} standard errors; run "
            "more rounds, or take a denser graph"
        )
    if estimator == "average" and shifts["start"] > SHIFT:
        said.append(
            f"the average is still about {shifts['start']:.2g} standard errors off because of where it started; take "
            'estimator="one-step", start near the optimum, or run more rounds'
        )
    if estimator == "one-step" and shifts["hessian"] > SHIFT:
        said.append(
            f"the start is {shifts['start']:.2g} standard errors away, and {behind(got)} samples behind the Hessian "
            f"may leave about {shifts['hessian']:.2g} of them; give the method larger hessian_samples, or start nearer"
        )
    if alpha == 0.0:
        said.append("the step is constant, and a bias in proportion to it stays; take gr.DecreasingStep()")
    elif estimator == "average" and not 0.5 < alpha < 1.0:
        said.append(f'with alpha = {alpha:g} the average is not efficient (Theorem 3); take estimator="one-step"')
    elif estimator == "average" and nodes > got["steps"] ** (2.0 * alpha - 1.0):
        said.append(
            f"K = {nodes} is not small beside T^(2 alpha - 1) = {got['steps'] ** (2.0 * alpha - 1.0):.3g} "
            '(Theorem 3); take estimator="one-step", or more rounds'
        )
    if behind(got) < ENOUGH * d:
        said.append(
            f"the Hessian rests on {behind(got)} samples of all nodes, and {ENOUGH * d} are needed (100 per "
            "coefficient); give the method larger hessian_samples, or run more rounds"
        )
    for sentence in said:
        warnings.warn(sentence, MethodWarning, stacklevel=4)


def behind(got: Mapping[str, Any]) -> int:
    """The samples behind the Hessian, of all nodes: K a(T) batch."""
    return int((got["passes"] > 0).sum()) * int(got["hessian_samples"])


def assumed_of(
    got: Mapping[str, Any], nodes: int, d: int, estimator: str, shifts: Mapping[str, float], broken: bool
) -> tuple[str, ...]:
    T, K, alpha = got["steps"], nodes, got["alpha"]
    most = float(got["passes"].max()) * (1.0 + got["burn_in"] / max(T, 1))
    again = "with replacement" if got["replacement"] else "without replacement"
    seen = (
        f"a single pass: no sample was taken twice (at most {most:.2g} of a node's were taken)"
        if most <= 1.0 + 1e-9 and not got["replacement"]
        else f"samples were drawn {again}, {most:.3g} times each at most: their own error is added to that of the "
        "draws (the theory is for a single pass)"
    )
    exponent = "constant steps" if alpha == 0.0 else f"steps of exponent alpha = {alpha:g}"
    rate = (
        f"{exponent}; proven for alpha = 1 and K = o(T) (Theorem 5), measured to hold for alpha = 0.8"
        if estimator == "one-step"
        else f"{exponent}; proven for 1/2 < alpha < 1 and K = o(T^(2 alpha - 1)) (Theorem 3): K = {K} beside "
        f"{T ** (2.0 * alpha - 1.0):.3g}"
    )
    taken = f"of which the one-step estimator leaves about {shifts['hessian']:.2g}"
    start = taken if estimator == "one-step" else "which stays"
    return (
        f"normality of averages as T grows: T = {T} steps of K = {K} nodes with {got['batch']} samples each"
        + (f", after a burn-in of {got['burn_in']}" if got["burn_in"] else "")
        + (" (interrupted)" if broken else ""),
        f"samples are independent, of a distribution that may differ from node to node; {seen}",
        rate,
        f"the Hessian rests on {behind(got)} samples, {ENOUGH * d} are enough",
        f"biases in standard errors, to first order: of the start {shifts['start']:.2g}, {start}; of "
        f"nodes that disagree {shifts['consensus']:.2g}",
        "nothing certifies a sampling error: this is no certificate",
    )
