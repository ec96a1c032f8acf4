"""Proofs of problems in conic form: what holds is accepted to the last digit, and nothing beyond it."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from fractions import Fraction

import cvxpy as cp
import pytest
from click.testing import CliRunner
from places import EXAMPLES

import graphreg as gr
from benchmarks.honest import as_rows, chain, changed
from graphreg.certificate.proof import text
from graphreg.cli import main
from graphreg.conic.verify import upper_value
from graphreg.errors import ProofError
from graphreg.verify import CONIC, FORMAT, STATE, WORK, NotProvedError, check, spell

TINY = Fraction(1, 1 << 160)
NODE = shutil.which("node")
JUDGE = """
const { check } = require(process.argv[1]), files = JSON.parse(require("fs").readFileSync(0));
const judged = (file) => { const p = check(file); return [p.hash, p.said]; };
console.log(JSON.stringify(files.map((file) => { try { return judged(file); } catch (error) { return null; } })));
"""


@pytest.fixture(autouse=True)
def _arithmetic():
    before = STATE.flint, STATE.work, STATE.end, STATE.where
    yield
    STATE.flint, STATE.work, STATE.end, STATE.where = before


def point(*y, rows=(), columns=(), last=()):
    return {"y": [spell(float(v)) for v in y], "rows": [*rows], "columns": [*columns], "last": [list(p) for p in last]}


def entries(M):
    return [[i, j, spell(float(v))] for i, row in enumerate(M) for j, v in enumerate(row) if v]


def problem(q, A, b, cones, P=(), sense="minimise", offset=0.0):
    cones = [[kind, size, None if a is None else spell(a)] for kind, size, a in cones]
    vectors = {name: [spell(float(x)) for x in v] for name, v in (("q", q), ("b", b))}
    return {"sense": sense, "offset": spell(offset), "P": entries(P), "A": entries(A), "cones": cones, **vectors}


def proof(stated, *claims):
    return json.dumps({"format": CONIC, "problem": stated, "claims": list(claims)})


def bound(says, value, at):
    return {"says": says, "bound": text(Fraction(value)), "point": at}


def proves(file, **options):
    try:
        check(file.encode(), **options)
    except NotProvedError:
        return False
    return True


def only_just(stated, says, value, at):
    """True where this bound is proved, and none that says more; with flint and without."""
    more = Fraction(value) + (TINY if says == "lower" else -TINY)
    flints = (True, False)
    holds = [proves(proof(stated, bound(says, value, at)), with_flint=flint) for flint in flints]
    return all(holds) and not any(proves(proof(stated, bound(says, more, at)), with_flint=flint) for flint in flints)


def cone(kind, size, rows, a=None, more=()):
    """minimise s_0 over s in a cone, s_1 = ..., given by ``more``: the multipliers are the cone's dual."""
    k = len(more)
    A = [
        *([float(-(i == j)) for j in range(rows)] for i in range(rows)),
        *([float(j == i) for j in range(rows)] for i, _ in more),
    ]
    return problem(
        [1.0, *[0.0] * (rows - 1)],
        A[rows:] + A[:rows],
        [v for _, v in more] + [0.0] * rows,
        [("zero", k, None), (kind, size, a)] if k else [(kind, size, a)],
    )


# ---- what holds, to the last digit -----------------------------------------------------------------------------------
LP = problem([1.0, 2.0], [[-1.0, -1.0], [-1.0, 0.0], [0.0, -1.0]], [-1.0, 0.0, 0.0], [("nonneg", 3, None)])
QP = problem([-1.0], [[1.0]], [0.25], [("nonneg", 1, None)], P=[[1.0]])


def test_a_linear_programme():
    assert only_just(LP, "upper", 1, point(1, 0, 0, 1, 0))
    assert only_just(LP, "lower", 1, point(1, 0, 1, 0, 0))
    assert only_just(LP, "upper", 3, point(1, 1, 1, 1, 1))


def test_a_quadratic_programme():
    """x^2/2 - x over x <= 1/4: x = 1/4, z = 3/4."""
    assert only_just(QP, "upper", Fraction(-7, 32), point(0.25, 0))
    assert only_just(QP, "lower", Fraction(-7, 32), point(0.75, 0.25))
    assert only_just(QP, "lower", Fraction(-1, 2), point(0, 1))


def test_offsets_and_maxima():
    for stated in (LP | {"offset": "3"}, LP | {"offset": "3", "sense": "maximise"}):
        least = stated["sense"] == "minimise"
        ends = ("upper", "lower") if least else ("lower", "upper")
        value = 4 if least else -4
        assert only_just(stated, ends[0], value, point(1, 0, 0, 1, 0))
        assert only_just(stated, ends[1], value, point(1, 0, 1, 0, 0))


def test_what_is_computed_again():
    """Doubles near 1/3, from which the checker goes to it; by a system, and one after another."""
    thirds = problem([1.0, 1.0], [[3.0, 0.0], [1.0, -1.0]], [1.0, 0.0], [("zero", 2, None)])
    near = [0.333, 0.334, 0, 0]
    for how in (
        {"rows": [0, 1], "columns": [0, 1]},
        {"last": [(0, 0), (1, 1)]},
        {"rows": [0], "columns": [0], "last": [(1, 1)]},
    ):
        assert only_just(thirds, "upper", Fraction(2, 3), point(*near, **how))
    for how in (
        {"rows": [1], "columns": [1]},
        {"last": [(1, 1), (0, 0)]},
        {"rows": [0, 0], "columns": [0, 1]},
        {"last": [(0, 1)]},
    ):
        assert not proves(proof(thirds, bound("upper", 1, point(*near, **how))))
        assert not proves(proof(thirds, bound("upper", 1, point(*near, **how))), with_flint=False)


def test_second_order_cones():
    """|(3, 4)| <= t: 5, and its multiplier (1, -3/5, -4/5)."""
    stated = cone("soc", 3, 3, more=[(1, 3.0), (2, 4.0)])
    assert only_just(stated, "upper", 5, point(5, 3, 4, 0, 0, 5, 3, 4))
    assert not proves(proof(stated, bound("upper", 5, point(5 - 2**-40, 3, 4, 0, 0, 5 - 2**-40, 3, 4))))
    assert not proves(proof(stated, bound("upper", 5, point(-5, 3, 4, 0, 0, -5, 3, 4))))
    at = point(-0.5, -0.75, 1, -0.5, -0.75, *[0] * 3)
    assert only_just(stated, "lower", 4.5, at)
    assert not proves(proof(stated, bound("lower", 4.5, point(-0.75, -0.75, 1, -0.75, -0.75, *[0] * 3))))


def test_matrices():
    """[[t, 3], [3, 9]] is semidefinite from t = 1 on; the entry off the diagonal stands times a number near 2^0.5."""
    root = 2**0.5
    stated = cone("psd", 2, 3, more=[(1, 3.0 * root), (2, 9.0)])
    t = 1 + 2.0**-45
    assert proves(proof(stated, bound("upper", t, point(t, 3 * root, 9, 0, 0, t, 3 * root, 9))))
    for t in (1.0, 1 - 2.0**-45, -1.0):
        assert not proves(proof(stated, bound("upper", 2, point(t, 3 * root, 9, 0, 0, t, 3 * root, 9))))
    zero = cone("psd", 2, 3, more=[(1, 0.0), (2, 0.0)])
    assert only_just(zero, "upper", 0, point(*[0] * 8))
    assert not proves(proof(zero, bound("upper", 0, point(-1, 0, 0, 0, 0, -1, 0, 0))))
    beside = cone("psd", 2, 3, more=[(1, 1.0), (2, 0.0)])
    assert not proves(proof(beside, bound("upper", 9, point(9, 1, 0, 0, 0, 9, 1, 0))))
    three = cone("psd", 3, 6, more=[(1, 0.0), (2, 1.0), (3, 0.0), (4, 0.9 * root), (5, 1.0)])
    assert proves(
        proof(three, bound("upper", 0, point(0, 0, 1, 0, 0.9 * root, 1, *[0] * 5, 0, 0, 1, 0, 0.9 * root, 1)))
    )
    three = cone("psd", 3, 6, more=[(1, 0.0), (2, 1.0), (3, 0.0), (4, 1.1 * root), (5, 1.0)])
    assert not proves(
        proof(three, bound("upper", 0, point(0, 0, 1, 0, 1.1 * root, 1, *[0] * 5, 0, 0, 1, 0, 1.1 * root, 1)))
    )


@pytest.mark.parametrize("up", [True, False])
def test_exponential_cones(up):
    """y exp(x / y) <= z at (-t, 2, 3): -t <= 2 log(3/2); its dual -u exp(v / u) <= e w."""
    stated = cone("exp", 3, 3, more=[(1, 2.0), (2, 3.0)])
    edge = 2 * math.log(1.5)
    for x, holds in ((edge * (1 - 2**-40), True), (edge * (1 + 2**-40), False)):
        assert proves(proof(stated, bound("upper", 1, point(x, 2, 3, 0, 0, x, 2, 3))), with_flint=up) is holds
    for y in ((1, 0, 0), (0, 0, -1), (-1, -1, 1), (-1, 0, -1), (-1, 1, -1)):
        other = cone("exp", 3, 3, more=[(1, float(y[1])), (2, float(y[2]))])
        assert not proves(proof(other, bound("upper", 1, point(*y, 0, 0, *y))), with_flint=up)
    limit = cone("exp", 3, 3, more=[(1, 0.0), (2, 1.0)])
    assert only_just(limit, "upper", -7, point(-7, 0, 1, 0, 0, -7, 0, 1))
    dual = problem([2.0, -1.0, 3.0], [[-1.0, 0, 0], [0, -1.0, 0], [0, 0, -1.0]], [0.0] * 3, [("exp", 3, None)])
    edge = -2.0 * (1 + math.log(1.5))  # u = -2, w = 3, v >= edge
    for v, holds in ((edge + 2**-40, True), (edge - 2**-40, False)):
        some = dual | {"q": [spell(-2.0), spell(v), "3"]}
        assert proves(proof(some, bound("lower", 0, point(-2, v, 3, 0, 0, 0))), with_flint=up) is holds
    for z, holds in (
        ((0, 1, 1), True),
        ((0, -1, 1), False),
        ((0, 1, -1), False),
        ((1, 1, 1), False),
        ((-1, 9, 0), False),
    ):
        some = dual | {"q": [spell(float(v)) for v in z]}
        assert proves(proof(some, bound("lower", 0, point(*z, 0, 0, 0))), with_flint=up) is holds


def test_power_cones():
    """x^a y^(1-a) >= |z|, a = 1/4: x >= z^4 / y^3."""
    for z, holds in ((2 - 2**-40, True), (2 + 2**-40, False), (-2 + 2**-40, True), (-2 - 2**-40, False), (0.0, True)):
        stated = cone("pow", 3, 3, 0.25, more=[(1, 2.0), (2, z)])
        assert proves(proof(stated, bound("upper", 2, point(2, 2, z, 0, 0, 2, 2, z)))) is holds
    for y, holds in (
        ((1, 1, 1), True),
        ((0.5, 0.5, 0.5 - 2**-40), True),
        ((0, 2, 0), True),
        ((0, 2, 1), False),
        ((-1, 2, 0), False),
        ((1, -1, 0), False),
        ((1, 0, 0), True),
    ):
        stated = cone("pow", 3, 3, 0.25, more=[(1, float(y[1])), (2, float(y[2]))])
        assert proves(proof(stated, bound("upper", 2, point(*y, 0, 0, *y)))) is holds
    base = problem([0.0] * 3, [[-1.0, 0, 0], [0, -1.0, 0], [0, 0, -1.0]], [0.0] * 3, [("pow", 3, 0.25)])
    edge = 4**0.25 * (4 / 3) ** 0.75  # (u / a)^a (v / (1 - a))^(1 - a) at u = v = 1
    for z, holds in ((edge - 2**-40, True), (edge + 2**-40, False), (-edge + 2**-40, True)):
        some = base | {"q": ["1", "1", spell(z)]}
        assert proves(proof(some, bound("lower", 0, point(1, 1, z, 0, 0, 0)))) is holds


def test_curvature_is_judged_where_a_lower_bound_rests_on_it():
    for P, holds in (
        ([[1, 2], [2, 4]], True),
        ([[1, 2], [2, 3.999]], False),
        ([[0, 1], [1, 5]], False),
        ([[-1, 0], [0, 1]], False),
    ):
        stated = problem([0.0, 0.0], [[1.0, 0.0]], [1.0], [("nonneg", 1, None)], P=P)
        assert proves(proof(stated, bound("lower", 0, point(0, 0, 0)))) is holds
        assert proves(proof(stated, bound("upper", 0, point(0, 0, 1))))


def test_no_point_and_no_bound():
    none = problem([0.0], [[1.0], [-1.0]], [1.0, -2.0], [("nonneg", 2, None)])
    assert proves(proof(none, {"says": "infeasible", "point": point(1, 1)}))
    for z in ((1, 2), (-1, -1), (0, 0)):
        assert not proves(proof(none, {"says": "infeasible", "point": point(*z)}))
    assert not proves(proof(none | {"b": ["1", "1p1"]}, {"says": "infeasible", "point": point(-1, -1)}))
    some = none | {"b": ["1", "-1"]}
    assert not proves(proof(some, {"says": "infeasible", "point": point(1, 1)}))
    falls = problem([-1.0, 0.0], [[-1.0, 0.0]], [0.0], [("nonneg", 1, None)], P=[[0, 0], [0, 1]])
    along = {"says": "unbounded", "point": point(0, 0, 0), "direction": point(1, 0, 1)}
    assert "no lower bound" in check(proof(falls, along).encode()).said[0]
    assert "no upper bound" in check(proof(falls | {"sense": "maximise"}, along).encode()).said[0]
    for change in (
        {"point": point(-1, 0, -1)},
        {"direction": point(-1, 0, -1)},
        {"direction": point(1, 1, 1)},
        {"direction": point(0, 0, 0)},
    ):
        assert not proves(proof(falls, along | change))
    assert not proves(proof(falls | {"q": ["1", "0"]}, along))


# ---- what is no proof ------------------------------------------------------------------------------------------------
def test_equations_and_signs():
    for at in (point(1, 0, 0, 1, 2**-60), point(1, -1, -1, 1, -1), point(0.5, 0, -0.5, 0.5, 0), point(1, 0, 0, 1)):
        assert not proves(proof(LP, bound("upper", 9, at)))
    for at in (point(1, 0, 1 + 2**-40, 0, 0), point(2, -1, 0, 0, 0), point(1, 2**-60, 1, 0, 0)):
        assert not proves(proof(LP, bound("lower", -9, at)))
    equal = problem([1.0], [[1.0]], [1.0], [("zero", 1, None)])
    assert only_just(equal, "lower", 1, point(-1, 0))
    assert not proves(proof(equal, bound("upper", 3, point(0, 1))))


CHANGES = {
    "sense": ["maximize", None, 1],
    "offset": ["1.0", 0, None],
    "P": [[[0, 1, "1"]], [[0, 0, "0"]], [[2, 0, "1"]], [[0, 1, "1"], [1, 0, "1p1"]]],
    "q": [["1"], ["1", "2", "3"]],
    "A": [
        [[0, 0, "-1"], [0, 0, "-1"]],
        [[1, 0, "-1"], [0, 0, "-1"]],
        [[0, 1, "-1"], [0, 0, "-1"]],
        [[0, 0]],
        [[3, 0, "1"]],
        [[0, 2, "1"]],
        [[-1, 0, "1"]],
        [[0, -1, "1"]],
    ],
    "b": [["-1", "0"], ["-1", "0", "0", "0"]],
    "cones": [
        [["nonneg", 2, None]],
        [["nonneg", 4, None]],
        [["nonneg", 3, "1"]],
        [["linear", 3, None]],
        [["nonneg", 3, None], ["nonneg", 0, None]],
        [["nonneg", -3, None]],
        [["nonneg", 3]],
        [["exp", 3, "1p-1"]],
        [["pow", 3, None]],
        [["pow", 3, "1"]],
        [["pow", 3, "0"]],
        [["pow", 3, "-1"]],
        [["nonneg", 1, None], ["exp", 2, None]],
    ],
}


def test_entries_stand_once_and_in_order():
    """Where what is left is the same matrix, that is what is looked at."""
    claim, A = bound("upper", 9, point(1, 0, 0, 1, 0)), LP["A"]
    last = [[-1, 1, "-1"], *A[:3]]
    for other in (
        [A[0], *A],
        [A[1], A[0], *A[2:]],
        [*A, A[3]],
        last,
        [[0, -1, "-1"], A[0], *A[2:]],
        [*A, [2, 0, "0"]],
    ):
        assert not proves(proof(LP | {"A": other}, claim))
    same = LP | {"P": [[0, 0, "1"], [0, 0, "1"]]}
    assert not proves(proof(same, claim))


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in CHANGES.items() for value in values])
def test_the_statement_is_read_strictly(name, value):
    for claim in (bound("upper", 9, point(1, 0, 0, 1, 0)), bound("upper", 9, point(1, 0, 1, 0, 0))):
        assert not proves(proof(LP | {name: value}, claim))
    assert proves(proof(LP, bound("upper", 9, point(1, 0, 0, 1, 0))))


def places(tree, way=()):
    """Of all that stands in a file, where it stands."""
    for key in tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield (*way, key)
        yield from places(tree[key], (*way, key))


def refusal(file):
    try:
        check(file.encode())
    except NotProvedError as error:
        return str(error)
    return "none"


@pytest.mark.parametrize("value", [None, 7, "zz", [], {}])
def test_refusals_are_sentences(value):
    """Of any place with something else; a name of Python's errors tells nobody what to do."""
    at = point(1, 0, 0, 1, 0, last=[[0, 2], [1, 3]])
    for whole in (json.loads(proof(LP, bound("upper", 9, at))), chain("L1"), as_rows(chain("L2"))):
        for way in places(whole):
            assert "Error" not in refusal(json.dumps(changed(whole, *way, value))), way


@pytest.mark.parametrize(("pair", "message"), [([7, 2], "7 with the number 2"), ([0, 4], "0 with the number 4")])
def test_what_follows_from_no_equation_is_refused(pair, message):
    with pytest.raises(NotProvedError, match=f"claim 0, upper: last: 0: no equation {message}"):
        check(proof(LP, bound("upper", 9, point(1, 0, 0, 1, 0, last=[pair]))).encode())


def test_claims_are_read_strictly():
    good = bound("upper", 9, point(1, 0, 0, 1, 0))
    for claims in (
        [],
        [good | {"more": 1}],
        [good | {"says": "inside"}],
        [good | {"says": "primal"}],
        [{"says": "upper"}],
        [1],
    ):
        assert not proves(proof(LP, *claims))
    stated = json.loads(proof(LP, good))
    for change in ({"format": FORMAT}, {"format": "graphreg-conic-2"}, {"more": []}, {"problem": []}):
        assert not proves(json.dumps(stated | change))


def test_what_is_said():
    both = [bound("lower", Fraction(1, 3), point(1, 0, 1, 0, 0)), bound("upper", 1, point(1, 0, 0, 1, 0))]
    found = check(proof(LP, *both).encode())
    assert (3 * found.low, found.high, found.within) == (1, 1, None)
    assert not proves(proof(LP, *both), seconds=-1.0)
    assert found.said == ["0.3333333333333333 <= the optimal value", "the optimal value <= 1.0"]
    assert "minimise, 2 columns, 3 rows in 1 cones: nonneg 3" in str(found)
    assert 3 * found.relative_gap() == 2
    assert check(
        proof(LP | {"sense": "maximise"}, bound("upper", Fraction(-1, 3), both[0]["point"])).encode()
    ).said == ["the optimal value <= -0.3333333333333333"]
    assert str(check(proof(LP, both[0]).encode())).endswith("0.3333333333333333 <= the optimal value")
    assert str(check(proof(LP, both[1]).encode())).endswith("the optimal value <= 1.0")
    assert check(proof(LP, both[0]).encode()).relative_gap() > 2**1000
    none = problem([0.0], [[1.0], [-1.0]], [1.0, -2.0], [("nonneg", 2, None)])
    assert check(proof(none, {"says": "infeasible", "point": point(1, 1)}).encode()).relative_gap() == 0
    assert STATE.work > WORK


def test_the_hash_is_of_all_that_is_stated():
    good = bound("upper", 9, point(1, 0, 0, 1, 0))
    changed = [LP | {"offset": "1"}, LP | {"q": ["1", "1"]}, LP | {"cones": [["nonneg", 1, None], ["nonneg", 2, None]]}]
    hashes = [check(proof(each, good).encode()).hash for each in (LP, *changed)]
    assert len(set(hashes)) == len(hashes)
    assert check(proof(dict(sorted(LP.items())), good | {"bound": "a"}).encode()).hash == hashes[0]


# ---- files of certificates -------------------------------------------------------------------------------------------
def problems():
    x, X = cp.Variable(3), cp.Variable((2, 2), PSD=True)
    yield cp.Problem(cp.Minimize(cp.sum_squares(x - 0.3) + cp.norm1(x)), [cp.sum(x) == 1, x <= 0.9])
    yield cp.Problem(cp.Maximize(cp.sum(cp.log(x)) - cp.norm(x)), [cp.sum(x) <= 2])
    yield cp.Problem(cp.Minimize(cp.trace(X) + cp.pnorm(x, 3)), [X[0, 1] == 0.7, x[0] >= 0.1])
    yield cp.Problem(cp.Minimize(cp.sum(x)), [cp.norm(x) <= 1, x[0] >= 2])
    yield cp.Problem(cp.Minimize(x[0]), [x[1] == 1])
    yield cp.Problem(cp.Minimize(cp.norm(x)), [x[0] + x[1] == 0.1, x[1] + x[2] == 0.2, x[0] + 2 * x[1] + x[2] == 0.3])


@pytest.mark.parametrize("which", range(6))
def test_certificates_are_proved(which, tmp_path):
    found = gr.certify(list(problems())[which])
    path = tmp_path / "proof.json"
    proved = found.prove(path)
    assert found.hash == proved.hash
    assert found.hash != gr.certify(list(problems())[which - 1]).hash
    for flint in (True, False):
        checked = check(path.read_bytes(), with_flint=flint)
        assert checked.hash == proved.hash
        assert tuple(checked.said) == proved.claims
    if found.status == "certified":
        size = 1e-9 * (1 + abs(found.upper))
        stored = found.sign * (upper_value(found.programme, found.evidence["primal"]) + found.offset)
        low, high = (found.lower, stored) if found.sign > 0 else (stored, found.upper)
        assert low - size <= proved.lower <= proved.upper <= high + size
        assert low - size <= found.lower <= found.upper <= high + size  # the formula's own value may be the better one
    else:
        assert proved.lower is proved.upper is None
    done = CliRunner().invoke(main, ["verify", str(path), "--gap", "1e-5"])
    assert (done.exit_code, done.output.split()[0]) == (0, "PROVED")


def test_other_files_are_not_replaced(tmp_path):
    found = gr.certify(next(problems()))
    path = tmp_path / "data.json"
    path.write_text("{}")
    with pytest.raises(ProofError):
        found.prove(path)
    found.prove(path, force=True)
    found.prove(path)


@pytest.mark.skipif(NODE is None, reason="node is not on the PATH")
def test_two_checkers_judge_alike(tmp_path):
    files = []
    for each in problems():
        gr.certify(each).prove(tmp_path / "proof.json", force=True)
        files.append((tmp_path / "proof.json").read_text())
    data = [json.loads(file) for file in files]
    files += [json.dumps(each | {"claims": []}) for each in data]
    for each in data:  # another number of a point, or of the problem
        for place, change in (("problem", "b"), ("problem", "q"), ("claims", "y")):
            other = json.loads(json.dumps(each))
            numbers = other["problem"][change] if place == "problem" else other["claims"][0]["point"]["y"]
            numbers[-1] = "3p-4"
            files.append(json.dumps(other))
    good = bound("upper", 9, point(1, 0, 0, 1, 0))
    files += [proof(LP | {name: value}, good) for name, values in CHANGES.items() for value in values]
    done = subprocess.run(
        [NODE, "-e", JUDGE, EXAMPLES / "verify.js"], input=json.dumps(files), capture_output=True, text=True, check=True
    )
    second = json.loads(done.stdout)
    first = [[check(f.encode()).hash, check(f.encode()).said] if proves(f) else None for f in files]
    assert second == first
    assert sum(each is not None for each in first) >= 6
