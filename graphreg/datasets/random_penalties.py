"""Random penalties with strengths that matter for the data, for `random_problem`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..declaring import declared
from ..terms.penalties import AbstractConstraint, AbstractOneSided, AbstractPenalty
from .newcomers import is_stiff, penalty_of
from .plain import CONSTRAINTS, Array
from .random_losses import Losses

PENALTIES = ("L1", "L2", "LInf", "SquaredL2", "Quadratic", "HuberNorm", "Ball", "Zero", "NonNegative", "Box")


def is_constraint(kind: str) -> bool:
    """Whether a penalty takes no strength."""
    return issubclass(declared(AbstractPenalty)[kind], AbstractConstraint)


def is_one_sided(kind: str) -> bool:
    """Whether a penalty stands on nodes only."""
    return issubclass(declared(AbstractPenalty)[kind], AbstractOneSided)


STRENGTHS = tuple(kind for kind in PENALTIES if not is_constraint(kind))


@dataclass(frozen=True)
class Drawn:
    """A penalty, its strength, and its parameter as a plain number or array."""

    kind: str
    penalty: AbstractPenalty
    strength: float
    parameter: Any = None

    @property
    def is_constraint(self) -> bool:
        return isinstance(self.penalty, AbstractConstraint)

    def scaled(self, term: Any) -> Any:
        return term if self.is_constraint else self.strength * term


class PenaltyDraw:
    """Draws penalties for the given losses.

    Parameters
    ----------
    rng : numpy.random.Generator
    losses : Losses
    factor : float
        Multiplies every strength.
    far : float
        The size of centres, in units of the coefficients behind the data.
    """

    def __init__(self, rng: np.random.Generator, losses: Losses, factor: float, far: float) -> None:
        self.rng, self.losses, self.factor, self.far = rng, losses, factor, far
        self.typical = float(np.median(losses.size))
        self.inner = np.zeros(len(losses.size))  # satisfies all constraints drawn so far, at every node

    def other(self, penalty: str) -> str:
        """A penalty with a strength, for what stands beside ``penalty``."""
        choice = [kind for kind in STRENGTHS if kind != penalty]
        return choice[int(self.rng.integers(len(choice)))]

    def center(self, kind: str, columns: Array | None) -> Array | None:
        """A center for a node penalty, the same at all nodes; none where the penalty is one-sided about 0."""
        k = len(self.inner) if columns is None else len(columns)
        size = self.losses.size if columns is None else self.losses.size[columns]
        return None if kind == "NonNegative" else self.far * size * self.rng.standard_normal(k)

    def __call__(
        self,
        kind: str,
        k: int,
        center: Array | None = None,
        columns: Array | None = None,
        strength: float | None = None,
    ) -> Drawn:
        """A penalty of the kind on k coordinates."""
        if center is not None and is_constraint(kind):
            self.inner[np.arange(len(self.inner)) if columns is None else columns] = center
        level = self.factor * 10.0 ** self.rng.uniform(-2, 2)
        force = level * max(self.losses.gradient, 1e-300)
        stiffness = level * self.losses.curvature if strength is None else strength
        if kind == "Quadratic":
            root = self._root(k)
            Q = root.T @ root
            return Drawn(kind, penalty_of(kind, (Q + Q.T) / 2), stiffness, root)
        if kind == "HuberNorm":
            delta = float(self.typical * 10.0 ** self.rng.uniform(-1.5, 1))
            return Drawn(kind, penalty_of(kind, delta), force / delta, delta)
        if kind in CONSTRAINTS:
            return self._constraint(kind, k)
        penalty = penalty_of(kind)
        return Drawn(kind, penalty, stiffness if is_stiff(penalty) else force)

    def _constraint(self, kind: str, k: int) -> Drawn:
        if kind == "Ball":
            radius = float(self.typical * 10.0 ** self.rng.uniform(-1.5, 1))
            return Drawn(kind, penalty_of(kind, radius), 1.0, radius)
        if kind == "Box":
            low, high = (self.typical * 10.0 ** self.rng.uniform(-1.5, 0.5, size=k) for _ in range(2))
            open_, side = self.rng.random(k) < 0.2, self.rng.random(k) < 0.5
            low, high = np.where(open_ & side, -np.inf, -low), np.where(open_ & ~side, np.inf, high)
            return Drawn(kind, penalty_of(kind, low, high), 1.0, (low, high))
        return Drawn(kind, penalty_of(kind), 1.0)

    def _root(self, k: int) -> Array:
        """R (rank, k) where Q = R'R has the largest eigenvalue 1, others over two decades, in half of the cases 0."""
        values = 10.0 ** self.rng.uniform(-2, 0, size=k)
        values[0] = 1.0
        if k > 1 and self.rng.random() < 0.5:
            values = values[: int(self.rng.integers(1, k))]
        V = np.linalg.qr(self.rng.standard_normal((k, k)))[0][:, : len(values)]
        return np.sqrt(values)[:, None] * V.T
