"""What models of rows are made of: sizes, targets and weights of a setting, and the words of hand-written CVXPY."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np

import graphreg as gr
from graphreg.datasets.plain import Array
from graphreg.terms.losses import AbstractLoss


@dataclass(frozen=True)
class Setting:
    """How large a model is, and how wild: the decades over which weights are spread, what is added to targets, whether
    every penalty comes as two halves, and whether there is a node that nothing touches."""

    size: int = 40
    decades: float = 0.0
    shift: float = 0.0
    twice: bool = False
    lone: bool = False

    @property
    def side(self) -> int:
        """The side of a picture."""
        return max(1, int(self.size**0.5))

    @cached_property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(0)

    def noise(self, *shape: int) -> Array:
        return self.shift + self.rng.normal(size=shape)

    def bend(self) -> Array:
        n = self.size
        return self.shift + abs(np.arange(n) - 0.4 * n) / 5 + 0.2 * self.rng.normal(size=n)

    def weights(self, m: int) -> Array:
        return 10.0 ** (self.decades * self.rng.uniform(-0.5, 0.5, m))

    def wild(self, model: Any) -> Any:
        """The same model, as it is written in this setting."""
        if self.twice:
            terms = gr.Problem(model).model.terms
            model = sum((half for strength, term in terms for half in _halves(strength, term)), start=0)
        return model + gr.L1()(gr.w.across(nx.empty_graph(["alone"]))) if self.lone else model


@dataclass(frozen=True)
class Twin:
    """A model, and its objective and constraints in hand-written CVXPY."""

    model: Any
    objective: Any
    constraints: Sequence[Any] = ()

    def best(self) -> float:
        """What CVXPY and Clarabel find at tolerances of 1e-11."""
        tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
        problem: Any = cp.Problem(cp.Minimize(self.objective), [*self.constraints])
        return float(problem.solve(solver="CLARABEL", **tight))


Maker = Callable[[Setting], Twin]


def _halves(strength: Any, term: Any) -> list[Any]:
    if isinstance(term, AbstractLoss):
        return [strength * term]
    return [0.5 * (strength * term)] * 2 if term.takes_strength() else [term] * 2


def means(y: Array, nodes: Sequence[Hashable] | None = None, **options: Any) -> Any:
    """1/2 ||w_i - y_i||^2 at the nodes."""
    return gr.MeanLoss(gr.NodeData.from_arrays(None, y, range(len(y)) if nodes is None else nodes), **options)


def fit(x: Any, y: Any) -> Any:
    return cp.sum_squares(x - y) / 2


def l1(z: Any, c: Array) -> Any:
    """sum_r c_r |z_r|, of no rows 0."""
    return c @ cp.abs(z) if len(c) else 0.0


def l2(z: Any, c: Array) -> Any:
    """sum_r c_r ||z_r||, of no rows 0."""
    return c @ cp.norm(z, 2, axis=1) if len(c) else 0.0


def differences(n: int, order: int = 1) -> Array:
    return np.diff(np.eye(n), order, axis=0) if order < n else np.zeros((0, n))


def incidence(graph: Any) -> Array:
    """Rows w_i - w_j by edge (i, j), of nodes 0, 1, ..."""
    D = np.zeros((graph.number_of_edges(), len(graph)))
    for e, (i, j) in enumerate(graph.edges):
        D[e, i], D[e, j] = 1.0, -1.0
    return D
