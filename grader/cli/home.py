"""`mhaquiz` alone: where you are, and the one command to type next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from grader.cli.common import App, Look
from grader.cli.failure import warn
from grader.cli.list import next_line
from grader.progress import Progress, TrackCount, by_track, count, read_progress
from grader.report import Verdict
from grader.store.store import Attempt

BAR = 20
WORDS = {
    Verdict.PASSED: "passed",
    Verdict.FAILED: "not passed yet",
    Verdict.NOT_STARTED: "starter unchanged",
    Verdict.INVALID: "could not be loaded",
    Verdict.GRADER_ERROR: "the grader's own fault",
}


def home(app: App, now: datetime | None = None) -> int:
    """Print the overview."""
    tracks = by_track(app.library().problems())
    with app.store() as store:
        progress = read_progress(store)
    if progress.trouble is not None:
        warn(app, progress.trouble)
    look = app.look()
    counts = [count(track, problems, progress) for track, problems in tracks.items()]
    parts = [_heading(counts, look), _counts(counts, look), _last(progress, now or datetime.now(UTC))]
    parts.append(next_line(tracks, tracks, progress) if tracks else "Next: mhaquiz doctor")
    app.out("\n\n".join(part for part in parts if part))
    return 0


def _heading(counts: list[TrackCount], look: Look) -> str:
    passed, total = sum(item.passed for item in counts), sum(item.total for item in counts)
    name = look.style("mhaquiz", bold=True)
    if total == 0:
        return f"{name}   no problems were found"
    return f"{name}   {passed} of {total} problems passed"


def _counts(counts: list[TrackCount], look: Look) -> str:
    longest = max((len(item.track) for item in counts), default=0)
    return "\n".join(_count(item, longest, look) for item in counts)


def _count(item: TrackCount, longest: int, look: Look) -> str:
    done = round(BAR * item.passed / item.total)
    full, empty = ("█", "·") if look.unicode and not look.plain else ("#", ".")
    bar = look.style(full * done, fg="green") + empty * (BAR - done)
    tried = f", {item.tried} tried" if item.tried else ""
    return f"  {item.track:<{longest}}  {bar}  {item.passed} of {item.total}{tried}"


def _last(progress: Progress, now: datetime) -> str:
    last = progress.last
    if last is None:
        return ""
    score = f", {last.earned} of {last.possible} checks" if last.possible else ""
    return f"  last: {last.problem}, {WORDS[last.verdict]}{score}, {ago(last, now)}"


def ago(attempt: Attempt, now: datetime) -> str:
    """How long ago an attempt was, in words."""
    gone = max(timedelta(0), now - datetime.fromisoformat(attempt.started_at))
    for unit, seconds in (("day", 86400), ("hour", 3600), ("minute", 60)):
        number = int(gone.total_seconds() // seconds)
        if number:
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "just now"
