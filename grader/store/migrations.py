"""The tables, as an ordered list of steps. `PRAGMA user_version` counts the steps a file has seen.

A step that was published is never edited: what changes later is one more step at the end. Each step runs in
one transaction, so that a file is at one version or the next and never between two.
"""

from __future__ import annotations

import sqlite3

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE attempts (
            id          INTEGER PRIMARY KEY,
            problem     TEXT NOT NULL,
            revision    TEXT NOT NULL,
            started_at  TEXT NOT NULL,
            verdict     TEXT NOT NULL,
            exit_code   INTEGER NOT NULL,
            seed        TEXT NOT NULL,
            device      TEXT NOT NULL,
            duration_ms REAL NOT NULL,
            earned      INTEGER NOT NULL,
            possible    INTEGER NOT NULL,
            file        TEXT NOT NULL,
            source      TEXT NOT NULL,
            report      TEXT NOT NULL
        )
        """,
        "CREATE INDEX attempts_by_problem ON attempts (problem, id)",
        """
        CREATE TABLE hints (
            problem     TEXT PRIMARY KEY,
            shown       INTEGER NOT NULL DEFAULT 0,
            given_up_at TEXT
        )
        """,
    ),
)

LATEST = len(MIGRATIONS)


def version_of(connection: sqlite3.Connection) -> int:
    """How many steps the file has seen; 0 for a new one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the steps that the file has not seen; the connection must be in autocommit mode."""
    while version_of(connection) < LATEST:
        _apply_next(connection)


def _apply_next(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again under the lock: another process may have taken this step while we waited for it.
        version = version_of(connection)
        if version < LATEST:
            for statement in MIGRATIONS[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
