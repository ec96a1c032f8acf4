"""Random data and losses for `random_problem`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import NodeData
from ..terms.losses._base import AbstractLoss
from ..terms.losses.huber import HuberLoss
from ..terms.losses.logistic import LogisticLoss
from ..terms.losses.squared import MeanLoss, SquaredLoss
from ._plain import Array, PlainSamples

LOSSES = ("squared", "logistic", "huber", "mean", "mixed")
FAMILIES = {"mixed": ("squared", "logistic", "huber")}


@dataclass(frozen=True)
class Losses:
    """A sum of losses with what penalties must know of it.

    Attributes
    ----------
    model : Model
    plain : tuple of PlainSamples
    names : tuple of str
        The coordinates of w.
    intercept, logistic : bool
    gradient, curvature : float
        The largest norm of a node's gradient at 0; the median over nodes of the mean curvature per coordinate.
    size : (d,) array
        The typical size of each coordinate of the w behind the data.
    """

    model: Any
    plain: tuple[PlainSamples, ...]
    names: tuple[str, ...]
    intercept: bool
    logistic: bool
    gradient: float
    curvature: float
    size: Array


@dataclass(frozen=True)
class _Source:
    """What the data of all nodes are drawn from."""

    rng: np.random.Generator
    d: int
    response: float
    truth: dict[Hashable, Array]
    columns: Array  # (d,) scales
    means: Array  # (d,) in units of the scales
    collinear: float | None

    def design(self, m: int, intercept: bool) -> Array:
        X = self.means + self.rng.standard_normal((m, self.d))
        if self.collinear is not None and self.d >= 2 + intercept:
            X[:, -1] = X[:, -2] + self.collinear * self.rng.standard_normal(m)
        X = X * self.columns
        if intercept:
            X[:, 0] = 1.0
        return X


def random_losses(rng: np.random.Generator, loss: str, labels: list[Hashable], d: int, traits: list[str]) -> Losses:
    """Losses of the kind on random data at some of the nodes."""
    intercept = loss != "mean" and d >= 2 and ("unscaled intercept" in traits or rng.random() < 0.4)
    offsets = loss != "mean" and rng.random() < 0.25
    weighted = rng.random() < 0.4
    response = 1.0 if loss == "logistic" else 10.0 ** rng.uniform(-4, 4)
    source = _source(rng, labels, d, response, traits)
    counts = _counts(rng, labels, d)
    families = FAMILIES.get(loss, (loss,))
    owner = rng.integers(len(families), size=len(labels))
    names = _names(loss, d, intercept)
    model: Any = 0
    plain: list[PlainSamples] = []
    for k, family in enumerate(families):
        chosen = {label: m for label, m, f in zip(labels, counts, owner, strict=True) if m > 0 and f == k}
        if chosen:
            term, parts = _one_family(source, family, chosen, names, (intercept, offsets, weighted))
            model, plain = model + term, plain + parts
    traits += ["intercept"] * intercept + ["offsets"] * offsets + ["sample weights"] * weighted
    traits += ["nodes without data"] * (min(counts) == 0)
    curvature = [_curvature(part) for part in plain]
    gradient = max(float(np.linalg.norm(_gradient_at_zero(part))) for part in plain)
    logistic = any(part.family == "logistic" for part in plain)
    size = response / source.columns / (1.0 + np.abs(source.means))
    return Losses(model, tuple(plain), names, intercept, logistic, gradient, float(np.median(curvature)), size)


def _names(loss: str, d: int, intercept: bool) -> tuple[str, ...]:
    if loss == "mean":
        return ("y",) if d == 1 else tuple(f"y{j}" for j in range(d))
    return ("intercept",) * intercept + tuple(f"x{j}" for j in range(d - intercept))


def _counts(rng: np.random.Generator, labels: list[Hashable], d: int) -> list[int]:
    counts = rng.integers(int(rng.random() < 0.4), 2 * d + 1, size=len(labels))
    if rng.random() < 0.3:
        counts[rng.random(len(labels)) < 0.3] = 0
    if not counts.any():
        counts[0] = d
    return counts.tolist()


def _source(rng: np.random.Generator, labels: list[Hashable], d: int, response: float, traits: list[str]) -> _Source:
    columns = 10.0 ** rng.uniform(-2, 2, size=d) if "column scales" in traits else np.ones(d)
    means = rng.choice([-1, 1], size=d) * 10.0 ** rng.uniform(0, 2, size=d)
    means = means if "unscaled intercept" in traits else np.zeros(d)
    collinear = float(10.0 ** rng.uniform(-8, -3)) if "collinear columns" in traits else None
    centers = rng.standard_normal((int(rng.integers(1, 4)), d))
    spread = 10.0 ** rng.uniform(-2, 0)
    truth: dict[Hashable, Array] = {}
    for label in labels:
        w = centers[rng.integers(len(centers))] + spread * rng.standard_normal(d)
        truth[label] = response * w / columns / (1.0 + np.abs(means))
    return _Source(rng, d, response, truth, columns, means, collinear)


def _one_family(
    source: _Source, family: str, counts: dict[Hashable, int], names: tuple[str, ...], options: tuple[bool, bool, bool]
) -> tuple[Any, list[PlainSamples]]:
    rng, (intercept, offsets, weighted) = source.rng, options
    delta = float(source.response * 10.0 ** rng.uniform(-1, 0.5))
    strength = float(10.0 ** rng.uniform(-1, 1)) if rng.random() < 0.3 else 1.0
    scale, factors = _scale(rng, list(counts))
    unit = 1.0 if family == "logistic" else source.response
    parts: list[PlainSamples] = []
    rows: list[tuple[Array | None, Array, Array, Array]] = []
    for label, m in counts.items():
        X = None if family == "mean" else source.design(m, intercept)
        offset = unit * rng.standard_normal(m) if offsets else np.zeros(m)
        y = _targets(source, family, label, X, offset, m)
        weight = 10.0 ** rng.uniform(-1.5, 1.5, size=m) if weighted else np.ones(m)
        rows.append((X, y, offset, weight))
        s = strength * weight * (1.0 / weight.sum() if factors is None else factors[label])
        parts.append(PlainSamples(label, family, X, y, s, offset, delta))
    node = [label for label, m in counts.items() for _ in range(m)]
    designs = [X[:, int(intercept) :] for X, *_ in rows if X is not None]
    X = np.concatenate(designs) if designs else None
    y, offset, weight = (np.concatenate(column) for column in zip(*(row[1:] for row in rows), strict=True))
    coded = (y + 1) / 2 if family == "logistic" and rng.random() < 0.5 else y
    features = None if family == "mean" else list(names[int(intercept) :])
    data = NodeData.from_arrays(
        X,
        coded[:, 0] if family == "mean" and y.shape[1] == 1 else coded,
        node,
        weights=weight if weighted else None,
        offset=offset if offsets else None,
        features=features,
        intercept=intercept,
    )
    term = _term(family, data, scale, delta)
    return (term if strength == 1.0 else strength * term), parts


def _scale(rng: np.random.Generator, labels: list[Hashable]) -> tuple[Any, dict[Hashable, float] | None]:
    """What is passed as ``scale=`` and the factor per node that it means; None for the mean."""
    kind = rng.integers(5)
    if kind == 2:
        return "sum", dict.fromkeys(labels, 1.0)
    if kind == 3:
        number = float(10.0 ** rng.uniform(-1, 1))
        return number, dict.fromkeys(labels, number)
    if kind == 4:
        each = {label: float(10.0 ** rng.uniform(-1.5, 1.5)) for label in labels}
        return each, each
    return "mean", None


def _targets(source: _Source, family: str, label: Hashable, X: Array | None, offset: Array, m: int) -> Array:
    rng, w = source.rng, source.truth[label]
    if X is None:
        return w + 0.5 * source.response * rng.standard_normal((m, len(w)))
    eta = X @ w
    if family == "logistic":
        eta = 2.0 * eta / source.response + offset
        return np.where(rng.random(m) < 1.0 / (1.0 + np.exp(-np.clip(eta, -50, 50))), 1.0, -1.0)
    noise = rng.standard_normal(m)
    if family == "huber":
        noise = np.where(rng.random(m) < 0.2, 10.0 * noise, noise)
    return eta + offset + 0.3 * source.response * noise


def _term(family: str, data: NodeData, scale: Any, delta: float) -> AbstractLoss:
    if family == "huber":
        return HuberLoss(data, scale=scale, delta=delta)
    return {"squared": SquaredLoss, "logistic": LogisticLoss, "mean": MeanLoss}[family](data, scale=scale)


def _gradient_at_zero(part: PlainSamples) -> Array:
    if part.X is None:
        return -(part.scale @ part.y)
    if part.family == "logistic":
        slope = -part.y / (1.0 + np.exp(part.y * part.offset))
    else:
        slope = part.offset - part.y
        slope = np.clip(slope, -part.delta, part.delta) if part.family == "huber" else slope
    return part.X.T @ (part.scale * slope)


def _curvature(part: PlainSamples) -> float:
    """The mean over the coordinates of the loss's second derivative where it is largest."""
    if part.X is None:
        return float(part.scale.sum())
    return float((part.scale @ part.X**2).mean()) * (0.25 if part.family == "logistic" else 1.0)
