"""One tree of errors that a user may see.

Each carries where, what, the likely cause, what to do next, whose fault it is and the exit code.
Nothing here prints; a renderer or the command line words and draws it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Whose fault an error is."""

    USAGE = "usage"
    SUBMISSION = "submission"
    PROBLEM = "problem"
    GRADER = "grader"
    ENVIRONMENT = "environment"


class ExitCode:
    """The exit codes of every command."""

    PASSED = 0
    NOT_PASSED = 1
    USAGE = 2
    BROKEN_PROBLEM = 3
    GRADER = 4


class MhaquizError(Exception):
    """Base of every error meant for a reader."""

    fault: Fault = Fault.GRADER
    exit_code: int = ExitCode.GRADER

    def __init__(self, what: str, *, where: str = "", cause: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.cause = cause
        self.next_step = next_step

    def to_json(self) -> dict[str, object]:
        """The `error` member of the JSON documents."""
        return {
            "where": self.where,
            "what": self.what,
            "cause": self.cause,
            "next": self.next_step,
            "fault": str(self.fault),
        }


class UsageError(MhaquizError):
    """The command line, a path or an option is wrong."""

    fault = Fault.USAGE
    exit_code = ExitCode.USAGE


class SubmissionError(MhaquizError):
    """The submitted file cannot be graded at all (missing entry, syntax error, ...)."""

    fault = Fault.SUBMISSION
    exit_code = ExitCode.NOT_PASSED


@dataclass(frozen=True)
class Mistake:
    """One mistake in a problem file. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class ProblemFileError(MhaquizError):
    """One or more problem files are broken; carries every mistake found, not only the first."""

    fault = Fault.PROBLEM
    exit_code = ExitCode.BROKEN_PROBLEM

    def __init__(self, mistakes: list[Mistake], *, next_step: str = "") -> None:
        first = mistakes[0]
        count = f"{len(mistakes)} mistakes" if len(mistakes) > 1 else "1 mistake"
        super().__init__(
            f"{count} in the problem file",
            where=f"{first.file}:{first.line}:{first.column}",
            next_step=next_step or "correct the lines named, then run `mhaquiz lint`",
        )
        self.mistakes = mistakes

    def to_json(self) -> dict[str, object]:
        """As every error, with each mistake's place."""
        return {**super().to_json(), "mistakes": [vars(mistake) for mistake in self.mistakes]}


class GraderError(MhaquizError):
    """The grader's own fault: never costs a score or an attempt."""
