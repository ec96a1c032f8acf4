"""The checker of proofs: it stands alone, rounds upwards, and refuses hostile files quickly."""

from __future__ import annotations

import ast
import json
import random
import shutil
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner
from factories import thinned

import graphreg as gr
from benchmarks.forgeries import HOSTILE
from benchmarks.honest import changed, document
from graphreg import verify
from graphreg.cli import main
from graphreg.verify import STATE, NotProvedError, check

FILE = Path(verify.__file__)
ALLOWED = {"argparse", "hashlib", "json", "re", "sys", "threading", "time", "fractions", "math", "typing", "flint"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((9, 2)), rng.integers(0, 2, 9), np.repeat([0, 1, 2], 3))
    model = gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2()) + gr.NodePenalty(gr.SquaredL2())
    path = tmp_path_factory.mktemp("proof") / "proof.json"
    gr.Problem(model).solve().prove(path)
    return path


@pytest.fixture
def proof(path):
    return json.loads(path.read_text())


@pytest.fixture(autouse=True)
def _arithmetic():
    before = STATE.flint, STATE.work, STATE.end, STATE.where
    yield
    STATE.flint, STATE.work, STATE.end, STATE.where = before


# ---- the file --------------------------------------------------------------------------------------------------------
def test_it_imports_nothing_else():
    nodes = list(ast.walk(ast.parse(FILE.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names == ALLOWED
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in nodes)


def test_it_runs_alone(path, tmp_path):
    alone = shutil.copy(FILE, tmp_path / "verify.py")
    run = [sys.executable, "-I", str(alone), str(path)]
    for options, code, word in (([], 0, "PROVED"), (["--no-flint"], 0, "PROVED"), (["--model", "0" * 64], 1, "NOT")):
        done = subprocess.run([*run, *options], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stdout.split()[0]) == (code, word), done.stderr
    assert subprocess.run([*run[:-1], "nowhere.json"], capture_output=True, check=False).returncode == 2


def test_the_command_line(path, tmp_path):
    done = CliRunner().invoke(main, ["verify", str(path)])
    assert done.exit_code == 0
    assert "9 logistic of strength 1.0" in done.output
    wrong = tmp_path / "wrong.json"
    wrong.write_text(path.read_text().replace('"within":null', '"within":"0"'))
    done = CliRunner().invoke(main, ["verify", str(wrong), "--no-flint"])
    assert done.exit_code == 1
    assert "NOT PROVED: a proof among the w of a box smaller than 2^1000 says nothing of the infimum" in done.output


# ---- arithmetic ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("with_flint", [False, True])
def test_log_and_exp_are_upper_bounds(with_flint):
    flint = pytest.importorskip("flint")
    flint.ctx.prec = 3000
    STATE.flint, STATE.work = with_flint, verify.WORK
    rng = random.Random(1)
    for k in range(150):
        x = Fraction(rng.getrandbits(150) + 1, rng.getrandbits(150) + 1) * Fraction(2) ** rng.choice([0, -20, 60])
        _near_above(verify.log(verify.rational(*x.as_integer_ratio())), flint.arb(_fmpq(x)).log())
        x = Fraction(rng.randint(-(2**60), 2**60), 2 ** (50 + k))
        if x < 4000:
            _near_above(verify.exp(verify.rational(*x.as_integer_ratio())), flint.arb(_fmpq(x)).exp())
    assert verify.log(verify.rational(1)) == 0
    flint.ctx.prec = 53


def _fmpq(x):
    import flint

    return flint.fmpq(*x.as_integer_ratio())


def _near_above(bound, true):
    import flint

    excess = flint.arb(flint.fmpq(int(bound.numerator), int(bound.denominator))) - true
    assert excess >= 0
    assert excess <= flint.arb(2) ** -150 + abs(true) * flint.arb(2) ** -150


@pytest.mark.parametrize("x", [0.0, 1.0, -0.1, 5e-324, -1.7976931348623157e308, 2.0**53 - 1, 3.0, -1024.0])
def test_doubles_have_one_spelling(x):
    assert verify.double(verify.spell(x)) == x
    STATE.flint = False
    assert verify.number(verify.spell(x)) == Fraction(x)


@pytest.mark.parametrize(
    "s", ["-0", "2", "1p0", "01", "1p+1", "1P1", "A", "1.0", "1p9999", "1/3", "3fffffffffffff", "", 1, None]
)
def test_other_spellings_are_refused(s):
    with pytest.raises(NotProvedError):
        verify.double(s)


# ---- hostile files ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "with_flint"), thinned(HOSTILE, [True, False], every=2))
def test_hostile_files_are_refused_quickly(proof, name, with_flint):
    """Within seconds; the limit is for what would take minutes, or hours."""
    text = HOSTILE[name](proof).encode()
    start = time.process_time()
    with pytest.raises(NotProvedError):
        check(text, with_flint)
    assert time.process_time() - start < 20.0


def test_the_time_is_limited(proof):
    with pytest.raises(NotProvedError, match="time is up"):
        check(json.dumps(proof).encode(), seconds=0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strength": "-1"}, "positive"),
        ({"strength": "0"}, "positive"),
        ({"penalty": "L7"}, "unknown penalty 'L7'"),
        ({"tail": [0, 0]}, "Error|balance|domain"),
        ({"tail": [0, 2]}, "edges: 0: edge 1 is a loop"),
        ({"weight": ["1"]}, "edges: 0: weight: no list of 2 entries"),
        ({"weight": ["1", "0.5"]}, "edges: 0: weight: 1: not the spelling of a double: '0.5'"),
        ({"tail": [0, True]}, "no integer"),
        ({"features": [0, 0]}, "distinct"),
        ({"penalty": "NonNegative", "strength": "1"}, "one-sided"),
        ({"penalty": "Zero"}, "no weight"),
        ({"parameter": "1"}, "no parameter"),
        ({"center": [["1", "1"], ["1", "1"]]}, "a centre"),
    ],
)
def test_models_that_are_none(proof, change, message):
    proof["model"]["edges"][0] |= change
    with pytest.raises(NotProvedError, match=message):
        check(json.dumps(proof).encode())


@pytest.mark.parametrize("empty", [{}, "", None])
def test_blocks_stand_in_lists(empty):
    """A model without terms: what is empty, and no list, does not stand for its blocks."""
    none = document(1, 1, ([], []), [[0]], [], [])
    check(json.dumps(none).encode())
    for way in (("model", "samples"), ("model", "edges"), ("dual", "flows"), ("dual", "prices")):
        with pytest.raises(NotProvedError, match=f"^{way[1]}: no list: "):
            check(json.dumps(changed(none, *way, empty)).encode())


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (("model", "labels"), ["a", "b", "a"], "of the labels 'a' stands twice"),
        (("model", "columns"), ["x", "x"], "of the columns 'x' stands twice"),
        (("model", "labels", 1), 1, "labels are strings"),
        (("model", "labels"), [], "labels are strings, and some"),
        (("w", 2), ["1"], "w: 2: no list of 2 entries"),
        (("w", 2, 1), "0.5", "w: 2: 1: not a number: '0.5'"),
        (
            ("model", "samples", 0, "offset", 3),
            ["0.5"],
            "samples: 0: offset: 3: 0: not the spelling of a double: '0.5'",
        ),
        (("model", "samples", 0, "node", 3), -1, "samples: 0: node: 3: no integer in"),
        (("dual", "flows", 0), [], "dual point of edges\\[0\\]: no list of 2 entries"),
        (("dual", "flows", 0, 0), ["1", "0"], r"L2 0 of edges\[0\] \('0' - '1'\): outside the domain$"),
        (("dual", "prices", 0, 3), ["3"], r"logistic 3 of samples\[0\] \('1'\): outside the domain$"),
        (("claims",), [], "'bounds' must be claimed, and else only near"),
        (("claims", 0), {}, "claims: 0: no claim: {}"),
        (("claims", 0, "says"), [], "claims: 0: no claim: "),
        (("model", "samples", 0), None, "samples: 0: samples has the fields"),
        (("model", "samples", 0, "node"), None, "samples: 0: node: no list: None"),
        (("model", "samples", 0, "loss"), [], "samples: 0: unknown loss \\[\\]"),
        (("model", "edges", 0), 7, "edges: 0: edges has the fields"),
        (("model", "edges", 0, "penalty"), {}, "edges: 0: unknown penalty {}"),
    ],
)
def test_a_refusal_says_where(proof, way, value, message):
    with pytest.raises(NotProvedError, match=f"^{message}"):
        check(json.dumps(changed(proof, *way, value)).encode())
