"""What is said of rows holds on the whole optimal face, which linear and quadratic programmes of CVXPY go through."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from factories import thinned

import graphreg as gr
from graphreg.certificate import held_rows
from graphreg.certificate.edges import holding
from graphreg.certificate.edges.dual_region import Region, of_edges, subgradients
from graphreg.certificate.edges.fusion import fused, separate
from graphreg.certificate.edges.holding import held
from graphreg.errors import ProofError, TermError

w = gr.w
TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
FACE = 1e-8  # how far above the optimum a point of the face may be
SEEN = 2e-3  # a row that is so large on the face does not hold; data are small whole numbers


# ---- small problems whose data are whole numbers, so that ties are common --------------------------------------------
def drawn(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 7)), int(rng.integers(1, 3))
    y = rng.integers(-4, 5, (n, d)).astype(float)
    seen = np.flatnonzero(rng.random(n) < 0.85) if n > 3 else np.arange(n)
    seen = np.arange(n) if len(seen) < 2 else seen
    nodes = list(range(n))
    if d == 1 and rng.random() < 0.5:
        loss = gr.QuantileLoss(gr.NodeData.from_arrays(np.ones((len(seen), 1)), y[seen, 0], seen), tau=0.5, scale="sum")
    else:
        loss = gr.MeanLoss(gr.NodeData.from_arrays(None, y[seen], seen))
    graph = nx.gnp_random_graph(n, 0.6, seed=seed)
    arrows = nx.DiGraph([(i, j) for i, j in graph.edges])
    arrows.add_nodes_from(nodes)
    b = rng.integers(-1, 2, (len(arrows.edges), d)).astype(float)
    phi = [gr.L1(), gr.L2(), gr.LInf()][rng.integers(3)]
    lam = float(rng.choice([0.5, 1.0, 2.0]))
    terms = [
        lambda: lam * phi(w.along(nodes, 2)),
        lambda: lam * phi(w.along(nodes, min(3, n - 1))),
        lambda: lam * phi(w.across(graph)),
        lambda: lam * phi(w.across(graph, 2)),
        lambda: lam * phi(w.across(arrows) - b),
        lambda: lam * phi(w.at(nodes[:2]) - 1.0),
        lambda: gr.NonNegative()(w.across(arrows)),
        lambda: gr.Box(-1.0, 2.0)(w.at(nodes)),
        lambda: gr.Box(-1.0, 1.0)(w.along(nodes, 2)),
        lambda: gr.Ball(3.0)(w.at(nodes[:1])),
        lambda: lam * gr.HuberNorm(1.0)(w.along(nodes, 2)),
        lambda: lam * gr.SquaredL2()(w.across(arrows) - b),
        lambda: lam * gr.L1()(np.repeat(1.0 + rng.integers(-1, 2, (2, n)), 2, axis=0) @ w.at(nodes) - 1.0),
        lambda: lam * gr.L1()(w.along(nodes, 2).grouped(lambda key: key[0] % 2)) if n > 4 else lam * phi(w.at(nodes)),
    ]
    model = loss
    for k in rng.choice(len(terms), int(rng.integers(1, 4)), replace=False):
        if not (k in (2, 3, 4, 6, 11) and not graph.edges):
            model = model + terms[k]()
    return model if model is not loss else loss + terms[0]()


def written(form):  # noqa: PLR0912  (a case for each penalty)
    """The objective and the constraints in CVXPY, and the variable."""
    v = cp.Variable(form.n * form.d)
    value, constraints = [], []
    for block in form.samples:
        X, y, s = block.A @ v, block.y.ravel(), np.repeat(block.scale, block.width)
        if type(block.loss).__name__ == "MeanLoss":
            value.append(0.5 * s @ cp.square(X - y))
        else:
            tau = block.loss.tau
            value.append(s @ cp.maximum(tau * (y - X), (tau - 1.0) * (y - X)))
    for edge in form.edges:
        Z, kind, c = rows_of(edge, form, v), type(edge.penalty).__name__, edge.weight
        match kind:
            case "L1":
                value.append(c @ cp.sum(cp.abs(Z), axis=1))
            case "L2":
                value.append(c @ cp.norm(Z, 2, axis=1))
            case "LInf":
                value.append(c @ cp.max(cp.abs(Z), axis=1))
            case "SquaredL2":
                value.append(0.5 * c @ cp.sum(cp.square(Z), axis=1))
            case "HuberNorm":
                value.append(0.5 * c @ cp.huber(cp.norm(Z, 2, axis=1), 1.0))
            case "Ball":
                constraints.append(cp.norm(Z, 2, axis=1) <= edge.penalty.radius)
            case "NonNegative":
                constraints.append(Z >= 0)
            case "Box":
                constraints += [edge.penalty.low <= Z, edge.penalty.high >= Z]
            case _:
                raise AssertionError(kind)
    return sum(value), constraints, v


def rows_of(edge, form, v):
    Z = cp.reshape(edge.map.flat(form.d) @ v, (edge.count, form.width(edge)), order="C")
    return Z if edge.center is None else Z - edge.center


class Face:
    """The optimal face of a problem, a hair wide; what it has been asked it remembers. A question changes numbers of
    a programme, which is so compiled once for all."""

    def __init__(self, form):
        self.form = form
        self.reach, self.at, self.with_rows = cache(self._reach), cache(self._at), cache(self._with_rows)
        self.value, self.constraints, self.v = written(form)
        self.best = self.solve(cp.Problem(cp.Minimize(self.value), self.constraints))
        self.direction = cp.Parameter(self.v.size)
        near = [*self.constraints, self.value <= self.best + FACE * max(1.0, abs(self.best))]
        self.least = cp.Problem(cp.Minimize(self.direction @ self.v), near)

    def solve(self, programme):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": what it says is compared with a wide margin
            try:
                return programme.solve(solver=cp.CLARABEL, **TIGHT)
            except cp.SolverError:
                return None

    def numbers(self, k, e, columns):
        """The matrix of numbers of a row, and their center."""
        edge = self.form.edges[k]
        places = e * self.form.width(edge) + np.asarray(columns)
        center = np.zeros(len(columns)) if edge.center is None else edge.center[e, columns]
        return edge.map.flat(self.form.d).toarray()[places], center

    def _reach(self, k, e, j):
        """The least and the largest value of a number of a row on the face."""
        (row,), (center,) = self.numbers(k, e, [j])
        found = []
        for sign in (1.0, -1.0):
            self.direction.value = sign * row
            least = self.solve(self.least)
            found.append(None if least is None else sign * least - center)
        return found

    def _with_rows(self, many):
        rows, values = cp.Parameter((many, self.v.size)), cp.Parameter(many)
        return rows, values, cp.Problem(cp.Minimize(self.value), [*self.constraints, rows @ self.v == values])

    def _at(self, k, e, columns, value):
        """The optimum where numbers of a row have a value."""
        rows, values, programme = self.with_rows(len(columns))
        rows.value, center = self.numbers(k, e, list(columns))
        values.value = value + center
        return self.solve(programme)


def ends_of(phi):
    """The values of a number at which a row holds."""
    radius = getattr(phi, "radius", np.inf)
    ends = getattr(phi, "low", -radius), getattr(phi, "high", radius)
    return [float(end) for end in ends if np.isfinite(end)] or [0.0]


def judge(face, found):
    """How many claims there are of each kind; every one against the face."""
    form, table = face.form, found.table
    counts = {"held": 0, "not held": 0, "undecided": 0}
    parts = separate(form)
    begin = 0
    for edge, k, columns in zip(parts.form.edges, parts.owner, parts.columns, strict=True):
        if isinstance(edge.penalty, (gr.SquaredL2, gr.HuberNorm)):
            continue
        for e in range(edge.count):
            row = table.iloc[begin + e]
            counts[row["state"]] += 1
            assert row["term"] == form.edges[k].name
            if row["state"] == "held":
                for j in columns:
                    for reached in face.reach(k, e, int(j)):
                        assert reached is None or abs(reached - row["at"]) <= SEEN, (row.to_dict(), reached)
            if row["state"] == "not held":
                for end in ends_of(edge.penalty):
                    tied = face.at(k, e, tuple(columns.tolist()), end)
                    assert tied is None or tied > face.best, (row.to_dict(), tied, face.best)
        begin += edge.count
    assert begin == len(table)
    return counts


def test_claims_hold_on_the_optimal_face(whole):
    """On 10 problems; on 300 with ``make test ARGS=--whole``."""
    total = {"held": 0, "not held": 0, "undecided": 0}
    for seed in range(300 if whole else 10):
        problem = gr.Problem(drawn(seed))
        face = Face(problem.form.frozen())
        for gap in (1e-3, 1e-9):
            solution = problem.solve(gr.Exact(), gap=gap, on_failure="return")
            if solution.certificate.valid:
                counts = judge(face, solution.held(prove=seed % 3 == 0))
        total = {state: total[state] + counts[state] for state in total}
    assert total["held"] + total["not held"] > total["undecided"]


# ---- one argument for edges and rows ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("d", "penalty"), thinned([1, 2], [gr.L2(), gr.L1(), gr.LInf()], every=2), ids=lambda each: type(each).__name__
)
def test_edges_are_fused_by_either_argument(penalty, d):
    """Along spanning trees, or by any left inverse: with cycles, latent nodes and edges to the ground."""
    claims = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        graph = nx.gnp_random_graph(9, 0.35, seed=seed)
        data = gr.NodeData.from_arrays(None, rng.normal(size=(9, d)), range(9))
        model = gr.MeanLoss(data) + 0.5 * gr.TotalVariation(graph, penalty) + 0.1 * gr.NodePenalty(penalty)
        certificate = gr.Problem(model).solve(gr.Exact(), gap=1e-10).certificate
        parts = separate(certificate.form)
        found = parts.together([at == 0.0 for at, _ in held(certificate, parts)], len(certificate.form.edges))
        along = fused(certificate)
        for edge, one, other in zip(certificate.form.edges, found, along, strict=True):
            assert (one >= other).all()  # the region of a row is used more sharply here
            assert (np.abs(edge.difference(certificate.w)[one]) < 1e-8).all()
            claims += other.sum()
    assert claims > 15


def test_arrows_and_edges_have_the_same_rows():
    graph = nx.cycle_graph(6)
    arrows = nx.DiGraph([(j, i) if i % 2 else (i, j) for i, j in graph.edges])
    data = gr.NodeData.from_arrays(None, np.arange(6.0) ** 2, range(6))
    one = gr.Problem(gr.MeanLoss(data) + 2.0 * gr.TotalVariation(graph, gr.L1())).solve().held()
    other = gr.Problem(gr.MeanLoss(data) + 2.0 * gr.L1()(w.across(arrows))).solve().held()
    assert {frozenset(key) for key in one.keys("held")} == {frozenset(key) for key in other.keys("held")}
    assert one.counts == other.counts


# ---- closed forms ----------------------------------------------------------------------------------------------------
def of_one_row(a, lam=1.0):
    """Trend filtering of three nodes: the flow is a / 6, so that the row holds where a < 6 lam."""
    return gr.Problem(
        gr.MeanLoss(gr.NodeData.from_arrays(None, np.array([0.0, 0.0, a]), range(3)))
        + lam * gr.L1()(w.along(range(3), 2))
    )


@pytest.mark.parametrize(("a", "state"), [(5.9, "held"), (6.0, "undecided"), (6.1, "not held"), (-6.1, "not held")])
def test_a_flow_at_its_capacity_decides_nothing(a, state):
    assert of_one_row(a).solve(gr.Exact(), gap=1e-10).held(prove=True).table["state"].tolist() == [state]


@pytest.mark.parametrize("apart", thinned([1e-1, 1e-3, 1e-5, 1e-7, 1e-9], every=2))
def test_rows_near_a_tie_are_never_said_to_be_on_the_wrong_side(apart):
    for sign in (1.0, -1.0):
        for gap in (1e-3, 1e-7, 1e-11):
            solution = of_one_row(6.0 + sign * apart).solve(gr.Exact(), gap=gap, on_failure="return")
            (state,) = solution.held(prove=True).table["state"]
            assert state in ("undecided", "not held" if sign > 0 else "held")


def test_lasso_of_weights_over_twelve_decades():
    """w_i = soft(y_i, c_i), duplicated rows adding up."""
    rng = np.random.default_rng(0)
    c = 10.0 ** rng.uniform(-6, 6, 20)
    side = rng.choice([-1.0, 1.0], 20)
    y = side * 2 * c * np.where(np.arange(20) % 2, 1.2, 0.8)
    nodes = list(range(21))  # the last one is alone, and has no data
    data = gr.NodeData.from_arrays(None, y, range(20))
    twice = w.at(nodes + nodes[::-1]).weighted(np.r_[c, 1.0, 1.0, c[::-1]])
    solution = gr.Problem(gr.MeanLoss(data) + gr.L1()(twice)).solve(gr.Exact(), gap=1e-12, on_failure="return")
    table = solution.held().table
    for row in table.itertuples():
        if row.state != "undecided":
            assert (row.state == "held") == (row.row == 20 or row.row % 2 == 0), row
    assert (table["state"] == "held").sum() >= 16


def test_targets_far_from_0_change_no_claim():
    y = np.array([0.0, 0.13, 0.0, 1.0, 2.17, 2.9, 4.03, 7.0])
    found = []
    for shift in (0.0, 1e6):
        data = gr.NodeData.from_arrays(None, y + shift, range(8))
        solution = gr.Problem(gr.MeanLoss(data) + 0.1 * gr.L1()(w.along(range(8), 2))).solve(
            gr.Exact(), gap=1e-12, on_failure="return"
        )
        found.append(solution.held().table["state"].to_numpy())
    assert ((found[0] == found[1]) | (found[1] == "undecided")).all()
    assert set(found[0]) == {"held", "not held"}
    assert (found[1] != "undecided").sum() >= 4


def test_active_constraints_of_isotonic_regression():
    """Blocks of scikit-learn's answer are ties that hold; steps between them are constraints that are not active."""
    from sklearn.isotonic import IsotonicRegression

    y = np.random.default_rng(1).normal(size=25) + np.linspace(0.0, 3.0, 25)
    data = gr.NodeData.from_arrays(None, y, range(25))
    arrows = nx.DiGraph([(i, i + 1) for i in range(24)])
    table = gr.Problem(gr.MeanLoss(data) + gr.NonNegative()(w.across(arrows))).solve(gr.Exact(), gap=1e-10).held().table
    steps = np.diff(IsotonicRegression().fit_transform(np.arange(25), y))
    assert table["state"].tolist() == ["held" if step < 1e-12 else "not held" for step in steps]
    assert (table["margin"] > 0.0).all()


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.LInf()], ids=["L1", "L2", "LInf"])
def test_margins_of_edges_are_those_of_an_optimal_flow(penalty):
    """The flow of the first edge is -0.7 at the optimum, (0.7, 0.7, 4, 6), and the capacities are 1."""
    data = gr.NodeData.from_arrays(None, [0.0, 0.4, 5.5, 5.5], list("abcd"))
    problem = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(nx.path_graph(list("abcd")), penalty))
    margins = list[float]()
    for method in (gr.InteriorPoint(), gr.PrimalDual(), gr.ADMM(), gr.Exact()):
        for gap in (1e-2, 1e-3, 1e-4, 1e-6, 1e-9):
            table = problem.solve(method, gap=gap).held().table
            margins += table["margin"][table["state"] == "held"][:1].tolist()
    assert max(margins) <= 0.3
    assert max(margins) > 0.299
    assert len(margins) >= 10


def test_bounds_against_which_rows_are_pushed():
    data = gr.NodeData.from_arrays(None, np.array([[3.0, 0.2], [-3.0, 1.0]]), ["a", "b"])
    solution = gr.Problem(gr.MeanLoss(data) + gr.Box(-1.0, 2.0)(w)).solve(gr.Exact(), gap=1e-10)
    table = solution.held().table
    assert table["state"].tolist() == ["held", "held", "not held", "not held"]
    assert table["at"].tolist()[:2] == [2.0, -1.0]
    assert table["row"].tolist() == ["a", "b", "a", "b"]
    assert table["number"].nunique() == 2
    assert solution.held().keys("held") == ["a", "b"]


def test_knots_are_the_rows_that_do_not_hold():
    t = np.arange(30.0)
    y = np.maximum(t - 12.0, 0.0) + 0.01 * np.random.default_rng(3).normal(size=30)
    data = gr.NodeData.from_arrays(None, y, range(30))
    found = gr.Problem(gr.MeanLoss(data) + 2.0 * gr.L1()(w.along(range(30), 2))).solve(gr.Exact(), gap=1e-8).held()
    knots = [middle for _, middle, _ in found.keys("not held")]
    assert set(knots) <= {11, 12, 13}
    assert knots
    assert found.counts == {"held": 28 - len(knots), "not held": len(knots), "undecided": 0}
    assert f"{28 - len(knots)} of 28 held; not held: (" in str(found)
    assert repr(found) == f"<HeldRows: {28 - len(knots)} held, {len(knots)} not held, 0 undecided>"


def test_coefficients_of_a_node_and_advice_that_can_help_are_printed():
    X, y = np.eye(2), np.array([3.0, 0.1])
    data = gr.NodeData.from_dict({"a": (X, y), "b": (X, y[::-1])})
    problem = gr.Problem(gr.SquaredLoss(data, scale="sum") + 0.1 * gr.NodePenalty(gr.L1()))  # the flow is the capacity
    solution = problem.solve(gr.Exact(), gap=1e-9)
    w = np.where(np.abs(solution.certificate.w) < 1e-3, 0.0, solution.certificate.w)
    at_zero, away = (held_rows(replace(solution.certificate, w=w + off)) for off in (0.0, 1e-12))
    assert "0 of 4 held; not held: a (x0), b (x1); undecided: b (x0), a (x1)\n" in str(at_zero)
    assert str(at_zero).endswith("\nundecided: a smaller gap= may decide more")  # of what is 0 here nothing is tried
    assert str(away).endswith("; prove=True tries those with another value here: 2")
    assert str(solution.held(prove=True)).endswith("\nundecided: a smaller gap= may decide more")


def test_a_coordinate_holds_whatever_the_others_do():
    data = gr.NodeData.from_arrays(None, np.array([[0.0, 0.0], [0.1, 5.0]]), range(2))
    found = gr.Problem(gr.MeanLoss(data) + 0.5 * gr.TotalVariation(nx.path_graph(2), gr.L1())).solve().held()
    assert found.table["state"].tolist() == ["held", "not held"]  # y0 and y1
    assert found.advice == ""


def test_a_smaller_gap_is_advised_only_where_it_may_help():
    X, node = np.random.default_rng(0).normal(size=(12, 2)), np.repeat(range(3), 4)
    data = gr.NodeData.from_arrays(X, X[:, 0] * (1.0 + node), node)
    flat = gr.QuantileLoss(data, tau=0.5) + 0.05 * gr.TotalVariation(nx.path_graph(3), gr.L2())  # nothing has curvature
    assert gr.Problem(flat).solve().held().advice == "undecided: prove=True tries those with another value here: 2"
    ball = gr.MeanLoss(gr.NodeData.from_arrays(None, np.eye(3), range(3))) + gr.Ball(0.5)(w.along(range(3), 2))
    said = "undecided: of rows of Ball((D^2 w)_t) nothing is proved: its bounds are of several numbers"
    assert gr.Problem(ball).solve().held().advice == said


@pytest.mark.parametrize("penalty", [gr.L1(), gr.SquaredL2(), gr.HuberNorm(1.0)])
def test_the_verb_that_is_advised_where_rows_are_no_edges_says_something(penalty):
    data = gr.NodeData.from_arrays(None, np.arange(4.0) ** 2, range(4))
    solution = gr.Problem(gr.MeanLoss(data) + penalty(w.along(range(4), 2))).solve()
    note, *_ = solution.flows.table().assumed
    assert "clusters()" not in note
    assert note.endswith("what holds at every optimum is said by solution.held()")
    with pytest.raises(TermError, match=r"make no clusters; solution\.held\(\) tells"):
        solution.clusters()
    smooth = "no penalty of the model has a kink or bounds" in str(solution.held())
    assert smooth == (not isinstance(penalty, gr.L1))


# ---- refusals --------------------------------------------------------------------------------------------------------
def test_nothing_is_said_without_a_certificate():
    data = gr.NodeData.from_arrays(None, np.zeros(3), range(3))
    problem = gr.Problem(gr.MeanLoss(data) + gr.Ball(1.0)(w.at([0]) - 3.0) + gr.Ball(1.0)(w.at([0]) + 3.0))
    solution = problem.solve(on_failure="return")
    with pytest.raises(ProofError, match="is proved from a certificate, and there is none: "):
        held_rows(solution.certificate)


def test_a_model_without_penalties_has_no_rows():
    found = gr.Problem(gr.SquaredLoss(w.at([0, 1]), np.array([1.0, 2.0]))).solve().held()
    assert len(found.table) == 0
    assert str(found).endswith("\nno penalty of the model has a kink or bounds, so that none of its rows is held")


def test_states_and_terms_that_are_not_there_are_refused():
    found = of_one_row(1.0).solve().held()
    with pytest.raises(TermError, match="rows are 'held', 'not held' or 'undecided', got 'active'"):
        found.keys("active")
    with pytest.raises(TermError, match=r"'knots' is no term with rows that may hold; there are L1\(\(D\^2 w\)_t\)"):
        found.keys("held", "knots")


def test_a_model_without_penalties_has_no_rows_that_may_hold():
    rng = np.random.default_rng(0)
    loss = gr.SquaredLoss(rng.normal(size=(8, 4)) @ gr.w.at(range(4)), rng.normal(size=8))
    found = gr.Problem(loss).solve(progress=False).held()
    assert len(found.table) == 0
    assert found.counts == {"held": 0, "not held": 0, "undecided": 0}


# ---- premises, each by itself ----------------------------------------------------------------------------------------
def region_of(*numbers):
    center, width = np.array(numbers, dtype=float).T
    return Region(center, width, np.zeros(len(center)))


def system(rows, base=None):
    """Rows of two parameters; what acts on these is known."""
    K = sp.csr_array(np.array(rows, dtype=float))
    m = len(rows)
    shown = holding._Shown(np.zeros(m), np.ones(m), np.zeros(m) if base is None else np.array(base), np.ones(m))
    return K, shown, sp.csr_array(np.eye(2)), region_of((0.1, 1e-9), (0.2, 1e-9)), 1e-12


def test_rows_count_as_sums_of_others_where_they_are_exactly():
    assert holding._solved(*system([[1, 0], [0, 1], [1, 1]])) is not None
    assert holding._solved(*system([[1, 0], [0, 1], [1, 1 + 1e-13]])) is None
    assert holding._solved(*system([[1, 0], [0, 1], [1, 1]], base=[0.0, 0.0, 1.0])) is None  # they cannot all hold


@pytest.mark.parametrize("factor", [-1.0, 0.0, 0.4, 3.0])
def test_an_inverse_that_is_none_shows_nothing(monkeypatch, factor):
    given = system([[1, 0], [0, 1]])
    assert holding._solved(*given) is not None
    inverse = holding._left_inverse

    def garbage(B, uncertain):
        rows = inverse(B, uncertain)
        return lambda some: factor * rows(some)

    monkeypatch.setattr(holding, "_left_inverse", garbage)
    assert holding._solved(*given) is None


def test_the_flow_of_an_active_constraint_is_not_known_by_its_slack():
    data = gr.NodeData.from_arrays(None, [0.0, 0.0, 1.0], range(3))
    form = gr.Problem(gr.MeanLoss(data) + gr.NonNegative()(w.along(range(3)))).form
    region = of_edges(form.edges[0], form, np.array([[0.0], [0.0], [1.0]]), 1e-3)
    assert np.isinf(region.width[0, 0])
    assert region.width[1, 0] == pytest.approx(5e-4, rel=1e-6)  # <u, z> is at most the gap, and u has one sign


@pytest.mark.parametrize("size", [5.0, 100.0, 4000.0])
def test_trends_of_counts_of_any_size_are_told(size):
    """The exponential is not as steep near the answer as it is far away."""
    times = np.arange(18)
    counts = np.random.default_rng(0).poisson(size * np.exp(np.interp(times, [0, 9, 17], [0.0, 0.1, 0.5])))
    loss = gr.PoissonLoss(gr.NodeData.from_arrays(np.ones((18, 1)), counts, times), scale="sum")
    strength = gr.Parameter(1.0, name="strength")
    problem = gr.Problem(loss + strength * gr.L1()(gr.w.along(times.tolist(), 2)))
    strength.value = 3.0 * float(gr.strength_max(problem))
    assert problem.solve(gap=1e-10).held().counts == {"held": 16, "not held": 0, "undecided": 0}


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("f", "slope", "far"), [(np.exp, np.exp, 6.0), (np.abs, np.sign, 0.1)])
def test_slopes_are_bounded_at_points_that_are_known_to_rounding(f, slope, far, k):
    """At points within off of those that are given: in long floats."""
    rng = np.random.default_rng(k)
    for off in (1e-14, 1e-6, 0.1):
        x = rng.uniform(-far, far, (200, k))
        near = x + off * rng.uniform(-1.0, 1.0, x.shape) / k
        low, high = subgradients(lambda v: f(v).sum(axis=1), x, np.zeros(200), np.full(200, off), 1.0)
        slopes = slope(near.astype(np.longdouble))
        assert (low <= slopes).all()
        assert (slopes <= high).all()
        assert f is np.abs or off > 1e-14 or (high - low <= 1e-4 * slopes.sum(axis=1, keepdims=True)).all()
