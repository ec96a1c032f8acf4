"""Malformed data and graphs: frames, arrays, dictionaries, edge lists, matrices and labels.

The rows are (place, value, expected error, what its message must name), as for the constructors.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from bad_input import CHAIN, DATA, FRAME, FUSION, NODES, problem, read, spoilt
from malformed_values import HUGE, NOT_A_SWITCH, wrong_answers

import graphreg as gr
from graphreg.errors import DataError, ModelError, TermError

ROWS = np.repeat(NODES, 4)
X = FRAME[["rain", "temp"]].to_numpy()
Y = FRAME["level"].to_numpy()
MISSING = {"none": None, "nan": np.nan, "no value": pd.NA, "no time": pd.NaT}
ENTRY = {
    **MISSING,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "text": "wet",
    "digits": "1.5",
    "empty text": "",
    "complex": 1 + 2j,
    "huge": HUGE,
    "minus huge": -HUGE,
    "a list": [1.0],
    "a date": pd.Timestamp("2020-01-01"),
    "a duration": pd.Timedelta("1D"),
    "bytes": b"1",
    "an object": object(),
    "beyond squares": 1e200,
}


def entry(array, value):
    out = array.astype(object)
    out[(5, 1) if out.ndim == 2 else 5] = value
    return out


def masked(array):
    out = np.ma.masked_array(array.copy(), mask=np.zeros(array.shape, dtype=bool))
    out[(5, 1) if array.ndim == 2 else 5] = np.ma.masked
    return out


def fitted(X=X, y=Y, node=ROWS, **more):
    return gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node, **more)))


SHAPES = {
    "number": 1.0,
    "text": "X",
    "nothing inside": np.zeros((0, 2)),
    "three axes": np.zeros((12, 2, 1)),
    "short": np.ones((3, 2)),
    "ragged": [[1.0, 2.0], [1.0]],
    "a set": {1.0, 2.0},
    "sparse": sp.csr_array(np.eye(12, 2)),
    "a function": abs,
    "a mapping": {"rain": [1.0]},
    "a generator": (x for x in X),
    "complex": X * 1j,
    "masked": masked(X),
}
FRAMES = {
    "other rows of y": {"X": FRAME[["rain", "temp"]], "y": FRAME["level"][::-1], "node": ROWS},
    "other rows of node": {"X": FRAME[["rain", "temp"]], "y": Y, "node": FRAME["site"].sample(frac=1, random_state=0)},
    "other rows of weights": {
        "X": FRAME[["rain", "temp"]],
        "y": Y,
        "node": ROWS,
        "weights": pd.Series(1.0, index=range(12, 24)),
    },
}
VECTORS = {
    "number": 1.0,
    "text": "y",
    "short": Y[:3],
    "three axes": np.zeros((12, 1, 1)),
    "ragged": [[1.0, 2.0]] * 11 + [[1.0]],
    "a set": {1.0, 2.0},
    "complex": Y * 1j,
    "masked": masked(Y),
    "a function": abs,
}
LABELS = {
    "short": NODES,
    "number": 3,
    "text": "abc",
    "nothing": None,
    "lists": [["a"]] * 12,
    "sets": [{"a"}] * 12,
    "two axes": ROWS[:, None],
    "a set": set(NODES),
    "masked": masked(np.repeat([0.0, 1.0, 2.0], 4)),
    "a missing label": ["a"] * 11 + [None],
    "a nan label": ["a"] * 11 + [np.nan],
}
NAMES = {
    "short": ["rain"],
    "twice": ["rain", "rain"],
    "number": 3,
    "text": "rain",
    "a set": {"rain", "temp"},
    "missing": ["rain", None],
    "lists": [["rain"], ["temp"]],
    "a mapping": {"rain": 1, "temp": 2},
}
COLUMNS = {"typo": "rian", "number": 3, "a list": ["rain"], "a set": {"rain"}, "a slice": slice(1), "nothing": None}
CENTER = {
    "short": [1.0],
    "text": "origin",
    "number": 3.0,
    "nan": [0.0, np.nan],
    "infinite": [0.0, np.inf],
    "complex": [0.0, 1j],
    "masked": np.ma.masked_array([0.0, 1.0], mask=[True, False]),
    "texts": ["0", "1"],
    "huge": [0, HUGE],
    "a set": {0.0, 1.0},
    "lacks": {"a": [0.0, 1.0]},
    "unknown": {key: [0.0, 1.0] for key in "abcz"},
    "two axes": np.ones((3, 2)),
}
START = {
    "short": np.zeros((2, 3)),
    "complex": np.zeros((3, 3)) * 1j,
    "masked": masked(np.zeros((12, 2))),
    "text": "warm",
    "texts": [["0"] * 3] * 3,
    "nan": np.full((3, 3), np.nan),
    "huge": [[0, 0, HUGE]] * 3,
    "truths": np.ones((3, 3), dtype=bool),
    "a set": {0.0},
    "a mapping": {"a": [0.0] * 3},
    "another frame": pd.DataFrame(np.zeros((3, 3)), index=list("xyz"), columns=["intercept", "rain", "temp"]),
}

PLACES = {
    # ---- samples
    "from_arrays(entry of X)": (lambda v: fitted(entry(X, v)), ENTRY, DataError, ""),
    "from_arrays(entry of y)": (lambda v: fitted(y=entry(Y, v)), ENTRY, DataError, ""),
    "from_arrays(entry of weights)": (
        lambda v: fitted(weights=entry(np.ones(12), v)),
        {k: v for k, v in ENTRY.items() if k != "beyond squares"} | {"zero": 0.0, "minus": -1.0},
        DataError,
        "weight",
    ),
    "from_arrays(entry of offset)": (lambda v: fitted(offset=entry(np.ones(12), v)), ENTRY, DataError, "offset"),
    "from_arrays(frames of other rows)": (lambda v: fitted(**v), FRAMES, DataError, "index"),
    "from_arrays(X)": (fitted, SHAPES, DataError, ""),
    "from_arrays(y)": (lambda v: fitted(y=v), VECTORS, DataError, ""),
    "from_arrays(weights)": (
        lambda v: fitted(weights=v),
        VECTORS | {"two axes": np.ones((12, 2))},
        DataError,
        "weights",
    ),
    "from_arrays(offset)": (lambda v: fitted(offset=v), VECTORS | {"two axes": np.ones((12, 2))}, DataError, "offset"),
    "from_arrays(node)": (lambda v: fitted(node=v), LABELS, DataError, ""),
    "from_arrays(features)": (lambda v: fitted(features=v), NAMES, DataError, "name"),
    "from_arrays(intercept)": (lambda v: fitted(intercept=v), NOT_A_SWITCH, DataError, "intercept"),
    "from_frame(frame)": (
        read,
        {
            "nothing": None,
            "text": "data.csv",
            "an array": X,
            "a series": FRAME["rain"],
            "no rows": FRAME.iloc[:0],
            "a mapping": {"rain": [1.0]},
            "two columns of one name": FRAME.rename(columns={"flood": "rain"}),
        },
        DataError,
        "",
    ),
    "from_frame(node)": (lambda v: gr.NodeData.from_frame(FRAME, v, "level", ["rain"]), COLUMNS, DataError, ""),
    "from_frame(target)": (
        lambda v: read(target=v),
        {
            "typo": "levle",
            "number": 3,
            "a set": {"level"},
            "twice": ["level", "level"],
            "a feature": "rain",
            "lists": [["level"]],
        },
        DataError,
        "",
    ),
    "from_frame(features)": (lambda v: read(features=v), NAMES | {"text": "rian", "short": ["rian"]}, DataError, ""),
    "from_frame(weights)": (
        lambda v: read(weights=v),
        {name: v for name, v in COLUMNS.items() if v is not None},
        DataError,
        "",
    ),
    "from_frame(offset)": (
        lambda v: read(offset=v),
        {name: v for name, v in COLUMNS.items() if v is not None},
        DataError,
        "",
    ),
    "from_frame(entry of a feature)": (
        lambda v: gr.Problem(gr.SquaredLoss(read(spoilt("rain", v)))),
        {k: v for k, v in ENTRY.items() if k != "a list"},
        DataError,
        "'rain'",
    ),
    "from_frame(entry of the target)": (
        lambda v: gr.Problem(gr.SquaredLoss(read(spoilt("level", v)))),
        {k: v for k, v in ENTRY.items() if k != "a list"},
        DataError,
        "",
    ),
    "from_frame(entry of node)": (lambda v: read(spoilt("site", v)), MISSING, DataError, "row 5"),
    "from_dict(samples)": (
        gr.NodeData.from_dict,
        {
            "nothing": None,
            "empty": {},
            "a list": [(X, Y)],
            "text": "samples",
            "no pair": {"a": X},
            "three": {"a": (X, Y, Y)},
            "no rows": {"a": (X[:0], Y[:0])},
            "other lengths": {"a": (X, Y[:3])},
            "masked": {"a": (masked(X), Y)},
            "masked targets": {"a": (X, masked(Y))},
            "a missing label": {None: (X, Y)},
            "a nan label": {np.nan: (X, Y)},
            "complex": {"a": (X * 1j, Y)},
            "other widths": {"a": (X, Y), "b": (X[:, :1], Y)},
            "ragged": {"a": ([[1.0], [1.0, 2.0]], [1.0, 2.0])},
            "a set": {"a": ({1.0}, {2.0})},
        },
        DataError,
        "",
    ),
    "at(label)": (DATA.at, {"unknown": "z", "number": 0, "nothing": None, "a list": ["a"]}, DataError, ""),
    "take(rows)": (
        DATA.take,
        {
            "fractions": [0.7],
            "beyond": [99],
            "below": [-99],
            "texts": ["0"],
            "truths too short": [True, False],
            "nothing": None,
            "two axes": [[0, 1]],
            "none": [],
            "complex": [1j],
            "nan": [np.nan],
        },
        DataError,
        "row",
    ),
    "SquaredLoss(scale as a mapping)": (
        lambda v: gr.SquaredLoss(DATA, scale=v),
        {
            "lacks": {"a": 1.0},
            "unknown": dict.fromkeys("abcz", 1.0),
            "zero": {"a": 0.0, "b": 1.0, "c": 1.0},
            "a list": [1.0, 1.0, 1.0],
            "an array": np.ones(3),
            "a set": {1.0},
            "a series": pd.Series(1.0, index=list("abc")),
        },
        TermError,
        "scale",
    ),
    "NodePenalty(weights)": (
        lambda v: problem(gr.NodePenalty(gr.L2(), weights=v)),
        {
            "lacks": {"a": 1.0},
            "unknown": dict.fromkeys("abcz", 1.0),
            "a list": [1.0] * 3,
            "number": 2.0,
            "an array": np.ones(3),
            "a series": pd.Series(1.0, index=list("abc")),
        },
        TermError,
        "weight",
    ),
    "NodePenalty(center)": (lambda v: problem(gr.NodePenalty(gr.L2(), center=v)), CENTER, TermError, "center"),
    "NodePenalty(features)": (
        lambda v: problem(gr.NodePenalty(gr.L2(), features=v)),
        {
            "typo": ["rian"],
            "number": 3,
            "empty": [],
            "a set": {"rain", "temp"},
            "twice": ["rain", "rain"],
            "a mapping": {"rain": 1},
            "missing": [None],
        },
        TermError,
        "feature",
    ),
    "TotalVariation(features)": (
        lambda v: problem(gr.TotalVariation(CHAIN, gr.L2(), features=v)),
        {
            "typo": ["rian"],
            "number": 3,
            "empty": [],
            "a set": {"rain", "temp"},
            "twice": ["rain", "rain"],
            "missing": [None],
        },
        TermError,
        "feature",
    ),
    "update(a target)": (
        lambda v: problem(FUSION).update(entry(Y, v)),
        ENTRY,
        DataError,
        "",
    ),
    "update(targets)": (
        lambda v: problem(FUSION).update(v),
        {
            "short": Y[1:],
            "wide": X,
            "masked": masked(Y),
            "number": 3.0,
            "text": "wet",
            "a set": {0.0},
            "ragged": [[1], [1, 2]],
        },
        DataError,
        "",
    ),
    "update(a node)": (
        lambda v: problem(FUSION).update({"b": v}),
        {
            "number": 3.0,
            "text": "wet",
            "no pair": (X,),
            "empty": (X[:0], Y[:0]),
            "narrow": (X[:, :1], Y),
            "short": (X, Y[1:]),
        },
        DataError,
        "",
    ),
    "update(frame)": (
        lambda v: problem(FUSION).update(v),
        {"a column less": FRAME.drop(columns="temp"), "no rows": FRAME[:0], "missing": spoilt("rain", None)},
        DataError,
        "",
    ),
    "solve(start)": (lambda v: problem(FUSION).solve(gr.PrimalDual(), start=v, rounds=2), START, ModelError, "start"),
}


@pytest.mark.parametrize("place", PLACES)
def test_malformed_data_are_refused_by_name(place):
    build, values, error, part = PLACES[place]
    assert wrong_answers(build, values, error, part) == {}
