"""From a report's picture to a scene: moves, masks, fan-out, windows of numbers; bad data draws nothing."""

from __future__ import annotations

from typing import Any

import pytest

from grader.render.pictures import check_scene, number, picture_scene, window_numbers
from grader.render.scene import Link, Scene, TableRow, Tone
from grader.report import CheckResult, Picture, Status


def test_moves_name_the_element_what_it_should_hold_and_what_it_holds() -> None:
    row = {"at": "out[0, 1, 0]", "holds": "head 1 of token 0", "expected": "head 0 of token 1"}
    (table,) = picture_scene(Picture("moves", data={"rows": [row] * 8})).tables
    assert table.head == ("element", "should hold", "holds")
    assert table.rows[0] == TableRow(("out[0, 1, 0]", "head 0 of token 1", "head 1 of token 0"), differs=True)
    assert (len(table.rows), table.more_rows) == (6, 2)


def test_a_mask_marks_both_kinds_of_difference() -> None:
    data = {"asked": [[True, False], [True, True]], "yours": [[True, True], [False, True]]}
    asked, yours = picture_scene(Picture("mask", data=data | {"rows": "query", "columns": "key"})).drawings
    assert [[g.cells[0] for g in row.groups] for row in yours.rows] == [
        [Tone.OPEN, Tone.WRONGLY_OPEN],
        [Tone.WRONGLY_CLOSED, Tone.OPEN],
    ]
    assert asked.alt == "As asked, 3 of 4 query-key pairs are visible."
    assert yours.alt == "Yours has 3 visible; 2 of 4 pairs differ."
    assert yours.rows[0].label == "query 0"


def test_a_large_mask_is_shown_around_the_first_difference() -> None:
    asked = [[column <= row for column in range(40)] for row in range(40)]
    yours = [list(row) for row in asked]
    yours[30][20] = False
    drawing = picture_scene(Picture("mask", data={"asked": asked, "yours": yours})).drawings[1]
    assert drawing.rows[0].label == "row 24"
    assert drawing.rows[0].groups[0].label == "14"
    assert (drawing.more_rows, drawing.more_groups) == (4, 14)
    assert drawing.rows[6].groups[6].cells == (Tone.WRONGLY_CLOSED,)


def test_fan_out_is_a_table_and_lines() -> None:
    scene = picture_scene(Picture("fan_out", data={"asked": [0, 0, 1, 1], "yours": [0, 1, 0, 1]}))
    assert scene.tables[0].rows[1] == TableRow(("1", "0", "1"), differs=True)
    asked, yours = scene.links
    assert asked.alt == ("As asked, K/V head 0 serves query heads 0, 1; K/V head 1 serves query heads 2, 3.")
    assert yours.links[1] == Link(1, 1, differs=True)
    assert yours.alt.endswith("2 of 4 query heads differ.")


def test_many_heads_are_a_table_alone() -> None:
    heads = list(range(64))
    scene = picture_scene(Picture("fan_out", data={"asked": heads, "yours": heads}))
    assert scene.links == ()
    assert (len(scene.tables[0].rows), scene.tables[0].more_rows) == (16, 48)


WINDOW = {
    "expected": [[1.0, 2.0], [3.0, 4.0]],
    "got": [[1.0, 2.0], [3.0, 0.25]],
    "origin": [1, 5, 7],
    "marked": [1, 1],
}


def test_a_window_tells_the_place_of_the_worst_element() -> None:
    expected, got = window_numbers(WINDOW)
    assert expected.columns == ("7", "8")
    assert expected.rows[1] == ("[1, 6]", ("3", "4"))
    assert got.alt == "Yours at [1, 6, 8]: 0.25."


def test_a_check_shows_its_picture_and_its_window() -> None:
    moves = Picture("moves", data={"rows": [{"at": "a", "holds": "b", "expected": "c"}]})
    scene = check_scene(CheckResult("values", Status.FAILED, picture=moves, data={"window": WINDOW}))
    assert (len(scene.tables), len(scene.numbers)) == (1, 2)


@pytest.mark.parametrize(
    "picture",
    [
        Picture("unknown"),
        Picture("moves"),
        Picture("moves", data={"rows": "not rows"}),
        Picture("mask", data={"asked": [[True]], "yours": []}),
        Picture("mask", data={"asked": [], "yours": []}),
        Picture("fan_out", data={"asked": [0], "yours": [0, 1]}),
        Picture("fan_out", data={"asked": ["x"], "yours": [0]}),
        Picture("layout"),
    ],
)
def test_data_that_does_not_fit_draws_nothing(picture: Picture) -> None:
    assert picture_scene(picture) == Scene()
    assert not picture_scene(picture)


@pytest.mark.parametrize(
    "window",
    [
        {},
        {"expected": 3},
        WINDOW | {"marked": [5, 5]},
        WINDOW | {"marked": None},
        WINDOW | {"got": []},
        WINDOW | {"expected": [[None]]},
    ],
)
def test_a_window_that_does_not_fit_draws_nothing(window: dict[str, Any]) -> None:
    assert window_numbers(window) == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (True, "True"),
        (3.0, "3"),
        (0.1 + 0.2, "0.3"),
        (1234567.0, "1.2346e+06"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (-0.0, "0"),
        ("nan", "nan"),
    ],
)
def test_numbers_have_at_most_five_digits(value: Any, text: str) -> None:
    assert number(value) == text
