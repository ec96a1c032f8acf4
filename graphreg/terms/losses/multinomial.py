"""Multinomial logistic regression."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ...base.lazy import cp
from ...errors import DataError, TermError
from ..bounds import ULP, ends, shown
from ..records import Array, Coordinate, Descent, Notation, Statement, stated
from ..roots import increasing_root
from .base import AbstractSmoothLoss
from .loss import INSIDE
from .prices import PriceDomain
from .samples import classes_of, named_classes, one_hot

ROUNDING = 1e-14  # of the sum of a sample's prices over the classes


class SumsToZero(PriceDomain):
    """Prices that sum to zero over the classes: what a class gains, others lose. One that has left is coded as -1."""

    def span(self, b: Array) -> Array:
        return b - b.mean(axis=-1, keepdims=True)

    def step_to_boundary(self, start: Array, end: Array, y: Array) -> Array:
        level = np.abs(end.sum(axis=-1)) <= ROUNDING * y.shape[-1]
        return np.where(level, super().step_to_boundary(start, end, y), 0.0)

    def dependent(self, y: Array) -> Array:
        return np.argmax(y, axis=1)  # prices sum to zero over the classes

    def descent(self, y: Array) -> Descent:
        M, k = y.shape
        sample, other = np.nonzero(y == 0)
        own = np.argmax(y, axis=1)[sample]
        row = np.arange(len(sample))
        entries = np.concatenate([np.ones(len(row)), -np.ones(len(row))])
        columns = np.concatenate([sample * k + own, sample * k + other])
        falls = sp.csr_array((entries, (np.concatenate([row, row]), columns)), shape=(len(row), M * k))
        return Descent(falls, sample, np.full(len(row), True), np.zeros(0, dtype=int))

    def remains(self, y: Array, fallen: Array) -> tuple[Array, Array]:
        sample, other = np.nonzero(y == 0)
        left = y.copy()
        left[sample[fallen], other[fallen]] = -1.0
        kept = (left == 0).any(axis=1)  # a sample whose other classes are all gone costs nothing
        return kept, left[kept]


@dataclass(frozen=True, repr=False)
class MultinomialLoss(AbstractSmoothLoss):
    """Multinomial logistic regression: ``l(x; k) = log sum_j exp(x_j) - x_k``, one predictor per class.

    The parameters of a node are a (features x classes) matrix W_i with ``x_r' W_i`` for predictor, flattened by rows:
    coordinates are pairs (feature, class). With ``p = b + onehot(k)``, ``l*(b; k) = sum_j p_j log p_j`` for p in the
    simplex and +inf elsewhere: prices sum to zero over the classes. (No class is taken for a reference. Of the many W
    that give the same probabilities a ridge decides for one; where nothing decides, as for an unpenalised intercept,
    that is reported which adds up to zero over the classes, and over the nodes that edges tie together.)

    Parameters
    ----------
    data : NodeData
        With features and one target of any hashable values, and without offsets.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.
    classes : sequence, optional
        The classes in their order, where they are more than those of the data; default: those of the data, sorted.

    Examples
    --------
    >>> kinds = gr.NodeData.from_dict({"a": ([[1.0]] * 4, ["oak", "oak", "oak", "elm"])})
    >>> odds = gr.Problem(gr.MultinomialLoss(kinds)).solve().table()
    >>> odds.round(3)
    feature     x0
    class      elm    oak
    node
    a       -0.549  0.549
    """

    classes: Sequence[Hashable] | None = None
    coded: ClassVar[str] = "1 for the class of sample r, 0 for the others"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data.offset.any():
            raise DataError("MultinomialLoss takes no offset: the same number added to all classes changes nothing")

    @cached_property
    def levels(self) -> tuple[Hashable, ...]:
        """The classes, at least two."""
        given = classes_of(np.asarray(self.data.y)) if self.classes is None else named_classes(self.classes)
        if len(given) < 2 or len(set(given)) < len(given):
            raise TermError(f"MultinomialLoss needs at least two distinct classes, got {list(given)}; see classes=")
        return given

    def coding(self) -> dict[str, Any]:
        return {"classes": self.levels}

    def encode(self, target: Array) -> Array:
        return one_hot(target, self.levels, "MultinomialLoss")

    def design(self) -> tuple[Array | None, Array]:
        X, offset = super().design()
        return X, np.zeros((len(offset), len(self.levels)))

    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple((feature, level) for feature in self.data.features for level in self.levels)

    # A class that has left a sample (its predictor ran to -inf; see `remains`) is coded as -1.
    def _masked(self, x: Array, y: Array) -> Array:
        return np.where(y < 0, -np.inf, x)

    def value(self, x: Array, y: Array) -> Array:
        x = self._masked(x, y)
        top = x.max(axis=-1, keepdims=True)
        own = np.where(y > 0, x - top, 0.0).sum(axis=-1)
        return np.log(np.exp(x - top).sum(axis=-1)) - own

    def gradient(self, x: Array, y: Array) -> Array:
        return self._inside(_softmax(self._masked(x, y)), y)

    def curvature(self, x: Array, y: Array) -> Array:
        return _covariance(_softmax(self._masked(x, y)))

    def conjugate(self, b: Array, y: Array) -> Array:
        p = b + np.maximum(y, 0.0)
        inside = (p >= 0.0).all(axis=-1) & (np.abs(b.sum(axis=-1)) <= ROUNDING * y.shape[-1])
        inside &= ~((y < 0) & (b != 0.0)).any(axis=-1)
        p = np.where(inside[..., None], p, 0.5)
        return np.where(inside, (p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=-1), np.inf)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        # p_k + t q_k = c_k := v_k + t y_k with q = softmax(p) = exp(p - L): t q_k = omega(c_k - L + log t), Wright's
        # function, and the q_k sum to 1 at the root L of a convex decreasing function, found from its left by Newton.
        from scipy.special import wrightomega

        t = np.asarray(step, dtype=float)[..., None] * np.ones_like(v[..., :1])
        c = np.where(y < 0, -np.inf, v + t * np.maximum(y, 0.0))

        def shares(L: Array) -> Array:
            return wrightomega(c - L + np.log(t))

        def bend(L: Array) -> Array:
            q = shares(L)
            return (q / (1.0 + q)).sum(axis=-1, keepdims=True)

        start = c.max(axis=-1, keepdims=True) - t
        q = shares(increasing_root(lambda L: t - shares(L).sum(axis=-1, keepdims=True), bend, start))
        q = q * (t / q.sum(axis=-1, keepdims=True))
        return np.where(y < 0, v, v + t * np.maximum(y, 0.0) - q)

    def domain(self, y: Array) -> tuple[Array, Array]:
        own = np.maximum(y, 0.0)
        return -own, np.where(y < 0, 0.0, 1.0 - own)  # together with a sum of 0

    def clip(self, b: Array, y: Array) -> Array:
        p = np.where(y < 0, 0.0, np.maximum(b + np.maximum(y, 0.0), 1e-300))
        return self._inside(p / p.sum(axis=-1, keepdims=True), y)

    def _inside(self, p: Array, y: Array) -> Array:
        """The price p - y. That of the class itself is minus the sum of the others, free of cancellation."""
        others = np.where(y > 0, 0.0, p)
        others = others * (INSIDE / np.maximum(others.sum(axis=-1, keepdims=True), INSIDE))
        return np.where(y > 0, -others.sum(axis=-1, keepdims=True), others)

    prices = stated(SumsToZero)

    def conductance(self, b: Array, y: Array) -> Array:
        p = np.maximum(b + np.maximum(y, 0.0), 0.0)
        return _covariance(p / p.sum(axis=-1, keepdims=True))

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        # log sum exp(x_j - x_own) >= 0, larger where all others rise and x_own falls
        own = np.where(y > 0, r - spread, 0.0).sum(axis=1)[:, None]
        x = np.where(y < 0, -np.inf, np.where(y > 0, 0.0, r + spread - own))
        x = x + 4 * ULP * np.where(y == 0, np.abs(r) + np.abs(own), 0.0)
        first = np.argmax(x, axis=1)[:, None]
        top = np.take_along_axis(x, first, axis=1)
        others = np.exp(x - top)
        np.put_along_axis(others, first, 0.0, axis=1)
        return shown((top[:, 0] + np.log1p(others.sum(axis=1))) * (1.0 + (16 + x.shape[1]) * ULP), live=True)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        own = np.maximum(y, 0.0)
        p, spread = b + own, spread + ULP * own
        low, high = ends(p, spread)
        top = np.maximum(_entropy_bound(np.maximum(low, 0.0)), _entropy_bound(high))
        inside = (low >= 0.0).all(axis=1) & ~((y < 0) & (high != 0.0)).any(axis=1)
        value = top.sum(axis=1) + (16 + b.shape[1]) * ULP * np.abs(top).sum(axis=1)
        return np.where(inside, value, np.inf)

    def smoothness(self) -> float:
        return 0.5

    def response(self, x: Array) -> Array:
        """The probability of each class."""
        return _softmax(x)

    def classify(self, x: Array) -> Array:
        levels = np.fromiter(self.levels, dtype=object, count=len(self.levels))
        return levels[np.argmax(x, axis=-1)]

    def cvxpy(self, x: Any, y: Array) -> Any:
        if (y < 0).any():  # classes that have left: their predictors do not enter
            far = np.where(y < 0, -1.0, 0.0)
            rows = [cp.log_sum_exp(x[r, np.flatnonzero(far[r] == 0)]) for r in range(len(y))]
            return cp.hstack(rows) - cp.sum(cp.multiply(np.maximum(y, 0.0), x), axis=1)
        return cp.log_sum_exp(x, axis=1) - cp.sum(cp.multiply(y, x), axis=1)

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        gone = (y < 0).astype(float)
        domain = [cp.sum(b, axis=1) == 0] + ([cp.multiply(gone, b) == 0] if gone.any() else [])
        return [*domain, cp.sum(-cp.entr(b + np.maximum(y, 0.0)), axis=1)]

    def statement(self) -> Statement:
        return Statement("multinomial", len(self.levels))

    def stated_targets(self, y: Array) -> list[Any]:
        return y.argmax(axis=1).tolist()

    notation = Notation(
        "log sum(exp(%z)) - <%y, %z>",
        "%c h(%y + %u / %c) where h(p) = sum(p log p)",
        "sum(%u) = 0, %y + %u / %c >= 0",
        r"\log \textstyle\sum_k e^{(%z)_k} - \langle %y, %z \rangle",
        r"%c \, h(%y + %u / %c) \text{ where } h(p) = \textstyle\sum_k p_k \log p_k",
        r"\mathbf 1^\top %u = 0, \; %y + %u / %c \ge 0",
    )


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _covariance(p: Array) -> Array:
    """diag(p) - pp'."""
    out = -p[..., :, None] * p[..., None, :]
    k = np.arange(p.shape[-1])
    out[..., k, k] += p
    return out


def _entropy_bound(p: Array) -> Array:
    """Not less than p log p for p >= 0; the logarithm is trusted to 4 ulp."""
    value = p * np.log(np.where(p > 0.0, p, 1.0))
    return shown(value + 8 * ULP * np.abs(value), p > 0.0)
