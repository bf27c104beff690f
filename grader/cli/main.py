"""The command `mhaquiz`: finds and runs the command asked for, and turns every ending into an exit code.

A command's module is imported only when it is used, so that `mhaquiz list` pays for nothing else. Errors are
caught here, once: what a reader should do goes to standard error, and with `--format json` standard output is
one JSON document whatever happened. Nobody ever sees a traceback of the grader unless they ask for it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from grader.cli.common import App, complete_problem, prepare_streams, print_json, shared_options, version
from grader.cli.failure import block, document, from_click, from_crash, wants_json
from grader.errors import MhaquizError, UsageError

INTERRUPTED = 130
CLOSED_PIPE = 141


class Lazy:
    """Where a command lies and its line in the overview."""

    def __init__(self, name: str, says: str, attribute: str | None = None) -> None:
        self.module = f"grader.cli.{name}"
        self.attribute = attribute or name
        self.says = says

    def load(self) -> click.Command:
        """Import the command."""
        command = getattr(import_module(self.module), self.attribute)
        assert isinstance(command, click.Command)
        return command


PRACTICE = {
    "list": Lazy("list", "The problems, and how far you are with each.", "list_command"),
    "show": Lazy("show", "A problem: its text, its starter and what is checked."),
    "attempt": Lazy("attempt", "Grade a file, or write the starter when there is none yet."),
    "hint": Lazy("hint", "The next of a problem's three hints."),
    "solution": Lazy("solution", "The reference solution and what an interviewer asks next."),
}
AUTHORING = {
    "new": Lazy("new", "Write the files of a new problem, ready to edit."),
    "lint": Lazy("lint", "Check problem files and run every solution and known mistake."),
    "schema": Lazy("schema", "The JSON Schema of problem files, for editors."),
}
SETUP = {
    "doctor": Lazy("doctor", "Check this machine: what works, what does not, and the remedy."),
    "sandbox": Lazy("sandbox", "Check what encloses a submission on this machine."),
    "completion": Lazy("completion", "The completion script for your shell."),
}
SECTIONS = {"Practise": PRACTICE, "Write problems": AUTHORING, "Set up": SETUP}
COMMANDS = {name: lazy for section in SECTIONS.values() for name, lazy in section.items()}


class LazyGroup(click.Group):
    """A group whose commands are imported when used, and whose every ending has its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name)
        return lazy.load() if lazy is not None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise _no_such_command(ctx, args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, lazy.says) for name, lazy in section.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [
            CompletionItem(name, help=lazy.says)
            for name, lazy in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        prepare_streams()
        words = list(args) if args is not None else sys.argv[1:]

        def run() -> Any:
            return super(LazyGroup, self).main(
                words,
                "mhaquiz",
                complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )

        code = _ended(run, as_json=wants_json(words), plain="--plain" in words)
        if not standalone_mode:
            return code
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            return _interrupted()
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            return _pipe_closed()


def _ended(run: Callable[[], Any], *, as_json: bool, plain: bool) -> int:
    """Run a command to its end, whichever it is; the exit code."""
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _interrupted()
    except click.ClickException as error:
        return _report(from_click(error), as_json, plain)
    except MhaquizError as error:
        return _report(error, as_json, plain)
    except Exception as error:
        return _report(from_crash(error), as_json, plain)
    return code if isinstance(code, int) else 0


def _report(error: MhaquizError, as_json: bool, plain: bool) -> int:
    try:
        app = App(plain=plain)
        app.note(block(error, app.look(sys.stderr)))
        if as_json:
            print_json(document(error))
        sys.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    return error.exit_code


def _interrupted() -> int:
    click.echo("Stopped by Ctrl-C.", err=True)
    return INTERRUPTED


def _pipe_closed() -> int:
    """The reader of our output went away (`mhaquiz list | head`): end quietly, as a shell's own tools do."""
    # What is still buffered has nowhere to go; without this Python complains when it flushes at exit.
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return CLOSED_PIPE


def _no_such_command(ctx: click.Context, word: str) -> UsageError:
    close = get_close_matches(word, list(COMMANDS), n=1)
    if close:
        return UsageError(
            f'there is no command "{word}"', where="mhaquiz", cause=f"did you mean {close[0]}?",
            next_step=f"mhaquiz {close[0]} --help",
        )  # fmt: skip
    ids = {item.value for item in complete_problem(ctx, ctx.command.params[0], word)}
    if word in ids:
        return UsageError(
            f'there is no command "{word}"', where="mhaquiz", cause=f"{word} is a problem",
            next_step=f"mhaquiz show {word}",
        )  # fmt: skip
    return UsageError(f'there is no command "{word}"', where="mhaquiz", next_step="mhaquiz --help")


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@shared_options
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, on: _version(ctx, on),
    help="Show the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context) -> int | None:
    """Interview practice for multi-head attention.

    Type `mhaquiz` alone to see where you are and what to do next. Exit codes: 0 passed or done, 1 not passed,
    2 wrong usage, 3 broken problem file, 4 the grader's own fault.
    """
    app = ctx.ensure_object(App)
    if ctx.invoked_subcommand is not None:
        return None
    from grader.cli.home import home

    return home(app)


def _version(ctx: click.Context, asked: bool) -> None:
    if asked:
        click.echo(f"mhaquiz {version()}")
        ctx.exit(0)


def main() -> None:
    """The console script."""
    cli()
