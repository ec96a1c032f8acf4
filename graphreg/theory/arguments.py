"""Arguments of the functions of this folder: problems, clusters, sets of edges, parameters by label."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import checks
from ..base.messages import did_you_mean, missing_entries, unknown_labels, unmatched
from ..certificate import Clusters
from ..errors import GraphError, GraphregError, MethodError, ModelError
from ..form import Form, parameters_of
from ..inputs import Graph, IntegerLabels, edge_name, is_frame, is_in, is_missing, is_series, plain_label
from ..terms import Array


def form_of(problem: Any, what: str) -> Form:
    """The canonical form of a problem."""
    form = problem if isinstance(problem, Form) else getattr(problem, "form", None)
    if not isinstance(form, Form):
        raise ModelError(f"{what} takes a gr.Problem, got {type(problem).__name__}; write gr.Problem(model)")
    return form


def read_clusters(given: Any, labels: Sequence[Hashable], what: str) -> tuple[list[Hashable], Array]:
    """The names of clusters, by first appearance, and the number of each node's, (n,).

    ``given``: a mapping (or pandas Series) from labels to names of clusters, one from names of clusters to lists of
    labels, the `Clusters` of a solution, or one name per node, in node order.
    """
    if isinstance(given, Clusters):
        given = given.labels
    elif is_series(given) and hasattr(given, "to_dict"):
        given = given.to_dict()
    if isinstance(given, Mapping):
        each = _by_label({plain_label(key): value for key, value in given.items()}, what)
        for said in unknown_labels(what, each, dict.fromkeys(labels)):
            raise GraphError(said)
        names = in_order(what, each, labels, GraphError, "; name theirs (a node may be a cluster of its own)")
    elif isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or is_frame(given):
        hint = "; write solution.clusters()" if hasattr(given, "clusters") else ""
        raise GraphError(
            f"{what} must be a non-empty mapping from labels to clusters, or from clusters to lists of labels, or one "
            f"per node in node order, got {type(given).__name__}{hint}"
        )
    else:
        names = [plain_label(name) for name in given]
        if len(names) != len(labels):
            raise GraphError(
                f"{what} have {len(names)} entries for {len(labels)} nodes; give one per node in node order, or a "
                "mapping from labels"
            )
    numbers: dict[Hashable, int] = {}
    for label, name in zip(labels, names, strict=True):
        if not isinstance(name, Hashable) or is_missing(name):
            raise GraphError(
                f"{what} have the entry {name!r} at the node {label!r}; name a cluster (a number, a string)"
            )
        numbers.setdefault(plain_label(name), len(numbers))
    return list(numbers), np.array([numbers[plain_label(name)] for name in names], dtype=np.intp)


def in_order(
    what: str, each: Any, labels: Sequence[Hashable], error: type[GraphregError], remedy: str = ""
) -> list[Any]:
    """The entries of a mapping in the order of the labels, each of which must have one."""
    for said in missing_entries(what, each, labels):
        raise error(said + remedy)
    return [each[label] for label in labels]


def _by_label(given: Mapping[Hashable, Any], what: str) -> dict[Hashable, Any]:
    """A mapping from labels to clusters, also of one from clusters to lists of labels."""
    if not given:
        raise GraphError(f"{what} are empty; they must be a non-empty mapping from labels to clusters")
    if any(isinstance(value, Mapping) for value in given.values()):
        raise GraphError(f"{what} are nested; give the level that is meant, a list of nodes per cluster")
    if not all(_is_group(members) for members in given.values()):
        return dict(given)
    out: dict[Hashable, Any] = {}
    for name, members in given.items():
        if not len(members):
            raise GraphError(f"{what} have no node in {name!r}; leave it out")
        for label in map(plain_label, members):
            if is_in(label, out):
                raise GraphError(f"{what} name the node {label!r} twice, in {out[label]!r} and in {name!r}")
            out[label] = name
    return out


def _is_group(value: Any) -> bool:
    """True of a list of labels; an Index or a Series is one, as frame.groupby(...).groups has them."""
    return is_series(value) or isinstance(value, (list, tuple, IntegerLabels, set, frozenset, range, np.ndarray))


def edge_positions(graph: Graph, edges: Iterable[Any], what: str) -> Array:
    """The positions of edges, given as pairs of labels, in a graph."""
    place = {pair: e for e, pair in enumerate(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))}
    found: dict[int, None] = {}
    if isinstance(edges, (str, bytes)) or not isinstance(edges, Iterable):
        raise GraphError(f"{what} are a list of pairs of labels (a, b), got {edges!r}")
    for entry in edges:
        if isinstance(entry, (str, bytes)) or not isinstance(entry, Sequence) or len(entry) < 2:
            raise GraphError(f"{what} are pairs of labels (a, b), got {entry!r}")
        a, b = plain_label(entry[0]), plain_label(entry[1])
        for label in (a, b):
            if not is_in(label, graph.index):
                near = did_you_mean(label, graph.labels)
                raise GraphError(f"{what} name {label!r}, which is not a node of the graph{near}")
        i, j = sorted((graph.index[a], graph.index[b]))
        if (i, j) not in place:
            raise GraphError(f"{what} name {edge_name(a, b)}, which is not in the graph")
        found[place[i, j]] = None
    return np.array(sorted(found), dtype=np.intp)


def all_parameters(given: Any, form: Form, what: str) -> Array:
    """One vector of d numbers for each node, latent ones included, (n, d); see `graphreg.form.parameters_of`."""
    found = parameters_of(given, what, form, error=MethodError)
    for said in missing_entries(what, form.labels[: len(found)], form.labels):
        raise MethodError(said)
    return found


def per_node(what: str, given: Any, form: Form, shape: tuple[int, ...]) -> Array:
    """Finite numbers for each node, (n, *shape): an array in node order, or a mapping from labels."""
    if isinstance(given, Mapping):
        for said in unmatched(what, given, form.labels):
            raise MethodError(said)
        given = [given[label] for label in form.labels]
    whole = (form.n, *shape)
    values = checks.numbers(given, what, f"an array of the shape {whole} or a mapping", MethodError)
    if values.shape != whole:
        raise MethodError(f"{what} must be of shape {whole}, {shape} for each node, got {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values.reshape(form.n, -1)).all(axis=1))
    if bad.size:
        raise MethodError(f"{what} are not finite at the node {form.labels[bad[0]]!r}")
    return values
