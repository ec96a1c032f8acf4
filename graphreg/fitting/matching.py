"""The labels of rows against those of a graph: which are alike but for how they are written, and which are alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable
from itertools import islice
from typing import Any

from ..base.messages import did_you_mean, either, few
from ..errors import GraphError
from ..inputs import Graph
from .reading import as_text, unreached

SPACES = 'ids="strip" takes such spaces off'
TEXT = 'ids="text" compares them as text'
ALIKE = "labels that differ in case or in zeros are to be written alike, in the table or in the graph"
LONE, JOINED = "fitted alone: ", "fitted by the one model for all: "  # nodes without edges
WORD = 4  # letters: of shorter words one letter makes another
DOUBTED, MOST = 20, 2000  # labels that are looked at, and those that they are compared with


def untied(seen: Collection[Hashable], graph: Graph, lacking: Collection[Hashable] = ()) -> list[str]:
    """What is to be said of the nodes of a graph that have no rows, or no edges; ``seen`` are those with rows, and
    ``lacking`` those that the graph lacks."""
    remarks, size = list[str](), len(graph.labels) + len(lacking)
    joined = {*graph.tail.tolist(), *graph.head.tolist()}
    alone = [label for k, label in enumerate(graph.labels) if k not in joined and label in seen]
    empty = [label for label in graph.labels if label not in seen]
    lost = unreached(seen, graph)
    for labels, what in (
        (alone, f"edges, and are {LONE}"),
        ([label for label in empty if label not in lost], "rows, and follow their neighbours: "),
        ([label for label in empty if label in lost], "rows, and no path of edges to one that has: "),
    ):
        if labels:
            remarks.append(f"{len(labels):,} of {size:,} nodes have no {what}{few(map(repr, labels))}")
    return remarks + [f"no rows at {label!r}{hint}" for label, hint in doubts(empty, [*lacking, *alone], seen)]


def refuse_look_alikes(
    rows: Iterable[Hashable],
    nodes: Collection[Hashable],
    spaces: str = SPACES,
    types: Callable[[Any, Any], str] = lambda _one, _other: TEXT,
) -> None:
    """`GraphError` where only their types, spaces at the ends, upper and lower case, or zeros in front, which
    spreadsheets take off, keep labels of rows and of a graph from being one. Where the graph has all of them by itself
    they are meant, if it is for case, or all have rows. ``spaces`` and ``types`` are what to do about these."""
    groups, seen, every = defaultdict[str, list[Any]](list), set(rows), list(dict.fromkeys((*nodes, *rows)))
    alike = any(isinstance(label, str) for label in every)  # else no two can be written alike
    text = dict(zip(every, as_text(every, False), strict=True)) if alike else {}
    for label, written in text.items():
        groups[re.sub(r"(?<![\d.,])0+(?=\d)", "", written.strip().casefold())].append(label)
    found, remedies = list[str](), dict[str, str]()
    for group in (group for group in groups.values() if len(group) > 1):
        bare = {text[label].strip() for label in group}
        of_case = len(bare) == len(group) and len({each.casefold() for each in bare}) == 1
        if group[-1] in nodes and (of_case or seen.issuperset(group)):
            continue
        known, new = [x for x in group if x in nodes], [x for x in group if x not in nodes]
        sides = ((new, "the table"), (known, "the graph"))
        found.append(" beside ".join(f"{' and '.join(map(repr, side))} of {name}" for side, name in sides if side))
        if len({isinstance(label, str) for label in group}) > 1:
            one = next(label for label in [*new, *group] if label in seen)
            other = next(label for label in group if isinstance(label, str) is not isinstance(one, str))
            remedies[f"type ({type(one).__name__} and {type(other).__name__})"] = types(one, other)
        remedies |= {"spaces at their ends": spaces} if len(bare) < len({text[label] for label in group}) else {}
        remedies |= {"upper and lower case, or by zeros in front": ALIKE} if len(bare) > 1 else {}
    if found:
        raise GraphError(f"labels differ only by {either(remedies)}: {few(found)}; {', and '.join(remedies.values())}")


def doubts(named: Iterable[Hashable], alone: Collection[Hashable], others: Iterable[Hashable]) -> list[tuple[Any, str]]:
    """Those of some labels that are probably misspelt, each with a hint: of one of those that are alone, or by one slip
    in a word of another one; numbers in labels are meant."""
    found, known = list[tuple[Any, str]](), list(islice(others, MOST))
    for label in islice(dict.fromkeys(named), DOUBTED):
        near = next((other for other in known if _slipped(label, other)), None)
        if hint := did_you_mean(label, alone, numbers=False) or (f"; did you mean {near!r}?" if near else ""):
            found.append((label, hint))
    return found


def _slipped(label: object, other: object) -> bool:
    """True where two texts differ by a letter, or by its place, in one word of at least `WORD` letters."""
    if not (isinstance(label, str) and isinstance(other, str)) or abs(len(label) - len(other)) > 1:
        return False
    words = [re.findall(r"[^\W\d_]+|\d+", each.casefold()) for each in (label, other)]
    if words[0] == words[1]:  # but for signs between them
        return True
    apart = [pair for pair in zip(*words, strict=False) if pair[0] != pair[1]]
    if len(words[0]) != len(words[1]) or len(apart) != 1 or len(max(apart[0], key=len)) < WORD:
        return False
    one, two = ({word, *(word[:k] + word[k + 1 :] for k in range(len(word)))} for word in apart[0])
    return not apart[0][0].isdigit() and not one.isdisjoint(two)
