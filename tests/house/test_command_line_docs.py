"""docs/command-line.md and docs/model-files.md do what they say: their model files are read and solved, and they speak
of every key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields

import pytest
from model_files import write
from places import DOCS, ROOT

import graphreg as gr
from graphreg.cli import folder as _folder
from graphreg.cli import main
from graphreg.cli.example import MODEL, files
from graphreg.cli.exits import EXITS
from graphreg.errors import GraphregError
from graphreg.model_file.schema import TABLES

PAGES = [DOCS / "command-line.md", DOCS / "model-files.md"]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
FENCE = re.compile(r'^```(?P<language>\w+)(?: title="(?P<word>[^"]+)")?\n(?P<body>.*?)^```$', re.M | re.S)


@dataclass(frozen=True)
class Block:
    language: str
    word: str  # the title: a file name, or "refused"
    body: str


def blocks():
    return [Block(b["language"], b["word"] or "", b["body"]) for b in FENCE.finditer(TEXT)]


BLOCKS = blocks()
MODELS = [tomllib.loads(block.body) for block in BLOCKS if (block.language, block.word) == ("toml", "")]
REFUSED = [
    (tomllib.loads(block.body), BLOCKS[k + 1].body.strip()) for k, block in enumerate(BLOCKS) if block.word == "refused"
]


@pytest.fixture
def folder(tmp_path):
    for name, content in files().items():
        (tmp_path / name).write_bytes(content)
    for block in BLOCKS:
        if block.language in ("csv", "python") and block.word:
            (tmp_path / block.word).write_text(block.body, encoding="utf-8")
    return tmp_path


def test_the_first_model_is_the_example():
    assert MODELS[0] == tomllib.loads(MODEL)


@pytest.mark.parametrize("changes", MODELS, ids=["-".join(each) for each in MODELS])
def test_models_are_solved(folder, changes):
    model = gr.read_model(write(folder, MODELS[0] | changes), allow_code=True)
    solution = model.solve(gap=1e-3, on_failure="return")
    assert solution.status == "certified", solution


def test_there_is_an_example_for_every_table():
    assert {name for model in MODELS for name in model} == set(TABLES)


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_errors_are_as_printed(folder, changes, message):
    with pytest.raises(GraphregError) as caught:
        gr.read_model(write(folder, MODELS[0] | changes))
    assert str(caught.value) == message


def test_every_key_is_explained():
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.M)
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    keys = {field.name for kind in TABLES.values() for field in fields(kind)}
    assert keys <= explained, f"docs/model-files.md does not explain {sorted(keys - explained)}"


def test_files_exit_codes_and_commands_are_those_of_the_program(folder):
    assert all(f"| `{name}` |" in TEXT for name in _folder.NAMES)
    assert all(re.search(rf"^\| {code} \|", TEXT, re.M) for code in EXITS)
    lines = [line for block in BLOCKS if block.language == "console" for line in block.body.splitlines()]
    used = {line.split()[2] for line in lines if line.startswith("$ graphreg ")}
    assert used == {name for name, each in main.commands.items() if not each.hidden}
    for line in lines:
        path = re.search(r"examples/\S+", line)
        assert path is None or (ROOT / path.group()).exists()


def test_tables_begin_as_shown(folder):
    shown = [block.body for block in BLOCKS if block.language == "text"]
    for name in ("stations.csv", "river.csv"):
        assert any((folder / name).read_text().startswith(each) for each in shown), f"how {name} begins is not shown"
