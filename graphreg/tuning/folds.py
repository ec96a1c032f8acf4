"""Folds of samples: by sample, by node, or as they are given.

The samples are the rows of all losses of a model, one loss after the other in the order of its terms.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..base.display import Brief
from ..base.messages import few
from ..errors import DataError, ModelError
from ..form import Form
from ..inputs import components_of, listed, positions_of
from ..terms import Array
from ..terms.penalties import AbstractConstraint, is_equality


@dataclass(frozen=True, repr=False)
class Fold(Brief):
    """One way of splitting the samples: rows to fit on, and rows held out.

    ``scored`` (a mask over ``test``) are those whose prediction the training data determine; ``cut_off`` the labels of
    the nodes of the others.
    """

    name: Hashable
    train: Array
    test: Array
    scored: Array
    cut_off: tuple[Hashable, ...]


@dataclass(frozen=True, repr=False)
class Folds(Brief):
    """The folds of a cross-validation, and the sentences that say how they came about.

    ``dealt`` is what was dealt to them at random, "sample" or "node"; "fold" where they are given, as nothing is known
    of why their rows stand together.
    """

    each: tuple[Fold, ...]
    assumed: tuple[str, ...]
    dealt: str = "fold"

    def __len__(self) -> int:
        return len(self.each)


def nodes_of(form: Form) -> Array:
    """The node of every row, (M,)."""
    if form.beside:
        raise ModelError(
            f"{form.beside_in_words}, and cross-validation holds out samples of one loss at each node. Without it: for "
            "each fold solve the model of the training rows; its score is that of the others, "
            "gr.Problem(losses of the rows held out).value(solution)"
        )
    return np.concatenate([block.node for block in form.at_nodes])


def folds_of(form: Form, given: Any, by: Any, seed: int) -> Folds:
    """The folds that a user means; whatever is wrong with them is named.

    Parameters
    ----------
    form : Form
    given : whole number, fold labels per row, list of pairs (train, test), or splitter
    by : {"sample", "node"}
        What a number of folds splits.
    seed : int
        Of the shuffling.
    """
    node = nodes_of(form)
    checks.one_of("sample", "node").with_remedy("folds of your own are given as folds=")(by, "by")
    if checks.is_whole(given):
        label, how = _dealt(node, int(given), by, np.random.default_rng(seed))
        pairs, dealt = _pairs_of(range(int(given)), label), by
    else:
        if by == "node":
            raise ModelError("by='node' is for a number of folds; leave it out where the folds themselves are given")
        (pairs, how), dealt = _given(form, node, given), "fold"
    names = [name for name, _, _ in pairs]
    each = [_fold(form, node, name, train, test) for name, train, test in pairs]
    if len(each) < 2:
        one = "of one alone nothing is known of the error: fit on its rows, and judge predict() on the others"
        raise ModelError(f"cross-validation needs at least two folds, got {names}; {one}")
    return Folds(tuple(each), (how, *_words(form, node, each)), dealt)


# ---- a number of folds -----------------------------------------------------------------------------------------------
def _dealt(node: Array, folds: int, by: str, rng: np.random.Generator) -> tuple[Array, str]:
    """Fold numbers, dealt like cards: to the samples of one node after the other, or to the nodes. Nodes count in the
    order of their first samples, so that the same rows fall into the same folds however the graph is written."""
    first, which = np.unique(node, return_index=True, return_inverse=True)[1:]
    present = len(first)
    node = np.argsort(np.argsort(first))[which]
    most = len(node) if by == "sample" else present
    what = "samples" if by == "sample" else "nodes with data"
    if not 2 <= folds <= most:
        raise ModelError(f"folds must be between 2 and the number of {what}, {most}, got {folds}")
    if by == "node":
        number = np.empty(present, dtype=int)
        number[rng.permutation(present)] = np.arange(present) % folds
        return number[node], f"{folds} folds of whole nodes, drawn at random: a node's samples are held out together"
    shuffled = rng.permutation(len(node))
    cards = np.argsort(rng.permutation(present)[node[shuffled]], kind="stable")  # node by node
    label = np.empty(len(node), dtype=int)
    label[shuffled[cards]] = np.arange(len(node)) % folds
    return label, f"{folds} folds by sample, drawn at random: every node's samples are spread over them evenly"


def _pairs_of(names: Sequence[Hashable], label: Array) -> list[tuple[Hashable, Array, Array]]:
    return [(name, np.flatnonzero(label != k), np.flatnonzero(label == k)) for k, name in enumerate(names)]


# ---- folds as they are given -----------------------------------------------------------------------------------------
def _given(form: Form, node: Array, given: Any) -> tuple[list[tuple[Hashable, Array, Array]], str]:
    split: Callable[..., Any] | None = getattr(given, "split", None)
    if callable(split) and not isinstance(given, str):
        return _splitter(form, node, given), f"the folds of {given}"
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        hint = f"; for a column of your frame write folds=frame[{given!r}]" if isinstance(given, str) else ""
        raise ModelError(
            f"folds must be a number, fold labels per row, pairs (train, test) or a splitter, got {given!r}{hint}"
        )
    values = listed(given)
    if values and all(isinstance(value, (tuple, list)) and len(value) == 2 for value in values):
        return _pairs(values, len(node)), "folds as given, as pairs (train, test)"
    if len(values) != len(node):
        raise ModelError(f"there are {len(values)} fold labels and {len(node)} samples; give one label per sample")
    names, label = positions_of(values, "fold label", ModelError)
    if not label.any():
        raise ModelError(f"all samples have the fold label {names[0]!r}; cross-validation needs at least two folds")
    return _pairs_of(names, label), "folds as given, one label per sample"


def _splitter(form: Form, node: Array, splitter: Any) -> list[tuple[Hashable, Array, Array]]:
    """The folds of an object with ``split(X, y, groups)``, as scikit-learn's; the groups are the nodes."""
    y = [np.asarray(block.loss.data.y) for block in form.samples]
    target = y[0] if len(y) == 1 else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # splitters that have no use for groups say so
            values = list(splitter.split(np.zeros((len(node), 1)), target, node))
    except Exception as error:
        raise ModelError(f"{splitter} could not split the {len(node)} samples: {error}") from error
    return _pairs(values, len(node))


def _pairs(values: Sequence[Any], M: int) -> list[tuple[Hashable, Array, Array]]:
    """(train, test) pairs of positions or masks, checked."""
    out: list[tuple[Hashable, Array, Array]] = []
    for k, (train, test) in enumerate(values):
        a, b = (
            checks.positions(train, M, f"the train rows of fold {k}"),
            checks.positions(test, M, f"the test rows of fold {k}"),
        )
        both = np.intersect1d(a, b)
        if len(both):
            raise ModelError(
                f"row {both[0]} is both a train and a test row of fold {k}; a held-out row is not fitted on"
            )
        out.append((k, a, b))
    return out


# ---- what the training data determine --------------------------------------------------------------------------------
def _fold(form: Form, node: Array, name: Hashable, train: Array, test: Array) -> Fold:
    known = determined(form, np.bincount(node[train], minlength=form.n) > 0)
    scored = known[node[test]]
    cut_off = tuple(form.labels[i] for i in np.unique(node[test][~scored]))
    if not scored.any():
        raise DataError(
            f"fold {name!r} holds out nothing that its training data say anything about: no penalty ties "
            f"{_shown(cut_off)} to a node that keeps data; hold out less, add edges, or give other folds"
        )
    return Fold(name, train, test, scored, cut_off)


def determined(form: Form, trained: Array) -> Array:
    """The nodes that the training data speak of, a mask (n,): those whose component has a node with training data, and
    of which every coordinate either is tied to such a node by edges that act on it, or has a penalty of its own."""
    anchored = np.repeat(trained[:, None], form.d, axis=1)
    for edge in form.edges:
        fixes = not isinstance(edge.penalty, AbstractConstraint) or is_equality(edge.penalty, form.width(edge))
        if edge.map.noun == "node" and fixes:
            anchored[np.ix_(edge.tail, edge.columns(form.d))] = True
    reached = np.stack([_touched(_component(form, j), anchored[:, j]) for j in range(form.d)], axis=1)
    return reached.all(axis=1) & _touched(form.component, trained)


def _component(form: Form, j: int) -> Array:
    """The component of each node by the edges that act on the coordinate j."""
    if all(e.features is None for e in form.between):
        return form.component
    acting = [e.map.links for e in form.edges if j in e.map.columns(form.d)]
    i, k = (np.concatenate(ends) for ends in zip((np.zeros(0, dtype=int),) * 2, *acting, strict=True))
    return components_of(i, k, form.n)[1]


def _touched(component: Array, mask: Array) -> Array:
    """The nodes in a component with a node of the mask."""
    return np.isin(component, component[mask])


def _words(form: Form, node: Array, each: Sequence[Fold]) -> list[str]:
    """Remarks on nodes that lose all their samples in a fold."""
    out: list[str] = []
    counts = np.bincount(node, minlength=form.n)
    empty = {i for fold in each for i in np.setdiff1d(node[fold.test], node[fold.train]).tolist()}
    if empty:
        singles = sum(counts[i] == 1 for i in empty)
        out.append(
            f"{len(empty)} nodes ({singles} of them with a single sample) have no training data in a fold and are "
            "predicted there from their neighbours, through the penalties; where these leave their coefficients free "
            "(l1 between two different neighbours, say) the solver's choice counts"
        )
    if cut_off := list(dict.fromkeys(label for fold in each for label in fold.cut_off)):
        rows = sum(int((~fold.scored).sum()) for fold in each)
        out.append(
            f"{rows} held-out samples are not scored, at {_shown(cut_off)}: nothing ties these nodes to training data"
        )
    return out


def _shown(labels: Sequence[Hashable]) -> str:
    return ("the node " if len(labels) == 1 else "the nodes ") + few(map(repr, labels), 5)
