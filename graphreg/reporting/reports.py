"""Reports of answers and of paths; see docs/reports.md."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import checks
from ..base.clock import stages
from ..base.escaping import visible
from ..base.messages import count
from ..certificate import Certificate, Certifier
from ..comparing import Comparison
from ..errors import ModelError
from ..form import Form
from ..judging import beyond_capacity
from ..running import Record, Solution
from ..terms import Array
from . import picture, sentences
from .frames import Frame, of_answer, of_iterate, size_of
from .page import Words, check_place, page, plain_page, write
from .sentences import formulas, with_parameter

if TYPE_CHECKING:
    from ..auditing import Audit
    from ..tuning import Path

DATA = 4.2e6  # characters that all frames of a page may take
MOST = 120  # frames of a page
FULL = 1.0 - 1e-2  # of a capacity: an iterate that uses so much is drawn as saturated
SECONDS = 20.0  # for the bounds that follow from iterates
BETWEEN = (
    "Those of this answer's run are the bounds that follow from its iterates, which were observed; bytes between two "
    "checks of the run are on a straight line."
)
T = TypeVar("T")


def report_solution(
    solution: Solution,
    file: str | os.PathLike[str],
    positions: Any = None,
    outlines: Any = None,
    comparison: Comparison | None = None,
    facts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write the report of an answer, see `Solution.report`; ``facts``, lines by name, stand at its head."""
    (checks.instance(Comparison, "a Comparison, as gr.compare gives it") | None)(comparison, "comparison")
    place = check_place(file)
    if not math.isfinite(solution.objective):
        raise ModelError(
            f"there is nothing to report: no point was found that satisfies all constraints ({solution.status}: "
            f"{solution.message})"
        )
    form = solution.form
    with stages("report", first="what is seen"):
        frames = [*_iterates(solution), of_answer(solution, _facts(solution, "the answer", "The certified answer"))]
        kind = "round" if len(frames) > 1 else "one"
        data = picture.graph(form, positions, outlines) | picture.moving(form, frames)
        data |= {
            "kind": kind,
            "runs": _runs(solution, comparison),
            "between": "",
            "begin": picture.first_edge(frames[-1]),
        }
        seen = [check for frame in frames for check in frame.trace]
        if len(seen) > 1:
            data["runs"][0]["trace"] = [*seen, *(each for each in data["runs"][0]["trace"][-1:] if each["certified"])]
            data["between"] = BETWEEN
        title = f"{solution.method} on {count(form.n, 'node')}: {solution.status}"
        left_open = sentences.left_open(False, kind == "round")
        said = sentences.certificate(solution), sentences.assumed(solution, kind == "round"), left_open
        words = Words(title, sentences.subject(form), *said, facts or {})
        write(place, page(words, formulas(form), picture.script_json(data)))


def report_path(path: Path, file: str | os.PathLike[str], positions: Any = None, outlines: Any = None) -> None:
    """Write the report of a path, see `Path.report`."""
    place = check_place(file)
    found = {strength: each for strength, each in path.solutions.items() if math.isfinite(each.objective)}
    if not found:
        raise ModelError("there is nothing to report: the path has no strength with a point that satisfies its problem")
    first = next(iter(found.values()))
    kept = _thinned(list(found.items()), _room(first.form))
    name = visible(path.parameter.name)
    frames: list[Frame] = []
    with stages("report") as at:
        for strength, solution in kept:
            label = f"{strength:.4g}"
            at(f"{name} = {label}")
            facts = _facts(solution, label, f"{name} = {label}, {solution.status}")
            frames.append(of_answer(solution, facts))
            frames[-1].trace.extend(_trace(solution))
    start = len(frames) // 2
    data = picture.graph(first.form, positions, outlines) | picture.moving(first.form, frames)
    data |= {"kind": "strength", "parameter": name, "start": start, "begin": picture.first_edge(frames[start])}
    title = f"A path of {name}: {count(len(found), 'strength')}, {count(first.form.n, 'node')}"
    low, high = kept[0], kept[-1]
    form = with_parameter(path.parameter, (low[0], high[0]), (low[1].form, high[1].form))
    assumed = [*path.assumed, *sentences.assumed(first)]
    said = _of_path(path, len(found), len(kept)), assumed, sentences.left_open(True, False)
    write(place, page(Words(title, sentences.subject(form), *said), formulas(form), picture.script_json(data)))


def report_audit(audit: Audit, file: str | os.PathLike[str]) -> None:
    """Write the report of an audit, see `Audit.report`."""
    write(check_place(file), plain_page(f"Audit of {audit.algorithm}", audit.__html__()))


# ---- frames ----------------------------------------------------------------------------------------------------------
def _room(form: Form) -> int:
    """The number of frames that the page has room for."""
    return max(2, min(MOST, int(DATA / size_of(form))))


def _thinned(items: list[T], room: int) -> list[T]:
    """At most so many items, evenly spaced, the first and the last among them."""
    if len(items) <= room:
        return items
    return [items[k] for k in np.unique(np.rint(np.linspace(0, len(items) - 1, room)).astype(int)).tolist()]


def _iterates(solution: Solution) -> list[Frame]:
    """The iterates that an observer saw, where they are of the problem itself, with the bounds that follow."""
    observed, form = solution.observed, solution.form
    if observed is None or "w" not in observed or observed["w"].shape[1:] != form.shape or solution.own is not None:
        return []
    rows = _thinned(list(range(len(observed.rounds))), _room(form))
    kept = observed["flows"] if isinstance(observed.get("flows"), tuple) else None
    flows = [None if kept is None else tuple(part[k] for part in kept) for k in rows]
    points = list(zip(observed["w"][rows], flows, strict=True))
    bounds, rounds = _bounds(form, points), observed.rounds[rows]
    known = [(0, 0), *((each.round, each.bytes) for each in solution.trace.records)]
    sent = np.rint(np.interp(rounds, *np.array(sorted(known), dtype=float).T))  # on straight lines between the checks
    frames: list[Frame] = []
    for (w, u), after, bytes_, (alone, found) in zip(points, rounds.tolist(), sent.tolist(), bounds, strict=True):
        facts = {"label": f"round {after}", "round": after, "said": _of_round(after, alone, found), "iterate": True}
        frames.append(of_iterate(form, w, u, FULL, facts))
        if found is not None and found.valid:
            frames[-1].trace.append(_check(after, int(bytes_), found))
    return frames


def _bounds(
    form: Form, points: Sequence[tuple[Array, tuple[Array, ...] | None]]
) -> list[tuple[float | None, Certificate | None]]:
    """What the flows of each point prove by themselves, where they do, and the best bounds that follow from it and from
    those before it; None where there are no flows, or where the time for it is over."""
    certifier, begun = Certifier(form), time.monotonic()
    found: list[tuple[float | None, Certificate | None]] = []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for w, u in points:
            if u is None or time.monotonic() - begun > SECONDS:
                found.append((None, None))
            else:
                both = [] if beyond_capacity(form, u) else [Certifier(form), certifier]  # which keeps the best of all
                alone, _ = [each.bound_as_given(u, None) for each in both] or [None, None]
                found.append((alone, certifier.certify(w, u, None, 0.0)))
    return found


def _of_round(after: int, alone: float | None, found: Certificate | None) -> str:
    said = f"After round {after}: the iterate as the method held it, not certified itself"
    if found is None or not found.valid:
        return f"{said}; no bound follows from it here"
    if alone is not None and math.isfinite(alone):
        said += f"; its flows by themselves, with the best prices for them, prove {alone:.10g} ≤ optimum"
    bounds = f"{found.dual:.10g} ≤ optimum ≤ {found.primal:.10g}, relative gap {found.relative_gap:.2g}"
    return f"{said}; what follows from it and those before, flows repaired where that is better: {bounds}"


def _facts(solution: Solution, label: str, said: str) -> dict[str, Any]:
    certificate = solution.certificate
    bounds = f"{said}: {sentences.bounds(solution)}"
    if certificate.valid:
        bounds += f", relative gap {certificate.relative_gap:.2g}"
    if solution.form.between:
        bounds += f"; {count(solution.clusters().count, 'cluster')}"
    end = {"dual": _number(certificate.dual), "primal": _number(certificate.primal)}
    return {
        "label": label,
        "name": f"{visible(solution.method)} at {label}",
        "round": solution.rounds,
        "said": bounds,
        "iterate": False,
        "end": end if certificate.valid else None,
    }


def _of_path(path: Path, found: int, kept: int) -> list[str]:
    met = sum(each.status == "certified" for each in path)
    said = [
        f"{met} of {count(len(path), 'strength')} are certified to a relative gap of {path.gap:.3g}, each by bounds of "
        "its own: lower bound ≤ optimum ≤ objective. The words below the slider have them."
    ]
    if not path.complete:
        said.append(f"The path is incomplete ({path.ended}): {count(len(path.left), 'strength')} are missing.")
    if kept < found:
        said.append(f"To keep the file small the slider has {kept} of the {found} strengths, the ends among them.")
    if found < len(path):
        said.append(f"At {count(len(path) - found, 'strength')} no point was found; the slider leaves them out.")
    return said


# ---- the checks of runs as the page draws them: both bounds by round and by bytes ------------------------------------
CHECKS = 400  # of a run; of more, the first and last and evenly spaced ones


def _trace(solution: Solution) -> list[dict[str, Any]]:
    """One entry per check; at a screen, which is not certified, the objective is that of the iterate, as computed."""
    records = _thinned(solution.trace.records, CHECKS)
    return [_check(each.round, each.bytes, each, each.certified) for each in records]


def _check(after: int, sent: int, found: Record | Certificate, certified: bool = True) -> dict[str, Any]:
    """Round, bytes, relative gap, objective, lower bound (null where there is none), and whether they are certified."""
    return {"round": after, "bytes": sent, **_bounds_of(found, certified), "certified": certified}


def _bounds_of(found: Record | Certificate, certified: bool = True) -> dict[str, float | None]:
    bounds = {"gap": found.relative_gap, "primal": found.primal, "dual": found.dual if certified else np.nan}
    return {name: _number(value) for name, value in bounds.items()}


def _runs(solution: Solution, comparison: Comparison | None) -> list[dict[str, Any]]:
    """The run of the answer, and those of a comparison on the same problem; what solves another problem is left out."""
    found = [_run(solution.method, solution)]
    if comparison is None:
        return found
    certificate = solution.certificate
    if certificate.valid and comparison.dual > certificate.primal:
        raise ModelError(
            f"the comparison is of another problem: it has the lower bound {comparison.dual:.10g}, and this answer "
            f"the objective {certificate.primal:.10g}; compare on the problem of the answer"
        )
    others = {name: each for name, each in comparison.solutions.items() if each.own is None and each is not solution}
    found[0]["name"] += ", this answer"
    return found + [_run(name, each) for name, each in others.items()]


def _run(name: str, solution: Solution) -> dict[str, Any]:
    certificate = solution.certificate
    return {
        "name": visible(name),
        "status": solution.status,
        "trace": [] if solution.own is not None else _trace(solution),
        "end": _bounds_of(certificate) if certificate.valid else None,
    }


def _number(value: float) -> float | None:
    """A number for JSON, which has neither infinities nor nan."""
    return float(value) if math.isfinite(value) else None
