"""Ticks of logarithmic axes: few enough, round, and written so that they can be read."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from picture_checks import READABLE, check_ticks

from graphreg.plots.canvas import log_scale
from graphreg.plots.ticks import label, readable


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (8, 120, [10, 20, 50, 100]),
        (10, 45, [10, 20]),
        (12, 18, [12, 14, 16, 18]),
        (0.5, 3000, [1, 10, 100, 1000]),
        (1e-9, 0.3, [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]),
        (1e-16, 1.0, [1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0]),
    ],
)
def test_round_numbers_are_taken(low, high, ticks):
    np.testing.assert_allclose(readable(low, high, 9), ticks, rtol=1e-12)


def test_every_range_has_some_and_not_too_many():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        low = 10.0 ** rng.uniform(-20, 12)
        high = low * 10.0 ** rng.uniform(0.02, 25)
        most = int(rng.integers(2, 10))
        ticks = readable(low, high, most)
        assert 1 <= len(ticks) <= max(most, 6), (low, high, most, ticks)
        assert (np.diff(ticks) > 0).all()
        assert ticks[0] >= low * (1 - 1e-6)
        assert ticks[-1] <= high * (1 + 1e-6)
        if most > 2:
            assert len(ticks) >= 2, (low, high, most, ticks)
        for tick in ticks:
            assert READABLE.fullmatch(label(tick, ticks)), (tick, label(tick, ticks))
            assert len({label(each, ticks) for each in ticks}) == len(ticks)
    assert not len(readable(0.0, 1.0, 5))
    assert not len(readable(1.0, 1.0, 5))


@pytest.mark.parametrize(
    ("ticks", "written"),
    [
        ([10, 20, 50], ["10", "20", "50"]),
        ([0.001, 0.01], ["0.001", "0.01"]),
        ([1000, 10000, 100000], ["1,000", "10,000", "100,000"]),
        ([1e-6, 1e-2, 1.0], [r"$\mathdefault{10^{-6}}$", r"$\mathdefault{10^{-2}}$", r"$\mathdefault{10^{0}}$"]),
        ([2e-7, 5e-7, 1e-6], ["2e-7", "5e-7", "1e-6"]),
        ([1e6, 2e6], ["1e6", "2e6"]),
        ([0.3, 0.35], ["0.3", "0.35"]),
    ],
)
def test_all_ticks_of_an_axis_are_written_alike(ticks, written):
    assert [label(tick, np.array(ticks, dtype=float)) for tick in ticks] == written
    assert label(0.0, np.array([1.0])) == ""


def test_an_axis_is_read_again_after_a_zoom(pyplot):
    figure, axes = pyplot.subplots()
    axes.plot([1, 1000], [1e-8, 1.0])
    log_scale(axes.xaxis, axes.yaxis)
    for limits in ((1, 1000), (4, 40), (11, 19)):
        axes.set_xlim(*limits)
        figure.canvas.draw()
        check_ticks(axes.xaxis)
    check_ticks(axes.yaxis)


@pytest.mark.parametrize("values", [[5.438e-6, 5.4381e-6], [5.438e-6] * 2, [3e7, 3.0001e7], [0.12, 0.12]], ids=str)
def test_values_that_are_nearly_equal_have_ticks_that_differ(pyplot, values):
    figure, axes = pyplot.subplots()
    axes.plot(values, values, "o")
    log_scale(axes.xaxis, axes.yaxis)
    figure.canvas.draw()
    for axis in (axes.xaxis, axes.yaxis):
        check_ticks(axis)
        low, high = axis.get_view_interval()
        assert low < min(values) <= max(values) < high


def test_a_figure_can_be_pickled(pyplot):
    figure, axes = pyplot.subplots()
    axes.plot([1, 1000], [1e-8, 1.0])
    log_scale(axes.xaxis)
    again = pickle.loads(pickle.dumps(figure))
    again.canvas.draw()
    check_ticks(again.axes[0].xaxis)
