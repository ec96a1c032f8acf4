"""The names of a wrong limit, of what an algorithm does instead, by evidence, the surest first."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..base.clock import left
from ..base.messages import count, few
from ..compiling import conic
from ..errors import GraphregError
from ..form import EdgeBlock, Form
from ..methods import Exact
from ..problem import Problem
from ..running import Budget, solve
from ..terms import Array, Strength
from ..terms.penalties import AbstractSmoothPenalty, is_equality
from .algorithms import AbstractAlgorithm
from .balance import (
    ACCEPTED,
    MIXING,
    Family,
    accepted,
    balanced,
    by_factor,
    node_factors,
    other_penalties,
    plain_penalties,
)
from .behaviour import drift, goes_to_and_fro, same, settles, too_long_for
from .course import Course, run
from .instances import scaled
from .limits import Limit, Optimum
from .locality import Mass, mass, off
from .report import Finding

# ---- optima of modified problems, for limits that are reached too slowly to be read off ------------------------------
GAP = 1e-8
SAME = 1e-3  # of the distance, within which optima are not told apart
FACTORS = (2.0, 0.5, 4.0, 0.25)
EDGES = 60  # that are left out one by one, at most
CLOSE, APART = 0.05, 3.0  # how close an entry must be, relative to the optimum, and how much closer than the next


@dataclass(frozen=True)
class NearProblem:
    """A modified problem, and how far the limit is from its optimum, in units of its distance from the true one."""

    name: str
    ratio: float


def entries(form: Form, limit: Array, optimum: Optimum) -> list[NearProblem]:
    """The modified problems of a form (at fixed strengths), the nearest first."""
    away = optimum.length(limit - optimum.w)
    out: list[NearProblem] = []
    for name, modified in modifications(form):
        if (rest := left()) is not None and rest <= 0.0:
            break
        w = _optimum(modified)
        if w is not None and optimum.length(w[: len(limit)] - optimum.w) > 1e-6 * optimum.size:
            out.append(NearProblem(name, optimum.length(limit - w[: len(limit)]) / max(away, 1e-300)))
    return sorted(out, key=lambda each: each.ratio)


def nearest(found: list[NearProblem]) -> NearProblem | None:
    """The entry that names the limit, where one is much closer than any other."""
    if not found or found[0].ratio > CLOSE:
        return None
    return found[0] if len(found) == 1 or found[1].ratio > APART * max(found[0].ratio, SAME) else None


def _optimum(form: Form) -> Array | None:
    """Its certified optimum; None where there is none."""
    if Exact().missing(form):
        return None
    try:
        found = solve(form, Exact(), Budget(GAP, progress=False), conic.Compiler(form))
    except GraphregError:
        return None
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return found.certificate.w if found.status == "certified" else None


def modifications(form: Form) -> Iterator[tuple[str, Form]]:
    """Modified problems by the name of the mistake."""
    links = [k for k, edge in enumerate(form.edges) if not edge.ground]
    tied = [k for k in links if is_equality(form.edges[k].penalty, form.width(form.edges[k]))]
    yield "local fits: the edges do nothing", replace(form, edges=tuple(e for e in form.edges if e.ground))
    for name, a in node_factors(form).items():
        yield name, _weighted(form, a)
    for k in range(len(form.edges)):
        if k not in tied:
            yield from _of_strength(form, k)
    for k in links:
        if k not in tied:
            yield from _of_edges(form, k)


def _weighted(form: Form, a: Array) -> Form:
    """The form with the losses of all nodes, and their own penalties, times a factor per node."""
    samples = tuple(replace(b, base_scale=b.base_scale * a[b.node]) for b in form.samples)
    edges = tuple(replace(e, base_weight=e.base_weight * a[e.tail]) if e.ground else e for e in form.edges)
    return replace(form, samples=samples, edges=edges)


def _with(form: Form, k: int, edge: EdgeBlock | None) -> Form:
    edges = (*form.edges[:k], *(() if edge is None else (edge,)), *form.edges[k + 1 :])
    return replace(form, edges=edges)


def _of_strength(form: Form, k: int) -> Iterator[tuple[str, Form]]:
    edge = form.edges[k]
    for t in (*FACTORS, float(form.n), 1.0 / form.n):
        yield by_factor("strength", edge.name, t), _with(form, k, replace(edge, base_weight=t * edge.base_weight))
    if edge.ground:
        yield by_factor("strength", edge.name, 0.0), _with(form, k, None)


def _of_edges(form: Form, k: int) -> Iterator[tuple[str, Form]]:
    edge = form.edges[k]
    if np.ptp(edge.base_weight) > 0.0:
        for word, power in (("forgotten", 0.0), ("squared", 2.0)):
            yield f"the edge weights {word}", _with(form, k, replace(edge, base_weight=edge.base_weight**power))
    for name, penalty in other_penalties(edge):
        yield f"penalty {name} for {edge.penalty.called()}", _with(form, k, replace(edge, penalty=penalty))
    for equality in (each for _, each in plain_penalties() if is_equality(each, form.width(edge))):
        tied = replace(edge, penalty=equality, strength=Strength(), base_weight=np.ones(len(edge.tail)))
        yield "flows leave their ball: a consensus", _with(form, k, tied)
    for e in range(len(edge.tail) if len(edge.tail) <= EDGES else 0):
        keep = np.arange(len(edge.tail)) != e
        ends = f"({form.labels[edge.tail[e]]!r}, {form.labels[edge.head[e]]!r})"
        yield f"missing edge: the edge {ends} left out", _with(form, k, edge.part(keep))


# ---- names by evidence -----------------------------------------------------------------------------------------------
WEAK = 1e-2  # times the strengths, where a wrong sign does no harm
EQUAL = 1e-4  # the distance at which a run on equal data is right
AGREE = 1e-6  # relative disagreement of nodes that agree
NOTHING = 1e-6  # of the optimum, a limit that is 0
DEPENDS = 0.1  # of the distance, by which a limit that depends on the start moves with it
ROUGH = 3e-2  # a distance within which rounding to few digits may stop a run
LESS = 30.0  # times what another family leaves, at which the model itself is not what was minimised
SHOWN = 4  # families, or modified problems, that no limit tells apart, at most


@dataclass(frozen=True)
class Examined:
    """A run, and where it leads."""

    algorithm: AbstractAlgorithm
    seed: int
    optimum: Optimum
    course: Course
    limit: Limit

    @property
    def problem(self) -> Problem:
        return self.optimum.problem


def names(seen: Examined, noisy: bool, seeded: bool) -> Iterator[Finding]:
    """The names of a run's limit, the surest first; ``noisy``: runs differ, ``seeded``: with their seeds alone."""
    form, limit, again = seen.problem.form, seen.limit, seen.algorithm.repeatable
    if limit.kind == "never settles":
        if again:
            yield from _of_weak_coupling(seen)
            yield from _of_steps(seen)
        why = "it never settles, and has no limit that balance, mixing, dictionary, drift and start could be asked of"
        yield Finding("balance", "not tried", why)
        return
    consensus = _is_consensus(form)
    families: list[Family] = [] if noisy else balanced(form.frozen(), limit.point)
    apart = seen.optimum.disagreement(limit.point)
    exact = accepted(families)
    # where a mistake in the losses or the penalties is seen, uneven masses are none of the mixing's (those of an ADMM
    # are weighted by degrees, rightly)
    explained = any(each.kind != "model" and not each.name.startswith(MIXING) for each in exact[:1])
    rows = False  # of the mixing, that add up to 1 at every node
    if again and consensus and not noisy and not explained:
        found = mass(seen.algorithm, seen.problem, seen.seed) if seen.algorithm.takes_start else None
        rows = found is not None and found.constant and len(found.sums) == form.space.n_observed
        yield from _of_mixing(seen, found, apart > AGREE)
    yield from _of_balance(form, exact, families, apart, rows)
    if not exact:
        yield from _of_dictionary(seen.optimum, limit)
    if noisy and seeded:
        yield Finding(
            "bias", "name", f"biased: a stochastic gradient, messages that are lost, or no gradient at all: {limit.why}"
        )
    elif again and consensus and not noisy and not (exact and exact[0].kind == "nodes"):
        yield from _of_drift(seen, apart)
    if again and not exact:
        yield from _of_start(seen, noisy)


def _of_mixing(seen: Examined, found: Mass | None, disagree: bool) -> Iterator[Finding]:
    if found is None:
        why = "it takes no start, does not react to it, or all nodes are neighbours of one another"
        yield Finding("mixing", "not tried", why)
    elif not found.constant:
        said = f"where losses are flat a constant of 1 becomes {_at(off(found.sums))} in a round"
        if disagree and (found.even or len(off(found.sums)) < len(found.sums)):
            kind = "asymmetric mixing" if found.even else "mixing whose rows do not add up to 1"
            yield Finding("mixing", "name", f"{kind}: {said}: there the rows have other sums than 1")
        else:  # what shrinks everywhere, or is divided by what has mixed alike, may be none of the mixing's
            said += ": rows of such sums do that, and what is shrunk or divided afterwards"
            yield Finding("mixing", "remark", said)
    elif found.even:
        rest = seen.problem.form.space.n_observed - len(found.kept)
        where = f" ({count(rest, 'node')} not tried)" * (rest > 0)
        said = f"where losses are flat an impulse keeps its mass: mixing is doubly stochastic{where}"
        yield Finding("mixing", "holds", said)
    else:
        said = f"an impulse of 1 at one node adds up over all nodes to {_at(off(found.kept))}, and not to 1"
        if found.explains(seen.problem.oracles().gradient(seen.limit.point)):
            yield Finding("mixing", "name", f"asymmetric mixing: {said}, and the gradients add up to 0 so weighted")
        else:
            yield Finding("mixing", "remark", f"{said}; alone, such weights would lead to another limit")


def _at(sums: dict[Hashable, float]) -> str:
    return ", ".join(f"{each:.3g} (at {label!r})" for label, each in list(sums.items())[:3])


def _is_consensus(form: Form) -> bool:
    return any(is_equality(edge.penalty, form.width(edge)) for edge in form.edges if not edge.ground)


def _of_balance(
    form: Form, exact: tuple[Family, ...], families: list[Family], apart: float, rows: bool
) -> Iterator[Finding]:
    if not families:
        yield Finding("balance", "not tried", "runs differ, or there are too many parameters")
        return
    if not exact:
        best = families[0]
        near = f"nearest {best.name} x {best.factor:.3g}, residual {best.residual:.0e}"
        several = [f"{each.name} x {each.factor:.3g}" for each in families if each.residual <= ACCEPTED]
        said = f"no model with one factor changed balances the limit; {near}"
        if several:
            said = "the limit balances several models with one factor changed, and does not tell which was minimised: "
            said += few(several, SHOWN)
        yield Finding("balance", "remark", said)
        return
    yield from _of_the_first(form, exact, families[0], apart, rows)


def _of_the_first(form: Form, exact: tuple[Family, ...], best: Family, apart: float, rows: bool) -> Iterator[Finding]:
    first = exact[0]
    if first.kind != "model":
        other = ", or what this limit cannot tell from it" if len(exact) > 1 else ""
        read = f"(balances to {first.residual:.0e}, t = {first.factor:.6g})"
        yield Finding("balance", "name", f"{first.sentence}{other} {read}")
        for each in exact[1:SHOWN]:
            yield Finding("balance", "consistent", f"this limit cannot tell it from: {each.sentence}")
    elif best.residual < exact[0].residual / LESS:
        left = f"balances to {best.residual:.0e}, and the model itself to {first.residual:.0e}"
        yield Finding("balance", "name", f"nearly the model: {best.name} x {best.factor:.7g} ({left})")
    elif all(edge.ground or isinstance(edge.penalty, AbstractSmoothPenalty) for edge in form.edges):
        said = f"the model itself balances to {first.residual:.0e}: nearly right, as numbers of few digits are"
        yield Finding("balance", "remark", said)
    elif not _is_consensus(form):
        said = "gradients and flows balance, but no flows within capacity do on the edges that are fused"
        yield Finding("balance", "name", f"flows leave their ball: {said}")
    elif apart > AGREE:
        said = f"the gradients add up to 0, and the nodes disagree by {apart:.1e}, as in decentralised gradient"
        said = f"{said} descent with a step that does not decrease"
        other = "" if rows else ", or mixing whose rows do not add up to 1"
        yield Finding("balance", "name", f"constant step{other}: {said}")


def _of_dictionary(optimum: Optimum, limit: Limit) -> Iterator[Finding]:
    found = entries(optimum.problem.form.frozen(), limit.point, optimum)
    best = nearest(found)
    if best is not None and optimum.length(limit.point) < NOTHING * optimum.size:
        yield Finding("dictionary", "remark", f"the limit is 0, as with {best.name}, and with all that is stronger")
    elif best is not None:
        yield Finding("dictionary", "name", f"{best.name} (its optimum is {best.ratio:.1e} of the distance away)")
    elif found:
        near, said = found[0], f"none of {len(found)} modified problems has this optimum"
        if near.ratio <= CLOSE:
            alike = [each.name for each in found if each.ratio <= APART * max(near.ratio, SAME)]
            said = f"the limit is close to the optima of {' and of '.join(alike[:SHOWN])}, and cannot tell them apart"
        yield Finding("dictionary", "remark", f"{said}; nearest {near.name}, {near.ratio:.2g} of the distance away")


def _of_drift(seen: Examined, apart: float) -> Iterator[Finding]:
    found = drift(seen.algorithm, seen.problem, seen.course.total, seen.seed)
    if found is None:
        yield Finding("drift", "not tried", "nodes have different losses, and cannot be given the same data")
    elif found < EQUAL and apart < AGREE:
        said = "nodes agree, rightly on equal data and wrongly where data differ"
        why = "local steps, gradients that are cut or corrections that do not cancel"
        yield Finding("drift", "name", f"drift: {said}, as {why} lead to")
    elif found < EQUAL:
        said = f"right on equal data, and nodes disagree by {apart:.1e} where data differ"
        yield Finding("drift", "name", f"drift: {said}: a constant step, local steps or corrections that do not cancel")
    else:
        yield Finding("drift", "remark", f"wrong on equal data, too: {found:.1e} from the optimum")


def _of_start(seen: Examined, noisy: bool) -> Iterator[Finding]:
    """The end of the run that begins at the optimum."""
    optimum, limit, other = seen.optimum, seen.limit, seen.course
    if seen.algorithm.takes_start and not noisy:
        other = run(seen.algorithm, seen.problem, other.total, start=optimum.w, seed=seen.seed)
    moved = optimum.length(other.at(1.0) - limit.point) / optimum.size if other.finite else 0.0
    said = f"begun at the optimum, it ends {moved:.1e} from here"
    if same(other, seen.course):
        yield Finding("start", "not tried", "runs differ, or it takes no start, or no notice of one")
    elif moved > DEPENDS * limit.distance and optimum.distance(other.at(1.0)) < 0.5 * limit.distance:
        why = "the end depends on the start, steps die out, a state begins wrongly or numbers have few digits"
        yield Finding("start", "name", f"{why}: {said}")
    elif moved > DEPENDS * limit.distance and limit.distance < ROUGH:
        yield Finding("start", "name", f"few digits: it stops anywhere near the optimum, as rounded numbers do; {said}")


def _of_weak_coupling(seen: Examined) -> Iterator[Finding]:
    """The limit where penalties are weak: there a run with a wrong sign settles."""
    weak = scaled(seen.problem, 1.0, WEAK)
    course = run(seen.algorithm, weak, 2000, seed=seen.seed)
    if not settles(course):
        return
    exact = accepted(balanced(weak.form.frozen(), course.at(1.0)))
    if exact and exact[0].kind != "model":
        yield Finding("balance", "name", f"{exact[0].sentence} (where strengths are x {WEAK:g}, it settles)")


def _of_steps(seen: Examined) -> Iterator[Finding]:
    why = too_long_for(seen.algorithm, seen.problem, min(seen.course.total, 1500) or 1500, seen.seed)
    if why or goes_to_and_fro(seen.course):
        said = why or "the run goes to and fro, and its moves do not decay"
        kinks = any(not isinstance(edge.penalty, AbstractSmoothPenalty) for edge in seen.problem.form.edges)
        kinks = kinks and not _is_consensus(seen.problem.form)
        other = ", or a constant step of a subgradient method, which at kinks has to decrease" * kinks
        yield Finding("steps", "name", f"step or relaxation too long{other}: {said}")
    else:
        yield Finding("steps", "remark", f"it does not settle, and does not go to and fro either: {seen.limit.why}")
