"""Labels 0 to n - 1 without an object for each are to every reader the tuple of them, and other labels stay theirs."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import DataError, GraphError
from graphreg.inputs.labels import IntegerIndex, IntegerLabels, all_of, as_labels, by_appearance, index_of, places_of
from graphreg.saving import fingerprint

N = 25
TRIED = [
    0,
    3,
    N - 1,
    N,
    -1,
    True,
    2.0,
    2.5,
    "1",
    None,
    np.int64(2),
    np.float64(4),
    Fraction(6, 2),
    10**30,
    (1,),
    np.nan,
]


# ---- one object for all ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 5, N])
def test_integer_labels_are_the_tuple(n):
    labels, plain = IntegerLabels(n), tuple(range(n))
    assert labels == plain
    assert plain == labels
    assert hash(labels) == hash(plain)
    assert {plain: "found"}[labels] == "found"
    assert labels != (*plain[:-1], "other")
    assert labels != list(plain)
    assert labels != IntegerLabels(n + 1)
    assert (len(labels), [*labels], [*reversed(labels)]) == (n, [*plain], [*reversed(plain)])
    for at in (0, -1, n - 1, np.int64(0), slice(2), slice(1, None), slice(None, None, 2), slice(None, None, -1)):
        assert labels[at] == plain[at], at
    assert (labels + ("root",), ("root",) + labels, labels + labels) == (  # noqa: RUF005  (what is tried)
        (*plain, "root"),
        ("root", *plain),
        plain + plain,
    )
    assert np.array(labels).tolist() == [*plain]
    assert pickle.loads(pickle.dumps(labels)) == plain
    with pytest.raises(IndexError):
        labels[n]
    for label in TRIED:
        assert (label in labels, labels.count(label)) == (label in plain, plain.count(label)), label
        if label in plain:
            assert labels.index(label) == plain.index(label)
        else:
            with pytest.raises(ValueError, match="is not among"):
                labels.index(label)
    assert [1] not in labels


def test_few_integer_labels_print_as_their_tuple_and_many_are_cut():
    assert repr(IntegerLabels(3)) == "(0, 1, 2)"
    assert repr(IntegerLabels(10**6)) == "(0, 1, 2, ..., 999999)"


def test_the_index_of_integer_labels_is_the_dict():
    index, plain = IntegerIndex(N), {k: k for k in range(N)}
    assert dict(index) == plain
    assert index == plain
    for label in TRIED:
        assert (label in index, index.get(label)) == (label in plain, plain.get(label)), label
    with pytest.raises(KeyError, match="'x'"):
        index["x"]
    for unhashable in ([1], {}):
        with pytest.raises(TypeError, match="unhashable"):
            unhashable in index  # noqa: B015


# ---- read from what users give ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [range(4), [0, 1, 2, 3], (0, 1, 2, 3), np.arange(4), np.arange(4, dtype=np.uint8), [np.int32(k) for k in range(4)]],
)
def test_integers_in_order_are_kept_as_their_number(given):
    assert isinstance(as_labels(given), IntegerLabels)
    assert as_labels(given) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "given",
    [
        range(1, 4),
        [0, 2, 1],
        (False, True),
        (0.0, 1.0),
        np.array([1, 0]),
        np.array([0.0, 1.0]),
        ["0", "1"],
        [(0,), (1,)],
    ],
)
def test_other_labels_stay_what_they_are(given):
    labels = as_labels(given)
    wanted = tuple(x.item() if isinstance(x, np.generic) else x for x in given)
    assert type(labels) is tuple
    assert labels == wanted
    assert [type(x) for x in labels] == [type(x) for x in wanted]


def numbered_one_by_one(values):
    index = {}
    node = [index.setdefault(value, len(index)) for value in values]
    return tuple(index), node


def rows_of(rng, kind):
    """Labels of rows, of each kind that is read in another way."""
    values = rng.integers(0, 12, size=40)
    return {
        "few": values,
        "negative": values - 7,
        "sorted": np.sort(values),
        "sorted, all there": np.sort(np.append(values, np.arange(12))),
        "wide": values * 10**12,
        "short type": values.astype(np.int8),
        "unsigned": values.astype(np.uint32),
        "larger than signed": values.astype(np.uint64) + np.uint64(2**63),
        "booleans": values > 5,
        "floats": values / 2,
        "texts": values.astype(str),
        "list": values.tolist(),
        "mixed": [int(v) if v % 2 else f"node {v}" for v in values],
        "tuples": [(int(v), "x") for v in values],
    }[kind]


KINDS = [
    "few", "negative", "sorted", "sorted, all there", "wide", "short type", "unsigned", "larger than signed",
    "booleans", "floats", "texts", "list", "mixed", "tuples",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_samples_are_numbered_by_first_appearance(kind, seed):
    rows = rows_of(np.random.default_rng(seed), kind)
    plain = rows.tolist() if isinstance(rows, np.ndarray) else rows
    labels, node = numbered_one_by_one(plain)
    y = np.arange(float(len(plain)))
    given = [rows, plain]
    if kind not in ("tuples", "mixed"):
        given.append(pd.Series(rows))
    for each in given:
        data = gr.NodeData.from_arrays(None, y, each)
        assert data.labels == labels
        assert [type(x) for x in data.labels] == [type(x) for x in labels]
        assert data.node.tolist() == node
        assert data.node.dtype == np.intp
        assert data.counts().tolist() == np.bincount(node).tolist()
        some = data.take(y % 3 == 1)
        assert [some.labels[i] for i in some.node] == [plain[r] for r in np.flatnonzero(y % 3 == 1)]
    if isinstance(rows, np.ndarray) and rows.dtype.kind == "i":
        found = by_appearance(rows)
        assert (found[0], found[1].tolist()) == (labels, node)


def test_a_missing_integer_of_a_frame_is_still_named():
    frame = pd.DataFrame({"node": pd.array([1, None, 2], dtype="Int64"), "y": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match="the node label in row 1 is missing"):
        gr.NodeData.from_frame(frame, "node", "y")


# ---- edges -----------------------------------------------------------------------------------------------------------
def edges_of(rng, n, m):
    pairs = rng.permutation(np.stack(np.triu_indices(n, 1), axis=1))[:m]
    return np.where(rng.random(m)[:, None] < 0.5, pairs, pairs[:, ::-1])


def same(one, two):
    assert one.labels == two.labels
    assert [type(x) for x in one.labels] == [type(x) for x in two.labels]
    assert dict(one.index) == dict(two.index)
    for name in ("tail", "head", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.edges() == two.edges()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.uint64])
def test_edges_of_an_array_are_those_of_its_list(seed, dtype):
    rng = np.random.default_rng(seed)
    edges = (edges_of(rng, 12, 30) + seed * 1000).astype(dtype)
    every = (np.arange(12) + seed * 1000).astype(dtype)
    triples = np.column_stack([edges, rng.integers(1, 9, len(edges)).astype(dtype)])
    same(gr.Graph.from_edges(edges), gr.Graph.from_edges(edges.tolist()))
    same(gr.Graph.from_edges(triples), gr.Graph.from_edges(triples.tolist()))
    weights = rng.random(len(edges))
    for nodes in (every, every[::-1], every.tolist(), range(seed * 1000, seed * 1000 + 12)):
        named = [int(x) for x in nodes]
        same(gr.Graph.from_edges(edges, weights, nodes), gr.Graph.from_edges(edges.tolist(), list(weights), named))
    texts = edges.astype(str)
    same(gr.Graph.from_edges(texts), gr.Graph.from_edges(texts.tolist()))


@pytest.mark.parametrize(
    ("edges", "given"),
    [
        ([[0, 1], [1, 2], [2, 5], [9, 1]], {"nodes": range(3)}),
        ([[0, 1], [1, 2], [2, -1]], {"nodes": range(3)}),
        ([[0, 1], [1, 2], [2, 5]], {"nodes": ["0", 0, 1, 2]}),
        ([[0, 1], [1, 1]], {}),
        ([[0, 1], [1, 2], [1, 0]], {}),
        ([[0, 1, 2], [1, 2, 0]], {}),
        ([[0, 1, 2], [1, 2, 1]], {"weights": [1.0, 2.0]}),
        ([[0, 1], [1, 2]], {"weights": [1.0]}),
        ([[0, 1], [1, 2]], {"weights": [1.0, -2.0]}),
        ([[0, 1, 2, 3]], {}),
        ([[0, 1], [1, 2]], {"nodes": [0, 1, 1, 2]}),
    ],
)
def test_what_is_wrong_with_an_array_of_edges_is_named_as_of_its_list(edges, given):
    with pytest.raises(GraphError) as of_list:
        gr.Graph.from_edges(edges, **given)
    with pytest.raises(GraphError) as of_array:
        gr.Graph.from_edges(np.array(edges), **given)
    assert str(of_array.value) == str(of_list.value)


def test_an_unknown_node_before_a_label_without_hash_is_named_first():
    with pytest.raises(GraphError, match="names the node 'x'"):
        gr.Graph.from_edges([("a", "x"), ("a", [1])], nodes=["a", "b"])
    with pytest.raises(GraphError, match=r"\[1\] is not hashable"):
        gr.Graph.from_edges([("a", "b"), ("a", [1]), ("a", "x")], nodes=["a", "b"])


# ---- places ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(10))
def test_places_are_those_of_a_dict(seed):
    rng = np.random.default_rng(seed)
    sets = [
        as_labels(range(9)),
        as_labels(range(5)),
        as_labels(rng.permutation(14)),
        (3, "a", 0, True, 2.0),
        (10**30, 1, 2),
        ("a", "b", (1, 2)),
    ]
    for known in sets:
        index = index_of(known)
        assert dict(index) == {label: k for k, label in enumerate(known)}
        for labels in sets:
            wanted = [{label: k for k, label in enumerate(known)}.get(label, -1) for label in labels]
            assert places_of(labels, index).tolist() == wanted
        array = rng.integers(-3, 20, size=30)
        assert places_of(array, index).tolist() == [dict(index).get(k, -1) for k in array.tolist()]
    for one in sets:
        for two in sets:
            assert all_of([one, two]) == tuple(dict.fromkeys((*one, *two)))


# ---- in a problem ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", ["in order", "other order", "texts", "fewer data"])
def test_a_problem_is_the_same_whatever_its_labels_are(order):
    rng = np.random.default_rng(3)
    n = 12
    edges = edges_of(rng, n, 25)
    node = rng.permutation(np.repeat(np.arange(n - 2 * (order == "fewer data")), 3))
    X, y = rng.standard_normal((len(node), 2)), rng.standard_normal(len(node))
    names = {"other order": rng.permutation(n).tolist(), "texts": [f"n{k}" for k in range(n)]}.get(order, [*range(n)])

    def problem(label):
        graph = gr.Graph.from_edges(
            [(label(a), label(b)) for a, b in edges.tolist()], nodes=[label(k) for k in range(n)]
        )
        data = gr.NodeData.from_arrays(X, y, [label(k) for k in node.tolist()])
        return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2()))

    mine, plain = problem(lambda k: names[k]), problem(lambda k: (k,))  # tuples: a dict and one object per node
    assert mine.form.labels == tuple(names)
    assert isinstance(mine.form.labels, IntegerLabels) == (names == [*range(n)])
    assert dict(mine.form.space.index) == {name: k for k, name in enumerate(names)}
    for one, two in zip((*mine.form.samples, *mine.form.edges), (*plain.form.samples, *plain.form.edges), strict=True):
        for name in ("node", "X", "y", "base_scale") if hasattr(one, "node") else ("tail", "head", "base_weight"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    found, there = (each.solve(gr.PrimalDual()) for each in (mine, plain))
    assert found.objective == there.objective
    assert found.table().index.tolist() == names
    assert found.labels == tuple(names)
    for (tail, head), flow in there.flows.items():
        np.testing.assert_array_equal(found.flows[names[tail[0]], names[head[0]]], flow)


def test_data_at_an_integer_that_is_no_node_are_refused():
    data = gr.NodeData.from_arrays(None, [1.0, 2.0, 3.0], [0, 1, 2])
    with pytest.raises(DataError, match="the data have samples at 2, which is not a node"):
        gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(gr.Graph.chain(2), gr.L1()))


def test_the_labels_of_a_graph_may_be_given_as_the_nodes_of_a_cluster():
    graph, data = gr.Graph.chain(4), gr.NodeData.from_arrays(None, [1.0, 2.0, 3.0, 4.0], range(4))
    of_labels, of_list = (
        gr.Problem(gr.MeanLoss(data) + gr.Hierarchy({"all": nodes}, [1.0, 1.0]))
        for nodes in (graph.labels, [0, 1, 2, 3])
    )
    assert of_labels.form.labels == of_list.form.labels
    assert of_labels.solve(gr.PrimalDual()).objective == of_list.solve(gr.PrimalDual()).objective
    assert fingerprint.entry(graph.labels) == fingerprint.entry((0, 1, 2, 3))
