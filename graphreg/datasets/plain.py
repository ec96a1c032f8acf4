"""A problem once more, as plain numbers: one record per node with samples and one per edge.

It is written down by the generator beside the model, not derived from it, so that an answer to the model can be judged
by code that shares nothing with the library.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

CONSTRAINTS = ("Zero", "Ball", "NonNegative", "Box")


@dataclass(frozen=True)
class PlainSamples:
    """The samples of one node: ``sum_r scale_r l(x_r'w + offset_r; y_r)``, for means ``l(w; y_r)``.

    For multinomial samples w is a (p, classes) matrix, flattened by rows, and l takes ``x_r'w``, one number per class.

    Attributes
    ----------
    node : hashable
    family : str
        "squared", "logistic", "huber", "mean", "poisson", "quantile", "multinomial", "hinge" or "squared hinge".
    X : (m, p) array or None
        None for means. The column of the intercept is included.
    y : (m,) or (m, d) array
        The labels of two classes are -1 and 1, those of several classes 0, 1, ...
    scale, offset : (m,) array
        Every factor (strength, sample weight, mean or sum) is in ``scale``.
    delta, tau : float
        Of Huber's loss, and of the quantile loss.
    classes : int
        Of multinomial samples, seen at this node or not; else 1.
    """

    node: Hashable
    family: str
    X: Array | None
    y: Array
    scale: Array
    offset: Array
    delta: float = 1.0
    tau: float = 0.5
    classes: int = 1


@dataclass(frozen=True)
class PlainEdge:
    """One edge: ``weight * phi((w_tail - w_head)[columns])``, or ``(w_tail)[columns] - center`` to the ground.

    Attributes
    ----------
    tail : hashable
    head : hashable or None
        None is the ground.
    kind : str
        The penalty's name: L1, L2, LInf, SquaredL2, Quadratic, HuberNorm, Zero, Ball, NonNegative or Box.
    weight : float
        Strength times edge weight; 1 for constraints.
    columns, center : (k,) array
    parameter
        delta, radius or (low, high), as the penalty has it; for Quadratic a root R of Q = R'R, whose kernel is exact
        where that of Q is so up to rounding alone, which counts at points far away.
    """

    tail: Hashable
    head: Hashable | None
    kind: str
    weight: float
    columns: Array
    center: Array
    parameter: Any = None


@dataclass(frozen=True)
class PlainProblem:
    """``minimise sum of samples + sum of edges`` over w (n, d), the rows in the order of ``nodes``.

    Attributes
    ----------
    nodes : tuple of hashables
        Observed nodes, then latent ones.
    d : int
    samples : tuple of PlainSamples
    edges : tuple of PlainEdge
    inner : (d,) array
        The same at every node, this satisfies all constraints.
    size : (d,) array
        A typical size of each coordinate of w, for scaling.
    """

    nodes: tuple[Hashable, ...]
    d: int
    samples: tuple[PlainSamples, ...]
    edges: tuple[PlainEdge, ...]
    inner: Array
    size: Array

    def condition(self) -> float:
        """The largest over the smallest non-zero singular value of all samples stacked; 1 for means."""
        designs = [part.X for part in self.samples if part.X is not None]
        if not designs:
            return 1.0
        s = np.linalg.svd(np.concatenate(designs), compute_uv=False)
        return float(s[0] / s[s > 1e-13 * s[0]][-1])
