"""Predictions for new rows: the coefficients of a row's node, and what the loss there makes of the linear predictor."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import one_of
from ..errors import DataError
from ..form import Form, SampleBlock
from ..inputs import places_of
from ..messages import did_you_mean
from ..terms import Array, predictors

if TYPE_CHECKING:
    import pandas as pd

_KIND = one_of("response", "link", "class")
KIND = replace(_KIND, hint=lambda kind: _KIND.hint(kind) or "; probabilities are the response of a classification loss")


def predicted(form: Form, coef: Array, frame: Any, kind: str) -> pd.Series | pd.DataFrame:
    """The predictions of coefficients (n, d) for the rows of a frame, see `Solution.predict`."""
    import pandas as pd

    KIND(kind, "kind", DataError)
    blocks = [block for block in form.samples if block.X is not None]
    if not blocks:
        raise DataError("a MeanLoss has no predictors; its predictions are the rows of table()")
    labels, X, offset = blocks[0].loss.data.read(frame)
    assert X is not None  # as in the block
    node = _nodes_of(form, labels)
    link = predictors(X[:, None, :], coef[node])[:, 0]  # (M,), or (M, classes)
    link += offset if link.ndim == 1 else offset[:, None]
    values = link if kind == "link" else _answers(form, blocks, kind, link, node)
    index = getattr(frame, "index", None)  # which frames of pandas have
    if values.ndim == 1:
        return pd.Series(values, index=index)
    classes = [name[1] for name in form.space.coordinates[: values.shape[1]]]
    return pd.DataFrame(values, index=index, columns=pd.Index(classes, name="class", tupleize_cols=False))


def _answers(form: Form, blocks: Sequence[SampleBlock], kind: str, link: Array, node: Array) -> Array:
    """What the loss at each row's node makes of the link; where all nodes have the same family, also at nodes without
    data."""
    owner = np.full(form.n, -1)
    for k, block in enumerate(blocks):
        owner[block.node] = k
    if len({type(block.loss) for block in blocks}) == 1:
        owner[owner < 0] = 0
    if (owner[node] < 0).any():
        label = form.labels[int(node[owner[node] < 0][0])]
        families = ", ".join(dict.fromkeys(block.loss.called() for block in blocks))
        raise DataError(
            f"the node {label!r} has no data, which would tell whose of {families} is its loss; predict the 'link'"
        )
    answer = [block.loss.classify if kind == "class" else block.loss.response for block in blocks]
    present = np.unique(owner[node]) if len(node) else [0]
    places = [np.flatnonzero(owner[node] == k) for k in present]
    together = np.concatenate([answer[k](link[rows]) for k, rows in zip(present, places, strict=True)])
    return together[np.argsort(np.concatenate(places))]


def _nodes_of(form: Form, labels: Sequence[Hashable]) -> Array:
    node = places_of(labels, form.space.index)
    if (node < 0).any():
        row = int(np.argmin(node))
        said = did_you_mean(labels[row], form.space.index)
        raise DataError(f"row {row} is at {labels[row]!r}, which is not a node{said}")
    return node
