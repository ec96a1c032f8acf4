"""NodeData: reading frames, dictionaries and arrays, and every refusal."""

import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import DataError
from graphreg.inputs.data import NodeData


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
    assert all(array.flags.writeable for array in (data.X, data.y, data.weights, data.offset))


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


# ---- refusals of frames ----------------------------------------------------------------------------------------------
def spoilt(frame, column, value, row=2):
    frame = frame.astype({column: object} if isinstance(value, str) or value is None else {})
    frame[column] = [value if r == row else v for r, v in enumerate(frame[column])]
    return frame


READ = {"node": "county", "target": "radon", "features": ["floor", "uranium"], "weights": "w", "offset": "o"}

SPOILT = {
    "nan feature": ("uranium", np.nan, ["feature 'uranium'", "nan", "node 'b'", "row 2", "drop the row"]),
    "infinite feature": ("floor", np.inf, ["feature 'floor'", "inf", "node 'b'", "row 2"]),
    "none feature": ("floor", None, ["feature 'floor'", "nan", "node 'b'", "row 2"]),
    "text feature": ("floor", "upper", ["feature 'floor'", "not numeric", "'upper'", "row 2", "encode"]),
    "nan target": ("radon", np.nan, ["target 'radon'", "nan", "node 'b'", "row 2"]),
    "none target": ("radon", None, ["target 'radon'", "node 'b'", "row 2"]),
    "infinite target": ("radon", -np.inf, ["target 'radon'", "-inf", "node 'b'", "row 2"]),
    "nan offset": ("o", np.nan, ["offset 'o'", "nan", "node 'b'", "row 2"]),
    "nan weight": ("w", np.nan, ["weight 'w'", "nan", "node 'b'", "row 2"]),
    "zero weight": ("w", 0.0, ["weight 'w'", "0.0", "node 'b'", "row 2", "positive"]),
    "negative weight": ("w", -1.0, ["weight 'w'", "-1.0", "node 'b'", "row 2"]),
    "text weight": ("w", "heavy", ["weights column 'w'", "not numeric", "'heavy'"]),
    "missing node": ("county", np.nan, ["node label in row 2", "missing"]),
    "none node": ("county", None, ["node label in row 2", "missing"]),
}


def check_message(caught, parts):
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("case", SPOILT)
def test_a_spoilt_entry_is_named(frame, case):
    column, value, parts = SPOILT[case]
    with pytest.raises(DataError) as caught:
        NodeData.from_frame(spoilt(frame, column, value), **READ)
    check_message(caught, parts)


@pytest.mark.parametrize("dtype", ["category", "datetime64[ns]", "complex"])
def test_columns_without_numbers_are_refused(frame, dtype):
    frame["f"] = pd.Series([0, 1, 2, 3]).astype(dtype) if dtype != "category" else pd.Categorical(list("xyxy"))
    with pytest.raises(DataError, match="feature 'f' is not numeric"):
        NodeData.from_frame(frame, node="county", target="radon", features=["f"])


MISREAD = {
    "typo": ({"target": "radom"}, ["no column 'radom'", "did you mean 'radon'"]),
    "unknown": ({"features": ["zzz"]}, ["no column 'zzz'", "'county'"]),
    "node typo": ({"node": "country"}, ["no column 'country'", "did you mean 'county'"]),
    "weights typo": ({"weights": "ww"}, ["no column 'ww'"]),
    "repeated feature": ({"features": ["floor", "floor"]}, ["feature 'floor'", "twice"]),
    "repeated target": ({"target": ["radon", "radon"]}, ["target 'radon'", "twice"]),
    "target among features": ({"features": ["floor", "radon"]}, ["target 'radon'", "among the features"]),
    "list as node": ({"node": ["county"]}, ["['county']", "one label"]),
}


@pytest.mark.parametrize("case", MISREAD)
def test_wrong_columns_are_named(frame, case):
    change, parts = MISREAD[case]
    with pytest.raises(DataError) as caught:
        NodeData.from_frame(frame, **{**READ, **change})
    check_message(caught, parts)


def test_a_feature_named_intercept_beside_the_intercept(frame):
    frame = frame.rename(columns={"floor": "intercept"})
    with pytest.raises(DataError, match="named 'intercept'"):
        NodeData.from_frame(frame, node="county", target="radon", features=["intercept"], intercept=True)
    data = NodeData.from_frame(frame, node="county", target="radon", features=["intercept"])
    assert data.features == ("intercept",)
    assert not data.intercept


def test_frames_that_cannot_be_read(frame):
    with pytest.raises(DataError, match="no rows"):
        NodeData.from_frame(frame.iloc[:0], **READ)
    with pytest.raises(DataError, match="of pandas or polars or a Table of pyarrow, got dict"):
        NodeData.from_frame({"county": [1]}, **READ)
    with pytest.raises(DataError, match="reset_index"):
        NodeData.from_frame(frame.set_index("county"), **READ)
    twice = pd.concat([frame, frame[["floor"]]], axis=1)
    with pytest.raises(DataError, match="2 columns named 'floor'"):
        NodeData.from_frame(twice, **READ)


def test_unhashable_labels_name_the_row(frame):
    frame["county"] = pd.Series(["b", ["a"], "b", "c"], dtype=object)
    with pytest.raises(DataError, match=r"\['a'\] in row 1 is not hashable"):
        NodeData.from_frame(frame, **READ)


def test_read_refuses_what_it_cannot_read(frame):
    data = NodeData.from_frame(frame, **READ)
    with pytest.raises(DataError, match="no column 'floor'; did you mean 'floors'"):
        data.read(frame.rename(columns={"floor": "floors"}))
    with pytest.raises(DataError, match="feature 'uranium' is nan at the node 'b', row 2"):
        data.read(spoilt(frame, "uranium", np.nan))
    with pytest.raises(DataError, match="offset 'o' is nan at the node 'b', row 2"):
        data.read(spoilt(frame, "o", np.nan))
    with pytest.raises(DataError, match="row 2 is missing"):
        data.read(spoilt(frame, "county", None))
    with pytest.raises(DataError, match="not read from a frame"):
        NodeData.from_arrays(None, [1.0], ["a"]).read(frame)


# ---- refusals of dictionaries and arrays -----------------------------------------------------------------------------
ONES = np.ones((2, 2))
REFUSALS = {
    "empty dict": (lambda: NodeData.from_dict({}), ["empty"]),
    "not a pair": (lambda: NodeData.from_dict({"p": ONES}), ["'p'", "pair (X, y)"]),
    "no targets": (lambda: NodeData.from_dict({"p": (ONES, None)}), ["'p'", "no targets"]),
    "rows of a node": (lambda: NodeData.from_dict({"p": (ONES, [1.0])}), ["'p'", "2 rows", "1 in y"]),
    "empty node": (
        lambda: NodeData.from_dict({"p": (ONES, [1, 2]), "q": (np.ones((0, 2)), [])}),
        ["'q'", "no rows", "leave it out: nodes without data belong to the graph"],
    ),
    "feature counts": (
        lambda: NodeData.from_dict({"p": (ONES, [1, 2]), np.int64(7): (np.ones((1, 3)), [1])}),
        ["node 7", "3 features", "'p'", "has 2"],
    ),
    "some without X": (lambda: NodeData.from_dict({"p": (ONES, [1, 2]), "q": (None, [1])}), ["'q'", "0 features"]),
    "target counts": (lambda: NodeData.from_dict({"p": (None, ONES), "q": (None, [1])}), ["'q'", "1 targets"]),
    "flat X of a node": (lambda: NodeData.from_dict({"p": ([1.0, 2.0], [1, 2])}), ["'p'", "(2,)", "reshape"]),
    "text X of a node": (lambda: NodeData.from_dict({"p": ([["a"]], [1])}), ["'p'", "'a'", "not numeric"]),
    "nan in a node": (lambda: NodeData.from_dict({"p": ([[np.nan]], [1])}), ["'x0'", "'p'", "row 0"]),
    "missing dict label": (lambda: NodeData.from_dict({None: ([[1]], [1])}), ["missing", "None"]),
    "rows": (lambda: NodeData.from_arrays(ONES, [1.0, 2.0], ["a"]), ["X has 2 rows", "1 node labels"]),
    "rows of y": (lambda: NodeData.from_arrays(ONES, [1.0], ["a", "b"]), ["y has 1 rows", "2 node labels"]),
    "rows of weights": (lambda: NodeData.from_arrays(ONES, [1, 2], [1, 2], weights=[1]), ["weights has 1 rows"]),
    "rows of offset": (lambda: NodeData.from_arrays(ONES, [1, 2], [1, 2], offset=[1]), ["offset has 1 rows"]),
    "weights matrix": (lambda: NodeData.from_arrays(ONES, [1, 2], [1, 2], weights=ONES), ["weights", "(2, 2)"]),
    "no rows": (lambda: NodeData.from_arrays(np.ones((0, 2)), [], []), ["no rows"]),
    "flat X": (lambda: NodeData.from_arrays([1.0], [1], ["a"]), ["X", "(1,)", "reshape"]),
    "cube y": (lambda: NodeData.from_arrays(None, np.ones((1, 1, 1)), ["a"]), ["y", "(1, 1, 1)"]),
    "ragged X": (lambda: NodeData.from_arrays([[1.0], [1.0, 2.0]], [1, 2], ["a", "b"]), ["X", "ragged"]),
    "feature names": (lambda: NodeData.from_arrays(ONES, [1, 2], [1, 2], features=["u"]), ["1 feature names", "2"]),
    "twice": (lambda: NodeData.from_arrays(ONES, [1, 2], [1, 2], features=["u", "u"]), ["'u'", "twice"]),
    "text as node": (lambda: NodeData.from_arrays(ONES, [1, 2], "ab"), ["one label per sample", "'ab'"]),
    "zero weight": (lambda: NodeData.from_arrays(None, [1, 2], ["a", "b"], weights=[1, 0]), ["weight", "'b'", "row 1"]),
    "nan offset": (lambda: NodeData.from_arrays(None, [1], ["a"], offset=[np.nan]), ["offset", "'a'", "row 0"]),
    "nan target": (lambda: NodeData.from_arrays(None, [[1, np.nan]], ["a"]), ["'y1'", "nan", "'a'", "row 0"]),
    "missing class": (lambda: NodeData.from_arrays(None, ["u", None], ["a", "b"]), ["'y'", "None", "'b'"]),
    "nan class": (lambda: NodeData.from_arrays(None, ["u", np.nan], ["a", "b"]), ["'y'", "nan", "'b'"]),
    "infinite object": (lambda: NodeData.from_arrays(None, np.array([np.inf], object), ["a"]), ["'y'", "inf"]),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal_names_the_guilty_part(case):
    build, parts = REFUSALS[case]
    with pytest.raises(DataError) as caught:
        build()
    check_message(caught, parts)


def test_a_sparse_design_is_refused_with_the_remedy():
    import scipy.sparse as sp

    with pytest.raises(DataError, match="toarray"):
        NodeData.from_arrays(sp.csr_array(ONES), [1, 2], ["a", "b"])


def test_a_refusal_counts_the_others(frame):
    frame["floor"] = np.nan
    with pytest.raises(DataError, match=r"row 0 \(and 3 more\)"):
        NodeData.from_frame(frame, **READ)


def test_a_node_without_samples_is_named(frame):
    data = NodeData.from_frame(frame, node="county", target="radon", features=["floor"])
    assert data.at("b").counts().tolist() == [2]
    with pytest.raises(DataError, match=r"no samples at 'B'.*'b'"):
        data.at("B")
