"""The referee's report: verdicts, names and claims, on algorithms that are right, wrong, or that misbehave."""

from __future__ import annotations

import gc
import sys
import time

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
from audit_cases import gossip, gradient_step, network, primal_dual
from factories import thinned

import graphreg as gr
from benchmarks.audits.bugs import asymmetric_mixing, local_steps
from benchmarks.audits.instances import instance
from graphreg.auditing.instances import rescaled
from graphreg.auditing.limits import Optimum
from graphreg.errors import ArgumentError, ModelError
from graphreg.saving import of_problem

mpl.use("Agg")


@pytest.mark.parametrize("penalty", thinned(["l2", "l1", "squared"], every=3))
def test_what_is_right_passes_on_a_graph_with_an_isolated_node(penalty):
    report = gr.audit(network(penalty, isolated=True), primal_dual)
    assert report.verdict == "right"
    assert report.ok, report
    assert not report.untried
    assert "as far as" not in str(report)
    assert report.certificate is not None
    assert report.certificate.relative_gap < 1e-8


@pytest.mark.parametrize("method", thinned([gr.PrimalDual(), gr.ADMM()], every=2), ids=lambda m: m.name)
def test_methods_of_the_library_pass(method):
    report = gr.audit(network("l2", seed=1), method)
    assert report.ok, report
    assert report.sent is not None


def test_a_step_passes_and_is_local():
    report = gr.audit(network("squared"), gradient_step)
    assert report.ok, report
    assert "run by itself" in str(report)


@pytest.mark.parametrize(
    ("algorithm", "problem", "verdict", "name"),
    [
        (lambda p: primal_dual(p, factor=0.5), network("l2"), "wrong", "factor 1/2 in the strength"),
        (lambda p: primal_dual(p, factor=-1.0), network("l1"), "wrong", "sign: TotalVariation(L1)"),
        (lambda p: primal_dual(p, late=True), network("l2"), "right limit, late", "stale message"),
        (lambda p: gossip(p, power=0.0), network("consensus"), "wrong", "constant step"),
        (local_steps, instance("consensus", 0), "wrong", "drift: "),
    ],
    ids=["factor", "sign", "late", "constant step", "local steps"],
)
def test_mistakes_are_found_and_named(algorithm, problem, verdict, name):
    report = gr.audit(problem, algorithm)
    assert report.verdict == verdict
    assert report.name.startswith(name)
    assert not report.ok
    assert name in str(report)


def test_a_mistake_that_a_regular_graph_hides_is_found():
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(6, 2)), rng.normal(size=6)) for i in range(8)})
    report = gr.audit(gr.Problem(gr.SquaredLoss(data) + gr.Consensus(nx.cycle_graph(8))), asymmetric_mixing)
    assert report.verdict == "wrong"
    assert report.name.startswith("asymmetric mixing")
    assert "irregular" in str(report)


def test_only_what_is_claimed_can_fail():
    """Not that it is late, which is found above."""
    claims = ("limit", "local", "repeatable")
    report = gr.audit(network("l2"), lambda p: primal_dual(p, late=True), claims=claims)
    assert report.verdict == "right"
    assert report.ok


def test_slow_ones_are_undecided_and_say_how_they_fall():
    report = gr.audit(network("consensus"), gossip, rounds=1500)
    assert report.verdict in ("undecided", "right in the limit")
    assert "falling as k^-0." in str(report)
    assert report.ok == (report.verdict == "right in the limit")


# ---- algorithms that misbehave ---------------------------------------------------------------------------------------
def raises(problem):
    yield from primal_dual(problem, limit=50)
    raise RuntimeError("no \x1b[31mmore")


def not_a_number(problem):
    for k, (w, _) in enumerate(primal_dual(problem)):
        yield w * np.nan if k == 5 else w


def transposed(problem):
    return (w.T for w, _ in primal_dual(problem))


def prints(problem):
    for w, _ in primal_dual(problem):
        print("<b>round</b>")
        yield w


def writes_into_the_problem(problem):
    problem.form.samples[0].base_scale[:] *= 2.0
    yield from primal_dual(problem)


def exits(problem):
    yield from primal_dual(problem, limit=5)
    raise SystemExit(3)


def complex_numbers(problem):
    return (w + 1j for w, _ in primal_dual(problem))


def by_label(problem):
    for w, _ in primal_dual(problem):
        yield dict(zip(problem.form.labels, w, strict=True))


def writes_into_its_points(problem):
    for w, _ in primal_dual(problem):
        yield w
        w[:] = w.copy()


@pytest.mark.parametrize(
    ("algorithm", "verdict", "says"),
    [
        (raises, "no limit", r"in round 51 it raised RuntimeError: no \x1b[31mmore"),
        (not_a_number, "never settles", "in round 6 the node 0 has parameters that are NaN"),
        (transposed, "no limit", "shape (2, 9); the problem has 9 nodes x 2 coordinates"),
        (lambda problem: primal_dual(problem, limit=7), "undecided", "it yielded 7 points and no more"),
        (lambda problem: iter(()), "no limit", "it gave no points"),
        (lambda problem: 5, "no limit", "must yield"),
        (lambda problem: iter([None]), "no limit", "not NoneType"),
        (exits, "no limit", "in round 6 it raised SystemExit"),
        (complex_numbers, "no limit", "must be an array of parameters"),
        (by_label, "right", "from the optimum"),
        (prints, "right", "it prints"),
        (writes_into_the_problem, "wrong", "it writes into the problem"),
        (writes_into_its_points, "right", "9e-"),
    ],
    ids=[
        *("raises", "nan", "shape", "ends early", "empty", "no iterable", "none", "exits", "complex"),
        *("by label", "prints", "writes", "in place"),
    ],
)
def test_what_misbehaves_gets_a_report(algorithm, verdict, says, capsys):
    problem = network("l2", seed=2)
    before = of_problem(problem.form)
    report = gr.audit(problem, algorithm)
    assert report.verdict == verdict, report
    assert says in " ".join(str(report).split()) or says == "9e-"  # wherever a line breaks
    assert of_problem(problem.form) == before
    assert not any(each.evidence == "repetition" and each.outcome != "holds" for each in report.findings), report
    assert "round" not in capsys.readouterr().out


def test_an_interrupted_audit_tells_what_it_found():
    calls = []

    def interrupted(problem):
        calls.append(problem)
        for k, point in enumerate(primal_dual(problem)):
            if len(calls) > 1 and k > 5:
                raise KeyboardInterrupt
            yield point

    report = gr.audit(network("l2"), interrupted)
    assert report.interrupted
    assert not report.ok
    assert report.rounds > 100
    assert "from the optimum" in str(report)
    assert "interrupted by Ctrl-C" in str(report)


def test_a_generator_that_cannot_be_ended_is_dropped_in_silence(capsys):
    def stubborn(problem):
        for w in primal_dual(problem):
            for _ in range(2):
                try:
                    yield w
                except GeneratorExit:
                    continue
                break

    before = sys.unraisablehook
    gr.audit(network(), stubborn, rounds=20, seconds=20.0)
    gc.collect()
    assert sys.unraisablehook is before
    assert not capsys.readouterr().err


def test_the_time_is_kept():
    def slow(problem):
        for point in primal_dual(problem):
            time.sleep(0.02)
            yield point

    began = time.monotonic()
    report = gr.audit(network("l2"), slow, seconds=0.6)
    assert time.monotonic() - began < 5.0
    assert "the time was up" in str(report)
    assert not report.ok


def test_no_time_for_a_round_is_no_mistake():
    def hangs(problem):
        time.sleep(2.0)
        yield from primal_dual(problem)

    report = gr.audit(network("l2"), hangs, seconds=0.2)
    assert (report.verdict, report.rounds, report.ok) == ("undecided", 0, False)
    assert not any(each.outcome == "fails" for each in report.findings)
    assert report.untried


def stops(state, node, messages):
    """A right descent that stops after 15 rounds, and begins where it likes."""
    w, k = (np.zeros(node.d), 0) if state is None else state
    w = gradient_step(w, node, messages)[0] if k < 15 else w
    return (w, k + 1), w


def test_a_start_of_which_no_notice_is_taken_was_not_tried():
    loss = gr.SquaredLoss(gr.NodeData.from_dict({i: (np.eye(2), np.array([i, 1.0 + i])) for i in range(3)}))
    problem = gr.Problem(loss + 9.0 * gr.TotalVariation(nx.path_graph(3), gr.SquaredL2()))
    report = gr.audit(problem, stops, claims=["limit"], rounds=300)
    assert (report.verdict, report.name) == ("wrong", "")
    assert [each.evidence for each in report.untried] == ["start"]


def test_what_hangs_is_left_alone():
    def hangs(problem):
        for k, point in enumerate(primal_dual(problem)):
            if k == 3:
                time.sleep(5.0)
            yield point

    began = time.monotonic()
    report = gr.audit(network("l2"), hangs, seconds=1.0)
    assert time.monotonic() - began < 4.0
    assert "the time was up in round 4, which had not ended" in " ".join(str(report).split())
    assert not report.ok


# ---- wild data -------------------------------------------------------------------------------------------------------
def scaled_to(offset=0.0, size=1.0, columns=(1.0, 1.0)):
    """The network with an intercept and its targets and columns in other units."""
    data = network("l2").model.terms[0][1].data
    samples = {
        label: (np.column_stack([data.X[rows] * columns, np.ones(rows.sum())]), size * (data.y[rows] + offset))
        for k, label in enumerate(data.labels)
        for rows in [data.node == k]
    }
    return lambda strength: gr.Problem(
        gr.SquaredLoss(gr.NodeData.from_dict(samples)) + strength * size * gr.TotalVariation(nx.cycle_graph(9), gr.L2())
    )


@pytest.mark.parametrize("wild", thinned([{"size": 1e9}, {"offset": 1e6}, {"size": 1e-9}], every=3), ids=str)
def test_units_and_offsets_change_no_verdict(wild):
    problems = scaled_to(**wild)
    problem, mistaken = problems(0.3), problems(0.6).solve(gap=1e-9).coef
    assert gr.audit(problem, gr.PrimalDual()).ok
    report = gr.audit(problem, [mistaken] * 60)
    assert report.verdict == "wrong"
    assert report.name.startswith("factor 2 in the strength")


def test_points_that_are_one_array_are_said_to_be_one():
    """Written in place, they are all the last one; as views of it, too. A block of points has one for each."""
    problem, w, block = network("l2"), np.zeros((9, 2)), np.zeros((60, 9, 2))
    gradient, kept = problem.oracles().gradient, {"arrays": [], "views": [], "pairs": []}
    for k in range(60):
        w -= 0.1 * gradient(w)
        block[k] = w
        for name, each in (("arrays", w), ("views", w[:]), ("pairs", (w, None))):
            kept[name].append(each)
    for points in kept.values():
        assert "it yielded 60 points and no more, all of them one and the same array; copies" in str_of(problem, points)
    for points in (block, list(block), [each.copy() for each in kept["arrays"]], kept["arrays"][:1]):
        assert "one and the same array" not in str_of(problem, points)


def str_of(problem, points):
    return " ".join(str(gr.audit(problem, points)).split())


def test_what_is_slow_for_uneven_features_is_not_called_wrong():
    report = gr.audit(scaled_to(columns=(1.0, 1e-9))(0.3), gr.PrimalDual())
    assert report.verdict == "undecided", report
    assert "even units" in str(report)
    assert not report.name


def test_the_factor_of_a_node_that_nothing_holds_is_read_off():
    rng = np.random.default_rng(0)
    loss = gr.SquaredLoss(gr.NodeData.from_dict({i: (rng.normal(size=(6, 2)), rng.normal(size=6)) for i in range(3)}))
    problem = gr.Problem(loss + 0.1 * gr.NodePenalty(gr.SquaredL2()))
    other = gr.Problem(rescaled(loss, {0: 3.0}) + 0.1 * gr.NodePenalty(gr.SquaredL2()))
    assert gr.audit(problem, [other.solve().coef] * 60).name.startswith("the losses of the node 0 x 3")


def test_runs_that_differ_with_one_seed_are_told_so():
    rng = np.random.default_rng(0)

    def random(problem):
        return (w + 1e-3 * rng.normal(size=w.shape) for w, _ in primal_dual(problem))

    report = gr.audit(network("l2"), random, rounds=300)
    assert "two runs with the same seed differ" in str(report)
    assert not report.ok


def test_noise_without_bias_is_no_mistake():
    report = gr.audit(network("consensus"), lambda problem, seed: gossip(problem, seed=seed, noise=0.3), rounds=800)
    assert report.verdict == "undecided", report
    assert not any(each.outcome == "fails" for each in report.findings)
    assert "order" in {each.evidence for each in report.untried}


# ---- the report ------------------------------------------------------------------------------------------------------
def test_points_alone_are_judged_and_the_rest_is_listed():
    problem = network("l2")
    report = gr.audit(problem, [w for w, _ in primal_dual(problem, limit=400)])
    assert report.verdict == "right"
    assert report.untried
    assert "cannot be run again" in report.untried[0].sentence
    said = "right as far as it was checked; 1 part not tried: the rest (an iterable cannot be run again, or on other"
    assert said in " ".join(str(report).split())
    assert said in report.__html__()
    assert repr(report).endswith("0 fail, 1 not tried>")


def test_a_list_is_read_to_its_end():
    problem = network("l2")
    points = [w for w, _ in primal_dual(problem, limit=400)]
    gone = [points[-1] + far for far in np.linspace(0.0, 1.0, 200)]
    for later in (gone, [points[-1] + 1.0], [points[-1]] * 200 + [points[0]]):
        report = gr.audit(problem, points + later)
        assert not report.ok, report
        assert report.rounds == len(points + later)
        assert f"it yielded {len(points + later)} points and no more" in str(report)
        assert report.certificate.primal == pytest.approx(problem.value(later[-1]))
    part = gr.audit(problem, points + gone, rounds=400)
    assert part.ok
    assert "what comes later: 400 of the 600 points were read" in " ".join(str(part).split())


def test_of_a_generator_is_said_how_many_points_were_read():
    problem = network("l2")
    report = gr.audit(problem, (w for w, _ in primal_dual(problem, limit=3000)))
    assert report.rounds < 3000
    assert f"what comes later: {report.rounds} points were read" in " ".join(str(report).split())


def test_a_list_that_stays_at_a_wrong_point_is_wrong_though_it_is_short():
    assert gr.audit(network("l2"), [np.zeros((9, 2))] * 100).verdict == "wrong"


def test_text_table_figure_and_page(tmp_path):
    def markup(problem):
        return primal_dual(problem, factor=0.5)

    markup.__name__ = "<script>\x1b[2J"
    report = gr.audit(network("l2"), markup)
    assert "\x1b" not in str(report)
    report.report(tmp_path / "audit.html")
    report.report(str(tmp_path / "audit.html"))  # a report of ours is replaced
    page = (tmp_path / "audit.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert set(report.table()["outcome"]) <= {"holds", "fails", "name", "consistent", "remark", "not tried"}
    assert report.plot().get_yscale() == "log"


def test_the_same_seed_gives_the_same_report():
    problem = network("consensus")
    one, two = (gr.audit(problem, lambda p: gossip(p, power=0.0), seed=3, rounds=500) for _ in range(2))
    assert one.findings == two.findings


@pytest.mark.parametrize(
    ("given", "says"),
    [({"rounds": 0}, "rounds"), ({"seed": -1}, "seed"), ({"seconds": 0}, "seconds"), ({"claims": ["loca"]}, "local")],
    ids=["rounds", "seed", "seconds", "claims"],
)
def test_malformed_arguments_are_refused(given, says):
    with pytest.raises(ModelError, match=says):
        gr.audit(network("l2"), primal_dual, **given)


def test_an_argument_of_another_package_is_told():
    with pytest.raises(ArgumentError, match="rounds="):
        gr.audit(network("l2"), primal_dual, max_iter=3)


def test_without_a_certified_optimum_nothing_is_right_or_wrong(monkeypatch):
    """As on columns of 1e-9 and 1e12, where no route proves it."""
    problem = network()
    far = problem.solve().coef + 5.0
    weak = Optimum(problem, far, problem.certify(far, gap=1e9))
    assert weak.certificate.relative_gap > 1e-2
    monkeypatch.setattr(Optimum, "of", lambda *given: weak)
    for algorithm in (primal_dual, [far] * 60):
        report = gr.audit(problem, algorithm, rounds=200)
        assert "rest on no certificate" in str(report)
        assert report.verdict == "undecided"
        assert not report.ok
        assert "so nothing can be said of where the run leads" in " ".join(str(report).split())


def test_lines_of_a_report_are_no_longer_than_a_screen_is_wide():
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(6), 8)
    X = rng.standard_normal((48, 2))
    data = gr.NodeData.from_arrays(X, X @ [1.0, -1.0] + rng.standard_normal(48), node)
    problem = gr.Problem(gr.SquaredLoss(data) + 0.2 * gr.TotalVariation(nx.path_graph(6), gr.L2()))
    report = gr.audit(problem, gr.PrimalDual(), seconds=10, seed=0)
    assert max(map(len, str(report).splitlines())) <= 120
    assert "w* known to within" in report.__html__()
