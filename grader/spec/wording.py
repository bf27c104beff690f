"""Validation errors -> mistakes with a place and plain words, one for each slip.

pydantic tries every branch of a union and reports each failure; here only the branch the author meant speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_origin

from grader.errors import Mistake
from grader.spec.model import Model
from grader.spec.slots import Slot, choices, expected, holds, key_slot, keys_of, slot_at
from grader.spec.suggest import closest, did_you_mean
from grader.spec.yamltext import Document, Steps

FEW_KEYS = 8


@dataclass(frozen=True)
class _Slip:
    """One error of pydantic's, its place as steps into the data."""

    steps: Steps
    kind: str
    details: dict[str, Any]


def mistakes_of(
    errors: Sequence[Any], model: type[Model], data: Any, document: Document, root: Steps = ()
) -> list[Mistake]:
    """Every mistake that pydantic's `errors` hold against `data`, which lies at `root` of the document."""
    meant = _meant(errors, model, data)
    words = _Words(document, model, data, root, _lacking(meant))
    named = [words.of(slip) for slip in meant if slip.kind != "missing"]
    return named + [found for steps in words.lacking if (found := words.missing(steps)) is not None]


def _at(data: Any, steps: Steps) -> Any:
    for step in steps:
        data = data[step]
    return data


def _lacking(slips: list[_Slip]) -> dict[Steps, list[str]]:
    """The missing keys of each mapping."""
    found: dict[Steps, list[str]] = {}
    for slip in slips:
        if slip.kind == "missing":
            found.setdefault(slip.steps[:-1], []).append(str(slip.steps[-1]))
    return found


# --- which errors were meant ------------------------------------------------------------------------------


_KEY = "[key]"  # how pydantic marks an error of a key rather than of its value
_OWN_WORDS = frozenset({"missing", "extra_forbidden", "too_short", "too_long"})


def _meant(errors: Sequence[Any], model: type[Model], data: Any) -> list[_Slip]:
    """The errors without those of union branches that the author did not mean, one a place."""
    slips: dict[tuple[Steps, str], _Slip] = {}
    for entry in errors:
        steps = _steps(entry["loc"], model, data)
        if steps is None:
            continue
        kind = _kind(entry)
        if kind == "missing" and isinstance(steps[-1], int):
            steps, kind = steps[:-1], "wrong"  # a list of fixed length is too short
        slips.setdefault((steps, kind), _Slip(steps, kind, dict(entry.get("ctx", {}))))
    return list(slips.values())


def _kind(entry: Any) -> str:
    if entry["loc"][-1:] == (_KEY,):
        return "key"
    if entry["type"] == "invalid_key":  # a key that is no text, where a model's keys are known
        return "extra_forbidden"
    return str(entry["type"]) if entry["type"] in _OWN_WORDS else "wrong"


def _steps(loc: Sequence[str | int], model: type[Model], data: Any) -> Steps | None:
    """`loc` as steps into the data; None for an error of a branch that was not meant.

    Where a union stands, `loc` holds the label of the branch that was tried before the next step.
    """
    steps: Steps = ()
    here, labelled = data, False
    for part in loc:
        if part == _KEY:
            break
        slot = slot_at(model, data, steps)
        if not labelled and slot is not None and slot.is_union():
            branch = slot.branch(here)
            if branch is None:
                return steps
            if not _is_label_of(part, branch):
                return None
            labelled = True
        else:
            steps, labelled = (*steps, part), False
            here = here[part] if holds(here, part) else None
    return steps


def _is_label_of(part: str | int, branch: Any) -> bool:
    origin = get_origin(branch) or branch
    name = "literal" if origin is Literal else origin.__name__
    return str(part).split("[")[0] == name


# --- words ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Words:
    """Words the slips of one validated part."""

    document: Document
    model: type[Model]
    data: Any
    root: Steps
    lacking: dict[Steps, list[str]]

    def of(self, slip: _Slip) -> Mistake:
        """The mistake for one slip."""
        steps = (*self.root, *slip.steps)
        if slip.kind == "extra_forbidden":
            return self.document.key_mistake(
                steps, _unknown_key(str(slip.steps[-1]), self._known(slip.steps[:-1]))
            )
        if slip.kind == "key":
            return self.document.key_mistake(steps, self._wrong_key(slip.steps))
        if slip.kind in ("too_short", "too_long"):
            return self.document.mistake(steps, self._wrong_length(slip))
        return self._wrong_value(slip.steps, steps)

    def missing(self, steps: Steps) -> Mistake | None:
        """The keys a mapping lacks, without those an unknown key is a misspelling of."""
        unknown = [
            key for key in _at(self.data, steps) if slot_at(self.model, self.data, (*steps, key)) is None
        ]
        known = self._known(steps)
        meant = {closest(str(key), known) for key in unknown}
        keys = [f"`{key}`" for key in self.lacking[steps] if key not in meant]
        if not keys:
            return None
        words = f"missing key {keys[0]}" if len(keys) == 1 else f"missing keys {', '.join(keys)}"
        place = (*self.root, *steps)
        return self.document.mistake(place, words + (f" of {name_of(place)}" if place else ""))

    def _known(self, steps: Steps) -> list[str]:
        slot = slot_at(self.model, self.data, steps)
        branch = slot.branch(_at(self.data, steps)) if slot is not None else None
        return keys_of(branch) if isinstance(branch, type) and issubclass(branch, Model) else []

    def _wrong_key(self, steps: Steps) -> str:
        key, place = steps[-1], name_of((*self.root, *steps[:-1]))
        slot = slot_at(self.model, self.data, steps[:-1])
        wants = key_slot(slot.branch(_at(self.data, steps[:-1]))) if slot is not None else None
        if isinstance(key, str) and wants is not None and choices(wants):
            return _unknown_key(key, choices(wants))
        kind = expected(wants) if wants is not None else "of another kind"
        return f"a key of {place} must be {kind}, found {shown(key)}"

    def _wrong_length(self, slip: _Slip) -> str:
        details = slip.details
        slot = slot_at(self.model, self.data, slip.steps)
        least, most = details.get("min_length"), details.get("max_length")
        bound = f"at least {least}" if slip.kind == "too_short" else f"at most {most}"
        if slot is not None and _exact(slot):
            bound = f"exactly {least or most}"
        noun = "entry" if bound.endswith(" 1") else "entries"
        found = len(_at(self.data, slip.steps))
        return f"{name_of((*self.root, *slip.steps))} must have {bound} {noun}, found {found or 'none'}"

    def _wrong_value(self, inner: Steps, steps: Steps) -> Mistake:
        value = _at(self.data, inner)
        name = name_of(steps)
        slot = slot_at(self.model, self.data, inner)
        wants = expected(slot) if slot is not None else "something else"
        message = f"{name} must be {wants}, found {shown(value)}"
        if isinstance(value, str) and slot is not None:
            message += did_you_mean(value, choices(slot))
        elif wants == "text" and isinstance(value, int | float):
            message += " (put it in quotes to make it text)"
        return self.document.mistake(steps, message)


def _exact(slot: Slot) -> bool:
    lengths = {
        getattr(bound, "min_length", None) or getattr(bound, "max_length", None) for bound in slot.bounds
    }
    return len(slot.bounds) == 2 and len(lengths) == 1


def _unknown_key(key: str, known: list[str]) -> str:
    message = f"unknown key `{key}`"
    if closest(key, known) is not None:
        return message + did_you_mean(key, known)
    if len(known) > FEW_KEYS:
        return f"{message}; `mhaquiz schema` describes every key"
    return message + (f"; the keys here are {', '.join(f'`{one}`' for one in known)}" if known else "")


def name_of(steps: Steps) -> str:
    """A place in words: `level`, `inputs.x.shape`, `cases[2].name`."""
    return f"`{''.join(_name_parts(steps))}`"


def _name_parts(steps: Steps) -> Iterator[str]:
    for index, step in enumerate(steps):
        if isinstance(step, int):
            yield f"[{step}]"
        else:
            yield f".{step}" if index else step


def shown(value: Any) -> str:
    """A value as a message shows it, short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}…{text[-1] if isinstance(value, str) else ''}"
