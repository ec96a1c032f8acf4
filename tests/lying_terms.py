"""Terms of a user's that break their laws: each method of an honest one, told wrongly in one way or another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from own_terms import Elastic, LogCosh, OwnEquality, OwnL1, OwnSquare

import graphreg as gr
from graphreg.terms.losses.samples import numeric

HONEST = {each.__name__: each() for each in (OwnL1, Elastic, OwnSquare, OwnEquality)}


@dataclass(frozen=True)
class Lie:
    """A lie about an honest term: ``told`` are functions of its own answer and of what it was asked. ``found`` says
    whether the iterates show it; the bounds are right all the same where it does not show."""

    name: str
    told: dict[str, Any] = field(default_factory=dict)
    found: bool = True
    of: str = "OwnL1"


def lying(lie: Lie):
    """A penalty or a loss class that tells it."""
    base = LogCosh if lie.of == "LogCosh" else OwnLeastSquares if lie.of == "OwnLeastSquares" else type(HONEST[lie.of])
    methods = {method: _told(getattr(base, method), told) for method, told in lie.told.items()}
    return type("Lying" + base.__name__, (base,), {"__module__": __name__, **methods})


def _told(method, told):
    return lambda self, *asked: told(method(self, *asked), *asked)


@dataclass(frozen=True)
class OwnLeastSquares(gr.AbstractQuadraticLoss):
    """1/2 (x - y)^2, by the methods of the base class."""

    notation = LogCosh.notation

    def encode(self, target):
        return numeric(target, "OwnLeastSquares")


def size(u):
    return np.abs(u).max(axis=1)


def inside(radius):
    return lambda answer, u: np.where(size(u) <= radius, 0.0, np.inf)


PENALTIES = [
    Lie("conjugate 300 too low", {"conjugate": lambda g, u: g - 300.0}),
    Lie("conjugate 1e-3 too low", {"conjugate": lambda g, u: g - 1e-3}),
    Lie("conjugate of minus infinity", {"conjugate": lambda g, u: np.where(g < np.inf, -np.inf, g)}),
    Lie("conjugate without a domain", {"conjugate": lambda g, u: np.zeros(len(u))}, found=False),
    Lie("domain three times as large", {"conjugate": inside(3.0)}, found=False),
    Lie("domain a thousandth larger", {"conjugate": inside(1.001)}, found=False),
    Lie("domain half as large", {"conjugate": inside(0.5)}, found=False),
    Lie("conjugate is nan", {"conjugate": lambda g, u: g * np.nan}),
    Lie("conjugate of the elastic net at half its height", {"conjugate": lambda g, u: g / 2}, of="Elastic"),
    Lie(
        "conjugate of the elastic net at twice its height", {"conjugate": lambda g, u: 2 * g}, found=False, of="Elastic"
    ),
    Lie("conjugate of the square a tenth too low", {"conjugate": lambda g, u: 0.9 * g}, of="OwnSquare"),
    Lie("value half as high", {"value": lambda f, z: f / 2}),
    Lie("value a thousandth lower", {"value": lambda f, z: 0.999 * f}),
    Lie("value a fifth higher", {"value": lambda f, z: 1.2 * f}, found=False),
    Lie("value too low by a constant", {"value": lambda f, z: f - 0.01}),
    Lie("value of zero", {"value": lambda f, z: 0.0 * f}),
    Lie("value is nan", {"value": lambda f, z: f * np.nan}),
    Lie("value of minus infinity far out", {"value": lambda f, z: np.where(f > 1.0, -np.inf, f)}),
    Lie("value not convex: its root", {"value": lambda f, z: np.sqrt(f)}),
    Lie("value not convex: capped", {"value": lambda f, z: np.minimum(f, 0.2)}),
    Lie("pulls half as strongly", {"gauge_at_zero": lambda t, u: t / 2}, found=False),
    Lie("prox of another step", {"prox": lambda p, v, t: HONEST["OwnL1"].prox(v, 0.5 * np.asarray(t))}, found=False),
    Lie("prox that moves nothing", {"prox": lambda p, v, t: v}, found=False),
    Lie("conjugate_bound too tight", {"conjugate_bound": lambda g, u, s: np.where(g < np.inf, g - 1e-3, g)}),
    Lie("conjugate_bound of the middle", {"conjugate_bound": lambda g, u, s: (u * u).sum(1) / 2}, of="OwnSquare"),
    Lie("value_bound too tight", {"value_bound": lambda f, z, s: 0.9 * f}),
    Lie("value_bound of the middle", {"value_bound": lambda f, z, s: HONEST["OwnL1"].value(z)}),
    Lie(
        "squares of another function",
        {"composed": lambda R, *_: (np.array([[2.0, 0.0]]), gr.SquaredL2())},
        of="OwnSquare",
    ),
    Lie("gradient twice as steep", {"gradient": lambda g, z: 2 * g}, found=False, of="OwnSquare"),
    Lie("more strongly convex than it is", {"strong_convexity": lambda mu: 3.0}, of="OwnSquare"),
    Lie(
        "a set that is larger than its support function says",
        {"value": lambda f, z: np.where(size(z) < 1.0, 0.0, f)},
        of="OwnEquality",
    ),
    Lie("a projection that stays outside", {"project": lambda p, z: z}, of="OwnEquality", found=False),
]
LOSSES = [
    Lie("conjugate 300 too low", {"conjugate": lambda g, b, y: g - 300.0}, of="LogCosh"),
    Lie("conjugate 1e-3 too low", {"conjugate": lambda g, b, y: g - 1e-3}, of="LogCosh"),
    Lie("conjugate a tenth too low", {"conjugate": lambda g, b, y: b * y + 0.9 * (g - b * y)}, of="LogCosh"),
    Lie("conjugate is nan", {"conjugate": lambda g, b, y: g * np.nan}, of="LogCosh"),
    Lie("conjugate without its target", {"conjugate": lambda g, b, y: g - b * y}, of="LogCosh"),
    Lie(
        "conjugate of half the square",
        {"conjugate": lambda g, b, y: b * b / 4 + b * y, "conjugate_bound": lambda g, b, s, y: g / 2},
        of="OwnLeastSquares",
    ),
    Lie("value half as high", {"value": lambda f, x, y: f / 2}, of="LogCosh"),
    Lie("value too low by a constant", {"value": lambda f, x, y: f - 0.01}, of="LogCosh"),
    Lie("value a fifth higher", {"value": lambda f, x, y: 1.2 * f}, found=False, of="LogCosh"),
    Lie("value not convex", {"value": lambda f, x, y: np.minimum(f, 0.3)}, of="LogCosh"),
    Lie("value is nan", {"value": lambda f, x, y: f * np.nan}, of="LogCosh"),
    Lie("gradient half as steep", {"gradient": lambda g, x, y: g / 2}, found=False, of="LogCosh"),
    Lie("prox of another step", {"prox": lambda p, v, t, y: v + 3 * (p - v)}, found=False, of="LogCosh"),
    Lie("conjugate_bound too tight", {"conjugate_bound": lambda g, b, s, y: g - 1e-3}, of="LogCosh"),
    Lie("value_bound too tight", {"value_bound": lambda f, r, s, y: 0.9 * f}, of="LogCosh"),
    Lie("more curved than it is", {"least_curvature": lambda m: 2.0}, of="OwnLeastSquares"),
    Lie("an anchor elsewhere", {"anchor": lambda t, y: y + 1.0}, of="OwnLeastSquares"),
]
