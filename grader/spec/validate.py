"""A placed document -> a Problem, or every mistake in it. Reads no files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from grader.errors import Mistake
from grader.spec.checks import CHECKS
from grader.spec.model import Model, Problem
from grader.spec.sense import senseless
from grader.spec.suggest import closest, did_you_mean
from grader.spec.wording import mistakes_of, shown
from grader.spec.yamltext import Document, Steps


@dataclass(frozen=True)
class Validated:
    """The problem when there is no mistake, else the mistakes in the order of the file."""

    problem: Problem | None
    mistakes: tuple[Mistake, ...]


def validate(document: Document) -> Validated:
    """Validate form, check options and sense; sense adds nothing at a place where the form is wrong."""
    if not isinstance(document.data, dict):
        message = f"a problem file is a mapping of keys to values, found {shown(document.data)}"
        return Validated(None, (*document.mistakes, document.mistake((), message)))
    problem, formal = _form(document)
    mistakes = [*document.mistakes, *formal, *_check_mistakes(document)]
    taken = {(mistake.line, mistake.column) for mistake in mistakes}
    mistakes += [found for found in senseless(document) if (found.line, found.column) not in taken]
    ordered = sorted(dict.fromkeys(mistakes), key=lambda mistake: (mistake.line, mistake.column))
    return Validated(None if ordered else problem, tuple(ordered))


def _form(document: Document) -> tuple[Problem | None, list[Mistake]]:
    try:
        return Problem.model_validate(document.data, strict=True), []
    except ValidationError as error:
        # Entries of `checks` have short forms that pydantic's places do not tell apart: judged below.
        errors = [entry for entry in _entries(error) if entry["loc"][0] != "checks" or len(entry["loc"]) == 1]
        return None, mistakes_of(errors, Problem, document.data, document)


def _entries(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False))


# --- checks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Use:
    """A check as an entry of `checks` uses it, and where its name and options stand."""

    name: str
    options: Any
    name_steps: Steps
    options_steps: Steps
    is_key: bool


def _check_mistakes(document: Document) -> Iterator[Mistake]:
    entries = document.data.get("checks")
    seen: set[str] = set()
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        use = _use(entry, ("checks", index))
        if use is None:
            yield document.mistake(("checks", index), _not_a_use(entry))
            continue
        place = document.key_mistake if use.is_key else document.mistake
        if use.name not in CHECKS:
            yield place(use.name_steps, _unknown_check(use.name))
        elif use.name in seen:
            yield place(use.name_steps, f"the check `{use.name}` is used twice: put its options in one entry")
        else:
            yield from _option_mistakes(document, use, CHECKS[use.name].options)
        seen.add(use.name)


def _use(entry: Any, steps: Steps) -> Use | None:
    """Read `strides`, `no_copy: {of: x}` and `{name: no_copy, options: {of: x}}` alike."""
    if isinstance(entry, str):
        return Use(entry, {}, steps, (*steps, entry), is_key=False)
    if not isinstance(entry, dict):
        return None
    if set(entry) <= {"name", "options"} and isinstance(entry.get("name"), str):
        options = entry.get("options", {})
        return Use(entry["name"], options, (*steps, "name"), (*steps, "options"), is_key=False)
    if len(entry) != 1:
        return None
    ((name, options),) = entry.items()
    place = (*steps, name)
    return Use(str(name), {} if options is None else options, place, place, is_key=True)


def _not_a_use(entry: Any) -> str:
    if isinstance(entry, dict) and len(entry) > 1:
        names = ", ".join(f"`{name}`" for name in entry)
        return f"one entry holds one check, found {names}: begin each with `- `"
    return f"a check is its name, or its name and options such as `no_copy: {{of: x}}`, found {shown(entry)}"


def _unknown_check(name: str) -> str:
    if closest(name, CHECKS) is not None:
        return f"unknown check `{name}`{did_you_mean(name, CHECKS)}"
    return f"unknown check `{name}`; the checks are {', '.join(f'`{known}`' for known in CHECKS)}"


def _option_mistakes(document: Document, use: Use, model: type[Model]) -> list[Mistake]:
    if not isinstance(use.options, dict):
        message = f"the options of `{use.name}` must be a mapping, found {shown(use.options)}"
        return [document.mistake(use.options_steps, message)]
    try:
        model.model_validate(use.options, strict=True)
    except ValidationError as error:
        return mistakes_of(_entries(error), model, use.options, document, use.options_steps)
    return []
