"""Every verb of a problem and of an answer, on models with rows that are no edges: what works, and what refuses."""

import itertools
import re

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import GraphregError, MethodError, ModelError, TermError
from graphreg.judging.given import given_start
from graphreg.saving.fingerprint import of_problem

T = 12
DAYS = list(range(T))
rng = np.random.default_rng(7)
Y = np.abs(np.arange(T) - 5.0) / 3 + 0.2 * rng.normal(size=T)
GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))
ARROWS = nx.DiGraph([(min(e), max(e)) for e in GRID.edges])
TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])


def on_days():
    return gr.MeanLoss(gr.NodeData.from_arrays(None, Y, DAYS))


def trend():
    return gr.Problem(on_days() + gr.Parameter(1.0, "lam") * gr.L1()(gr.w.along(DAYS, 2)))


def mixed():
    """Groups of arrows of two sizes, beside edges and nodes."""
    X = np.random.default_rng(1).normal(size=(5 * T, 2))
    data = gr.NodeData.from_arrays(X, X @ [1.0, -1.0] + np.repeat(Y, 5), np.repeat(DAYS, 5).tolist())
    groups = gr.L2()(gr.w.across(ARROWS).grouped(lambda arrow: ("from", arrow[0])))
    others = 0.1 * gr.TotalVariation(GRID, gr.L1()) + 0.1 * gr.NodePenalty(gr.SquaredL2())
    return gr.Problem(gr.SquaredLoss(data) + gr.Parameter(0.3, "lam") * groups + others)


def maps():
    """Maps on two pairs of nodes, and one with an offset."""
    Z = np.random.default_rng(2).normal(size=(4, 2))
    one = gr.Parameter(0.5, "lam") * gr.L2()(gr.w.at("a") - gr.w.at("b") @ TURN)
    return gr.Problem(
        gr.MeanLoss(gr.NodeData.from_arrays(None, Z, list("abcd")))
        + one
        + gr.L2()(gr.w.at("c") - gr.w.at("d") @ TURN - 0.5)
    )


MODELS = {"trend": trend, "mixed": mixed, "maps": maps}
FIRST = {"trend": "L1((D^2 w)_t)", "mixed": "L2((w_j - w_i)_(in g))", "maps": "L2(w_a - w_b B)"}
over_models = pytest.mark.parametrize("name", MODELS)


def solved(name, **options):
    problem = MODELS[name]()
    solution = problem.solve(gr.Exact(), progress=False, **options)
    assert solution.status == "certified"
    return problem, solution


# ---- flows -----------------------------------------------------------------------------------------------------------
@over_models
def test_flows_have_the_keys_of_their_rows(name):
    _, solution = solved(name)
    flows, form = solution.flows, solution.form
    keys = [*itertools.chain(*(form.keys(edge) for edge in form.edges if edge.map.edges is None))]
    assert len(set(keys)) == len(keys)
    own = [u for edge, u in zip(form.edges, solution.certificate.dual_point.flows, strict=True) if not edge.map.edges]
    for key, flow in zip(keys, itertools.chain(*own), strict=True):
        np.testing.assert_array_equal(flows[key], flow)
    assert len(list(flows)) == len(flows)
    assert all(flows[key] is not None for key in flows)
    assert set(keys) < set(flows) if name == "mixed" else list(flows) == keys
    with pytest.raises(gr.errors.MissingError, match="is no edge"):
        flows["nowhere"]


def test_keys_are_nodes_arrows_paths_groups_and_numbers():
    assert list(solved("trend")[1].flows)[:2] == [(0, 1, 2), (1, 2, 3)]
    assert list(solved("maps")[1].flows) == [("a", "b"), ("c", "d")]
    assert ("from", 0) in solved("mixed")[1].flows
    more = [
        (gr.L1()(gr.w.across(GRID, 2)), 5),
        (gr.NonNegative()(gr.w.across(ARROWS)), (0, 1)),
        (gr.L1()(np.ones((2, T)) @ gr.w), 1),
    ]
    for term, key in more:
        assert key in gr.Problem(on_days() + term).solve(gr.Exact(), progress=False).flows


def test_rows_of_one_key_are_told_apart_by_their_term():
    A, B = np.ones((1, T)), np.arange(float(T))[None]
    edge = gr.TotalVariation(nx.path_graph(T), gr.L1())
    terms = gr.L1()(A @ gr.w) + gr.L1()(B @ gr.w) + gr.SquaredL2()(A @ gr.w) + gr.L1()(gr.w.along(DAYS) - 0.5) + edge
    solution = gr.Problem(on_days() + terms).solve(gr.Exact(), progress=False)
    keys = list(solution.flows)
    assert (0, 1) in keys
    assert keys[T - 1 : T + 2] == [("L1((A w)_e) 1", 0), ("L1((A w)_e) 2", 0), ("SquaredL2((A w)_e)", 0)]
    assert ("L1((D w)_t - 0.5)", (0, 1)) in keys
    each = dict(zip([e.name for e in solution.form.edges], solution.certificate.dual_point.flows, strict=True))
    assert solution.flows["L1((D w)_t - 0.5)", (0, 1)] == each["L1((D w)_t - 0.5)"][0]
    assert solution.flows[0, 1] == each["TotalVariation(L1)"][0] == -solution.flows[1, 0]


def test_the_table_names_rows_and_edges():
    table = solved("trend")[1].flows.table()
    assert table.columns.tolist() == ["term", "row", "flow", "capacity", "used", "saturated"]
    assert table["row"][0] == (0, 1, 2)
    table = solved("mixed")[1].flows.table()
    assert table.columns.tolist()[:4] == ["term", "tail", "head", "row"]
    rows = table["term"].str.startswith("L2")
    assert table["tail"][rows].isna().all()
    assert table["row"][~rows].isna().all()
    assert table["row"][rows].notna().all()


# ---- saving ----------------------------------------------------------------------------------------------------------
@over_models
def test_answers_are_saved_and_loaded(name, tmp_path):
    problem, solution = solved(name)
    solution.save(tmp_path / "answer.npz")
    back = gr.load(tmp_path / "answer.npz", problem)
    assert back.status == "certified"
    assert back.objective == solution.objective
    assert back.certificate.dual == solution.certificate.dual
    for key in solution.flows:
        np.testing.assert_array_equal(back.flows[key], solution.flows[key])
    with pytest.raises(GraphregError, match="another"):
        gr.load(tmp_path / "answer.npz", MODELS["maps" if name != "maps" else "trend"]())


@over_models
def test_runs_resume(name, tmp_path):
    problem, file = MODELS[name](), tmp_path / "run.npz"
    run = {"gap": 0, "progress": False, "seed": 3}
    problem.solve(gr.PrimalDual(), rounds=20, checkpoint=file, **run)
    resumed = problem.solve(gr.PrimalDual(), rounds=40, checkpoint=file, **run)
    straight = problem.solve(gr.PrimalDual(), rounds=40, **run)
    assert resumed.rounds == straight.rounds == 40
    np.testing.assert_array_equal(resumed.coef, straight.coef)


def test_a_fingerprint_is_of_the_matrix_and_not_of_its_words():
    form = trend().form
    other = gr.Problem(on_days() + 1.0 * gr.L1()(gr.w.along(DAYS, 2, at=np.arange(T) ** 2.0)))
    assert of_problem(form) == of_problem(trend().form)
    assert of_problem(form) != of_problem(other.form)
    assert not any("keys" in entry or "text" in entry for entry in of_problem(form))


# ---- starts, judged points -------------------------------------------------------------------------------------------
@over_models
def test_an_answer_is_a_start(name):
    problem, solution = solved(name, gap=1e-8)
    assert problem.solve(gr.PrimalDual(), start=solution, progress=False).rounds == 0
    assert problem.solve(gr.PrimalDual(), start=solution.coef, progress=False).status == "certified"


def test_a_start_is_taken_by_the_keys_of_rows():
    _, solution = solved("trend", gap=1e-8)
    longer = [*DAYS, T, T + 1]
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, [*Y, Y[-1], Y[-1]], longer))
    new = gr.Problem(loss + gr.L1()(gr.w.along(longer, 2)))
    given = given_start(solution, "start", new.form)
    assert f"{T - 2} of {T} flows" in given.note
    np.testing.assert_array_equal(given.flows[0][: T - 2], solution.certificate.dual_point.flows[0])
    assert not given.flows[0][T - 2 :].any()
    assert given.w[T] == (given.w[T - 1] + given.w[T - 2]) / 2  # of those that a row of its has
    assert given.w[T + 1] != 0.0
    turned = gr.Problem(loss + gr.L1()(gr.w.along(longer[::-1], 2)))
    assert not given_start(solution, "start", turned.form).flows[0].any()


@over_models
def test_points_are_judged(name):
    problem, solution = solved(name)
    judged = problem.certify(solution.coef)
    assert judged.relative_gap <= 1e-6
    far = problem.certify(0.0 * solution.coef)
    assert far.primal == pytest.approx(problem.value(0.0 * solution.coef))
    assert far.dual <= solution.objective <= far.primal
    beyond = tuple(1e3 * u + 1.0 for u in solution.certificate.dual_point.flows)
    said = str(problem.certify(solution.coef, flows=beyond))
    assert "lie beyond the capacities" in said
    assert problem.certify(solution).relative_gap <= 1e-6


# ---- strengths -------------------------------------------------------------------------------------------------------
@over_models
def test_paths_and_cross_validation_with_given_strengths(name):
    path = gr.path(MODELS[name](), [0.1, 0.5], progress=False)
    table = path.table()
    assert (table["status"] == "certified").all()
    assert ("clusters" in table) == (name == "mixed")  # which has edges, too
    for strength, solution in path.solutions.items():
        one = gr.path(MODELS[name](), [strength], method=gr.Exact(), progress=False)
        assert solution.objective == pytest.approx(one.solutions[strength].objective, rel=2e-6)
    found = gr.cross_validate(MODELS[name](), [0.1, 0.5], folds=3, progress=False)
    assert np.isfinite(found.mean).all()
    assert ("clusters" in found.table()) == ("clusters" in table)


@over_models
def test_strengths_come_down_from_where_all_rows_are_0(name):
    """Where several penalties have kinks, one alone has no such strength."""
    if name == "trend":
        most = float(gr.strength_max(MODELS[name]()))
        assert gr.path(MODELS[name](), 3, progress=False).strengths[-1] == pytest.approx(most)
        return
    said = "needs gradients of all that does not vary: "
    with pytest.raises(MethodError, match=said):
        gr.strength_max(MODELS[name]())
    with pytest.raises(ModelError, match=said):
        gr.path(MODELS[name](), progress=False)


# ---- pages -----------------------------------------------------------------------------------------------------------
@over_models
def test_an_answer_is_shown_and_reported(name, tmp_path):
    problem, solution = solved(name)
    assert "rows of other terms" in solution.summary().facts["problem"]
    assert ("clusters" in solution.summary().facts) == (name == "mixed")
    assert "optimality conditions in numbers" in solution._repr_html_()
    assert solution.flows._repr_html_()
    solution.report(tmp_path / "answer.html")
    page = (tmp_path / "answer.html").read_text(encoding="utf-8")
    assert "are no edges, and are not drawn" in page
    gr.path(problem, [0.1, 0.5], progress=False).report(tmp_path / "path.html")
    observed = problem.solve(gr.PrimalDual(), rounds=20, observe=("w", "flows"), on_failure="return", progress=False)
    observed.report(tmp_path / "run.html")


# ---- what refuses ----------------------------------------------------------------------------------------------------
REFUSED = {
    "a graph of networkx has nodes and edges, and {} has": (TermError, lambda p, s, f: s.to_networkx()),
    "it is about differences across edges, and {} has": (
        MethodError,
        lambda p, s, f: gr.theory.recovery(p, [p.form.labels[:2], p.form.labels[2:]]),
    ),
    "{} has rows that are no edges, and ADMM tolerates no loss there: its messages have to arrive, take resend=True": (
        MethodError,
        lambda p, s, f: p.solve(gr.ADMM(), engine=gr.Actors(faults=gr.Faults(drop=0.1)), progress=False),
    ),
}


@over_models
@pytest.mark.parametrize("said", REFUSED)
def test_refusals_name_the_term(name, said, tmp_path):
    error, verb = REFUSED[said]
    with pytest.raises(error, match=re.escape(said.format(FIRST[name]))):
        verb(*solved(name), tmp_path / "proof.json")
    assert not (tmp_path / "proof.json").exists()


@pytest.mark.parametrize("name", ["trend", "maps"])
def test_rows_alone_make_no_clusters(name):
    with pytest.raises(TermError, match=re.escape(f"the model has none: rows of {FIRST[name]} make no clusters")):
        solved(name)[1].clusters()


def test_clusters_are_told_beside_rows_that_make_none():
    found = solved("mixed")[1].clusters()
    assert set(found.edges["term"]) == {"TotalVariation(L1)"}
    assert f"rows of {FIRST['mixed']} make none" in str(found)


def test_methods_that_take_no_rows_say_so_once():
    said = str(maps().methods())
    assert said.count("L2(w_a - w_b B) and L2(w_c - w_d B - 0.5) have rows that are no edges") >= 3
    with pytest.raises(MethodError, match="has rows that are no edges, and the method takes edges and nodes alone"):
        trend().solve(gr.DynamicProgramming(), progress=False)


# ---- how they are written --------------------------------------------------------------------------------------------
def test_problems_are_written_with_the_text_of_their_rows():
    problem = trend()
    assert "lam sum_t ||(D^2 w)_t||_1" in str(problem)
    assert "10 rows t of 1 number, all weights 1" in str(problem)
    assert "||u_t||_inf <= lam" in str(problem.dual())
    assert "(K w)_t = (D^2 w)_t" in str(problem.dual())
    assert "the flow is below capacity  =>  (D^2 w)_t = 0" in str(problem.kkt())
    assert "sum_t FY(row t)" in str(problem.kkt())
    assert r"(D^{2} \, w)_t" in problem.latex()
    assert "lam sum_(g in G1) ||(w_j - w_i)_(in g)||_2" in str(mixed())  # groups of several sizes
    assert "sum_g FY(row g) + sum_e FY(edge e) + sum_i FY(node i)" in str(mixed().kkt())
    assert "sum_e ||w_c - w_d B - b_e||_2" in str(maps())


@pytest.mark.parametrize(
    ("rows", "written"),
    [
        (gr.w.across(ARROWS), "||w_i - w_j||_1"),  # an edge, where no direction matters
        (2.0 * gr.w.across(ARROWS), "||2 (w_j - w_i)||_1"),
        (gr.w.across(GRID, 2), "sum_i ||(D^2 w)_i||_1"),
        (np.ones((2, T)) @ gr.w, "sum_e ||(A w)_e||_1"),
        (gr.w.across(ARROWS) - 1.0, "||w_j - w_i - b_e||_1"),
        ((gr.w.across(ARROWS) - 1.0).weighted(2.0), "||w_j - w_i - b_e||_1"),
        (2.0 * (gr.w.across(ARROWS) - 1.0), "||(K w)_e - b_e||_1"),
        (gr.w.at(DAYS, ["y"]) * 2.0, "||(K w)_e||_1"),
    ],
)
def test_text_of_rows(rows, written):
    assert written in str(gr.Problem(on_days() + gr.L1()(rows)))


def test_labels_that_cannot_be_typeset_are_not_written():
    data = gr.NodeData.from_arrays(None, [1.0, 2.0], ["new_york $", "b%u"])
    problem = gr.Problem(gr.MeanLoss(data) + gr.L1()(gr.w.at("new_york $") + gr.w.at("b%u")))
    assert "||(K w)_e||_1" in str(problem)
    assert r"\|(K w)_e\|_1" in problem.latex()


# ---- constants -------------------------------------------------------------------------------------------------------
def test_constants_bound_the_smoothness_of_rows():
    problem = gr.Problem(on_days() + 3.0 * gr.SquaredL2()(gr.w.along(DAYS, 2)))
    K = np.diff(np.eye(T), 2, axis=0)
    top = 3.0 * np.linalg.eigvalsh(K.T @ K)[-1]
    found = gr.theory.constants(problem).whole.loc["smoothness of the edges", "value"]
    assert top <= found * (1.0 + 1e-12) <= 1.001 * top


def test_strong_convexity_is_proved_without_rows():
    problem = gr.Problem(on_days() + 3.0 * gr.SquaredL2()(gr.w.along(DAYS, 2)))
    solution = problem.solve(gr.Exact(), progress=False)
    assert 0.999 <= solution.certificate.strong_convexity <= 1.0  # of the losses alone
    assert "distance" in solution.summary().facts
