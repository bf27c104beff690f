"""`mhaquiz sandbox check`: which sandboxes work on this machine, what each holds, and what to install."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from grader.cli.common import App, Look, format_option, pass_app, print_json, shared_options, version
from grader.errors import ExitCode, GraderError, UsageError
from grader.store.folder import state_folder

if TYPE_CHECKING:
    from grader.host.sandbox.base import Sandbox
    from grader.host.sandbox.promise import Held

GROUPS = {
    "sees": ("sees nothing of others", "a submission learns what others do on this machine"),
    "reads": ("reads nothing of others", "a submission reads files that are not its own"),
    "writes": ("writes only to its scratch folder", "a submission changes files that are not its own"),
    "reaches": (
        "reaches no process, network or kernel",
        "a submission acts on other processes or the network",
    ),
    "limits": ("is held to its limits", "a submission takes more of this machine than it is given"),
    "leaves": ("leaves nothing behind", "a submission leaves something for those that come after it"),
}
"""By kind of promise: what is promised, and what it means when one is broken."""


@dataclass(frozen=True)
class Examined:
    """One sandbox on this machine: why it does not work, or what it holds."""

    sandbox: Sandbox
    reason: str | None
    held: tuple[Held, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether other people's code may run under it here."""
        return self.sandbox.holds_strangers and self.reason is None and not self.broken

    @property
    def broken(self) -> list[Held]:
        """The promises that are broken, and those of which nobody knows."""
        from grader.host.sandbox.conformance import breaks

        return list(breaks(self.held))


@click.group("sandbox")
def sandbox() -> None:
    """What encloses a submission on this machine.

    \b
    Example:
      mhaquiz sandbox check
    """


@sandbox.command("check")
@click.option("--backend", metavar="NAME", help="Only this one: bubblewrap, landlock or plain.")
@click.option("--dangerous", is_flag=True, help="Also try, within bounds, what loads this machine.")
@format_option("text", "json")
@shared_options
@pass_app
def check_command(app: App, backend: str | None, dangerous: bool, output_format: str) -> int:
    """Try to break every promise of every sandbox that works here.

    Ends with 0 when one that is meant for other people's code holds all of its promises, else 1.

    \b
    Examples:
      mhaquiz sandbox check
      mhaquiz sandbox check --backend landlock --dangerous
    """
    named = _named(app, backend)
    found: list[Examined] = []
    for one in named:
        found.append(examine(one, dangerous))
        if output_format == "text":
            app.out(_text(found[-1], app.look(), full=backend is not None) + "\n")
    chosen = _chosen(app)
    if output_format == "json":
        print_json(_document(found, chosen))
    else:
        app.out(_verdict(found, chosen, dangerous))
    return ExitCode.PASSED if any(one.holds for one in found) else ExitCode.NOT_PASSED


def _named(app: App, backend: str | None) -> list[Sandbox]:
    from grader.host.sandbox import backends

    known = backends((*app.library().folders(), state_folder()))
    if backend is None:
        return known
    fit = [one for one in known if one.name == backend]
    if not fit:
        names = ", ".join(one.name for one in known)
        raise UsageError(
            f"there is no sandbox `{backend}`", where="--backend", next_step=f"name one of {names}"
        )
    return fit


def examine(one: Sandbox, dangerous: bool) -> Examined:
    """Tries every promise of a sandbox, if it works here."""
    reason = one.available()
    if reason is not None:
        return Examined(one, reason)
    from grader.host.sandbox.conformance import check

    try:
        return Examined(one, None, tuple(check(one, dangerous, [state_folder()])))
    except GraderError as error:
        return Examined(one, f"{error.what}: {error.cause}")


def _chosen(app: App) -> tuple[str | None, str]:
    """The sandbox that a learner's own attempt would use here, else why there is none."""
    from grader.host.sandbox import choose

    try:
        return choose(app.library().folders()).name, ""
    except UsageError as error:
        return None, f"{error.what}. {error.next_step}"


def _document(found: Sequence[Examined], chosen: tuple[str | None, str]) -> dict[str, Any]:
    return {
        "mhaquiz": version(),
        "chosen": chosen[0],
        "holds_strangers": any(one.holds for one in found),
        "sandboxes": [
            {
                "name": one.sandbox.name,
                "for_strangers": one.sandbox.holds_strangers,
                "available": one.reason is None,
                "reason": one.reason,
                "holds": one.reason is None and not one.broken,
                "promises": [_entry(held) for held in one.held],
            }
            for one in found
        ],
        "error": None,
    }


def _entry(held: Held) -> dict[str, Any]:
    promise = held.promise
    return {
        "id": promise.id,
        "kind": str(promise.kind),
        "title": promise.title,
        "result": str(held.result),
        "detail": held.detail,
    }


def _text(one: Examined, look: Look, full: bool) -> str:
    """A line for each kind of promise. What has no walls is told in full only when asked for by its name."""
    purpose = "for other people's code" if one.sandbox.holds_strangers else "for your own code only"
    head = f"{one.sandbox.name}  {purpose}"
    if one.reason is not None:
        return "\n".join([head, *_wrapped(f"does not work here: {one.reason}", look, 2)])
    lines = [head]
    for kind, (title, _) in GROUPS.items():
        of_kind = [held for held in one.held if held.promise.kind == kind]
        lines += _group(of_kind, title, look)
        if full or one.sandbox.holds_strangers:
            lines += _broken(of_kind, kind, look)
    return "\n".join(lines)


def _group(held: Sequence[Held], title: str, look: Look) -> list[str]:
    """What is held of a kind of promise."""
    tried = [one for one in held if one.result != "not_tried"]
    kept = sum(one.held for one in tried)
    rest = f", {len(held) - len(tried)} not tried" if len(tried) < len(held) else ""
    good = kept == len(tried)
    sign = ("✓" if good else "✗") if look.unicode else ("ok" if good else "x")
    mark = look.style(f"{sign:<2}", fg="green" if good else "red")
    lines = _wrapped(f"{title}: {kept} of {len(tried)} held{rest}", look, 5)
    lines[0] = f"  {mark} {lines[0].lstrip()}"
    return lines


def _broken(held: Sequence[Held], kind: str, look: Look) -> list[str]:
    """Every promise that is not held, what was possible instead, and what that means."""
    lines: list[str] = []
    for one in held:
        if one.result in ("broken", "failed"):
            said = "not held" if one.result == "broken" else "could not be tried, a fault of mhaquiz"
            lines += _wrapped(f"{one.promise.id}, {said}: {one.promise.title}", look, 5)
            lines += _wrapped(f"but {one.detail}", look, 7)
    if any(one.result == "broken" for one in held):
        lines += _wrapped(f"So {GROUPS[kind][1]}.", look, 5)
    return lines


def _wrapped(text: str, look: Look, indent: int) -> list[str]:
    space = " " * indent
    return textwrap.wrap(
        text,
        max(30, look.width),
        initial_indent=space,
        subsequent_indent=space,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _verdict(found: Sequence[Examined], chosen: tuple[str | None, str], dangerous: bool) -> str:
    name, why_none = chosen
    used = f"mhaquiz uses {name} here." if name else f"mhaquiz can use none here: {why_none}."
    fit = [one.sandbox.name for one in found if one.holds]
    if fit:
        said = f"Other people's code may run here under {' or '.join(fit)}."
        step = "" if dangerous else "\nNext: mhaquiz sandbox check --dangerous tries the limits as well"
        return f"{used}\n{said}{step}"
    return f"{used}\nNo sandbox looked at here holds other people's code: do not grade it here.\nNext: {_remedy(found)}"


def _remedy(found: Sequence[Examined]) -> str:
    """What to do first, where nothing holds."""
    strict = [one for one in found if one.sandbox.holds_strangers]
    if not strict:
        return "mhaquiz sandbox check"
    missing = [one for one in strict if one.reason is not None]
    if missing:
        return f"make {missing[0].sandbox.name} work as said above, then mhaquiz sandbox check"
    broken = strict[0].broken[0].promise.id
    return (
        f"update the kernel and mhaquiz; where `{broken}` stays broken, report it with what is printed above"
    )
