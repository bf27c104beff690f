"""The terminal report: it fits its width, links its places, hangs nothing on colour, names the fault."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from samples import SAMPLES, all_passed, copied, grader_error, hostile, report

from grader.render.terminal import render_terminal
from grader.report import CheckResult, OperationNote, Place, Status

PLACE = re.compile(r"\S+:\d+:\d+$")


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("width", [20, 33, 40, 57, 80, 120, 200])
def test_only_places_are_wider_than_the_width(name: str, ascii: bool, width: int) -> None:
    text = render_terminal(SAMPLES[name](), width=width, color=False, ascii=ascii, attempt=12)
    wide = [line for line in text.splitlines() if cell_len(line) > width]
    assert all(PLACE.search(line) for line in wide)


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_hangs_on_colour(name: str) -> None:
    colored = render_terminal(SAMPLES[name](), width=80, color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render_terminal(SAMPLES[name](), width=80, color=False)


@pytest.mark.parametrize("name", SAMPLES)
def test_ascii_is_ascii(name: str) -> None:
    assert render_terminal(SAMPLES[name](), width=80, color=False, ascii=True).isascii()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_last_line_is_the_next_step(name: str) -> None:
    text = render_terminal(SAMPLES[name](), width=200, color=False, next_step="run `mhaquiz next`")
    assert text.endswith("\n\nNext: run `mhaquiz next`\n")


def test_plain_has_no_colour_and_no_box_characters() -> None:
    text = render_terminal(copied(), width=80, color=True, plain=True)
    assert "\x1b" not in text
    assert not re.search("[\u2500-\u257f]", text)


def test_a_place_has_nothing_glued_to_it_and_is_never_broken() -> None:
    far = replace(copied(), file="a/very/long/folder/with/many/parts/split_heads.py")
    assert "\n  a/very/long/folder/with/many/parts/split_heads.py:6:9\n" in render_terminal(
        far, width=40, color=False
    )


def test_hostile_text_reaches_no_terminal() -> None:
    text = render_terminal(hostile(), width=80, color=True)
    assert set(re.findall(r"\x1b(?:\[[0-9;]*m)?", text)) <= set(re.findall(r"\x1b\[[0-9;]*m", text))
    assert "\u202e" not in text
    assert "\x07" not in text
    assert "[bold]x[/bold]" in text
    assert "evil.example" not in text


def test_a_pass_says_what_was_checked() -> None:
    text = render_terminal(all_passed(), width=80, color=False)
    assert "Passed: all 10 checks, 3 of 3 visible cases, 2 of 2 hidden cases.\n" in text
    assert "  Inputs drawn afresh: seed 8f3a21c4, torch 2.13.0, sandbox bubblewrap.\n" in text


def test_a_skipped_check_names_what_it_waits_for() -> None:
    assert "– allocation (after no_copy)" in render_terminal(copied(), width=80, color=False)


def test_a_picture_shared_by_two_checks_is_drawn_once() -> None:
    text = render_terminal(copied(), width=80, color=False)
    assert text.count("Strides, in elements") == 1
    assert "  The picture is the one under no_copy.\n" in text


def test_the_graders_fault_is_said_and_costs_nothing() -> None:
    text = render_terminal(grader_error(), width=120, color=False)
    assert "This check broke down: the grader's own fault, not your code. It costs no attempt." in text
    assert "Fault: the grader's own, not your code; no attempt was counted" in text
    assert "Not graded: no judgement was made about your code." in text


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("usage", "the command as typed"),
        ("submission", "the submitted file"),
        ("problem", "the problem file, not your code; no attempt was counted"),
        ("environment", "this machine's setup, not your code; no attempt was counted"),
        ("another", "another"),
    ],
)
def test_every_fault_has_its_words(fault: str, words: str) -> None:
    text = render_terminal(report(error={"what": "x", "fault": fault}), width=120, color=False)
    assert f"  Fault: {words}\n" in text


@pytest.mark.parametrize(
    ("kind", "count", "words"),
    [
        ("explicit_copy", 320, "copied 320 bytes"),
        ("reshape_copy", 1536, "copied 1.5 KiB"),
        ("internal_copy", 3 * 1024**2, "copied 3 MiB inside the operation"),
        ("cast", 1, "converted to another precision, 1 byte new"),
        ("cast", 0, "cast"),
        ("other_kind", 5 * 1024**4, "other kind, 5 TiB new"),
    ],
)
def test_the_note_beside_the_carets_says_what_the_operation_did(kind: str, count: int, words: str) -> None:
    place = Place(6, 9, 6, 23)
    check = CheckResult("no_copy", Status.FAILED, message="copied", place=place)
    noted = report(
        checks=(check,), operations=(OperationNote("aten.clone", "contiguous", kind, count, place),)
    )
    assert f"^^^^^^^^^^^^^^ {words}\n" in render_terminal(noted, width=100, color=False)
