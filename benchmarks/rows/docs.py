"""docs/beside-others.md: the tables of these studies, for readers."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from . import foreign, models, probes

PAGE = Path("docs/beside-others.md")
TEXT = """\
# Models beside others

Written by `python -m benchmarks.rows --docs` on {day}. What can be said with [rows](say-the-model.md), and whether the
answers are those of others.

## Numbers of other programs

The same data in other programs, whose answers are judged by our objective. *above* is how far theirs lies above our
proved lower bound, relative to the objective: what is negative would refute the bound. *gap* is our own certified gap,
*apart* the largest difference of a parameter over the largest parameter. Optima need not be unique (the median's is
not).

{foreign}

With its default settings genlasso takes a QR decomposition, which its manual calls less stable. Where the rows of D
depend on one another, as on graphs, its answers lie 9% and 22% above the optimum, and with `svd = TRUE` one still 0.1%,
which the bounds show, and CVXPY confirms.

## Models of the literature and of peers

{count} models, each written in one to three lines (`benchmarks/rows/literature.py`, `benchmarks/rows/peers.py`) beside
hand-written CVXPY, asked for a relative gap of {gap:.0e}. *difference* is that of the objectives, relative to
CVXPY's at tolerances of 1e-11; *no* means that a method refuses the model by name. Seconds are CPU's.

{models}

Wild versions of all of them: weights over twelve decades, targets shifted by a million, each penalty as two halves
and a node that nothing touches, one node and two. *largest difference* is of the certified ones:
where it is more than 1e-7 CVXPY's optimum lies above ours. *false* counts bounds above CVXPY's optimum. Counts are of
the runs of all methods of the table above.

{wild}

## {probes} ordinary models

They are from peers' documents, users' threads and first trials of newcomers, and written as their users would:
**{counts}**. All that are said are certified to 1e-6.

{refused}

{said}
"""


def write_docs() -> Path:
    """Measure all and write the page."""
    asked = probes.study_probes()
    counts = asked["answer"].value_counts()
    said, others = asked[asked["answer"] == "said"], asked[asked["answer"] != "said"]
    said = "Said as they stand: " + "; ".join(said["model"]) + "."
    text = TEXT.format(
        day=date.today().isoformat(),
        foreign=markdown(foreign.study_foreign()),
        count=len(models.MODELS),
        gap=models.GAP,
        models=markdown(by_model(models.study_models())),
        wild=markdown(by_setting(models.study_wild_models())),
        probes=len(probes.PROBES),
        counts=", ".join(f"{n} {answer}" for answer, n in counts.items()),
        refused=markdown(others[["model", "answer", "how, or why not"]]),
        said=said,
    )
    PAGE.write_text(text)
    return PAGE


def by_model(table: pd.DataFrame) -> pd.DataFrame:
    """A row per model, a column per method: the difference and CPU seconds, or why there is none."""
    cells = [
        f"{far:.0e}, {seconds:.2g} s" if status == "certified" else status
        for status, far, seconds in zip(table["status"], table["difference"], table["seconds"], strict=True)
    ]
    names = table["model"].str.replace("_", " ")
    wide = table.assign(model=names, cell=cells).pivot(index="model", columns="method", values="cell")
    proved = table.groupby(names)["proved"].agg(lambda each: "yes" if (each == "yes").any() else "no")
    return wide.loc[names.unique(), table["method"].unique()].assign(proved=proved).reset_index()


def by_setting(counts: pd.DataFrame) -> pd.DataFrame:
    """A row for each setting: the runs of all methods together."""
    named = counts.assign(
        others=[f"{m}: {o}" if o else "" for m, o in zip(counts["method"], counts["others"], strict=True)]
    )
    how = {"certified": "sum", "refused": "sum", "largest difference": "max", "false": "sum"}
    joined = named.groupby("setting", sort=False).agg(how | {"others": lambda each: "; ".join(filter(None, each))})
    return joined.reset_index()


def markdown(table: pd.DataFrame) -> str:
    """The table as a page has it."""
    lines = [[*map(str, table.columns)], ["---"] * len(table.columns)]
    lines += [[_cell(x) for x in row] for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(x: Any) -> str:
    if isinstance(x, (float, np.floating)):
        return "" if np.isnan(x) else f"{x:.10g}" if abs(x) >= 1.0 else f"{x:.1e}"
    return str(x).replace("|", "\\|")
