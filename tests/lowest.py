"""The lowest version of each package that ``pyproject.toml`` allows, a line each, as pip reads it (`make lowest`).

``python tests/lowest.py test plot`` prints those that graphreg needs and those of the extras named.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
BOUND = re.compile(r"(?P<name>[\w-]+(\[\w+\])?)>=(?P<version>[\d.]+(post\d+)?)")


def lowest(extras: list[str]) -> Iterator[str]:
    """The requirements; what names an extra of graphreg itself is left out."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    groups = project["optional-dependencies"]
    for each in [*project["dependencies"], *(line for name in extras for line in groups[name])]:
        if not each.startswith("graphreg"):
            found = BOUND.fullmatch(each)
            if found is None:
                raise SystemExit(f"{each!r} in {PROJECT.name} is no lower bound, as in 'numpy>=2.0'")
            yield f"{found['name']}=={found['version']}"


if __name__ == "__main__":
    print("\n".join(sorted(set(lowest(sys.argv[1:])))))
