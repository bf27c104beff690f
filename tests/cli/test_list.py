"""`mhaquiz list` and `mhaquiz` alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grader.cli.home import ago
from grader.report import Verdict
from grader.store.store import open_store
from tests.cli.conftest import Process, Record, Run


def test_every_entry_has_its_members(run: Run) -> None:
    result = run("list", "--format", "json")
    assert result.exit_code == 0
    entries = {entry["id"]: entry for entry in json.loads(result.stdout)}
    assert entries["split-heads"] == {
        "id": "split-heads",
        "title": "Split the heads",
        "track": "mha",
        "level": 2,
        "state": "new",
        "minutes": 10,
        "summary": "Turn (B, S, D) into (B, H, S, d) without moving a byte.",
        "requires": ["split-token"],
    }


def test_listing_leaves_no_trace(run: Run, home: Path) -> None:
    assert run("list").exit_code == 0
    assert run().exit_code == 0
    assert not home.exists()


@pytest.mark.parametrize(
    ("verdict", "state"),
    [(Verdict.PASSED, "passed"), (Verdict.FAILED, "tried"), (Verdict.NOT_STARTED, "new")],
)
def test_the_state_is_this_users(run: Run, record: Record, verdict: Verdict, state: str) -> None:
    record("split-heads", verdict)
    entries = {entry["id"]: entry["state"] for entry in json.loads(run("list", "--format", "json").stdout)}
    assert entries["split-heads"] == state


def test_one_track_as_text(run: Run, pack: Path) -> None:
    result = run("list", "mine", "--problems", str(pack))
    assert result.stdout == (
        "mine   0 of 1 passed\n"
        "    new      pair-up  level 1    5 min  Scale and pair the features\n"
        "\n"
        "Next: mhaquiz show pair-up\n"
    )


def test_a_passed_and_a_tried_problem_have_a_mark_and_a_word(run: Run, pack: Path, record: Record) -> None:
    record("pair-up", Verdict.FAILED)
    tried = run("list", "mine", "--problems", str(pack)).stdout
    assert "  · tried    pair-up" in tried
    assert "Next: mhaquiz attempt pair-up\n" in tried
    record("pair-up")
    assert "  ✓ passed   pair-up" in run("list", "mine", "--problems", str(pack)).stdout


@pytest.mark.parametrize("width", [40, 59, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(run: Run, width: int) -> None:
    lines = run("list", COLUMNS=str(width)).stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert any("split-heads" in line for line in lines)


def test_an_unknown_track_gets_the_nearest(run: Run) -> None:
    result = run("list", "mah")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        'error: there is no track "mah"\n'
        "  where: the TRACK on the command line\n"
        "  cause: did you mean mha?\n"
        "  next:  mhaquiz list mha\n"
        "  fault: the command line, not your code\n"
    )


def test_an_unknown_track_gets_every_track_when_none_is_near(run: Run) -> None:
    assert "  cause: the tracks are mha" in run("list", "zzz").stderr


def test_a_damaged_record_makes_every_state_unknown_and_says_so(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "mhaquiz.db").write_text("no database")
    result = run("list", "--format", "json")
    assert result.exit_code == 0
    assert {entry["state"] for entry in json.loads(result.stdout)} == {"unknown"}
    assert result.stderr.startswith(
        "warning: the record of your attempts cannot be read: file is not a database\n"
    )
    assert "  ? unknown  split-heads" in run("list").stdout


def test_a_home_that_cannot_be_made_still_lists(process: Process, home: Path) -> None:
    home.write_text("in the way")
    done = process("list")
    assert (done.returncode, done.stderr) == (0, "")
    assert "split-heads" in done.stdout


def test_a_broken_problem_file_is_exit_code_3_with_its_place(run: Run, pack: Path) -> None:
    broken = pack / "problems" / "mine" / "broken.yaml"
    broken.write_text("format: 1\nid: [\n", encoding="utf-8")
    result = run("list", "--format", "json", "--problems", str(pack))
    assert result.exit_code == 3
    errors = json.loads(result.stdout)["error"]["errors"]
    assert errors[0]["file"] == str(broken)
    assert errors[0]["line"] >= 2
    assert str(broken) in result.stderr


# Home


def test_home_says_where_you_are_and_what_is_next(run: Run) -> None:
    result = run()
    assert result.exit_code == 0
    assert result.stdout.startswith("mhaquiz   0 of ")
    assert "\n  mha  " in result.stdout
    assert result.stdout.splitlines()[-1].startswith("Next: mhaquiz show ")


def test_home_remembers_the_last_attempt(run: Run, record: Record) -> None:
    record("split-heads", Verdict.FAILED)
    lines = run().stdout.splitlines()
    assert "  last: split-heads, not passed yet, 1 of 2 checks, just now" in lines
    assert lines[-1] == "Next: mhaquiz attempt split-heads"


def test_home_counts_what_is_passed(run: Run, record: Record) -> None:
    record("split-heads")
    assert run().stdout.startswith("mhaquiz   1 of ")


@pytest.mark.parametrize("options", [["--plain"], []])
def test_home_without_colour_or_in_plain(run: Run, options: list[str]) -> None:
    said = run(*options).stdout
    assert "\x1b" not in said
    assert ("....." if options else "·····") in said


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(hours=2, minutes=59), "2 hours ago"),
        (timedelta(days=40), "40 days ago"),
    ],
)
def test_how_long_ago(gone: timedelta, words: str, record: Record) -> None:
    record()
    with open_store() as store:
        last = store.last_attempt()
    assert last is not None
    assert ago(last, datetime.fromisoformat(last.started_at).astimezone(UTC) + gone) == words
