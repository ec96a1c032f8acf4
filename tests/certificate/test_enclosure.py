"""The parts that an enclosed bound is made of, against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import graphreg as gr
from graphreg.certificate.enclosure import sums as sums_module
from graphreg.certificate.enclosure.arcs import Arcs, forest
from graphreg.certificate.enclosure.closing import Closing
from graphreg.certificate.enclosure.rows import SampleRows
from graphreg.certificate.enclosure.sums import DUST, EPS, Runs, total, two_product, two_sum
from graphreg.certificate.enclosure.systems import Arrow, Systems, reduced, triangles
from graphreg.certificate.rationals import Echelon


def exact(x):
    return Fraction(float(x))


def rational(values):
    return [exact(x) for x in np.ravel(values)]


def within(pair, at, value):
    """The exact value lies within the error of the pair."""
    assert abs(exact(pair.high[at]) + exact(pair.low[at]) - value) <= exact(pair.error[at])


def wide(rng, size, decades=40):
    return rng.standard_normal(size) * 10.0 ** rng.uniform(-decades / 2, decades / 2, size)


# ---- sums ------------------------------------------------------------------------------------------------------------
def test_sums_of_two_are_exact():
    rng = np.random.default_rng(0)
    a, b = wide(rng, 500), wide(rng, 500)
    s, e = two_sum(a, b)
    assert all(exact(x) + exact(y) == exact(p) + exact(q) for x, y, p, q in zip(a, b, s, e, strict=True))


@pytest.mark.parametrize("decades", [0, 40, 260])
def test_products_are_exact(decades):
    rng = np.random.default_rng(1)
    a, b = wide(rng, 500, decades), wide(rng, 500, decades)
    p, e = two_product(a, b)
    assert all(exact(x) * exact(y) == exact(v) + exact(w) for x, y, v, w in zip(a, b, p, e, strict=True))


@pytest.mark.parametrize(("one", "other"), [(1e-150, 3e-160), (1e-200, 1e-200), (1.1e-290, 0.7), (3e-308, 0.3)])
def test_products_at_the_lower_end_of_the_range_are_off_by_dust(one, other):
    runs = Runs(np.zeros(3, dtype=int), 1)
    found = runs.products(np.full((3, 1), one), np.full(3, other))
    within(found, (0, 0), 3 * exact(one) * exact(other))
    assert found.error[0, 0] >= DUST


def test_products_beyond_the_range_bound_nothing():
    with np.errstate(all="ignore"):
        found = Runs(np.zeros(2, dtype=int), 1).products(np.array([[1e301], [1e200]]), np.array([2.0, 1e200]))
    assert not np.isfinite(found.high + found.error).any()


def test_sums_near_the_end_of_the_range_bound_nothing_or_hold():
    rng = np.random.default_rng(2)
    for size in (1e290, 1e300, 1e304, 1e306, 1.7e308):
        values = size * rng.uniform(0.1, 1.0, 64) * rng.choice([-1.0, 1.0], 64)
        with np.errstate(all="ignore"):
            found = Runs(np.zeros(64, dtype=int), 1).sums(values)
        if np.isfinite(found.high[0] + found.low[0] + found.error[0]):
            within(found, 0, sum(rational(values)))


def cancelling(rng, count, length):
    """Runs of products over 40 decades, the second half of each almost undoing the first."""
    X, a = wide(rng, (count * length, 2)), wide(rng, count * length)
    half = length // 2
    for k in range(count):
        first = slice(k * length, k * length + half)
        X[k * length + half : k * length + 2 * half] = X[first]
        a[k * length + half : k * length + 2 * half] = -a[first] * (1.0 + 2.0**-50 * rng.integers(0, 2, half))
    return X, a, np.repeat(np.arange(count), length)


@pytest.mark.parametrize("order", ["sorted", "unsorted", "chunked"])
def test_sums_of_products_with_cancellation(order, monkeypatch):
    rng = np.random.default_rng(3)
    X, a, index = cancelling(rng, 12, 31)
    if order == "unsorted":
        mixed = rng.permutation(len(a))
        X, a, index = X[mixed], a[mixed], index[mixed]
    if order == "chunked":
        monkeypatch.setattr(sums_module, "CHUNK", 40)
    found = Runs(index, 13).products(X, a)
    for k in range(12):
        for j in range(2):
            parts = [exact(x) * exact(y) for x, y in zip(X[index == k, j], a[index == k], strict=True)]
            within(found, (k, j), sum(parts))
            largest = max(abs(p) for p in parts)
            # two layers: what is left is of the order of the unit roundoff squared
            assert exact(found.error[k, j]) <= 64**2 * exact(EPS) ** 2 * largest + exact(DUST) * 64
    assert not found.high[12].any()  # a run without entries
    assert not found.error[12].any()


@pytest.mark.parametrize("plain", [False, True])
def test_plain_and_extracted_sums_hold(plain):
    rng = np.random.default_rng(4)
    values, index = wide(rng, 300), rng.integers(0, 7, 300)
    found = Runs(index, 7).sums(values, plain)
    for k in range(7):
        within(found, k, sum(rational(values[index == k])))


def test_cascaded_totals_hold_and_say_where_they_are_exact():
    rng = np.random.default_rng(5)
    parts = [wide(rng, 50, 30) for _ in range(6)]
    found = total([*parts, *(-p for p in parts[:5])], [])
    for r in range(50):
        within(found, r, exact(parts[5][r]))
    integers = [rng.integers(-99, 99, 5).astype(float) for _ in range(8)]
    found = total(integers, [])
    assert not found.error.any()
    np.testing.assert_array_equal(found.high, np.sum(integers, axis=0))


def test_the_largest_of_each_run():
    rng = np.random.default_rng(6)
    values, index = rng.random(200), rng.integers(0, 9, 200)
    found = Runs(index, 10).largest(values[:, None] - 0.5)[:, 0]
    assert found.tolist() == [np.abs(values[index == k] - 0.5).max() for k in range(9)] + [0.0]


# ---- small systems ---------------------------------------------------------------------------------------------------
def solved(rows, right):
    """The solution of a square system of rationals."""
    rows = [[*row, b] for row, b in zip(rows, right, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(len(rows)):
            if i != k and rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] / row[k] for k, row in enumerate(rows)]


def exact_move(Y, S, T):
    """da = -S Y z with (Y'SY) z = T, in rationals."""
    Y, S, T = [rational(row) for row in Y], rational(S), rational(T)
    p = len(T)
    gram = [[sum(s * row[i] * row[j] for s, row in zip(S, Y, strict=True)) for j in range(p)] for i in range(p)]
    z = solved(gram, T)
    return [-s * sum(x * y for x, y in zip(row, z, strict=True)) for s, row in zip(S, Y, strict=True)]


def conditioned(rng, M, p, condition):
    U, _ = np.linalg.qr(rng.standard_normal((M, p)))
    V, _ = np.linalg.qr(rng.standard_normal((p, p)))
    return U * np.geomspace(1.0, 1.0 / condition, p) @ V


@pytest.mark.parametrize("condition", [1.0, 1e4, 1e8, 1e11, 1e14])
@pytest.mark.parametrize("units", [False, True])
def test_systems_enclose_the_exact_solution(condition, units):
    rng = np.random.default_rng(7)
    proved = []
    for _ in range(4):
        Y, S, T = conditioned(rng, 9, 3, condition), rng.uniform(0.1, 1.0, 9), rng.standard_normal(3)
        if units:  # columns in units over 24 decades change nothing
            scale = 10.0 ** np.array([-12.0, 0.0, 12.0])
            Y, T = Y * scale, T * scale
        systems = Systems.of(Y[None], S[None], triangles(Y[None], S[None]))
        proved.append(bool(systems.ok[0]))
        if not proved[-1]:
            continue
        da, spread = systems.solve(T[None], np.zeros((1, 3)))
        want = exact_move(Y, S, T)
        assert all(abs(exact(x) - y) <= exact(s) for x, y, s in zip(da[0], want, spread[0], strict=True))
        assert spread.max() <= 1e3 * EPS * condition * np.abs(da).max()
    assert all(proved) or condition > 1e12


def test_systems_enclose_every_total_within_its_error():
    rng = np.random.default_rng(8)
    Y, S, T = rng.standard_normal((8, 3)), np.r_[0.0, rng.uniform(0.1, 1.0, 7)], rng.standard_normal(3)
    systems = Systems.of(Y[None], S[None], triangles(Y[None], S[None]))
    tau = np.array([1e-6, 1e-9, 1e-3])
    da, spread = systems.solve(T[None], tau[None])
    for _ in range(20):
        want = exact_move(Y, S, T + tau * rng.uniform(-1.0, 1.0, 3))
        assert all(abs(exact(x) - y) <= exact(s) for x, y, s in zip(da[0], want, spread[0], strict=True))
    assert da[0, 0] == 0.0  # a price without room
    assert spread[0, 0] == 0.0


def test_a_singular_system_is_not_proved():
    Y = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])[None]
    assert not Systems.of(Y, np.ones((1, 3)), triangles(Y, np.ones((1, 3)))).ok[0]
    V = np.array([[[1.0, 0.0], [0.0, 1e-3]]])  # nor for a triangle that somebody made up
    assert not Systems.of(Y, np.ones((1, 3)), V).ok[0]


def test_an_arrow_encloses_what_a_dense_system_has():
    rng = np.random.default_rng(9)
    cells, q, width = 24, 2, 2
    Y = np.zeros((cells * 5, cells * width + q))
    for c in range(cells):
        Y[5 * c : 5 * c + 5, width * c : width * c + width] = rng.standard_normal((5, width))
    Y[:, -q:] = rng.standard_normal((cells * 5, q))
    S, T = rng.uniform(0.2, 1.0, len(Y)), rng.standard_normal(Y.shape[1])
    arrow = Arrow.of(sp.csr_array(Y), S)
    assert arrow is not None
    assert len(arrow.cells) == cells
    da, spread = arrow.solve(T[None], np.zeros((1, len(T))))
    exact_da, around = Systems.of(Y[None], S[None], triangles(Y[None], S[None])).solve(T[None], np.zeros((1, len(T))))
    assert (np.abs(da - exact_da) <= spread + around).all()
    assert spread.max() <= 1e-10
    left = [sum(exact(y) * exact(a) for y, a in zip(Y[:, j], da[0], strict=True)) + exact(T[j]) for j in range(len(T))]
    reach = np.abs(Y).T @ spread[0]
    assert all(abs(x) <= exact(r * (1 + 1e-9)) for x, r in zip(left, reach, strict=True))


def dummies(rng, M=40):
    """An intercept, two groups and a covariate; the groups add up to the intercept."""
    group = rng.integers(0, 2, M)
    return np.column_stack([np.ones(M), group == 0, group == 1, rng.standard_normal(M)]).astype(float)


def test_dummies_beside_an_intercept_are_reduced():
    Y = dummies(np.random.default_rng(10))
    found = reduced(Y, np.ones(len(Y)), None)
    assert found.system is not None
    assert not found.why
    assert len(found.chosen) == 3


@pytest.mark.parametrize("off", [2.0**-52, 1e-12, 1e-6])
def test_almost_dummies_do_not_pass_for_dummies(off):
    Y = dummies(np.random.default_rng(11))
    row = int(np.argmax(Y[:, 1]))
    Y[row, 1] += off
    found = reduced(Y, np.ones(len(Y)), None)
    assert found.why or len(found.chosen) == 4


@pytest.mark.parametrize(("fixed", "follows"), [([3.0, 1.0, 2.0, 0.5], True), ([3.0, 1.0, 2.5, 0.5], False)])
def test_fixed_totals_must_depend_on_one_another_too(fixed, follows):
    Y = dummies(np.random.default_rng(12))
    found = reduced(Y, np.ones(len(Y)), np.array(fixed))
    assert (not found.why) == follows


def uneven(rng, decades):
    """Small whole numbers of a known rank, rows and columns times powers of 2 within so many decades."""
    rank, p, M = int(rng.integers(1, 5)), int(rng.integers(5, 8)), int(rng.integers(8, 30))
    B = rng.integers(-3, 4, (M, rank)) @ rng.integers(-2, 3, (rank, p))
    scales = [np.exp2(np.rint(rng.uniform(-1, 1, size) * decades / np.log10(2.0))) for size in (M, p)]
    return scales[0][:, None] * B * scales[1]


@pytest.mark.parametrize("decades", [3, 8, 12])
def test_the_rank_is_found_where_rows_and_columns_are_uneven(decades):
    """What is left out is a combination, in rational arithmetic; nearly all of these systems are solved."""
    rng, solved = np.random.default_rng(decades), 0
    for _ in range(60):
        Y = uneven(rng, decades)
        Y = Y[:, Y.any(axis=0)]
        S = np.where(rng.random(len(Y)) < 0.1, 0.0, 1.0) if rng.random() < 0.3 else np.ones(len(Y))
        found = reduced(Y, S, None)
        if not found.why:
            solved += 1
            ranks = [exact_rank(Y[:, columns]) for columns in (found.chosen, slice(None))]
            assert ranks == [len(found.chosen)] * 2
    assert solved > 45


def exact_rank(Y):
    """The rank, exactly."""
    system = Echelon(Y.shape[1])
    return sum(bool(system.add([Fraction(x) for x in row])) for row in Y.tolist())


def test_an_uneven_system_has_fixed_totals_that_depend_as_its_columns_do():
    rng = np.random.default_rng(5)
    for _ in range(40):
        Y = uneven(rng, 8)
        whole = np.column_stack([Y, Y[:, 0] + 4.0 * Y[:, 1]])
        fixed = rng.integers(-4, 5, whole.shape[1]).astype(float)
        found = reduced(whole, np.ones(len(Y)), fixed)
        if not found.why:
            system = Echelon(len(Y))
            for column, total_of_it in zip(whole.T.tolist(), fixed.tolist(), strict=True):
                assert system.add([Fraction(x) for x in column], Fraction(total_of_it)) is not None


def test_combinations_with_fractions_are_proved():
    rng = np.random.default_rng(13)
    Y = rng.integers(-8, 8, (30, 3)).astype(float)
    Y = np.column_stack([Y, Y @ [0.5, -3.0, 0.25]])
    assert not reduced(Y, np.ones(30), None).why
    Y[4, 3] += 2.0**-40
    found = reduced(Y, np.ones(30), None)
    assert found.why or len(found.chosen) == 4


# ---- forests ---------------------------------------------------------------------------------------------------------
def grown(graph, penalty, rooms=None, **options):
    data = gr.NodeData.from_dict({i: (np.ones((1, 2)), [0.0]) for i in graph})
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(graph, penalty, **options)).form
    arcs = Arcs.of(form)
    room = np.ones(len(arcs.tail)) if rooms is None else rooms(arcs)
    return arcs, forest(arcs, room, np.ones(2), np.zeros(len(arcs.tail), dtype=bool))


def subtree_sums(tree, values):
    """By climbing from every vertex."""
    out = np.zeros(len(values))
    for vertex, value in enumerate(values):
        at = vertex
        while True:
            out[at] += value
            if tree.parent[at] in {at, len(values)}:
                break
            at = tree.parent[at]
    return out


@pytest.mark.parametrize("graph", [nx.path_graph(70), nx.star_graph(30), nx.random_labeled_tree(60, seed=1)])
def test_subtree_sums(graph):
    _, tree = grown(graph, gr.L1())
    values = np.random.default_rng(14).integers(0, 1000, 2 * len(graph)).astype(float)
    np.testing.assert_array_equal(tree.gather(values), subtree_sums(tree, values))


def test_trees_span_their_groups_and_parents_lie_across_arcs():
    graph = nx.disjoint_union(nx.gnm_random_graph(20, 40, seed=2), nx.path_graph(5))
    arcs, tree = grown(graph, gr.L2())
    roots = tree.parent == np.arange(len(tree.parent))
    assert roots.sum() == 2 * nx.number_connected_components(graph)
    for vertex in np.flatnonzero(~roots):
        arc = tree.arc[vertex]
        assert {arcs.tail[arc], arcs.head[arc]} == {vertex, tree.parent[vertex]}
        assert tree.group[vertex] == tree.group[tree.parent[vertex]]


def test_narrow_arcs_are_gone_through_where_there_is_no_other_way():
    """A ring whose arc (0, 1) has next to no room, and a path with such an arc in the middle."""

    def narrow(arcs):
        return np.where((arcs.tail // 2 == 0) & (arcs.head // 2 == 1), 1e-14, 1.0)

    arcs, tree = grown(nx.cycle_graph(6), gr.L1(), narrow)
    assert not narrow(arcs)[tree.arc[tree.arc >= 0]].min() < 1.0
    arcs, tree = grown(nx.path_graph(6), gr.L1(), narrow)
    assert narrow(arcs)[tree.arc[tree.arc >= 0]].min() == pytest.approx(1e-14)


def test_arcs_without_room_divide_the_groups():
    def closed(arcs):
        return np.where(arcs.tail // 2 == 2, 0.0, 1.0)

    arcs, tree = grown(nx.path_graph(6), gr.L1(), closed)
    assert len(np.unique(tree.group[:-1])) == 4
    assert not tree.movable[arcs.tail // 2 == 2].any()


def test_many_groups_are_moved_together(monkeypatch):
    """One by one, the groups of a chain of a million nodes take minutes."""
    move, moved, closings, calls = Closing.move, SampleRows.move, [], []
    monkeypatch.setattr(Closing, "move", lambda self, prices, T: closings.append(self) or move(self, prices, T))
    monkeypatch.setattr(SampleRows, "move", lambda self, *args: calls.append(self) or moved(self, *args))
    data = gr.NodeData.from_arrays(None, np.random.default_rng(0).normal(size=20_000), np.arange(20_000))
    problem = gr.Problem(gr.MeanLoss(data) + 1e-5 * gr.TotalVariation(gr.Graph.chain(20_000), gr.L1()))
    problem.solve(gr.PrimalDual(), rounds=1, gap=0)
    assert max(len(each.ties.parts) for each in closings) > 1000
    assert len(calls) <= 20 * len(closings)
