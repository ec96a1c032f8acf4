"""Every model of rows beside hand-written CVXPY, method by method, as it is and wild."""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import graphreg as gr
from graphreg.verify import check

from .literature import LITERATURE
from .peers import PEERS
from .settings import Maker, Setting

MODELS: dict[str, Maker] = {make.__name__: make for make in (*LITERATURE, *PEERS)}
METHODS: dict[str, Any] = {
    "solve()": None,
    "Exact": gr.Exact(),
    "PrimalDual": gr.PrimalDual(),
    "ADMM": gr.ADMM(),
    "InteriorPoint": gr.InteriorPoint(),
}
WILD = {
    "weights over 12 decades": Setting(decades=12.0),
    "targets + 1e6": Setting(shift=1e6),
    "duplicated rows, a lone node": Setting(twice=True, lone=True),
    "n = 1": Setting(size=1),
    "n = 2": Setting(size=2),
}
GAP, SECONDS, SAME = 1e-7, 60.0, 1e-7
SMALL = 1e-3  # of an optimum: differences are relative to at least this
COLUMNS = ["model", "method", "status", "difference", "gap", "seconds", "proved", "false"]


def study_models() -> pd.DataFrame:
    """Each model of the literature and of peers by each method: (P - P_CVXPY) / |P_CVXPY|, the certified gap, CPU
    seconds, whether a proof of it is accepted, and bounds that are false. A "no" is a refusal by name."""
    return pd.DataFrame([row for make in MODELS.values() for row in examined(make, Setting())], columns=COLUMNS)


def study_wild_models() -> pd.DataFrame:
    """The same models wild: how many are certified, end without, or are refused, and all bounds that are false."""
    counts = []
    for what, setting in WILD.items():
        rows = [row for make in MODELS.values() for row in examined(make, setting)]
        table = pd.DataFrame(rows, columns=COLUMNS)
        for method, part in table.groupby("method", sort=False):
            some = part[part["status"] == "certified"]
            rest = part[~part["status"].isin(["certified", "no"])]
            others = ", ".join(f"{m} {s}" for m, s in zip(rest["model"], rest["status"], strict=True))
            worst = np.abs(some["difference"]).max()
            counts.append((what, method, len(some), (part["status"] == "no").sum(), worst, part["false"].sum(), others))
    names = ["setting", "method", "certified", "refused", "largest difference", "false", "others"]
    return pd.DataFrame(counts, columns=names)


def examined(make: Maker, setting: Setting) -> list[tuple[Any, ...]]:
    """A row for every method."""
    twin = make(setting)
    problem = gr.Problem(setting.wild(twin.model))
    with warnings.catch_warnings(action="ignore"):
        best = twin.best()
    return [(make.__name__, name, *_row(problem, method, best)) for name, method in METHODS.items()]


def _row(problem: gr.Problem, method: Any, best: float) -> tuple[Any, ...]:
    began, scale = time.process_time(), max(abs(best), SMALL)
    try:
        answer = problem.solve(method, gap=GAP, seconds=SECONDS, progress=False, on_failure="return")
    except gr.errors.MethodError:
        return ("no", np.nan, np.nan, np.nan, "", False)
    seconds, bounds = time.process_time() - began, answer.certificate
    proved = _proved(answer) if answer.status == "certified" else ""
    far, false = (answer.objective - best) / scale, bounds.dual > best + SAME * scale
    return answer.status, far if np.isfinite(best) else np.nan, bounds.relative_gap, seconds, proved, false


def _proved(answer: gr.Solution) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        try:
            answer.prove(path)
        except gr.errors.GraphregError:
            return "no"
        return "yes" if check(path.read_bytes()) else "rejected"
