"""Answers in files: points are kept, bounds are proved anew, and nothing in a file is believed."""

from __future__ import annotations

import os
from contextlib import suppress

import networkx as nx
import numpy as np
import pytest
from factories import chain
from forging import forged, places

import graphreg as gr
from graphreg.base.declaring import declared
from graphreg.errors import CheckpointError
from graphreg.methods import AbstractMethod
from graphreg.saving import archive

RNG = np.random.default_rng(0)
X = RNG.standard_normal((24, 2))
NODE = np.repeat(list("abcd"), 6)
GRAPH = nx.path_graph(list("abcd"))
VARIATION = 0.1 * gr.TotalVariation(GRAPH, gr.L1())
CLASSES = gr.NodeData.from_arrays(X, RNG.integers(0, 3, 24), NODE)
PROBLEMS = {
    "classes": gr.MultinomialLoss(CLASSES) + VARIATION + 0.1 * gr.NodePenalty(gr.SquaredL2()),
    "quantiles": gr.QuantileLoss(gr.NodeData.from_arrays(X, X[:, 0], NODE), tau=0.3) + VARIATION,
    "a tree": gr.SquaredLoss(gr.NodeData.from_arrays(X, X[:, 0], NODE))
    + gr.Hierarchy({"a": 1, "b": 1, "c": 2, "d": 2}, weights=(1.0, gr.Parameter(0.5))),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answer.npz"


# ---- there and back --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_solution_comes_back_as_it_was(kind, path):
    problem = gr.Problem(PROBLEMS[kind])
    found = problem.solve(gr.PrimalDual(), seed=5)
    found.save(path)
    back = gr.load(path, gr.Problem(PROBLEMS[kind]))
    assert (back.status, back.method, back.rounds, back.seed) == ("certified", "PrimalDual", found.rounds, 5)
    assert "which says 'certified'; the bounds are proved anew" in back.message
    np.testing.assert_array_equal(back.certificate.w, found.certificate.w)
    assert back.certificate.primal == found.certificate.primal
    assert back.certificate.dual == pytest.approx(found.certificate.dual, rel=1e-14, abs=1e-30)  # proved anew
    assert back.latent.keys() == found.latent.keys()
    assert back.clusters().labels == found.clusters().labels
    for edge, u in found.flows.items():
        np.testing.assert_array_equal(back.flows[edge], u)
    assert problem.update(problem.form.samples[0].loss.data).solve(gr.PrimalDual(), start=back).rounds <= found.rounds


def test_the_status_follows_from_the_gap_that_is_asked_for(path):
    chain().solve(gap=1e-3).save(path)
    assert gr.load(path, chain(), gap=0.0).status == "no_certificate"
    assert gr.load(path, chain(), gap=1e-3).status == "certified"


HOW = {
    "ClusteredFedAvg": {"clusters": {"a": 0, "b": 0, "c": 1, "d": 1}},
    "IFCA": {"k": 2},
    "PFedMe": {"lam": 1.0},
    "Ditto": {"lam": 1.0},
    "FedProx": {"mu": 1.0},
}
TIED = {
    "variation": VARIATION,
    "consensus": gr.Consensus(GRAPH),
    "hierarchy": gr.Hierarchy({"a": 1, "b": 1, "c": 2, "d": 2}, weights=(1.0, 1.0)),
}


@pytest.mark.parametrize("name", sorted(declared(AbstractMethod, users=False)))
def test_the_answer_of_every_method_comes_back(name, path):
    """Also of a baseline, whose parameters may violate what ties the nodes."""
    method, tried = getattr(gr, name)(**HOW.get(name, {})), 0
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, X[:, 0] ** 2, NODE))
    if isinstance(method, gr.DynamicProgramming):
        loss = gr.MeanLoss(gr.NodeData.from_arrays(None, X, NODE))
    if isinstance(method, gr.OneNode):
        loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, X[:, 0] ** 2, np.zeros(len(X), dtype=int)))
    for tie in [gr.NodePenalty(gr.L1())] if isinstance(method, gr.OneNode) else TIED.values():
        problem = gr.Problem(loss + tie)
        if method.missing(problem.form):
            continue
        budget = {} if "rounds" in method.refuses() else {"rounds": 20}
        found = problem.solve(method, seed=0, on_failure="return", **budget)
        found.save(path)
        back, tried = gr.load(path, problem), tried + 1
        np.testing.assert_array_equal(back.coef, found.coef)
        assert back.certificate.relative_gap == pytest.approx(found.certificate.relative_gap, rel=1e-9)
        assert (back.certificate.valid, back.certificate.note) == (found.certificate.valid, found.certificate.note)
        said = "certified to be at most" if back.status == "certified" else "The points of the file have "
        assert said in back.message
        assert str(back.summary()).count(name)
    assert tried


def test_an_infimum_that_is_not_attained_is_none_when_read(path):
    x = np.arange(6.0).reshape(-1, 1) - 2.5
    problem = gr.Problem(gr.LogisticLoss(gr.NodeData.from_arrays(x, (x[:, 0] > 0).astype(int), ["a"] * 6)))
    problem.solve(on_failure="return").save(path)
    assert gr.load(path, problem).status == "unattained"


def test_without_the_problem_nothing_is_said_to_be_certified(path):
    grid = gr.Graph.from_edges([((0, 0), 1), (1, "x"), ("x", np.datetime64("2020-01-01"))])
    data = gr.NodeData.from_dict({1: ([[1.0, 2.0]], [1.0]), (0, 0): ([[2.0, 1.0]], [2.0])}, features=["u", "v\x1b[2J"])
    problem = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(grid, gr.L2()) + gr.NodePenalty(gr.SquaredL2()))
    found = problem.solve()
    found.save(path)
    table = gr.load(path)
    assert table.index.tolist() == [(0, 0), 1, "x", "2020-01-01"]
    np.testing.assert_array_equal(table.to_numpy(), found.coef)
    assert "nothing is certified" in str(table)
    assert "nobody has checked" in str(table)
    assert "\x1b" not in str(table)


# ---- what is refused -------------------------------------------------------------------------------------------------
def test_another_problem_is_named(path):
    chain().solve().save(path)
    with pytest.raises(
        CheckpointError, match=r"of another problem; what differs: .*; name another file, or solve"
    ) as said:
        gr.load(path, chain(loss=gr.HuberLoss))
    assert said.value.differences


def test_files_that_are_none(path, tmp_path):
    with pytest.raises(CheckpointError, match="there is no file"):
        gr.load(path, chain())
    run = tmp_path / "run.npz"
    chain().solve(gr.PrimalDual(), checkpoint=run)
    with pytest.raises(CheckpointError, match="no file of a solution but of a run"):
        gr.load(run)
    chain().solve().save(path)
    with pytest.raises(CheckpointError, match="no file of a run but of a solution"):
        chain().solve(gr.PrimalDual(), checkpoint=path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError):
            gr.load(path, chain())
    os.truncate(path, archive.ALL + 1)
    with pytest.raises(CheckpointError, match="more than the problem can need"):
        gr.load(path)


def test_no_message_on_a_saved_solution_calls_it_a_checkpoint(path, tmp_path):
    solution, said = chain().solve(), []
    solution.save(path)
    whole, cut, junk = path.read_bytes(), tmp_path / "cut", tmp_path / "junk"
    cut.write_bytes(whole[:300])
    junk.write_text("of somebody else")
    tries = [lambda: gr.load(path, chain(n=9)), *(lambda at=at: gr.load(at) for at in (cut, junk, tmp_path))]
    tries += [lambda: gr.load(""), lambda: solution.save(tmp_path), lambda: solution.save(tmp_path / "none" / "a")]
    for each in tries:
        with pytest.raises(CheckpointError) as found:
            each()
        said.append(str(found.value).replace(str(tmp_path), ""))
    assert not [each for each in said if "checkpoint" in each]
    assert said[0].startswith("the solution ")


def test_nothing_of_somebody_elses_is_overwritten(path, tmp_path):
    solution = chain().solve()
    run = tmp_path / "run.npz"
    chain().solve(gr.PrimalDual(), checkpoint=run)
    path.write_text("a thesis")
    for name in (path, run):
        before = name.read_bytes()
        with pytest.raises(CheckpointError, match="is there, and no solution of graphreg"):
            solution.save(name)
        assert name.read_bytes() == before
    with pytest.raises(CheckpointError, match="is a folder"):
        solution.save(tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {"answer.npz", "run.npz"}


def test_a_solution_is_replaced_with_its_mode_and_through_a_link(path, tmp_path):
    chain().solve(gap=1e-2).save(path)
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    found = chain().solve(gap=1e-9)
    found.save(link)
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert gr.load(path, chain()).certificate.dual == found.certificate.dual


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")], ids=["ctrl-c", "full"])
def test_what_was_there_stays_until_the_new_file_is_whole(error, path, monkeypatch):
    chain().solve(gap=1e-2).save(path)
    before = path.read_bytes()

    def broken(*_, **__):
        raise error

    monkeypatch.setattr(np.lib.format, "write_array", broken)
    with pytest.raises((KeyboardInterrupt, CheckpointError)):
        chain().solve().save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


# ---- forged files ----------------------------------------------------------------------------------------------------
def read_all(path, truth):
    """The things that a file passes for: refused, or a solution with honest bounds."""
    with suppress(CheckpointError):
        gr.load(path)
    try:
        back = gr.load(path, chain())
    except CheckpointError as error:
        assert str(path) in str(error)  # noqa: PT017
        return "refused"
    assert back.certificate.dual <= truth.primal
    assert back.certificate.primal >= truth.dual
    assert back.status != "certified" or back.certificate.holds(1e-6)
    return back


VALUES = [None, -1, 1.5, "x\x1b[2J", [], {"float": "nan"}, {"array": 7}]


def test_every_forged_entry_is_refused_or_harmless(path):
    found = chain().solve()
    found.save(path)
    header, arrays = archive.read(path)
    for k, at in enumerate(way for way in places(header) if way):
        forged(path, at, VALUES[k % len(VALUES)])
        assert "\x1b" not in str(read_all(path, found.certificate))
        archive.write(path, header, arrays)


WRONG = {
    "message": ("\x1b[2J", "its message is"),
    "method": ("\x1b[2J", "its method is"),
    "labels": ({"list": [*range(7), {"list": [1]}]}, "it has the label"),
    "coordinates": ({"list": ["a"]}, "its parameters are float64"),
}


@pytest.mark.parametrize("entry", WRONG)
def test_a_table_shows_no_forged_names(entry, path):
    value, said = WRONG[entry]
    chain().solve().save(path)
    header, _ = archive.read(path)
    at = next(way for way in places(header) if way[-1:] == (entry,))
    forged(path, at, value)
    with pytest.raises(CheckpointError, match=said):
        gr.load(path)


def test_one_file_holds_one_solution(path):
    chain().solve().save(path)
    header, arrays = archive.read(path)
    entry = header["values"][0]
    more = {f"1-{name.partition('-')[2]}": array for name, array in arrays.items()}
    archive.write(path, {**header, "values": [entry, entry]}, {**arrays, **more})
    with pytest.raises(CheckpointError, match="holds 2 values, and not one solution"):
        gr.load(path)


CHANGES = {
    "zeros": lambda a: 0.0 * a,
    "turned": lambda a: -a,
    "larger": lambda a: 1.001 * a,
    "infinite": lambda a: a * np.inf,
    "longer": lambda a: np.concatenate([a, a]),
    "whole": lambda a: a.astype(int),
}


@pytest.mark.parametrize("change", CHANGES)
def test_forged_points_prove_what_they_prove(change, path):
    found = chain().solve()
    found.save(path)
    header, arrays = archive.read(path)
    outcomes = []
    for name in arrays:
        archive.write(path, header, {**arrays, name: CHANGES[change](arrays[name])})
        outcomes.append(read_all(path, found.certificate))
    refused = [outcome == "refused" for outcome in outcomes]
    assert all(refused) if change in ("infinite", "longer", "whole") else not any(refused)
    assert not all(refused) or change != "larger"
    if change == "turned":
        assert all(each.status == "no_certificate" for each in outcomes)


def test_bounds_in_a_file_are_not_believed(path):
    """They may only be weaker than what is proved."""
    found = chain().solve(gap=1e-9)
    found.save(path)
    header, _ = archive.read(path)
    at = {way[-1]: way for way in places(header) if "certificate" in way}
    forged(path, at["dual"], found.certificate.primal)
    assert gr.load(path, chain()).certificate.dual <= found.certificate.primal
    assert gr.load(path, chain()).certificate.gap > 0.0
    forged(path, at["primal"], -1e9)
    assert gr.load(path, chain()).certificate.primal >= found.certificate.dual


def test_a_loaded_answer_says_nothing_of_messages_that_it_does_not_know(tmp_path):
    problem = chain()
    run = problem.solve(gr.PrimalDual())
    run.save(tmp_path / "run")
    assert f"{run.rounds} rounds, {run.ledger.total_messages:,} messages" in str(run)
    loaded = gr.load(tmp_path / "run", problem)
    for text in (str(loaded), str(loaded.summary())):
        assert f"{run.rounds} rounds, " in text
        assert "messages" not in text


def test_another_archive_is_refused_by_its_name(tmp_path):
    np.savez(tmp_path / "foreign.npz", a=np.ones(3))
    with pytest.raises(CheckpointError, match=r"foreign\.npz' is no file of graphreg"):
        gr.load(tmp_path / "foreign.npz", chain())
