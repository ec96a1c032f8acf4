"""Run the studies: ``python -m benchmarks.rows [words]``; with words, those whose names hold one of them."""

from __future__ import annotations

import sys

from benchmarks.studies import run

if __name__ == "__main__":
    run("benchmarks.rows", sys.argv[1:])
