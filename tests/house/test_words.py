"""The words of the glossary: each names something in the code, and words that were given up do not come back."""

from __future__ import annotations

import keyword
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([\w -]+?) \| (.+) \| (.+?) \|$", GLOSSARY, re.M)
GIVEN_UP = {
    "site": "view",
    "Site": "LocalView",
    "troupe": "coordinator",
    "scene": "coordinator_state",
    "weather": "fault_plan",
    "booked": "recorded",
    "book": "record",
    "circle": "topology",
    "odds": "probabilities",
    "tie": "consensus_flows, or certify_tied",
    "told": "received",
    "heard": "received",
    "steepness": "typical_curvature",
    "under_loss": "for_lost_messages",
    "spare": "residual_df",
}
ELSEWHERE = {  # the same words in their own sense
    ("Site", "view"): "the former name, for methods of users",
    ("tie", "splitting"): "the edge that ties",
    ("steepness", "__init__"): "a module",
    ("tie", "steepest"): "a constraint that ties variables of a conic programme",
    ("tie", "steepness"): "a constraint that ties variables of a conic programme",
    ("tie", "connected"): "equality of capacity and demand",
    ("odds", "predictions"): "p / (1 - p)",
    ("odds", "_predictions"): "p / (1 - p)",
}


@cache
def identifiers() -> dict[str, set[str]]:
    """The files in which each identifier of the package stands."""
    out: dict[str, set[str]] = {}
    for path in sorted((ROOT / "graphreg").rglob("*.py")):
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                    out.setdefault(token.string, set()).add(path.stem)
    return out


def test_the_glossary_is_read():
    words = [word for word, _, _ in ROWS if word not in ("word", "---")]
    assert len(words) > 40
    assert len(words) == len(set(words))


@pytest.mark.parametrize(("word", "where"), [(word, where) for word, _, where in ROWS if "`" in where])
def test_what_the_glossary_names_is_in_the_code(word, where):
    names = re.findall(r"`([\w.=\"]+)`", where)
    assert names, f"{word}: {where} names nothing"
    for name in names:
        assert name.rpartition(".")[2] in identifiers(), f"{word}: {name} is not in the code"


@pytest.mark.parametrize("old", GIVEN_UP)
def test_words_that_were_given_up_do_not_come_back(old):
    found = {stem for stem in identifiers().get(old, ()) if (old, stem) not in ELSEWHERE}
    assert not found, f"{old} is now {GIVEN_UP[old]}; it stands in {sorted(found)}"
