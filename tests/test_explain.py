"""Which finding leads, where it points, what goes with it; and what is said of a file that cannot be loaded."""

# ruff: noqa: E501 - a row of a table and a message are one line

from __future__ import annotations

from typing import Any

import pytest

from grader.explain import NOT_STARTED
from grader.report import Outcome, Place, Status, Verdict
from tests.conftest import Judge
from tests.tiny import case, code, tiny

SWAP_TEXT = "def reference(x):\n    return x.transpose(1, 2)"
SWAP: dict[str, Any] = {"returns": "B D S"}
SWAP_TASK = tiny(SWAP_TEXT, **SWAP)


def use(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "options": options}


# Which finding leads


def test_a_visible_case_leads_before_a_smaller_hidden_one(judge: Judge) -> None:
    cases = [
        case("hidden", visible=False, sizes={"B": 1, "S": 2, "D": 2}),
        case("large", sizes={"B": 4, "S": 9, "D": 5}),
        case("small", sizes={"B": 2, "S": 3, "D": 2}),
    ]
    result = judge(
        tiny(SWAP_TEXT, **SWAP, cases=cases), code("def answer(x):\n    return x.transpose(1, 2) + 1")
    )
    assert result.check("values").case_name == "small"
    assert result.check("values").case == {"B": 2, "S": 3, "D": 2}
    assert [(c.name, c.passed) for c in result.cases] == [
        ("hidden", False),
        ("large", False),
        ("small", False),
    ]


def test_logic_leads_before_precision(judge: Judge) -> None:
    task = tiny("def reference(x):\n    return x * 2", numbers="real", values="normal")
    data = judge(task, code("def answer(x):\n    return x * 3")).check("values").data
    assert (data["phase"], data["dtype"]) == ("logic", "float64")


def test_only_precision_is_said_to_be_only_precision(judge: Judge) -> None:
    task = tiny("def reference(x):\n    return x.exp()", numbers="real", values="normal")
    source = code(
        "def answer(x):\n    return x.bfloat16().exp().to(x.dtype) if x.dtype == torch.float32 else x.exp()"
    )
    result = judge(task, source).check("values")
    assert result.data["dtype"] == "float32"
    assert result.why.startswith("Only the precision is at fault: the error is ")
    assert result.why.endswith(" x what an honest float32 version makes.")


# Place, picture, snippet


def test_an_exception_is_placed_in_the_submission(judge: Judge) -> None:
    source = code("def helper(x):\n    return x.nothing\n\n\ndef answer(x):\n    return helper(x)")
    report = judge(SWAP_TASK, source)
    assert report.check("returns").place == Place(5, 12, 5, 21)
    assert report.run.outcome is Outcome.RAISED
    assert report.run.traceback == (
        "  answer.py:9 in answer\n    return helper(x)\n  answer.py:5 in helper\n    return x.nothing\n"
        "AttributeError: 'Tensor' object has no attribute 'nothing'"
    )


def test_columns_count_characters_not_bytes(judge: Judge) -> None:
    source = code("def answer(x):\n    é = 'ü'; return x.nothing")
    assert judge(SWAP_TASK, source).check("returns").place == Place(5, 21, 5, 30)


def test_a_copy_is_placed_where_it_was_made_and_noted_once(judge: Judge) -> None:
    source = code(
        "def answer(x):\n    for _ in range(3):\n        y = x.clone()\n    return y.transpose(1, 2)"
    )
    report = judge(tiny(SWAP_TEXT, **SWAP, checks=[use("no_copy", of="x")]), source)
    assert report.check("no_copy").place == Place(6, 13, 6, 22)
    (note,) = report.operations
    assert (note.op, note.call, note.kind, note.new_bytes) == ("aten.clone", "clone", "explicit_copy", 120)


def test_copies_inside_a_product_are_shown_and_cost_nothing(judge: Judge) -> None:
    task = tiny(
        "def reference(x, h):\n    q = x.unflatten(-1, (h, -1)).transpose(1, 2)\n    return q @ q.mT",
        inputs={"x": {"shape": "B S (H d)"}, "h": "H"}, returns="B H S S", values="integers",
        cases=[case(sizes={"B": 2, "S": 3, "H": 5, "d": 7})],
        checks=[use("allocation", budgets=[{"metric": "explicit", "at_most": "0"}])],
    )  # fmt: skip
    report = judge(task, task.versions.submission_source("reference").decode())
    assert report.verdict is Verdict.PASSED
    assert {(note.kind, note.call) for note in report.operations} == {("internal_copy", "matmul")}
    (note,) = report.notes
    assert note == "`matmul` copied 1680 bytes inside, on the traced call: shown for interest, not counted."


def test_strides_get_a_picture_of_both_layouts(judge: Judge) -> None:
    task = tiny(SWAP_TEXT, **SWAP, checks=[use("strides"), use("no_copy", of="x")])
    report = judge(task, code("def answer(x):\n    return x.transpose(1, 2).contiguous()"))
    picture = report.check("strides").picture
    assert picture is not None
    assert picture.asked is not None
    assert picture.yours is not None
    assert (picture.kind, picture.data) == ("layout", {"of": "x"})
    assert (picture.asked.axes, picture.asked.shape, picture.asked.stride) == (
        ("B", "D", "S"),
        (2, 3, 5),
        (15, 1, 3),
    )
    assert (picture.asked.shares, picture.yours.shares) == ("x", None)
    assert picture.yours.stride == (15, 5, 1)


def test_moved_elements_are_named(judge: Judge) -> None:
    report = judge(
        SWAP_TASK, code("def answer(x):\n    return x.reshape(x.shape[0], x.shape[2], x.shape[1])")
    )
    picture = report.check("values").picture
    assert picture is not None
    assert picture.kind == "moves"
    assert picture.data["rows"][0] == {
        "at": "out[0, 0, 1]",
        "holds": "feature 1 of token 0",
        "expected": "feature 0 of token 1",
    }


def test_a_mask_is_drawn_open_and_closed(judge: Judge) -> None:
    task = tiny(
        "def reference(x):\n    return x.masked_fill(torch.ones(x.shape[-2:], dtype=torch.bool).triu(1), float('-inf'))",
        inputs={"x": {"shape": "B S S"}}, returns="B S S", numbers="real", values="normal",
        cases=[case(sizes={"B": 2, "S": 3})],
    )  # fmt: skip
    source = "def answer(x):\n    return x.masked_fill(torch.ones(x.shape[-2:], dtype=torch.bool).triu(0), float('-inf'))"
    picture = judge(task, code(source)).check("finite").picture
    assert picture is None
    source = source.replace("triu(0)", "triu(2)")
    picture = judge(task, code(source)).check("values").picture
    assert picture is not None
    assert picture.kind == "mask"
    assert picture.data == {
        "asked": [[True, False, False], [True, True, False], [True, True, True]],
        "yours": [[True, True, False], [True, True, True], [True, True, True]],
        "rows": "query", "columns": "key",
    }  # fmt: skip


def test_a_wrong_place_of_an_infinity_among_positions_is_no_crash(judge: Judge) -> None:
    task = tiny("def reference(x):\n    return x.masked_fill(x == x.amax(), float('-inf'))", numbers="real")
    report = judge(task, code("def answer(x):\n    return x"))
    assert report.verdict is Verdict.FAILED
    assert report.check("values").code == "nonfinite"
    assert report.check("values").data["expected"] == "-inf", "JSON holds no infinity"


def test_a_waiting_check_says_what_it_waits_for(judge: Judge) -> None:
    report = judge(SWAP_TASK, code("def answer(x):\n    return x.nothing"))
    values = report.check("values")
    assert (values.status, values.waits_for, values.reason) == (
        Status.SKIPPED,
        "returns",
        "waits for returns",
    )


def test_a_check_that_never_looked_is_the_grader_s_fault_not_a_pass(judge: Judge) -> None:
    task = tiny(SWAP_TEXT, **SWAP, checks=[use("contiguous", of="x")], cases=[case(skip=["contiguous"])])
    report = judge(task, task.versions.submission_source("reference").decode())
    assert report.verdict is Verdict.GRADER_ERROR
    assert report.exit_code == 4
    assert report.error == {
        "where": "tiny", "what": "the check `contiguous` could not be judged",
        "cause": "no case of this problem lets the check look at anything",
        "next": "mhaquiz lint tiny", "fault": "grader", "exit_code": 4,
    }  # fmt: skip


# The starter


@pytest.mark.parametrize("extra", ["", "\n\n# a thought\n", "   \n"])
def test_the_unchanged_starter_is_not_started(extra: str, judge: Judge) -> None:
    report = judge(SWAP_TASK, "# mhaquiz: tiny\n" + SWAP_TASK.problem.starter + extra)
    assert (report.verdict, report.exit_code) == (Verdict.NOT_STARTED, 1)
    assert report.checks == ()
    assert report.notes == (NOT_STARTED,)
    assert NOT_STARTED == "The starter is unchanged: write the body, save, and run the same command again."


def test_a_changed_starter_is_graded(judge: Judge) -> None:
    report = judge(SWAP_TASK, SWAP_TASK.problem.starter + "x = 1\n")
    assert report.verdict is Verdict.FAILED
    assert report.check("returns").message == "your code raised NotImplementedError"


# What cannot be loaded: source, what, cause, where

UNLOADABLE: dict[str, tuple[bytes | str, str, str, str]] = {
    "empty": ("", "the file is empty; it must define `answer`", "the file was not saved, or another one was meant", "answer.py"),
    "missing": ("def other(x):\n    return x\n", "the file does not define `answer`", "it defines `other`", "answer.py"),
    "nothing": ("x = 1\n", "the file does not define `answer`", "it defines nothing that can be called", "answer.py"),
    "misspelt": ("def anwser(x):\n    return x\n", "found `anwser`, did you mean `answer`?", "the problem asks for `answer(x)`", "answer.py"),
    "not callable": ("answer = 3\n", "`answer` is a int, not something that can be called", "the problem asks for `answer(x)`", "answer.py"),
    "syntax": ("def answer(x)\n    return x\n", "the file is not valid Python: expected ':'", "", "answer.py:1:14"),
    "raised": ("import torch\n\nvalue = 1 / 0\n", "importing the file raised ZeroDivisionError: division by zero", "code outside functions runs when the file is loaded", "answer.py:3"),
    "exited": ("raise SystemExit\n", "importing the file raised SystemExit", "code outside functions runs when the file is loaded", "answer.py:1"),
    "NUL bytes": (b"def answer(x):\n\x00    return x\n", "the file holds NUL bytes, so it is no Python source", "it may be a binary or UTF-16 file", "answer.py"),
    "latin-1": (b"# caf\xe9\ndef answer(x):\n    return x\n", "the file is not UTF-8 text", "save it as UTF-8, or declare its encoding on the first line", "answer.py"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLOADABLE)
def test_what_is_said_of_a_file_that_cannot_be_loaded(name: str, judge: Judge, engine: Any) -> None:
    from grader.judge import Submission, grade

    source, what, cause, where = UNLOADABLE[name]
    raw = source if isinstance(source, bytes) else source.encode()
    report = grade(SWAP_TASK, Submission(raw, "answer.py"), engine, seed="1")
    assert (report.verdict, report.exit_code, report.checks) == (Verdict.INVALID, 1, ())
    assert report.error is not None
    assert (report.error["what"], report.error["cause"]) == (what, cause)
    assert report.error["where"].startswith(where)
    assert report.error["fault"] == "submission"
    assert report.error["next"] == "correct the file, then run `mhaquiz attempt tiny answer.py`"


def test_the_frames_of_a_failed_import_are_shown(judge: Judge) -> None:
    report = judge(SWAP_TASK, "def f():\n    return 1 / 0\n\n\nf()\n")
    assert report.run.traceback == (
        "  answer.py:5 in <module>\n    f()\n  answer.py:2 in f\n    return 1 / 0\nZeroDivisionError: division by zero"
    )


@pytest.mark.parametrize(
    "source",
    [
        "\ufeffdef answer(x):\r\n\treturn x.transpose(1, 2)\r\n",
        "answer = lambda x: x.transpose(1, 2)\n",
        "from functools import partial\nanswer = partial(lambda n, x: x.transpose(1, n), 2)\n",
        "class C:\n    @classmethod\n    def f(cls, x):\n        return x.transpose(1, 2)\n\n\nanswer = C.f\n",
        "class C:\n    def __call__(self, x):\n        return x.transpose(1, 2)\n\n\nanswer = C()\n",
        "def answer(*, x):\n    return x.transpose(1, 2)\n",
        "def answer(x, causal=False):\n    return x.transpose(1, 2)\n",
        "from dataclasses import dataclass\n\n\n@dataclass\nclass P:\n    a: int = 1\n\n\ndef answer(x):\n    return x.transpose(P().a, 2)\n",
        "def answer(größe):\n    return größe.transpose(1, 2)\n\n\nif __name__ == '__main__':\n    raise SystemExit(1)\n",
    ],
)
def test_every_legal_form_of_an_entry_is_called(source: str, judge: Judge) -> None:
    report = judge(SWAP_TASK, source)
    assert report.verdict is Verdict.PASSED, (report.error, [c.message for c in report.checks])
