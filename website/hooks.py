"""Additions of the documentation site to the pages in docs/: the reference, the examples, and formulas without
scripts."""

from __future__ import annotations

import ast
import inspect
import re
import struct
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

import graphreg as gr

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.S)
CELL = re.compile(r"<td[ >].*?</td>", re.S)
PRODUCT = re.compile(r"<([A-Za-z][\w()']*, [^<>]*)>")  # <x, u>: no element has a comma in its name
PICTURE, WIDE = re.compile(r'<img [^>]*src="([^":]+\.png)"[^>]*>'), 2.4  # wider than so many times its height
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+(examples|benchmarks|papers)(?:/([\w./-]*))?\)")

REFERENCE: dict[str, tuple[str, list[str]]] = {
    "problem": (
        "Problems and answers",
        ["Problem", "Solution", "Certificate", "Judgement", "Compiled", "fit", "Fit", "Comparison", "compare", "load"],
    ),
    "inputs": ("Data and graphs", ["NodeData", "Graph", "ModelFile", "read_model"]),
    "terms": (
        "Sums along edges and at nodes",
        ["Model", "Parameter", "TotalVariation", "Consensus", "NodePenalty", "Hierarchy"],
    ),
    "conic": ("Problems of CVXPY", ["certify", "ConicCertificate"]),
    "rows": ("Rows of the parameters", ["w", "Rows"]),
    "losses": ("Losses", []),
    "penalties": ("Penalties", []),
    "methods": ("Methods: reference", []),
    "tuning": ("Strengths: reference", ["path", "cross_validate", "strength_max"]),
    "runs": (
        "Runs",
        ["Checkpoint", "Observer", "Actors", "Parts", "MPI", "Faults", "Malicious", "Availability", "audit", "Audit"],
    ),
    "own": (
        "Terms and methods of your own",
        [
            "Loss",
            "Penalty",
            "AbstractQuadraticLoss",
            "AbstractPeakedLoss",
            "AbstractPiecewiseLinearLoss",
            "AbstractTwoClasses",
            "AbstractCounts",
            "PriceDomain",
            "AbstractNorm",
            "AbstractConstraint",
            "AbstractOneSided",
            "AbstractSmoothPenalty",
            "FlowDomain",
            "AbstractIteration",
            "AbstractFixedPoint",
            "Acceleration",
            "DecreasingStep",
        ],
    ),
}
KINDS = {"losses": "loss", "penalties": "penalty", "methods": "method"}
ROOMS = ("theory", "inference", "plots", "testing", "datasets", "sklearn", "neural", "errors")


# What a page counts for in a search, by the part of the navigation that it stands in: first come the pages for users,
# last the names of the reference, which are found by their titles all the same.
FOR_USERS, ELSE = 8.0, 0.02
BOOSTS = {"Details": 1.0, "For developers": 0.1}

# By this script the search works in pages that are opened from the disk.
ELSEWHERE, WORKER = "https://unpkg.com/iframe-worker/shim", "assets/iframe-worker.js"


# ---- pages that nobody writes ----------------------------------------------------------------------------------------
def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the reference and of the examples."""
    for name, (title, listed) in REFERENCE.items():
        names = listed or sorted(declared(KINDS[name]))
        body = "\n\n".join(described(each) for each in names)
        _add(files, config, f"reference/{name}.md", f"# {title}\n\n{body}\n")
    for room in ROOMS:
        _add(files, config, f"reference/{room}.md", _room(room))
    _add(files, config, WORKER, Path(__file__).with_name(Path(WORKER).name).read_text(encoding="utf-8"))
    scripts = sorted(EXAMPLES.glob("*.py"))
    for script in scripts:
        _add(files, config, f"examples/{script.stem}.md", _example(script))
    rows = "\n".join(f"- [{each.stem}]({each.stem}.md): {_first_line(each)}" for each in scripts)
    _add(files, config, "examples/index.md", f"# Examples\n\nOne script for each task; each runs as it is.\n\n{rows}\n")
    return files


def _add(files: Files, config: Any, path: str, content: str) -> None:
    files.append(File.generated(config, path, content=content))


def declared(kind: str) -> dict[str, type]:
    """The losses, penalties or methods by name."""
    base = gr.catalogue.BASES[kind]
    return {name: getattr(gr, name) for name in gr.catalogue.__all__ if issubclass(getattr(gr, name), base)}


def described(name: str) -> str:
    """What mkdocstrings is asked for, under the name that users know; of an object its class, and what that has its
    methods from."""
    thing = getattr(gr, name)
    things = [thing] if hasattr(thing, "__qualname__") else type(thing).__mro__[:2]
    known = f"\n    options:\n      heading: {name}\n      toc_label: {name}"
    return "\n\n".join(
        f"::: {_place(each)}{known if each.__name__ != name and each is things[0] else ''}" for each in things
    )


def _place(thing: Any) -> str:
    """The place where a class or a function is written, for mkdocstrings."""
    return f"{thing.__module__}.{thing.__qualname__}"


def _room(room: str) -> str:
    """The public names of a module."""
    try:
        module = import_module(f"graphreg.{room}")
    except ImportError:
        return f"# graphreg.{room}\n\nIt needs an extra that is not installed here.\n"
    names = getattr(module, "__all__", [each for each in vars(module) if not each.startswith("_")])
    things = [getattr(module, each) for each in names]
    found = [
        each
        for each in things
        if (inspect.isclass(each) or inspect.isfunction(each))
        and each.__module__.startswith("graphreg")
        and each.__doc__
    ]
    places = dict.fromkeys(_place(inspect.unwrap(each)) for each in found)
    intro = inspect.getdoc(module) or ""
    return f"# graphreg.{room}\n\n{intro}\n\n" + "\n\n".join(f"::: {place}" for place in places) + "\n"


def _example(script: Path) -> str:
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    intro = ast.get_docstring(tree) or ""
    code = "\n".join(text.splitlines()[tree.body[0].end_lineno or 0 :]).strip()
    return f"# {script.name}\n\n{intro}\n\n```python\n{code}\n```\n"


def _first_line(script: Path) -> str:
    return (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").split("\n")[0]


# ---- links and formulas ----------------------------------------------------------------------------------------------
def on_post_page(output: str, page: Any, config: Any) -> str:
    """Pages take the script of their search from the site itself, which needs no network then."""
    return output.replace(ELSEWHERE, "../" * page.url.count("/") + WORKER)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links out of docs/ lead to the pages of the examples, and what has no page is a name. The page is told what it
    counts for in a search."""
    page.meta["search"] = {"boost": boost(page)}
    up = "../" * page.file.src_uri.count("/")

    def linked(found: re.Match[str]) -> str:
        text, folder, rest = found.group(1), found.group(2), found.group(3) or ""
        if folder == "examples":
            return f"[{text}]({up}examples/{Path(rest).stem or 'index'}.md)"
        name = f"`{folder}/{rest}`"
        return name if text in name else f"{text} ({name})"

    return OUTSIDE.sub(linked, markdown)


def boost(page: Any) -> float:
    """What a page counts for in a search."""
    in_nav = page.next_page is not None or page.previous_page is not None
    section = str(page.ancestors[-1].title) if page.ancestors else ""
    return BOOSTS.get(section, ELSE) if section or not in_nav else FOR_USERS


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """LaTeX as MathML, which browsers show without a script; code in tables without the backslash that keeps a bar
    from ending the cell; inner products as text, where a browser would take them for elements and show nothing; and
    pictures of several panels side by side marked as wide."""

    def typeset(found: re.Match[str]) -> str:
        latex = unescape(found.group(2)).strip()
        drawn = convert(latex[2:-2], display="block" if latex.startswith("\\[") else "inline")
        # bars of norms as high as a letter: one that bears an index is no fence, and would stay small
        return re.sub(r"<mo>(&#x02016;|&#x0007C;)", r'<mo stretchy="false">\1', drawn)

    def marked(found: re.Match[str]) -> str:
        file = Path(config["docs_dir"], page.file.src_uri).parent / found.group(1)
        width, height = struct.unpack(">II", file.read_bytes()[16:24])  # as the head of a PNG has them
        return found.group().replace("<img", '<img class="wide"') if width > WIDE * height else found.group()

    html = PICTURE.sub(marked, html)
    html = CELL.sub(lambda found: found.group().replace("\\|", "|"), html)
    html = PRODUCT.sub(r"&lt;\1&gt;", html)
    return FORMULA.sub(typeset, html)
