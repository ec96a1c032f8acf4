"""The symbols of a problem: its blocks with their letters, numbered where there are several of a kind."""

from __future__ import annotations

from collections.abc import Mapping

from ...terms import Parameter, Strength
from ..form import Form
from .blocks import EdgeWords, SampleWords
from .writing import NOTHING, Math, join, name, number, same


class Symbols:
    """The blocks of a form with their symbols. Blocks are numbered where there is more than one of a kind."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.parameters = _parameter_names(form)
        sets = list(dict.fromkeys(tuple(b.features.tolist()) for b in form.edges if b.features is not None))
        self.features: dict[tuple[int, ...], Math] = {
            columns: _numbered("F", k, len(sets)) for k, columns in enumerate(sets, 1)
        }
        self.samples = [
            SampleWords(block, "" if len(form.samples) == 1 else str(k), self.strength(block.strength))
            for k, block in enumerate(form.samples, 1)
        ]
        nodes = "observed node i" if form.latent else "node i"
        several = sum(not block.ground for block in form.edges) > 1
        self.edges = [
            EdgeWords(
                block,
                "" if len(form.edges) == 1 else str(k),
                f"E{k}" if several and not block.ground else "",
                self.strength(block.strength),
                NOTHING if block.features is None else self.features[tuple(block.features.tolist())],
                nodes,
                form.width(block),
            )
            for k, block in enumerate(form.edges, 1)
        ]

    @property
    def penalties(self) -> list[EdgeWords]:
        return [words for words in self.edges if not words.constraint]

    @property
    def constraints(self) -> list[EdgeWords]:
        return [words for words in self.edges if words.constraint]

    @property
    def conservation(self) -> Math:
        """(K'u)_i + X_i'a_i = 0, written out."""
        prices = [words.at_node + words.pull for words in self.samples]
        parts = [*prices, *(words.divergence for words in self.edges)]
        return join(parts, " + ") + same(" = 0")

    def strength(self, strength: Strength) -> Math:
        """A strength as it was given: a number, a parameter's name, or both; empty for 1."""
        factor = NOTHING if strength.factor == 1.0 else number(strength.factor)
        parameter = NOTHING if strength.parameter is None else self.parameters[id(strength.parameter)][1]
        return join([factor, parameter], " ", r" \, ")


def _parameter_names(form: Form) -> Mapping[int, tuple[Parameter, Math]]:
    """The parameters of a form by id; those that share a name are numbered."""
    found = {id(b.strength.parameter): b.strength.parameter for b in (*form.samples, *form.edges)}
    parameters = [parameter for parameter in found.values() if parameter is not None]
    names: dict[int, tuple[Parameter, Math]] = {}
    for parameter in parameters:
        alike = [other for other in parameters if other.name == parameter.name]
        suffix = "" if len(alike) == 1 else f"_{alike.index(parameter) + 1}"
        names[id(parameter)] = parameter, name(parameter.name + suffix)
    return names


def _numbered(letter: str, k: int, of: int) -> Math:
    return same(letter) if of == 1 else Math(f"{letter}{k}", f"{letter}_{{{k}}}")
