"""Methods as printed: what the print does on an instance where it matters, and that its answers say so."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest
from factories import noise
from sameness import facts

import graphreg as gr
from graphreg.errors import MethodError, MethodWarning

N = 8
UNPROVEN = pytest.mark.filterwarnings("ignore:the convergence of:graphreg.errors.MethodWarning")
HARD = {"p_cluster": 0.0, "rho": 0.01}  # no steps within clusters, and seldom a refresh


def hierarchy():
    """Clients that are tied closely to their clusters: gamma = 20."""
    clusters = {k: k // 4 for k in range(N)}
    loss = gr.SquaredLoss(noise(n=N, m=10, d=2, shift=1.0)) + 0.01 * gr.NodePenalty(gr.SquaredL2())
    return gr.Problem(loss + gr.Hierarchy(clusters, weights=(20.0, 1.0)))


def fused(scale):
    """(4) with ``scale = 1 / (|V| n_u)``, and what (17) as printed minimises with ``1 / n_u``."""
    edges = 0.02 * gr.TotalVariation(nx.cycle_graph(N), gr.L2())
    return gr.Problem(gr.SquaredLoss(noise(n=N, m=10, d=2, shift=2.0), scale=scale) + edges)


def sizes(problem, method, rounds, **options):
    look = gr.Observer({"size": lambda at: np.abs(at.w).max()}, rounds=1)
    run = problem.solve(method, rounds=rounds, gap=0, seed=0, observe=look, on_failure="return", **options)
    return run.observed["size"], run


# ---- known clusters --------------------------------------------------------------------------------------------------
@UNPROVEN
def test_41_as_printed_diverges_where_the_corrected_one_converges():
    problem = hierarchy()
    assert problem.solve(gr.AsyncAL2SGD(**HARD), seed=0, gap=1e-8).status == "certified"
    size, run = sizes(problem, gr.AsyncAL2SGD(as_printed="(4.1)", **HARD), 2000)
    assert size[-1] > 100.0 * size[200] > 0.0
    best = problem.solve(gap=1e-9)
    assert run.certificate.dual <= best.objective
    assert run.certificate.primal >= best.certificate.dual


@UNPROVEN
def test_z_as_printed_is_many_times_slower():
    problem = hierarchy()
    right = problem.solve(gr.AsyncAL2SGD(), seed=0, gap=1e-4)
    assert right.status == "certified"
    slow = problem.solve(gr.AsyncAL2SGD(as_printed="b2/n"), seed=0, gap=1e-4, rounds=3 * right.rounds)
    assert slow.status == "budget"
    assert slow.certificate.relative_gap > 1e-3


# ---- graph-fused M-estimation ----------------------------------------------------------------------------------------
@UNPROVEN
def test_17_as_printed_ends_at_another_optimum():
    four, other = fused(1.0 / (N * 10)), fused(1.0 / 10)
    best, elsewhere = (problem.solve(gap=1e-10) for problem in (four, other))
    run = four.solve(gr.FedADMM(as_printed="(17)"), gap=1e-6, rounds=2000)
    assert run.status == "budget", "its certificate is of (4), at which it does not end"
    assert run.certificate.relative_gap > 1e-2
    assert np.abs(run.coef - best.coef).max() > 0.1
    assert np.abs(run.coef - elsewhere.coef).max() < 1e-3
    assert four.solve(gr.FedADMM(), gap=1e-6).status == "certified"


@UNPROVEN
@pytest.mark.parametrize("options", [{"batch": 3}, {"batch": 3, "availability": 0.7, "while_away": "ipw"}], ids=str)
def test_the_printed_step_explodes_at_first(options):
    problem = fused(1.0 / (N * 10))
    printed, run = sizes(problem, gr.FedADMM(kappa=200.0, as_printed="kappa/t", **options), 60)
    right, _ = sizes(problem, gr.FedADMM(kappa=200.0, **options), 60)
    assert printed.max() > 1e3 * right.max()
    assert run.status in ("budget", "failed")


def test_the_printed_step_is_kappa_over_t():
    problem = fused(1.0 / (N * 10))
    with pytest.warns(MethodWarning, match="kappa/t is longer"):
        run = problem.solve(gr.FedADMM(rho=1.0, kappa=2.0, as_printed="kappa/t"), rounds=9, gap=0)
    given = problem.solve(gr.FedADMM(rho=1.0, step_size=lambda t: 2.0 / t), rounds=9, gap=0)
    assert np.abs(run.coef - given.coef).max() == 0.0


# ---- what is said of them --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "said"),
    [
        (gr.AsyncAL2SGD(as_printed="(4.1)"), r"\(4.1\) as printed is biased"),
        (gr.AsyncAL2SGD(as_printed=["b2/n", "(4.1)"]), "b2/n as printed.*biased"),
        (gr.FedADMM(as_printed="(17)"), r"\(17\) as printed drops"),
    ],
    ids=lambda value: getattr(value, "label", None),
)
def test_printed_variants_are_marked_as_such(method, said):
    problem = hierarchy() if isinstance(method, gr.AsyncAL2SGD) else fused(0.1)
    with pytest.warns(MethodWarning, match="is not guaranteed") as warned:
        run = problem.solve(method, rounds=3, gap=0, seed=0)
    assert "as_printed=" in method.label
    assert "as_printed=" in str(warned[0].message)
    assert "Convergence is not guaranteed: " in run.message
    assert len(re.findall(said, run.message)) == 1


@UNPROVEN
@pytest.mark.parametrize("method", [gr.AsyncAL2SGD(as_printed=("(4.1)", "b2/n")), gr.FedADMM(as_printed="(17)")])
def test_actors_and_checkpoints(method, tmp_path):
    problem = hierarchy() if isinstance(method, gr.AsyncAL2SGD) else fused(0.1)
    alone = problem.solve(method, rounds=12, gap=0, seed=2)
    together = problem.solve(method, rounds=12, gap=0, seed=2, engine=gr.Actors())
    assert np.allclose(alone.coef, together.coef, rtol=0, atol=1e-12)
    problem.solve(method, rounds=5, gap=0, seed=2, checkpoint=tmp_path / "run")
    assert facts(problem.solve(method, rounds=12, gap=0, checkpoint=tmp_path / "run")) == facts(alone)


@UNPROVEN
def test_what_does_not_go_together():
    with pytest.raises(MethodError, match="a step_size, or as_printed='kappa/t'"):
        gr.FedADMM(step_size=0.1, as_printed="kappa/t")
    with pytest.raises(MethodError, match=r"one or several of '\(17\)', 'kappa/t', got '\(4.1\)'"):
        gr.FedADMM(as_printed="(4.1)")
    with pytest.raises(MethodError, match="as_printed out"):
        fused(0.1).solve(gr.FedADMM(as_printed="(17)"), engine=gr.Actors(faults=gr.Faults(drop=0.1)))
