"""`mhaquiz new ID`: writes the two files of a problem that passes the gate, for an author to edit."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from grader.cli.common import App, format_option, pass_app, print_json, shared_options
from grader.errors import Fault, MhaquizError, UsageError
from grader.scaffold import is_name, scaffold


class CannotWrite(MhaquizError):
    """The files of a new problem cannot be written."""

    fault = Fault.ENVIRONMENT


@click.command("new")
@click.argument("problem", metavar="ID")
@click.option("--track", default="practice", show_default=True, help="The track it belongs to.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder of the pack, which holds problems/ and solutions/; here when absent.",
)
@format_option("text", "json")
@shared_options
@pass_app
def new(app: App, problem: str, track: str, folder: Path, output_format: str) -> None:
    """Write the files of a new problem: a small real one that passes `mhaquiz lint`, ready to edit.

    \b
    Examples:
      mhaquiz new rotate-heads
      mhaquiz new rotate-heads --track mine --dir my-pack
    """
    _check_name(problem, "ID")
    _check_name(track, "TRACK")
    _refuse_taken(app, problem)
    files = scaffold(problem, track)
    texts = {
        folder / "problems" / track / f"{problem}.yaml": files.problem,
        folder / "solutions" / track / f"{problem}.py": files.solution,
    }
    _refuse_existing([*texts, *folder.glob(f"problems/*/{problem}.yaml")])
    for path, text in texts.items():
        _write(path, text)
    steps = _steps(folder, problem)
    if output_format == "json":
        print_json({"id": problem, "files": [str(path) for path in texts], "next": steps, "error": None})
        return
    app.out("\n".join(f"wrote {path}" for path in texts))
    app.out("\nNext:\n" + "\n".join(f"  {number}. {step}" for number, step in enumerate(steps, 1)))


def _check_name(text: str, argument: str) -> None:
    if is_name(text):
        return
    better = "-".join(part for part in "".join(c if c.isalnum() else " " for c in text.lower()).split())
    raise UsageError(
        f'"{text}" cannot be the name of a {"problem" if argument == "ID" else "track"}',
        where=f"the {argument} on the command line",
        cause="names are lower-case letters and digits, in parts joined by single dashes",
        next_step=f"use {better}" if is_name(better) else "use a name such as split-heads",
    )


def _refuse_taken(app: App, problem: str) -> None:
    if problem in app.library().ids():
        raise UsageError(
            f'there is a problem called "{problem}" already',
            where=str(app.library().path_of(problem)),
            next_step="choose another ID; every problem has its own, in packs too",
        )


def _refuse_existing(paths: list[Path]) -> None:
    there = list(dict.fromkeys(path for path in paths if os.path.lexists(path)))
    if there:
        raise UsageError(
            f"{' and '.join(str(path) for path in there)} exist{'s' if len(there) == 1 else ''} already",
            where=str(there[0]),
            cause="nothing is overwritten, and nothing was written",
            next_step="choose another ID, or move the file away first",
        )


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise CannotWrite(
            f"the file cannot be written: {error.strerror or error}",
            where=str(path),
            cause="the folder is read-only for this user, or a file is in the way",
            next_step="name another folder with --dir",
        ) from error


def _steps(folder: Path, problem: str) -> list[str]:
    pack = shlex.quote(str(folder))
    return [
        "edit both files: the text, the cases, the mistakes and their code",
        f"mhaquiz lint {problem} --problems {pack}",
        f"mhaquiz show {problem} --problems {pack}",
    ]
