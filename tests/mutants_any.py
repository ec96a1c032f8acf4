"""Broken copies of any loss or penalty, made from the term itself: for terms that have none of their own."""

from __future__ import annotations

import numpy as np
from mutant import mutant


def broken_loss(loss):
    """The slips that are made in every loss."""
    cls, y = type(loss), loss.targets()
    bounded = np.isinf(loss.conjugate(np.full_like(y, 1e6), y)).any() or np.isinf(loss.conjugate(y * 0 - 1e6, y)).any()
    ways = {
        "value is 1% off": ("gradient fenchel young", {"value": lambda s, x, y: 1.01 * cls.value(s, x, y)}),
        "gradient is 1% off": ("gradient differences", {"gradient": lambda s, x, y: 1.01 * cls.gradient(s, x, y)}),
        "curvature is 10% off": ("curvature", {"curvature": lambda s, x, y: 1.1 * cls.curvature(s, x, y)}),
        "prox takes twice the step": (
            "prox fenchel young",
            {"prox": lambda s, v, step, y: cls.prox(s, v, 2 * np.asarray(step), y)},
        ),
        "conjugate is less by 1": ("gradient fenchel young", {"conjugate": lambda s, b, y: cls.conjugate(s, b, y) - 1}),
    }
    if bounded:
        forgets = {"conjugate": lambda s, b, y: cls.conjugate(s, cls.clip(s, b, y), y)}
        ways["conjugate forgets its domain"] = ("fenchel young everywhere", forgets)
    return [mutant(f"{cls.__name__}: {name}", loss, law, **methods) for name, (law, methods) in ways.items()]


def broken_penalty(penalty):
    """The slips that are made in every penalty."""
    cls = type(penalty)
    less = {"conjugate": lambda s, u: cls.conjugate(s, u) - 1}
    ways = {"conjugate is less by 1": ("prox fenchel young", less)}
    if np.isinf(penalty.conjugate(1e6 * np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0]]))).any():
        forgets = {"conjugate": lambda s, u: cls.conjugate(s, penalty.domain.clip(u))}
        ways["conjugate forgets its domain"] = ("fenchel young everywhere", forgets)
    else:
        twice = {"prox": lambda s, v, step: cls.prox(s, v, 2 * np.asarray(step))}
        ways["prox takes twice the step"] = ("prox fenchel young", twice)
    return [mutant(f"{cls.__name__}: {name}", penalty, law, **methods) for name, (law, methods) in ways.items()]
