"""Reports as files: one page that asks for nothing, whose data are those of the answer."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hostile import EVERY
from report_cases import Page, chain

import graphreg as gr
from graphreg.base.escaping import visible
from graphreg.certificate import STATES
from graphreg.errors import ModelError
from graphreg.reporting import reports

OURS = {"html", "head", "meta", "link", "title", "style", "body", "header", "h1", "h2", "h3", "p", "main", "section"}
OURS |= {"div", "label", "input", "span", "select", "option", "svg", "aside", "details", "summary", "ul", "li", "a"}
OURS |= {"table", "tr", "td", "noscript", "footer", "script", "code", "math", "mrow", "mi", "mo", "mn", "mtext"}
OURS |= {"msub", "msup", "msubsup", "munder", "mover", "munderover", "mfrac", "mspace", "mstyle"}


@pytest.fixture(scope="module")
def answer():
    return chain().solve(gr.PrimalDual(), gap=1e-9, observe=("w", "flows"))


@pytest.fixture(scope="module")
def path():
    lam = gr.Parameter(0.1, name="lam")
    data, graph = chain().model.terms[0][1].data, nx.path_graph(6)
    return gr.path(gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(graph, gr.L2())), 9, gap=1e-9)


def written(reported, file, **options):
    reported.report(file, **options)
    return Page(file)


def test_a_page_asks_for_nothing(answer, path, tmp_path):
    for k, reported in enumerate((answer, path)):
        page = written(reported, tmp_path / f"{k}.html")
        assert set(page.tags) <= OURS
        links = [value for _, name, value in page.attributes if name in ("href", "src", "action", "data", "srcset")]
        assert sorted(links) == ["#h-rests", "data:,"]
        assert not [name for _, name, _ in page.attributes if name.startswith("on")]
        assert not re.findall(r"url\((?!#)|@import", page.styles[0])
        assert set(re.findall(r"https?://\S+?\"", page.text)) == {'http://www.w3.org/2000/svg"'}  # a name, no address
        assert not re.findall(r"fetch\(|XMLHttp|import\(|innerHTML|eval\(|document\.write", page.script)


def test_only_its_own_script_may_run(answer, tmp_path):
    page = written(answer, tmp_path / "a.html")
    policy = next(value for _, name, value in page.attributes if name == "content" and "default-src" in value)
    assert "default-src 'none'" in policy
    for kind, content in (("script", page.script), ("style", page.styles[0])):
        found = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{found}'" in policy


def test_the_data_are_those_of_the_answer(answer, tmp_path):
    page = written(answer, tmp_path / "a.html")
    frame, found = page.frame(-1), answer.clusters().edges
    assert page.data["nodes"] == [str(label) for label in answer.labels]
    np.testing.assert_allclose(frame["w"], answer.coef, rtol=1e-6)
    assert [STATES[k % 4] for k in frame["state"]] == found["state"].tolist()
    flows = answer.flows.table().dropna(subset="head")
    assert (frame["state"] >= 4).tolist() == flows["saturated"].tolist()
    np.testing.assert_allclose(frame["edge"]["flow"], flows["length"], rtol=1e-6)
    np.testing.assert_allclose(frame["edge"]["used"], flows["used"], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(frame["edge"]["distance"], found["difference"], rtol=1e-6)
    parts = frame["node"].sum() + frame["ground"].sum() + frame["edge"]["residual"].sum()
    certificate = answer.certificate
    assert parts == pytest.approx(certificate.gap - certificate.charge, rel=1e-4)
    ends = [(page.data["edges"]["tail"][e], page.data["edges"]["head"][e]) for e in range(5)]
    assert ends == [(k, k + 1) for k in range(5)]


def test_bounds_of_rounds_close_and_hold(answer, tmp_path):
    data = written(answer, tmp_path / "a.html").data
    trace = data["runs"][0]["trace"]
    assert data["kind"] == "round"
    assert [frame["round"] for frame in data["frames"][:-1]] == answer.observed.rounds.tolist()
    dual, primal = ([each[name] for each in trace] for name in ("dual", "primal"))
    assert all(np.diff(dual[:-1]) >= 0)  # the last one is the answer itself, as it was certified
    assert all(np.diff(primal[:-1]) <= 0)
    assert all(d <= answer.objective for d in dual)
    assert all(p >= answer.certificate.dual for p in primal)
    assert trace[0]["gap"] > 1e-2
    assert trace[-1]["gap"] < 1e-8
    assert all(np.diff([each["bytes"] for each in trace]) >= 0)
    assert trace[-1]["bytes"] == answer.trace.records[-1].bytes


def test_what_the_flows_of_an_iterate_prove_by_themselves_stands_beside_them(tmp_path):
    y, graph = np.array([0.6, 1.4, 1.0, 3.2, 2.6, 3.2]), nx.Graph(["ab", "ac", "bc", "cd", "de", "df", "ef"])
    data = gr.NodeData.from_arrays(None, y, list("abcdef"))
    run = gr.Problem(gr.MeanLoss(data) + 0.5 * gr.TotalVariation(graph, gr.L2())).solve(
        gr.PrimalDual(), observe=("w", "flows")
    )
    page = written(run, tmp_path / "a.html")
    K = gr.Graph.of(graph).difference()
    for k, u in enumerate(run.observed["flows"][0]):
        pull = K.T @ u[:, 0]
        alone, best = re.search(r"prove (\S+) ≤ optimum; .*: (\S+) ≤ optimum", page.data["frames"][k]["said"]).groups()
        assert float(alone) == pytest.approx(pull @ y - pull @ pull / 2, rel=1e-7, abs=1e-12)
        assert float(best) >= float(alone)
    assert "in the answer the flows are those of the certificate's dual point" in page.said


def test_iterates_without_flows_have_no_bounds(tmp_path):
    run = chain().solve(gr.PrimalDual(), observe="w")
    page = written(run, tmp_path / "a.html")
    assert all("no bound follows" in frame["said"] for frame in page.data["frames"][:-1])
    assert page.data["runs"][0]["trace"][-1]["round"] == run.rounds
    assert page.frame(3)["iterate"]
    assert "Iterates of a run" in page.said


def test_an_exact_answer_has_no_sliders(tmp_path):
    exact = chain().solve(gr.Exact())
    data = written(exact, tmp_path / "a.html").data
    assert data["kind"] == "one"
    assert len(data["frames"]) == 1
    assert data["runs"][0]["trace"] == []
    assert data["runs"][0]["end"]["primal"] == exact.objective


def test_a_path_fuses_along_its_slider(path, tmp_path):
    page = written(path, tmp_path / "a.html")
    frames = [page.frame(k) for k in range(len(path))]
    assert [len(set(frame["cluster"].tolist())) for frame in frames] == path.table()["clusters"].tolist()
    for frame, solution in zip(frames, path, strict=True):
        assert f"{solution.objective:.10g}" in frame["said"]
        np.testing.assert_allclose(frame["w"], solution.coef, rtol=1e-6, atol=1e-9)
    assert "9 of 9 strengths are certified" in page.said
    assert "a parameter, now" in page.said
    assert "TotalVariation(L2)" in page.said


def test_a_path_that_is_too_large_is_thinned(path, tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "DATA", 4 * reports.size_of(path.solution_at(path.strengths[0]).form))
    page = written(path, tmp_path / "a.html")
    labels = [frame["label"] for frame in page.data["frames"]]
    assert len(labels) == 4
    assert labels[0] == f"{path.strengths[0]:.4g}"
    assert labels[-1] == f"{path.strengths[-1]:.4g}"
    assert "4 of the 9 strengths" in page.said


def test_what_is_assumed_and_what_is_not_certified_is_said(answer, path, tmp_path):
    said = written(answer, tmp_path / "a.html").said
    certificate = answer.certificate
    assert f"{certificate.dual:.10g} ≤ optimum ≤ {certificate.primal:.10g}" in said
    assert "nothing of how the data came about" in said
    assert "nothing is certified between two strengths" in written(path, tmp_path / "b.html").said


def test_an_answer_without_a_certificate_says_so(tmp_path):
    short = chain().solve(gr.ADMM(), gap=1e-12, rounds=3)
    page = written(short, tmp_path / "a.html")
    assert short.status == "budget"
    assert "Status: budget" in page.said


def test_hostile_names_are_shown_and_not_obeyed(tmp_path):
    names = [name for name in EVERY.values() if name]
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(
        rng.standard_normal((len(names), 2)), rng.standard_normal(len(names)), names, features=names[:2]
    )
    lam = gr.Parameter(0.1, name=EVERY["a tag"])
    graph = gr.Graph.from_edges(list(pairwise(names)))
    problem = gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(graph, gr.L2()))
    file = tmp_path / "a.html"
    for reported in (problem.solve(gap=1e-3), gr.path(problem, [0.1, 0.2], gap=1e-3)):
        page = written(reported, file)
        assert set(page.tags) <= OURS
        assert len(page.scripts) == 2
        assert not [a for a in page.attributes if a[1].startswith("on") or str(a[2]).startswith("javascript")]
        assert page.data["nodes"] == [visible(name) for name in reported.labels] if hasattr(reported, "labels") else 1
        content = next(text for kind, text in page.scripts if kind)
        assert not set("<>&") & set(content)
        assert not {c for c in page.text if not c.isprintable() and c not in "\n\xa0"}


def test_positions_by_mapping_and_by_frame(answer, tmp_path):
    places = {k: (k, k * k) for k in range(6)}
    one = written(answer, tmp_path / "a.html", positions=places).data
    frame = pd.DataFrame.from_dict(places, orient="index", columns=["x", "y"])
    other = written(answer, tmp_path / "b.html", positions=frame).data
    assert (one["x"], one["y"]) == (other["x"], other["y"])
    assert one["x"] == sorted(one["x"])
    assert one["y"] == sorted(one["y"], reverse=True)  # pictures have y downwards


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"positions": {k: (k, 0) for k in range(5)}}, r"positions have no entry for the node 5; give it a pair"),
        ({"positions": {k: (k, 0) for k in "abc"}}, r"no entry for the node 0 \(and 5 more\)"),
        ({"positions": {k: (k, np.nan) for k in range(6)}}, r"position of the node 0 must be a pair .* of numbers"),
        ({"positions": {k: k for k in range(6)}}, r"position of the node 0 must be a pair .* got 0"),
        ({"positions": 3}, r"positions must be a mapping .* got 3"),
        ({"positions": {}, "outlines": {}}, r"positions or outlines, and not both"),
        ({"comparison": 3}, r"comparison must be a Comparison"),
    ],
)
def test_what_cannot_be_drawn_is_named(answer, tmp_path, options, said):
    with pytest.raises(ModelError, match=said):
        answer.report(tmp_path / "a.html", **options)
    assert not list(tmp_path.iterdir())


def test_a_comparison_of_another_problem_is_refused(answer, tmp_path):
    found = gr.compare(chain(strength=0.5), [gr.PrimalDual()], progress=False)
    with pytest.raises(ModelError, match="the comparison is of another problem: it has the lower bound"):
        answer.report(tmp_path / "a.html", comparison=found)
    found = gr.compare(chain(), [gr.PrimalDual(), gr.ADMM()], progress=False)
    runs = written(answer, tmp_path / "a.html", comparison=found).data["runs"]
    assert [run["name"] for run in runs] == ["PrimalDual, this answer", "PrimalDual", "ADMM"]


def test_only_reports_are_replaced(answer, tmp_path):
    file = tmp_path / "a.html"
    written(answer, file)
    first = file.read_bytes()
    answer.report(file)
    assert len(file.read_bytes()) == len(first)
    file.write_text("<p>mine")
    with pytest.raises(ModelError, match="is there, and no report of graphreg"):
        answer.report(file)
    assert file.read_text() == "<p>mine"
    for place, said in (
        (tmp_path / "none" / "a.html", "is to lie in a folder that does not exist"),
        (tmp_path, "is a folder; name a file in it"),
        ("a\0b", "holds a NUL"),
        (3, "the report is a file: give its path, got 3"),
    ):
        with pytest.raises(ModelError, match=said):
            answer.report(place)


def test_a_full_disk_is_told(answer, tmp_path, monkeypatch):
    def full(place):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("graphreg.base.files.replacing", full)
    with pytest.raises(ModelError, match=r"a\.html': No space left on device; name a file"):
        answer.report(tmp_path / "a.html")


def test_what_is_filled_in_is_not_filled_again(tmp_path):
    page = chain(names=["{{data}}", "{{script}}", "c"]).solve()
    found = written(page, tmp_path / "a.html")
    assert found.data["nodes"][:2] == ["{{data}}", "{{script}}"]


def test_latent_nodes_stand_amid_their_neighbours(tmp_path):
    rng = np.random.default_rng(0)
    node = np.repeat(["a", "b", "c", "d"], 6)
    data = gr.NodeData.from_arrays(rng.standard_normal((24, 2)), rng.standard_normal(24), node)
    clusters = {"a": "left", "b": "left", "c": "right", "d": "right"}
    model = gr.SquaredLoss(data) + gr.Hierarchy(clusters, [0.1, 0.2])
    solution = gr.Problem(model).solve()
    data = written(solution, tmp_path / "a.html", positions={"a": (0, 0), "b": (2, 0), "c": (8, 0), "d": (10, 0)}).data
    assert data["latent"] == len(solution.latent)
    x = dict(zip(data["nodes"], data["x"], strict=True))
    left = next(name for name in x if "left" in name)
    assert x["a"] < x[left] < x["b"] < x["c"]


def test_terms_on_the_same_edge_and_on_some_coordinates(tmp_path):
    problem, graph = chain(d=3), nx.path_graph(6)
    own = 0.1 * gr.TotalVariation(graph, gr.L1(), features=["x0"]) + gr.TotalVariation(graph, gr.SquaredL2())
    answer = gr.Problem(gr.Model(problem.model.terms + own.terms)).solve(gap=1e-8)
    page = written(answer, tmp_path / "a.html")
    assert [each["kind"] for each in page.data["slices"]] == ["norm", "norm", "quadratic"]
    assert [each["width"] for each in page.data["slices"]] == [3, 1, 3]
    edge = page.frame(0)["edge"]
    w = answer.coef
    np.testing.assert_allclose(edge["distance"][5:10], np.abs(np.diff(w[:, 0])), rtol=1e-5)
    assert page.data["edges"]["block"] == [0] * 5 + [1] * 5 + [2] * 5


@pytest.mark.parametrize("tied", [True, False])
def test_clusters_of_edges_are_shown_beside_rows(tied, tmp_path):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((24, 2)), rng.standard_normal(24), np.repeat(list("abcd"), 6))
    sides = gr.Hierarchy({"left": ["a", "b"], "right": ["c", "d"]}, [0.4, 0.01], penalty=gr.L2())
    rows = 0.01 * gr.L1()(gr.w.along(list("abcd"), 2))
    answer = gr.Problem(gr.SquaredLoss(data) + rows + (sides if tied else gr.NodePenalty(gr.SquaredL2()))).solve()
    page = written(answer, tmp_path / "a.html")
    frame = page.frame(-1)
    assert "are no edges, and are not drawn" in page.said
    if not tied:
        assert "clusters" not in page.data["frames"][-1]["said"]
        assert len(set(frame["cluster"][:4].tolist())) == 4
        return
    found = answer.clusters()
    assert [STATES[k % 4] for k in frame["state"]] == found.edges["state"].tolist()
    number = list(found.labels.values())
    assert [[a == b for a in frame["cluster"][:4]] for b in frame["cluster"][:4]] == [
        [a == b for a in number] for b in number
    ]
    assert f"Clusters: {found}." in page.said
    assert "cluster" in page.data["frames"][-1]["said"]


@pytest.mark.parametrize("extra", [None, 0.1 * gr.NodePenalty(gr.SquaredL2()), gr.NodePenalty(gr.NonNegative())])
def test_problems_without_edges_between_nodes(extra, tmp_path):
    loss = chain().model.terms[0][1]
    page = written(gr.Problem(loss if extra is None else loss + extra).solve(), tmp_path / "a.html")
    assert page.data["edges"]["tail"] == []
    assert len(set(page.frame(0)["cluster"].tolist())) == 6


def test_classes_have_coordinates_of_their_own(tmp_path):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((30, 2)), np.arange(30) % 3, np.arange(30) % 2)
    model = gr.MultinomialLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(2), gr.L2())
    page = written(gr.Problem(model).solve(gap=1e-5), tmp_path / "a.html")
    assert page.data["features"][:2] == ["x0[0]", "x0[1]"]


def test_an_answer_without_a_point_is_refused(path, tmp_path):
    lost = replace(answer_of(path), certificate=replace(answer_of(path).certificate, primal=np.inf))
    with pytest.raises(ModelError, match="no point was found that satisfies all constraints"):
        lost.report(tmp_path / "a.html")


def answer_of(path):
    return path.solution_at(path.strengths[0])
