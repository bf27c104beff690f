"""The marks used in text, in Unicode and in ASCII. Each stands beside a word: nothing hangs on a mark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grader.render.scene import Tone
from grader.report import Status


@dataclass(frozen=True)
class Glyphs:
    """One set of marks."""

    status: Mapping[Status, str]
    tone: Mapping[Tone, str]
    dots: str
    separator: str
    gutter: str
    differs: str
    arrow: str
    ascii: bool


UNICODE = Glyphs(
    status={Status.PASSED: "✓", Status.FAILED: "✗", Status.SKIPPED: "–", Status.ERRORED: "!"},
    tone={
        Tone.FOCUS: "█",
        Tone.PART: "▒",
        Tone.OTHER: "·",
        Tone.OUTSIDE: " ",
        Tone.OPEN: "█",
        Tone.CLOSED: "·",
        Tone.WRONGLY_OPEN: "+",
        Tone.WRONGLY_CLOSED: "−",
    },
    dots="…",
    separator="·",
    gutter="│",
    differs="≠ differs",
    arrow="→",
    ascii=False,
)

PLAIN = Glyphs(
    UNICODE.status,
    UNICODE.tone,
    UNICODE.dots,
    UNICODE.separator,
    "|",
    UNICODE.differs,
    UNICODE.arrow,
    ascii=False,
)

ASCII = Glyphs(
    status={Status.PASSED: "ok", Status.FAILED: "FAIL", Status.SKIPPED: "--", Status.ERRORED: "!"},
    tone={
        Tone.FOCUS: "#",
        Tone.PART: "%",
        Tone.OTHER: ".",
        Tone.OUTSIDE: " ",
        Tone.OPEN: "#",
        Tone.CLOSED: ".",
        Tone.WRONGLY_OPEN: "+",
        Tone.WRONGLY_CLOSED: "-",
    },
    dots="...",
    separator=".",
    gutter="|",
    differs="<- differs",
    arrow="->",
    ascii=True,
)
