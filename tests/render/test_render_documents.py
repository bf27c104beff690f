"""JSON, GitHub annotations and the concise form: exact words, exact escapes, always whole."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from samples import (
    SAMPLES,
    all_passed,
    broken_problem,
    copied,
    grader_error,
    hostile,
    invalid,
    not_started,
    raised,
)
from samples import report as make_report

from grader.render.concise import render_concise
from grader.render.github import render_github
from grader.render.json import render_json, strict
from grader.report import CheckResult, Place, Status


@pytest.mark.parametrize("name", SAMPLES)
def test_json_is_the_report(name: str) -> None:
    made = SAMPLES[name]()
    document = json.loads(render_json(made), parse_constant=pytest.fail)
    assert document == strict(made.to_json())
    assert list(document) == list(made.to_json())
    assert document["exit_code"] == made.exit_code


def test_json_has_no_number_that_json_lacks() -> None:
    data = json.loads(render_json(hostile()))["checks"][0]["data"]
    assert (data["worst"], data["low"]) == ("inf", "-inf")


def test_json_is_ascii_and_one_document() -> None:
    text = render_json(hostile())
    assert text.isascii()
    assert text.endswith("}\n")


def test_strict_takes_what_checks_put_in() -> None:
    assert strict({1: (float("nan"), {"b", "a"}), "k": Status.PASSED, "s": "\udc80", "p": Place}) == {
        "1": ["nan", ["a", "b"]],
        "k": "passed",
        "s": "?",
        "p": str(Place),
    }


def test_concise_is_a_line_a_failed_check_and_the_verdict() -> None:
    assert render_concise(copied()) == (
        "split_heads.py:6:9: no_copy: the result does not share memory with x\n"
        "split_heads.py: strides: the strides are those of a copy, not of a split\n"
        "split-heads: Not passed: 4 of 7 checks, 3 of 3 visible cases, 1 of 3 hidden cases.\n"
    )


def test_concise_names_the_place_of_an_error() -> None:
    assert render_concise(invalid()) == (
        "split_heads.py:2:24: error: the file is not Python: '(' was never closed\n"
        "split-heads: Cannot be graded: split_heads.py.\n"
    )


def test_concise_of_a_pass_is_the_verdict_alone() -> None:
    assert render_concise(all_passed()) == (
        "split-heads: Passed: all 10 checks, 3 of 3 visible cases, 2 of 2 hidden cases.\n"
    )


def test_concise_keeps_hostile_text_on_its_line() -> None:
    assert render_concise(hostile()).count("\n") == 2


def test_github_notice_on_a_pass() -> None:
    assert render_github(all_passed()) == (
        "::notice file=split_heads.py,title=split-heads::"
        "Passed: all 10 checks, 3 of 3 visible cases, 2 of 2 hidden cases.\n"
    )


def test_github_annotation_carries_the_place_and_the_reason() -> None:
    assert render_github(copied()).splitlines()[0] == (
        "::error file=split_heads.py,line=6,col=9,endColumn=23,title=split-heads%3A no_copy::"
        "the result does not share memory with x%0A"
        "Splitting heads moves nothing: transpose only swaps two strides."
    )


def test_github_annotation_of_several_lines_has_no_columns() -> None:
    check = CheckResult("values", Status.FAILED, message="differs", place=Place(2, 5, 4, 9))
    assert render_github(make_report(checks=(check,))) == (
        "::error file=split_heads.py,line=2,endLine=4,title=split-heads%3A values::differs\n"
    )


def test_github_escapes_every_delimiter() -> None:
    text = render_github(hostile())
    assert text.count("\n") == 1
    assert text.startswith("::error file=a%2Cb%3Ac%0A注意<i>.py,line=2,col=61,endColumn=75,title=")
    assert "%25" in text


def test_github_tells_the_graders_fault_as_a_warning_and_an_error() -> None:
    warning, error = render_github(grader_error()).splitlines()
    assert warning.startswith("::warning file=split_heads.py,title=split-heads%3A strides::")
    assert "Fault: the grader's own, not your code; no attempt was counted" in error


@pytest.mark.parametrize("make", [broken_problem, not_started, invalid, raised])
def test_github_never_stays_silent_on_a_failure(make: object) -> None:
    assert render_github(make()).startswith("::error ")  # type: ignore[operator]


def test_a_report_without_checks_or_cases_has_a_verdict() -> None:
    assert render_concise(replace(make_report(), checks=())) == "split-heads: Not passed: 0 of 0 checks.\n"


def test_no_renderer_imports_torch() -> None:
    names = "terminal concise json github html svg text_picture"
    imports = "; ".join(f"import grader.render.{name}" for name in names.split())
    code = f"import sys; {imports}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
