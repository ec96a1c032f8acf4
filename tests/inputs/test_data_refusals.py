"""Samples that cannot be meant are refused, with the row, the column or the node."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from data_cases import MISREAD, READ, check_message

from graphreg.errors import ArgumentError, DataError
from graphreg.inputs.data import NodeData


# ---- refusals of frames ----------------------------------------------------------------------------------------------
def spoilt(frame, column, value, row=2):
    frame = frame.astype({column: object} if isinstance(value, str) or value is None else {})
    frame[column] = [value if r == row else v for r, v in enumerate(frame[column])]
    return frame


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

    with pytest.raises(DataError, match=r"2 x 2 with 4 entries, .* use its .toarray\(\), which takes 3.2e-05 MB"):
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


@pytest.mark.parametrize("given", [{"args": ([1.0, 2.0],)}, {"y": [1.0, 2.0]}], ids=["position", "name"])
def test_the_bare_class_says_which_constructors_there_are(given):
    options = dict(given)
    with pytest.raises(ArgumentError, match=r"write NodeData\.from_frame, from_dict or from_arrays"):
        NodeData(*options.pop("args", ()), **options)
    data = NodeData.from_arrays(None, [1.0, 2.0], ["a", "b"])
    for same in (copy.deepcopy(data), pickle.loads(pickle.dumps(data)), replace(data)):
        assert same.y.tolist() == [1.0, 2.0]
