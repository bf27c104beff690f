"""The authoring gate: a problem is good only if the grader can tell right from wrong on it.

The reference and every `right_*` pass; the starter, every `wrong_*` and the degenerate answers fail; every
`wrong_*` is named as itself and as nothing else. Runs every version through the same engine as a submission.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.api import task
from grader.content import Library
from grader.errors import MhaquizError, Mistake, ProblemFileError
from grader.host.engine import Engine
from grader.judge import Submission, Task, grade, new_seed
from grader.plan import has_floats
from grader.report import Report, Status, Verdict
from grader.spec.model import Problem
from grader.versions import Version, entries_of

# Answers that hold nothing of the problem. Each must fail wherever the result is floating.
_DEGENERATE = {
    "all-zeros": "_each(out, torch.zeros_like)",
    "all-ones": "_each(out, torch.ones_like)",
    "bfloat16-inside": None,
    "first-input-returned": "_first(args)",
}
_WRAPPER = """

import copy as _copy

def _each(value, change):
    if isinstance(value, torch.Tensor):
        return change(value) if value.is_floating_point() else value
    if isinstance(value, (tuple, list)):
        return type(value)(_each(item, change) for item in value)
    if isinstance(value, dict):
        return {{key: _each(item, change) for key, item in value.items()}}
    return value

def _first(args):
    return next(a for a in args if isinstance(a, torch.Tensor))

def _low(args):
    return [_each(a, lambda t: t.to(torch.bfloat16)) for a in args]

def _back(out, args):
    dtype = next((a.dtype for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()), torch.float32)
    return _each(out, lambda t: t.to(dtype))
"""
_FUNCTION = """
def {entry}(*args):
    {low}out = reference(*args)
    return {result}
"""
_CLASS = """
class {entry}(reference):
    def forward(self, *args):
        {low}out = {call}
        return {result}
"""


@dataclass(frozen=True)
class Kill:
    """One version: what must come of it, what came of it, and the mistakes it was named as."""

    version: str
    expected: str
    status: str
    named: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.expected == self.status


@dataclass(frozen=True)
class Gated:
    """What the gate says of one problem."""

    id: str
    errors: tuple[Mistake, ...] = ()
    kills: tuple[Kill, ...] = ()

    @property
    def status(self) -> str:
        """`passed` or `failed`."""
        return "failed" if self.errors else "passed"

    def to_json(self) -> dict[str, Any]:
        """The problem's entry in `mhaquiz lint --format json`."""
        return {
            "id": self.id,
            "status": self.status,
            "errors": [vars(error) for error in self.errors],
            "kills": [{**vars(kill), "named": list(kill.named)} for kill in self.kills],
        }


def gate(library: Library, problem: str, engine: Engine) -> Gated:
    """Judges one problem. A broken file is a result, not an exception."""
    try:
        made = task(library, problem)
        listed = made.versions.listed
        errors = [*_requirements(library, made), *_listed(library, made, listed)]
    except ProblemFileError as error:
        return Gated(problem, tuple(error.mistakes))
    except MhaquizError as error:
        return Gated(problem, (Mistake(error.where or problem, 1, 1, f"{error.what} {error.cause}".strip()),))
    if not any(version.name == "reference" for version in listed):
        return Gated(problem, tuple(errors))
    try:
        made.versions.load()
    except ProblemFileError as error:
        return Gated(problem, (*errors, *error.mistakes))
    return _Gate(library, made, engine, errors).run()


def stray_files(library: Library) -> Iterator[Mistake]:
    """Files that belong to no problem."""
    for path in library.stray_files():
        yield Mistake(str(path), 1, 1, "stray file: it belongs to no problem")


def _requirements(library: Library, made: Task) -> Iterator[Mistake]:
    known = set(library.ids())
    path = str(library.path_of(made.problem.id))
    for name in made.problem.requires:
        if name not in known:
            yield Mistake(path, *_find(path, name), f"`requires` names `{name}`, which is no problem")


def _listed(library: Library, made: Task, listed: Sequence[Version]) -> Iterator[Mistake]:
    """The mistakes of the problem file and the wrong versions of the solution file must match."""
    path, solution = str(library.path_of(made.problem.id)), made.versions.filename
    if not any(version.name == "reference" for version in listed):
        yield Mistake(solution, 1, 1, "there is no `reference`")
    wrong = {version.mistake: version for version in listed if version.kind == "wrong"}
    ids = {mistake.id for mistake in made.problem.mistakes}
    for mistake in made.problem.mistakes:
        if mistake.id not in wrong:
            name = "wrong_" + mistake.id.replace("-", "_")
            yield Mistake(
                path, *_find(path, mistake.id), f"mistake `{mistake.id}` has no `{name}` in {solution}"
            )
    for name, version in wrong.items():
        if name not in ids:
            yield Mistake(
                solution, version.line, 1, f"`{version.name}` makes the mistake `{name}`, which {path} lacks"
            )


def _find(path: str, word: str) -> tuple[int, int]:
    """The line and column of a word in a file, for messages."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            at = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", line)
            if at:
                return number, at.start() + 1
    return 1, 1


@dataclass
class _Gate:
    """Runs every version of one problem."""

    library: Library
    made: Task
    engine: Engine
    errors: list[Mistake] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    # One fresh seed for all versions, so that each known mistake is worked out once.
    seed: str = field(default_factory=new_seed)

    def run(self) -> Gated:
        for version in self.made.versions.listed:
            self.version(version)
            if version.name == "reference" and not self.kills[-1].good:
                # Everything else is judged against it.
                return Gated(self.made.problem.id, tuple(self.errors), tuple(self.kills))
        self.starter()
        for name, source in degenerate(self.made.problem, self.made.versions.source):
            self.degenerate(name, source)
        return Gated(self.made.problem.id, tuple(self.errors), tuple(self.kills))

    def report(self, source: bytes) -> Report:
        entry = self.made.problem.entry.lower()
        return grade(self.made, Submission(source, f"{entry}.py"), self.engine, seed=self.seed)

    def version(self, version: Version) -> None:
        report = self.report(self.made.versions.submission_source(version.name))
        wrong = version.kind == "wrong"
        named = tuple(mistake.id for mistake in report.mistakes)
        kill = Kill(version.name, "failed" if wrong else "passed", str(report.verdict), named)
        self.kills.append(kill)
        if not kill.good:
            self.error(version.line, f"`{version.name}` {_came_out(report)}, expected {kill.expected}")
        elif wrong and named != (version.mistake,):
            said = ", ".join(f"`{name}`" for name in named) or "nothing"
            self.error(
                version.line,
                f"`{version.name}` is named as {said}, expected `{version.mistake}`: {_why(report)}",
            )

    def starter(self) -> None:
        # One more statement, so that it is graded and not merely recognised as the starter.
        report = self.report((self.made.problem.starter + "\n_ = None\n").encode())
        kill = Kill("(starter)", "failed", str(report.verdict))
        self.kills.append(kill)
        if not kill.good:
            path = str(self.library.path_of(self.made.problem.id))
            self.errors.append(Mistake(path, *_find(path, "starter"), f"the starter {_came_out(report)}"))

    def degenerate(self, name: str, source: bytes) -> None:
        report = self.report(source)
        kill = Kill(f"({name})", "failed", str(report.verdict))
        self.kills.append(kill)
        if not kill.good:
            self.error(
                1, f"the degenerate answer `{name}` {_came_out(report)}: no case tells it from the reference"
            )

    def error(self, line: int, message: str) -> None:
        self.errors.append(Mistake(self.made.versions.filename, line, 1, message))


def _came_out(report: Report) -> str:
    if report.verdict is Verdict.PASSED:
        return "passed"
    if report.error is not None:
        said = "; ".join(mistake["message"] for mistake in report.error.get("mistakes", ()))
        return f"came out as {report.verdict} ({said or report.error['what'] + ': ' + report.error['cause']})"
    return f"{report.verdict} ({_why(report)})"


def _why(report: Report) -> str:
    failed = [c for c in report.checks if c.status is Status.FAILED]
    return "; ".join(f"{c.name}: {c.message} [{c.case_name}]" for c in failed) or "no check failed"


def degenerate(problem: Problem, solution: str) -> Iterator[tuple[str, bytes]]:
    """Sources of answers that hold nothing of the problem."""
    if not has_floats(problem) or len(entries_of(problem)) > 1:
        return
    for name, result in _DEGENERATE.items():
        low = result is None
        if low and problem.numbers == "exact":
            continue
        yield name, _degenerate_source(problem, solution, result or "_back(out, given)", low=low).encode()


def _degenerate_source(problem: Problem, solution: str, result: str, *, low: bool) -> str:
    wrapper = solution + _WRAPPER.format()
    if problem.kind == "function":
        cast = "given = args; args = _low(args)\n    " if low else ""
        return wrapper + _FUNCTION.format(entry=problem.entry, result=result, low=cast)
    cast = "given = args; args = _low(args)\n        " if low else ""
    call = "reference.forward(_copy.deepcopy(self).bfloat16(), *args)" if low else "super().forward(*args)"
    return wrapper + _CLASS.format(entry=problem.entry, result=result, low=cast, call=call)


def matrix(results: Iterable[Gated]) -> str:
    """docs/kill-matrix.md: every version of every problem and what became of it."""
    lines = [
        "# Kill matrix",
        "",
        "Generated by `mhaquiz lint --matrix docs/kill-matrix.md`. Every right version passes; every wrong version",
        "and every degenerate answer fails, and a wrong one is named as its own mistake.",
    ]
    for result in results:
        lines += ["", f"## {result.id}", "", "| version | verdict | named |", "|---|---|---|"]
        lines += [f"| `{k.version}` | {k.status} | {', '.join(k.named)} |" for k in result.kills]
    return "\n".join(lines) + "\n"
