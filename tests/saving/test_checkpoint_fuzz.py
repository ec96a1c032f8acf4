"""Checkpoints at random: cut, with bits turned, with other fields and other arrays. Each is refused with a
`CheckpointError`, or the run goes on and its certificate is honest; nothing else is raised and nothing hangs."""

from __future__ import annotations

import numpy as np
import pytest
from factories import chain
from forging import REFUSED, gone_on, places, put
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.saving import archive

EXAMPLES, MANY = 5, 500  # by default, and with --whole


def straight():
    return chain()


def kinked():
    return random_problem(540).problem


CASES = {
    "PrimalDual": (straight, gr.PrimalDual(polish=False), 45),
    "restarts": (straight, gr.PrimalDual(restarts=True), 30),
    "ADMM": (straight, gr.ADMM(), 30),
    "InteriorPoint": (straight, gr.InteriorPoint(), 4),
    "FedADMM": (straight, gr.FedADMM(), 30),
    "LocalOnly": (kinked, gr.LocalOnly(), 5),
}
SOUND = ("certified", "budget", "no_certificate", "failed")  # failed: numbers that are none are in the file


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """A file, what is in it, and how a run goes on from it."""
    problem, method, rounds = CASES[request.param]
    path = tmp_path / "run"
    problem().solve(method, gap=1e-9, rounds=rounds, checkpoint=path, on_failure="return", seed=1)
    if request.param == "LocalOnly":  # it certifies its own problem, which is another one
        return path, lambda: _goes_on(path, problem, method)
    return path, lambda: gone_on(path, problem, method, rounds=rounds + 15)[0]


def _goes_on(path, problem, method):
    try:
        return problem().solve(method, gap=1e-9, rounds=20, checkpoint=path, on_failure="return").status
    except gr.errors.CheckpointError:
        return REFUSED


def tried(whole, arguments, check):
    """Run a check on random arguments; on the same ones each time, unless the whole sweep is asked for."""
    many = settings(
        max_examples=MANY if whole else EXAMPLES,
        derandomize=not whole,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    many(given(arguments)(check))()


def test_damaged_bytes(case, whole):
    """Cuts, turned bits, and pieces that stand elsewhere: sums tell, or nothing that counts was changed."""
    path, go_on = case
    content = path.read_bytes()
    place = st.integers(0, len(content) - 1)
    damage = st.one_of(
        st.tuples(st.just("cut"), place, place),
        st.tuples(st.just("turn"), place, st.integers(1, 255)),
        st.tuples(st.just("drop"), place, st.integers(1, 64)),
        st.tuples(st.just("copy"), place, place),
    )

    def check(damage):
        what, at, other = damage
        changed = {
            "cut": lambda: content[:at],
            "turn": lambda: content[:at] + bytes([content[at] ^ other]) + content[at + 1 :],
            "drop": lambda: content[:at] + content[at + other :],
            "copy": lambda: content[:at] + content[other : other + 64] + content[at:],
        }[what]()
        path.write_bytes(changed)
        assert go_on() in (REFUSED, *SOUND)
        if what in ("cut", "drop"):
            path.write_bytes(changed)
            assert go_on() == REFUSED

    tried(whole, damage, check)


def test_forged_fields(case, whole):
    """One place of the header holds something else, and all sums are right."""
    path, go_on = case
    header, arrays = archive.read(path)
    ways = [at for at in places(header) if at and at[0] not in ("arrays", "layouts") and at[:1] != ("of",)]
    plain = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
    )
    kinds = st.sampled_from(["float", "numpy", "array", "generator", "site", "seed", "tuple", "list", "dict", "record"])
    trees = st.recursive(
        plain,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(kinds, inner, max_size=2),
            st.dictionaries(kinds, st.lists(inner, max_size=3), min_size=1, max_size=1),
            st.sampled_from([{"float": "nan"}, {"float": "-inf"}, {"array": 0}, {"tuple": []}]),
        ),
        max_leaves=4,
    )

    def check(drawn):
        way, value = drawn
        archive.write(path, put(header, way, value), arrays)
        assert go_on() in (REFUSED, *SOUND)

    tried(whole, st.tuples(st.sampled_from(ways), trees), check)


def test_forged_arrays(case, whole):
    """One array holds other numbers, or has another shape or type."""
    path, go_on = case
    header, arrays = archive.read(path)
    shapes = st.lists(st.integers(0, 9), max_size=3).map(tuple)
    kinds = st.sampled_from(["f8", "f4", "i8", "c16", "?", "S3", "U2", "u1", "M8[s]"])
    numbers = st.sampled_from([0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e300, 5e-324, 1e-3])
    other = st.one_of(
        st.tuples(st.just("scale"), numbers),
        st.tuples(st.just("shift"), numbers),
        st.tuples(st.just("one"), numbers),
        st.tuples(st.just("new"), st.tuples(shapes, kinds)),
    )

    def check(drawn):
        name, (what, with_) = drawn
        array = np.ascontiguousarray(arrays[name])
        with np.errstate(all="ignore"):
            if what == "new":
                array = np.zeros(*with_)
            elif what == "one" and array.size:
                array = array.copy()
                array.flat[0] = with_ if array.dtype.kind == "f" else 77
            else:
                moved = array * with_ if what == "scale" else array + with_
                array = moved.astype(array.dtype, casting="unsafe")
        archive.write(path, header, {**arrays, name: array})
        assert go_on() in (REFUSED, *SOUND)

    tried(whole, st.tuples(st.sampled_from(list(arrays)), other), check)
