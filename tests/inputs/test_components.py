"""Connected components of small graphs, which are found without scipy, are those of large ones."""

from __future__ import annotations

import numpy as np
import pytest

from graphreg.inputs import components_of
from graphreg.inputs import graph as graphs


@pytest.mark.parametrize("seed", range(20))
def test_labels_passed_along_are_those_of_scipy(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 120))
    if seed % 4:
        tail, head = rng.integers(0, n, (2, int(rng.integers(0, 100))))
    else:  # a long way from end to end
        order = rng.permutation(n)
        tail, head = order[:-1], order[1:]
    count, member = components_of(tail, head, n)
    monkeypatch.setattr(graphs, "SMALL", 0)
    expected, members = components_of(tail, head, n)
    assert count == expected
    np.testing.assert_array_equal(member, members)
    assert member.dtype == members.dtype
