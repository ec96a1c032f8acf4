"""The problem written down: the pieces that a reader needs are there, the LaTeX is sound; plots draw what they say."""

from __future__ import annotations

import re
import sys
from itertools import pairwise

import law_cases
import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import ModelError, TermError
from graphreg.form.notation import blocks, writing
from graphreg.plots import plot_graph, plot_trace

RNG = np.random.default_rng(11)


def data(nodes=5, features=3, *, binary=False, **kwargs):
    node = np.repeat(np.arange(nodes), 4)
    X = RNG.standard_normal((len(node), features))
    y = X.sum(axis=1)
    return gr.NodeData.from_arrays(X, (y > 0).astype(int) if binary else y, node, **kwargs)


def path(n=5, weight=1.0):
    graph = nx.path_graph(n)
    nx.set_edge_attributes(graph, weight, "weight")
    return graph


def repr_of(term):
    return type(term).__name__


def flat(written):
    """The text without its line breaks."""
    return " ".join(str(written).split())


def balanced(latex):
    """True where braces and environments open and close in order."""
    depth = 0
    for before, this in pairwise(" " + latex.replace(r"\\", "  ")):
        if this in "{}" and before != "\\":
            depth += 1 if this == "{" else -1
            if depth < 0:
                return False
    begun = re.findall(r"\\begin\{(\w+)\}", latex)
    return (
        depth == 0
        and begun == re.findall(r"\\end\{(\w+)\}", latex)
        and latex.count(r"\left(") == latex.count(r"\right)")
    )


def check_written(model):
    problem = gr.Problem(model)
    written = str(problem), str(problem.dual()), str(problem.kkt())
    typeset = problem.latex(), problem.dual().latex(), problem.kkt().latex()
    for text in (*written, *typeset):
        assert not re.search(r"(?<!\\)%", text), text
    for latex in typeset:
        assert balanced(latex), latex
        assert not re.search(r"_\w_|\}_\w_|\^\w\^", latex), latex
    return written


# ---- the primal ----------------------------------------------------------------------------------------------------
def test_the_primal_is_the_sum_with_its_scalings_and_sizes():
    graph = path(6, 0.5)
    graph.add_node("alone")
    model = gr.SquaredLoss(data(intercept=True)) + 0.1 * gr.TotalVariation(graph, gr.L2())
    text = check_written(model + 1e-3 * gr.NodePenalty(gr.SquaredL2()))[0]
    assert text.startswith("minimise over w in R^(7 x 4)")
    assert "sum_i 1/m_i sum_(r at i) (x_r'w_i - y_r)^2 / 2" in text
    assert "+ 0.1 sum_e A_e ||w_i - w_j||_2" in text
    assert "+ 0.001 sum_i ||w_i[F]||_2^2 / 2" in text
    for piece in (
        "20 samples at 5 nodes",
        "5 edges e = (i, j), all weights A_e = 0.5",
        "2 connected components",
        "2 nodes without data (5, alone)",
        "1 node without edges (alone)",
        "d = 4: intercept, x0, x1, x2",
        "7 nodes, all weights 1, ",
        "all coordinates but intercept",
    ):
        assert piece in flat(text)


def test_a_penalty_that_names_all_coordinates_says_so():
    both = gr.NodePenalty(gr.SquaredL2(), features=["intercept", "x0", "x1", "x2"])
    text = flat(check_written(gr.SquaredLoss(data(intercept=True)) + 1e-3 * both)[0])
    assert "all coordinates" in text
    assert "all coordinates but" not in text


@pytest.mark.parametrize(
    ("scale", "weighted", "piece", "value"),
    [
        ("mean", False, "sum_i 1/m_i sum_(r at i) (x", "s_r = 1 / m_i "),
        ("mean", True, "sum_i 1/V_i sum_(r at i) v_r (x", "s_r = v_r / V_i "),
        ("sum", False, "  sum_r (x", "s_r = 1 "),
        ("sum", True, "  sum_r v_r (x", "s_r = v_r "),
        (2.5, False, "  2.5 sum_r (x", "s_r = 2.5 "),
        ({i: 1.0 + i for i in range(5)}, False, "  sum_i b_i sum_(r at i) (x", "s_r = b_i "),
    ],
)
def test_scales_are_written_as_they_were_given(scale, weighted, piece, value):
    weights = np.linspace(1.0, 2.0, 20) if weighted else None
    text, dual, _ = check_written(gr.SquaredLoss(data(weights=weights), scale=scale))
    assert piece in text
    assert value in dual


def test_a_parameter_is_written_by_its_name_with_its_value():
    lam = gr.Parameter(0.3, name="lam")
    hierarchy = gr.Hierarchy({"A": [0, 1], "B": [2, 3, 4]}, weights=(lam, 0.5))
    problem = gr.Problem(gr.SquaredLoss(data()) + hierarchy)
    assert "+ lam sum_(e in E1) ||w_i - w_j||_2^2 / 2" in str(problem)
    assert "+ 0.5 sum_(e in E2)" in str(problem)
    assert "3 nodes without data that the model introduces: A, B, root" in str(problem)
    assert r"\lambda" in problem.latex()
    assert "a parameter, now 0.3" in str(problem)
    lam.value = 0.7
    assert "a parameter, now 0.7" in str(problem)
    assert "At the 3 latent nodes there are no prices: the flows alone balance." in flat(problem.dual())


def test_parameters_of_one_name_are_told_apart():
    ridge, tv = gr.Parameter(1.0), gr.Parameter(2.0)
    model = gr.SquaredLoss(data()) + tv * gr.TotalVariation(path(), gr.L1()) + ridge * gr.NodePenalty(gr.L2())
    text = check_written(model)[0]
    assert "strength_1 sum_e ||w_i - w_j||_1" in text
    assert "strength_2 sum_i ||w_i||_2" in text


def test_constraints_are_subject_to_lines():
    model = gr.SquaredLoss(data()) + gr.Consensus(path(), features=["x0"]) + gr.NodePenalty(gr.Box(-1, 2))
    text, dual, kkt = check_written(model)
    objective, constraints = text.split("subject to")
    assert "[" not in objective
    assert "w_i[F] = w_j[F]   on every edge e = (i, j)" in constraints
    assert "-1 <= w_i <= 2" in constraints
    assert "- sum_i sum_j max(-(u2_i)_j, 2 (u2_i)_j)" in dual
    assert "u1_e is free" in kkt


@pytest.mark.parametrize(("penalty", "said"), [(gr.L2(), True), (gr.SquaredL2(), False)], ids=repr_of)
def test_capacities_are_spoken_of_where_edges_have_them(penalty, said):
    """Not where only what goes to the ground has one."""
    model = gr.SquaredLoss(data()) + gr.TotalVariation(path(), penalty) + gr.NodePenalty(gr.L1())
    dual = flat(gr.Problem(model).dual())
    assert ("two sides of an edge are equal where its flow stays below its capacity" in dual) is said


def test_free_nodes_are_mentioned():
    graph = path(5)
    graph.add_edge("p", "q")
    text = str(gr.Problem(gr.SquaredLoss(data()) + gr.TotalVariation(graph, gr.L2())))
    assert "2 nodes (p, q) where no loss decides" in text


# ---- the dual ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("penalty", "weight", "piece"),
    [
        (gr.L2(), 1.0, "||u_e||_2 <= 0.1 "),
        (gr.L2(), 2.0, "||u_e||_2 <= 0.1 A_e "),
        (gr.L1(), 2.0, "||u_e||_inf <= 0.1 A_e "),
        (gr.LInf(), 2.0, "||u_e||_1 <= 0.1 A_e "),
        (gr.HuberNorm(0.5), 1.0, "||u_e||_2 <= 0.5 * 0.1 "),
        (gr.SquaredL2(), 2.0, "- sum_e ||u_e||_2^2 / (2 * 0.1 A_e)"),
        (gr.Quadratic(np.eye(3)), 1.0, "- sum_e u_e' Q^-1 u_e / (2 * 0.1)"),
    ],
)
def test_the_dual_has_capacities_and_conservation(penalty, weight, piece):
    dual = check_written(gr.SquaredLoss(data()) + 0.1 * gr.TotalVariation(path(5, weight), penalty))[1]
    assert dual.startswith("maximise over flows u on 4 edges and prices a on 20 samples")
    assert "- sum_r (a_r^2 / (2 s_r) + a_r y_r)" in dual
    assert "sum_(r at i) a_r x_r + out_i(u) - in_i(u) = 0   at every node i: conservation" in dual
    assert piece in dual


def test_offsets_and_centers_are_in_the_dual():
    loss = gr.LogisticLoss(data(binary=True, offset=np.linspace(-1, 1, 20)))
    text, dual, kkt = check_written(loss + gr.NodePenalty(gr.L2(), center=np.ones(3)))
    assert "log(1 + exp(-y_r (x_r'w_i + o_r)))" in text
    assert "sum_i ||w_i - c_i||_2" in text
    assert "+ sum_r a_r o_r" in dual
    assert "- sum_i <u_i, c_i>" in dual
    assert "0 <= -y_r a_r <= s_r" in dual
    assert "with h(q) = q log q + (1 - q) log(1 - q)" in dual
    assert "a_r = s_r l'(x_r'w_i + o_r)" in kkt


def test_several_blocks_have_symbols_of_their_own():
    means = gr.NodeData.from_arrays(None, RNG.standard_normal((10, 2)), np.repeat(np.arange(5), 2))
    model = gr.MeanLoss(means) + gr.TotalVariation(path(), gr.L2()) + 2 * gr.TotalVariation(nx.star_graph(4), gr.L1())
    text, dual, _ = check_written(model)
    assert "sum_(e in E1) ||w_i - w_j||_2" in text
    assert "2 sum_(e in E2) ||w_i - w_j||_1" in text
    assert "sum_(r at i) a_r + out_i(u1) - in_i(u1) + out_i(u2) - in_i(u2) = 0" in dual
    assert "||u1_e||_2 <= 1 " in dual
    assert "||u2_e||_inf <= 2 " in dual
    two = gr.SquaredLoss(data(3)) + gr.HuberLoss(gr.NodeData.from_arrays(np.ones((2, 3)), [1.0, 2.0], [3, 4]))
    text, dual, kkt = check_written(two + gr.TotalVariation(path(), gr.L2()))
    assert "sum_(r in R2 at i) huber_1(x_r'w_i - y_r)" in text
    assert "prices a1 on 12 samples, a2 on 2 samples" in dual
    assert "a2_r = s2_r l2'(x_r'w_i)" in kkt


# ---- the optimality conditions ---------------------------------------------------------------------------------------
def test_the_conditions_spell_out_norms_and_the_identity():
    model = gr.SquaredLoss(data()) + 0.1 * gr.TotalVariation(path(), gr.L2()) + 2 * gr.NodePenalty(gr.SquaredL2())
    kkt = check_written(model)[2]
    assert "a_r = s_r l'(x_r'w_i)" in kkt
    assert "l(t) = (t - y_r)^2 / 2" in kkt
    assert "the flow is below capacity  =>  w_i = w_j: the edge is fused" in kkt
    assert "w_i != w_j  =>  the flow is at capacity" in kkt
    assert "u2_i = 2 w_i" in kkt
    assert "P(w) - Q(u, a) = sum_r FY" in kkt


def test_the_identity_has_a_sum_for_every_kind_of_term():
    """The sums that are printed are those that certificates add up; without one of them there would be no gap."""
    graph = path(6)
    shrunk, filtered = gr.NodePenalty(gr.SquaredL2()), gr.L1()(gr.w.along(range(6), order=2))
    fused = 0.1 * gr.TotalVariation(graph, gr.L2())
    said = {
        gr.SquaredLoss(data(6)) + fused: ["sum_r FY(sample r)", "sum_e FY(edge e)"],
        gr.SquaredLoss(data(6)) + fused + 2 * shrunk: [*("sum_r FY(sample r)", "sum_e FY(edge e)", "sum_i FY(node i)")],
        gr.SquaredLoss(data(6)) + shrunk: ["sum_r FY(sample r)", "sum_i FY(node i)"],
        gr.SquaredLoss(data(6)) + filtered: ["sum_r FY(sample r)", "sum_t FY(row t)"],
    }
    for model, sums in said.items():
        problem = gr.Problem(model)
        written = problem.kkt()
        identity = flat(written).split("P(w) - Q(u, a) = ")[1].split(" FY(x, s)")[0]
        assert identity.split(" + ") == [*sums, "sum_i <w_i, balance of node i>"]
        assert re.findall(r"mathrm\{FY\}_(.)", written.latex()) == [each[4] for each in sums]
        w = RNG.standard_normal(problem.form.shape)
        certificate = problem.certify(w)
        of_samples, of_edges = certificate.residuals
        held = {"r": sum(map(np.sum, of_samples))}
        for edge, each in zip(problem.form.edges, of_edges, strict=True):
            index = {"edge": "e", "node": "i", "row": "t"}[edge.map.noun]
            held[index] = held.get(index, 0.0) + each.sum()
        balance = np.sum(certificate.w * problem.form.conservation(certificate.dual_point))
        printed = sum(held[each[4]] for each in sums) + balance
        assert printed == pytest.approx(certificate.primal - certificate.dual, rel=1e-9)
        assert min(held.values()) > 0


# ---- every term, and the user's own ------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", law_cases.LOSSES, ids=repr_of)
def test_every_loss_is_written(loss):
    check_written(loss)
    check_written(loss + gr.TotalVariation(path(3), gr.L2()))


@pytest.mark.parametrize("penalty", law_cases.PENALTIES + law_cases.SOLVED_PENALTIES, ids=repr_of)
@pytest.mark.parametrize("strength", [1.0, 0.1, gr.Parameter(2.0, name="my_strength")], ids=["1", "0.1", "parameter"])
def test_every_penalty_is_written(penalty, strength):
    for k in (3, 2, 1):
        try:
            penalty.check(k)
        except TermError:
            continue
        break
    constraint = isinstance(penalty, gr.AbstractConstraint)
    loss = gr.SquaredLoss(data(3, k))
    ground = gr.NodePenalty(penalty, weights=None if constraint else {0: 1.0, 1: 2.0, 2: 0.5})
    check_written(loss + (ground if constraint else strength * ground))
    try:
        between = gr.TotalVariation(path(3), penalty)
    except TermError:  # one-sided
        return
    check_written(loss + (between if constraint else strength * between))


class Cap_ped(gr.Penalty):  # noqa: N801
    """With an underscore in its name, which LaTeX must survive."""

    def value(self, z):
        return np.abs(z).sum(axis=1)

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - np.reshape(step, (-1, 1)), 0.0)

    def conjugate(self, u):
        return np.where(np.abs(u).max(axis=1) <= 1, 0.0, np.inf)

    def cvxpy(self, Z):
        import cvxpy as cp

        return cp.norm1(Z, axis=1)


class OwnNorm(Cap_ped, gr.AbstractNorm):
    def dual_norm(self, u):
        return np.abs(u).max(axis=1)

    def project_dual(self, u, radius):
        return np.clip(u, -np.reshape(radius, (-1, 1)), np.reshape(radius, (-1, 1)))


def test_a_users_penalty_is_written_by_its_name():
    graph = path(5, 2.0)
    text, dual, kkt = check_written(gr.SquaredLoss(data()) + 0.1 * gr.TotalVariation(graph, Cap_ped()))
    assert "0.1 sum_e A_e Cap_ped(w_i - w_j)" in text
    assert "- sum_e 0.1 A_e Cap_ped*(u_e / (0.1 A_e))" in dual
    assert "u_e in 0.1 A_e d phi(w_i - w_j)" in kkt
    own = gr.NodePenalty(OwnNorm())
    text, dual, kkt = check_written(gr.SquaredLoss(data()) + own)
    assert "sum_i OwnNorm(w_i)" in text
    assert "the capacity of its flow" in dual
    assert "the flow is below capacity  =>  w_i = 0" in kkt


# ---- LaTeX ---------------------------------------------------------------------------------------------------------
def test_latex_is_one_aligned_environment():
    problem = gr.Problem(gr.SquaredLoss(data()) + 1e-5 * gr.TotalVariation(path(), gr.SquaredL2()))
    latex = problem.dual().latex()
    assert latex.startswith("\\begin{aligned}\n")
    assert latex.endswith("\n\\end{aligned}")
    assert "10^{-5}" in latex
    assert problem.kkt()._repr_latex_().startswith("$$\n\\begin{aligned}")


def test_the_optimality_conditions_fit_a_slide():
    """No line is wider than one, each condition has its own, and what is true of several penalties is said once."""
    edges = [strength * gr.TotalVariation(path(), phi) for strength, phi in [(0.1, gr.L2()), (0.2, gr.L1())]]
    written = gr.Problem(gr.SquaredLoss(data()) + sum(edges) + 0.3 * gr.TotalVariation(path(), gr.LInf())).kkt()
    latex = written.latex()
    for line in latex.splitlines():
        shown = re.sub(r"\\\\(\[1ex\])?|[{}&^ ]|\\([a-zA-Z]*frac|text|mathrm|q?quad|[,;])(?![a-zA-Z])", "", line)
        assert len(re.sub(r"\\[a-zA-Z]+|\\.", "x", shown)) <= 72, line
    assert latex.count("below capacity") == latex.count("at capacity") == str(written).count("below capacity") == 1
    assert not re.search(r"\\le .*\\langle .*w_j", latex)
    assert latex.index(r"\|w_i - w_j\|_\infty") < latex.index("below capacity")


def test_absent_parts_are_not_spoken_of_and_a_center_has_one_letter():
    """Without data there are no samples and no prices."""
    held = gr.Zero()(gr.w.at([0, 2]) - np.array([[1.0], [0.0]]))
    problem = gr.Problem(gr.TotalVariation(path(), gr.L1()) + held)
    said = "\n".join(map(str, (problem, problem.dual(), problem.kkt(), problem.kkt().latex())))
    assert not re.search(r"sample|price|loss|\(u, a\)|w, u, a|b_r|FY}_r", said)
    assert "Zero(w_i - c_i)" in said
    assert "P(w) - Q(u) = sum_e FY(edge e)" in said
    alone = gr.Problem(gr.SquaredLoss(data()))
    said = "\n".join(map(str, (alone.dual(), alone.kkt())))
    assert not re.search(r"flow|edges|\(u, a\)|w, u, a|FY\(edge", said)


def test_matplotlib_reads_the_formulas():
    mathtext = pytest.importorskip("matplotlib.mathtext")
    parser = mathtext.MathTextParser("path")
    model = gr.LogisticLoss(data(binary=True, features=3)) + 0.1 * gr.TotalVariation(path(5, 2.0), gr.L2())
    problem = gr.Problem(model + gr.Consensus(path(), features=["x0"]) + 1e-3 * gr.NodePenalty(gr.Quadratic(np.eye(3))))
    for written in (problem.latex(), problem.dual().latex(), problem.kkt().latex()):
        for row in written.split("\n")[1:-1]:
            math = re.sub(r" \\\\(\[1ex\])?$|[&]|\{\} |\\,", " ", row).replace(r"\tfrac", r"\frac")
            parser.parse("$" + re.sub(r"\\(le|ge|ne)\b", r"\\\1q", math).replace(r"\neq", r"\not=") + "$")


@pytest.mark.parametrize("words", ["plain", "100% of a_b & {c} $5 #1 ^ ~ \\end", "node i, w_j and F1"])
def test_prose_survives_latex(words):
    assert balanced(writing.prose(words).latex)
    assert not re.search(r"(?<!\\)[%#$&]", writing.prose(words).latex)


@pytest.mark.parametrize(
    ("template", "weight", "filled"),
    [
        ("||%u|| <= %c", "1", "||u|| <= 1"),
        ("||%u|| <= 0.5 %c", "1", "||u|| <= 0.5"),
        ("||%u|| <= 0.5 %c", "0.1 A_e", "||u|| <= 0.5 * 0.1 A_e"),
        ("%u^2 / (2 %c)", "1", "u^2 / 2"),
        ("%u^2 / (2 %c)", "lam", "u^2 / (2 lam)"),
        ("%u^2 / (4%c)", "0.5", "u^2 / (4 * 0.5)"),
        ("%u^2 / (4%c)", "1", "u^2 / 4"),
        ("%c 0.25 %u^2", "0.5", "0.5 * 0.25 u^2"),
        ("%c * 0.25 %u^2", "1", "0.25 u^2"),
        ("%c / 4 %u^2", "1", "1 / 4 u^2"),
        ("-%c <= %u <= %c", "1", "-1 <= u <= 1"),
        ("%c f(%u / %c)", "1", "f(u)"),
        ("%c f(%u / %c)", "lam A_e", "lam A_e f(u / (lam A_e))"),
        ("%z' Q %z / 2", "1", "(p - q)' Q (p - q) / 2"),
        ("[low <= %z <= high]", "1", "[low <= p - q <= high]"),
        ("f(%z - %y)", "1", "f(p - q - y)"),
    ],
)
def test_tokens_are_replaced_with_sense(template, weight, filled):
    symbols = [writing.same(each) for each in ("p - q", "u", weight, "y")]
    assert blocks.fill(template, template, *symbols).math.text == filled


@pytest.mark.parametrize(
    ("template", "weight", "filled"),
    [
        (r"%c \frac{1}{4} |%u|", "0.5", r"0.5 \cdot \frac{1}{4} |u|"),
        (r"\frac{1}{4} %c |%u|", "0.5", r"\frac{1}{4} \cdot 0.5 |u|"),
        (r"\tfrac14 \, %c |%u|", r"10^{-5}", r"\tfrac14 \cdot 10^{-5} |u|"),
        (r"\frac{1}{4} %c |%u|", "1", r"\frac{1}{4} |u|"),
        (r"%c \cdot 2 |%u|", "1", "2 |u|"),
        (r"\frac{%u^2}{4%c}", "0.5", r"\frac{u^2}{4 \cdot 0.5}"),
        (r"%c%u", r"\lambda", r"\lambda u"),
        (r"-%c \le %u", "1", r"-1 \le u"),
        (r"%c \, f(%u / %c)", "0.5", r"0.5 \, f(u / 0.5)"),
    ],
)
def test_numbers_side_by_side_are_a_product(template, weight, filled):
    symbols = [writing.same(each) for each in ("p - q", "u", weight, "y")]
    assert blocks.fill("its text", template, *symbols).math.latex == filled


class TextAlone(gr.SquaredL2):
    notation = gr.terms.Notation("2 %z^2", "%u^2 / (8 %c)", gradient="4 (%z)")


def test_what_is_written_as_text_alone_is_in_the_latex_as_well():
    problem = gr.Problem(gr.SquaredLoss(data()) + 0.5 * gr.TotalVariation(path(), TextAlone()))
    assert r"\mathrm{2 (w\_i - w\_j)\hat{\ }2}" in problem.latex()
    assert r"\mathrm{u\_e\hat{\ }2 / (8 * 0.5)}" in problem.dual().latex()
    assert "u_e = 0.5 * 4 (w_i - w_j)" in str(problem.kkt())
    assert r"u_e = 0.5 \, \mathrm{4 (w\_i - w\_j)}" in problem.kkt().latex()
    bounded = gr.Problem(gr.SquaredLoss(data()) + gr.NodePenalty(TextInterval()))
    assert r"\mathrm{|w\_i| {<}= 1} \qquad" in bounded.latex()


class TextInterval(gr.Box):
    notation = gr.terms.Notation("[|%z| <= 1]", "|%u|")


def test_a_conjugate_that_is_derived_has_its_argument_in_latex():
    soft = gr.Penalty.from_prox(
        lambda z: np.abs(z).sum(axis=1), lambda v, s: np.sign(v) * np.maximum(np.abs(v) - s[:, None], 0.0), name="soft"
    )
    own = gr.Loss.from_cvxpy(lambda x, y: (x - y) ** 2, data(), name="own")
    latex = gr.Problem(own + 0.5 * gr.TotalVariation(path(), soft)).dual().latex()
    assert r"0.5 \, \mathrm{soft}^*(u_e / 0.5)" in latex
    assert r"s_r \, \mathrm{own}^*(a_r / s_r; y_r)" in latex


# ---- plots -----------------------------------------------------------------------------------------------------------
def two_groups():
    graph = nx.barbell_graph(4, 0)
    truth = np.repeat([0.0, 5.0], 4)
    means = gr.NodeData.from_arrays(None, truth[:, None] + 0.01 * RNG.standard_normal((8, 1)), np.arange(8))
    return gr.Problem(gr.MeanLoss(means) + 0.3 * gr.TotalVariation(graph, gr.L2()))


def legend_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_the_graph_is_drawn_by_cluster_and_state(pyplot):
    axes = plot_graph(two_groups().solve())
    assert axes.get_title() == "8 nodes in 2 clusters; edges: 12 near, 1 split"
    assert legend_of(axes) == ["near", "split", "cluster 0 (4 nodes)", "cluster 1 (4 nodes)"]
    axes.figure.canvas.draw()


def test_latent_nodes_lie_amid_their_neighbours(pyplot):
    hierarchy = gr.Hierarchy({"A": [0, 1], "B": [2, 3, 4]}, weights=(1.0, 0.5))
    solution = gr.Problem(gr.SquaredLoss(data()) + hierarchy).solve()
    _, given = pyplot.subplots()
    axes = plot_graph(solution, positions={i: (float(i), 0.0) for i in range(5)}, ax=given)
    assert axes is given
    assert "latent nodes" in legend_of(axes)
    squares = next(dots for dots in axes.collections if dots.get_label() == "latent nodes")
    assert np.allclose(squares.get_offsets()[:2], [[0.5, 0.0], [3.0, 0.0]])
    with pytest.raises(ModelError, match="no entry for the node 4"):
        plot_graph(solution, positions={i: (float(i), 0.0) for i in range(4)})


def test_a_partial_consensus_is_not_drawn_as_fused(pyplot):
    solution = gr.Problem(gr.SquaredLoss(data()) + gr.Consensus(path(), features=["x0"])).solve()
    assert "edges: 4 fused on some coordinates" in plot_graph(solution).get_title()


def test_the_trace_has_certified_gaps_and_screens(pyplot):
    problem = two_groups()
    runs = [problem.solve(gr.PrimalDual(), gap=1e-8, progress=False), problem.solve(gr.Exact())]
    axes = plot_trace(runs)
    assert axes.get_xscale() == axes.get_yscale() == "log"
    labels = legend_of(axes)
    assert any(label.endswith("(certified)") for label in labels)
    assert any(label.startswith("Exact") for label in labels)
    axes.figure.canvas.draw()
    assert len(legend_of(plot_trace({"one": runs[0]}))) >= 1
    with pytest.raises(ModelError, match="at least one"):
        plot_trace([])


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModelError, match=r"pip install graphreg\[plot\]"):
        plot_graph(two_groups().solve())


@pytest.mark.parametrize(
    ("loss", "targets", "said"),
    [
        (gr.LogisticLoss, [0, 1, 1, 0], "1 or -1: 1 for a target of 1, -1 for 0 or -1"),
        (gr.HingeLoss, [0, 1, 1, 0], "1 or -1: 1 for a target of 1, -1 for 0 or -1"),
        (gr.MultinomialLoss, [0, 1, 2, 0], "1 for the class of sample r, 0 for the others"),
        (gr.SquaredLoss, [0, 1, 2, 0], ""),
    ],
)
def test_targets_that_are_coded_are_explained(loss, targets, said):
    data = gr.NodeData.from_arrays(np.eye(4)[:, :2], targets, [0, 0, 1, 1])
    problem = gr.Problem(loss(data) + 0.1 * gr.TotalVariation(nx.path_graph(2), gr.L1()))
    for text in (str(problem), str(problem.dual())):
        rows = [" ".join(line.split()[1:]) for line in text.splitlines() if line.split()[:1] == ["y_r"]]
        assert rows == [said] * bool(said)


def test_a_list_of_long_labels_breaks_in_latex():
    towns = [f"the town of {name}" for name in "ABCDEFGH"]
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(8.0), towns))
    latex = gr.Problem(loss + 0.1 * gr.TotalVariation(nx.path_graph(towns), gr.L2())).latex()
    (start,) = (k for k, line in enumerate(latex.splitlines()) if r"\text{nodes}" in line)
    assert "connected component" not in latex.splitlines()[start]
    assert latex.splitlines()[start + 1].startswith(r"& \qquad \text{")


def test_a_long_heading_breaks_in_latex():
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, np.zeros((8, 2)), range(8)))
    model = loss + 0.2 * gr.TotalVariation(nx.cycle_graph(8), gr.L2()) + 0.05 * gr.NodePenalty(gr.SquaredL2())
    first, second, *_ = gr.Problem(model).dual().latex().splitlines()[1:]
    assert "maximise over" in first
    assert second.startswith(r"& \qquad u^{(2)}\text{ from 8 nodes to the ground}\text{ and }")
    assert "prices" in second


def test_a_line_of_latex_fits_on_a_page_whatever_is_added_up():
    graph, data = nx.petersen_graph(), gr.NodeData.from_arrays(np.ones((10, 2)), np.zeros(10), range(10))
    one = gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2())
    more = sum(0.1 * gr.TotalVariation(graph, each) for each in (gr.L1(), gr.LInf()))
    problems = gr.Problem(one), gr.Problem(one + more + 0.3 * gr.NodePenalty(gr.HuberNorm(0.5)))
    for formulas in (each for problem in problems for each in (problem.dual(), problem.kkt(), problem)):
        for line in formulas.latex().splitlines():
            signs = re.sub(r"\\([a-z]+|.)", "x", re.sub(r"\\(text|mathrm|left|right)\b|\\\\.*", "", line))
            assert len(re.sub("[{}&^_ ]", "", signs)) <= 57, line  # of what takes room
