"""The parts of a checkpoint: states come back as they were, and what is another is told apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from checkpoint_cases import ITERATIVE, SEEDS, Tilted
from core_cases import iterate
from factories import chain, named, thinned
from sameness import assert_identical, bits, carried

from graphreg.datasets import random_problem
from graphreg.errors import CheckpointError
from graphreg.methods import AbstractIteration
from graphreg.methods.baselines._baseline import AbstractBaseline
from graphreg.saving.fingerprint import entry
from graphreg.saving.packing import JsonTree, laid_out, layout


@pytest.mark.parametrize(("seed", "method"), thinned(SEEDS, ITERATIVE, every=3), ids=named)
def test_the_state_of_every_method_can_be_kept(seed, method, tmp_path):
    """Of every method on some of the problems; on all of them with ``make test ARGS=--whole``."""
    form = random_problem(seed).problem.form
    if method.missing(form):
        pytest.skip(f"{method.name} does not apply")
    if isinstance(method, AbstractBaseline):
        form, method = method.target(form), method.iteration
    for state in iterate(method, form, [0, 1, 12]):
        assert_identical(carried(state, tmp_path), state)


@dataclass(frozen=True)
class Everything:
    numbers: tuple
    arrays: list
    names: dict
    streams: tuple
    nothing: None = None


def test_everything_comes_back_as_it_was(tmp_path):
    base = np.arange(24.0).reshape(4, 6)
    once = np.random.default_rng(5)
    once.spawn(2)
    arrays = [
        np.array([0.0, -0.0, np.nan, np.inf, 5e-324]),
        np.asfortranarray(base),
        base[::2, ::-1],
        base.T,
        np.broadcast_to(np.array([1.0, 2.0]), (3, 2)),
        np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(3, dtype=np.int32),
        np.array([True, False]),
        np.array(2.5),
        np.zeros((0, 3)),
        np.arange(2.0).astype(">f8"),
    ]
    numbers = (1, True, 2**80, 0.1, -0.0, float("inf"), float("nan"), np.float64(0.1), np.float32(0.1), np.int32(7))
    value = Everything(
        (*numbers, (), ((None,), "text")),
        arrays,
        {"a": [1, (2,)], "b": {}},
        (once, np.random.Generator(np.random.MT19937(3)), np.random.SeedSequence(4)),
    )
    once.integers(2**20, size=3, dtype=np.uint32)
    back = carried(value, tmp_path)
    assert_identical(back, replace(value, streams=back.streams))
    for one, two in zip(value.streams[:2], back.streams[:2], strict=True):
        assert_identical(one, two)
        assert bits(one.standard_normal(9)) == bits(two.standard_normal(9))
    assert value.streams[0].spawn(1)[0].integers(10**9) == back.streams[0].spawn(1)[0].integers(10**9)
    assert bits(value.streams[2].generate_state(4)) == bits(back.streams[2].generate_state(4))


def test_one_object_is_one_object_again(tmp_path):
    array, stream = np.arange(3.0), np.random.default_rng(0)
    one, two, first, second, other = carried((array, array, stream, stream, array.copy()), tmp_path)
    assert one is two
    assert first is second
    assert one is not other


def test_a_layout_is_kept():
    array = np.arange(60.0).reshape(3, 4, 5)[::-1, :, ::2]
    again = laid_out(np.ascontiguousarray(array), layout(array))
    assert again.strides == array.strides
    assert np.array_equal(again, array)
    assert layout(np.zeros((3, 4))) is None


class Hidden:
    pass


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Hidden(), r"memory\[1\] is a .*Hidden.*cannot hold"),
        (np.array([None, 1]), r"memory\[1\] is a numpy:ndarray"),
        (np.ma.array([1.0]), "MaskedArray"),
        ({1: 2}, "dict"),
        (lambda: 0, "function"),
        (frozenset(), "frozenset"),
    ],
)
def test_what_cannot_be_kept_is_named(value, said):
    with pytest.raises(CheckpointError, match=said):
        JsonTree.of((0, value), "memory")


def test_a_state_that_cannot_be_kept_is_refused_before_the_first_round(tmp_path):
    @dataclass(frozen=True)
    class Local:
        view: object
        w: np.ndarray

    class Method(AbstractIteration):
        def missing(self, form):
            return ()

        def init(self, view, start):
            return Local(view, np.zeros(view.form.shape))

        def step(self, state):
            raise AssertionError("no round is to be run")

        def point(self, state):
            return state.w, None, None

    with pytest.raises(CheckpointError, match=r"Local.*importable"):
        chain().solve(Method(), rounds=3, checkpoint=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_the_same_is_the_same_whatever_its_type_and_layout():
    base = np.arange(6.0).reshape(2, 3)
    assert entry(base) == entry(np.asfortranarray(base)) == entry(np.repeat(base, 2, axis=1)[:, ::2])
    assert entry(1) == entry(1.0) == entry(np.float64(1)) == entry(np.int32(1)) == "1.0"
    assert entry({"a": 1, "b": 2}) == entry({"b": 2, "a": 1})
    assert entry({"u", "v", "w"}) == entry({"w", "v", "u"})
    # as on every machine, with every version of numpy
    assert entry(np.arange(3.0)) == "#1d4d280ada4eeba6bf8c406316f292fc"
    assert entry(("a", 1, None, {"x": (2.5, True)})) == "#e60ef7539abf63f6076d17953b05b98f"


def test_what_is_another_is_told_apart():
    def of(k, shift=0.0):
        return lambda z, at=shift: k * z + at

    values = [(1, 2), (2, 1), ((1,), 2), (1, "2"), (1, None), (True, 2), "at 0x1", "at 0x2", ("at 0x1",), ("at 0x2",)]
    values += [
        np.arange(2),
        np.arange(2.0),
        np.arange(2.0)[None],
        of(1.0),
        of(2.0),
        of(1.0, 1.0),
        Tilted(1.0),
        Tilted(2.0),
    ]
    assert len({entry(value) for value in values}) == len(values)
    assert entry(of(1.0)) == entry(of(1.0))
