"""Scenes as text: side by side when they fit, below each other when not, never wider than asked."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from samples import SAMPLES

from grader.render.glyphs import ASCII, UNICODE, Glyphs
from grader.render.pictures import check_scene, window_numbers
from grader.render.scene import Scene
from grader.render.text_picture import crop, flow, scene_lines


def scenes() -> list[Scene]:
    return [check_scene(check) for make in SAMPLES.values() for check in make().checks]


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("width", [12, 18, 25, 38, 78, 118])
def test_no_line_is_wider_than_asked(width: int, glyphs: Glyphs) -> None:
    for scene in scenes():
        for line in scene_lines(scene, width=width, glyphs=glyphs):
            assert cell_len(line) <= width
            assert line == line.rstrip()


def test_the_sentences_are_whole_at_every_width() -> None:
    for scene in scenes():
        for width in (25, 38, 78):
            text = " ".join(" ".join(scene_lines(scene, width=width, glyphs=UNICODE)).split())
            assert all(part.alt in text for part in (*scene.drawings, *scene.links, *scene.numbers))


def test_the_worst_number_stays_in_sight_when_columns_go() -> None:
    row = [float(n) for n in range(8)]
    window = {"expected": [row], "got": [row], "origin": [0, 100], "marked": [0, 5]}
    lines = scene_lines(Scene(numbers=window_numbers(window)), width=28, glyphs=UNICODE)
    assert lines[2] == "[0] …    3    4   [5]   6  …"


def test_flow_breaks_between_items_only() -> None:
    assert flow(["one", "two", "three", "a very long item"], 10, "  ") == [
        "one  two",
        "three",
        "a very long item",
    ]


def test_crop_counts_terminal_cells() -> None:
    assert crop("注意注意", 5) == "注意"
    assert crop("abc", 5) == "abc"
