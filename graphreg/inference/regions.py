"""Confidence regions from an estimate and its covariance, wherever these come from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .. import checks
from ..base.clock import in_time
from ..base.display import Html, Shown, Suggesting
from ..base.lazy import stats
from ..base.messages import count, did_you_mean, few
from ..base.shortcuts import shortcut
from ..base.tables import ResultWithAssumptions, Table, whole_html
from ..errors import DataError, MissingError
from ..form import Form
from ..network import Ledger
from ..terms import Array
from .given import form_given
from .hypotheses import linear, position, written
from .local import SINGULAR, UnfitError, data_fits, determined, names_of, only, spared

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EMPTY = "the node has no samples"
ALONE = "the data of the node leave it open"  # of a coefficient without an interval
INDEFINITE = 1e-8  # so far below 0 an eigenvalue, in the same units, is no rounding
POINTS = 200  # of an ellipse
FEW = 3  # nodes left out that are named in a sentence
LEVEL = checks.inside("(0, 1)", "a number between 0 and 1, for instance 0.95")


@dataclass(frozen=True)
class WaldTest(ResultWithAssumptions):
    """The Wald test of R theta = r: ``statistic``, (R theta - r)' (R V R')^-1 (R theta - r), which is chi-square
    with ``df`` degrees of freedom, the number of rows of R, where they are true; ``p_value``; ``hypotheses`` as they
    read."""

    statistic: float
    df: int
    p_value: float
    hypotheses: tuple[str, ...]

    def _lines(self) -> list[str]:
        head = f"Wald test of {', '.join(self.hypotheses)}"
        found = f"chi-square {self.statistic:.6g} with {self.df} df, p-value {self.p_value:.4g}"
        return [head, found]

    def __repr__(self) -> str:
        return f"<WaldTest chi-square {self.statistic:.4g}, df {self.df}, p {self.p_value:.3g}>"


@dataclass(frozen=True, eq=False)
class ConfidenceRegion(Shown):
    """An estimate that is normal about the true coefficients theta* with a known covariance V:

        { theta : (estimate - theta)' V^-1 (estimate - theta) <= chi2_d(level) }.

    Parameters
    ----------
    estimate : Series or array (d,)
        By coefficient; x0, x1, ... where there are no names.
    covariance : DataFrame or array (d, d)
        V, positive semidefinite, and positive for each coefficient. Where it is singular, as of multinomial losses,
        whose classes have a shift in common, intervals and tests of what has an error are there, and the joint
        region is refused.
    title : str
    assumed : tuple of str
        What it rests on; it is printed with it.
    shifts : mapping
        Estimates of what is left of biases, in standard errors (of the direction in which they are largest).
    ledger : Ledger, optional
        What the run has sent, with what the region itself cost, as ``inference``.

    Raises
    ------
    DataError
        For shapes that do not fit, and what is no covariance.
    """

    estimate: pd.Series
    covariance: pd.DataFrame
    title: str = "confidence region"
    assumed: tuple[str, ...] = ()
    shifts: Mapping[str, float] = field(default_factory=dict)
    ledger: Ledger | None = None

    def __post_init__(self) -> None:
        given: Any = self.estimate
        values = np.asarray(given, dtype=float)
        d = values.shape[0] if values.ndim == 1 else 0
        if d == 0:
            raise DataError(f"an estimate has one number per coefficient, got the shape {values.shape}")
        index = given.index if isinstance(given, pd.Series) else pd.Index([f"x{j}" for j in range(d)])
        V: Any = self.covariance
        if isinstance(V, pd.DataFrame) and set(V.index) == set(index) == set(V.columns):
            V = V.loc[index, index]
        V = np.asarray(V, dtype=float)
        _check_covariance(values, V, list(index))
        object.__setattr__(self, "estimate", pd.Series(values, index=index, name="estimate"))
        object.__setattr__(self, "covariance", pd.DataFrame((V + V.T) / 2.0, index=index, columns=index))

    @property
    def names(self) -> list[Any]:
        """The coefficients; (feature, class) for multinomial losses."""
        return list(self.estimate.index)

    @property
    def std_error(self) -> pd.Series:
        return pd.Series(np.sqrt(np.diag(self.covariance)), index=self.estimate.index, name="std_error")

    def intervals(self, level: float = 0.95) -> Table:
        """The interval of each coefficient alone: estimate, std_error, low, high; estimate +- z((1 + level)/2)
        std_error."""
        LEVEL(level, "level", DataError)
        wide = stats.norm.ppf((1.0 + level) / 2.0) * self.std_error
        columns = {"estimate": self.estimate, "std_error": self.std_error}
        frame = pd.DataFrame({**columns, "low": self.estimate - wide, "high": self.estimate + wide})
        return Table.of(frame, f"{self.title}: {100 * level:g}% intervals, each by itself", self.assumed)

    def contains(self, theta: Any, level: float = 0.95) -> bool:
        """True where the joint region of all coefficients contains theta: an array in their order, a Series or a
        mapping by name."""
        LEVEL(level, "level", DataError)
        off = self.estimate.to_numpy() - self._values(theta)
        return bool(off @ self._solve(np.eye(len(off)), off) <= stats.chi2.ppf(level, len(off)))

    def test(self, hypothesis: Any, value: Any = None) -> WaldTest:
        """Wald's test of linear hypotheses R theta = r.

        Parameters
        ----------
        hypothesis : mapping or (q, d) array
            Values by combination of names, ``{"x1": 0, "x2 - 2 * x3": 1}``, or R.
        value : (q,) array, optional
            r, with a matrix R; 0 by default.

        Raises
        ------
        DataError
            For unknown names, shapes that do not fit, and rows that depend on each other.
        """
        R, r, read = linear(hypothesis, value, self.names)
        off = R @ self.estimate.to_numpy() - r
        statistic = float(off @ self._solve(R, off))
        return WaldTest(statistic, len(r), float(stats.chi2.sf(statistic, len(r))), read, assumed=self.assumed)

    def ellipse(self, a: Hashable, b: Hashable, level: float = 0.95) -> pd.DataFrame:
        """The edge of the joint region of two coefficients (chi-square with 2 df), as points in order."""
        LEVEL(level, "level", DataError)
        j, k = position(a, self.names), position(b, self.names)
        if j == k:
            raise DataError(f"an ellipse is of two coefficients, got {a!r} twice")
        self._solve(np.eye(len(self.names))[[j, k]], np.zeros(2))
        root = np.linalg.cholesky(self.covariance.to_numpy()[np.ix_([j, k], [j, k])])
        angle = np.linspace(0.0, 2.0 * np.pi, POINTS)
        round_ = np.sqrt(stats.chi2.ppf(level, 2)) * np.column_stack([np.cos(angle), np.sin(angle)])
        points = self.estimate.to_numpy()[[j, k]] + round_ @ root.T
        return pd.DataFrame(points, columns=self.estimate.index[[j, k]])

    def plot(self, a: Hashable, b: Hashable, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """A picture of the joint region of two coefficients; see `graphreg.plots.plot_region`."""
        return shortcut("ConfidenceRegion.plot")(self, a, b, level, ax)

    def _solve(self, R: Array, off: Array) -> Array:
        """(R V R')^-1 off."""
        V = R @ self.covariance.to_numpy() @ R.T
        flat = flat_direction(V)
        if flat is not None:
            raise DataError(
                f"the covariance is singular: it has no variance along {written(flat @ R, self.names)}; ask for the "
                "intervals, or test fewer combinations at once"
            )
        return np.linalg.solve(V, off)

    def _values(self, theta: Any) -> Array:
        if isinstance(theta, (pd.Series, Mapping)):
            given = dict(theta.items())
            for name in given:
                position(name, self.names)
            if lacking := [name for name in self.names if name not in given]:
                raise DataError(f"there is no value for the coefficient {lacking[0]!r}")
            theta = [given[name] for name in self.names]
        values = np.asarray(theta, dtype=float)
        if values.shape != (len(self.names),) or not np.isfinite(values).all():
            raise DataError(
                f"theta must be {len(self.names)} finite numbers, one per coefficient, got an array of shape "
                f"{values.shape}" + (" with NaN or infinite entries" if values.shape == (len(self.names),) else "")
            )
        return values

    def __str__(self) -> str:
        return str(self.intervals())

    def _html(self) -> Iterable[Html]:
        yield whole_html(self.intervals())

    def __repr__(self) -> str:
        return f"<ConfidenceRegion of {len(self.names)} coefficients: {self.title}>"


class LocalRegions(dict[Hashable, ConfidenceRegion], Suggesting):
    """The regions of the nodes by label: a dict that prints as one line and suggests labels for those that it lacks.
    ``left_out`` has the nodes whose data give no region, each with the reason, which asking for it raises; ``reasons``
    has all coefficients without an interval, those of these nodes included, by node and coefficient."""

    def __init__(
        self, regions: Mapping[Hashable, ConfidenceRegion], left_out: Mapping[Hashable, str], whole: Iterable[Any]
    ) -> None:
        super().__init__(regions)
        self.left_out = dict(left_out)
        known = {(label, name) for label, x in self.items() for name in x.names}
        self.reasons: dict[tuple[Hashable, Hashable], str] = {
            key: ALONE if key[0] in self else self.left_out.get(key[0], EMPTY) for key in whole if key not in known
        }

    def __missing__(self, label: Hashable) -> ConfidenceRegion:
        if label in self.left_out:
            raise DataError(self.left_out[label])
        if any(label == node for node, _ in self.reasons):
            raise MissingError(f"no region at {label!r}: {EMPTY}")
        raise MissingError(f"no region at {label!r}: it is no node with data{did_you_mean(label, self)}")

    def _without(self) -> str:
        """The nodes and the coefficients left out, in a sentence; empty where there is none."""
        nodes = list(map(repr, self.left_out))
        single = [f"{name} of {label!r}" for label, name in self.reasons if label in self]
        said = [f"no intervals of {_few(nodes)}: {next(iter(self.left_out.values()))}"] if nodes else []
        return "; ".join([*said, *([f"no intervals of {_few(single)}: {ALONE}"] if single else [])])

    def table(self, level: float = 0.95) -> Table:
        """The intervals of all nodes below each other, by node and coefficient, see `ConfidenceRegion.intervals`; those
        that have none are in ``reasons``."""
        if not self:
            raise DataError(self._without() or "there are no estimates: no node has data")
        each = {(label, name): row for label, x in self.items() for name, row in x.intervals(level).iterrows()}
        index = pd.MultiIndex.from_tuples(each, names=["node", "coefficient"])
        frame = pd.DataFrame(list(each.values()), index=index)
        independent = "the samples of each node are independent; normality as their numbers grow"
        title = f"each node's own estimates: {100 * level:g}% intervals, each by itself"
        return Table.of(frame, title, (independent, *next(iter(self.values())).assumed[1:]), self._without())

    def __repr__(self) -> str:
        each = f": print(regions[{next(iter(self))!r}]), ..." if self else ""
        return f"<regions of {count(len(self), 'node')}{each}{f'; {self._without()}' * bool(self.left_out)}>"


def _few(things: list[str]) -> str:
    return few(things, FEW) + " (see reasons)" * (len(things) > FEW)


@in_time
def local_regions(problem: Any, covariance: str = "HC3", *, seconds: float | None = None) -> LocalRegions:
    """The standard errors, confidence intervals and region of each node's own estimate, from its data alone, by label,
    in the units of the columns where features were standardised; see `local_fits`. Coefficients that the data leave
    open, as of a column that is the same in all rows of a node, or of one that others make up, are left out there, and
    said so: ``regions.reasons`` has them. So are nodes whose data determine no coefficient or no errors, such as those
    of separable classes, which a ridge only makes finite, and nodes whose estimate is not proved to be near its
    minimum: ``regions.left_out`` has the reason of each.

    Parameters
    ----------
    problem : Problem, the fit of `fit`, Solution, a loss, or a sum of terms
        Its losses and smooth node penalties are used; edges between nodes are left out.
    covariance : {"HC3", "HC4", "HC2", "HC1", "HC0", "model"}
        Of the score; HC0 to HC4 are right whatever the noise, "model" where the loss is minus a log-likelihood.
    seconds : float, optional
        A budget of time. Before its end there is nothing to give: Ctrl-C raises KeyboardInterrupt.

    Raises
    ------
    MethodError
        For losses that are not smooth.
    TermError
        Without losses at the nodes, and with losses of other rows.
    DataError
        Where the data of no node determine its coefficients and their errors; and by ``regions[label]`` for a node left
        out.
    BudgetError
        Where the time is up.

    Examples
    --------
    >>> regions = gr.inference.local_regions(problem)
    >>> regions["a"].intervals().loc["rain", "estimate"].round(1)
    np.float64(1.0)
    >>> regions.table().shape
    (8, 4)
    """
    form = form_given(problem, "local_regions").frozen()
    nodes = np.unique(np.concatenate([block.node for block in form.at_nodes]))
    found, lost = spared(nodes, lambda part: _regions(only(form, part), covariance))
    if found is None:
        raise DataError(f"no node has a region: {'; '.join(list(dict.fromkeys(lost.values()))[:FEW])}")
    left_out = {form.labels[i]: lost[i] for i in sorted(lost)}
    return LocalRegions(found, left_out, product(form.space.index, names_of(form)))


def _regions(form: Form, covariance: str) -> dict[Hashable, ConfidenceRegion]:
    fits = data_fits(form)
    index, coef, known = names_of(form), form.space.in_units(fits.coef), determined(fits)
    V = form.space.covariance_in_units(fits.covariance(covariance))
    out = dict[Hashable, ConfidenceRegion]()
    for i in np.flatnonzero(fits.fitted):
        label, m, decided = form.labels[i], int(fits.counts[i]), known[i]
        assumed = (
            f"the {m} samples of the node are independent; normality as their number grows ({form.d} coefficients)",
            "the model is right: the loss times the sample weights is minus the log-likelihood (of squared losses: "
            "noise of variance 1 / weight)"
            if covariance == "model"
            else f"covariance {covariance}: the sandwich, whatever the variance of the noise",
            *["of the penalised coefficients: the bias of the node penalties is not counted"] * bool(fits.form.edges),
            fits.worth,
        )
        none = [f"{', '.join(map(str, index[~decided]))} left out: {ALONE}"] * (not decided.all())
        estimate, own = pd.Series(coef[i][decided], index=index[decided]), V[i][np.ix_(decided, decided)]
        try:
            out[label] = ConfidenceRegion(estimate, own, f"node {label!r}, its own estimate", (*assumed, *none))
        except DataError as error:
            raise UnfitError({int(i): str(error)}) from error
    return out


def flat_direction(V: Array) -> Array | None:
    """The combination of coefficients along which a symmetric positive semidefinite matrix vanishes, its largest
    entry 1; None where there is none."""
    diagonal = np.diag(V)
    if (diagonal <= 0.0).any():
        return np.eye(len(V))[int(np.argmin(diagonal))]
    size = np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(V / size[:, None] / size[None, :])
    if values[0] > SINGULAR * values[-1]:
        return None
    direction = np.where(np.abs(vectors[:, 0]) > 1e-4, vectors[:, 0] / size, 0.0)
    return direction / direction[np.argmax(np.abs(direction))]


def _check_covariance(estimate: Array, V: Array, names: list[Any]) -> None:
    d = len(names)
    if V.shape != (d, d):
        raise DataError(f"the covariance of {d} coefficients must have the shape {(d, d)}, got {V.shape}")
    if len(set(names)) < d:
        raise DataError(f"two coefficients have the same name in {names}")
    if not (np.isfinite(estimate).all() and np.isfinite(V).all()):
        raise DataError("the estimate and its covariance must be finite")
    if np.abs(V - V.T).max() > 1e-8 * np.abs(V).max():
        raise DataError("the covariance is not symmetric")
    if (np.diag(V) <= 0.0).any():
        name = names[int(np.argmin(np.diag(V)))]
        raise DataError(f"the covariance has variance 0 at the coefficient {name!r}; leave it out")
    size = np.sqrt(np.diag(V))
    if np.linalg.eigvalsh(V / size[:, None] / size[None, :])[0] < -INDEFINITE:
        raise DataError("the covariance is not positive semidefinite: some combination has a negative variance")
