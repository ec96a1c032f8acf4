"""The words and formulas of a report: the certificate in a sentence, what it rests on, what nothing certifies."""

from __future__ import annotations

import html
import math

from ..base.messages import count
from ..certificate import relative_in_words
from ..form import Form, notation
from ..form.notation import Written
from ..mathml import to_mathml, to_sentence
from ..running import Solution
from ..terms import EdgeBlock, Parameter, SampleBlock, Strength, alike

MEANING = {
    "certified": "the gap that was asked for is met",
    "budget": "the budget was spent before the gap that was asked for was met; the bounds hold all the same",
    "interrupted": "the run was broken off; the bounds hold all the same",
    "no_certificate": "nothing bounds the optimum from below",
    "unattained": "no minimum is attained: the infimum lies at infinity",
    "infeasible": "no point satisfies all constraints",
    "failed": "the method failed",
}
NOT_CERTIFIED = (
    "The coefficients themselves: the bounds are bounds of the objective. How far the coefficients are from an "
    "optimum is known only where this page gives a distance.",
    "Edges that are undecided, and so the number of clusters beyond its range.",
    "How the data came about, and how well the model predicts.",
    "Shares of the gap by node and by edge: they are computed in floating point, and add up to "
    "the gap but for rounding.",
)
OF_PATHS = "Whatever happens between two strengths of the slider."
OF_ITERATES = "Iterates of a run, shown as the method held them; the bounds beside them may be of repaired flows."


def bounds(solution: Solution) -> str:
    """'12.3 <= optimum <= 12.4', or that there is none."""
    certificate = solution.certificate
    if not certificate.valid:
        return f"No bound on the optimum: {certificate.note}."
    return f"{certificate.dual:.10g} ≤ optimum ≤ {certificate.primal:.10g}"


def certificate(solution: Solution) -> list[str]:
    """Sentences: the status, the bounds, the gap, the distance, the clusters."""
    own = solution.certificate
    said = [f"Status: {solution.status}: {MEANING[solution.status]}. {solution.message}"]
    if not own.valid:
        return [*said, bounds(solution)]
    said.append(
        f"The objective here is {own.primal:.10g}, and no point of this problem has one below {own.dual:.10g}: "
        f"{bounds(solution)}. The gap is {own.gap:.3g}, relative {relative_in_words(own)}; rounding is counted in."
    )
    if math.isfinite(own.distance):
        unit = solution.form.space.unit
        said.append(f"All coefficients together are at most {own.distance:.3g} from the optimal ones{unit}, Euclidean.")
    if solution.form.unlike_edges:
        names = ", ".join(dict.fromkeys(edge.name for edge in solution.form.unlike_edges))
        said.append(f"The rows of {names} are no edges, and are not drawn; solution.flows.table() has them.")
    if solution.form.between:
        said.append(f"Clusters: {solution.clusters()}.")
    return said


def assumed(solution: Solution, iterates: bool = False) -> list[str]:
    """The sentences that the bounds rest on; the last sentence of a summary speaks of its own columns."""
    flows = " ".join(["in the answer"] * iterates + [solution.flows.table().assumed[0]])
    return [*solution.summary().assumed[:-1], flows, *solution.flows.table().assumed[1:]]


def left_open(paths: bool, iterates: bool) -> list[str]:
    """The sentences on what is not certified."""
    return [*NOT_CERTIFIED, *[OF_PATHS] * paths, *[OF_ITERATES] * iterates]


def subject(form: Form) -> str:
    """'SquaredLoss + 0.3 TotalVariation(L2); 10 nodes, 9 edges'."""
    m, rows = (sum(edge.count for edge in edges) for edges in (form.between, form.unlike_edges))
    terms = [name if strength.text() == "1" else f"{strength.text()} {name}" for strength, name in form.terms()]
    others = f", {count(rows, 'row')}" if rows else ""
    return f"{' + '.join(terms)}; {count(form.n, 'node')}, {count(m, 'edge')}{others}"


# ---- a problem, its dual and its optimality conditions as HTML with typeset formulas ---------------------------------
def formulas(form: Form) -> str:
    """The primal, and the dual and the optimality conditions to be unfolded."""
    parts = [f"<div class='formulas'>{_written(notation.primal(form))}</div>"]
    for title, written in (
        ("The dual problem: flows and prices that bound the optimum from below", notation.dual(form)),
        ("The optimality (KKT) conditions: where all hold, both points are optimal", notation.kkt(form)),
    ):
        parts.append(
            f"<details open><summary>{title}</summary><div class='formulas'>{_written(written)}</div></details>"
        )
    return "".join(parts)


def with_parameter(parameter: Parameter, values: tuple[float, float], forms: tuple[Form, Form]) -> Form:
    """The first of two forms with the Parameter in the place of the strengths that vary with it as its values do."""

    def named(a: SampleBlock | EdgeBlock, b: SampleBlock | EdgeBlock) -> SampleBlock | EdgeBlock:
        before, after = float(a.strength) / values[0], float(b.strength) / values[1]
        if abs(before - after) > 1e-9 * before:
            return a
        return alike(a, strength=Strength(float(f"{before:.12g}"), parameter))

    if values[0] == values[1]:
        return forms[0]
    samples, edges = (
        tuple(named(a, b) for a, b in zip(*(getattr(form, name) for form in forms), strict=True))
        for name in ("samples", "edges")
    )
    return alike(forms[0], samples=samples, edges=edges)


def _written(written: Written) -> str:
    parts: list[str] = []
    for section in written.sections:
        rows = "".join(_row(row.math, row.note, display=True) for row in section.rows)
        parts.append(f"<p class='heading'>{to_sentence(section.heading.latex)}</p><table class='rows'>{rows}</table>")
    if written.legend:
        rows = "".join(_row(row.math, row.note, display=False) for row in written.legend)
        parts.append(f"<p class='heading'>where</p><table class='rows legend'>{rows}</table>")
    parts += [f"<p>{html.escape(remark)}</p>" for remark in written.remarks]
    return "".join(parts)


def _row(math: notation.Math, note: notation.Math, display: bool) -> str:
    formula = to_mathml(math.latex) if display else to_sentence(math.latex)
    return f"<tr><td>{formula}</td><td>{to_sentence(note.latex)}</td></tr>"
