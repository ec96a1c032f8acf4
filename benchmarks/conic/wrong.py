"""Problems that have no optimum, none that is attained, or no interior: what is right to say of each."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np

from .cases import BOUNDS, INFEASIBLE, STORED, UNBOUNDED, Array, Cases, Data, least, most

BOUNDARY = "all multipliers lie on the boundary of a cone, or there is none"


def infeasible(d: Data) -> Cases:
    """No point; what is stored may contradict itself where what was meant does not."""
    x, t, X = cp.Variable(2), cp.Variable(3), cp.Variable((3, 3), PSD=True)
    yield least("infeasible, lines", cp.sum(x), [x >= 1, cp.sum(x) <= 1.5], right=INFEASIBLE)
    yield least("infeasible, ball", cp.sum(t), [cp.norm(t) <= 1, t[0] >= 2], right=INFEASIBLE)
    yield least("infeasible, matrix", cp.trace(X), [X[0, 0] <= 1, X[1, 1] <= 1, X[0, 1] >= 2], right=INFEASIBLE)
    yield least("infeasible, squares", cp.sum_squares(t), [cp.sum(t) == 1, cp.max(t) <= 0.2], right=INFEASIBLE)
    yield least("infeasible, exponential", t[0], [cp.exp(t[0]) <= t[1], t[1] <= 1, t[0] >= 0.5], right=INFEASIBLE)
    w = cp.Variable(len(d.edges), nonneg=True)
    ends = np.r_[9.0, np.zeros(6), -9.0]
    yield least("infeasible, flow", cp.sum(w), [d.incidence @ w == ends, w <= 0.5], right=INFEASIBLE)
    yield least("infeasible, logarithm", -cp.log(t[0]), [cp.log(t[0]) >= 1, t[0] <= 2], right=INFEASIBLE)
    p, q = d.r.random(6), d.r.random(8)
    Q, cost = cp.Variable((6, 8), nonneg=True), d.r.integers(1, 20, (6, 8)).astype(float)
    sums = [cp.sum(Q, axis=1) == p / p.sum(), cp.sum(Q, axis=0) == q / q.sum()]
    differs = _exactly(p / p.sum()) != _exactly(q / q.sum())
    yield least("transport, probabilities", cp.sum(cp.multiply(cost, Q)), sums, right=STORED if differs else BOUNDS)
    three = [t[0] + t[1] == 0.1, t[1] + t[2] == 0.2, t[0] + 2 * t[1] + t[2] == 0.3]
    yield least("three equalities", cp.sum_squares(t), three, right=STORED)
    thirds = [cp.sum(t) == 1, t[0] == 1 / 3, t[1] == 1 / 3, t[2] == 1 / 3]
    yield least("three thirds", cp.sum_squares(t), thirds, right=STORED)
    hard = "infeasible without a finite proof: only limits of multipliers say it"
    weak = [cp.quad_over_lin(1, x[0]) <= x[1], x[1] <= 0]
    yield least("weakly infeasible", cp.sum(x), weak, right=INFEASIBLE, hard=hard)


def _exactly(x: Array) -> Fraction:
    """The sum of doubles."""
    return sum(map(Fraction, x.tolist()), Fraction(0))


def unbounded(d: Data) -> Cases:
    """No lower bound."""
    x, t, X = cp.Variable(2), cp.Variable(3), cp.Variable((3, 3), PSD=True)
    yield least("unbounded, lines", x[0] - x[1], [x >= 0], right=UNBOUNDED)
    yield least("unbounded, squares", cp.square(t[0]) - t[1], [t[0] + t[1] >= 1], right=UNBOUNDED)
    yield least("unbounded, cone", -t[0], [cp.norm(t[1:]) <= t[0]], right=UNBOUNDED)
    yield least("unbounded, matrix", X[0, 1] - X[0, 0], [X[0, 0] >= 1], right=UNBOUNDED)
    yield least("unbounded, exponential", t[0] + t[1], [cp.exp(t[0]) <= 2], right=UNBOUNDED)
    cycle = [d.incidence @ (w := cp.Variable(len(d.edges), nonneg=True)) == 0]
    yield least("unbounded, cycle or nothing", -cp.sum(w) - 1, [*cycle, w <= 0], known=-1.0)
    slow = "unbounded along a curve, along no line"
    yield most("unbounded, logarithm", cp.log(x[0]), [x[0] >= 1], right=UNBOUNDED, hard=slow)
    yield least("unbounded, square root", -cp.sqrt(x[0]) + x[1], [x >= 0], right=UNBOUNDED, hard=slow)


def edges(d: Data) -> Cases:
    """Optima that are not attained, sets without an interior, numbers of very different sizes."""
    x, t, X = cp.Variable(2), cp.Variable(3), cp.Variable((2, 2), PSD=True)
    yield least("not attained, hyperbola", x[0], [cp.quad_over_lin(1, x[1]) <= x[0]], known=0.0, hard=BOUNDARY)
    yield least("not attained, exponential", cp.exp(x[0]), known=0.0, hard=BOUNDARY)
    A, u = np.abs(d.A[:, :3]), cp.Variable(3)
    yield least("not attained, separable", cp.sum(cp.logistic(-A @ u)), known=0.0, hard=BOUNDARY)
    yield least("no interior, matrix", X[1, 1] + X[0, 1], [X[0, 0] == 0], known=0.0, hard=BOUNDARY)
    yield least("no interior, two inequalities", cp.sum_squares(x), [cp.sum(x) <= 1, cp.sum(x) >= 1], known=0.5)
    yield least("no interior, tangent ball", cp.sum(x), [cp.norm(x) <= 1, x[0] >= 1], known=1.0, hard=BOUNDARY)
    yield least("no interior, point", cp.norm(t - 1), [cp.norm(t) <= 0], known=3**0.5, hard=BOUNDARY)
    yield least("no interior, trace", cp.trace(X) + x[0], [cp.trace(X) <= 0, x[0] >= 1], known=1.0, hard=BOUNDARY)
    yield least("no interior, equal bounds", cp.sum_squares(t), [t >= 1, t <= 1], known=3.0)
    yield least("equalities twice", cp.sum_squares(t), [cp.sum(t) == 1, 2 * cp.sum(t) == 2], known=1 / 3)
    yield least("constants alone", 3.0 + 0 * x[0], [x >= 0], known=3.0)
    yield least("one number", cp.square(x[0] - 0.1) + 1, [x[0] >= 0], known=1.0)
    wide = d.A[:, :5] * 10.0 ** np.array([-9, -4, 0, 6, 12])
    v = cp.Variable(5)
    yield least("columns 1e-9 to 1e12", cp.sum_squares(wide @ v - d.b), hard="columns 1e-9 to 1e12, and no ridge")
    yield least("columns 1e-9 to 1e12, ridge", cp.sum_squares(wide @ v - d.b) + cp.sum_squares(v))
    zero = np.c_[d.A[:, :3], np.zeros(40)]
    yield least("zero column", cp.sum_squares(zero @ cp.Variable(4) - d.b))
    yield least("tiny margin", cp.sum(x), [x >= 0, cp.sum(x) >= 1, cp.sum(x) <= 1 + 1e-9], known=1.0)


FIELDS = (infeasible, unbounded, edges)
