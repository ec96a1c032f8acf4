"""The command line: ``solve``, how it ends, real data."""

from __future__ import annotations

import json
import re
import signal
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from cli_cases import process, run
from factories import interrupt
from model_files import BASE, tables, write
from places import DATA, EXAMPLES

import graphreg as gr
from graphreg.base.clock import OutOfTimeError, left
from graphreg.certificate.edges import clusters as clusters_module
from graphreg.cli import folder as folder_module
from graphreg.cli.exits import EXITS

SEPARABLE = "site,dose,ill\n" + "".join(f"{s},{x},{int(x > 0)}\n" for s in ("01", "02") for x in (-2, -1, 1, 2))


@pytest.fixture
def unattained(tmp_path):
    (tmp_path / "separable.csv").write_text(SEPARABLE)
    data = {"file": "separable.csv", "node": "site", "target": "ill", "features": ["dose"]}
    return write(tmp_path, {"data": data, "loss": {"family": "LogisticLoss"}}, "unattained.toml")


# ---- solve -----------------------------------------------------------------------------------------------------------
def test_solve_prints_the_problem_and_the_answer(model):
    done = run("solve", model)
    assert done.exit_code == 0, done.output
    expected = gr.read_model(model).solve()
    assert done.stderr == ""
    assert "minimise over w in R^(7 x 2)" in done.stdout
    assert "visits.csv: 42 rows, 6 nodes, 2 features" in done.stdout
    assert "nodes without data: 1" in done.stdout
    assert f"objective {expected.objective:.10g}"[:16] in done.stdout
    assert str(expected.certificate).splitlines()[0][:40] in done.stdout
    assert "coefficients (7 nodes)" in done.stdout
    assert str(expected.clusters()) in done.stdout


def test_solve_looks_for_proofs_within_the_time_as_fit_does(tmp_path, model, monkeypatch):
    clusters = gr.read_model(model).solve().clusters(prove=True)
    done = run("solve", model, "--prove", "--out", tmp_path / "out")
    assert str(clusters) in done.stdout
    content = json.loads((tmp_path / "out" / "result.json").read_text())["clusters"]
    assert content["proved_count"] == list(clusters.count_range) == [content["count"]] * 2
    assert pd.read_csv(tmp_path / "out" / "edges.csv")["state"].tolist() == clusters.edges["state"].tolist()
    near = run("solve", model, "--rounds", "30", "--method", "PrimalDual", "--gap", "0").stdout
    assert re.search(r"; --gap [\d.e-]+ should decide them", near)  # and not gap=

    def out_of_time(*_arguments):
        assert 0.0 < left() < 300.0
        raise OutOfTimeError

    monkeypatch.setattr(clusters_module, "_prove", out_of_time)
    done = run("solve", model, "--prove", "--seconds", "300")
    assert done.exit_code == 0
    assert "out of time, so that not all proofs were looked for" in done.stdout
    helps = [run(command, "--help").output.partition("--prove ")[2].split("  --")[0] for command in ("solve", "fit")]
    assert helps[0].split() == helps[1].split()
    assert "proofs" in helps[0]


def test_quiet_says_nothing(model):
    done = run("solve", model, "--quiet")
    assert (done.exit_code, done.output) == (0, "")


def test_json_is_all_there_is(model):
    done = run("solve", model, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    expected = gr.read_model(model).solve()
    assert found["status"] == "certified"
    assert found["certificate"]["dual"] <= found["objective"]
    assert found["objective"] == pytest.approx(expected.objective, rel=1e-9)
    assert found["model"]["content"]["total_variation"] == BASE["total_variation"]
    assert found["versions"]["graphreg"] == gr.__version__
    assert found["clusters"]["count"] == expected.clusters().count
    assert found["coefficients"]["01"] == pytest.approx(expected.table().loc["01"].to_dict(), abs=1e-6)


def test_options_come_before_the_model_file(model):
    done = run("solve", model, "--method", "PrimalDual", "--gap", "1e-2", "--rounds", "3", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["status"], found["rounds"]) == (4, "budget", 3)
    assert found["ledger"]["rounds"] == 3
    assert len(found["trace"]) >= 1


def test_method_keeps_the_options_of_the_model_file(tmp_path, model):
    write(tmp_path, {**BASE, "solve": {"method": {"family": "PrimalDual", "balance": 1.0}, "rounds": 5, "gap": 0.0}})
    same, other = (json.loads(run("solve", model, "--json", *more).stdout) for more in ((), ("--method", "PrimalDual")))
    assert same["objective"] == other["objective"]
    assert run("solve", model, "--method", "Primal").exit_code == 2


def test_out_writes_what_was_found(tmp_path, model):
    out = tmp_path / "a" / "b"
    done = run("solve", model, "--method", "PrimalDual", "--out", out)
    assert done.exit_code == 0
    solution = gr.read_model(model).solve(gr.PrimalDual())
    table = pd.read_csv(out / "coefficients.csv", dtype={"node": str}).set_index("node")
    written = pd.read_csv(out / "coefficients.csv", dtype=str).set_index("node")
    np.testing.assert_array_equal(written.map(float).to_numpy(), solution.coef)  # to the last digit
    assert table.index.tolist() == list(solution.labels)
    assert table.columns.tolist() == ["dose", "age"]
    edges = pd.read_csv(out / "edges.csv", dtype={"tail": str, "head": str})
    assert edges["state"].tolist() == solution.clusters().edges["state"].tolist()
    np.testing.assert_array_equal(edges["slack"], solution.clusters().edges["slack"])
    flows = pd.read_csv(out / "flows.csv", dtype={"tail": str, "head": str})
    for row in flows.itertuples():
        np.testing.assert_array_equal([row.dose, row.age], solution.flows[row.tail, row.head])
    groups = pd.read_csv(out / "clusters.csv", dtype={"node": str})
    assert dict(zip(groups["node"], groups["cluster"], strict=True)) == solution.clusters().labels
    result = json.loads((out / "result.json").read_text())
    assert sorted(result["files"]) == sorted(path.name for path in out.iterdir())
    assert result["objective"] == solution.objective
    assert all(name in done.stdout for name in result["files"])


def test_pictures(tmp_path, model, monkeypatch):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    assert run("solve", model, "--method", "PrimalDual", "--out", out).exit_code == 0
    for name in ("graph.png", "trace.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    assert run("solve", model, "--out", out, "--no-pictures").exit_code == 0
    assert not list(out.glob("*.png")), "pictures of an earlier result would be taken for those of this one"
    monkeypatch.setattr(folder_module, "find_spec", lambda name: None)
    done = run("solve", model, "--out", out)
    assert done.exit_code == 0
    assert "pip install graphreg[plot]" in done.stderr
    assert not list(out.glob("*.png"))


def test_latent_nodes_and_standardised_features_are_written(tmp_path, model):
    content = {**BASE, "hierarchy": {"clusters": ["district", "region"], "weights": [1.0, 1.0, 1.0]}}
    content["data"] = {**BASE["data"], "standardise": True}
    write(tmp_path, content)
    out = tmp_path / "out"
    done = run("solve", model, "--out", out, "--no-pictures")
    assert done.exit_code == 0
    assert "the features are standardised: penalties see standard deviations" in done.stdout
    latent = pd.read_csv(out / "latent.csv", index_col=0)
    assert latent.index.tolist() == ["north/a", "north/b", "south/c", "north", "south", "root"]
    standard = pd.read_csv(out / "standardised.csv").set_index("feature")
    frame = pd.read_csv(tmp_path / "visits.csv")
    assert standard.loc["dose", "scale"] == pytest.approx(frame["dose"].std())
    solution = gr.read_model(model).solve()
    written = pd.read_csv(out / "coefficients.csv", index_col=0)["dose"].to_numpy()
    assert written == pytest.approx(solution.coef[:, solution.form.space.names.index("dose")] / frame["dose"].std())
    assert "north/a" in set(pd.read_csv(out / "edges.csv")["head"])


def test_coefficients_by_feature_and_class(tmp_path, model):
    content = {**BASE, "loss": {"family": "MultinomialLoss"}, "node_penalty": {"penalty": "SquaredL2"}}
    content["data"] = {**BASE["data"], "target": "hours"}
    content["total_variation"] = {"penalty": "L2", "features": ["dose"]}  # all classes
    write(tmp_path, content)
    assert run("solve", model, "--out", tmp_path / "out", "--no-pictures").exit_code == 0
    table = pd.read_csv(tmp_path / "out" / "coefficients.csv", dtype={"node": str})
    solution = gr.read_model(model).solve()
    assert table.columns.tolist() == ["node", *(f"{f}[{c}]" for f in ("dose", "age") for c in (1, 2, 3))]
    np.testing.assert_allclose(table.iloc[:, 1:], solution.coef, atol=1e-5)


def test_what_is_not_ours_stays(tmp_path, model):
    out = tmp_path / "out"
    out.mkdir()
    (out / "edges.csv").write_text("mine\n")
    (out / "notes.txt").write_text("mine\n")
    done = run("solve", model, "--out", out)
    assert done.exit_code == 2
    assert "edges.csv exists and is no earlier result" in done.stderr
    assert sorted(path.name for path in out.iterdir()) == ["edges.csv", "notes.txt"]
    assert (out / "edges.csv").read_text() == "mine\n"
    assert run("solve", model, "--out", out, "--force").exit_code == 0
    assert run("solve", model, "--out", out).exit_code == 0  # now it is ours
    assert (out / "notes.txt").read_text() == "mine\n"
    (out / "result.json").write_text('{"written_by": "someone else", "files": ["result.json"]}')
    assert run("solve", model, "--out", out).exit_code == 2


def test_a_folder_that_cannot_be_made(tmp_path, model):
    (tmp_path / "file").write_text("")
    done = run("solve", model, "--out", tmp_path / "file" / "out")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: --out: ")


def test_nothing_is_left_half_written(tmp_path, model, monkeypatch):
    out = tmp_path / "out"
    assert run("solve", model, "--out", out, "--no-pictures").exit_code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    real, count = folder_module.replacing, []

    @contextmanager
    def full(path):
        count.append(path)
        with real(path) as file:
            if len(count) == 3:
                file.write(b"half")
                raise OSError(28, "No space left on device")
            yield file

    monkeypatch.setattr(folder_module, "replacing", full)
    done = run("solve", model, "--method", "PrimalDual", "--out", out, "--no-pictures")
    assert done.exit_code == 2
    assert "the results cannot be written: No space left on device" in done.stderr
    assert len(count) == 3
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


# ---- how it ends -----------------------------------------------------------------------------------------------------
def test_exit_codes(tmp_path, model, unattained):
    assert run("solve", model, "--quiet").exit_code == 0
    assert run("solve").exit_code == 2
    assert run("solve", tmp_path / "none.toml").exit_code == 2
    assert run("solve", model, "--method", "PrimalDual", "--rounds", "2", "--gap", "0").exit_code == 4
    done = run("solve", unattained, "--out", tmp_path / "out", "--no-pictures")
    assert done.exit_code == 5
    assert "add a ridge" in done.stdout
    assert json.loads((tmp_path / "out" / "result.json").read_text())["status"] == "unattained"
    (tmp_path / "visits.csv").write_text("site,dose,age,response\n01,,2,3\n")
    assert run("solve", model).exit_code == 3
    write(tmp_path, {**BASE, "los": {}})
    assert run("solve", model).exit_code == 2


@pytest.mark.parametrize("method", ["Exact", "PrimalDual"])
def test_where_no_point_is_feasible_there_are_no_coefficients(tmp_path, model, method):
    boxes = [{"penalty": {"family": "Box", "low": 1.0}}, {"penalty": {"family": "Box", "high": -1.0}}]
    write(tmp_path, {**BASE, "node_penalty": boxes})
    out = tmp_path / "out"
    budget = () if method == "Exact" else ("--rounds", "20")
    done = run("solve", model, "--method", method, *budget, "--out", out)
    assert done.exit_code == 5
    assert "no coefficients: no point was found" in done.stdout
    assert [path.name for path in out.iterdir()] == ["result.json"]
    found = json.loads((out / "result.json").read_text())
    assert "coefficients" not in found
    assert found["certificate"]["dual"] is None
    assert found["objective"] is None


def test_exit_codes_are_in_the_help():
    text = run("--help").output
    for code, meaning in EXITS.items():
        assert f"{code}" in text
        assert meaning[:40] in text


def test_errors_are_one_line(tmp_path, model):
    write(tmp_path, {**BASE, "loss": {"famly": "SquaredLoss"}})
    done = run("solve", model)
    assert done.stderr == "Error: model.toml: [loss] has no key 'famly'; did you mean 'family'?\n"
    assert done.stdout == ""


def test_errors_of_solve_name_the_table(tmp_path, model):
    write(tmp_path, {**BASE, "solve": {"method": {"family": "Exact", "solver": "none such"}}})
    done = run("solve", model)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: model.toml: [solve]: the solver 'none such' is not installed")
    done = run("solve", model, "--method", "PrimalDual", "--gap", "nan")
    assert (done.exit_code, done.stderr) == (2, "Error: gap must be a non-negative number, got nan\n")


def test_a_warning_free_silent_process(tmp_path, model):
    started = process("solve", model, "--method", "PrimalDual", cwd=tmp_path)
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0, err
    assert "certificate" in out
    assert err == ""  # stderr is no terminal: no progress


def test_ctrl_c_gives_the_best_point_so_far(tmp_path, model):
    endless = ("--method", "PrimalDual", "--gap", "0", "--rounds", str(10**9))
    started = process("solve", model, *endless, "--out", "out", "--no-pictures", cwd=tmp_path)
    assert started.stdout is not None
    line = started.stdout.readline()
    while line and not line.startswith("minimise over"):
        line = started.stdout.readline()
    time.sleep(1.0)  # the problem is printed; the run has begun
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=120)
    assert started.returncode == 130, err
    assert "PrimalDual: interrupted. The run was interrupted after" in out
    assert "certificate" in out
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["status"] == "interrupted"
    assert result["certificate"]["valid"]
    assert len(pd.read_csv(tmp_path / "out" / "coefficients.csv")) == 7


def test_ctrl_c_while_reading(model, monkeypatch):
    monkeypatch.setattr("graphreg.model_file.read_samples", interrupt)
    done = run("solve", model)
    assert done.exit_code == 130
    assert done.stderr == "Interrupted.\n"


# ---- real data -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "objective"), [pytest.param("states", 2.215762, marks=pytest.mark.whole), ("counties", 27.163352)]
)
def test_elections(name, objective):
    if not DATA.is_dir():
        pytest.skip("the election models need their data in ../shared/data, which is not there")
    done = run("solve", EXAMPLES / "models" / f"elections-{name}.toml", "--data", DATA, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    slack = 1e-6 * objective  # both are certified to 1e-6; the figures are those of examples/elections.py
    assert found["certificate"]["dual"] <= objective + slack
    assert found["objective"] == pytest.approx(objective, abs=2 * slack)


def test_models_of_rows_are_solved_and_their_rows_written(tmp_path):
    tables(tmp_path)
    rows = [{"penalty": "L1", "along": "day", "order": 2, "strength": 0.3, "parameter": "lam"}]
    data = {**BASE["data"], "file": "dated.csv"}
    alone = {name: table for name, table in BASE.items() if name not in ("graph", "total_variation")}
    write(tmp_path, {**alone, "data": data, "rows": rows})
    done = run("solve", tmp_path / "model.toml", "--out", tmp_path / "alone")
    assert done.exit_code == 0, done.output
    assert "clusters" not in done.output
    assert not (tmp_path / "alone" / "clusters.csv").exists()
    assert "clusters" not in json.loads((tmp_path / "alone" / "result.json").read_text())
    assert "make no clusters, and nothing was looked for" in run("solve", tmp_path / "model.toml", "--prove").stderr
    write(tmp_path, {**BASE, "data": data, "rows": rows})
    out = tmp_path / "out"
    done = run("solve", tmp_path / "model.toml", "--out", out, "--prove")
    assert done.exit_code == 0, done.output
    assert "looked for" not in done.stderr
    table = pd.read_csv(out / "rows.csv")
    assert table["row"].tolist() == ["01/02/03", "02/03/04", "03/04/05", "04/05/06"]
    assert (table["length"] <= 0.3 * np.sqrt(2) + 1e-9).all()
    assert set(pd.read_csv(out / "flows.csv")["term"]) == {"TotalVariation(L2)"}
    content = json.loads((out / "result.json").read_text())
    assert content["coefficients"].keys() == {"01", "02", "03", "04", "05", "06", "07"}
    solution = gr.read_model(tmp_path / "model.toml").solve()  # the edges beside the rows have clusters all the same
    clusters = solution.clusters(prove=True)
    assert str(clusters).split(";")[0] in done.output
    assert content["clusters"]["count"] == clusters.count
    assert pd.read_csv(out / "clusters.csv")["cluster"].tolist() == list(clusters.labels.values())
    assert pd.read_csv(out / "edges.csv")["state"].tolist() == clusters.edges["state"].tolist()
    assert (out / "graph.png").exists()
    for command in ("methods", "report", "path", "cv", "compare"):
        extra = ["--strengths", "0.1,0.3"] if command in ("path", "cv") else []
        done = run(command, tmp_path / "model.toml", *extra, *(["--out", tmp_path / "r.html"] * (command == "report")))
        assert done.exit_code == 0, done.output
