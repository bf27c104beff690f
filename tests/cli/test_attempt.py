"""`mhaquiz attempt`: every way in, every format, every exit code, and what is kept."""

# ruff: noqa: E501 - a row of a table and a message are one line

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from grader.cli.main import cli
from grader.host.engine import Engine
from tests.cli.conftest import Process, Run

RIGHT = "import torch\n\n\ndef pair_up(x):\n    return 2 * x.unflatten(-1, (-1, 2))\n"
WRONG = "import torch\n\n\ndef pair_up(x):\n    return x.unflatten(-1, (-1, 2))\n"


class Warm:
    """The engine of the tests in the place of a fresh one: the same code, already started."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __enter__(self) -> Engine:
        return self.engine

    def __exit__(self, *ended: object) -> None:
        """It stays warm."""


@pytest.fixture(autouse=True)
def warm(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.host.engine.Engine", lambda sandbox: Warm(engine))


@pytest.fixture
def attempt(run: Run, pack: Path) -> Run:
    """`mhaquiz attempt` with the small pack at hand."""

    def invoke(*arguments: str, **environment: str) -> Result:
        return run("attempt", *arguments, "--problems", str(pack), **environment)

    return invoke


def written(source: str, name: str = "pair_up.py") -> Path:
    path = Path(name)
    path.write_text(source)
    return path


# Verdicts and exit codes


def test_a_right_file_passes_with_0(attempt: Run, pack: Path) -> None:
    written(RIGHT)
    result = attempt("pair-up")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].startswith("pair-up   attempt 1 ")
    assert "✓ values" in result.stdout
    following = f"Next: mhaquiz solution pair-up --problems {pack}, then mhaquiz for the next problem"
    assert following in " ".join(result.stdout.split())
    assert result.stderr == ""


def test_a_wrong_file_fails_with_1_and_names_the_mistake(attempt: Run, pack: Path) -> None:
    written(WRONG, "mine.py")
    result = attempt("pair-up", "mine.py")
    assert result.exit_code == 1
    assert "✗ values" in result.stdout
    assert "You paired the features and returned the numbers unchanged." in " ".join(result.stdout.split())
    again = f"mhaquiz attempt pair-up mine.py --problems {pack}"
    stuck = f"mhaquiz hint pair-up --problems {pack}"
    assert f"Next: edit mine.py, then {again} · stuck: {stuck}" in " ".join(result.stdout.split())


def test_a_file_that_cannot_be_loaded_is_invalid_with_1(attempt: Run) -> None:
    written("def pair_up(x)\n    return x\n")
    result = attempt("pair-up", "--format", "json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["verdict"], document["exit_code"]) == ("invalid", 1)
    assert document["error"]["where"] == "pair_up.py:1:15"


def test_a_broken_problem_is_3(attempt: Run, pack: Path) -> None:
    written(RIGHT)
    path = pack / "problems" / "mine" / "pair-up.yaml"
    path.write_text(path.read_text().replace("level: 1", "level: 9", 1))
    result = attempt("pair-up", "--format", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["error"]["fault"] == "problem"
    assert result.stderr.startswith("error: 1 mistake in the problem file\n")


def test_a_reference_that_fails_is_3_and_costs_nothing(attempt: Run, pack: Path) -> None:
    written(RIGHT)
    path = pack / "solutions" / "mine" / "pair-up.py"
    path.write_text(path.read_text().replace("return 2 * x.unflatten", "return x.nothing", 1))
    result = attempt("pair-up", "--format", "json")
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert (document["verdict"], document["error"]["fault"]) == ("grader_error", "problem")
    assert document["error"]["mistakes"][0]["message"] == (
        "the reference raised AttributeError: 'Tensor' object has no attribute 'nothing' on case `a small batch` in float64"
    )


# Ways in


def test_without_a_file_the_starter_is_written(attempt: Run, pack: Path) -> None:
    result = attempt("pair-up")
    assert result.exit_code == 1
    assert result.stderr == "Wrote the starter to pair_up.py.\n"
    text = Path("pair_up.py").read_text()
    assert text.startswith(
        "# mhaquiz: pair-up\nimport torch\n\n\ndef pair_up(x: torch.Tensor) -> torch.Tensor:\n"
    )
    assert "Next: edit pair_up.py, then mhaquiz attempt pair-up" in result.stdout
    again = attempt("pair-up")
    assert again.stderr == ""
    assert Path("pair_up.py").read_text() == text


def test_the_starter_goes_where_it_is_asked(attempt: Run) -> None:
    Path("src").mkdir()
    assert attempt("pair-up", "src/mine.py").stderr == "Wrote the starter to src/mine.py.\n"
    assert Path("src/mine.py").read_text().startswith("# mhaquiz: pair-up\n")


def test_a_marked_file_needs_no_id(attempt: Run) -> None:
    written("# mhaquiz: pair-up\n" + RIGHT, "whatever.py")
    result = attempt("whatever.py", "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)["problem"]) == (0, "pair-up")


@pytest.mark.parametrize("arguments", [["pair-up", "-"], ["-"]])
def test_standard_input(arguments: list[str], pack: Path) -> None:
    source = "# mhaquiz: pair-up\n" + RIGHT
    line = ["attempt", *arguments, "--format", "json", "--problems", str(pack)]
    result = CliRunner().invoke(cli, line, input=source)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["file"] == "<stdin>"


# Wrong usage: arguments, what, where, cause, next

REFUSED: dict[str, tuple[list[str], str]] = {
    "an unknown id": (
        ["pair-upp"],
        "error: there is no problem `pair-upp`, did you mean `pair-up`?\n  where: pair-upp\n"
        "  next:  `mhaquiz list` shows every problem\n",
    ),
    "an unmarked file": (
        ["unmarked.py"],
        "error: `unmarked.py` does not say which problem it solves\n  where: unmarked.py\n"
        "  cause: a file given without an ID needs a line like `# mhaquiz: split-heads`\n         near its top\n"
        "  next:  mhaquiz attempt ID unmarked.py\n",
    ),
    "a marked file of no problem": (
        ["astray.py"],
        "error: there is no problem `pair-upp`, did you mean `pair-up`?\n  where: pair-upp\n"
        "  next:  `mhaquiz list` shows every problem\n",
    ),
    "no such marked file": (
        ["no.py"], "error: `no.py` cannot be read\n  where: no.py\n  cause: No such file or directory\n",
    ),
    "a folder": (
        ["pair-up", "folder"], "error: `folder` is a folder, not a file\n  where: folder\n  cause: Is a directory\n",
    ),
    "no such folder": (
        ["pair-up", "nowhere/mine.py"],
        "error: there is no file `nowhere/mine.py`\n  where: nowhere/mine.py\n"
        "  cause: its folder does not exist\n  next:  mhaquiz attempt pair-up\n",
    ),
    "no Python file": (
        ["pair-up", "mine.txt"],
        "error: there is no file `mine.txt`\n  where: mine.txt\n  cause: a solution's name ends in .py\n"
        "  next:  mhaquiz attempt pair-up\n",
    ),
    "a huge file": (
        ["pair-up", "huge.py"],
        "error: `huge.py` is larger than 2 MB\n  where: huge.py\n  cause: a solution is a few lines of Python\n"
        "  next:  check that it is the right file\n",
    ),
    "mps": (
        ["pair-up", "right.py", "--device", "mps"],
        "error: MPS cannot be used\n  where: --device mps\n  cause: values are judged in double precision, which MPS does not have\n"
        "  next:  --device cpu\n",
    ),
    "a report nowhere": (
        ["pair-up", "right.py", "--report", "nowhere/report.html"],
        "error: the report cannot be written to `nowhere/report.html`\n  where: nowhere/report.html\n"
        "  cause: No such file or directory\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_usage_is_2_and_said(name: str, attempt: Run) -> None:
    written(RIGHT, "right.py")
    written(RIGHT, "unmarked.py")
    written("# mhaquiz: pair-upp\n", "astray.py")
    written("#" * 2_000_001, "huge.py")
    Path("folder").mkdir()
    arguments, said = REFUSED[name]
    result = attempt(*arguments, COLUMNS="80")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == said + "  fault: the command line, not your code\n"


def test_a_device_that_is_not_there_is_refused(attempt: Run) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    written(RIGHT)
    result = attempt("pair-up", "--device", "cuda")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: there is no CUDA device here\n  where: --device cuda\n"
        "  cause: torch sees no NVIDIA GPU, or this torch was built without CUDA\n"
        "  next:  mhaquiz doctor, or --device cpu\n  fault: the command line, not your code\n"
    )


def test_a_starter_that_cannot_be_written(attempt: Run) -> None:
    Path("pair_up.py").symlink_to("nowhere/else.py")
    result = attempt("pair-up")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: `pair_up.py` cannot be read\n")


# Formats

KEYS = {
    "schema", "mhaquiz", "problem", "title", "problem_revision", "file", "verdict", "exit_code", "seed", "device", "torch",
    "python", "sandbox", "duration_ms", "score", "visible", "hidden", "checks", "cases", "mistakes", "operations", "run",
    "notes", "error",
}  # fmt: skip
CHECK_KEYS = {
    "name", "status", "code", "message", "why", "reason", "waits_for", "line", "column", "end_line", "end_column",
    "expected", "actual", "case", "case_name", "data", "snippet",
}  # fmt: skip


def test_the_json_document(attempt: Run) -> None:
    written("import torch\n\n\ndef pair_up(x):\n    return x.clone().unflatten(-1, (-1, 2))\n")
    result = attempt("pair-up", "--format", "json", "--seed", "7")
    document: dict[str, Any] = json.loads(result.stdout)
    assert set(document) == KEYS
    assert (document["schema"], document["seed"], document["device"]) == (1, "7", "cpu")
    assert set(document["score"]) == {"earned", "possible"}
    assert document["visible"] == {"passed": 0, "total": 2}
    assert document["hidden"] == {"passed": 0, "total": 2}
    assert [c["name"] for c in document["checks"]] == [
        "returns", "shape", "dtype", "device", "finite", "values", "mutation", "determinism", "gradient",
    ]  # fmt: skip
    assert all(set(check) == CHECK_KEYS for check in document["checks"])
    failed = next(c for c in document["checks"] if c["status"] == "failed")
    assert (failed["name"], failed["code"], failed["case"]) == ("values", "value", {"B": 3, "P": 5})
    waiting = document["checks"][-1]
    assert (waiting["status"], waiting["waits_for"]) == ("skipped", "values")
    assert [set(m) for m in document["mistakes"]] == [{"id", "title", "explanation", "fix"}]
    assert document["mistakes"][0]["id"] == "not-doubled"
    (operation,) = document["operations"]
    assert operation == {
        "op": "aten.clone", "call": "clone", "line": 5, "column": 12, "end_line": 5, "end_column": 21,
        "new_bytes": 120, "kind": "explicit_copy",
    }  # fmt: skip
    assert document["run"] == {"outcome": "returned", "stdout": "", "traceback": None, "detail": ""}
    assert document["error"] is None
    assert {c["sizes"] is None for c in document["cases"] if not c["visible"]} == {True}


def test_what_the_submission_prints_stays_out_of_the_document(attempt: Run) -> None:
    written('print(\'{"verdict": "passed"}\')\n' + WRONG)
    document = json.loads(attempt("pair-up", "--format", "json").stdout)
    assert document["verdict"] == "failed"
    assert document["run"]["stdout"].startswith('{"verdict": "passed"}\n')


def test_a_seed_repeats_an_attempt(attempt: Run) -> None:
    written(WRONG)
    one, two, other = (json.loads(attempt("pair-up", "--format", "json", "--seed", s).stdout) for s in "aab")
    assert one["checks"] == two["checks"]
    assert one["checks"] != other["checks"]
    fresh = [json.loads(attempt("pair-up", "--format", "json").stdout)["seed"] for _ in range(2)]
    assert fresh[0] != fresh[1]


def test_concise_is_one_line_a_finding(attempt: Run) -> None:
    written(WRONG)
    lines = attempt("pair-up", "--format", "concise").stdout.splitlines()
    assert lines[0].startswith("pair_up.py: values: 30 of 30 elements are wrong; out[0, 0, 0] is ")
    assert lines[1:] == ["pair-up: Not passed: 7 of 9 checks, 0 of 2 visible cases, 0 of 2 hidden cases."]


def test_github_annotates_the_file(attempt: Run) -> None:
    written("import torch\n\n\ndef pair_up(x):\n    return x.nothing\n")
    result = attempt("pair-up", "--format", "github")
    assert result.exit_code == 1
    assert result.stdout.startswith("::error file=pair_up.py,line=5,")
    assert result.stdout.count("\n") == 1, "one command, no empty line"
    assert "AttributeError" in result.stdout


def test_the_report_is_written_as_html(attempt: Run) -> None:
    written(WRONG)
    attempt("pair-up", "--report", "out.html")
    text = Path("out.html").read_text(encoding="utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>")
    assert "<script" not in text
    assert "Scale and pair the features" in text


# What is kept


def test_an_attempt_is_kept(attempt: Run) -> None:
    written(WRONG)
    attempt("pair-up")
    assert "attempt 2" in attempt("pair-up").stdout.splitlines()[0]


def test_a_store_that_cannot_be_written_costs_the_record_not_the_grade(attempt: Run, home: Path) -> None:
    home.write_text("in the way")
    written(RIGHT)
    result = attempt("pair-up")
    assert result.exit_code == 0
    assert "✓ values" in result.stdout
    assert result.stderr.startswith("warning: ")


def test_in_a_process_of_its_own(process: Process, pack: Path) -> None:
    written(RIGHT)
    done = process("attempt", "pair-up", "--format", "json", "--problems", str(pack))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["verdict"] == "passed"


# Time


def test_more_time_can_be_given(attempt: Run) -> None:
    """For one attempt, in place of the problem's."""
    written("import time\n\n\ndef pair_up(x):\n    time.sleep(0.4)\n")
    result = attempt("pair-up", "--seconds", "0.3")
    assert result.exit_code == 1
    assert "it took more than 0.3 s" in result.output
    assert "For code that is compiled first, `--seconds 120` allows more." in " ".join(result.output.split())


def test_no_time_at_all_is_wrong_usage(attempt: Run) -> None:
    assert attempt("pair-up", "--seconds", "0").exit_code == 2


# The sandbox


def test_a_sandbox_that_is_not_there_is_said(attempt: Run) -> None:
    written(RIGHT)
    result = attempt("pair-up", MHAQUIZ_SANDBOX="moat")
    assert result.exit_code == 2
    assert "there is no sandbox `moat`" in result.output
    assert "set it to one of bubblewrap, landlock, plain" in result.output
