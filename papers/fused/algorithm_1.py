"""Section 4: Fed-ADMM, its updates, its limit, its steps and its rate."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, fixed, optimum, slope, watched
from ..figures import curve
from ._instances import Array, Study, squared

SEEN = ("state.theta", "state.copies.u", "state.copies.beta")


def _rounds(of: Study, penalty: Any, count: int, rho: float, strength: float, step: Any) -> dict[str, Array]:
    """theta (rounds, V, p), and by edge u = -alpha_ij and the copies at both ends, (rounds, m, p)."""
    method, look = gr.FedADMM(rho=rho, step_size=step), gr.Observer(SEEN, rounds=1)
    seen = watched(of.problem(strength, penalty), method, count, look)
    theta, u, beta = (seen[name] for name in SEEN)
    m = len(of.edges)
    return {"theta": theta, "u": u[0], "tail": beta[0][:, :m], "head": beta[0][:, m:]}


@claim("fused.closed-form-18", "(18) and (19)", stated="an explicit update equation")
def copies(at: Trial) -> Evidence:
    """(18) has an explicit solution, for ||.||_1 and ||.||_2 for example: the update of the copies minimises lambda
    phi(beta_ij - beta_ji) + rho/2 (||theta_i - beta_ij - alpha_ij/rho||^2 + ||theta_j - beta_ji - alpha_ji/rho||^2)."""
    # The minimiser of (18) itself is that of two means, fused: found by the exact route, for all edges at once.
    of, rho, strength = Study.drawn(at.rng(), 6, 10, p=3, K=2), 0.3, 0.05
    checks = []
    for penalty in (gr.L1(), gr.L2(), gr.LInf()):
        seen = _rounds(of, penalty, 4, rho, strength, None)
        theta, alpha = seen["theta"][4], -seen["u"][3]
        tail, head = of.graph.tail, of.graph.head
        m, k = len(tail), np.arange(len(tail))
        ends = np.concatenate([theta[tail] - alpha / rho, theta[head] + alpha / rho])
        means = gr.MeanLoss(gr.NodeData.from_arrays(None, at.given(ends), np.arange(2 * m)))
        pairs = gr.Graph.from_edges(zip(k.tolist(), (m + k).tolist(), strict=True), nodes=range(2 * m))
        beta = gr.Problem(means + (strength / rho) * gr.TotalVariation(pairs, penalty)).solve(
            gap=1e-13, on_failure="return"
        )
        name = type(penalty).__name__
        found = np.concatenate([seen["tail"][4], seen["head"][4]])
        after = alpha - rho * (theta[tail] - seen["tail"][4])
        checks += [
            equal(f"{name}: both copies, and the minimiser of (18)", found, beta.coef, 1e-5),
            equal(f"{name}: alpha_ij after (19)", -seen["u"][4], after, 1e-10),
        ]
    return Evidence.of(*checks)


@claim("fused.eq20-eq17", "(17) and (20)", stated="equivalent")
def proximal(at: Trial) -> Evidence:
    """(17) with eta = eta~ / (1 + rho |N_i| eta~) is (20), the proximal step with eta~."""
    of, rho, strength, tilde = Study.drawn(at.rng(), 6, 10, p=3, K=2), 0.3, 0.05, 0.9
    V, tail, head = len(of.X), of.graph.tail, of.graph.head
    degree = np.bincount(np.concatenate([tail, head]), minlength=V)
    seen = _rounds(of, gr.L2(), 3, rho, strength, lambda _t: tilde / (1.0 + rho * degree * tilde))
    theta, u = seen["theta"][2], seen["u"][2]
    target = np.zeros_like(theta)  # sum over j of beta_ij + alpha_ij / rho
    np.add.at(target, tail, seen["tail"][2] - u / rho)
    np.add.at(target, head, seen["head"][2] + u / rho)
    # (20): where theta' g + rho/2 sum ||theta - beta - alpha/rho||^2 + ||theta - theta(t)||^2 / (2 eta~) has gradient 0
    step = at.given(tilde)
    right = theta / step - of.gradients(theta) / V + rho * target
    return Evidence.of(equal("theta(t+1)", seen["theta"][3], right / (1.0 / step + rho * degree)[:, None], 1e-10))


@claim("fused.alg1-optimum", "(16), (17) and Algorithm 1", stated="the minimiser of (4)")
def limit(at: Trial) -> Evidence:
    """The output of Algorithm 1 converges to the minimiser of (16), which is that of (4).

    Correction (constant): (17) drops the factor 1/|V| that (16) has, and so leads to the minimiser of sum_u M_u +
    lambda R; with g_i / |V| it leads to that of (4).
    """
    of, strength = Study.drawn(at.rng(), 10, 30, p=4, K=2), 0.02
    best = optimum(of.problem(at.given(strength))).coef
    other = optimum(of.problem(strength, whole=True)).coef
    printed, found = (fixed(of.problem(strength), gr.FedADMM(as_printed=p), 500).coef for p in ("(17)", ()))
    return Evidence.of(
        equal("theta by (17) as printed, and of (4)", printed, best, 1e-4),
        corrected=[
            equal("theta with g / |V|, and of (4)", found, best, 1e-4),
            equal("theta by (17) as printed, and of sum_u M_u + lambda R", printed, other, 1e-4),
        ],
        table=[
            {"||Theta - Theta of (4)||^2 / V as printed": squared(printed, best), "with g / |V|": squared(found, best)}
        ],
    )


@claim("fused.alg1-dual-feasible", "(18) and (19)", stated="follows from (18) and (19); used in (S.49)")
def feasible(at: Trial) -> Evidence:
    """After every round alpha_ij = -alpha_ji is in lambda times the subdifferential of phi, so that every iterate has a
    lower bound of (4) beside it."""
    of, strength = Study.drawn(at.rng(), 8, 20, p=3, K=2), 0.05
    sizes: list[float] = []
    for penalty, dual in ((gr.L1(), np.inf), (gr.L2(), 2)):
        u = _rounds(of, penalty, 30, 0.3, strength, None)["u"][1:]
        sizes += [float(x) for x in np.linalg.norm(u, dual, axis=2).max(axis=1)]
    run = of.problem(strength).solve(gr.FedADMM(), rounds=200, gap=0.0)
    best = of.problem(strength).solve(gr.Exact(), gap=1e-10).objective
    return Evidence.of(
        at_most("||alpha||_* / lambda after 30 rounds, l1 and l2", np.array(sizes) / strength, 1.0 + 1e-12),
        at_most("the dual value after 200 rounds", run.certificate.dual, best * (1.0 + 1e-9)),
        at_least("the dual value after 200 rounds, the optimum within 1e-6", run.certificate.dual, best, 1e-6 * best),
    )


# ---- steps and rates -------------------------------------------------------------------------------------------------
def condition_2(of: Study) -> float:
    """kappa: all eigenvalues of the Hessians are between 1/kappa and kappa."""
    values = np.linalg.eigvalsh(of.hessians())
    return max(1.0, float(values.max()), float(1.0 / values.min()))


@claim("fused.alg1-step", "Theorem 4.1", stated="converges")
def steps(at: Trial) -> Evidence:
    """With the step eta(t) = kappa / t in (17), kappa of Condition 2, Algorithm 1 converges with mini-batches.

    Correction (substance): kappa / t is longer than 2 / L_i in the first rounds and the iterates explode; the proof is
    of the step eta~ = kappa / t of (20), and with kappa / (t + kappa (L_i + rho deg_i)) they converge.
    """
    of, strength, T = Study.drawn(at.rng(), 20, 50), 0.05, 600
    problem, kappa = of.problem(strength, whole=True), condition_2(of)
    best = optimum(problem).coef
    largest, last = {}, {}
    for name, printed in (("as printed", ("kappa/t",)), ("of (20)", ())):
        method = gr.FedADMM(batch=10, kappa=kappa, rho=1.0, average="last", as_printed=printed)
        w = watched(problem, method, T, gr.Observer("w"), seed=3)["w"]
        largest[name], last[name] = float(np.abs(w).max()), squared(w[-1], best)
    size = 5.0 * float(np.abs(best).max())
    return Evidence.of(
        at_most("largest parameter on the way, as printed", largest["as printed"], size),
        corrected=[
            at_most("largest parameter on the way, with the step of (20)", largest["of (20)"], size),
            at_most("squared error after 600 rounds", last["of (20)"], 0.02 * squared(best, 0.0 * best)),
        ],
        table=[{"step": name, "largest parameter": largest[name], "squared error": last[name]} for name in last],
    )


ROUNDS = (64, 128, 256, 512, 1024, 2048, 4096)
AVERAGES = ("printed", "suffix", "last")


def _learning(rng: np.random.Generator, average: str, rounds: int, step: str) -> dict[str, float]:
    """Squared errors of one run with batches of 10 at some rounds, and what Theorem 4.1 says of the last of them."""
    of, strength = Study.drawn(np.random.default_rng(41), 20, 50), 0.05
    problem, kappa = of.problem(strength, whole=True), condition_2(of)
    best = problem.solve(gr.Exact(), gap=1e-11).coef
    seen = [t for t in ROUNDS if t <= rounds]
    printed = ("kappa/t",) if step == "printed" else ()
    method = gr.FedADMM(batch=10, kappa=kappa, rho=1.0, average=average, as_printed=printed)
    found = watched(problem, method, rounds, gr.Observer("w", rounds=seen), seed=int(rng.integers(2**31)))
    errors = {str(t): squared(w, best) for t, w in zip(seen, found["w"], strict=True)}
    psi = np.einsum("ukj,uk->ukj", of.X, np.einsum("ukj,uj->uk", of.X, best) - of.y)
    least = float((psi**2).sum(axis=2).mean(axis=1).max())  # C_psi is a supremum over Xi, and so at least this
    return {**errors, "bound": 2.0 * kappa**2 * least * np.log(rounds) / rounds}


def _draw_learning(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots()
    for average in AVERAGES:
        curve(axes, data["rounds"], data[average], f"average: {average}")
    axes.plot(
        data["rounds"], data["bound"], color="black", linewidth=0.8, marker="", label="stated: 2 kappa^2 C log T / T"
    )
    axes.set(xscale="log", yscale="log", xlabel="T (rounds)", ylabel="mean squared distance to the minimiser per node")
    axes.legend()


@claim(
    "fused.thm4.1-rate",
    "Theorem 4.1",
    stated="2 kappa^2 C_psi log(T) / T",
    quick={"rounds": 1024, "replications": 3},
    full={"rounds": 4096, "replications": 50},
    experiment=True,
    perturbation=1.0,
    figure=_draw_learning,
)
def rate(at: Trial, rounds: int, replications: int) -> Evidence:
    """With eta(t) = kappa / t the mean of all iterates has (1/V) E||Theta - Theta^||_F^2 <= 2 kappa^2 C_psi log(T) / T.

    Correction (substance): With the step eta~ = kappa / t of (20). The bound says little then: it is thousands of times
    the error, whose rate is 1/T; so no run can tell the constant 2 from 4, which the proof gives with 1/kappa for the
    strong convexity.
    """
    cells = [{"average": average, "rounds": rounds, "step": "of (20)"} for average in AVERAGES]
    cells.append({"average": "printed", "rounds": rounds, "step": "printed"})
    *found, printed = at.replicate(_learning, cells, replications)
    seen = [t for t in ROUNDS if t <= rounds]
    samples = {a: np.array([column([runs], str(t))[0] for t in seen]) for a, runs in zip(AVERAGES, found, strict=True)}
    means = {a: samples[a].mean(axis=1) for a in AVERAGES}
    bound = found[0][0]["bound"] * rounds / np.log(rounds) * np.log(seen) / np.array(seen)
    slopes = {a: slope(seen[-4:], means[a][-4:]) for a in AVERAGES}
    exploded = float(column([printed], str(rounds)).mean())
    return Evidence.of(
        at_most("squared error with eta = kappa / t", exploded, bound[-1]),
        corrected=[
            at_most("squared error with the step of (20), over the bound, every T", means["printed"] / bound, 1.0),
            equal("exponent of 1/T, last iterate", -slopes["last"], at.given(1.0), 0.3, "absolute"),
        ],
        table=[
            {"average": a, "slope": slopes[a], "squared error at the end": means[a][-1], "stated": bound[-1]}
            for a in AVERAGES
        ],
        data={"rounds": seen, "bound": bound, **samples},
    )
