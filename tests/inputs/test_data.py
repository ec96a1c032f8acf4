"""Samples are read from frames, dictionaries and arrays, of pandas and of other libraries."""

import numpy as np
import pandas as pd
import pytest
from data_cases import MISREAD, READ, check_message

import graphreg as gr
from graphreg.errors import DataError
from graphreg.inputs.data import NodeData


# ---- reading ---------------------------------------------------------------------------------------------------------
def test_from_frame(frame):
    data = NodeData.from_frame(
        frame, node="county", target="radon", features=["floor", "basement"], weights="w", offset="o", intercept=True
    )
    assert data.labels == ("b", "a", "c")
    assert data.node.dtype == np.intp
    assert data.node.tolist() == [0, 1, 0, 2]
    assert data.features == ("intercept", "floor", "basement")
    assert data.targets == ("radon",)
    np.testing.assert_array_equal(data.X, [[1, 0, 1], [1, 1, 0], [1, 0, 1], [1, 1, 1]])
    assert data.X.dtype == float
    assert data.y.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert data.weights.tolist() == [1.0, 2.0, 1.0, 0.5]
    assert data.offset.tolist() == [0.0, 0.1, 0.2, 0.3]
    assert data.counts().tolist() == [2, 1, 1]
    assert (data.n_samples, data.n_features, data.intercept) == (4, 3, True)
    assert (data.columns.node, data.columns.offset) == ("county", "o")
    assert not any(array.flags.writeable for array in (data.X, data.y, data.weights, data.offset))


def test_from_frame_defaults(frame):
    data = NodeData.from_frame(frame, node="county", target="radon")
    assert data.X is None
    assert data.features == ()
    assert data.weights.tolist() == [1.0] * 4
    assert data.offset.tolist() == [0.0] * 4


def test_from_frame_intercept_alone_and_one_feature_by_name(frame):
    data = NodeData.from_frame(frame, node="county", target="radon", intercept=True)
    assert data.features == ("intercept",)
    assert data.X.tolist() == [[1.0]] * 4
    assert NodeData.from_frame(frame, node="county", target="radon", features="floor").features == ("floor",)


def test_several_targets_and_one_in_a_list(frame):
    data = NodeData.from_frame(frame, node="county", target=["radon", "uranium"])
    assert data.y.shape == (4, 2)
    assert data.targets == ("radon", "uranium")
    assert NodeData.from_frame(frame, node="county", target=["radon"]).y.shape == (4,)
    assert NodeData.from_frame(frame, node="county", features=["floor"]).y is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [([True, False, True, True], "b"), ([0, 1, 1, 0], "i"), (["x", "y", "x", "z"], "O"), ([1.0, 2, 3, 4], "f")],
)
def test_targets_stay_raw(frame, values, kind):
    frame["t"] = values
    data = NodeData.from_frame(frame, node="county", target="t")
    assert data.y.dtype.kind == kind
    assert data.y.tolist() == values
    assert NodeData.from_arrays(None, values, frame["county"]).y.dtype.kind == kind


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "object", "int8"])
def test_numeric_columns_of_every_type(frame, dtype):
    frame["f"] = pd.Series([1, 0, 1, 0]).astype(dtype)
    data = NodeData.from_frame(frame, node="county", target="radon", features=["f"])
    assert data.X[:, 0].tolist() == [1.0, 0.0, 1.0, 0.0]


def test_categorical_labels_and_index_do_not_matter(frame):
    frame["county"] = frame["county"].astype("category")
    data = NodeData.from_frame(frame.set_index(pd.Index([7, 7, 3, 1])), node="county", target="radon")
    assert data.labels == ("b", "a", "c")


def test_labels_become_python_scalars():
    for node in (np.array([3, 1, 3]), pd.Series([3, 1, 3]), [np.int64(3), np.int64(1), 3]):
        data = NodeData.from_arrays(None, [1.0, 2.0, 3.0], node)
        assert data.labels == (3, 1)
        assert {type(label) for label in data.labels} == {int}
    assert NodeData.from_arrays(None, [1.0], [(0, 1)]).labels == ((0, 1),)


def test_from_dict_is_from_arrays(frame):
    rng = np.random.default_rng(0)
    samples = {"p": (rng.normal(size=(2, 3)), rng.normal(size=2)), "q": (rng.normal(size=(1, 3)), [1])}
    data = NodeData.from_dict(samples, intercept=True)
    assert data.labels == ("p", "q")
    assert data.node.tolist() == [0, 0, 1]
    assert data.features == ("intercept", "x0", "x1", "x2")
    np.testing.assert_array_equal(data.X[:, 1:], np.vstack([X for X, _ in samples.values()]))
    np.testing.assert_array_equal(data.y, np.concatenate([y for _, y in samples.values()]))
    other = NodeData.from_arrays(data.X[:, 1:], data.y, ["p", "p", "q"], features=["u", "v", "w"])
    assert other.features == ("u", "v", "w")
    assert other.targets == ("y",)
    assert other.columns is None


def test_from_dict_without_features():
    data = NodeData.from_dict({1: (None, np.ones((2, 2))), 2: (None, np.zeros((1, 2)))})
    assert data.X is None
    assert data.y.shape == (3, 2)
    assert data.targets == ("y0", "y1")


def test_from_dict_keeps_classes_of_text_apart_from_numbers():
    data = NodeData.from_dict({1: (None, ["red"]), 2: (None, ["a longer class"])})
    assert data.y.tolist() == ["red", "a longer class"]
    assert data.y.dtype == object


def test_from_arrays_takes_names_of_a_frame(frame):
    data = NodeData.from_arrays(frame[["floor", "uranium"]], frame["radon"], frame["county"], weights=frame["w"])
    assert data.features == ("floor", "uranium")
    assert data.weights.tolist() == [1.0, 2.0, 1.0, 0.5]


def test_input_arrays_are_not_shared():
    X, y, weights = np.ones((2, 1)), np.zeros(2), np.ones(2)
    data = NodeData.from_arrays(X, y, ["a", "b"], weights=weights)
    X[:], y[:], weights[:] = 5.0, 5.0, 5.0
    assert data.y.tolist() == [0.0, 0.0]
    assert data.X.tolist() == [[1.0], [1.0]]
    assert data.weights.tolist() == [1.0, 1.0]


def test_read_another_frame(frame):
    data = NodeData.from_frame(
        frame, node="county", target="radon", features=["floor"], offset="o", weights="w", intercept=True
    )
    new = pd.DataFrame({"floor": [1, 0], "county": ["z", "a"], "o": [0.5, 0.0]})
    labels, X, offset = data.read(new)
    assert labels == ["z", "a"]
    assert X.tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert offset.tolist() == [0.5, 0.0]
    labels, X, offset = data.read(new.iloc[:0])
    assert labels == []
    assert X.shape == (0, 2)
    assert offset.shape == (0,)
    assert NodeData.from_frame(frame, node="county", target="radon").read(new)[1] is None


def test_read_returns_python_labels(frame):
    frame["county"] = [1, 2, 1, 3]
    labels, _, offset = NodeData.from_frame(frame, node="county", target="radon").read(frame)
    assert labels == [1, 2, 1, 3]
    assert {type(label) for label in labels} == {int}
    assert offset.tolist() == [0.0] * 4


def test_repr(frame):
    data = NodeData.from_frame(frame, node="county", target="radon", features=["floor", "uranium"])
    text = "NodeData: 4 samples at 3 nodes (1 to 2 each), 2 features ('floor', 'uranium'), target 'radon'"
    assert repr(data) == text
    assert "no features, targets 'y0', 'y1'" in repr(NodeData.from_arrays(None, np.ones((1, 2)), ["a"]))


# ---- frames of other libraries ---------------------------------------------------------------------------------------
def of_polars(frame):
    polars = pytest.importorskip("polars")
    columns = {}
    for name, column in frame.items():
        kind = polars.Categorical if column.dtype == "category" else None
        columns[name] = polars.Series([None if pd.isna(value) else value for value in column], dtype=kind)
    return polars.DataFrame(columns)


def of_arrow(frame):
    import pyarrow

    columns = {}
    for name, column in frame.items():
        own = pyarrow.array([None if pd.isna(value) else value for value in column])
        columns[name] = own.dictionary_encode() if column.dtype == "category" else own
    return pyarrow.table(columns)


LIBRARIES = pytest.mark.parametrize("library", [of_polars, of_arrow])


@LIBRARIES
@pytest.mark.parametrize("node", ["county", "number", "kind"])
@pytest.mark.parametrize("target", ["radon", "floor", "basement", "county", "kind", ["radon", "floor"]])
def test_frames_of_other_libraries_are_read_as_those_of_pandas(frame, library, node, target):
    frame["number"], frame["kind"] = [3, 1, 3, 2], frame["county"].astype("category")
    asked = {"node": node, "target": target, "features": ["uranium", "number", "small"], "weights": "w", "offset": "o"}
    frame["small"] = [True, False, False, True]
    if target in (node, "county", "kind"):
        asked["features"] = ["uranium"]
    one, two = NodeData.from_frame(frame, **asked), NodeData.from_frame(library(frame), **asked)
    assert (one.labels, one.targets, one.features) == (two.labels, two.targets, two.features)
    assert {type(label) for label in one.labels} == {type(label) for label in two.labels}
    for name in ("node", "X", "y", "weights", "offset"):
        a, b = getattr(one, name), getattr(two, name)
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()
    labels, X, offset = one.read(library(frame))
    assert labels == one.read(frame)[0]
    assert X.tolist() == one.X.tolist()
    assert offset.tolist() == one.offset.tolist()


@LIBRARIES
@pytest.mark.parametrize("kind", ["number", "text", "category"])
@pytest.mark.parametrize("column", ["county", "radon", "uranium", "w", "o"])
def test_what_is_missing_is_named_whatever_the_library(frame, library, column, kind):
    if kind != "number" and column not in ("county", "radon"):
        pytest.skip("features and weights are numbers")
    values = [1, 2, 3, 1] if kind == "number" else ["x", "y", "z", "x"]
    frame[column] = pd.Series(values).astype({"number": "Int64", "text": object, "category": "category"}[kind])
    frame.loc[2, column] = None
    messages = []
    for whole in (frame, library(frame)):
        with pytest.raises(DataError, match="row 2") as caught:
            NodeData.from_frame(whole, **READ)
        messages.append(str(caught.value).replace("<NA>", "None").replace("nan", "None"))
    assert messages[0] == messages[1]


@LIBRARIES
def test_wrong_columns_of_other_libraries_are_named(frame, library):
    for case in ("typo", "unknown", "node typo", "weights typo", "list as node"):
        change, parts = MISREAD[case]
        with pytest.raises(DataError) as caught:
            NodeData.from_frame(library(frame), **{**READ, **change})
        check_message(caught, parts)
    with pytest.raises(DataError, match="feature 'county' is not numeric: row 0 holds 'b'"):
        NodeData.from_frame(library(frame), node="floor", target="radon", features=["county"])


@LIBRARIES
def test_columns_of_other_libraries_in_from_arrays(frame, library):
    whole = library(frame)
    data = NodeData.from_arrays(library(frame[["floor", "uranium"]]), whole["radon"], whole["county"], whole["w"])
    assert data.features == ("floor", "uranium")
    assert data.labels == ("b", "a", "c")
    assert data.X.tolist() == frame[["floor", "uranium"]].to_numpy().tolist()
    assert (data.y.tolist(), data.weights.tolist()) == ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 1.0, 0.5])


@LIBRARIES
def test_predictions_for_frames_of_other_libraries(frame, library):
    data = NodeData.from_frame(library(frame), node="county", target="radon", features=["uranium"])
    solution = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.NodePenalty(gr.SquaredL2())).solve()
    np.testing.assert_array_equal(solution.predict(library(frame)), solution.predict(frame))


def test_a_frame_that_is_not_computed_yet_is_refused(frame):
    with pytest.raises(DataError, match="got LazyFrame"):
        NodeData.from_frame(of_polars(frame).lazy(), **READ)


def test_arrays_that_nobody_can_write_to_are_not_copied():
    X, y, node = np.ones((4, 2)), np.zeros(4), [0, 0, 1, 1]
    for each in (X, y):
        each.flags.writeable = False
    data = NodeData.from_arrays(X.reshape(4, 2), y, node)
    assert np.shares_memory(data.X, X)
    assert np.shares_memory(data.y, y)


def test_arrays_to_which_somebody_may_write_are_copied():
    X, node = np.ones((4, 2)), [0, 0, 1, 1]
    view = X.view()
    view.flags.writeable = False  # X can be written to
    text = np.ones((4, 2), order="F")
    text.flags.writeable = False  # the rows are not side by side
    for given in (X, view, text, np.frombuffer(bytearray(64)).reshape(4, 2)):
        data = NodeData.from_arrays(given, np.zeros(4), node)
        assert not np.shares_memory(data.X, given)
