"""Attempts and hints are kept, once each, and every trouble with the file is said in words."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.errors import Fault, MhaquizError
from grader.report import CheckResult, Report, Status, Verdict
from grader.store import database
from grader.store.errors import StoreUnavailable, unavailable
from grader.store.folder import database_path, state_folder
from grader.store.migrations import LATEST, migrate, version_of
from grader.store.store import State, Store, open_store

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def report(verdict: Verdict = Verdict.FAILED, problem: str = "split-heads", **changes: object) -> Report:
    base = Report(
        version="0.1.0",
        problem=problem,
        title="Split the heads",
        problem_revision="abc123",
        file="split_heads.py",
        verdict=verdict,
        seed="17",
        device="cpu",
        torch="2.13.0",
        python="3.11.7",
        sandbox="plain",
        duration_ms=1500.0,
        checks=(CheckResult("shape", Status.PASSED), CheckResult("values", Status.FAILED, "differ")),
        source="def split_heads(x, num_heads):\n    return x\n",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "home" / "mhaquiz.db", clock=lambda: NOON) as opened:
        yield opened


# Attempts


def test_attempts_at_a_problem_are_numbered_from_one(store: Store) -> None:
    assert store.record_attempt(report()) == 1
    assert store.record_attempt(report(problem="merge-heads")) == 1
    assert store.record_attempt(report()) == 2


def test_an_attempt_keeps_every_fact(store: Store) -> None:
    store.record_attempt(report())
    (kept,) = store.attempts("split-heads")
    assert kept.verdict is Verdict.FAILED
    assert kept.started_at == "2026-03-01T11:59:58.500+00:00"
    assert (kept.revision, kept.seed, kept.device, kept.exit_code) == ("abc123", "17", "cpu", 1)
    assert (kept.earned, kept.possible, kept.duration_ms) == (1, 2, 1500.0)
    assert (kept.file, kept.source) == ("split_heads.py", report().source)
    assert kept.report == report().to_json()


def test_an_attempt_outlives_the_connection(store: Store) -> None:
    store.record_attempt(report())
    store.close()
    with open_store(store.path) as again:
        assert len(again.attempts("split-heads")) == 1
        assert again.record_attempt(report()) == 2


def test_the_graders_own_fault_is_no_attempt(store: Store) -> None:
    store.record_attempt(report())
    assert store.record_attempt(report(Verdict.GRADER_ERROR)) == 1
    assert [kept.verdict for kept in store.attempts("split-heads")] == [Verdict.FAILED]


def test_only_the_graders_own_fault_makes_no_file(store: Store) -> None:
    assert store.record_attempt(report(Verdict.GRADER_ERROR)) == 0
    assert not store.path.parent.exists()


def test_a_file_name_that_is_not_utf8_and_a_nan_are_kept(store: Store) -> None:
    odd = report(file="caf\udce9.py", source="x = '\udcff'", duration_ms=float("inf"))
    store.record_attempt(replace(odd, duration_ms=1.0))
    (kept,) = store.attempts("split-heads")
    assert kept.file == r"caf\udce9.py"
    assert kept.source == r"x = '\udcff'"


@pytest.mark.parametrize(
    ("verdicts", "state"),
    [
        ([Verdict.FAILED], State.TRIED),
        ([Verdict.INVALID], State.TRIED),
        ([Verdict.NOT_STARTED, Verdict.FAILED], State.TRIED),
        ([Verdict.FAILED, Verdict.PASSED], State.PASSED),
        ([Verdict.PASSED, Verdict.FAILED], State.PASSED),
    ],
)
def test_the_state_follows_from_the_attempts(store: Store, verdicts: list[Verdict], state: State) -> None:
    for verdict in verdicts:
        store.record_attempt(report(verdict))
    assert store.states() == {"split-heads": state}


def test_an_unchanged_starter_leaves_a_problem_new(store: Store) -> None:
    store.record_attempt(report(Verdict.NOT_STARTED))
    assert store.states() == {}


def test_the_last_attempt_is_the_one_recorded_last(store: Store) -> None:
    assert store.last_attempt() is None
    store.record_attempt(report())
    store.record_attempt(report(problem="merge-heads"))
    last = store.last_attempt()
    assert last is not None
    assert last.problem == "merge-heads"


# Hints


def test_hints_are_counted_up_to_three(store: Store) -> None:
    assert store.hints_shown("split-heads") == 0
    assert [store.show_hint("split-heads") for _ in range(4)] == [1, 2, 3, 3]
    assert store.hints_shown("split-heads") == 3
    assert store.hints_shown("merge-heads") == 0


def test_hints_shown_at_once_never_count_back(store: Store) -> None:
    assert store.show_hint("split-heads", up_to=3) == 3
    assert store.show_hint("split-heads", up_to=1) == 3


def test_giving_up_is_remembered_with_its_first_time(store: Store) -> None:
    assert not store.given_up("split-heads")
    store.show_hint("split-heads")
    store.give_up("split-heads")
    later = Store(store.path, lambda: datetime(2027, 1, 1, tzinfo=UTC))
    later.give_up("split-heads")
    later.close()
    assert store.given_up("split-heads")
    assert store.hints_shown("split-heads") == 1
    with sqlite3.connect(store.path) as raw:
        assert raw.execute("SELECT given_up_at FROM hints").fetchall() == [("2026-03-01T12:00:00.000+00:00",)]
    raw.close()


def test_giving_up_is_no_pass(store: Store) -> None:
    store.give_up("split-heads")
    assert store.states() == {}


# The file


def test_reading_makes_no_file(store: Store) -> None:
    assert store.states() == {}
    assert store.attempts("split-heads") == []
    assert store.check() == "absent"
    assert not store.path.parent.exists()


def test_the_file_is_in_wal_mode_with_foreign_keys_at_the_latest_version(store: Store) -> None:
    store.record_attempt(report())
    assert store.check() == "ok"
    connection = database.open_for_reading(store.path)
    assert connection is not None
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    assert version_of(connection) == LATEST
    connection.close()


def test_a_migration_that_fails_leaves_the_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (("CREATE TABLE a (x)",), ("CREATE TABLE b (x)", "CREATE TABLE a (y)"))
    monkeypatch.setattr("grader.store.migrations.MIGRATIONS", steps)
    monkeypatch.setattr("grader.store.migrations.LATEST", 2)
    connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="table a already exists"):
        migrate(connection)
    tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert (version_of(connection), tables) == (1, [("a",)])
    connection.close()


def test_migrating_twice_changes_nothing(store: Store) -> None:
    store.record_attempt(report())
    connection = sqlite3.connect(store.path, isolation_level=None)
    migrate(connection)
    assert connection.execute("SELECT count(*) FROM attempts").fetchone() == (1,)
    connection.close()


def unusable(use: Callable[[], object]) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as caught:
        use()
    assert isinstance(caught.value, MhaquizError)
    assert caught.value.fault is Fault.ENVIRONMENT
    return caught.value


def test_a_damaged_file_is_said_so_and_left_as_it_is(store: Store) -> None:
    store.path.parent.mkdir(parents=True)
    store.path.write_bytes(b"not a database at all" * 100)
    for use in (store.states, lambda: store.record_attempt(report())):
        error = unusable(use)
        assert error.what == "the record of your attempts cannot be read: file is not a database"
        assert error.where == str(store.path)
        assert error.cause == "the file is damaged, or is not one of mhaquiz's; it was left exactly as it is"
        assert (
            error.next_step == f"mv '{store.path}' '{store.path}.damaged'  (mhaquiz then starts a new record)"
        )
    assert store.path.read_bytes() == b"not a database at all" * 100
    assert [path.name for path in store.path.parent.iterdir()] == ["mhaquiz.db"]


def test_damage_inside_a_database_is_said_so(store: Store) -> None:
    for _ in range(30):
        store.record_attempt(report())
    store.close()
    content = bytearray(store.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store.path.write_bytes(content)
    assert "malformed" in unusable(store.states).what
    assert store.path.read_bytes() == bytes(content)


def test_a_newer_file_is_refused_and_left_as_it_is(store: Store) -> None:
    store.record_attempt(report())
    store.close()
    with sqlite3.connect(store.path) as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    for use in (store.states, lambda: store.record_attempt(report())):
        error = unusable(use)
        assert (
            error.what
            == f"the record of your attempts has format 99; this mhaquiz knows formats up to {LATEST}"
        )
        assert error.cause == "a newer mhaquiz has used it"
        assert error.next_step == "install that newer release again, or set MHAQUIZ_HOME to another folder"


def test_a_locked_file_is_said_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    store.record_attempt(report())
    store.close()
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    error = unusable(lambda: store.record_attempt(report()))
    other.execute("ROLLBACK")
    other.close()
    assert error.what == "the record of your attempts is locked by another program"
    assert error.next_step == "close the other program and run the command again"
    assert store.record_attempt(report()) == 2


def test_a_lock_does_not_keep_anyone_from_reading(store: Store) -> None:
    store.record_attempt(report())
    store.close()
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert store.states() == {"split-heads": State.TRIED}
    other.execute("ROLLBACK")
    other.close()


def test_a_file_in_the_way_of_the_folder_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    store = open_store(tmp_path / "home" / "mhaquiz.db")
    assert store.states() == {}
    error = unusable(lambda: store.record_attempt(report()))
    assert error.what == "the folder for the record of your attempts cannot be made: File exists"
    assert error.where == str(tmp_path / "home")
    assert error.next_step == "set MHAQUIZ_HOME to a folder you can write to"


def test_a_folder_in_the_place_of_the_file_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "mhaquiz.db").mkdir()
    error = unusable(lambda: open_store(tmp_path / "mhaquiz.db").record_attempt(report()))
    assert error.what == "the record of your attempts cannot be used: unable to open database file"
    assert error.next_step == "mhaquiz doctor, or set MHAQUIZ_HOME to another folder"


def test_a_read_only_database_is_said_so(store: Store) -> None:
    store.record_attempt(report())
    store.close()
    raw = sqlite3.connect(f"{store.path.as_uri()}?mode=ro", uri=True)
    with pytest.raises(sqlite3.OperationalError) as caught:
        raw.execute("DELETE FROM attempts")
    raw.close()
    error = unavailable(store.path, caught.value)
    assert error.what == "the record of your attempts cannot be written to"
    assert error.cause == "the file or its folder is read-only for this user"


def test_a_read_only_home_can_be_read() -> None:
    """As another user where we are root, since nothing is read-only for root."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        with open_store(home / "mhaquiz.db") as store:
            store.record_attempt(report(Verdict.PASSED))
        (home / "mhaquiz.db").chmod(0o444)
        home.chmod(0o555)
        child = os.fork()
        if child == 0:
            os._exit(_read_as_nobody(home / "mhaquiz.db"))
        _, status = os.waitpid(child, 0)
        home.chmod(0o755)
    assert os.waitstatus_to_exitcode(status) == 0


def _read_as_nobody(path: Path) -> int:
    try:
        if os.getuid() == 0:
            os.setuid(65534)
        store = open_store(path)
        if store.states() != {"split-heads": State.PASSED}:
            return 2
        try:
            store.record_attempt(report())
        except StoreUnavailable:
            return 0
        return 3
    except BaseException:
        return 4


# Several processes

RECORDER = """
import sys
from pathlib import Path
from grader.report import Report, Verdict
from grader.store.store import open_store
report = Report("0", "split-heads", "", "", "", Verdict.FAILED, "", "cpu", "", "", "", 1.0)
sys.stdin.readline()
for _ in range(25):
    with open_store(Path(sys.argv[1])) as store:
        print(store.record_attempt(report))
"""


def test_two_processes_that_record_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "home" / "mhaquiz.db"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", RECORDER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    numbers = [int(word) for process in both for word in process.communicate(timeout=60)[0].split()]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(numbers) == list(range(1, 51))
    with open_store(path) as store:
        assert len(store.attempts("split-heads")) == 50
        assert store.check() == "ok"


# Where it lies


def test_the_home_variable_moves_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MHAQUIZ_HOME", str(tmp_path / "elsewhere"))
    assert state_folder() == tmp_path / "elsewhere"
    assert database_path() == tmp_path / "elsewhere" / "mhaquiz.db"


def test_without_the_variable_it_lies_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MHAQUIZ_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder().name == "mhaquiz"
    assert tmp_path in state_folder().parents


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MHAQUIZ_HOME", "")
    assert state_folder().name == "mhaquiz"
