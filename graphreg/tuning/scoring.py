"""Scores of predictions of held-out samples: the model's own loss, the usual scores, or the user's own.

With the sample weights v_r of the held-out samples and their sum V, x the predictor (link), p the response:

    loss       sum_r v_r l(x_r; y_r) / V           mse        sum_r v_r (y_r - p_r)^2 / V
    log_loss   -sum_r v_r log p_r(y_r) / V         mae        sum_r v_r |y_r - p_r| / V
    accuracy   sum_r v_r [class_r = y_r] / V       auc        P(x_r > x_q) + P(x_r = x_q) / 2 for y_r = 1, y_q = 0,
                                                              pairs weighted by v_r v_q

    deviance   2 sum_r v_r (y_r log(y_r / p_r) - y_r + p_r) / V, of PoissonLoss: about 1 where counts are Poisson

where there are several targets, mse and mae are means over them. They equal scikit-learn's mean_squared_error,
mean_absolute_error, accuracy_score, log_loss, roc_auc_score and mean_poisson_deviance with ``sample_weight=v``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import xlogy

from .. import checks
from ..base.messages import did_you_mean
from ..base.tables import Table
from ..errors import DataError, ModelError
from ..form import Form, SampleBlock, build
from ..inputs import renewed
from ..running import Observation
from ..terms import Array, Model, predictors
from ..terms.losses import AbstractLoss

if TYPE_CHECKING:
    from ..running import Solution


@dataclass(frozen=True)
class HeldOut:
    """Held-out samples of one loss: the rows of its block, and their predictors (m,) or (m, k)."""

    block: SampleBlock
    rows: Array
    link: Array

    @property
    def loss(self) -> AbstractLoss:
        return self.block.loss

    @property
    def weights(self) -> Array:
        return self.loss.data.weights[self.rows]

    @property
    def y(self) -> Array:
        """The targets as they were given."""
        return np.asarray(self.loss.data.y)[self.rows]

    @property
    def coded(self) -> Array:
        return self.block.y[self.rows]

    def response(self) -> Array:
        return self.loss.response(self.link)


def held_out(form: Form, rows: Array, link: Array) -> list[HeldOut]:
    """Rows of all losses (increasing positions) and their predictors, loss by loss."""
    out: list[HeldOut] = []
    begin = 0
    for block in form.samples:
        here = (rows >= begin) & (rows < begin + len(block.node))
        if here.any():
            out.append(HeldOut(block, rows[here] - begin, link[here].reshape(-1, *block.offset.shape[1:])))
        begin += len(block.node)
    return out


def _any(loss: AbstractLoss) -> bool:
    return True


@dataclass(frozen=True)
class Scorer:
    """A score of held-out predictions; ``of`` takes them loss by loss, of the losses that it ``takes``."""

    name: str
    greater_is_better: bool
    of: Callable[[Sequence[HeldOut]], float]
    assumed: str
    takes: Callable[[AbstractLoss], bool] = _any
    wants: str = "any loss"

    def score(self, parts: Sequence[HeldOut], fold: Any) -> float:
        """A number; nan is refused, with the fold."""
        value = self.of(parts)
        if isinstance(value, np.generic):
            value = value.item()
        if not checks.is_number(value):
            raise ModelError(f"the scoring {self.name} must give a number, got {value!r} in fold {fold!r}")
        if np.isnan(float(value)):
            raise ModelError(
                f"the scoring {self.name} is nan in fold {fold!r}; check what it does with these samples, or give "
                "other folds"
            )
        return float(value)


def scorer_of(form: Form, scoring: Any, greater_is_better: bool | None) -> Scorer:
    """The scorer that a user means; a name that makes no sense for the losses is refused."""
    if callable(scoring):
        if not isinstance(greater_is_better, bool):
            raise ModelError(
                "whether a larger value of your scoring is better cannot be known; say greater_is_better=True or False"
            )
        name = getattr(scoring, "__name__", type(scoring).__name__)
        return Scorer(name, greater_is_better, partial(_own, scoring), f"scored by your function {name}")
    if greater_is_better is not None:
        raise ModelError("greater_is_better is for a scoring function of your own; leave it out")
    name = "loss" if scoring is None else scoring
    (checks.one_of(*SCORES) | checks.function("a function of (y, prediction, weights)"))(name, "scoring")
    scorer = SCORES[name]
    for block in form.samples:
        if not scorer.takes(block.loss):
            fitting = ", ".join(repr(n) for n, e in SCORES.items() if all(e.takes(b.loss) for b in form.samples))
            raise ModelError(
                f"scoring={name!r} takes {scorer.wants}, and {type(block.loss).__name__} is none; here one of "
                f"{fitting}, or a function of your own"
            )
    return scorer


# ---- the scores ------------------------------------------------------------------------------------------------------
def _own(function: Callable[..., Any], parts: Sequence[HeldOut]) -> Any:
    """A function of (y, response, weights), over all losses."""
    columns = zip(*((part.y, part.response(), part.weights) for part in parts), strict=True)
    return function(*map(np.concatenate, columns))


@dataclass(frozen=True)
class Mean:
    """The weighted mean of one value per sample."""

    each: Callable[[HeldOut], Array]

    def values(self, parts: Sequence[HeldOut]) -> Array:
        return np.concatenate([self.each(part) for part in parts])

    def __call__(self, parts: Sequence[HeldOut]) -> float:
        return float(np.average(self.values(parts), weights=np.concatenate([part.weights for part in parts])))


def _loss(part: HeldOut) -> Array:
    return part.loss.value(part.link, part.coded)


def _deviance(part: HeldOut) -> Array:
    y = part.coded
    return 2.0 * (_loss(part) + xlogy(y, y) - y)


def _squared(part: HeldOut) -> Array:
    return (_errors(part) ** 2).mean(axis=1)


def _absolute(part: HeldOut) -> Array:
    return np.abs(_errors(part)).mean(axis=1)


def _hits(part: HeldOut) -> Array:
    return (part.loss.classify(part.link) == part.y).astype(float)


def _errors(part: HeldOut) -> Array:
    """Target minus response, (m, number of targets)."""
    return (part.coded - part.response()).reshape(len(part.rows), -1)


def _auc(parts: Sequence[HeldOut]) -> float:
    """The weighted Mann-Whitney statistic; ties count one half."""
    x, y, v = (np.concatenate(each) for each in zip(*((p.link, p.coded, p.weights) for p in parts), strict=True))
    place = np.unique(x, return_inverse=True)[1]
    one = np.bincount(place, v * (y > 0))
    two = np.bincount(place, v * (y <= 0))
    if not (one.any() and two.any()):
        raise ModelError(
            "scoring='auc' needs held-out samples of both classes in every fold, and one fold has a single class; "
            "hold out more at once, or use scoring='log_loss'"
        )
    below = np.cumsum(two) - two
    return float(one @ (below + two / 2) / (one.sum() * two.sum()))


def _classifies(loss: AbstractLoss) -> bool:
    return type(loss).classify is not AbstractLoss.classify


def _binary(loss: AbstractLoss) -> bool:
    return _classifies(loss) and loss.design()[1].ndim == 1


def is_probabilistic(loss: AbstractLoss) -> bool:
    """True of a loss whose value is -log of the probability of the class, which is its response: as is tried."""
    if not _classifies(loss):
        return False
    y = loss.targets()
    x = np.linspace(-2.0, 2.0, y.size).reshape(y.shape)
    p = loss.response(x)
    own = (p * y).sum(axis=1) if y.ndim == 2 else np.where(y > 0, p, 1.0 - p)
    with np.errstate(invalid="ignore", divide="ignore"):  # of responses that are no probabilities
        return np.allclose(loss.value(x, y), -np.log(own), rtol=1e-9, atol=1e-12)


def _counts(loss: AbstractLoss) -> bool:
    """True of a loss whose value is minus the log-likelihood of a Poisson count with the mean exp(x), its response."""
    y = loss.targets()
    if _classifies(loss) or y.ndim > 1:
        return False
    x = np.linspace(-2.0, 2.0, y.size)
    mean = np.exp(x)
    return np.allclose(loss.response(x), mean, rtol=1e-9) and np.allclose(loss.value(x, y), mean - y * x, rtol=1e-9)


def _is_numeric(loss: AbstractLoss) -> bool:
    return not _classifies(loss)


MEAN = "scored by the weighted mean over a fold's held-out samples of"
SHARE = "scored by the weighted share of a fold's held-out samples whose class is predicted"
CURVE = "scored by the area under the ROC curve of a fold's predictors, whatever their nodes"
NUMERIC, CODED = "losses of numeric targets", "LogisticLoss or MultinomialLoss"
LOG = f"{MEAN} -log of the probability of the class"
SCORES = {
    scorer.name: scorer
    for scorer in (
        Scorer("loss", False, Mean(_loss), f"{MEAN} the model's own loss, without its scale"),
        Scorer("mse", False, Mean(_squared), f"{MEAN} the squared error", _is_numeric, NUMERIC),
        Scorer("mae", False, Mean(_absolute), f"{MEAN} the absolute error", _is_numeric, NUMERIC),
        Scorer("accuracy", True, Mean(_hits), SHARE, _classifies, "classification losses"),
        Scorer("log_loss", False, Mean(_loss), LOG, is_probabilistic, CODED),
        Scorer("deviance", False, Mean(_deviance), f"{MEAN} the Poisson deviance", _counts, "PoissonLoss"),
        Scorer("auc", True, _auc, CURVE, _binary, "losses of two classes"),
    )
}


# ---- how well an answer predicts other rows, node by node ------------------------------------------------------------
BY = ("node", "all")
ASSUMED = (
    "the scores are computed in plain floating point from these rows: no certificate speaks of other rows",
    "means over rows count by their sample weights",
)


def node_scores(solution: Solution | Observation, frame: Any, by: str) -> Table:
    """The scores of a solution, or of a round of a run, on the rows of a frame; see `Solution.score`.

    Examples
    --------
    >>> gr.tuning.node_scores(solution, frame, "node").index.tolist()
    ['a', 'b', 'c', 'd']
    """
    import pandas as pd

    checks.one_of(*BY)(by, "by", DataError)
    losses = [block.loss for block in solution.form.at_nodes if block.X is not None]
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
    (whole,) = held_out(form, np.arange(data.n_samples), link)
    parts = {"all": np.arange(data.n_samples)}
    if by == "node":
        parts = {label: np.flatnonzero(data.node == k) for k, label in enumerate(data.labels)}
    rows = [_row(HeldOut(whole.block, rows, link[rows])) for rows in parts.values()]
    names = pd.Index(list(parts), dtype=object, name="node" if by == "node" else "rows", tupleize_cols=False)
    return Table.of(pd.DataFrame(rows, index=names), f"{data.n_samples:,} rows scored: {_status(solution)}", ASSUMED)


def _row(part: HeldOut) -> dict[str, float]:
    """The mean loss, and what else the loss has."""
    found = {"samples": len(part.rows), "loss": SCORES["loss"].of([part])}
    for name in ("accuracy", "deviance", "mse"):
        if SCORES[name].takes(part.loss):
            found[name] = SCORES[name].of([part])
    if "mse" in found and "deviance" not in found:
        found["r2"] = _share(part, found["mse"])
    return found


def _share(part: HeldOut, mse: float) -> float:
    """R^2 = 1 - mse / variance; nan where all targets are alike."""
    y: Array = part.coded.reshape(len(part.rows), -1)
    mean = np.average(y, axis=0, weights=part.weights)
    variance = float(np.average(((y - mean) ** 2).mean(axis=1), weights=part.weights))
    return 1.0 - mse / variance if variance > 0.0 else float("nan")


def _status(solution: Solution | Observation) -> str:
    if isinstance(solution, Observation):
        return f"parameters after round {solution.round}, of which no certificate speaks"
    gap = solution.certificate.relative_gap
    if solution.status == "certified":
        return f"parameters of a certified answer (relative gap {gap:.2g})"
    return f"parameters of an answer that is not certified ({solution.status})"
