"""Declaring is registering: a loss, penalty or method is everywhere because its class exists."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field

import numpy as np
import pytest
from law_cases import LOSSES, NUMBERS, PENALTIES, samples
from listings import ROOT, rendered
from own_terms import LogCosh, OwnL1, OwnSquare

import graphreg as gr
from benchmarks.wild import wild_problem
from graphreg.base.declaring import declared, needs_no_options, room_of
from graphreg.catalogue import BASES
from graphreg.datasets.random_problems import LOSSES as DRAWN_LOSSES
from graphreg.datasets.random_problems import PENALTIES as DRAWN_PENALTIES
from graphreg.datasets.random_problems import random_problem
from graphreg.methods import METHODS, listed

VECTORS = {"MeanLoss", "MultinomialLoss"}  # drawn as "mean" and "multinomial"


class Idle(gr.AbstractIteration):
    """A method of the user's, which applies to no problem."""

    def missing(self, form):
        return ("nothing is good enough",)

    def init(self, site, start):
        raise NotImplementedError

    step = point = init


@dataclass(frozen=True)
class Choosy(Idle, gr.AbstractIteration):
    """A variant of a final class."""


@dataclass(frozen=True)
class Demanding(gr.AbstractIteration):
    """A method with an option that has no default."""

    pace: float = field()
    missing, init, step, point = Idle.missing, Idle.init, Idle.step, Idle.point


@dataclass(frozen=True)
class PoissonLoss(gr.Loss):
    """A loss of the user's with a name that is taken."""

    value = gradient = curvature = conjugate = cvxpy = gr.SquaredLoss.value


# ---- the library -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", BASES)
def test_every_class_has_its_name(kind):
    """Written down by hand nowhere, so it is compared with what the files hold."""
    room = room_of(BASES[kind])
    files = [name for name in sys.modules if name.startswith(f"{room}.") and "._" not in name]
    held = {
        name: each
        for file in files
        for name, each in vars(sys.modules[file]).items()
        if inspect.isclass(each) and issubclass(each, BASES[kind]) and not inspect.isabstract(each)
        if each.__module__ == file
        and not name.startswith("_")
        and not name.endswith(("CvxpyPenalty", "ProxPenalty", "CvxpyLoss"))
    }
    assert len(held) > 8
    assert declared(BASES[kind], users=False) == held
    assert {name: getattr(gr, name) for name in held} == held
    assert set(held) <= set(gr.__all__)
    assert set(held) <= set(dir(gr))


def test_nothing_else_is_in_the_catalogue():
    names = [name for base in BASES.values() for name in declared(base, users=False)]
    assert sorted(names) == sorted(gr.catalogue.__all__)
    assert len(set(gr.__all__)) == len(gr.__all__)


def test_the_order_is_that_of_names_whatever_was_imported_first():
    code = "import graphreg.terms.penalties.zero, graphreg as gr\n"
    code += "print(*gr.__all__, *(method.name for method in gr.methods.METHODS))"
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert other.stdout.split() == [*gr.__all__, *(method.name for method in METHODS)]
    for base in BASES.values():
        names = list(declared(base, users=False))
        assert names == sorted(names)


def test_every_method_of_the_library_is_listed():
    assert {type(method) for method in METHODS} == set(declared(BASES["method"], users=False).values())
    names = [method.name for method in METHODS]
    assert names[:4] == ["Auto", "DynamicProgramming", "Exact", "LinearSystem"]
    assert names.index("PrimalDual") < names.index("FedAvg")  # baselines come last


@pytest.mark.parametrize("name", rendered())
def test_what_is_written_down_follows_the_classes(name):
    assert (ROOT / name).read_text(encoding="utf-8") == rendered()[name], f"{name} is stale; run make listings"


def test_a_file_in_its_room_is_all_it_takes(tmp_path):
    """In a copy of the package with one file more; nothing else is told of it."""
    import shutil

    shutil.copytree(ROOT / "graphreg", tmp_path / "graphreg")  # with what is compiled, which is much of the time
    source = inspect.getsource(OwnL1).replace("class OwnL1(gr.Penalty)", "class Nearby(AbstractPenalty)")
    head = "import cvxpy as cp\nimport numpy as np\n\nfrom .base import AbstractPenalty\n\n\n"
    (tmp_path / "graphreg" / "terms" / "penalties" / "nearby.py").write_text(head + source)
    code = """
        import graphreg as gr
        from graphreg.model_file.families import find
        from graphreg.model_file.schema import Place

        assert "Nearby" in gr.__all__ and "Nearby" in gr.catalogue.__all__
        assert find("penalty", "Nearby", Place("model.toml"), []) is gr.Nearby
        assert gr.datasets.random_problem(3, penalty="Nearby").problem.solve().status == "certified"
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    found = subprocess.run(run, cwd=tmp_path, env=None, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


# ---- the user's ------------------------------------------------------------------------------------------------------
def test_classes_of_the_users_are_known():
    assert declared(BASES["loss"])["LogCosh"] is LogCosh
    assert declared(BASES["penalty"])["OwnSquare"] is OwnSquare
    assert "LogCosh" not in declared(BASES["loss"], users=False)
    assert not hasattr(gr, "LogCosh")


def test_a_method_of_the_users_is_listed():
    problem = gr.Problem(gr.SquaredLoss(samples(NUMBERS)))
    table = problem.methods()
    assert table.loc["Idle", "missing"] == "nothing is good enough"
    assert table.index[: len(METHODS)].tolist() == [method.name for method in METHODS]  # theirs come after ours
    assert not {"Choosy", "Demanding"} & set(table.index)
    assert not needs_no_options(Demanding)


def test_what_does_not_count():
    class Local(Idle, gr.AbstractIteration):
        pass

    names = [type(method) for method in listed()]
    assert Local not in names
    assert Choosy not in names
    assert declared(BASES["loss"])["PoissonLoss"] is gr.PoissonLoss


def test_a_class_that_is_written_again_counts_once(monkeypatch):
    again = type("Idle", (gr.AbstractIteration,), dict(vars(Idle)))
    again.__module__ = __name__
    assert declared(BASES["method"])["Idle"] is Idle
    monkeypatch.setattr(sys.modules[__name__], "Idle", again)
    assert declared(BASES["method"])["Idle"] is again


# ---- random problems -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", sorted({*declared(BASES["loss"], users=False), "LogCosh"} - VECTORS))
def test_every_loss_is_drawn(loss, whole):
    """With one more wild problem, which takes hinges long, with ``make test ARGS=--whole``."""
    wild = (wild_problem(seed, loss=loss) for seed in ((4, 0) if whole else (4,)))
    for drawn in (random_problem(4, loss=loss), *wild):
        assert {part.family for part in drawn.plain.samples} == {loss}
        assert {type(block.loss).__name__ for block in drawn.problem.form.samples} == {loss}
        solution = drawn.problem.solve(gap=1e-4, on_failure="return")  # without a ridge an infimum may be at infinity
        assert -np.inf < solution.certificate.dual <= solution.certificate.primal < np.inf, drawn.description


@pytest.mark.parametrize("penalty", sorted({*declared(BASES["penalty"], users=False), "OwnL1", "OwnSquare"}))
def test_every_penalty_is_drawn(penalty):
    drawn = random_problem(4, penalty=penalty)
    assert penalty in {edge.kind for edge in drawn.plain.edges}
    assert penalty in {type(edge.penalty).__name__ for edge in drawn.problem.form.edges}
    assert drawn.problem.solve(gap=1e-4).status == "certified", drawn.description


def test_a_seed_alone_chooses_from_the_tables():
    assert {random_problem(seed).loss for seed in range(20)} == set(DRAWN_LOSSES)
    assert {random_problem(10 * k).penalty for k in range(10)} == set(DRAWN_PENALTIES)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(gr.errors.TermError, match="no loss 'LogCoshh' to draw; did you mean 'LogCosh'"):
        random_problem(0, loss="LogCoshh")
    with pytest.raises(gr.errors.TermError, match="MultinomialLoss takes none"):
        random_problem(0, loss=gr.MultinomialLoss)

    class Hidden(OwnL1):
        pass

    with pytest.raises(gr.errors.TermError, match="at the top level of a module"):
        random_problem(0, penalty=Hidden)


# ---- losses of five methods ------------------------------------------------------------------------------------------
def five(loss):
    """The class with the five methods of a loss and no other."""
    names = ("value", "gradient", "curvature", "conjugate", "cvxpy", "encode", "response")
    return dataclass(frozen=True)(type("Five", (gr.Loss,), {name: getattr(type(loss), name) for name in names}))


SMOOTH = [
    loss for loss in LOSSES if type(loss) in (gr.SquaredLoss, gr.LogisticLoss, gr.PoissonLoss, gr.SquaredHingeLoss)
]


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
def test_the_rest_is_derived(loss):
    """As the closed forms have it."""
    bare = five(loss)(loss.data, scale=loss.scale)
    y = np.repeat(loss.targets()[:6], 8)
    rng = np.random.default_rng(1)
    v, step = 5.0 * rng.standard_normal(len(y)), 10.0 ** rng.uniform(-2, 2, len(y))
    np.testing.assert_allclose(bare.prox(v, step, y), loss.prox(v, step, y), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(bare.domain(y), loss.domain(y))
    assert (bare.prices.interior(y) == loss.prices.interior(y)).all()
    inside, bend = loss.gradient(v, y), loss.curvature(v, y)
    curved = bend > 1e-6
    assert curved.sum() > 10
    np.testing.assert_allclose(bare.conductance(inside, y)[curved], bend[curved], rtol=1e-6)
    assert bare.smoothness() == np.inf
    assert (bare.typical_curvature(v, y) > 0).all()
    bound = bare.conjugate_bound(inside, np.zeros(len(y)), y)
    assert (bound >= loss.conjugate(inside, y)).all()


def test_a_dual_form_that_was_not_written_is_refused():
    loss = five(LOSSES[0])(LOSSES[0].data)
    problem = gr.Problem(loss + gr.NodePenalty(gr.SquaredL2()))
    with pytest.raises(gr.errors.TermError, match="Five has no method cvxpy_conjugate, which the dual form needs"):
        problem.compile(form="dual")
    assert problem.solve(gr.Exact()).status == "certified"
    assert "Five(" in str(problem)


def test_coupled_predictors_need_a_prox_of_their_own():
    kinds = next(loss for loss in LOSSES if isinstance(loss, gr.MultinomialLoss))
    with pytest.raises(gr.errors.TermError, match="couples the coordinates of its predictor"):
        gr.Loss.prox(kinds, np.zeros((2, 2)), 1.0, np.eye(2))


def test_every_term_has_a_case():
    """The laws are tried on it."""
    cases = {type(each).__name__ for each in (*LOSSES, *PENALTIES)} - {"CvxpyLoss"}  # which a function makes
    names = {name for kind in ("loss", "penalty") for name in declared(BASES[kind], users=False)}
    assert names == cases
