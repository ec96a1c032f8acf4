"""examples/verify.js, written in another language from docs/proofs.md alone: it judges as the checker does."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from fractions import Fraction

import pytest
from places import EXAMPLES
from proofs_by_hand import BOX, by_hand, mixed, no_proofs, printed, strange, with_rows

from benchmarks.forged_claims import forged
from benchmarks.honest import LEFT, as_rows, bounds, chain, changed, document, edges, of_edge, samples, text
from graphreg.verify import NotProvedError, check

F, LARGE = Fraction, Fraction(2) ** 971
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not on the PATH")
JUDGE = """
const { check } = require(process.argv[1]), files = JSON.parse(require("fs").readFileSync(0));
const judged = (file) => { const p = check(file); return [p.hash, p.said]; };
console.log(JSON.stringify(files.map((file) => { try { return judged(file); } catch (error) { return null; } })));
"""


def run(*arguments, given=None):
    return subprocess.run([NODE, *map(str, arguments)], input=given, capture_output=True, text=True, check=False)


def second(files):
    """Of each file the hash and what is said, or None."""
    done = run("-e", JUDGE, EXAMPLES / "verify.js", given=json.dumps(files))
    assert done.returncode == 0, done.stderr
    return [found and (found[0], plain(found[1])) for found in json.loads(done.stdout)]


def first(file):
    try:
        found = check(file.encode())
    except NotProvedError:
        return None
    return found.hash, plain(found.said)


def plain(said):
    """The lines, but for names with strange characters, which each language writes in its own way."""
    return [line if line.isascii() and "\\" not in line else "" for line in said]


def test_two_checkers_judge_alike():
    """Forged files and true ones, of which they say the same, and agree in the hash, too."""
    drawn = (draw(random.Random(seed))[0] for draw in (mixed, with_rows) for seed in range(3))
    made = [*by_hand(), *map(as_rows, by_hand()), *drawn, *strange()]
    files = [*map(json.dumps, made), *(file for _, file, _ in forged()), *no_proofs()]
    judged = second(files)
    assert all(judged[: len(made)])
    assert [file for file, found in zip(files, judged, strict=True) if found != first(file)] == []


@pytest.mark.parametrize("power", [0, -13, 53, -60, -215, 900, -980, 1020, -1075, 3000, -3000])
def test_numbers_are_printed_alike_and_outwards(power):
    """Bounds and distances of every size and sign, in both formats."""
    rng = random.Random(power)
    sizes = [F(1), F(1, 3), F(2**53 + 1), 1 + F(1, 2**53), 1 - F(1, 2**54), F(2) - F(1, 2**99)]
    sizes += [F(rng.getrandbits(k) + 1, rng.getrandbits(60) + 1) for k in (20, 60, 60, 60, 200)]
    sizes = [x * F(2) ** power for x in sizes]
    numbers = [F(0), *sizes, *(-x for x in sizes)]
    lows, highs = [min(x, LARGE) for x in numbers], [max(x, -LARGE) for x in numbers]
    claims = [*(bounds(60 - x, 60 + x) for x in sizes), *(of_edge("near", LEFT, distance=text(x)) for x in sizes)]
    files = [
        json.dumps(chain("L2") | {"claims": claims}),
        constant(LARGE, "lower", lows),
        constant(-LARGE, "upper", highs),
    ]
    said = [found and found[1] for found in second(files)]
    assert said == [first(file)[1] for file in files]
    meant = [*((60 - x, 60 + x) for x in sizes), *((x,) for x in [*sizes, *lows, *highs])]
    for line, exact in zip([line for each in said for line in each], meant, strict=True):
        shown = [printed(word) for word in line.split() if re.match(r"-?\d", word)]
        sides = [-1, 1] if len(exact) == 2 else [-1 if line.endswith("<= the optimal value") else 1]
        for x, y, side in zip(exact, shown, sides, strict=True):
            assert 0 <= side * (y - x) <= (abs(x) / 2**51 if 2**-990 < abs(x) < F(2) ** 990 else abs(x)), line


def constant(value, says, numbers):
    """A file of the problem without columns and rows that has this value, with bounds of it."""
    empty = {"P": [], "q": [], "A": [], "b": [], "cones": []}
    point = {"y": [], "rows": [], "columns": [], "last": []}
    claims = [{"says": says, "bound": text(x), "point": point} for x in numbers]
    problem = {"sense": "minimise", "offset": text(value)} | empty
    return json.dumps({"format": "graphreg-conic-1", "problem": problem, "claims": claims})


@pytest.mark.parametrize(
    ("way", "place"),
    [(("prices", 1, 1), "hinge 1 of samples[1] ('n1')"), (("flows", 2, 0), "L1 0 of edges[2] ('n0' - 'n1')")],
)
def test_a_refusal_names_the_term_by_its_list_in_the_file(way, place, tmp_path):
    blocks = [samples(loss, ["1", "1"], [0, 1]) for loss in ("squared", "hinge")]
    others = [edges(penalty, [(0, 1)], [0]) for penalty in ("SquaredL2", "L2", "L1")]
    zeros = [[F(0)], [F(0)]]
    made = document(2, 1, (blocks, others), zeros, [zeros[:1]] * 3, [zeros] * 2)
    assert first(json.dumps(made))
    refused = json.dumps(changed(made, "dual", *way, ["3"]))
    (tmp_path / "proof.json").write_text(refused)
    assert run(EXAMPLES / "verify.js", tmp_path / "proof.json").stdout == f"NOT PROVED: {place}: outside the domain\n"
    with pytest.raises(NotProvedError, match=f"^{re.escape(place)}: outside the domain$"):
        check(refused.encode())


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
