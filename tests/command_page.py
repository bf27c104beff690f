"""docs/commands.md: what every command prints for `--help`.

Run `python tests/command_page.py` from the repository root to write it anew.
"""

from __future__ import annotations

from pathlib import Path

import click

from grader.cli.main import COMMANDS, cli

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
# What click takes of a terminal of 80 columns.
WIDTH = 78
_HEAD = """\
# Commands

Written by `python tests/command_page.py`; a test holds it equal to what the program prints.
"""


def inner_names(name: str) -> list[str]:
    """The commands of a command that is a group."""
    command = COMMANDS[name].load()
    return list(command.commands) if isinstance(command, click.Group) else []


def help_of(name: str | None = None, inner_name: str | None = None) -> str:
    """What `mhaquiz [NAME [INNER_NAME]] --help` prints in 80 columns."""
    with _context("mhaquiz", cli) as top:
        if name is None:
            return cli.get_help(top) + "\n"
        command = COMMANDS[name].load()
        with _context(name, command, top) as inner:
            if inner_name is None or not isinstance(command, click.Group):
                return command.get_help(inner) + "\n"
            innermost = command.commands[inner_name]
            with _context(inner_name, innermost, inner) as last:
                return innermost.get_help(last) + "\n"


def _context(name: str, command: click.Command, parent: click.Context | None = None) -> click.Context:
    # Parsed as for completion, so that no command runs; the real settings of each command apply.
    return command.make_context(name, [], parent=parent, terminal_width=WIDTH, resilient_parsing=True)


def page() -> str:
    """The whole page."""
    sections = [("mhaquiz", help_of())]
    for name in COMMANDS:
        sections.append((f"mhaquiz {name}", help_of(name)))
        sections += [(f"mhaquiz {name} {inner}", help_of(name, inner)) for inner in inner_names(name)]
    return _HEAD + "".join(f"\n## {title}\n\n```text\n{text}```\n" for title, text in sections)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
