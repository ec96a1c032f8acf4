"""The tutorials and all pages that show what they print: run, outputs and pictures written, the lecture a notebook.

``python tests/tutorials.py`` (``make tutorials``) runs docs/tutorials/*.md, and the README and docs/*.md where a
``text`` fence follows a block. What a block prints goes into that fence, but where it has lines of "..." for what is
left out; the pictures that a tutorial shows are those that its blocks save; and the pages in `NOTEBOOKS` are written
again as notebooks.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath
from types import ModuleType

PAGES = next(folder for folder in Path(__file__).resolve().parents if (folder / "docs").exists()) / "docs" / "tutorials"
NOTEBOOKS = ("duality",)
BLOCK = re.compile(r"^```(?P<language>python|text)[ \t]*\n(?P<body>.*?)^```[ \t]*\n", re.M | re.S)
SHOWS = re.compile(r"^```python[ \t]*\n(?:(?!```).*\n)*```[ \t]*\n\s*```text[ \t]*\n", re.M)  # below it, its output
PICTURE = re.compile(r"^!\[[^\]]*\]\((?P<file>[^/)]+)\)[ \t]*\n", re.M)
MORE = '<details markdown="1"><summary>and further</summary>'
EMPTY = re.compile(r"<details[^>]*>\s*<summary>[^<]*</summary>\s*</details>")  # what was folded is a cell of its own
LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?![a-z]+:)(?P<page>[^)#\s]+)(?:#[^)\s]*)?\)")  # to a page beside this one
WHERE = (
    "Pages that are named in brackets, as (`docs/glossary.md`), are part of graphreg's documentation: in a clone they "
    "lie where the name says.\n"
)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
LEFT_OUT = "..."
TINY = 1e-5  # gaps and what rounding leaves: below this only the size is compared to it


@dataclass(frozen=True)
class Block:
    """Python, what the page says that it prints (None where it says nothing), and what it printed."""

    python: re.Match[str]
    text: re.Match[str] | None
    printed: str


def run(page: Path) -> list[Block]:
    """The blocks of a page, run in order, as one module, in the present folder."""
    source = page.read_text(encoding="utf-8")
    module = ModuleType(f"tutorial_{page.stem.replace('-', '_')}")
    sys.modules[module.__name__] = module
    found = list(BLOCK.finditer(source))
    blocks: list[Block] = []
    for k, block in enumerate(found):
        if block["language"] != "python":
            continue
        follows = found[k + 1] if k + 1 < len(found) else None
        text = (
            follows if follows is not None and follows["language"] == "text" and _next(source, block, follows) else None
        )
        lines = "\n" * source.count("\n", 0, block.start("body"))  # a traceback shows the line of the page
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(lines + block["body"], str(page), "exec"), vars(module))
        blocks.append(Block(block, text, "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())))
    return blocks


def _next(source: str, block: re.Match[str], text: re.Match[str]) -> bool:
    return not source[block.end() : text.start()].strip()


def agrees(said: str, printed: str) -> bool:
    """True where what is said is what was printed: words to the letter, numbers to a thousandth; a line "..." is
    any."""
    return _agree(said.splitlines(), printed.splitlines())


def _agree(said: list[str], printed: list[str]) -> bool:
    if not said:
        return not printed
    if said[0] == LEFT_OUT:
        return any(_agree(said[1:], printed[k:]) for k in range(len(printed) + 1))
    return bool(printed) and _same(said[0], printed[0]) and _agree(said[1:], printed[1:])


def _same(said: str, printed: str) -> bool:
    if _words(said) != _words(printed):
        return False
    numbers = zip(NUMBER.findall(said), NUMBER.findall(printed), strict=True)
    return all(_close(float(a), float(b)) for a, b in numbers)


def _words(line: str) -> list[str]:
    """The words of a line, its numbers and the widths of its columns left out."""
    return re.sub(r"-{2,}", "--", NUMBER.sub("#", line)).split()


def _close(a: float, b: float) -> bool:
    return max(abs(a), abs(b)) < TINY or abs(a - b) <= 1e-3 * max(abs(a), abs(b))


def shown() -> list[Path]:
    """The README and the pages of docs that show what a block prints."""
    docs = PAGES.parent
    pages = [docs.parent / "README.md", *sorted(docs.glob("*.md"))]
    return [page for page in pages if SHOWS.search(page.read_text(encoding="utf-8"))]


def differences(page: Path) -> Iterator[str]:
    """The lines that a page says its blocks print, where they print something else."""
    for block in run(page):
        if block.text is not None and not agrees(block.text["body"], block.printed):
            yield f"{page.name} says\n{block.text['body']}and prints\n{block.printed}(make tutorials)"


def pictures(page: Path) -> list[str]:
    return [found["file"] for found in PICTURE.finditer(page.read_text(encoding="utf-8"))]


def written(page: Path, blocks: list[Block]) -> str:
    """The page with what its blocks printed."""
    source = page.read_text(encoding="utf-8")
    for block in reversed(blocks):
        if block.text is not None and f"{LEFT_OUT}\n" not in block.text["body"].splitlines(keepends=True):
            source = source[: block.text.start("body")] + block.printed + source[block.text.end("body") :]
    return source


# ---- notebooks -------------------------------------------------------------------------------------------------------
def notebook(source: str) -> str:
    """A page as a notebook without outputs: its Python as cells, without what it prints and the pictures it saves.
    Links to other pages become their names, since a notebook is handed out alone."""
    cells: list[dict[str, object]] = []
    folded = False  # inside <details>, an answer: its Python is a cell that is shut
    for kind, text in _pieces(PICTURE.sub("", source)):
        if kind == "python":
            shut = folded or "savefig(" in text  # answers, and pictures
            folds: dict[str, object] = {"jupyter": {"source_hidden": True}} if shut else {}
            cells.append(_cell("code", text, len(cells), folds) | {"execution_count": None, "outputs": []})
            continue
        begins, ends = text.rfind("<details"), text.rfind("</details>")
        said = f"{MORE}\n\n{text}" if folded else text  # an answer goes on
        folded = begins > ends or (folded and ends < 0)
        if folded:
            said += "\n\n</details>"  # the cell ends here, and the answer goes on in the next one
        for part in re.split(r"^(?=## )", EMPTY.sub("", said), flags=re.M):
            if part.strip():
                cells.append(_cell("markdown", _alone(part, first=not cells), len(cells), {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _alone(text: str, first: bool) -> str:
    """Markdown with the names of pages in the place of links to them; in the first cell with where they are."""
    folder = "docs/tutorials"
    named = LINK.sub(lambda found: f"{found['text']} (`{normpath('/'.join((folder, found['page'])))}`)", text)
    return f"{named.rstrip()}\n\n{WHERE}" if first else named


def _pieces(source: str) -> Iterator[tuple[str, str]]:
    """Markdown and Python in turn; what a block prints is left out, any other text fence stays."""
    at, after_python = 0, False
    text = ""
    for block in BLOCK.finditer(source):
        between = source[at : block.start()]
        text += between
        if block["language"] == "python":
            yield "markdown", text
            yield "python", block["body"]
            text, after_python = "", True
        else:
            text += "" if after_python and not between.strip() else block[0]
            after_python = False
        at = block.end()
    yield "markdown", text + source[at:]


def _cell(kind: str, text: str, k: int, metadata: dict[str, object]) -> dict[str, object]:
    lines = text.strip("\n").splitlines(keepends=True)
    return {"cell_type": kind, "id": f"cell-{k}", "metadata": metadata, "source": lines}


def main() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    known = {page.stem: page for page in (*sorted(PAGES.glob("*.md")), *shown())}
    here = Path.cwd()
    for name in sys.argv[1:] or known:
        page = known[name]
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            began = time.perf_counter()
            blocks = run(page)
            took = time.perf_counter() - began
            os.chdir(here)
            page.write_text(written(page, blocks), encoding="utf-8")
            for picture in pictures(page) if page.parent == PAGES else ():
                shutil.copy(Path(folder) / picture, PAGES / picture)
        if name in NOTEBOOKS:
            text = notebook(page.read_text(encoding="utf-8"))
            (PAGES / f"{name}.ipynb").write_text(text, encoding="utf-8")
        print(f"{name}: {len(page.read_text(encoding='utf-8').split())} words, {len(blocks)} blocks, {took:.1f} s")


if __name__ == "__main__":
    main()
