"""`mhaquiz completion SHELL`: the script that makes a shell complete commands, options, tracks and IDs."""

from __future__ import annotations

import sys

import click
from click.shell_completion import get_completion_class

from grader.cli.common import App, pass_app

VARIABLE = "_MHAQUIZ_COMPLETE"
INSTALL = {
    "bash": """put this line in ~/.bashrc:  eval "$(mhaquiz completion bash)\"""",
    "zsh": """put this line in ~/.zshrc:  eval "$(mhaquiz completion zsh)\"""",
    "fish": "mhaquiz completion fish > ~/.config/fish/completions/mhaquiz.fish",
}


@click.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(list(INSTALL)))
@pass_app
def completion(app: App, shell: str) -> None:
    """The completion script for your shell (bash, zsh or fish): commands, options, tracks and IDs.

    \b
    Examples:
      eval "$(mhaquiz completion bash)"        in ~/.bashrc
      eval "$(mhaquiz completion zsh)"         in ~/.zshrc
      mhaquiz completion fish > ~/.config/fish/completions/mhaquiz.fish
    """
    from grader.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(cli, {}, "mhaquiz", VARIABLE)
    # Not `script.source()`: for bash that starts a shell to ask its version.
    app.out(script.source_template % script.source_vars())
    if sys.stdout.isatty():
        app.note(f"To use it, {INSTALL[shell]}")
