"""The status of an answer and the sentence that goes with it: the cause, and the remedy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from ..base.escaping import visible
from ..base.gate import LESS
from ..base.messages import few
from ..certificate import Certificate, relative_in_words
from ..form import Form
from ..terms import feature_of, notation_of
from ..terms.penalties import AbstractConstraint, AbstractPenalty
from .budget import DIVERGED, Outcome

STATUSES = ("certified", "budget", "interrupted", "no_certificate", "unattained", "infeasible", "failed")
UNLIKE = 1e3  # times the size of the smallest feature: a larger one is in another unit
APART = 30.0  # the same, where one penalty weighs both: its answer is that of the larger unit
COLLINEAR = 1e-5  # of the largest singular value of all samples: with a smaller one features are alike
MOST = 10**7  # numbers of features in which such are looked for, for the sake of a sentence
CLOSED = 1e-8  # the accuracy of closed forms
ROUGH = 1e-7  # a relative gap below which that of a derived conjugate may have a part in it: some 1e-8 is usual
UNKNOWN = (
    "It is not known whether the infimum is attained (no exact argument was found either way); "
    "with a small ridge it is."
)
MISTAKEN = "No bound rests on it, but a term of the model is wrong, and misleads the methods and claims that use it:"
TRIED = 100  # coordinates of a penalty of which directions are looked for, for the sake of a sentence

NO_POINT = "no point was found that satisfies all constraints; Exact() tells whether there is one"
BEFORE = {
    "interrupted": "The run was interrupted before there was an answer.",
    "budget": "The budget was used up before there was an answer; allow more.",
}


def judge(outcome: Outcome, gap: float) -> tuple[str, str]:  # noqa: PLR0911 - one return per status
    """The status, decided by the certificate, and the sentence that goes with it."""
    certificate, ended, rounds = outcome.certificate, outcome.ended, outcome.rounds
    if certificate.contradiction:
        return "failed", contradicted(certificate)
    if ended == "infeasible":
        return "infeasible", infeasible(outcome.cause)
    attained = None if ended == "interrupted" else outcome.certifier.attained()  # which may take programmes
    if attained is False:
        return "unattained", unattained(certificate, gap)
    if certificate.holds(gap):
        return "certified", certified(gap, attained)
    if ended == "failed":
        lost = rounds and certificate.form.limited and not np.isfinite(certificate.primal) and outcome.cause != DIVERGED
        pointless = NO_POINT if lost else ""
        return "failed", failed(outcome.cause, outcome.remedy or pointless)
    if ended == "interrupted":
        return "interrupted", interrupted(rounds, certificate)
    if ended == "budget":
        return "budget", used_up(rounds, certificate, outcome.remedy)
    if ended == "read":
        return "no_certificate", read(certificate, gap)
    return "no_certificate", no_certificate(certificate, gap, outcome.remedy)


def judged(outcome: Outcome, gap: float) -> Outcome:
    """The outcome with its status; whether the infimum is attained may take a programme that is interrupted, too."""
    try:
        status, message = judge(outcome, gap) if outcome.own is None else _of_another_problem(outcome, outcome.own, gap)
        if outcome.certifier.spot_checks:
            status, message = _doubted(outcome, status, message)
            if outcome.certifier.spot_checks.contradiction:
                outcome = replace(outcome, certificate=outcome.certifier.best())
    except KeyboardInterrupt:
        status, message = "interrupted", interrupted(outcome.rounds, outcome.certificate)
    return replace(outcome, status=status, message=f"{message} {outcome.note}" if outcome.note else message, note="")


def _doubted(outcome: Outcome, status: str, message: str) -> tuple[str, str]:
    """The status with what is wrong with the user's own terms though no bound rests on it: before all other advice
    where it may be why there is no certificate, and after what is known where there is one."""
    certificate, checks = outcome.certificate, outcome.certifier.spot_checks
    if certificate.contradiction or status in ("interrupted", "infeasible") or certificate.form is not checks.form:
        return status, message
    unproved = status in ("no_certificate", "budget", "failed")
    doubt = checks.doubt(certificate.w, certificate.dual_point, everywhere=unproved)
    if not doubt:
        return status, message
    if any(edge.penalty.blamed() and edge.penalty.blamed() in doubt for edge in certificate.form.edges):
        checks.contradiction = doubt  # the conjugate comes of what is wrong, and bounds rest on that
        return "failed", contradicted(outcome.certifier.best())
    return status, f"A term misleads the solve: {doubt}. {message}" if unproved else f"{message} {MISTAKEN} {doubt}."


def _of_another_problem(outcome: Outcome, own: Outcome, gap: float) -> tuple[str, str]:
    """The worth of a baseline's answer in either problem."""
    certificate = outcome.certificate
    if certificate.contradiction:
        return "failed", contradicted(certificate)
    if certificate.holds(gap) and own.status != "interrupted":
        return "certified", certified(gap)
    reached = f"at a {gap_of(certificate)}" if certificate.valid else f"without certificate ({certificate.note})"
    head = f"{outcome.by} minimises another problem ({outcome.aim})"
    reason = f"; {own.remedy}" if own.remedy else ""
    if own.status == "certified":
        known = f"that is certified to {own.certificate.relative_gap:.2g}{reason}"
        return "no_certificate", f"{head}; {known}; of this problem its point is {reached}."
    if outcome.bias and own.status in ("budget", "no_certificate") and own.certificate.valid:
        known = (
            f"{outcome.bias} may lead off that optimum, however many rounds there are (rounds= says how many); after "
            f"{outcome.rounds} its relative gap there is {own.certificate.relative_gap:.2g}"
            + (", and it no longer falls" if own.ended == "stalled" else "")
            + reason
        )
        return own.status, f"{head}; {known}; of this problem its point is {reached}."
    # nor does this problem lack a minimum, or a point at all, where the other does
    status = {"unattained": "no_certificate", "infeasible": "failed"}.get(own.status, own.status)
    return status, f"{head}: {own.message} Of this problem its point is {reached}."


def certified(gap: float, attained: bool | None = True) -> str:
    """The sentence of a certified answer; ``attained`` is None where nothing confirms that a minimiser exists."""
    unknown = "" if attained is not None else f" {UNKNOWN}"
    return f"The relative gap is certified to be at most {gap:.3g}.{unknown}"


def infeasible(rows: str) -> str:
    """The sentence where there is no point at all."""
    return f"No point satisfies all constraints; these exclude each other: {rows}. Drop or change one."


def contradicted(certificate: Certificate) -> str:
    """The sentence of an answer without any bound, because a term of the user's breaks a law."""
    return f"No bound is valid, and nothing is certified: {certificate.contradiction}."


def interrupted(rounds: int, certificate: Certificate) -> str:
    """The sentence of an interrupted run."""
    if not (rounds or np.isfinite(certificate.primal)):
        return BEFORE["interrupted"]
    known = certificate.valid or not np.isfinite(certificate.primal)
    more = "" if known else "; problem.certify(solution.coef) takes the time for bounds"
    reached = f"{_reached(certificate)}{more}"
    return f"The run was interrupted after {rounds} rounds; this is the best point so far, a {reached}."


def failed(cause: str, remedy: str = "") -> str:
    """The sentence of a breakdown."""
    remedy = remedy or "shorten the steps where they are given, rescale the features, or try another method or solver"
    if cause.startswith(MemoryError.__name__):
        cause, remedy = cause.removesuffix(f"; {LESS}"), LESS
    return f"No finite answer was found{f' ({cause})' if cause else ''}; {remedy}."


def used_up(rounds: int, certificate: Certificate, remedy: str = "") -> str:
    spent = f" ({rounds} rounds)" if rounds else ""
    units = unlike(certificate.form) or alike(certificate.form)
    more = f"allow more, {units}, or ask for a larger gap" if units else "allow more, or a larger gap"
    remedy = remedy or "; ".join(filter(None, (_of_own(certificate.form, more), floor_of(certificate))))
    return f"The budget was used up{spent} at a {_reached(certificate)}; {remedy}."


def no_certificate(certificate: Certificate, gap: float, remedy: str = "") -> str:
    why = "" if certificate.valid else f" ({certificate.note})"
    first = unlike(certificate.form) or alike(certificate.form)
    usual = f"{first}, add a small ridge, or ask for a larger gap" if first else "add a small ridge, or a larger gap"
    remedy = remedy or floor_of(certificate) or _of_own(certificate.form, usual)
    return f"The run ended at a {_reached(certificate)} where {gap:.3g} was asked for{why}; {remedy}."


def _of_own(form: Form, usual: str) -> str:
    """The advice, and what else may be why where terms of the user's own take part."""
    own = [edge for edge in form.edges if edge.penalty.is_users()]
    for edge in own:
        if _constant(phi := edge.penalty, form.width(edge)):
            flat = f"{phi.called()} is constant along a direction"
            return f"{flat}; gr.certify(problem.compile().cvxpy) proves such bounds"
    checks = ["check_loss"] * any(block.loss.is_users() for block in form.samples) + ["check_penalty"] * bool(own)
    said = f"gr.testing.{' or '.join(checks)} tells whether the methods of your own term agree"
    return f"{usual}; {said}" if checks else usual


def _constant(phi: AbstractPenalty, k: int) -> bool:
    """True where a penalty without `composed` is constant along a direction, as far as random points tell: its slopes
    span no more than a subspace, in which no float lies exactly."""
    if k > TRIED or isinstance(phi, AbstractConstraint) or phi.composed() is not None or phi.unwritten():
        return False
    z = np.random.default_rng(0).standard_normal((2 * k, k))
    slopes, at = np.nan_to_num(phi.subgradient(z)), phi.value(z)
    squares, along = np.linalg.eigh(slopes.T @ slopes)
    off = np.abs(phi.value(z + along[:, 0]) - at)
    return bool(squares[0] <= 1e-10 * squares[-1] and (off <= 1e-6 * np.abs(at).max()).all())


def read(certificate: Certificate, gap: float) -> str:
    """The sentence of points from a file that do not reach the gap asked for."""
    reached = f"have a {gap_of(certificate)}" if certificate.valid else f"have no certificate ({certificate.note})"
    remedy = "a solve with this answer as start= goes on from them"
    return f"The points of the file {reached} where {gap:.3g} was asked for; {remedy}."


def floor_of(certificate: Certificate) -> str:
    """The term whose conjugate is known so roughly that no smaller gap may be had, and what to do; empty where it is
    none's."""
    if not (certificate.valid and certificate.relative_gap <= ROUGH):
        return ""
    rough = [notation_of(edge.penalty).value for edge in certificate.form.edges if edge.penalty.accuracy() > CLOSED]
    names = " and of ".join(dict.fromkeys(value.replace("%z", "z") for value in rough))
    said = "is derived, and likely too rough for a smaller gap: write a class with a conjugate in closed form"
    return f"the conjugate of {names} {said}" if names else ""


def unlike(form: Form, ratio: float = UNLIKE) -> str:
    """Advice on features that one penalty acts on and whose sizes differ by more than a ratio, the smallest and the
    largest named; empty where there are none. An intercept is a feature of ones."""
    designs = [block.X for block in form.at_nodes if block.X is not None]
    if not designs:
        return ""
    sizes = np.max([np.abs(X).max(axis=0, initial=0.0) for X in designs], axis=0)
    sizes = np.repeat(sizes, form.d // len(sizes))  # of each class
    everywhere = [np.arange(form.d)] if ratio >= UNLIKE else []  # beyond it numbers suffer, whatever the penalties
    for columns in (*everywhere, *(edge.map.columns(form.d) for edge in form.edges)):
        known = columns[sizes[columns] > 0.0]
        if not len(known) or sizes[known].max() <= ratio * sizes[known].min():
            continue
        low, high = (feature_of(form.space.coordinates[known[at(sizes[known])]]) for at in (np.argmin, np.argmax))
        return (
            f"standardise the features (their largest values range from {sizes[known].min():.2g} in {low!r} to "
            f"{sizes[known].max():.2g} in {high!r})"
        )
    return ""


def alike(form: Form) -> str:
    """Advice on features that are collinear but for little, over all samples, the first few named; empty where there
    are none. The exact optimum lives on that little, with coefficients as large as it is small."""
    designs = [block.X for block in form.at_nodes if block.X is not None]
    if not designs or sum(X.size for X in designs) > MOST:
        return ""
    X = np.vstack(designs)
    sizes = np.abs(X).max(axis=0, initial=0.0)
    known = np.flatnonzero(sizes > 0.0)
    if len(X) < len(known) or len(known) < 2:
        return ""
    _, s, directions = np.linalg.svd(np.linalg.qr(X[:, known] / sizes[known], mode="r"))
    if s[-1] > COLLINEAR * s[0]:
        return ""
    parts = np.abs(directions[-1])
    names = [feature_of(form.space.coordinates[j * (form.d // len(sizes))]) for j in known[parts > 0.1 * parts.max()]]
    return f"drop one of {few(names)} (which are collinear but for {s[-1] / s[0]:.0e} of their size)"


def in_other_units(form: Form) -> str:
    """The sentence that penalties weigh features alike whose units are not; empty where they are."""
    said = unlike(form, APART)
    return f"penalties weigh all coefficients alike, in whatever units: {said}" if said else ""


def gap_of(certificate: Certificate) -> str:
    return f"relative gap of {relative_in_words(certificate, 2)}"


def _reached(certificate: Certificate) -> str:
    reached = gap_of(certificate) if certificate.valid else "point without certificate"
    if not np.isfinite(certificate.primal):
        reached += f" ({NO_POINT})" if certificate.form.limited else " (the objective is not finite at its iterates)"
    return reached


def unattained(certificate: Certificate, gap: float, nodes: Sequence[Hashable] = ()) -> str:
    """The sentence where no minimum is attained, since losses at these nodes, where they are known, fall for ever."""
    if certificate.holds(gap):
        known = "The infimum is certified, but not attained"
    elif certificate.valid:
        known = f"The infimum is bounded (relative gap of {certificate.relative_gap:.2g}), but not attained"
    else:
        known = "The infimum is not attained"
    where = f" at the node{'s' * (len(nodes) > 1)} {few([visible(repr(x)) for x in nodes], 5)}" if nodes else ""
    return (
        f"{known}: along some direction the losses fall for ever{where} (separable classes, counts that are all 0); "
        "add a ridge on every coordinate that may run away, for instance 1e-3 * gr.SquaredL2()(gr.w): a NodePenalty "
        "leaves out the intercept."
    )
