"""One line of submitted source with the marked span, cut to a width that keeps the mark in sight.

Hidden characters are replaced, tabs widened, and the caret line counts terminal cells, so it stays under the
span even behind wide characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rich.cells import cell_len

from grader.render.safe import clean_source, to_ascii
from grader.report import Place

_TAB = "    "


@dataclass(frozen=True)
class Excerpt:
    """A source line, the spaces before its carets, and the carets."""

    number: int
    code: str
    indent: int
    carets: str


def source_lines(source: str) -> list[str]:
    """The lines as Python counts them: form feeds and Unicode separators do not end a line."""
    lines = re.split("\r\n|\r|\n", source)
    return lines[:-1] if lines[-1] == "" else lines


def excerpt(source: str, place: Place, *, width: int, dots: str = "…", ascii: bool = False) -> Excerpt | None:
    """The marked line in at most `width` terminal cells; None when the source has no such line."""
    lines = source_lines(source)
    if not 1 <= place.line <= len(lines):
        return None
    line = clean_source(lines[place.line - 1])
    start = min(max(place.column - 1, 0), len(line))
    end = place.end_column - 1 if place.end_line == place.line else len(line)
    before, marked, after = (_plain(part, ascii) for part in (line[:start], line[start:end], line[end:]))
    stripped = before.lstrip(" ") if cell_len(before + marked + after) > width else before
    before = _tail(stripped, width // 2, dots)
    marked = _head(marked, max(1, width - cell_len(before)), dots)
    after = _head(after, width - cell_len(before + marked), dots)
    return Excerpt(
        place.line, (before + marked + after).rstrip(), cell_len(before), "^" * max(1, cell_len(marked))
    )


def _plain(text: str, ascii: bool) -> str:
    text = text.replace("\t", _TAB)
    return to_ascii(text) if ascii else text


def _head(text: str, room: int, dots: str) -> str:
    """The start of the text in `room` cells."""
    if cell_len(text) <= room:
        return text
    kept = text[: max(0, room)]
    while kept and cell_len(kept) + len(dots) > room:
        kept = kept[:-1]
    return kept + dots if len(dots) <= room else ""


def _tail(text: str, room: int, dots: str) -> str:
    """The end of the text in `room` cells."""
    if cell_len(text) <= room:
        return text
    kept = text[-room:]
    while kept and cell_len(kept) + len(dots) > room:
        kept = kept[1:]
    return dots + kept
