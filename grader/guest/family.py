"""Who descends from a process, read from /proc. Nobody, where there is no /proc.

Used by the zygote, to end what a runner left behind, and by the host, to count what a runner started.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection

_Children = Callable[[int], list[int]]


def descendants(pid: int, without: Collection[int] = ()) -> set[int]:
    """Every process below `pid`, but for the branches that start with one of `without`."""
    children = _listed_children if _kernel_lists_children() else _children_by_parent()
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        fresh = {child for child in children(waiting.pop()) if child not in without} - found
        found |= fresh
        waiting += fresh
    return found


def _kernel_lists_children() -> bool:
    me = os.getpid()
    return os.path.exists(f"/proc/{me}/task/{me}/children")


def _listed_children(pid: int) -> list[int]:
    """A process's children, those of each of its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found


def _children_by_parent() -> _Children:
    """The same from every process's own account: for kernels that keep no list of children."""
    families: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            families.setdefault(_parent(name), []).append(int(name))
    return lambda pid: families.get(pid, [])


def _parent(name: str) -> int:
    """The parent of a process, or -1 when there is no such process."""
    try:
        with open(f"/proc/{name}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError, ValueError):
        return -1
