"""Runs of claims: what is not computed does not pass, what is kept is not computed again, what is damaged is."""

from __future__ import annotations

import doctest
import json
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import graphreg as gr
import papers
from graphreg.errors import ModelError, ModelFileError
from papers import (
    Declaration,
    Evidence,
    Outlook,
    Runner,
    Trial,
    Verdict,
    at_least,
    at_most,
    chosen,
    duration,
    equal,
    replications,
    running,
)
from papers.declaring import _files, _register, library

CALLS = []


def right(at, n=3):
    CALLS.append(n)
    x = at.rng().standard_normal(n)
    return Evidence.of(equal("twice", x + x, 2.0 * at.given(x)), data={"x": x})


def declared(function=right, expected=Verdict.HOLDS, **more):
    return Declaration("clusters.mine", "(1)", "Two and two.", "equal", expected, function=function, **more)


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


# ---- nothing passes without being computed ---------------------------------------------------------------------------
def raises(at):
    raise ZeroDivisionError("no numbers")


def not_finite(at):
    return Evidence.of(equal("x", np.nan, at.given(1.0)))


def without_numbers(at):
    return Evidence.of()


def empty(at):
    return Evidence.of(equal("x", [], at.given(np.array([])), unit="absolute"))


def no_evidence(at):
    return True


def without_inputs(at):
    return Evidence.of(equal("x", 1.0, 1.0))


@pytest.mark.parametrize("function", [raises, not_finite, without_numbers, empty, no_evidence, without_inputs])
@pytest.mark.parametrize("expected", [Verdict.HOLDS, Verdict.FAILS])
def test_a_claim_cannot_pass_by_not_being_computed(function, expected, tmp_path):
    claim = Runner(out=tmp_path).run(declared(function, expected))
    assert claim.verdict == Verdict.UNCHECKED
    assert claim.unexplained
    assert "computed" in claim.reason
    assert not list(tmp_path.rglob("*.json")), "what was not computed is not kept"


def test_any_verdict_but_the_expected_one_is_an_unexplained_deviation():
    wrong = lambda at: Evidence.of(at_most("x", 2.0, 1.0))  # noqa: E731
    claim = Runner().run(declared(wrong))
    assert claim.verdict == Verdict.FAILS
    assert "expected was: holds; found: does not hold" in claim.unexplained
    assert "no counterexample" in Runner().run(declared(wrong, Verdict.FAILS)).unexplained
    shown = lambda at: Evidence.of(at_most("x", 2.0, 1.0), counterexample={"x": 2.0})  # noqa: E731
    assert not Runner().run(declared(shown, Verdict.FAILS)).unexplained
    better = lambda at: Evidence.of(at_most("x", 0.0, 1.0), counterexample={"x": 2.0})  # noqa: E731
    assert Runner().run(declared(better, Verdict.FAILS)).unexplained
    mended = lambda at: Evidence.of(at_most("x", 2.0, 1.0), corrected=[at_most("y", 2.0, 3.0)])  # noqa: E731
    corrected = declared(mended, Verdict.CORRECTED, correction="Three.", weight="constant")
    assert (Runner().run(corrected).verdict, Runner().run(corrected).unexplained) == (Verdict.CORRECTED, "")


def test_what_holds_in_part_says_which():
    whole = lambda at: Evidence.of(at_most("x", 1.0, 1.0))  # noqa: E731
    range_ = lambda at: Evidence.of(at_most("x", 2.0, 1.0), corrected=[at_most("y", 1.0, 1.0)])  # noqa: E731
    for function in (whole, range_):
        claim = Runner().run(declared(function, Verdict.PART, part="Up to y."))
        assert (claim.verdict, claim.part, claim.unexplained) == (Verdict.PART, "Up to y.", "")
    better = lambda at: Evidence.of(at_most("x", 1.0, 1.0), corrected=[at_most("y", 1.0, 1.0)])  # noqa: E731
    claim = Runner().run(declared(better, Verdict.PART, part="Up to y."))
    assert (claim.verdict, claim.part) == (Verdict.HOLDS, "")
    assert claim.unexplained, "it holds everywhere"


def test_a_reason_stands_beside_numbers_that_decide_nothing():
    wrong = lambda at: Evidence.of(at_most("x", 2.0, 1.0))  # noqa: E731
    claim = Runner().run(declared(wrong, Verdict.UNCHECKED, reason="The text has no y."))
    assert (claim.verdict, claim.reason, claim.unexplained) == (Verdict.UNCHECKED, "The text has no y.", "")
    assert claim.evidence.checks


@pytest.mark.parametrize("function", [right, raises])
def test_a_correction_is_said_of_a_row_where_it_was_found(function, tmp_path):
    """Not where nothing was computed, something is missing, or the print holds."""
    mine = declared(
        function,
        Verdict.CORRECTED,
        correction="Three.",
        weight="constant",
        quick={} if function is raises else {"n": 3},
    )
    lacking = Runner(data=tmp_path).run(replace(mine, data=("a.csv",)))
    for claim in (Runner().run(mine), lacking, Runner(out=tmp_path / "none").kept(mine)):
        assert claim.correction == ""
        assert "Three." not in papers.line(claim) + papers.to_markdown([claim], {})


def test_perturbed_inputs():
    claim = Runner(perturbation=True).run(declared())
    assert claim.verdict == Verdict.FAILS
    assert claim.evidence.checks[0].deviation == pytest.approx(1e-3, rel=1e-2)
    both = lambda at: Evidence.of(equal("x", at.given(3.0), at.given(3.0)))  # noqa: E731
    assert Runner(perturbation=True).run(declared(both)).verdict == Verdict.HOLDS, "what test_claims.py finds"
    bound = lambda at: Evidence.of(at_least("x", 3.0, 1.0))  # noqa: E731 - no equality
    assert Runner().run(declared(bound)).verdict == Verdict.HOLDS
    text = lambda at: Evidence.of(equal("x", 3.0, at.given("3")))  # noqa: E731
    assert "number" in Runner().run(declared(text)).reason


def test_data_and_modules_that_are_missing_are_said(tmp_path):
    seen = lambda at: Evidence.of(at_most("there", 0.0 if at.file("a.csv") else 1.0, 1.0))  # noqa: E731
    needs = declared(seen, data=("a.csv",))
    claim = Runner(data=tmp_path).run(needs)
    assert (claim.verdict, claim.unexplained) == (Verdict.UNCHECKED, "")
    assert claim.reason == "the data are not here: a.csv"
    stand_in = replace(needs, stand_in="the bundled digits")
    claim = Runner(data=tmp_path).run(stand_in)
    assert (claim.verdict, claim.settings["data"]) == (Verdict.HOLDS, "the bundled digits")
    assert claim.evidence.checks[0].computed == (1.0,)
    (tmp_path / "a.csv").touch()
    claim = Runner(data=tmp_path).run(stand_in)
    assert (claim.settings["data"], claim.evidence.checks[0].computed) == ("a.csv", (0.0,))
    claim = Runner().run(declared(right, extras=("no_such_module",)))
    assert (claim.verdict, claim.unexplained) == (Verdict.UNCHECKED, "")
    assert claim.reason == "no_such_module is not installed"


def test_the_folder_of_data_may_be_named_by_a_variable(tmp_path, monkeypatch):
    (tmp_path / "a.csv").touch()
    monkeypatch.setenv("GRAPHREG_DATA", str(tmp_path))
    seen = lambda at: Evidence.of(at_most("there", 0.0 if at.file("a.csv") else 1.0, 0.0))  # noqa: E731
    assert Runner().run(declared(seen, data=("a.csv",))).verdict == Verdict.HOLDS


# ---- what is kept ----------------------------------------------------------------------------------------------------
def test_what_is_kept_is_not_computed_again(tmp_path):
    runner, mine = Runner(out=tmp_path), declared(quick={"n": 4}, full={"n": 40})
    first = runner.run(mine)
    assert runner.run(mine) == first
    assert CALLS == [4]
    assert Runner("full", tmp_path).run(mine).settings == {"scale": "full", "seed": mine.seed, "n": 40}
    assert runner.kept(mine) == first
    assert runner.kept(declared(quick={"n": 5})).verdict is None
    assert CALLS == [4, 40]
    assert Runner(out=tmp_path, perturbation=True).run(mine).verdict == Verdict.FAILS
    Runner(out=tmp_path, perturbation=True).run(declared(quick={"n": 6}))
    assert runner.kept(declared(quick={"n": 6})).verdict is None, "what was tampered with is not kept"


def test_the_code_of_a_claim_is_its_file_and_what_that_uses_of_the_paper(tmp_path):
    of_model = papers.declarations()["clusters.prop2.2"]
    module = sys.modules[of_model.function.__module__]
    assert {name.rpartition(".")[2] for name in _files(module, {})} == {"model", "_instances"}
    computed = [each for each in papers.declarations().values() if each.function]
    files = {each.function.__module__ for each in computed}
    assert len({each.code for each in computed}) == len(files) > 4, "one for each file of claims"


def test_other_code_is_another_result(tmp_path, monkeypatch):
    Runner(out=tmp_path).run(declared())
    monkeypatch.setattr(Declaration, "code", "another")
    Runner(out=tmp_path).run(declared())
    assert CALLS == [3, 3]


@pytest.mark.parametrize(
    ("file", "right", "another"),
    [
        ("graphreg/methods/consensus/local_sgd.py", "if (t + 1) % tau == 0", True),
        ("papers/records.py", "false[0]", True),
        ("papers/consensus/gossip.py", "steps", False),  # the claim's own, which is looked at by itself
    ],
)
def test_a_result_is_of_the_code_of_the_library(file, right, another, tmp_path):
    root, none = Path(gr.__file__).parents[1], {"ignore": lambda *_: {"__pycache__"}}
    here, there = ([each / "graphreg", each / "papers"] for each in (root, tmp_path))
    for one, copy in zip(here, there, strict=True):
        shutil.copytree(one, copy, **none)
    before = library(*here)
    assert before == library(*there)
    changed = tmp_path / file
    text = changed.read_text(encoding="utf-8")
    assert right in text
    changed.write_text(text.replace(right, right.swapcase()), encoding="utf-8")
    library.cache_clear()
    assert (library(*there) != before) == another
    library.cache_clear()


def test_a_result_is_of_the_packages_that_numbers_come_from(monkeypatch):
    root = Path(gr.__file__).parent, Path(papers.__file__).parent
    before = library(*root)
    library.cache_clear()
    monkeypatch.setattr("papers.declaring.version", lambda name: "0.1" if name == "scipy" else "2.0")
    assert library(*root) != before
    library.cache_clear()
    [claim] = chosen("clusters.prop2.2").values()
    code = claim.code
    monkeypatch.setattr("papers.declaring.library", lambda *_: "another")
    assert claim.code != code


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-20], lambda _: "", lambda _: "[]", lambda text: text.replace("graphreg", "other")]
)
def test_damaged_and_foreign_results_are_said_and_computed_again(damage, tmp_path):
    first = Runner(out=tmp_path).run(declared())
    (file,) = tmp_path.rglob("*.json")
    whole = file.read_text()
    file.write_text(damage(whole))
    again = Runner(out=tmp_path).run(declared())
    assert file.name in again.note
    assert replace(again, note="", seconds=0.0) == replace(first, seconds=0.0)
    assert CALLS == [3, 3]
    content = json.loads(whole)
    content["content"]["evidence"]["printed"][0]["computed"] = "many"
    file.write_text(json.dumps(content))
    assert "damaged" in Runner(out=tmp_path).run(declared()).note


def test_a_number_that_was_changed_changes_the_verdict(tmp_path):
    Runner(out=tmp_path).run(declared())
    (file,) = tmp_path.rglob("*.json")
    content = json.loads(file.read_text())
    content["content"]["evidence"]["printed"][0]["computed"] = [1e3] * 3
    file.write_text(json.dumps(content))
    assert Runner(out=tmp_path).run(declared()).verdict == Verdict.FAILS, "the verdict is not kept, but the numbers"


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path):
    (tmp_path / "clusters.mine").write_text("in the way")
    with pytest.raises(ModelFileError, match="cannot be kept"):
        Runner(out=tmp_path).run(declared())


def test_code_in_no_file_cannot_be_kept(tmp_path):
    names = {"Evidence": Evidence, "at_most": at_most, "__name__": "of_no_file"}
    exec("def f(at):\n    return Evidence.of(at_most('x', 1.0, 2.0))", names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "of_no_file", type(json)("of_no_file"))
        assert Runner().run(declared(names["f"])).verdict == Verdict.HOLDS
        with pytest.raises(ModelError, match="in no file"):
            Runner(out=tmp_path).run(declared(names["f"]))


# ---- replications ----------------------------------------------------------------------------------------------------
def one(rng, *, n):
    CALLS.append(n)
    return {"mean": rng.standard_normal(n).mean()}


def many(at, count):
    means = [[each["mean"] for each in cell] for cell in at.replicate(one, [{"n": 4}, {"n": 9}], count)]
    return Evidence.of(at_most("|mean|", np.abs(means), 5.0), data={"means": means})


def test_replications_are_kept_one_by_one(tmp_path):
    few = Runner(out=tmp_path).run(declared(many, quick={"count": 2}))
    more = Runner(out=tmp_path).run(declared(many, quick={"count": 3}))
    assert CALLS == [4, 4, 9, 9, 4, 9]
    means = more.evidence.data["means"]
    assert [each[:2] for each in means] == few.evidence.data["means"]
    assert len({value for each in means for value in each}) == 6
    assert Runner().run(declared(many, quick={"count": 3})).evidence == more.evidence


def test_each_cell_has_random_numbers_of_its_own():
    def drawn(rng, *, unused):
        return {"x": rng.random()}

    at = Trial(5)
    both = at.replicate(drawn, [{"unused": 1}, {"unused": 2}], 2)
    assert len({each["x"] for cell in both for each in cell}) == 4
    assert at.replicate(drawn, [{"unused": 2}], 1) == [both[1][:1]]


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    def breaks(rng, *, n):
        if len(CALLS) == 3:
            raise KeyboardInterrupt
        return one(rng, n=n)

    breaks.__qualname__ = one.__qualname__
    interrupted = lambda at: at.replicate(breaks, [{"n": 4}, {"n": 9}], 2)  # noqa: E731
    with pytest.raises(KeyboardInterrupt):
        Runner(out=tmp_path).run(declared(interrupted))
    (file,) = tmp_path.rglob("*.jsonl")
    with file.open("a") as kept:
        kept.write('{"of": {"cel')  # a line that was being written
    claim = Runner(out=tmp_path).run(declared(many, quick={"count": 2}))
    assert CALLS == [4, 4, 9, 9]
    assert "line 5" in claim.note
    next(tmp_path.rglob("*.json")).unlink()
    Runner(out=tmp_path).run(declared(many, quick={"count": 2}))
    assert CALLS == [4, 4, 9, 9], "nothing was lost by it"
    CALLS.clear()
    assert claim.evidence == Runner().run(declared(many, quick={"count": 2})).evidence


def swallows(rng, *, n):
    """As a solve does: broken off, it returns what it has."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return one(rng, n=n)


def test_what_was_broken_off_inside_a_claim_is_no_result(tmp_path):
    """Neither a replication nor a claim is kept, whatever caught Ctrl-C and whatever error followed."""
    broken = lambda at: at.replicate(swallows, [{"n": 4}], 1)  # noqa: E731
    alone = lambda at: Evidence.of(at_most("x", swallows(at.rng(), n=4)["mean"], 9.0))  # noqa: E731
    fails = lambda at: swallows(at.rng(), n=4)["nothing"]  # noqa: E731
    before = signal.getsignal(signal.SIGINT)
    for function in (broken, alone, fails):
        with pytest.raises(KeyboardInterrupt):
            Runner(out=tmp_path).run(declared(function))
    assert CALLS == [4, 4, 4]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_file_of_replications_of_another_origin_is_said(tmp_path):
    Runner(out=tmp_path).run(declared(many, quick={"count": 2}))
    (file,) = tmp_path.rglob("*.jsonl")
    file.write_text("something else")
    assert file.name in Runner(out=tmp_path).run(declared(many, quick={"count": 3})).note
    assert len(CALLS) == 10
    assert len(file.read_text().splitlines()) == 7


@pytest.mark.whole
def test_processes_change_nothing(tmp_path):
    alone = Runner().run(declared(many, quick={"count": 2}))
    together = Runner(out=tmp_path, processes=2).run(declared(many, quick={"count": 2}))
    assert together.evidence == alone.evidence
    assert len((next(tmp_path.rglob("*.jsonl"))).read_text().splitlines()) == 5


def test_a_process_ends_with_the_one_that_has_started_it(monkeypatch):
    ended = []
    monkeypatch.setattr(replications, "os", SimpleNamespace(getppid=lambda: 7, _exit=ended.append))
    for parent, codes in ((7, []), (8, [1])):
        assert replications._placed(3, lambda task: task, "done", parent) == (3, "done")
        assert ended == codes


def read(rng, files, *, n):
    CALLS.append(n)
    return {"size": files["a.csv"].stat().st_size, "drawn": rng.random()}


def test_replications_are_given_real_data_and_another_file_is_another_result(tmp_path):
    """Whatever folder the data are in."""

    def sizes(at):
        [found] = at.replicate(read, [{"n": 1}], 2, with_files=True)
        return Evidence.of(at_least("size", found[0]["size"], 1.0))

    claim, out = declared(sizes, data=("a.csv",)), tmp_path / "out"
    for folder, content in (("one", "abc"), ("two", "abc"), ("three", "abcd")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.csv").write_text(content)
    found = [Runner(out=out, data=tmp_path / name).run(claim) for name in ("one", "two", "three")]
    assert [each.evidence.checks[0].computed for each in found] == [(3.0,), (3.0,), (4.0,)]
    assert CALLS == [1, 1, 1, 1], "not computed again where the data were moved"


# ---- the time left ---------------------------------------------------------------------------------------------------
def test_the_time_left_follows_from_what_is_declared_and_how_fast_it_goes():
    short, long = declared(), declared(experiment=True, full={"n": 9}, minutes=30.0)
    outlook = Outlook("full")
    assert outlook.left([short, long]) == 1.0 + 1800.0
    assert Outlook("full", 2).left([long]) == 900.0
    assert Outlook("quick").left([long]) == 5.0
    outlook.tell(long, 3600.0)
    assert outlook.left([long]) == pytest.approx(3600.0, rel=0.05)
    uncheckable = Declaration("clusters.not", "(1)", "Two.", "four", Verdict.UNCHECKED, reason="no data")
    assert outlook.left([uncheckable]) == 0.0
    assert [duration(each) for each in (8.0, 720.0, 12600.0)] == ["8 s", "12 min", "3.5 h"]


# ---- names -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["cluster"], "did you mean 'clusters'"),
        (["clusters.prop22"], "did you mean 'clusters.prop2.2'"),
        (["clusters", "nothing"], "there is no paper 'nothing'"),
        ([3], "name of a paper"),
    ],
)
def test_unknown_names_are_refused(names, said):
    with pytest.raises(ModelError, match=said):
        chosen(*names)


@pytest.mark.parametrize(
    "given", [{"scale": "large"}, {"processes": 0}, {"processes": "2"}, {"out": 3}, {"out": ""}], ids=str
)
def test_malformed_arguments_are_refused_by_name(given):
    with pytest.raises(ModelError, match=next(iter(given))):
        papers.run("clusters.prop3.3", **given)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "prop2.2"}, "id of a claim"),
        ({"id": "clusters/../x"}, "id of a claim"),
        ({"expected": Verdict.CORRECTED}, "correction"),
        ({"correction": "Three."}, "correction"),
        ({"part": "Three."}, "part"),
        ({"weight": "constant"}, "weight"),
        ({"expected": Verdict.CORRECTED, "correction": "Three."}, "weight"),
        ({"expected": Verdict.CORRECTED, "correction": "Three.", "weight": "heavy"}, "weight"),
        ({"expected": Verdict.PART}, "part"),
        ({"expected": Verdict.UNCHECKED}, "reason"),
    ],
)
def test_declarations_that_cannot_be_are_refused(change, said):
    with pytest.raises(ModelError, match=said):
        replace(declared(), **change)


def test_the_words_of_a_claim_are_its_docstring():
    def three(at):
        """Two and two
        are four.

        Correction (constant): Two and one:
        three.
        """

    made = papers.claim("clusters.mine", "(1)")(three)
    assert (made.statement, made.stated, made.expected) == ("Two and two are four.", "equal", Verdict.CORRECTED)
    assert (made.correction, made.weight) == ("Two and one: three.", "constant")
    three.__doc__ = "Two and two are four.\n\nPart: Two."
    assert papers.claim("clusters.mine", "(1)")(three).expected == Verdict.PART
    three.__doc__ = "Two and two are four."
    assert papers.claim("clusters.mine", "(1)")(three).expected == Verdict.HOLDS


@pytest.mark.parametrize(
    ("docstring", "said"),
    [
        (None, "has none"),
        ("Two.\n\nAnd two.", "got 'And two.'"),
        ("Two.\n\nCorrection (heavy): Three.", "has a weight"),
        ("Two.\n\nCorrection: Three.", "has a weight"),
        ("Two.\n\nPart (constant): Two.", "has a weight"),
    ],
)
def test_a_docstring_that_is_no_claim_is_refused(docstring, said):
    def mine(at):
        pass

    mine.__doc__ = docstring
    with pytest.raises(ModelError, match=said):
        papers.claim("clusters.mine", "(1)")(mine)


def test_an_id_is_declared_once_and_in_the_folder_of_its_paper():
    mine = replace(declared(), id="clusters.prop3.3")
    with pytest.raises(ModelError, match="declared twice"):
        _register(mine, "papers.clusters.elsewhere")
    with pytest.raises(ModelError, match="folder of gtv"):
        _register(mine, "papers.gtv.formulas")


def test_the_example_of_the_docstring():
    said = []
    for test in doctest.DocTestFinder(recurse=False).find(running.run, "run", globs={"papers": papers}):
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said
