"""What a drawing consists of, before anyone draws it: cells, rows, tables and lines as frozen dataclasses.

A `Scene` is made by `pictures.py` and drawn by `text_picture.py` (terminal) and `svg.py` (pages). It holds no
colour, no pixel and no terminal width; every drawing carries a sentence that says the same in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """What a cell means; drawers give each tone a mark of its own, never a colour alone."""

    FOCUS = "focus"
    PART = "part"
    OTHER = "other"
    OUTSIDE = "outside"
    OPEN = "open"
    CLOSED = "closed"
    WRONGLY_OPEN = "wrongly_open"
    WRONGLY_CLOSED = "wrongly_closed"


@dataclass(frozen=True)
class Group:
    """Cells that belong together (one head's piece of a row) under one label."""

    label: str
    cells: tuple[Tone, ...]


@dataclass(frozen=True)
class Row:
    """One row of a drawing: a token's memory, a query's mask. `skipped` rows before it are left out."""

    label: str
    groups: tuple[Group, ...]
    skipped: int = 0


@dataclass(frozen=True)
class Drawing:
    """A grid of cells. `more_rows` and `more_groups` count what was left out at the bottom and on the right.

    `pieces` tells that a cell stands for many elements, so that a group may be drawn as one piece.
    `legend` names each tone that occurs; `alt` is the picture in one sentence.
    """

    title: str
    rows: tuple[Row, ...]
    more_rows: int
    more_groups: int
    legend: tuple[tuple[Tone, str], ...]
    alt: str
    pieces: bool = False


@dataclass(frozen=True)
class TableRow:
    """One line of a table; `differs` puts a word and a mark beside it."""

    cells: tuple[str, ...]
    differs: bool = False


@dataclass(frozen=True)
class Table:
    """A small table; `head` names the columns and the first column names the rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[TableRow, ...]
    more_rows: int = 0


@dataclass(frozen=True)
class Link:
    """A line of a fan-out: the left one reads the right one."""

    left: int
    right: int
    differs: bool = False


@dataclass(frozen=True)
class Links:
    """Which query head (left) reads which K/V head (right)."""

    title: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    links: tuple[Link, ...]
    alt: str


@dataclass(frozen=True)
class Numbers:
    """A window of numbers around the worst one; `marked` is its (row, column) in the window."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    marked: tuple[int, int]
    alt: str


@dataclass(frozen=True)
class Scene:
    """Everything drawn for one picture, in reading order: tables, then drawings, lines and numbers."""

    tables: tuple[Table, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    links: tuple[Links, ...] = ()
    numbers: tuple[Numbers, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self.tables or self.drawings or self.links or self.numbers)
