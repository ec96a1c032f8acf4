"""`certify`: what can be proved of the optimal value of a problem of CVXPY."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.clock import stages
from ..certificate import RefusedError, upwards
from ..terms import Array
from . import canonical, programme, verify
from .canonical import Answer, Canonical
from .certificate import ConicCertificate
from .cones import inward
from .formula import Known, said
from .programme import Programme, System
from .ranges import ranges
from .steps import bent, near, polished
from .verify import Reached

TIGHT = 1e-6  # of the largest slack
NAMED = 3  # constraints or variables in a message
TRIES = 200_000  # entries of all the programmes that are solved to shorten a message, 20 at most
SEEN = 1e-3  # of the largest multiplier: smaller ones are what an iteration leaves
HELP = (canonical.USUAL, 1e-5, 1e-3)  # tolerances of further solves, whose answers are ever further inside the cones


def certify(problem: Any, *, solver: str | None = None, gap: float = 1e-6, **options: Any) -> ConicCertificate:
    """Prove bounds of the optimal value of a problem of CVXPY, from an answer of any of its solvers.

    Parameters
    ----------
    problem : cvxpy.Problem
        Convex by CVXPY's rules (DCP), without integers.
    solver : str, optional
        "CLARABEL", "SCS", "OSQP" or "HIGHS", which solves the problem as ``problem.solve`` would; its answer is a
        proposal, and proves nothing by itself, and takes the place of the values that stand in the problem. By
        default Clarabel; where the variables have values already, these stay there, what they are worth is printed,
        and the answer from which bounds are proved is one that Clarabel gives beside them.
    gap : float
        The relative gap at which no further answer is looked for: where that of the solver proves less, Clarabel is
        asked, ever further inside the cones.
    **options
        For the solver.

    Returns
    -------
    ConicCertificate

    Raises
    ------
    ModelError
        For what is no problem of CVXPY or has no variables, integers, parameters without values, numbers that are NaN
        or infinite where that is no bound, power cones of more than three dimensions.
    ConvexityError
        For a problem that does not follow CVXPY's rules.
    SolverError
        For a solver that is unknown, not installed, does not take the problem, or stops with an exception.

    Examples
    --------
    >>> import cvxpy
    >>> x = cvxpy.Variable(2, name="x")
    >>> found = gr.certify(cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [x >= 1]))
    >>> found.status, bool(found.lower <= 2 <= found.upper)
    ('certified', True)
    """
    canonical.check(problem)
    again = solver is None and not options and canonical.answered(problem)
    solver = solver or canonical.OURS
    theirs = canonical.compiled(problem, solver)
    stored = canonical.canonical(problem, theirs if solver == canonical.OURS else None)
    with stages("certify") as at:
        at("an answer")
        if again:
            answer = replace(canonical.helped(stored.programme), by="a second solve, by Clarabel")
        else:
            answer = canonical.solve(stored, solver, theirs, options)
        stands = canonical.standing(problem) if again else (problem.value, "")
        at("its bounds")
        return _told(stored, proved(stored.programme, answer, gap), *stands)


def proved(p: Programme, answer: Answer, gap: float, helped: bool = True) -> Known:
    """What an answer proves, and where that is not enough what answers of Clarabel prove."""
    known = Known()
    work = _Work(p, known, gap)
    for each in _answers(p, answer) if helped else [answer]:
        before = dict(known.evidence)
        work.take(each)
        known.by |= {use: each.by for use, found in known.evidence.items() if found is not before.get(use)}
        if known.gap() <= gap or known.status:
            break
    return known


def _answers(p: Programme, first: Answer) -> Iterator[Answer]:
    """That answer, better ones made of it, and others."""
    yield first
    yield from polished(p, first)
    if p.in_lines and not p.P.nnz:
        yield from polished(p, canonical.vertex(p))
    for tolerance in HELP:
        found = canonical.helped(p, tolerance=tolerance)
        if not (np.array_equal(found.x, first.x) and np.array_equal(found.z, first.z)):
            yield found


class _Work:
    """The four uses of the lemma on one programme."""

    def __init__(self, p: Programme, known: Known, gap: float) -> None:
        self.p, self.known, self.gap = p, known, gap
        try:
            self.curvature = verify.curvature(p.P[p.curved][:, p.curved], bent(p.P[p.curved][:, p.curved]))
        except RefusedError:
            self.curvature = -np.inf
        known.curvature = self.curvature

    def take(self, answer: Answer) -> None:
        """What an answer proves: bounds, or what its ray says."""
        known = self.known
        if answer.ray == "":
            x, bent = answer.x, float(answer.x @ (self.p.P @ answer.x)) / 2.0
            self.above(x, float(self.p.q @ x) + bent)
            if not known.status:
                self.below(x, answer.z, -float(self.p.b @ answer.z) - bent)
        elif answer.ray == "infeasible":
            self.infeasible(answer.z)
        elif answer.ray == "unbounded" and ("descent" in known.evidence or self.falling(answer.x)):
            point = canonical.helped(self.p, feasible=True)
            if "primal" not in known.evidence and not point.ray:
                self.above(point.x, np.inf)
            if "primal" in known.evidence:
                known.status, known.lower, known.upper = "unbounded", -np.inf, -np.inf
        if answer.ray in ("infeasible", "unbounded"):
            known.why["ray"] = f"a solver says {answer.ray}, and near what it says no proof of that was found"

    def close(self, bound: float, value: float) -> bool:
        """True where a bound is as close to the value at an answer, or to the other bound, as is asked for."""
        off = 2.0 * abs(bound - value) / max(1.0, abs(bound))
        return off <= self.gap or self.known.gap() <= self.gap or value == np.inf

    def above(self, x: Array, value: float) -> None:
        """An upper bound near x, where the objective has a value."""
        p, known = self.p, self.known
        s = (p.b - p.A @ x)[p.in_cones]
        for found in near(programme.primal(p), np.concatenate([x, s])):
            try:
                bound = verify.upper_value(p, found)
            except RefusedError as refused:
                known.why["upper"] = str(refused)
                if self.contradictory(programme.primal(p), found, "dependent"):
                    known.status, known.lower, known.upper = "infeasible as stored", np.inf, np.inf
                    return
                continue
            if bound < known.upper:
                known.upper, known.evidence["primal"] = bound, found
            if self.close(bound, value):
                break
        if np.isfinite(known.upper):
            known.why.pop("upper", None)
            return
        known.why.setdefault("upper", "no feasible point was proved near the answer")
        known.tight = p.in_cones[s < TIGHT * max(1.0, float(np.abs(s).max(initial=0.0)))]

    def contradictory(self, system: System, found: Reached, name: str) -> bool:
        """True where equations contradict each other, if only by rounding."""
        every = np.ones(system.M.shape[1], bool)
        for row, witness in zip(found.proposal.left.tolist(), found.proposal.witness, strict=True):
            if left := verify.excess(system, row, witness, every):
                self.known.evidence[name] = found
                self.known.row, self.known.excess = row, abs(float(left))
                return True
        return False

    def below(self, x: Array, z: Array, value: float) -> None:
        """A lower bound near z, where that of the dual has a value."""
        p, known = self.p, self.known
        for found in near(programme.dual(p), np.concatenate([z, x[p.curved]])):
            bound, loose = self.value(found)
            if not np.isfinite(bound):
                known.why["lower"], known.loose = "the dual equations are nearly met, not exactly", loose
                if "primal" in known.evidence and self.contradictory(programme.dual(p), found, "dependent dual"):
                    known.status, known.lower, known.upper = "unbounded as stored", -np.inf, -np.inf
                    return
                continue
            if bound > known.lower:
                known.lower, known.evidence["dual"] = bound, found
            if self.close(bound, value):
                break
        if np.isfinite(known.lower):
            known.why.pop("lower", None)
            return
        known.why.setdefault(
            "lower", "nothing was proved by duality: the optimum may not be attained, or there is none"
        )

    def value(self, found: Reached) -> tuple[float, int]:
        """The lower bound of a dual point, and a variable whose range it would need."""
        p, left = self.p, found.proposal.left
        most = far = np.full(len(p.q), np.inf)
        if self.curvature < 0.0 or found.missed.any():
            lower, higher = ranges(p, self.known.upper, self.curvature == 0.0)
            most, u = np.maximum(np.abs(lower), np.abs(higher)), np.zeros(len(p.q))
            u[p.curved] = found.high[len(p.b) :]
            slip = found.radius[len(p.b) :] + np.abs(found.proposal.low[len(p.b) :])
            far = np.maximum(np.abs(lower - u), np.abs(higher - u))
            far[p.curved] += slip
            far = upwards(far, 3)
        needed = left[found.missed > 0.0]
        loose = np.concatenate([needed[~np.isfinite(most[needed])], p.curved[~np.isfinite(far[p.curved])]])
        return verify.lower_value(p, found, self.curvature, most, far), int(loose[0]) if len(loose) else -1

    def infeasible(self, z: Array) -> None:
        known, found = self.known, _excluded(self.p, z)
        if found is not None:
            known.status, known.lower, known.upper = "infeasible", np.inf, np.inf
            known.evidence["contradiction"] = found

    def falling(self, d: Array) -> bool:
        p = self.p
        start = np.concatenate([d, -(p.A @ d)[p.in_cones]])
        found = _ray(programme.descent(p), start, -float(p.q @ d), lambda each: verify.descends(p, each))
        self.known.evidence |= {} if found is None else {"descent": found}
        return found is not None


def _excluded(p: Programme, z: Array) -> Reached | None:
    """A proof near z that no point is feasible."""
    return _ray(programme.contradiction(p), z, -float(p.b @ z), lambda each: verify.contradicts(p, each))


def _ray(system: System, start: Array, fall: float, proves: Callable[[Reached], bool]) -> Reached | None:
    """What proves something near a ray, along which something falls by so much."""
    return next(filter(proves, near(system, start / fall, 1e-12)), None) if fall > 0.0 else None


def _told(stored: Canonical, known: Known, reported: float | None, given: str = "") -> ConicCertificate:
    """The same in the user's terms."""
    about = said(stored, known)
    lower, upper = (_added(bound, stored.offset, way) for bound, way in ((about.lower, -np.inf), (about.upper, np.inf)))
    upper = min(upper, about.most)
    if stored.sign < 0.0:
        lower, upper = -upper, -lower
    finite = np.isfinite(known.lower), np.isfinite(known.upper)
    status = known.status or ("certified" if all(finite) else "one side only" if any(finite) else "refused")
    point = dict[str, Array]()
    if about.found is not None:
        found = about.found.proposal
        point = stored.point((found.high + found.low)[: len(stored.programme.q)])
    stood = None if reported is None else float(reported), stored.programme, stored.offset, stored.sign
    message, way = _message(stored, known), (known.evidence, about.scope, known.by)
    return ConicCertificate(lower, upper, status, message, point, *stood, *way, given, _multipliers(stored, known))


def _multipliers(stored: Canonical, known: Known) -> dict[str, Array]:
    """Of what excludes each other, by constraint; of an inequality without the equations that say what its rows are."""
    out = {kind: dict[str, list[Array]]() for kind in ("equations", "cones")}
    y = known.evidence["contradiction"].high if known.status == "infeasible" else np.zeros(0)
    for k in np.unique(stored.constraints[: len(y)]).tolist():
        rows = np.flatnonzero(stored.constraints == k)
        kind = out["cones" if np.isin(rows, stored.programme.in_cones).all() else "equations"]
        if name := stored.named(k).strip("`"):
            kind.setdefault(name, []).append(y[rows])
    return {name: np.concatenate(each) for name, each in {**out["equations"], **out["cones"]}.items()}


def _added(bound: float, offset: float, way: float) -> float:
    """bound + offset, rounded outwards where it is rounded."""
    total = bound + offset
    exact = not np.isfinite(total) or Fraction(total) == Fraction(bound) + Fraction(offset)
    return total if exact else float(np.nextafter(total, way))


def _message(stored: Canonical, known: Known) -> str:
    p, named = stored.programme, stored.row
    if known.status == "unbounded as stored":
        return (
            f"bound {stored.variable(known.row)}, or leave out what has no influence there: in one direction, where "
            f"nothing else changes, linear terms should cancel each other and as stored miss that by "
            f"{known.excess:.1e}, so that the objective falls without end"
        )
    if known.status == "infeasible as stored":
        return (
            f"drop one of the equalities of {named(known.row)}: as stored they contradict each other, or others, by "
            f"{known.excess:.1e}, so that no point meets all of them exactly"
        )
    if known.status == "infeasible":
        needed = _needed(stored, known.evidence["contradiction"])
        return f"no point meets {_with_weight(needed, named)} together: relax one"
    if known.status == "unbounded":
        falling = _with_weight(known.evidence["descent"].pair(len(p.q)).size(), stored.variable)
        return f"the objective falls without end along {falling}: bound it, or add what grows there"
    parts = list[str]()
    if "upper" in known.why:
        first = np.sort(np.unique(stored.constraints[known.tight], return_index=True)[1])  # a row of each constraint
        tight = _some(named(row) for row in known.tight[first].tolist())
        parts.append(
            f"{known.why['upper']}; without room there: {tight}; where they leave no interior, relax one a bit"
        )
    if "lower" in known.why:
        lower, higher = ranges(p, known.upper, known.curvature == 0.0)
        wide = np.flatnonzero(~np.isfinite(np.maximum(np.abs(lower), np.abs(higher))))
        loose = _some(stored.variable(j) for j in ([known.loose] if known.loose >= 0 else wide.tolist()))
        parts.append(known.why["lower"] + (f"; no constraint bounds {loose}: bounds may help" if loose else ""))
    if "descent" in known.evidence:
        parts.append("in one direction the objective falls without end, but no feasible point was found")
    if not (parts or known.evidence):
        parts.append(known.why.get("ray", "no solver has an answer"))
    return "; ".join(parts)


def _needed(stored: Canonical, found: Reached) -> Array:
    """The multipliers of a proof that no point is feasible, without those of the user's constraints that another proof
    can do without: tried one by one, the lightest first, with rows in their place that always hold."""
    p, own, y = stored.programme, stored.constraints, found.pair().size()
    weights, none = np.bincount(own, y), np.zeros(len(y), bool)
    tried = [k for k in np.argsort(weights).tolist() if weights[k] > SEEN * weights.max() and stored.named(k)]
    for rows in (own == k for k in tried[: TRIES // max(p.A.nnz, TRIES // 20)]):
        kept = sp.csr_array(sp.diags_array(1.0 - rows) @ p.A)
        kept.eliminate_zeros()
        fewer = replace(p, A=kept, b=np.where(rows, inward(p.blocks, len(rows)), p.b))
        answer = canonical.helped(fewer)
        other = _excluded(fewer, answer.z) if answer.ray == "infeasible" else None
        if other is not None:
            p, none = fewer, none | rows
            y = np.where(none, 0.0, other.pair().size())
    return y


def _with_weight(y: Array, name: Callable[[int], str]) -> str:
    """What has more weight than an iteration leaves."""
    return _some(name(k) for k in np.argsort(-y, kind="stable").tolist() if y[k] > SEEN * y.max())


def _some(names: Iterable[str]) -> str:
    """The first few of some names, each once."""
    each = list(dict.fromkeys(names))
    # what CVXPY added says nothing beside what is the user's
    each = [name for name in each if name.startswith("`")] or each
    return ", ".join(each[:NAMED]) + (", ..." if len(each) > NAMED else "")
