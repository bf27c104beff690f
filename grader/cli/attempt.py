"""`mhaquiz attempt`: grade one file, once. Writes the starter when there is no file yet."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.common import App, complete_problem, format_option, pass_app, shared_options
from grader.cli.failure import warn
from grader.content import Library
from grader.errors import UsageError
from grader.store.errors import StoreUnavailable
from grader.store.folder import state_folder

if TYPE_CHECKING:
    from grader.host.sandbox.base import Sandbox
    from grader.judge import Task
    from grader.report import Report

_MARK = re.compile(rb"^\s*#\s*mhaquiz:\s*([A-Za-z0-9-]+)\s*$", re.MULTILINE)
_MARK_WITHIN = 4096
MOST_BYTES = 2_000_000


@dataclass(frozen=True)
class Given:
    """What was handed in: the problem, the name it is spoken of by and the bytes; `fresh` if just written."""

    problem: str
    file: str
    source: bytes
    fresh: bool = False


@click.command()
@click.argument("problem", metavar="ID|FILE", shell_complete=complete_problem)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", show_default=True,
              help="Where to run; auto takes CUDA when there is one.")  # fmt: skip
@click.option(
    "--seed", metavar="TEXT", help="Repeat the inputs of an earlier attempt; fresh and secret when absent."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True, max=3600),
    help="Time for all calls, when the problem's is too short: for code that is compiled first.",
)
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), help="Also write the report as HTML."
)
@format_option("text", "concise", "json", "github")
@shared_options
@pass_app
def attempt(
    app: App,
    problem: str,
    file: Path | None,
    device: str,
    seed: str | None,
    seconds: float | None,
    report: Path | None,
    output_format: str,
) -> int:
    """Grade your solution of one problem.

    Without FILE it looks for one named after the problem in the current folder, and writes the starter
    there when there is none. A file marked `# mhaquiz: split-heads` needs no ID. FILE may be - for standard
    input. Exit code 0: passed, 1: not passed, 2: wrong usage, 3: broken problem file, 4: the grader's fault.

    \b
    Examples:
      mhaquiz attempt split-heads
      mhaquiz attempt split-heads my_answer.py --format json
      mhaquiz attempt my_answer.py
    """
    from grader.host.engine import Engine

    library = app.library()
    given = _given(library, problem, file)
    with Engine(_sandbox(library, device)) as engine:
        # Its import of torch overlaps our own, which the next lines cause.
        engine.start()
        from grader.api import task
        from grader.judge import Submission, grade

        made = _with_seconds(task(library, given.problem), seconds)
        result = grade(made, Submission(given.source, given.file), engine, seed=seed, device=_device(device))
    number = _record(app, result)
    if report is not None:
        _write_html(report, result)
    _show(app, result, given, number, output_format)
    return result.exit_code


def _given(library: Library, problem: str, file: Path | None) -> Given:
    if file is None and (problem == "-" or _looks_like_a_file(library, problem)):
        return _marked(library, Path(problem))
    library.path_of(problem)
    if file is None:
        file = Path(f"{problem.replace('-', '_')}.py")
    if str(file) == "-":
        return Given(problem, "<stdin>", _read_stdin())
    if not file.exists() and not file.is_symlink():
        return _start(library, problem, file)
    return Given(problem, str(file), _read(file))


def _looks_like_a_file(library: Library, text: str) -> bool:
    return text not in library.ids() and (text.endswith(".py") or "/" in text or Path(text).is_file())


def _marked(library: Library, path: Path) -> Given:
    """A file that names its own problem in a comment."""
    file = "<stdin>" if str(path) == "-" else str(path)
    source = _read_stdin() if str(path) == "-" else _read(path)
    found = _MARK.search(source[:_MARK_WITHIN])
    if found is None:
        raise UsageError(
            f"`{file}` does not say which problem it solves",
            where=file,
            cause="a file given without an ID needs a line like `# mhaquiz: split-heads` near its top",
            next_step=f"mhaquiz attempt ID {file}",
        )
    problem = found[1].decode()
    library.path_of(problem)
    return Given(problem, file, source)


def _start(library: Library, problem: str, file: Path) -> Given:
    """Writes the starter where there is no file yet."""
    if not file.parent.is_dir() or file.suffix != ".py":
        raise UsageError(
            f"there is no file `{file}`",
            where=str(file),
            cause="its folder does not exist"
            if not file.parent.is_dir()
            else "a solution's name ends in .py",
            next_step=f"mhaquiz attempt {problem}",
        )
    source = f"# mhaquiz: {problem}\n{library.load(problem).starter}".encode()
    try:
        with open(file, "xb") as opened:
            opened.write(source)
    except OSError as error:
        raise UsageError(
            f"the starter cannot be written to `{file}`", where=str(file), cause=error.strerror or str(error)
        ) from None
    return Given(problem, str(file), source, fresh=True)


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return _checked_size(file.read(MOST_BYTES + 1), str(path))
    except OSError as error:
        what = f"`{path}` is a folder, not a file" if path.is_dir() else f"`{path}` cannot be read"
        raise UsageError(what, where=str(path), cause=error.strerror or str(error)) from None


def _read_stdin() -> bytes:
    return _checked_size(sys.stdin.buffer.read(MOST_BYTES + 1), "<stdin>")


def _checked_size(source: bytes, name: str) -> bytes:
    if len(source) > MOST_BYTES:
        raise UsageError(
            f"`{name}` is larger than {MOST_BYTES // 1_000_000} MB",
            where=name,
            cause="a solution is a few lines of Python",
            next_step="check that it is the right file",
        )
    return source


def _with_seconds(made: Task, seconds: float | None) -> Task:
    """The same problem with another time limit, if one was asked for."""
    if seconds is None:
        return made
    limits = made.problem.limits.model_copy(update={"seconds": seconds})
    return replace(made, problem=made.problem.model_copy(update={"limits": limits}))


def _sandbox(library: Library, device: str) -> Sandbox:
    """The strictest that works here; none on a GPU, which no sandbox here has been proved to reach."""
    from grader.host.sandbox import choose
    from grader.host.sandbox.plain import Plain

    on_gpu = device != "cpu" and Path("/dev/nvidiactl").exists()
    return Plain() if on_gpu else choose((*library.folders(), state_folder()))


def _device(name: str) -> str:
    """The device to run on. Never falls back in silence: what was asked for and is not there is an error."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            "there is no CUDA device here",
            where="--device cuda",
            cause="torch sees no NVIDIA GPU, or this torch was built without CUDA",
            next_step="mhaquiz doctor, or --device cpu",
        )
    if name == "mps":
        raise UsageError(
            "MPS cannot be used",
            where="--device mps",
            cause="values are judged in double precision, which MPS does not have",
            next_step="--device cpu",
        )
    return name


def _record(app: App, result: Report) -> int | None:
    """Keeps the attempt; a store that cannot be written costs the record, never the grade."""
    try:
        with app.store() as store:
            return store.record_attempt(result)
    except StoreUnavailable as error:
        warn(app, error)
        return None


def _write_html(path: Path, result: Report) -> None:
    from grader.render.html import render_html

    try:
        path.write_text(render_html(result), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the report cannot be written to `{path}`", where=str(path), cause=error.strerror or str(error)
        ) from None


def _show(app: App, result: Report, given: Given, number: int | None, output_format: str) -> None:
    if given.fresh:
        app.note(f"Wrote the starter to {given.file}.")
    if output_format == "json":
        from grader.render.json import render_json

        click.echo(render_json(result))
    elif output_format == "concise":
        from grader.render.concise import render_concise

        app.out(render_concise(result).rstrip("\n"))
    elif output_format == "github":
        from grader.render.github import render_github

        app.out(render_github(result).rstrip("\n"))
    else:
        _show_text(app, result, given, number)


def _show_text(app: App, result: Report, given: Given, number: int | None) -> None:
    from grader.render.terminal import render_terminal

    look = app.look()
    text = render_terminal(
        result,
        width=look.width,
        color=look.color,
        ascii=not look.unicode,
        plain=look.plain,
        attempt=number,
        next_step=_next_step(app, result, given),
    )
    app.out(text.rstrip("\n"))


def _next_step(app: App, result: Report, given: Given) -> str:
    """The exact next command."""
    packs = "".join(f" --problems {shlex.quote(str(pack))}" for pack in app.packs)
    again = f"mhaquiz attempt {given.problem}"
    if given.file not in ("<stdin>", f"{given.problem.replace('-', '_')}.py"):
        again += f" {shlex.quote(given.file)}"
    again += packs
    if str(result.verdict) == "passed":
        return f"mhaquiz solution {given.problem}{packs}, then mhaquiz for the next problem"
    if str(result.verdict) == "grader_error":
        return "mhaquiz doctor"
    if given.fresh or str(result.verdict) == "not_started":
        return f"edit {given.file}, then {again}"
    return f"edit {given.file}, then {again} · stuck: mhaquiz hint {given.problem}{packs}"
