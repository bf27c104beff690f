"""What every command shares: the settings of this run, the look of its output, options and JSON.

A command is a click command that takes `App` (`@pass_app`), prints through `App.out` or `print_json`, and
returns its exit code or None for 0. It raises MhaquizError for what a reader should see; main.py words it.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
from click.shell_completion import CompletionItem

from grader.errors import MhaquizError
from grader.store.store import Store, open_store

if TYPE_CHECKING:
    from grader.content import Library

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_WIDTH = 80
NARROWEST = 30


@dataclass(frozen=True)
class Look:
    """How to draw on one stream: colour, columns, whether it takes more than ASCII, no redraws if plain."""

    color: bool
    width: int
    unicode: bool
    plain: bool

    def style(self, text: str, **styles: Any) -> str:
        """`text` in click's styles, or as it is where there is no colour."""
        return click.style(text, **styles) if self.color else text


@dataclass
class App:
    """The settings of one run of the command line."""

    packs: tuple[Path, ...] = ()
    plain: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _library: Library | None = None

    def library(self) -> Library:
        """The built-in problems and every pack named by `--problems`."""
        if self._library is None:
            from grader.content import default_library

            self._library = default_library(self.packs)
        return self._library

    def store(self) -> Store:
        """This user's store; opens nothing until it is used."""
        return open_store()

    def look(self, stream: TextIO | None = None) -> Look:
        """How to draw on `stream` (standard output when None)."""
        chosen = stream if stream is not None else sys.stdout
        return Look(
            color=wants_color(chosen, self.environ, plain=self.plain),
            width=width_of(chosen, self.environ),
            unicode=takes_unicode(chosen),
            plain=self.plain or self.environ.get("TERM") == "dumb",
        )

    def out(self, text: str = "") -> None:
        """One line (or block) on standard output."""
        _write(text, sys.stdout, color=self.look().color)

    def note(self, text: str) -> None:
        """Words beside the result, on standard error."""
        _write(text, sys.stderr, color=self.look(sys.stderr).color)


def _write(text: str, stream: TextIO, *, color: bool) -> None:
    # The stream is named, since click would write UTF-8 to an ASCII one that it may choose itself.
    click.echo(text, file=stream, color=color)


pass_app = click.make_pass_decorator(App, ensure=True)


# The look


def wants_color(stream: TextIO, environ: Mapping[str, str], *, plain: bool = False) -> bool:
    """`--plain` and NO_COLOR say no, FORCE_COLOR says yes, TERM=dumb says no, else a terminal decides."""
    if plain or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return environ.get("TERM") != "dumb" and stream.isatty()


def width_of(stream: TextIO, environ: Mapping[str, str]) -> int:
    """COLUMNS when it is a number, else the terminal's, else 80."""
    columns = environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return max(NARROWEST, int(columns))
    if not stream.isatty():
        return DEFAULT_WIDTH
    return max(NARROWEST, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns)


def takes_unicode(stream: TextIO) -> bool:
    """Whether the marks and the box lines can be written to `stream`."""
    try:
        "✓✗–│█·→".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


_ASCII = {
    "✓": "+", "✗": "x", "–": "-", "—": "-", "−": "-", "→": "->", "←": "<-", "↔": "<->", "·": ".", "•": "*",
    "…": "...", "×": "x", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "√": "sqrt", "∞": "inf", "Σ": "sum",
    "│": "|", "─": "-", "█": "#", "“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "ᵀ": "^T",
}  # fmt: skip


def _to_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(_ASCII.get(char) or _escaped(char) for char in bad), error.end


def _escaped(char: str) -> str:
    return char.encode("ascii", "backslashreplace").decode("ascii")


def prepare_streams() -> None:
    """Make both streams write an ASCII stand-in for a character that their encoding lacks, never fail."""
    codecs.register_error("mhaquiz.ascii", _to_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="mhaquiz.ascii")


# JSON


def json_text(value: Any) -> str:
    """`value` as one strict JSON document in ASCII; NaN and infinities become the strings nan, inf, -inf."""
    return json.dumps(_strict(value), indent=2, default=str, allow_nan=False)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    click.echo(json_text(value))


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_strict(item) for item in value]
    return value


# Options and arguments


def format_option(*formats: str) -> Callable[[Command], Command]:
    """`--format`, with `formats` to choose from; the first is the default. Arrives as `output_format`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(list(formats)),
        default=formats[0],
        show_default=True,
        help="How to print the result.",
    )


def shared_options(command: Command) -> Command:
    """`--plain` and `--problems`, for `mhaquiz` and for every command; they set `App` and pass nothing on."""
    plain = click.option(
        "--plain", is_flag=True, expose_value=False, callback=_set_plain, help="No colour, boxes or redraws."
    )
    packs = click.option(
        "--problems",
        multiple=True,
        metavar="DIR",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=_add_packs,
        help="A folder of further problems; may be given more than once.",
    )
    return packs(plain(command))


def _set_plain(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).plain = True


def _add_packs(ctx: click.Context, _parameter: click.Parameter, value: tuple[Path, ...]) -> None:
    app = ctx.ensure_object(App)
    app.packs = (*app.packs, *value)


def problem_argument(*, required: bool = True) -> Callable[[Command], Command]:
    """The ID argument, completed from the library. Arrives as `problem`."""
    return click.argument("problem", metavar="ID", required=required, shell_complete=complete_problem)


def complete_problem(ctx: click.Context, _parameter: click.Parameter, start: str) -> list[CompletionItem]:
    """The IDs that begin with `start`, with their titles. A broken problem file must not spoil the shell."""
    titles: dict[str, str] = {}
    try:
        library = ctx.ensure_object(App).library()
        titles = dict.fromkeys(library.ids(), "")
        titles = {item.id: item.title for item in library.problems()}
    except (MhaquizError, OSError):
        pass
    return [CompletionItem(name, help=title) for name, title in titles.items() if name.startswith(start)]


def version() -> str:
    """The version of mhaquiz; looked up when asked, since the look-up costs as much as a list."""
    from grader.version import VERSION

    return VERSION
