"""The sentences that messages share: alternatives in words, and the name that was probably meant."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import currentframe
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from ..errors import MethodWarning

CONTEXTS = str(contextlib.__file__)  # stands between a ``with`` and the generator that it enters
HERE = str(Path(__file__).parents[1])
MANY = 10_000  # names among which one that was meant is looked for
SHOWN = 12  # names that a message lists
NAMED = 10  # names that a sentence names
LONGEST = 300  # characters of a value
PRODUCT = "is a product of unknowns, which is not convex; give one as a number, or write gr.Quadratic(Q)(rows)"

NESTED = r"((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*?)"  # brackets within up to three pairs of them
ATOMS: dict[str, Any] = {  # what CVXPY's atoms are called in print, and what users call them
    r"Promote\((-?[\w.+-]+), \([\d, ]*\)\)": r"\1",
    rf"\breshape\({NESTED}, \(1,\), F\)": r"\1",
    r"\bPnorm(Approx)?\(": "norm(",
    r"\b(Hstack|Vstack|Power|Sum)(Approx)?\(": lambda found: f"{found[1].lower()}(",
    r"\bGeoMean(Approx)?\(": "geo_mean(",
    r", None, False\)": ")",
    r"quad_over_lin\(([^,()]*|[^,()]*\([^()]*\)[^,()]*), 1\.0\)": r"sum_squares(\1)",
    r"\+ -": "- ",
    r"([-+*/@] )\(([\w.]+(?:\[[\w:, ]*\])?)\)": r"\1\2",
    r"(\d)\.0\b(?!\d)": r"\1",
    r"(?s)\[\[[^][]*(\]\s+(\.\.\.\s+)?\[[^][]*)*\]\]": lambda found: "[[...]]" if "..." in found[0] else found[0],
}


def users_line() -> int:
    """The ``stacklevel=`` of a warning that whoever calls this gives: the nearest line that is not of this library."""
    here = currentframe()
    frame: FrameType | None = None if here is None else here.f_back
    level = 1
    while frame is not None and (frame.f_code.co_filename.startswith(HERE) or frame.f_code.co_filename == CONTEXTS):
        frame, level = frame.f_back, level + 1
    return level


def warn(message: str) -> None:
    """Warn of a method that was configured against its theory, at the user's line."""
    warnings.warn(message, MethodWarning, stacklevel=users_line())


def either(words: Iterable[str]) -> str:
    """'a', 'a or b', 'a, b or c'."""
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else last


def count(how_many: int, thing: str, things: str = "") -> str:
    """'1 node', '2 nodes'."""
    return f"{how_many} {thing if how_many == 1 else things or thing + 's'}"


def few(names: Iterable[object], most: int = NAMED) -> str:
    """The first of some names, and how many more there are."""
    every = list(map(str, names))
    return ", ".join(every[:most]) + f" and {len(every) - most:,} more" * (len(every) > most)


def distinct(name: Any, taken: Container[Any]) -> Any:
    """The name, with a number behind it where it is taken."""
    number, out = 1, name
    while out in taken:
        number += 1
        out = f"{name} ({number})"
    return out


def shown(value: object) -> str:
    """A value as a message shows it: what is long is cut."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def of_cvxpy(expression: object) -> str:
    """An expression or a constraint of CVXPY, as a user would write it."""
    said = str(expression)
    for written, users in ATOMS.items():
        said = re.sub(written, users, said)
    return said


def look_alike(label: Hashable, labels: Iterable[Hashable]) -> str:
    """A hint where a label was meant that only looks the same: 1 against '1'."""
    for other in other_types([label], labels).values():
        return (
            f" (there is {other!r} of type {type(other).__name__}, not {label!r} of type {type(label).__name__}: "
            "labels are compared as they are)"
        )
    return ""


def other_types(labels: Iterable[Hashable], known: Iterable[Hashable]) -> dict[Any, Any]:
    """Those of some labels that are written as known ones of another type, each with that."""
    named = {str(other): other for other in known}
    return {x: named[str(x)] for x in labels if type(named.get(str(x), x)) is not type(x)}


def retyped(label: object, other: object, column: str = 'table["node"]') -> str:
    """What makes the labels in a column, such as ``label``, those like ``other``, which is of another type."""
    kind = type(other).__name__
    if kind not in ("str", "int"):
        return f"give labels of one type, {kind}, to both"
    whole = ".astype(int)" * (kind == "str" and isinstance(label, float))  # 101.0 is "101"
    zeros = f".str.zfill({len(str(other))})" * (kind == "str" and str(other).startswith("0"))
    return f"write {column}{whole}.astype({kind}){zeros}"


def closest(name: object, known: Iterable[object]) -> str | None:
    """The name that was probably meant: the same in other letters, one written nearly so, or one that contains it."""
    if not isinstance(name, str):
        return None
    word = name.lower()
    names = {each.lower(): each for each in islice(known, MANY) if isinstance(each, str)}
    found = [word] * (word in names) or get_close_matches(word, names, 1)
    found = found or [each for each in names if len(word) > 2 and word in each]
    return names[found[0]] if found else None


def did_you_mean(label: Hashable, labels: Iterable[Hashable], numbers: bool = True) -> str:
    """A hint where a label that is not there looks like one that is, or is written nearly so; without ``numbers`` not
    where these alone differ, as they are meant."""
    known = list(islice(labels, MANY))
    near = closest(label, known)
    letters, digits = ({re.sub(what, "", str(x).lower()) for x in (label, near)} for what in (r"[\W\d_]+", r"\D+"))
    schemed = len(letters) > 1 < len(digits)  # B1 is no E4 that is misspelt
    meant = near and not schemed and (numbers or len(letters) > 1)
    return look_alike(label, known) or (f"; did you mean {near!r}?" if meant else "")


def unknown_labels(what: str, given: Iterable[Hashable], known: Collection[Hashable], of: str = "node") -> list[str]:
    """A sentence on the first label that ``what`` names and that is none, with what was probably meant, or what there
    is."""
    found = [label for label in given if label not in known]
    name = "name" if _is_plural(what) else "names"
    return [
        f"{what} {name} {x!r}, which is not a {of}{_and_more(found)}{did_you_mean(x, known) or _few(known, of)}"
        for x in found[:1]
    ]


def _few(known: Collection[Hashable], of: str) -> str:
    """All labels, where they are few."""
    return f"; the {of}s are {', '.join(map(repr, known))}" if 0 < len(known) <= SHOWN else ""


def _and_more(found: Sequence[Hashable]) -> str:
    return f" (and {len(found) - 1} more)" if len(found) > 1 else ""


def missing_entries(what: str, given: Collection[Hashable], known: Iterable[Hashable], of: str = "node") -> list[str]:
    """A sentence on the labels for which ``what`` has no entry."""
    lacking = [label for label in known if label not in given]
    has = "have" if _is_plural(what) else "has"
    return [f"{what} {has} no entry for the {of} {x!r}{_and_more(lacking)}{look_alike(x, given)}" for x in lacking[:1]]


def _is_plural(what: str) -> bool:
    """True where 'the weights of L1' are many, as 'the weight of L1' is not."""
    return what.partition(" of ")[0].endswith("s")


def unmatched(what: str, given: Any, known: Collection[Hashable], of: str = "node") -> list[str]:
    """The mismatches between the keys of a mapping and the labels there are, as sentences; nothing where
    ``given`` is no mapping but one value for all."""
    if not isinstance(given, Mapping):
        return []
    return [*unknown_labels(what, given, known, of), *missing_entries(what, given, known, of)]


def near(name: str, known: Sequence[str], what: str = "there are") -> str:
    """'did you mean ...?', or the names that there are."""
    if not known:
        return f"{what} none"
    close = closest(name, known)
    more = ", ..." if len(known) > SHOWN else ""
    return f"did you mean {close!r}?" if close else f"{what} {', '.join(map(repr, known[:SHOWN]))}{more}"
