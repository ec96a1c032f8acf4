"""Forged files by family: each is a proof by hand (`benchmarks.honest`) with something that makes it false, or none.

`forged()` yields (family, file, the hash that somebody asks for, or None); nobody may say that one is proved of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from graphreg.certificate.proof.statement import text, texts
from graphreg.verify import NotProvedError, check

from .honest import (
    LEFT,
    LOOSE,
    LOSSES,
    NORMS,
    PENALTIES,
    RIGHT,
    SIDES,
    SPLIT,
    Document,
    F,
    as_rows,
    bounds,
    chain,
    changed,
    document,
    edges,
    norm,
    of_constraint,
    of_edge,
    of_loss,
    of_penalty,
    prices_of,
    rooted,
    samples,
    separable,
)

Files = Iterator[Document]
SIZES = (0, 20, 60, 200, 3000)  # a value is off by 2^-size
Z = [F(-3), F(-4)]  # the difference along the split edge of a chain


def _with(made: Document, *claims: Document) -> Document:
    return made | {"claims": [*made["claims"], *claims]}


def near_where_the_flow_is_at_its_capacity() -> Files:
    """The gap is 0, and no difference is."""
    for kind in NORMS:
        size = norm(kind, Z)
        for r in (F(1, 10**9), F(1), size / 2, size - F(1, 1 << 100), F(1, 1 << 200), F(1, 1 << 3000)):
            yield _with(chain(kind), of_edge("near", SPLIT, distance=text(r)))


def contradictions() -> Files:
    """Claims of one edge that cannot both hold."""
    for kind in NORMS:
        made = chain(kind)
        split = made["claims"][-1]
        yield _with(made, of_edge("fused", SPLIT))
        yield made | {"claims": [made["claims"][0], of_edge("fused", SPLIT), split]}
        for e in (LEFT, RIGHT):
            yield _with(made, split | {"edge": e})
            for block in (-1, 1, True, None):
                yield _with(made, split | {"edge": e, "block": block})


def distances_that_are_none() -> Files:
    for kind in NORMS:
        for distance in (None, "0", "-1", "", 1, "1.0", "1/0", "1p99999", [], "-1p-60"):
            yield _with(chain(kind), of_edge("near", LEFT, distance=distance))
        yield _with(chain(kind), of_edge("near", LEFT))
        yield _with(chain(kind), of_edge("fused", LEFT, distance=None))
        yield _with(chain(kind), of_edge("fused", LEFT, distance="1"))


def claims_of_other_edges() -> Files:
    for kind in NORMS:
        for e in (3, -1, -3, 1 << 20, True, "0", None, 0.0):
            yield _with(chain(kind), of_edge("fused", 0) | {"edge": e})
    for made in (rooted(), *(of_constraint(kind, ends[0]) for kind, (_, ends) in SIDES.items())):
        for claim in (of_edge("fused", 0), of_edge("near", 0, distance="1"), of_edge("split", 0, dual=made["dual"])):
            yield _with(made, claim)
    made = changed(of_penalty("L1", [F(0), F(0)]), "model", "edges", 0, "center", [["1", "1"]])
    yield _with(made, of_edge("near", 0, distance="1p40"))


def within_a_box() -> Files:
    """What is left of the balance is charged to a box that is too small to say anything of the infimum; or w is not in
    the box."""
    for kind in NORMS:
        made = chain(kind)
        loose = made | {"claims": [bounds(F(-LOOSE), F(LOOSE))]}
        left = changed(loose, "dual", "prices", 0, 3, texts([F(1), F(0)]))
        for B in ("0", "1", "1p10", "1p998", "-1p2000", f"{(1 << 1000) - 1:x}", "1p1000", "1p2000", "1p9999"):
            yield left | {"within": B}
        for B in ("0", "1", "1p4", f"{(1 << 1000) - 1:x}"):
            yield made | {"within": B}
        yield changed(loose, "w", 0, ["1p1001", "0"]) | {"within": "1p1000"}


def domains_that_are_widened() -> Files:
    """Prices and flows a little beyond an end of their domain."""
    for loss, (_, _, ends) in LOSSES.items():
        for b in ends:
            for size in SIZES:
                yield of_loss(loss, beyond(loss, b, F(1, 1 << size)))
    for penalty, (_, ends) in PENALTIES.items():
        for u in ends:
            for size in SIZES:
                yield of_penalty(penalty, [x * (1 + F(1, 1 << size)) for x in u])
    for u in ([F(1), F(0)], [F(1, 1 << 3000), F(-1)]):
        yield changed(of_penalty("L1", u), "model", "edges", 0, edges("NonNegative", [(0, -1)], [0, 1]))
    half = edges("Box", [(0, -1)], [0, 1], parameter=[["-1", "1"], [None, "3"]])
    yield changed(of_penalty("L1", [F(1), F(-1, 1 << 3000)]), "model", "edges", 0, half)


def beyond(loss: str, b: list[Fraction], step: Fraction) -> list[Fraction]:
    """The price moved out of the domain."""
    if loss == "multinomial":  # one class below its end, another as much above; or the sum is not 0
        return [b[0] - step, b[1], b[2] + step] if b[0] == 0 else [b[0], b[1] - step, b[2] + step]
    middle = {"logistic": F(1, 2), "poisson": F(9), "quantile": F(-1, 4), "hinge": F(1, 2), "squared_hinge": F(-1)}
    out = 1 if b[0] > middle.get(loss, F(0)) else -1
    return [b[0] + out * step]


def prices_that_do_not_add_up() -> Files:
    for size in SIZES:
        yield of_loss("multinomial", [F(1, 4), F(-1, 2), F(1, 4) + F(1, 1 << size)])
        yield of_loss("multinomial", [F(1, 4), F(-1, 2) - F(1, 1 << size) / 2, F(1, 4)])


def points_outside_their_constraints() -> Files:
    out: dict[str, list[list[int]]] = {
        "Zero": [[1, 0], [0, -1]],
        "Ball": [[1, 0], [0, 1]],
        "NonNegative": [[-1, 0], [0, -1]],
        "Box": [[-1, 0], [0, 1]],
    }
    for kind, (_, ends) in SIDES.items():
        for z, way in zip(ends * 2, out[kind], strict=False):
            for size in SIZES:
                step = F(1, 1 << size)
                yield of_constraint(kind, [x + s * step for x, s in zip(z, way, strict=True)])


def flows_and_prices_out_of_balance() -> Files:
    for kind in NORMS:
        made = chain(kind)
        for size in SIZES:
            for what, i in (("flows", RIGHT), ("prices", 3)):
                row = [number + F(k, 1 << size) for k, number in enumerate(_numbers(made["dual"][what][0][i]))]
                loose = made | {"claims": [bounds(F(-LOOSE), F(LOOSE))]}
                yield changed(loose, "dual", what, 0, i, texts(row))
        yield changed(made, "dual", "flows", 0, SPLIT, texts([-x for x in NORMS[kind][1]]))
        yield made | {"dual": made["dual"] | {"flows": []}}
        yield made | {"dual": {"flows": [], "prices": made["dual"]["prices"] + made["dual"]["flows"]}}
        yield made | {"dual": made["dual"] | {"flows": made["dual"]["flows"] * 2}}


def _numbers(row: list[str]) -> list[Fraction]:
    from graphreg.verify import number

    found = [number(x) for x in row]
    return [F(int(x.numerator), int(x.denominator)) for x in found]


def bounds_that_are_too_good() -> Files:
    for kind in NORMS:
        made = chain(kind)
        (least,) = _numbers([made["claims"][0]["lower"]])
        for size in (0, 20, 52, 100, 199, 3000):
            step = F(1, 1 << size)
            for claim in (
                bounds(least + step, least + 1),
                bounds(least - 1, least - step),
                bounds(least + step, least),
            ):
                yield made | {"claims": [claim]}
                yield _with(made, claim)
        yield made | {"claims": made["claims"][1:]}


def equal_without_an_exact_optimum() -> Files:
    """The gap is no more than a unit of rounding, but it is not 0."""
    for kind in NORMS:
        made = chain(kind)
        for size in (10, 60, 99):
            w = [*made["w"][:3], texts([F(4), F(6) + F(1, 1 << size)])]
            for e in (LEFT, RIGHT):
                yield made | {"w": w, "claims": [bounds(F(-LOOSE), F(LOOSE)), of_edge("fused", e)]}
            yield made | {
                "w": w,
                "claims": [bounds(F(-LOOSE), F(LOOSE)), of_edge("near", LEFT, distance=text(F(1, 1 << 3 * size)))],
            }


def splits_that_are_not() -> Files:
    for kind in NORMS:
        made, (_, at_end, inner) = chain(kind), NORMS[kind]
        minus = [-x for x in inner]
        weak = [[inner, at_end, minus], [inner, [2 * x for x in at_end], minus], [inner, inner, minus]]
        outside = [[inner, [F(5, 4) * x for x in at_end], [-9 * x for x in inner]]]
        for flows in weak[:1] + weak[2:] + outside:
            dual = {"flows": [texts(flows)], "prices": [texts(prices_of(flows, 2))]}
            yield _with(made, of_edge("split", SPLIT, dual=dual))
        good = made["claims"][-1]["dual"]
        yield _with(made, of_edge("split", SPLIT, dual=changed(good, "prices", 0, 0, ["0", "0"])))
        yield _with(made, of_edge("split", SPLIT, dual=good | {"flows": []}))
        yield _with(made, of_edge("split", SPLIT, dual=good | {"within": "1p2000"}))
        for e in (LEFT, RIGHT):  # the flow of the split edge then is outside its domain
            yield _with(made, of_edge("split", e, dual=good))


def minima_that_are_attained() -> Files:
    made = separable()
    for v in ([-1, -1], [0, 0], [1, 2], [1, -1], [F(1, 3), F(1, 3) + F(1, 1 << 3000)]):
        yield changed(made, "claims", 1, "direction", texts([[F(x)] for x in v]))
    for v in ([], [["1"]], [["1"], ["1"], ["1"]], [["1", "0"], ["1", "0"]]):
        yield changed(made, "claims", 1, "direction", v)
    for loss, y in (("hinge", "1"), ("squared_hinge", "1"), ("squared", "1"), ("huber", "1"), ("poisson", "1")):
        block: dict[str, Any] = {"loss": loss, "y": [y, y], "parameter": "1" if loss == "huber" else None}
        forged = changed(made, "model", "samples", 0, made["model"]["samples"][0] | block)
        yield forged
        yield changed(forged, "claims", 1, "direction", [["-1"], ["-1"]])
    ground = edges("L1", [(0, -1)], [0])
    for block in (ground, ground | {"penalty": "Zero"}, ground | {"penalty": "Box", "parameter": [["-1", "1"]]}):
        forged = changed(made, "model", "edges", [*made["model"]["edges"], block])
        yield changed(forged, "dual", "flows", [*forged["dual"]["flows"], [["0"]]])


def signs() -> Files:
    """Numbers that are not positive, alone or in pairs whose product is; and other spellings of them."""
    made = chain("L1")
    for what in ("samples", "edges"):
        block = made["model"][what][0]
        M = len(block["weight"])
        for strength, weight in (
            ("-1", "-1"),
            ("-1", "1"),
            ("1", "-1"),
            ("0", "1"),
            ("1", "0"),
            ("-0", "1"),
            ("2", "1"),
        ):
            yield changed(made, "model", what, 0, block | {"strength": strength, "weight": [weight] * M})
        yield changed(made, "model", what, 0, block | {"strength": "1p-1000", "weight": ["1p-1000"] * M})
        small = {"strength": "1p-1000", "weight": ["1p-1000"]}  # their product is no double but 0
        yield of_penalty("L1", [F(0), F(0)], **small) if what == "edges" else of_loss("hinge", [F(0)], **small)
        yield changed(made, "model", what, 0, block | {"strength": "1p900", "weight": ["1p900"] * M})
    block = made["model"]["samples"][0]
    for rule, weight in (
        (["-1"] * 4, "-1"),
        ("mean", "-1"),
        (["0"] * 4, "1"),
        (["1"] * 3, "1"),
        ("half", "1"),
        (None, "1"),
    ):
        yield changed(made, "model", "samples", 0, block | {"rule": rule, "weight": [weight] * 4})


def parameters_and_targets() -> Files:
    """Losses and penalties that are none."""
    yield changed(chain("L1"), "model", "samples", 0, "parameter", "1")
    wrong: tuple[tuple[str, dict[str, Any]], ...] = (
        ("huber", {"parameter": "0"}),
        ("huber", {"parameter": "-5p-2"}),
        ("huber", {"parameter": None}),
        ("quantile", {"parameter": "1"}),
        ("quantile", {"parameter": "0"}),
        ("quantile", {"parameter": "5p-2"}),
        ("poisson", {"y": ["-1"]}),
        ("poisson", {"parameter": "1"}),
        ("logistic", {"y": ["0"]}),
        ("logistic", {"y": ["1p1"]}),
        ("hinge", {"y": ["1p-1"]}),
        ("squared_hinge", {"y": ["-3"]}),
        ("multinomial", {"y": [3]}),
        ("multinomial", {"y": [-1]}),
        ("multinomial", {"parameter": 1}),
        ("multinomial", {"parameter": 2}),
        ("multinomial", {"parameter": "3"}),
        ("multinomial", {"x": None}),
        ("hinge", {"loss": "absolute"}),
        ("hinge", {"loss": ["hinge"]}),
        ("hinge", {"x": [["1", "1"]]}),
        ("hinge", {"offset": [["0", "0"]]}),
        ("hinge", {"node": [1]}),
        ("hinge", {"node": [-1]}),
        ("hinge", {"sigma": "1"}),
        ("hinge", {"parameter": "1"}),
        ("hinge", {"weight": "1"}),
        ("hinge", {"weight": {"1": "1"}}),
    )
    for loss, other in wrong:
        yield of_loss(loss, [F(0)] * (3 if loss == "multinomial" else 1), **other)
    yield of_loss("multinomial", [F(0)], parameter=1, y=[0])
    two = samples("multinomial", [0], [0], 2, parameter=2)  # of three columns
    yield document(1, 3, ([two], []), [[F(0)] * 3], [], [[[F(0)] * 2]])
    nothing = {"k": 0, "rows": [[]]} | {name: each for name, each in two.items() if name not in ("node", "x")}
    yield document(
        1, 3, ([nothing | {"loss": "mean", "parameter": None, "y": [[]], "offset": [[]]}], []), [[F(0)] * 3], [], [[[]]]
    )
    for y in (F(-1), F(-1, 4), F(-1, 1 << 1000)):  # the conjugate of Poisson is finite there
        yield of_loss("poisson", [F(2)], y=[text(y)])
    none: dict[str, Any] = {"parameter": None, "strength": "1", "weight": ["1"]}
    other_penalties: tuple[dict[str, Any], ...] = (
        {"parameter": "1"},
        {"penalty": "L3"},
        {"penalty": "HuberNorm", "parameter": "0"},
        {"penalty": "HuberNorm", "parameter": "-1"},
        {"penalty": "Ball", "parameter": "-1", "strength": "1", "weight": ["1"]},
        {"penalty": "Ball", "parameter": "1"},
        {"penalty": "Zero"},
        none | {"penalty": "Zero", "strength": "1p1", "weight": ["1p-1"]},
        none | {"penalty": "Box", "parameter": [["0", "1"]]},
        none | {"penalty": "Box", "parameter": [["0", "1"], ["0", "1", "1p1"]]},
        none | {"penalty": "NonNegative", "parameter": "1"},
        none | {"penalty": "Box", "parameter": None},
        {"features": [0, 0]},
        {"features": [0]},
        {"features": []},
        {"features": [0, 2]},
        {"features": [0, -1]},
        {"head": [0]},
        {"head": [-2]},
        {"tail": [1]},
        {"tail": [-1], "head": [0]},
        {"center": [["1"]]},
    )
    for other in other_penalties:
        yield of_penalty("L1", [F(0), F(0)], **other)


def ranks_of_a_quadratic() -> Files:
    made = rooted()
    tall = changed(made, "model", "edges", 0, "parameter", [["1", "1p1"], ["0", "0"], ["0", "0"]])
    yield changed(tall, "dual", "flows", 0, 0, ["1p-1", "0", "0"])
    for root in ([], [["1", "0"], ["0", "1"], ["1", "1"]], [["1"]], [["1", "1", "1"]], None, "1", [[]]):
        yield changed(made, "model", "edges", 0, "parameter", root)
    for t in (["1p-1", "0"], [], ["1p-1", "1p-1"], ["-1p-1"], [text(F(1, 2) + F(1, 1 << 3000))]):
        yield changed(made, "dual", "flows", 0, 0, t)
    for root in ([["1", "3p1"]], [["1", "1"]], [["-1", "1p1"]], [["1", "1p1"], ["0", "1p-1000"]]):
        yield changed(made, "model", "edges", 0, "parameter", root)


def one_sided_between_nodes() -> Files:
    for kind, (parameter, _) in SIDES.items():
        if kind in ("NonNegative", "Box"):
            block = edges(kind, [(0, 1)], [0, 1], parameter=parameter)
            made = changed(rooted(), "model", "edges", 0, block)
            yield changed(made, "dual", "flows", 0, 0, ["-1", "1"])
            yield changed(made, "dual", {"flows": [[["0", "0"]]], "prices": [[["0", "0"]] * 2]})
    for kind in NORMS:
        made = chain(kind)
        yield changed(made, "model", "edges", 0, "center", [["0", "0"]] * 3)
        yield changed(made, "model", "edges", 0, "center", [["1", "0"]] * 3)


def names() -> Files:
    made = chain("L2")
    for key, value in (("labels", ["a"] * 4), ("labels", []), ("labels", ["a", "b", "c", 4]), ("labels", "abcd")):
        yield changed(made, "model", key, value)
    for value in (["a", "a"], [], ["a"], ["a", "b", "c"], ["a", 4], None):
        yield changed(made, "model", "columns", value)
    for value in ("graphreg-proof-2", "", None, ["graphreg-proof-1"]):
        yield made | {"format": value}


def the_same_with_rows() -> Files:
    """Files that are as false where their edges are written as rows."""
    for family in OF_ROWS:
        yield from map(as_rows, family())
    for loss in ("mean", "hinge", "multinomial"):
        made = as_rows(of_loss(loss, [F(0)] * 3) if loss == "multinomial" else of_loss("hinge", [F(0)]))
        block = made["model"]["samples"][0] | ({"loss": loss, "y": [["1"]]} if loss == "mean" else {})
        wrong = (
            {"rule": "mean"},
            {"k": 2},
            {"k": 0},
            {"k": None},
            {"x": None},
            {"node": [0]},
            {"rows": []},
            {"rows": None},
        )
        yield from (changed(made, "model", "samples", 0, block | each) for each in wrong)
    for kind, e in product(NORMS, (3, -1, True, "0", None)):
        yield _with(as_rows(chain(kind)), of_edge("held", 0) | {"edge": e})
    for kind, (_, ends) in SIDES.items():
        made = as_rows(of_constraint(kind, ends[0]))
        yield _with(made, of_edge("near", 0, distance="1"))
        yield _with(made, of_edge("held", 0))
        yield changed(made, "model", "edges", 0, "rows", 0, 0, [[-1, 0, "1"]])  # of no flow, which balances anywhere
        yield changed(made, "model", "edges", 0, "rows", 0, 1, [[0, -1, "1"]])


def rows_that_are_none() -> Files:
    """Cells of no place, of no number, or twice in a number; a number too many or too few."""
    for kind in NORMS:
        made = as_rows(chain(kind))
        block = made["model"]["edges"][0]
        empty = {"penalty": "Zero", "k": 0, "rows": [[]], "weight": ["1"], "strength": "1"}
        none = changed(made, "model", "edges", [block, block | empty])
        none = none | {"claims": [bounds(F(-LOOSE), F(LOOSE))]}
        yield changed(none, "dual", "flows", [*none["dual"]["flows"], [[]]])
        for k in (0, 1, 3, -2, True, "2", None, 2.0, 1 << 22, 10**9):
            yield changed(made, "model", "edges", 0, "k", k)
        for cell in (
            *([4, 0, "1"], [-1, 0, "1"], [0, 2, "1"], [0, -1, "1"], ["0", 0, "1"], [True, 0, "1"], [None, 0, "1"]),
            *([0, 0, "0"], [0, 0, "-0"], [0, 0, "2"], [0, 0, "1/3"], [0, 0, "1p0"], [0, 0, "1p1024"], [0, 0, "inf"]),
            *([0, 0, 1], [0, 0, None], [0, 0], [0, 0, "1", "1"], [], "001", {"0": 0}, None, [0, 0, "11111111111111"]),
        ):
            yield changed(made, "model", "edges", 0, "rows", 0, 0, 0, cell)
        last = [3, 0, "-1"]  # what follows would come to the same, if it were read
        for more in ([[-1, 0, "-1"]], [[3, -2, "-1"]], [[3, 0, "-1p-1"]] * 2, [last, [0, 0, "0"]], [last, [2, 0, "0"]]):
            yield changed(made, "model", "edges", 0, "rows", RIGHT, 0, [[2, 0, "1"], *more])
        yield changed(made, "model", "edges", 0, "rows", RIGHT, 1, [[2, 1, "1"], [3, -1, "-1"]])
        for number in ([], None, "", {}, [[0, 0, "1"]], [[0, 0, "1"], [1, 0, "-1"], [0, 0, "1p-1000"]]):
            yield changed(made, "model", "edges", 0, "rows", 0, 0, number)
        for row in ([], [[]], [[], [], []], None):
            yield changed(made, "model", "edges", 0, "rows", 0, row)
        for rows in ([], None, block["rows"][:2], block["rows"] * 2):
            yield changed(made, "model", "edges", 0, "rows", rows)
        yield changed(made, "model", "edges", 0, block | {"tail": [0, 1, 2]})
        yield changed(made, "model", "edges", 0, {name: each for name, each in block.items() if name != "k"})
        yield changed(made, "model", "edges", 0, block | {"center": [["0"]] * 3})
        yield changed(made, "model", "edges", 0, block | {"center": [["0", "0"]] * 2})


def rows_of_another_problem() -> Files:
    """A coefficient, a weight or a centre that is off, by however little: nothing balances, or the bounds are wrong."""
    for kind in NORMS:
        made = as_rows(chain(kind))
        c = NORMS[kind][0]
        for size in (0, 20, 51):
            step = F(1, 1 << size)
            for cell in ([0, 1, text(1 + step)], [0, 1, text(-step)], [3, 1, text(step)], [1, 0, text(step)]):
                yield changed(made, "model", "edges", 0, "rows", SPLIT, 1, 1, cell)
            yield changed(made, "model", "edges", 0, "weight", SPLIT, text(c + step))
            yield changed(made, "model", "edges", 0, "weight", SPLIT, text(c * (1 - step / 2)))
            for e, sign in product((LEFT, SPLIT, RIGHT), (-1, 1)):
                center = [[F(0), F(0)] for _ in range(3)]
                center[e] = [sign * step, sign * step]
                yield changed(made, "model", "edges", 0, "center", texts(center))


def of_another_model() -> Iterator[tuple[Document, str]]:
    """True of the problem that the file states, which is not the one that is asked for."""
    for kind in NORMS:
        made = chain(kind)
        name = check(json.dumps(made).encode()).hash
        block, edge = made["model"]["samples"][0], made["model"]["edges"][0]
        others = [
            changed(made, "model", "labels", 0, "somebody else"),
            changed(made, "model", "columns", 1, "another column"),
            changed(made, "model", "samples", 0, block | {"strength": "1p1", "weight": ["1p-1"] * 4}),
            changed(made, "model", "samples", 0, block | {"rule": "mean"}),
            changed(made, "model", "samples", 0, block | {"rule": ["1"] * 4}),
            changed(made, "model", "edges", 0, edge | {"strength": "1p1", "weight": [text(NORMS[kind][0] / 2)] * 3}),
            changed(made, "model", "edges", 0, edge | {"features": [1, 0]}),
        ]
        loose = made | {"claims": [bounds(F(-LOOSE), F(LOOSE))]}
        others += [changed(loose, "model", "samples", 0, "y", 0, 0, text(F(k, 1 << 40))) for k in (1, 3)]
        others += [changed(loose, "model", "samples", 0, "offset", 0, 0, text(F(k, 1 << 40))) for k in (1, 3)]
        for other in others:
            yield other, name
        yield made, name[:-1]
        yield made, name.upper()


FAMILIES: tuple[Callable[[], Files], ...] = (
    near_where_the_flow_is_at_its_capacity,
    contradictions,
    distances_that_are_none,
    claims_of_other_edges,
    within_a_box,
    domains_that_are_widened,
    prices_that_do_not_add_up,
    points_outside_their_constraints,
    flows_and_prices_out_of_balance,
    bounds_that_are_too_good,
    equal_without_an_exact_optimum,
    splits_that_are_not,
    minima_that_are_attained,
    signs,
    parameters_and_targets,
    ranks_of_a_quadratic,
    one_sided_between_nodes,
    names,
    the_same_with_rows,
    rows_that_are_none,
    rows_of_another_problem,
)
OF_ROWS: tuple[Callable[[], Files], ...] = (
    near_where_the_flow_is_at_its_capacity,
    contradictions,
    distances_that_are_none,
    within_a_box,
    domains_that_are_widened,
    points_outside_their_constraints,
    flows_and_prices_out_of_balance,
    bounds_that_are_too_good,
    equal_without_an_exact_optimum,
    splits_that_are_not,
    minima_that_are_attained,
    ranks_of_a_quadratic,
)


def forged() -> Iterator[tuple[str, str, str | None]]:
    """All files: family, text, and the hash that is asked for."""
    for family in FAMILIES:
        for made in family():
            yield family.__name__.replace("_", " "), json.dumps(made), None
    for made, name in of_another_model():
        yield "of another model", json.dumps(made), name


def accepted(file: str, name: str | None, python_flint: bool = True) -> bool:
    """True where the checker says that the file proves something of the model that is asked for."""
    try:
        found = check(file.encode(), python_flint)
    except NotProvedError:
        return False
    return name in (None, found.hash)
