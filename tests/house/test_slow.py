"""What ``make test`` leaves out exists, is run by CI, and is chosen by the seconds it takes."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
from slow import LISTED, SLOW, STAY, is_run, slowest

ROOT = Path(__file__).resolve().parents[2]
TIMES = """\
6.00s call     tests/a/test_one.py::test_long[x y 1]
2.00s setup    tests/a/test_one.py::test_long[2]
9.00s call     tests/certificate/test_two.py::test_stays
1.50s call     tests/a/test_one.py::test_next
0.50s teardown tests/a/test_one.py::test_short
"""


def test_what_is_left_out_are_tests_that_there_are():
    listed = LISTED.read_text().split()
    assert listed == sorted(SLOW)
    assert not [name for name in listed if name.startswith(STAY)]
    for file in {name.partition("::")[0] for name in listed}:
        there = {each.name for each in ast.parse((ROOT / file).read_text()).body if isinstance(each, ast.FunctionDef)}
        assert {name.partition("::")[2] for name in listed if name.startswith(file + "::")} <= there


@pytest.mark.parametrize(
    ("options", "named", "run"),
    [
        ((), "tests", ["quick"]),
        (("--slow",), "tests", ["slow"]),
        ((), "tests/terms", ["quick", "slow"]),
        (("--whole",), "tests", ["quick", "slow", "whole"]),
    ],
)
def test_slow_ones_are_left_out_where_all_are_run(options, named, run):
    items = [
        SimpleNamespace(name=name, nodeid=nodeid, get_closest_marker=lambda mark, name=name: mark == name)
        for name, nodeid in (("quick", "tests/a.py::test_a"), ("slow", min(SLOW) + "[x]"), ("whole", "tests/a.py::b"))
    ]
    config = SimpleNamespace(args=[named], getini=lambda _: ["tests"], getoption=options.__contains__)
    assert [item.name for item in items if is_run(item, config)] == run


def test_they_are_run_before_a_change_is_taken():
    """But for the pages, which are all run behind them."""
    left_out, script = "tests/house/test_docs.py", (ROOT / ".ci/run").read_text()
    assert f'\nmake test\nmake test ARGS="--slow --deselect {left_out}"' in script
    assert f'ARGS="--whole {left_out} ' in script.partition("--deselect")[2]


def test_the_slowest_are_two_thirds_of_the_seconds_or_what_may_be_left_out():
    assert slowest(TIMES) == [f"tests/a/test_one.py::test_{name}" for name in ("long", "next", "short")]
    assert slowest(TIMES.replace("9.00", "1.00")) == ["tests/a/test_one.py::test_long"]
