"""Names that a medium might obey, and what must not be left of them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

HOSTILE = {
    "a dollar": "$x_{",
    "two dollars": "$a$ and $",
    "TeX that reads": r"\input{secret}",
    "TeX that runs": r"}\write18{id}$$\end{aligned}",
    "a tag": "</td></div><script>alert(1)</script>",
    "a link": "<a href=\"javascript:alert(1)\" onclick='alert(1)'>x</a>",
    "an entity": "&lt;b&gt;&amp;&#60;i",
    "tokens": "%c %z %u %y 100%",
    "specials": "#1_a^b~{}`",
    "colours": "\x1b[31mred\x1b[0m\x9b2J",
    "a window title": "\x1b]0;mine\x07",
    "backspaces": "certified\x08\x08\x7f",
    "lines": "a\nb\r\nc\x0b\x0c\x85\u2028d",
    "right to left": "\u202eabc\u200f\u2066d",
    "a long one": "long" * 2000,
    "a long formula": "=" + "(1+" * 1000,
    "equals": '=HYPERLINK("x";"y")',
    "plus": "+cmd|' /C calc'!A0",
    "minus": "-2+3",
    "at": "@SUM(A1)",
    "a tab": "\t=1",
    "spaces": "  =1",
    "a carriage return": "\r=1",
    "a wide one": "\uff1d1",
    "a separator": "a;=1\t=2",
    "an apostrophe": "'=1",
    "two apostrophes": "''=1",
    "quotes": '"=1",\'',
    "an underscore": "_hidden",
    "a path": "../../x/y",
    "an option": "--allow-code",
    "Greek with a tail": "alpha_$",
    "one letter with a tail": "\\_1",
}
EVERY = {**HOSTILE, "nothing": "", "a zero": "a\0b"}

TAGS = {"div", "table", "thead", "tbody", "tr", "th", "td", "p", "strong", "ul", "li", "details", "summary"}
FORMULAS = {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mstyle", "mfrac"}
FORMULAS |= {"msub", "msup", "msubsup", "munder", "mover", "munderover"}


def unprintable(text: str) -> set[str]:
    """The characters that a terminal might obey."""
    return {c for c in text if c != "\n" and not c.isprintable()}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.found |= {name for name, _ in attrs if name.startswith("on") or name == "href"}

    handle_endtag = lambda self, tag: self.found.add(tag)  # noqa: E731
    handle_data = lambda self, data: self.texts.append(data)  # noqa: E731


def tags(html: str) -> set[str]:
    """The tags of a page, and attributes that do something."""
    parser = _Tags()
    parser.feed(html)
    parser.close()
    return parser.found


def commands(latex: str) -> set[str]:
    """The commands of a formula."""
    return set(re.findall(r"\\(?:[a-zA-Z]+|.)", latex))


def bare(latex: str) -> str:
    """A formula without its escapes: in what is left, $ % # & < end or open something."""
    return re.sub(r"\\.", "", latex)
