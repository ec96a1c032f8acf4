"""What messages say alike: alternatives in words, and the name that was probably meant."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

MANY = 10_000  # names among which one that was meant is looked for
SHOWN = 12  # names that a message lists


def either(words: Iterable[str]) -> str:
    """'a', 'a or b', 'a, b or c'."""
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else last


def look_alike(label: Hashable, labels: Iterable[Hashable]) -> str:
    """A hint where a label was meant that only looks the same: 1 against '1'."""
    for other in labels:
        if str(other) == str(label) and type(other) is not type(label):
            return (
                f" (there is {other!r} of type {type(other).__name__}, not {label!r} of type {type(label).__name__}: "
                "labels are compared as they are)"
            )
    return ""


def closest(name: object, known: Iterable[object]) -> str | None:
    """The name that was probably meant: the same in other letters, one written nearly so, or one that contains it."""
    if not isinstance(name, str):
        return None
    word = name.lower()
    names = {each.lower(): each for each in islice(known, MANY) if isinstance(each, str)}
    found = [word] * (word in names) or get_close_matches(word, names, 1)
    found = found or [each for each in names if len(word) > 2 and word in each]
    return names[found[0]] if found else None


def did_you_mean(label: Hashable, labels: Iterable[Hashable]) -> str:
    """A hint where a label that is not there looks like one that is, or is written nearly so."""
    known = list(islice(labels, MANY))
    near = closest(label, known)
    return look_alike(label, known) or (f"; did you mean {near!r}?" if near else "")


def near(name: str, known: Sequence[str], what: str = "there are") -> str:
    """'did you mean ...?', or the names that there are."""
    if not known:
        return f"{what} none"
    close = closest(name, known)
    more = ", ..." if len(known) > SHOWN else ""
    return f"did you mean {close!r}?" if close else f"{what} {', '.join(map(repr, known[:SHOWN]))}{more}"
