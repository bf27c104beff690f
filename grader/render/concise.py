"""A report in a few lines for editors and scripts: one line a failed check, then the verdict."""

from __future__ import annotations

from grader.render import words
from grader.render.safe import clean_inline
from grader.report import Report


def render_concise(report: Report) -> str:
    """`file:line:column: check: message` for every failed check, the error if any, and the verdict."""
    lines = [
        f"{words.place_words(report, check)}: {check.name}: {check.message or words.STATUSES[check.status]}"
        for check in words.failed(report)
    ]
    if report.error is not None:
        where = report.error.get("where") or report.file
        lines.append(f"{where}: error: {report.error.get('what', '')}")
    lines.append(f"{report.problem}: {words.verdict_sentence(report)}")
    return "".join(f"{clean_inline(line)}\n" for line in lines)
