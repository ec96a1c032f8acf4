"""Which Parameter a path varies, and over which strengths."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from .. import checks
from ..certificate import Certificate
from ..errors import MethodError, ModelError, UnattainedError
from ..memory import too_much
from ..problem import Problem
from ..terms import Array, Parameter, positive
from ..theory import StrengthMax, meant, parameters_in, strength_bounds

DECADES = 3.0  # from strength_max down
ABOVE = 0.05  # of its top, which may lie above strength_max by so much: a third of a step where there are 50
COUNT = replace(checks.whole(2), wanted="a sequence of positive numbers, or how many there are to be (at least 2)")


def some_parameters(problem: Problem) -> list[Parameter]:
    """The Parameters of a model that scale something, at least one."""
    known = parameters_in(problem)
    if known:
        return known
    idle = next((s.parameter.name for s, _ in problem.model.terms if s.parameter is not None), None)
    if idle is not None:
        raise ModelError(f"the Parameter {idle!r} scales a term without edges, so that it changes nothing; add edges")
    raise ModelError(
        "the model has no Parameter that could vary; write lam = gr.Parameter(0.1, name='lam') and lam * term in place "
        'of the number; in a model file, parameter = "lam" beside the strength of a term'
    )


def parameter_of(problem: Problem, parameter: Any = None) -> Parameter:
    """The Parameter asked for, by itself or by its name, or the only one of the model.

    Raises
    ------
    ModelError
        Where the model has none, or more than one to choose from, or not the one that is given.
    """
    known = some_parameters(problem)
    if parameter is not None:
        return meant(parameter, known)
    if len(known) > 1:
        names = ", ".join(repr(each.name) for each in known)
        raise ModelError(f"the model has the Parameters {names}; say which one varies: parameter=...")
    return known[0]


def grid(problem: Problem, parameter: Parameter, strengths: Any) -> tuple[Array, Certificate | None]:
    """The strengths in growing order; and, where they come down from `strength_max`, what is known at the top."""
    if isinstance(strengths, Iterable) and not isinstance(strengths, (str, bytes)):
        return given(strengths), None
    COUNT(strengths, "strengths")
    values, most = downwards(problem, parameter, int(strengths))
    return values, most.certificate(1.0)


def given(strengths: Iterable[Any]) -> Array:
    """Strengths as a user gives them, checked and sorted."""
    values = sorted(positive(each, f"the strength at position {place}") for place, each in enumerate(strengths))
    if not values:
        raise ModelError("strengths is empty; give at least one, or how many there are to be")
    for one, two in pairwise(values):
        if two <= one * (1.0 + 1e-12):
            raise ModelError(f"the strength {one:.17g} is given twice; give each once")
    return np.array(values)


def downwards(problem: Problem, parameter: Parameter, count: int) -> tuple[Array, StrengthMax]:
    """So many strengths, evenly spaced on a logarithmic scale, up to an upper bound of `strength_max`, and that one."""
    each = problem.form.n * problem.form.d + problem.form.differences  # parameters and flows
    if said := too_much(count * each, f"the answers at {count:,} strengths"):
        raise ModelError(f"strengths: {said}; ask for fewer")
    try:
        most = strength_bounds(problem, parameter, ABOVE)
    except (ModelError, MethodError, UnattainedError) as error:
        raise ModelError(
            f"without strengths they come down from strength_max, which is not known here: {error}. Give the strengths "
            "to try: strengths=np.geomspace(1e-3, 1, 20) for instance, --strengths 0.01,0.1,1 on the command line"
        ) from error
    if most.ended == "interrupted":
        raise KeyboardInterrupt  # whoever presses Ctrl-C means all that is still to come
    top = float(most)
    if not (math.isfinite(top) and top > 0.0):
        raise ModelError(f"all nodes agree at every strength (strength_max is {top:g}); give the strengths to try")
    values = np.geomspace(top * 10.0**-DECADES, top, count) if count > 1 else np.array([top])
    values[-1] = top
    return values, most
