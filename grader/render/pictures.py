"""From a report's `Picture` to a `Scene`: which drawing fits, for each kind. Pure; draws nothing itself.

The data each kind holds (all plain JSON):

    layout   Picture.asked and Picture.yours
    moves    {"rows": [{"at": "out[0, 1, 0]", "holds": "head 1 of token 0", "expected": "head 0 of token 1"}]}
    mask     {"asked": [[bool]], "yours": [[bool]], "rows": "query", "columns": "key"}
    fan_out  {"asked": [0, 0, 1, 1], "yours": [0, 1, 0, 1]}: entry h is the K/V head that query head h reads

A check's `data` may hold a window of numbers around the worst one, both matrices of the same size:

    window   {"expected": [[...]], "got": [[...]], "origin": [leading indices, row, column], "marked": [r, c]}

where `origin` is the index of the window's first number in the tensor and `marked` the worst of the window.
Data of another form draws nothing: a picture is never worth losing a report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grader.render.layout_picture import layout_scene
from grader.render.scene import Drawing, Group, Link, Links, Numbers, Row, Scene, Table, TableRow, Tone
from grader.report import CheckResult, Picture

MOVES_AT_MOST = 6
MASK_AT_MOST = 12
HEADS_AT_MOST = 16
WINDOW_AT_MOST = 8


def check_scene(check: CheckResult) -> Scene:
    """All there is to draw for one check: its picture and its window of numbers."""
    drawn = picture_scene(check.picture) if check.picture is not None else Scene()
    window = check.data.get("window")
    numbers = window_numbers(window) if isinstance(window, Mapping) else ()
    return Scene(drawn.tables, drawn.drawings, drawn.links, numbers)


def picture_scene(picture: Picture) -> Scene:
    """The scene of one picture; an empty one when the kind is unknown or its data does not fit."""
    if picture.kind == "layout":
        return layout_scene(picture.asked, picture.yours)
    draw = _KINDS.get(picture.kind)
    try:
        return draw(picture.data) if draw is not None else Scene()
    except (KeyError, TypeError, ValueError, IndexError):
        return Scene()


def _moves(data: Mapping[str, Any]) -> Scene:
    every = data["rows"]
    rows = tuple(
        TableRow(
            (str(row["at"]), str(row["expected"]), str(row["holds"])), differs=row["holds"] != row["expected"]
        )
        for row in every[:MOVES_AT_MOST]
    )
    head = ("element", "should hold", "holds")
    return Scene(tables=(Table("Where the elements came from", head, rows, len(every) - len(rows)),))


def _mask(data: Mapping[str, Any]) -> Scene:
    asked, yours = data["asked"], data["yours"]
    rows, columns = str(data.get("rows", "row")), str(data.get("columns", "column"))
    wrong = [
        (r, c)
        for r, row in enumerate(asked)
        for c, open_ in enumerate(row)
        if bool(yours[r][c]) is not bool(open_)
    ]
    top, left = (
        (_window_start(at, size) for at, size in zip(wrong[0], _size(asked), strict=True))
        if wrong
        else (0, 0)
    )
    total = len(asked) * len(asked[0])
    sides = (
        ("asked", asked, asked, f"As asked, {_opened(asked)} of {total} {rows}-{columns} pairs are visible."),
        ("yours", asked, yours, f"Yours has {_opened(yours)} visible; {len(wrong)} of {total} pairs differ."),
    )
    return Scene(drawings=tuple(_mask_drawing(*side, rows, columns, top, left) for side in sides))


def _size(matrix: Sequence[Sequence[Any]]) -> tuple[int, int]:
    return len(matrix), len(matrix[0])


def _window_start(at: int, size: int) -> int:
    """Where a window of the mask starts so that it holds the first difference: 0 whenever that fits."""
    return 0 if at < MASK_AT_MOST else min(at - MASK_AT_MOST // 2, size - MASK_AT_MOST)


def _opened(mask: Sequence[Sequence[Any]]) -> int:
    return sum(bool(cell) for row in mask for cell in row)


def _mask_drawing(
    title: str,
    asked: Sequence[Sequence[Any]],
    shown: Sequence[Sequence[Any]],
    alt: str,
    rows: str,
    columns: str,
    top: int,
    left: int,
) -> Drawing:
    high, wide = _size(asked)
    below, right = min(high, top + MASK_AT_MOST), min(wide, left + MASK_AT_MOST)
    drawn = tuple(
        Row(
            f"{rows} {r}",
            tuple(Group(str(c), (_mask_tone(asked[r][c], shown[r][c]),)) for c in range(left, right)),
        )
        for r in range(top, below)
    )
    return Drawing(
        title=f"{title}: {rows} down, {columns} across",
        rows=drawn,
        more_rows=high - below,
        more_groups=wide - right,
        legend=_mask_legend(drawn),
        alt=alt,
    )


def _mask_tone(asked: Any, shown: Any) -> Tone:
    if bool(asked) is bool(shown):
        return Tone.OPEN if shown else Tone.CLOSED
    return Tone.WRONGLY_OPEN if shown else Tone.WRONGLY_CLOSED


def _mask_legend(rows: tuple[Row, ...]) -> tuple[tuple[Tone, str], ...]:
    words = {
        Tone.OPEN: "visible",
        Tone.CLOSED: "hidden",
        Tone.WRONGLY_OPEN: "visible, should be hidden",
        Tone.WRONGLY_CLOSED: "hidden, should be visible",
    }
    used = {cell for row in rows for group in row.groups for cell in group.cells}
    return tuple((tone, word) for tone, word in words.items() if tone in used)


def _fan_out(data: Mapping[str, Any]) -> Scene:
    asked, yours = [int(n) for n in data["asked"]], [int(n) for n in data["yours"]]
    pairs = list(zip(asked, yours, strict=True))
    rows = tuple(
        TableRow((str(h), str(a), str(y)), differs=a != y) for h, (a, y) in enumerate(pairs[:HEADS_AT_MOST])
    )
    table = Table(
        "Which K/V head each query head reads", ("query head", "asked", "yours"), rows, len(pairs) - len(rows)
    )
    heads = 1 + max((*asked, *yours))
    if heads > HEADS_AT_MOST:
        return Scene(tables=(table,))
    wrong = sum(a != y for a, y in pairs)
    sides = (
        _links("asked", asked, asked, heads, f"As asked, {_groups(asked)}."),
        _links(
            "yours",
            asked,
            yours,
            heads,
            f"Yours: {_groups(yours)}; {wrong} of {len(pairs)} query heads differ.",
        ),
    )
    return Scene(tables=(table,), links=sides)


def _links(title: str, asked: list[int], shown: list[int], heads: int, alt: str) -> Links:
    count = min(len(shown), HEADS_AT_MOST)
    return Links(
        title=title,
        left=tuple(f"q{h}" for h in range(count)),
        right=tuple(f"kv{k}" for k in range(heads)),
        links=tuple(Link(h, shown[h], shown[h] != asked[h]) for h in range(count)),
        alt=alt,
    )


def _groups(reads: list[int]) -> str:
    """Who reads each K/V head: "K/V head 0 serves query heads 0, 1; ..."."""
    served: dict[int, list[str]] = {}
    for head, target in enumerate(reads[:HEADS_AT_MOST]):
        served.setdefault(target, []).append(str(head))
    return "; ".join(
        f"K/V head {target} serves query {'heads' if len(heads) > 1 else 'head'} {', '.join(heads)}"
        for target, heads in sorted(served.items())
    )


_KINDS: dict[str, Callable[[Mapping[str, Any]], Scene]] = {
    "moves": _moves,
    "mask": _mask,
    "fan_out": _fan_out,
}


def window_numbers(window: Mapping[str, Any]) -> tuple[Numbers, ...]:
    """The expected numbers and those that came, around the worst one; empty when the data does not fit."""
    try:
        expected, got = window["expected"], window["got"]
        marked = (int(window["marked"][0]), int(window["marked"][1]))
        origin = [int(n) for n in window.get("origin", [0, 0])]
        sides = [
            _numbers(title, side, origin, marked) for title, side in (("expected", expected), ("yours", got))
        ]
    except (KeyError, TypeError, ValueError, IndexError):
        return ()
    return tuple(sides)


def _numbers(
    title: str, matrix: Sequence[Sequence[Any]], origin: list[int], marked: tuple[int, int]
) -> Numbers:
    lead, top, left = origin[:-2], ([0, 0, *origin])[-2], ([0, 0, *origin])[-1]
    rows = tuple(
        (_index([*lead, top + r]), tuple(number(value) for value in row[:WINDOW_AT_MOST]))
        for r, row in enumerate(matrix[:WINDOW_AT_MOST])
    )
    worst = rows[marked[0]][1][marked[1]]
    at = _index([*lead, top + marked[0], left + marked[1]])
    columns = tuple(str(left + c) for c in range(len(rows[0][1])))
    return Numbers(title, columns, rows, marked, f"{title.capitalize()} at {at}: {worst}.")


def _index(indices: Sequence[int]) -> str:
    return f"[{', '.join(map(str, indices))}]"


def number(value: Any) -> str:
    """A number in at most five significant digits; whole numbers as they are."""
    if isinstance(value, bool | int | str):
        return str(value)
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e6 else f"{float(value):.5g}"
