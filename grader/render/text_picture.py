"""A `Scene` as lines of text that fit a width. No colour, no wrapping by the terminal, one string a line.

Drawings that fit stand side by side, otherwise below each other. What does not fit is left out behind "…",
and the sentence under each picture always says it whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import TextWrapper

from rich.cells import cell_len, set_cell_size

from grader.render.glyphs import Glyphs
from grader.render.safe import clean_inline, to_ascii
from grader.render.scene import Drawing, Numbers, Scene, Table

_BETWEEN = 4
_GROUPS_ENOUGH = 4


@dataclass(frozen=True)
class Block:
    """A title and the lines under it, which belong together."""

    title: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def width(self) -> int:
        """Terminal cells of the longest line."""
        return max(map(cell_len, (*self.title, *self.lines)), default=0)


def scene_lines(scene: Scene, *, width: int, glyphs: Glyphs) -> list[str]:
    """The scene, its parts divided by empty lines. No line is wider than `width`."""
    parts = [list(table_lines(table, width, glyphs)) for table in scene.tables]
    if scene.drawings:
        parts.append(_drawings(scene.drawings, width, glyphs))
        parts[-1] += _sentences([d.alt for d in scene.drawings], width)
    if scene.links:
        parts.append(_sentences([links.alt for links in scene.links], width))
    if scene.numbers:
        parts.append(_beside([numbers_block(n, width, glyphs) for n in scene.numbers], width))
        parts[-1] += _sentences([n.alt for n in scene.numbers], width)
    lines: list[str] = []
    for part in parts:
        lines += ["", *part] if lines else part
    return [crop(_own(line, glyphs).rstrip(), width) for line in lines]


def crop(line: str, width: int) -> str:
    """The line, cut to so many terminal cells."""
    return line if cell_len(line) <= width else set_cell_size(line, max(0, width)).rstrip()


def _own(line: str, glyphs: Glyphs) -> str:
    return to_ascii(clean_inline(line)) if glyphs.ascii else clean_inline(line)


def _wrap(text: str, width: int) -> list[str]:
    return TextWrapper(width, break_on_hyphens=False).wrap(text)


def _sentences(sentences: list[str], width: int) -> list[str]:
    return _wrap(" ".join(sentences), width)


def _beside(blocks: list[Block], width: int) -> list[str]:
    """Blocks side by side when they fit, else below each other. Side by side their first lines are level."""
    if sum(block.width for block in blocks) + _BETWEEN * (len(blocks) - 1) > width:
        stacked: list[str] = []
        for block in blocks:
            stacked += [*([""] if stacked else []), *block.title, *block.lines]
        return stacked
    top = max(len(block.title) for block in blocks)
    height = top + max(len(block.lines) for block in blocks)
    columns = [_padded(block, top, height) for block in blocks]
    return [(" " * _BETWEEN).join(parts).rstrip() for parts in zip(*columns, strict=True)]


def _padded(block: Block, top: int, height: int) -> list[str]:
    lines = [*block.title, *[""] * (top - len(block.title)), *block.lines]
    return [set_cell_size(line, block.width) for line in (*lines, *[""] * (height - len(lines)))]


# --- grids of cells ---


def _drawings(drawings: tuple[Drawing, ...], width: int, glyphs: Glyphs) -> list[str]:
    """Side by side when each can still show enough of its groups in its share of the width."""
    share = (width - _BETWEEN * (len(drawings) - 1)) // len(drawings)
    narrow = [_fitting(drawing, share, glyphs) for drawing in drawings]
    if all(_shows_enough(n, d) for n, d in zip(narrow, drawings, strict=True)):
        return _beside([drawing_block(drawing, share, glyphs) for drawing in narrow], width)
    return _beside([drawing_block(drawing, width, glyphs) for drawing in drawings], 0)


def _shows_enough(narrow: Drawing, drawing: Drawing) -> bool:
    """A few heads stand for all; of a mask every column is wanted."""
    groups = drawing.rows[0].groups
    wanted = min(_GROUPS_ENOUGH, len(groups)) if any(len(g.cells) > 1 for g in groups) else len(groups)
    return len(narrow.rows[0].groups) >= wanted


def drawing_block(drawing: Drawing, width: int, glyphs: Glyphs) -> Block:
    """A grid: title, column labels, rows, what was left out and the legend."""
    drawing = _fitting(drawing, width, glyphs)
    lines = _grid_lines(drawing, glyphs)
    room = max(min(width, 34), *map(cell_len, lines))
    legend = [f"{glyphs.tone[tone].strip() or 'blank:'} {word}" for tone, word in drawing.legend]
    return Block(tuple(_wrap(drawing.title, width)), (*lines, *flow(legend, room, "  ")))


def _fitting(drawing: Drawing, width: int, glyphs: Glyphs) -> Drawing:
    """The drawing with as many groups as fit."""
    while len(drawing.rows[0].groups) > 1 and max(map(cell_len, _grid_lines(drawing, glyphs))) > width:
        drawing = _narrower(drawing)
    return drawing


def _narrower(drawing: Drawing) -> Drawing:
    rows = tuple(replace(row, groups=row.groups[:-1]) for row in drawing.rows)
    return replace(drawing, rows=rows, more_groups=drawing.more_groups + 1)


def _grid_lines(drawing: Drawing, glyphs: Glyphs) -> list[str]:
    margin = max(cell_len(row.label) for row in drawing.rows) + 2
    first = drawing.rows[0].groups
    wide = [max(len(group.cells), cell_len(group.label)) for group in first]
    more = f" {glyphs.dots}" if drawing.more_groups else ""
    heads = " ".join(group.label.ljust(size) for group, size in zip(first, wide, strict=True))
    lines = [" " * margin + heads + more] if heads.strip() else []
    for row in drawing.rows:
        if row.skipped:
            lines.append(_left_out(row.skipped, glyphs))
        cells = ("".join(glyphs.tone[cell] for cell in group.cells) for group in row.groups)
        body = " ".join(text.ljust(size) for text, size in zip(cells, wide, strict=True))
        lines.append(set_cell_size(row.label, margin) + body + more)
    if drawing.more_rows:
        lines.append(_left_out(drawing.more_rows, glyphs))
    return [line.rstrip() for line in lines]


def _left_out(count: int, glyphs: Glyphs) -> str:
    return f"{glyphs.dots} {count} more row{'s' if count > 1 else ''}"


def flow(items: list[str], width: int, between: str) -> list[str]:
    """Items in lines of at most `width`, never broken inside unless one alone is wider."""
    lines: list[str] = []
    for item in items:
        if lines and cell_len(lines[-1]) + cell_len(between) + cell_len(item) <= width:
            lines[-1] += between + item
        else:
            lines.append(item)
    return lines


# --- tables ---


def table_lines(table: Table, width: int, glyphs: Glyphs) -> tuple[str, ...]:
    """A table in columns; where it does not fit, one line for each cell."""
    rows = [(*row.cells, glyphs.differs if row.differs else "") for row in table.rows]
    head = (*table.head, "")
    wide = [max(cell_len(line[n]) for line in (head, *rows)) for n in range(len(head))]
    lines = [
        "  ".join(set_cell_size(c, w) for c, w in zip(line, wide, strict=True)).rstrip()
        for line in (head, *rows)
    ]
    if max(map(cell_len, lines)) > width:
        lines = _stacked(table, width, glyphs)
    if table.more_rows:
        lines.append(_left_out(table.more_rows, glyphs))
    return (*_wrap(table.caption, width), *lines)


def _stacked(table: Table, width: int, glyphs: Glyphs) -> list[str]:
    lines: list[str] = []
    for row in table.rows:
        lines.append(f"{row.cells[0]}{'  ' + glyphs.differs if row.differs else ''}")
        for name, cell in zip(table.head[1:], row.cells[1:], strict=True):
            lines += [f"  {line}" for line in _wrap(f"{name}: {cell}", width - 2)]
    return lines


# --- windows of numbers ---


def numbers_block(numbers: Numbers, width: int, glyphs: Glyphs) -> Block:
    """A window of numbers; the worst one stands in brackets. Columns far from it go first."""
    low, high = 0, len(numbers.columns)
    worst = numbers.marked[1]
    while True:
        lines = _number_lines(numbers, low, high, glyphs)
        if max(map(cell_len, lines)) <= width or high - low == 1:
            return Block((numbers.title,), tuple(lines))
        low, high = (low + 1, high) if worst - low > high - 1 - worst else (low, high - 1)


def _number_lines(numbers: Numbers, low: int, high: int, glyphs: Glyphs) -> list[str]:
    table = [["", *(f"{column} " for column in numbers.columns[low:high])]]
    for r, (label, values) in enumerate(numbers.rows):
        cells = [f"[{v}]" if (r, c) == numbers.marked else f"{v} " for c, v in enumerate(values)]
        table.append([label, *cells[low:high]])
    columns = range(len(table[0]))
    wide = [max(cell_len(line[n]) for line in table) for n in columns]
    cut_left, cut_right = low > 0, high < len(numbers.columns)
    return [_number_line(line, wide, cut_left, cut_right, glyphs) for line in table]


def _number_line(line: list[str], wide: list[int], cut_left: bool, cut_right: bool, glyphs: Glyphs) -> str:
    label = set_cell_size(line[0], wide[0])
    cells = (" " * (w - cell_len(c)) + c for c, w in zip(line[1:], wide[1:], strict=True))
    before = f" {glyphs.dots}" if cut_left else ""
    after = f" {glyphs.dots}" if cut_right else ""
    return f"{label}{before}  {' '.join(cells)}{after}".rstrip()
