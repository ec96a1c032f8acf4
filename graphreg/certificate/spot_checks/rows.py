"""The rows of a block as its term sees them, at weight 1: arguments, slopes, and what the term says of both."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array
from ...terms.losses import AbstractLoss, AbstractSmoothLoss
from ...terms.penalties import AbstractConstraint, AbstractPenalty, AbstractSmoothPenalty


@dataclass(frozen=True)
class AbstractRows(ABC):
    """Some rows of a block. ``x`` are differences or predictors at the primal point, ``b`` the flows or prices of the
    dual point over their weights; either is shaped (m, k) or (m,)."""

    checker: ClassVar[str]
    slopes: ClassVar[str]  # the letter of ``b`` in messages
    base: ClassVar[type[Any]]  # whose methods derive what a term does not write itself

    form: Form
    place: Array  # (m,), within the block
    x: Array
    b: Array
    weight: Array
    anchor: Array  # t, where bounds are of h(x - t) in place of f(x); 0 elsewhere
    reach: float  # how far the points of the block are from one another, or from where they are anchored

    # ---- what the term says ----------------------------------------------------------------------------------------
    @property
    @abstractmethod
    def term(self) -> Any: ...

    @property
    def undirected(self) -> bool:
        """Whether -x is as good an argument as x."""
        return False

    @abstractmethod
    def value(self, x: Array) -> Array: ...

    @abstractmethod
    def conjugate(self, b: Array) -> Array: ...

    @abstractmethod
    def prox(self, v: Array, step: float) -> Array: ...

    @abstractmethod
    def value_bound(self, r: Array, spread: Array) -> Array: ...

    @abstractmethod
    def conjugate_bound(self, b: Array, spread: Array) -> Array: ...

    @property
    @abstractmethod
    def gradient(self) -> Callable[[Array], Array] | None: ...

    @property
    @abstractmethod
    def project(self) -> Callable[[Array], Array] | None: ...

    @abstractmethod
    def convexity(self) -> float:
        """mu, where the term says that f - mu/2 ||.||^2 is convex."""

    @abstractmethod
    def root(self) -> tuple[Array, AbstractPenalty] | None:
        """R and h, where the term says that f(x) = h(Rx)."""

    # ---- how it is spoken of ---------------------------------------------------------------------------------------
    @abstractmethod
    def at(self, row: int) -> str:
        """Where a row is: the edge or the node."""

    @property
    def name(self) -> str:
        return self.term.called()

    def writes(self, method: str) -> bool:
        """Whether the term has a method of its own in place of the derived one."""
        return getattr(type(self.term), method) is not getattr(self.base, method)

    # ---- some of them ----------------------------------------------------------------------------------------------
    def take(self, rows: Array) -> Self:
        own = {name: getattr(self, name)[rows] for name in ("place", "x", "b", "weight", "anchor")}
        return replace(self, **own)

    def slopes_at(self, b: Array) -> Self:
        return replace(self, b=b)

    def known(self) -> Self:
        """The rows with finite points and a positive weight."""
        fine = np.isfinite(_flat(self.x)).all(axis=1) & np.isfinite(_flat(self.b)).all(axis=1) & (self.weight > 0.0)
        return self if fine.all() else self.take(np.flatnonzero(fine))


@dataclass(frozen=True)
class PenaltyRows(AbstractRows):
    block: EdgeBlock

    checker, slopes, base = "check_penalty", "u", AbstractPenalty

    @property
    def term(self) -> AbstractPenalty:
        return self.block.penalty

    @property
    def undirected(self) -> bool:
        return not self.block.ground

    def value(self, x: Array) -> Array:
        return self.term.value(x)

    def conjugate(self, b: Array) -> Array:
        return self.term.conjugate(b)

    def prox(self, v: Array, step: float) -> Array:
        return self.term.prox(v, step)

    def value_bound(self, r: Array, spread: Array) -> Array:
        return self.term.value_bound(r, spread)

    def conjugate_bound(self, b: Array, spread: Array) -> Array:
        return self.term.conjugate_bound(b, spread)

    @property
    def gradient(self) -> Callable[[Array], Array] | None:
        return self.term.gradient if isinstance(self.term, AbstractSmoothPenalty) else None

    @property
    def project(self) -> Callable[[Array], Array] | None:
        return self.term.project if isinstance(self.term, AbstractConstraint) else None

    def convexity(self) -> float:
        return self.term.strong_convexity()

    def root(self) -> tuple[Array, AbstractPenalty] | None:
        return self.term.composed()

    def at(self, row: int) -> str:
        labels, e = self.form.labels, self.place[row]
        tail = labels[self.block.tail[e]]
        if self.block.ground:
            return f"at the node {tail!r}"
        return f"on the edge ({tail!r}, {labels[self.block.head[e]]!r})"


@dataclass(frozen=True)
class LossRows(AbstractRows):
    block: SampleBlock

    checker, slopes, base = "check_loss", "b", AbstractLoss

    @property
    def term(self) -> AbstractLoss:
        return self.block.loss

    @property
    def y(self) -> Array:
        return self.block.y[self.place]

    def value(self, x: Array) -> Array:
        return self.term.value(x, self.y)

    def conjugate(self, b: Array) -> Array:
        return self.term.conjugate(b, self.y)

    def prox(self, v: Array, step: float) -> Array:
        return self.term.prox(v, step, self.y)

    def value_bound(self, r: Array, spread: Array) -> Array:
        return self.term.value_bound(r, spread, self.y)

    def conjugate_bound(self, b: Array, spread: Array) -> Array:
        return self.term.conjugate_bound(b, spread, self.y)

    @property
    def gradient(self) -> Callable[[Array], Array] | None:
        loss = self.term
        return (lambda x: loss.gradient(x, self.y)) if isinstance(loss, AbstractSmoothLoss) else None

    @property
    def project(self) -> None:
        return None

    def slopes_at(self, b: Array) -> Self:
        one = self.term.prices.dependent(self.y)
        if one is not None:  # exactly, as bounds have it: rounding leaves something of the sum
            at, b = np.arange(len(b)), b.copy()
            b[at, one] = 0.0
            b[at, one] = -b.sum(axis=1)
        return super().slopes_at(b)

    def convexity(self) -> float:
        return self.term.least_curvature() if isinstance(self.term, AbstractSmoothLoss) else 0.0

    def root(self) -> None:
        return None

    def at(self, row: int) -> str:
        r = self.place[row]
        target = np.array2string(np.asarray(self.block.y[r]), precision=6, threshold=6)
        return f"at the node {self.form.labels[self.block.node[r]]!r} (a sample with the coded target {target})"


def of_edges(form: Form, block: EdgeBlock, w: Array, u: Array) -> PenaltyRows:
    c = block.weight
    x = block.difference(w)
    with np.errstate(divide="ignore", invalid="ignore"):
        b = u / c[:, None]
    t = np.zeros(x.shape)
    return PenaltyRows(form, np.arange(len(c)), x, b, c, t, _reach(x, t), block).known()


def of_samples(form: Form, block: SampleBlock, w: Array, a: Array) -> LossRows:
    s, x, t = block.scale, block.predict(w), block.loss.anchor(block.y)
    with np.errstate(divide="ignore", invalid="ignore"):
        b = a / block.column(s)
    rows = LossRows(form, np.arange(len(s)), x, b, s, t, _reach(x, t), block).known()
    return rows.slopes_at(rows.b)


def _reach(x: Array, t: Array) -> float:
    if not len(x):
        return 1.0
    return float(min(np.ptp(x, axis=0).max(initial=0.0), np.abs(x - t).max(initial=0.0)) or 1.0)


def _flat(a: Array) -> Array:
    return a.reshape(len(a), math.prod(a.shape[1:]))
