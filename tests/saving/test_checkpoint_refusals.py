"""Checkpoints of another problem, method, start, version or kind are refused, with the difference."""

from __future__ import annotations

import numpy as np
import pytest
from checkpoint_cases import ITERATIVE, Tilted, rewritten
from factories import chain
from sameness import bits

import graphreg as gr
from graphreg.errors import CheckpointError
from graphreg.saving import archive

LABELS = [str(k) for k in range(8)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strength": 0.3}, r"strength of TotalVariation\(L2\) 1 \(0.3 here, 0.2 in the file\)"),
        ({"seed": 1}, "features of the samples of SquaredLoss 1"),
        ({"shift": 1e-15}, "features of the samples of SquaredLoss 1"),
        ({"loss": gr.HuberLoss}, "the losses"),
        ({"scale": "sum"}, "scales of the samples"),
        ({"penalty": gr.L1()}, "terms on edges"),
        ({"weight": 2.0}, "edge weights"),
        ({"n": 9}, r"number of nodes \(9 here, 8 in the file\)"),
        ({"labels": LABELS}, "labels of the nodes"),
    ],
)
def test_another_problem(options, said, stored):
    before = stored.read_bytes()
    with pytest.raises(CheckpointError, match=f"of another problem.*{said}.*remove this one to begin anew") as caught:
        chain(**options).solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)
    assert caught.value.differences
    assert stored.read_bytes() == before


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        (
            {"penalty": gr.Ball(1.0), "strength": 1},
            {"penalty": gr.Ball(2.0), "strength": 1},
            r"radius of Ball.*2\.0 here",
        ),
        ({"penalty": gr.HuberNorm(1.0)}, {"penalty": gr.HuberNorm(0.5)}, "delta of HuberNorm"),
        ({"penalty": gr.Quadratic(np.eye(3))}, {"penalty": gr.Quadratic(2 * np.eye(3))}, "Q of Quadratic"),
        ({"penalty": Tilted(1.0)}, {"penalty": Tilted(2.0)}, "slope of Tilted"),
        ({"loss": gr.HuberLoss, "delta": 1.0}, {"loss": gr.HuberLoss, "delta": 2.0}, "delta of HuberLoss"),
    ],
)
def test_other_parameters(one, two, said, tmp_path):
    path = tmp_path / "run"
    chain(**one).solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path)
    with pytest.raises(CheckpointError, match=said):
        chain(**two).solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path)
    assert chain(**one).solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path).rounds == 9


def test_functions_are_told_apart(tmp_path):
    import cvxpy as cp

    def problem(factor):
        return chain(n=2, penalty=gr.Penalty.from_cvxpy(lambda z: factor * cp.norm(z, 1)))

    path = tmp_path / "run"
    problem(1.0).solve(gr.PrimalDual(), gap=0, rounds=3, checkpoint=path)
    assert problem(1.0).solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path).rounds == 5
    with pytest.raises(CheckpointError, match="of another problem; what differs: the class of TotalVariation"):
        problem(2.0).solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path)


def test_a_parameter_of_another_value(tmp_path):
    path, strength = tmp_path / "run", gr.Parameter(0.2, name="lam")
    problem = chain(strength=strength)
    problem.solve(gr.PrimalDual(), gap=0, rounds=5, checkpoint=path)
    strength.value = 0.25
    with pytest.raises(CheckpointError, match=r"strength of .* \(0.25 here, 0.2 in the file\)"):
        problem.solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path)
    strength.value = 0.2
    assert problem.solve(gr.PrimalDual(), gap=0, rounds=9, checkpoint=path).rounds == 9


def test_another_method(stored):
    with pytest.raises(CheckpointError, match=r"of another method.*relaxation \(1.5 here, 1.8 in the file\)"):
        chain().solve(gr.PrimalDual(relaxation=1.5), gap=0, rounds=30, checkpoint=stored)
    for other in ITERATIVE:
        if not (isinstance(other, gr.PrimalDual) or other.missing(chain().form)):
            with pytest.raises(CheckpointError, match=r"of another method.*the class"):
                chain().solve(other, gap=0, rounds=30, checkpoint=stored)


def test_exact_takes_none(tmp_path):
    with pytest.raises(CheckpointError, match="a conic solver cannot be resumed"):
        chain().solve(gr.Exact(), checkpoint=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_another_format(stored):
    rewritten(stored, version=99)
    with pytest.raises(CheckpointError, match=r"format version 99.*reads and writes 5"):
        chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)
    rewritten(stored, version=5, format="something else")
    with pytest.raises(CheckpointError, match="no file of graphreg"):
        chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)


def test_other_versions_are_said(stored):
    whole = chain().solve(gr.PrimalDual(), gap=0, rounds=30)
    assert "bits" not in chain().solve(gr.PrimalDual(), gap=0, rounds=25, checkpoint=stored).message
    rewritten(stored, versions={**archive.read(stored)[0]["versions"], "numpy": "1.99"})
    again = chain().solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=stored)
    assert "numpy 1.99, here" in again.message
    assert "last bits may differ" in again.message
    assert bits(again.coef) == bits(whole.coef)


def test_a_file_of_another_kind(tmp_path):
    lam = gr.Parameter(0.2, name="lam")
    problem, path = chain(strength=lam), tmp_path / "path"
    gr.path(problem, [0.1, 0.2], method=gr.PrimalDual(), gap=1e-2, checkpoint=path)
    with pytest.raises(CheckpointError, match="no file of a run but of a path"):
        problem.solve(gr.PrimalDual(), checkpoint=path)
    rewritten(path, version=2, format="graphreg path", versions={})
    with pytest.raises(CheckpointError, match=r"format version 2.*reads and writes 5; go on with graphreg as it was"):
        gr.path(problem, [0.1, 0.2], method=gr.PrimalDual(), gap=1e-2, checkpoint=path)


def test_a_seed_of_numpy_is_a_seed(tmp_path):
    budget = {"gap": 0, "rounds": 5, "checkpoint": tmp_path / "run"}
    assert chain().solve(gr.PrimalDual(), seed=np.int64(3), **budget).seed == 3
    assert chain().solve(gr.PrimalDual(), **{**budget, "rounds": 7}).seed == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": 3}, "a path"),
        ({"path": b"run"}, "a path"),
        ({"path": ""}, "empty"),
        ({"path": "run", "seconds": 0}, "seconds"),
        ({"path": "run", "seconds": np.inf}, "seconds"),
        ({"path": "run", "seconds": True}, "seconds"),
        ({"path": "run", "rounds": 0}, "rounds"),
        ({"path": "run", "rounds": 2.5}, "rounds"),
        ({"path": "run", "seconds": None}, "never written"),
    ],
)
def test_wrong_arguments(arguments, said):
    with pytest.raises(CheckpointError, match=said):
        gr.Checkpoint(**arguments)


def test_wrong_places(tmp_path):
    with pytest.raises(CheckpointError, match="a path"):
        chain().solve(gr.PrimalDual(), checkpoint=3)
    with pytest.raises(CheckpointError, match="is a folder"):
        chain().solve(gr.PrimalDual(), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="does not exist; create it"):
        chain().solve(gr.PrimalDual(), checkpoint=tmp_path / "no" / "run")
