"""What is proved is of the user's formula: coefficients, values at a point and bounds against exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from conic_cases import planted
from cvxpy.transforms.partial_optimize import partial_optimize

import graphreg as gr
from graphreg.base.messages import of_cvxpy
from graphreg.certificate import Pair, RefusedError
from graphreg.conic import canonical, exact, formula, proving
from graphreg.conic.affine import Map, NotFollowedError, follow
from graphreg.conic.programme import Block, Programme

R = np.random.default_rng(3)
X, Y, Z = cp.Variable((3, 4), name="X"), cp.Variable(4, name="y"), cp.Variable(name="z")
STARTS = {X.id: 0, Y.id: 12, Z.id: 16}
A, B, C = R.normal(size=(2, 3)), R.normal(size=(4, 2)), R.normal(size=(3, 4))


def leaf(e):
    if not isinstance(e, cp.Variable):
        return None
    row = np.arange(e.size)
    return Map(e.shape, row, STARTS[e.id] + row, np.ones(e.size), np.zeros(e.size))


def rational(e, point):
    """The value of an expression in exact arithmetic, by what CVXPY computes with fractions in place of floats."""
    if isinstance(e, cp.Variable):
        return point[e.id]
    if not e.args:
        value = e.value.toarray() if sp.issparse(e.value) else np.asarray(e.value)
        return np.vectorize(Fraction, otypes=[object])(value)
    args = [rational(arg, point) for arg in e.args]
    if type(e).__name__ == "Promote":  # CVXPY multiplies by ones, which are floats
        return np.broadcast_to(args[0], e.shape)
    exactly = {  # not in floats
        "cumsum": lambda x: np.cumsum(x, axis=e.axis),
        "Trace": lambda x: np.sum(np.diag(x)),
        "kron": np.kron,
        "convolve": lambda x, y: np.convolve(np.atleast_1d(x), y),
    }
    out = exactly.get(type(e).__name__, lambda *x: e.numeric(list(x)))(*args)
    found = np.empty(e.shape, object)
    found[...] = np.reshape(out, e.shape)
    return np.vectorize(Fraction, otypes=[object])(found)  # entries that are moved become floats, of the same value


def drawn(exponent=0):
    """Values of the variables: doubles as fractions."""
    floats = {v.id: R.normal(size=v.shape) * 2.0**exponent for v in (X, Y, Z)}
    return floats, {k: np.vectorize(Fraction, otypes=[object])(v) for k, v in floats.items()}


AFFINE = {
    "products": A @ X @ B + 0.3 * (A @ (2.5 * X) @ B),
    "vectors": 0.7 * (C @ Y) - cp.multiply(C[:, 0], X[:, 1]),
    "rows": A[0] @ X + 0.1 * Y,
    "sums": cp.sum(cp.multiply(C, X)) + cp.sum(X, axis=0) @ B[:, 0] + cp.sum(0.1 * X, axis=1, keepdims=True)[1, 0],
    "quotients": (X / 3 + cp.cumsum(X, axis=1) / 7 - C) / 0.1 + X / (0.3 * cp.Constant(0.7)),
    "places": cp.vstack([cp.reshape(X, (4, 3), order="F").T, Y[::-1], cp.hstack([Y[:2], Z, 1.5])]),
    "squares": cp.trace(C @ X.T) * np.ones((2, 2)) + cp.diag(Y)[:2, :2] + 0.9 * cp.diag(X[:, :3])[0],
    "sparse": sp.csr_array(A) @ X @ sp.csc_array(B),
    "constants": (cp.Constant(A) * 0.3 + cp.Constant(A) / 3) @ X,
    "kron": cp.kron(A, X[:2, :2]) + cp.kron(X[:2, :2], A),
    "convolved": cp.convolve(A[0], Y) + cp.convolve(0.5, cp.hstack([Y, Z, Z])) + cp.conj(cp.hstack([Z, Z, Y])),
    "picked": cp.upper_tri(X[:, :3]) + X[[0, 1, 2], [1, 2, 3]] + cp.sum(C @ C.T @ X),
}


@pytest.mark.parametrize("name", AFFINE)
def test_coefficients_hold_the_exact_ones(name):
    e = AFFINE[name]
    found, errors = follow(e, leaf), 0
    for _ in range(3):
        _, point = drawn()
        want = rational(e, point).ravel(order="F")
        flat = [*(x for k in STARTS for x in point[k].ravel(order="F")), Fraction(1)]
        got, off = [Fraction(0)] * e.size, [Fraction(0)] * e.size
        for i, j, value, error in zip(found.row, found.column, found.value, found.error, strict=True):
            got[i] += Fraction(value) * flat[j]
            off[i] += Fraction(error) * abs(flat[j])
            errors += error > 0
        assert all(abs(w - g) <= o for w, g, o in zip(want, got, off, strict=True))
        assert all(o <= abs(Fraction(1e-13)) for o in off)
    assert (errors > 0) == (name in ("products", "vectors", "quotients", "sparse", "constants"))


def box(floats, width):
    high = np.concatenate([*(np.ravel(floats[k], order="F") for k in STARTS), [1.0]])
    return Pair(high, np.zeros(18), np.append(np.full(17, width), 0.0))


RATIONAL = {
    "abs": cp.sum(cp.abs(C - X)) + cp.norm1(0.3 * Y),
    "norm_inf": cp.norm_inf(X - C) + cp.max(cp.abs(X), axis=0) @ np.ones(4),
    "squares": 0.1 * cp.sum_squares(A @ X) + cp.sum(cp.square(Y - 0.3), axis=0) / 3,
    "over": cp.quad_over_lin(Y, cp.abs(Z) + 0.1),
    "huber": cp.sum(cp.huber(2 * X - 1, 0.7)),
    "maximum": cp.sum(cp.maximum(X, 0.1, -X)) - cp.sum(cp.minimum(Y, Z)) - cp.min(X),
    "pos": cp.sum(cp.pos(X) + 0.3 * cp.neg(X)),
    "largest": cp.sum_largest(X, 3),
    "square": cp.square(Z),
    "one huber": cp.huber(Z, 1e-10),
    "form": cp.quad_form(Y, cp.psd_wrap(B @ B.T)),
}


def by_fractions(e, point):
    """The same with atoms that compare numbers, which numpy does for fractions as for floats."""
    name, args = type(e).__name__, [by_fractions(arg, point) for arg in e.args]
    if name in ("Variable", "Constant"):
        return rational(e, point)
    rules = {
        "abs": abs,
        "norm1": lambda x: np.sum(abs(x)),
        "norm_inf": lambda x: np.max(abs(x)),
        "max": lambda x: np.max(x, axis=e.axis),
        "min": lambda x: np.min(x, axis=e.axis),
        "quad_over_lin": lambda x, y: np.sum(x * x) / y,
        "PowerApprox": lambda x: x * x,
        "huber": lambda x: np.vectorize(hub, otypes=[object])(abs(x), Fraction(float(e.M.value))),
        "maximum": lambda *x: reduce(np.maximum, x),
        "minimum": lambda *x: reduce(np.minimum, x),
        "sum_largest": lambda x: np.sum(np.sort(x, axis=None)[-3:]),
        "QuadForm": lambda x, P: x @ P @ x,
    }
    if name == "Promote":
        return np.broadcast_to(args[0], e.shape)
    found = np.empty(e.shape, object)
    found[...] = rules[name](*args) if name in rules else e.numeric(args)
    return found


def hub(a, m):
    return a * a if a <= m else 2 * m * a - m * m


@pytest.mark.parametrize("width", [0.0, 1e-20, 1e-9, 3.0])
@pytest.mark.parametrize("name", RATIONAL)
def test_values_of_atoms_hold_the_exact_ones(name, width):
    e = RATIONAL[name]
    for exponent in (-30, 0, 3):
        floats, _ = drawn(exponent)
        low, high = follow(e, leaf, box(floats, width)).at(box(floats, width))
        for _ in range(3):
            point = {k: np.vectorize(Fraction, otypes=[object])(v) for k, v in floats.items()}
            for v in point.values():
                sides = R.integers(-1, 2, v.shape).astype(object)
                v[...] = v + sides * Fraction(width)
            value = by_fractions(e, point)
            assert Fraction(float(low)) <= value[()] <= Fraction(float(high)), (exponent, float(high - low))
        assert high - low <= 2e-12 * (1 + 8.0**exponent) + 2e4 * width * (1 + width)


def decimal(x):
    return Decimal(float(x))


CURVED = {  # in the first entries of X, which are positive, and Z
    "exp": (cp.exp, lambda x: x.exp()),
    "log": (cp.log, lambda x: x.ln()),
    "log1p": (cp.log1p, lambda x: (1 + x).ln()),
    "entr": (cp.entr, lambda x: -x * x.ln()),
    "logistic": (cp.logistic, lambda x: (1 + x.exp()).ln()),
    "negative logistic": (lambda x: cp.logistic(-3 * x), lambda x: (1 + (-3 * x).exp()).ln()),
    "sqrt": (cp.sqrt, lambda x: x.sqrt()),
    "power 1.5": (lambda x: cp.power(x, 1.5), lambda x: x ** Decimal("1.5")),
    "power 3": (lambda x: cp.power(x, 3), lambda x: x**3),
    "power 4": (lambda x: cp.power(-x, 4), lambda x: x**4),
    "power -1": (cp.inv_pos, lambda x: 1 / x),
    "power -0.5": (lambda x: cp.power(x, -0.5), lambda x: 1 / x.sqrt()),
    "kl": (lambda x: cp.kl_div(x, 0.3), lambda x: x * (x / decimal(0.3)).ln() - x + decimal(0.3)),
    "rel": (lambda x: cp.rel_entr(0.3, x), lambda x: decimal(0.3) * (decimal(0.3) / x).ln()),
}


@pytest.mark.parametrize("name", CURVED)
def test_values_of_curved_atoms(name):
    atom, want = CURVED[name]
    for size in (1e-8, 0.3678794411714423, 0.5, 1.0, 1.0000000001, 2.0, 30.0, 200.0):
        floats, _ = drawn()
        floats[Z.id] = np.array(size * (1.0 + 0.0 * R.random()))
        low, high = follow(atom(Z), leaf, box(floats, 0.0)).at(box(floats, 0.0))
        with localcontext() as context:
            context.prec = 60
            value = want(decimal(floats[Z.id]))
            assert decimal(low) <= value <= decimal(high)
            assert decimal(high) - decimal(low) <= Decimal("4e-12") * (abs(value) + decimal(1 + size))
        wide = box(floats, size / 4)
        low, high = follow(atom(Z), leaf, wide).at(wide)
        for part in np.linspace(-1, 1, 9):
            with localcontext() as context:
                context.prec = 60
                value = want(decimal(size) + decimal(part) * decimal(size / 4))
                assert decimal(low) <= value <= decimal(high), (size, part)


def test_values_of_means_and_sums():
    floats, _ = drawn()
    floats[Y.id] = np.abs(floats[Y.id]) + 0.1
    at, y = box(floats, 0.0), [decimal(v) for v in floats[Y.id]]
    with localcontext() as context:
        context.prec = 60
        logs = y[0].ln() + y[1].ln() / 2 + 2 * y[2].ln() + 3 * y[3].ln()
        cases = {
            cp.log_sum_exp(Y): sum(v.exp() for v in y).ln(),
            cp.norm(Y, 2): sum(v * v for v in y).sqrt(),
            cp.norm(Y, 3): (sum(v**3 for v in y).ln() / 3).exp(),
            cp.norm(-Y, 1.5): (sum(v ** Decimal("1.5") for v in y).ln() / Decimal("1.5")).exp(),
            cp.geo_mean(Y): (sum(v.ln() for v in y) / 4).exp(),
            cp.geo_mean(Y, [1, 0.5, 2, 3]): (logs / Decimal("6.5")).exp(),
        }
        for e, value in cases.items():
            low, high = follow(e, leaf, at).at(at)
            assert decimal(low) <= value <= decimal(high), str(e)
            assert high - low <= 1e-12


def test_what_is_out_of_a_domain_has_no_value():
    floats, _ = drawn()
    floats[Z.id] = np.array(-0.5)
    at = box(floats, 0.0)
    own = (cp.log(Z), cp.sqrt(Z), cp.entr(Z), cp.inv_pos(Z), cp.power(Z, 3), cp.quad_over_lin(Y, Z))
    both = cp.hstack([Z, 1.0])
    for e in (*own, cp.pnorm(both, 0.5), cp.harmonic_mean(both), cp.geo_mean(both)):
        try:
            low, high = follow(e, leaf, at).at(at)
        except NotFollowedError:
            continue
        assert not (np.isfinite(low) and np.isfinite(high)), str(e)
    floats[Z.id] = np.array(1e-3)
    at = box(floats, 1e-2)  # partly out of it
    with pytest.raises(NotFollowedError):
        follow(cp.geo_mean(both), leaf, at)


# ---- bounds ----------------------------------------------------------------------------------------------------------
def products(seed):
    """A linear programme whose numbers CVXPY multiplies, and its optimum in rational numbers: least k x + c over
    u x >= v, x <= w, each of them a product or quotient of doubles."""
    r = np.random.default_rng(seed)
    k, c, u, v = r.integers(1, 1000, 4) / 1000
    x = cp.Variable(3, name="x")
    m = int(r.integers(3, 30))
    objective = 0.1 * cp.sum(k * x) / m + cp.Constant(c) * 0.7
    rows = [0.3 * (u * x) >= v, (x <= 1e4).set_label("top")]
    exactly = list(map(Fraction, (k, c, u, v, 0.1, 0.7, 0.3)))
    k, c, u, v, tenth, seven, three = exactly
    return objective, rows, tenth * k * 3 * v / (three * u) / m + c * seven


def test_bounds_hold_of_products_that_are_rounded():
    """From the optimum of what is stored, so that its bounds are as narrow as doubles can be."""
    false = 0
    for seed in range(12):
        objective, rows, optimum = products(seed)
        for sense, way in ((cp.Minimize, 1), (cp.Maximize, -1)):
            problem = cp.Problem(sense(way * objective), rows)
            stored = canonical.canonical(problem)
            p = stored.programme
            A = p.A.toarray()[:3]
            x, z = p.b[:3] / A.diagonal(), np.append(-p.q / A.diagonal(), [0.0] * 3)
            known = proving.proved(p, canonical.Answer(x, z), 1.0)
            found = proving._told(stored, known, None)
            assert found.scope == "of your formula", found.scope
            assert found.gap < 1e-13 * max(1, abs(optimum))
            assert Fraction(found.lower) <= way * optimum <= Fraction(found.upper), seed
            value = way * (optimum - Fraction(stored.offset))
            false += not Fraction(known.lower) <= way * value <= Fraction(known.upper)
    assert false > 3, false  # of what is stored this is not the optimum


def test_a_row_that_only_rounding_fulfils_is_not_taken_for_the_formula():
    """.1 (3 x) is .3000000000000000166 x in real numbers, and .30000000000000004 x as it is stored."""
    x = cp.Variable(name="x")
    found = gr.certify(cp.Problem(cp.Minimize(x), [0.1 * (3.0 * x) >= 0.1 * 3.0, x <= 1]))
    assert found.status == "certified"
    assert "as CVXPY stores it" in found.scope
    assert "rounded" in found.scope
    found = gr.certify(cp.Problem(cp.Minimize(x), [0.1 * (3.0 * x) >= 0.1 * 3.0, x <= 1.1]))
    assert found.scope == "of your formula"
    assert Fraction(found.lower) <= Fraction(0.1 * 3.0) / (3 * Fraction(0.1)) <= Fraction(found.upper)


def test_what_is_stored_is_compared_entry_by_entry():
    S = cp.Variable((3, 3), symmetric=True, name="S")
    D = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])
    problem = cp.Problem(cp.Minimize(cp.trace(D @ S) + cp.sum_squares(S[0]) / 3), [0.3 * S + D >> 0, S[0, 1] == 0.25])
    stored = canonical.canonical(problem)
    off = exact.off(stored, *stored.last())
    p, rows = stored.programme, 0
    zero = sum(b.place.stop for b in p.blocks if b.kind == "zero")
    for i, (a, c) in enumerate(zip(*np.triu_indices(3), strict=True)):
        del i
        for row in range(zero, len(p.b)):
            entries = np.flatnonzero(p.A.toarray()[row])
            assert len(entries) <= 1
        rows += a != c
    A, gaps = p.A.toarray()[zero:], off.A.toarray()[zero:]
    for value, gap in zip(A[A != 0.0], gaps[A != 0.0], strict=True):
        square = Fraction(float(value)) ** 2
        want = Fraction(0.3) ** 2 * (1 if abs(abs(value) - 0.3) < 1e-9 else 2)
        low, high = (
            abs(Fraction(float(value))) - Fraction(float(gap)),
            abs(Fraction(float(value))) + Fraction(float(gap)),
        )
        assert low**2 <= want <= high**2
        assert (gap > 0.0) == (square != want)
    assert rows == 3
    off_diagonal = np.flatnonzero(np.isin(np.round(np.abs(p.b[zero:]), 6), [1.414214, 0.707107]))
    assert len(off_diagonal) == 2
    for row in off_diagonal.tolist():
        size, room = abs(Fraction(p.b[zero + row])), Fraction(off.b[zero + row])
        assert (size - room) ** 2 < (2 if size > 1 else Fraction(1, 2)) < (size + room) ** 2
    assert off.P.nnz == 3  # 2 / 3 in three places
    assert abs(Fraction(p.P.data[0]) - Fraction(2, 3)) <= Fraction(off.P.data[0]) <= Fraction(1, 10**15)
    wrong = replace(p, b=p.b + np.eye(len(p.b))[1])
    assert exact.off(replace(stored, programme=wrong), *stored.last()).b[1] == 1.0 + 1e-7


def test_rounded_programmes_of_small_numbers():
    """Every programme within what numbers are off has its optimum within the bounds: at the corners, in rationals."""
    r = np.random.default_rng(5)
    for seed in range(5):
        p, value, _, _ = planted(seed)
        known = proving.proved(p, canonical.helped(p), 1e-9)
        if known.gap() > 1e-5 or p.P.nnz:
            continue
        del value
        size = 2.0**-44
        A = abs(p.A) * size
        off = exact.Off(p.P * 0.0, abs(p.q) * size, A, abs(p.b) * size, 0.0)
        lower, upper, found = formula._Rounded(p, off, known.curvature).bounds(known)
        assert found is not None
        assert lower <= known.lower
        assert upper >= known.upper
        for _ in range(2):
            signs = r.choice([-1.0, 1.0], len(p.A.data))
            moved = sp.csr_array((p.A.data * (1.0 + signs * size), p.A.indices, p.A.indptr), shape=p.A.shape)
            other = replace(p, A=moved, q=p.q * (1 + size * r.choice([-1.0, 1.0])), b=p.b * (1 - size))
            again = proving.proved(other, canonical.helped(other), 1e-9)
            assert again.upper >= lower
            assert again.lower <= upper


@pytest.mark.filterwarnings("ignore:Power atom with exponent", "ignore:pnorm with")
def test_what_is_not_followed_is_named():
    x = cp.Variable(3, name="x", nonneg=True)
    found = gr.certify(cp.Problem(cp.Minimize(cp.sum(cp.power(x, 2.7))), [cp.sum(x) == 1]))
    assert found.scope == "of your formula but for `power(x, 2.7)`, as CVXPY stores it"
    found = gr.certify(cp.Problem(cp.Minimize(cp.sum(x)), [cp.quad_form(x - 1, np.diag([1.0, 2.0, 3.0])) <= 0.1]))
    assert "but for `QuadForm(" in found.scope
    found = gr.certify(cp.Problem(cp.Minimize(cp.norm(x - 1, 2.7)), [cp.sum(x) == 1]))
    assert "but for `norm(" in found.scope
    found = gr.certify(cp.Problem(cp.Maximize(cp.geo_mean(x)), [cp.sum(x) <= 1.5]))
    assert found.scope == "of your formula"
    M = cp.Variable((2, 2), name="M", PSD=True)
    found = gr.certify(cp.Problem(cp.Maximize(cp.log_det(M)), [cp.trace(M) <= 2]))
    assert found.scope == "of your formula; at the point CVXPY's cones stand for `log_det(M)`"
    assert "at the point" in str(found)
    y = cp.Variable(2, name="y", complex=True)
    assert "Complex2Real is not followed" in gr.certify(cp.Problem(cp.Minimize(cp.norm(y - 1j)))).scope


def test_what_cones_say_is_not_taken_for_the_formula_where_it_differs():
    """Cones of x^6 ask for x >= 0, those of the sum of more entries than there are have no lower bound, those of one
    entry's mean allow it to be negative, and those of a determinant take the symmetric part."""
    x, y, M = cp.Variable(name="x"), cp.Variable(2, name="y"), cp.Variable((2, 2), name="M")
    S, turned = cp.Variable((2, 2), symmetric=True), np.array([[1.0, 5.0], [-5.0, 1.0]])
    differs = {
        "power(x, 6)": (cp.power(x, 6), [x >= -2, x <= 2]),
        "sum_largest(y, 3)": (cp.sum_largest(y, 3), [y >= 1]),
        "lambda_sum_largest(M, 3)": (cp.lambda_sum_largest(M, 3), [M - np.eye(2) == 0]),
        "geo_mean(y, (1": (-cp.geo_mean(y, [1, 0]), [y <= -1]),
        "log_det(M)": (-cp.log_det(M), [M - turned == 0]),
    }
    for name, (objective, constraints) in differs.items():
        assert f"but for `{name}" in gr.certify(cp.Problem(cp.Minimize(objective), constraints)).scope, name
    B, weights = R.normal(size=(4, 2)), cp.Variable(4, nonneg=True)
    same = (
        (cp.power(x, 4) + cp.power(x, 3), [x >= 1]),
        (cp.sum_largest(y, 2), [y >= 1]),
        (cp.lambda_sum_largest(S, 2), [S >> np.eye(2)]),
        (-cp.geo_mean(y), [y <= 1]),
        (-cp.log_det(S + np.eye(2)), [cp.trace(S) <= 1]),
        (-cp.log_det(B.T @ cp.diag(weights) @ B), [cp.sum(weights) <= 1]),
        (-cp.log_det(B @ S @ B.T + np.eye(4)), [cp.trace(S) <= 1]),
    )
    for objective, constraints in same:
        found = gr.certify(cp.Problem(cp.Minimize(objective), constraints))
        assert found.status == "certified"
        assert found.scope.partition(";")[0] == "of your formula", str(objective)


def test_the_value_at_the_point_is_that_of_the_users_expression():
    """Variables that CVXPY replaces by others: of symmetric matrices, of one sign."""
    S, v = cp.Variable((3, 3), PSD=True, name="S"), cp.Variable(3, nonneg=True, name="v")
    W = np.arange(9.0).reshape(3, 3)
    objective = cp.sum(cp.multiply(W, cp.square(S))) + cp.norm1(v - [1, -2, 3]) + S[0, 1] - 2 * S[2, 0]
    problem = cp.Problem(cp.Minimize(objective), [cp.trace(S) >= 1, cp.abs(S[1, 2]) <= 0.1])
    found = gr.certify(problem)
    assert found.scope == "of your formula"
    assert found.holds(1e-6)
    S.save_value(found.point["S"])
    v.save_value(found.point["v"])
    assert abs(objective.value - found.upper) <= 1e-12
    stored = canonical.canonical(problem)
    value, by_cones = formula._value(stored, found.evidence["primal"])
    assert by_cones == []
    assert abs(value - objective.value) <= 1e-12


@pytest.mark.filterwarnings("ignore:The problem includes expressions that don't support CPP")
def test_parts_of_cvxpy_that_are_not_followed_are_no_obstacle():
    x, y = cp.Variable(2, name="x"), cp.Variable(2, name="y")
    inner = cp.Problem(cp.Minimize(cp.sum_squares(x - y) + cp.norm1(x)), [x >= 0.3])
    part = partial_optimize(inner, [x], [y])
    T = cp.Variable((2, 2, 2), name="T")
    cases = {
        "but for `PartialProblem(": cp.Problem(cp.Minimize(part + cp.sum(y)), [y >= -1]),
        "`T @ broadcast_to(": cp.Problem(cp.Minimize(cp.sum(T @ np.ones((2, 2)))), [T >= 1]),
        "stand for `sum_largest(y, 1.5": cp.Problem(cp.Minimize(cp.sum_largest(y, 1.5)), [y >= [1, 2]]),
    }
    for scope, problem in cases.items():
        found = gr.certify(problem)
        assert found.status == "certified"
        assert scope in found.scope, found.scope


def test_what_is_about_is_said_without_a_gap_too():
    x = cp.Variable(name="x")
    found = gr.certify(cp.Problem(cp.Minimize(x), [0.1 * x / 3 >= 2, x <= 1]))
    first, scope, near, message = str(found).split("\n  ")
    assert (first, scope, near) == ("infeasible", "of your formula", "proved at points near an answer of Clarabel")
    assert message.startswith("no point meets `")


def test_only_inequalities_are_compared_with_zero():
    x = cp.Variable(2, name="x")
    found = gr.certify(cp.Problem(cp.Minimize(cp.sum(x)), [cp.NonNeg(cp.log(x) + 1), cp.log(x) >= -2]))
    assert found.scope.startswith("of your formula; at the point CVXPY's cones stand for `")
    assert "`log(x) + 1 >= 0`" in found.scope
    assert found.scope.count("log(x)") == 1


def test_certifying_leaves_what_cvxpy_remembers():
    """The steps are applied a second time, to copies: parameters go on to reach the programme that is stored."""
    P, x = cp.Parameter((2, 2), symmetric=True, name="P"), cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum(P @ x)), [x >= 1])
    for first, second in ((1.0, 2.0), (5.0, 0.5)):
        P.value = np.array([[first, 0.0], [0.0, second]])
        found = gr.certify(problem, solver="CLARABEL")
        assert found.lower - 1e-9 <= first + second <= found.upper + 1e-9
        assert abs(problem.value - first - second) <= 1e-6


# ---- numbers that are off by much, and the optima of all corners -----------------------------------------------------
OFF = 2.0**-10


def programme(A, b, q, blocks, P):
    P = sp.csr_array((len(q), len(q))) if P is None else sp.csr_array(np.array(P, float))
    return Programme(P, np.array(q, float), sp.csr_array(np.array(A, float)), np.array(b, float), blocks)


def rounded(P, q, A, b, blocks, off):
    p = programme(A, b, q, blocks, P)
    return p, exact.Off(off * abs(p.P), off * abs(p.q), off * abs(p.A), off * abs(p.b), off)


@pytest.mark.parametrize("seed", range(4))
def test_lines_that_are_off_at_all_corners(seed):
    """Least q x + u y over a x >= b, c y >= d + e x: of positive numbers, the optimum is exact."""
    q, u, a, b, c, d, e = np.random.default_rng(seed).integers(1, 9, 7).astype(float)
    blocks = (Block("nonneg", slice(0, 2)),)
    p, off = rounded(None, [q, u], [[-a, 0.0], [e, -c]], [-b, -d], blocks, OFF)
    known = proving.proved(p, canonical.helped(p), 1e-9)
    lower, upper, _ = formula._Rounded(p, off, known.curvature).bounds(known)
    r, worst = Fraction(OFF), [Fraction(10**9), Fraction(-(10**9))]
    for signs in product((-1, 1), repeat=8):
        Q, U, a1, b1, c1, d1, e1 = (
            Fraction(v) * (1 + s * r) for v, s in zip((q, u, a, b, c, d, e), signs[:7], strict=True)
        )
        x = b1 / a1
        value = Q * x + U * (d1 + e1 * x) / c1 + signs[7] * r
        worst = [min(worst[0], value), max(worst[1], value)]
    assert Fraction(lower) <= worst[0]
    assert worst[1] <= Fraction(upper)
    assert upper - lower <= 0.2 * max(1.0, float(worst[1]))
    exactly = proving.proved(p, canonical.Answer(*optimum(q, u, a, b, c, d, e)), 1.0)
    lower, upper, _ = formula._Rounded(p, off, exactly.curvature).bounds(exactly)
    assert Fraction(lower) <= worst[0]
    assert worst[1] <= Fraction(upper)


def optimum(q, u, a, b, c, d, e):
    x, price = b / a, u / c
    return np.array([x, (d + e * x) / c]), np.array([(q + e * price) / a, price])


def test_a_parabola_that_is_off_at_all_corners():
    """Least p x^2 / 2 + q x over x = anything, and over t = a x + b, p t^2 / 2 + q t."""
    for p0, q0 in ((2.0, 3.0), (8.0, -5.0)):
        for A, b, blocks in ((np.zeros((0, 2)), [], ()), ([[3.0, -1.0]], [-5.0], (Block("zero", slice(0, 1)),))):
            P = np.diag([0.0, p0]) if len(b) else np.diag([p0, 1.0])
            p, off = rounded(P, [0.0, q0] if len(b) else [q0, 0.0], A, b, blocks, OFF)
            known = proving.proved(p, canonical.helped(p), 1e-9)
            lower, upper, _ = formula._Rounded(p, off, known.curvature).bounds(known)
            r, low, high = Fraction(OFF), Fraction(10**9), Fraction(-(10**9))
            for s, w, o in product((-1, 1), repeat=3):
                value = -((Fraction(q0) * (1 + s * r)) ** 2) / (2 * Fraction(p0) * (1 + w * r)) + o * r
                low, high = min(low, value), max(high, value)
            assert Fraction(lower) <= low
            assert high <= Fraction(upper)
            assert upper - lower <= 0.1
    p, off = rounded([[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0], np.zeros((0, 2)), [], (), OFF)
    with pytest.raises(RefusedError, match="may not be convex"):
        formula._Rounded(p, off, 0.0).bounds(proving.proved(p, canonical.helped(p), 1e-9))


def test_no_point_and_no_bound_are_proved_of_all_corners():
    blocks = (Block("nonneg", slice(0, 2)),)
    for gap, held in ((1e-6, False), (0.1, True)):  # x <= 1 and 3 x >= 3 + gap
        p, off = rounded(None, [1.0], [[1.0], [-3.0]], [1.0, -3.0 - gap], blocks, OFF)
        known = proving.proved(p, canonical.helped(p), 1e-9)
        assert known.status == "infeasible"
        work = formula._Rounded(p, off, known.curvature)
        assert work.none("contradiction", known.evidence["contradiction"]) == held
        p, off = rounded(None, [1.0 - gap, -1.0], [[-1.0, 1.0], [-1.0, 0.0]], [0.0, 0.0], blocks, OFF)
        known = proving.proved(p, canonical.helped(p), 1e-9)  # y <= x, x >= 0: it falls along (1, 1) by gap
        assert known.status == "unbounded"
        assert formula._Rounded(p, off, known.curvature).none("descent", known.evidence["descent"]) == held


def test_each_kind_of_number_that_is_off_counts():
    blocks = (Block("nonneg", slice(0, 2)),)
    p, _ = rounded(None, [1.0], [[1.0], [-3.0]], [1.0, -3.0 - 1e-6], blocks, OFF)
    known = proving.proved(p, canonical.helped(p), 1e-9)
    for b, A in ((OFF, 0.0), (0.0, OFF)):
        work = formula._Rounded(p, exact.Off(0 * p.P, 0 * p.q, A * abs(p.A), b * abs(p.b), 0.0), known.curvature)
        assert not work.none("contradiction", known.evidence["contradiction"])
    p, _ = rounded(None, [1.0 - 1e-6, -1.0], [[-1.0, 1.0], [-1.0, 0.0]], [0.0, 0.0], blocks, OFF)
    known = proving.proved(p, canonical.helped(p), 1e-9)
    for q, A in ((OFF, 0.0), (0.0, OFF)):
        work = formula._Rounded(p, exact.Off(0 * p.P, q * abs(p.q), A * abs(p.A), 0 * p.b, 0.0), known.curvature)
        assert not work.none("descent", known.evidence["descent"])


def test_a_radius_and_the_slack_at_it_settle():
    """Entries that are 0 have a radius, of which further rows depend."""
    W, S = cp.Variable((4, 2), name="W"), cp.Variable((3, 3), symmetric=True, name="S")
    r = np.random.default_rng(2)
    A, B, C = r.standard_normal((20, 4)), r.standard_normal((20, 2)), np.cov(r.standard_normal((3, 10)))
    low_rank = cp.sum_squares(A @ W - B) / 2 + 3 * cp.normNuc(W)
    graphical = cp.trace(C @ S) - cp.log_det(S) + 0.2 * cp.norm1(S)
    for objective in (low_rank, graphical):
        found = gr.certify(cp.Problem(cp.Minimize(objective)))
        assert found.scope.startswith("of your formula; at the point CVXPY's cones stand for")
        assert found.holds(1e-6)


def test_arrays_that_are_cut_short_in_print_are_not_shown():
    A, x = np.arange(4000.0).reshape(40, 100), cp.Variable(100, name="x")
    assert of_cvxpy(A @ x <= 1) == "[[...]] @ x <= 1"
    assert of_cvxpy(A[:2, :2] @ x[:2]).replace("\n", "") == "[[0.00 1.00] [100.00 101.00]] @ x[0:2]"
