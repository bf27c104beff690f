"""`mhaquiz list`: the problems by track, in the order to take them, with state. No torch, no pydantic."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from grader.cli.common import App, Look, format_option, pass_app, print_json, shared_options
from grader.cli.failure import warn
from grader.errors import MhaquizError, UsageError
from grader.progress import Progress, Standing, by_track, count, next_problem, read_progress

if TYPE_CHECKING:
    from grader.spec.load import Summary

MARKS = {Standing.PASSED: "✓", Standing.TRIED: "·", Standing.NEW: " ", Standing.UNKNOWN: "?"}
COLORS = {Standing.PASSED: "green", Standing.TRIED: "yellow", Standing.NEW: None, Standing.UNKNOWN: "red"}
TITLE_FROM = 60
CLIPPED = 3


def complete_track(ctx: click.Context, _parameter: click.Parameter, start: str) -> list[CompletionItem]:
    """The tracks that begin with `start`."""
    try:
        tracks = by_track(ctx.ensure_object(App).library().problems())
    except (MhaquizError, OSError):
        return []
    return [CompletionItem(track) for track in tracks if track.startswith(start)]


@click.command("list")
@click.argument("track", metavar="[TRACK]", required=False, shell_complete=complete_track)
@format_option("text", "json")
@shared_options
@pass_app
def list_command(app: App, track: str | None, output_format: str) -> None:
    """The problems, by track and in the order to take them, and how far you are with each.

    \b
    Examples:
      mhaquiz list
      mhaquiz list gqa
      mhaquiz list --format json
    """
    tracks = by_track(app.library().problems())
    with app.store() as store:
        progress = read_progress(store)
    if progress.trouble is not None:
        warn(app, progress.trouble)
    chosen = tracks if track is None else {track: _problems_of(track, tracks)}
    if output_format == "json":
        print_json([_entry(item, progress) for problems in chosen.values() for item in problems])
        return
    app.out(_text(chosen, tracks, progress, app.look()))


def _problems_of(track: str, tracks: dict[str, list[Summary]]) -> list[Summary]:
    if track in tracks:
        return tracks[track]
    close = get_close_matches(track, list(tracks), n=1)
    raise UsageError(
        f'there is no track "{track}"',
        where="the TRACK on the command line",
        cause=f"did you mean {close[0]}?" if close else f"the tracks are {', '.join(tracks) or 'none'}",
        next_step=f"mhaquiz list {close[0]}" if close else "mhaquiz list",
    )


def _entry(item: Summary, progress: Progress) -> dict[str, Any]:
    return {
        "id": item.id,
        "title": item.title,
        "track": item.track,
        "level": item.level,
        "state": str(progress.of(item.id)),
        "minutes": item.minutes,
        "summary": item.summary,
        "requires": list(item.requires),
    }


def _text(
    chosen: dict[str, list[Summary]], tracks: dict[str, list[Summary]], progress: Progress, look: Look
) -> str:
    if not chosen:
        return "There are no problems here.\n\nNext: mhaquiz doctor"
    longest = max(len(item.id) for problems in chosen.values() for item in problems)
    blocks = ["\n".join(_track(track, items, progress, look, longest)) for track, items in chosen.items()]
    return "\n\n".join([*blocks, next_line(tracks, chosen, progress)])


def _track(
    track: str, problems: Sequence[Summary], progress: Progress, look: Look, longest: int
) -> list[str]:
    counts = count(track, problems, progress)
    head = f"{look.style(track, bold=True)}   {counts.passed} of {counts.total} passed"
    return [head, *(_row(item, progress.of(item.id), look, longest) for item in problems)]


def _row(item: Summary, standing: Standing, look: Look, longest: int) -> str:
    """State and ID always; the level, then time and title, as far as the terminal is wide enough."""
    state = look.style(f"{MARKS[standing]} {standing:<7}", fg=COLORS[standing])
    row = f"  {state}  {item.id:<{longest}}"
    room = look.width - (2 + 9 + 2 + longest)
    if room < len(level := f"  level {item.level}"):
        return row.rstrip()
    if look.width < TITLE_FROM:
        return row + level
    time = f"  {item.minutes:>3} min"
    return f"{row}{level}{time}  {_clip(item.title, room - len(level + time) - 2, look)}".rstrip()


def _clip(text: str, room: int, look: Look) -> str:
    if len(text) <= room:
        return text
    dots = "…" if look.unicode else "..."
    return text[: room - len(dots)].rstrip() + dots if room > CLIPPED else ""


def next_line(tracks: dict[str, list[Summary]], chosen: dict[str, list[Summary]], progress: Progress) -> str:
    """The one command to type next: among the chosen tracks while something is open there, else anywhere."""
    every = [item for problems in tracks.values() for item in problems]
    mine = [item for problems in chosen.values() for item in problems]
    item = next_problem(mine, progress) or next_problem(every, progress)
    if item is None:
        return "Everything is passed.\nNext: mhaquiz solution ID shows what an interviewer asks after each."
    verb = "attempt" if progress.of(item.id) is Standing.TRIED else "show"
    return f"Next: mhaquiz {verb} {item.id}"
