"""Comparisons with a held-out score: the curves of all methods, against what they sent, in one call."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import DataError, MethodError, ModelError

NODES, GRAPH = [f"n{i}" for i in range(6)], nx.cycle_graph([f"n{i}" for i in range(6)])
SOLVING = ["solving_messages", "solving_bytes"]
SENT = {"messages": lambda at: at.messages, "bytes": lambda at: at.bytes}


def rows(each, seed, classes=True):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"node": np.repeat(NODES, each), "x": rng.normal(size=6 * each)})
    eta = 1.5 * frame["x"] + 1e2 * (not classes) + rng.logistic(size=len(frame))
    return frame.assign(y=eta > 0 if classes else eta)


def problem_of(frame, loss=gr.LogisticLoss, strength=0.05):
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=["x"], intercept=True)
    return gr.Problem(loss(data) + strength * gr.TotalVariation(GRAPH, gr.L2()))


@pytest.fixture(scope="module")
def classes():
    return problem_of(rows(20, 0)), rows(50, 1)


def test_a_score_that_interrupts_ends_all_with_what_there_is(classes):
    asked = []

    def score(at):
        asked.append(at.round)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return 0.0

    found = gr.compare(classes[0], {"first": gr.PrimalDual(), "second": gr.ADMM()}, gap=0, rounds=9, score=score)
    assert [each.status for each in found.entries.values()] == ["interrupted"]
    assert (len(asked), found.not_run) == (4, ("second",))


@pytest.fixture(scope="module")
def found(classes):
    problem, unseen = classes
    methods = {"pd": gr.PrimalDual(), "avg": gr.FedAvg(), "me": gr.PFedMe(0.5), "exact": gr.Exact()}
    return gr.compare(problem, methods, gap=0, rounds=24, score=unseen, seed=0)


# ---- observations ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [gr.PrimalDual(), gr.PFedMe(0.5), gr.FedAvg()], ids=lambda method: method.name)
@pytest.mark.parametrize("loss", [gr.LogisticLoss, gr.SquaredLoss])
def test_an_observation_predicts_and_scores_as_the_answer_does(method, loss):
    """Also where the method runs around a common model, or on other nodes than the user's."""
    of_classes = loss is gr.LogisticLoss
    problem, unseen = problem_of(rows(20, 0, of_classes), loss), rows(30, 1, of_classes)
    kind, name = ("class", "accuracy") if of_classes else ("response", "mse")
    looks = {
        "coef": lambda at: at.coef,
        "first": lambda at: (at.predict(unseen, kind) == unseen["y"]).mean() if of_classes else at.predict(unseen)[0],
        "score": lambda at: at.score(unseen, by="all")[name].iloc[0],
        "each": lambda at: at.score(unseen)["loss"].to_numpy(),
    }
    run = problem.solve(method, gap=0, rounds=9, observe=looks)
    np.testing.assert_array_equal(run.observed["coef"][-1], run.coef)
    expected = (run.predict(unseen, kind) == unseen["y"]).mean() if of_classes else run.predict(unseen)[0]
    assert run.observed["first"][-1] == expected
    assert run.observed["score"][-1] == run.score(unseen, by="all")[name].iloc[0]
    np.testing.assert_array_equal(run.observed["each"][-1], run.score(unseen)["loss"])
    assert run.observed["score"][0] != run.observed["score"][-1]


def test_the_scores_of_an_observation_are_called_what_they_are(classes):
    problem, unseen = classes
    titles = []
    look = {"none": lambda at: titles.append(at.score(unseen).attrs["title"]) or 0.0}
    problem.solve(gr.PrimalDual(), gap=0, rounds=3, observe=gr.Observer(look, rounds=[2]))
    assert titles == ["300 rows scored: parameters after round 2, of which no certificate speaks"]


@pytest.mark.parametrize("engine", [None, gr.Actors()], ids=["arrays", "actors"])
def test_an_observation_counts_what_was_sent_until_then(classes, engine):
    problem, _ = classes
    method = gr.PrimalDual(balance=1.0)
    run = problem.solve(method, gap=0, rounds=8, observe=gr.Observer(SENT, rounds=1), engine=engine)
    assert (run.observed["messages"][-1], run.observed["bytes"][-1]) == run.ledger.sent()
    np.testing.assert_array_equal(np.diff(run.observed["bytes"]), 6 * 2 * 2 * 8)  # both ways, two numbers
    shorter = problem.solve(method, gap=0, rounds=5, engine=engine)
    assert run.observed["messages"][5] == shorter.ledger.sent()[0]


# ---- curves ----------------------------------------------------------------------------------------------------------
def test_every_method_has_a_curve_and_a_row(classes, found):
    problem, unseen = classes
    curves, table = found.scores(), found.table()
    assert found.measure == "accuracy"
    assert curves.columns.tolist() == ["method", "round", *SOLVING, "accuracy"]
    for name, run in found.solutions.items():
        curve = curves[curves["method"] == name]
        assert curve["round"].tolist() == ([0] if name == "exact" else [*range(21), 22, 24])
        last = curve.iloc[-1]
        assert last["accuracy"] == table.loc[name, "accuracy"] == run.score(unseen, by="all")["accuracy"].iloc[0]
        assert last[SOLVING].tolist() == table.loc[name, SOLVING].tolist()
    plain = problem.solve(gr.FedAvg(), gap=0, rounds=7)
    curve = curves[curves["method"] == "avg"].set_index("round")
    assert curve.loc[7, "accuracy"] == (plain.predict(unseen, "class") == unseen["y"]).mean()
    assert "accuracy" in str(found)


@pytest.mark.parametrize(("loss", "measure"), [(gr.SquaredLoss, "mse"), (gr.HuberLoss, "mse")])
def test_the_measure_follows_from_the_loss(loss, measure):
    problem, unseen = problem_of(rows(10, 0, False), loss), rows(10, 1, False)
    found = gr.compare(problem, [gr.Exact()], score=unseen)
    assert found.measure == measure
    assert found.table()[measure].iloc[0] == found.solutions["Exact(clarabel)"].score(unseen, by="all")["mse"].iloc[0]


def test_a_function_may_score_and_algorithms_are_scored(classes):
    problem, _ = classes

    def worst(at):
        return np.abs(at.coef).max()

    def halves(problem, start=None, seed=None):
        w = np.ones((6, 2))
        while True:
            yield w
            w = w / 2

    found = gr.compare(problem, {"mine": halves, "pd": gr.PrimalDual()}, gap=0, rounds=12, score=worst)
    curve = found.scores().query("method == 'mine'")
    assert found.measure == "worst"
    np.testing.assert_array_equal(curve["worst"], 0.5 ** (curve["round"] - 1))
    assert curve["solving_bytes"].isna().all()
    assert found.table().loc["pd", "worst"] == np.abs(found.solutions["pd"].coef).max()


@pytest.mark.parametrize("points", [7, 100])
def test_own_algorithms_are_scored_at_the_rounds_of_methods(classes, points):
    problem, _ = classes

    def halves(problem, start=None, seed=None):
        yield from (0.5**k * np.ones((6, 2)) for k in range(points))

    def keeps(state, node, messages):
        w = np.ones(2) if state is None else 0.9 * state
        return w, w

    mine = {"halves": halves, "keeps": keeps}
    found = gr.compare(problem, {**mine, "pd": gr.PrimalDual()}, rounds=25, gap=0, score=lambda at: at.round)
    of_methods = [*range(21), 22, 24, 25]
    for name, rounds in found.scores().groupby("method")["round"]:
        ended = points if name == "halves" else 25
        assert rounds.tolist() == [k for k in of_methods if k <= ended and (k or name == "pd")]


def test_scores_that_are_none_are_refused_at_once(classes):
    problem, unseen = classes
    with pytest.raises(MethodError, match="the score worst must be a number"):
        gr.compare(problem, [gr.PrimalDual()], score=type("F", (), {"__name__": "worst", "__call__": lambda *_: "a"})())
    with pytest.raises(DataError, match="'x'"):
        gr.compare(problem, [gr.PrimalDual()], score=unseen.drop(columns="x"))
    with pytest.raises(DataError, match=r"score= takes a frame .* or a function of an observation, got tuple: "):
        gr.compare(problem, [gr.PrimalDual()], score=(np.zeros((3, 2)), np.zeros(3)))
    plain = gr.compare(problem, [gr.PrimalDual()], gap=1e-2)
    assert plain.scores().empty
    assert not plain.measure
    with pytest.raises(ModelError, match="y must be"):
        plain.plot(y="score")


# ---- who is away -----------------------------------------------------------------------------------------------------
def test_one_draw_of_who_is_away_for_all(classes):
    problem, _ = classes
    told = [gr.FedADMM(), gr.FedAvg(), gr.PFedMe(0.5), gr.IFCA(2), gr.FedProx(1.0), gr.SCAFFOLD(), gr.Ditto(1.0)]
    methods = {"own": gr.FedADMM(availability=1.0), "pd": gr.PrimalDual(), **{m.name: m for m in told}}
    found = gr.compare(problem, methods, gap=0, rounds=30, availability=0.6, seed=3)
    away = {name: run.ledger.by_node()["away"].tolist()[:6] for name, run in found.solutions.items()}
    assert away["own"] == away["pd"] == [0] * 6
    for method in told:
        assert away[method.name] == away["FedADMM"]
        assert found.table().loc[method.name, "away"] == sum(away["FedADMM"]) / 180 > 0.2
    assert (found.table().loc[["own", "pd"], "away"] == 0).all()
    assert found.always_there == ("pd",)
    assert "could not be told who is away, and ran with all nodes there: pd" in str(found)
    able = "PrimalDual(balance=1.0); docs/actors.md lists them"
    assert f"are away for methods without sums over all nodes, such as {able}" in " ".join(str(found).split())
    assert "away" not in gr.compare(problem, [gr.FedADMM()], gap=1e-2).table()


@pytest.mark.filterwarnings("ignore::graphreg.errors.MethodWarning")
def test_half_away_and_lossy_for_all(classes):
    """By crashes in place of an availability, which methods that tolerate loss cannot be told."""
    problem, _ = classes
    methods = {"pd": gr.PrimalDual(balance=1.0), "admm": gr.FedADMM(), "avg": gr.FedAvg()}
    options = {"gap": 0, "rounds": 30, "seed": 3}
    faults = gr.Faults(drop=0.2, crash=0.5, down=1)
    found = gr.compare(problem, methods, engine=gr.Actors(faults=faults), **options)
    away = {name: run.ledger.by_node()["away"].tolist() for name, run in found.solutions.items()}
    assert away["pd"] == away["admm"] == away["avg"][:6]
    assert away["avg"][6:] == [0]  # the server
    assert (found.table()["away"] == sum(away["pd"]) / 180).all()
    assert 0.3 < sum(away["pd"]) / 180 < 0.7
    mixed = gr.compare(problem, methods, availability=0.5, engine=gr.Actors(faults=gr.Faults(drop=0.2)), **options)
    assert mixed.always_there == ("pd", "admm")
    assert set(mixed.table()["status"]) == {"budget"}
    assert "all nodes there: pd, admm; nodes that crash, engine=gr.Actors(faults=gr.Faults(crash=" in str(mixed)
    heard = gr.compare(
        problem, [gr.FedADMM()], availability=0.5, engine=gr.Actors(faults=gr.Faults(drop=0.2, resend=True)), **options
    )
    assert heard.always_there == ()
    assert (
        gr.compare(problem, [gr.FedADMM(), gr.AsyncL2GD()], availability=0.5, **options).always_there == ()
    )  # refused
    assert heard.table()["away"].iloc[0] > 0.3


# ---- figures ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("x", ["bytes", "messages", "rounds"])
def test_the_score_is_drawn_against_its_cost(pyplot, found, x):
    axes = found.plot(x)
    curve = found.scores().query("method == 'avg'")
    cost = curve["round" if x == "rounds" else f"solving_{x}"].to_numpy(dtype=float)
    line = axes.lines[1]
    np.testing.assert_array_equal(line.get_xdata(), cost[cost > 0])
    np.testing.assert_array_equal(line.get_ydata(), curve["accuracy"][cost > 0])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["pd", "avg", "me", "exact"]
    assert axes.get_ylabel() == "accuracy of the rows held out"
    assert axes.lines[3].get_ydata()[0] == found.table().loc["exact", "accuracy"]  # all along


def test_a_function_is_called_by_its_name_and_not_rows(pyplot, classes):
    def largest(at):
        return np.abs(at.coef).max()

    found = gr.compare(classes[0], [gr.PrimalDual()], gap=0, rounds=12, score=largest)
    assert found.plot("rounds").get_ylabel() == "largest"
    said = " ".join([found.plot("rounds").figure.axes[0].get_title(), found.figure()._suptitle.get_text()])
    assert "rows" not in said
    assert said.count("Values of largest, of the iterates") == 2


def test_scores_come_first_and_gaps_are_still_drawn(pyplot, found):
    assert found.plot().get_xlabel() == "bytes sent, without certificates"
    assert found.plot(y="gap").get_ylabel() == "relative gap"
    said = ["communication rounds", "messages, without certificates", "bytes sent, without certificates"]
    assert [axes.get_xlabel() for axes in found.figure().axes] == said
    assert len(found.figure(y="gap").axes) == 4
    with pytest.raises(ModelError, match="x must be"):
        found.plot("seconds")


def test_what_nobody_counts_is_left_out_against_messages(pyplot, classes):
    def mine(problem, start=None, seed=None):
        yield from (0.5**k * np.ones((6, 2)) for k in range(30))

    algorithms = {"mine": mine, "pd": gr.PrimalDual()}
    found = gr.compare(classes[0], algorithms, gap=0, rounds=12, score=lambda at: at.round)
    for y, labels in (("score", ["mine", "pd"]), ("gap", ["mine (budget)", "pd (budget)"])):
        for x in ("bytes", "messages", "rounds"):
            axes, counted = found.plot(x, y=y), x != "rounds"
            assert axes.get_legend_handles_labels()[1] == labels[counted:]
            assert not any(np.isnan(line.get_xdata()).any() for line in axes.lines)
            assert ("Not drawn, as nobody counts their messages: mine" in " ".join(axes.get_title().split())) == counted
        figure = found.figure(y)
        assert [text.get_text() for text in figure.legends[0].get_texts()] == labels
        assert "nobody counts their messages: mine." in " ".join(figure.get_suptitle().split())
    colours = {axes.lines[-1].get_color() for axes in (found.plot("bytes"), found.plot("rounds"))}
    assert len(colours) == 1  # of a method, in every picture


def test_a_picture_on_given_axes_has_its_legend(pyplot, found):
    for y in ("score", "gap"):
        given = pyplot.subplots()[1]
        assert found.plot("rounds", given, y=y) is given
        assert len(given.get_legend().get_texts()) == 4
        assert given.get_title()
        assert all(axes.get_legend() is None for axes in found.figure(y).axes)  # it has one for all


def test_it_is_said_of_which_point_a_score_is(classes, found):
    """Beside Consensus an answer is the mean, and has another score than the nodes."""
    assert "is that of the last iterates; an answer" in str(found)
    assert "last iterates" not in str(gr.compare(classes[0], [gr.PrimalDual()], rounds=5))
