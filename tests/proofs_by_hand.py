"""Proofs by hand for tests: at the ends of all domains, and of problems of every shape."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import product

from benchmarks import honest
from benchmarks.honest import NORMS, as_rows, chain, changed, of_loss, text, texts
from graphreg.verify import double as number

F = Fraction
BOX = "1p1000"


def printed(s):
    """The number that a checker prints: '2^k' where it is beyond doubles."""
    sign = -1 if s.startswith("-") and "^" in s else 1
    return sign * F(2) ** int(s.split("^")[1]) if "^" in s else F(s)


def by_hand():
    """All proofs by hand: at the ends of every domain, with every claim."""
    yield from (chain(kind) for kind in NORMS)
    yield from (honest.of_loss(loss, b) for loss, (_, _, ends) in honest.LOSSES.items() for b in ends)
    yield from (honest.of_penalty(kind, u) for kind, (_, ends) in honest.PENALTIES.items() for u in ends)
    yield from (honest.of_constraint(kind, z) for kind, (_, ends) in honest.SIDES.items() for z in ends)
    yield from (honest.separable(), honest.rooted())


def mixed(rng):
    """Squared samples and edges of every shape at a random point, all balanced by a ridge; and P, -Q by hand."""

    def draw(*shape):
        return [draw(*shape[1:]) for _ in range(shape[0])] if shape else F(rng.randint(-32, 32), 8)

    n, d, M = 3, 3, 5
    w, x, y, o, a = draw(n, d), draw(M, d), draw(M), draw(M), draw(M)
    node, weight = [0, 1, 2, 2, 0], [F(1), F(3), F(1, 2), F(3, 2), F(3)]
    total = {0: F(4), 1: F(3), 2: F(2)}
    s = [F(3, 2) * q / total[i] for i, q in zip(node, weight, strict=True)]
    fits = honest.samples("squared", texts(y), node, strength="3p-1", rule="mean", weight=texts(weight), x=texts(x))
    fits["offset"] = texts([[q] for q in o])
    z = [dot(row, w[i]) + q for row, i, q in zip(x, node, o, strict=True)]
    P = sum(q * (p - t) ** 2 / 2 for q, p, t in zip(s, z, y, strict=True))
    minus = sum(p * p / q / 2 + p * (t - r) for q, p, t, r in zip(s, a, y, o, strict=True))
    rest = [
        [sum(p * row[j] for row, i, p in zip(x, node, a, strict=True) if i == k) for j in range(d)] for k in range(n)
    ]

    center, u, R, t = draw(2, 2), draw(2, 2), draw(1, 2), draw(2, 1)
    ground = honest.edges(
        "SquaredL2", [(0, -1), (2, -1)], [2, 0], strength="1p1", weight=["1", "3"], center=texts(center)
    )
    for k, (i, c) in enumerate(((0, F(2)), (2, F(6)))):
        z = [w[i][j] - q for j, q in zip((2, 0), center[k], strict=True)]
        P += c * dot(z, z) / 2
        minus += dot(u[k], u[k]) / c / 2 + dot(u[k], center[k])
        rest[i][2], rest[i][0] = rest[i][2] + u[k][0], rest[i][0] + u[k][1]
    rooted = honest.edges("Quadratic", [(2, 0), (1, 2)], [1, 2], parameter=texts(R), weight=["5p-1", "1p-1"])
    for k, (i, j, c) in enumerate(((2, 0, F(5, 2)), (1, 2, F(1, 2)))):
        P += c * dot(R[0], [w[i][f] - w[j][f] for f in (1, 2)]) ** 2 / 2
        minus += c * t[k][0] ** 2 / 2
        for f, q in zip((1, 2), R[0], strict=True):
            rest[i][f], rest[j][f] = rest[i][f] + c * q * t[k][0], rest[j][f] - c * q * t[k][0]
    ridge = honest.edges("SquaredL2", [(i, -1) for i in range(n)], list(range(d)))
    P += sum(dot(row, row) for row in w) / 2
    minus += sum(dot(row, row) for row in rest) / 2
    flows = [u, t, [[-v for v in row] for row in rest]]
    made = honest.document(n, d, ([fits], [ground, rooted, ridge]), w, flows, [[[v] for v in a]])
    return made, P, -minus


OF_ROWS = {  # a flow over the weight, the value at z, and the conjugate at that flow
    "L1": ([F(1, 2), F(-1)], lambda z: abs(z[0]) + abs(z[1]), F(0)),
    "LInf": ([F(1, 3), F(-2, 3)], lambda z: max(abs(z[0]), abs(z[1])), F(0)),
    "SquaredL2": ([F(3, 2), F(-5)], lambda z: dot(z, z) / 2, F(109, 8)),
}


def with_rows(rng):
    """The same, with two rows of any kind of each of some penalties, their flows balanced by the ridge."""
    made, P, Q = mixed(rng)
    w, ridge = ([[F(number(x)) for x in row] for row in rows] for rows in (made["w"], made["dual"]["flows"][2]))
    Q += sum(dot(row, row) for row in ridge) / 2
    for kind, (flow, value, conjugate) in OF_ROWS.items():
        block = {"weight": [], "center": []}
        cells, flows = [], []
        for _ in range(2):
            places = [rng.sample(list(product(range(3), range(3))), size) for size in (3, 2)]
            row = [[(i, j, F(rng.randint(1, 9) * rng.choice([-1, 1]), 4)) for i, j in number] for number in places]
            c, center = F(rng.randint(1, 20), 4), [F(rng.randint(-9, 9), 2) for _ in range(2)]
            z = [sum(x * w[i][j] for i, j, x in number) - b for number, b in zip(row, center, strict=True)]
            u = [c * v for v in flow]
            P += c * value(z)
            Q -= c * conjugate + dot(u, center)
            for v, (i, j, x) in ((v, cell) for v, each in zip(u, row, strict=True) for cell in each):
                ridge[i][j] -= x * v
            cells.append(row)
            flows.append(u)
            block["weight"].append(text(c))
            block["center"].append(texts(center))
        made["model"]["edges"].append(honest.rows(kind, 2, cells, **block))
        made["dual"]["flows"].append(texts(flows))
    made["dual"]["flows"][2] = texts(ridge)
    return made, P, Q - sum(dot(row, row) for row in ridge) / 2


def dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True)), F(0))


def strange():
    """Boxes, and labels of every alphabet, whose order and escapes enter the hash; prices of losses without ends."""
    yield from (of_loss(loss, [F(b, 3)]) for loss in ("expectile", "squared_epsilon", "gamma") for b in (-2, 1))
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
