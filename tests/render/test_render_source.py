"""The marked source line: carets stay under the span and the line fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from grader.render.source import Excerpt, excerpt, source_lines
from grader.report import Place


def marked(found: Excerpt | None) -> str:
    """The characters over the carets, by terminal cells."""
    assert found is not None
    at, text = 0, ""
    for character in found.code:
        if found.indent <= at < found.indent + len(found.carets):
            text += character
        at += cell_len(character)
    return text


@pytest.mark.parametrize(
    ("line", "column", "end", "span"),
    [
        ("    q = q.contiguous()", 9, 23, "q.contiguous()"),
        ("\t\tq.contiguous()", 3, 17, "q.contiguous()"),
        ("注意 = q.contiguous()", 6, 20, "q.contiguous()"),
        ("a\u202eb = q.clone()", 7, 16, "q.clone()"),
        ("short", 99, 120, ""),
    ],
)
def test_carets_stand_under_the_span(line: str, column: int, end: int, span: str) -> None:
    assert marked(excerpt(line, Place(1, column, 1, end), width=80)) == span


def test_a_span_of_several_lines_is_marked_to_the_end_of_its_first() -> None:
    found = excerpt("x = f(\n    1)\n", Place(1, 5, 2, 7), width=80)
    assert found == Excerpt(1, "x = f(", 4, "^^")


def test_a_long_line_is_cut_on_both_sides_of_the_span() -> None:
    line = "x = " + "a + " * 30 + "bad" + " + c" * 30
    found = excerpt(line, Place(1, 125, 1, 128), width=40)
    assert found is not None
    assert cell_len(found.code) == 40
    assert found.code.startswith("…")
    assert found.code.endswith("…")
    assert marked(found) == "bad"


def test_only_what_python_counts_ends_a_line() -> None:
    source = "a = '\x0c'\r\nb = '\u2028\x1c'\rc = 1\nd\n"
    assert source_lines(source) == ["a = '\x0c'", "b = '\u2028\x1c'", "c = 1", "d"]
    assert marked(excerpt(source, Place(3, 5, 3, 6), width=40)) == "1"


@pytest.mark.parametrize("line", [0, 3, 10_000])
def test_a_line_that_is_not_there_gives_nothing(line: int) -> None:
    assert excerpt("one\ntwo\n", Place(line, 1, line, 2), width=80) is None


@given(
    st.text(min_size=1, max_size=200).filter(lambda s: s.splitlines()),
    st.integers(-2, 210),
    st.integers(0, 210),
    st.integers(20, 120),
    st.booleans(),
)
def test_no_excerpt_is_wider_than_asked(text: str, column: int, end: int, width: int, ascii: bool) -> None:
    found = excerpt(text, Place(1, column, 1, end), width=width, dots="..." if ascii else "…", ascii=ascii)
    assert found is not None
    assert cell_len(found.code) <= width
    assert found.indent + len(found.carets) <= width
