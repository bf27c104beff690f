"""Where elements lie: the closed forms agree with walking the tensor."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.render.layout_picture import layout_scene, stride_table
from grader.render.memory import Pieces, focus_axis, owner, pieces, slice_name, token_grid
from grader.render.scene import TableRow, Tone
from grader.report import Layout

BHSD = ("B", "H", "S", "d")


def layout(
    shape: tuple[int, ...], stride: tuple[int, ...], offset: int = 0, shares: str | None = "x"
) -> Layout:
    return Layout(BHSD, shape, stride, offset, 4, shares)


@given(
    st.tuples(*[st.integers(1, 4)] * 4),
    st.tuples(*[st.integers(0, 30)] * 4),
    st.integers(0, 5),
)
def test_owner_agrees_with_walking_every_element(
    shape: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> None:
    asked = layout(shape, stride, offset)
    owners: dict[int, int] = {}
    for index in product(*map(range, shape)):
        address = offset + sum(i * s for i, s in zip(index, stride, strict=True))
        owners[address] = min(index[1] if stride[1] else 0, owners.get(address, 99))
    for address in range(max(owners) + 3):
        assert owner(asked, address, "H") == owners.get(address)


@pytest.mark.parametrize(
    ("shape", "stride", "lies"),
    [
        ((2, 4, 5, 3), (60, 3, 12, 1), Pieces(5, 3, 12, 1)),
        ((2, 4, 5, 3), (60, 15, 3, 1), Pieces(1, 15, None, 1)),
        ((2, 4, 1, 3), (12, 3, 3, 1), Pieces(1, 3, None, 1)),
        ((1, 1, 5, 3), (15, 15, 3, 1), Pieces(1, 15, None, 1)),
        ((2, 2, 3, 7), (84, 14, 28, 2), Pieces(3, 7, 28, 2)),
        ((2, 3, 5, 1), (15, 1, 3, 1), Pieces(5, 1, 3, 1)),
        ((2, 3, 5, 4), (60, 20, 1, 5), Pieces(1, 20, None, 1)),
    ],
)
def test_pieces(shape: tuple[int, ...], stride: tuple[int, ...], lies: Pieces) -> None:
    assert pieces(layout(shape, stride), "H") == lies


@pytest.mark.parametrize(
    ("axes", "shape", "axis", "name"),
    [
        (BHSD, (2, 4, 5, 3), "H", "head 0"),
        (("B", "K", "S", "d"), (2, 4, 5, 3), "K", "K/V head 0"),
        (("B", "K", "G", "S", "d"), (2, 4, 2, 5, 3), "K", "group 0"),
        (("B", "S", "D"), (2, 5, 12), "S", "S 0"),
        (("B", "S", "D"), (2, 1, 1), "B", "B 0"),
    ],
)
def test_the_axis_in_focus_and_what_its_slice_is_called(
    axes: tuple[str, ...], shape: tuple[int, ...], axis: str, name: str
) -> None:
    drawn = Layout(axes, shape, (1,) * len(shape), 0, 4, None)
    assert focus_axis(drawn) == axis
    assert slice_name(drawn, axis) == name


def test_rows_are_tokens_in_the_order_of_memory() -> None:
    sequence_first = layout((3, 2, 4, 5), (10, 5, 30, 1))
    grid = token_grid(sequence_first, "x", "H")
    assert [row.label for row in grid.rows[:4]] == ["x[0,0]", "x[1,0]", "x[2,0]", "x[0,1]"]
    assert (grid.width, grid.group, grid.labels) == (10, 5, ("h0", "h1"))


@pytest.mark.parametrize(
    ("shape", "stride", "width", "first", "second"),
    [
        ((2, 3, 5, 4), (60, 20, 1, 5), 5, "x[0]", "x[5]"),
        ((1, 2, 2, 2), (8, 4, 1, 2), 4, "x[0]", "x[4]"),
        ((1, 1, 1000, 2), (1, 1, 1, 1000), 16, "x[0]", "x[16]"),
    ],
    ids=["one row a feature", "tiny axes together", "a huge axis in parts"],
)
def test_memory_that_has_no_token_rows_is_a_strip(
    shape: tuple[int, ...], stride: tuple[int, ...], width: int, first: str, second: str
) -> None:
    grid = token_grid(layout(shape, stride), "x", "H")
    assert not grid.by_token
    assert (grid.width, grid.rows[0].label, grid.rows[1].label) == (width, first, second)


def test_owner_of_a_tensor_without_elements_is_nobody() -> None:
    assert owner(layout((2, 0, 5, 3), (1, 1, 1, 1)), 0, "H") is None


def test_interleaved_heads_are_cut_into_plain_groups() -> None:
    grid = token_grid(layout((2, 4, 5, 3), (60, 1, 12, 4)), "x", "H")
    assert (grid.by_token, grid.group) == (True, 4)
    assert rows_of(0, layout((2, 4, 5, 3), (60, 1, 12, 4)), None)[0] == "#... #... #..."


def test_elements_taken_apart_are_not_called_a_run() -> None:
    asked = Layout(("B", "S", "D"), (2, 3, 8), (24, 1, 3), 0, 4, None)
    assert layout_scene(asked, None).drawings[0].title == "S 0 as asked: 8 elements, each 3 apart"


def test_a_copy_of_single_numbers_is_drawn_as_a_strip() -> None:
    asked = layout((1, 1, 40, 1), (40, 1, 1, 1))
    copied = layout((1, 1, 40, 1), (40, 1, 1, 1), shares=None)
    assert layout_scene(asked, copied).drawings[1].rows[1].label == "new[16]"


def rows_of(drawing: int, asked: Layout, yours: Layout | None) -> list[str]:
    marks = {Tone.FOCUS: "#", Tone.PART: "%", Tone.OTHER: ".", Tone.OUTSIDE: "-"}
    rows = layout_scene(asked, yours).drawings[drawing].rows
    return [" ".join("".join(marks[cell] for cell in group.cells) for group in row.groups) for row in rows]


ASKED = layout((1, 4, 5, 3), (60, 3, 12, 1))


def test_head_0_as_asked_is_a_column() -> None:
    assert rows_of(0, ASKED, None) == ["### ... ... ..."] * 5


def test_viewed_straight_is_a_run_along_the_rows() -> None:
    yours = layout((1, 4, 5, 3), (60, 15, 3, 1))
    assert rows_of(1, ASKED, yours) == ["### ### ### ###", "### ... ... ...", *["... ... ... ..."] * 3]


def test_a_slice_of_a_fused_projection_shows_only_its_own_columns() -> None:
    asked = layout((2, 3, 7, 4), (252, 4, 36, 1), offset=12)
    assert rows_of(0, asked, None)[0] == "#### .... ...."


def test_every_other_feature_leaves_gaps() -> None:
    asked = layout((2, 2, 3, 7), (84, 14, 28, 2))
    assert rows_of(0, asked, None)[0] == "#-#-#-#-#-#-#- .-.-.-.-.-.-."


def test_a_copy_is_a_new_buffer_and_says_how_large() -> None:
    drawing = layout_scene(ASKED, layout((1, 4, 5, 3), (60, 15, 3, 1), shares=None)).drawings[1]
    assert drawing.title == "yours: a new buffer"
    assert drawing.alt == "Yours is a new buffer of 240 bytes, in which head 0 is one run of 15 elements."
    assert drawing.rows[0].label == "new[0]"


def test_a_view_of_another_input_is_named() -> None:
    drawing = layout_scene(ASKED, layout((1, 4, 5, 3), (60, 3, 12, 1), shares="y")).drawings[1]
    assert drawing.title == "yours: a view of y, 5 pieces"


def test_large_layouts_are_drawn_in_pieces_with_rows_left_out() -> None:
    scene = layout_scene(layout((2, 8, 128, 64), (65536, 64, 512, 1)), None)
    drawing = scene.drawings[0]
    assert drawing.pieces
    assert [len(group.cells) for group in drawing.rows[0].groups] == [4] * 8
    assert (len(drawing.rows), drawing.more_rows) == (6, 250)
    assert drawing.alt == (
        "As asked, head 0 is 128 pieces of 64 elements, 512 apart: a column, one piece of every row."
    )


def test_a_long_run_shows_where_it_ends() -> None:
    asked = layout((2, 8, 128, 64), (65536, 64, 512, 1))
    copied = layout((2, 8, 128, 64), (65536, 8192, 64, 1), shares=None)
    rows = layout_scene(asked, copied).drawings[1].rows
    assert [(row.label, row.skipped) for row in rows[2:5]] == [
        ("new[1024]", 0),
        ("new[7680]", 12),
        ("new[8192]", 0),
    ]
    assert rows[3].groups[0].cells == (Tone.FOCUS,) * 4
    assert rows[4].groups[0].cells == (Tone.OTHER,) * 4


def test_a_piece_only_partly_taken_has_a_mark_of_its_own() -> None:
    asked = layout((1, 8, 128, 64), (65536, 64, 512, 1))
    every_other = layout((1, 8, 128, 32), (65536, 64, 512, 2))
    cells = layout_scene(asked, every_other).drawings[1].rows[0].groups[0].cells
    assert set(cells) == {Tone.PART}


@pytest.mark.parametrize("shape", [(2, 0, 5, 3), (0, 1, 1, 1)])
def test_a_tensor_without_elements_has_no_drawing(shape: tuple[int, ...]) -> None:
    assert layout_scene(layout(shape, (1, 1, 1, 1)), None).drawings == ()


def test_a_scalar_is_one_element() -> None:
    scalar = Layout((), (), (), 7, 4, None)
    assert layout_scene(scalar, None).drawings[0].alt == "As asked, the result is one run of 1 element."


def test_the_stride_table_marks_what_differs_and_frees_axes_of_size_1() -> None:
    asked = layout((2, 4, 1, 3), (12, 3, 12, 1))
    yours = layout((2, 4, 1, 3), (12, 1, 99, 4), offset=2)
    assert stride_table(asked, yours).rows == (
        TableRow(("B", "12", "12")),
        TableRow(("H", "3", "1"), differs=True),
        TableRow(("S", "any (size 1)", "99")),
        TableRow(("d", "1", "4"), differs=True),
        TableRow(("offset", "0", "2"), differs=True),
    )
