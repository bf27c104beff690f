"""`show`, `hint` and `solution`: what a learner sees, and when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from grader.cli.common import Look
from grader.cli.markdown import markdown
from grader.cli.show import SAYS
from grader.report import Verdict
from grader.spec.checks import CHECKS
from tests.cli.conftest import Process, Record, Run


def document(run: Run, *arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    loaded = json.loads(result.stdout)
    assert loaded["error"] is None
    return loaded  # type: ignore[no-any-return]


# show


def test_every_check_is_said_in_words() -> None:
    assert set(SAYS) == set(CHECKS)


def test_show_has_what_a_learner_needs(run: Run) -> None:
    said = run("show", "split-heads").stdout
    assert said.startswith(
        "split-heads   Split the heads\nmha · level 2 of 5 (easy) · about 10 minutes · new\n"
    )
    for part in (
        "Signature\n    split_heads(x, num_heads)\n",
        "    no_copy      the result shares memory with the input: a view\n",
        "Starter\n    import torch\n\n\n    def split_heads(",
        "3 hints: mhaquiz hint split-heads\nNext: mhaquiz attempt split-heads\n",
    ):
        assert part in said


def test_show_keeps_a_worked_example_as_it_was_written(run: Run) -> None:
    said = run("show", "split-heads", COLUMNS="40").stdout
    assert (
        "    x[0, 0] = [ 0  1 | 2  3 ]          out[0, 0] = [[0, 1], [4, 5]]     head 0 of both tokens\n"
        in said
    )


def test_show_never_tells_a_hidden_case_a_mistake_or_the_solution(run: Run) -> None:
    text = run("show", "split-heads").stdout
    shown = document(run, "show", "split-heads")
    assert {case["name"] for case in shown["cases"]["visible"]} >= {"a small batch", "one head"}
    assert shown["cases"]["hidden"] > 0
    for said in (text, json.dumps(shown)):
        assert "sequence-first memory" not in said
        assert "viewed-straight" not in said
        assert "unflatten" not in said


def test_the_json_of_show(run: Run, pack: Path) -> None:
    shown = document(run, "--problems", str(pack), "show", "pair-up")
    assert set(shown) == {
        "id", "title", "track", "level", "minutes", "state", "requires", "summary", "statement", "signature",
        "entry", "kind", "returns", "starter", "checks", "cases", "hints", "next", "error",
    }  # fmt: skip
    assert shown["entry"] == "pair_up"
    assert shown["hints"] == {"shown": 0, "total": 3}
    assert {"name": "gradient", "says": "the gradients are right", "options": {}} in shown["checks"]
    assert [check["name"] for check in shown["checks"]] == [
        name for name, kind in CHECKS.items() if kind.always or name == "gradient"
    ]


def test_show_after_a_pass_points_at_the_solution(run: Run, record: Record) -> None:
    record("split-heads")
    said = run("show", "split-heads").stdout
    assert "about 10 minutes · passed" in said
    assert said.endswith("Next: mhaquiz solution split-heads\n")


@pytest.mark.parametrize("command", ["show", "hint", "solution"])
def test_an_unknown_id_gets_the_nearest(run: Run, command: str, home: Path) -> None:
    result = run(command, "split-haeds", "--format", "json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["what"] == (
        "there is no problem `split-haeds`, did you mean `split-heads`?"
    )
    assert not home.exists()


@pytest.mark.parametrize("command", ["show", "hint", "solution"])
def test_a_broken_problem_file_is_exit_code_3(run: Run, command: str, pack: Path) -> None:
    path = pack / "problems" / "mine" / "pair-up.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("numbers: exact", "numbers: exacd"), encoding="utf-8"
    )
    result = run(command, "pair-up", "--problems", str(pack), "--format", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["error"]["fault"] == "problem"
    assert f"{path}:" in result.stderr


def test_another_broken_file_does_not_stop_show(run: Run, pack: Path) -> None:
    (pack / "problems" / "mine" / "broken.yaml").write_text("[", encoding="utf-8")
    assert run("show", "pair-up", "--problems", str(pack)).exit_code == 0


# hint


def test_hints_come_one_at_a_time_and_are_remembered(run: Run) -> None:
    firsts = [run("hint", "split-heads").stdout for _ in range(4)]
    assert [said.splitlines()[0] for said in firsts] == [
        "Hint 1 of 3",
        "Hint 2 of 3",
        "Hint 3 of 3",
        "Hint 3 of 3",
    ]
    assert firsts[0].endswith("Next: mhaquiz attempt split-heads   (still stuck: mhaquiz hint split-heads)\n")
    assert firsts[2].endswith(
        "Next: mhaquiz attempt split-heads   (still stuck: mhaquiz solution split-heads --give-up)\n"
    )
    assert "That was the last hint" not in firsts[2]
    assert "That was the last hint; every hint has been shown." in firsts[3]
    assert document(run, "show", "split-heads")["hints"] == {"shown": 3, "total": 3}
    assert "3 hints, 3 shown: mhaquiz hint split-heads" in run("show", "split-heads").stdout


def test_the_json_of_hint(run: Run) -> None:
    first = document(run, "hint", "split-heads")
    assert (first["id"], first["shown"], first["total"]) == ("split-heads", 1, 3)
    assert [hint["number"] for hint in first["hints"]] == [1]
    assert [hint["number"] for hint in document(run, "hint", "split-heads", "--all")["hints"]] == [1, 2, 3]
    assert document(run, "hint", "split-heads")["hints"][0]["number"] == 3


def test_without_a_record_the_first_hint_is_shown_with_a_warning(run: Run, home: Path) -> None:
    home.write_text("in the way")
    result = run("hint", "split-heads")
    assert result.exit_code == 0
    assert result.stdout.startswith("Hint 1 of 3\n")
    assert result.stderr.startswith("warning: the folder for the record of your attempts cannot be made")
    assert "mhaquiz hint split-heads --all shows every one" in result.stderr
    assert run("hint", "split-heads", "--all").stdout.count(" of 3\n") == 3


# solution


def test_the_solution_is_refused_before_a_pass(run: Run, record: Record) -> None:
    record("split-heads", Verdict.FAILED)
    result = run("solution", "split-heads")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: the solution of split-heads is shown after a pass\n"
        "  where: mhaquiz solution split-heads\n"
        "  cause: no attempt of yours has passed yet\n"
        "  next:  mhaquiz hint split-heads, or mhaquiz solution split-heads --give-up to see it now\n"
        "  fault: the command line, not your code\n"
    )


def test_the_solution_after_a_pass(run: Run, record: Record) -> None:
    record("split-heads")
    said = run("solution", "split-heads").stdout
    assert "Reference\n" in said
    assert "    def split_heads(x, num_heads):\n" in said
    assert "wrong" not in said
    for heading in ("What an interviewer asks next", "Do not say", "Real systems", "When not to", "Read on"):
        assert f"\n{heading}\n" in said
    assert said.splitlines()[-1].startswith("Next: mhaquiz ")


def test_giving_up_is_remembered(run: Run) -> None:
    assert run("solution", "split-heads", "--give-up").exit_code == 0
    said = run("solution", "split-heads")
    assert said.exit_code == 0
    assert said.stdout.endswith("Next: close this, then write it yourself: mhaquiz attempt split-heads\n")
    entries = {entry["id"]: entry["state"] for entry in json.loads(run("list", "--format", "json").stdout)}
    assert entries["split-heads"] == "new"


def test_the_reference_and_the_other_ways_run_as_they_are_printed(run: Run, pack: Path) -> None:
    import torch

    shown = document(run, "solution", "pair-up", "--give-up", "--problems", str(pack))
    x = torch.arange(12.0).reshape(2, 6)
    namespace: dict[str, Any] = {}
    exec(shown["reference"], namespace)
    asked = namespace["pair_up"](x)
    assert [way["name"] for way in shown["ways"]] == ["reshape", "stack", "added"]
    for way in shown["ways"]:
        namespace = {}
        exec(way["code"], namespace)
        assert torch.equal(namespace["right_" + way["name"]](x), asked)
    assert set(shown) == {
        "id", "entry", "reference", "ways", "followups", "red_flags", "real_systems", "when_not",
        "references", "next", "error",
    }  # fmt: skip


def test_a_long_way_is_named_and_shown_when_asked(run: Run, pack: Path) -> None:
    path = pack / "solutions" / "mine" / "pair-up.py"
    body = "".join(f"    y{number} = x\n" for number in range(30))
    path.write_text(path.read_text() + f"\n\ndef right_long(x):\n    '''Slowly.'''\n{body}    return x\n")
    short = run("solution", "pair-up", "--give-up", "--problems", str(pack)).stdout
    assert "Another right way: long\n    Slowly.\n    33 lines: mhaquiz solution pair-up --ways\n" in short
    assert "y29 = x" in run("solution", "pair-up", "--ways", "--problems", str(pack)).stdout


def test_a_solution_file_without_a_reference_is_the_problems_fault(run: Run, pack: Path) -> None:
    path = pack / "solutions" / "mine" / "pair-up.py"
    for text, said in (
        ("x = 1\n", "there is no `reference`"),
        ("def (\n", "not valid Python: invalid syntax"),
    ):
        path.write_text(text)
        result = run("solution", "pair-up", "--give-up", "--problems", str(pack))
        assert result.exit_code == 3
        assert f"  {path}:1:1: {said}" in result.stderr


def test_giving_up_needs_no_record(run: Run, home: Path) -> None:
    home.write_text("in the way")
    refused = run("solution", "split-heads")
    assert refused.exit_code == 2
    shown = run("solution", "split-heads", "--give-up")
    assert shown.exit_code == 0
    assert "def split_heads(" in shown.stdout
    assert shown.stderr.startswith("warning: the folder for the record of your attempts cannot be made")


def test_a_damaged_record_is_said_and_giving_up_still_works(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "mhaquiz.db").write_text("no database")
    refused = run("solution", "split-heads")
    assert refused.exit_code == 4
    assert "the record of your attempts cannot be read" in refused.stderr
    assert run("solution", "split-heads", "--give-up").exit_code == 0


# Markdown


def look(width: int = 40, *, color: bool = False) -> Look:
    return Look(color=color, width=width, unicode=True, plain=False)


def test_markdown_wraps_words_and_keeps_code() -> None:
    code = "x" * 60
    drawn = markdown(
        f"# Title\n\nSome **bold** words that are longer than forty columns.\n\n    {code}\n", look()
    )
    assert drawn == f"Title\n\nSome bold words that are longer than\nforty columns.\n\n    {code}"


def test_markdown_is_indented_and_coloured_on_request() -> None:
    assert markdown("a b", look(), indent=2) == "  a b"
    assert "\x1b[" in markdown("a `b`", look(color=True))


def test_code_among_words_is_told_by_colour_or_by_backticks() -> None:
    assert markdown("not `view`", look()) == "not `view`"
    assert click.unstyle(markdown("not `view`", look(color=True))) == "not view"


def test_square_brackets_are_no_markup() -> None:
    assert markdown("x[0, 0] and [bold]y[/bold]", look()) == "x[0, 0] and [bold]y[/bold]"


def test_show_in_colour_says_the_same_words(process: Process) -> None:
    drawn = click.unstyle(process("show", "split-heads", FORCE_COLOR="1").stdout)
    plain = process("show", "split-heads").stdout
    assert drawn.replace("`", "").split() == plain.replace("`", "").split()
