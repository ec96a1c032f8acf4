"""How well an answer predicts other rows, node by node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..errors import DataError
from ..form import build
from ..inputs import renewed
from ..messages import did_you_mean
from ..tables import Table
from ..terms import Array, Model, predictors
from .scoring import SCORES, Held, held

if TYPE_CHECKING:
    from ..running import Solution

BY = ("node", "all")
ASSUMED = (
    "the scores are computed in plain floating point from these rows: no certificate speaks of other rows",
    "means over rows count by their sample weights",
)


def node_scores(solution: Solution, frame: Any, by: str) -> Table:
    """The scores of a solution on the rows of a frame; see `Solution.score`."""
    import pandas as pd

    checks.one_of(*BY)(by, "by", DataError)
    losses = [block.loss for block in solution.form.samples if block.X is not None]
    if len(losses) != 1 or len(solution.form.samples) != 1:
        raise DataError(
            "score takes an answer to a problem with one loss that has features; of others take solution.predict"
        )
    loss = losses[0]
    data = renewed(loss.data, frame)
    index = solution.form.space.index
    for label in data.labels:
        if label not in index:
            raise DataError(f"new rows are at {label!r}, which is not a node{did_you_mean(label, index)}")
    form = build(Model.of(replace(loss, data=data, **loss.coding())))
    w = solution.coef[[index[label] for label in data.labels]]
    link = predictors(data.X[:, None, :], w[data.node])[:, 0]  # pyright: ignore[reportOptionalSubscript]
    link = link + (data.offset if link.ndim == 1 else data.offset[:, None])
    (whole,) = held(form, np.arange(data.n_samples), link)
    parts = {"all": np.arange(data.n_samples)}
    if by == "node":
        parts = {label: np.flatnonzero(data.node == k) for k, label in enumerate(data.labels)}
    rows = [_row(Held(whole.block, rows, link[rows])) for rows in parts.values()]
    names = pd.Index(list(parts), dtype=object, name="node" if by == "node" else "rows", tupleize_cols=False)
    return Table.of(pd.DataFrame(rows, index=names), f"{data.n_samples:,} rows scored: {_status(solution)}", ASSUMED)


def _row(part: Held) -> dict[str, float]:
    """The mean loss, and what else the loss has."""
    found = {"samples": len(part.rows), "loss": SCORES["loss"].of([part])}
    for name in ("accuracy", "deviance", "mse"):
        if SCORES[name].takes(part.loss):
            found[name] = SCORES[name].of([part])
    if "mse" in found and "deviance" not in found:
        found["r2"] = _share(part, found["mse"])
    return found


def _share(part: Held, mse: float) -> float:
    """R^2 = 1 - mse / variance; nan where all targets are alike."""
    y: Array = part.coded.reshape(len(part.rows), -1)
    mean = np.average(y, axis=0, weights=part.weights)
    variance = float(np.average(((y - mean) ** 2).mean(axis=1), weights=part.weights))
    return 1.0 - mse / variance if variance > 0.0 else float("nan")


def _status(solution: Solution) -> str:
    gap = solution.certificate.relative_gap
    if solution.status == "certified":
        return f"parameters of a certified answer (relative gap {gap:.2g})"
    return f"parameters of an answer that is not certified ({solution.status})"
