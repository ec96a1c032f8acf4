"""Terms as a user writes them: the methods that a base class asks for, and not a word more."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

import graphreg as gr
from graphreg.terms.losses.base import AbstractPeakedLoss
from graphreg.terms.losses.samples import numeric
from graphreg.terms.penalties.base import AbstractSmoothPenalty
from graphreg.terms.records import Notation


@dataclass(frozen=True)
class LogCosh(AbstractPeakedLoss):
    """log cosh(x - y): a square near 0, |x - y| far from it."""

    def encode(self, target):
        return numeric(target, "LogCosh")

    def value(self, x, y):
        r = np.abs(x - y)
        near = np.log1p(2.0 * np.sinh(np.minimum(r, 1.0) / 2.0) ** 2)  # free of cancellation
        return np.where(r < 1.0, near, r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0))

    def gradient(self, x, y):
        return np.clip(np.tanh(x - y), -1.0 + 1e-15, 1.0 - 1e-15)

    def curvature(self, x, y):
        e = np.exp(-2.0 * np.abs(x - y))
        return 4.0 * e / (1.0 + e) ** 2

    def smoothness(self):
        return 1.0

    def conjugate(self, b, y):
        inside = np.abs(b) <= 1.0
        b = np.where(inside, b, 0.0)
        entropy = sum(q * np.log(np.where(q > 0.0, q, 1.0)) for q in (1.0 + b, 1.0 - b)) / 2
        return np.where(inside, entropy + b * y, np.inf)

    def domain(self, y):
        return np.full(y.shape, -1.0), np.full(y.shape, 1.0)

    def prox(self, v, step, y):
        p = np.clip(y, v - step, v + step)  # Newton's steps from the point nearest to the inflection do not cycle
        for _ in range(200):
            p = p - (p + step * np.tanh(p - y) - v) / (1.0 + step * self.curvature(p, y))
        return p

    def conductance(self, b, y):
        return np.maximum(1.0 - b * b, 1e-3)

    def cvxpy(self, x, y):
        return cp.logistic(2 * (x - y)) - (x - y) - np.log(2.0)

    def cvxpy_conjugate(self, b, y):
        return -cp.entr(1 + b) / 2 - cp.entr(1 - b) / 2 + cp.multiply(b, y)

    @property
    def notation(self):
        return Notation("log cosh(%z - %y)", "%c h(%u / %c) + %u %y", "|%u| <= %c", "", "", "")


class OwnL1(gr.Penalty):
    """The l1 norm, which says nowhere that it is a norm."""

    def value(self, z):
        return np.abs(z).sum(axis=1)

    def prox(self, v, step):
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))[:, None]
        return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)

    def conjugate(self, u):
        return np.where(np.abs(u).max(axis=1) <= 1.0, 0.0, np.inf)

    def cvxpy(self, Z):
        return cp.sum(cp.abs(Z), axis=1)


@dataclass(frozen=True)
class Elastic(gr.Penalty):
    """||z||_1 + ridge/2 ||z||^2, by the four methods alone."""

    ridge: float = 1.0

    def value(self, z):
        return np.abs(z).sum(axis=1) + self.ridge * (z * z).sum(axis=1) / 2

    def prox(self, v, step):
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))[:, None]
        return np.sign(v) * np.maximum(np.abs(v) - t, 0.0) / (1.0 + self.ridge * t)

    def conjugate(self, u):
        return (np.maximum(np.abs(u) - 1.0, 0.0) ** 2).sum(axis=1) / (2.0 * self.ridge)

    def cvxpy(self, Z):
        return cp.sum(cp.abs(Z), axis=1) + self.ridge / 2 * cp.sum(cp.square(Z), axis=1)


class OwnSquare(AbstractSmoothPenalty):
    """Half the square: its Hessian lies between 1 and 1."""

    def value(self, z):
        return (z * z).sum(axis=1) / 2

    def gradient(self, z):
        return z

    def curvature(self, z):
        return np.ones_like(z)

    def smoothness(self):
        return 1.0

    def strong_convexity(self):
        return 1.0

    def prox(self, v, step):
        return v / (1.0 + np.broadcast_to(np.asarray(step, dtype=float), (len(v),))[:, None])

    def conjugate(self, u):
        return (u * u).sum(axis=1) / 2

    def cvxpy(self, Z):
        return cp.sum(cp.square(Z), axis=1) / 2


class OwnEquality(gr.AbstractConstraint):
    """The indicator of {0}, which says nowhere that it is one."""

    def value(self, z):
        return np.where((z == 0).all(axis=1), 0.0, np.inf)

    def project(self, z):
        return np.zeros_like(z)

    def conjugate(self, u):
        return np.zeros(len(u))

    def cvxpy(self, Z):
        return [Z == 0]


class OwnPairs(gr.Penalty):
    """The sum of the Euclidean norms of pairs of coordinates: a group lasso."""

    def value(self, z):
        return self._sizes(z).sum(axis=1)

    def prox(self, v, step):
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))[:, None]
        shrunk = 1.0 - t / np.maximum(self._sizes(v), t)
        return v * np.repeat(shrunk, 2, axis=1)

    def conjugate(self, u):
        return np.where(self._sizes(u).max(axis=1) <= 1.0, 0.0, np.inf)

    def cvxpy(self, Z):
        return sum(cp.norm(Z[:, j : j + 2], 2, axis=1) for j in range(0, Z.shape[1], 2))

    def check(self, k):
        if k % 2:
            raise gr.errors.TermError(f"pairs need an even number of coordinates, got {k}")

    def _sizes(self, z):
        return np.linalg.norm(z.reshape(len(z), -1, 2), axis=2)
