"""Reading a document's plain data where its form may still be wrong.

What is of another kind than asked counts as absent. The rules of sense use it, so that they can speak
although another part of the file is broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from grader.spec.model import OMIT
from grader.spec.yamltext import Document, Steps


@dataclass(frozen=True)
class Part:
    """A part of the data and where it stands."""

    steps: Steps
    data: Any

    def get(self, *keys: str) -> Part:
        """The part under these keys; a part without data when there is none."""
        part = self
        for key in keys:
            inner = part.data.get(key) if isinstance(part.data, dict) else None
            part = Part((*part.steps, key), inner)
        return part

    def members(self) -> dict[str, Part]:
        """The members of a mapping with text keys."""
        data = self.data if isinstance(self.data, dict) else {}
        return {key: Part((*self.steps, key), value) for key, value in data.items() if isinstance(key, str)}

    def items(self) -> list[Part]:
        """The entries of a list."""
        data = self.data if isinstance(self.data, list) else []
        return [Part((*self.steps, index), value) for index, value in enumerate(data)]

    def texts(self) -> list[Part]:
        """The entries of a list that are text; text alone counts as a list of one."""
        parts = [self] if isinstance(self.data, str) else self.items()
        return [part for part in parts if isinstance(part.data, str)]

    @property
    def text(self) -> str:
        """The text here, or nothing."""
        return self.data if isinstance(self.data, str) else ""


def top(document: Document) -> Part:
    """The whole of the document's data."""
    return Part((), document.data)


@dataclass(frozen=True)
class Notation:
    """A text that uses sizes."""

    kind: Literal["shape", "expression"]
    part: Part


def notations(part: Part) -> Iterator[Notation]:
    """Every shape and expression of one input."""
    if part.data == OMIT:
        return
    if isinstance(part.data, str):
        yield Notation("expression", part)
    elif part.get("shape").text or part.get("shape").data == "":
        yield Notation("shape", part.get("shape"))
        yield from layout_notations(part.get("layout"))
    for member in part.get("torch_mha").members().values():
        if isinstance(member.data, str):
            yield Notation("expression", member)
    for inner in [*part.get("list").items(), *part.get("dict").members().values()]:
        yield from notations(inner)


def layout_notations(layout: Part) -> Iterator[Notation]:
    """Every expression of a memory layout."""
    pad = layout.get("pad")
    for axis, bounds in (pad.data if isinstance(pad.data, dict) else {}).items():
        for bound in Part((*pad.steps, axis), bounds).items():
            if isinstance(bound.data, str):
                yield Notation("expression", bound)


def is_tensor(part: Part) -> bool:
    """Whether an input is meant as a tensor, its shape being there or not."""
    return isinstance(part.data, dict) and not part.data.keys() & {"torch_mha", "list", "dict"}


@dataclass(frozen=True)
class RawUse:
    """A check that the problem uses, in whichever of its forms."""

    name: str
    options: Part


def check_uses(problem: Part) -> list[RawUse]:
    """The checks the problem names."""
    return [use for entry in problem.get("checks").items() if (use := _check_use(entry)) is not None]


def _check_use(entry: Part) -> RawUse | None:
    if entry.text:
        return RawUse(entry.text, Part(entry.steps, None))
    if entry.get("name").text:
        return RawUse(entry.get("name").text, entry.get("options"))
    members = entry.members()
    if len(members) != 1:
        return None
    ((name, options),) = members.items()
    return RawUse(name, options)
