"""Proofs with other numbers: what is then still proved is true of the problem that the file states.

The problems are small enough for a second, exact route to the infimum: mean losses of three nodes, and L1 on edges or
on rows of any kind. At an optimum each row is 0 or has a sign; for all of these patterns a linear system is solved.
"""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from functools import cache
from itertools import product
from math import gcd, lcm

import networkx as nx
import numpy as np
import pytest
from cli_cases import run
from factories import thinned

import graphreg as gr
from graphreg.certificate.proof.statement import text
from graphreg.verify import NotProvedError, check, spell

N = 3
EDGES = [(0, 1), (1, 2), (2, 0)]
NUMBER = re.compile(r"(-?)([0-9a-f]+)(?:p(-?[0-9]+))?(?:/([0-9a-f]+))?")


def read(s):
    """The number, without the checker."""
    sign, digits, power, below = NUMBER.fullmatch(s).groups()
    return Fraction(int(sign + digits, 16)) * Fraction(2) ** int(power or 0) / int(below or "1", 16)


def optima(model):
    """The infimum of P in exact numbers, and the points among the candidates that reach it."""
    return _optima(json.dumps(model))


@cache
def _optima(text_of_model):
    model = json.loads(text_of_model)
    (samples,) = model["samples"]
    weight, strength = [float(read(x)) for x in samples["weight"]], float(read(samples["strength"]))
    total = [0.0] * N
    for i, x in zip(samples["node"], weight, strict=True):
        total[i] += x
    scale = [Fraction(strength * (x / total[i])) for i, x in zip(samples["node"], weight, strict=True)]
    target = [read(y) - read(o) for (y,), (o,) in zip(samples["y"], samples["offset"], strict=True)]
    fits = list(zip(samples["node"], scale, target, strict=True))
    rows = [row for block in model["edges"] for row in rows_of(block)]

    def P(w):
        return sum(s * (w[i] - t) ** 2 / 2 for i, s, t in fits) + sum(c * abs(dot(k, w) - b) for k, b, c in rows)

    found = {}
    for signs in product((-1, 0, 1), repeat=len(rows)):
        held = [(k, b) for (k, b, _), sign in zip(rows, signs, strict=True) if sign == 0]
        pull = [sum(s * t for i, s, t in fits if i == j) for j in range(N)]
        pull = [
            p - sum(c * sign * k[j] for (k, _, c), sign in zip(rows, signs, strict=True)) for j, p in enumerate(pull)
        ]
        mass = [sum(s for i, s, _ in fits if i == j) for j in range(N)]
        system = [[mass[j] * (i == j) for i in range(N)] + [k[j] for k, _ in held] + [pull[j]] for j in range(N)]
        solution = solved(system + [[*k, *[Fraction(0)] * len(held), b] for k, b in held])
        if solution is not None:
            found.setdefault(tuple(solution[:N]))
    found = {w: P(w) for w in found}
    least = min(found.values())
    return least, [w for w, p in found.items() if p == least]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def rows_of(block):
    """The rows of a block of one column: K, b, capacity."""
    M = len(block["weight"])
    K = [[Fraction(0)] * N for _ in range(M)]
    for e, row in enumerate(K):
        ends = [[block["tail"][e], 0, "1"], [block["head"][e], 0, "-1"]] if "tail" in block else block["rows"][e][0]
        for i, _, x in ends:
            if i >= 0:
                row[i] += read(x)
    b = [Fraction(0)] * M if block["center"] is None else [read(x) for (x,) in block["center"]]
    return zip(K, b, (Fraction(float(read(block["strength"])) * float(read(x))) for x in block["weight"]), strict=True)


def solved(system):
    """A solution of equations [a, b], a'x = b; None where there is none. By whole numbers, which is quicker."""
    rows, pivots = [whole(row) for row in system], []
    for j in range(len(rows[0]) - 1):
        at = next((r for r in range(len(pivots), len(rows)) if rows[r][j]), None)
        if at is None:
            continue
        top = len(pivots)
        rows[top], rows[at] = rows[at], rows[top]
        own = rows[top]
        for r, row in enumerate(rows):
            if r != top and row[j]:
                rows[r] = whole([own[j] * x - row[j] * y for x, y in zip(row, own, strict=True)])
        pivots.append(j)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    out = [Fraction(0)] * (len(rows[0]) - 1)
    for row, j in zip(rows, pivots, strict=False):
        out[j] = Fraction(row[-1], row[j])
    return out


def whole(row):
    """The row times what makes its numbers whole, without a common factor."""
    least = lcm(*(x.denominator for x in row))
    numbers = [x.numerator * (least // x.denominator) for x in row]
    common = gcd(*numbers) or 1
    return [x // common for x in numbers]


def is_true(document, said):
    """True where all lines that the checker prints are true of the problem in the file."""
    least, points = optima(document["model"])
    labels = {repr(label): i for i, label in enumerate(document["model"]["labels"])}
    blocks = [list(rows_of(block)) for block in document["model"]["edges"]]
    holds = []
    for line in said.splitlines()[2:-1]:
        if bounds := re.fullmatch(r"  (\S+) <= infimum <= (\S+)", line):
            holds.append(Fraction(bounds[1]) <= least <= Fraction(bounds[2]))
        elif near := re.fullmatch(r"  L1 of the difference ('.*') - ('.*') is at most (\S+) at every optimum", line):
            i, j = labels[near[1]], labels[near[2]]
            holds.append(all(abs(w[i] - w[j]) <= Fraction(near[3]) for w in points))
        elif row := re.fullmatch(
            r"  (L1 of )?row (\d) of edges\[(\d)\] \([^)]*\) (?:is at most (\S+) at every|holds at (every|no)) optimum",
            line,
        ):
            k, b, _ = blocks[int(row[3])][int(row[2])]
            sizes = [abs(dot(k, w) - b) for w in points]
            limit = Fraction(row[4]) if row[1] else 0
            holds.append(all((size <= limit) == (row[5] != "no") for size in sizes))
        else:
            i, j, what = re.fullmatch(r"  ('.*') - ('.*') (are equal|differ) at every optimum", line).groups()
            holds.append(all((w[labels[i]] == w[labels[j]]) == (what == "are equal") for w in points))
    assert holds
    assert said.splitlines()[-1].startswith("  the bounds are at most ")
    return all(holds)


def made(seed, path, claims, of_rows=False):
    rng = np.random.default_rng(seed)
    nodes = [0, 1, 2, 2]
    data = gr.NodeData.from_arrays(None, rng.normal(size=4).round(1 + seed % 3), nodes)
    graph = nx.Graph()
    graph.add_weighted_edges_from([(i, j, float(rng.uniform(0.2, 1.5))) for i, j in EDGES[: 1 if of_rows else N]])
    model = gr.MeanLoss(data) + float(rng.uniform(0.05, 0.6)) * gr.TotalVariation(graph, gr.L1())
    if of_rows:
        rows = gr.Rows(np.round(rng.normal(size=(2, N)), 2)) - np.round(rng.normal(size=(2, 1)), 1)
        model = model + 0.3 * gr.L1()(gr.w.along(range(N), 2)) + float(rng.uniform(0.05, 0.6)) * gr.L1()(rows)
    gr.Problem(model).solve(gap=1e-9).prove(path, claims)
    return json.loads(path.read_text())


@pytest.fixture(scope="module", params=thinned(product(range(3), (False, True)), every=3))
def proof(request, tmp_path_factory):
    seed, of_rows = request.param
    return made(seed, tmp_path_factory.mktemp("changed") / "proof.json", ["near", "split"], of_rows)


def places(data, path=()):
    """The paths to all numbers of a document."""
    if isinstance(data, (dict, list)):
        for key, each in data.items() if isinstance(data, dict) else enumerate(data):
            yield from () if key in ("labels", "columns", "format") else places(each, (*path, key))
    elif isinstance(data, int) or (isinstance(data, str) and NUMBER.fullmatch(data)):
        yield path


def at(data, path):
    for key in path:
        data = data[key]
    return data


def with_changed(document, path, value):
    document = json.loads(json.dumps(document))
    at(document, path[:-1])[path[-1]] = value
    return document


def others(value, rng):
    """Other numbers near this one, and far from it."""
    if isinstance(value, int):
        return [value - 1, value + 1, 0]
    x = read(value)
    spread = [x * (1 + Fraction(sign, 1 << bits)) for sign in (-1, 1) for bits in (100, 52, 20, 3)]
    changed = [-x, 2 * x, Fraction(0), Fraction(rng.randint(-64, 64), 16), *spread]
    written = [*map(text, changed), *(spell(float(each)) for each in changed)]
    return [each for each in dict.fromkeys(written) if read(each) != x]


def proved(document):
    """The output of the checker, or None."""
    try:
        return str(check(json.dumps(document).encode()))
    except NotProvedError:
        return None


def test_what_is_made_is_true(proof):
    said = proved(proof)
    assert "is at most" in said or "differ" in said
    assert is_true(proof, said)


def test_one_other_number_never_proves_what_is_false(proof):
    """Every number of the proof, a dozen changes of each."""
    rng, count = random.Random(0), {"another problem": 0, "this problem": 0}
    first = proved(proof).splitlines()[0]
    least = optima(proof["model"])[0]
    for path in places(proof):
        for other in others(at(proof, path), rng):
            document = with_changed(proof, path, other)
            said = proved(document)
            if said is None:
                continue
            assert is_true(document, said), (path, other, said)
            same = said.splitlines()[0] == first
            assert not same or optima(document["model"])[0] == least, "the hash leaves out a number"
            count["this problem" if same else "another problem"] += 1
    assert count["this problem"] > 5, "a dual point or a point moved a little, and weaker claims, are proofs"


@pytest.mark.parametrize("seed", thinned(range(3), every=3))
def test_other_points_and_claims_never_prove_what_is_false(proof, seed):
    """Flows anywhere in their domain, prices that balance them, w anywhere, and claims around the truth."""
    rng, count = random.Random(seed), 0
    least, points = optima(proof["model"])
    node = proof["model"]["samples"][0]["node"]
    blocks = [list(rows_of(block)) for block in proof["model"]["edges"]]
    for _ in range(150):
        document, size = json.loads(json.dumps(proof)), Fraction(1, 1 << rng.choice([2, 10, 40, 80]))
        flows, prices, rest = [], [read(a) for (a,) in proof["dual"]["prices"][0]], [Fraction(0)] * N
        for rows, old in zip(blocks, proof["dual"]["flows"], strict=True):
            flows.append([])
            for (k, _, capacity), (t,) in zip(rows, old, strict=True):
                flows[-1].append(max(-capacity, min(capacity, read(t) + size * rng.randint(-8, 8))))
                rest = [r + x * (flows[-1][-1] - read(t)) for r, x in zip(rest, k, strict=True)]
        for i, r in {i: r for r, i in enumerate(node)}.items():
            prices[r] -= rest[i]
        document["dual"] = {
            "flows": [[[text(t)] for t in each] for each in flows],
            "prices": [[[text(a)] for a in prices]],
        }
        document["w"] = [[text(x + size * rng.randint(-8, 8))] for x in points[0][:N]]
        slack = Fraction(1, 1 << rng.choice([2, 4, 12, 40, 90]))
        low, high = (least + slack * Fraction(rng.randint(-9, 3) * sign, 4) for sign in (1, -1))
        claims = [{"says": "bounds", "lower": text(low), "upper": text(high)}]
        block = rng.randrange(len(flows))
        edge = {"block": block, "edge": rng.randrange(len(flows[block]))}
        more = (
            {"says": "near", "distance": text(slack)},
            {"says": rng.choice(["fused", "held"])},
            {"says": "split", "dual": document["dual"]},
        )
        document["claims"] = claims + [rng.choice(more) | edge for _ in range(rng.randrange(2))]
        said = proved(document)
        if said is not None:
            count += 1
            assert is_true(document, said), said
    assert count > 5


@pytest.mark.parametrize("seed", range(12))
def test_printed_bounds_are_rounded_outwards(seed, tmp_path):
    """Both bounds are the exact infimum but for 2^-90, which no double is."""
    document = made(seed, tmp_path / "proof.json", ["fused"])
    said = proved(document)
    assert is_true(document, said), said


def test_an_edge_on_some_columns_names_them(tmp_path):
    data = gr.NodeData.from_arrays(np.eye(4)[:, :2] + 1, np.arange(4.0), [0, 0, 1, 1], features=["slope", "level"])
    model = gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(2), gr.L1(), features=["slope"])
    gr.Problem(model + 0.1 * gr.NodePenalty(gr.SquaredL2())).solve().prove(tmp_path / "proof.json", ["near", "split"])
    assert "'0' - '1' in 'slope' " in proved(json.loads((tmp_path / "proof.json").read_text()))


# ---- what is no proof ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("no JSON at all", "this is no proof of graphreg"),
        ('{"status": "certified", "gap": 1.5}', "this is no proof of graphreg"),
        ("[]", "this is no proof of graphreg"),
        ("", "this is no proof of graphreg"),
        (None, "No such file"),
        ("a directory", "Is a directory"),
    ],
)
def test_what_is_no_proof_is_one_line(content, why, tmp_path):
    path = tmp_path / "file.json"
    if content == "a directory":
        path.mkdir()
    elif content is not None:
        path.write_text(content)
    done = run("verify", path)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_half_a_proof_is_not_proved(proof, tmp_path):
    (tmp_path / "half.json").write_text(json.dumps(proof)[:-20])
    done = run("verify", tmp_path / "half.json")
    assert done.exit_code == 1
    assert done.stdout.startswith("NOT PROVED: broken JSON: ")


def test_whose_problem_it_is_the_hash_says(proof, tmp_path):
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    done = run("verify", tmp_path / "proof.json")
    assert "of the problem that the file states" in done.stdout
    name = re.search("[0-9a-f]{64}", done.stdout)[0]
    assert "that the file states" not in run("verify", tmp_path / "proof.json", "--model", name).stdout
