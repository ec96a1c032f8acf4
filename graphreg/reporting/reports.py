"""Reports of answers and of paths; see docs/reports.md."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import checks
from ..compare import Comparison
from ..errors import ModelError
from ..escaping import visible
from ..form import Form
from ..form.notation import count
from ..running import Solution
from . import picture, records, sentences
from .formulas import formulas, with_parameter
from .frames import Frame, of_answer, of_iterate, size_of
from .page import page, text, write

if TYPE_CHECKING:
    from ..tuning import Path

DATA = 4.2e6  # characters that all frames of a page may take
MOST = 120  # frames of a page
FULL = 1.0 - 1e-2  # of a capacity: an iterate that uses so much is drawn as saturated
T = TypeVar("T")


def report_solution(
    solution: Solution,
    file: str | os.PathLike[str],
    positions: Any = None,
    outlines: Any = None,
    comparison: Comparison | None = None,
) -> None:
    """Write the report of an answer, see `Solution.report`."""
    (checks.instance(Comparison, "a Comparison, as gr.compare gives it") | None)(comparison, "comparison")
    _check_point(solution)
    form = solution.form
    frames = [*_iterates(solution), of_answer(solution, _facts(solution, "the answer", "The certified answer"))]
    kind = "round" if len(frames) > 1 else "one"
    data = picture.graph(form, positions, outlines) | picture.moving(form, frames)
    data |= {"kind": kind, "runs": records.runs(solution, comparison), "begin": picture.first_edge(frames[-1])}
    title = f"{solution.method} on {count(form.n, 'node')}: {solution.status}"
    _write(file, title, solution, form, data, answer=sentences.certificate(solution))


def report_path(path: Path, file: str | os.PathLike[str], positions: Any = None, outlines: Any = None) -> None:
    """Write the report of a path, see `Path.report`."""
    found = {strength: each for strength, each in path.solutions.items() if math.isfinite(each.objective)}
    if not found:
        raise ModelError("there is nothing to report: the path has no strength with a point that satisfies its problem")
    first = next(iter(found.values()))
    kept = _thinned(list(found.items()), first.form, MOST)
    name = visible(path.parameter.name)
    frames: list[Frame] = []
    for strength, solution in kept:
        label = f"{strength:.4g}"
        facts = _facts(solution, label, f"{name} = {label}, {solution.status}")
        frames.append(of_answer(solution, facts))
        frames[-1].trace.extend(records.trace(solution))
    start = len(frames) // 2
    data = picture.graph(first.form, positions, outlines) | picture.moving(first.form, frames)
    data |= {"kind": "strength", "parameter": name, "start": start, "begin": picture.first_edge(frames[start])}
    title = f"A path of {name}: {count(len(found), 'strength')}, {count(first.form.n, 'node')}"
    low, high = kept[0], kept[-1]
    form = with_parameter(path.parameter, (low[0], high[0]), (low[1].form, high[1].form))
    _write(file, title, first, form, data, answer=_of_path(path, len(found), len(kept)), path=path)


def _write(
    file: str | os.PathLike[str],
    title: str,
    solution: Solution,
    form: Form,
    data: dict[str, Any],
    answer: Sequence[str],
    path: Path | None = None,
) -> None:
    assumed = [*([] if path is None else path.assumed), *sentences.assumed(solution)]
    left_open = sentences.left_open(path is not None, data["kind"] == "round")
    words = "".join(f"<p>{text(each)}</p>" for each in answer)
    content = page(title, sentences.subject(form), words, assumed, left_open, formulas(form), picture.script_json(data))
    write(file, content)


def _check_point(solution: Solution) -> None:
    if not math.isfinite(solution.objective):
        raise ModelError(
            f"there is nothing to report: no point was found that satisfies all constraints ({solution.status}: "
            f"{solution.message})"
        )


# ---- frames ----------------------------------------------------------------------------------------------------------
def _thinned(frames: list[T], form: Form, most: int) -> list[T]:
    """At most so many as the page has room for, evenly spaced, the first and the last among them."""
    room = max(2, min(most, int(DATA / size_of(form))))
    if len(frames) <= room:
        return frames
    return [frames[k] for k in np.unique(np.rint(np.linspace(0, len(frames) - 1, room)).astype(int)).tolist()]


def _iterates(solution: Solution) -> list[Frame]:
    """The iterates that an observer saw, where they are of the problem itself."""
    observed, form = solution.observed, solution.form
    if observed is None or "w" not in observed or observed["w"].shape[1:] != form.shape or solution.own is not None:
        return []
    flows = observed["flows"] if "flows" in observed else None
    frames: list[Frame] = []
    for k in _thinned(list(range(len(observed.rounds))), form, MOST):
        u = None if flows is None else tuple(part[k] for part in flows)
        after = int(observed.rounds[k])
        facts = {"label": f"round {after}", "round": after, "said": _of_round(solution, after), "iterate": True}
        frames.append(of_iterate(form, observed["w"][k], u, FULL, facts))
    return frames


def _of_round(solution: Solution, after: int) -> str:
    said = f"After round {after}: the iterate as the method held it, which nothing certifies"
    known = [each for each in solution.trace.certified() if each.round <= after]
    if not known:
        return f"{said}; no bound was known by then"
    primal, dual = min(each.primal for each in known), max(each.dual for each in known)
    return f"{said}; by then it was certified that {dual:.8g} ≤ optimum ≤ {primal:.8g}"


def _facts(solution: Solution, label: str, said: str) -> dict[str, Any]:
    certificate = solution.certificate
    bounds = f"{said}: {sentences.bounds(solution)}"
    if certificate.valid:
        bounds += f", relative gap {certificate.relative_gap:.2g}"
    if any(not edge.ground for edge in solution.form.edges):
        bounds += f"; {count(solution.clusters().count, 'cluster')}"
    end = {"dual": records.number(certificate.dual), "primal": records.number(certificate.primal)}
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
