"""The pictures that the documentation shows: each is drawn by the one script, is there, is small, and is described."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from places import DOCS, README, ROOT

SHOWN = re.compile(r"!\[(?P<words>[^\]]*)\]\((?:docs/)?(?:\.\./)?images/(?P<name>[\w-]+\.png)\)")
LARGEST = 120_000  # bytes


def shown():
    """The words and the name of each picture in images/ that a page shows."""
    pages = [README, *DOCS.rglob("*.md")]
    return [(found["words"], found["name"]) for page in pages for found in SHOWN.finditer(page.read_text("utf-8"))]


def test_every_picture_that_is_shown_is_there():
    names = {name for _, name in shown()}
    assert len(names) > 15
    assert {path.name for path in (DOCS / "images").glob("*.png")} == names, "run: make pictures"
    for path in (DOCS / "images").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < LARGEST, path


@pytest.mark.whole
def test_every_picture_is_made(tmp_path):
    """The pages whose blocks draw them are run by `test_docs.py` too."""
    pytest.importorskip("matplotlib")
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(DOCS / "images" / "make.py"), str(tmp_path)],
        env={**os.environ, **threads, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {name for _, name in shown()}
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < LARGEST, path


def test_every_picture_is_described_in_a_sentence():
    for words, name in shown():
        assert len(words.split()) >= 8, f"{name}: {words!r}"


def test_every_plot_has_its_place_on_the_page():
    from graphreg import plots

    text = (DOCS / "pictures.md").read_text("utf-8")
    table = text.split("| picture |")[1].split("\n\n")[0]
    drawing = [name for name in dir(plots) if name.startswith("plot_") or name.endswith("_figure")]
    assert not [name for name in drawing if f"`{name}`" not in table and f"{name}`" not in table]
