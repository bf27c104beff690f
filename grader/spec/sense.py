"""Rules of sense: what one problem file says must fit together. Sizes have a module of their own (sizing.py).

Each rule reads plain data and passes over what is malformed, so that one slip does not hide another.
What needs the solution file or other problems is judged by the gate, not here.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.errors import Mistake
from grader.spec.checks import CHECKS
from grader.spec.raw import Part, check_uses, is_tensor, top
from grader.spec.shapes import NotationError, parse_shape
from grader.spec.sizing import size_mistakes
from grader.spec.suggest import did_you_mean
from grader.spec.yamltext import Document

Rule = Callable[[Document], Iterable[Mistake]]


def senseless(document: Document) -> Iterator[Mistake]:
    """Every mistake of sense in a document whose data is a mapping."""
    for rule in RULES:
        yield from rule(document)


# --- the file and its texts -------------------------------------------------------------------------------


def _place_of_file(document: Document) -> Iterator[Mistake]:
    problem, path = top(document), Path(document.file).absolute()
    identity, track = problem.get("id"), problem.get("track")
    if identity.text and identity.text != path.stem:
        message = f"the id is `{identity.text}` but the file is called `{path.name}`: they must be the same"
        yield document.mistake(identity.steps, message)
    if track.text and track.text != path.parent.name:
        message = (
            f"the track is `{track.text}` but the file lies in `{path.parent.name}`: they must be the same"
        )
        yield document.mistake(track.steps, message)
    for required in problem.get("requires").texts():
        if required.text == identity.text:
            yield document.mistake(required.steps, f"`{identity.text}` requires itself")


_TEXTS = ("title", "summary", "statement", "signature", "entry", "starter")


def _blank_texts(document: Document) -> Iterator[Mistake]:
    problem = top(document)
    parts = [problem.get(key) for key in _TEXTS]
    parts += [entry for key in ("hints", "red_flags", "when_not") for entry in problem.get(key).texts()]
    parts += [case.get("name") for key in ("cases", "errors") for case in problem.get(key).items()]
    for part in parts:
        if isinstance(part.data, str) and not part.data.strip():
            yield document.mistake(part.steps, "this text is empty")


# --- names that must differ -------------------------------------------------------------------------------


def _twice(document: Document) -> Iterator[Mistake]:
    problem = top(document)
    cases = [case.get("name") for key in ("cases", "errors") for case in problem.get(key).items()]
    yield from _repeated(document, "case", cases)
    yield from _repeated(document, "mistake", [one.get("id") for one in problem.get("mistakes").items()])
    yield from _repeated(document, "required problem", problem.get("requires").texts())
    yield from _repeated(
        document, "saved result", [step.get("save") for step in problem.get("steps").items()]
    )


def _repeated(document: Document, what: str, parts: list[Part]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for part in parts:
        if part.text in first:
            message = f"the {what} `{part.text}` is there twice, first at line {first[part.text]}"
            yield document.mistake(part.steps, message)
        elif part.text:
            first[part.text] = document.at(part.steps).line


# --- names that must exist --------------------------------------------------------------------------------


def _unknown(
    document: Document, part: Part, what: str, known: Iterable[str], *, key: bool = False
) -> Mistake:
    name, known = str(part.steps[-1]) if key else part.text, list(known)
    message = f"unknown {what} `{name}`"
    hint = did_you_mean(name, known)
    if not hint:
        listed = ", ".join(f"`{one}`" for one in known)
        hint = f"; there is {listed}" if known else "; there is none"
    return (document.key_mistake if key else document.mistake)(part.steps, message + hint)


def _overrides(document: Document) -> Iterator[Mistake]:
    problem = top(document)
    inputs = problem.get("inputs").members()
    for case in [*problem.get("cases").items(), *problem.get("errors").items()]:
        own = case.get("inputs").members()
        yield from (
            _unknown(document, part, "input", inputs, key=True)
            for name, part in own.items()
            if name not in inputs
        )
        merged = {**inputs, **own}
        tensors = [name for name, part in merged.items() if is_tensor(part)]
        for key in ("layouts", "values"):
            for name, part in case.get(key).members().items():
                if name not in tensors:
                    yield _unknown(document, part, "tensor input", tensors, key=True)
        for part in case.get("unchanged").texts():
            if part.text not in merged:
                yield _unknown(document, part, "input", merged)


def _case_checks(document: Document) -> Iterator[Mistake]:
    problem = top(document)
    always = [name for name, kind in CHECKS.items() if kind.always]
    names = [*always, *(use.name for use in check_uses(problem))]
    for case in problem.get("cases").items():
        for part in [*case.get("only").texts(), *case.get("skip").texts()]:
            if part.text not in names:
                yield _unknown(document, part, "check of this problem", names)


def _steps(document: Document) -> Iterator[Mistake]:
    problem = top(document)
    steps = problem.get("steps").items()
    inputs = list(problem.get("inputs").members())
    saved: list[str] = []
    for step in steps:
        for part in step.get("args").texts():
            if part.text not in [*inputs, *saved]:
                yield _unknown(document, part, "input or saved result", [*inputs, *saved])
        if step.get("on").text and step.get("on").text not in saved:
            yield _unknown(document, step.get("on"), "saved result", saved)
        if step.get("save").text:
            saved.append(step.get("save").text)
    kind = problem.get("kind")
    if kind.text == "class" and not steps:
        yield document.mistake(
            kind.steps, "a class needs `steps`: at least `do: new` and one observed `do: method`"
        )
    if steps and not any(step.get("observe").data is True for step in steps):
        yield document.mistake(("steps",), "no step has `observe: true`, so nothing would be judged")


def _check_inputs(document: Document) -> Iterator[Mistake]:
    problem = top(document)
    inputs = problem.get("inputs").members()
    for use in check_uses(problem):
        for part in _named_inputs(use.name, use.options):
            if part.text not in inputs:
                yield _unknown(document, part, "input", inputs)
        for name, part in use.options.get("inputs").members().items() if use.name == "causality" else ():
            if name not in inputs:
                yield _unknown(document, part, "input", inputs, key=True)


def _named_inputs(check: str, options: Part) -> list[Part]:
    if check in ("no_copy", "contiguous", "gradient"):
        return options.get("of").texts()
    if check == "mutation":
        return options.get("allow").texts()
    if check == "allocation":
        return [part for budget in options.get("budgets").items() for part in budget.get("of").texts()]
    return []


# --- what must agree --------------------------------------------------------------------------------------


def _raises_and_errors(document: Document) -> Iterator[Mistake]:
    problem = top(document)
    entries = problem.get("checks").items()
    uses = [entry for entry in entries if entry.text == "raises" or "raises" in (entry.members() or ())]
    uses += [entry for entry in entries if entry.get("name").text == "raises"]
    errors = problem.get("errors").items()
    if errors and not uses:
        message = "there are `errors` but `checks` does not name `raises`, so they would never be tried"
        yield document.key_mistake(("errors",), message)
    if uses and not errors:
        yield document.mistake(uses[0].steps, "the check `raises` needs at least one entry in `errors`")


def _one_each(document: Document) -> Iterator[Mistake]:
    """`no_copy: {of: [...]}` names one input for each result."""
    problem = top(document)
    returns = problem.get("returns")
    results = len(returns.items()) if isinstance(returns.data, list) else 1
    for use in check_uses(problem):
        of = use.options.get("of")
        if use.name == "no_copy" and isinstance(of.data, list) and len(of.data) != results:
            message = (
                f"`of` names {len(of.data)} inputs for {results} result{'s' * (results != 1)}: one for each"
            )
            yield document.mistake(of.steps, message)


def _layout_axes(document: Document) -> Iterator[Mistake]:
    """The axes of a memory layout are those of its shape."""
    problem = top(document)
    inputs = problem.get("inputs").members()
    for name, part in inputs.items():
        yield from _axes_of(document, part.get("layout"), part.get("shape"), name)
    for case in [*problem.get("cases").items(), *problem.get("errors").items()]:
        own = case.get("inputs").members()
        for name, part in own.items():
            yield from _axes_of(document, part.get("layout"), part.get("shape"), name)
        for name, layout in case.get("layouts").members().items():
            merged = own.get(name) or inputs.get(name) or Part((), None)
            yield from _axes_of(document, layout, merged.get("shape"), name)


def _axes_of(document: Document, layout: Part, shape: Part, name: str) -> Iterator[Mistake]:
    if not isinstance(layout.data, dict) or not isinstance(shape.data, str):
        return
    try:
        count = len(parse_shape(shape.data).axes)
    except NotationError:
        return
    order = layout.get("order")
    if isinstance(order.data, list) and sorted(map(str, order.data)) != sorted(map(str, range(count))):
        yield document.mistake(
            order.steps, f"`order` must name each of the {count} axes of `{name}` once, from 0"
        )
    for key in ("pad", "step"):
        axes = layout.get(key).data
        for axis in axes if isinstance(axes, dict) else ():
            if isinstance(axis, int) and not -count <= axis < count:
                message = f"`{name}` has {count} axes, there is no axis {axis}"
                yield document.key_mistake((*layout.steps, key, axis), message)


# --- the starter ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Definitions:
    functions: frozenset[str]
    classes: frozenset[str]


def _starter(document: Document) -> Iterator[Mistake]:
    problem = top(document)
    starter = problem.get("starter")
    if not starter.text.strip():
        return
    try:
        defined = _definitions(starter.text)
    except SyntaxError as error:
        message = f"the starter is not valid Python: {error.msg}"
        yield document.block_mistake(starter.steps, error.lineno or 1, error.offset or 1, message)
        return
    except (ValueError, RecursionError, MemoryError):
        yield document.mistake(starter.steps, "the starter is not valid Python")
        return
    yield from _undefined_entries(document, problem, defined)


def _definitions(source: str) -> _Definitions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = ast.parse(source).body
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    classes = {node.name for node in body if isinstance(node, ast.ClassDef)}
    return _Definitions(frozenset(functions), frozenset(classes))


def _undefined_entries(document: Document, problem: Part, defined: _Definitions) -> Iterator[Mistake]:
    entry, is_class = problem.get("entry"), problem.get("kind").text == "class"
    names = defined.classes if is_class else defined.functions
    what = "class" if is_class else "function"
    if entry.text and entry.text not in names:
        yield _undefined_entry(document, entry, what, names)
    for step in problem.get("steps").items():
        name = step.get("name")
        if step.get("do").text in ("call", "new") and name.text and name.text != entry.text:
            called = "class" if step.get("do").text == "new" else "function"
            known = defined.classes if called == "class" else defined.functions
            if name.text not in known:
                yield _undefined_entry(document, name, called, known)


def _undefined_entry(document: Document, part: Part, what: str, known: Iterable[str]) -> Mistake:
    hint = did_you_mean(part.text, sorted(known))
    return document.mistake(part.steps, f"the starter defines no {what} `{part.text}`{hint}")


RULES: tuple[Rule, ...] = (
    size_mistakes,
    _place_of_file,
    _blank_texts,
    _twice,
    _overrides,
    _case_checks,
    _steps,
    _check_inputs,
    _raises_and_errors,
    _one_each,
    _layout_axes,
    _starter,
)
