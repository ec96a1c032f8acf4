"""The contents of a solution: tables, flows, certificates, status, the trace."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from factories import named
from solution_cases import CHAIN, METHODS, NODES, RIDGE, means, read

import graphreg as gr
from graphreg.certificate import Certificate
from graphreg.errors import InfeasibleError


# ---- tables, latent nodes, flows -------------------------------------------------------------------------------------
def test_the_table_has_labels_and_features(frame):
    solution = gr.Problem(gr.SquaredLoss(read(frame)) + 0.1 * gr.TotalVariation(CHAIN, gr.L2())).solve()
    table = solution.table()
    assert table.index.tolist() == NODES
    assert table.index.name == "node"
    assert table.columns.tolist() == ["intercept", "rain", "temp"]
    np.testing.assert_array_equal(table.to_numpy(), solution.coef)
    assert solution.labels == ("a", "b", "c")


def test_tuples_as_labels():
    grid = gr.Graph.grid(2, 2)
    data = gr.NodeData.from_dict({(0, 0): (None, [1.0]), (1, 1): (None, [2.0])})
    solution = gr.Problem(gr.MeanLoss(data) + 0.1 * gr.TotalVariation(grid, gr.L2())).solve()
    assert solution.table().index.tolist() == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert solution.flows[(0, 0), (0, 1)].shape == (1,)
    assert set(solution.clusters().labels) == set(grid.labels)


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_flows_are_subgradients_from_tail_to_head(method):
    """At capacity, towards the lower end: u_e in the subdifferential of c |.| at w_tail - w_head."""
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=2.0)
    graph.add_edge(1, 2)
    problem = gr.Problem(gr.MeanLoss(means(0.0, 10.0, 4.0)) + 0.5 * gr.TotalVariation(graph, gr.L2()))
    solution = problem.solve(method, gap=1e-10)
    flows = solution.flows
    assert flows[0, 1] == pytest.approx(-1.0, abs=1e-4)
    assert flows[1, 2] == pytest.approx(0.5, abs=1e-4)
    np.testing.assert_array_equal(flows[1, 0], -flows[0, 1])
    np.testing.assert_array_equal(flows[2, 1], -flows[1, 2])
    np.testing.assert_allclose(solution.coef[:, 0], [1.0, 8.5, 4.5], atol=1e-4)
    assert list(flows) == [(0, 1), (1, 2)]
    assert len(flows) == 2
    assert (1, 0) in flows
    assert (0, 2) not in flows


def test_flows_balance_the_gradients_and_add_up_over_terms(rng):
    a = rng.normal(size=(3, 2))
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, a, NODES))
    model = loss + 0.2 * gr.TotalVariation(CHAIN, gr.L2()) + 0.1 * gr.TotalVariation(CHAIN, gr.L1(), features=["y1"])
    solution = gr.Problem(model + 0.3 * gr.NodePenalty(gr.SquaredL2())).solve(gap=1e-10)
    flows, w = solution.flows, solution.coef
    np.testing.assert_allclose(flows["b", None], 0.3 * w[1], atol=1e-4)
    np.testing.assert_allclose(a[1] - w[1], flows["b", None] + flows["b", "a"] + flows["b", "c"], atol=1e-4)
    assert set(flows) == {("a", "b"), ("b", "c"), ("a", None), ("b", None), ("c", None)}


def test_flows_to_latent_nodes():
    tree = gr.Hierarchy({0: "p", 1: "p", 2: "q"}, (2.0, 1.0))
    solution = gr.Problem(gr.MeanLoss(means(-1.0, 1.0, 6.0)) + tree).solve(gap=1e-10)
    assert set(solution.latent) == {"p", "q", "root"}
    np.testing.assert_allclose(solution.flows[0, "p"], 2.0 * (solution.coef[0] - solution.latent["p"]), atol=1e-4)
    np.testing.assert_allclose(solution.flows["root", "q"], solution.latent["root"] - solution.latent["q"], atol=1e-4)
    assert solution.table().shape == (3, 1)
    assert "3 latent nodes" in str(solution)
    assert gr.Problem(gr.MeanLoss(means(1.0))).solve().latent == {}


# ---- certificates ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS, ids=named)
def test_the_parts_of_the_gap_add_up_to_it(frame, method):
    model = gr.LogisticLoss(read(frame, "flood")) + 0.05 * gr.TotalVariation(CHAIN, gr.L2()) + RIDGE
    certificate = gr.Problem(model).solve(method, gap=1e-4).certificate
    nodes, edges = certificate.per_node(), certificate.per_edge()
    total = nodes.sum() + edges["residual"].sum()
    assert total + certificate.charge == pytest.approx(certificate.gap, rel=1e-6, abs=1e-12)
    assert nodes.index.tolist() == NODES
    assert (nodes >= -1e-12).all()
    assert (edges["residual"] >= -1e-12).all()
    assert edges["term"].tolist() == ["TotalVariation(L2)"] * 2 + ["NodePenalty(SquaredL2)"] * 3
    assert edges["tail"].tolist() == ["a", "b", "a", "b", "c"]
    assert edges["head"].tolist()[:2] == ["b", "c"]
    assert edges["head"][2:].isna().all()  # the ground
    assert (edges["length"][:2] <= 0.05).all()


def test_the_culprit_holds_the_gap():
    """One node is given a value far off: its samples, and no others, hold the gap."""
    problem = gr.Problem(gr.MeanLoss(means(0.0, 1.0, 2.0)) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2()))
    form, solution = problem.form, problem.solve(gap=1e-10)
    w = solution.coef.copy()
    w[2] += 5.0
    off = Certificate(
        form.primal(w), solution.certificate.dual, 0.0, "global", w, solution.certificate.dual_point, form
    )
    assert off.per_node()[2] == pytest.approx(12.5, rel=1e-4)
    assert off.per_node()[:2].abs().max() < 1e-6
    assert off.gap == pytest.approx(12.5, rel=1e-4)


def test_bounds_and_distance(rng):
    """Two means in closed form: (w_i - a_i)^2 / 2 + |w_0 - w_1| has its optimum at a moved by 1 each."""
    problem = gr.Problem(gr.MeanLoss(means(0.0, 4.0)) + gr.TotalVariation(nx.path_graph(2), gr.L2()))
    for method in METHODS:
        for gap in (1e-1, 1e-4, 1e-8):
            certificate = problem.solve(method, gap=gap).certificate
            assert certificate.dual <= 3.0 <= certificate.primal
            assert certificate.relative_gap <= gap
            assert certificate.holds(gap)
            assert certificate.strong_convexity == pytest.approx(1.0)
            assert np.linalg.norm(certificate.w[:, 0] - [1.0, 3.0]) <= certificate.distance


# ---- status and printing ---------------------------------------------------------------------------------------------
@pytest.fixture
def problem(frame):
    return gr.Problem(gr.SquaredLoss(read(frame)) + 0.1 * gr.TotalVariation(CHAIN, gr.L2()) + RIDGE)


def test_status_certified(problem):
    solution = problem.solve(gr.PrimalDual(), gap=1e-5)
    assert solution.status == "certified"
    assert solution.message == "The relative gap is certified to be at most 1e-05."
    text = str(solution)
    assert text.startswith("PrimalDual: certified. ")
    assert f"objective {solution.objective:.10g} (3 nodes x 3 coordinates; {solution.rounds} rounds" in text
    assert "<= optimum <=" in text
    assert repr(solution) == f"<Solution PrimalDual: certified, objective {solution.objective:.6g}>"
    assert "clarabel said: optimal" in problem.solve(gr.Exact()).message


def test_status_budget(problem):
    run = problem.solve(gr.PrimalDual(), rounds=3)
    assert (run.status, run.rounds) == ("budget", 3)
    assert "3 rounds" in run.message
    assert "allow more" in run.message
    assert run.certificate.valid
    assert problem.solve(gr.PrimalDual(), rounds=7, gap=0).rounds == 7
    assert problem.solve(gr.PrimalDual(), seconds=1e-9).status == "budget"


@pytest.mark.usefixtures("unhurried")
def test_status_interrupted(problem):
    def stop(record):
        if not record.certified and record.round == 20:
            raise KeyboardInterrupt

    run = problem.solve(gr.PrimalDual(), gap=1e-12, callback=stop)
    assert (run.status, run.rounds) == ("interrupted", 20)
    assert "best point so far" in run.message
    assert run.certificate.valid
    assert run.certificate.dual <= problem.solve(gap=1e-9).objective <= run.objective


def infeasible():
    boxes = gr.NodePenalty(gr.Box(2, 3)) + gr.NodePenalty(gr.Box(-1, 1))
    return gr.Problem(gr.MeanLoss(means(0.0)) + boxes)


def test_status_infeasible():
    with pytest.raises(InfeasibleError) as caught:
        infeasible().solve()
    assert caught.value.solution.status == "infeasible"
    assert "no certificate" in str(caught.value.solution)
    assert "Auto: infeasible. No point satisfies all constraints" in str(caught.value.solution)


READS = {
    "coef": lambda found, path: found.coef,
    "table": lambda found, path: found.table(),
    "flows": lambda found, path: found.flows,
    "latent": lambda found, path: found.latent,
    "clusters": lambda found, path: found.clusters(),
    "proved clusters": lambda found, path: found.clusters(prove=True),
    "held": lambda found, path: found.held(),
    "to_networkx": lambda found, path: found.to_networkx(),
    "prove": lambda found, path: found.prove(path),
    "save": lambda found, path: found.save(path),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_nothing_is_read_off_what_is_no_answer(read, tmp_path):
    found = infeasible().solve(on_failure="return")
    with pytest.raises(InfeasibleError, match=r"^infeasible: there is no answer to read.* Drop or change one\.$"):
        read(found, tmp_path / "file")
    assert not any(tmp_path.iterdir())


def test_a_loss_that_falls_for_ever_has_no_certificate():
    fall = gr.Loss.from_cvxpy(lambda x, y: -x, gr.NodeData.from_dict({k: ([[1.0]], [0.0]) for k in "ab"}))
    found = gr.Problem(fall + gr.TotalVariation(nx.path_graph(["a", "b"]), gr.L1())).solve(on_failure="return")
    assert found.status == "no_certificate"
    assert not found.certificate.valid


def test_what_is_no_answer_is_shown_without_numbers():
    found = infeasible().solve(on_failure="return")
    assert found.summary().coefficients[["mean", "min", "max"]].isna().all(axis=None)
    assert "the best point that was met" not in str(found.summary())
    assert "the coefficients of the nodes" not in found._repr_html_()


def test_the_certificate_prints_its_bounds(problem):
    certificate = problem.solve().certificate
    first, second = str(certificate).splitlines()
    assert first == f"certificate: {certificate.dual:.10g} <= optimum <= {certificate.primal:.10g}"
    assert second.startswith(f"  gap {certificate.gap:.3g} (relative {certificate.relative_gap:.3g})")


WANT_MORE = {  # of a least squares problem on a chain: what it lacks, or what is to be chosen
    "DynamicProgramming": "has samples with several features",
    "LinearSystem": "is no sum of squares",
    "OneNode": "nodes, and the method takes one",
    "AsyncL2GD": "is for a Hierarchy alone",
    "AsyncAL2SGD": "is for a Hierarchy alone",
    "LocalSGD": "is no consensus",
    "GradientTracking": "is no consensus",
    "ExactDiffusion": "is no consensus",
    "ClusteredFedAvg": "give ClusteredFedAvg",
    "IFCA": "give IFCA",
    "PFedMe": "give PFedMe",
    "Ditto": "give Ditto",
    "FedProx": "give FedProx",
}


def test_methods_say_what_applies(problem):
    table, text = problem.methods(), str(problem.methods())
    assert repr(problem.methods()) == text
    assert table.index.tolist() == [method.name for method in gr.methods.listed()]
    table = table.loc[[method.name for method in gr.methods.METHODS]]
    assert set(table.index[~table["applies"]]) == set(WANT_MORE)
    for word in ("needs", "sends"):
        assert table[word].tolist() == [getattr(method, word) for method in gr.methods.METHODS]
        assert (table[word] != "").all()
    plain = " ".join(text.split())  # the text is wrapped
    for name, row in table.iterrows():
        if row["applies"]:
            assert not row["missing"]
            long = f"in about {row['seconds']:.2g} s and" if row["seconds"] >= 0 else "with about"
            takes = f"{long} {max(row['gigabytes'], 0.01):.2g} GB"
            assert f"{name}: applies, {takes} needs {row['needs']} sends {row['sends']}" in plain
            assert row["gigabytes"] > 0
        else:
            assert WANT_MORE[name] in row["missing"]
            told = f"missing {row['missing']} needs {row['needs']} sends {row['sends']}"
            assert f"{name}: does not apply {told}" in plain
    form = problem.form
    assert text.startswith(f"across every edge: 4 messages of {form.d} numbers, {32 * form.d} bytes\n")


@pytest.mark.parametrize("method", gr.methods.METHODS, ids=named)
def test_a_method_that_does_not_apply_is_refused_with_what_is_missing(problem, method):
    missing = method.missing(problem.form)
    if not missing:
        rounds = None if "rounds" in method.refuses() else 2
        assert problem.solve(method, gap=0, rounds=rounds, on_failure="return", seed=0).objective < np.inf
        return
    with pytest.raises(gr.errors.MethodError) as caught:
        problem.solve(method)
    assert caught.value.missing == missing
    assert str(caught.value).startswith(f"{method.name} does not apply: {missing[0]}")


def test_methods_say_what_is_missing(frame):
    class Rough(gr.terms.losses.base.AbstractLoss):  # the absolute value, without what smooth losses have
        encode = gr.HuberLoss.encode
        value = gradient = conjugate = prox = cvxpy = cvxpy_conjugate = conductance = typical_curvature = smoothed = (
            None
        )
        notation = gr.SquaredLoss.notation

    rough = gr.Problem(Rough(read(frame)) + RIDGE)
    table = rough.methods()
    ours = table.index.isin([method.name for method in gr.methods.METHODS])
    # a subgradient is all that a step along one needs; every other iteration asks for a prox or a gradient
    assert set(table.index[ours & table["applies"]]) == {"Auto", "Exact", "SubgradientDescent"}
    missing = "Rough is neither smooth nor piecewise linear: no prox of a node's sum is known"
    for name in ("PrimalDual", "ADMM", "LocalOnly", "Pooled"):
        assert table.loc[name, "missing"] == missing
    for name in ("FedADMM", "LocalSGD", "GradientTracking", "ExactDiffusion", "FedAvg", "IFCA", "AsyncL2GD"):
        assert "Rough is not smooth, and the method steps along gradients" in table.loc[name, "missing"]
    assert f"PrimalDual: does not apply\n    missing {missing}\n    needs" in str(table)
    assert str(table).startswith("no two nodes are neighbours")
    with pytest.raises(gr.errors.MethodError, match=f"PrimalDual does not apply: {missing}") as caught:
        rough.solve(gr.PrimalDual())
    assert caught.value.missing == (missing,)


def test_the_trace_and_the_ledger(problem):
    run = problem.solve(gr.PrimalDual(), gap=1e-7)
    table = run.trace.table()
    columns = ["round", "seconds", "relative_gap", "certified", "primal", "dual", "messages", "bytes"]
    assert table.columns.tolist() == columns
    assert table["messages"].is_monotonic_increasing
    last = table.iloc[-1]
    assert last["messages"] == run.ledger.messages["method"] + run.ledger.messages["adaptation"]
    assert last["bytes"] == run.ledger.bytes["method"] + run.ledger.bytes["adaptation"]
    assert np.isfinite(table["primal"]).all()  # of screens, too
    assert (table["primal"] >= run.certificate.dual).all()
    assert table.loc[~table["certified"], "dual"].isna().all()
    assert table["round"].is_monotonic_increasing
    last = run.trace.certified()[-1]
    assert last.round == run.rounds
    assert last.relative_gap <= 1e-7
    assert len(run.trace) == len(table)
    # in every round each of the two edges carries one message each way
    assert run.ledger.messages["method"] == 4 * run.rounds
    assert "4" in str(run.ledger)
    assert str(run.ledger).startswith(f"{run.rounds} rounds")


# ---- starts ----------------------------------------------------------------------------------------------------------
def test_a_start_at_the_answer_needs_no_more_rounds(problem):
    cold = problem.solve(gr.PrimalDual(), gap=1e-7)
    warm = problem.solve(gr.PrimalDual(), gap=1e-7, start=cold)
    assert warm.status == "certified"
    assert warm.rounds < cold.rounds
    assert problem.solve(gr.PrimalDual(), gap=1e-7, start=cold.coef).status == "certified"
