"""The default method's time over the best rival's, workload by workload, beside the ratios that are stored.

Ratios of times taken in turn depend less on the machine than times do. Nothing fails over them: they are shown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from .docs import machine, packages
from .goals import fastest
from .report import TARGET, table
from .solvers import OURS, PREFIX, SOLVERS
from .worker import Run

STORED = Path(__file__).with_name("ratios.json")
SLOWER = 1.2  # times the stored ratio: more is shown as a regression
HEADER = ("workload", "solve() s", "best rival s", "which", "ours/rival", "stored", "change", "")


@dataclass(frozen=True)
class Ratio:
    """CPU seconds of the default method, and of the fastest rival that is as accurate."""

    ours: float
    theirs: float
    rival: str

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def ratios(runs: Sequence[Run]) -> dict[str, Ratio]:
    """Of every workload that both reach to 1e-6."""
    found: dict[str, Ratio] = {}
    rivals = [name for name in SOLVERS if not name.startswith(PREFIX)]
    for workload in dict.fromkeys(run.workload for run in runs):
        here = [run for run in runs if run.workload == workload]
        ours, best = fastest(here, [OURS], TARGET), fastest(here, rivals, TARGET)
        if ours is not None and best is not None and best.solve > 0.0:
            found[workload] = Ratio(ours.solve, best.solve, best.runs[0].solver)
    return found


def ratio_table(now: dict[str, Ratio], before: dict[str, Ratio]) -> str:
    """With the ratio that is stored; that of another rival is not compared."""
    return table([_row(workload, ratio, before.get(workload)) for workload, ratio in now.items()], HEADER)


def regressions(now: dict[str, Ratio], before: dict[str, Ratio]) -> list[str]:
    """The workloads on which the ratio to the same rival has grown by more than a fifth."""
    return [name for name, ratio in now.items() if _change(ratio, before.get(name)) > SLOWER]


def _change(ratio: Ratio, before: Ratio | None) -> float:
    return ratio.ratio / before.ratio if before is not None and before.rival == ratio.rival else 0.0


def _row(workload: str, ratio: Ratio, before: Ratio | None) -> tuple[str, ...]:
    change = _change(ratio, before)
    return (
        workload,
        f"{ratio.ours:.3g}",
        f"{ratio.theirs:.3g}",
        ratio.rival,
        f"{ratio.ratio:.3g}",
        "" if before is None else f"{before.ratio:.3g}" + ("" if change else f" to {before.rival}"),
        f"{change - 1.0:+.0%}" if change else "",
        "SLOWER" if change > SLOWER else "",
    )


def stored(path: Path = STORED) -> tuple[dict[str, Ratio], str]:
    """The ratios that are stored, and where, when and with what they were measured; nothing where there are none."""
    if not path.exists():
        return {}, "no ratios are stored yet (--store stores these)"
    values = json.loads(path.read_text())
    known = {name: Ratio(**each) for name, each in values["ratios"].items()}
    return known, f"stored: {values['date']}, {values['machine']}; {values['versions']}"


def store(now: dict[str, Ratio], path: Path = STORED) -> None:
    """The ratios of these workloads anew, beside those of others."""
    kept = {**stored(path)[0], **now}
    values = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": packages(),
        "ratios": {name: asdict(kept[name]) for name in sorted(kept)},
    }
    path.write_text(json.dumps(values, indent=1) + "\n")
