"""Random problems of every kind: the published generator of the soundness study.

A seed decides everything. The pair (loss, penalty) and the structure cycle with the seed, so that 1000 successive seeds
have every pair ten times and every pair in every structure twice; everything else is drawn.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import checks
from ..base.display import Suggesting
from ..problem import Problem
from ..terms import Model
from ..terms.losses import AbstractLoss
from ..terms.penalties import AbstractPenalty
from .builder import PENALTIES, Builder, Spread
from .families import LOSSES, chosen
from .plain import PlainProblem
from .random_losses import LOSSES_WITH_KINKS, random_losses

__all__ = ["LOSSES", "LOSSES_WITH_KINKS", "PENALTIES", "RandomProblem", "random_problem"]

Choice = str | type[Any] | None  # a loss or penalty, or what the seed chooses
STRUCTURES = ("one graph", "two graphs", "hierarchy", "feature subset", "node penalty")
HARD = ("collinear columns", "column scales", "unscaled intercept", "extreme strengths")


@dataclass(frozen=True, eq=False, repr=False)
class RandomProblem(Suggesting):
    """A random problem, as a model and, written down independently of it, as plain numbers.

    Attributes
    ----------
    seed : int
    hard : bool
    loss, penalty, structure : str
        From ``LOSSES``, ``PENALTIES`` and ``STRUCTURES``.
    traits : tuple of str
        What else was drawn: "intercept", "isolated nodes", "ridge", ...
    condition : float
        The condition number of the data, see `PlainProblem.condition`.
    model : Model
    plain : PlainProblem
    """

    seed: int
    hard: bool
    loss: str
    penalty: str
    structure: str
    traits: tuple[str, ...]
    condition: float
    model: Model
    plain: PlainProblem

    def __repr__(self) -> str:
        return f"<RandomProblem {self.description}>"

    @cached_property
    def problem(self) -> Problem:
        """The model, ready to be solved."""
        return Problem(self.model)

    @property
    def description(self) -> str:
        """The problem in a line."""
        n, m = len(self.plain.nodes), len(self.plain.edges)
        size = f"{n} nodes x {self.plain.d}, {m} edges, condition {self.condition:.2g}"
        kind = "hard " if self.hard else ""
        what = f"{kind}seed {self.seed}: {self.loss} x {self.penalty}, {self.structure}; {size}"
        return "; ".join([what, ", ".join(dict.fromkeys(self.traits))])


def random_problem(seed: int, hard: bool = False, *, loss: Choice = None, penalty: Choice = None) -> RandomProblem:
    """A random problem; the same for the same arguments.

    Nodes 2 to 60, features 1 to 8, samples per node 0 to twice the features, responses of size 1e-4 to 1e4, weights
    over three decades, strengths log-uniform over four decades around the largest local gradient at 0 (for squared
    penalties around the typical local curvature). Counts are 0 to some ten thousand, quantiles 0.05 to 0.95, classes 2
    to 4 with features x classes at most 16; nodes may lack some of the classes. The mixed problems have three families
    of losses, on disjoint nodes.

    Parameters
    ----------
    seed : int
        Non-negative.
    hard : bool
        Whether the data have collinear columns, column scales of 1e-2 to 1e2 or an unscaled intercept, or the
        strengths are 1e-4 or 1e3 times as large: at least one of them.
    loss, penalty : str or type, optional
        What stands in for what the seed chooses: one of ``LOSSES`` and ``PENALTIES``, or any other loss of one
        predictor and any penalty that is declared, in the library or by you, as a class or by its name; with its
        default options. A seed alone chooses from the tables: its problem stays what it is when terms are added.

    Raises
    ------
    TermError
        Where there is no such loss or penalty, or none of the targets that are drawn suits it.

    Examples
    --------
    >>> found = gr.datasets.random_problem(1)
    >>> found.problem.solve().status
    'certified'
    """
    checks.seed(seed, "seed")
    rng = np.random.default_rng([seed, int(hard)])
    loss = chosen(AbstractLoss, loss, LOSSES[seed % len(LOSSES)], LOSSES)
    penalty = chosen(AbstractPenalty, penalty, PENALTIES[seed // len(LOSSES) % len(PENALTIES)], PENALTIES)
    structure = STRUCTURES[seed // (len(LOSSES) * len(PENALTIES)) % len(STRUCTURES)]
    traits = ([trait for trait in HARD if rng.random() < 0.5] or [HARD[int(rng.integers(len(HARD)))]]) if hard else []
    n, d = int(np.exp(rng.uniform(np.log(2), np.log(61)))), int(rng.integers(1, 9))
    kind, order = rng.integers(3), rng.permutation(n).tolist()
    labels: list[Hashable] = [i if kind == 0 else f"node {i}" if kind == 1 else ("block", i) for i in order]
    losses = random_losses(rng, loss, labels, d, traits)
    factor = 10.0 ** rng.choice([-4, 3]) if "extreme strengths" in traits else 1.0
    builder = Builder(rng, labels, losses, traits, Spread(factor, ridge=0.5 if losses.one_sided else 0.25))
    builder.build(penalty, structure)
    plain = builder.plain()
    model = losses.model + builder.model
    return RandomProblem(seed, hard, loss, penalty, structure, tuple(traits), plain.condition(), model, plain)
