"""A report for the terminal: what was checked, what failed and where, a picture, the mistake, the next step.

`plain` leaves out colours and box characters; `ascii` leaves out everything beyond ASCII. No line is wider
than the width, but for `path:line:column`, which is never broken so that editors can link it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from grader.render import words
from grader.render.glyphs import ASCII, PLAIN, UNICODE
from grader.render.page import Page
from grader.render.pictures import check_scene
from grader.render.safe import clean_inline, to_ascii
from grader.render.source import excerpt
from grader.render.text_picture import flow, scene_lines
from grader.report import CheckResult, Outcome, Place, Report, Status, Verdict

STDOUT_LINES = 8
TRACEBACK_LINES = 24
MISTAKES_AT_MOST = 12

_LINKED = re.compile(r":\d+(?::\d+)?$")

_STYLES = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.SKIPPED: "dim",
    Status.ERRORED: "bold yellow",
}


def render_terminal(
    report: Report,
    *,
    width: int,
    color: bool,
    ascii: bool = False,
    plain: bool = False,
    attempt: int | None = None,
    next_step: str = "",
) -> str:
    """The whole report as text of at most `width` columns, ended by a line break."""
    glyphs = ASCII if ascii else PLAIN if plain else UNICODE
    page = Page(width=width, color=color and not plain, glyphs=glyphs)
    _header(page, report, attempt)
    _checks_row(page, report)
    _failed_checks(page, report)
    _mistakes(page, report)
    _verdict(page, report)
    _run(page, report)
    _error(page, report)
    page.blank()
    page.say(("Next: ", "bold"), words.next_words(report, next_step), hang=2)
    return str(page)


def _header(page: Page, report: Report, attempt: int | None) -> None:
    facts = [report.device, f"{report.duration_ms:.0f} ms" if report.duration_ms else ""]
    if attempt is not None:
        facts.insert(0, f"attempt {attempt}")
    told = f" {page.glyphs.separator} ".join(fact for fact in facts if fact)
    page.say((report.problem, "bold"), f"   {told}" if told else "", hang=2)


def _checks_row(page: Page, report: Report) -> None:
    """Every check with its mark; those not run say what they wait for."""
    if not report.checks:
        return
    page.blank()
    items = {_item(page, check): check for check in report.checks}
    for line in flow(list(items), page.width - 2, "   "):
        parts: list[tuple[str, str] | str] = []
        for item in line.split("   "):
            parts += ["   "] if parts else []
            parts.append((item, _STYLES[items[item].status]) if item in items else item)
        page.say(*parts, indent=2, hang=2)


def _item(page: Page, check: CheckResult) -> str:
    tail = f" ({words.waiting(check)})" if check.status is Status.SKIPPED else ""
    text = clean_inline(f"{page.glyphs.status[check.status]} {check.name}{tail}")
    return to_ascii(text) if page.glyphs.ascii else text


def _failed_checks(page: Page, report: Report) -> None:
    for check in words.failed(report):
        page.blank()
        mark = page.glyphs.status[check.status]
        page.say((f"{mark} {check.name}: ", _STYLES[check.status]), check.message, hang=2)
        if check.status is Status.ERRORED:
            page.say(words.GRADER_FAULT, indent=2)
        _place(page, report, check)
        if check.why:
            page.say(check.why, indent=2)
        _facts(page, check)
        _scene(page, report, check)


def _place(page: Page, report: Report, check: CheckResult) -> None:
    if check.place is None:
        return
    page.exact((words.place_words(report, check), "cyan"), indent=2)
    operation = words.operation_at(report, check)
    _source_line(page, report.source, check.place, words.operation_words(operation) if operation else "")


def _source_line(page: Page, source: str, place: Place, note: str = "") -> None:
    """The line and its carets; a note that does not fit beside the carets goes below them."""
    number = str(place.line)
    room = page.width - 4 - len(number) - 3
    found = excerpt(source, place, width=room, dots=page.glyphs.dots, ascii=page.glyphs.ascii)
    if found is None:
        return
    gutter = f" {page.glyphs.gutter} "
    page.exact((number + gutter, "dim"), found.code, indent=4)
    empty = " " * len(number)
    under = " " * found.indent + found.carets
    fits = len(under) + 1 + len(note) <= room
    page.exact((empty + gutter, "dim"), (f"{under} {note}" if fits and note else under, "red"), indent=4)
    if note and not fits:
        page.say((note, "red"), indent=4 + len(number) + 3)


def _facts(page: Page, check: CheckResult) -> None:
    """What was expected and what came, and on which case."""
    case = words.case_words(check) or None
    for name, value in (("expected", check.expected), ("actual", check.actual), ("case", case)):
        if value is not None:
            page.say((f"{name:<9} ", "dim"), value, indent=2, hang=10)


def _scene(page: Page, report: Report, check: CheckResult) -> None:
    """The picture; one that two checks share is drawn once."""
    earlier = words.same_picture(report, check)
    if earlier:
        page.say(f"The picture is the one under {earlier}.", indent=2)
        return
    scene = check_scene(check)
    if not scene:
        return
    page.blank()
    for line in scene_lines(scene, width=page.width - 2, glyphs=page.glyphs):
        page.exact(line, indent=2)


def _mistakes(page: Page, report: Report) -> None:
    for mistake in report.mistakes:
        page.blank()
        page.say(("Known mistake: ", "bold"), mistake.title, hang=2)
        page.say(mistake.explanation, indent=2)
        if mistake.fix:
            page.say(("Fix: ", "bold"), mistake.fix, indent=2, hang=2)


def _verdict(page: Page, report: Report) -> None:
    page.blank()
    style = "bold green" if report.verdict is Verdict.PASSED else "bold"
    page.say((words.verdict_sentence(report), style), hang=2)
    names = words.failed_visible(report)
    if names:
        page.say(f"Visible cases that failed: {'; '.join(names)}", indent=2, hang=2)
    if report.verdict is Verdict.PASSED:
        _basis(page, report)
    for note in report.notes:
        page.say(f"Note: {note}", indent=2, hang=2)
    reproduce = words.reproduce_words(report)
    if reproduce:
        page.say(reproduce, indent=2, hang=2)


def _basis(page: Page, report: Report) -> None:
    """What a pass rests on, so that it can be repeated."""
    facts = [f"seed {report.seed}" if report.seed else "", f"torch {report.torch}" if report.torch else ""]
    facts.append(f"sandbox {report.sandbox}" if report.sandbox else "")
    told = ", ".join(fact for fact in facts if fact)
    if told:
        page.say(f"Inputs drawn afresh: {told}.", indent=2, hang=2)


def _run(page: Page, report: Report) -> None:
    run = report.run
    if run.outcome is not Outcome.RETURNED:
        page.blank()
        detail = f": {run.detail}" if run.detail else "."
        page.say(f"{report.file} {words.OUTCOMES[run.outcome]}{detail}", hang=2)
    if run.traceback:
        page.block(run.traceback, indent=2, at_most=TRACEBACK_LINES)
    if run.stdout.strip():
        page.blank()
        page.say("It printed:")
        page.block(run.stdout, indent=2, style="dim", at_most=STDOUT_LINES)


def _error(page: Page, report: Report) -> None:
    """An error of any fault: what, where, the likely cause and whose fault. The next step ends the page."""
    error = report.error
    if error is None:
        return
    page.blank()
    page.say(("Error: ", "bold red"), str(error.get("what", "")), hang=2)
    where, mistakes = str(error.get("where") or ""), _file_mistakes(error)
    if where and not mistakes:
        (page.exact if _LINKED.search(where) else page.say)((where, "cyan"), indent=2)
        _error_source(page, report, where)
    for mistake in mistakes[:MISTAKES_AT_MOST]:
        page.exact((f"{mistake['file']}:{mistake['line']}:{mistake['column']}", "cyan"), indent=2)
        page.say(str(mistake["message"]), indent=4)
    if error.get("cause"):
        page.say(("Likely cause: ", "bold"), str(error["cause"]), indent=2, hang=2)
    if error.get("fault"):
        page.say(("Fault: ", "bold"), words.fault_words(error["fault"]), indent=2, hang=2)


def _file_mistakes(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The mistakes of a problem file, when the error carries them: file, line, column, message."""
    wanted = ("file", "line", "column", "message")
    return [m for m in error.get("mistakes", ()) if isinstance(m, Mapping) and all(k in m for k in wanted)]


def _error_source(page: Page, report: Report, where: str) -> None:
    """The source line an error names, when it lies in the submitted file."""
    found = re.fullmatch(re.escape(report.file) + r":(\d{1,9})(?::(\d{1,9}))?", where)
    if found and report.source:
        line, column = int(found[1]), int(found[2] or 1)
        _source_line(page, report.source, Place(line, column, line, column + 1))
