"""The role of an edge block says what it is; its name is for printing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.certificate.attainment.attainment import at_infinity
from graphreg.certificate.common_model.centring import centred
from graphreg.certificate.edges.fusion import separate
from graphreg.certificate.proof.statement import write_out
from graphreg.distributed.actors.actor import split
from graphreg.errors import MethodError
from graphreg.form import without_edges
from graphreg.methods.baselines._servers import server_form, with_servers
from graphreg.network.arcs import arcs_of
from graphreg.running.splitting import tied_certificate
from graphreg.terms.blocks import EdgeBlock, Lowered
from graphreg.terms.calculus import AbstractTerm
from graphreg.terms.maps import Differences
from graphreg.terms.records import IN_GRAPH, TO_GROUND, Role
from graphreg.theory.clusterwise import Clusterwise
from graphreg.theory.varied import varying

CLUSTERS = {"low": [0, 1], "high": [2, 3]}
PATH = nx.path_graph(4)
LOW, HIGH = Role("hierarchy", 1, 2), Role("hierarchy", 2, 2)


def means(labels=range(4)):
    return gr.MeanLoss(gr.NodeData.from_dict({label: (None, [float(k)]) for k, label in enumerate(labels)}))


class Halves(gr.L1):
    """L1 as a proof has to take it apart."""

    def statement(self, k):
        return None

    def parts(self):
        return [(0.5, gr.L1()), (0.5, gr.L1())]


def everything():
    """A form with an edge block of every role that a model has."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(3, 2)), rng.normal(size=3)) for i in range(4)})
    node = gr.NodePenalty(gr.L1(), center=[3.0, -2.0]) + gr.NodePenalty(gr.Box(-9, 9))
    edges = gr.Parameter(0.5, "lam") * gr.TotalVariation(PATH, Halves()) + gr.Consensus(PATH, features=["x0"])
    return gr.Problem(gr.SquaredLoss(data) + node + edges + gr.Hierarchy(CLUSTERS, (1.0, 2.0)))


def kinds(form):
    return [edge.role.kind for edge in form.edges]


# ---- hierarchies of any height ---------------------------------------------------------------------------------------
def tower(levels):
    """Nodes 0 to 3 in two clusters, under so many levels of edges."""
    tree = CLUSTERS
    for k in range(levels - 2):
        tree = {f"above {k}": tree}
    return gr.Hierarchy(tree, [1.0] * levels)


@pytest.mark.parametrize("levels", [2, 3, 9, 10, 11, 20])
def test_the_ledger_knows_the_levels_of_a_hierarchy_of_any_height(levels):
    form = gr.Problem(means() + tower(levels)).form
    arcs = arcs_of(form)
    for k, level in enumerate(arcs.level):
        leaf = arcs.source[k] < form.space.n_observed
        assert level == ("within clusters" if leaf else "between clusters"), form.labels[arcs.source[k]]
    assert [edge.role for edge in form.edges] == [Role("hierarchy", k + 1, levels) for k in range(levels)]


@pytest.mark.parametrize("levels", [2, 10, 12])
def test_clusters_are_those_above_the_leaves(levels):
    problem = gr.Problem(means() + tower(levels))
    found = problem.solve(gr.ClusteredFedAvg(), on_failure="return")
    np.testing.assert_allclose(found.coef.ravel(), [0.5, 0.5, 2.5, 2.5], atol=1e-4)
    assert len(found.own.form.latent) == 2


def test_both_levels_of_alpha():
    alpha = gr.Hierarchy.from_alpha({**CLUSTERS, "rest": [4]}, alpha={"low": 1.0, "high": 0.3, "rest": 0.0}, gamma=1.0)
    form = gr.Problem(means(range(5)) + alpha).form
    assert [edge.role for edge in form.edges] == [LOW, HIGH, HIGH]


# ---- names decide nothing --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Own(AbstractTerm):
    """A term of the user's with a name of the user's."""

    name: str

    def labels(self):
        return tuple(PATH)

    def lower(self, space, strength):
        tail, head = np.array(PATH.edges).T
        ends = Differences(np.array([space.index[i] for i in tail]), np.array([space.index[j] for j in head]))
        block = EdgeBlock(gr.L2(), strength, ends, np.ones(len(tail)), None, IN_GRAPH, self.name)
        return Lowered(edges=(block,))


@pytest.mark.parametrize("name", ["server rooms", "Hierarchy of roads, level 1", "Hierarchy, level 1", "server"])
def test_a_term_may_have_any_name(name):
    problem = gr.Problem(means() + Own(name))
    assert set(arcs_of(problem.form).level) == {"graph"}
    with pytest.raises(MethodError, match="the model has no Hierarchy"):
        problem.solve(gr.ClusteredFedAvg())
    found = problem.solve(gr.FedAvg(), on_failure="return")
    assert set(found.ledger.by_edge()["level"]) == {"to the server"}
    np.testing.assert_allclose(found.coef, 1.5, atol=1e-4)


def test_nodes_may_have_any_label():
    labels = ["server", "Hierarchy, level 1", "root", ("server", "low")]
    problem = gr.Problem(means(labels) + gr.TotalVariation(nx.path_graph(labels), gr.L2()))
    found = problem.solve(gr.ADMM(), on_failure="return")
    assert set(found.ledger.by_edge()["level"]) == {"graph"}
    clustered = gr.ClusteredFedAvg(clusters={"low": labels[:2], "high": labels[2:]})
    found = problem.solve(clustered, on_failure="return")
    assert set(found.ledger.by_edge()["level"]) == {"to the server", "beyond the graph"}  # of two servers
    np.testing.assert_allclose(found.coef.ravel(), [0.5, 0.5, 2.5, 2.5], atol=1e-4)


class server(gr.L2):  # noqa: N801 - whatever the user calls it
    pass


def test_a_penalty_may_have_any_name():
    problem = gr.Problem(means() + gr.TotalVariation(PATH, server()))
    assert set(arcs_of(problem.form).level) == {"graph"}


def renamed(form):
    names = ("Hierarchy, level 1", "server", "Consensus", "L1")
    edges = tuple(replace(edge, name=names[k % 4]) for k, edge in enumerate(form.edges))
    return replace(form, edges=edges)


def test_other_names_change_nothing():
    form = everything().form
    assert arcs_of(renamed(form)).level == arcs_of(form).level
    target = server_form(form, gr.Zero(), member=np.array([0, 0, 1, 1]), clusters=["low", "high"])
    assert kinds(target) == ["ground", "ground", "server"]
    other = renamed(target)
    assert set(arcs_of(other).level) == {"to the server"}
    w = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(with_servers(other, w), with_servers(target, w))
    np.testing.assert_array_equal(with_servers(other, w)[4:], [[1.0, 2.0], [5.0, 6.0]])


# ---- forms that are made from others ---------------------------------------------------------------------------------
def test_every_block_of_a_model_has_its_role():
    form = everything().form
    assert [e.role for e in form.edges] == [TO_GROUND, TO_GROUND, IN_GRAPH, IN_GRAPH, LOW, HIGH]
    assert [e.ground for e in form.edges] == [True, True, False, False, False, False]
    assert all(e.ground == bool((e.head < 0).all()) for e in form.edges)


def separable():
    """Nothing grows along the first column, where every sample falls and the bound slackens."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.5], [1.0, -0.5]])
    data = gr.NodeData.from_dict({i: (X, [1, 1, 1, 1]) for i in range(4)})
    edges = gr.TotalVariation(PATH, gr.L2()) + gr.Consensus(PATH, features=["x1"]) + gr.Hierarchy(CLUSTERS, (1.0, 2.0))
    return gr.Problem(gr.LogisticLoss(data) + gr.NodePenalty(gr.NonNegative()) + edges).form


def written_out(form):
    stated = replace(form, edges=tuple(edge for edge in form.edges if not edge.ground))
    return write_out(stated, np.zeros(form.shape), stated.nothing())[0]


DERIVED = {
    "frozen": lambda problem: problem.form.frozen(),
    "centred": lambda problem: centred(problem.form, np.array([2.0, 1.0])),
    "alone": lambda problem: without_edges(problem.form),
    "separate": lambda problem: separate(problem.form).form,
    "written out": lambda problem: written_out(problem.form),
    "at infinity": lambda _: at_infinity(separable()).rest,
    "clusterwise": lambda problem: Clusterwise.of(problem.form, np.array([0, 0, 1, 1]), 2, gr.L2()).pooled,
    "at a strength": lambda problem: varying(problem, "lam", "this").at(2.0),
    "under": lambda problem: varying(problem, "lam", "this").under(gr.L2()),
}


@pytest.mark.parametrize("made", DERIVED)
def test_derived_forms_keep_the_roles(made):
    form = DERIVED[made](everything())
    known = {edge.name: edge.role for source in (everything().form, separable()) for edge in source.edges}
    assert [edge.role for edge in form.edges] == [known[edge.name] for edge in form.edges]
    assert form.edges


def test_the_parts_of_actors_keep_the_roles():
    form = everything().form
    for part in split(form, arcs_of(form)):
        assert [edge.role for edge in part.form.edges] == [form.edges[k].role for k, _ in part.edges]
        assert {edge.role for edge in part.form.edges} & {TO_GROUND, IN_GRAPH, LOW, HIGH}


@pytest.mark.parametrize("k", range(6))
def test_some_edges_are_what_all_are(k):
    edge = everything().form.edges[k]
    rows = np.array([1, 0])
    some = edge.part(rows)
    assert some.role == edge.role
    np.testing.assert_array_equal(some.tail, edge.tail[rows])
    w = np.arange(14.0).reshape(7, 2)
    np.testing.assert_array_equal(some.values(w), edge.values(w)[rows])
    none = edge.part(np.zeros(len(edge.tail), dtype=bool))
    assert len(none.tail) == 0
    assert none.ground == edge.ground


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.MultinomialLoss, gr.MeanLoss], ids=lambda loss: loss.__name__)
def test_some_samples_have_the_values_that_they_have_among_all(loss):
    rng = np.random.default_rng(3)
    X, y = (None, rng.normal(size=(9, 2))) if loss is gr.MeanLoss else (rng.normal(size=(9, 2)), np.arange(9) % 3)
    data = gr.NodeData.from_arrays(X, y, np.arange(9) // 3, weights=rng.uniform(1, 2, 9))
    (block,) = (form := gr.Problem(loss(data)).form).samples
    w, rows = rng.normal(size=form.shape), np.array([7, 2])
    np.testing.assert_array_equal(block.part(rows).predict(w), block.predict(w)[rows])
    np.testing.assert_array_equal(block.part(rows).values(w), block.values(w)[rows])
    np.testing.assert_array_equal(block.part(rows).node, [2, 0])


@pytest.mark.parametrize("k", [0, 2, 4, 5])
def test_a_tie_is_what_its_edge_is(k):
    form = everything().form
    certificate = tied_certificate(form, form.edges[k], 0)
    assert certificate is not None
    assert certificate.form.edges[-1].role == form.edges[k].role
    assert certificate.form.edges[-1].name == "tied"
