"""An answer as text, as tables and as one JSON document."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import graphreg as gr

from ..base.escaping import printed, visible
from ..certificate import Clusters
from ..comparing import distinct
from ..model_file import ModelFile
from ..terms import name_of
from .program import typed

PACKAGES = ("numpy", "scipy", "pandas", "cvxpy", "clarabel", "scs")
WRITER = "graphreg"
MOST_ROWS, MOST_COLUMNS, MOST_CLUSTERS, MOST_MEMBERS = 10, 7, 5, 8  # in the text


def has_point(solution: gr.Solution) -> bool:
    """True where there are coefficients at all: a point that satisfies every constraint."""
    return math.isfinite(solution.objective)


def clusters_of(solution: gr.Solution, prove: bool) -> Clusters | None:
    """The clusters, with proofs where ``prove`` asks for them; None where rows make none, or there is no point."""
    return solution.clusters(prove) if has_point(solution) and solution.form.clustered else None


# ---- text ------------------------------------------------------------------------------------------------------------
def answer(solution: gr.Solution, found: Clusters | None) -> str:
    """The solution with its certificate, the first coefficients, and the clusters, where there are any."""
    if not has_point(solution):
        why = "" if solution.status == "interrupted" else ": no point was found that satisfies all constraints"
        return f"{solution}\n\nno coefficients{why}"
    parts = [str(solution), _coefficients(solution.table())]
    if found is not None and solution.form.between:
        parts.append(_clusters(found))
    return "\n\n".join(parts)


def _coefficients(table: pd.DataFrame) -> str:
    """The head of the table."""
    n, d = table.shape
    rows = f"the first {MOST_ROWS} of {n} nodes" if n > MOST_ROWS else f"{n} nodes"
    columns = f", {MOST_COLUMNS} of {d} columns" if d > MOST_COLUMNS else ""
    shown = printed(table.iloc[:MOST_ROWS], max_cols=MOST_COLUMNS + 1, float_format=lambda x: f"{x:.4g}")
    return f"coefficients ({rows}{columns})\n{shown}"


def _clusters(found: Clusters) -> str:
    """The number of clusters, and the members of the largest."""
    lines = [typed(str(found))]
    for members in found.members()[:MOST_CLUSTERS]:
        if len(members) == 1:
            break
        more = f", ... ({len(members)})" if len(members) > MOST_MEMBERS else ""
        lines.append(f"  {', '.join(map(visible, members[:MOST_MEMBERS]))}{more}")
    return "\n".join(lines)


# ---- tables ----------------------------------------------------------------------------------------------------------
def tables(model: ModelFile, solution: gr.Solution, clusters: Clusters | None) -> dict[str, pd.DataFrame]:
    """The tables of an answer by file name; none where no point was found."""
    if not has_point(solution):
        return {}
    found = {"coefficients.csv": _rows(solution, "node", _in_units(solution))}
    if solution.form.unlike_edges:
        rows = solution.flows.table().dropna(subset=["row"])
        found["rows.csv"] = rows.assign(row=rows["row"].map(_name)).dropna(axis=1, how="all")
    if clusters is not None:
        frame = pd.DataFrame({"node": clusters.labels.keys(), "cluster": clusters.labels.values()})
        found |= {"clusters.csv": frame, "edges.csv": clusters.edges}
    found["flows.csv"] = _flows(solution)
    if solution.latent:
        found["latent.csv"] = _rows(solution, "latent node", solution.latent)
    rows = [
        (data, feature, center, standard.scale[feature])
        for data, standard in _standardised(model)
        for feature, center in standard.center.items()
    ]
    if rows:
        found["standardised.csv"] = pd.DataFrame(rows, columns=["data", "feature", "center", "scale"])
    for name in {"edges.csv", "flows.csv"} & found.keys():
        ends = {end: found[name][end].map(_name) for end in ("tail", "head")}
        found[name] = found[name].assign(**ends)  # a copy: the solution keeps its own
    return found


def _standardised(model: ModelFile) -> list[tuple[str, Any]]:
    """The centre and scale of the features of each table of samples, where they were standardised."""
    return [(each.name or each.file, each.standardised) for each in model.samples if each.standardised is not None]


def _in_units(solution: gr.Solution) -> dict[Any, Any]:
    """The coefficients of each node in the units of the tables."""
    return dict(zip(solution.labels, solution.form.space.in_units(solution.coef), strict=True))


def _rows(solution: gr.Solution, what: str, rows: Mapping[Any, Any]) -> pd.DataFrame:
    """Coefficients by label."""
    table = pd.DataFrame(list(rows.values()), columns=coordinates(solution))
    table.insert(0, what, list(map(_name, rows)), allow_duplicates=True)
    return table


def _flows(solution: gr.Solution) -> pd.DataFrame:
    """The flow of every edge, one column per coordinate; the head of an edge to the ground is empty."""
    form = solution.form
    parts: list[pd.DataFrame] = []
    for edge, u in zip(form.edges, solution.certificate.dual_point.flows, strict=True):
        if edge.map.edges is None:
            continue
        flow = np.zeros((len(u), form.d))
        flow[:, edge.coordinates] = u
        part = pd.DataFrame(flow, columns=coordinates(solution))
        tails, heads = form.ends(edge)
        for k, (name, values) in enumerate({"term": edge.name, "tail": tails, "head": heads}.items()):
            part.insert(k, name, values, allow_duplicates=True)
        parts.append(part)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["term", "tail", "head"])


# ---- the document ----------------------------------------------------------------------------------------------------
def document(
    model: ModelFile, solution: gr.Solution, found: Clusters | None, files: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything that is known of an answer, but for the flows, as plain JSON."""
    content = {
        "written_by": WRITER,
        "versions": versions(),
        "model": {"file": str(model.path), "data": str(model.folders.data), "content": model.content},
        "options": {key: str(each) if isinstance(each, Path) else each for key, each in model.options.items()},
        **_named(solution, "status", "message", "method", "rounds", "seconds", "objective"),
        "certificate": bounds(solution),
        "size": {
            "nodes": len(solution.labels),
            "latent_nodes": len(solution.form.latent),
            "coordinates": coordinates(solution),
            "free_nodes": list(map(_name, solution.free)),
        },
        **({"coefficients": _by_label(solution, _in_units(solution))} if has_point(solution) else {}),
        **({"latent": _by_label(solution, solution.latent)} if has_point(solution) else {}),
        **({} if found is None else {"clusters": clusters(found)}),
        "standardised": [{"data": data, **vars(standard)} for data, standard in _standardised(model)],
        "ledger": _named(solution.ledger, "rounds", "messages", "bytes"),
        "trace": [vars(record) for record in solution.trace.records],
        "files": list(files),
    }
    return plain(content)


def _named(record: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def bounds(solution: gr.Solution) -> dict[str, Any]:
    """The entries that are read off the certificate."""
    certificate = solution.certificate
    return {
        **_named(certificate, "valid", "scope"),
        "dual": certificate.dual if certificate.valid else None,
        **_named(certificate, "primal", "gap", "relative_gap", "charge", "distance", "note"),
    }


def clusters(found: Clusters) -> dict[str, Any]:
    """The entries that are read off the clusters."""
    return {
        "count": found.count,
        "proved_count": list(found.count_range),
        "certain": found.certain,
        "edges": {state: number for state, number in found.counts.items() if number},
        "labels": {_name(label): number for label, number in found.labels.items()},
    }


def plain(value: Any) -> Any:
    """The value with Python's own types; numbers that JSON does not have are null."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def versions() -> dict[str, str]:
    """The versions of graphreg, Python and what the numbers come from."""
    found = {"graphreg": gr.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _by_label(solution: gr.Solution, rows: Mapping[Any, Any]) -> dict[str, dict[str, float]]:
    names = coordinates(solution)
    return {_name(label): dict(zip(names, map(float, row), strict=True)) for label, row in rows.items()}


def coordinates(solution: gr.Solution) -> list[str]:
    """The names of the coordinates, ``feature[class]`` for a multinomial loss."""
    names: dict[str, None] = {}
    for each in map(name_of, solution.form.space.coordinates):
        names[distinct(each, names)] = None  # the feature "a[b]" of a class c, and a of "b][c"
    return list(names)


def _name(label: Any) -> Any:
    """A label as text: those of model files are; a deeper cluster is the path that leads to it, whose parts stand in
    quotes where they have a slash (no two clusters are written alike)."""
    if isinstance(label, tuple):
        return "/".join(repr(part) if "/" in str(part) or "'" in str(part) else str(part) for part in label)
    return label if label is None else str(label)
