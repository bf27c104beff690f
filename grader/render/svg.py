"""The drawings of a `Scene` as inline SVG: no script, no outside resource, readable in light and dark.

Colours come from CSS variables (`--mq-…`) with fallbacks, text takes the page's colour. Every mark also
differs in form: the focus is filled, others are outlined, memory outside the result is dashed, wrong cells
carry a sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import groupby

from rich.cells import cell_len

from grader.render.safe import clean_inline
from grader.render.scene import Drawing, Links, Row, Tone

CELL, PIECE = 14, 10
_GAP = 6
_LETTER = 7.3
_LINE = 18

_STYLE = {
    Tone.FOCUS: "fill:var(--mq-focus,#1f5fbf);stroke:var(--mq-focus,#1f5fbf)",
    Tone.PART: "fill:var(--mq-focus,#1f5fbf);fill-opacity:.45;stroke:var(--mq-focus,#1f5fbf)",
    Tone.OTHER: "fill:var(--mq-other,#eef1f5);stroke:var(--mq-line,#8a94a3)",
    Tone.OUTSIDE: "fill:none;stroke:var(--mq-line,#8a94a3);stroke-dasharray:2 2",
    Tone.OPEN: "fill:var(--mq-focus,#1f5fbf);stroke:var(--mq-focus,#1f5fbf)",
    Tone.CLOSED: "fill:var(--mq-other,#eef1f5);stroke:var(--mq-line,#8a94a3)",
    Tone.WRONGLY_OPEN: "fill:none;stroke:var(--mq-bad,#b3261e);stroke-width:2",
    Tone.WRONGLY_CLOSED: "fill:none;stroke:var(--mq-bad,#b3261e);stroke-width:2",
}
_SIGN = {Tone.WRONGLY_OPEN: "+", Tone.WRONGLY_CLOSED: "−"}


@dataclass(frozen=True)
class _Box:
    """A drawn part and the room it takes."""

    parts: tuple[str, ...]
    width: float
    height: float


def drawing_svg(drawing: Drawing, name: str) -> str:
    """A grid of cells. `name` makes the ids of its title and description unique in the page."""
    margin = max(_text_width(row.label) for row in drawing.rows) + 10
    size = PIECE if drawing.pieces else CELL
    lefts, right = _columns(drawing, margin, size)
    heads = drawing.rows[0].groups
    parts = [_text(x, 12, group.label) for x, group in zip(lefts, heads, strict=True) if group.label]
    y = float(_LINE)
    for row in drawing.rows:
        if row.skipped:
            parts.append(_text(0, y + 12, _left_out(row.skipped)))
            y += _LINE
        parts += _row(row, lefts, y, size, drawing.pieces)
        if drawing.more_groups:
            parts.append(_text(right, y + 11, "…"))
        y += CELL + 4
    if drawing.more_rows:
        parts.append(_text(0, y + 12, _left_out(drawing.more_rows)))
        y += _LINE
    legend = _legend(drawing, y + 6)
    width = max(right + (16 if drawing.more_groups else 0), legend.width)
    return _svg(name, drawing.title, drawing.alt, _Box((*parts, *legend.parts), width, y + 6 + legend.height))


def links_svg(links: Links, name: str) -> str:
    """Query heads left, K/V heads right, a line for each read; a wrong line is dashed and signed."""
    spread = 150
    step = 24
    tall = max(len(links.left), len(links.right))
    ys_left = _spaced(len(links.left), tall, step)
    ys_right = _spaced(len(links.right), tall, step)
    wrong = {link.left for link in links.links if link.differs}
    names = [f"≠ {label}" if n in wrong else label for n, label in enumerate(links.left)]
    parts = [_text(44, y + 4, name, anchor="end") for y, name in zip(ys_left, names, strict=True)]
    parts += [_text(spread + 16, y + 4, label) for y, label in zip(ys_right, links.right, strict=True)]
    for link in links.links:
        y1, y2 = ys_left[link.left], ys_right[link.right]
        style = "stroke:var(--mq-line,#8a94a3);stroke-width:1.5"
        if link.differs:
            style = "stroke:var(--mq-bad,#b3261e);stroke-width:2;stroke-dasharray:5 3"
        parts.append(f'<line x1="50" y1="{y1}" x2="{spread + 10}" y2="{y2}" style="{style}"/>')
    return _svg(name, links.title, links.alt, _Box(tuple(parts), spread + 60, tall * step))


def _spaced(count: int, tall: int, step: int) -> list[float]:
    """`count` places evenly over the height of `tall`."""
    return [round((n + 0.5) * tall * step / count, 1) for n in range(count)]


def _columns(drawing: Drawing, margin: float, size: int) -> tuple[list[float], float]:
    """The left edge of each group and the right end of the last."""
    lefts, x = [], margin
    for group in drawing.rows[0].groups:
        lefts.append(round(x, 1))
        x += max(len(group.cells) * size, _text_width(group.label)) + _GAP
    return lefts, round(x, 1)


def _row(row: Row, lefts: list[float], y: float, size: int, pieces: bool) -> list[str]:
    """The label and the cells; in pieces, neighbours of one tone are one rectangle."""
    parts = [_text(0, y + 11, row.label)]
    for left, group in zip(lefts, row.groups, strict=True):
        runs = [(tone, len(list(same))) for tone, same in groupby(group.cells)]
        at = left
        for tone, count in runs if pieces else [(tone, 1) for tone in group.cells]:
            parts.append(_cell(round(at, 1), y, tone, count * size))
            at += count * size
    return parts


def _cell(x: float, y: float, tone: Tone, width: int = CELL) -> str:
    rect = (
        f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{width - 2}" height="{CELL - 2}" style="{_STYLE[tone]}"/>'
    )
    sign = _SIGN.get(tone)
    return rect if sign is None else rect + _text(x + width / 2, y + 11.5, sign, anchor="middle")


def _legend(drawing: Drawing, y: float) -> _Box:
    parts, wide = [], 0.0
    for n, (tone, word) in enumerate(drawing.legend):
        top = y + n * _LINE
        parts += [_cell(0, top, tone), _text(CELL + 6, top + 12, word)]
        wide = max(wide, CELL + 6 + _text_width(word))
    return _Box(tuple(parts), wide, len(drawing.legend) * _LINE)


def _left_out(count: int) -> str:
    return f"… {count} more row{'s' if count > 1 else ''}"


def _text_width(text: str) -> float:
    return cell_len(text) * _LETTER


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(clean_inline(text))}</text>'


def _svg(name: str, title: str, alt: str, box: _Box) -> str:
    """The element itself; screen readers get the title and the sentence, not the cells."""
    name = escape(name, quote=True)
    width, height = round(box.width + 2), round(box.height + 2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'style="font:12px ui-monospace,Menlo,Consolas,monospace;fill:currentColor">'
        f'<title id="{name}-title">{escape(clean_inline(title))}</title>'
        f'<desc id="{name}-desc">{escape(clean_inline(alt))}</desc>{"".join(box.parts)}</svg>'
    )
