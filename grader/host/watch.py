"""Reads how much memory and how many processes a runner's session uses, from /proc. Linux only, else zeros."""

from __future__ import annotations

import os
from dataclasses import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class Usage:
    """Resident bytes beyond the zygote's own, and the number of processes of a session."""

    memory_bytes: int = 0
    processes: int = 0


def usage(session: int, shared_bytes: int = 0) -> Usage:
    """What the processes of a session use together, each less the `shared_bytes` that it was forked with."""
    memory = processes = 0
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit() and int(name) >= session]
    except OSError:
        return Usage()
    for name in names:
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        # The leader counts before it has made the session, too: its first look is what was forked with it.
        if int(fields[3]) == session or int(name) == session:
            memory += max(int(fields[21]) * _PAGE - shared_bytes, 0)
            processes += 1
    return Usage(memory, processes)


def alive(pid: int) -> bool:
    """Whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
