"""Every ending has its exit code, its words on standard error and, when asked, one JSON document."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import grader.cli.main as main_module
from grader.cli.main import COMMANDS
from grader.errors import Fault, Mistake, ProblemFileError, SubmissionError
from tests.cli.conftest import ROOT, Process, Run


class Ends:
    """A command for these tests: it ends as told."""

    says = "ends as told"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def load(self) -> click.Command:
        return click.Command("ends", callback=self._end, params=[click.Option(["--format", "output_format"])])

    def _end(self, output_format: str | None) -> None:
        raise self.error


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(error: BaseException) -> None:
        monkeypatch.setitem(COMMANDS, "ends", Ends(error))  # type: ignore[arg-type]

    return install


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads_and_its_help_has_an_example(name: str, run: Run) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"Usage: mhaquiz {name}" in result.stdout
    assert "Example" in result.stdout
    assert f"mhaquiz {name}" in result.stdout.split("Example", 1)[1]


def test_the_overview_names_every_command(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name, lazy in COMMANDS.items():
        assert name in result.stdout
        assert lazy.says[:40] in result.stdout


def test_the_version(run: Run) -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("mhaquiz ")
    assert result.stdout.count("\n") == 1


def test_a_mistyped_command_gets_the_nearest(run: Run) -> None:
    result = run("lsit")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        'error: there is no command "lsit"\n'
        "  where: mhaquiz\n"
        "  cause: did you mean list?\n"
        "  next:  mhaquiz list --help\n"
        "  fault: the command line, not your code\n"
    )


def test_a_problem_in_the_place_of_a_command(run: Run) -> None:
    result = run("split-heads")
    assert result.exit_code == 2
    assert "  cause: split-heads is a problem\n  next:  mhaquiz show split-heads\n" in result.stderr


def test_a_word_that_is_nothing(run: Run) -> None:
    result = run("zzzz")
    assert result.exit_code == 2
    assert "  next:  mhaquiz --help\n" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "what", "path"),
    [
        (["show"], "missing argument 'id'.", "mhaquiz show"),
        (["list", "--formt", "json"], "no such option", "mhaquiz list"),
        (["list", "--format", "yaml"], "invalid value for '--format'", "mhaquiz list"),
    ],
)
def test_wrong_usage_says_where_help_is(arguments: list[str], what: str, path: str, run: Run) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert what in result.stderr.lower()
    assert f"  where: {path}\n  next:  {path} --help\n" in result.stderr


def test_wrong_usage_is_one_json_document_when_json_is_asked(run: Run) -> None:
    result = run("show", "--format", "json")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert document["schema"] == 1
    assert document["exit_code"] == 2
    assert document["error"] == {
        "where": "mhaquiz show",
        "what": "missing argument 'ID'.",
        "cause": "",
        "next": "mhaquiz show --help",
        "fault": "usage",
    }
    assert result.stderr.startswith("error: missing argument 'ID'.\n")


@pytest.mark.parametrize("words", [["--format=json"], ["--format", "json"]])
def test_an_error_is_one_json_document_when_json_is_asked(words: list[str], ends: Any, run: Run) -> None:
    ends(SubmissionError("no entry", where="a.py:1:1", cause="a slip", next_step="write it"))
    result = run("ends", *words)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["fault"] == "submission"
    assert result.stderr == (
        "error: no entry\n  where: a.py:1:1\n  cause: a slip\n  next:  write it\n"
        "  fault: the submitted file\n"
    )


def test_every_mistake_of_a_problem_file_is_named(ends: Any, run: Run) -> None:
    ends(ProblemFileError([Mistake("p.yaml", 3, 2, "one"), Mistake("p.yaml", 9, 4, "two")]))
    result = run("ends", "--format", "json")
    assert result.exit_code == 3
    assert result.stderr.startswith(
        "error: 2 mistakes in the problem file\n  p.yaml:3:2: one\n  p.yaml:9:4: two\n"
    )
    assert json.loads(result.stdout)["error"]["errors"] == [
        {"file": "p.yaml", "line": 3, "column": 2, "message": "one"},
        {"file": "p.yaml", "line": 9, "column": 4, "message": "two"},
    ]


@pytest.mark.parametrize("fault", Fault)
def test_whose_fault_it_is_is_said(fault: Fault, ends: Any, run: Run) -> None:
    error = SubmissionError("it")
    error.fault = fault
    ends(error)
    said = run("ends").stderr.splitlines()[-1]
    assert said.startswith("  fault: ")
    assert ("not your code" in said) is (fault is not Fault.SUBMISSION)


def test_terminal_escapes_in_an_error_are_harmless(ends: Any, run: Run) -> None:
    ends(SubmissionError("bad \x1b[2Jname", where="\x1b]0;title\x07x.py"))
    assert run("ends").stderr.startswith("error: bad name\n  where: x.py\n")


def test_a_long_message_wraps_and_the_next_command_stays_whole(ends: Any, run: Run) -> None:
    command = "mhaquiz attempt split-heads " + "/a/long/folder" * 5
    ends(SubmissionError("word " * 30, next_step=command))
    lines = run("ends", COLUMNS="40").stderr.splitlines()
    assert lines[0] == "error: word word word word word word"
    assert lines[1] == "       word word word word word word"
    assert f"  next:  {command}" in lines


# The grader's own fault


def test_an_unforeseen_exception_is_the_graders_fault_and_no_traceback(
    ends: Any, run: Run, home: Path
) -> None:
    ends(ZeroDivisionError("division by zero"))
    result = run("ends", "--format", "json")
    kept = home / "last-crash.txt"
    assert result.exit_code == 4
    assert result.stderr == (
        "error: this is the grader's own fault: ZeroDivisionError: division by zero\n"
        f"  where: full traceback: {kept}\n"
        "  next:  report it with that file\n"
        "  fault: the grader, not your code; it costs no attempt\n"
    )
    assert json.loads(result.stdout)["exit_code"] == 4
    assert "Traceback (most recent call last)" in kept.read_text(encoding="utf-8")
    assert "raise self.error" in kept.read_text(encoding="utf-8")


def test_the_traceback_is_shown_when_debugging(ends: Any, run: Run, home: Path) -> None:
    ends(ZeroDivisionError("division by zero"))
    result = run("ends", MHAQUIZ_DEBUG="1")
    assert result.exit_code == 4
    assert "Traceback (most recent call last)" in result.stderr
    assert "  next:  report it with the traceback above\n" in result.stderr
    assert not home.exists()


def test_a_crash_where_nothing_can_be_written(ends: Any, run: Run, home: Path) -> None:
    home.write_text("in the way")
    ends(ZeroDivisionError())
    result = run("ends")
    assert result.exit_code == 4
    assert result.stderr.startswith("error: this is the grader's own fault: ZeroDivisionError\n")
    assert "  next:  MHAQUIZ_DEBUG=1 shows the full traceback; report it with that\n" in result.stderr


def test_a_missing_package_is_the_set_up_not_a_crash(ends: Any, run: Run, home: Path) -> None:
    ends(ModuleNotFoundError("No module named 'torch'", name="torch._C"))
    result = run("ends")
    assert result.exit_code == 4
    assert "error: the package torch is not installed\n" in result.stderr
    assert f"  next:  {sys.executable} -m pip install torch, then mhaquiz doctor\n" in result.stderr
    assert "  fault: this machine's set-up, not your code\n" in result.stderr
    assert not home.exists()


# Streams, in processes of their own

SCRIPT = """
import sys, time, click
import grader.cli.main as main_module
def slow():
    print("ready", flush=True)
    time.sleep(60)
def much():
    for number in range(200_000):
        click.echo(f"line {number}")
    return 0
class Given:
    says = ""
    def __init__(self, callback): self.callback = callback
    def load(self): return click.Command("given", callback=self.callback)
main_module.COMMANDS.update(slow=Given(slow), much=Given(much))
main_module.main()
"""


def started(command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_ends_with_one_line_and_130() -> None:
    process = started("slow")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (130, "Stopped by Ctrl-C.\n")


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    process = started("much")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "line 0\n"
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=30), stderr) == (141, "")


def test_words_go_to_standard_error_and_json_to_standard_output(process: Process) -> None:
    done = process("show", "splitheads", "--format", "json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["fault"] == "usage"
    assert done.stderr.startswith("error: there is no problem `splitheads`")


def test_an_ascii_terminal_gets_stand_ins_and_no_crash(process: Process) -> None:
    done = process("show", "split-heads", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "mha | level 2 of 5 (easy) | about 10 minutes | new" in done.stdout


LIGHT = """
import sys
import grader.cli.main as main_module
try:
    main_module.main()
except SystemExit as ended:
    heavy = [name for name in ("torch", "numpy") if name in sys.modules]
    print("HEAVY", heavy, "pydantic" in sys.modules, "rich" in sys.modules, ended.code)
"""


def loaded_by(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("arguments", [[], ["list"], ["list", "--format", "json"], ["--help"], ["--version"]])
def test_the_light_commands_import_no_torch_pydantic_or_rich(arguments: list[str]) -> None:
    assert loaded_by(*arguments) == "HEAVY [] False False 0"


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "split-heads"],
        ["hint", "split-heads"],
        ["solution", "split-heads", "--give-up"],
        ["new", "some-problem"],
        ["schema"],
        ["completion", "bash"],
        ["attempt", "--help"],
        ["lint", "--help"],
    ],
)
def test_no_command_but_a_grade_imports_torch(arguments: list[str]) -> None:
    said = loaded_by(*arguments)
    assert said.startswith("HEAVY [] ")
    assert said.endswith(" 0")


def test_completion_lists_commands_without_loading_them(process: Process) -> None:
    done = process(_MHAQUIZ_COMPLETE="bash_complete", COMP_WORDS="mhaquiz s", COMP_CWORD="1")
    assert done.stdout.split() == ["plain,show", "plain,solution", "plain,schema", "plain,sandbox"]


def test_completion_of_a_wrong_word_says_nothing(process: Process) -> None:
    done = process(_MHAQUIZ_COMPLETE="bash_complete", COMP_WORDS="mhaquiz nothing x", COMP_CWORD="2")
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_main_module_is_the_console_script() -> None:
    assert callable(main_module.main)
