"""A checkpoint to begin with."""

from __future__ import annotations

import pytest
from factories import chain

import graphreg as gr


@pytest.fixture
def stored(tmp_path):
    """The checkpoint of a short run of `chain()`."""
    path = tmp_path / "run"
    chain().solve(gr.PrimalDual(), gap=0, rounds=20, checkpoint=path)
    return path
