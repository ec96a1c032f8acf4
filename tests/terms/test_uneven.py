"""Penalties of the user's between nodes are even: an undirected edge may be listed either way round."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from own_terms import OwnL1

import graphreg as gr
from graphreg.errors import TermError
from graphreg.terms import sums
from graphreg.terms.penalties import slopes
from graphreg.terms.penalties._rows import slopes_of

DATA = gr.NodeData.from_arrays(np.eye(2)[[0, 1, 0, 1, 0, 1]], np.array([0.0, 1, 3, 1, 5, 2]), np.arange(6) // 2)
CHAIN = gr.Graph.chain(3)


def penalty(of_one, base=gr.Penalty):
    """Of a convex function of a number, summed over coordinates; only its value matters here."""

    class Own(base):
        def value(self, z):
            return of_one(z).sum(axis=1)

        def prox(self, v, step):
            return v

        def conjugate(self, u):
            return np.zeros(len(u))

        def cvxpy(self, Z):
            return cp.sum(cp.abs(Z), axis=1)

    return Own()


def unlike(low, high, at=0.0, power=1.0):
    """Slopes -low and high, and beyond ``at`` alone."""
    return lambda z: high * np.maximum(z - at, 0) ** power + low * np.maximum(-z - at, 0) ** power


UNEVEN = {
    "pinball": unlike(0.3, 0.7),
    "a little": unlike(1.0, 1.0 + 1e-6),
    "far away alone": lambda z: np.abs(z) + np.maximum(z - 1e6, 0),
    "near 0 alone": lambda z: np.maximum(np.abs(z), 2 * np.minimum(z, 1e-3)),
    "of one side": unlike(0.0, 1.0),
    "squares": unlike(1.0, 2.0, power=2.0),
    "small": lambda z: 1e-9 * unlike(0.3, 0.7)(z),
    "exponential": lambda z: np.exp(np.minimum(z, 700)) - z - 1.0,
    "infinite on one side": lambda z: np.where(z < -3.0, np.inf, np.abs(z)),
    "of one coordinate": lambda z: np.abs(z) + np.eye(z.shape[1])[0] * np.maximum(z, 0),
}
EVEN = {
    "l1": np.abs,
    "log cosh, with cancellation": lambda z: np.abs(z) + np.log1p(np.exp(-2 * np.abs(z))) - np.log(2.0),
    "softplus": lambda z: 1e6 * (np.logaddexp(0.0, z) - z / 2 - np.log(2.0)),
    "a ball": lambda z: np.where(np.abs(z) > 2.0, np.inf, 0.0),
}


@pytest.mark.parametrize("name", UNEVEN)
@pytest.mark.parametrize("where", ["TotalVariation", "Hierarchy", "one column"])
def test_uneven_ones_are_refused_between_nodes(name, where):
    phi = penalty(UNEVEN[name])
    term = {
        "TotalVariation": lambda: gr.TotalVariation(CHAIN, phi),
        "Hierarchy": lambda: gr.Hierarchy({0: "a", 1: "a", 2: "b"}, weights=(1.0, 1.0), penalty=phi),
        "one column": lambda: gr.TotalVariation(CHAIN, phi, features=DATA.features[:1]),
    }[where]()
    with pytest.raises(TermError, match=r"Own is not even.*how edges are listed.*AbstractOneSided"):
        gr.Problem(gr.SquaredLoss(DATA) + term).form  # noqa: B018


@pytest.mark.parametrize("name", EVEN)
def test_even_ones_are_taken(name):
    assert gr.Problem(gr.SquaredLoss(DATA) + gr.TotalVariation(CHAIN, penalty(EVEN[name]))).form.edges


def test_values_that_raise_far_away_are_taken():
    def cosh(z):
        if np.abs(z).max() > 700:
            raise OverflowError("math range error")
        return np.cosh(z) - 1.0

    assert gr.Problem(gr.SquaredLoss(DATA) + gr.TotalVariation(CHAIN, penalty(cosh))).form.edges


def test_uneven_ones_stand_at_nodes():
    phi = penalty(UNEVEN["pinball"], gr.AbstractOneSided)
    assert gr.Problem(gr.SquaredLoss(DATA) + gr.NodePenalty(phi)).form.edges


def test_the_differences_of_an_answer_are_tried_too(monkeypatch):
    """No draw meets every place where a function may be uneven."""
    monkeypatch.setattr(sums, "refuse_uneven", lambda *given: None)
    model = gr.SquaredLoss(DATA) + gr.TotalVariation(CHAIN, penalty(unlike(1.0, 1.01)))
    found = gr.Problem(model).certify(np.arange(6.0).reshape(3, 2))
    assert not found.valid
    assert "value(-x) = value(x)" in found.note


def test_what_rests_on_terms_of_the_user_says_so():
    own = gr.Problem(gr.SquaredLoss(DATA) + gr.TotalVariation(CHAIN, OwnL1())).solve()
    ours = gr.Problem(gr.SquaredLoss(DATA) + gr.TotalVariation(CHAIN, gr.L1())).solve()
    assert (ours.certificate.scope, ours.certificate.note) == ("global", "")
    assert own.status == "certified"
    assert own.certificate.scope == "own terms"
    said = "value and conjugate of OwnL1 are taken at their word"
    assert said in own.certificate.note
    assert all(said in shown for shown in (str(own), str(own.certificate), own.certificate._repr_html_()))
    assert said in str(own.summary())


# ---- costs by unit ---------------------------------------------------------------------------------------------------
INF = np.inf


@pytest.mark.parametrize(
    ("penalty", "k", "costs"),
    [
        (gr.L1(), 2, ([1.0, 1.0], [1.0, 1.0])),
        (gr.L2(), 1, ([1.0], [1.0])),
        (gr.L2(), 2, None),
        (gr.NonNegative(), 2, ([INF, INF], [0.0, 0.0])),
        (gr.Zero(), 1, ([INF], [INF])),
        (gr.Box([0.0, -INF], [INF, 0.0]), 2, ([INF, 0.0], [0.0, INF])),
        (gr.Box(0.0, 1e-9), 1, None),
        (gr.Box(-1e9, INF), 1, None),
        (gr.Ball(1e-9), 2, None),
        (gr.SquaredL2(), 1, None),
        (gr.HuberNorm(1e-3), 1, None),
    ],
)
def test_costs_by_unit(penalty, k, costs):
    found = slopes(penalty, k)
    assert (found is None) == (costs is None)
    if found is not None:
        np.testing.assert_array_equal(np.array(found), costs)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("far", [1e-5, 1e-1, 1e3, 1e7])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_costs_that_grow_far_out_are_none(k, far, side):
    """On one side alone, of one coordinate."""

    def value(z):
        return np.abs(z).sum(axis=1) + np.maximum(side * z[:, -1] - far, 0.0)

    assert slopes_of(value, k) is None
    assert slopes_of(lambda z: np.abs(z).sum(axis=1), k) is not None


def test_values_of_a_wrong_shape_are_none():
    assert slopes_of(np.abs, 2) is None
    assert slopes_of(lambda z: np.abs(z).sum(), 1) is None
