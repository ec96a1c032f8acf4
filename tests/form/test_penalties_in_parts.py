"""A penalty that says of which others it is the sum has all that these have: cones, the dual form, proofs."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest
from own_terms import Elastic

import graphreg as gr
from graphreg.form import in_parts, joined

CHAIN = nx.path_graph(6)


@dataclass(frozen=True)
class Sum(Elastic):
    """The elastic net, as the sum that it is."""

    def parts(self):
        return [(1.0, gr.L1()), (self.ridge, gr.SquaredL2())]


@dataclass(frozen=True)
class SumOfSums(Elastic):
    """Twice the elastic net with half the ridge, as a sum in sums."""

    def value(self, z):
        return 2.0 * super().value(z)

    def prox(self, v, step):
        return super().prox(v, 2.0 * np.asarray(step))

    def conjugate(self, u):
        return 2.0 * super().conjugate(u / 2.0)

    def cvxpy(self, Z):
        return 2.0 * super().cvxpy(Z)

    def parts(self):
        return [(1.5, Sum(self.ridge)), (0.5, Sum(self.ridge))]


def problem(penalty):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({k: (rng.normal(size=(5, 2)), rng.normal(size=5)) for k in CHAIN})
    model = gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(CHAIN, penalty) + 0.1 * gr.NodePenalty(penalty)
    return gr.Problem(model)


@pytest.mark.parametrize("penalty", [Sum(0.7), SumOfSums(0.7)], ids=["sum", "sum of sums"])
def test_a_sum_has_what_its_parts_have(penalty, tmp_path):
    given = problem(penalty)
    exact = given.solve(gr.Exact(), gap=1e-8)
    inner = given.solve(gr.InteriorPoint(), gap=1e-8)
    assert exact.status == inner.status == "certified"
    assert [u.shape for u in inner.certificate.dual_point.flows] == [u.shape for u in given.form.nothing().flows]
    dual = given.compile(form="dual")
    dual.cvxpy.solve()
    assert abs(dual.cvxpy.value - exact.objective) <= 1e-5 * abs(exact.objective)
    assert float(inner.prove(tmp_path / "proof.json").lower) <= exact.objective


def test_the_parts_have_the_value_of_the_whole_at_other_strengths_too():
    lam = gr.Parameter(1.0, "lam")
    data = gr.NodeData.from_dict({k: (None, [[1.0, k]]) for k in CHAIN})
    given = gr.Problem(gr.MeanLoss(data) + lam * gr.TotalVariation(CHAIN, Sum()))
    w = np.random.default_rng(1).normal(size=given.form.shape)

    def fits(edge):
        return not edge.penalty.parts()

    for strength in (1.0, 0.25):
        lam.value = strength
        parts = in_parts(given.form, fits)
        assert len(parts.edges) == 2
        assert parts.primal(w) == pytest.approx(given.form.primal(w), rel=1e-14)
        (whole,) = joined(given.form, fits, [np.ones((5, 2)), np.full((5, 2), 2.0)])
        assert (whole == 3.0).all()


def test_what_no_part_fits_is_not_taken():
    with pytest.raises(gr.errors.MethodError, match="takes L1, L2 and smooth ones"):
        problem(Elastic()).solve(gr.InteriorPoint())
