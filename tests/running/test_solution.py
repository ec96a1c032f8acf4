"""What is read off an answer: tables, flows, predictions, clusters, certificates by part, and what is printed."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from factories import thinned

import graphreg as gr
from graphreg.certificate import Certificate
from graphreg.errors import UnboundedError

NODES = ["a", "b", "c"]
CHAIN = nx.path_graph(NODES)
METHODS = [gr.Exact(), gr.PrimalDual(), gr.ADMM()]


def by_name(method):
    return method.name


@pytest.fixture
def rng():
    return np.random.default_rng(17)


@pytest.fixture
def frame(rng):
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["rain", "temp"])
    frame["site"] = np.repeat(NODES, 10)
    frame["gauge"] = rng.normal(size=30)
    frame["level"] = frame["rain"] - frame["temp"] + 0.5 * rng.normal(size=30) + frame["gauge"]
    frame["flood"] = (frame["level"] + rng.logistic(size=30) > 0).astype(int)
    return frame.set_index(np.arange(100, 130))


def read(frame, target="level", **more):
    return gr.NodeData.from_frame(frame, node="site", target=target, features=["rain", "temp"], intercept=True, **more)


def means(*values):
    """One target at each of the nodes 0, 1, ..."""
    return gr.NodeData.from_dict({i: (None, [value]) for i, value in enumerate(values)})


RIDGE = 1e-2 * gr.NodePenalty(gr.SquaredL2())


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


@pytest.mark.parametrize("method", METHODS, ids=by_name)
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


# ---- predictions -----------------------------------------------------------------------------------------------------
def link_by_hand(solution, frame, offset=None):
    w = solution.table().loc[frame["site"]].to_numpy()
    link = w[:, 0] + w[:, 1] * frame["rain"].to_numpy() + w[:, 2] * frame["temp"].to_numpy()
    return link if offset is None else link + frame[offset].to_numpy()


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.HuberLoss])
@pytest.mark.parametrize("offset", [None, "gauge"])
def test_predictions_of_numbers(frame, loss, offset):
    problem = gr.Problem(loss(read(frame, offset=offset)) + 0.1 * gr.TotalVariation(CHAIN, gr.L2()))
    solution = problem.solve()
    new = frame.sample(frac=0.5, random_state=1).drop(columns="level")
    for kind in ("response", "link"):
        predicted = solution.predict(new, kind=kind)
        np.testing.assert_allclose(predicted, link_by_hand(solution, new, offset), rtol=1e-12)
        assert predicted.index.tolist() == new.index.tolist()


CODINGS = {
    "0 and 1": ({0: 0, 1: 1}, int),
    "-1 and 1": ({0: -1, 1: 1}, int),
    "booleans": ({0: False, 1: True}, bool),
    "floats": ({0: 0.0, 1: 1.0}, float),
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("offset", [None, "gauge"])
def test_predictions_of_classes(frame, coding, offset):
    code, kind = CODINGS[coding]
    frame["flood"] = frame["flood"].map(code).astype(kind)
    solution = gr.Problem(gr.LogisticLoss(read(frame, "flood", offset=offset)) + RIDGE).solve()
    link = link_by_hand(solution, frame, offset)
    np.testing.assert_allclose(solution.predict(frame, kind="link"), link, rtol=1e-10)
    np.testing.assert_allclose(solution.predict(frame), 1 / (1 + np.exp(-link)), rtol=1e-10)
    classes = solution.predict(frame, kind="class")
    assert classes.tolist() == [code[int(x > 0)] for x in link]
    assert classes.dtype == kind
    assert set(classes) == set(code.values())
    assert (classes == frame["flood"]).mean() > 0.6


@pytest.mark.parametrize(("label", "other"), [(1, 0), (-1, 1), (0, 1), (True, False)])
def test_classes_where_all_samples_are_of_one(frame, label, other):
    frame["flood"] = label
    ridge = gr.NodePenalty(gr.SquaredL2(), features=["intercept", "rain", "temp"])
    solution = gr.Problem(gr.LogisticLoss(read(frame, "flood")) + ridge).solve()
    assert set(solution.predict(frame.assign(rain=0.0, temp=0.0), kind="class")) == {label}
    link = solution.predict(frame.assign(rain=0.0, temp=0.0), kind="link")
    slope = solution.table()["rain"].loc[frame["site"]].to_numpy()
    classes = solution.predict(frame.assign(rain=-1e6 * np.sign(link) * slope, temp=0.0), kind="class")
    assert set(classes) == {other}
    assert classes.dtype == frame["flood"].dtype


def test_a_huge_link_is_a_probability_without_a_warning(frame):
    solution = gr.Problem(gr.LogisticLoss(read(frame, "flood")) + RIDGE).solve()
    far = frame.assign(rain=1e6, temp=np.where(np.arange(30) % 2, 1e7, -1e7))
    assert solution.predict(far).between(0, 1).all()
    assert solution.predict(frame.iloc[:0]).empty


def test_predictions_with_two_families(frame):
    a, rest = frame[frame["site"] == "a"], frame[frame["site"] != "a"]
    model = gr.LogisticLoss(read(rest, "flood")) + gr.SquaredLoss(read(a, "level")) + RIDGE
    solution = gr.Problem(model).solve()
    np.testing.assert_allclose(solution.predict(frame, kind="link"), link_by_hand(solution, frame), rtol=1e-10)
    link, at_a = link_by_hand(solution, frame), (frame["site"] == "a").to_numpy()
    np.testing.assert_allclose(solution.predict(frame), np.where(at_a, link, 1 / (1 + np.exp(-link))), rtol=1e-10)
    assert set(solution.predict(frame[~at_a], kind="class")) <= set(frame["flood"])
    with pytest.raises(gr.errors.DataError, match="kind='class' needs a classification loss, and SquaredLoss is none"):
        solution.predict(frame, kind="class")


# ---- clusters --------------------------------------------------------------------------------------------------------
def two_clusters(rng, penalty, m=20, d=2):
    """Eight nodes in two rings joined by one edge, each with a truth of its own; and that problem's two sides."""
    ring = nx.cycle_graph(4)
    graph = nx.disjoint_union(ring, ring)
    graph.add_edge(3, 4)
    truth = np.repeat([[2.0, -1.0], [-2.0, 1.0]], 4, axis=0)
    data = {}
    for i, w in enumerate(truth):
        X = rng.normal(size=(m, d))
        data[i] = X, X @ w + 0.1 * rng.normal(size=m)
    return gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(data)) + 0.2 * gr.TotalVariation(graph, penalty))


@pytest.mark.parametrize("method", METHODS, ids=by_name)
@pytest.mark.parametrize("penalty", [gr.L2(), gr.L1(), gr.LInf()], ids=repr)
def test_two_true_clusters_are_found_and_proved(rng, penalty, method):
    solution = two_clusters(rng, penalty).solve(method, gap=1e-8)
    near, found = solution.clusters(), solution.clusters(prove=True)
    assert near.labels == found.labels
    assert not near.certain
    assert near.edges["state"].tolist().count("near") == 8
    assert found.certain
    assert found.count_range == (2, 2)
    assert found.members() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found.labels == {i: int(i > 3) for i in range(8)}
    assert found.count == 2
    edges = found.edges.set_index(["tail", "head"])
    assert edges.loc[(3, 4), "state"] == "split"
    assert (edges.drop(index=(3, 4))["state"] == "fused").all()
    assert edges.loc[(3, 4), "slack"] == pytest.approx(0.0, abs=1e-6)
    assert (edges.drop(index=(3, 4))["slack"] > 1e-3).all()
    assert str(found) == (
        "2 clusters of sizes 4, 4; edges: 8 fused, 1 split, 0 undecided (every edge is decided by a proof)"
    )


def test_a_coarse_answer_decides_less_and_nothing_wrongly(rng):
    problem = two_clusters(rng, gr.L2())
    coarse = problem.solve(gr.PrimalDual(), rounds=3, gap=0).clusters()
    assert not coarse.certain
    assert "every edge is decided by a proof" not in str(coarse)
    assert set(coarse.edges["state"]) <= {"near", "split", "undecided"}


def noisy(seed):
    """Six nodes with little data on a ring with chords, so that some edges fuse and some do not."""
    rng = np.random.default_rng(seed)
    graph = nx.circulant_graph(6, [1, 2])
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = rng.uniform(0.5, 2.0)
    truth = np.where(np.arange(6)[:, None] < 3, [1.0, -1.0], [1.5, 0.0])
    data = {i: ((X := rng.normal(size=(8, 2))), X @ truth[i] + 0.5 * rng.normal(size=8)) for i in range(6)}
    return gr.SquaredLoss(gr.NodeData.from_dict(data)), graph


@pytest.mark.parametrize(("penalty", "seed"), thinned([gr.L2(), gr.L1(), gr.LInf()], range(3), every=3))
def test_edges_are_decided_as_a_tight_solution_has_them(penalty, seed):
    """Each penalty on one of the problems; on all with ``make test ARGS=--whole``."""
    loss, graph = noisy(seed)
    states = set()
    for strength in (0.01, 0.05, 0.2):
        problem = gr.Problem(loss + strength * gr.TotalVariation(graph, penalty))
        tight = problem.solve(gap=1e-11)
        assert tight.certificate.distance < 1e-4
        size = np.sqrt((tight.coef**2).mean())
        accuracy = 2 * tight.certificate.distance
        for method, gap in ((gr.PrimalDual(), 1e-2), (gr.PrimalDual(), 1e-5), (gr.Exact(), 1e-6)):
            edges = problem.solve(method, gap=gap).clusters(prove=True).edges
            true = np.linalg.norm(tight.coef[edges["tail"].to_list()] - tight.coef[edges["head"].to_list()], axis=1)
            assert (true <= edges["bound"] + accuracy).all()
            assert (true[edges["state"] == "fused"] <= accuracy).all()
            assert (true[edges["state"] == "near"] <= 1e-3 * size + accuracy).all()
            assert (true[(edges["state"] == "split") & edges["certain"]] > 0).all()
            states |= set(edges["state"])
    assert "split" in states
    assert states & {"near", "fused"}


@pytest.mark.parametrize("method", METHODS, ids=by_name)
def test_clusters_where_the_optimum_is_0(method):
    problem = gr.Problem(gr.MeanLoss(means(-1, 1, -2, 2)) + 5 * gr.TotalVariation(nx.path_graph(4), gr.L2()))
    solution = problem.solve(method)
    np.testing.assert_allclose(solution.coef, 0.0, atol=1e-3)
    found = solution.clusters(prove=True)
    assert found.count == 1
    assert set(found.edges["state"]) <= {"near", "fused"}
    assert set(found.labels.values()) == {0}


@pytest.mark.parametrize("penalty", [gr.SquaredL2(), gr.HuberNorm(1.0), gr.Quadratic([[2.0]]), gr.Ball(1.0)], ids=repr)
def test_what_has_no_kink_never_fuses(penalty):
    for values in ((0.0, 0.0, 5.0), (0.0, 1e-6, 5.0)):
        found = (
            gr.Problem(gr.MeanLoss(means(*values)) + gr.TotalVariation(nx.path_graph(3), penalty)).solve().clusters()
        )
        assert "fused" not in set(found.edges["state"])
        assert found.count == 3


def test_a_consensus_fuses_by_definition():
    problem = gr.Problem(gr.MeanLoss(means(0.0, 1.0, 5.0)) + gr.Consensus(nx.path_graph(3)))
    found = problem.solve().clusters()
    assert (found.count, found.certain) == (1, True)
    assert (found.edges["bound"] == 0).all()


def test_clusters_without_edges():
    found = gr.Problem(gr.MeanLoss(means(0.0, 1.0))).solve().clusters()
    assert found.count == 2
    assert list(found.edges.columns) == ["term", "tail", "head", "state", "slack", "difference", "bound", "certain"]
    assert str(found).startswith("2 clusters, a node each; edges: 0 fused, 0 split, 0 undecided")


def test_nodes_that_agree_on_some_features_only_are_apart(rng):
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, rng.normal(size=(3, 2)), NODES))
    first, second = (5.0 * gr.TotalVariation(CHAIN, gr.L2(), features=[name]) for name in ("y0", "y1"))
    one, both = gr.Problem(loss + first).solve().clusters(), gr.Problem(loss + first + second).solve().clusters()
    assert set(one.edges["state"]) == {"near"}
    assert one.count == 3
    assert both.count == 1


def test_fused_edges_join_along_paths(rng):
    """Nodes 0 and 2 have no edge, and are one cluster through node 1."""
    problem = gr.Problem(gr.MeanLoss(means(0.0, 0.1, 0.2, 9.0)) + 0.5 * gr.TotalVariation(nx.path_graph(4), gr.L2()))
    found = problem.solve(gap=1e-8).clusters(prove=True)
    assert found.members() == [[0, 1, 2], [3]]
    assert found.edges["state"].tolist() == ["fused", "fused", "split"]


# ---- certificates ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS, ids=by_name)
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
    assert (edges["flow"][:2] <= 0.05).all()


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
    assert "clarabel said: optimal" in problem.solve().message


def test_status_budget(problem):
    run = problem.solve(gr.PrimalDual(), rounds=3)
    assert (run.status, run.rounds) == ("budget", 3)
    assert "3 rounds" in run.message
    assert "allow more" in run.message
    assert run.certificate.valid
    assert problem.solve(gr.PrimalDual(), rounds=7, gap=0).rounds == 7
    assert problem.solve(gr.PrimalDual(), seconds=1e-9).status == "budget"


def test_status_interrupted(problem):
    def stop(record):
        if not record.certified and record.round == 20:
            raise KeyboardInterrupt

    run = problem.solve(gr.PrimalDual(), gap=1e-12, callback=stop)
    assert (run.status, run.rounds) == ("interrupted", 20)
    assert "best point so far" in run.message
    assert run.certificate.valid
    assert run.certificate.dual <= problem.solve(gap=1e-9).objective <= run.objective


def test_status_unbounded():
    boxes = gr.NodePenalty(gr.Box(2, 3)) + gr.NodePenalty(gr.Box(-1, 1))
    problem = gr.Problem(gr.MeanLoss(means(0.0)) + boxes)
    with pytest.raises(UnboundedError) as caught:
        problem.solve()
    assert caught.value.solution.status == "unbounded"
    assert "no certificate" in str(caught.value.solution)
    assert "Exact(clarabel): unbounded. No point satisfies all constraints" in str(caught.value.solution)


def test_the_certificate_prints_its_bounds(problem):
    certificate = problem.solve().certificate
    first, second = str(certificate).splitlines()
    assert first == f"certificate (global): {certificate.dual:.10g} <= optimum <= {certificate.primal:.10g}"
    assert second.startswith(f"  gap {certificate.gap:.3g} (relative {certificate.relative_gap:.3g})")


WANT_MORE = {  # of a least squares problem on a chain: what it lacks, or what is to be chosen
    "AsyncL2GD": "is for a Hierarchy alone",
    "AsyncAL2SGD": "is for a Hierarchy alone",
    "LocalSGD": "is no consensus",
    "GradientTracking": "is no consensus",
    "ExactDiffusion": "is no consensus",
    "ClusteredFedAvg": "give ClusteredFedAvg",
    "IFCA": "give IFCA",
    "PFedMe": "give PFedMe",
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
            assert f"{name}: applies needs {row['needs']} sends {row['sends']}" in plain
        else:
            assert WANT_MORE[name] in row["missing"]
            told = f"missing {row['missing']} needs {row['needs']} sends {row['sends']}"
            assert f"{name}: does not apply {told}" in plain
    form = problem.form
    assert text.startswith(f"across every edge: 4 messages of {form.d} numbers, {32 * form.d} bytes\n")


@pytest.mark.parametrize("method", gr.methods.METHODS, ids=by_name)
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
    assert set(table.index[ours & table["applies"]]) == {"Exact", "SubgradientDescent"}
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
