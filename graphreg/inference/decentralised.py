"""Confidence regions of a consensus from what a decentralised stochastic run has gathered (Statistical inference for
decentralised federated learning)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve

from .. import checks
from ..base.clock import nothing_yet
from ..base.messages import warn
from ..errors import DataError, MethodError
from ..methods import DecreasingStep, ExactDiffusion
from ..network import most
from ..oracles import NodeGradients
from ..running import Solution
from ..terms import Array
from ..theory import form_of
from .hypotheses import written
from .local import names_of
from .regions import ConfidenceRegion, flat_direction

# ---- assumptions in sentences, and warnings where the theory does not hold -------------------------------------------
SHIFT = 0.5  # standard errors: such a bias costs a 95% region of 3 coefficients less than .02 of its coverage
ENOUGH = 100  # samples per coefficient, of all nodes together, for the Hessian: K a(T) >= 100 d


def warn_of(
    got: Mapping[str, Any], nodes: int, d: int, estimator: str, method: str, shifts: Mapping[str, float]
) -> None:
    alpha = got["alpha"]
    if method == "LocalSGD":
        warn(
            "plain LocalSGD is biased where the nodes' Hessians differ, and its regions may miss (they covered .49 at "
            f"best, .00 at worst, of 95%): here by about {shifts['consensus']:.2g} standard errors; take "
            "gr.ExactDiffusion or gr.GradientTracking"
        )
    elif shifts["consensus"] > SHIFT:
        warn(
            f"the nodes have not agreed: the estimate is off by about {shifts['consensus']:.2g} standard errors; run "
            "more rounds, or take a denser graph"
        )
    if estimator == "average" and shifts["start"] > SHIFT:
        warn(
            f"the average is still about {shifts['start']:.2g} standard errors off because of where it started; take "
            'estimator="one-step", start near the optimum, or run more rounds'
        )
    if estimator == "one-step" and shifts["hessian"] > SHIFT:
        warn(
            f"the start is {shifts['start']:.2g} standard errors away, and {behind(got)} samples behind the Hessian "
            f"may leave about {shifts['hessian']:.2g} of them; give the method larger hessian_samples, or start nearer"
        )
    if alpha == 0.0:
        warn("the step is constant, and a bias in proportion to it stays; take gr.DecreasingStep()")
    elif estimator == "average" and not 0.5 < alpha < 1.0:
        warn(f'with alpha = {alpha:g} the average is not efficient (Theorem 3); take estimator="one-step"')
    elif estimator == "average" and nodes > got["steps"] ** (2.0 * alpha - 1.0):
        warn(
            f"K = {nodes} is not small beside T^(2 alpha - 1) = {got['steps'] ** (2.0 * alpha - 1.0):.3g} "
            '(Theorem 3); take estimator="one-step", or more rounds'
        )
    if behind(got) < ENOUGH * d:
        warn(
            f"the Hessian rests on {behind(got)} samples of all nodes, and {ENOUGH * d} are needed (100 per "
            "coefficient); run more rounds, as a node gives a sample in each, with hessian_samples= at least as many; "
            "gr.inference.local_regions needs none"
        )


def behind(got: Mapping[str, Any]) -> int:
    """The samples behind the Hessian, of all nodes: K a(T) batch."""
    return int(np.where(got["passes"] > 0, got["hessian_samples"], 0).sum())


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
    batch = " to ".join(map(str, np.unique([np.min(got["batch"]), np.max(got["batch"])])))
    taken = f"of which the one-step estimator leaves about {shifts['hessian']:.2g}"
    start = taken if estimator == "one-step" else "which stays"
    return (
        f"normality of averages as T grows: T = {T} steps of K = {K} nodes with {batch} samples each"
        + (f", after a burn-in of {got['burn_in']}" if got["burn_in"] else "")
        + (" (interrupted)" if broken else ""),
        f"samples are independent, of a distribution that may differ from node to node; {seen}",
        rate,
        f"the Hessian rests on {behind(got)} samples, {ENOUGH * d} are enough",
        f"biases in standard errors, to first order: of the start {shifts['start']:.2g}, {start}; of "
        f"nodes that disagree {shifts['consensus']:.2g}",
        "nothing certifies a sampling error: this is no certificate",
    )


# ---- regions ---------------------------------------------------------------------------------------------------------
ESTIMATORS = ("one-step", "average")
BURN_IN = 5  # one in so many steps is left out at the beginning, where nobody says how many
MANY = 1000  # samples per coefficient, of all nodes together, for the Hessian, where nobody says how many
NEEDED = ("mean", "gradient_mean", "gradient_covariance", "hessian", "passes")


@dataclass(frozen=True)
class Sums:
    """The sums over the nodes: one of 3 d + d (d + 1) numbers per node.

    With theta_k, G_k, V_k, H_k of node k its time averages of parameters and of gradients of f_k, the covariance of
    these gradients and its Hessian:
    """

    mean: Array  # (1/K) sum_k theta_k, the Polyak-Ruppert average, (d,)
    gradient: Array  # sum_k G_k, (d,)
    pulled: Array  # sum_k H_k theta_k, (d,)
    hessian: Array  # H = sum_k H_k, (d, d)
    noise: Array  # sum_k r_k V_k, (d, d); r_k by `reuse`
    nodes: int  # K

    @staticmethod
    def of(got: Mapping[str, Any]) -> Sums:
        H, theta = got["hessian"], got["mean"]
        before = got["passes"] * got["burn_in"] / max(got["steps"], 1)
        r = reuse(got["passes"], bool(got["replacement"]), before)
        noise = r[:, None, None] * got["gradient_covariance"]
        pulled = np.einsum("kij,kj->i", H, theta)
        gradient = got["gradient_mean"].sum(axis=0)
        return Sums(theta.mean(axis=0), gradient, pulled, H.sum(axis=0), noise.sum(axis=0), len(theta))

    @staticmethod
    def numbers(d: int) -> int:
        return 3 * d + d * (d + 1)


def reuse(passes: Array, replacement: bool, before: Array | float = 0.0) -> Array:
    """r_k, by how much the variance of a node's mean gradient exceeds that of T batches of new samples, (n,).

    The mean of T batches weights each of the m samples by how often it was taken, N_j / (T b), so its variance about
    the population is sum_j E N_j^2 / (T b)^2 = r / (T b) times that of one sample. With replacement N_j has mean and
    variance p = T b / m, so r = 1 + p: the noise of the draws, and that of the samples themselves. Without it, and
    ``before`` passes of burn-in, N_j is a number of whole passes, plus 1 with the probability e that j is in what was
    left of the pass in which the burn-in ended, plus 1 with the probability f that it is in the part of the last one:
    r = p + (e (1 - e) + f (1 - f)) / p, which is 1 within one pass, as in the paper. (The two are independent where
    passes are shuffled; in the order of the data, or with m small, r is at most that.)
    """
    if replacement:
        return 1.0 + passes
    first = np.minimum(np.ceil(before) - before, passes)
    last = (passes - first) % 1.0
    spread = first * (1.0 - first) + last * (1.0 - last)
    return np.where(passes > 0.0, passes + spread / np.where(passes > 0.0, passes, 1.0), 1.0)


def confidence_region(run: Solution, estimator: str = "one-step") -> ConfidenceRegion:
    """The confidence region of the minimiser theta* of the expected loss, sum_k E f_k, from a run with batches of
    `ExactDiffusion`, `GradientTracking` or `LocalSGD`.

    With G_kt the gradient of f_k = w_k F_k that node k saw in step t, and means over the T steps after the burn-in:

        average:   theta = (1/(K T)) sum_kt theta_kt                                  (Polyak-Ruppert)
        one-step:  theta = average - H^-1 (1/T) sum_kt G_kt                           (14)
        V = H^-1 (sum_k r_k V_k) H^-1 / T,    V_k = (1/T) sum_t G_kt G_kt' - its mean's square,    H = sum_k H_k  (12)

    In the paper's letters sum_k V_k = S/K, so V = H^-1 S H^-1 / (K T), as in (13); V_k is that of the batches that were
    taken, whatever their size. In a single pass r_k = 1; for samples that were taken again see `reuse`, which is not in
    the paper. What is needed of the nodes is one sum of 3 d + d (d + 1) numbers, recorded in ``region.ledger`` as
    ``inference``.

    What (14) leaves is of second order where Hessians vary with theta: sum_k f_k'''(theta*)(theta_kt - theta*)^2 / 2 in
    the mean over t. Most of that is of the first steps, which a burn-in leaves out.

    Biases are estimated, in standard errors (region.shifts), to first order (exact for squared losses):

    - ``start``: H^-1 (1/T) sum_kt G_kt, what the average keeps of its start; the one-step estimator takes it off, up to
    - ``hessian``: what is left of that because H is not known exactly, about ``start`` ((d + 1)/N)^(1/2) with H from N
      samples, which is how much a covariance of N normal vectors is off along a given one.
    - ``consensus``: H^-1 sum_k H_k (theta_k - average), of either estimator where nodes whose Hessians differ do not
      agree: with local SGD in proportion to the step. The corrected methods have none.

    Estimate and covariance are in the units of the columns where features were standardised.

    Parameters
    ----------
    run : Solution
        Of one of these methods with ``batch``; best with a `DecreasingStep`, ``replacement=False`` and as many rounds
        as the smallest node has batches, as `estimate` runs it.
    estimator : {"one-step", "average"}

    Raises
    ------
    MethodError
        For a run that gathered no moments.
    DataError
        Where the Hessian is singular in some direction, which it names, or the gradients have no noise.

    Warns
    -----
    MethodWarning
        After local SGD; for estimated biases beyond half a standard error; for a constant step, few samples behind the
        Hessian (K a(T) < 100 d), and an average with an exponent that Theorem 3 does not cover.
    """
    checks.one_of(*ESTIMATORS)(estimator, "the estimator", MethodError)
    if not isinstance(run, Solution):
        raise MethodError(f"a run is needed, the Solution of problem.solve(...), got {type(run).__name__}")
    _check_gathered(run)
    broken = run.status == "interrupted"
    region, space = region_of(names_of(run.form), run.gathered, estimator, run.method, broken), run.form.space
    estimate, V = space.in_units(region.estimate.to_numpy()), space.covariance_in_units(region.covariance.to_numpy())
    ledger = run.ledger.copy()
    ledger.sum("inference", Sums.numbers(len(region.names)))
    return replace(region, estimate=pd.Series(estimate, index=region.estimate.index), covariance=V, ledger=ledger)


def region_of(
    names: pd.Index, got: Mapping[str, Any], estimator: str, method: str, broken: bool = False
) -> ConfidenceRegion:
    """The region of coefficients of these names from what a run of a method has gathered, ``broken`` off or not."""
    sums = Sums.of(got)
    inverse = _inverse(sums.hessian, list(names))
    V = inverse @ sums.noise @ inverse / got["steps"]
    _check_noise(sums.noise, list(names))
    step = inverse @ sums.gradient
    theta = sums.mean - step if estimator == "one-step" else sums.mean
    away = inverse @ sums.pulled - sums.mean
    start = _in_errors(step, V)
    unknown = np.sqrt((len(theta) + 1) / max(behind(got), 1))
    shifts = {"start": start, "hessian": start * float(unknown), "consensus": _in_errors(away, V)}
    warn_of(got, sums.nodes, len(theta), estimator, method, shifts)
    title = f"{'one-step estimator' if estimator == 'one-step' else 'Polyak-Ruppert average'} of {method}"
    estimate: Any = pd.Series(theta, index=names)
    assumed = assumed_of(got, sums.nodes, len(theta), estimator, shifts, broken)
    return ConfidenceRegion(estimate, V, title, assumed, shifts)


def estimate(
    problem: Any,
    rounds: int | None = None,
    method: Any = None,
    *,
    estimator: str = "one-step",
    seconds: float | None = None,
    seed: int | None = None,
    engine: Any = None,
    progress: bool | None = None,
) -> ConfidenceRegion:
    """Runs a stochastic method on a consensus and gives the confidence region; see `confidence_region`.

    Parameters
    ----------
    problem : Problem
        Smooth losses tied by ``gr.Consensus(graph)``.
    rounds : int, optional
        T; by default as many as the smallest node has batches: a single pass, no sample taken twice.
    method : optional
        By default ``ExactDiffusion(DecreasingStep(), batch=1, replacement=False, burn_in=rounds // 5)``, which has no
        bias where the nodes' Hessians differ, with the Hessian from 1000 samples per coefficient, as far as there are
        so many: what is left of a far start is a matter of how well it is known. With a fifth of the steps as burn-in
        intervals are 1.12 times as wide as those of all steps would be, and the start is nearly forgotten.
    estimator : {"one-step", "average"}
    seconds, seed, engine, progress : as for `Problem.solve`
        After Ctrl-C, and where the time is up, the region is that of the rounds so far, and says so. Before there are
        enough of them there is nothing yet to give: then Ctrl-C raises KeyboardInterrupt.

    Raises
    ------
    MethodError, DataError
        As `confidence_region`.
    BudgetError
        Where the time is up before there are enough rounds.

    Examples
    --------
    >>> shared = gr.Problem(gr.SquaredLoss(many) + gr.Consensus(graph))
    >>> gr.inference.estimate(shared, rounds=100, seed=0).names
    ['rain', 'temp']
    """
    form = form_of(problem, "inference").frozen()
    steps = (checks.count | None)(rounds, "rounds", MethodError)
    if steps is None:
        counts = NodeGradients(form).counts
        steps = max(int(counts[counts > 0].min()) // most(getattr(method, "batch", None) or 1), 1)
    if method is None:
        a = max(min(ceil(MANY * form.d / form.n), steps), 1)
        method = ExactDiffusion(
            DecreasingStep(), batch=1, replacement=False, hessian_samples=a, burn_in=steps // BURN_IN
        )
    run = problem.solve(method, gap=0, rounds=steps, seconds=seconds, seed=seed, engine=engine, progress=progress)
    if run.rounds < steps and run.gathered.get("steps", 0) < 2:
        raise KeyboardInterrupt if run.status == "interrupted" else nothing_yet("estimate")
    return confidence_region(run, estimator)


# ---- checks ----------------------------------------------------------------------------------------------------------
def _check_gathered(run: Solution) -> None:
    remedy = "solve by gr.ExactDiffusion(gr.DecreasingStep(), batch=1, replacement=False), or use gr.inference.estimate"
    if not all(name in run.gathered for name in NEEDED):
        full = run.method in ("LocalSGD", "GradientTracking", "ExactDiffusion")
        why = (
            "it took full gradients, which have no noise to speak of: give the method a batch"
            if full
            else "a consensus by stochastic gradients does"
        )
        raise MethodError(f"the run of {run.method} has no moments of gradients; {why}; {remedy}")
    if run.gathered["steps"] < 2:
        after = f" after {run.gathered['burn_in']} of burn-in" if run.gathered["burn_in"] else ""
        raise MethodError(
            f"the run has {run.gathered['steps']} steps{after}, from which no covariance follows; allow more"
        )
    for name in NEEDED:
        if not np.isfinite(run.gathered[name]).all():
            raise MethodError(f"the run of {run.method} broke down (its {name} is not finite): shorten the steps")


def _inverse(H: Array, names: list[Any]) -> Array:
    flat = flat_direction(H)
    if flat is not None:
        raise DataError(
            f"the Hessian is singular along {written(flat, names)}: the samples of the last steps do not determine it; "
            "take more of them (hessian_samples=), or drop a feature"
        )
    return cho_solve(cho_factor(H), np.eye(len(H)))


def _check_noise(S: Array, names: list[Any]) -> None:
    flat = flat_direction(S)
    if flat is None:
        return
    where = f"the gradients have no noise along {written(flat, names)}"
    if (np.diag(S) <= 0.0).any():
        raise DataError(f"{where}, so that the region would have no extent; run more steps, or drop a feature")
    warn(
        f"{where}: intervals stand, and there is no joint region of all coefficients; it takes a loss that sees that "
        "direction (multinomial losses do not see a common shift of all classes)"
    )


def _in_errors(shift: Array, V: Array) -> float:
    """(s' V^-1 s)^(1/2), the largest ratio of a combination of the shift to its standard error."""
    return float(np.sqrt(max(shift @ np.linalg.pinv(V, rcond=1e-10, hermitian=True) @ shift, 0.0)))
