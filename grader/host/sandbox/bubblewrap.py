"""Namespaces by bubblewrap around the zygote, namespaces of its own and a filter of system calls for every runner.

A runner sees the system's libraries and the interpreter, read-only, and a sized scratch folder; no network, no other
process, no /proc, no environment, nothing of the grader but the code that runs beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from grader.host.limits import MIB
from grader.host.sandbox import folders, syscalls
from grader.host.sandbox.base import Enclosed
from grader.host.sandbox.interpreter import GUEST, guest_environment, python, started

_GUEST = Path("/run/guest")
_SCRATCH = "/run/scratch"
_PROBE_SECONDS = 10
_INSTALL = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
_ALLOW = (
    "unprivileged user namespaces are refused here: on Ubuntu run `sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0`, in Docker start the container with `--security-opt "
    "seccomp=unconfined`, or use the landlock sandbox"
)


class Bubblewrap:
    """One bubblewrap a zygote; each runner in namespaces of its own below it."""

    name = "bubblewrap"
    holds_strangers = True
    host_pids = False

    def __init__(self, hide: Sequence[Path] = ()) -> None:
        self._hide = tuple(hide)

    def available(self) -> str | None:
        """Whether bubblewrap, user namespaces and a filter of system calls can be had."""
        return self._reason

    @cached_property
    def _reason(self) -> str | None:
        if not shutil.which("bwrap"):
            return f"bubblewrap is not installed: {_INSTALL}"
        return syscalls.missing() or self._refused()

    def _refused(self) -> str | None:
        """What bubblewrap says when it may not do its work here."""
        command = ["bwrap", *_NAMESPACES, *self._files(), "--", "/usr/bin/env", "true"]
        try:
            tried = subprocess.run(
                command, capture_output=True, timeout=_PROBE_SECONDS, env=guest_environment(), check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap cannot be started: {error}"
        if tried.returncode == 0:
            return None
        return f"bubblewrap failed ({tried.stderr.decode(errors='replace').strip()}): {_ALLOW}"

    def start(self, control: int) -> Enclosed:
        """The zygote as the only process of its namespaces, but for bubblewrap's own init."""
        inside = python(_GUEST, control, _SCRATCH, self._walls())
        process = started(["bwrap", *_NAMESPACES, *self._files(), "--", *inside], control)
        return Enclosed(process, str(_GUEST), _SCRATCH, None)

    def _walls(self) -> dict[str, Any]:
        return {"namespaces": True, "filter": syscalls.compiled().hex()}

    def _files(self) -> list[str]:
        """The file system of the sandbox: later entries lie over earlier ones."""
        options: list[str] = []
        for path in folders.SYSTEM:
            options += _same(path)
        for path in (*folders.SETTINGS, *folders.PROCESSOR):
            options += ["--ro-bind-try", path, path]
        for folder in folders.readable():
            options += ["--ro-bind", str(folder), str(folder)]
        for folder in folders.hidden(self._hide):
            options += ["--size", "4096", "--perms", "0555", "--tmpfs", str(folder)]
            options += ["--remount-ro", str(folder)]
        options += ["--ro-bind", str(GUEST), str(_GUEST), "--dir", _SCRATCH]
        # Not --dev: for that bubblewrap makes a second user namespace, in which the zygote may make none for others.
        for device in folders.DEVICES:
            options += ["--dev-bind", device, device]
        options += ["--proc", "/proc"]
        options += ["--perms", "1777", "--size", str(MIB), "--tmpfs", _SCRATCH]
        return [*options, "--remount-ro", "/", "--chdir", "/"]


# The zygote makes namespaces for its runners, and nothing else of what an administrator may.
_NAMESPACES = [
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN",
    "--uid", "65534", "--gid", "65534", "--hostname", "sandbox",
]  # fmt: skip


def _same(path: str) -> list[str]:
    """A system folder under its own name: as a link where it is one on the host."""
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind-try", path, path]
