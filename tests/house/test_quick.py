"""A test of an installation, in a minute (`make quick`): what is made here meets all of the library once.

Every loss, every penalty and every structure is solved by the exact route and by an iterative one, each certified; an
answer is proved and the proof checked by the program that stands alone; the command line runs.
"""

from __future__ import annotations

import importlib
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from cli_cases import process, run
from factories import noise
from law_cases import LOSSES, PENALTIES

import graphreg as gr
from graphreg import verify
from graphreg.terms.penalties.base import AbstractOneSided

pytestmark = pytest.mark.quick

PATH = nx.path_graph(3)
RIDGE = 0.1 * gr.NodePenalty(gr.SquaredL2())
TIED = 0.1 * gr.TotalVariation(PATH, gr.L2())
ROUTES = (gr.Exact(), gr.PrimalDual())
GAP = 1e-4
ROOMS = ("datasets", "inference", "plots", "testing", "theory", "tuning", "model_file", "cli", "verify")
STRUCTURES = {
    "two graphs": TIED + 0.1 * gr.TotalVariation(nx.Graph([(0, 2)]), gr.L1()),
    "some features": gr.Consensus(PATH, features=["x0"]) + TIED,
    "consensus": gr.Consensus(PATH),
    "known clusters": gr.Hierarchy({"a": [0, 1], "b": [2]}, (1.0, 0.3)),
    "centres": TIED + 0.1 * gr.NodePenalty(gr.L2(), center=dict.fromkeys(range(3), np.ones(3))),
}


def one_of_each(terms):
    return list({type(term): term for term in reversed(terms)}.values())


def certified(model):
    for method in ROUTES:
        found = gr.Problem(model).solve(method, gap=GAP)
        assert found.status == "certified", found
        assert found.certificate.holds(GAP)


@pytest.mark.parametrize("room", ROOMS)
def test_it_is_all_there(room):
    assert importlib.import_module(f"graphreg.{room}")
    assert not [name for name in gr.__all__ if not hasattr(gr, name)]


@pytest.mark.parametrize("loss", one_of_each(LOSSES), ids=lambda loss: type(loss).__name__)
def test_a_loss_is_solved(loss):
    certified(loss + TIED + RIDGE)


@pytest.mark.parametrize("penalty", one_of_each(PENALTIES), ids=lambda penalty: type(penalty).__name__)
def test_a_penalty_is_solved(penalty):
    Q = np.diag([1.0, 0.5, 2.0])
    penalty = gr.Quadratic(Q) if isinstance(penalty, gr.Quadratic) else penalty
    scale = 1 if isinstance(penalty, gr.AbstractConstraint) else 0.1
    ground = isinstance(penalty, AbstractOneSided)
    term = gr.NodePenalty(penalty) if ground else gr.TotalVariation(PATH, penalty)
    certified(gr.SquaredLoss(noise(3, 6)) + scale * term + RIDGE)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_structure_is_solved(name):
    certified(gr.SquaredLoss(noise(3, 6)) + STRUCTURES[name])


def test_a_proof_is_made_and_checked(tmp_path):
    found = gr.Problem(gr.SquaredLoss(noise(3, 6)) + TIED).solve()
    proved = found.prove(tmp_path / "proof.json")
    assert found.certificate.dual <= proved.upper
    assert proved.lower <= found.certificate.primal
    command = [sys.executable, verify.__file__, str(tmp_path / "proof.json")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    text = (tmp_path / "proof.json").read_text(encoding="utf-8")
    with pytest.raises(verify.NotProvedError):
        verify.check(text[: len(text) // 2].encode())


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.QuantileLoss], ids=lambda loss: loss.__name__)
def test_clusters_are_proved(loss):
    found = gr.Problem(loss(noise(3, 6)) + 0.5 * gr.TotalVariation(PATH, gr.L2()) + RIDGE).solve()
    assert len(found.clusters(prove=True).edges) == 2


def test_strengths_are_found():
    """The largest one, and a path and a cross-validation from there on."""
    problem = gr.Problem(gr.SquaredLoss(noise(3, 6)) + gr.Parameter(0.1) * gr.TotalVariation(PATH, gr.L2()) + RIDGE)
    assert gr.strength_max(problem).value > 0.0
    assert len(gr.path(problem, 2).solutions) == 2
    assert len(gr.cross_validate(problem, 2, folds=2, seed=0).table()) == 2


def test_the_command_line_runs(tmp_path):
    assert run("example", tmp_path / "river").exit_code == 0
    done = process("solve", "river/model.toml", "--quiet", cwd=tmp_path)
    _, err = done.communicate()
    assert done.returncode == 0, err
