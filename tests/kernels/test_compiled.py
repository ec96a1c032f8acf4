"""Compiled loops, and what happens where they cannot be compiled."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from graphreg.base import clock, compiled
from graphreg.base.compiled import Code
from graphreg.fast import compiler


@pytest.fixture
def fresh():
    """Nothing is remembered of what was found before."""

    def forget():
        for each in (compiled.compiles, compiler.compiled, compiler.specialised):
            each.cache_clear()

    forget()
    yield
    forget()


def doubled(x):
    return 2 * x


def endless(given, found):
    """As long as a test may take, of many numbers."""
    until = time.monotonic() + 30.0 * (len(given[0]) > compiled.PLAINLY_LONG)
    while time.monotonic() < until:
        pass


def test_without_numba_a_kernel_is_the_function(fresh, monkeypatch):
    monkeypatch.setattr(compiled, "find_spec", lambda name: None)
    assert compiler.compiled(doubled) is doubled


def test_a_numba_that_refuses_this_numpy_is_none(fresh, monkeypatch):
    monkeypatch.setattr(compiled, "find_spec", lambda name: name)

    def refuse(name):
        raise ImportError("Numba needs NumPy 2.2 or less")

    monkeypatch.setattr(compiled, "import_module", refuse)
    assert not compiled.compiles()


def test_where_numba_may_not_compile_it_is_not_used(fresh, monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert not compiled.compiles()


def test_where_nothing_can_be_kept_on_disk_it_compiles_all_the_same(fresh, monkeypatch):
    numba = pytest.importorskip("numba")
    asked = []

    def njit(cache=False, **how):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    assert compiler.compiled(doubled) is doubled
    assert asked == [True, False]


def test_settings_of_numba_are_as_before(fresh):
    numba = pytest.importorskip("numba")
    before = numba.config.SLP_VECTORIZE
    assert compiler.compiled(doubled)(3) == 6
    assert before == numba.config.SLP_VECTORIZE


def test_one_kernel_for_each_width(fresh):
    made = []

    def make(width):
        made.append(width)
        return doubled

    assert compiler.specialised(make, 3) is compiler.specialised(make, 3)
    compiler.specialised(make, 4)
    assert made == [3, 4]
    assert compiler.width_of(compiler.WIDEST) == compiler.WIDEST
    assert compiler.width_of(compiler.WIDEST + 1) == 0


# ---- what code costs -------------------------------------------------------------------------------------------------
@pytest.fixture
def paid(fresh, monkeypatch, tmp_path):
    """Code has to be paid for, and none is on disk."""
    monkeypatch.setattr(compiled, "EARLY", False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled.Code, "loaded", False)
    compiled._folder.cache_clear()
    yield tmp_path
    compiled._folder.cache_clear()


def test_code_is_at_hand_when_doing_without_has_cost_as_much(paid, monkeypatch):
    monkeypatch.setattr(compiled, "compiles", lambda: True)
    code = Code("some", 2.0)
    assert code.price == 2.0
    code.price -= 1.5
    assert code.price == 0.5
    assert not Code.loaded
    code.buy()
    assert code.price == 0.0
    assert Code.loaded
    assert Code("some", 2.0).price == 0.0  # of code that is on disk only the first has to be waited for
    assert Code("other", 2.0).price == 2.0
    monkeypatch.setattr(Code, "loaded", False)
    assert Code("some", 2.0).price == compiled.LOADING
    monkeypatch.setattr(sys, "version", "another")
    compiled._folder.cache_clear()
    assert Code("some", 2.0).price == 2.0
    monkeypatch.setattr(compiled, "EARLY", True)
    assert Code("some", 2.0).price == 0.0


def test_what_is_on_disk_need_not_be_noted_there(paid, monkeypatch):
    monkeypatch.setattr(compiled, "compiles", lambda: True)
    (paid / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(paid / "file"))
    code = Code("some", 2.0)
    code.buy()
    assert code.price == 0.0
    assert Code("some", 2.0).price == 2.0


def test_where_nothing_compiles_nothing_is_bought(paid, monkeypatch):
    monkeypatch.setattr(compiled, "compiles", lambda: False)
    code = Code("some", 2.0)
    code.buy()
    assert not Code.loaded
    assert not list(paid.iterdir())


def test_recursions_are_compiled_when_python_took_as_long(paid, monkeypatch):
    """Or where they are on disk; the numbers are the same."""
    pytest.importorskip("numba")
    for name, value in (("LARGE", 4), ("SPEED", 6), ("COMPILING", 3.0), ("LOADING", 1.5)):  # a second each time
        monkeypatch.setattr(compiled, name, value)

    def summed(given, out):
        out[0][0] = given[0][0] + given[0][1]

    def bought(times):
        recursion, found = compiled.Recursion(summed), []
        for _ in range(times):
            out = np.zeros(1)
            recursion((np.array([0.1, 0.2, 0.3, 0.4, 0.5]),), (out,))
            assert out[0] == 0.1 + 0.2
            found.append("machine" in vars(recursion))
        return found

    assert bought(5) == [False, False, True, True, True]
    assert bought(2) == [True, True]
    monkeypatch.setattr(Code, "loaded", False)
    assert bought(3) == [False, True, True]


def test_what_python_goes_through_for_long_is_broken_off(fresh, monkeypatch):
    monkeypatch.setattr(compiled, "compiles", lambda: False)
    recursion = compiled.Recursion(endless)
    few, many = ((np.ones(size),) for size in (3, compiled.PLAINLY_LONG + 1))
    recursion(few, few)
    with clock.within(0.0), pytest.raises(clock.OutOfTimeError):
        recursion(many, many)
