"""The few words a renderer adds of its own: verdicts, outcomes, faults, the tally, the next step.

What a check says is never worded here: messages arrive in the report.
"""

from __future__ import annotations

from grader.errors import Fault
from grader.report import CheckResult, OperationNote, Outcome, Report, Status, Tally, Verdict

VERDICTS = {
    Verdict.PASSED: "passed",
    Verdict.FAILED: "not passed",
    Verdict.NOT_STARTED: "not started",
    Verdict.INVALID: "cannot be graded",
    Verdict.GRADER_ERROR: "not graded",
}

OUTCOMES = {
    Outcome.RETURNED: "returned",
    Outcome.RAISED: "raised an exception",
    Outcome.TIME_LIMIT: "ran past the time limit",
    Outcome.MEMORY_LIMIT: "ran past the memory limit",
    Outcome.PROCESS_LIMIT: "started more processes than allowed",
    Outcome.OUTPUT_LIMIT: "printed more than allowed",
    Outcome.KILLED: "was killed",
    Outcome.REFUSED: "was refused",
}

FAULTS = {
    Fault.USAGE: "the command as typed",
    Fault.SUBMISSION: "the submitted file",
    Fault.PROBLEM: "the problem file, not your code; no attempt was counted",
    Fault.GRADER: "the grader's own, not your code; no attempt was counted",
    Fault.ENVIRONMENT: "this machine's setup, not your code; no attempt was counted",
}

STATUSES = {
    Status.PASSED: "passed",
    Status.FAILED: "failed",
    Status.SKIPPED: "not run",
    Status.ERRORED: "the grader's error",
}

GRADER_FAULT = "This check broke down: the grader's own fault, not your code. It costs no attempt."

_UNITS = ("KiB", "MiB", "GiB", "TiB")

_KINDS = {
    "explicit_copy": "copied {size}",
    "reshape_copy": "copied {size}",
    "internal_copy": "copied {size} inside the operation",
    "cast": "converted to another precision, {size} new",
}


def fault_words(fault: object) -> str:
    """Whose fault, in words; an unknown one as it is."""
    try:
        return FAULTS[Fault(str(fault))]
    except ValueError:
        return str(fault)


def verdict_sentence(report: Report) -> str:
    """The verdict and what it rests on."""
    if report.verdict is Verdict.NOT_STARTED:
        return f"Not started: {report.file} still holds the starter."
    if report.verdict is Verdict.INVALID:
        return f"Cannot be graded: {report.file}."
    if report.verdict is Verdict.GRADER_ERROR:
        return "Not graded: no judgement was made about your code."
    if report.verdict is Verdict.PASSED:
        return f"Passed: {_and_cases(_all(report.score, 'check'), report)}."
    checks = f"{report.score.passed} of {report.score.total} check{'' if report.score.total == 1 else 's'}"
    return f"Not passed: {_and_cases(checks, report)}."


def _and_cases(checks: str, report: Report) -> str:
    return ", ".join(part for part in (checks, tally(report)) if part)


def _all(count: Tally, noun: str) -> str:
    if count.passed != count.total:
        return f"{count.passed} of {count.total} {noun}s"
    return f"the one {noun}" if count.total == 1 else f"all {count.total} {noun}s"


def tally(report: Report) -> str:
    """ "3 of 3 visible cases, 4 of 6 hidden cases"; hidden ones are named only when there are any."""
    parts = [(report.visible, "visible"), (report.hidden, "hidden")]
    return ", ".join(
        f"{count.passed} of {count.total} {kind} case{'' if count.total == 1 else 's'}"
        for count, kind in parts
        if count.total
    )


def failed_visible(report: Report) -> tuple[str, ...]:
    """The names of the visible cases that did not pass."""
    return tuple(case.name for case in report.cases if case.visible and not case.passed)


def case_words(check: CheckResult) -> str:
    """The case that showed the failure: its name and sizes, as far as they may be told."""
    sizes = ", ".join(f"{name}={size}" for name, size in (check.case or {}).items())
    if check.case_name and sizes:
        return f"{check.case_name} ({sizes})"
    return check.case_name or sizes


def waiting(check: CheckResult) -> str:
    """Why a check was not run: "after no_copy", or the reason it carries."""
    return f"after {check.waits_for}" if check.waits_for else (check.reason or "not run")


def size_words(count: int) -> str:
    """A number of bytes as people write it: 320 bytes, 512 KiB, 1.5 MiB."""
    if count < 1024:
        return f"{count} byte{'' if count == 1 else 's'}"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:.1f}".removesuffix(".0") + f" {_UNITS[power - 1]}"


def operation_at(report: Report, check: CheckResult) -> OperationNote | None:
    """The noted operation at the place a check points to."""
    if check.place is None:
        return None
    at = (check.place.line, check.place.column)
    return next((o for o in report.operations if o.place and (o.place.line, o.place.column) == at), None)


def operation_words(operation: OperationNote) -> str:
    """What an operation did to memory: "copied 512 KiB"."""
    kind = operation.kind.replace("_", " ")
    if not operation.new_bytes:
        return kind
    size = size_words(operation.new_bytes)
    return _KINDS[operation.kind].format(size=size) if operation.kind in _KINDS else f"{kind}, {size} new"


def next_words(report: Report, given: str = "") -> str:
    """What to type next: as given, as the error says, else by verdict."""
    said = given or str((report.error or {}).get("next") or "")
    if said:
        return said
    if report.verdict is Verdict.PASSED:
        return "run `mhaquiz` to see the next problem"
    if report.verdict is Verdict.GRADER_ERROR:
        return f"run `mhaquiz attempt {report.problem}` again, then `mhaquiz doctor`"
    return f"edit {report.file}, then run `mhaquiz attempt {report.problem}`"


def reproduce_words(report: Report) -> str:
    """Where the snippet is that shows a failure without the grader; empty when there is none."""
    if not any(check.snippet for check in failed(report)):
        return ""
    return (
        "To reproduce without the grader: the `snippet` of the failed check in "
        f"`mhaquiz attempt {report.problem} --format json`"
    )


def failed(report: Report) -> tuple[CheckResult, ...]:
    """The checks to explain, in order: those that failed and those that broke down."""
    return tuple(c for c in report.checks if c.status in (Status.FAILED, Status.ERRORED))


def same_picture(report: Report, check: CheckResult) -> str:
    """The name of an earlier failed check with the same picture, when nothing else is drawn; else empty."""
    if check.picture is None or "window" in check.data:
        return ""
    first = next(each for each in failed(report) if each.picture == check.picture)
    return "" if first is check else first.name


def place_words(report: Report, check: CheckResult) -> str:
    """`file:line:column`, or only the file when the check points nowhere."""
    if check.place is None:
        return report.file
    return f"{report.file}:{check.place.line}:{check.place.column}"
