"""The base of all estimators: parameters, fitting, the node of each row, linear predictors."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight as weights_of  # pyright: ignore[reportPrivateUsage]
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .. import checks
from ..base.messages import did_you_mean, look_alike, other_types, retyped
from ..errors import DataError
from ..inputs import Graph, NodeData
from ..methods import AbstractMethod, Exact, PrimalDual
from ..problem import RAISES, Problem
from ..running import Budget, Solution, solve
from ..terms import Array
from ..terms.losses import AbstractSmoothLoss
from ..tuning import usual_method
from .given import ALL, brief, column_at, loss_of, matched, pooled, problem_of, refuse_masks, rows_of

UNUSABLE = ("failed", "infeasible")  # there is no point that could be given with a warning
UNSEEN = ("error", "pooled")
FEW = 4000  # rows up to which `Exact` costs no more than rounds (measured: 1,000 to 8,000 rows of 6 features)
REMEDY = "fit with unseen='pooled' to predict such rows by the best single model of all nodes"

# Measured with 200 to 20,000 rows, four losses and five methods: coefficients that a gap of 1e-6 leaves open by up to
# 2e-3 are within 1e-8 of the optimum afterwards.
AIM = 1e-14  # relative gap: of the order of what rounding lets one prove
ROUNDS = 300  # at most, where that gap cannot be proved
USUAL = 1e-6  # the default of ``gap``; whoever asks for a larger one wants no more than that

HINT = " Here ridge= reaches all but the intercepts: edges to other nodes hold these, or fit_intercept=False."


@dataclass(repr=False, eq=False)  # makes the constructor, as scikit-learn wants it
class AbstractGraphEstimator(BaseEstimator, ABC):
    """An estimator whose parameters, its fields, describe a problem. Its kinds say which loss it has, how targets are
    coded, and what a prediction is."""

    graph: Any = None
    strength: float = 1.0
    _: KW_ONLY
    node: Any = None
    penalty: Any = "L2"
    ridge: float = 1e-3
    fit_intercept: bool = True
    unseen: str = "error"
    method: Any = None
    gap: float = 1e-6
    seconds: float | None = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The estimator as scikit-learn prints it, a graph of many edges in brief."""
        kind = type(type(self).__name__, (type(self),), {"__repr__": BaseEstimator.__repr__})
        shown = {
            name: brief(value) if name == "graph" else value for name, value in self.get_params(deep=False).items()
        }
        return BaseEstimator.__repr__(kind(**shown), N_CHAR_MAX)

    # ---- what the kinds say ----------------------------------------------------------------------------------------
    @abstractmethod
    def _family(self) -> Any:
        """The name or class of the loss, or a function that makes one of the data."""

    @abstractmethod
    def _coded(self, y: Array) -> Array:
        """The targets of the rows that count, as the loss takes them."""

    # ---- fitting ---------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, node: Any = None) -> Self:
        """Fit the models of all nodes, and certify them.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, shape (M, d)
            With the column of the nodes, where the parameter ``node`` names one.
        y : array, shape (M,)
        sample_weight : array, shape (M,), optional
            A row of weight 0 is as if it were not there.
        node : sequence of M labels, optional
            The node of each row.

        Returns
        -------
        self

        Raises
        ------
        ModelError, GraphError, DataError
            For a parameter, a graph, or rows that cannot be used; the message names the parameter, the edge, the node
            or the row. All are ValueErrors.
        InfeasibleError, FailedError
            Where there is no answer that could be given. Of any other that is not certified a ConvergenceWarning says
            why, and what to do. A UserWarning counts the nodes of the graph that have rows and no
            edges, are probably misspelt, or, where they are more than half, have no rows.
        """
        self._check_parameters()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        refuse_masks(y=y, sample_weight=sample_weight)
        rows = rows_of(self, X, node, reset=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(rows.X, y)
        if rows.labels is None and self.graph is not None:
            raise DataError(
                "there is a graph, and nothing says at which node a row is; give fit the labels as node=, or name the "
                "column of X that holds them, as in node='county'"
            )
        weights = weights_of(sample_weight, rows.X, dtype=np.float64, ensure_non_negative=True)
        counting = np.flatnonzero(weights)
        labels = [ALL] * len(y) if rows.labels is None else rows.labels
        names = getattr(self, "feature_names_in_", None)  # where the input has names
        graph = None if rows.labels is None or not self.strength else matched(self, labels, counting)
        data = NodeData.from_arrays(
            rows.X[counting],
            self._coded(y[counting]),
            [labels[r] for r in counting],
            weights[counting],
            features=None if names is None else [name for k, name in enumerate(names) if k != rows.place],
            intercept=self.fit_intercept,
        )
        self._solve(data, rows.labels is not None, graph)
        return self

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        for name, check in (
            ("strength", checks.nonnegative),
            ("ridge", checks.nonnegative),
            ("fit_intercept", checks.switch),
            ("unseen", checks.one_of(*UNSEEN)),
        ):
            check(getattr(self, name), name, owner=owner)

    def _solve(self, data: NodeData, by_node: bool, graph: Graph | None) -> None:
        loss = loss_of(self._family(), data)
        self.problem_: Problem = problem_of(loss, graph, self.penalty, self.strength, self.ridge)
        self.solution_: Solution = self._solution(self.problem_)
        self.certified_ = self.solution_.status == "certified"
        self.gap_ = self.solution_.certificate.relative_gap
        self.by_node_ = by_node
        self.nodes_: tuple[Hashable, ...] = tuple(self.solution_.labels)
        form = self.solution_.form
        self.reached_ = np.isin(form.component, form.component[form.samples[0].node])
        self.coef_, self.intercept_ = self._read(self.solution_)
        self.pooled_solution_: Solution | None = None
        self.pooled_coef_: Array | None = None
        self.pooled_intercept_: Array | None = None
        if self.unseen == "pooled":
            self.pooled_solution_ = self._solution(pooled(loss, self.ridge, len(self.nodes_)))
            coef, intercept = self._read(self.pooled_solution_)
            self.pooled_coef_, self.pooled_intercept_ = coef[0], intercept[0]

    def _solution(self, problem: Problem) -> Solution:
        """The answer to a problem; with a warning where it is not certified."""
        seed = None if self.random_state is None else check_random_state(self.random_state).randint(2**31 - 1)
        solution = problem.solve(
            _usual_method(problem) if self.method is None else copy(self.method),  # methods remember what they compute
            gap=self.gap,
            seconds=self.seconds,
            seed=seed,
            progress=False,
            on_failure="return",
        )
        solution = refined(problem, solution, self.gap, self.seconds)
        if solution.status in UNUSABLE:
            raise RAISES[solution.status](solution.message, solution)
        if solution.status != "certified":
            hint = HINT if solution.status == "unattained" else ""
            said = f"{type(self).__name__} is not certified ({solution.status}): {solution.message}{hint}"
            warnings.warn(said, ConvergenceWarning, stacklevel=4)
        return solution

    def _read(self, solution: Solution) -> tuple[Array, Array]:
        """Coefficients (n, d) and intercepts (n,) by node; of several classes (n, classes, d) and (n, classes)."""
        width = solution.form.samples[0].width
        w = solution.coef.reshape(len(solution.labels), -1, width)  # by node, feature and class
        w = w[:, :, 0] if width == 1 else np.moveaxis(w, 1, 2)
        if not self.fit_intercept:
            return w.copy(), np.zeros(w.shape[:-1])
        return w[..., 1:].copy(), w[..., 0].copy()

    # ---- predicting ------------------------------------------------------------------------------------------------
    def _link(self, X: Any, node: Any) -> Array:
        """The linear predictors of rows, (M,) or (M, classes)."""
        check_is_fitted(self)
        rows = rows_of(self, X, node, reset=False)
        at, coef, intercept = self._places(rows.labels, len(rows.X)), self.coef_, self.intercept_
        if self.pooled_coef_ is not None and self.pooled_intercept_ is not None:
            coef = np.concatenate([coef, self.pooled_coef_[None]])
            intercept = np.concatenate([intercept, self.pooled_intercept_[None]])
        return np.einsum("md,m...d->m...", rows.X, coef[at]) + intercept[at]

    def _places(self, labels: list[Hashable] | None, count: int) -> Array:
        """The position of each row's node among the nodes; their number where it has no model of its own, and rows of
        such nodes are to have the pooled one."""
        name = type(self).__name__
        if labels is None and self.by_node_:
            raise DataError(
                f"this {name} was fitted with nodes, and nothing says at which node a row is; give the labels as node= "
                "(a score or a search passes them on with metadata routing, see docs/from-scikit-learn.md), or name "
                "the column of X that holds them, as in node='county'"
            )
        if labels is None:
            return np.zeros(count, dtype=np.intp)
        if not self.by_node_:
            raise DataError(f"this {name} was fitted without nodes; leave node= out, or give fit the labels, too")
        known: dict[Hashable, int] = {label: k for k, label in enumerate(self.nodes_) if self.reached_[k]}
        lost = [label for label in dict.fromkeys(labels) if label not in known]
        for label in other_types(lost, self.nodes_) or (lost if self.pooled_solution_ is None else []):
            raise DataError(f"row {labels.index(label)} is at {label!r}, {self._why(label)}")
        return np.array([known.get(label, len(self.nodes_)) for label in labels], dtype=np.intp)

    def _why(self, label: Hashable) -> str:
        """The reason why a node has no model of its own."""
        if label in self.nodes_:
            return f"a node that no path of edges joins to one with rows; {REMEDY}"
        if other := other_types([label], self.nodes_):
            return f"which is no node{look_alike(label, self.nodes_)}; {retyped(label, other[label], column_at(self))}"
        return f"which is none of the {len(self.nodes_)} nodes ({REMEDY}){did_you_mean(label, self.nodes_)}"

    def _response(self, link: Array) -> Array:
        """The expected targets at linear predictors."""
        return self.solution_.form.samples[0].loss.response(link)


def _usual_method(problem: Problem) -> AbstractMethod:
    """The usual method of paths, but `Exact` for few rows of a loss with kinks: it finds vertices to the last digit,
    so that a row of weight 2 and a row given twice are the same."""
    kinks = bool(problem.form.losses_beside(AbstractSmoothLoss))
    return Exact() if kinks and problem.form.samples[0].loss.data.n_samples <= FEW else usual_method(problem)


def refined(problem: Problem, solution: Solution, gap: float, seconds: float | None) -> Solution:
    """A certified answer with the parameters and the bounds that more rounds give, where those prove a smaller gap.

    Trace, rounds and ledger stay those of the method that was asked for.
    """
    method, known = PrimalDual(), solution.certificate
    left = None if seconds is None else seconds - solution.seconds
    enough = gap > USUAL or solution.status != "certified" or solution.own is not None or known.holds(AIM)
    if enough or method.missing(solution.form) or (left is not None and left <= 0.0):
        return solution
    start = (known.w, known.dual_point.flows)
    budget = Budget(AIM, ROUNDS, left, start, progress=False, seed=solution.seed, known=known)
    found = solve(solution.form, method, budget, problem._compiler)  # pyright: ignore[reportPrivateUsage]
    if found.certificate.contradiction:  # a term of the user's breaks a law, so that the bounds before do not hold
        return found
    if not found.certificate.relative_gap < known.relative_gap:
        return solution
    said = f"{solution.message} Refined by {found.rounds} rounds of PrimalDual."
    return replace(solution, certificate=found.certificate, message=said, seconds=solution.seconds + found.seconds)
