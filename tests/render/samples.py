"""Reports made by hand, one for each thing a renderer must show. Their words stand in for explain's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.report import (
    CaseResult,
    CheckResult,
    Layout,
    NamedMistake,
    OperationNote,
    Outcome,
    Picture,
    Place,
    Report,
    RunSummary,
    Status,
    Verdict,
)

SPLIT_COPIED = """\
import torch


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    q = x.unflatten(-1, (num_heads, x.shape[-1] // num_heads)).transpose(1, 2)
    q = q.contiguous()
    return q
"""

SPLIT_RIGHT = """\
import torch


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    if x.shape[-1] % num_heads:
        raise ValueError("d_model is not divisible by num_heads")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
"""

AXES = ("B", "H", "S", "d")
ALWAYS = ("returns", "shape", "dtype", "values")
PLACE = Place(6, 9, 6, 23)


def passed(*names: str) -> tuple[CheckResult, ...]:
    return tuple(CheckResult(name, Status.PASSED) for name in names)


def case(name: str, visible: bool, ok: bool, **sizes: int) -> CaseResult:
    return CaseResult(name, visible, ok, sizes)


def report(**changes: Any) -> Report:
    base = Report(
        version="0.1.0",
        problem="split-heads",
        title="Split the heads",
        problem_revision="3f1c9a70b2de",
        file="split_heads.py",
        verdict=Verdict.FAILED,
        seed="8f3a21c4",
        device="cpu",
        torch="2.13.0",
        python="3.11.9",
        sandbox="bubblewrap",
        duration_ms=38.2,
        source=SPLIT_COPIED,
    )
    return replace(base, **changes)


CASES = (
    case("a small batch", True, True, B=2, S=5, H=4, d=3),
    case("one head", True, True, B=2, S=3, H=1, d=5),
    case("a slice of a fused projection", True, True, B=2, S=7, H=3, d=4),
    case("one token", False, True, B=3, S=1, H=2, d=5),
    case("sequence-first memory", False, True, B=3, S=4, H=2, d=5),
)


def all_passed() -> Report:
    names = (*ALWAYS, "no_copy", "strides", "allocation", "mutation", "gradient", "raises")
    return report(verdict=Verdict.PASSED, checks=passed(*names), cases=CASES, source=SPLIT_RIGHT)


ASKED = Layout(AXES, (2, 8, 128, 64), (65536, 64, 512, 1), 0, 4, "x")
COPIED = Layout(AXES, (2, 8, 128, 64), (65536, 8192, 64, 1), 0, 4, None)
COPIED_PICTURE = Picture("layout", ASKED, COPIED)

SNIPPET = """\
import torch
from split_heads import split_heads

x = torch.arange(2 * 128 * 512, dtype=torch.float32).reshape(2, 128, 512)
out = split_heads(x, 8)
assert out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
"""


def copied() -> Report:
    """The feedback the design shows: a right split, copied."""
    no_copy = CheckResult(
        "no_copy",
        Status.FAILED,
        code="copied",
        message="the result does not share memory with x",
        why="Splitting heads moves nothing: transpose only swaps two strides.",
        place=PLACE,
        expected="a view of x",
        actual="new storage, 524288 bytes",
        case={"B": 2, "S": 128, "H": 8, "d": 64},
        case_name="a long batch",
        picture=COPIED_PICTURE,
        snippet=SNIPPET,
    )
    strides = CheckResult(
        "strides",
        Status.FAILED,
        code="strides",
        message="the strides are those of a copy, not of a split",
        why="In x two tokens of one head lie D elements apart, not d.",
        expected="(65536, 64, 512, 1)",
        actual="(65536, 8192, 64, 1)",
        picture=COPIED_PICTURE,
    )
    waiting = CheckResult("allocation", Status.SKIPPED, reason="no_copy did not pass", waits_for="no_copy")
    return report(
        checks=(*passed(*ALWAYS), no_copy, strides, waiting),
        cases=(
            *CASES[:3],
            case("one token", False, True),
            case("sequence-first memory", False, False),
            case("sizes drawn afresh", False, False),
        ),
        mistakes=(
            NamedMistake(
                "made-contiguous",
                "made contiguous",
                'You made the split contiguous. In an interview this says "the split copies": it does not.',
                "Drop `contiguous()`; batched matmul takes any strides.",
            ),
        ),
        operations=(
            OperationNote("aten.clone", "contiguous", "explicit_copy", 524288, PLACE),
            OperationNote("aten.bmm", "matmul", "internal_copy", 320, None),
        ),
    )


def viewed_straight() -> Report:
    """The classic mistake: a run along one row where a column was asked; only the strides are told."""
    asked = Layout(AXES, (2, 4, 5, 3), (60, 3, 12, 1), 0, 4, "x")
    yours = Layout(AXES, (2, 4, 5, 3), (60, 15, 3, 1), 0, 4, "x")
    body = "    B, S, D = x.shape\n    return x.view(B, num_heads, S, D // num_heads)\n"
    source = f"def split_heads(x, num_heads):\n{body}"
    check = CheckResult(
        "strides",
        Status.FAILED,
        code="strides",
        message="two strides differ from those of the view asked for",
        why="Head 0 receives the first S*d numbers of the sentence: whole tokens instead of a slice of each.",
        place=Place(3, 12, 3, 51),
        case={"B": 2, "S": 5, "H": 4, "d": 3},
        case_name="a small batch",
        picture=Picture("layout", asked, yours),
    )
    cases = (replace(CASES[0], passed=False), *CASES[1:])
    return report(checks=(*passed(*ALWAYS), check), cases=cases, source=source)


def wrong_values() -> Report:
    """Wrong numbers: the worst element, a window around it and where elements came from."""
    window = {
        "expected": [[0.0, 1.0, 2.0], [12.0, 13.0, 14.0], [24.0, 25.0, 26.0]],
        "got": [[0.0, 1.0, 2.0], [3.0, 4.0, float("nan")], [6.0, 7.0, 8.1234567]],
        "origin": [0, 0, 0, 0],
        "marked": [2, 2],
    }
    moves = {
        "rows": [
            {"at": "out[0, 0, 1]", "holds": "head 1 of token 0", "expected": "head 0 of token 1"},
            {"at": "out[0, 0, 2]", "holds": "head 2 of token 0", "expected": "head 0 of token 2"},
            {"at": "out[0, 1, 0]", "holds": "head 1 of token 1", "expected": "head 1 of token 0"},
        ]
    }
    check = CheckResult(
        "values",
        Status.FAILED,
        code="different",
        message="96 of 120 elements differ (80 %); the worst is out[0, 0, 2, 2]",
        expected="26",
        actual="8.1234567 (tolerance: none, the numbers are moved, not computed)",
        case={"B": 2, "S": 5, "H": 4, "d": 3},
        case_name="a small batch",
        data={"window": window},
        picture=Picture("moves", data=moves),
    )
    gradient = CheckResult("gradient", Status.SKIPPED, waits_for="values")
    return report(checks=(*passed("returns", "shape", "dtype"), check, gradient), cases=CASES[:1])


def wrong_mask() -> Report:
    """A causal mask aligned at the wrong corner."""
    asked = [[column <= row + 2 for column in range(7)] for row in range(5)]
    yours = [[column <= row for column in range(7)] for row in range(5)]
    yours[0][6] = True
    data = {"asked": asked, "yours": yours, "rows": "query", "columns": "key"}
    check = CheckResult(
        "values",
        Status.FAILED,
        code="mask",
        message="11 of 35 mask entries differ",
        why="With a cache the last query is the last key: the diagonal ends at the lower right corner.",
        picture=Picture("mask", data=data),
    )
    return report(problem="causal-mask", title="The causal mask", file="mask.py", checks=(check,), source="")


def wrong_fan_out() -> Report:
    """Tiled K/V heads where each was to be repeated in a row."""
    data = {"asked": [0, 0, 0, 1, 1, 1], "yours": [0, 1, 0, 1, 0, 1]}
    check = CheckResult(
        "values",
        Status.FAILED,
        code="fan_out",
        message="2 of 6 query heads read the wrong K/V head",
        why="Groups are contiguous: query head h reads K/V head h // G.",
        picture=Picture("fan_out", data=data),
    )
    return report(
        problem="repeat-kv", title="Repeat K/V heads", file="repeat_kv.py", checks=(check,), source=""
    )


def raised() -> Report:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "split_heads.py", line 5, in split_heads\n'
        "    q = x.view(2, 9, -1)\n"
        "        ^^^^^^^^^^^^^^^^\n"
        "RuntimeError: shape '[2, 9, -1]' is invalid for input of size 120\n"
    )
    check = CheckResult(
        "returns",
        Status.FAILED,
        code="raised",
        message="raised RuntimeError: shape '[2, 9, -1]' is invalid for input of size 120",
        place=Place(5, 9, 5, 25),
    )
    waits = tuple(
        CheckResult(name, Status.SKIPPED, waits_for="returns") for name in ("shape", "dtype", "values")
    )
    printed = "".join(f"debug {n}: shape (2, 5, 12)\n" for n in range(12))
    return report(
        checks=(check, *waits),
        cases=(replace(CASES[0], passed=False),),
        run=RunSummary(Outcome.RAISED, stdout=printed, traceback=trace),
        source="import torch\n\n\ndef split_heads(x, num_heads):\n    q = x.view(2, 9, -1)\n    return q\n",
    )


def time_limit() -> Report:
    check = CheckResult("returns", Status.FAILED, code="time_limit", message="no result within 10 s")
    shape = CheckResult("shape", Status.SKIPPED, waits_for="returns")
    return report(checks=(check, shape), run=RunSummary(Outcome.TIME_LIMIT, detail="stopped after 10 s"))


def invalid() -> Report:
    error = {
        "where": "split_heads.py:2:24",
        "what": "the file is not Python: '(' was never closed",
        "cause": "a bracket opened on this line has no partner",
        "next": "close the bracket and save",
        "fault": "submission",
    }
    source = "def split_heads(x, num_heads):\n    return x.unflatten(-1, (num_heads, -1\n"
    return report(verdict=Verdict.INVALID, error=error, source=source)


def not_started() -> Report:
    return report(
        verdict=Verdict.NOT_STARTED, source="def split_heads(x, num_heads):\n    raise NotImplementedError\n"
    )


def grader_error() -> Report:
    broken = CheckResult("strides", Status.ERRORED, message="the check itself raised KeyError: 'd'")
    error = {
        "where": "grader/checks/strides.py",
        "what": "the check strides broke down",
        "cause": "a defect of the grader",
        "next": "report this with the output of `mhaquiz doctor`",
        "fault": "grader",
    }
    return report(verdict=Verdict.GRADER_ERROR, checks=(*passed("returns"), broken), error=error)


def broken_problem() -> Report:
    error = {
        "where": "problems/mha/split-heads.yaml:14:11",
        "what": "2 mistakes in the problem file",
        "cause": "",
        "next": "correct the lines named, then run `mhaquiz lint`",
        "fault": "problem",
        "exit_code": 3,
        "mistakes": [
            {
                "file": "problems/mha/split-heads.yaml",
                "line": 14,
                "column": 11,
                "message": 'unknown check "strid", did you mean "strides"?',
            },
            {
                "file": "problems/mha/split-heads.yaml",
                "line": 52,
                "column": 3,
                "message": "a case needs a name",
            },
        ],
    }
    return report(verdict=Verdict.GRADER_ERROR, error=error, source="", duration_ms=0.0)


def hostile() -> Report:
    """All that a submission can choose, chosen to harm: escapes, markup, tags, wide and bidi text."""
    evil = (
        "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 [bold]x[/bold] <b>&</b> "
        "\u202eabc\u202c ::error::x % 注意"
    )
    source = (
        "def f(x):\n"
        '\t注意 = "\u202e<script>alert(1)</script>\x1b[2J" + "[red]" + str(x.contiguous()) + "'
        + "long " * 30
        + '"\n    return 注意\n'
    )
    check = CheckResult(
        "values",
        Status.FAILED,
        code="different",
        message=f"raised {evil}",
        why=f"because\x00 {evil}",
        place=Place(2, 61, 2, 75),
        expected=evil,
        actual="</td><script>alert(2)</script>",
        case={"B": 2},
        case_name=evil,
        data={"worst": float("inf"), "window": {"expected": 3}, "low": float("-inf")},
        picture=Picture("moves", data={"rows": "not rows"}),
        snippet="print('</pre><script>alert(3)</script>')\n",
    )
    return report(
        file="a,b:c\n\x1b[1m注意<i>.py",
        checks=(check,),
        source=source,
        run=RunSummary(
            Outcome.RAISED,
            stdout=f"{evil}\r\n::set-output name=x::y\n" + "注意" * 80,
            traceback=f"Traceback (most recent call last):\n  {evil}\nValueError: {evil}\n",
        ),
        notes=(evil,),
    )


SAMPLES = {
    make.__name__: make
    for make in (
        all_passed,
        copied,
        viewed_straight,
        wrong_values,
        wrong_mask,
        wrong_fan_out,
        raised,
        time_limit,
        invalid,
        not_started,
        grader_error,
        broken_problem,
        hostile,
    )
}
