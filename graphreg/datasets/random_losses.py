"""Random data and losses for `random_problem`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..inputs import NodeData
from .families import (
    SCALAR,
    FamilyParameters,
    coded,
    gradient_at_zero,
    is_kinked,
    is_unitless,
    random_shape,
    targets,
    term,
)
from .families import typical_curvature as curvature_of
from .plain import Array, PlainSamples

LOSSES_WITH_KINKS = "losses with kinks"  # the trait of problems whose losses are not all smooth
MOST = 16  # coordinates of a multinomial problem: features times classes


Rows = tuple[Array | None, Array, Array, Array]  # of one node: design, targets, offsets and weights


@dataclass(frozen=True)
class Losses:
    """A sum of losses with what penalties must know of it.

    Attributes
    ----------
    model : Model
    plain : tuple of PlainSamples
    names : tuple of str
        The features.
    classes : int
        How many coordinates of w a feature has: one, or one per class.
    intercept : bool
    one_sided : bool
        Whether a ridge may be needed for the minimum to be attained.
    gradient, curvature : float
        The largest norm of a node's gradient at 0; the median over nodes of the mean curvature per coordinate.
    size : (d,) array
        The typical size of each coordinate of the w behind the data.
    """

    model: Any
    plain: tuple[PlainSamples, ...]
    names: tuple[str, ...]
    classes: int
    intercept: bool
    one_sided: bool
    gradient: float
    curvature: float
    size: Array

    @staticmethod
    def of(
        model: Any, plain: list[PlainSamples], names: tuple[str, ...], classes: int, intercept: bool, size: Array
    ) -> Losses:
        """The losses with what follows from the samples of all nodes."""
        gradient = max(float(np.linalg.norm(gradient_at_zero(part))) for part in plain) or 1.0
        curvature = float(np.median([curvature_of(part) for part in plain])) or 1.0
        one_sided = any(is_unitless(part.family) for part in plain)
        return Losses(model, tuple(plain), names, classes, intercept, one_sided, gradient, curvature, size)


def data_of(
    rng: np.random.Generator, family: str, rows: dict[Hashable, Rows], shape: FamilyParameters, names: tuple[str, ...]
) -> NodeData:
    """The samples of a family as a user would have them."""
    node = [label for label, (_, y, *_) in rows.items() for _ in range(len(y))]
    intercept = names[:1] == ("intercept",)
    designs = [X[:, int(intercept) :] for X, *_ in rows.values() if X is not None]
    y, offset, weight = (np.concatenate(column) for column in zip(*(row[1:] for row in rows.values()), strict=True))
    return NodeData.from_arrays(
        np.concatenate(designs) if designs else None,
        coded(rng, family, y, shape),
        node,
        weights=weight if (weight != 1.0).any() else None,
        offset=offset if offset.any() else None,
        features=None if family == "mean" else list(names[int(intercept) :]),
        intercept=intercept,
    )


@dataclass(frozen=True)
class _Source:
    """The source that the data of all nodes are drawn from."""

    rng: np.random.Generator
    d: int
    response: float
    truth: dict[Hashable, Array]  # (d,), or (d, classes)
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
    """Losses of the kind on random data at some of the nodes; ``d`` features, fewer where there are many classes."""
    families = tuple(rng.choice(SCALAR, size=3, replace=False).tolist()) if loss == "mixed" else (loss,)
    classes = int(rng.integers(2, 5)) if loss == "multinomial" else 1
    d = min(d, MOST // classes)
    intercept = loss != "mean" and d >= 2 and ("unscaled intercept" in traits or rng.random() < 0.4)
    offsets = loss not in ("mean", "multinomial") and rng.random() < 0.25
    weighted = rng.random() < 0.4
    response = _response(rng, families)
    source = _source(rng, labels, (d, classes), response, traits)
    counts = _counts(rng, labels, d)
    owner = rng.integers(len(families), size=len(labels))
    names = names_of(loss, d, intercept)
    model: Any = 0
    plain: list[PlainSamples] = []
    for k, family in enumerate(families):
        chosen = {label: m for label, m, f in zip(labels, counts, owner, strict=True) if m > 0 and f == k}
        if chosen:
            loss_term, parts = _one_family(source, family, chosen, names, (intercept, offsets, weighted), classes)
            model, plain = model + loss_term, plain + parts
    traits += ["intercept"] * intercept + ["offsets"] * offsets + ["sample weights"] * weighted
    traits += ["nodes without data"] * (min(counts) == 0) + [f"{classes} classes"] * (classes > 1)
    traits += [LOSSES_WITH_KINKS] * any(is_kinked(part.family) for part in plain)
    size = np.repeat(response / source.columns / (1.0 + np.abs(source.means)), classes)
    return Losses.of(model, plain, names, classes, intercept, size)


def _response(rng: np.random.Generator, families: tuple[str, ...]) -> float:
    """The size of targets and predictors: 1 where targets have no unit, and near 1 where predictors are exponents."""
    if len(families) == 1:
        return 1.0 if is_unitless(families[0]) else 10.0 ** rng.uniform(-4, 4)
    return 10.0 ** rng.uniform(-1, 0.5) if "poisson" in families else 10.0 ** rng.uniform(-4, 4)


def names_of(loss: str, d: int, intercept: bool) -> tuple[str, ...]:
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


def _source(
    rng: np.random.Generator, labels: list[Hashable], shape: tuple[int, int], response: float, traits: list[str]
) -> _Source:
    d, classes = shape
    columns = 10.0 ** rng.uniform(-2, 2, size=d) if "column scales" in traits else np.ones(d)
    means = rng.choice([-1, 1], size=d) * 10.0 ** rng.uniform(0, 2, size=d)
    means = means if "unscaled intercept" in traits else np.zeros(d)
    collinear = float(10.0 ** rng.uniform(-8, -3)) if "collinear columns" in traits else None
    centers = rng.standard_normal((int(rng.integers(1, 4)), *shape))
    spread = 10.0 ** rng.uniform(-2, 0)
    truth: dict[Hashable, Array] = {}
    for label in labels:
        w = centers[rng.integers(len(centers))] + spread * rng.standard_normal(shape)
        w = response * w / (columns * (1.0 + np.abs(means)))[:, None]
        truth[label] = w[:, 0] if classes == 1 else w
    return _Source(rng, d, response, truth, columns, means, collinear)


def _one_family(
    source: _Source,
    family: str,
    counts: dict[Hashable, int],
    names: tuple[str, ...],
    options: tuple[bool, bool, bool],
    classes: int,
) -> tuple[Any, list[PlainSamples]]:
    rng, (intercept, offsets, weighted) = source.rng, options
    shape = random_shape(rng, source.response, classes)
    strength = float(10.0 ** rng.uniform(-1, 1)) if rng.random() < 0.3 else 1.0
    scale, factors = _scale(rng, list(counts))
    unit = 1.0 if is_unitless(family) else source.response
    parts: list[PlainSamples] = []
    rows: dict[Hashable, Rows] = {}
    for label, m in counts.items():
        X = None if family == "mean" else source.design(m, intercept)
        offset = unit * rng.standard_normal(m) if offsets else np.zeros(m)
        w = source.truth[label]
        if X is None:
            y = w + 0.5 * source.response * rng.standard_normal((m, len(w)))
        else:
            y = targets(rng, family, X @ w, source.response, offset, shape)
        weight = 10.0 ** rng.uniform(-1.5, 1.5, size=m) if weighted else np.ones(m)
        rows[label] = X, y, offset, weight
        s = strength * weight * (1.0 / weight.sum() if factors is None else factors[label])
        parts.append(PlainSamples(label, family, X, y, s, offset, shape.delta, shape.tau, classes))
    loss = term(rng, family, data_of(rng, family, rows, shape, names), scale, shape)
    return (loss if strength == 1.0 else strength * loss), parts


def _scale(rng: np.random.Generator, labels: list[Hashable]) -> tuple[Any, dict[Hashable, float] | None]:
    """The ``scale=`` of a loss and the factor per node that it means; None for the mean."""
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
