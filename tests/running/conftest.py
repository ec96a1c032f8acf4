"""A frame of three nodes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from solution_cases import NODES


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
