"""Compiled loops, and what happens where they cannot be compiled."""

from __future__ import annotations

import pytest

from graphreg.base import compiled
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
