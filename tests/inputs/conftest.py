"""A frame to read."""

from __future__ import annotations

import pandas as pd
import pytest


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "county": ["b", "a", "b", "c"],
            "radon": [1.0, 2.0, 3.0, 4.0],
            "floor": [0, 1, 0, 1],
            "uranium": [0.5, -0.5, 0.25, 0.0],
            "basement": [True, False, True, True],
            "w": [1, 2, 1, 0.5],
            "o": [0.0, 0.1, 0.2, 0.3],
        }
    )
