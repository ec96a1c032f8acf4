"""How parameters mix where losses are flat: W(k), read off from impulses at single nodes.

Consensus methods keep the mean of the nodes while they mix: every row of W sums to 1, and every column. A matrix whose
rows alone do (the plain mean of oneself and one's neighbours) leads to a weighted sum of the losses instead.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from ..problem import Problem
from ..terms import Array
from .algorithms import AbstractAlgorithm
from .course import run, unit_of
from .instances import nearly_flat
from .locality import hops

FLAT = 1e-9  # times the losses
IMPULSE = 1e-3
NODES = 40  # at which impulses are given, at most
EXPLAINED = 0.1  # of the sum of all gradients, that is left of it where weights explain a limit
ROUNDS = 3
SUMS = 1e-5  # by which a sum may miss 1
REACTS = 1e-2  # of the impulse that must arrive somewhere


@dataclass(frozen=True)
class Mass:
    """How much of an impulse is left over all nodes in the round in which it first spreads, by the label of the
    node; whether a constant stays one; and, where every node was given one, the weights of the mean (1 on average) that
    the mixing leads to."""

    kept: dict[Hashable, float]
    constant: bool
    weights: Array | None = None

    @property
    def even(self) -> bool:
        """Whether nothing is lost or gained."""
        return all(abs(each - 1.0) <= SUMS for each in self.kept.values())

    def explains(self, gradients: Array) -> bool:
        """Whether the gradients (n, d) at a limit, so weighted, add up to next to nothing. Methods that average by rows
        and correct by duals lead to no weighted mean, whatever becomes of an impulse."""
        left = np.inf if self.weights is None else float(np.linalg.norm(self.weights @ gradients))
        return left <= EXPLAINED * float(np.linalg.norm(gradients.sum(axis=0)))


def mass(algorithm: AbstractAlgorithm, problem: Problem, seed: int) -> Mass | None:
    """The mass of impulses; None where the algorithm takes no start, does not react to it, or keeps neither a constant
    nor a mass where losses are flat, so that nothing can be said of it."""
    labels = problem.form.labels[: problem.form.space.n_observed]
    flat = nearly_flat(problem, labels[-1], FLAT, FLAT)
    base, size = np.zeros((len(labels), problem.form.d)), IMPULSE * unit_of(problem.form)

    def response(start: Array) -> list[Array]:
        points = run(algorithm, flat, ROUNDS, start=start, seed=seed).points
        return [(w - v) / size for w, v in zip(points, still, strict=False)]

    still = run(algorithm, flat, ROUNDS, start=base, seed=seed).points
    constant = response(base + size)
    if not constant:
        return None
    kept: dict[Hashable, float] = {}
    columns: list[Array] = []
    for j in np.linspace(0, len(labels) - 2, min(NODES, len(labels) - 1)).astype(int).tolist():
        impulse = base.copy()
        impulse[j] += size
        spread = [
            w for w in response(impulse) if np.abs(np.delete(w, j, axis=0)).max(initial=0.0) > REACTS / len(labels)
        ]
        if spread:
            kept[labels[j]] = float(spread[0][:, 0].sum())
            columns.append(spread[0][:, 0])
    far = hops(problem.form)[len(labels) - 1, : len(labels)] > 1  # from the node whose losses are not flat
    weights = _weights(np.transpose(columns)) if len(columns) == len(labels) - 1 else None
    found = Mass(kept, bool(np.abs(constant[0][far] - 1.0).max(initial=0.0) <= SUMS), weights)
    return found if kept and (found.constant or found.even) else None


def _weights(columns: Array) -> Array:
    """The left eigenvector of a matrix with rows of sum 1, of which all columns but the last are given."""
    W = np.column_stack([columns, 1.0 - columns.sum(axis=1)])
    values, vectors = np.linalg.eig(W.T)
    found = np.real(vectors[:, np.argmin(np.abs(values - 1.0))])
    return found / found.mean()
