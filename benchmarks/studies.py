"""Runs studies: functions without arguments whose names begin with ``study_`` and that return a DataFrame."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path


def run(package: str, words: list[str]) -> None:
    """Print the table of every study of a folder, in the order of the files; with words, of those whose names hold one
    of them."""
    import pandas as pd

    pd.set_option("display.width", 200, "display.max_columns", 30, "display.max_colwidth", 80)
    folder = Path(str(import_module(package).__file__)).parent
    for path in sorted(folder.glob("[a-z]*.py")):
        module = import_module(f"{package}.{path.stem}")
        for name in [name for name in vars(module) if name.startswith("study_")]:
            if words and not any(word in f"{path.stem}.{name}" for word in words):
                continue
            study, began = getattr(module, name), time.perf_counter()
            print(f"\n## {path.stem}: {name.removeprefix('study_').replace('_', ' ')}\n{study.__doc__}\n", flush=True)
            print(study().to_string(), f"\n({time.perf_counter() - began:.0f} s)", flush=True)
