"""Copies and pickles: what was read-only stays so; what cannot be sent says so."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from factories import chain

import graphreg as gr
from graphreg.errors import ModelError
from graphreg.inputs.labels import Frozen

WAYS = {"pickle": lambda each: pickle.loads(pickle.dumps(each)), "deepcopy": copy.deepcopy, "copy": copy.copy}
WHOLE = {
    "data": gr.NodeData.from_arrays(np.eye(3), np.ones(3), list("abc"), np.ones(3), offset=np.ones(3)),
    "targets alone": gr.NodeData.from_arrays(None, np.eye(3), range(3)),
    "graph": gr.Graph.chain("abc"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WHOLE)
def test_copies_stay_read_only(name, way):
    found = WAYS[way](WHOLE[name])
    for each in found.ARRAYS:
        array = getattr(found, each)
        if array is not None:
            np.testing.assert_array_equal(array, getattr(WHOLE[name], each))
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 7


def test_every_class_whose_arrays_are_read_only_is_tried():
    assert {type(each) for each in WHOLE.values()} == set(Frozen.__subclasses__())


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_a_problem_and_its_answer_hold_data_that_stay(way):
    problem = WAYS[way](chain())
    found = WAYS[way](chain().solve())
    for data in (problem.form.samples[0].loss.data, found.form.samples[0].loss.data):
        with pytest.raises(ValueError, match="read-only"):
            data.y[:] = 7


def test_an_observer_can_be_sent():
    observer = pickle.loads(pickle.dumps(gr.Observer(["w", "flows", "state.x.w"], rounds=1)))
    found = chain().solve(gr.PrimalDual(), rounds=2, on_failure="return", observe=observer)
    assert sorted(found.observed) == ["flows", "state.x.w", "w"]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_compiled_stays_where_it_is(way):
    with pytest.raises(ModelError, match="send the problem, and compile it there"):
        WAYS[way](chain().compile())
