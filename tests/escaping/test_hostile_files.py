"""Hostile names from the files of a model to the files of its answer: nothing is obeyed, and nothing is changed."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pandas as pd
import pytest
from cli_cases import run
from hostile import HOSTILE, unprintable
from model_files import write

from graphreg.base import escaping

LABELS = [text for text in HOSTILE.values() if text.strip()]
FEATURES = [HOSTILE[name] for name in ("equals", "a tag", "lines", "tokens")]
BEGINS = re.compile(r"\s*[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r\n]")  # what a spreadsheet takes for a formula


def read_back(file, labels):
    """As docs/security.md says."""
    table = pd.read_csv(file, converters=dict.fromkeys(labels, escaping.text_of_cell))
    return table.rename(columns=escaping.text_of_cell)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    node = [label for label in LABELS for _ in range(6)]
    frame = pd.DataFrame(rng.normal(size=(len(node), 4)), columns=FEATURES)
    frame.insert(0, "@node", node)
    frame["y"] = frame[FEATURES].sum(axis=1) + rng.normal(size=len(node))
    options = {"index": False, "quoting": csv.QUOTE_ALL}
    frame.to_csv(folder / "samples.csv", **options)
    pd.DataFrame({"a": LABELS[:-1], "b": LABELS[1:]}).to_csv(folder / "edges.csv", **options)
    data = {"file": "samples.csv", "node": "@node", "target": "y", "features": FEATURES, "standardise": True}
    clusters = {HOSTILE["a tag"]: {"a/b": LABELS[:9], "a": LABELS[9:12]}, "a": {HOSTILE["plus"]: LABELS[12:]}}
    model = {
        "data": data,
        "graph": {"edges": "edges.csv"},
        "loss": {"family": "SquaredLoss"},
        "total_variation": {"penalty": "L2", "strength": 0.1},
        "hierarchy": {"clusters": clusters, "weights": [0.1, 0.1, 0.1]},
        "solve": {"method": "PrimalDual", "gap": 1e-2},
    }
    write(folder, model)
    return folder


@pytest.fixture(scope="module")
def done(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "Agg")
        import warnings

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")
            return run("solve", folder / "model.toml", "--out", folder / "out")


def test_the_command_line_shows_and_writes_everything(folder, done):
    assert done.exit_code == 0, done.output
    assert not unprintable(done.output)
    assert r"\x1b[31mred" in done.stdout
    files = json.loads((folder / "out" / "result.json").read_text(encoding="utf-8"))["files"]
    assert {"graph.png", "trace.png", "latent.csv", "standardised.csv"} <= set(files)
    assert sorted(files) == sorted(path.name for path in (folder / "out").iterdir())


def test_no_cell_begins_a_formula(folder, done):
    for file in (folder / "out").glob("*.csv"):
        for separator in ",;":  # that of another country: what is in quotes holds together all the same
            with file.open(encoding="utf-8", newline="") as lines:
                for cell in (cell for row in csv.reader(lines, delimiter=separator) for cell in row):
                    number = re.fullmatch(r"[+-]?[\d.]+(e[+-]\d+)?(,.*)?", cell)
                    assert number or not BEGINS.match(cell), (file.name, cell)


def test_every_table_is_read_back_to_the_letter(folder, done):
    out = folder / "out"
    table = read_back(out / "coefficients.csv", ["node"])
    assert table["node"].tolist() == LABELS
    assert table.columns.tolist() == ["node", *FEATURES]
    assert table[FEATURES].dtypes.map(lambda kind: kind.kind).eq("f").all(), "numbers are numbers"
    assert read_back(out / "clusters.csv", ["node"])["node"].tolist() == LABELS
    edges = read_back(out / "edges.csv", ["tail", "head"])
    assert edges["tail"].tolist()[: len(LABELS) - 1] == LABELS[:-1]
    assert read_back(out / "standardised.csv", ["feature"])["feature"].tolist() == FEATURES
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert list(result["coefficients"]) == LABELS
    assert len(result["latent"]) == 6, "the clusters 'a/b' of 'x' and 'b' of 'x/a' are two"


def test_json_is_shown_as_it_is_written(folder, done):
    shown = run("solve", folder / "model.toml", "--json", "--rounds", "2", "--gap", "0")
    assert not unprintable(shown.stdout)
    assert list(json.loads(shown.stdout)["coefficients"]) == LABELS


def test_names_on_the_command_line_are_shown(folder):
    for arguments in (("solve", "no\x1b[31m.toml"), ("solve", folder / "model.toml", "--method", "\x1b[31m")):
        assert not unprintable(run(*arguments).stderr)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_cell_is_found_again(tmp_path, name):
    frame = pd.DataFrame({"label": [HOSTILE[name], "x"], HOSTILE[name]: [-1.5, np.inf], "none": [None, "+"]})
    (tmp_path / "table.csv").write_bytes(escaping.table(frame))
    back = read_back(tmp_path / "table.csv", ["label"])
    assert back["label"].tolist() == frame["label"].tolist()
    assert back.columns.tolist() == frame.columns.tolist()
    assert back.iloc[:, 1].tolist() == [-1.5, np.inf]
    assert frame["label"][0] == HOSTILE[name], "the table itself is what it was"


@pytest.mark.parametrize("text", ["-5", "+1e-3", ".5", "plain", "O'Hara", "'quoted'", "a=b", ""])
def test_what_is_harmless_stays(text):
    assert escaping.cell(text) == text


def test_nothing_prints_but_by_the_one_place():
    """Whatever the command line says goes through exits.say, but for text of ours."""
    from places import ROOT

    own = ("print(gr.testing.check_", "print(example().solve(")  # in the files that are written as templates
    own += (
        "_echo(page(",
        '_echo(f"{json_text(',
        "click.echo(content, **how)",
        "click.echo(MODEL",
        'click.echo("',
    )
    for file in (ROOT / "graphreg" / "cli").glob("*.py"):
        for line in file.read_text(encoding="utf-8").splitlines():
            assert not re.search(
                r"\bprint\(|click\.echo\(|to_csv\(|to_string\(|json\.dumps\(|\b_echo\((?!content:)", line
            ) or any(each in line for each in own), f"{file.name}: {line.strip()}"
