"""Opens the SQLite file: for reading without ever making one, for writing with the tables brought up to date.

WAL, foreign keys and a busy timeout, so that two graders beside each other wait instead of failing.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from grader.store.errors import newer, unavailable
from grader.store.migrations import LATEST, migrate, version_of

BUSY_SECONDS = 5.0


def open_for_reading(path: Path) -> sqlite3.Connection | None:
    """A connection to an existing file; None when there is none, which reads as "nothing happened yet"."""
    try:
        if not path.exists() or path.stat().st_size == 0:
            return None
        if _writable(path):
            return _prepared(path, f"{_uri(path)}?mode=rw")
        return _read_only(path)
    except (sqlite3.Error, OSError) as error:
        raise unavailable(path, error) from error


def open_for_writing(path: Path) -> sqlite3.Connection:
    """A connection to the file, which is made when absent."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _prepared(path, f"{_uri(path)}?mode=rwc")
    except (sqlite3.Error, OSError) as error:
        raise unavailable(path, error) from error


def _uri(path: Path) -> str:
    return path.absolute().as_uri()


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    connection.row_factory = sqlite3.Row
    return connection


def _prepared(path: Path, uri: str) -> sqlite3.Connection:
    connection = _connect(uri)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        _refuse_newer(path, connection)
        _use_wal(connection)
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only(path: Path) -> sqlite3.Connection:
    # Beside a file in WAL mode SQLite wants to make an index file. Where it may not and no log is pending,
    # nobody is writing and the file alone is the whole truth: `immutable` says so.
    pending = path.with_name(path.name + "-wal").exists()
    connection = _connect(f"{_uri(path)}?mode=ro" + ("" if pending else "&immutable=1"))
    try:
        _refuse_newer(path, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_newer(path: Path, connection: sqlite3.Connection) -> None:
    version = version_of(connection)
    if version > LATEST:
        raise newer(path, version, LATEST)


def _use_wal(connection: sqlite3.Connection) -> None:
    # SQLite does not wait for a lock when it changes the journal mode, so the waiting is done here.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
