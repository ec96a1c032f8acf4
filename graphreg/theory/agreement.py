"""The smallest strength at which all nodes agree.

With r_i the gradient of the rest of the objective at the pooled optimum, a consensus is optimal at the strength lam iff
flows within the capacities carry r away, and so the smallest such strength is

    strength_max  =  min over flows u with K'u = -r  of  max_e ||u_e||_* / A_e
                  =  max over directions w  of  -<r, w> / sum_e A_e phi((Kw)_e)

(GTV minimisation: the dual (24), for norms (27) with the conditions (28), at a consensus). On trees the flow is unique:
what flows through an edge is the sum of r over the subtree that it cuts off. Otherwise a conic programme is solved.
Either way the value is bounded from both sides by what is shown: flows and a direction.

Beside the norms there may be equalities on other coordinates. They hold at every strength, so that P is to be
minimised over the w that obey them: the same problem with these coordinates fused. Its gradients at the pooled optimum
are r on the coordinates of the norms, and sums over each fused component, which are 0, on the others: there flows
without a capacity carry r away, and w is 0 along every direction above.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .. import checks
from ..base.clock import afresh, needed, stages, within
from ..base.display import Suggesting
from ..base.tables import NumberWithAssumptions, Table
from ..certificate import Certificate, Certifier, SpotChecks, common
from ..errors import FailedError, MethodError
from ..running import Solution
from ..terms import Array, Parameter, positive
from .network import Network
from .on_rows import RowNetwork, pooled_on_rows, route_on_rows
from .pooled import GAP, SmoothObjective, as_solution, at_zero, best_step, pooled, rounding, whole
from .routes import CLOSE, Routes, route
from .varied import Varying, check_smooth, varying

NAME = "strength_max"
TIGHT = 1e-3  # of the upper bound: nearer ones are one number


@dataclass(frozen=True)
class Better(Suggesting):
    """A point that is better than the consensus, at a strength below `StrengthMax.lower`.

    Attributes
    ----------
    strength : float
    coef : (n, d)
        The point c + t w, the user's nodes.
    decrease : float
        P(consensus) - P(point) > 0 at that strength: a bound from below, without cancellation (see the module
        `graphreg.theory.agreement.descent`).
    relative : float
        The same over max(P(consensus), 1e-3 P_common).
    """

    strength: float
    coef: Array
    decrease: float
    relative: float

    def __str__(self) -> str:
        return (
            f"at the strength {self.strength:.6g} a point is better than the consensus by {self.decrease:.3g} "
            f"(relative {self.relative:.2g})"
        )

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class StrengthMax(NumberWithAssumptions):
    """The smallest strength at which a consensus is optimal; ``float(...)`` is its ``value``.

    Attributes
    ----------
    value : float
        The upper bound: at this strength and above some optimum is a consensus on every component of the graph, or has
        all rows at 0.
    lower, upper : float
        Below ``lower`` no optimum is a consensus; both in the units in which the strength is written in the model.
    consensus : Solution
        The pooled optimum, and in ``consensus.flows`` the flows whose largest load is ``upper``.
    direction : (n, d) array
        The direction w along which the binding component leaves the consensus first, latent nodes last, with
        sum_e A_e phi((Kw)_e) = 1.
    assumed : tuple of str
    """

    lower: float
    upper: float
    consensus: Solution
    direction: Array
    vary: Varying = field(repr=False)
    network: Network = field(repr=False)
    routes: Routes = field(repr=False)

    @property
    def ended(self) -> str:
        """The word for what cut it short, "interrupted" or "out of time"; empty where nothing did."""
        return self.routes.ended

    def table(self) -> Table:
        """The bounds of each connected component: component, nodes, edges, first (node), lower, upper, how."""
        network, routes = self.network, self.routes
        member, count = network.component, network.n_components
        labels = self.vary.form.labels
        columns = {
            "component": np.arange(count),
            "nodes": np.bincount(member, minlength=count),
            "edges": network.n_edges,
            "first": pd.Series([labels[i] for i in np.unique(member, return_index=True)[1]], dtype=object),
            "lower": routes.lower,
            "upper": routes.upper,
            "how": routes.how,
        }
        return Table.of(pd.DataFrame(columns), "strength_max of each component", self.assumed)

    def certificate(self, factor: float = 1.0) -> Certificate:
        """The certificate of the consensus at ``factor * value``, factor >= 1: its flows lie within the capacities."""
        factor = positive(factor, "factor")
        if factor < 1.0:
            raise MethodError(
                f"below {NAME} no consensus is optimal, and factor is {factor:g}; see better(factor) for a better point"
            )
        self._check_positive()
        form, c = self.vary.at(factor * self.value), self.consensus.certificate.w
        point = self.consensus.certificate.dual_point
        certifier = Certifier(form)
        certifier.propose(c, point, 1e-9)
        found = certifier.best()  # a flow at its capacity, at factor 1, may lie outside by rounding: repair it
        return found if found.holds(1e-9) else certifier.certify(c, point.flows, point.prices, 1e-9)

    def better(self, factor: float = 0.999) -> Better:
        """A point that is better than the consensus at ``factor * lower``, factor < 1, and by how much at least."""
        factor = positive(factor, "factor")
        if factor >= 1.0:
            raise MethodError(
                f"above {NAME} the consensus is optimal, and factor is {factor:g}; see certificate(factor)"
            )
        self._check_positive()
        smooth, c, w = SmoothObjective(self.vary.rest), self.consensus.certificate.w, self.direction
        slope = (1.0 - factor) * self.lower - rounding(smooth, c, w)  # sum_e A_e phi((Kw)_e) = 1
        if slope <= 0.0:
            raise MethodError(f"{factor:g} is so near to 1 that rounding hides by how much a point is better")
        t, decrease = best_step(smooth, c, w, slope, lambda t: factor * self.lower * self.network.excess(t * w))
        form = self.vary.at(factor * self.lower)
        yardstick = max(abs(form.primal(c)), common(form).floor)
        coef = (c + t * w)[: form.space.n_observed]
        return Better(factor * self.lower, coef, decrease, decrease / yardstick if yardstick > 0 else np.inf)

    def _check_positive(self) -> None:
        if not self.lower > 0:
            raise MethodError(f"{NAME} is 0: without any penalty the optimum is a consensus already")

    def _lines(self) -> list[str]:
        network, rows = self.network, not self.vary.plain
        what = "all its rows are 0 at an optimum" if rows else "a consensus is optimal"
        binding = int(np.argmax(self.routes.upper))
        count = int((network.component == binding).sum())
        first = self.vary.form.labels[int(np.argmax(network.component == binding))]
        known = (
            "the smallest value"
            if self.upper - self.lower <= TIGHT * self.upper
            else "an upper bound of the smallest value"
        )
        return [
            f"{NAME} {self.value:.8g}: {known} of {self.vary.name} at which {what}",
            f"  {self.lower:.10g} <= it <= {self.upper:.10g}, but for rounding; "
            + ("" if rows else f"binding is the component of {first!r} ({count} nodes), ")
            + self.routes.how[binding],
            *([f"  CUT SHORT: {self.ended}; more time brings the bounds together"] if self.ended else []),
            *([f"  LOOSE: {self.routes.loose}"] if self.routes.loose else []),
        ]

    def __repr__(self) -> str:
        return f"<StrengthMax {self.value:.6g}>"


@checks.named
def strength_max(
    problem: Any, parameter: Parameter | str | None = None, *, seconds: float | None = None
) -> StrengthMax:
    """The smallest strength of a norm between nodes at which a consensus on every component is optimal; of a norm of
    other rows (`graphreg.w`), or of nodes, that at which all its rows are 0 at an optimum: the largest strengths of
    trends, the lasso and the group lasso.

    Parameters
    ----------
    problem : Problem
        Differentiable losses, norms along edges that vary together (any penalty with a kink at 0 in every
        direction, an elastic net or your own included), and beside them smooth terms, and a Consensus on coordinates
        that these norms do not act on (common slopes, for instance, beside intercepts that vary over a map). Of rows
        that are no edges, smooth terms alone beside the norms.
    parameter : Parameter or its name, optional
        The strength that varies. By default the only Parameter among the norms between nodes; without one the number in
        front of the only such term, whatever it is now.
    seconds : float, optional
        A budget of time.

    Returns
    -------
    StrengthMax
        In the units of the Parameter (of ``2 * lam * term`` that of lam), or of the number that stands in the model.
        After Ctrl-C, and where the time is up, with the bounds proved so far, and the word that it was cut short. While
        the pooled optimum is still being looked for there is nothing yet to give: then Ctrl-C raises KeyboardInterrupt.

    Raises
    ------
    TermError
        Where it is not clear which strength is meant, or it scales no norm between nodes (a squared penalty has no such
        strength).
    MethodError
        Where something else in the model has kinks or other constraints; named. Where not all rows can be 0 together.
    UnattainedError
        Where there is no best consensus (separable classes without a ridge).
    BudgetError
        Where the time is up before the pooled optimum is found.
    MemoryError
        Where the Hessians, of which all coordinates meet, do not fit.

    Notes
    -----
    Graph-regularised estimation by GTV minimisation, the dual (24)-(27), and graph-fused M-estimation, (4).

    Examples
    --------
    >>> float(gr.strength_max(problem)) > 0
    True
    """
    (checks.seconds | None)(seconds, "seconds")
    return strength_bounds(problem, parameter, CLOSE, seconds)


def strength_bounds(
    problem: Any, parameter: Parameter | str | None, close: float, seconds: float | None = None
) -> StrengthMax:
    """`strength_max`, with bounds of which the lower one is asked to be at least 1 - ``close`` times the upper one.

    Both are proved whatever ``close`` is. Where there are cycles few steps give a percent, and the rest takes long.
    """
    with within(seconds), stages(NAME, first="the optimum at which all nodes agree") as at:
        with needed(NAME):
            vary = varying(problem, parameter, NAME, rows=True)
            check_smooth(vary, NAME)
            network, smooth = vary.network, SmoothObjective(vary.rest)
            if not vary.plain:
                return _on_rows(vary, RowNetwork(network.blocks, network.weights, network.shape), smooth, close)
            solution = pooled(vary, vary.consensus_network, smooth)
            r = network.balanced(smooth.gradient(solution.certificate.w))
        at("flows and directions that bound it")
        routes = route(network, r, close)
    with afresh(None):
        return _of_edges(vary, smooth, solution, routes, close)


def _on_rows(vary: Varying, rows: RowNetwork, smooth: SmoothObjective, close: float) -> StrengthMax:
    c, u = pooled_on_rows(vary, rows, smooth)
    routes = route_on_rows(rows, rows.balanced(smooth.gradient(c)), u)
    upper, point = float(routes.upper.max()), whole(vary, smooth.dual_point_at(c), routes.flows)
    proper = 0.0 < upper < np.inf
    certifier = Certifier(vary.at(upper) if proper else at_zero(vary))
    certifier.propose(c, point)
    found = certifier.best()
    if proper and not found.holds(GAP):
        found = certifier.certify(c, point.flows, point.prices, GAP)
    solution = as_solution(certifier.form, found)
    if proper and not found.holds(GAP):
        raise FailedError(f"the problem in which all rows are 0 was not solved to {GAP:g}: {found}", solution)
    return _record(vary, rows, solution, routes, close)


def _of_edges(vary: Varying, smooth: SmoothObjective, solution: Solution, routes: Routes, close: float) -> StrengthMax:
    certifier, c = Certifier(solution.form), solution.certificate.w
    tied, point = vary.consensus_network, smooth.dual_point_at(c)
    held = tied.along_forest(tied.balanced(smooth.form.conservation(point)))[len(vary.places) :]
    certifier.propose(c, whole(vary, point, (*routes.flows, *held)))
    return _record(vary, vary.network, as_solution(solution.form, certifier.best()), routes, close)


def _record(vary: Varying, network: Network, consensus: Solution, routes: Routes, close: float) -> StrengthMax:
    c, upper = consensus.certificate.w, float(routes.upper.max())
    lower = min(float(routes.lower.max()), upper)
    binding = int(np.argmax(routes.lower))
    w = np.where((network.component == binding)[:, None], routes.direction, 0.0)
    if np.isfinite(upper) and upper > 0.0:
        tried = SpotChecks(vary.at(upper))
        tried(c, consensus.certificate.dual_point)
        if tried.contradiction:
            raise FailedError(f"{NAME} is not known: {tried.contradiction}")
    relative, gap = consensus.certificate.relative_gap, consensus.certificate.gap
    known = f"a relative gap of {relative:.1g}" if np.isfinite(relative) else f"a gap of {gap:.1g}"
    assumed = (
        f"{vary.name} alone varies, all other strengths stay as they are",
        f"the pooled optimum, whose gradients these are, has {known}",
        "the upper bound rests on flows that are conserved to rounding (consensus.flows), the lower one on a direction "
        "(direction): no solver's word is taken",
        *([f"CUT SHORT ({routes.ended}): both bounds hold, and are further apart than need be"] * bool(routes.ended)),
        *([f"both bounds hold, and were asked to be within {close:g} of each other only"] * (close > CLOSE)),
        *([f"both bounds hold, and may be further apart than need be: {routes.loose}"] * bool(routes.loose)),
    )
    return StrengthMax(upper, lower, upper, consensus, w, vary, network, routes, assumed=assumed)
