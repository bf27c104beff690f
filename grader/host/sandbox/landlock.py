"""A Landlock domain and a filter of system calls for every runner: where user namespaces are refused.

A runner reads the system's libraries and the interpreter and writes to its scratch folder; it reaches no socket
and no process but those that it starts. Needs no privilege and no system package.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from grader.host.sandbox import folders, syscalls
from grader.host.sandbox.base import Enclosed
from grader.host.sandbox.interpreter import GUEST, python, started

_WRITABLE = ("/dev/null", "/dev/zero", "/dev/full")


class Landlock:
    """The zygote runs as an ordinary process; each runner encloses itself before it loads a submission."""

    name = "landlock"
    holds_strangers = True
    host_pids = True

    def __init__(self, hide: Sequence[Path] = ()) -> None:
        self._hide = tuple(hide)

    def available(self) -> str | None:
        """Whether the kernel scopes signals by Landlock domain, and a filter of system calls can be had."""
        return self._reason

    @cached_property
    def _reason(self) -> str | None:
        try:
            import sandlock
        except (ImportError, OSError):
            return "the package sandlock is missing: python -m pip install 'mhaquiz[sandbox]'"
        found, needed = sandlock.landlock_abi_version(), sandlock.min_landlock_abi()
        if found < needed:
            return (
                f"this kernel's Landlock is version {max(found, 0)}, needed is {needed}: Linux 6.12 or later"
            )
        return syscalls.missing()

    def start(self, control: int) -> Enclosed:
        """The interpreter as an ordinary child process in a session of its own."""
        scratch = tempfile.mkdtemp(prefix="mhaquiz-")
        process = started(python(GUEST, control, scratch, self._walls()), control)
        return Enclosed(process, str(GUEST), scratch, scratch)

    def _walls(self) -> dict[str, Any]:
        wide = [Path(path) for path in folders.SYSTEM if Path(path).is_dir()]
        narrow = [*folders.SETTINGS, *folders.PROCESSOR, *folders.DEVICES, "/proc/cpuinfo"]
        allowed = [str(path) for path in around([*wide, *folders.readable()], folders.hidden(self._hide))]
        rules = {"readable": [*allowed, *narrow], "writable": list(_WRITABLE)}
        return {"landlock": rules, "filter": syscalls.compiled(about_files=True).hex()}


def around(allowed: Sequence[Path], hidden: Sequence[Path]) -> Iterator[Path]:
    """The folders, split where something hidden lies inside: a domain allows, it cannot except."""
    for folder in allowed:
        inside = [path for path in hidden if path.is_relative_to(folder.resolve())]
        if not inside:
            yield folder
        elif folder.resolve() not in inside:
            yield from around(sorted(folder.iterdir()), inside)
