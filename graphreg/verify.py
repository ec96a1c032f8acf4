#!/usr/bin/env python3
"""Check a proof of graphreg: ``python verify.py proof.json [--model HASH] [--gap G] [--no-flint] [--seconds S]``.

This file stands alone: it needs the standard library, and python-flint only for speed. docs/proofs.md has the format.
A proof states a problem, minimise over w (one row per node)

    P(w) = sum_r s_r l_r(x_r' w_i + o_r) + sum_e c_e phi_e((w_tail - w_head - center)[features]),

where predictors and differences may be any rows K_e w instead, a point w, a dual point (flows u on the edges, prices a
on the samples), and claims. Checked, in exact arithmetic, is that they balance, sum_r x_r a_r + sum_e K_e'u_e = 0 at
every node, and lie inside the domains of the conjugates. Then
Q(u, a) = - sum_r s_r l_r*(a_r / s_r) + <a, o> - sum_e c_e phi_e*(u_e / c_e) - <u, center> <= inf P <= P(w), rounded to
the safe side, and the claims are compared with these numbers.

Exit status: 0 proved; 1 not proved; 2 a mistake on the command line, or a file that is no proof at all; 4 proved, but
the bounds are further apart than --gap allows; 8 proved, but only among the w of a box, not of the infimum.
"""

import argparse
import hashlib
import json
import re
import sys
import threading
import time
from fractions import Fraction
from math import inf, isqrt, lcm, ldexp, nextafter
from typing import Any

try:
    import flint
except ImportError:
    flint: Any = None

FORMAT, CONIC = "graphreg-proof-1", "graphreg-conic-1"
UNIT = 200  # every summand of P and of -Q is rounded up to a multiple of 2^-UNIT
FILE, LISTS, ENTRIES = 1 << 26, 1 << 22, 1 << 24  # bytes of a file, lists and entries in it
WORK = 1 << 28  # products of 64-bit words that large numbers may take
EQUATIONS = 600  # that are solved at a time
BOX = 1000  # a box |w_ij| <= B smaller than 2^BOX is refused: what is proved inside says nothing of the infimum
PROVED, NOT_PROVED, NO_PROOF, WIDE_GAP, WITHIN_A_BOX = 0, 1, 2, 4, 8
CLAIMS = ("bounds", "near", "fused", "held", "split", "unattained")
FIELDS = {
    "proof": "format model w dual within claims",
    "model": "labels columns samples edges",
    "dual": "flows prices",
    "samples": "loss parameter strength rule node weight x y offset",
    "samples of rows": "loss parameter strength rule rows weight k y offset",
    "edges": "penalty parameter strength tail head weight features center",
    "rows": "penalty parameter strength k rows weight center",
    "bounds": "says lower upper",
    "near": "says block edge distance",
    "fused": "says block edge",
    "held": "says block edge",
    "split": "says block edge dual",
    "unattained": "says direction",
    "conic proof": "format problem claims",
    "conic problem": "sense offset P q A b cones",
    "point": "y rows columns last",
    "lower of a problem": "says bound point",
    "upper of a problem": "says bound point",
    "infeasible of a problem": "says point",
    "unbounded of a problem": "says point direction",
}
CONES = ("zero", "nonneg", "soc", "psd", "exp", "pow")


class NotProvedError(Exception):
    """What is wrong, and where."""


class State(threading.local):
    """Of the check in this thread: whether python-flint computes, the work and the time left, the term looked at."""

    flint = flint is not None
    work = WORK
    end = inf
    where = ""


STATE = State()


def begin(with_flint: bool = True, seconds: float = inf) -> None:
    """A new check in this thread."""
    STATE.flint = with_flint and flint is not None
    STATE.work, STATE.end, STATE.where = WORK, time.monotonic() + seconds, ""


def need(ok: Any, *what: Any, of: Any = ...) -> None:
    """Refuse, with what is wrong, where it is not ok; ``of`` is what was read."""
    if not ok:
        said = [*map(str, what), *([] if of is ... else [repr(of)[:60]])]
        raise NotProvedError(STATE.where + (" ".join(said)[:300] or "outside the domain"))


# ---- exact numbers ---------------------------------------------------------------------------------------------------
def rational(p: Any, q: Any = 1) -> Any:
    return flint.fmpq(p, q) if STATE.flint else Fraction(p, q)


def exact(x: Any) -> Any:
    """The rational that a double, or its spelling, is."""
    return rational(*(x if isinstance(x, float) else double(x)).as_integer_ratio())


def charge(x: Any) -> Any:
    """x, after its size was charged: a hostile file makes numbers of any size from small ones."""
    bits = x.numerator.bit_length() + x.denominator.bit_length()
    if bits > 512:
        STATE.work -= bits * bits >> 12
        need(STATE.work > 0, "the numbers grow too large")
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
    size -= abs(x) < Fraction(2) ** size  # now 2^size <= |x| < 2^(size + 1)
    away_from_zero = side * x > 0 and abs(x) > Fraction(2) ** size
    return f"{'-' * (x < 0)}2^{size + away_from_zero}"


# ---- reading ---------------------------------------------------------------------------------------------------------
HASH = re.compile("[0-9a-f]{64}")
NUMBER = re.compile(r"(-?)(0|[1-9a-f][0-9a-f]{0,16383})(?:p(-?[1-9][0-9]{0,3}))?(?:/([1-9a-f][0-9a-f]{0,16383}))?")


def number(s: Any) -> Any:
    """'-1a2bp-30/3f' is -(0x1a2b * 2^-30) / 0x3f."""
    m: Any = NUMBER.fullmatch(s) if isinstance(s, str) else None
    need(m, "not a number:", of=s)
    sign, digits, power, below = m.groups()
    p, e, q = int(sign + digits, 16), int(power or 0), int(below or "1", 16)
    return charge(rational(p << max(e, 0), q << max(-e, 0)))


def spell(x: float) -> str:
    """The one spelling of a double in a model: an odd integer in hexadecimal digits, and a power of two."""
    p, q = abs(x).as_integer_ratio()
    if p == 0:
        return "0"
    odd = p // (p & -p)
    e = (p & -p).bit_length() - q.bit_length()
    return f"{'-' * (x < 0)}{odd:x}" + (f"p{e}" if e else "")


def double(s: Any) -> float:
    m = NUMBER.fullmatch(s) if isinstance(s, str) and len(s) < 24 else None
    x = ldexp(int(m[1] + m[2], 16), int(m[3] or 0)) if m and len(m[2]) < 15 and int(m[3] or 0) < 972 else 0.0
    need(spell(x) == s, "not the spelling of a double:", of=s)
    return x


def positive(s: Any) -> float:
    x = double(s)
    need(x > 0.0, "not positive:", s)
    return x


def array(data: Any, read: Any, name: Any, *shape: Any) -> list[Any]:
    """Lists of lists of this shape (None: of any length), each entry read; by the name is said what is refused."""
    before, at, inner = STATE.where, f"{STATE.where}{name}: ", shape[1:]
    STATE.where = at
    need(isinstance(data, list), "no list:", of=data)
    need(shape[0] in (None, len(data)), "no list of", shape[0], "entries:", of=data)
    found: list[Any] = []
    for k, x in enumerate(data):
        STATE.where = at if inner else f"{at}{k}: "
        found.append(array(x, read, k, *inner) if inner else read(x))
    STATE.where = before
    return found


def whole(low: int, high: int) -> Any:
    """A reader of integers from low to high - 1."""

    def read(i: Any) -> int:
        need(type(i) is int and low <= i < high, "no integer in", (low, high - 1), of=i)
        return i

    return read


def fields(data: Any, what: str) -> list[Any]:
    names = FIELDS[what].split()
    need(isinstance(data, dict), what, "has the fields", *names, "only:", of=data)
    for name in [*(name for name in names if name not in data), *(name for name in data if name not in names)]:
        need(False, what, "lacks field:" if name in names else "has no field:", of=name)
    return [data[name] for name in names]


def claimed(claim: Any) -> str:
    """What is claimed."""
    need(isinstance(claim, dict) and isinstance(claim.get("says"), str), "no claim:", of=claim)
    return str(claim["says"])


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
WIDE, ONE = 272, 1 << 272  # log and exp compute with integers in units of 2^-WIDE


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
    """An upper bound of q log(q), q >= 0, which is 0 at 0."""
    need(q >= 0)
    return q * log(q) if q > 0 else rational(0)


def huber(square: Any, z: Any, delta: Any) -> Any:
    """z^2 / 2 up to delta, then delta z - delta^2 / 2, from z^2 and an upper bound of z >= 0."""
    return square / 2 if square <= delta * delta else delta * (z - delta / 2)


def above_zero(x: Any) -> Any:
    return x if x > 0 else rational(0)


# ---- losses: upper bounds of l(x; y), and of the conjugate l*(b; y) inside its domain --------------------------------
GROWS, STAYS, FALLS = 0, 1, 2  # along a direction: from somewhere on; nowhere; from everywhere and for ever


class Loss:
    """A loss of one number x, the predictor, without a parameter; its target y is a number."""

    vector = False  # x and b are lists of ``k`` numbers
    k = 1

    def __init__(self, parameter: Any, d: int) -> None:
        need(parameter is None, "this loss has no parameter")

    def target(self, y: Any) -> Any:
        return exact(y)

    def recedes(self, v: Any, y: Any) -> int:
        """How the loss changes where its predictor changes along v, which is not 0."""
        return GROWS


class Squared(Loss):
    """l(x; y) = (x - y)^2 / 2 and l*(b; y) = b^2 / 2 + b y for every b."""

    def value(self, x: Any, y: Any) -> Any:
        return (x - y) * (x - y) / 2

    def conjugate(self, b: Any, y: Any) -> Any:
        return b * b / 2 + b * y


class Mean(Loss):
    """Of x = w_i itself, a list: l(x; y) = ||x - y||^2 / 2 and l*(b; y) = ||b||^2 / 2 + <b, y> for every b."""

    vector = True

    def __init__(self, parameter: Any, d: int) -> None:
        super().__init__(parameter, d)
        self.k = d

    def target(self, y: Any) -> Any:
        return array(y, exact, "target", self.k)

    def value(self, x: Any, y: Any) -> Any:
        return add((v - t) * (v - t) for v, t in zip(x, y, strict=True)) / 2

    def conjugate(self, b: Any, y: Any) -> Any:
        return dot(b, b) / 2 + dot(b, y)


class Huber(Loss):
    """With r = |x - y|: l(x; y) = r^2 / 2 up to r = delta, then delta r - delta^2 / 2.

    l*(b; y) = b^2 / 2 + b y where |b| <= delta.
    """

    def __init__(self, parameter: Any, d: int) -> None:
        self.delta = exact(positive(parameter))

    def value(self, x: Any, y: Any) -> Any:
        return huber((x - y) * (x - y), abs(x - y), self.delta)

    def conjugate(self, b: Any, y: Any) -> Any:
        need(abs(b) <= self.delta)
        return b * b / 2 + b * y


class Quantile(Loss):
    """l(x; y) = max(-tau (x - y), (1 - tau) (x - y)), where 1 - tau is the double 1.0 - tau.

    l*(b; y) = b y where -tau <= b <= 1 - tau.
    """

    def __init__(self, parameter: Any, d: int) -> None:
        tau = positive(parameter)
        need(tau < 1.0, "tau is not below 1")
        self.tau, self.rest = exact(tau), exact(1.0 - tau)

    def value(self, x: Any, y: Any) -> Any:
        return max(-self.tau * (x - y), self.rest * (x - y))

    def conjugate(self, b: Any, y: Any) -> Any:
        need(-self.tau <= b <= self.rest)
        return b * y


class Expectile(Quantile):
    """With r = x - y: l(x; y) = tau r^2 / 2 where r < 0, else (1 - tau) r^2 / 2, where 1 - tau is the double 1.0 - tau.

    l*(b; y) = b^2 / (2 tau) + b y where b < 0, else b^2 / (2 (1 - tau)) + b y, for every b.
    """

    def value(self, x: Any, y: Any) -> Any:
        return (self.tau if x < y else self.rest) * (x - y) * (x - y) / 2

    def conjugate(self, b: Any, y: Any) -> Any:
        return b * b / (2 * (self.tau if b < 0 else self.rest)) + b * y


class SquaredEpsilon(Huber):
    """l(x; y) = max(0, |x - y| - delta)^2 / 2 and l*(b; y) = b^2 / 2 + delta |b| + b y for every b."""

    def value(self, x: Any, y: Any) -> Any:
        far = above_zero(abs(x - y) - self.delta)
        return far * far / 2

    def conjugate(self, b: Any, y: Any) -> Any:
        return b * b / 2 + self.delta * abs(b) + b * y


class Gamma(Loss):
    """l(x; y) = x + y exp(-x) with y > 0, and l*(b; y) = q log(q / y) - q where q = 1 - b >= 0."""

    def target(self, y: Any) -> Any:
        amount = exact(y)
        need(amount > 0, "amounts are positive")
        return amount

    def value(self, x: Any, y: Any) -> Any:
        return x + y * exp(-x)

    def conjugate(self, b: Any, y: Any) -> Any:
        return y * entropy((1 - b) / y) - (1 - b)


class Classes(Loss):
    """A loss of two classes: the target y is -1 or 1."""

    def target(self, y: Any) -> Any:
        need(y in ("1", "-1"), "the labels are -1 and 1")
        return exact(y)


class Logistic(Classes):
    """l(x; y) = log(1 + exp(-y x)), computed as max(-y x, 0) + log(1 + exp(-|x|)).

    l*(b; y) = q log(q) + (1 - q) log(1 - q) where q = -y b is in [0, 1].
    """

    def value(self, x: Any, y: Any) -> Any:
        return above_zero(-y * x) + log(1 + exp(-abs(x)))

    def conjugate(self, b: Any, y: Any) -> Any:
        return entropy(-y * b) + entropy(1 + y * b)

    def recedes(self, v: Any, y: Any) -> int:
        return FALLS if y * v > 0 else GROWS


class Hinge(Classes):
    """l(x; y) = max(0, 1 - y x) and l*(b; y) = b y where -1 <= b y <= 0."""

    def value(self, x: Any, y: Any) -> Any:
        return above_zero(1 - y * x)

    def conjugate(self, b: Any, y: Any) -> Any:
        need(-1 <= b * y <= 0)
        return b * y

    def recedes(self, v: Any, y: Any) -> int:
        return STAYS if y * v > 0 else GROWS


class SquaredHinge(Hinge):
    """l(x; y) = max(0, 1 - y x)^2 / 2 and l*(b; y) = b^2 / 2 + b y where b y <= 0."""

    def value(self, x: Any, y: Any) -> Any:
        return above_zero(1 - y * x) * above_zero(1 - y * x) / 2

    def conjugate(self, b: Any, y: Any) -> Any:
        need(b * y <= 0)
        return b * b / 2 + b * y


class Poisson(Loss):
    """l(x; y) = exp(x) - y x with y >= 0, and l*(b; y) = q log(q) - q where q = b + y >= 0."""

    def target(self, y: Any) -> Any:
        count = exact(y)
        need(count >= 0, "counts are not negative")
        return count

    def value(self, x: Any, y: Any) -> Any:
        return exp(x) - y * x

    def conjugate(self, b: Any, y: Any) -> Any:
        return entropy(b + y) - (b + y)

    def recedes(self, v: Any, y: Any) -> int:
        return FALLS if v < 0 and y == 0 else GROWS


class Multinomial(Loss):
    """Of a list x, one number per class; y is an index. l(x; y) = log(sum_k exp(x_k)) - x_y, computed as
    m - x_y + log(sum_k exp(x_k - m)) with m = max(x).

    l*(b; y) = sum_k p_k log(p_k), p = b + (1 at y, else 0), where p >= 0 and sum_k b_k = 0.
    """

    vector = True

    def __init__(self, parameter: Any, d: int) -> None:
        self.k = whole(2, d + 1)(parameter)

    def target(self, y: Any) -> Any:
        return whole(0, self.k)(y)

    def value(self, x: Any, y: Any) -> Any:
        return max(x) - x[y] + log(add(exp(v - max(x)) for v in x))

    def conjugate(self, b: Any, y: Any) -> Any:
        need(add(b) == 0)
        return add(entropy(v + 1 if k == y else v) for k, v in enumerate(b))

    def recedes(self, v: Any, y: Any) -> int:
        return FALLS if max(v) == v[y] else GROWS


LOSSES: dict[str, Any] = {
    "squared": Squared,
    "mean": Mean,
    "logistic": Logistic,
    "poisson": Poisson,
    "huber": Huber,
    "quantile": Quantile,
    "multinomial": Multinomial,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "expectile": Expectile,
    "squared_epsilon": SquaredEpsilon,
    "gamma": Gamma,
}


class Block:
    """Terms of one function, each of some numbers that are linear in w."""

    rows: Any = None  # where these are given cell by cell
    shift: Any = None  # what is added to the numbers of each term

    def cells(self, r: int) -> Any:
        """Of each number of a term its cells: (node, column, coefficient)."""
        return self.rows[r]

    def seen(self, r: int, w: Any) -> list[Any]:
        """K_r w, the numbers of a term."""
        return [add(x * w[i][j] for i, j, x in number) for number in self.cells(r)]

    def argument(self, r: int, w: Any, shifted: bool = True) -> Any:
        """The numbers as the function takes them (without what is added to them where not ``shifted``)."""
        z = self.seen(r, w)
        return [p + q for p, q in zip(z, self.shift[r], strict=True)] if shifted and self.shift else z

    def put(self, r: int, u: Any) -> Any:
        """What K_r'u puts at (node, column)."""
        return [((i, j), x * v) for v, number in zip(u, self.cells(r), strict=True) for i, j, x in number]


def cells_of(data: Any, n: int, d: int, k: int) -> list[Any]:
    """The cells of rows, of k numbers each."""

    def cell(data: Any) -> Any:
        i, j, x = array(data, lambda x: x, "cell", 3)
        need(x != "0", "a coefficient of 0")
        return whole(0, n)(i), whole(0, d)(j), exact(x)

    rows = array(data, cell, "rows", None, k, None)
    each = [[(i, j) for i, j, _ in number] for row in rows for number in row]
    need(all(len(set(places)) == len(places) for places in each), "a cell stands twice")
    return rows


def placed(what: str, rows: Any) -> list[Any]:
    """The start of the records of rows: their nodes, each once, and their cells as they are written."""
    return [(what, tuple({i: None for number in row for i, *_ in number}), row) for row in rows]


def recorded(places: Any, stated: Any, *rest: Any) -> list[Any]:
    """The records of terms: where they are, what is stated of all, and the rest of each."""
    return [[*place, *stated, *more] for place, *more in zip(places, *rest, strict=True)]


class Samples(Block):
    """A block of samples of one loss: node and x, or the cells of a row; y, scale s and offset o; k predictors each."""

    def __init__(self, data: Any, n: int, d: int) -> None:
        what = "samples of rows" if isinstance(data, dict) and "rows" in data else "samples"
        kind, parameter, strength, rule, at, weight, x, y, offset = fields(data, what)
        self.kind, self.strength = kind, positive(strength)
        M = self.size = len(array(at, lambda i: i, "node" if what == "samples" else "rows", None))
        need(kind in [*LOSSES], "unknown loss", of=kind)
        self.loss: Any = LOSSES[kind](parameter, d if what == "samples" else whole(1, LISTS)(x))
        k = self.k = self.loss.k
        if what == "samples":
            self.node = array(at, whole(0, n), "node", M)
            need((x is None) == (kind == "mean") and d % k == 0, "the width of x")
            self.x = None if x is None else array(x, exact, "x", M, d // k)
            places: Any = [("sample", (i,), None) for i in at]
        else:
            need(x == k, "a row of this loss has", k, "numbers")
            self.rows, x = cells_of(at, n, d, k), None
            places = placed("sample of a row", at)
        self.y = array(y, self.loss.target, "y", M)
        self.o = self.shift = array(offset, exact, "offset", M, k)
        self.s, rules = self.scales(rule, array(weight, positive, "weight", M))
        self.records = recorded(places, (kind, parameter, strength), rules, weight, x or [None] * M, y, offset)

    def scales(self, rule: Any, weights: list[float]) -> Any:
        """strength * base in doubles, with base the weight / (the sum of the weights of the node, in this order), the
        weight, or weight * number: what graphreg computes is what is meant. And the rules of the records, with these
        sums."""
        if rule == "mean":
            need(self.rows is None, "a row has no node whose samples a mean is of")
            total: dict[int, float] = {}
            for i, w in zip(self.node, weights, strict=True):
                total[i] = total.get(i, 0.0) + w
            bases = [w / total[i] for i, w in zip(self.node, weights, strict=True)]
            rules = [[rule, spell(total[i])] for i in self.node]
        elif rule == "sum":
            bases, rules = weights, [[rule, "1"]] * self.size
        else:
            factors = array(rule, positive, "rule", self.size)
            bases, rules = [w * factor for w, factor in zip(weights, factors, strict=True)], rule
        return scaled(self.strength, bases), rules

    def cells(self, r: int) -> Any:
        if self.rows:
            return self.rows[r]
        i, k = self.node[r], self.k
        if self.x is None:
            return [[(i, c, 1)] for c in range(k)]
        return [[(i, f * k + c, x) for f, x in enumerate(self.x[r])] for c in range(k)]

    def value(self, r: int, x: Any) -> Any:
        return self.s[r] * self.loss.value(x if self.loss.vector else x[0], self.y[r])

    def price(self, r: int, a: Any, bound: bool = True) -> Any:
        """The summand of -Q, the price, and what it puts at (node, column)."""
        s = self.s[r]
        b = [p / s for p in a] if self.loss.vector else a[0] / s
        value = s * self.loss.conjugate(b, self.y[r])
        return value - dot(a, self.o[r]), a, self.put(r, a)

    def recedes(self, r: int, v: Any) -> int:
        """How the loss changes along a direction, by what that adds to the predictors."""
        same = all(t == v[0] for t in v)
        if same and (self.kind == "multinomial" or v[0] == 0):
            return STAYS
        return self.loss.recedes(v if self.loss.vector else v[0], self.y[r])


# ---- penalties: upper bounds of phi(z), and of c phi*(t / c) inside its domain ---------------------------------------
class Penalty:
    """A penalty without a parameter, on k columns; a flow is k numbers."""

    norm = constraint = one_sided = False

    def __init__(self, parameter: Any, k: int) -> None:
        need(parameter is None, "this penalty has no parameter")
        self.k = k

    def flow(self, c: Any, t: Any) -> Any:
        """The flow u that is stated by the numbers t."""
        return t

    def recedes(self, z: Any) -> bool:
        """Whether nothing grows along z, from anywhere."""
        return all(v == 0 for v in z)


class Norm(Penalty):
    """A norm: c phi*(u / c) = 0 where the dual norm of u is at most c."""

    norm = True

    def conjugate(self, c: Any, t: Any) -> Any:
        need(self.dual_norm_is_at_most(c, t))
        return rational(0)

    def dual_norm_is_at_most(self, c: Any, t: Any) -> bool:
        raise NotImplementedError


class L1(Norm):
    """phi(z) = sum_j |z_j|; the dual norm is the largest |u_j|."""

    def value(self, z: Any) -> Any:
        return add(map(abs, z))

    def dual_norm_is_at_most(self, c: Any, t: Any) -> bool:
        return max(map(abs, t)) <= c


class L2(Norm):
    """phi(z) = ||z||; the dual norm is the norm itself."""

    def value(self, z: Any) -> Any:
        return root(dot(z, z))

    def dual_norm_is_at_most(self, c: Any, t: Any) -> bool:
        return c >= 0 and dot(t, t) <= c * c


class LInf(Norm):
    """phi(z) = the largest |z_j|; the dual norm is sum_j |u_j|."""

    def value(self, z: Any) -> Any:
        return max(map(abs, z))

    def dual_norm_is_at_most(self, c: Any, t: Any) -> bool:
        return add(map(abs, t)) <= c


class SquaredL2(Penalty):
    """phi(z) = ||z||^2 / 2, and c phi*(u / c) = ||u||^2 / (2 c) for every u."""

    def value(self, z: Any) -> Any:
        return dot(z, z) / 2

    def conjugate(self, c: Any, t: Any) -> Any:
        return dot(t, t) / (2 * c)


class Quadratic(Penalty):
    """phi(z) = ||R z||^2 / 2 with the root R, a list of rows, at most as many as columns.

    A flow is stated by t, one number per row: u = c R't. Then c phi*(u / c) <= c ||t||^2 / 2.
    """

    def __init__(self, parameter: Any, k: int) -> None:
        self.root = array(parameter, exact, "parameter", None, k)
        self.k = len(self.root)
        need(0 < self.k <= k, "the root of a Quadratic has as many rows as its rank")

    def value(self, z: Any) -> Any:
        return add(dot(row, z) * dot(row, z) for row in self.root) / 2

    def conjugate(self, c: Any, t: Any) -> Any:
        return c * dot(t, t) / 2

    def flow(self, c: Any, t: Any) -> Any:
        return [c * dot(column, t) for column in zip(*self.root, strict=True)]

    def recedes(self, z: Any) -> bool:
        return all(dot(row, z) == 0 for row in self.root)


class HuberNorm(Penalty):
    """With r = ||z||: phi(z) = r^2 / 2 up to r = delta, then delta r - delta^2 / 2.

    c phi*(u / c) = ||u||^2 / (2 c) where ||u|| <= c delta.
    """

    def __init__(self, parameter: Any, k: int) -> None:
        self.delta, self.k = exact(positive(parameter)), k

    def value(self, z: Any) -> Any:
        return huber(dot(z, z), root(dot(z, z)), self.delta)

    def conjugate(self, c: Any, t: Any) -> Any:
        need(dot(t, t) <= c * self.delta * c * self.delta)
        return dot(t, t) / (2 * c)


class Zero(Penalty):
    """The constraint z = 0; phi*(u) = 0 for every u."""

    constraint = True

    def value(self, z: Any) -> Any:
        need(all(v == 0 for v in z))
        return rational(0)

    def conjugate(self, c: Any, t: Any) -> Any:
        return rational(0)


class Ball(Penalty):
    """The constraint ||z|| <= radius; phi*(u) = radius ||u|| for every u."""

    constraint = True

    def __init__(self, parameter: Any, k: int) -> None:
        self.radius, self.k = exact(positive(parameter)), k

    def value(self, z: Any) -> Any:
        need(dot(z, z) <= self.radius * self.radius)
        return rational(0)

    def conjugate(self, c: Any, t: Any) -> Any:
        return self.radius * root(dot(t, t))


class Box(Penalty):
    """The constraint low <= z <= high, k pairs in which null is no bound; phi*(u) = sum_j max(low_j u_j, high_j u_j),
    where no u_j is on the side of a bound that is not there."""

    constraint = one_sided = True

    def __init__(self, parameter: Any, k: int) -> None:
        self.bounds, self.k = array(parameter, lambda v: None if v is None else exact(v), "parameter", k, 2), k

    def value(self, z: Any) -> Any:
        for v, (low, high) in zip(z, self.bounds, strict=True):
            need((low is None or low <= v) and (high is None or v <= high))
        return rational(0)

    def conjugate(self, c: Any, t: Any) -> Any:
        ends = [
            rational(0) if v == 0 else high if v > 0 else low for v, (low, high) in zip(t, self.bounds, strict=True)
        ]
        need(None not in ends)
        return dot(t, ends)

    def recedes(self, z: Any) -> bool:
        sides = zip(z, self.bounds, strict=True)
        return all((low is None or v >= 0) and (high is None or v <= 0) for v, (low, high) in sides)


class NonNegative(Box):
    """The constraint z >= 0; phi*(u) = 0 where u <= 0."""

    def __init__(self, parameter: Any, k: int) -> None:
        need(parameter is None, "this penalty has no parameter")
        super().__init__([["0", None]] * k, k)


PENALTIES: dict[str, Any] = {
    "L1": L1,
    "L2": L2,
    "LInf": LInf,
    "SquaredL2": SquaredL2,
    "Quadratic": Quadratic,
    "HuberNorm": HuberNorm,
    "Zero": Zero,
    "Ball": Ball,
    "NonNegative": NonNegative,
    "Box": Box,
}


class Rows(Block):
    """A block of rows of one penalty: weight c and centre of each, and of each of its k numbers the cells."""

    def __init__(self, data: Any, n: int, d: int) -> None:
        kind, parameter, strength, k, rows, weight, center = fields(data, "rows")
        self.rows = cells_of(rows, n, d, whole(1, LISTS)(k))
        self.read(placed("row", rows), k, (kind, parameter, strength), weight, center)

    def read(self, places: list[Any], width: int, stated: Any, weight: Any, center: Any) -> None:
        """What rows and edges have alike."""
        kind, parameter, strength = stated
        m, self.kind, self.strength = len(places), kind, positive(strength)
        need(kind in [*PENALTIES], "unknown penalty", of=kind)
        self.penalty: Any = PENALTIES[kind](parameter, width)
        self.k = self.penalty.k
        self.size, self.center = m, None if center is None else array(center, exact, "center", m, width)
        self.shift = self.center and [[-x for x in row] for row in self.center]
        weights = array(weight, positive, "weight", m)
        factors = [self.strength, *weights]
        need(not self.penalty.constraint or all(x == 1.0 for x in factors), "a constraint has no weight")
        self.c = scaled(self.strength, weights)
        self.records = recorded(places, stated, weight, center or [None] * m)

    def value(self, e: int, z: Any) -> Any:
        return self.c[e] * self.penalty.value(z)

    def price(self, e: int, t: Any, bound: bool = True) -> Any:
        """The summand of -Q, the flow, and what it puts at (node, column); where not ``bound``, of a flow that has no
        domain and no value."""
        c = self.c[e]
        u = self.penalty.flow(c, t)
        value = self.penalty.conjugate(c, t) if bound else rational(0)
        return value + (dot(u, self.center[e]) if self.center else 0), u, self.put(e, u)

    def recedes(self, e: int, z: Any) -> int:
        return STAYS if self.penalty.recedes(z) else GROWS


class Edges(Rows):
    """A block of edges of one penalty: their rows are w_tail - w_head (head -1: the ground) on some columns."""

    def __init__(self, data: Any, n: int, d: int) -> None:
        kind, parameter, strength, self.tail, self.head, weight, columns, center = fields(data, "edges")
        m = len(array(self.tail, whole(0, n), "tail", None))
        ends = zip(self.tail, array(self.head, whole(-1, n), "head", m), strict=True)
        loops = [e for e, (i, j) in enumerate(ends) if i == j]
        need(not loops, "edge", *loops[:1], "is a loop")
        self.columns, width = array(columns, whole(0, d), "features", None), len(columns)
        need(width > 0 and len(set(columns)) == width, "the features are distinct columns")
        places = [("edge", ends, columns) for ends in zip(self.tail, self.head, strict=True)]
        self.read(places, width, (kind, parameter, strength), weight, center)
        even = center is None and not self.penalty.one_sided
        need(even or all(j == -1 for j in self.head), "a centre, or a one-sided penalty, between nodes")

    def cells(self, r: int) -> Any:
        i, j = self.tail[r], self.head[r]
        return [[(i, f, 1), (j, f, -1)] if j >= 0 else [(i, f, 1)] for f in self.columns]


def scaled(strength: float, factors: list[float]) -> list[Any]:
    """strength * factor as a double computes it: no 0 and not infinite."""
    products = [strength * x for x in factors]
    need(all(0.0 < x < inf for x in products), "a scale that is no positive double")
    return [exact(x) for x in products]


# ---- the proof -------------------------------------------------------------------------------------------------------
class Model:
    """The problem that a proof states."""

    def __init__(self, data: Any) -> None:
        self.labels, self.columns, samples, edges = fields(data, "model")
        for what, names in (("labels", self.labels), ("columns", self.columns)):
            need(names and all(array(names, lambda x: isinstance(x, str), what, None)), what, "are strings, and some")
            last = {name: k for k, name in enumerate(names)}
            twice = [name for k, name in enumerate(names) if last[name] != k]
            need(not twice, "of the", what, *map(repr, twice[:1]), "stands twice")
        self.n, self.d = n, d = len(self.labels), len(self.columns)
        self.blocks: list[Any] = array(samples, lambda block: Samples(block, n, d), "samples", None)
        self.m = len(self.blocks)
        self.blocks += array(
            edges,
            lambda block: (Rows if isinstance(block, dict) and "rows" in block else Edges)(block, n, d),
            "edges",
            None,
        )

    def hash(self) -> str:
        """SHA-256 over the sorted records of all that P depends on; the order of nodes, samples and edges is free."""
        records: list[Any] = [["columns", self.columns], *(["node", label] for label in self.labels)]
        for block in self.blocks:
            for what, nodes, at, *rest in block.records:
                ends = sorted(self.labels[i] for i in nodes if i >= 0)
                records.append([what, ends, at and [self.named(each) for each in at], *rest])
        lines = sorted(json.dumps(record, separators=(",", ":")) for record in records)
        return hashlib.sha256("\n".join([FORMAT, *lines]).encode()).hexdigest()

    def named(self, at: Any) -> Any:
        """A column by its name; the cells of a number by those of their nodes and columns, in order."""
        cells = isinstance(at, list)
        return sorted([self.labels[i], self.columns[j], x] for i, j, x in at) if cells else self.columns[at]

    def listed(self, b: int) -> str:
        """Where a block stands in the file."""
        return f"samples[{b}]" if b < self.m else f"edges[{b - self.m}]"

    def point(self, data: Any) -> Any:
        """Per block, samples first, the prices or flows."""
        flows, prices = fields(data, "dual")
        flows, prices = array(flows, lambda t: t, "flows", None), array(prices, lambda t: t, "prices", None)
        need([len(prices), len(flows)] == [self.m, len(self.blocks) - self.m], "a block of the dual point for each")
        both = enumerate(zip(self.blocks, prices + flows, strict=True))
        return [array(t, number, f"dual point of {self.listed(k)}", b.size, b.k) for k, (b, t) in both]

    def terms(self) -> Any:
        before = STATE.where
        for b, block in enumerate(self.blocks):
            for i, (_, nodes, *_) in enumerate(block.records):
                names = " - ".join(repr(self.labels[j])[:40] for j in nodes[:9] if j >= 0)
                STATE.where = f"{before}{block.kind} {i} of {self.listed(b)} ({names}): "
                need(time.monotonic() < STATE.end, "the time is up (--seconds)")
                yield b, i, block
        STATE.where = before

    def primal(self, w: Any) -> int:
        """P(w) in units of 2^-UNIT, rounded up."""
        return sum(up(block.value(i, block.argument(i, w))) for _, i, block in self.terms())

    def residuals(self, w: Any, point: Any) -> int:
        """P(w) - Q(point), rounded up, as a sum of l(x) + l*(a) - <x, a>, which are all 0 at optima."""
        total = 0
        for b, i, block in self.terms():
            conjugate, u, _ = block.price(i, point[b][i])
            value = block.value(i, block.argument(i, w))
            total += up(value + conjugate - dot(u, block.argument(i, w, False)))
        return total

    def dual(self, point: Any, within: Any = None, free: Any = None) -> int:
        """A lower bound of inf P in units of 2^-UNIT; of that over |w_ij| <= within; over w that agree across the edge
        (block, edge) ``free``, whose flow has no domain."""
        rest: dict[Any, Any] = {}
        total = 0
        for b, i, block in self.terms():
            conjugate, _, put = block.price(i, point[b][i], (b, i) != free)
            total += up(conjugate)
            for place, v in put:
                rest[place] = charge(rest.get(place, 0) + v)
        for (i, j), v in rest.items():
            if v != 0:
                place = f"at {self.labels[i]!r:.40}, {self.columns[j]!r:.40}:"
                need(within is not None, "flows and prices do not balance", place, shown(v), "is left")
                total += up(within * abs(v))
        return -total


def kept(c: Any, gap: Any, r: Any) -> Any:
    """The capacity c' that a flow u of an edge of capacity c must keep, so that phi(z) <= r at every optimum.

    c phi(z) - <u, z> <= gap there, and <u, z> <= c' phi(z) where the dual norm of u is at most c'; so
    (c - c') phi(z) <= gap, which says phi(z) <= r where gap <= (c - c') r and c' < c. Where the gap is 0 any c' < c
    serves, and c itself does not: a flow of dual norm c belongs to any z.
    """
    return min(c - gap / r, inside(c))


def inside(c: Any) -> Any:
    """A capacity a little below c."""
    return c * (1 - rational(1, 1 << 64))


class Proof:
    """A proof that holds: the model, its hash, the bounds in units of 2^-UNIT, and what is said.

    ``low`` and ``high`` are the best bounds that are claimed. Where ``within`` is a number B, all is said of the w with
    entries up to B, and nothing of the infimum.
    """

    def __init__(self, data: Any) -> None:
        version, model, w, dual, within, claims = fields(data, "proof")
        need(version == FORMAT, "this is for the format", FORMAT)
        self.model = m = Model(model)
        self.hash, self.w, self.point = m.hash(), array(w, number, "w", m.n, m.d), m.point(dual)
        self.within = self.box(within)
        self.upper, self.lower = m.primal(self.w), m.dual(self.point, self.within)
        need(self.lower <= self.upper, "the bounds cross, which only a faulty checker can say")
        says = array(claims, claimed, "claims", None)
        need({"bounds"} <= set(says) <= set(CLAIMS), "'bounds' must be claimed, and else only", *CLAIMS[1:])
        gap = self.upper - self.lower
        if self.within is None and {"near", "fused", "held"} & set(says):
            gap = min(gap, m.residuals(self.w, self.point))
        self.gap, self.said = rational(gap, 1 << UNIT), list[str]()
        self.low: Any = None
        self.high: Any = None
        for k, (claim, what) in enumerate(zip(claims, says, strict=True)):
            STATE.where = f"claim {k}, {what}: "
            self.said.append(getattr(self, what)(*fields(claim, what)[1:]))
        STATE.where = ""

    def box(self, within: Any) -> Any:
        if within is None:
            return None
        size = number(within)
        need(size >= 1 << BOX, "a proof among the w of a box smaller than", f"2^{BOX} says nothing of the infimum")
        need(all(abs(v) <= size for row in self.w for v in row), "w is not within the box")
        return size

    @property
    def among(self) -> str:
        """What the statements are limited to."""
        return "" if self.within is None else f" among all w with entries up to {shown(self.within, -1)}"

    def bounds(self, lower: Any, upper: Any) -> str:
        low, high = number(lower), number(upper)
        ends = [rational(bound, 1 << UNIT) for bound in (self.lower, self.upper)]
        need(low <= ends[0] and ends[1] <= high, "what is proved is", *map(shown, ends, (-1, 1)))
        self.low = low if self.low is None else max(low, self.low)
        self.high = high if self.high is None else min(high, self.high)
        return f"{shown(low, -1)} <= infimum{self.among} <= {shown(high, 1)}"

    def near(self, block: Any, edge: Any, distance: Any) -> str:
        """phi(z) <= r at every optimum, see `kept`."""
        e, i, t, ends = self.edge(block, edge)
        r = number(distance)
        need(r > 0, "a distance is positive; that there is none is what `fused` says")
        capacity = kept(e.c[i], self.gap, r)
        need(capacity > 0, "the gap is too large for this distance")
        need(e.penalty.dual_norm_is_at_most(capacity, t), "the slack of the flow is too small for this distance")
        what = "the difference " if e.rows is None else ""
        return f"{e.kind} of {what}{ends} is at most {shown(r, 1)} at every optimum{self.among}"

    def fused(self, block: Any, edge: Any) -> str:
        """z = 0 at every optimum: the gap is 0, and the flow is inside its capacity."""
        e, i, t, ends = self.edge(block, edge)
        need(self.gap == 0, "the gap is not exactly 0")
        need(e.penalty.dual_norm_is_at_most(inside(e.c[i]), t), "the flow has no slack")
        return f"{ends} {'are equal' if e.rows is None else 'holds'} at every optimum{self.among}"

    held = fused  # of rows

    def split(self, block: Any, edge: Any, dual: Any) -> str:
        """No optimum has z = 0: even the lower bound of what that costs lies above P(w)."""
        e, i, _, ends = self.edge(block, edge)
        bound = self.model.dual(self.model.point(dual), self.within, (self.model.m + block, i))
        need(bound > self.upper, "equality is not excluded")
        return f"{ends} {'differ at every' if e.rows is None else 'holds at no'} optimum{self.among}"

    def unattained(self, direction: Any) -> str:
        """Along the direction no term grows, from anywhere, and one falls for ever."""
        v = array(direction, number, "direction", self.model.n, self.model.d)
        states = [block.recedes(i, block.argument(i, v, False)) for _, i, block in self.model.terms()]
        need(min(states) > GROWS and max(states) == FALLS, "a term grows along the direction, or none falls for ever")
        return "no minimum is attained" + (" among all w of any size" if self.among else "")

    def edge(self, block: Any, edge: Any) -> Any:
        """Of the edge or row that a claim is about: its block, its place there, its flow, and its ends by name."""
        m, labels = self.model.m, self.model.labels
        b = m + whole(0, len(self.model.blocks) - m)(block)
        e, i = self.model.blocks[b], whole(0, self.model.blocks[b].size)(edge)
        need(e.penalty.norm and (e.center is None or e.rows), "only norms without a centre fuse and split")
        ends = " - ".join(repr(labels[j]) for j in e.records[i][1] if j >= 0)
        if e.rows is not None:
            ends = f"row {i} of {self.model.listed(b)} ({ends:.99})"
        elif len(e.columns) < self.model.d:
            ends += f" in {', '.join(repr(self.model.columns[f]) for f in e.columns)}"
        return e, i, self.point[b][i], ends

    def relative_gap(self) -> Any:
        """(high - low) / max(|low|, |high|) of the claimed bounds; 0 where both are 0."""
        size = max(abs(self.low), abs(self.high))
        return (self.high - self.low) / size if size > 0 else size

    def __str__(self) -> str:
        sizes = ", ".join(f"{b.size} {b.kind} of strength {b.strength!r}" for b in self.model.blocks)
        problem = f"{self.model.n} nodes, {self.model.d} columns; {sizes}"
        apart, relative = shown(self.high - self.low, 1), shown(self.relative_gap(), 1)
        gap = f"the bounds are at most {apart} apart, {relative} of the larger"
        first = f"PROVED{' WITHIN A BOX ONLY' if self.among else ''} for the model {self.hash}:"
        return "\n  ".join([first, problem, *self.said, gap])


# ---- proofs of problems in conic form --------------------------------------------------------------------------------
def matrix(data: Any, name: str, m: int, n: int) -> list[dict[int, Any]]:
    """The rows of a matrix from its entries [row, column, number], which are in order, and not 0."""
    rows: list[dict[int, Any]] = [{} for _ in range(m)]
    before = (-1, -1)
    for i, j, x in array(data, lambda each: each, name, None, 3):
        at = (whole(0, m)(i), whole(0, n)(j))
        need(before < at and x != "0", "entries that are 0, or not in order, at", at)
        rows[i][j], before = exact(x), at
    return rows


def times(row: dict[int, Any], y: Any) -> Any:
    need(time.monotonic() < STATE.end, "the time is up (--seconds)")
    return add(v * y[j] for j, v in row.items())


def solved(square: list[list[Any]], c: list[Any]) -> list[Any]:
    """The solution of a linear system; without flint by eliminations among integers (Bareiss)."""
    need(len(c) <= EQUATIONS, "too many equations at a time")
    if STATE.flint and c:
        x = flint.fmpq_mat(square).solve(flint.fmpq_mat([[v] for v in c]))
        return [charge(x[i, 0]) for i in range(len(c))]
    both = [[*row, right] for row, right in zip(square, c, strict=True)]
    rows = [[int(v * lcm(*(u.denominator for u in row))) for v in row] for row in both]
    before = 1
    for k in range(len(rows)):
        rows[k:] = sorted(rows[k:], key=lambda row: row[k] == 0)
        top = rows[k]
        for i, row in enumerate(rows):
            need(time.monotonic() < STATE.end, "the time is up (--seconds)")
            if i != k:
                rows[i] = [charge(top[k] * a - row[k] * b) // before for a, b in zip(row, top, strict=True)]
        before = top[k]
    return [rational(row[-1], row[i]) for i, row in enumerate(rows)]


def settled(data: Any, M: list[dict[int, Any]], c: list[Any], width: int) -> list[Any]:
    """The numbers y of a point, with M y = c: doubles, some of which are computed again. At ``columns`` they solve the
    equations of ``rows``; of pairs (row, column) in ``last`` each follows from all others in its row."""
    stated, rows, columns, last = fields(data, "point")
    y, inner = array(stated, exact, "y", width), array(columns, whole(0, width), "columns", None)
    within, at = set(inner), array(rows, whole(0, len(M)), "rows", len(inner))
    right = [c[i] - times({j: v for j, v in M[i].items() if j not in within}, y) for i in at]
    for j, v in zip(inner, solved([[M[i].get(j, rational(0)) for j in inner] for i in at], right), strict=True):
        y[j] = v
    for k, (i, j) in enumerate(array(last, whole(0, len(M) + width), "last", None, 2)):
        need(i < len(M) and j in M[i], f"last: {k}: no equation", i, "with the number", j)
        y[j] += charge((c[i] - times(M[i], y)) / M[i][j])
    need(all(times(row, y) == v for row, v in zip(M, c, strict=True)), "the equations do not hold")
    return y


def semidefinite(symmetric: list[dict[int, Any]]) -> bool:
    """True where no pivot of an elimination is negative, and those that are 0 have nothing beside them."""
    rows = [dict(row) for row in symmetric]
    for i, row in enumerate(rows):
        pivot, rest = row.get(i, 0), {j: v for j, v in row.items() if j > i and v != 0}
        if pivot < 0 or (pivot == 0 and rest):
            return False
        for j, v in rest.items():
            for k, u in rest.items():
                rows[j][k] = charge(rows[j].get(k, 0) - v * u / pivot)
    return True


def is_square(k: int, v: list[Any]) -> bool:
    """True where a matrix is positive semidefinite, whose upper triangle stands in v column by column, and off the
    diagonal times any number that is 2^0.5 but for 2^-50 of it."""
    S: list[dict[int, Any]] = [{} for _ in range(k)]
    entries, root = iter(v), exact(2**0.5)
    for j in range(k):
        for i in range(j + 1):
            S[i][j] = S[j][i] = next(entries) / (1 if i == j else root)
    for i, row in enumerate(S):
        row[i] -= add(abs(x) for j, x in row.items() if j != i) / (1 << 50)
    return semidefinite(S)


def is_exponential(x: Any, y: Any, z: Any, power: int) -> bool:
    """y exp(x / y - power) <= z, y > 0, or its limit."""
    return (y > 0 and z > 0 and y * (log(y / z) - power) + x <= 0) or (y == 0 and x <= 0 <= z)


def is_power(a: Any, x: Any, y: Any, z: Any) -> bool:
    """x^a y^(1 - a) >= |z|, x >= 0, y >= 0."""
    if x > 0 and y > 0 and z != 0:
        return a * log(1 / x) + (1 - a) * log(1 / y) + log(abs(z)) <= 0
    return x >= 0 and y >= 0 and z == 0


def is_inside(kind: str, size: int, a: Any, v: list[Any], dual: bool) -> bool:
    """True where v is in a cone, or in its dual cone."""
    if kind == "zero":
        return dual or all(x == 0 for x in v)
    if kind == "nonneg":
        return min(v) >= 0
    if kind == "soc":
        return v[0] >= 0 and dot(v, v) <= 2 * v[0] * v[0]
    if kind == "psd":
        return is_square(size, v)
    x, y, z = v
    if kind == "exp":
        return is_exponential(-y, -x, z, 1) if dual else is_exponential(x, y, z, 0)
    return is_power(a, x / a, y / (1 - a), z) if dual else is_power(a, x, y, z)


class Conic(Proof):
    """A proof that holds, of bounds of a problem in conic form,

        minimise 1/2 x'Px + q'x over b - A x in K, K a product of cones,

    or that it has no point, or no bound. What is said is of its value + offset, or of the opposite of this.
    """

    within = None

    def __init__(self, data: Any) -> None:
        _, problem, claims = fields(data, "conic proof")
        STATE.work = WORK << 6
        self.sense, offset, P, q, A, b, cones = fields(problem, "conic problem")
        need(self.sense in ("minimise", "maximise"), "no sense:", self.sense)
        self.offset, self.q, self.b = exact(offset), array(q, exact, "q", None), array(b, exact, "b", None)
        self.n, self.m = len(q), len(b)
        self.A, self.P = matrix(A, "A", self.m, self.n), matrix(P, "P", self.n, self.n)
        self.slack = [{**row, self.n + i: rational(1)} for i, row in enumerate(self.A)]
        self.adjoint: list[dict[int, Any]] = [{} for _ in q]
        for i, row in enumerate(self.A):
            for j, x in row.items():
                self.adjoint[j][i] = x
        need(all(x == self.P[j].get(i) for i, row in enumerate(self.P) for j, x in row.items()), "P is not symmetric")
        self.cones = [self.cone(*cone) for cone in array(cones, lambda each: each, "cones", None, 3)]
        need(sum(rows for _, _, rows, _ in self.cones) == self.m, "the cones have other rows than b")
        text = json.dumps(problem, separators=(",", ":"), sort_keys=True)
        self.hash = hashlib.sha256(f"{CONIC}\n{text}".encode()).hexdigest()
        self.low: Any = None
        self.high: Any = None
        self.said = []
        for k, (claim, what) in enumerate(array(claims, lambda claim: (claim, claimed(claim)), "claims", None)):
            STATE.where = f"claim {k}, {what}: "
            need(what in ("lower", "upper", "infeasible", "unbounded"), "this cannot be said")
            self.said.append(getattr(self, what)(*fields(claim, f"{what} of a problem")[1:]))
        STATE.where = ""
        need(None in (self.low, self.high) or self.low <= self.high, "the bounds cross: this checker is faulty")

    def cone(self, kind: Any, size: Any, parameter: Any) -> Any:
        """The kind, the size, the number of rows, and the parameter."""
        need(kind in CONES, "a cone of no known kind")
        k = whole(1, LISTS)(size)
        need(k == 3 or kind not in ("exp", "pow"), "this cone has three rows")
        need((kind == "pow") == (parameter is not None), "only powers have a parameter")
        a = exact(parameter) if kind == "pow" else rational(0)
        need(kind != "pow" or 0 < a < 1, "a power is between 0 and 1")
        return kind, k, k * (k + 1) // 2 if kind == "psd" else k, a

    def inside(self, v: list[Any], dual: bool) -> None:
        at = 0
        for b, (kind, size, rows, a) in enumerate(self.cones):
            need(is_inside(kind, size, a, v[at : at + rows], dual), f"a point is outside cone {b} ({kind})")
            at += rows

    def curve(self, x: list[Any]) -> Any:
        """x'Px / 2."""
        return add(x[i] * times(row, x) for i, row in enumerate(self.P)) / 2

    def primal(self, point: Any) -> Any:
        """An upper bound of the minimum: its value at x, from numbers (x, s) with A x + s = b."""
        y = settled(point, self.slack, self.b, self.n + self.m)
        self.inside(y[self.n :], dual=False)
        return dot(self.q, y[: self.n]) + self.curve(y)

    def dual(self, point: Any) -> Any:
        """A lower bound of it: -b'z - u'Pu / 2, from numbers (z, u) with A'z + P u = -q."""
        rows = [{**up, **{self.m + j: v for j, v in row.items()}} for up, row in zip(self.adjoint, self.P, strict=True)]
        y = settled(point, rows, [-q for q in self.q], self.m + self.n)
        self.inside(y[: self.m], dual=True)
        need(semidefinite(self.P), "P is not positive semidefinite")
        return -dot(self.b, y[: self.m]) - self.curve(y[self.m :])

    def bound(self, says: str, point: Any) -> Any:
        least = self.sense == "minimise"
        value = self.offset + (self.primal if least == (says == "upper") else self.dual)(point)
        return value if least else -value

    def lower(self, bound: Any, point: Any) -> str:
        self.low, proved = number(bound), self.bound("lower", point)
        need(self.low <= proved, "what is proved is", shown(proved, -1))
        return f"{shown(self.low, -1)} <= the optimal value"

    def upper(self, bound: Any, point: Any) -> str:
        self.high, proved = number(bound), self.bound("upper", point)
        need(proved <= self.high, "what is proved is", shown(proved, 1))
        return f"the optimal value <= {shown(self.high, 1)}"

    def infeasible(self, point: Any) -> str:
        """Numbers z with A'z = 0 and b'z < 0: of no x is (b - A x)'z >= 0, as it is where b - A x is in K."""
        z = settled(point, self.adjoint, [rational(0)] * self.n, self.m)
        self.inside(z, dual=True)
        need(dot(self.b, z) < 0, "b'z is not negative")
        return "no point satisfies the constraints as they are stored"

    def unbounded(self, point: Any, direction: Any) -> str:
        """A point, and a direction (d, s) with A d + s = 0 and P d = 0 along which the value falls for ever."""
        self.primal(point)
        y = settled(direction, self.slack + self.P, [rational(0)] * (self.m + self.n), self.n + self.m)
        self.inside(y[self.n :], dual=False)
        need(dot(self.q, y[: self.n]) < 0, "the value does not fall")
        return f"the optimal value has no {'lower' if self.sense == 'minimise' else 'upper'} bound"

    def relative_gap(self) -> Any:
        """That of `Proof`; where one bound is claimed alone more than any double, where none is 0."""
        ends = [self.low, self.high]
        return super().relative_gap() if None not in ends else rational((2 - ends.count(None)) << 1024)

    def __str__(self) -> str:
        sizes = ", ".join(f"{kind} {size}" for kind, size, *_ in self.cones[:8])
        problem = f"{self.sense}, {self.n} columns, {self.m} rows in {len(self.cones)} cones: {sizes}"
        first = f"PROVED for the problem {self.hash}:"
        both = self.low is not None and self.high is not None
        gap = [f"the bounds are at most {shown(self.relative_gap(), 1)} of the larger apart"] if both else []
        return "\n  ".join([first, problem + ", ..." * (len(self.cones) > 8), *self.said, *gap])


def check(text: bytes, with_flint: bool = True, seconds: float = 3600.0) -> Proof:
    """The proof in a file, where it is one; raises `NotProvedError` where not."""
    begin(with_flint, seconds)
    try:
        data = load(text)
        if not isinstance(data, dict) or data.get("format") != CONIC:
            return Proof(data)
        found = Conic(data)
        need(found.said, "nothing is claimed")
        return found
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        what = "broken JSON" if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise NotProvedError(f"{STATE.where}{what}: {error}"[:300]) from None


def not_negative(s: str) -> float:
    x = float(s)
    if not 0.0 <= x < inf:
        raise ValueError
    return x


def read(arguments: list[str] | None) -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description="Check a proof of graphreg, in exact arithmetic.")
    parser.add_argument("proof")
    parser.add_argument("--model", metavar="HASH", help="what it must be of: problem.hash(), gr.certify(problem).hash")
    parser.add_argument(
        "--gap",
        metavar="G",
        type=not_negative,
        help=f"exit status {WIDE_GAP} where the bounds are further apart than G times the larger of their sizes",
    )
    parser.add_argument("--no-flint", action="store_true", help="compute with the standard library alone")
    parser.add_argument("--seconds", type=not_negative, default=3600.0)
    asked = parser.parse_args(arguments)
    if asked.model is not None and not HASH.fullmatch(asked.model):
        parser.error(f"argument --model: no hash, 64 of 0-9 and a-f: {asked.model!a}; `graphreg hash` has a file's")
    return asked


def main(arguments: list[str] | None = None) -> int:
    asked = read(arguments)
    try:
        with open(asked.proof, "rb") as file:
            text = file.read(FILE + 1)
        if not any(f'"{name}"'.encode() in text for name in (FORMAT, CONIC)):
            raise OSError(0, f'this is no proof of graphreg: nothing in it says "{FORMAT}"')
        proof = check(text, not asked.no_flint, asked.seconds)
        need(asked.model in (None, proof.hash), "the proof is of another model,", proof.hash)
    except OSError as error:
        print(f"Error: {asked.proof!a}: {error.strerror}", file=sys.stderr)
        return NO_PROOF
    except NotProvedError as error:
        print(f"NOT PROVED: {error}")
        return NOT_PROVED
    print(proof)
    if asked.model is None:
        print("This holds of the problem that the file states. Whether that is yours, its hash says: see --model.")
    if asked.gap is not None and proof.relative_gap() > exact(asked.gap):
        print(f"WIDE: --gap {asked.gap!r} asks for bounds that are closer.")
        return WIDE_GAP
    if proof.within is not None:
        print("WITHIN A BOX ONLY: of w with larger entries, and so of the infimum, nothing is proved.")
        return WITHIN_A_BOX
    return PROVED


if __name__ == "__main__":
    sys.exit(main())
