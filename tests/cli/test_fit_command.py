"""``graphreg fit``: the answer of `gr.fit`, from files; errors speak of options, and Ctrl-C ends it in one line."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import run
from click.testing import CliRunner
from places import ROOT

import graphreg as gr
from graphreg.base.clock import OutOfTimeError, left
from graphreg.certificate.edges import clusters
from graphreg.cli import main
from graphreg.cli.program import typed
from graphreg.fitting import reading, recipe
from graphreg.tuning.warm import Warm

ASKED = ("--target", "visits", "--node", "clinic", "--folds", "2")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Visits to five clinics, the last of which no edge reaches, and some ages are missing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"clinic": np.repeat([f"St. {x}" for x in "ABCDE"], 8), "age": rng.normal(50, 9, 40).round()})
    frame["visits"] = (0.3 * frame["age"] + rng.normal(0, 2, 40)).round(2)
    frame.loc[[3, 30], "age"] = np.nan
    frame.to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "edges.csv").write_text("a,b\n" + "".join(f"St. {a},St. {b}\n" for a, b in ("AB", "BC", "CD")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recipe, "STRENGTHS", 4)  # which of many is the best is seen elsewhere
    return tmp_path


def test_it_is_the_same_as_in_python(folder):
    done = run("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "mean", "--csv", "coefficients.csv")
    assert done.exit_code == 0, done.output
    assert "1 node of the table not in the graph, fitted by the one model for all: 'St. E'" in done.output
    found = gr.fit("visits.csv", "edges.csv", target="visits", node="clinic", folds=2, missing="mean")
    written = pd.read_csv("coefficients.csv", index_col="node")
    assert written.pop("cluster").to_dict() == found.solution.clusters().labels
    assert list(written) == list(found.table())
    assert list(written.index) == list(found.table().index)
    np.testing.assert_allclose(written, found.table(), rtol=1e-12)
    rows = pd.read_csv("visits.csv").assign(age=lambda rows: rows["age"].fillna(rows["age"].mean()))
    own = written.loc[rows["clinic"]].reset_index(drop=True)
    by_hand = own["intercept"] + own["age"] * rows["age"]
    np.testing.assert_allclose(found.predict("visits.csv"), by_hand, rtol=1e-9)


def test_coefficients_of_classes_have_one_line_of_names(folder):
    rows = pd.read_csv("visits.csv")
    with (folder / "edges.csv").open("a") as file:
        file.write("St. D,St. E\n")
    rows.assign(visits=np.tile(["few", "many", "some"], 14)[:40]).to_csv("visits.csv", index=False)
    done = run(
        "fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop", "--strengths", "1", "--csv", "out.csv", "--json"
    )
    assert done.exit_code == 0, done.output
    table = pd.read_csv("out.csv", index_col="node")
    names = [f"{name}[{each}]" for name in ("intercept", "age") for each in ("few", "many", "some")]
    assert [*table] == [*names, "cluster"]
    assert [*table.index] == [f"St. {x}" for x in "ABCDE"]
    assert table.notna().all(axis=None)
    assert [*json.loads(done.stdout)["coefficients"]["St. A"]] == names


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "'age' is missing in lines 5, 32; use --missing drop or --missing mean"),
        (
            ("--target", "age", "--features", "visits"),
            "use --missing drop or --missing mean: both leave these rows out",
        ),
        (("--target", "visit"), "visits.csv has no column 'visit'; did you mean 'visits'?"),
        (("--missing", "drop", "--loss", "PoisonLoss"), "did you mean 'PoissonLoss'"),
        (("--missing", "drop", "--edge-weight", "km"), "named by --edge-weight"),
    ],
)
def test_errors_speak_of_options(folder, options, said):
    done = run("fit", "visits.csv", "edges.csv", *ASKED, *options)
    assert done.exit_code in (2, 3)
    assert done.output.startswith("Error: ")
    assert said in done.output


def test_proofs_are_looked_for_on_demand(folder):
    asked = ("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop", "--json")
    near, proved = (json.loads(run(*asked, *more).stdout)["clusters"] for more in ((), ("--prove",)))
    assert not near["certain"]
    assert proved["certain"]
    assert proved["proved_count"][0] == proved["proved_count"][1] == proved["count"]
    said = "gap=6e-08 should decide them; a smaller gap= may; clusters(prove=True) looks for proofs"
    assert typed(said) == "--gap 6e-08 should decide them; a smaller --gap may; --prove looks for proofs"


def test_seconds_bind_proofs_too_and_what_was_not_looked_for_is_said(folder, monkeypatch):
    rest = []

    def out_of_time(*_arguments):
        rest.append(left())
        raise OutOfTimeError

    monkeypatch.setattr(clusters, "_prove", out_of_time)
    asked = ("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop", "--prove", "--seconds", "300")
    done = run(*asked, "--picture", "fit.png")
    assert done.exit_code == 0, done.output
    assert "out of time, so that not all proofs were looked for" in " ".join(done.output.split())
    assert len(rest) == 1  # neither what is printed nor the picture looks for them once more
    assert 0.0 < rest[0] < 300.0


def test_columns_are_mended_in_the_file(folder):
    rows = pd.read_csv("visits.csv").assign(cost=[f"${k},000" for k in range(1, 41)])
    rows.assign(seen=pd.date_range("2024-03-01", periods=40).astype(str)).to_csv("visits.csv", index=False)
    done = run("fit", "visits.csv", "edges.csv", *ASKED)
    assert "'cost' holds numbers with signs ('$1,000', ...): strip them in the file\n" in done.output
    assert "code them first, as months or days, in the file, or leave the column out" in done.output
    assert "frame[" not in done.output


@pytest.mark.filterwarnings("default:'1se' takes:graphreg.errors.MethodWarning")
def test_labels_with_spaces_are_refused_and_taken_on_demand(folder):
    text = (folder / "visits.csv").read_text()
    (folder / "visits.csv").write_text(text.replace("St. A,", "St. A ,", 3))
    asked = ("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop")
    done = run(*asked)
    assert done.exit_code != 0
    assert "'St. A ' of the table beside 'St. A' of the graph; --ids strip takes" in done.output
    done = run(*asked, "--ids", "strip", "--rule", "1se")
    assert done.exit_code == 0, done.output
    assert "at 5 nodes" in done.output
    assert "one model for all is within one standard error of the best of 5 strengths" in " ".join(done.output.split())
    assert "1 node of the table not in the graph, fitted by the one model for all: 'St. E'" in done.output


def test_what_is_printed_speaks_of_options(folder):
    (folder / "edges.csv").write_text("a,b,km\nSt. A,St. B,1\nSt. B,St. C,1\n")
    done = run("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop")
    assert "edges.csv: 'km' not used; --edge-weight takes" in done.output


@pytest.mark.parametrize("header", ["a,b", "a,b,weight"])
def test_edges_without_rows_are_said_to_have_none(folder, header):
    (folder / "edges.csv").write_text(f"{header}\n")
    done = run("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop")
    assert done.output == "Error: edges.csv has no rows below its header: there is no edge; give each edge a row\n"


def test_edges_that_repeat_are_named_by_their_lines(folder):
    with open("edges.csv", "a") as file:
        file.write("St. C,St. B\n")
    done = run("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop")
    assert "edges.csv has edges that stand several times, again in line 5; use --repeated sum" in done.output


@pytest.mark.parametrize(
    ("after", "done"),
    [(0, "cross_validate: nothing was finished; the same"), (3, "fit: 1 of 2 folds were finished, and")],
)
def test_ctrl_c_ends_it_in_one_line_that_says_what_is_done_and_how_to_go_on(folder, monkeypatch, after, done):
    """With two folds and two strengths; of the second cross-validation, of one model for all, there is none."""
    calls, solve = itertools.count(), Warm.solve

    def interrupted(*arguments, **options):
        if next(calls) == after:
            raise KeyboardInterrupt
        return solve(*arguments, **options)

    monkeypatch.setattr(Warm, "solve", interrupted)
    monkeypatch.setattr(recipe, "_strengths", lambda problem, given=None: [0.1, 1.0])
    ended = run("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop")
    assert ended.exit_code == 130
    assert ended.output.startswith(f"Interrupted: {done}")
    assert ended.output.endswith(".\n")
    assert ended.output.count("\n") == 1
    assert next(calls) == after + 1  # nothing was begun after it


def test_standard_errors_and_intervals_are_written_and_shown(folder):
    asked = ("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop")
    done = run(*asked, "--intervals", "intervals.csv", "--html", "fit.html", "--json")
    assert done.exit_code == 0, done.output
    found = gr.fit("visits.csv", "edges.csv", target="visits", node="clinic", folds=2, missing="drop")
    table = gr.inference.local_regions(found).table()
    written = pd.read_csv("intervals.csv", index_col=["node", "coefficient"])
    pd.testing.assert_frame_equal(written, pd.DataFrame(table), rtol=1e-9)
    document = json.loads(done.stdout)
    assert document["intervals"][0]["coefficient"] == "intercept"
    assert document["clusters"]["labels"] == found.solution.clusters().labels
    assert document["certificate"]["relative_gap"] == found.solution.certificate.relative_gap
    assert document["certificate"]["dual"] <= document["certificate"]["primal"]
    assert "std_error" in (folder / "fit.html").read_text()
    assert "exists; name another file" in run(*asked, "--intervals", "intervals.csv").output
    plain = run(*asked, "--intervals", "intervals.csv", "--force")
    assert "each node's own estimates: 95% intervals" in plain.stdout
    pd.concat([pd.read_csv("visits.csv"), pd.DataFrame({"clinic": ["St. F"], "age": [60], "visits": [9.0]})]).to_csv(
        "visits.csv", index=False
    )
    lonely = run(*asked, "--intervals", "few.csv")
    assert lonely.exit_code == 0
    assert lonely.stderr.count("no intervals: ") == 1
    assert "'St. F'" in lonely.stderr
    few = pd.read_csv("few.csv")
    assert few[few["reason"].notna()][["node", "coefficient"]].values.tolist()[0] == ["St. F", "intercept"]
    assert few["reason"].notna().tolist() == few["low"].isna().tolist() == [False] * 10 + [True] * 2
    pd.testing.assert_frame_equal(few[:10].drop(columns="reason"), pd.read_csv("intervals.csv"), rtol=1e-2)
    told = json.loads(run(*asked, "--intervals", "few.csv", "--force", "--json").stdout)["intervals"]
    assert [row.get("reason") for row in told] == [None] * 10 + few["reason"][10:].tolist()
    rows = pd.read_csv("visits.csv").dropna()
    rows.groupby("clinic").head(1).to_csv("visits.csv", index=False)
    none = run("fit", "visits.csv", "edges.csv", *ASKED, "--by", "node", "--intervals", "none.csv")
    assert none.exit_code == 3
    assert "certified" in none.stdout  # the answer is there
    assert not (folder / "none.csv").exists()


def test_rows_of_another_table_are_predicted(folder):
    asked = ("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop")
    rows = pd.read_csv("visits.csv").dropna().drop(columns="visits")[::-2]
    rows.to_csv("rows.csv", index=False)
    assert run(*asked, "--predict", "rows.csv", "predictions.csv").exit_code == 0
    found = gr.fit("visits.csv", "edges.csv", target="visits", node="clinic", folds=2, missing="drop")
    written = pd.read_csv("predictions.csv")
    assert written["prediction"].tolist() == pytest.approx(found.predict(rows).tolist(), rel=1e-9)
    assert set(written["prediction_status"]) == {"certified"}
    assert "exists; name another file" in run(*asked, "--predict", "rows.csv", "predictions.csv").output


def test_the_table_and_its_edges_are_read_once(folder, monkeypatch):
    names, read = list[str](), reading.opened
    monkeypatch.setattr(reading, "opened", lambda table, *args: names.append(table) or read(table, *args))
    pd.read_csv("visits.csv").dropna().to_csv("rows.csv", index=False)
    asked = ("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop")
    assert run(*asked, "--predict", "rows.csv", "predictions.csv").exit_code == 0
    assert [names.count(Path(name)) for name in ("visits.csv", "edges.csv")] == [1, 1]


def test_rows_that_cannot_be_predicted_are_named_by_their_lines_and_a_file_that_lacks_before_the_fit(
    folder, monkeypatch
):
    asked = ("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "mean", "--predict")
    (folder / "rows.csv").write_text("clinic,age\nSt. A,50\nSt. F,51\nSt. B,old\n")
    with monkeypatch.context() as patch:
        patch.setattr(gr, "fit", lambda *_, **__: pytest.fail("fitted in vain"))
        done = run(*asked, "rows.csv", "predictions.csv")
        (folder / "lacking.csv").write_text("clinic,years\nSt. A,50\n")
        assert "there is no column 'age'" in run(*asked, "lacking.csv", "predictions.csv", "--unseen", "pooled").output
    assert done.exit_code == 3
    assert "'clinic' is no node in line 3: 'St. F'; did you mean" in done.output
    assert "'age' is no number in line 4: 'old'" in done.output
    assert "or say --unseen pooled, the one model for all nodes" in " ".join(done.output.split())
    assert not (folder / "predictions.csv").exists()
    (folder / "rows.csv").write_text("clinic,age\nSt. A,50\nSt. F,51\n")
    done = run(*asked, "rows.csv", "others.csv", "--unseen", "pooled")
    assert done.exit_code == 0, done.output
    assert "rows at 'St. F' are predicted by one model for all nodes" in done.output
    assert pd.read_csv("others.csv")["clinic"].tolist() == ["St. A", "St. F"]
    monkeypatch.setattr(gr, "fit", lambda *_, **__: pytest.fail("fitted in vain"))
    assert "--predict: there is no file 'row.csv'" in run(*asked, "row.csv", "predictions.csv").output


def test_remedies_are_those_that_can_be_typed():
    said = typed("take covariance='model'; leave loss= out: PoissonLoss is the loss of such a target")
    assert said == (
        "take gr.inference.local_regions in Python with covariance='model'; leave --loss out: PoissonLoss is the "
        "loss of such a target"
    )
    assert typed("say which: strengths=[0.01, 0.1, 1.0]; or leave strengths= out") == (
        "say which: --strengths 0.01,0.1,1.0; or leave --strengths out"
    )


def test_the_command_has_what_the_function_has():
    options = {option.name for option in main.commands["fit"].params}
    lacking = set(inspect.signature(gr.fit).parameters) - options
    assert lacking == {"graph", "progress"}  # which are EDGES, and --quiet


def test_strengths_penalty_memory_and_jobs_are_those_of_the_function(folder):
    asked = ("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop", "--json")
    more = ("--strengths", "0.5,2", "--penalty", "HuberNorm(delta=0.5)", "--jobs", "2", "--memory", "4e9")
    done = json.loads(run(*asked, *more).stdout)
    how = {"missing": "drop", "strengths": [0.5, 2.0], "penalty": gr.HuberNorm(delta=0.5), "memory": 4e9}
    found = gr.fit("visits.csv", "edges.csv", target="visits", node="clinic", folds=2, **how)
    assert done["scores"]["this fit"]["mse"] == pytest.approx(found.scores["mse"]["this fit"], rel=1e-9)
    assert done["coefficients"]["St. B"]["age"] == pytest.approx(found.table().loc["St. B", "age"], rel=1e-9)
    counted = json.loads(run(*asked, "--strengths", "6").stdout)
    found = gr.fit("visits.csv", "edges.csv", target="visits", node="clinic", folds=2, missing="drop", strengths=6)
    assert len(found.validation.grid.points) == 7
    assert counted["coefficients"]["St. B"]["age"] == pytest.approx(found.table().loc["St. B", "age"], rel=1e-9)
    assert set(counted["scores"]) == {"this fit", "one model for all", "every node alone"}  # both ends are among them
    assert "--penalty: there is no penalty 'L7'" in run(*asked, "--penalty", "L7").output


@pytest.mark.parametrize("loss", ["HuberLoss(delta=25000)", "QuantileLoss(tau=0.9)"])
def test_a_loss_has_options(folder, loss):
    asked = ("--missing", "drop", "--strengths", "0.5,2", "--loss", loss)
    done = run("fit", "visits.csv", "edges.csv", *ASKED, *asked)
    assert done.exit_code == 0, done.output
    assert f"{loss}, as asked for" in done.output


def test_memory_that_is_not_allowed_is_one_line(folder):
    done = run("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop", "--memory", "100")
    assert done.exit_code == 5
    assert re.fullmatch(r"Error: .* GB may be used; take a smaller problem, more memory, .*\n", done.stderr)


def test_tables_come_from_pipes_and_what_is_wrong_is_said_by_their_lines(folder):
    rows, asked = Path("visits.csv").read_bytes(), ("visits.csv", "edges.csv", *ASKED, "--missing", "drop")

    def piped(*arguments, given=rows):
        return CliRunner().invoke(main, ["fit", *arguments], input=given)

    whole = run("fit", *asked).stdout
    assert piped("-", *asked[1:]).stdout == whole
    assert piped("-", *asked[1:], given=rows.replace(b"St. B,", b"St. B ,", 1)).exit_code == 3
    os.mkfifo("pipe")
    with ThreadPoolExecutor() as others:
        others.submit(Path("pipe").write_bytes, rows)
        assert run("fit", "pipe", *asked[1:]).stdout == whole
    wrong = piped(*asked, "--predict", "-", "out.csv", given=b"clinic,age\nSt. A,old\n")
    assert "'age' is no number in line 2: 'old'" in wrong.output
    done = piped(*asked, "--predict", "-", "out.csv", given=b"clinic,age\nSt. A,40\n")
    assert done.exit_code == 0, done.output
    assert len(pd.read_csv("out.csv")) == 1


@pytest.mark.parametrize(("more", "seen"), [((), True), (("--quiet",), False)])
def test_a_first_word_comes_before_what_takes_long_to_import(folder, more, seen):
    ours, theirs = os.openpty()
    command = [sys.executable, "-X", "importtime", "-m", "graphreg", "fit", "no.csv", "edges.csv", *ASKED, *more]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as done:
        os.close(theirs)
        said = b""
        with suppress(OSError):  # the end of what a terminal shows
            while part := os.read(ours, 65536):
                said += part
        assert done.stdout.read() == b""
    os.close(ours)
    assert b"Error: there is no file 'no.csv'" in said
    assert (b"starting" in said) is seen
    if seen:
        assert said.index(b"starting") < said.index(b"scipy")


def test_a_page_speaks_as_what_is_printed_does(folder):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"region": np.repeat(list("abcdef"), 20), "x": rng.normal(size=120), "kind": ["u", "v"] * 60})
    table["y"] = rng.poisson(np.exp(table["x"] * np.where(table["region"] < "d", 1, -1)))
    table.to_csv("table.csv", index=False)
    pd.DataFrame({"from": list("abcde"), "to": list("bcdef")}).to_csv("path.csv", index=False)
    asked = ("--target", "y", "--node", "region", "--strengths", "5.0")
    done = run("fit", "table.csv", "path.csv", *asked, "--html", "fit.html")
    page = (folder / "fit.html").read_text()
    for said in (done.stdout, page):
        assert "--prove looks for proofs" in " ".join(said.split())
    assert "prove=True" not in page


def test_the_code_runs_as_it_is_printed(folder):
    asked = ("fit", "visits.csv", "edges.csv", *ASKED, "--missing", "drop", "--loss", "HuberLoss(delta=2.5)")
    there = {}
    exec(run(*asked, "--code").stdout, there)
    certificate = json.loads(run(*asked, "--json").stdout)["certificate"]
    assert there["solution"].objective == pytest.approx(certificate["primal"], rel=1e-5)
