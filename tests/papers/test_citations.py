"""What is cited of the four papers is there: their theorems, figures, equations and appendices by number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import graphreg as gr
from papers import declarations


def several(first, last, head=""):
    return {f"{head}{k}" for k in range(first, last + 1)}


PAPERS = {
    "gtv": {
        "Theorem": {"2"},  # one count for theorems and lemmas, which begins with Definition 1
        "Lemma": {"3"},
        "Definition": {"1"},
        "Assumption": {"1", "2"},
        "Algorithm": {"1"},
        "Figure": several(1, 13),
        "Table": {"I", "II"},
        "equation": several(1, 63),
    },
    "fused": {
        "Theorem": {"3.1", "3.2", "3.4", "4.1"},
        "Proposition": {"3.3"},
        "Corollary": {"4.2"},
        "Lemma": {*several(1, 4, "S.3."), *several(1, 4, "S.4.")},
        "Definition": {"1", "2"},
        "Condition": several(1, 4),
        "Example": several(1, 3),
        "Algorithm": {"1", "2"},
        "Figure": {"1", "2", "S.1", "S.2"},
        "Table": {"1"},
        "equation": {*several(1, 20), "21a", "21b", *several(1, 54, "S.")},
    },
    "clusters": {
        "Assumption": {"2.1", "4.1"},
        "Proposition": {"2.2", "3.1", "3.2", "3.3", "3.4", "5.3", "5.4"},
        "Theorem": {"3.5", "4.3", "5.1", "B.1"},
        "Lemma": {"4.2", "A.1"},
        "Corollary": {"3.6", "4.4", "5.2", "A.2"},
        "Algorithm": {"1", "2"},
        "Figure": {"1", "2"},
        "Table": several(1, 3),
        "appendix": several(1, 12, "A."),
        "equation": {"2.1", "2.2", "2.3", *several(1, 5, "3."), "4.1", "4.2", "5.1", "5.2", "A.1"},
    },
    "consensus": {
        "Lemma": {"1"},
        "Assumption": {*several(1, 8), "9a", "9b", "10"},
        "Proposition": {"1"},
        "Theorem": several(2, 6),
        "Figure": several(1, 6),
        "Table": {"1"},
        "equation": several(1, 14),
    },
}
NAMES = {
    "gtv": "GTV minimisation",
    "fused": "graph-fused M-estimation",
    "clusters": "[Mm]ultiple [Kk]nown [Cc]lusters|FL with known clusters",
    "consensus": "decentralised inference",
}
KINDS = sorted({kind for paper in PAPERS.values() for kind in paper} - {"equation"})
NUMBER = r"(?:[SAB]\.?)?\d+(?:\.\d+)*[ab]?\b|[IVX]+\b"
CITED = re.compile(rf"\b({'|'.join(KINDS)})(?:s|es)? ((?:{NUMBER})(?:(?:, | and | to )(?:{NUMBER}))*)")
CUT = re.compile(r"[.;] |[|\"]")
EQUATION = re.compile(r"(?<!\w)\(((?:[SA]\.)?\d+(?:\.\d+)?[ab]?)\)")


def missing(paper, text, *, equations):
    """The citations of a text that the paper has not."""
    there = PAPERS[paper]
    cited = [(kind, number) for kind, rest in CITED.findall(text) for number in re.findall(NUMBER, rest)]
    cited += [("equation", number) for number in EQUATION.findall(text)] if equations else []
    return [f"{kind} {number}" for kind, number in cited if number not in there.get(kind, ())]


@pytest.mark.parametrize(
    ("paper", "text", "found"),
    [
        ("gtv", "the flows of Theorem 1, (24)", ["Theorem 1"]),
        ("gtv", "Lemma 3, (58) to (64)", ["equation 64"]),
        ("clusters", "the model of (A.12)", ["equation A.12"]),
        ("clusters", "appendix A.12, Propositions 2.2 and 3.9", ["Proposition 3.9"]),
        ("fused", "Lemma S3.4, Figure S.2, (21a)", ["Lemma S3.4"]),
        ("consensus", "Theorems 3, 5 and 7", ["Theorem 7"]),
    ],
)
def test_what_is_not_there_is_found(paper, text, found):
    assert missing(paper, text, equations=True) == found


def test_claims_cite_what_is_there():
    for id, each in declarations().items():
        assert not missing(each.paper, each.source, equations=True), id
        assert not missing(each.paper, f"{each.statement} {each.correction}", equations=False), id


def test_printed_places_are_there():
    by_name = {name: paper for paper, name in NAMES.items()} | {"known clusters": "clusters"}  # as the table has them
    for _, row in gr.theory.printed.differences().iterrows():
        assert not missing(by_name[row["paper"]], row["place"], equations=True), row["place"]


@pytest.mark.parametrize("paper", NAMES)
def test_docstrings_cite_what_is_there(paper):
    """Within the sentence that names the paper, 120 characters after its name and 40 before."""
    root, seen = Path(gr.__file__).parent, 0
    for file in (*root.rglob("*.py"), *root.parent.glob("docs/*.md")):
        text = " ".join(file.read_text(encoding="utf-8").split())
        for name in re.finditer(NAMES[paper], text):
            before, after = text[max(name.start() - 40, 0) : name.start()], text[name.end() : name.end() + 120]
            sentence = CUT.split(before)[-1] + CUT.split(after)[0]
            assert not missing(paper, sentence, equations=False), f"{file.name}: {sentence}"
            seen += bool(CITED.search(sentence))
    assert seen > 0
