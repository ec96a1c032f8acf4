"""Labels, features and names that a terminal, LaTeX, a page or matplotlib might obey, in everything that is printed."""

from __future__ import annotations

import inspect
import io
import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from factories import thinned
from hostile import EVERY, FORMULAS, HOSTILE, TAGS, bare, commands, tags, unprintable

import graphreg as gr
from graphreg.base import escaping
from graphreg.errors import GraphregError

FEATURES = [HOSTILE[name] for name in ("a tag", "TeX that reads", "colours", "an underscore")]
LABELS = list(EVERY.values())


def frame_of(labels, features=FEATURES, seed=0):
    rng = np.random.default_rng(seed)
    node = pd.Series([label for label in labels for _ in range(21)], dtype=object)
    frame = pd.DataFrame(rng.normal(size=(len(node), len(features))), columns=features)
    return frame.assign(node=node, y=frame.sum(axis=1) + rng.normal(size=len(node)))


def problem_of(labels, features=FEATURES, name="lam"):
    data = gr.NodeData.from_frame(frame_of(labels, features), node="node", target="y", features=list(features))
    parameter = gr.Parameter(0.1, name=name)
    between = parameter * gr.TotalVariation(nx.path_graph(labels), gr.L2(), features=list(features)[:2])
    return gr.Problem(gr.SquaredLoss(data) + between + 0.01 * gr.NodePenalty(gr.SquaredL2())), parameter


@pytest.fixture(scope="module")
def problem():
    return problem_of(LABELS)[0]


@pytest.fixture(scope="module")
def solution(problem):
    return problem.solve(gr.PrimalDual(), gap=1e-3)


@pytest.fixture(scope="module")
def smooth():
    data = gr.NodeData.from_frame(frame_of(LABELS[:4]), node="node", target="y", features=FEATURES)
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(LABELS[:4]), gr.SquaredL2()))


def cross_validated_twice():
    data = gr.NodeData.from_frame(frame_of(LABELS[:3]), node="node", target="y", features=FEATURES)
    between, alone = (gr.Parameter(0.1, name=EVERY[name]) for name in ("two dollars", "an underscore"))
    penalties = between * gr.TotalVariation(nx.path_graph(LABELS[:3]), gr.L2()) + alone * gr.NodePenalty(gr.SquaredL2())
    grid = {between: [0.1, 1.0], alone: [0.1, 1.0]}
    return gr.tuning.cross_validate(gr.Problem(gr.SquaredLoss(data) + penalties), grid, 2, gap=1e-2, progress=False)


@pytest.fixture(scope="module")
def results(problem, solution, smooth):
    """Everything that is printed or drawn with names of the user's in it."""
    names = [EVERY[name] for name in ("two dollars", "colours", "an underscore", "a tag", "lines")]
    few, parameter = problem_of(LABELS[:6], FEATURES, EVERY["TeX that runs"])
    both = gr.compare(smooth, {name: gr.PrimalDual() for name in names}, gap=1e-2, progress=False)
    halves = {label: names[k > len(LABELS) // 2] for k, label in enumerate(LABELS)}
    whole = gr.TotalVariation(nx.path_graph(LABELS), gr.L2())
    data = gr.NodeData.from_frame(frame_of(LABELS), node="node", target="y", features=FEATURES)
    regions = gr.inference.local_regions(smooth)
    one = next(iter(regions.values()))
    return {
        "problem": problem,
        "dual": problem.dual(),
        "kkt": problem.kkt(),
        "solution": solution,
        "clusters": solution.clusters(),
        "flows": solution.flows,
        "certificate": solution.certificate,
        "judgement": problem.certify(solution.coef, gap=1e-2),
        "conditions in numbers": solution.kkt(),
        "summary": solution.summary(),
        "trace": solution.trace,
        "model": problem.model,
        "graph": gr.Graph.of(nx.path_graph(LABELS)),
        "ledger": solution.ledger,
        "methods": problem.methods(),
        "comparison": both,
        "path": gr.tuning.path(few, [0.1, 1.0], parameter, gap=1e-2, progress=False),
        "cross-validation": gr.tuning.cross_validate(few, [0.1, 1.0], 2, gap=1e-2, progress=False),
        "two strengths": cross_validated_twice(),
        "recovery": gr.theory.recovery(gr.Problem(gr.SquaredLoss(data) + 0.1 * whole), halves),
        "regions": regions,
        "region": one,
        "test of a region": one.test(np.eye(4)[:2]),
        "edges": gr.inference.edge_tests(gr.SquaredLoss(data), nx.path_graph(LABELS)),
        "selection": gr.inference.select_edges(gr.SquaredLoss(data), nx.path_graph(LABELS)),
        "audit": audited(),
        "data": data,
    }


def audited():
    """Of an algorithm whose name is as hostile as any."""

    def stays(problem, start=None, seed=None):
        yield from [np.zeros((2, 1))] * 5

    stays.__name__ = " ".join(LABELS)
    data = gr.NodeData.from_dict({0: (np.ones((2, 1)), [0.0, 1.0]), 1: (np.ones((2, 1)), [1.0, 3.0])})
    return gr.audit(
        gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(2), gr.L2())), stays, rounds=5
    )


# ---- terminals -------------------------------------------------------------------------------------------------------
def test_nothing_that_is_printed_is_obeyed(results):
    for name, each in results.items():
        for text in (str(each), repr(each)):
            assert not unprintable(text), name
            assert len(text) < 40_000, name


def test_tables_are_printed_as_they_are_meant(solution):
    shown = escaping.printed(solution.table())
    assert not unprintable(shown)
    assert len(shown.splitlines()) == len(LABELS) + 2  # the features, and the name of the index
    assert r"\x1b[31mred" in shown
    assert r"a\nb\r\nc\x0b" in shown
    assert list(solution.labels) == LABELS, "the labels themselves are what they were"


@pytest.mark.parametrize("name", EVERY)
def test_errors_show_what_they_name(solution, name):
    missing = EVERY[name] + "?"
    frame = frame_of([missing])
    with pytest.raises(GraphregError) as caught:
        solution.predict(frame)
    assert not unprintable(str(caught.value))
    with pytest.raises(GraphregError) as caught:
        solution.predict(frame.drop(columns=FEATURES[2]))
    assert r"\x1b[31mred" in str(caught.value)


def test_half_a_character_is_refused():
    with pytest.raises(gr.errors.GraphError, match=r"the node label '\\ud800x' is no text that can be written"):
        gr.Graph.from_edges([("\ud800x", "b")])
    with pytest.raises(gr.errors.DataError, match=r"'\\ud800x' is no text that can be written"):
        gr.NodeData.from_arrays(np.ones((2, 1)), [1.0, 2.0], ["\ud800x", "b"])
    assert escaping.visible("\ud800") == r"\ud800"


# ---- LaTeX -----------------------------------------------------------------------------------------------------------
def written(problem):
    return [problem.latex(), problem.dual().latex(), problem.kkt().latex()]


@pytest.fixture(scope="module")
def harmless():
    """The commands of the same formulas with names that are words."""
    problem = problem_of([f"node{k}" for k in range(8)], ["one", "two", "three", "four"], "strength")[0]
    return commands("".join(written(problem)))


def test_labels_are_no_symbols():
    data = gr.NodeData.from_arrays(None, [5.0, 1.0, 2.0], ["w_i", "n_2", "site_1"])
    model = gr.MeanLoss(data) + gr.TotalVariation(gr.Graph.chain(["w_i", "n_2", "site_1"]), gr.L2())
    latex = gr.Problem(model).latex()
    assert r"\text{w}\_\text{i, n}\_\text{2, site}\_\text{1}" in latex


@pytest.mark.parametrize("name", HOSTILE)
def test_latex_has_the_commands_that_are_ours(harmless, name):
    text = HOSTILE[name]
    problem, _ = problem_of([f"{text}{k}" for k in range(8)], [text, f"{text}!", "three"], text)
    ours = harmless | {"\\backslash", "\\hat", "\\sim", "\\alpha"} | {"\\" + c for c in "_%#${}& "}
    for latex in written(problem):
        assert commands(latex) <= ours
        assert not set("$%#") & set(bare(latex))
        assert not re.search(r"<(?!})|&[a-z#]", latex.replace("<\\", "").replace("< ", "")), (
            "a page takes this for HTML"
        )
        assert bare(latex).count("{") == bare(latex).count("}")
        assert latex.count("\n") == latex.count("\\\\") + 2
        assert not unprintable(latex)
        assert max(map(len, latex.splitlines())) < 2500
    assert problem.dual()._repr_latex_() == f"$$\n{problem.dual().latex()}\n$$"


@pytest.mark.parametrize("name", thinned(HOSTILE, every=3))
def test_matplotlib_typesets_the_formulas(name):
    mathtext = pytest.importorskip("matplotlib.mathtext")
    problem, _ = problem_of([HOSTILE[name], "b"], [HOSTILE[name], "two"], HOSTILE[name])
    rows = [row for row in problem.latex().splitlines()[1:-1] if "\\left" not in row and "\\mathbb" not in row]
    assert any("parameter" in row for row in rows)
    for row in rows:
        formula = re.sub(r"\\\\(\[1ex\])?$", "", row.strip()).removeprefix("&").replace(" &", " ")
        formula = re.sub(r"\\t?frac(\d)(\d)", r"\\frac{\1}{\2}", formula).replace("\\tfrac", "\\frac")
        formula = formula.replace("\\&", "&").replace("\\#", "")  # which it does not know
        mathtext.MathTextParser("path").parse(f"${formula}$")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_penalty_may_be_called_anything(name):
    import cvxpy as cp

    penalty = gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 2), name=HOSTILE[name])
    data = gr.NodeData.from_frame(frame_of(["a", "b"]), node="node", target="y", features=FEATURES[:2])
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(["a", "b"]), penalty))
    for each in (problem, problem.dual(), problem.kkt()):
        assert not unprintable(str(each))
        latex = each.latex()
        assert not set("$%#") & set(bare(latex))
        assert bare(latex).count("{") == bare(latex).count("}")


# ---- pages -----------------------------------------------------------------------------------------------------------
def test_pages_have_the_tags_that_are_ours(results, solution):
    tables = {
        "coefficients": solution.table(),
        "parts of the gap": solution.certificate.per_edge(),
        "states": solution.clusters().edges,
        "messages": solution.ledger.by_edge(),
        "comparison": results["comparison"].table(),
        "path": results["path"].table(),
        "events": results["path"].events(),
        "scores": results["cross-validation"].scores,
        "predictions": results["cross-validation"].predictions,
        "region": results["region"].intervals(),
        **{name: each for name, each in results.items() if isinstance(each, pd.DataFrame)},
    }
    for name, table in tables.items():
        assert tags(table._repr_html_()) <= TAGS, name
        assert not unprintable(table._repr_html_()), name
        for part in (table, table.head(3), table.iloc[::-1]):
            assert not unprintable(str(part) + repr(part)), name
    for each in results.values():
        if hasattr(each, "_repr_html_") and not isinstance(each, pd.DataFrame):
            assert tags(each._repr_html_()) <= {*TAGS, *FORMULAS, "h3", "br"}
            assert not unprintable(each._repr_html_())
    assert tags("<b onclick='x'>") == {"b", "onclick"}


# ---- pictures --------------------------------------------------------------------------------------------------------
def pictures(results):
    from graphreg import plots

    solution, region, path = results["solution"], results["region"], results["path"]
    yield plots.plot_graph, lambda: plots.plot_graph(solution)
    yield plots.plot_trace, lambda: plots.plot_trace(results["comparison"].solutions)
    yield plots.plot_comparison, lambda: plots.plot_comparison(results["comparison"])
    yield plots.comparison_figure, lambda: plots.comparison_figure(results["comparison"])
    for options in ({}, {"node": LABELS[1]}, {"feature": FEATURES[1]}):
        yield plots.plot_path, lambda options=options: plots.plot_path(path, **options)
    for name in ("cross-validation", "two strengths"):
        yield plots.plot_cross_validation, lambda name=name: plots.plot_cross_validation(results[name])
    yield plots.plot_recovery, lambda: plots.plot_recovery(results["recovery"])
    yield plots.plot_region, lambda: plots.plot_region(region, FEATURES[0], FEATURES[3])
    yield plots.plot_selection, lambda: plots.plot_selection(results["selection"])
    yield plots.plot_audit, lambda: plots.plot_audit(results["audit"])
    yield plots.plot_tests, lambda: plots.plot_tests(results["selection"])
    yield plots.plot_bounds, lambda: plots.plot_bounds(solution)
    yield plots.plot_flows, lambda: plots.plot_flows(solution)
    yield plots.plot_flows, lambda: plots.plot_flows(next(iter(path)))
    yield plots.plot_ledger, lambda: plots.plot_ledger(solution)
    places = {label: (float(k), 0.0) for k, label in enumerate(LABELS)}
    for feature, unit in zip(FEATURES, LABELS, strict=False):
        yield (
            plots.plot_map,
            lambda feature=feature, unit=unit: plots.plot_map(solution, places, feature=feature, unit=unit),
        )
    named = {label: gr.L1() if k % 2 else gr.SquaredL2() for k, label in enumerate(LABELS)}
    yield plots.plot_penalty, lambda: plots.plot_penalty(named)
    yield plots.penalty_figure, lambda: plots.penalty_figure(named)


@pytest.mark.filterwarnings("ignore:Glyph .* missing")  # of a script that the font does not have: drawn as a box
def test_every_picture_is_drawn(results):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.text import Text

    from graphreg import plots

    drawn = set()
    for plot, draw in pictures(results):
        found = draw()
        figure = getattr(found, "figure", found)
        figure.set_layout_engine("none")  # which takes most of the time
        figure.savefig(io.BytesIO(), format="png", dpi=40)  # warnings are errors
        drawn.add(plot.__name__)
        for each in figure.findobj(Text):
            shown, is_formula = each._preprocess_math(each.get_text())
            assert not unprintable(shown)
            assert not is_formula or "mathdefault" in shown, f"{plot.__name__} takes {shown!r} for a formula"
        matplotlib.pyplot.close("all")
    every = {name for name, each in vars(plots).items() if inspect.isfunction(each) and name.startswith("plot_")}
    assert every <= drawn


def test_no_name_is_left_out_of_a_legend(results):
    pytest.importorskip("matplotlib").use("Agg")
    comparison = results["comparison"]
    legend = comparison.plot().get_legend()
    assert len(legend.get_texts()) == len(comparison.entries)
    path = results["path"].plot().get_legend()
    assert [each.get_text().strip()[:5] for each in path.get_texts()][:6] == [
        escaping.picture(label).strip()[:5] for label in LABELS[:6]
    ]


@pytest.mark.parametrize("name", EVERY)
def test_matplotlib_shows_the_name(name):
    cbook = pytest.importorskip("matplotlib.cbook")
    text = escaping.picture(EVERY[name], None)
    assert not cbook.is_math_text(text)
    assert text.replace(r"\$", "$").strip() == escaping.visible(EVERY[name], None).strip()
    assert not text.startswith("_")
    assert len(escaping.picture(EVERY[name]).replace(r"\$", "$")) <= escaping.IN_PICTURES + 1


def test_latex_that_typesets_a_whole_picture(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setitem(matplotlib.rcParams, "text.usetex", True)
    for text in EVERY.values():
        assert commands(escaping.picture(text)) <= set(map(str.strip, commands("".join(escaping.IN_TEXT.values()))))
        assert not set('$%#&<>"^~') & set(bare(escaping.picture(text)))
