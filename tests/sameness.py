"""Runs, files and states that are the same to the last bit, and runs that are broken off."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np
from core_cases import view_of
from factories import chain

import graphreg as gr
from graphreg.saving import archive
from graphreg.saving.packing import JsonTree

ROUNDS = 120  # that runs to be broken off have at most, where a round costs much


def bits(value):
    """A number or an array as bytes: 0.0 and -0.0 differ, nan is itself."""
    if isinstance(value, int):
        return value
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()


def facts(run):
    """All that a run reports, but for the seconds."""
    c = run.certificate
    arrays = [c.w, *c.dual_point.flows, *c.dual_point.prices]
    return (
        [bits(x) for x in (c.primal, c.dual, c.charge, c.relative_gap, *arrays, run.coef)],
        (c.scope, c.note, run.status, run.message, run.method, run.rounds),
        (run.ledger.rounds, run.ledger.messages, run.ledger.bytes),
        [(r.round, r.certified, bits([r.relative_gap, r.primal, r.dual])) for r in run.trace.records],
    )


def contents(path):
    """The contents of a checkpoint, but for the seconds and the versions."""
    header, arrays = archive.read(path)

    def timeless(tree):
        if isinstance(tree, dict):
            return {key: timeless(each) for key, each in tree.items() if key not in ("seconds", "check_seconds")}
        return [timeless(each) for each in tree] if isinstance(tree, list) else tree

    header.pop("versions")
    return timeless(header), {name: (*bits(array), array.strides) for name, array in arrays.items()}


def assert_identical(one, two, where="state"):
    """Types, bits, layouts and signs of zero, all the way down."""
    assert type(one) is type(two), where
    if is_dataclass(one):
        for f in fields(one):
            if f.name != "view":
                assert_identical(getattr(one, f.name), getattr(two, f.name), f"{where}.{f.name}")
    elif isinstance(one, (tuple, list)):
        assert len(one) == len(two), where
        for k, (a, b) in enumerate(zip(one, two, strict=True)):
            assert_identical(a, b, f"{where}[{k}]")
    elif isinstance(one, dict):
        assert list(one) == list(two), where
        for key in one:
            assert_identical(one[key], two[key], f"{where}[{key!r}]")
    elif isinstance(one, np.ndarray):
        assert one.strides == two.strides or one.size == 0, where
        assert bits(one) == bits(two), where
    elif isinstance(one, np.random.Generator):
        assert_identical(one.bit_generator.state, two.bit_generator.state, where)
    else:
        assert bits(one) == bits(two), where


def broken(problem, method, path, breaks, every=10_000, **budget):
    """The answer of a run that is broken off after each of the given rounds, each time with a fresh problem."""
    for k in breaks:
        problem().solve(method, checkpoint=gr.Checkpoint(path, rounds=every), **{**budget, "rounds": k})
    return problem().solve(method, checkpoint=gr.Checkpoint(path, rounds=every), **budget)


def carried(value, tmp_path):
    """Through a file and back."""
    view = view_of(chain(n=2).form)
    packed = JsonTree.of(value, "state")
    arrays = {str(k): array for k, array in enumerate(packed.arrays)}
    archive.write(tmp_path / "carried", {"tree": packed.tree, "generators": packed.generators}, arrays)
    header, read = archive.read(tmp_path / "carried")
    return JsonTree(header["tree"], header["generators"], list(read.values())).value(view)
