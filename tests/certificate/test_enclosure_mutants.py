"""Deliberately broken enclosures. Each is refused by a check in exact arithmetic that the true code passes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from box_cases import LINE, box_holds, each_for_itself, moved, numbers, prices_stay
from test_enclosure import cancelling, conditioned, dummies, exact, exact_move, within

import graphreg as gr
from graphreg.certificate import Enclosure
from graphreg.certificate.enclosure import sums, systems
from graphreg.certificate.enclosure.arcs import Forest
from graphreg.certificate.enclosure.attempt import Attempts, Totals
from graphreg.certificate.enclosure.closing import Closing
from graphreg.certificate.enclosure.sums import Pair, Runs
from graphreg.certificate.enclosure.systems import Systems, reduced, triangles
from graphreg.certificate.enclosure.upper import upper_bound


def refuses(check, *arguments):
    with pytest.raises(AssertionError):
        check(*arguments)


# ---- sums ------------------------------------------------------------------------------------------------------------
def sums_hold():
    X, a, index = cancelling(np.random.default_rng(3), 6, 21)
    found = Runs(index, 6).products(X, a)
    for k in range(6):
        within(found, (k, 0), sum(exact(x) * exact(y) for x, y in zip(X[index == k, 0], a[index == k], strict=True)))


def rounded_product(a, b):
    return a * b, 0.0 * a * b


def without_an_error(true):
    def extracted(*arguments):
        found = true(*arguments)
        return Pair(found.high, 0.0 * found.low, 0.0 * found.error)

    return extracted


@pytest.mark.parametrize(
    ("name", "broken"), [("two_product", rounded_product), ("_extracted", without_an_error(sums._extracted))]
)
def test_sums_that_round(name, broken, monkeypatch):
    sums_hold()
    monkeypatch.setattr(sums, name, broken)
    refuses(sums_hold)


# ---- small systems ---------------------------------------------------------------------------------------------------
def systems_hold():
    rng = np.random.default_rng(7)
    Y, S, T = conditioned(rng, 9, 3, 1e6), rng.uniform(0.1, 1.0, 9), rng.standard_normal(3)
    da, spread = Systems.of(Y[None], S[None], triangles(Y[None], S[None])).solve(T[None], np.zeros((1, 3)))
    want = exact_move(Y, S, T)
    assert all(abs(exact(x) - y) <= exact(s) for x, y, s in zip(da[0], want, spread[0], strict=True))


def test_a_solution_taken_for_exact(monkeypatch):
    true = Systems.solve
    systems_hold()
    monkeypatch.setattr(Systems, "solve", lambda self, T, tau: (true(self, T, tau)[0], 0.0 * self.S))
    refuses(systems_hold)


def test_a_matrix_that_is_not_looked_at(monkeypatch):
    true = Systems.solve
    systems_hold()
    monkeypatch.setattr(
        Systems,
        "solve",
        lambda self, T, tau: true(Systems(self.Y, self.S, self.V, self.Z, 0 * self.DZ, 0 * self.E), T, tau),
    )
    monkeypatch.setattr(systems, "EPS", 0.0)
    refuses(systems_hold)


def almost_dummies():
    Y = dummies(np.random.default_rng(11))
    Y[int(np.argmax(Y[:, 1])), 1] += 2.0**-50
    found = reduced(Y, np.ones(len(Y)), None)
    assert found.why or len(found.chosen) == 4


def test_a_dependency_up_to_rounding(monkeypatch):
    almost_dummies()
    monkeypatch.setattr(systems, "_proved", lambda *arguments: True)
    refuses(almost_dummies)


# ---- boxes -----------------------------------------------------------------------------------------------------------
TOTALS = Totals.__init__


def no_fixed_flows(self, vertex, tree, arcs, u, outside):
    TOTALS(self, vertex, tree, arcs, 0.0 * u, outside)


def saturated():
    """An l1 edge at its capacity, which keeps its flow, between groups that prices balance."""
    problem = gr.Problem(gr.SquaredLoss(numbers()) + 1e-3 * gr.TotalVariation(LINE, gr.L1()))
    found, (edge,) = problem.solve(gr.Exact(), gap=1e-12, on_failure="return"), problem.form.edges
    point = found.certificate.dual_point
    return problem.form, replace(point, flows=(edge.clip((1.0 + 1e-6) * point.flows[0]),))


BROKEN = {
    "flows carry nothing on": ("a strong fusion", Forest, "gather", each_for_itself),
    "totals are left": ("a strong fusion", Closing, "move", prices_stay),
    "fixed flows are forgotten": (None, Totals, "__init__", no_fixed_flows),
}


@pytest.mark.parametrize("name", BROKEN)
def test_boxes_without_a_conserved_point(name, monkeypatch):
    case, owner, method, broken = BROKEN[name]
    form, point = saturated() if case is None else moved(case, 1e-9)
    box_holds(form, point, monkeypatch)
    monkeypatch.setattr(owner, method, broken)
    refuses(box_holds, form, point, monkeypatch)


OUTSIDE = Attempts.__init__


@pytest.mark.parametrize("name", ["squares along a path", "shared and private columns", "half lines"])
def test_what_is_taken_outside(name, monkeypatch):
    """By flows to nodes that are elsewhere: forgotten, or taken for exact, it leaves no conserved point."""
    form, point = moved(name, 1e-9)
    rng = np.random.default_rng(6)
    taken = 1e-6 * rng.standard_normal((2, *form.shape))
    outside = Pair(taken[0], 1e-17 * taken[1], np.full(form.shape, 1e-9))
    box_holds(form, point, monkeypatch, outside)
    for broken in (None, replace(outside, error=0.0 * outside.error)):
        with monkeypatch.context() as patched:
            patched.setattr(
                Attempts, "__init__", lambda self, form, how, _, broken=broken: OUTSIDE(self, form, how, broken)
            )
            refuses(box_holds, form, point, monkeypatch, outside)


# ---- domains and values ----------------------------------------------------------------------------------------------
def fused(strength, loss=gr.SquaredLoss):
    return gr.Problem(loss(numbers()) + strength * gr.TotalVariation(LINE, gr.L2()))


def no_bound_above(lower, w, form):
    """P(w) in rational bounds: roots by their squares are left out, since w is a consensus."""
    block = form.samples[0]
    r = [
        sum(exact(x) * exact(v) for x, v in zip(row, w[i], strict=True)) - exact(y)
        for row, i, y in zip(block.X, block.node.tolist(), block.y, strict=True)
    ]
    P = sum(exact(s) * t * t / 2 for s, t in zip(block.scale, r, strict=True))
    assert not np.isfinite(lower) or Fraction(lower) <= P


def over_capacity(by):
    """Flows of the same problem with a larger strength, offered where nothing may carry as much; a consensus w that is
    not optimal there would do, and the pooled fit is the optimum for the larger strength."""
    rich, poor = fused(10.0), fused(10.0 / by)
    certificate = rich.solve(gap=1e-9).certificate
    split = poor.solve(gap=1e-9).certificate.w
    return poor.form, certificate.dual_point, split


@pytest.mark.parametrize("stand_in", [0.0, 1e-3])
def test_a_finite_number_for_infinity(stand_in, monkeypatch):
    form, point, w = over_capacity(1e3)
    upper = upper_bound(form, w)

    def bounded():
        assert Enclosure(form)(point).value <= upper

    bounded()
    monkeypatch.setattr(gr.L2, "conjugate_bound", lambda self, u, spread: np.full(len(u), stand_in))
    refuses(bounded)


def pooled():
    """The optimum of a strong fusion, whose flows are inside: the dual value is that of the pooled fit."""
    certificate = fused(10.0).solve(gap=1e-10, on_failure="return").certificate
    w = np.tile(certificate.w.mean(axis=0), (len(certificate.w), 1))
    return certificate, w


def test_an_anchor_twice_as_far(monkeypatch):
    certificate, w = pooled()
    form = certificate.form
    no_bound_above(Enclosure(form)(certificate.dual_point).value, w, form)
    monkeypatch.setattr(gr.SquaredLoss, "anchor", lambda self, y: 2.0 * y)
    refuses(no_bound_above, Enclosure(form)(certificate.dual_point).value, w, form)


def test_a_constraint_that_holds_but_for_rounding(monkeypatch):
    """A point 1e-15 outside of a ball has no finite objective."""
    form = gr.Problem(gr.SquaredLoss(numbers()) + gr.NodePenalty(gr.Ball(1.0))).form
    w = np.zeros(form.shape)
    w[0, 0] = 1.0 + 2.0**-52

    def outside():
        assert upper_bound(form, w) == np.inf

    outside()
    monkeypatch.setattr(gr.Ball, "value_bound", lambda self, z, spread: np.zeros(len(z)))
    refuses(outside)
