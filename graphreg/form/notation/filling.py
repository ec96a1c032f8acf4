"""The notation of a loss or a penalty, its tokens replaced by the symbols of a problem."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...terms import defined
from .writing import NOTHING, Math


@dataclass(frozen=True)
class Filled:
    """The notation of a block, its tokens replaced: the formula, and the definition of what stands in it."""

    math: Math
    definition: Math


def fill(text: str, latex: str, z: Math, u: Math, c: Math, y: Math) -> Filled:
    """Replace the tokens of a `Notation`: argument, flow or price, weight and target."""
    written = [_fill(part, z.text, u.text, c.text, y.text, " * ") for part in defined(text)]
    typeset = [_fill(part, z.latex, u.latex, c.latex, y.latex, r" \cdot ") for part in defined(latex)]
    definition = NOTHING if len(written) == 1 else Math(written[1], typeset[-1])
    return Filled(Math(written[0], typeset[0]), definition)


def _fill(template: str, z: str, u: str, c: str, y: str, times: str) -> str:
    if c == "1":
        template = re.sub(r"\((\d[\d.]*) %c\)", r"\1", template).replace(" / %c", "")
        template = re.sub(r"(?<=\d)( \\,)? %c|%c (\\, )?(?=[^\s<>=])", "", template)
    if c[:1].isdigit():
        template = re.sub(r"(?<=\d)( \\,)? %c", lambda _: times + "%c", template)
    if c.startswith("\\text"):
        template = template.replace("2 %c", r"2 \, %c")
    if " " in c:
        template = template.replace("/ %c", "/ (%c)")
    template = re.sub(r"%z", lambda found: f"({z})" if _in_product(found, z) else z, template)
    filled = {"%u": u, "%c": c, "%y": y}
    return re.sub("%[ucy]", lambda found: filled[found[0]], template)  # in one go: a name may contain a token


def _in_product(found: re.Match[str], z: str) -> bool:
    """Whether a sum that is put here must stand in brackets: as a factor, and after a minus."""
    if " - " not in z and " + " not in z:
        return False
    before, after = found.string[: found.start()], found.string[found.end() :]
    factor = re.search(r"[-\w)}]\s?$", before) and not re.search(r"(\\[a-zA-Z]+|\bin|[<>=]) $", before)
    return bool(factor) or bool(re.match(r"['^_]|\s?[\w(]", after) and not re.match(r" in\b", after))
