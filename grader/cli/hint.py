"""`mhaquiz hint ID`: one hint at a time, remembered, so that help is taken no faster than it is needed."""

from __future__ import annotations

import click

from grader.cli.common import App, format_option, pass_app, print_json, problem_argument, shared_options
from grader.cli.failure import warn
from grader.store.errors import StoreUnavailable


@click.command("hint")
@problem_argument()
@click.option("--all", "every", is_flag=True, help="Every hint at once.")
@format_option("text", "json")
@shared_options
@pass_app
def hint(app: App, problem: str, every: bool, output_format: str) -> None:
    """The next of a problem's three hints; each helps more than the one before.

    \b
    Examples:
      mhaquiz hint split-heads
      mhaquiz hint split-heads --all
    """
    texts = app.library().load(problem).hints
    before, now = _advance(app, problem, len(texts), every=every)
    chosen = list(enumerate(texts[:now], 1)) if every else [(now, texts[now - 1])]
    following = _next(problem, now, len(texts))
    if output_format == "json":
        hints = [{"number": number, "text": text} for number, text in chosen]
        print_json(
            {
                "id": problem,
                "shown": now,
                "total": len(texts),
                "hints": hints,
                "next": following,
                "error": None,
            }
        )
        return
    app.out(_text(app, chosen, len(texts)))
    if before == len(texts) and not every:
        app.out("\nThat was the last hint; every hint has been shown.")
    app.out(f"\nNext: {following}")


def _advance(app: App, problem: str, total: int, *, every: bool) -> tuple[int, int]:
    """How many hints were shown before and are now; without a store the first one, and a warning."""
    try:
        with app.store() as store:
            before = store.hints_shown(problem)
            return before, store.show_hint(problem, up_to=total if every else None)
    except StoreUnavailable as trouble:
        warn(app, trouble)
        app.note(
            f"  which hints you have seen is not remembered; mhaquiz hint {problem} --all shows every one"
        )
        return 0, total if every else 1


def _text(app: App, chosen: list[tuple[int, str]], total: int) -> str:
    from grader.cli.markdown import markdown

    look = app.look()
    return "\n\n".join(
        f"{look.style(f'Hint {number} of {total}', bold=True)}\n{markdown(text, look, indent=2)}"
        for number, text in chosen
    )


def _next(problem: str, shown: int, total: int) -> str:
    if shown < total:
        return f"mhaquiz attempt {problem}   (still stuck: mhaquiz hint {problem})"
    return f"mhaquiz attempt {problem}   (still stuck: mhaquiz solution {problem} --give-up)"
