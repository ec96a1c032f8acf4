"""Regressions, classifiers, smoothers."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from .cases import COLUMNS, ROWS, Cases, Data, least


def linear(d: Data) -> Cases:
    """Squares, with all that is added to them."""
    A, b, r, m, n = d.A, d.b, d.r, ROWS, COLUMNS
    x, z = cp.Variable(n), cp.Variable(60)
    residual = A @ x - b
    squares, half = cp.sum_squares(residual), cp.sum_squares(residual) / 2
    yield least("least squares", squares, known=float(np.linalg.lstsq(A, b, rcond=None)[1][0]))
    yield least("box least squares", squares, [x >= 0, x <= 1])
    yield least("ridge", squares / m + 0.1 * cp.sum_squares(x))
    yield least("lasso", half + 2 * cp.norm1(x))
    yield least("elastic net", half + cp.norm1(x) + cp.sum_squares(x))
    wild = A * 10.0 ** r.integers(-6, 7, n)
    yield least("lasso, columns 1e-6 to 1e6", cp.sum_squares(wild @ x - b) / 2 + 2 * cp.norm1(x))
    yield least("lasso, targets + 1e6", cp.sum_squares(A @ x - (b + 1e6)) / 2 + 2 * cp.norm1(x))
    u = cp.Variable(n + 3)
    yield least("least squares, equal columns", cp.sum_squares(np.c_[A, A[:, :3]] @ u - b))
    few = r.standard_normal((20, 60))
    yield least("lasso, more columns than rows", cp.sum_squares(few @ z - 3 * few[:, 0]) / 2 + 1.5 * cp.norm1(z))
    yield least("basis pursuit", cp.norm1(z), [few @ z == few[:, :4] @ np.array([1.0, -2.0, 3.0, 0.5])])
    yield least("weighted least squares", cp.sum(cp.multiply(r.random(m) + 0.1, cp.square(residual))))
    yield least("non-negative least squares", squares, [x >= 0])
    yield least("least squares on the simplex", squares, [x >= 0, cp.sum(x) == 1])
    yield least("lasso as a constraint", squares, [cp.norm1(x) <= 1.5])
    yield least("ridge as a constraint", squares, [cp.norm(x) <= 1])
    yield least("square-root lasso", cp.norm(residual) + 0.8 * cp.norm1(x))
    yield least("fused lasso", half + cp.norm1(x) + 2 * cp.norm1(cp.diff(x)))
    groups = [x[k : k + 3] for k in range(0, n, 3)]
    yield least("sparse group lasso", half + cp.norm1(x) + 2 * sum(cp.norm(each) for each in groups))
    W = cp.Variable((4, 5))
    targets = r.standard_normal((m, 4))
    yield least("group lasso", cp.sum_squares(A[:, :5] @ W.T - targets) / 2 + 3 * cp.sum(cp.norm(W, axis=1)))
    yield least("multi-task, nuclear norm", cp.sum_squares(A[:, :5] @ W.T - targets) / 2 + 4 * cp.normNuc(W))
    yield least("Dantzig selector", cp.norm1(x), [cp.norm_inf(A.T @ residual) <= 5])
    yield least("robust least squares", cp.norm(residual) + 0.5 * cp.norm(x))
    late = np.minimum(b, np.median(b))
    seen = late < np.median(b)
    yield least("censored regression", cp.sum_squares(A[seen] @ x - b[seen]), [A[~seen] @ x >= late[~seen]])


def robust(d: Data) -> Cases:
    """Losses of residuals that are no squares."""
    A, b, m, n = d.A, d.b, ROWS, COLUMNS
    x = cp.Variable(n)
    residual = A @ x - b
    yield least("Huber", cp.sum(cp.huber(residual, 1.0)))
    yield least("Huber and l1", cp.sum(cp.huber(residual, 0.5)) + cp.norm1(x))
    yield least("quantile .9", cp.sum(0.5 * cp.abs(residual) + 0.4 * residual))
    yield least("quantile .1 and ridge", cp.sum(0.5 * cp.abs(residual) - 0.4 * residual) + cp.sum_squares(x))
    v = cp.Variable((n, 3))
    levels = np.array([0.25, 0.5, 0.75])
    each = cp.sum(
        [cp.sum(cp.maximum(q * (b - A @ v[:, k]), (q - 1) * (b - A @ v[:, k]))) for k, q in enumerate(levels)]
    )
    yield least("quantiles that do not cross", each, [A @ v[:, k] <= A @ v[:, k + 1] for k in range(2)])
    yield least("expectile .8", cp.sum(0.8 * cp.square(cp.neg(residual)) + 0.2 * cp.square(cp.pos(residual))))
    yield least("epsilon-insensitive", cp.sum(cp.pos(cp.abs(residual) - 0.3)) + 0.5 * cp.sum_squares(x))
    yield least("l1 regression", cp.norm1(residual))
    yield least("l1 regression, fixed sum", cp.norm1(residual), [cp.sum(x) == 1, x >= -1])
    yield least("Chebyshev approximation", cp.norm_inf(residual))
    yield least("sum of the largest residuals", cp.sum_largest(cp.abs(residual), 5) + 0.1 * cp.sum_squares(x))
    yield least("p-norm 3", cp.pnorm(residual, 3) + cp.sum_squares(x))
    yield least("p-norm 1.5", cp.pnorm(residual, 1.5) + 0.1 * cp.norm1(x))
    yield least("p-norm 4, bounded", cp.pnorm(residual, 4), [cp.norm_inf(x) <= 1])
    yield least("quadratic over linear", cp.quad_over_lin(A[:5] @ x - 1, x[0] + 3) + cp.norm_inf(x), [x[0] >= -1])
    yield least("log-cosh like", cp.sum(cp.logistic(2 * residual) - residual) / m)


def classes(d: Data) -> Cases:
    """Labels and counts."""
    A, y, r, m, n = d.A, d.y, d.r, ROWS, COLUMNS
    x, v = cp.Variable(n), cp.Variable()
    margin = cp.multiply(y, A @ x)
    yield least("svm", cp.sum(cp.pos(1 - cp.multiply(y, A @ x - v))) / m + 0.1 * cp.sum_squares(x))
    yield least("svm l1", cp.sum(cp.pos(1 - margin)) / m + 0.05 * cp.norm1(x))
    yield least("svm, squared hinge", cp.sum(cp.square(cp.pos(1 - margin))) + cp.norm1(x))
    a = cp.Variable(m)
    box = [a >= 0, a <= 1, y @ a == 0]
    yield least("svm, its dual", cp.sum_squares((A * y[:, None]).T @ a) / 2 - cp.sum(a), box)
    logistic = cp.sum(cp.logistic(-margin))
    yield least("logistic l2", logistic + cp.sum_squares(x))
    yield least("logistic l1", logistic / m + 0.05 * cp.norm1(x))
    yield least("logistic in a box", logistic, [cp.norm_inf(x) <= 0.5])
    yield least("logistic, groups", logistic + 2 * sum(cp.norm(x[k : k + 4]) for k in range(0, n, 4)))
    W, of = cp.Variable((n, 3)), r.integers(0, 3, m)
    picked = cp.sum(cp.multiply(np.eye(3)[of], A @ W))
    yield least("multinomial", cp.sum(cp.log_sum_exp(A @ W, axis=1)) - picked + cp.sum_squares(W))
    slope, counts = 0.25 * (A @ x), np.arange(m) % 4
    yield least("Poisson", cp.sum(cp.exp(slope) - cp.multiply(counts, slope)) + 0.1 * cp.sum_squares(x))
    time = r.random(m) + 0.5
    yield least(
        "Poisson, exposures", cp.sum(cp.multiply(time, cp.exp(slope)) - cp.multiply(counts, slope)) + cp.norm1(x)
    )
    yield least("gamma", cp.sum(slope + cp.multiply(r.random(m) + 0.2, cp.exp(-slope))) + cp.sum_squares(x))
    mix = np.abs(A)
    yield least("Poisson, linear", cp.sum(cp.kl_div(counts + 1.0, mix @ x)), [x >= 0])


def smooth(d: Data) -> Cases:
    """Signals along a line, and on a grid."""
    t, r = d.t, d.r
    u, half = cp.Variable(60), cp.Variable(60)
    near = cp.sum_squares(u - t) / 2
    yield least("total variation", near + cp.norm1(cp.diff(u)))
    yield least("trend filter", near + 5 * cp.norm1(cp.diff(u, k=2)))
    U = cp.Variable((8, 8))
    picture = r.standard_normal((8, 8))
    yield least("total variation, picture", cp.sum_squares(U - picture) / 2 + 0.4 * cp.tv(U))
    yield least("isotonic", cp.sum_squares(u - t), [cp.diff(u) >= 0])
    yield least("isotonic l1", cp.norm1(u - t), [cp.diff(u) >= 0])
    yield least("convex regression", cp.sum_squares(u - t), [cp.diff(u, k=2) >= 0])
    yield least("concave and growing", cp.norm1(u - t) / 60, [cp.diff(u, k=2) <= 0, cp.diff(u) >= 0])
    yield least("Hodrick and Prescott", near + 10 * cp.sum_squares(cp.diff(u, k=2)))
    D = np.diff(np.eye(60), 2, axis=0)
    yield least("smoothing by a quadratic form", near + cp.quad_form(u, cp.psd_wrap(D.T @ D)))
    yield least("trend filter l1", cp.norm1(u - t) + 2 * cp.norm1(cp.diff(u, k=2)))
    yield least("total variation, Huber", cp.sum(cp.huber(u - t, 0.2)) + 0.5 * cp.norm1(cp.diff(u)))
    yield least("trend and season", cp.sum_squares(u + half - t) + 3 * cp.norm1(cp.diff(u, k=2)) + cp.norm1(half))
    x, hinge = np.linspace(0, 1, 20), cp.Variable(20)
    g = cp.Variable(20)
    above = [hinge[j] >= hinge[i] + g[i] * (x[j] - x[i]) for i in range(0, 20, 2) for j in range(20) if i != j]
    yield least("convex regression by slopes", cp.sum_squares(hinge - t[:20]) + 0.01 * cp.sum_squares(g), above)


FIELDS = (linear, robust, classes, smooth)
