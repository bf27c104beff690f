"""Close matches for a misspelt word: the "did you mean" of every message of the declarative layer."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`, did you mean `x`?` when a known word is close to `word`, else nothing."""
    match = closest(word, known)
    return f", did you mean `{match}`?" if match is not None else ""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to `word`, ignoring case, dashes and underscores; None when none is close."""
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(_fold(candidate), candidate)
    matches = difflib.get_close_matches(_fold(word), folded, n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def _fold(word: str) -> str:
    return word.casefold().replace("_", "").replace("-", "")
