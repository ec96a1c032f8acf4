"""The formulas of the checker of proofs, each beside one of a second hand, and the ends of all domains."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from benchmarks import honest
from benchmarks.forged_claims import beyond
from graphreg import verify
from graphreg.verify import NotProvedError

flint = pytest.importorskip("flint")
F = Fraction
DIGITS = 2000  # bits of the arithmetic that judges
TINY = F(1, 1 << 9000)


@pytest.fixture(autouse=True, params=[True, False], ids=["flint", "fractions"])
def _arithmetic(request):
    flint.ctx.prec, before = DIGITS, flint.ctx.prec
    verify.begin(request.param)
    yield
    verify.begin()
    flint.ctx.prec = before


def number(x):
    return verify.rational(x.numerator, x.denominator)


def ball(x):
    return flint.arb(flint.fmpq(int(x.numerator), int(x.denominator)))


def draw(rng, size=4):
    return F(rng.randint(-size << 40, size << 40), 1 << 40)


def judged(bound, true):
    """At least the true value, and hardly above it; the value itself where that is rational."""
    if isinstance(true, F):
        assert F(int(bound.numerator), int(bound.denominator)) == true
        return
    excess = ball(bound) - true
    assert excess > -(flint.arb(2) ** -1500)
    assert excess <= flint.arb(2) ** -150 * (1 + abs(true))


# ---- losses, by other formulas than the checker's --------------------------------------------------------------------
def steep(r, delta):
    """The Huber function of r >= 0, as a difference of squares."""
    over = r - delta if r > delta else 0 * r
    return (r * r - over * over) / 2


VALUES = {
    "squared": lambda x, y: (x * x - 2 * x * y + y * y) / 2,
    "mean": lambda x, y: sum((p * p - 2 * p * q + q * q for p, q in zip(x, y, strict=True)), F(0)) / 2,
    "logistic": lambda x, y: (1 + ball(-x * y).exp()).log(),
    "poisson": lambda x, y: ball(x).exp() - ball(x * y),
    "huber": lambda x, y: steep(abs(y - x), F(5, 4)),
    "quantile": lambda x, y: F(1, 4) * (x - y) if x > y else F(3, 4) * (y - x),
    "multinomial": lambda x, y: sum(ball(v).exp() for v in x).log() - ball(x[y]),
    "hinge": lambda x, y: F(0) if x * y >= 1 else 1 - x * y,
    "squared_hinge": lambda x, y: F(0) if x * y >= 1 else (x - y) ** 2 / 2,
    "expectile": lambda x, y: (F(1, 8) if x > y else F(3, 8)) * (x * x - 2 * x * y + y * y),
    "squared_epsilon": lambda x, y: max(x - y - F(5, 4), y - x - F(5, 4), F(0)) ** 2 / 2,
    "gamma": lambda x, y: ball(x) + ball(y) / ball(x).exp(),
}
TARGETS = {"squared": "3p-1", "poisson": "3", "huber": "7", "quantile": "7"}


def slog(q):
    return ball(q) * ball(q).log() if q else flint.arb(0)


CONJUGATES = {
    "squared": lambda b, y: ((b + y) ** 2 - y * y) / 2,
    "mean": lambda b, y: sum(((p + q) ** 2 - q * q for p, q in zip(b, y, strict=True)), F(0)) / 2,
    "logistic": lambda b, y: slog(abs(b)) + slog(1 - abs(b)),
    "poisson": lambda b, y: slog(b + y) - ball(b + y),
    "huber": lambda b, y: ((b + y) ** 2 - y * y) / 2,
    "quantile": lambda b, y: b * y,
    "multinomial": lambda b, y: sum(slog(v + (k == y)) for k, v in enumerate(b)),
    "hinge": lambda b, y: -abs(b),
    "squared_hinge": lambda b, y: b * b / 2 - abs(b),
    "expectile": lambda b, y: b * (y + b * (2 if b > 0 else F(2, 3))),
    "squared_epsilon": lambda b, y: ((abs(b) + F(5, 4)) ** 2 - F(25, 16)) / 2 + b * y,
    "gamma": lambda b, y: slog(1 - b) - ball(1 - b) * (1 + ball(y).log()),
}
WITHIN = {  # prices in their domains, from a number t in [0, 1]
    "squared": lambda t, y: 9 * t - 4,
    "logistic": lambda t, y: -t * y,
    "poisson": lambda t, y: 5 * t - y,
    "huber": lambda t, y: F(5, 4) * (2 * t - 1),
    "quantile": lambda t, y: t - F(3, 4),
    "hinge": lambda t, y: -t * y,
    "squared_hinge": lambda t, y: -9 * t * y,
    "expectile": lambda t, y: 9 * t - 4,
    "squared_epsilon": lambda t, y: 9 * t - 4,
    "gamma": lambda t, y: 1 - 5 * t,
}


def sample(loss, y):
    vector = loss in ("mean", "multinomial")
    parameter = honest.LOSSES[loss][0] if loss in honest.LOSSES else None
    block = honest.samples(loss, [y], [0], 3 if vector else 1, parameter=parameter)
    return verify.Samples(block, 1, 3 if vector else 1)


def targets(loss, rng):
    """A target as it is written, and as a number."""
    if loss in ("logistic", "hinge", "squared_hinge"):
        y = rng.choice([-1, 1])
    elif loss == "multinomial":
        return [(y := rng.randrange(3)), y]
    elif loss == "mean":
        y = [F(rng.randint(-9, 9)) for _ in range(3)]
        return honest.texts(y), y
    else:
        y = F(rng.randint(int(loss == "gamma"), 9), 2)
    return honest.text(F(y)), F(y)


@pytest.mark.parametrize("loss", verify.LOSSES)
def test_losses_and_their_conjugates(loss):
    rng = random.Random(loss)
    for k in range(40):
        written, y = targets(loss, rng)
        block = sample(loss, written)
        x = [draw(rng) for _ in range(block.k)] if k % 4 else [F(y)] if block.k == 1 else [F(k)] * 3
        judged(block.value(0, [number(v) for v in x]), VALUES[loss](x if block.loss.vector else x[0], y))
        if loss == "multinomial":
            parts = [F(rng.randint(0, 5)) for _ in range(3)]
            total = sum(parts) or 1
            b = [p / total - (j == y) * (1 if sum(parts) else 0) for j, p in enumerate(parts)]
            b = b if sum(parts) else [F(0)] * 3
        elif loss == "mean":
            b = [draw(rng) for _ in range(3)]
        else:
            b = [WITHIN[loss](F(rng.randint(0, 8), 8), y)]
        value, _, _ = block.price(0, [number(v) for v in b])
        judged(value, CONJUGATES[loss](b if block.loss.vector else b[0], y))


@pytest.mark.parametrize("loss", honest.LOSSES)
def test_prices_end_where_the_domain_does(loss):
    """At an end the price is taken, a little further out it is not, and a little further in it is."""
    _, y, ends = honest.LOSSES[loss]
    block = sample(loss, y)
    for b in ends:
        out = beyond(loss, b, TINY)
        block.price(0, [number(v) for v in b])
        block.price(0, [number(2 * v - w) for v, w in zip(b, out, strict=True)])
        with pytest.raises(NotProvedError, match="outside the domain"):
            block.price(0, [number(v) for v in out])


# ---- penalties -------------------------------------------------------------------------------------------------------
R = [[F(1), F(2)], [F(0), F(-3, 2)]]
PARAMETERS = {
    "Quadratic": [["1", "1p1"], ["0", "-3p-1"]],
    "HuberNorm": "5p-1",
    "Ball": "5",
    "Box": honest.SIDES["Box"][0],
}


def length(z):
    return ball(sum(v * v for v in z)).sqrt()


PHI = {
    "L1": lambda z: max(p * z[0] + q * z[1] for p in (-1, 1) for q in (-1, 1)),
    "L2": length,
    "LInf": lambda z: max(z[0], -z[0], z[1], -z[1]),
    "SquaredL2": lambda z: (z[0] ** 2 + z[1] ** 2) / 2,
    "Quadratic": lambda z: (z[0] ** 2 + 4 * z[0] * z[1] + (4 + F(9, 4)) * z[1] ** 2) / 2,
    "HuberNorm": lambda z: steep(length(z), flint.arb(F(5, 2).numerator) / 2),
}
DUAL = {  # c phi*(u / c), of the Quadratic at the numbers t by which it is stated
    "L1": lambda c, u: F(0),
    "L2": lambda c, u: F(0),
    "LInf": lambda c, u: F(0),
    "SquaredL2": lambda c, u: (u[0] ** 2 + u[1] ** 2) / c / 2,
    "Quadratic": lambda c, t: c / 2 * (t[0] ** 2 + t[1] ** 2),
    "HuberNorm": lambda c, u: (u[0] ** 2 + u[1] ** 2) / c / 2,
    "Zero": lambda c, u: F(0),
    "Ball": lambda c, u: 5 * length(u),
    "NonNegative": lambda c, u: F(0),
    "Box": lambda c, u: abs(u[0]) + 3 * u[1],
}


def edge(penalty, weight="3p-2"):
    one = penalty in honest.SIDES
    block = honest.edges(penalty, [(0, -1)], [0, 1], parameter=PARAMETERS.get(penalty), weight=["1" if one else weight])
    return verify.Edges(block, 1, 2)


@pytest.mark.parametrize("penalty", verify.PENALTIES)
def test_penalties_and_their_conjugates(penalty):
    rng = random.Random(penalty)
    block = edge(penalty)
    c = F(1) if penalty in honest.SIDES else F(3, 4)
    for _ in range(40):
        if penalty in PHI:
            z = [draw(rng), draw(rng)]
            true = PHI[penalty](z)
            judged(block.value(0, [number(v) for v in z]), c * true if isinstance(true, F) else ball(c) * true)
        small = 1 if penalty in ("L1", "L2", "LInf") else 6
        u = [F(rng.randint(-64, 64), 64 * 8) * c * small for _ in range(2)]
        u = [-abs(v) for v in u] if penalty == "NonNegative" else [u[0], abs(u[1])] if penalty == "Box" else u
        judged(block.price(0, [number(v) for v in u])[0], DUAL[penalty](c, u))


def test_the_flow_of_a_quadratic():
    u, c = edge("Quadratic").price(0, [number(F(1)), number(F(2))])[1], F(3, 4)
    assert [F(int(x.numerator), int(x.denominator)) for x in u] == [c * (R[0][j] + 2 * R[1][j]) for j in range(2)]


@pytest.mark.parametrize("penalty", honest.PENALTIES)
def test_flows_end_where_the_domain_does(penalty):
    block = edge(penalty)
    for u in honest.PENALTIES[penalty][1]:
        for factor, inside in ((1, True), (1 - TINY, True), (1 + TINY, False)):
            t = [number(F(3, 4) * factor * x) for x in u]
            if inside:
                block.price(0, t)
            else:
                with pytest.raises(NotProvedError, match="outside the domain"):
                    block.price(0, t)


@pytest.mark.parametrize(
    ("penalty", "u"), [("NonNegative", (TINY, 0)), ("NonNegative", (-1, TINY)), ("Box", (0, -TINY))]
)
def test_no_flow_is_against_a_bound_that_is_not_there(penalty, u):
    block = edge(penalty)
    block.price(0, [number(F(-x if penalty == "Box" else min(x, 0))) for x in u])
    with pytest.raises(NotProvedError, match="outside the domain"):
        block.price(0, [number(F(x)) for x in u])


@pytest.mark.parametrize(
    ("penalty", "z", "way"),
    [
        ("Zero", (0, 0), (1, 0)),
        ("Zero", (0, 0), (0, -1)),
        ("Ball", (3, -4), (1, 0)),
        ("Ball", (3, -4), (0, -1)),
        ("Ball", (0, 5), (0, 1)),
        ("NonNegative", (0, 7), (-1, 0)),
        ("NonNegative", (1, 0), (0, -1)),
        ("Box", (-1, -99), (-1, 0)),
        ("Box", (1, 3), (1, 0)),
        ("Box", (1, 3), (0, 1)),
    ],
)
def test_constraints_end_where_they_do(penalty, z, way):
    block = edge(penalty)
    assert block.value(0, [number(F(x)) for x in z]) == 0
    with pytest.raises(NotProvedError, match="outside the domain"):
        block.value(0, [number(x + step * TINY) for x, step in zip(z, way, strict=True)])


@pytest.mark.parametrize("x", [F(2), F(1, 3), F(9), TINY, 1 / TINY, F(0), F(1, 1 << 400), F(1, (1 << 400) - 1)])
def test_roots_are_rounded_up(x):
    found = verify.root(number(x))
    below = found - number(F(1, 1 << verify.UNIT))
    assert found * found >= number(x)
    assert below < 0 or below * below < number(x)


@pytest.mark.parametrize("factors", [[1.0, 2.0**-1000], [2.0**-1000, 1.0], [1.0, 2.0**1000 * 2.0**23]])
def test_no_scale_is_0_or_infinite(factors):
    strength = 2.0**-1000 if min(factors) < 1 else 2.0**1000
    with pytest.raises(NotProvedError, match="no positive double"):
        verify.scaled(strength, factors)


@pytest.mark.parametrize("rule", ["mean", "sum", "a list"])
def test_scales_are_those_of_the_rule(rule):
    """The strength times the weight, over the weights of the node or times a number, rounded each time."""
    rng, node = random.Random(rule), [0, 1, 0, 0, 1]
    strength, *numbers = (rng.uniform(0.1, 9) for _ in range(11))
    weight, factor = numbers[:5], numbers[5:]
    rules = rule if rule != "a list" else [verify.spell(x) for x in factor]
    spelled = {"strength": verify.spell(strength), "rule": rules, "weight": [verify.spell(x) for x in weight]}
    block = verify.Samples(honest.samples("squared", ["1"] * 5, node) | spelled, 2, 1)
    if rule == "mean":
        factor = [1 / sum(w for i, w in zip(node, weight, strict=True) if i == k) for k in node]
    for s, w, f in zip(block.s, weight, factor, strict=True):
        base = F(w) if rule == "sum" else F(w) * F(f)
        assert abs(F(int(s.numerator), int(s.denominator)) / (F(strength) * base) - 1) < F(1, 1 << 50)


def test_an_edge_has_a_column():
    with pytest.raises(NotProvedError, match="distinct columns"):
        verify.Edges(honest.edges("L2", [(0, -1)], []), 1, 2)
    with pytest.raises(NotProvedError, match="distinct columns"):
        verify.Edges(honest.edges("Zero", [(0, -1)], [1, 1]), 1, 2)


def test_two_classes_are_the_fewest():
    assert verify.Multinomial(2, 2).k == 2
    with pytest.raises(NotProvedError, match="no integer in"):
        verify.Multinomial(1, 2)


# ---- series ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", range(120, 263, 7))
def test_the_series_of_log_is_an_upper_bound_by_itself(size, monkeypatch):
    """Of log(1 + e) wherever the roots end: what these are rounded up by does not make up for it."""
    rng = random.Random(size)
    for sign in (-1, 1):
        y = verify.ONE + sign * rng.randrange(1 << size)
        monkeypatch.setattr(verify, "isqrt", lambda n, y=y: y - 1)
        true = ball(F(y, verify.ONE)).log() * (1 << 24)
        assert ball(verify.log(number(F(2)))) >= true


def test_log_and_exp_end_where_their_series_were_proved():
    """Where the remainder of a series is less than what is added for it."""
    assert verify.exp(number(4096 - TINY)) > 0
    assert verify.log(number(F(2) ** 16110)) > 0
    with pytest.raises(NotProvedError, match="exp of more than 4096"):
        verify.exp(number(F(4096)))
    with pytest.raises(NotProvedError, match="log of a number too large"):
        verify.log(number(F(2) ** 16111))


# ---- directions along which nothing grows ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("loss", "y", "v", "state"),
    [
        *((loss, "1", [v], 0 if v < 0 else 1 if v == 0 else top) for v in (-1, 0, 1) for loss, top in
          (("logistic", 2), ("hinge", 1), ("squared_hinge", 1))),
        *(("logistic", "-1", [v], 2 if v < 0 else 0) for v in (-1, 1)),
        *(("poisson", y, [v], 2 if v < 0 and y == "0" else int(v == 0)) for v in (-1, 0, 1) for y in ("0", "1")),
        *((loss, "1", [v], int(v == 0)) for v in (-1, 0, 1) for loss in verify.LOSSES
          if loss in ("squared", "huber", "quantile", "expectile", "squared_epsilon", "gamma")),
        ("mean", ["1", "1", "1"], [0, 0, 0], 1),
        ("mean", ["1", "1", "1"], [1, 1, 1], 0),
        ("mean", ["1", "1", "1"], [0, 0, 1], 0),
        ("multinomial", 1, [2, 2, 2], 1),
        ("multinomial", 1, [2, 2, 1], 2),
        ("multinomial", 1, [2, 1, 2], 0),
        ("multinomial", 1, [3, 2, 1], 0),
    ],
)  # fmt: skip
def test_losses_along_a_direction(loss, y, v, state):
    """Whatever its length."""
    for scale in (F(1), F(1, 2), TINY, 1 / TINY):
        assert sample(loss, y).recedes(0, [number(scale * x) for x in v]) == state


@pytest.mark.parametrize(
    ("penalty", "still"),
    [
        *((kind, [(0, 0)]) for kind in ("L1", "L2", "LInf", "SquaredL2", "HuberNorm", "Zero", "Ball", "Quadratic")),
        ("NonNegative", [(0, 0), (1, 0), (1, 1)]),
        ("Box", [(0, 0), (0, -1)]),
    ],
)
def test_penalties_along_a_direction(penalty, still):
    ways = [(p, q) for p in (-1, 0, 1) for q in (-1, 0, 1)]
    still = {*still, *([(0, 1), (1, 0), (1, 1)] if penalty == "NonNegative" else [])}
    assert {z for z in ways if edge(penalty).recedes(0, [number(F(x)) for x in z])} == still


def test_a_singular_quadratic_stays_along_its_kernel():
    block = verify.Edges(honest.edges("Quadratic", [(0, -1)], [0, 1], parameter=[["1", "1p1"]]), 1, 2)
    assert block.recedes(0, [number(F(2)), number(F(-1))])
    assert not block.recedes(0, [number(F(2)), number(F(1))])
