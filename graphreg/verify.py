#!/usr/bin/env python3
"""Check a proof of graphreg: ``python verify.py proof.json [--model HASH] [--no-flint] [--seconds S]``.

This file stands alone: it needs the standard library, and python-flint only for speed. docs/proofs.md has the format.
A proof states a problem, minimise over w (one row per node)

    P(w) = sum_r s_r l_r(x_r' w_i + o_r) + sum_e c_e phi_e((w_tail - w_head - center)[features]),

a point w, a dual point (flows u on the edges, prices a on the samples), and claims. Checked, in exact arithmetic, is
that they balance, sum_r x_r a_r + sum_e +-u_e = 0 at every node, and lie inside the domains of the conjugates. Then
Q(u, a) = - sum_r s_r l_r*(a_r / s_r) + <a, o> - sum_e c_e phi_e*(u_e / c_e) - <u, center> <= inf P <= P(w), rounded to
the safe side, and the claims are compared with these numbers. Exit status: 0 proved, 1 not proved, 2 a mistake on the
command line or a file that is no proof at all.
"""

# fmt: off
import argparse
import hashlib
import json
import re
import sys
import time
from fractions import Fraction
from math import inf, isqrt, ldexp, nextafter
from typing import Any

try:
    import flint
except ImportError:
    flint: Any = None

FORMAT = "graphreg-proof-1"
UNIT = 200  # every summand of P and of -Q is rounded up to a multiple of 2^-UNIT
FILE, LISTS, ENTRIES = 1 << 26, 1 << 22, 1 << 24  # bytes of a file, lists and entries in it
WORK = 1 << 28  # products of 64-bit words that large numbers may take
FIELDS = {
    "proof": "format model w dual within claims", "model": "labels columns samples edges", "dual": "flows prices",
    "samples": "loss parameter strength rule node weight x y offset",
    "edges": "penalty parameter strength tail head weight features center",
    "bounds": "says lower upper", "near": "says block edge distance", "fused": "says block edge",
    "split": "says block edge dual", "unattained": "says direction",
}

class NotProvedError(Exception):
    """What is wrong, and where."""

class State:
    """Of one check: whether python-flint computes, the work and time that are left, the term that is looked at."""
    flint, work, end, where = flint is not None, WORK, float("inf"), ""

def need(ok: Any, *what: Any) -> None:
    if not ok:
        raise NotProvedError(State.where + (" ".join(map(str, what))[:300] or "outside the domain"))

# ---- exact numbers ---------------------------------------------------------------------------------------------------
def rational(p: Any, q: Any = 1) -> Any:
    return flint.fmpq(p, q) if State.flint else Fraction(p, q)
def exact(x: Any) -> Any:
    return rational(*(x if isinstance(x, float) else double(x)).as_integer_ratio())

def charge(x: Any) -> Any:
    """x, after its size was charged: a hostile file makes numbers of any size from small ones."""
    bits = x.numerator.bit_length() + x.denominator.bit_length()
    if bits > 512:
        State.work -= bits * bits >> 12
        need(State.work > 0, "the numbers grow too large")
    return x

def add(numbers: Any) -> Any:
    total = rational(0)
    for x in numbers:
        total = charge(total + x)
    return total
def dot(a: Any, b: Any) -> Any:
    return add(p * q for p, q in zip(a, b, strict=True))

def shown(x: Any, side: int = 0) -> str:
    """A short number that is at most x (side -1), at least x (side 1), or near x: rounding must not make it false."""
    x = Fraction(int(x.numerator), int(x.denominator))
    size = x.numerator.bit_length() - x.denominator.bit_length()
    if abs(size) < 1000:
        y = x.numerator / x.denominator
        while side * (Fraction(repr(y)) - x) < 0:
            y = nextafter(y, side * inf)
        return repr(y)
    size -= abs(x) < Fraction(2) ** size
    return f"{'-' * (x < 0)}2^{size + (side * x > 0 and abs(x) > Fraction(2) ** size)}"

# ---- reading ---------------------------------------------------------------------------------------------------------
NUMBER = re.compile(r"(-?)(0|[1-9a-f][0-9a-f]{0,16383})(?:p(-?[1-9][0-9]{0,3}))?(?:/([1-9a-f][0-9a-f]{0,16383}))?")

def number(s: Any) -> Any:
    """'-1a2bp-30/3f' is -(0x1a2b * 2^-30) / 0x3f."""
    m: Any = NUMBER.fullmatch(s) if isinstance(s, str) else None
    need(m, "not a number:", repr(s)[:60])
    p, e, q = int(m[1] + m[2], 16), int(m[3] or 0), int(m[4] or "1", 16)
    return charge(rational(p << max(e, 0), q << max(-e, 0)))

def spell(x: float) -> str:
    """The one spelling of a double in a model: an odd integer in hexadecimal digits, and a power of two."""
    p, q = abs(x).as_integer_ratio()
    e = (p & -p).bit_length() - q.bit_length()
    return f"{'-' * (x < 0)}{p // (p & -p):x}" + (f"p{e}" if e else "") if p else "0"

def double(s: Any) -> float:
    m = NUMBER.fullmatch(s) if isinstance(s, str) and len(s) < 24 else None
    x = ldexp(int(m[1] + m[2], 16), int(m[3] or 0)) if m and len(m[2]) < 15 and int(m[3] or 0) < 972 else 0.0
    need(spell(x) == s, "not the spelling of a double:", repr(s)[:60])
    return x

def array(data: Any, read: Any, *shape: Any) -> list[Any]:
    need(isinstance(data, list) and shape[0] in (None, len(data)), "no list of", shape[0], "entries:", repr(data)[:40])
    return [array(x, read, *shape[1:]) for x in data] if len(shape) > 1 else [read(x) for x in data]

def whole(low: int, high: int) -> Any:
    return lambda i: need(type(i) is int and low <= i < high, "no integer in", (low, high - 1), repr(i)[:30]) or i

def fields(data: Any, what: str) -> list[Any]:
    names = FIELDS[what].split()
    need(isinstance(data, dict) and set(data) == set(names), what, "has the fields", *names, "only:", repr(data)[:60])
    return [data[name] for name in names]
def pairs(items: Any) -> Any:
    need(len(dict(items)) == len(items), "a key stands twice:", [key[:20] for key, _ in items[:8]])
    return dict(items)
def integer(s: str) -> int:
    need(re.fullmatch("-?[0-9]{1,9}", s), "numbers that are no small integers are written as strings:", s[:30])
    return int(s)

def load(text: bytes) -> Any:
    """Strict JSON: ASCII, no floats, no key twice, of a bounded size."""
    lists = text.count(b"[") + text.count(b"{")
    need(len(text) <= FILE and text.count(b",") <= ENTRIES and lists <= LISTS, "the file is too large")
    hooks: Any = {"parse_float": integer, "parse_constant": integer, "parse_int": integer}
    return json.loads(text.decode("ascii"), object_pairs_hook=pairs, **hooks)

# ---- upper bounds ----------------------------------------------------------------------------------------------------
WIDE, ONE = 272, 1 << 272

def up(x: Any, scale: int = UNIT) -> int:
    """x in units of 2^-scale, rounded up."""
    return int(-((-charge(x).numerator << scale) // x.denominator))

def root(x: Any) -> Any:
    """An upper bound of the square root of x >= 0."""
    n = up(x, 2 * UNIT)
    return rational(isqrt(n - 1) + 1 if n else 0, 1 << UNIT)

def log(x: Any) -> Any:
    """An upper bound of log(x), x > 0: 2^24 log(1 + e) with 1 + e the 2^24-th root, rounded up."""
    y, s = up(x, WIDE), 0
    need(y.bit_length() < 16384, "log of a number too large")
    for _ in range(24):
        y = isqrt((y << WIDE) - 1) + 1
    for i in range(11, 0, -1):  # log(1 + e) <= e - e^2/2 + ... + e^11/11 = e s, and s is right within 4 units
        s = ONE // i - ((y - ONE) * s >> WIDE)
    return rational((y - ONE) * s + 4 * abs(y - ONE), 1 << 2 * WIDE - 24)

def exp(x: Any) -> Any:
    """An upper bound of exp(x): the 2^24-th power of exp(h), |h| <= 2^-12."""
    need(x < 4096, "exp of more than 4096")
    h, t = up(max(x, rational(-4096)), WIDE - 24), ONE
    for i in range(20, 0, -1):  # exp(h) <= 1 + h + ... + h^20/20! + less than a unit; rounding takes less than 3
        t = ONE + (t * h >> WIDE) // i
    t += 4
    for _ in range(24):
        t = -(-t * t >> WIDE)
    return rational(t, ONE)
def entropy(q: Any) -> Any:
    return need(q >= 0) or (q * log(q) if q > 0 else rational(0))

def huber(square: Any, z: Any, delta: Any) -> Any:
    """z^2 / 2 up to delta, then delta z - delta^2 / 2, from z^2 and an upper bound of z >= 0."""
    return square / 2 if square <= delta * delta else delta * (z - delta / 2)

# ---- losses: upper bounds of l(x; y), and of l*(b; y) where it is finite ---------------------------------------------
LOSSES: Any = {
    "squared": lambda p, x, y: (x - y) * (x - y) / 2, "hinge": lambda p, x, y: max(1 - y * x, 0),
    "mean": lambda p, x, y: add((v - t) * (v - t) for v, t in zip(x, y, strict=True)) / 2,
    "logistic": lambda p, x, y: max(-y * x, 0) + log(1 + exp(-abs(x))), "poisson": lambda p, x, y: exp(x) - y * x,
    "huber": lambda p, x, y: huber((x - y) * (x - y), abs(x - y), p[0]),
    "quantile": lambda p, x, y: max(-p[0] * (x - y), p[1] * (x - y)),
    "multinomial": lambda p, x, y: max(x) - x[y] + log(add(exp(v - max(x)) for v in x)),
    "squared_hinge": lambda p, x, y: max(1 - y * x, rational(0)) * max(1 - y * x, 0) / 2,
}
PRICES: Any = {
    "squared": lambda p, b, y: b * (b / 2 + y), "poisson": lambda p, b, y: entropy(b + y) - (b + y),
    "mean": lambda p, b, y: dot(b, [v / 2 + t for v, t in zip(b, y, strict=True)]),
    "logistic": lambda p, b, y: entropy(-y * b) + entropy(1 + y * b),
    "huber": lambda p, b, y: need(abs(b) <= p[0]) or b * (b / 2 + y),
    "quantile": lambda p, b, y: need(-p[0] <= b <= p[1]) or b * y,
    "multinomial": lambda p, b, y: need(add(b) == 0) or add(entropy(v + (k == y)) for k, v in enumerate(b)),
    "hinge": lambda p, b, y: need(-1 <= b * y <= 0) or b * y,
    "squared_hinge": lambda p, b, y: need(b * y <= 0) or b * (b / 2 + y),
}
RECEDES: Any = {  # 2 where l falls along v from everywhere and for ever, 1 where it grows nowhere, else 0
    "logistic": lambda v, y: 2 * (v * y > 0), "poisson": lambda v, y: 2 * (v < 0 and y == 0),
    "multinomial": lambda v, y: 2 * (max(v) == v[y]),
    "hinge": lambda v, y: v * y > 0, "squared_hinge": lambda v, y: v * y > 0,
}

class Samples:
    """A block of samples of one loss: node, x, y, scale s and offset o of each; k predictors each."""
    def __init__(self, data: Any, n: int, d: int) -> None:
        kind, par, strength, rule, self.node, weight, x, y, offset = fields(data, "samples")
        self.kind, self.strength = kind, double(strength)
        M = self.size = len(array(self.node, whole(0, n), None))
        need(kind in LOSSES, "unknown loss", repr(kind)[:40])
        k = self.k = whole(2, d + 1)(par) if kind == "multinomial" else d if kind == "mean" else 1
        t = double(par) if kind in ("huber", "quantile") else 0.0
        need(kind == "multinomial" or (t > 0 or par is None) and (t < 1 or kind == "huber"), "parameter")  # noqa: RUF021
        self.par = [exact(t), exact(1.0 - t)]  # of quantiles the double 1.0 - t
        need((x is None) == (kind == "mean") and d % k == 0, "the width of x")
        self.x = None if x is None else array(x, exact, M, d // k)
        self.y = array(y, whole(0, k) if kind == "multinomial" else exact, M, *([d] if kind == "mean" else []))
        self.o = array(offset, exact, M, k)
        signs = kind in ("logistic", "hinge", "squared_hinge")
        need(not signs or all(abs(label) == 1 for label in self.y), "the labels are -1 and 1")
        need(kind != "poisson" or all(count >= 0 for count in self.y), "counts are not negative")
        self.s, rules = self.scales(rule, array(weight, double, M))
        each = zip(self.node, rules, weight, x or [None] * M, y, offset, strict=True)
        self.records = [["sample", (i,), None, kind, par, strength, *rest] for i, *rest in each]

    def scales(self, rule: Any, weights: list[float]) -> Any:
        """strength * base in doubles, base = weight / (the sum of the node's weights, in this order), weight, or weight
        * number: what graphreg computes is what is meant. And the rules of the records, with these sums."""
        total: dict[int, float] = {}
        for i, w in zip(self.node, weights, strict=True):
            total[i] = total.get(i, 0.0) + w if rule == "mean" else 1.0
        factors = [1.0] * self.size if rule in ("mean", "sum") else array(rule, double, self.size)
        bases = [w * factor / total[i] for i, w, factor in zip(self.node, weights, factors, strict=True)]
        rules = rule if isinstance(rule, list) else [[rule, spell(total[i])] for i in self.node]
        return positive([self.strength * base for base in bases]), rules

    def one(self, x: Any) -> Any:
        return x if self.kind in ("mean", "multinomial") else x[0]
    def argument(self, r: int, w: Any, shifted: bool = True) -> Any:
        row = w[self.node[r]]
        x = row if self.x is None else [dot(self.x[r], row[c :: self.k]) for c in range(self.k)]
        return [p + o for p, o in zip(x, self.o[r], strict=True)] if shifted else x
    def value(self, r: int, x: Any) -> Any:
        return self.s[r] * LOSSES[self.kind](self.par, self.one(x), self.y[r])
    def price(self, r: int, a: Any, _: bool = True) -> Any:
        """The summand of -Q, the price, and what it puts at (node, column)."""
        value = self.s[r] * PRICES[self.kind](self.par, self.one([p / self.s[r] for p in a]), self.y[r])
        x = [1] if self.x is None else self.x[r]
        put = {(self.node[r], f * self.k + c): v * p for c, p in enumerate(a) for f, v in enumerate(x)}
        return value - dot(a, self.o[r]), a, put

    def recedes(self, r: int, v: Any) -> int:
        """0 where the loss grows along v from somewhere; 2 where it falls from everywhere and for ever; else 1."""
        if all(t == v[0] for t in v) and (self.kind == "multinomial" or v[0] == 0):
            return 1
        return RECEDES[self.kind](self.one(v), self.y[r]) if self.kind in RECEDES else 0

# ---- penalties: upper bounds of phi(z), and of c phi*(t / c) where it is finite --------------------------------------
def inside(z: Any, box: Any) -> bool:
    return all((low is None or low <= v) and (high is None or v <= high) for v, (low, high) in zip(z, box, strict=True))
def push(t: Any, box: Any) -> Any:
    ends = [side[v > 0] if v != 0 else 0 for v, side in zip(t, box, strict=True)]
    return need(None not in ends) or dot(t, ends)

PENALTIES: Any = {
    "L1": lambda p, z: add(map(abs, z)), "L2": lambda p, z: root(dot(z, z)), "LInf": lambda p, z: max(map(abs, z)),
    "SquaredL2": lambda p, z: dot(z, z) / 2,
    "Quadratic": lambda p, z: add(dot(row, z) * dot(row, z) for row in p) / 2,
    "HuberNorm": lambda p, z: huber(dot(z, z), root(dot(z, z)), p),
    "Zero": lambda p, z: need(all(v == 0 for v in z)) or 0, "Ball": lambda p, z: need(dot(z, z) <= p * p) or 0,
    "NonNegative": lambda p, z: need(inside(z, p)) or 0, "Box": lambda p, z: need(inside(z, p)) or 0,
}
FLOWS: Any = {
    "L1": lambda p, c, t: need(max(map(abs, t)) <= c) or 0, "L2": lambda p, c, t: need(dot(t, t) <= c * c) or 0,
    "LInf": lambda p, c, t: need(add(map(abs, t)) <= c) or 0,
    "SquaredL2": lambda p, c, t: dot(t, t) / (2 * c), "Quadratic": lambda p, c, t: dot(t, t) * c / 2,
    "HuberNorm": lambda p, c, t: need(dot(t, t) <= c * p * c * p) or dot(t, t) / (2 * c),
    "Zero": lambda p, c, t: 0, "NonNegative": lambda p, c, t: push(t, p), "Box": lambda p, c, t: push(t, p),
    "Ball": lambda p, c, t: p * root(dot(t, t)),
}

class Edges:
    """A block of edges of one penalty: tail, head (-1: the ground), weight c and centre of each, on some columns."""
    def __init__(self, data: Any, n: int, d: int) -> None:
        kind, par, strength, self.tail, self.head, weight, columns, center = fields(data, "edges")
        self.kind, self.strength, m = kind, double(strength), len(array(self.tail, whole(0, n), None))
        need(kind in PENALTIES, "unknown penalty", repr(kind)[:40])
        need(all(h != t for h, t in zip(array(self.head, whole(-1, n), m), self.tail, strict=True)), "a loop")
        self.size, self.columns, k = m, array(columns, whole(0, d), None), len(columns)
        need(k > 0 and len(set(columns)) == k, "the features are distinct columns")
        weights = array(weight, double, m)
        self.c = positive([self.strength * w for w in weights])
        constraint = kind in ("Zero", "Ball", "NonNegative", "Box")
        need(not constraint or all(c == 1 for c in (self.strength, *weights)), "a constraint has no weight")
        self.center = None if center is None else array(center, exact, m, k)
        even = center is None and kind not in ("NonNegative", "Box")
        need(even or all(h == -1 for h in self.head), "a centre, or a one-sided penalty, between nodes")
        self.par = self.parameter(par, k)
        self.k = k if kind != "Quadratic" else len(self.par)
        need(0 < self.k <= k, "the root of a Quadratic has as many rows as its rank")
        each = zip(self.tail, self.head, weight, center or [None] * m, strict=True)
        self.records = [["edge", (i, j), columns, kind, par, strength, *rest] for i, j, *rest in each]

    def parameter(self, par: Any, k: int) -> Any:
        if self.kind in ("HuberNorm", "Ball"):
            return need(double(par) > 0, "the parameter is not positive") or exact(par)
        if self.kind in ("Quadratic", "Box"):
            box = self.kind == "Box"
            return array(par, lambda v: None if box and v is None else exact(v), *([k, 2] if box else [None, k]))
        return need(par is None, self.kind, "has no parameter") or [(0, None)] * k

    def argument(self, e: int, w: Any, shifted: bool = True) -> Any:
        tail, j = w[self.tail[e]], self.head[e]
        z = [tail[f] - (0 if j < 0 else w[j][f]) for f in self.columns]
        return [p - q for p, q in zip(z, self.center[e], strict=True)] if shifted and self.center else z
    def value(self, e: int, z: Any) -> Any:
        return self.c[e] * PENALTIES[self.kind](self.par, z)
    def price(self, e: int, t: Any, bound: bool = True) -> Any:
        """As for samples. A Quadratic with the root R states its flow by t: u = c R't, c phi*(u/c) <= c t't / 2."""
        c, i, j = self.c[e], self.tail[e], self.head[e]
        u = [c * dot(column, t) for column in zip(*self.par, strict=True)] if self.kind == "Quadratic" else t
        put = {(i, f): v for f, v in zip(self.columns, u, strict=True)}
        put |= {(j, f): -v for f, v in zip(self.columns, u, strict=True) if j >= 0}
        value = FLOWS[self.kind](self.par, c, t) if bound else 0
        return value + (dot(u, self.center[e]) if self.center else 0), u, put

    def recedes(self, e: int, z: Any) -> int:
        if self.kind in ("NonNegative", "Box"):
            return inside(z, [[None if side is None else 0 for side in box] for box in self.par])
        return all(t == 0 for t in ([dot(row, z) for row in self.par] if self.kind == "Quadratic" else z))

def positive(numbers: list[float]) -> list[Any]:
    need(all(0.0 < x < float("inf") for x in numbers), "a scale that is no positive double")
    return [exact(x) for x in numbers]

# ---- the proof -------------------------------------------------------------------------------------------------------
class Model:
    """The problem that a proof states."""
    def __init__(self, data: Any) -> None:
        self.labels, self.columns, samples, edges = fields(data, "model")
        for names in (self.labels, self.columns):
            need(isinstance(names, list) and names and all(isinstance(x, str) for x in names), "names are strings")
            need(len(set(names)) == len(names), "a name stands twice")
        self.n, self.d, self.m = len(self.labels), len(self.columns), len(samples)
        self.blocks: list[Any] = [Samples(block, self.n, self.d) for block in samples]
        self.blocks += [Edges(block, self.n, self.d) for block in edges]

    def hash(self) -> str:
        """SHA-256 over the sorted records of all that P depends on; the order of nodes, samples and edges is free."""
        records: list[Any] = [["columns", self.columns], *(["node", label] for label in self.labels)]
        for block in self.blocks:
            for what, nodes, features, *rest in block.records:
                ends = sorted(self.labels[i] for i in nodes if i >= 0)
                records.append([what, ends, features and [self.columns[j] for j in features], *rest])
        lines = sorted(json.dumps(record, separators=(",", ":")) for record in records)
        return hashlib.sha256("\n".join([FORMAT, *lines]).encode()).hexdigest()

    def point(self, data: Any) -> Any:
        """Per block, samples first, the prices or flows."""
        flows, prices = fields(data, "dual")
        need([len(prices), len(flows)] == [self.m, len(self.blocks) - self.m], "a block of the dual point for each")
        return [array(t, number, b.size, b.k) for b, t in zip(self.blocks, prices + flows, strict=True)]

    def terms(self) -> Any:
        before = State.where
        for b, block in enumerate(self.blocks):
            for i, (_, nodes, *_) in enumerate(block.records):
                names = " - ".join(repr(self.labels[j])[:40] for j in nodes if j >= 0)
                State.where = f"{before}{block.kind} {i} of block {b} ({names}): "
                need(time.monotonic() < State.end, "the time is up (--seconds)")
                yield b, i, block
        State.where = before

    def primal(self, w: Any, point: Any = None) -> int:
        """P(w) in units of 2^-UNIT, rounded up; less Q at a point, as a sum of residuals that are all 0 at optima."""
        total = 0
        for b, i, block in self.terms():
            conjugate, u, _ = block.price(i, point[b][i]) if point else (0, [], None)
            shift = dot(u, block.argument(i, w, False)) if point else 0
            total += up(block.value(i, block.argument(i, w)) + conjugate - shift)
        return total

    def dual(self, point: Any, within: Any = None, free: Any = None) -> int:
        """A lower bound of inf P in units of 2^-UNIT; of that over |w_ij| <= within; over w that agree across the edge
        (block, edge) ``free``, whose flow has no domain."""
        rest: dict[Any, Any] = {}
        total = 0
        for b, i, block in self.terms():
            conjugate, _, put = block.price(i, point[b][i], (b, i) != free)
            total += up(conjugate)
            for place, v in put.items():
                rest[place] = charge(rest.get(place, 0) + v)
        for (i, j), v in rest.items():
            place = f"at {self.labels[i]!r:.40}, {self.columns[j]!r:.40}:"
            need(v == 0 or within is not None, "flows and prices do not balance", place, shown(v), "is left")
            total += 0 if v == 0 else up(within * abs(v))
        return -total

class Proof:
    """A proof that holds: the model, its hash, the bounds in units of 2^-UNIT, and what is said."""
    def __init__(self, data: Any) -> None:
        version, model, w, dual, within, claims = fields(data, "proof")
        need(version == FORMAT, "this is for the format", FORMAT)
        self.model = m = Model(model)
        self.hash, self.w, self.point = m.hash(), array(w, number, m.n, m.d), m.point(dual)
        self.within = None if within is None else number(within)
        need(within is None or all(abs(v) <= self.within for row in self.w for v in row), "w is not within the box")
        self.upper, self.lower = m.primal(self.w), m.dual(self.point, self.within)
        need(self.lower <= self.upper, "the bounds cross, which only a faulty checker can say")
        says = [claim["says"] for claim in claims]
        need("bounds" in says and set(says) <= set(list(FIELDS)[-5:]), "the bounds are claimed, and what else there is")
        gap = self.upper - self.lower
        if self.within is None and ("near" in says or "fused" in says):
            gap = min(gap, m.primal(self.w, self.point))
        self.gap, self.said = rational(gap, 1 << UNIT), list[str]()
        for k, (claim, what) in enumerate(zip(claims, says, strict=True)):
            State.where = f"claim {k}, {what}: "
            self.said.append(getattr(self, what)(*fields(claim, what)[1:]))
        State.where = ""

    def bounds(self, low: Any, high: Any) -> str:
        ends = [rational(bound, 1 << UNIT) for bound in (self.lower, self.upper)]
        need(number(low) <= ends[0] and ends[1] <= number(high), "what is proved is", *map(shown, ends, (-1, 1)))
        return f"{shown(number(low), -1)} <= infimum <= {shown(number(high), 1)}"

    def near(self, block: Any, edge: Any, distance: Any = None) -> str:
        """phi(z) <= r at every optimum, as (c - dual norm of u) phi(z) <= residual of e <= gap; z = 0 if that is 0."""
        c, (kind, t), _, ends = self.edge(block, edge)
        if distance is None:
            need(self.gap == 0, "the gap is not exactly 0")
            FLOWS[kind](None, c * (1 - rational(1, 1 << 64)), t)
            return f"{ends} are equal at every optimum"
        r = number(distance)
        need(r > 0 and self.gap < c * r, "the gap is too large for this distance")
        FLOWS[kind](None, c - self.gap / r, t)
        return f"{kind} of the difference {ends} is at most {shown(r, 1)} at every optimum"
    fused = near

    def split(self, block: Any, edge: Any, dual: Any) -> str:
        """No optimum has z = 0: even the lower bound of what that costs lies above P(w)."""
        _, _, place, ends = self.edge(block, edge)
        need(self.model.dual(self.model.point(dual), self.within, place) > self.upper, "equality is not excluded")
        return f"{ends} differ at every optimum"

    def unattained(self, direction: Any) -> str:
        v = array(direction, number, self.model.n, self.model.d)
        states = [block.recedes(i, block.argument(i, v, False)) for _, i, block in self.model.terms()]
        need(min(states) > 0 and max(states) > 1, "a term grows along the direction, or none falls for ever")
        return "no minimum is attained" + ("" if self.within is None else " among all w of any size")

    def edge(self, block: Any, edge: Any) -> Any:
        """Of the edge that a claim is about: its capacity, penalty and flow, place, and ends."""
        b = self.model.m + whole(0, len(self.model.blocks) - self.model.m)(block)
        e, i = self.model.blocks[b], whole(0, self.model.blocks[b].size)(edge)
        need(e.kind in ("L1", "L2", "LInf") and e.center is None, "only norms without a centre fuse and split")
        ends = " - ".join(repr(self.model.labels[j]) for j in (e.tail[i], e.head[i]) if j >= 0)
        if len(e.columns) < self.model.d:
            ends += f" in {', '.join(repr(self.model.columns[f]) for f in e.columns)}"
        return e.c[i], (e.kind, self.point[b][i]), (b, i), ends

    def __str__(self) -> str:
        sizes = ", ".join(f"{b.size} {b.kind} of strength {b.strength!r}" for b in self.model.blocks)
        box = [] if self.within is None else [f"among all w with entries up to {shown(self.within, -1)}:"]
        said = [f"{self.model.n} nodes, {self.model.d} columns; {sizes}", *box, *self.said]
        return "\n  ".join([f"PROVED for the model {self.hash}:", *said])

def check(text: bytes, with_flint: bool = True, seconds: float = 3600.0) -> Proof:
    """The proof in a file, where it is one; raises `NotProvedError` where not."""
    State.flint, State.work, State.end, State.where = with_flint and bool(flint), WORK, time.monotonic() + seconds, ""
    try:
        return Proof(load(text))
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        what = "broken JSON" if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise NotProvedError(f"{State.where}{what}: {error}"[:300]) from None

def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check a proof of graphreg, in exact arithmetic.")
    parser.add_argument("proof")
    parser.add_argument("--model", metavar="HASH", help="the model that it must be of")
    parser.add_argument("--no-flint", action="store_true", help="compute with the standard library alone")
    parser.add_argument("--seconds", type=float, default=3600.0)
    asked = parser.parse_args(arguments)
    try:
        with open(asked.proof, "rb") as file:
            text = file.read(FILE + 1)
        if f'"{FORMAT}"'.encode() not in text:
            raise OSError(0, f'this is no proof of graphreg: nothing in it says "{FORMAT}"')
        proof = check(text, not asked.no_flint, asked.seconds)
        need(asked.model in (None, proof.hash), "the proof is of another model,", proof.hash)
    except OSError as error:
        print(f"Error: {asked.proof!a}: {error.strerror}", file=sys.stderr)
        return 2
    except NotProvedError as error:
        print(f"NOT PROVED: {error}")
        return 1
    print(proof)
    if asked.model is None:
        print("This holds of the problem that the file states. Whether that is yours, its hash says: see --model.")
    return 0

if __name__ == "__main__":
    sys.exit(main())
