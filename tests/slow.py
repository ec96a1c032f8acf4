"""The tests that ``make test`` leaves out, as they take two thirds of the time: `SLOW`, by file and name.

``make test ARGS=--slow`` runs these alone, and so does CI; a file or a folder that is named is run as it is. What both
runs print with ``--durations=0`` is what ``python tests/slow.py`` chooses them anew of. The laws of all terms and the
certificates stay, whatever they take.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

SHARE = 2.0 / 3.0  # of the seconds
STAY = ("tests/certificate/", "tests/terms/test_laws.py", "tests/house/test_survey.py")
LISTED = Path(__file__).with_suffix(".txt")
LINE = re.compile(r"([\d.]+)s (?:call|setup|teardown) +([^\s\[]+)")
SLOW = frozenset(LISTED.read_text().split())


def is_run(item, config) -> bool:
    """Whether a test is run with these options: slow ones are left out where all tests are run."""
    if config.getoption("--whole"):
        return True
    every, slow = config.args == config.getini("testpaths"), item.nodeid.partition("[")[0] in SLOW
    return not item.get_closest_marker("whole") and (slow if config.getoption("--slow") else not (every and slow))


def slowest(durations: str) -> list[str]:
    """The functions that take the longest, down to the one with which they are `SHARE` of all."""
    seconds = Counter[str]()
    for line in durations.splitlines():
        if found := LINE.match(line):
            seconds[found[2]] += float(found[1])
    chosen, left = [], SHARE * seconds.total()
    for name, each in seconds.most_common():
        if left > 0.0 and not name.startswith(STAY):
            chosen.append(name)
            left -= each
    return sorted(chosen)


if __name__ == "__main__":
    LISTED.write_text("\n".join(slowest(sys.stdin.read())) + "\n")
