"""A penalty of your own: four methods, checked by law, used on both routes; and the same from one line of CVXPY.

The elastic net on edges, phi(z) = ||z||_1 + ridge/2 ||z||^2: single coefficients of neighbours fuse, as with l1, and
large differences are pulled in as with a squared norm. Then a norm that graphreg does not have, ||z||_3, from CVXPY.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

import graphreg as gr
import graphreg.testing


@dataclass(frozen=True)
class ElasticNet(gr.Penalty):
    """phi(z) = ||z||_1 + ridge/2 ||z||^2 of each row."""

    ridge: float = 1.0

    def value(self, z):
        return np.abs(z).sum(axis=1) + self.ridge / 2 * (z**2).sum(axis=1)

    def prox(self, v, step):  # argmin over p of step * phi(p) + 1/2 ||p - v||^2; step: a number, or one per row
        t = np.asarray(step, dtype=float).reshape(-1, 1)
        return np.sign(v) * np.maximum(np.abs(v) - t, 0) / (1 + t * self.ridge)

    def conjugate(self, u):  # finite everywhere: no domain to forget
        return (np.maximum(np.abs(u) - 1, 0) ** 2).sum(axis=1) / (2 * self.ridge)

    def cvxpy(self, Z):
        return cp.sum(cp.abs(Z), axis=1) + self.ridge / 2 * cp.sum(cp.square(Z), axis=1)


class Forgetful(ElasticNet):
    """The mistake that fabricates certificates: a conjugate that is too small."""

    def conjugate(self, u):
        return np.zeros(len(u))


# ---- the laws --------------------------------------------------------------------------------------------------------
print(gr.testing.check_penalty(ElasticNet(2.0)), "\n")
broken = gr.testing.check_penalty(Forgetful(2.0))
print("A broken one is found out:", broken.failures[0].law, "-", broken.failures[0].sentence, "\n")

# ---- both routes -----------------------------------------------------------------------------------------------------
rng = np.random.default_rng(2)
graph = gr.Graph.chain(12)
truth = np.repeat(rng.standard_normal((3, 3)), 4, axis=0)
samples = {}
for i in range(12):
    X = rng.standard_normal((6, 3))
    samples[i] = (X, X @ truth[i] + 0.2 * rng.standard_normal(6))
data = gr.NodeData.from_dict(samples)


def solve(name: str, penalty: gr.Penalty) -> np.ndarray:
    """Both routes, certified; the coefficients of the exact one."""
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, penalty))
    exact, run = problem.solve(gr.Exact()), problem.solve(gr.PrimalDual())
    for solution in (exact, run):
        assert solution.status == "certified", solution
    print(
        f"{name:24s} exact {exact.objective:.9f} (gap {exact.certificate.gap:.1e}), PrimalDual {run.objective:.9f} "
        f"(gap {run.certificate.gap:.1e}, {run.rounds} rounds, {run.seconds:.1f} s)"
    )
    return exact.coef


by_hand = solve("ElasticNet(2)", ElasticNet(2.0))


def elastic_net(Z):
    """The same for all rows at once, so that the exact route stays stacked."""
    return cp.sum(cp.abs(Z), axis=1) + cp.sum(cp.square(Z), axis=1)


derived = solve("the same, from CVXPY", gr.Penalty.from_cvxpy(elastic_net, rows=True))
print(f"largest difference of the coefficients {np.abs(by_hand - derived).max():.1e}\n")

# ---- a norm that graphreg does not have ------------------------------------------------------------------------------
# For one row at a time: CVXPY's p-norms other than 1, 2 and inf know no axis.
cubic = gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 3), name="l3")
report = gr.testing.check_penalty(cubic, k=2, tolerance=1e-6)
print(f"The laws of what was derived from ||z||_3: {'all hold' if report.ok else report}")
solve("l3", cubic)
