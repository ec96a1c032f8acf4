"""Categories in frames: which columns they become, and that other frames are read by the same levels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import DataError

FRAME = pd.DataFrame(
    {
        "field": ["a", "a", "b", "b", "c", "c"],
        "soil": ["sand", "clay", "peat", "clay", "sand", "clay"],
        "rain": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "yield": [1.0, 2.0, 3.0, 2.5, 1.5, 2.2],
    }
)


def read(frame=FRAME, **options):
    given = {"features": ["rain"], "categories": ["soil"], "intercept": True} | options
    return gr.NodeData.from_frame(frame, node="field", target="yield", **given)


def test_a_column_for_each_level_but_the_first():
    data = read()
    assert data.features == ("intercept", "rain", "soil[peat]", "soil[sand]")
    dummies = pd.get_dummies(FRAME["soil"], drop_first=True).to_numpy(float)
    np.testing.assert_array_equal(data.X, np.c_[np.ones(6), FRAME["rain"], dummies])


def test_they_stand_where_they_are_named():
    assert read(features=["soil", "rain"], intercept=False).features == ("soil[peat]", "soil[sand]", "rain")
    assert read(features=None).features == ("intercept", "soil[peat]", "soil[sand]")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_order_is_that_of_the_column(library):
    order = ["sand", "silt", "peat", "clay"]
    if library == "pandas":
        frame = FRAME.assign(soil=pd.Categorical(FRAME["soil"], order))
    else:
        polars = pytest.importorskip("polars")
        frame = polars.from_pandas(FRAME).with_columns(polars.col("soil").cast(polars.Enum(order)))
    assert read(frame).features == ("intercept", "rain", "soil[peat]", "soil[clay]")  # no silt was seen


def test_numbers_may_be_names():
    frame = FRAME.assign(soil=[10, 9, 9, 10, 11, 10])
    assert read(frame).features == ("intercept", "rain", "soil[10]", "soil[11]")


def test_predictions_and_updates_keep_the_levels():
    data = read()
    problem = gr.Problem(gr.SquaredLoss(data) + gr.NodePenalty(gr.SquaredL2()))
    solution = problem.solve()
    new = FRAME[["field", "rain", "soil"]].iloc[[1, 3]]  # of one level
    by_hand = (np.c_[np.ones(2), new["rain"], np.zeros((2, 2))] * solution.coef[[0, 1]]).sum(axis=1)
    np.testing.assert_allclose(solution.predict(new), by_hand)
    again = problem.update(FRAME.assign(soil=FRAME["soil"].replace("peat", "sand")))
    assert again.form.space.coordinates == problem.form.space.coordinates
    with pytest.raises(DataError, match=r"category 'soil' is 'loam' in row 1, which the data did not have; its levels"):
        solution.predict(new.assign(soil=["clay", "loam"]))
    with pytest.raises(DataError, match=r"'Clay' in row 0, which the data did not have; did you mean 'clay'\?"):
        solution.predict(new.assign(soil=["Clay", "clay"]))


@pytest.mark.parametrize(
    ("frame", "options", "said"),
    [
        (FRAME, {"categories": ["sol"]}, "the frame has no column 'sol'; did you mean 'soil'"),
        (FRAME.assign(soil="clay"), {}, r"the category 'soil' has one level \('clay'\), which tells nothing apart"),
        (
            FRAME.assign(soil=[None, *FRAME["soil"][1:]]),
            {},
            "the category 'soil' is missing in row 0; fill it in or drop",
        ),
        (FRAME.assign(**{"soil[peat]": 1.0}), {"features": ["soil[peat]"]}, "feature 'soil.peat.' is named twice"),
        (FRAME, {"categories": ["yield"]}, "the target 'yield' is also among the features"),
        (FRAME, {"features": ["soil"], "categories": None}, "where it is a category name it in categories= of from_fr"),
    ],
)
def test_refusals(frame, options, said):
    with pytest.raises(DataError, match=said):
        read(frame, **options)


def test_models_on_categories_are_solved_and_saved(tmp_path):
    problem = gr.Problem(
        gr.SquaredLoss(read()) + 0.1 * gr.TotalVariation(gr.Graph.from_edges([("a", "b"), ("b", "c")]), gr.L2())
    )
    solution = problem.solve()
    solution.save(tmp_path / "answer")
    assert gr.load(tmp_path / "answer", problem).coef.shape == (3, 4)
