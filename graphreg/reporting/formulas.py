"""A problem, its dual and its optimality conditions as HTML with typeset formulas."""

from __future__ import annotations

import html

from ..form import Form, notation
from ..form.notation import Written
from ..terms import EdgeBlock, Parameter, SampleBlock, Strength, alike


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
        parts.append(
            f"<p class='heading'>{notation.to_sentence(section.heading.latex)}</p><table class='rows'>{rows}</table>"
        )
    if written.legend:
        rows = "".join(_row(row.math, row.note, display=False) for row in written.legend)
        parts.append(f"<p class='heading'>where</p><table class='rows legend'>{rows}</table>")
    parts += [f"<p>{html.escape(remark)}</p>" for remark in written.remarks]
    return "".join(parts)


def _row(math: notation.Math, note: notation.Math, display: bool) -> str:
    formula = notation.to_mathml(math.latex) if display else notation.to_sentence(math.latex)
    return f"<tr><td>{formula}</td><td>{notation.to_sentence(note.latex)}</td></tr>"
