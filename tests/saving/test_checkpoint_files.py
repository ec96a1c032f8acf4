"""Checkpoint files that are damaged, cut or none are refused, whatever is in them."""

from __future__ import annotations

import os

import numpy as np
import pytest
from checkpoint_cases import rewritten
from factories import chain
from sameness import contents

import graphreg as gr
from graphreg.errors import CheckpointError
from graphreg.saving import archive


def test_a_file_that_is_no_checkpoint(tmp_path):
    path = tmp_path / "run"
    for content in (b"", b"text", os.urandom(2000)):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="damaged file of graphreg, or none"):
            chain().solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path)
        assert path.read_bytes() == content
    with path.open("wb") as file:
        np.savez(file, mine=np.arange(3))
    with pytest.raises(CheckpointError, match="no file of graphreg"):
        chain().solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path)


def test_every_truncation_is_noticed(stored, tmp_path):
    content, cut = stored.read_bytes(), tmp_path / "cut"
    for size in [*range(0, len(content), len(content) // 60), len(content) - 1]:
        cut.write_bytes(content[:size])
        with pytest.raises(CheckpointError):
            chain().solve(gr.PrimalDual(), gap=0, rounds=20, checkpoint=cut)


def test_every_damaged_byte_is_noticed_or_harmless(stored, tmp_path):
    """Where a byte is turned the file is refused, or is read as it was: dates and the like."""
    content, cut, harmless = bytearray(stored.read_bytes()), tmp_path / "cut", 0
    true = contents(stored)
    places = np.random.default_rng(0).integers(0, len(content), 400)
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << int(place % 8)
        cut.write_bytes(changed)
        try:
            assert contents(cut) == true
            harmless += 1
        except CheckpointError:
            pass
    assert harmless < len(places) // 4


def test_a_header_that_makes_no_sense(stored):
    header = archive.read(stored)[0]
    tree = header["values"][0]["tree"]
    trees = [
        ({"record": ["os:system", {}]}, "does not have"),
        ({"record": [tree["record"][0], {"round": 1}]}, "does not have"),
        ({"array": 10**6}, "cannot be read"),
        ({"magic": 1}, "cannot be read"),
        ({"tuple": 3}, "cannot be read"),
        (17, "cannot be read"),
    ]
    for wrong, said in trees:
        rewritten(stored, values=[{**header["values"][0], "tree": wrong}])
        with pytest.raises(CheckpointError, match=said):
            chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)
    for values in (None, [{}], [{**header["values"][0], "arrays": 10**6}]):
        rewritten(stored, values=values)
        with pytest.raises(CheckpointError, match="cannot be read"):
            chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)
