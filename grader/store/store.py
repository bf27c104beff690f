"""Attempts and hints of this user, kept in one SQLite file.

Guarantees: an attempt that was recorded is there for good, also when two graders record at once; reading
never makes a file; a damaged or newer file is left as it is and said so (`StoreUnavailable`).
Not here: what a state means to a learner (grader/progress.py), and any drawing.

The standard library's sqlite3, not SQLAlchemy: two tables need no mapper, and importing one costs more
than the whole of `mhaquiz list` may take.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from grader.report import Report, Verdict
from grader.store.database import open_for_reading, open_for_writing
from grader.store.errors import unavailable
from grader.store.folder import database_path

HINTS = 3


class State(StrEnum):
    """How far this user is with a problem."""

    NEW = "new"
    TRIED = "tried"
    PASSED = "passed"


@dataclass(frozen=True)
class Attempt:
    """One recorded grade. `started_at` is UTC, ISO 8601; `report` is the JSON document as it was given."""

    id: int
    problem: str
    revision: str
    started_at: str
    verdict: Verdict
    exit_code: int
    seed: str
    device: str
    duration_ms: float
    earned: int
    possible: int
    file: str
    source: str
    report: dict[str, Any]


def _now() -> datetime:
    return datetime.now(UTC)


def open_store(path: Path | None = None, *, clock: Callable[[], datetime] = _now) -> Store:
    """The store at `path`, else this user's. Opens nothing yet: the first use does, as far as it needs."""
    return Store(path if path is not None else database_path(), clock)


class Store:
    """Reads and writes attempts and hints; a context manager. Every method may raise StoreUnavailable."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = _now) -> None:
        self.path = path
        self._clock = clock
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = self._writer = None

    # Attempts

    def record_attempt(self, report: Report) -> int:
        """Keep a grade; returns which attempt at its problem this is, from 1.

        A grader's own fault is not an attempt: it is not kept, and the number of attempts so far comes back.
        """
        if report.verdict is Verdict.GRADER_ERROR:
            return self._count(report.problem)
        with self._writing() as connection:
            columns = _columns(report, self._clock())
            names, marks = ", ".join(columns), ", ".join("?" * len(columns))
            connection.execute(f"INSERT INTO attempts ({names}) VALUES ({marks})", tuple(columns.values()))
            row = connection.execute("SELECT count(*) FROM attempts WHERE problem = ?", (report.problem,))
            return int(row.fetchone()[0])

    def attempts(self, problem: str) -> list[Attempt]:
        """Every attempt at a problem, oldest first."""
        return [
            _attempt(row)
            for row in self._read("SELECT * FROM attempts WHERE problem = ? ORDER BY id", problem)
        ]

    def last_attempt(self) -> Attempt | None:
        """The attempt recorded last, at any problem."""
        rows = self._read("SELECT * FROM attempts ORDER BY id DESC LIMIT 1")
        return _attempt(rows[0]) if rows else None

    def states(self) -> dict[str, State]:
        """The state of every problem that is no longer new; one pass counts for good.

        An unchanged starter is kept as an attempt, but a problem with nothing else is still new.
        """
        rows = self._read(
            "SELECT problem, max(verdict = ?) AS passed FROM attempts WHERE verdict <> ? GROUP BY problem",
            str(Verdict.PASSED),
            str(Verdict.NOT_STARTED),
        )
        return {row["problem"]: State.PASSED if row["passed"] else State.TRIED for row in rows}

    def _count(self, problem: str) -> int:
        rows = self._read("SELECT count(*) FROM attempts WHERE problem = ?", problem)
        return int(rows[0][0]) if rows else 0

    # Hints

    def hints_shown(self, problem: str) -> int:
        """How many hints of a problem were shown."""
        rows = self._read("SELECT shown FROM hints WHERE problem = ?", problem)
        return int(rows[0]["shown"]) if rows else 0

    def show_hint(self, problem: str, *, up_to: int | None = None) -> int:
        """Note that the next hint is shown (or every one up to `up_to`); returns how many are now."""
        with self._writing() as connection:
            shown = _shown(connection, problem)
            now = min(HINTS, shown + 1 if up_to is None else max(shown, up_to))
            connection.execute(
                "INSERT INTO hints (problem, shown) VALUES (?, ?) "
                "ON CONFLICT (problem) DO UPDATE SET shown = excluded.shown",
                (problem, now),
            )
            return now

    def given_up(self, problem: str) -> bool:
        """Whether the solution was asked for before a pass."""
        rows = self._read("SELECT given_up_at FROM hints WHERE problem = ?", problem)
        return bool(rows) and rows[0]["given_up_at"] is not None

    def give_up(self, problem: str) -> None:
        """Note that the solution was asked for before a pass; the first time is kept."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO hints (problem, shown, given_up_at) VALUES (?, 0, ?) "
                "ON CONFLICT (problem) DO UPDATE "
                "SET given_up_at = coalesce(given_up_at, excluded.given_up_at)",
                (problem, _iso(self._clock())),
            )

    # The file

    def check(self) -> str:
        """What SQLite's own quick check says of the file: "ok", or "absent" where there is none yet."""
        rows = self._read("PRAGMA quick_check(1)")
        return str(rows[0][0]) if rows else "absent"

    def _read(self, query: str, *values: str) -> list[sqlite3.Row]:
        connection = self._writer or self._reader
        if connection is None:
            connection = self._reader = open_for_reading(self.path)
        if connection is None:
            return []
        try:
            return connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise unavailable(self.path, error) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its first statement on."""
        if self._writer is None:
            self._writer = open_for_writing(self.path)
        connection = self._writer
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise unavailable(self.path, error) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _shown(connection: sqlite3.Connection, problem: str) -> int:
    row = connection.execute("SELECT shown FROM hints WHERE problem = ?", (problem,)).fetchone()
    return int(row["shown"]) if row is not None else 0


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def _storable(text: str) -> str:
    """Text that SQLite takes: half a surrogate pair (from a file name that is not UTF-8) is escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _columns(report: Report, now: datetime) -> dict[str, str | int | float]:
    return {
        "problem": report.problem,
        "revision": report.problem_revision,
        "started_at": _iso(now - timedelta(milliseconds=report.duration_ms)),
        "verdict": str(report.verdict),
        "exit_code": report.exit_code,
        "seed": report.seed,
        "device": report.device,
        "duration_ms": report.duration_ms,
        "earned": report.score.passed,
        "possible": report.score.total,
        "file": _storable(report.file),
        "source": _storable(report.source),
        "report": json.dumps(report.to_json(), default=str),
    }


def _attempt(row: sqlite3.Row) -> Attempt:
    values = {**dict(row), "verdict": Verdict(row["verdict"]), "report": json.loads(row["report"])}
    return Attempt(**values)
