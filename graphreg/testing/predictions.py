"""The laws of predictions: what a loss expects of a target, and the class that it names."""

from __future__ import annotations

import numpy as np

from ..base.declaring import in_library
from ..errors import DataError
from ..terms import Array
from ..terms.losses import AbstractLoss
from .probe import LossProbe
from .report import Failures, LawError, demand, frozen, judge, shaped

BESIDE = 1e-3
SMALL = 8.0  # predictors up to here leave every class a probability that can be told from 0


def ungiven(loss: AbstractLoss) -> dict[str, str]:
    """The laws of predictions that are not tried of a loss of the user's, as nobody wrote what they judge."""
    kind = type(loss)
    owners = {name: next(each for each in kind.__mro__ if name in vars(each)) for name in ("response", "classify")}
    said = "no {} was given, so that predictions are the library's guess"
    return {name: said.format(name) for name, each in owners.items() if loss.is_users() and in_library(each)}


def response(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """Of numbers: l(x; y) is least at the x whose response is y. Of classes: probabilities, with x for their log odds
    (or, where a loss knows none, x itself)."""
    x = frozen(np.clip(samples.x, -SMALL, SMALL))
    expected = loss.response(x)
    shaped("response", expected, x.shape)
    classes = _classes(loss)
    if classes is not None:
        return [] if np.array_equal(expected, x) else _probabilities(expected, x)
    if x.ndim == 2:
        return judge("response is the predictor", np.abs(expected - x).max(axis=1), 0.0, x=x)
    here = loss.value(x, expected)
    beside = np.minimum(*(loss.value(frozen(x + shift), expected) for shift in (-BESIDE, BESIDE)))
    sentence = "l(x; y) is least at x where the target y is response(x)"
    return judge(sentence, here - beside, 1e-12 * (1.0 + np.abs(here)), x=x, response=expected)


def classify(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """Each predictor is of the class, coded as the data were, under which its loss is least."""
    x, classes = samples.x, _classes(loss)
    try:
        named = loss.classify(x)
    except DataError:
        demand(classes is None, "a loss of two classes, or of several, says which a predictor is")
        return
    if classes is None:
        raise LawError("a loss of numbers names a class")
    values, codes = classes
    costs = np.array([loss.value(x, frozen(np.tile(code, (len(x), *[1] * code.ndim)))) for code in codes])
    own = np.array([[value == name for name in named.tolist()] for value in values])
    seen = own.any(axis=0)
    excess = np.where(seen, np.where(own, costs, np.inf).min(axis=0) - costs.min(axis=0), 0.0)
    yield from judge("the class of a predictor is the one of the least loss", excess, 1e-12, x=x)
    lacking = max(2, codes[0].size) - len(values)  # classes that the data lack may be named, too
    others = set(named.tolist()) - set(values)
    said = f"the data have the classes {values}, and classify says {sorted(map(str, others))}"
    demand(len(others) <= lacking, said)


def _classes(loss: AbstractLoss) -> tuple[list[object], list[Array]] | None:
    """The classes of the data and their codes; None where targets are numbers."""
    given = np.asarray(loss.data.y)
    if given.ndim != 1:
        return None
    coded = loss.encode(given)
    if coded.ndim == 1 and not np.isin(coded, (-1.0, 1.0)).all():
        return None
    values = list(dict.fromkeys(given.tolist()))
    return values, [coded[given.tolist().index(value)] for value in values]


def _probabilities(p: Array, x: Array) -> Failures:
    p2, x2 = (p, x) if x.ndim == 2 else (np.stack([1.0 - p, p], axis=1), np.stack([np.zeros_like(x), x], axis=1))
    yield from judge("probabilities are positive", -p2.min(axis=1), 0.0, x=x)
    yield from judge("probabilities sum to 1", np.abs(p2.sum(axis=1) - 1.0), 1e-12, x=x)
    odds = np.log(p2) - np.log(p2[:, :1]) - (x2 - x2[:, :1])
    yield from judge("predictors are logarithms of odds", np.abs(odds).max(axis=1), 1e-9, x=x)
