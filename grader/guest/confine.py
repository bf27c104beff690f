"""What a runner does to itself before the submission's first byte: its limits, then the walls asked for.

Its own session (so that the whole group can be killed), death with the zygote, resource limits, a scratch
folder, and no descriptor but its channel and its output. A stricter sandbox adds walls to this, never replaces it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import Any

from .walls import enclose

_PR_SET_PDEATHSIG = 1
_OPEN_FILES = 256


def take_channel(channel: int, output: int) -> None:
    """Keeps the channel as descriptor 3 and the output as 1 and 2; closes every other one."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(channel, 3)
    os.closerange(4, 1 << 12)


def confine(limits: dict[str, Any], walls: dict[str, Any], scratch: str) -> None:
    """Applies limits and walls to this process, in the fresh fork, before anything is loaded. Raises OSError."""
    os.setsid()
    _die_with_parent()
    enclose(walls, limits, scratch)
    os.chdir(scratch)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_CPU, int(limits["cpu_seconds"]), more=1)
    _limit(resource.RLIMIT_FSIZE, int(limits["file_bytes"]))
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)


def _die_with_parent() -> None:
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        # Not Linux: the zygote kills its runners itself when it ends.
        return


def _limit(kind: int, value: int, more: int = 0) -> None:
    """Sets a limit; the hard one is `more` above, so that the signal of the soft one comes first and tells which."""
    _, hard = resource.getrlimit(kind)
    ceiling = value + more if hard == resource.RLIM_INFINITY else min(value + more, hard)
    resource.setrlimit(kind, (min(value, ceiling), ceiling))
