"""Submitted source as highlighted HTML lines with line numbers and the marked span. Escapes everything.

Colours are classes; `code_css` gives them for light and for dark pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from markupsafe import Markup
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES, Token, _TokenType

from grader.render.safe import clean_source
from grader.render.source import source_lines
from grader.report import Place

HIGHLIGHT_AT_MOST = 100_000
LINES_AT_MOST = 400
LIGHT, DARK = "default", "github-dark"


@dataclass(frozen=True)
class CodeLine:
    """One line of source as safe HTML."""

    number: int
    html: Markup
    marked: bool


def code_css(style: str) -> str:
    """The token colours of a pygments style, under `.code`; no background of its own."""
    formatter: Any = HtmlFormatter(style=style, nobackground=True)
    lines = formatter.get_style_defs(".code").splitlines()
    return "\n".join(line.split(" /*")[0] for line in lines if line.startswith(".code ."))


def code_lines(source: str, places: tuple[Place, ...], *, around: int | None = None) -> tuple[CodeLine, ...]:
    """The lines of the source; with `around`, only those so near a marked one. Marked spans are `<mark>`."""
    marks = [place for place in places if place.line >= 1]
    lines = []
    for number, pieces in enumerate(_tokens(source), start=1):
        if around is not None and not any(p.line - around <= number <= p.end_line + around for p in marks):
            continue
        span = _span(marks, number, sum(len(text) for _, text in pieces))
        lines.append(CodeLine(number, _line(pieces, span), span is not None))
        if len(lines) == LINES_AT_MOST:
            break
    return tuple(lines)


def _tokens(source: str) -> list[list[tuple[_TokenType, str]]]:
    """(token type, text) of each line. Hidden characters are replaced first, one for one."""
    cleaned = "\n".join(clean_source(line) for line in source_lines(source))
    if len(cleaned) > HIGHLIGHT_AT_MOST:
        return [[(Token, line)] for line in cleaned.split("\n")]
    lines: list[list[tuple[_TokenType, str]]] = [[]]
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(cleaned):
        first, *rest = text.split("\n")
        lines[-1].append((kind, first))
        lines += [[(kind, part)] for part in rest]
    return lines


def _span(marks: list[Place], number: int, length: int) -> tuple[int, int] | None:
    """The columns marked on this line, from 0; the first place that covers it wins."""
    for place in marks:
        if place.line <= number <= place.end_line:
            start = place.column - 1 if number == place.line else 0
            end = place.end_column - 1 if number == place.end_line else length
            start = min(max(start, 0), length)
            return start, max(start, min(end, length))
    return None


def _line(pieces: list[tuple[_TokenType, str]], span: tuple[int, int] | None) -> Markup:
    if span is None:
        return Markup("".join(_piece(kind, text) for kind, text in pieces))
    before, marked, after = (_cut(pieces, *ends) for ends in ((0, span[0]), span, (span[1], None)))
    inner = "".join(_piece(kind, text) for kind, text in marked)
    parts = ("".join(_piece(kind, text) for kind, text in side) for side in (before, after))
    return Markup(f"<mark>{inner}</mark>".join(parts))


def _cut(pieces: list[tuple[_TokenType, str]], start: int, end: int | None) -> list[tuple[_TokenType, str]]:
    """The pieces between two columns."""
    kept, at = [], 0
    for kind, text in pieces:
        stop = len(text) if end is None else min(len(text), max(0, end - at))
        part = text[max(0, start - at) : stop]
        at += len(text)
        if part:
            kept.append((kind, part))
    return kept


def _piece(kind: _TokenType, text: str) -> str:
    name = next((STANDARD_TYPES[k] for k in reversed(kind.split()) if STANDARD_TYPES.get(k)), "")
    return f'<span class="{name}">{escape(text)}</span>' if name and text else escape(text)
