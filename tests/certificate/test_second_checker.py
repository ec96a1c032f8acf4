"""examples/verify.js, written in another language from docs/proofs.md alone: it judges as the checker does."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest
from places import EXAMPLES
from proofs_by_hand import BOX, by_hand, mixed, no_proofs, strange, with_rows

from benchmarks.forged_claims import forged
from benchmarks.honest import as_rows, chain
from graphreg.verify import NotProvedError, check

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not on the PATH")
JUDGE = """
const { check } = require(process.argv[1]), files = JSON.parse(require("fs").readFileSync(0));
const judged = (file) => { const p = check(file); return [p.hash, p.said.length]; };
console.log(JSON.stringify(files.map((file) => { try { return judged(file); } catch (error) { return null; } })));
"""


def run(*arguments, given=None):
    return subprocess.run([NODE, *map(str, arguments)], input=given, capture_output=True, text=True, check=False)


def second(files):
    """Of each file the hash and the number of claims that are proved, or None."""
    done = run("-e", JUDGE, EXAMPLES / "verify.js", given=json.dumps(files))
    assert done.returncode == 0, done.stderr
    return [found and tuple(found) for found in json.loads(done.stdout)]


def first(file):
    try:
        found = check(file.encode())
    except NotProvedError:
        return None
    return found.hash, len(found.said)


def test_two_checkers_judge_alike():
    """Forged files and true ones, on which they agree in the hash, too."""
    drawn = (draw(random.Random(seed))[0] for draw in (mixed, with_rows) for seed in range(3))
    made = [*by_hand(), *map(as_rows, by_hand()), *drawn, *strange()]
    files = [*map(json.dumps, made), *(file for _, file, _ in forged()), *no_proofs()]
    judged = second(files)
    assert all(judged[: len(made)])
    assert [file for file, found in zip(files, judged, strict=True) if found != first(file)] == []


@pytest.mark.parametrize(("within", "code"), [(None, 0), (BOX, 8), ("1p999", 1)])
def test_the_program_ends_as_the_checker_does(within, code, tmp_path):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(chain("L1") | {"within": within}))
    done = run(EXAMPLES / "verify.js", path)
    assert done.returncode == code
    assert done.stdout.startswith(["PROVED", "NOT PROVED"][code == 1])
    assert ("<= infimum <=" in done.stdout) == (code == 0)
    assert run(EXAMPLES / "verify.js", path, "0" * 64).returncode == 1
    assert run(EXAMPLES / "verify.js").returncode == run(EXAMPLES / "verify.js", path, "river.toml").returncode == 2
