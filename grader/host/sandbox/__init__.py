"""The sandboxes, the strictest first, and the choice among them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from grader.errors import UsageError
from grader.host.sandbox.base import Sandbox
from grader.host.sandbox.bubblewrap import Bubblewrap
from grader.host.sandbox.landlock import Landlock
from grader.host.sandbox.plain import Plain

VARIABLE = "MHAQUIZ_SANDBOX"
"""Environment variable that names the sandbox to use."""


def backends(hide: Sequence[Path] = ()) -> list[Sandbox]:
    """Every sandbox there is, available here or not, the strictest first. `hide`: more folders not to be read."""
    return [Bubblewrap(hide), Landlock(hide), Plain()]


def choose(hide: Sequence[Path] = (), *, strangers: bool = False) -> Sandbox:
    """The strictest sandbox that works here, or the one that the environment names.

    With `strangers` only one that holds other people's code. Raises UsageError when there is none, with what to do
    about each.
    """
    known = backends(hide)
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", *(sandbox.name for sandbox in known)):
        names = ", ".join(sandbox.name for sandbox in known)
        raise UsageError(
            f"there is no sandbox `{wanted}`", where=VARIABLE, next_step=f"set it to one of {names}"
        )
    fit = [s for s in known if wanted in ("", s.name) and (s.holds_strangers or not strangers)]
    reasons: dict[str, str] = {}
    for sandbox in fit:
        reason = sandbox.available()
        if reason is None:
            return sandbox
        reasons[sandbox.name] = reason
    raise _none(wanted, reasons)


def _none(wanted: str, reasons: dict[str, str]) -> UsageError:
    if not reasons:
        return UsageError(
            f"the sandbox `{wanted}` does not hold other people's code",
            where=VARIABLE,
            next_step=f"unset {VARIABLE}; `mhaquiz sandbox check` shows what holds here",
        )
    return UsageError(
        "no sandbox that holds other people's code works here",
        where=VARIABLE if wanted else "",
        cause="; ".join(f"{name}: {reason}" for name, reason in reasons.items()),
        next_step="`mhaquiz sandbox check` shows what to install",
    )
