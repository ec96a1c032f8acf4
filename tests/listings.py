"""Listings of the losses, penalties and methods beside their classes: types for checkers, tables of docs.

``python tests/listings.py`` (``make listings``) writes all of it again from the classes; a test says where it is stale.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from pathlib import Path

import graphreg as gr
from graphreg.base.declaring import declared
from graphreg.catalogue import BASES

ROOT = Path(__file__).resolve().parents[1]
STUB = "graphreg/catalogue.pyi"
HEAD = """# ruff: noqa
\"\"\"The names of `graphreg.catalogue` for type checkers; written by ``make listings``.\"\"\""""
OPTIONS = 4  # of a method, that a table shows
MARK = re.compile(r"(?P<head><!-- listing (?P<what>[\w ]+): .*? -->\n)(?P<body>.*?)(?P<foot><!-- end -->)", re.S)


def known(kind):
    return declared(BASES[kind], users=False)


def stub():
    """An import for each class, by file, and the names."""
    places = defaultdict(list)
    for kind in BASES:
        for name, each in known(kind).items():
            places[each.__module__.removeprefix("graphreg")].append(name)
    imports = "".join(
        f"from {place} import {name} as {name}\n" for place, names in sorted(places.items()) for name in sorted(names)
    )
    names = "".join(f'    "{name}",\n' for name in sorted(name for each in places.values() for name in each))
    bases = "BASES: dict[str, type[Any]]\n\ndef named(kind: str, value: Any) -> Any: ...\n\n"
    return f"{HEAD}\n\nfrom typing import Any\n\n{imports}\n{bases}__all__ = [\n{names}]\n"


# ---- tables ----------------------------------------------------------------------------------------------------------
def summary(each, whole=False):
    """The first paragraph of a docstring, or its first sentence, in Markdown, for a cell."""
    text = " ".join(inspect.getdoc(each).split("\n\n")[0].split())
    text = (text if whole else re.split(r"\. (?=[A-Z])|:$", text)[0]).rstrip(".:")
    return re.sub(r"``(.+?)``", r"`\1`", text).replace("|", r"\|")


def call(each, most=None):
    """The call that makes an object of the class: ``HuberLoss(data, delta=1.0)``."""
    options = [p for p in inspect.signature(each).parameters.values() if p.name != "scale"]
    shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in options[:most]]
    return f"`{each.__name__}({', '.join([*shown, *['...'][: len(options) > len(shown)]])})`"


def table_of_terms(kind):
    rows = "".join(f"| {call(each)} | {summary(each, whole=True)} |\n" for each in known(kind).values())
    return f"| {kind} | what it is |\n|---|---|\n{rows}"


def table_of_methods():
    rows = "".join(f"| {call(type(m), OPTIONS)} | {summary(type(m))} |\n" for m in gr.methods.METHODS)
    return f"| method | what it is |\n|---|---|\n{rows}"


def table_of_messages():
    rows = "".join(f"| [{m.name}](#{m.name.lower()}) | {m.needs} | {m.sends} |\n" for m in gr.methods.METHODS)
    return f"| method | needs | across an edge in a round |\n|---|---|---|\n{rows}"


def further_methods():
    """A section for every method that has none of its own."""
    own = MARK.sub("", (ROOT / "docs" / "methods.md").read_text(encoding="utf-8"))
    lacking = [m for m in gr.methods.METHODS if f"\n## {m.name}\n" not in own]
    return "\n".join(f"## {m.name}\n\n{summary(type(m)).replace(chr(92), '')}.\n" for m in lacking)


def cell(text, code=False):
    text = text.replace("|", r"\|")
    return f"`{text}`" if code and text else text


def table_of_printed_places():
    rows = gr.theory.printed.differences().itertuples(index=False)
    lines = (
        (
            cell(row.paper),
            cell(row.place),
            cell(row.print),
            cell(row.holds),
            cell(row.as_printed, True) or f"none: {cell(row.unnamed)}",
            cell(row.right, True),
        )
        for row in rows
    )
    body = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"| paper | place | print | holds | as printed | right |\n|---|---|---|---|---|---|\n{body}"


LISTINGS = {
    "losses": lambda: table_of_terms("loss"),
    "penalties": lambda: table_of_terms("penalty"),
    "methods": table_of_methods,
    "messages": table_of_messages,
    "further methods": further_methods,
    "printed places": table_of_printed_places,
}


def rendered():
    """Every file with a listing, by its name, as it should be."""
    out = {STUB: stub()}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        if MARK.search(text):
            new = MARK.sub(lambda found: found["head"] + LISTINGS[found["what"]]() + found["foot"], text)
            out[str(path.relative_to(ROOT))] = new
    return out


def main():
    for name, text in rendered().items():
        path = ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
