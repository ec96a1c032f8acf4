"""Which Parameter a path varies, and over which strengths."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..certificate import Certificate
from ..errors import GraphregError, ModelError
from ..problem import Problem
from ..terms.calculus import Parameter
from ..terms.records import Array

DECADES = 3.0  # from strength_max down
HOW = "write gr.Parameter(0.1, name='lam') * gr.TotalVariation(...)"


def parameters_of(problem: Problem) -> list[Parameter]:
    """The Parameters of a model, in the order of its terms."""
    blocks = (*problem.form.samples, *problem.form.edges)
    found = {id(p): p for block in blocks if (p := block.strength.parameter) is not None}
    return list(found.values())


def parameter_of(problem: Problem, parameter: Any = None) -> Parameter:
    """The Parameter asked for, or the only one of the model.

    Raises
    ------
    ModelError
        Where the model has none, or more than one to choose from, or not the one that is given.
    """
    known = parameters_of(problem)
    if not known:
        raise ModelError(f"the model has no Parameter whose strength could vary; {HOW}")
    names = ", ".join(repr(each.name) for each in known)
    if parameter is None:
        if len(known) > 1:
            raise ModelError(f"the model has the Parameters {names}; say which one varies: parameter=...")
        return known[0]
    if not isinstance(parameter, Parameter):
        raise ModelError(f"parameter must be a gr.Parameter of the model, got {parameter!r}; the model has {names}")
    if not any(parameter is each for each in known):
        raise ModelError(f"{parameter!r} does not stand in the model, which has {names}")
    return parameter


def grid(problem: Problem, parameter: Parameter, strengths: Any) -> tuple[Array, Certificate | None]:
    """The strengths in growing order; and, where they come down from `strength_max`, what is known at that one."""
    if isinstance(strengths, Real) and not isinstance(strengths, bool):
        if not isinstance(strengths, Integral) or strengths < 2:
            raise ModelError(
                f"strengths must be a sequence, or how many there are to be (at least 2), got {strengths!r}"
            )
        return _downwards(problem, parameter, int(strengths))
    return given(strengths), None


def given(strengths: Any) -> Array:
    """Strengths as a user gives them, checked and sorted."""
    if isinstance(strengths, (str, bytes)) or not isinstance(strengths, Iterable):
        raise ModelError(f"strengths must be a sequence of positive numbers, or their number, got {strengths!r}")
    values: list[float] = []
    for place, each in enumerate(strengths):
        if isinstance(each, bool) or not isinstance(each, Real):
            raise ModelError(f"strengths must be positive numbers, got {each!r} at position {place}")
        if not (math.isfinite(each) and float(each) > 0):
            raise ModelError(f"strengths must be positive and finite, got {float(each)} at position {place}")
        values.append(float(each))
    if not values:
        raise ModelError("strengths is empty; give at least one, or how many there are to be")
    values.sort()
    for one, two in pairwise(values):
        if two <= one * (1.0 + 1e-12):
            raise ModelError(f"the strength {one:.17g} is given twice; give each once")
    return np.array(values)


def _downwards(problem: Problem, parameter: Parameter, count: int) -> tuple[Array, Certificate]:
    try:
        from ..theory.strength import strength_max

        most = strength_max(problem, parameter)
    except (GraphregError, ImportError) as error:
        raise ModelError(
            f"from which strength to come down is not known: {error}. Give the strengths themselves, for instance "
            "strengths=np.geomspace(1e-3, 1, 50)"
        ) from error
    top = float(most)
    if not (math.isfinite(top) and top > 0.0):
        raise ModelError(f"all nodes agree at every strength (strength_max is {top:g}); give the strengths themselves")
    values = np.geomspace(top * 10.0**-DECADES, top, count)
    values[-1] = top
    return values, most.certificate(1.0)
