"""Variance components of a tree of Gaussian coefficients by (restricted) maximum likelihood.

With V = Var(y) / sigma^2 and theta the generalised least squares estimate at the root, for M numbers and d coefficients

    -2 log L = (M - d) log(2 pi sigma^2) + log det V + log det X'V^-1 X + (y - X theta)'V^-1 (y - X theta) / sigma^2

is the restricted likelihood (REML; Patterson and Thompson 1971, Harville 1977), up to the constant log det X'X that
some add; the full one (ML) has M for M - d and no log det X'V^-1 X. sigma^2 is profiled out, and what is left is
minimised over the logarithms of the ratios rho_l = tau_l^2 / sigma^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..base.display import Suggesting
from ..errors import DataError
from ..oracles import minimiser
from ..terms import Array
from .recursion import CoefficientTree, Statistics, log_determinant, slopes, upward

STARTS = (-5.0, -1.0, 3.0)  # logarithms of the ratios, beside those at which a random part is as large as the noise
RANGE = 23.0  # of these logarithms: a factor of 1e10 either way
FLAT = 1e-9  # what -2 log L differs by where nothing is to be told
NO_NOISE = 1e-22  # of the sum of squares: residuals have the digits of the samples, also beside a large offset


@dataclass(frozen=True)
class Components(Suggesting):
    """The variance components of a hierarchical model.

    Attributes
    ----------
    noise : float
        sigma^2, the variance of a sample of precision 1.
    levels : tuple of float
        tau_l^2 per level from the leaves upwards; 0 where the likelihood is largest at the boundary.
    std_errors : tuple of float
        Of noise and levels, from the observed information; nan where they were given and at the boundary.
    method : {"reml", "ml", "given"}
    log_likelihood : float
        Restricted but for "ml".
    converged : bool
        Whether the likelihood is stationary there, and falls from a boundary into the inside.
    """

    noise: float
    levels: tuple[float, ...]
    std_errors: tuple[float, ...]
    method: str
    log_likelihood: float
    converged: bool

    @property
    def ratios(self) -> Array:
        """rho_l = tau_l^2 / sigma^2, (L,)."""
        return np.array(self.levels) / self.noise

    @property
    def boundary(self) -> tuple[int, ...]:
        """The levels, counted from 1, whose variance is 0."""
        return tuple(k + 1 for k, value in enumerate(self.levels) if value == 0)


@dataclass(frozen=True)
class Likelihood:
    """-2 log L of a tree, restricted or not, as a function of its variances."""

    data: Statistics
    tree: CoefficientTree
    restricted: bool = True

    @property
    def residual_df(self) -> int:
        """M - d, or M: what sigma^2 divides the residual sum of squares by."""
        return self.data.size - (self.data.A.shape[1] if self.restricted else 0)

    def at(self, ratios: Array) -> Evaluated:
        up = upward(self.data, self.tree, ratios)
        rest = self.residual_df * np.log(2.0 * np.pi) + up.logdet - self.data.log_precision
        if self.restricted:
            rest += log_determinant(up.A[-1:])
        slope = slopes(up, self.tree, restricted=self.restricted)
        return Evaluated(self.residual_df, up.residual, rest, ratios, *slope)


@dataclass(frozen=True)
class Evaluated:
    """A likelihood at some ratios: ``residual`` is y'V^-1 y about the root's estimate, ``rest`` what depends neither on
    it nor on sigma^2, ``traces`` and ``squares`` the derivatives of rest and of -residual by the ratios."""

    residual_df: int
    residual: float
    rest: float
    ratios: Array
    traces: Array
    squares: Array

    @property
    def noise(self) -> float:
        """The best sigma^2, residual / (M - d)."""
        return self.residual / self.residual_df

    def value(self, noise: float) -> float:
        """-2 log L."""
        return self.residual_df * np.log(noise) + self.residual / noise + self.rest

    def slope(self, noise: float) -> Array:
        """Its derivatives by the logarithms of sigma^2, tau_1^2, ..., (1 + L,)."""
        levels = self.ratios * self.by_ratio(noise)
        return np.concatenate([[self.residual_df - self.residual / noise - levels.sum()], levels])

    def by_ratio(self, noise: float) -> Array:
        """Its derivatives by the ratios, sigma^2 being held."""
        return self.traces - self.squares / noise


def estimate(likelihood: Likelihood) -> Components:
    """The components of largest likelihood; `DataError` where the data cannot tell them apart."""
    _check_levels(likelihood)
    data, tree = likelihood.data, likelihood.tree
    trace = float(np.einsum("njj->j", data.A)[tree.random].sum())
    # the ratio at which a random part of a sample is on average as large as its noise
    unit = np.full(len(tree.levels), data.size / trace if trace > 0 else np.nan)
    _check_noise(likelihood)
    active = np.full(len(unit), True)
    u, value = _minimum(likelihood, unit, active, [np.full(len(unit), start) for start in STARTS])
    while active.any():  # a level at a time onto its boundary, the smallest first
        smallest = int(np.argmin(np.where(active, u, np.inf)))
        fewer = active & (np.arange(len(u)) != smallest)
        without, at_zero = _minimum(likelihood, unit, fewer, [_with(u, smallest, -np.inf)])
        if at_zero > value + FLAT * (1.0 + 1e-3 * abs(value)):
            break
        if _minimum(likelihood, unit, fewer, [_with(u, smallest, 0.0)])[1] <= at_zero + 1e3 * FLAT:
            raise _not_apart(["the noise", f"level {smallest + 1}"])  # it may as well be as large as the noise
        active, u, value = fewer, without, at_zero
    return _components(likelihood, unit, active, u, value)


def as_given(likelihood: Likelihood, values: Array) -> Components:
    """The components that the user gave, noise first, with their likelihood."""
    noise, levels = float(values[0]), tuple(float(v) for v in values[1:])
    value = likelihood.at(values[1:] / noise).value(noise)
    return Components(noise, levels, (np.nan,) * len(values), "given", -value / 2.0, True)


# ---- minimising ------------------------------------------------------------------------------------------------------
def _minimum(likelihood: Likelihood, unit: Array, active: Array, starts: list[Array]) -> tuple[Array, float]:
    """The best minimum over the active u_l = log(rho_l / unit_l), from some starts; the others stay as they are in
    the first of these, -inf for a ratio of 0."""
    from scipy.optimize import minimize

    chosen = np.flatnonzero(active)

    def full(v: Array) -> Array:
        u = starts[0].copy()
        u[chosen] = v
        return u

    def both(v: Array) -> tuple[float, Array]:
        found = likelihood.at(unit * np.exp(full(v)))
        return found.value(found.noise), found.slope(found.noise)[1:][chosen]

    if not len(chosen):
        return full(np.zeros(0)), both(np.zeros(0))[0]
    bounds = [(-RANGE, RANGE)] * len(chosen)
    options = {"ftol": 1e-11, "gtol": 1e-6, "maxiter": 200}  # Newton's method does the rest
    runs = [minimize(both, s[chosen], jac=True, method="L-BFGS-B", bounds=bounds, options=options) for s in starts]
    best = min(runs, key=lambda run: float(run.fun))
    v = _polished(both, best.x)
    return full(v), min(float(best.fun), both(v)[0])


def _with(u: Array, place: int, value: float) -> Array:
    return np.where(np.arange(len(u)) == place, value, u)


def _polished(both: Callable[[Array], tuple[float, Array]], v: Array) -> Array:
    """Newton's method on the slope, while it lessens it: near its minimum the likelihood itself is all rounding."""

    def slope(x: Array) -> Array:
        return both(x)[1]

    def largest(x: Array) -> float:
        return float(np.abs(slope(x)).max())

    def step(x: Array) -> tuple[Array, float]:
        H = _hessian(slope, x)
        if np.linalg.eigvalsh(H)[0] <= 1e-8 * (1.0 + np.abs(H).max()):
            return x, np.nan
        new = np.clip(x - np.clip(np.linalg.solve(H, slope(x)), -1.0, 1.0), -RANGE, RANGE)
        return x - new, largest(x)

    return minimiser(largest, step, v, settled=0.0, shortest=0.5, steps=5)[0]


def _hessian(slope: Callable[[Array], Array], x: Array) -> Array:
    """The Hessian by central differences of exact derivatives."""
    h = 1e-4
    H = np.array([(slope(x + h * e) - slope(x - h * e)) / (2.0 * h) for e in np.eye(len(x))])
    return (H + H.T) / 2.0


# ---- what was found --------------------------------------------------------------------------------------------------
def _components(likelihood: Likelihood, unit: Array, active: Array, u: Array, value: float) -> Components:
    ratios = unit * np.exp(u)
    if (u[active] > RANGE - 1.0).any():
        raise DataError(NO_NOISE_LEFT)
    best = likelihood.at(ratios)
    noise = best.noise
    chosen = np.concatenate([[0], 1 + np.flatnonzero(active)])  # of the logarithms of noise and levels
    logs = np.log(np.concatenate([[noise], noise * np.where(active, ratios, 1.0)]))

    def slope(v: Array) -> Array:
        x = logs.copy()
        x[chosen] = v
        values = np.exp(x)
        return likelihood.at(np.where(active, values[1:], 0.0) / values[0]).slope(float(values[0]))[chosen]

    H, at = _hessian(slope, logs[chosen]), slope(logs[chosen])
    _check_told_apart(slope, logs[chosen], H, chosen)
    errors = np.full(len(logs), np.nan)
    definite = bool(np.linalg.eigvalsh(H)[0] > 0)
    if definite:
        errors[chosen] = np.exp(logs[chosen]) * np.sqrt(np.diag(2.0 * np.linalg.inv(H)))
    inwards = (best.by_ratio(noise) * unit)[~active]  # from a boundary
    rising = bool((inwards >= -1e-6 * likelihood.residual_df).all())
    converged = definite and bool(at @ np.linalg.solve(H, at) < 1e-8) and rising
    method = "reml" if likelihood.restricted else "ml"
    levels = tuple(float(v) for v in noise * ratios)
    return Components(noise, levels, tuple(errors.tolist()), method, -value / 2.0, converged)


# ---- what cannot be told apart ---------------------------------------------------------------------------------------
NO_NOISE_LEFT = (
    "the likelihood grows as the noise goes to 0 beside the variances of the levels: the nodes' own coefficients "
    "reproduce their samples, so that the noise cannot be estimated; give components=(noise, ...), more samples per "
    "node, or fewer random coefficients"
)


def _check_levels(likelihood: Likelihood) -> None:
    """Levels whose parents have one child each (with data) cannot be told from the level above."""
    holds = np.einsum("njj->n", likelihood.data.A) > 0
    if not likelihood.data.A[:, likelihood.tree.random][..., likelihood.tree.random].any():
        raise DataError("the random coefficients are 0 in all samples, so that their variance is not determined")
    top = len(likelihood.tree.levels)
    for k, (child, parent) in enumerate(likelihood.tree.levels, 1):
        with_data = holds[child]
        holds[parent[with_data]] = True
        if len(np.unique(parent[with_data])) < with_data.sum():
            continue
        if k < top:
            raise DataError(
                f"every cluster of level {k + 1} holds a single child with data, so that the variances of levels {k} "
                f"and {k + 1} cannot be told apart; leave that level of clusters out, or give components="
            )
        what = "node or cluster" if top > 1 else "node"
        raise DataError(
            f"there is a single {what} with data under the root, so that the variance of level {k} is not determined; "
            + ("give clusters=None, or components=" if top > 1 else "give components=, or data of more nodes")
        )


def _check_noise(likelihood: Likelihood) -> None:
    """One model for all that leaves no residuals has no variances to estimate."""
    data = likelihood.data
    whole = float(data.centre @ data.A.sum(axis=0) @ data.centre) + data.squares  # without the common centre
    if data.squares <= NO_NOISE * whole:
        raise DataError(
            "one model for all nodes reproduces every sample, so that there is no noise to estimate; give components="
        )


def _check_told_apart(slope: Callable[[Array], Array], logs: Array, H: Array, chosen: Array) -> None:
    """A direction along which the likelihood stays flat, however far one goes, is no estimate."""
    values, vectors = np.linalg.eigh(H)
    if values[0] > 1e-4:
        return
    v = vectors[:, 0]
    far = max(abs(float(slope(logs + t * v) @ v)) for t in (-5.0, -2.5, 2.5, 5.0))
    if far > 1e-6:
        return
    raise _not_apart(["the noise" if j == 0 else f"level {j}" for j in chosen[np.abs(v) > 0.1]])


def _not_apart(names: list[str]) -> DataError:
    return DataError(
        f"the data cannot tell the variances of {' and '.join(names)} apart: the likelihood is flat; give components=, "
        "more samples per node, or fewer random coefficients"
    )
