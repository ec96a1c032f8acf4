"""Regressions of means, of counts and of quantiles, and classification, at the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, d2_pinball_score, d2_tweedie_score, r2_score
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from .. import checks
from ..catalogue import named
from ..errors import DataError, GraphregError
from ..inputs import NodeData
from ..terms import Array
from ..terms.losses import AbstractLoss
from ..tuning import is_probabilistic
from .base import AbstractGraphEstimator
from .given import ALL, FLOATS, is_numbers, loss_of, refuse_masks


class AbstractGraphRegressor(RegressorMixin, AbstractGraphEstimator):
    """An estimator of numbers."""

    def _coded(self, y: Array) -> Array:
        try:
            return check_array(y, ensure_2d=False, input_name="y", estimator=self, **FLOATS)
        except ValueError as error:
            if not is_numbers(y):
                own = f"the target holds text, and {type(self).__name__} takes numbers"
                raise DataError(f"{own}; GraphClassifier takes text, as classes ({error})") from None
            raise

    def predict(self, X: Any, *, node: Any = None) -> Array:
        """The expectation of the target of each row, from the model of its node.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, shape (M, d)
        node : sequence of M labels, optional
            As in ``fit``.

        Returns
        -------
        array of float, shape (M,)

        Raises
        ------
        DataError
            At a node that has no model, with its row; see ``unseen``.
        """
        return self._response(self._link(X, node))


@dataclass(repr=False, eq=False, kw_only=True)  # makes the constructor, as scikit-learn wants it
class GraphRegressor(AbstractGraphRegressor):
    """Regression at the nodes of a graph.

    Node i has a model of its own, an intercept b_i and coefficients w_i; along the edges models are pulled together.
    With v_r the weights of the rows at node i and V_i their sum, A_e the weights of the edges e = (i, j),

        minimise    sum_i 1/V_i sum_(r at i) v_r l(b_i + x_r'w_i; y_r)
                  + strength sum_e A_e phi((b_i, w_i) - (b_j, w_j))  +  ridge sum_i 1/2 ||w_i||^2,

    over the models of all nodes, those without rows included; l(x; y) = 1/2 (x - y)^2 by default. With phi = ||.||_2,
    the network lasso, models of neighbours may become equal. The intercepts have no ridge, and are part of the
    differences along edges. The answer is certified: ``solution_`` bounds the optimum from both sides, and where the
    bounds are further apart than ``gap`` asks a ConvergenceWarning says so.

    Parameters
    ----------
    graph : Graph, networkx.Graph, scipy sparse adjacency, DataFrame of weights or sequence of edges, optional
        Its nodes are the labels that rows may have. Without a graph every node is fitted by itself; without nodes there
        is one model for all rows.
    strength : float
        How strongly neighbours are pulled together, in units of the loss: at 0 there are no edges, and from some value
        on all models of a component are equal (``gr.strength_max(estimator.problem_)``). The default is a place to
        begin, and no recommendation: search for it.
    node : column name or position, optional
        The column of X that holds the labels; it is no feature. By default they are given to ``fit``, ``predict`` and
        ``score`` as ``node=``.
    penalty : str or Penalty
        phi, by the name of its class or as an object: "L2", "L1", "LInf", "SquaredL2", ``gr.HuberNorm(0.5)``.
    loss : str, class or callable, optional
        l, by its name or class, or a function of NodeData: "HuberLoss", ``functools.partial(gr.HuberLoss, delta=2.0)``.
    ridge : float
        Why there is one: without it a node with few rows has many models that are optimal.
    fit_intercept : bool
    unseen : {"error", "pooled"}
        What is predicted at a node that has no model: one that the graph lacks, or one that no path joins to rows.
        "pooled" is the best single model (b, w) for all nodes: b_i = b and w_i = w in the formula.
    method : AbstractMethod, optional
        By default that of `graphreg.path`, Auto, but Exact for few rows of a loss with kinks.
    gap : float
        The relative gap that has to be proved, see `Problem.solve`. At the default or below, a certified answer is then
        refined: by up to 300 rounds of PrimalDual with Newton steps, towards a gap of 1e-14, within ``seconds``. So
        coefficients usually have seven digits or more, and a row of weight 2 is as good as a row given twice. ``gap_``
        says what was proved in the end. A larger gap, 1e-4 say, is met and no more: that is faster.
    seconds : float, optional
        A budget of time for each solve, refinement included.
    random_state : int or RandomState, optional
        Of methods that draw random numbers.

    Attributes
    ----------
    nodes_ : tuple of hashables
        All nodes, in the order of the graph.
    coef_ : array, shape (n, d)
        The coefficients, one row per node.
    intercept_ : array, shape (n,)
    solution_ : Solution
        The answer with its certificate: ``solution_.clusters()``, ``solution_.table()``, ``solution_.summary()``.
    problem_ : Problem
        With the Parameter "strength", so that ``gr.path`` and ``gr.cross_validate`` take it.
    certified_ : bool
        Whether the relative gap is proved to be at most ``gap``.
    gap_ : float
        The relative gap that is proved; inf where none is.
    reached_ : array of bool, shape (n,)
        Whether edges join a node to one that has rows; others have no model.
    by_node_ : bool
        Whether rows had nodes.
    pooled_coef_, pooled_intercept_, pooled_solution_
        The single model, where ``unseen="pooled"``; else None.
    n_features_in_, feature_names_in_
        Of X as it was given, with the column of the nodes.

    Notes
    -----
    Features are stored densely: a sparse X is converted, and takes 8 bytes for each of its entries, zeros included. A
    pickled estimator holds the rows that it was fitted on, since its certificate speaks of them.

    Examples
    --------
    >>> X, y, county = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0.0, 1.0, 0.2, 1.2]), ["a", "a", "b", "b"]
    >>> model = GraphRegressor([("a", "b"), ("b", "c")], strength=0.05).fit(X, y, node=county)
    >>> model.nodes_, model.certified_
    (('a', 'b', 'c'), True)
    >>> model.predict([[1.0]], node=["c"]).shape
    (1,)
    """

    loss: Any = "SquaredLoss"

    def _family(self) -> Any:
        return self.loss

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node: Any = None) -> float:
        """R^2, the share of the variance of y that is explained: scikit-learn's ``r2_score``.

        Returns
        -------
        float
        """
        refuse_masks(y=y, sample_weight=sample_weight)
        return r2_score(y, self.predict(X, node=node), sample_weight=sample_weight)


class GraphPoissonRegressor(AbstractGraphRegressor):
    """Poisson regression of counts at the nodes of a graph, with a logarithmic link.

    The problem is that of `GraphRegressor` with ``l(x; y) = exp(x) - y x`` for y >= 0: the expected count of a row at
    node i is exp(b_i + x_r'w_i). For counts y_r over exposures t_r fit y_r / t_r with ``sample_weight=t``.

    Parameters
    ----------
    graph, strength, node, penalty, ridge, fit_intercept, unseen, method, gap, seconds, random_state
        See `GraphRegressor`; its attributes are those of this, too.

    Examples
    --------
    >>> X, y, county = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([1.0, 3.0, 2.0, 4.0]), ["a", "a", "b", "b"]
    >>> model = GraphPoissonRegressor([("a", "b")], strength=0.05).fit(X, y, node=county)
    >>> bool((model.predict(X, node=county) > 0).all())
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _family(self) -> Any:
        return "PoissonLoss"

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node: Any = None) -> float:
        """D^2, the share of the Poisson deviance that is explained: scikit-learn's ``d2_tweedie_score`` of power 1.

        Returns
        -------
        float
        """
        refuse_masks(y=y, sample_weight=sample_weight)
        return d2_tweedie_score(y, self.predict(X, node=node), sample_weight=sample_weight, power=1)


@dataclass(repr=False, eq=False, kw_only=True)  # makes the constructor, as scikit-learn wants it
class GraphQuantileRegressor(AbstractGraphRegressor):
    """Quantile regression at the nodes of a graph.

    The problem is that of `GraphRegressor` with ``l(x; y) = max(q (y - x), (q - 1) (y - x))``, q the quantile.

    Parameters
    ----------
    quantile : float
        In (0, 1); the median by default.
    graph, strength, node, penalty, ridge, fit_intercept, unseen, method, gap, seconds, random_state
        See `GraphRegressor`; its attributes are those of this, too.

    Examples
    --------
    >>> X, y, county = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0.0, 1.0, 0.2, 1.2]), ["a", "a", "b", "b"]
    >>> GraphQuantileRegressor([("a", "b")], quantile=0.9).fit(X, y, node=county).certified_
    True
    """

    quantile: float = 0.5

    def _family(self) -> Any:
        return partial(named("loss", "QuantileLoss"), tau=checks.inside("(0, 1)")(self.quantile, "quantile"))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node: Any = None) -> float:
        """D^2, the share of the pinball loss that is explained: scikit-learn's ``d2_pinball_score``.

        Returns
        -------
        float
        """
        refuse_masks(y=y, sample_weight=sample_weight)
        return d2_pinball_score(y, self.predict(X, node=node), sample_weight=sample_weight, alpha=self.quantile)


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
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise DataError(f"{error} GraphRegressor takes numbers, and GraphPoissonRegressor counts.") from None
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
