"""``graphreg audit``: an algorithm of one's own, named on the command line, on the problem of a model file."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import pytest
from cli_cases import run
from factories import interrupt

from graphreg.cli import exits

ALGORITHMS = """
import numpy as np


def primal_dual(problem, start=None, seed=None, factor=1.0):
    o = problem.oracles()
    step = 0.99 / np.linalg.norm(o.K.toarray(), 2)
    w, u = np.zeros((o.n, o.d)), np.zeros((len(o.tail), o.d))
    while True:
        new = o.prox(w - step * factor * (o.K.T @ u), step)
        u = o.dual_prox(u + step * (o.K @ (2.0 * new - w)), step)
        w = new
        yield w


def wrong_sign(problem, start=None, seed=None):
    return primal_dual(problem, start, seed, -1.0)


def interrupted(problem, start=None, seed=None):
    yield np.zeros(problem.form.shape)
    raise KeyboardInterrupt


def markup(problem, start=None, seed=None):
    yield np.zeros(problem.form.shape)
    raise ValueError("<script>alert(1)</script>\\x1b[2J")


three = 3
"""


@pytest.fixture
def mine(model):
    (model.parent / "mine_audited.py").write_text(ALGORITHMS)
    return model


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Modules that a test imports are not found by the next."""
    monkeypatch.delitem(sys.modules, "mine_audited", raising=False)
    yield
    sys.modules.pop("mine_audited", None)


def test_a_right_algorithm(mine):
    done = run("audit", mine, "mine_audited:primal_dual", "--rounds", "400", "--seed", "3")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert done.stdout.startswith("primal_dual (function): right")
    assert re.search(r"\d+ rounds, seed 3", done.stdout)


def test_a_wrong_one_is_named(mine, tmp_path):
    page = tmp_path / "report.html"
    done = run("audit", mine, "mine_audited:wrong_sign", "--html", page, "--rounds", "300")
    assert done.exit_code == 6, done.stdout + done.stderr
    assert "sign" in done.stdout.splitlines()[0]
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "wrong_sign (function)" in text
    again = run("audit", mine, "mine_audited:wrong_sign", "--html", page)
    assert again.exit_code == 2
    assert "report.html exists" in again.stderr


def test_a_method_of_the_library(mine):
    assert run("audit", mine, "PrimalDual(balance=1.0, relaxation=1.0)", "--rounds", "300").exit_code == 0


@pytest.mark.parametrize(("verdict", "code"), [("right", 0), ("undecided", 4), ("wrong", 6), ("no limit", 6)])
def test_exit_codes(verdict, code):
    assert exits.of_audit(SimpleNamespace(ok=verdict == "right", interrupted=False, verdict=verdict)) == code


def test_ctrl_c_tells_what_was_found(mine):
    done = run("audit", mine, "mine_audited:interrupted")
    assert done.exit_code == 130
    assert "Ctrl-C" in done.stdout


def test_what_an_algorithm_says_is_not_obeyed(mine, tmp_path):
    done = run("audit", mine, "mine_audited:markup", "--html", tmp_path / "report.html")
    assert done.exit_code == 6
    assert "\x1b" not in done.stdout
    text = (tmp_path / "report.html").read_text()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine_audited:primal_dul", "did you mean 'primal_dual'"),
        ("no_such_module:f", "there is no module 'no_such_module'"),
        ("mine_audited:three", "an algorithm is a function"),
        ("PrimalDul", "PrimalDual"),
        ("Exact", "no rounds"),
    ],
)
def test_what_is_no_algorithm_is_refused(mine, name, said):
    done = run("audit", mine, name)
    assert done.exit_code == 2
    assert said in done.stderr


def test_the_code_of_the_model_file_still_needs_leave(mine):
    mine.write_text(mine.read_text().replace('"SquaredLoss"', '"mine_audited:Loss"'))
    done = run("audit", mine, "mine_audited:primal_dual")
    assert done.exit_code == 2
    assert "--allow-code" in done.stderr


def test_it_is_interrupted_while_the_model_is_read(mine, monkeypatch):
    monkeypatch.setattr("graphreg.model_file.read_model", interrupt)
    assert run("audit", mine, "mine_audited:primal_dual").exit_code == 130
