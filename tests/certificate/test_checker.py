"""The words of the checker of proofs: no false claim, no two that contradict each other, and how the program ends."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from contextlib import suppress
from fractions import Fraction
from itertools import combinations

import pytest
from proofs_by_hand import BOX, by_hand, mixed, printed, with_rows

from benchmarks import honest
from benchmarks.forged_claims import accepted, forged
from benchmarks.honest import (
    LEFT,
    NORMS,
    SPLIT,
    as_rows,
    bounds,
    chain,
    changed,
    document,
    edges,
    of_edge,
    samples,
    separable,
    text,
    texts,
)
from graphreg import verify
from graphreg.verify import NotProvedError, check

F = Fraction


def checked(document, **options):
    return check(json.dumps(document).encode(), **options)


# ---- forged files ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("with_flint", [True, False])
def test_no_forged_file_is_accepted(with_flint):
    files = list(forged())[:: 2 if with_flint else 5]
    assert len(files) > 120
    assert [family for family, file, name in files if accepted(file, name, with_flint)] == []


def test_what_is_forged_was_a_proof():
    """And is one of the same bounds where its edges are written as rows, which is another problem by its name."""
    for made in by_hand():
        edges, rows = checked(made), checked(as_rows(made))
        assert (edges.lower, edges.upper, len(edges.said)) == (rows.lower, rows.upper, len(rows.said))
        assert edges.hash != rows.hash


def test_a_model_has_the_name_that_it_always_had():
    """The names of problems are kept by those who ask for proofs: they do not change while the format's name stays."""
    names = [checked(made).hash for made in by_hand() if "gamma" not in str(made)]  # the loss that is younger
    names.append(checked(mixed(random.Random(0))[0]).hash)
    assert len(names) == 33
    assert hashlib.sha256("".join(names).encode()).hexdigest()[:16] == "557e9baa90c7929d"


def of_rows():
    """A model of rows alone: penalties, and losses of one number of each row, and of four."""
    model = as_rows(with_rows(random.Random(3))[0])["model"]
    cells = [[1, 2, "1"], [0, 1, "3"]], [], [[2, 0, "1"]], [[0, 0, "-1"]], [[1, 1, "1"]], [[0, 2, "1p5"]]
    rows = {1: [[each] for each in cells], 4: [list(cells[:4]), list(cells[2:])]}
    y = [[[f"{2 * c + 1:x}" for c in range(k)] for _ in rows[k]] for k in rows]
    blocks = [samples("mean", each, [0] * len(each), k, offset=each[::-1]) for k, each in zip(rows, y, strict=True)]
    for k, block in zip(rows, blocks, strict=True):
        del block["node"], block["x"]
        block |= {"k": k, "rows": rows[k]}
    return json.loads(json.dumps(changed(model, "samples", blocks)))  # no list is another


def test_the_name_of_rows_has_all_that_they_are_made_of():
    model = of_rows()
    names = [verify.Model(model).hash()]
    for what in ("samples", "edges"):
        for b, block in enumerate(model[what]):
            for key in ("weight", "center", "y", "offset", "rows"):
                for path in places(block.get(key)):
                    number = looked_up(block[key], path)
                    other = changed(block, key, *path, "7p-3" if isinstance(number, str) else (number + 1) % 3)
                    with suppress(NotProvedError):  # a cell that then stands twice
                        names.append(verify.Model(changed(model, what, b, other)).hash())
    assert len(names) > 150
    assert len(set(names)) == len(names)


def test_the_name_of_rows_has_no_order_of_nodes_rows_and_cells():
    model, turned = of_rows(), of_rows()
    turned["labels"].reverse()
    for block in (*turned["samples"], *turned["edges"]):
        block["rows"] = [[[[2 - i, j, x] for i, j, x in number[::-1]] for number in row] for row in block["rows"][::-1]]
        for key in ("weight", "center", "y", "offset"):
            if block.get(key):
                block[key] = block[key][::-1]
    assert verify.Model(turned).hash() == verify.Model(model).hash()


def places(tree):
    """The ways to all numbers of nested lists."""
    for k, each in enumerate(tree if isinstance(tree, list) else ()):
        yield from ([k, *rest] for rest in places(each)) if isinstance(each, list) else [[k]]


def looked_up(tree, path):
    for k in path:
        tree = tree[k]
    return tree


@pytest.mark.parametrize("kind", NORMS)
def test_what_is_said_of_rows(kind):
    """With a centre and without, by as many names as fit."""
    made = as_rows(chain(kind))
    claims = [claim | {"says": "held"} if claim["says"] == "fused" else claim for claim in made["claims"]]
    said = [
        "row 0 of edges[0] ('n0' - 'n1') holds at every optimum",
        f"{kind} of row 0 of edges[0] ('n0' - 'n1') is at most 1.183052186166775e-271 at every optimum",
        "row 2 of edges[0] ('n2' - 'n3') holds at every optimum",
        f"{kind} of row 2 of edges[0] ('n2' - 'n3') is at most 1.183052186166775e-271 at every optimum",
        "row 1 of edges[0] ('n1' - 'n2') holds at no optimum",
    ]
    assert checked(made | {"claims": claims}).said[1:] == said
    moved = changed(made | {"claims": claims}, "model", "edges", 0, "center", [["0", "0"]] * 3)
    assert checked(moved).said[1:] == said
    long = changed(made | {"claims": claims}, "model", "labels", ["n" * 60, "m" * 60, "b", "c"])
    assert checked(long).said[1] == f"row 0 of edges[0] ('{'n' * 60}' - '{'m' * 33}) holds at every optimum"


# ---- P and Q of whole problems ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("draw", "terms"), [(mixed, 12), (with_rows, 18)])
def test_bounds_are_those_by_hand(draw, terms):
    rng, one = random.Random(1), F(1, 1 << verify.UNIT)
    for k in range(20):
        made, P, Q = draw(rng)
        found = checked(made, with_flint=k % 2 == 0)
        assert P <= found.upper * one <= P + terms * one
        assert Q - terms * one <= found.lower * one <= Q
        point = found.model.residuals(found.w, found.point) * one
        assert P - Q <= point <= P - Q + terms * one


# ---- pairs of claims on exact optima ---------------------------------------------------------------------------------
def optimum(rng):
    """A chain of which the optimum is known: kind, document, and the differences along its edges."""
    kind, n = rng.choice(list(NORMS)), 4
    c = {"L1": F(1), "L2": F(5), "LInf": F(2)}[kind]
    w = [[F(rng.randint(-2, 2)), F(rng.randint(-2, 2))]]
    flows = []
    for _ in range(n - 1):
        size = rng.choice([0, 0, 0, F(1), F(1, 1 << 30), F(9, 2)])
        way = rng.choice([(3, 4), (-4, 3), (0, 5), (-5, 0)])
        z = [size * x for x in way]
        w.append([p - q for p, q in zip(w[-1], z, strict=True)])
        flows.append(belonging(kind, c, z, way, rng.choice([F(1), F(1), F(1, 2), 1 - F(1, 1 << 30)])))
    return (
        kind,
        honest.exact(kind, w, flows, c),
        [[p - q for p, q in zip(*w[e : e + 2], strict=True)] for e in range(n - 1)],
    )


def belonging(kind, c, z, way, share):
    """A flow that belongs to z: where that is 0, at this share of the capacity."""
    unit = {"L1": [F((x > 0) - (x < 0)) for x in way], "L2": [F(x, 5) for x in way]}
    unit["LInf"] = [F((x > 0) - (x < 0)) * (abs(x) == max(map(abs, way))) for x in way]
    share = share if not any(z) else F(1)
    if kind == "L1" and share == 1:  # where an entry of z is 0 its flow may be anything
        return [c * x if x else c / 2 for x in unit["L1"]]
    return [c * share * x for x in unit[kind]]


def claims_on(made, e, size, rng):
    """Claims on an edge, true and false ones."""
    for r in (size, 2 * size, size / 2, F(1, 1 << 80), F(1, 10**9), F(rng.randint(1, 99), 4)):
        yield of_edge("near", e, distance=text(r))
    yield of_edge("fused", e)
    flows = [[F(int(v.numerator), int(v.denominator)) for v in map(verify.number, u)] for u in made["dual"]["flows"][0]]
    for by in (F(1), F(5, 4), 1 + F(1, 1 << 40)):
        beyond = [[by * x for x in u] if k == e else u for k, u in enumerate(flows)]
        dual = {"flows": [texts(beyond)], "prices": [texts(honest.prices_of(beyond, 2))]}
        yield of_edge("split", e, dual=dual)


def holds(claim, size):
    if claim["says"] == "near":
        r = verify.number(claim["distance"])
        return size <= F(int(r.numerator), int(r.denominator))
    return (size == 0) == (claim["says"] == "fused")


def contradict(one, other):
    """True where no edge can have both: split and fused."""
    return one["edge"] == other["edge"] and {one["says"], other["says"]} == {"split", "fused"}


def test_no_two_claims_of_a_file_contradict_each_other_or_the_optimum():
    """Near, fused and split of the same edge, where the gap is 0 and flows are at, near and inside their capacity."""
    rng, proved = random.Random(0), {"near": 0, "fused": 0, "split": 0}
    verify.begin()
    for _ in range(40):
        kind, made, differences = optimum(rng)
        good = []
        for e, z in enumerate(differences):
            size = honest.norm(kind, z)
            for claim in claims_on(made, e, size, rng):
                if accepted(json.dumps(made | {"claims": [made["claims"][0], claim]}), None):
                    assert holds(claim, size), (kind, claim, size)
                    good.append(claim)
                    proved[claim["says"]] += 1
        for pair in combinations(good, 2):
            assert not contradict(*pair)
        if len(good) > 1:
            checked(made | {"claims": [made["claims"][0], *rng.sample(good, 2)]})
    assert min(proved.values()) > 20, proved


@pytest.mark.parametrize("kind", NORMS)
def test_a_flow_is_inside_its_capacity_by_a_share(kind):
    """The gap is 0 and the ends are equal: claims take slack of 2^-64 of the capacity, but no less."""
    way = {"L1": [F(1), F(-1)], "L2": [F(3, 5), F(4, 5)], "LInf": [F(1, 4), F(-3, 4)]}[kind]
    c = F(5)
    for claim in (of_edge("fused", 0), of_edge("near", 0, distance="1p-900")):
        for share, proved in ((1 - F(1, 1 << 64), True), (1 - F(1, 1 << 65), False), (F(1), False)):
            u = [c * share * x for x in way]
            w = [[2 * c * x - v for x, v in zip(way, u, strict=True)]] * 2  # of which all targets are doubles
            made = honest.exact(kind, w, [u], c)
            made["claims"].append(claim)
            assert accepted(json.dumps(made), None) == proved


def test_claims_are_of_the_block_that_they_name():
    """The same edges in two blocks: in the first the flow is at its capacity, in the second it has slack."""
    made = chain("L1")
    split, tied = made["model"]["edges"][0], changed(made["model"]["edges"][0], "weight", ["1p1"] * 3)
    none = [["0", "0"]] * 3
    made = changed(made, "model", "edges", [split, tied]) | {"w": [["1", "1p1"]] * 2 + [["1p2", "3p1"]] * 2}
    made = changed(made, "dual", "flows", [*made["dual"]["flows"], none])
    loose = bounds(F(-100), F(100))
    for block, proved in ((0, False), (1, True), (2, False), (-1, False)):
        claim = of_edge("near", 1, distance="1p4", block=block)
        assert accepted(json.dumps(made | {"claims": [loose, claim]}), None) == proved


def test_slack_is_what_a_distance_takes():
    """The gap is 4, as w is off the optimum: (c - |u|) phi <= 4, so phi <= 4 / (5/4 - 1/4)."""
    made = honest.exact("L1", [[F(1)], [F(1)]], [[F(1, 4)]], F(5, 4))
    made = made | {"w": texts([[F(3)], [F(1)]])}  # off by 2, which costs 2^2 / 2 + 2 (5/4 - 1/4)
    made["claims"] = [bounds(F(-100), F(100))]
    said = checked(made | {"claims": [*made["claims"], of_edge("near", 0, distance="1p2")]}).said
    assert said[1] == "L1 of the difference 'n0' - 'n1' is at most 4.0 at every optimum"
    for r in (4 - F(1, 1 << 190), F(1), F(16, 5)):
        with pytest.raises(NotProvedError, match=r"claim 1, near: the .* for this distance"):
            checked(made | {"claims": [*made["claims"], of_edge("near", 0, distance=text(r))]})


def test_bounds_are_claimed_no_better_than_they_are():
    """Each end at its value, then a unit beyond it."""
    rng, one = random.Random(7), F(1, 1 << verify.UNIT)
    for _ in range(10):
        made, *_ = mixed(rng)
        found = checked(made)
        low, high = found.lower * one, found.upper * one
        assert low < high
        assert checked(made | {"claims": [bounds(low, high)]}, with_flint=False).high == high
        for wrong in (bounds(low + one, high), bounds(low, high - one), bounds(low, low)):
            with pytest.raises(NotProvedError, match="claim 0, bounds: what is proved is"):
                checked(made | {"claims": [wrong]})


@pytest.mark.parametrize("kind", NORMS)
def test_a_gap_beyond_the_capacity_proves_no_distance(kind):
    """c - gap / r is then below 0, and its square is not."""
    w, c = [[F(1), F(2)], [F(1), F(2)]], NORMS[kind][0]
    made = honest.exact(kind, w, [[F(0), F(0)]], c)
    made = made | {"w": texts([[F(9), F(2)], w[1]]), "claims": [bounds(F(-1000), F(1000))]}
    gap = checked(made, with_flint=False).gap
    assert checked(made | {"claims": [*made["claims"], of_edge("near", 0, distance=text(gap / c * 2))]}).said
    for r in (gap / c * F(99, 100), gap / c / 2, gap / c / 100, F(1, 1 << 90)):
        with pytest.raises(NotProvedError, match="the gap is too large for this distance"):
            checked(made | {"claims": [*made["claims"], of_edge("near", 0, distance=text(r))]})


def test_a_split_is_of_the_block_that_it_names():
    """Where the split edge stands once more in a block before its own, tightly: there is no freeing that."""
    made = chain("L1")
    own, tied = made["model"]["edges"][0], changed(made["model"]["edges"][0], "weight", ["1p-20"] * 3)
    none = [["0", "0"]] * 3
    made = changed(made, "model", "edges", [tied, own])
    made = changed(made, "dual", "flows", [none, *made["dual"]["flows"]]) | {"w": chain("L1")["w"]}
    (claim,) = (each for each in chain("L1")["claims"] if each["says"] == "split")
    dual = {"flows": [none, *claim["dual"]["flows"]], "prices": claim["dual"]["prices"]}
    for block, proved in ((0, False), (1, True), (2, False), (-1, False)):
        claims = [bounds(F(-1000), F(1000)), of_edge("split", SPLIT, block=block, dual=dual)]
        assert accepted(json.dumps(made | {"claims": claims}), None) == proved, block


@pytest.mark.parametrize("block", [-1, 1])
def test_a_claim_names_a_block_of_edges(block):
    claims = [bounds(F(-1000), F(1000)), of_edge("near", 0, distance="1p9", block=block)]
    with pytest.raises(NotProvedError, match="no integer in"):
        checked(chain("L1") | {"claims": claims})


@pytest.mark.parametrize("other", [{"penalty": "SquaredL2"}, {"center": [["0", "0"]] * 3}])
@pytest.mark.parametrize("says", ["near", "fused", "split"])
def test_claims_are_of_norms_without_a_centre(says, other):
    made = chain("L2")
    model = changed(made["model"], "edges", 0, made["model"]["edges"][0] | {"head": [-1] * 3} | other)
    (claim, *_) = (each for each in made["claims"] if each["says"] == says)
    zero = [["0", "0"]]
    made = made | {"model": model, "dual": {"flows": [zero * 3], "prices": [zero * 4]}}
    with pytest.raises(NotProvedError, match="only norms without a centre fuse and split"):
        checked(made | {"claims": [bounds(F(-1000), F(10000)), claim]})


def test_what_a_claim_prints_is_rounded_to_the_safe_side():
    """Bounds and distances that are no doubles."""
    rng = random.Random(5)
    for _ in range(12):
        r, low, high = (F(rng.getrandbits(70) + 2**70, 3**20) for _ in range(3))
        claims = [bounds(-low, high), of_edge("near", LEFT, distance=text(r))]
        found = checked(chain("L2") | {"claims": claims})
        of_bounds, of_near = found.said
        first, *_, last = of_bounds.split(" <= ")
        assert F(first) <= -low
        assert F(last) >= high
        assert F(of_near.split("at most ")[1].split(" at every")[0]) >= r
        apart, relative = str(found).splitlines()[-1].split("at most ")[1].split(" of the larger")[0].split(" apart, ")
        assert F(apart) >= high + low
        assert F(relative) >= (high + low) / max(high, low)
    for size, said in (("3p1000", "2^1001"), (BOX, "2^1000")):
        assert f"with entries up to {said}" in checked(chain("L2") | {"within": size}).said[0]


def test_the_ground_has_no_name():
    """An edge to the ground says that an end is 0, and nothing of the last node, which is not."""
    made = honest.exact("L1", [[F(0)], [F(2)]], [[F(0)]], F(1, 4))
    block = edges("L1", [(0, -1)], [0])
    made = changed(made, "model", "edges", [block]) | {"claims": [bounds(F(-9), F(9))]}
    made["claims"] += [of_edge("fused", 0), of_edge("near", 0, distance="1p-9")]
    assert [line.replace("'n0'", "it").count("'") for line in checked(made).said] == [0, 0, 0]


# ---- boxes, gaps, exit codes -----------------------------------------------------------------------------------------
def ended(tmp_path, capsys, document, *options):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(document))
    code = verify.main([str(path), *options])
    return code, capsys.readouterr().out


def test_what_holds_in_a_box_is_not_said_of_the_infimum(tmp_path, capsys):
    made = chain("L2")
    near = of_edge("near", LEFT, distance="1")
    code, said = ended(tmp_path, capsys, made | {"within": BOX, "claims": [*made["claims"], near]})
    assert code == verify.WITHIN_A_BOX == 8
    assert said.startswith("PROVED WITHIN A BOX ONLY for the model")
    of_points = [line for line in said.splitlines() if "infimum" in line or "optimum" in line]
    assert len(of_points) == 8
    assert all("among all w with entries up to 2^1000" in line or "WITHIN A BOX" in line for line in of_points)
    assert "<= infimum <=" not in said
    assert ended(tmp_path, capsys, made)[0] == 0
    assert "of any size" in str(checked(honest.separable() | {"within": BOX}))


def test_a_box_is_charged_for_what_is_left(tmp_path):
    """B |rest|, rounded up."""
    made = honest.exact("L1", [[F(1)], [F(1)]], [[F(1, 4)]], F(5, 4))
    made["claims"] = [bounds(F(-100), F(100))]
    left = changed(made, "dual", "flows", 0, 0, [text(F(1, 4) + F(3, 1 << 1002))])
    low, before = checked(left | {"within": BOX}).lower, checked(made).lower
    assert F(before - low, 1 << verify.UNIT) == pytest.approx(F(2 * 3, 4))
    with pytest.raises(NotProvedError, match="flows and prices do not balance at 'n0', 'x0': "):
        checked(left)
    tied = of_edge("near", 0, distance="1p-1")  # which the residuals alone, that leave out the charge, would prove
    assert checked(made | {"claims": [*made["claims"], tied]})
    with pytest.raises(NotProvedError, match="for this distance"):
        checked(left | {"within": BOX, "claims": [*made["claims"], tied]})
    outside = made | {"w": [["-1p1001"], ["1"]], "claims": [bounds(F(-100), F(1 << 3000))]}
    with pytest.raises(NotProvedError, match="w is not within the box"):
        checked(outside | {"within": BOX})


@pytest.mark.parametrize(
    ("claims", "gap", "code"),
    [
        ([(-4, 61)], None, 0),
        ([(-4, 61)], "1.0655737704918031", 4),
        ([(-4, 61)], "1.0655737704918034", 0),
        ([(-4, 61), (60, 64), (-70, 60)], "0", 0),
        ([(-4, 60), (60, 64)], "0", 0),
        ([(-(F(10) ** 300), 60)], "1e-6", 4),
        ([(-(F(10) ** 300), 60)], "1", 4),
        ([(-(F(10) ** 300), F(10) ** 300)], "1.9999999999999998", 4),
        ([(-(F(10) ** 300), F(10) ** 300)], "2", 0),
    ],
)
def test_bounds_may_be_no_further_apart_than_is_asked(claims, gap, code, tmp_path, capsys):
    """The best of all claimed bounds, relative to the larger; and the gap is always printed."""
    made = chain("L2") | {"claims": [bounds(F(low), F(high)) for low, high in claims]}
    found, said = ended(tmp_path, capsys, made, *([] if gap is None else ["--gap", gap]))
    assert found == code
    assert "  the bounds are at most " in said
    assert ("WIDE: " in said) == (code == 4)
    if gap == "0":
        assert "the bounds are at most 0.0 apart, 0.0 of the larger" in said


def test_small_bounds_are_as_relative_as_large_ones(tmp_path, capsys):
    """1/10 and 1/2 are 4/5 of the larger apart; 0 and 0 are not apart."""
    made = honest.exact("L1", [[F(1)], [F(1)]], [[F(1, 2)]], F(5, 4)) | {"claims": [bounds(F(1, 10), F(1, 2))]}
    assert [ended(tmp_path, capsys, made, "--gap", gap)[0] for gap in ("0.79", "0.81")] == [4, 0]
    code, said = ended(tmp_path, capsys, honest.exact("L1", [[F(0)], [F(0)]], [[F(0)]], F(1)), "--gap", "0")
    assert (code, said.splitlines()[-2]) == (0, "  the bounds are at most 0.0 apart, 0.0 of the larger")


@pytest.mark.parametrize("gap", ["nan", "-1", "inf", "small"])
def test_a_gap_is_a_number(gap, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        verify.main([str(tmp_path), "--gap", gap])
    assert ended.value.code == 2
    assert "--gap" in capsys.readouterr().err


def test_the_program_ends_with_what_it_found(tmp_path, capsys):
    made, wrong = chain("L1"), chain("L1") | {"within": "1"}
    name = checked(made).hash
    assert ended(tmp_path, capsys, made, "--model", name)[0] == 0
    assert "NOT PROVED: the proof is of another model, " + name in ended(tmp_path, capsys, made, "--model", "0" * 64)[1]
    for no_hash in (name[1:], name[1:] + "g", "river.toml", ""):
        with pytest.raises(SystemExit) as refused:
            ended(tmp_path, capsys, made, "--model", no_hash)
        assert refused.value.code == 2
        assert f"--model: no hash, 64 of 0-9 and a-f: {no_hash!r}; `graphreg hash` has" in capsys.readouterr().err
    assert ended(tmp_path, capsys, wrong)[0] == 1
    assert ended(tmp_path, capsys, {})[0] == verify.main([str(tmp_path)]) == 2
    boxed = made | {"within": BOX}
    assert ended(tmp_path, capsys, changed(boxed, "claims", 0, bounds(F(0), F(99))), "--gap", "0")[0] == 4


# ---- two checks at once ----------------------------------------------------------------------------------------------
def test_threads_do_not_share_budgets(monkeypatch):
    """One check has begun while another, without time, without work and without python-flint, begins and fails."""
    text, begun, failed, load = json.dumps(chain("L1")).encode(), threading.Event(), threading.Event(), verify.load
    found = []

    def waiting(text):
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            assert failed.wait(20)
        return load(text)

    monkeypatch.setattr(verify, "load", waiting)
    other = threading.Thread(target=lambda: found.append((check(text, with_flint=False), verify.STATE.flint)))
    other.start()
    assert begun.wait(20)
    with pytest.raises(NotProvedError, match="time is up"):
        check(text, seconds=0.0)
    failed.set()
    other.join()
    ((proof, with_flint),) = found
    assert proof.hash == check(text).hash
    assert not with_flint
    assert isinstance(proof.gap, Fraction)


# ---- what is printed -------------------------------------------------------------------------------------------------
def test_what_is_printed_is_rounded_to_the_safe_side():
    rng = random.Random(3)
    numbers = [
        F(rng.getrandbits(90) + 1, rng.getrandbits(90) + 1) * F(2) ** k for k in (0, -60, 70, 990, -990, 1200, -1200)
    ]
    numbers += [F(rng.getrandbits(40) + 1) * F(2) ** k for k in (1200, -1200, -5000, 5000)]
    numbers += [F(2) ** k for k in (-1074, 999, 1000, 1001, -1000, -2000, 2000)] + [F(1, 3), F(1, 10), F(5), F(0)]
    for x in [*numbers, *(-x for x in numbers)]:
        low, near, high = (printed(verify.shown(x, side)) for side in (-1, 0, 1))
        assert low <= x <= high
        assert high - low <= (abs(x) / (1 << 51) if max(abs(x), 1 / (abs(x) or 1)) < F(2) ** 990 else abs(x))
        assert low <= near <= high
    assert [verify.shown(s * F(2) ** k, side) for k in (1000, -1001) for s in (1, -1) for side in (-1, 1)] == [
        "2^1000", "2^1000", "-2^1000", "-2^1000", "2^-1001", "2^-1001", "-2^-1001", "-2^-1001"
    ]  # fmt: skip


@pytest.mark.parametrize("other", [{"penalty": "NonNegative"}, {"penalty": "L1", "center": [["0"], ["0"]]}])
def test_one_edge_to_the_ground_excuses_no_other_of_its_block(other):
    block = edges("L1", [(0, -1), (0, 1)], [0]) | other
    zeros = [[F(0)], [F(0)]]
    made = document(2, 1, ([samples("squared", ["1", "1"], [0, 1])], [block]), zeros, [zeros], [zeros])
    with pytest.raises(NotProvedError, match="between nodes"):
        checked(made)
    assert checked(changed(made, "model", "edges", 0, "head", [-1, -1]))


def test_a_direction_is_tried_without_offsets_and_centres():
    made = changed(separable(), "model", "samples", 0, "offset", [["5"], ["-9"]])
    assert checked(made)
    with pytest.raises(NotProvedError, match="grows along the direction"):
        checked(changed(made, "claims", 1, "direction", [["-1"], ["-1"]]))
    ground = edges("L1", [(0, -1)], [0], center=[["1"]])
    held = changed(separable(), "model", "edges", [*made["model"]["edges"], ground])
    with pytest.raises(NotProvedError, match="grows along the direction"):
        checked(changed(held, "dual", "flows", [*held["dual"]["flows"], [["0"]]]))
