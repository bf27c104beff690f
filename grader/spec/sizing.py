"""Rules of sense about sizes: every size a text uses is defined by each case, and every case can be drawn."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from grader.errors import Mistake
from grader.spec.raw import Notation, Part, check_uses, layout_notations, notations, top
from grader.spec.shapes import (
    Expression,
    NameUse,
    NotationError,
    Shape,
    SizeError,
    SizeSpec,
    parse_expression,
    parse_shape,
    read_size,
    resolve_sizes,
    unknown_size,
)
from grader.spec.suggest import closest
from grader.spec.wording import name_of
from grader.spec.yamltext import Document

DRAWS = 3


def size_mistakes(document: Document) -> Iterator[Mistake]:
    """Every mistake about sizes."""
    problem = top(document)
    cases = [*problem.get("cases").items(), *problem.get("errors").items()]
    yield from _unreadable(document, _all_notations(problem, cases))
    for case in cases:
        yield from _sizes_of_case(document, case.get("sizes"))
    yield from _uses(document, problem, cases)


# --- what can be read -------------------------------------------------------------------------------------


def _all_notations(problem: Part, cases: Iterable[Part]) -> Iterator[Notation]:
    yield from _inputs(problem)
    yield from _results(problem)
    for case in cases:
        yield from _inputs(case)
        yield from _layouts(case)


def _inputs(part: Part) -> Iterator[Notation]:
    for member in part.get("inputs").members().values():
        yield from notations(member)


def _layouts(case: Part) -> Iterator[Notation]:
    for layout in case.get("layouts").members().values():
        yield from layout_notations(layout)


def _results(problem: Part) -> Iterator[Notation]:
    """The shapes of the results and the budgets of the checks: for cases that return, not for error cases."""
    for returned in problem.get("returns").texts():
        yield Notation("shape", returned)
    for use in check_uses(problem):
        for budget in use.options.get("budgets").items() if use.name == "allocation" else ():
            if isinstance(budget.get("at_most").data, str):
                yield Notation("expression", budget.get("at_most"))


def _parse(notation: Notation) -> Shape | Expression:
    text = notation.part.text
    return parse_shape(text) if notation.kind == "shape" else parse_expression(text)


def _name_uses(notation: Notation) -> tuple[NameUse, ...]:
    """The sizes a text uses; none when it cannot be read, which is reported elsewhere."""
    try:
        return _parse(notation).uses
    except NotationError:
        return ()


def _unreadable(document: Document, texts: Iterable[Notation]) -> Iterator[Mistake]:
    for notation in texts:
        try:
            _parse(notation)
        except NotationError as error:
            yield document.text_mistake(notation.part.steps, error.column, _in_words(notation, error))


def _in_words(notation: Notation, error: NotationError) -> str:
    return f'{error.what}, in the {notation.kind} "{notation.part.text}"'


# --- the sizes of one case --------------------------------------------------------------------------------


def _sizes_of_case(document: Document, sizes: Part) -> Iterator[Mistake]:
    sound, earlier = True, list[str]()
    for name, size in sizes.members().items():
        for mistake in _one_size(document, name, size, earlier, list(sizes.members())):
            sound = False
            yield mistake
        earlier.append(name)
    if sound:
        yield from _undrawable(document, sizes)


def _one_size(
    document: Document, name: str, size: Part, earlier: list[str], known: list[str]
) -> Iterator[Mistake]:
    if not _is_size(size.data):
        return  # the form is wrong, which is reported with the form
    try:
        read = read_size(name, size.data)
    except NotationError as error:
        yield document.text_mistake(size.steps, error.column, error.what)
        return
    for use in read.uses if isinstance(read, Expression) else ():
        if use.name not in earlier:
            yield document.text_mistake(size.steps, use.column, _not_earlier(name, use.name, earlier, known))


def _is_size(data: object) -> TypeGuard[SizeSpec]:
    if isinstance(data, list):
        return all(type(number) is int for number in data)
    return type(data) in (int, str)


def _not_earlier(name: str, used: str, earlier: list[str], known: list[str]) -> str:
    if used == name:
        return f"the size `{name}` uses itself"
    if used in known:
        return f"the size `{name}` uses `{used}`, which is defined after it: move `{used}` before `{name}`"
    return unknown_size(used, earlier)


def _undrawable(document: Document, sizes: Part) -> Iterator[Mistake]:
    """Values that only show when the sizes are drawn: a division by zero, a negative size."""
    spec: dict[str, SizeSpec] = {}
    for name, size in sizes.members().items():
        if not _is_size(size.data):
            return
        spec[name] = size.data
    for seed in range(DRAWS):
        try:
            resolve_sizes(spec, random.Random(seed))
        except SizeError as error:
            yield document.mistake((*sizes.steps, error.name), error.what)
            return
        except NotationError as error:
            culprit = next((name for name, text in spec.items() if text == error.text), "")
            yield document.mistake((*sizes.steps, culprit), f'{error.what}, in the expression "{error.text}"')
            return


# --- uses and definitions ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CaseUses:
    """A case, the sizes it defines and the texts that its calls use."""

    case: Part
    defined: list[str]
    texts: list[Notation]


def _uses(document: Document, problem: Part, cases: list[Part]) -> Iterator[Mistake]:
    gathered = [_gather(problem, case) for case in cases if _is_formed(case)]
    known = list(dict.fromkeys(name for one in gathered for name in one.defined))
    unknown: dict[Mistake, None] = {}
    for one in gathered:
        for notation in one.texts:
            for use in _name_uses(notation):
                if use.name not in known:
                    message = (
                        f'{unknown_size(use.name, known)}, in the {notation.kind} "{notation.part.text}"'
                    )
                    unknown[document.text_mistake(notation.part.steps, use.column, message)] = None
        yield from _undefined(document, one, known)
    yield from unknown


def _is_formed(case: Part) -> bool:
    return isinstance(case.data, dict) and isinstance(case.data.get("sizes", {}), dict)


def _gather(problem: Part, case: Part) -> _CaseUses:
    own = case.get("inputs").members()
    inputs = {**problem.get("inputs").members(), **own}
    texts = [notation for member in inputs.values() for notation in notations(member)]
    texts += _layouts(case)
    if case.steps[0] == "cases":
        texts += _results(problem)
    return _CaseUses(case, list(case.get("sizes").members()), texts)


def _undefined(document: Document, one: _CaseUses, known: list[str]) -> Iterator[Mistake]:
    """The sizes that this case lacks though another defines them, each once."""
    users: dict[str, Notation] = {}
    for notation in one.texts:
        for use in _name_uses(notation):
            if use.name in known and use.name not in one.defined:
                users.setdefault(use.name, notation)
    used = {use.name for notation in one.texts for use in _name_uses(notation)}
    idle = [name for name in one.defined if name not in used]
    for name, notation in users.items():
        title = one.case.get("name").text or name_of(one.case.steps)
        message = f"the case `{title}` lacks the size `{name}`, which {name_of(notation.part.steps)} uses"
        near = closest(name, idle)
        message += f"; nothing uses its `{near}`" if near is not None else ""
        yield document.mistake((*one.case.steps, "sizes"), message)
