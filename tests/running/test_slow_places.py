"""The deadline is heard, and memory is weighed, in places that are slow or large in large problems alone."""

import time
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import graphreg as gr
from graphreg.base import gate
from graphreg.certificate import convexity
from graphreg.certificate.kernel.arithmetic import RefusedError
from graphreg.certificate.kernel.system import System
from graphreg.certificate.proposing.plan import JointPlan
from graphreg.inputs import components_of
from graphreg.methods.automatic.auto import plan
from graphreg.oracles import newton
from graphreg.running import Costs
from graphreg.terms.maps import Matrix
from graphreg.terms.penalties import _rows, has_kink

SECONDS, SOON, LONG = 0.2, 4.0, 20.0


def problem(n: int = 6, d: int = 2, loss=gr.SquaredLoss, penalty=None) -> gr.Problem:
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.normal(size=(4 * n, d)), np.sign(rng.normal(size=4 * n)), np.repeat(range(n), 4))
    lam = gr.Parameter(0.1, name="lam")
    return gr.Problem(loss(data) + lam * gr.TotalVariation(nx.path_graph(n), penalty or gr.L2()))


def lasso() -> gr.Problem:
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.normal(size=(9, 2)), rng.normal(size=9), np.zeros(9, dtype=int))
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.NodePenalty(gr.L1()))


def solved(given: gr.Problem, method) -> str:
    return given.solve(method, seconds=SECONDS, gap=1e-9, on_failure="return").status


def validated() -> str:
    with pytest.raises(gr.errors.BudgetError, match="cross_validate"):
        gr.cross_validate(problem(), [0.1, 1.0], folds=2, seconds=SECONDS)
    return "budget"


def audited() -> str:
    return str(gr.audit(problem(), gr.PrimalDual(), seconds=SECONDS)).count("the time was up") * "budget"


@pytest.mark.parametrize(
    ("place", "call"),
    [
        ("graphreg.running.solving.around", lambda: solved(problem(), gr.PrimalDual())),
        ("graphreg.running.solving.torn", lambda: solved(problem(), gr.PrimalDual())),
        ("graphreg.methods.automatic.auto._in_one_pass", lambda: solved(problem(), gr.Auto())),
        (
            "graphreg.methods.linear_system.minimised",
            lambda: solved(problem(penalty=gr.SquaredL2()), gr.LinearSystem()),
        ),
        (
            "graphreg.certificate.Certifier.from_flows",
            lambda: solved(problem(penalty=gr.SquaredL2()), gr.LinearSystem()),
        ),
        ("graphreg.auditing.referee.limit_of", audited),
        ("graphreg.methods.one_node.certified", lambda: solved(lasso(), gr.OneNode())),
        ("graphreg.tuning.cross_validation.folds_of", validated),
        ("graphreg.auditing.course.lengths_of_losses", audited),
    ],
)
def test_the_deadline_is_heard_where_work_is_slow(monkeypatch, place, call):
    took = list[float]()

    def slow(*_, **__):
        began = time.monotonic()
        try:
            while time.monotonic() < began + LONG:
                time.sleep(0.01)
        finally:
            took.append(time.monotonic() - began)

    monkeypatch.setattr(place, slow)
    assert call() == "budget"
    assert took
    assert sum(took) < SOON


def test_auto_plans_where_no_factor_fits():
    costs = Costs(problem(loss=gr.HingeLoss).form)
    vars(costs)["multiplications"] = float("inf")
    assert next(plan(costs)).method == gr.PrimalDual()


@pytest.mark.parametrize("seed", range(20))
def test_links_connect_the_nodes_that_pairs_do(seed):
    rng = np.random.default_rng(seed)
    rows = Matrix(sp.csr_array(sp.random_array((12, 30), density=0.1, rng=rng)), 2, 15)
    assert (components_of(*rows.links, 15)[1] == components_of(*rows.pairs, 15)[1]).all()
    assert len(rows.links[0]) <= rows.K.nnz


def test_long_rows_are_not_taken_pair_by_pair():
    rows = Matrix(sp.csr_array(np.ones((2, 5000))), 1, 5000)
    assert len(rows.links[0]) == 2 * 4999
    with gate.allowing(1e6), pytest.raises(MemoryError, match=r"the pairs of nodes that rows tie would take 0\.8 GB"):
        _ = rows.pairs


@pytest.mark.parametrize("graph", [nx.gnm_random_graph(40, 45, seed=s) for s in range(10)] + [nx.lollipop_graph(4, 9)])
def test_what_trees_leave_is_the_core(graph):
    A = sp.csc_array(nx.adjacency_matrix(graph) + 9.0 * sp.eye_array(len(graph)))
    core = sorted(nx.k_core(graph, 2))
    assert (newton._without_trees(A) != A[core][:, core]).nnz == 0


def test_an_order_that_takes_long_is_found_by_a_process(monkeypatch):
    A = sp.csc_array(nx.adjacency_matrix(nx.gnm_random_graph(40, 90, seed=0)) + 9.0 * sp.eye_array(40))
    here, begun = newton.sparse_order(A), list[object]()
    monkeypatch.setattr(newton, "SLOW", 10)
    monkeypatch.setattr(newton, "aside", lambda *work: begun.append(work) or gate.aside(*work))
    assert (newton.sparse_order(A) == here).all()
    assert len(begun) == 1


def test_long_trees_are_taken_away_at_once():
    ends = np.array(list(pairwise(range(200_000))))
    A = sp.csc_array(nx.adjacency_matrix(nx.Graph(ends.tolist())) + 9.0 * sp.eye_array(200_000))
    began = time.process_time()
    assert newton.least_fill(A) == 0.0
    assert time.process_time() < began + 10.0  # minutes, end by end


def test_functions_at_units_need_not_be_taken_together(monkeypatch):
    whole = _rows.at_units(gr.LInf().dual_norm, 7), _rows.both_ways(gr.Box(-1.0, 2.0).conjugate, 7)
    monkeypatch.setattr(_rows, "CELLS", 20)
    assert (_rows.at_units(gr.LInf().dual_norm, 7) == whole[0]).all()
    assert (_rows.both_ways(gr.Box(-1.0, 2.0).conjugate, 7) == 2.0).all()


def test_one_vector_shows_the_kink_of_a_norm_of_sizes(monkeypatch):
    norms, seen = (gr.L1, gr.L2, gr.LInf), list[int]()
    for norm in norms:
        whole = norm.dual_norm
        monkeypatch.setattr(norm, "dual_norm", lambda self, u, whole=whole: seen.append(len(u)) or whole(self, u))
    assert all(has_kink(norm(), 3_000) for norm in norms)
    assert seen == [1, 1, 1]
    assert not has_kink(gr.SquaredL2(), 3)


def test_the_pooled_optimum_of_many_coordinates_is_weighed():
    given = problem(d=300)
    with gate.allowing(1e6), pytest.raises(MemoryError, match=r"on the pooled problem would take about 0\.014 GB"):
        gr.strength_max(given)


def test_nodes_of_rows_are_counted_by_row():
    rng = np.random.default_rng(0)
    for m, k, n, d, density in ((40, 3, 30, 4, 0.3), (9, 1, 5, 3, 0.0), (7, 2, 1, 2, 0.9)):
        K = sp.random_array((m * k, n * d), density=density, rng=rng, format="csr")
        begin = K.indptr.copy()
        touched = abs(K.toarray()).reshape(m, k, n, d).max(axis=3) > 0.0  # of each line of a row
        rows, nodes, count = Matrix(K, k, n)._places
        where = np.nonzero(touched.any(axis=1))
        assert (np.array([rows, nodes]) == where).all()
        assert (count == touched.sum(axis=1)[where]).all()
        assert (K.indptr == begin).all()


def test_what_all_verbs_need_is_weighed(monkeypatch):
    given = problem(d=40)
    with gate.allowing(1e4):
        with pytest.raises(MemoryError, match=r"certify would take about .* GB, and 1e-05 GB may be used; take"):
            given.certify(np.zeros((6, 40)))
        assert not convexity.node_convexity(given.form).any()
        assert convexity.equilibrated(sp.csc_array(sp.eye_array(9))) is not None
        assert convexity.equilibrated(sp.csc_array(sp.eye_array(9000))) is None
    assert convexity.node_convexity(problem(d=3).form).any()


def test_the_joint_rule_is_weighed():
    system = System(problem(n=30).form)
    JointPlan(system, np.ones(system.size))
    with gate.allowing(1e3), pytest.raises(RefusedError, match="take too much memory"):
        JointPlan(system, np.ones(system.size))
