"""graphreg-checker, whose rules are proved in Coq: it judges as verify.py does, and says the same."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from factories import thinned
from places import ROOT
from proofs_by_hand import BOX, by_hand, mixed, no_proofs, strange, with_rows

from benchmarks.checkers import PARTS, changed, difference, python
from benchmarks.forged_claims import forged
from benchmarks.forgeries import HOSTILE
from benchmarks.honest import as_rows, bounds, chain, separable


def buildable():
    """Whether OCaml is here, with zarith."""
    if shutil.which("ocamlopt") is None:
        return False
    where = subprocess.run(["ocamlopt", "-where"], capture_output=True, text=True, check=True).stdout.strip()
    find = shutil.which("ocamlfind")
    found = find and subprocess.run([find, "query", "zarith"], capture_output=True, check=False).returncode == 0
    return bool(found) or Path(where, "zarith").is_dir()


pytestmark = pytest.mark.skipif(not buildable(), reason="OCaml with zarith is not here")
ALIKE = ("", "another place of what is left of the balance", "an exception of Python")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, built of the extracted file and the reader beside it."""
    folder = tmp_path_factory.mktemp("checker")
    done = subprocess.run(
        ["make", "-s", "-C", ROOT / "checker", f"OUT={folder}"], capture_output=True, text=True, check=False
    )
    if "zarith" in done.stderr and done.returncode:
        pytest.skip("zarith is not installed")
    assert done.returncode == 0, done.stderr
    return folder / "graphreg-checker"


def run(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def judged(program, tmp_path):
    @cache
    def judge(file, *arguments):
        path = tmp_path / "proof.json"
        path.write_text(file)
        done = run(program, path, *arguments)
        return done.returncode, done.stdout.split("\nThis holds of")[0].rstrip("\n")

    return judge


def differences(files, judged):
    found = ((file, python(file.encode()), judged(file)) for file in files)
    return [each for each in found if difference(*each[1:]) not in ALIKE]


def test_true_files(judged):
    files = [*map(json.dumps, by_hand()), *map(json.dumps, strange()), *tight()]
    assert all(judged(file)[0] in (0, 8) for file in files)
    assert differences(files, judged) == []


def tight():
    """Files whose claimed bounds are those that hold, but for a few units of rounding."""
    for draw, seed in product((mixed, with_rows), range(3)):
        made, high, low = draw(random.Random(seed))
        yield json.dumps(made | {"claims": [bounds(low - Fraction(1, 1 << 190), high + Fraction(1, 1 << 190))]})


@cache
def forged_files():
    return [file for _, file, _ in forged()]


@pytest.mark.parametrize("part", thinned(range(4), every=2))
def test_forged_files(judged, part):
    files = forged_files()[part::4]
    assert not any(judged(file)[0] == 0 and python(file.encode())[0] != 0 for file in files)
    assert differences(files, judged) == []


def test_files_that_are_none(judged):
    assert differences(no_proofs(), judged) == []


@pytest.mark.parametrize("seed", thinned(range(6), every=3))
def test_files_with_one_thing_changed(judged, seed):
    import numpy as np

    made = [*map(json.dumps, by_hand()), *map(json.dumps, map(as_rows, by_hand()))]
    rng = np.random.default_rng(seed)
    files = [changed(made[rng.integers(len(made))], PARTS[k % len(PARTS)], rng) for k in range(150)]
    assert differences(filter(None, files), judged) == []


@pytest.mark.parametrize("name", thinned(HOSTILE, every=3))
def test_hostile_files_are_refused_quickly(judged, name):
    made = chain("L1")
    start = time.monotonic()
    status, said = judged(HOSTILE[name](made))
    assert status == 2 if not said else (status == 1 and said.startswith("NOT PROVED: "))
    assert time.monotonic() - start < 60.0


@pytest.mark.parametrize(
    ("within", "arguments", "code", "word"),
    [
        (None, [], 0, "<= infimum <="),
        (None, ["--model", "0" * 64], 1, "another model"),
        (None, ["--model", "river.toml"], 2, ""),
        (None, ["--gap", "1e-3"], 0, "apart"),
        (None, ["--seconds", "0"], 1, "the time is up (--seconds)"),
        (BOX, [], 8, "WITHIN A BOX ONLY: "),
        ("1p999", [], 1, "says nothing of the infimum"),
    ],
)
def test_the_command_line(program, tmp_path, within, arguments, code, word):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(chain("L1") | {"within": within}))
    done = run(program, path, *arguments)
    assert (done.returncode, word in done.stdout) == (code, True)


def test_wide_bounds_have_a_status_of_their_own(program, tmp_path):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(separable()))
    done = run(program, path, "--gap", "1e-3")
    assert done.returncode == 4
    assert done.stdout.splitlines()[-1] == "WIDE: --gap 0.001 asks for bounds that are closer."


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["a", "--gap", "-1"], ["a", "--what"], ["nowhere.json"]])
def test_mistakes_on_the_command_line(program, arguments):
    done = run(program, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: " in done.stderr.lower()
