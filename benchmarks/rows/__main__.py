"""Run the studies: ``python -m benchmarks.rows [words]``; with words, those whose names hold one of them. With
``--docs`` all are run, and docs/beside-others.md is written."""

from __future__ import annotations

import sys

from benchmarks.studies import run

if __name__ == "__main__":
    if "--docs" in sys.argv:
        from .docs import write_docs

        print(f"written: {write_docs()}")
    else:
        run("benchmarks.rows", sys.argv[1:])
