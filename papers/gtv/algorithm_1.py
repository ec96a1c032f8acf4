"""Section IV: Algorithm 1, its steps, its updates, and the duality gap (34)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import minimize

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import optimum, watched
from ._instances import Array, Instance

PRINTED = gr.PrimalDual(balance=1.0, relaxation=1.0)
LAM = 0.8


def _clip(v: Array, gamma: Array) -> Array:
    """(1), row by row."""
    return v * np.minimum(1.0, gamma / np.maximum(np.linalg.norm(v, axis=1), 1e-300))[:, None]


def _rounds(of: Instance, tau: Array, errors: Any = None) -> Iterator[tuple[Array, Array]]:
    """Algorithm 1 to the letter, with the l2 norm: w and u after each round; ``errors(k)`` is added to the update (4)
    of round k."""
    w, u = np.zeros(of.X.shape[::2]), np.zeros((len(of.A), of.X.shape[2]))
    k = 0
    while True:
        v = w - tau[:, None] * (of.incidence.T @ u)
        new = of.proxes(v, of.degree.astype(float))
        if errors is not None:
            new = new + errors(k)
        u = _clip(u + 0.5 * (2.0 * (of.incidence @ new) - of.incidence @ w), LAM * of.A)
        w, k = new, k + 1
        yield w, u


def _seen(
    problem: gr.Problem, rounds: Sequence[int], method: gr.PrimalDual = PRINTED, start: Any = None
) -> tuple[Array, Array]:
    """w and u after some rounds in the library, (rounds, n, d) and (rounds, E, d)."""
    seen = watched(problem, method, max(rounds), gr.Observer(("w", "flows"), rounds=rounds), start=start)
    return seen["w"], seen["flows"][0]


@claim("gtv.alg1-fixed-point", "Algorithm 1, (32), (33)", stated="converges")
def fixed_point(at: Trial) -> Evidence:
    """Algorithm 1 with tau_i = 1/|N_i|, sigma_e = 1/2 and the prox weight |N_i| converges to a solution of (16), at
    which it stays."""
    of = Instance.drawn(at.rng())
    problem = of.problem(gr.L2(), LAM)
    w, u = _seen(problem, [0, 1, 5, 25, 1200])
    letter = {k + 1: each for k, each in zip(range(25), _rounds(of, at.given(1.0 / of.degree)), strict=False)}
    best = optimum(problem)
    stays, _ = _seen(problem, [0, 1], start=best)
    return Evidence.of(
        equal("w after 1, 5, 25 rounds, gr.PrimalDual and the listing", w[1:4], [letter[k][0] for k in (1, 5, 25)]),
        equal("u after 1, 5, 25 rounds, gr.PrimalDual and the listing", u[1:4], [letter[k][1] for k in (1, 5, 25)]),
        at_most("distance to the optimum after 1200 rounds", np.abs(w[-1] - best.coef).max(), 1e-6),
        at_most("how far a round goes from the optimum", np.abs(stays[1] - stays[0]).max(), 1e-6),
    )


@claim("gtv.alg1-steps", "Algorithm 1, tau_i and sigma_e", stated="at most 1")
def steps(at: Trial) -> Evidence:
    """With tau_i = 1/|N_i| and sigma_e = 1/2 the method converges: ||Sigma^(1/2) D T^(1/2)||^2 is at most 1 on any
    graph (exactly 1 where a component is bipartite).

    Correction (misprint): But for a node without edges, whose tau_i would be 1/0: its answer is argmin L_i, and no step
    of Algorithm 1.
    """
    graphs = {"path": nx.path_graph(6), "star": nx.star_graph(6), "even cycle": nx.cycle_graph(8)}
    odd = {"odd cycle": nx.cycle_graph(7), "complete": nx.complete_graph(6), "wheel": nx.wheel_graph(7)}
    of = {name: Instance.drawn(at.rng(), n=len(g), graph=g) for name, g in (graphs | odd).items()}
    product = {name: _product(each, 1.0 / each.degree) for name, each in of.items()}
    graph = _without_last_edge(of["path"])
    alone = gr.Problem(of["path"].loss() + LAM * gr.TotalVariation(graph, gr.L2()))
    own = alone.solve(PRINTED, rounds=1500, gap=0.0).coef[-1]
    stretched = {a: _spread_with_steps(of["even cycle"], 0.5 * a) for a in (1.3, 1.4)}
    return Evidence.of(
        at_least(
            "|N_i|, on a path without its last edge, which tau_i = 1/|N_i| divides by",
            min(dict(graph.degree).values()),
            1,
        ),
        corrected=[
            equal("the product on bipartite graphs", [product[k] for k in graphs], at.given(np.ones(3)), 1e-9),
            at_most("the product on other graphs", [product[k] for k in odd], 1.0 - 1e-3),
            at_most("an isolated node: distance from its own fit", np.abs(own - of["path"].pooled([5])).max(), 1e-6),
        ],
        table=[{"product": a, "max |Dw| after 800 rounds, losses nearly flat": each} for a, each in stretched.items()],
    )


def _product(of: Instance, tau: Array) -> float:
    return float(np.linalg.norm(np.sqrt(0.5) * of.incidence * np.sqrt(tau), 2) ** 2)


def _without_last_edge(of: Instance) -> nx.Graph:
    graph = of.graph()
    graph.remove_edge(of.n - 2, of.n - 1)
    return graph


def _spread_with_steps(of: Instance, sigma: float) -> float:
    """Where losses and capacities hardly act the limit is 4/3: beyond it the nodes never agree."""
    flat, method = replace(of, X=0.01 * of.X, y=0.01 * of.y), gr.PrimalDual(sigma=sigma, relaxation=1.0)
    w, _ = _seen(flat.problem(gr.L2(), 1e3), [800], method)
    return float(np.abs(of.incidence @ w[-1]).max())


@claim("gtv.alg1-inexact", "below Algorithm 1", stated="converges")
def inexact(at: Trial) -> Evidence:
    """Where the errors of the updates are summable Algorithm 1 still converges to a solution; nothing is said of errors
    that are not."""
    of = Instance.drawn(at.rng(0))
    problem, direction = of.problem(gr.L2(), LAM), at.rng(1).standard_normal(of.X.shape[::2])
    best, tau, rounds = optimum(problem), 1.0 / of.degree, 3000
    errors = {"1/k^2": lambda k: 1.0 / (k + 1) ** 2, "constant": lambda _: 0.1, "none": lambda _: 0.0}
    off = dict[str, float]()
    for name, size in errors.items():
        run = _rounds(of, tau, lambda k, size=size: size(k) * direction)
        w = next(w for k, (w, _) in enumerate(run) if k == rounds)
        off[name] = float(np.abs(w - best.coef).max())
    library = problem.solve(
        gr.PrimalDual(balance=1.0, relaxation=1.0, inexact=lambda t: 1.0 / (t + 1) ** 2), rounds=rounds, gap=0.0
    )
    drift = _drift(of, tau, direction[:1], rounds)
    return Evidence.of(
        at_most("errors 1/k^2: distance to the optimum after 3000 rounds", off["1/k^2"], 1e-4),
        at_most("gr.PrimalDual(inexact=1/(t+1)^2): relative gap", library.certificate.relative_gap, 1e-4),
        at_least("constant errors: distance to the optimum", off["constant"], 0.01),
        equal("errors 1/k without losses: |mean of w|, and the sum of the errors", drift[0], at.given(drift[1]), 1e-9),
        table=[{"errors": name, "distance after 3000 rounds": each} for name, each in off.items()],
    )


def _drift(of: Instance, tau: Array, direction: Array, rounds: int) -> tuple[float, float]:
    """Without losses the mean of w, weighted by |N_i|, moves by every error: with errors 1/k it goes to infinity."""
    nothing = Instance(0.0 * of.X, 0.0 * of.y, of.tail, of.head, of.A)
    run = _rounds(nothing, tau, lambda k: direction / (k + 1))
    w = next(w for k, (w, _) in enumerate(run) if k + 1 == rounds)
    moved = np.linalg.norm(of.degree @ w / of.degree.sum())
    return float(moved), float(np.linalg.norm(direction) * (1.0 / np.arange(1, rounds + 1)).sum())


@claim("gtv.dual-prox", "below (33)", stated="as written")
def dual_proxes(at: Trial) -> Evidence:
    """The dual updates (33): v / (1 + sigma/(lambda A)) for 1/2 ||.||^2, ((sigma/(lambda A)) Q^-1 + I)^-1 v for 1/2
    z'Qz with Q positive semidefinite, clipping of v for the l2 norm, and of its entries for the l1 norm.

    Correction (misprint): A Q that is only semidefinite has no inverse: Q (Q + (sigma/(lambda A)) I)^-1 v holds for it
    as well.
    """
    rng, d = at.rng(), 3
    v, weight, sigma = rng.standard_normal((6, d)), rng.uniform(0.3, 1.0, 6), rng.uniform(0.2, 2.0, 6)
    ratio, B = (at.given(sigma) / weight)[:, None], rng.standard_normal((d, d))
    regular, singular = B @ B.T, B[:, :1] @ B[:, :1].T

    def library(phi: Any) -> Array:
        return phi.dual_prox(v, sigma, weight)

    def printed(Q: Array) -> Array:
        return np.stack([np.linalg.solve(r * np.linalg.pinv(Q) + np.eye(d), x) for r, x in zip(ratio, v, strict=True)])

    def right(Q: Array) -> Array:
        return np.stack([Q @ np.linalg.solve(Q + r * np.eye(d), x) for r, x in zip(ratio, v, strict=True)])

    regular_phi, singular_phi, numeric = gr.Quadratic(regular), gr.Quadratic(singular), _by_search(v, sigma, weight, B)
    return Evidence.of(
        equal("Q of rank 1, with its pseudo-inverse for Q^-1", library(singular_phi), printed(singular)),
        corrected=[
            equal("1/2 ||.||^2", library(gr.SquaredL2()), v / (1.0 + ratio)),
            equal("1/2 z'Qz, Q definite", library(regular_phi), printed(regular)),
            equal("1/2 z'Qz, Q of rank 1, as corrected", library(singular_phi), right(singular)),
            equal("1/2 z'Qz, Q definite: the argmin (33) by search", library(regular_phi), numeric, 1e-5),
            equal("l2", library(gr.L2()), _clip(v, at.given(weight))),
            equal("l1", library(gr.L1()), np.clip(v, -at.given(weight)[:, None], at.given(weight)[:, None])),
        ],
    )


def _by_search(v: Array, sigma: Array, weight: Array, B: Array) -> Array:
    """(33) for 1/2 z'Qz, Q = BB', by a method that knows the function's value alone; phi*(z) = 1/2 z'Q^-1 z."""
    inverse = np.linalg.inv(B @ B.T)

    def value(z: Array, k: int) -> float:
        return 0.5 * z @ inverse @ z / weight[k] + ((v[k] - z) ** 2).sum() / (2.0 * sigma[k])

    found = [minimize(value, 0.0 * v[k], args=(k,), method="BFGS", options={"gtol": 1e-9}).x for k in range(len(v))]
    return np.array(found)


# ---- the duality gap -------------------------------------------------------------------------------------------------
def _gap(of: Instance, w: Array, u: Array) -> float:
    """(34) to the letter, with the l2 norm: the flows of Algorithm 1 lie within the capacities."""
    total_variation = (of.A * np.linalg.norm(of.incidence @ w, axis=1)).sum()
    return float(of.losses(w).sum() + LAM * total_variation + of.conjugates(-of.incidence.T @ u).sum())


@claim("gtv.gap-bound", "(34) and below", stated="suboptimality <= gap_k")
def gap_bounds(at: Trial) -> Evidence:
    """gap_k is at least the suboptimality of the iterate, after every round."""
    of = Instance.drawn(at.rng())
    problem = of.problem(gr.L2(), LAM)
    w, u = _seen(problem, range(1, 61))
    best = optimum(problem).objective
    letter = np.array([_gap(of, at.given(a), b) for a, b in zip(w, u, strict=True)])
    library = [gr.theory.printed.gap(problem, a, [b]) for a, b in zip(w, u, strict=True)]
    off = [problem.value(a) - best for a in w]
    return Evidence.of(
        equal("(34) after 60 rounds, gr.theory.printed.gap and to the letter", library, letter, 1e-9),
        at_most("suboptimality less gap_k", np.array(off) - np.array(library), 1e-12),
        at_most("gap_60", library[-1], 0.01 * library[0]),
    )


@claim("gtv.gap-finite", "below (34)", stated="always fulfilled after a finite number of iterations")
def gap_is_infinite(at: Trial) -> Evidence:
    """gap_k falls below any tolerance after a finite number of iterations, where the losses are convex.

    Correction (substance): Where a node has fewer samples than parameters, or none, L_i* is +inf off the row space of
    X_i, and gap_k is infinite after every round until only rounding is left; it falls once the flows are repaired, so
    that they are conserved within the row spaces. The pseudo-inverse in the place of L_i* gives no bound.
    """
    of = Instance.drawn(at.rng(), m=1, d=3)
    problem = of.problem(gr.L2(), LAM)
    w, u = _seen(problem, range(1, 101))
    library = np.array([gr.theory.printed.gap(problem, a, [b]) for a, b in zip(w, u, strict=True)])
    best = optimum(problem)
    repaired = problem.solve(PRINTED, rounds=20000, gap=1e-6)
    dual = [problem.value(b) - best.objective - _pseudo(of, b, c) for b, c in zip(w, u, strict=True)]
    return Evidence.of(
        at_least("of 100 rounds those with a finite gap_k", int(np.isfinite(library).sum()), 1),
        corrected=[
            at_most("the relative gap with repaired flows", repaired.certificate.relative_gap, 1e-6),
            equal("the objective then, and the optimum", repaired.objective, at.given(best.objective), 1e-5),
            at_least("the pseudo-inverse: by how much its gap is too small, at most", max(dual), 0.1),
        ],
    )


def _pseudo(of: Instance, w: Array, u: Array) -> float:
    """(34) with the pseudo-inverse for the conjugates: no bound of anything."""
    zero = np.zeros_like(w)
    v = -of.incidence.T @ u - of.gradients(zero)
    conjugates = 0.5 * np.einsum("ij,ijk,ik->i", v, np.linalg.pinv(of.hessians, hermitian=True), v) - of.losses(zero)
    total_variation = (of.A * np.linalg.norm(of.incidence @ w, axis=1)).sum()
    return float(of.losses(w).sum() + LAM * total_variation + conjugates.sum())
