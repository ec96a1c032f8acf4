"""Terms that a user writes get what the terms of the library get: nothing outside `terms` asks for a class, but for the
reader of CVXPY functions, which says of which class one is."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

import networkx as nx
import numpy as np
import pytest
from law_cases import NUMBERS, concrete_subclasses, samples
from own_terms import LogCosh, OwnEquality, OwnL1, OwnPairs, OwnSquare
from rooms import PACKAGE, all_imports, layer_of

import graphreg as gr
from graphreg.certificate import Certifier
from graphreg.running.polish import applies, contracted, groups_of_flows, guess, routed
from graphreg.terms.losses.base import AbstractLoss, AbstractQuadraticLoss
from graphreg.terms.penalties import is_equality
from graphreg.terms.penalties.base import AbstractPenalty
from graphreg.terms.records import Notation
from graphreg.testing import check_loss, check_penalty
from graphreg.tuning.scoring import SCORES


def joined(penalty, strength=0.3, d=2, loss=gr.SquaredLoss, graph=None):
    """Six nodes on a path in two groups, tied by the penalty."""
    rng = np.random.default_rng(1)
    truth = np.repeat(np.array([[1.0], [-1.0]]) * [2.0, 1.0, 0.0, 0.0][:d], 3, axis=0)
    data = {i: ((X := rng.normal(size=(20, d))), X @ w + 0.3 * rng.normal(size=20)) for i, w in enumerate(truth)}
    if loss is gr.LogisticLoss:
        data = {i: (X, y > 0) for i, (X, y) in data.items()}
    graph = nx.cycle_graph(6) if graph is None else graph
    return gr.Problem(loss(gr.NodeData.from_dict(data)) + strength * gr.TotalVariation(graph, penalty))


# ---- sums of norms ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("penalty", "k", "p"),
    [
        (OwnL1(), 3, 1),
        (OwnPairs(), 4, 2),
        (OwnPairs(), 2, 2),
        (gr.L1(), 3, 1),
        (gr.L2(), 3, 3),
        (gr.LInf(), 3, None),
        (gr.HuberNorm(1e-9), 3, None),
        (gr.SquaredL2(), 3, None),
        (gr.Ball(), 3, None),
        (gr.NonNegative(), 1, None),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, gr.Penalty) else str(x),
)
def test_sums_of_norms_are_seen_in_values(penalty, k, p):
    assert penalty.pieces(k) == p


@pytest.mark.parametrize("penalty", [OwnL1(), OwnPairs(), OwnEquality(), OwnSquare()], ids=lambda p: type(p).__name__)
def test_penalties_of_the_users_obey_the_laws(penalty):
    report = check_penalty(penalty, k=(2, 4))
    assert report.ok, report


@pytest.mark.parametrize(("own", "ours", "d"), [(OwnL1(), gr.L1(), 3), (OwnPairs(), gr.L2(), 2)], ids=["l1", "l2"])
@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss])
def test_a_norm_of_the_users_is_polished_as_ours_is(own, ours, d, loss):
    found = []
    for penalty in (own, ours):
        problem = joined(penalty, 0.1, d, loss)
        assert applies(problem.form)
        run = problem.solve(gr.PrimalDual(), gap=1e-9)
        assert run.status == "certified"
        found.append(run)
    plain = joined(own, 0.1, d, loss).solve(gr.PrimalDual(polish=False), gap=1e-9)
    assert max(found[0].rounds, found[1].rounds) < plain.rounds
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-9)


def test_pieces_are_fused_one_by_one():
    """Four coordinates in pairs: on the third edge of a path the first pair is split and the second fused, and the
    polish solves the rest to rounding."""
    problem = joined(OwnPairs(), 0.5, 4, graph=nx.path_graph(6))
    form, certifier = problem.form, Certifier(problem.form)
    exact = problem.solve(gr.Exact(), gap=1e-9)
    flows = tuple(u * (1.0 + 1e-6) for u in exact.certificate.dual_point.flows)
    found = guess(form, groups_of_flows(form, flows))
    assert found.fused[0].tolist() == [[True] * 4] * 2 + [[False, False, True, True]] + [[True] * 4] * 2
    w, _ = contracted(form, exact.certificate.w, found)
    assert w is not None
    certifier.propose(w, routed(certifier.repair, found, w, flows))
    assert certifier.best().holds(1e-13)


@pytest.mark.parametrize(
    ("penalty", "d"), [(OwnL1(), 2), (OwnPairs(), 2), (OwnPairs(), 4)], ids=["l1", "one pair", "two pairs"]
)
def test_a_norm_of_the_users_has_cones(penalty, d):
    problem = joined(penalty, 0.2, d)
    found = problem.solve(gr.InteriorPoint(), gap=1e-9)
    assert found.status == "certified"
    assert found.objective == pytest.approx(problem.solve(gr.Exact(), gap=1e-9).objective, rel=1e-8)


def test_theory_takes_a_norm_of_the_users():
    """Error bounds, compatibility factors and the constants of recovery are those of the l1 norm."""
    own, ours = (joined(penalty, 5.0) for penalty in (OwnL1(), gr.L1()))
    w = np.repeat([[2.0, 1.0], [-2.0, -1.0]], 3, axis=0)
    bounds = [gr.theory.error_bound(problem, w) for problem in (own, ours)]
    assert bounds[0].holds
    assert bounds[0].bound == pytest.approx(bounds[1].bound, rel=1e-12)
    assert str(bounds[0].compatibility) == str(bounds[1].compatibility)
    edges = [(0, 1), (1, 2)]
    factors = [gr.theory.compatibility_factor(nx.cycle_graph(6), edges, p, 3).value for p in (OwnL1(), "l1")]
    assert factors[0] == factors[1]
    tables = [gr.theory.recovery(problem, [0] * 3 + [1] * 3).table for problem in (own, ours)]
    np.testing.assert_allclose(tables[0]["alpha"], tables[1]["alpha"], rtol=1e-12)


# ---- equations -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("penalty", "found"),
    [
        (OwnEquality(), True),
        (gr.Zero(), True),
        (gr.Box(0.0, 0.0), True),
        (gr.Box([0.0, 0.0], [0.0, 1.0]), False),
        (gr.Ball(1e-300), False),
        (gr.NonNegative(), False),
        (gr.L1(), False),
    ],
    ids=["own equality", "Zero", "Box at 0", "Box to 1", "tiny Ball", "NonNegative", "L1"],
)
def test_equations_are_seen_by_how_far_they_reach(penalty, found):
    assert is_equality(penalty, 2) == found


def test_an_equation_of_the_users_is_a_consensus():
    own, ours = (joined(penalty, 1.0) for penalty in (OwnEquality(), gr.Zero()))
    assert own.methods()["applies"].equals(ours.methods()["applies"])
    for method in (gr.Exact(), gr.GradientTracking(), gr.ExactDiffusion(), gr.PrimalDual()):
        found = [problem.solve(method, gap=1e-8) for problem in (own, ours)]
        assert [each.status for each in found] == ["certified"] * 2, method
        assert found[0].objective == pytest.approx(found[1].objective, rel=2e-9)
        np.testing.assert_array_equal(found[0].coef, np.tile(found[0].coef[0], (6, 1)))
        assert found[0].clusters().edges["state"].tolist() == ["fused"] * 6
    assert "is free: what is equal takes any flow" in str(own.kkt())


# ---- squares ---------------------------------------------------------------------------------------------------------
def test_a_square_of_the_users_is_a_square():
    """Known clusters, latent nodes at their means, constants that are exact."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({k: (rng.normal(size=(8, 2)), rng.normal(size=8)) for k in range(4)})
    clusters = {k: "ab"[k // 2] for k in range(4)}

    def problem(penalty):
        return gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy(clusters, (1.0, 0.5), penalty))

    own, ours = problem(OwnSquare()), problem(gr.SquaredL2())
    assert own.methods()["applies"].equals(ours.methods()["applies"])
    for method in (gr.AsyncL2GD(), gr.AsyncAL2SGD(), gr.LocalOnly()):
        found = [each.solve(method, gap=0, rounds=40, seed=1) for each in (own, ours)]
        np.testing.assert_array_equal(found[0].certificate.w, found[1].certificate.w)
    ridged = [gr.Problem(gr.SquaredLoss(data) + gr.NodePenalty(each)) for each in (OwnSquare(), gr.SquaredL2())]
    assert [list(gr.theory.constants(each).nodes["kind"]) for each in ridged] == [["exact"] * 4] * 2


@pytest.mark.parametrize(
    ("penalty", "Q"),
    [
        (OwnSquare(), np.eye(2)),
        (gr.Quadratic([[2.0, 1.0], [1.0, 3.0]]), [[2.0, 1.0], [1.0, 3.0]]),
        (gr.HuberNorm(), None),
        (gr.L2(), None),
        (gr.Zero(), None),
    ],
    ids=lambda x: type(x).__name__,
)
def test_quadratics(penalty, Q):
    found = penalty.quadratic(2)
    assert found is None if Q is None else found == pytest.approx(np.array(Q), rel=1e-14)


# ---- losses ----------------------------------------------------------------------------------------------------------
def test_a_loss_of_the_users_obeys_the_laws():
    report = check_loss(LogCosh(samples(NUMBERS)))
    assert report.ok, report


@dataclass(frozen=True)
class Tempered(gr.LogisticLoss):
    """Twice the logistic loss: its value is no logarithm of its response."""

    def value(self, x, y):
        return 2.0 * super().value(x, y)


def test_scores_go_by_what_a_loss_does():
    rng = np.random.default_rng(0)
    X, node = rng.normal(size=(12, 2)), np.arange(12) % 3
    two, three, counts = (np.arange(12) % 2, np.arange(12) % 3, np.arange(12.0))
    losses = {
        kind: kind(gr.NodeData.from_arrays(X, y, node))
        for y, kinds in (
            (two, (gr.LogisticLoss, Tempered, gr.HingeLoss, gr.SquaredHingeLoss)),
            (three, (gr.MultinomialLoss,)),
            (counts, (gr.PoissonLoss, gr.SquaredLoss, LogCosh)),
        )
        for kind in kinds
    }
    assert {kind for kind, loss in losses.items() if SCORES["log_loss"].takes(loss)} == {
        gr.LogisticLoss,
        gr.MultinomialLoss,
    }
    assert {kind for kind, loss in losses.items() if SCORES["auc"].takes(loss)} == {
        gr.LogisticLoss,
        Tempered,
        gr.HingeLoss,
        gr.SquaredHingeLoss,
    }


@dataclass(frozen=True)
class OwnSquares(AbstractQuadraticLoss):
    """Least squares again."""

    def encode(self, target):
        return np.asarray(target, dtype=float)

    @property
    def notation(self):
        return Notation("(%z - %y)^2 / 2")


def test_mixed_models_take_squares_of_the_users():
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({k: (rng.normal(size=(9, 3)), rng.normal(size=9) + k) for k in range(6)})
    found = [gr.inference.hierarchical(loss(data, scale="sum")) for loss in (OwnSquares, gr.SquaredLoss)]
    np.testing.assert_array_equal(found[0].coef, found[1].coef)
    found = [gr.inference.james_stein(loss(data)) for loss in (OwnSquares, gr.SquaredLoss)]
    np.testing.assert_array_equal(found[0].coef, found[1].coef)


# ---- what the rooms outside `terms` may know -------------------------------------------------------------------------
MAKERS = {  # modules that make a loss or a penalty of some class, and why
    "running/splitting.py": "ties the ends of one edge",
    "inference/given.py": "joins nodes that are tested by a square, to have the edges",
    "inference/mixed.py": "(5.1) is a model of squares; what is shared is a consensus",
    "methods/baselines/_servers.py": "ties clients to servers, and the clusters that were found",
    "methods/baselines/ditto.py": "solves a model of its own: squares around the model of the server",
    "methods/baselines/pfedme.py": "solves a model of its own: squares between clients and server",
    "model_file/terms.py": "the penalty of a Hierarchy where a file names none",
    "sklearn/given.py": "the ridge of the estimators",
    "testing/rounds.py": "small problems that methods are tried on",
    "theory/pooled.py": "the limit of large strengths",
    "theory/gossip.py": "the consensus that gossip reaches",
}


def concrete_names():
    return {cls.__name__ for base in (AbstractLoss, AbstractPenalty) for cls in concrete_subclasses(base)}


@cache
def known_classes():
    """For each module outside `terms` the concrete losses and penalties that it imports."""
    out, concrete = defaultdict(set), concrete_names()
    for path, found in all_imports():
        name = found.name.rpartition(".")[2]
        if (
            found.name.startswith("graphreg.terms.")
            and name in concrete
            and layer_of(path) not in ("terms", "reading_cvxpy")
        ):
            out[path].add(name)
    return out


def asked(source, names):
    """The lines where a name stands for anything else than for what is made by calling it (or for a type hint)."""
    tree = ast.parse(source)
    fine = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef():
                parts = [node.returns]
            case ast.AnnAssign() | ast.arg():
                parts = [node.annotation]
            case ast.Call():
                parts = [node.func]
            case _:
                parts = []
        fine |= {id(each) for part in parts if part is not None for each in ast.walk(part)}
    return [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in names and id(n) not in fine]


def test_no_room_outside_terms_knows_a_class():
    stray = {
        str(path.relative_to(PACKAGE)): sorted(names)
        for path, names in known_classes().items()
        if path.relative_to(PACKAGE).as_posix() not in MAKERS
    }
    assert not stray, f"ask the term by a verb or an abstract type: {stray}"


def test_makers_do_nothing_but_make():
    wrong = {
        name: lines
        for path, names in known_classes().items()
        if (name := path.relative_to(PACKAGE).as_posix()) in MAKERS
        and (lines := asked(path.read_text(encoding="utf-8"), names))
    }
    assert not wrong, f"lines that ask for a class: {wrong}"


def test_every_exception_is_in_use():
    used = {path.relative_to(PACKAGE).as_posix() for path in known_classes()}
    assert used == {*MAKERS}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("x = Zero()", []),
        ("def f(x: Zero) -> Zero:\n    y: Zero = x", []),
        ("x = (Zero if y else L1)(2)", []),
        ("isinstance(x, Zero)", [1]),
        ("isinstance(x, (int, Zero))", [1]),
        ("match x:\n    case Zero():\n        pass", [2]),
        ("KINDS = (\n    Zero,\n)", [2]),
        ("type(x) is Zero", [1]),
    ],
)
def test_the_rule_decides(source, lines):
    assert asked(source, {"Zero", "L1"}) == lines
