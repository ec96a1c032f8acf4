"""The strengths among which one is chosen: the Parameters of a model, and the points of a grid over them."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import checks
from ..errors import ModelError, TermError
from ..escaping import visible
from ..form import Form
from ..problem import Problem
from ..terms import Parameter, positive
from ..theory import meant
from .grid import downwards, some_parameters
from .warm import restored

POINTS = 20  # of a grid that nobody gave


@dataclass(frozen=True)
class Grid:
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
        """Where the k-th point is on a path; None where several Parameters vary."""
        return self.points[k][0] if len(self.parameters) == 1 else None

    @cached_property
    def descending(self) -> list[int]:
        """The points from the largest values down: neighbours in this order are neighbours in the first values."""
        return sorted(range(len(self.points)), key=lambda k: self.points[k], reverse=True)

    def regularisation(self, form: Form) -> list[float]:
        """How strongly each point regularises: the logarithm of the geometric mean of its values, where the value of a
        Parameter on losses counts as its inverse. `TermError` where a Parameter is on losses and on penalties."""
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
    columns: dict[Parameter, list[float]] = {}
    for key, values in given.items():
        parameter = _found(key, known, columns)
        if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
            raise ModelError(f"the values of {parameter.name!r} must be a sequence of numbers, got {values!r}")
        columns[parameter] = [_value(value, parameter) for value in values]
        if not columns[parameter]:
            raise ModelError(f"the grid has no values for {parameter.name!r}; give at least one, or leave it out")
    parameters = tuple(columns)
    return Grid(parameters, _distinct(list(itertools.product(*columns.values())), parameters))


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
    found = meant(key, known)
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
