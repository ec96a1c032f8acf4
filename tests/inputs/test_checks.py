"""Checks of arguments: what each accepts and refuses, and that its message names class, argument, key and value."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from inspect import signature

import numpy as np
import pytest

import graphreg as gr
from graphreg import checks
from graphreg.base.messages import closest, did_you_mean, either, missing_entries, near, unknown_labels, unmatched
from graphreg.checks import Check, check_fields, checked, inside, instance, numbers, one_of, per, whole
from graphreg.errors import ArgumentError, MethodError, ModelError, TermError
from graphreg.methods import METHODS

NO_NUMBERS = [
    True,
    False,
    np.True_,
    "1",
    b"1",
    None,
    1j,
    np.complex128(1),
    [1.0],
    np.array(1.0),
    np.ones(2),
    Decimal(1),
]
NANS = [float("nan"), np.nan, np.float64("nan")]

KINDS = {
    "positive": (
        checks.positive,
        [1, 1.5, 1e-300, np.float64(2), np.float32(2), np.int64(3), Fraction(1, 3)],
        [0, 0.0, -0.0, -1, np.inf, -np.inf, np.float64("inf"), *NANS, *NO_NUMBERS],
    ),
    "nonnegative": (checks.nonnegative, [0, 0.0, 1, np.float64(0)], [-1e-300, np.inf, *NANS, *NO_NUMBERS]),
    "fraction": (checks.fraction, [0.5, 1e-9, np.float64(0.5)], [0, 1, 1.0, 95, -0.1, *NANS, *NO_NUMBERS]),
    "[0, 1)": (inside("[0, 1)"), [0, 0.0, 0.5, np.int64(0)], [1, 1.0, -1e-9, *NANS, *NO_NUMBERS]),
    "(0, 1]": (inside("(0, 1]"), [1, 0.5, np.float64(1)], [0, 0.0, 1.0 + 1e-9, *NANS, *NO_NUMBERS]),
    "[0, 1]": (inside("[0, 1]"), [0, 1, 0.5], [-1e-9, 1.0 + 1e-9, *NANS, *NO_NUMBERS]),
    "(1/2, 1]": (inside("(1/2, 1]"), [0.51, 1], [0.5, Fraction(1, 2), 1.1, *NANS, *NO_NUMBERS]),
    "[0, inf]": (inside("[0, inf]"), [0, np.inf, 3], [-1, -np.inf, *NANS, *NO_NUMBERS]),
    "(-inf, 0)": (inside("(-inf, 0)"), [-1, -1e300], [0, 1, -np.inf, *NANS, *NO_NUMBERS]),
    "count": (
        checks.count,
        [1, 2**63 - 1, np.int64(1), np.uint8(3)],
        [0, -1, 1.0, np.float64(2), np.inf, *NANS, *NO_NUMBERS],
    ),
    "seed": (checks.seed, [0, 7, np.int32(0)], [-1, 0.0, 1.5, *NANS, *NO_NUMBERS]),
    "switch": (checks.switch, [True, False, np.True_, np.False_], [0, 1, 1.0, "yes", None, [], np.array(True)]),
    "one of two": (one_of("min", "1se"), ["min", "1se"], ["MIN", "", None, 1, ["min"], np.array(["min"]), b"min"]),
    "text": (checks.text(), ["", "scs"], [b"scs", 1, None, True]),
    "function": (checks.function(), [len, lambda: 0, int], [1, "len", None, []]),
    "instance": (instance(Mapping, "a mapping"), [{}, {1: 2}], [[], None, 1, dict]),
    "or": (checks.positive | one_of("auto"), [1.0, "auto"], [0, "other", None, np.nan, True]),
    "or None": (checks.count | None, [1, None], [0, 1.0, True, "None"]),
    "per node": (
        per("node", checks.positive),
        [1.0, {}, {"a": 1, "b": 2.5}],
        [0, True, {"a": 0}, {"a": 1, "b": None}, {"a": np.nan}, {"a": {"b": 1}}, [1.0]],
    ),
    "per node alone": (per("node", checks.positive, mapping="a mapping"), [{}, {"a": 1}], [1.0, [1.0], {"a": -1}]),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_check_returns_what_it_accepts(name):
    check, right, _ = KINDS[name]
    for value in right:
        assert check(value, "it") is value


@pytest.mark.parametrize("name", KINDS)
def test_a_check_refuses_all_else_by_name_and_value(name):
    check, _, wrong = KINDS[name]
    for value in wrong:
        with pytest.raises(TermError) as caught:
            check(value, "mu", TermError, "Mine")
        assert type(caught.value) is TermError
        assert re.match(r"Mine\(mu=...\) (of the node '\w' )?must be ", str(caught.value))
        guilty = value if not isinstance(value, dict) else next((x for x in value.values() if x != 1), None)
        assert f", got {guilty!r}" in str(caught.value)


def said(check, value, what="it", **more):
    with pytest.raises(ModelError) as caught:
        check(value, what, **more)
    return str(caught.value)


def test_messages():
    assert said(checks.positive, -1.0, "gap") == "gap must be a positive finite number, got -1.0"
    assert said(checks.count, 0, "rounds") == "rounds must be a whole number, at least 1, got 0"
    assert said(checks.count | None, 0, "rounds") == "rounds must be a whole number, at least 1, or None, got 0"
    assert (
        said(inside("(0, 2)"), 2, "relaxation", owner="ADMM")
        == "ADMM(relaxation=...) must be a number in (0, 2), got 2"
    )
    assert said(per("node", checks.positive), {"a": 1, "b": 0}, "lam", owner="PFedMe") == (
        "PFedMe(lam=...) of the node 'b' must be a positive finite number, got 0"
    )
    assert (
        said(one_of("primal", "dual"), "duel", "form")
        == "form must be 'primal' or 'dual', got 'duel'; did you mean 'dual'?"
    )
    assert said(one_of("a", "b", "c"), 3, "x") == "x must be one of 'a', 'b', 'c', got 3"
    assert said(instance(Mapping, "a mapping"), dict, "x") == "x must be a mapping, got <class 'dict'>; write dict()"
    assert said(checks.count.with_remedy("or leave it out"), 0, "x").endswith("got 0; or leave it out")
    assert len(said(checks.count, list(range(10**4)), "x")) < 400


def test_numbers_are_an_array_of_its_own():
    given = np.ones((2, 3))
    read = numbers(given, "X")
    assert read.dtype == float
    assert (read == given).all()
    assert not np.shares_memory(read, given)
    assert said(numbers, [["a"]], "X") == "X must be numbers, got [['a']]"
    assert said(numbers, [[1], [1, 2]], "X", wanted="a matrix") == "X must be a matrix, got [[1], [1, 2]]"


# ---- fields of dataclasses -------------------------------------------------------------------------------------------
def pairs():
    return {"a": 1.0}


@dataclass(frozen=True)
class Options:
    """A class that a user may write beside the library."""

    size: int = checked(checks.count)
    balance: float | None = checked(checks.positive, None)
    share: float = checked(inside("(0, 1]"), 1.0)
    rates: Mapping[str, float] = checked(per("node", checks.positive), default_factory=pairs)
    note: str = "free"

    def __post_init__(self) -> None:
        check_fields(self, MethodError)


def test_a_checked_dataclass_is_a_dataclass():
    one = Options(3, 0.5)
    assert repr(one) == "Options(size=3, balance=0.5, share=1.0, rates={'a': 1.0}, note='free')"
    assert one == Options(size=3, balance=0.5)
    assert replace(one, share=0.5) == Options(3, 0.5, 0.5)
    assert pickle.loads(pickle.dumps(one)) == one
    assert [f.name for f in fields(one)] == list(signature(Options).parameters)
    assert signature(Options).parameters["share"].default == 1.0
    with pytest.raises(FrozenInstanceError):
        one.size = 4  # pyright: ignore
    with pytest.raises(TypeError):
        Options()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 0}, "Options(size=...) must be a whole number, at least 1, got 0"),
        ({"size": None}, "Options(size=...) must be a whole number, at least 1, got None"),
        ({"balance": -1.0}, "Options(balance=...) must be a positive finite number, got -1.0"),
        ({"share": None}, "Options(share=...) must be a number in (0, 1], got None"),
        ({"rates": {"b": 0}}, "Options(rates=...) of the node 'b' must be a positive finite number, got 0"),
    ],
)
def test_a_field_that_is_not_what_it_may_be_is_refused(given, message):
    with pytest.raises(MethodError, match=f"^{re.escape(message)}$"):
        Options(**{"size": 1, **given})
    with pytest.raises(MethodError):
        replace(Options(1), **given)


def test_what_derives_from_our_bases_is_checked_by_them():
    @dataclass(frozen=True)
    class Mine(gr.PrimalDual):
        momentum: float = checked(inside("[0, 1)"), 0.5)

    @dataclass(frozen=True)
    class Scaled(gr.L2):
        factor: float = checked(checks.positive, 1.0)

    @dataclass(frozen=True)
    class Tilted(gr.SquaredLoss):
        tilt: float = checked(checks.fraction, 0.5)

    data = gr.NodeData.from_dict({"a": ([[1.0]], [1.0])})
    assert Mine(momentum=0).momentum == Scaled().factor - 1 == Tilted(data).tilt - 0.5
    with pytest.raises(MethodError, match=r"Mine\(momentum=...\) must be a number in \[0, 1\), got 1"):
        Mine(momentum=1)
    with pytest.raises(MethodError, match=r"Mine\(balance=...\) must be"):
        Mine(balance=0.0)
    with pytest.raises(TermError, match=r"Scaled\(factor=...\) must be a positive finite number, got 0"):
        Scaled(factor=0)
    with pytest.raises(TermError, match=r"Tilted\(tilt=...\) must be a number between 0 and 1, got 1"):
        Tilted(data, tilt=1)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_every_checked_option_of_a_method_refuses_what_nothing_may_be(method):
    """Each option is refused by itself, by the name of the method and its own, with the value."""

    class Nothing:
        def __repr__(self) -> str:
            return "<nothing>"

    options = [f.name for f in fields(method) if "check" in f.metadata]
    for name in options:
        with pytest.raises(MethodError, match=rf"{type(method).__name__}\({name}=...\) must be .*, got <nothing>"):
            replace(method, **{name: Nothing()})


def test_there_are_such_options():
    assert sum("check" in f.metadata for method in METHODS for f in fields(method)) > 30


# ---- the words they share --------------------------------------------------------------------------------------------
def test_the_name_that_was_meant():
    assert closest("LOGISTIC", ["LogisticLoss", "HuberLoss"]) == "LogisticLoss"
    assert closest("hubber", ["hinge", "huber"]) == "huber"
    assert closest("x", ["abc"]) is None
    assert closest(3, ["3"]) is None
    assert did_you_mean("Ahlem", ["Ahlen", "Bonn"]) == "; did you mean 'Ahlen'?"
    assert "1 of type int" in did_you_mean("1", [1, 2])
    assert did_you_mean("x", []) == ""
    assert near("q", ["abc", "def"]) == "there are 'abc', 'def'"
    assert near("abd", ["abc"]) == "did you mean 'abc'?"
    assert near("q", [], "it has") == "it has none"


def test_alternatives():
    assert [either(words) for words in ("a", "ab", "abc", "aba")] == ["a", "a or b", "a, b or c", "a or b"]


def test_labels_that_do_not_match():
    known = {"a": 0, "b": 1, "c": 2}
    assert unmatched("lam", 0.5, known) == []
    assert unmatched("lam", known, known) == []
    assert unknown_labels("the weights of L1", ["a", "z", "q"], known) == [
        "the weights of L1 name 'z', which is not a node (and 1 more); the nodes are 'a', 'b', 'c'"
    ]
    assert unknown_labels("lam", ["z"], range(99)) == ["lam names 'z', which is not a node"]
    assert missing_entries("lam", {"a": 1}, known, "cluster") == ["lam has no entry for the cluster 'b' (and 1 more)"]
    assert unmatched("lam", {"a": 1, "B": 2, "c": 3}, known) == [
        "lam names 'B', which is not a node; did you mean 'b'?",
        "lam has no entry for the node 'b'",
    ]


def test_a_check_of_ones_own():
    even = Check("an even number", lambda value: checks.is_whole(value) and value % 2 == 0)
    assert even(4, "it") == 4
    assert said(even | whole(100), 3) == "it must be an even number or a whole number, at least 100, got 3"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gr.Actors(fault=3), "Actors has no argument 'fault'; did you mean 'faults'?"),
        (lambda: gr.Faults(crsh=0.1), "Faults has no argument 'crsh'; did you mean 'crash'?"),
        (lambda: gr.Malicious([0], "constant", sise=3), "Malicious has no argument 'sise'; did you mean 'size'?"),
        (lambda: gr.Availability(knwn=True), "Availability has no argument 'knwn'; did you mean 'known'?"),
        (lambda: gr.Checkpoint("a", every=3), "Checkpoint has no argument 'every'; it has 'path', 'seconds', 'rounds'"),
        (lambda: gr.Observer(round=3), "Observer has no argument 'round'; did you mean 'rounds'?"),
        (lambda: gr.DecreasingStep(gama=1), "DecreasingStep has no argument 'gama'; did you mean 'gamma'?"),
        (lambda: gr.Parameter(1.0, nme="x"), "Parameter has no argument 'nme'; did you mean 'name'?"),
        (lambda: gr.HuberLoss(None, detla=1.0), "HuberLoss has no argument 'detla'; did you mean 'delta'?"),
        (lambda: gr.NodePenalty(gr.L1(), feature=2), "NodePenalty has no argument 'feature'; did you mean 'features'?"),
        (lambda: gr.fit(1, 2, target="y", node="n", lam=3), "fit has no argument 'lam'; here it is strengths="),
        (lambda: gr.fit(1, 2, target="y", node="n", zork=3), "'zork'; it has table, graph, target, node, features, "),
        (lambda: gr.L1(scale=2), "L1 has no argument 'scale'"),
        (lambda: gr.Problem(None, feature=2), "Problem has no argument 'feature'; did you mean 'features'?"),
        (lambda: gr.NodeData.from_arrays(1, 2, [0], weight=3), "has no argument 'weight'; did you mean 'weights'?"),
        (lambda: gr.Graph.from_edges([(1, 2)], weigths=[1]), "has no argument 'weigths'; did you mean 'weights'?"),
        (
            lambda: gr.compare(None, checkpoint="a"),
            "compare has no argument 'checkpoint'; leave it out: it is one of Problem.solve",
        ),
        (
            lambda: gr.path(None, [1.0], callback=print),
            "path has no argument 'callback'; leave it out: it is one of Problem.solve",
        ),
    ],
)
def test_a_misspelt_argument_of_a_constructor_is_refused_with_the_one_that_was_meant(make, said):
    with pytest.raises(ArgumentError, match=re.escape(said)):
        make()


def test_constructors_that_take_any_name_are_left_alone():
    class Free(checks.ChecksNames):
        def __init__(self, **given):
            self.given = given

    assert Free(a=1).given == {"a": 1}
