"""What is said of defaults, routes and numbers is true: in pages, docstrings, examples and the command line's help.

That a page prints what it shows is tested elsewhere; here each sentence of these kinds has a fact beside it, which is
read from the code or computed. A new sentence without one turns this red, and so does a default that changes.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import fields

import claims
import networkx as nx
import numpy as np
import pytest
from places import DOCS, EXAMPLES, README, ROOT

import graphreg as gr
from graphreg.auditing import referee
from graphreg.cli import main
from graphreg.fitting import recipe
from graphreg.inference import decentralised
from graphreg.inference.hypotheses import linear
from graphreg.model_file.schema import TABLES
from graphreg.mpi import solving as mpi_solving
from graphreg.terms import bounds
from graphreg.tuning import grid
from graphreg.tuning.scoring import scorer_of
from papers import Declaration

PAGES = [README, *sorted(DOCS.glob("*.md")), *sorted((DOCS / "tutorials").glob("*.md"))]
DATA = gr.NodeData.from_arrays(np.eye(4), [1.0, 2.0, 3.0, 4.0], list("aabb"))


def option(thing, name, expected):
    """The fact that an argument has this default."""

    def fact():
        found = claims.defaults(thing)[name]
        return found == expected and type(found) is type(expected)

    return fact


def flag(command, name, expected):
    """The fact that an option of the command line has this default."""
    (found,) = (each for each in main.commands[command].params if each.name == name)
    return lambda: (None if "UNSET" in repr(found.default) else found.default) == expected


def key(table, name, expected):
    """The fact that a key of the model file has this default."""
    (found,) = (each for each in fields(TABLES[table]) if each.name == name)
    return lambda: found.default == expected


def all_of(*facts):
    return lambda: all(fact() for fact in facts)


def automatic():
    """That `solve()` takes what it predicts to be the fastest."""
    return small().solve().method.startswith("Auto(")


def tree():
    """The penalty of a hierarchy that is given none."""
    return gr.Hierarchy({"a": 0}, (1, 1)).penalty == gr.SquaredL2()


def mean():
    """The scale of a loss that is given none."""
    return gr.SquaredLoss(DATA).scale == "mean"


def small():
    return gr.Problem(gr.SquaredLoss(DATA) + gr.TotalVariation(nx.path_graph(["a", "b"]), gr.L2()))


def ground():
    """The block of a node penalty that is given neither weights nor a center."""
    problem = gr.Problem(gr.SquaredLoss(DATA) + gr.NodePenalty(gr.L1()))
    return problem.form.edges[0]


def same_run(one, other):
    """That two methods make the same iterates."""
    problem = gr.Problem(gr.SquaredLoss(DATA) + gr.Consensus(nx.path_graph(["a", "b"])))
    a, b = (problem.solve(each, rounds=7, gap=0, seed=0).coef for each in (one, other))
    return np.array_equal(a, b)


def from_zero():
    """That a method without centres of its own begins at 0 where it is given no start."""
    begun = [small().solve(gr.FedADMM(), rounds=3, gap=0, start=start) for start in (None, np.zeros((2, 4)))]
    return np.array_equal(begun[0].coef, begun[1].coef)


def source_has(thing, text):
    return lambda: text in inspect.getsource(thing)


def metropolis():
    """c_ij = 1 / (max(d_i, d_j) + 1)."""
    C = gr.theory.mixing_matrix(nx.path_graph(3)).to_numpy()
    return C[0, 1] == pytest.approx(1 / 3)


# ---- docstrings ------------------------------------------------------------------------------------------------------
# What a sentence in words, or of a default that is filled in later, comes to.
MEANT = {
    "auditing.referee.audit rounds": lambda: (referee.ROUNDS, referee.MORE) == (3000, 12000),
    "fitting.recipe.fit strengths": lambda: recipe.STRENGTHS == 20,
    "inference.decentralised.estimate method": lambda: decentralised.BURN_IN == 5,
    "inference.regions.ConfidenceRegion.test value": lambda: np.all(linear(np.eye(1), None, ["x"])[1] == 0.0),
    "inputs.data.NodeData weights": lambda: np.all(DATA.weights == 1.0),
    "inputs.data.NodeData offset": lambda: np.all(DATA.offset == 0.0),
    "methods.consensus.local_sgd.LocalSGD step_size": lambda: same_run(gr.LocalSGD(), gr.LocalSGD(gr.DecreasingStep())),
    "methods.consensus.local_sgd.LocalSGD replacement": lambda: gr.LocalSGD().replacement is True,
    "methods.consensus.local_sgd.LocalSGD shuffle": lambda: gr.LocalSGD().shuffle is True,
    "methods.fed_admm.fed_admm.FedADMM as_printed": lambda: gr.FedADMM().as_printed == (),
    "methods.known_clusters.async_al2sgd.AsyncAL2SGD as_printed": lambda: gr.AsyncAL2SGD().as_printed == (),
    "mpi.solving.solve method": source_has(mpi_solving, "PrimalDual() if method is None"),
    "problem.Problem.solve method": automatic,
    "problem.Problem.solve start": from_zero,
    "running.observing.Observer memory": lambda: gr.Observer().memory == 32 * 2**20,
    "sklearn.estimators.GraphRegressor strength": option(gr.sklearn.GraphRegressor, "strength", 1.0),
    "sklearn.estimators.GraphQuantileRegressor quantile": option(gr.sklearn.GraphQuantileRegressor, "quantile", 0.5),
    "terms.hierarchy.Hierarchy penalty": tree,
    "terms.losses.quantile.QuantileLoss tau": lambda: gr.QuantileLoss(DATA).tau == 0.5,
    "terms.sums.NodePenalty weights": lambda: np.all(ground().weight == 1.0),
    "terms.sums.NodePenalty center": lambda: ground().center is None,
    "theory.gossip.mixing mixing": metropolis,
    "theory.gossip.mixing_matrix lazy": all_of(
        option(gr.GradientTracking, "lazy", True), option(gr.theory.mixing_matrix, "lazy", False)
    ),
    "theory.gossip.sparseness_exponent mixing": option(gr.theory.sparseness_exponent, "mixing", "metropolis"),
    "theory.gossip.sparseness_exponent lazy": option(gr.theory.sparseness_exponent, "lazy", True),
    "tuning.cross_validation.cross_validate grid": lambda: grid.POINTS == 20,
    "tuning.cross_validation.cross_validate scoring": lambda: scorer_of(small().form, None, None).name == "loss",
}


def test_docstrings_speak_true_of_defaults():
    """What a docstring says of the default of an argument is what the signature has."""
    false, seen = [], set()
    for said in claims.said():
        name = f"{said.of} {said.parameter}"
        holds = all(each == said.default for each in said.literals) if said.literals else said.default is None
        if name in MEANT and not holds:
            seen.add(name)
            holds = MEANT[name]()
        if not holds:
            false.append(f"{name}: {said.sentence!r}, and it is {said.default!r}")
    assert not false, "\n".join(false)
    assert len(seen) > 20
    assert not [name for name in MEANT if name not in seen and not name.startswith(("sklearn", "mpi"))]


# ---- the command line ------------------------------------------------------------------------------------------------
SAID_OF_OPTIONS = {"by default 3,000 to 12,000": lambda: (referee.ROUNDS, referee.MORE) == (3000, 12000)}
SAID_OF_OPTIONS |= {"by default 1 and 3": option(gr.testing.check_penalty, "k", (1, 3))}
SAID_OF_OPTIONS |= {"by default 20 and a tiny one": lambda: recipe.STRENGTHS == 20 and recipe.ALONE == 1e-6}


def options_of(command):
    yield from command.params
    for each in getattr(command, "commands", {}).values():
        yield from options_of(each)


def test_help_speaks_true_of_defaults():
    """A default in words is one that is filled in later; those in numbers click shows itself, or have a fact."""
    false, helped = [], 0
    for each in options_of(main):
        said = getattr(each, "help", None) or ""
        if not claims.SAID.search(said):
            continue
        helped += 1
        facts = [fact for text, fact in SAID_OF_OPTIONS.items() if text in said]
        known = bool(facts) and all(fact() for fact in facts)
        words = not re.search(r"by default [-\d\"`]", said) and (each.default is None or "UNSET" in repr(each.default))
        if not (known or words or each.default == ()):
            false.append(f"{each.name}: {said}")
    assert helped > 10
    assert not false, "\n".join(false)


# ---- pages -----------------------------------------------------------------------------------------------------------
GAP = option(gr.Problem.solve, "gap", 1e-6)
FACTS = [
    ("README.md", "until the gap is certified, 1e-6 by default", GAP),
    ("statuses.md", "(`gap=1e-6` by default)", GAP),
    ("adding-a-penalty.md", "The default `gap=1e-6`", GAP),
    ("from-scikit-learn.md", "`gap` (1e-6 by default)", option(gr.sklearn.GraphRegressor, "gap", 1e-6)),
    (
        "from-scikit-learn.md",
        'With `unseen="error"`, the default',
        option(gr.sklearn.GraphRegressor, "unseen", "error"),
    ),
    ("from-scikit-learn.md", "The default, `strength=1.0`", option(gr.sklearn.GraphRegressor, "strength", 1.0)),
    (
        "from-scikit-learn.md",
        "by default the one that `gr.path` takes",
        option(gr.sklearn.GraphRegressor, "method", None),
    ),
    (
        "adding-a-loss.md",
        "By default your floats are trusted to 16 units in the last place",
        source_has(bounds, "16.0 * ULP"),
    ),
    ("adding-a-penalty.md", "(1 and 3 by default)", option(gr.testing.check_penalty, "k", (1, 3))),
    ("auditing.md", "`seconds=` (60 by default)", option(gr.audit, "seconds", 60.0)),
    ("benchmarks.md", "`solve()`, the default method", automatic),
    ("say-the-model.md", "`Auto`, the default", automatic),
    ("model-files.md", "the first two by default", all_of(key("graph", "tail", None), key("graph", "head", None))),
    ("model-files.md", "the factor of the whole loss, 1 by default", key("loss", "strength", 1.0)),
    ("model-files.md", "1 by default; constraints and a consensus", key("total_variation", "strength", 1.0)),
    ("model-files.md", "1 by default; constraints take none", key("node_penalty", "strength", 1.0)),
    ("model-files.md", "| `strength` | number | 1 by default |", key("hierarchy", "strength", 1.0)),
    ("model-files.md", "all by default, the intercept included", option(gr.TotalVariation, "features", None)),
    ("model-files.md", "by default all but the intercept", option(gr.NodePenalty, "features", None)),
    ("model-files.md", '`"SquaredL2"` by default', tree),
    (
        "model-files.md",
        '`"Auto"` by default',
        all_of(key("solve", "method", None), automatic),
    ),
    (
        "model-files.md",
        "the relative gap to be certified, 1e-6 by default",
        all_of(key("solve", "gap", None), GAP),
    ),
    ("model-files.md", "same gap, seconds (60 by default)", flag("compare", "seconds", 60.0)),
    ("command-line.md", "by default that of the answer", flag("recover", "clusters", None)),
    ("model-files.md", "limits the whole audit, 60 by default", flag("audit", "seconds", 60.0)),
    ("strengths.md", '`"loss"` (default)', lambda: scorer_of(small().form, None, None).name == "loss"),
    (
        "strengths.md",
        "`folds=5` (default)",
        all_of(option(gr.cross_validate, "folds", 5), flag("cv", "folds", 5)),
    ),
    (
        "edge-tests.md",
        '`correction="bonferroni"` (the default)',
        option(gr.inference.edge_tests, "correction", "bonferroni"),
    ),
    ("edge-tests.md", "`alpha`, .05 by default", option(gr.inference.edge_tests, "alpha", 0.05)),
    (
        "glossary.md",
        "(the attribute `weight`, 1 by default)",
        lambda: np.all(gr.Graph.of(nx.path_graph(3)).weight == 1.0),
    ),
    ("methods.md", "By default the balance s adapts", option(gr.PrimalDual, "balance", None)),
    ("methods.md", "By default rho adapts", option(gr.ADMM, "rho", None)),
    ("methods.md", "**Full gradients** (default)", option(gr.FedADMM, "batch", None)),
    ("methods.md", '`while_away="freeze"` (default)', option(gr.FedADMM, "while_away", "freeze")),
    ("methods.md", "By default c_ij = 1/(max(d_i, d_j) + 1)", metropolis),
    ("methods.md", "(`lazy=True`); half of that by default", option(gr.GradientTracking, "lazy", True)),
    ("methods.md", "`step_size`, 1/L by default", option(gr.FedAvg, "step_size", None)),
    (
        "methods.md",
        "by default the first level of the model's `Hierarchy`",
        option(gr.ClusteredFedAvg, "clusters", None),
    ),
    ("observing.md", "By default the rounds are 0, 1, ..., 20, 22, 24", option(gr.Observer, "rounds", None)),
    (
        "papers.md",
        "(`experiment=True`, so that the tests leave it out by default)",
        option(Declaration, "experiment", False),
    ),
    ("strengths-details.md", "A number k (50 by default)", option(gr.path, "strengths", 50)),
    ("strengths-details.md", "by default the only one of the model", option(gr.path, "parameter", None)),
    ("statuses.md", "# by default all that apply, baselines too", option(gr.compare, "methods", None)),
    ("model.md", "By default a node's loss is the mean over its samples", mean),
    ("strengths.md", '`rule="min"` (default)', option(gr.cross_validate, "rule", "min")),
    ("what-there-is.md", '`scale="mean"` (default)', mean),
    (
        "duality.md",
        "by default the loss of a node is the *mean* over its rows",
        option(gr.MeanLoss, "scale", "mean"),
    ),
    ("from-cvxpy.md", '`scale="mean"` (the default)', mean),
    ("strengths.md", '`rule="paired"`, the default of `gr.fit`', option(gr.fit, "rule", "paired")),
]


def flat(page):
    return " ".join(page.read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("page", "sentence", "fact"), FACTS, ids=[f"{page}: {said}" for page, said, _ in FACTS])
def test_what_a_page_says_is_so(page, sentence, fact):
    (path,) = (each for each in PAGES if each.name == page)
    assert sentence in flat(path), f"{page} no longer says {sentence!r}: take it out of the table"
    assert fact(), f"{page} says {sentence!r}, which is no longer so"


def test_no_page_speaks_of_a_default_without_a_fact():
    """Every such sentence of the README and the docs is in the table above."""
    unheld = []
    for path in PAGES:
        text = flat(path)
        held = [m.span() for page, said, _ in FACTS if page == path.name for m in re.finditer(re.escape(said), text)]
        unheld += [
            f"{path.name}: {text[max(found.start() - 60, 0) : found.end() + 30]}"
            for found in claims.SAID.finditer(text)
            if not any(a <= found.start() and found.end() - 1 <= b for a, b in held)
        ]
    assert not unheld, "\n".join(unheld)


# ---- limits ----------------------------------------------------------------------------------------------------------
# Numbers of running text that are constants of the code: where they stand there, and what they are then.
LIMITS = [
    (
        "again.md",
        "may be certified from round 10 on, one from nothing from round 40 on",
        "running.schedule",
        {"WARM": 10, "EARLIEST": 40},
    ),
    ("auditing.md", "Balance is skipped beyond 2,400 parameters", "auditing.balance", {"LARGEST": 2400}),
    ("auditing.md", "and 40 nodes at most have their targets changed", "auditing.locality", {"NODES": 40}),
    ("auditing.md", "12,000 rounds are not enough", "auditing.referee", {"MORE": 12000}),
    (
        "certificates.md",
        "1e-6 of the parts, and 30 times the noise",
        "certificate.spot_checks.spot_checks",
        {"BEYOND": 1e-6, "NOISY": 30.0},
    ),
    ("certificates.md", "three sweeps of corrections", "certificate.proposing.enclosure", {"SWEEPS": 3}),
    ("certificates.md", "less than a hundredth of the gap", "certificate.certify", {"CHARGE": 1e-2}),
    (
        "certificates.md",
        "the gap that is asked for is above 1e-11",
        "certificate.certify",
        {"NOTHING": 1e-13, "CHARGE": 1e-2},
    ),
    (
        "certificates.md",
        "Beyond 5000 parameters only the nodes' own Hessians",
        "certificate.convexity",
        {"SPARSE": 5000},
    ),
    ("certificates.md", "pair of clusters that is open, at most 50", "running.splitting", {"MOST": 50}),
    ("certificates.md", "up to 3000 rounds of `PrimalDual`", "methods.exact", {"REFINEMENT": 3000}),
    ("certificates.md", "does not certify min(gap, 1e-7), at 1e-11", "methods.exact", {"GAP": 1e-7}),
    (
        "checkpoints.md",
        "another version of the file's format (it is 5)",
        "saving.store",
        {"VERSION": 5},
    ),
    ("checkpoints.md", "is kept, up to 32 MiB of it", "running.observing", {"KEPT": 32 * 2**20}),
    ("parts.md", "A run on 10,000 nodes or more", "distributed.parts.config", {"LARGE": 10_000}),
    (
        "confidence-regions.md",
        "takes 1000 samples per coefficient for the Hessian",
        "inference.decentralised",
        {"MANY": 1000},
    ),
    (
        "confidence-regions.md",
        "not the 100 below which there is a warning",
        "inference.decentralised",
        {"ENOUGH": 100},
    ),
    ("strengths.md", "that many strengths (20)", "tuning.grid", {"POINTS": 20}),
    ("strengths.md", "from there down over three decades", "tuning.grid", {"DECADES": 3.0}),
    ("strengths-details.md", "down over three decades", "tuning.grid", {"DECADES": 3.0}),
    ("from-scikit-learn.md", "by up to 300 rounds of `PrimalDual`", "sklearn.base", {"ROUNDS": 300}),
    ("from-scikit-learn.md", "towards a gap of 1e-14", "sklearn.base", {"AIM": 1e-14}),
    (
        "methods.md",
        "Where more than 6 n nodes are looked at in vain",
        "methods.dynamic_programming._squares",
        {"WASTED": 6},
    ),
    (
        "methods.md",
        "after some 500 rounds in three quarters of which nothing changed (by 1e-12, relative)",
        "running.schedule",
        {"FEWEST": 500, "STILL": 1e-12},
    ),
    (
        "methods.md",
        "after some 10,000 in three quarters of which the best gap fell by less than 1 %",
        "running.schedule",
        {"DRAWN": 10_000, "BETTER": 0.99},
    ),
    ("observing.md", "up to 32 MiB of them", "running.observing", {"KEPT": 32 * 2**20}),
    ("strengths-details.md", "neighbours are further than a factor of 3.2 apart", "tuning.warm", {"NEAR": 3.2}),
    ("pictures.md", "Names are shortened to 24 characters", "base.escaping", {"IN_PICTURES": 24}),
    ("proofs.md", "at most 50 edges are tried", "certificate.proof.claims", {"MOST": 50}),
    (
        "proofs.md",
        "Files above 64 MB, 2^22 lists or 2^24 entries are refused unread",
        "verify",
        {"FILE": 1 << 26, "LISTS": 1 << 22, "ENTRIES": 1 << 24},
    ),
    ("reports.md", "(for 20 seconds at most)", "reporting.reports", {"SECONDS": 20.0}),
    (
        "reports.md",
        "at most 120 positions and about 4 MB of numbers",
        "reporting.reports",
        {"MOST": 120, "DATA": 4.2e6},
    ),
    ("security.md", "long names are cut to 60 characters", "base.escaping", {"LONGEST": 60}),
]


@pytest.mark.parametrize(("page", "sentence", "module", "constants"), LIMITS, ids=[f"{x[0]}: {x[1]}" for x in LIMITS])
def test_what_a_page_says_of_a_limit_is_so(page, sentence, module, constants):
    (path,) = (each for each in PAGES if each.name == page)
    assert sentence in flat(path), f"{page} no longer says {sentence!r}: take it out of the table"
    there = vars(importlib.import_module(f"graphreg.{module}"))
    assert {name: there[name] for name in constants} == constants, f"{page} says {sentence!r}"


# ---- routes ----------------------------------------------------------------------------------------------------------
ROUTE = re.compile(r"exact|Route 1|CVXPY|Clarabel", re.I)


def programs():
    """The Python of pages, examples and the command line, with where it stands."""
    for page in PAGES:
        for block in re.finditer(r"^```python[ \t]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            yield str(page.relative_to(ROOT)), block[1]
    for folder in (EXAMPLES, ROOT / "graphreg" / "cli", ROOT / "benchmarks"):
        for path in sorted(folder.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if ".solve(" in source and ROUTE.search(source):
                yield str(path.relative_to(ROOT)), source


def answers(source):
    """Every assignment of what ``.solve(...)`` gives: the name, the method that is named, and the line as written."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assign):
            continue
        (target,) = node.targets[:1]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for name, value in zip(names, values, strict=False):
            calls = [each for each in ast.walk(value) if isinstance(each, ast.Call)]
            for call in calls:
                if isinstance(call.func, ast.Attribute) and call.func.attr == "solve":
                    method = ast.unparse(call.args[0]) if call.args else ""
                    yield ast.unparse(name), method, lines[node.lineno - 1]


def called_exact(name, line):
    """True where an answer is said to be the exact one, by its name or in the comment beside it."""
    return "exact" in name.lower() or bool(ROUTE.search(line.partition("#")[2]))


def test_what_is_called_exact_is_asked_of_exact():
    """`solve()` alone takes whatever is the fastest: what a page or an example calls exact names ``gr.Exact()``."""
    false, found = [], 0
    for place, source in programs():
        for name, method, line in answers(source):
            if called_exact(name, line):
                found += 1
                if "Exact(" not in method and method not in ("exact", "method"):
                    false.append(f"{place}: {line.strip()}")
    assert not false, "\n".join(false)
    assert found > 12


@pytest.mark.parametrize(
    ("source", "held"),
    [
        ("exact = problem.solve()", False),
        ("exact, run = problem.solve(), problem.solve(gr.PrimalDual())", False),
        ("answer = problem.solve()  # through CVXPY", False),
        ("exact = problem.solve(gr.Exact(), gap=1e-9)", True),
        ("answer = problem.solve()", True),
    ],
)
def test_a_false_route_is_seen(source, held):
    wrong = [method for name, method, line in answers(source) if called_exact(name, line) and "Exact(" not in method]
    assert (not wrong) is held
