"""Parts that are read by sites, each of which knows its own nodes and what its edges lead to: no one has the whole."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pytest

import graphreg as gr
from graphreg.distributed.parts.engine import PartEngine
from graphreg.distributed.parts.local import local_part
from graphreg.distributed.parts.wire import Switchboard, ThreadWire
from graphreg.errors import DataError, MethodError
from graphreg.network import LocalView


@dataclass
class Country:
    """n nodes with their samples and edges, for whole problems and for those of sites."""

    labels: list
    edges: list
    X: np.ndarray
    y: np.ndarray
    node: np.ndarray

    @staticmethod
    def random(seed, n=24, names=False):
        rng = np.random.default_rng(seed)
        labels = [f"county {k:03d}" for k in range(n)] if names else [3 * k + 1 for k in range(n)]
        pairs = {tuple(sorted(pair)) for pair in rng.integers(0, n, (3 * n, 2)).tolist() if pair[0] != pair[1]}
        pairs |= {(k, k + 1) for k in range(n - 2)}  # the last one may be alone
        node = np.repeat(np.arange(n), rng.integers(1, 7, n))
        X = rng.standard_normal((len(node), 3))
        return Country(labels, sorted(pairs), X, X @ [1.0, -1.0, 0.5] + rng.standard_normal(len(node)), node)

    def problem(self, own=None, order=None, penalty=None):
        """Of some of the nodes, with edges and labels in any order; of all of them by default."""
        own = set(range(len(self.labels))) if own is None else own
        rng = np.random.default_rng(order)
        edges = [pair for pair in self.edges if own & set(pair)]
        rows = np.flatnonzero([k in own for k in self.node])
        if order is not None:
            rng.shuffle(edges)
            rng.shuffle(rows)
            rows = rows[np.argsort(self.node[rows], kind="stable")]
            rows = np.sort(rows)  # the samples of a node keep their order
        near = own | {k for pair in edges for k in pair}
        listed = sorted(near) if order is None else rng.permutation(sorted(near)).tolist()
        graph = gr.Graph.from_edges(
            [(self.labels[a], self.labels[b]) for a, b in edges], nodes=[self.labels[k] for k in listed]
        )
        data = gr.NodeData.from_arrays(self.X[rows], self.y[rows], [self.labels[k] for k in self.node[rows]])
        return gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(graph, penalty or gr.L2()))


def together(owner, work):
    """The values of ``work(k, wire)`` for each part, in threads; the first error is raised."""
    count = max(owner) + 1
    board, out, errors = Switchboard(count), [None] * count, []

    def run(k):
        try:
            out[k] = work(k, ThreadWire(board, k))
        except Exception as error:  # noqa: BLE001
            errors.append(error)
            board.break_off()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    if errors:
        raise errors[0]
    return out


def iterated(country, owner, method, rounds=20, order=0):
    def work(k, wire):
        own = {i for i, it in enumerate(owner) if it == k}
        problem = country.problem(own, order=order + k)
        part, of = local_part(problem.form.frozen(), {country.labels[i] for i in own}, wire)
        state = method.init(LocalView(part.form, PartEngine(part, of, wire), 1, part.whole), None)
        for _ in range(rounds):
            state = method.step(state)
        w = method.point(state)[0]
        return {part.form.labels[i]: w[i] for i in np.flatnonzero(part.whole.own)}

    found = {}
    for each in together(owner, work):
        found |= each
    return np.array([found[label] for label in country.labels])


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.ADMM(), gr.PrimalDual(balance=0.7)], ids=lambda m: m.label)
def test_the_bits_do_not_depend_on_the_sites(method, names):
    country = Country.random(1, names=names)
    rng = np.random.default_rng(0)
    alone = iterated(country, [0] * 24, method)
    for count in (2, 3, 5):
        owner = [*range(count), *rng.integers(0, count, 24 - count).tolist()]
        np.testing.assert_array_equal(iterated(country, owner, method, order=count), alone)
    form = country.problem().form.frozen()
    from actor_cases import on_arrays

    whole = on_arrays(method, form, 20).points[-1][0]
    np.testing.assert_allclose(alone, whole, atol=1e-12)


def refused(said, own=(0, 1), change=None):
    country = Country.random(2)
    owner = [0] * 12 + [1] * 12

    def work(k, wire):
        mine = {i for i, it in enumerate(owner) if it == k}
        problem = country.problem(mine)
        labels = {country.labels[i] for i in mine}
        if change is not None and k == 0:
            problem, labels = change(country, mine, problem, labels)
        return local_part(problem.form.frozen(), labels, wire)

    with pytest.raises(DataError, match=said):
        together(owner, work)


def test_what_sites_do_not_agree_on():
    refused(
        "belongs to part 0 and to part 1", change=lambda c, mine, p, labels: (c.problem(mine | {12}), labels | {37})
    )
    refused("no part has it", change=lambda c, mine, p, labels: (c.problem(mine - {5}), labels - {16}))
    refused("not the site's own", change=lambda c, mine, p, labels: (p, labels - {16}))
    refused("is the site's own, and no sample", change=lambda c, mine, p, labels: (p, labels | {"elsewhere"}))
    refused("same edges between them", change=_without_an_edge)
    refused("has others", change=_with_another_feature)
    refused("one weight and one penalty", change=lambda c, mine, p, labels: (c.problem(mine, penalty=gr.L1()), labels))


def _with_another_feature(country, mine, problem, labels):
    wider = Country(country.labels, country.edges, np.column_stack([country.X, country.y]), country.y, country.node)
    return wider.problem(mine), labels


def _without_an_edge(country, mine, problem, labels):
    cut = next(pair for pair in country.edges if len(set(pair) & mine) == 1)
    fewer = Country(country.labels, [pair for pair in country.edges if pair != cut], country.X, country.y, country.node)
    return fewer.problem(mine), labels


def test_penalties_of_shared_edges_are_compared_whole():
    """Not by their names alone."""
    country, owner = Country.random(2), [0] * 12 + [1] * 12

    def work(k, wire):
        own = {i for i, it in enumerate(owner) if it == k}
        problem = country.problem(own, penalty=gr.HuberNorm(0.5 + 0.1 * k))
        return local_part(problem.form.frozen(), {country.labels[i] for i in own}, wire)

    with pytest.raises(DataError, match="one weight and one penalty"):
        together(owner, work)


def test_nodes_of_terms_belong_to_no_site():
    data = gr.NodeData.from_arrays(np.eye(4), np.arange(4.0), list("abcd"))
    model = gr.SquaredLoss(data) + gr.Hierarchy({"one": ["a", "b"], "two": ["c", "d"]}, (1.0, 1.0))
    with pytest.raises(MethodError, match="nodes of their own"):
        together([0], lambda k, wire: local_part(gr.Problem(model).form.frozen(), set("abcd"), wire))
