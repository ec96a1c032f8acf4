"""Pieces of HTML: what is given is escaped, what is HTML already stays."""

from __future__ import annotations

import pytest
from hostile import EVERY, TAGS, tags, unprintable

from graphreg.base.display import Brief, Html, block, details, facts, html, more, sentence, sentences, table, title


@pytest.mark.parametrize("name", EVERY)
def test_nothing_that_is_given_is_obeyed(name):
    text = EVERY[name]
    page = block(
        title(text),
        sentence(text),
        sentences(text, [text, text]),
        facts({text: text}),
        table([text, "n"], [(text, 1), (text, 2.5)]),
        details(text, sentence(text)),
    )
    assert tags(page) <= TAGS
    assert not unprintable(page)


def test_html_is_not_escaped_twice():
    assert html("a < b") == "a &lt; b"
    assert html(html("a < b")) == "a &lt; b"
    assert sentence(Html("<math></math>")).count("<math></math>") == 1


def test_numbers_stand_to_the_right():
    page = table(["name", "number", "both"], [("a", 1.23456789, 1), ("b", 2, "x")])
    assert page.count("text-align:right") == 3  # the heading and two cells
    assert "1.23457" in page
    assert "True" in table(["flag"], [(True,)])
    assert "text-align:right" not in table(["flag"], [(True,)])


def test_what_is_left_out_is_counted():
    assert "and 1,290 more" in more(1300, 10)
    assert more(10, 10) == ""
    assert sentences("assumed:", []) == ""


def test_a_record_shows_its_fields_briefly():
    from dataclasses import dataclass

    import numpy as np

    @dataclass(repr=False)
    class Small(Brief):
        number: int
        array: object
        text: str

    shown = repr(Small(1, np.zeros((300, 2)), "x" * 1000))
    assert shown.startswith(
        "test_a_record_shows_its_fields_briefly.<locals>.Small(number=1, array=<ndarray of the shape"
    )
    assert "(300, 2)" in shown
    assert len(shown) < 400
