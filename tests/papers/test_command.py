"""``python -m papers``: claims listed, run, reported; exit codes."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from graphreg.cli import exits
from papers import Declaration, Evidence, Verdict, at_most
from papers.__main__ import main

SOME = ("--claim", "clusters.eq2.2", "--claim", "clusters.prop3.4")


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.fixture
def out(tmp_path):
    return ("--out", tmp_path / "results")


def test_claims_are_listed_without_being_computed(out):
    listed = json.loads(run("list", "clusters", "--json", *out).stdout)
    assert len(listed) > 20
    assert all(each["paper"] == "clusters" for each in listed)
    assert {each["verdict"] for each in listed} == {None, "cannot be checked"}
    assert not out[1].exists()
    text = run("list", *SOME, *out).stdout
    assert max(map(len, text.splitlines())) <= 100
    assert "not run" in text
    assert "2 claims" in text
    assert text.endswith("`python -m papers run` computes what is not run; what a run found is in papers/results.md\n")


def test_a_run_its_list_and_its_report(out, tmp_path, pyplot):
    result = run("run", *SOME, *out)
    assert result.exit_code == 0, result.output
    assert "unexplained deviations: none" in result.stdout
    listed = {each["id"]: each for each in json.loads(run("list", "--json", *SOME, *out).stdout)}
    corrected = listed["clusters.eq2.2"]
    assert corrected["verdict"] == "holds with a correction"
    assert corrected["settings"]["scale"] == "both"
    for field in ("stated", "computed", "tolerance", "seconds", "correction", "checks"):
        assert corrected[field], field
    assert "clusters.eq2.2" in run("report", *SOME, *out).stdout
    files = ("--html", tmp_path / "new" / "page.html", "--markdown", tmp_path / "page.md")
    assert run("report", *out, *files).exit_code == 0
    assert "</html>" in files[1].read_text(encoding="utf-8")
    assert "clusters.eq2.2" in files[3].read_text(encoding="utf-8").replace("\\", "")


def test_mistakes(out, tmp_path):
    for given, said in (
        (["run", "clusterz"], "did you mean 'clusters'?"),
        (["list", "--claim", "clusters.A13"], "did you mean 'clusters.A12'?"),
        (["report", "nothing"], "there are 'clusters'"),
        (["run", "--scale", "huge"], "huge"),
        (["run", "--processes", "0"], "processes"),
    ):
        result = run(*given, *out)
        assert result.exit_code == exits.USAGE
        assert said in result.stderr
    (tmp_path / "file").touch()
    assert run("run", *SOME, "--out", tmp_path / "file").exit_code == exits.USAGE


@pytest.mark.parametrize(("bound", "code"), [(3.0, exits.CERTIFIED), (1.0, exits.LAW_BROKEN)])
def test_an_unexplained_deviation_has_an_exit_code(bound, code, out, monkeypatch):
    function = lambda at: Evidence.of(at_most("x", 2.0, bound))  # noqa: E731
    mine = Declaration("clusters.mine", "(1)", "Two and two.", "four", Verdict.HOLDS, function=function)
    monkeypatch.setattr("papers.chosen", lambda *_: {mine.id: mine})
    result = run("run", *out)
    assert result.exit_code == code
    assert ("UNEXPLAINED" in result.stdout) == (code != 0)


def test_ctrl_c(out, monkeypatch):
    def interrupted(at):
        raise KeyboardInterrupt

    mine = Declaration("clusters.mine", "(1)", "Two and two.", "four", Verdict.HOLDS, function=interrupted)
    monkeypatch.setattr("papers.chosen", lambda *_: {mine.id: mine})
    result = run("run", *out)
    assert result.exit_code == exits.INTERRUPTED
    assert "goes on" in result.stderr


def test_a_long_run_says_how_long_it_will_take(out, monkeypatch):
    """But not of what is kept."""
    quick = lambda at, n=1: Evidence.of(at_most("x", 2.0, 3.0))  # noqa: E731
    long = {"experiment": True, "full": {"n": 2}, "minutes": 150.0}
    mine = Declaration("clusters.mine", "(1)", "Two and two.", "four", Verdict.HOLDS, function=quick, **long)
    monkeypatch.setattr("papers.chosen", lambda *_: {mine.id: mine})
    assert "left" not in run("run", *out).stderr
    assert "about 2.5 h left" in run("run", "--scale", "full", *out).stderr
    assert "left" not in run("run", "--scale", "full", *out).stderr


def test_a_report_loses_no_file(tmp_path, out):
    page = tmp_path / "page.html"
    page.write_text("precious")
    refused = run("report", *SOME, *out, "--html", page)
    assert (refused.exit_code, page.read_text()) == (exits.USAGE, "precious")
    assert "--force" in refused.stderr
    assert run("report", *SOME, *out, "--html", page, "--force").exit_code == 0
    assert page.read_text() != "precious"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
