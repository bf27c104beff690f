"""Colour, width, encodings and strict JSON."""

from __future__ import annotations

import io
import json

import pytest

from grader.cli.common import App, json_text, takes_unicode, wants_color, width_of
from tests.cli.conftest import Process, Run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "plain", "terminal", "pipe"),
    [
        ({}, False, True, False),
        ({}, True, False, False),
        ({"NO_COLOR": "1"}, False, False, False),
        ({"NO_COLOR": ""}, False, True, False),
        ({"FORCE_COLOR": "1"}, False, True, True),
        ({"FORCE_COLOR": "0"}, False, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True, True),
        ({"FORCE_COLOR": "1"}, True, False, False),
        ({"TERM": "dumb"}, False, False, False),
    ],
)
def test_when_there_is_colour(environ: dict[str, str], plain: bool, terminal: bool, pipe: bool) -> None:
    assert wants_color(Terminal(), environ, plain=plain) is terminal
    assert wants_color(io.StringIO(), environ, plain=plain) is pipe


@pytest.mark.parametrize(
    ("columns", "width"), [("120", 120), ("", 80), ("0", 80), ("-5", 80), ("wide", 80), ("5", 30)]
)
def test_the_width(columns: str, width: int) -> None:
    assert width_of(io.StringIO(), {"COLUMNS": columns}) == width


def test_a_dumb_terminal_is_plain() -> None:
    assert App(environ={"TERM": "dumb"}).look(io.StringIO()).plain
    assert not App(environ={"TERM": "xterm"}).look(io.StringIO()).plain


@pytest.mark.parametrize(("encoding", "takes"), [("utf-8", True), ("ascii", False), ("latin-1", False)])
def test_what_an_encoding_takes(encoding: str, takes: bool) -> None:
    assert takes_unicode(io.TextIOWrapper(io.BytesIO(), encoding=encoding)) is takes


def test_json_is_strict_and_ascii() -> None:
    text = json_text({"nan": float("nan"), "far": [float("-inf"), 1.5], "é": ("a",)})
    assert text.isascii()
    assert json.loads(text) == {"nan": "nan", "far": ["-inf", 1.5], "é": ["a"]}


def test_plain_and_packs_are_taken_before_and_after_the_command(run: Run, pack: object) -> None:
    before = run("--plain", "--problems", str(pack), "list", "mine", FORCE_COLOR="1")
    after = run("list", "mine", "--plain", "--problems", str(pack), FORCE_COLOR="1")
    assert before.exit_code == after.exit_code == 0
    assert before.stdout == after.stdout
    assert "pair-up" in before.stdout
    assert "\x1b" not in before.stdout


def test_forced_colour_reaches_a_pipe_and_no_color_stops_it(process: Process) -> None:
    assert "\x1b[" in process("list", FORCE_COLOR="1").stdout
    assert "\x1b[" not in process("list").stdout
    assert "\x1b[" not in process("list", FORCE_COLOR="1", NO_COLOR="1").stdout


def test_a_pack_that_is_not_there(run: Run) -> None:
    result = run("list", "--problems", "nowhere")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: there is no folder `nowhere`\n  where: --problems\n")
