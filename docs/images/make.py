"""Make the pictures of the documentation: ``make pictures``, or python docs/images/make.py [FOLDER].

A page that shows a picture draws it itself: ``images/NAME.png`` behind a block of Python is the figure that the block
leaves. The picture of the README, whose code draws none, is drawn here.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from PIL import Image

import graphreg as gr
from graphreg.plots import plot_bounds, plot_graph

HERE = Path(__file__).resolve().parent
PAGES = ("say-the-model", "pictures", "strengths", "certificates")
CODE, PICTURE = r"^```python[ \t]*\n(?P<body>.*?)^```[ \t]*$", r"!\[[^\]]*\]\(images/(?P<name>[\w-]+)\.png\)"
BLOCK = re.compile(f"{CODE}|{PICTURE}", re.M | re.S)
DPI, WIDE_DPI = 120, 150
COLOURS = 255  # of the palette of a file, which makes it a third as large


def save(figure: Any, path: Path, dpi: int = DPI) -> None:
    """Write the figure with a palette of its own colours."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    small = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def run(code: str, name: str, names: dict[str, Any]) -> None:
    """Run the code of a page, without what it prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, name, "exec"), names)


def of_page(page: str, folder: Path) -> None:
    """The pictures that a page shows behind its blocks."""
    text = (HERE.parent / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": f"docs_{page}"}
    for found in BLOCK.finditer(text):
        if found["name"] is None:
            lines = "\n" * text.count("\n", 0, found.start("body"))  # a traceback shows the line of the page
            run(lines + found["body"], f"{page}.md", names)
        else:
            save(plt.gcf(), folder / f"{found['name']}.png")
            plt.close("all")
    plt.close("all")


def river(folder: Path) -> None:
    """The stations of the README: their clusters, and the bounds after more and more rounds."""
    text = (HERE.parent.parent / "README.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    first, second = [found["body"] for found in BLOCK.finditer(text) if found["name"] is None][:2]
    run(first + second, "README.md", names)
    problem, stations = names["problem"], names["stations"]
    bends = (0.0, 0.35, 0.5, 0.3, -0.1, -0.4, -0.45, -0.2, 0.2, 0.4)
    positions = {label: (float(k), bend) for k, (label, bend) in enumerate(zip(stations, bends, strict=True))}
    budgets = [problem.solve(gr.PrimalDual(), rounds=k, gap=0) for k in (3, 5, 8, 12, 16, 20, 25, 30, 35, 40)]
    figure = plt.figure(figsize=(12.0, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.1, 1.0])
    plot_graph(names["run"], positions, left, prove=True)
    left.set_ylim(-1.3, 1.3)
    plot_bounds([*budgets, names["run"]], ax=right)
    save(figure, folder / "river.png", WIDE_DPI)
    plt.close("all")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    river(folder)
    for page in PAGES:
        of_page(page, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
