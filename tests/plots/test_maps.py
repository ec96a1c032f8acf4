"""Maps: shapes from every format, borders between clusters, scales, and what is refused."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from picture_checks import check_picture

import graphreg as gr
from graphreg.errors import ModelError
from graphreg.plots import plot_graph, plot_map
from graphreg.plots.shapes import borders, outlines_of

LABELS = ("a", "b", "c", "d")
SQUARE = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
RINGS = {label: SQUARE + np.array([k, 0.0]) for k, label in enumerate(LABELS)}  # a row of four


def solved(values=(1.0, 1.0, -1.0, -1.0), labels=LABELS, strength=0.01, extra=(), ridge=0.0):
    means = {label: ([[1.0]] * 4, [value] * 4) for label, value in zip(labels, values, strict=True)}
    graph = gr.Graph.from_edges(list(pairwise(labels)), nodes=[*labels, *extra])
    loss = gr.SquaredLoss(gr.NodeData.from_dict(means))
    model = loss + strength * gr.TotalVariation(graph, gr.L2())
    return gr.Problem(model + ridge * gr.NodePenalty(gr.SquaredL2()) if ridge else model).solve(gap=1e-10)


def geojson(degrees=10.0):
    def polygon(ring):
        return [*(degrees * ring).tolist(), (degrees * ring[0]).tolist()]

    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "id": k,
                "properties": {"name": label},
                "geometry": {"type": "Polygon", "coordinates": [polygon(RINGS[label])]}
                if k % 2
                else {"type": "MultiPolygon", "coordinates": [[polygon(RINGS[label])]]},
            }
            for k, label in enumerate(LABELS)
        ],
    }


def topojson():
    """Two squares that share an arc, quantised, and a third one that is nobody's."""
    return {
        "type": "Topology",
        "transform": {"scale": [0.5, 0.5], "translate": [10.0, 20.0]},
        "arcs": [
            [[2, 0], [0, 2]],  # the border, upwards
            [[2, 2], [-2, 0], [0, -2], [2, 0]],  # the rest of the left one
            [[2, 0], [2, 0], [0, 2], [-2, 0]],  # and of the right one, from the foot of the border
            [[8, 0], [1, 0], [0, 1], [-1, -1]],
        ],
        "objects": {
            "counties": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Polygon", "id": "a", "arcs": [[0, 1]]},
                    {"type": "Polygon", "id": "b", "arcs": [[2, -1]]},
                    {"type": "Polygon", "id": "elsewhere", "arcs": [[3]]},
                ],
            }
        },
    }


def bold(axes):
    """The segments of bold black lines."""
    found = [c for c in axes.collections if hasattr(c, "get_segments") and np.allclose(c.get_linewidths(), 2.0)]
    return [segment for collection in found for segment in collection.get_segments()]


def hatches(axes):
    return [c.get_hatch() for c in axes.collections if c.get_hatch()]


# ---- formats ---------------------------------------------------------------------------------------------------------
def test_geojson_by_a_property():
    found = outlines_of(geojson(), LABELS)
    assert found.degrees
    assert not found.others
    assert len(found.own) == 4
    np.testing.assert_array_equal(found.own[1][0][:4], 10.0 * RINGS["b"])
    projected = outlines_of(geojson(100.0), range(4), "id")  # 400 is no longitude
    assert (projected.degrees, projected.upwards) == (False, False)
    np.testing.assert_array_equal(projected.own[1][0][:4], 100.0 * RINGS["b"])


def test_a_frame_with_a_geometry_and_a_node_of_several_shapes():
    class GeoFrame:
        """What geopandas shows of itself."""

        __geo_interface__ = geojson(100.0)

    GeoFrame.__geo_interface__["features"].append(geojson(200.0)["features"][0])
    found = outlines_of(GeoFrame(), LABELS)
    assert [len(rings) for rings in found.own] == [2, 1, 1, 1]
    assert found.upwards


def test_topojson_turns_arcs_and_undoes_the_quantisation():
    found = outlines_of(topojson(), ("a", "b"))
    assert found.degrees
    assert len(found.others) == 1
    np.testing.assert_allclose(found.own[0][0], [[11, 20], [11, 21], [10, 21], [10, 20], [11, 20]])
    np.testing.assert_allclose(found.own[1][0], [[11, 20], [12, 20], [12, 21], [11, 21], [11, 20]])
    lines, pairs = borders(found.own)
    assert pairs == [(0, 1)]
    np.testing.assert_allclose(lines, [[[11, 20], [11, 21]]])


def test_a_file_is_read(tmp_path, pyplot):
    path = tmp_path / "counties.json"
    path.write_text(json.dumps(geojson()))
    axes = plot_map(solved(), outlines=path, key="name")
    check_picture(axes)
    assert axes.get_aspect() == pytest.approx(1 / np.cos(np.radians(5.0)))
    path.write_text("{")
    with pytest.raises(ModelError, match=r"counties.json' is no JSON"):
        plot_map(solved(), outlines=path)
    with pytest.raises(ModelError, match="cannot be read"):
        plot_map(solved(), outlines=tmp_path / "nothing.json")


# ---- what is drawn ---------------------------------------------------------------------------------------------------
def test_borders_are_bold_between_clusters_alone(pyplot):
    axes = plot_map(solved(), outlines=RINGS)
    np.testing.assert_allclose(bold(axes), [[[2.0, 0.0], [2.0, 1.0]]])
    assert axes.get_title() == "x0 at 4 nodes in 2 clusters"
    check_picture(axes)
    assert not bold(plot_map(solved((1.0, 1.0, 1.0, 1.0)), outlines=RINGS))


def test_a_grid_needs_no_shapes(pyplot):
    graph = gr.Graph.grid(3, 4)
    values = {label: ([[1.0]] * 4, [1.0 if label[1] < 2 else 2.0] * 4) for label in graph.labels}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(values))
    axes = plot_map(gr.Problem(loss + 0.01 * gr.TotalVariation(graph, gr.L2())).solve(gap=1e-10))
    assert sorted(segment[:, 0].tolist() for segment in bold(axes)) == [[1.5, 1.5]] * 3
    assert not hatches(axes)
    check_picture(axes)
    with pytest.raises(ModelError, match="no cells"):
        plot_map(solved())


def test_points_have_bars_across_edges_between_clusters(pyplot):
    axes = plot_map(solved(), positions={label: (float(k), 0.0) for k, label in enumerate(LABELS)}, unit="mm")
    (bar,) = bold(axes)
    np.testing.assert_allclose(sorted(map(tuple, bar)), [(1.5, -0.25), (1.5, 0.25)])
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {
        "0 and above",
        "below 0",
        "between clusters",
    }
    assert axes.figure.axes[1].get_ylabel() == "x0 (mm)"


def test_bars_do_not_grow_with_long_edges(pyplot):
    """They would cross each other: the edge between clusters is 9 long, the others 1."""
    places = {"a": (0.0, 0.0), "b": (1.0, 0.0), "c": (10.0, 0.0), "d": (11.0, 0.0)}
    (bar,) = bold(plot_map(solved(), places))
    np.testing.assert_allclose(sorted(map(tuple, bar)), [(5.5, -0.25), (5.5, 0.25)])


@pytest.mark.parametrize(
    ("values", "limits", "hatched"),
    [((1.0, 1.0, 2.0, 2.0), (1.0, 2.0), False), ((-1.0, 0.5, 0.5, 0.5), (-1.15, 1.15), True)],
)
def test_the_scale_diverges_where_signs_do(pyplot, values, limits, hatched):
    axes = plot_map(solved(values, strength=1e-9), outlines=RINGS)
    np.testing.assert_allclose(axes.figure.axes[1].get_ylim(), limits, atol=1e-6)
    assert bool(hatches(axes)) == hatched


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
def test_nodes_that_no_data_reach_have_no_colour(pyplot, ridge):
    """Of a node that a ridge alone decides nothing is known, either."""
    solution = solved(extra=["e"], ridge=ridge)
    axes = plot_map(solution, outlines=RINGS | {"e": SQUARE + np.array([6.0, 0.0])})
    assert "no data" in [text.get_text() for text in axes.get_legend().get_texts()]
    assert solution.unreached == ["e"]
    assert solution.free == ([] if ridge else ["e"])
    check_picture(axes)


def test_proofs_close_what_is_undecided(pyplot):
    """At a wide gap an edge is neither near nor split; a proof decides it."""
    labels = LABELS
    data = {label: ([[1.0]] * 4, [value] * 4) for label, value in zip(labels, (0.0, 0.02, 1.0, 1.01), strict=True)}
    problem = gr.Problem(
        gr.SquaredLoss(gr.NodeData.from_dict(data)) + 0.05 * gr.TotalVariation(gr.Graph.chain(labels), gr.L2())
    )
    rough = problem.solve(gr.PrimalDual(), rounds=3, gap=0)
    assert rough.clusters().edges["state"].tolist().count("undecided")
    said = [text.get_text() for text in plot_map(rough, outlines=RINGS).get_legend().get_texts()]
    assert "undecided" in said
    assert "not certified" in plot_map(rough, outlines=RINGS).get_title()


# ---- refusals --------------------------------------------------------------------------------------------------------
WRONG = {
    "a node without an outline": (
        {"a": SQUARE, "b": SQUARE, "c": SQUARE},
        {},
        ModelError,
        r"no shape whose 'id' is 'd', a node \(3 of 4",
    ),
    "another property": (geojson(), {"key": "id"}, ModelError, "neither an id nor a property .* such as 'a'"),
    "no property": (geojson(), {"key": "nam"}, ModelError, "no property 'nam'; did you mean 'name'"),
    "no ring": (RINGS | {"b": [(0, 0), (1, 1)]}, {}, ModelError, "the outline of the node 'b' must be a ring"),
    "words": (RINGS | {"b": "here"}, {}, ModelError, "the outline of the node 'b' must be a ring"),
    "not finite": (RINGS | {"c": SQUARE * np.nan}, {}, ModelError, r"the shape called \['c'\] has points"),
    "a list": ([SQUARE] * 4, {}, ModelError, "outlines must be a mapping"),
    "positions, too": (RINGS, {"positions": {}}, ModelError, "positions or outlines, and not both"),
    "a feature": (RINGS, {"feature": "x1"}, ModelError, "'x1' is not a coefficient of the problem, which has 'x0'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_map_is_refused(name, pyplot):
    shapes, given, error, match = WRONG[name]
    with pytest.raises(error, match=match):
        plot_map(solved(), outlines=shapes, **given)


def test_positions_are_a_mapping_or_a_frame(pyplot):
    places = {label: (float(k), k % 2) for k, label in enumerate(LABELS)}
    frame = pd.DataFrame(places.values(), index=list(LABELS), columns=["x", "y"])
    one, other = (plot_graph(solved(), positions=each) for each in (places, frame))
    for a, b in zip(one.texts, other.texts, strict=True):
        assert a.xy == b.xy
    with pytest.raises(ModelError, match="positions must be a mapping of nodes to pairs"):
        plot_graph(solved(), positions=[(0, 0)] * 4)
