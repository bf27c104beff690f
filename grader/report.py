"""The feedback model: what a grade is, as plain data. No torch, no drawing, no words of its own.

Everything a renderer needs is in a `Report`; `Report.to_json()` is the stable JSON document (schema 1).
Lines and columns count from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SCHEMA = 1


class Status(StrEnum):
    """The status of one check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERRORED = "errored"


class Outcome(StrEnum):
    """How a run of the submission ended."""

    RETURNED = "returned"
    RAISED = "raised"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    PROCESS_LIMIT = "process_limit"
    OUTPUT_LIMIT = "output_limit"
    KILLED = "killed"
    REFUSED = "refused"


class Verdict(StrEnum):
    """The verdict on the whole submission."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_STARTED = "not_started"
    INVALID = "invalid"
    GRADER_ERROR = "grader_error"


EXIT_CODES = {
    Verdict.PASSED: 0,
    Verdict.FAILED: 1,
    Verdict.NOT_STARTED: 1,
    Verdict.INVALID: 1,
    Verdict.GRADER_ERROR: 4,
}


@dataclass(frozen=True)
class Place:
    """A span of the submission's source, counted from 1; `end_column` is one past the last character."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Finding:
    """One fact that a check holds against a submission: a code and its data, no words.

    `trial` is the index of the trial (the concrete call) that showed it.
    """

    check: str
    code: str
    data: Mapping[str, Any] = field(default_factory=dict)
    trial: int | None = None
    place: Place | None = None


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in memory: what pictures are drawn from. Strides and offset in elements.

    `axes` names each axis ("B", "H", ...); `shares` is the input it is a view of, or None.
    """

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    itemsize: int
    shares: str | None


@dataclass(frozen=True)
class Picture:
    """What was asked and what came, for a memory picture and a stride table.

    `kind` says which drawing fits: "layout" (strides), "moves" (which element landed where), "mask"
    (rows of booleans under `rows`), "fan_out" (which query head reads which K/V head).
    """

    kind: str
    asked: Layout | None = None
    yours: Layout | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckResult:
    """One check's result over every case, worded. Exactly one per check in a report."""

    name: str
    status: Status
    code: str | None = None
    message: str = ""
    why: str = ""
    reason: str | None = None
    waits_for: str | None = None
    place: Place | None = None
    expected: str | None = None
    actual: str | None = None
    case: Mapping[str, Any] | None = None
    case_name: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    picture: Picture | None = None
    snippet: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The check's entry in the JSON report."""
        return {
            "name": self.name,
            "status": str(self.status),
            "code": self.code,
            "message": self.message,
            "why": self.why,
            "reason": self.reason,
            "waits_for": self.waits_for,
            **_place_json(self.place),
            "expected": self.expected,
            "actual": self.actual,
            "case": dict(self.case) if self.case is not None else None,
            "case_name": self.case_name,
            "data": dict(self.data),
            "snippet": self.snippet,
        }


@dataclass(frozen=True)
class CaseResult:
    """How one case of the problem fared: passed when no check failed on any of its trials."""

    name: str
    visible: bool
    passed: bool
    sizes: Mapping[str, int]


@dataclass(frozen=True)
class NamedMistake:
    """A known wrong version that agrees with the submission on every case."""

    id: str
    title: str
    explanation: str
    fix: str = ""


@dataclass(frozen=True)
class OperationNote:
    """One operation worth showing: a copy, a cast or a refused library call, with its place."""

    op: str
    call: str
    kind: str
    new_bytes: int
    place: Place | None

    def to_json(self) -> dict[str, Any]:
        """The operation's entry in the JSON report."""
        return {
            "op": self.op,
            "call": self.call,
            **_place_json(self.place),
            "new_bytes": self.new_bytes,
            "kind": self.kind,
        }


@dataclass(frozen=True)
class RunSummary:
    """How the run of the submission went. `traceback` holds the submission's own frames only."""

    outcome: Outcome = Outcome.RETURNED
    stdout: str = ""
    traceback: str | None = None
    detail: str = ""


@dataclass(frozen=True)
class Tally:
    """So many passed of so many."""

    passed: int
    total: int


@dataclass(frozen=True)
class Report:
    """The whole verdict on one submission."""

    version: str
    problem: str
    title: str
    problem_revision: str
    file: str
    verdict: Verdict
    seed: str
    device: str
    torch: str
    python: str
    sandbox: str
    duration_ms: float
    checks: tuple[CheckResult, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    mistakes: tuple[NamedMistake, ...] = ()
    operations: tuple[OperationNote, ...] = ()
    run: RunSummary = RunSummary()
    error: Mapping[str, Any] | None = None
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code that goes with the verdict; an error may carry its own (a broken problem is 3)."""
        if self.error is not None and "exit_code" in self.error:
            return int(self.error["exit_code"])
        return EXIT_CODES[self.verdict]

    @property
    def score(self) -> Tally:
        """Checks passed of checks there are."""
        earned = sum(check.status is Status.PASSED for check in self.checks)
        return Tally(earned, len(self.checks))

    @property
    def visible(self) -> Tally:
        """Visible cases passed of visible cases."""
        return self._tally(visible=True)

    @property
    def hidden(self) -> Tally:
        """Hidden cases passed of hidden cases."""
        return self._tally(visible=False)

    def _tally(self, *, visible: bool) -> Tally:
        chosen = [case for case in self.cases if case.visible is visible]
        return Tally(sum(case.passed for case in chosen), len(chosen))

    def check(self, name: str) -> CheckResult:
        """The result of the check called `name`; KeyError when the problem has no such check."""
        for result in self.checks:
            if result.name == name:
                return result
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """The JSON report, schema version 1."""
        return {
            "schema": SCHEMA,
            "mhaquiz": self.version,
            "problem": self.problem,
            "title": self.title,
            "problem_revision": self.problem_revision,
            "file": self.file,
            "verdict": str(self.verdict),
            "exit_code": self.exit_code,
            "seed": self.seed,
            "device": self.device,
            "torch": self.torch,
            "python": self.python,
            "sandbox": self.sandbox,
            "duration_ms": round(self.duration_ms, 1),
            "score": {"earned": self.score.passed, "possible": self.score.total},
            "visible": {"passed": self.visible.passed, "total": self.visible.total},
            "hidden": {"passed": self.hidden.passed, "total": self.hidden.total},
            "checks": [check.to_json() for check in self.checks],
            "cases": [_case_json(case) for case in self.cases],
            "mistakes": [_mistake_json(mistake) for mistake in self.mistakes],
            "operations": [operation.to_json() for operation in self.operations],
            "run": {
                "outcome": str(self.run.outcome),
                "stdout": self.run.stdout,
                "traceback": self.run.traceback,
                "detail": self.run.detail,
            },
            "notes": list(self.notes),
            "error": dict(self.error) if self.error is not None else None,
        }


def _place_json(place: Place | None) -> dict[str, int | None]:
    if place is None:
        return {"line": None, "column": None, "end_line": None, "end_column": None}
    return {
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
    }


def _case_json(case: CaseResult) -> dict[str, Any]:
    sizes = dict(case.sizes) if case.visible else None
    return {"name": case.name, "visible": case.visible, "passed": case.passed, "sizes": sizes}


def _mistake_json(mistake: NamedMistake) -> dict[str, str]:
    return {
        "id": mistake.id,
        "title": mistake.title,
        "explanation": mistake.explanation,
        "fix": mistake.fix,
    }
