"""A report as GitHub workflow commands: an error annotation for each failed check, a notice for a pass.

Escaping follows the workflow-command rules: `%`, CR and LF everywhere, `:` and `,` in properties too.
"""

from __future__ import annotations

from grader.render import words
from grader.render.safe import clean
from grader.report import CheckResult, Report, Status, Verdict


def render_github(report: Report) -> str:
    """One command a line."""
    if report.verdict is Verdict.PASSED:
        return _command(
            "notice", {"file": report.file, "title": report.problem}, words.verdict_sentence(report)
        )
    lines = [_check(report, check) for check in words.failed(report)]
    if report.error is not None:
        lines.append(_error(report))
    if not lines:
        lines.append(
            _command("error", {"file": report.file, "title": report.problem}, words.verdict_sentence(report))
        )
    return "".join(lines)


def _check(report: Report, check: CheckResult) -> str:
    place: dict[str, object] = {"file": report.file}
    if check.place is not None:
        place |= {"line": check.place.line}
        if check.place.end_line == check.place.line:
            place |= {"col": check.place.column, "endColumn": check.place.end_column}
        else:
            place |= {"endLine": check.place.end_line}
    place["title"] = f"{report.problem}: {check.name}"
    level = "error" if check.status is Status.FAILED else "warning"
    message = check.message if check.status is Status.FAILED else f"{check.message}\n{words.GRADER_FAULT}"
    return _command(level, place, "\n".join(part for part in (message, check.why) if part))


def _error(report: Report) -> str:
    error = report.error or {}
    said = [str(error.get("what", "")), str(error.get("where") or ""), str(error.get("cause") or "")]
    if error.get("fault"):
        said.append(f"Fault: {words.fault_words(error['fault'])}")
    said.append(f"Next: {words.next_words(report)}")
    return _command("error", {"file": report.file, "title": report.problem}, "\n".join(s for s in said if s))


def _command(level: str, properties: dict[str, object], message: str) -> str:
    told = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items() if str(value))
    return f"::{level} {told}::{_data(message)}\n"


def _data(text: str) -> str:
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
