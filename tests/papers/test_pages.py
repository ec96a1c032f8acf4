"""The report: every claim stands in it, nothing of its text is obeyed, figures have labels."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from graphreg.errors import ModelError
from papers import (
    Claim,
    Evidence,
    Runner,
    Verdict,
    at_least,
    at_most,
    declarations,
    drawn,
    equal,
    line,
    summary,
    to_html,
    to_markdown,
)
from papers.figures import curve, draw, mark

DECLARED = declarations()
SOME = ("clusters.eq2.2", "clusters.prop3.4", "clusters.A12")


@pytest.fixture(scope="module")
def claims():
    return [Runner().run(DECLARED[id]) for id in SOME]


def hostile():
    bad = "<script>alert(1)</script> | x\x1b[2J"
    evidence = Evidence.of(at_most(bad, 2.0, 1.0), counterexample={bad: [1.0]}, table=[{bad: bad}])
    same = {"paper": "clusters", "source": bad, "statement": bad, "stated": bad, "unexplained": bad, "note": bad}
    return Claim("clusters.bad", expected=Verdict.FAILS, verdict=Verdict.FAILS, evidence=evidence, **same)


def test_lines_and_summary(claims):
    assert line(claims[0]).startswith("clusters.eq2.2")
    assert "holds with a correction" in line(claims[0])
    assert "correction (substance): " in line(claims[0])
    assert "Gamma_j are equal" in line(claims[0])
    assert summary(claims) == (
        "3 claims: 1 holds, 2 holds with a correction (1 misprint, 1 substance); unexplained deviations: none"
    )
    assert "UNEXPLAINED" in line(hostile())
    assert "\x1b" not in line(hostile())
    assert "unexplained deviations: 1" in summary([*claims, hostile()])
    assert "1 not run" in summary([Runner().kept(DECLARED["clusters.tree"])])


def test_of_a_bound_that_holds_the_numbers_are_shown():
    """The one that is nearest to failing."""
    checks = at_most("x", [0.2, 0.001], 1.0), at_least("x", [30.0, 4.0], 3.0), at_most("x", 2.0, 1.0)
    for check, said in zip(checks, ("0.2 <= 1", "4 >= 3", "off by 1 absolute, tolerance 0"), strict=True):
        claim = Claim("clusters.x", "clusters", "", "", 1, Verdict.HOLDS, Verdict.HOLDS, Evidence.of(check))
        assert line(claim).endswith(f"  {said}")


def test_the_report_has_every_claim(claims):
    for text in (to_markdown(claims, {}), to_html(claims, {})):
        for claim in claims:
            assert claim.id in text
        assert "The two agree only where all Gamma" in text.replace("\\", "")
        assert "Personalized federated learning" in text
        assert "Generalized" not in text, "papers without a claim in it are left out"


def test_nothing_in_the_report_is_obeyed():
    markdown, page = to_markdown([hostile()], {}), to_html([hostile()], {})
    assert "<script" not in markdown
    assert "<script" not in page
    assert "\x1b" not in markdown + page
    rows = [row for row in markdown.splitlines() if row.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {8, 2}


def test_the_page_is_well_formed(claims):
    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.stack = []

        def handle_starttag(self, tag, attrs):
            if tag not in ("meta", "img"):
                self.stack.append(tag)

        def handle_endtag(self, tag):
            assert self.stack.pop() == tag

    reader = Reader()
    reader.feed(to_html([*claims, hostile()], {SOME[0]: b"png"}))
    assert reader.stack == []
    assert "data:image/png;base64,cG5n" in to_html(claims, {SOME[0]: b"png"})
    assert "![clusters.eq2.2](x.png)" in to_markdown(claims, {SOME[0]: "x.png"})


# ---- figures ---------------------------------------------------------------------------------------------------------
def picture(figure, data):
    axes = figure.subplots()
    curve(axes, data["x"], data["samples"], "found")
    curve(axes, data["x"], [[1.0], [2.0]], "one replication")
    mark(axes, data["x"], [1.0, 2.0])
    axes.set(xlabel="samples", **data["labels"])
    axes.legend()
    bars = [each for each in axes.containers if each.has_yerr]
    assert len(bars) == 2
    lengths = [np.ptp(segment[:, 1]) for segment in bars[0].lines[2][0].get_segments()]
    assert lengths == pytest.approx([2.0 * np.std([1.0, 2.0], ddof=1) / np.sqrt(2.0), 0.0])


DATA = {"x": [1, 2], "samples": [[1.0, 2.0], [3.0, 3.0]], "labels": {"ylabel": "error"}}


def test_figures_are_grey_and_have_labels(pyplot):
    assert draw(picture, DATA).startswith(b"\x89PNG")
    with pytest.raises(ModelError, match="no label"):
        draw(picture, DATA | {"labels": {}})

    def colours(figure, data):
        axes = figure.subplots()
        drawn = [axes.plot([0, 1], [0, k])[0] for k in range(6)]
        axes.set(xlabel="x", ylabel="y")
        assert all(np.ptp(pyplot.matplotlib.colors.to_rgb(each.get_color())) == 0.0 for each in drawn)
        assert len({(str(each.get_linestyle()), each.get_marker()) for each in drawn}) == 6

    draw(colours, {})


def test_logarithmic_axes_of_few_decades_have_plain_numbers(pyplot):
    kept = []

    def lines(figure, data):
        few, many, own = kept[:] = figure.subplots(1, 3)
        few.plot([3, 400], [0.2, 5.0])
        many.plot([1, 2], [1e-7, 1.0])
        own.plot([12, 48], [12, 48])
        for axes in kept:
            axes.set(xlabel="x", ylabel="y", xscale="log", yscale="log")
        own.set_xticks([12, 48], ["12", "48"])

    draw(lines, {})
    few, many = ([each.get_text() for each in axes.get_yticklabels()] for axes in kept[:2])
    assert [x for x in few if x in {"0.2", "0.5", "1", "2", "5"}] == ["0.2", "0.5", "1", "2", "5"]
    assert not any("10" in x for x in few)
    assert {x.get_text() for x in kept[0].get_xticklabels()} >= {"5", "10", "20", "50", "100", "200"}
    assert any("10^{-4}" in x for x in many)  # as powers of ten
    assert [x.get_text() for x in kept[2].get_xticklabels()] == ["12", "48"]


def test_panels_that_share_an_axis_have_its_label_once(pyplot):
    kept = []

    def panels(figure, data):
        kept[:] = figure.subplots(2, 2, sharex=True, sharey=data["sharey"]).ravel()
        for axes in kept:
            axes.set(xlabel="x", ylabel="y")

    draw(panels, {"sharey": True})
    assert [(axes.get_xlabel(), axes.get_ylabel()) for axes in kept] == [("", "y"), ("", ""), ("x", "y"), ("x", "")]
    draw(panels, {"sharey": False})
    assert [axes.get_ylabel() for axes in kept] == ["y"] * 4


def test_figures_of_claims_and_those_that_fail(claims, pyplot, monkeypatch):
    known = DECLARED["clusters.alg2-linear"]
    data = {"rounds": [0, 10], "excess": {"corrected": [1.0, 0.1], "printed": [1.0, 1.0]}}
    claim = Runner().kept(known)
    made = replace(claim, evidence=Evidence.of(equal("x", 1.0, 1.0), data=data))
    pictures, undrawn = drawn([*claims, made])
    assert (set(pictures), undrawn) == ({known.id}, {})
    broken = replace(claim, evidence=Evidence.of(equal("x", 1.0, 1.0)))
    assert "KeyError" in drawn([broken])[1][known.id]
    monkeypatch.setattr("papers.pages.find_spec", lambda _: None)
    assert "pip install" in drawn([made])[1][known.id]
