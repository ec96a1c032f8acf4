"""The common parts of the figures of section VI: a panel for each penalty, a curve for each level, (39) on a log
axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..figures import curve
from ._networks import LABELS


def series(
    cells: list[dict[str, Any]], found: list[list[dict[str, Any]]], level: str, x: str
) -> tuple[list[dict[str, Any]], dict[tuple[str, float, float], float], dict[str, Any]]:
    """The rows of the table; the mean MSE by penalty, level and x; and what the figure is drawn from."""
    table, mean, panels = list[dict[str, Any]](), {}, dict[str, Any]()
    for cell, runs in zip(cells, found, strict=True):
        values = [run["mse"] for run in runs]
        key = cell["penalty"], cell[level], cell[x]
        mean[key] = float(np.mean(values))
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
        table.append({"penalty": key[0], level: key[1], x: key[2], "MSE": mean[key], "standard deviation": deviation})
        line = panels.setdefault(key[0], {}).setdefault(f"{level} = {key[1]:g}", {"x": [], "values": []})
        line["x"].append(key[2])
        line["values"].append(values)
    return table, mean, {"panels": panels}


def panels(figure: Any, data: dict[str, Any], x: str, end: float) -> None:
    """A panel for each penalty, two in a row, with means and standard errors over the replications; what lies below the
    end of the paper's axis is drawn there."""
    rows = len(data["panels"]) // 2 + 1  # a place is left for the legend
    sheet = figure.subplots(rows, 2, sharey=True, squeeze=False).ravel()
    figure.set_size_inches(6.4, 2.8 * rows)
    axes, rest = sheet[: len(data["panels"])], sheet[len(data["panels"]) :]
    for ax, (penalty, lines) in zip(axes, data["panels"].items(), strict=True):
        for label, line in lines.items():
            curve(ax, line["x"], np.maximum(line["values"], end).tolist(), label)
        ax.axhline(end, color="0.6", linestyle=":", linewidth=1.0, label="end of the printed axis")
        ax.set_yscale("log")
        ax.set_ylim(bottom=end / 3.0)
        ax.set_title(LABELS[penalty])
        ax.set_xlabel(x)
        ax.set_ylabel("MSE (39)")
        ax.grid(visible=True, which="major", linewidth=0.3)
    for ax in rest:
        ax.set_axis_off()
    rest[0].legend(*axes[0].get_legend_handles_labels(), loc="center")
