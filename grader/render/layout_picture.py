"""The memory picture and the stride table: what was asked beside what came, from two `Layout`s."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from grader.render import memory
from grader.render.memory import Grid, MemoryRow
from grader.render.scene import Drawing, Group, Row, Scene, Table, TableRow, Tone
from grader.render.words import size_words
from grader.report import Layout

CELLS_AT_MOST = 400
ROWS_AT_MOST = 6
GROUPS_AT_MOST = 8
CELLS_A_PIECE = 4
_SAMPLES_A_CELL = 16


@dataclass(frozen=True)
class _Side:
    """One half of the picture: a layout, the memory it is drawn on and its words."""

    layout: Layout
    grid: Grid
    title: str
    alt: str


def layout_scene(asked: Layout | None, yours: Layout | None) -> Scene:
    """The stride table, then the memory as asked and as it came."""
    tables = (stride_table(asked, yours),) if asked is not None and yours is not None else ()
    sides = []
    if asked is not None and memory.elements(asked):
        sides.append(_asked_side(asked))
    if yours is not None and memory.elements(yours):
        sides.append(_yours_side(yours, asked))
    return Scene(tables=tables, drawings=tuple(_draw(side) for side in sides))


def stride_table(asked: Layout, yours: Layout) -> Table:
    """Axis by axis: the stride asked for and the one that came. The stride of an axis of size 1 is free."""
    rows = []
    for n, axis in enumerate(asked.axes):
        mine = yours.stride[n] if n < len(yours.stride) else None
        free = asked.shape[n] == 1
        rows.append(
            TableRow(
                (
                    axis,
                    "any (size 1)" if free else str(asked.stride[n]),
                    "none" if mine is None else str(mine),
                ),
                differs=not free and mine != asked.stride[n],
            )
        )
    if asked.shares is not None and asked.shares == yours.shares and asked.offset != yours.offset:
        rows.append(TableRow(("offset", str(asked.offset), str(yours.offset)), differs=True))
    return Table("Strides, in elements", ("axis", "asked", "yours"), tuple(rows))


def _asked_side(layout: Layout) -> _Side:
    axis = memory.focus_axis(layout)
    grid = memory.token_grid(layout, layout.shares or "out", axis)
    words = _lies(layout, grid, axis)
    title = f"{_slice(layout, axis)} as asked: {words.short}"
    return _Side(layout, grid, title, f"As asked, {_slice(layout, axis)} {words.long}.")


def _yours_side(layout: Layout, asked: Layout | None) -> _Side:
    axis = memory.focus_axis(layout)
    if layout.shares is None:
        grid = _own_buffer(layout, asked, "new")
        words = _lies(layout, grid, axis)
        alt = f"Yours is a new buffer of {_bytes(layout)}, in which {_slice(layout, axis)} {words.long}."
        return _Side(layout, grid, "yours: a new buffer", alt)
    same = asked is not None and asked.shares == layout.shares
    if same and asked is not None:
        grid = memory.token_grid(asked, layout.shares, memory.focus_axis(asked))
    else:
        grid = _own_buffer(layout, asked, layout.shares)
    words = _lies(layout, grid, axis)
    where = "" if same else f"a view of {layout.shares}, "
    title = f"yours: {where}{words.short}"
    return _Side(layout, grid, title, f"Yours: {where}{_slice(layout, axis)} {words.long}.")


def _own_buffer(layout: Layout, asked: Layout | None, name: str) -> Grid:
    """A strip as wide as a token of the picture beside it, so that the two compare."""
    model = asked or layout
    sizes = dict(zip(model.axes, model.shape, strict=True))
    width = prod(size for axis, size in sizes.items() if axis not in memory.TOKEN_AXES)
    heads = next((sizes[axis] for axis in memory.HEAD_AXES if axis in sizes), 0)
    if width < 4:
        return memory.strip_grid(layout, name, memory.STRIP)
    return memory.strip_grid(layout, name, width, width // heads if heads else 0)


@dataclass(frozen=True)
class _Words:
    short: str
    long: str


def _lies(layout: Layout, grid: Grid, axis: str | None) -> _Words:
    """How the highlighted slice lies, in a few words and in a sentence's end."""
    lies = memory.pieces(layout, axis or "")
    each = _count(lies.length, "element") + (f" (each {lies.spacing} apart)" if lies.spacing > 1 else "")
    if lies.count == 1:
        if lies.spacing > 1:
            return _Words(f"{lies.length} elements, each {lies.spacing} apart", f"is {each}, not one run")
        along = " along the rows" if grid.by_token and lies.length > grid.width else ""
        return _Words(f"one run{along}", f"is one run of {each}{along}")
    apart = f", {lies.step} apart" if lies.step is not None else ""
    long = f"is {lies.count} pieces of {each}{apart}"
    if grid.by_token and _one_piece_a_row(layout, grid, lies):
        return _Words("one piece of every row", f"{long}: a column, one piece of every row")
    return _Words(f"{lies.count} pieces", long)


def _one_piece_a_row(layout: Layout, grid: Grid, lies: memory.Pieces) -> bool:
    """Whether the pieces are one a token: as many as tokens in a batch, a row of the grid apart."""
    sizes = dict(zip(layout.axes, layout.shape, strict=True))
    tokens = prod(size for axis, size in sizes.items() if axis in memory.TOKEN_AXES and axis != "B")
    starts = [row.start for row in grid.rows]
    apart = {b - a for a, b in pairwise(starts)}
    return (
        lies.count == tokens and lies.step is not None and (lies.step in apart or lies.length <= grid.group)
    )


def _slice(layout: Layout, axis: str | None) -> str:
    return memory.slice_name(layout, axis) if axis is not None else "the result"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _bytes(layout: Layout) -> str:
    return size_words(memory.elements(layout) * layout.itemsize)


def _draw(side: _Side) -> Drawing:
    grid, layout = side.grid, side.layout
    axis = memory.focus_axis(layout)
    shown = _shown_rows(layout, grid, axis)
    whole = len(shown) * grid.width <= CELLS_AT_MOST and grid.group <= 16
    groups = min(len(grid.labels), GROUPS_AT_MOST)
    rows = []
    for before, n in zip((-1, *shown), shown, strict=False):
        cells = _groups(layout, axis, grid, grid.rows[n], groups, whole)
        rows.append(Row(grid.rows[n].label, cells, skipped=n - before - 1))
    return Drawing(
        title=side.title,
        rows=tuple(rows),
        more_rows=len(grid.rows) - shown[-1] - 1,
        more_groups=len(grid.labels) - groups,
        legend=_legend(tuple(rows), layout, axis),
        alt=side.alt,
        pieces=not whole,
    )


def _shown_rows(layout: Layout, grid: Grid, axis: str | None) -> tuple[int, ...]:
    """The first rows; when one run fills them all, half of them and the rows where it ends."""
    if len(grid.rows) <= ROWS_AT_MOST + 1:
        return tuple(range(len(grid.rows)))
    lies = memory.pieces(layout, axis or "")
    end = layout.offset + lies.length - 1
    last = next((n for n, row in enumerate(grid.rows) if row.start <= end < row.start + grid.width), 0)
    half = ROWS_AT_MOST // 2
    if lies.count > 1 or last < ROWS_AT_MOST or last + half > len(grid.rows):
        return tuple(range(ROWS_AT_MOST))
    return (*range(half), *range(last, last + half))


def _groups(
    layout: Layout, axis: str | None, grid: Grid, row: MemoryRow, groups: int, whole: bool
) -> tuple[Group, ...]:
    drawn = []
    for n in range(groups):
        start = row.start + n * grid.group
        end = min(start + grid.group, row.start + grid.width)
        step = 1 if whole else -(-(end - start) // CELLS_A_PIECE)
        cells = tuple(_tone(layout, axis, at, min(at + step, end)) for at in range(start, end, step))
        drawn.append(Group(grid.labels[n], cells))
    return tuple(drawn)


def _tone(layout: Layout, axis: str | None, start: int, stop: int) -> Tone:
    """The tone of a cell that stands for the elements from `start` up to `stop`; long cells are sampled."""
    step = max(1, (stop - start) // _SAMPLES_A_CELL)
    tones = {_element(layout, axis, address) for address in (*range(start, stop, step), stop - 1)}
    if Tone.FOCUS in tones:
        return Tone.FOCUS if len(tones) == 1 else Tone.PART
    return Tone.OTHER if Tone.OTHER in tones else Tone.OUTSIDE


def _element(layout: Layout, axis: str | None, address: int) -> Tone:
    index = memory.owner(layout, address, axis or "")
    if index is None:
        return Tone.OUTSIDE
    return Tone.FOCUS if index == 0 else Tone.OTHER


def _legend(rows: tuple[Row, ...], layout: Layout, axis: str | None) -> tuple[tuple[Tone, str], ...]:
    focus = _slice(layout, axis)
    others = "other heads" if axis == "H" else "the rest"
    words = {
        Tone.FOCUS: focus,
        Tone.PART: f"partly {focus}",
        Tone.OTHER: others,
        Tone.OUTSIDE: "not in the result",
    }
    used = {cell for row in rows for group in row.groups for cell in group.cells}
    return tuple((tone, word) for tone, word in words.items() if tone in used)
