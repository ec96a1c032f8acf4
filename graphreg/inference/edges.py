"""Tests of edges for equal parameters at both ends: a Wald test of w_i = w_j for every edge, from the local
estimates (graph-fused M-estimation, Section 3.2, (12) to (14))."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .. import checks
from ..base.clock import in_time
from ..base.lazy import stats
from ..base.messages import count, unknown_labels, warn
from ..base.tables import Table
from ..errors import DataError, GraphError, MethodError
from ..form import Form
from ..inputs import Graph
from ..terms import Array, feature_of
from .given import form_given, graph_given
from .local import COVARIANCES, LocalFits, data_fits, determined, left_open, local_fits, only, spared
from .wald import EndsUnderTest, Noise, Reference, degrees, noise_of, noiseless, wald

# ---- results and assumptions in sentences ----------------------------------------------------------------------------
RESTS = {
    "chow": "one noise variance at both nodes and at all their samples; exact where the noise is normal, a test for "
    "many samples where not",
    "robust": "the noise may vary from sample to sample; the degrees of freedom are estimated as if it did not",
    "HC0": "many samples per coefficient: chi-square rejects far too often where there are few",
    "HC1": "many samples per coefficient: chi-square rejects far too often where there are few",
    "HC2": "many samples per coefficient: chi-square rejects too often where there are few",
    "HC3": "many samples per coefficient: chi-square's tails are too light for very small p-values where there are few",
    "HC4": "many samples per coefficient: chi-square rejects too often where there are few",
    "model": "the loss is minus the log-likelihood of the data (a squared loss: noise of variance 1); wrong, not only "
    "rough, where it is not",
}
CORRECTED = {
    "bonferroni": "Bonferroni's correction: with chance {alpha:g} at most is any edge between equal nodes removed",
    "bh": "the correction of Benjamini and Hochberg: of the removed edges {alpha:g} at most are expected to join equal "
    "nodes (for tests that are independent or positively dependent)",
    "none": "no correction: each edge between equal nodes is removed with chance {alpha:g}",
}


@dataclass(frozen=True)
class TestOptions:
    """The correction, the level, whether the graph was given, and which coefficients are tested."""

    correction: str
    alpha: float
    given: bool
    what: str


def verdict(differ: int, tested: int, asked: TestOptions) -> str:
    """The verdict of the tests, in plain words."""
    after = f"after {CORRECTED[asked.correction].partition(':')[0]}"
    after = "without a correction for many tests" if asked.correction == "none" else after
    level = f"at the level {100 * asked.alpha:g}% {after}"
    if not differ and tested == 1:
        return f"At the one tested edge the two nodes do not differ, {level}. That does not prove them equal."
    if not differ:
        return f"At none of the {tested} tested edges do the two nodes differ, {level}. That does not prove them equal."
    head = f"At {differ} of the {tested} tested edges the two nodes differ, {level}."
    rest = tested - differ
    other = "other one" if rest == 1 else f"other {rest}"
    return head if not rest else f"{head} The samples do not tell the ends of the {other} apart."


def assumed(fits: LocalFits, used: Array, reference: Reference, untested: list[str], asked: TestOptions) -> list[str]:
    """The sentences under the table: ``used`` names the covariance of every edge that was tested."""
    out = ["the samples are independent, within a node and between nodes, and each node's own estimate is near normal"]
    out.append(fits.worth)
    for kind in dict.fromkeys(used.tolist()):
        many = int((used == kind).sum())
        out.append(f"{kind} ({many} edge{'s' if many > 1 else ''}): {RESTS[kind]}")
    if fits.form.edges:
        out.append(
            "the local estimates are biased by the node penalty: what is tested is that of the penalised parameters, "
            "which differ between nodes with equal parameters and different designs; of squared losses alone, as in "
            "edge_tests(gr.SquaredLoss(data), graph), Chow's test may be taken, which finds more"
        )
    if void := int((~(reference.residual_df > 0)).sum()):
        out.append(f"{count(void, 'edge')} with too few samples for the robust test: p-value 1, kept")
    for why, many in Counter(untested).most_common(NAMED):
        out.append(f"{count(many, 'edge')} not tested, kept: {why}")
    if len(rest := set(untested)) > NAMED:
        out.append(f"{len(rest) - NAMED} more reasons why edges are not tested, kept: see the column untested")
    if not asked.given:
        out.append("no graph was given: all pairs of nodes with data are tested")
    out.append(CORRECTED[asked.correction].format(alpha=asked.alpha))
    out.append("a kept edge is one whose ends were not told apart, which does not prove them equal")
    return out


# ---- the tests -------------------------------------------------------------------------------------------------------
KINDS = ("auto", "robust", "chow", *COVARIANCES)
CORRECTIONS = ("bonferroni", "bh", "none")
DOUBT = 0.2  # "auto": Chow's test where the residuals, of all nodes and of both ends, fit with a p-value above it
NAMED = 3  # reasons why edges are not tested that are said below the table
FEW = 5  # samples per coefficient, below which sizes are not what they should be


@in_time
def edge_tests(
    loss: Any,
    graph: Any = None,
    covariance: str = "auto",
    correction: str | None = "bonferroni",
    alpha: float = 0.05,
    features: Sequence[str] | None = None,
    *,
    seconds: float | None = None,
) -> Table:
    """A test of w_i = w_j for every edge (i, j), from the local estimates of its two nodes:

        W^2 = (w_i - w_j)' (Omega_i + Omega_j)^-1 (w_i - w_j),    Omega_i = H_i^-1 S_i H_i^-1

    (graph-fused M-estimation (13), with the sandwich in the place of H_i^-1, which is right for unit noise only).

    Parameters
    ----------
    loss : a loss, a sum of terms, a Problem, the fit of `fit`, or a Solution
        Its losses at the nodes and its smooth node penalties (a ridge) are used; penalties between nodes are left out.
    graph : networkx.Graph, Graph or sparse adjacency, optional
        Whose edges are tested; by default the graph of the penalties between nodes, and where there is none all pairs
        of nodes with data (the paper's "Local-ES").
    covariance : str
        "chow": one variance at both nodes, W^2 = p F with F(p, m_i + m_j - 2p) (Chow 1960), for squared losses; exact
        where the noise is normal. "robust": HC4 (HC3 for losses with several predictors per sample), judged by
        Hotelling's T^2 with estimated degrees of freedom: conservative, the more so the fewer samples. "auto":
        "chow" at the edges where the residuals of both nodes fit one variance, and those of all nodes a constant one
        within each (p-values above 0.2), and there is no node penalty, as the ridge of a `gr.fit` is one; "robust" at
        all others. "HC0" to "HC4", and "model", the paper's own (right
        where the loss is minus a log-likelihood with unit noise): judged by chi-square with p degrees of freedom,
        which needs many samples.
    correction : {"bonferroni", "bh", None}
        For the number of edges: Bonferroni's, that of Benjamini and Hochberg (1995), or none.
    alpha : float
        The level: an edge is removed where its adjusted p-value is below.
    features : sequence of str, optional
        Test the coefficients of these alone.
    seconds : float, optional
        A budget of time. Before its end there is nothing to give: Ctrl-C raises KeyboardInterrupt.

    Returns
    -------
    Table
        One row per edge, in the graph's order: tail, head, statistic (W^2), threshold (beyond it the edge is removed;
        with "bh" that of the last edge removed, or of the first one kept), df (p; of
        several classes their differences from the last are counted), residual_df (of the denominator;
        inf for chi-square), p_value, adjusted, covariance (what was used), separation (the length of w_i - w_j from
        which (15) holds, in the units of the columns), keep (equality is not rejected), untested (why the edge could
        not be tested, which names the node; empty where it was). Such edges have nan and are kept, and count in no
        correction: those of nodes without data, with separable classes, whose data leave a tested
        coefficient open (too few samples, collinear features), whatever a node penalty makes of these, whose estimate
        is not proved to be near its minimum, and those whose covariance is singular or that have no noise.

    Raises
    ------
    DataError
        Where no edge can be tested.
    MethodError
        For losses that are not smooth, and for a covariance that does not apply.
    TermError
        Without losses at the nodes, and with losses of other rows.
    GraphError
        For a graph without edges or with unknown nodes, and where there are several graphs and none was named.
    BudgetError
        Where the time is up.

    Examples
    --------
    >>> tests = gr.inference.edge_tests(gr.SquaredLoss(many), graph)
    >>> tests[["tail", "head", "keep"]].values.tolist()
    [['a', 'b', True], ['b', 'c', False], ['c', 'd', True]]
    """
    checks.one_of(*KINDS)(covariance, "covariance", MethodError)
    (checks.one_of(*CORRECTIONS) | None)(correction, "correction", MethodError)
    checks.fraction(alpha, "alpha", MethodError)
    form, ends, given, what = _read(loss, graph, features)
    nodes = np.unique(np.concatenate([block.node for block in form.at_nodes]))
    fits, lost = spared(nodes, lambda part: data_fits(only(form, part)))
    lost |= _open(fits, ends) if len(lost) < len(nodes) else {}
    lost |= {i: f"the node {form.labels[i]!r} has no data" for i in np.setdiff1d(np.arange(form.n), nodes).tolist()}
    with np.errstate(all="ignore"):  # what overflows is refused or tells nothing
        found = _without(ends, _of_nodes(ends, lost), lambda left: _heard(fits, left, covariance))
        if (found["untested"].to_numpy() != "").all():
            first = f"{ends.labels[ends.tail[0]]!r} - {ends.labels[ends.head[0]]!r}"
            raise DataError(f"no edge can be tested; the edge {first} cannot be tested: {found['untested'].iloc[0]}")
        return _table(fits, ends, found, TestOptions(correction or "none", float(alpha), given, what))


def _read(loss: Any, graph: Any, features: Sequence[str] | None) -> tuple[Form, EndsUnderTest, bool, str]:
    """The form of the losses, the edges as positions in it, whether they were given, and what is tested."""
    joined = None if graph is None else Graph.of(graph)
    if joined is not None and not joined.n_edges:
        raise GraphError("the graph has no edges to test; leave it out to test all pairs of nodes")
    form = form_given(loss, "edge tests", joined)
    joined = graph_given(form) if joined is None else joined
    if joined is None:
        tail, head = np.triu_indices(form.space.n_observed, 1)
        if not len(tail):
            raise DataError(f"the data have one node, {form.labels[0]!r}, and there is no pair to test")
    else:
        for said in unknown_labels("the graph", joined.labels, form.space.index):
            raise GraphError(said)
        place = np.array([form.space.index[label] for label in joined.labels])
        tail, head = place[joined.tail], place[joined.head]
    columns = form.space.select(features, "edge_tests")
    columns = np.arange(form.d) if columns is None else columns
    named = ", ".join(dict.fromkeys(feature_of(form.space.coordinates[j]) for j in np.sort(columns)))
    what = "all coefficients" if len(columns) == form.d else f"those of {named}"
    contrast, units = _contrast(form, columns), None
    if form.space.units is not None:  # the same rows in other units, mixed so that they stay well conditioned
        in_units = contrast @ form.space.in_units(np.eye(form.d)).T
        units = in_units @ np.linalg.pinv(contrast)
        contrast = np.linalg.solve(units, in_units)
    return form, EndsUnderTest(form.labels, tail, head, contrast, units), joined is not None, what


def _contrast(form: Form, columns: Array) -> Array:
    """The tested coefficients, (k, d): of a feature with several classes the differences from its last class, since a
    common shift of all classes means nothing."""
    names = [form.space.coordinates[j] for j in columns.tolist()]
    last = {feature_of(name): j for name, j in zip(names, columns.tolist(), strict=True)}
    identity, rows = np.eye(form.d), list[Array]()
    for name, j in zip(names, columns.tolist(), strict=True):
        other = last[feature_of(name)]
        if other == j and isinstance(name, tuple):
            continue
        rows.append(identity[j] if other == j else identity[j] - identity[other])
    return np.stack(rows)


def _warn_of_few(fits: LocalFits, ends: EndsUnderTest) -> None:
    scarce = np.unique(np.concatenate([ends.tail, ends.head]))
    scarce = scarce[fits.counts[scarce] < FEW * fits.form.d]
    if scarce.size:
        i, d = int(scarce[0]), fits.form.d
        more = f" (and {len(scarce) - 1} more nodes have fewer than {FEW * d})" if len(scarce) > 1 else ""
        warn(
            f"the node {fits.form.labels[i]!r} has {fits.counts[i]} samples for {d} coefficients{more}: below {FEW} "
            "per coefficient the sizes of edge tests are not assured, and HC0 to HC2 then reject far too often"
        )


# ---- the tests -------------------------------------------------------------------------------------------------------
NOISELESS = "both nodes are fitted without error, which leaves no noise to judge by; compare the estimates themselves"
SINGULAR = (
    "the covariance of the difference of the {} coefficients is singular; give more samples, or features= to test"
)


def _of_nodes(ends: EndsUnderTest, lost: Mapping[int, str]) -> Array:
    """Why each edge cannot be tested, from the reasons of its ends; empty where it can."""
    both = zip(ends.tail.tolist(), ends.head.tolist(), strict=True)
    return np.array([lost.get(i) or lost.get(j, "") for i, j in both], dtype=object)


def _open(fits: LocalFits, ends: EndsUnderTest) -> dict[int, str]:
    """The nodes whose data leave a tested coefficient open, each with the reason."""
    open_ = fits.fitted[:, None] & ~determined(fits) & ends.contrast.any(axis=0)
    nodes = np.flatnonzero(open_.any(axis=1)).tolist()
    return {i: f"{left_open(fits, i, open_[i])}; test others with features=" for i in nodes}


def _without(ends: EndsUnderTest, untested: Array, test: Callable[[EndsUnderTest], pd.DataFrame]) -> pd.DataFrame:
    """The tests of the edges that can be tested, among rows of nan for the others, with the reason of each."""
    left, why = np.flatnonzero(untested == ""), untested.copy()
    found = test(_at(ends, left)).set_index(left) if left.size else pd.DataFrame(columns=["covariance"])
    why[left] = found.get("untested")
    return found.reindex(range(len(why))).assign(untested=why)


def _heard(fits: LocalFits, ends: EndsUnderTest, covariance: str) -> pd.DataFrame:
    """The tests of edges between nodes that have fits, but for those between two without noise."""
    _warn_of_few(fits, ends)
    silent = noiseless(fits) & (covariance != "model")
    untested = np.where(silent[ends.tail] & silent[ends.head], NOISELESS, "").astype(object)
    return _without(ends, untested, lambda left: _test(fits, left, covariance))


def _test(fits: LocalFits, ends: EndsUnderTest, covariance: str) -> pd.DataFrame:
    """One row per edge, as `_rows` has them."""
    if covariance not in ("auto", "chow"):
        return _sandwich(fits, ends, covariance)
    noise = noise_of(fits, ends.contrast)
    if covariance == "chow":
        _check_chow(fits, ends, noise)
        return _without(ends, _of_nodes(ends, fits.short("Chow's test")), lambda left: _chow(fits, left, noise))
    fit_one = np.zeros(len(ends.tail), dtype=bool)
    known = noise.known[ends.tail] & noise.known[ends.head]
    if noise.known.any() and noise.overall() > DOUBT:
        fit_one[known] = noise.p_values(_at(ends, known)) > DOUBT
    parts = [_chow(fits, _at(ends, fit_one), noise)] if fit_one.any() else []
    if not fit_one.all():
        parts.append(_sandwich(fits, _at(ends, ~fit_one), "robust"))
    order = np.concatenate([np.flatnonzero(fit_one), np.flatnonzero(~fit_one)])
    return pd.concat(parts).set_index(order).sort_index()


def _rows(statistic: Array, reference: Reference, covariance: str, spread: Array) -> pd.DataFrame:
    """The tests of edges, one row each: ``spread`` is a bound of the largest eigenvalue of Omega_i + Omega_j."""
    columns = {"statistic": statistic, "residual_df": reference.residual_df, "factor": reference.factor}
    untested = np.where(np.isnan(statistic), SINGULAR.format(reference.k), "").astype(object)
    return pd.DataFrame(columns | {"covariance": covariance, "spread": spread, "untested": untested})


def _at(ends: EndsUnderTest, chosen: Array) -> EndsUnderTest:
    return replace(ends, tail=ends.tail[chosen], head=ends.head[chosen])


def _difference(fits: LocalFits, ends: EndsUnderTest) -> Array:
    w = fits.coef @ ends.contrast.T
    return w[ends.tail] - w[ends.head]


def _spread(omega: Array, ends: EndsUnderTest) -> Array:
    """A bound of the largest eigenvalue of Omega_i + Omega_j, in the units of the columns: the sum of theirs."""
    omega = omega if ends.units is None else ends.units @ omega @ ends.units.T
    largest = np.full(len(omega), np.nan)
    finite = np.isfinite(omega).all(axis=(1, 2))
    largest[finite] = np.linalg.eigvalsh(omega[finite])[:, -1]
    return ends.sum(largest)


def _sandwich(fits: LocalFits, ends: EndsUnderTest, name: str) -> pd.DataFrame:
    """Judged by Hotelling's T^2 as "robust", else by chi-square."""
    robust, several = name == "robust", any(block.offset.ndim > 1 for block in fits.form.samples)
    # HC2 is too small where the noise grows with the leverage; HC3 costs much power beside it
    kind = ("HC3" if several else "HC4") if robust else name
    nodes = np.unique(np.concatenate([ends.tail, ends.head]))
    again = lambda part: fits if part is nodes else local_fits(only(fits.form, part))  # noqa: E731
    found, lost = spared(nodes, lambda part: again(part).covariance(kind))

    def test(left: EndsUnderTest) -> pd.DataFrame:
        omega = left.part(found)
        statistic, nu = wald(_difference(fits, left), omega, left, degrees(fits, left) if robust else None)
        many = Reference(left.k, nu, np.ones(len(nu)))
        return _rows(statistic, Reference.hotelling(left.k, nu) if robust else many, name, _spread(omega, left))

    return _without(ends, _of_nodes(ends, lost), test)


def _chow(fits: LocalFits, ends: EndsUnderTest, noise: Noise) -> pd.DataFrame:
    variance, left = noise.pooled(ends)
    omega = ends.part(noise.average[:, None, None] * fits.inverse)
    statistic, _ = wald(_difference(fits, ends), omega, ends)
    reference = Reference(ends.k, left, np.ones(len(statistic)))
    return _rows(statistic / variance, reference, "chow", variance * _spread(omega, ends))


def _check_chow(fits: LocalFits, ends: EndsUnderTest, noise: Noise) -> None:
    if fits.form.edges:
        raise MethodError(
            "Chow's test is for squared losses without a node penalty, and a fit has one (a ridge of 1e-3 or so); give "
            "the loss itself, as edge_tests(gr.SquaredLoss(data), graph), or take covariance='robust'"
        )
    for i in (nodes := np.concatenate([ends.tail, ends.head]))[~np.isfinite(noise.residual_df[nodes])]:
        raise MethodError(
            f"Chow's test is for squared losses with features, and the node {fits.form.labels[i]!r} has another loss; "
            "take covariance='robust' or 'auto'"
        )


# ---- the table -------------------------------------------------------------------------------------------------------
def _table(fits: LocalFits, ends: EndsUnderTest, tests: pd.DataFrame, asked: TestOptions) -> Table:
    usable = (tests["untested"] == "").to_numpy()
    found = {name: column.to_numpy() for name, column in tests[usable].items()}
    reference = Reference(ends.k, found["residual_df"], found["factor"])
    m, p = len(usable), reference.p_values(found["statistic"])
    adjusted = _adjusted(p, asked.correction)
    # (15): W^2 of the true parameters at least 4 times what Bonferroni's test is held against
    separation = 2.0 * np.sqrt(reference.critical(asked.alpha / len(p)) * found["spread"])

    def spread(values: Array, missing: Any = np.nan) -> Array:
        out = np.full(m, missing, dtype=values.dtype)
        out[usable] = values
        return out

    frame = pd.DataFrame(
        {
            "tail": [ends.labels[i] for i in ends.tail.tolist()],
            "head": [ends.labels[j] for j in ends.head.tolist()],
            "statistic": spread(found["statistic"]),
            "threshold": spread(reference.critical(_level(adjusted, asked))),
            "df": ends.k,
            "residual_df": spread(reference.residual_df),
            "p_value": spread(p),
            "adjusted": spread(adjusted),
            "covariance": spread(found["covariance"], "none"),
            "separation": spread(separation),
            "keep": spread(~(adjusted < asked.alpha), missing=True),
            "untested": tests["untested"],
        }
    )
    kept = int((~(adjusted < asked.alpha)).sum()) + int((~usable).sum())
    title = f"Edge tests of equal parameters ({asked.what}): {kept} of {m} edges kept, {m - kept} removed"
    title += f", {m - len(p)} not tested" * (m > len(p))
    rests_on = assumed(fits, found["covariance"], reference, tests["untested"][~usable].tolist(), asked)
    return Table.of(frame, title, rests_on, verdict(m - kept, len(p), asked))


def _level(adjusted: Array, asked: TestOptions) -> float:
    """The p-value below which an edge is removed."""
    m = len(adjusted)
    if asked.correction == "bh":
        return asked.alpha * max(1, int((adjusted < asked.alpha).sum())) / m
    return asked.alpha / m if asked.correction == "bonferroni" else asked.alpha


def _adjusted(p: Array, correction: str) -> Array:
    if correction == "bonferroni":
        return np.minimum(1.0, p * len(p))
    return stats.false_discovery_control(p) if correction == "bh" else p
