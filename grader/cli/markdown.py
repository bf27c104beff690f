"""Markdown for a terminal: rich's, but with code blocks kept verbatim, never wrapped, cropped or boxed."""

from __future__ import annotations

import io
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.text import Text
from rich.theme import Theme

from grader.cli.common import Look

WIDEST = 100
_THEME = Theme({"markdown.code": "cyan", "markdown.item.bullet": "none", "markdown.block_quote": "none"})


class _Verbatim(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = str(self.text).rstrip("\n").split("\n")
        yield Text("\n".join(f"    {line}".rstrip() for line in lines), no_wrap=True, overflow="ignore")


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.stylize("bold")
        yield Text("")
        yield self.text


class _Statement(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Verbatim,
        "code_block": _Verbatim,
        "heading_open": _Heading,
    }


def markdown(text: str, look: Look, *, indent: int = 0) -> str:
    """`text` drawn for `look`, each line moved right by `indent`; ends without a newline."""
    drawn = io.StringIO()
    console = Console(
        file=drawn,
        width=min(look.width, WIDEST) - indent,
        force_terminal=look.color,
        color_system="standard" if look.color else None,
        legacy_windows=False,
        theme=_THEME,
        highlight=False,
        emoji=False,
    )
    statement = _Statement(text, hyperlinks=False)
    if not look.color:
        _keep_backticks(statement)
    console.print(statement, crop=False)
    lines = [line.rstrip() for line in drawn.getvalue().strip("\n").split("\n")]
    return "\n".join(" " * indent + line if line else "" for line in lines)


def _keep_backticks(statement: Markdown) -> None:
    """Where no colour sets code apart from words, its backticks do."""
    for token in statement.parsed:
        for child in token.children or []:
            if child.type == "code_inline":
                child.content = f"`{child.content}`"
