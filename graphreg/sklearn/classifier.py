"""Classification at the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ..errors import DataError, GraphregError
from ..inputs import NodeData
from ..terms import Array
from ..terms.losses import AbstractLoss
from ..tuning import is_probabilistic
from .base import AbstractGraphEstimator
from .rows import refuse_masks
from .writing import ALL, loss_of


def _tried(loss: Any, count: int) -> AbstractLoss | None:
    """The loss on one row of each of so many classes; None where it does not take them."""
    try:
        return loss_of(loss, NodeData.from_arrays(np.zeros((count, 1)), np.arange(count), [ALL] * count))
    except GraphregError:
        return None


def _has_probabilities(estimator: GraphClassifier) -> bool:
    tried = None if estimator.loss is None else _tried(estimator.loss, 2)
    return estimator.loss is None or (tried is not None and is_probabilistic(tried))


@dataclass(repr=False, eq=False, kw_only=True)  # makes the constructor, as scikit-learn wants it
class GraphClassifier(ClassifierMixin, AbstractGraphEstimator):
    """Classification at the nodes of a graph: logistic regression for two classes, multinomial for more.

    The problem is that of `GraphRegressor`. For two classes ``l(x; y) = log(1 + exp(-y x))`` with y = 1 for the second
    class and -1 for the first; for K classes a node has K intercepts and coefficient vectors, x_k is the predictor of
    class k, and ``l(x; k) = log sum_j exp(x_j) - x_k``.

    Parameters
    ----------
    loss : str, class or callable, optional
        Another loss of classes, given as in `GraphRegressor`. "HingeLoss" and "SquaredHingeLoss" take two classes and
        have no ``predict_proba``. "MultinomialLoss" has two coefficient vectors also where there are two classes.
    graph, strength, node, penalty, ridge, fit_intercept, unseen, method, gap, seconds, random_state
        See `GraphRegressor`; its attributes are those of this, too.

    Attributes
    ----------
    classes_ : array, shape (K,)
        The classes, sorted; of any type. Classes of which all rows have weight 0 are none.
    coef_ : array, shape (n, d), or (n, K, d) of a multinomial loss
    intercept_ : array, shape (n,), or (n, K)

    Examples
    --------
    >>> X, y, county = np.array([[0.0], [1.0], [0.0], [1.0]]), ["no", "yes", "no", "yes"], ["a", "a", "b", "b"]
    >>> model = GraphClassifier([("a", "b")], strength=0.05).fit(X, y, node=county)
    >>> model.predict([[1.0]], node=["a"])
    array(['yes'], dtype='<U3')
    """

    loss: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.loss is None or _tried(self.loss, 3) is not None
        return tags

    def _family(self) -> Any:
        if self.loss is not None:
            return self.loss
        return "LogisticLoss" if len(self.classes_) == 2 else "MultinomialLoss"

    def _coded(self, y: Array) -> Array:
        assert_all_finite(y, input_name="y", estimator_name=type(self).__name__)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"GraphClassifier needs rows of two classes or more, got one class, {self.classes_.tolist()}"
            )
        if len(self.classes_) > 2 and not self.__sklearn_tags__().classifier_tags.multi_class:
            raise DataError(
                f"Only binary classification is supported by loss={self.loss!r}. The type of the target is multiclass: "
                f"{self.classes_.tolist()}; leave loss= out"
            )
        return codes

    def decision_function(self, X: Any, *, node: Any = None) -> Array:
        """The linear predictors: of two classes (M,), positive where the second is the likelier one; else (M, K).

        Returns
        -------
        array of float
        """
        link = self._link(X, node)
        return link[:, 1] - link[:, 0] if link.shape[1:] == (2,) else link

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, *, node: Any = None) -> Array:
        """The probability of each class, (M, K).

        Returns
        -------
        array of float
        """
        p = self._response(self._link(X, node))
        return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p

    def predict(self, X: Any, *, node: Any = None) -> Array:
        """The likeliest class of each row, from the model of its node.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, shape (M, d)
        node : sequence of M labels, optional
            As in ``fit``.

        Returns
        -------
        array, shape (M,)

        Raises
        ------
        DataError
            At a node that has no model, with its row; see ``unseen``.
        """
        link = self.decision_function(X, node=node)
        return self.classes_[(link > 0).astype(np.intp) if link.ndim == 1 else link.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node: Any = None) -> float:
        """The share of rows whose class is predicted: scikit-learn's ``accuracy_score``.

        Returns
        -------
        float
        """
        refuse_masks(y=y, sample_weight=sample_weight)
        return accuracy_score(y, self.predict(X, node=node), sample_weight=sample_weight)
