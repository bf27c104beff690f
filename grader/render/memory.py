"""Where the elements of a tensor lie in memory, worked out from shape, stride and offset alone.

Answers three questions for a picture: how to cut memory into rows (one a token where that is possible), which
slice of an axis owns an address, and in how many pieces a slice lies. Pure arithmetic; nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from math import prod

from grader.report import Layout

HEAD_AXES = ("H", "K")
TOKEN_AXES = frozenset({"B", "S", "Sq", "Sk", "T", "Smax"})
STRIP = 16
_ROWS_AT_MOST = 4096


@dataclass(frozen=True)
class Axis:
    """One axis that spans memory: more than one element, stride above 0."""

    name: str
    size: int
    stride: int

    @property
    def span(self) -> int:
        """Elements from the first to the last step of this axis."""
        return (self.size - 1) * self.stride


@dataclass(frozen=True)
class MemoryRow:
    """One row of memory: its first address and its label."""

    start: int
    label: str


@dataclass(frozen=True)
class Grid:
    """Memory cut into rows of `width` elements, in groups of `group` elements labelled `labels`."""

    rows: tuple[MemoryRow, ...]
    width: int
    group: int
    labels: tuple[str, ...]
    by_token: bool


@dataclass(frozen=True)
class Pieces:
    """How one slice lies: `count` pieces of `length` elements, `step` apart (None when uneven).

    `spacing` is the distance between neighbours within a piece: above 1 where every n-th element is taken.
    """

    count: int
    length: int
    step: int | None
    spacing: int


def elements(layout: Layout) -> int:
    """How many elements the tensor has."""
    return prod(int(size) for size in layout.shape)


def spanning(layout: Layout, *, without: frozenset[str] = frozenset()) -> tuple[Axis, ...]:
    """The axes that span memory, but for those named."""
    named = zip(layout.axes, layout.shape, layout.stride, strict=True)
    return tuple(
        Axis(n, size, stride) for n, size, stride in named if size > 1 and stride > 0 and n not in without
    )


def focus_axis(layout: Layout) -> str | None:
    """The axis whose first slice is highlighted: heads, else the first axis but the batch, else any."""
    for name in HEAD_AXES:
        if name in layout.axes:
            return name
    wide = [name for name, size in zip(layout.axes, layout.shape, strict=True) if size > 1]
    return next((name for name in wide if name != "B"), wide[0] if wide else None)


def slice_name(layout: Layout, axis: str, index: int = 0) -> str:
    """What a slice is called: "head 0", "K/V head 0", "group 0", or "S 0"."""
    if axis == "K":
        return f"group {index}" if "G" in layout.axes else f"K/V head {index}"
    return f"head {index}" if axis == "H" else f"{axis} {index}"


def owner(layout: Layout, address: int, axis: str) -> int | None:
    """The index along `axis` whose slice holds this address: the smallest of several, None if none does."""
    if elements(layout) == 0:
        return None
    axes = sorted(spanning(layout), key=lambda a: a.stride, reverse=True)
    found = _indices(tuple(axes), address - layout.offset, axis)
    return min(found, default=None)


def _indices(axes: tuple[Axis, ...], rest: int, wanted: str) -> Iterator[int]:
    """Indices along `wanted` of every way to reach `rest` with these axes, strides falling."""
    if not axes:
        if rest == 0:
            yield 0
        return
    first, inner = axes[0], axes[1:]
    reach = sum(axis.span for axis in inner)
    low = max(0, -(-(rest - reach) // first.stride))
    high = min(first.size - 1, rest // first.stride)
    for index in range(low, high + 1):
        for below in _indices(inner, rest - index * first.stride, wanted):
            yield index if first.name == wanted else below


def pieces(layout: Layout, axis: str) -> Pieces:
    """How the first slice along `axis` lies, looking at one batch."""
    axes = sorted(spanning(layout, without=frozenset({axis, "B"})), key=lambda a: a.stride)
    spacing = axes[0].stride if axes and axes[0].name == layout.axes[-1] else 1
    length = 1
    outer: list[Axis] = []
    for each in axes:
        if not outer and each.stride == length * spacing:
            length *= each.size
        else:
            outer.append(each)
    count = prod(each.size for each in outer)
    return Pieces(count, length, outer[0].stride if len(outer) == 1 else None, spacing if length > 1 else 1)


def token_grid(layout: Layout, name: str, axis: str | None) -> Grid:
    """Memory with one row a token where the layout allows it, else a strip of rows by address."""
    outer = tuple(a for a in spanning(layout) if a.name in TOKEN_AXES)
    inner = tuple(a for a in spanning(layout) if a.name not in TOKEN_AXES)
    width = sum(a.span for a in inner) + 1
    pitch = min((a.stride for a in outer), default=width)
    if axis in TOKEN_AXES or width > pitch or any(a.stride % pitch for a in outer):
        return strip_grid(layout, name, _strip_width(layout))
    group = _head_width(inner, axis, width)
    return Grid(_token_rows(layout, outer, name), width, group, _labels(axis, width, group), by_token=True)


def strip_grid(layout: Layout, name: str, width: int, group: int = 0) -> Grid:
    """Memory from the layout's first address to its last, in rows of `width`, labelled by address."""
    last = layout.offset + sum(a.span for a in spanning(layout))
    starts = range(layout.offset, last + 1, width)
    rows = tuple(MemoryRow(start, f"{name}[{start}]") for start in starts[:_ROWS_AT_MOST])
    group = group or min(width, 4)
    return Grid(rows, width, group, ("",) * -(-width // group), by_token=False)


def _token_rows(layout: Layout, outer: tuple[Axis, ...], name: str) -> tuple[MemoryRow, ...]:
    """The rows of every token, in the order of memory. Labels index the batch and sequence axes."""
    slowest_first = sorted(outer, key=lambda a: a.stride, reverse=True)
    named = [axis for axis in layout.axes if axis in TOKEN_AXES]
    rows = []
    for steps in islice(product(*(range(a.size) for a in slowest_first)), _ROWS_AT_MOST):
        at = {a.name: step for a, step in zip(slowest_first, steps, strict=True)}
        start = layout.offset + sum(a.stride * at[a.name] for a in slowest_first)
        label = ",".join(str(at.get(axis, 0)) for axis in named)
        rows.append(MemoryRow(start, f"{name}[{label}]" if named else name))
    return tuple(rows)


def _head_width(inner: tuple[Axis, ...], axis: str | None, width: int) -> int:
    """Elements from one head's piece to the next within a row; a plain group where heads interleave."""
    heads = next((a for a in inner if a.name == axis), None)
    if heads is None:
        return width if axis in HEAD_AXES else min(width, 4)
    rest = sum(a.span for a in inner if a.name != axis and a.stride < heads.stride) + 1
    outside = [a for a in inner if a.stride > heads.stride]
    return heads.stride if rest <= heads.stride and not outside else min(width, 4)


def _labels(axis: str | None, width: int, group: int) -> tuple[str, ...]:
    count = -(-width // group)
    letter = {"H": "h", "K": "k"}.get(axis or "", "")
    return tuple(f"{letter}{n}" if letter else "" for n in range(count))


def _strip_width(layout: Layout) -> int:
    """A row for a strip: the fastest axes together, when they nest and are neither tiny nor huge."""
    width = 1
    for axis in sorted(spanning(layout), key=lambda a: a.stride):
        if width >= 4 or axis.stride < width:
            break
        width = axis.span + width
    return width if 4 <= width <= 4 * STRIP else STRIP
