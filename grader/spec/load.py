"""Problem files -> models. Every mistake of a file at once, each at its place; nothing else is raised.

`load_summary` reads the header alone (what stands before `statement`), for listing many problems quickly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.errors import ProblemFileError
from grader.spec.yamltext import parse, read_text

if TYPE_CHECKING:
    from grader.spec.model import Problem


@dataclass(frozen=True)
class Summary:
    """What a list shows of a problem."""

    id: str
    title: str
    track: str
    level: int
    minutes: int
    summary: str
    requires: tuple[str, ...]
    path: Path
    entry: str


def load_problem(path: Path | str) -> Problem:
    """Read, validate and return one problem. Raises ProblemFileError with every mistake found."""
    from grader.spec.validate import validate  # with pydantic, which a list of problems has no need of

    path = Path(path)
    document = parse(read_text(path), str(path))
    validated = validate(document)
    if validated.problem is None:
        raise ProblemFileError(list(validated.mistakes))
    return validated.problem


def load_summary(path: Path | str) -> Summary:
    """The header of a problem file. Where it is not whole or not sound, the file is read and judged whole."""
    path = Path(path)
    text = read_text(path)
    fields = _header(text, path)
    return _summary(fields, path) if fields is not None else _summary_of(load_problem(path), path)


_STATEMENT = re.compile(r"^statement[ \t]*:", re.MULTILINE)
_REQUIRES = re.compile(r"^requires[ \t]*:", re.MULTILINE)
_TEXTS = ("id", "title", "track", "summary", "entry")
_NUMBERS = ("level", "minutes")


def _header(text: str, path: Path) -> dict[str, Any] | None:
    """The keys before `statement`; None where only the whole file can tell."""
    statement = _STATEMENT.search(text)
    if statement is None or _REQUIRES.search(text, statement.start()):
        return None
    try:
        document = parse(text[: statement.start()], str(path))
    except ProblemFileError:
        return None
    sound = not document.mistakes and isinstance(document.data, dict) and _is_sound(document.data)
    return document.data if sound else None


def _is_sound(fields: dict[str, Any]) -> bool:
    requires = fields.get("requires", [])
    return (
        all(isinstance(fields.get(key), str) for key in _TEXTS)
        and all(type(fields.get(key)) is int for key in _NUMBERS)
        and isinstance(requires, list)
        and all(isinstance(name, str) for name in requires)
    )


def _summary(fields: dict[str, Any], path: Path) -> Summary:
    texts = {key: fields[key] for key in (*_TEXTS, *_NUMBERS)}
    return Summary(**texts, requires=tuple(fields.get("requires", ())), path=path)


def _summary_of(problem: Problem, path: Path) -> Summary:
    return _summary(problem.model_dump(include={*_TEXTS, *_NUMBERS, "requires"}), path)
