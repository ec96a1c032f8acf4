"""Wild problems: data that no solver likes, to see whether a certificate breaks.

A seed decides everything. Loss, penalty, structure and the first trait cycle with the seed, so that 150 successive
seeds have every trait with every loss that it fits; the rest is drawn.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from graphreg import checks
from graphreg.datasets.builder import Builder, Spread, connected
from graphreg.datasets.families import chosen, drawn_like
from graphreg.datasets.plain import Array, PlainProblem
from graphreg.datasets.random_problems import LOSSES, PENALTIES, STRUCTURES, Choice
from graphreg.problem import Problem
from graphreg.terms import Consensus, Model
from graphreg.terms.losses import AbstractLoss
from graphreg.terms.penalties import AbstractPenalty

from .losses import EXPONENTS, REAL, TALL, wild_losses

__all__ = ["WILD", "WildProblem", "wild_problem"]

EVERY = (*LOSSES, "gamma")  # and what losses of amounts are drawn like
TABLES = tuple(loss for loss in EVERY if loss != "mean")  # losses with a design
# a trait, and the losses that it fits
WILD: dict[str, tuple[str, ...]] = {
    "column scales": EVERY,
    "shifted targets": (*REAL, "mixed"),
    "large offsets": tuple(loss for loss in TABLES if loss not in EXPONENTS),
    "near-collinear columns": TABLES,
    "dummies and intercept": TABLES,
    "wild weights": EVERY,
    "duplicate rows": EVERY,
    "zero column": TABLES,
    "many coordinates": EVERY,
    "one sample": EVERY,
    "dollars and rates": TABLES,
    "far centres": EVERY,
    "extreme strengths": EVERY,
    "separable": ("logistic", "multinomial", "poisson", "hinge", "squared hinge", "mixed"),
    "exact fit": (*REAL, "mixed"),
}
ALL_STRUCTURES = (*STRUCTURES, "consensus")
FEW_ROUNDS = (1, 2, 5)


@dataclass(frozen=True, eq=False, repr=False)
class WildProblem:
    """A wild problem, as a model and, written down independently of it, as plain numbers; and how to ask for it.

    Attributes
    ----------
    seed : int
    loss, penalty, structure : str
        From ``LOSSES``, ``PENALTIES`` and ``ALL_STRUCTURES``.
    traits : tuple of str
        The keys of ``WILD`` that were drawn come first.
    model : Model
    plain : PlainProblem
    gap : float
        1e-10 to 1e-2: the relative gap to ask for.
    rounds : int or None
        1, 2, 5, or as many as it takes.
    from_zero : bool
        Whether to pass w = 0 as the start.
    optimum : Array or None
        The exact minimiser, (n, d) in the order of the plain nodes, where it is known.
    """

    seed: int
    loss: str
    penalty: str
    structure: str
    traits: tuple[str, ...]
    model: Model
    plain: PlainProblem
    gap: float
    rounds: int | None
    from_zero: bool
    optimum: Array | None = None

    def __repr__(self) -> str:
        return f"<WildProblem {self.description}>"

    @cached_property
    def problem(self) -> Problem:
        """The model, ready to be solved."""
        return Problem(self.model)

    @property
    def wild(self) -> tuple[str, ...]:
        """The traits that make it wild."""
        return tuple(trait for trait in self.traits if trait in WILD)

    @property
    def description(self) -> str:
        """The problem, in a line."""
        size = f"{len(self.plain.nodes)} nodes x {self.plain.d}, {len(self.plain.edges)} edges"
        what = f"wild seed {self.seed}: {self.loss} x {self.penalty}, {self.structure}; {size}"
        return "; ".join([what, ", ".join(dict.fromkeys(self.traits))])


class WildBuilder(Builder):
    """A builder that knows consensus problems, too."""

    def build(self, penalty: str, structure: str) -> None:
        if structure != "consensus":
            super().build(penalty, structure)
            return
        self.draw.other(penalty)  # as every structure draws one
        self._consensus()
        self._node_penalty("SquaredL2" if penalty == "Zero" else penalty, False)
        if self.rng.random() < self.spread.ridge:
            self._ridge()

    def _consensus(self) -> None:
        """A consensus on a connected graph, in half of the cases on some of the features alone."""
        import networkx as nx

        columns = self._columns(self.rng.random() < 0.5)
        order = self.rng.permutation(len(self.labels))
        graph = nx.Graph()
        graph.add_nodes_from(self.labels)
        graph.add_edges_from((self.labels[i], self.labels[j]) for i, j in connected(self.rng, order))
        self.model = self.model + Consensus(graph, self._features(columns))
        zero = self.draw("Zero", self.d if columns is None else len(columns))
        self._add(graph.edges(data="weight", default=1.0), zero, columns)


def wild_problem(seed: int, *, loss: Choice = None, penalty: Choice = None, tall: bool = False) -> WildProblem:
    """A wild problem; the same for the same seed.

    One to three of: column scales log-uniform over 1e-12 to 1e12; targets shifted by 1e3 to 1e9; offsets of 1e3 to 1e9
    (near 1 where predictors are exponents); columns that are collinear to 1e-10; dummies beside an intercept; weights
    of samples, edges and nodes over 12 decades; every row twice; a column of zeros; up to 2000 coordinates without a
    ridge; one sample in all; a table with an intercept, an output in dollars and a rate; centres of 1e3 to 1e9 times
    the coefficients; strengths 1e-8 to 1e8 times the usual; classes that a hyperplane separates; targets without noise.

    Parameters
    ----------
    seed : int
        Non-negative.
    loss, penalty : str or type, optional
        As in `random_problem`.
    tall : bool
        Whether every node with samples has many more of them than columns, as another draw.
    """
    checks.seed(seed, "seed")
    rng = np.random.default_rng([seed, 16 if tall else 2])  # 0 and 1 are the streams of `random_problem`
    a, b = divmod(seed, len(LOSSES))
    loss = chosen(AbstractLoss, loss, LOSSES[b], LOSSES)
    penalty = chosen(AbstractPenalty, penalty, PENALTIES[a % len(PENALTIES)], PENALTIES)
    structure = ALL_STRUCTURES[a // len(PENALTIES) % len(ALL_STRUCTURES)]
    traits = _traits(rng, loss, seed + a)
    if tall:
        traits = [TALL, *(trait for trait in traits if trait not in ("one sample", "many coordinates"))]
    n, d = _shape(rng, loss, traits)
    if "far centres" in traits and structure not in ("node penalty", "consensus"):
        structure = "node penalty"
    labels: list[Hashable] = [f"node {i}" for i in rng.permutation(n)]
    losses = wild_losses(rng, loss, labels, d, traits)
    builder = WildBuilder(rng, labels, losses, traits, _spread(rng, traits))
    builder.build(penalty, structure)
    gap, rounds = float(10.0 ** rng.uniform(-10, -2)), [*FEW_ROUNDS, None, None, None][int(rng.integers(6))]
    from_zero = bool(rng.random() < 0.3)
    model = losses.model + builder.model
    return WildProblem(seed, loss, penalty, structure, tuple(traits), model, builder.plain(), gap, rounds, from_zero)


def _traits(rng: np.random.Generator, loss: str, turn: int) -> list[str]:
    """The trait whose turn it is, or the next that fits the loss, and up to two others."""
    names = list(WILD)
    first = next(name for k in range(len(names)) if drawn_like(loss) in WILD[name := names[(turn + k) % len(names)]])
    fitting = [name for name in names if drawn_like(loss) in WILD[name] and name != first]
    others = rng.choice(fitting, size=int(rng.integers(3)), replace=False).tolist()
    return [first, *others]


def _shape(rng: np.random.Generator, loss: str, traits: list[str]) -> tuple[int, int]:
    """Nodes and features."""
    if "many coordinates" in traits:
        d = int(rng.integers(2, 6 if loss == "multinomial" else 13))
        return int(rng.integers(200, 2001)) // (d * (3 if loss == "multinomial" else 1)), d
    return int(np.exp(rng.uniform(np.log(2), np.log(16)))), int(rng.integers(1, 7))


def _spread(rng: np.random.Generator, traits: list[str]) -> Spread:
    factor = 10.0 ** rng.uniform(-8, 8) if "extreme strengths" in traits else 1.0
    far = 10.0 ** rng.uniform(3, 9) if "far centres" in traits else 1.0
    ridge = 0.0 if {"many coordinates", "separable"} & set(traits) else 0.25
    decades = 6.0 if "wild weights" in traits else 1.5
    return Spread(factor, decades, ridge, 1.0 if "far centres" in traits else 0.4, far)
