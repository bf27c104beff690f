"""Why the store cannot be used, in words. A file is never deleted, renamed or overwritten here."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from grader.errors import Fault, MhaquizError


class StoreUnavailable(MhaquizError):
    """Attempts and hints cannot be read or kept. A grade never depends on it: callers warn and go on."""

    fault = Fault.ENVIRONMENT


def unavailable(path: Path, error: Exception) -> StoreUnavailable:
    """The error for what SQLite or the operating system said about `path`."""
    if isinstance(error, OSError):
        return _no_folder(path, error)
    kind = _kind(error)
    if kind == "locked":
        return _locked(path)
    if kind == "readonly":
        return _read_only(path)
    if kind == "corrupt":
        return _corrupt(path, error)
    return StoreUnavailable(
        f"the record of your attempts cannot be used: {error}",
        where=str(path),
        cause="the disk is full, or the file may not be opened by this user",
        next_step="mhaquiz doctor, or set MHAQUIZ_HOME to another folder",
    )


def newer(path: Path, found: int, known: int) -> StoreUnavailable:
    """A later release wrote the file."""
    return StoreUnavailable(
        f"the record of your attempts has format {found}; this mhaquiz knows formats up to {known}",
        where=str(path),
        cause="a newer mhaquiz has used it",
        next_step="install that newer release again, or set MHAQUIZ_HOME to another folder",
    )


def _kind(error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    return {
        sqlite3.SQLITE_BUSY: "locked",
        sqlite3.SQLITE_LOCKED: "locked",
        sqlite3.SQLITE_READONLY: "readonly",
        sqlite3.SQLITE_CORRUPT: "corrupt",
        sqlite3.SQLITE_NOTADB: "corrupt",
    }.get(primary or 0, "other")


def _no_folder(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"the folder for the record of your attempts cannot be made: {error.strerror or error}",
        where=str(path.parent),
        cause="this user may not write there, or a file is in the way",
        next_step="set MHAQUIZ_HOME to a folder you can write to",
    )


def _locked(path: Path) -> StoreUnavailable:
    return StoreUnavailable(
        "the record of your attempts is locked by another program",
        where=str(path),
        cause="another mhaquiz or a database browser has held it open for writing for several seconds",
        next_step="close the other program and run the command again",
    )


def _read_only(path: Path) -> StoreUnavailable:
    return StoreUnavailable(
        "the record of your attempts cannot be written to",
        where=str(path),
        cause="the file or its folder is read-only for this user",
        next_step="set MHAQUIZ_HOME to a folder you can write to",
    )


def _corrupt(path: Path, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        f"the record of your attempts cannot be read: {error}",
        where=str(path),
        cause="the file is damaged, or is not one of mhaquiz's; it was left exactly as it is",
        next_step=f"mv '{path}' '{path}.damaged'  (mhaquiz then starts a new record)",
    )
