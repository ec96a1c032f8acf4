"""Penalties from value and prox: the conjugate is derived, from above."""

from __future__ import annotations

import re

import numpy as np
import pytest
from factories import chain, thinned

import graphreg as gr
from graphreg.errors import ConvexityError, MethodError, TermError
from graphreg.reading_prox import RADII
from graphreg.testing import check_penalty

FORMULAS = [gr.L1(), gr.L2(), gr.LInf(), gr.HuberNorm(0.5), gr.SquaredL2(), gr.Quadratic(np.diag([1.0, 4.0]))]


def l2(z):
    return np.linalg.norm(z, axis=1)


def given(phi):
    return gr.Penalty.from_prox(phi.value, phi.prox, phi.cvxpy, name=type(phi).__name__.lower())


@pytest.mark.parametrize("phi", FORMULAS, ids=lambda phi: type(phi).__name__)
def test_the_derived_conjugate_is_never_too_small_and_close(phi):
    u = np.random.default_rng(0).normal(size=(60, 2)) * np.logspace(-3, 1, 60)[:, None]
    derived, true = given(phi).conjugate(u), phi.conjugate(u)
    assert (derived >= true * (1.0 - 1e-13)).all()
    clear = np.isfinite(true) & (np.abs(phi.domain.gauge(u) - 1.0) > 1e-6)
    np.testing.assert_allclose(derived[clear], true[clear], rtol=1e-6, atol=1e-9)


def test_a_subgradient_that_is_missed_makes_the_conjugate_larger_not_smaller(monkeypatch):
    u, penalty = np.array([[1.0, 0.0], [0.3, -0.4]]), given(gr.SquaredL2())
    penalty.check(2)
    missed = (1.0 - 1e-6) * u
    monkeypatch.setattr(type(penalty), "_nearby", lambda *_: (missed, gr.SquaredL2().conjugate(missed)))
    assert (penalty.conjugate(u) >= gr.SquaredL2().conjugate(u)).all()


def test_conjugates_are_bounded_over_whole_balls_and_only_inside_of_their_domain():
    turned = given(gr.Quadratic(np.array([[1.0, 0.9], [0.9, 1.0]])))
    assert (turned._balls(2)[:15] >= RADII[:15] ** 2 / (2.0 * 0.1)).all()  # along (1, -1), between the axes
    np.testing.assert_array_equal(np.isinf(given(gr.L1())._balls(2)), RADII * 4.0 > 1.0)


def column(s):
    return np.reshape(s, (-1, 1))


def soft(v, s):
    return np.sign(v) * np.maximum(np.abs(v) - s, 0.0)


def absolute(a):
    return lambda z: a * np.abs(z), lambda v, s: soft(v, a * s), lambda u: np.where(np.abs(u) <= a, 0.0, np.inf)


def squared(a):
    return lambda z: 0.5 * a * z * z, lambda v, s: v / (1.0 + a * s), lambda u: u * u / (2.0 * a)


def within(b):
    return (lambda z: np.where(np.abs(z) <= b, 0.0, np.inf), lambda v, s: np.clip(v, -b, b), lambda u: b * np.abs(u))


def beyond(e):
    """What is more than e."""
    return (
        lambda z: np.maximum(np.abs(z) - e, 0.0),
        lambda v, s: soft(v, s * (np.abs(v) > e + s)) if e == 0.0 else v - np.clip(soft(v, e), -s, s),
        lambda u: np.where(np.abs(u) <= 1.0, e * np.abs(u), np.inf),
    )


def huber(d):
    return (
        lambda z: np.where(np.abs(z) <= d, z * z / 2.0, d * (np.abs(z) - d / 2.0)),
        lambda v, s: np.where(np.abs(v) <= d * (1.0 + s), v / (1.0 + s), v - d * s * np.sign(v)),
        lambda u: np.where(np.abs(u) <= d, u * u / 2.0, np.inf),
    )


def separable(*coordinates):
    """Value, prox and conjugate of what is added up over coordinates."""
    values, proxes, conjugates = zip(*coordinates, strict=True)
    return (
        lambda z: sum(f(x) for f, x in zip(values, z.T, strict=True)),
        lambda v, s: np.stack([f(x, s) for f, x in zip(proxes, v.T, strict=True)], axis=1),
        lambda u: sum(f(x) for f, x in zip(conjugates, u.T, strict=True)),
    )


TURN = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))[0]


def turned(value, prox, conjugate):
    """The same of other coordinates, in which nothing is exact."""
    return lambda z: value(z @ TURN), lambda v, s: prox(v @ TURN, s) @ TURN.T, lambda u: conjugate(u @ TURN)


def by_moreau(value, project, conjugate):
    """A norm whose prox subtracts what is nearly v."""
    return value, lambda v, s: v - column(s) * project(v / column(s)), conjugate


def ball(r):
    return (
        lambda z: np.where(l2(z) <= r, 0.0, np.inf),
        lambda v, s: v * np.minimum(1.0, r / np.maximum(l2(v), 1e-300))[:, None],
        lambda u: r * l2(u),
    )


RIGHT = {
    **{
        repr(phi)[:20]: (phi.value, phi.prox, phi.conjugate) for phi in [*FORMULAS[:5], gr.Ball(1.0), gr.Box(-1.0, 1.0)]
    },
    **{f"ball {r:g}": ball(r) for r in (1.0, 1e-3, 1e6)},
    "groups": (
        lambda z: l2(z[:, :2]) + np.abs(z[:, 2]),
        lambda v, s: np.hstack([gr.L2().prox(v[:, :2], s), gr.L1().prox(v[:, 2:], s)]),
        lambda u: np.where((l2(u[:, :2]) <= 1.0) & (np.abs(u[:, 2]) <= 1.0), 0.0, np.inf),
    ),
    "sparse groups": (
        lambda z: l2(z) + np.abs(z).sum(axis=1),
        lambda v, s: gr.L2().prox(gr.L1().prox(v, s), s),
        lambda u: np.where(l2(soft(u, 1.0)) <= 1.0, 0.0, np.inf),
    ),
    "elastic net": (
        lambda z: np.abs(z).sum(axis=1) + 0.5 * l2(z) ** 2,
        lambda v, s: soft(v, column(s)) / (1.0 + column(s)),
        lambda u: 0.5 * (np.maximum(np.abs(u) - 1.0, 0.0) ** 2).sum(axis=1),
    ),
    "l2 by Moreau": by_moreau(l2, lambda q: q / np.maximum(1.0, l2(q))[:, None], gr.L2().conjugate),
    "box by Moreau": (
        lambda z: np.where((np.abs(z) <= 1.0).all(axis=1), 0.0, np.inf),
        lambda v, s: v - column(s) * soft(v / column(s), 1.0 / column(s)),
        lambda u: np.abs(u).sum(axis=1),
    ),
    "boxes": separable(within(1.0), within(1e-4), within(1e4)),
    "squares": separable(squared(1.0), squared(1e-2), squared(1e2)),
    "Huber": separable(huber(1.0), huber(0.1), huber(10.0)),
    "beyond": separable(beyond(0.2), beyond(0.2), beyond(0.2)),
    "mixed": separable(absolute(1.0), within(1.0), absolute(0.5)),
    "turned boxes": turned(*separable(within(1.0), within(1.0), within(1.0))),
    "turned beyond": turned(*separable(beyond(0.1), beyond(0.1), beyond(1.0))),
    "turned mixed": turned(*separable(absolute(1.0), squared(1.0), within(1.0))),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_prox_is_believed_at_flows_of_all_sizes(name):
    """Near 0, and where coordinates differ by many powers of ten; what a prox rounds is paid for there."""
    value, prox, true = RIGHT[name]
    rng = np.random.default_rng(1)
    u = rng.choice([-1.0, 1.0], (1200, 3)) * 10.0 ** np.concatenate(
        [rng.uniform(*decades, (400, 3)) for decades in ((-16.0, -2.0), (-12.0, 0.0), (-1.0, 1.0))]
    )
    u = np.vstack([u, [[-3e-13, 1.6e-5, -1e-4]]])
    found, exact = gr.Penalty.from_prox(value, prox, name="mine").conjugate(u), true(u)
    assert (found >= exact * (1.0 - 1e-12)).all()
    clear = np.isfinite(true((1.0 + 1e-6) * u))
    assert np.isfinite(found[clear]).all()
    assert (found[clear] - exact[clear] <= 2e-6 * (exact + l2(u))[clear] + 1e-10).all()  # of slopes near 1


def in_between(slope):
    """The prox of a sum over coordinates, by halving: p + step slope(p) = |v|."""

    def prox(v, s):
        low, high = np.zeros_like(v), np.abs(v)
        for _ in range(90):
            middle = (low + high) / 2.0
            above = middle + column(s) * slope(middle) > np.abs(v)
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return np.sign(v) * low

    return prox


def fair(v, s):
    a, b = np.abs(v), np.abs(v) - 1.0 - column(s)
    root = np.sqrt(b * b + 4.0 * a)
    return np.sign(v) * np.where(b > 0.0, (b + root) / 2.0, 2.0 * a / np.maximum(root - b, 1e-300))


def log_cosh(z):
    return (np.abs(z) + np.log1p(np.exp(-2.0 * np.abs(z))) - np.log(2.0)).sum(axis=1)


ASYMPTOTIC = {  # slopes that approach 1, and reach it nowhere
    "log-cosh": (log_cosh, in_between(np.tanh), lambda u: u * np.arctanh(u) + np.log1p(-u * u) / 2.0),
    "fair": (lambda z: (np.abs(z) - np.log1p(np.abs(z))).sum(axis=1), fair, lambda u: -np.log1p(-u) - u),
    "pseudo-Huber": (
        lambda z: (z * z / (np.sqrt(1.0 + z * z) + 1.0)).sum(axis=1),
        in_between(lambda z: z / np.sqrt(1.0 + z * z)),
        lambda u: 1.0 - np.sqrt(1.0 - u * u),
    ),
}


@pytest.mark.parametrize("name", thinned(ASYMPTOTIC, every=2))
def test_slopes_that_only_approach_their_bound(name):
    value, prox, true = ASYMPTOTIC[name]
    penalty = gr.Penalty.from_prox(value, prox, name="mine")
    u = 1.0 - 10.0 ** np.linspace(-1.0, -7.5, 40)[:, None]
    found, exact = penalty.conjugate(u), true(u[:, 0])
    assert np.isfinite(found).all()
    assert (found >= exact).all()
    inner = u[:, 0] < 1.0 - 1e-4
    assert (found - exact <= 2e-4 * exact)[inner].all()
    # its domain closes on itself
    beyond = np.array([[1.0, -3.0], [2.0, 0.5], [1e6, -1e3]])
    assert np.isfinite(penalty.conjugate(penalty.domain.clip(beyond))).all()
    at_the_end = beyond / penalty.domain.gauge(beyond)[:, None]
    assert np.isfinite(penalty.conjugate((1.0 - 1e-9) * at_the_end)).all()
    assert np.isinf(penalty.conjugate((1.0 + 1e-7) * at_the_end)).all()
    check_penalty(penalty, k=1).raise_if_failed()


def test_slopes_without_a_bound_have_a_conjugate_everywhere():
    check_penalty(
        gr.Penalty.from_prox(lambda z: (np.abs(z) ** 1.5).sum(axis=1) / 1.5, in_between(np.sqrt)), k=2
    ).raise_if_failed()


def test_a_point_outside_of_the_domain_has_no_conjugate():
    """Where rounding moves all that the prox returns out of a domain that is thin, nothing is known."""
    value, prox, _ = turned(*separable(within(1e-6), within(1e6), within(1.0)))
    with pytest.raises(TermError, match="no conjugate can be derived"):
        gr.Penalty.from_prox(value, prox, name="mine").check(3)


WRONG = {
    "step left out": (l2, lambda v, s: gr.L2().prox(v, np.ones(len(v)))),
    "another norm": (lambda z: np.abs(z).max(axis=1), lambda v, s: gr.L1().prox(v, s)),
    "a square without its half": (lambda z: l2(z) ** 2, lambda v, s: v / (1.0 + column(s))),
    "a ball too small": (ball(1.0)[0], ball(0.9)[1]),
    "a ball too large": (ball(1.0)[0], ball(1.1)[1]),
    "fair with a longer step": (ASYMPTOTIC["fair"][0], lambda v, s: fair(v, 1.01 * s)),
    "log-cosh beside another": (log_cosh, ASYMPTOTIC["pseudo-Huber"][1]),
    "a box for a ball": (ball(1.0)[0], lambda v, s: np.clip(v, -1.0, 1.0)),
}


def said_of(value, prox):
    try:
        return str(check_penalty(gr.Penalty.from_prox(value, prox, name="mine"), k=2))
    except TermError as error:
        return str(error)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_prox_is_not_believed(name):
    assert re.search("FAIL|no conjugate can be derived", said_of(*WRONG[name]))


@pytest.mark.parametrize("phi", thinned(FORMULAS[:5], every=2), ids=lambda phi: type(phi).__name__)
def test_it_obeys_the_laws_and_is_solved_by_both_routes(phi):
    penalty = given(phi)
    check_penalty(penalty).raise_if_failed()
    for method in (gr.Exact(), gr.PrimalDual()):
        solution, plain = (chain(penalty=each).solve(method) for each in (penalty, phi))
        assert solution.status == "certified"
        assert solution.certificate.dual <= plain.objective
        assert plain.certificate.dual <= solution.objective


def test_laws_of_a_form_that_was_not_given_are_not_tried_and_said_so():
    report = check_penalty(gr.Penalty.from_prox(gr.L1().value, gr.L1().prox, name="mine"))
    assert report.ok, report
    assert set(report.untried) == {"cvxpy value", "cvxpy argmin", "as written"}
    assert "every law holds; 3 not tried" in str(report)
    assert "skip  cvxpy value: not tried, the penalty mine has no form in CVXPY" in str(report)
    assert not check_penalty(given(gr.L1())).untried


def test_a_prox_of_another_function_is_found_out():
    wrong = gr.Penalty.from_prox(gr.L2().value, lambda v, step: gr.L2().prox(v, 2.0 * np.asarray(step)))
    failed = {failure.law for failure in check_penalty(wrong).failures}
    assert "fenchel young everywhere" in failed
    solution = chain(penalty=wrong).solve(gr.PrimalDual(), on_failure="return")
    assert solution.status == "failed"


def test_what_does_not_grow_is_refused():
    first = np.array([1.0, 0.0])
    flat = gr.Penalty.from_prox(
        lambda z: np.abs(z[:, 0]), lambda v, step: np.where(first, gr.L1().prox(v, step), v), name="flat"
    )
    with pytest.raises(TermError, match="flat on 2 coordinates: it does not grow in every direction"):
        flat.check(2)


def test_without_a_form_in_cvxpy_the_exact_route_does_not_apply_and_says_why():
    problem = chain(penalty=gr.Penalty.from_prox(gr.L1().value, gr.L1().prox, name="mine"))
    with pytest.raises(MethodError, match=r"mine has no form in CVXPY.*pass cvxpy= to from_prox.*gr.PrimalDual"):
        problem.solve(gr.Exact())
    listed = problem.methods().loc["Exact"]
    assert not listed["applies"]
    assert "the penalty mine has no form in CVXPY" in listed["missing"]
    assert problem.solve(gr.PrimalDual()).status == "certified"
    with pytest.raises(TermError, match="mine has no form in CVXPY"):
        problem.compile()


def test_all_that_apply_are_compared_and_judged_without_the_exact_route():
    problem = chain(penalty=gr.Penalty.from_prox(gr.L1().value, gr.L1().prox, name="mine"))
    compared = gr.compare(problem, seconds=1.0, rounds=50)
    assert "PrimalDual" in str(compared)
    assert not any(name.startswith("Exact") for name in compared.entries)
    judged = problem.certify(np.ones((8, 3)), gap=1e-14)
    assert judged.valid
    assert "exact route" not in [step.name for step in judged.steps]


@pytest.mark.parametrize(
    ("arguments", "named"), [((1, np.abs), "value"), ((np.abs, "p"), "prox"), ((np.abs, np.abs, 3), "cvxpy")]
)
def test_what_is_no_function_is_refused(arguments, named):
    with pytest.raises(TermError, match=f"{named} of from_prox must be a function"):
        gr.Penalty.from_prox(*arguments)


def scalar_steps(v, s):
    return v * np.maximum(1 - s / np.linalg.norm(v, axis=1, keepdims=True), 0)


SLIPS = {
    "a scalar step": (l2, scalar_steps, "prox of the penalty mine takes a number as step.*one per row"),
    "swapped": (l2, lambda s, v: gr.L2().prox(v, s), r"takes its arguments in the other order; .*prox\(v, step\)"),
    "one argument": (l2, lambda v: v, r"raises TypeError.*called as value\(z\) and prox\(v, step\)"),
    "value and prox swapped": (gr.L2().prox, l2, "value or prox raises TypeError"),
    "a scalar value": (np.linalg.norm, gr.L2().prox, r"value of the penalty mine must have the shape \(m,\)"),
    "a column": (lambda z: l2(z)[:, None], gr.L2().prox, r"shape \(m,\).*returned the shape \(\d+, 1\)"),
    "a row short": (l2, lambda v, s: gr.L2().prox(v, s)[1:], r"prox of the penalty mine must have the shape \(m, k\)"),
    "texts": (lambda z: np.full(len(z), "a"), gr.L2().prox, "must be real numbers"),
    "prox nan": (l2, lambda v, s: np.where(v == 0, np.nan, v), "prox of the penalty mine is .*nan.*must be finite"),
    "value nan": (lambda z: np.where(l2(z) == 0, np.nan, l2(z)), gr.L2().prox, "value of the penalty mine is nan"),
    "not 0 at 0": (
        lambda z: 1 + l2(z),
        gr.L2().prox,
        "mine must be 0 at z = 0; of 3 numbers it is 1; subtract the constant",
    ),
    "negative": (lambda z: -l2(z), gr.L2().prox, "mine must not be negative"),
    "not even": (
        lambda z: np.maximum(z, 0).sum(axis=1),
        gr.L1().prox,
        "mine is not even.*NodePenalty, or along arrows, penalty.gr.w.across.digraph",
    ),
    "changes its input": (lambda z: np.abs(z, out=z).sum(axis=1), gr.L1().prox, "mine cannot be used.*read-only"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_in_value_or_prox_are_refused_by_name(slip):
    value, prox, said = SLIPS[slip]
    with pytest.raises(TermError, match=said):
        gr.Penalty.from_prox(value, prox, name="mine")


@pytest.mark.parametrize(
    "value",
    [
        lambda z: np.minimum(np.abs(z), 1).sum(axis=1),
        lambda z: np.sqrt(np.abs(z)).sum(axis=1),
        lambda z: np.log1p(l2(z)),
        lambda z: np.where((z != 0).sum(axis=1) <= 1, 0.0, np.inf),
        lambda z: np.abs(z).min(axis=1),
    ],
)
def test_what_a_midpoint_shows_not_to_be_convex_is_refused(value):
    with pytest.raises(ConvexityError, match=r"mine is not convex: halfway between a = .* and b = .*more than"):
        gr.Penalty.from_prox(value, gr.L1().prox, name="mine")


def test_functions_for_rows_of_one_size_are_tried_on_it_when_they_are_used():
    a = np.arange(1.0, 41.0)
    penalty = gr.Penalty.from_prox(lambda z: np.abs(z) @ a, lambda v, s: gr.L1().prox(v / a, s) * a, name="mine")
    with pytest.raises(TermError, match=r"mine cannot act on 3 coordinates: value or prox raises ValueError"):
        penalty.check(3)
    wrong = gr.Penalty.from_prox(lambda z: l2(z - 0 * a[:40]), lambda v, s: v[:, :39], name="mine")
    with pytest.raises(TermError, match=r"prox of the penalty mine must have the shape \(m, k\)"):
        wrong.check(40)


def test_functions_of_matrices_have_another_shape_on_other_rows_and_are_taken():
    def parts(v):
        return np.linalg.svd(v.reshape(-1, 2, 2), full_matrices=False)

    def prox(v, s):
        U, sizes, V = parts(v)
        return (U * np.maximum(sizes - np.reshape(s, (-1, 1)), 0)[:, None] @ V).reshape(v.shape)

    nuclear = gr.Penalty.from_prox(lambda z: parts(z)[1].sum(axis=1), prox, name="nuclear")
    assert check_penalty(nuclear, k=(4,))
    with pytest.raises(TermError, match=r"nuclear cannot act on 3 coordinates: value .* must have the shape \(m,\)"):
        nuclear.check(3)
    with pytest.raises(TermError, match=r"prox of the penalty mine must have the shape \(m, k\)"):
        gr.Penalty.from_prox(l2, lambda v, s: v[:, :1], name="mine")  # right on rows of one number alone


def test_a_formula_that_divides_by_0_on_its_way_gives_no_warning():
    def prox(v, s):
        return scalar_steps(v, np.reshape(s, (-1, 1)))

    penalty = gr.Penalty.from_prox(l2, prox, name="mine")
    assert not penalty.prox(np.zeros((2, 3)), 1.0).any()
    stuck = gr.Penalty.from_prox(l2, lambda v, s: 1.0 * v, name="mine")
    assert np.isinf(stuck.domain.gauge(np.ones((1, 3)))).all()


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=lambda method: method.name)
def test_a_gap_below_the_floor_of_a_derived_conjugate_names_the_penalty(method):
    budget = {"seconds": 5.0} if method == gr.Exact() else {"rounds": 4000}
    derived, closed = (
        chain(penalty=phi).solve(method, gap=1e-15, on_failure="return", **budget) for phi in (given(gr.L2()), gr.L2())
    )
    said = r"the conjugate of l2\(z\) is derived, .* too rough for a smaller gap: write a class with a conjugate"
    assert re.search(said, derived.message), derived.message
    assert "standardise" not in derived.message
    assert closed.status != "certified"
    assert "derived" not in closed.message


def test_far_above_the_floor_it_is_not_blamed():
    solution = chain(penalty=given(gr.L2())).solve(gr.PrimalDual(), gap=1e-15, rounds=3, on_failure="return")
    assert "derived" not in solution.message


def test_a_prox_that_is_not_that_of_the_value_is_blamed_as_such():
    def shrunk_too_far(v, step):
        t = np.reshape(step, (-1, 1))
        return np.sign(v) * np.maximum(np.abs(v) - t, 0.0) / (1.0 + 2.0 * t)

    net = gr.Penalty.from_prox(lambda z: np.abs(z).sum(axis=1) + (z**2).sum(axis=1) / 2, shrunk_too_far, name="net")
    report = gr.testing.check_penalty(net)
    assert str(report).startswith("net: ")
    assert "value and prox do not belong together" in str(report)
    assert "conjugate is too small" not in str(report)
    twice = gr.Penalty.from_prox(gr.L1().value, gr.L1().prox, cvxpy=lambda Z: 2 * gr.L1().cvxpy(Z))
    assert "do not belong together" not in str(gr.testing.check_penalty(twice))  # but the form in CVXPY is wrong
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({k: (rng.normal(size=(6, 2)), rng.normal(size=6)) for k in range(5)})
    problem = gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(gr.Graph.chain(5), net))
    message = problem.solve(gr.PrimalDual(), on_failure="return", rounds=100).message
    assert "value and prox do not belong together" in message
    assert "mend the method that is wrong" not in message
