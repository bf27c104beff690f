"""Make foreign text harmless: submitted code, file names, output, tracebacks and messages built from them.

Guarantees that no terminal escape, control character or bidirectional override survives. It does not escape
for HTML, rich markup or GitHub commands: each renderer does that itself, once.
"""

from __future__ import annotations

import re
import unicodedata

REPLACEMENT = "\ufffd"

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, ...
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
)
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}

_ASCII = {
    "·": ".",
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "×": "x",
    "÷": "/",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "→": "->",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "\u00a0": " ",
    REPLACEMENT: "?",
}


def is_hidden(character: str) -> bool:
    """Whether a character could steer a terminal, reorder a line or hide text."""
    return unicodedata.category(character) in _INVISIBLE


def clean(text: str) -> str:
    """Text of several lines: escape sequences and hidden characters removed, tabs become spaces."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n")).replace("\t", "    ").replace("\r", "\n")
    return "".join(c for c in text if c == "\n" or not is_hidden(c))


def clean_inline(text: str) -> str:
    """Text for one line: as `clean`, with line breaks as spaces."""
    return " ".join(clean(text).split("\n"))


def clean_source(line: str) -> str:
    """A line of source code: every hidden character but a tab becomes one replacement character.

    Nothing is removed, so columns counted in the original still point at the same character.
    """
    return "".join(c if c == "\t" or not is_hidden(c) else REPLACEMENT for c in line)


def to_ascii(text: str) -> str:
    """The text in ASCII: common marks by their plain form, anything else as a backslash escape."""
    plain = "".join(_ASCII.get(c, c) for c in text)
    return plain.encode("ascii", "backslashreplace").decode("ascii")
