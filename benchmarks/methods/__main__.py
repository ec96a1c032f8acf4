"""Run the studies: ``python -m benchmarks.methods [words]``; with words, those whose names hold one of them."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path


def main(words: list[str]) -> None:
    """Print the table of every study, in the order of the files."""
    import pandas as pd

    pd.set_option("display.width", 200, "display.max_columns", 30, "display.max_colwidth", 80)
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        module = import_module(f"benchmarks.methods.{path.stem}")
        for name in [name for name in vars(module) if name.startswith("study_")]:
            if words and not any(word in f"{path.stem}.{name}" for word in words):
                continue
            study, began = getattr(module, name), time.perf_counter()
            print(f"\n## {path.stem}: {name.removeprefix('study_').replace('_', ' ')}\n{study.__doc__}\n", flush=True)
            print(study().to_string(), f"\n({time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
