"""What a model expects at a place of a problem file, in words. Walks annotations; validates nothing."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types

from grader.spec.model import Model
from grader.spec.suggest import closest
from grader.spec.yamltext import Steps


@dataclass(frozen=True)
class Slot:
    """What may stand at a place: the type and its bounds."""

    annotation: Any
    bounds: tuple[Any, ...] = ()

    def members(self) -> list[Any]:
        """The branches of a union; the type itself when it is none."""
        if get_origin(self.annotation) not in (Union, types.UnionType):
            return [self.annotation]
        return [part for arg in get_args(self.annotation) for part in _slot(arg).members()]

    def is_union(self) -> bool:
        """Whether there is more than one branch, `nothing` aside."""
        return len([member for member in self.members() if member is not types.NoneType]) > 1

    def branch(self, value: Any) -> Any:
        """The one branch that `value` is meant for, by its kind and, among models, by its keys; else None."""
        fitting = [member for member in self.members() if _fits(member, value)]
        models = [member for member in fitting if _is_model(member)]
        return _by_keys(models, value) if len(models) > 1 else (fitting[0] if fitting else None)


def slot_at(model: type[Model], data: Any, steps: Steps) -> Slot | None:
    """What `model` expects at `steps` of `data`; None where the data has left what the model knows."""
    slot: Slot | None = Slot(model)
    for step in steps:
        branch = slot.branch(data) if slot is not None else None
        slot = _inside(branch, step)
        data = data[step] if holds(data, step) else None
    return slot


def keys_of(model: type[Model]) -> list[str]:
    """The keys a mapping for `model` may have."""
    return [field.alias or name for name, field in model.model_fields.items()]


def key_slot(branch: Any) -> Slot | None:
    """What the keys of a mapping must be; None when the branch is not a plain mapping."""
    return _slot(get_args(branch)[0]) if get_origin(branch) is dict else None


def _slot(annotation: Any, bounds: tuple[Any, ...] = ()) -> Slot:
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        bounds = (*bounds, *more)
    return Slot(annotation, bounds)


def _inside(branch: Any, step: str | int) -> Slot | None:
    if _is_model(branch):
        for name, info in branch.model_fields.items():
            if step == (info.alias or name):
                return _slot(info.annotation, tuple(info.metadata))
        return None
    origin, args = get_origin(branch), get_args(branch)
    if origin is dict:
        return _slot(args[1])
    if origin is tuple:
        return _slot(args[step]) if isinstance(step, int) and step < len(args) else None
    return _slot(args[0]) if origin is list else None


def holds(data: Any, step: str | int) -> bool:
    """Whether `data` is a mapping with that key or a list with that index."""
    if isinstance(data, dict):
        return step in data
    return isinstance(data, list) and isinstance(step, int) and step < len(data)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Model)


def _fits(annotation: Any, value: Any) -> bool:
    origin = get_origin(annotation) or annotation
    if origin is Literal:
        return type(value) in {type(arg) for arg in get_args(annotation)}
    if _is_model(annotation) or origin is dict:
        return isinstance(value, dict)
    if origin in (list, tuple):
        return isinstance(value, list)
    if origin is float:
        return type(value) in (int, float)
    return annotation is Any or type(value) is origin


def _by_keys(models: list[type[Model]], value: dict[Any, Any]) -> type[Model]:
    """The model that shares most keys with the mapping, near misses counting half."""

    def likeness(model: type[Model]) -> float:
        keys = keys_of(model)
        return sum(1.0 if key in keys else 0.5 * (closest(str(key), keys) is not None) for key in value)

    return max(models, key=likeness)


# --- words ------------------------------------------------------------------------------------------------

_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    types.NoneType: "nothing",
}
_PLURALS = {int: "whole numbers", float: "numbers", str: "text", bool: "true or false"}


def expected(slot: Slot) -> str:
    """What the slot accepts: `a whole number from 1 to 5`, `one of `call`, `new``."""
    members = [member for member in slot.members() if member is not types.NoneType]
    described = dict.fromkeys(_describe(member, slot.bounds) for member in members)
    if "a number" in described:
        described.pop("a whole number", None)
    words = sorted(described, key=lambda word: word.startswith("a list"))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def choices(slot: Slot) -> list[str]:
    """The words the slot offers to choose from."""
    literals = [member for member in slot.members() if get_origin(member) is Literal]
    return [str(arg) for literal in literals for arg in get_args(literal)]


def _describe(annotation: Any, bounds: tuple[Any, ...]) -> str:
    origin = get_origin(annotation) or annotation
    if origin is Literal:
        words = [f"`{arg}`" for arg in get_args(annotation)]
        return words[0] if len(words) == 1 else f"one of {', '.join(words)}"
    if origin is list:
        element = _slot(get_args(annotation)[0]).annotation
        return f"a list of {_PLURALS[element]}" if element in _PLURALS else "a list"
    if origin is tuple:
        return f"a list of {len(get_args(annotation))}"
    if origin is dict or _is_model(annotation):
        return "a mapping"
    return _NAMES.get(origin, "a value") + _bounds_in_words(annotation, bounds)


def _bounds_in_words(annotation: Any, bounds: tuple[Any, ...]) -> str:
    if any(getattr(bound, "pattern", None) for bound in bounds):
        return " of lower-case letters, digits and single dashes"
    low, high = _limits(annotation, bounds)
    if low.startswith("from") and high:
        return f" {low} {high.replace('at most', 'to')}"
    return "".join(f" {word}" for word in (low, "and" if low and high else "", high) if word)


def _limits(annotation: Any, bounds: tuple[Any, ...]) -> tuple[str, str]:
    low = high = ""
    for bound in bounds:
        if isinstance(bound, annotated_types.Ge):
            low = f"from {bound.ge}"
        elif isinstance(bound, annotated_types.Gt):
            number: Any = bound.gt
            low = f"from {number + 1}" if annotation is int else f"above {number}"
        elif isinstance(bound, annotated_types.Le):
            high = f"at most {bound.le}"
    return low, high
