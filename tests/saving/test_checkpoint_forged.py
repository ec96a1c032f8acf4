"""A checkpoint that somebody has forged costs time at most: no bound of it is believed, every field is checked, and
nothing is inflated or opened before it is known to be small and a file."""

from __future__ import annotations

import io
import os
import socket
import zipfile

import networkx as nx
import numpy as np
import pytest
from factories import chain, thinned
from forging import REFUSED, forged, gone_on, looked_up, of_run, places
from sameness import facts

import graphreg as gr
from graphreg.errors import CheckpointError
from graphreg.saving import archive

METHOD = gr.PrimalDual(polish=False)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A run with bounds on both sides, as repairs leave them on the way: looks prove nothing before they meet the
    gap."""
    monkeypatch.setattr("graphreg.certificate.certify.FlowDual.of", lambda form: None)
    path = tmp_path / "run"
    chain().solve(METHOD, gap=1e-9, rounds=45, checkpoint=path)
    return path


# ---- bounds ----------------------------------------------------------------------------------------------------------
def test_no_bound_is_in_the_file(kept):
    """Of what certificates rest on: points alone."""
    header = archive.read(kept)[0]
    certifier = looked_up(header, of_run("checks", "certifier"))["record"][1]
    assert sorted(certifier) == sorted(
        ["w", "plain", "source", "decided", "gap", "screened", "size", "exchanges", "centred"]
    )
    numbers = [at for at in places(header) if at and at[-1] in ("primal", "dual", "bound", "value", "lower")]
    assert all("records" in at for at in numbers)  # what the trace says of rounds that are over


POINT = of_run("checks", "certifier", "source", "point")
CHANGES = {
    "zeros": lambda a: 0.0 * a,
    "larger": lambda a: 1.001 * a,
    "turned": lambda a: -a,
    "far": lambda a: 1e200 * a,
    "noise": lambda a: a + np.random.default_rng(0).standard_normal(a.shape),
}


@pytest.mark.parametrize(("change", "what"), thinned(CHANGES, ["flows", "prices", "w"], every=2))
def test_forged_points_prove_what_they_prove(what, change, kept):
    header, arrays = archive.read(kept)
    at = of_run("checks", "certifier", "w") if what == "w" else (*POINT, "record", 1, what, "tuple", 0)
    name = f"0-{looked_up(header, at)['array']}"
    archive.write(kept, header, {**arrays, name: CHANGES[change](arrays[name])})
    for rounds in (45, 55):
        assert gone_on(kept, rounds=rounds)[0] in ("certified", "budget")


@pytest.mark.parametrize("least", [-1e300, 0.0, 1e300, {"float": "nan"}])
def test_a_forged_yardstick_of_plain_sums(least, kept):
    forged(kept, (*of_run("checks", "certifier", "source"), "record", 1, "least"), least)
    assert gone_on(kept)[0] in ("certified", "budget")


@pytest.mark.parametrize("ended", ["gap", "failed", "recession"])
def test_why_a_run_ended_is_looked_at_again(ended, kept):
    whole = chain().solve(METHOD, gap=1e-9, rounds=60)
    forged(kept, of_run("ended"), ended)
    assert facts(chain().solve(METHOD, gap=1e-9, rounds=60, checkpoint=kept)) == facts(whole)


def test_attainment_is_decided_again(tmp_path):
    """That of separable classes cannot be made to be attained by forging what it was decided with."""
    data = gr.NodeData.from_dict({i: (np.ones((3, 1)), np.full(3, float(i > 1))) for i in range(4)})
    edges = gr.TotalVariation(nx.Graph([(0, 1), (2, 3)]), gr.L2())
    problem = gr.Problem(gr.LogisticLoss(data) + 0.1 * edges)
    path, budget = tmp_path / "run", {"gap": 1e-6, "on_failure": "return"}
    assert problem.solve(METHOD, checkpoint=path, **budget).status == "unattained"
    for decided in (None, {"tuple": []}, {"tuple": [None]}):
        forged(path, of_run("checks", "certifier", "decided"), decided)
        assert problem.solve(METHOD, checkpoint=path, **budget).status == "unattained"


def test_a_forged_point_of_a_path_is_solved_again(tmp_path):
    lam = gr.Parameter(0.3, name="lam")
    problem, path, grid = chain(strength=lam), tmp_path / "path", [0.1, 0.2, 0.4]
    whole = list(gr.path(problem, grid, method=METHOD, gap=1e-5, checkpoint=path))
    true = path.read_bytes()
    tree = ("values", 0, "tree", "dict")
    strength = archive.read(path)[0]["values"][0]["tree"]["dict"]["strength"]
    one = grid.index(strength)
    bounds = dict.fromkeys(("primal", "dual"), whole[one].certificate.primal)
    header, arrays = archive.read(path)
    number = looked_up(header, (*tree, "certificate", "dict", "w", "array"))
    for name, value in [*bounds.items(), ("primal", 1e-9), ("dual", 1e9), ("primal", {"float": "nan"})]:
        path.write_bytes(true)
        forged(path, (*tree, "certificate", "dict", name), value)
        for a, b in zip(gr.path(problem, grid, method=METHOD, gap=1e-5, checkpoint=path), whole, strict=True):
            assert a.status == b.status
            assert a.certificate.dual <= b.certificate.primal
            assert b.certificate.dual <= a.certificate.primal
            assert a.certificate.gap >= 0.5 * b.certificate.gap  # the bounds of the points, not those of the file
    archive.write(path, header, {**arrays, f"0-{number}": 2.0 * arrays[f"0-{number}"]})
    again = gr.path(problem, grid, method=METHOD, gap=1e-5, checkpoint=path)
    assert [each.status for each in again] == ["certified"] * 3
    np.testing.assert_allclose(again.coef, [each.coef for each in whole], atol=1e-2)


# ---- fields ----------------------------------------------------------------------------------------------------------
FIELDS = {
    ("round",): [{"float": "nan"}, -1, 2.5, True, None, "3"],
    ("ended",): ["soon", None, 1],
    ("seconds",): [{"float": "nan"}, {"float": "inf"}, -1.0, "1"],
    ("sent",): [{"dict": {}}, None],
    ("state",): [None, 3, {"tuple": []}],
    ("state", "round"): [{"float": "nan"}, "x"],
    ("state", "x"): [None],
    ("state", "s"): ["x", None],
    ("state", "due"): ["x"],
    ("state", "memory"): [3],
    ("checks", "check_seconds"): [-1, {"float": "nan"}],
    ("checks", "unknowns"): [-1, 0.5],
    ("checks", "records"): [3, {"list": [3]}],
    ("checks", "schedule", "every"): [0, 1.5],
    ("checks", "schedule", "next_repair"): [10**30, -1, {"float": "inf"}],
    ("checks", "schedule", "power"): [0.0, {"float": "nan"}],
    ("checks", "schedule", "screened"): [{"tuple": [1]}, None],
    ("checks", "certifier", "gap"): [-1.0, {"float": "nan"}],
    ("checks", "certifier", "size"): [-1.0, {"float": "inf"}],
    ("checks", "certifier", "exchanges"): [-1, 0.5],
    ("checks", "certifier", "w"): ["x", 3],
}


@pytest.mark.parametrize("way", FIELDS, ids=".".join)
def test_a_field_that_cannot_be_is_named(way, kept):
    true = kept.read_bytes()
    for value in FIELDS[way]:
        kept.write_bytes(true)
        forged(kept, of_run(*way), value)
        status, said = gone_on(kept)
        assert status == REFUSED
        assert way[-1] in said
        assert "remove it to begin anew" in said


ARRAYS = {
    "rows": lambda a: a[:-1],
    "columns": lambda a: a[:, :1],
    "flat": lambda a: a.ravel(),
    "text": lambda a: a.astype("S3"),
    "complex": lambda a: a.astype(complex),
    "integers": lambda a: a.astype(int),
}


@pytest.mark.parametrize("change", ARRAYS)
@pytest.mark.parametrize("where", ["state.x.w", "certifier.w"])
def test_an_array_of_another_shape_or_type_is_named(where, change, kept):
    header, arrays = archive.read(kept)
    way = ("state", "x", "w") if where == "state.x.w" else ("checks", "certifier", "w")
    name = f"0-{looked_up(header, of_run(*way))['array']}"
    fresh = f"0-{len(arrays)}"
    entry = {**header["values"][0], "arrays": len(arrays) + 1}
    header = {**header, "values": [entry]}
    archive.write(kept, header, {**arrays, fresh: ARRAYS[change](arrays[name])})
    forged(kept, of_run(*way), {"array": len(arrays)})
    status, said = gone_on(kept)
    assert status == REFUSED
    assert ("run.state.x.w is" if where == "state.x.w" else "parameters") in said


@pytest.mark.parametrize("field", ["version", "versions", "kind", "of", "facts", "values", "arrays", "layouts"])
def test_a_header_without_a_field(field, kept):
    header, arrays = archive.read(kept)
    for value in (None, 3, [3], {"x": []}, "x"):
        content = io.BytesIO()
        with zipfile.ZipFile(kept) as old, zipfile.ZipFile(content, "w") as new:
            for name in old.namelist():
                new.writestr(name, old.read(name) if name != archive.HEADER else _json({**header, field: value}))
        kept.write_bytes(content.getvalue())
        assert gone_on(kept)[0] == REFUSED
        archive.write(kept, header, arrays)


def _json(value):
    import json

    return json.dumps(value)


def test_statuses_and_predictions_of_folds_are_checked(tmp_path):
    lam = gr.Parameter(0.3, name="lam")
    problem, path = chain(strength=lam), tmp_path / "folds"
    gr.cross_validate(problem, [0.1, 0.2], folds=2, method=METHOD, gap=1e-2, checkpoint=path, refit=False)
    header, arrays = archive.read(path)
    run = ("values", 0, "tree", "tuple", 1, "record", 1)
    values = [((*run, "statuses"), {"tuple": ["certified"]}), ((*run, "statuses"), {"tuple": ["fine", "fine"]})]
    values += [((*run, "links"), None), (("values", 0, "tree", "tuple", 0), 7), (("values", 0, "tree"), {"tuple": []})]
    for at, value in values:
        archive.write(path, header, arrays)
        forged(path, at, value)
        with pytest.raises(CheckpointError, match="cannot be read"):
            gr.cross_validate(problem, [0.1, 0.2], folds=2, method=METHOD, gap=1e-2, checkpoint=path, refit=False)


# ---- what is no file of this size ------------------------------------------------------------------------------------
def members(path, compression=zipfile.ZIP_STORED, **others):
    """The file anew, some members with other content."""
    with zipfile.ZipFile(path) as old:
        content = {name: old.read(name) for name in old.namelist()} | {
            k.replace("_", "-"): v for k, v in others.items()
        }
    with zipfile.ZipFile(path, "w", compression) as new:
        for name, each in content.items():
            new.writestr(name, each)


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_is_compressed_is_not_inflated(compression, kept):
    members(kept, compression)
    assert "is compressed" in gone_on(kept)[1]


def test_parts_upon_one_another(kept):
    """Two entries of the directory that mean the same bytes."""
    with zipfile.ZipFile(kept, "a") as file:
        for info in list(file.infolist())[1:]:
            for _ in range(3):
                file.filelist.append(info)
                file._didModify = True
    assert "lie upon one another" in gone_on(kept)[1]


def test_more_than_the_problem_can_need(kept):
    with kept.open("r+b") as file:  # a hole: it takes no room on the disk
        file.truncate(1 << 40)
    assert "more than the problem can need" in gone_on(kept)[1]
    assert kept.stat().st_blocks < 10_000


def test_a_member_of_more_than_the_problem_can_need(kept, monkeypatch):
    monkeypatch.setattr(archive, "ONE", 0)
    header, arrays = archive.read(kept)
    archive.write(kept, header, {**arrays, "0-0": np.zeros(1 << 18)})
    assert "'0-0.npy' has 2097280 bytes, more than the problem can need" in gone_on(kept)[1]


@pytest.mark.parametrize("strides", [[1 << 40, 8], [-(1 << 40), 8], [24], [24.5, 8], ["x", 8], [1 << 70, 8]])
def test_strides_that_reach_far(strides, kept):
    header, arrays = archive.read(kept)
    name = next(name for name, array in arrays.items() if array.ndim == 2)
    content = {**header, "layouts": {name: strides}}
    members(kept, header__json=b"")
    with zipfile.ZipFile(kept) as old:
        rest = {name: old.read(name) for name in old.namelist() if name not in ("header--json", archive.HEADER)}
    with zipfile.ZipFile(kept, "w") as new:
        for name, each in {archive.HEADER: _json(content), **rest}.items():
            new.writestr(name, each)
    assert gone_on(kept)[0] == REFUSED


def test_objects_are_not_unpickled(kept):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(kept.parent / "evil"),))

    content = io.BytesIO()
    np.save(content, np.array([Evil()], dtype=object), allow_pickle=True)
    members(kept, **{"0_0.npy": content.getvalue()})
    assert gone_on(kept)[0] == REFUSED
    assert not (kept.parent / "evil").exists()


# ---- what is no file -------------------------------------------------------------------------------------------------
def test_pipes_devices_and_sockets_are_not_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's name must be short
    os.mkfifo("pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("socket")
        for name in ("pipe", "zero", "socket", "/dev/null"):
            assert "is a device, a pipe or a socket" in gone_on(name)[1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a\0b", "NUL"),
        ("n" * 300, "too long"),
        ("\ud800", "cannot be looked at"),
        ("d/" * 3000 + "x", "does not exist"),
    ],
    ids=["NUL", "long", "surrogate", "deep"],
)
def test_names_that_no_file_can_have(name, said, tmp_path):
    with pytest.raises(CheckpointError, match=f"{said}|cannot be looked at"):
        chain().solve(METHOD, gap=0, rounds=3, checkpoint=f"{tmp_path}/{name}")


def test_a_link_is_followed_to_a_file_that_is_there(kept, tmp_path):
    victim, link, circle = tmp_path / "diary", tmp_path / "link", tmp_path / "circle"
    victim.write_text("dear diary")
    link.symlink_to(victim)
    assert "damaged file of graphreg, or none" in gone_on(link)[1]
    assert victim.read_text() == "dear diary"
    link.unlink()
    link.symlink_to(tmp_path / "nothing")
    assert "is a link to a file that does not exist" in gone_on(link)[1]
    assert not (tmp_path / "nothing").exists()
    circle.symlink_to(circle)
    assert gone_on(circle)[0] == REFUSED
