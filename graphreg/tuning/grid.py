"""The Parameter and the strengths of a path, and the grid of a cross-validation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from .. import checks
from ..base.display import Suggesting
from ..base.escaping import visible
from ..base.gate import too_much
from ..base.messages import shown
from ..certificate import Certificate
from ..errors import MethodError, ModelError, TermError, UnattainedError
from ..form import Form
from ..problem import Problem
from ..terms import Array, Parameter, positive
from ..theory import StrengthMax, parameter_meant, parameters_in, strength_bounds
from .warm import halving, restored

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
        return parameter_meant(parameter, known)
    if len(known) > 1:
        names = ", ".join(repr(each.name) for each in known)
        raise ModelError(f"the model has the Parameters {names}; say which one varies: parameter=...")
    return known[0]


def grid(problem: Problem, parameter: Parameter, strengths: Any) -> tuple[Array, Certificate | None]:
    """The strengths in growing order; and, where they come down from `strength_max`, what is known at the top."""
    if isinstance(strengths, Iterable) and not isinstance(strengths, (str, bytes)):
        return checked_strengths(strengths), None
    COUNT(strengths, "strengths")
    values, most = downwards(problem, parameter, int(strengths))
    return values, most.certificate(1.0)


def checked_strengths(strengths: Iterable[Any]) -> Array:
    """Strengths as a user gives them, checked and sorted."""
    if isinstance(strengths, Mapping):
        raise ModelError(
            f"strengths are numbers, as [0.1, 1.0], got {shown(strengths)}; parameter= names the Parameter"
        )
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


# ---- the strengths among which one is chosen: the Parameters of a model, and the points of a grid over them ----------
POINTS = 20  # of a grid that nobody gave


@dataclass(frozen=True)
class Grid(Suggesting):
    """Points (values of the Parameters), in the order in which they were given."""

    parameters: tuple[Parameter, ...]
    points: tuple[tuple[float, ...], ...]

    @property
    def names(self) -> list[str]:
        return [parameter.name for parameter in self.parameters]

    def named(self, k: int) -> dict[str, float]:
        return dict(zip(self.names, self.points[k], strict=True))

    @contextmanager
    def at(self, k: int) -> Generator[None]:
        """The Parameters at the k-th point; afterwards they have their own values again."""
        with restored(self.parameters):
            self.assign(k)
            yield

    def assign(self, k: int) -> None:
        for parameter, value in zip(self.parameters, self.points[k], strict=True):
            parameter.value = value

    def along(self, k: int) -> float | None:
        """The strength of the k-th point on a path; None where several Parameters vary."""
        return self.points[k][0] if len(self.parameters) == 1 else None

    @cached_property
    def order(self) -> list[int]:
        """The order in which the points are solved: from the largest values down, so that neighbours in this order are
        neighbours in the first values; of one Parameter by halves."""
        down = sorted(range(len(self.points)), key=lambda k: self.points[k], reverse=True)
        return [down[place] for place in halving(len(down))] if len(self.parameters) == 1 else down

    def regularisation(self, form: Form) -> list[float]:
        """The strength of regularisation at each point: the logarithm of the geometric mean of its values, where the
        value of a Parameter on losses counts as its inverse. `TermError` where a Parameter is on losses and on
        penalties."""
        on_losses = {id(block.strength.parameter) for block in form.samples}
        on_edges = {id(block.strength.parameter) for block in form.edges}
        signs: list[float] = []
        for parameter in self.parameters:
            if id(parameter) in on_losses & on_edges:
                raise TermError(
                    f"the Parameter {parameter.name!r} scales a loss and a penalty, so that no value of it is the "
                    "stronger regularisation; use rule='min', or one Parameter for each"
                )
            signs.append(-1.0 if id(parameter) in on_losses else 1.0)
        return [float(np.dot(signs, np.log(point))) / len(signs) for point in self.points]


def grid_of(problem: Problem, given: Any) -> Grid:
    """The grid that a user means; whatever is wrong with it is named.

    Parameters
    ----------
    given : sequence of numbers, mapping, sequence of mappings, whole number or None
        Values for the only Parameter; values by Parameter (or its name), of which all combinations are meant; one
        mapping per point; so many strengths from where all nodes agree down, `POINTS` where there is no number.
    """
    known = some_parameters(problem)
    if given is None or checks.is_whole(given):
        return _from_largest(problem, known, POINTS if given is None else int(given))
    if isinstance(given, Mapping):
        return _product(given, known)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ModelError(f"grid must be numbers, a mapping from Parameters to numbers, or None, got {given!r}")
    values = list(given)
    if not values:
        raise ModelError("the grid is empty; give at least one strength")
    if any(isinstance(value, Mapping) for value in values):
        return _listed(values, known)
    return Grid((_only(known, "a grid of numbers"),), _distinct([(_value(v, known[0]),) for v in values], known[:1]))


def _from_largest(problem: Problem, known: Sequence[Parameter], count: int) -> Grid:
    """Strengths from one at which all nodes agree down, evenly spaced on a logarithmic scale."""
    if count < 1:
        raise ModelError(f"a grid has at least one strength, got {count}")
    parameter = _only(known, "without a grid, strengths")
    values, _ = downwards(problem, parameter, count)
    return Grid((parameter,), tuple((value,) for value in values[::-1].tolist()))


def _only(known: Sequence[Parameter], what: str) -> Parameter:
    if len(known) > 1:
        names = ", ".join(visible(parameter.name) for parameter in known)
        raise ModelError(
            f"{what} are for the only Parameter of a model, and this one has {len(known)} ({names}); write "
            f"grid={{{known[0].name!r}: [...], ...}}"
        )
    return known[0]


def _product(given: Mapping[Any, Any], known: Sequence[Parameter]) -> Grid:
    """All combinations of the values of each Parameter."""
    if not given:
        raise ModelError("the grid is empty; give the values of at least one Parameter")
    columns: dict[Parameter, list[Any]] = {}
    for key, values in given.items():
        parameter = _found(key, known, columns)
        if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
            raise ModelError(f"the values of {parameter.name!r} must be a sequence of numbers, got {values!r}")
        columns[parameter] = list(values)
        if not columns[parameter]:
            raise ModelError(f"the grid has no values for {parameter.name!r}; give at least one, or leave it out")
    return _listed([dict(zip(columns, point, strict=True)) for point in itertools.product(*columns.values())], known)


def _listed(values: Sequence[Any], known: Sequence[Parameter]) -> Grid:
    """One mapping per point, all with the same Parameters."""
    rows: list[dict[Parameter, float]] = []
    for value in values:
        if not isinstance(value, Mapping) or not value:
            raise ModelError(f"each point of the grid must be a mapping from Parameters to numbers, got {value!r}")
        row: dict[Parameter, float] = {}
        for key, number in value.items():
            parameter = _found(key, known, row)
            row[parameter] = _value(number, parameter)
        rows.append(row)
        for parameter in rows[0].keys() ^ row.keys():
            raise ModelError(
                f"only some points of the grid have a value for {parameter.name!r}; give it at all of them"
            )
    parameters = tuple(rows[0])
    return Grid(parameters, _distinct([tuple(row[p] for p in parameters) for row in rows], parameters))


def _found(key: Any, known: Sequence[Parameter], taken: Iterable[Parameter]) -> Parameter:
    """The Parameter that a key of the grid means: itself, or one of that name."""
    found = parameter_meant(key, known)
    if any(parameter is found for parameter in taken):
        raise ModelError(f"the grid names the Parameter {found.name!r} twice; leave one of them")
    return found


def _value(value: Any, parameter: Parameter) -> float:
    return positive(value.item() if isinstance(value, np.generic) else value, f"a grid value of {parameter.name!r}")


def _distinct(points: Sequence[tuple[float, ...]], parameters: Sequence[Parameter]) -> tuple[tuple[float, ...], ...]:
    names = [parameter.name for parameter in parameters]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise ModelError(
                f"two Parameters of the grid are called {name!r}; name each: gr.Parameter(value, name=...)"
            )
    for k, point in enumerate(points):
        if point in points[:k]:
            shown = ", ".join(f"{name} = {value:g}" for name, value in zip(names, point, strict=True))
            raise ModelError(f"the grid has the point {shown} twice; leave one of them")
    return tuple(points)
