"""A report as one page: no script, no outside resource, light and dark, prints and reads on a phone.

The page's structure is in templates/report.html.j2 and its partials; this module prepares what they show.
Everything foreign is cleaned of control and bidirectional characters here and escaped by the template engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from grader.render import words
from grader.render.code import DARK, LIGHT, CodeLine, code_css, code_lines
from grader.render.glyphs import UNICODE
from grader.render.pictures import check_scene
from grader.render.safe import clean, clean_inline
from grader.render.scene import Numbers, Scene, Table
from grader.render.svg import drawing_svg, links_svg
from grader.report import CheckResult, OperationNote, Outcome, Place, Report

AROUND = 3


@dataclass(frozen=True)
class Figure:
    """One drawing and the same in a sentence."""

    title: str
    svg: Markup
    alt: str


@dataclass(frozen=True)
class FailedCheck:
    """A check to explain: its result and what is drawn beside it.

    A picture that an earlier check shows already is not repeated: `same_picture_as` names that check.
    """

    result: CheckResult
    place: str
    case: str
    code: tuple[CodeLine, ...]
    note: str
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    numbers: tuple[Numbers, ...]
    same_picture_as: str


@dataclass(frozen=True)
class Operation:
    """One row of the operations table, in words."""

    note: OperationNote
    did: str
    place: str


def render_html(report: Report, *, templates: Path | None = None, next_step: str = "") -> str:
    """The page. `templates` is the folder of report.html.j2; the installed one when None."""
    environment = page_environment(templates or _installed_templates())
    return environment.get_template("report.html.j2").render(page_data(report, next_step=next_step))


def page_environment(templates: Path) -> Environment:
    """Jinja with escaping always on, undefined names as errors, and the filters the partials use."""
    environment = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = lambda value: clean_inline(str(value))
    environment.filters["prose"] = prose
    environment.filters["lines"] = lambda value: clean(str(value)).rstrip("\n")
    return environment


def prose(text: object) -> Markup:
    """One line of words, escaped, in which `code` between backticks is set as code."""
    parts = str(escape(clean_inline(str(text)))).split("`")
    if len(parts) % 2 == 0:
        return Markup("`".join(parts))
    return Markup("".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts)))


def page_data(report: Report, *, next_step: str = "") -> dict[str, Any]:
    """What report.html.j2 and its partials read."""
    places = tuple(check.place for check in words.failed(report) if check.place is not None)
    return {
        "report": report,
        "failed": tuple(_failed(report, check, n) for n, check in enumerate(words.failed(report), start=1)),
        "verdict": words.VERDICTS[report.verdict],
        "sentence": words.verdict_sentence(report),
        "failed_cases": words.failed_visible(report),
        "code": code_lines(report.source, places) if report.source else (),
        "operations": tuple(_operation(report, note) for note in report.operations),
        "ended": "" if report.run.outcome is Outcome.RETURNED else words.OUTCOMES[report.run.outcome],
        "fault": words.fault_words(report.error["fault"])
        if report.error and report.error.get("fault")
        else "",
        "next": words.next_words(report, next_step),
        "waiting": words.waiting,
        "statuses": words.STATUSES,
        "grader_fault": words.GRADER_FAULT,
        "glyphs": UNICODE,
        "code_css": _page_code_css(),
    }


def _failed(report: Report, check: CheckResult, number: int) -> FailedCheck:
    earlier = words.same_picture(report, check)
    scene = Scene() if earlier else check_scene(check)
    operation = words.operation_at(report, check)
    return FailedCheck(
        result=check,
        place=words.place_words(report, check) if check.place else "",
        case=words.case_words(check),
        code=_excerpt(report.source, check.place),
        note=words.operation_words(operation) if operation else "",
        tables=scene.tables,
        figures=_figures(scene, f"check-{number}"),
        numbers=scene.numbers,
        same_picture_as=earlier,
    )


def _figures(scene: Scene, name: str) -> tuple[Figure, ...]:
    drawn = [
        Figure(d.title, Markup(drawing_svg(d, f"{name}-grid-{n}")), d.alt)
        for n, d in enumerate(scene.drawings)
    ]
    read = [
        Figure(k.title, Markup(links_svg(k, f"{name}-reads-{n}")), k.alt) for n, k in enumerate(scene.links)
    ]
    return (*drawn, *read)


def _excerpt(source: str, place: Place | None) -> tuple[CodeLine, ...]:
    return code_lines(source, (place,), around=AROUND) if place is not None and source else ()


def _operation(report: Report, note: OperationNote) -> Operation:
    place = f"{report.file}:{note.place.line}:{note.place.column}" if note.place else ""
    return Operation(note, words.operation_words(note), place)


@cache
def _page_code_css() -> Markup:
    """Token colours for both schemes. Text of a pygments style, nothing foreign."""
    dark = "\n".join(f"  {line}" for line in code_css(DARK).splitlines())
    return Markup(f"{code_css(LIGHT)}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}")


def _installed_templates() -> Path:
    from grader.content import default_library

    return default_library().templates()
