"""Rows that are no edges, of any sparse K: what has learnt them is right about them, and what has not refuses them."""

from dataclasses import replace

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from factories import thinned

import graphreg as gr
from graphreg.compiling.conic import Compiler
from graphreg.errors import DataError, TermError
from graphreg.fast.order import orders_of
from graphreg.form import DualPoint
from graphreg.form.notation import text
from graphreg.network import InProcess, Ledger, LocalView, arcs_of
from graphreg.running.polish import _joined
from graphreg.saving.fingerprint import of_problem
from graphreg.terms import EdgeBlock, Matrix, Strength
from graphreg.terms.records import IN_GRAPH

T = 24
EXACT = {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
MEETS = [gr.PrimalDual(polish=False), gr.ADMM(polish=False)]


def means(d=1):
    rng = np.random.default_rng(5)
    y = np.abs(np.arange(T) - 10.0)[:, None] / 4 + 0.2 * rng.standard_normal((T, d))
    return y, gr.Problem(gr.MeanLoss(gr.NodeData.from_arrays(None, y, range(T)))).form


def with_rows(form, K, penalty, k=1, strength=1.0, center=None):
    of = Matrix(sp.csr_array(K), k, form.n)
    block = EdgeBlock(penalty, Strength(strength), of, np.ones(of.count), center, IN_GRAPH, "rows of K")
    return replace(form, edges=(*form.edges, block))


def trend_filtering():
    y, form = means()
    x, K = cp.Variable((T, 1)), np.diff(np.eye(T), 2, axis=0)
    return with_rows(form, K, gr.L1(), strength=2.0), cp.sum_squares(x - y) / 2 + 2.0 * cp.norm1(K @ x), []


def edge_maps():
    y, form = means(2)
    x, R = cp.Variable((T, 2)), np.array([[0.6, -0.8], [0.8, 0.6]])
    ring = [(i, (i + 1) % T) for i in range(T)]
    K = np.zeros((T, 2, T, 2))
    for e, (i, j) in enumerate(ring):
        K[e, :, i], K[e, :, j] = np.eye(2), -R
    apart = sum(cp.norm(x[i] - R @ x[j]) for i, j in ring)
    return with_rows(form, K.reshape(2 * T, 2 * T), gr.L2(), 2, 0.4), cp.sum_squares(x - y) / 2 + 0.4 * apart, []


def offsets_and_one_side():
    """Along a path, each is at least as large as the one before by what is given: beside total variation."""
    y, _ = means()
    data = gr.NodeData.from_arrays(None, y, range(T))
    form = gr.Problem(gr.MeanLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(T), gr.L1())).form
    x, K = cp.Variable((T, 1)), np.diff(np.eye(T), axis=0)
    steps = np.linspace(-0.3, 0.1, T - 1)[:, None]
    value = cp.sum_squares(x - y) / 2 + 0.1 * cp.norm1(K @ x)
    return with_rows(form, K, gr.NonNegative(), center=steps), value, [K @ x >= steps]


def measured_over_nodes():
    y, form = means()
    x, K = cp.Variable((T, 1)), sum(np.eye(T, k=k) for k in (-1, 0, 1)) / 3
    seen = K @ y
    return (
        with_rows(form, K, gr.SquaredL2(), center=seen),
        (cp.sum_squares(x - y) + cp.sum_squares(K @ x - seen)) / 2,
        [],
    )


MODELS = {f.__name__: f for f in (trend_filtering, edge_maps, offsets_and_one_side, measured_over_nodes)}


def view_of(form):
    return LocalView(form, InProcess(Ledger(arcs_of(form), form.labels)), 1)


def iterate(method, form, rounds):
    state = method.init(view_of(form), None)
    for _ in range(rounds):
        state = method.step(state)
    return method.point(state)


def clipped(form, flows):
    return tuple(edge.clip(u) for edge, u in zip(form.edges, flows, strict=True))


def without_constraints(form, w):
    return sum(float(each.sum()) for block in form.blocks if np.isfinite(each := block.values(w)).all())


@pytest.mark.parametrize(("model", "method"), thinned(MODELS, MEETS, every=2), ids=str)
def test_rounds_find_the_optimum(model, method):
    form, objective, constraints = MODELS[model]()
    best = cp.Problem(cp.Minimize(objective), constraints).solve(**EXACT)
    assert not method.missing(form)
    w, u, _ = iterate(method, form, 4000)
    point = DualPoint(clipped(form, u), form.gradient_prices(w))
    assert without_constraints(form, w) == pytest.approx(best, rel=1e-6)
    assert np.abs(form.conservation(point)).max() < 1e-4
    assert form.dual(point) == pytest.approx(best, rel=1e-4)
    samples, rows = form.residuals(w, point)
    gap = sum(float(each.sum()) for each in (*samples, *rows) if np.isfinite(each).all())
    assert gap == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("kind", ["primal", "dual"])
@pytest.mark.parametrize("model", MODELS)
def test_they_are_compiled(model, kind):
    form, objective, constraints = MODELS[model]()
    best = cp.Problem(cp.Minimize(objective), constraints).solve(**EXACT)
    compiled = Compiler(form)(kind, True)
    compiled.solve("clarabel", {})
    w, point = compiled.read_back()
    assert without_constraints(form, w) == pytest.approx(best, rel=1e-6)
    assert np.abs(form.conservation(point)).max() < 1e-6
    assert form.dual(
        replace(point, flows=tuple(e.clip(u) for e, u in zip(form.edges, point.flows, strict=True)))
    ) == pytest.approx(best, rel=1e-5)


def usual():
    rng = np.random.default_rng(2)
    graph = nx.connected_watts_strogatz_graph(10, 4, 0.3, seed=1)
    data = gr.NodeData.from_arrays(rng.standard_normal((40, 2)), rng.standard_normal(40), np.arange(40) % 10)
    model = gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(graph, gr.L2())
    model = model + 0.2 * gr.NodePenalty(gr.L1(), center=[0.1], features=["x1"])
    return gr.Problem(model + gr.Hierarchy({i: i % 3 for i in range(10)}, weights=(0.2, 0.1))).form


def as_matrices(form):
    """The same form, of whose edges nobody is told that they are edges."""
    d = form.d
    return replace(form, edges=tuple(replace(e, map=Matrix(e.flat(d), e.map.width(d), form.n)) for e in form.edges))


def test_edges_and_nodes_are_rows_like_any_others():
    form = usual()
    other, rng = as_matrices(form), np.random.default_rng(0)
    w = rng.standard_normal(form.shape)
    point = DualPoint(tuple(rng.standard_normal(u.shape) for u in form.nothing().flows), form.gradient_prices(w))
    assert other.primal(w) == pytest.approx(form.primal(w), rel=1e-14)
    assert other.dual(point) == pytest.approx(form.dual(point), rel=1e-14)
    np.testing.assert_allclose(other.conservation(point), form.conservation(point), atol=1e-13)
    np.testing.assert_array_equal(other.degree(), form.degree())
    np.testing.assert_array_equal(other.component, form.component)
    np.testing.assert_array_equal(other.free, form.free)
    assert other.differences == form.differences
    one, two = arcs_of(form), arcs_of(other)
    for name in ("source", "target"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize("method", MEETS, ids=lambda method: method.name)
def test_and_rounds_are_the_same(method):
    form = usual()
    one, two = iterate(method, form, 100), iterate(method, as_matrices(form), 100)
    np.testing.assert_allclose(one[0], two[0], atol=1e-11)
    for u, v in zip(one[1], two[1], strict=True):
        np.testing.assert_allclose(u, v, atol=1e-11)


def test_how_they_are_written():
    form = offsets_and_one_side()[0]
    primal, dual, kkt = (str(f(form)) for f in (text.primal, text.dual, text.kkt))
    assert "(K w)_e - b_e >= 0" in primal
    assert "on every row e" in primal
    assert "23 rows e of 1 number, K sparse, with a center b_e per row" in primal
    assert "(K'u2)_i" in dual
    assert "on 23 rows" in dual
    assert "sum_e <u2_e, b_e>" in dual
    assert "the center of row e" in dual
    assert "on every row e (rows of K)" in kkt
    assert "ground" not in primal + dual + kkt


def test_runs_of_other_rows_are_told_apart():
    form, other = trend_filtering()[0], measured_over_nodes()[0]
    assert of_problem(form) == of_problem(trend_filtering()[0])
    assert of_problem(form)["the matrix of rows of K 1"] != of_problem(other)["the matrix of rows of K 1"]


# ---- those that have not learnt them ---------------------------------------------------------------------------------
def step(method):
    return lambda form: iterate(method, form, 1)


REFUSE = {
    "polishing": lambda form: _joined(form, form.nothing().flows, True, 10**9, 1, 1),
    "orders of compiled rounds": lambda form: orders_of(form, True),
    "ends that exchange": lambda form: view_of(form).toward,
    "copies at ends": lambda form: view_of(form).ends,
    "dynamic programming": gr.DynamicProgramming().missing,
    "gossip": gr.LocalSGD().missing,
    "known clusters": gr.AsyncL2GD().missing,
    "FedADMM": step(gr.FedADMM()),
    "SubgradientDescent": step(gr.SubgradientDescent()),
}


@pytest.mark.parametrize("room", REFUSE)
def test_rooms_that_need_edges_refuse_other_rows(room):
    y, X = np.arange(4) % 2, np.ones((4, 2))
    form = gr.Problem(gr.LogisticLoss(gr.NodeData.from_arrays(X, y, range(4)))).form
    rows = with_rows(form, np.ones((1, 8)), gr.SquaredL2())
    with pytest.raises(TermError, match="rows of K has rows that are no edges, and here edges are needed"):
        REFUSE[room](rows)


def test_nothing_is_compiled_of_them():
    assert view_of(trend_filtering()[0]).rounds is None
    assert view_of(trend_filtering()[0]).near_rounds is None


# ---- labels that rows alone name -------------------------------------------------------------------------------------
def test_a_label_that_looks_like_another_is_doubted():
    data = gr.NodeData.from_arrays(None, np.arange(3.0), ["the", "cat", "s1"])
    with pytest.warns(UserWarning, match=r"the node 'teh' is named by rows alone.*; did you mean 'the'\?") as warned:
        problem = gr.Problem(gr.MeanLoss(data) + gr.L1()(gr.w.at("teh")))
    assert warned[0].filename == __file__  # where the user wrote it, not where it was found
    assert "the node 'teh' is named by rows alone, without data, graph or path; did you mean 'the'?" in str(problem)
    gr.Problem(gr.MeanLoss(data) + gr.L1()(gr.w.at(["s2", "the", "dog"])))  # numbers, and other words, are meant


@pytest.mark.parametrize(
    ("data_at", "rows_at", "how"),
    [
        (
            ["a", "b"],
            "A",
            "'A' is named by rows alone, .* is 'a' but for type, spaces or capitals",
        ),
        (["New York", "b"], " new  york", "is 'New York' but for"),
        ([1, 2], "1", "'1' is .* is 1 but for .*: rename it"),
        (["1", "2"], 2, "2 is .* is '2' but for type"),
    ],
)
def test_a_label_that_only_looks_otherwise_is_no_new_node(data_at, rows_at, how):
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(2.0), data_at))
    with pytest.raises(DataError, match=f"the node .*{how}"):
        gr.Problem(fit + gr.L1()(gr.w.at(rows_at) - gr.w.at(data_at[1])))
    with pytest.raises(DataError, match="of a graph or path, and has no data, and is "):
        gr.Problem(fit + gr.L1()(gr.w.along([rows_at, "x", "y"], 2)))
    assert "1 node without data (z)" in str(
        gr.Problem(fit + gr.L1()(gr.w.at("z")))
    )  # another node is legal, and counted


def test_formulas_say_at_which_nodes_and_over_which_groups():
    """Of some nodes it is said how many; groups of several sizes are several sums; offsets stay in their brackets."""
    path = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d")])
    groups = gr.L2()(gr.w.across(path).grouped([0, 0, 1]))
    problem = gr.Problem(groups + gr.Zero()(gr.w.at(["a", "d"]) - [0.0, 1.0]))
    text, dual = str(problem), str(problem.dual())
    assert "sum_(g in G1) ||(w_j - w_i)_(in g)||_2" in text
    assert "1 row g in G2 of 1 number" in text
    assert "w_i = c_i   at each of 2 nodes i" in text
    assert "u3 from 2 nodes to the ground\n" in dual
    assert "prices" not in dual
    assert "on every row g of G2" in dual
    counts = gr.Problem(gr.PoissonLoss(gr.w.at(["a", "b"]) + 1.0, [2, 3]) + gr.SquaredL2()(gr.w))
    assert r"y_r \, (w_i + o_r)" in counts.latex()


def test_the_name_of_a_term_has_the_letter_of_its_formula():
    data, A, b = gr.NodeData.from_dict({i: (np.ones((2, 2)), np.ones(2)) for i in range(4)}), np.eye(4), np.ones((4, 2))
    rows = {
        "L2((A w)_e - b_e)": (A @ gr.w - b, "sum_e ||(A w)_e - b_e||_2"),
        "L2((D^2 w)_t - b_t)": (gr.w.along(range(4), 2) - b[:2], "sum_t ||(D^2 w)_t - b_t||_2"),
        "L2(w_i - c_i)": (gr.w - b, "sum_i ||w_i - c_i||_2"),
        "L2((K w)_e)": (gr.Rows(np.eye(8), 2), "sum_e ||(K w)_e||_2"),
    }
    for name, (row, formula) in rows.items():
        problem = gr.Problem(gr.SquaredLoss(data) + gr.L2()(row))
        assert problem.form.edges[0].name == name
        assert str(gr.L2()(row)) == name.replace("L2(", "L2()(").replace("c_i", "b_e")  # before it is lowered
        assert formula in str(problem)


def test_a_center_that_overflows_is_named_by_the_key_of_its_row():
    data = gr.NodeData.from_arrays(None, np.arange(2.0), ["a", "b"])
    rows = 2.0 * gr.w.at(["a", "b"]) - np.array([1.0, 1e200])
    with pytest.raises(TermError, match="is 1e\\+200 in the row 'b', and its square overflows"):
        gr.Problem(gr.MeanLoss(data) + gr.L1()(rows))


def test_what_numpy_does_to_rows():
    """Operators are the rows' own; functions are refused with what to write."""
    assert (np.ones(3) - gr.w).text() == (-gr.w + np.ones(3)).text()
    assert (np.eye(3) @ gr.w).text() == "(A w)_r"
    for wrong, said in (
        (lambda: np.abs(gr.w), r"np\.absolute of w_i is no term: write gr\.L1\(\)\(rows\)"),
        (lambda: np.square(gr.w), r"gr\.SquaredL2\(\)\(rows\) for squares"),
        (lambda: np.sum(gr.w), "is no term"),
        (lambda: np.ones(3) * gr.w, "use .weighted"),
        (lambda: np.ones(3) >= gr.w, "a comparison of w_i is no term"),
        (lambda: np.add(gr.w, np.ones(3)), "is no term"),
    ):
        with pytest.raises(TermError, match=said):
            wrong()


def test_what_is_doubtful_of_a_model_is_printed():
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, [1.0, 2.0, 3.0], ["mon", "tue", "wed"]))
    assert "L1()((D^2 w)_t) has no rows, and says nothing" in str(gr.Problem(fit + gr.L1()(gr.w.along(["mon"], 2))))
    with pytest.warns(UserWarning, match="'tuue' is of a graph or path, and has no data; did you mean 'tue'"):
        gr.Problem(fit + gr.L1()(gr.w.along(["mon", "tuue", "wed"])))
    fine = str(gr.Problem(fit + gr.L1()(gr.w.along(["mon", "monn", "tue", "wed"]))))  # all data lie on the path
    assert "doubt" not in fine


def test_losses_of_other_columns_say_what_to_write():
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, [1.0, 2.0], ["a", "b"]))
    other = gr.HuberLoss(gr.NodeData.from_arrays(np.ones((2, 1)), [1.0, 2.0], ["a", "b"]))
    with pytest.raises(DataError, match=r"write a loss of rows, .*: HuberLoss\(gr\.w\.at\(nodes\), y\)"):
        gr.Problem(fit + other)
    assert gr.Problem(fit + gr.HuberLoss(gr.w.at(["a", "b"]), [1.0, 2.0])).form.beside


def test_features_of_rows_without_data_are_named_by_the_problem():
    loss = gr.SquaredLoss(gr.Rows(np.eye(2), 1, nodes=["c"], features=["a", "b"]), np.ones(2))
    with pytest.raises(TermError, match=r"unknown feature 'a'; there are y; .* Problem\(model, features=\[...\]\)"):
        gr.Problem(loss)
    assert gr.Problem(loss, features=["a", "b"]).solve().status == "certified"
