"""Lines of styled text for a terminal, wrapped to a width. Foreign text is data here, never markup."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.text import Text

from grader.render.glyphs import Glyphs
from grader.render.safe import clean, clean_inline, to_ascii


class Page:
    """Collects lines; `str()` gives them as text, with colours when asked for."""

    def __init__(self, *, width: int, color: bool, glyphs: Glyphs) -> None:
        self.width = max(20, width)
        self.glyphs = glyphs
        self._lines: list[Text] = []
        self._out = StringIO()
        self._console = Console(
            file=self._out,
            width=self.width,
            force_terminal=color,
            color_system="standard" if color else None,
            no_color=not color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def blank(self) -> None:
        """An empty line; never two in a row, none at the top."""
        if self._lines and self._lines[-1].plain:
            self._lines.append(Text())

    def say(self, *parts: tuple[str, str] | str, indent: int = 0, hang: int = 0) -> None:
        """A paragraph of (text, style) parts, wrapped, indented; lines after the first by `hang` more."""
        text = Text()
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            text.append(self._own(clean_inline(words)), style=style)
        self._wrapped(text, indent, hang)

    def block(self, text: str, *, indent: int = 0, style: str = "", at_most: int = 40) -> None:
        """Text of several lines, line breaks kept, the rest left out beyond `at_most` lines."""
        lines = clean(text).rstrip("\n").split("\n")
        for line in lines[:at_most]:
            self._wrapped(Text(self._own(line), style=style), indent, 0)
        if len(lines) > at_most:
            self.say((f"{self.glyphs.dots} {len(lines) - at_most} more lines", "dim"), indent=indent)

    def exact(self, *parts: tuple[str, str] | str, indent: int = 0) -> None:
        """One line as it is: for places that editors link, and for lines already measured."""
        line = Text(" " * indent)
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            line.append(self._own(clean_inline(words)), style=style)
        self._add(line)

    def _own(self, text: str) -> str:
        return to_ascii(text) if self.glyphs.ascii else text

    def _wrapped(self, text: Text, indent: int, hang: int) -> None:
        first = text.wrap(self._console, self.width - indent)
        if hang and len(first) > 1:
            rest = text[len(first[0].plain) :]
            rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
            self._add(Text(" " * indent).append_text(first[0]))
            self._wrapped(rest, indent + hang, 0)
            return
        for line in first:
            self._add(Text(" " * indent).append_text(line))

    def _add(self, line: Text) -> None:
        line.rstrip()
        self._lines.append(line)

    def __str__(self) -> str:
        """All lines, each ended by a line break."""
        for line in self._lines:
            self._console.print(line, soft_wrap=True)
        return self._out.getvalue()
