"""Foreign text cannot steer a terminal, reorder a line or hide in it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.render.safe import clean, clean_inline, clean_source, is_hidden, to_ascii


@pytest.mark.parametrize(
    ("foreign", "harmless"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$tdcs\x1b\\after", "after"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bcreset", "reset"),
        ("bell\x07 back\x08space nul\x00", "bell backspace nul"),
        ("\u202eright to left\u202c \u2066isolate\u2069", "right to left isolate"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("lone \udc80 surrogate", "lone  surrogate"),
        ("line\u2028separator", "lineseparator"),
        ("over\rwritten", "over\nwritten"),
        ("windows\r\nline", "windows\nline"),
        ("a\tb", "a    b"),
        ("注意 naïve ✓", "注意 naïve ✓"),
    ],
)
def test_clean(foreign: str, harmless: str) -> None:
    assert clean(foreign) == harmless


def test_an_unfinished_escape_does_not_swallow_the_next_line() -> None:
    assert clean("\x1b]0;never closed\nnext") == "\nnext"


def test_clean_inline_has_no_line_break() -> None:
    assert clean_inline("a\nb\r\nc") == "a b c"


def test_source_keeps_its_columns() -> None:
    assert clean_source("a\u202eb\x1b[2Jc\td") == "a\ufffdb\ufffd[2Jc\td"


def test_ascii_replaces_common_marks_and_escapes_the_rest() -> None:
    assert to_ascii("a · b … ✓ ×2 →") == "a . b ... \\u2713 x2 ->"


@given(st.text())
def test_nothing_hidden_survives(text: str) -> None:
    assert not any(is_hidden(c) for c in clean(text).replace("\n", ""))
    assert not any(is_hidden(c) for c in clean_inline(text))
    assert to_ascii(text).isascii()


@given(st.text(st.characters(exclude_characters="\t")))
def test_source_length_is_kept(text: str) -> None:
    assert len(clean_source(text)) == len(text)
    assert not any(unicodedata.category(c) == "Cc" for c in clean_source(text))
