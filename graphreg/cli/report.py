"""What is printed: heads of tables, clusters."""

from __future__ import annotations

import pandas as pd

import graphreg as gr

from .results import has_point

MOST_ROWS, MOST_COLUMNS, MOST_CLUSTERS, MOST_MEMBERS = 10, 7, 5, 8


def answer(solution: gr.Solution) -> str:
    """The solution with its certificate, the first coefficients, and the clusters."""
    if not has_point(solution):
        why = "" if solution.status == "interrupted" else ": no point was found that satisfies all constraints"
        return f"{solution}\n\nno coefficients{why}"
    parts = [str(solution), coefficients(solution.table())]
    if any(not edge.ground for edge in solution.form.edges):
        parts.append(clusters(solution))
    return "\n\n".join(parts)


def coefficients(table: pd.DataFrame) -> str:
    """The head of the table."""
    n, d = table.shape
    rows = f"the first {MOST_ROWS} of {n} nodes" if n > MOST_ROWS else f"{n} nodes"
    columns = f", {MOST_COLUMNS} of {d} columns" if d > MOST_COLUMNS else ""
    shown = table.iloc[:MOST_ROWS].to_string(max_cols=MOST_COLUMNS + 1, float_format=lambda x: f"{x:.4g}")
    return f"coefficients ({rows}{columns})\n{shown}"


def clusters(solution: gr.Solution) -> str:
    """How many there are, and who is in the largest."""
    found = solution.clusters()
    lines = [str(found)]
    for members in found.members()[:MOST_CLUSTERS]:
        if len(members) == 1:
            break
        more = f", ... ({len(members)})" if len(members) > MOST_MEMBERS else ""
        lines.append(f"  {', '.join(map(str, members[:MOST_MEMBERS]))}{more}")
    return "\n".join(lines)
