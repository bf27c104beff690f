"""`mhaquiz lint`: the gate on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from grader.host.engine import Engine
from tests.cli.conftest import Process, Run
from tests.cli.test_attempt import Warm


@pytest.fixture(autouse=True)
def warm(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.host.engine.Engine", lambda: Warm(engine))


@pytest.fixture
def small(pack: Path) -> Path:
    """The pack with one case in one precision."""
    path = pack / "problems" / "mine" / "pair-up.yaml"
    text = path.read_text()
    cases = text[text.index("cases:") : text.index("checks:")]
    path.write_text(
        text.replace(
            cases, "dtypes: [float64]\ncases:\n  - {name: plain, visible: true, sizes: {B: 3, P: 5}}\n"
        )
    )
    return pack


@pytest.fixture
def lint(run: Run, small: Path) -> Run:
    """`mhaquiz lint pair-up` with the small pack at hand."""

    def invoke(*arguments: str) -> Result:
        return run("lint", "pair-up", "--jobs", "1", "--problems", str(small), *arguments)

    return invoke


def test_a_sound_problem_passes_with_0(lint: Run) -> None:
    result = lint()
    assert result.exit_code == 0
    assert result.stdout == (
        "ok pair-up                  4 of 4 right pass, 6 of 6 wrong fail\n"
        "1 problems pass the gate; 10 versions judged as they must be\n"
    )


def test_an_unsound_problem_is_3_and_named_by_line(lint: Run, small: Path) -> None:
    path = small / "solutions" / "mine" / "pair-up.py"
    path.write_text(
        path.read_text().replace(
            "    return x.unflatten(-1, (-1, 2))\n", "    return 2 * x.unflatten(-1, (-1, 2))\n"
        )
    )
    line = path.read_text().splitlines().index("def wrong_not_doubled(x):") + 1
    result = lint()
    assert result.exit_code == 3
    assert result.stdout == (
        "x  pair-up                  4 of 4 right pass, 5 of 6 wrong fail\n"
        f"   {path}:{line}:1: `wrong_not_doubled` passed, expected failed\n"
        "1 of 1 problems do not pass the gate: pair-up\n"
        f"Next: correct the lines named, then run mhaquiz lint pair-up --problems {small}\n"
    )


def test_a_broken_file_is_3_and_nothing_is_run(lint: Run, small: Path) -> None:
    path = small / "problems" / "mine" / "pair-up.yaml"
    path.write_text(path.read_text().replace("  - gradient\n", "  - gradint\n"))
    result = lint()
    assert result.exit_code == 3
    assert result.stdout.splitlines()[0] == "x  pair-up                  not run"
    assert ": unknown check `gradint`, did you mean `gradient`?" in result.stdout


def test_the_json_document(lint: Run) -> None:
    result = lint("--format", "json")
    document = json.loads(result.stdout)
    assert set(document) >= {"problems", "stray_files"}
    assert document["stray_files"] == []
    (problem,) = document["problems"]
    assert (problem["id"], problem["status"], problem["errors"]) == ("pair-up", "passed", [])
    assert problem["kills"][4] == {
        "version": "wrong_halves_paired", "expected": "failed", "status": "failed", "named": ["halves-paired"],
    }  # fmt: skip


def test_the_errors_of_the_json_document(lint: Run, small: Path) -> None:
    path = small / "problems" / "mine" / "pair-up.yaml"
    path.write_text(path.read_text().replace("level: 1 ", "level: 9 "))
    document = json.loads(lint("--format", "json").stdout)
    (error,) = document["problems"][0]["errors"]
    assert set(error) == {"file", "line", "column", "message"}
    assert (error["file"], error["column"]) == (str(path), 8)


def test_the_matrix_is_written(lint: Run) -> None:
    assert lint("--matrix", "kills.md").exit_code == 0
    text = Path("kills.md").read_text()
    assert text.startswith("# Kill matrix\n")
    assert "| `wrong_not_doubled` | failed | not-doubled |" in text


def test_an_unknown_problem_is_2(run: Run) -> None:
    result = run("lint", "split-headz")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: there is no problem `split-headz`, did you mean `split-heads`?\n")


def test_in_processes_of_their_own(process: Process, small: Path) -> None:
    folder = small
    for kind, suffix in (("problems", "yaml"), ("solutions", "py")):
        path = folder / kind / "mine" / f"pair-up.{suffix}"
        text = path.read_text().replace("pair-up", "pair-on").replace("pair_up", "pair_on")
        (folder / kind / "mine" / f"pair-on.{suffix}").write_text(text)
    done = process("lint", "pair-up", "pair-on", "--jobs", "2", "--problems", str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "ok pair-up                  4 of 4 right pass, 6 of 6 wrong fail",
        "ok pair-on                  4 of 4 right pass, 6 of 6 wrong fail",
        "2 problems pass the gate; 20 versions judged as they must be",
    ]
