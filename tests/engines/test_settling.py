"""A refusal by one part while a run is set up is raised at all parts, as one error."""

from __future__ import annotations

import numpy as np
import pytest
from test_joint import owners, with_penalty
from test_local_parts import Country, together

import graphreg as gr
from graphreg.distributed.parts.joint import solve_jointly
from graphreg.distributed.parts.wire import joint_wire
from graphreg.errors import CheckpointError, DataError, GraphregError
from graphreg.running import Budget


def errors_of(count, work):
    """The error that each part raises."""

    def tried(k, wire):
        try:
            work(k, wire)
        except GraphregError as error:
            return error
        return None

    return together(list(range(count)), tried)


@pytest.mark.parametrize("sums", [0, 1, 5])
@pytest.mark.parametrize("who", [(1,), (2, 1), (0, 1, 2)])
def test_all_parts_raise_the_first_error(who, sums):
    """Wherever the others are: what they add up or swap does not wait for the part that has refused."""

    def work(k, wire):
        with joint_wire(wire) as meeting:
            for i in range(5):
                if k in who and i == sums:
                    raise DataError(f"not part {k}")
                meeting.total(np.ones(1))
                meeting.swap({j: np.ones(2) for j in range(3) if j != k}, {j: np.empty(2) for j in range(3) if j != k})
            if k in who:
                raise DataError(f"not part {k}")

    for error in errors_of(3, work):
        assert type(error) is DataError
        assert error.shared
        assert str(error) == f"rank {min(who)} of 3: not part {min(who)}"


def test_a_part_that_refuses_later_than_another_says_nothing():
    def work(k, wire):
        with joint_wire(wire) as meeting:
            for _ in range(2 + k):
                meeting.total(np.ones(1))
            raise DataError(f"not part {k}")

    assert {str(error) for error in errors_of(3, work)} == {"rank 0 of 3: not part 0"}


def test_nothing_is_changed_where_nobody_refuses():
    def work(k, wire):
        with joint_wire(wire) as meeting:
            return meeting.total(np.array([float(k)]))[0], meeting.largest(np.array([float(k)]))[0]

    assert together([0, 1, 2], work) == [(3.0, 2.0)] * 3


def test_a_single_part_raises_its_own_error():
    def work(_, wire):
        with joint_wire(wire):
            raise DataError("no")

    assert [str(error) for error in errors_of(1, work)] == ["no"]


def kept(folders, rounds=20):
    """The errors of parts that keep a run, each in a folder."""
    country, owner = Country.random(9), owners(len(folders))

    def work(k, wire):
        own = {i for i, it in enumerate(owner) if it == k}
        form = with_penalty(country, own, k).form.frozen()
        asked = gr.Checkpoint(folders[k], rounds=5, seconds=None)
        solve_jointly(
            form,
            {country.labels[i] for i in own},
            gr.PrimalDual(),
            Budget(0.0, rounds, seed=1, progress=False, checkpoint=asked),
            wire,
        )

    return errors_of(len(folders), work)


def test_all_parts_must_see_the_folder(tmp_path):
    assert kept([tmp_path / "run"] * 3) == [None] * 3
    (tmp_path / "own").mkdir()
    for folder, said in (
        (tmp_path / "own", "not all processes find the same run"),
        (tmp_path / "absent", "is not seen here"),
    ):
        found = kept([tmp_path / "run", tmp_path / "run", folder], 40)
        assert all(type(each) is CheckpointError and said in str(each) for each in found), found
    (tmp_path / "file").write_text("")
    found = kept([tmp_path / "file"] * 2)
    assert all("rank 0 of 2: nothing can be written to the folder" in str(each) for each in found)
