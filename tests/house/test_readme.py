"""The README does what it says: its Python runs, in order and in one namespace, and its make targets exist."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from operator import attrgetter

import pytest
import tutorials
from places import DOCS, README, ROOT

import graphreg as gr

SHELLS = ("console", "bash", "sh", "shell")
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    language: str
    body: str
    line: int  # of the first line of the body


def blocks(text: str) -> list[Block]:
    return [
        Block(found["language"], found["body"], text.count("\n", 0, found.start("body")) + 1)
        for found in FENCE.finditer(text)
    ]


def readme() -> list[Block]:
    if not README.exists():
        pytest.fail("README.md does not exist", pytrace=False)
    return blocks(README.read_text(encoding="utf-8"))


def make_targets(command: str) -> list[str]:
    """The targets that a shell line asks make for."""
    targets = []
    for part in re.split(r"&&|\|\||[;|]", command):
        words = shlex.split(part, comments=True)
        if words[:1] in (["$"], ["%"]):
            words = words[1:]
        while words and re.fullmatch(r"\w+=.*", words[0]):  # variables set for this command
            words = words[1:]
        if words[:1] == ["make"]:
            targets += [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return targets


def defined_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][\w-]*):", makefile, re.M))


def test_python_blocks_run_in_order_and_print_what_is_shown(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    assert any(block.language == "python" for block in readme()), "README.md has no ```python block"
    assert not list(tutorials.differences(README))


def test_every_public_name_is_spoken_of():
    words = set(re.findall(r"\w+", (DOCS / "what-there-is.md").read_text(encoding="utf-8")))
    assert not sorted(set(gr.__all__) - words)


def test_every_name_of_the_table_is_there():
    rows = (DOCS / "what-there-is.md").read_text(encoding="utf-8").split("**Everything else**")[1]
    for cell in re.findall(r"^\| (`.*?) \|", rows, re.M):
        for name in re.findall(r"`([\w.]+)`", cell):
            if not name.startswith("."):  # of the module before it
                assert attrgetter(name.removeprefix("gr."))(gr)


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 200
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert len(links) > 10
    assert not [link for link in links if not (ROOT / link).exists()]


def test_make_targets_exist():
    shell = [block for block in readme() if block.language in SHELLS]
    asked = {target for block in shell for line in block.body.splitlines() for target in make_targets(line)}
    assert asked, "README.md shows no make target"
    assert asked <= defined_targets(), f"the Makefile has no target {sorted(asked - defined_targets())}"


def test_blocks_are_found():
    text = "a\n```python\nx = 1\ny = 2\n```\nb\n```console\n$ make test\n```\n"
    assert blocks(text) == [Block("python", "x = 1\ny = 2\n", 3), Block("console", "$ make test\n", 8)]


@pytest.mark.parametrize(
    ("command", "targets"),
    [
        ("$ make demo  # three minutes", ["demo"]),
        ("cd graphreg && make test PYTHON=python3.12", ["test"]),
        ("OMP_NUM_THREADS=1 make -j2 lint bench", ["lint", "bench"]),
        ("pip install graphreg", []),
        ("", []),
    ],
)
def test_make_targets_are_found(command, targets):
    assert make_targets(command) == targets
