"""Drawings of reports: outlines, layouts, clusters that keep their names, slices of penalties."""

from __future__ import annotations

import gzip
import json
import random

import networkx as nx
import numpy as np
import pytest
from report_cases import Page, chain

import graphreg as gr
from graphreg.errors import ModelError
from graphreg.plots import outlines_of
from graphreg.reporting import outlines as maps
from graphreg.reporting.frames import NAMED, lasting_names
from graphreg.reporting.outlines import drawn, drawn_places, fitted

SQUARES = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]


def square(k, **names):
    ring = [[x + k, y] for x, y in SQUARES]
    return {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]}, **names}


def collection(*features):
    return {"type": "FeatureCollection", "features": list(features)}


TOPOLOGY = {  # two shapes that share an arc with a bend, in whole numbers with a transform
    "type": "Topology",
    "transform": {"scale": [100, 100], "translate": [0, 0]},
    "arcs": [
        [[10, 0], [3, 5], [-3, 5]],
        [[10, 10], [-10, 0], [0, -10], [10, 0]],
        [[10, 0], [10, 0], [0, 10], [-10, 0]],
    ],
    "objects": {
        "land": {"type": "Polygon", "arcs": [[0, 1]]},
        "parts": {
            "type": "GeometryCollection",
            "geometries": [
                {"type": "Polygon", "id": "01", "arcs": [[0, 1]]},
                {"type": "MultiPolygon", "id": "02", "properties": {"name": "b"}, "arcs": [[[2, -1]]]},
            ],
        },
    },
}


# ---- outlines --------------------------------------------------------------------------------------------------------
def outlined(given, labels):
    return drawn(outlines_of(given, labels))


def test_a_mapping_of_rings_has_its_y_upwards():
    rings = {"low": np.array(SQUARES), "high": np.add(SQUARES, [0, 1])}
    place = outlined(rings, ["low", "high"]).place
    assert place[0, 1] > place[1, 1]  # of the page, downwards


def test_geojson_by_id_and_by_property():
    by_id = outlined(collection(square(0, id=0), square(1, id=1), square(2, id="sea")), [0, 1])
    by_name = outlined(collection(*(square(k, properties={"name": name}) for k, name in enumerate("ab"))), ["a", "b"])
    assert len(by_id.paths) == 2
    assert len(by_id.others) == 1
    assert by_id.place[0, 0] < by_id.place[1, 0]
    assert by_name.paths[0].startswith("M")
    assert by_name.others == []


def test_degrees_have_north_upwards_and_other_units_do_not():
    north = {"type": "Feature", "id": "n", "geometry": {"type": "Polygon", "coordinates": [[[0, 9], [1, 9], [1, 8]]]}}
    south = {"type": "Feature", "id": "s", "geometry": {"type": "Polygon", "coordinates": [[[0, 1], [1, 1], [1, 0]]]}}
    place = outlined(collection(north, south), ["n", "s"]).place
    assert place[0, 1] < place[1, 1]
    place = outlined(TOPOLOGY, ["01", "02"]).place
    assert place[0, 0] < place[1, 0]


def test_topojson_shares_its_borders(tmp_path):
    found = outlined(TOPOLOGY, ["02", "01"])
    corners, areas = [], []
    for path in found.paths:
        start, steps = path[1:-1].split("l")
        points = np.cumsum([list(map(int, each.split(","))) for each in (start, *steps.split(" "))], axis=0)
        areas.append(abs(np.sum(points[:, 0] * np.roll(points[:, 1], -1) - np.roll(points[:, 0], -1) * points[:, 1])))
        corners.append(set(map(tuple, points.tolist())))
    assert [len(each) for each in corners] == [5, 5]
    assert len(corners[0] & corners[1]) == 3
    assert areas[1] / areas[0] == pytest.approx(115 / 85, rel=0.01)
    file = tmp_path / "map.json.gz"
    file.write_bytes(gzip.compress(json.dumps(TOPOLOGY).encode()))
    assert outlined(file, ["02", "01"]).paths == found.paths
    assert outlined(str(file), ["b"]).paths == found.paths[:1]


def test_many_points_are_thinned(monkeypatch):
    angle = np.linspace(0, 2 * np.pi, 20_001)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1).tolist()
    circle = {"type": "Feature", "id": "o", "geometry": {"type": "Polygon", "coordinates": [ring]}}
    whole = outlined(collection(circle), ["o"]).paths[0]
    monkeypatch.setattr(maps, "MOST_POINTS", 500)
    few = outlined(collection(circle), ["o"]).paths[0]
    assert few.count(" ") < 500 < whole.count(" ") < 10_000


def test_a_shape_too_small_to_be_seen_stays():
    tiny = [[[1e-9 * x, 1e-9 * y] for x, y in SQUARES]]
    small = {"type": "Feature", "id": "t", "geometry": {"type": "Polygon", "coordinates": tiny}}
    assert outlined(collection(small, square(1, id="a")), ["t", "a"]).paths[0].count(",") == 4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (collection(square(0, properties={"fips": "09"})), r"neither an id nor a property .* such as 'a'. Found were"
         r" 'fips', for instance '09' as 'fips'; give each shape the label of its node as its 'id'"),
        (collection(square(0)), "no polygon with an id or a property"),
        (collection(square(0, id="a")), r"no shape whose 'id' is 'b', a node \(1 of 2 nodes have one\)"),
        ({"type": "Feature"}, "GeoJSON of the type 'FeatureCollection' or TopoJSON .* got 'Feature'"),
        (collection({"id": "a"}), "this is no FeatureCollection as its format says"),
        ({"type": "Topology", "arcs": []}, "this is no Topology as its format says"),
        (3, "or GeoJSON .* got 3"),
        ("none.json", "'none.json' cannot be read: No such file"),
    ],
)  # fmt: skip
def test_outlines_that_cannot_be_used(given, said):
    with pytest.raises(ModelError, match=said):
        outlined(given, ["a", "b"])


def test_a_file_that_is_no_json(tmp_path):
    file = tmp_path / "a.json"
    file.write_bytes(b"\x1f\x8b1")
    for content in (b"\x1f\x8b1", b"{"):
        file.write_bytes(content)
        with pytest.raises(ModelError, match=r"a\.json' (cannot be read|is no JSON)"):
            outlined(file, ["a"])


def test_a_map_has_shapes_for_its_nodes(tmp_path):
    answer = chain(names=["a", "b", "c"]).solve()
    answer.report(tmp_path / "a.html", outlines=collection(*(square(k, id=each) for k, each in enumerate("abcz"))))
    data = Page(tmp_path / "a.html").data
    assert len(data["shapes"]) == 3
    assert data["others"].startswith("M")
    assert data["x"] == sorted(data["x"])


# ---- layouts ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "graph", [nx.path_graph(2), nx.cycle_graph(9), nx.balanced_tree(2, 6), nx.grid_2d_graph(15, 15), nx.empty_graph(5)]
)
def test_layouts_repeat_and_leave_random_numbers_alone(graph):
    graph = nx.convert_node_labels_to_integers(graph)
    ends = np.array(graph.edges, dtype=int).reshape(-1, 2)
    random.seed(7)
    state = random.getstate()
    first = drawn_places(len(graph), ends)
    assert random.getstate() == state
    np.testing.assert_array_equal(first, drawn_places(len(graph), ends))
    assert np.isfinite(first).all()
    assert len(np.unique(first.round(6), axis=0)) == len(graph)


def test_neighbours_are_drawn_near():
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20))
    ends = np.array(graph.edges)
    place = drawn_places(400, ends)
    along = np.linalg.norm(place[ends[:, 0]] - place[ends[:, 1]], axis=1).mean()
    pairs = np.random.default_rng(0).integers(0, 400, (500, 2))
    assert along < 0.25 * np.linalg.norm(place[pairs[:, 0]] - place[pairs[:, 1]], axis=1).mean()


def test_components_do_not_overlap():
    graph = nx.disjoint_union_all([nx.cycle_graph(5), nx.path_graph(30), nx.empty_graph(4), nx.complete_graph(6)])
    place = drawn_places(len(graph), np.array(graph.edges))
    boxes = [place[list(nodes)] for nodes in nx.connected_components(graph)]
    for k, one in enumerate(boxes):
        for other in boxes[:k]:
            apart = (one.max(axis=0) < other.min(axis=0)) | (other.max(axis=0) < one.min(axis=0))
            assert apart.any()


def test_one_node_and_one_line_fit():
    for place in (np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 9.0]])):
        found, height = fitted(place)
        assert (found >= 0).all()
        assert (found <= [maps.WIDTH, height]).all()


# ---- clusters --------------------------------------------------------------------------------------------------------
def test_a_cluster_keeps_the_name_of_its_larger_part():
    before, after = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 0, 0, 0, 0, 1])
    named = lasting_names([before, after])
    assert named[1][0] == named[0][2]  # of three nodes, against two
    assert named[1][5] == named[0][5]
    assert named[0][0] != named[0][2]
    assert named[1][0] == 0  # the largest over all frames


def test_of_few_nodes_each_that_is_alone_has_a_letter():
    """Names that went by were never taken again: the eighth of eight had none."""
    one, two, alone = np.zeros(8, dtype=int), np.repeat([0, 1], 4), np.arange(8)
    for names in (named := lasting_names([alone, one, alone, two, alone])):
        assert (names < NAMED).all()
    assert sorted(named[2]) == sorted(named[4]) == list(range(8))


def test_names_do_not_depend_on_numbers():
    frames = [np.array([0, 1, 1, 2, 2, 2, -1]), np.array([0, 0, 0, 1, 1, 1, -1])]
    other = [np.array([5, 0, 0, 3, 3, 3, -1]), np.array([9, 9, 9, 4, 4, 4, -1])]
    for one, two in zip(lasting_names(frames), lasting_names(other), strict=True):
        assert one.tolist() == two.tolist()
    assert lasting_names(frames)[0][6] == -1
    assert lasting_names([]) == []


# ---- slices ----------------------------------------------------------------------------------------------------------
def interpolated(kind, x, y, at, c):
    return c * np.interp(abs(at), kind[x], kind[y])


@pytest.mark.parametrize(
    ("penalty", "kind"),
    [
        (gr.L1(), "norm"),
        (gr.L2(), "norm"),
        (gr.LInf(), "norm"),
        (gr.SquaredL2(), "quadratic"),
        (gr.Quadratic([[2.0, 0.3], [0.3, 1.0]]), "quadratic"),
        (gr.HuberNorm(0.3), "radial"),
    ],
    ids=str,
)
def test_the_fenchel_young_equality_of_a_slice(penalty, kind, tmp_path):
    answer = chain(penalty=penalty).solve(gap=1e-10)
    answer.report(tmp_path / "a.html")
    page = Page(tmp_path / "a.html")
    found, edge = page.data["slices"][0], page.frame(0)["edge"]
    assert found["kind"] == kind
    assert found["limited"] == (kind != "quadratic")
    z = answer.form.edges[0].difference(answer.certificate.w)
    for k in np.flatnonzero(page.frame(0)["state"] % 4 >= 2):
        s, t, slope = (float(edge[name][k]) for name in ("distance", "pull", "slope"))
        if kind == "norm":
            f, g = slope * s, 0.0
            assert t <= slope * (1 + 1e-6)
        elif kind == "quadratic":
            f, g = slope * s * s / 2, t * t / (2 * slope)
        else:
            assert found["limit"] == 0.3
            assert t <= 0.3 * slope * (1 + 1e-6)
            f, g = interpolated(found, "s", "f", s, slope), interpolated(found, "t", "g", t / slope, slope)
        assert f == pytest.approx(0.1 * penalty.value(z[k : k + 1])[0], rel=2e-3)
        assert abs(f + g - s * t) <= float(edge["residual"][k]) + 2e-3 * f


def test_a_consensus_has_a_slice_and_other_functions_have_none(tmp_path):
    chain(penalty=gr.Penalty.from_cvxpy(_odd)).solve(gap=1e-4).report(tmp_path / "a.html")
    assert Page(tmp_path / "a.html").data["slices"][0]["kind"] == "none"
    data = chain().model.terms[0][1]
    gr.Problem(data + gr.Consensus(nx.path_graph(6))).solve().report(tmp_path / "a.html")
    page = Page(tmp_path / "a.html")
    assert page.data["slices"][0]["kind"] == "equal"
    assert set(page.frame(0)["cluster"].tolist()) == {0}


def _odd(z):
    import cvxpy as cp

    return cp.norm1(z) + cp.sum_squares(z)
