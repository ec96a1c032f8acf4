"""The factor that an algorithm got wrong is read off its limit: laws on optima of models with a planted factor."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from audit_cases import network

import graphreg as gr
from graphreg.auditing import naming
from graphreg.auditing.balance import accepted, balanced
from graphreg.auditing.limits import Limit, Optimum
from graphreg.auditing.naming import NearProblem, entries, nearest
from graphreg.compiling import conic
from graphreg.methods import Exact
from graphreg.running import Budget, solve

KINDS = ("l2", "l1", "squared", "linf")


def optimum(form):
    return solve(form, Exact(), Budget(1e-12, progress=False), conic.Compiler(form)).certificate.w


def with_weights(form, change):
    (edge,) = form.edges
    return replace(form, edges=(replace(edge, base_weight=change(edge.base_weight)),))


@pytest.mark.parametrize("penalty", KINDS)
@pytest.mark.parametrize("t", [0.5, 2.0, 0.3])
def test_a_planted_strength_is_read_off(penalty, t):
    form = network(penalty, seed=int(10 * t)).form
    found = accepted(balanced(form, optimum(with_weights(form, lambda c: t * c))))
    assert found[0].kind == "strength"
    assert found[0].factor == pytest.approx(t, rel=1e-5)


@pytest.mark.parametrize("penalty", ["l2", "l1", "squared"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_weight_of_one_edge_is_read_off(penalty, seed):
    form = network(penalty, seed).form
    (edge,) = form.edges
    w = optimum(form)
    split = np.flatnonzero(np.abs(edge.difference(w)).max(axis=1) > 0.2)
    e, t = int(split[0]), 0.5
    changed = with_weights(form, lambda c: np.where(np.arange(len(c)) == e, t * c, c))
    found = accepted(balanced(form, optimum(changed)))
    named = [each for each in found if each.kind == "edge" and f"({edge.tail[e]}, {edge.head[e]})" in each.name]
    assert named
    assert named[0].factor == pytest.approx(t, rel=1e-4)


@pytest.mark.parametrize("penalty", KINDS)
def test_the_sum_for_the_mean_and_forgotten_weights_are_read_off(penalty):
    form = network(penalty, seed=3).form
    (block,) = form.samples
    summed = replace(form, samples=(replace(block, base_scale=np.ones(len(block.node))),))
    found = accepted(balanced(form, optimum(summed)))
    assert found[0].sentence == "sum for mean: the sum over samples for their mean"
    found = accepted(balanced(form, optimum(with_weights(form, np.ones_like))))
    assert found[0].sentence == "the edge weights forgotten"


@pytest.mark.parametrize("penalty", [*KINDS, "consensus"])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_balances_the_model_and_nothing_else(penalty, seed):
    form = network(penalty, seed).form
    found = balanced(form, optimum(form))
    assert found[0].residual < 1e-5
    assert all(each.kind == "model" or abs(each.factor - 1.0) < 1e-3 for each in accepted(found))


def test_a_sign_is_read_off_where_gradients_say_so():
    form = network("squared").form
    (block,), (edge,) = form.samples, form.edges
    n, d = form.shape
    H = np.zeros((n * d, n * d))  # the stationary point with the penalty subtracted
    for i in range(n):
        rows = block.node == i
        H[i * d : (i + 1) * d, i * d : (i + 1) * d] = (block.X[rows] * block.scale[rows, None]).T @ block.X[rows]
    K = edge.flat(d).toarray()
    H -= 0.1 * K.T @ (np.repeat(edge.weight, d)[:, None] * K)
    w = np.linalg.solve(H, -block.adjoint(block.prices(np.zeros(form.shape)), form.shape).ravel()).reshape(n, d)
    found = accepted(balanced(form, w))
    assert found[0].factor == pytest.approx(-0.1)
    assert "-1/10 in the strength" in found[0].sentence


def test_points_near_by_balance_nothing():
    form, rng = network("l2").form, np.random.default_rng(0)
    assert not accepted(balanced(form, optimum(form) + 0.1 * rng.normal(size=form.shape)))


def test_the_dictionary_names_what_is_nearest():
    problem = network("l2", seed=1)
    form, known = problem.form, Optimum.of(problem)
    w, twice = known.w, optimum(with_weights(form, lambda c: 2.0 * c))
    slow = twice + 1e-3 * (w - twice)  # not there yet
    best = nearest(entries(form, slow, known))
    assert best is not None
    assert best.name.startswith("factor 2 in the strength")
    assert nearest(entries(form, w + np.random.default_rng(0).normal(size=w.shape), known)) is None


def test_optima_at_the_same_place_are_no_name():
    one, two = NearProblem("a", 1e-12), NearProblem("b", 1e-8)
    assert nearest([one, two, NearProblem("c", 0.9)]) is None
    assert nearest([one, NearProblem("c", 0.9)]) is one


def test_optima_that_are_at_the_limit_are_said_where_they_are_no_name(monkeypatch):
    """It was said that none of the modified problems has this optimum, the nearest at 1e-8 of the distance."""
    known = Optimum.of(network("l2", seed=1))
    limit = Limit("wrong", 1.0, 0.0, known.w + 1.0, "")
    for second, said in (
        (1e-12, "is close to the optima of near and of other, and cannot"),
        (0.9, "near (its optimum"),
    ):
        given = [NearProblem("near", 1e-12), NearProblem("other", second), NearProblem("far", 0.95)]
        monkeypatch.setattr(naming, "entries", lambda form, limit, optimum, given=given: given)
        (finding,) = naming._of_dictionary(known, limit)
        assert said in finding.sentence
        assert "none of" not in finding.sentence
    monkeypatch.setattr(naming, "entries", lambda form, limit, optimum: [NearProblem("far", 0.95)])
    assert "none of 1 modified problems has" in next(naming._of_dictionary(known, limit)).sentence


def test_what_no_limit_tells_apart_is_one_class():
    """Where all nodes have the same number of samples, a sum for the mean is a factor in the strength."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(5, 2)), rng.normal(size=5)) for i in range(6)})
    form = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(gr.Graph.chain(6), gr.L2())).form
    found = accepted(balanced(form, optimum(with_weights(form, lambda c: c / 5.0))))
    assert {each.kind for each in found} >= {"nodes", "strength"}
    assert any(each.sentence.startswith("sum for mean") for each in found)


def test_a_name_that_is_one_of_several_says_so_and_the_strength_comes_before_one_edge():
    """On a ring in two halves the flows of two edges are all that a limit shows: twice the strength, one edge x 3."""
    rng, samples = np.random.default_rng(0), {}
    for i in range(8):
        X = rng.normal(size=(6 + i, 2))
        samples[i] = X, X @ ([1.0, -1.0] if i < 4 else [-1.0, 2.0]) + 0.3 * rng.normal(size=6 + i)
    loss, edges = gr.SquaredLoss(gr.NodeData.from_dict(samples)), gr.TotalVariation(nx.cycle_graph(8), gr.L2())
    twice = gr.Problem(loss + 0.4 * edges).solve(gap=1e-12).coef
    report = gr.audit(gr.Problem(loss + 0.2 * edges), [twice] * 60)
    assert report.name.startswith("factor 2 in the strength")
    assert "or what this limit cannot tell from it (balances to" in report.name
    assert any("cannot tell it from: the edge (3, 4) x 3" in each.sentence for each in report.findings)
    path = gr.TotalVariation(nx.path_graph(8), gr.SquaredL2())
    twice = gr.Problem(loss + 0.4 * path).solve(gap=1e-12).coef
    alone = gr.audit(gr.Problem(loss + 0.2 * path), [twice] * 60)
    assert alone.name.startswith("factor 2 in the strength")
    assert "cannot tell" not in str(alone)


def squared_and_ridge():
    """A problem all of whose forces are linear and seen, and its matrices: H w - b + T w + w / 100 = 0."""
    problem = network("squared")
    return gr.Problem(problem.model + 0.01 * gr.NodePenalty(gr.SquaredL2())).form


LEFT_OUT = {
    "end": "missing edge: the edge (5, 7) at its end 7 left out",
    "edge": "missing edge: the edge (5, 7) left out",
    "strength": "NodePenalty(SquaredL2) left out",
    "node": "the losses of the node 7 left out",
}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_what_is_left_out_is_named_where_the_rest_balances(kind):
    """The rest of the forces is 0 then, and the factor was taken for 1."""
    form = squared_and_ridge()
    links, ridge = form.edges
    (block,), (n, d) = form.samples, form.shape
    zero = np.zeros(form.shape)
    whole = np.eye(n * d).reshape(n * d, n, d)
    constant = block.adjoint(block.prices(zero), form.shape)
    H = np.array([block.adjoint(block.prices(w), form.shape) - constant for w in whole])
    K, c = links.flat(d).toarray(), np.repeat(links.weight, d)
    e = next(k for k in range(len(links.tail)) if (links.tail[k], links.head[k]) == (5, 7))
    c[e * d : (e + 1) * d] *= kind != "edge"
    flow = c[:, None] * K
    back = K.T.copy()
    back[7 * d : 8 * d, e * d : (e + 1) * d] *= kind != "end"
    losses = np.where(np.arange(n) == 7, float(kind != "node"), 1.0)[:, None]
    R = 0.0 if kind == "strength" else np.diag(np.repeat(ridge.weight, d))
    A = (H * losses).reshape(n * d, -1).T + back @ flow + R
    w = np.linalg.solve(A, -(constant * losses).ravel()).reshape(n, d)
    found = accepted(balanced(form, w))
    assert [each.sentence for each in found] == [LEFT_OUT[kind]]
    assert found[0].factor == 0.0


def test_a_neighbour_that_one_end_leaves_out_is_the_name_of_an_audit():
    def deaf(problem):
        o = problem.oracles()
        w, back = np.zeros((o.n, o.d)), o.K.toarray().T
        back[7, (o.tail == 5) & (o.head == 7)] = 0.0
        while True:
            w = w - (o.gradient(w) + back @ o.edge_gradient(o.K @ w)) / (o.smoothness.max() + 8.0)
            yield w

    report = gr.audit(network("squared"), deaf, claims=["limit"])
    assert report.verdict == "wrong"
    assert report.name.startswith("missing edge: the edge (5, 7) at its end 7 left out"), report


def test_several_families_that_balance_are_all_said():
    """Their residuals are rounding: that none balances was said beside them."""
    families = balanced(network().form.frozen(), network().solve(gap=1e-12).coef)
    tied = [replace(each, residual=4e-16, factor=f) for each, f in zip(families, (1.96, 2.74), strict=False)]
    (found,) = naming._of_balance(network().form, (), tied, 0.0, False)
    assert found.outcome == "remark"
    said = [f"{each.name} x {each.factor:.3g}" for each in tied]
    assert found.sentence.startswith("the limit balances several models with one factor changed")
    assert all(each in found.sentence for each in said)
    (found,) = naming._of_balance(network().form, (), [replace(tied[0], residual=0.1)], 0.0, False)
    assert found.sentence.startswith("no model with one factor changed balances the limit")


def test_a_limit_that_is_nearly_right_is_named_by_its_factor():
    """Within the tolerance of balance the model itself balances, and flows of squares leave no ball."""

    def slip(factor):
        def algorithm(problem):
            o = problem.oracles()
            w, L = np.zeros((o.n, o.d)), (o.smoothness + 2 * abs(o.K).T @ o.weight)[:, None]
            while True:
                w = w - (o.gradient(w) + factor * (o.K.T @ o.edge_gradient(o.K @ w))) / L
                yield w

        return algorithm

    rng = np.random.default_rng(1)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(4 + i, 2)), rng.normal(size=4 + i)) for i in range(4)})
    problem = gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(nx.path_graph(4), gr.SquaredL2()))
    for factor in (1.0001, 1.0003):
        report = gr.audit(problem, slip(factor))
        assert report.verdict == "wrong"
        assert f"TotalVariation(SquaredL2) x {factor}" in report.name
    assert {each.evidence for each in gr.audit(problem, lambda p: iter([p.solve(gap=1e-12).coef] * 99)).untried} >= {
        "promptness"
    }


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_the_factor_of_the_only_strength_has_one_name(factor):
    """Beside that of a node penalty stood its losses, upside down, and degrees where there are no edges."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(6 + i, 3)), rng.normal(size=6 + i)) for i in range(4)})

    def ista(problem, start=None):
        o = problem.oracles()
        w, a = np.zeros((o.n, o.d)) if start is None else start, 1.0 / o.smoothness.max()
        while True:
            w = o.node_prox(w - a * o.gradient(w), np.full(o.n, factor * a))
            yield w

    report = gr.audit(gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.NodePenalty(gr.L1())), ista)
    t, other = ("2", "1/2") if factor == 2.0 else ("1/2", "2")
    prox = f"the step of the losses' prox x {other}, of the penalty's x {t}"
    assert report.name.startswith(
        f"factor {t} in the strength: NodePenalty(L1) x {t} (the losses x {other}, or {prox})"
    )
    assert not [each for each in report.findings if each.outcome == "consistent"]
