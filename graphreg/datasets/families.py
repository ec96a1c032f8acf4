"""The families of losses that `random_problem` draws from: their targets, their terms, and how steep they are."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..base.declaring import declared, needs_no_options
from ..base.messages import near
from ..errors import DataError, TermError
from ..inputs import NodeData
from ..terms.losses import AbstractLoss, AbstractSmoothLoss
from ..terms.penalties import AbstractPenalty, AbstractSmoothPenalty, has_kink
from .plain import Array, PlainSamples

# ---- declared losses and penalties by name, those of the user among them ---------------------------------------------
TARGETS = {
    "squared": (-1.5, 0.0, 2.5),
    "poisson": (0.0, 3.0, 1.0),
    "logistic": (0.0, 1.0, 1.0),
    "gamma": (0.5, 3.0, 1.0),
}


def chosen(base: type[Any], given: str | type[Any] | None, drawn: str, known: tuple[str, ...]) -> str:
    """The name of what was asked for, or of what was drawn where nothing was."""
    name = drawn if given is None else str(getattr(given, "__name__", given))
    others = declared(base)
    if name not in known and (name not in others or not (isinstance(given, str) or others[name] is given)):
        what = "loss" if base is AbstractLoss else "penalty"
        own = f"your own is a class at the top level of a module that derives from {base.__name__}"
        raise TermError(f"there is no {what} {name!r} to draw; {near(name, [*known, *others])} ({own})")
    return name


def penalty_of(kind: str, *options: Any) -> AbstractPenalty:
    """The penalty, by default with its default options."""
    family: Any = declared(AbstractPenalty)[kind]
    if not options and not needs_no_options(family):
        raise TermError(f"random problems take default options, and {kind} has options without a default")
    return family(*options)


def is_stiff(penalty: AbstractPenalty) -> bool:
    """True where its strength compares with curvatures, as that of a square, and not with gradients."""
    return isinstance(penalty, AbstractSmoothPenalty) or not has_kink(penalty, 1)


def sample_of(family: str) -> AbstractLoss:
    """The loss on a few samples, for what does not depend on data."""
    return _tried(declared(AbstractLoss)[family])[1]


@cache
def _tried(family: type[AbstractLoss]) -> tuple[str, AbstractLoss]:
    refused = ""
    for known, y in TARGETS.items():
        data = NodeData.from_arrays(np.eye(3), np.array(y), [0, 0, 0])
        try:
            loss = family(data)
        except DataError as error:
            refused = str(error)
            continue
        if len(loss.coordinates()) == len(data.features):
            return known, loss
        refused = "it has several predictors per sample"
    raise TermError(
        f"random problems draw numbers, counts, amounts and two classes, and {family.__name__} takes none: {refused}"
    )


# ---- families that a seed chooses from -------------------------------------------------------------------------------
LOSSES = (
    *("squared", "logistic", "huber", "mean", "poisson"),
    *("quantile", "multinomial", "hinge", "squared hinge", "mixed"),
)
SCALAR = ("squared", "logistic", "huber", "poisson", "quantile", "hinge", "squared hinge")  # one predictor, a number
BINARY = ("logistic", "hinge", "squared hinge")
UNITLESS = ("poisson", "multinomial", "gamma", *BINARY)
KINKED = ("quantile", "hinge")  # piecewise linear
COUNTS = np.log(2e4)  # the largest predictor of a count


def drawn_like(family: str) -> str:
    """The family of the table that targets are drawn as: the family itself where it is in it."""
    return family if family in LOSSES else _tried(declared(AbstractLoss)[family])[0]


def is_unitless(family: str) -> bool:
    """True where predictors are of the size of 1, whatever the unit of targets: counts, amounts and classes. Of most of
    these losses the price 0 is on the boundary of dom l*, or beside its span."""
    return drawn_like(family) in UNITLESS


def is_kinked(family: str) -> bool:
    return family in KINKED if drawn_like(family) == family else not isinstance(sample_of(family), AbstractSmoothLoss)


@dataclass(frozen=True)
class FamilyParameters:
    """The numbers that a family is drawn with: Huber's delta, the quantile tau, the level of the counts, and the
    classes."""

    delta: float
    tau: float
    level: float
    classes: tuple[Hashable, ...]


def random_shape(rng: np.random.Generator, response: float, classes: int) -> FamilyParameters:
    """The parameters of all families; counts are few (many of them 0) or up to some ten thousand."""
    names: list[tuple[Hashable, ...]] = [("ash", "beech", "cedar", "dogwood"), (0, 1, 2, 3)]
    return FamilyParameters(
        float(response * 10.0 ** rng.uniform(-1, 0.5)),
        float(rng.uniform(0.05, 0.95)),
        float(rng.uniform(-1.5, 7.5)),
        names[int(rng.integers(2))][:classes],
    )


def targets(
    rng: np.random.Generator, family: str, eta: Array, response: float, offset: Array, shape: FamilyParameters
) -> Array:
    """Targets at the predictors ``eta``, of the size of ``response``; (m, k) for multinomial ones."""
    family = drawn_like(family)
    if family == "multinomial":
        noisy = 2.0 * eta / response + rng.gumbel(size=eta.shape)
        return np.argmax(noisy, axis=1).astype(float)
    if family == "poisson":
        return rng.poisson(np.exp(np.clip(eta / response + offset + shape.level, -50, COUNTS))).astype(float)
    if family == "gamma":
        return np.exp(np.clip(eta / response + offset, -50, COUNTS)) * rng.gamma(2.0, 0.5, len(eta))
    if family in BINARY:
        chance = 1.0 / (1.0 + np.exp(-np.clip(2.0 * eta / response + offset, -50, 50)))
        return np.where(rng.random(len(eta)) < chance, 1.0, -1.0)
    noise = rng.standard_normal(len(eta))
    if family in ("huber", "quantile"):
        noise = np.where(rng.random(len(eta)) < 0.2, 10.0 * noise, noise)
    return eta + offset + 0.3 * response * noise


def coded(rng: np.random.Generator, family: str, y: Array, shape: FamilyParameters) -> Array:
    """The targets as a user would have them: labels {-1, 1} or {0, 1}, names of classes, columns of numbers."""
    if family == "multinomial":
        names = np.empty(len(shape.classes), dtype=object)
        names[:] = shape.classes
        return names[y.astype(int)]
    if drawn_like(family) in BINARY:
        return (y + 1) / 2 if rng.random() < 0.5 else y
    return y[:, 0] if family == "mean" and y.shape[1] == 1 else y


def term(rng: np.random.Generator, family: str, data: NodeData, scale: Any, shape: FamilyParameters) -> AbstractLoss:
    """The loss; the classes are named where some were not seen, and otherwise perhaps."""
    options: dict[str, Any] = {"huber": {"delta": shape.delta}, "quantile": {"tau": shape.tau}}.get(family, {})
    if family == "multinomial":
        seen = set(np.asarray(data.y).tolist())
        named = len(seen) < len(shape.classes) or rng.random() < 0.5
        options = {"classes": shape.classes if named else None}
    name = f"{family.title().replace(' ', '')}Loss" if family in LOSSES else family  # "squared hinge": SquaredHingeLoss
    kind: Any = declared(AbstractLoss)[name]
    return kind(data, scale=scale, **options)


def gradient_at_zero(part: PlainSamples) -> Array:
    """The gradient of one node's loss at w = 0, flattened."""
    if part.X is None:
        return -(part.scale @ part.y)
    x, y = part.offset, part.y
    if drawn_like(part.family) != part.family:
        return part.X.T @ (part.scale * sample_of(part.family).gradient(x, y))
    match part.family:
        case "logistic":
            slope = -y / (1.0 + np.exp(y * x))
        case "huber":
            slope = np.clip(x - y, -part.delta, part.delta)
        case "poisson":
            slope = np.exp(x) - y
        case "quantile":
            slope = np.where(x > y, 1.0, 0.0) - part.tau
        case "hinge":
            slope = np.where(y * x < 1.0, -y, 0.0)
        case "squared hinge":
            slope = -y * np.maximum(1.0 - y * x, 0.0)
        case "multinomial":
            slope = 1.0 / part.classes - np.eye(part.classes)[y.astype(int)]
            return (part.X.T @ (part.scale[:, None] * slope)).ravel()
        case _:
            slope = x - y
    return part.X.T @ (part.scale * slope)


def typical_curvature(part: PlainSamples) -> float:
    """The mean over the coordinates of a typical second derivative of one node's loss."""
    if part.X is None:
        return float(part.scale.sum())
    each = np.ones(len(part.y))
    if drawn_like(part.family) != part.family:
        each = sample_of(part.family).typical_curvature(part.offset, part.y)
    if part.family in ("logistic", "multinomial"):
        each *= 0.25
    elif part.family == "poisson":
        each = np.maximum(np.exp(part.offset), part.y)
    elif part.family == "quantile":  # that of a kink smoothed over the size of the targets
        each /= np.abs(part.y - part.offset).mean() or 1.0
    return float(((part.scale * each) @ part.X**2).mean())
