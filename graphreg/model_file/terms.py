"""The terms of the model: losses, total variations, consensus, node penalties, hierarchies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import add
from typing import Any

from ..base.messages import near
from ..errors import GraphregError
from ..inputs import Graph
from ..problem import Problem
from ..terms import Consensus, Hierarchy, Model, NodePenalty, Parameter, RowPenalty, TotalVariation, feature_of
from ..terms.penalties import AbstractConstraint, SquaredL2
from .families import make, make_inline
from .rows import read_rows
from .samples import SampleTable
from .schema import FileTable, LossKeys, Place, listed
from .tables import Folders

PlacedTerm = tuple[Model, Place]


@dataclass
class Sources:
    """The tables of samples (``data``) and the graphs of a model file, by name; which of them are used is kept."""

    data: Mapping[str | None, SampleTable]
    graph: Mapping[str | None, Graph]
    folders: Folders
    used: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])
    parameters: dict[str, Parameter] = field(default_factory=dict[str, Parameter])

    def pick(self, kind: str, section: FileTable, key: str = "") -> Any:
        """The source that the key ``kind`` (or another) of a table names; it may be left out, or be called ``kind``,
        where there is one alone."""
        key = key or kind
        known, name, place = getattr(self, kind), getattr(section.keys, key), section.place
        if not known:
            place.refuse(f" needs the table [{kind}]")
        names = [str(each) for each in known if each is not None]
        if len(known) == 1 and (name is None or (key != kind and name == kind)):
            name = next(iter(known))
        elif name is None:
            place.refuse(f" needs the key {key!r}: the name of one of the tables [[{kind}]], {', '.join(names)}")
        elif name not in known:
            place.at(key).refuse(f"no table [[{kind}]] has the name {name!r}; {near(name, names)}")
        self.used.add((kind, name))
        return known[name]


# ---- one function per table ------------------------------------------------------------------------------------------
def loss(section: FileTable, sources: Sources) -> Any:
    keys, place = section.keys, section.place
    data = sources.pick("data", section).node_data(keys.keep, place)
    known = dict.fromkeys(LossKeys.__dataclass_fields__)
    return make("loss", keys.family, section.rest, place, sources.folders.modules, data, at=place.at("family"), **known)


def total_variation(section: FileTable, sources: Sources) -> TotalVariation:
    return TotalVariation(sources.pick("graph", section), _penalty(section, sources), section.keys.features)


def consensus(section: FileTable, sources: Sources) -> Consensus:
    return Consensus(sources.pick("graph", section), section.keys.features)


def node_penalty(section: FileTable, sources: Sources) -> NodePenalty:
    keys = section.keys
    return NodePenalty(_penalty(section, sources), keys.weights, keys.center, keys.features, keys.nodes)


def _penalty(section: FileTable, sources: Sources) -> Any:
    return make_inline("penalty", section.keys.penalty, section.place.at("penalty"), sources.folders.modules)


def hierarchy(section: FileTable, sources: Sources) -> Any:
    keys, place = section.keys, section.place
    clusters = _clusters(section, sources)
    if keys.alpha is None and keys.gamma is None:
        if keys.weights is None:
            place.refuse(" needs the key 'weights': one per level from the nodes upwards (or 'alpha' and 'gamma')")
        penalty = SquaredL2() if keys.penalty is None else _penalty(section, sources)
        return Hierarchy(clusters, keys.weights, penalty)
    for key in ("alpha", "gamma"):
        if getattr(keys, key) is None:
            place.refuse(f" needs the key {key!r}: alpha and gamma go together")
    for key in ("weights", "penalty"):
        if getattr(keys, key) is not None:
            place.at(key).refuse("this does not go with alpha and gamma; take it out")
    return Hierarchy.from_alpha(clusters, alpha=keys.alpha, gamma=keys.gamma)


def _clusters(section: FileTable, sources: Sources) -> dict[Any, Any]:
    keys, place = section.keys, section.place
    if isinstance(keys.clusters, dict):
        if keys.data is not None:
            place.at("data").refuse("the clusters are written out and take no data; leave the key out")
        return keys.clusters
    samples = sources.pick("data", section)
    names = listed(keys.clusters)
    if not names:
        place.at("clusters").refuse("the list is empty; name at least one column")
    paths = [samples.by_node(name, place.at("clusters")) for name in names]
    tree: dict[str, Any] = {}
    for node in samples.labels:
        branch = tree
        for level in reversed(paths[1:]):  # columns go from the finest clusters to the coarsest
            branch = branch.setdefault(level[node], {})
        branch.setdefault(paths[0][node], []).append(node)
    return tree


def rows(section: FileTable, sources: Sources) -> RowPenalty:
    return _penalty(section, sources)(read_rows(section, sources.pick, sources.folders))


BUILD = {build.__name__: build for build in (loss, total_variation, consensus, node_penalty, hierarchy, rows)}


# ---- the sum ---------------------------------------------------------------------------------------------------------
def build_terms(tables: Mapping[str, list[FileTable]], sources: Sources) -> list[PlacedTerm]:
    """The terms of all tables, in the order of `BUILD`."""
    terms: list[PlacedTerm] = []
    for name, build in BUILD.items():
        for section in tables[name]:
            with section.place.named():
                term = build(section, sources)
                _check_strength(section, getattr(term, "penalty", None))
                strength = _strength(section, sources.parameters)
                whole = term if isinstance(strength, float) and strength == 1.0 else strength * term
                terms.append((Model.of(whole), section.place))
    _check_features(tables, terms)
    return terms


def _strength(section: FileTable, parameters: dict[str, Parameter]) -> float | Parameter:
    """The strength of a term: a number, or the Parameter that it is named. Terms that name the same share it."""
    name, value = getattr(section.keys, "parameter", None), getattr(section.keys, "strength", 1.0)
    if name is None:
        return value
    known = parameters.setdefault(name, Parameter(value, name=name))
    if known.value != value:
        section.place.at("strength").refuse(
            f"the parameter {name!r} has two values, {known.value:g} and {value:g}; give it one, or two names"
        )
    return known


def _check_strength(section: FileTable, penalty: Any) -> None:
    """A constraint takes no strength; said here, because 1 would pass."""
    for key in ("strength", "parameter"):
        if isinstance(penalty, AbstractConstraint) and key in section.given:
            section.place.at(key).refuse(
                f"{type(penalty).__name__} is a constraint and takes no {key}; leave the key out"
            )


def _check_features(tables: Mapping[str, list[FileTable]], terms: Sequence[PlacedTerm]) -> None:
    """The features that terms name must be those of the coordinates."""
    first: Any = terms[0][0].terms[0][1]
    coordinates = list(dict.fromkeys(map(feature_of, first.coordinates())))
    for name in ("total_variation", "consensus", "node_penalty", "rows"):
        for section in tables[name]:
            for feature in section.keys.features or ():
                if feature not in coordinates:
                    section.place.at("features").refuse(
                        f"there is no feature {feature!r}; {near(feature, coordinates, 'the features are')}"
                    )


def build_problem(terms: Sequence[PlacedTerm], whole: Place) -> Problem:
    """The problem; an error names the first term that cannot stand with those before it."""
    sums = list(accumulate((model for model, _ in terms), add))
    try:
        return Problem(sums[-1])
    except GraphregError as error:
        for model, (_, place) in zip(sums, terms, strict=True):
            with place.named():
                Problem(model)
        raise whole.error(type(error), str(error)) from None
