"""`mhaquiz solution ID`: the reference as a learner would write it, other right ways, the interview.

Shown after a pass, or when the learner gives up and says so; giving up is remembered and costs nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from grader.cli.extract import Version, version, version_names
from grader.cli.failure import warn
from grader.errors import MhaquizError, UsageError
from grader.store.errors import StoreUnavailable
from grader.store.store import State

if TYPE_CHECKING:
    from grader.spec.model import Problem

REFERENCE = "reference"
LONG = 24


@dataclass(frozen=True)
class _Solution:
    """The problem and the versions of its solution file that may be shown."""

    problem: Problem
    reference: Version
    ways: tuple[Version, ...]


@click.command("solution")
@problem_argument()
@click.option("--give-up", is_flag=True, help="Show it without a pass; this is remembered.")
@click.option("--ways", is_flag=True, help="The other right ways in full, however long.")
@format_option("text", "json")
@shared_options
@pass_app
def solution(app: App, problem: str, give_up: bool, ways: bool, output_format: str) -> None:
    """The reference solution, other right ways, and what an interviewer asks next.

    After a pass, or with --give-up.

    \b
    Examples:
      mhaquiz solution split-heads
      mhaquiz solution split-heads --give-up
    """
    found = _find(app, problem)
    _allow(app, problem, give_up=give_up)
    following = _next(app, problem)
    if output_format == "json":
        print_json({**as_json(found), "next": following, "error": None})
        return
    app.out(as_text(found, app.look(), ways=ways))
    app.out(f"\nNext: {following}")


def _allow(app: App, problem: str, *, give_up: bool) -> None:
    """Note that the learner gives up, or refuse; a store that cannot be used refuses nobody who gives up."""
    try:
        with app.store() as store:
            if store.states().get(problem) is State.PASSED or store.given_up(problem):
                return
            if give_up:
                store.give_up(problem)
                return
    except StoreUnavailable as trouble:
        if not give_up:
            raise
        warn(app, trouble)
        return
    raise UsageError(
        f"the solution of {problem} is shown after a pass",
        where=f"mhaquiz solution {problem}",
        cause="no attempt of yours has passed yet",
        next_step=f"mhaquiz hint {problem}, or mhaquiz solution {problem} --give-up to see it now",
    )


def _find(app: App, problem: str) -> _Solution:
    loaded = app.library().load(problem)
    source = app.library().solution_source(problem)
    try:
        reference = version(source, REFERENCE, _called(loaded))
        ways = tuple(version(source, name) for name in version_names(source, "right_"))
    except (KeyError, SyntaxError) as error:
        raise _broken(app, problem, error) from error
    return _Solution(loaded, reference, ways)


def _called(problem: Problem) -> str | None:
    """What the learner calls the reference; None with several entries, which it holds as attributes."""
    others = {step.name for step in problem.steps if step.do in ("call", "new")} - {None, problem.entry}
    return None if others else problem.entry


def _broken(app: App, problem: str, error: Exception) -> MhaquizError:
    from grader.errors import Mistake, ProblemFileError

    line = getattr(error, "lineno", None) or 1
    said = f"not valid Python: {error}" if isinstance(error, SyntaxError) else "there is no `reference`"
    return ProblemFileError([Mistake(str(app.library().solution_path(problem)), line, 1, said)])


def _next(app: App, problem: str) -> str:
    from grader.progress import Standing, next_problem, read_progress

    with app.store() as store:
        progress = read_progress(store)
    if progress.of(problem) is not Standing.PASSED:
        return f"close this, then write it yourself: mhaquiz attempt {problem}"
    try:
        following = next_problem(app.library().problems(), progress)
    except MhaquizError:  # another file is broken; `mhaquiz list` says which
        following = None
    return f"mhaquiz show {following.id}" if following is not None else "mhaquiz list"


def as_json(found: _Solution) -> dict[str, Any]:
    """The JSON document, but for what comes next."""
    problem = found.problem
    return {
        "id": problem.id,
        "entry": problem.entry,
        "reference": found.reference.code,
        "ways": [{"name": _way(item), "says": item.says, "code": item.code} for item in found.ways],
        "followups": [item.model_dump() for item in problem.followups],
        "red_flags": list(problem.red_flags),
        "real_systems": [item.model_dump() for item in problem.real_systems],
        "when_not": list(problem.when_not),
        "references": [item.model_dump() for item in problem.references],
    }


def as_text(found: _Solution, look: Look, *, ways: bool) -> str:
    """The page in a terminal."""
    problem = found.problem
    parts = [
        f"{look.style(problem.id, bold=True)}   {problem.title}",
        _code("Reference", found.reference.code, look),
        *(_one_way(item, problem.id, look, full=ways) for item in found.ways),
        _listed("What an interviewer asks next", [_followup(item) for item in problem.followups], look),
        _listed("Do not say", list(problem.red_flags), look),
        _listed(
            "Real systems",
            [f"{item.name}: {item.fact} ({item.source})" for item in problem.real_systems],
            look,
        ),
        _listed("When not to", list(problem.when_not), look),
        _listed("Read on", [f"{item.title}: {item.where}" for item in problem.references], look),
    ]
    return "\n\n".join(parts)


def _way(item: Version) -> str:
    return item.name.removeprefix("right_").replace("_", " ")


def _one_way(item: Version, problem: str, look: Look, *, full: bool) -> str:
    title = f"Another right way: {_way(item)}"
    lines = item.code.count("\n")
    if full or lines <= LONG:
        return _code(title, item.code, look)
    says = f"    {item.says}\n" if item.says else ""
    return f"{look.style(title, bold=True)}\n{says}    {lines} lines: mhaquiz solution {problem} --ways"


def _code(title: str, code: str, look: Look) -> str:
    body = "\n".join(f"    {line}" if line else "" for line in code.rstrip("\n").split("\n"))
    return f"{look.style(title, bold=True)}\n{body}"


def _followup(item: Any) -> str:
    return f"{item.question}\n\nStrong: {item.approach}\n\nWeak: {item.weak}"


def _listed(title: str, items: list[str], look: Look) -> str:
    from grader.cli.markdown import markdown

    mark = "·" if look.unicode else "-"
    entries = [f"  {mark} {markdown(item, look, indent=4).lstrip()}" for item in items]
    gap = "\n\n" if any("\n" in item for item in items) else "\n"
    return f"{look.style(title, bold=True)}\n{gap.join(entries)}"
