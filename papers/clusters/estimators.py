"""Section 5: the minimiser of (5.2) as an estimator of the hierarchical linear model (5.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal, uncheckable
from ..computing import column, optimum, rows
from ._instances import Array, Instance

SIGMA_J, SIGMA = np.array([0.5, 1.0, 2.0]), 1.5  # the variances of clients about their clusters, and of these


@dataclass(frozen=True)
class LinearModel:
    """(5.1) with noise of variance 1 (other variances are other X_i), gamma_i = 1/sigma_j^2 and lambda_j = 1/sigma^2.

    Attributes
    ----------
    of : Instance
    covariance : (n, n)
        Of theta_i, for each coordinate, but for the unknown mean that all share.
    """

    of: Instance
    covariance: Array

    @staticmethod
    def drawn(rng: np.random.Generator, m: int, *, orthogonal: bool, factor: float = 1.0) -> LinearModel:
        """Random data; ``orthogonal``: X_i'X_i = beta_i I. The covariance is that of ``factor`` times sigma^2."""
        of = Instance.drawn(rng, m=m)
        X = np.linalg.qr(of.X)[0] * rng.uniform(0.5, 3.0, (len(of.X), 1, 1)) if orthogonal else of.X
        of = Instance(X, of.y, of.cluster, 1.0 / SIGMA_J[of.cluster], np.full(3, 1.0 / SIGMA))
        same = of.cluster[:, None] == of.cluster
        return LinearModel(of, factor * SIGMA * same + np.diag(SIGMA_J[of.cluster]))

    def given_raw_data(self, i: int) -> Array:
        """The best linear unbiased estimate of theta_i from all (X_k, y_k), by generalised least squares: y_k = X_k
        theta_i + X_k (theta_k - theta_i) + noise."""
        n, m, d = self.of.X.shape
        apart = self._apart(i)
        noise = np.einsum("iaj,ik,kbj->iakb", self.of.X, apart, self.of.X).reshape(n * m, n * m) + np.eye(n * m)
        return _least_squares(self.of.X.reshape(n * m, d), self.of.y.ravel(), noise)

    def given_estimates(self, i: int) -> Array:
        """The same from (X_i, y_i) and the others' own estimates theta_k^d = (X_k'X_k)^-1 X_k'y_k, as in (A.1)."""
        n, m, d = self.of.X.shape
        others = np.delete(np.arange(n), i)
        gram = np.einsum("imj,imk->ijk", self.of.X, self.of.X)
        local = np.linalg.solve(gram, np.einsum("imj,im->ij", self.of.X, self.of.y)[:, :, None])[others, :, 0]
        noise = np.eye(m + len(others) * d)
        apart = np.kron(self._apart(i)[np.ix_(others, others)], np.eye(d))
        for place, k in enumerate(others):
            rows = slice(place * d, (place + 1) * d)
            apart[rows, rows] += np.linalg.inv(gram[k])
        noise[m:, m:] = apart
        design = np.concatenate([self.of.X[i], np.tile(np.eye(d), (len(others), 1))])
        return _least_squares(design, np.concatenate([self.of.y[i], local.ravel()]), noise)

    def _apart(self, i: int) -> Array:
        """The covariance of theta_k - theta_i, (n, n)."""
        off = np.eye(len(self.covariance))
        off[:, i] -= 1.0
        return off @ self.covariance @ off.T

    def errors(self, estimator: Array) -> Array:
        """E||theta_hat_i - theta_i||^2, (n,), of linear estimators that are unbiased, (n, d, n, m) matrices."""
        X, d = self.of.X, self.of.X.shape[2]
        through = np.einsum("iakm,kmb->iakb", estimator, X)
        through[np.arange(len(X)), :, np.arange(len(X))] -= np.eye(d)
        spread = np.einsum("iakb,kl,ialb->i", through, self.covariance, through)
        return spread + (estimator**2).sum(axis=(1, 2, 3))


def _least_squares(design: Array, values: Array, noise: Array) -> Array:
    weighed = np.linalg.solve(noise, design)
    return np.linalg.solve(design.T @ weighed, weighed.T @ values)


@claim("clusters.thm5.1", "Theorem 5.1")
def best_linear_unbiased(at: Trial) -> Evidence:
    """With lambda_j = 1/sigma^2, gamma_i = 1/sigma_j^2 and X_i'X_i = beta_i I the minimiser of (5.2) is the best linear
    unbiased estimator of theta_i given (X_i, y_i) and the others' own estimates."""
    model = LinearModel.drawn(at.rng(), m=6, orthogonal=True, factor=at.given(1.0))
    found = optimum(model.of.problem()).coef
    return Evidence.of(equal("theta_i", found, np.array([model.given_estimates(i) for i in range(len(found))]), 1e-6))


@claim("clusters.cor5.2", "Corollary 5.2", stated="at most the lesser of the two")
def against_both(at: Trial) -> Evidence:
    """Under the conditions of Theorem 5.1 E||theta_hat_i - theta_i||^2 is at most that of the local estimate and that
    of a single model for all."""
    model = LinearModel.drawn(at.rng(), m=6, orthogonal=True)
    X = model.of.X
    n, m, d = X.shape
    units = np.eye(n * m).reshape(n * m, n, m)

    def linear(alpha: Array) -> Array:
        maps = [replace(model.of, y=unit).minimiser(model.of.penalty(alpha)) for unit in units]
        return np.moveaxis(np.array(maps), 0, -1).reshape(n, d, n, m)

    ours = linear(model.of.alpha)
    other = [model.errors(linear(factor * model.of.alpha)) for factor in (0.8, 1.2)]
    gram = np.einsum("imj,imk->ijk", X, X)
    local, single = np.zeros_like(ours), np.einsum("jk,lmk->jlm", np.linalg.inv(gram.sum(axis=0)), X)
    local[np.arange(n), :, np.arange(n)] = np.einsum("ijk,imk->ijm", np.linalg.inv(gram), X)
    errors = [model.errors(each) for each in (ours, local, np.tile(single, (n, 1, 1, 1)))]
    least = np.minimum(errors[1], errors[2])
    return Evidence.of(
        at_most("mean squared error over the lesser of the two", errors[0] / least, 1.0),
        at_least("with alpha_j a fifth less or more, over that of (5.2)", other / errors[0], 1.0),
        table=rows({"client": range(n), **dict(zip(("(5.2)", "local", "single model"), errors, strict=True))}),
    )


@claim("clusters.prop5.3", "Proposition 5.3, appendix A.11", stated="in general different")
def given_all_data(at: Trial) -> Evidence:
    """For any design the best linear unbiased estimator given all data (X_i, y_i) has at most the mean squared error of
    the minimiser of (5.2), and in general it is another one, for example where X_i is not I.

    Correction (substance): It is the minimiser of (5.2), for any design, even with fewer samples than parameters:
    nothing is gained, and the two errors are equal.
    """
    found, same, table = list[float](), list[Any](), []
    for m in (2, 6):
        model = LinearModel.drawn(at.rng(m), m=m, orthogonal=False, factor=at.given(1.0))
        ours = optimum(model.of.problem()).coef
        theirs = np.array([model.given_raw_data(i) for i in range(len(ours))])
        found.append(float(np.abs(ours - theirs).max() / np.abs(theirs).max()))
        same.append(equal(f"theta_i, {m} samples of 3 parameters", ours, theirs, 1e-6))
        table.append({"samples": m, "parameters": 3, "relative distance of the two": found[-1]})
    printed = at_least("relative distance of the two estimators", found, 1e-4)
    return Evidence.of(printed, corrected=same, table=table)


# ---- James-Stein -----------------------------------------------------------------------------------------------------
@claim("clusters.A12", "appendix A.12", stated="(n - 1)/2n and (n + 1)/2n")
def weights(at: Trial) -> Evidence:
    """The best linear unbiased estimator of theta_1 is (n - 1)/2n y_1 + (n + 1)/2n times the mean of the others, for
    y_i ~ N(theta_i, I), theta_i ~ N(thetabar, I).

    Correction (misprint): The weights are the other way round: (n + 1)/2n of y_1, and (n - 1)/2n of the others.
    """
    sizes, found, printed, right = (2, 3, 5, 10), [], [], []
    for n in sizes:
        y = at.rng(n).standard_normal((n, 3))
        moved = y + np.eye(n)[:, :1]
        before, after = (
            gr.inference.james_stein(_means(each), (1.0, at.given(1.0))).marginal[0, 0] for each in (y, moved)
        )
        found.append(float(after - before))
        own, others = gr.theory.printed.james_stein_weights(n)
        printed.append(own)
        right.append(others)
    return Evidence.of(
        equal("the weight of y_1 at n = 2, 3, 5, 10, as printed", found, printed),
        corrected=[equal("the weight of y_1 at n = 2, 3, 5, 10", found, right)],
    )


def _means(y: Array) -> gr.NodeData:
    return gr.NodeData.from_arrays(None, y, list(range(len(y))))


def _shrunken(rng: np.random.Generator, *, n: int, d: int, centre: float) -> dict[str, float]:
    """The squared errors of both estimators, means over the clients."""
    truth = centre + rng.standard_normal((n, d))
    fit = gr.inference.james_stein(_means(truth + rng.standard_normal((n, d))), (1.0, 1.0))
    both = {"James-Stein": fit.coef, "unbiased": fit.marginal}
    return {name: float(((each - truth) ** 2).sum(axis=1).mean()) for name, each in both.items()}


@claim(
    "clusters.prop5.4",
    "Proposition 5.4",
    stated="at most",
    experiment=True,
    quick={"count": 400},
    full={"count": 10_000},
)
def shrinkage(at: Trial, count: int) -> Evidence:
    """In the single-cluster model y_i ~ N(theta_i, I), theta_i ~ N(thetabar, I) with d > 3 a biased estimator has at
    most the mean squared error of the best linear unbiased one: with C = max(0, 1 - 2 (d - 2) / ((n - 1) ||ybar||^2))
    times the mean ybar of the others in the place of ybar (A.12 with its weights exchanged, and Bock's C)."""
    cells = [{"n": n, "d": d, "centre": c} for n, d, c in ((3, 5, 0.0), (3, 5, 1.0), (5, 4, 0.5), (10, 20, 1.0))]
    found = at.replicate(_shrunken, cells, count)
    shrunken, unbiased = (column(found, name) for name in ("James-Stein", "unbiased"))
    gains, errors = (unbiased - shrunken).mean(axis=1), (unbiased - shrunken).std(axis=1, ddof=1) / np.sqrt(count)
    means = {"James-Stein": shrunken.mean(axis=1), "unbiased": unbiased.mean(axis=1), "standard error": errors}
    y = at.rng(1).standard_normal((3, 5)) + 2.0
    return Evidence.of(
        at_least("what is gained, in standard errors", np.divide(gains, errors), 3.0),
        equal("the estimates of one draw", gr.inference.james_stein(_means(y), (1.0, 1.0)).coef, _by_bock(at.given(y))),
        table=[{**cell, **row} for cell, row in zip(cells, rows(means), strict=True)],
    )


def _by_bock(y: Array) -> Array:
    n, d = y.shape
    others = (y.sum(axis=0) - y) / (n - 1.0)
    C = np.maximum(0.0, 1.0 - 2.0 * (d - 2.0) / ((n - 1.0) * (others**2).sum(axis=1)))
    return (n + 1.0) / (2.0 * n) * y + (n - 1.0) / (2.0 * n) * C[:, None] * others


uncheckable(
    "clusters.table2-3",
    "Tables 2 and 3, Figure 2",
    "On donations by ZIP code the personalised models have a lower largest cross-entropy than a single model, and the "
    "same accuracy.",
    stated="cross-entropy 0.215, accuracy 0.942",
    reason="the data (DMEF Customer Lifetime Value) cannot be had",
)
