"""The command line: ``graphreg report``."""

from __future__ import annotations

import json

import pytest
from cli_cases import run
from model_files import BASE, tables, write
from report_cases import Page

from graphreg.cli import example


@pytest.fixture
def river(tmp_path):
    example.write(tmp_path / "river")
    return tmp_path / "river" / "model.toml"


def test_a_run_is_observed(river, tmp_path):
    out = tmp_path / "a.html"
    done = run("report", river, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert "written to" in done.stdout
    page = Page(out)
    assert page.data["kind"] == "round"
    assert "certified that" not in page.data["frames"][0]["said"]
    assert "what follows from it" in page.data["frames"][0]["said"]


@pytest.mark.parametrize(
    ("method", "kind", "code"), [("SubgradientDescent", "round", 4), ("Exact", "one", 0), ("LocalOnly", "one", 4)]
)
def test_methods_without_flows_without_rounds_and_of_another_problem(river, tmp_path, method, kind, code):
    out = tmp_path / "a.html"
    seconds = ["--seconds", "1"] if code else []
    done = run("report", river, "--out", out, "--quiet", "--method", method, *seconds)
    assert (done.exit_code, done.stdout) == (code, "")
    page = Page(out)
    assert page.data["kind"] == kind
    if kind == "round":
        assert all("no bound follows" in frame["said"] for frame in page.data["frames"][:-1])


def test_a_path_varies_the_total_variation(river, tmp_path):
    out = tmp_path / "a.html"
    done = run("report", river, "--out", out, "--strengths", "5")
    assert done.exit_code == 0, done.stderr
    page = Page(out)
    assert page.data["kind"] == "strength"
    assert page.data["parameter"] == "lam"
    assert len(page.data["frames"]) == 5
    assert "lam TotalVariation(L2)" in page.said


def test_places_and_outlines(river, tmp_path):
    places = tmp_path / "places.csv"
    places.write_text("node,x,y\n" + "".join(f"km{k},{k},0\n" for k in range(11)))
    out = tmp_path / "a.html"
    assert run("report", river, "--out", out, "--positions", places).exit_code == 0
    x = dict(zip(Page(out).data["nodes"], Page(out).data["x"], strict=True))
    assert [x[f"km{k}"] for k in range(11)] == sorted(x.values())
    ring = [[0, 0], [1, 0], [1, 1]]
    shapes = [{"id": f"km{k}", "geometry": {"type": "Polygon", "coordinates": [ring]}} for k in range(11)]
    outlines = tmp_path / "map.json"
    outlines.write_text(json.dumps({"type": "FeatureCollection", "features": shapes}))
    assert run("report", river, "--out", out, "--outlines", outlines, "--compare", "--seconds", "1").exit_code == 0
    page = Page(out)
    assert len(page.data["shapes"]) == 11
    assert {"PrimalDual", "ADMM"} <= {each["name"] for each in page.data["runs"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--strengths", "3", "--compare"], "--compare is of one answer"),
        (["--positions", "none.csv"], "--positions: none.csv cannot be read"),
        (["--outlines", "none.json"], "'none.json' cannot be read"),
        (["--method", "Nothing"], "Nothing"),
    ],
)
def test_what_is_refused(river, tmp_path, options, said):
    done = run("report", river, "--out", tmp_path / "a.html", *options)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "a.html").exists()


def test_a_table_of_places_that_is_none(river, tmp_path):
    places = tmp_path / "places.csv"
    for content in ("km0\n", "node,x,y\nkm0,a,b\n"):
        places.write_text(content * 2)
        done = run("report", river, "--out", tmp_path / "a.html", "--positions", places)
        assert done.exit_code == 2
        assert "whose first columns are the node, x and y" in done.stderr


def test_a_place_is_looked_at_first(river, tmp_path):
    done = run("report", river, "--out", tmp_path / "none" / "a.html")
    assert done.exit_code == 2
    assert "in a folder that does not exist" in done.stderr
    (tmp_path / "a.html").write_text("mine")
    assert run("report", river, "--out", tmp_path / "a.html").exit_code == 2
    assert (tmp_path / "a.html").read_text() == "mine"


def test_a_model_without_a_parameter_has_no_path(tmp_path):
    tables(tmp_path)
    model = write(tmp_path, {key: value for key, value in BASE.items() if key not in ("total_variation", "graph")})
    done = run("report", model, "--out", tmp_path / "a.html", "--strengths", "3")
    assert done.exit_code == 2
    assert 'parameter = "lam"' in done.stderr
