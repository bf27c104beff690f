"""`mhaquiz show ID`: a problem as the learner needs it. Never a mistake's code or a hidden case."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import click

from grader.cli.common import (
    App,
    Look,
    format_option,
    pass_app,
    print_json,
    problem_argument,
    shared_options,
)
from grader.cli.failure import warn
from grader.progress import Progress, Standing, read_progress
from grader.spec.checks import CHECKS
from grader.spec.model import Case, ErrorCase, Problem

LEVELS = {1: "warm-up", 2: "easy", 3: "medium", 4: "hard", 5: "expert"}

SAYS = {
    "returns": "gives back what was asked for, as plain tensors",
    "shape": "the result has the shape asked for",
    "dtype": "the result has the precision of the input",
    "device": "the result is on the device of the input",
    "finite": "no NaN and no infinity where none belongs",
    "values": "the numbers are right",
    "no_copy": "the result shares memory with the input: a view",
    "strides": "the strides are those of a view of the input",
    "single_storage": "the results share one piece of memory",
    "contiguous": "the result is contiguous, except where it is a free view",
    "allocation": "no more new memory than the problem allows",
    "forbidden": "the library calls that would do the exercise are not used",
    "required": "only the operations that the problem allows move data",
    "mutation": "the inputs are as they were after the call",
    "determinism": "the same input gives the same result",
    "causality": "a later token does not change an earlier result",
    "gradient": "the gradients are right",
    "raises": "bad input is refused with the exception promised",
}


@dataclass(frozen=True)
class _Shown:
    """What this user has done with the problem."""

    progress: Progress
    hints: int


@click.command("show")
@problem_argument()
@format_option("text", "json")
@shared_options
@pass_app
def show(app: App, problem: str, output_format: str) -> None:
    """A problem: its text, its starter, and what is checked.

    \b
    Examples:
      mhaquiz show split-heads
      mhaquiz show split-heads --format json
    """
    loaded = app.library().load(problem)
    shown = _read(app, loaded.id)
    if output_format == "json":
        print_json(as_json(loaded, shown))
        return
    app.out(as_text(loaded, shown, app.look()))


def _read(app: App, problem: str) -> _Shown:
    with app.store() as store:
        progress = read_progress(store)
        if progress.trouble is not None:
            warn(app, progress.trouble)
            return _Shown(progress, 0)
        return _Shown(progress, store.hints_shown(problem))


def check_names(problem: Problem) -> list[str]:
    """The checks of this problem: every problem's and its own, in the order they are judged."""
    own = {use.name for use in problem.checks}
    return [name for name, kind in CHECKS.items() if kind.always or name in own]


def as_json(problem: Problem, shown: _Shown) -> dict[str, Any]:
    """The JSON document."""
    options = {use.name: dict(use.options) for use in problem.checks}
    return {
        "id": problem.id,
        "title": problem.title,
        "track": problem.track,
        "level": problem.level,
        "minutes": problem.minutes,
        "state": str(shown.progress.of(problem.id)),
        "requires": list(problem.requires),
        "summary": problem.summary,
        "statement": problem.statement,
        "signature": problem.signature,
        "entry": problem.entry,
        "kind": problem.kind,
        "returns": problem.returns,
        "starter": problem.starter,
        "checks": [
            {"name": name, "says": SAYS[name], "options": options.get(name, {})}
            for name in check_names(problem)
        ],
        "cases": {
            "visible": [{"name": case.name, "sizes": dict(case.sizes)} for case in _visible(problem)],
            "hidden": _hidden(problem),
        },
        "hints": {"shown": shown.hints, "total": len(problem.hints)},
        "next": _next(problem, shown.progress),
        "error": None,
    }


def as_text(problem: Problem, shown: _Shown, look: Look) -> str:
    """The page in a terminal."""
    from grader.cli.markdown import markdown

    parts = [
        _head(problem, shown.progress, look),
        markdown(problem.statement, look),
        _section("Signature", problem.signature, look),
        _section("What is checked", _checked(problem, look), look),
        _section("Starter", problem.starter.rstrip("\n"), look),
        _foot(problem, shown),
    ]
    return "\n\n".join(parts)


def _visible(problem: Problem) -> list[Case | ErrorCase]:
    return [
        *(case for case in problem.cases if case.visible),
        *(case for case in problem.errors if case.visible),
    ]


def _hidden(problem: Problem) -> int:
    return len(problem.cases) + len(problem.errors) - len(_visible(problem))


def _head(problem: Problem, progress: Progress, look: Look) -> str:
    dot = " · " if look.unicode else " | "
    facts = dot.join(
        [
            problem.track,
            f"level {problem.level} of 5 ({LEVELS[problem.level]})",
            f"about {problem.minutes} minutes",
            str(progress.of(problem.id)),
        ]
    )
    lines = [f"{look.style(problem.id, bold=True)}   {problem.title}", facts]
    if problem.requires:
        needs = ", ".join(f"{need} ({progress.of(need)})" for need in problem.requires)
        lines += textwrap.wrap(f"builds on {needs}", look.width, break_on_hyphens=False)
    return "\n".join(lines)


def _section(title: str, body: str, look: Look) -> str:
    return f"{look.style(title, bold=True)}\n{textwrap.indent(body, '    ')}"


def _checked(problem: Problem, look: Look) -> str:
    names = check_names(problem)
    longest = max(map(len, names))
    rows = [row for name in names for row in _row(name, longest, look.width - 4)]
    seen, hidden = len(_visible(problem)), _hidden(problem)
    rows.append("")
    rows += textwrap.wrap(_cases(problem, seen, hidden), look.width - 4, break_on_hyphens=False)
    return "\n".join(rows)


def _row(name: str, longest: int, room: int) -> list[str]:
    head = f"{name:<{longest}}  "
    if room - len(head) < 24:
        return [name, *textwrap.wrap(SAYS[name], room, initial_indent="  ", subsequent_indent="  ")]
    return textwrap.wrap(SAYS[name], room, initial_indent=head, subsequent_indent=" " * len(head))


def _cases(problem: Problem, seen: int, hidden: int) -> str:
    names = "; ".join(case.name for case in _visible(problem))
    told = f": {names}" if names else ""
    more = f" {hidden} more are hidden and drawn afresh each time." if hidden else ""
    return f"{seen} visible case{'s' if seen != 1 else ''}{told}.{more}"


def _foot(problem: Problem, shown: _Shown) -> str:
    used = f", {shown.hints} shown" if shown.hints else ""
    return (
        f"{len(problem.hints)} hints{used}: mhaquiz hint {problem.id}\nNext: {_next(problem, shown.progress)}"
    )


def _next(problem: Problem, progress: Progress) -> str:
    if progress.of(problem.id) is Standing.PASSED:
        return f"mhaquiz solution {problem.id}"
    return f"mhaquiz attempt {problem.id}"
