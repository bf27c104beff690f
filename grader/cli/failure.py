"""Words for what ended a command early: a block on standard error, a JSON document on standard output."""

from __future__ import annotations

import os
import sys
import textwrap
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from grader.cli.common import App, Look, version
from grader.errors import Fault, GraderError, MhaquizError, ProblemFileError, UsageError
from grader.render.safe import clean, clean_inline
from grader.store.folder import state_folder

FAULTS = {
    Fault.USAGE: "the command line, not your code",
    Fault.SUBMISSION: "the submitted file",
    Fault.PROBLEM: "the problem file, not your code",
    Fault.GRADER: "the grader, not your code; it costs no attempt",
    Fault.ENVIRONMENT: "this machine's set-up, not your code",
}
DEBUG = "MHAQUIZ_DEBUG"
CRASH_FILE = "last-crash.txt"


def block(error: MhaquizError, look: Look) -> str:
    """The error as a reader sees it: what, where, cause, next, whose fault."""
    return "\n".join(_lines(f"{look.style('error:', fg='red', bold=True)} ", 7, error, look))


def warning(error: MhaquizError, look: Look) -> str:
    """The same for a trouble that the command got past."""
    return "\n".join(_lines(f"{look.style('warning:', fg='yellow', bold=True)} ", 9, error, look))


def _lines(head: str, indent: int, error: MhaquizError, look: Look) -> list[str]:
    lines = _wrapped(head, indent, clean(error.what), look.width)
    if isinstance(error, ProblemFileError):
        lines += [f"  {clean_inline(str(mistake))}" for mistake in error.mistakes]
    elif error.where:
        lines.append(f"  where: {clean_inline(error.where)}")
    if error.cause:
        lines += _wrapped("  cause: ", 9, clean(error.cause), look.width)
    if error.next_step:
        lines.append(f"  next:  {clean_inline(error.next_step)}")  # whole, so that it can be copied
    return [*lines, *_wrapped("  fault: ", 9, FAULTS[error.fault], look.width)]


def document(error: MhaquizError) -> dict[str, Any]:
    """The JSON document of a command that could not do its work."""
    member = error.to_json()
    if isinstance(error, ProblemFileError):
        member["errors"] = [
            {"file": item.file, "line": item.line, "column": item.column, "message": item.message}
            for item in error.mistakes
        ]
    return {"schema": 1, "mhaquiz": version(), "exit_code": error.exit_code, "error": member}


def _wrapped(head: str, indent: int, text: str, width: int) -> list[str]:
    """`text` behind `head`; long words such as paths stay whole even where that makes a long line."""
    room = max(20, width - indent)
    rows = [
        row
        for line in text.splitlines() or [""]
        for row in textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
    ]
    return [head + rows[0], *(" " * indent + row for row in rows[1:])]


def from_click(error: click.ClickException) -> UsageError:
    """Click's own complaint, in our form."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "mhaquiz"
    message = error.format_message()
    return UsageError(message[:1].lower() + message[1:], where=path, next_step=f"{path} --help")


class MissingPackage(MhaquizError):
    """A library that mhaquiz needs is not installed here."""

    fault = Fault.ENVIRONMENT


def from_crash(error: BaseException) -> MhaquizError:
    """An exception that nobody foresaw. Its traceback goes to a file, or to standard error when debugging."""
    package = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package and package not in ("grader", "mhaquiz"):
        return MissingPackage(
            f"the package {package} is not installed",
            where=sys.executable,
            cause="mhaquiz was installed without it, or runs in another Python than you think",
            next_step=f"{sys.executable} -m pip install {package}, then mhaquiz doctor",
        )
    text = "".join(traceback.format_exception(error))
    what = f"this is the grader's own fault: {type(error).__name__}: {error}".rstrip(": ")
    if os.environ.get(DEBUG) == "1":
        click.echo(text, file=sys.stderr)
        return GraderError(what, next_step="report it with the traceback above")
    kept = _keep(text)
    if kept is None:
        return GraderError(what, next_step=f"{DEBUG}=1 shows the full traceback; report it with that")
    return GraderError(what, where=f"full traceback: {kept}", next_step="report it with that file")


def _keep(text: str) -> Path | None:
    """Only the last crash is kept, so that nothing grows."""
    try:
        folder = state_folder()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / CRASH_FILE
        path.write_text(
            f"{datetime.now(UTC).isoformat()} mhaquiz {version()}\n{text}", errors="backslashreplace"
        )
    except OSError:
        return None
    return path


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON; read from the words, since parsing them may be what failed."""
    words = list(arguments)
    if "--" in words:
        words = words[: words.index("--")]
    return "--format=json" in words or ("--format", "json") in pairwise(words)


def warn(app: App, error: MhaquizError) -> None:
    """Print a trouble that the command got past, on standard error."""
    app.note(warning(error, app.look(sys.stderr)))
