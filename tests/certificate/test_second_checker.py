"""examples/verify.js, written in another language from docs/proofs.md alone: it judges as the checker does."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from fractions import Fraction

import pytest
from places import EXAMPLES
from proofs_by_hand import BOX, by_hand, mixed, with_rows

from benchmarks.forged_claims import forged
from benchmarks.honest import as_rows, chain, changed, of_loss
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


def strange():
    """Boxes, and labels of every alphabet, whose order and escapes enter the hash; prices of losses without ends."""
    yield from (of_loss(loss, [Fraction(b, 3)]) for loss in ("expectile", "squared_epsilon", "gamma") for b in (-2, 1))
    yield chain("L1") | {"within": BOX}
    yield changed(chain("L2"), "model", "labels", ["\uffee", "\U0001f600", 'é"\\\n', "\x7f\x01"])
    yield changed(chain("L2"), "model", "columns", ["\u2028", ""])
    for made in (chain("L2"), with_rows(random.Random(9))[0]):  # and, of rows, that of cells
        labels = ["\uffee", "\U0001f600", 'é"\\\n', "\x7f\x01"][: len(made["model"]["labels"])]
        columns = ["\U0001f600", "\uffee", ""][: len(made["model"]["columns"])]
        yield as_rows(changed(changed(made, "model", "labels", labels), "model", "columns", columns))


def no_proofs():
    """Text that is no strict JSON."""
    text = json.dumps(chain("L1"))
    yield from ("", "[]", "{", text[:-1], text + "]", text.replace('"within": null', '"within": null, "within": null'))
    yield from (
        text.replace('"head": [1', f'"head": [{x}') for x in ("1.0", "1e0", "true", '"1"', "1000000000", "null")
    )
    yield text.replace("n0", "ü")
    yield text.replace('"n0"', "'n0'")


@pytest.mark.parametrize(("within", "code"), [(None, 0), (BOX, 8), ("1p999", 1)])
def test_the_program_ends_as_the_checker_does(within, code, tmp_path):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(chain("L1") | {"within": within}))
    done = run(EXAMPLES / "verify.js", path)
    assert done.returncode == code
    assert done.stdout.startswith(["PROVED", "NOT PROVED"][code == 1])
    assert ("<= infimum <=" in done.stdout) == (code == 0)
    assert run(EXAMPLES / "verify.js", path, "0" * 64).returncode == 1
    assert run(EXAMPLES / "verify.js").returncode == 2
