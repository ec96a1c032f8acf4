"""Second-order cones {(t, z): t >= ||z||_2}, many at once, and what interior-point methods ask of them.

Points are arrays (1 + k, m), one cone a column, t in the first row. Notation of Vandenberghe, The CVXOPT linear and
quadratic cone program solvers (2010), sections 4 and 5: x o y is the Jordan product, W the scaling of Nesterov and Todd
with W y = W^-1 s = v.
"""

from __future__ import annotations

import numpy as np

from ...terms import Array

TINY = 1e-300


def lengths(z: Array) -> Array:
    """||z|| of each column, (m,)."""
    return np.abs(z[0]) if len(z) == 1 else np.sqrt(np.einsum("ij,ij->j", z, z))


def determinant(x: Array) -> Array:
    """t^2 - ||z||^2, without cancellation near the boundary, (m,)."""
    if len(x) == 1:
        return x[0] * x[0]
    size = lengths(x[1:])
    return (x[0] - size) * (x[0] + size)


def product(x: Array, y: Array) -> Array:
    """x o y = (<x, y>, x_0 y_1 + y_0 x_1)."""
    out = x[0] * y
    if len(x) == 1:
        return out
    out[1:] += y[0] * x[1:]
    out[0] = np.einsum("ij,ij->j", x, y)
    return out


def quotient(x: Array, r: Array, of_x: Array) -> Array:
    """The y with x o y = r; ``of_x`` is the determinant of x."""
    if len(x) == 1:
        return r / x
    first = (x[0] * r[0] - np.einsum("ij,ij->j", x[1:], r[1:])) / of_x
    out = (r - first * x) / x[0]
    out[0] = first
    return out


def max_step(x: Array, step: Array, c: Array) -> float:
    """The largest t for which x + t step is in every cone; ``c`` is the determinant of x."""
    if len(x) == 1:
        fastest = -float((step / x).min(initial=0.0))
        return 1.0 / fastest if fastest > 0.0 else np.inf
    b = x[0] * step[0] - np.einsum("ij,ij->j", x[1:], step[1:])
    # c + 2 b t + a t^2 has real roots, as b^2 >= a c for x inside the cone; the first positive one is c / speed
    speed = np.sqrt(np.maximum(b * b - determinant(step) * c, 0.0)) - b
    fastest = float(np.max(speed / np.maximum(c, TINY), initial=0.0))
    return 1.0 / fastest if fastest > 0.0 else np.inf


def towards(p: Array, low: float, high: float) -> Array:
    """The summand of p with which its eigenvalues p_0 +- ||p_1|| are in [low, high], or fall by ``high`` at most."""
    if len(p) == 1:
        return np.maximum(np.clip(p, low, high) - p, -high)
    size = lengths(p[1:])
    lower, upper = (np.maximum(np.clip(value, low, high) - value, -high) for value in (p[0] - size, p[0] + size))
    out = p * ((upper - lower) / (2.0 * np.maximum(size, TINY)))
    out[0] = 0.5 * (lower + upper)
    return out


class Scaling:
    """The W with W y = W^-1 s = v of one s and y inside the cones: W = eta (2 q q' - J), J = diag(1, -1, ..., -1).

    Near the boundary s and y have lost what v, eta and q need, so from iterate to iterate these are carried on (see
    `moved`) and not computed anew.
    """

    def __init__(self, q: Array, eta: Array, v: Array) -> None:
        self.q, self.eta, self.v = q, eta, v
        self.mirrored = -q
        self.mirrored[0] = q[0]

    @classmethod
    def of(cls, s: Array, y: Array) -> Scaling:
        of_s, of_y = np.sqrt(determinant(s)), np.sqrt(determinant(y))
        one, two = s / of_s, y / of_y
        point = one - two  # (s + J y) / (2 gamma) of both normalised
        point[0] += 2.0 * two[0]
        point /= np.sqrt(2.0 + 2.0 * np.einsum("ij,ij->j", one, two))
        point[0] += 1.0
        q, eta = point / np.sqrt(2.0 * point[0]), np.sqrt(of_s / of_y)
        return cls(q, eta, cls(q, eta, y).apply(y))

    def moved(self, s: Array, y: Array) -> Scaling:
        """The scaling of the points which are s and y in these scaled coordinates, without a detour through the
        unscaled ones (as CVXOPT updates its scalings)."""
        of_s, of_y = np.sqrt(determinant(s)), np.sqrt(determinant(y))
        if len(s) == 1:
            return Scaling(self.q, self.eta * np.sqrt(of_s / of_y), np.sqrt(of_s * of_y)[None])
        s, y, q = s / of_s, y / of_y, self.q
        gamma = np.sqrt(0.5 + 0.5 * np.einsum("ij,ij->j", s, y))
        along = np.einsum("ij,ij->j", q, s)
        across = q[0] * y[0] - np.einsum("ij,ij->j", q[1:], y[1:])
        mean, excess = (along + across) / (2.0 * gamma), along - across
        first = 2.0 * q[0] * mean - (s[0] + y[0]) / (2.0 * gamma)
        d = (q[0] * excess - 0.5 * s[0] + 0.5 * y[0]) / (first + 1.0)
        v = 2.0 * (0.5 * excess - d * mean) * q + 0.5 * (1.0 - d / gamma) * s + 0.5 * (1.0 + d / gamma) * y
        v[0] = gamma
        new = 2.0 * mean * q + (s - y) / (2.0 * gamma)
        new[0] -= s[0] / gamma - 1.0
        return Scaling(new / np.sqrt(2.0 * new[0]), self.eta * np.sqrt(of_s / of_y), v * np.sqrt(of_s * of_y))

    def apply(self, x: Array) -> Array:
        """W x."""
        return self.eta * _reflected(self.q, x)

    def undo(self, x: Array) -> Array:
        """W^-1 x."""
        return _reflected(self.mirrored, x) / self.eta

    def reduced(self, soft: Array | float = 0.0) -> tuple[Array, Array, Array]:
        """W^-2 = [[a, a b'], [a b, C]] with its first row eliminated: b (k, m), a (m,), and for D = C - a b b' what
        follows rows that give way, (D^-1 + soft I)^-1 (m, k, k).

        With p = 2 q_0 q - (1, 0): eta^2 W^-2 = 2 Jp (Jp)' - J.
        """
        first, rest = self._p()
        a = 2.0 * first * first - 1.0
        D = np.einsum("im,jm->mij", rest * (-2.0 / (a + soft / self.eta**2)), rest)  # 2 - 4 p_0^2 / a = -2 / a
        diagonal = np.arange(len(rest))
        D[:, diagonal, diagonal] += 1.0
        return -2.0 * first / a * rest, a / self.eta**2, D / (self.eta**2 + soft)[:, None, None]

    def inverse(self, soft: Array | float = 0.0) -> Array:
        """The inverse of that, (m, k, k), which has no differences: eta^2 (I + 2 p p') + soft I for the rest p of the
        p there."""
        rest = self._p()[1]
        out = np.einsum("im,jm->mij", 2.0 * rest, rest)
        diagonal = np.arange(len(rest))
        out[:, diagonal, diagonal] += 1.0 + (soft / self.eta**2)[:, None]
        return out * (self.eta**2)[:, None, None]

    def stays(self, x: Array, soft: Array) -> Array:
        """(I + soft D)^-1 x of x (k, m)."""
        first, rest = self._p()
        across, along = self.eta**2, self.eta**2 * (2.0 * first * first - 1.0)
        return (x + rest * (2.0 * soft / (along + soft) * np.einsum("im,im->m", rest, x))) * (across / (across + soft))

    def _p(self) -> tuple[Array, Array]:
        return 2.0 * self.q[0] ** 2 - 1.0, 2.0 * self.q[0] * self.q[1:]


def _reflected(q: Array, x: Array) -> Array:
    """2 q <q, x> - J x."""
    if len(x) == 1:  # q is 1
        return x
    out = q * (2.0 * np.einsum("ij,ij->j", q, x)) + x
    out[0] -= 2.0 * x[0]
    return out
