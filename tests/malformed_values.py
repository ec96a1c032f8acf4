"""Values that no argument of a kind may have: what the corpus of malformed input is drawn from.

A kind is a table from a name to a value that is wrong wherever that kind is asked for; what is wrong only at some
arguments (0 for a weight, 1.0 for a probability) is written at the argument itself.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

HUGE = 10**400

NOT_A_NUMBER = {
    "text": "one",
    "digits as text": "0.5",
    "bytes": b"1",
    "nan": float("nan"),
    "nan of numpy": np.float64("nan"),
    "minus infinity": -np.inf,
    "true": True,
    "complex": 0.5 + 0.25j,
    "a list": [0.5],
    "an array of two": np.array([0.5, 0.5]),
    "an array of one": np.array([0.5]),
    "masked": np.ma.masked,
    "missing of pandas": pd.NA,
    "no time": pd.NaT,
    "decimal nan": Decimal("nan"),
    "a set": {0.5},
    "a function": abs,
    "a class": float,
    "an object": object(),
    "minus huge": -HUGE,
}
NOT_FINITE = {"infinity": np.inf, "huge": HUGE}
NOT_POSITIVE = NOT_A_NUMBER | NOT_FINITE | {"zero": 0, "minus one": -1.0, "minus zero": -0.0}
NOT_A_FRACTION = NOT_POSITIVE | {"above one": 1.5, "in percent": 95}
NOT_A_COUNT = NOT_POSITIVE | {"half": 2.5, "a float": 3.0, "below": np.int64(-3)}
NOT_A_SEED = {name: value for name, value in NOT_A_COUNT.items() if name not in {"zero", "huge"}}
NOT_A_SWITCH = {
    "text no": "no",
    "text yes": "yes",
    "text true": "True",
    "one": 1,
    "zero": 0,
    "float": 1.0,
    "a list": [True],
    "an array": np.array([True, False]),
    "masked": np.ma.masked,
    "nan": float("nan"),
    "a class": bool,
}
NOT_A_NAME = {
    "no name": "lagrange-ish",
    "empty text": "",
    "number": 3,
    "true": True,
    "a list": ["primal"],
    "a set": {"primal"},
    "bytes": b"primal",
    "nan": float("nan"),
    "a class": str,
}
NOT_A_FUNCTION = {"number": 3, "text": "print", "true": True, "a list": [print], "nan": float("nan")}
NOT_A_PATH = {
    "number": 3.5,
    "true": True,
    "a list": ["run.zip"],
    "nul": "run\0.zip",
    "too long": "x" * 300,
    "empty": "",
}
NOT_A_GRAPH = {
    "nothing": None,
    "text": "chain",
    "number": 3,
    "a list": ["a", "b"],
    "a class": nx.Graph,
    "a frame": pd.DataFrame({"a": [1]}),
    "directed": nx.DiGraph([("a", "b")]),
    "multigraph": nx.MultiGraph([("a", "b"), ("a", "b")]),
    "empty": nx.Graph(),
    "self loop": nx.Graph([("a", "a")]),
    "an array": np.eye(2),
    "a path": Path("graph.csv"),
}
NOT_A_PROBLEM = {
    "nothing": None,
    "text": "problem",
    "number": 3,
    "a list": [],
    "an array": np.eye(2),
    "a class": nx.Graph,
}
NOT_A_MATRIX = {
    "text": "matrix",
    "number": 1.0,
    "texts": [["a", "b"], ["c", "d"]],
    "ragged": [[1.0], [1.0, 2.0]],
    "complex": np.ones((2, 2)) * 1j,
    "nan": np.array([[1.0, np.nan], [0.0, 1.0]]),
    "infinite": np.array([[1.0, np.inf], [0.0, 1.0]]),
    "huge": [[1, HUGE], [0, 1]],
    "masked": np.ma.masked_array(np.eye(2), mask=[[False, True], [False, False]]),
    "three axes": np.ones((2, 2, 2)),
    "objects": np.array([[object(), 1], [1, 1]], dtype=object),
    "times": np.array([["2020-01-01", "2020-01-02"]] * 2, dtype="datetime64[D]"),
    "a set": {1.0, 2.0},
}


def without(kind, *names):
    """The values of a kind but for those that are right where it is asked for."""
    return {name: value for name, value in kind.items() if name not in names}


def wrong_answers(build, values, error, *parts):
    """The fate of each malformed value that is not refused as it should be: by exactly this kind of error, whose
    message has all the parts."""
    out = {}
    for name, value in values.items():
        try:
            build(value)
        except error as refusal:
            missing = [part for part in parts if part not in str(refusal)]
            if missing:
                out[name] = f"the message lacks {missing}: {refusal}"
        except Exception as raised:  # noqa: BLE001
            out[name] = f"{type(raised).__name__}: {raised}"
        else:
            out[name] = "accepted"
    return out
