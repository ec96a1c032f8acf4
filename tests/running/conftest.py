"""A checkpoint to begin with, and a frame of three nodes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from factories import chain
from solution_cases import NODES

import graphreg as gr


@pytest.fixture
def stored(tmp_path):
    """The checkpoint of a short run of `chain()`."""
    path = tmp_path / "run"
    chain().solve(gr.PrimalDual(), gap=0, rounds=20, checkpoint=path)
    return path


@pytest.fixture
def rng():
    return np.random.default_rng(17)


@pytest.fixture
def frame(rng):
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["rain", "temp"])
    frame["site"] = np.repeat(NODES, 10)
    frame["gauge"] = rng.normal(size=30)
    frame["level"] = frame["rain"] - frame["temp"] + 0.5 * rng.normal(size=30) + frame["gauge"]
    frame["flood"] = (frame["level"] + rng.logistic(size=30) > 0).astype(int)
    return frame.set_index(np.arange(100, 130))
