"""What claims share beside the library: cells, columns, rows, exponents."""

from __future__ import annotations

import numpy as np
import pytest

from papers.computing import column, error_of_share, grid, rows, slope


def test_the_last_setting_varies_fastest_and_a_number_is_the_same_in_all():
    cells = [{"K": 1, "T": 3, "kind": "a"}, {"K": 1, "T": 4, "kind": "a"}, {"K": 2, "T": 3, "kind": "a"}]
    assert grid(K=(1, 2), T=[3, 4], kind="a") == [*cells, {"K": 2, "T": 4, "kind": "a"}]


def test_a_column_is_by_cell_and_replication():
    runs = [[{"x": 1.0, "y": [1, 2]}, {"x": 2.0, "y": [3, 4]}], [{"x": 3.0, "y": [5, 6]}, {"x": 4.0, "y": [7, 8]}]]
    assert column(runs, "x").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert column(runs, "y").shape == (2, 2, 2)


def test_rows_of_columns_are_of_one_length():
    assert rows({"T": (1, 2), "of": "a", "x": np.array([3, 4])}) == [
        {"T": 1, "of": "a", "x": 3},
        {"T": 2, "of": "a", "x": 4},
    ]
    with pytest.raises(ValueError, match="shorter"):
        rows({"T": (1, 2), "x": [3]})


def test_exponents_and_errors():
    x = np.array([1.0, 2.0, 5.0])
    assert slope(x, 3.0 * x**-1.5) == pytest.approx(-1.5)
    assert error_of_share(0.2, 400) == pytest.approx(0.02)
